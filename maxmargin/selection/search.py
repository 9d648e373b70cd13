"""Searches over all values of a grid, or over values drawn at random."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from sklearn.model_selection import ParameterGrid, ParameterSampler
from sklearn.utils._param_validation import Interval

from maxmargin.selection.base import Search
from maxmargin.selection.evaluation import Evaluation, Split


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

    Fits inside carry no certificate; that of the best parameters to all of the data does.

    With ``tol`` of 1e-4 and more the kernel values inside are float32, as in LIBSVM, and where
    their rounding could be seen in the decisions the fit is repeated in float64. A search with a
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

    _parameter_constraints: dict = {
        **Search._parameter_constraints,
        "param_grid": [dict, list],
    }

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
        self.estimator = estimator
        self.param_grid = param_grid
        self.scoring = scoring
        self.n_jobs = n_jobs
        self.refit = refit
        self.cv = cv
        self.verbose = verbose
        self.error_score = error_score
        self.return_train_score = return_train_score
        self.prune_margin = prune_margin
        self.time_limit = time_limit

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
    scoring : str, callable, list, tuple, dict or None, default=None
    n_jobs : int, optional
    refit : bool, str or callable, default=True
    cv : int, splitter, iterable or None, default=None
    verbose : int, default=0
        As for :class:`GridSearchCV`.
    random_state : int, RandomState or None, default=None
        Of the draws.
    error_score : "raise" or number, default=nan
    return_train_score : bool, default=False
    prune_margin : float, optional
    time_limit : float, optional
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
        self.estimator = estimator
        self.param_distributions = param_distributions
        self.n_iter = n_iter
        self.scoring = scoring
        self.n_jobs = n_jobs
        self.refit = refit
        self.cv = cv
        self.verbose = verbose
        self.random_state = random_state
        self.error_score = error_score
        self.return_train_score = return_train_score
        self.prune_margin = prune_margin
        self.time_limit = time_limit

    def _run(self, evaluation: Evaluation, splits: list[Split]) -> None:
        drawn = ParameterSampler(
            self.param_distributions, self.n_iter, random_state=self.random_state
        )
        evaluation.score(list(drawn), splits)
