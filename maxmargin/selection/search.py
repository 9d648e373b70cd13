"""What all searches have in common, and the searches over a grid or over values drawn at random."""

from __future__ import annotations

import time
import warnings
from abc import abstractmethod
from importlib import import_module
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

import joblib
import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin, _fit_context, clone, is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV as _TheirSearch
from sklearn.model_selection import ParameterGrid, ParameterSampler, check_cv
from sklearn.utils import indexable
from sklearn.utils._param_validation import Interval
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from maxmargin.backends.data import refuse_corrupt
from maxmargin.backends.threads import StoppedError
from maxmargin.estimators.collections import TakesCollections, takes_collections
from maxmargin.estimators.parameters import refuse_extreme_parameters
from maxmargin.selection.evaluation import Evaluation
from maxmargin.selection.scikit_learn import Manners, best_estimator_has
from maxmargin.selection.scoring import Place, Split
from maxmargin.svm.base import POSITIVE

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_ALSO_IN_SCIKIT_LEARN = (
    *("scoring", "refit", "cv", "error_score", "return_train_score"),
    *("best_estimator_", "scorer_", "multimetric_"),
)
_OF_BEST = ("best_index_", "best_score_", "best_params_", "best_estimator_")


def _of_best(name: str, returned: str) -> Any:
    """Return a method that asks the best estimator; it is there where that one has it."""

    has = best_estimator_has(name)  # which says why, where it is not

    def available(search: Search) -> bool:
        return has(search._in_scikit_learn())

    def method(self: Search, X: Any) -> Any:
        check_is_fitted(self, "best_estimator_")  # a search that was stopped has none
        return getattr(self.best_estimator_, name)(X)

    method.__name__ = name
    method.__doc__ = f"Return {returned} of the best estimator at the rows of X."
    return available_if(available)(takes_collections(method))


def _active_place() -> Place:
    """Return where rows in memory are searched: here, or on joblib's Dask backend where it is on.

    ``with joblib.parallel_config(backend="dask")`` is how one asks for that, as of scikit-learn.
    """
    backend, _ = joblib.parallel.get_active_backend()
    if type(backend).__module__ != "joblib._dask":
        return Place()
    return import_module("maxmargin.dask.search").place_of(backend)


class Search(TakesCollections, MetaEstimatorMixin, BaseEstimator):
    """Base of the searches.

    The manners are scikit-learn's: ``_in_scikit_learn`` is the same search as its own class has
    it, and is asked for scorers, routing of metadata, tags and the table of results. The fits are
    ours. A search of its own says in ``_run`` which candidates to score on which splits.
    """

    _parameter_constraints: dict = {
        **{
            name: constraint
            for name, constraint in _TheirSearch._parameter_constraints.items()
            if name not in ("pre_dispatch", "param_grid")
        },
        "prune_margin": [Interval(Real, 0.0, None, closed="left"), None],
        "time_limit": [POSITIVE, None],
    }

    def _keep_parameters(self, given: dict[str, Any]) -> None:
        """Keep what the constructor was given, each under its own name, as scikit-learn asks."""
        for name in self._get_param_names():
            setattr(self, name, given[name])

    @abstractmethod
    def _run(self, evaluation: Evaluation, splits: list[Split]) -> None:
        """Score candidates by ``evaluation.score``, once or round after round."""

    def _searched(self) -> Any:
        """Return the estimator to search for."""
        return self.estimator

    def _in_scikit_learn(self) -> _TheirSearch:
        """Return the same search as scikit-learn's own, fitted if this one is."""
        search = _TheirSearch(self._searched(), {})
        for name in _ALSO_IN_SCIKIT_LEARN:
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
        place = _active_place()
        self._search(X, y, params, place)
        if place.distribution is not None:
            self.distribution_ = place.distribution
        return self

    def _search(self, X: Any, y: Any, params: dict, place: Place) -> Search:
        """Search in a place: the work is done there."""
        estimator = clone(self._searched())
        refuse_extreme_parameters({"time_limit": self.time_limit})
        refuse_corrupt(X)
        X, y = indexable(X, y)
        manners = Manners(self._in_scikit_learn(), X, y, params)
        cv = check_cv(self.cv, y, classifier=is_classifier(estimator))
        found = cv.split(X, y, **manners.split_params)
        splits = [(_as_rows(train), _as_rows(test)) for train, test in found]
        self.n_splits_ = cv.get_n_splits(X, y, **manners.split_params)
        evaluation = Evaluation(self, manners, estimator, place)
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
            self._refit(estimator, X, y, manners.fit_params, place)
        return self

    def _keep(self, evaluation: Evaluation, manners: Manners, interrupted: bool) -> None:
        """Set what was found, and say which is the best."""
        self.cv_results_ = results = evaluation.latest or evaluation.table()
        self.n_pruned_ = evaluation.n_pruned
        first = evaluation.results[0]["test_scores"]
        self.multimetric_ = isinstance(first, dict)
        self.scorer_ = manners.named_scorers
        complete, missing = evaluation.n_complete, evaluation.n_missing
        if interrupted:
            for name in _OF_BEST:
                self.__dict__.pop(name, None)  # of an earlier fit
            raise KeyboardInterrupt(
                f"stopped by Ctrl-C; cv_results_ holds the scores of {complete} candidates on all "
                "splits, and nan for what is missing"
            )
        if missing and not complete:
            raise self._too_late()
        if missing:
            candidates = len(evaluation.candidates)
            warnings.warn(
                f"The search stopped at time_limit={self.time_limit:g} s: {missing} of "
                f"{candidates * self.n_splits_} fits were not made, and their scores are nan. The "
                f"best is that of the {complete} candidates, of {candidates}, with scores on all "
                "splits.",
                ConvergenceWarning,
                stacklevel=4,
            )
        if callable(self.scoring) and self.multimetric_:
            manners.check_refit(first)
        if self.refit or not self.multimetric_:
            self.best_index_ = self._best_index(results, manners)
            if not callable(self.refit):
                self.best_score_ = results[f"mean_test_{manners.refit_metric}"][self.best_index_]
            self.best_params_ = results["params"][self.best_index_]

    def _best_index(self, results: dict, manners: Manners) -> int:
        """Return the number of the best candidate."""
        return manners.best_index(results)

    def _too_late(self) -> TimeoutError:
        return TimeoutError(
            f"time_limit={self.time_limit:g} s was over before any candidate was scored on all "
            "splits, so there is no best one: raise time_limit, or search fewer rows."
        )

    def _refit(self, estimator: Any, X: Any, y: Any, params: dict, place: Place) -> None:
        best = clone(self.best_params_, safe=False)
        began = time.time()
        self.best_estimator_ = place.fitted(clone(estimator).set_params(**best), X, y, params)
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


