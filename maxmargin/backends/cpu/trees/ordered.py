"""Search for the best cut of a column by one pass over its rows in order, for any criterion.

Beside the sums of squares and entropies of :mod:`~maxmargin.backends.cpu.trees.search`, these are

    absolute error      score  -(sum_left w |y - median| + sum_right w |y - median|)
    Poisson deviance    score  sum over sides of (sum w y) log(mean y)

and each column can have a monotonic constraint: the mean (or median, or share of the second class)
of the left side must not be above that of the right one for +1, nor below it for -1, and both must
lie between the bounds that the tests above have set. (A test of a column without a constraint may
leave these bounds: the values of its sides are then clipped, as in scikit-learn.) Sums of absolute
deviations of all prefixes come from two Fenwick trees over the ranks of the targets, in O(n log n).

References: Breiman, Friedman, Olshen and Stone, Classification and Regression Trees, 1984, ch. 8;
Fenwick, A new data structure for cumulative frequency tables, 1994; Potharst and Feelders,
Classification trees for problems with monotonicity constraints, 2002.
"""

from __future__ import annotations

import numpy as np

from maxmargin.backends.compiled import INNER, njit
from maxmargin.backends.cpu.trees.scores import ABSOLUTE, POISSON, TIE, decrease, score, term
from maxmargin.backends.cpu.trees.search import NOTHING, _sort, possible


@njit(cache=True, **INNER)
def open_absolute(task, scratch, rows, begin, n, whole):
    """Prepare a node for absolute errors: write the medians of the outputs to ``scratch.total``.

    ``scratch.values`` become the targets in order and ``scratch.labels`` the ranks of the rows.
    Returns the sum of absolute deviations.
    """
    weighted = len(task.weight) > 0
    error = 0.0
    own = np.empty(n)
    for o in range(task.targets.shape[0]):
        for i in range(n):
            own[i] = task.targets[o, rows[begin + i]]
        order = np.argsort(own)
        below, median, found = 0.0, own[order[n - 1]], False
        for r in range(n):
            i = order[r]
            scratch.labels[o, i] = r
            scratch.values[o, r] = own[i]
            below += scratch.weights[i] if weighted else 1.0
            if not found and below >= 0.5 * whole:
                found, median = True, own[i]
                if below == 0.5 * whole and r + 1 < n:
                    median = 0.5 * own[i] + 0.5 * own[order[r + 1]]
        scratch.total[o] = median
        for i in range(n):
            error += abs(own[i] - median) * (scratch.weights[i] if weighted else 1.0)
    return error


@njit(cache=True, **INNER)
def _prefix_errors(task, scratch, n, o, forward, errors, medians):
    """Add the sum of absolute deviations of each prefix of the order to ``errors``.

    Of suffixes where not ``forward``: ``errors[j]`` is then of the rows from place j on. The
    medians are written into ``medians``.
    """
    weighted = len(task.weight) > 0
    ordered, ranks, order = scratch.values[o], scratch.labels[o], scratch.order
    mass, sums = np.zeros(n + 1), np.zeros(n + 1)  # Fenwick trees
    top = 1
    while 2 * top <= n:
        top *= 2
    all_mass, all_sums = 0.0, 0.0
    for step in range(n):
        j = step if forward else n - 1 - step
        i = order[j]
        w = scratch.weights[i] if weighted else 1.0
        r = np.int64(ranks[i])
        wy = w * ordered[r]
        at = r + 1
        while at <= n:
            mass[at] += w
            sums[at] += wy
            at += at & -at
        all_mass += w
        all_sums += wy
        half = 0.5 * all_mass
        low, high, mass_low, sum_low, mass_high = 0, 0, 0.0, 0.0, 0.0
        jump = top
        while jump > 0:
            if low + jump <= n and mass_low + mass[low + jump] < half:
                low += jump
                mass_low += mass[low]
                sum_low += sums[low]
            if high + jump <= n and mass_high + mass[high + jump] <= half:
                high += jump
                mass_high += mass[high]
            jump >>= 1
        low, high = min(low, n - 1), min(high, n - 1)
        m = ordered[low]
        errors[j] += max(2.0 * (m * mass_low - sum_low) + all_sums - m * all_mass, 0.0)
        medians[j] = 0.5 * m + 0.5 * ordered[high]


@njit(cache=True, **INNER)
def poisson_of_node(task, scratch, rows, begin, n, whole):
    """Return the score of a node without a test, and half the deviance from its means."""
    weighted = len(task.weight) > 0
    found, deviance = 0.0, 0.0
    for o in range(task.targets.shape[0]):
        mean = scratch.total[o]
        if mean <= 0.0:
            continue
        found += mean * whole * np.log(mean)
        for i in range(n):
            y = task.targets[o, rows[begin + i]]
            if y > 0.0:
                deviance += y * np.log(y / mean) * (scratch.weights[i] if weighted else 1.0)
    return found, max(deviance, 0.0)


