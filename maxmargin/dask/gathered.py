"""Fits that need all rows in one place: a matrix of all pairs, or a method that goes row by row.

What partitions are is looked at first, where they lie: those that do not go together are named, and
rows that have no room are refused before any of them has moved. Then they come to the process that
fits, which is where callbacks, time limits and Ctrl-C are, and where a model that keeps its rows
has to have room for them anyway.
"""

from __future__ import annotations

import math
from typing import Any

import dask
import numpy as np
import scipy.sparse as sp
from sklearn.utils import assert_all_finite
from sklearn.utils.validation import _num_samples

from maxmargin import memory
from maxmargin.dask.cluster import Cluster
from maxmargin.dask.collections import (
    in_columns,
    is_array,
    is_numeric,
    joined,
    partitions_of,
    pieces_of,
    sizes_of,
    width_of,
)
from maxmargin.dask.rows import (
    Partitions,
    Summary,
    _names,
    _refuse_another_order,
    naming_partition,
)

_ROOM = 0.4  # of the memory that is free here: pieces and the whole are here at the same time


def fit_gathered(machine: Any, X: Any, y: Any, sample_weight: Any, **options: Any) -> Any:
    """Bring all rows here, and fit the machine to them."""
    cluster, X = Cluster.active(), in_columns(X)
    if is_array(X) and not math.isnan(X.nbytes):
        _refuse(machine, int(X.nbytes), sum(X.chunks[0]))
    sizes, parts = sizes_of(X), partitions_of(X)
    given = {"y": y, "sample_weight": sample_weight}
    columns = {
        name: pieces_of(data, sizes, name) for name, data in given.items() if data is not None
    }
    rows = looked_at(cluster, parts, columns)
    rows._agree(machine)
    _refuse(machine, rows.nbytes, rows.n)
    some = [summary.number for summary in rows.summaries]
    wanted = {"X": parts, **columns}
    tasks = [pieces[number] for pieces in wanted.values() for number in some]
    pieces = cluster.run(tasks)
    whole = {
        name: joined(pieces[k * len(some) : (k + 1) * len(some)]) for k, name in enumerate(wanted)
    }
    del pieces
    try:
        machine.fit(whole.pop("X"), **whole, **options)
    except ValueError:
        refuse_infinite(cluster, parts)  # with the partition's number, if it is one's fault
        raise
    cluster.distribution.partitions, cluster.distribution.rows = len(some), rows.n
    cluster.distribution.notes.append("All rows were gathered, and the machine fitted in one place")
    machine.distribution_ = cluster.distribution
    return machine


def looked_at(cluster: Cluster, parts: list[Any], columns: dict[str, list[Any]]) -> Partitions:
    """Look at partitions of X, and of y and weights where they are given, where they lie."""
    alone = [None] * len(parts)
    pairs = zip(parts, *(columns.get(name, alone) for name in ("y", "sample_weight")), strict=True)
    looks = [cluster.task(_look, number, *own, name="look") for number, own in enumerate(pairs)]
    cluster.partitions = looks
    return Partitions(cluster, parts, cluster.run(looks))


def refuse_infinite(cluster: Cluster, parts: list[Any]) -> None:
    """Refuse partitions with numbers that are not finite, or no numbers."""
    cluster.run(
        [cluster.task(_refuse_infinite, k, part, name="finite") for k, part in enumerate(parts)]
    )


def has_room(needed: int) -> bool:
    """Whether rows of so many bytes have room here."""
    return needed <= _room()


def _room() -> int:
    return int(_ROOM * memory.available())


def _refuse(machine: Any, needed: int, rows: int) -> None:
    """Refuse rows that have no room here."""
    if not has_room(needed):
        raise MemoryError(
            f"{type(machine).__name__} needs all rows in one place: {rows:,} of them take "
            f"{memory.megabytes(needed)}, and {memory.megabytes(_room())} may be taken here. For "
            "so many rows, fit a linear machine (LogisticRegression, LinearSVC, LinearSVR, Ridge) "
            "to the features of Nystroem or RandomFourier, which stay where the rows are; or fit "
            "to some of the rows."
        )


def _look(number: int, X: Any, y: Any, weight: Any) -> Summary:
    """Say what a partition is."""
    with naming_partition(number):
        n = _num_samples(X)
        for name, other in (("y", y), ("sample_weight", weight)):
            if other is not None and _num_samples(other) != n:
                raise ValueError(f"X has {n} rows and {name} has {_num_samples(other)}.")
            _refuse_another_order(X, other, name)
        names = _names(X)
        outputs = () if y is None else tuple(getattr(y, "shape", (n,))[1:])
        return Summary(
            number=number,
            n=n,
            width=width_of(X),
            dtype=_dtype(X),
            sparse=sp.issparse(X),
            nbytes=sum(map(_nbytes, (X, y, weight))),
            names=None if names is None else tuple(names),
            weight=float(n if weight is None else np.sum(np.asarray(weight, dtype=np.float64))),
            outputs=outputs,
            has_columns=len(getattr(X, "shape", ())) > 1,
        )


def _refuse_infinite(number: int, X: Any) -> None:
    """Refuse a partition of floats that are not finite, or of complex numbers."""
    with naming_partition(number):
        dtypes = [X.dtype] if hasattr(X, "dtype") else list(getattr(X, "dtypes", []))
        kinds = {getattr(dtype, "kind", "") for dtype in dtypes}
        if "c" in kinds:
            raise ValueError("Complex data not supported")
        if kinds == {"f"}:
            assert_all_finite(X.data if sp.issparse(X) else X, input_name="X")


def _nbytes(data: Any) -> int:
    """Bytes of a partition."""
    if hasattr(data, "estimated_size"):  # polars, which Dask does not know
        return int(data.estimated_size())
    return int(dask.sizeof.sizeof(data))


def _dtype(X: Any) -> str:
    """Type of a partition's entries, as an estimator will take them."""
    if not hasattr(X, "dtype") and not hasattr(X, "dtypes"):
        return type(X).__name__
    found = {X.dtype} if hasattr(X, "dtype") else set(X.dtypes)
    if all(str(dtype).lower() == "float32" for dtype in found):
        return "float32"
    return "float64" if is_numeric(X) else "object"
