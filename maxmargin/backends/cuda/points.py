"""Data on a GPU: dense rows, CSR rows or a given matrix, as the sides of tiles."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
import torch

from maxmargin.backends import program as op
from maxmargin.backends.columns import only, used_columns
from maxmargin.backends.cpu.cancellation import (
    CANCELLED,
    EXPONENT,
    centre_of,
)
from maxmargin.backends.cpu.operand import canonical, factors_of
from maxmargin.backends.cuda.cancellation import mend
from maxmargin.backends.cuda.work import LEAST_CELLS, MOST_CELLS
from maxmargin.backends.program import Program
from maxmargin.backends.views import Views

_DENSE_SHARE = 0.3  # of the budget, up to which CSR data become dense
_HELD_FROM = 1 << 24  # bytes from which holding the pages of an array pays


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
        self.columns: np.ndarray | None = None  # of the data as they came, where some are left out
        self.largest = self._largest()

    def _largest(self) -> float:
        """Largest squared length, or L1 norm, of a row less the centre."""
        if self.kind == op.DOT or not self.n:
            return 0.0
        step, largest = max(LEAST_CELLS // max(self.width, 1), 1), []
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
            step = max(LEAST_CELLS // max(self.width, 1), 1)
            for start in range(0, self.n, step):
                rows = self.panel(slice(start, start + step), torch.float64).rows
                values[start : start + step] = rows.square().sum(1)
        return values


class SparseVectors(Vectors):
    """CSR rows that would not fit if they were dense: they are written out by the block."""

    def __init__(
        self, X: Any, kind: str, centre: torch.Tensor | None, rate: float, device: torch.device
    ):
        self.kind, self.centre, self.rate, self.columns = kind, centre, rate, None
        self.n, self.width = X.shape
        self.X = moved(X.data, device)
        self.indices = moved(X.indices.astype(np.int64), device)
        self.indptr = moved(X.indptr.astype(np.int64), device)
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
        """Bring X, data or :class:`Views` of them, to the device through the programme's views.

        Distances are taken from the medians of the columns where these are far from zero, or from
        the centres of ``like``.
        """
        views = Views.of(X)
        n = views.n
        primitives: list[Any] = []
        for k, primitive in enumerate(program.primitives):
            seen = views.seen(primitive.view)
            if primitive.kind == op.PRECOMPUTED:
                primitives.append(GivenMatrix(moved(np.ascontiguousarray(seen.X), device)))
                continue
            other, rate = like.primitives[k] if like else None, program.rates[k]
            primitives.append(_vectors(seen.numbers, primitive.kind, rate, other, device, memory))
        return cls(primitives, moved(factors_of(program, views), device), n, device)

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
    if kind == op.DOT:
        columns = like.columns if like is not None else None
        columns = used_columns(data) if like is None and sp.issparse(data) else columns
        vectors = _brought(
            data if columns is None else only(data, columns), kind, rate, None, device, memory
        )
        vectors.columns = columns
        return vectors
    centre = None if like is None else like.centre
    if like is None:
        found = centre_of(data)
        centre = None if found is None else moved(found, device)
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
        step = max(MOST_CELLS // 8 // max(d, 1), 1)
        for start in range(0, n, step):
            X[start : start + step] = sparse._some(slice(start, start + step))
        return Vectors(X, kind, centre, rate)
    return Vectors(moved(data, device), kind, centre, rate)


def moved(array: np.ndarray, device: torch.device) -> torch.Tensor:
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