@njit(cache=True, **INNER)
def value_in_bounds(value, lower, upper):
    """Return a node's value, clipped to the bounds of the tests above it."""
    return min(max(value, lower), upper)


@njit(cache=True, **INNER)
def best_ordered(
    task, rules, scratch, statistics, n, low, high, whole, S, scale, direction, bounds, only
):
    """Find the best cut of a column; only the cut ``only`` is tried where that is not negative.

    ``direction`` is +1, -1 or 0; ``bounds`` (2,) are infinite where no column has one. Returns cut,
    score, by how much the test lowers the impurity, and the middle of the sides' values.
    """
    _sort(scratch, n, low, np.int64(high) - low + 1)
    criterion, codes, order = task.criterion, scratch.codes, scratch.order
    classes = task.classes.shape[0]
    outputs, weighted = max(classes, task.targets.shape[0]), len(task.weight) > 0
    total, left = scratch.total, scratch.left
    errors_left, errors_right = np.zeros(0), np.zeros(0)
    medians_left, medians_right = np.zeros(0), np.zeros(0)
    if criterion == ABSOLUTE:
        errors_left, errors_right = np.zeros(n), np.zeros(n)
        medians_left, medians_right = np.zeros(n), np.zeros(n)
        for o in range(outputs):
            _prefix_errors(task, scratch, n, o, True, errors_left, medians_left)
            _prefix_errors(task, scratch, n, o, False, errors_right, medians_right)
    left[:statistics] = 0.0
    S_left, S_right, weight_left = 0.0, S, 0.0
    best, cut, best_fall, middle = -np.inf, np.int64(-1), 0.0, 0.0
    least, few = max(rules.min_weight_leaf, NOTHING * whole), rules.min_samples_leaf
    for j in range(n - few):
        i = order[j]
        weight = scratch.weights[i] if weighted else 1.0
        for o in range(classes):
            k = scratch.labels[o, i]
            after = left[k] + weight
            S_left += term(criterion, after) - term(criterion, left[k])
            rest = max(total[k] - after, 0.0)
            S_right += term(criterion, rest) - term(criterion, total[k] - left[k])
            left[k] = after
        if classes == 0 and criterion != ABSOLUTE:
            for o in range(outputs):
                left[o] += scratch.values[o, i]
        weight_left += weight
        following = codes[order[j + 1]]
        if j + 1 < few or following == codes[i]:
            continue
        if only >= 0 and not codes[i] <= only < following:
            continue
        weight_right = whole - weight_left
        if min(weight_left, weight_right) < least:
            continue
        value_left, value_right = 0.0, 0.0
        possible_here = True
        if classes > 0:
            S_right_here = possible(criterion, S_right, weight_right, outputs)
            found = score(criterion, S_left, S_right_here, weight_left, weight_right, S, outputs)
            fall = decrease(criterion, S_left, S_right_here, weight_left, weight_right, S, outputs)
            if direction != 0:
                for k in range(statistics):
                    if scratch.segment[k] == 1:
                        value_left = left[k] / weight_left
                        value_right = max(total[k] - left[k], 0.0) / weight_right
        elif criterion == ABSOLUTE:
            found = -(errors_left[j] + errors_right[j + 1])
            fall = max(S + found, 0.0) / outputs
            value_left, value_right = medians_left[j], medians_right[j + 1]
        else:
            value_left = total[0] + left[0] / weight_left
            value_right = total[0] - left[0] / weight_right
            if criterion == POISSON:
                found = 0.0
                for o in range(outputs):
                    sum_left = total[o] * weight_left + left[o]
                    sum_right = total[o] * weight_right - left[o]
                    if min(sum_left, sum_right) <= NOTHING * total[o] * whole:
                        possible_here = False  # a side of zeros alone has no finite logarithm
                        break
                    found += sum_left * np.log(sum_left / weight_left)
                    found += sum_right * np.log(sum_right / weight_right)
                fall = max(found - S, 0.0) / outputs
            else:
                squares = 0.0
                for o in range(outputs):
                    squares += left[o] * left[o]
                args = squares, squares, weight_left, weight_right, 0.0, outputs
                found, fall = score(criterion, *args), decrease(criterion, *args)
        if direction != 0 and possible_here:
            in_bounds = bounds[0] <= min(value_left, value_right)
            in_bounds &= max(value_left, value_right) <= bounds[1]
            possible_here = in_bounds and (value_left - value_right) * direction <= 0.0
        if possible_here and found > best + scale * TIE:
            best, cut, best_fall = found, np.int64(codes[i]), fall
            middle = 0.5 * value_left + 0.5 * value_right
    return cut, best, best_fall, middle


@njit(cache=True, **INNER)
def bounds_below(bounds, direction, middle, right, out):
    """Write the bounds of one side of a test into ``out``."""
    out[0], out[1] = bounds[0], bounds[1]
    if direction == (-1 if right else 1):
        out[1] = middle
    elif direction == (1 if right else -1):
        out[0] = middle
