"""A grown tree: its nodes as arrays, where rows end in it, and how it reads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from maxmargin.backends.cpu.trees.grow import FALL, IMPURITY, INNER_NODE, SIZE, WEIGHT, Nodes
from maxmargin.backends.cpu.trees.walk import (
    add_leaves,
    leaves_of,
    leaves_of_codes,
    leaves_with_missing,
)
from maxmargin.backends.threads import ALONE, Workers
from maxmargin.ensemble.trees.columns import BinnedColumns
from maxmargin.estimators.data import seems_finite

_BLOCK = 4096  # rows that go down one tree after the other
_WRITTEN = 1 << 20  # entries of sparse rows that are written out at a time


class Missing(NamedTuple):
    """Where rows with missing values go in a tree that was grown from such rows.

    Attributes
    ----------
    left : bool array of shape (m,)
        Whether they go to the left.
    columns : int32 array of shape (m,)
        Coded column of each node's test: those with missing values are coded twice.
    """

    left: np.ndarray
    columns: np.ndarray


def larger_on_the_left(nodes: Nodes) -> np.ndarray:
    """Whether the left child of each node has more training rows than the right one; (m,)."""
    inner = np.flatnonzero(nodes.payload == INNER_NODE)
    left, size = np.zeros(len(nodes.tests), bool), nodes.facts[:, SIZE]
    left[inner] = size[inner + 1] > size[nodes.tests["right"][inner]]
    return left


def last_below(nodes: Nodes) -> np.ndarray:
    """Last node of each node's branch: itself for a leaf; (m,)."""
    last = np.arange(len(nodes.tests))
    for node in np.flatnonzero(nodes.payload == INNER_NODE)[::-1]:
        last[node] = last[nodes.tests["right"][node]]
    return last


