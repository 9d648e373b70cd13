"""What all estimators do alike: check parameters, data and weights, and warn."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.utils import assert_all_finite, check_array, check_consistent_length, column_or_1d
from sklearn.utils.validation import _check_sample_weight, _num_samples

from maxmargin.backends.data import as_table
from maxmargin.backends.threads import ALONE, Workers, thread_count
from maxmargin.estimators.callbacks import CallbackSupportMixin, listeners_of
from maxmargin.estimators.collections import TakesCollections
from maxmargin.estimators.data import (
    refuse_extreme_targets,
    refuse_extreme_weights,
    seems_finite,
    validate_data,
)
from maxmargin.estimators.explanation import explained_html
from maxmargin.estimators.parameters import POSITIVE, CheckedParameters
from maxmargin.kernels import Input, Kernel
from maxmargin.progress import Monitor, watched
from maxmargin.trace import Trace

_NOT_NUMBERS = Input.OBJECTS, Input.SEQUENCES
WATCHED: dict = {  # constraints on the parameters of who looks on
    "verbose": ["verbose"],
    "time_limit": [POSITIVE, None],
    "callback": [callable, None],
    "trace": ["boolean", Trace],
}
_OF_X = "n_features_in_", "feature_names_in_"  # set when data are checked
SHARED_FROM = 1 << 20  # entries from which threads are worth their start


class _Untraced:
    """Descriptor of ``trace_`` on estimators without a trace: an AttributeError that says why."""

    def __get__(self, estimator: Any, owner: type) -> Any:
        raise AttributeError(
            f"{owner.__name__} has no trace_: fit it with trace=True to record its steps."
        )


class Estimator(TakesCollections, CheckedParameters, CallbackSupportMixin, BaseEstimator):
    """An estimator whose parameters, data and weights are checked the same way as all others'.

    Data may be dense or CSR, float32 or float64, and stay as they are. A kernel may want others: a
    square matrix of its values, objects of any type, or sequences, alone or in a table.
    """

    n_jobs: int | None = None  # where it is no parameter
    fit_time_: float  # seconds
    time_limit: float | None = None
    callback: Any = None
    trace: Any = False
    verbose: Any = False
    trace_: Any = _Untraced()

    def _validated(
        self, X: Any, y: Any, kernel: Kernel | None = None, reset: bool = True, **y_options: Any
    ) -> tuple[Any, Any]:
        """Check training data as scikit-learn does, keeping the names of the columns."""
        if kernel is not None and kernel.input in _NOT_NUMBERS:
            X, y = validate_data(self, _some(X), y, reset=reset, skip_check_array=True)
            X = as_table(X) if kernel.input is Input.SEQUENCES else X
            check_consistent_length(X, y)
            if y_options.get("y_numeric"):
                y = check_array(y, ensure_2d=False, estimator=self, input_name="y")
                y = y if y_options.get("multi_output") else column_or_1d(y, warn=True)
                refuse_extreme_targets(y)
            return X, y
        pairwise = kernel is not None and kernel.pairwise
        if pairwise and sp.issparse(X):
            raise TypeError("Sparse precomputed kernels are not supported.")
        try:
            X, y = validate_data(
                self,
                X,
                y,
                reset=reset,
                dtype=[np.float64, np.float32],
                order="C",
                accept_sparse="csr",
                ensure_all_finite=False,
                **y_options,
            )
        except ValueError as error:
            if kernel is None or "could not convert string" not in str(error):
                raise
            raise ValueError(
                f"{error}. The kernel {kernel!r} compares numbers; sequences have kernels of their "
                f"own, as in {type(self).__name__}(kernel=Spectrum(3)) of maxmargin.kernels."
            ) from error
        self._refuse_infinite(X)
        if y_options.get("y_numeric"):
            refuse_extreme_targets(y)
        if pairwise and X.shape[0] != X.shape[1]:
            raise ValueError(
                "Precomputed matrix must be a square matrix."
                f" Input is a {X.shape[0]}x{X.shape[1]} matrix."
            )
        return X, y

    def _validated_points(self, X: Any, kernel: Kernel | None = None) -> Any:
        """Check new points, which must have the features of the training data."""
        if kernel is not None and kernel.input in _NOT_NUMBERS:
            X = validate_data(self, _some(X), reset=False, skip_check_array=True)
            return as_table(X) if kernel.input is Input.SEQUENCES else X
        return validate_data(
            self,
            X,
            reset=False,
            dtype=[np.float64, np.float32],
            order=None if kernel is None else "C",
            accept_sparse=not (kernel is not None and kernel.pairwise) and "csr",
        )

    def _refuse_infinite(self, X: Any) -> None:
        """Refuse NaN and infinity as scikit-learn does, with all threads looking."""
        entries = X.data if sp.issparse(X) else X
        if entries.size < SHARED_FROM:
            finite = seems_finite(entries)
        else:
            workers = self._workers(entries.size)
            finite = all(workers.map(seems_finite, np.array_split(entries, workers.count)))
        if not finite:
            assert_all_finite(X, estimator_name=type(self).__name__, input_name="X")

    def __sklearn_is_fitted__(self) -> bool:
        """Whether there is a model: a fit that failed may have left what it knew of its X."""
        return any(name.endswith("_") and name not in _OF_X for name in vars(self))

    def _validated_weight(self, sample_weight: Any, X: Any) -> np.ndarray:
        """Check the weights of rows, which are one where none are given."""
        if sample_weight is None:
            return np.ones(_num_samples(X))
        weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        if not (weight > 0).any():
            raise ValueError("Sample weights must contain at least one non-zero number.")
        refuse_extreme_weights(weight)
        return weight

    def _repr_html_inner(self) -> str:
        """Show scikit-learn's diagram and, of a fitted machine, the explanation below it."""
        return super()._repr_html_inner() + explained_html(self)

    def _repr_mimebundle_(self, **options: Any) -> dict[str, str]:
        bundle = super()._repr_mimebundle_(**options)
        if "text/html" in bundle:
            bundle["text/html"] += explained_html(self)
        return bundle

    def _watched(self, problems: int = 1) -> AbstractContextManager[Monitor]:
        """Have someone between a fit and its solvers, for so many problems."""
        return watched(self.time_limit, None, self.verbose, problems, listeners_of(self))

    def _workers(self, entries: float = np.inf) -> Workers:
        """Threads for work on so many entries; where it is little, the caller's own."""
        little = entries < SHARED_FROM and self.n_jobs != 0  # which is refused, however little
        return ALONE if little else Workers(thread_count(self.n_jobs))


def _some(X: Any) -> Any:
    """Refuse a collection that is empty."""
    if hasattr(X, "__len__") and not _num_samples(X):
        raise ValueError("Found array with 0 sample(s) while a minimum of 1 is required.")
    return X
