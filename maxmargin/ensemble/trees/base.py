"""What trees and forests share: limits, targets of one output or several, weights, answers."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils import assert_all_finite, check_random_state
from sklearn.utils._param_validation import Interval, RealNotInt, StrOptions
from sklearn.utils.multiclass import check_classification_targets

from maxmargin.backends.cpu.trees.scores import ABSOLUTE, ENTROPY, NORMALISED, POISSON, SQUARES
from maxmargin.ensemble.trees.growth import Target
from maxmargin.estimators.base import WATCHED, Estimator
from maxmargin.estimators.data import (
    is_table,
    refuse_extreme_weights,
    seems_finite,
    validate_data,
)
from maxmargin.estimators.warn import warn
from maxmargin.multiclass import class_weights, read_labels

CLASS_CRITERIA = {
    "gini": SQUARES,
    "entropy": ENTROPY,
    "log_loss": ENTROPY,
    "normalised_gain": NORMALISED,
}
VALUE_CRITERIA = {"squared_error": SQUARES, "absolute_error": ABSOLUTE, "poisson": POISSON}
_SHARE = Interval(RealNotInt, 0.0, 1.0, closed="right")
LIMITS: dict = {
    "max_depth": [Interval(Integral, 1, None, closed="left"), None],
    "min_samples_split": [Interval(Integral, 2, None, closed="left"), _SHARE],
    "min_samples_leaf": [
        Interval(Integral, 1, None, closed="left"),
        Interval(RealNotInt, 0.0, 1.0, closed="neither"),
    ],
    "min_weight_fraction_leaf": [Interval(Real, 0.0, 0.5, closed="both")],
    "max_features": [
        Interval(Integral, 1, None, closed="left"),
        _SHARE,
        StrOptions({"sqrt", "log2"}),
        None,
    ],
    "min_impurity_decrease": [Interval(Real, 0.0, None, closed="left")],
    "max_leaf_nodes": [Interval(Integral, 2, None, closed="left"), None],
    "ccp_alpha": [Interval(Real, 0.0, None, closed="left")],
    "monotonic_cst": ["array-like", None],
    "max_bins": [Interval(Integral, 2, None, closed="left"), None],
    "random_state": ["random_state"],
    **{name: WATCHED[name] for name in ("verbose", "time_limit", "callback")},
}
CLASS_LIMITS: dict = {
    "criterion": [StrOptions(set(CLASS_CRITERIA))],
    "class_weight": [dict, list, StrOptions({"balanced"}), None],
}
VALUE_LIMITS: dict = {"criterion": [StrOptions(set(VALUE_CRITERIA))]}


def criterion_of(name: Any) -> Any:
    """Return the current name of a criterion: ``"friedman_mse"`` is ``"squared_error"`` now."""
    if not (isinstance(name, str) and name == "friedman_mse"):
        return name
    warn(
        'Value `"friedman_mse"` for `criterion` is deprecated: it is `"squared_error"` in '
        'scikit-learn, too. Use `criterion="squared_error"`.',
        FutureWarning,
    )
    return "squared_error"


def needs_all_rows(machine: Any) -> bool:
    """Whether growth needs all rows in one place, as medians and monotonic constraints do."""
    in_order = getattr(machine, "criterion", None) in ("absolute_error", "poisson")
    return in_order or getattr(machine, "monotonic_cst", None) is not None


def seeds(random_state: Any, count: int) -> np.ndarray:
    """Draw the seeds of some trees."""
    random = check_random_state(random_state)
    return random.randint(np.iinfo(np.int64).max, size=count, dtype=np.int64).astype(np.uint64)


def _several(outputs: bool) -> dict[str, Any]:
    """Return what is said to scikit-learn of targets with several outputs."""
    return {"multi_output": True} if outputs else {}


class TreeLearner(Estimator):
    """A tree or a forest: reads targets and weights."""

    n_outputs_: int
    criterion: str

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True  # in arrays, not in sparse matrices
        tags.target_tags.multi_output = True
        return tags

    def _refuse_infinite(self, X: Any) -> None:
        """Refuse infinity, and NaN in sparse matrices; in arrays they are missing values."""
        entries = X.data if sp.issparse(X) else X
        if not seems_finite(entries):
            own = {"estimator_name": type(self).__name__, "input_name": "X"}
            assert_all_finite(X, allow_nan=not sp.issparse(X), **own)

    def _validated_points(self, X: Any, kernel: Any = None) -> Any:
        """Check new points, which may have missing values."""
        X = validate_data(
            self,
            X,
            reset=False,
            dtype=[np.float64, np.float32],
            accept_sparse="csr",
            ensure_all_finite=False,
        )
        self._refuse_infinite(X)
        return X

    def _read(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Target, np.ndarray]:
        """Check everything; returns X, the target, and the weights of the rows."""
        raise NotImplementedError

    def _answer(self, values: np.ndarray) -> Any:
        """Make predictions of the leaves' values, (rows, statistics)."""
        raise NotImplementedError


