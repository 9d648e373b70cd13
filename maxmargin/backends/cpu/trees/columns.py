"""Columns of a data set as codes, and the codes of some rows.

A column's code is the number of its value among the column's different values, in order, or of the
bin that the value is in. Codes have one, two or four bytes, as many as a column needs; a column of
a sparse matrix may be kept as the rows that differ from its common code.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from maxmargin.backends.compiled import INNER, njit

ONE_BYTE, TWO_BYTES, FOUR_BYTES, SPARSE = 0, 1, 2, 3


class Store(NamedTuple):
    """Codes of all columns, (columns of a kind, rows), and the values that they stand for.

    Attributes
    ----------
    kind, slot : arrays of shape (d,)
        Which of the arrays a column is in, and where.
    listed : int32 array of shape (d,)
        Which of the lists a column has; -1 for none.
    small, medium, large : uint8, uint16 and uint32 arrays of shape (columns of the kind, n)
    begin, rows, codes : arrays
        Lists: list s has ``codes[begin[s]:begin[s+1]]`` at these rows, in order, and its column has
        ``common[s]`` everywhere else. Sparse columns have nothing else; others have one beside
        their codes where few rows differ from the common code.
    first : int64 array of shape (d + 1,)
        Where a column's values begin in ``least`` and ``greatest``, the bounds of each code.
    """

    kind: np.ndarray
    slot: np.ndarray
    listed: np.ndarray
    small: np.ndarray
    medium: np.ndarray
    large: np.ndarray
    begin: np.ndarray
    rows: np.ndarray
    codes: np.ndarray
    common: np.ndarray
    first: np.ndarray
    least: np.ndarray
    greatest: np.ndarray


@njit(cache=True, **INNER)
def take(store, f, rows, begin, n, where, codes):
    """Write the codes of column f at ``rows[begin:begin+n]`` into ``codes``.

    Returns the least and the greatest. ``where`` says at which place of ``rows`` a row is.
    """
    kind, slot = store.kind[f], store.slot[f]
    if kind == ONE_BYTE:
        return _gather(store.small[slot], rows, begin, n, codes)
    if kind == TWO_BYTES:
        return _gather(store.medium[slot], rows, begin, n, codes)
    if kind == FOUR_BYTES:
        return _gather(store.large[slot], rows, begin, n, codes)
    return gather_listed(
        store.begin,
        store.rows,
        store.codes,
        store.common,
        store.listed[f],
        rows,
        begin,
        n,
        where,
        codes,
    )


@njit(cache=True, **INNER)
def _gather(column, rows, begin, n, codes):
    for i in range(n):
        codes[i] = column[rows[begin + i]]
    low = high = codes[0]
    for i in range(1, n):  # a loop of its own, eight at a time
        low, high = min(low, codes[i]), max(high, codes[i])
    return low, high


@njit(cache=True, **INNER)
def gather_listed(list_begin, list_rows, list_codes, common, s, rows, begin, n, where, codes):
    """Look every row up in a list, or every entry of the list among the rows; as :func:`take`."""
    first, last = list_begin[s], list_begin[s + 1]
    usual = np.int32(common[s])
    steps, entries = 1, last - first
    while (np.int64(1) << steps) <= entries:
        steps += 1
    if n * steps < entries:
        for i in range(n):
            codes[i] = _look_up(list_rows, list_codes, first, last, rows[begin + i], usual)
    else:
        codes[:n] = usual
        for p in range(first, last):
            i = where[list_rows[p]] - begin
            if 0 <= i < n:
                codes[i] = list_codes[p]
    low = high = codes[0]
    for i in range(1, n):
        low, high = min(low, codes[i]), max(high, codes[i])
    return low, high


@njit(cache=True, **INNER)
def _look_up(list_rows, list_codes, first, last, row, usual):
    a, b = first, last
    while a < b:
        middle = (a + b) >> 1
        if list_rows[middle] < row:
            a = middle + 1
        else:
            b = middle
    return np.int32(list_codes[a]) if a < last and list_rows[a] == row else usual


@njit(cache=True, **INNER)
def code_at(store, f, row):
    """Return the code of column f at a row."""
    kind, slot = store.kind[f], store.slot[f]
    if kind == ONE_BYTE:
        return np.int32(store.small[slot, row])
    if kind == TWO_BYTES:
        return np.int32(store.medium[slot, row])
    if kind == FOUR_BYTES:
        return np.int32(store.large[slot, row])
    s = store.listed[f]
    first, last, usual = store.begin[s], store.begin[s + 1], np.int32(store.common[s])
    return _look_up(store.rows, store.codes, first, last, row, usual)


@njit(cache=True, nogil=True, error_model="numpy")
def encode(values, greatest, codes):
    """Write into ``codes`` the first bin whose greatest value is not below each of the values."""
    bins = len(greatest)
    for i in range(len(values)):
        value = values[i]
        a, b = 0, bins - 1
        while a < b:
            middle = (a + b) >> 1
            if greatest[middle] < value:
                a = middle + 1
            else:
                b = middle
        codes[i] = a
