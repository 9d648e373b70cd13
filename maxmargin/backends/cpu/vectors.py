"""Rows of numbers, dense or CSR, and the products and distances between them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from copy import copy
from typing import Any, NamedTuple, Protocol

import numpy as np
import scipy.sparse as sp

from maxmargin.backends import program as op
from maxmargin.backends.columns import only, squared_lengths, used_columns
from maxmargin.backends.cpu.cancellation import (
    EXPONENT,
    centre_of,
    mend_csr,
    mend_dense,
    roundings,
    too_far_for_float32,
)
from maxmargin.backends.cpu.loops import (
    by_column,
    csr_dot,
    csr_l1,
    csr_products,
    csr_squares,
    exponentiate,
    gaussian,
    l1_dense,
    squared_distances,
)
from maxmargin.backends.cpu.tiles import spread_out, stretches

_SAMPLED_ROWS, _SPARSE_BELOW = 256, 0.25  # share of entries up to which CSR products win
_WRITTEN_OUT = 1 << 20  # entries (8 MB) up to which CSR rows are written out: a bound on memory
# An entry that meets one of the panel's costs as much as so many that are added in vector lanes;
# fewer where the panel is wide: its columns then come from memory (measured, 123 to 200,000)
_MEETING, _MEETING_WIDE, _WIDE = 30.0, 10.0, 4096


class Points(Protocol):
    """The rows of one data set as one primitive sees them.

    ``width`` is the number of entries that one point brings into the cache.
    """

    n: int
    width: int

    def take(self, rows: np.ndarray) -> Points:
        """Keep only these rows."""
        ...

    def as_float32(self, copied: bool) -> Points:
        """Return the same points for tiles in float32, their data copied or not."""
        ...

    def diagonal(self) -> np.ndarray:
        """Value of the primitive between each point and itself, shape (n,)."""
        ...

    def panel(self, rows: np.ndarray) -> Any:
        """Return these rows as the left side of a tile."""
        ...

    def tile(self, panel: Any, start: int, stop: int, out: np.ndarray) -> None:
        """Write the primitive between the panel's rows and points ``start:stop`` into ``out``."""
        ...


class ByColumn(NamedTuple):
    """Sparse rows as the left side of products: the entries of a column are next to each other."""

    begin: np.ndarray
    rows: np.ndarray
    values: np.ndarray


class Panel(NamedTuple):
    """Some rows as the left side of tiles: less the centre, with their sizes, and where to find
    them as they came.
    """

    vectors: np.ndarray | ByColumn
    sizes: np.ndarray
    source: Vectors
    rows: np.ndarray

    def dense(self) -> np.ndarray:
        """Return the rows, written out."""
        if isinstance(self.vectors, ByColumn):
            return self.source.dense(self.rows)
        return self.vectors


