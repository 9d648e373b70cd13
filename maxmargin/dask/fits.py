"""Fits on Dask collections: which family of machines is fitted how.

Each family registers what it does (:func:`fit_partitions`). What a machine needs all rows in one
place for, a Gram matrix or a tree of single rows, it gets them here, if they have room.
"""

from __future__ import annotations

from functools import singledispatch
from importlib import import_module
from typing import Any

import dask
from sklearn.utils import get_tags
from sklearn.utils.validation import _num_samples

from maxmargin.dask.collections import in_columns, partitions_of, pieces_of, sizes_of
from maxmargin.dask.gathered import fit_gathered
from maxmargin.dask.rows import naming_partition
from maxmargin.estimators.callbacks import observed

_FAMILIES: dict[str, str] = {  # rooms or files of the package, and who fits their machines
    "svm": "maxmargin.dask.kernel_machines",
    "linear": "maxmargin.dask.linear",
    "linear.regression": "maxmargin.dask.least_squares",
    "linear.perceptron": "maxmargin.dask.perceptron",
    "linear.mce": "maxmargin.dask.least_squares",
    "feature_maps": "maxmargin.dask.feature_maps",
    "kernel_methods.ridge": "maxmargin.dask.ridge",
    "selection": "maxmargin.dask.search",
    "ensemble": "maxmargin.dask.ensemble",
}


def fit(machine: Any, X: Any, y: Any = None, sample_weight: Any = None, **options: Any) -> Any:
    """Fit a machine to collections, as its family does."""
    machine._validate_params()
    if y is None and get_tags(machine).target_tags.required:
        raise ValueError(
            f"This {type(machine).__name__} estimator requires y to be passed, but the target y is "
            "None."
        )
    for base in type(machine).__mro__:
        package, *room = base.__module__.split(".")
        for name in (".".join(room[:1]), ".".join(room[:2])):
            if package == "maxmargin" and name in _FAMILIES:
                import_module(_FAMILIES[name])  # registers its machines
    return observed(_fitted)(machine, X, y, sample_weight, **options)


def _fitted(machine: Any, X: Any, y: Any, sample_weight: Any, **options: Any) -> Any:
    vars(machine).pop("distribution_", None)
    return fit_partitions(machine, X, y, sample_weight, **options)


@singledispatch
def fit_partitions(machine: Any, X: Any, y: Any, sample_weight: Any, **options: Any) -> Any:
    """Gather the rows and fit the machine here: what all do that have no other way."""
    return fit_gathered(machine, X, y, sample_weight, **options)


def learn(machine: Any, X: Any, y: Any = None, **options: Any) -> Any:
    """Learn from the partitions of a stream, one after the other, in their order."""
    X = in_columns(X)
    sizes, parts = sizes_of(X), partitions_of(X)
    pieces = {"y": y, "sample_weight": options.pop("sample_weight", None)}
    columns = {
        name: pieces_of(data, sizes, name) for name, data in pieces.items() if data is not None
    }
    for number, part in enumerate(parts):
        own = [columns[name][number] for name in columns]
        rows, *others = dask.compute(part, *own)
        if _num_samples(rows):
            with naming_partition(number):
                machine.partial_fit(rows, **dict(zip(columns, others, strict=True)), **options)
    return machine
