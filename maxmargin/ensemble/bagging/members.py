"""Members of an ensemble: clones of an estimator, each fitted to a replicate, some at a time.

A replicate reaches an estimator in one of three ways, the first that can be:

- **shared**: the estimator has ``_replicate_fits``, which fits several replicates over what they
  have in common: kernel machines over one Gram matrix, trees over columns that are binned once;
- **weights**: the rows that were drawn, each once, with its count as ``sample_weight``;
- **rows**: the rows as they were drawn, some of them several times.

Weights are exact, the same problem as rows, wherever an estimator takes a row of weight k for k
rows: every machine of this package whose objective is a weighted sum, linear models, trees. They
are not where it counts rows, not weights (``min_samples_leaf`` of scikit-learn's trees), sets rows
aside for itself (early stopping, folds for probabilities), or takes them in a random order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.dummy import DummyClassifier
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _check_method_params

from maxmargin.backends.threads import StoppedError, Workers, on_one_blas_thread
from maxmargin.ensemble.bagging.replicates import Replicates
from maxmargin.ensemble.learners import member_of, tags_of, takes_weights
from maxmargin.ensemble.trees.growth import never

_AHEAD = 4  # members of each thread, fitted before someone looks at them


class Members:
    """Fits members of an ensemble to replicates of a data set.

    Parameters
    ----------
    estimator : estimator
    X, y : validated data
    replicates : Replicates
    workers : Workers
        Threads that share the members. With one of them a member may have threads of its own.
    share : bool
        Whether to fit several replicates over what they have in common, where the estimator can.
    metadata : dict, optional
        Arguments of the estimator's ``fit`` by metadata routing; arrays with an entry for each row
        are taken apart as the rows are.

    Attributes
    ----------
    sharing : {"shared", "weights", "rows"}
        How replicates reach the estimator.
    why : str
        The same as a sentence.
    at_once : int
        How many members to ask for at a time.
    """

    def __init__(
        self,
        estimator: Any,
        X: Any,
        y: Any,
        replicates: Replicates,
        workers: Workers,
        share: bool = True,
        metadata: dict[str, Any] | None = None,
    ) -> None:
        self.estimator, self.X, self.y, self.metadata = estimator, X, y, metadata or {}
        self.replicates, self.workers = replicates, workers
        tags = tags_of(estimator)
        self.pairwise = bool(tags.input_tags.pairwise)
        self.weighs = takes_weights(estimator)
        self.whole = replicates.width == replicates.n_columns and not replicates.bootstrap_features
        of_classes = tags.estimator_type == "classifier"
        self.codes = np.unique(y, return_inverse=True)[1] if of_classes else None
        self.common: Any = None
        name = type(estimator).__name__
        if self.pairwise and not self.whole:
            raise ValueError(
                "A precomputed kernel has rows and no features to draw from: use max_features=1.0 "
                "and bootstrap_features=False."
            )
        if share and self.whole and not self.metadata and shares_fits(estimator):
            self.common = estimator._replicate_fits(X, y)
        if self.common is not None:
            self.sharing, self.why = "shared", self.common.why
        elif self.weighs:
            self.sharing = "weights"
            self.why = f"{name} takes weights: each row once, with how often it was drawn"
        elif self.pairwise:
            raise TypeError(
                f"{name}.fit takes no sample_weight, and rows that were drawn twice make its "
                "precomputed matrix singular: use an estimator with weights, or its features."
            )
        else:
            self.sharing = "rows"
            self.why = f"{name} takes no weights: rows as they were drawn"
        if self.common is not None:
            self.at_once = self.common.at_once
        else:
            self.at_once = 1 if workers.count == 1 else _AHEAD * workers.count

    @property
    def cut_short(self) -> bool:
        """Whether the fit of the first member was stopped early."""
        return getattr(self.common, "cut_short", False)

    # -- fitting -------------------------------------------------------------------------------

    def fit(
        self,
        seeds: np.ndarray,
        first: int = 0,
        stopped: Callable[[], Any] = never,
        told: Callable[[], Any] = lambda: None,
    ) -> list[Any]:
        """Fit a member to the replicate of each seed; the first ones only, where that is stopped.

        ``first`` is the number of the first seed: what an error says, and number 0 is fitted in any
        case. ``told`` is called after each member.
        """
        if self.common is not None:
            return self._fit_shared(seeds, first, stopped, told)
        machines = [member_of(self.estimator, int(seed)) for seed in seeds]
        done: list[Any] = [None] * len(seeds)

        def work(k: int) -> None:
            if first + k and stopped():
                raise StoppedError
            with _naming(first + k):
                done[k] = self._fitted(machines[k], int(seeds[k]))
            told()

        in_threads = self.workers.map
        if self.workers.count > 1:
            in_threads = on_one_blas_thread(in_threads)
        with suppress(StoppedError):
            in_threads(work, range(len(seeds)))
        missing = [k for k, machine in enumerate(done) if machine is None]
        return done[: missing[0]] if missing else done

    def _fit_shared(
        self,
        seeds: np.ndarray,
        first: int,
        stopped: Callable[[], Any],
        told: Callable[[], Any],
    ) -> list[Any]:
        counts = np.array([self.replicates.counts(int(seed)) for seed in seeds])
        usual = [k for k, own in enumerate(counts) if not self._has_one_class(own)]
        machines = [member_of(self.estimator, int(seeds[k])) for k in usual]
        found: dict[int, Any] = {}
        if usual:
            with _naming(first, first + len(seeds)):
                how = self.workers, stopped, told, first + usual[0]
                fitted = self.common.fit(machines, counts[usual], *how)
            found = dict(zip(usual, fitted, strict=False))
        done = []
        for k, own in enumerate(counts):
            if k not in found and not self._has_one_class(own):
                break  # stopped
            rows = np.flatnonzero(own)
            done.append(found[k] if k in found else self._constant(rows, None))
        return done

    def _has_one_class(self, counts: np.ndarray) -> bool:
        """Whether a replicate has rows of a single class, which most classifiers refuse."""
        if self.codes is None:
            return False
        return bool((np.bincount(self.codes, weights=counts) > 0).sum() < 2)

    def _constant(self, rows: np.ndarray, columns: np.ndarray | None) -> Any:
        """Return the member of a replicate with a single class: it says that class."""
        own = taken(self.X, rows[:1], columns)
        return DummyClassifier().fit(own, _safe_indexing(self.y, rows[:1]))

    def _fitted(self, machine: Any, seed: int) -> Any:
        columns, rows = self.replicates.columns(seed), self.replicates.drawn(seed)[1]
        if self._has_one_class(self.replicates.counts(seed)):
            return self._constant(rows, columns)
        if self.pairwise:  # rows of weight zero stay, as columns that others' values are for
            machine.fit(self.X, self.y, sample_weight=self._as_weight(rows), **self.metadata)
        elif self.weighs:
            counts = self._as_weight(rows)
            rows = np.flatnonzero(counts)
            own = taken(self.X, rows, columns)
            more = _check_method_params(self.X, self.metadata, rows)
            machine.fit(own, _safe_indexing(self.y, rows), sample_weight=counts[rows], **more)
        else:
            more = _check_method_params(self.X, self.metadata, rows)
            machine.fit(taken(self.X, rows, columns), _safe_indexing(self.y, rows), **more)
        return machine  # fit may return anything, as in scikit-learn

    def _as_weight(self, rows: np.ndarray) -> np.ndarray:
        return np.bincount(rows, minlength=self.replicates.n_rows).astype(np.float64)


def shares_fits(estimator: Any) -> bool:
    """Whether an estimator fits several replicates at once; not if a subclass overrides ``fit``."""
    own = type(estimator).fit.__module__.startswith("maxmargin.")
    return own and hasattr(estimator, "_replicate_fits")


class _naming:
    """Say in an error which replicate's fit it comes from."""

    def __init__(self, first: int, end: int | None = None) -> None:
        last = first if end is None else end - 1
        several = f"one of the replicates {first} to {last}"
        self.who = f"replicate {first}" if last == first else several

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, Exception) and not isinstance(error, StoppedError):
            error.add_note(f"This was in the fit to {self.who}, counted from 0.")


