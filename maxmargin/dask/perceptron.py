"""The perceptron on Dask collections: the weights go from partition to partition.

A pass is a chain of tasks, one for each partition, that take the weights and hand them on. In the
order of the rows (``order="cyclic"`` or ``"misclassified"``) every update is that of rows in
memory. ``"shuffled"`` draws the order of the partitions, and that of the rows within each: rows do
not move. Labels and weights, and how much step each row was used with, are where the fit is.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from maxmargin.backends.cpu.linear.rows import rows_of
from maxmargin.backends.threads import StoppedError
from maxmargin.dask.fits import fit_partitions
from maxmargin.dask.gathered import fit_gathered
from maxmargin.dask.rows import Block, Partitions, labels_and_weights
from maxmargin.linear.perceptron import Perceptron
from maxmargin.multiclass import read_class_weights
from maxmargin.solvers.perceptron.passes import order_of_rows
from maxmargin.solvers.perceptron.state import (
    EXAMPLE,
    LinearState,
    Penalty,
    PerceptronState,
    Sizes,
    look,
    state_of,
    visit,
)


@fit_partitions.register
def _(machine: Perceptron, X: Any, y: Any, sample_weight: Any = None, **start: Any) -> Any:
    """Fit a perceptron; one with a kernel needs all rows in one place."""
    if machine.kernel is not None:
        return fit_gathered(machine, X, y, sample_weight, **start)
    machine._refuse_contradictions()
    _refuse(machine)
    rows = Partitions.of(machine, X, y, sample_weight, classes=True)
    assert rows.classes is not None
    machine.classes_, machine.scheme_ = rows.classes, machine._scheme_for(len(rows.classes))
    found = rows.gathered(labels_and_weights)
    index, weight = (np.concatenate(each) for each in zip(*found, strict=True))
    factors = read_class_weights(machine.class_weight, machine.classes_, index, weight)
    weights = machine._weights_of_machines(index, weight, factors)
    machine.distribution_ = rows.cluster.distribution
    machine._fit_rows(SpreadRows(rows), index, weights, **start)
    return machine


def _refuse(machine: Perceptron) -> None:
    """Refuse what rows in partitions cannot have."""
    if order_of_rows(machine.order, machine.shuffle) == "random":
        raise ValueError(
            "order='random' draws single rows from all of them, which lie in the partitions of a "
            "Dask collection: use order='shuffled', which draws an order of the partitions and of "
            "the rows within each, or order='cyclic'."
        )
    if machine._penalty().decay < 1.0:
        raise ValueError(
            f"penalty={machine.penalty!r} shrinks what every row was used with at every other row, "
            "and these lie in the partitions of a Dask collection: use penalty=None or 'l1', or "
            "LinearSVC(loss='hinge'), which has the l2 penalty and a certificate."
        )


class SpreadRows:
    """Rows in partitions, as the states of perceptrons share them."""

    def __init__(self, rows: Partitions) -> None:
        self.partitions, self.shape = rows, (rows.n, rows.n_features)
        self.size = max(rows.nbytes // np.dtype(rows.summaries[0].dtype).itemsize, 1)
        self.offsets = rows.offsets

    def owners(self, some: np.ndarray) -> np.ndarray:
        """Partition of each of some rows."""
        return np.searchsorted(self.offsets, some, side="right") - 1


class Carried(NamedTuple):
    """What is handed on from partition to partition, and what the last one changed of its rows.

    ``ended`` says that a pass is to end before its last partition: where so many updates, or the
    longest streak, have been.
    """

    w: np.ndarray
    w_sum: np.ndarray
    taken: np.ndarray
    totals: np.ndarray
    ended: bool = False
    place: int = 0
    changed: np.ndarray | None = None
    alpha: np.ndarray | None = None
    dual_sum: np.ndarray | None = None


class SpreadState(LinearState):
    """A perceptron over rows in partitions; its weights are here between two passes."""

    def __init__(
        self,
        X: SpreadRows,
        y: np.ndarray,
        step: np.ndarray,
        bias: bool,
        coef: np.ndarray,
        intercept: float,
        penalty: Penalty,
        sizes: Sizes | None,
        variant: str,
    ) -> None:
        PerceptronState.__init__(self, y, step, sizes, variant)
        self.has_bias, self.penalised = bias, penalty
        self._begin_at(coef, intercept, len(y), X.size)
        self.rows_at_once = len(y)  # a pass is one chain of tasks
        self.spread, cluster = X, X.partitions.cluster
        ends = np.append(X.offsets, len(y))
        pieces = [self.examples["signed_step"][a:b] for a, b in pairwise(ends)]
        self.steps = cluster.keep([cluster.task(_itself, piece.copy()) for piece in pieces])

    def shuffled(self, rows: np.ndarray, random: np.random.Generator) -> np.ndarray:
        """Partitions in random order, and the rows of each in one."""
        owners = self.spread.owners(rows)
        parts = random.permutation(np.unique(owners))
        return np.concatenate([random.permutation(rows[owners == part]) for part in parts])

    def _visit(
        self, order: np.ndarray, place: int, end: int, until: float, sizes: np.ndarray
    ) -> int:
        """Look at some rows, one partition after the other."""
        cluster, blocks = self.spread.partitions.cluster, self.spread.partitions.blocks
        some = order[place:end]
        owners = self.spread.owners(some)
        cuts = np.flatnonzero(np.diff(owners)) + 1
        how = until, sizes, self.n_updates, self.has_bias, self.averaged, self.penalised
        carried: Any = Carried(self.w, self.w_sum, self.taken, self.totals)
        chain, parts = [], owners[np.concatenate([[0], cuts]).astype(int)].tolist()
        for part, rows in zip(parts, np.split(some, cuts), strict=True):
            local = rows - self.spread.offsets[part]
            carried = cluster.task(
                _visited, blocks[part], self.steps[part], local, how, carried, name="visit"
            )
            chain.append(carried)
        try:
            found = cluster.run(chain, self.stopped)
        except StoppedError:
            return place  # as if the pass had not begun
        for part, after in zip(parts, found, strict=True):
            if after.changed is not None:
                rows = after.changed + self.spread.offsets[part]
                self.examples["alpha"][rows] += after.alpha
                if self.averaged:
                    self.dual_sum[rows] += after.dual_sum
                if len(rows):
                    found[-1].totals["row"] = after.totals["row"] + self.spread.offsets[part]
        last = found[-1]
        self.w, self.w_sum, self.taken = last.w, last.w_sum, last.taken
        self.totals = last.totals
        return place + sum(after.place for after in found if after.changed is not None)

    def margins(self, rows: np.ndarray) -> np.ndarray:
        """Look at rows without learning from them."""
        return self._looked_at(rows, _margins)

    def wrong(self, rows: np.ndarray) -> np.ndarray:
        """Which of the rows are not on their right side, as a mask."""
        return self._looked_at(rows, _wrong).astype(bool)

    def _looked_at(self, rows: np.ndarray, function: Any) -> np.ndarray:
        spread, cluster = self.spread, self.spread.partitions.cluster
        owners, parts = spread.owners(rows), np.unique(spread.owners(rows)).tolist()
        whole = len(rows) == spread.shape[0]
        tasks = [
            cluster.task(
                function,
                spread.partitions.blocks[part],
                self.steps[part],
                None if whole else rows[owners == part] - spread.offsets[part],
                self.w,
                self.totals,
                name="margins",
            )
            for part in parts
        ]
        out = np.empty(len(rows))
        for part, found in zip(parts, cluster.run(tasks), strict=True):
            out[owners == part] = found
        return out


@state_of.register
def _(X: SpreadRows) -> Callable[..., PerceptronState]:
    return SpreadState


def _itself(steps: np.ndarray) -> np.ndarray:
    return steps


def _examples(steps: np.ndarray) -> np.ndarray:
    """Records of a partition's rows, none of which was used yet."""
    examples = np.zeros(len(steps), dtype=EXAMPLE)
    examples["signed_step"] = steps
    return examples


