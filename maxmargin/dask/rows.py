"""The rows of a fit where they lie: partitions, checked by the workers that have them.

A partition becomes a :class:`Block`: X, y and weights as the estimator would have checked them, in
a process of its own. What is wrong with one is said with its number. What all of them are together,
rows, classes, weights, is put together from a :class:`Summary` of each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from dask.delayed import Delayed
from sklearn.utils import assert_all_finite
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _num_samples

from maxmargin.dask.cluster import Cluster
from maxmargin.dask.collections import in_columns, is_array, partitions_of, pieces_of, sizes_of
from maxmargin.estimators.data import column, seems_finite
from maxmargin.multiclass.labels import _refuse_single_class

_SPOKEN_TO = ("callback", "trace", "verbose", "checkpoint")  # parameters that stay with the caller
_FULL = 1.1  # of a thread's part of the rows, that it may have before they go elsewhere
_AT_ONCE = 4  # partitions that a thread may have in memory at a time, where rows are not kept


class Block(NamedTuple):
    """The rows of a partition, as an estimator sees them: X, y and weights, and their number."""

    X: Any
    y: Any
    weight: np.ndarray
    number: int
    names: np.ndarray | None = None

    @property
    def n(self) -> int:
        """Rows."""
        return len(self.weight)

    @property
    def nbytes(self) -> int:
        """Bytes of the rows."""
        X = self.X
        parts = (X.data, X.indices, X.indptr) if sp.issparse(X) else (np.asarray(X),)
        return int(sum(part.nbytes for part in parts)) + self.weight.nbytes


@dataclass(frozen=True)
class Summary:
    """What a partition is, to be put together with others."""

    number: int
    n: int
    width: int
    dtype: str
    sparse: bool
    nbytes: int
    names: tuple | None
    weight: float
    labels: np.ndarray | None = None
    counts: np.ndarray | None = None  # of the labels
    weights: np.ndarray | None = None
    outputs: tuple[int, ...] = ()  # shape of a target
    extra: Any = None
    has_columns: bool = True  # not of sequences


def shell_of(machine: Any) -> Any:
    """Return an unfitted machine of the same parameters to send to workers.

    Who looks on, and what is written to this machine's disk, stays with the caller; so do threads:
    a worker gives a task one of its own.
    """
    shell = object.__new__(type(machine))
    parameters = machine.get_params(deep=False)
    for name in _SPOKEN_TO:
        if name in parameters:
            parameters[name] = None if name in ("callback", "checkpoint") else False
    if "n_jobs" in parameters:
        parameters["n_jobs"] = 1
    vars(shell).update(parameters)
    return shell


def checked(
    shell: Any, number: int, kernel: Any, y_options: dict, X: Any, y: Any = None, weight: Any = None
) -> Block:
    """Check a partition as a fit checks its data; what is wrong is said with its number."""
    with naming_partition(number):
        if weight is not None and _num_samples(weight) != _num_samples(X):
            raise ValueError(
                f"X has {_num_samples(X)} rows and sample_weight {_num_samples(weight)}."
            )
        if y is not None and _num_samples(y) != _num_samples(X):
            raise ValueError(f"X has {_num_samples(X)} rows and y has {_num_samples(y)}.")
        _refuse_another_order(X, y, "y")
        _refuse_another_order(X, weight, "sample_weight")
        if not _num_samples(X):
            return Block(X, None, np.empty(0), number, _names(X))
        if y is None:
            X, _ = shell._validated(X, np.zeros(_num_samples(X)), kernel)
        else:
            X, y = shell._validated(X, y, kernel, **y_options)
        if isinstance(X, np.ndarray) and X.dtype.kind == "f" and not seems_finite(X):
            if np.isnan(X).any():  # which trees and bagging take in memory
                raise ValueError(
                    "Input X contains NaN. Missing values are not supported in Dask collections: "
                    "impute them, or fit to arrays in memory."
                )
            assert_all_finite(X, input_name="X")
        if weight is not None and not np.asarray(weight).any():  # of a part, all may be zero
            weights = np.zeros(_num_samples(X))
        else:
            weights = shell._validated_weight(weight, X)
        return Block(X, y, weights, number, getattr(shell, "feature_names_in_", None))


class naming_partition:
    """Say in every error which partition it is about."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        if type(error) in (ValueError, TypeError) and not str(error).startswith("Partition "):
            raise type(error)(f"Partition {self.number}: {error}") from error


