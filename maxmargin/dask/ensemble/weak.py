"""Weak learners whose rows lie with the workers: stumps by one sum of tables, trees by levels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from dask.delayed import Delayed
from sklearn.base import clone

from maxmargin.backends.cpu.trees.stump import best_of_tables, tables_of
from maxmargin.dask.ensemble.columns import Coded, CodedRows
from maxmargin.dask.ensemble.levels import LevelGrowth
from maxmargin.dask.ensemble.nodes import Material
from maxmargin.dask.ensemble.trees import goal_of, keep_tree
from maxmargin.dask.reductions import summed
from maxmargin.ensemble.boosting.rounds import Votes
from maxmargin.ensemble.boosting.stump import DecisionStump, threshold_at
from maxmargin.ensemble.boosting.weak import classes_of_nodes
from maxmargin.ensemble.trees.columns import BinnedColumns
from maxmargin.ensemble.trees.tree import Tree

_SURE = 1e-6  # error above which sums of all weights say it well enough


class StumpOnCodes(NamedTuple):
    """A stump as a test of codes: what workers need of it."""

    feature: int
    cut: int
    left: int
    right: int

    def at(self, columns: BinnedColumns) -> np.ndarray:
        """Index of the class that it has for each row."""
        if self.feature < 0:
            return np.full(columns.n_rows, self.left)
        return np.where(columns.codes(self.feature) > self.cut, self.right, self.left)


class Facts(NamedTuple):
    """Sums over rows: weights of the classes, of wrong rows by D_1, how many count, least u."""

    total: np.ndarray
    wrong: float
    rows: int
    least: float

    @classmethod
    def of(cls, votes: Votes, weights: np.ndarray, n_classes: int) -> Facts:
        """Of the rows of a worker."""
        total = np.bincount(votes.index, weights=weights, minlength=n_classes)
        used = votes.weight > 0
        least = float(np.min(votes.u, where=used, initial=np.inf))
        return cls(total, votes.wrong(), int(used.sum()), least)


class TreeOnCodes(NamedTuple):
    """A tree as tests of codes, and a number for each of its nodes: a class, or a value."""

    tree: Tree
    of_nodes: np.ndarray

    def at(self, columns: BinnedColumns) -> np.ndarray:
        """Return the number of the leaf of each row."""
        return self.of_nodes[self.tree.apply_binned(columns)]


def on_codes(tree: Tree, rows: CodedRows) -> Tree:
    """Return a tree that knows thresholds with the cuts of these codes."""
    cuts = tree.nodes.cuts.copy()
    for node in np.flatnonzero(~tree.is_leaf):
        test = tree.nodes.tests[node]
        ends = rows.ends[test["feature"]][1]
        cuts[node] = np.searchsorted(ends, test["threshold"], side="right") - 1
    nodes = tree.nodes._replace(cuts=cuts)
    return Tree(nodes, tree.n_features, tree.n_outputs, tree.class_counts, tree.depth)


# -- work of a worker ----------------------------------------------------------------------------


def stump_tables(
    rows: Coded, votes: Votes, shift: float, n_classes: int
) -> tuple[np.ndarray, Facts]:
    """Weights of the classes at each code, of two classes their difference, and what else is."""
    weights = votes.weights(shift)
    facts = Facts.of(votes, weights, n_classes)
    store = rows.columns.store
    tables = np.zeros((len(store.greatest), 1 if n_classes == 2 else n_classes))
    most = int(np.diff(store.first).max(initial=1))
    if n_classes == 2:
        weights = np.where(rows.y == 1, weights, -weights)
    tables_of(store, rows.y, weights, facts.total, tables, np.empty(4 * (most + 1)))
    return tables, facts


def added(parts: list[tuple]) -> tuple:
    """Sum of tables and facts."""
    return np.sum([tables for tables, _ in parts], axis=0), together([own for _, own in parts])


def together(parts: list[Facts]) -> Facts:
    """Facts of several workers."""
    return Facts(
        np.sum([own.total for own in parts], axis=0),
        sum(own.wrong for own in parts),
        sum(own.rows for own in parts),
        min(own.least for own in parts),
    )


def facts_of(rows: Coded, votes: Votes, shift: float, n_classes: int) -> Facts:
    """Facts alone."""
    return Facts.of(votes, votes.weights(shift), n_classes)


def mistakes(rows: Coded, votes: Votes, hypothesis: Any, shift: float) -> np.ndarray:
    """Weight of the rows that a hypothesis misclassifies, and how many these are."""
    wrong = hypothesis.at(rows.columns) != rows.y
    weights = votes.weights(shift)
    return np.array([weights @ wrong, np.count_nonzero(wrong & (votes.weight > 0)), weights.sum()])


def weighed(rows: Coded, votes: Votes, shift: float, factor: float) -> Material:
    """What a tree of a round learns from the rows of a worker."""
    return Material(rows.y, [factor * votes.weights(shift)])


# -- weak learners -------------------------------------------------------------------------------


class Found(NamedTuple):
    """A hypothesis, the same on codes, its error and whether it makes one, and facts."""

    hypothesis: Any
    on_codes: Any
    error: float
    flawed: bool
    facts: Facts


@dataclass
class Stumps:
    """The stump of the least error, from tables of all rows."""

    prototype: DecisionStump
    rows: CodedRows
    classes: np.ndarray

    def __post_init__(self) -> None:
        self.first, self.least, self.greatest = self.rows.first, self.rows.least, self.rows.greatest

    def on_codes(self, stump: DecisionStump) -> StumpOnCodes:
        """Return a stump that knows a threshold as a test of codes."""
        f, cut = stump.feature_, -1
        if f >= 0:
            cut = int(np.searchsorted(self.rows.ends[f][1], stump.threshold_, side="right")) - 1
        return StumpOnCodes(f, cut, *stump._sides)

    def learn(
        self, votes: list[Delayed], shift: float, seed: int, stopped: Callable[[], Any]
    ) -> Found:
        """Return the best stump for the weights that the votes make."""
        cluster, K = self.rows.cluster, len(self.classes)
        tasks = self.rows.map(stump_tables, shift, K, each=[(v,) for v in votes], name="tables")
        ((tables, facts),) = cluster.run([cluster.total(tasks, added)], stopped)
        cluster.distribution.bytes_between += tables.nbytes * len(tasks)
        total = facts.total
        most = int(np.argmax(total))
        found = np.array([-1, -1, most, most], np.int64)
        best = best_of_tables(self.first, tables, total, float(total[most]), found, np.empty(K))
        on_codes = StumpOnCodes(*found.tolist())
        stump = clone(self.prototype)
        ends = self.first, self.least, self.greatest
        threshold = threshold_at(*ends, on_codes.feature, on_codes.cut)
        sides = on_codes.left, on_codes.right
        stump._keep(on_codes.feature, threshold, sides, self.classes, self.rows.n_features)
        error = 1.0 - best / float(total.sum())
        return judged(self.rows, votes, shift, Found(stump, on_codes, error, True, facts), stopped)


def judged(
    rows: CodedRows, votes: list[Delayed], shift: float, found: Found, stopped: Callable[[], Any]
) -> Found:
    """Return what was found, with the error by the rows themselves where it may be rounding."""
    if found.error > _SURE:
        return found
    cluster = rows.cluster
    each = [(v, found.on_codes) for v in votes]
    tasks = rows.map(mistakes, shift, each=each, name="mistakes")
    (sums,) = cluster.run([cluster.total(tasks, summed)], stopped)
    return found._replace(error=float(sums[0] / sums[2]), flawed=bool(sums[1] > 0))


@dataclass
class Trees:
    """A tree that is grown level by level for the weights of a round."""

    prototype: Any
    rows: CodedRows
    classes: np.ndarray

    def on_codes(self, tree: Any) -> TreeOnCodes:
        """Return a tree that knows thresholds as tests of codes."""
        return TreeOnCodes(on_codes(tree.tree_, self.rows), classes_of_nodes(tree))

    def learn(
        self, votes: list[Delayed], shift: float, seed: int, stopped: Callable[[], Any]
    ) -> Found:
        """Return a tree for the weights that the votes make."""
        rows, cluster = self.rows, self.rows.cluster
        each = [(v,) for v in votes]
        tasks = rows.map(facts_of, shift, len(self.classes), each=each, name="facts")
        (facts,) = cluster.run([cluster.total(tasks, together)], stopped)
        factor = facts.rows / float(facts.total.sum())
        materials = cluster.keep(rows.map(weighed, shift, factor, each=each, name="weights"))
        tree = clone(self.prototype)
        tree._keep_classes([self.classes])
        goal = goal_of(tree, tree, facts.rows, rows.n_features, float(facts.rows))
        (grown,) = LevelGrowth(rows, goal, materials, [seed], True, stopped).grow()
        keep_tree(tree, grown, goal)
        found = Found(tree, TreeOnCodes(tree.tree_, classes_of_nodes(tree)), 0.0, True, facts)
        return judged(rows, votes, shift, found, stopped)