class GridSearchCV(Search):
    """Search over all combinations of some values of the parameters, by cross-validation.

    It is scikit-learn's class of this name with its results, for the estimators of this package:
    what their fits have in common is done once, and ``sharing_`` says what that was.

    - ``SVC``, ``SVR``, ``NuSVC``, ``NuSVR``: transformers once for each fold; squared distances
      (or whatever the kernels are made of) once for all gammas; one kernel matrix for all folds,
      classes, C and nu. Each C of an ``SVC`` or ``SVR`` begins from the solution for the last.
    - ``LinearSVC``, ``LinearSVR``, ``LogisticRegression``: transformers and checks of the data once
      for each fold, and each C begins from the solution for the last.
    - Everything else, such as other estimators, ``max_iter`` and ``time_limit`` of a kernel
      machine, the hard margin or indefinite kernels, is fitted one by one.

    Every fit is certified: ``cv_results_`` has a bound on its relative duality gap, and its status.
    With ``tol`` of 1e-4 and more the kernel values inside are float32, as in LIBSVM. A solution
    that is not certain to be one to ``tol`` over the exact values, or of which the rounding could
    be seen in the decisions, is solved again in float64. What does not converge there, either, is
    warned of as in a fit of its own. A search with a
    smaller ``tol`` is in float64 throughout. Where the kernel matrix does not fit ``cache_size`` of
    the estimator, rows are computed as they are needed. Probabilities that scikit-learn's scorers
    ask for, as ``"neg_log_loss"`` does, come from the same kernel matrix. The
    ``n_jobs``, ``verbose`` and ``warm_start`` of a kernel machine are for fits one by one and for
    the last one, to all of the data; what is shared has ``n_jobs`` of the search.

    Ctrl-C ends the search: ``cv_results_`` has what was scored until then, there is no best
    estimator, and KeyboardInterrupt goes on to the caller.

    Parameters
    ----------
    estimator : estimator
        What to search for: a machine of this package or a Pipeline that ends in one. Transformers
        are fitted to the training rows of each fold.
    param_grid : dict or list of dict
        Names of parameters and the values to try: ``C``, ``gamma``, ``kernel__gamma``, ``svc__C``
        in a pipeline.
    scoring : str, callable, list, tuple, dict or None, default=None
        As for scikit-learn's.
    n_jobs : int, optional
        Threads: -1 for one per core; by default as many as BLAS may use.
    refit : bool, str or callable, default=True
    cv : int, splitter, iterable or None, default=None
        As for scikit-learn's.
    verbose : int, default=0
        With 1 how many fits there are, with 2 a line for each with its time, with 3 its scores too.
    error_score : "raise" or number, default=nan
    return_train_score : bool, default=False
        As for scikit-learn's.
    prune_margin : float, optional
        Drop candidates early: those that score lower than the leader by more than this on each of
        the first two splits, where the leader is the candidate with the best mean on these. Their
        scores on the other splits, and their means, are nan. By default none is dropped.
    time_limit : float, optional
        Seconds for the scores of all candidates. What was not scored by then has nan, a warning
        says so, and the best of those with scores on all splits is fitted to all of the data, in
        time of its own (``time_limit`` of the estimator limits that). Without one: TimeoutError.

    Attributes
    ----------
    cv_results_ : dict
        As of scikit-learn's. A fit's time is that of its own solution, without what is shared.
        Also, if any of the fits has a certificate: ``split0_gap``, ..., a bound on the relative
        duality gap, rounding included (nan where a certificate has none), and ``worst_gap``, the
        largest; ``split0_status``, ..., how each fit ended, and ``status``, the worst:
        ``"converged"`` or another status of a certificate, ``"failed"`` for a fit that raised,
        ``"not fitted"`` after a stop or a drop, empty for an estimator without a certificate.
    best_estimator_, best_score_, best_params_, best_index_
        As of scikit-learn's; ``best_estimator_`` has its ``certificate_``.
    sharing_ : Sharing
        What was shared, and for each fit that was not the reason; see
        :class:`~maxmargin.selection.plan.Sharing`.
    n_pruned_ : int
        Candidates that were dropped.
    scorer_, n_splits_, refit_time_, multimetric_, classes_, n_features_in_, feature_names_in_
        As of scikit-learn's.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from maxmargin import GridSearchCV, NuSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> search = GridSearchCV(NuSVC(), {"nu": [0.05, 0.2], "gamma": [0.1, 1.0]}).fit(X, y)
    >>> search.best_params_, round(float(search.best_score_), 3)
    ({'gamma': 0.1, 'nu': 0.2}, 0.987)
    >>> print(search.sharing_)
    20 of 20 fits shared their work.
    RBF(gamma=0.1): 10 fits, 2 candidates on all splits; solved to certificates over float64 values
    RBF(gamma=1.0): 10 fits, 2 candidates on all splits; solved to certificates over float64 values
    """

    _parameter_constraints: dict = {**Search._parameter_constraints, "param_grid": [dict, list]}

    def __init__(
        self,
        estimator: Any,
        param_grid: Any,
        *,
        scoring: Any = None,
        n_jobs: int | None = None,
        refit: Any = True,
        cv: Any = None,
        verbose: int = 0,
        error_score: Any = np.nan,
        return_train_score: bool = False,
        prune_margin: float | None = None,
        time_limit: float | None = None,
    ) -> None:
        self._keep_parameters(locals())

    def _run(self, evaluation: Evaluation, splits: list[Split]) -> None:
        evaluation.score(list(ParameterGrid(self.param_grid)), splits)


