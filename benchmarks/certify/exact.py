"""Linear algebra in long double, and convex programmes by Clarabel, for the truth."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp


def cholesky(A: np.ndarray) -> np.ndarray | None:
    """Return L with ``A = L L'`` in the precision of A; None if a pivot is not positive."""
    L = np.zeros_like(A)
    for j in range(len(A)):
        column = A[j:, j] - L[j:, :j] @ L[j, :j]
        if not column[0] > 0:
            return None
        L[j:, j] = column / np.sqrt(column[0])
    return L


def forward(L: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Solve ``L x = right``."""
    x = np.array(right, dtype=L.dtype)
    for j in range(len(L)):
        x[j] = (x[j] - L[j, :j] @ x[:j]) / L[j, j]
    return x


def backward(L: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Solve ``L' x = right``."""
    return forward(L[::-1, ::-1].T, np.asarray(right)[::-1])[::-1]


def solve(L: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Solve ``L L' x = right``."""
    return backward(L, forward(L, right))


def least_squares(A: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Least-squares solution for A of full column rank, by Gram and Schmidt, modified."""
    Q, n = np.column_stack([A, right]), A.shape[1]
    R = np.zeros((n, Q.shape[1]), dtype=A.dtype)
    for j in range(n):
        R[j, j] = np.sqrt(Q[:, j] @ Q[:, j])
        Q[:, j] /= R[j, j]
        R[j, j + 1 :] = Q[:, j] @ Q[:, j + 1 :]
        Q[:, j + 1 :] -= np.outer(Q[:, j], R[j, j + 1 :])
    return backward(R[:, :n].T.copy(), R[:, n:])


def factor(K: np.ndarray) -> np.ndarray:
    """Return F with ``F F'`` nearly K, a column for each eigenvalue that is not rounding."""
    values, vectors = np.linalg.eigh(K.astype(np.float64))
    good = values > 1e-14 * max(values[-1], 0.0)
    return vectors[:, good] * np.sqrt(values[good])


def programme(P: Any, q: np.ndarray, rows: list[tuple[str, Any, np.ndarray]]) -> np.ndarray | None:
    """Minimise ``1/2 x'Px + q'x``; returns x, or None without Clarabel or where it gives up.

    ``rows`` are (kind, A, b): "zero" for ``A x = b``, "nonnegative" for ``A x <= b``, and "cone"
    where ``b - A x`` is in a second-order cone. Whatever x is, its objective is an upper bound.
    """
    try:
        import clarabel
    except ImportError:
        return None
    kinds = {
        "zero": clarabel.ZeroConeT,
        "nonnegative": clarabel.NonnegativeConeT,
        "cone": clarabel.SecondOrderConeT,
    }
    settings = clarabel.DefaultSettings()
    settings.verbose, settings.max_iter, settings.max_threads = False, 200, 1
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-11
    A = sp.csc_matrix(sp.vstack([sp.csc_matrix(part) for _, part, _ in rows]))
    b = np.concatenate([right for _, _, right in rows]).astype(np.float64)
    cones = [kinds[kind](len(right)) for kind, _, right in rows]
    P = sp.triu(sp.csc_matrix(P), format="csc")
    x = np.array(clarabel.DefaultSolver(P, q, A, b, cones, settings).solve().x)
    return x if np.isfinite(x).all() else None
