"""Kernel values on the CPU: BLAS products or sparse loops, then one pass in cache per tile.

A tile is a handful of rows of the left data set against a stretch of the right one, small enough
to stay in the cache from the product to the finished kernel value. Data stay as they are, dense
float32 or float64 or CSR: only the tile in work is widened to float64, and for distances at least
its left side is centred.
"""

from __future__ import annotations

import math
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy
from typing import Any, NamedTuple, Protocol

import numpy as np
import scipy.sparse as sp
from numba import types
from numba.extending import overload
from sklearn.utils import _safe_indexing

from maxmargin.backends import program as op
from maxmargin.backends.compiled import njit
from maxmargin.backends.program import Program, View
from maxmargin.backends.threads import ALONE, Workers

# Sizes of a pair, times the kernel's rate, up to which a distance need not be exact: what cancels
# in it is then a rounding of so many units in the exponent. Beyond, distances count that are less
# than 1 / (e EXPONENT) of the sizes; the exponential of larger ones is small enough. Lower is
# more exact, and sends more pairs of ordinary data through differences.
EXPONENT = 32.0
CANCELLED = math.e * EXPONENT
REACH32 = 2.0**17  # the same for float32 tiles, which need not be exact, only near
DEVIATION32 = 0.5 * float(np.finfo(np.float32).eps) / 3**0.5  # of a value near one, rounded
TILE_BYTES = 1 << 20  # product, pass and result share the L2 cache
PANEL_ROWS, PANEL_ENTRIES = 256, 1 << 21
_CHUNK = 512
_KEPT, _KEPT_ROOMS = 4 << 20, 2  # bytes of a room that a thread keeps, and how many
_DIAGONAL_BLOCK = 16
_PANEL = 64  # rows of one product in compiled code
_FAR = 0.25  # squared length of the centre, over that of rows less it, from which it is used
_CENTRE_ROWS = 64  # that a median is taken of
_SAMPLED_ROWS, _SPARSE_BELOW = 256, 0.25  # share of entries up to which CSR products win


class Points(Protocol):
    """The rows of one data set as one primitive sees them.

    ``width`` is the number of entries that one point brings into the cache.
    """

    n: int
    width: int

    def take(self, rows: np.ndarray) -> Points:
        """Keep only these rows."""
        ...

    def narrow(self, copied: bool) -> Points:
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


class Panel(NamedTuple):
    """Some rows as the left side of tiles: less the centre, with their sizes, and where to find
    them as they came.
    """

    vectors: np.ndarray
    sizes: np.ndarray
    source: Vectors
    rows: np.ndarray


