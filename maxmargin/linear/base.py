"""What the linear machines share: data as scikit-learn checks them, weights, classes, values."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.linear_model._base import SparseCoefMixin
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from maxmargin.estimators.base import Estimator
from maxmargin.estimators.callbacks import scikit_learn_listeners
from maxmargin.estimators.data import (
    column,
)
from maxmargin.multiclass import class_weights
from maxmargin.progress import Monitor, watched


class LinearMachine(Estimator):
    """A machine ``f(x) = w . x + b`` with ``coef_`` and ``intercept_``.

    Data may be dense or CSR, float32 or float64, and stay as they are.
    """

    coef_: np.ndarray
    intercept_: Any
    time_limit: float | None
    callback: Any
    verbose: Any

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _watched(self, problems: int = 1) -> AbstractContextManager[Monitor]:
        """Have someone between a fit and its solvers, for so many problems."""
        return watched(
            self.time_limit, self.callback, self.verbose, problems, scikit_learn_listeners(self)
        )

    def _values(self, X: Any) -> np.ndarray:
        """``X @ coef_.T + intercept_`` at new points."""
        check_is_fitted(self)
        X = self._validated_points(X)
        return safe_sparse_dot(X, self.coef_.T, dense_output=True) + self.intercept_


class LinearClassifier(ClassifierMixin, SparseCoefMixin, LinearMachine):
    """A linear machine for two classes, or one for each of several."""

    classes_: np.ndarray

    def _classes_of(self, y: Any) -> np.ndarray:
        """Set ``classes_``; returns the index of each row's class. Labels may be of any type."""
        labels = column(y)
        if labels.dtype.kind not in "biuSU":  # whose labels cannot be anything else
            check_classification_targets(labels)
        self.classes_ = np.unique(labels)
        if len(self.classes_) < 2:
            raise ValueError(
                f"The number of classes has to be greater than one; got {len(self.classes_)} class"
            )
        return np.searchsorted(self.classes_, labels)  # no sorting of all labels

    def _weights_and_factors(
        self, sample_weight: Any, class_weight: Any, X: Any, index: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Weights of the rows, and the factor of each class; refuses classes without weight."""
        weight = self._validated_weight(sample_weight, X)
        factors = class_weights(class_weight, self.classes_, index, weight)
        mass = factors * np.bincount(index, weights=weight, minlength=len(self.classes_))
        if not (mass > 0).all():
            empty = self.classes_[np.flatnonzero(mass <= 0)].tolist()
            raise ValueError(
                f"All samples of class(es) {empty} have weight zero: remove these samples, or "
                "give them a positive sample_weight or class_weight."
            )
        return weight, factors

    def _weights_with_classes(
        self, sample_weight: Any, class_weight: Any, X: Any, index: np.ndarray
    ) -> np.ndarray:
        """Weights of the rows, each times that of its class."""
        weight, factors = self._weights_and_factors(sample_weight, class_weight, X, index)
        return weight * factors[index]

    def _signs(self, index: np.ndarray) -> list[np.ndarray]:
        """Labels -1 and +1 of each machine: one for two classes, else each against the rest."""
        positive = [1] if len(self.classes_) == 2 else range(len(self.classes_))
        return [np.where(index == k, 1.0, -1.0) for k in positive]

    def _dense_coef(self) -> np.ndarray:
        """``coef_`` to go on from, also after ``sparsify``."""
        coef: Any = self.coef_
        return coef.toarray() if sp.issparse(coef) else coef

    def decision_function(self, X: Any) -> np.ndarray:
        """Values of the machine, or of one for each class.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        values : array of shape (n_samples,) or (n_samples, n_classes)
            With two classes a positive value means ``classes_[1]``.
        """
        values = self._values(X)
        return values.ravel() if values.shape[1] == 1 else values

    def predict(self, X: Any) -> np.ndarray:
        """Return the class of each row of X.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        labels : array of shape (n_samples,)
        """
        values = self.decision_function(X)
        index = (values > 0).astype(np.intp) if values.ndim == 1 else values.argmax(axis=1)
        return self.classes_[index]


class LinearRegressor(RegressorMixin, LinearMachine):
    """A linear machine for numbers."""

    def predict(self, X: Any) -> np.ndarray:
        """Return the machine's value at each row of X.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        values : array of shape (n_samples,)
        """
        return self._values(X)