def _visited(
    block: Block, steps: np.ndarray, order: np.ndarray, how: tuple, before: Carried
) -> Carried:
    """Look at rows of a partition in their order; returns the weights after them."""
    if before.ended:
        return before._replace(place=0, changed=None, alpha=None, dual_sum=None)
    until, sizes, updates, bias, averaged, penalty = how
    examples, totals = _examples(steps), before.totals.copy()
    w, w_sum, taken = before.w.copy(), before.w_sum.copy(), before.taken.copy()
    dual_sum = np.zeros(len(steps) if averaged else 0)
    made = int(totals["updates"][0]) - updates
    place = visit(
        rows_of(block.X),
        order,
        0,
        len(order),
        until,
        sizes[min(made, len(sizes) - 1) :],
        bias,
        averaged,
        penalty.decay,
        penalty.clip,
        w,
        examples,
        w_sum,
        dual_sum,
        taken,
        totals,
    )
    changed = np.flatnonzero(examples["alpha"])
    alpha = examples["alpha"][changed]
    sums = dual_sum[changed] if averaged else dual_sum
    return Carried(w, w_sum, taken, totals, place < len(order), place, changed, alpha, sums)


def _margins(
    block: Block, steps: np.ndarray, some: np.ndarray | None, w: np.ndarray, totals: np.ndarray
) -> np.ndarray:
    """``y_i f(x_i)`` of some rows of a partition, each times the row's step."""
    some = np.arange(block.n) if some is None else some
    out = np.empty(len(some))
    look(rows_of(block.X), some, w, _examples(steps), totals, out)
    return out


def _wrong(block: Block, *how: Any) -> np.ndarray:
    return ~(_margins(block, *how) > 0.0)
