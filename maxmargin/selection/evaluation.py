"""The scores of all candidates of a search: rounds, candidates that are dropped, and the table."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from maxmargin.progress import Monitor
from maxmargin.selection.held_out import FAILED, NOT_FITTED, Claim
from maxmargin.selection.plan import Sharing
from maxmargin.selection.scikit_learn import Manners
from maxmargin.selection.scoring import Place, Scoring, Split, Watch, Work
from maxmargin.solution import Status

if TYPE_CHECKING:
    from maxmargin.selection.search import Search

_SEVERITY = [str(status) for status in Status]  # the best first
_FIRST = 2  # splits on which all candidates are scored before any is pruned


class Evaluation:
    """The scores of all candidates, in one round or in several.

    Candidates are counted over all rounds, as in ``cv_results_``. ``n_pruned`` of them were
    dropped, and ``n_missing`` fits were not made when the work was stopped.
    """

    def __init__(self, search: Search, manners: Manners, estimator: Any, place: Place) -> None:
        self.manners, self.estimator, self.n_splits = manners, estimator, search.n_splits_
        self.verbose, self.prune_margin = search.verbose, search.prune_margin
        self.place, self.sharing = place, Sharing(self.n_splits)
        self.watch = Watch.of(search.n_jobs, Monitor(search.time_limit), self.sharing)
        self.candidates: list[dict] = []
        self.scoring: Scoring | None = None
        self.found: dict[tuple[int, int], dict] = {}
        self.columns: dict[str, list] = {}
        self.results: list[dict] = []
        self.latest: dict = {}  # table of all rounds, if the last one came to its end
        self.n_pruned = self.n_missing = 0

    def score(self, candidates: list[dict], splits: list[Split], **columns: Any) -> dict:
        """Score candidates on splits; returns the table of all rounds so far.

        ``columns`` are values for the table, the same for all these candidates.
        """
        if len(splits) != self.n_splits:
            raise ValueError(
                "cv.split and cv.get_n_splits return inconsistent results. Expected "
                f"{self.n_splits} splits, got {len(splits)}"
            )
        if not splits or not candidates:
            raise ValueError(
                "No fits were performed. Was the CV iterator empty? Were there no candidates?"
            )
        if self.verbose > 0:
            each, fits = f"{len(candidates)} candidates", len(splits) * len(candidates)
            print(f"Fitting {len(splits)} folds for each of {each}, totalling {fits} fits")
        first, self.latest = len(self.candidates), {}
        self.scoring = Scoring(self.manners, self.estimator, splits)
        self.candidates += candidates
        self.sharing.n_candidates = len(self.candidates)
        for name, value in columns.items():
            self.columns.setdefault(name, []).extend([value] * len(candidates))
        self._run(list(range(first, len(self.candidates))))
        self.latest = self.table()
        return self.latest

    def table(self) -> dict:
        """Return ``cv_results_`` so far; what was not found has nan for its scores.

        Fits that failed are warned of when they first come into the table.
        """
        fitted = [result for result in self.found.values() if result["fit_error"] is None]
        nothing = _without_scores((fitted or list(self.found.values()))[0])
        places = [(k, s) for k in range(len(self.candidates)) for s in range(self.n_splits)]
        new = places[len(self.results) :]
        missing = [place for place in new if place not in self.found]
        for place in missing:
            reason = "It was not fitted before the search was stopped."
            self.sharing.reasons.setdefault(place, reason)
        self.n_missing += len(missing)
        results = [self.found.get(place, nothing) for place in new]
        self.manners.judge_failures(results)
        self.results += results
        with warnings.catch_warnings():
            if self.n_complete < len(self.candidates):  # their means are nan, and mean to be
                warnings.filterwarnings("ignore", "One or more of the (test|train) scores are non")
            table = self.manners.table(self.candidates, self.n_splits, self.results, self.columns)
        return table | _proven([result["claim"] for result in self.results], self.n_splits)

    @property
    def n_complete(self) -> int:
        """Number of candidates that were scored on all splits."""
        scored = np.bincount([k for k, _ in self.found], minlength=len(self.candidates))
        return int((scored == self.n_splits).sum()) - self.n_pruned

    def _run(self, numbers: list[int]) -> None:
        """Find the results of some candidates on all splits, until someone wants it to end."""
        splits = list(range(self.n_splits))
        if self.prune_margin is None or len(splits) <= _FIRST:
            self._evaluate(numbers, splits)
            return
        self._evaluate(numbers, splits[:_FIRST])
        behind = self._behind(numbers, splits[:_FIRST], self.prune_margin)
        self._evaluate([k for k in numbers if k not in behind], splits[_FIRST:])
        for k in behind:
            for split in splits[_FIRST:]:
                self.found[k, split] = _without_scores(self.found[k, 0])
                reason = f"It was dropped: behind by more than prune_margin={self.prune_margin:g}."
                self.sharing.reasons[k, split] = reason
        self.n_pruned += len(behind)

    def _behind(self, numbers: list[int], splits: list[int], margin: float) -> list[int]:
        """Return the candidates that are behind by more than this on each of the splits."""
        results = [[self.found[k, s]["test_scores"] for s in splits] for k in numbers]
        if isinstance(results[0][0], dict):
            metric = self.manners.search.refit
            if not isinstance(metric, str):
                raise ValueError(
                    "prune_margin compares one score: with several, name it by refit, as in "
                    'refit="roc_auc".'
                )
            results = [[scores[metric] for scores in row] for row in results]
        scores = np.array(results, dtype=np.float64)
        means = scores.mean(axis=1)
        if np.isnan(means).all():
            return []
        behind = scores[np.nanargmax(means)] - scores
        return [numbers[i] for i in np.flatnonzero((behind > margin).all(axis=1))]

    def _evaluate(self, numbers: list[int], splits: list[int]) -> None:
        """Find the results of some candidates on some splits."""
        assert self.scoring is not None
        work = Work({k: self.candidates[k] for k in numbers}, splits, splits)
        for k, split, result in self.place.results(self.scoring, work, self.watch):
            self.found[k, split] = result
            if self.verbose > 1:
                print(_told(self.candidates[k], split, self.n_splits, result, self.verbose))


def _proven(claims: list[Claim], n_splits: int) -> dict[str, np.ndarray]:
    """Return the columns of what is proven of the fits, if anything is of any."""
    if not any(claim.status in _SEVERITY for claim in claims):
        return {}
    columns: dict[str, np.ndarray] = {}
    order = ["", *_SEVERITY, FAILED.status, NOT_FITTED.status]
    for split in range(n_splits):
        own = claims[split::n_splits]
        columns[f"split{split}_gap"] = np.array([claim.gap for claim in own])
        columns[f"split{split}_status"] = np.array([str(claim.status) for claim in own])
    each = [claims[first : first + n_splits] for first in range(0, len(claims), n_splits)]
    columns["worst_gap"] = np.array([np.fmax.reduce([c.gap for c in some]) for some in each])
    statuses = [[str(claim.status) for claim in some] for some in each]
    columns["status"] = np.array([max(some, key=order.index) for some in statuses])
    return columns


def _told(params: dict, split: int, n_splits: int, result: dict, verbose: int) -> str:
    """Return the line that ``GridSearchCV`` has for a fit: its time, from 3 on its scores too."""
    said = ", ".join(f"{name}={params[name]}" for name in sorted(params))
    said += ";" if said else ""
    if verbose > 2:
        scores, train = result["test_scores"], result.get("train_scores")
        if isinstance(scores, dict):
            for name in sorted(scores):
                both = "" if train is None else f"train={train[name]:.3f}, "
                said += f" {name}: ({both}test={scores[name]:.3f})"
        elif train is None:
            said += f", score={scores:.3f}"
        else:
            said += f", score=(train={train:.3f}, test={scores:.3f})"
    said += f" total time={result['fit_time'] + result['score_time']:6.1f}s"
    begin = f"[CV {split + 1}/{n_splits}] END " if verbose > 2 else "[CV] END "
    return begin + "." * (80 - len(begin) - len(said)) + said


def _without_scores(result: dict) -> dict:
    """Return a result that looks like another one, with nan for its scores."""

    def emptied(scores: Any) -> Any:
        return dict.fromkeys(scores, np.nan) if isinstance(scores, dict) else np.nan

    scores = {name: emptied(some) for name, some in result.items() if name.endswith("_scores")}
    times = {"fit_time": 0.0, "score_time": 0.0}
    return {**result, "fit_error": None, **times, **scores, "claim": NOT_FITTED}
