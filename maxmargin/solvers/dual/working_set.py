"""The working-set engine: solve a large block in cache, touch all of the data rarely.

The problem is that of :mod:`maxmargin.duals`; a step is SMO's. What differs is where the time goes.
SMO reads two whole rows of the Gram matrix at every step, and on large data that is all it does.
Here

    repeat
        select   the free variables and the worst violators: some thousands of them
        block    their part of the Gram matrix, in float32, next to each other in memory
        solve    the problem of these variables alone, by steps of two inside the block, and now
                 and then one along what these have done
        update   D = K coef on all rows, by the rows of the variables that moved
    until no pair of variables violates the KKT conditions by more than tol

so that a row of the whole matrix is computed once or twice and read a handful of times. Where
rounds crawl, all variables near their level are solved for at once, in float64. D is kept in
float64 from float32 values: what that leaves wrong, the certificate finds and another round
repairs. A problem that fits a block takes a single round.

References: Osuna, Freund and Girosi, 1997 and Joachims, 1999 (decomposition); Fan, Chen and Lin,
JMLR 6, 2005 (the choice of two variables).
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from maxmargin.backends import cpu
from maxmargin.backends.cpu.dual import steps as cpu_steps
from maxmargin.backends.cpu.dual.kkt import KKTScan, kkt_scan
from maxmargin.backends.cpu.dual.momentum import conjugate_steps
from maxmargin.backends.cpu.dual.steps import PAUSED, Block
from maxmargin.backends.interior_point import MOST_STEPS
from maxmargin.backends.threads import StoppedError, Workers
from maxmargin.duals import DualProblem
from maxmargin.kernels.base import Validity
from maxmargin.solution import Solution, Status
from maxmargin.solvers.driver import Measure, Watch
from maxmargin.solvers.dual.method import DualMethod, DualRun, Unbegun
from maxmargin.solvers.dual.near_level import NearLevel, Pace

LARGEST, LEAST = 8192, 64  # variables of a working set
_WHOLE = 2048  # variables up to which a set grows, all rows of its members kept
_GROWN = 24, 192  # variables that join it at a time,
_ROUND = 40_000, 400_000  # within these limits as many as take the time of a round's own work, in
# ns: where rows are made in the compiled call, and where it comes back for them
_FIRST = 1024  # variables of the first set, a random one: more harm where few support vectors are
_ADDED = 2048  # violators that join the free variables, or as many as are free
_FEWEST = 512  # variables to which a set is filled up
_WORST = 0.1  # share of them that are the worst
_DEVIATIONS = 8  # that the largest and the smallest of many values may be apart by rounding
_BLOCK_SHARE = 0.6  # of the memory, for the block; the rest is for rows
_VECTORS = 16  # arrays of the number of variables, float64, that a solve holds at once
_PATIENCE, _RENEWAL = 20, 4  # steps per variable, and entries of steps per entry renewed
_SLICE = 30_000_000  # entries of a call of the compiled steps: some hundredths of a second
_STALL_ROUNDS, _PROGRESS = 10, 1e-13
_ADDED_ENTRY = 0.2  # ns of adding an entry of a row that is kept


Stopped = Callable[[], Any]  # whether someone wants the work to end


@dataclass(frozen=True)
class WorkingSet(DualMethod):
    """Decomposition into large working sets, in float32.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin import Gram, duals
    >>> from maxmargin.kernels import Linear
    >>> from maxmargin.solvers import WorkingSet
    >>> gram = Gram.of(np.array([[-1.0], [1.0]]), Linear())
    >>> problem = duals.c_svc(np.arange(2), np.array([-1.0, 1.0]), C=np.full(2, 10.0))
    >>> WorkingSet().solve(problem.over(gram)).beta
    array([-0.5,  0.5])
    """

    def accepts(self, problem: DualProblem) -> str | None:
        """Refuse what float32 cannot hold: the hard margin, and huge or tiny kernel values."""
        if problem.hard:
            return (
                "The working-set method computes in float32, and the hard margin (C=inf) needs "
                "more: use solver='smo', or a finite C."
            )
        if not problem.gram.fits_float32:
            return (
                "The working-set method computes in float32, and the kernel's values here are too "
                "large or too small for it: use solver='smo', or scale the data."
            )
        return None

    def begin(self, problem: DualProblem, watch: Watch, pace: Pace | None = None) -> DualRun:
        """Begin at the problem's start, whose decision may take a while to know."""
        with suppress(StoppedError):  # nothing is done by then
            if not watch.stopped():
                return WorkingSetRun(problem, watch, pace or Pace())
        return Unbegun(problem, watch)


