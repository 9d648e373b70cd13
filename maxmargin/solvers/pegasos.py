"""Pegasos and its kin: stochastic steps on some rows at a time, and the average of the weights.

In the lambda form, mean loss plus ``lam ||w||^2``, the t-th step with some rows drawn at random is

    w <- w - eta_t (2 lam w + mean slope of the rows),      eta_t = 1 / (2 lam t + L)

with L the curvature of the loss along the longest row seen, so that early steps are not too long.
It needs nothing but those rows: data may come as a stream that never fits into memory. What is
returned is the average of the weights, later ones counting for more. It is not exact: every answer
still carries its duality gap.

References: Shalev-Shwartz, Singer, Srebro and Cotter, Math. Programming 127, 2011; Shamir and
Zhang, ICML 2013 (the averages).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from maxmargin.progress import Monitor, ProblemMonitor
from maxmargin.risk import LinearSolution, RegularisedRisk
from maxmargin.solution import Status

_ROWS = 64  # of a step
_LATE = 3.0  # power of the averaging: 0 counts all weights alike
_EPOCHS = 100_000
_AROUND = np.linspace(-2.0, 2.0, 9)  # where a loss of margins or residuals is bent most


class Stream:
    """Weights that learn from rows as they come.

    Parameters
    ----------
    width : int
        Weights, with the intercept's, which comes last.
    lam : float
        Of the lambda form.
    """

    def __init__(self, width: int, lam: float) -> None:
        self.lam, self.steps, self.longest = lam, 0, 0.0
        self.theta, self.average = np.zeros(width), np.zeros(width)

    def learn(self, risk: RegularisedRisk, rows: np.ndarray) -> None:
        """Take one step on some rows of a problem; their costs only count against each other."""
        part = risk.design.take(rows)
        weight = risk.cost[rows]
        total = float(weight.sum())
        if total <= 0:
            return
        self.steps += 1
        y = risk.y[rows]
        f = part.values(self.theta)
        u = y * f if risk.of_margins else f - y
        slope = risk.loss.slope(u) * weight / total
        gradient = part.combination(y * slope if risk.of_margins else slope)
        gradient += 2.0 * self.lam * risk.penalised * self.theta
        self.longest = max(self.longest, float(part.squared_norms().max()))
        bend = float(risk.loss.curvature(_AROUND).max()) or 1.0
        self.theta = self.theta - gradient / (2.0 * self.lam * self.steps + bend * self.longest)
        share = (_LATE + 1.0) / (self.steps + _LATE)
        self.average += min(share, 1.0) * (self.theta - self.average)


@dataclass(frozen=True)
class Pegasos:
    """Solver for any convex loss with the l2 penalty, by stochastic steps.

    Parameters
    ----------
    tol : float
        Relative duality gap to reach.
    max_iter : int
        Passes over the data allowed; -1 for no limit.
    monitor : ProblemMonitor
        Is told of the progress, and asked when to stop.
    random : numpy.random.Generator
        Of the rows.
    """

    tol: float = 1e-4
    max_iter: int = -1
    monitor: ProblemMonitor = field(default_factory=lambda: ProblemMonitor(Monitor()))
    random: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))

    def solve(self, risk: RegularisedRisk, start: np.ndarray | None = None) -> LinearSolution:
        """Minimise a regularised risk from a start, or from zero."""
        stream = Stream(risk.design.width, 0.5 / float(risk.cost.sum()))
        if start is not None:
            stream.theta, stream.average = start.copy(), start.copy()
        limit = self.max_iter if self.max_iter >= 0 else _EPOCHS
        passes, status = 0, None
        while True:
            theta = stream.average
            s = risk.loss.slope(risk.arguments(risk.design.values(theta)))
            certificate = risk.certificate(theta, s, Status.CONVERGED, self.tol)
            if certificate.converged:
                status = Status.CONVERGED
            elif status is None and passes >= limit:
                status = Status.MAX_ITER
            if self.monitor.due():
                over = certificate.relative_gap
                self.monitor.report(passes, over, self.tol, certificate.gap, s)
            if status is not None:
                return LinearSolution(theta.copy(), s, passes, status)
            order = self.random.permutation(risk.n)
            for first in range(0, risk.n, _ROWS):
                stream.learn(risk, order[first : first + _ROWS])
                status = self.monitor.stopped()
                if status is not None:
                    break
            passes += 1
