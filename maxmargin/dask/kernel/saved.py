"""Where a distributed fit is, in a file of who fits: which rows have variables, and these.

Another cluster can go on from it, with other partitions of the same rows: the fingerprint of the
data is a sum over rows, each with its place, which every partition adds to.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp

from maxmargin.dask.kernel.parts import Known
from maxmargin.dask.rows import Block, Partitions
from maxmargin.estimators.checkpoint import StateFile

_STATED = ("C", "lam", "nu", "epsilon", "class_weight", "multiclass", "fit_intercept")
_ODD = np.uint64(0x9E3779B97F4A7C15)


def _mixed(bits: np.ndarray) -> np.ndarray:
    """Scramble numbers, so that sums of them tell which they were (splitmix64)."""
    with np.errstate(over="ignore"):
        bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return bits ^ (bits >> np.uint64(31))


def _of_columns(values: np.ndarray) -> np.ndarray:
    """One number for each row of a table of numbers."""
    table = np.ascontiguousarray(values.reshape(len(values), -1), dtype=np.float64) + 0.0
    factors = _mixed(np.arange(1, table.shape[1] + 1, dtype=np.uint64) * _ODD)
    with np.errstate(over="ignore"):
        return (_mixed(table.view(np.uint64)) * factors).sum(axis=1, dtype=np.uint64)


def fingerprint(block: Block, offset: int) -> np.uint64:
    """Sum over the rows of a partition, to which all others add."""
    X = block.X
    if sp.issparse(X):
        X = X.tocsr(copy=True)
        X.sum_duplicates()
        X.eliminate_zeros()
        entries = np.column_stack([X.data, X.indices.astype(np.float64)])
        rows = np.zeros(block.n, dtype=np.uint64)
        with np.errstate(over="ignore"):
            np.add.at(rows, np.repeat(np.arange(block.n), np.diff(X.indptr)), _of_columns(entries))
    elif isinstance(X, np.ndarray) and X.dtype != object:
        rows = _of_columns(X)
    else:
        rows = np.array([hash_of_object(x) for x in X], dtype=np.uint64)
    parts = [rows, _of_columns(block.weight)]
    parts += [] if block.y is None else [_of_columns(np.asarray(block.y))]
    places = np.arange(offset, offset + block.n, dtype=np.uint64)
    with np.errstate(over="ignore"):
        for part in parts:
            places = _mixed(places * _ODD + part)
        return places.sum(dtype=np.uint64)


def hash_of_object(value: Any) -> int:
    """Return a number that is the same in every process."""
    import joblib

    return int(joblib.hash(value)[:16], 16)


def _total(parts: list[np.uint64]) -> np.uint64:
    return np.array(parts, dtype=np.uint64).sum(dtype=np.uint64)


class SavedFit(StateFile):
    """The file of a distributed fit."""

    def __init__(self, machine: Any, rows: Partitions) -> None:
        total = rows.reduced(fingerprint, combine=_total, each=(list(map(int, rows.offsets)),))
        asked = machine.get_params(deep=False)
        stated = type(machine).__name__, {name: asked[name] for name in _STATED if name in asked}
        kernel = machine._validated_kernel()  # its numbers depend on the order of sums
        super().__init__(machine.checkpoint, kernel, (rows.n, int(total)), stated)
        self.interval, self.written = machine.checkpoint_interval, 0.0

    def due(self, seconds: float) -> bool:
        """Whether it is time to write."""
        if seconds - self.written < self.interval:
            return False
        self.written = seconds
        return True

    def write(self, known: Known) -> None:
        """Replace the file."""
        self.write_arrays({"place": known.place, "beta": known.beta})

    def read(self) -> Known | None:
        """Return what a fit has left."""
        found = self.read_arrays(["place", "beta"])
        if found is None:
            return None
        place, beta = found
        if beta.ndim != 2 or len(beta) != len(place) or not np.isfinite(beta).all():
            raise self._not_a_checkpoint("its variables are not those of rows")
        return Known(place, beta)


def dealt(known: Known, rows: Partitions) -> list[Known]:
    """Deal known rows to the partitions that have them."""
    ends = np.searchsorted(known.place, [*rows.offsets, rows.n])
    return [Known(known.place[a:b], known.beta[a:b]) for a, b in pairwise(ends)]
