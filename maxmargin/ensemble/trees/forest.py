"""A forest: trees that are grown by threads, and the mean of their answers."""

from __future__ import annotations

from numbers import Integral
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.base import _fit_context, clone
from sklearn.utils._param_validation import Interval, RealNotInt
from sklearn.utils.validation import check_is_fitted

from maxmargin.backends.threads import StoppedError, Workers, thread_count
from maxmargin.ensemble.learners import HasMembers
from maxmargin.ensemble.out_of_bag import warn_never_left_out
from maxmargin.ensemble.trees.base import LIMITS, TreeLearner, seeds
from maxmargin.ensemble.trees.columns import BinnedColumns
from maxmargin.ensemble.trees.export import forest_of
from maxmargin.ensemble.trees.growth import Grower, Target, count_of_features
from maxmargin.ensemble.trees.tree import dense, rows_at_once
from maxmargin.estimators.callbacks import observed
from maxmargin.estimators.warn import warn
from maxmargin.multiclass import class_weights
from maxmargin.progress import Monitor
from maxmargin.solution import Status


class Forest(HasMembers, TreeLearner):
    """A forest: growth by threads, sums over the trees, rows out of the bag."""

    n_estimators: int
    max_features: Any
    bootstrap: bool
    oob_score: Any
    max_samples: Any
    random_state: Any
    warm_start: bool
    max_bins: int | None
    estimators_: list
    oob_score_: float
    status_: Status
    _seeds: np.ndarray

    _parameter_constraints: dict = {
        **LIMITS,
        "n_estimators": [Interval(Integral, 1, None, closed="left")],
        "bootstrap": ["boolean"],
        "oob_score": ["boolean", callable],
        "max_samples": [
            Interval(Integral, 1, None, closed="left"),
            Interval(RealNotInt, 0.0, None, closed="neither"),
            None,
        ],
        "n_jobs": [Integral, None],
        "warm_start": ["boolean"],
    }

    # -- fitting -------------------------------------------------------------------------------

    @_fit_context(prefer_skip_nested_validation=True)
    @observed
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Grow the trees.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the rows.

        Returns
        -------
        self : object
        """
        known = getattr(self, "estimators_", []) if self.warm_start else []
        before = self._shape() if known else None
        X, target, weight = self._read(X, y, sample_weight)
        self._refuse(X.shape[0], X.shape[1], known, before)
        if self.oob_score:
            self._refuse_out_of_bag(y)
        workers = Workers(thread_count(self.n_jobs))
        draws = Samples(self, target, weight, X.shape[0], self._tree_seeds(len(known)))
        with self._watched() as monitor:
            columns = BinnedColumns.of(X, self.max_bins, workers, lists=False)
            grown, cut_short = self._grow(columns, target, draws, len(known), monitor, workers)
            self._keep(known + grown, cut_short, monitor)
        self._bootstrap, self._n_samples = draws.bootstrap, X.shape[0]
        if self.oob_score:
            self._score_out_of_bag(columns, target, draws, workers, y)
        self._warn_of_stop()
        return self

    def _keep(self, trees: list, cut_short: bool, monitor: Monitor) -> None:
        """Keep the trees that are there, and whether these are all."""
        self.estimators_, self.status_ = trees, Status.COMPLETED
        if cut_short or len(self.estimators_) < self.n_estimators:
            self.status_ = monitor.stopped() or Status.INTERRUPTED
        if self.verbose:
            there = len(self.estimators_)
            monitor.end(f"{there} of {self.n_estimators} trees", self.status_.finished)

    def _warn_of_stop(self) -> None:
        if not self.status_.finished:
            warn(
                self.status_.advice_for("ensemble").format(
                    there=len(self.estimators_),
                    wanted=self.n_estimators,
                    members="trees",
                    time_limit=self.time_limit or 0.0,
                )
            )

    def _shape(self) -> tuple:
        classes = getattr(self, "classes_", None)
        names = classes if isinstance(classes, list) else [classes]
        return self.n_features_in_, self.n_outputs_, [repr(np.asarray(one)) for one in names]

    def _refuse(self, n: int, n_features: int, known: list, before: tuple | None) -> None:
        """Refuse what does not fit together."""
        count_of_features(self.max_features, n_features)
        if self.oob_score and not self.bootstrap:
            raise ValueError(
                "Out of bag estimation only available if bootstrap=True: without it every tree has "
                "seen every row."
            )
        if self.max_samples is not None and not self.bootstrap:
            raise ValueError(
                "`max_sample` cannot be set if `bootstrap=False`. Either switch to "
                "`bootstrap=True` or set `max_sample=None`."
            )
        if len(known) > self.n_estimators:
            raise ValueError(
                f"n_estimators={self.n_estimators} must be larger or equal to "
                f"len(estimators_)={len(known)} when warm_start==True"
            )
        if before is not None and before != self._shape():
            raise ValueError(
                "warm_start=True adds trees to those that are there, which know other columns or "
                "classes than these data have: set warm_start=False to begin anew."
            )
        if known and len(known) == self.n_estimators:
            warn(
                "Warm-start fitting without increasing n_estimators does not fit new trees.",
                UserWarning,
            )

    def _refuse_out_of_bag(self, y: Any) -> None:
        """Refuse targets that have no out-of-bag score."""

    def _tree_seeds(self, known: int) -> np.ndarray:
        """Draw the seeds of all trees; those kept by ``warm_start`` keep their seeds."""
        own = seeds(self.random_state, self.n_estimators)
        if known:
            own[:known] = self._seeds[:known]
        self._seeds = own
        return own

    def _tree(self) -> Any:
        raise NotImplementedError

    def _grow(
        self,
        columns: BinnedColumns,
        target: Target,
        draws: Samples,
        first: int,
        monitor: Monitor,
        workers: Workers,
    ) -> tuple[list, bool]:
        """Grow the trees from number ``first`` on, as many as there is time for, one at least.

        Returns them, and whether the first tree of all had to end its growth early.
        """
        grown: dict[int, Any] = {}
        numbers, lock = iter(range(first, self.n_estimators)), Lock()
        cut_short = False

        def report() -> Status | None:
            monitor.report_parts("ExtraTrees", first + len(grown), self.n_estimators, "trees")
            return monitor.stopped()

        def stopped_first() -> bool:  # the first tree of all is a tree, however early it ends
            nonlocal cut_short
            cut_short = cut_short or report() is not None
            return cut_short

        def stopped() -> None:
            if report() is not None:
                raise StoppedError

        def grow_some(worker: int) -> None:
            """Grow one tree after the other in the same room, those that no other thread grows."""
            grower = Grower(columns, target)
            while True:
                with lock:
                    number = next(numbers, None)
                if number is None or (number and report() is not None):
                    return
                weight, seed = draws.weight(number), int(draws.seeds[number])
                ask = stopped if number else stopped_first
                try:
                    tree = self._tree()._grown(grower, weight, seed, ask)
                except StoppedError:
                    return
                del tree.training_leaves_
                grown[number] = tree
                report()

        workers.map(grow_some, range(min(workers.count, self.n_estimators - first)))
        trees = []
        for number in range(first, self.n_estimators):  # what warm_start goes on from: no gaps
            if number not in grown:
                break
            trees.append(grown[number])
        return trees, cut_short

    # -- rows out of the bag -------------------------------------------------------------------

    def _score_out_of_bag(
        self, columns: BinnedColumns, target: Target, draws: Samples, workers: Workers, y: Any
    ) -> None:
        n = columns.n_rows
        sums, counts = np.zeros((n, target.statistics)), np.zeros(n)

        def leaves(number: int) -> tuple[np.ndarray, np.ndarray]:
            assert draws.bootstrap is not None
            rows = np.flatnonzero(draws.bootstrap.counts(number) == 0)
            return rows, self.estimators_[number].tree_.apply_binned(columns, rows)

        together = 4 * workers.count
        for begin in range(0, len(self.estimators_), together):
            some = range(begin, min(begin + together, len(self.estimators_)))
            for number, (rows, at) in zip(some, workers.map(leaves, some), strict=True):
                sums[rows] += self.estimators_[number].tree_.values_at(at)
                counts[rows] += 1
        warn_never_left_out(counts)
        with np.errstate(invalid="ignore"):
            means = sums / counts[:, None]
        self._keep_out_of_bag(means, counts > 0, np.asarray(y))

    def _keep_out_of_bag(self, means: np.ndarray, seen: np.ndarray, y: np.ndarray) -> None:
        raise NotImplementedError

    # -- rows ----------------------------------------------------------------------------------

    def _means(self, X: Any) -> np.ndarray:
        """Mean over the trees of the values at the rows of X: (rows, statistics)."""
        check_is_fitted(self)
        X = self._validated_points(X)
        n, first = X.shape[0], self.estimators_[0].tree_
        sums = np.zeros((n, first.statistics))
        block = rows_at_once(X)

        def add(begin: int) -> None:
            own = slice(begin, begin + block)
            rows = dense(X[own])
            for tree in self.estimators_:
                tree.tree_.add_rows(rows, sums[own])

        self._workers(n * len(self.estimators_) * 16).map(add, range(0, n, block))
        sums /= len(self.estimators_)
        return sums

    def predict(self, X: Any) -> np.ndarray:
        """Predict the rows of X by the mean of the trees.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        y : array of shape (n_samples,) or (n_samples, n_outputs)
        """
        return self._answer(self._means(X))

    def apply(self, X: Any) -> np.ndarray:
        """Return the leaf of each row of X in each tree, (n_samples, n_estimators)."""
        check_is_fitted(self)
        X = self._validated_points(X)
        workers = self._workers(X.shape[0] * len(self.estimators_) * 16)
        return np.array(workers.map(lambda tree: tree.tree_.apply(X), self.estimators_)).T

    def decision_path(self, X: Any) -> tuple[sp.csr_matrix, np.ndarray]:
        """Return the nodes that each row of X passes, of all trees side by side.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        indicator : CSR matrix of shape (n_samples, n_nodes)
            One where a row passes a node.
        n_nodes_ptr : int array of shape (n_estimators + 1,)
            Nodes of tree m are the columns from ``n_nodes_ptr[m]`` to ``n_nodes_ptr[m + 1]``.
        """
        check_is_fitted(self)
        X = self._validated_points(X)
        workers = self._workers(X.shape[0] * len(self.estimators_) * 16)
        paths = workers.map(lambda tree: tree.tree_.decision_path(X), self.estimators_)
        return sp.hstack(paths).tocsr(), np.cumsum([0, *(path.shape[1] for path in paths)])

    @property
    def estimator_(self) -> Any:
        """A tree like those of the forest, not fitted."""
        check_is_fitted(self)
        return clone(self.estimators_[0])

    @property
    def estimators_samples_(self) -> list[np.ndarray]:
        """Rows that each tree was grown from, drawn again at each call."""
        check_is_fitted(self)
        if not hasattr(self, "_bootstrap"):
            raise AttributeError(
                "estimators_samples_ is not there for a forest that was fitted to a Dask "
                "collection: its rows are in partitions."
            )
        trees = range(len(self.estimators_))
        if self._bootstrap is None:
            return [np.arange(self._n_samples, dtype=np.int32) for _ in trees]
        return [self._bootstrap.rows(number) for number in trees]

    def to_sklearn(self) -> Any:
        """Return the fitted forest as scikit-learn's estimator.

        Its rows are compared as float32; see :meth:`maxmargin.DecisionTreeClassifier.to_sklearn`.
        """
        return forest_of(self)

    @property
    def feature_importances_(self) -> np.ndarray:
        """Mean of the trees' importances; they sum to one, unless no tree has a test."""
        check_is_fitted(self)
        mean = np.mean([tree.feature_importances_ for tree in self.estimators_], axis=0)
        total = mean.sum()
        return mean / total if total > 0 else mean