class WorkingSetRun(DualRun):
    """The working-set method at work."""

    def __init__(self, problem: DualProblem, watch: Watch, pace: Pace) -> None:
        self.problem, self.watch = problem, watch
        self.state = _State(problem, Workers(watch.workers.count, watch.stopped), pace)
        self.violation = self.state.kkt_scan()

    @property
    def variables(self) -> np.ndarray:
        """The signed variables."""
        return self.state.beta

    @property
    def working_set(self) -> np.ndarray | None:
        """The variables of the last set."""
        return self.state.chosen

    def measure(self) -> Measure:
        """What the last look at all variables has found."""
        value, _ = self.state.objective()
        return self.measured(self.violation, -value, self.state.gap())

    def solution(self, status: Status) -> Solution:
        """Return the variables and the decision, as they are."""
        return Solution(self.state.beta, self.n_iter, status, self.state.decision)

    def steps(self) -> Generator[None, None, None]:
        """Choose a set, solve for it, look at all variables; until none violates."""
        state, tol = self.state, self.watch.tol
        idle, best = 0, np.inf
        while True:
            goal = max(0.5 * tol, tol - state.rounding())
            if self.violation <= goal:
                return
            yield
            left = self.watch.left(self.n_iter)
            taken, moved = state.advance(goal, self.violation, left, self.watch.stopped)
            self.n_iter += taken
            value, size = state.objective()
            idle = 0 if value < best - _PROGRESS * size else idle + 1
            best = min(best, value)
            done = state.pace.hopeless or state.pace.exhausted
            if not moved or idle == _STALL_ROUNDS or done:
                self.status = Status.STALLED  # in float32: the certificate sees further
                return
            self.violation = state.kkt_scan()


