"""The data of a search as its machines see them: made once for all fits that see the same."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import _safe_indexing

from maxmargin.kernels import Input
from maxmargin.selection.data_set import DataSet, Rows, Splits, used_rows
from maxmargin.selection.plan import REFUSALS, Candidate
from maxmargin.selection.scikit_learn import Manners, Transformers

LeaveAlone = Callable[..., None]  # of candidates, a reason and splits
_NOT_LEARNABLE = "Its training rows do not have all classes of the data, with some weight."


class TrainingSide(NamedTuple):
    """Training rows of a split, its other rows' numbers, and the transformers fitted to it."""

    split: int
    test: np.ndarray
    X: Any
    y: Any
    weight: Any
    transformers: Transformers | None


class _Made(NamedTuple):
    """Data sets for candidates that see the same data, and which splits are left out, and why."""

    sets: list[DataSet]
    left_out: list[tuple[str, tuple[int, ...]]]


@dataclass
class SharedData:
    """The data of a search, which ``manners`` has, over some of its splits.

    With ``keeps``, what was made is kept for who asks again, and with it the kernel matrices, in
    ``budget`` bytes: where the fits of one search are many pieces of work, each for a split and a
    kernel, and several threads ask.
    """

    manners: Manners
    splits: Splits
    sample_weight: Any
    keeps: bool = False
    budget: float = np.inf
    _kept: list[tuple[Candidate, Any, _Made]] = field(default_factory=list)
    _lock: Any = field(default_factory=threading.RLock)

    def sets(
        self, group: list[Candidate], wanted: list[int], leave_alone: LeaveAlone
    ) -> Iterator[DataSet]:
        """Yield the data as machines see them, with the folds of the splits that are wanted.

        They are a whole for all splits or, behind transformers, one for each.
        """
        steps = group[0].steps
        if steps and group[0].kernel.input not in (Input.VECTORS, Input.SEQUENCES):
            reason = "Transformers stand before a kernel that takes neither vectors nor sequences."
            leave_alone(group, reason)
            return
        for which in wanted if steps else [None]:
            made = self._once(group, which)
            for reason, splits in made.left_out:
                own = [split for split in splits if split in wanted]
                if own:
                    leave_alone(group, reason, *own)
            for data in made.sets:
                folds = [fold for fold in data.folds if fold.split in wanted]
                yield replace(data, folds=folds)

    def _once(self, group: list[Candidate], which: int | None) -> _Made:
        if not self.keeps:
            return self._make(group, which)
        with self._lock:
            for candidate, other, made in self._kept:
                if other == which and candidate.same_data(group[0]):
                    return made
            made = self._make(group, which)
            self._kept.append((group[0], which, made))
            return made

    def _make(self, group: list[Candidate], which: int | None) -> _Made:
        """Put the data of all splits, or behind transformers those of one, in order."""
        made = _Made([], [])
        rows = self._rows(group, made) if which is None else self._transformed(group, which, made)
        for some, splits in rows:
            try:
                data = DataSet.of(group[0], some, splits)
            except REFUSALS as error:
                numbers = tuple(number for number, *_ in splits)
                made.left_out.append((f"The data are refused: {error}", numbers))
                continue
            folds, data.folds = data.folds, []
            for fold in folds:
                if data.targets.learnable(fold):
                    data.folds.append(fold)
                else:
                    made.left_out.append((_NOT_LEARNABLE, (fold.split,)))
            data.budget = int(min(data.budget, self.budget))
            if self.keeps:
                data.kept = {}
            made.sets.append(data)
        return made

    def _rows(self, group: list[Candidate], made: _Made) -> Iterator[tuple[Rows, Splits]]:
        """Yield rows that splits have in common, and these splits."""
        candidate, manners = group[0], self.manners
        try:
            rows = Rows.validated(candidate, manners.X, manners.y, self.sample_weight)
            parts = list(used_rows(self.splits))
        except REFUSALS as error:  # a fit raises the same, where it concerns that fit
            numbers = tuple(number for number, *_ in self.splits)
            made.left_out.append((f"The data are refused: {error}", numbers))
            return
        for used, splits in parts:
            whole = len(used) == len(rows.y)
            yield rows if whole else rows.taken(used, candidate.kernel.pairwise), splits

    def _transformed(
        self, group: list[Candidate], split: int, made: _Made
    ) -> Iterator[tuple[Rows, Splits]]:
        """Yield the rows of a split, first those for training."""
        candidate = group[0]

        def leave_out(_: Any, reason: str, *splits: int) -> None:
            made.left_out.append((reason, splits))

        for side in self.training_sides(group, [split], leave_out):
            assert side.transformers is not None
            y_test = _safe_indexing(self.manners.y, side.test)
            try:
                rows = Rows.validated(candidate, side.X, side.y, side.weight)
                both = rows.before(candidate, side.transformers.test_, y_test)
            except REFUSALS as error:
                leave_out(group, f"The data are refused: {error}", split)
                continue
            n = len(rows.y)
            yield both, [(split, np.arange(n), np.arange(n, len(both.y)))]

    def training_sides(
        self, group: list[Candidate], wanted: list[int], leave_alone: LeaveAlone
    ) -> Iterator[TrainingSide]:
        """Yield the training rows of splits, as the transformers leave them if there are any.

        Where these fail, the split is left out.
        """
        for number, train, test in self.splits:
            if number not in wanted:
                continue
            made = None
            if group[0].steps:
                made, failure = self.manners.transformed(group[0].estimator[:-1], train, test)
                if failure is not None:
                    leave_alone(group, f"The transformers fail: {failure}", number)
                    continue
            X = _safe_indexing(self.manners.X, train) if made is None else made.train_
            weight = self.sample_weight
            weight = None if weight is None else _safe_indexing(weight, train)
            y = _safe_indexing(self.manners.y, train)
            yield TrainingSide(number, test, X, y, weight, made)
