"""Data of an estimator: X, y and weights as scikit-learn checks them, and for their size."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
import sklearn.utils.validation

from maxmargin.backends.data import refuse_corrupt, refuse_unusable
from maxmargin.estimators.parameters import LARGEST, SMALLEST

LARGEST_TARGET = 1e100
_UNDERSTOOD = {
    "accept_sparse",
    "dtype",
    "ensure_all_finite",
    "order",
    "reset",
    "skip_check_array",
    "y_numeric",
}


def column(y: Any) -> np.ndarray:
    """Return targets as an array of one dimension, as scikit-learn's ``column_or_1d`` does."""
    plain = type(y) is np.ndarray and y.ndim == 1
    return y if plain else sklearn.utils.validation.column_or_1d(y, warn=True)


def is_table(y: Any) -> bool:
    """Whether targets have more than one column: several outputs."""
    shape = y.shape if hasattr(y, "shape") else np.asarray(y).shape
    return len(shape) == 2 and shape[1] > 1


def validate_data(estimator: Any, X: Any, y: Any = "no_validation", **options: Any) -> Any:
    """Check data as scikit-learn's function of this name does, and what they are made of."""
    if _in_order(estimator, X, y, options):
        if options.get("reset", True):
            vars(estimator).pop("feature_names_in_", None)
            estimator.n_features_in_ = X.shape[1]
        return X if isinstance(y, str) else (X, y)
    if not options.get("skip_check_array"):
        refuse_unusable(X)
    checked = sklearn.utils.validation.validate_data(estimator, X, y, **options)
    converted = checked[0] if isinstance(checked, tuple) else checked
    if converted is not X and sp.issparse(X):
        refuse_corrupt(converted)
    return checked


def _in_order(estimator: Any, X: Any, y: Any, options: dict[str, Any]) -> bool:
    """Whether scikit-learn, which takes its time, would return these arrays as they are.

    That is so for arrays of numbers in the wanted form without a NaN; all others it judges itself.
    """
    if type(X) is not np.ndarray or X.ndim != 2 or not options.keys() <= _UNDERSTOOD:
        return False
    known = vars(estimator)
    unnamed = "feature_names_in_" not in known and known.get("n_features_in_") == X.shape[1]
    if not (options.get("reset", True) or unnamed):
        return False
    if options.get("skip_check_array"):
        return y is not None
    wanted = options.get("dtype")
    wanted = wanted if isinstance(wanted, list) else [wanted]
    if not X.size or not X.flags.c_contiguous or X.dtype not in wanted:
        return False
    if not isinstance(y, str):
        if type(y) is not np.ndarray or y.shape != X.shape[:1] or y.dtype.kind not in "fiub":
            return False
        if y.dtype.kind == "f" and not seems_finite(y):
            return False
    return not options.get("ensure_all_finite", True) or seems_finite(X)


def seems_finite(values: np.ndarray) -> bool:
    """Whether the sum is finite: then all are, and otherwise someone has to look."""
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(values.sum()))


def refuse_extreme_weights(weight: np.ndarray, name: str = "sample_weight") -> None:
    """Refuse weights that are neither zero nor of a size that float64 can compute with."""
    largest = float(weight.max(initial=0.0))
    least = float(np.min(weight, where=weight > 0, initial=LARGEST))
    if largest > LARGEST or least < SMALLEST:
        raise ValueError(
            f"{name} must be zero or between {SMALLEST:g} and {LARGEST:g}, got "
            f"{largest if largest > LARGEST else least:g}: what is computed from it would be "
            "beyond float64. Only the sizes of weights against each other and C matter: scale them."
        )


def refuse_extreme_targets(y: np.ndarray) -> None:
    """Refuse numbers to be learned whose squares are beyond float64; words are not looked at."""
    if y.dtype.kind not in "fiu":
        return
    largest = float(np.max(np.abs(y), initial=0.0))
    if largest > LARGEST_TARGET:
        raise ValueError(
            f"y has values up to {largest:g}, and sums of their squares would be beyond float64: "
            f"scale y to numbers below {LARGEST_TARGET:g}."
        )
