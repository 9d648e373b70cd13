"""A kernel matrix on a GPU: what a solver, a certificate and a prediction ask of it."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import torch

from maxmargin.backends import program as op
from maxmargin.backends.cpu.cancellation import (
    roundings,
    too_far_for_float32,
)
from maxmargin.backends.cuda import kernels
from maxmargin.backends.cuda.points import Panel, Points, Side, Vectors, moved
from maxmargin.backends.cuda.values import Diagonal, expand, values
from maxmargin.backends.cuda.work import LEAST_CELLS, MOST_CELLS, TILE_SHARE, Bounded
from maxmargin.backends.interior_point import MATRICES
from maxmargin.backends.program import Program

_RESIDENT_SHARE = 0.6  # of the budget, for the whole matrix; the rest is for what is made of it
_SETS_SHARE = 0.2  # for the matrices of working sets
_FUSED_WIDTH = 128  # features up to which the fused kernel keeps a row in registers
_FUSED_SUMS = 4  # that it makes values for, each anew; more of them share what is written down


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
        return values(self.program, side, side, Diagonal(len(tiles))).reshape(-1).cpu().numpy()

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
        left = self.points.side(self.to_device(rows), torch.float64)
        right = self.points.side(self.to_device(columns), torch.float64)
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

    def to_device(self, array: np.ndarray) -> torch.Tensor:
        """Bring an array to the device."""
        return moved(array, self.device)

    def halve_budget(self) -> bool:
        """Make do without the whole matrix, and with half of the memory."""
        self._resident, self._tried = None, True
        return super().halve_budget()

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
        float32 = self._precision == torch.float32
        return gaussian and float32 and type(self.points.primitives[0]) is Vectors

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

    def float32_products(
        self, weights: torch.Tensor, places: torch.Tensor | None = None
    ) -> torch.Tensor:
        """``K @ weights`` (n, k) from float32 values; where ``places`` are given, among these."""
        size = weights.abs().amax(0).clamp_(min=torch.finfo(torch.float64).tiny)
        K, scaled = self.resident(), (weights / size).float()
        if K is not None and places is None:
            return (K @ scaled).double() * size
        everything = torch.arange(self.n, device=self.device) if places is None else places
        count, k = scaled.shape
        if K is not None or (self._fused and k <= _FUSED_SUMS):
            counts = torch.full((k,), count, dtype=torch.int32, device=self.device)
            rows = everything.expand(k, count)
            return self.sums(rows, scaled.T, counts, everything[None]).T.double() * size
        right = self.points.side(everything, self._precision)
        return expand(self.program, self.points, places, right, scaled, self.memory) * size

    def float32_rows(self, rows: torch.Tensor, places: torch.Tensor | None) -> torch.Tensor:
        """Rows of the matrix in float32, or the same among the points at ``places``."""
        everything = slice(None) if places is None else places
        left = self.points.side(rows if places is None else places[rows], self._precision)
        right = self.points.side(everything, self._precision)
        return values(self.program, left, right, self.points).float()

    def _rows_at_once(self, width: int) -> int:
        cells = int(np.clip(TILE_SHARE * self.memory / 4, LEAST_CELLS, MOST_CELLS))
        cells //= 1 if self._precision == torch.float32 else 4
        return max(min(cells // max(width, 1), 8 * cells // self.points.bytes_per_row), 1)

    def sets_at_once(self, q: int) -> int:
        """How many working sets of q variables, with their data, take a part of the memory."""
        each = q * (16 * q + self.points.bytes_per_row)
        return max(int(_SETS_SHARE * self.memory) // each, 1)


class Expansion(Bounded):
    """The points of a kernel expansion on a device, to be evaluated at others.

    For a precomputed kernel they are only columns of the matrix that comes later.
    """

    def __init__(
        self, program: Program, X: Any, support: np.ndarray, device: torch.device, memory: int
    ):
        self.program, self.device, self.memory = program, device, memory
        self.columns = moved(support.astype(np.int64), device)
        self.given = any(p.kind == op.PRECOMPUTED for p in program.primitives)
        self.points = None if self.given else Points.prepare(program, X, device, memory)

    def rows_at_once(self, X: Any, columns: int) -> int:
        """How many rows of X, as dense float64, take a part of the memory with their sums."""
        width = max(X.shape[1] if len(X.shape) > 1 else 1, 1) + columns
        return max(int(TILE_SHARE * self.memory) // (8 * width), 1)

    def at(self, X: Any, coefficients: np.ndarray, stretches: list[tuple[int, int]]) -> np.ndarray:
        """Sums at the rows of X over stretches of the points, (n, stretches, k)."""
        left = Points.prepare(self.program, X, self.device, self.memory, like=self.points)
        right = self._right(left)
        out = np.empty((left.n, len(stretches), len(coefficients)))
        for s, (start, stop) in enumerate(stretches):
            weights = moved(np.ascontiguousarray(coefficients[:, start:stop].T), self.device)
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
