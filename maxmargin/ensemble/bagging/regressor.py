"""Bagging of regressors."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import RegressorMixin, _fit_context
from sklearn.metrics import r2_score
from sklearn.utils.validation import _num_samples, check_is_fitted

from maxmargin.ensemble.bagging.base import Bagging
from maxmargin.ensemble.learners import tags_of
from maxmargin.ensemble.out_of_bag import score_out_of_bag, warn_never_left_out
from maxmargin.ensemble.trees import DecisionTreeRegressor
from maxmargin.estimators.callbacks import observed
from maxmargin.estimators.data import column, is_table


class BaggingRegressor(RegressorMixin, Bagging):
    """A regressor by the mean of many, each fitted to a bootstrap replicate of the data.

    Member b is fitted to m of the N rows, drawn with replacement, and

        h(x) = 1/B sum_b h_b(x).

    A learner whose answer changes much from replicate to replicate (a tree, a nearest neighbour)
    gains by it; a stable one does not.

    Parameters
    ----------
    estimator : regressor, optional
        The learner, cloned for every member: one of this package or of scikit-learn, or a
        pipeline. By default a decision tree that is not pruned.
    n_estimators : int, default=10
        Number of members.
    max_samples : int or float, optional
        Rows m of each replicate, or the share of all rows; by default as many as there are. m must
        not exceed them.
    max_features : int or float, default=1.0
        Columns that each member sees, or their share.
    bootstrap : bool, default=True
        Whether rows are drawn with replacement.
    bootstrap_features : bool, default=False
        Whether columns are drawn with replacement.
    oob_score : bool or callable, default=False
        Whether to predict each row by the members that have not seen it, and to score that:
        by R squared, or by a function of the true and the predicted targets.
    warm_start : bool, default=False
        Keep the members of the last fit and add those that are missing to ``n_estimators``.
    n_jobs : int, optional
        Members that are fitted and asked at the same time, by threads: -1 for one per core. By
        default they come one after the other, each with its own threads. The answer does not
        depend on it.
    random_state : int, RandomState or None, default=None
        Of the replicates, which are those that scikit-learn draws from it, and of the members.
    verbose : bool or int, default=False
        Show a progress bar (by tqdm if it is installed).
    time_limit : float, optional
        Seconds after which no further member is begun. There is always one.
    callback : callable, optional
        Called with a :class:`maxmargin.progress.Progress` some times a second; stops the fit by
        returning True. (scikit-learn's callbacks are set with ``set_callbacks``.)

    Attributes
    ----------
    estimators_ : list of fitted estimators
    estimators_samples_ : list of int arrays
        Rows of each member's replicate, as they were drawn.
    estimators_features_ : list of int arrays
        Columns that each member sees.
    estimator_ : estimator
        The learner that was cloned.
    sharing_ : str
        How replicates reached the members: over one Gram matrix or columns binned once, as counts
        (weights) or as rows, and why.
    status_ : Status
        ``"completed"`` if all members are there, else why not, with a warning.
    fit_status_ : int
        0 if all members are there, else 1.
    fit_time_ : float
        Seconds.
    oob_score_ : float
    oob_prediction_ : array of shape (n_samples,) or (n_samples, n_outputs)
        With ``oob_score``: mean prediction of the members that have not seen a row; nan where there
        is none.
    oob_count_ : int array of shape (n_samples,)
        How many these are, about 0.37 of all.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    As for :class:`BaggingClassifier`: replicates are counts in ``sample_weight`` where the learner
    takes them, and kernel machines of this package share one Gram matrix.

    References
    ----------
    Breiman, Bagging predictors, Machine Learning 24, 1996.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from maxmargin import BaggingRegressor, DecisionTreeRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> tree = DecisionTreeRegressor(random_state=0).fit(X[::2], y[::2])
    >>> model = BaggingRegressor(tree, 100, random_state=0).fit(X[::2], y[::2])
    >>> bool(model.score(X[1::2], y[1::2]) > tree.score(X[1::2], y[1::2]) + 0.3)
    True
    """

    def __init__(
        self,
        estimator: Any = None,
        n_estimators: int = 10,
        *,
        max_samples: Any = None,
        max_features: Any = 1.0,
        bootstrap: bool = True,
        bootstrap_features: bool = False,
        oob_score: Any = False,
        warm_start: bool = False,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: bool | int = False,
        time_limit: float | None = None,
        callback: Any = None,
    ) -> None:
        self.estimator = estimator
        self.n_estimators = n_estimators
        self.max_samples = max_samples
        self.max_features = max_features
        self.bootstrap = bootstrap
        self.bootstrap_features = bootstrap_features
        self.oob_score = oob_score
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.time_limit = time_limit
        self.callback = callback

    def _default(self) -> Any:
        return DecisionTreeRegressor()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = tags_of(self._learner()).target_tags.multi_output
        return tags

    @_fit_context(prefer_skip_nested_validation=False)
    @observed
    def fit(self, X: Any, y: Any, sample_weight: Any = None, **fit_params: Any) -> Any:
        """Fit the members to replicates of the data.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            As the members take it; tables keep their columns' names.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Targets.
        sample_weight : array-like of shape (n_samples,), optional
            Rows are drawn in proportion to it; one of weight zero is never drawn.
        **fit_params : dict
            For the members, by metadata routing (``sklearn.set_config``).

        Returns
        -------
        self : object
        """
        metadata = self._routed("fit", fit_params)
        X, y = self._checked(X, y, multi_output=True, y_numeric=True)
        y = np.asarray(y)
        self._fit_members(X, y if is_table(y) else column(y), sample_weight, metadata)
        return self

    def _asked_out_of_bag(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        return self._mean(X, out_of_bag=True)

    def _keep_out_of_bag(self, said: np.ndarray, counts: np.ndarray, y: Any) -> None:
        mean, self.oob_count_ = said, counts
        warn_never_left_out(self.oob_count_)
        self.oob_prediction_ = mean
        known = self.oob_count_ > 0
        self.oob_score_ = score_out_of_bag(self.oob_score, r2_score, y[known], mean[known])

    def _asks(self) -> dict[str, str]:
        return {"predict": "predict"}

    def _mean(
        self, X: Any, out_of_bag: bool = False, metadata: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Mean predictions, and of how many members."""
        n = _num_samples(X)
        sums, asked = np.zeros((n, 1)), np.zeros(n, dtype=np.int64)
        flat = True
        for _, answer, rows in self._answers(X, "predict", out_of_bag, metadata):
            if not len(answer):  # it has seen every row
                continue
            if answer.ndim == 2 and answer.shape[1] > sums.shape[1]:
                sums, flat = np.zeros((n, answer.shape[1])), False
            sums[rows] += answer.reshape(len(answer), -1)
            asked[rows] += 1
        with np.errstate(invalid="ignore"):
            mean = sums / asked[:, None]
        return (mean[:, 0] if flat else mean), asked

    def predict(self, X: Any, **params: Any) -> np.ndarray:
        """Return the mean prediction at the rows of X, (n_samples,) or (n_samples, n_outputs).

        ``params`` go to the members by metadata routing.
        """
        check_is_fitted(self)
        return self._mean(self._checked(X), metadata=self._routed("predict", params))[0]
