"""A Gaussian process given its targets: variances and covariances at new points.

cov(x, z) = k(x, z) - (L^-1 k(x))' (L^-1 k(z)),   C = L L'
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import solve_triangular
from sklearn.utils.validation import _num_samples

from maxmargin.backends import cpu
from maxmargin.backends.threads import ALONE, Workers
from maxmargin.kernels import Kernel

_ROWS_AT_ONCE = 256  # of new points, whose values and solutions are held at a time


class Posterior:
    """Covariances of a process at points X, given those at its training points.

    Parameters
    ----------
    kernel : Kernel
        Resolved.
    points : the n training points
    L : float array (n, n)
        Lower triangle of the factorised covariance of the targets.
    X : validated data of q points

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.kernel_methods.posterior import Posterior
    >>> from maxmargin.kernels import Linear
    >>> x = np.array([[1.0]])
    >>> Posterior(Linear(), x, np.array([[2.0**0.5]]), x).variance()  # 1 - 1 / (1 + 1)
    array([0.5])
    """

    def __init__(
        self, kernel: Kernel, points: Any, L: np.ndarray, X: Any, workers: Workers = ALONE
    ) -> None:
        if kernel.pairwise:
            raise ValueError(
                f"{kernel!r} looks its values up in a matrix between new points and training "
                "points, and a variance needs k(x, x) and k(x, z) among new points: fit with the "
                "kernel itself, or a function."
            )
        self.kernel, self.L = kernel, L
        self.program = kernel.lower()
        self.right = cpu.Operand.prepare(self.program, points)
        self.left = cpu.Operand.prepare(self.program, X, like=self.right)
        self.workers = ALONE if self.program.calls_python else workers

    def _solved(self, rows: np.ndarray) -> np.ndarray:
        """``L^-1 k(x)`` at some of the points, (n, rows)."""
        values = np.empty((len(rows), self.right.n))
        cpu.kernel_rows(self.program, self.left, rows, self.right, values)
        values = cpu.finite(values, self.kernel)
        return solve_triangular(self.L, values.T, lower=True, check_finite=False)

    def variance(self) -> np.ndarray:
        """Variance of the process at each point; what rounding leaves below zero is zero."""

        def explained(rows: np.ndarray) -> np.ndarray:
            solved = self._solved(rows)
            return np.einsum("ij,ij->j", solved, solved)

        parts = self.workers.map(explained, self._parts())
        known = np.concatenate(parts) if parts else np.zeros(0)
        return np.maximum(cpu.kernel_diagonal(self.program, self.left) - known, 0.0)

    def covariance(self) -> np.ndarray:
        """Covariances of the process among all points, (q, q)."""
        solved = np.hstack(self.workers.map(self._solved, self._parts()))
        out = np.empty((self.left.n, self.left.n))
        cpu.kernel_square(self.program, self.left, None, out, self.workers)
        out -= solved.T @ solved
        return 0.5 * (out + out.T)

    def _parts(self) -> list[np.ndarray]:
        order = np.arange(self.left.n)
        return [order[k : k + _ROWS_AT_ONCE] for k in range(0, self.left.n, _ROWS_AT_ONCE)]


def prior(
    kernel: Kernel, X: Any, noise: Any, outputs: int, return_std: bool, return_cov: bool
) -> Any:
    """Mean of targets before any is known, and their deviation or covariance if that is wanted."""
    rows = _num_samples(kernel.checked(X)[0])

    def each(values: np.ndarray) -> np.ndarray:
        return values if outputs == 1 else np.repeat(values[..., None], outputs, axis=-1)

    mean = each(np.zeros(rows))
    if not return_std and not return_cov:
        return mean
    variance = kernel.diag(X) + noise
    if return_std:
        return mean, each(np.sqrt(variance))
    return mean, each(kernel(X) + np.diag(np.broadcast_to(noise, rows)))
