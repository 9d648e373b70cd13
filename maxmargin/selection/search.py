"""Grid search for kernel machines, whose fits share what they have in common."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from functools import wraps
from inspect import signature
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import _fit_context, clone, is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, ParameterGrid, check_cv
from sklearn.model_selection._validation import (
    _fit_and_score,
    _insert_error_scores,
    _score,
    _warn_or_raise_about_fit_failures,
)
from sklearn.pipeline import Pipeline
from sklearn.utils import indexable
from sklearn.utils._param_validation import HasMethods, Interval
from sklearn.utils._tags import get_tags
from sklearn.utils.metaestimators import _safe_split
from sklearn.utils.validation import _check_method_params, _num_samples, check_is_fitted

from maxmargin.backends import cpu
from maxmargin.backends.data import refuse_corrupt
from maxmargin.backends.threads import StoppedError, Workers, thread_count
from maxmargin.estimators.parameters import POSITIVE
from maxmargin.kernels import Input, Kernel
from maxmargin.progress import Monitor
from maxmargin.selection.held_out import HeldOut
from maxmargin.selection.sharing import Candidate, Fits, Outcome
from maxmargin.svm import SVC, SVR

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_DEFAULT_C = 10.0 ** np.arange(-1, 4)
_DEFAULT_GAMMA = 4.0 ** np.arange(-3, 4)  # times 1 / (n_features * variance)


def _in_either_order(init: Any) -> Any:
    """Let a search be called as ``GridSearchCV`` is, estimator first, or with the grid first.

    The signature, from which scikit-learn takes the names of the parameters, stays as it is.
    """
    names = signature(init)

    @wraps(init)
    def made(self: Any, *args: Any, **options: Any) -> None:
        try:
            if args and isinstance(args[0], dict | list):
                if "param_grid" in options:
                    raise TypeError("got two values for param_grid")
                args, options = args[1:], {"param_grid": args[0], **options}
            given = names.bind(self, *args, **options)
        except TypeError as error:
            name = type(self).__name__
            raise TypeError(
                f"{name}(estimator, param_grid, ...) or {name}(param_grid, ...): {error}. All "
                "other parameters go by their names."
            ) from None
        init(*given.args, **given.kwargs)

    return made


_OF_MACHINES = ("predict", "decision_function", "predict_proba", "predict_log_proba")


class KernelSearchCV(GridSearchCV):
    """What the searches share; see :class:`SVCSearchCV`."""

    _machine: type
    _parameter_constraints: dict = {
        **{
            name: constraint
            for name, constraint in GridSearchCV._parameter_constraints.items()
            if name != "pre_dispatch"
        },
        "estimator": [HasMethods(["fit"]), None],
        "param_grid": [dict, list, None],
        "drop_hopeless": [Interval(Real, 0.0, None, closed="left"), None],
        "time_limit": [POSITIVE, None],
    }

    @_in_either_order
    def __init__(
        self,
        estimator: Any = None,
        param_grid: Any = None,
        *,
        cv: Any = 5,
        scoring: Any = None,
        refit: Any = True,
        n_jobs: int | None = None,
        verbose: int = 0,
        error_score: Any = np.nan,
        return_train_score: bool = False,
        drop_hopeless: float | None = None,
        time_limit: float | None = None,
    ) -> None:
        self.estimator = estimator
        self.param_grid = param_grid
        self.cv = cv
        self.scoring = scoring
        self.refit = refit
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.error_score = error_score
        self.return_train_score = return_train_score
        self.drop_hopeless = drop_hopeless
        self.time_limit = time_limit

    def _as_grid_search(self, param_grid: Any = None) -> GridSearchCV:
        """Return the same search as scikit-learn's own, its defaults filled in."""
        return GridSearchCV(
            self._machine() if self.estimator is None else self.estimator,
            {} if param_grid is None else param_grid,
            scoring=self.scoring,
            refit=self.refit,
            cv=self.cv,
            error_score=self.error_score,
            return_train_score=self.return_train_score,
        )

    def __getattr__(self, name: str) -> Any:
        """Have the methods of the default machine before a fit, too; they say what is missing.

        scikit-learn looks for them at ``estimator``, which is None here by default.
        """
        if name in _OF_MACHINES and self.estimator is None and self.refit and not self._fitted:
            getattr(self._machine(), name)
            return lambda X: check_is_fitted(self)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    @property
    def _fitted(self) -> bool:
        return "best_estimator_" in vars(self)

    def __sklearn_tags__(self) -> Any:
        return self._as_grid_search().__sklearn_tags__()

    def get_metadata_routing(self) -> Any:
        """Return scikit-learn's routing of metadata, that of ``GridSearchCV``."""
        return self._as_grid_search().get_metadata_routing()

    @_fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: Any, y: Any = None, **params: Any) -> KernelSearchCV:
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
        estimator = clone(self._as_grid_search().estimator)
        self._check_estimator(estimator)
        refuse_corrupt(X)
        X, y = indexable(X, y)
        self.param_grid_ = self._grid(estimator, X, y)
        search = self._as_grid_search(self.param_grid_)
        scorers, refit_metric = search._get_scorers()
        params = _check_method_params(X, params=params)
        routed = search._get_routed_params_for_fit(params)
        cv = check_cv(self.cv, y, classifier=is_classifier(estimator))
        splits = [
            (_as_rows(train), _as_rows(test))
            for train, test in cv.split(X, y, **routed.splitter.split)
        ]
        self.n_splits_ = cv.get_n_splits(X, y, **routed.splitter.split)
        if len(splits) != self.n_splits_:
            raise ValueError(
                "cv.split and cv.get_n_splits return inconsistent results. Expected "
                f"{self.n_splits_} splits, got {len(splits)}"
            )
        candidates = list(ParameterGrid(self.param_grid_))
        if not splits or not candidates:
            raise ValueError(
                "No fits were performed. Was the CV iterator empty? Were there no candidates?"
            )
        if self.verbose > 0:
            print(
                f"Fitting {len(splits)} folds for each of {len(candidates)} candidates, "
                f"totalling {len(splits) * len(candidates)} fits"
            )
        evaluation = _Evaluation(self, estimator, X, y, splits, candidates, scorers, routed)
        interrupted = False
        try:
            evaluation.run()
        except StoppedError:
            pass  # the time limit: what there is by now is kept
        except KeyboardInterrupt:
            interrupted = True
        if not evaluation.found:
            raise KeyboardInterrupt if interrupted else self._too_late()
        self.n_dropped_ = evaluation.n_dropped
        out = evaluation.results()
        _warn_or_raise_about_fit_failures(out, self.error_score)
        if callable(self.scoring):
            _insert_error_scores(out, self.error_score)
        complete = evaluation.n_complete
        with warnings.catch_warnings():
            if complete < len(candidates):  # their means are nan, and mean to be
                warnings.filterwarnings("ignore", "One or more of the (test|train) scores are non")
            results = search._format_results(candidates, self.n_splits_, out)
        self.multimetric_ = isinstance(out[0]["test_scores"], dict)
        self.scorer_ = getattr(scorers, "_scorers", scorers)
        self.cv_results_ = results
        if interrupted:
            for name in ("best_index_", "best_score_", "best_params_", "best_estimator_"):
                self.__dict__.pop(name, None)  # of an earlier fit
            raise KeyboardInterrupt(
                f"stopped by Ctrl-C; cv_results_ holds the scores of {complete} candidates on all "
                "splits, and nan for what is missing"
            )
        if evaluation.n_missing:
            self._warn_late(evaluation.n_missing, complete, len(candidates))
        if callable(self.scoring) and self.multimetric_:
            search._check_refit_for_multimetric(out[0]["test_scores"])
            refit_metric = self.refit
        if self.refit or not self.multimetric_:
            self.best_index_ = search._select_best_index(self.refit, refit_metric, results)
            if not callable(self.refit):
                self.best_score_ = results[f"mean_test_{refit_metric}"][self.best_index_]
            self.best_params_ = results["params"][self.best_index_]
        if self.refit:
            self._refit(estimator, X, y, routed.estimator.fit)
        return self

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
            stacklevel=4,
        )

    def _refit(self, estimator: Any, X: Any, y: Any, params: dict) -> None:
        best = clone(self.best_params_, safe=False)
        self.best_estimator_ = clone(estimator).set_params(**best)
        began = time.time()
        self.best_estimator_.fit(X, y, **params)
        self.refit_time_ = time.time() - began
        if hasattr(self.best_estimator_, "feature_names_in_"):
            self.feature_names_in_ = self.best_estimator_.feature_names_in_

    def _check_estimator(self, estimator: Any) -> None:
        if not isinstance(_last_step(estimator), self._machine):
            name = self._machine.__name__
            raise TypeError(
                f"{type(self).__name__} searches for an {name} of maxmargin or a Pipeline that "
                f"ends in one; got {estimator!r}. For other estimators use scikit-learn's "
                "GridSearchCV."
            )

    def _grid(self, estimator: Any, X: Any, y: Any) -> Any:
        """Return the grid that was given, or else C by factors of 10 and gamma of 4."""
        if self.param_grid is not None:
            return self.param_grid
        machine = _last_step(estimator)
        prefix = f"{estimator.steps[-1][0]}__" if isinstance(estimator, Pipeline) else ""
        grid = {f"{prefix}C": _DEFAULT_C.tolist()}
        kernel = machine._validated_kernel()
        if kernel.input is Input.VECTORS and "gamma" in kernel.get_params():
            if prefix and len(estimator) > 1:
                X = clone(estimator[:-1]).fit_transform(X, y)
            X, _ = clone(machine)._validated(X, y, kernel)
            unit = 1.0 / (X.shape[1] * (cpu.variance(X) or 1.0))
            inside = "kernel__" if isinstance(machine.kernel, Kernel) else ""
            grid[f"{prefix}{inside}gamma"] = (unit * _DEFAULT_GAMMA).tolist()
        return grid

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the mean test score over the grid; see :func:`maxmargin.plotting.plot_search`."""
        from maxmargin.plotting import plot_search

        return plot_search(self, ax)


class SVCSearchCV(KernelSearchCV):
    """Exhaustive search over the parameters of an :class:`~maxmargin.SVC`, by cross-validation.

    The results are those of scikit-learn's ``GridSearchCV(SVC(), param_grid)``; what the fits have
    in common is done once. Squared distances (or whatever the kernels are made of) are computed
    once for all gammas, one kernel matrix serves all folds, classes and C, each C begins from the
    solution for the last, and folds run in parallel threads. Fits inside carry no certificate; that
    of the best parameters to all of the data does.

    With ``tol`` of 1e-4 and more the kernel values inside are float32, as in LIBSVM, and where
    their rounding could be seen in the decisions the fit is repeated in float64. A search with a
    smaller ``tol`` is in float64 throughout. Where the kernel matrix does not fit ``cache_size`` of
    the estimator, rows are computed as they are needed. Probabilities that scikit-learn's scorers
    ask for, as ``"neg_log_loss"`` does, come from the same kernel matrix. Whatever cannot be shared
    (``max_iter`` and ``time_limit`` of the estimator, the hard margin, indefinite kernels) is
    fitted one by one. The estimator's own ``n_jobs``, ``verbose`` and ``warm_start`` are for such
    fits and for the last one, to all of the data; what is shared has ``n_jobs`` of the search.

    Ctrl-C ends the search: ``cv_results_`` has what was scored until then, there is no best
    estimator, and KeyboardInterrupt goes on to the caller.

    Parameters
    ----------
    estimator : SVC or Pipeline that ends in one, optional
        What to search for; by default ``SVC()``. Transformers are fitted to the training rows of
        each fold. May be left out: a grid may come first.
    param_grid : dict or list of dict, optional
        Names of parameters and the values to try, as for ``GridSearchCV``: ``C``, ``gamma``,
        ``kernel__gamma``, ``svc__C`` in a pipeline. By default C from 0.1 to 1000 by factors of 10
        and, if the kernel has a gamma, this from 1/64 to 64 times ``1 / (n_features * X.var())`` by
        factors of 4, with X as the pipeline's transformers leave it.
    cv : int, splitter or iterable, default=5
    scoring : str, callable, list, tuple, dict or None, default=None
    refit : bool, str or callable, default=True
        As for ``GridSearchCV``.
    n_jobs : int, optional
        Threads: -1 for one per core; by default as many as BLAS may use.
    verbose : int, default=0
        As for ``GridSearchCV``: with 1 how many fits there are, with 2 a line for each with its
        time, with 3 its scores too.
    error_score : "raise" or number, default=nan
    return_train_score : bool, default=False
        As for ``GridSearchCV``.
    drop_hopeless : float, optional
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
        As of ``GridSearchCV``. A fit's time is that of its own solution, without what is shared.
    best_estimator_, best_score_, best_params_, best_index_
        As of ``GridSearchCV``; ``best_estimator_`` has its ``certificate_``.
    param_grid_ : dict or list of dict
        The grid that was searched.
    n_dropped_ : int
        Candidates that were dropped.
    scorer_, n_splits_, refit_time_, multimetric_, classes_, n_features_in_, feature_names_in_
        As of ``GridSearchCV``.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from maxmargin import SVC, SVCSearchCV
    >>> X, y = load_iris(return_X_y=True)
    >>> search = SVCSearchCV({"C": [0.1, 1, 10], "gamma": [0.01, 0.1, 1]}).fit(X, y)
    >>> search.best_params_, round(float(search.best_score_), 3)
    ({'C': 1, 'gamma': 0.1}, 0.98)
    >>> search.best_estimator_.certificate_.converged
    True
    >>> scaled = make_pipeline(StandardScaler(), SVC())
    >>> search = SVCSearchCV(scaled, {"svc__C": [0.1, 1, 10]}).fit(X, y)
    >>> search.cv_results_["mean_test_score"].round(3)
    array([0.92 , 0.967, 0.973])
    """

    _machine = SVC


class SVRSearchCV(KernelSearchCV):
    """Exhaustive search over the parameters of an :class:`~maxmargin.SVR`, by cross-validation.

    Everything is as for :class:`SVCSearchCV`, with targets in place of labels; the path is one of C
    for each ``epsilon``.

    Parameters
    ----------
    estimator : SVR or Pipeline that ends in one, optional
        What to search for; by default ``SVR()``.
    param_grid : dict or list of dict, optional
    cv : int, splitter or iterable, default=5
    scoring : str, callable, list, tuple, dict or None, default=None
    refit : bool, str or callable, default=True
    n_jobs : int, optional
    verbose : int, default=0
    error_score : "raise" or number, default=nan
    return_train_score : bool, default=False
    drop_hopeless : float, optional
    time_limit : float, optional
        As for :class:`SVCSearchCV`.

    Attributes
    ----------
    cv_results_, best_estimator_, best_score_, best_params_, best_index_, param_grid_, n_dropped_
        As of :class:`SVCSearchCV`.
    scorer_, n_splits_, refit_time_, multimetric_, n_features_in_, feature_names_in_
        As of ``GridSearchCV``.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin import SVRSearchCV
    >>> X = np.linspace(0, 6, 60)[:, None]
    >>> grid = {"C": [0.1, 1, 10], "epsilon": [0.01, 0.1], "gamma": [0.1, 1]}
    >>> search = SVRSearchCV(grid, scoring="neg_mean_absolute_error")
    >>> search.fit(X, np.sin(X[:, 0])).best_params_
    {'C': 10, 'epsilon': 0.01, 'gamma': 1}
    """

    _machine = SVR


class _Evaluation:
    """The scores of all candidates on all splits: by sharing where possible, else by fitting."""

    def __init__(
        self,
        search: KernelSearchCV,
        estimator: Any,
        X: Any,
        y: Any,
        splits: list,
        candidates: list[dict],
        scorers: Any,
        routed: Any,
    ) -> None:
        self.search, self.estimator, self.X, self.y = search, estimator, X, y
        self.splits, self.candidates, self.scorers = splits, candidates, scorers
        self.fit_params, self.score_params = routed.estimator.fit, routed.scorer.score
        self.found: dict[tuple[int, int], dict] = {}
        self.n_dropped = self.n_missing = 0
        self.monitor = Monitor(search.time_limit)

    def run(self) -> None:
        """Find the results of all candidates on all splits, until someone wants it to end."""
        numbers, splits = list(range(len(self.candidates))), list(range(len(self.splits)))
        margin, first = self.search.drop_hopeless, 2
        if margin is None or len(splits) <= first:
            self._evaluate(numbers, splits)
            return
        self._evaluate(numbers, splits[:first])
        hopeless = self._hopeless(splits[:first], margin)
        self._evaluate([k for k in numbers if k not in hopeless], splits[first:])
        for k in hopeless:
            for split in splits[first:]:
                self.found[k, split] = _without_scores(self.found[k, 0])
        self.n_dropped = len(hopeless)

    def results(self) -> list[dict]:
        """Return one result per candidate and split, as ``GridSearchCV`` makes them.

        What was not found has nan for its scores.
        """
        places = [(k, s) for k in range(len(self.candidates)) for s in range(len(self.splits))]
        self.n_missing = len(places) - len(self.found)
        nothing = _without_scores(next(iter(self.found.values())))
        return [self.found.get(place, nothing) for place in places]

    @property
    def n_complete(self) -> int:
        """Number of candidates that were scored on all splits."""
        splits = range(len(self.splits))
        whole = [all((k, s) in self.found for s in splits) for k in range(len(self.candidates))]
        return sum(whole) - self.n_dropped

    def _keep(self, k: int, split: int, result: dict) -> None:
        """Keep a result, and tell of it as ``GridSearchCV`` does."""
        self.found[k, split] = result
        if self.search.verbose > 1:
            print(_told(self.candidates[k], split, len(self.splits), result, self.search.verbose))

    def _hopeless(self, splits: list[int], margin: float) -> list[int]:
        """Return the candidates that are behind by more than this on each of the splits."""
        results = [
            [self.found[k, s]["test_scores"] for s in splits] for k in range(len(self.candidates))
        ]
        if isinstance(results[0][0], dict):
            metric = self.search.refit
            if not isinstance(metric, str):
                raise ValueError(
                    "drop_hopeless compares one score: with several, name it by refit, as in "
                    'refit="roc_auc".'
                )
            results = [[scores[metric] for scores in row] for row in results]
        scores = np.array(results, dtype=np.float64)
        means = scores.mean(axis=1)
        if np.isnan(means).all():
            return []
        behind = scores[np.nanargmax(means)] - scores
        return np.flatnonzero((behind > margin).all(axis=1)).tolist()

    def _evaluate(self, numbers: list[int], splits: list[int]) -> None:
        """Find the results of some candidates on some splits."""
        parts = {split: _Part(self.X, self.y, *self.splits[split]) for split in splits}
        weight_name, last = "sample_weight", None
        if isinstance(self.estimator, Pipeline):
            last = self.estimator.steps[-1][0]
            weight_name = f"{last}__sample_weight"
        if not self.fit_params.keys() - {weight_name}:
            candidates = [self._candidate(k, last) for k in numbers]
            fits = Fits(
                self.X,
                self.y,
                [(split, *self.splits[split]) for split in splits],
                self.fit_params.get(weight_name),
                self.search.return_train_score,
                _ask_for_probabilities(self.scorers),
                Workers(thread_count(self.search.n_jobs), self.monitor.stopped),
                self.monitor,
            )
            by_number = {candidate.number: candidate for candidate in candidates}
            outcomes = fits.outcomes(candidates, self.search._machine)
            while (outcome := self._next(outcomes)) is not None:
                candidate, part = by_number[outcome.candidate], parts[outcome.split]
                self._keep(candidate.number, outcome.split, self._scored(candidate, outcome, part))
        for k in numbers:
            for split in splits:
                if (k, split) not in self.found:
                    self._keep(k, split, self._fitted(self.candidates[k], *self.splits[split]))

    def _next(self, outcomes: Iterator[Outcome]) -> Outcome | None:
        """Work until there is another outcome; Ctrl-C ends that at the next good place."""
        if self.monitor.stopped():
            raise StoppedError
        with self.monitor.catching_interrupts():
            return next(outcomes, None)

    def _candidate(self, number: int, last: str | None) -> Candidate:
        params = self.candidates[number]
        estimator = clone(self.estimator).set_params(**clone(params, safe=False))
        own = "" if last is None else f"{last}__"
        around = {name: value for name, value in params.items() if not name.startswith(own)}
        return Candidate(number, estimator, around)

    def _scored(self, candidate: Candidate, outcome: Outcome, part: _Part) -> dict:
        """Score what is known of a machine."""
        pairwise = get_tags(candidate.estimator).input_tags.pairwise
        sides = [("test_scores", part.test, outcome.test)]
        if outcome.train is not None:
            sides.append(("train_scores", part.train, outcome.train))
        rows = {name: part.of(candidate.estimator, which, pairwise) for name, which, _ in sides}

        def fit() -> Any:
            X, y = part.of(candidate.estimator, part.train, pairwise)
            params = _check_method_params(self.X, params=self.fit_params, indices=part.train)
            return clone(candidate.estimator).fit(X, y, **params)

        known = [(rows[name][0], values) for name, _, values in sides]
        machine = HeldOut(
            candidate.estimator,
            candidate.machine,
            outcome.classes,
            known,
            outcome.sigmoids,
            fit,
        )
        result: dict[str, Any] = {"fit_error": None, "fit_time": outcome.seconds}
        began = time.time()
        for name, which, _ in sides:
            params = _check_method_params(self.X, params=self.score_params, indices=which)
            error_score = self.search.error_score
            result[name] = _score(machine, *rows[name], self.scorers, params, error_score)
            result.setdefault("score_time", time.time() - began)
        result["n_test_samples"] = _num_samples(rows["test_scores"][0])
        return result

    def _fitted(self, params: dict, train: np.ndarray, test: np.ndarray) -> dict:
        """Fit and score as ``GridSearchCV`` does, in the time that is left."""
        estimator, limit = clone(self.estimator), self.search.time_limit
        if limit is None:
            return self._fit_and_score(estimator, params, train, test)
        if self.monitor.stopped():
            raise StoppedError
        machine = _last_step(estimator)
        machine.time_limit = min(limit - self.monitor.seconds, machine.time_limit or np.inf)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            result = self._fit_and_score(estimator, params, train, test)
        if self.monitor.stopped():
            raise StoppedError  # and nobody is warned of a fit that does not count
        for warning in caught:
            warnings.warn_explicit(
                warning.message, warning.category, warning.filename, warning.lineno
            )
        return result

    def _fit_and_score(
        self, estimator: Any, params: dict, train: np.ndarray, test: np.ndarray
    ) -> dict:
        return _fit_and_score(
            estimator,
            self.X,
            self.y,
            scorer=self.scorers,
            train=train,
            test=test,
            verbose=0,
            parameters=params,
            fit_params=self.fit_params,
            score_params=self.score_params,
            return_train_score=self.search.return_train_score,
            return_n_test_samples=True,
            return_times=True,
            error_score=self.search.error_score,
        )


class _Part:
    """One split of the data, its sides cut out once for all candidates."""

    def __init__(self, X: Any, y: Any, train: np.ndarray, test: np.ndarray) -> None:
        self.X, self.y, self.train, self.test = X, y, train, test
        self._cut: dict[tuple[bool, bool], tuple[Any, Any]] = {}

    def of(self, estimator: Any, rows: np.ndarray, pairwise: bool) -> tuple[Any, Any]:
        """Return X and y of one of the sides, always the same objects."""
        key = rows is self.train, pairwise
        if key not in self._cut:
            self._cut[key] = _safe_split(estimator, self.X, self.y, rows, self.train)
        return self._cut[key]


def _ask_for_probabilities(scorers: Any) -> bool:
    """Whether scikit-learn's scorers want probabilities; of a plain function it is not known."""
    several = getattr(scorers, "_scorers", {"score": scorers}).values()
    methods = [getattr(scorer, "_response_method", "") for scorer in several]
    first = [method if isinstance(method, str) else method[0] for method in methods if method]
    return any("proba" in method for method in first)


