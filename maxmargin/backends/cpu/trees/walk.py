"""Rows go down a tree, several at a time: while one waits for its node, the others move on."""

from __future__ import annotations

import numpy as np

from maxmargin.backends.compiled import INNER, njit
from maxmargin.backends.cpu.trees.columns import code_at
from maxmargin.backends.cpu.trees.grow import INNER_NODE, PURE

_TOGETHER = 8  # rows; 4 and 16 were slower


@njit(cache=True, **INNER)
def _down(tests, X, begin, at):
    """Let rows begin, begin + 1, ... go down together; ``at`` are their nodes, changed in place."""
    moving = True
    while moving:
        moving = False
        for j in range(_TOGETHER):
            node = at[j]
            test = tests[node]
            following = node + 1 if X[begin + j, test.feature] <= test.threshold else test.right
            moving |= following != node
            at[j] = following


@njit(cache=True, **INNER)
def _down_one(tests, X, i):
    node = 0
    while True:
        test = tests[node]
        following = node + 1 if X[i, test.feature] <= test.threshold else test.right
        if following == node:
            return node
        node = following


@njit(cache=True, nogil=True, error_model="numpy")
def leaves_of(tests, X, leaves):
    """Write the leaf of each row of a dense X into ``leaves``."""
    at = np.zeros(_TOGETHER, np.int64)
    i = 0
    while i + _TOGETHER <= len(X):
        at[:] = 0
        _down(tests, X, i, at)
        for j in range(_TOGETHER):
            leaves[i + j] = at[j]
        i += _TOGETHER
    while i < len(X):
        leaves[i] = _down_one(tests, X, i)
        i += 1


@njit(cache=True, nogil=True, error_model="numpy")
def leaves_of_codes(nodes, store, rows, leaves):
    """Write the leaf of some rows of the columns that the tree was grown from into ``leaves``."""
    for i in range(len(rows)):
        node = 0
        while nodes.payload[node] == INNER_NODE:
            code = code_at(store, nodes.tests[node].feature, rows[i])
            node = node + 1 if code <= nodes.cuts[node] else nodes.tests[node].right
        leaves[i] = node


@njit(cache=True, nogil=True, error_model="numpy")
def add_leaves(payload, values, leaves, out):
    """Add the values of each row's leaf to ``out``, of shape (rows, statistics)."""
    for i in range(len(leaves)):
        leaf = payload[leaves[i]]
        if leaf <= PURE:
            out[i, PURE - leaf] += 1.0
        else:
            for k in range(out.shape[1]):
                out[i, k] += values[leaf, k]
