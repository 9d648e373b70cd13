"""Data as scikit-learn checks them, after some looks that it does not take.

A sparse matrix is three arrays, and nothing keeps a program or a broken file from writing into one
of them what points outside of the matrix; compiled code that follows it reads and writes other
people's memory. Dates are numbers only in a unit that nobody has named. And costs, weights and
targets are multiplied and squared on their way, which ends in infinities and their differences,
nan, long before float64 ends.
"""

from __future__ import annotations

from collections import Counter
from functools import cache
from numbers import Real
from typing import Any

import numpy as np
import scipy.sparse as sp
import sklearn.utils
import sklearn.utils.validation
from sklearn.utils._param_validation import make_constraint
from sklearn.utils.validation import _check_sample_weight, _num_samples

SMALLEST, LARGEST = 1e-50, 1e50  # of parameters and weights: products of a few can be squared
LARGEST_TARGET = 1e100
_UNDERSTOOD = {"dtype", "order", "accept_sparse", "ensure_all_finite", "y_numeric", "reset"}
_TEMPORAL = ("date", "time", "duration")  # how the names of such types of polars begin


class CheckedParameters:
    """A machine that checks parameters and weights as scikit-learn does, and for their size."""

    @classmethod
    @cache
    def _get_param_names(cls) -> list[str]:
        """Names of the parameters; kept, for to inspect a signature takes long."""
        return super()._get_param_names()  # type: ignore[misc]

    @classmethod
    @cache
    def _constraints(cls) -> dict[str, list[Any]]:
        """What each parameter has to satisfy one of; scikit-learn makes them at every call."""
        constraints: dict[str, Any] = cls._parameter_constraints  # type: ignore[attr-defined]
        return {name: list(map(make_constraint, some)) for name, some in constraints.items()}

    def _validate_params(self) -> None:
        constraints, parameters = self._constraints(), self.get_params(deep=False)  # type: ignore
        for name, value in parameters.items():
            if not any(known.is_satisfied_by(value) for known in constraints.get(name, ())):
                super()._validate_params()  # type: ignore[misc]
                break
        refuse_extreme_parameters(parameters)

    def _validated_weight(self, sample_weight: Any, X: Any) -> np.ndarray:
        """Weights of the rows; 1 where none are given."""
        if sample_weight is None:
            return np.ones(_num_samples(X))
        weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        if not (weight > 0).any():
            raise ValueError("Invalid input - all samples have zero or negative weights.")
        refuse_extreme_weights(weight)
        return weight


def column(y: Any) -> np.ndarray:
    """Return targets as an array of one dimension, as scikit-learn's ``column_or_1d`` does."""
    plain = type(y) is np.ndarray and y.ndim == 1
    return y if plain else sklearn.utils.validation.column_or_1d(y, warn=True)


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
    if type(X) is not np.ndarray or not options.keys() <= _UNDERSTOOD:
        return False
    wanted = options.get("dtype")
    wanted = wanted if isinstance(wanted, list) else [wanted]
    if X.ndim != 2 or not X.size or not X.flags.c_contiguous or X.dtype not in wanted:
        return False
    if not isinstance(y, str):
        if type(y) is not np.ndarray or y.shape != X.shape[:1] or y.dtype.kind not in "fiub":
            return False
        if y.dtype.kind == "f" and not _seems_finite(y):
            return False
    if options.get("ensure_all_finite", True) and not _seems_finite(X):
        return False
    known = vars(estimator)
    unnamed = "feature_names_in_" not in known and known.get("n_features_in_") == X.shape[1]
    return options.get("reset", True) or unnamed


def _seems_finite(values: np.ndarray) -> bool:
    """Whether the sum is finite: then all are, and otherwise someone has to look."""
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(values.sum()))


def check_array(X: Any, **options: Any) -> Any:
    """Check an array as scikit-learn's function of this name does, and what it is made of."""
    refuse_unusable(X)
    checked = sklearn.utils.check_array(X, **options)
    if checked is not X and sp.issparse(X):
        refuse_corrupt(checked)
    return checked


def refuse_unusable(X: Any) -> None:
    """Refuse dates, columns of one name, and sparse matrices that point outside of themselves."""
    refuse_corrupt(X)
    refuse_twin_columns(X)
    dtypes = [X.dtype] if hasattr(X, "dtype") else list(getattr(X, "dtypes", ()))
    for dtype in dtypes:
        numpys = isinstance(dtype, np.dtype)
        if dtype.kind in "mM" if numpys else str(dtype).lower().startswith(_TEMPORAL):
            raise TypeError(
                f"X holds dates or times ({dtype}), which are numbers only once a unit is chosen: "
                "pass differences in that unit, such as (t - t.min()) / np.timedelta64(1, 'D')."
            )