def _names(X: Any) -> np.ndarray | None:
    columns = getattr(X, "columns", None)
    return None if columns is None else np.asarray(list(columns), dtype=object)


def _refuse_another_order(X: Any, other: Any, name: str) -> None:
    """Refuse frames whose rows have the same labels in another order."""
    if not (hasattr(X, "index") and hasattr(other, "index")) or len(X) != len(other):
        return
    if callable(X.index) or callable(other.index) or X.index.equals(other.index):
        return
    if X.index.sort_values().equals(other.index.sort_values()):
        raise ValueError(
            f"the rows of X and {name} have the same index in another order; rows are paired by "
            f"their places: sort both, or give {name}.loc[X.index]."
        )


def summarised(block: Block, classes: bool, extra: Callable | None = None) -> Summary:
    """Return what a partition is; ``extra`` adds what a family of machines wants to know."""
    with naming_partition(block.number):
        X, labels, counts, weights = block.X, None, None, None
        outputs: tuple[int, ...] = ()
        if block.n and block.y is not None:
            y = block.y
            if classes:
                y = column(y)
                check_classification_targets(y)
                labels, index = np.unique(y, return_inverse=True)
                counts = np.bincount(index)
                weights = np.bincount(index, weights=block.weight)
            else:
                outputs = np.asarray(y).shape[1:]
        shape: tuple[int, ...] = getattr(X, "shape", (block.n,))
        return Summary(
            number=block.number,
            n=block.n,
            width=int(shape[1]) if len(shape) > 1 else 1,
            dtype=str(getattr(X, "dtype", "object")),
            sparse=sp.issparse(X),
            nbytes=block.nbytes if block.n else 0,
            names=None if block.names is None else tuple(block.names),
            weight=float(block.weight.sum()),
            labels=labels,
            counts=counts,
            weights=weights,
            outputs=outputs,
            extra=None if extra is None or not block.n else extra(block),
            has_columns=len(shape) > 1,
        )


def encoded(block: Block, classes: np.ndarray) -> Block:
    """Return a partition with the index of each row's class in place of its label."""
    if not block.n:
        return block._replace(y=np.empty(0, dtype=np.intp))
    return block._replace(y=np.searchsorted(classes, column(block.y)))


def labels_and_weights(block: Block) -> tuple[np.ndarray, np.ndarray]:
    """Return what a partition's rows are, and what they weigh."""
    return np.asarray(block.y), block.weight