class ClassLearner(ClassifierMixin, TreeLearner):
    """A tree or a forest of classes."""

    classes_: Any
    n_classes_: Any
    class_weight: Any

    def _read(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Target, np.ndarray]:
        several = is_table(y)
        X, y = self._validated(X, y, **_several(several))
        weight = self._validated_weight(sample_weight, X)
        if several:
            check_classification_targets(y)
            read = [read_labels(column, at_least=1) for column in np.asarray(y).T]
        else:
            read = [read_labels(y, at_least=1)]
        self._keep_classes([classes for classes, _ in read])
        index = np.array([own for _, own in read], dtype=np.int32)
        weight = self._weighed(weight, [classes for classes, _ in read], index)
        counts = [len(classes) for classes, _ in read]
        return X, Target.of_classes(index, counts, CLASS_CRITERIA[self.criterion]), weight

    def _keep_classes(self, classes: list[np.ndarray]) -> None:
        self.n_outputs_ = len(classes)
        single = len(classes) == 1
        self.classes_ = classes[0] if single else classes
        self.n_classes_ = len(classes[0]) if single else [len(one) for one in classes]

    def _weighed(
        self, weight: np.ndarray, classes: list[np.ndarray], index: np.ndarray
    ) -> np.ndarray:
        """Multiply the weights of the rows by those of their classes, in all outputs."""
        given = self.class_weight
        if given is None:
            return weight
        several = len(classes) > 1
        if (isinstance(given, dict) and several) or (isinstance(given, list) and not several):
            raise ValueError(
                f"class_weight={given!r} does not fit to y with {len(classes)} output(s): give a "
                "dict for one output, a list of dicts, one for each, for several."
            )
        each = given if isinstance(given, list) else [given] * len(classes)
        if len(each) != len(classes):
            raise ValueError(
                f"number of elements in class_weight should match number of outputs. Got "
                f"{len(each)} dicts for {len(classes)} outputs."
            )
        factors = [
            class_weights(own, names, i, weight)[i]
            for own, names, i in zip(each, classes, index, strict=True)
        ]
        weight = weight * np.prod(factors, axis=0)
        refuse_extreme_weights(weight, "sample_weight times class_weight")
        if not (weight > 0).any():
            raise ValueError(
                "sample_weight times class_weight is zero for all samples: there is nothing to "
                "learn. Give a class that has samples a positive weight."
            )
        return weight

    def _shares(self, values: np.ndarray) -> Any:
        """Probabilities of the classes: (rows, n_classes), a list of these for several outputs."""
        if self.n_outputs_ == 1:
            return values
        return np.split(values, np.cumsum(self.n_classes_)[:-1], axis=1)

    def _answer(self, values: np.ndarray) -> np.ndarray:
        shares = self._shares(values)
        if self.n_outputs_ == 1:
            return self.classes_[shares.argmax(axis=1)]
        named = [
            names[part.argmax(axis=1)] for names, part in zip(self.classes_, shares, strict=True)
        ]
        return np.stack(named, axis=1)

    def _in_logarithms(self, shares: Any) -> Any:
        with np.errstate(divide="ignore"):
            return np.log(shares) if self.n_outputs_ == 1 else [np.log(part) for part in shares]


class ValueLearner(RegressorMixin, TreeLearner):
    """A tree or a forest of real numbers."""

    def _read(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Target, np.ndarray]:
        several = is_table(y)
        X, y = self._validated(X, y, y_numeric=True, **_several(several))
        weight = self._validated_weight(sample_weight, X)
        values = np.asarray(y, dtype=np.float64)
        if self.criterion == "poisson":
            _refuse_negative(values)
        self.n_outputs_ = values.shape[1] if several else 1
        target = values.T if several else values.reshape(1, -1)
        return X, Target.of_values(target, VALUE_CRITERIA[self.criterion]), weight

    def _answer(self, values: np.ndarray) -> np.ndarray:
        return values[:, 0] if self.n_outputs_ == 1 else values


def _refuse_negative(y: np.ndarray) -> None:
    """Refuse targets that have no Poisson deviance."""
    if (y < 0).any():
        raise ValueError(
            "Some value(s) of y are negative which is not allowed for Poisson regression."
        )
    if not y.sum() > 0:
        raise ValueError("Sum of y is not positive which is necessary for Poisson regression.")
