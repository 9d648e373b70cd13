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
from typing import Any, NamedTuple

import numpy as np
from dask.delayed import Delayed

from maxmargin.backends.cpu.trees.grow import Nodes
from maxmargin.backends.cpu.trees.levels import (
    LARGEST,
    add_codes,
    add_labels,
    best_of_node,
    judged,
    placed_test,
    sides,
    spans,
    sum_of_classes,
)
from maxmargin.backends.cpu.trees.walk import leaves_of_codes
from maxmargin.dask.ensemble.columns import Coded, CodedRows
from maxmargin.dask.ensemble.sprouts import Goal, Sprout, flattened
from maxmargin.ensemble.trees.columns import BinnedColumns
from maxmargin.ensemble.trees.growth import Grower, Target
from maxmargin.ensemble.trees.tree import Tree

APART = 1 << 25  # bytes of rows that are brought together on one worker for a subtree
_LITTLE = 1 << 20  # bytes that are sent in the time of a pass
_TABLES = 1 << 26  # bytes of tables of one pass


class Material(NamedTuple):
    """What trees learn from the rows of a worker: targets, and weights for each tree or None.

    Targets are the same for all trees, or a list of those for each.
    """

    y: Any
    weights: list[np.ndarray | None]

    def target(self, tree: int) -> np.ndarray:
        """Targets of a tree."""
        return self.y[tree] if isinstance(self.y, list) else self.y


class Partial(NamedTuple):
    """A tree as it is, which of its leaves are asked about, and centres of their targets."""

    tree: int
    nodes: Nodes
    local: np.ndarray
    centres: np.ndarray


# -- work of a worker ----------------------------------------------------------------------------


def placed(rows: Coded, material: Material, partial: Partial) -> np.ndarray:
    """Which of the open nodes each row is in, -1 for none."""
    every = np.arange(rows.n)
    at = np.zeros(rows.n, np.int32)
    if len(partial.local) > 1:
        leaves_of_codes(partial.nodes, rows.columns.store, every, at)
    at = partial.local[at]
    weight = material.weights[partial.tree]
    if weight is not None:
        at[weight <= 0] = -1
    return at


def _entries(
    material: Material, partial: Partial, at: np.ndarray, goal: Goal
) -> tuple[np.ndarray, np.ndarray]:
    """Weight, targets about the centre of a row's node times it, and squares; and the weights."""
    weight = material.weights[partial.tree]
    w = np.ones(len(at)) if weight is None else weight
    apart = material.target(partial.tree) - partial.centres[at].T  # rows of no node have any centre
    squares = w * np.sum(apart**2, axis=0)
    return np.column_stack([w, (w * apart).T, squares]), np.empty(0) if weight is None else weight


class Tables(NamedTuple):
    """Sums over rows at each code of each node, of all rows of a node, and spans of targets."""

    tables: np.ndarray
    counts: np.ndarray
    sums: np.ndarray
    sizes: np.ndarray
    ends: np.ndarray  # (2, nodes, outputs)


def tabled(
    rows: Coded, material: Material, partials: list[Partial], goal: Goal, with_codes: bool
) -> Tables:
    """Tables of the open nodes of some trees; without codes sums alone."""
    total = sum(len(p.centres) for p in partials)
    codes = int(rows.columns.store.first[-1]) if with_codes else 0
    numbers = goal.n_classes or goal.n_outputs + 2
    weighted = any(w is not None for w in material.weights)
    tables = np.zeros((total, codes, numbers))
    counts = np.zeros((total if weighted else 0, codes), np.int32)
    sums, sizes = np.zeros((total, numbers)), np.zeros(total, np.int64)
    outputs = 0 if goal.n_classes else goal.n_outputs
    ends = np.stack([np.full((total, outputs), np.inf), np.full((total, outputs), -np.inf)])
    store, begin = rows.columns.store, 0
    if not with_codes:  # columns without codes
        store = store._replace(kind=store.kind[:0])
    for partial in partials:
        own = slice(begin, begin + len(partial.centres))
        begin = own.stop
        at = placed(rows, material, partial)
        some = tables[own], counts[own], sums[own], sizes[own]
        weight = material.weights[partial.tree]
        if goal.n_classes:
            add_labels(store, at, material.y, np.empty(0) if weight is None else weight, *some)
            continue
        entries, weight = _entries(material, partial, at, goal)
        add_codes(store, at, entries, len(weight) > 0, *some)
        there = at >= 0
        for o in range(outputs):
            values = material.target(partial.tree)[o, there]
            np.minimum.at(ends[0, own, o], at[there], values)
            np.maximum.at(ends[1, own, o], at[there], values)
    return Tables(tables, counts, sums, sizes, ends)


def added(parts: list[Tables]) -> Tables:
    """Tables of the rows of several workers."""
    first, *others = parts
    tables, counts, sums, sizes = (np.array(part) for part in first[:4])
    for part in others:
        tables += part.tables
        counts += part.counts
        sums += part.sums
        sizes += part.sizes
    ends = np.stack(
        [np.min([p.ends[0] for p in parts], axis=0), np.max([p.ends[1] for p in parts], axis=0)]
    )
    return Tables(tables, counts, sums, sizes, ends)


