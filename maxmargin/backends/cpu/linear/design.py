"""Products with a data matrix on the CPU: values, sums of rows, weighted Gram matrices of columns.

The matrix is ``Z = [X, constant]``: the rows as they came, dense or CSR, float32 or float64, and a
column for the intercept that is not written down. All sums are float64. Dense rows are taken in
chunks that stay in cache while everything is done with them; threads take stretches of rows.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp

from maxmargin.backends.compiled import njit
from maxmargin.backends.cpu.linear.classes import (
    csr_combinations,
    csr_values_of_classes,
    room_for,
)
from maxmargin.backends.cpu.linear.rows import add, rows_of
from maxmargin.backends.cpu.linear.span import Span
from maxmargin.backends.threads import ALONE, Workers

_CHUNK = 1 << 17  # entries of a chunk of rows
_MOSTLY = 0.8  # share of rows with a weight up to which the others are left out of a chunk
_NOTHING = 1e-12  # of the largest weight of a chunk, that does not count
# products that each thread has at least: of 2^19 in all, two threads took 1.3 times the CPU time of
# one and 1.1 times as long (LinearSVC, LogisticRegression, 20 columns, 8,000 and 50,000 rows)
_SHARE = 1 << 21
LOOPED = 1 << 18  # and up to which a plain loop over rows is faster than to ask BLAS


class Design:
    """Rows of data with an intercept's column, for methods that work with all of them at a time.

    Parameters
    ----------
    X : array or CSR of shape (n, d)
    constant : float
        Value of the intercept's column; 0 for none.
    workers : Workers

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.backends.cpu.linear import Design
    >>> design = Design(np.array([[1.0, 2.0], [3.0, 4.0]]), constant=1.0)
    >>> design.values(np.array([1.0, 0.0, 0.5]))
    array([1.5, 3.5])
    >>> design.combination(np.array([1.0, -1.0]))
    array([-2., -2.,  0.])
    """

    in_memory = True  # whether X is here, and not spread over other machines

    def __init__(self, X: Any, constant: float = 1.0, workers: Workers = ALONE) -> None:
        self.sparse = sp.issparse(X)
        self.X = X
        self.constant = constant
        self.n, self.features = X.shape
        self.width = self.features + (constant != 0)
        self.workers = workers
        self._at_once = not self.sparse and X.size <= _CHUNK  # one chunk, for one thread

    def take(self, rows: np.ndarray) -> Design:
        """Return a design of some of the rows."""
        return Design(self.X[rows], self.constant, self.workers)

    @cached_property
    def span(self) -> Span:
        """A basis of what dense rows span, no more than there are columns; made once."""
        return Span(self.X)

    @property
    def dtype(self) -> Any:
        """Type of the entries of X."""
        return self.X.dtype

    @property
    def entries(self) -> int:
        """Numbers that a pass reads."""
        return self.X.nnz if self.sparse else self.X.size

    def squared_norms(self, scale: np.ndarray | None = None) -> np.ndarray:
        """Squared length of every row, with the constant; ``scale`` is a factor for each column."""
        w, b = self._split(np.ones(self.width) if scale is None else scale)
        out = np.empty(self.n)

        def fill(part: slice) -> None:
            if self.sparse:
                rows = rows_of(self.X)
                if not _csr_squared_norms(rows, w, part.start, part.stop, out):
                    room = np.zeros(self.features)
                    _csr_parted_norms(rows, w, part.start, part.stop, room, out)
            else:
                for chunk in self._chunks(part):
                    out[chunk] = np.square(self._wide(chunk)) @ w

        self._map(fill, self.entries)
        return out + self.constant * b

    def values(self, theta: np.ndarray) -> np.ndarray:
        """``Z theta``; for several theta (K, width) in one pass, (n, K), each in one stretch."""
        w, b = self._split(theta)
        if theta.ndim > 1 and self.sparse:
            return self._csr_values_of_classes(w) + b
        if self._at_once:
            return (w @ self._wide(slice(None)).T).T + b
        out = np.empty((*theta.shape[:-1], self.n)).T

        def fill(part: slice) -> None:
            if self.sparse:
                _csr_values(rows_of(self.X), w, b, part.start, part.stop, out)
            else:
                for chunk in self._chunks(part):
                    out[chunk] = (w @ self._wide(chunk).T).T + b

        self._map(fill, self.entries)
        return out

    def values_of_nothing(self, shape: tuple[int, ...]) -> np.ndarray:
        """Values of weights of zero, of some shape."""
        return np.zeros((*shape[:-1], self.n)).T

    def combination(self, beta: np.ndarray) -> np.ndarray:
        """``Z' beta``; for several beta (n, K) in one pass, (K, width)."""
        if beta.ndim > 1 and self.sparse:
            return self._joined(self._csr_combinations(beta), beta.sum(axis=0))
        if self._at_once:
            return self._joined(beta.T @ self._wide(slice(None)), beta.sum(axis=0))

        def total(part: slice) -> np.ndarray:
            sums = np.zeros((*beta.shape[1:], self.features))
            if self.sparse:
                _csr_combination(rows_of(self.X), beta, part.start, part.stop, sums)
            else:
                for chunk in self._chunks(part):
                    sums += beta[chunk].T @ self._wide(chunk)
            return sums

        sums = self._total(total, self.entries)
        return self._joined(sums, beta.sum(axis=0))

    def _csr_values_of_classes(self, w: np.ndarray) -> np.ndarray:
        out, W = np.empty((len(w), self.n)), room_for(len(w), self.features, sparse=True)
        W[:, : len(w)] = w.T

        def fill(part: slice) -> None:
            csr_values_of_classes(rows_of(self.X), W, part.start, part.stop, out)

        self._map(fill, self.entries * len(w))
        return out.T

    def _csr_combinations(self, beta: np.ndarray) -> np.ndarray:
        beta, count = np.ascontiguousarray(beta), beta.shape[1]

        def total(part: slice) -> np.ndarray:
            W = room_for(count, self.features, sparse=True)
            csr_combinations(rows_of(self.X), beta, part.start, part.stop, W)
            return W

        return self._total(total, self.entries * count)[:, :count].T

    def pulled(
        self, theta: np.ndarray, slope: Callable[[slice, np.ndarray], np.ndarray]
    ) -> np.ndarray:
        """``Z' slope(Z theta)``, every row read once; ``slope`` gets some rows and their values."""

        w, b = self._split(theta)
        f, along = np.empty(self.n), np.empty(self.n)

        def total(part: slice) -> np.ndarray:
            sums = np.zeros(self.features + 1)
            for chunk in self._chunks(part):
                if self.sparse:
                    _csr_values(rows_of(self.X), w, b, chunk.start, chunk.stop, f)
                    along[chunk] = slope(chunk, f[chunk])
                    _csr_combination(rows_of(self.X), along, chunk.start, chunk.stop, sums)
                else:
                    rows = self._wide(chunk)
                    along[chunk] = slope(chunk, rows @ w + b)
                    sums[:-1] += along[chunk] @ rows
                sums[-1] += along[chunk].sum()
            return sums

        sums = self._total(total, self.entries)
        return self._joined(sums[:-1], sums[-1])

    def gram(self, curvature: np.ndarray) -> np.ndarray:
        """``Z' diag(curvature) Z``; rows without a curvature cost nothing."""

        def total(part: slice) -> np.ndarray:
            sums = np.zeros((self.features + 1, self.features + 1))
            if self.sparse:
                _csr_gram(rows_of(self.X), curvature, part.start, part.stop, sums)
            elif looped:
                dense_gram(self.X, curvature, part.start, part.stop, sums)
            else:
                for chunk in self._chunks(part):
                    _add_gram(self._wide(chunk), curvature[chunk], sums)
            return sums

        bent, row = int(np.count_nonzero(curvature)), self.entries // max(self.n, 1)
        looped = self.sparse or bent * row * row <= LOOPED
        sums = self._total(total, bent * row * row)
        if looped:
            _mirror(sums)
        if not self.constant:
            return sums[:-1, :-1]
        sums[-1] *= self.constant
        sums[:, -1] *= self.constant
        return sums

    def _split(self, theta: np.ndarray) -> tuple[np.ndarray, Any]:
        if not self.constant:
            return theta, 0.0
        return theta[..., :-1], self.constant * theta[..., -1]

    def _joined(self, sums: np.ndarray, total: Any) -> np.ndarray:
        if not self.constant:
            return sums
        return np.concatenate([sums, self.constant * np.asarray(total)[..., None]], axis=-1)

    def _total(self, function: Callable[[slice], np.ndarray], work: int) -> np.ndarray:
        """Sum of a function over stretches of rows."""
        sums, *others = self._map(function, work)
        for other in others:
            sums += other
        return sums

    def _map(self, function: Callable[[slice], Any], work: int) -> list[Any]:
        """Call a function on stretches of rows, one for each thread that so much work pays for."""
        count = min(self.workers.count, work // _SHARE)
        if count <= 1:
            self.workers.check()
            return [function(slice(0, self.n))]
        ends = [self.n * k // count for k in range(count + 1)]
        return self.workers.map(function, [slice(*pair) for pair in pairwise(ends)])

    def _chunks(self, part: slice) -> list[slice]:
        step = max(_CHUNK * self.n // max(self.entries, 1), 16)
        if part.stop - part.start <= step:
            return [part]
        return [slice(a, min(a + step, part.stop)) for a in range(part.start, part.stop, step)]

    def _wide(self, chunk: slice) -> np.ndarray:
        return self.X[chunk].astype(np.float64, copy=False)


def _add_gram(rows: np.ndarray, curvature: np.ndarray, out: np.ndarray) -> None:
    """Add ``[rows, 1]' diag(curvature) [rows, 1]``."""
    size = np.abs(curvature)
    used = np.flatnonzero(size > _NOTHING * size.max(initial=0.0))
    if len(used) < _MOSTLY * len(rows):
        rows, curvature = rows[used], curvature[used]
    sums = curvature @ rows
    out[-1, :-1] += sums
    out[:-1, -1] += sums
    out[-1, -1] += curvature.sum()
    if (curvature < 0).any():
        out[:-1, :-1] += (rows * curvature[:, None]).T @ rows
    else:  # BLAS takes half the time for a matrix by itself
        root = rows * np.sqrt(curvature)[:, None]
        out[:-1, :-1] += root.T @ root


@njit(cache=True, nogil=True)
def _csr_values(rows, w, b, start, stop, out):
    data, indices, indptr = rows
    for i in range(start, stop):
        k, end = np.uint64(indptr[i]), np.uint64(indptr[i + 1])
        even, odd = b, 0.0  # two sums that need not wait for each other
        while k + np.uint64(1) < end:
            even += data[k] * w[np.uint64(indices[k])]
            odd += data[k + np.uint64(1)] * w[np.uint64(indices[k + np.uint64(1)])]
            k += np.uint64(2)
        if k < end:
            even += data[k] * w[np.uint64(indices[k])]
        out[i] = even + odd


@njit(cache=True, nogil=True)
def _csr_combination(rows, beta, start, stop, out):
    for i in range(start, stop):
        if beta[i] != 0:
            add(rows, i, beta[i], out)


@njit(cache=True, nogil=True)
def _csr_gram(rows, curvature, start, stop, out):
    """Add the lower triangle of ``[X, 1]' diag(curvature) [X, 1]``; indices in any order."""
    data, indices, indptr = rows
    last = np.uint64(out.shape[0] - 1)
    for i in range(start, stop):
        c = curvature[i]
        if c != 0:
            first = np.uint64(indptr[i])
            for k in range(first, np.uint64(indptr[i + 1])):
                row = np.uint64(indices[k])
                scaled = c * data[k]
                for m in range(first, k):
                    column = np.uint64(indices[m])
                    product = scaled * data[m]
                    if column < row:
                        out[row, column] += product
                    elif column > row:
                        out[column, row] += product
                    else:  # an entry in two parts
                        out[row, row] += 2 * product
                out[row, row] += scaled * data[k]
                out[last, row] += scaled
            out[last, last] += c


@njit(cache=True, nogil=True)
def dense_gram(X, curvature, start, stop, out):
    """Add the lower triangle of ``[X, 1]' diag(curvature) [X, 1]``."""
    last = X.shape[1]
    for i in range(start, stop):
        c = curvature[i]
        if c != 0:
            for row in range(last):
                scaled = c * X[i, row]
                for column in range(row + 1):
                    out[row, column] += scaled * X[i, column]
                out[last, row] += scaled
            out[last, last] += c


@njit(cache=True, nogil=True)
def _mirror(matrix):
    """Copy the lower triangle to the upper one."""
    for i in range(len(matrix)):
        for j in range(i):
            matrix[j, i] = matrix[i, j]


@njit(cache=True, nogil=True)
def _csr_squared_norms(rows, scale, start, stop, out):
    """Squared lengths of rows; says whether all have their entries in order, each in one part."""
    data, indices, indptr = rows
    for i in range(start, stop):
        total, before = 0.0, -1
        for k in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
            column = indices[k]
            if column <= before:
                return False
            before = column
            total += scale[np.uint64(column)] * data[k] * data[k]
        out[i] = total
    return True


@njit(cache=True, nogil=True)
def _csr_parted_norms(rows, scale, start, stop, room, out):
    """Squared lengths of rows whose entries may come in several parts; ``room`` is zeros."""
    data, indices, indptr = rows
    for i in range(start, stop):
        total = 0.0
        for k in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
            column = np.uint64(indices[k])
            before = room[column]
            room[column] = before + data[k]
            total += scale[column] * data[k] * (2.0 * before + data[k])
        for k in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
            room[np.uint64(indices[k])] = 0.0
        out[i] = total
