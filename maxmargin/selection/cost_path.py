"""Candidates that differ in their cost only, on one fold, solved over float32 kernel values.

Each solution is the seed of the next (:mod:`maxmargin.solvers.dual.seeded`). Where float32 does
not suffice the path ends, and what is left of it is solved to certificates
(:mod:`maxmargin.selection.run`).
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
from maxmargin.progress import Monitor, ProblemMonitor
from maxmargin.selection.plan import Candidate
from maxmargin.selection.targets import Fold, Labels, Targets
from maxmargin.solvers import Seed, SeededSMO, Watch, drive
from maxmargin.svm.classification import probability_folds
from maxmargin.svm.probability import platt

_NOISE = 0.02  # share of a value's unit that the rounding of kernel values may take
_SUMMED_NARROW = 1e-3  # and up to which values are summed in float32 too
_SMALL = 1000  # variables below which a problem is solved to a tenth of tol, for little more,
_FINEST = 1e-4  # but by that to no less than this, which float32 mostly has
_PANEL = 512  # rows evaluated at a time


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
        count, targets, every = len(self.candidates), self.targets, range(self.targets.n_problems)
        self.coefficients = np.zeros((len(self.fold.weight), count, targets.columns))
        self.bias, self.noise, self.seconds = np.zeros((3, count, len(every)))
        self.sigmoids = np.zeros((count, len(every), 2))
        self.reached = count
        self.inside: list[_Inside] = []
        if self.probabilities and isinstance(targets, Labels):
            # one stream, drawn from pair after pair
            random = check_random_state(self.candidates[0].machine.random_state)
            self.inside = [_Inside.of(targets, self.fold, k, random) for k in every]

    def follow(self, k: int, block: np.ndarray, monitor: Monitor) -> None:
        """Solve problem k for one cost after the other."""
        targets = self.targets

        def pose(machine: Any) -> DualProblem:
            return targets.problem(machine, k, self.fold)

        for i, coef, bias, noise, seconds in self._solutions(block, pose, monitor):
            targets.place(k, targets.sign * coef, self.coefficients[:, i])
            self.bias[i, k] = targets.sign * bias
            self.noise[i, k], self.seconds[i, k] = noise, seconds
        if self.inside:
            self._follow_inside(k, block, monitor)

    def _follow_inside(self, k: int, block: np.ndarray, monitor: Monitor) -> None:
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
            for i, coef, bias, _, seconds in self._solutions(block, pose, monitor):
                values[i, held_out] = outside @ coef + bias
                self.seconds[i, k] += seconds
        own = sign * signs[inside.rows]
        for i in range(self.reached):
            self.sigmoids[i, k] = platt(sign * values[i], own)

    def _solutions(
        self, block: np.ndarray, pose: Callable[[Any], DualProblem], monitor: Monitor
    ) -> Iterator[tuple[int, np.ndarray, float, float, float]]:
        """Yield number, coefficients, bias, their noise and seconds for one cost after the other.

        Ends where float32 does not suffice, and no candidate from there on counts as reached.
        """
        seed, tol = None, self.tol
        if block.shape[1] < _SMALL:
            tol = min(tol, max(0.1 * tol, _FINEST))
        watch = Watch(tol, monitor=ProblemMonitor(monitor))
        for i, candidate in enumerate(self.candidates[: self.reached]):
            began = time.perf_counter()
            problem = pose(candidate.machine)
            seed = seed or Seed(block, problem)
            solution = drive(SeededSMO().begin(problem, watch, seed=seed), watch)
            if solution.status.stopped:
                raise StoppedError
            beta = solution.beta
            noise = cpu.DEVIATION32 * float(np.linalg.norm(beta)) * seed.scale
            if seed.violation > self.tol or noise > _NOISE * self.targets.unit(self.fold):
                self.reached = min(self.reached, i)
                return
            bias = read_levels(problem, np.full(problem.n_groups, seed.level)).bias
            coef = problem.on_rows(beta, len(block))
            yield i, coef, bias, noise, time.perf_counter() - began

    def values(self, K: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Values of the candidates reached: (candidates, rows, problems)."""
        targets, count = self.targets, self.reached
        narrow = self.noise[:count].max(initial=0.0) <= _SUMMED_NARROW * targets.unit(self.fold)
        dtype: Any = np.float32 if narrow else np.float64
        coefficients = self.coefficients[:, :count].reshape(len(K), -1).astype(dtype)
        values = np.empty((count, len(rows), targets.n_problems))
        for first in range(0, len(rows), _PANEL):
            part = rows[first : first + _PANEL]
            sums = np.empty((len(part), len(targets.stretches), count, targets.columns))
            for s, (start, stop) in enumerate(targets.stretches):
                block = K[part, start:stop].astype(dtype, copy=False)
                sums[:, s] = (block @ coefficients[start:stop]).reshape(len(part), count, -1)
            for i in range(count):
                values[i, first : first + _PANEL] = targets.combine(sums[:, :, i])
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
