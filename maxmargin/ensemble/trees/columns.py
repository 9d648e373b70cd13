"""Columns of a data set in codes, made once and shared by all trees, rounds and replicates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from maxmargin.backends.cpu.trees.columns import (
    FOUR_BYTES,
    ONE_BYTE,
    SPARSE,
    TWO_BYTES,
    Store,
    encode,
)
from maxmargin.backends.threads import ALONE, Workers
from maxmargin.estimators.data import seems_finite

Ends = tuple[np.ndarray, np.ndarray]  # least and greatest value of each code of a column
_BYTES = {ONE_BYTE: 1, TWO_BYTES: 2, FOUR_BYTES: 4}
_TYPES = {ONE_BYTE: np.uint8, TWO_BYTES: np.uint16, FOUR_BYTES: np.uint32}
_SPARSE_BYTES = 8  # of an entry: its row and its code
_ROUNDS = 4  # of finding the values with more rows than a bin
_FEW = 1 / 8  # share of rows that differ from a common code where a list of them is worth it


@dataclass(frozen=True)
class BinnedColumns:
    """The columns of X in codes: the number of each value among the different ones of its column.

    Where a column has more than ``max_bins`` different values, a code stands for a bin of
    neighbouring values instead, and all bins have about as many rows.

    Attributes
    ----------
    store : Store
        What the compiled loops read.
    n_rows, n_features : int
    again : int array of shape (m,)
        Columns of X with missing values, which are coded twice: with these above all other values,
        in their own place, and below them, after the last column.

    Examples
    --------
    >>> from maxmargin.ensemble.trees.columns import BinnedColumns
    >>> columns = BinnedColumns.of([[3.0, 1.5], [1.0, 1.5], [3.0, 0.5]])
    >>> columns.codes(0), columns.values(0)
    (array([1, 0, 1], dtype=uint8), array([1., 3.]))
    """

    store: Store
    n_rows: int
    n_features: int
    again: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))

    @classmethod
    def of(
        cls,
        X: Any,
        max_bins: int | None = None,
        workers: Workers = ALONE,
        lists: bool = True,
        ends: Sequence[Ends] | None = None,
    ) -> BinnedColumns:
        """Code the columns of X, dense or CSR: (n_samples, n_features), finite or missing.

        Parameters
        ----------
        X : array or CSR matrix
        max_bins : int, optional
            At least 2. Without it every value keeps its own code, and all tests are exact.
        workers : Workers
            Threads.
        lists : bool, default=True
            Also list the rows that differ from a column's common code, where these are few: an
            exhaustive search then looks at no others. Random tests have no use for it.
        ends : sequence of pairs of arrays, optional
            Least and greatest value of each code of each column, where these are known: of rows
            among which X has some.
        """
        sparse = sp.issparse(X)
        X = X.tocsc() if sparse else np.asarray(X, dtype=getattr(X, "dtype", np.float64))
        n, d = X.shape
        if n >= 1 << 31:
            raise ValueError(f"Trees take fewer than 2^31 rows, got {n}: fit on a sample of them.")

        def column(f: int) -> _Column:
            known = None if ends is None else ends[f]
            if sparse:
                a, b = X.indptr[f], X.indptr[f + 1]
                return _sparse_column(X.indices[a:b], X.data[a:b], n, max_bins, known)
            return _dense_column(X[:, f], max_bins, lists, known)

        again = np.empty(0, np.int64)
        if not sparse and X.dtype.kind == "f" and not seems_finite(X):
            again = np.flatnonzero(np.isnan(X).any(axis=0))

        def with_missing(f: int) -> _Column:
            if f >= d or f in missing:
                return _missing_column(X[:, again[f - d] if f >= d else f], max_bins, f >= d)
            return column(f)

        missing = set(again.tolist())
        coded = workers.map(with_missing, range(d + len(again)))
        return cls(_stored(coded, n), n, d, again)

    @property
    def feature(self) -> np.ndarray:
        """Column of X that each coded column is of."""
        return np.append(np.arange(self.n_features), self.again)

    @classmethod
    def stacked(
        cls,
        parts: Sequence[BinnedColumns],
        rows: Sequence[np.ndarray | None] | None = None,
        lists: bool = True,
    ) -> BinnedColumns:
        """Put the rows of several together, whose codes mean the same; all of them or some.

        Parameters
        ----------
        parts : sequence of BinnedColumns
        rows : sequence of int arrays or None, optional
            Which rows of each part, in their order; None for all.
        lists : bool, default=True
            As in :meth:`of`.
        """
        chosen = [None] * len(parts) if rows is None else rows
        places = [_places(part.n_rows, own) for part, own in zip(parts, chosen, strict=True)]
        sizes = (
            part.n_rows if own is None else len(own)
            for part, own in zip(parts, chosen, strict=True)
        )
        starts = np.cumsum([0, *sizes])

        def column(f: int) -> _Column:
            first = parts[0].store
            ends = slice(*first.first[f : f + 2])
            least, greatest = first.least[ends], first.greatest[ends]
            if first.least is first.greatest:
                least = greatest
            if all(part.store.kind[f] == SPARSE for part in parts):
                found = [
                    part._listed(f, place, start)
                    for part, place, start in zip(parts, places, starts, strict=False)
                ]
                entries = [np.concatenate(own) for own in zip(*found, strict=True)]
                common = int(first.common[first.listed[f]])
                there, own = entries
                return _Column(least, greatest, None, there, own, common)
            codes = [
                part.codes(f) if own is None else part.codes(f)[own]
                for part, own in zip(parts, chosen, strict=True)
            ]
            dense = np.concatenate(codes).astype(_TYPES[_kind(len(greatest))], copy=False)
            return _with_list(_Column(least, greatest, dense), lists)

        n, d = int(starts[-1]), parts[0].n_features
        return cls(_stored([column(f) for f in range(d)], n), n, d)

    def _listed(self, feature: int, places: np.ndarray | None, start: int) -> Ends:
        """Rows and codes of a column's list: of the rows that have a place, counted from start."""
        listed = self.store.listed[feature]
        own = slice(*self.store.begin[listed : listed + 2])
        rows, codes = self.store.rows[own].astype(np.int64), self.store.codes[own]
        if places is not None:
            rows = places[rows]
            there = np.flatnonzero(rows >= 0)
            there = there[np.argsort(rows[there])]
            rows, codes = rows[there], codes[there]
        return (rows + start).astype(np.uint32), codes

    @property
    def nbytes(self) -> int:
        """Bytes that they take."""
        return sum(array.nbytes for array in {id(array): array for array in self.store}.values())

    def codes(self, feature: int) -> np.ndarray:
        """Return the codes of a column, (n_rows,)."""
        store, kind = self.store, self.store.kind[feature]
        if kind != SPARSE:
            return (store.small, store.medium, store.large)[kind][store.slot[feature]]
        listed = store.listed[feature]
        codes = np.full(self.n_rows, store.common[listed], dtype=store.codes.dtype)
        own = slice(*store.begin[listed : listed + 2])
        codes[store.rows[own]] = store.codes[own]
        return codes

    def values(self, feature: int) -> np.ndarray:
        """Return the greatest value of each code of a column."""
        return self.store.greatest[slice(*self.store.first[feature : feature + 2])]


