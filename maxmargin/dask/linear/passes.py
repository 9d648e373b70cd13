"""Passes over rows that lie on a cluster: a function of each block, and the sum over all.

What is added up are tuples of numbers and arrays, entry by entry, and lists, which are joined. A
task has all blocks of its group (:meth:`~maxmargin.dask.rows.Partitions.groups`), so that a pass
over rows that are kept takes as many tasks as there are threads, and one that combines them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

import numpy as np

from maxmargin.backends.cpu.linear import Design
from maxmargin.backends.threads import ALONE, StoppedError, Workers, on_one_blas_thread
from maxmargin.dask.cluster import Cluster, size_of
from maxmargin.dask.linear.vectors import Held, Place, RowVector
from maxmargin.dask.reductions import added
from maxmargin.dask.rows import Block, Group
from maxmargin.risk import Penalty, RegularisedRisk, SoftmaxRisk

_NAMES = count()


class Pose:
    """How a block becomes a problem: what a machine makes of its labels and weights.

    Parameters
    ----------
    template : RegularisedRisk or SoftmaxRisk
        A problem of the same kind, of no rows.
    factors : float array (n_classes,), optional
        What the weight of a row of each class is multiplied by, zero where a machine does not see
        it; without them y are numbers.
    codes : float array (n_classes,), optional
        Labels -1 and +1 of the classes; without them all classes are one problem.
    column : int
        Which of several columns of numbers is the target.
    scale : float
        Cost of a row of weight one.
    """

    def __init__(
        self,
        template: Any,
        factors: np.ndarray | None = None,
        codes: np.ndarray | None = None,
        column: int = 0,
        scale: float = 1.0,
    ) -> None:
        self.template, self.factors, self.codes = template, factors, codes
        self.column, self.scale = column, scale

    def times(self, factor: float) -> Pose:
        """Return the same at costs so many times as large."""
        return Pose(self.template, self.factors, self.codes, self.column, self.scale * factor)

    @property
    def penalty(self) -> Penalty:
        """What holds the weights back."""
        return self.template.penalty

    def risk(self, block: Block, workers: Workers = ALONE) -> Any:
        """Problem of the rows of a block that cost anything."""
        X, cost, like = block.X, self.scale * block.weight, self.template
        if self.factors is None:
            y = np.asarray(block.y, dtype=np.float64).reshape(block.n, -1)[:, self.column]
        else:
            cost = self.scale * self.factors[block.y] * block.weight
            y = block.y if self.codes is None else self.codes[block.y]
        used = cost > 0
        if not used.all():
            X, y, cost = X[used], y[used], cost[used]
        design = Design(X, like.design.constant, workers)
        if isinstance(like, SoftmaxRisk):
            return SoftmaxRisk(design, y, like.n_classes, cost, like.penalty)
        y = np.ascontiguousarray(y)
        penalised = like.penalised_intercept
        return RegularisedRisk(design, y, cost, like.loss, penalised, like.penalty)


class Passes:
    """Passes over groups of blocks.

    Parameters
    ----------
    cluster : Cluster
    groups : list of Group
    """

    def __init__(self, cluster: Cluster, groups: list[Group]) -> None:
        self.cluster, self.groups = cluster, groups
        self._stopped: Callable[[], Any] = lambda: None

    @contextmanager
    def heeding(self, stopped: Callable[[], Any]) -> Iterator[None]:
        """Stop passes in their middle where somebody says so, with ``StoppedError``."""
        before, self._stopped = self._stopped, stopped
        try:
            yield
        finally:
            self._stopped = before

    def total(self, pose: Pose, function: Callable, *args: Any) -> tuple:
        """Sum of what a function returns of each place; vectors among the arguments are made there.

        ``function(place, *args)`` returns a tuple of what can be added.
        """
        if self._stopped():
            raise StoppedError
        cluster, question = self.cluster, _Question(pose, function, args)
        tasks = [cluster.task(_looked, *own, name="pass") for own in self._of_groups(question)]
        (found,) = cluster.run([cluster.total(tasks, added)], self._stopped)
        cluster.distribution.bytes_to_workers += len(tasks) * question.nbytes
        for part in found:  # sums of every task, and lists of what each had
            times = 1 if isinstance(part, list) else len(tasks)
            cluster.distribution.bytes_between += times * size_of(part)
        return found

    def held(self, pose: Pose, vector: RowVector) -> Held:
        """Have a vector made now, and kept where its rows are."""
        question = _Question(pose, np.asarray, (vector,))
        tasks = [self.cluster.task(_made, *own, name="rows") for own in self._of_groups(question)]
        return Held(len(vector), next(_NAMES), self.cluster.keep(tasks))

    def _of_groups(self, question: _Question) -> Iterator[list]:
        """Arguments of a task for each group."""
        kept = question.held()
        names = [one.name for one in kept]
        for k, group in enumerate(self.groups):
            yield [*group, question, names, [one.tasks[k] for one in kept]]


class _Question:
    """What is done in a pass, as one argument that Dask does not look into."""

    def __init__(self, pose: Pose, function: Callable, args: tuple) -> None:
        self.pose, self.function, self.args = pose, function, args

    def held(self) -> list[Held]:
        """Vectors among the arguments that workers keep, each once."""
        found = {one.name: one for a in self.args if isinstance(a, RowVector) for one in a.held()}
        return list(found.values())

    @property
    def nbytes(self) -> int:
        """About how much it is to send."""
        return sum(a.nbytes for a in self.args if isinstance(a, np.ndarray)) + 1000


def _places(
    blocks: list[Block], firsts: list[int], question: _Question, names: list[int], held: list[list]
) -> Iterator[Place]:
    """Each block as a problem, with what is kept of it."""
    for k, (block, first) in enumerate(zip(blocks, firsts, strict=True)):
        kept = {name: arrays[k] for name, arrays in zip(names, held, strict=True)}
        yield Place(question.pose.risk(block), block.number, first, kept)


@on_one_blas_thread
def _looked(
    blocks: list[Block], firsts: list[int], question: _Question, names: list[int], held: list[list]
) -> tuple:
    """Sum of a function over the blocks of a group; those without rows add nothing."""
    found: list = []
    for place in _places(blocks, firsts, question, names, held):
        if place.risk.n:
            found.append(question.function(place, *map(place.value, question.args)))
    return added(found)


@on_one_blas_thread
def _made(
    blocks: list[Block], firsts: list[int], question: _Question, names: list[int], held: list[list]
) -> list[np.ndarray]:
    """Return a vector's numbers for each block of a group."""
    places = _places(blocks, firsts, question, names, held)
    return [place.value(question.args[0]) if place.risk.n else np.empty(0) for place in places]
