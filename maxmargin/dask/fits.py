"""Fits on Dask collections: which family of machines is fitted how.

Each family registers what it does (:func:`fit_partitions`). What a machine needs all rows in one
place for, a Gram matrix or a tree of single rows, it gets them here, if they have room.
"""

from __future__ import annotations

from functools import singledispatch
from importlib import import_module
from typing import Any

import dask
from sklearn.utils.validation import _num_samples

from maxmargin import memory
from maxmargin.dask.answers import _joined
from maxmargin.dask.cluster import Cluster
from maxmargin.dask.collections import in_columns, partitions_of, pieces_of, sizes_of
from maxmargin.dask.rows import naming_partition
from maxmargin.estimators.callbacks import observed

_FAMILIES: dict[str, str] = {"linear": "maxmargin.dask.linear"}  # rooms of the package, and who fits their machines
_ROOM = 0.5  # of the memory that is free here, that rows may take which are gathered


def fit(machine: Any, X: Any, y: Any = None, sample_weight: Any = None, **options: Any) -> Any:
    """Fit a machine to collections, as its family does."""
    machine._validate_params()
    for base in type(machine).__mro__:
        room = base.__module__.split(".")
        if room[0] == "maxmargin" and room[1] in _FAMILIES:
            import_module(_FAMILIES[room[1]])  # registers its machines
    return observed(_fitted)(machine, X, y, sample_weight, **options)


def _fitted(machine: Any, X: Any, y: Any, sample_weight: Any, **options: Any) -> Any:
    vars(machine).pop("distribution_", None)
    return fit_partitions(machine, X, y, sample_weight, **options)


@singledispatch
def fit_partitions(machine: Any, X: Any, y: Any, sample_weight: Any, **options: Any) -> Any:
    """Gather the rows and fit the machine here: what all do that have no other way."""
    cluster = Cluster.active()
    X = in_columns(X)
    sizes, parts = sizes_of(X), partitions_of(X)
    sizes_in_bytes = cluster.run([cluster.task(_nbytes, part, k) for k, part in enumerate(parts)])
    needed, room = sum(sizes_in_bytes), int(_ROOM * memory.available())
    if needed > room:
        raise MemoryError(
            f"{type(machine).__name__} needs all rows in one place, {memory.megabytes(needed)} of "
            f"them, and {memory.megabytes(room)} may be taken here. For so many rows, fit a linear "
            "machine (LogisticRegression, LinearSVC, LinearSVR, LinearRegression) to the features "
            "of Nystroem or RandomFourier, which stay where the rows are."
        )
    given = {"y": y, "sample_weight": sample_weight}
    found = cluster.run(
        [cluster.task(list, parts, name="gather")]
        + [
            cluster.task(list, pieces_of(data, sizes, X, name), name="gather")
            for name, data in given.items()
            if data is not None
        ]
    )
    columns = [_joined([part for part in some if _num_samples(part)] or some[:1]) for some in found]
    named = dict(
        zip([n for n, data in given.items() if data is not None], columns[1:], strict=True)
    )
    machine.fit(columns[0], **named, **options)
    machine.distribution_ = cluster.distribution
    machine.distribution_.partitions, machine.distribution_.rows = (
        len(parts),
        _num_samples(columns[0]),
    )
    machine.distribution_.notes.append(
        "All rows were gathered, and the machine fitted in one place"
    )
    return machine


def _nbytes(part: Any, number: int) -> int:
    with naming_partition(number):
        return int(dask.sizeof.sizeof(part))


def learn(machine: Any, X: Any, y: Any = None, **options: Any) -> Any:
    """Learn from the partitions of a stream, one after the other, in their order."""
    X = in_columns(X)
    sizes, parts = sizes_of(X), partitions_of(X)
    pieces = {"y": y, "sample_weight": options.pop("sample_weight", None)}
    columns = {
        name: pieces_of(data, sizes, X, name) for name, data in pieces.items() if data is not None
    }
    for number, part in enumerate(parts):
        own = [columns[name][number] for name in columns]
        rows, *others = dask.compute(part, *own)
        if _num_samples(rows):
            with naming_partition(number):
                machine.partial_fit(rows, **dict(zip(columns, others, strict=True)), **options)
    return machine
