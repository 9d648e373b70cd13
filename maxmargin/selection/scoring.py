"""The scores of candidates on splits: by sharing where possible, else by fits one by one.

This is the work of a search. It is a function of the data, the candidates and the splits alone, so
that it can be cut into pieces and done in another place (:class:`Place`): what belongs together is
a kernel on a split, with all its costs (:func:`pieces`).
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from maxmargin.backends.threads import Workers, thread_count
from maxmargin.progress import Monitor
from maxmargin.selection.held_out import HeldOut
from maxmargin.selection.plan import Candidate, Sharing, grouped, last_step, own_prefix
from maxmargin.selection.run import SharedFits
from maxmargin.selection.scikit_learn import Manners
from maxmargin.selection.shared_data import SharedData

Split = tuple[np.ndarray, np.ndarray]
Result = tuple[int, int, dict]  # number of the candidate, split, what scikit-learn says of a fit
_PIECES = 8  # pieces of work for each thread from which on the splits of a kernel stay together


class Work(NamedTuple):
    """Candidates by their numbers, to be scored on splits; ``among`` has those scored with them."""

    candidates: dict[int, dict]
    splits: list[int]
    among: list[int]


class Watch(NamedTuple):
    """Who works and who looks on: threads, what may end it, and who is told what is shared."""

    workers: Workers
    monitor: Monitor
    sharing: Sharing

    @classmethod
    def of(cls, n_jobs: int | None, monitor: Monitor, sharing: Sharing) -> Watch:
        """Watch over so many threads."""
        return cls(Workers(thread_count(n_jobs), monitor.stopped), monitor, sharing)


class Scoring:
    """Scores of candidates of an estimator on splits of the data, which ``manners`` has.

    With ``keeps``, data sets and kernel matrices are kept from one piece of work to the next, in
    ``budget`` bytes.
    """

    def __init__(self, manners: Manners, estimator: Any, splits: list[Split]) -> None:
        self.manners, self.estimator, self.splits = manners, estimator, splits
        self.keeps, self.budget = False, np.inf
        self._forget()

    def _forget(self) -> None:
        self._sides: dict[tuple[int, bool, bool], tuple[Any, Any]] = {}
        self._data: dict[tuple[int, ...], SharedData] = {}
        self._lock = threading.Lock()

    def __getstate__(self) -> dict[str, Any]:
        kept = ("_sides", "_data", "_lock")
        return {name: value for name, value in vars(self).items() if name not in kept}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._forget()

    def results(self, work: Work, watch: Watch) -> Iterator[Result]:
        """Yield the results of candidates on splits, in any order, until someone wants it to end.

        ``watch.sharing`` is told how each was found.
        """
        candidates = [self._candidate(k, params) for k, params in work.candidates.items()]
        reason, found = self._apart(), set()
        if reason is not None:
            watch.sharing.leave_alone(candidates, work.splits, reason)
        else:
            data = self._shared_data(work.among)
            fits = SharedFits(data, work.splits, watch.workers, watch.monitor, watch.sharing)
            outcomes = fits.outcomes(candidates)
            while (held_out := self._next(outcomes, watch)) is not None:
                candidate, split = held_out.candidate, held_out.split
                result = self._scored(held_out)
                watch.sharing.note(candidate, split, held_out.how)
                found.add((candidate.number, split))
                yield candidate.number, split, result
        for k, params in work.candidates.items():
            for split in work.splits:
                if (k, split) not in found:
                    yield k, split, self._fitted(params, *self.splits[split], watch)

    def _weight_name(self) -> str:
        return f"{own_prefix(self.estimator)}sample_weight"

    def _apart(self) -> str | None:
        """Why all fits are made one by one, if they are."""
        others = sorted(self.manners.fit_params.keys() - {self._weight_name()})
        return (
            f"Only a fit of its own knows what to do with {', '.join(others)}." if others else None
        )

    def _shared_data(self, splits: list[int]) -> SharedData:
        """Return the data of some splits; the same again, where they are kept."""
        key = tuple(splits)
        with self._lock:
            if key in self._data:
                return self._data[key]
            data = SharedData(
                self.manners,
                [(split, *self.splits[split]) for split in splits],
                self.manners.fit_params.get(self._weight_name()),
                self.keeps,
                self.budget,
            )
            if self.keeps:
                self._data[key] = data
            return data

    def _next(self, outcomes: Iterator[HeldOut], watch: Watch) -> HeldOut | None:
        """Work until there is another machine to score; Ctrl-C ends that at the next good place."""
        watch.workers.check()
        with watch.monitor.catching_interrupts():
            return next(outcomes, None)

    def _candidate(self, number: int, params: dict) -> Candidate:
        own = own_prefix(self.estimator)
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
            estimator = clone(candidate.estimator)
            estimator.fit(X, y, **manners.fit_params_on(train))
            return estimator

        machine = held_out.on([X for X, *_ in sides.values()], fit)
        return {**manners.scored(machine, held_out.seconds, sides), "claim": held_out.claim}

    def _side(self, held_out: HeldOut, rows: np.ndarray) -> tuple[Any, Any]:
        """X and y of one side of a split, always the same objects, cut out once."""
        candidate, train = held_out.candidate, self.splits[held_out.split][0]
        key = held_out.split, rows is train, candidate.pairwise
        if key not in self._sides:
            self._sides[key] = self.manners.side(candidate.estimator, rows, train)
        return self._sides[key]

    def _fitted(self, params: dict, train: np.ndarray, test: np.ndarray, watch: Watch) -> dict:
        """Fit and score as ``GridSearchCV`` does, in the time that is left."""
        estimator, limit = clone(self.estimator), watch.monitor.time_limit
        if limit is None:
            return self.manners.fitted_and_scored(estimator, params, train, test)
        watch.workers.check()
        machine = last_step(estimator)
        if hasattr(machine, "time_limit"):
            machine.time_limit = min(limit - watch.monitor.seconds, machine.time_limit or np.inf)
        if threading.current_thread() is not threading.main_thread():
            result = self.manners.fitted_and_scored(estimator, params, train, test)
            watch.workers.check()
            return result  # warnings are those of all threads
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            result = self.manners.fitted_and_scored(estimator, params, train, test)
        watch.workers.check()  # nobody is warned of a fit that does not count
        for warning in caught:
            warnings.warn_explicit(
                warning.message, warning.category, warning.filename, warning.lineno
            )
        return result

    def pieces(self, work: Work, threads: int) -> list[Work]:
        """Cut work into pieces for so many threads, of which none makes what another has made.

        A piece is a kernel, or of linear machines what differs in C only, on one split, with all
        costs; each fit that shares nothing is one. Those of a kernel follow on each other.
        """
        alone: list[Candidate] = []
        shared: list[Candidate] = []
        for k, params in work.candidates.items():
            candidate = self._candidate(k, params)
            apart = self._apart() or candidate.refusal(self.manners.ask_for_probabilities)
            (shared if apart is None else alone).append(candidate)
        groups = [group for data in grouped(shared, Candidate.same_data) for group in _cut(data)]
        one_by_one = len(groups) + len(alone) < _PIECES * threads
        splits = [[split] for split in work.splits] if one_by_one else [work.splits]
        groups += [[candidate] for candidate in alone]
        return [
            work._replace(candidates={c.number: work.candidates[c.number] for c in group}, splits=s)
            for group in groups
            for s in splits
        ]


def _cut(group: list[Candidate]) -> list[list[Candidate]]:
    """Take candidates that see the same data apart: by kernels, or by problems."""
    first = group[0]
    if first.linear:
        return [group] if first.steps else grouped(group, Candidate.same_problem)
    return grouped(group, lambda a, b: a.kernel == b.kernel and a.dtype is b.dtype)


class Place:
    """Where the work of a search is done: here, in the threads of this process."""

    distribution: Any = None  # what it took, where that is a cluster

    def results(self, scoring: Scoring, work: Work, watch: Watch) -> Iterator[Result]:
        """Yield the results of candidates on splits, in any order."""
        return scoring.results(work, watch)

    def asked(self, function: Any, X: Any, y: Any) -> Any:
        """Return what a function says of all rows and their targets."""
        return function(X, y)

    def fitted(self, estimator: Any, X: Any, y: Any, params: dict) -> Any:
        """Fit an estimator to all of the data."""
        estimator.fit(X, *(() if y is None else (y,)), **params)
        return estimator  # what fit returns is anything: scikit-learn does not use it
