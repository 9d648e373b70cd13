"""Trees that grow over partitions, level by level, all of a batch at once.

A search for the best test needs tables of the rows of each open node, which are added up over the
workers: one pass a level. Random tests need the span of each column in a node, and then sums over
the two sides of the tests that were drawn: two passes a level. Nodes whose rows are fewer than the
tables below them are brought together on one worker, and their subtrees grown there by the loop
that grows trees in one place.

What a node draws at random comes from its tree's seed and its place in the tree: neither partitions
nor workers matter.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from dask.delayed import Delayed

from maxmargin.backends.cpu.trees.grow import Nodes
from maxmargin.backends.cpu.trees.levels import (
    LARGEST,
    best_of_node,
    judged,
    placed_test,
    sum_of_classes,
)
from maxmargin.backends.cpu.trees.scores import TIE
from maxmargin.dask.ensemble.columns import CodedRows
from maxmargin.dask.ensemble.nodes import (
    Partial,
    Sides,
    added,
    added_sides,
    grown_apart,
    parcel,
    parcels,
    parted,
    spanned,
    tabled,
    widest,
)
from maxmargin.dask.ensemble.sprouts import Goal, Sprout, flattened
from maxmargin.ensemble.trees.tree import Tree

APART = 1 << 25  # bytes of rows that are brought together on one worker for a subtree
_SENDERS = 4  # of tables, whatever their number: how a tree grows must not depend on it
_LITTLE = 1 << 20  # bytes that are sent in the time of a pass
_TABLES = 1 << 26  # bytes of tables of one pass


class LevelGrowth:
    """Grows some trees from rows that lie with workers.

    Parameters
    ----------
    rows : CodedRows
    goal : Goal
    materials : list of tasks
        What trees learn from, for each group of rows.
    seeds : sequence of int
        One for each tree.
    weighted : bool
        Whether rows have weights other than one.
    stopped : callable
    """

    def __init__(
        self,
        rows: CodedRows,
        goal: Goal,
        materials: list[Delayed],
        seeds: Any,
        weighted: bool,
        stopped: Callable[[], Any] = lambda: None,
    ) -> None:
        self.rows, self.goal, self.materials = rows, goal, materials
        self.seeds, self.weighted, self.stopped = [int(s) for s in seeds], weighted, stopped
        self.cluster = rows.cluster
        self.first, self.least, self.greatest = rows.first, rows.least, rows.greatest
        self.numbers = goal.n_classes or goal.n_outputs + 2
        self.roots: list[Sprout] = []
        self.apart: list[tuple[int, Sprout]] = []

    def grow(self, centre: np.ndarray | None = None) -> list[Tree]:
        """Grow them; ``centre`` is about where targets are."""
        self._begin(centre)
        waiting = [(m, root) for m, root in enumerate(self.roots) if self._goes_on(root)]
        while waiting:
            self.apart += [pair for pair in waiting if self._fits(pair[1])]
            others = [pair for pair in waiting if not self._fits(pair[1])]
            waiting, most = [], self._at_once()
            for begin in range(0, len(others), most):
                batch = sorted(others[begin : begin + most], key=lambda pair: pair[0])
                (self._draw if self.goal.rules.random else self._search)(batch)
                waiting += [(m, side) for m, node in batch for side in node.children]
            waiting = [pair for pair in waiting if self._goes_on(pair[1])]
        self._grow_apart()
        return self.trees()

    def trees(self) -> list[Tree]:
        """Return the trees as they are."""
        return [flattened(root, self.goal)[0] for root in self.roots]

    def _goes_on(self, node: Sprout) -> bool:
        return node.may_part(self.goal.rules)

    def _fits(self, node: Sprout) -> bool:
        """Whether a node is grown on one worker: where its rows are fewer than tables below it."""
        nbytes = node.n * self.rows.row_bytes
        if nbytes > min(APART, self.cluster.budget() / 8):
            return False
        levels = min(self.goal.rules.max_depth - node.depth, 40)
        table = 8.0 * self.first[-1] * self.numbers * _SENDERS
        return self.goal.rules.random or nbytes <= table * (2.0**levels - 1.0) + _LITTLE

    def _at_once(self) -> int:
        one = 8 * self.first[-1] * self.numbers
        if self.goal.rules.random:
            one = 16 * self.numbers * self.goal.rules.max_features + 8 * self.goal.n_features
        return int(max(_TABLES // one, 1))

    def _run(self, function: Callable, combine: Callable, *args: Any, name: str) -> Any:
        tasks = self.rows.map(function, *args, each=[(m,) for m in self.materials], name=name)
        (result,) = self.cluster.run([self.cluster.total(tasks, combine)], self.stopped)
        parts = result if isinstance(result, tuple) else (result,)
        moved = sum(part.nbytes for part in parts) * len(tasks)
        self.cluster.distribution.bytes_between += moved
        return result

    def _begin(self, centre: np.ndarray | None) -> None:
        """Look at the roots."""
        goal = self.goal
        empty = Nodes(*(np.empty(0) for _ in Nodes._fields))
        outputs = 0 if goal.n_classes else goal.n_outputs
        middle = np.zeros(outputs) if centre is None else np.asarray(centre, dtype=np.float64)
        partials = [
            Partial(m, empty, np.zeros(1, np.int32), middle.reshape(1, -1))
            for m in range(len(self.seeds))
        ]
        found = self._run(tabled, added, partials, goal, False, name="roots")
        if not found.sizes.all():
            raise ValueError("No row has a positive weight: there is nothing to grow a tree from.")
        for seed, sums, n in zip(self.seeds, found.sums, found.sizes, strict=True):
            if goal.n_classes:
                self.roots.append(Sprout.of_classes(goal, 0, seed, sums, int(n)))
            else:
                self.roots.append(Sprout.of_values(goal, 0, seed, middle, sums, int(n)))

    def _partials(self, nodes: list[tuple[int, Sprout]]) -> list[Partial]:
        """Trees with some nodes, which are in the order of their trees."""
        found = []
        for m in sorted({m for m, _ in nodes}):
            own = [node for tree, node in nodes if tree == m]
            tree, number = flattened(self.roots[m], self.goal)
            local = np.full(tree.node_count, -1, np.int32)
            for k, node in enumerate(own):
                local[number[id(node)]] = k
            centres = np.array([node.total if not self.goal.n_classes else () for node in own])
            found.append(Partial(m, tree.nodes, local, centres.reshape(len(own), -1)))
        return found

    # -- the best of all tests -------------------------------------------------------------------

    def _search(self, batch: list[tuple[int, Sprout]]) -> None:
        goal = self.goal
        args = self._partials(batch), goal, True
        found = self._run(tabled, added, *args, name="tables")
        task, scratch = goal.task(self.weighted), goal.scratch()
        for k, (_, node) in enumerate(batch):
            tables, sums, n = found.tables[k], found.sums[k], int(found.sizes[k])
            counts = found.counts[k] if self.weighted else np.empty(0, np.int32)
            if goal.n_classes:
                usable, total, squares = tables, sums, 0.0
                whole = float(sums.sum())
            else:
                if (found.ends[0, k] == found.ends[1, k]).all():
                    continue
                whole, apart = float(sums[0]), sums[1:-1] / sums[0]
                usable = np.ascontiguousarray(tables[:, :-1])
                usable[:, 1:] -= apart * usable[:, :1]
                squares = max(float(sums[-1] - whole * (apart @ apart)), 0.0)
                node.impurity, total = squares / (whole * goal.n_outputs), apart
            feature, cut, fall = best_of_node(
                self.first,
                usable,
                counts,
                total,
                whole,
                n,
                squares,
                task,
                goal.rules,
                scratch,
                self._order(node),
            )
            if feature < 0 or fall < goal.rules.min_decrease:
                continue
            own = slice(*self.first[feature : feature + 2])
            table = tables[own]
            if self.weighted:
                there = counts[own]
            else:
                there = table.sum(axis=1) if goal.n_classes else table[:, 0]
            pair = [
                (table[: cut + 1].sum(axis=0), round(float(there[: cut + 1].sum()))),
                (table[cut + 1 :].sum(axis=0), round(float(there[cut + 1 :].sum()))),
            ]
            occupied = np.flatnonzero(there > 0)
            lower = int(occupied[occupied <= cut][-1])
            upper = int(occupied[occupied > cut][0])
            at = self.first[feature]
            middle = 0.5 * self.greatest[at + lower] + 0.5 * self.least[at + upper]
            self._install(node, feature, middle, lower, upper, fall, pair)

    def _order(self, node: Sprout) -> np.ndarray:
        """Return the order in which columns are tried."""
        d = self.goal.n_features
        if self.goal.rules.max_features >= d:
            return np.arange(d)
        return np.random.default_rng(node.seed).permutation(d)

    def _install(
        self,
        node: Sprout,
        feature: int,
        value: float,
        lower: int,
        upper: int,
        fall: float,
        pair: list[tuple[np.ndarray, int]],
    ) -> None:
        """Give a node its test and two sides; ``pair`` has their sums and rows."""
        ends = self.least, self.greatest, self.first[feature]
        cut, threshold = placed_test(*ends, float(value), np.int32(lower), np.int32(upper))
        node.feature, node.cut, node.threshold = int(feature), int(cut), float(threshold)
        node.fall = float(fall)
        for seed, (sums, n) in zip(node.seeds(), pair, strict=True):
            if self.goal.n_classes:
                side = Sprout.of_classes(self.goal, node.depth + 1, seed, sums, n)
            else:
                side = Sprout.of_values(self.goal, node.depth + 1, seed, node.total, sums, n)
            node.children.append(side)

    # -- random tests ----------------------------------------------------------------------------

    def _draw(self, batch: list[tuple[int, Sprout]]) -> None:
        goal, K = self.goal, min(self.goal.rules.max_features, self.goal.n_features)
        partials = self._partials(batch)
        low, high = self._run(spanned, widest, partials, name="spans")
        features = np.full((len(batch), K), -1, np.int64)
        cuts, values = np.zeros((len(batch), K), np.int32), np.zeros((len(batch), K))
        for k, (_, node) in enumerate(batch):
            random = np.random.default_rng(node.seed)
            changing = np.flatnonzero(low[k] < high[k])
            drawn = random.permutation(changing)[:K]
            shares = random.random(len(drawn))
            for j, (f, share) in enumerate(zip(drawn, shares, strict=True)):
                at = self.first[f]
                bottom, ceiling = self.least[at + low[k, f]], self.greatest[at + high[k, f]]
                value = bottom * (1.0 - share) + ceiling * share
                value = value if bottom <= value < ceiling else bottom
                inside = self.greatest[at + low[k, f] : at + high[k, f]]
                steps = max(int(np.searchsorted(inside, value, side="right")) - 1, 0)
                features[k, j], cuts[k, j], values[k, j] = f, low[k, f] + steps, value
        found = self._run(parted, added_sides, partials, goal, features, cuts, name="sides")
        for k, (_, node) in enumerate(batch):
            if not goal.n_classes and (found.ends[0, k] == found.ends[1, k]).all():
                continue
            self._take_best(node, features[k], values[k], found, k)

    def _take_best(
        self, node: Sprout, features: np.ndarray, values: np.ndarray, found: Sides, k: int
    ) -> None:
        goal, rules = self.goal, self.goal.rules
        best, chosen, best_fall = -np.inf, -1, 0.0
        for j in np.flatnonzero(features >= 0):
            sums, sizes = found.sums[k, j], found.sizes[k, j]
            if goal.n_classes:
                left, right = float(sums[0].sum()), float(sums[1].sum())
                S_left, S_right, S = (self._sum(w) for w in (*sums, sums.sum(axis=0)))
            else:
                left, right = float(sums[0, 0]), float(sums[1, 0])
                apart = sums[:, 1:-1].sum(axis=0) / (left + right)
                S_left = S_right = float(np.sum((sums[0, 1:-1] - left * apart) ** 2))
                S = 0.0
            if sizes.min() < rules.min_samples_leaf:
                continue
            if min(left, right) < rules.min_weight_leaf or min(left, right) <= 0.0:
                continue
            args = goal.criterion, S_left, S_right, left, right, S, goal.n_outputs
            value, fall = judged(*args)
            if value > best + TIE * abs(best if np.isfinite(best) else 0.0):
                best, chosen, best_fall = value, int(j), fall
        if chosen < 0 or best_fall < rules.min_decrease:
            return
        pair = [(found.sums[k, chosen, s], int(found.sizes[k, chosen, s])) for s in (0, 1)]
        lower, upper = found.nearest[k, chosen].tolist()
        assert upper < LARGEST
        self._install(node, int(features[chosen]), values[chosen], lower, upper, best_fall, pair)

    def _sum(self, weights: np.ndarray) -> float:
        return float(sum_of_classes(self.goal.criterion, weights)[0])

    # -- nodes on one worker ---------------------------------------------------------------------

    def _grow_apart(self) -> None:
        if not self.apart:
            return
        nodes = sorted(self.apart, key=lambda pair: pair[0])
        partials = self._partials(nodes)
        lists = not self.goal.rules.random
        each = list(zip(self.materials, self.rows.starts(), strict=True))
        taken = self.rows.map(parcels, partials, lists, each=each, name="parcels")
        tasks = [
            self.cluster.task(
                grown_apart,
                [self.cluster.task(parcel, group, k) for group in taken],
                self.goal,
                node.seed,
                node.depth,
                name="subtree",
            )
            for k, (_, node) in enumerate(nodes)
        ]
        moved = sum(node.n for _, node in nodes) * self.rows.row_bytes
        self.cluster.distribution.bytes_between += int(moved)
        for (_, node), tree in zip(nodes, self.cluster.run(tasks, self.stopped), strict=True):
            node.subtree = tree
