"""Squared distances that lost their digits on a GPU, made again from differences, in Triton.

``|x|^2 + |z|^2 - 2 x'z`` rounds like its terms. Where a distance is small against these, and the
kernel's value is not negligible, the entry is made again from the rows as they came: see
:class:`maxmargin.backends.cpu.Vectors`, which does the same, and decision 0014 for the bound.

One pass reads a tile, mends it, takes the exponential where that is all that is left to do, and
writes it. A program looks at a small square of the tile; if any entry of it has cancelled, the
differences of all its pairs are taken, from rows that the cache then holds.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from maxmargin.backends.device import interpreted

_SIDE = 32  # entries of the square that a program looks at, along either side
_INTERPRETED_SIDE = 256  # where a program costs as much as thousands of entries


@triton.jit(do_not_specialize=["rows", "columns", "width"])
def _mend(
    tile,
    left,
    right,
    left_squares,
    right_squares,
    constants,
    rows,
    columns,
    width,
    EXPONENTIAL: tl.constexpr,
    SIDE: tl.constexpr,
):
    p = tl.program_id(2).to(tl.int64)
    i = tl.program_id(0).to(tl.int64) * SIDE + tl.arange(0, SIDE)
    j = tl.program_id(1).to(tl.int64) * SIDE + tl.arange(0, SIDE)
    here, there = i < rows, j < columns
    i, j = p * rows + i, p * columns + j
    size = tl.load(left_squares + i, mask=here, other=0.0)[:, None]
    size += tl.load(right_squares + j, mask=there, other=0.0)[None, :]
    place = tile + i[:, None] * columns + (j - p * columns)[None, :]
    inside = here[:, None] & there[None, :]
    value = tl.load(place, mask=inside, other=0.0)
    factor = tl.load(constants)  # float64, which an argument would not be
    lost = size > tl.load(constants + 1)
    lost = lost & ~(tl.abs(value) >= size * tl.load(constants + 2))  # also what is not a number
    if tl.max(lost.to(tl.int32)) > 0:
        total = tl.zeros((SIDE, SIDE), tl.float64)
        for k in range(width):
            x = tl.load(left + i * width + k, mask=here, other=0.0).to(tl.float64)
            z = tl.load(right + j * width + k, mask=there, other=0.0).to(tl.float64)
            difference = x[:, None] - z[None, :]
            total += difference * difference
        value = tl.where(lost, factor * total, value)
    if EXPONENTIAL:
        value = tl.exp(value)
    tl.store(place, value, mask=inside)


def mend(
    tile: torch.Tensor,
    rows: tuple[torch.Tensor, torch.Tensor],
    squares: tuple[torch.Tensor, torch.Tensor],
    factor: float,
    far: float,
    cancelled: float,
    exponential: bool = False,
) -> None:
    """Make those entries of a tile again that have cancelled, in place.

    Parameters
    ----------
    tile : float64 tensor (..., q, m)
        ``factor`` times squared distances.
    rows : two tensors (..., q, d) and (..., m, d)
        The points on either side, as they came.
    squares : two float64 tensors (..., q) and (..., m)
        Squared lengths that the distances were made of.
    factor, far, cancelled : float
        An entry has cancelled whose squares are together more than ``far``, and more than
        ``cancelled`` times the distance.
    exponential : bool
        Whether the tile becomes the exponential of itself.
    """
    *batch, q, m = tile.shape
    left, right, left_squares, right_squares = (array.contiguous() for array in (*rows, *squares))
    constants = [factor, far, abs(factor) / cancelled]
    side = _INTERPRETED_SIDE if interpreted() else _SIDE
    grid = triton.cdiv(q, side), triton.cdiv(m, side), int(torch.Size(batch).numel())
    _mend[grid](
        tile,
        left,
        right,
        left_squares,
        right_squares,
        torch.tensor(constants, dtype=torch.float64, device=tile.device),
        q,
        m,
        left.shape[-1],
        EXPONENTIAL=exponential,
        SIDE=side,
    )
