"""Sums over the rows of many nodes at once: what a tree that grows level by level needs of them.

Rows may be of many places; their sums are added up, and the best test of a node is found from these
(:func:`best_of_node`). ``at`` says which of the open nodes each row is in, -1 for none of them.
"""

from __future__ import annotations

import numpy as np

from maxmargin.backends.compiled import INNER, njit
from maxmargin.backends.cpu.trees.columns import ONE_BYTE, SPARSE, TWO_BYTES, code_at
from maxmargin.backends.cpu.trees.draws import mixed, next_state
from maxmargin.backends.cpu.trees.grow import installed
from maxmargin.backends.cpu.trees.node import Scratch
from maxmargin.backends.cpu.trees.scores import TIE, decrease, impurity, scale, score, term
from maxmargin.backends.cpu.trees.search import NOTHING
from maxmargin.backends.cpu.trees.tables import CONSTANT, scan_classes, scan_values

LARGEST = np.int32(2**31 - 1)


@njit(cache=True, nogil=True, error_model="numpy")
def add_codes(store, at, entries, weighted, tables, counts, sums, sizes):
    """Add what each row has, ``entries`` (n, numbers), to the table of its node at each code.

    The first of the numbers is its weight.

    ``tables`` are of shape (nodes, codes of all columns, numbers), and where rows are weighted
    ``counts`` (nodes, codes) have how many they are. ``sums`` (nodes, numbers) and ``sizes``
    (nodes,) are those of all rows of a node.
    """
    numbers = entries.shape[1]
    for i in range(len(at)):
        if at[i] >= 0:
            sizes[at[i]] += 1
            for k in range(numbers):
                sums[at[i], k] += entries[i, k]
    for f in range(len(store.kind)):
        first, kind, s = store.first[f], store.kind[f], store.listed[f]
        if store.first[f + 1] - first < 2:
            continue
        if s >= 0:
            _add_list(store, s, first, at, entries, weighted, tables, counts, sums, sizes)
        elif kind == ONE_BYTE:
            _add(store.small[store.slot[f]], first, at, entries, weighted, tables, counts)
        elif kind == TWO_BYTES:
            _add(store.medium[store.slot[f]], first, at, entries, weighted, tables, counts)
        else:
            _add(store.large[store.slot[f]], first, at, entries, weighted, tables, counts)


@njit(cache=True, **INNER)
def _add(column, first, at, entries, weighted, tables, counts):
    numbers = entries.shape[1]
    for i in range(len(at)):
        a = at[i]
        if a < 0:
            continue
        c = first + column[i]
        for k in range(numbers):
            tables[a, c, k] += entries[i, k]
        if weighted:
            counts[a, c] += 1


@njit(cache=True, **INNER)
def _add_list(store, s, first, at, entries, weighted, tables, counts, sums, sizes):
    """Add the rows of a list, and what is left of the node to the common code."""
    numbers = entries.shape[1]
    inside = np.zeros(len(sizes), np.int64)
    listed = np.zeros(sums.shape)
    for p in range(store.begin[s], store.begin[s + 1]):
        row = store.rows[p]
        a = at[row]
        if a < 0:
            continue
        inside[a] += 1
        c = first + store.codes[p]
        for k in range(numbers):
            tables[a, c, k] += entries[row, k]
            listed[a, k] += entries[row, k]
        if weighted:
            counts[a, c] += 1
    common = first + store.common[s]
    for a in range(len(sizes)):
        if inside[a] < sizes[a]:
            for k in range(numbers):
                rest = sums[a, k] - listed[a, k]
                tables[a, common, k] += rest if k else max(rest, NOTHING * sums[a, k])
            if weighted:
                counts[a, common] += sizes[a] - inside[a]


