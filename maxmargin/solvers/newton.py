"""Newton's method for smooth losses: few passes over the data, a linear system for each.

    minimise  P(theta) = 1/2 ||w||^2 + sum_i c_i V(u_i),      (Z' D Z + I) step = -gradient

with ``D`` the curvatures. Up to some thousand features the matrix is made and factorised, in the
pass over the rows that makes the gradient; beyond, conjugate gradients need only products with the
data. A large problem begins with what a part of its rows says. A step that goes too far, up again,
is cut short; the slope along it says where, and costs no product.

References: Keerthi and DeCoste, JMLR 6, 2005 (squared hinge); Lin, Weng and Keerthi, JMLR 9, 2008
(conjugate gradients); seeds 001 and 004 (logistic regression).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from maxmargin.backends.systems import DIRECT
from maxmargin.progress import ProblemMonitor
from maxmargin.risk import LinearSolution, RegularisedRisk
from maxmargin.solution import Status
from maxmargin.solvers.risk_solver import RiskSolver

_SAMPLED, _SHARE = 1 << 23, 16  # entries from which, and the part on which, a solve begins
_ROUGH = 1e-2  # relative gap to which a part is solved
_FLAT = 0.3  # slope at the end of a step, over that at its beginning, that is small enough
_TRIES = 25
_FORCING = 0.1  # residual of conjugate gradients, over the gradient
_FINER = 0.03  # from one look at the gap to the next, what a step may promise
_LEAST = 1e-15  # promise, over the objective, below which a step is rounding
_PASSES = 1000


class Rows(Protocol):
    """A convex function of the value of each row."""

    def slope(self, f: np.ndarray) -> np.ndarray:
        """Its slope."""
        ...

    def slope_and_curvature(self, f: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Both."""
        ...


