"""Cholesky's factorisation over the matrix's own memory, a block of columns at a time.

    A + diag(shift) = L L'

Left-looking: a block of columns takes all that is left of it at once, ``A[:, J] - L L[J]'``, and is
then multiplied by the inverse of its small triangle. L goes where the lower triangle of A was, and
the upper one stays, so that residuals can be had without a second copy of the matrix. After k
columns the first k rows and columns are factorised: who stops there has their solution.

L may be float32: half the time, and solutions that are corrected from their residuals. It then has
the first half of each row below the diagonal, where A has been read already.

Entries whose products would be denormal numbers are zero in L: a kernel matrix of points far apart
is full of them, and many CPUs take a hundred times as long to multiply those.

References: Golub and Van Loan, Matrix Computations, 2013, chapter 4.2; Higham and Mary, Acta
Numerica 31, 2022 (factors of low precision, and corrections).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.linalg.lapack import dpotrf, dtrtri, spotrf, strtri

from maxmargin.backends.cpu.loops import flush
from maxmargin.backends.dense.products import add_product
from maxmargin.backends.threads import ALONE, Workers

_WIDTH = 256  # columns of a block: a triangle of half a megabyte
_HEIGHT = 512  # rows that a thread takes at a time: a tenth of a second among 10,000 columns
_NEGLIGIBLE = 1e-9  # of the largest diagonal entry of L: below the rounding of float32, too


class NotPositiveError(ValueError):
    """A matrix is not positive definite: the first rows up to ``row`` prove it."""

    def __init__(self, row: int) -> None:
        super().__init__(f"The matrix is not positive definite: see its first {row + 1} rows.")
        self.row = row


class BlockCholesky:
    """Factorisation of a symmetric matrix with a diagonal added.

    Parameters
    ----------
    A : float64 array (n, n), C-contiguous
        Overwritten: its lower triangle by L.
    shift : float array (n,)
        What is added to the diagonal.
    workers : Workers
    dtype : {np.float64, np.float32}
        Of L.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.backends.dense import BlockCholesky
    >>> factor = BlockCholesky(np.array([[1.0, 1.0], [1.0, 1.0]]), shift=np.ones(2))
    >>> while factor.done < 2:
    ...     factor.advance()
    >>> factor.solve(np.array([[3.0], [3.0]]))
    array([[1.],
           [1.]])
    >>> factor.product(np.array([[1.0], [1.0]]))  # with A alone
    array([[2.],
           [2.]])
    """

    def __init__(
        self,
        A: np.ndarray,
        shift: np.ndarray,
        workers: Workers = ALONE,
        dtype: Any = np.float64,
    ) -> None:
        self.A, self.shift, self.workers, self.dtype = A, shift, workers, dtype
        self.L = A if dtype is np.float64 else A.view(dtype)  # in its first columns
        self.n, self.done = len(A), 0
        size = float(np.sqrt(np.abs(A.diagonal() + shift).max(initial=0.0)))
        normal = float(np.sqrt(np.finfo(dtype).tiny))
        self._least = dtype(min(normal, _NEGLIGIBLE * size))
        self._inverses: list[np.ndarray] = []
        self._blocks: dict[int, np.ndarray] = {}  # of A's diagonal, as they were

    def in_float64(self) -> BlockCholesky:
        """Begin again with the same matrix, whose lower triangle is made from the upper one."""
        A = self.A
        for start, block in self._blocks.items():
            A[start : start + len(block), start : start + len(block)] = block

        def mirror(own: slice) -> None:
            A[own, : own.start] = A[: own.start, own].T

        self.workers.map(mirror, _slices(0, self.n, _WIDTH))
        return BlockCholesky(A, self.shift, self.workers)

    def advance(self) -> None:
        """Factorise the next block of columns; raises :class:`NotPositiveError`."""
        A, L, start = self.A, self.L, self.done
        potrf, trtri = (spotrf, strtri) if self.dtype == np.float32 else (dpotrf, dtrtri)
        stop = min(start + _WIDTH, self.n)
        own = slice(start, stop)
        if start not in self._blocks:
            self._blocks[start] = A[own, own].copy()

        def subtract(rows: slice) -> None:
            if L is not A:
                L[rows, own] = A[rows, own]
            add_product(L[rows, own], L[rows, :start], L[own, :start].T, -1.0)
            flush(L[rows, own], self._least)

        def divide(rows: slice) -> None:
            L[rows, own] = L[rows, own] @ inverse.T
            flush(L[rows, own], self._least)

        self.workers.map(subtract, _slices(start, self.n))
        block = L[own, own].copy()
        block[np.diag_indices_from(block)] += self.shift[own].astype(self.dtype)
        triangle, failed = potrf(block, lower=1, clean=1)
        if failed:
            raise NotPositiveError(start + failed - 1)
        L[own, own] = triangle
        inverse, failed = trtri(triangle, lower=1)
        if failed:
            raise NotPositiveError(start + failed - 1)
        self.workers.map(divide, _slices(stop, self.n))
        self._inverses.append(inverse)
        self.done = stop

    def solve(self, right: np.ndarray) -> np.ndarray:
        """Solve for right sides (done, k), with the rows and columns that are done."""
        L, n = self.L, self.done
        size = np.maximum(np.abs(right).max(axis=0), np.finfo(np.float64).tiny)
        x = (right / size).astype(self.dtype)
        for inverse, own in zip(self._inverses, self._own(), strict=True):
            x[own] = inverse @ (x[own] - L[own, : own.start] @ x[: own.start])
        for inverse, own in reversed(list(zip(self._inverses, self._own(), strict=True))):
            x[own] = inverse.T @ (x[own] - L[own.stop : n, own].T @ x[own.stop :])
        return x * size

    def product(self, V: np.ndarray) -> np.ndarray:
        """``A @ V`` for V (n, k), from the upper triangle, which is as it was."""
        A, out = self.A, np.zeros_like(V)
        for own in _slices(0, self.n, _WIDTH):
            block = self._blocks.get(own.start, A[own, own])
            right = A[own, own.stop :]
            out[own] += block @ V[own] + right @ V[own.stop :]
            out[own.stop :] += right.T @ V[own]
        return out

    def _own(self) -> Iterator[slice]:
        """Rows of each block that is done."""
        return _slices(0, self.done, _WIDTH)


def _slices(start: int, stop: int, step: int = _HEIGHT) -> Iterator[slice]:
    for first in range(start, stop, step):
        yield slice(first, min(first + step, stop))