class Vectors(ABC):
    """Rows of a real matrix, for products and distances.

    ``index`` are the rows of X that belong to the data set: a subset is a view, not a copy. A
    squared distance is ``|x|^2 + |z|^2 - 2 x . z``, which rounds like ``|x|^2 + |z|^2``. So rows
    that lie far from the origin, against how far they lie apart, are taken less a ``centre``; and
    the distances that are still too small for what they were made of are made again from the
    differences of the rows as they came (:meth:`tile`). ``rate`` is the factor that a distance has
    in the kernel's exponent, infinite where it is not known: what is too small follows from it.
    Tiles are made in ``dtype``: float64, or float32 after :meth:`as_float32`.
    """

    def __init__(
        self,
        X: Any,
        kind: str,
        centre: np.ndarray | None = None,
        rate: float = np.inf,
        dtype: Any = np.float64,
    ):
        self.X, self.kind, self.centre, self.rate = X, kind, centre, rate
        self.dtype = np.dtype(dtype)
        self.n, self.index = X.shape[0], None
        self.columns: np.ndarray | None = None  # of the data as they came, where some are left out
        self._made: dict[str, Any] = {}  # of X, for all subsets
        self.sizes = self._sizes().astype(dtype, copy=False)

    @classmethod
    def prepare(
        cls, X: Any, kind: str, rate: float = np.inf, like: Vectors | None = None
    ) -> Vectors:
        """Vectors of all rows of X, seen from the same centre as those on the other side.

        Products are made of the columns that the first side uses. Few CSR rows that are mostly
        filled are written out: products are faster, and have the bits of the same rows given dense.
        """
        if sp.issparse(X) and _is_worth_writing_out(X):
            X = X.toarray()
        kept = SparseVectors if sp.issparse(X) else DenseVectors
        if kind == op.DOT:
            return _products_over(X, kept, rate, like)
        if like is not None:
            return kept(X, kind, like.centre, rate)
        if kind == op.SQUARED_DISTANCE:
            return kept(X, kind, centre_of(X), rate)
        return kept(X, kind, None, rate)

    @property
    @abstractmethod
    def width(self) -> int:
        """Entries that one row brings into the cache."""

    @property
    def panel_width(self) -> int:
        """Entries that a row has in a panel."""
        return self.X.shape[1]

    @abstractmethod
    def raw(self, rows: slice | np.ndarray) -> np.ndarray:
        """Return these rows, dense, as they came."""

    def dense(self, rows: slice | np.ndarray) -> np.ndarray:
        """Return these rows, dense, in ``dtype``, less the centre."""
        block = self.raw(rows)
        if self.centre is not None:
            block = block - self.centre  # float32 becomes float64 here, one tile at a time
        return block.astype(self.dtype, copy=False)

    def as_float32(self, copied: bool) -> Vectors:
        """Return the same rows for tiles in float32, their data copied or not.

        Where float32 would not know distances that matter, float64 makes them for float32 tiles.
        """
        if self.kind != op.DOT and too_far_for_float32(self.rate, self.sizes):
            return self
        if copied:
            return self._float32_copy()
        return self._with(dtype=np.dtype(np.float32), sizes=self.sizes.astype(np.float32))

    @abstractmethod
    def _float32_copy(self) -> Vectors:
        """Return a float32 copy of these rows, in the form whose products are fastest."""

    @abstractmethod
    def _sizes(self) -> np.ndarray:
        """Return what distances of a row are made of, and round like.

        The squared length of each row less the centre; for L1 distances of CSR rows, which are
        made by correcting a norm, the L1 norm; for those of dense rows nothing cancels: zero.
        """

    @abstractmethod
    def _products(self, panel: Panel, start: int, stop: int, out: np.ndarray) -> None:
        """Write inner products, of rows less the centre, into ``out``."""

    @abstractmethod
    def _l1_distances(self, panel: Panel, start: int, stop: int, out: np.ndarray) -> None:
        """Write L1 distances into ``out``."""

    @abstractmethod
    def _mend(self, panel: Panel, start: int, stop: int, out: np.ndarray) -> None:
        """Make those distances in ``out`` again, from differences, that have cancelled."""

    def _with(self, **changes: Any) -> Any:
        """Return a copy with some attributes changed."""
        other = copy(self)
        other.__dict__.update(changes)
        other.n = other.X.shape[0] if other.index is None else len(other.index)
        if "X" in changes:
            other._made = {}
        return other

    def take(self, rows: np.ndarray) -> Vectors:
        index = rows if self.index is None else self.index[rows]
        return self._with(index=index, sizes=self.sizes[rows])

    def diagonal(self) -> np.ndarray:
        if self.kind != op.DOT:
            return np.zeros(self.n)
        return self.sizes.astype(np.float64, copy=False)

    def panel(self, rows: np.ndarray) -> Panel:
        return Panel(self.dense(rows), self.sizes[rows], self, rows)

    def tile(self, panel: Panel, start: int, stop: int, out: np.ndarray) -> None:
        if out.dtype != self.dtype:  # see as_float32
            values = np.empty(out.shape, dtype=self.dtype)
            self.tile(panel, start, stop, values)
            out[:] = values
            return
        if self.kind == op.L1_DISTANCE:
            self._l1_distances(panel, start, stop, out)
        else:
            self._products(panel, start, stop, out)
        if self.kind == op.SQUARED_DISTANCE:
            squared_distances(panel.sizes, self.sizes[start:stop], out)
        if self._may_cancel(panel, start, stop):
            self._mend(panel, start, stop, out)

    def gaussian_tile(
        self, panel: Panel, start: int, stop: int, rate: float, out: np.ndarray
    ) -> None:
        """Write ``exp(rate * squared distance)`` into ``out``: the whole RBF kernel in one pass."""
        if out.dtype != self.dtype or self._may_cancel(panel, start, stop):
            self.tile(panel, start, stop, out)
            exponentiate(out.dtype.type(rate), out)
            return
        self._products(panel, start, stop, out)
        gaussian(panel.sizes, self.sizes[start:stop], out.dtype.type(rate), out)

    def _may_cancel(self, panel: Panel, start: int, stop: int) -> bool:
        """Whether a distance of this tile may have lost digits that the kernel's value needs."""
        if self.kind == op.DOT or self.dtype == np.float32:
            return False  # what float32 loses, the certificate finds
        largest = panel.sizes.max(initial=0.0) + self.sizes[start:stop].max(initial=0.0)
        return not largest <= self._limit

    @property
    def _limit(self) -> float:
        """Size up to which cancelling does not matter to the kernel's value."""
        return EXPONENT / self.rate if self.rate > 0 else np.inf

    @property
    def rounding(self) -> float:
        """Roundings, in units of float64's, that a kernel's value has from the primitive.

        A product's are relative to the lengths of its factors. A distance's are those of the
        exponential of ``-rate`` times it, see decision 0014.
        """
        return roundings(self.kind, self._terms(), self.rate, float(self.sizes.max(initial=0.0)))

    @abstractmethod
    def _terms(self) -> float:
        """Return the most terms that a product of two rows has."""

    def gathered(self) -> Vectors:
        """Return the same rows, next to each other in memory."""
        if self.index is None:
            return self
        return self._with(X=self.X[self.index], index=None)

    def compact(self) -> Vectors:
        """Return the same rows in the form whose products are fastest, copied if it is another."""
        return self

    def _at(self, rows: slice | np.ndarray) -> slice | np.ndarray:
        """Places of these rows in X."""
        return rows if self.index is None else self.index[rows]


