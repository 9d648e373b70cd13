"""Probabilities from margins: Platt's sigmoid for a machine; its scheme puts several together.

References: Platt, 1999; Lin, Lin and Weng, Machine Learning 68, 2007 (the sigmoid's fit).
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
    """Probability that each machine's value speaks for its positive side, away from 0 and 1."""
    return np.clip(expit(-(A * decision + B)), _SMALLEST, 1 - _SMALLEST)
