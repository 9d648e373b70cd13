"""A preconditioner for systems with ``K + lambda I``: a factor of K of low rank, and lambda.

    K ~ F F',  F of r columns:      P = F F' + lambda I,     P^-1 v = (v - Z Z' v) / lambda

with ``Z = F R^-1`` for Cholesky's ``R'R = F'F + lambda I``. The columns of F are those of pivoted
Cholesky, the pivots drawn at random in proportion to what the diagonal still lacks, a block of them
at a time: nearly as good as eigenvectors, for r rows of K. What P does not know of K has a trace,
``sum_i rest_i``, and once that is below lambda the system takes a handful of steps.

References: Chen, Epperly, Tropp and Webber, Communications on Pure and Applied Mathematics 78, 2025
(random pivots); Diaz, Epperly, Frangella, Tropp and Webber, arXiv 2304.12465 (for this system).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dpotrf

from maxmargin.backends.threads import ALONE, Workers

_HEIGHT = 4096  # rows that a thread takes at a time


class Columns:
    """Columns F (n, r) of a factor of a matrix, on the host, a block of pivots at a time.

    Parameters
    ----------
    rows : callable
        Gives rows of the matrix (q, n) by their numbers.
    n, most : int
        Rows, and columns that there is room for.
    workers : Workers
    """

    block = 128  # pivots that are drawn at a time
    resolved = 1e-10  # part of its diagonal below which a pivot is rounding

    def __init__(
        self,
        rows: Callable[[np.ndarray], np.ndarray],
        n: int,
        most: int,
        workers: Workers = ALONE,
    ) -> None:
        self._of, self.workers = rows, workers
        self._columns, self.rank, self.most = np.empty((n, most)), 0, most

    @property
    def F(self) -> np.ndarray:
        """The columns so far, (n, rank)."""
        return self._columns[:, : self.rank]

    def residual(self, pivots: np.ndarray) -> np.ndarray:
        """What the columns lack of the matrix among some pivots."""
        self._pivots, self._rows = pivots, self._of(pivots)
        return self._rows[:, pivots] - self.F[pivots] @ self.F[pivots].T

    def extend(self, kept: np.ndarray, triangle: np.ndarray) -> np.ndarray:
        """Add the columns of these of the pivots, whose residual is ``triangle triangle'``.

        Returns what they take from the diagonal.
        """
        F, first, last = self.F, self.rank, self.rank + len(kept)
        K, above = self._rows[kept], F[self._pivots[kept]].T
        taken = np.empty(len(F))

        def fill(some: slice) -> None:
            columns = K[:, some].T - F[some] @ above
            new = solve_triangular(triangle, columns.T, lower=True, check_finite=False).T
            self._columns[some, first:last] = new
            taken[some] = np.einsum("ij,ij->i", new, new)

        self.workers.map(fill, _slices(len(F)))
        self.rank = last
        return taken

    def inverse(self, alpha: float) -> Preconditioner:
        """``(F F' + alpha I)^-1``; overwrites F."""
        return Preconditioner(self.F, alpha, self.workers)


class RandomPivots:
    """Pivoted Cholesky of a positive semidefinite matrix with random pivots, block by block.

    Parameters
    ----------
    rows : callable
        Gives rows of the matrix (q, n) by their numbers.
    diagonal : float array (n,)
    most : int
        Columns that there is room for.
    seed : int
    workers : Workers

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.solvers.ridge.preconditioner import RandomPivots
    >>> K = np.outer([1.0, 2.0, 3.0], [1.0, 2.0, 3.0])
    >>> factor = RandomPivots(lambda rows: K[rows], K.diagonal(), most=3, seed=0)
    >>> factor.grow(enough=1e-12)
    False
    >>> factor.F @ factor.F.T
    array([[1., 2., 3.],
           [2., 4., 6.],
           [3., 6., 9.]])
    """

    def __init__(
        self,
        rows: Callable[[np.ndarray], np.ndarray],
        diagonal: np.ndarray,
        most: int,
        seed: int,
        workers: Workers = ALONE,
    ) -> None:
        self._begin(Columns(rows, len(diagonal), most, workers), diagonal, seed)

    @classmethod
    def into(cls, columns: Any, diagonal: np.ndarray, seed: int) -> RandomPivots:
        """Begin with columns that may be elsewhere, such as those on a GPU."""
        pivots = cls.__new__(cls)
        pivots._begin(columns, diagonal, seed)
        return pivots

    def _begin(self, columns: Any, diagonal: np.ndarray, seed: int) -> None:
        self.columns, self._diagonal = columns, diagonal
        self._random = np.random.default_rng(seed)
        self.rest = np.maximum(diagonal, 0.0)
        self.pivots: list[int] = []  # rows, one for each column

    @property
    def F(self) -> Any:
        """The columns so far, (n, rank)."""
        return self.columns.F

    @property
    def rank(self) -> int:
        """How many there are."""
        return self.columns.rank

    def grow(self, enough: float) -> bool:
        """Add a block of columns; returns whether more are wanted and have room."""
        room = self.columns.most - self.columns.rank
        total = float(self.rest.sum())
        if not room or total <= enough:
            return False
        count = min(self.columns.block, room)
        self._add(np.unique(self._random.choice(len(self.rest), count, p=self.rest / total)))
        return self.columns.rank < self.columns.most and float(self.rest.sum()) > enough

    def _add(self, pivots: np.ndarray) -> None:
        block = self.columns.residual(pivots)
        kept, triangle = _independent(block, self.columns.resolved * self._diagonal[pivots])
        if not len(kept):  # drawn in vain: nothing but rounding is left there
            self.rest[pivots] = 0.0
            return
        self.rest -= self.columns.extend(kept, triangle)
        self.pivots.extend(pivots[kept].tolist())
        np.maximum(self.rest, 0.0, out=self.rest)
        self.rest[pivots[kept]] = 0.0


def _independent(block: np.ndarray, least: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Pivots of a small matrix that are more than rounding, and the triangle of these."""
    kept: list[int] = []
    rows = np.zeros_like(block)  # of L, one for each that is kept
    rest = block.diagonal().copy()
    for k in range(len(block)):
        if rest[k] <= least[k]:
            continue
        row = (block[k] - rows[: len(kept), k] @ rows[: len(kept)]) / np.sqrt(rest[k])
        rows[len(kept)] = row
        kept.append(k)
        rest[k + 1 :] -= row[k + 1 :] ** 2
    chosen = np.array(kept, dtype=np.int64)
    return chosen, np.ascontiguousarray(rows[: len(kept)][:, chosen].T)


class Preconditioner:
    """``P^-1`` for ``P = F F' + alpha I``; overwrites F.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.solvers.ridge.preconditioner import Preconditioner
    >>> inverse = Preconditioner(np.array([[1.0], [1.0]]), alpha=1.0)
    >>> inverse @ np.array([[3.0], [3.0]])
    array([[1.],
           [1.]])
    """

    def __init__(self, F: np.ndarray, alpha: float, workers: Workers = ALONE) -> None:
        self.alpha, self.workers, self.Z = alpha, workers, F
        if not F.shape[1]:
            return
        parts = workers.map(lambda some: F[some].T @ F[some], _slices(len(F)))
        square = np.sum(parts, axis=0)
        square[np.diag_indices_from(square)] += alpha
        R, failed = dpotrf(square, clean=1)
        if failed:  # lambda is below rounding: F'F alone has more than that
            self.Z = F[:, :0]
            return

        def divide(some: slice) -> None:
            F[some] = solve_triangular(R, F[some].T, trans="T", check_finite=False).T

        workers.map(divide, _slices(len(F)))

    def __matmul__(self, V: np.ndarray) -> np.ndarray:
        Z, out = self.Z, np.empty_like(V)
        if not Z.shape[1]:
            return V / self.alpha
        slices = _slices(len(Z))
        onto = np.sum(self.workers.map(lambda some: Z[some].T @ V[some], slices), axis=0)

        def subtract(some: slice) -> None:
            out[some] = (V[some] - Z[some] @ onto) / self.alpha

        self.workers.map(subtract, slices)
        return out


def _slices(n: int) -> list[slice]:
    return [slice(first, min(first + _HEIGHT, n)) for first in range(0, n, _HEIGHT)]
