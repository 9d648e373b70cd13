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

from maxmargin.risk import LinearSolution, RegularisedRisk
from maxmargin.solution import Status
from maxmargin.solvers.risk_solver import RiskSolver, report
from maxmargin.solvers.softmax import SoftmaxRisk

ROWS, _CALL = 64, 1 << 12  # rows of a step, and between two looks at the clock
_LATE = 3.0  # power of the averaging: 0 counts all weights alike
_EPOCHS = 100_000


class Stream:
    """Weights that learn from rows as they come.

    Parameters
    ----------
    shape : tuple of int
        Of the weights, with the intercept's last.
    lam : float
        Of the lambda form.

    Attributes
    ----------
    average : float array
        The weights that it has come to.
    steps, rows : int
        Steps taken, and rows seen.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.backends.cpu_linear import Design
    >>> from maxmargin.losses import Squared
    >>> from maxmargin.risk import RegularisedRisk
    >>> from maxmargin.solvers.pegasos import Stream
    >>> X = np.linspace(-1.0, 1.0, 50)[:, None]
    >>> risk = RegularisedRisk(Design(X), 3 * X[:, 0] + 1, np.ones(50), Squared())
    >>> stream = Stream((2,), lam=1e-6)
    >>> for _ in range(500):
    ...     stream.learn(risk)
    >>> stream.average.round(2)
    array([3., 1.])
    """

    def __init__(self, shape: tuple[int, ...], lam: float) -> None:
        self.lam, self.steps, self.longest = lam, 0, 0.0
        self.rows, self.mass = 0, 0.0
        self.theta, self.average = np.zeros(shape), np.zeros(shape)

    def learn(self, part: RegularisedRisk | SoftmaxRisk) -> None:
        """Take one step on a problem of a few rows; costs count against those of all rows seen."""
        self.rows += part.design.n
        self.mass += float(part.cost.sum())
        if self.mass <= 0:
            return
        self.steps += 1
        gradient = part.pull(self.theta) * (self.rows / self.mass / part.design.n)
        gradient += 2.0 * self.lam * part.penalised * self.theta
        self.longest = max(self.longest, float(part.design.squared_norms().max()))
        self.theta -= gradient / (2.0 * self.lam * self.steps + part.bend * self.longest)
        share = (_LATE + 1.0) / (self.steps + _LATE)
        self.average += min(share, 1.0) * (self.theta - self.average)

    def learn_in_turn(self, risk: RegularisedRisk | SoftmaxRisk, order: np.ndarray) -> None:
        """Take steps on the rows of a problem, in an order, some at a time."""
        for first in range(0, len(order), ROWS):
            self.learn(risk.take(order[first : first + ROWS]))


@dataclass(frozen=True)
class Pegasos(RiskSolver):
    """Solver for any convex loss with the l2 penalty, by stochastic steps.

    Parameters
    ----------
    tol, max_iter, monitor
        As of every :class:`RiskSolver`.
    random : numpy.random.Generator
        Of the rows.
    """

    random: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))

    def solve(self, risk: RegularisedRisk, start: LinearSolution | None = None) -> LinearSolution:
        """Minimise a regularised risk from a start, or from zero."""
        stream = Stream(risk.shape, 0.5 / float(risk.cost.sum()))
        if start is not None:
            stream.theta, stream.average = start.theta.copy(), start.theta.copy()
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
            report(self.monitor, passes, certificate.gap, certificate.primal, self.tol)
            if status is not None:
                return LinearSolution(theta.copy(), s, passes, status)
            order = self.random.permutation(risk.n)
            for first in range(0, risk.n, _CALL):
                stream.learn_in_turn(risk, order[first : first + _CALL])
                status = self.monitor.stopped()
                if status is not None:
                    break
            passes += 1
