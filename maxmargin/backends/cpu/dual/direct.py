"""Compiled steps for machines of several classes at once: the variables of one row, exactly.

See :mod:`maxmargin.duals.direct` for the problem. With the other rows fixed, those of row i solve

    minimise  1/2 K_ii ||b||^2 + B . b    over  low <= b <= high,  sum b = 0

whose solution is ``b_k = clip((level - B_k) / K_ii)`` at the one level where the sum is zero.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from maxmargin.backends.compiled import INNER, njit


class Pairs(NamedTuple):
    """Some variables, each a pair of row and class: class after class, and again row after row.

    Attributes
    ----------
    ends : int array (classes + 1,)
        Where the entries of a class begin, and with the next one end.
    starts : int array (classes,)
        Where a class's square, kernel values among its rows, begins.
    label : int array (entries,)
        Class of an entry.
    entry, first : int arrays (entries,), (rows + 1,)
        Entries of row i are ``entry[first[i]:first[i + 1]]``,
    own : int array (rows,)
        and of these the one of its own class.
    cost, most, curvature : float arrays (rows,)
        Bounds, and ``K_ii``.
    """

    ends: np.ndarray
    starts: np.ndarray
    label: np.ndarray
    entry: np.ndarray
    first: np.ndarray
    own: np.ndarray
    cost: np.ndarray
    most: np.ndarray
    curvature: np.ndarray


_NEAR = 1e-13  # of a row's cost, or of a step: what is closer to a wall lies on it
_WALL = 1 - 1e-12  # of a bound, likewise


@njit(cache=True, nogil=True)
def row_violation(g: np.ndarray, b: np.ndarray, own: int, cost: float, most: float) -> float:
    """By how much the largest g that may fall is above the smallest that may rise, or below."""
    high, low = -np.inf, np.inf
    for k in range(len(b)):
        if k == own:
            if b[k] > 0.0:
                high = max(high, g[k])
            if b[k] < most * _WALL:
                low = min(low, g[k])
        else:
            if b[k] > -cost * _WALL:
                high = max(high, g[k])
            if b[k] < 0.0:
                low = min(low, g[k])
    return high - low


@njit(cache=True, nogil=True)
def violations(
    values: np.ndarray, b: np.ndarray, y: np.ndarray, cost: np.ndarray, most: np.ndarray
) -> np.ndarray:
    """Violation of every row, given the values of the functions there, (n, K).

    Negative where a row is so far from violating; minus infinity where its cost is zero.
    """
    found = np.full(len(y), -np.inf)
    g = np.empty(b.shape[1])
    for i in range(len(y)):
        if cost[i] > 0.0:
            for k in range(len(g)):
                g[k] = values[i, k] + 1.0
            g[y[i]] -= 1.0
            found[i] = row_violation(g, b[i], y[i], cost[i], most[i])
    return found


@njit(cache=True, nogil=True)
def solve_row(
    linear: np.ndarray, curvature: float, own: int, cost: float, most: float, out: np.ndarray
) -> None:
    """Write the solution for one row into ``out``: Newton's method for the level, bracketed.

    The sum is a piecewise linear, growing function of the level; a step that leaves the bracket is
    replaced by its middle, so that it ends in any case.
    """
    count = len(linear)
    below, above = np.inf, -np.inf
    for k in range(count):
        below = min(below, linear[k] - (0.0 if k == own else curvature * cost))
        above = max(above, linear[k] + (curvature * most if k == own else 0.0))
    level, largest = 0.5 * (below + above), 0.0
    near = _NEAR * min(cost, 1.0 / curvature)
    for _ in range(200):
        total, free, largest = 0.0, 0, 0.0
        for k in range(count):
            value = (level - linear[k]) / curvature
            low, high = (0.0, most) if k == own else (-cost, 0.0)
            if value <= low + near:
                value = low
            elif value >= high - near:
                value = high
            else:
                free += 1
            out[k] = value
            total += value
            largest = max(largest, abs(value))
        if abs(total) <= 4e-16 * count * largest:
            break
        if total > 0.0:
            above = min(above, level)
        else:
            below = max(below, level)
        step = level - total * curvature / free if free > 0 else 0.5 * (below + above)
        if not (below < step < above):
            step = 0.5 * (below + above)
        if step == level:
            break
        level = step
    # what rounding has left of the sum goes to a variable off its walls, and no wall is missed
    rest, place = 0.0, -1
    for k in range(count):
        rest -= out[k]
        low, high = (0.0, most) if k == own else (-cost, 0.0)
        if low < out[k] < high and (place < 0 or abs(out[k]) > abs(out[place])):
            place = k
    if place >= 0:
        low, high = (0.0, most) if place == own else (-cost, 0.0)
        before, out[place] = out[place], min(max(out[place] + rest, low), high)
        rest -= out[place] - before
    # where the level cannot be told from its neighbours, it is more: by the largest gradients
    for _ in range(count):
        if abs(rest) <= 4e-16 * count * most:
            break
        place, best, room = -1, -np.inf, 0.0
        for k in range(count):
            low, high = (0.0, most) if k == own else (-cost, 0.0)
            apart = high - out[k] if rest > 0.0 else out[k] - low
            gain = linear[k] + curvature * out[k]
            gain = -gain if rest > 0.0 else gain
            if apart > 0.0 and gain > best:
                place, best, room = k, gain, apart
        if place < 0:
            break
        step = min(room, abs(rest)) * (1.0 if rest > 0.0 else -1.0)
        out[place] += step
        rest -= step


@njit(cache=True, nogil=True)
def pairs_in_play(
    values: np.ndarray,
    b: np.ndarray,
    y: np.ndarray,
    cost: np.ndarray,
    most: np.ndarray,
    near: float,
    joining: int,
    out: np.ndarray,
) -> np.ndarray:
    """Mark the variables of a set's rows that an answer is likely to move; returns violations.

    Those are the ones that are not zero and, of the others that may fall, so many of a row with the
    largest g, where that is at most ``near`` below what may rise; with them the row's own class.
    ``values`` are (classes, q), ``b`` and ``out`` (q, classes).
    """
    n_classes = b.shape[1]
    found, g = np.zeros(len(y)), np.empty(n_classes)
    for i in range(len(y)):
        own = y[i]
        out[i] = b[i] != 0.0
        if cost[i] == 0.0:
            continue
        for k in range(n_classes):
            g[k] = values[k, i] + (0.0 if k == own else 1.0)
        found[i] = row_violation(g, b[i], own, cost[i], most[i])
        low = np.inf
        for k in range(n_classes):
            if b[i, k] < (most[i] * _WALL if k == own else 0.0):
                low = min(low, g[k])
        out[i, own] = True
        for _ in range(joining):
            best = -1
            for k in range(n_classes):
                if not out[i, k] and g[k] > low - near and (best < 0 or g[k] > g[best]):
                    best = k
            if best < 0:
                break
            out[i, best] = True
        if out[i].sum() == 1:
            out[i, own] = False
    return found


@njit(cache=True, nogil=True)
def squares_of(
    K: np.ndarray,
    bias: float,
    row: np.ndarray,
    ends: np.ndarray,
    starts: np.ndarray,
    out: np.ndarray,
) -> None:
    """Write ``K[rows][:, rows] + bias`` for the rows of each class, a square after the other."""
    for k in range(len(ends) - 1):
        place = starts[k]
        for i in range(ends[k], ends[k + 1]):
            source = K[row[i]]
            for j in range(ends[k], ends[k + 1]):
                out[place] = source[row[j]] + bias
                place += 1


@njit(cache=True, fastmath={"contract"}, **INNER)
def _add(out: np.ndarray, factor: float, row: np.ndarray) -> None:
    for j in range(len(out)):
        out[j] += factor * row[j]


@njit(cache=True, nogil=True, fastmath={"contract"})
def pair_steps(
    squares: np.ndarray,
    pairs: Pairs,
    values: np.ndarray,
    moved: np.ndarray,
    b: np.ndarray,
    tol: float,
    passes: int,
) -> tuple[int, float]:
    """Pass over the rows, the pairs of each solved exactly, until none violates ``tol``.

    ``values`` are brought up to date with ``b`` at the end. Until then ``moved``, in the precision
    of the squares, has what the steps add to them: float32 is wrong in proportion to what has
    changed, and not to the values. Returns the number of steps and the largest violation that the
    last pass has met.
    """
    widest = np.diff(pairs.first).max()
    g, linear, old, new = np.empty((4, widest))
    factor = np.empty(1, dtype=squares.dtype)
    moved[:] = 0.0
    steps, worst = 0, 0.0
    for _ in range(passes):
        worst = 0.0
        for i in range(len(pairs.own)):
            own, cost, most = pairs.own[i], pairs.cost[i], pairs.most[i]
            entries = pairs.entry[pairs.first[i] : pairs.first[i + 1]]
            size = len(entries)
            for t in range(size):
                e = entries[t]
                g[t] = values[e] + moved[e] + (0.0 if t == own else 1.0)
                old[t] = b[e]
            violation = row_violation(g[:size], old[:size], own, cost, most)
            worst = max(worst, violation)
            if violation <= 0.5 * tol:
                continue
            curvature = pairs.curvature[i]
            for t in range(size):
                linear[t] = g[t] - curvature * old[t]
            solve_row(linear[:size], curvature, own, cost, most, new[:size])
            steps += 1
            for t in range(size):
                if new[t] != old[t]:
                    e = entries[t]
                    k = pairs.label[e]
                    start, stop = pairs.ends[k], pairs.ends[k + 1]
                    place = pairs.starts[k] + (e - start) * (stop - start)
                    factor[0] = new[t] - old[t]
                    b[e] = new[t]
                    _add(moved[start:stop], factor[0], squares[place : place + stop - start])
        if worst <= tol:
            break
    for e in range(len(values)):
        values[e] += moved[e]
    return steps, worst


@njit(cache=True, nogil=True, fastmath={"contract"})
def project_pairs(
    squares: np.ndarray, pairs: Pairs, b: np.ndarray, new: np.ndarray, moved: np.ndarray
) -> None:
    """Replace ``new`` by what is nearest and feasible, and set ``moved`` to what it changes."""
    linear, out = np.empty((2, np.diff(pairs.first).max()))
    factor = np.empty(1, dtype=squares.dtype)
    for i in range(len(pairs.own)):
        entries = pairs.entry[pairs.first[i] : pairs.first[i + 1]]
        size, changed, scale = len(entries), False, pairs.curvature[i]
        for t in range(size):
            linear[t] = -scale * new[entries[t]]
            changed |= new[entries[t]] != b[entries[t]]
        if changed:
            own, cost, most = pairs.own[i], pairs.cost[i], pairs.most[i]
            solve_row(linear[:size], scale, own, cost, most, out[:size])
            for t in range(size):
                new[entries[t]] = out[t]
    moved[:] = 0.0
    for k in range(len(pairs.ends) - 1):
        start, stop, place = pairs.ends[k], pairs.ends[k + 1], pairs.starts[k]
        for e in range(start, stop):
            if new[e] != b[e]:
                factor[0] = new[e] - b[e]
                _add(moved[start:stop], factor[0], squares[place : place + stop - start])
            place += stop - start


@njit(cache=True, nogil=True, fastmath={"contract"})
def add_changes(K: np.ndarray, bias: float, change: np.ndarray, out: np.ndarray) -> None:
    """Add ``((K + bias) change)'`` to ``out``, (classes, q); most of the change is zero."""
    factor = np.empty(1, dtype=K.dtype)
    sums = np.zeros(change.shape[1])
    for i in range(len(K)):
        for k in range(change.shape[1]):
            if change[i, k] != 0.0:
                factor[0] = change[i, k]
                sums[k] += change[i, k]
                _add(out[k], factor[0], K[i])
    for k in range(change.shape[1]):
        out[k] += bias * sums[k]


