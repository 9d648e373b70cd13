"""Probabilities on Dask collections: values of rows by machines that have not seen them.

Rows are dealt to five folds as in memory (:mod:`maxmargin.svm.out_of_fold`), for which the class
and the weight of each come to the process that fits; so do the values in the end, a number for each
row and machine. A fold is fitted where the rows lie, with weights of zero for those held out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing

from maxmargin.backends.threads import StoppedError
from maxmargin.dask.answers import sent
from maxmargin.dask.rows import Block, Partitions, labels_and_weights
from maxmargin.progress import Monitor
from maxmargin.solution import Status
from maxmargin.svm.out_of_fold import FOLDS, Found, fold_tolerance
from maxmargin.svm.probability import kind_of

Left = tuple[Any, Status, float]  # a machine without a fold, how its fit ended, and its violation
_NOTHING = np.empty(0)


def calibrate(
    machine: Any,
    rows: Partitions,
    monitor: Monitor,
    without: Callable[[Partitions, np.ndarray, float, Monitor], Left],
) -> None:
    """Fit what makes probabilities of a machine's values, if it is to have them.

    ``without`` fits a machine to part of the rows, given as partitions in which the others weigh
    nothing, with the weight of each class that is left, ``tol``, and who may stop it.
    """
    if kind_of(machine.probability) is None:
        machine._calibrate(lambda number, everywhere: (None, []), _NOTHING, _NOTHING)
        return
    found = rows.gathered(labels_and_weights)
    index, weight = (np.concatenate(arrays) for arrays in zip(*found, strict=True))
    counts = np.where(machine.class_weight_[index] > 0, weight, 0.0)

    def values(number: np.ndarray, everywhere: bool) -> tuple[Any, list[Found]]:
        folds = SpreadFolds(machine, rows, index, weight, without, monitor)
        return folds, folds.values(number, everywhere)

    machine._calibrate(values, index, counts)


class SpreadFolds:
    """Out-of-fold values of a machine whose rows lie in partitions, in the time that is left."""

    def __init__(
        self,
        machine: Any,
        rows: Partitions,
        index: np.ndarray,
        weight: np.ndarray,
        without: Callable[[Partitions, np.ndarray, float, Monitor], Left],
        fit: Monitor,
    ) -> None:
        self.machine, self.rows, self.index, self.weight = machine, rows, index, weight
        self.without, self.tol = without, fold_tolerance(machine.tol)
        self.monitor = Monitor(None if fit.time_limit is None else fit.time_limit - fit.seconds)
        self.monitor.reason = fit.reason
        self.status, self.violation = Status.CONVERGED, 0.0

    def values(self, number: np.ndarray, everywhere: bool) -> list[Found]:
        """Rows and values of each machine, given the fold of each row, or -1.

        On the rows that it sees or, ``everywhere``, on all that take part; zero where nothing was
        found out.
        """
        code = self.machine.scheme_.code
        values = np.zeros((len(number), len(code)))
        with self.monitor.catching_interrupts():
            try:
                for fold in range(FOLDS):
                    if (number == fold).any():
                        values[number == fold] = self._of_fold(number, fold)
            except StoppedError:
                self._note(self.monitor.reason or Status.INTERRUPTED, np.inf)
        part = number >= 0
        seen = [np.flatnonzero(part & (everywhere | (own != 0)[self.index])) for own in code]
        return [(rows, values[rows, k]) for k, rows in enumerate(seen)]

    def _note(self, status: Status, violation: float) -> None:
        """Remember the worst that has come of a fold."""
        self.status = max(self.status, status, key=lambda one: one.severity)
        self.violation = max(self.violation, violation)

    def _of_fold(self, number: np.ndarray, fold: int) -> np.ndarray:
        """Values of the rows of a fold, by a machine that was fitted to the others."""
        if self.monitor.stopped():
            raise StoppedError
        rows, code = self.rows, self.machine.scheme_.code
        pieces = np.split(number, rows.offsets[1:])
        blocks = rows.map(_without, fold, each=(pieces,), name="fold")
        if rows.cluster.distribution.kept:
            blocks = rows.cluster.keep(blocks)
        part = replace(rows, blocks=blocks)
        mass = np.bincount(self.index, self.weight * (number != fold), len(self.machine.classes_))
        found, status, violation = self.without(part, mass, self.tol, self.monitor)
        if status is not Status.TRIVIAL:
            self._note(status, violation)
        model = sent(rows.cluster, found)
        tasks = rows.map(_held_out, model, fold, each=(pieces,), name="held_out")
        values = np.concatenate(rows.cluster.run(tasks, self.monitor.stopped))
        for k, own in enumerate(code):
            sides = [side for side in (-1.0, 1.0) if mass[own == side].sum() > 0]
            if len(sides) == 1 and not self.machine.scheme_.direct:
                values[:, k] = sides[0]  # all that can be said
        return values


def _without(block: Block, number: np.ndarray, fold: int) -> Block:
    """Return a partition in which the rows of a fold weigh nothing."""
    return block._replace(weight=np.where(number == fold, 0.0, block.weight))


def _held_out(block: Block, number: np.ndarray, model: Any, fold: int) -> np.ndarray:
    """Values of the rows of a fold."""
    if not (number == fold).any():
        return np.empty((0, len(model.scheme_.code)))
    return model._machine_values(_safe_indexing(block.X, np.flatnonzero(number == fold)))
