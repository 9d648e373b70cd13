"""Evaluating a machine: ``f(x) = sum_i coefficient_i k(x, x_i)`` over its support vectors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from maxmargin.backends import cpu
from maxmargin.backends.device import explaining_memory
from maxmargin.backends.program import Program
from maxmargin.backends.threads import ALONE, Workers, on_one_blas_thread
from maxmargin.kernels.base import Kernel

_COMPACTED = 1 << 16  # values from which a better form of the data pays


@on_one_blas_thread
def expand(
    kernel: Kernel,
    X: Any,
    support_vectors: Any,
    support: np.ndarray,
    coefficients: np.ndarray,
    counts: Sequence[int] | None = None,
    finish: Callable[[np.ndarray], np.ndarray] = lambda sums: sums[:, 0],
    workers: Workers = ALONE,
    device: str = "cpu",
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
    counts : sequence of int, optional
        Cuts the support vectors into stretches (the classes) that are summed apart.
    finish : callable, optional
        Turns these sums, (q, stretches, k) for some of the points, into their values; without it
        there is one stretch, and its sums are the values.
    workers : Workers
    device : str
        ``"cpu"``, or torch's name of a GPU.

    Returns
    -------
    values : float64 array (n, ...)

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.expansion import expand
    >>> from maxmargin.kernels import Linear
    >>> points, rows = np.array([[1.0], [2.0]]), np.array([0, 1])
    >>> expand(Linear(), np.array([[3.0]]), points, rows, np.array([[1.0, -1.0]]))
    array([[-3.]])
    """
    ends = np.cumsum([len(support)] if counts is None else counts)
    stretches = list(zip([0, *ends[:-1].tolist()], ends.tolist(), strict=True))
    if not len(support):
        n = X.shape[0] if hasattr(X, "shape") else len(X)
        return finish(np.zeros((n, len(stretches), len(coefficients))))
    program = kernel.lower()
    if device != "cpu":
        parts = _on_device(
            program, X, support_vectors, support, coefficients, stretches, finish, device
        )
        return cpu.finite(np.concatenate(parts), kernel)
    if kernel.pairwise:
        right = cpu.Operand.of_columns(program, support)
        left = cpu.Operand.prepare(program, X)
    else:
        right = cpu.Operand.prepare(program, support_vectors)
        left = cpu.Operand.prepare(program, X, like=right)
        right = right.compact() if left.n * right.n > _COMPACTED else right
    workers = ALONE if program.calls_python else workers
    parts = cpu.expand(program, left, right, coefficients, stretches, finish, workers)
    return cpu.finite(np.concatenate(parts), kernel)


def _on_device(
    program: Program,
    X: Any,
    support_vectors: Any,
    support: np.ndarray,
    coefficients: np.ndarray,
    stretches: list[tuple[int, int]],
    finish: Callable[[np.ndarray], np.ndarray],
    device: str,
) -> list[np.ndarray]:
    """Evaluate on a GPU, so many rows of X at a time as have room there."""
    from maxmargin.backends import cuda

    where = cuda.torch_device(device)
    with explaining_memory(), cuda.at_work(where):
        memory = cuda.budget(where, "auto")
        right = cuda.Expansion(program, support_vectors, support, where, memory)

        def values() -> list[np.ndarray]:
            step = right.rows_at_once(X, len(stretches) * len(coefficients))
            return [
                finish(right.at(X[start : start + step], coefficients, stretches))
                for start in range(0, X.shape[0], step)
            ]

        return cuda.patiently(values, right)
