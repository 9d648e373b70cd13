"""Kernel values on a GPU: torch's products, then the programme on the tile; sums by Triton.

The data lie on the device as they came, float32 or float64, dense where that fits and CSR where it
does not. Sums that a certificate or a prediction rests on are made in float64, tile by tile. What
the solver needs is float32: the whole matrix where it fits (:meth:`Matrix.resident`), otherwise
values that are made where they are summed and never written down.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

import numpy as np
import scipy.sparse as sp
import torch

from maxmargin.backends import cuda_kernels as kernels
from maxmargin.backends import program as op
from maxmargin.backends.cpu.cancellation import (
    CANCELLED,
    EXPONENT,
    centre_of,
    roundings,
    too_far_for_float32,
)
from maxmargin.backends.cpu.operand import canonical, look
from maxmargin.backends.cuda_cancellation import mend
from maxmargin.backends.device import interpreted
from maxmargin.backends.interior_point import MATRICES
from maxmargin.backends.program import Program

SHARE_OF_FREE = 0.85  # of the device's memory that a fit may take when nobody says
_RESIDENT_SHARE = 0.6  # of the budget, for the whole matrix; the rest is for what is made of it
_TILE_SHARE = 0.15
_SETS_SHARE = 0.2  # for the matrices of working sets
_DENSE_SHARE = 0.3  # of the budget, up to which CSR data become dense
_LEAST_CELLS, _MOST_CELLS = 1 << 20, 1 << 29
_LEAST_MEMORY = 1 << 20  # bytes below which to make do with less is pointless
_HELD_FROM = 1 << 24  # bytes from which holding the pages of an array pays
_FUSED_WIDTH = 128  # features up to which the fused kernel keeps a row in registers

T = TypeVar("T")


class Panel(NamedTuple):
    """Some points as a primitive sees them: rows (less the centre), and their squared lengths.

    ``raw`` are the rows as they came, for distances in float64. Of a given matrix the rows are only
    places; ``dtype`` is that of the values to be made.
    """

    rows: torch.Tensor
    squares: torch.Tensor | None
    dtype: torch.dtype
    raw: torch.Tensor | None = None


class Vectors:
    """Rows of a real matrix on the device, for products and distances.

    Distances are made as on the CPU: see :class:`maxmargin.backends.cpu.Vectors`. ``rate`` is the
    factor of a distance in the kernel's exponent, ``largest`` the largest size of a row less the
    centre.
    """

    def __init__(self, X: torch.Tensor, kind: str, centre: torch.Tensor | None, rate: float):
        self.X, self.kind, self.centre, self.rate = X, kind, centre, rate
        self.n, self.width = X.shape
        self.largest = self._largest()

    def _largest(self) -> float:
        """Largest squared length, or L1 norm, of a row less the centre."""
        if self.kind == op.DOT or not self.n:
            return 0.0
        step, largest = max(_LEAST_CELLS // max(self.width, 1), 1), []
        for start in range(0, self.n, step):
            rows = self._some(slice(start, start + step)).double()
            rows = rows if self.centre is None else rows - self.centre
            sizes = rows.abs() if self.kind == op.L1_DISTANCE else rows.square()
            largest.append(sizes.sum(1).max())
        return float(torch.stack(largest).max())

    def _some(self, index: Any) -> torch.Tensor:
        return self.X[index]

    def panel(self, index: Any, dtype: torch.dtype) -> Panel:
        """Return some rows, less the centre; their squares are those of the rows as rounded."""
        raw = rows = self._some(index)
        exact = self.kind == op.L1_DISTANCE and dtype == torch.float64  # from differences
        if self.centre is not None and not exact:
            rows = rows.double() - self.centre
        rows = rows.to(dtype)
        if self.kind != op.SQUARED_DISTANCE:
            return Panel(rows, None, dtype)
        squares = rows.double().square().sum(1).to(dtype)
        return Panel(rows, squares, dtype, raw if dtype == torch.float64 else None)

    def tile(self, left: Panel, right: Panel) -> torch.Tensor:
        """Return the primitive between all rows of two panels; leading dimensions are batches."""
        if self.kind == op.L1_DISTANCE:
            return torch.cdist(left.rows, right.rows, p=1)
        products = left.rows @ right.rows.transpose(-1, -2)
        if self.kind == op.DOT:
            return products
        assert left.squares is not None
        assert right.squares is not None
        products.mul_(-2).add_(left.squares[..., :, None]).add_(right.squares[..., None, :])
        products.clamp_(min=0)
        self.mend(products, left, right, 1.0)
        return products

    @property
    def cancels(self) -> bool:
        """Whether distances between rows may have lost digits that the kernel's value needs."""
        return self.largest > 0 and not 2.0 * self.rate * self.largest <= EXPONENT

    def mend(
        self,
        tile: torch.Tensor,
        left: Panel,
        right: Panel,
        factor: float,
        exponential: bool = False,
    ) -> None:
        """Make those entries of a tile again, ``factor`` times a squared distance, that cancelled.

        Then take the exponential of the tile, if that is asked for.
        """
        if left.raw is not None and right.raw is not None and self.cancels:
            assert left.squares is not None
            assert right.squares is not None
            rows, squares = (left.raw, right.raw), (left.squares, right.squares)
            mend(tile, rows, squares, factor, EXPONENT / self.rate, CANCELLED, exponential)
        elif exponential:
            tile.exp_()

    def diagonal(self) -> torch.Tensor:
        """Value of the primitive between each point and itself, in float64."""
        values = torch.zeros(self.n, dtype=torch.float64, device=self.X.device)
        if self.kind == op.DOT:
            step = max(_LEAST_CELLS // max(self.width, 1), 1)
            for start in range(0, self.n, step):
                rows = self.panel(slice(start, start + step), torch.float64).rows
                values[start : start + step] = rows.square().sum(1)
        return values


class SparseVectors(Vectors):
    """CSR rows that would not fit if they were dense: they are written out by the block."""

    def __init__(
        self, X: Any, kind: str, centre: torch.Tensor | None, rate: float, device: torch.device
    ):
        self.kind, self.centre, self.rate = kind, centre, rate
        self.n, self.width = X.shape
        self.X = _moved(X.data, device)
        self.indices = _moved(X.indices.astype(np.int64), device)
        self.indptr = _moved(X.indptr.astype(np.int64), device)
        self.largest = self._largest()

    def _some(self, index: Any) -> torch.Tensor:
        chosen = torch.arange(self.n, device=self.X.device)[index]
        first, counts = self.indptr[chosen], self.indptr[chosen + 1] - self.indptr[chosen]
        row = torch.repeat_interleave(torch.arange(len(chosen), device=first.device), counts)
        start = torch.cumsum(counts, 0) - counts
        entry = torch.arange(len(row), device=first.device) - start[row] + first[row]
        dense = torch.zeros((len(chosen), self.width), dtype=self.X.dtype, device=first.device)
        dense[row, self.indices[entry]] = self.X[entry]
        return dense


class GivenMatrix:
    """Points of a matrix of kernel values."""

    width = 1

    def __init__(self, K: torch.Tensor, columns: torch.Tensor | None = None):
        self.K, self.n = K, K.shape[0]
        self.columns = torch.arange(K.shape[1], device=K.device) if columns is None else columns

    def panel(self, index: Any, dtype: torch.dtype) -> Panel:
        """Return the places of some points."""
        return Panel(torch.arange(self.n, device=self.K.device)[index], None, dtype)

    def tile(self, left: Panel, right: Panel) -> torch.Tensor:
        """Return the values of the left rows at the columns of the right points."""
        places = left.rows[..., :, None], self.columns[right.rows][..., None, :]
        return self.K[places].to(left.dtype)

    def diagonal(self) -> torch.Tensor:
        """Diagonal of the matrix."""
        return self.K.diagonal().double().clone()


@dataclass(frozen=True)
class Side:
    """Some points as a programme sees them: a panel for each primitive, and their factors."""

    panels: list[Panel]
    factors: torch.Tensor

    def __getitem__(self, part: Any) -> Side:
        panels = [
            panel._replace(
                rows=panel.rows[part],
                squares=None if panel.squares is None else panel.squares[part],
                raw=None if panel.raw is None else panel.raw[part],
            )
            for panel in self.panels
        ]
        return Side(panels, self.factors[:, part])


class Points:
    """A data set on a device, as every primitive of a programme sees it."""

    def __init__(self, primitives: list, factors: torch.Tensor, n: int, device: torch.device):
        self.primitives, self.factors, self.n, self.device = primitives, factors, n, device

    @classmethod
    def prepare(
        cls, program: Program, X: Any, device: torch.device, memory: int, like: Points | None = None
    ) -> Points:
        """Bring X to the device through the programme's views.

        Distances are taken from the medians of the columns where these are far from zero, or from
        the centres of ``like``.
        """
        n = X.shape[0]
        primitives: list[Any] = []
        for k, primitive in enumerate(program.primitives):
            data = _viewed(X, primitive.view)
            if primitive.kind == op.PRECOMPUTED:
                primitives.append(GivenMatrix(_moved(np.ascontiguousarray(data), device)))
                continue
            other, rate = like.primitives[k] if like else None, program.rates[k]
            primitives.append(_vectors(data, primitive.kind, rate, other, device, memory))
        factors = np.empty((len(program.factors), n))
        for k, factor in enumerate(program.factors):
            factors[k] = np.asarray(factor.function(_viewed(X, factor.view))).reshape(n)
        return cls(primitives, _moved(factors, device), n, device)

    def side(self, index: Any, dtype: torch.dtype) -> Side:
        """Return some points for tiles of this precision."""
        panels = [primitive.panel(index, dtype) for primitive in self.primitives]
        return Side(panels, self.factors[:, index].to(dtype))

    @property
    def bytes_per_row(self) -> int:
        """What a row takes on one side of a float64 tile."""
        return sum(8 * (primitive.width + 1) for primitive in self.primitives)


def _vectors(
    data: Any, kind: str, rate: float, like: Vectors | None, device: torch.device, memory: int
) -> Vectors:
    """Bring rows to the device, centred where their distances are wanted."""
    data = canonical(data) if sp.issparse(data) else np.ascontiguousarray(data)
    centre = None if like is None else like.centre
    if like is None and kind != op.DOT:
        found = centre_of(data)
        centre = None if found is None else _moved(found, device)
    vectors = _brought(data, kind, rate, centre, device, memory)
    if like is not None:  # rows of both sides meet in a tile
        vectors.largest = max(vectors.largest, like.largest)
    return vectors


def _brought(
    data: Any, kind: str, rate: float, centre: Any, device: torch.device, memory: int
) -> Vectors:
    """Bring rows to the device as dense ones, where there is room for that."""
    if sp.issparse(data):
        sparse = SparseVectors(data, kind, centre, rate, device)
        n, d = data.shape
        if n * d * data.dtype.itemsize > _DENSE_SHARE * memory:
            return sparse
        X = torch.empty((n, d), dtype=sparse.X.dtype, device=device)
        step = max(_MOST_CELLS // 8 // max(d, 1), 1)
        for start in range(0, n, step):
            X[start : start + step] = sparse._some(slice(start, start + step))
        return Vectors(X, kind, centre, rate)
    return Vectors(_moved(data, device), kind, centre, rate)


def _moved(array: np.ndarray, device: torch.device) -> torch.Tensor:
    """Copy an array to the device, its pages held in place meanwhile: twice as fast a copy."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The given NumPy array is not writable")
        tensor = torch.from_numpy(array)  # only read from
    if device.type != "cuda" or array.nbytes < _HELD_FROM or not array.flags.writeable:
        return tensor.to(device)
    runtime = torch.cuda.cudart()
    held = int(runtime.cudaHostRegister(tensor.data_ptr(), array.nbytes, 0)) == 0
    try:
        return tensor.to(device)
    finally:
        if held:
            runtime.cudaHostUnregister(tensor.data_ptr())


def _viewed(X: Any, view: op.View) -> Any:
    for step in view:
        X = look(X, step)
    return X


def values(program: Program, left: Side, right: Side, points: Any) -> torch.Tensor:
    """Kernel values between two sides, (..., q, m)."""
    tiles = [
        primitive.tile(a, b)
        for primitive, a, b in zip(points.primitives, left.panels, right.panels, strict=True)
    ]
    stack: list[torch.Tensor] = []
    for opcode, first, second, constant in program.code:
        if opcode == op.PUSH:
            stack.append(tiles[first].clone() if _used_again(program, first) else tiles[first])
            continue
        top = stack[-1]
        if opcode == op.SCALE:
            top *= constant
        elif opcode == op.SHIFT:
            top += constant
        elif opcode in (op.ADD, op.MULTIPLY):
            above = stack.pop()
            stack[-1] = stack[-1] + above if opcode == op.ADD else stack[-1] * above
        elif opcode == op.EXP:
            top.exp_()
        elif opcode == op.TANH:
            top.tanh_()
        elif opcode == op.POWER:
            stack[-1] = top**first
        elif opcode == op.POLYNOMIAL:
            coefficients = program.coefficients[first : first + second]
            total = torch.full_like(top, coefficients[-1])
            for coefficient in reversed(coefficients[:-1]):
                total = total * top + coefficient
            stack[-1] = total
        elif opcode == op.FACTOR:
            stack[-1] = top * left.factors[first][..., :, None] * right.factors[first][..., None, :]
    return stack[0]


def _used_again(program: Program, primitive: int) -> bool:
    return sum(step[0] == op.PUSH and step[1] == primitive for step in program.code) > 1


class _FullPrecision:
    """Float32 products in full from the first who wants it to the last: fits may overlap."""

    def __init__(self) -> None:
        self.lock, self.holders = threading.Lock(), 0
        self.before: Any = None

    def __enter__(self) -> None:
        products = torch.backends.cuda.matmul
        with self.lock:
            if not self.holders:
                self.new = hasattr(products, "fp32_precision")  # torch 2.9 and later
                if self.new:
                    self.before, products.fp32_precision = products.fp32_precision, "ieee"
                else:
                    self.before, products.allow_tf32 = products.allow_tf32, False
            self.holders += 1

    def __exit__(self, *error: Any) -> None:
        products = torch.backends.cuda.matmul
        with self.lock:
            self.holders -= 1
            if not self.holders:
                setattr(products, "fp32_precision" if self.new else "allow_tf32", self.before)


_full_precision = _FullPrecision()


@contextmanager
def at_work(device: torch.device) -> Iterator[None]:
    """Launch on this device, and keep torch from rounding the factors of float32 products."""
    here = torch.cuda.device(device) if device.type == "cuda" else nullcontext()
    with here, _full_precision:
        yield


def torch_device(name: str) -> torch.device:
    """Torch's device of this name; the CPU where Triton's interpreter plays the GPU."""
    return torch.device("cpu" if interpreted() else name)


def budget(device: torch.device, cache_size: float | str) -> int:
    """Bytes of device memory that a fit may take beyond the data."""
    if cache_size != "auto":
        return int(float(cache_size) * (1 << 20))
    if device.type == "cpu":
        return 1 << 30
    free, _ = torch.cuda.mem_get_info(device)
    held = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    return int(SHARE_OF_FREE * (free + held))


class Bounded:
    """What works within so many bytes of the device's memory, or within fewer."""

    memory: int

    def make_do(self) -> bool:
        """Make do with half of the memory; whether that was still possible."""
        self.memory //= 2
        torch.cuda.empty_cache()
        return self.memory >= _LEAST_MEMORY


def patiently(work: Callable[[], T], holder: Bounded) -> T:
    """Do some work; where memory runs out, since others have taken it, again with less."""
    while True:
        try:
            return work()
        except torch.OutOfMemoryError as error:
            short = error.with_traceback(None)  # which would keep the work's tensors alive
        if not holder.make_do():
            raise short


class Matrix(Bounded):
    """The Gram matrix of the points of one data set, on their device.

    Parameters
    ----------
    program : Program
        The kernel.
    points : Points
    memory : int
        Bytes that may be taken for values.
    """

    def __init__(self, program: Program, points: Points, memory: int):
        self.program, self.points, self.memory = program, points, memory
        self.n, self.device = points.n, points.device
        self._resident: torch.Tensor | None = None
        self._tried = False
        self._split: kernels.Split | None = None

    def diagonal(self) -> np.ndarray:
        """``K_ii`` for every i, in float64 on the host."""
        tiles = [primitive.diagonal()[:, None, None] for primitive in self.points.primitives]
        panels = [Panel(tile, None, torch.float64) for tile in tiles]
        side = Side(panels, self.points.factors[:, :, None])
        return values(self.program, side, side, _Diagonal(len(tiles))).reshape(-1).cpu().numpy()

    # -- sums in float64 -----------------------------------------------------------------------

    def products(
        self, weights: torch.Tensor, active: torch.Tensor, rows: torch.Tensor | None = None
    ) -> torch.Tensor:
        """``K[rows, active] @ weights`` in float64 for a matrix of weights (active, k)."""
        if not len(active):
            n = self.n if rows is None else len(rows)
            return torch.zeros((n, weights.shape[1]), dtype=torch.float64, device=self.device)
        right = self.points.side(active, torch.float64)
        return expand(self.program, self.points, rows, right, weights, self.memory)

    def block(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Values between some points and others in float64, on the host."""
        left = self.points.side(self.brought(rows), torch.float64)
        right = self.points.side(self.brought(columns), torch.float64)
        return values(self.program, left, right, self.points).cpu().numpy()

    @property
    def fits_float32(self) -> bool:
        """Whether squared lengths are in a range where float32 neither over- nor underflows."""
        for points in self.points.primitives:
            if isinstance(points, Vectors):
                largest = float(points.X.abs().max()) ** 2 * points.width if points.X.numel() else 0
                if largest and not 1e-30 < largest < 1e30:
                    return False
        return True

    @property
    def rounding(self) -> float:
        """Bound on the error of a float64 value: see :meth:`Program.rounding`."""
        return self.program.rounding(
            [
                roundings(points.kind, points.width, points.rate, points.largest)
                if isinstance(points, Vectors)
                else 0.0
                for points in self.points.primitives
            ]
        )

    @cached_property
    def _precision(self) -> torch.dtype:
        """What the values for the solver are made in: float32 where it knows the distances."""
        for points in self.points.primitives:
            if not isinstance(points, Vectors) or points.kind == op.DOT:
                continue
            if too_far_for_float32(points.rate, np.array([points.largest])):
                return torch.float64
        return torch.float32

    @cached_property
    def largest(self) -> float:
        """Largest value on the diagonal."""
        return float(np.abs(self.diagonal()).max())

    def brought(self, array: np.ndarray) -> torch.Tensor:
        """Bring an array to the device."""
        return _moved(array, self.device)

    def make_do(self) -> bool:
        """Make do without the whole matrix, and with half of the memory."""
        self._resident, self._tried = None, True
        return super().make_do()

    # -- float32 values for the solver ---------------------------------------------------------

    def resident(self) -> torch.Tensor | None:
        """Return the whole matrix in float32 if it fits, made once."""
        if not self._tried:
            self._tried = True
            if 4 * self.n**2 <= _RESIDENT_SHARE * self.memory:
                self._resident = self._whole()
        return self._resident

    def _whole(self) -> torch.Tensor:
        if self._gaussian:
            return kernels.gaussian_square(self._split_rows())
        return self._among(slice(None), torch.float32)

    def among(self, rows: torch.Tensor) -> torch.Tensor:
        """Values between some points and themselves, in float64 on the device."""
        return self._among(rows, torch.float64)

    def _among(self, rows: Any, dtype: torch.dtype) -> torch.Tensor:
        side = self.points.side(rows, dtype if dtype == torch.float64 else self._precision)
        n = self.n if isinstance(rows, slice) else len(rows)
        K = torch.empty((n, n), dtype=dtype, device=self.device)
        step = self._rows_at_once(n)
        for start in range(0, n, step):
            part = slice(start, min(start + step, n))
            K[part] = values(self.program, side[part], side, self.points)
        return K

    @property
    def largest_system(self) -> int:
        """Variables whose Newton steps have room in the part of the memory for working sets."""
        return int((_SETS_SHARE * self.memory / (8 * MATRICES)) ** 0.5)

    def square(self, rows: torch.Tensor) -> torch.Tensor:
        """Values among the points of each row of ``rows`` (p, q), shape (p, q, q)."""
        K = self.resident()
        if K is not None:
            return kernels.gathered(K, rows)
        if self._gaussian:
            return kernels.gaussian_blocks(self._split_rows(), rows)
        flat = self.points.side(rows.reshape(-1), self._precision)
        panels = [
            panel._replace(
                rows=panel.rows.reshape(*rows.shape, *panel.rows.shape[1:]),
                squares=None if panel.squares is None else panel.squares.reshape(rows.shape),
                raw=None if panel.raw is None else panel.raw.reshape(*rows.shape, -1),
            )
            for panel in flat.panels
        ]
        side = Side(panels, flat.factors.reshape(-1, *rows.shape))
        return values(self.program, side, side, self.points).float()

    def sums(
        self, rows: torch.Tensor, weights: torch.Tensor, counts: torch.Tensor, columns: torch.Tensor
    ) -> torch.Tensor:
        """``sum_k weights[p, k] K[rows[p, k], columns[p]]`` over the first ``counts[p]`` rows.

        ``rows``, ``weights`` are (p, q); ``columns`` is (p, m), or (1, m) for all alike; -1 in it
        is nowhere. Returns float32 (p, m).
        """
        K = self.resident()
        if K is not None:
            return kernels.row_sums(K, rows, weights, counts, columns)
        if self._fused and len(columns) == 1:
            own = columns[0].clamp(min=0)
            return kernels.gaussian_sums(self._split_rows(), rows, weights, counts, own)
        return self._sums_by_tile(rows, weights, counts, columns)

    @property
    def _gaussian(self) -> bool:
        """Whether the values are Gaussians of dense rows."""
        gaussian = self.program.gaussian_rate is not None and self.program.gaussian_rate < 0
        narrow = self._precision == torch.float32
        return gaussian and narrow and type(self.points.primitives[0]) is Vectors

    @property
    def _fused(self) -> bool:
        return self._gaussian and self.points.primitives[0].width <= _FUSED_WIDTH

    def _split_rows(self) -> kernels.Split:
        if self._split is None:
            assert self.program.gaussian_rate is not None
            self._split = kernels.Split.of(self.points.primitives[0], self.program.gaussian_rate)
        return self._split

    def _sums_by_tile(
        self, rows: torch.Tensor, weights: torch.Tensor, counts: torch.Tensor, columns: torch.Tensor
    ) -> torch.Tensor:
        p, q = rows.shape
        m = columns.shape[1]
        out = torch.zeros((p, m), dtype=torch.float32, device=self.device)
        place = torch.arange(q, device=self.device)
        weights = torch.where(place < counts[:, None], weights, 0)
        longest = int(counts.max())
        step = self._rows_at_once(max(longest, 1))
        for k in range(p):
            left = self.points.side(rows[k, :longest], self._precision)
            own = columns[k if len(columns) > 1 else 0].clamp(min=0)
            for start in range(0, m, step):
                part = slice(start, min(start + step, m))
                right = self.points.side(own[part], self._precision)
                tile = values(self.program, left, right, self.points).float()
                out[k, part] = weights[k, :longest] @ tile
        return out

    def _rows_at_once(self, width: int) -> int:
        cells = int(np.clip(_TILE_SHARE * self.memory / 4, _LEAST_CELLS, _MOST_CELLS))
        cells //= 1 if self._precision == torch.float32 else 4
        return max(min(cells // max(width, 1), 8 * cells // self.points.bytes_per_row), 1)

    def sets_at_once(self, q: int) -> int:
        """How many working sets of q variables, with their data, take a part of the memory."""
        each = q * (16 * q + self.points.bytes_per_row)
        return max(int(_SETS_SHARE * self.memory) // each, 1)


class _Diagonal:
    """Primitives whose tiles are already there: those of points with themselves."""

    def __init__(self, count: int):
        self.primitives = [self] * count

    def tile(self, left: Panel, right: Panel) -> torch.Tensor:
        return left.rows


def expand(
    program: Program,
    points: Points,
    index: torch.Tensor | None,
    right: Side,
    weights: torch.Tensor,
    memory: int,
) -> torch.Tensor:
    """``K(points[index], right) @ weights`` in float64, tile by tile."""
    n = points.n if index is None else len(index)
    m, k = weights.shape
    out = torch.zeros((n, k), dtype=torch.float64, device=points.device)
    cells = int(np.clip(_TILE_SHARE * memory / 16, _LEAST_CELLS, _MOST_CELLS))
    across = min(m, max(cells // 1024, 1))
    down = max(min(cells // across, 8 * cells // points.bytes_per_row), 1)
    make: Any = values
    if program.gaussian_rate is not None:
        make = _Gaussians(program.gaussian_rate, right, min(down, n) * across)
    for start in range(0, n, down):
        part = slice(start, min(start + down, n))
        left = points.side(part if index is None else index[part], torch.float64)
        for first in range(0, m, across):
            some = slice(first, min(first + across, m))
            out[part] += make(program, left, right[some], points) @ weights[some]
    return out


class _Gaussians:
    """Gaussian tiles by one product and one pass: distances are products of longer rows."""

    def __init__(self, rate: float, right: Side, cells: int):
        self.rate = rate
        rows = right.panels[0].rows
        self.room = torch.empty(cells, dtype=rows.dtype, device=rows.device)

    def __call__(self, program: Program, left: Side, right: Side, points: Points) -> torch.Tensor:
        a, b = left.panels[0], right.panels[0]
        tile = self.room[: len(a.rows) * len(b.rows)].view(len(a.rows), len(b.rows))
        left_rows = _bordered(a, -2.0 * self.rate, self.rate)
        torch.mm(left_rows, _bordered(b, 1.0, self.rate, turned=True).T, out=tile)
        points.primitives[0].mend(tile, a, b, self.rate, exponential=True)
        return tile


def _bordered(panel: Panel, scale: float, rate: float, turned: bool = False) -> torch.Tensor:
    """Rows such that the product with a turned one is ``rate * squared distance``."""
    assert panel.squares is not None
    border = [rate * panel.squares[:, None], torch.ones_like(panel.squares[:, None])]
    return torch.cat([scale * panel.rows, *(border[::-1] if turned else border)], 1)


class Expansion(Bounded):
    """The points of a kernel expansion on a device, to be evaluated at others.

    For a precomputed kernel they are only columns of the matrix that comes later.
    """

    def __init__(
        self, program: Program, X: Any, support: np.ndarray, device: torch.device, memory: int
    ):
        self.program, self.device, self.memory = program, device, memory
        self.columns = _moved(support.astype(np.int64), device)
        self.given = any(p.kind == op.PRECOMPUTED for p in program.primitives)
        self.points = None if self.given else Points.prepare(program, X, device, memory)

    def rows_at_once(self, X: Any, columns: int) -> int:
        """How many rows of X, as dense float64, take a part of the memory with their sums."""
        width = max(X.shape[1] if len(X.shape) > 1 else 1, 1) + columns
        return max(int(_TILE_SHARE * self.memory) // (8 * width), 1)

    def at(self, X: Any, coefficients: np.ndarray, stretches: list[tuple[int, int]]) -> np.ndarray:
        """Sums at the rows of X over stretches of the points, (n, stretches, k)."""
        left = Points.prepare(self.program, X, self.device, self.memory, like=self.points)
        right = self._right(left)
        out = np.empty((left.n, len(stretches), len(coefficients)))
        for s, (start, stop) in enumerate(stretches):
            weights = _moved(np.ascontiguousarray(coefficients[:, start:stop].T), self.device)
            some = right[slice(start, stop)]
            out[:, s] = expand(self.program, left, None, some, weights, self.memory).cpu().numpy()
        return out

    def _right(self, left: Points) -> Side:
        if self.points is not None:
            return self.points.side(slice(None), torch.float64)
        for points in left.primitives:
            points.columns = self.columns
        places = torch.arange(len(self.columns), device=self.device)
        panels = [Panel(places, None, torch.float64) for _ in left.primitives]
        return Side(panels, torch.empty((0, len(places)), dtype=torch.float64, device=self.device))
