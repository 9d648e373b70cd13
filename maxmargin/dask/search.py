"""Searches over the workers of a client: kernels and splits apart, what they share kept by each.

The rows go to every worker that has work, from worker to worker; a kernel matrix needs all of them
in one place. A piece of work is a kernel on a split, with all its costs
(:meth:`maxmargin.selection.scoring.Scoring.pieces`): squared distances, kernel matrices and what
transformers make of a split stay with the worker's copy of the search until it ends. A piece is a
function of its arguments; what a killed worker had not done, another one does.
"""

from __future__ import annotations

import copy
import multiprocessing
import threading
import time
import uuid
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

import dask
import numpy as np
from sklearn.utils.validation import _num_samples, check_is_fitted

from maxmargin import memory
from maxmargin.backends.threads import StoppedError
from maxmargin.dask.allocation import keeping_memory
from maxmargin.dask.answers import answered, scored
from maxmargin.dask.cluster import Cluster
from maxmargin.dask.collections import in_columns, joined, partitions_of, pieces_of
from maxmargin.dask.fits import fit_partitions
from maxmargin.dask.gathered import looked_at, refuse_infinite
from maxmargin.dask.monitors import LEAST, TaskMonitor
from maxmargin.estimators.base import Estimator
from maxmargin.estimators.collections import ANSWERS, is_collection
from maxmargin.selection.plan import Sharing
from maxmargin.selection.scoring import Place, Result, Scoring, Watch, Work
from maxmargin.selection.search import Search


class RowsElsewhere:
    """Rows that lie on workers, where only their number is wanted."""

    def __init__(self, n: int, width: int) -> None:
        self.shape = (n, width)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Any) -> Any:
        raise TypeError(
            "The rows of this search are a Dask collection and lie on its workers; a splitter or "
            "scorer that looks at X itself needs them in memory: compute X, and search with "
            'joblib.parallel_config(backend="dask") if the client is to be used.'
        )


class WorkersPlace(Place):
    """The workers of a client, for one search.

    ``rows`` is a function that returns X as a future, kept until the search is over;
    ``distribution`` counts what was sent.
    """

    def __init__(self, cluster: Cluster, rows: Callable[[], Any] | None = None) -> None:
        self.cluster, self._rows = cluster, rows
        self.distribution = cluster.distribution
        self.X: Any = None

    def results(self, scoring: Scoring, work: Work, watch: Watch) -> Iterator[Result]:
        """Yield the results of the pieces as they come."""
        cluster = self.cluster
        scoring.keeps = True
        scoring.budget = cluster.budget() // max(cluster.n_threads // cluster.n_workers, 1)
        with cluster.telling_losses():
            for answer in self._answers(scoring, scoring.pieces(work, cluster.n_threads), watch):
                yield from _told(answer, watch.sharing)
        watch.workers.check()

    def _answers(self, scoring: Scoring, pieces: Iterable[Work], watch: Watch) -> Iterator[Answer]:
        """Yield the answers of the workers to pieces of work, as they come."""
        client, monitor = self.cluster.client, watch.monitor
        X, shared = self._sent_rows(scoring.manners.X), self.cluster.share(_without_rows(scoring))
        limit = monitor.time_limit
        until = None if limit is None else time.time() + limit - monitor.seconds
        search = uuid.uuid4().hex
        futures = [
            client.submit(
                score_piece,
                shared,
                X,
                piece,
                until,
                key=f"maxmargin-search-{search}-{number}",
                priority=-number,
                pure=False,
            )
            for number, piece in enumerate(pieces)
        ]
        self.cluster.distribution.rounds += 1
        try:
            while futures:
                for future in self.cluster.wait(futures, monitor.stopped, "FIRST_COMPLETED"):
                    futures.remove(future)
                    yield future.result()
                if futures and monitor.stopped():
                    raise StoppedError
        finally:
            if futures:
                client.cancel(futures)

    def _sent_rows(self, X: Any) -> Any:
        if self.X is None and self._rows is not None:
            self.X = self._rows()
        elif self.X is None:
            self.X = self.cluster.share(X)
            self.distribution.partitions, self.distribution.rows = 1, _num_samples(X)
        return self.X

    def asked(self, function: Any, X: Any, y: Any) -> Any:
        """Return what a function says of all rows: where they lie."""
        return self.cluster.client.submit(function, self._sent_rows(X), y, pure=False).result()


