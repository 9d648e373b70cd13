"""A tree grows by search: node after node from a stack, the left child before the right one.

The loop keeps its state in arrays and returns when its share of work is done, also between two
columns of a node, when the arrays are full, or at the end.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from maxmargin.backends.compiled import INNER, njit
from maxmargin.backends.cpu.trees.columns import take
from maxmargin.backends.cpu.trees.draws import below, mixed, next_state, unit
from maxmargin.backends.cpu.trees.node import open_classes, open_values
from maxmargin.backends.cpu.trees.ordered import (
    best_ordered,
    bounds_below,
    open_absolute,
    poisson_of_node,
    value_in_bounds,
)
from maxmargin.backends.cpu.trees.scores import (
    ABSOLUTE,
    POISSON,
    TIE,
    decrease,
    impurity,
    scale,
    score,
)
from maxmargin.backends.cpu.trees.search import (
    best_classes,
    best_values,
    judge_classes,
    judge_values,
)
from maxmargin.backends.cpu.trees.tables import (
    CONSTANT,
    fits,
    scan_classes,
    scan_values,
    table_of_classes,
    table_of_values,
)

DONE, PAUSED, FULL = 0, 1, 2
NODE = np.dtype([("threshold", "f8"), ("feature", "i4"), ("right", "i4")])
IMPURITY, WEIGHT, SIZE, FALL = 0, 1, 2, 3  # columns of facts
INNER_NODE, PURE = -1, -2  # payloads: of a node with a test; PURE - c of a leaf of class c only
BEGIN, END, DEPTH, PARENT, CONSTANTS = range(5)  # columns of the stack
TOP, NODES, LEAVES, DEEPEST = 0, 1, 2, 3  # of counters
UNDER_WAY, TRIED, FOUND_CONSTANT, BEST_FEATURE, BEST_CUT = range(5)  # of a node that is paused
BEST_SCORE, BEST_FALL, BEST_MIDDLE, BEST_VALUE = range(4)
SORTING = 32  # cost of sorting one code, in codes that are summed in a table: 50 ns, 1.5 ns


class Rules(NamedTuple):
    """Which tests are tried, and when a node becomes a leaf."""

    random: bool
    max_features: int
    max_depth: int
    min_samples_split: int
    min_samples_leaf: int
    min_weight_leaf: float
    min_decrease: float  # times the weight of all rows
    directions: np.ndarray = np.empty(0, np.int8)  # +1, -1 or 0 of each column; (0,) for none


class Nodes(NamedTuple):
    """The nodes of a tree in the order of their growth: a left child follows its parent.

    Attributes
    ----------
    tests : array of NODE, shape (m,)
        ``x[feature] <= threshold`` goes on to the next node, others to ``right``. A leaf has the
        threshold -inf and itself at its right, so that a row that has arrived stays.
    cuts : int32 array of shape (m,)
        The greatest code that goes to the left.
    payload : int32 array of shape (m,)
        Which of the values a leaf has, or that it has one class only.
    facts : float array of shape (m, 4)
        Impurity, weight, rows, and by how much the test lowers the impurity times the weight.
    values : float array of shape (leaves, statistics)
        Shares of the classes, or means of the targets.
    means : float array of shape (m, statistics), or (0, statistics)
        The same of every node, where that is not the mean of its leaves: with medians and bounds.
    """

    tests: np.ndarray
    cuts: np.ndarray
    payload: np.ndarray
    facts: np.ndarray
    values: np.ndarray
    means: np.ndarray = np.empty((0, 0))


class State(NamedTuple):
    """Where the growth is.

    Attributes
    ----------
    rows : uint32 array of shape (m,)
        The rows in the sample; those of a node are next to each other. Unsigned, as an index that
        may be negative costs twice the time.
    where : int32 array of shape (n,), or (0,) where no column is sparse
        Place of each row in ``rows``.
    features : int32 array of shape (d,)
        Those that are constant in the node at the top come first.
    stack : int64 array of shape (room, 5)
    counters : int64 array of shape (4,)
    random : uint64 array of shape (1,)
    leaf : int32 array of shape (n,)
        The leaf of each row in the sample, as far as it is known.
    node : int64 array of shape (5,)
        Whether the last node is under way, and how far its columns have been tried.
    best : float array of shape (4,)
        Of that node: the best score, by how much that test lowers the impurity, the middle of its
        sides' values, and where it was drawn.
    bounds : float array of shape (room, 2)
        Between which the values of each node on the stack must lie.
    """

    rows: np.ndarray
    where: np.ndarray
    features: np.ndarray
    stack: np.ndarray
    counters: np.ndarray
    random: np.ndarray
    leaf: np.ndarray
    node: np.ndarray
    best: np.ndarray
    bounds: np.ndarray


@njit(cache=True, nogil=True, error_model="numpy")
def grow(store, task, rules, nodes, state, scratch, work):
    """Grow a tree until about ``work`` codes have been read; changes nodes, state and scratch.

    Nodes become leaves from ``rules.max_depth`` on; if that is negative, a node that is under way
    takes the best of the tests that it has tried.
    """
    classes = task.classes.shape[0] > 0
    outputs = max(task.classes.shape[0], task.targets.shape[0])
    counters, stack, rows = state.counters, state.stack, state.rows
    n_features = len(state.features)
    constrained = len(rules.directions) > 0
    ordered = constrained or task.criterion == ABSOLUTE or task.criterion == POISSON
    searching = (outputs == 1 or not classes) and not ordered  # by tables
    bounds = np.empty(2)
    advanced = False  # whether this call has tried a column: each call does
    counting = len(task.weight) > 0 and rules.min_samples_leaf > 1
    while counters[TOP] > 0 or state.node[UNDER_WAY]:
        if work <= 0:
            return PAUSED
        again = state.node[UNDER_WAY] == 1
        node = counters[NODES] - again
        if not again:
            if (
                node >= len(nodes.tests)
                or counters[LEAVES] >= len(nodes.values)
                or counters[TOP] + 1 >= len(stack)
            ):
                return FULL
            counters[TOP] -= 1
            counters[NODES] += 1
        top = counters[TOP]
        begin, end, depth = stack[top, BEGIN], stack[top, END], stack[top, DEPTH]
        constant = stack[top, CONSTANTS]
        if stack[top, PARENT] >= 0:
            nodes.tests[stack[top, PARENT]].right = node
        counters[DEEPEST] = max(counters[DEEPEST], depth)
        n = end - begin
        work -= 2 * n + 20

        statistics = outputs
        if classes:
            statistics, whole, S, pure = open_classes(task, scratch, rows, begin, n)
            nodes.facts[node, IMPURITY] = impurity(task.criterion, S, whole, outputs)
            scale_here = scale(task.criterion, S, whole, outputs)
        else:
            whole, S, pure = open_values(task, scratch, rows, begin, n)
            nodes.facts[node, IMPURITY] = S / (whole * outputs)
            scale_here, S = S, 0.0
            if task.criterion == ABSOLUTE:
                S = open_absolute(task, scratch, rows, begin, n, whole)
                nodes.facts[node, IMPURITY] = S / (whole * outputs)
                scale_here = S
            elif task.criterion == POISSON:
                S, deviance = poisson_of_node(task, scratch, rows, begin, n, whole)
                nodes.facts[node, IMPURITY] = deviance / (whole * outputs)
                scale_here = max(abs(S), whole)
        bounds[:] = state.bounds[top]
        if ordered:
            _keep_means(task, nodes, scratch, node, statistics, whole, bounds)
        nodes.facts[node, WEIGHT], nodes.facts[node, SIZE] = whole, n
        nodes.facts[node, FALL] = 0.0

        numbers = statistics if classes else outputs + 1
        best, best_feature, best_cut = -np.inf, np.int64(-1), np.int64(-1)
        best_fall = 0.0
        small = n < rules.min_samples_split or n < 2 * rules.min_samples_leaf
        leaf = pure or small or depth >= rules.max_depth or whole < 2.0 * rules.min_weight_leaf
        tried, best_middle, best_value = np.int64(0), 0.0, np.nan
        if again:
            constant, tried = state.node[FOUND_CONSTANT], state.node[TRIED]
            best, best_fall = state.best[BEST_SCORE], state.best[BEST_FALL]
            best_feature, best_cut = state.node[BEST_FEATURE], state.node[BEST_CUT]
            best_middle, best_value = state.best[BEST_MIDDLE], state.best[BEST_VALUE]
            state.node[UNDER_WAY] = 0
        if not leaf:
            while tried < rules.max_features and constant + tried < n_features:
                if work <= 0 and advanced:
                    state.node[UNDER_WAY] = 1
                    state.node[FOUND_CONSTANT], state.node[TRIED] = constant, tried
                    state.best[BEST_SCORE], state.best[BEST_FALL] = best, best_fall
                    state.best[BEST_MIDDLE], state.best[BEST_VALUE] = best_middle, best_value
                    state.node[BEST_FEATURE], state.node[BEST_CUT] = best_feature, best_cut
                    return PAUSED
                advanced = True
                free = constant + tried
                pick = free
                if rules.max_features - tried < n_features - free:  # else all that are left
                    state.random[0] = next_state(state.random[0])
                    pick = free + below(mixed(state.random[0]), n_features - free)
                f = state.features[pick]
                state.features[pick] = state.features[free]
                tabled = searching and fits(store, f, n, numbers, len(scratch.table))
                work -= n
                if tabled and classes:
                    codes = table_of_classes(
                        store,
                        task,
                        scratch,
                        f,
                        rows,
                        state.where,
                        begin,
                        n,
                        statistics,
                        counting,
                    )
                    cut, S_left, S_right, left = scan_classes(
                        task, scratch, codes, statistics, n, whole, S, rules, scale_here
                    )
                    same = cut == CONSTANT
                elif tabled:
                    codes = table_of_values(
                        store, task, scratch, f, rows, state.where, begin, n, whole, counting
                    )
                    cut, S_left, S_right, left = scan_values(
                        task, scratch, codes, n, whole, rules, scale_here
                    )
                    same = cut == CONSTANT
                else:
                    low, high = take(store, f, rows, begin, n, state.where, scratch.codes)
                    same = low == high
                if same:
                    state.features[free] = state.features[constant]
                    state.features[constant] = f
                    constant += 1
                    continue
                state.features[free] = f
                tried += 1
                if ordered:
                    work -= SORTING * n * (8 if task.criterion == ABSOLUTE else 1)
                    only, value = np.int64(-1), np.nan
                    if rules.random:
                        state.random[0] = next_state(state.random[0])
                        share = unit(mixed(state.random[0]))
                        only, value = _drawn_cut(store, f, scratch.codes, n, low, high, share)
                    direction = np.int64(rules.directions[f]) if constrained else np.int64(0)
                    cut, found, fall, middle = best_ordered(
                        task,
                        rules,
                        scratch,
                        statistics,
                        n,
                        low,
                        high,
                        whole,
                        S,
                        scale_here,
                        direction,
                        bounds,
                        only,
                    )
                    tie = TIE * scale_here
                    if cut >= 0 and (
                        found > best + tie or (found > best - tie and f < best_feature)
                    ):
                        best, best_feature, best_cut = found, np.int64(f), cut
                        best_fall, best_middle, best_value = fall, middle, value
                    continue
                if tabled:
                    pass
                elif high == low + 1:
                    cut = np.int64(low)
                elif classes:
                    work -= SORTING * n
                    cut = best_classes(
                        task, scratch, statistics, n, low, high, whole, S, rules, scale_here
                    )
                else:
                    work -= SORTING * n
                    cut = best_values(task, scratch, n, low, high, whole, rules, scale_here)
                if cut < 0:
                    continue
                if not tabled:
                    if classes:
                        S_left, S_right, left, n_left = judge_classes(
                            task, scratch, statistics, n, cut
                        )
                    else:
                        S_left, S_right, left, n_left = judge_values(task, scratch, n, cut)
                    if min(n_left, n - n_left) < rules.min_samples_leaf:
                        continue
                right = whole - left
                if min(left, right) < rules.min_weight_leaf or min(left, right) <= 0.0:
                    continue
                found = score(task.criterion, S_left, S_right, left, right, S, outputs)
                tie = TIE * scale_here
                if found > best + tie or (found > best - tie and f < best_feature):
                    best, best_feature, best_cut = found, np.int64(f), cut
                    best_fall = decrease(task.criterion, S_left, S_right, left, right, S, outputs)

        if best_feature < 0 or best_fall < rules.min_decrease:
            _make_leaf(task, nodes, state, scratch, node, begin, n, statistics, whole, pure)
            if ordered:
                nodes.values[counters[LEAVES] - 1] = nodes.means[node]
            continue
        take(store, best_feature, rows, begin, n, state.where, scratch.codes)
        work -= 2 * n
        n_left, lower, upper = _part(state, scratch, begin, n, best_cut)
        first = store.first[best_feature]
        value = 0.5 * store.greatest[first + lower] + 0.5 * store.least[first + upper]
        value = best_value if rules.random else value
        cut, threshold = installed(store.least, store.greatest, first, value, lower, upper)
        nodes.tests[node].threshold = threshold
        nodes.tests[node].feature = best_feature
        nodes.cuts[node] = cut
        nodes.payload[node] = INNER_NODE
        nodes.facts[node, FALL] = best_fall
        for side in range(2):  # the right one first: the left one is on top
            stack[top, BEGIN] = begin if side else begin + n_left
            stack[top, END] = begin + n_left if side else end
            stack[top, DEPTH] = depth + 1
            stack[top, PARENT] = -1 if side else node
            stack[top, CONSTANTS] = constant
            state.bounds[top] = bounds
            if constrained:
                direction = np.int64(rules.directions[best_feature])
                bounds_below(bounds, direction, best_middle, side == 0, state.bounds[top])
            top += 1
        counters[TOP] = top
    return DONE


@njit(cache=True, **INNER)
def _keep_means(task, nodes, scratch, node, statistics, whole, bounds):
    """Store the value of a node, clipped to the bounds that the tests above it have set."""
    means = nodes.means[node]
    if task.classes.shape[0] == 0:
        for o in range(statistics):
            means[o] = value_in_bounds(scratch.total[o], bounds[0], bounds[1])
        return
    means[:] = 0.0  # of two classes at most
    for k in range(statistics):
        means[scratch.segment[k]] = scratch.total[k] / whole
    if len(means) > 1:
        means[1] = value_in_bounds(means[1], bounds[0], bounds[1])
        means[0] = 1.0 - means[1]


@njit(cache=True, **INNER)
def _drawn_cut(store, f, codes, n, low, high, share):
    """Draw a threshold uniformly over a node's values in column f; return its cut and itself."""
    first = store.first[f]
    bottom, ceiling = present_ends(store.least, store.greatest, first, codes, n, low, high)
    value = bottom * (1.0 - share) + ceiling * share
    if not bottom <= value < ceiling:
        value = bottom
    cut = low
    for i in range(n):
        if store.greatest[first + codes[i]] <= value:
            cut = max(cut, codes[i])
    return np.int64(cut), value