class _Column(NamedTuple):
    least: np.ndarray
    greatest: np.ndarray
    dense: np.ndarray | None = None
    rows: np.ndarray | None = None  # of a list
    codes: np.ndarray | None = None
    common: int = 0


def _dense_column(
    values: np.ndarray, max_bins: int | None, lists: bool, ends: Ends | None
) -> _Column:
    """Code a column of an array."""
    values = np.ascontiguousarray(values)
    least, greatest = _bins(np.sort(values), max_bins) if ends is None else ends
    codes = np.empty(len(values), _TYPES[_kind(len(greatest))])
    encode(values, greatest, codes)
    return _with_list(_Column(least, greatest, codes), lists)


def _missing_column(values: np.ndarray, max_bins: int | None, below: bool) -> _Column:
    """Code a column with missing values, these below all others (minus infinity) or above (NaN)."""
    values = np.ascontiguousarray(values)
    missing = np.isnan(values)
    present = values[~missing]
    ends = _bins(np.sort(present), max_bins)
    own = np.empty(len(present), np.int64)
    if len(present):
        encode(present, ends[1], own)
    count = len(ends[1])
    codes = np.full(len(values), 0 if below else count, _TYPES[_kind(count + 1)])
    codes[~missing] = own + below
    parts = ([-np.inf], ends[1]) if below else (ends[1], [np.nan])
    greatest = np.concatenate(parts)
    least = greatest
    if ends[0] is not ends[1]:
        least = np.concatenate([ends[0] if part is ends[1] else part for part in parts])
    return _Column(least, greatest, codes)


def _with_list(column: _Column, lists: bool) -> _Column:
    """Return a column with a list beside its codes, where few rows differ from the common one."""
    codes = column.dense
    assert codes is not None
    if lists and 1 < len(column.greatest) <= _FEW * len(codes):
        counts = np.bincount(codes)
        common = int(counts.argmax())
        if len(codes) - counts[common] <= _FEW * len(codes):
            rows = np.flatnonzero(codes != common).astype(np.uint32)
            return column._replace(rows=rows, codes=codes[rows].astype(np.uint32), common=common)
    return column


def _places(n: int, rows: np.ndarray | None) -> np.ndarray | None:
    """Place of each of n rows among some of them, -1 for the others; None where it is all."""
    if rows is None:
        return None
    places = np.full(n, -1, np.int64)
    places[rows] = np.arange(len(rows))
    return places