def _told(params: dict, split: int, n_splits: int, result: dict, verbose: int) -> str:
    """Return the line that ``GridSearchCV`` has for a fit: its time, from 3 on its scores too."""
    said = ", ".join(f"{name}={params[name]}" for name in sorted(params))
    said += ";" if said else ""
    if verbose > 2:
        scores = result["test_scores"]
        if isinstance(scores, dict):
            said += "".join(f" {name}: (test={scores[name]:.3f})" for name in sorted(scores))
        else:
            said += f", score={scores:.3f}"
    said += f" total time={result['fit_time'] + result['score_time']:6.1f}s"
    begin = f"[CV {split + 1}/{n_splits}] END " if verbose > 2 else "[CV] END "
    return begin + "." * (80 - len(begin) - len(said)) + said


def _as_rows(side: Any) -> np.ndarray:
    """Return one side of a split as row numbers; a mask is one too."""
    side = np.asarray(side)
    return np.flatnonzero(side) if side.dtype == bool else side


def _last_step(estimator: Any) -> Any:
    return estimator.steps[-1][1] if isinstance(estimator, Pipeline) else estimator


def _without_scores(result: dict) -> dict:
    """Return a result that looks like another one, with nan for its scores."""

    def emptied(scores: Any) -> Any:
        return dict.fromkeys(scores, np.nan) if isinstance(scores, dict) else np.nan

    emptied_scores = {
        name: emptied(scores) for name, scores in result.items() if name.endswith("_scores")
    }
    return {**result, "fit_time": 0.0, "score_time": 0.0, **emptied_scores}
