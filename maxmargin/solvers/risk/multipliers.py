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

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

import numpy as np

from maxmargin.losses import Shape
from maxmargin.risk import L2, Losses, RegularisedRisk, SoftmaxRisk
from maxmargin.solution import Status
from maxmargin.solvers.risk.newton_steps import NewtonSteps
from maxmargin.solvers.risk.run import BestRun
from maxmargin.solvers.risk.span import SystemMethod

_CENTRES, _STEPS = 1000, 10  # centres in all, and steps for each at most
_WHOLE = 0.9  # of a Newton step: the next centre is due
_EASY, _HARD, _FACTOR = 2, 5, 2.0  # steps, up to and from which the width changes by this factor
_STALE = 60  # centres in a row without a smaller gap
_KNOWN = 16.0  # times as wide it begins where the slopes of an earlier answer are known
_ZONE = 4.0  # spreads over which a kink is rounded at first
_MET = 0.1  # of the targets' own spread: no less counts as one


class MultipliersRun(BestRun[RegularisedRisk]):
    """The method of multipliers at work; a step is one of Newton's."""

    envelope: Losses | None = None
    newton: NewtonSteps

    def steps(self) -> Generator[None, None, None]:
        """Newton's steps on the smooth losses, then the next centre."""
        risk, start, shape = self.risk, self.start, self.risk.loss.shape
        assert shape is not None  # accepts
        if start is None:
            self.stand(_constant(risk))
        newton = self.newton = NewtonSteps(risk, self.theta, self.cache)
        width = _first_width(risk, shape, newton.f)
        s = risk.same_slopes(0.5 * (shape.low + shape.high))
        if start is not None and len(start.s) == len(s):
            s, width = start.s, _KNOWN * width
        self.stand(self.theta, s)
        if self.certificate.converged:
            return
        stale = 0
        for _ in range(_CENTRES):
            self.envelope = risk.losses(s, width)
            for taken in range(1, _STEPS + 1):
                newton.take(self.envelope)
                self.n_iter += 1
                self.stand(newton.theta)
                if newton.length > _WHOLE or taken == _STEPS:
                    break
                yield
            s = self.envelope.slopes(newton.f)
            self.stand(newton.theta, s)
            stale = 0 if self.is_best() else stale + 1
            if self.certificate.converged:
                return
            if stale > _STALE:
                break
            yield
            if taken <= _EASY:
                width *= _FACTOR
            elif taken >= _HARD:
                width /= _FACTOR
        self.status = Status.STALLED

    def dual_points(self, f: np.ndarray) -> list[np.ndarray]:
        """Slopes of the smooth losses."""
        if self.envelope is None:
            return super().dual_points(f)
        return [self.envelope.slopes(self.newton.f)]


@dataclass(frozen=True)
class Multipliers(SystemMethod):
    """The method of multipliers, for a loss with kinks and the l2 penalty.

    The conjugate of the loss is a quadratic on a bounded interval.
    """

    run, by_passes = MultipliersRun, True

    def accepts(self, problem: Any) -> str | None:
        """None for a loss with kinks; else why not."""
        if isinstance(problem, SoftmaxRisk) or problem.loss.smooth:
            return (
                "The method of multipliers is for losses with kinks, and this one is smooth: use "
                "solver='auto'."
            )
        shape = problem.loss.shape
        if shape is None or shape.entropy or not np.isfinite(shape.low):
            return (
                "The method of multipliers needs a loss whose conjugate is a quadratic on a "
                f"bounded interval; {problem.loss!r} is not such a loss."
            )
        if problem.penalty != L2:
            return "The method of multipliers takes the l2 penalty only."
        return None


def _constant(risk: RegularisedRisk) -> np.ndarray:
    """Weights of zero, with a free intercept at the median of numbers that are to be met.

    That of equal numbers is one of them, exactly: steps would end some last digits beside it.
    """
    theta = np.zeros(risk.design.width)
    if risk.free_intercept and not risk.of_margins:
        theta[-1] = risk.middle() / risk.design.constant
    return theta


def _first_width(risk: RegularisedRisk, shape: Shape, f: np.ndarray) -> float:
    """Width that rounds a kink over some spreads of the margins or residuals.

    An earlier answer that meets its numbers exactly says nothing about the residuals of the next.
    """
    spread = 1.0
    if not risk.of_margins:
        of_residuals, of_targets = risk.spreads(f)
        spread = max(of_residuals, _MET * of_targets) or 1.0
    return (shape.high - shape.low) / (_ZONE * spread)
