"""Columns that sparse data use: a product of two rows needs only those that both sides have."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

_TABLE = 1 << 22  # columns up to which a table of them is made; beyond, they are searched
_FEW = 0.5  # share of the columns up to which a narrower copy pays


def used_columns(X: Any) -> np.ndarray | None:
    """Columns in which CSR data have entries, sorted; None where these are most of all.

    >>> import scipy.sparse as sp
    >>> used_columns(sp.csr_array(([1.0, 2.0], [7, 10**12], [0, 1, 2]), shape=(2, 1 << 60)))
    array([            7, 1000000000000])
    """
    width = X.shape[1]
    if X.nnz >= width:  # a mask of all columns is smaller than the indices
        there = np.zeros(width, dtype=bool)
        there[X.indices] = True
        columns = np.flatnonzero(there)
    else:
        columns = np.unique(X.indices)
    return columns if len(columns) <= _FEW * width else None


def only(X: Any, columns: np.ndarray) -> Any:
    """Return some columns of the data, as an array or CSR; entries elsewhere are left out."""
    if not sp.issparse(X):
        return np.ascontiguousarray(X[:, columns])
    place = _places(X, columns)
    kept = place >= 0
    counted = np.concatenate([[0], np.cumsum(kept)])
    parts = X.data[kept], place[kept], counted[X.indptr]
    return sp.csr_array(parts, shape=(X.shape[0], len(columns)))


def _places(X: Any, columns: np.ndarray) -> np.ndarray:
    """Place among the columns of every entry; -1 for those that are elsewhere."""
    if X.shape[1] <= _TABLE + X.nnz:
        table = np.full(X.shape[1], -1, dtype=np.int32)
        table[columns] = np.arange(len(columns))
        return table[X.indices]
    if not len(columns):
        return np.full(X.nnz, -1)
    place = np.minimum(np.searchsorted(columns, X.indices), len(columns) - 1)
    return np.where(columns[place] == X.indices, place, -1)


def squared_lengths(X: Any) -> np.ndarray:
    """Squared length of every row, (n,), in float64."""
    if not sp.issparse(X):
        return np.einsum("ij,ij->i", X, X, dtype=np.float64)
    row = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    return np.bincount(row, np.square(X.data, dtype=np.float64), minlength=X.shape[0])
