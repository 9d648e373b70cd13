"""Bagging over partitions: a member is fitted by a task, with its rows brought to one worker.

Replicates are drawn as in one place, from the seeds of the members and the number of all rows:
partitions do not matter. Where all rows have room on one worker, every worker gets them once, and
members share what they share in one place (a Gram matrix, columns in codes): the answer is the
same. Where they have not, each member gets the rows of its replicate, which must have room.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from dask.delayed import Delayed
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples

from maxmargin import memory
from maxmargin.backends.threads import StoppedError, Workers
from maxmargin.dask.collections import joined
from maxmargin.dask.ensemble.reading import several_outputs
from maxmargin.dask.fits import fit_partitions
from maxmargin.dask.rows import Block, Partitions, shell_of
from maxmargin.ensemble.bagging import BaggingClassifier, BaggingRegressor
from maxmargin.ensemble.bagging.members import Members
from maxmargin.ensemble.bagging.replicates import Replicates
from maxmargin.ensemble.learners import tags_of

_ROOM = 0.5  # of what a worker may keep, for rows that are brought together on it
_AHEAD = 16  # members of each thread, fitted before someone looks at them


@dataclass(frozen=True)
class Among:
    """Replicates as some rows see them: how often each of these was drawn.

    Parameters
    ----------
    all_rows : Replicates
    rows : int array
        Places of these rows among all, in order.
    """

    all_rows: Replicates
    rows: np.ndarray

    def __getattr__(self, name: str) -> Any:
        return getattr(object.__getattribute__(self, "all_rows"), name)

    @property
    def n_rows(self) -> int:
        """Rows."""
        return len(self.rows)

    def drawn(self, seed: int) -> tuple[np.ndarray, np.ndarray]:
        """Columns of a replicate, and those of its rows that are among these."""
        columns, drawn = self.all_rows.drawn(seed)
        if not len(self.rows):
            return columns, np.empty(0, dtype=np.intp)
        place = np.minimum(np.searchsorted(self.rows, drawn), len(self.rows) - 1)
        return columns, place[self.rows[place] == drawn]

    def counts(self, seed: int) -> np.ndarray:
        """How often each of the rows was drawn."""
        return np.bincount(self.drawn(seed)[1], minlength=self.n_rows)


# -- work of a worker ----------------------------------------------------------------------------


def whole(blocks: list[Block], classes: np.ndarray | None) -> tuple[Any, np.ndarray]:
    """All rows and their targets, in one place."""
    X = joined([block.X for block in blocks])
    y = np.concatenate([np.asarray(block.y) for block in blocks])
    return X, y if classes is None else classes[y]


def members_of(
    rows: tuple[Any, np.ndarray], estimator: Any, replicates: Replicates, seeds: np.ndarray, k: int
) -> list[Any]:
    """Fit members to replicates of all rows."""
    return Members(estimator, *rows, replicates, Workers(1)).fit(seeds, k)


def share_of(block: Block, begin: int, replicates: Replicates, seed: int) -> tuple:
    """Rows of a partition that a replicate has, each once: their places, X and y."""
    own = np.unique(Among(replicates, np.arange(begin, begin + block.n)).drawn(seed)[1])
    return own + begin, _safe_indexing(block.X, own), _safe_indexing(np.asarray(block.y), own)


def member_of_shares(
    shares: list[tuple], estimator: Any, replicates: Replicates, seed: int, k: int, classes: Any
) -> list[Any]:
    """Fit a member to the rows of its replicate."""
    shares = [share for share in shares if len(share[0])]
    places = np.concatenate([places for places, _, _ in shares])
    X, y = joined([X for _, X, _ in shares]), np.concatenate([y for *_, y in shares])
    y = y if classes is None else classes[y]
    among: Any = Among(replicates, places)
    return Members(estimator, X, y, among, Workers(1), share=False).fit(np.array([seed]), k)


def asked_out_of_bag(block: Block, begin: int, model: Any) -> tuple[np.ndarray, np.ndarray]:
    """What members say of those rows of a partition that they have not seen."""
    own = shell_of(model)
    vars(own).update(vars(model))
    own._replicates = Among(model._replicates, np.arange(begin, begin + block.n))
    return own._asked_out_of_bag(block.X)


# -- members -------------------------------------------------------------------------------------


class SpreadMembers:
    """Fits members of an ensemble to replicates of rows that lie with workers.

    As :class:`~maxmargin.ensemble.bagging.members.Members`, by tasks.
    """

    cut_short = False  # a member is fitted to its end or not at all

    def __init__(self, machine: Any, rows: Partitions) -> None:
        self.machine, self.rows, self.cluster = machine, rows, rows.cluster
        self.replicates: Replicates = machine._replicates
        room, self.all = int(_ROOM * self.cluster.budget()), None
        threads = self.cluster.n_threads
        name = type(machine.estimator_).__name__
        if rows.nbytes <= room:
            task = self.cluster.task(whole, list(rows.blocks), rows.classes)
            self.cluster.distribution.bytes_between += rows.nbytes * self.cluster.n_workers
            self.all = self.cluster.keep([task])[0]
            self.why = f"all rows on each worker, {name} fitted by tasks there"
            self.at_once = _AHEAD * threads
            return
        most = min(self.replicates.size, rows.n)
        distinct = rows.n * -np.expm1(-most / rows.n) if self.replicates.bootstrap else most
        needed = int(rows.nbytes / rows.n * distinct)
        if tags_of(machine.estimator_).input_tags.pairwise or needed > room:
            raise MemoryError(
                f"A member of {type(machine).__name__} is fitted by one worker, to about "
                f"{distinct:,.0f} different rows of {rows.n:,}: {memory.megabytes(needed)}, and "
                f"{memory.megabytes(room)} may be brought together there. Set max_samples to fewer "
                "rows, take workers with more memory (maxmargin.memory-per-worker), or a machine "
                "that is fitted where the rows lie: ExtraTreesClassifier(bootstrap=True), or a "
                "linear one."
            )
        self.why = f"each member's rows on one worker, {name} fitted by a task"
        self.needed, self.at_once = needed, 2 * threads

    def fit(
        self,
        seeds: np.ndarray,
        first: int = 0,
        stopped: Callable[[], Any] | None = None,
        told: Callable[[], Any] = lambda: None,
    ) -> list[Any]:
        """Fit a member to the replicate of each seed; none of them, where that is stopped."""
        tasks = self._shared(seeds, first) if self.all is not None else self._apart(seeds, first)
        try:
            found = self.cluster.run(tasks, stopped or (lambda: None))
        except StoppedError:
            return []
        machines = [machine for some in found for machine in some]
        for _ in machines:
            told()
        return machines

    def _shared(self, seeds: np.ndarray, first: int) -> list[Delayed]:
        """Return a task for each thread, with some of the members."""
        ends = np.linspace(0, len(seeds), min(self.cluster.n_threads, len(seeds)) + 1).astype(int)
        how = self.machine.estimator_, self.replicates
        return [
            self.cluster.task(members_of, self.all, *how, seeds[a:b], first + int(a), name="bag")
            for a, b in pairwise(ends)
        ]

    def _apart(self, seeds: np.ndarray, first: int) -> list[Delayed]:
        """Return a task for each member."""
        shared, tasks = self.cluster.share(self.replicates), []
        for k, seed in enumerate(seeds.tolist()):
            each = [[int(begin) for begin in self.rows.offsets]]
            shares = self.rows.map(share_of, shared, seed, each=each, name="replicate")
            how = self.machine.estimator_, shared, seed, first + k, self.rows.classes
            tasks.append(self.cluster.task(member_of_shares, shares, *how, name="member"))
            self.cluster.distribution.bytes_between += self.needed
        return tasks


# -- estimators ----------------------------------------------------------------------------------


@fit_partitions.register(BaggingClassifier)
@fit_partitions.register(BaggingRegressor)
def fit_bagging(machine: Any, X: Any, y: Any, sample_weight: Any = None) -> Any:
    """Fit members by tasks."""
    of_classes = isinstance(machine, BaggingClassifier)
    options: dict[str, Any] = (
        {} if of_classes else {"y_numeric": True, "multi_output": several_outputs(y)}
    )
    rows = Partitions.of(machine, X, y, sample_weight, classes=of_classes, **options)
    if of_classes:
        machine._keep_classes(rows.classes)
    weight = None
    if sample_weight is not None:
        weight = np.concatenate(rows.gathered(_weight))
    seeds = machine._missing_seeds(rows.n, weight)
    if len(seeds):
        machine._fit_seeds(lambda: SpreadMembers(machine, rows), seeds)
    if machine.oob_score:
        model = rows.cluster.share(_model(machine))
        each = [[int(begin) for begin in rows.offsets]]
        said = rows.gathered(asked_out_of_bag, model, each=each)
        y = np.concatenate(rows.gathered(_target))
        answers, counts = _alike([own for own, _ in said]), [count for _, count in said]
        targets = rows.classes[y] if of_classes else y  # type: ignore[index]
        machine._keep_out_of_bag(np.concatenate(answers), np.concatenate(counts), targets)
    machine.distribution_ = rows.cluster.distribution
    return machine


def _model(machine: Any) -> Any:
    """Return the machine as it is now, without who listens to it."""
    model = shell_of(machine)
    kept = {name: value for name, value in vars(machine).items() if name not in vars(model)}
    vars(model).update({k: v for k, v in kept.items() if k.endswith("_") or k.startswith("_")})
    return model


def _alike(parts: list[np.ndarray]) -> list[np.ndarray]:
    """Answers of the same shape, also where a partition has none."""
    most = max(part.ndim for part in parts)
    width = max(part.shape[-1] for part in parts if part.ndim == most)
    return [
        part if part.ndim == most else np.full((_num_samples(part), width), np.nan)
        for part in parts
    ]


def _weight(block: Block) -> np.ndarray:
    return block.weight


def _target(block: Block) -> np.ndarray:
    return np.asarray(block.y)
