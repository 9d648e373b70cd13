"""The scores of candidates on splits: by sharing where possible, else by fits one by one."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone

from maxmargin.backends.threads import Workers, thread_count
from maxmargin.progress import Monitor
from maxmargin.selection.held_out import HeldOut
from maxmargin.selection.plan import Candidate, Sharing, last_step, own_prefix
from maxmargin.selection.run import SharedFits
from maxmargin.selection.scikit_learn import Manners

if TYPE_CHECKING:
    from maxmargin.selection.search import Search

Split = tuple[np.ndarray, np.ndarray]
_FIRST = 2  # splits on which all candidates are scored before any is pruned


class Evaluation:
    """The scores of all candidates, in one round or in several.

    Candidates are counted over all rounds, as in ``cv_results_``. ``n_pruned`` of them were
    dropped, and ``n_missing`` fits were not made when the work was stopped.
    """

    def __init__(self, search: Search, manners: Manners, estimator: Any) -> None:
        self.manners, self.estimator, self.n_splits = manners, estimator, search.n_splits_
        self.verbose, self.prune_margin = search.verbose, search.prune_margin
        self.monitor = Monitor(search.time_limit)
        self.workers = Workers(thread_count(search.n_jobs), self.monitor.stopped)
        self.sharing = Sharing(self.n_splits)
        self.candidates: list[dict] = []
        self.splits: list[Split] = []
        self.found: dict[tuple[int, int], dict] = {}
        self.columns: dict[str, list] = {}
        self.results: list[dict] = []
        self.n_pruned = self.n_missing = 0
        self._sides: dict[tuple[int, bool, bool], tuple[Any, Any]] = {}

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
        first = len(self.candidates)
        self.splits = splits
        self._sides.clear()
        self.candidates += candidates
        self.sharing.n_candidates = len(self.candidates)
        for name, value in columns.items():
            self.columns.setdefault(name, []).extend([value] * len(candidates))
        self._run(list(range(first, len(self.candidates))))
        return self.table()

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
            return self.manners.table(self.candidates, self.n_splits, self.results, self.columns)

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
        candidates = [self._candidate(k) for k in numbers]
        given, name = self.manners.fit_params, f"{own_prefix(self.estimator)}sample_weight"
        others = sorted(given.keys() - {name})
        if others:
            reason = f"Only a fit of its own knows what to do with {', '.join(others)}."
            self.sharing.leave_alone(candidates, splits, reason)
        else:
            fits = SharedFits(
                self.manners,
                [(split, *self.splits[split]) for split in splits],
                given.get(name),
                self.workers,
                self.monitor,
                self.sharing,
            )
            outcomes = fits.outcomes(candidates)
            while (held_out := self._next(outcomes)) is not None:
                candidate, split = held_out.candidate, held_out.split
                self._keep(candidate.number, split, self._scored(held_out))
                self.sharing.note(candidate, split, held_out.how)
        for k in numbers:
            for split in splits:
                if (k, split) not in self.found:
                    self._keep(k, split, self._fitted(self.candidates[k], *self.splits[split]))

    def _next(self, outcomes: Iterator[HeldOut]) -> HeldOut | None:
        """Work until there is another machine to score; Ctrl-C ends that at the next good place."""
        self.workers.check()
        with self.monitor.catching_interrupts():
            return next(outcomes, None)

    def _keep(self, k: int, split: int, result: dict) -> None:
        """Keep a result, and tell of it as ``GridSearchCV`` does."""
        self.found[k, split] = result
        if self.verbose > 1:
            print(_told(self.candidates[k], split, self.n_splits, result, self.verbose))

    def _candidate(self, number: int) -> Candidate:
        params, own = self.candidates[number], own_prefix(self.estimator)
        estimator = clone(self.estimator).set_params(**clone(params, safe=False))
        others = {name: value for name, value in params.items() if not name.startswith(own)}
        return Candidate(number, estimator, others)

    def _scored(self, held_out: HeldOut) -> dict:
        """Score what is known of a machine."""
        manners, candidate, split = self.manners, held_out.candidate, held_out.split
        train, test = self.splits[split]
        which = {"test_scores": test}
        if manners.train_too:
            which["train_scores"] = train
        sides = {name: (*self._side(held_out, rows), rows) for name, rows in which.items()}

        def fit() -> Any:
            X, y = self._side(held_out, train)
            return clone(candidate.estimator).fit(X, y, **manners.fit_params_on(train))

        machine = held_out.on([X for X, *_ in sides.values()], fit)
        return manners.scored(machine, held_out.seconds, sides)

    def _side(self, held_out: HeldOut, rows: np.ndarray) -> tuple[Any, Any]:
        """X and y of one side of a split, always the same objects, cut out once."""
        candidate, train = held_out.candidate, self.splits[held_out.split][0]
        key = held_out.split, rows is train, candidate.pairwise
        if key not in self._sides:
            self._sides[key] = self.manners.side(candidate.estimator, rows, train)
        return self._sides[key]

    def _fitted(self, params: dict, train: np.ndarray, test: np.ndarray) -> dict:
        """Fit and score as ``GridSearchCV`` does, in the time that is left."""
        estimator, limit = clone(self.estimator), self.monitor.time_limit
        if limit is None:
            return self.manners.fitted_and_scored(estimator, params, train, test)
        self.workers.check()
        machine = last_step(estimator)
        if hasattr(machine, "time_limit"):
            machine.time_limit = min(limit - self.monitor.seconds, machine.time_limit or np.inf)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            result = self.manners.fitted_and_scored(estimator, params, train, test)
        self.workers.check()  # nobody is warned of a fit that does not count
        for warning in caught:
            warnings.warn_explicit(
                warning.message, warning.category, warning.filename, warning.lineno
            )
        return result


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


def _without_scores(result: dict) -> dict:
    """Return a result that looks like another one, with nan for its scores."""

    def emptied(scores: Any) -> Any:
        return dict.fromkeys(scores, np.nan) if isinstance(scores, dict) else np.nan

    scores = {name: emptied(some) for name, some in result.items() if name.endswith("_scores")}
    return {**result, "fit_error": None, "fit_time": 0.0, "score_time": 0.0, **scores}
