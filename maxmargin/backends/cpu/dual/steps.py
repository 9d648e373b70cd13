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

from maxmargin.backends.compiled import INNER, njit
from maxmargin.backends.cpu.dual.kkt import KKTScan, Variables, kkt_scan
from maxmargin.backends.cpu.loops import add_rows, gaussian_rows

CONVERGED, PAUSED, STUCK, ROWS = range(4)
BARRED = np.float32(1e30)
_LEAST_CURVATURE = 1e-12
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


class Block(NamedTuple):
    """Variables among which steps are taken, and the arrays that these change or read.

    Steps change ``score``, ``beta``, ``rise`` and ``fall``. ``lower`` and ``upper`` are the walls.
    """

    K: np.ndarray
    slot: np.ndarray
    diagonal: np.ndarray
    score: np.ndarray
    beta: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    rise: np.ndarray
    fall: np.ndarray

    @classmethod
    def among(
        cls,
        chosen: np.ndarray,
        variables: Variables,
        n_groups: int,
        beta: np.ndarray,
        K: np.ndarray,
        diagonal: np.ndarray,
        score: np.ndarray,
    ) -> Block:
        """Return the block of some variables, given the kernel values among them and two arrays."""
        own, lower, upper = beta[chosen], variables.lower[chosen], variables.upper[chosen]
        rise, fall = np.empty((2, max(n_groups, 1), len(chosen)), dtype=K.dtype)
        walls(own, lower, upper, variables.group[chosen], rise, fall)
        return cls(K, np.arange(len(chosen)), diagonal, score, own, lower, upper, rise, fall)


@njit(**INNER)
def note_walls(beta, lower, upper, t, up, down):
    """Write down what a variable may do, as numbers to add to its score."""
    up[t] = up.dtype.type(0.0) if beta[t] < upper[t] else up.dtype.type(-BARRED)
    down[t] = down.dtype.type(0.0) if beta[t] > lower[t] else down.dtype.type(BARRED)


@njit(cache=True, nogil=True)
def walls(beta, lower, upper, group, rise, fall):
    """Write down what every variable may do, each in the row of its group."""
    for g in range(rise.shape[0]):
        for t in range(beta.shape[0]):
            rise[g, t] = -BARRED
            fall[g, t] = BARRED
            if rise.shape[0] == 1 or group[t] == g:
                note_walls(beta, lower, upper, t, rise[g], fall[g])


@njit(**INNER)
def move_pair(beta, lower, upper, i, j, step):
    """Let i rise and j fall by a step, or to the wall before it; returns the step, zero if stuck.

    A wall that is reached is reached exactly: "at bound" is then a comparison, not a guess.
    """
    room_i = upper[i] - beta[i]
    room_j = beta[j] - lower[j]
    step = min(step, min(room_i, room_j))
    before_i = beta[i]
    before_j = beta[j]
    beta[i] = upper[i] if step == room_i else beta[i] + step
    beta[j] = lower[j] if step == room_j else beta[j] - step
    return 0.0 if beta[i] == before_i and beta[j] == before_j else step


@njit(**INNER)
def move_one(beta, lower, upper, i, step):
    """Let i move by a step of either sign, or to the wall before it; returns by how much it did."""
    before = beta[i]
    if step >= upper[i] - beta[i]:
        beta[i] = upper[i]
    elif -step >= beta[i] - lower[i]:
        beta[i] = lower[i]
    else:
        beta[i] += step
    return beta[i] - before


@njit(**INNER)
def _first_of(values, count, least):
    """Place of the first of some values that is not less; they have one.

    A minimum of places is vectorised, a search that breaks off is not.
    """
    nowhere = np.int32(count)
    first = nowhere
    for t in range(np.uint64(count)):
        first = min(first, np.int32(t) if values[t] >= least else nowhere)
    return np.int64(first)


@njit(cache=True, nogil=True, fastmath=_FAST, error_model="numpy")
def steps_among(constrained, block, tol, max_steps):
    """Take up to ``max_steps`` steps of two variables, or of one where there is no constraint.

    Returns ``(code, steps)``. All variables must have their rows.
    """
    if not constrained:
        return single_steps(block, tol, max_steps)
    code, taken, _ = pair_steps_or_row(block, tol, max_steps)
    return code, taken


