"""Columns in codes over partitions: a code means the same values everywhere.

The different values of each column, and how often each is there, are put together from all
partitions. Bins are made of these as they are made in one place, so that codes, and all that comes
of them, are the same. Two things differ where there are many different values:

- a column with more than 65,536 of them is known by so many quantiles, of each partition first and
  of all of them then (a rank is then wrong by some 1e-5 of the rows);
- where tables of all codes are sent in every pass, as a search for the best test does, columns have
  no more bins than tables of 2^18 codes in all allow, 256 at least. ``distribution_.notes`` says
  so.

What a worker keeps of its rows are codes, of one or two bytes, targets and weights: of all its
partitions together, so that a pass is one task a thread.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from dask.delayed import Delayed

from maxmargin import memory
from maxmargin.backends.cpu.trees.columns import encode
from maxmargin.dask.cluster import Cluster
from maxmargin.dask.rows import Block, Partitions, grouped
from maxmargin.ensemble.trees.columns import (
    BinnedColumns,
    Ends,
    bins_of,
    different_values,
    entries_of_column,
)

VALUES = 1 << 16  # different values of a column that are told apart
CODES = 1 << 18  # codes of all columns, where tables of them are sent
_LEAST_BINS = 1 << 8


class Values(NamedTuple):
    """Different values of a column, how often each is there, and whether these are all."""

    different: np.ndarray
    counts: np.ndarray
    exact: bool = True

    def limited(self) -> Values:
        """Return quantiles of them where there are too many."""
        if len(self.different) <= VALUES:
            return self
        _, greatest = bins_of(self.different, self.counts, VALUES)
        place = np.searchsorted(greatest, self.different)
        counts = np.bincount(place, weights=self.counts).astype(np.int64)
        return Values(greatest, counts, False)


class Coded(NamedTuple):
    """Rows in codes, as a worker keeps them.

    Attributes
    ----------
    columns : BinnedColumns
    y : int array (n,) of classes, or float array (n_outputs, n)
    weight : float array (n,)
    pieces : tuple of (int, int)
        The partitions whose rows these are, one after the other, and how many each has.
    """

    columns: BinnedColumns
    y: np.ndarray
    weight: np.ndarray
    pieces: tuple[tuple[int, int], ...]

    @property
    def n(self) -> int:
        """Rows."""
        return len(self.weight)


class Size(NamedTuple):
    """Number of a partition, its rows, and those of positive weight."""

    number: int
    n: int
    weighed: int


@dataclass
class CodedRows:
    """All rows of a fit in codes, in groups that tasks work on.

    Use :meth:`of`.
    """

    cluster: Cluster
    groups: list[Delayed]
    pieces: list[tuple[tuple[int, int], ...]]
    ends: list[Ends]
    n: int
    sizes: list[Size]

    @classmethod
    def of(
        cls,
        rows: Partitions,
        max_bins: int | None,
        *,
        tables: bool = True,
        lists: bool = True,
        weighed: bool = False,
        numbers: bool = False,
    ) -> CodedRows:
        """Code the columns of all partitions.

        Parameters
        ----------
        rows : Partitions
        max_bins : int or None
            As in :class:`~maxmargin.ensemble.trees.columns.BinnedColumns`.
        tables : bool
            Whether tables of all codes will be sent, so that these must not be too many.
        lists : bool
        weighed : bool
            Whether rows of weight zero are no rows: their values make no codes.
        numbers : bool
            Whether targets are real numbers, and not classes.
        """
        cluster = rows.cluster
        found = rows.reduced(values_of, weighed, combine=merged, name="values")
        most = _most_bins(found, max_bins) if tables else max_bins
        ends = [bins_of(own.different, own.counts, most) for own in found]
        inexact = [f for f, own in enumerate(found) if not own.exact]
        fewer = sum(len(own.different) > (most or VALUES) for own in found) if most else 0
        if inexact:
            seen = rows.reduced(spans_of, inexact, [ends[f][1] for f in inexact], combine=widest)
            for f, own in zip(inexact, seen, strict=True):
                ends[f] = own
        if inexact or (most != max_bins and fewer):
            cluster.distribution.notes.append(
                f"{max(len(inexact), fewer)} of {len(found)} columns have more different values "
                f"than are told apart here, and were put into {most or VALUES} bins of about as "
                "many rows each"
            )
        shared = cluster.share(ends)
        tasks = rows.map(coded, shared, lists, numbers, name="code")
        _refuse_too_many(cluster, rows.n, ends)
        tasks = cluster.keep(tasks)
        sizes = cluster.run([cluster.task(_size, task) for task in tasks])
        groups = grouped([own.n for own in sizes], *cluster.places(tasks))
        joined = [
            tasks[own[0]]
            if len(own) == 1
            else cluster.task(stack, [tasks[k] for k in own], lists, name="stack")
            for own in groups
        ]
        kept = cluster.keep(joined)
        pieces = [tuple((sizes[k].number, sizes[k].n) for k in own) for own in groups]
        n = sum(own.n for own in sizes)
        return cls(cluster, kept, pieces, ends, n, sorted(sizes))

    @property
    def first(self) -> np.ndarray:
        """Where the codes of each column begin among those of all."""
        return np.cumsum([0, *(len(greatest) for _, greatest in self.ends)], dtype=np.int64)

    @property
    def least(self) -> np.ndarray:
        """Least value of each code, column after column."""
        return np.concatenate([least for least, _ in self.ends])

    @property
    def greatest(self) -> np.ndarray:
        """Greatest value of each code."""
        return np.concatenate([greatest for _, greatest in self.ends])

    @property
    def n_features(self) -> int:
        """Columns."""
        return len(self.ends)

    @property
    def row_bytes(self) -> int:
        """Bytes of a row in codes, with its target and weight; those of sparse ones are fewer.

        It does not depend on partitions: nor do trees, whose ways to grow are chosen by it.
        """
        return bytes_of_codes(self.ends) + 16

    @property
    def n_weighed(self) -> int:
        """Rows of positive weight."""
        return sum(own.weighed for own in self.sizes)

    def stretches(self) -> list[list[tuple[int, int]]]:
        """Begin and end, among all rows of positive weight, of the partitions of each group."""
        ends = np.cumsum([0, *(own.weighed for own in self.sizes)]).tolist()
        where = {own.number: pair for own, pair in zip(self.sizes, pairwise(ends), strict=True)}
        return [[where[number] for number, _ in pieces] for pieces in self.pieces]

    def starts(self) -> list[list[int]]:
        """Place among all rows of the first one of each partition, for each group."""
        ends = np.cumsum([0, *(own.n for own in self.sizes)]).tolist()
        where = {own.number: begin for own, begin in zip(self.sizes, ends, strict=False)}
        return [[where[number] for number, _ in pieces] for pieces in self.pieces]

    def in_order(self, arrays: Sequence[np.ndarray]) -> np.ndarray:
        """Put what groups say of their rows, along the last axis, into the order of the rows."""
        parts: dict[int, np.ndarray] = {}
        for array, pieces in zip(arrays, self.pieces, strict=True):
            ends = np.cumsum([0, *(size for _, size in pieces)])
            for (number, _), (a, b) in zip(pieces, pairwise(ends), strict=True):
                parts[number] = array[..., a:b]
        return np.concatenate([parts[number] for number in sorted(parts)], axis=-1)

    def map(self, function: Callable, *args: Any, each: Sequence = (), name: str = "") -> list:
        """Return a task for each group that calls a function of it."""
        own = each if len(each) else [()] * len(self.groups)
        return [
            self.cluster.task(function, group, *mine, *args, name=name or None)
            for group, mine in zip(self.groups, own, strict=True)
        ]


# -- values ------------------------------------------------------------------------------------


def values_of(block: Block, weighed: bool = False) -> list[Values]:
    """Return the values of each column of a partition: of all rows, or those of some weight."""
    X = block.X
    if weighed and not block.weight.all():
        X = X[np.flatnonzero(block.weight)]
    n = X.shape[0]
    if not sp.issparse(X):
        return [Values(*different_values(np.sort(X[:, f]))).limited() for f in range(X.shape[1])]
    X, found = X.tocsc(), []
    for f in range(X.shape[1]):
        own = slice(X.indptr[f], X.indptr[f + 1])
        rows, values = entries_of_column(X.indices[own], X.data[own])
        different, counts = different_values(np.sort(values))
        zeros = n - len(rows)
        if zeros:
            different, counts = np.append(different, 0.0), np.append(counts, zeros)
        found.append(_added([Values(different, counts)]))
    return found


def merged(parts: list[list[Values]]) -> list[Values]:
    """Put the values of several partitions together."""
    return [_added(list(own)) for own in zip(*parts, strict=True)]


def _added(parts: list[Values]) -> Values:
    different, place = np.unique(
        np.concatenate([part.different for part in parts]), return_inverse=True
    )
    counts = np.bincount(place, weights=np.concatenate([part.counts for part in parts]))
    exact = all(part.exact for part in parts)
    return Values(different, counts.astype(np.int64), exact).limited()


def spans_of(block: Block, features: list[int], greatest: list[np.ndarray]) -> list[Ends]:
    """Return the least and greatest value of each bin of some columns of a partition."""
    found = []
    for f, ends in zip(features, greatest, strict=True):
        column = block.X[:, [f]].toarray() if sp.issparse(block.X) else block.X[:, [f]]
        values = np.ascontiguousarray(column.ravel())
        codes = np.empty(len(values), np.uint32)
        encode(values, ends, codes)
        least, most = np.full(len(ends), np.inf), np.full(len(ends), -np.inf)
        np.minimum.at(least, codes, values)
        np.maximum.at(most, codes, values)
        found.append((least, most))
    return found


def widest(parts: list[list[Ends]]) -> list[Ends]:
    """Put the spans of bins of several partitions together."""
    return [
        (np.min([low for low, _ in own], axis=0), np.max([high for _, high in own], axis=0))
        for own in zip(*parts, strict=True)
    ]


def _most_bins(found: list[Values], max_bins: int | None) -> int | None:
    """Return how many bins columns may have for their codes to be few enough in all."""
    sizes = np.array([len(own.different) for own in found])
    wanted = sizes if max_bins is None else np.minimum(sizes, max_bins)
    if wanted.sum() <= CODES:
        return max_bins
    bins = 1 << 15
    while bins > _LEAST_BINS and np.minimum(sizes, bins).sum() > CODES:
        bins >>= 1
    return bins if max_bins is None else min(bins, max_bins)


# -- codes -------------------------------------------------------------------------------------


def coded(block: Block, ends: list[Ends], lists: bool, numbers: bool) -> Coded:
    """Code the rows of a partition."""
    columns = BinnedColumns.of(block.X, lists=lists, ends=ends)
    y = np.asarray(block.y)
    y = np.atleast_2d(y.astype(np.float64).T) if numbers else y.astype(np.int32)
    return Coded(columns, y, block.weight, ((block.number, block.n),))


def stack(parts: list[Coded], lists: bool) -> Coded:
    """Put the rows of several partitions together."""
    return Coded(
        BinnedColumns.stacked([part.columns for part in parts], lists=lists),
        np.concatenate([part.y for part in parts], axis=-1),
        np.concatenate([part.weight for part in parts]),
        tuple(piece for part in parts for piece in part.pieces),
    )


def _size(part: Coded) -> Size:
    return Size(part.pieces[0][0], part.n, int(np.count_nonzero(part.weight)))


def bytes_of_codes(ends: list[Ends]) -> int:
    """Bytes of the codes of a row."""
    sizes = (len(greatest) for _, greatest in ends)
    return sum(1 if size <= 1 << 8 else 2 if size <= 1 << 16 else 4 for size in sizes)


def _refuse_too_many(cluster: Cluster, n: int, ends: list[Ends]) -> None:
    """Refuse rows whose codes have no room."""
    needed, room = n * (bytes_of_codes(ends) + 16), cluster.budget() * cluster.n_workers
    if needed > room:
        raise MemoryError(
            f"The codes of {n:,} rows take {memory.megabytes(needed)}, and the workers may keep "
            f"{memory.megabytes(room)}: add workers, raise maxmargin.memory-per-worker, or set "
            "max_bins=256, which takes one byte an entry."
        )
