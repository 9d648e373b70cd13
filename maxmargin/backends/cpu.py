"""Kernel values on the CPU: BLAS products or sparse loops, then one pass in cache per tile.

A tile is a handful of rows of the left data set against a stretch of the right one, small enough
to stay in the cache from the product to the finished kernel value. Data stay as they are, dense
float32 or float64 or CSR: only the tile in work is widened to float64, and for distances at least
its left side is centred.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
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

DEVIATION32 = 0.5 * float(np.finfo(np.float32).eps) / 3**0.5  # of a value near one, rounded
TILE_BYTES = 1 << 20  # product, pass and result share the L2 cache
PANEL_ROWS, PANEL_ENTRIES = 256, 1 << 21
_CHUNK = 512
_DIAGONAL_BLOCK = 16
_PANEL = 64  # rows of one product in compiled code
_FAR = 4.0  # mean squared length, over that of centred rows, from which float32 needs centring
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


class Vectors(ABC):
    """Rows of a real matrix, for products and distances.

    ``index`` are the rows of X that belong to the data set: a subset is a view, not a copy.
    Distances are taken between rows less their common ``centre``: the products that a squared
    distance is made of then have the size of the distance, not of the mean. Tiles are made in
    ``dtype``: float64, or float32 after :meth:`narrow`.
    """

    def __init__(
        self,
        X: Any,
        kind: str,
        centre: np.ndarray | None = None,
        index: np.ndarray | None = None,
        squares: np.ndarray | None = None,
        dtype: Any = np.float64,
    ):
        self.X, self.kind, self.centre, self.index = X, kind, centre, index
        self.dtype = np.dtype(dtype)
        self.n = X.shape[0] if index is None else len(index)
        if squares is None:
            squares = np.zeros(self.n) if kind == op.L1_DISTANCE else self._squares()
        self.squares = squares.astype(dtype, copy=False)

    @classmethod
    def prepare(cls, X: Any, kind: str, centre: np.ndarray | None = None) -> Vectors:
        """Vectors of all rows of X; without a given centre distances are centred on the mean."""
        if kind == op.SQUARED_DISTANCE and centre is None:
            centre = _column_means(X)
        kept = SparseVectors if sp.issparse(X) else DenseVectors
        return kept(X, kind, centre if kind == op.SQUARED_DISTANCE else None)

    @property
    @abstractmethod
    def width(self) -> int:
        """Entries that one row brings into the cache."""

    @abstractmethod
    def dense(self, rows: slice | np.ndarray) -> np.ndarray:
        """Return these rows, dense, in ``dtype``, less the centre."""

    def narrow(self, copied: bool) -> Vectors:
        squares = self.squares.astype(np.float32)
        if not copied:
            return type(self)(self.X, self.kind, self.centre, self.index, squares, np.float32)
        return self._narrow_copy(squares)

    @abstractmethod
    def _narrow_copy(self, squares: np.ndarray) -> Vectors:
        """Return a float32 copy of these rows, in the form whose products are fastest."""

    @abstractmethod
    def _squares(self) -> np.ndarray:
        """Return the squared length of every row less the centre."""

    @abstractmethod
    def _products(self, vectors: np.ndarray, start: int, stop: int, out: np.ndarray) -> None:
        """Write inner products, of rows less the centre, into ``out``."""

    @abstractmethod
    def _l1_distances(self, vectors: np.ndarray, start: int, stop: int, out: np.ndarray) -> None:
        """Write L1 distances into ``out``."""

    def take(self, rows: np.ndarray) -> Vectors:
        index = rows if self.index is None else self.index[rows]
        squares = self.squares[rows]
        return type(self)(self.X, self.kind, self.centre, index, squares, self.dtype)

    def diagonal(self) -> np.ndarray:
        if self.kind != op.DOT:
            return np.zeros(self.n)
        return self.squares.astype(np.float64, copy=False)

    def panel(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self.dense(rows), self.squares[rows]

    def tile(
        self, panel: tuple[np.ndarray, np.ndarray], start: int, stop: int, out: np.ndarray
    ) -> None:
        vectors, squares = panel
        if self.kind == op.L1_DISTANCE:
            self._l1_distances(vectors, start, stop, out)
            return
        self._products(vectors, start, stop, out)
        if self.kind == op.SQUARED_DISTANCE:
            _squared_distances(squares, self.squares[start:stop], out)

    def gaussian_tile(
        self,
        panel: tuple[np.ndarray, np.ndarray],
        start: int,
        stop: int,
        rate: float,
        out: np.ndarray,
    ) -> None:
        """Write ``exp(rate * squared distance)`` into ``out``: the whole RBF kernel in one pass."""
        vectors, squares = panel
        self._products(vectors, start, stop, out)
        _gaussian(squares, self.squares[start:stop], out.dtype.type(rate), out)

    def gathered(self) -> Vectors:
        """Return the same rows, next to each other in memory."""
        if self.index is None:
            return self
        return self._gathered()

    def compact(self) -> Vectors:
        """Return the same rows in the form whose products are fastest, copied if it is another."""
        return self

    @abstractmethod
    def _gathered(self) -> Vectors:
        """Return a copy of the indexed rows."""

    def _at(self, rows: slice | np.ndarray) -> slice | np.ndarray:
        """Places of these rows in X."""
        return rows if self.index is None else self.index[rows]


class DenseVectors(Vectors):
    """Dense rows, float32 or float64."""

    @property
    def width(self) -> int:
        return self.X.shape[1]

    def dense(self, rows: slice | np.ndarray) -> np.ndarray:
        block = self.X[self._at(rows)]
        if self.centre is not None:
            block = block - self.centre  # float32 becomes float64 here, one tile at a time
        return block.astype(self.dtype, copy=False)

    def _gathered(self) -> Vectors:
        block = self.dense(slice(None))
        return DenseVectors(block, self.kind, squares=self.squares, dtype=self.dtype)

    def _narrow_copy(self, squares: np.ndarray) -> Vectors:
        if self._mostly_zero():
            X = self.X if self.index is None else self.X[self.index]
            sparse = SparseVectors.narrowed(sp.csr_array(X), self.kind)
            if sparse.squares.mean() <= _FAR * self.squares.mean():
                return sparse  # not centred: only where that loses next to nothing
        block = np.empty((self.n, self.width), dtype=np.float32)
        for start, stop in _stretches(self.n, self.width):
            block[start:stop] = self.dense(slice(start, stop))
        return DenseVectors(block, self.kind, squares=squares, dtype=np.float32)

    def compact(self) -> Vectors:
        if not self._mostly_zero():
            return self
        X = sp.csr_array(self.X if self.index is None else self.X[self.index])
        return SparseVectors(X, self.kind, self.centre, None, self.squares, self.dtype)

    def _mostly_zero(self) -> bool:
        """Whether so few entries are nonzero, by a sample of rows, that CSR is faster."""
        sample = self.X[self._at(spread_out(self.n, _SAMPLED_ROWS))]
        return np.count_nonzero(sample) < _SPARSE_BELOW * sample.size

    def _squares(self) -> np.ndarray:
        squares = np.empty(self.n)
        for start, stop in _stretches(self.n, self.width):
            block = self.dense(slice(start, stop))
            np.einsum("ij,ij->i", block, block, out=squares[start:stop])
        return squares

    def _products(self, vectors: np.ndarray, start: int, stop: int, out: np.ndarray) -> None:
        if self.X.dtype == self.dtype and self.index is None:
            # (x - c) . p = x . p - c . p, where p is centred already: no copy of the tile
            np.dot(vectors, self.X[start:stop].T, out=out)
            if self.centre is not None:
                out -= (vectors @ self.centre)[:, None]
        else:
            np.dot(vectors, self.dense(slice(start, stop)).T, out=out)

    def _l1_distances(self, vectors: np.ndarray, start: int, stop: int, out: np.ndarray) -> None:
        _l1_dense(vectors, self.dense(slice(start, stop)), out)


class SparseVectors(Vectors):
    """CSR rows; they stay sparse, only the rows of a panel are written out."""

    @property
    def width(self) -> int:
        return max(self.X.nnz // max(self.X.shape[0], 1), 1)

    @classmethod
    def narrowed(cls, X: Any, kind: str) -> SparseVectors:
        """Vectors in float32, not centred: sparse data have their mean near zero."""
        squares = cls(X, kind).squares
        parts = X.data.astype(np.float32), X.indices, X.indptr  # the pattern is shared
        return cls(sp.csr_array(parts, shape=X.shape), kind, squares=squares, dtype=np.float32)

    def dense(self, rows: slice | np.ndarray) -> np.ndarray:
        block = self.X[self._at(rows)].toarray()
        if self.centre is not None:
            block = block - self.centre
        return block.astype(self.dtype, copy=False)

    def _gathered(self) -> Vectors:
        X = self.X[self.index]
        return SparseVectors(X, self.kind, self.centre, None, self.squares, self.dtype)

    def _narrow_copy(self, squares: np.ndarray) -> Vectors:
        X = self.X if self.index is None else self.X[self.index]
        return SparseVectors.narrowed(X, self.kind)

    def _squares(self) -> np.ndarray:
        centre = np.zeros(self.X.shape[1]) if self.centre is None else self.centre
        return _csr_squares(self.X.indptr, self.X.indices, self.X.data, centre)

    def _products(self, vectors: np.ndarray, start: int, stop: int, out: np.ndarray) -> None:
        offset = np.zeros(len(vectors)) if self.centre is None else vectors @ self.centre
        columns = np.ascontiguousarray(vectors.T)  # the inner loop runs over the panel's rows
        _csr_dot(*self._stretch(start, stop), columns, offset.astype(self.dtype), out)

    def _l1_distances(self, vectors: np.ndarray, start: int, stop: int, out: np.ndarray) -> None:
        norms = np.abs(vectors).sum(axis=1)
        columns = np.ascontiguousarray(vectors.T)
        _csr_l1(*self._stretch(start, stop), columns, norms, out)

    def _stretch(self, start: int, stop: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """``(indptr, indices, data)`` of rows ``start:stop``."""
        if self.index is None:
            return self.X.indptr[start : stop + 1], self.X.indices, self.X.data
        part = self.X[self.index[start:stop]]
        return part.indptr, part.indices, part.data


class GivenMatrix:
    """Points of a matrix of kernel values: the ``rows`` and the columns (``index``) they own."""

    width = 1

    def __init__(self, K: np.ndarray, rows: np.ndarray | None = None, index: Any = None):
        self.K = K
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
        out[:] = K[rows[:, None], self.index[start:stop]]


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
    def prepare(cls, program: Program, X: Any, like: Operand | None = None) -> Operand:
        """Look at X through the programme's views.

        ``like`` is the operand on the other side: distances are taken from its centres.
        """
        n = X.shape[0] if hasattr(X, "shape") else len(X)
        seen: list[tuple[View, Any]] = []
        primitives: list[Any] = []
        for k, primitive in enumerate(program.primitives):
            data = _view(X, primitive.view, seen)
            centre = getattr(like.primitives[k], "centre", None) if like else None
            if primitive.kind == op.PRECOMPUTED:
                primitives.append(GivenMatrix(data))
            elif primitive.kind == op.FUNCTION:
                primitives.append(FunctionValues(data, n, primitive.function))
            else:
                data = canonical(data) if sp.issparse(data) else np.ascontiguousarray(data)
                primitives.append(Vectors.prepare(data, primitive.kind, centre))
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
        largest = [float(points.squares.max(initial=0.0)) for points in vectors]
        return all(value == 0.0 or 1e-30 < value < 1e30 for value in largest)

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
        if plain and isinstance(vectors, DenseVectors) and vectors.X.dtype == np.float32:
            X, squares = vectors.X, vectors.squares
        return cls(X, squares, diagonal, np.float32(program.gaussian_rate))


def kernel_square(
    program: Program, points: Operand, rows: np.ndarray, out: np.ndarray, workers: Workers = ALONE
) -> None:
    """Write the symmetric matrix of the kernel values among ``points[rows]`` into ``out``."""
    chosen = points.take(rows).gathered()
    order = np.arange(len(rows))
    step = _panel_rows(chosen)

    def fill(first: int) -> None:
        part = slice(first, min(first + step, len(rows)))
        ((_, panels),) = _panels(chosen, order[part])
        span = (first, len(rows))
        for start, stop, values in _values(program, chosen, order[part], panels, chosen, span):
            out[part, start:stop] = values
            _transpose(
                values[:, max(part.stop - start, 0) :], out[max(start, part.stop) : stop, part]
            )

    workers.map(fill, range(0, len(rows), step))


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
            for s, span in enumerate(stretches):
                for start, stop, tile in _values(program, left, part, panels, right, span):
                    sums[:, s] += tile @ coefficients[:, start:stop].T
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
    buffer = np.empty((len(panels) + 1) * q * min(step, last - first), dtype=left.dtype)
    row_factors = np.ascontiguousarray(left.factors[:, rows])
    for start in range(first, last, step):
        stop = min(start + step, last)
        size = q * (stop - start)
        values = buffer[:size].reshape(q, stop - start)
        if program.gaussian_rate is not None:
            right.primitives[0].gaussian_tile(panels[0], start, stop, program.gaussian_rate, values)
        else:
            tiles = buffer[size : size * (len(panels) + 1)].reshape(len(panels), q, stop - start)
            for points, panel, tile in zip(right.primitives, panels, tiles, strict=True):
                points.tile(panel, start, stop, tile)
            column_factors = np.ascontiguousarray(right.factors[:, start:stop])
            run(*program.arrays(left.dtype), tiles, row_factors, column_factors, values)
        yield start, stop, values


def kernel_values(
    program: Program, primitives: np.ndarray, left: np.ndarray, right: np.ndarray, out: np.ndarray
) -> None:
    """Run the programme over stored primitives (p, q, n), with the factors of both sides."""
    if program.gaussian_rate is not None:
        _exponential(primitives[0], out.dtype.type(program.gaussian_rate), out)
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
    return np.unique(np.linspace(0, n - 1, min(n, count)).astype(np.int64))


def _column_means(X: Any) -> np.ndarray:
    means = X.mean(axis=0, dtype=np.float64)
    return np.asarray(means).reshape(-1)


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
def _exponential(distances, rate, out):
    """Write ``exp(rate * distance)`` into ``out``."""
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            out[i, j] = exponential(rate * distances[i, j])


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
def _csr_dot(indptr, indices, data, columns, offset, out):
    """Write products of CSR rows with the panel's ``columns`` (d, q), less ``offset``."""
    q = columns.shape[1]
    total = np.empty((_LINE, q), dtype=columns.dtype)
    for first in range(0, out.shape[1], _LINE):
        width = min(_LINE, out.shape[1] - first)
        for k in range(width):
            line = total[k]
            for i in range(q):
                line[i] = -offset[i]
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
def _csr_squares(indptr, indices, data, centre):
    """Squared length of every row less ``centre``, touching only the stored entries."""
    base = 0.0
    for k in range(centre.shape[0]):
        base += centre[k] * centre[k]
    squares = np.empty(indptr.shape[0] - 1)
    for j in range(squares.shape[0]):
        total = base
        for entry in range(indptr[j], indptr[j + 1]):
            c = centre[indices[entry]]
            value = data[entry] - c
            total += value * value - c * c
        squares[j] = total
    return squares
