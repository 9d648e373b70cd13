"""Compiled steps for machines of several classes at once: the variables of one row, exactly.

See :mod:`maxmargin.duals.direct` for the problem. With the other rows fixed, those of row i solve

    minimise  1/2 K_ii ||b||^2 + B . b    over  low <= b <= high,  sum b = 0

whose solution is ``b_k = clip((level - B_k) / K_ii)`` at the one level where the sum is zero.
"""

from __future__ import annotations

import numpy as np

from maxmargin.backends.compiled import INNER, njit

_NEAR = 1e-13  # of a row's cost: what is closer to a wall lies on it
_WALL = 1 - 1e-12  # of a bound, likewise


@njit(cache=True, nogil=True)
def row_violation(g: np.ndarray, b: np.ndarray, own: int, cost: float, most: float) -> float:
    """By how much the largest g that may fall is above the smallest that may rise."""
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
    return max(high - low, 0.0)


@njit(cache=True, nogil=True)
def violations(
    values: np.ndarray, b: np.ndarray, y: np.ndarray, cost: np.ndarray, most: np.ndarray
) -> np.ndarray:
    """Violation of every row, given the values of the functions there, (n, K)."""
    found = np.zeros(len(y))
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
    for _ in range(200):
        total, free, largest = 0.0, 0, 0.0
        for k in range(count):
            value = (level - linear[k]) / curvature
            low, high = (0.0, most) if k == own else (-cost, 0.0)
            if value <= low + _NEAR * cost:
                value = low
            elif value >= high - _NEAR * cost:
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
        out[place] += rest


@njit(cache=True, nogil=True)
def project_rows(
    b: np.ndarray, rows: np.ndarray, y: np.ndarray, cost: np.ndarray, most: np.ndarray
) -> None:
    """Replace some rows of b by the nearest that are feasible."""
    linear = np.empty(b.shape[1])
    for i in rows:
        for k in range(len(linear)):
            linear[k] = -b[i, k]
        solve_row(linear, 1.0, y[i], cost[i], most[i], b[i])


@njit(cache=True, nogil=True, fastmath={"contract"})
def row_steps(
    K: np.ndarray,
    values: np.ndarray,
    moved: np.ndarray,
    b: np.ndarray,
    y: np.ndarray,
    cost: np.ndarray,
    most: np.ndarray,
    tol: float,
    passes: int,
) -> tuple[int, float]:
    """Pass over the rows of a block, each solved exactly, until none violates ``tol``.

    ``K`` is symmetric, (q, q); ``values``, (classes, q), are brought up to date with ``b``, (q,
    classes), at the end. Until then ``moved``, in the precision of the block, has what the steps
    add to them: float32 is wrong in proportion to what has changed, and not to the values.
    Returns the number of steps and the largest violation that the last pass has met.
    """
    count, n_classes = len(y), b.shape[1]
    g, linear, new = np.empty(n_classes), np.empty(n_classes), np.empty(n_classes)
    factor = np.empty(1, dtype=K.dtype)
    moved[:] = 0.0
    steps, worst = 0, 0.0
    for _ in range(passes):
        worst = 0.0
        for i in range(count):
            own = y[i]
            for k in range(n_classes):
                g[k] = values[k, i] + moved[k, i] + 1.0
            g[own] -= 1.0
            violation = row_violation(g, b[i], own, cost[i], most[i])
            worst = max(worst, violation)
            if violation <= 0.5 * tol:
                continue
            curvature = max(float(K[i, i]), 1e-12)
            for k in range(n_classes):
                linear[k] = g[k] - curvature * b[i, k]
            solve_row(linear, curvature, own, cost[i], most[i], new)
            steps += 1
            for k in range(n_classes):
                if new[k] != b[i, k]:
                    factor[0] = new[k] - b[i, k]
                    b[i, k] = new[k]
                    _add(moved[k], factor[0], K[i])
        if worst <= tol:
            break
    for k in range(n_classes):
        for i in range(count):
            values[k, i] += moved[k, i]
    return steps, worst


@njit(cache=True, fastmath={"contract"}, **INNER)
def _add(out: np.ndarray, factor: float, row: np.ndarray) -> None:
    for j in range(len(out)):
        out[j] += factor * row[j]


@njit(cache=True, nogil=True, fastmath={"contract"})
def add_changes(K: np.ndarray, change: np.ndarray, out: np.ndarray) -> None:
    """Add ``(K change)'`` to ``out``, (classes, q); most entries of the change are zero."""
    factor = np.empty(1, dtype=K.dtype)
    for i in range(len(K)):
        for k in range(change.shape[1]):
            if change[i, k] != 0.0:
                factor[0] = change[i, k]
                _add(out[k], factor[0], K[i])


@njit(cache=True, nogil=True)
def triangles_of(
    K: np.ndarray,
    row: np.ndarray,
    ends: np.ndarray,
    starts: np.ndarray,
    classes: tuple[int, int],
    out: np.ndarray,
) -> None:
    """Write the lower triangles of ``K[rows][:, rows]``, for the rows that some classes have."""
    for k in range(classes[0], classes[1]):
        place = starts[k]
        for i in range(ends[k], ends[k + 1]):
            source = K[row[i]]
            for j in range(ends[k], i + 1):
                out[place] = source[row[j]]
                place += 1


@njit(cache=True, nogil=True, fastmath={"contract", "reassoc"})
def triangle_products(
    triangles: np.ndarray,
    ends: np.ndarray,
    starts: np.ndarray,
    classes: tuple[int, int],
    d: np.ndarray,
    out: np.ndarray,
) -> None:
    """Multiply the symmetric matrices of some classes with their parts of ``d``."""
    for k in range(classes[0], classes[1]):
        first, place = ends[k], starts[k]
        for i in range(first, ends[k + 1]):
            size = i - first
            factor, total = d[i], out[i] * 0
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
