"""The softmax loss of several classes at once.

    minimise  R(W) + sum_i c_i (log sum_k exp f_ik - f_{i, y_i}),      F = X W' + b

With probabilities ``p_i`` and ``beta_ik = c_i ([k = y_i] - p_ik)``,

    D = -R*(X' beta) - sum_i c_i sum_k p_ik log p_ik,      sum_i beta_ik = 0 for every k

is a lower bound: the certificate. The last condition is that of intercepts without a penalty;
without any penalty it is ``X' beta = 0`` as well. :class:`maxmargin.solvers.Newton` and
:class:`maxmargin.solvers.LBFGS` solve it.

References: seed 004; Boehning, Annals of the Institute of Statistical Mathematics 44, 1992.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import xlogy

from maxmargin.backends.cpu.linear import Design
from maxmargin.backends.systems import DIRECT, solved, solved_by_products
from maxmargin.backends.threads import StoppedError
from maxmargin.certificate import ROUNDING, RiskCertificate
from maxmargin.risk import L2, Penalty
from maxmargin.solution import Status


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

    max_curvature = 0.5

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
    def total_cost(self) -> float:
        """Sum of the costs."""
        return float(self.cost.sum())

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

    def evaluate(self, W: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
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
                curvature = self.cost * P[:, j] * ((1.0 - P[:, k]) if j == k else P[:, k])
                block = self.design.gram(curvature)
                block = block if j == k else -block
                H[j, :, k, :] = block
                H[k, :, j, :] = block.T
        return H.reshape(K * width, K * width)

    def tangent(self, P: np.ndarray, V: np.ndarray) -> np.ndarray:
        """Change of the probabilities with weights that change by V (K, width), to first order."""
        F = self.values(V)
        return P * (F - (P * F).sum(axis=1)[:, None])

    def flat_step(
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
    ) -> RiskCertificate:
        """Recompute both objectives from the data, as an evaluation has ``seen`` them."""
        primal, _, P = self.evaluate(W) if seen is None else seen
        if self.penalty.none and primal <= np.finfo(np.float64).tiny:
            return RiskCertificate.unattained(max(primal, 0.0), status, tol)
        P, pulled, left = self.feasible(P)
        dual = self.dual(P, pulled) - left * float(np.linalg.norm(W))
        return RiskCertificate.of(primal, dual, self.rounding, status, tol)

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
            step = self.flat_step(P, pulled)
        else:
            matrix = np.diag(self.cost @ P) - P.T @ (self.cost[:, None] * P)
            step = np.zeros_like(pulled)
            step[:, -1] = -solved(matrix, pulled[:, -1]) / self.design.constant**2
        P = P + self.tangent(P, step)
        if (P < 0).any():
            return self.truth, np.zeros_like(pulled), 0.0
        pulled = self.combination(P - self.truth)
        return P, pulled, float(np.linalg.norm(pulled[:, free]))
