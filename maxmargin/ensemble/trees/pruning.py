"""Smaller trees: the best-first subtree with a number of leaves, and cost-complexity pruning.

Both turn inner nodes of a grown tree into leaves. Where a node is split does not depend on the
order in which nodes are split, so the tree that best-first growth would end with is the fully grown
one, reduced to the splits that lower the impurity most.

References: Breiman, Friedman, Olshen and Stone, Classification and Regression Trees, 1984, ch. 3;
Shi, Best-first decision tree learning, 2007.
"""

from __future__ import annotations

import heapq
from dataclasses import replace
from typing import Any

import numpy as np

from maxmargin.backends.cpu.trees.grow import FALL, INNER_NODE, Nodes
from maxmargin.ensemble.trees.tree import Missing, Tree


def reduced(tree: Tree, model: Any) -> tuple[Tree, np.ndarray | None]:
    """Apply ``max_leaf_nodes`` and ``ccp_alpha`` of an estimator to a grown tree.

    Returns the smaller tree and the new number of the leaf at or above each old node; the same tree
    and None if nothing changes.
    """
    inner = ~tree.is_leaf
    kept = inner
    if model.max_leaf_nodes is not None and tree.n_leaves > model.max_leaf_nodes:
        kept = best_first(tree, int(model.max_leaf_nodes) - 1)
    if model.ccp_alpha > 0:
        small, places = (tree, None) if kept is inner else subtree(tree, kept)
        order, alphas, _ = pruning_order(small)
        stronger = np.flatnonzero(alphas > model.ccp_alpha)
        cut = order[: stronger[0]] if len(stronger) else order
        remaining = ~small.is_leaf
        remaining[cut] = False
        if not len(cut):
            return small, places
        smallest, again = subtree(small, remaining)
        return smallest, again if places is None else again[places]
    return (tree, None) if kept is inner else subtree(tree, kept)


def best_first(tree: Tree, count: int) -> np.ndarray:
    """Choose ``count`` inner nodes from the root down, each time that of the largest decrease."""
    inner, right = ~tree.is_leaf, tree.nodes.tests["right"]
    fall = tree.nodes.facts[:, FALL]
    kept = np.zeros(tree.node_count, dtype=bool)
    waiting = [(-fall[0], 0)] if inner[0] else []
    while waiting and count:
        _, node = heapq.heappop(waiting)
        kept[node] = True
        count -= 1
        for child in (node + 1, int(right[node])):
            if inner[child]:
                heapq.heappush(waiting, (-fall[child], child))
    return kept


def subtree(tree: Tree, kept: np.ndarray) -> tuple[Tree, np.ndarray]:
    """Return the tree whose inner nodes are ``kept``, the inner nodes among them that are reached.

    Also returns, for each old node, the new number of its nearest ancestor (or itself) that is
    still there.
    """
    nodes, values = tree.nodes, tree.node_values()
    m, right = tree.node_count, nodes.tests["right"]
    depths, is_leaf = tree.node_depths(), tree.is_leaf
    there, nearest = np.zeros(m, dtype=bool), np.zeros(m, np.int64)
    there[0] = True
    for node in np.flatnonzero(~is_leaf):
        stays = there[node] and kept[node]
        for child in (node + 1, right[node]):
            there[child] = stays
            nearest[child] = child if stays else nearest[node]
    number = np.cumsum(there) - 1
    chosen = np.flatnonzero(there)
    inner = kept[chosen] & ~is_leaf[chosen]
    new_leaf = ~inner & ~is_leaf[chosen]
    tests, facts = nodes.tests[chosen].copy(), nodes.facts[chosen].copy()
    tests["right"] = np.where(inner, number[tests["right"]], np.arange(len(chosen)))
    tests["threshold"][new_leaf], tests["feature"][new_leaf] = -np.inf, 0
    facts[new_leaf, FALL] = 0.0
    cuts, payload = nodes.cuts[chosen].copy(), nodes.payload[chosen].copy()
    cuts[new_leaf] = -1
    with_row = ~inner & (payload >= INNER_NODE)  # leaves whose values are written down
    payload[with_row] = np.arange(with_row.sum())
    means = nodes.means[chosen] if len(nodes.means) else nodes.means
    smaller = Nodes(tests, cuts, payload, facts, values[chosen[with_row]], means)
    missing = tree.missing
    if missing is not None:
        missing = Missing(*(own[chosen] for own in missing))
    size = int(depths[chosen].max())
    return replace(tree, nodes=smaller, depth=size, missing=missing), number[nearest]


def pruning_order(tree: Tree) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the inner nodes in the order of weakest-link pruning.

    The next node to become a leaf is the one of the least effective alpha

        g(t) = (R(t) - R(T_t)) / (leaves(T_t) - 1)

    for its risk R(t), impurity times share of the weight, and that of the leaves of its branch.

    Returns
    -------
    order : int array of shape (m,)
    alphas : float array of shape (m,)
        Effective alpha of each.
    totals : float array of shape (m + 1,)
        Risk of all leaves before the first and after each of them.
    """
    right, is_leaf = tree.nodes.tests["right"].tolist(), tree.is_leaf
    shares = tree.weighted_n_node_samples / tree.weighted_n_node_samples[0]
    risk = (tree.impurity * shares).tolist()
    of_branch, leaves = list(risk), [1] * tree.node_count
    parent = [-1] * tree.node_count
    for node in np.flatnonzero(~is_leaf)[::-1].tolist():
        left, other = node + 1, right[node]
        parent[left] = parent[other] = node
        of_branch[node] = of_branch[left] + of_branch[other]
        leaves[node] = leaves[left] + leaves[other]
    current: list[float] = [np.inf] * tree.node_count  # g of nodes that can be pruned

    def weighed(node: int) -> tuple[float, int]:
        current[node] = (risk[node] - of_branch[node]) / (leaves[node] - 1)
        return current[node], node

    waiting = [weighed(node) for node in np.flatnonzero(~is_leaf).tolist()]
    heapq.heapify(waiting)
    order, alphas, totals = [], [], [of_branch[0]]
    while waiting:
        alpha, node = heapq.heappop(waiting)
        if alpha != current[node]:  # weighed again since, or below a leaf by now
            continue
        fewer, more = leaves[node] - 1, risk[node] - of_branch[node]
        below = [node]
        while below:
            own = below.pop()
            if current[own] != np.inf:
                current[own] = np.inf
                below += [own + 1, right[own]]
        above = parent[node]
        leaves[node], of_branch[node] = 1, risk[node]
        while above >= 0:
            leaves[above] -= fewer
            of_branch[above] += more
            heapq.heappush(waiting, weighed(above))
            above = parent[above]
        order.append(node)
        alphas.append(alpha)
        totals.append(of_branch[0])
    return np.array(order, np.int64), np.array(alphas), np.array(totals)
