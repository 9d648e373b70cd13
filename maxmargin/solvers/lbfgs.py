"""L-BFGS for smooth losses, by SciPy: a gradient for each pass, no second derivatives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from maxmargin.risk import GapCertificate, LinearSolution, RegularisedRisk
from maxmargin.solution import Status
from maxmargin.solvers.risk_solver import RiskSolver, report

_GRADIENTS = 10.0 ** -np.arange(3.0, 15.0)  # to reach one after the other, until the gap is small


class _StoppedError(Exception):
    pass


@dataclass(frozen=True)
class LBFGS(RiskSolver):
    """Solver for a loss with a continuous slope, with the l2 penalty or none."""

    def solve(self, risk: RegularisedRisk, start: LinearSolution | None = None) -> LinearSolution:
        """Minimise a regularised risk from a start, or from zero."""

        def slopes(theta: np.ndarray) -> np.ndarray:
            return risk.loss.slope(risk.arguments(risk.design.values(theta)))

        def look(theta: np.ndarray) -> tuple[float, np.ndarray]:
            f = risk.design.values(theta)
            return risk.primal(theta, f), risk.pull(theta, f) + risk.penalised * theta

        def certify(theta: np.ndarray) -> GapCertificate:
            return risk.certificate(theta, slopes(theta), Status.CONVERGED, self.tol)

        theta = np.zeros(risk.design.width) if start is None else start.theta
        theta, passes, status = self.minimised(look, certify, theta, float(risk.cost.sum()))
        return LinearSolution(theta, slopes(theta), passes, status)

    def minimised(
        self,
        look: Callable[[np.ndarray], tuple[float, np.ndarray]],
        certify: Callable[[np.ndarray], GapCertificate],
        theta: np.ndarray,
        scale: float,
        bounds: np.ndarray | None = None,
    ) -> tuple[np.ndarray, int, Status]:
        """Minimise any function.

        Parameters
        ----------
        look : callable
            Value and gradient at some weights.
        certify : callable
            Certificate of some weights.
        theta : float array
            Where to begin.
        scale : float
            Unit in which gradients are small or not.
        bounds : float array of shape (len(theta), 2), optional
            Least and greatest value of each.

        Returns
        -------
        theta : float array
        passes : int
        status : Status
        """
        limit = self.max_iter if self.max_iter >= 0 else 1 << 30
        best, passes = theta.copy(), 0

        def objective(theta: np.ndarray) -> tuple[float, np.ndarray]:
            nonlocal passes
            if self.monitor.stopped() is not None or passes >= limit:
                raise _StoppedError
            passes += 1
            value, gradient = look(theta)
            return value / scale, gradient / scale

        def keep(theta: np.ndarray) -> None:
            nonlocal best
            best = theta.copy()
            if self.monitor.due():
                seen = certify(best)
                report(self.monitor, passes, seen.gap, seen.primal, self.tol)

        for small in _GRADIENTS:
            if certify(best).converged and passes:
                return best, passes, Status.CONVERGED
            options = {"maxiter": limit, "gtol": small, "ftol": 0.0, "maxls": 50}
            try:
                found = minimize(
                    objective,
                    best,
                    jac=True,
                    method="L-BFGS-B",
                    bounds=bounds,
                    callback=keep,
                    options=options,
                )
                best = found.x
            except _StoppedError:
                return best, passes, self.monitor.stopped() or Status.MAX_ITER
        return best, passes, Status.STALLED
