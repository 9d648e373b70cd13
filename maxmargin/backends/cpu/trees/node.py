"""A node that is looked at: its rows' weights, classes or values, and the statistics of them.

Rows of one output are grouped by their class, and a test keeps them so: a class is a *segment* of
the node, and to count it on one side of a test is a loop without a single table.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from maxmargin.backends.compiled import INNER, njit
from maxmargin.backends.cpu.trees.scores import term


class Task(NamedTuple):
    """What is learned, with the weights of the rows.

    Attributes
    ----------
    criterion : int
        Of :mod:`~maxmargin.backends.cpu.trees.scores`.
    classes : int32 array of shape (n_outputs, n), or (0, 0)
        Class of each row; classes of output o begin at ``first[o]`` among those of all outputs.
    targets : float array of shape (n_outputs, n), or (0, 0)
    weight : float array of shape (n,), or (0,) where all are one
    """

    criterion: int
    first: np.ndarray
    classes: np.ndarray
    targets: np.ndarray
    weight: np.ndarray


class Scratch(NamedTuple):
    """Room for the work on one node; a thread has one.

    Attributes
    ----------
    codes : int32 array of shape (n,)
    order : uint32 array of shape (n,)
    keys : int64 array of shape (n,), or (0,) where nothing is sorted
    weights : float array of shape (n,), or (0,)
    labels : uint32 array of shape (n_outputs, n), or fewer rows where segments tell
    values : float array of shape (n_outputs, n), or (0, 0)
    total, left : float arrays of shape (statistics,)
    segment, end, place : int32 arrays of shape (n_classes,)
        Class of a segment, where it ends, and which segment a class is.
    table : float array
        Sums for each code.
    counts : int32 array
        Rows for each code.
    """

    codes: np.ndarray
    order: np.ndarray
    keys: np.ndarray
    weights: np.ndarray
    labels: np.ndarray
    values: np.ndarray
    total: np.ndarray
    left: np.ndarray
    segment: np.ndarray
    end: np.ndarray
    place: np.ndarray
    table: np.ndarray
    counts: np.ndarray


@njit(cache=True, **INNER)
def open_classes(task, scratch, rows, begin, n):
    """Look at a node of classes.

    Returns how many statistics there are (segments of one output, or classes of all), the weight,
    S of the scores and whether there is one class only.
    """
    outputs = task.classes.shape[0]
    weighted = len(task.weight) > 0
    whole = np.float64(n)
    if weighted:
        for i in range(n):
            scratch.weights[i] = task.weight[rows[begin + i]]
        whole = _sum(scratch.weights, 0, n)
    if outputs == 1:
        statistics = _segments(task.classes[0], scratch, rows, begin, n)
        a = 0
        for k in range(statistics):
            b = scratch.end[k]
            scratch.total[k] = b - a
            if weighted:
                scratch.total[k] = _sum(scratch.weights, a, b)
            scratch.labels[0, a:b] = k
            a = b
        pure = statistics == 1
    else:
        statistics, pure = task.first[outputs], True
        scratch.total[:statistics] = 0.0
        for o in range(outputs):
            base = task.first[o]
            initial = task.classes[o, rows[begin]]
            for i in range(n):
                c = task.classes[o, rows[begin + i]]
                scratch.labels[o, i] = base + c
                scratch.total[base + c] += scratch.weights[i] if weighted else 1.0
                pure &= c == initial
    S = 0.0
    for k in range(statistics):
        S += term(task.criterion, scratch.total[k])
    return statistics, whole, S, pure


@njit(cache=True, **INNER)
def _segments(classes, scratch, rows, begin, n):
    """Find where the classes of a node end; small steps first, then halves."""
    k, a = 0, 0
    while a < n:
        own = classes[rows[begin + a]]
        inside, step = a, 1  # the last place that is known to be of this class
        while inside + step < n and classes[rows[begin + inside + step]] == own:
            inside += step
            step *= 2
        outside = min(inside + step, n)
        while outside - inside > 1:
            middle = (inside + outside) >> 1
            if classes[rows[begin + middle]] == own:
                inside = middle
            else:
                outside = middle
        scratch.segment[k], scratch.end[k], scratch.place[own] = own, outside, k
        k, a = k + 1, outside
    return k


@njit(cache=True, **INNER)
def _sum(weights, a, b):
    """Sum four numbers at a time, in an order that no compiler chooses."""
    s0 = s1 = s2 = s3 = 0.0
    i = a
    while i + 3 < b:
        s0 += weights[i]
        s1 += weights[i + 1]
        s2 += weights[i + 2]
        s3 += weights[i + 3]
        i += 4
    while i < b:
        s0 += weights[i]
        i += 1
    return (s0 + s1) + (s2 + s3)


@njit(cache=True, **INNER)
def open_values(task, scratch, rows, begin, n):
    """Look at a node of real targets.

    ``scratch.values`` become weight times the distance from the node's mean, which stands in
    ``scratch.total``. Returns the weight, the sum of squares and whether all targets are equal.
    """
    outputs = task.targets.shape[0]
    weighted = len(task.weight) > 0
    whole = np.float64(n)
    if weighted:
        for i in range(n):
            scratch.weights[i] = task.weight[rows[begin + i]]
        whole = _sum(scratch.weights, 0, n)
    squares, pure = 0.0, True
    for o in range(outputs):
        target, values = task.targets[o], scratch.values[o]
        low = high = target[rows[begin]]
        mean = 0.0
        for i in range(n):
            y = target[rows[begin + i]]
            values[i] = y
            low, high = min(low, y), max(high, y)
            mean += y * scratch.weights[i] if weighted else y
        mean = min(max(mean / whole, low), high)
        pure &= low == high
        scratch.total[o] = mean
        for i in range(n):
            apart = values[i] - mean
            values[i] = scratch.weights[i] * apart if weighted else apart
            squares += values[i] * apart
    return whole, squares, pure
