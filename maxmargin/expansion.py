"""Evaluating a machine: ``f(x) = sum_i coefficient_i k(x, x_i)`` over its support vectors."""

from __future__ import annotations

from typing import Any

import numpy as np

from maxmargin.backends import cpu
from maxmargin.backends.threads import on_one_blas_thread
from maxmargin.kernels.base import Kernel

_BLOCK_BYTES = 1 << 25


@on_one_blas_thread
def expand(
    kernel: Kernel, X: Any, support_vectors: Any, support: np.ndarray, coefficients: np.ndarray
) -> np.ndarray:
    """Values of kernel expansions at the rows of X, in memory that does not grow with them.

    Parameters
    ----------
    kernel : Kernel
        Resolved.
    X : validated data of n points; for a precomputed kernel the matrix (n, n_train)
    support_vectors : the m points of the expansion; not used by a precomputed kernel
    support : int array (m,)
        Their training rows: the columns of a precomputed matrix.
    coefficients : float array (k, m)
        One row per expansion.

    Returns
    -------
    values : float64 array (n, k)

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.expansion import expand
    >>> from maxmargin.kernels import Linear
    >>> points, rows = np.array([[1.0], [2.0]]), np.array([0, 1])
    >>> expand(Linear(), np.array([[3.0]]), points, rows, np.array([[1.0, -1.0]]))
    array([[-3.]])
    """
    if not len(support):
        return np.zeros((X.shape[0] if hasattr(X, "shape") else len(X), len(coefficients)))
    program = kernel.lower()
    if kernel.pairwise:
        right = cpu.Operand.of_columns(program, support)
        left = cpu.Operand.prepare(program, X)
    else:
        right = cpu.Operand.prepare(program, support_vectors)
        left = cpu.Operand.prepare(program, X, like=right)
    values = np.empty((left.n, len(coefficients)))
    step = max(_BLOCK_BYTES // (8 * right.n), 1)
    for start in range(0, left.n, step):
        rows = np.arange(start, min(start + step, left.n))
        block = np.empty((len(rows), right.n))
        cpu.kernel_rows(program, left, rows, right, block)
        values[rows] = cpu.finite(block, kernel) @ coefficients.T
    return values