@njit(cache=True, **INNER)
def present_ends(least, greatest, first, codes, n, low, high):
    """Return the least and greatest value in a node; missing ones do not count.

    Missing values are a code of their own, below all others (minus infinity) or above them (NaN).
    """
    bottom, ceiling = least[first + low], greatest[first + high]
    if bottom > -np.inf and ceiling < np.inf:
        return bottom, ceiling
    lowest, highest = np.int32(2**31 - 1), np.int32(-1)
    for i in range(n):
        if -np.inf < greatest[first + codes[i]] < np.inf:
            lowest, highest = min(lowest, codes[i]), max(highest, codes[i])
    return least[first + lowest], greatest[first + highest]


@njit(cache=True, forceinline=True, **INNER)
def installed(least, greatest, first, value, below_cut, above_cut):
    """Return cut and threshold of a test at a value; between two bins where it is inside of one.

    ``below_cut`` and ``above_cut`` are the codes of the node's rows next to the cut. Rows that are
    not in the sample may have others in between. NaN above the cut are missing values.
    """
    if np.isnan(value):
        value = np.inf
    a, b = np.int32(below_cut), np.int32(above_cut - 1)
    while a < b:
        middle = (a + b + np.int32(1)) >> np.int32(1)
        if greatest[first + middle] <= value:
            a = middle
        else:
            b = middle - np.int32(1)
    low, high = greatest[first + a], least[first + a + 1]
    if np.isnan(high):
        return a, np.inf
    if not low <= value < high:
        value = 0.5 * low + 0.5 * high
        if not low <= value < high:
            value = low
    return a, value


