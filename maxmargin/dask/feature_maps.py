"""Feature maps fitted to Dask collections: few rows say which map it is.

Landmarks are drawn from all rows without regard to partitions, the same ones as in memory for the
same ``random_state``. What pivots are drawn from meets on one worker; only the landmarks, and the
rows that measure the error, come to the process that fits.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from dask.delayed import Delayed
from sklearn.utils import _safe_indexing
from sklearn.utils.random import sample_without_replacement

from maxmargin import memory
from maxmargin.dask.collections import joined
from maxmargin.dask.fits import fit_partitions
from maxmargin.dask.kernel_parameters import resolve_kernel
from maxmargin.dask.rows import Block, Partitions, naming_partition, shell_of
from maxmargin.feature_maps import FeatureMap, Nystroem
from maxmargin.feature_maps.base import TrainingRows
from maxmargin.gram import Gram
from maxmargin.kernels import Kernel

_PERMUTED = 1 << 25  # rows up to which they are drawn as in memory, by a permutation of them all
_ROOM = 0.5  # of a worker's memory limit, for the rows that pivots are drawn from and their factor


@fit_partitions.register
def _(machine: FeatureMap, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
    """Fit a feature map."""
    kernel = machine._validated_kernel()
    if isinstance(machine, Nystroem) and kernel.pairwise:
        raise ValueError("Nystroem needs points to evaluate the kernel at, not a matrix.")
    rows = Partitions.of(machine, X, kernel=kernel)
    fit_map(machine, kernel, rows)
    machine.distribution_ = rows.cluster.distribution
    return machine


def fit_map(machine: FeatureMap, kernel: Kernel, rows: Partitions) -> None:
    """Fit a feature map to partitions that were checked."""
    machine.kernel_ = resolve_kernel(machine, kernel, rows)
    spread = SpreadRows(rows, machine.kernel_)
    if isinstance(machine, Nystroem):
        machine.device_ = machine._placed(machine.kernel_, spread.take(np.arange(1)), rows.n)
    machine._learn(spread)


class SpreadRows(TrainingRows):
    """Rows in partitions, of which a feature map asks for some."""

    def __init__(self, rows: Partitions, kernel: Kernel) -> None:
        self.rows, self.kernel, self.n = rows, kernel, rows.n
        self._held: dict[bytes, Any] = {}

    @property
    def width(self) -> int:
        """Columns."""
        return self.rows.n_features

    def drawn(self, random: Any, count: int) -> np.ndarray:
        """So many rows, all alike, at random."""
        if self.n <= _PERMUTED:
            return super().drawn(random, count)
        return sample_without_replacement(self.n, min(count, self.n), random_state=random)

    def others(self, random: Any, chosen: np.ndarray, count: int) -> np.ndarray:
        """So many of the rows that were not chosen, at random."""
        if self.n <= _PERMUTED:
            return super().others(random, chosen, count)
        drawn = self.drawn(random, count + len(chosen))
        return drawn[~np.isin(drawn, chosen)][:count]

    def take(self, some: np.ndarray) -> Any:
        """Return these rows, here; the last ones that were asked for are remembered."""
        key = np.asarray(some).tobytes()
        if key not in self._held:
            (found,) = self.rows.cluster.run([self._gathered(some)])
            self._held = {key: found}
        return self._held[key]

    def among(self, some: np.ndarray) -> np.ndarray:
        """Return the kernel's values among some rows."""
        return Gram.of(self.take(some), self.kernel).dense()

    def pivots(self, machine: Any, pool: np.ndarray | None, count: int, seed: int) -> np.ndarray:
        """Numbers of rows that randomly pivoted Cholesky draws, on the worker that has the pool."""
        pool = np.arange(self.n) if pool is None else pool
        self._refuse(len(pool), count)
        task = self.rows.cluster.task(
            _pivots, shell_of(machine), self.kernel, count, seed, self._gathered(pool)
        )
        (found,) = self.rows.cluster.run([task])
        return pool[found]

    def _refuse(self, pool: int, count: int) -> None:
        """Refuse a pool that has no room on a worker, with its factor."""
        row = self.rows.nbytes / self.n
        needed, room = int(pool * (row + 8 * count)), int(self.rows.cluster.budget())
        if needed > room:
            raise MemoryError(
                f"landmarks='pivots' draws {count} landmarks from {pool:,} rows, which take "
                f"{memory.megabytes(needed)} on one worker with the factor of their kernel matrix, "
                f"and {memory.megabytes(room)} may be taken: use landmarks='uniform', a smaller "
                "n_components, or RandomFourier, which needs no rows in one place."
            )

    def _gathered(self, some: np.ndarray) -> Delayed:
        """Return a task that has some rows, in the order that was asked for."""
        some, rows = np.asarray(some), self.rows
        owner = np.searchsorted(rows.offsets, some, side="right") - 1
        order = np.argsort(owner, kind="stable")
        parts, tasks = np.unique(owner), rows.blocks
        local = some - rows.offsets[owner]
        taken = [
            rows.cluster.task(_taken, tasks[part], local[owner == part], name="take")
            for part in parts.tolist()
        ]
        return rows.cluster.task(_in_order, taken, np.argsort(order, kind="stable"), name="gather")


def _taken(block: Block, some: np.ndarray) -> Any:
    """Return some rows of a partition."""
    with naming_partition(block.number):
        return _safe_indexing(block.X, some)


def _in_order(parts: list, places: np.ndarray) -> Any:
    """Put rows of several partitions together, and in order."""
    return _safe_indexing(joined(parts), places)


def _pivots(shell: Any, kernel: Kernel, count: int, seed: int, X: Any) -> np.ndarray:
    """Draw pivots from rows that are here."""
    rows = TrainingRows(X, shell._gram(X, kernel))
    return rows.pivots(shell, None, count, seed)
