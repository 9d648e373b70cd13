"""Linear ridge regression on Dask collections, in its features.

One pass checks the partitions and has their moments, one more the M x M matrix of the centred
columns and what goes with the targets, summed over the partitions as a tree. Where that matrix has
no room, conjugate gradients take one pass a step. The dual representation has an unknown for each
row, and is not for rows that lie elsewhere; its answer is the same.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from maxmargin.backends.threads import ALONE, Workers
from maxmargin.dask.collections import sizes_of
from maxmargin.dask.fits import fit_partitions
from maxmargin.dask.reductions import added
from maxmargin.dask.rows import Block, Partitions
from maxmargin.dask.standardised import Look, Reading, account_of
from maxmargin.kernel_methods.kernel_ridge import alpha_of_each_output
from maxmargin.kernel_methods.ridge import Ridge
from maxmargin.solvers.ridge.linear import CentredRows


@fit_partitions.register
def _(machine: Ridge, X: Any, y: Any, sample_weight: Any = None) -> Any:
    """Fit a ridge regression."""
    if machine.solver == "dual":
        raise ValueError(
            "solver='dual' has an unknown for each row, and a matrix of them all, which lie in the "
            "partitions of a Dask collection: use solver='primal' or 'cg', which have the same "
            "answer, or compute the collection."
        )
    machine._refuse_contradictions()
    look = Look(machine.fit_intercept, False, len(sizes_of(X)))
    options: dict[str, Any] = {"multi_output": True, "y_numeric": True}
    rows = Partitions.of(machine, X, y, sample_weight, extra=look, **options)
    data = SpreadCentredRows(rows, Reading(machine.fit_intercept))
    machine.distribution_ = rows.cluster.distribution
    alphas = alpha_of_each_output(machine.alpha, len(data.target_mean))
    if machine.solver == "svd" or not alphas.all():
        raise ValueError(
            f"alpha={machine.alpha!r} with solver={machine.solver!r} is not supported on a Dask "
            "collection: use alpha > 0 with solver='auto', or LinearRegression for alpha=0."
        )
    machine._fit_posed(data, alphas)
    machine._set_shapes(rows.summaries[0].outputs)
    return machine


class SpreadCentredRows(CentredRows):
    """Rows Z in partitions: their products are sums over these."""

    @property
    def in_features(self) -> bool:
        """True: there is no unknown for a row."""
        return True

    def __init__(self, rows: Partitions, reading: Reading) -> None:
        self.rows, self.reading = rows, reading
        found: Any = account_of(rows, reading)
        columns, targets = found.columns, found.targets
        self.n, self.width = columns.n, len(columns.mean)
        self.mean, self.target_mean = columns.mean, targets.mean
        self._total, self.squares = columns.total, targets.total * targets.squares
        self._column_squares = columns.total * columns.squares

    @property
    def sparse(self) -> bool:
        """Whether the rows are sparse."""
        return self.rows.summaries[0].sparse

    @property
    def total(self) -> float:
        """Sum of the weights."""
        return self._total

    @property
    def sum_of_squares(self) -> float:
        """Sum of the squares of Z's entries."""
        return float(self._column_squares.sum())

    @property
    def column_squares(self) -> np.ndarray:  # type: ignore[override]
        """Squared lengths of Z's columns."""
        return self._column_squares

    def square(self, workers: Workers = ALONE) -> np.ndarray:
        """``Z'Z``; ``Z'S t`` comes with it."""
        square, self._onto = self._summed("square", "onto_targets", workers=workers)
        return square

    def onto_targets(self) -> np.ndarray:
        """``Z'S t``."""
        return self._onto

    @cached_property
    def _onto(self) -> np.ndarray:
        return self._summed("onto_targets")[0]

    def squared_errors(self, w: np.ndarray, outputs: Any) -> np.ndarray:
        """``|Z w - t|^2`` for w (d, m), of some m targets."""
        return self._summed(("squared_errors", w, outputs))[0]

    def square_product(self, b: np.ndarray, workers: Workers = ALONE) -> np.ndarray:
        """``Z'Z b`` for b (d, m)."""
        return self._summed(("square_product", b), workers=workers)[0]

    def square_rows(self, some: np.ndarray) -> np.ndarray:
        """Some rows of ``Z'Z``."""
        return self._summed(("square_rows", some))[0]

    def _summed(self, *questions: Any, workers: Workers = ALONE) -> tuple[np.ndarray, ...]:
        """Sums over all partitions, in one pass."""
        asked = [one if isinstance(one, tuple) else (one,) for one in questions]
        means, stopped = (self.mean, self.target_mean), workers.stopped or (lambda: None)
        return self.rows.reduced(
            _answers,
            self.reading,
            *map(self.rows.cluster.once, (means, asked)),
            combine=added,
            stopped=stopped,
        )


def _answers(block: Block, reading: Reading, means: tuple, asked: list[tuple]) -> tuple:
    """What a partition's rows, less the means of all, answer to some questions."""
    X, weight, y = reading.rows(block)
    if not len(weight):
        return ()
    data = CentredRows(X, reading.targets(y), weight, reading.intercept, means)
    return tuple(getattr(data, name)(*args) for name, *args in asked)
