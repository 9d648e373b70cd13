"""The schemes around any classifier for two classes."""

from __future__ import annotations

from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.utils import _safe_indexing
from sklearn.utils._param_validation import HasMethods, StrOptions
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import (
    _check_sample_weight,
    _num_samples,
    check_is_fitted,
    has_fit_parameter,
)

from maxmargin.estimators.callbacks import observed
from maxmargin.estimators.collections import TakesCollections, takes_collections
from maxmargin.estimators.data import validate_data
from maxmargin.multiclass.labels import read_class_weights, read_labels
from maxmargin.multiclass.named import NAMED, as_scheme
from maxmargin.multiclass.scheme import Question, Scheme


def _estimator_has(name: str) -> Any:
    def has(wrapper: SchemeClassifier) -> bool:
        getattr(wrapper.estimator, name)
        return True

    return has


class SchemeClassifier(TakesCollections, ClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    """Several classes by a classifier for two, after a scheme: a clone for each of its tasks.

    The machines of this package have the parameter ``multiclass`` themselves, and solve all tasks
    over one Gram matrix; this is for every other classifier of scikit-learn's kind.

    Parameters
    ----------
    estimator : classifier
        With ``decision_function`` or ``predict_proba``.
    multiclass : {"ovo", "ovr", "dag", "ecoc"}, or Scheme or subclass of it, default="ovo"
    n_jobs : int, optional
        Processes that fit the tasks, as joblib has them.

    Attributes
    ----------
    estimators_ : list of classifiers, one for each task
    scheme_ : Scheme
    classes_ : array of shape (n_classes,)

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from maxmargin.multiclass import SchemeClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = SchemeClassifier(DecisionTreeClassifier(random_state=0), multiclass="dag")
    >>> model.fit(X, y).score(X, y), len(model.estimators_)
    (1.0, 3)
    """

    _parameter_constraints: dict = {
        "estimator": [HasMethods(["fit"])],
        "multiclass": [StrOptions(set(NAMED)), Scheme, callable],
        "n_jobs": [int, None],
    }

    def __init__(self, estimator: Any, *, multiclass: Any = "ovo", n_jobs: int | None = None):
        self.estimator = estimator
        self.multiclass = multiclass
        self.n_jobs = n_jobs

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = self.estimator.__sklearn_tags__().input_tags
        tags.input_tags.sparse, tags.input_tags.pairwise = inner.sparse, inner.pairwise
        tags.input_tags.allow_nan = inner.allow_nan
        return tags

    @observed
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> SchemeClassifier:
        """Fit a clone of the estimator to each task of the scheme.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), optional
            Passed on with the rows of each task; also a balanced scheme needs an estimator that
            takes weights.

        Returns
        -------
        self : object
        """
        self._validate_params()
        X, y = self._checked(X, y)
        self.classes_, index = read_labels(y)
        self.scheme_ = scheme = as_scheme(self.multiclass, len(self.classes_))
        if scheme.direct:
            raise ValueError(
                f"{scheme!r} is a machine of its own, not one of several for two classes: use "
                'SVC or LinearSVC(multiclass="crammer_singer").'
            )
        weighed = sample_weight is not None or scheme.balanced
        if weighed and not has_fit_parameter(self.estimator, "sample_weight"):
            raise TypeError(
                f"{type(self.estimator).__name__}.fit does not take sample_weight, which "
                f"{'a balanced scheme' if sample_weight is None else 'this call'} needs."
            )
        weight = _check_sample_weight(sample_weight, X)
        read_class_weights(None, self.classes_, index, weight)  # refuses classes without any
        pairwise = self.__sklearn_tags__().input_tags.pairwise

        def job(rows: np.ndarray, labels: np.ndarray) -> Any:
            labels = scheme.sign * labels
            points = X[np.ix_(rows, rows)] if pairwise else _safe_indexing(X, rows)
            own = {"sample_weight": scheme.weigh(labels, weight[rows])} if weighed else {}
            return delayed(_fitted)(self.estimator, points, (labels > 0).astype(np.intp), own)

        tasks = scheme.tasks(index)
        self._rows = [rows for rows, _ in tasks] if pairwise else None
        self.estimators_ = Parallel(n_jobs=self.n_jobs)(job(*task) for task in tasks)
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """One value per class, (n_samples, n_classes); for two classes that of the one machine."""
        values = self._values(X)
        return values[:, 0] if values.shape[1] == 1 else self.scheme_.scores(values)

    def predict(self, X: Any) -> np.ndarray:
        """Return the class of each row of X; machines that are not needed are not asked."""
        check_is_fitted(self, "estimators_")
        X = self._checked(X)

        def ask(questions: list[Question]) -> list[np.ndarray]:
            return [self._machine(task, _safe_indexing(X, rows)) for task, rows in questions]

        return self.classes_[self.scheme_.decide(ask, _num_samples(X))]

    @available_if(_estimator_has("predict_proba"))
    @takes_collections
    def predict_proba(self, X: Any) -> np.ndarray:
        """Class probabilities, (n_samples, n_classes), put together from those of the machines."""
        check_is_fitted(self, "estimators_")
        X = self._checked(X)
        r = [e.predict_proba(self._points(t, X))[:, 1] for t, e in enumerate(self.estimators_)]
        return self.scheme_.probabilities(np.column_stack(r))

    def _checked(self, X: Any, y: Any = "no_validation") -> Any:
        """Check shapes only: what the entries must be is the estimator's business."""
        first = not isinstance(y, str)
        accepted = self.__sklearn_tags__().input_tags
        return validate_data(
            self,
            X,
            y,
            accept_sparse="csr" if accepted.sparse else False,
            ensure_all_finite=False,
            dtype=None,
            reset=first,
        )

    def _values(self, X: Any) -> np.ndarray:
        check_is_fitted(self, "estimators_")
        X = self._checked(X)
        return np.column_stack([self._machine(t, X) for t in range(len(self.estimators_))])

    def _points(self, task: int, X: Any) -> Any:
        return X if self._rows is None else X[:, self._rows[task]]

    def _machine(self, task: int, X: Any) -> np.ndarray:
        """Values of one machine: its decisions, or how far its probability is above one half."""
        estimator = self.estimators_[task]
        X = self._points(task, X)
        if hasattr(estimator, "decision_function"):
            return np.asarray(estimator.decision_function(X)).ravel()
        return 2.0 * estimator.predict_proba(X)[:, 1] - 1.0


def _fitted(estimator: Any, X: Any, y: np.ndarray, weights: dict) -> Any:
    fitted = clone(estimator)
    fitted.fit(X, y, **weights)
    return fitted
