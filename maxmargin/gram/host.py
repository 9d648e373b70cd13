"""The Gram matrix ``K_ij = k(x_i, x_j)`` of one data set, behind one interface and one budget.

Solvers see rows, blocks, products and the diagonal; they never see X. Rows that were computed stay
resident as far as the memory budget goes and the least recently used make room for new ones. The
primitives (products, distances) can be kept apart from the kernel's values, so that several
kernels over the same primitives, such as a grid of gammas, compute them once.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from maxmargin import memory as _memory
from maxmargin.backends import cpu
from maxmargin.backends.cpu.linear import Design
from maxmargin.backends.data import refuse_corrupt
from maxmargin.backends.program import PRECOMPUTED, Program
from maxmargin.backends.threads import ALONE, Workers
from maxmargin.backends.views import Views
from maxmargin.gram.spectrum import Definiteness, Spectrum
from maxmargin.gram.store import RowStore, Scratch, capacity_of
from maxmargin.kernels.base import Kernel, Validity

_CHECKED_POINTS, _EXAMINED_POINTS = 128, 512
_CALLED_ONCE = 2000  # points up to which a function's values are all computed at the start
_COMPACTED = 1 << 20  # values from which a better form of the data pays
_HALVED = 1024  # points from which values among them are made only once for both
_SYMMETRY = 1e-6
_FACTORED = 4  # coefficients, times the features, from which the linear kernel's factors pay
NARROW_RANGE = 1e-6, 1e12  # of kernel values, that float32 can tell apart
_NARROW_SHARE = 0.3  # of the memory, for data in float32
T = TypeVar("T")


class Gram:
    """The Gram matrix of one data set under one kernel.

    Made by :meth:`of`. The matrix is symmetric, so row i is also column i.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin import Gram
    >>> from maxmargin.kernels import Linear
    >>> gram = Gram.of(np.array([[1.0], [2.0], [3.0]]), Linear())
    >>> gram.rows([2])
    array([[3., 6., 9.]])
    >>> gram.matvec(np.array([1.0, 0.0, -1.0]))
    array([-2., -4., -6.])
    >>> gram.take([0, 2]).block([0, 1], [0, 1])
    array([[1., 3.],
           [3., 9.]])
    """

    def __init__(
        self,
        kernel: Kernel,
        program: Program,
        points: cpu.Operand,
        *,
        memory: int,
        primitives: RowStore | None = None,
        narrow: cpu.Operand | None = None,
    ) -> None:
        self.kernel, self.program, self.points = kernel, program, points
        self._narrow = narrow
        self._narrow_rows: RowStore | None = None
        self.scratch = Scratch()
        self.n = points.n
        self.memory = memory
        self.primitives = primitives
        spent = 0 if primitives is None else primitives.nbytes
        self.store = RowStore(self.n, (self.n,), capacity_of(self.n, self.n, memory - spent))

    @classmethod
    def of(
        cls,
        X: Any,
        kernel: Kernel,
        *,
        feature_names: Sequence[str] | None = None,
        memory: int | None = None,
        keep_primitives: bool = False,
        at_once: bool = True,
    ) -> Gram:
        """Gram matrix of the rows of X.

        Parameters
        ----------
        X : validated data: dense float32/float64, CSR, a square matrix or objects, as the kernel
            takes them
        kernel : Kernel
        feature_names : sequence of str, optional
            Names of the columns of X, for kernels on columns chosen by name.
        memory : int, optional
            Bytes for resident rows, of values and of primitives together; by default a quarter of
            what is free. Two rows are always held.
        keep_primitives : bool, default=False
            Keep products and distances too, for :meth:`with_kernel`.
        at_once : bool, default=True
            Let a Python function compute the whole matrix of up to 2,000 points in one call. Who
            must hear the clock between its calls does without.
        """
        refuse_corrupt(X)
        memory = _memory.budget("auto") if memory is None else memory
        views = Views(X)
        kernel = kernel.resolve(views, feature_names)
        if not keep_primitives:
            return cls.of_resolved(views, kernel, memory=memory, at_once=at_once)
        program = kernel.lower()
        points = cpu.Operand.prepare(program, views, shared=True)
        per_row = points.n * max(len(program.primitives), 1)
        capacity = capacity_of(points.n, per_row, memory // 2)
        kept = RowStore(points.n, (len(program.primitives), points.n), capacity)
        return cls(kernel, program, points, memory=memory, primitives=kept)

    @classmethod
    def of_resolved(cls, X: Any, kernel: Kernel, *, memory: int, at_once: bool = True) -> Gram:
        """As :meth:`of`, for a resolved kernel; X are data or :class:`Views` of them."""
        program = kernel.lower()
        points = cpu.Operand.prepare(program, X)
        few = points.n <= _CALLED_ONCE and 8 * points.n**2 <= memory
        if at_once and program.calls_python and few:
            program, points = _evaluated(kernel, program, points)
        return cls(kernel, program, points, memory=memory)

    def with_kernel(self, kernel: Kernel) -> Gram:
        """Gram matrix of the same points under another kernel over the same primitives.

        The kernel must be resolved and made of the primitives of this one, as ``RBF`` is for every
        gamma; with ``keep_primitives`` the two then share what is computed.
        """
        program = kernel.lower()
        if program.primitives != self.program.primitives or program.factors != self.program.factors:
            raise ValueError(
                f"{kernel!r} is not made of the primitives of {self.kernel!r}, so the two cannot "
                "share a Gram matrix: build a new one with Gram.of."
            )
        points = self.points.under(program) if self.primitives is None else self.points
        return Gram(kernel, program, points, memory=self.memory, primitives=self.primitives)

    on_device = False  # whether a GPU has the matrix

    @property
    def resident(self) -> bool:
        """Whether the whole matrix fits the budget."""
        return self.store.capacity == self.n

    @cached_property
    def diagonal(self) -> np.ndarray:
        """``K_ii`` for every i, shape (n,)."""
        return cpu.finite(cpu.kernel_diagonal(self.program, self.points), self.kernel)

    @property
    def is_tame(self) -> bool:
        """Whether the matrix is known to be symmetric, and finite where its diagonal is.

        So it is for a valid kernel of products and distances alone: ``K_ij^2 <= K_ii K_jj``.
        """
        made_here = all(isinstance(points, cpu.Vectors) for points in self.points.primitives)
        return made_here and self.kernel.validity is Validity.VALID

    @cached_property
    def rounding(self) -> float:
        """Bound on the error of ``K_ij``, in roundings of ``sqrt(K_ii K_jj)``."""
        return self.points.rounding(self.program)

    def rows(self, rows: Any) -> np.ndarray:
        """Rows of the matrix, shape (q, n)."""
        rows = np.asarray(rows, dtype=np.int64)
        out = np.empty((len(rows), self.n))
        known = self.store.slot[rows] >= 0
        out[known] = self.store.data[self.store.slot[rows[known]]]
        if not known.all():
            out[~known] = self._computed(rows[~known])
        return out

    def block(self, rows: Any, columns: Any) -> np.ndarray:
        """Values between some points and others, shape (q, m)."""
        rows, columns = np.asarray(rows, dtype=np.int64), np.asarray(columns, dtype=np.int64)
        out = np.empty((len(rows), len(columns)))
        known = self.store.slot[rows] >= 0
        out[known] = self.store.data[np.ix_(self.store.slot[rows[known]], columns)]
        if not known.all():
            out[~known] = self._computed(rows[~known], self.points.take(columns))
        return out

    def matvec(
        self, coefficients: np.ndarray, rows: Any = None, workers: Workers = ALONE
    ) -> np.ndarray:
        """``K @ coefficients`` in float64, or only some rows of it."""
        scale = self.program.product_scale
        if scale is not None and np.count_nonzero(coefficients) > _FACTORED * self._rows.features:
            # X (X' coefficients): two products with the data in place of one with the matrix
            design = Design(self._rows.X, 0.0, workers)
            out = scale * design.values(design.combination(coefficients))
            return cpu.finite(out if rows is None else out[np.asarray(rows)], self.kernel)
        active = np.flatnonzero(coefficients)
        rows = np.arange(self.n) if rows is None else np.asarray(rows, dtype=np.int64)
        everything = len(rows) == self.n and np.array_equal(rows, np.arange(self.n))
        out = np.zeros(len(rows))
        known = self.store.slot[active] >= 0
        step = self._rows_at_once()
        for part in _parts(active[known], step):
            slots = self.store.slot[part]
            data = self.store.data[slots] if everything else self.store.data[np.ix_(slots, rows)]
            out += coefficients[part] @ data
        unknown = active[~known]
        if len(unknown):
            self._add_products(unknown, coefficients[unknown], rows, out, workers)
            cpu.finite(out, self.kernel)
        return out

    @cached_property
    def _rows(self) -> Design:
        """Rows of data whose products the matrix holds."""
        points = self.points.primitives[0]
        return Design(points.X if points.index is None else points.X[points.index], 0.0)

    def _add_products(
        self,
        active: np.ndarray,
        weights: np.ndarray,
        rows: np.ndarray,
        out: np.ndarray,
        workers: Workers,
    ) -> None:
        """Add ``K[rows, active] @ weights`` to ``out``; what is symmetric is computed by half."""
        place = np.full(self.n, -1)
        place[rows] = np.arange(len(rows))
        among = place[active]
        if len(active) >= _HALVED and (among >= 0).all():
            points = self._compacted(self.points.take(active), len(active))
            out[among] += cpu.accumulate_square(self.program, points, weights, workers)
            place[active] = -1
            rest = place[rows] >= 0
        else:
            rest = np.ones(len(rows), dtype=bool)
        if rest.any():
            whole = len(rows) == self.n and rest.all() and (np.diff(rows) == 1).all()
            right = self.points if whole else self.points.take(rows[rest])
            right = right if whole else self._compacted(right, len(active))
            sums = np.zeros(right.n)
            cpu.accumulate(self.program, self.points, active, weights, right, sums, workers)
            out[rest] += sums

    def _compacted(self, points: cpu.Operand, uses: int) -> cpu.Operand:
        """Return the points in their fastest form, where that pays and has room."""
        room = points.narrow_bytes <= _NARROW_SHARE * self.memory
        return points.compact() if room and points.n * uses > _COMPACTED else points

    def take(self, rows: Any, memory: int | None = None) -> Gram:
        """Gram matrix of a subset of the points: their data shared, with a store of its own."""
        rows = np.asarray(rows, dtype=np.int64)
        taken = Gram(
            self.kernel,
            self.program,
            self.points.take(rows),
            memory=self.memory if memory is None else memory,
            narrow=None if self._narrow is None else self._narrow.take(rows),
        )
        taken.diagonal, taken.scratch = self.diagonal[rows], self.scratch
        return taken

    def narrow(self) -> cpu.Operand:
        """Return the points for tiles in float32, made once and shared by subsets.

        A copy where it fits a part of the budget; otherwise tile after tile is converted.
        """
        if self._narrow is None:
            copied = self.points.narrow_bytes <= _NARROW_SHARE * self.memory
            self._narrow = self.points.narrow(copied)
        return self._narrow

    @cached_property
    def fits_float32(self) -> bool:
        """Whether float32 has room for the data and for the kernel's values."""
        low, high = NARROW_RANGE
        return self.points.fits_float32 and bool(low < np.abs(self.diagonal).max() < high)

    @property
    def narrow_bytes(self) -> int:
        """Memory that the float32 points of this matrix take, or will take."""
        wanted = self.points.narrow_bytes
        return wanted if wanted <= _NARROW_SHARE * self.memory else 0

    def narrow_rows(self, capacity: int) -> RowStore:
        """Store of so many float32 rows: that of the last time, with what is in it, if as large."""
        if self._narrow_rows is None or self._narrow_rows.capacity != capacity:
            self._narrow_rows = RowStore(self.n, (self.n,), capacity, np.float32)
        return self._narrow_rows

    def forget(self) -> None:
        """Give back the room of rows that a solver has made for itself."""
        self.forget_narrow_rows()

    def forget_narrow_rows(self) -> None:
        """Give back the memory of :meth:`narrow_rows`."""
        self._narrow_rows = None

    def require(self, rows: np.ndarray) -> None:
        """Make rows resident, at most as many as the store holds."""
        if self.program.is_given and self.resident and not self.store.used:
            self.store.adopt(self.points.primitives[0].whole())
            return
        new = self.store.missing(rows)
        self.store.touch(rows[self.store.slot[rows] >= 0])
        if not len(new):
            return
        slots = self.store.claim(new)
        try:
            if (np.diff(slots) == 1).all():
                self._computed(new, out=self.store.data[slots[0] : slots[-1] + 1])
            else:
                self.store.data[slots] = self._computed(new)
        except BaseException:
            self.store.slot[new] = -1  # interrupted or refused: these rows hold nothing
            self.store.owner[slots], self.store.stamp[slots] = -1, 0
            raise

    @property
    def is_there(self) -> bool:
        """Whether all values are in memory already: computed, or those of a given matrix."""
        if self.store.used and not (self.store.slot < 0).any():
            return True
        return self.program.is_given and self.points.primitives[0].is_whole

    def filled(self, workers: Workers = ALONE) -> RowStore:
        """Return the store with all rows in it, for a matrix that is ``resident``."""
        if self.program.is_given or self.store.used or self.primitives is not None:
            self.require(np.arange(self.n))
            return self.store
        values = np.empty((self.n, self.n))
        cpu.kernel_square(self.program, self.points, None, values, workers)
        self.store.adopt(values if self.is_tame else cpu.finite(values, self.kernel))
        return self.store

    def check(self) -> None:
        """Refuse a kernel that returns NaN or is not symmetric, on a sample, before a solve.

        A precomputed matrix is looked at as a whole: it is there already.
        """
        on_diagonal = float(np.abs(self.diagonal).max())
        if self.is_tame:
            return
        K, mirrored = self._mirrored()
        if K is mirrored and cpu.total_asymmetry(K) <= _SYMMETRY * on_diagonal:
            return
        largest, difference = cpu.asymmetry(K, mirrored)
        if difference > _SYMMETRY * max(largest, on_diagonal):
            raise ValueError(
                f"The kernel {self.kernel!r} is not symmetric: k(x, z) and k(z, x) differ "
                f"by {difference:.3g}. A kernel must be; (K + K.T) / 2 makes a matrix so."
            )

    def _mirrored(self) -> tuple[np.ndarray, np.ndarray]:
        """Return values with their mirror image."""
        if self.program.primitives[0].kind == PRECOMPUTED:
            K = self.points.primitives[0].K
            return K, K
        sample = cpu.spread_out(self.n, _CHECKED_POINTS)
        half = len(sample) // 2 + 1
        return self.block(sample[:half], sample), self.block(sample, sample[:half])

    @cached_property
    def spectrum(self) -> Definiteness | Spectrum:
        """What is known about the signs of the matrix's eigenvalues, or what will tell.

        A valid kernel proves it. Otherwise the eigenvalues will: of the whole matrix up to 512
        points, beyond that of a sample, where a negative one is a proof but none is not.
        """
        if self.kernel.validity is Validity.VALID:
            return Definiteness.PROVEN
        sample = cpu.spread_out(self.n, _EXAMINED_POINTS)
        if self.program.is_given:
            block = self.points.take(sample).primitives[0].whole()
        else:
            block = self.block(sample, sample)
        return Spectrum(block, len(sample) == self.n)

    @property
    def definiteness(self) -> Definiteness:
        """What is known about the signs of the matrix's eigenvalues."""
        known = self.spectrum
        return known.definiteness if isinstance(known, Spectrum) else known

    def _computed(
        self, rows: np.ndarray, right: cpu.Operand | None = None, out: np.ndarray | None = None
    ) -> np.ndarray:
        right = self.points if right is None else right
        out = np.empty((len(rows), right.n)) if out is None else out
        if self.primitives is not None and right is self.points:
            factors = self.points.factors
            for start in range(0, len(rows), self.primitives.capacity):
                part = slice(start, start + self.primitives.capacity)
                stored = self._primitives_of(rows[part])
                cpu.kernel_values(self.program, stored, factors[:, rows[part]], factors, out[part])
        else:
            cpu.kernel_rows(self.program, self.points, rows, right, out)
        return cpu.finite(out, self.kernel)

    def _primitives_of(self, rows: np.ndarray) -> np.ndarray:
        """Primitives of some rows, shape (p, q, n), computed once while they stay resident."""
        kept = self.primitives
        assert kept is not None
        kept.touch(rows[kept.slot[rows] >= 0])
        new = kept.missing(rows)
        if len(new):
            values = np.empty((len(self.program.primitives), len(new), self.n))
            cpu.primitive_rows(self.points, new, self.points, values)
            slots = kept.claim(new)
            kept.data[slots] = values.swapaxes(0, 1)
        return np.ascontiguousarray(kept.data[kept.slot[rows]].swapaxes(0, 1))

    def _rows_at_once(self) -> int:
        """Rows of a temporary block: an eighth of the budget, at most one panel."""
        return int(min(max(self.memory // 8 // (8 * self.n), 1), cpu.PANEL_ROWS))


def _evaluated(kernel: Kernel, program: Program, points: cpu.Operand) -> tuple:
    """Programme and points of the same matrix, all values computed: one call of the function."""
    everything = np.arange(points.n)
    if program.is_function:
        values = points.primitives[0].whole()
    else:
        tiles = np.empty((len(points.primitives), points.n, points.n))
        for seen, tile in zip(points.primitives, tiles, strict=True):
            seen.tile(seen.panel(everything), 0, points.n, tile)
        values = np.empty((points.n, points.n))
        cpu.kernel_values(program, tiles, points.factors, points.factors, values)
    given = Program()
    given.push(PRECOMPUTED)
    return given, cpu.Operand.prepare(given, cpu.finite(values, kernel))


def _parts(rows: np.ndarray, step: int) -> list[np.ndarray]:
    return [rows[start : start + step] for start in range(0, len(rows), step)]