@dataclass
class Partitions:
    """The rows of a fit, in partitions, on a cluster.

    Use :meth:`of`. ``blocks`` are tasks, one for each partition that has rows; their ``numbers``
    are those of the collection.
    """

    cluster: Cluster
    blocks: list[Delayed]
    summaries: list[Summary]
    classes: np.ndarray | None = None
    sizes: list[int] = field(default_factory=list)

    @classmethod
    def of(
        cls,
        machine: Any,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        kernel: Any = None,
        classes: bool = False,
        extra: Callable | None = None,
        stopped: Callable[[], Any] = lambda: None,
        **y_options: Any,
    ) -> Partitions:
        """Check collections where they lie, and put together what they are.

        Sets ``n_features_in_`` and ``feature_names_in_`` of the machine. With ``classes`` the
        labels are read, and ``y`` of the blocks is the index of each row's class.
        """
        cluster, X = Cluster.active(), in_columns(X)
        sizes, shell = sizes_of(X), shell_of(machine)
        columns: list[list[Any]] = [partitions_of(X)]
        for name, data in (("y", y), ("sample_weight", sample_weight)):
            columns.append([None] * len(sizes) if data is None else pieces_of(data, sizes, name))
        blocks = [
            cluster.task(checked, shell, k, kernel, y_options, *parts, name="check")
            for k, parts in enumerate(zip(*columns, strict=True))
        ]
        kept = cluster.distribution.kept = _room(cluster, X)
        if kept:
            blocks = cluster.keep(blocks)
        looks = [cluster.task(summarised, block, classes, extra, name="look") for block in blocks]
        cluster.partitions = looks
        summaries = cluster.run(looks, stopped)
        rows = cls(cluster, blocks, summaries)
        rows._agree(machine)
        if not kept:
            cluster.distribution.kept = rows._keep_what_fits()
        if classes:
            rows._read_classes()
        cluster.distribution.partitions = len(rows.blocks)
        cluster.distribution.rows = rows.n
        return rows

    def _agree(self, machine: Any) -> None:
        """Refuse partitions that do not go together; tells the machine what their columns are."""
        self.refuse_unlike()
        first = self.summaries[0]
        for name in ("n_features_in_", "feature_names_in_"):
            vars(machine).pop(name, None)
        if first.has_columns:
            machine.n_features_in_ = first.width
        if first.names is not None:
            machine.feature_names_in_ = np.asarray(first.names, dtype=object)

    def refuse_unlike(self) -> None:
        """Refuse partitions that do not go together; leaves out those without rows."""
        whole = agreeing(self.summaries)
        self.blocks = [b for b, s in zip(self.blocks, self.summaries, strict=True) if s.n]
        self.summaries, self.sizes = whole, [s.n for s in whole]

    def _keep_what_fits(self) -> bool:
        """Keep as many partitions as have room beside those at work; whether that is all."""
        room = self.cluster.budget() * self.cluster.n_workers
        ends = np.cumsum([summary.nbytes for summary in self.summaries])
        if ends[-1] > room:
            largest = max(summary.nbytes for summary in self.summaries)
            room -= _AT_ONCE * self.cluster.n_threads * largest
        count = int(np.searchsorted(ends, room, side="right"))
        if count:
            self.blocks[:count] = self.cluster.keep(self.blocks[:count])
        if 0 < count < len(ends):
            note = f"{count} of {len(ends)} partitions were kept, the others read in every pass"
            self.cluster.distribution.notes.append(note)
        return count == len(ends)

    def _read_classes(self) -> None:
        """Put the classes of all partitions together."""
        found = [s.labels for s in self.summaries if s.labels is not None]
        try:
            self.classes = np.unique(np.concatenate(found))
        except TypeError as error:
            kinds = sorted({type(v).__name__ for labels in found for v in labels})
            raise ValueError(
                f"Unknown label type: y has labels of the types {', '.join(kinds)}, which have no "
                "order among each other. Give labels of one type, and leave out rows without a "
                "label."
            ) from error
        _refuse_single_class(self.classes)
        self.blocks = [
            self.cluster.task(encoded, block, self.classes, name="labels") for block in self.blocks
        ]
        if self.cluster.distribution.kept:
            self.blocks = self.cluster.keep(self.blocks)

    # -- what there is -------------------------------------------------------------------------

    @property
    def n(self) -> int:
        """Rows of all partitions."""
        return sum(self.sizes)

    @property
    def n_features(self) -> int:
        """Columns."""
        return self.summaries[0].width

    @property
    def nbytes(self) -> int:
        """Bytes of all rows."""
        return sum(s.nbytes for s in self.summaries)

    @property
    def offsets(self) -> np.ndarray:
        """Place of each partition's first row among all."""
        return np.cumsum([0, *self.sizes])[:-1]

    @cached_property
    def class_weights(self) -> np.ndarray:
        """Sum of the weights of each class's rows."""
        return self._per_class("weights")

    @cached_property
    def class_counts(self) -> np.ndarray:
        """Rows of each class."""
        return self._per_class("counts")

    def _per_class(self, name: str) -> np.ndarray:
        assert self.classes is not None
        sums = np.zeros(len(self.classes))
        for summary in self.summaries:
            if summary.labels is not None:
                np.add.at(
                    sums, np.searchsorted(self.classes, summary.labels), getattr(summary, name)
                )
        return sums

    # -- passes over all of them -----------------------------------------------------------------

    def map(
        self, function: Callable, *args: Any, each: Sequence[Sequence] = (), name: str | None = None
    ) -> list[Delayed]:
        """Return a task for each partition that calls a function of its block.

        ``args`` are the same for all; ``each`` has sequences with an argument for each partition.
        """
        own = list(zip(*each, strict=True)) if each else [()] * len(self.blocks)
        return [
            self.cluster.task(function, block, *mine, *args, name=name)
            for block, mine in zip(self.blocks, own, strict=True)
        ]

    def gathered(
        self, function: Callable, *args: Any, stopped: Callable[[], Any] = lambda: None, **how: Any
    ) -> list[Any]:
        """Return what a function makes of each partition."""
        return self.cluster.run(self.map(function, *args, **how), stopped)

    def reduced(
        self,
        function: Callable,
        *args: Any,
        combine: Callable[[list], Any],
        stopped: Callable[[], Any] = lambda: None,
        **how: Any,
    ) -> Any:
        """Return what ``combine`` makes, as a tree, of what a function makes of each partition."""
        tasks = self.map(function, *args, **how)
        (result,) = self.cluster.run([self.cluster.total(tasks, combine)], stopped)
        return result

    def groups(self) -> list[Group]:
        """Return the blocks in as few tasks as make use of every thread, where rows are kept.

        A task costs some milliseconds, however little it does. Blocks that lie on one worker are
        put together there, without a copy, about as many rows in each group. Where rows are not
        kept each block is a group, so that a thread has one of them in memory at a time.
        """
        offsets = self.offsets.tolist()
        if not self.cluster.distribution.kept:
            return [Group([block], [k]) for block, k in zip(self.blocks, offsets, strict=True)]
        members = grouped(self.sizes, *self.cluster.places(self.blocks))
        tasks = self.cluster.keep(
            [
                self.cluster.task(list, [self.blocks[k] for k in own], name="group")
                for own in members
            ]
        )
        return [
            Group(task, [offsets[k] for k in own]) for task, own in zip(tasks, members, strict=True)
        ]