class Vectors(ABC):
    """Rows of a real matrix, for products and distances.

    ``index`` are the rows of X that belong to the data set: a subset is a view, not a copy. A
    squared distance is ``|x|^2 + |z|^2 - 2 x . z``, which rounds like ``|x|^2 + |z|^2``. So rows
    that lie far from the origin, against how far they lie apart, are taken less a ``centre``; and
    the distances that are still too small for what they were made of are made again from the
    differences of the rows as they came (:meth:`tile`). ``rate`` is the factor that a distance has
    in the kernel's exponent, infinite where it is not known: what is too small follows from it.
    Tiles are made in ``dtype``: float64, or float32 after :meth:`narrow`.
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
        self._made: dict[str, Any] = {}  # of X, for all subsets
        self.sizes = self._sizes().astype(dtype, copy=False)

    @classmethod
    def prepare(
        cls, X: Any, kind: str, rate: float = np.inf, like: Vectors | None = None
    ) -> Vectors:
        """Vectors of all rows of X, seen from the same centre as those on the other side."""
        kept = SparseVectors if sp.issparse(X) else DenseVectors
        if like is not None:
            return kept(X, kind, like.centre, rate)
        if kind == op.SQUARED_DISTANCE:
            return kept(X, kind, centre_of(X), rate)
        return kept(X, kind, None, rate)

    @property
    @abstractmethod
    def width(self) -> int:
        """Entries that one row brings into the cache."""

    @abstractmethod
    def raw(self, rows: slice | np.ndarray) -> np.ndarray:
        """Return these rows, dense, as they came."""

    def dense(self, rows: slice | np.ndarray) -> np.ndarray:
        """Return these rows, dense, in ``dtype``, less the centre."""
        block = self.raw(rows)
        if self.centre is not None:
            block = block - self.centre  # float32 becomes float64 here, one tile at a time
        return block.astype(self.dtype, copy=False)

    def narrow(self, copied: bool) -> Vectors:
        """Return the same rows for tiles in float32, their data copied or not.

        Where float32 would not know distances that matter, float64 makes them for float32 tiles.
        """
        if self.kind != op.DOT and too_far_for_float32(self.rate, self.sizes):
            return self
        if copied:
            return self._narrow_copy()
        return self._with(dtype=np.dtype(np.float32), sizes=self.sizes.astype(np.float32))

    @abstractmethod
    def _narrow_copy(self) -> Vectors:
        """Return a float32 copy of these rows, in the form whose products are fastest."""

    @abstractmethod
    def _sizes(self) -> np.ndarray:
        """Return what distances of a row are made of, and round like.

        The squared length of each row less the centre; for L1 distances of CSR rows, which are
        made by correcting a norm, the L1 norm; for those of dense rows nothing cancels: zero.
        """

    @abstractmethod
    def _products(self, vectors: np.ndarray, start: int, stop: int, out: np.ndarray) -> None:
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
        if out.dtype != self.dtype:  # see narrow
            values = np.empty(out.shape, dtype=self.dtype)
            self.tile(panel, start, stop, values)
            out[:] = values
            return
        if self.kind == op.L1_DISTANCE:
            self._l1_distances(panel, start, stop, out)
        else:
            self._products(panel.vectors, start, stop, out)
        if self.kind == op.SQUARED_DISTANCE:
            _squared_distances(panel.sizes, self.sizes[start:stop], out)
        if self._may_cancel(panel, start, stop):
            self._mend(panel, start, stop, out)

    def gaussian_tile(
        self, panel: Panel, start: int, stop: int, rate: float, out: np.ndarray
    ) -> None:
        """Write ``exp(rate * squared distance)`` into ``out``: the whole RBF kernel in one pass."""
        if out.dtype != self.dtype or self._may_cancel(panel, start, stop):
            self.tile(panel, start, stop, out)
            _exponential(out.dtype.type(rate), out)
            return
        self._products(panel.vectors, start, stop, out)
        _gaussian(panel.sizes, self.sizes[start:stop], out.dtype.type(rate), out)

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

    def narrow(self, copied: bool) -> Vectors:
        if self.kind != op.L1_DISTANCE or self.centre is not None:
            return super().narrow(copied)
        centre = centre_of(self.X)  # differences in float64 need none, float32 rows do
        if centre is None:
            centre = np.zeros(self.width)
        sizes = np.empty(self.n)
        for start, stop in _stretches(self.n, self.width):
            sizes[start:stop] = np.abs(self.raw(slice(start, stop)) - centre).sum(axis=1)
        if too_far_for_float32(self.rate, sizes):
            return self
        return self._with(centre=centre).narrow(copied)

    def _narrow_copy(self) -> Vectors:
        if self._mostly_zero():
            return self.compact()._narrow_copy()
        block = np.empty((self.n, self.width), dtype=np.float32)
        for start, stop in _stretches(self.n, self.width):
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
        for start, stop in _stretches(self.n, self.width):
            block = self.dense(slice(start, stop))
            np.einsum("ij,ij->i", block, block, out=sizes[start:stop])
        return sizes

    def _products(self, vectors: np.ndarray, start: int, stop: int, out: np.ndarray) -> None:
        np.dot(vectors, self.dense(slice(start, stop)).T, out=out)

    def _l1_distances(self, panel: Panel, start: int, stop: int, out: np.ndarray) -> None:
        _l1_dense(panel.vectors, self.dense(slice(start, stop)), out)

    def _mend(self, panel: Panel, start: int, stop: int, out: np.ndarray) -> None:
        if self.kind == op.L1_DISTANCE:
            return
        left = panel.source.raw(panel.rows)
        right, sizes = self.raw(slice(start, stop)), self.sizes[start:stop]
        _mend_dense(left, panel.sizes, right, sizes, self._limit, out)


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

    def _narrow_copy(self) -> Vectors:
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
        return _csr_squares(X.indptr, X.indices, X.data, centre, np.flatnonzero(centre))

    def _products(self, vectors: np.ndarray, start: int, stop: int, out: np.ndarray) -> None:
        columns = np.ascontiguousarray(vectors.T)  # the inner loop runs over the panel's rows
        _csr_dot(*self._stretch(self._centred, start, stop), columns, out)

    def _l1_distances(self, panel: Panel, start: int, stop: int, out: np.ndarray) -> None:
        columns = np.ascontiguousarray(panel.vectors.T)
        norms = np.abs(panel.vectors).sum(axis=1)
        _csr_l1(*self._stretch(self.X, start, stop), columns, norms, out)

    def _mend(self, panel: Panel, start: int, stop: int, out: np.ndarray) -> None:
        left, sizes = panel.source.raw(panel.rows), panel.sizes
        own, squared = self.sizes[start:stop], self.kind == op.SQUARED_DISTANCE
        if not squared:  # a dense panel has no norms at hand
            sizes = np.abs(left).sum(axis=1, dtype=np.float64)
        stretch = self._stretch(self.X, start, stop)
        _mend_csr(left, sizes, *stretch, own, squared, self._limit, out)

    def _stretch(self, X: Any, start: int, stop: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """``(indptr, indices, data)`` of rows ``start:stop``."""
        if self.index is None:
            return X.indptr[start : stop + 1], X.indices, X.data
        part = X[self.index[start:stop]]
        return part.indptr, part.indices, part.data


def roundings(kind: str, terms: float, rate: float, largest: float) -> float:
    """Roundings of a primitive of so many terms between rows of this largest size."""
    if kind == op.DOT:
        return terms + 6.0
    lost = 2.0 * CANCELLED if not np.isfinite(rate) else 2.0 * min(EXPONENT, 2.0 * rate * largest)
    return (terms + 6.0) * (1.0 + lost)


def too_far_for_float32(rate: float, sizes: np.ndarray) -> bool:
    """Whether a row is so long that its distance from itself, or its like, would be noise."""
    if not np.isfinite(rate):
        rate = 1.0 / max(float(np.median(sizes)), np.finfo(np.float64).tiny)
    return bool((rate * sizes > REACH32).any())


def centre_of(X: Any) -> np.ndarray | None:
    """Medians of the columns, by a sample of rows, where they are far from zero; otherwise None.

    Far is: against how far the rows are from them. A mean would be where one row far from all
    others draws it.
    """
    n, d = X.shape
    sample = X[spread_out(n, _CENTRE_ROWS)]
    if sp.issparse(X):
        filled = np.flatnonzero(2 * np.bincount(sample.indices, minlength=d) > sample.shape[0])
        sample = sample[:, filled].toarray() if len(filled) else np.zeros((1, 0))
    else:
        filled = np.arange(d)
    medians = _medians(sample) if sample.size else np.zeros(0)
    spread = _medians(np.square(sample - medians).sum(axis=1)) if sample.size else 0.0
    if not medians @ medians > _FAR * spread:
        return None
    centre = np.zeros(d)
    centre[filled] = medians
    return centre


def _medians(values: np.ndarray) -> Any:
    """Medians of the columns: what ``np.median`` says, which takes its time over a few values."""
    ordered = np.sort(values, axis=0).astype(np.float64, copy=False)
    last = len(ordered) - 1
    return 0.5 * (ordered[last // 2] + ordered[last - last // 2])


def _less(X: Any, centre: np.ndarray) -> Any:
    """CSR rows less a centre that is zero in most columns."""
    columns = np.flatnonzero(centre)
    n = X.shape[0]
    indptr = np.arange(n + 1) * len(columns)
    parts = np.tile(centre[columns], n), np.tile(columns, n), indptr
    return sp.csr_array(X, dtype=np.float64) - sp.csr_array(parts, shape=X.shape)


class GivenMatrix:
    """Points of a matrix of kernel values: the ``rows`` and the columns (``index``) they own."""

    width = 1

    def __init__(self, K: np.ndarray, rows: np.ndarray | None = None, index: Any = None):
        self.K = K
        self.untouched = rows is None and index is None
        self.rows = np.arange(K.shape[0]) if rows is None else rows
        self.index = np.arange(K.shape[1]) if index is None else index
        self.n = len(self.rows)

    def take(self, rows: np.ndarray) -> GivenMatrix:
        return GivenMatrix(self.K, self.rows[rows], self.index[rows])

    def narrow(self, copied: bool) -> GivenMatrix:
        return self

    def diagonal(self) -> np.ndarray:
        return self.K[self.rows, self.index].astype(np.float64)

    def panel(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self.K, self.rows[rows]

    def tile(
        self, panel: tuple[np.ndarray, np.ndarray], start: int, stop: int, out: np.ndarray
    ) -> None:
        K, rows = panel
        _gather(K, rows, self.index[start:stop], out)

    @property
    def is_whole(self) -> bool:
        """Whether the matrix is, as it is, that of the values between all points in float64."""
        return self.untouched and self.K.dtype == np.float64 and self.K.flags.c_contiguous

    def whole(self) -> np.ndarray:
        """Return the values between all points in float64; where it is that, the matrix itself."""
        if self.is_whole:
            return self.K
        out = np.empty((self.n, self.n))
        _gather(self.K, self.rows, self.index, out)
        return out


class FunctionValues:
    """Points of any type, compared by a Python function of two collections of them."""

    width = 1

    def __init__(self, X: Any, n: int, function: Any):
        self.X, self.n, self.function = X, n, function

    def take(self, rows: np.ndarray) -> FunctionValues:
        return FunctionValues(_safe_indexing(self.X, rows), len(rows), self.function)

    def narrow(self, copied: bool) -> FunctionValues:
        return self

    def diagonal(self) -> np.ndarray:
        values = np.empty(self.n)
        for start in range(0, self.n, _DIAGONAL_BLOCK):
            part = np.arange(start, min(start + _DIAGONAL_BLOCK, self.n))
            points = self.panel(part)
            values[part] = np.diag(self._call(points, points, (len(part), len(part))))
        return values

    def panel(self, rows: np.ndarray) -> Any:
        return _safe_indexing(self.X, rows)

    def tile(self, panel: Any, start: int, stop: int, out: np.ndarray) -> None:
        out[:] = self._call(panel, self.panel(np.arange(start, stop)), out.shape)

    def whole(self) -> np.ndarray:
        """Return the values between all points in float64: what the function returns, if that."""
        values = self._call(self.X, self.X, (self.n, self.n))
        return np.ascontiguousarray(values, dtype=np.float64)

    def _call(self, rows: Any, columns: Any, shape: tuple[int, ...]) -> np.ndarray:
        try:
            values = self.function(rows, columns)
        except Exception as error:
            error.add_note(
                "This was raised by the kernel function. It gets two collections of points, here "
                f"{shape[0]} and {shape[1]} of them, and must return the matrix of its values for "
                "all pairs, as `lambda A, B: A @ B.T` does."
            )
            raise
        values = np.asarray(values.toarray() if sp.issparse(values) else values)
        if values.shape != shape:
            raise ValueError(
                f"The kernel function returned an array of shape {values.shape} for "
                f"{shape[0]} rows and {shape[1]} columns; it must return one value per pair, "
                f"that is shape {shape}."
            )
        if values.dtype.kind not in "fiub":
            raise ValueError(
                f"The kernel function returned {values.dtype} values; it must return real numbers."
                + (" Complex data not supported." if values.dtype.kind == "c" else "")
            )
        return values


@njit(cache=True, nogil=True)
def _gather(K, rows, columns, out):
    """Write the values at some rows and columns into ``out``."""
    for i in range(rows.shape[0]):
        row = K[rows[i]]
        for j in range(columns.shape[0]):
            out[i, j] = row[columns[j]]


@njit(cache=True, nogil=True, fastmath={"nsz", "reassoc"})
def total_asymmetry(K):
    """Sum of all differences between a matrix and its mirror image: soon known, unlike the largest.

    Tile by tile, since one of the two is read against its order in memory.
    """
    n, total = K.shape[0], 0.0
    for first in range(0, n, 64):
        last = min(first + 64, n)
        for start in range(0, last, 64):
            for i in range(first, last):
                for j in range(start, min(start + 64, n)):
                    total += abs(K[i, j] - K[j, i])
    return total


@njit(cache=True, nogil=True, fastmath={"nnan", "nsz"})
def asymmetry(K, mirrored):
    """Largest size of the values ``K``, and by how much they differ from ``mirrored.T``.

    Tile by tile, since one of the two is read against its order in memory. Of a matrix and itself
    one half will do.
    """
    largest = 0.0
    difference = 0.0
    half = K.shape[0] == mirrored.shape[0] and K.shape[1] == mirrored.shape[1]
    for first in range(0, K.shape[0], 64):
        last = min(first + 64, K.shape[0])
        for start in range(0, last if half else K.shape[1], 64):
            for i in range(first, last):
                for j in range(start, min(start + 64, K.shape[1])):
                    value = np.float64(K[i, j])
                    away = abs(value - np.float64(mirrored[j, i]))
                    if abs(value) > largest:
                        largest = abs(value)
                    if away > difference:
                        difference = away
    return largest, difference


class Operand:
    """One side of a kernel matrix: a data set as every primitive of a programme sees it."""

    def __init__(self, primitives: list, factors: np.ndarray, n: int, dtype: Any = np.float64):
        self.primitives, self.factors, self.n = primitives, factors, n
        self.dtype = np.dtype(dtype)

    @property
    def dimension(self) -> int:
        """Length of the longest row that a panel of these points holds."""
        vectors = [points for points in self.primitives if isinstance(points, Vectors)]
        return max((points.X.shape[1] for points in vectors), default=1)

    @classmethod
    def prepare(
        cls, program: Program, X: Any, like: Operand | None = None, shared: bool = False
    ) -> Operand:
        """Look at X through the programme's views.

        ``like`` is the operand on the other side: both are seen from its centres. ``shared``
        primitives are exact enough for every kernel that is made of them.
        """
        n = X.shape[0] if hasattr(X, "shape") else len(X)
        seen: list[tuple[View, Any]] = []
        primitives: list[Any] = []
        for k, primitive in enumerate(program.primitives):
            data = _view(X, primitive.view, seen)
            rate = np.inf if shared else program.rates[k]
            if primitive.kind == op.PRECOMPUTED:
                primitives.append(GivenMatrix(data))
            elif primitive.kind == op.FUNCTION:
                primitives.append(FunctionValues(data, n, primitive.function))
            else:
                data = canonical(data) if sp.issparse(data) else np.ascontiguousarray(data)
                other = like.primitives[k] if like else None
                primitives.append(Vectors.prepare(data, primitive.kind, rate, other))
        factors = np.empty((len(program.factors), n))
        for k, factor in enumerate(program.factors):
            values = np.asarray(factor.function(_view(X, factor.view, seen)))
            if values.size != n or values.dtype.kind not in "fiub":
                raise ValueError(
                    f"f(X) in f(x) k(x, z) f(z) returned {values.size} values of type "
                    f"{values.dtype} for {n} rows; it must return one real number per row."
                )
            factors[k] = values.reshape(n)
        return cls(primitives, factors, n)

    @classmethod
    def of_columns(cls, program: Program, index: np.ndarray) -> Operand:
        """Training points of which only their columns in a precomputed matrix are known."""
        points = [GivenMatrix(np.empty((0, 0)), index, index) for _ in program.primitives]
        return cls(points, np.empty((0, len(index))), len(index))

    def take(self, rows: np.ndarray) -> Operand:
        """Return the operand of a subset of the points, sharing their data."""
        taken = [primitive.take(rows) for primitive in self.primitives]
        return Operand(taken, np.ascontiguousarray(self.factors[:, rows]), len(rows), self.dtype)

    def under(self, program: Program) -> Operand:
        """Return the same points for another kernel over the same primitives."""
        rated = [
            p._with(rate=rate) if isinstance(p, Vectors) else p
            for p, rate in zip(self.primitives, program.rates, strict=True)
        ]
        return Operand(rated, self.factors, self.n, self.dtype)

    def gathered(self) -> Operand:
        """Return the same points with their data next to each other in memory."""
        gathered = [p.gathered() if isinstance(p, Vectors) else p for p in self.primitives]
        return Operand(gathered, self.factors, self.n, self.dtype)

    def compact(self) -> Operand:
        """Return the same points as the right side of many tiles: mostly zero data as CSR."""
        compacted = [p.compact() if isinstance(p, Vectors) else p for p in self.primitives]
        return Operand(compacted, self.factors, self.n, self.dtype)

    def narrow(self, copied: bool = True) -> Operand:
        """Return the same points for tiles in float32, their data copied or converted by tile."""
        narrowed = [primitive.narrow(copied) for primitive in self.primitives]
        return Operand(narrowed, self.factors.astype(np.float32), self.n, np.float32)

    @property
    def fits_float32(self) -> bool:
        """Whether squared lengths are in a range where float32 neither over- nor underflows."""
        vectors = [points for points in self.primitives if isinstance(points, Vectors)]
        largest = [float(points.sizes.max(initial=0.0)) for points in vectors]
        return all(value == 0.0 or 1e-30 < value < 1e30 for value in largest)

    def rounding(self, program: Program) -> float:
        """Bound on the error of a kernel value: see :meth:`Program.rounding`."""
        vectors = (points if isinstance(points, Vectors) else None for points in self.primitives)
        return program.rounding([0.0 if v is None else v.rounding for v in vectors])

    @property
    def entry_time(self) -> float:
        """About how long a kernel value between these points takes, in nanoseconds."""
        return 0.5 + sum(
            0.02 * points.width if isinstance(points, DenseVectors) else 0.05 * points.width
            for points in self.primitives
        )

    @property
    def narrow_bytes(self) -> int:
        """What :meth:`narrow` allocates."""
        vectors = [points for points in self.primitives if isinstance(points, Vectors)]
        return sum(4 * points.n * (points.width + 1) for points in vectors)


def primitive_rows(left: Operand, rows: np.ndarray, right: Operand, out: np.ndarray) -> None:
    """Write every primitive between ``left[rows]`` and all of ``right`` into ``out`` (p, q, n)."""
    for part, panels in _panels(left, rows):
        for start, stop in _stretches(right.n, _tile_width(right, part)):
            tiles = np.empty((len(panels), part.stop - part.start, stop - start))
            for points, panel, tile in zip(right.primitives, panels, tiles, strict=True):
                points.tile(panel, start, stop, tile)
            out[:, part, start:stop] = tiles


def kernel_rows(
    program: Program,
    left: Operand,
    rows: np.ndarray,
    right: Operand,
    out: np.ndarray,
    workers: Workers = ALONE,
    places: np.ndarray | None = None,
) -> None:
    """Write the kernel values between ``left[rows]`` and all of ``right`` into ``out`` (q, n).

    Row k goes to ``out[places[k]]``, or to ``out[k]`` without places.
    """
    for part, panels in _panels(left, rows):
        place: Any = part if places is None else places[part]

        def fill(span: tuple[int, int], part: slice = part, panels: list = panels) -> None:
            for start, stop, values in _values(program, left, rows[part], panels, right, span):
                out[place, start:stop] = values  # noqa: B023 - run before the next panel

        workers.map(fill, spans(right.n, workers.count))


class DensePoints(NamedTuple):
    """Dense points under a Gaussian kernel, for compiled code that makes rows of it itself.

    Without rows in X it cannot: see :meth:`of`.
    """

    X: np.ndarray
    squares: np.ndarray
    diagonal: np.ndarray
    rate: np.float32

    @classmethod
    def of(cls, program: Program, points: Operand, diagonal: np.ndarray) -> DensePoints:
        """Points as the engine has them; X stays empty unless they are one dense float32 matrix.

        It also does for kernels that are not Gaussian: the interpreter of programmes would triple
        the time that the caller takes to compile.
        """
        X, squares = np.empty((0, 1), np.float32), np.empty(0, np.float32)
        if program.gaussian_rate is None:
            return cls(X, squares, diagonal, np.float32(0.0))
        vectors = points.primitives[0]
        plain = vectors.index is None and vectors.centre is None
        if plain and isinstance(vectors, DenseVectors) and vectors.dtype == np.float32:
            X, squares = vectors.X, vectors.sizes
        return cls(X, squares, diagonal, np.float32(program.gaussian_rate))


def kernel_square(
    program: Program,
    points: Operand,
    rows: np.ndarray | None,
    out: np.ndarray,
    workers: Workers = ALONE,
) -> None:
    """Write the symmetric matrix of the kernel values among ``points[rows]`` into ``out``.

    Without rows, among all points.
    """
    chosen = points if rows is None else points.take(rows).gathered()
    order = np.arange(chosen.n)
    step = _panel_rows(chosen)

    def fill(first: int) -> None:
        part = slice(first, min(first + step, chosen.n))
        ((_, panels),) = _panels(chosen, order[part])
        span = (first, chosen.n)
        for start, stop, values in _values(program, chosen, order[part], panels, chosen, span):
            out[part, start:stop] = values
            _transpose(
                values[:, max(part.stop - start, 0) :], out[max(start, part.stop) : stop, part]
            )

    workers.map(fill, range(0, chosen.n, step))


def accumulate(
    program: Program,
    left: Operand,
    rows: np.ndarray,
    coefficients: np.ndarray,
    right: Operand,
    out: np.ndarray,
    workers: Workers = ALONE,
) -> None:
    """Add ``sum_i coefficients_i k(left[rows_i], x)`` to ``out`` at every x of ``right``.

    No value leaves the cache: each tile is made, summed in float64 and forgotten.
    """
    for part, panels in _panels(left, rows):
        order, weights = np.arange(part.stop - part.start), coefficients[part]

        def add(span: tuple[int, int], part: slice = part, panels: list = panels) -> None:
            for start, stop, values in _values(program, left, rows[part], panels, right, span):
                if values.dtype == np.float32:
                    add_rows(values, order, weights, 0, stop - start, out[start:stop])  # noqa: B023
                else:
                    out[start:stop] += weights @ values  # noqa: B023 - run before the next panel

        workers.map(add, spans(right.n, workers.count))


def accumulate_square(
    program: Program, points: Operand, coefficients: np.ndarray, workers: Workers = ALONE
) -> np.ndarray:
    """``K @ coefficients`` for the points among themselves: a value is made once for both sides."""
    n, step = points.n, _panel_rows(points)
    order = np.arange(n)

    def add(share: range) -> np.ndarray:
        out = np.zeros(n)
        for first in share:
            part = slice(first, min(first + step, n))
            weights = coefficients[part]
            ((_, panels),) = _panels(points, order[part])
            for start, stop, values in _values(
                program, points, order[part], panels, points, (first, n)
            ):
                out[start:stop] += weights @ values
                mirrored = max(start, part.stop)
                if mirrored < stop:
                    out[part] += values[:, mirrored - start :] @ coefficients[mirrored:stop]
        return out

    firsts = range(0, n, step)
    shares = [firsts[k :: workers.count] for k in range(workers.count)]  # early panels are longer
    return np.sum(workers.map(add, shares), axis=0)


def expand(
    program: Program,
    left: Operand,
    right: Operand,
    coefficients: np.ndarray,
    stretches: list[tuple[int, int]],
    finish: Callable[[np.ndarray], np.ndarray],
    workers: Workers = ALONE,
) -> list[np.ndarray]:
    """Kernel expansions over stretches of ``right``, at every point of ``left``.

    For each panel of points ``finish`` gets the sums ``K[:, stretch] @ coefficients[:, stretch].T``
    as an array (q, stretches, k); what it returns is collected.
    """
    rows = np.arange(left.n)

    def values(first: int) -> np.ndarray:
        part = rows[first : first + step]
        ((_, panels),) = _panels(left, part)
        sums = np.zeros((len(part), len(stretches), len(coefficients)))
        with np.errstate(over="ignore", invalid="ignore"):  # the caller refuses what is not finite
            for start, stop, tile in _values(program, left, part, panels, right, (0, right.n)):
                for s, (begin, end) in enumerate(stretches):
                    first, last = max(begin, start), min(end, stop)
                    if first < last:
                        inside = tile[:, first - start : last - start]
                        sums[:, s] += inside @ coefficients[:, first:last].T
            return finish(sums)

    step = _panel_rows(left)
    return workers.map(values, range(0, left.n, step))


def _panel_rows(left: Operand) -> int:
    return min(PANEL_ROWS, max(PANEL_ENTRIES // left.dimension, 1))


def _panels(left: Operand, rows: np.ndarray) -> Iterator[tuple[slice, list]]:
    """Yield the rows in parts small enough that their panels stay in the cache."""
    step = _panel_rows(left)
    for first in range(0, len(rows), step):
        part = slice(first, min(first + step, len(rows)))
        yield part, [points.panel(rows[part]) for points in left.primitives]


def _tile_width(right: Operand, part: slice) -> int:
    """Entries that one point of ``right`` brings into the cache."""
    width = max((points.width for points in right.primitives), default=1)
    return max(width, part.stop - part.start)


def spans(n: int, count: int) -> list[tuple[int, int]]:
    """Cut ``range(n)`` into so many stripes of whole cache lines."""
    step = -(-n // count)
    step = -(-step // 64) * 64
    return [(start, min(start + step, n)) for start in range(0, n, step)]


def _values(
    program: Program,
    left: Operand,
    rows: np.ndarray,
    panels: list,
    right: Operand,
    span: tuple[int, int],
) -> Iterator[tuple[int, int, np.ndarray]]:
    """Yield ``(start, stop, kernel values)`` over a stripe of ``right``, tile by tile."""
    q, (first, last) = len(rows), span
    width = max((points.width for points in right.primitives), default=1)
    step = min(max(TILE_BYTES // left.dtype.itemsize // max(width, q), 16), 4096)
    at_once = program.gaussian_rate is not None or program.is_given  # without primitives apart
    tiles_held = 1 if at_once else len(panels) + 1
    row_factors = np.ascontiguousarray(left.factors[:, rows])
    with rooms.lent(tiles_held * q * min(step, last - first), left.dtype) as buffer:
        for start in range(first, last, step):
            stop = min(start + step, last)
            size = q * (stop - start)
            values = buffer[:size].reshape(q, stop - start)
            if program.gaussian_rate is not None:
                rate = program.gaussian_rate
                right.primitives[0].gaussian_tile(panels[0], start, stop, rate, values)
            elif program.is_given:
                right.primitives[0].tile(panels[0], start, stop, values)
            else:
                tiles = buffer[size : size * tiles_held].reshape(len(panels), q, stop - start)
                for points, panel, tile in zip(right.primitives, panels, tiles, strict=True):
                    points.tile(panel, start, stop, tile)
                column_factors = np.ascontiguousarray(right.factors[:, start:stop])
                run(*program.arrays(left.dtype), tiles, row_factors, column_factors, values)
            yield start, stop, values


class _Rooms(threading.local):
    """Room to work in, kept by each thread from one use to the next: new memory is slow to touch.

    Too much of it is not kept.
    """

    def __init__(self) -> None:
        self.free: list[np.ndarray] = []

    @contextmanager
    def lent(self, count: int, dtype: Any) -> Iterator[np.ndarray]:
        """Lend room for so many numbers; who asks while it is lent gets another."""
        size = count * np.dtype(dtype).itemsize
        room = self.free.pop() if self.free else np.empty(0, dtype=np.uint8)
        if len(room) < size:
            room = np.empty(size, dtype=np.uint8)
        try:
            yield room[:size].view(dtype)
        finally:
            if len(room) <= _KEPT and len(self.free) < _KEPT_ROOMS:
                self.free.append(room)


rooms = _Rooms()


def kernel_values(
    program: Program, primitives: np.ndarray, left: np.ndarray, right: np.ndarray, out: np.ndarray
) -> None:
    """Run the programme over stored primitives (p, q, n), with the factors of both sides."""
    if program.gaussian_rate is not None:
        out[:] = primitives[0]
        _exponential(out.dtype.type(program.gaussian_rate), out)
        return
    left, right = np.ascontiguousarray(left), np.ascontiguousarray(right)  # one compiled form
    run(*program.arrays(out.dtype), primitives, left, right, out)


def kernel_diagonal(program: Program, points: Operand) -> np.ndarray:
    """Kernel value of every point with itself, shape (n,)."""
    primitives = np.empty((len(points.primitives), 1, points.n))
    for k, primitive in enumerate(points.primitives):
        primitives[k, 0] = primitive.diagonal()
    out = np.empty((1, points.n))
    ones = np.ones((len(points.factors), 1))
    kernel_values(program, primitives, ones, points.factors**2, out)
    return out[0]


def variance(X: Any) -> float:
    """Variance of all entries of X, as scikit-learn's ``gamma="scale"`` means it."""
    if sp.issparse(X):
        X = canonical(X)
        size = X.shape[0] * X.shape[1]
        mean = float(X.data.sum(dtype=np.float64)) / size
        stored = float(np.square(X.data - np.float64(mean)).sum())
        return (stored + (size - X.nnz) * mean**2) / size
    mean = X.mean(dtype=np.float64)
    total = sum(
        float(np.square(X[start:stop] - mean).sum())
        for start, stop in _stretches(X.shape[0], X.shape[1])
    )
    return total / X.size


