"""Which way a call with Dask collections goes: a fit, an answer, a score."""

from __future__ import annotations

import inspect
from typing import Any

from maxmargin.dask.answers import answered, scored
from maxmargin.dask.fits import fit, learn
from maxmargin.dask.search import scored_search
from maxmargin.estimators.collections import ANSWERS, is_collection
from maxmargin.selection.search import Search


def called(machine: Any, name: str, *args: Any, **options: Any) -> Any:
    """Call a method of an estimator whose arguments are Dask collections."""
    method = inspect.getattr_static(type(machine), name)
    method = getattr(method, "fn", getattr(method, "method", method))  # inside of available_if
    given = inspect.signature(method).bind(machine, *args, **options).arguments
    given.pop("self", None)
    X, others = given.pop("X"), {**given.pop("params", {}), **given}
    if not is_collection(X):
        raise TypeError(
            f"{type(machine).__name__}.{name} was given X in memory ({type(X).__name__}), and a "
            "Dask collection beside it: give all of them as collections, or compute them all. (A "
            "pipeline of scikit-learn's brings X into memory: preprocess lazily, or with dask-ml.)"
        )
    if name in ANSWERS:
        return answered(machine, name, X, others)
    if name == "score" and isinstance(machine, Search):
        return scored_search(machine, X, **others)
    if name == "score":
        return scored(machine, X, **others)
    if name == "partial_fit":
        return learn(machine, X, **others)
    return fit(machine, X, **others)