class Group(NamedTuple):
    """Some blocks as one argument of a task, and the place of each one's first row among all."""

    blocks: Any
    firsts: list[int]


def grouped(sizes: Sequence[int], where: Sequence[int], threads: Sequence[int]) -> list[list[int]]:
    """Put blocks into groups of about as many rows, one for each thread, most where they lie.

    Parameters
    ----------
    sizes : list of int
        Rows of each block.
    where : list of int
        The worker that has it.
    threads : list of int
        How many each worker has.

    Examples
    --------
    >>> from maxmargin.dask.rows import grouped
    >>> grouped([3, 3, 3, 3], [0, 1, 0, 1], [1, 1])
    [[0, 2], [1, 3]]
    >>> grouped([3, 3, 3, 3], [0, 0, 0, 0], [1, 1])
    [[0, 1], [2, 3]]
    """
    owner = [w for w, count in enumerate(threads) for _ in range(count)]
    full, loads = _FULL * sum(sizes) / len(owner), [0.0] * len(owner)
    members: list[list[int]] = [[] for _ in owner]
    for k in sorted(range(len(sizes)), key=lambda k: -sizes[k]):
        here = [g for g in range(len(owner)) if owner[g] == where[k]] or range(len(owner))
        best = min(here, key=loads.__getitem__)
        if loads[best] + sizes[k] > full:
            best = min(range(len(owner)), key=loads.__getitem__)
        members[best].append(k)
        loads[best] += sizes[k]
    return [sorted(own) for own in members if own]


def agreeing(summaries: list[Summary]) -> list[Summary]:
    """Return the summaries of partitions that have rows; refuses those that are not alike."""
    whole = [s for s in summaries if s.n]
    if not whole:
        raise ValueError("Found array with 0 sample(s) while a minimum of 1 is required.")
    first = whole[0]
    for other in whole[1:]:
        for what, mine, theirs in (
            ("columns", first.width, other.width),
            ("entries of type", first.dtype, other.dtype),
            ("columns named", first.names, other.names),
            ("storage that is sparse:", first.sparse, other.sparse),
            ("targets of shape", first.outputs, other.outputs),
        ):
            if mine != theirs:
                raise ValueError(
                    f"Partition {other.number} has {what} {_said(theirs)}, and partition "
                    f"{first.number} {_said(mine)}: all partitions of a collection must be alike. "
                    "Convert them when they are read, for example with X.astype('float64')."
                )
    if not sum(s.weight for s in whole) > 0:
        raise ValueError("Invalid input - all samples have zero or negative weights.")
    return whole


def _said(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _room(cluster: Cluster, X: Any) -> bool:
    """Whether all rows are known to have room in the workers' memory."""
    if not is_array(X):
        return False  # a dataframe or list does not say how large it is
    nbytes = X.nbytes
    if X.dtype.kind in "iub":  # machines see float64
        nbytes *= np.dtype(np.float64).itemsize / X.dtype.itemsize
    return bool(nbytes <= cluster.budget() * cluster.n_workers)  # False for nan
