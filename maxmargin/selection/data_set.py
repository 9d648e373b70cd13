"""Rows that some folds share, in the order that their kernel matrices want."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import column_or_1d

from maxmargin import memory
from maxmargin.backends.device import Placement
from maxmargin.estimators.data import validate_data
from maxmargin.gram import Gram
from maxmargin.kernels import Kernel
from maxmargin.selection.plan import Candidate
from maxmargin.selection.targets import Fold, Labels, Numbers, Targets
from maxmargin.svm.classification import KernelClassifier

Splits = Sequence[tuple[int, np.ndarray, np.ndarray]]


@dataclass
class DataSet:
    """Rows that some folds share.

    The rows are put in order of their class, and within it of the split that holds them out: the
    rows of a problem are then a few stretches of the matrix, and those of a class a single one.

    Attributes
    ----------
    X, names : rows as kernels see them, and names of their columns
    targets : Targets
    folds : list of Fold
    cache_size, budget : as given, and in bytes
    placement : Placement
        Where to compute.
    automatic : bool
        Whether the CPU may do what the GPU cannot.
    """

    X: Any
    names: Any
    targets: Targets
    folds: list[Fold]
    cache_size: float | str
    budget: int
    placement: Placement
    automatic: bool

    @classmethod
    def of(
        cls,
        candidate: Candidate,
        X: Any,
        y: np.ndarray,
        weight: np.ndarray,
        names: Any,
        splits: Splits,
    ) -> DataSet:
        """Put validated data in order, for a candidate's machine and others like it."""
        machine, kernel = candidate.machine, candidate.kernel
        assert kernel is not None
        labelled = isinstance(machine, KernelClassifier)
        held_out = np.zeros(len(y), dtype=np.int64)
        for number, _, test in splits:
            held_out[test] = number + 1
        classes = np.unique(y, return_inverse=True)[1] if labelled else np.zeros(len(y))
        order = np.lexsort((held_out, classes))
        place = np.argsort(order)
        X, y = _safe_indexing(X, order), y[order]
        X = np.ascontiguousarray(X[:, order]) if kernel.pairwise else X
        folds = []
        for number, train, test in splits:
            own = np.zeros(len(y))
            np.add.at(own, place[train], weight[train])  # a row may be drawn twice
            folds.append(Fold(number, place[train], place[test], own))
        return cls(
            X,
            names,
            Labels(y, candidate.multiclass) if labelled else Numbers(y),
            folds,
            machine.cache_size,
            memory.budget(machine.cache_size),
            machine._placed(kernel.resolve(X, names), X, len(y)),
            machine.device == "auto",
        )

    def gram(self, kernel: Kernel) -> Gram:
        """Return the Gram matrix of all rows."""
        return Gram.of(self.X, kernel, memory=self.budget)


def validated(
    candidate: Candidate, X: Any, y: Any, sample_weight: Any
) -> tuple[Any, np.ndarray, np.ndarray, Any]:
    """Data, targets, weights and column names, checked as the machine's fit does."""
    machine = candidate.machine
    labelled = isinstance(machine, KernelClassifier)
    X, y = machine._validated(X, y, candidate.kernel, **({} if labelled else {"y_numeric": True}))
    y = column_or_1d(y)
    if not labelled:
        y = y.astype(np.float64)
    weight = machine._validated_weight(sample_weight, X)
    return X, y, weight, getattr(machine, "feature_names_in_", None)


def joined(
    candidate: Candidate, X: Any, X_test: Any, y: Any, weight: Any, y_test: Any
) -> tuple[Any, np.ndarray, np.ndarray, Any]:
    """Data, targets, weights and names of both sides of a split, the training rows first."""
    X, y, weight, names = validated(candidate, X, y, weight)
    X_test = validate_data(
        candidate.machine, X_test, dtype=X.dtype, accept_sparse="csr", reset=False
    )
    both = sp.vstack([X, X_test]).tocsr() if sp.issparse(X) else np.vstack([X, X_test])
    y_test = np.asarray(y_test).reshape(-1)
    return both, np.append(y, y_test), np.append(weight, np.ones(len(y_test))), names


def used_rows(splits: Splits, n: int) -> Iterator[tuple[np.ndarray | None, Splits]]:
    """Yield row numbers that splits have in common, and the splits numbered among these.

    All rows, which is None, where the splits use them all. Where each uses few of them, as in the
    first rounds of halving, they have little in common: then each has rows of its own.

    >>> import numpy as np
    >>> halves = [(0, np.array([0, 1]), np.array([9])), (1, np.array([5, 6]), np.array([4]))]
    >>> [(rows.tolist(), splits[0][1:]) for rows, splits in used_rows(halves, 10)]
    [([0, 1, 9], (array([0, 1]), array([2]))), ([4, 5, 6], (array([1, 2]), array([0])))]
    """
    each = [np.unique(np.concatenate([train, test])) for _, train, test in splits]
    rows = np.unique(np.concatenate(each))
    if sum(len(own) ** 2 for own in each) < len(rows) ** 2:
        for own, split in zip(each, splits, strict=True):
            yield own, _among(own, [split])
    elif len(rows) == n:
        yield None, splits
    else:
        yield rows, _among(rows, splits)


def _among(rows: np.ndarray, splits: Splits) -> Splits:
    return [(k, np.searchsorted(rows, a), np.searchsorted(rows, b)) for k, a, b in splits]
