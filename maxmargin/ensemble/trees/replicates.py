"""Trees on many bootstrap replicates of one data set, from columns that are coded once.

A replicate is the weights of the rows: how often each was drawn. What sorting and coding the
columns costs is paid once for all trees; each is that of ``fit(X, y, sample_weight=counts)``.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from sklearn.base import clone

from maxmargin.backends.threads import StoppedError, Workers
from maxmargin.ensemble.trees.base import seeds
from maxmargin.ensemble.trees.columns import BinnedColumns
from maxmargin.ensemble.trees.growth import Grower, count_of_features, never
from maxmargin.solution import Status

_AT_ONCE = 64
_OF_DATA = ("n_features_in_", "feature_names_in_", "classes_", "n_classes_", "n_outputs_")


class TreeReplicates:
    """Fits clones of a tree to replicates of the data.

    Parameters
    ----------
    tree : DecisionTreeClassifier or DecisionTreeRegressor
    X, y : validated data
    """

    why = "columns coded once for all replicates"
    at_once = _AT_ONCE
    cut_short = False  # whether the first tree of all was stopped before it was grown

    def __init__(self, tree: Any, X: Any, y: Any) -> None:
        self.pattern = clone(tree)
        self.pattern._validate_params()
        X, self.target, _ = self.pattern._read(X, y, None)
        count_of_features(self.pattern.max_features, X.shape[1])
        workers = self.pattern._workers(X.shape[0] * X.shape[1])
        self.columns = BinnedColumns.of(X, self.pattern.max_bins, workers)
        self.classes = getattr(self.pattern, "classes_", None)
        if self.classes is not None:
            self.index = np.searchsorted(self.classes, y)

    def fit(
        self,
        machines: Sequence[Any],
        counts: np.ndarray,
        workers: Workers,
        stopped: Callable[[], Any] = never,
        told: Callable[[], Any] = lambda: None,
        first: int = 0,
    ) -> list[Any]:
        """Grow a tree from each replicate, given by its counts (machines, rows).

        Returns the first ones only where it is stopped. ``first`` is the number of the first of
        them: number 0 ends its growth early, the others are given up.
        """
        give_up = Workers(1, stopped).check
        growers: dict[int, Grower] = {}  # one to a thread, with its room
        done = np.zeros(len(machines), dtype=bool)

        def grow(k: int) -> None:
            own = threading.get_ident()
            if own not in growers:
                growers[own] = Grower(self.columns, self.target)
            if first + k:
                give_up()
            machine, weight = machines[k], counts[k].astype(np.float64)
            machine._validate_params()
            if self.classes is not None:
                weight = machine._weighed(weight, [self.classes], self.index[None])
            seed = seeds(machine.random_state, 1)[0]
            machine._grown(growers[own], weight, seed, give_up if first + k else stopped)
            for name in _OF_DATA:
                if hasattr(self.pattern, name):
                    setattr(machine, name, getattr(self.pattern, name))
            machine.status_ = (stopped() if first + k == 0 else None) or Status.COMPLETED
            self.cut_short |= machine.status_.stopped
            del machine.training_leaves_
            done[k] = True
            told()

        with suppress(StoppedError):
            workers.map(grow, range(len(machines)))
        whole = len(machines) if done.all() else int(np.argmin(done))
        return list(machines[:whole])
