"""A tree grows by random tests: one for each of some columns of a node, the best installed.

The same as :func:`~maxmargin.backends.cpu.trees.grow.grow` does by search. Most nodes of such a
tree have a handful of rows, and there a call of a function that takes arrays costs more than the
work in it (Numba counts references to each of them): the loop over a node's columns is written out
in one piece. Random bits are of ``draws.py``, with the state in a variable.
"""

from __future__ import annotations

import numpy as np

from maxmargin.backends.compiled import njit
from maxmargin.backends.cpu.trees.columns import FOUR_BYTES, ONE_BYTE, TWO_BYTES, gather_listed
from maxmargin.backends.cpu.trees.draws import below, mixed, next_state, unit
from maxmargin.backends.cpu.trees.grow import (
    BEGIN,
    CONSTANTS,
    DEEPEST,
    DEPTH,
    DONE,
    END,
    FALL,
    FULL,
    IMPURITY,
    INNER_NODE,
    LEAVES,
    NODES,
    PARENT,
    PAUSED,
    PURE,
    SIZE,
    TOP,
    WEIGHT,
    installed,
    present_ends,
)
from maxmargin.backends.cpu.trees.scores import decrease, impurity, score, term

_FEW = 32  # rows for which a cut is looked up at the rows themselves
_LARGEST = np.int32(2**31 - 1)


