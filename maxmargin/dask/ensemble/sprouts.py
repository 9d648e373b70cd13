"""Trees that are growing: nodes that are open, closed, or have a test, and the tree of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from maxmargin.backends.cpu.trees.grow import INNER_NODE, NODE, PURE, Nodes, Rules
from maxmargin.backends.cpu.trees.levels import sum_of_classes, two_seeds
from maxmargin.backends.cpu.trees.node import Scratch, Task
from maxmargin.ensemble.trees.tree import Tree


class Goal(NamedTuple):
    """What trees learn, and by which rules: classes of one output, or real numbers."""

    criterion: int
    n_classes: int  # zero for real numbers
    n_outputs: int
    n_features: int
    rules: Rules

    @property
    def statistics(self) -> int:
        """Numbers that a leaf has."""
        return self.n_classes or self.n_outputs

    def task(self, weighted: bool) -> Task:
        """What the search over tables wants to know."""
        weight = np.ones(1 if weighted else 0)
        labels = np.zeros((1, 1) if self.n_classes else (0, 0), np.int32)
        targets = np.zeros((0, 0) if self.n_classes else (self.n_outputs, 1))
        first = np.array([0, self.n_classes] if self.n_classes else [0], np.int64)
        return Task(self.criterion, first, labels, targets, weight)

    def scratch(self) -> Scratch:
        """Room for it."""
        none, some = np.empty(0), np.empty(self.statistics)
        ints = np.empty(0, np.int32)
        return Scratch(
            codes=ints,
            order=np.empty(0, np.uint32),
            keys=np.empty(0, np.int64),
            weights=none,
            labels=np.empty((0, 0), np.uint32),
            values=np.empty((0, 0)),
            total=some,
            left=some.copy(),
            segment=ints,
            end=ints,
            place=ints,
            table=none,
            counts=ints,
        )


@dataclass
class Sprout:
    """A node of a tree that grows.

    Attributes
    ----------
    depth, n : int
        Tests above it, and rows in it.
    seed : int
        Of what it draws at random: from its tree's and its place, so that nothing else matters.
    total : array
        Weights of the classes; or means of the targets.
    weight, impurity : float
    pure : bool
    """

    depth: int
    seed: int
    n: int
    total: np.ndarray
    weight: float
    impurity: float
    pure: bool
    feature: int = -1
    threshold: float = -np.inf
    cut: int = -1
    fall: float = 0.0
    children: list[Sprout] = field(default_factory=list)
    subtree: Tree | None = None
    done: bool = False

    @classmethod
    def of_classes(cls, goal: Goal, depth: int, seed: int, total: np.ndarray, n: int) -> Sprout:
        """Of the weights of classes."""
        weight = float(total.sum())
        here = float(sum_of_classes(goal.criterion, total)[1])
        return cls(depth, seed, n, total, weight, here, int((total > 0).sum()) < 2)

    @classmethod
    def of_values(
        cls, goal: Goal, depth: int, seed: int, centre: np.ndarray, sums: np.ndarray, n: int
    ) -> Sprout:
        """Of weight, sums and squares of targets about a centre."""
        weight = float(sums[0])
        apart = sums[1:-1] / weight
        squares = max(float(sums[-1] - weight * (apart @ apart)), 0.0)
        here = squares / (weight * goal.n_outputs)
        return cls(depth, seed, n, centre + apart, weight, here, n < 2)

    def may_part(self, rules: Rules) -> bool:
        """Whether the limits allow it two sides."""
        small = self.n < rules.min_samples_split or self.n < 2 * rules.min_samples_leaf
        deep = self.depth >= rules.max_depth
        return not (self.pure or small or deep or self.weight < 2.0 * rules.min_weight_leaf)

    def seeds(self) -> tuple[int, int]:
        """Return the seeds of its two sides."""
        left, right = two_seeds(np.uint64(self.seed))
        return int(left), int(right)


def flattened(root: Sprout, goal: Goal) -> tuple[Tree, dict[int, int]]:
    """Return the tree as it is, open nodes as leaves, and which node each sprout is."""
    tests, cuts, payload, facts = [], [], [], []
    values: list[np.ndarray] = []
    number: dict[int, int] = {}
    count, leaves, deepest = 0, 0, 0
    waiting: list[tuple[Sprout, int]] = [(root, -1)]
    rights: list[tuple[int, int]] = []  # parent, right child
    while waiting:
        node, parent = waiting.pop()
        if parent >= 0:
            rights.append((parent, count))
        number[id(node)] = count
        if node.subtree is not None:
            own = node.subtree.nodes
            moved = own.tests.copy()
            moved["right"] += count
            tests.append(moved)
            cuts.append(own.cuts)
            payload.append(np.where(own.payload >= 0, own.payload + leaves, own.payload))
            facts.append(own.facts)
            values.append(own.values)
            count, leaves = count + len(moved), leaves + len(own.values)
            deepest = max(deepest, node.depth + node.subtree.depth)
            continue
        deepest = max(deepest, node.depth)
        here = np.zeros(1, NODE)
        here["threshold"], here["feature"], here["right"] = node.threshold, node.feature, count
        tests.append(here)
        facts.append(np.array([[node.impurity, node.weight, node.n, node.fall]]))
        cuts.append(np.array([node.cut]))
        if node.children:
            payload.append(np.array([INNER_NODE]))
            left, right = node.children
            waiting += [(right, count), (left, -1)]
        else:
            here["feature"] = 0
            payload.append(np.array([_payload(node, goal, leaves)]))
            if payload[-1][0] >= 0:
                values.append(_values(node, goal))
                leaves += 1
        count += 1
    together = np.concatenate(tests)
    for above, below in rights:
        together["right"][above] = below
    nodes = Nodes(
        together,
        np.concatenate(cuts).astype(np.int32),
        np.concatenate(payload).astype(np.int32),
        np.concatenate(facts),
        np.concatenate([np.empty((0, goal.statistics)), *values]),
    )
    of = (goal.n_classes,) if goal.n_classes else ()
    return Tree(nodes, goal.n_features, goal.n_outputs, of, deepest), number


def _payload(node: Sprout, goal: Goal, leaves: int) -> int:
    if goal.n_classes and node.pure:
        return PURE - int(node.total.argmax())
    return leaves


def _values(node: Sprout, goal: Goal) -> Any:
    return (node.total / node.weight if goal.n_classes else node.total)[None]