def _stretches(n: int, row_length: int) -> list[tuple[int, int]]:
    """Cut ``range(n)`` so that a stretch of rows of this length fits the cache."""
    step = min(max(TILE_BYTES // 8 // max(row_length, 1), 16), 4096)
    return [(start, min(start + step, n)) for start in range(0, n, step)]


def spread_out(n: int, count: int) -> np.ndarray:
    """At most ``count`` of n rows, evenly spread."""
    return np.arange(n) if n <= count else np.linspace(0, n - 1, count).astype(np.int64)


def _view(X: Any, view: View, seen: list[tuple[View, Any]]) -> Any:
    """Apply a chain of column selections and feature maps to X, once per distinct chain."""
    if not view:
        return X
    for known, data in seen:
        if known == view:
            return data
    data = look(_view(X, view[:-1], seen), view[-1])
    seen.append((view, data))
    return data


def canonical(X: Any) -> Any:
    """CSR data with sorted, unique indices, without touching the caller's; others as they are."""
    if sp.issparse(X) and not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X


def finite(values: np.ndarray, kernel: Any) -> np.ndarray:
    """Return kernel values, or refuse them when one is NaN or infinite."""
    if not np.isfinite(values).all():
        what = "NaN" if np.isnan(values).any() else "infinity"
        raise ValueError(
            f"The kernel {kernel!r} returned {what}. For a kernel function, look for the pair that "
            "does; for exp, powers and polynomials, scale the data (StandardScaler) or lower gamma."
        )
    return values


def look(X: Any, step: op.Columns | op.Map) -> Any:
    """Take one view step: select columns, or apply a feature map and check what it returned."""
    if isinstance(step, op.Columns):
        selected = X[:, list(step.indices)]
        return selected.tocsr() if sp.issparse(selected) else selected
    mapped = step.function(X)
    mapped = mapped.tocsr() if sp.issparse(mapped) else np.asarray(mapped)
    n = X.shape[0]
    if mapped.ndim != 2 or mapped.shape[0] != n:
        raise ValueError(
            f"The feature map returned an array of shape {mapped.shape} for {n} rows; "
            f"it must return one row of features per row, that is shape ({n}, M)."
        )
    if mapped.dtype.kind not in "fiub":
        raise ValueError(f"The feature map returned {mapped.dtype} values; it must return reals.")
    return mapped if mapped.dtype in (np.float32, np.float64) else mapped.astype(np.float64)


def exponential(x: Any) -> Any:
    """Exponential by arithmetic alone, so that loops over it vectorise; error below 2 ulp."""
    raise NotImplementedError("compiled code only")


@overload(exponential, inline="always")
def _exponential_of(x):
    return (lambda x: _exp32(x)) if x == types.float32 else (lambda x: _exp64(x))


@njit(inline="always")
def _exp32(x):
    """Exponential in float32 (Cephes' polynomial); see :func:`_exp64`."""
    one = np.float32(1.0)
    shifted = x * np.float32(1.44269504088896341) + np.float32(12582912.0)
    k = shifted - np.float32(12582912.0)
    r = x - k * np.float32(0.693359375)
    r = r + k * np.float32(2.12194440e-4)
    p = np.float32(1.9875691500e-4)
    p = p * r + np.float32(1.3981999507e-3)
    p = p * r + np.float32(8.3334519073e-3)
    p = p * r + np.float32(4.1665795894e-2)
    p = p * r + np.float32(1.6666665459e-1)
    p = p * r + np.float32(5.0000001201e-1)
    p = p * r * r + r + one
    exponent = np.int32(np.float32(shifted).view(np.int32) + np.int32(127))
    value = p * np.int32(exponent << np.int32(23)).view(np.float32)
    value = np.float32(0.0) if x < np.float32(-87.0) else value
    return np.float32(np.inf) if x > np.float32(88.0) else value


@njit(inline="always")
def _exp64(x):
    """Exponential in float64.

    ``x = k ln 2 + r`` with ``|r| <= ln(2) / 2``; the added constant ``1.5 * 2**52`` leaves k in the
    low bits of the sum, ready to become the exponent of ``2**k``.
    """
    shifted = x * 1.4426950408889634 + 6755399441055744.0
    k = shifted - 6755399441055744.0
    r = x - k * 6.93147180369123816490e-01
    r = r - k * 1.90821492927058770002e-10
    p = 1.6059043836821613e-10  # 1/13!, then the Taylor coefficients downwards
    p = p * r + 2.08767569878681e-09
    p = p * r + 2.505210838544172e-08
    p = p * r + 2.755731922398589e-07
    p = p * r + 2.7557319223985893e-06
    p = p * r + 2.48015873015873e-05
    p = p * r + 0.0001984126984126984
    p = p * r + 0.001388888888888889
    p = p * r + 0.008333333333333333
    p = p * r + 0.041666666666666664
    p = p * r + 0.16666666666666666
    p = p * r + 0.5
    p = p * r + 1.0
    p = p * r + 1.0
    exponent = np.float64(shifted).view(np.int64) + 1023
    value = p * np.int64(exponent << 52).view(np.float64)
    value = 0.0 if x < -708.0 else value
    return np.inf if x > 709.0 else value


@njit(cache=True, nogil=True, fastmath={"contract"}, error_model="numpy")
def run(instructions, constants, coefficients, depth, primitives, row_factors, column_factors, out):
    """Interpret a programme over a tile; writes ``out`` (q, n) from ``primitives`` (p, q, n)."""
    q, n = out.shape
    stack = np.empty((depth, _CHUNK), dtype=out.dtype)
    for i in range(q):
        for start in range(0, n, _CHUNK):
            width = min(_CHUNK, n - start)
            height = 0
            for s in range(instructions.shape[0]):
                opcode = instructions[s, 0]
                first = instructions[s, 1]
                constant = constants[s]
                if opcode == op.PUSH:
                    stack[height, :width] = primitives[first, i, start : start + width]
                    height += 1
                    continue
                top = stack[height - 1]
                if opcode == op.SCALE:
                    for t in range(width):
                        top[t] *= constant
                elif opcode == op.SHIFT:
                    for t in range(width):
                        top[t] += constant
                elif opcode == op.ADD:
                    below = stack[height - 2]
                    for t in range(width):
                        below[t] += top[t]
                    height -= 1
                elif opcode == op.MULTIPLY:
                    below = stack[height - 2]
                    for t in range(width):
                        below[t] *= top[t]
                    height -= 1
                elif opcode == op.EXP:
                    for t in range(width):
                        top[t] = exponential(top[t])
                elif opcode == op.TANH:
                    for t in range(width):
                        top[t] = math.tanh(top[t])
                elif opcode == op.POWER:
                    _power(top, width, first)
                elif opcode == op.POLYNOMIAL:
                    last = first + instructions[s, 2] - 1
                    for t in range(width):
                        value = coefficients[last]
                        for c in range(last - 1, first - 1, -1):
                            value = value * top[t] + coefficients[c]
                        top[t] = value
                elif opcode == op.FACTOR:
                    left = row_factors[first, i]
                    for t in range(width):
                        top[t] *= left * column_factors[first, start + t]
            out[i, start : start + width] = stack[0, :width]


@njit(cache=True, nogil=True, error_model="numpy")
def _power(values, width, exponent):
    """Raise ``values[:width]`` to a whole power, in place, by squaring."""
    for t in range(width):
        base = values[t]
        power = 1.0
        remaining = exponent
        while remaining > 0:
            if remaining & 1:
                power *= base
            base *= base
            remaining >>= 1
        values[t] = power


@njit(cache=True, nogil=True, fastmath={"contract"}, error_model="numpy")
def _squared_distances(row_squares, column_squares, out):
    """Turn products in ``out`` into squared distances, in place; rounding never goes below zero."""
    zero = out.dtype.type(0.0)
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            distance = row_squares[i] + column_squares[j] - (out[i, j] + out[i, j])
            out[i, j] = distance if distance > zero else zero


@njit(cache=True, nogil=True, fastmath={"contract"}, error_model="numpy")
def _gaussian(row_squares, column_squares, rate, out):
    """Turn products in ``out`` into ``exp(rate * squared distance)``, in place."""
    zero = out.dtype.type(0.0)
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            distance = row_squares[i] + column_squares[j] - (out[i, j] + out[i, j])
            out[i, j] = exponential(rate * (distance if distance > zero else zero))


@njit(cache=True, nogil=True, fastmath={"contract"}, error_model="numpy")
def add_rows(rows, slots, weights, start, stop, out):
    """Add ``sum_k weights[k] rows[slots[k], start:stop]`` to ``out[start:stop]``."""
    width = 2048  # columns whose sums stay in the first-level cache
    fours = slots.shape[0] - slots.shape[0] % 4
    for first in range(start, stop, width):
        last = min(first + width, stop)
        total = out[first:last]
        for k in range(0, fours, 4):  # the sums are read and written once for four rows
            a = rows[slots[k], first:last]
            b = rows[slots[k + 1], first:last]
            c = rows[slots[k + 2], first:last]
            d = rows[slots[k + 3], first:last]
            for t in range(total.shape[0]):
                total[t] += (weights[k] * a[t] + weights[k + 1] * b[t]) + (
                    weights[k + 2] * c[t] + weights[k + 3] * d[t]
                )
        for k in range(fours, slots.shape[0]):
            row = rows[slots[k], first:last]
            weight = weights[k]
            for t in range(total.shape[0]):
                total[t] += weight * row[t]


@njit(cache=True, nogil=True, fastmath={"contract"}, error_model="numpy")
def _exponential(rate, out):
    """Turn distances in ``out`` into ``exp(rate * distance)``, in place."""
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            out[i, j] = exponential(rate * out[i, j])


@njit(cache=True, nogil=True, error_model="numpy")
def gaussian_rows(points, rows, out):
    """Write the kernel values between some :class:`DensePoints` and all into ``out`` (q, n)."""
    panel = np.empty((min(_PANEL, len(rows)), points.X.shape[1]), dtype=np.float32)
    squares = np.empty(len(panel), dtype=np.float32)
    for first in range(0, len(rows), _PANEL):
        q = min(_PANEL, len(rows) - first)
        for k in range(q):
            squares[k] = points.squares[rows[first + k]]
            for c in range(panel.shape[1]):
                panel[k, c] = points.X[rows[first + k], c]
        values = out[first : first + q]
        np.dot(panel[:q], points.X.T, values)
        _gaussian(squares[:q], points.squares, points.rate, values)


@njit(cache=True, nogil=True, fastmath={"contract", "reassoc"}, error_model="numpy")
def _l1_dense(panel, block, out):
    """Write ``sum_k |panel[i, k] - block[j, k]|`` into ``out``."""
    for i in range(panel.shape[0]):
        for j in range(block.shape[0]):
            total = 0.0
            for k in range(panel.shape[1]):
                total += abs(panel[i, k] - block[j, k])
            out[i, j] = total


@njit(cache=True, nogil=True)
def _transpose(values, out):
    """Write ``values.T`` into ``out``, by squares that stay in the first-level cache."""
    q, n = values.shape
    for first in range(0, q, _LINE):
        for start in range(0, n, _LINE):
            for j in range(start, min(start + _LINE, n)):
                for i in range(first, min(first + _LINE, q)):
                    out[j, i] = values[i, j]


_LINE = 16  # columns of a tile finished together: whole cache lines are written


@njit(cache=True, nogil=True, fastmath={"contract", "reassoc"}, error_model="numpy")
def _csr_dot(indptr, indices, data, columns, out):
    """Write products of CSR rows with the panel's ``columns`` (d, q)."""
    q = columns.shape[1]
    total = np.empty((_LINE, q), dtype=columns.dtype)
    for first in range(0, out.shape[1], _LINE):
        width = min(_LINE, out.shape[1] - first)
        for k in range(width):
            line = total[k]
            line[:] = 0.0
            for entry in range(indptr[first + k], indptr[first + k + 1]):
                value = columns.dtype.type(data[entry])
                column = columns[indices[entry]]
                for i in range(q):
                    line[i] += value * column[i]
        for i in range(q):
            row = out[i, first : first + width]
            for k in range(width):
                row[k] = total[k, i]


@njit(cache=True, nogil=True, fastmath={"contract", "reassoc"}, error_model="numpy")
def _csr_l1(indptr, indices, data, columns, base, out):
    """Write L1 distances of CSR rows to the panel; ``base`` is its rows' L1 norm."""
    q = columns.shape[1]
    total = np.empty(q, dtype=columns.dtype)
    for j in range(out.shape[1]):
        for i in range(q):
            total[i] = base[i]
        for entry in range(indptr[j], indptr[j + 1]):
            value = columns.dtype.type(data[entry])
            column = columns[indices[entry]]
            for i in range(q):
                total[i] += abs(column[i] - value) - abs(column[i])
        for i in range(q):
            out[i, j] = total[i]


@njit(cache=True, nogil=True, fastmath={"contract", "reassoc"}, error_model="numpy")
def _csr_squares(indptr, indices, data, centre, columns):
    """Squared length of every row less ``centre``, which is zero but in some ``columns``."""
    squares = np.empty(indptr.shape[0] - 1)
    last = np.full(centre.shape[0], -1)  # row that has last stored an entry of a column
    for j in range(squares.shape[0]):
        total = 0.0
        for entry in range(indptr[j], indptr[j + 1]):
            value = data[entry] - centre[indices[entry]]
            total += value * value
            last[indices[entry]] = j
        for column in columns:
            if last[column] != j:
                total += centre[column] * centre[column]
        squares[j] = total
    return squares


@njit(cache=True, nogil=True, fastmath={"contract", "reassoc"}, error_model="numpy")
def _difference(x, z, squared):
    """Squared or L1 distance of two rows, coordinate by coordinate."""
    total = 0.0
    if squared:
        for k in range(x.shape[0]):
            difference = np.float64(x[k]) - np.float64(z[k])
            total += difference * difference
    else:
        for k in range(x.shape[0]):
            total += abs(np.float64(x[k]) - np.float64(z[k]))
    return total


@njit(cache=True, nogil=True, error_model="numpy")
def _cancelled(left_size, right_sizes, limit, distances):
    """Count the distances that are small against what they were made of."""
    count = 0
    for j in range(distances.shape[0]):
        size = left_size + right_sizes[j]
        count += (size > limit) & (not (size <= CANCELLED * distances[j]))
    return count


@njit(cache=True, nogil=True, error_model="numpy")
def _mend_dense(left, left_sizes, right, right_sizes, limit, out):
    """Make squared distances again that are small against what they were made of."""
    for first in range(0, out.shape[1], _CHUNK):
        last = min(first + _CHUNK, out.shape[1])
        sizes = right_sizes[first:last]
        for i in range(out.shape[0]):
            distances = out[i, first:last]
            if not _cancelled(left_sizes[i], sizes, limit, distances):
                continue
            for j in range(last - first):
                size = left_sizes[i] + sizes[j]
                if size > limit and not size <= CANCELLED * distances[j]:
                    distances[j] = _difference(left[i], right[first + j], True)


@njit(cache=True, nogil=True, error_model="numpy")
def _mend_csr(left, left_sizes, indptr, indices, data, right_sizes, squared, limit, out):
    """Do what :func:`_mend_dense` does with CSR rows on the right, and also L1 distances."""
    row = np.zeros(left.shape[1])
    suspect = np.zeros(out.shape[1], dtype=np.bool_)
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):  # one pass in the order of memory
            size = left_sizes[i] + right_sizes[j]
            suspect[j] |= (size > limit) & (not (size <= CANCELLED * out[i, j]))
    for j in range(out.shape[1]):
        if not suspect[j]:
            continue
        for entry in range(indptr[j], indptr[j + 1]):
            row[indices[entry]] = data[entry]
        for i in range(out.shape[0]):
            size = left_sizes[i] + right_sizes[j]
            if size > limit and not size <= CANCELLED * out[i, j]:
                out[i, j] = _difference(left[i], row, squared)
        for entry in range(indptr[j], indptr[j + 1]):
            row[indices[entry]] = 0.0
