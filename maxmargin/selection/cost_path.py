"""Candidates that differ in their cost only, on one fold, solved over float32 kernel values.

Each solution is the seed of the next (:mod:`maxmargin.solvers.dual.seeded`), and is certified with
the rounding of the kernel values in mind: with values K' in float32, of relative error u,

    |(K' b)_i - (K b)_i|  <=  u sqrt(K_ii) sum_j |b_j| sqrt(K_jj)  =  e_i
    violation over K      <=  violation over K' + 2 max_i e_i.

A problem of which that leaves more than ``tol`` is solved again over float64 values. Where float32
has no solution, or values of it would show the rounding, the path ends; what is left of it is
solved over float64 values, too (:mod:`maxmargin.selection.run`).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import check_random_state

from maxmargin.backends import cpu
from maxmargin.backends.cpu.dual.certificate import weigh_path
from maxmargin.backends.threads import StoppedError
from maxmargin.certificate import OPTIMAL
from maxmargin.duals import DualProblem, read_levels
from maxmargin.evaluation import Evaluation
from maxmargin.progress import Monitor, ProblemMonitor
from maxmargin.selection.held_out import Claim
from maxmargin.selection.plan import Candidate
from maxmargin.selection.targets import Fold, Labels, Targets
from maxmargin.solution import Status
from maxmargin.solvers import Seed, SeededSMO, Watch, drive
from maxmargin.svm.out_of_fold import FOLDS, deal
from maxmargin.svm.probability import Calibration, Values, calibrated, kind_of

_NOISE = 1e-3  # share of a value's size that the rounding of kernel values may take
_SUMMED_NARROW = 1e-3  # and up to which values are summed in float32 too
_SMALL = 1000  # variables below which a problem is solved to a tenth of tol, for little more,
_FINEST = 1e-4  # but by that to no less than this, which float32 mostly has
_PANEL = 512  # rows evaluated at a time


class Followed(NamedTuple):
    """A solution over float32 values: its variables, their scores, and its coefficients.

    ``noise`` is the deviation of a value by the rounding of kernel values.
    """

    problem: DualProblem
    beta: np.ndarray
    scores: np.ndarray
    diagonal: np.ndarray
    coef: np.ndarray
    bias: float
    noise: float
    seconds: float


@dataclass
class CostPath:
    """Candidates that differ in their cost only, the lowest first, on one fold.

    Each problem is followed as far as float32 goes; ``reached`` is the number of candidates of
    which all problems are solved, and ``doubtful`` has the variables of those problems, by
    candidate and problem, that float32 leaves above ``tol`` or far from optimal. With
    ``probabilities``, the problems of the folds inside that the calibration is fitted to are
    followed, too.
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

    def begin(self, rounding: float) -> None:
        """Make room for the solutions over values with so many roundings of float64."""
        count, targets, every = len(self.candidates), self.targets, range(self.targets.n_problems)
        self.coefficients = np.zeros((len(self.fold.weight), count, targets.columns))
        self.bias, self.noise, self.gap, self.seconds = np.zeros((4, count, len(every)))
        self.severity = np.full((count, len(every)), Status.CONVERGED.severity)
        self.doubtful: dict[tuple[int, int], np.ndarray] = {}
        self.rounding, self.reached, self._lock = rounding, count, threading.Lock()
        self.inside: list[_Inside] = []
        if self.probabilities and isinstance(targets, Labels):
            random = check_random_state(self.candidates[0].machine.random_state)
            train = self.fold.train[self.fold.weight[self.fold.train] > 0]
            number = deal(targets.index[train], random)
            self.inside = [_Inside.of(targets, train, number, k, count) for k in every]

    def follow(self, k: int, block: np.ndarray, monitor: Monitor) -> None:
        """Solve problem k for one cost after the other."""
        targets = self.targets

        def pose(machine: Any) -> DualProblem:
            return targets.problem(machine, k, self.fold)

        path = []
        for i, found in self._solutions(block, pose, monitor):
            self._keep(i, k, found.coef, found.bias)
            self.noise[i, k], self.seconds[i, k] = found.noise, found.seconds
            path.append(found)
        if path:
            self._certify(k, path)
        if self.inside:
            self._follow_inside(k, block, monitor)

    def _end_at(self, i: int) -> None:
        """Leave candidates from number i on to others; threads may be at several problems."""
        with self._lock:
            self.reached = min(self.reached, i)

    def end_at_hidden(self, values: np.ndarray) -> None:
        """Leave candidates on to others from where rounding hides classes of held-out rows."""
        for i in range(self.reached):
            if self.targets.hidden(values[i], float(self.noise[i].max())):
                self._end_at(i)
                return

    def _certify(self, k: int, path: list[Followed]) -> None:
        """Certify the solutions of problem k, or note that they are in doubt."""
        problem = path[0].problem
        diagonal = np.empty(len(path[0].coef))
        diagonal[problem.gram_row] = path[0].diagonal
        proven = weigh_path(
            problem.variables,
            problem.n_groups,
            problem.readings,
            np.array([found.problem.lower for found in path]),
            np.array([found.problem.upper for found in path]),
            np.array([found.beta for found in path]),
            np.array([found.scores for found in path]),
            problem.start,
            diagonal,
            self.rounding,
        )
        self.gap[: len(path), k] = proven[:, 0]
        if self.targets.classes is not None:  # of a regression the unit alone tells
            noisy = np.array([found.noise for found in path]) > _NOISE * proven[:, 2]
            self._end_at(int(np.argmax([*noisy, True])))
            path = path[: self.reached]
        proven = proven[: len(path)]
        good = (proven[:, 0] <= OPTIMAL) & (proven[:, 1] <= self.tol)
        for i in np.flatnonzero(~good):
            self.doubtful[int(i), k] = path[i].beta

    def _keep(self, i: int, k: int, coef: np.ndarray, bias: float) -> None:
        self.targets.place(k, self.targets.sign * coef, self.coefficients[:, i])
        self.bias[i, k] = self.targets.sign * bias

    def certify_again(self, i: int, k: int, evaluation: Evaluation, seconds: float) -> None:
        """Take an answer to a doubtful problem that is certified over float64 values."""
        rows = self.targets.rows(k)
        coef = np.zeros(len(rows))
        coef[np.searchsorted(rows, evaluation.rows)] = evaluation.coefficients
        self._keep(i, k, coef, evaluation.bias)
        self.gap[i, k] = evaluation.certificate.relative_gap
        self.severity[i, k] = evaluation.certificate.status.severity
        self.seconds[i, k] += seconds

    def claim(self, i: int) -> Claim:
        """What is proven of a candidate: the worst of its problems."""
        return Claim(float(self.gap[i].max()), list(Status)[self.severity[i].max()])

    def _follow_inside(self, k: int, block: np.ndarray, monitor: Monitor) -> None:
        """Solve the folds inside problem k, for values of rows that were held out."""
        targets, inside = self.targets, self.inside[k]
        assert isinstance(targets, Labels)
        signs, rows = targets.tasks[k][1], np.arange(len(block))
        weight = targets.weights(self.candidates[0].machine, k, self.fold)
        for f in range(FOLDS):
            held_out = inside.number == f
            part = np.zeros(len(block))
            part[inside.rows[~held_out]] = weight[inside.rows[~held_out]]
            left = np.unique(signs[inside.rows[~held_out]])
            if len(left) < 2:
                inside.values[:, held_out] = left.sum()
                continue

            def pose(machine: Any, part: np.ndarray = part) -> DualProblem:
                return machine._part_of_problem(rows, signs, part, weight)

            outside = block[inside.rows[held_out]]
            for i, found in self._solutions(block, pose, monitor):
                inside.values[i, held_out] = outside @ found.coef + found.bias
                self.seconds[i, k] += found.seconds

    def calibration(self, i: int) -> Calibration | None:
        """What makes probabilities of a candidate's values, fitted as its fit does."""
        if not self.inside:
            return None
        targets, weight = self.targets, self.fold.weight
        assert isinstance(targets, Labels)
        known = [
            Values(
                targets.sign * inside.values[i],
                targets.scheme.code[k, targets.index[inside.train]],
                weight[inside.train],
            )
            for k, inside in enumerate(self.inside)
        ]
        kind = kind_of(self.candidates[i].machine.probability)
        train = self.fold.train[weight[self.fold.train] > 0]
        assert kind is not None
        return calibrated(kind, targets.scheme, known, targets.index[train])

    def _solutions(
        self, block: np.ndarray, pose: Callable[[Any], DualProblem], monitor: Monitor
    ) -> Iterator[tuple[int, Followed]]:
        """Yield number and solution for one cost after the other.

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
            beta, scores = solution.beta, seed.exact_scores()
            noise = cpu.DEVIATION32 * float(np.linalg.norm(beta)) * seed.scale
            if seed.violation > self.tol or noise > _NOISE * self.targets.unit(self.fold):
                self._end_at(i)
                return
            bias = read_levels(problem, np.full(problem.n_groups, seed.level)).bias
            coef, seconds = problem.on_rows(beta, len(block)), time.perf_counter() - began
            yield i, Followed(problem, beta, scores, seed.diagonal, coef, bias, noise, seconds)

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
    """The folds inside the training rows of a pair, as a fit with probabilities deals them.

    ``train`` are the pair's training rows, and ``rows`` the same as rows of its block; ``number``
    is the fold of each, and ``values`` what is found of them, (candidates, rows).
    """

    train: np.ndarray
    rows: np.ndarray
    number: np.ndarray
    values: np.ndarray

    @classmethod
    def of(
        cls, targets: Labels, train: np.ndarray, number: np.ndarray, k: int, count: int
    ) -> _Inside:
        """Take those of the k-th pair from the rows and folds of all."""
        all_rows = targets.rows(k)
        own = np.isin(train, all_rows)
        rows = np.searchsorted(all_rows, train[own])
        return cls(train[own], rows, number[own], np.zeros((count, len(rows))))
