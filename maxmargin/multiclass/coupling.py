"""Class probabilities from those of problems for two sides.

Reference: Wu, Lin and Weng, JMLR 5, 2004, their second method, which is for pairs; the same sum of
squares for sides of several classes is Zadrozny's (NIPS 14, 2001).
"""

from __future__ import annotations

import numpy as np

SMALLEST = 1e-7  # probability of a class or side: who says zero would have no logarithm


def couple(r: np.ndarray, code: np.ndarray) -> np.ndarray:
    """Class probabilities (n, K) from ``r[:, t] = P(positive side of task t | either side)``.

    With ``P_t`` and ``N_t`` the sums of p over the two sides, minimises

        sum_t ((1 - r_t) P_t - r_t N_t)^2

    with ``sum_k p_k = 1``, which is one linear system per row. Where the tasks leave more than one
    solution, the most even of them is taken. That of pairs is positive. Codes may leave classes
    less than nothing: they get the smallest probability, and the others what their shares are.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.multiclass.coupling import couple
    >>> couple(np.array([[0.9, 0.9, 0.5]]), np.array([[1, -1, 0], [1, 0, -1], [0, 1, -1]])).round(2)
    array([[0.82, 0.09, 0.09]])
    """
    n, n_classes = len(r), code.shape[1]
    Q = np.zeros((n_classes, n_classes, n))
    for codes, own in zip(code, r.T, strict=True):
        seen = np.flatnonzero(codes)
        terms = np.where(codes[seen, None] > 0, 1 - own, -own)
        Q[seen[:, None], seen] += terms[:, None] * terms
    system = np.zeros((n, n_classes + 1, n_classes + 1))
    system[:, :n_classes, :n_classes] = Q.transpose(2, 0, 1)
    system[:, :n_classes, -1] = system[:, -1, :n_classes] = 1.0
    right = np.zeros((n, n_classes + 1, 1))
    right[:, -1] = 1.0
    if np.linalg.matrix_rank(code) >= n_classes - 1:
        p = np.linalg.solve(system, right)
    else:
        p = np.linalg.pinv(system, hermitian=True) @ right
    p = np.clip(p[:, :n_classes, 0], SMALLEST, None)
    return p / p.sum(axis=1, keepdims=True)
