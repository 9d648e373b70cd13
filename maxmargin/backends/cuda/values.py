"""Kernel values and their sums on a GPU, tile by tile."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from maxmargin.backends import program as op
from maxmargin.backends.cuda.points import Panel, Points, Side
from maxmargin.backends.cuda.work import LEAST_CELLS, MOST_CELLS, TILE_SHARE
from maxmargin.backends.program import Program


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
        elif opcode == op.SQRT:
            top.sqrt_()
        elif opcode == op.LOG1P:
            top.log1p_()
        elif opcode == op.SIN:
            top.sin_()
        elif opcode == op.LOG:
            top.log_()
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


class Diagonal:
    """Primitives whose tiles are already there: those of points with themselves."""

    def __init__(self, count: int):
        self.primitives = [self] * count

    def tile(self, left: Panel, right: Panel) -> torch.Tensor:
        """Return the values as they are."""
        return left.rows


def expand(
    program: Program,
    points: Points,
    index: torch.Tensor | None,
    right: Side,
    weights: torch.Tensor,
    memory: int,
) -> torch.Tensor:
    """``K(points[index], right) @ weights``, tile by tile in the precision of the right side."""
    n = points.n if index is None else len(index)
    m, k = weights.shape
    dtype = right.panels[0].dtype
    weights = weights.to(dtype)
    out = torch.zeros((n, k), dtype=torch.float64, device=points.device)
    cells = int(np.clip(TILE_SHARE * memory / 16, LEAST_CELLS, MOST_CELLS))
    across = min(m, max(cells // 1024, 1))
    down = max(min(cells // across, 8 * cells // points.bytes_per_row), 1)
    make: Any = values
    if program.gaussian_rate is not None:
        make = _Gaussians(program.gaussian_rate, right, min(down, n) * across)
    for start in range(0, n, down):
        part = slice(start, min(start + down, n))
        left = points.side(part if index is None else index[part], dtype)
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