@njit(cache=True, nogil=True, error_model="numpy")
def grow_by_random_tests(store, task, rules, nodes, state, scratch, work):
    """Grow until about so many codes were looked at; changes nodes, state and scratch."""
    kind, slot, listed, first = store.kind, store.slot, store.listed, store.first
    small, medium, large = store.small, store.medium, store.large
    least, greatest = store.least, store.greatest
    list_begin, list_rows, list_codes, common = store.begin, store.rows, store.codes, store.common
    classes, targets, weight = task.classes, task.targets, task.weight
    tests, facts, leaf_values = nodes.tests, nodes.facts, nodes.values
    rows, where, features, stack = state.rows, state.where, state.features, state.stack
    counters = state.counters
    codes, others, labels, values = scratch.codes, scratch.order, scratch.labels, scratch.values
    weights, total, left_of = scratch.weights, scratch.total, scratch.left
    segment, end_of = scratch.segment, scratch.end
    criterion, seed = task.criterion, state.random[0]
    few, least_weight = rules.min_samples_leaf, rules.min_weight_leaf
    of_classes, single = classes.shape[0] > 0, classes.shape[0] == 1
    outputs = max(classes.shape[0], targets.shape[0])
    weighted, n_features = len(weight) > 0, len(features)
    top, node, leaf = counters[TOP], counters[NODES], counters[LEAVES]
    status = DONE
    while top > 0:
        if work <= 0:
            status = PAUSED
            break
        if node >= len(tests) or leaf >= len(leaf_values) or top + 1 >= len(stack):
            status = FULL
            break
        top -= 1
        begin, end, depth = stack[top, BEGIN], stack[top, END], stack[top, DEPTH]
        constant, parent = stack[top, CONSTANTS], stack[top, PARENT]
        if parent >= 0:
            tests[parent].right = node
        counters[DEEPEST] = max(counters[DEEPEST], depth)
        n = end - begin
        work -= 2 * n + 20

        # -- what is in the node
        whole, S, pure, statistics = np.float64(n), 0.0, True, np.int64(outputs)
        if weighted:
            whole *= 0.0
            for i in range(n):
                weights[i] = weight[rows[begin + i]]
                whole += weights[i]
        if single:
            statistics, a = np.int64(0), np.int64(0)
            while a < n:
                own = classes[0, rows[begin + a]]
                inside, step = a, np.int64(1)
                while inside + step < n and classes[0, rows[begin + inside + step]] == own:
                    inside += step
                    step *= 2
                outside = min(inside + step, n)
                while outside - inside > 1:
                    middle = (inside + outside) >> 1
                    if classes[0, rows[begin + middle]] == own:
                        inside = middle
                    else:
                        outside = middle
                total[statistics] = outside - a
                if weighted:
                    sum_here = 0.0
                    for i in range(a, outside):
                        sum_here += weights[i]
                    total[statistics] = sum_here
                segment[statistics], end_of[statistics] = own, outside
                statistics += 1
                a = outside
            pure = statistics == 1
        elif of_classes:
            statistics = task.first[outputs]
            total[:statistics] = 0.0
            for o in range(outputs):
                initial = classes[o, rows[begin]]
                for i in range(n):
                    c = classes[o, rows[begin + i]]
                    pure &= c == initial
                    labels[o, i] = task.first[o] + c
                    total[labels[o, i]] += weights[i] if weighted else 1.0
        else:
            for o in range(outputs):
                low_y = high_y = targets[o, rows[begin]]
                mean = 0.0
                for i in range(n):
                    y = targets[o, rows[begin + i]]
                    values[o, i] = y
                    low_y, high_y = min(low_y, y), max(high_y, y)
                    mean += y * weights[i] if weighted else y
                mean = min(max(mean / whole, low_y), high_y)
                pure &= low_y == high_y
                total[o] = mean
                for i in range(n):
                    apart = values[o, i] - mean
                    values[o, i] = weights[i] * apart if weighted else apart
                    S += values[o, i] * apart
        if of_classes:
            for k in range(statistics):
                S += term(criterion, total[k])
            facts[node, IMPURITY] = impurity(criterion, S, whole, outputs)
        else:
            facts[node, IMPURITY] = S / (whole * outputs)
            S = 0.0
        facts[node, WEIGHT], facts[node, SIZE], facts[node, FALL] = whole, n, 0.0

        # -- tests
        best, best_feature, last_taken = -np.inf, np.int32(-1), np.int32(-1)
        best_cut, best_value, best_fall = np.int32(-1), 0.0, 0.0
        parted = n >= rules.min_samples_split and n >= 2 * few and depth < rules.max_depth
        if parted and not pure and whole >= 2.0 * least_weight:
            tried = np.int64(0)
            while tried < rules.max_features and constant + tried < n_features:
                free = constant + tried
                pick = free
                if rules.max_features - tried < n_features - free:  # else all that are left
                    seed = next_state(seed)
                    pick = free + below(mixed(seed), n_features - free)
                f = features[pick]
                features[pick] = features[free]
                work -= n
                last_taken = f
                s = slot[f]
                if kind[f] == ONE_BYTE:
                    for i in range(n):
                        codes[i] = small[s, rows[begin + i]]
                elif kind[f] == TWO_BYTES:
                    for i in range(n):
                        codes[i] = medium[s, rows[begin + i]]
                elif kind[f] == FOUR_BYTES:
                    for i in range(n):
                        codes[i] = large[s, rows[begin + i]]
                else:
                    gather_listed(
                        list_begin,
                        list_rows,
                        list_codes,
                        common,
                        listed[f],
                        rows,
                        begin,
                        n,
                        where,
                        codes,
                    )
                low = high = codes[0]
                for i in range(1, n):
                    low, high = min(low, codes[i]), max(high, codes[i])
                if low == high:
                    features[free] = features[constant]
                    features[constant] = f
                    constant += 1
                    continue
                features[free] = f
                tried += 1
                at = first[f]
                bottom, ceiling = least[at + low], greatest[at + high]
                if not (bottom > -np.inf and ceiling < np.inf):  # among missing values
                    bottom, ceiling = present_ends(least, greatest, at, codes, n, low, high)
                seed = next_state(seed)
                share = unit(mixed(seed))
                value = bottom * (1.0 - share) + ceiling * share
                if not bottom <= value < ceiling:
                    value = bottom
                cut = low
                if high > low + 1:
                    if n <= _FEW:
                        for i in range(n):
                            goes_left = greatest[np.uint64(at + codes[i])] <= value
                            cut = max(cut, codes[i] if goes_left else low)
                    else:
                        size = high - low
                        while size > 1:
                            half = size >> np.int32(1)
                            goes_left = greatest[np.uint64(at + cut + half)] <= value
                            cut += half if goes_left else np.int32(0)
                            size -= half
                n_left, weight_left, S_left, S_right = np.int64(0), 0.0, 0.0, 0.0
                perfect = n == 2  # then all that follow are as good at best
                if single:
                    a, mixed_classes = np.int64(0), np.int64(0)
                    for k in range(statistics):
                        b = np.int64(end_of[k])
                        count = np.int32(0)
                        for i in range(a, b):
                            count += np.int32(codes[i] <= cut)
                        n_left += count
                        mixed_classes += np.int64(0 < count < b - a)
                        own_left = np.float64(count)
                        if weighted:
                            own_left *= 0.0
                            for i in range(a, b):
                                own_left += weights[i] if codes[i] <= cut else 0.0
                        weight_left += own_left
                        S_left += term(criterion, own_left)
                        S_right += term(criterion, total[k] - own_left)
                        a = b
                    perfect = statistics == 2 and mixed_classes == 0
                elif of_classes:
                    left_of[:statistics] = 0.0
                    for i in range(n):
                        if codes[i] <= cut:
                            n_left += 1
                            w = weights[i] if weighted else 1.0
                            weight_left += w
                            for o in range(outputs):
                                left_of[labels[o, i]] += w
                    for k in range(statistics):
                        S_left += term(criterion, left_of[k])
                        S_right += term(criterion, total[k] - left_of[k])
                else:
                    for i in range(n):
                        n_left += np.int64(codes[i] <= cut)
                    weight_left = 1.0 * n_left
                    if weighted:
                        weight_left *= 0.0
                        for i in range(n):
                            weight_left += weights[i] if codes[i] <= cut else 0.0
                    for o in range(outputs):
                        s0 = s1 = s2 = s3 = 0.0
                        j = 0
                        while j + 3 < n:
                            s0 += values[o, j] if codes[j] <= cut else 0.0
                            s1 += values[o, j + 1] if codes[j + 1] <= cut else 0.0
                            s2 += values[o, j + 2] if codes[j + 2] <= cut else 0.0
                            s3 += values[o, j + 3] if codes[j + 3] <= cut else 0.0
                            j += 4
                        while j < n:
                            s0 += values[o, j] if codes[j] <= cut else 0.0
                            j += 1
                        sum_left = (s0 + s1) + (s2 + s3)
                        S_left += sum_left * sum_left
                    S_right = S_left
                right = whole - weight_left
                if min(n_left, n - n_left) < few:
                    continue
                if min(weight_left, right) < least_weight or min(weight_left, right) <= 0.0:
                    continue
                found = score(criterion, S_left, S_right, weight_left, right, S, outputs)
                if found > best:
                    best, best_feature, best_cut, best_value = found, f, cut, value
                    best_fall = decrease(criterion, S_left, S_right, weight_left, right, S, outputs)
                if perfect:
                    break

        # -- a leaf
        if best_feature < 0 or best_fall < rules.min_decrease:
            tests[node].threshold = -np.inf
            tests[node].feature = 0
            tests[node].right = node
            nodes.cuts[node] = -1
            for i in range(begin, end):
                state.leaf[rows[i]] = node
            if single and pure:
                nodes.payload[node] = PURE - segment[0]
            else:
                nodes.payload[node] = leaf
                if of_classes:
                    leaf_values[leaf, :] = 0.0
                for k in range(statistics):
                    if single:
                        leaf_values[leaf, segment[k]] = total[k] / whole
                    elif of_classes:
                        leaf_values[leaf, k] = total[k] / whole
                    else:
                        leaf_values[leaf, k] = total[k]
                leaf += 1
            node += 1
            continue

        # -- two sides
        f = best_feature
        if last_taken != f:
            s = slot[f]
            if kind[f] == ONE_BYTE:
                for i in range(n):
                    codes[i] = small[s, rows[begin + i]]
            elif kind[f] == TWO_BYTES:
                for i in range(n):
                    codes[i] = medium[s, rows[begin + i]]
            elif kind[f] == FOUR_BYTES:
                for i in range(n):
                    codes[i] = large[s, rows[begin + i]]
            else:
                gather_listed(
                    list_begin,
                    list_rows,
                    list_codes,
                    common,
                    listed[f],
                    rows,
                    begin,
                    n,
                    where,
                    codes,
                )
        work -= 2 * n
        n_left, n_right = np.int64(0), np.int64(0)
        below_cut, above_cut = np.int32(-1), _LARGEST
        for i in range(n):
            below_cut = max(below_cut, codes[i] if codes[i] <= best_cut else np.int32(-1))
            above_cut = min(above_cut, codes[i] if codes[i] > best_cut else _LARGEST)
        for i in range(n):
            row = rows[begin + i]
            goes = np.int64(codes[i] <= best_cut)
            rows[begin + n_left] = row
            others[n_right] = row
            n_left += goes
            n_right += np.int64(1) - goes
        for i in range(n_right):
            rows[begin + n_left + i] = others[i]
        if len(where) > 0:
            for i in range(begin, end):
                where[rows[i]] = i
        best_cut, best_value = installed(
            least, greatest, first[f], best_value, below_cut, above_cut
        )
        tests[node].threshold = best_value
        tests[node].feature = f
        nodes.cuts[node] = best_cut
        nodes.payload[node] = INNER_NODE
        facts[node, FALL] = best_fall
        for side in range(2):  # the right one first: the left one is on top
            stack[top, BEGIN] = begin if side else begin + n_left
            stack[top, END] = begin + n_left if side else end
            stack[top, DEPTH] = depth + 1
            stack[top, PARENT] = -1 if side else node
            stack[top, CONSTANTS] = constant
            top += 1
        node += 1
    counters[TOP], counters[NODES], counters[LEAVES] = top, node, leaf
    state.random[0] = seed
    return status
