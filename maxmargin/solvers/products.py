"""Products with a Gram matrix: kept whole where it has room, otherwise computed tile by tile.

Centred in feature space, with ``phi(x) - mean phi`` in place of ``phi(x)``, the matrix is ``H K H``
for ``H = I - 1 1'/n``: that of principal components, and of machines whose intercept is free, which
lose the digits of data far from the origin without it.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from maxmargin.backends.threads import ALONE, Workers
from maxmargin.gram import Gram

_HEIGHT = 512  # rows that a thread takes at a time


class GramProducts:
    """``K @ V`` for several columns, or ``H K H @ V``.

    Parameters
    ----------
    gram : Gram
    kept : bool
        Compute the matrix once and keep its ``8 n^2`` bytes; otherwise each product computes it
        anew, on the host or on a GPU.
    centred : bool, default=False
    workers : Workers

    Attributes
    ----------
    K : float array (n, n) or None
        The matrix, where it is kept.
    diagonal : float array (n,)

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin import Gram
    >>> from maxmargin.kernels import Linear
    >>> from maxmargin.solvers.products import GramProducts
    >>> gram = Gram.of(np.array([[1.0], [2.0]]), Linear())
    >>> GramProducts(gram, kept=True) @ np.array([[1.0], [1.0]])
    array([[3.],
           [6.]])
    >>> GramProducts(gram, kept=False, centred=True) @ np.array([[1.0], [0.0]])
    array([[ 0.25],
           [-0.25]])
    """

    def __init__(
        self, gram: Gram, kept: bool, centred: bool = False, workers: Workers = ALONE
    ) -> None:
        self.gram, self.centred, self.workers = gram, centred, workers
        largest = float(np.abs(gram.diagonal).max())
        if not np.isfinite(gram.n**2 * largest):
            raise ValueError(
                f"The kernel {gram.kernel!r} has values up to {largest:.3g} here, and sums of them "
                "are infinite in float64: scale the data (StandardScaler)."
            )
        self.K: np.ndarray | None = None
        K = gram.dense(workers) if kept else None
        if centred and K is not None:
            self.means = np.concatenate(workers.map(lambda rows: K[rows].mean(axis=1), self._parts))
            workers.map(lambda rows: self._centre(K[rows], rows), self._parts)
        self.K = K

    @cached_property
    def means(self) -> np.ndarray:
        """Means of the rows of K before it is centred."""
        return self.gram.matvec(np.full(self.gram.n, 1.0 / self.gram.n), workers=self.workers)

    @cached_property
    def diagonal(self) -> np.ndarray:
        """Diagonal of the matrix."""
        diagonal = self.gram.diagonal
        if self.centred:
            diagonal = np.maximum(diagonal - 2.0 * self.means + self.means.mean(), 0.0)
        return diagonal

    def __matmul__(self, V: np.ndarray) -> np.ndarray:
        K = self.K
        if K is None:
            return self._centred(self.gram.matmat(self._centred(V), workers=self.workers))
        out = np.empty(V.shape)

        def multiply(rows: slice) -> None:
            np.matmul(K[rows], V, out=out[rows])

        self.workers.map(multiply, self._parts)
        return out

    def rows(self, some: np.ndarray) -> np.ndarray:
        """Rows of the matrix."""
        if self.K is not None:
            return self.K[some]
        rows = self.gram.rows(some)
        return self._centre(rows, some) if self.centred else rows

    @property
    def _parts(self) -> list[slice]:
        n = self.gram.n
        return [slice(first, min(first + _HEIGHT, n)) for first in range(0, n, _HEIGHT)]

    def _centre(self, rows: np.ndarray, which: slice | np.ndarray) -> np.ndarray:
        """Centre rows of K in place."""
        rows -= self.means
        rows -= (self.means[which] - self.means.mean())[:, None]
        return rows

    def _centred(self, V: np.ndarray) -> np.ndarray:
        return V - V.mean(axis=0) if self.centred else V
