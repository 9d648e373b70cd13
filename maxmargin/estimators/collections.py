"""Dask collections at the edge of the estimators: fitted where they lie, answered lazily.

Nothing here imports Dask: who has a collection has done so. What is done with it is in
:mod:`maxmargin.dask`, which is loaded by its name at the first collection that comes.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from importlib import import_module
from inspect import getattr_static
from types import FunctionType
from typing import Any, TypeVar

from maxmargin.backends.threads import around_fit

F = TypeVar("F", bound=Callable[..., Any])

FITS = ("fit", "partial_fit")
ANSWERS = (
    *("predict", "predict_proba", "predict_log_proba", "decision_function", "score_samples"),
    *("transform", "inverse_transform", "apply"),
)
SCORES = ("score",)


def is_collection(data: Any) -> bool:
    """Whether data are a Dask array or dataframe, or a list of delayed partitions or futures.

    >>> from maxmargin.estimators.collections import is_collection
    >>> is_collection([[0.0], [1.0]])
    False
    """
    if "dask" not in sys.modules:
        return False
    if isinstance(data, list | tuple):
        return bool(data) and all(map(_is_lazy, data))
    return _is_lazy(data)


def _is_lazy(data: Any) -> bool:
    if isinstance(data, type):
        return False
    return hasattr(data, "__dask_graph__") or type(data).__module__.startswith("distributed.client")


def takes_collections(method: F) -> F:
    """Let a method take Dask collections for its arrays; hold BLAS to one thread in every fit."""
    name = method.__name__

    @wraps(method)
    def adapted(self: Any, *args: Any, **options: Any) -> Any:
        if "dask" in sys.modules:
            if any(map(is_collection, (*args, *options.values()))):
                return import_module("maxmargin.dask").called(self, name, *args, **options)
            if name in FITS:
                vars(self).pop("distribution_", None)  # of a fit before this one
        try:
            return method(self, *args, **options)
        except OverflowError as error:  # a Python integer in X, y or the weights
            if "too large to convert" not in str(error):
                raise
            raise ValueError(
                "The data have an integer that float64 cannot hold: it is beyond 1.8e308. Scale "
                "them, or leave it out."
            ) from error

    adapter = around_fit(adapted) if name in FITS else adapted
    adapter._takes_collections = True  # type: ignore[attr-defined]
    return adapter  # type: ignore[return-value]


class TakesCollections:
    """A class whose methods, its own and those it inherits, take Dask collections.

    Those that are there only under a condition (``available_if``) say so themselves.
    """

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for name in (*FITS, *ANSWERS, *SCORES):
            method = getattr_static(cls, name, None)
            if isinstance(method, FunctionType) and not hasattr(method, "_takes_collections"):
                setattr(cls, name, takes_collections(method))