def sample_size(max_samples: Any, n: int) -> int:
    """Rows of a bootstrap sample: a number, a share, or as many as there are."""
    if max_samples is None or isinstance(max_samples, int | np.integer):
        return n if max_samples is None else int(max_samples)
    return max(1, round(n * max_samples))


def bootstrap_counts(seed: int, n: int, size: int) -> np.ndarray:
    """How often each of n rows is in a sample of a size, drawn with replacement."""
    return np.bincount(_drawn(seed, n, size), minlength=n)


def _drawn(seed: int, n: int, size: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(n, size=size)


class Bootstrap(NamedTuple):
    """Bootstrap samples of the trees, drawn again from their seeds whenever they are needed."""

    seeds: np.ndarray
    n: int
    size: int
    sampled: np.ndarray  # rows of positive weight: the others are not drawn

    def rows(self, number: int) -> np.ndarray:
        """Return the rows of a tree's sample in the order in which they are drawn."""
        drawn = _drawn(int(self.seeds[number]), len(self.sampled), self.size)
        return self.sampled[drawn].astype(np.int32)  # as scikit-learn's

    def counts(self, number: int) -> np.ndarray:
        """Return how often a tree's sample has each row."""
        return np.bincount(self.rows(number), minlength=self.n)


class Samples:
    """Which rows each tree sees and how heavily: the same for any number of threads."""

    def __init__(
        self, forest: Any, target: Target, weight: np.ndarray, n: int, seeds: np.ndarray
    ) -> None:
        self.seeds = seeds
        self.base = None if (weight == 1.0).all() else weight
        self.bootstrap = None
        if forest.bootstrap:
            sampled = np.flatnonzero(weight > 0)
            self.bootstrap = Bootstrap(seeds, n, sample_size(forest.max_samples, n), sampled)
        self.n, self.target = n, target
        self.each = getattr(forest, "class_weight", None) == "balanced_subsample"

    def weight(self, number: int) -> np.ndarray | None:
        """Weights of the rows for a tree; None where all are one."""
        if self.bootstrap is None:
            return self._balanced(self.base)
        counts = self.bootstrap.counts(number).astype(np.float64)
        return self._balanced(counts if self.base is None else counts * self.base)

    def _balanced(self, weight: np.ndarray | None) -> np.ndarray | None:
        """Make the classes of a sample equally heavy, in every output, where that is wanted."""
        if not self.each:
            return weight
        weight = np.ones(self.n) if weight is None else weight
        factor = np.ones(self.n)
        for index, count in zip(self.target.classes, self.target.n_classes, strict=True):
            factor *= class_weights("balanced", np.arange(count), index, weight)[index]
        return weight * factor
