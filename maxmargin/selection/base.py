"""What all searches have in common: how candidates are scored, what becomes of the best."""

from __future__ import annotations

import time
import warnings
from abc import abstractmethod
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn import model_selection
from sklearn.base import BaseEstimator, MetaEstimatorMixin, _fit_context, clone, is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import check_cv
from sklearn.utils import indexable
from sklearn.utils._param_validation import Interval
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from maxmargin.backends.data import refuse_corrupt
from maxmargin.backends.threads import StoppedError
from maxmargin.selection.evaluation import Evaluation, Split
from maxmargin.selection.scikit_learn import Manners
from maxmargin.svm.base import POSITIVE

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from maxmargin.selection.plan import Sharing

_OF_BEST = ("best_index_", "best_score_", "best_params_", "best_estimator_")


def _of_best(name: str, returned: str) -> Any:
    """Return a method that asks the best estimator; it is there where that one has it."""

    def available(search: Search) -> bool:
        getattr(search._in_scikit_learn(), name)  # which says why, where it is not
        return True

    def method(self: Search, X: Any) -> Any:
        check_is_fitted(self)
        return getattr(self.best_estimator_, name)(X)

    method.__name__ = name
    method.__doc__ = f"Return {returned} of the best estimator at the rows of X."
    return available_if(available)(method)


