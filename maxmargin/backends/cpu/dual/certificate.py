"""The numbers of a certificate (:mod:`maxmargin.certificate`): sums and extremes of one pass each.

Compiled, so that a solver of many small problems can account for each as soon as it is solved.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from maxmargin.backends.compiled import njit
from maxmargin.backends.cpu.dual.kkt import (
    Extremes,
    levels_of,
    nothing_seen,
    score_of,
    take_note,
    widest_pair,
)
from maxmargin.backends.cpu.dual.kkt import Variables as Boxed

SUMMED = 512  # terms of a product with the matrix that are summed at a time
FEASIBLE = 1e-8  # infeasibility, over the size of an answer, that rounding explains
RESOLVED = 16.0  # roundings of the largest terms below which their sum counts as zero
_FEW, _HALVINGS = 0.1, 64  # of the rows, and of the largest value among the others
_EPS = 2.0**-52


class KKTState(NamedTuple):
    """What one look at every variable tells.

    ``levels`` has an entry for each group. ``size`` is ``sum_i |beta_i| sqrt(K_ii)``: the length
    that w would have if nothing in it cancelled. ``drift`` is by how much the sum of each group is
    off, and ``amount`` the sum of the sizes of its variables.
    """

    levels: np.ndarray
    violation: float
    squared_norm: float
    linear: float
    infeasibility: float
    size: float
    drift: np.ndarray
    amount: np.ndarray


class KKTSums(NamedTuple):
    """The same before it is put together: extremes and sums, to which those of more rows add.

    ``drift`` and ``amount`` are of each group: by how much the variables have left the start, and
    the sum of their sizes. ``outside`` is by how much one has left its box.
    """

    seen: Extremes
    drift: np.ndarray
    amount: np.ndarray
    squared_norm: float
    linear: float
    outside: float
    size: float


@njit(cache=True, nogil=True, error_model="numpy")
def kkt_sums(variables, n_groups, beta, start, decision, diagonal):
    """Look at every variable of a point, given its decision ``D = K coef`` in float64."""
    groups = max(n_groups, 1)
    seen = nothing_seen(n_groups)
    drift = np.zeros(groups)
    amount = np.zeros(groups)
    coef = np.zeros(decision.shape[0])
    cost = np.zeros(decision.shape[0])  # of the two variables of a row, which may cancel
    outside = 0.0
    for t in range(beta.shape[0]):
        a = beta[t]
        row = variables.gram_row[t]
        g = variables.group[t] if n_groups > 0 else 0
        v = score_of(variables, decision, t)
        take_note(seen, g, t, v, a < variables.upper[t], a > variables.lower[t])
        drift[g] += a - start[t]
        amount[g] += abs(a)
        coef[row] += variables.orientation[t] * a
        cost[row] += a * variables.linear[t]
        outside = max(outside, variables.lower[t] - a, a - variables.upper[t])
    squared_norm = 0.0
    linear = 0.0
    size = 0.0
    for i in range(decision.shape[0]):
        linear += cost[i]
        if coef[i] != 0.0:
            squared_norm += coef[i] * decision[i]
            size += abs(coef[i]) * math.sqrt(abs(diagonal[i]))
    return KKTSums(seen, drift, amount, squared_norm, linear, outside, size)


@njit(cache=True, nogil=True, error_model="numpy")
def kkt_state(sums, n_groups):
    """Put the sums over all variables together."""
    violation, _ = widest_pair(sums.seen, n_groups)
    levels = levels_of(sums.seen, n_groups)[:n_groups]
    outside = sums.outside
    for g in range(n_groups):
        outside = max(outside, abs(sums.drift[g]))
    return KKTState(
        levels,
        violation,
        sums.squared_norm,
        sums.linear,
        outside,
        sums.size,
        sums.drift,
        sums.amount,
    )


@njit(cache=True, nogil=True, error_model="numpy")
def gap(variables, beta, decision, levels, error):
    """``sum_t r_t b_t - min(r_t lower_t, r_t upper_t)`` with r the gradient plus the level.

    Also how much larger it may be where each entry of the decision may be off by its ``error``, and
    the sum of m terms, each rounded twice, by ``m + 1`` times half eps.
    """
    total = 0.0
    doubt = 0.0
    for t in range(beta.shape[0]):
        offset = levels[variables.group[t]] if levels.shape[0] > 0 else 0.0
        residual = variables.orientation[t] * decision[variables.gram_row[t]] + variables.linear[t]
        residual += offset
        off = error[variables.gram_row[t]] + 2.0 * _EPS * (abs(variables.linear[t]) + abs(offset))
        above = beta[t] - variables.lower[t]
        below = variables.upper[t] - beta[t]
        term = max(residual * above, -residual * below, 0.0)
        total += term
        doubt += max((residual + off) * above, (off - residual) * below, 0.0) - term
    doubt += _EPS * (beta.shape[0] + 1) * total  # twice that: totals of partitions are summed, too
    return total, doubt


class Readings(NamedTuple):
    """What the levels of the groups say about a machine, as weights of theirs: see DualProblem."""

    bias_weights: np.ndarray
    margin_weights: np.ndarray
    tube_weights: np.ndarray


class Account(NamedTuple):
    """What is known of a point of a dual problem, all in numbers: see Certificate and Evaluation.

    ``noise`` is the rounding of a decision value at the support vectors, where the margin is not
    fixed; ``size`` is that of :class:`KKTState`, and ``drift`` what sums that are off, or may be by
    rounding, amount to: their drift times their levels.
    """

    primal: float
    dual: float
    gap: float
    relative_gap: float
    rounding: float
    violation: float
    infeasibility: float
    bias: float
    margin: float
    tube: float
    squared_norm: float
    noise: float
    size: float
    drift: float


@njit(cache=True, nogil=True, error_model="numpy")
def weigh(variables, n_groups, readings, beta, start, coef, decision, diagonal, rounding):
    """Account for a point, given its decision ``D = K coef`` in float64.

    ``rounding`` is that of a kernel value (``Gram.rounding``). The formula of the gap is at the top
    of :mod:`maxmargin.certificate`.
    """
    known = kkt_state(kkt_sums(variables, n_groups, beta, start, decision, diagonal), n_groups)
    widen(readings, known.levels)
    error = errors(terms_of(coef), decision, diagonal, known.size, rounding)
    between, doubt = gap(variables, beta, decision, known.levels, error)
    noise = 0.0  # only a margin that is not fixed is compared with it
    if readings.margin_weights.shape[0] > 0:
        total, longest, common = lengths(variables, beta, diagonal)
        noise = noise_of(total, longest, common, known.size)
    return accounted(known, readings, between, doubt, noise)


@njit(cache=True, nogil=True, error_model="numpy")
def weigh_path(variables, n_groups, readings, lower, upper, beta, v, start, diagonal, rounding):
    """Account for a point at each of several costs: boxes, points and scores are (costs, m).

    ``rounding`` is that of the kernel values behind the scores, as of a Gram matrix. Returns the
    relative gap and the KKT violation of each, the latter with the most that rounding may add: that
    of two scores. Where a constraint is violated both are infinite. The third column is the size of
    the decision at variables that cannot move, those of rows held out: its mean absolute value or,
    if smaller, its mean distance from its mean.
    """
    out = np.empty((beta.shape[0], 3))
    decision = np.zeros(diagonal.shape[0])
    for i in range(beta.shape[0]):
        boxed = Boxed(
            variables.gram_row,
            variables.orientation,
            variables.linear,
            lower[i],
            upper[i],
            variables.group,
        )
        coef = np.zeros(diagonal.shape[0])
        for t in range(beta.shape[1]):
            row = variables.gram_row[t]
            coef[row] += variables.orientation[t] * beta[i, t]
            decision[row] = -variables.orientation[t] * (v[i, t] + variables.linear[t])
        fixed = (beta[i], start, coef, decision, diagonal, rounding)
        account = weigh(boxed, n_groups, readings, *fixed)
        error = errors(terms_of(coef), decision, diagonal, account.size, rounding).max()
        out[i, 0] = account.relative_gap
        feasible = account.relative_gap < np.inf
        out[i, 1] = account.violation + 2.0 * error if feasible else np.inf
        fixed_at = np.flatnonzero(lower[i] == upper[i])
        values = decision[variables.gram_row[fixed_at]] + account.bias
        out[i, 2] = np.inf
        if len(values):
            out[i, 2] = np.abs(values).mean()
        if len(values) > 1:
            out[i, 2] = min(out[i, 2], np.abs(values - values.mean()).mean())
    return out


@njit(cache=True, nogil=True, error_model="numpy")
def widen(readings, levels):
    """Move the levels so that a tube is not narrower than nothing: that is rounding."""
    tube = reading(readings.tube_weights, levels, 0.0)
    if tube < 0.0:
        weights = readings.tube_weights
        length = 0.0
        for g in range(levels.shape[0]):
            length += weights[g] * weights[g]
        for g in range(levels.shape[0]):
            levels[g] -= tube * (weights[g] / length)


@njit(cache=True, nogil=True, error_model="numpy")
def accounted(known, readings, between, doubt, noise):
    """Put an account together: a state, and the gap between the objectives with its doubt.

    ``between`` is the gap of a point whose sums are right. Sums that are off by rounding add to its
    doubt. Where they are off by more, the primal is still the objective at w and b,

        primal = dual + between - sum_g level_g drift_g,

    but the dual bounds nothing, and the relative gap is infinite.
    """
    levels = known.levels
    dual = -(0.5 * known.squared_norm + known.linear)
    primal = dual + between
    shift = 0.0
    drift = 0.0
    amount = 1.0
    for g in range(levels.shape[0]):
        shift += levels[g] * known.drift[g]
        drift += (abs(known.drift[g]) + 2.0 * _EPS * known.amount[g]) * abs(levels[g])
    for g in range(known.amount.shape[0]):
        amount += known.amount[g]
    feasible = known.infeasibility <= FEASIBLE * amount
    if feasible:
        doubt += drift
    else:
        primal -= shift
        between = primal - dual
    doubt += _EPS * (abs(primal) + abs(dual))
    return Account(
        primal,
        dual,
        between,
        relative(between + doubt, primal, dual) if feasible else np.inf,
        doubt,
        known.violation,
        known.infeasibility,
        reading(readings.bias_weights, levels, 0.0),
        reading(readings.margin_weights, levels, 1.0),
        reading(readings.tube_weights, levels, 0.0),
        known.squared_norm,
        noise,
        known.size,
        drift,
    )


@njit(cache=True, nogil=True)
def reading(weights, levels, fixed):
    """Read one number off the levels; without weights it is fixed."""
    if weights.shape[0] == 0:
        return fixed
    total = 0.0
    for g in range(levels.shape[0]):
        total += weights[g] * levels[g]
    return total


@njit(cache=True, nogil=True)
def terms_of(coef):
    """Terms of ``K coef``: entries that are not zero."""
    terms = 0.0
    for i in range(coef.shape[0]):
        terms += coef[i] != 0.0
    return terms


@njit(cache=True, nogil=True)
def errors(terms, decision, diagonal, size, rounding):
    """Bound on the rounding of each entry of ``K coef``: of the kernel's values, and of the sum.

    A sum is one of at most ``SUMMED`` terms at a time.
    """
    roundings = rounding + min(terms, SUMMED) + terms / SUMMED + 2.0
    out = np.empty(decision.shape[0])
    for i in range(decision.shape[0]):
        out[i] = _EPS * (roundings * size * math.sqrt(abs(diagonal[i])) + abs(decision[i]))
    return out


@njit(cache=True, nogil=True)
def relative(gap, primal, dual):
    """Gap over the larger objective."""
    scale = max(abs(primal), abs(dual))
    if not gap > 0.0:
        return 0.0
    return gap / scale if scale > 0.0 and gap < np.inf else np.inf


@njit(cache=True, nogil=True)
def lengths(variables, beta, diagonal):
    """Sum of the variables' sizes, largest kernel value of a support vector, and of most rows.

    A few rows with huge values do not count in the latter.
    """
    count = 0
    longest = 0.0
    common = 0.0
    total = 0.0
    for t in range(beta.shape[0]):
        own = abs(diagonal[variables.gram_row[t]])
        total += abs(beta[t])
        if beta[t] != 0.0:
            longest = max(longest, own)
        if variables.upper[t] > variables.lower[t]:
            common = max(common, own)
            count += 1
    for _ in range(_HALVINGS):  # to what most rows are below
        above = 0
        for t in range(beta.shape[0]):
            own = abs(diagonal[variables.gram_row[t]])
            above += variables.upper[t] > variables.lower[t] and own > 0.5 * common
        if above > _FEW * count:
            break
        common *= 0.5
    return total, longest, common


@njit(cache=True, nogil=True)
def noise_of(total, longest, common, size):
    """Rounding of a decision value ``sum_t o_t b_t K_tx`` at the support vectors.

    At least that of most rows of the problem, for support vectors whose own kernel value is zero.
    """
    return RESOLVED * _EPS * max(size * math.sqrt(longest), common * total)
