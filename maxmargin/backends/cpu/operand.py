"""A data set as one side of a kernel matrix: looked at through every view of a programme."""

from __future__ import annotations

from functools import singledispatch
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from maxmargin.backends import program as op
from maxmargin.backends.cpu.given import FunctionValues, GivenMatrix
from maxmargin.backends.cpu.pairs import StringValues
from maxmargin.backends.cpu.tiles import stretches
from maxmargin.backends.cpu.vectors import DenseVectors, Vectors
from maxmargin.backends.program import Program
from maxmargin.backends.views import Views

_CHEAP = 1.0  # nanoseconds for a kernel value: memory for those that take less serves blocks better


class Operand:
    """One side of a kernel matrix: a data set as every primitive of a programme sees it."""

    def __init__(self, primitives: list, factors: np.ndarray, n: int, dtype: Any = np.float64):
        self.primitives, self.factors, self.n = primitives, factors, n
        self.dtype = np.dtype(dtype)

    @property
    def dimension(self) -> int:
        """Length of the longest row that a panel of these points holds."""
        vectors = [points for points in self.primitives if isinstance(points, Vectors)]
        return max((points.panel_width for points in vectors), default=1)

    @property
    def width(self) -> int:
        """Entries that the widest point brings into the cache."""
        return max((points.width for points in self.primitives), default=1)

    @classmethod
    def prepare(
        cls, program: Program, X: Any, like: Operand | None = None, shared: bool = False
    ) -> Operand:
        """Look at X, data or :class:`Views` of them, through the programme's views.

        ``like`` is the operand on the other side: both are seen from its centres. ``shared``
        primitives are exact enough for every kernel that is made of them.
        """
        views = Views.of(X)
        n = views.n
        primitives: list[Any] = []
        for k, primitive in enumerate(program.primitives):
            seen = views.seen(primitive.view)
            rate = np.inf if shared else program.rates[k]
            if primitive.kind == op.PRECOMPUTED:
                primitives.append(GivenMatrix(seen.X))
            elif primitive.kind == op.FUNCTION:
                primitives.append(FunctionValues(seen.X, n, primitive.function))
            elif primitive.kind == op.STRINGS:
                primitives.append(StringValues.prepare(seen.X, primitive.function))
            else:
                data = seen.numbers
                data = canonical(data) if sp.issparse(data) else np.ascontiguousarray(data)
                other = like.primitives[k] if like else None
                primitives.append(Vectors.prepare(data, primitive.kind, rate, other))
        return cls(primitives, factors_of(program, views), n)

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

    def as_float32(self, copied: bool = True) -> Operand:
        """Return the same points for tiles in float32, their data copied or converted by tile."""
        converted = [primitive.as_float32(copied) for primitive in self.primitives]
        return Operand(converted, self.factors.astype(np.float32), self.n, np.float32)

    @property
    def fits_float32(self) -> bool:
        """Whether squared lengths are in a range where float32 neither over- nor underflows."""
        vectors = [points for points in self.primitives if isinstance(points, Vectors)]
        largest = [float(points.sizes.max(initial=0.0)) for points in vectors]
        return all(value == 0.0 or 1e-30 < value < 1e30 for value in largest)

    def rounding(self, program: Program) -> float:
        """Bound on the error of a kernel value: see :meth:`Program.rounding`."""
        return program.rounding([getattr(points, "rounding", 0.0) for points in self.primitives])

    @property
    def entry_time(self) -> float:
        """About how long a kernel value between these points takes, in nanoseconds."""
        return 0.5 + sum(
            points.entry_time
            if isinstance(points, StringValues)
            else (0.02 if isinstance(points, DenseVectors) else 0.05) * points.width
            for points in self.primitives
        )

    @property
    def is_cheap(self) -> bool:
        """Whether a kernel value is rather made again than kept."""
        return self.entry_time < _CHEAP

    @property
    def float32_bytes(self) -> int:
        """What :meth:`as_float32` allocates."""
        vectors = [points for points in self.primitives if isinstance(points, Vectors)]
        return sum(4 * points.n * (points.width + 1) for points in vectors)


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
            X, squares = vectors.X, vectors.sizes
        return cls(X, squares, diagonal, np.float32(program.gaussian_rate))


def factors_of(program: Program, views: Views) -> np.ndarray:
    """Values of the programme's functions of one point, (factors, n)."""
    n = views.n
    factors = np.empty((len(program.factors), n))
    for k, factor in enumerate(program.factors):
        if isinstance(factor.function, Program):
            factors[k] = _inverse_lengths(factor.function, views)
            continue
        values = np.asarray(factor.function(views.through(factor.view)))
        if values.size != n or values.dtype.kind not in "fiub":
            raise ValueError(
                f"f(X) in f(x) k(x, z) f(z) returned {values.size} values of type "
                f"{values.dtype} for {n} rows; it must return one real number per row."
            )
        factors[k] = values.reshape(n)
    return factors


def _inverse_lengths(program: Program, views: Views) -> np.ndarray:
    """``1 / sqrt(k(x, x))`` of every point; zero stays zero."""
    from maxmargin.backends.cpu.values import kernel_diagonal  # which is made of operands

    squares = kernel_diagonal(program, Operand.prepare(program, views))
    if squares.min(initial=0.0) < 0:
        raise ValueError(
            f"k(x, x) is {squares.min():.3g} for a point, so that k(x, z) / sqrt(k(x, x) k(z, z)) "
            "is no number: only a kernel with a positive diagonal can be normalized."
        )
    lengths = np.sqrt(squares)
    return np.divide(1.0, lengths, out=np.zeros_like(lengths), where=lengths > 0)


@singledispatch
def variance(X: Any) -> float:
    """Variance of all entries of X, as scikit-learn's ``gamma="scale"`` means it.

    Data that are not arrays in memory may register how they know theirs.
    """
    with np.errstate(over="ignore", invalid="ignore"):  # infinity is for the caller to refuse
        if sp.issparse(X):
            X = canonical(X)
            size = X.shape[0] * X.shape[1]
            mean = X.data.sum(dtype=np.float64) / size
            stored = np.square(X.data - mean).sum()
            return float((stored + (size - X.nnz) * np.square(mean)) / size)
        mean = X.mean(dtype=np.float64)
        total = sum(
            float(np.square(X[start:stop] - mean).sum())
            for start, stop in stretches(X.shape[0], X.shape[1])
        )
    return total / X.size


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
