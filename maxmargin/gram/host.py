"""The Gram matrix of data on the host: rows resident under one memory budget.

Rows that were computed stay as far as the budget goes, and the least recently used make room for
new ones.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from maxmargin.backends import cpu
from maxmargin.backends.cpu.linear import Design
from maxmargin.backends.program import PRECOMPUTED, Program
from maxmargin.backends.threads import ALONE, Workers
from maxmargin.gram.base import FLOAT32_RANGE, Gram
from maxmargin.gram.store import RowStore, Scratch, capacity_of
from maxmargin.kernels.base import Kernel

if TYPE_CHECKING:
    from maxmargin.gram.device import DeviceGram

_CALLED_ONCE = 2000  # points up to which a function's values are all computed at the start
_PAIRED_ONCE = 10_000  # the same for functions of two strings, which take microseconds a value
_COMPACTED = 1 << 20  # values from which a better form of the data pays
_HALVED = 1024  # points from which values among them are made only once for both
_FACTORED = 4  # coefficients, times the features, from which the linear kernel's factors pay
_FLOAT32_SHARE = 0.3  # of the memory, for data in float32


class HostGram(Gram):
    """The Gram matrix of data on the host.

    What SMO reads: ``store``, the rows that are resident. What WorkingSet reads: ``points``, and
    ``float32_points`` with the room for rows and blocks of their values.

    Parameters
    ----------
    kernel : Kernel
        Resolved.
    program : Program
    points : Operand
        The data as the programme sees them.
    memory : int
        Bytes for resident rows.
    float32 : Operand, optional
        The same points for float32 tiles, where they are made already.
    """

    def __init__(
        self,
        kernel: Kernel,
        program: Program,
        points: cpu.Operand,
        *,
        memory: int,
        float32: cpu.Operand | None = None,
    ) -> None:
        super().__init__(kernel, program, points.n, memory)
        self.points, self._float32 = points, float32
        self._float32_rows: RowStore | None = None
        self.scratch = Scratch()
        self.store = RowStore(self.n, capacity_of(self.n, memory))

    @classmethod
    def prepare(
        cls,
        X: Any,
        kernel: Kernel,
        memory: int,
        at_once: bool = True,
        workers: Callable[[], Workers] | None = None,
    ) -> HostGram:
        """Look at data or views of them through a resolved kernel: see :meth:`Gram.of_resolved`."""
        program = kernel.lower()
        points = cpu.Operand.prepare(program, X)
        called = points.n <= _CALLED_ONCE and 8 * points.n**2 <= memory
        paired = points.n <= _PAIRED_ONCE and 16 * points.n**2 <= memory
        if at_once and program.calls_python and called:
            program, points = _evaluated(kernel, program, points)
        elif workers and program.pairs_strings and paired:
            values, rounding = np.empty((points.n, points.n)), points.rounding(program)
            cpu.kernel_square(program, points, None, values, workers())
            program, points = _given(kernel, values)
            points.primitives[0].rounding = rounding
            memory -= 8 * points.n**2
        return cls(kernel, program, points, memory=memory)

    @property
    def host(self) -> HostGram:
        """This matrix."""
        return self

    @property
    def device(self) -> DeviceGram:
        """Refused: this matrix is on the host."""
        raise ValueError("This Gram matrix is on the host: DeviceGram.of brings one to a GPU.")

    @property
    def width(self) -> int:
        """Entries of the widest point."""
        return self.points.width

    @property
    def resident(self) -> bool:
        """Whether the whole matrix fits the budget."""
        return self.store.capacity == self.n

    @cached_property
    def diagonal(self) -> np.ndarray:
        """``K_ii`` for every i, shape (n,)."""
        return cpu.finite(cpu.kernel_diagonal(self.program, self.points), self.kernel)

    @cached_property
    def rounding(self) -> float:
        """Bound on the error of ``K_ij``, in roundings of ``sqrt(K_ii K_jj)``."""
        return self.points.rounding(self.program)

    def rows(self, rows: Any) -> np.ndarray:
        """Rows of the matrix, shape (q, n)."""
        rows = np.asarray(rows, dtype=np.int64)
        known = self.store.slot[rows] >= 0
        if not known.any():
            return self._computed(rows)
        out = np.empty((len(rows), self.n))
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
        return self._products(coefficients, rows, workers)

    def matmat(self, coefficients: Any, rows: Any = None, workers: Workers = ALONE) -> np.ndarray:
        """``K @ coefficients`` in float64, or only some rows of it, for several columns.

        The coefficients are an array or a CSC array.
        """
        dense = coefficients.toarray() if sp.issparse(coefficients) else np.asarray(coefficients)
        return self._products(np.ascontiguousarray(dense.T), rows, workers).T

    def float32_matmat(self, coefficients: np.ndarray, workers: Workers = ALONE) -> np.ndarray:
        """``K @ coefficients`` (n, k) from values in float32: for steps, not for certificates."""
        size = np.maximum(np.abs(coefficients).max(axis=0), np.finfo(np.float64).tiny)
        weights = np.ascontiguousarray((coefficients / size).T, dtype=np.float32)
        points = self.float32_points()
        return cpu.accumulate_square(self.program, points, weights, workers).T * size

    def _products(self, weights: np.ndarray, rows: Any, workers: Workers) -> np.ndarray:
        """``weights @ K`` at some rows, for weights (n,) or several of them (k, n)."""
        active = np.flatnonzero(weights if weights.ndim == 1 else weights.any(axis=0))
        scale = self.program.product_scale
        if scale is not None and len(active) > _FACTORED * self._rows.features:
            # X (X' weights): two products with the data in place of one with the matrix
            design = Design(self._rows.X, 0.0, workers)
            out = scale * design.values(design.combination(weights.T)).T
            return cpu.finite(out if rows is None else out[..., np.asarray(rows)], self.kernel)
        rows = np.arange(self.n) if rows is None else np.asarray(rows, dtype=np.int64)
        everything = len(rows) == self.n and np.array_equal(rows, np.arange(self.n))
        out = np.zeros((*weights.shape[:-1], len(rows)))
        known = self.store.slot[active] >= 0
        step = self._rows_at_once()
        for part in _parts(active[known], step):
            slots = self.store.slot[part]
            data = self.store.data[slots] if everything else self.store.data[np.ix_(slots, rows)]
            out += weights[..., part] @ data
        unknown = active[~known]
        if len(unknown):
            self._add_products(unknown, weights[..., unknown], rows, out, workers)
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
        """Add ``weights @ K[active, rows]`` to ``out``; what is symmetric is computed by half."""
        rest: Any = slice(None)  # of the rows, where nothing is added yet
        if len(active) >= _HALVED:
            place = np.full(self.n, -1)
            place[rows] = np.arange(len(rows))
            among = place[active]
            if (among >= 0).all():
                points = self._compacted(self.points.take(active), len(active))
                out[..., among] += cpu.accumulate_square(self.program, points, weights, workers)
                place[active] = -1
                rest = np.flatnonzero(place[rows] >= 0)
        rows = rows[rest]
        if len(rows):
            whole = len(rows) == self.n and (np.diff(rows) == 1).all()
            right = self.points if whole else self.points.take(rows)
            right = right if whole else self._compacted(right, len(active))
            sums = np.zeros((*weights.shape[:-1], right.n))
            cpu.accumulate(self.program, self.points, active, weights, right, sums, workers)
            out[..., rest] += sums

    def _compacted(self, points: cpu.Operand, uses: int) -> cpu.Operand:
        """Return the points in their fastest form, where that pays and has room."""
        room = points.float32_bytes <= _FLOAT32_SHARE * self.memory
        return points.compact() if room and points.n * uses > _COMPACTED else points

    def take(self, rows: Any, memory: int | None = None) -> HostGram:
        """Gram matrix of a subset of the points: their data shared, with a store of its own."""
        rows = np.asarray(rows, dtype=np.int64)
        taken = HostGram(
            self.kernel,
            self.program,
            self.points.take(rows),
            memory=self.memory if memory is None else memory,
            float32=None if self._float32 is None else self._float32.take(rows),
        )
        taken.diagonal, taken.scratch = self.diagonal[rows], self.scratch
        return taken

    def float32_points(self) -> cpu.Operand:
        """Return the points for tiles in float32, made once and shared by subsets.

        A copy where it fits a part of the budget; otherwise tile after tile is converted.
        """
        if self._float32 is None:
            copied = self.points.float32_bytes <= _FLOAT32_SHARE * self.memory
            self._float32 = self.points.as_float32(copied)
        return self._float32

    @cached_property
    def fits_float32(self) -> bool:
        """Whether float32 has room for the data and for the kernel's values."""
        low, high = FLOAT32_RANGE
        return self.points.fits_float32 and bool(low < np.abs(self.diagonal).max() < high)

    @property
    def float32_bytes(self) -> int:
        """Memory that the float32 points of this matrix take, or will take."""
        wanted = self.points.float32_bytes
        return wanted if wanted <= _FLOAT32_SHARE * self.memory else 0

    def float32_rows(self, capacity: int) -> RowStore:
        """Store of so many float32 rows: that of the last time, with what is in it, if as large."""
        if self._float32_rows is None or self._float32_rows.capacity != capacity:
            self._float32_rows = RowStore(self.n, capacity, np.float32)
        return self._float32_rows

    def forget(self) -> None:
        """Give back the memory of :meth:`float32_rows`."""
        self._float32_rows = None

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
        if self.program.is_given or self.store.used:
            self.require(np.arange(self.n))
            return self.store
        self.store.adopt(self._whole(workers))
        return self.store

    def given(self, workers: Workers = ALONE) -> HostGram:
        """Return the same matrix with all of its values made, to be taken from for many solves."""
        if self.program.is_given:
            return self
        program, points = _given(self.kernel, self._whole(workers))
        points.primitives[0].rounding = self.rounding
        return HostGram(self.kernel, program, points, memory=self.memory - 8 * self.n**2)

    def _whole(self, workers: Workers) -> np.ndarray:
        values = np.empty((self.n, self.n))
        cpu.kernel_square(self.program, self.points, None, values, workers)
        return values if self.is_tame else cpu.finite(values, self.kernel)

    def _computed(
        self, rows: np.ndarray, right: cpu.Operand | None = None, out: np.ndarray | None = None
    ) -> np.ndarray:
        right = self.points if right is None else right
        out = np.empty((len(rows), right.n)) if out is None else out
        cpu.kernel_rows(self.program, self.points, rows, right, out)
        return cpu.finite(out, self.kernel)

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
    return _given(kernel, values)


def _given(kernel: Kernel, values: np.ndarray) -> tuple:
    """Programme and points of a matrix whose values are there."""
    given = Program()
    given.push(PRECOMPUTED)
    return given, cpu.Operand.prepare(given, cpu.finite(values, kernel))


def _parts(rows: np.ndarray, step: int) -> list[np.ndarray]:
    return [rows[start : start + step] for start in range(0, len(rows), step)]
