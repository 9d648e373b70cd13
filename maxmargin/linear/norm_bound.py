"""Ivanov's form: least loss with ``||w|| <= bound``, through Tikhonov's.

For a cost C, the minimum of ``1/2 ||w||^2 + C L(w)`` has the least loss of all weights that are not
longer than it is, and its norm grows with C: the cost whose answer is as long as the bound is
looked for on a logarithmic scale. A bound may be longer than any answer. For every w within it

    L(w) >= L(w_C) - gap / C - (bound^2 - ||w_C||^2) / (2 C)

so that the search ends where the last two terms are small against the loss.

Reference: seed 002; Vapnik, The Nature of Statistical Learning Theory, 1995.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from maxmargin.risk import LinearSolution, RegularisedRisk
from maxmargin.solution import Status
from maxmargin.solvers.dual_descent import DualDescent

_STEP, _TRIES = 2.0, 60  # of the logarithm of the cost, and how often it is changed at most
_CLOSE = 1e-3  # how near to the bound a norm must come
_NO_LOSS = 1e-6  # loss, over that of zero weights, that is as good as none


class _Search:
    """Answers at one cost after the other, each begun from the last."""

    def __init__(
        self, risk: RegularisedRisk, bound: float, solver: Any, start: np.ndarray | None
    ) -> None:
        self.risk, self.bound, self.solver, self.start = risk, bound, solver, start
        self.small = _NO_LOSS * risk.empirical(np.zeros(risk.n))
        self.passes = 0

    def go(self, log_cost: float) -> None:
        """Solve at a cost."""
        self.posed = self.risk.with_cost(np.exp(log_cost) * self.risk.cost)
        self.solution: LinearSolution = self.solver.solve(self.posed, self.start)
        by_slopes = isinstance(self.solver, DualDescent)
        self.start = self.solution.s if by_slopes else self.solution.theta
        self.passes += self.solution.n_iter
        squared = 2.0 * self.posed.norm(self.solution.theta)
        self.norm = squared**0.5
        self.slack = 0.5 * (self.bound**2 - squared) / np.exp(log_cost)

    @property
    def over(self) -> bool:
        """Whether there is nothing more to find, or someone wants to stop."""
        close = (1.0 - _CLOSE) * self.bound <= self.norm <= self.bound
        return close or self.solution.status is not Status.CONVERGED

    @property
    def loose(self) -> bool:
        """Whether the bound does not bind."""
        loss = self.risk.empirical(self.risk.design.values(self.solution.theta))
        return 0.0 <= self.slack <= max(self.solver.tol * loss, self.small)


def within(
    risk: RegularisedRisk, bound: float, solver: Any, start: np.ndarray | None
) -> tuple[RegularisedRisk, LinearSolution]:
    """Find the costs, in proportion to those of a risk, whose answer has this norm.

    Parameters
    ----------
    risk : RegularisedRisk
        With the l2 penalty. An intercept that is penalised counts in the norm.
    bound : float
    solver : solver of regularised risks
    start : array, optional
        Where its first solve begins.

    Returns
    -------
    risk : RegularisedRisk
        The problem at the costs that were found.
    solution : LinearSolution
    """
    search, at = _Search(risk, bound, solver, start), 0.0
    search.go(at)
    ends: dict[bool, float] = {}  # costs with too short and with too long weights
    for _ in range(_TRIES):
        if search.over or search.loose:
            break
        short = search.norm < bound
        ends[short] = at
        at = 0.5 * sum(ends.values()) if len(ends) == 2 else at + (_STEP if short else -_STEP)
        search.go(at)
    return search.posed, replace(search.solution, n_iter=search.passes)