@njit(cache=True, nogil=True)
def triangles_of(
    squares: np.ndarray,
    pairs: Pairs,
    chosen: np.ndarray,
    ends: np.ndarray,
    starts: np.ndarray,
    out: np.ndarray,
) -> None:
    """Write, class after class, the lower triangle of the rows and columns of some entries."""
    for k in range(len(ends) - 1):
        place, first = starts[k], pairs.ends[k]
        size = pairs.ends[k + 1] - first
        for i in range(ends[k], ends[k + 1]):
            row = pairs.starts[k] + (chosen[i] - first) * size - first
            for j in range(ends[k], i + 1):
                out[place] = squares[row + chosen[j]]
                place += 1


@njit(cache=True, nogil=True, fastmath={"contract", "reassoc"})
def triangle_products(
    triangles: np.ndarray, ends: np.ndarray, starts: np.ndarray, d: np.ndarray, out: np.ndarray
) -> None:
    """Multiply the symmetric matrix of each class with its part of ``d``; ``out`` begins at 0."""
    for k in range(len(ends) - 1):
        first, place = ends[k], starts[k]
        for i in range(first, ends[k + 1]):
            size = i - first
            factor, total = d[i], out[i]
            entries = triangles[place : place + size]
            parts, sums = d[first:i], out[first:i]
            for j in range(size):
                total += entries[j] * parts[j]
                sums[j] += entries[j] * factor
            out[i] = total + triangles[place + size] * factor
            place += size + 1


