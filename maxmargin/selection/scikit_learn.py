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
from sklearn.model_selection import GridSearchCV
from sklearn.model_selection._validation import (
    _fit_and_score,
    _insert_error_scores,
    _score,
    _warn_or_raise_about_fit_failures,
)
from sklearn.utils.metaestimators import _safe_split
from sklearn.utils.validation import _check_method_params, _num_samples

from maxmargin.selection.plan import Candidate
from maxmargin.selection.transforms import Transformers


class Manners:
    """Scores, failures and tables of one search, as scikit-learn's own would have them.

    Parameters
    ----------
    search : sklearn.model_selection.GridSearchCV
        The same search as scikit-learn's own.
    X, y : data
    params : dict
        Parameters given to ``fit``.

    Attributes
    ----------
    scorers : callable
    refit_metric : str
        Name of the score that the best candidate is chosen by.
    fit_params, score_params, split_params : dict
        Parameters of the estimator's ``fit``, of the scorers and of the splitter.
    """

    def __init__(self, search: GridSearchCV, X: Any, y: Any, params: dict) -> None:
        self.search, self.X, self.y = search, X, y
        self.scorers, self.refit_metric = search._get_scorers()
        routed = search._get_routed_params_for_fit(_check_method_params(X, params=params))
        self.fit_params, self.score_params = routed.estimator.fit, routed.scorer.score
        self.split_params = routed.splitter.split
        self._sides: dict[tuple[int, bool, bool], tuple[Any, Any]] = {}

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
        """Fit a candidate to one split and score it."""
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

    def transformed(self, steps: Any, train: Any, test: Any) -> tuple[Transformers, str | None]:
        """Fit transformers to one split; returns them and, where they fail, what they raised."""
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Scoring failed", UserWarning)
            result = _fit_and_score(
                Transformers(steps),
                self.X,
                self.y,
                scorer=Transformers.score,
                train=train,
                test=test,
                verbose=0,
                parameters=None,
                fit_params=None,
                score_params=None,
                return_estimator=True,
                error_score=np.nan,
            )
        if result["fit_error"] is not None:
            return result["estimator"], result["fit_error"].strip().splitlines()[-1]
        if not hasattr(result["estimator"], "test_"):
            return result["estimator"], "they do not take the rows held out."
        return result["estimator"], None

    def side(self, candidate: Candidate, split: int, rows: Any, train: Any) -> tuple[Any, Any]:
        """X and y of one side of a split, always the same objects, cut out once."""
        key = split, rows is train, candidate.pairwise
        if key not in self._sides:
            self._sides[key] = _safe_split(candidate.estimator, self.X, self.y, rows, train)
        return self._sides[key]

    def forget_sides(self) -> None:
        """Begin with other splits."""
        self._sides.clear()

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
