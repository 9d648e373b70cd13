"""L-BFGS for smooth losses, by SciPy: a gradient for each pass, no second derivatives."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy.optimize import minimize

from maxmargin.progress import Monitor, ProblemMonitor
from maxmargin.risk import LinearSolution, RegularisedRisk
from maxmargin.solution import Status

_ROUNDS = 12  # of tightening, until the gap is small enough


class _StoppedError(Exception):
    pass


@dataclass(frozen=True)
class LBFGS:
    """Solver for a loss with a continuous slope, with the l2 penalty or none.

    Parameters
    ----------
    tol : float
        Relative duality gap to reach.
    max_iter : int
        Passes over the data allowed; -1 for no limit.
    monitor : ProblemMonitor
        Is told of the progress, and asked when to stop.
    """

    tol: float = 1e-4
    max_iter: int = -1
    monitor: ProblemMonitor = field(default_factory=lambda: ProblemMonitor(Monitor()))

    def solve(self, risk: RegularisedRisk, start: np.ndarray | None = None) -> LinearSolution:
        """Minimise a regularised risk from a start, or from zero."""
        theta = np.zeros(risk.design.width) if start is None else start
        limit = self.max_iter if self.max_iter >= 0 else 1 << 30
        scale = max(float(risk.cost.sum()), np.finfo(np.float64).tiny)
        state = {"theta": theta, "passes": 0}

        def objective(theta: np.ndarray) -> tuple[float, np.ndarray]:
            if self.monitor.stopped() is not None or state["passes"] >= limit:
                raise _StoppedError
            state["passes"] += 1
            f = risk.design.values(theta)
            u = risk.arguments(f)
            slope = risk.cost * risk.along_values(risk.loss.slope(u))
            gradient = risk.design.combination(slope) + risk.penalised * theta
            return risk.primal(theta, f) / scale, gradient / scale

        def keep(theta: np.ndarray) -> None:
            state["theta"] = theta.copy()

        wanted, status = 1e-3, None
        for _ in range(_ROUNDS):
            try:
                options = {"maxiter": limit, "gtol": wanted, "ftol": 0.0, "maxls": 50}
                found = minimize(
                    objective,
                    state["theta"],
                    jac=True,
                    method="L-BFGS-B",
                    callback=keep,
                    options=options,
                )
                state["theta"] = found.x
            except _StoppedError:
                status = self.monitor.stopped() or Status.MAX_ITER
            s = risk.loss.slope(risk.arguments(risk.design.values(state["theta"])))
            certificate = risk.certificate(state["theta"], s, Status.CONVERGED, self.tol)
            if certificate.converged:
                status = Status.CONVERGED
            if self.monitor.due():
                over = certificate.relative_gap
                self.monitor.report(state["passes"], over, self.tol, certificate.gap, s)
            if status is not None:
                break
            wanted *= 0.1
        return LinearSolution(state["theta"], s, state["passes"], status or Status.STALLED)
