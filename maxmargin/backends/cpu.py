"""Kernel values on the CPU: BLAS products or sparse loops, then one pass in cache per tile.

A tile is a handful of rows of the left data set against a stretch of the right one, small enough
to stay in the cache from the product to the finished kernel value. Data stay as they are, dense
float32 or float64 or CSR: only the tile in work is widened to float64, and for distances at least
its left side is centred.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
from numba import njit
from sklearn.utils import _safe_indexing

from maxmargin.backends import program as op
from maxmargin.backends.program import Program, View

TILE_ENTRIES = 1 << 17  # one MB of float64: product, pass and result share the L2 cache
PANEL_ROWS, PANEL_ENTRIES = 256, 1 << 21
_CHUNK = 512
_DIAGONAL_BLOCK = 16


class Points(Protocol):
    """The rows of one data set as one primitive sees them.

    ``width`` is the number of entries that one point brings into the cache.
    """

    n: int
    width: int

    def take(self, rows: np.ndarray) -> Points:
        """Keep only these rows."""
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

    Distances are taken between rows less their common ``centre``: the products that a squared
    distance is made of then have the size of the distance, not of the mean.
    """

    def __init__(self, X: Any, kind: str, centre: np.ndarray | None = None):
        self.X, self.kind, self.n = X, kind, X.shape[0]
        self.centre = _column_means(X) if kind == op.SQUARED_DISTANCE and centre is None else centre
        self.squares = np.zeros(self.n) if kind == op.L1_DISTANCE else self._squares()

    @abstractmethod
    def _widened(self, rows: Any) -> np.ndarray:
        """Return these rows, dense, in float64, less the centre."""

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
        return type(self)(self.X[rows], self.kind, self.centre)

    def diagonal(self) -> np.ndarray:
        return self.squares if self.kind == op.DOT else np.zeros(self.n)

    def panel(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self._widened(rows), self.squares[rows]

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


class DenseVectors(Vectors):
    """Dense rows, float32 or float64."""

    @property
    def width(self) -> int:
        return self.X.shape[1]

    def _widened(self, rows: slice | np.ndarray) -> np.ndarray:
        block = self.X[rows]
        if self.centre is None:
            return block.astype(np.float64, copy=False)
        return block - self.centre  # float32 becomes float64 here, one tile at a time

    def _squares(self) -> np.ndarray:
        squares = np.empty(self.n)
        for start, stop in _stretches(self.n, self.width):
            block = self._widened(slice(start, stop))
            np.einsum("ij,ij->i", block, block, out=squares[start:stop])
        return squares

    def _products(self, vectors: np.ndarray, start: int, stop: int, out: np.ndarray) -> None:
        if self.X.dtype == np.float64:
            # (x - c) . p = x . p - c . p, where p is centred already: no copy of the tile
            np.dot(vectors, self.X[start:stop].T, out=out)
            if self.centre is not None:
                out -= (vectors @ self.centre)[:, None]
        else:
            np.dot(vectors, self._widened(slice(start, stop)).T, out=out)

    def _l1_distances(self, vectors: np.ndarray, start: int, stop: int, out: np.ndarray) -> None:
        _l1_dense(vectors, self._widened(slice(start, stop)), out)


class SparseVectors(Vectors):
    """CSR rows; they stay sparse, only the rows of a panel are written out."""

    @property
    def width(self) -> int:
        return max(self.X.nnz // max(self.n, 1), 1)

    def _widened(self, rows: np.ndarray) -> np.ndarray:
        block = self.X[rows].toarray().astype(np.float64, copy=False)
        return block if self.centre is None else block - self.centre

    def _squares(self) -> np.ndarray:
        centre = np.zeros(self.X.shape[1]) if self.centre is None else self.centre
        return _csr_squares(self.X.indptr, self.X.indices, self.X.data, centre)

    def _products(self, vectors: np.ndarray, start: int, stop: int, out: np.ndarray) -> None:
        offset = np.zeros(len(vectors)) if self.centre is None else vectors @ self.centre
        columns = np.ascontiguousarray(vectors.T)  # the inner loop runs over the panel's rows
        X = self.X
        _csr_dot(X.indptr, X.indices, X.data, start, stop, columns, offset, out)

    def _l1_distances(self, vectors: np.ndarray, start: int, stop: int, out: np.ndarray) -> None:
        norms = np.abs(vectors).sum(axis=1)
        columns = np.ascontiguousarray(vectors.T)
        X = self.X
        _csr_l1(X.indptr, X.indices, X.data, start, stop, columns, norms, out)


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

    def __init__(self, primitives: list, factors: np.ndarray, n: int):
        self.primitives, self.factors, self.n = primitives, factors, n

    @property
    def dimension(self) -> int:
        """Length of the longest row that a panel of these points holds."""
        shapes = [np.shape(p.X) for p in self.primitives if isinstance(p, Vectors)]
        return max((shape[1] for shape in shapes), default=1)

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
            elif sp.issparse(data):
                primitives.append(SparseVectors(canonical(data), primitive.kind, centre))
            else:
                primitives.append(DenseVectors(np.ascontiguousarray(data), primitive.kind, centre))
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
        """Return the operand of a subset of the points."""
        taken = [primitive.take(rows) for primitive in self.primitives]
        return Operand(taken, self.factors[:, rows], len(rows))


def primitive_rows(left: Operand, rows: np.ndarray, right: Operand, out: np.ndarray) -> None:
    """Write every primitive between ``left[rows]`` and all of ``right`` into ``out`` (p, q, n)."""
    for part, columns, tiles in _tiles(left, rows, right):
        out[:, part, columns] = tiles


def kernel_rows(
    program: Program, left: Operand, rows: np.ndarray, right: Operand, out: np.ndarray
) -> None:
    """Write the kernel values between ``left[rows]`` and all of ``right`` into ``out`` (q, n)."""
    for part, columns, tiles in _tiles(left, rows, right):
        row_factors, column_factors = left.factors[:, rows[part]], right.factors[:, columns]
        kernel_values(program, tiles, row_factors, column_factors, out[part, columns])


def _tiles(
    left: Operand, rows: np.ndarray, right: Operand
) -> Iterator[tuple[slice, slice, np.ndarray]]:
    """Yield ``(rows, columns, primitives)`` tile by tile, the primitives of shape (p, q, m)."""
    width = max((points.width for points in right.primitives), default=1)
    step = min(PANEL_ROWS, max(PANEL_ENTRIES // left.dimension, 1))
    for first in range(0, len(rows), step):
        part = slice(first, min(first + step, len(rows)))
        panels = [points.panel(rows[part]) for points in left.primitives]
        q = part.stop - part.start
        for start, stop in _stretches(right.n, max(width, q)):
            tiles = np.empty((len(panels), q, stop - start))
            for points, panel, tile in zip(right.primitives, panels, tiles, strict=True):
                points.tile(panel, start, stop, tile)
            yield part, slice(start, stop), tiles


def kernel_values(
    program: Program, primitives: np.ndarray, left: np.ndarray, right: np.ndarray, out: np.ndarray
) -> None:
    """Run the programme over stored primitives (p, q, n), with the factors of both sides."""
    left, right = np.ascontiguousarray(left), np.ascontiguousarray(right)  # one compiled form
    run(*program.arrays, primitives, left, right, out)


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
    step = min(max(TILE_ENTRIES // max(row_length, 1), 16), 4096)
    return [(start, min(start + step, n)) for start in range(0, n, step)]


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


@njit(inline="always")
def _exp(x):
    """Exponential by arithmetic alone, so that loops over it vectorise; error below 2 ulp.

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
    stack = np.empty((depth, _CHUNK))
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
                        top[t] = _exp(top[t])
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
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            distance = row_squares[i] + column_squares[j] - 2.0 * out[i, j]
            out[i, j] = distance if distance > 0.0 else 0.0


@njit(cache=True, nogil=True, fastmath={"contract", "reassoc"}, error_model="numpy")
def _l1_dense(panel, block, out):
    """Write ``sum_k |panel[i, k] - block[j, k]|`` into ``out``."""
    for i in range(panel.shape[0]):
        for j in range(block.shape[0]):
            total = 0.0
            for k in range(panel.shape[1]):
                total += abs(panel[i, k] - block[j, k])
            out[i, j] = total


@njit(cache=True, nogil=True, fastmath={"contract", "reassoc"}, error_model="numpy")
def _csr_dot(indptr, indices, data, start, stop, columns, offset, out):
    """Write products of rows ``start:stop`` with the panel's ``columns`` (d, q) less ``offset``."""
    q = columns.shape[1]
    total = np.empty(q)
    for j in range(start, stop):
        for i in range(q):
            total[i] = -offset[i]
        for entry in range(indptr[j], indptr[j + 1]):
            value = data[entry]
            column = columns[indices[entry]]
            for i in range(q):
                total[i] += value * column[i]
        for i in range(q):
            out[i, j - start] = total[i]


@njit(cache=True, nogil=True, fastmath={"contract", "reassoc"}, error_model="numpy")
def _csr_l1(indptr, indices, data, start, stop, columns, base, out):
    """Write L1 distances of rows ``start:stop`` to the panel; ``base`` is its rows' L1 norm."""
    q = columns.shape[1]
    total = np.empty(q)
    for j in range(start, stop):
        for i in range(q):
            total[i] = base[i]
        for entry in range(indptr[j], indptr[j + 1]):
            value = data[entry]
            column = columns[indices[entry]]
            for i in range(q):
                total[i] += abs(column[i] - value) - abs(column[i])
        for i in range(q):
            out[i, j - start] = total[i]


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