class CollectionPlace(WorkersPlace):
    """The workers of a client where rows are a collection; the best machine is fitted to that."""

    def __init__(
        self, cluster: Cluster, rows: Callable[[], Any], X: Any, y: Any, params: dict
    ) -> None:
        super().__init__(cluster, rows)
        self.given = X, y, params

    def fitted(self, estimator: Any, X: Any, y: Any, params: dict) -> Any:
        """Fit an estimator to the collection, or in one place if it takes none."""
        if isinstance(estimator, Estimator):
            return _fitted_to(estimator, self.given, params)
        fit = partial(_fitted, estimator, params)
        return self.asked(fit, X, y)


def _fitted_to(estimator: Any, given: tuple, params: dict) -> Any:
    """Fit an estimator of ours to collections, with those of the parameters that a fit takes."""
    X, y, others = given
    own = {name: others[name] for name in params}
    return estimator.fit(X, *(() if y is None else (y,)), **own)


def _fitted(estimator: Any, params: dict, X: Any, y: Any) -> Any:
    return Place().fitted(estimator, X, y, params)


# -- what a worker does ------------------------------------------------------------------------


class Answer(NamedTuple):
    """What a piece of work came to: results, how they were shared or why not, and warnings."""

    results: list[Result]
    how: dict
    reasons: dict
    warnings: list[tuple[str, type[Warning]]]


@keeping_memory()
def score_piece(scoring: Scoring, X: Any, work: Work, until: float | None) -> Answer:
    """Score a kernel on a split; what there is when the time is over."""
    if scoring.manners.X is None:
        scoring.manners.X = X
    limit = None if until is None else max(until - time.time(), LEAST)
    sharing = Sharing(len(scoring.splits))
    watch = Watch.of(1, TaskMonitor(limit), sharing)
    results: list[Result] = []
    with _hearing() as said:
        try:
            for result in scoring.results(work, watch):
                results.append(result)
        except StoppedError:  # the time limit: what there is by now is kept
            said.clear()
    return Answer(results, sharing.how, sharing.reasons, said)


_heard = threading.local()


@contextmanager
def _hearing() -> Iterator[list[tuple[str, type[Warning]]]]:
    """Collect the warnings of this thread, in a process that has nobody to read them.

    ``warnings.catch_warnings`` is not for threads: it would take the warnings of others.
    """
    _heard.found = found = []  # type: ignore[var-annotated]
    if multiprocessing.parent_process() is not None and warnings.showwarning is not _show:
        _usual.append(warnings.showwarning)
        warnings.showwarning = _show
    try:
        yield found
    finally:
        _heard.found = None


_usual: list[Callable] = []  # what showed warnings before


def _show(message: Any, category: Any, *where: Any, **more: Any) -> None:
    found = getattr(_heard, "found", None)
    if found is None:
        _usual[0](message, category, *where, **more)
    else:
        found.append((str(message), category))


def _told(answer: Answer, sharing: Sharing) -> Iterator[Result]:
    """Pass on what a worker has found and said."""
    for message, category in answer.warnings:
        warnings.warn(message, category, stacklevel=2)
    sharing.how.update(answer.how)
    for place, reason in answer.reasons.items():
        sharing.reasons.setdefault(place, reason)
    yield from answer.results


def _without_rows(scoring: Scoring) -> Scoring:
    """Return the same search without its rows, which go to the workers by themselves."""
    sent = copy.copy(scoring)
    sent.manners = copy.copy(scoring.manners)
    sent.manners.X = None
    return sent


# -- collections -------------------------------------------------------------------------------


