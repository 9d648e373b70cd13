"""Some rows of a distributed problem, gathered: for a start, and to stand for the curvature of all.

A few of every partition come with the first look at it, drawn without looking. A part by shares in
the curvature (:mod:`maxmargin.risk.sampling`) is drawn where the rows lie: what shares are
multiplied by to become chances is estimated from the first few, so that to evaluate all rows and
to draw some of them is one pass. Both have room here, however many rows there are.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from maxmargin.backends.cpu.linear import Design
from maxmargin.backends.threads import Workers
from maxmargin.dask.linear.passes import Pose
from maxmargin.dask.linear.vectors import Place
from maxmargin.dask.rows import Block
from maxmargin.risk import RegularisedRisk
from maxmargin.risk.sampling import chances_of, column_scale, curvatures, even, level_of

_SHARE, _PER_WEIGHT = 64, 64  # one row of so many comes here; and so many rows for a weight
_ROOM_FIRST, _ROOM_PART = 1 << 26, 1 << 27  # bytes that the two may take here


class Drawn(NamedTuple):
    """Rows of a block that were drawn: their numbers, data, targets, costs and chances."""

    number: int
    rows: np.ndarray
    X: Any
    y: np.ndarray
    cost: np.ndarray
    chance: np.ndarray


class Few:
    """Draws a few rows of a block, heavier by as many as each stands for.

    Parameters
    ----------
    partitions : int
        How many blocks there are.
    """

    def __init__(self, partitions: int) -> None:
        self.partitions = partitions

    def __call__(self, block: Block) -> Block:
        """Return some rows of a block as a block."""
        width, per_row = block.X.shape[1] + 1, max(block.nbytes // block.n, 1)
        wanted = max(block.n // _SHARE, -(-_PER_WEIGHT * width // self.partitions))
        count = min(wanted, max(_ROOM_FIRST // (per_row * self.partitions), 1), block.n)
        rows = even(block.n, count, block.number)
        return Block(
            block.X[rows], np.asarray(block.y)[rows], block.weight[rows] * (block.n / count), -1
        )


class Sample:
    """The few rows of all blocks, and the part that is drawn with their help.

    Parameters
    ----------
    blocks : list of Block
        With the index of each row's class for y.
    n : int
        Rows of all blocks.
    workers : Workers
        Threads of this process.

    Attributes
    ----------
    seen : bool
        Whether a part was drawn in a pass over all rows.
    drawn : tuple or None
        The weights of that pass, and what was drawn, until somebody takes it.
    """

    def __init__(self, blocks: list[Block], n: int, workers: Workers) -> None:
        self.block = Block(
            _stacked([block.X for block in blocks]),
            np.concatenate([block.y for block in blocks]),
            np.concatenate([block.weight for block in blocks]),
            -1,
        )
        self.each = n / self.block.n
        self.workers, self.seen = workers, False
        self.drawn: tuple[np.ndarray, list[Drawn]] | None = None

    def problem(self, pose: Pose) -> RegularisedRisk:
        """Problem of the few rows, at costs that stand for all."""
        return pose.risk(self.block, self.workers)

    def plan(self, risk: Any, theta: np.ndarray, count: int, seed: int) -> tuple:
        """How to draw about so many rows at some weights: arguments of :func:`drawn`."""
        few = self.problem(risk.pose)
        per_row = max(self.block.nbytes // self.block.n, 1)
        count = min(count, max(_ROOM_PART // per_row, 1))
        weight = curvatures(few, few.values(theta))
        scale = column_scale(few.design.gram(weight).diagonal())
        share = weight * few.design.squared_norms(scale) / self.each
        return theta, scale, level_of(share, count, self.each), count / risk.n, seed

    def part(
        self, pose: Pose, found: list[Drawn]
    ) -> tuple[np.ndarray, RegularisedRisk, np.ndarray]:
        """Return the rows that were drawn, their problem, and their chances."""
        found = sorted(found, key=lambda one: one.number)
        rows, y, cost, chance = (
            np.concatenate([getattr(one, name) for one in found])
            for name in ("rows", "y", "cost", "chance")
        )
        like, X = pose.template, _stacked([one.X for one in found])
        design = Design(X, like.design.constant, self.workers)
        part = RegularisedRisk(design, y, cost, like.loss, like.penalised_intercept, like.penalty)
        return rows, part, chance


def drawn(
    place: Place, f: np.ndarray, scale: np.ndarray, level: float, rate: float, seed: int
) -> Drawn:
    """Draw rows of a block, with values f, by their share."""
    risk: Any = place.risk
    share = curvatures(risk, f) * risk.design.squared_norms(scale)
    chance = chances_of(share, level, rate, risk.cost)
    rows = np.flatnonzero(np.random.default_rng([seed, place.number]).random(risk.n) < chance)
    taken = risk.design.X[rows], risk.y[rows], risk.cost[rows], chance[rows]
    return Drawn(place.number, place.first + rows, *taken)


def _stacked(parts: list) -> Any:
    return sp.vstack(parts, format="csr") if sp.issparse(parts[0]) else np.concatenate(parts)
