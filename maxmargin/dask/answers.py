"""What a fitted machine answers to Dask collections: lazily, partition by partition.

The model goes to each worker once. Answers come back as the kind of collection that was given: an
array for an array, with its chunks; a series or dataframe with the same index for a dataframe; a
list of delayed objects for a list.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from inspect import unwrap
from typing import Any, NamedTuple

import dask
import numpy as np
import scipy.sparse as sp
from dask.delayed import Delayed
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.utils.validation import _num_samples, check_is_fitted

from maxmargin.dask.cluster import Cluster, size_of
from maxmargin.dask.collections import (
    in_columns,
    is_array,
    is_frame,
    is_numeric,
    joined,
    partitions_of,
    pieces_of,
    sizes_of,
)
from maxmargin.dask.reductions import summed
from maxmargin.dask.rows import naming_partition
from maxmargin.estimators.warn import warn

_LARGE = 1 << 20  # bytes of a model from which it is sent by itself, and not with every graph


def answered(machine: Any, name: str, X: Any, options: dict[str, Any]) -> Any:
    """Return what a method of a fitted machine says of a collection, lazily."""
    check_is_fitted(machine)
    X = in_columns(X)
    _refuse_width(machine, X)
    example = _example(machine, name, X, options)
    model = sent(Cluster.active(), machine)
    if is_array(X):
        array = np.asarray(example)
        chunks = (X.chunks[0], *((size,) for size in array.shape[1:]))
        axes = {"drop_axis": list(range(1, X.ndim))} if array.ndim == 1 else {}
        return X.map_blocks(
            _answer_to_block,
            model,
            name,
            options,
            array[:0],
            chunks=chunks,
            dtype=array.dtype,
            meta=array[:0],
            name=f"{name}-{uuid.uuid4().hex}",
            **axes,
        )
    if is_frame(X):  # an expression of X: columns of the same frame go together, none is shuffled
        return X.map_partitions(
            _answer_to_partition,
            model=dask.delayed(model, traverse=False),
            name=name,
            options=options,
            empty=example[:0],
            meta=example[:0],
            enforce_metadata=False,
            token=name,
        )
    return [
        _task(_answer, model, name, number, options, example[:0], part)
        for number, part in enumerate(partitions_of(X))
    ]


def sent(cluster: Cluster, machine: Any) -> Any:
    """Return a fitted machine as an argument of many tasks: sent to every worker once."""
    if cluster.client is not None and size_of(machine) >= _LARGE:
        return cluster.share(machine)
    return dask.delayed(machine, traverse=False, pure=False)


def _task(function: Any, *args: Any) -> Delayed:
    return dask.delayed(function, pure=False)(*args)


def _answer_to_block(
    X: Any, model: Any, name: str, options: dict, empty: Any, block_id: tuple[int, ...] = (0,)
) -> Any:
    """Ask a model about the rows of a chunk."""
    return _answer(model, name, block_id[0], options, empty, X)


def _answer_to_partition(
    X: Any, model: Any, name: str, options: dict, empty: Any, partition_info: Any = None
) -> Any:
    """Ask a model about the rows of a dataframe's partition."""
    if not len(X):
        return empty.set_axis(X.index)
    return _answer(model, name, partition_info["number"], options, empty, X)


def _answer(model: Any, name: str, number: int, options: dict, empty: Any, X: Any) -> Any:
    """Ask a model about the rows of a partition."""
    with naming_partition(number):
        if not _num_samples(X):
            return _framed(_no_answers(model, name, options, empty, X), X)
        return _framed(getattr(model, name)(X, **options), X)


def _no_answers(model: Any, name: str, options: dict, empty: Any, X: Any) -> np.ndarray:
    """Answers to no rows: as many columns as those to some, where such can be made up."""
    row = _made_up(X)
    return np.asarray(empty if row is None else getattr(model, name)(row, **options)[:0])


def _made_up(X: Any) -> Any:
    """Return a row like those of a partition that has none; None where it is not of numbers."""
    shape: tuple[int, ...] = getattr(X, "shape", ())
    if len(shape) != 2 or not is_numeric(X):
        return None
    ones = np.ones((1, shape[1]), dtype=getattr(X, "dtype", np.float64))
    if hasattr(X, "iloc"):
        return type(X)(ones, columns=X.columns)
    return type(X)(ones, schema=X.columns) if hasattr(X, "columns") else ones


def _framed(answer: Any, X: Any) -> Any:
    """Return the answers to the rows of a pandas object with their index; others as they are."""
    if not hasattr(X, "iloc"):
        return answer
    import pandas as pd

    if isinstance(answer, pd.DataFrame | pd.Series):
        return answer
    answer = answer.toarray() if sp.issparse(answer) else np.asarray(answer)
    if answer.ndim == 1:
        return pd.Series(answer, index=X.index)
    return pd.DataFrame(answer, index=X.index)


def _refuse_width(machine: Any, X: Any) -> None:
    """Refuse another number of columns than the machine has seen, where Dask knows it."""
    known = getattr(machine, "n_features_in_", None)
    width = X.shape[1] if is_array(X) and X.ndim > 1 else None
    width = len(X.columns) if is_frame(X) and hasattr(X, "columns") else width
    if known is not None and width is not None and width != known:
        raise ValueError(
            f"X has {width} features, but {type(machine).__name__} is expecting {known} features "
            "as input."
        )