class Search(MetaEstimatorMixin, BaseEstimator):
    """Base of the searches.

    The manners are scikit-learn's: ``_in_scikit_learn`` is the same search as its own class has
    it, and is asked for scorers, routing of metadata, tags and the table of results. The fits are
    ours. A search of its own says in ``_run`` which candidates to score on which splits.
    """

    estimator: Any
    cv: Any
    scoring: Any
    refit: Any
    n_jobs: int | None
    verbose: int
    error_score: Any
    return_train_score: bool
    prune_margin: float | None
    time_limit: float | None

    n_splits_: int
    best_estimator_: Any
    best_params_: dict
    best_index_: int
    sharing_: Sharing

    _parameter_constraints: dict = {
        **{
            name: constraint
            for name, constraint in model_selection.GridSearchCV._parameter_constraints.items()
            if name not in ("pre_dispatch", "param_grid")
        },
        "prune_margin": [Interval(Real, 0.0, None, closed="left"), None],
        "time_limit": [POSITIVE, None],
    }

    @abstractmethod
    def _run(self, evaluation: Evaluation, splits: list[Split]) -> None:
        """Score candidates by ``evaluation.score``, once or round after round."""

    def _searched(self) -> Any:
        """Return the estimator to search for."""
        return self.estimator

    def _prepare(self, estimator: Any, X: Any, y: Any) -> None:
        """Look at estimator and data before the search begins."""

    def _in_scikit_learn(self) -> model_selection.GridSearchCV:
        """Return the same search as scikit-learn's own, fitted if this one is."""
        search = model_selection.GridSearchCV(
            self._searched(),
            {},
            scoring=self.scoring,
            refit=self.refit,
            cv=self.cv,
            error_score=self.error_score,
            return_train_score=self.return_train_score,
        )
        for name in ("best_estimator_", "scorer_", "multimetric_"):
            if name in vars(self):
                setattr(search, name, vars(self)[name])
        return search

    def __sklearn_tags__(self) -> Any:
        return self._in_scikit_learn().__sklearn_tags__()

    def get_metadata_routing(self) -> Any:
        """Return scikit-learn's routing of metadata, that of ``GridSearchCV``."""
        return self._in_scikit_learn().get_metadata_routing()

    # -- searching -----------------------------------------------------------------------------

    @_fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: Any, y: Any = None, **params: Any) -> Search:
        """Search, and fit the best machine to all of the data.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features) or (n_samples, n_samples)
            Training points, as the estimator takes them.
        y : array-like of shape (n_samples,)
            Labels or targets.
        **params : dict of str to object
            Parameters of the estimator's ``fit``, such as ``sample_weight``: those with one entry
            per row are cut into folds. ``groups`` go to the splitter.

        Returns
        -------
        self : object
        """
        estimator = clone(self._searched())
        refuse_corrupt(X)
        X, y = indexable(X, y)
        manners = Manners(self._in_scikit_learn(), X, y, params)
        self._prepare(estimator, X, y)
        cv = check_cv(self.cv, y, classifier=is_classifier(estimator))
        found = cv.split(X, y, **manners.split_params)
        splits = [(_as_rows(train), _as_rows(test)) for train, test in found]
        self.n_splits_ = cv.get_n_splits(X, y, **manners.split_params)
        evaluation = Evaluation(
            manners,
            estimator,
            self.n_splits_,
            n_jobs=self.n_jobs,
            verbose=self.verbose,
            prune_margin=self.prune_margin,
            time_limit=self.time_limit,
        )
        self.sharing_ = evaluation.sharing
        interrupted = False
        try:
            self._run(evaluation, splits)
        except StoppedError:
            pass  # the time limit: what there is by now is kept
        except KeyboardInterrupt:
            interrupted = True
        if not evaluation.found:
            raise KeyboardInterrupt if interrupted else self._too_late()
        self._keep(evaluation, manners, interrupted)
        if self.refit:
            self._refit(estimator, X, y, manners.fit_params)
        return self

    def _keep(self, evaluation: Evaluation, manners: Manners, interrupted: bool) -> None:
        """Set what was found, and say which is the best."""
        self.n_pruned_ = evaluation.n_pruned
        self.cv_results_ = results = evaluation.table()
        first = evaluation.results[0]["test_scores"]
        self.multimetric_ = isinstance(first, dict)
        self.scorer_ = manners.named_scorers
        complete = evaluation.n_complete
        if interrupted:
            for name in _OF_BEST:
                self.__dict__.pop(name, None)  # of an earlier fit
            raise KeyboardInterrupt(
                f"stopped by Ctrl-C; cv_results_ holds the scores of {complete} candidates on all "
                "splits, and nan for what is missing"
            )
        if evaluation.n_missing:
            self._warn_late(evaluation.n_missing, complete, len(evaluation.candidates))
        if callable(self.scoring) and self.multimetric_:
            manners.check_refit(first)
        if self.refit or not self.multimetric_:
            self.best_index_ = self._best_index(results, manners.refit_metric)
            if not callable(self.refit):
                self.best_score_ = results[f"mean_test_{manners.refit_metric}"][self.best_index_]
            self.best_params_ = results["params"][self.best_index_]

    def _best_index(self, results: dict, metric: str) -> int:
        """Return the number of the best candidate, or the one that ``refit`` chooses."""
        if not callable(self.refit):
            return int(results[f"rank_test_{metric}"].argmin())
        chosen = self.refit(results)
        if not isinstance(chosen, Integral):
            raise TypeError("best_index_ returned is not an integer")
        if not 0 <= int(chosen) < len(results["params"]):
            raise IndexError("best_index_ index out of range")
        return int(chosen)

    def _too_late(self) -> TimeoutError:
        return TimeoutError(
            f"time_limit={self.time_limit:g} s was over before any candidate was scored on all "
            "splits, so there is no best one: raise time_limit, or search fewer rows."
        )

    def _warn_late(self, missing: int, complete: int, candidates: int) -> None:
        """Warn of what there was no time for; where nothing is complete there is no best."""
        if not complete:
            raise self._too_late()
        warnings.warn(
            f"The search stopped at time_limit={self.time_limit:g} s: {missing} of "
            f"{candidates * self.n_splits_} fits were not made, and their scores are nan. The best "
            f"is that of the {complete} candidates, of {candidates}, with scores on all splits.",
            ConvergenceWarning,
            stacklevel=5,
        )

    def _refit(self, estimator: Any, X: Any, y: Any, params: dict) -> None:
        best = clone(self.best_params_, safe=False)
        self.best_estimator_ = clone(estimator).set_params(**best)
        targets = () if y is None else (y,)
        began = time.time()
        self.best_estimator_.fit(X, *targets, **params)
        self.refit_time_ = time.time() - began
        if hasattr(self.best_estimator_, "feature_names_in_"):
            self.feature_names_in_ = self.best_estimator_.feature_names_in_

    # -- what the best estimator answers -------------------------------------------------------

    predict = _of_best("predict", "the classes or values")
    predict_proba = _of_best("predict_proba", "the probabilities")
    predict_log_proba = _of_best("predict_log_proba", "the logarithms of the probabilities")
    decision_function = _of_best("decision_function", "the decisions")
    score_samples = _of_best("score_samples", "the scores")
    transform = _of_best("transform", "the transforms")
    inverse_transform = _of_best("inverse_transform", "the inverse transforms")

    def score(self, X: Any, y: Any = None, **params: Any) -> float:
        """Return the score of the best estimator, by ``scoring`` or else its own."""
        check_is_fitted(self)
        return self._in_scikit_learn().score(X, y, **params)

    @property
    def classes_(self) -> np.ndarray:
        """Classes that the best estimator has seen."""
        return self._in_scikit_learn().classes_

    @property
    def n_features_in_(self) -> int:
        """Number of features that the best estimator has seen."""
        if "best_estimator_" not in vars(self):
            raise AttributeError(f"{type(self).__name__} object has no n_features_in_ attribute.")
        return self.best_estimator_.n_features_in_

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the mean test score over the grid; see :func:`maxmargin.plotting.plot_search`."""
        from maxmargin.plotting import plot_search

        return plot_search(self, ax)


def _as_rows(side: Any) -> np.ndarray:
    """Return one side of a split as row numbers; a mask is one too."""
    side = np.asarray(side)
    return np.flatnonzero(side) if side.dtype == bool else side
