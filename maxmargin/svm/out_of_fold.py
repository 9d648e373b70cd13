"""Values of the training rows by machines that have not seen them, over the Gram matrix of the fit.

Rows are dealt to five folds, class by class, so that all tasks of a scheme have the same folds, and
each fold the same share of each class. A class with fewer rows than folds is in as many of them as
it has rows. Where a fold leaves no row of a task's side to learn from, the other side is all that
can be said of the rows held out.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from maxmargin.backends.threads import StoppedError, Workers
from maxmargin.duals import DualProblem
from maxmargin.duals.direct import DirectProblem
from maxmargin.evaluation import Evaluation
from maxmargin.gram import Gram
from maxmargin.progress import Monitor, ProblemMonitor
from maxmargin.solution import Status
from maxmargin.solvers import Auto, Watch, solve_certified
from maxmargin.solvers.dual.direct import solve_directly
from maxmargin.solvers.dual.left_out import LeftOut, solve_left_out

FOLDS = 5
Found = tuple[np.ndarray, np.ndarray]  # some rows, and their values
_AT_ONCE = 256  # rows made before someone may stop
_COARSER, _COARSEST = 10, 1e-2  # times tol, and at most: sigmoids do not see more


def deal(y: np.ndarray, random: np.random.RandomState) -> np.ndarray:
    """Fold of each row: the rows of a class, in random order, to one fold after the other.

    Examples
    --------
    >>> import numpy as np
    >>> fold = deal(np.repeat([0, 1], [10, 5]), np.random.RandomState(0))
    >>> np.bincount(fold[:10]), np.bincount(fold[10:])
    (array([2, 2, 2, 2, 2]), array([1, 1, 1, 1, 1]))
    """
    fold = np.empty(len(y), dtype=np.int64)
    order = random.permutation(len(y))
    order = order[np.argsort(y[order], kind="stable")]
    fold[order] = np.arange(len(y)) % FOLDS
    return fold


def fold_tolerance(tol: float) -> float:
    """Violation that is left in a fold."""
    return max(tol, min(_COARSER * tol, _COARSEST))


@dataclass(frozen=True)
class Task:
    """A problem for two sides: its rows and their labels and weights, as posed and solved."""

    rows: np.ndarray
    signs: np.ndarray
    weight: np.ndarray
    solved: Evaluation


class OutOfFold:
    """Out-of-fold values of a machine's problems, in the time that its fit has left.

    Parameters
    ----------
    machine : KernelClassifier
    gram : Gram
        Of all training rows.
    number : int array (n,)
        Fold of each row, -1 for rows that take no part.
    solver : Auto
        Of the fit; what remains of its time limit is for the folds, and its Ctrl-C counts.
    """

    def __init__(self, machine: Any, gram: Gram, number: np.ndarray, solver: Auto) -> None:
        self.machine, self.gram, self.number, self.solver = machine, gram, number, solver
        self.tol = fold_tolerance(machine.tol)
        left = None
        if machine.time_limit is not None:
            left = machine.time_limit - solver.monitor.seconds
        self.monitor = Monitor(left)
        if solver.monitor.interrupted:
            self.monitor.reason = solver.monitor.reason
        self.violation = 0.0

    @property
    def status(self) -> Status:
        """How the folds have ended."""
        if self.violation <= self.tol:
            return Status.CONVERGED
        return self.monitor.stopped() or (
            Status.MAX_ITER if self.machine.max_iter >= 0 else Status.STALLED
        )

    @contextmanager
    def _heard(self) -> Iterator[Workers]:
        """Threads that stop where the fit is stopped; what is not done then is left as it is."""
        with self.monitor.catching_interrupts():
            try:
                yield Workers(self.machine._workers().count, self.monitor.stopped)
            except StoppedError:
                self.violation = np.inf

    def of_tasks(self, tasks: list[Task], everywhere: bool = False) -> list[Found]:
        """Rows and values of each task's machines, as posed.

        On the rows that a task sees or, ``everywhere``, on all that take part: those of other
        classes are new to every machine of the task, and have the value of their fold's. Zero
        where nothing was found out.
        """
        part = np.flatnonzero(self.number >= 0)
        rows = [part if everywhere else task.rows[self.number[task.rows] >= 0] for task in tasks]
        values = [np.zeros(len(own)) for own in rows]
        if any(not task.solved.problem.hard for task in tasks) and not self.gram.on_device:
            self.gram.host.float32_points()  # before the threads that share it
        with self._heard() as workers:
            solved = workers.map(self._left_out, tasks)
            others = [k for k, found in enumerate(solved) if found is None]
            found = self._certified([tasks[k] for k in others])
            for k, machines in [*enumerate(solved), *zip(others, found, strict=True)]:
                if machines is None:
                    continue
                self.violation = max(self.violation, machines.violation)
                values[k] = self._of_own_fold(machines, tasks[k].rows, rows[k])
        return list(zip(rows, values, strict=True))

    def _of_own_fold(self, machines: LeftOut, seen: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Each row's value by the machine that has not seen it."""
        place = np.searchsorted(seen, rows)
        known = np.isin(rows, seen, assume_unique=True)
        values = np.zeros(len(rows))
        values[known] = machines.values[self.number[rows[known]], place[known]]
        if not known.all():
            new = rows[~known]
            values[~known] = self._at(machines, new)[self.number[new], np.arange(len(new))]
        return values

    def _left_out(self, task: Task) -> LeftOut | None:
        """Solve all folds of a task over one block of values, where that can be."""
        number = self.number[task.rows]
        if _one_sided(task, number) or self.machine.solver != "auto":
            return None
        watch = Watch(self.tol, self.machine.max_iter, ProblemMonitor(self.monitor))
        losses = task.solved.problem.losses
        if losses is None:
            return None
        cost = np.where(number != np.arange(FOLDS)[:, None], losses.cost, 0.0)
        return solve_left_out(self.gram, task.solved, cost, watch)

    def _certified(self, tasks: list[Task]) -> list[LeftOut]:
        """Solve each fold as a problem of its own, begun from the whole solution."""
        problems, machines = [], []
        for task in tasks:
            number, signs = self.number[task.rows], task.signs
            coefficients, bias = np.zeros((FOLDS, len(task.rows))), np.zeros(FOLDS)
            values = np.zeros((FOLDS, len(task.rows)))
            taken = np.zeros(FOLDS, dtype=np.int64)
            machines.append(LeftOut(task.rows, coefficients, bias, values, 0.0, taken))
            for f in range(FOLDS):
                kept = np.flatnonzero((number != f) & (number >= 0))
                if len(np.unique(signs[kept])) < 2:
                    bias[f] = signs[kept[0]] if len(kept) else 0.0
                    continue
                problem: DualProblem = self.machine._part_of_problem(
                    task.rows[kept], signs[kept], task.weight[kept], task.weight[number >= 0]
                )
                if not problem.hard:
                    problem = problem.started_near(task.solved.solution.beta[kept])
                problems.append((len(machines) - 1, f, kept, problem))
        if problems:
            solver = replace(self.solver, monitor=self.monitor)
            posed = [problem for *_, problem in problems]
            self.monitor.problems = len(posed)
            workers = self.machine._workers()
            evaluations, _ = solve_certified(self.gram, posed, solver, self.tol, workers)
            for (k, f, kept, _), e in zip(problems, evaluations, strict=True):
                machines[k].coefficients[f, kept] = e.coefficients
                machines[k].bias[f] = e.bias
                if not e.certificate.converged and e.certificate.status is not Status.TRIVIAL:
                    self.violation = max(self.violation, e.certificate.kkt_violation)
        return [part._replace(values=self._at(part, part.rows)) for part in machines]

    def _at(self, machines: LeftOut, rows: np.ndarray) -> np.ndarray:
        """Values of the folds' machines at some rows, (folds, rows)."""
        coefficients = np.zeros((self.gram.n, FOLDS))
        coefficients[machines.rows] = machines.coefficients.T
        return self.gram.matmat(coefficients, rows).T + machines.bias[:, None]

    def of_direct(self, problem: DirectProblem, b: np.ndarray, method: Any) -> list[Found]:
        """Rows and values of the functions of one problem for all classes, solved by b."""
        values = np.zeros(b.shape)
        with self._heard() as workers:
            if not self.gram.on_device:  # rows that every fold asks for
                host, used = self.gram.host, np.flatnonzero(b.any(axis=1))
                for first in range(0, min(len(used), host.store.capacity), _AT_ONCE):
                    workers.check()
                    host.require(used[first : first + _AT_ONCE])
            for f in range(FOLDS):
                workers.check()
                kept = self.number != f
                without = replace(problem, cost=np.where(kept, problem.cost, 0.0))
                without = without.started_near(np.where(kept[:, None], b, 0.0))
                monitor = ProblemMonitor(self.monitor)
                watch = Watch(self.tol, self.machine.max_iter, monitor, self.machine._workers())
                found = solve_directly(without, method, watch)
                values[~kept] = found.values[~kept]
                self.violation = max(self.violation, found.certificate.kkt_violation)
        part = np.flatnonzero(self.number >= 0)
        return [(part, own) for own in values[part].T]


def _one_sided(task: Task, number: np.ndarray) -> bool:
    """Whether a fold leaves only one side of a task to learn from."""
    counts = [
        np.bincount(number[(number >= 0) & own], minlength=FOLDS)
        for own in (task.signs > 0, task.signs <= 0)
    ]
    return any((count == count.sum()).any() for count in counts)
