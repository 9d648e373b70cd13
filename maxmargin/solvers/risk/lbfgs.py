"""L-BFGS for smooth losses, by SciPy: a gradient for each pass, no second derivatives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from maxmargin.risk import GapCertificate, LinearSolution, RegularisedRisk
from maxmargin.solution import Status
from maxmargin.solvers.risk.risk_solver import RiskSolver, report

_SMALL, _LEAST = 1e-3, 1e-14  # gradient at which the gap is looked at first, and the smallest
_SMALLER = 0.1, 0.5  # from one look at the gap to the next, what a gradient falls by
_PAIRS = 15  # of steps and changes of the gradient to remember


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
        scale = float(risk.cost.sum())
        theta, passes, certificate = self.minimised(look, certify, theta, scale)
        return LinearSolution(theta, slopes(theta), passes, certificate.status, certificate)

    def minimised(
        self,
        look: Callable[[np.ndarray], tuple[float, np.ndarray]],
        certify: Callable[[np.ndarray], GapCertificate],
        theta: np.ndarray,
        scale: float,
        bounds: np.ndarray | None = None,
    ) -> tuple[np.ndarray, int, GapCertificate]:
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
        certificate : GapCertificate
            With the reason why it is the last one.
        """
        limit = self.max_iter if self.max_iter >= 0 else 1 << 30
        best, passes, small, steepness = theta.copy(), 0, _SMALL, np.inf
        certificate = certify(best) if best.any() else None  # of the best
        if certificate is not None and certificate.converged:
            return best, 1, certificate

        def objective(theta: np.ndarray) -> tuple[float, np.ndarray]:
            nonlocal passes, steepness
            if self.monitor.stopped() is not None or passes >= limit:
                raise _StoppedError
            passes += 1
            value, gradient = look(theta)
            gradient = gradient / scale
            way = gradient if bounds is None else theta - np.clip(theta - gradient, *bounds.T)
            steepness = np.abs(way).max()
            return value / scale, gradient

        def keep(theta: np.ndarray) -> None:
            nonlocal best, certificate, small
            best, certificate = theta.copy(), None
            reached = steepness <= small
            if reached or self.monitor.due():
                certificate = certify(best)
                report(self.monitor, passes, certificate.gap, certificate.primal, self.tol)
                if certificate.converged:
                    raise _StoppedError
                if reached:  # the gap falls with the square of the gradient
                    wanted = (self.tol / certificate.relative_gap) ** 0.5
                    small = steepness * np.clip(wanted, *_SMALLER)

        options = {"maxcor": _PAIRS, "maxiter": limit, "gtol": _LEAST, "ftol": 0.0, "maxls": 50}
        status = Status.STALLED
        try:
            while small >= _LEAST:  # again, where it has lost its way
                best = minimize(
                    objective,
                    best,
                    jac=True,
                    method="L-BFGS-B",
                    bounds=bounds,
                    callback=keep,
                    options=options,
                ).x
                certificate = certify(best)
                if certificate.converged:
                    break
                small *= _SMALLER[0]
        except _StoppedError:
            status = self.monitor.stopped() or Status.MAX_ITER
        certificate = certify(best) if certificate is None else certificate
        return best, passes, certificate.ended(status)
