"""What must be fused on a GPU, in Triton: the steps inside working sets, and sums of kernel rows.

A working set is solved by one program with its state in registers, so that a step costs two
reductions and reads two rows of a small matrix; many sets are solved side by side. Variables are
signed here, ``b = c a`` between its walls, so that a step of two adds to one what it takes from the
other. The scores v (see :mod:`maxmargin.duals`) are float32 and less their level; b is float64,
so that the sums which a constraint fixes stay what they are.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl

# Sizes that differ from call to call are not specialised: every variant would be compiled anew.
_BLOCK, _DEPTH = 128, 64  # of the fused sums: columns of a program, rows at a time
_COLUMNS = 512  # of the sums of stored rows
_LOOKED_AT = 1024  # variables that one program looks at


@triton.jit
def _highest(v, i, room, low, v2, i2, room2, low2):
    """Combine: the highest score with its place and its room, and the lowest of others."""
    first = (v > v2) | ((v == v2) & (i < i2))
    return (
        tl.where(first, v, v2),
        tl.where(first, i, i2),
        tl.where(first, room, room2),
        tl.minimum(low, low2),
    )


@triton.jit
def _best(gain, i, slope, room, gain2, i2, slope2, room2):
    """Combine: the largest gain with its place, slope and room."""
    first = (gain > gain2) | ((gain == gain2) & (i < i2))
    return (
        tl.where(first, gain, gain2),
        tl.where(first, i, i2),
        tl.where(first, slope, slope2),
        tl.where(first, room, room2),
    )


@triton.jit
def _greatest(gain, i, step, gain2, i2, step2):
    """Combine: the largest gain with its place and step."""
    first = (gain > gain2) | ((gain == gain2) & (i < i2))
    return tl.where(first, gain, gain2), tl.where(first, i, i2), tl.where(first, step, step2)


@triton.jit
def _finish(b, order, counts, steps, p, o, x, taken, Q: tl.constexpr):
    """Store what a set has become, and the order that brings what has moved to its front."""
    moved = (x != tl.load(b + p * Q + o)).to(tl.int32)
    count = tl.sum(moved, 0)
    still = count + tl.cumsum(1 - moved, 0) - 1
    place = tl.where(moved > 0, tl.cumsum(moved, 0) - 1, still)
    tl.store(order + p * Q + place, o.to(tl.int64))
    tl.store(counts + p, count)
    tl.store(b + p * Q + o, x)
    tl.store(steps + p, taken)


@triton.jit(do_not_specialize=["max_steps"])
def _pair_steps(
    K,
    score,
    b,
    lower,
    upper,
    group,
    order,
    counts,
    steps,
    tol,
    share,
    max_steps,
    Q: tl.constexpr,
    GROUPS: tl.constexpr,
):
    """SMO inside one working set: changes b until no pair violates by more than it should.

    That is ``tol`` or a share of the violation at the start, whichever is more.
    """
    p = tl.program_id(0).to(tl.int64)
    o = tl.arange(0, Q)
    v = tl.load(score + p * Q + o)
    x = tl.load(b + p * Q + o)
    low = tl.load(lower + p * Q + o)
    high = tl.load(upper + p * Q + o)
    base = K + p * Q * Q
    diagonal = tl.load(base + o * Q + o)
    if GROUPS == 2:
        second = tl.load(group + p * Q + o) > 0
    taken = 0
    goal = tol
    go = True
    while go:
        rises = x < high
        falls = x > low
        room = high - x
        if GROUPS == 2:
            top, i, room_i, bottom = tl.reduce(
                (
                    tl.where(rises & ~second, v, -1e18),
                    o,
                    room,
                    tl.where(falls & ~second, v, 1e18),
                ),
                0,
                _highest,
            )
            top2, i2, room2, bottom2 = tl.reduce(
                (tl.where(rises & second, v, -1e18), o, room, tl.where(falls & second, v, 1e18)),
                0,
                _highest,
            )
            wider = top2 - bottom2 > top - bottom
            falls = falls & (second == wider)
            top = tl.where(wider, top2, top)
            i = tl.where(wider, i2, i)
            room_i = tl.where(wider, room2, room_i)
            bottom = tl.where(wider, bottom2, bottom)
        else:
            top, i, room_i, bottom = tl.reduce(
                (tl.where(rises, v, -1e18), o, room, tl.where(falls, v, 1e18)), 0, _highest
            )
        if taken == 0:
            goal = tl.maximum(tol, share * (top - bottom))
        row_i = tl.load(base + i * Q + o)
        diagonal_i = tl.load(base + i * Q + i)
        slope = tl.where(falls, tl.maximum(top - v, 0.0), 0.0)
        curvature = tl.maximum(diagonal_i + diagonal - 2.0 * row_i, 1e-12)
        gain = slope * slope / curvature
        best, j, slope_j, room_j = tl.reduce((gain, o, slope, x - low), 0, _best)
        go = (top - bottom > goal) & (taken < max_steps) & (best > 0)
        if go:
            row_j = tl.load(base + j * Q + o)
            step = tl.minimum((best / slope_j).to(tl.float64), tl.minimum(room_i, room_j))
            v -= step.to(tl.float32) * (row_i - row_j)
            # a wall that is reached is reached exactly
            x = tl.where(o == i, tl.where(step == room_i, high, x + step), x)
            x = tl.where(o == j, tl.where(step == room_j, low, x - step), x)
            taken += 1
    _finish(b, order, counts, steps, p, o, x, taken, Q)


@triton.jit(do_not_specialize=["max_steps"])
def _single_steps(
    K,
    score,
    b,
    lower,
    upper,
    order,
    counts,
    steps,
    tol,
    share,
    max_steps,
    Q: tl.constexpr,
):
    """Steps of one variable inside one working set, for problems without a constraint."""
    p = tl.program_id(0).to(tl.int64)
    o = tl.arange(0, Q)
    v = tl.load(score + p * Q + o)
    x = tl.load(b + p * Q + o)
    low = tl.load(lower + p * Q + o)
    high = tl.load(upper + p * Q + o)
    base = K + p * Q * Q
    curvature = tl.maximum(tl.load(base + o * Q + o), 1e-12)
    taken = 0
    goal = tol
    go = True
    while go:
        slope = tl.maximum(tl.where(x < high, v, 0.0), tl.where(x > low, -v, 0.0))
        worst = tl.max(slope, 0)
        if taken == 0:
            goal = tl.maximum(tol, share * worst)
        gain = slope * slope / curvature
        best, i, wish = tl.reduce((gain, o, v / curvature), 0, _greatest)
        go = (worst > goal) & (taken < max_steps) & (best > 0)
        if go:
            row = tl.load(base + i * Q + o)
            moved = tl.where(o == i, tl.minimum(tl.maximum(x + wish.to(tl.float64), low), high), x)
            step = tl.sum(moved - x, 0)
            x = moved
            v -= step.to(tl.float32) * row
            go = step != 0
            taken += go.to(tl.int32)
    _finish(b, order, counts, steps, p, o, x, taken, Q)


class Solved(NamedTuple):
    """What the sets have become: the steps of each, and an order, those that moved first."""

    steps: torch.Tensor
    order: torch.Tensor
    counts: torch.Tensor


def steps_inside(
    K: torch.Tensor,
    score: torch.Tensor,
    b: torch.Tensor,
    lower: torch.Tensor,
    upper: torch.Tensor,
    group: torch.Tensor,
    n_groups: int,
    tol: float,
    share: float,
    max_steps: int,
) -> Solved:
    """Solve every working set (p, q), q a power of two; changes ``b``."""
    p, q = b.shape
    steps, counts = torch.empty((2, p), dtype=torch.int32, device=b.device)
    solved = Solved(steps, torch.empty((p, q), dtype=torch.int64, device=b.device), counts)
    shared: dict[str, Any] = {"Q": q, "num_warps": min(max(q // 128, 1), 8)}
    end = solved.order, counts, steps, tol, share, max_steps
    if n_groups == 0:
        _single_steps[(p,)](K, score, b, lower, upper, *end, **shared)
    else:
        _pair_steps[(p,)](K, score, b, lower, upper, group, *end, GROUPS=n_groups, **shared)
    return solved


@triton.jit(do_not_specialize=["stride", "m", "q", "shared"])
def _row_sums(
    K,
    stride,
    rows,
    weights,
    counts,
    columns,
    shared,
    out,
    m,
    q,
    BLOCK: tl.constexpr,
    DEPTH: tl.constexpr,
):
    p = tl.program_id(0).to(tl.int64)
    c = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = c < m
    column = tl.load(columns + p * shared + c, mask=inside, other=-1)
    inside = inside & (column >= 0)
    total = tl.zeros((DEPTH, BLOCK), tl.float32)
    count = tl.load(counts + p)
    for start in range(0, count, DEPTH):
        k = start + tl.arange(0, DEPTH)
        row = tl.load(rows + p * q + k, mask=k < count, other=0)
        weight = tl.load(weights + p * q + k, mask=k < count, other=0.0)
        place = row[:, None] * stride + column[None, :]
        total += weight[:, None] * tl.load(K + place, mask=inside[None, :], other=0.0)
    tl.store(out + p * m + c, tl.sum(total, 0), mask=c < m)


def row_sums(
    K: torch.Tensor,
    rows: torch.Tensor,
    weights: torch.Tensor,
    counts: torch.Tensor,
    columns: torch.Tensor,
) -> torch.Tensor:
    """Sums of stored rows at some columns: see :meth:`Matrix.sums`."""
    p, q = rows.shape
    m = columns.shape[1]
    out = torch.empty((p, m), dtype=torch.float32, device=K.device)
    shared = m if len(columns) > 1 else 0
    grid = (p, triton.cdiv(m, _COLUMNS))
    _row_sums[grid](
        K,
        K.stride(0),
        rows.contiguous(),
        weights.contiguous(),
        counts,
        columns.contiguous(),
        shared,
        out,
        m,
        q,
        BLOCK=_COLUMNS,
        DEPTH=8,
        num_warps=4,
    )
    return out


@triton.jit(do_not_specialize=["stride"])
def _gathered(K, stride, rows, out, q, BLOCK: tl.constexpr):
    p = tl.program_id(2).to(tl.int64)
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    j = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    row = tl.load(rows + p * q + i, mask=i < q, other=0)
    column = tl.load(rows + p * q + j, mask=j < q, other=0)
    value = tl.load(K + row[:, None] * stride + column[None, :])
    inside = (i < q)[:, None] & (j < q)[None, :]
    tl.store(out + p * q * q + i[:, None] * q + j[None, :], value, mask=inside)


def gathered(K: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    """Stored values among the points of each row of ``rows`` (p, q), shape (p, q, q)."""
    p, q = rows.shape
    out = torch.empty((p, q, q), dtype=torch.float32, device=K.device)
    blocks = triton.cdiv(q, 64)
    _gathered[(blocks, blocks, p)](K, K.stride(0), rows.contiguous(), out, q, BLOCK=64, num_warps=4)
    return out


@triton.jit
def _first_of(v, i, v2, i2):
    """Combine: the highest value with its place."""
    first = (v > v2) | ((v == v2) & (i < i2))
    return tl.where(first, v, v2), tl.where(first, i, i2)


@triton.jit
def _looked_at(b, lower, upper, v, group, place, known):
    """Whether variables may rise, and fall; their scores and groups."""
    x = tl.load(b + place, mask=known, other=0.0)
    rises = known & (x < tl.load(upper + place, mask=known, other=0.0))
    falls = known & (x > tl.load(lower + place, mask=known, other=0.0))
    score = tl.load(v + place, mask=known, other=0.0)
    own = tl.load(group + place, mask=known, other=0)
    return rises, falls, score, own


@triton.jit(do_not_specialize=["size", "blocks"])
def _kkt_scan(
    b, lower, upper, v, group, out, size, blocks, GROUPS: tl.constexpr, BLOCK: tl.constexpr
):
    problem = tl.program_id(0).to(tl.int64)
    block = tl.program_id(1)
    t = block * BLOCK + tl.arange(0, BLOCK)
    known = t < size
    place = problem * size + t
    rises, falls, score, own = _looked_at(b, lower, upper, v, group, place, known)
    for g in tl.static_range(GROUPS):
        up = rises & (own == g)
        down = falls & (own == g)
        top, first = tl.reduce((tl.where(up, score, float("-inf")), t), 0, _first_of)
        free = up & down
        at = out + ((problem * blocks + block) * GROUPS + g) * 5
        tl.store(at, top)
        tl.store(at + 1, first.to(tl.float64))
        tl.store(at + 2, tl.min(tl.where(down, score, float("inf")), 0))
        tl.store(at + 3, tl.sum(tl.where(free, score, 0.0), 0))
        tl.store(at + 4, tl.sum(tl.where(free, 1.0, 0.0), 0).to(tl.float64))


class Survey(NamedTuple):
    """What a look at all variables tells of every group of every problem, (problems, groups)."""

    top: torch.Tensor  # highest score of those that may rise,
    first: torch.Tensor  # whose it is,
    bottom: torch.Tensor  # and the lowest of those that may fall
    total: torch.Tensor  # sum over the free ones,
    free: torch.Tensor  # and how many these are


def kkt_scan(
    b: torch.Tensor,
    lower: torch.Tensor,
    upper: torch.Tensor,
    v: torch.Tensor,
    group: torch.Tensor,
    n_groups: int,
) -> Survey:
    """Look at all variables once."""
    problems, size = b.shape
    blocks = triton.cdiv(size, _LOOKED_AT)
    out = torch.empty((problems, blocks, n_groups, 5), dtype=torch.float64, device=b.device)
    _kkt_scan[(problems, blocks)](
        b, lower, upper, v, group, out, size, blocks, GROUPS=n_groups, BLOCK=_LOOKED_AT, num_warps=4
    )
    top, where = out[..., 0].max(1)
    first = out[..., 1].gather(1, where[:, None])[:, 0].long()
    return Survey(top, first, out[..., 2].amin(1), out[..., 3].sum(1), out[..., 4].sum(1))


@triton.jit(do_not_specialize=["size"])
def _keys(
    b, lower, upper, v, group, level, first, out, size, GROUPS: tl.constexpr, BLOCK: tl.constexpr
):
    problem = tl.program_id(0).to(tl.int64)
    t = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    known = t < size
    place = problem * size + t
    rises, falls, value, own = _looked_at(b, lower, upper, v, group, place, known)
    for g in tl.static_range(GROUPS):
        score = (value - tl.load(level + problem * GROUPS + g)).to(tl.float32)
        member = own == g
        leads = rises & member & (t == tl.load(first + problem * GROUPS + g))
        up = tl.where(rises & member & (score > 0), score, -1e30)
        up = tl.where(leads, 1e30, up)
        down = tl.where(falls & member & (score <= 0) & ~leads, -score, -1e30)
        row = out + ((problem * GROUPS + g) * 2) * size + t
        tl.store(row, up, mask=known)
        tl.store(row + size, down, mask=known)


def keys(
    b: torch.Tensor,
    lower: torch.Tensor,
    upper: torch.Tensor,
    v: torch.Tensor,
    group: torch.Tensor,
    level: torch.Tensor,
    first: torch.Tensor,
) -> torch.Tensor:
    """By how much variables violate, (problems, groups, 2, variables): to rise, and to fall.

    Nobody is on both sides; who is ``first`` to rise is far ahead there.
    """
    problems, size = b.shape
    groups = level.shape[1]
    out = torch.empty((problems, groups, 2, size), dtype=torch.float32, device=b.device)
    grid = (problems, triton.cdiv(size, _LOOKED_AT))
    _keys[grid](
        b,
        lower,
        upper,
        v,
        group,
        level.contiguous(),
        first.contiguous(),
        out,
        size,
        GROUPS=groups,
        BLOCK=_LOOKED_AT,
        num_warps=4,
    )
    return out


class Split(NamedTuple):
    """Rows of length one at most, each the sum of two float16 rows.

    ``2 ** (-unit * distance)`` is then the kernel, distances being squared ones.

    The coarse one lies on a grid on which products are exact in float32, and so are the squared
    distances between coarse rows; what the fine one adds is small, and so is its rounding. Four
    products of halves on tensor cores are faster than one of float32, and fifty times as exact.
    """

    coarse: torch.Tensor
    fine: torch.Tensor
    squares: torch.Tensor  # squared lengths of the coarse rows,
    rest: torch.Tensor  # and what is missing to those of the sums
    unit: float

    @classmethod
    def of(cls, vectors: Any, rate: float) -> Split:
        """Split rows for ``exp(rate * squared distance)``."""
        n, d, device = vectors.n, vectors.width, vectors.X.device
        width = triton.cdiv(d, _DEPTH) * _DEPTH if d > 64 else max(32, triton.next_power_of_2(d))
        coarse = torch.zeros((n, width), dtype=torch.float16, device=device)
        fine = torch.zeros_like(coarse)
        squares, rest = torch.empty((2, n), dtype=torch.float32, device=device)
        step = max((1 << 27) // width, 1)
        parts = [slice(start, min(start + step, n)) for start in range(0, n, step)]
        longest = max(float(vectors.panel(part, torch.float32).squares.max()) for part in parts)
        length, grid = 2.0 ** math.ceil(math.log2(max(longest**0.5, 1e-30))), 2.0**-11
        for part in parts:
            rows = vectors.panel(part, torch.float32).rows / length
            near = (rows / grid).round_().mul_(grid)
            coarse[part, :d] = near
            fine[part, :d] = rows.sub_(near)
            small = fine[part, :d].float()
            squares[part] = near.square().sum(1)
            rest[part] = ((2 * near + small) * small).sum(1)
        return cls(coarse, fine, squares, rest, -rate * length**2 * math.log2(math.e))


@triton.jit
def _gaussian_tile(
    coarse, fine, squares, rest, unit, r, c, D, BLOCK: tl.constexpr, DEPTH: tl.constexpr
):
    """Gaussians between the points r and the points c; of a point with itself exactly one."""
    exact = tl.zeros((BLOCK, BLOCK), tl.float32)
    small = tl.zeros((BLOCK, BLOCK), tl.float32)
    for start in range(0, D, DEPTH):
        d = start + tl.arange(0, DEPTH)
        a = tl.load(coarse + r[:, None] * D + d[None, :])
        b = tl.load(coarse + c[None, :] * D + d[:, None])
        a_fine = tl.load(fine + r[:, None] * D + d[None, :])
        b_fine = tl.load(fine + c[None, :] * D + d[:, None])
        exact = tl.dot(a, b, exact)
        small = tl.dot(a, b_fine, small)
        small = tl.dot(a_fine, b, small)
        small = tl.dot(a_fine, b_fine, small)
    power = 2.0 * exact - (tl.load(squares + r)[:, None] + tl.load(squares + c)[None, :])
    power += 2.0 * small - (tl.load(rest + r)[:, None] + tl.load(rest + c)[None, :])
    value = tl.exp2(unit * tl.minimum(power, 0.0))
    return tl.where(r[:, None] == c[None, :], 1.0, value)


@triton.jit(do_not_specialize=["n"])
def _gaussian_square(
    coarse, fine, squares, rest, unit, out, n, D, BLOCK: tl.constexpr, DEPTH: tl.constexpr
):
    """One tile of the lower triangle, written to both its places."""
    pid = tl.program_id(0).to(tl.int64)
    i = ((tl.sqrt(8.0 * pid.to(tl.float32) + 1.0) - 1.0) * 0.5).to(tl.int64)
    i = tl.where(i * (i + 1) // 2 > pid, i - 1, i)
    i = tl.where((i + 1) * (i + 2) // 2 <= pid, i + 1, i)
    j = pid - i * (i + 1) // 2
    row = i * BLOCK + tl.arange(0, BLOCK)
    column = j * BLOCK + tl.arange(0, BLOCK)
    r = tl.where(row < n, row, 0)
    c = tl.where(column < n, column, 0)
    value = _gaussian_tile(coarse, fine, squares, rest, unit, r, c, D, BLOCK, DEPTH)
    inside = (row < n)[:, None] & (column < n)[None, :]
    tl.store(out + row[:, None] * n + column[None, :], value, mask=inside)
    if i != j:
        inside = (column < n)[:, None] & (row < n)[None, :]
        tl.store(out + column[:, None] * n + row[None, :], tl.trans(value), mask=inside)


def gaussian_square(points: Split) -> torch.Tensor:
    """Gaussians between all points, each computed once for both its places."""
    n, width = points.coarse.shape
    out = torch.empty((n, n), dtype=torch.float32, device=points.coarse.device)
    blocks = triton.cdiv(n, _BLOCK)
    depth = min(_DEPTH, width)
    _gaussian_square[(blocks * (blocks + 1) // 2,)](
        *points, out, n, width, BLOCK=_BLOCK, DEPTH=depth, num_warps=8, num_stages=3
    )
    return out


@triton.jit
def _gaussian_blocks(
    coarse, fine, squares, rest, unit, rows, out, q, D, BLOCK: tl.constexpr, DEPTH: tl.constexpr
):
    p = tl.program_id(2).to(tl.int64)
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    j = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    r = tl.load(rows + p * q + i, mask=i < q, other=0)
    c = tl.load(rows + p * q + j, mask=j < q, other=0)
    value = _gaussian_tile(coarse, fine, squares, rest, unit, r, c, D, BLOCK, DEPTH)
    inside = (i < q)[:, None] & (j < q)[None, :]
    tl.store(out + p * q * q + i[:, None] * q + j[None, :], value, mask=inside)


def gaussian_blocks(points: Split, rows: torch.Tensor) -> torch.Tensor:
    """Gaussians among the points of each row of ``rows`` (p, q), shape (p, q, q)."""
    p, q = rows.shape
    out = torch.empty((p, q, q), dtype=torch.float32, device=rows.device)
    width = points.coarse.shape[1]
    blocks = triton.cdiv(q, 64)
    _gaussian_blocks[(blocks, blocks, p)](
        *points, rows.contiguous(), out, q, width, BLOCK=64, DEPTH=min(_DEPTH, width), num_warps=4
    )
    return out


@triton.jit(do_not_specialize=["m"])
def _gaussian_sums(
    coarse,
    fine,
    squares,
    rest,
    unit,
    rows,
    weights,
    counts,
    columns,
    out,
    m,
    q,
    D: tl.constexpr,
    BLOCK: tl.constexpr,
    DEPTH: tl.constexpr,
):
    p = tl.program_id(1).to(tl.int64)
    c = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    d = tl.arange(0, D)
    inside = c < m
    column = tl.load(columns + c, mask=inside, other=0).to(tl.int64)
    count = tl.load(counts + p)
    total = tl.zeros((BLOCK, DEPTH), tl.float32)
    if count > 0:
        a = tl.load(coarse + column[:, None] * D + d[None, :])
        a_fine = tl.load(fine + column[:, None] * D + d[None, :])
        a_square = tl.load(squares + column)
        a_rest = tl.load(rest + column)
        for start in range(0, count, DEPTH):
            k = start + tl.arange(0, DEPTH)
            known = k < count
            row = tl.load(rows + p * q + k, mask=known, other=0).to(tl.int64)
            weight = tl.load(weights + p * q + k, mask=known, other=0.0)
            b = tl.load(coarse + row[None, :] * D + d[:, None])
            b_fine = tl.load(fine + row[None, :] * D + d[:, None])
            small = tl.dot(a_fine, b_fine)
            small = tl.dot(a_fine, b, small)
            small = tl.dot(a, b_fine, small)
            power = 2.0 * tl.dot(a, b) - (a_square[:, None] + tl.load(squares + row)[None, :])
            power += 2.0 * small - (a_rest[:, None] + tl.load(rest + row)[None, :])
            total += weight[None, :] * tl.exp2(unit * tl.minimum(power, 0.0))
    tl.store(out + p * m + c, tl.sum(total, 1), mask=inside)


def gaussian_sums(
    points: Split,
    rows: torch.Tensor,
    weights: torch.Tensor,
    counts: torch.Tensor,
    columns: torch.Tensor,
) -> torch.Tensor:
    """Sums of Gaussians that are never written down; of up to 128 features."""
    p, q = rows.shape
    m = len(columns)
    out = torch.empty((p, m), dtype=torch.float32, device=rows.device)
    grid = (triton.cdiv(m, _BLOCK), p)
    _gaussian_sums[grid](
        *points,
        rows.contiguous(),
        weights.contiguous(),
        counts,
        columns,
        out,
        m,
        q,
        D=points.coarse.shape[1],
        BLOCK=_BLOCK,
        DEPTH=_DEPTH,
        num_warps=4,
    )
    return out


@triton.jit(do_not_specialize=["count", "max_steps"])
def _step_lengths(H, slope, longest, out, count, max_steps, P: tl.constexpr):
    problem = tl.program_id(0).to(tl.int64)
    o = tl.arange(0, P)
    inside = o < count
    own = problem * count + o
    H += problem * count * count
    u = tl.load(slope + own, mask=inside, other=0.0)
    limit = tl.load(longest + own, mask=inside, other=0.0)
    curvature = tl.maximum(tl.load(H + o * count + o, mask=inside, other=1.0), 1e-30)
    t = tl.zeros((P,), tl.float32)
    total = 0.0
    taken = 0
    go = True
    while go:
        step = tl.minimum(tl.maximum(t + u / curvature, 0.0), limit) - t
        gain, i, step_i = tl.reduce((step * (u - 0.5 * curvature * step), o, step), 0, _greatest)
        go = (gain > 1e-3 / P * total) & (gain > 0) & (taken < max_steps)
        if go:
            u -= step_i * tl.load(H + i * count + o, mask=inside, other=0.0)
            t = tl.where(o == i, t + step_i, t)
            total += gain
            taken += 1
    tl.store(out + own, t, mask=inside)


def step_lengths(H: torch.Tensor, slope: torch.Tensor, longest: torch.Tensor) -> torch.Tensor:
    """How far to go along each of several directions at once, (problems, directions).

    Minimises ``1/2 t' H t - slope' t`` for ``0 <= t <= longest`` in every problem by coordinate
    descent, the coordinate with the largest gain first.
    """
    problems, count = slope.shape
    out = torch.empty_like(slope)
    P = 64 if count <= 64 else max(triton.next_power_of_2(count), 512)
    _step_lengths[(problems,)](
        H.contiguous(),
        slope.contiguous(),
        longest.contiguous(),
        out,
        count,
        8 * count,
        P=P,
        num_warps=P // 64,
    )
    return out
