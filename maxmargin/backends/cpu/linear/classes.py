"""Compiled loops for one function per class: all values of a row at once, and its variables.

See :mod:`maxmargin.risk.direct` for the problem. Weights lie as the data ask for: ``(classes,
features)`` beside dense rows, so that a product runs along a row and classes can be left out, and
``(features, lanes)`` beside CSR, so that the entries of all classes for one feature are neighbours.
Lanes are the classes, rounded up to what a vector register holds.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.extending import overload

from maxmargin.backends.compiled import INNER, njit
from maxmargin.backends.cpu.linear.rows import FAST, liveliest, shuffle

_LANES = 4
_NEAR = 1e-13  # of what a row's variables can be: what is closer to a wall lies on it
_FLAT = 1e-12  # curvature of a row without entries
_SHARE = 1e-3  # of the mean gap of a row, from which on it is visited


def room_for(n_classes: int, features: int, sparse: bool) -> np.ndarray:
    """Zero weights as they lie beside dense rows, or beside CSR."""
    lanes = -(-n_classes // _LANES) * _LANES
    return np.zeros((features, lanes) if sparse else (n_classes, features))


def dots(rows: tuple, i: int, W: np.ndarray, on: np.ndarray, out: np.ndarray) -> None:
    """``out_k = x_i . w_k`` for the classes that are ``on`` (beside CSR, for all), compiled."""
    raise NotImplementedError


@overload(dots, jit_options={"fastmath": FAST})
def _dots(rows: Any, i: Any, W: Any, on: Any, out: Any) -> Any:
    def dense(rows: Any, i: Any, W: Any, on: Any, out: Any) -> None:
        x = rows[0][i]
        for k in range(len(W)):
            if on[k]:
                w, total = W[k], 0.0
                for j in range(len(x)):
                    total += x[j] * w[j]
                out[k] = total

    def csr(rows: Any, i: Any, W: Any, on: Any, out: Any) -> None:
        values, columns, begin = rows
        lanes, one = W.shape[1], np.uint64(1)
        p, end = np.uint64(begin[i]), np.uint64(begin[i + 1])
        for k in range(lanes):
            out[k] = 0.0
        while p + np.uint64(3) < end:  # four at a time: sums in memory are what a loop waits for
            q, r, s = p + one, p + np.uint64(2), p + np.uint64(3)
            a, b, c, d = values[p], values[q], values[r], values[s]
            wa, wb = W[np.uint64(columns[p])], W[np.uint64(columns[q])]
            wc, wd = W[np.uint64(columns[r])], W[np.uint64(columns[s])]
            for k in range(lanes):
                out[k] += (a * wa[k] + b * wb[k]) + (c * wc[k] + d * wd[k])
            p += np.uint64(4)
        while p < end:
            a, wa = values[p], W[np.uint64(columns[p])]
            for k in range(lanes):
                out[k] += a * wa[k]
            p += one

    return dense if len(rows) == 1 else csr


def spread(rows: tuple, i: int, amounts: np.ndarray, W: np.ndarray) -> None:
    """``w_k += amounts_k x_i`` in place for all classes, compiled."""
    raise NotImplementedError


@overload(spread, jit_options={"fastmath": FAST})
def _spread(rows: Any, i: Any, amounts: Any, W: Any) -> Any:
    def dense(rows: Any, i: Any, amounts: Any, W: Any) -> None:
        x = rows[0][i]
        for k in range(len(W)):
            if amounts[k] != 0.0:
                w, a = W[k], amounts[k]
                for j in range(len(x)):
                    w[j] += a * x[j]

    def csr(rows: Any, i: Any, amounts: Any, W: Any) -> None:
        values, columns, begin = rows
        for p in range(np.uint64(begin[i]), np.uint64(begin[i + 1])):
            x, w = values[p], W[np.uint64(columns[p])]
            for k in range(W.shape[1]):
                w[k] += x * amounts[k]

    return dense if len(rows) == 1 else csr


@njit(cache=True, nogil=True)
def csr_values_of_classes(rows, W, start, stop, out):
    """``out[k, i] = x_i . w_k``, for rows of CSR."""
    f, on = np.empty(W.shape[1]), np.empty(0, dtype=np.bool_)
    for i in range(start, stop):
        dots(rows, i, W, on, f)
        for k in range(len(out)):
            out[k, i] = f[k]


@njit(cache=True, nogil=True)
def csr_combinations(rows, beta, start, stop, W):
    """Add ``sum_i beta_ik x_i`` to the weights of each class, for rows of CSR."""
    amounts = np.zeros(W.shape[1])
    for i in range(start, stop):
        some = False
        for k in range(beta.shape[1]):
            amounts[k] = beta[i, k]
            some |= amounts[k] != 0.0
        if some:
            spread(rows, i, amounts, W)


@njit(cache=True, fastmath={"contract"}, **INNER)
def _solve_row(linear, inverse, on, own, cost, most, b, out):
    """Write the variables of one row into ``out``: ``clip((level - linear_k) inverse)``, of sum 0.

    Newton's method for the level, from the variables that are off their walls in ``b``: mostly
    these are the same again. Where none is, from halfway between the own class and its best rival.
    Classes that are not ``on`` stay at zero. Where costs are small, a level has too few digits for
    them: then it goes on as a difference from there, and ``linear`` changes.
    """
    total, free, fixed, rival = 0.0, 0, 0.0, -np.inf
    for k in range(len(b)):
        if on[k]:
            low, high = (0.0, most) if k == own else (-cost, 0.0)
            if low < b[k] < high:
                total += linear[k]
                free += 1
            else:
                fixed += b[k]
            if k != own:
                rival = max(rival, linear[k])
    out[:] = 0.0
    if rival <= linear[own]:
        return
    # the level is between own and rival: no rival's variable is larger than this
    unit = min(cost, (rival - linear[own]) * inverse)
    level = max(
        min(0.5 * (rival + linear[own]), linear[own] + most / inverse), rival - cost / inverse
    )
    if free > 0:
        level = (total - fixed / inverse) / free
    below, above, near = -np.inf, np.inf, _NEAR * unit
    for _ in range(100):
        total, free, up, down = 0.0, 0, np.inf, -np.inf
        for k in range(len(b)):
            out[k] = 0.0
            if on[k]:
                value = (level - linear[k]) * inverse
                low, high = (0.0, most) if k == own else (-cost, 0.0)
                if value <= low + near:
                    value, up = low, min(up, linear[k] + low / inverse)
                elif value >= high - near:
                    value, down = high, max(down, linear[k] + high / inverse)
                else:
                    free += 1
                out[k] = value
                total += value
        if abs(total) <= 1e-15 * len(b) * unit:
            break
        if total > 0.0:
            above = level
        else:
            below = level
        if free > 0:
            step = level - total / (inverse * free)
        else:  # to where the next one leaves its wall
            step = up + 4 * near / inverse if total < 0.0 else down - 4 * near / inverse
        if not (below < step < above):
            step = 0.5 * (below + above)
        if below < step < above and step != level:
            level = step
        elif level != 0.0:
            for k in range(len(b)):
                linear[k] -= level
            level, below, above = 0.0, -np.inf, np.inf
        else:
            break
    # what rounding has left of the sum goes to the largest variable off its walls
    rest, place = 0.0, -1
    for k in range(len(b)):
        rest -= out[k]
        low, high = (0.0, most) if k == own else (-cost, 0.0)
        if low < out[k] < high and (place < 0 or abs(out[k]) > abs(out[place])):
            place = k
    if place >= 0:
        out[place] += rest


@njit(cache=True, **INNER)
def _sweep(rows, W, bias, scale, b, y, cost, summed, norms, order, moved, on, whole, reach):
    """Visit each of some rows once; see :func:`class_sweeps`."""
    n_classes = b.shape[1]
    g, change = np.zeros(len(bias)), np.zeros(len(bias))
    linear, new, every = (
        np.empty(n_classes),
        np.zeros(n_classes),
        np.ones(n_classes, dtype=np.bool_),
    )
    gap = 0.0
    for i in order:
        own, mine, curvature = y[i], every if whole else on[i], max(norms[i], _FLAT)
        most = cost[i] * (n_classes - 1 if summed else 1)
        dots(rows, i, W, mine, g)
        part, largest, total = 0.0, 0.0, 0.0
        at_own = g[own] + scale * bias[own]
        for k in range(n_classes):
            if mine[k]:
                g[k] += scale * bias[k] + (0.0 if k == own else 1.0)
                part += b[i, k] * g[k]
                linear[k] = g[k] - curvature * b[i, k]
                if k != own and g[k] > at_own:
                    largest = max(largest, g[k] - at_own)
                    total += g[k] - at_own
        part += cost[i] * (total if summed else largest)
        gap += part
        moved[i] = 0.0
        if part > 0.0:
            _solve_row(linear, 1.0 / curvature, mine, own, cost[i], most, b[i], new)
            for k in range(n_classes):
                change[k] = new[k] - b[i, k]
                moved[i] += curvature * change[k] * change[k]
                b[i, k] = new[k]
                bias[k] += change[k]
            if moved[i] > 0.0:
                spread(rows, i, change, W)
        if whole:
            level = g[own]
            for k in range(n_classes):
                if b[i, k] < 0.0:
                    level = min(level, g[k])
            for k in range(n_classes):
                on[i, k] = k == own or b[i, k] < 0.0 or g[k] > level - reach
    return gap


@njit(cache=True, nogil=True, error_model="numpy")
def class_sweeps(problem, norms, order, moved, on, whole, reach, seed, times, lively):
    """Solve for the variables of each row in turn; changes W, bias, b, order, moved, on and seed.

    So many times, for all rows of ``order`` or the liveliest of them, in random order. ``problem``
    is ``rows, W, bias, scale, b, y, cost, summed``: ``bias`` are the sums of the variables, which
    count ``scale`` times in the values. With ``whole`` all classes are looked at, and those chosen
    (``on``) that come to within ``reach`` of the ones in play; else only these. Returns the sum of
    what each row had as its part of the gap when it was visited last, and the number of visits.
    """
    rows, W, bias, scale, b, y, cost, summed = problem
    room, gap, visits = np.empty(len(order), dtype=np.int64), 0.0, 0
    for _ in range(times):
        some = liveliest(order, moved, room) if lively else order
        shuffle(some, seed)
        gap = _sweep(rows, W, bias, scale, b, y, cost, summed, norms, some, moved, on, whole, reach)
        visits += len(some)
    return gap, visits


@njit(cache=True, nogil=True)
def class_look(problem, start, stop, parts):
    """Set each row's part of the duality gap; returns the sum of the losses, times the costs."""
    rows, W, bias, scale, b, y, cost, summed = problem
    every, f, losses = np.ones(b.shape[1], dtype=np.bool_), np.zeros(len(bias)), 0.0
    for i in range(start, stop):
        dots(rows, i, W, every, f)
        own, largest, total, along = y[i], 0.0, 0.0, 0.0
        at_own = f[own] + scale * bias[own]
        for k in range(b.shape[1]):
            g = f[k] + scale * bias[k] + (0.0 if k == own else 1.0)
            along += b[i, k] * g
            if k != own and g > at_own:
                largest = max(largest, g - at_own)
                total += g - at_own
        loss = cost[i] * (total if summed else largest)
        losses += loss
        parts[i] = loss + along
    return losses


@njit(cache=True, nogil=True)
def worth_visits(parts, b, gap):
    """Rows with a part of the gap that counts, or with variables off zero that lack something."""
    chosen, count = np.empty(len(parts), dtype=np.int64), 0
    for i in range(len(parts)):
        if parts[i] * len(parts) > _SHARE * gap or (parts[i] > 0.0 and b[i].any()):
            chosen[count] = i
            count += 1
    return chosen[:count]
