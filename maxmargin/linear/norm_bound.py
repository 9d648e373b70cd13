"""Linear machines with a bound on their weights: :mod:`maxmargin.solvers.ivanov` over risks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from maxmargin.risk import LinearSolution, RegularisedRisk, Risk
from maxmargin.solvers import Method, Watch
from maxmargin.solvers.ivanov import Answer, Arrays, BoundedProblem, cost_of_square, minimise_within
from maxmargin.solvers.risk.run import RiskCache

_FINEST = 1e-13  # relative gap beyond which no solver is asked to go


class BoundedRisk(BoundedProblem):
    """The losses of a risk; primal are weights and values, dual the slopes."""

    def __init__(
        self, risk: Risk, method: Method, watch: Watch, start: LinearSolution | None
    ) -> None:
        self.risk, self.method, self.watch, self.start = risk, method, watch, start
        self.nothing, self.cache, self.passes = risk.nothing, RiskCache(), 0
        self.first, zero = cost_of_square(risk.mean_square), np.zeros(risk.shape)
        if isinstance(risk, RegularisedRisk) and not risk.of_margins and risk.free_intercept:
            self.nothing = risk.about_middle
            zero[-1] = risk.middle() / risk.design.constant
        self.rest = zero, risk.values(zero)

    def solve(self, cost: float, gap: float) -> Answer:
        """Begin from the last answer, with all passes that are allowed."""
        posed: Any = self.risk.times(cost)
        known = self.start
        objective = posed.nothing
        if known is not None:
            f = self.cache.values(self.risk, known.theta)
            objective = min(objective, posed.primal(known.theta, f))
        tol = float(np.clip(gap * cost / objective, _FINEST, self.watch.tol)) if objective else 1.0
        most = self.watch.max_iter
        watch = replace(
            self.watch,
            tol=tol,
            spent=self.passes,
            max_iter=most if most < 0 else self.passes + most,
        )
        found: LinearSolution = self.method.solve(posed, watch, start=known, cache=self.cache)
        self.passes, self.start = self.passes + found.n_iter, found
        f = self.cache.values(self.risk, found.theta)
        return Answer(cost, (found.theta, f), (found.s,), found.status)

    def norm(self, primal: Arrays) -> float:
        """Norm of the weights that are penalised."""
        return float((2.0 * self.risk.norm(primal[0])) ** 0.5)

    def loss(self, primal: Arrays) -> float:
        """Sum of the losses."""
        return self.risk.empirical(primal[1])

    def pull(self, dual: Arrays) -> tuple[float, float]:
        """``||u||`` of slopes that are made feasible, and their conjugates."""
        return self.risk.pull(dual[0])


def within(
    risk: Risk, bound: float, method: Method, watch: Watch, start: LinearSolution | None
) -> tuple[Risk, LinearSolution]:
    """Find weights of the least loss with ``||w|| <= bound``, and the C that has the same answer.

    Parameters
    ----------
    risk : Risk
        With the l2 penalty. An intercept that is penalised counts in the norm.
    bound : float
    method : Method
        Of regularised risks.
    watch : Watch
        Over each solve; its ``tol`` is that of the duality gap of this problem.
    start : LinearSolution, optional
        Where its first solve begins.

    Returns
    -------
    risk : Risk
        The problem at the costs that were found.
    solution : LinearSolution
    """
    problem = BoundedRisk(risk, method, watch, start)
    found, status = minimise_within(problem, bound, watch.tol)
    theta, (s,) = found.primal[0], found.dual
    f = risk.values(theta)
    certificate = found.certificate(status, risk.empirical(f))
    solution = LinearSolution(theta, s, problem.passes, certificate.status, certificate, f=f)
    return risk.times(found.multiplier), solution
