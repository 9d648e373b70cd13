"""Many working sets at once, then Newton steps on what is left: the engine for a GPU.

The problem is that of :mod:`maxmargin.duals`; a step is SMO's. A step is a chain of small
operations, each waiting for the last, and a GPU is slow at one such chain; but it runs hundreds
side by side. So in every round

    the violators of each problem are cut into sets of neighbours, and all sets are solved at once;
    or one set of the worst violators of each problem is, which joins what the cuts keep apart.

Sets of one problem know nothing of each other, and their steps together go too far. How far to go
along each set's step d_p is a small problem of its own,

    minimise  1/2 t' H t - r' t   for  0 <= t <= T,    H_pq = d_p' K d_q,   r_p = d_p' v,

solved exactly; where sets hardly touch, as neighbours under a local kernel do, every t is one.
The sets are cut anew each round, along another of a few random trees.

A large problem is worked on by stages: a part of the variables, those near their level, is solved
to a fraction of the violation while the others wait; then all scores are brought up to date. A very
large one begins with samples of its rows.

Where classes overlap and C is large, thousands of variables are free and pull at each other, and
rounds crawl. Then all variables near their level are solved for at once, in float64, by an
interior-point method (:mod:`maxmargin.backends.interior_point`), as soon as the rounds spent
without much effect have cost as much as that will.

What the solver believes is float32 until then. The certificate recomputes it in float64 on the
device, and another round repairs what rounding left (:mod:`maxmargin.solvers.dual.certified`).

References: Fan, Chen and Lin, JMLR 6, 2005 (the choice of two variables); Hsieh, Dhillon, Ravikumar
and Banerjee, NIPS 2016 (sets of neighbours and a common step); Dasgupta and Freund, STOC 2008 (the
trees).
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from maxmargin.backends.device import on_host
from maxmargin.duals import DualBatch, DualProblem
from maxmargin.gram import DeviceGram
from maxmargin.progress import Progress
from maxmargin.solution import Solution, Status
from maxmargin.solvers.driver import Watch, drive
from maxmargin.solvers.dual.method import BatchMethod, DualRun
from maxmargin.solvers.dual.near_level import Pace

if TYPE_CHECKING:
    from maxmargin.backends.cuda.sets import Snapshot, Variables

_TOGETHER = 30_000  # variables up to which problems are solved side by side
_SET = 1024  # variables of a working set
_STEPS = 5  # steps per variable of a set, at most, before all are looked at again
_TIGHTEN = 0.1  # a set is solved to this part of its violation, or
_BELOW = 0.3  # to this part of the tolerance
_CROWD = 2  # sets of a problem from which its violators are cut into several
_LOOKS = 2  # rounds between two looks of the host at the violation
_CHUNK, _LARGEST_CHUNK = 100_000, 400_000  # variables that a stage works on
_SAMPLED, _ROUGH = 2, 0.15  # chunks from which samples come first, and how far these are solved
_SETS = 512  # working sets of one round
_STAGE, _GOAL = 0.2, 0.8  # a stage ends at this part of the violation, or of the tolerance
_WIDE, _MARGIN = 2.0, 0.02  # violations and score below the level that belong to a stage
_FARTHEST = 4.0  # times its own step, that a set may go
_TREES, _LEAF = 4, 256
_DEVIATIONS = 8  # that the largest and the smallest of many values may be apart by rounding
_STALE = 10  # looks in a row that find no progress, before a problem counts as stuck:
_PROGRESS, _LESS = 1e-9, 0.9  # of the objective, relative, or a violation less than this share
_CRAWL = 500  # steps per variable
_FALLEN = 0.1  # a violation that falls to this part in time does not crawl
_BAND = 1.25  # variables that Newton steps take in, times those that may move, and some more
_CHAIN = 1000  # steps, one after the other, that take as long as the rest of a round
_EXACT = 0.5  # of the tolerance, that Newton's steps go for in float64
_RENEWAL = 3e-8  # rounds that a kernel value in float64 takes, for the renewals of a Newton solve
_FRUITLESS = 3  # Newton's answers in a row that better nothing, before a problem counts as stuck
_TOGETHER_SHARE, _MOST_TOGETHER = 0.25, 32_768  # of the memory, and what a launch can have


@dataclass(frozen=True)
class ParallelSets(BatchMethod):
    """Many working sets side by side, for a Gram matrix on a GPU."""

    def accepts(self, problem: DualProblem) -> str | None:
        """Refuse a Gram matrix that is not on a GPU, and what float32 cannot hold."""
        if not problem.gram.on_device:
            return "Parallel working sets are for a GPU: use device='cuda', or solver='smo'."
        if problem.hard or not problem.gram.fits_float32:
            return (
                "Parallel working sets compute in float32, and the hard margin (C=inf) or huge "
                "kernel values need more: use solver='smo'."
            )
        return None

    def begin(self, problem: DualProblem, watch: Watch, pace: Pace | None = None) -> Any:
        """Begin with one problem as with several; the answer is a list of one."""
        return _Run([_on_whole(problem)], [watch])

    def solve_all(
        self, problems: Sequence[DualProblem], watches: Sequence[Watch]
    ) -> list[Solution]:
        """Solve every problem from its start.

        The decisions of a solution are those on the rows of its problem.
        """
        problems = [_on_whole(problem) for problem in problems]
        return problems[0].gram.device.at_work(partial(self._solve_all, problems, watches))

    def _solve_all(
        self, problems: Sequence[DualProblem], watches: Sequence[Watch]
    ) -> list[Solution]:
        solutions: dict[int, Solution] = {}
        for part in _parts(problems):
            own = [watches[k] for k in part]
            run = _Run([problems[k] for k in part], own)
            together = replace(own[0], max_iter=-1)  # each problem has a limit of its own
            solutions.update(zip(part, drive(run, together), strict=True))
            together.monitor.fit.finished(len(part))
        return [solutions[k] for k in range(len(problems))]


def _on_whole(problem: DualProblem) -> DualProblem:
    """Return a problem over a part of a matrix as one over the whole."""
    gram = problem.gram.device
    if gram.whole is None or gram.index is None:
        return problem
    decision = problem.known_decision
    if decision is not None:
        decision = np.zeros(gram.whole.n)
        decision[gram.index] = problem.known_decision
    row = gram.index[problem.gram_row]
    return replace(problem, gram_row=row, known_decision=decision).over(gram.whole)


def _parts(problems: Sequence[DualProblem]) -> list[list[int]]:
    """Which problems are solved together: small ones of one kind, as many as have room.

    The longest come first, so that those solved together are about as long.
    """
    gram = problems[0].gram.device
    parts: dict[tuple, list[int]] = {}
    for k in sorted(range(len(problems)), key=lambda k: -len(problems[k])):
        large = len(problems[k]) > _TOGETHER
        parts.setdefault((problems[k].n_groups, k if large else None), []).append(k)
    cut = []
    for part in parts.values():
        size = len(problems[part[0]])
        q = min(_SET, 2 * size)
        each = q * (16 * q + gram.matrix.points.bytes_per_row) + 128 * size + 16 * gram.n
        room = int(np.clip(_TOGETHER_SHARE * gram.matrix.memory // each, 1, _MOST_TOGETHER))
        cut += [sorted(part[first : first + room]) for first in range(0, len(part), room)]
    return cut


class _Progress:
    """Whether problems still get anywhere: steps are taken, and violation or objective falls.

    Where steps are too many for that, they crawl, and SMO's Newton steps are what helps.
    """

    def __init__(self, variables: Variables) -> None:
        count, self.size = variables.b.shape
        self.steps, self.stale = np.full(count, -1), np.zeros(count, dtype=int)
        self.violation, self.objective = np.full((2, count), np.inf)

    def stalled(self, now: Snapshot) -> np.ndarray:
        """Take note of where the problems are; returns which have got nowhere for some time."""
        falls = now.objective < self.objective - _PROGRESS * np.abs(now.objective)
        falls |= now.violation < _LESS * self.violation
        self.stale = np.where(falls, 0, self.stale + 1)
        crawls = now.steps > _CRAWL * self.size
        self.stale = np.where((now.steps == self.steps) | crawls, _STALE, self.stale)
        self.steps = now.steps
        self.objective = np.fmin(self.objective, now.objective)
        self.violation = np.fmin(self.violation, now.violation)
        return self.stale >= _STALE


class _Pace:
    """Whether rounds crawl: they have cost as much as Newton steps will, and done little.

    Costs are counted in rounds of few steps. One step waits for the last, so that the longest
    chain of them in a round adds to its cost.
    """

    def __init__(self, count: int, renewal: float = 0.0) -> None:
        self.violation, self.since = np.full(count, np.inf), np.zeros(count)
        self.renewal = renewal  # rounds that it takes to make all scores anew

    def crawls(self, now: Snapshot, rounds: int, working: int) -> np.ndarray:
        """Take note of where the problems are after so many rounds; returns which crawl.

        Rounds are shared by all problems that are still at work, Newton steps are not.
        """
        falls = (now.violation < _FALLEN * self.violation) | ~np.isfinite(self.violation)
        self.violation = np.where(falls, now.violation, self.violation)
        spent = rounds + now.chain / _CHAIN
        self.since = np.where(falls, spent, self.since)
        patience = max(working, 1) * (_newton_cost(now.movable) + self.renewal)
        return spent - self.since > patience


def _newton_cost(movable: np.ndarray) -> np.ndarray:
    """Rounds that take as long as Newton's way to a solution with so many variables.

    Some thirty factorisations, bound by their chain of small steps up to 8,000 variables and by
    arithmetic beyond; on one H200, where a round of few steps takes 1.2 ms.
    """
    thousands = movable / 1024
    return 30 + 24 * thousands + 3 / 8 * thousands**3


class _Run(DualRun):
    """Some problems on their way."""

    def __init__(self, problems: Sequence[DualProblem], watches: Sequence[Watch]) -> None:
        self.problems, self.watches = problems, watches
        gram = problems[0].gram.device
        self.tol = np.array([watch.tol for watch in watches])
        self.limit = np.array([watch.left(0) for watch in watches])
        self.ended: list[Status | None] = [None] * len(problems)
        self.at_work = np.ones(len(problems), dtype=bool)
        self.large = len(problems) == 1 and len(problems[0]) > _TOGETHER
        self.sets = _variables(gram, problems)
        self.start = self.sets.b.clone()
        self.most_free = gram.matrix.largest_system
        self.sets.look()
        # problem, violation and steps, as of the last look
        self.told = 0, float(self.sets.violation[0]), 0

    def solution(self, status: Status) -> Any:
        """Bring the answers to the host."""
        sets, solutions = self.sets, []
        exact = not self.large
        steps, b = on_host(sets.steps), on_host(sets.b)
        known = on_host(sets.decisions() if exact else sets.v)
        for k, problem in enumerate(self.problems):
            own = slice(0, len(problem))
            decision = known[k, own]
            if not exact:
                decision = -problem.orientation * (decision + problem.linear)
            if problem.rows is not problem.gram_row:
                decision = decision[np.unique(problem.gram_row, return_index=True)[1]]
            ended = self.ended[k] or status
            solutions.append(Solution(b[k, own], int(steps[k]), ended, decision, exact))
        return solutions

    def progress(self, watch: Watch) -> Progress:
        """Where the problem is that is furthest from its end."""
        return self._progress(*self.told)

    def reports(self, watch: Watch) -> list[Progress]:
        """Where each problem is, by a look at all of its variables."""
        self.sets.look()
        now = self.sets.snapshot()
        return [
            self._progress(k, float(now.violation[k]), int(now.steps[k]), -float(now.objective[k]))
            for k in range(len(self.problems))
        ]

    def _progress(self, k: int, violation: float, steps: int, dual: float = np.nan) -> Progress:
        problem, beta, own = self.problems[k], self._beta(k), self.watches[k]
        gap = problem.gap(beta, on_host(self.sets.score[k, : len(problem)]))
        return Progress(
            own.monitor.problem,
            "ParallelSets",
            own.spent + steps,
            violation,
            own.tol,
            dual + gap,
            dual,
            gap,
            beta,
            words=self.words,
            solves_for="multipliers",
            others=self._betas,
        )

    def _beta(self, k: int) -> np.ndarray:
        return on_host(self.sets.b[k, : len(self.problems[k])])

    def _betas(self) -> dict[int, np.ndarray]:
        numbers = [watch.monitor.problem for watch in self.watches]
        return {number: self._beta(k) for k, number in enumerate(numbers)}

    def steps(self) -> Generator[None, None, None]:
        """By stages where a problem is large, else all together."""
        if self.large:
            yield from self._by_stages()
        else:
            yield from self._all_together()

    def _all_together(self) -> Generator[None, None, None]:
        """Sets of every problem at a time, until all are done; then those that only crawl."""
        variables, rounds, count = self.sets, 0, len(self.problems)
        local = variables.padding > _SET and variables.local_pays
        below = _BELOW * float(self.tol.min())
        progress, pace = _Progress(variables), _Pace(count)
        crawls = np.zeros(count, dtype=bool)
        while True:
            variables.look()
            if rounds % _LOOKS == 0:
                now = variables.snapshot()
                at_work = int(np.count_nonzero(self.at_work))
                crawls |= progress.stalled(now) | pace.crawls(now, rounds, at_work)
                if self._finished(now, crawls):
                    break
                try:
                    yield
                except GeneratorExit:
                    variables.even_out(self.start)
                    raise
            if local and rounds % 2 == 0 and (count == 1 or self._crowded(now, rounds)):
                if not variables.orders:
                    variables.plant_trees(_TREES, _LEAF)
                allowed = self._allowed(now.steps, _SETS)
                most = int(now.movable[self.at_work].max(initial=0))
                variables.local_round(_SET, _SETS, most, _FARTHEST, _TIGHTEN, below, allowed)
            else:
                variables.worst_round(_SET, _TIGHTEN, below, self._allowed(now.steps))
            rounds += 1
        variables.even_out(self.start)
        for k in range(count):
            if self.ended[k] is Status.STALLED:
                one = variables.problem(k)
                goal = _EXACT * float(self.tol[k])
                self.ended[k] = None
                now = yield from self._newton(one, k, goal, int(variables.steps[k]))
                variables.steps[k] += one.steps[0]
                if now.violation[0] <= goal:
                    self.ended[k] = Status.CONVERGED
                elif variables.steps[k] >= self.limit[k]:
                    self.ended[k] = Status.MAX_ITER
                else:
                    self.ended[k] = Status.STALLED

    def _crowded(self, now: Snapshot, rounds: int) -> bool:
        """Whether one set of a problem holds too little of what may move, in most problems.

        Not yet in the first rounds, when everything may move: the worst soon tell.
        """
        movable = now.movable[self.at_work]
        return rounds >= 2 * _LOOKS and float(np.median(movable)) > _CROWD * _SET

    def _newton(
        self, one: Variables, k: int, goal: float, spent: int
    ) -> Generator[None, None, Snapshot]:
        """Solve for all variables near their level at once, until nothing else violates.

        Ends short of the goal where that betters nothing any more, or cannot be done: with too many
        variables, or with a kernel that is not positive semidefinite.
        """
        best, lowest, fruitless = np.inf, np.inf, 0
        while True:
            one.renew()
            one.look()
            now = one.snapshot()
            violation, objective = float(now.violation[0]), float(now.objective[0])
            movable, steps = int(now.movable[0]), spent + int(now.steps[0])
            self.told = k, violation, steps
            yield
            better = violation < _LESS * best or objective < lowest - _PROGRESS * abs(objective)
            fruitless = 0 if better else fruitless + 1
            best, lowest = min(best, violation), min(lowest, objective)
            if violation <= goal or fruitless == _FRUITLESS or movable > self.most_free:
                return now
            if steps >= self.limit[k]:
                return now
            most = min(int(_BAND * movable) + _SET, self.most_free)
            part = one.near_level(_WIDE * violation + _MARGIN, most, worst=1.0)
            if not part.minimise(max(_TIGHTEN * violation, 0.6 * goal), violation):
                return now
            one.adopt(part)

    def _by_stages(self) -> Generator[None, None, None]:
        """Solve one large problem: roughly on samples of it, each four times the last; then all."""
        whole = self.sets
        whole.look()
        whole.plant_trees(_TREES, _LEAF)
        sizes = [whole.padding]
        fresh = not self.problems[0].start.any()
        while fresh and sizes[0] > _SAMPLED * _CHUNK:
            sizes.insert(0, sizes[0] // 4)
        for size in sizes[:-1]:
            sample = whole.sample(size)
            sample.look()
            try:
                yield from self._stages(sample, _ROUGH * float(sample.violation[0]))
            finally:
                whole.take_over(sample)
        yield from self._stages(whole, 0.0)

    def _stages(self, whole: Variables, goal: float) -> Generator[None, None, None]:
        """Work on the part that matters now, then look at all; until solved, or to a rough goal."""
        tol, rough = float(self.tol[0]), whole is not self.sets
        progress, crawls, tried = _Progress(whole), False, False
        while True:
            whole.look()
            now = whole.snapshot()
            violation, stalled = float(now.violation[0]), progress.stalled(now)
            renewal = _RENEWAL * whole.size * int((whole.b != 0).sum())
            cheap = renewal <= _newton_cost(now.movable)[0]  # otherwise the certificate renews them
            crawls = (crawls or (stalled[0] and cheap)) and not tried
            crawls = crawls and bool(now.movable[0] <= self.most_free)
            stalled &= not crawls
            if rough:  # a sample's steps are not yet among those of the whole
                spent = int(self.sets.steps[0] + now.steps[0])
                if violation <= goal or stalled[0] or spent >= self.limit[0]:
                    return
            else:
                spent = int(now.steps[0])
                if self._finished(now, stalled):
                    return
            yield
            if crawls:
                wanted = _EXACT * max(tol, goal)
                now = yield from self._newton(whole, 0, wanted, spent - int(now.steps[0]))
                crawls, tried = False, bool(now.violation[0] > wanted)
                continue
            violators = int((whole.excess()[0] > 0).sum())
            most = int(np.clip(1.25 * violators, _CHUNK, _LARGEST_CHUNK))
            part = whole.near_level(_WIDE * violation + _MARGIN, most)
            target = max(_STAGE * violation, _GOAL * max(tol, goal))
            try:
                crawls = yield from self._stage(part, target, spent, renewal)
            finally:
                whole.take_over(part)

    def _stage(
        self, part: Variables, target: float, spent: int, renewal: float
    ) -> Generator[None, None, bool]:
        """Rounds on a part until its violation is small against what the whole has.

        Returns whether they were given up because they crawl: ``renewal`` is what it costs, in
        rounds, to make the scores of the whole anew, which comes with Newton steps.
        """
        rounds, below, progress, pace = 0, _BELOW * target, _Progress(part), _Pace(1, renewal)
        while True:
            part.look()
            if rounds % _LOOKS == 0:
                now = part.snapshot()
                taken = spent + now.steps
                self.told = 0, float(now.violation[0]), int(taken[0])
                stalled = progress.stalled(now)[0]
                if now.violation[0] <= target or stalled or taken[0] >= self.limit[0]:
                    return False
                yield
                if pace.crawls(now, rounds, 1)[0] and now.movable[0] <= self.most_free:
                    return True
            if rounds % 2 == 0:
                allowed = self._allowed(taken, _SETS)
                most = int(now.movable[0])
                part.local_round(_SET, _SETS, most, _FARTHEST, _TIGHTEN, below, allowed)
            else:
                part.worst_round(_SET, _TIGHTEN, below, self._allowed(taken))
            rounds += 1

    def _allowed(self, taken: np.ndarray, sets: int = 1) -> int:
        """Steps that each of so many sets of a problem may take in the next round."""
        left = (self.limit - taken)[self.limit > taken]
        return min(_STEPS * _SET, int(left.min(initial=1 << 62)) // sets) if len(left) else 0

    def _finished(self, now: Snapshot, idle: np.ndarray) -> bool:
        """Let problems rest that are done, and say whether all are."""
        k = int(np.argmax(now.violation / self.tol))
        self.told = k, float(now.violation[k]), int(now.steps[k])
        goal = np.maximum(0.5 * self.tol, self.tol - _DEVIATIONS * now.uncertainty)
        solved, spent = now.violation <= goal, now.steps >= self.limit
        for k in range(len(self.problems)):
            if solved[k]:
                self.ended[k] = Status.CONVERGED
            elif spent[k]:
                self.ended[k] = Status.MAX_ITER
            elif idle[k]:
                self.ended[k] = Status.STALLED  # in float32: the certificate sees further
        done = solved | spent | idle
        self.at_work = ~done
        self.sets.rest(done)
        return bool(done.all())


def _variables(gram: DeviceGram, problems: Sequence[DualProblem]) -> Variables:
    """Bring problems to the device, with the decisions at their start."""
    from maxmargin.backends.cuda.sets import Variables

    batch = DualBatch.of(problems)
    decision = np.zeros(batch.offset[-1])
    for k, problem in enumerate(problems):
        if problem.known_decision is not None or problem.start.any():
            own = problem.decision_at_start()[problem.gram_row]
            decision[batch.offset[k] : batch.offset[k + 1]] = own
    arrays = {**batch.arrays, "decision": decision}
    return Variables.on_device(gram.matrix, arrays, batch.offset, problems[0].n_groups)
