"""Looks at every variable of a dual problem: who violates the KKT conditions, and by how much.

With ``v`` minus the gradient, no variable that may rise has a larger v than one of its group that
may fall: else the two form a violating pair. Between them is the level of the group.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from maxmargin.backends.compiled import INNER, njit

_EPS = 2.0**-52
_AT_BOUND = 1e-10  # of the width of a box: rounding of sums is no reason to move further


class Variables(NamedTuple):
    """The arrays of a dual problem (:mod:`maxmargin.duals`), as the compiled loops take them."""

    gram_row: np.ndarray
    orientation: np.ndarray
    linear: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    group: np.ndarray


class Extremes(NamedTuple):
    """What a look at all variables tells of each group.

    The highest v that may rise and the lowest that may fall, with their places; and of the free
    variables, which may do both, the sum of v and the number.
    """

    highest: np.ndarray
    lowest: np.ndarray
    top: np.ndarray
    bottom: np.ndarray
    total: np.ndarray
    free: np.ndarray


@njit(**INNER)
def nothing_seen(n_groups):
    """Extremes of no variables; without groups all of them are in one."""
    groups = max(n_groups, 1)
    return Extremes(
        np.full(groups, -np.inf),
        np.full(groups, np.inf),
        np.full(groups, -1),
        np.full(groups, -1),
        np.zeros(groups),
        np.zeros(groups),
    )


@njit(**INNER)
def take_note(seen, g, t, v, rises, falls):
    """Take variable t of group g, with score v, into the extremes."""
    if rises and v > seen.highest[g]:
        seen.highest[g] = v
        seen.top[g] = t
    if falls and v < seen.lowest[g]:
        seen.lowest[g] = v
        seen.bottom[g] = t
    if rises and falls:
        seen.total[g] += v
        seen.free[g] += 1.0


@njit(**INNER)
def level_of(seen, g):
    """Mean of v over the free variables of a group.

    Without one the middle of the extremes, between which every level satisfies the KKT conditions,
    or the one that is finite.
    """
    top, bottom = seen.highest[g], seen.lowest[g]
    if seen.free[g] > 0.0:
        return seen.total[g] / seen.free[g]
    if top > -np.inf and bottom < np.inf:
        return 0.5 * (top + bottom)
    if top > -np.inf:
        return top
    return bottom if bottom < np.inf else 0.0


@njit(**INNER)
def levels_of(seen, n_groups):
    """Levels of all groups; without groups it is zero."""
    levels = np.zeros(max(n_groups, 1))
    for g in range(n_groups):
        levels[g] = level_of(seen, g)
    return levels


@njit(**INNER)
def widest_pair(seen, n_groups):
    """Violation of the worst pair and its group, or -1; without groups, that of one variable."""
    if n_groups == 0:
        return max(seen.highest[0], -seen.lowest[0], 0.0), -1
    worst, widest = 0.0, -1
    for g in range(n_groups):
        if seen.top[g] >= 0 and seen.bottom[g] >= 0 and seen.highest[g] - seen.lowest[g] > worst:
            worst, widest = seen.highest[g] - seen.lowest[g], g
    return worst, widest


@njit(**INNER)
def score_of(variables, decision, t):
    """Minus the gradient along a variable, given ``D = K coef``."""
    return -variables.orientation[t] * decision[variables.gram_row[t]] - variables.linear[t]


@njit(cache=True, nogil=True, error_model="numpy")
def levels_and_violation(variables, n_groups, beta, v):
    """Level of each group (zero, where there is none) and the largest violation, given all v."""
    seen = nothing_seen(n_groups)
    for t in range(v.shape[0]):
        g = variables.group[t] if n_groups > 0 else 0
        take_note(seen, g, t, v[t], beta[t] < variables.upper[t], beta[t] > variables.lower[t])
    violation, _ = widest_pair(seen, n_groups)
    return levels_of(seen, n_groups), violation


@njit(cache=True, nogil=True, error_model="numpy")
def snap_to_bounds(variables, n_groups, beta):
    """Put variables on bounds from which only rounding keeps them; return how many.

    Where all variables belong at a bound (balanced classes at a small C), the last bit of the sum
    would make one of them free, and the intercept an end of the interval of optimal ones.
    """
    amount = np.zeros(max(n_groups, 1))
    for t in range(beta.shape[0]):
        if n_groups > 0:
            amount[variables.group[t]] += abs(beta[t])
    count = 0
    for t in range(beta.shape[0]):
        low, high = variables.lower[t], variables.upper[t]
        if n_groups > 0 and low < beta[t] < high:
            near = min(4.0 * _EPS * amount[variables.group[t]], _AT_BOUND * (high - low))
            if beta[t] - low <= near:
                beta[t] = low
                count += 1
            elif high - beta[t] <= near:
                beta[t] = high
                count += 1
    return count


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
    seen = nothing_seen(n_groups)
    for t in range(beta.shape[0]):
        g = variables.group[t] if n_groups > 0 else 0
        found.v[t] = score_of(variables, decision, t)
        found.may_rise[t] = beta[t] < variables.upper[t]
        found.may_fall[t] = beta[t] > variables.lower[t]
        take_note(seen, g, t, found.v[t], found.may_rise[t], found.may_fall[t])
    worst, widest = widest_pair(seen, n_groups)
    level = levels_of(seen, n_groups)
    for t in range(beta.shape[0]):
        found.v[t] -= level[variables.group[t] if n_groups > 0 else 0]
        rise = found.v[t] if found.may_rise[t] else -np.inf
        fall = -found.v[t] if found.may_fall[t] else -np.inf
        found.excess[t] = max(rise, fall)
    if widest >= 0:
        found.excess[seen.top[widest]] = np.inf
        found.excess[seen.bottom[widest]] = np.inf
    return worst


@njit(cache=True, nogil=True, error_model="numpy")
def slack_to_violation(variables, n_groups, beta, decision):
    """By how much each variable's v could change before it took part in a violation.

    Nothing where its group has no free variable, and so no level to measure from.
    """
    seen = nothing_seen(n_groups)
    v = np.empty(beta.shape[0])
    for t in range(beta.shape[0]):
        g = variables.group[t] if n_groups > 0 else 0
        v[t] = score_of(variables, decision, t)
        take_note(seen, g, t, v[t], beta[t] < variables.upper[t], beta[t] > variables.lower[t])
    level = levels_of(seen, n_groups)
    out = np.full(beta.shape[0], np.inf)
    for t in range(beta.shape[0]):
        g = variables.group[t] if n_groups > 0 else 0
        if n_groups > 0 and seen.free[g] == 0.0:
            out[t] = 0.0
            continue
        if beta[t] < variables.upper[t]:
            out[t] = level[g] - v[t]
        if beta[t] > variables.lower[t]:
            out[t] = min(out[t], v[t] - level[g])
    return out