class _State:
    """Where a solve is: ``beta``, the decision ``D = K coef``, and the rows computed so far."""

    def __init__(self, problem: DualProblem, workers: Workers, pace: Pace) -> None:
        gram = problem.gram.host
        self.gram, self.problem, self.workers, self.pace = gram, problem, workers, pace
        self.chosen: np.ndarray | None = None  # the last set
        points = gram.float32_points()
        self.points = points.gathered() if gram.float32_bytes else points
        self.n_groups = problem.n_groups
        self.orientation = problem.orientation.astype(np.float32)
        self.same_orientation = bool((self.orientation == self.orientation[0]).all())
        self.diagonal = gram.diagonal.astype(np.float32)
        self.beta = problem.start.copy()
        self.decision = problem.decision_at_start(workers)
        self.fresh = not self.decision.any()
        self.random = np.random.default_rng(0)
        size = len(problem)
        self.variables, self.found = problem.variables, KKTScan.empty(size)
        memory = gram.memory - gram.float32_bytes - 8 * _VECTORS * size
        memory = max(memory - workers.count * 4 * cpu.TILE_BYTES, 0)
        side = max(self._side(_BLOCK_SHARE * memory), LEAST)
        self.largest = min(side, LARGEST, size)
        self.grows = size <= min(side / 2**0.5, _WHOLE) and not problem.paired  # two blocks then
        left = memory - self.largest * (4 * self.largest + self._gathered_bytes)
        cheap = self.points.is_cheap
        kept = 0 if cheap else int(np.clip(left // (4 * gram.n), 0, gram.n))
        self.store = gram.float32_rows(kept)
        self._moved = problem.on_rows(self.beta) != 0
        self._buffer = np.empty(0, dtype=np.float32)
        self._growth: Any = None  # these three once a set grows: see _grow
        self._dense: Any = None
        self._used = 0
        self._near_level = NearLevel(problem, workers)
        self._exact = False  # whether the decision is one in float64

    @property
    def _gathered_bytes(self) -> int:
        """What a row of a block's data takes, from where it is to float32 side by side."""
        return self.points.width * (8 if self.gram.float32_bytes else 20)

    def _side(self, memory: float) -> int:
        """Largest q with ``4 q^2`` bytes of block, and the data of q rows, in this memory."""
        g = self._gathered_bytes
        return int((-g + (g * g + 16 * memory) ** 0.5) / 8)

    def kkt_scan(self) -> float:
        """Look at every variable; returns the largest violation."""
        return kkt_scan(self.variables, self.n_groups, self.beta, self.decision, self.found)

    def select(self, tol: float) -> np.ndarray:
        """Choose the variables to solve for: all that are free, and some violators.

        A tenth of these are the worst, the others any: the worst are often neighbours, and what is
        done for a few of them is done for all. A small set takes in who is nearest to violating:
        where few are free the level would otherwise swing, and the two sides violate in turns.
        """
        if self.fresh:
            self.fresh = False
            return self._one_per_row(self._sample())
        free = self.found.may_rise & self.found.may_fall
        others = (self.found.excess > 0.5 * tol) & ~free
        reserved = min(_ADDED, self.largest // 2, int(np.count_nonzero(others)))
        free = _highest(np.flatnonzero(free), self.found.excess, self.largest - reserved)
        room = min(self.largest - len(free), max(_ADDED, len(free)))
        violators = np.flatnonzero(others)
        if len(violators) > room:
            worst = _highest(violators, self.found.excess, max(int(_WORST * room), 2))
            others[worst] = False
            rest = self.random.choice(np.flatnonzero(others), room - len(worst), replace=False)
            violators = np.concatenate([worst, rest])
        chosen = np.concatenate([free, violators])
        if len(chosen) < _FEWEST:
            chosen = np.arange(len(self.beta))
            chosen = _highest(chosen, self.found.excess, min(_FEWEST, self.largest))
        return self._one_per_row(chosen)

    def _sample(self) -> np.ndarray:
        """Begin with a random part, half able to rise and half to fall, and with the worst pair."""
        count = min(_FIRST, self.largest - 2)
        halves = [np.flatnonzero(self.found.may_rise), np.flatnonzero(self.found.may_fall)]
        sample = [
            self.random.choice(half, min(count // 2, len(half)), replace=False) for half in halves
        ]
        worst = _highest(np.arange(len(self.beta)), self.found.excess, 2)
        return np.unique(np.concatenate([*sample, worst]))

    def _one_per_row(self, chosen: np.ndarray) -> np.ndarray:
        """Of two variables on a row keep the worse violator; its sibling can wait a round.

        Without a bias the two of nu-SVR share a group and may be the worst pair: both stay.
        """
        if not self.problem.paired or (self.n_groups == 1 and not self.same_orientation):
            return chosen
        chosen = chosen[np.argsort(-self.found.excess[chosen], kind="stable")]
        _, first = np.unique(self.problem.gram_row[chosen], return_index=True)
        return chosen[first]

    def advance(
        self, tol: float, violation: float, allowed: int, stopped: Stopped
    ) -> tuple[int, bool]:
        """One round; returns the steps taken and whether anything moved."""
        before = self.beta.copy(), self.decision.copy()
        try:
            steps = self._descend(tol, violation, allowed)
            if self.pace.exhausted:
                return 0, True  # float32 would only undo what was reached
            if not steps and self.grows:
                steps = self._grow(tol, allowed, stopped)
            elif not steps:
                steps = self._exchange(tol, violation, allowed, stopped)
        except BaseException as error:
            self.gram.forget()  # some may be half made
            if not isinstance(error, StoppedError):
                raise
            self.beta, self.decision = before
            return 0, True
        return steps, not np.array_equal(before[0], self.beta)

    def _exchange(self, tol: float, violation: float, allowed: int, stopped: Stopped) -> int:
        """Select, block, solve, update; returns the steps."""
        chosen = self.chosen = self.select(tol)
        block = self._block(chosen)
        wanted = cpu_steps.wanted(tol, violation)
        steps = self._solve(block, wanted, allowed, stopped)
        change = self.problem.orientation[chosen] * (block.beta - self.beta[chosen])
        self.beta[chosen] = block.beta
        moved = np.flatnonzero(change)
        self._update(self.problem.gram_row[chosen[moved]], change[moved])
        self.pace.spent += len(chosen) * (steps + len(chosen)) + self.gram.n * len(moved)
        return steps

    def _grow(self, tol: float, allowed: int, stopped: Stopped) -> int:
        """Solve a small problem in compiled code: see :func:`cpu_steps.grow`; returns the steps."""
        m = len(self.beta)
        if self._growth is None:
            self._growth = cpu_steps.Growth.empty(m, self.gram.scratch.floats(2 * m * m))
            order = self.problem.gram_row
            if not np.array_equal(order, np.arange(m)):
                self.points = self.points.take(order).gathered()
            diagonal = self.gram.diagonal[order]
            self._dense = cpu.DensePoints.of(self.gram.program, self.points, diagonal)
        own_work = _ROUND[not len(self._dense.X)]
        at_once = int(np.clip(own_work / (self.points.entry_time * m), *_GROWN))
        patience, steps = self._patience(m), 0
        while True:
            code, taken, self._used, joining = cpu_steps.grow(
                self.variables,
                self.n_groups,
                self.beta,
                self.decision,
                self._growth,
                self._used,
                self._dense,
                tol,
                at_once,
                min(allowed, patience) - steps,
                _SLICE,
            )
            steps += taken
            if code != cpu_steps.ROWS:
                break
            self._join(joining)
            if stopped():
                break
        self.pace.spent += m * steps
        self.chosen = self._growth.members[: self._used]
        return steps

    def _join(self, count: int) -> None:
        """Make the rows of variables that join a growing set, from points of any kind."""
        part = slice(self._used, self._used + count)
        rows, joining = self._growth.rows[part], self._growth.members[part]
        cpu.kernel_rows(self.gram.program, self.points, joining, self.points, rows)
        cpu.finite(rows, self.gram.kernel)
        cpu_steps.admit(self.variables, self._growth, self._used, count)
        self._used += count

    def _descend(self, tol: float, violation: float, allowed: int) -> int:
        """Where steps crawl, solve for all variables near their level at once; returns the steps.

        The problem is ill-conditioned then, and float32 too coarse for it: what has gathered in
        the decision by rounding is cleared first.
        """
        pace, near_level = self.pace, self._near_level
        if not pace.tired(violation) or allowed < MOST_STEPS:
            return 0
        if not pace.crawls(near_level.cost(self.beta, self.found.v, pace.budget)):
            return 0
        if not self._exact:
            self._renew()
        self.beta, violation, steps = near_level.descend(self.beta, self.decision, tol)
        pace.judge(violation, steps)
        self._renew()
        self._exact = pace.newton
        return steps

    def _renew(self) -> None:
        """Compute the decision anew, in float64."""
        self.decision = self.problem.decision(self.beta, self.workers)

    def rounding(self) -> float:
        """By how much float32 kernel values may be wrong about the violation."""
        size = float(np.linalg.norm(self.beta) * self.diagonal.max())
        return _DEVIATIONS * cpu.DEVIATION32 * size

    def gap(self) -> float:
        """Duality gap at the levels of the last kkt_scan, to working precision."""
        return self.problem.gap(self.beta, self.found.v)

    def objective(self) -> tuple[float, float]:
        """Value of the dual, as minimised, and the size of its terms."""
        coef = self.problem.on_rows(self.beta)
        quadratic = 0.5 * float(coef @ self.decision)
        if quadratic < 0 and self.gram.kernel.validity is Validity.VALID:
            self.pace.led_astray()  # there is none such: rounding has overgrown it
        linear = float(self.problem.linear @ self.beta)
        return quadratic + linear, abs(quadratic) + abs(linear)

    def _block(self, chosen: np.ndarray) -> Block:
        """Return the problem of the chosen variables alone, as the compiled steps take it."""
        q, rows = len(chosen), self.problem.gram_row[chosen]
        if self._buffer.size < q * q:
            side = min(q + q // 4, self.largest)
            self._buffer = np.empty(side * side, dtype=np.float32)
        K = self._buffer[: q * q].reshape(q, q)
        cpu.kernel_square(self.gram.program, self.points, rows, K, self.workers)
        cpu.finite(K[0], self.gram.kernel)
        if not self.same_orientation:
            K *= self.orientation[chosen]
            K *= self.orientation[chosen][:, None]
        score = self.found.v[chosen].astype(np.float32)
        given = self.variables, self.n_groups, self.beta, K, self.diagonal[rows], score
        return Block.among(chosen, *given)

    def _solve(self, block: Block, wanted: float, allowed: int, stopped: Stopped) -> int:
        """Take steps until no pair violates by more than ``wanted``, but not for ever."""
        q = len(block.score)
        steps, at_once, allowed = 0, max(_SLICE // q, 1), min(allowed, self._patience(q))
        while True:
            most = min(at_once, allowed - steps)
            code, taken = conjugate_steps(self.n_groups > 0, block, np.float32(wanted), most)
            steps += taken
            if code != PAUSED or steps >= allowed or stopped():
                return steps

    def _patience(self, q: int) -> int:
        """Steps in a block before Newton steps are tried: they must be worth a new decision."""
        renewal = self.gram.n * int(np.count_nonzero(self.beta))
        return max(_PATIENCE * q, _RENEWAL * renewal // q)

    def _update(self, rows: np.ndarray, weights: np.ndarray) -> None:
        """Add ``sum_k weights_k K[rows_k]`` to the decision, from rows kept or made now."""
        store, program, points = self.store, self.gram.program, self.points
        known = store.slot[rows] >= 0
        self._add(store.slot[rows[known]], weights[known])
        new, weights = rows[~known], weights[~known]
        kept, slots = self._places(new)
        if len(slots):
            cpu.kernel_rows(program, points, new[kept], points, store.data, self.workers, slots)
            self._add(slots, weights[kept])
        if len(slots) < len(new):
            once, weights = new[~kept], weights[~kept]
            cpu.accumulate(program, points, once, weights, points, self.decision, self.workers)

    def _add(self, slots: np.ndarray, weights: np.ndarray) -> None:
        def add(span: tuple[int, int]) -> None:
            cpu.add_rows(self.store.data, slots, weights, *span, self.decision)

        if len(slots):
            workers = self.workers.for_work(_ADDED_ENTRY * len(slots) * self.gram.n)
            workers.map(add, cpu.spans(self.gram.n, workers.count))

    def _places(self, new: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Which new rows to keep, and their slots: unused ones, then those of rows not free.

        The rows that will be needed again are those of free variables, and those that have moved
        before. One that went straight to its wall most likely stays there, and new memory is slow.
        """
        store, problem = self.store, self.problem
        inside = problem.is_free(self.beta)
        free = np.zeros(self.gram.n, dtype=bool)
        free[problem.gram_row[inside]] = True
        wanting = np.flatnonzero(self._moved[new] | free[new])
        self._moved[new] = True
        unused = np.arange(store.used, min(store.used + len(wanting), store.capacity))
        spare = np.flatnonzero(~free[store.owner[: store.used]])
        slots = np.concatenate([unused, spare])[: len(wanting)]
        kept = np.zeros(len(new), dtype=bool)
        kept[wanting[: len(slots)]] = True
        if len(slots):
            store.place(new[kept], slots)
        return kept, slots


def _highest(index: np.ndarray, score: np.ndarray, count: int) -> np.ndarray:
    """Those ``count`` of the indices that score highest, or all of them."""
    if len(index) <= count:
        return index
    return index[np.argpartition(-score[index], count - 1)[:count]]
