"""The subgradient method on the primal of a linear machine.

    minimise  P(theta) = l2/2 ||w||^2 + sum_i c_i V(u_i)

    theta_t+1 = theta_t - eta_t g_t,      g_t = l2 w + sum_i c_i s_i du_i/dtheta

with a slope ``s_i`` of each loss; at a kink, any between the two. Not every step is a descent, and
the method cannot tell that it has arrived, since at the optimum of the hinge the slopes that it
sees are not zero. So steps must shrink, and are taken on and on:

    "strong"   1 / (l2 t): the objective is strongly convex in w, error O(log t / t)
    c          c / sqrt(t): for any convex objective, error O(log t / sqrt(t))

It is not in an intercept without a penalty, which such steps throw far to and fro. So "strong"
steps are those on ``min over b of P(w, b)``, which is strongly convex: b is the best for w, where
some slopes have a sum of zero, found by halving. Losses whose slopes have no bound, as the squared
hinge, would throw w as far, and take ``1 / (l2 t + L)`` with L a bound on the curvature.

Better than a last iterate is the best of those that were looked at, which is returned, or an
average, with later ones counting for more. And such an average of the *slopes* is a dual point,
feasible where each was made at the best b. So the duality gap goes to zero, slowly, and says how
far it is.

References: Shor, Minimization Methods for Non-differentiable Functions, 1985; Shalev-Shwartz,
Singer, Srebro and Cotter, Math. Programming 127, 2011 (1 / (l2 t)); Lacoste-Julien, Schmidt and
Bach, arXiv:1212.2002 (the average).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any

import numpy as np

from maxmargin.certificate import RiskCertificate
from maxmargin.risk import LinearSolution, RegularisedRisk
from maxmargin.solution import Status
from maxmargin.solvers.driver import Run, Watch
from maxmargin.solvers.risk.run import RiskCache, RiskMethod, RiskRun
from maxmargin.solvers.steps import check_step_size, step_sizes

_STEPS = 100_000  # after which a digit more would take a million
_DIVERGED = 1e50  # weights beyond which there is no way back
_HALVINGS, _CLOSE = 100, 1e-6  # on the way to the best intercept, and how near to it
_LOOKS = 10  # looks at the gap while the number of steps doubles, and some more


@dataclass(frozen=True)
class Subgradient(RiskMethod):
    """The subgradient method, for any convex loss and the l2 penalty.

    A step is a pass over the data, N M operations and no memory beyond some vectors. It is never
    exact: expect a relative gap of 1e-2 after some thousand steps, and that every further digit
    takes ten times as many. What it has come to by ``max_iter``, its certificate says.

    Parameters
    ----------
    step_size : "strong", float or callable, default="strong"
        ``1 / (l2 t)``, with the best intercept after each; a number c for ``c / sqrt(t)``; or a
        function of t = 1, 2, ... These are taken as they are, the intercept's too.
    average : bool, default=False
        Look at averages of the weights, the t-th counting t times, in place of the weights.
        They are smoother; with ``"strong"``, where weights are averages already, no better.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from maxmargin import LinearSVC
    >>> from maxmargin.solvers import Subgradient
    >>> X, y = load_iris(return_X_y=True)
    >>> machine = LinearSVC(loss="hinge", C=0.1, tol=0.05, max_iter=5000, solver=Subgradient())
    >>> machine.fit(X[:100], y[:100]).certificate_.converged
    True
    """

    step_size: str | float | Callable[[int], float] = "strong"
    average: bool = False

    def __post_init__(self) -> None:
        check_step_size(self.step_size, ["strong"])

    def accepts(self, problem: Any) -> str | None:
        """Take one function of the weights, with the l2 penalty and a convex loss."""
        if not isinstance(problem, RegularisedRisk):
            return "solver='subgradient' is for two classes or numbers: use solver='auto'."
        if problem.penalty.l1 or problem.penalty.none:
            return "solver='subgradient' takes the l2 penalty only: use solver='auto'."
        if not problem.loss.convex:
            return f"solver='subgradient' needs a convex loss, and {problem.loss!r} is not one."
        return None

    def begin(
        self,
        problem: Any,
        watch: Watch,
        start: LinearSolution | None = None,
        cache: RiskCache | None = None,
    ) -> Run:
        """Begin from an earlier answer where there is one."""
        return SubgradientRun(problem, watch, start, cache, self)


class SubgradientRun(RiskRun[RegularisedRisk]):
    """The subgradient method at work; a step is a pass over the data."""

    def __init__(
        self,
        risk: RegularisedRisk,
        watch: Watch,
        start: LinearSolution | None,
        cache: RiskCache | None,
        method: Subgradient,
    ) -> None:
        super().__init__(risk, watch, start, cache)
        self.method = method
        self.mean_slopes, self.width = np.zeros(risk.n), 1.0
        self.bent = 0.0  # a bound on the curvature, where slopes are without one
        if not np.isfinite(risk.loss.slopes).all():
            self.bent = risk.max_curvature * float(risk.cost @ risk.design.squared_norms())
        self.least: tuple[float, np.ndarray] = np.inf, self.theta
        self.most: tuple[float, np.ndarray | None] = 0.0, None

    def steps(self) -> Generator[None, None, None]:
        """Against a subgradient, on and on; the gap is looked at ever more seldom."""
        risk, mean = self.risk, self.theta
        held, look_at = risk.penalty.l2 * risk.penalised, 1
        if self._best().converged:  # the start may be the best of all
            return
        theta, s = self._with_slopes(self.theta)
        while self.n_iter < _STEPS:
            t = self.n_iter + 1
            share = 2.0 / (t + 1)
            self.mean_slopes = self.mean_slopes + share * (s - self.mean_slopes)
            slope = held * theta - risk.design.combination(risk.beta(s))
            theta = theta - self._length(t) * slope
            if not np.abs(theta).max(initial=0.0) < _DIVERGED:
                self.status = Status.DIVERGED
                return
            theta, s = self._with_slopes(theta)
            mean = mean + share * (theta - mean)
            self.stand(mean if self.method.average else theta)
            self.n_iter = t
            if t >= look_at:
                look_at = t + 1 + t // _LOOKS
                if self._best().converged:
                    return
            yield
        self.status = Status.STALLED

    def _with_slopes(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Weights with slopes of the losses there; with "strong" steps, at the best intercept.

        There some slopes, at kinks perhaps mixed of both sides, sum to zero.
        """
        risk = self.risk
        f = risk.values(theta)
        s = risk.slopes_at(f)
        pull = float(risk.beta(s).sum())
        if not (isinstance(self.method.step_size, str) and risk.free_intercept and pull):
            return theta, s
        (near, before), far = (0.0, (s, pull)), None
        width, size = math.copysign(self.width, pull), float(np.abs(risk.arguments(f)).max())
        for _ in range(_HALVINGS):
            shift = near + width if far is None else 0.5 * (near + far)
            s = risk.slopes_at(f + shift)
            now = s, float(risk.beta(s).sum())
            if now[1] * pull > 0.0:
                near, before, width = shift, now, 2.0 * width
            else:
                far, after = shift, now
            if far is not None and abs(far - near) <= _CLOSE * (size + abs(far)):
                break
        if far is None:  # no intercept is large enough
            return theta, s
        self.width = abs(far)
        theta = theta.copy()
        theta[-1] += far / risk.design.constant
        share = before[1] / (before[1] - after[1])
        return theta, before[0] + share * (after[0] - before[0])

    def _length(self, t: int) -> float:
        size = self.method.step_size
        if callable(size):
            return float(step_sizes(size, 0.0, t - 1, 1)[0])
        if isinstance(size, str):
            return 1.0 / (self.risk.penalty.l2 * t + self.bent)
        return size / t**0.5

    def _best(self) -> RiskCertificate:
        """Certificate of the best weights and the best slopes that were looked at."""
        now, risk = self.certificate, self.risk
        if now.primal < self.least[0]:
            self.least = now.primal, self.theta
        if now.dual >= self.most[0]:
            self.most = now.dual, self.s
        ends = self.least[0], self.most[0]
        return RiskCertificate.of(*ends, risk.rounding, Status.CONVERGED, self.watch.tol)

    def solution(self, status: Status) -> LinearSolution:
        """Return the best weights, not the last."""
        certificate = self._best()
        self.stand(self.least[1], self.most[1], certificate)
        return super().solution(status)

    def dual_points(self, f: np.ndarray) -> list[np.ndarray]:
        """Slopes at the weights, and the average of those on the way."""
        return [*super().dual_points(f), self.mean_slopes]
