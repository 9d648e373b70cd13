"""Machines for all classes at once, along C: a problem for each fold over one shared matrix."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from maxmargin.backends.threads import ALONE
from maxmargin.gram import Gram
from maxmargin.progress import ProblemMonitor
from maxmargin.selection.cost_path import CostPath
from maxmargin.selection.held_out import Claim, HeldOut
from maxmargin.selection.plan import Candidate
from maxmargin.selection.targets import UNDECIDED, UNFINISHED, Labels
from maxmargin.solvers import RowDescent, Watch
from maxmargin.solvers.dual.direct import solve_directly

if TYPE_CHECKING:
    from maxmargin.selection.run import SharedFits


def direct_outcomes(
    fits: SharedFits, targets: Labels, gram: Gram, paths: list[CostPath], how: str
) -> Iterator[HeldOut]:
    """Yield what the candidates of some paths answer, each cost begun from the last.

    Those that do not converge along the path are left to fits of their own, and so are those whose
    ``tol`` leaves the class of held-out rows open: there the start of a solver decides.

    A fold has all rows of the matrix, and those that it holds out cost nothing: their values are
    part of the solution. Where there are enough folds, each has a thread to itself.
    """
    workers = fits.workers
    apart = len(paths) >= workers.count and not gram.on_device

    def follow(path: CostPath) -> tuple[list[HeldOut], dict[str, list[Candidate]]]:
        own = gram.take(range(gram.n))  # rows that a solver keeps are those of its thread
        found, known, before = None, [], None
        alone: dict[str, list[Candidate]] = {UNFINISHED: [], UNDECIDED: []}
        for candidate in path.left:
            began, machine = time.perf_counter(), candidate.machine
            problem = targets.direct_problem(machine, path.fold).over(own)
            if before is not None and found is not None:
                problem = problem.started_after(before, found.b, found.values)
            monitor = ProblemMonitor(fits.monitor)
            watch = Watch(machine.tol, monitor=monitor, workers=ALONE if apart else workers)
            found, before = solve_directly(problem, RowDescent(), watch), problem
            workers.check()
            if not found.certificate.converged:
                alone[UNFINISHED].append(candidate)
                before = None
                continue
            if targets.undecided(found.values[path.fold.test], machine.tol):
                alone[UNDECIDED].append(candidate)
                continue
            train = found.values[path.fold.train] if fits.manners.train_too else None
            known.append(
                HeldOut(
                    candidate,
                    path.fold.split,
                    time.perf_counter() - began,
                    how,
                    Claim.of(found.certificate),
                    test=found.values[path.fold.test],
                    train=train,
                    classes=targets.classes,
                )
            )
        path.reached = len(path.candidates)
        return known, alone

    outcomes = workers.map(follow, paths) if apart else map(follow, paths)
    for path, (known, alone) in zip(paths, outcomes, strict=True):
        for reason, candidates in alone.items():
            if candidates:
                fits.leave_alone(candidates, reason, path.fold.split)
        yield from known
