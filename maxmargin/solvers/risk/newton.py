"""Newton's method for smooth losses: few passes over the data, a linear system for each.

Many rows are first looked at as :mod:`maxmargin.solvers.risk.subsampled_newton` does, with the
curvature of a part of them. What that leaves, and everything where rows are few or classes several,
is done by Newton's own steps (:mod:`maxmargin.solvers.risk.newton_steps`).
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

import numpy as np

from maxmargin.backends.threads import StoppedError
from maxmargin.risk import RegularisedRisk, SoftmaxRisk
from maxmargin.solution import Status
from maxmargin.solvers.risk.newton_steps import NewtonSteps
from maxmargin.solvers.risk.run import RiskRun
from maxmargin.solvers.risk.span import SystemMethod
from maxmargin.solvers.risk.subsampled_newton import by_part, from_sample, many

_FINER = 0.03  # from one look at the gap to the next, what a step may leave
_LEAST = 1e-15  # over the objective: what a step leaves below it is rounding
_STEPS = 1000  # between two looks at the gap, at most


class NewtonRun(RiskRun):
    """Newton's method at work; a step is a pass over the data."""

    newton: NewtonSteps | None = None

    def steps(self) -> Generator[None, None, None]:
        """By a part of the rows where they are many, then by all."""
        if isinstance(self.risk, RegularisedRisk) and many(self.risk):
            if not self.risk.penalty.none:
                converged = yield from by_part(self, Newton())
                if converged:
                    return
            elif self.start is None:
                yield from from_sample(self, Newton())
        yield from self._by_all_rows()

    def _by_all_rows(self) -> Generator[None, None, None]:
        risk, tol = self.risk, self.watch.tol
        newton = NewtonSteps(risk, self.theta, self.cache, stopped=self.watch.stopped)
        losses = risk.losses() if isinstance(risk, RegularisedRisk) else risk
        self.newton = newton
        enough = _FINER * tol if newton.few else tol  # a step is soon taken, there
        while True:
            for _ in range(_STEPS):
                try:
                    newton.take(losses)
                except StoppedError:
                    yield  # the driver knows why
                    continue
                self.n_iter += 1
                self.stand(newton.theta)
                if not newton.left > enough * newton.objective:
                    break
                yield
            self.stand(newton.theta, newton.predicted())
            if self.certificate.converged:
                return
            if enough < _LEAST:
                self.status = Status.STALLED
                return
            yield
            enough *= _FINER
            newton.objective = abs(self.certificate.primal)

    def dual_points(self, f: np.ndarray) -> list[np.ndarray]:
        """Slopes of the losses at the weights, and those that the last step has predicted."""
        points = super().dual_points(f)
        if self.newton is not None and self.newton.model is not None:
            points.append(self.newton.predicted())
        return points


@dataclass(frozen=True)
class Newton(SystemMethod):
    """Newton's method, for a loss with a continuous slope and the l2 penalty or none.

    The softmax loss it takes with any penalty.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.backends.cpu.linear import Design
    >>> from maxmargin.losses import Logistic
    >>> from maxmargin.risk import RegularisedRisk
    >>> from maxmargin.solvers import Newton
    >>> X, y = np.array([[-1.0], [1.0]]), np.array([-1.0, 1.0])
    >>> Newton().solve(RegularisedRisk(Design(X), y, np.ones(2), Logistic())).theta.round(2)
    array([0.67, 0.  ])
    """

    run, by_passes = NewtonRun, True

    def accepts(self, problem: Any) -> str | None:
        """None for a smooth risk; else why not."""
        if isinstance(problem, SoftmaxRisk):
            return None
        if problem.penalty.l1:
            return (
                "Newton's method takes the l2 penalty or none, and penalty='l1' has a kink at "
                "zero: use solver='l1_descent'."
            )
        if not problem.loss.smooth or problem.loss.shape is None:
            return (
                "Newton's method needs a smooth loss, and this one has a kink or no conjugate that "
                "it knows: use solver='multipliers', or the square of the loss."
            )
        return None