@njit(cache=True, nogil=True, error_model="numpy")
def add_labels(store, at, labels, weight, tables, counts, sums, sizes):
    """As :func:`add_codes` for classes: a row has its weight in one of the numbers."""
    weighted = len(weight) > 0
    rows = np.zeros(sums.shape, np.int64)  # of each class: one may have none of the common code
    for i in range(len(at)):
        if at[i] >= 0:
            sizes[at[i]] += 1
            rows[at[i], labels[i]] += 1
            sums[at[i], labels[i]] += weight[i] if weighted else 1.0
    for f in range(len(store.kind)):
        first, kind, s = store.first[f], store.kind[f], store.listed[f]
        if store.first[f + 1] - first < 2:
            continue
        if s >= 0:
            _label_list(store, s, first, at, labels, weight, tables, counts, sums, rows)
        elif kind == ONE_BYTE:
            _label(store.small[store.slot[f]], first, at, labels, weight, tables, counts)
        elif kind == TWO_BYTES:
            _label(store.medium[store.slot[f]], first, at, labels, weight, tables, counts)
        else:
            _label(store.large[store.slot[f]], first, at, labels, weight, tables, counts)


@njit(cache=True, **INNER)
def _label(column, first, at, labels, weight, tables, counts):
    weighted = len(weight) > 0
    for i in range(len(at)):
        a = at[i]
        if a < 0:
            continue
        c = first + column[i]
        if weighted:
            tables[a, c, labels[i]] += weight[i]
            counts[a, c] += 1
        else:
            tables[a, c, labels[i]] += 1.0


@njit(cache=True, **INNER)
def _label_list(store, s, first, at, labels, weight, tables, counts, sums, rows):
    weighted = len(weight) > 0
    listed, others = np.zeros(sums.shape), np.zeros(sums.shape, np.int64)
    for p in range(store.begin[s], store.begin[s + 1]):
        row = store.rows[p]
        a = at[row]
        if a < 0:
            continue
        w = weight[row] if weighted else 1.0
        c, k = first + store.codes[p], labels[row]
        tables[a, c, k] += w
        listed[a, k] += w
        others[a, k] += 1
        if weighted:
            counts[a, c] += 1
    common = first + store.common[s]
    for a in range(sums.shape[0]):
        for k in range(sums.shape[1]):
            left = rows[a, k] - others[a, k]
            if left > 0:
                tables[a, common, k] += max(sums[a, k] - listed[a, k], 0.0)
                if weighted:
                    counts[a, common] += left


@njit(cache=True, nogil=True, error_model="numpy")
def best_of_node(first, tables, counts, total, whole, n, squares, task, rules, scratch, order):
    """Find the best test of a node from the tables of all its rows, as the growth by search does.

    ``tables`` (codes, numbers) and ``counts`` (codes,) are of all columns; ``order`` is how columns
    are tried, as many that are not constant as the rules say. Returns feature, cut, and by how much
    the test lowers the impurity; feature -1 for none.
    """
    classes = task.classes.shape[0] > 0
    outputs = max(task.classes.shape[0], task.targets.shape[0])
    statistics = len(total)
    S, scale_here = 0.0, squares
    if classes:
        for k in range(statistics):
            scratch.total[k] = total[k]
            S += term(task.criterion, total[k])
        scale_here = scale(task.criterion, S, whole, outputs)
    best, best_feature, best_cut, best_fall = -np.inf, np.int64(-1), np.int64(-1), 0.0
    tried = 0
    for f in order:
        begin, end = first[f], first[f + 1]
        codes = end - begin
        if codes < 2:
            continue
        if tried == rules.max_features:
            break
        here = Scratch(
            scratch.codes,
            scratch.order,
            scratch.keys,
            scratch.weights,
            scratch.labels,
            scratch.values,
            scratch.total,
            scratch.left,
            scratch.segment,
            scratch.end,
            scratch.place,
            tables[begin:end].reshape(-1),
            counts[begin:end] if len(counts) > 0 else scratch.counts,
        )
        if classes:
            cut, S_left, S_right, left = scan_classes(
                task, here, codes, statistics, n, whole, S, rules, scale_here
            )
        else:
            cut, S_left, S_right, left = scan_values(task, here, codes, n, whole, rules, scale_here)
        if cut == CONSTANT:
            continue
        tried += 1
        right = whole - left
        if cut < 0 or min(left, right) < rules.min_weight_leaf or min(left, right) <= 0.0:
            continue
        found = score(task.criterion, S_left, S_right, left, right, S, outputs)
        tie = TIE * scale_here
        if found > best + tie or (found > best - tie and f < best_feature):
            best, best_feature, best_cut = found, np.int64(f), np.int64(cut)
            best_fall = decrease(task.criterion, S_left, S_right, left, right, S, outputs)
    return best_feature, best_cut, best_fall


