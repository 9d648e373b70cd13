"""Rows that some folds share, in the order that their kernel matrices want."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import column_or_1d

from maxmargin import memory
from maxmargin.backends.device import Placement
from maxmargin.backends.threads import Workers
from maxmargin.estimators.data import validate_data
from maxmargin.gram import Gram
from maxmargin.gram.matrices import KeptMatrices, Matrices
from maxmargin.kernels import Input, Kernel
from maxmargin.selection.plan import Candidate
from maxmargin.selection.targets import Fold, Labels, Numbers, Targets
from maxmargin.svm.classification import KernelClassifier

Splits = Sequence[tuple[int, np.ndarray, np.ndarray]]  # number, training rows, others
SEVERAL = 4  # problems per thread from which on a thread has a problem to itself
_AT_ONCE = 4  # matrices at a time, at most


class Rows(NamedTuple):
    """Data, targets and weights, checked as a machine's fit does, and names of the columns."""

    X: Any
    y: np.ndarray
    weight: np.ndarray
    names: Any

    @classmethod
    def validated(cls, candidate: Candidate, X: Any, y: Any, sample_weight: Any) -> Rows:
        """Check data for a candidate's machine."""
        machine = candidate.machine
        labelled = isinstance(machine, KernelClassifier)
        numeric = {} if labelled else {"y_numeric": True}
        X, y = machine._validated(X, y, candidate.kernel, **numeric)
        y = column_or_1d(y)
        weight = machine._validated_weight(sample_weight, X)
        names = getattr(machine, "feature_names_in_", None)
        return cls(X, y if labelled else y.astype(np.float64), weight, names)

    def before(self, candidate: Candidate, X: Any, y: Any) -> Rows:
        """Return these training rows and behind them the rows held out."""
        if candidate.kernel.input is Input.SEQUENCES:
            X = candidate.machine._validated_points(X, candidate.kernel)
        else:
            X = validate_data(
                candidate.machine, X, dtype=self.X.dtype, accept_sparse="csr", reset=False
            )
        both = sp.vstack([self.X, X]).tocsr() if sp.issparse(X) else np.concatenate([self.X, X])
        y = np.asarray(y).reshape(-1)
        weight = np.append(self.weight, np.ones(len(y)))
        return Rows(both, np.append(self.y, y), weight, self.names)

    def taken(self, rows: np.ndarray, pairwise: bool) -> Rows:
        """Return some of the rows; of a square matrix, as many of its columns."""
        X = np.ascontiguousarray(self.X[np.ix_(rows, rows)]) if pairwise else None
        X = _safe_indexing(self.X, rows) if X is None else X
        return Rows(X, self.y[rows], self.weight[rows], self.names)


@dataclass
class DataSet:
    """Rows that some folds share.

    The rows are put in order of their class, and within it of the split that holds them out: the
    rows of a problem are then a few stretches of the matrix, and those of a class a single one.
    ``machine`` is the first of those that learn from them; ``budget`` is in bytes. With a dict for
    ``kept``, kernel matrices stay in it.
    """

    machine: Any
    X: Any
    names: Any
    targets: Targets
    folds: list[Fold]
    budget: int
    placement: Placement
    kept: dict[Any, KeptMatrices] | None = None

    @classmethod
    def of(cls, candidate: Candidate, rows: Rows, splits: Splits) -> DataSet:
        """Put validated data in order, for a candidate's machine and others like it."""
        machine, kernel, n = candidate.machine, candidate.kernel, len(rows.y)
        labelled = isinstance(machine, KernelClassifier)
        held_out = np.zeros(n, dtype=np.int64)
        for number, _, test in splits:
            held_out[test] = number + 1
        classes = np.unique(rows.y, return_inverse=True)[1] if labelled else np.zeros(n)
        order = np.lexsort((held_out, classes))
        place = np.argsort(order)
        X, y, _, names = rows.taken(order, kernel.pairwise)
        folds = []
        for number, train, test in splits:
            weight = np.zeros(n)
            np.add.at(weight, place[train], rows.weight[train])  # a row may be drawn twice
            folds.append(Fold(number, place[train], place[test], weight))
        targets = Labels(y, machine.multiclass) if labelled else Numbers(y)
        placement = machine._placed(kernel.resolve(X, names), X, n)
        budget = memory.budget(machine.cache_size)
        return cls(machine, X, names, targets, folds, budget, placement)

    def gram(self, kernel: Kernel) -> Gram:
        """Return the Gram matrix of all rows."""
        return Gram.of(self.X, kernel, memory=self.budget)

    def matrices(self, dtype: Any, workers: Workers) -> Matrices:
        """Return what makes whole kernel matrices of all rows."""
        if self.kept is None:
            return Matrices(self.X, dtype, workers)
        return self.kept.setdefault(dtype, KeptMatrices(self.X, dtype))

    def room(self, matrices: Matrices, threads: int, one_by_one: bool) -> tuple[int, int, int]:
        """Threads, matrices at a time, and bytes left for the primitives.

        Without room for one matrix and one thread there are no threads. Several matrices at a time
        keep the threads busy where each has few problems; with a time limit, one after the other
        (``one_by_one``), so that some candidates are complete when it is over.
        """
        targets = self.targets
        size = matrices.dtype.itemsize * (targets.block_size + targets.n_variables**2)
        threads = max(min(threads, (self.budget - matrices.nbytes) // size), 0)
        left = self.budget - threads * size - matrices.nbytes
        more = int(min(left // 2 // matrices.nbytes, _AT_ONCE - 1))
        enough = targets.n_problems >= SEVERAL * threads or one_by_one
        if not threads or enough or more < 1:
            return threads, 1, left
        return threads, 1 + more, left - more * matrices.nbytes


def used_rows(splits: Splits) -> Iterator[tuple[np.ndarray, Splits]]:
    """Yield row numbers that splits have in common, and the splits numbered among these.

    Where each split uses few of the rows, as in the first rounds of halving, they have little in
    common: then each has rows of its own.

    >>> import numpy as np
    >>> halves = [(0, np.array([0, 1]), np.array([9])), (1, np.array([5, 6]), np.array([4]))]
    >>> [(rows.tolist(), splits[0][1:]) for rows, splits in used_rows(halves)]
    [([0, 1, 9], (array([0, 1]), array([2]))), ([4, 5, 6], (array([1, 2]), array([0])))]
    """
    each = [np.unique(np.concatenate([train, test])) for _, train, test in splits]
    rows = np.unique(np.concatenate(each))
    parts: list[tuple[np.ndarray, Splits]] = [(rows, splits)]
    if sum(len(own) ** 2 for own in each) < len(rows) ** 2:
        parts = [(own, [split]) for own, split in zip(each, splits, strict=True)]
    for own, some in parts:
        yield own, [(k, np.searchsorted(own, a), np.searchsorted(own, b)) for k, a, b in some]
