"""Kernel matrices of low rank: their factor by pivoted Cholesky, and systems with it.

A polynomial kernel of degree p on d features has rank ``(d + p choose p)`` at most, and a smooth
kernel on few features has nearly so: 15 to 400, however many the rows are. Such a matrix is
``L L'`` but for rounding. It is singular, and steps of two crawl; with L the problems are small.

References: Fine and Scheinberg, JMLR 2, 2001 (interior points of low rank); Higham, Accuracy and
Stability of Numerical Algorithms, 2002, chapter 10.3 (pivoted Cholesky); Cox and Higham, in
Numerical Analysis 1997, 1998 (least squares where the weights of rows differ by far).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg.lapack import dgeqp3, dormqr

_BLOCK = 64  # columns of work for each that LAPACK reflects


class LowRank:
    """The matrix ``L L' + diag(rest)``, of few columns L (m, r).

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.backends.low_rank import LowRank
    >>> H = LowRank(np.array([[1.0], [2.0]]), rest=np.array([0.0, 1.0]))
    >>> H @ np.array([1.0, 1.0]), H.diagonal()
    (array([3., 7.]), array([1., 5.]))
    """

    def __init__(self, L: np.ndarray, rest: np.ndarray) -> None:
        self.L, self.rest = L, rest

    def __matmul__(self, x: np.ndarray) -> np.ndarray:
        return self.L @ (self.L.T @ x) + self.rest * x

    def diagonal(self) -> np.ndarray:
        """Diagonal of the matrix."""
        return np.einsum("ij,ij->i", self.L, self.L) + self.rest

    def factorised(self, diagonal: np.ndarray) -> Callable[[np.ndarray], np.ndarray] | None:
        """Return what solves with this matrix and a positive diagonal added, several columns.

        With d the whole diagonal, ``x = (b - L u) / d``, where u is the solution of

            minimise  |u|^2 + |d^(-1/2) (L u - b)|^2,

        so x is a residual of least squares. Rows of free variables weigh 1e10 times those at a
        wall, and the normal equations (the Woodbury formula) lose every digit. Householder's
        reflections, heaviest rows first and columns exchanged, keep those of each row.
        """
        m, r = self.L.shape
        weight = (diagonal + self.rest) ** -0.5
        A = np.concatenate([weight[:, None] * self.L, np.eye(r)])
        order = np.argsort(-np.abs(A).max(axis=1), kind="stable")
        reflected, _, tau, _, failed = dgeqp3(np.asfortranarray(A[order]), overwrite_a=True)
        if failed or not np.isfinite(tau).all():
            return None

        def solve(right: np.ndarray) -> np.ndarray:
            b = np.zeros((m + r, right.shape[1]))
            b[:m] = weight[:, None] * right
            work = _BLOCK * (m + r)
            b = dormqr("L", "T", reflected, tau, np.asfortranarray(b[order]), work)[0]
            b[:r] = 0.0
            x = np.empty_like(b)
            x[order] = dormqr("L", "N", reflected, tau, b, work, overwrite_c=True)[0]
            return weight[:, None] * x[:m]

        return solve


class PivotedCholesky:
    """The factor of a positive semidefinite matrix, one column for each row that is asked for.

    Parameters
    ----------
    row : callable
        Gives a row of the matrix by its number.
    diagonal : ndarray (n,)

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.backends.low_rank import PivotedCholesky
    >>> K = np.outer([1.0, 2.0, 3.0], [1.0, 2.0, 3.0])
    >>> factor = PivotedCholesky(K.__getitem__, K.diagonal())
    >>> factor.grow(1e-12, most=2), factor.L
    (True, array([[1.],
           [2.],
           [3.]]))
    """

    def __init__(self, row: Callable[[int], np.ndarray], diagonal: np.ndarray) -> None:
        self._row, self.diagonal = row, diagonal
        self._columns, self.rank = np.empty((len(diagonal), 0), order="F"), 0
        self.rest = diagonal.copy()

    @property
    def L(self) -> np.ndarray:
        """The columns so far (n, rank)."""
        return self._columns[:, : self.rank]

    def grow(self, tolerance: float, most: int) -> bool:
        """Add columns until each diagonal value is there to a tolerance relative to itself.

        At most so many in all; returns whether that was enough. The pivot is the largest rest
        relative to its diagonal value: the rounding of a column grows with the root of its inverse.
        """
        size = np.where(self.diagonal > 0, self.diagonal, 1.0)
        while True:
            share = self.rest / size
            pivot = int(np.argmax(share))
            if not share[pivot] > tolerance:
                return True
            if self.rank >= most:
                return False
            self._add(pivot)

    def _add(self, pivot: int) -> None:
        k = self.rank
        if k == self._columns.shape[1]:
            room = np.empty((len(self.diagonal), 2 * k + 16), order="F")
            room[:, :k] = self._columns
            self._columns = room
        column = self._row(pivot) - self.L @ self.L[pivot]
        column /= np.sqrt(self.rest[pivot])
        self._columns[:, k] = column
        self.rest = np.maximum(self.rest - column**2, 0.0)
        self.rest[pivot] = 0.0
        self.rank = k + 1