# -- random tests --------------------------------------------------------------------------------


@njit(cache=True, nogil=True, error_model="numpy")
def spans(store, at, low, high):
    """Least and greatest code of each column among the rows of each node, (nodes, columns)."""
    sizes = np.zeros(len(low), np.int64)
    for i in range(len(at)):
        if at[i] >= 0:
            sizes[at[i]] += 1
    low[:], high[:] = LARGEST, -1
    for f in range(len(store.kind)):
        kind = store.kind[f]
        if kind == ONE_BYTE:
            _span(store.small[store.slot[f]], at, low, high, f)
        elif kind == TWO_BYTES:
            _span(store.medium[store.slot[f]], at, low, high, f)
        elif kind == SPARSE:
            s = store.listed[f]
            inside = np.zeros(len(low), np.int64)
            for p in range(store.begin[s], store.begin[s + 1]):
                a = at[store.rows[p]]
                if a >= 0:
                    inside[a] += 1
                    code = np.int32(store.codes[p])
                    low[a, f], high[a, f] = min(low[a, f], code), max(high[a, f], code)
            common = np.int32(store.common[s])
            for a in range(len(low)):
                if inside[a] < sizes[a]:
                    low[a, f], high[a, f] = min(low[a, f], common), max(high[a, f], common)
        else:
            _span(store.large[store.slot[f]], at, low, high, f)


@njit(cache=True, **INNER)
def _span(column, at, low, high, f):
    for i in range(len(at)):
        a = at[i]
        if a >= 0:
            code = np.int32(column[i])
            if code < low[a, f]:
                low[a, f] = code
            if code > high[a, f]:
                high[a, f] = code


@njit(cache=True, nogil=True, error_model="numpy")
def sides(store, at, features, cuts, labels, entries, weight, sums, sizes, nearest):
    """Sums over the two sides of some tests of each node.

    ``features`` and ``cuts`` are (nodes, tests), feature -1 for none. ``sums`` become (nodes,
    tests, 2, numbers): weights of the classes by ``labels``, or sums of ``entries``; ``sizes`` how
    many rows these are, ``nearest`` the greatest code on the left and the least on the right.
    """
    classes, weighted = len(labels) > 0, len(weight) > 0
    nearest[:, :, 0], nearest[:, :, 1] = -1, LARGEST
    for i in range(len(at)):
        a = at[i]
        if a < 0:
            continue
        for j in range(features.shape[1]):
            f = features[a, j]
            if f < 0:
                break
            code = code_at(store, f, i)
            side = np.int64(code > cuts[a, j])
            sizes[a, j, side] += 1
            if side:
                nearest[a, j, 1] = min(nearest[a, j, 1], code)
            else:
                nearest[a, j, 0] = max(nearest[a, j, 0], code)
            if classes:
                sums[a, j, side, labels[i]] += weight[i] if weighted else 1.0
            else:
                for k in range(entries.shape[1]):
                    sums[a, j, side, k] += entries[i, k]


# -- one node, for who is not compiled -----------------------------------------------------------


@njit(cache=True, nogil=True, error_model="numpy")
def sum_of_classes(criterion, weights):
    """Return S of the weights of classes, and the impurity."""
    S, whole = 0.0, 0.0
    for k in range(len(weights)):
        S += term(criterion, weights[k])
        whole += weights[k]
    return S, impurity(criterion, S, whole, 1) if whole > 0.0 else 0.0


@njit(cache=True, nogil=True, error_model="numpy")
def judged(criterion, S_left, S_right, left, right, S, outputs):
    """Return the score of a test, and by how much it lowers the impurity."""
    args = criterion, S_left, S_right, left, right, S, outputs
    return score(*args), decrease(*args)


@njit(cache=True, nogil=True, error_model="numpy")
def placed_test(least, greatest, first, value, below_cut, above_cut):
    """Return cut and threshold of a test at a value; see ``installed``."""
    return installed(least, greatest, first, value, below_cut, above_cut)


@njit(cache=True, nogil=True, error_model="numpy")
def two_seeds(state):
    """Return the seeds of the two sides of a node that has this one."""
    left = next_state(state)
    return mixed(left), mixed(next_state(left))
