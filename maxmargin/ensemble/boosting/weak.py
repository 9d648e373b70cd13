"""Weak learners: whoever finds a hypothesis for a distribution over the rows.

A booster asks for one hypothesis after the other, each for another distribution D over the same
rows. Stumps and trees of this package code the columns once for all rounds and know their answers
on the training rows without a prediction. Every other classifier is cloned and fitted anew: with
the weights ``n D``, whose mean is one as it is without weights (the C of a support vector machine
then means what it always does), or, if it takes no weights, on n rows drawn from D.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state

from maxmargin.backends.threads import ALONE, Workers
from maxmargin.ensemble.boosting.stump import DecisionStump, StumpSearch
from maxmargin.ensemble.learners import (
    may_be,
    member_of,
    refuse_wrong_parameters,
    takes_weights,
)
from maxmargin.ensemble.trees import BinnedColumns, DecisionTreeClassifier
from maxmargin.ensemble.trees.growth import never
from maxmargin.solvers.driver import Watch

_REDRAWN = 20  # samples that are drawn until one has two classes
OWN_LIMITS = ("class_weight", "time_limit", "callback")  # of a tree, which it reads itself

OWN = (DecisionStump, DecisionTreeClassifier)  # whose columns are coded once


class WeakLearner(ABC):
    """Finds hypotheses for distributions over the rows that it was made with.

    Attributes
    ----------
    exhaustive : bool
        Whether it returns a hypothesis of the least error among all of its kind.
    """

    exhaustive: bool = False

    @abstractmethod
    def learn(
        self, D: np.ndarray, seed: int, stopped: Callable[[], Any] = never
    ) -> tuple[Any, np.ndarray]:
        """Return a hypothesis, and the index of the class that it has for each row.

        ``stopped`` is called several times a second and may raise; where it returns a status, a
        tree ends its growth early.
        """


@dataclass
class Stumps(WeakLearner):
    """The stump of the least error."""

    prototype: DecisionStump
    search: StumpSearch
    classes: np.ndarray

    @property
    def exhaustive(self) -> bool:  # type: ignore[override]
        """Where no values were put into bins together."""
        store = self.search.columns.store
        return store.least is store.greatest or np.array_equal(store.least, store.greatest)

    def learn(  # noqa: D102
        self, D: np.ndarray, seed: int, stopped: Callable[[], Any] = never
    ) -> tuple[Any, np.ndarray]:
        stopped()
        stump = clone(self.prototype)
        return stump, stump._found(self.search, D, self.classes)


class Trees(WeakLearner):
    """A tree of this package, grown from columns that are coded once."""

    def __init__(
        self, prototype: Any, columns: BinnedColumns, index: np.ndarray, classes: np.ndarray
    ) -> None:
        self.prototype, self.classes = prototype, classes
        self.grower = clone(prototype)._grower(columns, index, classes)

    def learn(  # noqa: D102
        self, D: np.ndarray, seed: int, stopped: Callable[[], Any] = never
    ) -> tuple[Any, np.ndarray]:
        tree = clone(self.prototype)
        tree._keep_classes([self.classes])
        leaves = tree._grown_on_all(self.grower, len(D) * D, seed, stopped)
        return tree, classes_of_nodes(tree)[leaves]


@dataclass
class Refitted(WeakLearner):
    """Any classifier, fitted anew with weights or to a sample."""

    prototype: Any
    X: Any
    index: np.ndarray
    classes: np.ndarray

    def learn(  # noqa: D102
        self, D: np.ndarray, seed: int, stopped: Callable[[], Any] = never
    ) -> tuple[Any, np.ndarray]:
        stopped()
        random = check_random_state(seed)
        model = member_of(self.prototype, random)
        y = self.classes[self.index]
        if takes_weights(model):
            model.fit(self.X, y, sample_weight=len(D) * D)
        else:
            rows = self._drawn(D, random)
            model.fit(self.X[rows], y[rows])
        return model, class_index(model, self.X, self.classes)

    def _drawn(self, D: np.ndarray, random: Any) -> np.ndarray:
        """Draw as many rows as there are from D, of two classes at least."""
        for _ in range(_REDRAWN):
            rows = random.choice(len(D), size=len(D), p=D)
            if (self.index[rows] != self.index[rows[0]]).any():
                return rows
        raise ValueError(
            f"{type(self.prototype).__name__} takes no sample_weight, so it learns from rows that "
            f"are drawn from the distribution; {_REDRAWN} samples in turn had rows of one class "
            "only, so much weight is on few rows. Take a learner with weights, or fewer rounds."
        )


def giving_up(watch: Watch, begun: bool) -> Callable[[], Any]:
    """Return the stop check of a round's weak learner, which raises from the second round on.

    The first round is completed in any case, with a hypothesis whose fit ends early.
    """
    return Workers(1, watch.stopped).check if begun else watch.stopped


def weak_learner(
    estimator: Any, X: Any, index: np.ndarray, classes: np.ndarray, workers: Workers = ALONE
) -> WeakLearner:
    """Return who learns with such an estimator from the rows of X, which were checked.

    Parameters
    ----------
    estimator : classifier or None
        The prototype of all hypotheses; None for :class:`DecisionStump`.
    X : array or CSR matrix of shape (n, n_features)
    index : int array of shape (n,)
        The class of each row.
    classes : array of shape (n_classes,)
    workers : Workers
        Threads to code the columns.
    """
    estimator = DecisionStump() if estimator is None else estimator
    if not may_be(estimator, "classifier"):
        raise ValueError(
            f"Hypotheses are classifiers, and {type(estimator).__name__} is none: boost one, such "
            "as DecisionStump() or DecisionTreeClassifier(max_depth=3)."
        )
    refuse_wrong_parameters(estimator)
    own = any(getattr(estimator, name, None) is not None for name in OWN_LIMITS)
    if type(estimator) is DecisionStump and not own:
        columns = BinnedColumns.of(X, estimator.max_bins, workers)
        return Stumps(estimator, StumpSearch(columns, index, len(classes)), classes)
    if type(estimator) is DecisionTreeClassifier and not own:
        columns = BinnedColumns.of(X, estimator.max_bins, workers)
        return Trees(estimator, columns, index, classes)
    return Refitted(estimator, X, index, classes)


def class_index(hypothesis: Any, X: Any, classes: np.ndarray) -> np.ndarray:
    """Index of the class that a fitted hypothesis has for each row of X, which was checked."""
    if type(hypothesis) is DecisionStump:
        own = hypothesis._index(X)
    elif type(hypothesis) is DecisionTreeClassifier:
        own = classes_of_nodes(hypothesis)[hypothesis.tree_.apply(X)]
    else:
        labels = hypothesis.predict(X)
        index = np.searchsorted(classes, labels)
        if not np.array_equal(classes[np.minimum(index, len(classes) - 1)], labels):
            raise ValueError(
                f"{type(hypothesis).__name__} predicts labels that are none of {classes.tolist()}."
            )
        return index
    few = len(hypothesis.classes_) < len(classes)  # it was fitted to a sample
    return np.searchsorted(classes, hypothesis.classes_)[own] if few else own


def classes_of_nodes(tree: Any) -> np.ndarray:
    """Index of the class of each leaf of a tree, by its node."""
    nodes = np.zeros(tree.tree_.node_count, np.intp)
    leaves = np.flatnonzero(tree.tree_.is_leaf)
    nodes[leaves] = tree.tree_.values_at(leaves).argmax(axis=1)
    return nodes