class DenseVectors(Vectors):
    """Dense rows, float32 or float64."""

    @property
    def width(self) -> int:
        return self.X.shape[1]

    def raw(self, rows: slice | np.ndarray) -> np.ndarray:
        return self.X[self._at(rows)]

    def _terms(self) -> float:
        return float(self.X.shape[1])

    def as_float32(self, copied: bool) -> Vectors:
        if self.kind != op.L1_DISTANCE or self.centre is not None:
            return super().as_float32(copied)
        centre = centre_of(self.X)  # differences in float64 need none, float32 rows do
        if centre is None:
            centre = np.zeros(self.width)
        sizes = np.empty(self.n)
        for start, stop in stretches(self.n, self.width):
            sizes[start:stop] = np.abs(self.raw(slice(start, stop)) - centre).sum(axis=1)
        if too_far_for_float32(self.rate, sizes):
            return self
        return self._with(centre=centre).as_float32(copied)

    def _float32_copy(self) -> Vectors:
        if self._mostly_zero():
            return self.compact()._float32_copy()
        block = np.empty((self.n, self.width), dtype=np.float32)
        for start, stop in stretches(self.n, self.width):
            block[start:stop] = self.dense(slice(start, stop))
        sizes = self.sizes.astype(np.float32)
        return self._with(X=block, centre=None, index=None, sizes=sizes, dtype=block.dtype)

    def compact(self) -> Vectors:
        if not self._mostly_zero():
            return self
        X = sp.csr_array(self.X if self.index is None else self.X[self.index])
        return SparseVectors(X, self.kind, self.centre, self.rate, self.dtype)

    def _mostly_zero(self) -> bool:
        """Whether so few entries are nonzero, by a sample of rows, that CSR is faster."""
        sample = self.raw(spread_out(self.n, _SAMPLED_ROWS))
        return bool(np.count_nonzero(sample) < _SPARSE_BELOW * sample.size)

    def _sizes(self) -> np.ndarray:
        sizes = np.zeros(self.n)
        if self.kind == op.L1_DISTANCE:
            return sizes
        for start, stop in stretches(self.n, self.width):
            block = self.dense(slice(start, stop))
            np.einsum("ij,ij->i", block, block, out=sizes[start:stop])
        return sizes

    def _products(self, panel: Panel, start: int, stop: int, out: np.ndarray) -> None:
        with np.errstate(over="ignore", invalid="ignore"):  # mended, or refused
            np.dot(panel.dense(), self.dense(slice(start, stop)).T, out=out)

    def _l1_distances(self, panel: Panel, start: int, stop: int, out: np.ndarray) -> None:
        l1_dense(panel.dense(), self.dense(slice(start, stop)), out)

    def _mend(self, panel: Panel, start: int, stop: int, out: np.ndarray) -> None:
        if self.kind == op.L1_DISTANCE:
            return
        left = panel.source.raw(panel.rows)
        right, sizes = self.raw(slice(start, stop)), self.sizes[start:stop]
        mend_dense(left, panel.sizes, right, sizes, self._limit, out)


