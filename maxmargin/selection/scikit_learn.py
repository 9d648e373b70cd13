"""What the searches take from inside scikit-learn, in one room.

Scores, failed fits and ``cv_results_`` are made by the functions that scikit-learn's own searches
use, so that they are the same to the last column and warning in whichever version is installed.
These functions are private there; when one changes, this is the only file to look at.
"""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.model_selection import GridSearchCV
from sklearn.model_selection._search import _search_estimator_has
from sklearn.model_selection._validation import (
    _fit_and_score,
    _insert_error_scores,
    _score,
    _warn_or_raise_about_fit_failures,
)
from sklearn.utils.metaestimators import _safe_split
from sklearn.utils.validation import _check_method_params, _num_samples

from maxmargin.selection.held_out import FAILED, Claim


def best_estimator_has(name: str) -> Any:
    """Return a function that raises AttributeError where a search has no such method, and why."""
    return _search_estimator_has(name)


class Manners:
    """Scores, failures and tables of one search, as scikit-learn's own would have them.

    Parameters
    ----------
    search : sklearn.model_selection.GridSearchCV
        The same search as scikit-learn's own.
    X, y : data
    params : dict
        Parameters given to ``fit``; those of the estimator's ``fit``, of the scorers and of the
        splitter are told apart here.
    """

    def __init__(self, search: GridSearchCV, X: Any, y: Any, params: dict) -> None:
        self.search, self.X, self.y = search, X, y
        self.train_too = search.return_train_score
        self.scorers, self.refit_metric = search._get_scorers()
        routed = search._get_routed_params_for_fit(_check_method_params(X, params=params))
        self.fit_params, self.score_params = routed.estimator.fit, routed.scorer.score
        self.split_params = routed.splitter.split

    @property
    def named_scorers(self) -> Any:
        """The scorers by their names, if there are several."""
        return getattr(self.scorers, "_scorers", self.scorers)

    @property
    def ask_for_probabilities(self) -> bool:
        """Whether scikit-learn's scorers want them; of a plain function it is not known."""
        scorers = self.named_scorers
        several = scorers.values() if isinstance(scorers, dict) else [scorers]
        methods = [getattr(scorer, "_response_method", "") for scorer in several]
        first = [method if isinstance(method, str) else method[0] for method in methods if method]
        return any("proba" in method for method in first)

    def fitted_and_scored(self, estimator: Any, params: dict, train: Any, test: Any) -> dict:
        """Fit a candidate to one split and score it; ``"claim"`` is what is proven of the fit."""
        result = _fit_and_score(
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
            return_train_score=self.train_too,
            return_n_test_samples=True,
            return_times=True,
            return_estimator=True,
            error_score=self.search.error_score,
        )
        fitted = result.pop("estimator")
        failed = result["fit_error"] is not None
        return {**result, "claim": FAILED if failed else Claim.of_fitted(fitted)}

    def transformed(self, steps: Any, train: Any, test: Any) -> tuple[Transformers, str | None]:
        """Fit transformers to one split; returns them and, where they fail, what they raised."""
        made = Transformers(steps)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Scoring failed", UserWarning)
            result = _fit_and_score(
                made,
                self.X,
                self.y,
                scorer=Transformers.score,
                train=train,
                test=test,
                verbose=0,
                parameters=None,
                fit_params=None,
                score_params=None,
                error_score=np.nan,
            )
        if result["fit_error"] is not None:
            return made, result["fit_error"].strip().splitlines()[-1]
        return made, None if hasattr(made, "test_") else "they do not take the rows held out."

    def side(self, estimator: Any, rows: Any, train: Any) -> tuple[Any, Any]:
        """X and y of one side of a split; a square matrix is cut on both of its sides."""
        return _safe_split(estimator, self.X, self.y, rows, train)

    def fit_params_on(self, rows: Any) -> dict:
        """Parameters of a fit to some of the rows."""
        return _check_method_params(self.X, params=self.fit_params, indices=rows)

    def scored(self, machine: Any, fit_time: float, sides: dict[str, tuple]) -> dict:
        """Score what is known of a machine; ``sides`` are names, and X, y and row numbers."""
        result: dict[str, Any] = {"fit_error": None, "fit_time": fit_time}
        began = time.time()
        for name, (X, y, rows) in sides.items():
            params = _check_method_params(self.X, params=self.score_params, indices=rows)
            result[name] = _score(machine, X, y, self.scorers, params, self.search.error_score)
            result.setdefault("score_time", time.time() - began)
        result["n_test_samples"] = _num_samples(sides["test_scores"][0])
        return result

    def judge_failures(self, results: list[dict]) -> None:
        """Warn of fits that failed, or raise if all did; give them the names of the scores."""
        _warn_or_raise_about_fit_failures(results, self.search.error_score)
        if callable(self.search.scoring):
            _insert_error_scores(results, self.search.error_score)

    def table(self, candidates: list, n_splits: int, results: list, columns: dict) -> dict:
        """Return ``cv_results_``."""
        return self.search._format_results(candidates, n_splits, results, columns)

    def check_refit(self, scores: dict) -> None:
        """Refuse a ``refit`` that does not name one of several scores."""
        self.search._check_refit_for_multimetric(scores)
        self.refit_metric = self.search.refit

    def best_index(self, results: dict) -> int:
        """Return the number of the best candidate, or the one that ``refit`` chooses."""
        search = self.search
        return int(search._select_best_index(search.refit, self.refit_metric, results))


class Transformers(BaseEstimator):
    """The transformers of a pipeline as an estimator of their own, fitted once on each split.

    They are anyone's code and may raise anything. scikit-learn's ``error_score`` says what becomes
    of that, so scikit-learn fits them, as it would fit the pipeline. ``steps_`` are then the fitted
    ones, ``train_`` and ``test_`` what they make of the two sides of the split.
    """

    def __init__(self, steps: Any) -> None:
        self.steps = steps

    def fit(self, X: Any, y: Any = None) -> Transformers:
        """Fit the transformers, and keep what they make of the training rows."""
        self.steps_ = clone(self.steps)
        self.train_ = self.steps_.fit_transform(X, y)
        return self

    def score(self, X: Any, y: Any = None) -> float:
        """Keep what they make of the rows held out; there is nothing to score yet."""
        self.test_ = self.steps_.transform(X)
        return 0.0
