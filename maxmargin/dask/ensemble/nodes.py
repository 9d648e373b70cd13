"""Rows of open nodes, as a worker sees them: sums over them, and the rows themselves."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from maxmargin.backends.cpu.trees.grow import Nodes
from maxmargin.backends.cpu.trees.levels import add_codes, add_labels, sides, spans
from maxmargin.backends.cpu.trees.walk import leaves_of_codes
from maxmargin.dask.ensemble.columns import Coded
from maxmargin.dask.ensemble.sprouts import Goal
from maxmargin.ensemble.trees.columns import BinnedColumns
from maxmargin.ensemble.trees.growth import Grower, Target
from maxmargin.ensemble.trees.tree import Tree


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


def placed(rows: Coded, material: Material, partial: Partial) -> np.ndarray:
    """Which of the open nodes each row is in, -1 for none."""
    every = np.arange(rows.n)
    at = np.zeros(rows.n, np.int32)
    if len(partial.local) > 1:
        none = np.empty(0, np.uint8)  # missing values
        leaves_of_codes(partial.nodes, none, rows.columns.store, every, at)
    at = partial.local[at]
    weight = material.weights[partial.tree]
    if weight is not None:
        at[weight <= 0] = -1
    return at


def _entries(material: Material, partial: Partial, at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Weight, targets about the centre of a row's node times it, and squares; and the weights."""
    weight = material.weights[partial.tree]
    w = np.ones(len(at)) if weight is None else weight
    apart = material.target(partial.tree) - partial.centres[at].T  # rows of no node have any centre
    squares = w * np.sum(apart**2, axis=0)
    return np.column_stack([w, (w * apart).T, squares]), np.empty(0) if weight is None else weight


def _no_ends(nodes: int, outputs: int) -> np.ndarray:
    """Spans of the targets of nodes that have no rows: (2, nodes, outputs)."""
    return np.stack([np.full((nodes, outputs), np.inf), np.full((nodes, outputs), -np.inf)])


def _widen(ends: np.ndarray, at: np.ndarray, targets: np.ndarray) -> None:
    """Widen spans, in place, by the targets (outputs, n) of rows that are in nodes ``at``."""
    there = at >= 0
    for o, values in enumerate(targets[:, there]):
        np.minimum.at(ends[0, :, o], at[there], values)
        np.maximum.at(ends[1, :, o], at[there], values)


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
    ends = _no_ends(total, outputs)
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
        entries, weight = _entries(material, partial, at)
        add_codes(store, at, entries, len(weight) > 0, *some)
        _widen(ends[:, own], at, material.target(partial.tree))
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
    return Tables(tables, counts, sums, sizes, widest([part.ends for part in parts]))


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
    """Spans over several workers, least ends first."""
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
    ends = _no_ends(total, outputs)
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
            entries, weight = _entries(material, partial, at)
            _widen(ends[:, own], at, material.target(partial.tree))
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
    return Sides(
        np.sum([p.sums for p in parts], axis=0),
        np.sum([p.sizes for p in parts], axis=0),
        nearest,
        widest([p.ends for p in parts]),
    )


class Parcel(NamedTuple):
    """The rows of a node that lie with one worker, and their places among all."""

    places: np.ndarray
    columns: BinnedColumns
    y: np.ndarray
    weight: np.ndarray | None


def parcels(
    rows: Coded, material: Material, starts: list[int], partials: list[Partial], lists: bool
) -> list[Parcel]:
    """Take the rows of nodes apart, a parcel for each; partitions begin at ``starts``."""
    stretches = zip(starts, rows.pieces, strict=True)
    places = np.concatenate([np.arange(start, start + n) for start, (_, n) in stretches])
    found = []
    for partial in partials:
        at = placed(rows, material, partial)
        order = np.argsort(at, kind="stable")
        ends = np.searchsorted(at[order], np.arange(len(partial.centres) + 1))
        weight = material.weights[partial.tree]
        for a, b in pairwise(ends):
            own = order[a:b]
            columns = BinnedColumns.stacked([rows.columns], [own], lists)
            kept = None if weight is None else weight[own]
            found.append(
                Parcel(places[own], columns, material.target(partial.tree)[..., own], kept)
            )
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
    order = np.argsort(np.concatenate([part.places for part in parts]))
    if (np.diff(order) < 0).any():  # sums are rounded in the order of the rows, and ties follow
        columns = BinnedColumns.stacked([columns], [order], lists)
        y, weight = y[..., order], None if weight is None else weight[order]
    target = (
        Target.of_classes(y, goal.n_classes, goal.criterion)
        if goal.n_classes
        else Target.of_values(y, goal.criterion)
    )
    rules = goal.rules._replace(max_depth=goal.rules.max_depth - depth)
    return Grower(columns, target).grow(rules, weight, seed)[0]
