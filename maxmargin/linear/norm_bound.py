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

import numpy as np

from maxmargin.risk import LinearSolution, Risk
from maxmargin.solution import Status
from maxmargin.solvers import Method, Watch
from maxmargin.solvers.risk.run import RiskCache

_STEP, _TRIES = 2.0, 60  # of the logarithm of the cost, and how often it is changed at most
_CLOSE = 1e-3  # how near to the bound a norm must come
_NO_LOSS = 1e-6  # loss, over that of zero weights, that is as good as none
_FINEST = 1e-12  # gap beyond which no solver is asked to go


class _Search:
    """Answers at one cost after the other, each begun from the last."""

    def __init__(
        self,
        risk: Risk,
        bound: float,
        method: Method,
        watch: Watch,
        start: LinearSolution | None,
    ) -> None:
        self.risk, self.bound, self.method, self.watch = risk, bound, method, watch
        self.start, self.cache = start, RiskCache()
        self.small = _NO_LOSS * risk.nothing
        self.tol, self.passes = watch.tol, 0
        self.theta: np.ndarray | None = None

    def go(self, log_cost: float) -> None:
        """Solve at a cost; more finely where the last answer would still do."""
        self.posed = self.risk.times(float(np.exp(log_cost)))
        while True:
            solution: LinearSolution = self.method.solve(
                self.posed, self._further(), start=self.start, cache=self.cache
            )
            self.passes += solution.n_iter
            same = self.theta is not None and np.array_equal(solution.theta, self.theta)
            if not same or solution.status is not Status.CONVERGED or self.watch.tol < _FINEST:
                break
            self.watch = replace(self.watch, tol=0.1 * self.watch.tol)
        self.solution, self.theta = solution, solution.theta
        self.start = solution
        squared = 2.0 * self.posed.norm(solution.theta)
        self.slack = 0.5 * (self.bound**2 - squared) / np.exp(log_cost)
        tiny = np.finfo(np.float64).tiny
        self.excess = float(np.log(max(squared, tiny) ** 0.5 / self.bound)) + 0.5 * _CLOSE

    def _further(self) -> Watch:
        """Watch over the next solve: its passes are counted on, and it has all that are allowed."""
        most = self.watch.max_iter
        return replace(
            self.watch, spent=self.passes, max_iter=most if most < 0 else self.passes + most
        )

    @property
    def over(self) -> bool:
        """Whether the norm is as long as the bound, or a solve did not come to its end."""
        return abs(self.excess) < 0.5 * _CLOSE or self.solution.status is not Status.CONVERGED

    @property
    def allowed(self) -> float:
        """Slack that is small against the loss."""
        loss = self.risk.empirical(self.risk.design.values(self.solution.theta))
        return max(self.tol * loss, self.small)

    @property
    def loose(self) -> bool:
        """Whether the bound does not bind."""
        return 0.0 <= self.slack <= self.allowed

    @property
    def stride(self) -> float:
        """By how much to change the logarithm of the cost where one end is not yet known.

        The norm grows no faster than the cost, and the slack falls no slower than one over it.
        """
        far = max(_STEP, abs(self.excess))
        if self.excess > 0:
            return -far
        return min(far, float(np.log(max(self.slack, self.allowed) / self.allowed)) + 0.01)


def within(
    risk: Risk,
    bound: float,
    method: Method,
    watch: Watch,
    start: LinearSolution | None,
) -> tuple[Risk, LinearSolution]:
    """Find the costs, in proportion to those of a risk, whose answer has this norm.

    Parameters
    ----------
    risk : Risk
        With the l2 penalty. An intercept that is penalised counts in the norm.
    bound : float
    method : Method
        Of regularised risks.
    watch : Watch
        Over each solve.
    start : LinearSolution, optional
        Where its first solve begins.

    Returns
    -------
    risk : Risk
        The problem at the costs that were found.
    solution : LinearSolution
    """
    search, at = _Search(risk, bound, method, watch, start), 0.0
    search.go(at)
    ends: dict[bool, tuple[float, float]] = {}  # with too short and with too long weights
    for k in range(_TRIES):
        if search.over or search.loose:
            break
        ends[search.excess < 0] = at, search.excess
        if len(ends) == 1:
            at += search.stride
        else:  # regula falsi, and now and then bisection
            (low, short), (high, long) = ends[True], ends[False]
            at = low + (0.5 if k % 3 == 2 else short / (short - long)) * (high - low)
        search.go(at)
    return search.posed, replace(search.solution, n_iter=search.passes)
