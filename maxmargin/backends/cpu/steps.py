"""The compiled steps of the engines: pairs of variables inside one block of the Gram matrix.

``K[slot[t]]`` is the row of variable t in the block, with the orientation of the variables folded
in (``o_t o_s K_ts``); where ``slot[t]`` is negative it has to be made first. ``score`` is minus the
gradient, less the level of its group where float32 needs that; it is of the type of K, float32 or
float64. What a variable may do is kept as a number to add: ``rise[g, t]`` is 0 where variable t of
group g is below its upper bound and hugely negative elsewhere, ``fall[g, t]`` is 0 or hugely
positive. Selection is then a plain maximum, and the compiler uses the whole width of the
vector unit: in float32 a step costs about half a nanosecond an entry, a fifth of the branching
form.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from maxmargin.backends.compiled import njit
from maxmargin.backends.cpu.loops import add_rows, gaussian_rows

CONVERGED, PAUSED, STUCK, ROWS = range(4)
BARRED = np.float32(1e30)
_LEAST_BEND = 1e-12
_FAR = 3e38  # further than any score, barred or not
_TIGHTEN = 0.1
_HALVINGS = 24
_BLOCK = 128  # entries whose extreme is kept, so that only one block is searched for its place
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
def pair_steps(K, slot, diagonal, score, beta, lower, upper, rise, fall, tol, max_steps):
    """Take up to ``max_steps`` steps of two variables; returns ``(code, steps)``.

    The rule is SMO's (:mod:`maxmargin.solvers.dual.smo`). Changes ``score``, ``beta``, ``rise``
    and ``fall`` in place. All variables must have their rows.
    """
    code, taken, _ = pair_steps_or_row(
        K, slot, diagonal, score, beta, lower, upper, rise, fall, tol, max_steps
    )
    return code, taken


@njit(cache=True, nogil=True, fastmath=_FAST, error_model="numpy")
def pair_steps_or_row(K, slot, diagonal, score, beta, lower, upper, rise, fall, tol, max_steps):
    """Do what :func:`pair_steps` does, until a variable has no row; returns which, too.

    The code is then ROWS: the caller makes that row and comes back.
    """
    q = score.shape[0]
    n_groups = rise.shape[0]
    n_blocks = (q + _BLOCK - 1) // _BLOCK
    real = score.dtype.type
    zero = real(0.0)
    far = real(_FAR)
    least_bend = real(_LEAST_BEND)
    barred = real(BARRED)
    highest = np.empty(n_groups, dtype=score.dtype)
    lowest = np.empty(n_groups, dtype=score.dtype)
    place = np.empty(n_groups, dtype=np.int64)
    gains = np.empty(_BLOCK, dtype=score.dtype)
    nowhere = np.int32(q)
    Ki = score  # any finite row: the first pass moves by nothing
    Kj = score
    moved = zero
    violation = zero
    for taken in range(max_steps + 1):
        # one pass: finish the last step, and find the extremes for the next
        for g in range(n_groups):
            highest[g] = -far
            lowest[g] = far
            place[g] = 0
            up = rise[g]
            down = fall[g]
            for block in range(n_blocks):
                start = np.uint64(block * _BLOCK)
                stop = np.uint64(min(block * _BLOCK + _BLOCK, q))
                high = -far
                low = far
                if g == 0:
                    for t in range(start, stop):
                        value = score[t] - moved * (Ki[t] - Kj[t])
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
            return CONVERGED, taken, -1
        if taken == max_steps:
            return PAUSED, taken, -1
        up = rise[widest]
        down = fall[widest]
        start = np.uint64(place[widest])
        stop = np.uint64(min(place[widest] + _BLOCK, q))
        top = -far  # again, from what was stored: the place must be found
        for t in range(start, stop):
            top = larger(top, score[t] + up[t])
        first = nowhere  # a minimum of places is vectorised, a search that breaks off is not
        for t in range(start, stop):
            first = min(first, np.int32(t) if score[t] + up[t] >= top else nowhere)
        i = int(first)
        if slot[i] < 0:
            return ROWS, taken, i
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
                bend = larger(bend_i + diagonal[t] - (Ki[t] + Ki[t]), least_bend)
                gain = larger(gain, slope * slope / bend)
            if gain > best:
                best = gain
                place_j = block * _BLOCK
        if place_j < 0:
            return STUCK, taken, -1
        start = np.uint64(place_j)
        stop = np.uint64(min(place_j + _BLOCK, q))
        best = zero
        for t in range(start, stop):
            slope = larger(top - (score[t] + down[t]), zero)
            bend = larger(bend_i + diagonal[t] - (Ki[t] + Ki[t]), least_bend)
            gains[t - start] = slope * slope / bend
            best = larger(best, gains[t - start])
        first = nowhere
        for t in range(start, stop):
            first = min(first, np.int32(t) if gains[t - start] >= best else nowhere)
        j = int(first)
        if slot[j] < 0:
            return ROWS, taken, j
        Kj = K[slot[j]]
        bend = larger(bend_i + diagonal[j] - (Ki[j] + Ki[j]), least_bend)
        step = np.float64(top - score[j]) / np.float64(bend)
        room_i = upper[i] - beta[i]
        room_j = beta[j] - lower[j]
        step = min(step, min(room_i, room_j))
        before_i = beta[i]
        before_j = beta[j]
        # a wall that is reached is reached exactly: "at bound" is then a comparison, not a guess
        beta[i] = upper[i] if step == room_i else beta[i] + step
        beta[j] = lower[j] if step == room_j else beta[j] - step
        if beta[i] == before_i and beta[j] == before_j:
            return STUCK, taken, -1
        for side in range(2):
            t = i if side == 0 else j
            rise[widest, t] = zero if beta[t] < upper[t] else -barred
            fall[widest, t] = zero if beta[t] > lower[t] else barred
        moved = real(step)
    return PAUSED, max_steps, -1


@njit(cache=True, nogil=True, fastmath=_FAST, error_model="numpy")
def single_steps(K, slot, diagonal, score, beta, lower, upper, rise, fall, tol, max_steps):
    """Take up to ``max_steps`` steps of one variable, for problems without a constraint.

    Takes, returns and changes what :func:`pair_steps` does.
    """
    q = score.shape[0]
    n_blocks = (q + _BLOCK - 1) // _BLOCK
    real = score.dtype.type
    zero = real(0.0)
    least_bend = real(_LEAST_BEND)
    barred = real(BARRED)
    up = rise[0]
    down = fall[0]
    gains = np.empty(_BLOCK, dtype=score.dtype)
    nowhere = np.int32(q)
    Ki = score  # any finite row: the first pass moves by nothing
    moved = zero
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
                value = score[t] - moved * Ki[t]
                score[t] = value
                slope = larger(larger(value + up[t], -(value + down[t])), zero)
                worst = larger(worst, slope)
                gain = larger(gain, slope * slope / larger(diagonal[t], least_bend))
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
        start = np.uint64(place)
        stop = np.uint64(min(place + _BLOCK, q))
        best = zero
        for t in range(start, stop):
            slope = larger(larger(score[t] + up[t], -(score[t] + down[t])), zero)
            gains[t - start] = slope * slope / larger(diagonal[t], least_bend)
            best = larger(best, gains[t - start])
        first = nowhere
        for t in range(start, stop):
            first = min(first, np.int32(t) if gains[t - start] >= best else nowhere)
        i = int(first)
        before = beta[i]
        step = np.float64(score[i]) / np.float64(larger(diagonal[i], least_bend))
        if step >= upper[i] - beta[i]:
            beta[i] = upper[i]
        elif -step >= beta[i] - lower[i]:
            beta[i] = lower[i]
        else:
            beta[i] += step
        if beta[i] == before:
            return STUCK, taken
        up[i] = zero if beta[i] < upper[i] else -barred
        down[i] = zero if beta[i] > lower[i] else barred
        moved = real(beta[i] - before)
        Ki = K[slot[i]]
    return PAUSED, max_steps


# Numba's cache on disk knows these classes, and cpu.DensePoints, by name: one that is gone or has
# another name makes the cache of an earlier version unreadable, and the first call raises.


class Variables(NamedTuple):
    """The arrays of a dual problem (:mod:`maxmargin.duals`), as the compiled loops take them."""

    gram_row: np.ndarray
    orientation: np.ndarray
    linear: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    group: np.ndarray


class KKTScan(NamedTuple):
    """What :func:`kkt_scan` finds out about every variable.

    ``v`` is less the level of its group, which is the mean over the free variables or the middle of
    the extremes; ``excess`` by how much it is on the wrong side of the level (``-inf`` for a
    variable that cannot move, ``inf`` for the two of the worst pair: a block without them may have
    nothing to solve).
    """

    v: np.ndarray
    excess: np.ndarray
    may_rise: np.ndarray
    may_fall: np.ndarray

    @classmethod
    def empty(cls, size: int) -> KKTScan:
        """Room for so many variables."""
        return cls(*np.empty((2, size)), *np.empty((2, size), dtype=np.bool_))


@njit(cache=True, nogil=True, error_model="numpy")
def kkt_scan(variables, n_groups, beta, decision, found):
    """Look at every variable; returns the largest violation of a pair (or of one, without groups).

    Fills ``found``.
    """
    groups = max(n_groups, 1)
    top = np.full(groups, -1)
    bottom = np.full(groups, -1)
    highest = np.full(groups, -np.inf)
    lowest = np.full(groups, np.inf)
    total = np.zeros(groups)
    free = np.zeros(groups)
    for t in range(beta.shape[0]):
        turned = variables.orientation[t] * decision[variables.gram_row[t]]
        value = -turned - variables.linear[t]
        rises = beta[t] < variables.upper[t]
        falls = beta[t] > variables.lower[t]
        g = variables.group[t] if n_groups > 0 else 0
        if rises and value > highest[g]:
            highest[g] = value
            top[g] = t
        if falls and value < lowest[g]:
            lowest[g] = value
            bottom[g] = t
        if rises and falls:
            total[g] += value
            free[g] += 1.0
        found.v[t] = value
        found.may_rise[t] = rises
        found.may_fall[t] = falls
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
    for t in range(beta.shape[0]):
        found.v[t] -= level[variables.group[t] if n_groups > 0 else 0]
        rise = found.v[t] if found.may_rise[t] else -np.inf
        fall = -found.v[t] if found.may_fall[t] else -np.inf
        found.excess[t] = max(rise, fall)
        if n_groups == 0:
            worst = max(worst, found.excess[t])
    if widest >= 0:
        found.excess[top[widest]] = np.inf
        found.excess[bottom[widest]] = np.inf
    return worst


class Growth(NamedTuple):
    """A set of variables that grows.

    ``members`` are those in it, in order of joining; ``slot`` is the place of each variable there,
    or -1. Row k of ``rows`` has the kernel values of member k with all variables, and ``block``
    those among the members; orientation is folded into both.
    """

    rows: np.ndarray
    block: np.ndarray
    members: np.ndarray
    slot: np.ndarray

    @classmethod
    def empty(cls, size: int, room: np.ndarray) -> Growth:
        """Return an empty set among so many variables, given ``2 size^2`` numbers of room."""
        rows, block = room.reshape(2, size, size)
        return cls(rows, block, np.empty(size, dtype=np.int64), np.full(size, -1))


@njit(cache=True, nogil=True, error_model="numpy")
def grow(
    variables,
    n_groups,
    beta,
    decision,
    growth,
    used,
    points,
    tol,
    at_once,
    max_steps,
    max_entries,
):
    """Solve a small problem for a set of variables that grows by the worst violators.

    A variable's row is made when it joins; steps are taken among the members; then all variables
    are looked at again, and up to ``at_once`` more join. Returns ``(code, steps, used, joining)``:
    the code is CONVERGED; STUCK where no step can be taken; PAUSED after ``max_steps`` or about
    ``max_entries`` entries of work; or, where the rows of ``points`` (one for each variable) cannot
    be made here, ROWS: the caller makes those of ``growth.members[used : used + joining]``, lets
    them in (:func:`admit`) and comes back. Changes ``beta`` and ``decision`` in place.
    """
    m = beta.shape[0]
    found = KKTScan(
        np.empty(m), np.empty(m), np.empty(m, dtype=np.bool_), np.empty(m, dtype=np.bool_)
    )
    steps = 0
    entries = 0
    while True:
        violation = kkt_scan(variables, n_groups, beta, decision, found)
        if violation <= tol:
            return CONVERGED, steps, used, 0
        if steps >= max_steps or entries >= max_entries:
            return PAUSED, steps, used, 0
        joining = growth.members[used : min(used + at_once, m)]
        count = _choose(found, beta, growth.slot, used, 0.5 * tol, joining)
        if count > 0:
            if points.X.shape[0] == 0:
                return ROWS, steps, used, count
            gaussian_rows(points, joining[:count], growth.rows[used : used + count])
            admit(variables, growth, used, count)
            used += count
        allowed = min(max_steps - steps, max((max_entries - entries) // used, 1))
        code, taken = _steps_among(
            variables,
            n_groups,
            beta,
            decision,
            growth,
            used,
            points.diagonal,
            found,
            np.float32(wanted(tol, violation)),
            allowed,
        )
        steps += taken
        entries += (taken + m) * used
        if code == PAUSED:
            return PAUSED, steps, used, 0
        if taken == 0 and count == 0:
            return STUCK, steps, used, 0


@njit(cache=True, nogil=True)
def wanted(tol, violation):
    """Violation to which a block is solved: not much below that of the whole problem."""
    return max(0.5 * tol, _TIGHTEN * violation)


@njit(cache=True, nogil=True, error_model="numpy")
def _steps_among(variables, n_groups, beta, decision, growth, used, diagonal, found, goal, allowed):
    """Take steps among the members of a growing set, and bring all decisions up to date."""
    groups = max(n_groups, 1)
    members = growth.members[:used]
    score = np.empty(used, dtype=np.float32)
    bend = np.empty(used, dtype=np.float32)
    place = np.empty(used, dtype=np.int64)
    a = np.empty(used)
    low = np.empty(used)
    high = np.empty(used)
    rise = np.empty((groups, used), dtype=np.float32)
    fall = np.empty((groups, used), dtype=np.float32)
    for k in range(used):
        t = members[k]
        score[k] = found.v[t]
        bend[k] = diagonal[t]
        place[k] = k
        a[k] = beta[t]
        low[k] = variables.lower[t]
        high[k] = variables.upper[t]
        for g in range(groups):
            own = n_groups < 2 or variables.group[t] == g
            rise[g, k] = np.float32(0.0) if own and found.may_rise[t] else -BARRED
            fall[g, k] = np.float32(0.0) if own and found.may_fall[t] else BARRED
    if n_groups > 0:
        code, taken = pair_steps(
            growth.block, place, bend, score, a, low, high, rise, fall, goal, allowed
        )
    else:
        code, taken = single_steps(
            growth.block, place, bend, score, a, low, high, rise, fall, goal, allowed
        )
    moved = np.zeros(beta.shape[0])
    slots = np.empty(used, dtype=np.int64)
    weights = np.empty(used)
    count = 0
    for k in range(used):
        t = members[k]
        if a[k] != beta[t]:
            slots[count] = k
            weights[count] = a[k] - beta[t]
            count += 1
            beta[t] = a[k]
    add_rows(growth.rows, slots[:count], weights[:count], 0, moved.shape[0], moved)
    for t in range(moved.shape[0]):
        decision[variables.gram_row[t]] += variables.orientation[t] * moved[t]
    return code, taken


@njit(cache=True, nogil=True, error_model="numpy")
def admit(variables, growth, used, count):
    """Let variables whose rows are made, orientation not yet folded in, be members."""
    for k in range(used, used + count):
        t = growth.members[k]
        growth.slot[t] = k
        own = np.float32(variables.orientation[t])
        row = growth.rows[k]
        for s in range(row.shape[0]):
            row[s] *= own * np.float32(variables.orientation[s])
    for k in range(used + count):
        row = growth.rows[k]
        for j in range(used if k < used else 0, used + count):
            growth.block[k, j] = row[growth.members[j]]


@njit(cache=True, nogil=True, error_model="numpy")
def _choose(found, beta, slot, used, floor, joining):
    """Write the worst violators outside the set into ``joining``; returns their number.

    An empty set begins with variables that are not zero, if any, or else with some that are spread
    over all, half of them able to rise and half to fall. (Plain loops: they compile in a tenth of
    the time of the array functions that would say the same.)
    """
    m = beta.shape[0]
    room = joining.shape[0]
    count = 0
    if used == 0:
        for t in range(m):
            if beta[t] != 0.0 and count < room:
                joining[count] = t
                count += 1
        if count > 0:
            return count
        risers = 0
        fallers = 0
        for t in range(m):
            risers += found.may_rise[t]
            fallers += found.may_fall[t] and not found.may_rise[t]
        each = max(room // 2, 1)
        seen = 0
        passed = 0
        for t in range(m):  # every (risers / each)-th of them, and so for the others
            if found.may_rise[t]:
                if seen * each // risers != (seen + 1) * each // risers and count < room:
                    joining[count] = t
                    count += 1
                seen += 1
            elif found.may_fall[t]:
                if passed * each // fallers != (passed + 1) * each // fallers and count < room:
                    joining[count] = t
                    count += 1
                passed += 1
        return count
    highest = floor
    for t in range(m):
        if slot[t] < 0 and found.excess[t] < np.inf:
            highest = max(highest, found.excess[t])
    low = floor
    high = highest
    limit = floor
    for _ in range(_HALVINGS):  # for the excess that just enough of them have
        above = 0
        for t in range(m):
            above += slot[t] < 0 and found.excess[t] > limit
        if above > room:
            low = limit
        else:
            high = limit
            if limit == floor or 8 * above >= 7 * room:
                break
        limit = 0.5 * (low + high)
    for t in range(m):
        if slot[t] < 0 and found.excess[t] > high and count < room:
            joining[count] = t
            count += 1
    if count == 0:  # more of them alike than there is room for
        for t in range(m):
            if slot[t] < 0 and found.excess[t] > low and count < room:
                joining[count] = t
                count += 1
    return count