@dataclass(frozen=True)
class Tree:
    """Nodes in preorder: the left child of node t is t + 1. ``x[feature] <= threshold`` goes left.

    The attributes have the names, shapes and values of scikit-learn's ``tree_``
    (``children_left``, ``feature``, ``threshold``, ``value``, ...).

    Parameters
    ----------
    nodes : Nodes
    n_features, n_outputs : int
    class_counts : tuple of int
        Number of classes of each output; empty for regression.
    depth : int
    missing : Missing, optional
        Of a tree that was grown from rows with missing values.
    """

    nodes: Nodes
    n_features: int
    n_outputs: int
    class_counts: tuple[int, ...]
    depth: int
    missing: Missing | None = None

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore a pickled tree in this computer's byte order: compiled code knows no other."""
        native = [part.astype(part.dtype.newbyteorder("="), copy=False) for part in state["nodes"]]
        self.__dict__.update(state, nodes=Nodes(*native))

    # -- nodes ---------------------------------------------------------------------------------

    @property
    def node_count(self) -> int:
        """Nodes, leaves among them."""
        return len(self.nodes.tests)

    @property
    def capacity(self) -> int:
        """Number of nodes that memory is allocated for: ``node_count``."""
        return self.node_count

    @property
    def n_classes(self) -> np.ndarray:
        """Number of classes of each output, one for regression."""
        return np.array(self.class_counts or [1] * self.n_outputs, dtype=np.intp)

    @property
    def max_n_classes(self) -> int:
        """Greatest number of classes of an output."""
        return int(self.n_classes.max())

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
    def missing_go_to_left(self) -> np.ndarray:
        """Whether rows without a value go to the left, as uint8.

        They go where those of the training rows went; where there were none, to the child with
        more rows.
        """
        missing = self.missing
        left = larger_on_the_left(self.nodes) if missing is None else missing.left
        return left.astype(np.uint8)

    @property
    def value(self) -> np.ndarray:
        """Class shares or mean targets of each node: (node_count, n_outputs, max_n_classes)."""
        flat = self.node_values()
        if not self.class_counts:
            return flat[:, :, None]
        values = np.zeros((self.node_count, self.n_outputs, self.max_n_classes))
        ends = np.cumsum(self.class_counts)
        for o, (end, count) in enumerate(zip(ends, self.class_counts, strict=True)):
            values[:, o, :count] = flat[:, end - count : end]
        return values

    def node_values(self) -> np.ndarray:
        """Return the class shares of all outputs, or mean targets: (node_count, statistics)."""
        if len(self.nodes.means):
            return self.nodes.means
        leaves = np.flatnonzero(self.is_leaf)
        values = np.zeros((self.node_count, self.statistics))
        values[leaves] = self.values_at(leaves)
        weight = self.weighted_n_node_samples
        for node in np.flatnonzero(~self.is_leaf)[::-1]:
            pair = [node + 1, self.nodes.tests["right"][node]]
            values[node] = weight[pair] @ values[pair] / weight[pair].sum()
        return values

    @property
    def statistics(self) -> int:
        """Length of a leaf's value: the classes of all outputs, or the number of outputs."""
        return sum(self.class_counts) or self.n_outputs

    def node_depths(self) -> np.ndarray:
        """Return the number of tests above each node."""
        depths = np.zeros(self.node_count, np.int64)
        for node in np.flatnonzero(~self.is_leaf):
            depths[[node + 1, self.nodes.tests["right"][node]]] = depths[node] + 1
        return depths

    def compute_feature_importances(self, normalize: bool = True) -> np.ndarray:
        """Return by how much the tests on each column lower the impurity; normalised to sum one."""
        inner = ~self.is_leaf
        falls = np.bincount(
            self.nodes.tests["feature"][inner],
            weights=self.nodes.facts[inner, FALL],
            minlength=self.n_features,
        )
        falls = falls / self.weighted_n_node_samples[0]
        total = falls.sum()
        return falls / total if normalize and total > 0 else falls

    # -- rows ----------------------------------------------------------------------------------

    def values_at(self, leaves: np.ndarray) -> np.ndarray:
        """Shares of the classes, or mean targets, at some leaves: (len(leaves), statistics)."""
        values = np.zeros((len(leaves), self.statistics))
        self.add_at(leaves, values)
        return values

    def add_at(self, leaves: np.ndarray, out: np.ndarray) -> None:
        """Add the same to ``out``."""
        add_leaves(self.nodes.payload, self.nodes.values, leaves, out)

    def add_rows(self, X: np.ndarray, out: np.ndarray) -> None:
        """Add the values of the leaves of some rows, an array, to ``out``."""
        leaves = np.empty(len(X), np.int32)
        self._find_leaves(X, leaves)
        self.add_at(leaves, out)

    def _find_leaves(self, X: np.ndarray, leaves: np.ndarray) -> None:
        """Write the leaf of some rows, an array, into ``leaves``."""
        leaves_of(self.nodes.tests, X, leaves)
        if not seems_finite(X):
            rows = np.flatnonzero(np.isnan(X).any(axis=1))
            leaves_with_missing(self.nodes.tests, self.missing_go_to_left, X, rows, leaves)

    def apply(self, X: Any, workers: Workers = ALONE) -> np.ndarray:
        """Return the leaf of each row of X, dense or CSR."""
        leaves = np.empty(X.shape[0], np.int32)

        block = rows_at_once(X)

        def go(begin: int) -> None:
            own = slice(begin, begin + block)
            self._find_leaves(dense(X[own]), leaves[own])

        workers.map(go, range(0, X.shape[0], block))
        return leaves

    def apply_binned(self, columns: BinnedColumns, rows: np.ndarray | None = None) -> np.ndarray:
        """Return the leaf of some rows of the columns that the tree was grown from."""
        rows = np.arange(columns.n_rows) if rows is None else rows
        leaves, nodes, left = np.empty(len(rows), np.int32), self.nodes, np.empty(0, np.uint8)
        if self.missing is not None:
            tests = nodes.tests.copy()
            tests["feature"] = self.missing.columns
            nodes, left = nodes._replace(tests=tests), self.missing_go_to_left
        leaves_of_codes(nodes, left, columns.store, rows, leaves)
        return leaves

    def decision_path(self, X: Any, workers: Workers = ALONE) -> sp.csr_matrix:
        """Return which nodes each row of X passes: a CSR indicator of (rows, node_count)."""
        leaves, is_leaf = self.apply(X, workers), self.is_leaf
        ancestors = [np.zeros(0, np.int64)] * self.node_count  # and the node itself, from the root
        for node in range(self.node_count):
            path = ancestors[node] = np.append(ancestors[node], node)
            if not is_leaf[node]:
                ancestors[node + 1] = ancestors[self.nodes.tests["right"][node]] = path
        used, place = np.unique(leaves, return_inverse=True)
        paths = [ancestors[leaf] for leaf in used]
        indptr = np.cumsum([0, *(len(path) for path in paths)])
        indices = np.concatenate(paths)
        of_leaves = sp.csr_matrix(
            (np.ones(len(indices), np.int64), indices, indptr), (len(used), self.node_count)
        )
        return of_leaves[place]

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
        last, is_leaf = node, self.is_leaf
        while not is_leaf[last]:
            last = int(self.nodes.tests["right"][last])
        return int(is_leaf[node : last + 1].sum())

    def _leaf_text(self, node: int, classes: Any, decimals: int) -> str:
        value = self.values_at(np.array([node]))[0]
        if not self.class_counts:
            return f"value: [{', '.join(f'{v:.{decimals}f}' for v in value)}]"
        parts = np.split(value, np.cumsum(self.class_counts)[:-1])
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
