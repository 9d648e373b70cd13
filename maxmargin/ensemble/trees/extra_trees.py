"""Extremely randomised trees: M trees whose nodes try one random test for each of K columns.

    forest(x) = 1/M sum_m tree_m(x)

Every tree is grown from all rows (or a bootstrap sample on request) until its leaves are pure or a
limit is reached. The smaller K, the more the trees differ; K = 1 does not look at the target at all
before the leaves are filled.

References: seed 000; Geurts, Ernst and Wehenkel, Extremely randomized trees, Machine Learning 63,
2006.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.multiclass import type_of_target

from maxmargin.ensemble.out_of_bag import score_out_of_bag
from maxmargin.ensemble.trees.base import (
    CLASS_LIMITS,
    VALUE_LIMITS,
    ClassLearner,
    ValueLearner,
    criterion_of,
)
from maxmargin.ensemble.trees.decision_tree import DecisionTreeClassifier, DecisionTreeRegressor
from maxmargin.ensemble.trees.forest import Forest

_OF_TREES = (  # parameters that a forest hands to its trees
    "criterion",
    "max_depth",
    "min_samples_split",
    "min_samples_leaf",
    "min_weight_fraction_leaf",
    "max_features",
    "max_leaf_nodes",
    "min_impurity_decrease",
    "ccp_alpha",
    "monotonic_cst",
    "max_bins",
)


def _given(forest: Any) -> dict[str, Any]:
    return {name: getattr(forest, name) for name in _OF_TREES}


class ExtraTreesClassifier(ClassLearner, Forest):
    """Many extremely randomised trees that vote with the shares of the classes in their leaves.

        forest(x) = 1/M sum_m tree_m(x),   M = n_estimators

    Each node of each tree draws K columns without replacement, one random threshold for each, and
    installs the best of these K tests. The mean of the trees varies less than each of them.

    Parameters
    ----------
    n_estimators : int, default=100
        M, the number of trees.
    criterion : {"gini", "entropy", "log_loss", "normalised_gain"}, default="gini"
        How tests are judged; the lecture's is ``"normalised_gain"``. See
        :class:`~maxmargin.DecisionTreeClassifier`.
    max_depth, min_samples_split, min_samples_leaf, min_weight_fraction_leaf
        Limits of the trees, as in :class:`~maxmargin.DecisionTreeClassifier`.
    max_features : int, float, {"sqrt", "log2"} or None, default="sqrt"
        K: columns that each node tries, among those that are not constant in it (scikit-learn
        counts constant ones, too). ``maxmargin.ensemble.k_study`` shows what it does.
    min_impurity_decrease : float, default=0.0
    bootstrap : bool, default=False
        Whether each tree has a sample of the rows drawn with replacement in place of all rows.
    oob_score : bool or callable, default=False
        Score each row by the trees that have not seen it; a callable is a metric
        ``metric(y_true, y_pred)``.
    n_jobs : int, optional
        Threads; the forest is the same for any number.
    random_state : int, RandomState or None, default=None
    verbose : bool or int, default=False
        Show a progress bar.
    warm_start : bool, default=False
        Keep the trees of the last fit and add to them until there are ``n_estimators``.
    class_weight : dict, list of dict, "balanced", "balanced_subsample" or None, default=None
    max_samples : int or float, optional
        Size of a bootstrap sample; by default as many as there are rows.
    max_bins : int, optional
        As in :class:`~maxmargin.DecisionTreeClassifier`.
    time_limit : float, optional
        Seconds after which the forest is what has grown by then, at least one tree.
    callback : callable, optional
        Called some times a second with a :class:`~maxmargin.progress.Progress`; stops the growth by
        returning True.

    Attributes
    ----------
    estimators_ : list of DecisionTreeClassifier
    classes_, n_classes_, n_outputs_, n_features_in_, feature_names_in_, feature_importances_
        As in scikit-learn.
    oob_score_ : float
        Accuracy by the trees that have not seen a row, of all outputs together as in ``score``, or
        the given metric.
    oob_decision_function_ : array of shape (n_samples, n_classes) or (n_samples, 2, n_outputs)
        Shares of the classes by the trees that have not seen a row; nan where there is none.
    estimators_samples_ : list of int arrays
        Rows that each tree was grown from.
    status_ : Status
        Whether all trees are there.

    References
    ----------
    Geurts, Ernst and Wehenkel, Extremely randomized trees, Machine Learning 63, 2006.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from maxmargin import ExtraTreesClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = ExtraTreesClassifier(bootstrap=True, oob_score=True, random_state=0).fit(X, y)
    >>> model.oob_score_ > 0.9
    True
    """

    oob_decision_function_: Any

    _parameter_constraints: dict = {
        **Forest._parameter_constraints,
        **CLASS_LIMITS,
        "class_weight": [dict, list, StrOptions({"balanced", "balanced_subsample"}), None],
    }

    def __init__(
        self,
        n_estimators: int = 100,
        *,
        criterion: str = "gini",
        max_depth: int | None = None,
        min_samples_split: float = 2,
        min_samples_leaf: float = 1,
        min_weight_fraction_leaf: float = 0.0,
        max_features: Any = "sqrt",
        max_leaf_nodes: int | None = None,
        min_impurity_decrease: float = 0.0,
        bootstrap: bool = False,
        oob_score: Any = False,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: bool | int = False,
        warm_start: bool = False,
        class_weight: Any = None,
        ccp_alpha: float = 0.0,
        max_samples: Any = None,
        monotonic_cst: Any = None,
        max_bins: int | None = None,
        time_limit: float | None = None,
        callback: Any = None,
    ) -> None:
        self.n_estimators = n_estimators
        self.criterion = criterion
        self.max_depth = max_depth
        self.min_samples_split = min_samples_split
        self.min_samples_leaf = min_samples_leaf
        self.min_weight_fraction_leaf = min_weight_fraction_leaf
        self.max_features = max_features
        self.max_leaf_nodes = max_leaf_nodes
        self.min_impurity_decrease = min_impurity_decrease
        self.bootstrap = bootstrap
        self.oob_score = oob_score
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.warm_start = warm_start
        self.class_weight = class_weight
        self.ccp_alpha = ccp_alpha
        self.max_samples = max_samples
        self.monotonic_cst = monotonic_cst
        self.max_bins = max_bins
        self.time_limit = time_limit
        self.callback = callback

    def _weighed(
        self, weight: np.ndarray, classes: list[np.ndarray], index: np.ndarray
    ) -> np.ndarray:
        if self.class_weight == "balanced_subsample":  # for each tree anew
            return weight
        return super()._weighed(weight, classes, index)

    def _tree(self) -> DecisionTreeClassifier:
        tree = DecisionTreeClassifier(splitter="random", **_given(self))
        tree.classes_, tree.n_classes_ = self.classes_, self.n_classes_
        tree.n_outputs_ = self.n_outputs_
        return tree

    def _refuse_out_of_bag(self, y: Any) -> None:
        kind = type_of_target(y)
        if kind in ("multiclass-multioutput", "unknown"):
            raise ValueError(
                f"The type of target cannot be used to compute OOB estimates. Got {kind}: several "
                "outputs have one if they are binary indicators. Set oob_score=False."
            )

    def _keep_out_of_bag(self, means: np.ndarray, seen: np.ndarray, y: np.ndarray) -> None:
        shares = self._shares(means)
        self.oob_decision_function_ = shares if self.n_outputs_ == 1 else np.stack(shares, axis=2)
        predicted, y = self._answer(means[seen]), y.reshape(len(y), -1)[seen]
        y = y[:, 0] if self.n_outputs_ == 1 else y
        self.oob_score_ = score_out_of_bag(self.oob_score, accuracy_score, y, predicted)

    def predict_proba(self, X: Any) -> Any:
        """Return the mean over the trees of the shares of the classes.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        p : array of shape (n_samples, n_classes), or a list of them for several outputs
        """
        return self._shares(self._means(X))

    def predict_log_proba(self, X: Any) -> Any:
        """Return the logarithms of :meth:`predict_proba`."""
        return self._in_logarithms(self.predict_proba(X))


class ExtraTreesRegressor(ValueLearner, Forest):
    """The mean of many extremely randomised trees of real numbers.

        forest(x) = 1/M sum_m tree_m(x),   M = n_estimators

    Each node of each tree draws K columns without replacement, one random threshold for each, and
    installs the test of these K that lowers the variance most.

    Parameters
    ----------
    n_estimators : int, default=100
        M, the number of trees.
    criterion : {"squared_error", "absolute_error", "poisson"}, default="squared_error"
    max_features : int, float, {"sqrt", "log2"} or None, default=1.0
        K: columns that each node tries, among those that are not constant in it.
    max_depth, min_samples_split, min_samples_leaf, min_weight_fraction_leaf, min_impurity_decrease
        Limits of the trees, as in :class:`~maxmargin.DecisionTreeRegressor`.
    bootstrap, oob_score, n_jobs, random_state, verbose, warm_start, max_samples, max_bins
        As in :class:`~maxmargin.ExtraTreesClassifier`.
    time_limit, callback
        As in :class:`~maxmargin.ExtraTreesClassifier`.

    Attributes
    ----------
    estimators_ : list of DecisionTreeRegressor
    n_outputs_, n_features_in_, feature_names_in_, feature_importances_
        As in scikit-learn.
    oob_score_ : float
        R^2 of the rows by trees that have not seen them, or the given metric.
    oob_prediction_ : array of shape (n_samples,) or (n_samples, n_outputs)
        nan where no tree is without the row.
    status_ : Status
        Whether all trees are there.

    References
    ----------
    Geurts, Ernst and Wehenkel, Extremely randomized trees, Machine Learning 63, 2006.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from maxmargin import ExtraTreesRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = ExtraTreesRegressor(min_samples_leaf=5, random_state=0).fit(X[:300], y[:300])
    >>> model.score(X[300:], y[300:]) > 0.4
    True
    """

    oob_prediction_: np.ndarray

    _parameter_constraints: dict = {**Forest._parameter_constraints, **VALUE_LIMITS}

    def __init__(
        self,
        n_estimators: int = 100,
        *,
        criterion: str = "squared_error",
        max_depth: int | None = None,
        min_samples_split: float = 2,
        min_samples_leaf: float = 1,
        min_weight_fraction_leaf: float = 0.0,
        max_features: Any = 1.0,
        max_leaf_nodes: int | None = None,
        min_impurity_decrease: float = 0.0,
        bootstrap: bool = False,
        oob_score: Any = False,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: bool | int = False,
        warm_start: bool = False,
        ccp_alpha: float = 0.0,
        max_samples: Any = None,
        monotonic_cst: Any = None,
        max_bins: int | None = None,
        time_limit: float | None = None,
        callback: Any = None,
    ) -> None:
        self.n_estimators = n_estimators
        self.criterion = criterion_of(criterion)
        self.max_depth = max_depth
        self.min_samples_split = min_samples_split
        self.min_samples_leaf = min_samples_leaf
        self.min_weight_fraction_leaf = min_weight_fraction_leaf
        self.max_features = max_features
        self.max_leaf_nodes = max_leaf_nodes
        self.min_impurity_decrease = min_impurity_decrease
        self.bootstrap = bootstrap
        self.oob_score = oob_score
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.warm_start = warm_start
        self.ccp_alpha = ccp_alpha
        self.max_samples = max_samples
        self.monotonic_cst = monotonic_cst
        self.max_bins = max_bins
        self.time_limit = time_limit
        self.callback = callback

    def _tree(self) -> DecisionTreeRegressor:
        tree = DecisionTreeRegressor(splitter="random", **_given(self))
        tree.n_outputs_ = self.n_outputs_
        return tree

    def _keep_out_of_bag(self, means: np.ndarray, seen: np.ndarray, y: np.ndarray) -> None:
        self.oob_prediction_ = self._answer(means)
        predicted, y = self._answer(means[seen]), y.reshape(len(y), -1)[seen]
        y = y[:, 0] if self.n_outputs_ == 1 else y
        self.oob_score_ = score_out_of_bag(self.oob_score, r2_score, y, predicted)
