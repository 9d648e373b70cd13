"""Bagging of classifiers."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin, _fit_context
from sklearn.metrics import accuracy_score
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _num_samples, check_is_fitted

from maxmargin.ensemble.bagging.base import Bagging
from maxmargin.ensemble.out_of_bag import score_out_of_bag, warn_never_left_out
from maxmargin.ensemble.trees import DecisionTreeClassifier
from maxmargin.estimators.callbacks import observed
from maxmargin.estimators.collections import takes_collections
from maxmargin.multiclass import read_labels


def _can_vote(bagging: Any) -> bool:
    if bagging.voting == "soft" and not hasattr(bagging._learner(), "predict_proba"):
        raise AttributeError(
            f"voting='soft' averages probabilities, and {type(bagging._learner()).__name__} has no "
            "predict_proba: use voting='hard'."
        )
    return True


def _has_values(bagging: Any) -> bool:
    return hasattr(bagging._learner(), "decision_function")


class BaggingClassifier(ClassifierMixin, Bagging):
    """A classifier by the votes of many, each fitted to a bootstrap replicate of the data.

    Member b is fitted to m of the N rows, drawn with replacement, and

        h(x) = the class with most votes among h_1(x), ..., h_B(x),

    the first of the classes where some have as many. A learner whose answer changes much from
    replicate to replicate (a tree, a nearest neighbour) gains by it; a stable one does not.

    Parameters
    ----------
    estimator : classifier, optional
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
        by accuracy, or by a function of the true and the predicted targets.
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
    voting : {"hard", "soft"}, default="hard"
        ``"hard"`` counts votes, and probabilities are shares of them. ``"soft"`` averages the
        members' probabilities and takes the largest, as scikit-learn does where it can.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
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
    oob_decision_function_ : array of shape (n_samples, n_classes)
        With ``oob_score``: shares of votes, or mean probabilities, of the members that have not
        seen a row; nan where there is none.
    oob_count_ : int array of shape (n_samples,)
        How many these are, about 0.37 of all.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    A replicate reaches a member as counts in ``sample_weight``, rows of count zero left out, if it
    takes weights: this is exact where a row of weight k means k rows. Otherwise the rows are
    copied. A member that has not seen a class does not vote for it. Kernel machines of this package
    are fitted over one Gram matrix, each as by ``fit(X, y, sample_weight=counts)``: with
    ``gamma="scale"`` the width is that of all rows, the same for all members.

    References
    ----------
    Breiman, Bagging predictors, Machine Learning 24, 1996.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from maxmargin import SVC, BaggingClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = BaggingClassifier(SVC(), 50, oob_score=True, random_state=0).fit(X, y)
    >>> round(model.oob_score_, 2), all(m.certificate_.converged for m in model.estimators_)
    (0.96, True)
    """

    classes_: np.ndarray

    _parameter_constraints: dict = {
        **Bagging._parameter_constraints,
        "voting": [StrOptions({"hard", "soft"})],
    }

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
        voting: str = "hard",
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
        self.voting = voting

    def _default(self) -> Any:
        return DecisionTreeClassifier()

    @_fit_context(prefer_skip_nested_validation=False)
    @observed
    def fit(self, X: Any, y: Any, sample_weight: Any = None, **fit_params: Any) -> Any:
        """Fit the members to replicates of the data.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            As the members take it; tables keep their columns' names.
        y : array-like of shape (n_samples,)
            Class labels of any type.
        sample_weight : array-like of shape (n_samples,), optional
            Rows are drawn in proportion to it; one of weight zero is never drawn.
        **fit_params : dict
            For the members, by metadata routing (``sklearn.set_config``).

        Returns
        -------
        self : object
        """
        metadata = self._routed("fit", fit_params)
        X, y = self._checked(X, y)
        classes, index = read_labels(y, at_least=1)
        self._keep_classes(classes)
        self._fit_members(X, self.classes_[index], sample_weight, metadata)
        return self

    def _keep_classes(self, classes: np.ndarray) -> None:
        """Set the classes; refuses others than those of members that are kept."""
        warm = self.warm_start and hasattr(self, "estimators_")
        if warm and not np.array_equal(classes, self.classes_):
            raise ValueError(
                "warm_start=True adds members to those that are there, which vote for the classes "
                f"{self.classes_.tolist()}, and y has {classes.tolist()}: use warm_start=False to "
                "begin anew."
            )
        self.classes_, self.n_classes_ = classes, len(classes)
        if self.voting == "soft":
            _can_vote(self)

    def _asked_out_of_bag(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        return self._shares(X, out_of_bag=True)

    def _keep_out_of_bag(self, said: np.ndarray, counts: np.ndarray, y: Any) -> None:
        shares, self.oob_count_ = said, counts
        warn_never_left_out(self.oob_count_)
        self.oob_decision_function_ = shares
        known = self.oob_count_ > 0
        voted = self.classes_[np.argmax(shares[known], axis=1)]
        self.oob_score_ = score_out_of_bag(self.oob_score, accuracy_score, y[known], voted)

    def _asks(self) -> dict[str, str]:
        callee = "predict_proba" if self.voting == "soft" else "predict"
        asks = dict.fromkeys(("predict", "predict_proba", "predict_log_proba"), callee)
        return {**asks, "decision_function": "decision_function"}

    def _shares(
        self, X: Any, out_of_bag: bool = False, metadata: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Shares of votes or mean probabilities, (n, n_classes), and of how many members."""
        n, soft = _num_samples(X), self.voting == "soft"
        sums, asked = np.zeros((n, len(self.classes_))), np.zeros(n, dtype=np.int64)
        answers = self._answers(X, "predict_proba" if soft else "predict", out_of_bag, metadata)
        for machine, answer, rows in answers:
            where = np.arange(n)[rows]
            asked[where] += 1
            if soft:
                own = np.searchsorted(self.classes_, machine.classes_)
                sums[where[:, None], own] += answer.reshape(len(where), len(own))
            else:
                sums[where, np.searchsorted(self.classes_, answer)] += 1.0
        with np.errstate(invalid="ignore"):
            return sums / asked[:, None], asked

    @available_if(_can_vote)
    @takes_collections
    def predict(self, X: Any, **params: Any) -> np.ndarray:
        """Return the class of each row of X that has most votes, shape (n_samples,).

        ``params`` go to the members by metadata routing.
        """
        shares = self._checked_shares(X, "predict", params)
        return self.classes_[np.argmax(shares, axis=1)]

    @available_if(_can_vote)
    @takes_collections
    def predict_proba(self, X: Any, **params: Any) -> np.ndarray:
        """Return shares of votes or mean probabilities, (n_samples, n_classes), by ``voting``.

        ``params`` go to the members by metadata routing.
        """
        return self._checked_shares(X, "predict_proba", params)

    def _checked_shares(self, X: Any, method: str, params: dict[str, Any]) -> np.ndarray:
        check_is_fitted(self)
        return self._shares(self._checked(X), metadata=self._routed(method, params))[0]

    @available_if(_can_vote)
    @takes_collections
    def predict_log_proba(self, X: Any, **params: Any) -> np.ndarray:
        """Return the logarithm of :meth:`predict_proba`; minus infinity where no member votes."""
        with np.errstate(divide="ignore"):
            return np.log(self._checked_shares(X, "predict_log_proba", params))

    @available_if(_has_values)
    @takes_collections
    def decision_function(self, X: Any, **params: Any) -> np.ndarray:
        """Return the mean of the members' values, (n_samples,) or (n_samples, n_classes).

        ``params`` go to the members by metadata routing.

        It need not agree with the votes. Members that have not seen every class have no values for
        it, and are refused.
        """
        check_is_fitted(self)
        short = [k for k, m in enumerate(self.estimators_) if len(m.classes_) < len(self.classes_)]
        if short:
            raise ValueError(
                f"Member {short[0]} has not seen every class, so that its values cannot be "
                "averaged with the others': use predict or predict_proba, which count votes."
            )
        metadata = self._routed("decision_function", params)
        answers = self._answers(self._checked(X), "decision_function", metadata=metadata)
        total: Any = 0.0
        for _, answer, _ in answers:
            total = total + answer
        return total / len(self.estimators_)
