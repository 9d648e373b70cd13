"""The softmax loss of several classes at once: Newton's method, or L-BFGS where that is too large.

    minimise  1/2 ||W||^2 + sum_i c_i (log sum_k exp f_ik - f_{i, y_i}),      F = X W' + b

With probabilities ``p_i`` and ``beta_ik = c_i ([k = y_i] - p_ik)``,

    D = -1/2 ||X' beta||^2 - sum_i c_i sum_k p_ik log p_ik,      sum_i beta_ik = 0 for every k

is a lower bound: the certificate. The last condition is that of intercepts without a penalty; they
are made optimal for the weights at hand before the bound is taken.

References: seed 004; Boehning, Annals of the Institute of Statistical Mathematics 44, 1992.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.optimize import minimize
from scipy.special import logsumexp, xlogy

from maxmargin.backends.cpu_linear import Design
from maxmargin.progress import Monitor, ProblemMonitor
from maxmargin.risk import GapCertificate
from maxmargin.solution import Status

_DIRECT = 400  # weights of all classes up to which Newton's matrix is made
_STEPS, _ROUNDS, _HALVINGS = 200, 12, 40


class _StoppedError(Exception):
    pass


class SoftmaxRisk:
    """Softmax losses of some rows plus the penalty.

    Parameters
    ----------
    design : Design
    index : int array (n,)
        Class of each row.
    n_classes : int
    cost : float array (n,)
    penalty : {"l2", None}
    """

    def __init__(
        self,
        design: Design,
        index: np.ndarray,
        n_classes: int,
        cost: np.ndarray,
        penalty: str | None = "l2",
    ) -> None:
        self.design, self.index, self.n_classes, self.cost = design, index, n_classes, cost
        self.penalised = np.full(design.width, 0.0 if penalty is None else 1.0)
        if design.constant:
            self.penalised[-1] = 0.0

    def values(self, W: np.ndarray) -> np.ndarray:
        """Values of every class, (n, K)."""
        return np.column_stack([self.design.values(w) for w in W])

    def look(self, W: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        """Objective, gradient and probabilities at weights (K, width)."""
        F = self.values(W)
        total = logsumexp(F, axis=1)
        rows = np.arange(len(F))
        value = float(self.cost @ (total - F[rows, self.index]))
        value += 0.5 * float((self.penalised * W**2).sum())
        P = np.exp(F - total[:, None])
        return value, self.gradient(P) + self.penalised * W, P

    def gradient(self, P: np.ndarray) -> np.ndarray:
        """Gradient of the losses, (K, width)."""
        R = P.copy()
        R[np.arange(len(R)), self.index] -= 1.0
        R *= self.cost[:, None]
        return np.array([self.design.combination(R[:, k]) for k in range(self.n_classes)])

    def hessian(self, P: np.ndarray) -> np.ndarray:
        """Matrix of second derivatives, (K width, K width)."""
        K, width = self.n_classes, self.design.width
        H, nothing = np.zeros((K, width, K, width)), np.zeros(self.design.n)
        for j in range(K):
            for k in range(j + 1):
                bend = self.cost * P[:, j] * ((1.0 - P[:, k]) if j == k else P[:, k])
                block = self.design.derivatives(nothing, bend)[1]
                block = block if j == k else -block
                H[j, :, k, :] = block
                H[k, :, j, :] = block.T
        return H.reshape(K * width, K * width)

    def certificate(self, W: np.ndarray, status: Status, tol: float) -> GapCertificate:
        """Recompute both objectives from the data."""
        W = self.with_best_intercepts(W)
        primal, _, P = self.look(W)
        pulled = -self.gradient(P)
        dual = -0.5 * float((self.penalised * pulled**2).sum())
        dual -= float(self.cost @ xlogy(P, P).sum(axis=1))
        gap = max(primal - dual, 0.0)
        relative = gap / max(abs(primal), abs(dual), np.finfo(np.float64).tiny)
        if relative <= tol:
            status = Status.CONVERGED
        elif status is Status.CONVERGED:
            status = Status.STALLED
        return GapCertificate(primal, dual, gap, relative, status, tol)

    def with_best_intercepts(self, W: np.ndarray) -> np.ndarray:
        """Return the weights with the intercepts that are best for them."""
        if not self.design.constant:
            return W
        W, F = W.copy(), self.values(W)
        for _ in range(20):
            P = np.exp(F - logsumexp(F, axis=1)[:, None])
            R = P.copy()
            R[np.arange(len(R)), self.index] -= 1.0
            slope = self.cost @ R
            if np.abs(slope).max() <= 1e-13 * self.cost.sum():
                break
            H = np.diag(self.cost @ P) - P.T @ (self.cost[:, None] * P)
            step = -np.linalg.lstsq(H, slope, rcond=1e-14)[0]
            W[:, -1] += step / self.design.constant
            F = F + step
        return W


@dataclass(frozen=True)
class Softmax:
    """Solver for the softmax loss.

    Parameters
    ----------
    method : {"auto", "newton", "lbfgs"}
    tol : float
        Relative duality gap to reach.
    max_iter : int
        Passes over the data allowed; -1 for no limit.
    monitor : ProblemMonitor
    """

    method: str = "auto"
    tol: float = 1e-4
    max_iter: int = -1
    monitor: ProblemMonitor = field(default_factory=lambda: ProblemMonitor(Monitor()))

    def solve(
        self, risk: SoftmaxRisk, start: np.ndarray | None = None
    ) -> tuple[np.ndarray, int, GapCertificate]:
        """Weights (K, width), passes taken, and the certificate."""
        W = np.zeros((risk.n_classes, risk.design.width)) if start is None else start.copy()
        direct = W.size <= _DIRECT if self.method == "auto" else self.method == "newton"
        limit = self.max_iter if self.max_iter >= 0 else 1 << 30
        W, passes, status = (self._newton if direct else self._lbfgs)(risk, W, limit)
        W = risk.with_best_intercepts(W)
        return W, passes, risk.certificate(W, status, self.tol)

    def _newton(self, risk: SoftmaxRisk, W: np.ndarray, limit: int) -> tuple:
        value, gradient, P = risk.look(W)
        for passes in range(1, _STEPS):
            stop = self.monitor.stopped() or (Status.MAX_ITER if passes > limit else None)
            certificate = risk.certificate(W, Status.CONVERGED, self.tol)
            if certificate.converged or stop is not None:
                return W, passes - 1, stop or Status.CONVERGED
            H = risk.hessian(P) + np.diag(np.tile(risk.penalised, risk.n_classes))
            ridge = 1e-10 * max(float(np.trace(H)) / len(H), 1e-300)
            H[np.diag_indices_from(H)] += ridge  # intercepts that all grow alike change nothing
            try:
                step = -cho_solve(cho_factor(H), gradient.ravel()).reshape(W.shape)
            except LinAlgError:
                break
            promise, length = -float((gradient * step).sum()), 1.0
            for _ in range(_HALVINGS):
                reached = risk.look(W + length * step)
                if reached[0] <= value - 1e-4 * length * promise:
                    break
                length *= 0.5
            W = W + length * step
            value, gradient, P = reached
            if self.monitor.due():
                over = certificate.relative_gap
                self.monitor.report(passes, over, self.tol, certificate.gap, P[:, 0])
        return W, _STEPS, Status.STALLED

    def _lbfgs(self, risk: SoftmaxRisk, W: np.ndarray, limit: int) -> tuple:
        scale = max(float(risk.cost.sum()), np.finfo(np.float64).tiny)
        state = {"W": W, "passes": 0}

        def objective(flat: np.ndarray) -> tuple[float, np.ndarray]:
            if self.monitor.stopped() is not None or state["passes"] >= limit:
                raise _StoppedError
            state["passes"] += 1
            value, gradient, _ = risk.look(flat.reshape(W.shape))
            return value / scale, gradient.ravel() / scale

        def keep(flat: np.ndarray) -> None:
            state["W"] = flat.reshape(W.shape).copy()

        wanted = 1e-3
        for _ in range(_ROUNDS):
            try:
                options = {"maxiter": 1 << 30, "gtol": wanted, "ftol": 0.0, "maxls": 50}
                found = minimize(
                    objective,
                    state["W"].ravel(),
                    jac=True,
                    method="L-BFGS-B",
                    callback=keep,
                    options=options,
                )
                keep(found.x)
            except _StoppedError:
                status = self.monitor.stopped() or Status.MAX_ITER
                return state["W"], state["passes"], status
            if risk.certificate(state["W"], Status.CONVERGED, self.tol).converged:
                return state["W"], state["passes"], Status.CONVERGED
            wanted *= 0.1
        return state["W"], state["passes"], Status.STALLED