@njit(cache=True, nogil=True)
def level(g: np.ndarray, row: np.ndarray, share: np.ndarray, sums: np.ndarray) -> None:
    """Take the mean over each row's variables off: what is left keeps their sums."""
    sums[:] = 0.0
    for i in range(len(g)):
        sums[row[i]] += g[i]
    for i in range(len(g)):
        g[i] -= sums[row[i]] * share[row[i]]


@njit(cache=True, nogil=True)
def gradient_step(
    product: np.ndarray,
    residual: np.ndarray,
    direction: np.ndarray,
    move: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    row: np.ndarray,
    share: np.ndarray,
    sums: np.ndarray,
    goal: float,
    room: int,
) -> bool:
    """One step of conjugate gradients, given the matrix times the direction; changes the four.

    Returns whether to go on: the residual is above its goal, and no more than ``room`` rows have
    left their box. Works in ``sums``.
    """
    level(product, row, share, sums)
    curvature, square = 0.0, 0.0
    for i in range(len(move)):
        curvature += direction[i] * product[i]
        square += residual[i] * residual[i]
    if curvature <= 0.0 or square == 0.0:
        return False
    size = square / curvature
    sums[:] = 0.0
    largest, after, left = 0.0, 0.0, 0
    for i in range(len(move)):
        move[i] += size * direction[i]
        residual[i] -= size * product[i]
        largest = max(largest, abs(residual[i]))
        after += residual[i] * residual[i]
        if (move[i] < low[i] or move[i] > high[i]) and sums[row[i]] == 0.0:
            sums[row[i]] = 1.0
            left += 1
    if largest <= goal or left > room:
        return False
    for i in range(len(move)):
        direction[i] = residual[i] + after / square * direction[i]
    return True
