"""The method of multipliers for losses with kinks: Newton's method on smooth ones that end there.

A kinked loss is the largest of its lines, ``V(u) = max_s s u - V*(s)``. Held near a centre,

    V_k(u) = max_s  s u - V*(s) - (s - centre)^2 / (2 width)

it is smooth, and touches V where the centre is the right slope: no width has to be large. So:
some Newton steps on the penalty plus ``sum_i c_i V_k(u_i)``, take the slopes that they end with as
the next centre, and repeat. Only rows between the pieces of the loss have a curvature, and soon
these are few. Where Newton's steps go all their way the width is doubled, for faster centres, and
where they are cut short it is halved.

References: Rockafellar, Math. of Operations Research 1, 1976; Yan and Li, Optimization Methods and
Software 35, 2020 (for support vector machines).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from maxmargin.losses import Shape
from maxmargin.risk import LinearSolution, RegularisedRisk
from maxmargin.solution import Status
from maxmargin.solvers.risk.newton_steps import Losses, NewtonSteps
from maxmargin.solvers.risk.risk_solver import RiskSolver
from maxmargin.solvers.risk.surrogate import from_sample, many

_CENTRES, _STEPS = 1000, 10  # centres in all, and steps for each at most
_WHOLE = 0.9  # of a Newton step: the next centre is due
_EASY, _HARD, _FACTOR = 2, 5, 2.0  # steps, up to and from which the width changes by this factor
_STALE = 60  # centres in a row without a smaller gap
_KNOWN = 16.0  # times as wide it begins where the slopes of an earlier answer are known
_SHARE = 16  # of the rows, that it begins with where they are many
_ZONE = 4.0  # spreads over which a kink is rounded at first


@dataclass(frozen=True)
class Multipliers(RiskSolver):
    """Solver for a loss whose conjugate is a quadratic on an interval, with the l2 penalty."""

    def solve(self, risk: RegularisedRisk, start: LinearSolution | None = None) -> LinearSolution:
        """Minimise a regularised risk from a start, or from what a part of the rows says."""
        shape = risk.loss.shape
        assert shape is not None
        if start is not None:
            theta = start.theta
        else:
            theta = from_sample(self, risk, _SHARE) if many(risk) else _constant(risk)
        steps = NewtonSteps(risk, theta, self.tol, self.max_iter, self.monitor)
        width = _first_width(risk, shape, steps.f)
        s = np.full(risk.n, 0.5 * (shape.low + shape.high))
        if start is not None and len(start.s) == risk.n:
            s, width = start.s, _KNOWN * width
        certificate = risk.certificate(theta, s, Status.CONVERGED, self.tol)
        if certificate.converged:
            return LinearSolution(theta, s, 0, Status.CONVERGED)
        best, stale = (np.inf, theta, s), 0
        for _ in range(_CENTRES):
            envelope = Losses(risk, s, width)
            before = steps.passes
            while True:
                status = steps.down(envelope, 0.0, 1)
                taken = steps.passes - before
                if status is not None or steps.length > _WHOLE or taken >= _STEPS:
                    break
            s = envelope.slopes(steps.f)
            certificate = risk.certificate(steps.theta, s, Status.CONVERGED, self.tol)
            stale += 1
            if certificate.relative_gap < best[0]:
                best, stale = (certificate.relative_gap, steps.theta, s), 0
            if certificate.converged:
                status = Status.CONVERGED
            elif status is None and stale > _STALE:
                status = Status.STALLED
            if status is not None:
                break
            if taken <= _EASY:
                width *= _FACTOR
            elif taken >= _HARD:
                width /= _FACTOR
        else:
            status = Status.STALLED
        return LinearSolution(best[1], best[2], steps.passes, status)


def _constant(risk: RegularisedRisk) -> np.ndarray:
    """Weights of zero, with a free intercept at the median of numbers that are to be met.

    That of equal numbers is one of them, exactly: steps would end some last digits beside it.
    """
    theta = np.zeros(risk.design.width)
    if risk.free_intercept and not risk.of_margins:
        order = np.argsort(risk.y)
        mass = np.cumsum(risk.cost[order])
        theta[-1] = risk.y[order[np.searchsorted(mass, 0.5 * mass[-1])]] / risk.design.constant
    return theta


def _first_width(risk: RegularisedRisk, shape: Shape, f: np.ndarray) -> float:
    """Width that rounds a kink over some spreads of the margins or residuals."""
    u = np.abs(risk.arguments(f))
    spread = 1.0 if risk.of_margins else float(np.median(u)) or float(u.max()) or 1.0
    return (shape.high - shape.low) / (_ZONE * spread)
