"""Platt's sequential minimal optimisation, with the two loops of its paper.

Two multipliers at a time are solved for by hand (:mod:`maxmargin.solvers.classical.two_variables`).
The first is one that violates the KKT conditions at the threshold b by tol, ``E_i = f(x_i) - y_i``:

    y_i E_i < -tol  and  a_i < C,     or     y_i E_i > tol  and  a_i > 0

    repeat
        go through all rows; then, as long as some of them move, through those with 0 < a < C only
    until none of all rows has moved

The second is the row with the largest ``|E_1 - E_2|`` among those with ``0 < a < C``; if that one
does not move, the others of these, and then all, from a random place on. The errors are kept, and b
is such that ``E = 0`` for one of the two that is inside the box, or the middle where none is.

In the variables of :mod:`maxmargin.duals` the errors are ``E = level - v``, one level for each
group, and both rows are of one group: so the nu machines and regression are solved, too. The
errors of all rows are kept here, not only of those inside the box: the rows of the Gram matrix that
they are updated with have to be made in any case.

A step costs two rows of the Gram matrix and O(n) operations, and as much again where the first
choice of a partner fails. In memory are vectors, and the rows that the budget holds.

References: Platt, Fast training of support vector machines using sequential minimal optimization,
1999; Keerthi et al., Neural Computation 13(3), 2001 (what a single b misses: where it is off, rows
are examined in vain. When no row moves and somebody still violates the conditions, b is set to the
middle of what they allow, once.)
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import dataclass

import numpy as np

from maxmargin.backends.cpu.dual.kkt import levels_and_violation
from maxmargin.duals import DualProblem
from maxmargin.solution import Status
from maxmargin.solvers.classical.row_run import ENOUGH, RowRun
from maxmargin.solvers.classical.two_variables import TwoVariableStep, two_variable_step
from maxmargin.solvers.driver import Watch
from maxmargin.solvers.dual.method import DualMethod
from maxmargin.solvers.dual.near_level import Pace


@dataclass(frozen=True)
class Platt(DualMethod):
    """Platt's SMO: two loops, an error cache and a single threshold.

    A step is two variables that move. It costs two rows of the Gram matrix and O(n) operations.

    Parameters
    ----------
    eps : float, default=1e-14
        A step that changes a_2 by less than this, relative to it, is none. (The paper has 1e-3,
        which is too coarse for a small ``tol``.)
    random_state : int, default=0
        Of the places where loops over partners begin.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from maxmargin import SVC
    >>> X, y = load_iris(return_X_y=True)
    >>> SVC(solver="platt").fit(X, y).certificate_.converged
    True
    """

    eps: float = 1e-14
    random_state: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.eps < 1:
            raise ValueError(f"eps is a part of a_2, from 0 to below 1; got {self.eps!r}.")

    def accepts(self, problem: DualProblem) -> str | None:
        """Take what has an equality constraint, which two variables can keep."""
        if problem.n_groups:
            return None
        return (
            "Platt's SMO moves two variables along an equality constraint, and without a bias "
            'there is none. Use solver="coordinate_ascent", which moves one, or solver="smo", '
            "which takes both kinds of problems."
        )

    def begin(self, problem: DualProblem, watch: Watch, pace: Pace | None = None) -> PlattRun:
        """Begin at the problem's start."""
        return PlattRun(problem, watch, self)


class PlattRun(RowRun):
    """Platt's SMO at work; ``level`` has the threshold of each group: for C-SVC, b."""

    def __init__(self, problem: DualProblem, watch: Watch, method: Platt) -> None:
        super().__init__(problem, watch)
        self.eps, self.random = method.eps, np.random.default_rng(method.random_state)
        self.side = problem.side
        self.C = np.maximum(np.abs(problem.lower), np.abs(problem.upper))
        self.level = self._middle()

    def _middle(self) -> np.ndarray:
        """Return the level of each group that suits its variables best."""
        problem = self.problem
        v = problem.scores(self.decision)
        return levels_and_violation(problem.variables, problem.n_groups, self.beta, v)[0]

    @property
    def errors(self) -> np.ndarray:
        """``E``, in the lecture's words ``f(x_i) - y_i``."""
        return self.level[self.problem.group] - self.problem.scores(self.decision)

    def steps(self) -> Generator[None, None, None]:
        """Go through all, then through those inside the box, and so on."""
        everyone, renewed = True, False
        while True:
            before = self.n_iter
            for i in self._violators(everyone):
                self._examine(i)
                yield
            if self.n_iter > before:
                everyone, renewed = False, False
            elif not everyone:
                everyone = True
            elif self.scan()[0] <= self.watch.tol:
                return
            elif renewed:
                self.status = Status.STALLED
                return
            else:
                self.level, renewed = self._middle(), True

    def _violators(self, everyone: bool) -> Iterator[int]:
        """Yield, in order, the rows that violate the conditions by the time they are reached."""
        problem, i = self.problem, -1
        half = 0.5 * ENOUGH * self.watch.tol  # at a common b, so by tol in pairs
        while True:
            errors = self.errors
            wrong = (problem.may_rise(self.beta) & (errors < -half)) | (
                problem.may_fall(self.beta) & (errors > half)
            )
            if not everyone:
                wrong &= problem.is_free(self.beta)
            if not wrong[i + 1 :].any():
                return
            i += 1 + int(np.argmax(wrong[i + 1 :]))
            yield i

    def _examine(self, i: int) -> None:
        """Look for a partner of i, and take a step with the first that moves."""
        problem, errors, row = self.problem, self.errors, self.kernel_row(i)
        own = problem.group == problem.group[i]
        free = np.flatnonzero(problem.is_free(self.beta) & own)
        first = free[np.argmax(np.abs(errors[free] - errors[i]))][None] if len(free) > 1 else free
        for candidates in (first, free, np.flatnonzero(own)):
            start = int(self.random.integers(max(len(candidates), 1)))
            for j in np.roll(candidates, -start):
                if self._take_step(int(j), i, errors, row):
                    return

    def _take_step(self, i1: int, i2: int, errors: np.ndarray, row: np.ndarray) -> bool:
        """Solve for two multipliers; returns whether they have moved."""
        if i1 == i2:
            return False
        pair = np.array([i1, i2])
        step = self._solved(pair, errors, float(row[i1]))
        before, after = step.before[1], step.after[1]
        if abs(after - before) <= self.eps * (after + before + self.eps):
            return False
        self.move(pair, self.side[pair] * step.after)
        self.n_iter += 1
        inside = self.problem.is_free(self.beta)[pair]
        v = self.problem.scores(self.decision)[pair]
        group = self.problem.group[i2]
        self.level[group] = v[np.argmax(inside)] if inside.any() else v.mean()
        return True

    def _solved(self, pair: np.ndarray, errors: np.ndarray, k12: float) -> TwoVariableStep:
        """Put the problem of two variables in the lecture's form, and solve it."""
        diagonal = self.problem.gram.diagonal[self.problem.gram_row[pair]].tolist()
        y1, y2 = self.side[pair].tolist()
        a1, a2 = np.abs(self.beta[pair]).tolist()
        e1, e2 = errors[pair].tolist()
        C1, C2 = self.C[pair].tolist()
        return two_variable_step((y1, y2), (a1, a2), (e1, e2), (*diagonal, k12), (C1, C2))