def spanned(rows: Coded, material: Material, partials: list[Partial]) -> np.ndarray:
    """Least and greatest code of each column in each open node: (2, nodes, columns)."""
    found = []
    for partial in partials:
        shape = len(partial.centres), rows.columns.n_features
        low, high = np.empty(shape, np.int32), np.empty(shape, np.int32)
        spans(rows.columns.store, placed(rows, material, partial), low, high)
        found.append(np.stack([low, high]))
    return np.concatenate(found, axis=1)


def widest(parts: list[np.ndarray]) -> np.ndarray:
    """Spans over several workers."""
    return np.stack([np.min([p[0] for p in parts], axis=0), np.max([p[1] for p in parts], axis=0)])


class Sides(NamedTuple):
    """Sums over the two sides of tests of each node."""

    sums: np.ndarray
    sizes: np.ndarray
    nearest: np.ndarray
    ends: np.ndarray


def parted(
    rows: Coded,
    material: Material,
    partials: list[Partial],
    goal: Goal,
    features: np.ndarray,
    cuts: np.ndarray,
) -> Sides:
    """Sums over the sides of tests, (nodes, tests) features and cuts."""
    total, tests = features.shape
    numbers = goal.n_classes or goal.n_outputs + 2
    sums, sizes = np.zeros((total, tests, 2, numbers)), np.zeros((total, tests, 2), np.int64)
    nearest = np.empty((total, tests, 2), np.int32)
    outputs = 0 if goal.n_classes else goal.n_outputs
    ends = np.stack([np.full((total, outputs), np.inf), np.full((total, outputs), -np.inf)])
    labels = material.y if goal.n_classes else np.empty(0, np.int32)
    begin = 0
    for partial in partials:
        own = slice(begin, begin + len(partial.centres))
        begin = own.stop
        at = placed(rows, material, partial)
        weight = material.weights[partial.tree]
        weight = np.empty(0) if weight is None else weight
        entries = np.empty((0, 0))
        if not goal.n_classes:
            entries, weight = _entries(material, partial, at, goal)
            there = at >= 0
            for o in range(outputs):
                values = material.target(partial.tree)[o, there]
                np.minimum.at(ends[0, own, o], at[there], values)
                np.maximum.at(ends[1, own, o], at[there], values)
        some = sums[own], sizes[own], nearest[own]
        store = rows.columns.store
        sides(store, at, features[own], cuts[own], labels, entries, weight, *some)
    return Sides(sums, sizes, nearest, ends)


def added_sides(parts: list[Sides]) -> Sides:
    """Sums over the rows of several workers."""
    nearest = np.stack(
        [
            np.max([p.nearest[..., 0] for p in parts], axis=0),
            np.min([p.nearest[..., 1] for p in parts], axis=0),
        ],
        axis=-1,
    )
    ends = np.stack(
        [np.min([p.ends[0] for p in parts], axis=0), np.max([p.ends[1] for p in parts], axis=0)]
    )
    return Sides(
        np.sum([p.sums for p in parts], axis=0),
        np.sum([p.sizes for p in parts], axis=0),
        nearest,
        ends,
    )


class Parcel(NamedTuple):
    """The rows of a node that lie with one worker."""

    columns: BinnedColumns
    y: np.ndarray
    weight: np.ndarray | None


def parcels(rows: Coded, material: Material, partials: list[Partial], lists: bool) -> list[Parcel]:
    """Take the rows of nodes apart, a parcel for each."""
    found = []
    for partial in partials:
        at = placed(rows, material, partial)
        order = np.argsort(at, kind="stable")
        ends = np.searchsorted(at[order], np.arange(len(partial.centres) + 1))
        weight = material.weights[partial.tree]
        for a, b in zip(ends[:-1], ends[1:], strict=True):
            own = order[a:b]
            columns = BinnedColumns.stacked([rows.columns], [own], lists)
            kept = None if weight is None else weight[own]
            found.append(Parcel(columns, material.target(partial.tree)[..., own], kept))
    return found


def parcel(all_of_them: list[Parcel], k: int) -> Parcel:
    """One of them, to be sent."""
    return all_of_them[k]


def grown_apart(parts: list[Parcel], goal: Goal, seed: int, depth: int) -> Tree:
    """Grow the subtree of a node from all its rows."""
    lists = not goal.rules.random
    columns = BinnedColumns.stacked([part.columns for part in parts], lists=lists)
    y = np.concatenate([part.y for part in parts], axis=-1)
    weight = None
    if parts[0].weight is not None:
        weight = np.concatenate([part.weight for part in parts])  # type: ignore[misc]
    target = (
        Target.of_classes(y, goal.n_classes, goal.criterion)
        if goal.n_classes
        else Target.of_values(y, goal.criterion)
    )
    rules = goal.rules._replace(max_depth=goal.rules.max_depth - depth)
    return Grower(columns, target).grow(rules, weight, seed)[0]


# -- the growth ----------------------------------------------------------------------------------


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
        table = 8.0 * self.first[-1] * self.numbers * len(self.rows.groups)
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
                (table[: cut + 1].sum(axis=0), int(round(float(there[: cut + 1].sum())))),
                (table[cut + 1 :].sum(axis=0), int(round(float(there[cut + 1 :].sum())))),
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
            if value > best:
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
        each = [(m,) for m in self.materials]
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
