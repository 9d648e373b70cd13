"""Steps of sequential minimal optimisation on rows of the kernel matrix, in float64."""

from __future__ import annotations

import numpy as np

from maxmargin.backends.compiled import njit
from maxmargin.backends.cpu.dual.steps import CONVERGED, PAUSED, ROWS, STUCK, move_one, move_pair


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def smo_steps(
    K,
    slot,
    stamp,
    clock,
    gram_row,
    orientation,
    lower,
    upper,
    group,
    n_groups,
    diagonal,
    beta,
    v,
    may_rise,
    may_fall,
    turn,
    second_order,
    tol,
    max_steps,
):
    """Take up to ``max_steps`` steps; returns ``(code, steps taken, missing row, violation)``.

    Unless ``turn``, the steps before these, is negative, every other one has its i by the gain. Not
    ``second_order``, the pair is that of the largest violation, whatever it gains.

    Changes ``beta``, ``v``, ``may_rise``, ``may_fall`` and the store's ``stamp`` and ``clock`` in
    place. Comes back early when a row of K is not resident, to be called again with it.
    """
    m = beta.shape[0]
    tiny = 1e-12
    violation = 0.0
    highest = np.empty(max(n_groups, 1))
    lowest = np.empty(max(n_groups, 1))
    first = np.empty(max(n_groups, 1), dtype=np.int64)
    for taken in range(max_steps):
        i = -1
        j = -1
        if n_groups == 0:
            best = 0.0
            violation = 0.0
            for t in range(m):
                if (v[t] > 0.0 and may_rise[t]) or (v[t] < 0.0 and may_fall[t]):
                    violation = max(violation, abs(v[t]))
                    gain = abs(v[t])
                    if second_order:
                        gain *= gain / max(diagonal[t], tiny)
                    if gain > best:
                        best = gain
                        i = t
            if violation < tol:
                return CONVERGED, taken, -1, violation
            if i < 0:
                return STUCK, taken, -1, violation
        else:
            for g in range(n_groups):
                highest[g] = -np.inf
                lowest[g] = np.inf
                first[g] = -1
            for t in range(m):
                g = group[t]
                if may_rise[t] and v[t] > highest[g]:
                    highest[g] = v[t]
                    first[g] = t
                if may_fall[t] and v[t] < lowest[g]:
                    lowest[g] = v[t]
            widest = 0
            for g in range(1, n_groups):
                if highest[g] - lowest[g] > highest[widest] - lowest[widest]:
                    widest = g
            violation = highest[widest] - lowest[widest]
            if violation < tol:
                return CONVERGED, taken, -1, max(violation, 0.0)
            i = first[widest]
            if i < 0 or violation != violation:
                return STUCK, taken, -1, violation
            if turn >= 0 and (turn + taken) % 2 == 1:
                best = 0.0
                for t in range(m):
                    slope = v[t] - lowest[widest]
                    if may_rise[t] and group[t] == widest and slope > 0.0:
                        gain = slope * slope / max(diagonal[t], tiny)
                        if gain > best:
                            best = gain
                            i = t
        row_i = slot[gram_row[i]]
        if row_i < 0:
            return ROWS, taken, gram_row[i], violation
        Ki = K[row_i]
        clock[0] += 1
        stamp[row_i] = clock[0]
        if n_groups == 0:
            step = move_one(beta, lower, upper, i, v[i] / max(diagonal[i], tiny))
            if step == 0.0:
                return STUCK, taken, -1, violation
            may_rise[i] = beta[i] < upper[i]
            may_fall[i] = beta[i] > lower[i]
            scaled_step = step * orientation[i]
            for t in range(m):
                v[t] -= scaled_step * orientation[t] * Ki[gram_row[t]]
            continue
        best = 0.0
        for t in range(m):
            if may_fall[t] and group[t] == group[i]:
                slope = v[i] - v[t]
                if slope > 0.0:
                    gain = slope
                    if second_order:
                        cross = 2.0 * orientation[i] * orientation[t] * Ki[gram_row[t]]
                        gain *= slope / max(diagonal[i] + diagonal[t] - cross, tiny)
                    if gain > best:
                        best = gain
                        j = t
        if j < 0:
            return STUCK, taken, -1, violation
        row_j = slot[gram_row[j]]
        if row_j < 0:
            return ROWS, taken, gram_row[j], violation
        Kj = K[row_j]
        stamp[row_j] = clock[0]
        cross = 2.0 * orientation[i] * orientation[j] * Ki[gram_row[j]]
        step = (v[i] - v[j]) / max(diagonal[i] + diagonal[j] - cross, tiny)
        step = move_pair(beta, lower, upper, i, j, step)
        if step == 0.0:
            return STUCK, taken, -1, violation
        for t in (i, j):
            may_rise[t] = beta[t] < upper[t]
            may_fall[t] = beta[t] > lower[t]
        pull_i = step * orientation[i]
        pull_j = step * orientation[j]
        for t in range(m):
            row = gram_row[t]
            v[t] -= orientation[t] * (pull_i * Ki[row] - pull_j * Kj[row])
    return PAUSED, max_steps, -1, violation
