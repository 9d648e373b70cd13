"""The test of one column that leaves the least weight on the wrong side.

For weights ``w_i`` and a cut t of column f, the rows of code <= t get the class that weighs most
among them, and so do the others:

    right(f, t) = max_k sum_{i left, y_i = k} w_i + max_k sum_{i right, y_i = k} w_i

A table of a column's codes has the weights of each class; of two classes, their difference is
enough. All cuts are looked at in one pass over the table.
"""

from __future__ import annotations

import numpy as np

from maxmargin.backends.compiled import INNER, njit
from maxmargin.backends.cpu.trees.columns import ONE_BYTE, TWO_BYTES

TIE = 1e-10  # share of all weight within which two tests are equally good
_LANES = 4  # copies of a table: rows of one code do not wait for each other


@njit(cache=True, nogil=True, error_model="numpy")
def best_test(store, index, weight, total, first, last, best, found, table, left):
    """Look at the columns from first to last for a test that is right on more weight than best.

    With two classes, weights of the first one are negative. Changes ``found``, feature, cut, class
    on the left and on the right, and as scratch ``table``, of length codes times four or the number
    of classes, and ``left``; returns the weight that is right.
    """
    classes = len(total)
    whole = total.sum()
    for f in range(first, last):
        codes = store.first[f + 1] - store.first[f]
        if codes < 2:
            continue
        if classes == 2:
            _signed_table(store, f, weight, codes, total[1] - total[0], table)
            best = _scan_signed(table, codes, total, whole, f, best, found)
        else:
            _table(store, f, index, weight, codes, total, table)
            best = _scan(table, codes, total, whole, f, best, found, left)
    return best


@njit(cache=True, nogil=True, error_model="numpy")
def tables_of(store, index, weight, total, tables, room):
    """Write the tables of all columns into ``tables``, a row for each code: those of some rows.

    They have the weight of each class, or with two classes the difference of their weights, and are
    to be added to those of other rows. ``room`` is scratch of four numbers a code.
    """
    classes = len(total)
    for f in range(len(store.kind)):
        begin, end = store.first[f], store.first[f + 1]
        codes = end - begin
        if codes < 2:
            continue
        if classes == 2:
            _signed_table(store, f, weight, codes, total[1] - total[0], room)
            tables[begin:end, 0] = room[:codes]
        else:
            _table(store, f, index, weight, codes, total, tables[begin:end].reshape(-1))


@njit(cache=True, nogil=True, error_model="numpy")
def best_of_tables(first, tables, total, best, found, left):
    """Look at the tables of all columns for a test that is right on more weight than best.

    As :func:`best_test`, of the sums of tables of many rows.
    """
    classes = len(total)
    whole = total.sum()
    for f in range(len(first) - 1):
        begin, end = first[f], first[f + 1]
        codes = end - begin
        if codes < 2:
            continue
        table = tables[begin:end].reshape(-1)
        if classes == 2:
            best = _scan_signed(table, codes, total, whole, f, best, found)
        else:
            best = _scan(table, codes, total, whole, f, best, found, left)
    return best


@njit(cache=True, **INNER)
def _signed_table(store, f, weight, codes, difference, table):
    """Weight of the second class less that of the first, by code."""
    kind, slot, listed = store.kind[f], store.slot[f], store.listed[f]
    if listed >= 0:
        table[:codes] = 0.0
        others = 0.0
        for p in range(store.begin[listed], store.begin[listed + 1]):
            value = weight[store.rows[p]]
            table[store.codes[p]] += value
            others += value
        table[store.common[listed]] += difference - others
    elif kind == ONE_BYTE:
        _add_signed(store.small[slot], weight, codes, table)
    elif kind == TWO_BYTES:
        _add_signed(store.medium[slot], weight, codes, table)
    else:
        _add_signed(store.large[slot], weight, codes, table)


@njit(cache=True, **INNER)
def _add_signed(column, weight, codes, table):
    table[: _LANES * codes] = 0.0
    n = len(column)
    i = 0
    while i + 3 < n:
        table[column[i]] += weight[i]
        table[column[i + 1] + codes] += weight[i + 1]
        table[column[i + 2] + 2 * codes] += weight[i + 2]
        table[column[i + 3] + 3 * codes] += weight[i + 3]
        i += 4
    while i < n:
        table[column[i]] += weight[i]
        i += 1
    for c in range(codes):
        table[c] = (table[c] + table[c + codes]) + (table[c + 2 * codes] + table[c + 3 * codes])


@njit(cache=True, **INNER)
def _scan_signed(table, codes, total, whole, f, best, found):
    difference = total[1] - total[0]
    below = 0.0
    for c in range(codes - 1):
        below += table[c]
        right = 0.5 * (whole + abs(below) + abs(difference - below))
        if right > best + TIE * whole:
            best = right
            found[0], found[1] = f, c
            found[2] = 1 if below > 0.0 else 0
            found[3] = 1 if difference - below > 0.0 else 0
    return best


@njit(cache=True, **INNER)
def _table(store, f, index, weight, codes, total, table):
    """Weight of each class, by code."""
    kind, slot, classes = store.kind[f], store.slot[f], len(total)
    listed = store.listed[f]
    table[: codes * classes] = 0.0
    if listed >= 0:
        common = np.int64(store.common[listed]) * classes
        for k in range(classes):
            table[common + k] += total[k]
        for p in range(store.begin[listed], store.begin[listed + 1]):
            row = store.rows[p]
            table[np.int64(store.codes[p]) * classes + index[row]] += weight[row]
            table[common + index[row]] -= weight[row]
    elif kind == ONE_BYTE:
        _add(store.small[slot], index, weight, classes, table)
    elif kind == TWO_BYTES:
        _add(store.medium[slot], index, weight, classes, table)
    else:
        _add(store.large[slot], index, weight, classes, table)


@njit(cache=True, **INNER)
def _add(column, index, weight, classes, table):
    for i in range(len(column)):
        table[np.int64(column[i]) * classes + index[i]] += weight[i]


@njit(cache=True, **INNER)
def _scan(table, codes, total, whole, f, best, found, left):
    classes = len(total)
    left[:] = 0.0
    for c in range(codes - 1):
        most_left = most_right = -1.0
        here = there = 0
        for k in range(classes):
            left[k] += table[c * classes + k]
            if left[k] > most_left:
                most_left, here = left[k], k
            rest = total[k] - left[k]
            if rest > most_right:
                most_right, there = rest, k
        if most_left + most_right > best + TIE * whole:
            best = most_left + most_right
            found[0], found[1], found[2], found[3] = f, c, here, there
    return best
