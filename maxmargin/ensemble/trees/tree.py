"""A grown tree: its nodes as arrays, where rows end in it, and how it reads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from maxmargin.backends.cpu.trees.grow import FALL, IMPURITY, INNER_NODE, SIZE, WEIGHT, Nodes
from maxmargin.backends.cpu.trees.walk import add_leaves, leaves_of, leaves_of_codes
from maxmargin.backends.threads import ALONE, Workers
from maxmargin.ensemble.trees.columns import BinnedColumns

_BLOCK = 4096  # rows that go down one tree after the other
_WRITTEN = 1 << 20  # entries of sparse rows that are written out at a time


@dataclass(frozen=True)
class Tree:
    """Nodes in preorder: the left child of node t is t + 1. ``x[feature] <= threshold`` goes left.

    The arrays have scikit-learn's names (``children_left``, ``feature``, ``threshold``, ...).
    """

    nodes: Nodes
    n_features: int
    n_outputs: int
    n_classes: tuple[int, ...]
    depth: int

    # -- nodes ---------------------------------------------------------------------------------

    @property
    def node_count(self) -> int:
        """Nodes, leaves among them."""
        return len(self.nodes.tests)

    @property
    def is_leaf(self) -> np.ndarray:
        """Whether a node is a leaf."""
        return self.nodes.payload != INNER_NODE

    @property
    def n_leaves(self) -> int:
        """Leaves."""
        return int(self.is_leaf.sum())

    @property
    def max_depth(self) -> int:
        """Tests on the longest way down."""
        return self.depth

    @property
    def children_left(self) -> np.ndarray:
        """Left child of each node; -1 for a leaf."""
        return np.where(self.is_leaf, -1, np.arange(1, self.node_count + 1))

    @property
    def children_right(self) -> np.ndarray:
        """Right child of each node; -1 for a leaf."""
        return np.where(self.is_leaf, -1, self.nodes.tests["right"])

    @property
    def feature(self) -> np.ndarray:
        """Column of each node's test; -2 for a leaf."""
        return np.where(self.is_leaf, -2, self.nodes.tests["feature"])

    @property
    def threshold(self) -> np.ndarray:
        """Threshold of each node's test; -2 for a leaf."""
        return np.where(self.is_leaf, -2.0, self.nodes.tests["threshold"])

    @property
    def impurity(self) -> np.ndarray:
        """Impurity of each node."""
        return self.nodes.facts[:, IMPURITY].copy()

    @property
    def n_node_samples(self) -> np.ndarray:
        """Training rows of each node."""
        return self.nodes.facts[:, SIZE].astype(np.int64)

    @property
    def weighted_n_node_samples(self) -> np.ndarray:
        """Their weight."""
        return self.nodes.facts[:, WEIGHT].copy()

    @property
    def value(self) -> np.ndarray:
        """Shares of the classes, or mean targets, of each node: (node_count, statistics)."""
        leaves = np.flatnonzero(self.is_leaf)
        values = np.zeros((self.node_count, self._statistics))
        values[leaves] = self.values_at(leaves)
        weight = self.nodes.facts[:, WEIGHT]
        for node in np.flatnonzero(~self.is_leaf)[::-1]:
            pair = [node + 1, self.nodes.tests["right"][node]]
            values[node] = weight[pair] @ values[pair] / weight[pair].sum()
        return values

    @property
    def _statistics(self) -> int:
        return sum(self.n_classes) or self.n_outputs

    def importances(self) -> np.ndarray:
        """Return by how much the tests on each column lower the impurity, with sum one."""
        inner = ~self.is_leaf
        falls = np.bincount(
            self.nodes.tests["feature"][inner],
            weights=self.nodes.facts[inner, FALL],
            minlength=self.n_features,
        )
        total = falls.sum()
        return falls / total if total > 0 else falls

    # -- rows ----------------------------------------------------------------------------------

    def values_at(self, leaves: np.ndarray) -> np.ndarray:
        """Shares of the classes, or mean targets, at some leaves: (len(leaves), statistics)."""
        values = np.zeros((len(leaves), self._statistics))
        self.add_at(leaves, values)
        return values

    def add_at(self, leaves: np.ndarray, out: np.ndarray) -> None:
        """Add the same to ``out``."""
        add_leaves(self.nodes.payload, self.nodes.values, leaves, out)

    def add_rows(self, X: np.ndarray, out: np.ndarray) -> None:
        """Add the values of the leaves of some rows, an array, to ``out``."""
        leaves = np.empty(len(X), np.int32)
        leaves_of(self.nodes.tests, X, leaves)
        self.add_at(leaves, out)

    def apply(self, X: Any, workers: Workers = ALONE) -> np.ndarray:
        """Return the leaf of each row of X, dense or CSR."""
        leaves = np.empty(X.shape[0], np.int32)

        block = rows_at_once(X)

        def go(begin: int) -> None:
            own = slice(begin, begin + block)
            leaves_of(self.nodes.tests, dense(X[own]), leaves[own])

        workers.map(go, range(0, X.shape[0], block))
        return leaves

    def apply_binned(self, columns: BinnedColumns, rows: np.ndarray | None = None) -> np.ndarray:
        """Return the leaf of some rows of the columns that the tree was grown from."""
        rows = np.arange(columns.n_rows) if rows is None else rows
        leaves = np.empty(len(rows), np.int32)
        leaves_of_codes(self.nodes, columns.store, rows, leaves)
        return leaves

    # -- words ---------------------------------------------------------------------------------

    def to_text(
        self, names: Any = None, classes: Any = None, decimals: int = 2, max_depth: int = 10
    ) -> str:
        """Write the tree in lines, a test or a leaf each, as scikit-learn's ``export_text`` does.

        Parameters
        ----------
        names : sequence of str, optional
            Of the columns.
        classes : array, or list of them for several outputs, optional
            Names of the classes.
        decimals : int, default=2
            Digits of thresholds and values.
        max_depth : int, default=10
            Deeper nodes are only counted.
        """
        lines: list[str] = []
        tests, is_leaf = self.nodes.tests, self.is_leaf

        def write(node: int, depth: int) -> None:
            indent = "|   " * depth + "|--- "
            if is_leaf[node]:
                lines.append(indent + self._leaf_text(node, classes, decimals))
                return
            right, f = int(tests["right"][node]), int(tests["feature"][node])
            if depth > max_depth:
                below = self._below(node)
                lines.append(f"{indent}truncated branch of {below} leaves")
                return
            name = f"feature_{f}" if names is None else names[f]
            threshold = f"{tests['threshold'][node]:.{decimals}f}"
            lines.append(f"{indent}{name} <= {threshold}")
            write(node + 1, depth + 1)
            lines.append(f"{indent}{name} >  {threshold}")
            write(right, depth + 1)

        write(0, 0)
        return "\n".join(lines) + "\n"

    def _below(self, node: int) -> int:
        """Leaves below a node, itself where it is one."""
        last = node
        while not self.is_leaf[last]:
            last = int(self.nodes.tests["right"][last])
        return int(self.is_leaf[node : last + 1].sum())

    def _leaf_text(self, node: int, classes: Any, decimals: int) -> str:
        value = self.values_at(np.array([node]))[0]
        if not self.n_classes:
            return f"value: [{', '.join(f'{v:.{decimals}f}' for v in value)}]"
        parts = np.split(value, np.cumsum(self.n_classes)[:-1])
        names = [classes] if classes is not None and self.n_outputs == 1 else classes
        said = [
            str(int(part.argmax()) if names is None else names[o][part.argmax()])
            for o, part in enumerate(parts)
        ]
        return f"class: {', '.join(said)}"


def rows_at_once(X: Any) -> int:
    """Return how many rows go down together: fewer where they have to be written out."""
    return max(_WRITTEN // X.shape[1], 16) if sp.issparse(X) else _BLOCK


def dense(X: Any) -> np.ndarray:
    """Return some rows as an array, row after row."""
    return X.toarray() if sp.issparse(X) else np.ascontiguousarray(X)
