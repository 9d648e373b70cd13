"""Products with a data matrix on the CPU: values, sums of rows, weighted Gram matrices of columns.

The matrix is ``Z = [X, constant]``: the rows as they came, dense or CSR, float32 or float64, and a
column for the intercept that is not written down. All sums are float64. Dense rows are taken in
chunks that stay in cache while everything is done with them; threads take stretches of rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numba import njit

from maxmargin.backends.cpu_rows import add, dot, rows_of
from maxmargin.backends.threads import ALONE, Workers

_CHUNK = 1 << 17  # entries of a chunk of dense rows
_MOSTLY = 0.8  # share of rows with a weight up to which the others are left out of a chunk
_NOTHING = 1e-12  # of the largest weight of a chunk, that does not count
_APART = 1 << 17  # entries from which a second thread pays


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
    >>> from maxmargin.backends.cpu_linear import Design
    >>> design = Design(np.array([[1.0, 2.0], [3.0, 4.0]]), constant=1.0)
    >>> design.values(np.array([1.0, 0.0, 0.5]))
    array([1.5, 3.5])
    >>> design.combination(np.array([1.0, -1.0]))
    array([-2., -2.,  0.])
    """

    def __init__(self, X: Any, constant: float = 1.0, workers: Workers = ALONE) -> None:
        self.sparse = sp.issparse(X)
        self.X = X
        self.constant = constant
        self.n, self.features = X.shape
        self.width = self.features + (constant != 0)
        entries = self.X.nnz if self.sparse else X.size
        self.workers = workers if entries >= _APART else ALONE

    def take(self, rows: np.ndarray) -> Design:
        """Return a design of some of the rows."""
        return Design(self.X[rows], self.constant, self.workers)

    @property
    def entries(self) -> int:
        """Numbers that a pass reads."""
        return self.X.nnz if self.sparse else self.X.size

    def squared_norms(self) -> np.ndarray:
        """Squared length of every row, with the constant."""
        if self.sparse:
            sums = _csr_squared_norms(rows_of(self.X), self.n, np.zeros(self.features))
        else:
            sums = np.einsum("ij,ij->i", self.X, self.X, dtype=np.float64)
        return sums + self.constant**2

    def values(self, theta: np.ndarray) -> np.ndarray:
        """``Z theta``."""
        w, b = self._split(theta)
        out = np.empty(self.n)

        def fill(part: slice) -> None:
            if self.sparse:
                _csr_values(rows_of(self.X), w, b, part.start, part.stop, out)
            else:
                for chunk in self._chunks(part):
                    out[chunk] = self._wide(chunk) @ w + b

        self.workers.map(fill, self._stretches())
        return out

    def combination(self, beta: np.ndarray) -> np.ndarray:
        """``Z' beta``."""

        def total(part: slice) -> np.ndarray:
            sums = np.zeros(self.features)
            if self.sparse:
                _csr_combination(rows_of(self.X), beta, part.start, part.stop, sums)
            else:
                for chunk in self._chunks(part):
                    sums += beta[chunk] @ self._wide(chunk)
            return sums

        sums = np.sum(self.workers.map(total, self._stretches()), axis=0)
        return self._joined(sums, float(beta.sum()))

    def derivatives(
        self, slope: np.ndarray, curvature: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """``Z' slope`` and ``Z' diag(curvature) Z``; every row is read once for both."""

        def total(part: slice) -> tuple[np.ndarray, np.ndarray]:
            first = np.zeros(self.features + 1)
            second = np.zeros((self.features + 1, self.features + 1))
            if self.sparse:
                _csr_combination(rows_of(self.X), slope, part.start, part.stop, first)
                _csr_gram(rows_of(self.X), curvature, part.start, part.stop, second)
            else:
                for chunk in self._chunks(part):
                    rows = self._wide(chunk)
                    first[:-1] += slope[chunk] @ rows
                    _add_gram(rows, curvature[chunk], second)
            return first, second

        parts = self.workers.map(total, self._stretches())
        first = np.sum([part[0] for part in parts], axis=0)
        second = np.sum([part[1] for part in parts], axis=0)
        first[-1] = slope.sum()
        if self.sparse:  # only the lower triangle is there
            second += np.tril(second, -1).T
        if not self.constant:
            return first[:-1], second[:-1, :-1]
        first[-1] *= self.constant
        second[-1] *= self.constant
        second[:, -1] *= self.constant
        return first, second

    def _split(self, theta: np.ndarray) -> tuple[np.ndarray, float]:
        if not self.constant:
            return theta, 0.0
        return theta[:-1], self.constant * float(theta[-1])

    def _joined(self, sums: np.ndarray, total: float) -> np.ndarray:
        return np.append(sums, self.constant * total) if self.constant else sums

    def _stretches(self) -> list[slice]:
        ends = np.linspace(0, self.n, self.workers.count + 1).astype(int)
        return [slice(a, b) for a, b in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True)]

    def _chunks(self, part: slice) -> list[slice]:
        step = max(_CHUNK // max(self.features, 1), 16)
        return [slice(a, min(a + step, part.stop)) for a in range(part.start, part.stop, step)]

    def _wide(self, chunk: slice) -> np.ndarray:
        return self.X[chunk].astype(np.float64, copy=False)


def _add_gram(rows: np.ndarray, curvature: np.ndarray, hessian: np.ndarray) -> None:
    """Add ``[rows, 1]' diag(curvature) [rows, 1]``."""
    used = np.flatnonzero(curvature > _NOTHING * curvature.max(initial=0.0))
    if len(used) < _MOSTLY * len(rows):
        rows, curvature = rows[used], curvature[used]
    sums = curvature @ rows
    hessian[-1, :-1] += sums
    hessian[:-1, -1] += sums
    hessian[-1, -1] += curvature.sum()
    root = rows * np.sqrt(curvature)[:, None]
    hessian[:-1, :-1] += root.T @ root


@njit(cache=True, nogil=True)
def _csr_values(rows, w, b, start, stop, out):
    for i in range(start, stop):
        out[i] = dot(rows, i, w) + b


@njit(cache=True, nogil=True)
def _csr_combination(rows, beta, start, stop, out):
    for i in range(start, stop):
        if beta[i] != 0:
            add(rows, i, beta[i], out)


@njit(cache=True, nogil=True)
def _csr_gram(rows, curvature, start, stop, out):
    """Add the lower triangle of ``[X, 1]' diag(curvature) [X, 1]``; indices in any order."""
    data, indices, indptr = rows
    last = out.shape[0] - 1
    for i in range(start, stop):
        c = curvature[i]
        if c != 0:
            for k in range(indptr[i], indptr[i + 1]):
                row = indices[k]
                scaled = c * data[k]
                for m in range(indptr[i], k):
                    column = indices[m]
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
def _csr_squared_norms(rows, n, room):
    """Squared lengths of rows whose entries may come in several parts; ``room`` is zeros."""
    data, indices, indptr = rows
    out = np.empty(n)
    for i in range(n):
        total = 0.0
        for k in range(indptr[i], indptr[i + 1]):
            before = room[indices[k]]
            room[indices[k]] = before + data[k]
            total += (before + data[k]) ** 2 - before**2
        for k in range(indptr[i], indptr[i + 1]):
            room[indices[k]] = 0.0
        out[i] = total
    return out