def _example(machine: Any, name: str, X: Any, options: dict[str, Any]) -> Any:
    """Return an answer to a row like those of X: its type and columns are those of all answers.

    Where no such row can be made up, of strings for example, the first partition with rows has one.
    """
    row = _row_like(machine, X)
    if row is None:
        if not is_array(X) and not is_frame(X):
            return np.empty(0)  # a list of answers says nothing beforehand
        for part in partitions_of(X):
            (row,) = dask.compute(_task(_first_row, part))
            if _num_samples(row):
                break
    answer = getattr(machine, name)(row, **options)
    if isinstance(answer, tuple):
        asked = ", ".join(f"{option}=True" for option, value in options.items() if value)
        raise ValueError(
            f"{type(machine).__name__}.{name}({asked}) has several answers, and a collection is "
            "one: ask for one of them a partition at a time, of an array for example with "
            f"X.map_blocks(lambda rows: model.{name}(rows, {asked})[1], drop_axis=1)."
        )
    return _framed(answer, row)


def _row_like(machine: Any, X: Any) -> Any:
    known = getattr(machine, "n_features_in_", None)
    if is_frame(X):
        if X.ndim == 1 or not is_numeric(X):
            return None
        row = X._meta_nonempty.iloc[:1]
        return type(row)(np.ones(row.shape), columns=row.columns, index=row.index).astype(
            row.dtypes
        )
    if not is_array(X) or X.dtype.kind not in "fiub" or X.ndim != 2 or known is None:
        return None
    row = np.ones((1, known), dtype=X.dtype)
    return sp.csr_matrix(row) if sp.issparse(X._meta) else row


def _first_row(part: Any) -> Any:
    return part.iloc[:1] if hasattr(part, "iloc") else part[:1]


# -- scores ------------------------------------------------------------------------------------


def scored(machine: Any, X: Any, y: Any = None, sample_weight: Any = None) -> float:
    """Return the score of a machine: put together from those of the partitions, where it can be."""
    check_is_fitted(machine)
    X, cluster = in_columns(X), Cluster.active()
    _refuse_width(machine, X)
    sizes, parts = sizes_of(X), partitions_of(X)
    columns = [
        [None] * len(parts) if data is None else pieces_of(data, sizes, name)
        for name, data in (("y", y), ("sample_weight", sample_weight))
    ]
    usual = _USUAL.get(unwrap(type(machine).score))
    if usual is None:
        return _scored_together(machine, parts, *columns)
    (look, combine, said), model = usual, sent(cluster, machine)
    tasks = [
        cluster.task(look, model, number, *own, name="score")
        for number, own in enumerate(zip(parts, *columns, strict=True))
    ]
    (sums,) = cluster.run([cluster.total(tasks, combine)])
    return said(sums)


def _scored_together(machine: Any, parts: list, *columns: list) -> float:
    """Return the score of a machine that has one of its own, from all rows at once."""
    found = dask.compute(parts, *columns)
    X, y, weight = (joined(some) for some in found)
    options = {} if weight is None else {"sample_weight": weight}
    return machine.score(X, y, **options)


def _right(model: Any, number: int, X: Any, y: Any, weight: Any) -> np.ndarray:
    """Weight of a partition's rows, and of those that get the right class."""
    if not _num_samples(X):
        return np.zeros(2)
    with naming_partition(number):
        right = np.asarray(model.predict(X)) == np.asarray(y).ravel()
        w = np.ones(len(right)) if weight is None else np.asarray(weight, float).ravel()
        return np.array([w.sum(), w @ right])


def _accuracy(sums: np.ndarray) -> float:
    """Weight of the rows that get the right class, as a share."""
    return float(sums[1] / sums[0])


class _Moments(NamedTuple):
    """Rows and their weight; for each output the mean, squares about it and of residuals."""

    n: int
    weight: float
    mean: np.ndarray
    about: np.ndarray
    left: np.ndarray


def _moments(model: Any, number: int, X: Any, y: Any, weight: Any) -> _Moments:
    """Moments of a partition's targets and residuals."""
    true = np.asarray(y, dtype=np.float64)
    true = true[:, None] if true.ndim == 1 else true
    nothing = np.zeros(true.shape[1])
    if not len(true):
        return _Moments(0, 0.0, nothing, nothing, nothing)
    with naming_partition(number):
        said = np.asarray(model.predict(X), dtype=np.float64).reshape(true.shape)
        w = np.ones(len(true)) if weight is None else np.asarray(weight, float).ravel()
        total = float(w.sum())
        mean = (w @ true) / total if total else nothing
        return _Moments(len(w), total, mean, w @ (true - mean) ** 2, w @ (true - said) ** 2)


def _merged(parts: list[_Moments]) -> _Moments:
    """Moments of all parts (Chan, Golub and LeVeque, 1983)."""
    some = [part for part in parts if part.weight > 0] or parts[:1]
    w, mean = np.array([part.weight for part in some]), np.array([part.mean for part in some])
    total = float(w.sum())
    middle = w @ mean / (total or 1.0)
    about = np.sum([part.about for part in some], axis=0) + w @ (mean - middle) ** 2
    left = np.sum([part.left for part in some], axis=0)
    return _Moments(sum(part.n for part in parts), total, middle, about, left)


def _explained(sums: _Moments) -> float:
    """The coefficient of determination, mean over the outputs, as scikit-learn has it."""
    if sums.n < 2:
        warn("R^2 score is not well-defined with less than two samples.", UndefinedMetricWarning)
        return float("nan")
    about, left = sums.about, sums.left
    exact = np.where(left > 0, 0.0, 1.0)
    return float(np.mean(np.where(about > 0, 1.0 - left / np.where(about > 0, about, 1.0), exact)))


_USUAL: dict[Any, tuple[Callable, Callable, Callable]] = {  # looks, what combines them, the score
    ClassifierMixin.score: (_right, summed, _accuracy),
    RegressorMixin.score: (_moments, _merged, _explained),
}
