"""A symmetric matrix reduced to a narrow band, once; then shifted systems cost next to nothing.

    A = Q B Q',   Q orthogonal,  B a band of blocks:  (A + s I)^-1 = Q (B + s I)^-1 Q'

is half of an eigendecomposition: the half that is made of products of matrices. Each panel of A
below its diagonal block is brought to triangular form by Householder reflections ``I - V T V'``,
which are applied to what remains from both sides at once,

    A - V W' - W V'     with  X = A V T,  W = X - V (T' V' X) / 2.

For a shift s, ``B + s I = L L'`` by blocks. The diagonal of the inverse are the squared lengths of
the rows of ``Q L^-T``, and they take ``4 n^2`` times the width of the band.

References: Bischof, Lang and Sun, ACM TOMS 26, 2000 (reduction to a band); Golub and Van Loan,
Matrix Computations, 2013, chapters 4.5 and 5.1 (block tridiagonal systems, T of the reflections).
"""

from __future__ import annotations

import itertools

import numpy as np
from scipy.linalg.lapack import dgeqrf, dpotrf, dtrtri

from maxmargin.backends.dense.cholesky import NotPositiveError
from maxmargin.backends.dense.products import add_product
from maxmargin.backends.threads import ALONE, Workers

_WIDTH = 32  # of a block of the band: wider ones reduce faster, narrower ones shift faster
_JOINED = 8  # reflections of blocks that Q is made from at a time
_HEIGHT = 256  # rows that a thread takes at a time
_LENGTH = 1024  # columns of a tile: with its rows it stays in the cache
_TALL = 512  # rows whose part of the inverse's diagonal a thread takes at a time


