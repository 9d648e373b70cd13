"""Squared distances that lost their digits on a GPU, made again from differences, in Triton.

``|x|^2 + |z|^2 - 2 x'z`` rounds like its terms. Where a distance is small against these, and the
kernel's value is not negligible, the entry is made again from the rows as they came: see
:class:`maxmargin.backends.cpu.Vectors`, which does the same, and decision 0014 for the bound.

One pass over a tile marks what has cancelled, and takes the exponential where that is all that is
left to do; the pairs that are marked, mostly few, are then gathered.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from maxmargin.backends.device import interpreted

_LOOKED_AT = 1024  # entries of a row that a program looks at
_PAIRS, _FEATURES = 64, 64  # that a program takes the differences of, at a time


@triton.jit(do_not_specialize=["rows", "columns"])
def _mark(
    tile,
    left_squares,
    right_squares,
    constants,
    lost,
    rows,
    columns,
    EXPONENTIAL: tl.constexpr,
    BLOCK: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)  # of all tiles of a batch
    j = tl.program_id(1).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = j < columns
    size = tl.load(left_squares + row)
    size += tl.load(right_squares + row // rows * columns + j, mask=inside, other=0.0)
    place = row * columns + j
    value = tl.load(tile + place, mask=inside, other=0.0)
    far, share = tl.load(constants + 1), tl.load(constants + 2)
    cancelled = (size > far) & ~(tl.abs(value) >= size * share)  # also what is not a number
    tl.store(lost + place, cancelled, mask=inside)
    if EXPONENTIAL:
        tl.store(tile + place, tl.exp(value), mask=inside)


@triton.jit(do_not_specialize=["count", "rows", "columns", "width"])
def _make_again(
    tile,
    places,
    left,
    right,
    constants,
    count,
    rows,
    columns,
    width,
    EXPONENTIAL: tl.constexpr,
    PAIRS: tl.constexpr,
    FEATURES: tl.constexpr,
):
    k = tl.program_id(0).to(tl.int64) * PAIRS + tl.arange(0, PAIRS)
    inside = k < count
    place = tl.load(places + k, mask=inside, other=0)
    i = place // columns
    j = place % columns + i // rows * columns
    total = tl.zeros((PAIRS,), tl.float64)
    for start in range(0, width, FEATURES):
        feature = start + tl.arange(0, FEATURES)
        there = inside[:, None] & (feature < width)[None, :]
        x = tl.load(left + i[:, None] * width + feature[None, :], mask=there, other=0.0)
        z = tl.load(right + j[:, None] * width + feature[None, :], mask=there, other=0.0)
        difference = x.to(tl.float64) - z.to(tl.float64)
        total += tl.sum(difference * difference, 1)
    value = tl.load(constants) * total
    if EXPONENTIAL:
        value = tl.exp(value)
    tl.store(tile + place, value, mask=inside)


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
    tile : float64 tensor (..., q, m), contiguous
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
    (q, m), d = tile.shape[-2:], rows[0].shape[-1]
    left, right, left_squares, right_squares = (array.contiguous() for array in (*rows, *squares))
    # numbers handed to a kernel would be float32
    constants = torch.tensor([factor, far, abs(factor) / cancelled], dtype=torch.float64)
    constants = constants.to(tile.device, non_blocking=True)
    lost = torch.empty(tile.shape, dtype=torch.bool, device=tile.device)
    block = triton.next_power_of_2(m) if interpreted() else _LOOKED_AT
    grid = tile.numel() // max(m, 1), triton.cdiv(m, block)
    _mark[grid](
        *(tile, left_squares, right_squares, constants, lost, q, m),
        EXPONENTIAL=exponential,
        BLOCK=block,
    )
    places = torch.nonzero(lost.view(-1)).flatten()
    if len(places):
        _make_again[(triton.cdiv(len(places), _PAIRS),)](
            *(tile, places, left, right, constants, len(places), q, m, d),
            EXPONENTIAL=exponential,
            PAIRS=_PAIRS,
            FEATURES=_FEATURES,
        )
