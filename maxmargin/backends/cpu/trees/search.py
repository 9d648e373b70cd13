"""Tests of one column in one node: a given cut judged, or the best of all cuts found.

A *cut* t sends rows of code <= t to the left. ``judge_*`` leave the statistics of the left side in
``scratch.left`` and return ``S_left, S_right, left, rows on the left``; ``best_*`` return the cut,
or -1 where the limits of the leaves leave none.
"""

from __future__ import annotations

import numpy as np

from maxmargin.backends.compiled import INNER, njit
from maxmargin.backends.cpu.trees.scores import SQUARES, TIE, score, term

NOTHING = 1e-13  # share of a node's weight that is the rounding of its sum


@njit(cache=True, **INNER)
def judge_classes(task, scratch, statistics, n, cut):
    """Judge a cut by the classes on its two sides."""
    criterion, codes, left = task.criterion, scratch.codes, scratch.left
    weighted = len(task.weight) > 0
    n_left, weight_left = np.int64(0), 0.0
    if task.classes.shape[0] == 1:
        a = 0
        for k in range(statistics):
            b = scratch.end[k]
            count = 0
            for i in range(a, b):
                count += codes[i] <= cut
            n_left += count
            left[k] = _weight_left(codes, scratch.weights, a, b, cut) if weighted else count
            weight_left += left[k]
            a = b
    else:
        left[:statistics] = 0.0
        for i in range(n):
            if codes[i] <= cut:
                n_left += 1
                weight = scratch.weights[i] if weighted else 1.0
                weight_left += weight
                for o in range(task.classes.shape[0]):
                    left[scratch.labels[o, i]] += weight
    S_left = S_right = 0.0
    for k in range(statistics):
        S_left += term(criterion, left[k])
        S_right += term(criterion, scratch.total[k] - left[k])
    return S_left, S_right, weight_left, n_left


@njit(cache=True, **INNER)
def judge_values(task, scratch, n, cut):
    """Judge a cut by the sums of the targets on its two sides, which are opposite numbers."""
    codes = scratch.codes
    n_left = np.int64(0)
    for i in range(n):
        n_left += codes[i] <= cut
    weight_left = np.float64(n_left)
    if len(task.weight) > 0:
        weight_left = _weight_left(codes, scratch.weights, 0, n, cut)
    S = 0.0
    for o in range(task.targets.shape[0]):
        S += _weight_left(codes, scratch.values[o], 0, n, cut) ** 2
    return S, S, weight_left, n_left


@njit(cache=True, **INNER)
def _weight_left(codes, weights, a, b, cut):
    s0 = s1 = s2 = s3 = 0.0
    i = a
    while i + 3 < b:
        s0 += weights[i] if codes[i] <= cut else 0.0
        s1 += weights[i + 1] if codes[i + 1] <= cut else 0.0
        s2 += weights[i + 2] if codes[i + 2] <= cut else 0.0
        s3 += weights[i + 3] if codes[i + 3] <= cut else 0.0
        i += 4
    while i < b:
        s0 += weights[i] if codes[i] <= cut else 0.0
        i += 1
    return (s0 + s1) + (s2 + s3)


@njit(cache=True, **INNER)
def possible(criterion, S, weight, outputs):
    """Bring the rounding of a sum that was lowered step by step back to what can be."""
    return min(S, outputs * weight * weight) if criterion == SQUARES else S


@njit(cache=True, **INNER)
def _sort(scratch, n, low, spread):
    """Write the places of a node's rows in the order of their codes into ``scratch.order``."""
    codes, order = scratch.codes, scratch.order
    if spread <= 4 * n and spread < len(scratch.counts):
        counts = scratch.counts
        counts[: spread + 1] = 0
        for i in range(n):
            counts[codes[i] - low + 1] += 1
        for c in range(spread):
            counts[c + 1] += counts[c]
        for i in range(n):
            c = codes[i] - low
            order[counts[c]] = i
            counts[c] += 1
        return
    keys = scratch.keys
    for i in range(n):
        keys[i] = (np.int64(codes[i]) << 32) | i
    if n <= 24:
        for i in range(1, n):
            key = keys[i]
            j = i - 1
            while j >= 0 and keys[j] > key:
                keys[j + 1] = keys[j]
                j -= 1
            keys[j + 1] = key
    else:
        keys[:n].sort()
    for i in range(n):
        order[i] = np.uint32(keys[i] & 0xFFFFFFFF)


@njit(cache=True, **INNER)
def best_classes(task, scratch, statistics, n, low, high, whole, S, rules, scale):
    """Find the best cut of a column for classes: row after row goes to the left, by its code."""
    _sort(scratch, n, low, np.int64(high) - low + 1)
    criterion, codes, order = task.criterion, scratch.codes, scratch.order
    total, left = scratch.total, scratch.left
    outputs, weighted = task.classes.shape[0], len(task.weight) > 0
    left[:statistics] = 0.0
    S_left, S_right, weight_left = 0.0, S, 0.0
    best, cut = -np.inf, np.int64(-1)
    least = max(rules.min_weight_leaf, NOTHING * whole)
    few = rules.min_samples_leaf
    for j in range(n - few):
        i = order[j]
        weight = scratch.weights[i] if weighted else 1.0
        for o in range(outputs):
            k = scratch.labels[o, i]
            after = left[k] + weight
            S_left += term(criterion, after) - term(criterion, left[k])
            rest = max(total[k] - after, 0.0)
            S_right += term(criterion, rest) - term(criterion, total[k] - left[k])
            left[k] = after
        weight_left += weight
        if j + 1 < few or codes[order[j + 1]] == codes[i]:
            continue
        weight_right = whole - weight_left
        if min(weight_left, weight_right) < least:
            continue
        S_right = possible(criterion, S_right, weight_right, outputs)
        found = score(criterion, S_left, S_right, weight_left, weight_right, S, outputs)
        if found > best + scale * TIE:
            best, cut = found, np.int64(codes[i])
    return cut


@njit(cache=True, **INNER)
def best_values(task, scratch, n, low, high, whole, rules, scale):
    """Find the best cut of a column for real targets, in the order of the codes."""
    _sort(scratch, n, low, np.int64(high) - low + 1)
    outputs = task.targets.shape[0]
    codes, order, left = scratch.codes, scratch.order, scratch.left
    weighted = len(task.weight) > 0
    left[:outputs] = 0.0
    weight_left, best, cut = 0.0, -np.inf, np.int64(-1)
    least = max(rules.min_weight_leaf, NOTHING * whole)
    few = rules.min_samples_leaf
    for j in range(n - few):
        i = order[j]
        weight_left += scratch.weights[i] if weighted else 1.0
        S = 0.0
        for o in range(outputs):
            left[o] += scratch.values[o, i]
            S += left[o] * left[o]
        if j + 1 < few or codes[order[j + 1]] == codes[i]:
            continue
        weight_right = whole - weight_left
        if min(weight_left, weight_right) < least:
            continue
        found = score(SQUARES, S, S, weight_left, weight_right, 0.0, outputs)
        if found > best + scale * TIE:
            best, cut = found, np.int64(codes[i])
    return cut
