"""The softmax loss of several classes at once: Newton's method, or L-BFGS where that is too large.

    minimise  R(W) + sum_i c_i (log sum_k exp f_ik - f_{i, y_i}),      F = X W' + b

With probabilities ``p_i`` and ``beta_ik = c_i ([k = y_i] - p_ik)``,

    D = -R*(X' beta) - sum_i c_i sum_k p_ik log p_ik,      sum_i beta_ik = 0 for every k

is a lower bound: the certificate. The last condition is that of intercepts without a penalty;
without any penalty it is ``X' beta = 0`` as well. With an l1 penalty Newton's model is minimised by
coordinates (:mod:`maxmargin.solvers.risk.l1_descent`), and L-BFGS has the positive and the negative
part of every weight for its variables, neither below zero.

References: seed 004; Boehning, Annals of the Institute of Statistical Mathematics 44, 1992; Byrd,
Lu, Nocedal and Zhu, SIAM J. Scientific Computing 16, 1995 (L-BFGS-B).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.special import xlogy

from maxmargin.backends.cpu.linear import Design
from maxmargin.backends.systems import DIRECT, solved, solved_by_products
from maxmargin.backends.threads import StoppedError
from maxmargin.progress import ProblemMonitor
from maxmargin.risk import L2, ROUNDING, GapCertificate, Penalty
from maxmargin.solution import Status
from maxmargin.solvers.risk.l1_descent import model_step
from maxmargin.solvers.risk.lbfgs import LBFGS
from maxmargin.solvers.risk.risk_solver import report

_NEWTON = 400  # weights of all classes up to which Newton's matrix is made
_STEPS = 200
_ROUNDINGS, _UNSEEN = 8, 5  # of a value, and steps in a row that promise less than these
_LENGTHS = 0.5 ** np.arange(40)  # of a step, until one lowers the objective


class SoftmaxRisk:
    """Softmax losses of some rows plus the penalty.

    Parameters
    ----------
    design : Design
    index : int array (n,)
        Class of each row.
    n_classes : int
    cost : float array (n,)
    penalty : Penalty
    """

    bend = 0.5  # the largest curvature

    def __init__(
        self,
        design: Design,
        index: np.ndarray,
        n_classes: int,
        cost: np.ndarray,
        penalty: Penalty = L2,
    ) -> None:
        self.design, self.index, self.n_classes, self.cost = design, index, n_classes, cost
        self.penalty = penalty
        self.penalised = np.full(design.width, 0.0 if penalty.none else 1.0)
        if design.constant:
            self.penalised[-1] = 0.0
        self.truth = np.equal.outer(np.arange(n_classes), index).T * 1.0  # laid out as values
        loss = 0.0 if penalty.none else float(cost.sum()) * np.log(n_classes)
        self.rounding = max(ROUNDING * loss, np.finfo(np.float64).tiny)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the weights."""
        return (self.n_classes, self.design.width)

    def times(self, factor: float) -> SoftmaxRisk:
        """Return the problem at costs so many times as large."""
        return SoftmaxRisk(
            self.design, self.index, self.n_classes, factor * self.cost, self.penalty
        )

    def take(self, rows: np.ndarray) -> SoftmaxRisk:
        """Return the problem of some of the rows."""
        return SoftmaxRisk(
            self.design.take(rows),
            self.index[rows],
            self.n_classes,
            self.cost[rows],
            self.penalty,
        )

    def values(self, W: np.ndarray) -> np.ndarray:
        """Values of every class, (n, K)."""
        return self.design.values(W)

    def look(self, W: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        """Objective, gradient of what is smooth of it, and probabilities at weights (K, width)."""
        F = self.values(W)
        F -= F.max(axis=1)[:, None]
        own = F[np.arange(len(F)), self.index]
        P = np.exp(F, out=F)
        total = P.sum(axis=1)
        held = self.penalised * W
        value = float(self.cost @ (np.log(total) - own)) + self.penalty.value(held)
        P /= total[:, None]
        return value, self.combination(P - self.truth) + self.penalty.l2 * held, P

    def combination(self, R: np.ndarray) -> np.ndarray:
        """Sum of the rows, each with its cost and a factor for every class: (K, width)."""
        return self.design.combination(self.cost[:, None] * R)

    def hessian(self, P: np.ndarray, stopped: Callable[[], Any] = lambda: None) -> np.ndarray:
        """Matrix of second derivatives, (K width, K width); asks before every block of it."""
        K, width = self.n_classes, self.design.width
        H = np.zeros((K, width, K, width))
        for j in range(K):
            for k in range(j + 1):
                if stopped():
                    raise StoppedError
                bend = self.cost * P[:, j] * ((1.0 - P[:, k]) if j == k else P[:, k])
                block = self.design.gram(bend)
                block = block if j == k else -block
                H[j, :, k, :] = block
                H[k, :, j, :] = block.T
        return H.reshape(K * width, K * width)

    def tangent(self, P: np.ndarray, V: np.ndarray) -> np.ndarray:
        """Change of the probabilities with weights that change by V (K, width), to first order."""
        F = self.values(V)
        return P * (F - (P * F).sum(axis=1)[:, None])

    def newton_step(
        self,
        W: np.ndarray,
        P: np.ndarray,
        gradient: np.ndarray,
        stopped: Callable[[], Any] = lambda: None,
    ) -> np.ndarray:
        """Step (K, width) of Newton's method from weights and their probabilities.

        Raises ``StoppedError`` where someone wants it stopped meanwhile.
        """
        if not self.penalty.l1:
            return self._flat_step(P, gradient, stopped)
        pulled = gradient - self.penalty.l2 * self.penalised * W
        penalised, H = np.tile(self.penalised, self.n_classes), self.hessian(P, stopped)
        step = model_step(H, pulled.ravel(), W.ravel(), penalised, self.penalty)
        return step.reshape(W.shape)

    def _flat_step(
        self, P: np.ndarray, gradient: np.ndarray, stopped: Callable[[], Any] = lambda: None
    ) -> np.ndarray:
        """Step that makes a gradient zero, to first order."""
        ridge = np.tile(self.penalty.l2 * self.penalised, self.n_classes)
        if gradient.size <= DIRECT:
            step = solved(self.hessian(P, stopped) + np.diag(ridge), gradient.ravel())
        else:

            def product(v: np.ndarray) -> np.ndarray:
                change = self.tangent(P, v.reshape(gradient.shape))
                return self.combination(change).ravel() + ridge * v

            step = solved_by_products(product, gradient.ravel())
        return -step.reshape(gradient.shape)

    def certificate(
        self, W: np.ndarray, status: Status, tol: float, seen: tuple | None = None
    ) -> GapCertificate:
        """Recompute both objectives from the data, as a look at these weights has ``seen`` them."""
        primal, _, P = self.look(W) if seen is None else seen
        if self.penalty.none and primal <= np.finfo(np.float64).tiny:
            return GapCertificate.unattained(max(primal, 0.0), status, tol)
        P, pulled, left = self.feasible(P)
        dual = self.dual(P, pulled) - left * float(np.linalg.norm(W))
        return GapCertificate.of(primal, dual, self.rounding, status, tol)

    def dual(self, P: np.ndarray, pulled: np.ndarray) -> float:
        """``D`` at probabilities, or at some between these and the truth where that is more.

        ``pulled`` is the sum of the rows, each times what its probabilities are off.
        """
        held = self.penalised * pulled
        excess = self.penalty.excess(held)
        dual = -self.penalty.conjugate(held) - self._entropy(P)
        if excess > 1:
            dual = max(dual, -self._entropy(self.truth + (P - self.truth) / excess))
        return dual

    def _entropy(self, P: np.ndarray) -> float:
        """``sum_i c_i sum_k p_ik log p_ik``."""
        return float(self.cost @ xlogy(P, P).sum(axis=1))

    def feasible(self, P: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
        """Return probabilities near these that meet the condition, and what is left of it.

        Between the two comes the sum of the rows, each times what its probabilities are off. A
        Newton step in the weights without a penalty, along the tangents of the probabilities,
        meets it to rounding. Where it makes one negative, the true classes themselves remain.
        """
        free, pulled = self.penalised == 0, self.combination(P - self.truth)
        if not free.any():
            return P, pulled, 0.0
        if free.all():
            step = self._flat_step(P, pulled)
        else:
            matrix = np.diag(self.cost @ P) - P.T @ (self.cost[:, None] * P)
            step = np.zeros_like(pulled)
            step[:, -1] = -solved(matrix, pulled[:, -1]) / self.design.constant**2
        P = P + self.tangent(P, step)
        if (P < 0).any():
            return self.truth, np.zeros_like(pulled), 0.0
        pulled = self.combination(P - self.truth)
        return P, pulled, float(np.linalg.norm(pulled[:, free]))


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
    monitor: ProblemMonitor = field(default_factory=ProblemMonitor)

    def method_for(self, risk: SoftmaxRisk) -> str:
        """Name of the method: the one that was asked for, or by the number of weights."""
        if self.method != "auto":
            return self.method
        return "newton" if np.prod(risk.shape) <= _NEWTON else "lbfgs"

    def solve(
        self, risk: SoftmaxRisk, start: np.ndarray | None = None
    ) -> tuple[np.ndarray, int, GapCertificate]:
        """Weights (K, width), passes taken, and the certificate."""
        W = np.zeros(risk.shape) if start is None else start.copy()
        descend = self._newton if self.method_for(risk) == "newton" else self._lbfgs
        W, passes, certificate = descend(risk, W)
        free = risk.penalised == 0
        W[:, free] -= W[:, free].mean(axis=0)  # what all classes have in common changes nothing
        return W, passes, certificate

    def _newton(self, risk: SoftmaxRisk, W: np.ndarray) -> tuple[np.ndarray, int, GapCertificate]:
        limit = self.max_iter if self.max_iter >= 0 else _STEPS
        passes, bound, unseen, seen = 0, 0.0, 0, risk.look(W)
        while True:
            value, gradient, P = seen
            status = self.monitor.stopped()
            if status is not None:  # who has stopped it does not want to wait for a better bound
                judged = GapCertificate.of(value, bound, risk.rounding, status, self.tol)
                return W, passes, judged
            certificate = risk.certificate(W, Status.CONVERGED, self.tol, seen)
            bound = max(bound, certificate.dual)
            report(self.monitor, passes, certificate.gap, certificate.primal, self.tol)
            if certificate.converged and passes:
                return W, passes, certificate
            if passes >= limit:
                return W, passes, certificate.ended(Status.MAX_ITER)
            passes += 1
            try:
                step = risk.newton_step(W, P, gradient, self.monitor.stopped)
            except StoppedError:
                continue
            l1 = risk.penalty.l1 * risk.penalised
            promise = -float((gradient * step + l1 * (np.abs(W + step) - np.abs(W))).sum())
            # what a value is off by rounding must not shorten steps: the bound still gets better
            slack = _ROUNDINGS * np.finfo(np.float64).eps * abs(value)
            unseen = unseen + 1 if promise <= slack else 0
            for length in _LENGTHS if unseen <= _UNSEEN else ():
                seen = risk.look(W + length * step)
                if seen[0] <= value - 1e-4 * length * promise + slack:
                    break
            else:
                return W, passes, certificate.ended(Status.STALLED)
            W = W + length * step

    def _lbfgs(self, risk: SoftmaxRisk, W: np.ndarray) -> tuple[np.ndarray, int, GapCertificate]:
        known: tuple[np.ndarray, tuple] | None = None  # the last look, and where

        def look(flat: np.ndarray) -> tuple[float, np.ndarray]:
            nonlocal known
            seen = risk.look(flat.reshape(W.shape))
            known = flat.copy(), seen
            return seen[0], seen[1].ravel()

        def certify(flat: np.ndarray) -> GapCertificate:
            seen = known[1] if known is not None and np.array_equal(known[0], flat) else None
            return risk.certificate(flat.reshape(W.shape), Status.CONVERGED, self.tol, seen)

        solver = LBFGS(self.tol, self.max_iter, self.monitor)
        scale = float(risk.cost.sum())
        if not risk.penalty.l1:
            flat, passes, certificate = solver.minimised(look, certify, W.ravel(), scale)
            return flat.reshape(W.shape), passes, certificate
        l1 = np.tile(risk.penalty.l1 * risk.penalised, len(W))

        def joined(parts: np.ndarray) -> np.ndarray:
            return parts[: W.size] - parts[W.size :]

        def look_at_parts(parts: np.ndarray) -> tuple[float, np.ndarray]:
            flat = joined(parts)
            value, gradient = look(flat)
            value += float(l1 @ (parts[: W.size] + parts[W.size :] - np.abs(flat)))
            return value, np.concatenate([l1 + gradient, l1 - gradient])

        held, start = l1 > 0, W.ravel()
        bounds = np.array(
            [
                np.concatenate([np.where(held, 0.0, -np.inf), np.zeros(W.size)]),
                np.concatenate([np.full(W.size, np.inf), np.where(held, np.inf, 0.0)]),
            ]
        ).T
        parts = np.concatenate(
            [np.where(held, np.maximum(start, 0.0), start), np.maximum(-start, 0.0) * held]
        )
        parts, passes, certificate = solver.minimised(
            look_at_parts, lambda parts: certify(joined(parts)), parts, scale, bounds
        )
        return joined(parts).reshape(W.shape), passes, certificate
