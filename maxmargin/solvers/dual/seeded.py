"""SMO over a whole matrix of float32 kernel values, begun from a seed.

A search solves the same problem (see :mod:`maxmargin.duals`) for one C after the other. Between two
of them only the walls away from zero move, from u to ``r u``, and a good start is known, a seed:

    b -> r b    where most support vectors are at their wall: there they stay
    b -> b      where most are free: a solution with none at its wall stays the solution

From there SMO's steps of two go on. Where they crawl, which a large C and an ill-conditioned matrix
make them, they are confined to the variables that matter now, free or on the wrong side of the
level, with conjugate steps between them (:mod:`maxmargin.backends.cpu.dual.momentum`).

Kernel values are float32; ``v = -(K b + p)`` is kept in float64, and cleared of the rounding of
the steps where that comes near ``tol``. What float32 cannot settle has stalled.

References: DeCoste and Wagstaff, KDD 2000 (alpha seeding); Joachims, 1999 (shrinking).
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from maxmargin.backends import cpu
from maxmargin.backends.compiled import njit
from maxmargin.backends.cpu import add_rows
from maxmargin.backends.cpu.dual.kkt import levels_and_violation, snap_to_bounds
from maxmargin.backends.cpu.dual.momentum import conjugate_steps
from maxmargin.backends.cpu.dual.steps import PAUSED, Block, steps_among, walls
from maxmargin.backends.cpu.loops import gather
from maxmargin.backends.threads import ALONE, StoppedError, Workers
from maxmargin.duals import DualProblem
from maxmargin.memory import megabytes
from maxmargin.solution import Solution, Status
from maxmargin.solvers.driver import Measure, Watch
from maxmargin.solvers.dual.method import DualMethod, DualRun, Unbegun
from maxmargin.solvers.dual.near_level import Pace

_PATIENCE = 0.7  # steps per variable, before those that do not matter now are set aside
_INSIDE = 12  # steps per variable that is left, before all are looked at again
_NEAR = 0.3  # share of the violation from which on a variable at a wall matters
_TIGHTEN = 0.1  # those that matter are solved to this part of the violation
_LOOKS = 200  # at all variables, before a problem is given up
_SLICE = 1 << 27  # entries of a compiled call: less than a tenth of a second
_EPSILON = float(np.finfo(np.float32).eps)
_DRIFT = 0.1  # part of tol that the rounding of v may have
_LOST = 1e-9  # of v, by raising costs: a multiple of K b, which may be far below p, is taken from v


@dataclass(frozen=True)
class SeededSMO(DualMethod):
    """Sequential minimal optimisation over all kernel values in float32, begun from a seed.

    Made for one problem at several costs, the lowest first; alone, it begins from the problem's
    start.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin import Gram, duals
    >>> from maxmargin.kernels import Linear
    >>> from maxmargin.solvers import Seed, SeededSMO
    >>> gram = Gram.of(np.array([[-1.0], [1.0]]), Linear())
    >>> rows, y = np.arange(2), np.array([-1.0, 1.0])
    >>> problems = [duals.c_svc(rows, y, np.full(2, C)).over(gram) for C in (0.1, 10.0)]
    >>> seed = Seed.of(problems[0])
    >>> [SeededSMO().solve(problem, seed=seed).beta.round(3).tolist() for problem in problems]
    [[-0.1, 0.1], [-0.5, 0.5]]
    """

    def accepts(self, problem: DualProblem) -> str | None:
        """Take what float32 can hold, and the memory; with one sum that is fixed, or none."""
        if problem.hard or problem.n_groups > 1:
            return (
                "Seeded SMO keeps to one sum of the variables at most, and the hard margin (C=inf) "
                "and the machines with nu have two: use solver='smo'."
            )
        gram, needed = problem.gram, 4 * len(problem) * problem.gram.n
        if needed > gram.memory:
            return (
                f"Seeded SMO wants all kernel values at once, {megabytes(needed)}, and "
                f"{megabytes(gram.memory)} are allowed: raise cache_size, or use "
                "solver='working_set'."
            )
        if not gram.fits_float32:
            return (
                "Seeded SMO computes in float32, and the kernel's values here are too large or "
                "too small for it: use solver='smo', or scale the data."
            )
        return None

    def begin(
        self,
        problem: DualProblem,
        watch: Watch,
        pace: Pace | None = None,
        seed: Seed | None = None,
    ) -> DualRun:
        """Begin from a seed, or else at the problem's start.

        ``seed`` are variables of the same problem for costs no higher. The run changes them in
        place, so that they are the seed of the next.
        """
        with suppress(StoppedError):  # nothing is done by then
            if seed is None:
                seed = Seed.of(problem, Workers(watch.workers.count, watch.stopped))
            else:
                seed.raise_walls(problem)
            return SeededSMORun(problem, watch, seed)
        return Unbegun(problem, watch)


class SeededSMORun(DualRun):
    """Seeded SMO at work."""

    def __init__(self, problem: DualProblem, watch: Watch, seed: Seed) -> None:
        self.problem, self.watch, self.seed = problem, watch, seed
        self.chosen: np.ndarray | None = None

    @property
    def variables(self) -> np.ndarray:
        """The signed variables."""
        return self.seed.beta

    @property
    def working_set(self) -> np.ndarray | None:
        """The variables that matter now; None while all of them take part."""
        return self.chosen

    def measure(self) -> Measure:
        """Look at all variables, their scores cleared."""
        seed, linear = self.seed, self.problem.linear
        seed.clear()
        dual = 0.5 * float(seed.beta @ (seed.v - linear))
        return self.measured(seed.violation, dual, self.problem.gap(seed.beta, seed.v - seed.level))

    def solution(self, status: Status) -> Solution:
        """Return the variables as they are, apart from the seed."""
        return Solution(self.seed.beta.copy(), self.n_iter, status)

    def steps(self) -> Generator[None, None, None]:
        """Steps of all variables for a while, then of those that matter, until none violates."""
        seed, tol = self.seed, self.watch.tol
        patience = int(_PATIENCE * len(seed.beta)) + 1
        while self.n_iter < patience:
            taken = seed.advance(tol, min(patience - self.n_iter, self.allowed))
            self.n_iter += taken
            if seed.violation <= tol or not taken:
                break
            yield
        for _ in range(_LOOKS):
            if seed.violation > tol:
                seed.clear()
            if seed.violation <= tol:
                seed.snap()
                return
            before = self.n_iter
            yield from self._steps_inside()
            if self.n_iter == before:
                break
        seed.clear()
        self.status = Status.STALLED

    def _steps_inside(self) -> Generator[None, None, None]:
        """Take steps among the variables that matter now, the others left as they are."""
        seed = self.seed
        self.chosen = chosen = seed.that_matter()
        inside = seed.inside(chosen)
        goal = np.float32(max(0.5 * self.watch.tol, _TIGHTEN * seed.violation))
        left, code = _INSIDE * len(chosen), PAUSED
        while code == PAUSED and left:
            allowed = min(left, max(_SLICE // len(chosen), 1), self.allowed)
            code, taken = conjugate_steps(seed.n_groups > 0, inside, goal, allowed)
            seed.beta[chosen] = inside.beta
            seed.count(taken)
            self.n_iter += taken
            left -= taken
            yield


class Seed:
    """Variables of a problem with their scores ``v``, over all kernel values in float32.

    Parameters
    ----------
    K : float32 array (n, m)
        Kernel values of all rows with the row of each of the m variables.
    problem : DualProblem
        With one sum that is fixed, or none. It needs no Gram matrix if it starts from zero.

    Attributes
    ----------
    beta, v : float arrays (m,)
    level, violation : float
        As they were when all variables were last looked at; the bias is read from the level.
    scale : float
        Largest kernel value of a point with itself.
    """

    def __init__(self, K: np.ndarray, problem: DualProblem) -> None:
        self.problem = problem
        self.n_groups = problem.n_groups
        self.K, self.slot = K, problem.gram_row
        self.diagonal = K[self.slot, np.arange(len(self.slot))]
        orientation = problem.orientation.astype(np.float32)
        if (orientation != orientation[0]).any():
            self.K = orientation[:, None] * K[self.slot] * orientation
            self.slot = np.arange(len(orientation))
        self.scale = float(self.diagonal.max())
        self.beta, self.v = problem.start.copy(), -problem.linear
        if self.beta.any():
            self.v = problem.scores(problem.decision_at_start())
        self._cleared_beta, self._cleared_v = self.beta.copy(), self.v.copy()
        self._drift, self.level, self.violation = 0.0, 0.0, np.inf
        self._lost = float(np.finfo(np.float64).eps)

    @classmethod
    def of(cls, problem: DualProblem, workers: Workers = ALONE) -> Seed:
        """Return the start of a problem, with the values of its Gram matrix."""
        gram, rows = problem.gram.host, problem.gram_row
        store = gram.float32_rows(gram.n)
        if store.used < gram.n:
            K = np.empty((gram.n, gram.n), dtype=np.float32)
            cpu.kernel_square(gram.program, gram.float32_points(), None, K, workers)
            store.adopt(cpu.finite(K, gram.kernel))
        whole = np.array_equal(rows, np.arange(gram.n))
        return cls(store.data if whole else store.data[:, rows], problem)

    def raise_walls(self, problem: DualProblem) -> None:
        """Take the walls of higher costs, and with them a multiple of the variables if it helps."""
        before, self.problem, self.violation = self.problem, problem, np.inf
        ratio = warm_start_ratio(before, self.beta, problem)
        if ratio > 1.0:
            walls = before.lower, before.upper, problem.lower, problem.upper
            for beta, v in ((self.beta, self.v), (self._cleared_beta, self._cleared_v)):
                _scale(beta, v, problem.linear, *walls, ratio)
            self._drift *= ratio
            self._lost *= ratio
            if self._lost > _LOST:
                self._recompute()

    def advance(self, tol: float, allowed: int) -> int:
        """Take up to so many steps with all variables; returns their number."""
        given = self.K, self.slot, self.diagonal, self.v, self.beta, self.problem.variables
        steps, self.level, self.violation = _settle(*given, self.n_groups, tol, allowed)
        self.count(steps)
        if self._drift > _DRIFT * tol:
            self.clear()
        return int(steps)

    def that_matter(self) -> np.ndarray:
        """Variables that are free, or at a wall and on the wrong side of the level, or nearly."""
        problem, v = self.problem, self.v
        rises, falls = problem.may_rise(self.beta), problem.may_fall(self.beta)
        highest = lowest = 0.0
        if self.n_groups:
            highest, lowest = v[rises].max(), v[falls].min()
        far = _NEAR * self.violation
        matters = rises & falls
        matters |= rises & (v > lowest + far)
        matters |= falls & (v < highest - far)
        return np.flatnonzero(matters)

    def inside(self, chosen: np.ndarray) -> Block:
        """Return the problem of some variables alone, as the compiled steps take it."""
        K = np.empty((len(chosen), len(chosen)), dtype=np.float32)
        gather(self.K, self.slot[chosen], chosen, K)
        score = (self.v[chosen] - self.level).astype(np.float32)
        given = self.problem.variables, self.n_groups, self.beta, K, self.diagonal[chosen], score
        return Block.among(chosen, *given)

    def count(self, steps: int) -> None:
        """Each step rounds every v, by its own size or by that of what is added to it."""
        largest = max(float(np.abs(self.beta).max()) * self.scale, float(np.abs(self.v).max()))
        self._drift = float(np.hypot(self._drift, 0.5 * _EPSILON * largest * steps**0.5))

    def clear(self) -> None:
        """Recompute v in float64, from what has moved since the last time, and look at it."""
        moved = np.flatnonzero(self.beta != self._cleared_beta)
        change = self._cleared_beta[moved] - self.beta[moved]
        add_rows(self.K, self.slot[moved], change, 0, len(self.v), self._cleared_v)
        self._cleared_beta[:], self.v[:] = self.beta, self._cleared_v
        self._drift = 0.0
        given = self.problem.variables, self.n_groups, self.beta, self.v
        (self.level,), self.violation = levels_and_violation(*given)

    def _recompute(self) -> None:
        """Compute v from the variables alone."""
        self._cleared_beta[:], self._cleared_v[:] = 0.0, -self.problem.linear
        self.clear()
        self._lost = float(np.finfo(np.float64).eps)

    def exact_scores(self) -> np.ndarray:
        """Return a copy of v, free of the rounding of steps."""
        if self._drift > 0.0:
            self.clear()
        return self.v.copy()

    def snap(self) -> None:
        """Put variables to a bound from which only rounding keeps them."""
        if snap_to_bounds(self.problem.variables, self.n_groups, self.beta):
            self.clear()


def warm_start_ratio(before: DualProblem, beta: np.ndarray, problem: DualProblem) -> float:
    """Factor by which to scale a solution when the cost grows."""
    return _ratio(beta, before.lower, before.upper, problem.lower, problem.upper)


@njit(cache=True, nogil=True)
def _ratio(beta, before_lower, before_upper, lower, upper):
    """Return how much further the walls are, or one if most of the nonzero variables are free."""
    ratio = np.inf
    nonzero = 0
    at_wall = 0
    for t in range(beta.shape[0]):
        if beta[t] != 0.0:
            nonzero += 1
            if beta[t] == before_upper[t]:
                at_wall += 1
                ratio = min(ratio, upper[t] / before_upper[t])
            elif beta[t] == before_lower[t]:
                at_wall += 1
                ratio = min(ratio, lower[t] / before_lower[t])
    return ratio if 2 * at_wall > nonzero else 1.0


@njit(cache=True, nogil=True)
def _scale(beta, v, linear, before_lower, before_upper, lower, upper, ratio):
    """Multiply ``beta``, and what it adds to ``v``; what is at its wall stays there."""
    for t in range(beta.shape[0]):
        if beta[t] == before_upper[t]:
            beta[t] = upper[t]
        elif beta[t] == before_lower[t]:
            beta[t] = lower[t]
        else:
            beta[t] *= ratio
        v[t] = ratio * (v[t] + linear[t]) - linear[t]


@njit(cache=True, nogil=True, error_model="numpy")
def _settle(K, slot, diagonal, v, beta, variables, n_groups, tol, allowed):
    """Take up to so many steps; returns ``(steps, level, violation)``, changes ``v, beta``."""
    m = v.shape[0]
    levels, violation = levels_and_violation(variables, n_groups, beta, v)
    if violation <= tol:
        return 0, levels[0], violation
    score = np.empty(m, dtype=np.float32)
    for t in range(m):
        score[t] = v[t] - levels[0]
        v[t] -= np.float64(score[t])
    low, high = variables.lower, variables.upper
    rise, fall = np.empty((1, m), dtype=np.float32), np.empty((1, m), dtype=np.float32)
    walls(beta, low, high, variables.group, rise, fall)
    block = Block(K, slot, diagonal, score, beta, low, high, rise, fall)
    _, steps = steps_among(n_groups > 0, block, np.float32(0.9 * tol), allowed)
    for t in range(m):
        v[t] += np.float64(score[t])
    levels, violation = levels_and_violation(variables, n_groups, beta, v)
    return steps, levels[0], violation
