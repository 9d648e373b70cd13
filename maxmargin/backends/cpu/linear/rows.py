"""One row of a data matrix at a time, inside compiled loops.

``rows_of(X)`` is ``(X,)`` for a dense matrix and ``(values, columns, begin)`` for CSR, float32 or
float64. Loops that take either call :func:`dot` and :func:`add`, and Numba puts in what fits. Sums
are float64. Unsigned numbers index CSR: Numba need not ask whether they count from the end.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numba.extending import overload

from maxmargin.backends.compiled import njit

FAST = {"contract", "reassoc"}


def rows_of(X: Any) -> tuple[np.ndarray, ...]:
    """Return the arrays of a matrix, as the compiled loops take them."""
    return (X.data, X.indices, X.indptr) if sp.issparse(X) else (X,)


def dot(rows: tuple, i: int, w: np.ndarray) -> float:
    """``x_i . w``, in compiled code."""
    raise NotImplementedError


@overload(dot, jit_options={"fastmath": FAST})
def _dot(rows: Any, i: Any, w: Any) -> Any:
    def dense(rows: Any, i: Any, w: Any) -> Any:
        x = rows[0][i]
        total = 0.0
        for j in range(len(x)):
            total += x[j] * w[j]
        return total

    def csr(rows: Any, i: Any, w: Any) -> Any:
        values, columns, begin = rows
        total = 0.0
        for k in range(np.uint64(begin[i]), np.uint64(begin[i + 1])):
            total += values[k] * w[np.uint64(columns[k])]
        return total

    return dense if len(rows) == 1 else csr


def add(rows: tuple, i: int, amount: float, w: np.ndarray) -> None:
    """``w += amount x_i`` in place, in compiled code."""
    raise NotImplementedError


@overload(add, jit_options={"fastmath": FAST})
def _add(rows: Any, i: Any, amount: Any, w: Any) -> Any:
    def dense(rows: Any, i: Any, amount: Any, w: Any) -> None:
        x = rows[0][i]
        for j in range(len(x)):
            w[j] += amount * x[j]

    def csr(rows: Any, i: Any, amount: Any, w: Any) -> None:
        values, columns, begin = rows
        for k in range(np.uint64(begin[i]), np.uint64(begin[i + 1])):
            w[np.uint64(columns[k])] += amount * values[k]

    return dense if len(rows) == 1 else csr


@njit(cache=True, nogil=True)
def shuffle(rows, seed):
    """Put rows in random order (xorshift); changes both."""
    state = seed[0]
    for last in range(len(rows) - 1, 0, -1):
        state ^= state << np.uint64(13)
        state ^= state >> np.uint64(7)
        state ^= state << np.uint64(17)
        other = np.int64(state % np.uint64(last + 1))
        rows[last], rows[other] = rows[other], rows[last]
    seed[0] = state


@njit(cache=True, nogil=True)
def liveliest(order, moved, room):
    """Rows that have moved more than the average of them."""
    total, count = 0.0, 0
    for i in order:
        total += moved[i]
    for i in order:
        if moved[i] * len(order) >= total:
            room[count] = i
            count += 1
    return room[:count]
