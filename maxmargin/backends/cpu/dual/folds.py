"""The folds of a problem for two classes in one compiled call, each begun from the whole solution.

All folds share the kernel values of the variables that may matter, in float32. A fold has costs
of its own: zero for rows that it holds out, whose walls are then at zero, and in a bootstrap
replicate so many times the whole problem's as a row was drawn. What the walls forbid is taken back
from the others, and steps of two (:mod:`maxmargin.backends.cpu.dual.steps`) do the rest.
"""

from __future__ import annotations

import numpy as np

from maxmargin.backends.compiled import INNER, njit
from maxmargin.backends.cpu.dual.kkt import Variables, levels_and_violation
from maxmargin.backends.cpu.dual.momentum import conjugate_steps
from maxmargin.backends.cpu.dual.steps import PAUSED, Block, walls

_LOOKS = 20  # at the scores in float64, in one call
_GOAL = 0.9  # of tol, that steps in float32 go for


@njit(cache=True, nogil=True, error_model="numpy")
def solve_folds(
    K, place, cost, todo, variables, n_groups, tol, allowed, beta, level, violation, taken
):
    """Take up to ``allowed`` steps in each fold of ``todo``; returns the most that one has taken.

    ``K[t]`` has the values of variable t with all rows, of which ``place[t]`` is its own, and
    ``cost[f, t]`` is how far it may go in fold f, to the side of its label. Changes ``beta[f]``,
    which need not be feasible for the fold, adds to ``taken[f]``, and writes ``level[f]`` and
    ``violation[f]``, by float64 sums of the values.
    """
    m = place.shape[0]
    inside = np.empty((m, m), dtype=np.float32)
    diagonal = np.empty(m, dtype=np.float32)
    for t in range(m):
        for s in range(m):
            inside[t, s] = K[t, place[s]]
        diagonal[t] = inside[t, t]
    slot = np.arange(m)
    rise = np.empty((1, m), dtype=np.float32)
    fall = np.empty((1, m), dtype=np.float32)
    score = np.empty(m, dtype=np.float32)
    most = 0
    for f in todo:
        own = beta[f]
        farthest = -variables.linear * cost[f]
        lower, upper = np.minimum(farthest, 0.0), np.maximum(farthest, 0.0)
        part = Variables(
            place, variables.orientation, variables.linear, lower, upper, variables.group
        )
        _make_feasible(own, lower, upper, n_groups)
        steps = 0
        for _ in range(_LOOKS):
            v = _scores(inside, own, variables.linear)
            levels, violation[f] = levels_and_violation(part, n_groups, own, v)
            level[f] = levels[0]
            if violation[f] <= tol or steps >= allowed:
                break
            for t in range(m):
                score[t] = v[t] - level[f]
            walls(own, lower, upper, variables.group, rise, fall)
            block = Block(inside, slot, diagonal, score, own, lower, upper, rise, fall)
            code, done = conjugate_steps(
                n_groups > 0, block, np.float32(_GOAL * tol), allowed - steps
            )
            steps += done
            if done == 0 and code != PAUSED:
                break
        taken[f] += steps
        most = max(most, steps)
    return most


@njit(**INNER)
def _make_feasible(beta, lower, upper, n_groups):
    """Bring variables between their walls, and their sum, where there is one, back to zero.

    Those between their walls give first, each by the same share of its room, then all.
    """
    total = 0.0
    for t in range(beta.shape[0]):
        beta[t] = min(max(beta[t], lower[t]), upper[t])
        total += beta[t]
    if n_groups == 0:
        return
    for everyone in (False, True):
        room = 0.0
        for t in range(beta.shape[0]):
            if everyone or lower[t] < beta[t] < upper[t]:
                room += beta[t] - lower[t] if total > 0.0 else upper[t] - beta[t]
        if room == 0.0:
            continue
        share = min(abs(total) / room, 1.0)
        left = 0.0
        for t in range(beta.shape[0]):
            if everyone or lower[t] < beta[t] < upper[t]:
                wall = lower[t] if total > 0.0 else upper[t]
                beta[t] = wall if share == 1.0 else beta[t] + share * (wall - beta[t])
            left += beta[t]
        if share < 1.0:
            return
        total = left


@njit(fastmath={"contract", "reassoc"}, **INNER)
def _scores(K, beta, linear):
    """Minus the gradient, summed in float64."""
    v = -linear
    for t in range(beta.shape[0]):
        if beta[t] != 0.0:
            row = K[t]
            weight = beta[t]
            for s in range(v.shape[0]):
                v[s] -= weight * row[s]
    return v