@fit_partitions.register(Search)
def _searched(search: Search, X: Any, y: Any, sample_weight: Any, **params: Any) -> Search:
    """Search over the rows of a collection."""
    if sample_weight is not None:
        params["sample_weight"] = sample_weight
    cluster, X = Cluster.active(), in_columns(X)
    parts = partitions_of(X)
    looks = looked_at(cluster, parts, {})
    sizes = tuple(summary.n for summary in looks.summaries)
    looks.refuse_unlike()
    if isinstance(search._searched(), Estimator):
        refuse_infinite(cluster, parts)
    _refuse_too_many(search, looks.nbytes, cluster)
    rows = looks.blocks
    gathered = {name: _gathered(cluster, value, sizes, name) for name, value in params.items()}
    labels = _gathered(cluster, y, sizes, "y")
    if y is not None and not is_collection(y):
        y = pieces_of(y, sizes, "y")  # for the fit to all of the data
    stand_in = RowsElsewhere(looks.n, looks.n_features)
    cluster.distribution.partitions, cluster.distribution.rows = len(rows), len(stand_in)

    def together() -> Any:
        return cluster.client.compute(cluster.task(joined, rows, name="gather"))

    if cluster.client is None:
        (found,) = cluster.run([cluster.task(joined, rows, name="gather")])
        place: Place = _Gathered(X, y, params)
        search._search(found, labels, gathered, place)
    else:
        place = CollectionPlace(cluster, together, X, y, params)
        search._search(stand_in, labels, gathered, place)
    search.distribution_ = cluster.distribution
    return search


def scored_search(search: Search, X: Any, y: Any = None, **params: Any) -> float:
    """Return the score of a search's best estimator on collections, by the search's scorer.

    Answers are made where the rows lie, and only these are gathered.
    """
    check_is_fitted(search)
    known = search._in_scikit_learn()
    best = search.best_estimator_
    if search.scoring is None and isinstance(best, Estimator):
        return best.score(X, y, **params)
    given = {"y": y, **params}
    found = dict(zip(given, dask.compute(*given.values()), strict=True))
    known.best_estimator_ = _Answering(best)
    return known.score(X, **{name: _as_array(value) for name, value in found.items()})


def _as_array(value: Any) -> Any:
    return joined(value) if isinstance(value, list) else value


class _Answering:
    """A fitted estimator whose answers to collections are gathered, as scorers want them."""

    def __init__(self, estimator: Any) -> None:
        self._estimator = estimator

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._estimator, name)
        if name not in ANSWERS:
            return found

        def answer(X: Any) -> Any:
            (said,) = dask.compute(answered(self._estimator, name, X, {}))
            return np.asarray(_as_array(said))

        answer.__name__ = name  # scorers ask by which method they were answered
        return answer

    def score(self, X: Any, y: Any = None, **options: Any) -> float:
        """Return the estimator's own score."""
        return scored(self._estimator, X, y, **options)


class _Gathered(Place):
    """This process, without a client: the rows are gathered, and the best machine is fitted to
    the collection they came from."""

    def __init__(self, X: Any, y: Any, params: dict) -> None:
        self.given = X, y, params

    def fitted(self, estimator: Any, X: Any, y: Any, params: dict) -> Any:
        """Fit an estimator to the collection, or to the rows gathered if it takes none."""
        if isinstance(estimator, Estimator):
            return _fitted_to(estimator, self.given, params)
        return super().fitted(estimator, X, y, params)


def _refuse_too_many(search: Search, nbytes: int, cluster: Cluster) -> None:
    room = cluster.budget()
    if nbytes > room:
        raise MemoryError(
            f"{type(search).__name__} needs all rows with each worker, "
            f"{memory.megabytes(nbytes)} of them, and {memory.megabytes(room)} may be taken there "
            "(maxmargin.memory-per-worker in Dask's configuration, or half of a worker's limit). "
            "Search over a part of the rows, X.partitions[:k] for example, and fit the best "
            "parameters to all of them; or search for a linear machine on Nystroem features."
        )


def _gathered(cluster: Cluster, data: Any, sizes: tuple, name: str) -> Any:
    """Return targets, weights or groups in memory; what is no collection as it is."""
    if not is_collection(data):
        return data
    parts = cluster.run([cluster.task(list, pieces_of(data, sizes, name), name="gather")])[0]
    whole = joined([part for part in parts if _num_samples(part)] or parts[:1])
    return whole if hasattr(whole, "iloc") else np.asarray(whole)


def place_of(backend: Any) -> Place:
    """Return where to search while joblib's Dask backend is on.

    Inside a task, as when a search is cross-validated, that is the worker's own thread: its client
    has the other folds to do.
    """
    from distributed.utils import thread_state

    if hasattr(thread_state, "execution_state"):
        return Place()
    return WorkersPlace(Cluster(backend.client))
