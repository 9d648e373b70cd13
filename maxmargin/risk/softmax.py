"""The softmax loss of several classes at once.

    minimise  R(W) + sum_i c_i (log sum_k exp f_ik - f_{i, y_i}),      F = X W' + b

It is a :class:`~maxmargin.risk.base.Risk` with a value for every class. With probabilities ``p_i``
the slopes are ``s_ik = p_ik - [k = y_i]``, ``beta = -c s``, and the conjugates are

    V_i*(s_i) = sum_k p_ik log p_ik.

References: seed 004; Boehning, Annals of the Institute of Statistical Mathematics 44, 1992.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import xlogy

from maxmargin.backends.cpu.linear import Design
from maxmargin.backends.systems import solved
from maxmargin.backends.threads import StoppedError
from maxmargin.risk.base import ClassesRisk
from maxmargin.risk.penalty import L2, Penalty


class SoftmaxModel:
    """Softmax losses as quadratics at some values: slopes and probabilities of every class."""

    def __init__(self, risk: SoftmaxRisk, f: np.ndarray) -> None:
        self.design, self.cost = risk.design, risk.cost
        self.P = risk.probabilities(f)
        self.slope = self.cost[:, None] * (self.P - risk.truth)

    def matrix(self, stopped: Callable[[], Any] = lambda: None) -> np.ndarray:
        """Second derivatives by the weights, (K width, K width)."""
        P, K, width = self.P, self.P.shape[1], self.design.width
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

    def product(self, step: np.ndarray) -> np.ndarray:
        """The matrix times a step (K, width), without the matrix."""
        return self.design.combination(self._change(self.design.values(step)))

    def after(self, along: np.ndarray) -> np.ndarray:
        """Slopes, times the costs, where the values have changed by ``along`` (n, K)."""
        return self.slope + self._change(along)

    def _change(self, along: np.ndarray) -> np.ndarray:
        return self.cost[:, None] * tangent(self.P, along)


def tangent(P: np.ndarray, along: np.ndarray) -> np.ndarray:
    """Change of probabilities (n, K) whose values change by ``along``, to first order."""
    return P * (along - (P * along).sum(axis=1)[:, None])


class SoftmaxRisk(ClassesRisk):
    """Softmax losses of some rows plus the penalty; the intercepts have none.

    Parameters
    ----------
    design : Design
    index : int array (n,)
        Class of each row.
    n_classes : int
    cost : float array (n,)
    penalty : Penalty

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.backends.cpu.linear import Design
    >>> from maxmargin.risk import SoftmaxRisk
    >>> risk = SoftmaxRisk(Design(np.eye(3)), np.arange(3), 3, np.ones(3))
    >>> round(risk.primal(np.zeros((3, 4))), 4), round(risk.dual(np.zeros((3, 3))), 4) + 0.0
    (3.2958, 0.0)
    """

    max_curvature, bent = 0.5, True

    def __init__(
        self,
        design: Design,
        index: np.ndarray,
        n_classes: int,
        cost: np.ndarray,
        penalty: Penalty = L2,
    ) -> None:
        super().__init__(design, index, n_classes, cost, penalty, penalised_intercept=False)
        self.truth = np.equal.outer(np.arange(n_classes), index).T * 1.0  # laid out as values
        self._seen: tuple[np.ndarray, np.ndarray, float] | None = None

    @property
    def nothing(self) -> float:
        """Objective of zero weights."""
        return self.total_cost * float(np.log(self.n_classes))

    def with_cost(self, cost: np.ndarray) -> SoftmaxRisk:
        """Return the same problem with other costs."""
        return SoftmaxRisk(self.design, self.index, self.n_classes, cost, self.penalty)

    # -- primal --------------------------------------------------------------------------------

    def _at(self, f: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
        """Values, their probabilities and the sum of the losses; of the same values only once."""
        if self._seen is None or self._seen[0] is not f:
            F = f - f.max(axis=1)[:, None]
            own = F[np.arange(len(F)), self.index]
            P = np.exp(F, out=F)
            total = P.sum(axis=1)
            P /= total[:, None]
            self._seen = f, P, float(self.cost @ (np.log(total) - own))
        return self._seen

    def probabilities(self, f: np.ndarray) -> np.ndarray:
        """Probability of every class at values f, (n, K)."""
        return self._at(f)[1]

    def empirical(self, f: np.ndarray) -> float:
        """Sum of the losses at values f, each times its cost."""
        return self._at(f)[2]

    def slopes_at(self, f: np.ndarray) -> np.ndarray:
        """Slopes of the losses at values f, (n, K)."""
        return self.probabilities(f) - self.truth

    def model(self, f: np.ndarray) -> SoftmaxModel:
        """Quadratic model of the losses at values f."""
        return SoftmaxModel(self, f)

    def same_for_all(self, theta: np.ndarray) -> np.ndarray:
        """Return the weights without what all classes have in common and no penalty holds."""
        free, theta = self.penalised == 0, theta.copy()
        theta[:, free] -= theta[:, free].mean(axis=0)
        return theta

    # -- dual ----------------------------------------------------------------------------------

    def allowed(self, s: np.ndarray) -> np.ndarray:
        """Return slopes of probabilities, none of them negative and of sum one."""
        P = np.maximum(s + self.truth, 0.0)
        return P / P.sum(axis=1)[:, None] - self.truth

    def feasible(self, s: np.ndarray) -> np.ndarray:
        """Return slopes near these whose sum over the rows is zero, for intercepts.

        A Newton step in the intercepts, along the tangents of the probabilities, meets that to
        rounding. Where it makes one negative, the true classes themselves remain.
        """
        if not self.free_intercept:
            return s
        s = self.moved(s, solved(*self.balance(s)))
        return s if (s + self.truth >= 0).all() else np.zeros_like(s)

    def balance(self, s: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """How the sum of slopes over the rows changes with the intercepts, and what it is."""
        P = s + self.truth
        return np.diag(self.cost @ P) - P.T @ (self.cost[:, None] * P), self.cost @ s

    def moved(self, s: np.ndarray, step: np.ndarray) -> np.ndarray:
        """Slopes where all values have gone down by a step, to first order."""
        return s - tangent(s + self.truth, np.broadcast_to(step, s.shape))

    def bound(self, theta: np.ndarray, f: np.ndarray, s: np.ndarray) -> float:
        """Lower bound on all objectives, from slopes of an answer with values f."""
        if self.penalty.none:
            return self._free_bound(theta, f)
        s = self.feasible(s)
        combined = self.combined(s)
        left = float(np.linalg.norm(combined[:, self.penalised == 0]))  # of the condition
        return self.dual(s, combined) - left * float(np.linalg.norm(theta))

    def conjugates(self, s: np.ndarray, beta: np.ndarray) -> float:
        """``sum_i c_i sum_k p_ik log p_ik``."""
        P = s + self.truth
        return float(self.cost @ xlogy(P, P).sum(axis=1)) if (P >= 0).all() else np.inf
