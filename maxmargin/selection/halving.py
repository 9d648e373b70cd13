"""Successive halving: all candidates on few rows, the best part of them on more, and so on.

    round i     the n / factor^i best candidates, on factor^i times as many rows as in the first

until fewer than ``factor`` candidates are left, or all rows are used. Every round is a search like
any other, whose fits share what they have in common.

Reference: Karnin, Koren and Somekh, Almost optimal exploration in multi-armed bandits, ICML 2013;
the numbers of rows and candidates are those of scikit-learn.
"""

from __future__ import annotations

from abc import abstractmethod
from math import ceil, floor, log
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.model_selection import ParameterGrid, ParameterSampler
from sklearn.utils import resample
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _num_samples

from maxmargin.selection.evaluation import Evaluation
from maxmargin.selection.scikit_learn import Manners
from maxmargin.selection.scoring import Place, Split
from maxmargin.selection.search import Search

_ROWS_OF_A_CLASS = 2  # on each split of the smallest first round


class Halving(Search):
    """Base of the searches by successive halving."""

    min_resources_: int
    prune_margin = None  # halving has its own way to drop candidates

    _parameter_constraints: dict = {
        **{k: v for k, v in Search._parameter_constraints.items() if k != "prune_margin"},
        "scoring": [str, callable, None],
        "random_state": ["random_state"],
        "max_resources": [Interval(Integral, 0, None, closed="neither"), StrOptions({"auto"})],
        "min_resources": [
            Interval(Integral, 0, None, closed="neither"),
            StrOptions({"exhaust", "smallest"}),
        ],
        "resource": [str],
        "factor": [Interval(Real, 1, None, closed="neither")],
        "aggressive_elimination": ["boolean"],
    }

    @abstractmethod
    def _first_candidates(self) -> list[dict]:
        """Return the candidates of the first round."""

    def _search(self, X: Any, y: Any, params: dict, place: Place) -> Search:
        if _num_samples(X) == 0:
            raise ValueError("min_resources_=0: you might have passed an empty dataset X.")
        return super()._search(X, y, params, place)

    def _run(self, evaluation: Evaluation, splits: list[Split]) -> None:
        n_samples = _num_samples(evaluation.manners.X)
        self._set_resources(evaluation.estimator, evaluation.manners.y, n_samples)
        candidates = self._first_candidates()
        if any(self.resource in candidate for candidate in candidates):
            raise ValueError(
                f"Cannot use parameter {self.resource} as the resource since it is part of the "
                "searched parameters."
            )
        required = 1 + floor(log(len(candidates), self.factor))
        if self.min_resources == "exhaust":
            most = self.max_resources_ // self.factor ** (required - 1)
            self.min_resources_ = max(self.min_resources_, int(most))
        possible = 1 + floor(log(self.max_resources_ // self.min_resources_, self.factor))
        rounds = required if self.aggressive_elimination else min(possible, required)
        self.n_required_iterations_, self.n_possible_iterations_ = required, possible
        self.n_iterations_, self.n_resources_, self.n_candidates_ = rounds, [], []
        for i in range(rounds):
            power = max(0, i - required + possible) if self.aggressive_elimination else i
            amount = min(int(self.factor**power * self.min_resources_), self.max_resources_)
            self.n_resources_.append(amount)
            self.n_candidates_.append(len(candidates))
            if self.verbose:
                print(f"iter: {i}\nn_candidates: {len(candidates)}\nn_resources: {amount}")
            own = splits
            if self.resource == "n_samples":
                own = [self._part(split, amount / n_samples) for split in splits]
            else:
                candidates = [{**candidate, self.resource: amount} for candidate in candidates]
            results = evaluation.score(candidates, own, iter=i, n_resources=amount)
            candidates = _best(results, i, ceil(len(candidates) / self.factor))
        self.n_remaining_candidates_ = len(candidates)

    def _set_resources(self, estimator: Any, y: Any, n_samples: int) -> None:
        """Say between how much and how much of the resource the rounds are."""
        rows = self.resource == "n_samples"
        if not rows and self.resource not in estimator.get_params():
            raise ValueError(
                f"Cannot use resource={self.resource} which is not supported by estimator "
                f"{type(estimator).__name__}"
            )
        if not rows and self.max_resources == "auto":
            raise ValueError("resource can only be 'n_samples' when max_resources='auto'")
        self.max_resources_ = n_samples if self.max_resources == "auto" else self.max_resources
        self.min_resources_ = self.min_resources
        if isinstance(self.min_resources, str):
            self.min_resources_ = _ROWS_OF_A_CLASS * self.n_splits_ if rows else 1
            if rows and is_classifier(estimator):
                check_classification_targets(y)
                self.min_resources_ *= len(np.unique(y))
        if self.min_resources_ > self.max_resources_:
            raise ValueError(
                f"min_resources_={self.min_resources_} is greater than "
                f"max_resources_={self.max_resources_}."
            )

    def _part(self, split: Split, fraction: float) -> Split:
        """Draw some rows of both sides of a split, as scikit-learn does."""

        def drawn(side: np.ndarray) -> np.ndarray:
            size = int(fraction * len(side))
            return resample(side, replace=False, random_state=self.random_state, n_samples=size)

        return drawn(split[0]), drawn(split[1])

    def _best_index(self, results: dict, manners: Manners) -> int:
        """Return the best of the last round; where time was over, of the last with scores."""
        if callable(self.refit):
            return manners.best_index(results)
        scores, rounds = results["mean_test_score"], results["iter"]
        scored = np.isfinite(scores)
        last = np.flatnonzero(rounds == (rounds[scored] if scored.any() else rounds).max())
        return int(last[0] if not scored[last].any() else last[np.nanargmax(scores[last])])


def _best(results: dict, round_: int, count: int) -> list[dict]:
    """Return so many of the best candidates of a round, the worst first; nan is the worst."""
    places = np.flatnonzero(np.asarray(results["iter"]) == round_)
    scores = results["mean_test_score"][places]
    order = np.roll(np.argsort(scores), np.count_nonzero(np.isnan(scores)))
    return [results["params"][k] for k in places[order[-count:]]]


class HalvingGridSearchCV(Halving):
    """Search over a grid by successive halving: many candidates on few rows, few on many.

    It is scikit-learn's class of this name, with its candidates, rows and results, and no
    experiment to enable. What fits have in common is done once in every round, as by
    :class:`~maxmargin.selection.GridSearchCV`.

    Parameters
    ----------
    estimator : estimator
        What to search for, as for :class:`~maxmargin.selection.GridSearchCV`.
    param_grid : dict or list of dict
        Names of parameters and the values to try.
    factor : float, default=3
        A round keeps one of so many candidates, and gives each so many times as much.
    resource : str, default="n_samples"
        What there is more of from round to round: rows, or a number that is a parameter of the
        estimator.
    max_resources : "auto" or int, default="auto"
        How much there is at most; by default all rows.
    min_resources : "exhaust", "smallest" or int, default="exhaust"
        How much in the first round: so much that the last one has all, or as little as can be.
    aggressive_elimination : bool, default=False
        Repeat the first round, with fewer candidates, where there are too few rows for all rounds.
    cv : int, splitter or iterable, default=5
    scoring : str, callable or None, default=None
    return_train_score : bool, default=True
        As for scikit-learn's.
    random_state : int, RandomState or None, default=None
        Of the rows that are drawn.
    refit, error_score, n_jobs, verbose, time_limit
        As for :class:`~maxmargin.selection.GridSearchCV`.

    Attributes
    ----------
    n_resources_, n_candidates_ : lists of int
        Of each round.
    n_iterations_, n_required_iterations_, n_possible_iterations_, n_remaining_candidates_
    min_resources_, max_resources_
        As of scikit-learn's.
    cv_results_ : dict
        As of scikit-learn's, with ``iter`` and ``n_resources``.
    best_estimator_, best_score_, best_params_, best_index_, sharing_, scorer_, n_splits_
    refit_time_, multimetric_, classes_, n_features_in_, feature_names_in_
        As of :class:`~maxmargin.selection.GridSearchCV`; the best is one of the last round.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from maxmargin import SVC, HalvingGridSearchCV
    >>> X, y = load_digits(return_X_y=True)
    >>> grid = {"C": [0.1, 1, 10], "gamma": [0.0001, 0.001, 0.01]}
    >>> search = HalvingGridSearchCV(SVC(), grid, cv=3, random_state=0).fit(X, y)
    >>> search.n_candidates_, search.n_resources_, search.best_params_["gamma"]
    ([9, 3, 1], [199, 597, 1791], 0.001)
    """

    _parameter_constraints: dict = {**Halving._parameter_constraints, "param_grid": [dict, list]}

    def __init__(
        self,
        estimator: Any,
        param_grid: Any,
        *,
        factor: float = 3,
        resource: str = "n_samples",
        max_resources: Any = "auto",
        min_resources: Any = "exhaust",
        aggressive_elimination: bool = False,
        cv: Any = 5,
        scoring: Any = None,
        refit: Any = True,
        error_score: Any = np.nan,
        return_train_score: bool = True,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        time_limit: float | None = None,
    ) -> None:
        self._keep_parameters(locals())

    def _first_candidates(self) -> list[dict]:
        return list(ParameterGrid(self.param_grid))


class HalvingRandomSearchCV(Halving):
    """Search over parameters drawn at random, by successive halving.

    It is scikit-learn's class of this name, with its candidates, rows and results; what fits have
    in common is done once in every round.

    Parameters
    ----------
    estimator : estimator
        What to search for, as for :class:`~maxmargin.selection.GridSearchCV`.
    param_distributions : dict or list of dict
        Names of parameters, and lists or distributions (with a method ``rvs``) to draw from.
    n_candidates : "exhaust" or int, default="exhaust"
        How many to draw; by default so many that the last round has all rows.
    min_resources : "exhaust", "smallest" or int, default="smallest"
        How much in the first round, as for :class:`HalvingGridSearchCV`.
    random_state : int, RandomState or None, default=None
        Of the draws, and of the rows.
    factor, resource, max_resources, aggressive_elimination, cv, scoring, refit, error_score
    return_train_score, n_jobs, verbose, time_limit
        As for :class:`HalvingGridSearchCV`.

    Attributes
    ----------
    n_resources_, n_candidates_, n_iterations_, n_required_iterations_, n_possible_iterations_
    n_remaining_candidates_, min_resources_, max_resources_, cv_results_, best_estimator_
    best_score_, best_params_, best_index_, sharing_, scorer_, n_splits_, refit_time_
    multimetric_, classes_, n_features_in_, feature_names_in_
        As of :class:`HalvingGridSearchCV`.

    Examples
    --------
    >>> from scipy.stats import loguniform
    >>> from sklearn.datasets import load_iris
    >>> from maxmargin import SVC, HalvingRandomSearchCV
    >>> X, y = load_iris(return_X_y=True)
    >>> drawn = {"C": loguniform(0.1, 100), "gamma": loguniform(0.01, 1)}
    >>> search = HalvingRandomSearchCV(SVC(), drawn, random_state=0).fit(X, y)
    >>> search.n_candidates_, search.n_resources_
    ([5, 2], [30, 90])
    """

    _parameter_constraints: dict = {
        **Halving._parameter_constraints,
        "param_distributions": [dict, list],
        "n_candidates": [Interval(Integral, 0, None, closed="neither"), StrOptions({"exhaust"})],
    }

    def __init__(
        self,
        estimator: Any,
        param_distributions: Any,
        *,
        n_candidates: Any = "exhaust",
        factor: float = 3,
        resource: str = "n_samples",
        max_resources: Any = "auto",
        min_resources: Any = "smallest",
        aggressive_elimination: bool = False,
        cv: Any = 5,
        scoring: Any = None,
        refit: Any = True,
        error_score: Any = np.nan,
        return_train_score: bool = True,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        time_limit: float | None = None,
    ) -> None:
        self._keep_parameters(locals())

    def _first_candidates(self) -> list[dict]:
        if self.min_resources == self.n_candidates == "exhaust":
            raise ValueError("n_candidates and min_resources cannot be both set to 'exhaust'.")
        count = self.n_candidates
        if count == "exhaust":
            count = self.max_resources_ // self.min_resources_
        drawn = ParameterSampler(self.param_distributions, count, random_state=self.random_state)
        return list(drawn)
