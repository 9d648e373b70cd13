"""What the pictures ask of a model and its data, and how they look into both."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing, check_consistent_length
from sklearn.utils.validation import _num_samples, check_is_fitted


def last_step(model: Any) -> Any:
    """Return the machine itself: the fitted model, or the last step of a fitted pipeline."""
    check_is_fitted(model)
    return model[-1] if isinstance(model, Pipeline) else model


def check_drawable(model: Any, n_features: int, asked_by: str, instead: str) -> None:
    """Refuse a model on another number of features than the picture shows.

    ``asked_by`` is the function that draws, ``instead`` says what to do with another model.
    """
    if getattr(getattr(last_step(model), "kernel_", None), "pairwise", False):
        raise ValueError(
            f"{asked_by} evaluates the machine between its training points, and one with a "
            "precomputed kernel knows no points: fit it with a kernel object or function instead."
        )
    found = getattr(model, "n_features_in_", "no vectors")
    if found != n_features:
        raise ValueError(
            f"{asked_by} draws machines on {n_features} feature{'s' * (n_features > 1)}, and this "
            f"one was fitted on {found}. {instead}"
        )


def check_training_rows(model: Any, X: Any, y: Any, asked_by: str) -> None:
    """Refuse data among which the support vectors cannot be found by their row numbers."""
    check_consistent_length(X, y)
    machine = last_step(model)
    n, n_fit = _num_samples(X), machine.shape_fit_[0]
    if n != n_fit or not _holds_support_vectors(model, X):
        raise ValueError(
            f"{asked_by} marks the support vectors among the training points, so X and y must be "
            f"those of fit, in the same order; got {n} {'other ' if n == n_fit else ''}rows where "
            f"fit had {n_fit}. Other points can be drawn on the axes that it returns."
        )


def _holds_support_vectors(model: Any, X: Any) -> bool:
    machine = last_step(model)
    if machine is not model and len(model) > 1:
        X = model[:-1].transform(X)
    rows = dense(_safe_indexing(X, machine.support_))
    return np.allclose(rows, dense(machine.support_vectors_))


def dense(X: Any) -> np.ndarray:
    """Return X as a dense float array of shape (n_samples, n_features)."""
    return np.asarray(X.toarray() if sp.issparse(X) else X, dtype=np.float64)


def in_container_of(X: Any, values: np.ndarray) -> Any:
    """Return values of shape (n, n_features) as a data frame like X, or as they are."""
    if hasattr(X, "columns"):
        return type(X)(dict(zip(X.columns, values.T, strict=True)))
    return values


def column_name(X: Any, j: int) -> str:
    """Return the name of a column, for an axis."""
    return str(X.columns[j]) if hasattr(X, "columns") else f"feature {j}"