@njit(cache=True, nogil=True, fastmath=_FAST, error_model="numpy")
def pair_steps_or_row(block, tol, max_steps):
    """Take up to ``max_steps`` steps of two, until a variable has no row.

    The rule is SMO's (:mod:`maxmargin.solvers.dual.smo`). Returns ``(code, steps, variable)``;
    where the code is ROWS the caller makes the row of that variable and comes back.
    """
    K, slot, diagonal, score, beta, lower, upper, rise, fall = block
    q = score.shape[0]
    n_groups = rise.shape[0]
    n_blocks = (q + _BLOCK - 1) // _BLOCK
    real = score.dtype.type
    zero = real(0.0)
    far = real(_FAR)
    least_curvature = real(_LEAST_CURVATURE)
    highest = np.empty(n_groups, dtype=score.dtype)
    lowest = np.empty(n_groups, dtype=score.dtype)
    place = np.empty(n_groups, dtype=np.int64)
    gains = np.empty(_BLOCK, dtype=score.dtype)
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
            gains[t - start] = score[t] + up[t]
            top = larger(top, gains[t - start])
        i = place[widest] + _first_of(gains, stop - start, top)
        if slot[i] < 0:
            return ROWS, taken, i
        Ki = K[slot[i]]
        diagonal_i = diagonal[i]
        best = zero
        place_j = -1
        for block in range(n_blocks):
            start = np.uint64(block * _BLOCK)
            stop = np.uint64(min(block * _BLOCK + _BLOCK, q))
            gain = zero
            for t in range(start, stop):
                slope = larger(top - (score[t] + down[t]), zero)
                curvature = larger(diagonal_i + diagonal[t] - (Ki[t] + Ki[t]), least_curvature)
                gain = larger(gain, slope * slope / curvature)
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
            curvature = larger(diagonal_i + diagonal[t] - (Ki[t] + Ki[t]), least_curvature)
            gains[t - start] = slope * slope / curvature
            best = larger(best, gains[t - start])
        j = place_j + _first_of(gains, stop - start, best)
        if slot[j] < 0:
            return ROWS, taken, j
        Kj = K[slot[j]]
        curvature = larger(diagonal_i + diagonal[j] - (Ki[j] + Ki[j]), least_curvature)
        step = np.float64(top - score[j]) / np.float64(curvature)
        step = move_pair(beta, lower, upper, i, j, step)
        if step == 0.0:
            return STUCK, taken, -1
        note_walls(beta, lower, upper, i, up, down)
        note_walls(beta, lower, upper, j, up, down)
        moved = real(step)
    return PAUSED, max_steps, -1


@njit(cache=True, nogil=True, fastmath=_FAST, error_model="numpy")
def single_steps(block, tol, max_steps):
    """Take up to ``max_steps`` steps of one variable, for problems without a constraint.

    Returns ``(code, steps)``.
    """
    K, slot, diagonal, score, beta, lower, upper, rise, fall = block
    q = score.shape[0]
    n_blocks = (q + _BLOCK - 1) // _BLOCK
    real = score.dtype.type
    zero = real(0.0)
    least_curvature = real(_LEAST_CURVATURE)
    up = rise[0]
    down = fall[0]
    gains = np.empty(_BLOCK, dtype=score.dtype)
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
                gain = larger(gain, slope * slope / larger(diagonal[t], least_curvature))
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
            gains[t - start] = slope * slope / larger(diagonal[t], least_curvature)
            best = larger(best, gains[t - start])
        i = place + _first_of(gains, stop - start, best)
        step = np.float64(score[i]) / np.float64(larger(diagonal[i], least_curvature))
        step = move_one(beta, lower, upper, i, step)
        if step == 0.0:
            return STUCK, taken
        note_walls(beta, lower, upper, i, up, down)
        moved = real(step)
        Ki = K[slot[i]]
    return PAUSED, max_steps


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
    rises, falls = np.empty(m, dtype=np.bool_), np.empty(m, dtype=np.bool_)
    found = KKTScan(np.empty(m), np.empty(m), rises, falls)
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
        code, taken = _advance(
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
def _advance(variables, n_groups, beta, decision, growth, used, diagonal, found, goal, allowed):
    """Take steps among the members of a growing set, and bring all decisions up to date."""
    members = growth.members[:used]
    score = np.empty(used, dtype=np.float32)
    own_diagonal = np.empty(used, dtype=np.float32)
    a = np.empty(used)
    low = np.empty(used)
    high = np.empty(used)
    group = np.empty(used, dtype=np.int64)
    for k in range(used):
        t = members[k]
        score[k] = found.v[t]
        own_diagonal[k] = diagonal[t]
        a[k] = beta[t]
        low[k] = variables.lower[t]
        high[k] = variables.upper[t]
        group[k] = variables.group[t]
    rise = np.empty((max(n_groups, 1), used), dtype=np.float32)
    fall = np.empty((max(n_groups, 1), used), dtype=np.float32)
    walls(a, low, high, group, rise, fall)
    block = Block(growth.block, np.arange(used), own_diagonal, score, a, low, high, rise, fall)
    code, taken = steps_among(n_groups > 0, block, goal, allowed)
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
    for k in range(used + count):  # from the new rows, which are near: the matrix is symmetric
        t = growth.members[k]
        for j in range(used, used + count):
            growth.block[k, j] = growth.rows[j, t]
    for k in range(used, used + count):
        row = growth.rows[k]
        for j in range(used):
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
