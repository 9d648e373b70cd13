"""The best cut of a column by a table: statistics of each code first, then one way over the codes.

No code is copied and nothing is sorted. A table has rows (codes) of so many numbers: the weight of
each class, or the weight and the sum of each output. Where a column has a list of the rows that
differ from its common code, only those are looked at; the rest is what is left of the node's total.
"""

from __future__ import annotations

import numpy as np

from maxmargin.backends.compiled import INNER, njit
from maxmargin.backends.cpu.trees.columns import FOUR_BYTES, ONE_BYTE, SPARSE
from maxmargin.backends.cpu.trees.scores import SQUARES, TIE, score, term
from maxmargin.backends.cpu.trees.search import NOTHING, possible

CONSTANT, NONE = -2, -1  # in place of a cut
_LANES = 4  # copies of a table: rows of one code do not wait for each other


@njit(cache=True, **INNER)
def fits(store, f, n, numbers, room):
    """Whether a table of a column is no longer than the node's rows, and fits into its room."""
    size = (store.first[f + 1] - store.first[f]) * numbers
    in_list = store.kind[f] == SPARSE and not by_list(store, f, n)
    return size <= min(n, room // _LANES) and store.kind[f] != FOUR_BYTES and not in_list


@njit(cache=True, **INNER)
def by_list(store, f, n):
    """Whether the list of a column is shorter than the node."""
    s = store.listed[f]
    return s >= 0 and store.begin[s + 1] - store.begin[s] <= n


@njit(cache=True, **INNER)
def table_of_classes(store, task, scratch, f, rows, where, begin, n, statistics, counting):
    """Add up the weight of each segment at each code of column f; returns the number of codes."""
    codes = np.int64(store.first[f + 1] - store.first[f])
    size = codes * statistics
    table, weighted = scratch.table, len(task.weight) > 0
    if by_list(store, f, n):
        table[:size] = 0.0
        s = store.listed[f]
        common = np.int64(store.common[s])
        if counting:
            scratch.counts[:codes] = 0
        inside = np.int64(0)
        for p in range(store.begin[s], store.begin[s + 1]):
            row = store.rows[p]
            i = where[row] - begin
            if 0 <= i < n:
                inside += 1
                code = np.int64(store.codes[p])
                weight = task.weight[row] if weighted else 1.0
                table[code * statistics + scratch.place[task.classes[0, row]]] += weight
                if counting:
                    scratch.counts[code] += 1
        for k in range(statistics):
            rest = scratch.total[k]
            for c in range(codes):
                rest -= table[c * statistics + k]
            table[common * statistics + k] += max(rest, 0.0) if inside < n else 0.0
        if counting:
            scratch.counts[common] += n - inside
        return codes
    slot = store.slot[f]
    table[: _LANES * size] = 0.0
    if store.kind[f] == ONE_BYTE:
        _fill_classes(store.small[slot], scratch, rows, begin, statistics, size, weighted)
    else:
        _fill_classes(store.medium[slot], scratch, rows, begin, statistics, size, weighted)
    for j in range(size):
        table[j] = (table[j] + table[j + size]) + (table[j + 2 * size] + table[j + 3 * size])
    if counting:
        _count(store, f, scratch.counts, rows, begin, n, codes)
    return codes


@njit(cache=True, **INNER)
def _fill_classes(column, scratch, rows, begin, statistics, size, weighted):
    table, weights = scratch.table, scratch.weights
    a = np.int64(0)
    for k in range(statistics):
        b = np.int64(scratch.end[k])
        i = a
        if weighted:
            while i + 3 < b:
                at = begin + i
                table[column[rows[at]] * statistics + k] += weights[i]
                table[column[rows[at + 1]] * statistics + k + size] += weights[i + 1]
                table[column[rows[at + 2]] * statistics + k + 2 * size] += weights[i + 2]
                table[column[rows[at + 3]] * statistics + k + 3 * size] += weights[i + 3]
                i += 4
        else:
            while i + 3 < b:
                at = begin + i
                table[column[rows[at]] * statistics + k] += 1.0
                table[column[rows[at + 1]] * statistics + k + size] += 1.0
                table[column[rows[at + 2]] * statistics + k + 2 * size] += 1.0
                table[column[rows[at + 3]] * statistics + k + 3 * size] += 1.0
                i += 4
        while i < b:
            table[column[rows[begin + i]] * statistics + k] += weights[i] if weighted else 1.0
            i += 1
        a = b


@njit(cache=True, **INNER)
def _count(store, f, counts, rows, begin, n, codes):
    """Count the rows of each code."""
    counts[:codes] = 0
    if store.kind[f] == ONE_BYTE:
        _count_in(store.small[store.slot[f]], counts, rows, begin, n)
    else:
        _count_in(store.medium[store.slot[f]], counts, rows, begin, n)


@njit(cache=True, **INNER)
def _count_in(column, counts, rows, begin, n):
    for i in range(begin, begin + n):
        counts[column[rows[i]]] += 1


@njit(cache=True, **INNER)
def _occupied(table, codes, numbers, looked_at):
    """Return the first and the last code with weight among the first numbers of its row."""
    low, high = codes, -1
    for c in range(codes):
        for k in range(looked_at):
            if table[c * numbers + k] > 0.0:
                low, high = min(low, c), c
                break
    return low, high


@njit(cache=True, **INNER)
def scan_classes(task, scratch, codes, statistics, n, whole, S, rules, scale):
    """Find the best cut in a table; returns it with S_left, S_right and the weight on the left."""
    criterion, table = task.criterion, scratch.table
    total, left = scratch.total, scratch.left
    counted = len(task.weight) > 0 and rules.min_samples_leaf > 1
    few = rules.min_samples_leaf
    low, high = _occupied(table, codes, statistics, statistics)
    if low == high:
        return np.int64(CONSTANT), 0.0, 0.0, 0.0
    left[:statistics] = 0.0
    S_left, S_right, weight_left, n_left = 0.0, S, 0.0, np.int64(0)
    best, cut = -np.inf, np.int64(NONE)
    least = max(rules.min_weight_leaf, NOTHING * whole)
    for c in range(low, high):
        moved = 0.0
        for k in range(statistics):
            weight = table[c * statistics + k]
            if weight > 0.0:
                after = left[k] + weight
                S_left += term(criterion, after) - term(criterion, left[k])
                rest = max(total[k] - after, 0.0)
                S_right += term(criterion, rest) - term(criterion, total[k] - left[k])
                left[k] = after
                moved += weight
        if moved == 0.0:
            continue
        weight_left += moved
        n_left += scratch.counts[c] if counted else np.int64(moved)
        weight_right = whole - weight_left
        if min(weight_left, weight_right) < least:
            continue
        if few > 1 and min(n_left, n - n_left) < few:
            continue
        S_right = possible(criterion, S_right, weight_right, 1)
        found = score(criterion, S_left, S_right, weight_left, weight_right, S, 1)
        if found > best + scale * TIE:
            best, cut = found, np.int64(c)
    if cut < 0:
        return cut, 0.0, 0.0, 0.0
    S_left = S_right = weight_left = 0.0  # once more, without what steps add to the rounding
    for k in range(statistics):
        own = 0.0
        for c in range(low, cut + 1):
            own += table[c * statistics + k]
        S_left += term(criterion, own)
        S_right += term(criterion, max(total[k] - own, 0.0))
        weight_left += own
    return cut, S_left, S_right, weight_left


@njit(cache=True, **INNER)
def table_of_values(store, task, scratch, f, rows, where, begin, n, whole, counting):
    """Add up weight and targets at each code; returns the number of codes.

    A row of the table is the weight and the sums of the outputs.
    """
    codes = np.int64(store.first[f + 1] - store.first[f])
    outputs = task.targets.shape[0]
    numbers = outputs + 1
    size = codes * numbers
    table, weighted = scratch.table, len(task.weight) > 0
    if by_list(store, f, n):
        table[:size] = 0.0
        s = store.listed[f]
        common = np.int64(store.common[s])
        if counting:
            scratch.counts[:codes] = 0
        inside = np.int64(0)
        for p in range(store.begin[s], store.begin[s + 1]):
            i = where[store.rows[p]] - begin
            if 0 <= i < n:
                inside += 1
                code = np.int64(store.codes[p])
                table[code * numbers] += scratch.weights[i] if weighted else 1.0
                for o in range(outputs):
                    table[code * numbers + o + 1] += scratch.values[o, i]
                if counting:
                    scratch.counts[code] += 1
        for k in range(numbers):  # the values of a node are apart from its mean: their sum is zero
            rest = 0.0 if k else whole
            for c in range(codes):
                rest -= table[c * numbers + k]
            if inside < n:
                table[common * numbers + k] += rest if k else max(rest, NOTHING * whole)
        if counting:
            scratch.counts[common] += n - inside
        return codes
    slot = store.slot[f]
    table[: _LANES * size] = 0.0
    if store.kind[f] == ONE_BYTE:
        _fill_values(store.small[slot], scratch, rows, begin, n, outputs, size, weighted)
    else:
        _fill_values(store.medium[slot], scratch, rows, begin, n, outputs, size, weighted)
    for j in range(size):
        table[j] = (table[j] + table[j + size]) + (table[j + 2 * size] + table[j + 3 * size])
    if counting:
        _count(store, f, scratch.counts, rows, begin, n, codes)
    return codes


@njit(cache=True, **INNER)
def _fill_values(column, scratch, rows, begin, n, outputs, size, weighted):
    table, weights, values = scratch.table, scratch.weights, scratch.values
    numbers, lane = outputs + 1, np.int64(0)
    for i in range(n):
        at = column[rows[begin + i]] * numbers + lane
        table[at] += weights[i] if weighted else 1.0
        for o in range(outputs):
            table[at + o + 1] += values[o, i]
        lane = np.int64(0) if lane == 3 * size else lane + size


@njit(cache=True, **INNER)
def scan_values(task, scratch, codes, n, whole, rules, scale):
    """Find the best cut in a table of weights and sums; as :func:`scan_classes`."""
    table, left = scratch.table, scratch.left
    outputs = task.targets.shape[0]
    numbers, few = outputs + 1, rules.min_samples_leaf
    counted = len(task.weight) > 0 and few > 1
    low, high = _occupied(table, codes, numbers, 1)
    if low == high:
        return np.int64(CONSTANT), 0.0, 0.0, 0.0
    left[:outputs] = 0.0
    weight_left, n_left = 0.0, np.int64(0)
    best, cut, S_best, left_best = -np.inf, np.int64(NONE), 0.0, 0.0
    least = max(rules.min_weight_leaf, NOTHING * whole)
    for c in range(low, high):
        weight = table[c * numbers]
        if weight <= 0.0:
            continue
        weight_left += weight
        n_left += scratch.counts[c] if counted else np.int64(weight)
        S = 0.0
        for o in range(outputs):
            left[o] += table[c * numbers + o + 1]
            S += left[o] * left[o]
        weight_right = whole - weight_left
        if min(weight_left, weight_right) < least:
            continue
        if few > 1 and min(n_left, n - n_left) < few:
            continue
        found = score(SQUARES, S, S, weight_left, weight_right, 0.0, outputs)
        if found > best + scale * TIE:
            best, cut, S_best, left_best = found, np.int64(c), S, weight_left
    return cut, S_best, S_best, left_best
