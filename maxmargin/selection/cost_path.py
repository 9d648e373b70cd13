"""Candidates that differ in their cost only, on one fold, solved over float32 kernel values.

Each solution begins the next (:mod:`maxmargin.solvers.dual.path`). Where float32 does not suffice
the path ends, and what is left of it is solved to certificates (:mod:`maxmargin.selection.run`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from maxmargin.backends import cpu
from maxmargin.backends.threads import StoppedError
from maxmargin.duals import DualProblem, read_levels
from maxmargin.selection.plan import Candidate
from maxmargin.selection.targets import Fold, Labels, Targets
from maxmargin.solvers.dual.path import CPath, UnsettledError
from maxmargin.svm.classification import probability_folds
from maxmargin.svm.probability import platt

_NOISE = 0.02  # share of a value's unit that the rounding of kernel values may take
_SUMMED_NARROW = 1e-3  # and up to which values are summed in float32 too
_PANEL, _LONG = 512, 16  # rows evaluated at a time, and rows that are worth a slice


@dataclass
class CostPath:
    """Candidates that differ in their cost only, the lowest first, on one fold.

    Each problem is followed as far as float32 goes; ``reached`` is the number of candidates of
    which all problems are solved. With ``probabilities``, so are the problems of the folds inside
    that the sigmoids are fitted to.
    """

    targets: Targets
    fold: Fold
    candidates: list[Candidate]
    probabilities: bool = False
    reached: int = 0

    @property
    def tol(self) -> float:
        """KKT violation to reach."""
        return self.candidates[0].machine.tol

    @property
    def left(self) -> list[Candidate]:
        """Candidates that are not solved yet."""
        return self.candidates[self.reached :]

    def begin(self) -> None:
        """Make room for the solutions."""
        count, targets = len(self.candidates), self.targets
        self.coefficients = np.zeros((len(self.fold.weight), count, targets.columns))
        self.bias = np.zeros((count, targets.n_problems))
        self.noise = np.zeros((count, targets.n_problems))
        self.seconds = np.zeros((count, targets.n_problems))
        self.sigmoids = np.zeros((count, targets.n_problems, 2))
        self.reached = count
        machine = self.candidates[0].machine
        self.inside: list[_Inside] = []
        if self.probabilities and isinstance(targets, Labels):
            random = check_random_state(machine.random_state)  # drawn from pair after pair
            every = range(targets.n_problems)
            self.inside = [_Inside.of(targets, self.fold, k, random) for k in every]

    def follow(self, k: int, block: np.ndarray, stopped: Callable[[], Any] | None) -> None:
        """Solve problem k for one cost after the other."""
        targets, fold = self.targets, self.fold

        def pose(machine: Any) -> DualProblem:
            return targets.problem(machine, k, fold)

        for i, coef, bias, noise, seconds in self._solutions(block, pose, stopped):
            targets.place(k, targets.sign * coef, self.coefficients[:, i])
            self.bias[i, k] = targets.sign * bias
            self.noise[i, k] = noise
            self.seconds[i, k] = seconds
        if self.inside:
            self._follow_inside(k, block, stopped)

    def _follow_inside(self, k: int, block: np.ndarray, stopped: Any) -> None:
        """Solve the folds inside problem k, and fit each candidate's sigmoid to their values."""
        targets, inside, sign = self.targets, self.inside[k], self.targets.sign
        assert isinstance(targets, Labels)
        signs, rows = targets.tasks[k][1], np.arange(len(block))
        weight = targets.weights(self.candidates[0].machine, k, self.fold)
        values = np.tile(inside.values, (len(self.candidates), 1))
        for kept, held_out in inside.folds:
            part = np.zeros(len(block))
            part[inside.rows[kept]] = weight[inside.rows[kept]]

            def pose(machine: Any, part: np.ndarray = part) -> DualProblem:
                return machine._part_of_problem(rows, signs, part, weight)

            outside = block[inside.rows[held_out]]
            for i, coef, bias, _, seconds in self._solutions(block, pose, stopped):
                values[i, held_out] = outside @ coef + bias
                self.seconds[i, k] += seconds
        own = sign * signs[inside.rows]
        for i in range(self.reached):
            self.sigmoids[i, k] = platt(sign * values[i], own)

    def _solutions(
        self, block: np.ndarray, pose: Callable[[Any], DualProblem], stopped: Any
    ) -> Iterator[tuple[int, np.ndarray, float, float, float]]:
        """Yield number, coefficients, bias, their noise and seconds for one cost after the other.

        Ends where float32 does not suffice, and no candidate from there on counts as reached.
        """
        path = None
        for i, candidate in enumerate(self.candidates[: self.reached]):
            if stopped is not None and stopped():
                raise StoppedError
            began = time.perf_counter()
            problem = pose(candidate.machine)
            path = path or CPath(block, problem, candidate.machine.tol, stopped)
            try:
                beta = path.solve(problem)
            except UnsettledError:
                self.reached = min(self.reached, i)
                return
            noise = cpu.DEVIATION32 * float(np.linalg.norm(beta)) * path.scale
            if noise > _NOISE * self.targets.unit(self.fold):
                self.reached = min(self.reached, i)
                return
            bias = read_levels(problem, np.full(problem.n_groups, path.level)).bias
            coef = problem.on_rows(beta, len(block))
            yield i, coef, bias, noise, time.perf_counter() - began

    def values(self, K: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Values of the candidates reached: (candidates, rows, problems)."""
        targets, count = self.targets, self.reached
        narrow = self.noise[:count].max(initial=0.0) <= _SUMMED_NARROW * targets.unit(self.fold)
        dtype: Any = np.float32 if narrow else np.float64
        coefficients = self.coefficients[:, :count].reshape(len(K), -1).astype(dtype)
        values = np.empty((count, len(rows), targets.n_problems))
        for places, part in _stretches_of(rows):
            sums = np.empty((len(places), len(targets.stretches), count, targets.columns))
            for s, (start, stop) in enumerate(targets.stretches):
                block = K[part, start:stop].astype(dtype, copy=False)
                sums[:, s] = (block @ coefficients[start:stop]).reshape(len(places), count, -1)
            for i in range(count):
                values[i, places] = targets.combine(sums[:, :, i])
        return values + self.bias[:count, None]


@dataclass(frozen=True)
class _Inside:
    """The folds inside the training rows of a pair, as a fit with probabilities draws them.

    ``rows`` are the pair's training rows, as rows of its block; ``folds`` say which of them to
    learn from and which to hold out, and ``values`` what is known of these without learning.
    """

    rows: np.ndarray
    folds: list[tuple[np.ndarray, np.ndarray]]
    values: np.ndarray

    @classmethod
    def of(cls, targets: Labels, fold: Fold, k: int, random: np.random.RandomState) -> _Inside:
        """Draw the folds of the k-th pair."""
        all_rows, signs = targets.tasks[k]
        taking_part = np.zeros(len(fold.weight), dtype=bool)
        taking_part[all_rows] = fold.weight[all_rows] > 0
        train = fold.train[taking_part[fold.train]]
        rows = np.searchsorted(all_rows, train)
        values = np.zeros(len(rows))
        return cls(rows, list(probability_folds(signs[rows], values, random)), values)


def _stretches_of(rows: np.ndarray) -> Iterator[tuple[np.ndarray, Any]]:
    """Yield places of the rows, and the rows there, as slices of consecutive ones where long."""
    order = np.argsort(rows, kind="stable")
    cuts = np.flatnonzero(np.diff(rows[order]) != 1) + 1
    scattered = []
    for places in np.split(order, cuts):
        if len(places) < _LONG:
            scattered.append(places)
            continue
        for first in range(0, len(places), _PANEL):
            part = places[first : first + _PANEL]
            yield part, slice(rows[part[0]], rows[part[-1]] + 1)
    if scattered:
        together = np.concatenate(scattered)
        for first in range(0, len(together), _PANEL):
            part = together[first : first + _PANEL]
            yield part, rows[part]
