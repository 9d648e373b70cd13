"""Bagging: the same learner on many bootstrap replicates, and their votes or their mean."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import MetaEstimatorMixin
from sklearn.utils import check_consistent_length
from sklearn.utils._metadata_requests import _raise_for_params, _routing_enabled
from sklearn.utils._param_validation import HasMethods, Interval, RealNotInt
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.validation import _num_samples, check_is_fitted

from maxmargin.backends.threads import Workers, thread_count
from maxmargin.ensemble.bagging.members import Members, are_strings, asked, shares_fits
from maxmargin.ensemble.bagging.replicates import Replicates, replicate_size, seeds_of
from maxmargin.ensemble.learners import HasMembers, tags_of
from maxmargin.estimators.base import WATCHED, Estimator
from maxmargin.estimators.data import validate_data
from maxmargin.estimators.warn import warn
from maxmargin.solution import Status

_TOGETHER = 64  # members whose answers are held at a time
_FEW_DRAWN = 10  # rows of a replicate up to which a share of the weights looks like a mistake
_OUT_OF_BAG = ("oob_score_", "oob_decision_function_", "oob_prediction_", "oob_count_")


class Bagging(HasMembers, MetaEstimatorMixin, Estimator):
    """What bagging of classes and of numbers have in common."""

    estimator: Any
    n_estimators: int
    max_samples: Any
    max_features: Any
    bootstrap: bool
    bootstrap_features: bool
    oob_score: Any
    warm_start: bool
    random_state: Any
    estimators_: list[Any]

    _parameter_constraints: dict = {
        "estimator": [HasMethods(["fit", "predict"]), None],
        "n_estimators": [Interval(Integral, 1, None, closed="left")],
        "max_samples": [
            None,
            Interval(Integral, 1, None, closed="left"),
            Interval(RealNotInt, 0, None, closed="neither"),
        ],
        "max_features": [
            Interval(Integral, 1, None, closed="left"),
            Interval(RealNotInt, 0, 1, closed="right"),
        ],
        "bootstrap": ["boolean"],
        "bootstrap_features": ["boolean"],
        "oob_score": ["boolean", callable],
        "warm_start": ["boolean"],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
        **{name: some for name, some in WATCHED.items() if name != "trace"},
    }

    @abstractmethod
    def _default(self) -> Any:
        """Return the learner of an ensemble that has none given."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = tags_of(self._learner()).input_tags
        tags.input_tags.sparse, tags.input_tags.pairwise = inner.sparse, inner.pairwise
        tags.input_tags.allow_nan = inner.allow_nan
        return tags

    def _learner(self) -> Any:
        return self._default() if self.estimator is None else self.estimator

    # -- metadata routing ----------------------------------------------------------------------

    @abstractmethod
    def _asks(self) -> dict[str, str]:
        """Methods of the ensemble, and which of the members' each of them calls."""

    def get_metadata_routing(self) -> MetadataRouter:
        """Return what the ensemble takes itself (``sample_weight``), and what members may ask for.

        Returns
        -------
        routing : MetadataRouter
        """
        mapping = MethodMapping()
        for caller, callee in {"fit": "fit", **self._asks()}.items():
            mapping.add(caller=caller, callee=callee)
        router = MetadataRouter(owner=self).add_self_request(self)
        return router.add(estimator=self._learner(), method_mapping=mapping)

    def _routed(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Return the metadata of a call that go on to the members."""
        _raise_for_params(params, self, method)
        if not params or not _routing_enabled():
            return {}
        callee = {"fit": "fit", **self._asks()}[method]
        return process_routing(self, method, **params).estimator[callee]

    # -- fitting -------------------------------------------------------------------------------

    def _fit_members(self, X: Any, y: Any, sample_weight: Any, metadata: dict[str, Any]) -> None:
        """Fit the members that are missing, or as many of them as there is time for."""
        weight = None if sample_weight is None else self._validated_weight(sample_weight, X)
        self._warn_of_weights(weight)
        for name in _OUT_OF_BAG:  # left by an earlier fit
            self.__dict__.pop(name, None)
        seeds = self._missing_seeds(_num_samples(X), weight)
        if len(seeds):
            how = self.estimator_, X, y, self._replicates, self._threads()
            self._fit_seeds(lambda: Members(*how, metadata=metadata), seeds)
        if self.oob_score:
            self._keep_out_of_bag(*self._asked_out_of_bag(X), y)

    def _missing_seeds(self, n: int, weight: np.ndarray | None) -> np.ndarray:
        """Say how replicates of so many rows are drawn; returns the seeds of those to come."""
        self.estimator_ = self._learner()
        replicates = self._drawing(n, weight)
        known = getattr(self, "_replicates", None)
        if not (self.warm_start and hasattr(self, "estimators_")):
            self.estimators_, self._seeds = [], np.empty(0, dtype=np.int64)
        elif known is not None and not known.same(replicates):
            raise ValueError(
                "warm_start=True adds members whose replicates are drawn like those of the last "
                f"fit ({known.in_words()}), and now they are not ({replicates.in_words()}): use "
                "warm_start=False for other data, weights or sizes."
            )
        before = len(self.estimators_)
        more = self.n_estimators - before
        if more < 0:
            raise ValueError(
                f"n_estimators={self.n_estimators} must be larger or equal to "
                f"len(estimators_)={before} when warm_start==True"
            )
        self._replicates = replicates
        if not more:
            warn(
                "Warm-start fitting without increasing n_estimators does not fit new members.",
                UserWarning,
            )
            return np.empty(0, dtype=np.int64)
        return seeds_of(self.random_state, more, before)

    def _fit_seeds(self, who_fits: Callable[[], Any], seeds: np.ndarray) -> None:
        """Fit members to the replicates of seeds, by somebody like :class:`Members`."""
        before, total = len(self.estimators_), len(self.estimators_) + len(seeds)
        with self._watched() as monitor:
            members = who_fits()
            self.sharing_ = members.why
            done = before

            def told() -> None:
                nonlocal done
                done += 1
                monitor.report_parts("Bagging", done, total, "members")

            machines: list[Any] = []
            at_once = members.at_once if self.time_limit is None else 1
            while len(machines) < len(seeds):
                some, first = seeds[len(machines) : len(machines) + at_once], before + len(machines)
                fitted = (
                    []
                    if first and monitor.stopped()
                    else members.fit(some, first, monitor.stopped, told)
                )
                machines += fitted
                if len(fitted) < len(some):
                    break
                at_once = min(2 * at_once, members.at_once)  # who is stopped loses few of them
            if not machines and not before:
                machines = members.fit(seeds[:1])  # an ensemble has a member
            self.estimators_ = self.estimators_ + machines
            self._seeds = np.append(self._seeds, seeds[: len(machines)])
            missing = len(seeds) - len(machines)
            self.status_ = Status.COMPLETED
            if missing or members.cut_short:
                self.status_ = monitor.stopped() or Status.INTERRUPTED
            self.fit_status_ = int(self.status_.stopped)
            if self.verbose:
                monitor.end(f"{total - missing} of {total} members", self.status_.finished)
        if self.status_.stopped:
            warn(
                self.status_.advice_for("ensemble").format(
                    there=total - missing,
                    wanted=total,
                    members="members",
                    time_limit=self.time_limit or 0.0,
                )
            )

    def _drawing(self, n: int, weight: np.ndarray | None) -> Replicates:
        """How replicates are drawn, or why they cannot be."""
        width, there = self.max_features, getattr(self, "n_features_in_", 1)  # strings have one
        if not isinstance(width, Integral):
            width = max(1, int(width * there))
        if width > there:
            raise ValueError(
                f"max_features must be <= n_features: {width} of {there} were asked for."
            )
        if not self.bootstrap and self.oob_score:
            raise ValueError("Out of bag estimation only available if bootstrap=True")
        size = replicate_size(self.max_samples, n, weight)
        if not self.bootstrap and size > (n if weight is None else np.count_nonzero(weight)):
            raise ValueError(
                f"Effective max_samples={size} must be <= n_samples={n} to be able to sample "
                "without replacement. Rows of weight zero cannot be drawn."
            )
        how = self.bootstrap, self.bootstrap_features, weight
        return Replicates(n, there, size, int(width), *how)

    def _threads(self) -> Workers:
        """Threads for members. By default they come one after the other, with theirs inside."""
        if self.n_jobs is None and not shares_fits(self.estimator_):
            return Workers(1)
        return Workers(thread_count(self.n_jobs))

    def _warn_of_weights(self, weight: np.ndarray | None) -> None:
        """Warn where sample weights leave few rows to draw, or rows are drawn once at most."""
        if weight is None:
            return
        if not self.bootstrap:
            warn(
                f"When fitting {type(self).__name__} with sample_weight it is recommended to use "
                "bootstrap=True: without replacement, heavy rows are drawn once at most.",
                UserWarning,
            )
        share, total = self.max_samples, float(weight.sum())
        if share is None or isinstance(share, Integral):
            return
        size = max(int(share * total), 1)
        if size <= _FEW_DRAWN < share * len(weight):
            warn(
                f"Using the fractional value max_samples={share} when the total sum of sample "
                f"weights is {total} results in a low number ({size}) of bootstrap samples. We "
                "recommend passing `max_samples` as an integer.",
                UserWarning,
            )

    # -- what the members saw ------------------------------------------------------------------

    @property
    def estimators_samples_(self) -> list[np.ndarray]:
        """Rows that each member was fitted to, as they were drawn."""
        check_is_fitted(self)
        return [self._replicates.drawn(int(seed))[1] for seed in self._seeds]

    @property
    def estimators_features_(self) -> list[np.ndarray]:
        """Columns that each member was fitted to, as they were drawn."""
        check_is_fitted(self)
        every = np.arange(self._replicates.n_columns)
        columns = [self._replicates.columns(int(seed)) for seed in self._seeds]
        return [every if own is None else own for own in columns]

    def _columns(self, members: slice) -> list[np.ndarray | None]:
        return [self._replicates.columns(int(seed)) for seed in self._seeds[members]]

    # -- answers -------------------------------------------------------------------------------

    def _answers(
        self, X: Any, method: str, out_of_bag: bool = False, metadata: dict[str, Any] | None = None
    ) -> Any:
        """Yield each member with its answers at the rows of X and which rows these are.

        ``out_of_bag``: at the training rows that it was not fitted to.
        """
        for first in range(0, len(self.estimators_), _TOGETHER):
            part = slice(first, first + _TOGETHER)
            machines, rows = self.estimators_[part], None
            if out_of_bag:
                counts = [self._replicates.counts(int(seed)) for seed in self._seeds[part]]
                rows = [np.flatnonzero(own == 0) for own in counts]
            columns, threads = self._columns(part), self._threads()
            answers = asked(machines, method, X, columns, threads, rows, metadata)
            where: Any = [slice(None)] * len(machines) if rows is None else rows
            yield from zip(machines, answers, where, strict=True)

    @abstractmethod
    def _asked_out_of_bag(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return what members say of training rows that they have not seen, and how many do."""

    @abstractmethod
    def _keep_out_of_bag(self, said: np.ndarray, counts: np.ndarray, y: Any) -> None:
        """Set out-of-bag predictions and their score."""

    def _validated(self, X: Any, y: Any, *_: Any, **options: Any) -> tuple[Any, Any]:
        """Check training data: as :meth:`_checked` does, since it is the members that take it."""
        return self._checked(X, y, **options)

    def _checked(self, X: Any, y: Any = "no_validation", **options: Any) -> Any:
        """Check shapes; tables keep their columns' names and types for the members."""
        inner, first = tags_of(self._learner()).input_tags, not isinstance(y, str)
        if are_strings(X):
            if first:
                check_consistent_length(X, y)
            return (X, y) if first else X
        if hasattr(X, "columns") and not sp.issparse(X):
            return validate_data(self, X, y, reset=first, skip_check_array=True)
        return validate_data(
            self,
            X,
            y,
            accept_sparse=["csr", "csc"] if inner.sparse else False,
            ensure_all_finite=False,  # members check: one may impute missing values
            dtype=None,
            reset=first,
            **options,
        )