def refuse_twin_columns(X: Any) -> None:
    """Refuse a data frame in which several columns have the same name.

    >>> import pandas as pd
    >>> from maxmargin.backends.data import refuse_twin_columns
    >>> refuse_twin_columns(pd.DataFrame([[1, 2]], columns=["width", "width"]))
    Traceback (most recent call last):
    ...
    ValueError: X has several columns of the same name, 'width' (2 times), ...
    """
    columns = getattr(X, "columns", None)
    if columns is None or len(set(columns)) == len(columns):
        return
    twins = [f"{name!r} ({count} times)" for name, count in Counter(columns).items() if count > 1]
    raise ValueError(
        f"X has several columns of the same name, {', '.join(twins)}, so that features cannot be "
        "told apart by their names: rename the columns, or pass X.to_numpy()."
    )


def refuse_corrupt(X: Any) -> None:
    """Refuse a sparse matrix whose arrays do not belong together; others are not looked at.

    One pass over the indices, at the speed of the memory.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> from maxmargin.backends.data import refuse_corrupt
    >>> X = sp.csr_array([[1.0, 0.0], [0.0, 2.0]])
    >>> X.indices[1] = 7
    >>> refuse_corrupt(X)
    Traceback (most recent call last):
    ...
    ValueError: This sparse matrix of shape (2, 2) is broken: indices must be from 0 to 1, ...
    """
    if not sp.issparse(X):
        return
    wrong = None
    if X.format in ("csr", "csc", "bsr"):
        wrong = _wrong_in_compressed(X)
    elif X.format == "coo":
        wrong = next(filter(None, map(_wrong_index, X.coords, X.shape)), None)
    if wrong is not None:
        raise ValueError(
            f"This sparse matrix of shape {X.shape} is broken: {wrong}. Was one of its arrays "
            "written to, or read from a damaged file? Build it again from rows, columns and values."
        )


def refuse_extreme_parameters(parameters: dict[str, Any]) -> None:
    """Refuse numbers, and factors in a dict, of a size that float64 cannot compute with.

    Zero, and infinity where it is not in a dict, are for others to judge.
    """
    for name, value in parameters.items():
        inside = isinstance(value, dict)
        for number in value.values() if inside else [value]:
            if number is None or type(number) in (bool, str) or not isinstance(number, Real):
                continue
            if number == 0 or number != number:
                continue
            size: Any = abs(number)
            if SMALLEST <= size <= LARGEST or (size == float("inf") and not inside):
                continue
            raise ValueError(
                f"{name} must be zero or of a size between {SMALLEST:g} and {LARGEST:g}, got "
                f"{_shown(number)}: what is computed from it would be beyond float64."
            )


def _shown(number: Any) -> str:
    """Return a number in words that are not hundreds of digits long."""
    text = repr(number)
    return text if len(text) < 30 else f"an integer of {len(text.lstrip('-'))} digits"


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


def _wrong_in_compressed(X: Any) -> str | None:
    """Return what is wrong with a matrix in rows, columns or blocks, if anything is."""
    sizes = np.array(X.shape) // np.array(X.blocksize if X.format == "bsr" else (1, 1))
    lines, across = sizes[::-1] if X.format == "csc" else sizes
    begin = X.indptr
    if len(begin) != lines + 1 or begin[0] != 0:
        return f"indptr must have {lines + 1} entries, the first 0; it has {len(begin)}"
    if (begin[1:] < begin[:-1]).any():
        return "indptr must not fall"
    room = min(len(X.indices), len(X.data))
    if begin[-1] > room:
        return f"indptr speaks of {begin[-1]} entries, and there are {room}"
    return _wrong_index(X.indices[: begin[-1]], across)


def _wrong_index(indices: np.ndarray, size: int) -> str | None:
    """Return what is wrong with indices below a size; a negative one is a large unsigned number."""
    if not len(indices):
        return None
    unsigned = indices.view(f"u{indices.itemsize}")
    if int(unsigned.max()) < size:
        return None
    found = int(indices[unsigned.argmax()])
    return f"indices must be from 0 to {size - 1}, found {found}"
