"""The compiled steps of the working-set engine: pairs of variables inside one resident block.

``K[slot[t]]`` is the row of variable t in the block, with the signs of the variables folded in
(``o_t o_s K_ts``, ``o = s c``); a variable without a row must be barred. ``score`` is
``v = -c (Q a + p)`` less the level of its group. What a variable may do is kept as a number to add:
``rise[g, t]`` is 0 where variable t of group g may move along ``+c`` and hugely negative elsewhere,
``fall[g, t]`` is 0 or hugely positive. Selection is then a plain maximum, and the compiler uses the
whole width of the vector unit: a step costs about half a nanosecond an entry, a fifth of the
branching form.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

CONVERGED, PAUSED, STUCK = range(3)
BARRED = np.float32(1e30)
_LEAST_BEND = np.float32(1e-12)
_LOW, _HIGH = np.float32(-3e38), np.float32(3e38)
_BLOCK = 64  # entries whose extreme is kept, so that only one block is searched for its place
_FAST = {"nnan", "nsz", "reassoc", "contract", "arcp"}


def _selecting(comparison: str) -> Any:
    """Maximum or minimum that loops over it can be vectorised with.

    Numba's own carries no fast-math flags on the selection, and LLVM then keeps it scalar.
    """

    def typed(context: Any, first: Any, second: Any) -> Any:
        def emit(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> Any:
            chosen = builder.fcmp_ordered(comparison, *args, flags=("fast",))
            return builder.select(chosen, *args, flags=("fast",))

        if first != second or not isinstance(first, types.Float):
            return None
        return first(first, first), emit

    return intrinsic(typed)


larger = _selecting(">")
smaller = _selecting("<")


@njit(cache=True, nogil=True, fastmath=_FAST, error_model="numpy")
def pair_steps(
    K, slot, diagonal, score, alpha, lower, upper, coefficient, rise, fall, tol, max_steps
):
    """Take up to ``max_steps`` steps of two variables; returns ``(code, steps)``.

    The rule is SMO's (:mod:`maxmargin.solvers.smo`). Changes ``score``, ``alpha``, ``rise`` and
    ``fall`` in place.
    """
    q = score.shape[0]
    n_groups = rise.shape[0]
    n_blocks = (q + _BLOCK - 1) // _BLOCK
    zero = np.float32(0.0)
    highest = np.empty(n_groups, dtype=np.float32)
    lowest = np.empty(n_groups, dtype=np.float32)
    place = np.empty(n_groups, dtype=np.int64)
    Ki = score  # any finite row: the first pass moves by nothing
    Kj = score
    step32 = zero
    violation = zero
    for taken in range(max_steps + 1):
        # one pass: finish the last step, and find the extremes for the next
        for g in range(n_groups):
            highest[g] = _LOW
            lowest[g] = _HIGH
            place[g] = 0
            up = rise[g]
            down = fall[g]
            for block in range(n_blocks):
                start = np.uint64(block * _BLOCK)
                stop = np.uint64(min(block * _BLOCK + _BLOCK, q))
                high = _LOW
                low = _HIGH
                if g == 0:
                    for t in range(start, stop):
                        value = score[t] - step32 * (Ki[t] - Kj[t])
                        score[t] = value
                        high = larger(high, value + up[t])
                        low = smaller(low, value + down[t])
                else:
                    for t in range(start, stop):
                        high = larger(high, score[t] + up[t])
                        low = smaller(low, score[t] + down[t])
                lowest[g] = smaller(lowest[g], low)
                if high > highest[g]:
                    highest[g] = high
                    place[g] = block * _BLOCK
        widest = 0
        for g in range(1, n_groups):
            if highest[g] - lowest[g] > highest[widest] - lowest[widest]:
                widest = g
        top = highest[widest]
        violation = top - lowest[widest]
        if violation < tol:
            return CONVERGED, taken
        if taken == max_steps:
            return PAUSED, taken
        up = rise[widest]
        down = fall[widest]
        i = place[widest]
        top = score[i] + up[i]
        for t in range(i + 1, min(i + _BLOCK, q)):
            if score[t] + up[t] > top:
                top = score[t] + up[t]
                i = t
        Ki = K[slot[i]]
        bend_i = diagonal[i]
        best = zero
        place_j = -1
        for block in range(n_blocks):
            start = np.uint64(block * _BLOCK)
            stop = np.uint64(min(block * _BLOCK + _BLOCK, q))
            gain = zero
            for t in range(start, stop):
                slope = larger(top - (score[t] + down[t]), zero)
                bend = larger(bend_i + diagonal[t] - (Ki[t] + Ki[t]), _LEAST_BEND)
                gain = larger(gain, slope * slope / bend)
            if gain > best:
                best = gain
                place_j = block * _BLOCK
        if place_j < 0:
            return STUCK, taken
        j = place_j
        best = np.float32(-1.0)
        for t in range(place_j, min(place_j + _BLOCK, q)):
            slope = larger(top - (score[t] + down[t]), zero)
            bend = larger(bend_i + diagonal[t] - (Ki[t] + Ki[t]), _LEAST_BEND)
            gain = slope * slope / bend
            if gain > best:
                best = gain
                j = t
        Kj = K[slot[j]]
        bend = larger(bend_i + diagonal[j] - (Ki[j] + Ki[j]), _LEAST_BEND)
        step = np.float64(top - score[j]) / np.float64(bend)
        room_i = upper[i] - alpha[i] if coefficient[i] > 0.0 else alpha[i] - lower[i]
        room_j = alpha[j] - lower[j] if coefficient[j] > 0.0 else upper[j] - alpha[j]
        step = min(step, min(room_i, room_j))
        before_i = alpha[i]
        before_j = alpha[j]
        # a wall that is reached is reached exactly: "at bound" is then a comparison, not a guess
        if coefficient[i] > 0.0:
            alpha[i] = upper[i] if step == room_i else alpha[i] + step
        else:
            alpha[i] = lower[i] if step == room_i else alpha[i] - step
        if coefficient[j] > 0.0:
            alpha[j] = lower[j] if step == room_j else alpha[j] - step
        else:
            alpha[j] = upper[j] if step == room_j else alpha[j] + step
        if alpha[i] == before_i and alpha[j] == before_j:
            return STUCK, taken
        for t in (i, j):
            below = alpha[t] < upper[t]
            above = alpha[t] > lower[t]
            rises = below if coefficient[t] > 0.0 else above
            falls = above if coefficient[t] > 0.0 else below
            rise[widest, t] = zero if rises else -BARRED
            fall[widest, t] = zero if falls else BARRED
        step32 = np.float32(step)
    return PAUSED, max_steps


@njit(cache=True, nogil=True, fastmath=_FAST, error_model="numpy")
def single_steps(
    K, slot, diagonal, score, alpha, lower, upper, coefficient, rise, fall, tol, max_steps
):
    """Take up to ``max_steps`` steps of one variable, for problems without a constraint.

    Takes, returns and changes what :func:`pair_steps` does; every ``coefficient`` is one.
    """
    q = score.shape[0]
    n_blocks = (q + _BLOCK - 1) // _BLOCK
    zero = np.float32(0.0)
    up = rise[0]
    down = fall[0]
    Ki = score  # any finite row: the first pass moves by nothing
    step32 = zero
    violation = zero
    for taken in range(max_steps + 1):
        best = zero
        violation = zero
        place = -1
        for block in range(n_blocks):
            start = np.uint64(block * _BLOCK)
            stop = np.uint64(min(block * _BLOCK + _BLOCK, q))
            gain = zero
            worst = zero
            for t in range(start, stop):
                value = score[t] - step32 * Ki[t]
                score[t] = value
                slope = larger(larger(value + up[t], -(value + down[t])), zero)
                worst = larger(worst, slope)
                gain = larger(gain, slope * slope / larger(diagonal[t], _LEAST_BEND))
            violation = larger(violation, worst)
            if gain > best:
                best = gain
                place = block * _BLOCK
        if violation < tol:
            return CONVERGED, taken
        if taken == max_steps:
            return PAUSED, taken
        if place < 0:
            return STUCK, taken
        i = place
        best = np.float32(-1.0)
        for t in range(place, min(place + _BLOCK, q)):
            slope = larger(larger(score[t] + up[t], -(score[t] + down[t])), zero)
            gain = slope * slope / larger(diagonal[t], _LEAST_BEND)
            if gain > best:
                best = gain
                i = t
        before = alpha[i]
        step = np.float64(score[i]) / np.float64(larger(diagonal[i], _LEAST_BEND))
        if step >= upper[i] - alpha[i]:
            alpha[i] = upper[i]
        elif -step >= alpha[i] - lower[i]:
            alpha[i] = lower[i]
        else:
            alpha[i] += step
        if alpha[i] == before:
            return STUCK, taken
        up[i] = zero if alpha[i] < upper[i] else -BARRED
        down[i] = zero if alpha[i] > lower[i] else BARRED
        step32 = np.float32(alpha[i] - before)
        Ki = K[slot[i]]
    return PAUSED, max_steps


@njit(cache=True, nogil=True, error_model="numpy")
def survey(
    decision,
    gram_row,
    sign,
    coefficient,
    linear,
    lower,
    upper,
    group,
    n_groups,
    alpha,
    v,
    may_rise,
    may_fall,
    excess,
):
    """Look at every variable; returns the largest violation of a pair (or of one, without groups).

    Writes ``v`` less the level of its group, which is the mean of v over the free variables or
    the middle of the extremes; what each variable may do; and ``excess``, by how much its v is on
    the wrong side of the level (``-inf`` for a variable that cannot move, ``inf`` for the two of
    the worst pair: a block without them may have nothing to solve).
    """
    groups = max(n_groups, 1)
    top = np.full(groups, -1)
    bottom = np.full(groups, -1)
    highest = np.full(groups, -np.inf)
    lowest = np.full(groups, np.inf)
    total = np.zeros(groups)
    free = np.zeros(groups)
    for t in range(alpha.shape[0]):
        c = coefficient[t]
        value = -c * (sign[t] * decision[gram_row[t]] + linear[t])
        below = alpha[t] < upper[t]
        above = alpha[t] > lower[t]
        rises = below if c > 0.0 else above
        falls = above if c > 0.0 else below
        g = group[t] if n_groups > 0 else 0
        if rises and value > highest[g]:
            highest[g] = value
            top[g] = t
        if falls and value < lowest[g]:
            lowest[g] = value
            bottom[g] = t
        if rises and falls:
            total[g] += value
            free[g] += 1.0
        v[t] = value
        may_rise[t] = rises
        may_fall[t] = falls
    worst = 0.0
    widest = -1
    level = np.zeros(groups)
    for g in range(n_groups):
        if highest[g] > -np.inf and lowest[g] < np.inf:
            if highest[g] - lowest[g] > worst:
                worst = highest[g] - lowest[g]
                widest = g
            middle = total[g] / free[g] if free[g] > 0.0 else 0.5 * (highest[g] + lowest[g])
            floor = min(lowest[g], highest[g])
            level[g] = min(max(middle, floor), max(lowest[g], highest[g]))
    for t in range(alpha.shape[0]):
        v[t] -= level[group[t] if n_groups > 0 else 0]
        rise = v[t] if may_rise[t] else -np.inf
        fall = -v[t] if may_fall[t] else -np.inf
        excess[t] = max(rise, fall)
        if n_groups == 0:
            worst = max(worst, excess[t])
    if widest >= 0:
        excess[top[widest]] = np.inf
        excess[bottom[widest]] = np.inf
    return worst


@njit(cache=True, nogil=True, fastmath={"contract"}, error_model="numpy")
def add_rows(rows, slots, weights, start, stop, out):
    """Add ``sum_k weights[k] rows[slots[k], start:stop]`` to ``out[start:stop]``."""
    width = 2048  # columns whose sums stay in the first-level cache
    for first in range(start, stop, width):
        total = out[first : min(first + width, stop)]
        for k in range(slots.shape[0]):
            row = rows[slots[k], first : min(first + width, stop)]
            weight = weights[k]
            for t in range(total.shape[0]):
                total[t] += weight * row[t]
