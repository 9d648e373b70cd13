"""All variables near their level moved at once, where steps of two crawl.

Where the kernel matrix is ill-conditioned (unscaled features, a large C, classes that overlap)
hundreds or thousands of variables are free and pull at each other. The others are at a wall of
the box and far from leaving it. So the problem of those near their level alone, free or about to
be, is solved in float64 by the interior-point method of :mod:`maxmargin.backends.interior_point`;
then all scores are made anew, and who violates the KKT conditions now takes part the next time.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from maxmargin.backends import cpu
from maxmargin.backends.interior_point import MATRICES, minimise
from maxmargin.backends.threads import ALONE, Workers
from maxmargin.duals import DualProblem
from maxmargin.gram import Gram

_WIDE, _MARGIN = 2.0, 20.0  # violations and goals below the level that are near it
_BAND, _MORE = 1.25, 128  # variables taken in: so many times those that may move, and some more
_TIGHTEN, _BELOW = 1e-3, 0.6  # of the violation, or of the goal, is gone for
_ALWAYS = 1 << 25  # bytes that the matrices may take however small the budget is
_RENEWAL, _OVERHEAD = 4, 4e7  # entries of steps for a kernel value, and for all small things


class Looks(NamedTuple):
    """What there is to do: how far each variable is on the wrong side, and who is free."""

    x: np.ndarray
    v: np.ndarray
    excess: np.ndarray
    free: np.ndarray

    @property
    def movable(self) -> int:
        """Variables that are free, or on the wrong side of their level."""
        return int(np.count_nonzero(self.free | (self.excess > 0)))


class NearLevel:
    """One problem with finite bounds, in the variables of :func:`interior_point.minimise`.

    These are ``x = c a``, or ``x = s a`` where no constraint wants it otherwise. Two variables of
    support vector regression that sit on a row, and differ in nothing but their bounds (without a
    tube), are one here, with the bounds of their sum.
    """

    def __init__(self, gram: Gram, problem: DualProblem, workers: Workers = ALONE) -> None:
        self.gram, self.problem, self.workers = gram, problem, workers
        self.towards = problem.coefficient if problem.n_groups else problem.sign
        ends = self.towards * problem.lower, self.towards * problem.upper
        self.lowest, self.highest = np.minimum(*ends), np.maximum(*ends)
        self.parts = self._parts()
        self.lower, self.upper = (end[self.parts].sum(0) for end in (self.lowest, self.highest))

    def _parts(self) -> np.ndarray:
        """Which variables each is the sum of, (1 or 2, count)."""
        problem = self.problem
        same = (problem.gram_row, problem.group, problem.sign * self.towards)
        pairs = np.argsort(problem.gram_row, kind="stable")
        if len(problem.rows) * 2 == len(pairs):
            first, second = pairs.reshape(-1, 2).T
            if all(
                np.array_equal(array[first], array[second])
                for array in (*same, self.towards * problem.linear)
            ):
                return np.stack([first, second])
        return np.arange(len(pairs))[None]

    def look(self, alpha: np.ndarray, v: np.ndarray) -> Looks:
        """Look at all variables, given their scores ``v`` less the levels."""
        x = (self.towards * alpha)[self.parts].sum(0)
        first = self.parts[0]
        v = (self.towards * self.problem.coefficient * v)[first]
        rises, falls = x < self.upper, x > self.lower
        excess = np.maximum(np.where(rises, v, -np.inf), np.where(falls, -v, -np.inf))
        return Looks(x, v, excess, rises & falls)

    def cost(self, movable: int, active: int) -> float:
        """Entries of steps of two that take as long as a solution with so many variables.

        That is a dozen factorisations: a dozen of their flops take as long as an entry.
        """
        return _OVERHEAD + movable**3 / 3 + _RENEWAL * self.gram.n * active

    def descend(
        self, alpha: np.ndarray, looks: Looks, violation: float, goal: float
    ) -> tuple[np.ndarray, int]:
        """Solve for the variables near their level; returns ``alpha`` and the steps taken.

        None are taken if the matrices have no room, or are not positive semidefinite.
        """
        gram, problem = self.gram, self.problem
        near = np.flatnonzero(looks.excess > -(_WIDE * violation + _MARGIN * goal))
        most = int(_BAND * looks.movable) + _MORE
        if len(near) > most:
            key = np.where(looks.free[near], np.inf, looks.excess[near])
            near = np.sort(near[np.argpartition(-key, most - 1)[:most]])
        if 8 * MATRICES * len(near) ** 2 > max(gram.memory, _ALWAYS):
            return alpha, 0
        first = self.parts[0, near]
        orientation = (problem.sign * self.towards)[first]
        H = np.empty((len(near), len(near)))
        cpu.kernel_square(gram.program, gram.points, problem.gram_row[first], H, self.workers)
        H *= orientation
        H *= orientation[:, None]
        member = problem.group[first][:, None] == np.arange(problem.n_groups)
        found = minimise(
            H,
            looks.v[near],
            looks.x[near],
            self.lower[near],
            self.upper[near],
            member.astype(np.float64),
            max(_TIGHTEN * violation, _BELOW * goal),
            self.workers,
        )
        if found is None:
            return alpha, 0
        x = self._even(found.x, looks.x[near], near, member)
        signed = self.towards * alpha
        for part in self.parts[:, near]:
            signed[part] = np.clip(x, self.lowest[part], self.highest[part])
            x = x - signed[part]
        return self.towards * signed, found.steps

    def _even(
        self, x: np.ndarray, before: np.ndarray, near: np.ndarray, member: np.ndarray
    ) -> np.ndarray:
        """Give back to each group the rounding that its sum has gained, where there is room."""
        x = x.copy()
        room = np.minimum(x - self.lower[near], self.upper[near] - x)
        for own in member.T:
            drift = float((x - before)[own].sum())
            roomiest = int(np.argmax(np.where(own, room, -1.0)))
            if own.any() and abs(drift) < room[roomiest]:
                x[roomiest] -= drift
        return x