class RandomizedSearchCV(Search):
    """Search over parameters drawn at random, by cross-validation.

    It is scikit-learn's class of this name: the same candidates for the same ``random_state``, and
    the same results. What fits have in common is done once, as by :class:`GridSearchCV`: a kernel
    that was drawn once has a matrix of its own for all folds, and what is drawn from a list, as
    C may be, shares it.

    Parameters
    ----------
    estimator : estimator
        What to search for, as for :class:`GridSearchCV`.
    param_distributions : dict or list of dict
        Names of parameters, and lists or distributions (with a method ``rvs``) to draw from.
    n_iter : int, default=10
        How many candidates to draw.
    random_state : int, RandomState or None, default=None
        Of the draws.
    scoring, n_jobs, refit, cv, verbose, error_score, return_train_score, prune_margin, time_limit
        As for :class:`GridSearchCV`.

    Attributes
    ----------
    cv_results_, best_estimator_, best_score_, best_params_, best_index_, sharing_, n_pruned_
    scorer_, n_splits_, refit_time_, multimetric_, classes_, n_features_in_, feature_names_in_
        As of :class:`GridSearchCV`.

    Examples
    --------
    >>> from scipy.stats import loguniform
    >>> from sklearn.datasets import load_iris
    >>> from maxmargin import SVC, RandomizedSearchCV
    >>> X, y = load_iris(return_X_y=True)
    >>> drawn = {"C": loguniform(0.1, 100), "gamma": [0.01, 0.1, 1.0]}
    >>> search = RandomizedSearchCV(SVC(), drawn, n_iter=8, random_state=0).fit(X, y)
    >>> len(search.cv_results_["params"]), round(float(search.best_score_), 2)
    (8, 0.99)
    """

    _parameter_constraints: dict = {
        **Search._parameter_constraints,
        "param_distributions": [dict, list],
        "n_iter": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        estimator: Any,
        param_distributions: Any,
        *,
        n_iter: int = 10,
        scoring: Any = None,
        n_jobs: int | None = None,
        refit: Any = True,
        cv: Any = None,
        verbose: int = 0,
        random_state: Any = None,
        error_score: Any = np.nan,
        return_train_score: bool = False,
        prune_margin: float | None = None,
        time_limit: float | None = None,
    ) -> None:
        self._keep_parameters(locals())

    def _run(self, evaluation: Evaluation, splits: list[Split]) -> None:
        drawn = ParameterSampler(
            self.param_distributions, self.n_iter, random_state=self.random_state
        )
        evaluation.score(list(drawn), splits)
