"""From columns, targets and weights to a tree: room is made and the compiled loop called."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from maxmargin.backends.cpu.trees.columns import SPARSE
from maxmargin.backends.cpu.trees.grow import (
    DEEPEST,
    DONE,
    FULL,
    INNER_NODE,
    LEAVES,
    NODE,
    NODES,
    TOP,
    Nodes,
    Rules,
    State,
    grow,
)
from maxmargin.backends.cpu.trees.node import Scratch, Task
from maxmargin.backends.cpu.trees.random_tests import grow_by_random_tests
from maxmargin.backends.cpu.trees.scores import ABSOLUTE, POISSON
from maxmargin.ensemble.trees.columns import BinnedColumns
from maxmargin.ensemble.trees.tree import Missing, Tree, larger_on_the_left, last_below

_WORK = 20_000_000  # codes that are looked at between two looks at the clock, about 0.05 s
_FIRST_NODES, _FIRST_LEAVES, _FIRST_STACK = 1024, 256, 64
_TABLE = 1 << 16  # sums of a table; larger ones leave the cache, and sorting is as fast
NO_LIMIT = 1 << 40
IN_ORDER = (ABSOLUTE, POISSON)  # criteria whose cuts are judged row after row


def never() -> None:
    """Return None: the stop check of work that is never stopped."""


@dataclass(frozen=True)
class Target:
    """What trees learn: classes or real numbers, one output or several.

    Attributes
    ----------
    criterion : int
        Of :mod:`~maxmargin.backends.cpu.trees.scores`.
    n_classes : tuple of int
        Of each output; empty for real numbers.
    classes : int32 array of shape (n_outputs, n), or (0, 0)
    values : float array of shape (n_outputs, n), or (0, 0)
    """

    criterion: int
    n_classes: tuple[int, ...]
    classes: np.ndarray
    values: np.ndarray

    @classmethod
    def of_classes(cls, index: np.ndarray, n_classes: Any, criterion: int) -> Target:
        """Of indices of classes, (n,) or (n_outputs, n)."""
        index = _plain(np.atleast_2d(index), np.int32)
        counts = (n_classes,) if np.ndim(n_classes) == 0 else tuple(n_classes)
        return cls(criterion, tuple(map(int, counts)), index, np.empty((0, 0)))

    @classmethod
    def of_values(cls, values: np.ndarray, criterion: int) -> Target:
        """Of real numbers, (n,) or (n_outputs, n)."""
        values = _plain(np.atleast_2d(values), np.float64)
        return cls(criterion, (), np.empty((0, 0), np.int32), values)

    @property
    def n_outputs(self) -> int:
        """Outputs."""
        return len(self.classes) or len(self.values)

    @property
    def n_rows(self) -> int:
        """Rows."""
        return max(self.classes.shape[1], self.values.shape[1])

    @property
    def statistics(self) -> int:
        """Numbers that a leaf has."""
        return sum(self.n_classes) or self.n_outputs


class Grower:
    """Grows trees from the same columns, one after the other, in the same room; of one thread.

    Parameters
    ----------
    columns : BinnedColumns
    target : Target
    """

    def __init__(self, columns: BinnedColumns, target: Target) -> None:
        self.columns, self.target = columns, target
        self._by_class: np.ndarray | None = None
        self._scratch: Scratch | None = None
        self._nodes = _room(_FIRST_NODES, _FIRST_LEAVES, target.statistics, False)

    def grow(
        self,
        rules: Rules,
        weight: np.ndarray | None,
        seed: int,
        stopped: Callable[[], Any] = never,
    ) -> tuple[Tree, np.ndarray]:
        """Grow a tree on the rows of positive weight; returns it, and the leaf of each such row.

        Other rows have the leaf -1. ``stopped`` is called several times a second, and may raise;
        once it returns a status, all nodes that are not split yet become leaves, and a node in
        progress takes the best test that it has found.
        """
        rows = self._rows(weight)
        if not len(rows):
            raise ValueError("No row has a positive weight: there is nothing to grow a tree from.")
        if weight is not None:
            chosen = weight[rows]
            if chosen.min() == chosen.max() == 1.0:
                weight = None
        target = self.target
        task = Task(
            target.criterion,
            np.cumsum([0, *target.n_classes], dtype=np.int64),
            target.classes,
            target.values,
            np.empty(0) if weight is None else _plain(weight, np.float64),
        )
        store = self.columns.store
        where = np.empty(0, np.int32)
        sparse = (store.kind == SPARSE).any()
        if sparse or ((store.listed >= 0).any() and not rules.random):
            where = np.full(self.columns.n_rows, -1, np.int32)
            where[rows] = np.arange(len(rows), dtype=np.int32)
        state = State(
            rows=rows,
            where=where,
            features=np.arange(len(store.kind), dtype=np.int32),
            stack=np.zeros((_FIRST_STACK, 5), np.int64),
            counters=np.array([1, 0, 0, 0], np.int64),
            random=np.array([seed], np.uint64),
            leaf=np.full(self.columns.n_rows, -1, np.int32),
            node=np.zeros(5, np.int64),
            best=np.zeros(4),
            bounds=np.full((_FIRST_STACK, 2), [-np.inf, np.inf]),
        )
        state.stack[0] = 0, len(rows), 0, -1, 0
        ordered = target.criterion in IN_ORDER or len(rules.directions) > 0
        nodes = self._nodes
        if ordered != bool(len(nodes.means)):
            nodes = _room(_FIRST_NODES, _FIRST_LEAVES, target.statistics, ordered)
        searching = ordered or not rules.random
        scratch = self._room(len(rows), weight is not None, searching)
        go_on = grow if searching else grow_by_random_tests
        while (status := go_on(store, task, rules, nodes, state, scratch, _WORK)) != DONE:
            if stopped():
                rules = rules._replace(max_depth=-1)
            if status == FULL:
                nodes, state = _more(nodes, state)
        self._nodes = nodes  # as large as the next tree will need them
        return self._tree(nodes, state), state.leaf

    def _rows(self, weight: np.ndarray | None) -> np.ndarray:
        """Rows of positive weight, grouped by their class where there is one output."""
        single = len(self.target.classes) == 1
        if self._by_class is None:
            n = self.target.n_rows
            index = self.target.classes[0] if single else None
            self._by_class = (
                np.arange(n, dtype=np.uint32)
                if index is None
                else np.argsort(index, kind="stable").astype(np.uint32)
            )
        if weight is None:
            return self._by_class.copy()
        return self._by_class[weight[self._by_class] > 0]

    def _room(self, n: int, weighted: bool, searching: bool) -> Scratch:
        """Make room for the work on nodes of up to so many rows, or take that of the last tree."""
        target, last = self.target, self._scratch
        needed = n, n * weighted, n * searching
        if last is not None and all(
            len(array) >= size
            for array, size in zip((last.codes, last.weights, last.keys), needed, strict=True)
        ):
            return last
        outputs, classes = target.n_outputs, len(target.n_classes)
        labelled = outputs if classes > 1 or (classes and searching) else 0
        if target.criterion == ABSOLUTE:
            labelled = outputs
        most = int(np.diff(self.columns.store.first).max(initial=1)) if searching else 0
        self._scratch = Scratch(
            codes=np.empty(n, np.int32),
            order=np.empty(n, np.uint32),
            keys=np.empty(n if searching else 0, np.int64),
            weights=np.empty(n if weighted else 0),
            labels=np.empty((labelled, n if labelled else 0), np.uint32),
            values=np.empty((0, 0) if classes else (outputs, n)),
            total=np.empty(target.statistics),
            left=np.empty(target.statistics),
            segment=np.empty(max(target.n_classes, default=0), np.int32),
            end=np.empty(max(target.n_classes, default=0), np.int32),
            place=np.zeros(max(target.n_classes, default=0), np.int32),
            table=np.empty(_TABLE if searching else 0),
            counts=np.empty(max(most + 1, _TABLE) if searching else 0, np.int32),
        )
        return self._scratch

    def _tree(self, nodes: Nodes, state: State) -> Tree:
        m, leaves, leaf = state.counters[NODES], state.counters[LEAVES], state.leaf
        own = Nodes(
            tests=nodes.tests[:m].copy(),
            cuts=nodes.cuts[:m].copy(),
            payload=nodes.payload[:m].copy(),
            facts=nodes.facts[:m].copy(),
            values=nodes.values[:leaves].copy(),
            means=nodes.means[:m].copy(),
        )
        missing = None
        if len(self.columns.again):
            missing = self._missing(own, leaf)
            own.tests["feature"] = self.columns.feature[own.tests["feature"]]
        return Tree(
            own,
            n_features=self.columns.n_features,
            n_outputs=self.target.n_outputs,
            class_counts=self.target.n_classes,
            depth=int(state.counters[DEEPEST]),
            missing=missing,
        )

    def _missing(self, nodes: Nodes, leaf: np.ndarray) -> Missing:
        """Return where missing values go: as the training rows, or to the child with more rows."""
        columns, d = nodes.tests["feature"].copy(), self.columns.n_features
        inner = nodes.payload == INNER_NODE
        left = larger_on_the_left(nodes)
        last = last_below(nodes)
        for k, f in enumerate(self.columns.again):
            where = np.sort(leaf[np.isnan(self.columns.values(f))[self.columns.codes(f)]])
            for column in (f, d + k):
                own = np.flatnonzero(inner & (columns == column))
                there = np.searchsorted(where, own) < np.searchsorted(where, last[own], "right")
                left[own[there]] = column >= d
        return Missing(left, columns)


def _plain(array: np.ndarray, dtype: Any) -> np.ndarray:
    """Return an array that can be written to: others are a type that is compiled once more."""
    return np.require(array, dtype, ["C", "W"])


def _room(nodes: int, leaves: int, statistics: int, ordered: bool) -> Nodes:
    return Nodes(
        tests=np.zeros(nodes, NODE),
        cuts=np.empty(nodes, np.int32),
        payload=np.empty(nodes, np.int32),
        facts=np.empty((nodes, 4)),
        values=np.empty((leaves, statistics)),
        means=np.empty((nodes if ordered else 0, statistics)),
    )


def _more(nodes: Nodes, state: State) -> tuple[Nodes, State]:
    """Double what is full."""
    m, leaves, top = (int(state.counters[k]) for k in (NODES, LEAVES, TOP))
    size, values = len(nodes.tests), len(nodes.values)
    if m >= size or leaves >= values:
        larger = _room(
            2 * size if m >= size else size,
            2 * values if leaves >= values else values,
            nodes.values.shape[1],
            len(nodes.means) > 0,
        )
        for old, new in zip(nodes, larger, strict=True):
            new[: len(old)] = old
        nodes = larger
    if top + 1 >= len(state.stack):
        state = state._replace(
            stack=np.concatenate([state.stack, np.zeros_like(state.stack)]),
            bounds=np.concatenate([state.bounds, np.zeros_like(state.bounds)]),
        )
    return nodes, state


def count_of_features(max_features: Any, n_features: int) -> int:
    """K: how many columns a node tries.

    >>> count_of_features("sqrt", 54), count_of_features(0.5, 54), count_of_features(None, 54)
    (7, 27, 54)
    """
    if max_features is None:
        return n_features
    if isinstance(max_features, str):
        return max(1, int({"sqrt": np.sqrt, "log2": np.log2}[max_features](n_features)))
    if isinstance(max_features, int | np.integer):
        if max_features > n_features:
            raise ValueError(
                f"max_features={max_features} asks each node to try more columns than the "
                f"{n_features} there are: give at most {n_features}, or None for all."
            )
        return int(max_features)
    return max(1, int(max_features * n_features))


def deepest(machine: Any) -> int:
    """Greatest depth that ``max_depth`` and ``max_leaf_nodes`` allow."""
    depth = NO_LIMIT if machine.max_depth is None else int(machine.max_depth)
    return depth if machine.max_leaf_nodes is None else min(depth, int(machine.max_leaf_nodes) - 1)


def rules_of(machine: Any, n_rows: int, n_features: int, total_weight: float) -> Rules:
    """Read the limits on tests and leaves off an estimator's parameters, as scikit-learn does."""
    leaf, split = machine.min_samples_leaf, machine.min_samples_split
    leaf = leaf if isinstance(leaf, int | np.integer) else int(np.ceil(leaf * n_rows))
    if not isinstance(split, int | np.integer):
        split = max(2, int(np.ceil(split * n_rows)))
    return Rules(
        random=machine.splitter == "random",
        max_features=count_of_features(machine.max_features, n_features),
        max_depth=deepest(machine),
        min_samples_split=int(max(split, 2 * leaf)),
        min_samples_leaf=int(max(leaf, 1)),
        min_weight_leaf=float(machine.min_weight_fraction_leaf * total_weight),
        min_decrease=float(machine.min_impurity_decrease * total_weight),
        directions=directions_of(machine, n_features),
    )


def directions_of(machine: Any, n_features: int) -> np.ndarray:
    """Return ``monotonic_cst``, checked: +1, -1 or 0 of each column, (0,) where all are zero."""
    if machine.monotonic_cst is None:
        return np.empty(0, np.int8)
    if machine.n_outputs_ > 1:
        raise ValueError("Monotonicity constraints are not supported with multiple outputs.")
    if np.max(getattr(machine, "n_classes_", 2)) > 2:
        raise ValueError(
            "Monotonicity constraints are not supported with multiclass classification"
        )
    given = np.asarray(machine.monotonic_cst)
    if given.shape != (n_features,):
        raise ValueError(
            f"monotonic_cst has shape {given.shape[0] if given.ndim else ()} but the input data X "
            f"has {n_features} features."
        )
    if not np.isin(given, (-1, 0, 1)).all():
        raise ValueError(
            "monotonic_cst must be None or an array-like of -1, 0 or 1, but got "
            f"{np.unique(given).tolist()}."
        )
    return given.astype(np.int8) if given.any() else np.empty(0, np.int8)
