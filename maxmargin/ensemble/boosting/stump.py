"""The decision stump of the lecture: the one test ``x_j > t`` that makes the least error.

    minimise  sum_i w_i [h(x_i) != y_i]   over   h(x) = right class if x_j > t, else left class

over all columns j, all thresholds t between neighbouring values, and all classes for the two sides;
"no test" is among them. A tree of depth one judges its test by the Gini index instead, which need
not find this one: it is the hypothesis of the greatest edge, on which AdaBoost's bound and the
certificate of LPBoost rest.

Reference: seed 000; Iba and Langley, Induction of one-level decision trees, ICML 1992.
"""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import ClassifierMixin, _fit_context
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from maxmargin.backends.cpu.trees.stump import best_test
from maxmargin.ensemble.trees.columns import BinnedColumns
from maxmargin.estimators.base import Estimator
from maxmargin.estimators.callbacks import observed
from maxmargin.linear.base import with_weight
from maxmargin.multiclass import read_class_weights, read_labels

_WORK = 20_000_000  # codes that are looked at in one call, about 0.05 s


class StumpSearch:
    """Finds stumps for one set of columns and classes, weights after weights; of one thread.

    Parameters
    ----------
    columns : BinnedColumns
    index : int array of shape (n,)
        The class of each row.
    n_classes : int
    """

    def __init__(self, columns: BinnedColumns, index: np.ndarray, n_classes: int) -> None:
        self.columns, self.n_classes = columns, n_classes
        self.index = np.ascontiguousarray(index, dtype=np.int32)
        self.sign = np.where(self.index == 1, 1.0, -1.0)  # of two classes
        most = int(np.diff(columns.store.first).max(initial=1))
        self.table = np.empty((most + 1) * max(4, n_classes))
        self.left = np.empty(n_classes)
        self.at_once = max(_WORK // max(columns.n_rows, 1), 1)

    def best(self, weight: np.ndarray) -> tuple[int, int, int, int]:
        """Return feature, cut, class on the left and on the right; feature -1 for no test."""
        if self.n_classes == 2:
            whole, weight = weight.sum(), self.sign * weight
            difference = weight.sum()
            total: np.ndarray = 0.5 * np.array([whole - difference, whole + difference])
        else:
            total = np.bincount(self.index, weights=weight, minlength=self.n_classes)
        most = int(np.argmax(total))
        found = np.array([-1, -1, most, most], np.int64)
        best, d = float(total[most]), self.columns.n_features
        for first in range(0, d, self.at_once):
            last = min(first + self.at_once, d)
            ends = first, last, best, found, self.table, self.left
            best = best_test(self.columns.store, self.index, weight, total, *ends)
        feature, cut, left, right = found.tolist()
        return feature, cut, left, right

    def sides(self, feature: int, cut: int) -> np.ndarray:
        """Whether each row is above a cut."""
        return self.columns.codes(feature) > cut


def threshold_at(
    first: np.ndarray, least: np.ndarray, greatest: np.ndarray, feature: int, cut: int
) -> float:
    """Return the threshold half-way between a cut's greatest value and the next one.

    ``first`` says where the values of each column begin; for no test, feature -1, it is infinite.
    """
    if feature < 0:
        return np.inf
    at = first[feature] + cut
    below, above = float(greatest[at]), float(least[at + 1])
    middle = 0.5 * below + 0.5 * above
    return middle if middle < above else below


class DecisionStump(ClassifierMixin, Estimator):
    """One test of one column, the one that makes the least error.

        minimise  sum_i w_i [h(x_i) != y_i],   h(x) = one class if x_j > t, and one if not

    over all columns, thresholds and classes. Of equally good tests (to ten digits) the one on the
    first column is taken, of these the lowest threshold. Where no test beats the most frequent
    class, there is none: ``feature_`` is -1.

    Parameters
    ----------
    max_bins : int, optional
        Columns with more different values than this are put into so many bins of about as many rows
        each, and only thresholds between bins are tried. By default all are: the stump is exact.

    Attributes
    ----------
    feature_ : int
        The column that is tested; -1 for none.
    threshold_ : float
    labels_ : tuple of two labels
        Of rows with ``x_j <= t``, and of the others.
    error_ : float
        Share of the training rows, by weight, that are misclassified.
    classes_ : array of shape (n_classes,)
    n_features_in_, feature_names_in_
        As in scikit-learn.

    References
    ----------
    Iba and Langley, Induction of one-level decision trees, ICML 1992.

    Examples
    --------
    >>> from maxmargin import DecisionStump
    >>> stump = DecisionStump().fit([[1.0], [2.0], [3.0], [4.0]], ["no", "yes", "yes", "no"])
    >>> print(stump.rule, stump.error_)
    x0 > 1.5: yes, else no 0.25
    """

    _parameter_constraints: dict = {
        "max_bins": [Interval(Integral, 2, None, closed="left"), None],
    }

    def __init__(self, *, max_bins: int | None = None) -> None:
        self.max_bins = max_bins

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.poor_score = True  # one test has two answers
        return tags

    @_fit_context(prefer_skip_nested_validation=True)
    @observed
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> DecisionStump:
        """Find the test.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Labels of any type.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the rows.

        Returns
        -------
        self : DecisionStump
        """
        X, y = self._validated(X, y)
        classes, index = read_labels(y, at_least=1)
        weight = self._validated_weight(sample_weight, X)
        read_class_weights(None, classes, index, weight)  # refuses classes without weight
        X, weight, index = with_weight(X, weight, index)
        columns = BinnedColumns.of(X, self.max_bins, self._workers(X.shape[0] * X.shape[1]))
        search = StumpSearch(columns, index, len(classes))
        predicted = self._found(search, weight, classes)
        self.error_ = float(weight[predicted != index].sum() / weight.sum())
        return self

    def _found(self, search: StumpSearch, weight: np.ndarray, classes: np.ndarray) -> np.ndarray:
        """Take the best test of a search; returns the index of the class of each of its rows."""
        feature, cut, left, right = search.best(weight)
        store = search.columns.store
        threshold = threshold_at(store.first, store.least, store.greatest, feature, cut)
        self._keep(feature, threshold, (left, right), classes, search.columns.n_features)
        if feature < 0:
            return np.full(search.columns.n_rows, left)
        return np.where(search.sides(feature, cut), right, left)

    def _keep(
        self,
        feature: int,
        threshold: float,
        sides: tuple[int, int],
        classes: np.ndarray,
        n_features: int,
    ) -> None:
        """Take a test: column, threshold, and the index of the class on either side."""
        self.classes_, self.n_features_in_ = classes, n_features
        self.feature_, self._sides, self.threshold_ = feature, sides, threshold
        self.labels_ = classes[sides[0]], classes[sides[1]]

    def _index(self, X: Any) -> np.ndarray:
        """Index of the class of each row of X, which was checked."""
        left, right = self._sides
        if self.feature_ < 0:
            return np.full(X.shape[0], left)
        column = X[:, [self.feature_]].toarray().ravel() if sp.issparse(X) else X[:, self.feature_]
        # in float64, also of float32: a threshold may lie between two neighbours there
        return np.where(column.astype(np.float64, copy=False) > self.threshold_, right, left)

    def predict(self, X: Any) -> np.ndarray:
        """Return the class of each row of X.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        labels : array of shape (n_samples,)
        """
        check_is_fitted(self)
        return self.classes_[self._index(self._validated_points(X))]

    @property
    def feature_importances_(self) -> np.ndarray:
        """One for the column that is tested, zero for the others."""
        check_is_fitted(self)
        return (np.arange(self.n_features_in_) == self.feature_).astype(np.float64)

    @property
    def rule(self) -> str:
        """The test in words."""
        check_is_fitted(self)
        left, right = self.labels_
        if self.feature_ < 0:
            return f"always {left}"
        names = getattr(self, "feature_names_in_", None)
        name = f"x{self.feature_}" if names is None else names[self.feature_]
        return f"{name} > {self.threshold_:g}: {right}, else {left}"
