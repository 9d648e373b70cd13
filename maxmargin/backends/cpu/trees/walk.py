"""Rows go down a tree, several at a time: while one waits for its node, the others move on."""

from __future__ import annotations

import numpy as np

from maxmargin.backends.compiled import njit
from maxmargin.backends.cpu.trees.columns import code_at
from maxmargin.backends.cpu.trees.grow import INNER_NODE, PURE

_TOGETHER = 16  # rows; 4 took 1.3 times as long, 32 as well


@njit(cache=True, nogil=True, error_model="numpy")
def leaves_of(tests, X, leaves):
    """Write the leaf of each row of a dense X into ``leaves``.

    Sides are computed, not branched to: half of the branches would be guessed wrong. A row that has
    arrived makes room for the next one, since ways down are of different length.
    """
    node, row = np.zeros(_TOGETHER, np.uint64), np.zeros(_TOGETHER, np.uint64)
    under_way, following, n = 0, np.uint64(0), np.uint64(len(X))
    while under_way < _TOGETHER and following < n:
        row[under_way] = following
        under_way, following = under_way + 1, following + np.uint64(1)
    while under_way:
        j = 0
        while j < under_way:
            here, i = node[j], row[j]
            left = here + np.uint64(1)
            goes_right = not X[i, np.uint64(tests[here].feature)] <= tests[here].threshold
            there = left + (np.uint64(tests[here].right) - left) * np.uint64(goes_right)
            node[j] = there
            if there == here:
                leaves[i] = here
                node[j] = 0
                if following < n:
                    row[j] = following
                    following += np.uint64(1)
                else:
                    under_way -= 1
                    node[j], row[j] = node[under_way], row[under_way]
            j += 1


@njit(cache=True, nogil=True, error_model="numpy")
def leaves_with_missing(tests, left, X, rows, leaves):
    """Write the leaf of some rows of a dense X, which may be NaN, into ``leaves[rows]``.

    ``left`` says of each node whether missing values go to the left.
    """
    for i in rows:
        node = np.int64(0)
        while tests[node].right != node:
            value = X[i, tests[node].feature]
            goes_left = left[node] == 1 if np.isnan(value) else value <= tests[node].threshold
            node = node + 1 if goes_left else np.int64(tests[node].right)
        leaves[i] = node


@njit(cache=True, nogil=True, error_model="numpy")
def leaves_of_codes(nodes, left, store, rows, leaves):
    """Write the leaf of some rows of the columns that the tree was grown from into ``leaves``.

    ``left`` says of each node whether missing values go to the left; it is empty where none are.
    """
    for i in range(len(rows)):
        node = 0
        while nodes.payload[node] == INNER_NODE:
            f = nodes.tests[node].feature
            code = code_at(store, f, rows[i])
            goes_left = code <= nodes.cuts[node]
            if len(left) > 0:
                value = store.greatest[store.first[f] + code]
                if np.isnan(value) or value == -np.inf:
                    goes_left = left[node] == 1
            node = node + 1 if goes_left else nodes.tests[node].right
        leaves[i] = node


@njit(cache=True, nogil=True, error_model="numpy")
def add_leaves(payload, values, leaves, out):
    """Add the values of each row's leaf to ``out``, of shape (rows, statistics)."""
    for i in range(len(leaves)):
        leaf = payload[np.uint32(leaves[i])]
        if leaf <= PURE:
            out[i, np.uint32(PURE - leaf)] += 1.0
        else:
            for k in range(out.shape[1]):
                out[i, k] += values[np.uint32(leaf), k]
