"""The Cholesky factor of a small matrix, for compiled code that must not leave for LAPACK."""

from __future__ import annotations

import math

from maxmargin.backends.compiled import INNER, njit

_FAST = {"nnan", "nsz", "reassoc", "contract"}


@njit(fastmath=_FAST, **INNER)
def _dot(x, y, count):
    total = 0.0
    for i in range(count):
        total += x[i] * y[i]
    return total


@njit(**INNER)
def cholesky(A):
    """Replace the lower triangle of a matrix by its Cholesky factor; whether there is one."""
    for i in range(A.shape[0]):
        for j in range(i):
            A[i, j] = (A[i, j] - _dot(A[i], A[j], j)) / A[j, j]
        rest = A[i, i] - _dot(A[i], A[i], i)
        if not rest > 0.0:
            return False
        A[i, i] = math.sqrt(rest)
    return True


@njit(**INNER)
def substitute(factor, right):
    """Solve ``L L' x = right`` in place."""
    n = right.shape[0]
    for i in range(n):
        right[i] = (right[i] - _dot(factor[i], right, i)) / factor[i, i]
    for i in range(n - 1, -1, -1):
        right[i] /= factor[i, i]
        row = factor[i]
        for j in range(i):
            right[j] -= right[i] * row[j]