@njit(cache=True, **INNER)
def _part(state, scratch, begin, n, cut):
    """Bring the rows of a node that go to the left before the others, both in their order.

    Returns how many these are, and the codes next to the cut on both sides.
    """
    rows, codes, others = state.rows, scratch.codes, scratch.order
    n_left, n_right = np.int64(0), np.int64(0)
    below, above = np.int32(-1), np.int32(2**31 - 1)
    for i in range(n):
        row, code = rows[begin + i], codes[i]
        goes = code <= cut
        rows[begin + n_left] = row
        others[n_right] = row
        n_left += goes
        n_right += not goes
        below = max(below, code if goes else np.int32(-1))
        above = min(above, np.int32(2**31 - 1) if goes else code)
    for i in range(n_right):
        rows[begin + n_left + i] = others[i]
    if len(state.where) > 0:
        for i in range(begin, begin + n):
            state.where[rows[i]] = i
    return n_left, below, above


@njit(cache=True, **INNER)
def _make_leaf(task, nodes, state, scratch, node, begin, n, statistics, whole, pure):
    nodes.tests[node].threshold = -np.inf
    nodes.tests[node].feature = 0
    nodes.tests[node].right = node
    nodes.cuts[node] = -1
    for i in range(begin, begin + n):
        state.leaf[state.rows[i]] = node
    single = task.classes.shape[0] == 1
    if single and pure and len(nodes.means) == 0:
        nodes.payload[node] = PURE - scratch.segment[0]
        return
    leaf = state.counters[LEAVES]
    state.counters[LEAVES] += 1
    nodes.payload[node] = leaf
    values = nodes.values[leaf]
    if task.classes.shape[0] == 0:
        for o in range(statistics):
            values[o] = scratch.total[o]
        return
    values[:] = 0.0
    for k in range(statistics):
        values[scratch.segment[k] if single else k] = scratch.total[k] / whole