class SparseVectors(Vectors):
    """CSR rows; they stay sparse, only the rows of a panel are written out.

    The centre is zero but in columns that are mostly filled, so rows less the centre are sparse
    too.
    """

    @property
    def width(self) -> int:
        return max(self.X.nnz // max(self.X.shape[0], 1), 1)

    def raw(self, rows: slice | np.ndarray) -> np.ndarray:
        return self.X[self._at(rows)].toarray()

    def _terms(self) -> float:
        return float(np.diff(self.X.indptr).max(initial=0))

    @property
    def _centred(self) -> Any:
        """CSR rows less the centre; made with the first tile."""
        if self.centre is None:
            return self.X
        if "centred" not in self._made:
            self._made["centred"] = _less(self.X, self.centre)
        return self._made["centred"]

    def _float32_copy(self) -> Vectors:
        X = self._centred if self.index is None else self._centred[self.index]
        parts = X.data.astype(np.float32), X.indices, X.indptr  # the pattern is shared
        X = sp.csr_array(parts, shape=X.shape)
        sizes = self.sizes.astype(np.float32)
        return self._with(X=X, centre=None, index=None, sizes=sizes, dtype=np.dtype(np.float32))

    def _sizes(self) -> np.ndarray:
        X = self.X
        if self.kind == op.L1_DISTANCE:
            return np.asarray(abs(X).sum(axis=1), dtype=np.float64).reshape(-1)
        centre = np.zeros(X.shape[1]) if self.centre is None else self.centre
        return csr_squares(X.indptr, X.indices, X.data, centre, np.flatnonzero(centre))

    @property
    def panel_width(self) -> int:
        return self.width if self._scattered else self.X.shape[1]

    @property
    def _scattered(self) -> bool:
        """Whether so few entries of two rows meet that products are made entry by entry.

        Two rows have ``sum_c p_c^2`` columns in common, where column c is filled in a share ``p_c``
        of the rows; a row has ``sum_c p_c`` entries.
        """
        if self.kind == op.L1_DISTANCE or self.centre is not None:
            return False
        if "scattered" not in self._made:
            rows, columns = self.X.shape
            share = np.bincount(self.X.indices, minlength=1) / max(rows, 1)
            cost = _MEETING if columns <= _WIDE else _MEETING_WIDE
            self._made["scattered"] = bool(cost * (share @ share) < share.sum())
        return self._made["scattered"]

    def panel(self, rows: np.ndarray) -> Panel:
        if not self._scattered:
            return super().panel(rows)
        X = self.X[self._at(rows)]
        values = X.data.astype(self.dtype, copy=False)
        entries = by_column(X.indptr, X.indices, values, X.shape[1])
        return Panel(ByColumn(*entries), self.sizes[rows], self, rows)

    def _products(self, panel: Panel, start: int, stop: int, out: np.ndarray) -> None:
        stretch = self._stretch(self._centred, start, stop)
        if isinstance(panel.vectors, ByColumn):
            csr_products(*stretch, *panel.vectors, out)
            return
        columns = np.ascontiguousarray(panel.vectors.T)  # the inner loop runs over the panel's rows
        csr_dot(*stretch, columns, out)

    def _l1_distances(self, panel: Panel, start: int, stop: int, out: np.ndarray) -> None:
        vectors = panel.dense()
        columns, norms = np.ascontiguousarray(vectors.T), np.abs(vectors).sum(axis=1)
        csr_l1(*self._stretch(self.X, start, stop), columns, norms, out)

    def _mend(self, panel: Panel, start: int, stop: int, out: np.ndarray) -> None:
        left, sizes = panel.source.raw(panel.rows), panel.sizes
        own, squared = self.sizes[start:stop], self.kind == op.SQUARED_DISTANCE
        if not squared:  # a dense panel has no norms at hand
            sizes = np.abs(left).sum(axis=1, dtype=np.float64)
        stretch = self._stretch(self.X, start, stop)
        mend_csr(left, sizes, *stretch, own, squared, self._limit, out)

    def _stretch(self, X: Any, start: int, stop: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """``(indptr, indices, data)`` of rows ``start:stop``."""
        if self.index is None:
            return X.indptr[start : stop + 1], X.indices, X.data
        part = X[self.index[start:stop]]
        return part.indptr, part.indices, part.data


def _products_over(X: Any, kept: Any, rate: float, like: Vectors | None) -> Vectors:
    """Rows for products: only columns that are used on the side that was there first."""
    columns = like.columns if like is not None else used_columns(X) if sp.issparse(X) else None
    if columns is None:
        return kept(X, op.DOT, None, rate)
    vectors = kept(only(X, columns), op.DOT, None, rate)
    vectors.columns = columns
    vectors.sizes = squared_lengths(X)  # of whole rows
    return vectors


def _is_worth_writing_out(X: Any) -> bool:
    """Whether CSR rows take little memory when dense, and are not mostly zero."""
    size = X.shape[0] * X.shape[1]
    return _SPARSE_BELOW * size <= X.nnz and size <= _WRITTEN_OUT


def _less(X: Any, centre: np.ndarray) -> Any:
    """CSR rows less a centre that is zero in most columns."""
    columns = np.flatnonzero(centre)
    n = X.shape[0]
    indptr = np.arange(n + 1) * len(columns)
    parts = np.tile(centre[columns], n), np.tile(columns, n), indptr
    return sp.csr_array(X, dtype=np.float64) - sp.csr_array(parts, shape=X.shape)