def are_strings(X: Any) -> bool:
    """Whether these are texts or sequences, a string each, and no table."""
    if getattr(X, "ndim", 1) != 1 or hasattr(X, "columns") or not hasattr(X, "__len__"):
        return False
    return len(X) > 0 and isinstance(next(iter(X)), str)


def taken(X: Any, rows: np.ndarray | None, columns: np.ndarray | None) -> Any:
    """Some rows and columns of a table; None for all."""
    if columns is not None:
        if sp.issparse(X) or isinstance(X, np.ndarray):
            X = X[:, columns]
        else:
            X = _safe_indexing(X, columns, axis=1)
    return X if rows is None else _safe_indexing(X, rows)


def asked(
    machines: Sequence[Any],
    method: str,
    X: Any,
    columns: Sequence[np.ndarray | None],
    workers: Workers,
    rows: Sequence[np.ndarray] | None = None,
    metadata: dict[str, Any] | None = None,
) -> list[np.ndarray]:
    """Answers of each machine's method at the rows of X, or at rows of its own.

    Machines that can, answer together (``_answers_of_all``): kernel machines over one block of
    kernel values.
    """
    able = (getattr(machine, "_answers_of_all", None) for machine in machines)
    shared = next((one for one in able if one is not None), None)
    apart = len(machines) == 1 or metadata
    if shared is not None and not apart and all(own is None for own in columns):
        answers = shared(machines, method, X, workers)
        if answers is not None:
            return (
                answers if rows is None else [a[own] for a, own in zip(answers, rows, strict=True)]
            )

    def ask(k: int) -> np.ndarray:
        own = None if rows is None else rows[k]
        if own is not None and not len(own):
            return np.empty((0,))
        constant = isinstance(machines[k], DummyClassifier)  # see Members._constant
        more = {} if constant else metadata or {}
        return getattr(machines[k], method)(taken(X, own, columns[k]), **more)

    if workers.count == 1:
        return [ask(k) for k in range(len(machines))]
    return on_one_blas_thread(workers.map)(ask, range(len(machines)))
