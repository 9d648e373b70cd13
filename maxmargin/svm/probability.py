"""Probabilities from margins: Platt's sigmoid for a pair, pairwise coupling for several classes.

References: Platt, 1999; Lin, Lin and Weng, Machine Learning 68, 2007 (the sigmoid's fit); Wu, Lin
and Weng, JMLR 5, 2004 (the coupling, their second method).
"""

from __future__ import annotations

import numpy as np
from scipy.special import expit, log_expit

_SMALLEST = 1e-7


def platt(decision: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """Fit ``P(y = +1 | f) = 1 / (1 + exp(A f + B))`` by maximum likelihood; returns A and B.

    The targets are Platt's, shrunk from 0 and 1 by one virtual example of each class, so that the
    optimum is finite. Newton's method with backtracking.

    Examples
    --------
    >>> import numpy as np
    >>> A, B = platt(np.array([-2.0, -1.0, 1.0, 2.0]), np.array([-1.0, -1.0, 1.0, 1.0]))
    >>> A < 0
    True
    """
    positives, negatives = np.count_nonzero(y > 0), np.count_nonzero(y <= 0)
    target = np.where(y > 0, (positives + 1) / (positives + 2), 1 / (negatives + 2))
    A, B = 0.0, np.log((negatives + 1) / (positives + 1))
    loss = _loss(decision, target, A, B)
    for _ in range(100):
        p = expit(-(A * decision + B))
        weight = p * (1 - p)
        slope = target - p
        gradient = np.array([decision @ slope, slope.sum()])
        if np.abs(gradient).max() < 1e-5:
            break
        cross = decision @ weight
        hessian = np.array([[decision @ (weight * decision), cross], [cross, weight.sum()]])
        direction = -np.linalg.solve(hessian + 1e-12 * np.eye(2), gradient)
        step = 1.0
        while step >= 1e-10:
            new = _loss(decision, target, A + step * direction[0], B + step * direction[1])
            if new < loss + 1e-4 * step * (gradient @ direction):
                A, B, loss = A + step * direction[0], B + step * direction[1], new
                break
            step /= 2
        else:
            break
    return float(A), float(B)


def _loss(decision: np.ndarray, target: np.ndarray, A: float, B: float) -> float:
    z = A * decision + B
    return float(-(target @ log_expit(-z) + (1 - target) @ log_expit(z)))


def sigmoid(decision: np.ndarray, A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Probability that each pair's value speaks for its positive class, away from 0 and 1."""
    return np.clip(expit(-(A * decision + B)), _SMALLEST, 1 - _SMALLEST)


def couple(r: np.ndarray, pairs: list[tuple[int, int]], n_classes: int) -> np.ndarray:
    """Class probabilities (n, K) from pairwise ones ``r[:, k] = P(first | first or second)``.

    Minimises ``sum_i sum_{j != i} (r_ji p_i - r_ij p_j)^2`` over the probability simplex; its
    solution is one linear system per row.

    Examples
    --------
    >>> import numpy as np
    >>> couple(np.array([[0.9, 0.9, 0.5]]), [(0, 1), (0, 2), (1, 2)], 3).round(2)
    array([[0.82, 0.09, 0.09]])
    """
    n = len(r)
    R = np.zeros((n, n_classes, n_classes))
    for k, (first, second) in enumerate(pairs):
        R[:, first, second] = r[:, k]
        R[:, second, first] = 1 - r[:, k]
    system = np.zeros((n, n_classes + 1, n_classes + 1))
    Q = -R.swapaxes(1, 2) * R
    diagonal = np.arange(n_classes)
    Q[:, diagonal, diagonal] = (R**2).sum(axis=1)
    system[:, :n_classes, :n_classes] = Q
    system[:, :n_classes, -1] = system[:, -1, :n_classes] = 1.0
    right = np.zeros((n, n_classes + 1, 1))
    right[:, -1] = 1.0
    p = np.clip(np.linalg.solve(system, right)[:, :n_classes, 0], 0.0, None)
    return p / p.sum(axis=1, keepdims=True)
