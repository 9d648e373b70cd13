"""The likelihood of classes given values: the logistic loss of two, the softmax of several.

With probabilities p of the values f and the true class t (one for it, zero for the others)

    V(f) = -log p_t,        -V'(f) = t - p = r,        V*(-r) = sum_k p_k log p_k

and second derivatives ``p (1 - p)`` for two classes, which have one value, and ``diag(p) - p p'``
for several. In roots, which is what Newton's system is made of, both are ``G G'`` with

    G = diag(d)^(1/2) Q,    d = c p (1 - p),  Q = I,      or    d = c p,  Q = I - q q',  q = sqrt(p)

where Q is a projection, since q has length one. What is small, the probability of the wrong
classes, is computed as such: one minus the other would have no digits of it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit, xlog1py, xlogy


@dataclass(frozen=True)
class Curvature:
    """Second derivatives ``W_i = G_i G_i'`` of the losses of all rows.

    Parameters
    ----------
    root : float array (n, m)
        Roots of d.
    q : float array (n, m) or None
        Directions that Q takes out of each row.
    """

    root: np.ndarray
    q: np.ndarray | None = None

    def project(self, V: np.ndarray) -> np.ndarray:
        """``Q V``, row by row."""
        return V if self.q is None else V - self.q * np.einsum("ij,ij->i", self.q, V)[:, None]

    def up(self, u: np.ndarray) -> np.ndarray:
        """``G u``."""
        return self.root * self.project(u)

    def down(self, V: np.ndarray) -> np.ndarray:
        """``G' V``."""
        return self.project(self.root * V)

    def total(self) -> np.ndarray:
        """Sum of ``W_i`` over the rows, (m, m)."""
        d = self.root**2
        if self.q is None:
            return np.diag(d.sum(axis=0))
        return np.diag(d.sum(axis=0)) - d.T @ self.q**2


@dataclass(frozen=True)
class Likelihood:
    """Losses of all rows, as functions of their values F (n, m).

    Parameters
    ----------
    label : int array (n,)
        Class of each row.
    n_classes : int
        Two have one value, m = 1, positive for the second class; several have one each.
    cost : float array (n,)
        What a row's loss is multiplied by.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.solvers.logistic.likelihood import Likelihood
    >>> two = Likelihood(np.array([0, 1]), 2, np.ones(2))
    >>> two.beta(np.array([[0.0], [0.0]]))
    array([[-0.5],
           [ 0.5]])
    >>> several = Likelihood(np.array([0, 1]), 3, np.ones(2))
    >>> several.beta(np.zeros((2, 3))).sum(axis=1)
    array([0., 0.])
    """

    label: np.ndarray
    n_classes: int
    cost: np.ndarray

    @property
    def m(self) -> int:
        """Values of a row."""
        return 1 if self.n_classes == 2 else self.n_classes

    def loss(self, F: np.ndarray) -> float:
        """Sum of the losses, each times its cost."""
        if self.m == 1:
            return float(self.cost @ np.logaddexp(0.0, -self._sign * F[:, 0]))
        own = F - F[self._rows, self.label][:, None]
        top = own.max(axis=1)  # zero where the row is right
        others = np.exp(own - top[:, None])
        others[self._rows, self.label] = 0.0
        right = np.exp(-top)
        tail = np.log1p(others.sum(axis=1) - (1.0 - right))
        return float(self.cost @ (top + tail))

    def beta(self, F: np.ndarray) -> np.ndarray:
        """``c (t - p)``: minus the slopes, and at the optimum the coefficients, (n, m)."""
        return self.cost[:, None] * self._residual(F)

    def curvature(self, F: np.ndarray) -> Curvature:
        """Second derivatives of the losses, in roots."""
        if self.m == 1:
            p = expit(F)
            return Curvature(np.sqrt(self.cost[:, None] * p * expit(-F)))
        P = _softmax(F)
        q = np.sqrt(P)
        return Curvature(np.sqrt(self.cost)[:, None] * q, q)

    def conjugates(self, beta: np.ndarray) -> float:
        """``sum_i c_i V*(-beta_i / c_i)``; infinite where these are no probabilities."""
        r = beta / self.cost[:, None]
        if self.m == 1:
            wrong = others = self._sign * r[:, 0]
            entropy = xlogy(np.maximum(others, 0.0), np.maximum(others, 0.0))
        else:
            wrong, P = r[self._rows, self.label], -r
            P[self._rows, self.label] = 0.0
            others = P.min(axis=1)
            entropy = xlogy(np.maximum(P, 0.0), np.maximum(P, 0.0)).sum(axis=1)
        if (others < 0).any() or (wrong > 1).any():
            return np.inf
        return float(self.cost @ (entropy + xlog1py(1.0 - wrong, -wrong)))

    @property
    def _rows(self) -> np.ndarray:
        return np.arange(len(self.label))

    @property
    def _sign(self) -> np.ndarray:
        return 2.0 * self.label - 1.0

    def _residual(self, F: np.ndarray) -> np.ndarray:
        if self.m == 1:
            sign = self._sign[:, None]
            return sign * expit(-sign * F)
        r = -_softmax(F)
        r[self._rows, self.label] = 0.0
        r[self._rows, self.label] = -r.sum(axis=1)
        return r


def _softmax(F: np.ndarray) -> np.ndarray:
    P = np.exp(F - F.max(axis=1, keepdims=True))
    return P / P.sum(axis=1, keepdims=True)