class Losses:
    """The losses of a risk as they are, as functions of the values."""

    def __init__(self, risk: RegularisedRisk) -> None:
        self.risk = risk

    def slopes(self, f: np.ndarray) -> np.ndarray:
        """Slopes along the margins or residuals."""
        return self.risk.loss.slope(self.risk.arguments(f))

    def slope(self, f: np.ndarray) -> np.ndarray:
        """Slopes along f."""
        return self.risk.cost * self.risk.along_values(self.slopes(f))

    def slope_and_curvature(self, f: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Slopes and curvatures along f."""
        risk = self.risk
        slope, curvature = risk.loss.slope_and_curvature(risk.arguments(f))
        return risk.cost * risk.along_values(slope), risk.cost * curvature


@dataclass(frozen=True)
class Newton(RiskSolver):
    """Solver for a loss with a continuous slope, with the l2 penalty or none."""

    def solve(self, risk: RegularisedRisk, start: LinearSolution | None = None) -> LinearSolution:
        """Minimise a regularised risk from a start, or from what a part of the rows says."""
        theta = from_sample(self, risk) if start is None else start.theta
        descent = Descent(risk, theta, self.tol, self.max_iter, self.monitor)
        rows, wanted = Losses(risk), self.tol
        while True:
            status = descent.down(rows, wanted * descent.objective)
            s = descent.predicted() if status is None else rows.slopes(descent.f)
            certificate = risk.certificate(descent.theta, s, Status.CONVERGED, self.tol)
            if certificate.converged:
                status = Status.CONVERGED
            elif status is None and wanted < _LEAST:
                status = Status.STALLED
            if status is not None:
                return LinearSolution(descent.theta, s, descent.passes, status, certificate)
            wanted *= _FINER
            descent.objective = abs(certificate.primal)


def from_sample(solver: RiskSolver, risk: RegularisedRisk) -> np.ndarray:
    """Weights that a part of the rows asks for, by the same solver; zero where all are few."""
    count = max(risk.n // _SHARE, 4 * risk.design.width)
    if risk.design.entries < _SAMPLED or count > risk.n // 2:
        return np.zeros(risk.design.width)
    rows = np.sort(np.random.default_rng(0).choice(risk.n, count, replace=False))
    if not (risk.cost[rows] > 0).any():
        return np.zeros(risk.design.width)
    return replace(solver, tol=_ROUGH).solve(risk.sample(rows)).theta


class Descent:
    """Newton steps on a penalty plus a sum over rows: one matrix and one product each."""

    def __init__(
        self,
        risk: RegularisedRisk,
        theta: np.ndarray,
        tol: float,
        max_iter: int,
        monitor: ProblemMonitor,
    ) -> None:
        self.risk, self.design, self.tol, self.monitor = risk, risk.design, tol, monitor
        self.limit = max_iter if max_iter >= 0 else _PASSES
        self.direct = risk.design.width <= DIRECT
        self.passes, self.theta = 0, theta
        self.f = risk.design.values(theta)
        self.objective = abs(risk.primal(theta, self.f))
        self.length = 1.0  # of the last step

    def down(self, rows: Rows, enough: float, most: int = _PASSES) -> Status | None:
        """Step until one promised less than is enough, or often enough; or say what stopped it."""
        for _ in range(most):
            if self.passes >= self.limit:
                return Status.MAX_ITER
            reason = self.monitor.stopped()
            if reason is not None:
                return reason
            slope, curvature = rows.slope_and_curvature(self.f)
            self.passes += 1
            step, promise = self._step(slope, curvature)
            along = self._go(rows, step, promise)
            self.model = slope, curvature, along
            if not promise > enough:
                return None
            if self.monitor.due():
                over = promise / max(self.objective, np.finfo(np.float64).tiny)
                self.monitor.report(self.passes, over, self.tol, promise, slope)
        return None

    def _step(self, slope: np.ndarray, curvature: np.ndarray) -> tuple[np.ndarray, float]:
        """Newton's step, and by how much it would fall if the slope stayed as it is."""
        penalised, design = self.risk.penalised, self.design
        if self.direct:
            gradient, matrix = design.derivatives(slope, curvature)
            gradient = gradient + penalised * self.theta
            step = -_solved(matrix + np.diag(penalised), gradient)
        else:
            gradient = design.combination(slope) + penalised * self.theta
            step = self._by_conjugate_gradients(curvature, gradient)
        return step, -float(gradient @ step)

    def _by_conjugate_gradients(self, curvature: np.ndarray, gradient: np.ndarray) -> np.ndarray:
        """Solve for the step, to a part of the gradient."""
        step, residual = np.zeros(len(gradient)), -gradient
        size = float(np.linalg.norm(residual))
        direction, squared = residual.copy(), size**2
        for _ in range(len(step)):
            values = self.design.values(direction)
            product = self.design.combination(curvature * values)
            product += (self.risk.penalised + 1e-12) * direction
            length = squared / float(direction @ product)
            step += length * direction
            residual -= length * product
            before, squared = squared, float(residual @ residual)
            if squared**0.5 <= _FORCING * size:
                break
            direction = residual + (squared / before) * direction
        return step

    def predicted(self) -> np.ndarray:
        """Slopes of the losses that the model of the last step has at its end.

        Those of a whole step make ``Z' beta`` equal to the weights there: a dual point whose gap
        falls as fast as the model becomes exact. What the conjugate does not allow is cut off.
        """
        slope, curvature, along = self.model
        cost = np.where(self.risk.cost > 0, self.risk.cost, 1.0)
        s = self.risk.along_values((slope + self.length * curvature * along) / cost)
        return np.clip(s, *self.risk.loss.slopes)

    def _go(self, rows: Rows, step: np.ndarray, promise: float) -> np.ndarray:
        """Go along a step until it hardly falls any more; returns the values along it."""
        along = self.design.values(step)
        penalised = self.risk.penalised * step
        base, bend = float(penalised @ self.theta), float(penalised @ step)

        def left(t: float) -> float:
            return float(rows.slope(self.f + t * along) @ along) + base + t * bend

        low, high, t = (0.0, -promise), (1.0, left(1.0)), 1.0
        if high[1] > _FLAT * promise:
            for k in range(_TRIES):  # the secant, and now and then the middle
                share = 0.5 if k % 3 == 2 else low[1] / (low[1] - high[1])
                t = low[0] + share * (high[0] - low[0])
                slope = left(t)
                if abs(slope) <= _FLAT * promise:
                    break
                low, high = ((t, slope), high) if slope < 0 else (low, (t, slope))
        self.theta = self.theta + t * step
        self.f = self.f + t * along
        self.length = t
        return along


def _solved(matrix: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Solve a system with a positive matrix; a singular one is made regular."""
    scale, ridge = max(float(np.trace(matrix)) / len(matrix), np.finfo(np.float64).tiny), 0.0
    while True:
        try:
            factor = cho_factor(matrix + ridge * np.eye(len(matrix)), check_finite=False)
            return cho_solve(factor, right, check_finite=False)
        except LinAlgError:
            ridge = max(100.0 * ridge, 1e-13 * scale)
