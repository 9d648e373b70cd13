"""The form of machines with a quadratic programme for each task: all but the direct ones.

What the whole problem fixes, the sums of its groups and the costs of its rows, comes from a problem
with a row for each class, or with one, that weighs what all rows do: the duals of one machine state
it, and refuse what they refuse.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Any

import numpy as np

from maxmargin.backends.cpu import spread_out
from maxmargin.backends.cpu.dual.certificate import (
    Account,
    accounted,
    errors,
    gap,
    kkt_state,
    kkt_sums,
    lengths,
    widen,
)
from maxmargin.certificate import DualCertificate
from maxmargin.dask.kernel.forms import Accuracy, Arrays, Errand, Form, Solved, Stretch
from maxmargin.dask.kernel.looks import Gaps, Look, merged, noise
from maxmargin.dask.kernel.updated import Updated
from maxmargin.duals import DualProblem
from maxmargin.duals.machines import _filled
from maxmargin.evaluation import (
    Evaluation,
    HardMargins,
    account_of_hard_margin,
    hard_margins,
    scaling,
)
from maxmargin.gram import Definiteness, Gram, Spectrum
from maxmargin.solution import Solution, Status
from maxmargin.solvers import Auto, solve_certified

Posed = list[tuple[np.ndarray, DualProblem]]  # rows of each task, and its problem on them
_SEEN = 8  # rows of a partition that has nothing to solve, that become candidates
_UPDATED = 1000  # rows from which known values are brought along, and not computed anew
_KNOWN = 0.1  # violation, as a share of rho, up to which rho counts as known
_SAME = 1e-9  # of the costs, by which a start may be moved and its values still be taken


class Tasks(ABC):
    """What a family of machines asks: rows of each task, and its problem on some of them."""

    @abstractmethod
    def own(self, y: Any, n: int) -> Arrays:
        """Rows that each task sees, of n."""

    @abstractmethod
    def problem(
        self, shell: Any, k: int, rows: np.ndarray, y: Any, weight: np.ndarray
    ) -> DualProblem:
        """Problem of a task on rows that it sees, with the costs that all rows gave."""


class DualForm(Form):
    """Problems for two classes, regressions, or the one-class machine's.

    Parameters
    ----------
    shell : KernelMachine
        Of the same parameters, without data.
    kernel : Kernel
        Resolved.
    whole : list of DualProblem
        The problem of each task, with rows that weigh what all do.
    tasks : Tasks
        Rows of each task among given ones, and its problem on them.
    """

    def __init__(self, shell: Any, kernel: Any, whole: list[DualProblem], tasks: Tasks) -> None:
        self.shell, self.kernel, self.whole, self.tasks = shell, kernel, whole, tasks
        self.n_tasks = self.n_values = len(whole)
        self.sums = [
            np.array([own.start[own.group == g].sum() for g in range(own.n_groups)])
            for own in whole
        ]
        self.room = [
            np.array([(own.upper - own.lower)[own.group == g].sum() for g in range(own.n_groups)])
            for own in whole
        ]
        self.copies = 2 if whole[0].paired else 1
        self.hard = whole[0].hard

    def posed(self, y: Any, weight: np.ndarray) -> Posed:
        """Rows of each task among these, and its problem on them, begun at zero.

        The problems are over rows that are counted from zero among a task's own.
        """
        found = []
        for k, (rows, whole) in enumerate(zip(self.own(y, len(weight)), self.whole, strict=True)):
            if len(rows):
                part = self.tasks.problem(self.shell, k, rows, y, weight)
                part = replace(part, gram_row=np.tile(np.arange(len(rows)), self.copies))
            else:
                part = whole.restricted(np.empty(0, dtype=np.int64))
            part = part.started_from(np.zeros(len(part)))
            vars(part)["n_groups"] = whole.n_groups  # also where rows of one are missing
            found.append((rows, part))
        return found

    def own(self, y: Any, n: int) -> Arrays:
        """Rows that each task sees."""
        return self.tasks.own(y, n)

    def nothing(self, y: Any, n: int) -> Arrays:
        """No variable set."""
        return [np.zeros((self.copies, len(rows))) for rows in self.own(y, n)]

    # -- solving -------------------------------------------------------------------------------

    def begin(
        self, gram: Gram, y: Any, weight: np.ndarray, share: float, errand: Errand
    ) -> tuple[Arrays, np.ndarray]:
        """Solve with costs as large as if these rows were all, and take the share of that."""
        posed = self.posed(y, weight)
        extra, betas, problems, places = [], [], [], []
        for k, (rows, part) in enumerate(posed):
            betas.append(np.zeros((self.copies, len(rows))))
            problem = self._scaled(k, part, share)
            if problem is None:
                extra.append(rows[spread_out(len(rows), _SEEN)] if len(rows) else rows)
                continue
            if not self._two_sided(k, problem):
                betas[k] = problem.start.reshape(self.copies, -1) * share
                extra.append(rows[spread_out(len(rows), _SEEN)])
                continue
            places.append((k, problem))
            problems.append(replace(problem, gram_row=rows[problem.gram_row]))
        if problems:
            solver = Auto(errand.max_iter, bool(self.shell.shrinking), errand.monitor)
            found, _ = solve_certified(gram, problems, solver, errand.tol, errand.workers)
            for (k, problem), own in zip(places, found, strict=True):
                beta = own.solution.beta * (1.0 if self.hard else share)
                part = posed[k][1]  # at a bound exactly, where the other is
                beta = np.where(own.solution.beta >= problem.upper, part.upper, beta)
                beta = np.where(own.solution.beta <= problem.lower, part.lower, beta)
                betas[k] = beta.reshape(self.copies, -1)
        return betas, np.unique(np.concatenate([*extra, np.empty(0, dtype=np.int64)]))

    def _scaled(self, k: int, part: DualProblem, share: float) -> DualProblem | None:
        """Return the problem of some rows with a box and sums as if they were all rows."""
        if not len(part):
            return None
        if self.hard:
            if not self._two_sided(k, part):
                return None
            wanted = self.sums[k]
        else:
            part = replace(part, lower=part.lower / share, upper=part.upper / share)
            own = np.array(
                [(part.upper - part.lower)[part.group == g].sum() for g in range(len(self.sums[k]))]
            )
            wanted = self.sums[k] * np.divide(
                own, self.room[k], out=np.zeros_like(own), where=self.room[k] > 0
            )
        start = np.zeros(len(part))
        for g, total in enumerate(wanted):
            members = np.flatnonzero(part.group == g)
            if not total:
                continue
            halves = np.split(members, 2) if self.copies == 2 and len(wanted) == 1 else [members]
            for half in halves:  # the two variables of a row share what there is
                side = np.where(part.lower[half] < 0, -1.0, 1.0)
                width = np.maximum(np.abs(part.lower[half]), np.abs(part.upper[half]))
                start[half] = side * _filled(width, abs(total) / len(halves))
        return part.started_from(start)

    def _two_sided(self, k: int, part: DualProblem) -> bool:
        """Whether the rows of a part have something to solve: every group, or both labels."""
        whole, counted = self.whole[k], part.lower < part.upper
        if any(not (counted & (part.group == g)).any() for g in range(whole.n_groups)):
            return False
        if self.hard:
            labels = part.label[counted]
            return bool((labels > 0).any() and (labels < 0).any())
        if whole.margin_weights.size or whole.paired or not whole.n_groups:
            return True
        return bool((part.lower < 0).any() and (part.upper > 0).any())

    def solve(
        self,
        gram: Gram,
        y: Any,
        weight: np.ndarray,
        beta: Arrays,
        decision: Arrays | None,
        e: Errand,
    ) -> Solved:
        """Solve the problems of all tasks over the Gram matrix of these rows, certified."""
        posed = self.posed(y, weight)
        problems, known = [], decision is not None and not self.hard
        for k, (rows, part) in enumerate(posed):
            problem = self._started(k, part, beta[k], e.near or decision is not None)
            if known and decision is not None:
                moved = problem.start - beta[k].ravel()
                size = float(np.abs(beta[k]).max(initial=0.0))
                known = float(np.abs(moved).max(initial=0.0)) <= _SAME * size
                if known:
                    values = np.zeros(gram.n)
                    values[rows] = decision[k][0]
                    if moved.any():
                        change = np.zeros(gram.n)
                        change[rows] = problem.on_rows(moved, len(rows))
                        values += gram.matvec(change, workers=e.workers)
                    problem = problem.started_from(problem.start, values)
            problems.append(replace(problem, gram_row=rows[problem.gram_row]))
        known = known and gram.n >= _UPDATED
        found, steps = solve_certified(gram, problems, self._solver(e, known), e.tol, e.workers)
        if known and any(own.certificate.status is Status.STALLED for own in found):
            again = self._solver(e, False)  # which knows what to do then
            problems = [
                own.started_near(f.solution.beta) for own, f in zip(problems, found, strict=True)
            ]
            found, more = solve_certified(gram, problems, again, e.tol, e.workers)
            steps = [a + b for a, b in zip(steps, more, strict=True)]
        return Solved(
            beta=[own.beta.reshape(self.copies, -1) for own in found],
            decision=[
                self._values(gram, problem, own, e).reshape(1, -1)
                for problem, own in zip(problems, found, strict=True)
            ],
            steps=steps,
            status=[own.certificate.status for own in found],
            violation=max(own.certificate.kkt_violation for own in found),
            chosen=[own for own in e.monitor.chosen if not isinstance(own.method, Updated)],
        )

    def _values(self, gram: Gram, problem: DualProblem, own: Evaluation, e: Errand) -> np.ndarray:
        """Values of a task on all its rows, in float64.

        A certificate needs no better than the solver's on some; the next round begins with all.
        """
        if self.hard:
            return own.decision
        values, rows = own.recomputed, own.unseen
        if len(rows):
            values = values.copy()
            coef = problem.on_rows(own.solution.beta, gram.n)
            values[rows] = gram.matvec(coef, own.rows[rows], e.workers)
        return values

    def _started(self, k: int, part: DualProblem, beta: np.ndarray, known: bool) -> DualProblem:
        """Return a problem of candidates, begun where they are, with the sums of the whole."""
        if self.hard:
            start = self._scaled(k, part, 1.0)
            assert start is not None, "candidates of a hard margin are of both classes"
            return start
        whole = part.started_from(self._feasible(k, part, beta.ravel()))
        if not known and not self.sums[k].any() and len(part) >= _UPDATED:
            return whole  # values at another start would take longer than to come there from zero
        return whole.started_near(beta.ravel())

    def _feasible(self, k: int, part: DualProblem, beta: np.ndarray) -> np.ndarray:
        """Return a point with the sums of the whole problem, which a start may be measured by."""
        start = np.clip(beta, part.lower, part.upper)
        for g, total in enumerate(self.sums[k]):
            members = np.flatnonzero(part.group == g)
            if not total:
                start[members] = 0.0
                continue
            side = np.where(part.lower[members] < 0, -1.0, 1.0)
            width = np.maximum(np.abs(part.lower[members]), np.abs(part.upper[members]))
            start[members] = side * _filled(width, abs(total))
        return start

    def _solver(self, e: Errand, known: bool) -> Auto:
        """Return what was asked for, or what suits; from known values, these are brought along."""
        method = self.shell._solver().method
        auto = Auto(e.max_iter, bool(self.shell.shrinking), e.monitor, method)
        return replace(auto, method=Updated(auto)) if known else auto

    # -- values --------------------------------------------------------------------------------

    def coefficients(self, y: Any, weight: np.ndarray, beta: Arrays) -> np.ndarray:
        """Sums of ``o_t b_t`` of each row, for each task."""
        coef = np.zeros((self.n_values, len(weight)))
        for k, (rows, part) in enumerate(self.posed(y, weight)):
            coef[k, rows] = part.on_rows(beta[k].ravel(), len(rows))
        return coef

    def on_own(self, values: np.ndarray, y: Any) -> Arrays:
        """Values of each task's expansion on its rows."""
        return [values[None, rows, k] for k, rows in enumerate(self.own(y, len(values)))]

    def shift(self, beta: Arrays) -> None:
        """Nothing: levels are found from the values."""
        return None

    # -- looking at rows -----------------------------------------------------------------------

    def _in_units(self, posed: Posed) -> Posed:
        """Problems in the units of the certificate: the hard margin's, at margin one."""
        return [(rows, part.normalised(1.0)) for rows, part in posed] if self.hard else posed

    @property
    def _n_groups(self) -> list[int]:
        return [own.normalised(1.0).n_groups if self.hard else own.n_groups for own in self.whole]

    def look(self, at: Stretch, shift: Any) -> list[Look]:
        """Sums and extremes of each task's KKT conditions on these rows."""
        looks = []
        for k, (rows, part) in enumerate(self._in_units(self.posed(at.y, at.weight))):
            beta, own = at.beta[k].ravel(), at.diagonal[rows]
            sums = kkt_sums(
                part.variables,
                self._n_groups[k],
                beta,
                np.zeros(len(part)),
                at.decision[k][0],
                own,
            )
            looks.append(Look(sums, *lengths(part.variables, beta, own)))
        return looks

    def merged(self, looks: list[list[Look]]) -> list[Look]:
        """Add sums, and take extremes of extremes."""
        return [merged(list(of_task)) for of_task in zip(*looks, strict=True)]

    def _state(self, k: int, look: Look) -> Any:
        """State of a task, whose sums must be those of the whole problem."""
        wanted = np.zeros(1) if self.hard or not len(self.sums[k]) else self.sums[k]
        sums = look.sums._replace(drift=look.sums.drift - wanted)
        known = kkt_state(sums, self._n_groups[k])
        widen(self._readings(k), known.levels)
        return known

    def _readings(self, k: int) -> Any:
        return (self.whole[k].normalised(1.0) if self.hard else self.whole[k]).readings

    def violation(self, look: list[Look]) -> np.ndarray:
        """Violation of each task."""
        return np.array([self._state(k, own).violation for k, own in enumerate(look)])

    def goals(self, look: list[Look], tol: float) -> np.ndarray:
        """Have a margin that is not fixed known to a tenth, where it is not zero to rounding."""
        goals = np.full(self.n_tasks, tol)
        for k, own in enumerate(look):
            weights, known = self._readings(k).margin_weights, self._state(k, own)
            margin = abs(float(weights @ known.levels)) if weights.size else 0.0
            if margin > noise(own, known):
                goals[k] = min(tol, _KNOWN * margin)
        return goals

    def levels(self, look: list[Look]) -> Arrays:
        """Levels of each task's groups."""
        return [self._state(k, own).levels for k, own in enumerate(look)]

    def excess(self, at: Stretch, levels: Any, shift: Any) -> np.ndarray:
        """Largest excess of a row's variables over the level of their group, in any task."""
        found = np.full(len(at.weight), -np.inf)
        for k, (rows, part) in enumerate(self._in_units(self.posed(at.y, at.weight))):
            v = part.scores(at.decision[k][0])
            v = v - (levels[k][part.group] if len(levels[k]) else 0.0)
            own = at.beta[k].ravel()
            rise = np.where(own < part.upper, v, -np.inf)
            fall = np.where(own > part.lower, -v, -np.inf)
            of_row = np.maximum(rise, fall).reshape(self.copies, -1).max(axis=0, initial=-np.inf)
            found[rows] = np.maximum(found[rows], of_row)
        return found

    def gaps(self, at: Stretch, levels: Any, accuracy: Accuracy, shift: Any) -> list[Gaps]:
        """Gap of each task on these rows."""
        found = []
        for k, (rows, part) in enumerate(self._in_units(self.posed(at.y, at.weight))):
            own, decision = at.beta[k].ravel(), at.decision[k][0]
            error = errors(
                float(accuracy.terms[k]),
                decision,
                at.diagonal[rows],
                float(accuracy.size[k]),
                accuracy.rounding,
            )
            between, doubt, margins = 0.0, 0.0, HardMargins(np.inf, np.inf, 0.0)
            if self.hard:
                bias = float(levels[k][0]) if len(levels[k]) else 0.0
                margins = hard_margins(part, own, decision, bias, error)
            else:
                between, doubt = gap(part.variables, own, decision, levels[k], error)
            found.append(Gaps(between, doubt, margins))
        return found

    def added(self, gaps: list[list[Gaps]]) -> list[Gaps]:
        """Add the gaps; of margins take the smallest."""
        totals = []
        for of_task in zip(*gaps, strict=True):
            margins = HardMargins(
                min(own.margins.slackest for own in of_task),
                min(own.margins.surest for own in of_task),
                sum(own.margins.doubt for own in of_task),
            )
            between, doubt = (sum(own[j] for own in of_task) for j in (0, 1))
            totals.append(Gaps(between, doubt, margins))
        return totals

    def judged(
        self,
        look: list[Look],
        gaps: list[Gaps],
        status: list[Status],
        tol: float,
        spectrum: Definiteness | Spectrum,
    ) -> list[tuple[DualCertificate, tuple[Evaluation, float]]]:
        """Account for each task as one machine does; also what its machine is divided by."""
        found = []
        for k, (own, between) in enumerate(zip(look, gaps, strict=True)):
            account = self.account(k, own, between)
            problem = self.whole[k].normalised(1.0) if self.hard else self.whole[k]
            empty = np.empty(0)
            evaluation = Evaluation.of(
                problem,
                Solution(empty, 0, status[k]),
                empty,
                True,
                empty,
                empty,
                empty,
                account,
                tol,
                spectrum,
                np.empty(0, dtype=np.int64),
            )
            unit = scaling(problem, status[k], account)[1]
            found.append((evaluation.certificate, (evaluation, unit)))
        return found

    def account(self, k: int, look: Look, gaps: Gaps) -> Account:
        """Put the account of a task together, from sums over all rows."""
        known, readings = self._state(k, look), self._readings(k)
        doubt = noise(look, known) if readings.margin_weights.size else 0.0
        account = Account(*accounted(known, readings, gaps.between, gaps.doubt, doubt))
        return account_of_hard_margin(account, gaps.margins) if self.hard else account