def entries_of_column(rows: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows of a sparse column in order, each once, and the values there."""
    order = np.argsort(rows, kind="stable")
    rows, values = rows[order], values[order]
    if len(rows) > 1 and (rows[1:] == rows[:-1]).any():  # entries that are to be added up
        rows, place = np.unique(rows, return_inverse=True)
        values = np.bincount(place, weights=values).astype(values.dtype)
    return rows, values


def _sparse_column(
    rows: np.ndarray, values: np.ndarray, n: int, max_bins: int | None, ends: Ends | None
) -> _Column:
    """Code a column of a sparse matrix, as entries that are not zero unless that takes more."""
    rows, values = entries_of_column(rows, values)
    if ends is None:
        zeros = np.zeros(n - len(rows), dtype=values.dtype)
        ends = _bins(np.sort(np.concatenate([values, zeros])), max_bins)
    least, greatest = ends
    kind = _kind(len(greatest))
    codes = np.empty(len(values), np.uint32)
    encode(values, greatest, codes)
    common = np.empty(1, np.uint32)
    encode(np.zeros(1, values.dtype), greatest, common)
    if len(rows) * _SPARSE_BYTES < n * _BYTES[kind]:
        return _Column(least, greatest, None, rows.astype(np.uint32), codes, int(common[0]))
    dense = np.full(n, common[0], _TYPES[kind])
    dense[rows] = codes
    return _Column(least, greatest, dense)


def _bins(ordered: np.ndarray, max_bins: int | None) -> Ends:
    """Least and greatest value of each bin, of values in order."""
    return bins_of(*different_values(ordered), max_bins)


def different_values(ordered: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the different ones of values in order, and how often each is there."""
    new = np.ones(len(ordered), dtype=bool)
    np.not_equal(ordered[1:], ordered[:-1], out=new[1:])
    places = np.flatnonzero(new)
    return ordered[places].astype(np.float64), np.diff(places, append=len(ordered))


def bins_of(different: np.ndarray, counts: np.ndarray, max_bins: int | None) -> Ends:
    """Least and greatest value of each bin, of values in order; the same array if it is exact.

    Parameters
    ----------
    different, counts : arrays of shape (m,)
        Different values in order, and how often each is there.
    max_bins : int or None
    """
    if max_bins is None or len(different) <= max_bins:
        return different, different
    counts = counts.astype(np.float64)
    size = counts.sum() / max_bins  # of a bin
    for _ in range(_ROUNDS):  # values with more rows than that have a bin each, of any size
        heavy = counts > size
        rest = counts[~heavy].sum()
        size = rest / (max_bins - heavy.sum()) if rest else size
    counts = np.minimum(counts, size)
    bins = np.minimum((np.cumsum(counts) - 0.5 * counts) // size, max_bins - 1)
    begins = np.flatnonzero(np.diff(bins, prepend=-1.0))
    return different[begins], different[np.append(begins[1:], len(different)) - 1]


def _kind(bins: int) -> int:
    return ONE_BYTE if bins <= 1 << 8 else TWO_BYTES if bins <= 1 << 16 else FOUR_BYTES


def _stored(columns: list[_Column], n: int) -> Store:
    """Put columns of a kind together; they are given up one by one."""
    kinds = [_kind(len(c.greatest)) if c.dense is not None else SPARSE for c in columns]
    slots = np.zeros(len(columns), np.int32)
    dense = {}
    for kind, dtype in _TYPES.items():
        own = [f for f, other in enumerate(kinds) if other == kind]
        dense[kind] = np.empty((len(own), n), dtype)
        for slot, f in enumerate(own):
            slots[f], dense[kind][slot] = slot, columns[f].dense
            columns[f] = columns[f]._replace(dense=None)
    with_list = [f for f, column in enumerate(columns) if column.rows is not None]
    listed = np.full(len(columns), -1, np.int32)
    listed[with_list] = np.arange(len(with_list))
    rows = [columns[f].rows for f in with_list]
    codes = [columns[f].codes for f in with_list]
    exact = all(column.least is column.greatest for column in columns)
    greatest = np.concatenate([column.greatest for column in columns])
    least = greatest if exact else np.concatenate([column.least for column in columns])
    return Store(
        kind=np.array(kinds, np.uint8),
        slot=slots,
        listed=listed,
        small=dense[ONE_BYTE],
        medium=dense[TWO_BYTES],
        large=dense[FOUR_BYTES],
        begin=np.cumsum([0, *(len(own) for own in rows)], dtype=np.int64),  # type: ignore
        rows=np.concatenate([np.empty(0, np.uint32), *rows]),  # type: ignore[list-item]
        codes=np.concatenate([np.empty(0, np.uint32), *codes]),  # type: ignore[list-item]
        common=np.array([columns[f].common for f in with_list], np.int32),
        first=np.cumsum([0, *(len(column.greatest) for column in columns)], dtype=np.int64),
        least=least,
        greatest=greatest,
    )