class BandReduction:
    """A symmetric matrix on its way to a band.

    Parameters
    ----------
    A : float64 array (n, n), C-contiguous
        Overwritten; of it the lower triangle is read, and squares of 256 along the diagonal.
    workers : Workers

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.backends.dense import BandReduction
    >>> band = BandReduction(np.array([[2.0, 1.0], [1.0, 2.0]]))
    >>> while not band.reduced:
    ...     band.advance()
    >>> band.accumulate()
    >>> band.shifted(1.0, np.array([[4.0], [4.0]]))  # the solution, and the inverse's diagonal
    (array([[1.],
           [1.]]), array([0.375, 0.375]))
    """

    def __init__(self, A: np.ndarray, workers: Workers = ALONE) -> None:
        self.A, self.n, self.workers = A, len(A), workers
        self.done = 0  # columns
        self.Q = np.empty((0, 0))
        self._reflections: list[tuple[int, np.ndarray, np.ndarray]] = []
        self._diagonal: list[np.ndarray] = []  # blocks of B
        self._below: list[np.ndarray] = []
        self._known: tuple[np.ndarray, np.ndarray] | None = None  # right sides, and Q' times them

    @property
    def reduced(self) -> bool:
        """Whether all columns are in the band."""
        return self.done == self.n

    def advance(self) -> None:
        """Bring the next block of columns into the band."""
        A, start = self.A, self.done
        stop = min(start + _WIDTH, self.n)
        block = np.tril(A[start:stop, start:stop])
        self._diagonal.append(block + np.tril(block, -1).T)
        if stop < self.n:
            panel, tau, _, _ = dgeqrf(np.asfortranarray(A[stop:, start:stop]))
            rank = min(panel.shape)
            self._below.append(np.triu(panel[:rank]))
            V = _vectors(panel[:, :rank], tau)
            self._update(stop, V, _middle(V, tau))
            self._reflections.append((stop, V, tau))
        self.done = stop

    def _update(self, start: int, V: np.ndarray, T: np.ndarray) -> None:
        """Apply a reflection to the lower triangle of what remains, from both sides."""
        A, strips = self.A[:, start:], _strips(self.n, start)

        def product(share: list[slice]) -> np.ndarray:
            out = np.zeros_like(V)
            for rows in share:
                own, before = slice(rows.start - start, rows.stop - start), rows.start - start
                add_product(out[own], A[rows, : own.stop], V[: own.stop])
                add_product(out[:before], A[rows, :before].T, V[own])
            return out

        count = self.workers.count
        shares = [strips[k::count] for k in range(count)]
        X = np.sum(self.workers.map(product, shares), axis=0) @ T
        W = X - 0.5 * (V @ (T.T @ (V.T @ X)))
        width = V.shape[1]
        both = np.hstack([V, W, V])
        left, right = both[:, : 2 * width], both[:, width:].T

        def subtract(rows: slice) -> None:
            own = left[rows.start - start : rows.stop - start]
            for first in range(0, rows.stop - start, _LENGTH):
                columns = slice(first, min(first + _LENGTH, rows.stop - start))
                add_product(A[rows, columns], own, right[:, columns], -1.0)

        self.workers.map(subtract, reversed(strips))

    def accumulate(self) -> None:
        """Make Q, where A was; the last thing before systems can be solved."""
        Q = self.A
        Q[:] = 0.0
        Q[np.diag_indices_from(Q)] = 1.0
        while self._reflections:
            start, V, T = self._joined()
            rest = Q[start:, start:]

            def reflect(columns: slice, rest: np.ndarray = rest, V: np.ndarray = V) -> None:
                onto = T @ (V.T @ rest[:, columns])  # noqa: B023 - at once
                add_product(rest[:, columns], V, onto, -1.0)

            self.workers.map(reflect, _strips(len(rest)))
        self.Q, self.A = Q, np.empty((0, 0))

    def _joined(self) -> tuple[int, np.ndarray, np.ndarray]:
        """Take the last reflections away, some of them as one: products of a better shape."""
        some = self._reflections[-_JOINED:]
        del self._reflections[-_JOINED:]
        start = some[0][0]
        V = np.zeros((self.n - start, sum(len(tau) for _, _, tau in some)))
        first = 0
        for below, own, tau in some:
            V[below - start :, first : first + len(tau)] = own
            first += len(tau)
        return start, V, _middle(V, np.concatenate([tau for _, _, tau in some]))

    def shifted(self, shift: float, right: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Solve ``(A + shift I) x = right`` for right sides (n, k).

        Returns x and the diagonal of the inverse; raises :class:`NotPositiveError`.
        """
        inverses, couplings = self._factorised(shift)
        Q, z = self.Q, self._banded(inverses, couplings, self._onto(right))
        # a block of Q L^-T from that of Q and the block before, by one product
        steps = [
            np.vstack([inverse.T, -coupling.T @ inverse.T])
            for inverse, coupling in zip(inverses, couplings, strict=True)
        ]
        x = np.empty_like(right)

        def lengths(rows: slice) -> np.ndarray:
            x[rows] = Q[rows] @ z
            out = np.zeros(rows.stop - rows.start)
            last, both, start = np.empty((len(out), 0)), np.empty((len(out), 2 * _WIDTH)), 0
            for step in steps:
                (terms, width) = step.shape
                both[:, :width] = Q[rows, start : start + width]
                both[:, width:terms] = last
                last = both[:, :terms] @ step
                out += np.einsum("ij,ij->i", last, last)
                start += width
            return out

        return x, np.concatenate(self.workers.map(lengths, _strips(self.n, step=_TALL)))

    def _onto(self, right: np.ndarray) -> np.ndarray:
        """``Q' right``, made once for all shifts."""
        if self._known is None or self._known[0] is not right:
            self._known = right, self.Q.T @ right
        return self._known[1]

    @staticmethod
    def _banded(inverses: list, couplings: list, right: np.ndarray) -> np.ndarray:
        """Solve the system of the band."""
        z, edges = right.copy(), np.cumsum([0, *map(len, inverses)])
        own = [slice(*pair) for pair in itertools.pairwise(edges)]
        for k, (inverse, coupling) in enumerate(zip(inverses, couplings, strict=True)):
            before = z[own[k - 1]] if k else z[:0]
            z[own[k]] = inverse @ (z[own[k]] - coupling @ before)
        for k in reversed(range(len(own))):
            if k + 1 < len(own):
                z[own[k]] -= couplings[k + 1].T @ z[own[k + 1]]
            z[own[k]] = inverses[k].T @ z[own[k]]
        return z

    def _factorised(self, shift: float) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """Inverses of L's diagonal blocks, and the blocks below them (of the one before)."""
        inverses: list[np.ndarray] = []
        couplings = [np.empty((len(self._diagonal[0]), 0))]
        for k, block in enumerate(self._diagonal):
            if k:
                couplings.append(self._below[k - 1] @ inverses[-1].T)
            own = block + shift * np.eye(len(block)) - couplings[-1] @ couplings[-1].T
            triangle, failed = dpotrf(own, lower=1, clean=1)
            if failed:
                raise NotPositiveError(k * _WIDTH + failed - 1)
            inverses.append(dtrtri(triangle, lower=1)[0])
        return inverses, couplings


def _vectors(panel: np.ndarray, tau: np.ndarray) -> np.ndarray:
    """V (m, b) of LAPACK's reflections, which it has below the diagonal."""
    V = np.tril(panel, -1)
    V[np.diag_indices(V.shape[1])] = 1.0
    return np.ascontiguousarray(V * (tau != 0))  # some do nothing


def _middle(V: np.ndarray, tau: np.ndarray) -> np.ndarray:
    """T of the reflection ``I - V T V'`` that is the product of those in V's columns."""
    U = np.triu(V.T @ V, 1) + np.diag(1.0 / np.where(tau == 0, 1.0, tau))
    return dtrtri(U, lower=0)[0]


def _strips(n: int, start: int = 0, step: int = _HEIGHT) -> list[slice]:
    """Rows from a start on, in parts that begin at multiples of a step."""
    edges = [start, *range(start - start % step + step, n, step), n]
    return [slice(*pair) for pair in itertools.pairwise(edges)]
