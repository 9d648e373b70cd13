"""Collections as lists of partitions: stretches of rows, each a task that makes it.

Three kinds are known: Dask arrays (dense, or with sparse blocks), Dask dataframes and series, and
lists of delayed objects or futures, each a partition of any type that the estimators take (pandas,
polars, NumPy, CSR). Partitions of X, y and weights belong together by their places.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import dask
import dask.array as da
import numpy as np
import scipy.sparse as sp
from dask.delayed import Delayed
from sklearn.utils.validation import _num_samples

from maxmargin.estimators.collections import is_collection

Sizes = tuple[float, ...]  # rows of each partition, nan where Dask does not know them


def is_array(data: Any) -> bool:
    """Whether data are a Dask array."""
    return isinstance(data, da.Array)


def is_frame(data: Any) -> bool:
    """Whether data are a Dask dataframe or series."""
    if isinstance(data, Delayed):  # which has any attribute that it is asked for
        return False
    return hasattr(data, "to_delayed") and hasattr(data, "divisions")


def in_columns(data: Any) -> Any:
    """Return an array whose rows are not cut into pieces; others as they are."""
    if is_array(data) and data.ndim > 1 and len(data.chunks[1]) > 1:
        return data.rechunk({1: -1})
    return data


def sizes_of(data: Any) -> Sizes:
    """Rows of each partition, nan where they are not known."""
    if is_array(data):
        return tuple(data.chunks[0])
    if is_frame(data):
        return (math.nan,) * data.npartitions
    _refuse_single(data, "X")
    return (math.nan,) * len(data)


def partitions_of(data: Any, name: str = "X") -> list[Delayed]:
    """Return a task for each partition of a collection."""
    _refuse_closed_client(data, name)
    if is_array(data):
        if not data.ndim:
            raise ValueError(f"{name} is a single number, and not a Dask array of rows.")
        return list(in_columns(data).to_delayed().ravel())
    if is_frame(data):
        return _frame_partitions(data)
    _refuse_single(data, name)
    return [_as_delayed(part) for part in data]


def _frame_partitions(data: Any) -> list[Delayed]:
    """Return the partitions of a dataframe, as many as it says it has.

    Dask puts partitions of Parquet files together where few columns are wanted, and then those of
    X and y would be others: there, columns that are not wanted are left out, and no more.
    """
    parts = list(data.to_delayed())
    if len(parts) != data.npartitions:
        parts = list(data.simplify().to_delayed(optimize_graph=False))
    return parts


def pieces_of(data: Any, sizes: Sizes, name: str) -> list[Any]:
    """Return the partitions of y or of weights that belong to those of X.

    They may be a collection with as many partitions, an array whose chunks can be cut as X's are,
    or, where Dask knows how many rows each partition of X has, an array in memory.
    """
    known = not any(map(math.isnan, sizes))
    if is_array(data) and known and not any(map(math.isnan, data.chunks[0])):
        if data.shape[0] != sum(sizes):
            raise ValueError(
                "Found input variables with inconsistent numbers of samples: "
                f"{[int(sum(sizes)), data.shape[0]]}"
            )
        data = data.rechunk({0: tuple(map(int, sizes))})
    if is_collection(data):
        parts = partitions_of(data, name)
        if len(parts) != len(sizes):
            raise ValueError(
                f"X has {len(sizes)} partitions and {name} has {len(parts)}, so that Dask cannot "
                f"tell which rows belong together: repartition {name} as X is, or X as {name}."
            )
        return parts
    if not known:
        raise ValueError(
            f"{name} is in memory ({type(data).__name__}), and X has partitions of sizes that Dask "
            f"does not know: give {name} as a collection with the same partitions, or have them "
            "counted first (X.compute_chunk_sizes() of an array, X.to_dask_array(lengths=True) of "
            "a dataframe)."
        )
    rows = int(sum(sizes))
    if _num_samples(data) != rows:
        raise ValueError(
            "Found input variables with inconsistent numbers of samples: "
            f"{[rows, _num_samples(data)]}"
        )
    values = data if hasattr(data, "iloc") or isinstance(data, np.ndarray) else np.asarray(data)
    ends = np.cumsum([0, *sizes]).astype(int)
    taken = values.iloc if hasattr(values, "iloc") else values
    return [dask.delayed(taken[a:b], traverse=False, pure=False) for a, b in pairwise(ends)]


def joined(parts: list[Any]) -> Any:
    """Put partitions, of one kind, together in memory; None where there are none."""
    first = parts[0]
    if first is None:
        return None
    if sp.issparse(first):
        return sp.vstack(parts, format="csr")
    if hasattr(first, "iloc"):
        import pandas as pd

        return pd.concat(parts)
    if type(first).__module__.startswith("polars"):
        import polars as pl

        return pl.concat(parts)
    if isinstance(first, list | tuple):
        return [row for part in parts for row in part]
    return np.concatenate([np.asarray(part) for part in parts])


def _refuse_single(data: Any, name: str) -> None:
    if not isinstance(data, list | tuple):
        raise TypeError(
            f"{name} is a {type(data).__name__}, of which Dask does not say what partitions of "
            "rows it has: give a Dask array, a dataframe, or a list of delayed partitions "
            f"([{name}] where it is one, {name}.to_delayed() of a bag)."
        )


def _as_delayed(part: Any) -> Delayed:
    if isinstance(part, Delayed):
        return part
    if hasattr(part, "__dask_graph__"):
        raise TypeError(
            "A list of partitions has delayed objects or futures; this one has a "
            f"{type(part).__name__}. Give a single collection, or its .to_delayed()."
        )
    return dask.delayed(part, traverse=False)  # a future


def _refuse_closed_client(data: Any, name: str) -> None:
    """Refuse rows that lie on a cluster whose client was closed."""
    try:
        from distributed import futures_of
    except ImportError:
        return
    for future in futures_of(data):
        if future.client.status != "running":
            raise ValueError(
                f"{name} lies on a cluster whose client is {future.client.status}, and cannot be "
                "reached: make it again with a client that is running."
            )


def width_of(block: Any) -> int:
    """Columns of a partition; one where it is a list of objects."""
    shape = getattr(block, "shape", None)
    return int(shape[1]) if shape is not None and len(shape) > 1 else 1


def is_numeric(block: Any) -> bool:
    """Whether all entries of a partition are numbers: of an array, or of pandas or polars."""
    if hasattr(block, "dtype"):
        return _is_number(block.dtype)
    return hasattr(block, "dtypes") and all(map(_is_number, block.dtypes))


def _is_number(dtype: Any) -> bool:
    kind = getattr(dtype, "kind", None)
    return kind in "fiub" if kind is not None else bool(getattr(dtype, "is_numeric", bool)())
