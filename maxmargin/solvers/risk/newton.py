"""Newton's method for smooth losses: few passes over the data, a linear system for each.

Many rows are first looked at as :mod:`maxmargin.solvers.risk.surrogate` does, with the curvature of
a part of them. What that leaves, and everything where rows are few, is done by Newton's own steps
(:mod:`maxmargin.solvers.risk.newton_steps`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from maxmargin.risk import LinearSolution, RegularisedRisk
from maxmargin.solution import Status
from maxmargin.solvers.risk.newton_steps import Losses, NewtonSteps
from maxmargin.solvers.risk.risk_solver import RiskSolver
from maxmargin.solvers.risk.surrogate import by_part, from_sample, many

_FINER = 0.03  # from one look at the gap to the next, what a step may promise
_LEAST = 1e-15  # promise, over the objective, below which a step is rounding


@dataclass(frozen=True)
class Newton(RiskSolver):
    """Solver for a loss with a continuous slope, with the l2 penalty or none."""

    def solve(self, risk: RegularisedRisk, start: LinearSolution | None = None) -> LinearSolution:
        """Minimise a regularised risk from a start, or from what a part of the rows says."""
        theta, passes = np.zeros(risk.design.width) if start is None else start.theta, 0
        if many(risk) and not risk.penalty.none:
            found = by_part(self, risk, start)
            if found.status is not Status.STALLED:
                return found
            theta, passes = found.theta, found.n_iter
        elif many(risk) and start is None:
            theta = from_sample(self, risk)
        steps = NewtonSteps(risk, theta, self.tol, self.max_iter, self.monitor)
        steps.passes = passes
        rows = Losses(risk)
        wanted = _FINER * self.tol if steps.few else self.tol  # a step is soon taken, there
        while True:
            status = steps.down(rows, wanted * steps.objective)
            s = steps.predicted() if status is None else rows.slopes(steps.f)
            certificate = risk.certificate(steps.theta, s, Status.CONVERGED, self.tol)
            if certificate.converged:
                status = Status.CONVERGED
            elif status is None and wanted < _LEAST:
                status = Status.STALLED
            if status is not None:
                return LinearSolution(steps.theta, s, steps.passes, status, certificate)
            wanted *= _FINER
            steps.objective = abs(certificate.primal)
