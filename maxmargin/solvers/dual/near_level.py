"""All variables near their level moved at once, where steps of two crawl.

Where the kernel matrix is ill-conditioned (unscaled features, a large C, classes that overlap)
hundreds or thousands of variables are free and pull at each other. The others are at a wall of
the box and far from leaving it. So the problem of those near their level alone, free or about to
be, is solved in float64 by the interior-point method of :mod:`maxmargin.backends.interior_point`;
then all scores are made anew, and who violates the KKT conditions now takes part the next time.
Where the matrix is of low rank, which is what makes it ill-conditioned more often than not, all
variables take part, and a step costs little more than reading them.
"""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np

from maxmargin.backends import cpu
from maxmargin.backends.cpu.dual.kkt import KKTScan, kkt_scan
from maxmargin.backends.interior_point import MATRICES, Dense, Minimum, OnRows, minimise
from maxmargin.backends.low_rank import LowRank, PivotedCholesky
from maxmargin.backends.threads import ALONE, Workers
from maxmargin.duals import DualProblem
from maxmargin.kernels.base import Validity

_WIDE, _MARGIN = 2.0, 20.0  # violations and goals below the level that are near it
_BAND, _MORE = 1.5, 128  # variables taken in: so many times those that may move, and some more
_MANY = 0.8  # of all, that are not worth the choice
_TIGHTEN, _BELOW = 1e-3, 0.6  # of the violation, or of the goal, is gone for,
_ONCE = 0.02  # or of the goal if all take part: the last steps are the shortest
_ALWAYS = 1 << 25  # bytes that the matrices may take however small the budget is
_RENEWAL, _OVERHEAD = 4, 4e7  # entries of steps for a kernel value, and for all small things
_TWICE = 2.0  # a violation that a factor has promised, and another is then wanted
_FALLEN = 0.1  # a violation that falls to this part in time does not crawl
_FRUITLESS, _BETTER = 2, 0.9  # Newton's answers in a row that do not better the violation so much
_RELUCTANCE = 4  # times dearer they count after that
_HOPELESS = 1.5e9  # entries without such a fall, after a failure of Newton's: none will come,
_SURELY = 1, 50  # within these multiples of Newton's cost
_EAGER = 0.03  # of their cost is to be spent before, once float32 has led astray
_LOW_RANK = 6  # entries of steps for each entry of a factor and column, thirty reflections of it
_COARSE, _FINE, _FINER = 1e-9, 1e-13, 1e-2  # of the diagonal that a factor may lack, at first
_AGAIN = 4  # times the cost of a solution, that a finer factor may make it
_NOTHING = 1e-30  # of the smallest diagonal value
_KEPT = 4  # arrays of the size of that factor that are held at once


class Pace:
    """Whether to take Newton's steps: once steps of two crawl, as long as Newton's do not.

    Steps of two crawl when they have cost as much as Newton's will, and have not brought the
    violation to a tenth. That is counted in entries of steps, ``spent``, so that the same fit goes
    the same way twice; it costs at most twice what it would have cost to know. Where neither get
    anywhere, again and again, nothing will: ``hopeless``.
    """

    def __init__(self) -> None:
        self.violation, self.spent, self.wasted = np.inf, 0, 0
        self.best, self.fruitless, self.reluctance, self.failures = np.inf, 0, 1.0, 0
        self.newton = self.gained = False
        self.cost = np.inf

    def again(self) -> None:
        """Begin another round, with Newton's steps if they have led somewhere in the last one."""
        self.newton = self.gained and not self.failures
        self.violation, self.best = np.inf, np.inf
        self.wasted, self.failures, self.gained = 0, 0, False
        self.spent = 0 if self.reluctance >= 1 else self.spent

    def led_astray(self) -> None:
        """Take Newton's steps early, unless they have failed: float32 is too coarse here."""
        if not self.failures:
            self.reluctance = min(self.reluctance, _EAGER)

    def tired(self, violation: float) -> bool:
        """Take note of a violation; whether it is worth asking what Newton's steps cost."""
        if violation < _FALLEN * self.violation:
            self.violation, self.wasted, self.failures = violation, 0, 0
            self.spent = 0 if self.reluctance >= 1 else self.spent
        return self.newton or self.spent > self.reluctance * _OVERHEAD

    @property
    def budget(self) -> float:
        """Cost that Newton's steps may have to be next."""
        return np.inf if self.newton else self.spent / self.reluctance

    def crawls(self, cost: float) -> bool:
        """Whether Newton's steps, of such a cost, are next."""
        self.newton, self.cost = cost < self.budget, cost
        return self.newton

    def judge(self, violation: float, steps: int) -> None:
        """Take note of the violation from which Newton's steps, if any, were taken."""
        self.fruitless = 0 if violation < _BETTER * self.best else self.fruitless + 1
        self.best = min(self.best, violation)
        if not steps or self.fruitless > _FRUITLESS:
            self.wasted += self.spent
            self.newton, self.spent, self.fruitless = False, 0, 0
            self.reluctance = _RELUCTANCE * max(self.reluctance, 1.0)
            self.failures += 1
        else:
            self.gained = True

    @property
    def exhausted(self) -> bool:
        """Whether Newton's steps led somewhere, and on from there no further."""
        return self.gained and self.failures > 0

    @property
    def hopeless(self) -> bool:
        """Whether steps of both kinds have come to nothing, one after the other."""
        least, most = (times * self.cost for times in _SURELY)
        patience = min(max(_HOPELESS, least), most)
        return self.failures > 0 and self.wasted + self.spent > patience


class _Looks(NamedTuple):
    """All variables: values, scores, how far each is on the wrong side, and who is free."""

    x: np.ndarray
    v: np.ndarray
    excess: np.ndarray
    free: np.ndarray

    @property
    def movable(self) -> int:
        """Variables that are free, or on the wrong side of their level."""
        return int(np.count_nonzero(self.free | (self.excess > 0)))


class NearLevel:
    """One problem in the variables of :func:`maxmargin.backends.interior_point.minimise`.

    These are the variables of the problem; but two of support vector regression that sit on a row,
    and differ in nothing but their bounds (without a tube), are one here, with the bounds of their
    sum. Where there is no bound (the hard margin) a
    sum that is fixed is one.
    """

    def __init__(self, problem: DualProblem, workers: Workers = ALONE) -> None:
        self.gram, self.problem, self.workers = problem.gram, problem, workers
        self.low_rank, self.tolerance = False, _COARSE
        self.promised = np.inf  # violation that the last solution should have left
        self.counted = len(problem.rows)  # rows that the last cost was for

    @cached_property
    def parts(self) -> np.ndarray:
        """Which variables each is the sum of, (1 or 2, count)."""
        problem = self.problem
        order = np.argsort(problem.gram_row, kind="stable")
        same = problem.gram_row, problem.group, problem.orientation, problem.linear
        if len(problem.rows) * 2 == len(order):
            first, second = order.reshape(-1, 2).T
            if all(np.array_equal(array[first], array[second]) for array in same):
                return np.stack([first, second])
        return np.arange(len(order))[None]

    @cached_property
    def ends(self) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper bound of each variable's part in x."""
        problem = self.problem
        most = 2.0 * float(np.abs(problem.start).sum())
        lower = np.where(np.isinf(problem.lower), -most, problem.lower)
        return lower, np.where(np.isinf(problem.upper), most, problem.upper)

    @cached_property
    def box(self) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper bound of each x."""
        lowest, highest = self.ends
        return lowest[self.parts].sum(0), highest[self.parts].sum(0)

    @cached_property
    def _loose(self) -> np.ndarray:
        """Those that have room to move at all."""
        lower, upper = self.box
        return np.flatnonzero(lower < upper)

    def cost(self, beta: np.ndarray, v: np.ndarray, budget: float) -> float:
        """Entries of steps of two that take as long as a solution, given the scores less levels.

        That is some fifteen factorisations; fifty of their flops take as long as an entry. With a
        factor of low rank it is much less; that is looked for as far as it would fit the budget, at
        a twentieth of that.
        """
        size, active = self._most(self._look(beta, v)), int(np.count_nonzero(beta))
        self.counted = size
        solution = self._dense_cost or np.inf
        if self._has_low_rank(min(solution, budget)):
            solution = _LOW_RANK * len(self.problem.rows) * self.factor.rank**2
        return _OVERHEAD + solution + _RENEWAL * self.gram.n * active

    @property
    def _dense_cost(self) -> float:
        """Entries of steps that take as long as a solution by the matrix itself; 0 without room."""
        fits = MATRICES * self.counted**2 <= self._room
        return self.counted**3 / 10 if fits else 0.0

    @cached_property
    def factor(self) -> PivotedCholesky:
        """Factor of the Gram matrix, as far as it was asked for."""

        def row(number: int) -> np.ndarray:
            self.workers.check()
            return self.gram.rows([number])[0]

        return PivotedCholesky(row, self.gram.diagonal)

    def _has_low_rank(self, cost: float) -> bool:
        """Whether a factor of the Gram matrix is cheaper than so many entries; find it, if so."""
        if self.gram.kernel.validity is not Validity.VALID:
            return False  # a factor of the diagonal would not be one of the rest
        m = len(self.problem.rows)
        affordable = (cost / (_LOW_RANK * m)) ** 0.5
        most = int(min(affordable, m, self._room // (_KEPT * m)))
        self.low_rank = self.factor.grow(self.tolerance, most)
        return self.low_rank

    @property
    def _room(self) -> int:
        """Entries of matrices that there is memory for."""
        return max(self.gram.memory, _ALWAYS) // 8

    def _most(self, looks: _Looks) -> int:
        """Rows whose variables are solved for, at most."""
        most, everyone = int(_BAND * looks.movable) + _MORE, len(self.problem.rows)
        return most if most < _MANY * everyone else everyone

    def _look(self, beta: np.ndarray, v: np.ndarray) -> _Looks:
        x, v = beta[self.parts].sum(0), v[self.parts[0]]
        lower, upper = self.box
        rises, falls = x < upper, x > lower
        excess = np.maximum(np.where(rises, v, -np.inf), np.where(falls, -v, -np.inf))
        return _Looks(x, v, excess, rises & falls)

    def descend(
        self, beta: np.ndarray, decision: np.ndarray, goal: float
    ) -> tuple[np.ndarray, float, int]:
        """Solve for the variables near their level, given ``K coef`` in float64.

        Returns ``beta``, the violation before, and the steps taken: none if the matrices have no
        room, are not positive semidefinite, or float64 is too coarse for them.
        """
        problem = self.problem
        found = KKTScan.empty(len(beta))
        violation = kkt_scan(problem.variables, problem.n_groups, beta, decision, found)
        looks = self._look(beta, found.v)
        if self.low_rank and violation > _TWICE * max(self.promised, goal):
            self.tolerance = max(_FINER * self.tolerance, _FINE)
            finer = _AGAIN * _LOW_RANK * len(self.problem.rows) * self.factor.rank**2
            self._has_low_rank(max(finer, self._dense_cost))
        near = self._near(looks, _WIDE * violation + _MARGIN * goal)
        if not self.low_rank and MATRICES * self.counted**2 > self._room:
            return beta, violation, 0
        if not len(near):  # of an infinite box whose sums do not bound it, nothing has room
            return beta, violation, 0
        target = max(_TIGHTEN * violation, _BELOW * goal)
        if len(near) == len(self._loose):  # and a factor's answer is only as good as the factor
            target = (_BELOW if self.low_rank else _ONCE) * goal
        lower, upper = (end[near] for end in self.box)
        member = problem.group[self.parts[0, near]][:, None] == np.arange(problem.n_groups)
        member = member[:, member.any(axis=0)]
        minimum = minimise(
            self._curvature(near),
            looks.v[near],
            looks.x[near],
            lower,
            upper,
            member.astype(np.float64),
            target,
            self.workers,
        )
        self.promised = np.inf if minimum is None else minimum.violation
        if minimum is None or not minimum.violation < _BETTER * violation:
            return beta, violation, 0
        unit = np.sqrt(self.gram.diagonal[self.problem.gram_row[self.parts[0, near]]])
        x = _evened(minimum, looks.x[near], lower, upper, unit, member)
        beta, (lowest, highest) = beta.copy(), self.ends
        for part in self.parts[:, near]:
            beta[part] = np.clip(x, lowest[part], highest[part])
            x = x - beta[part]
        return beta, violation, minimum.steps

    def _near(self, looks: _Looks, width: float) -> np.ndarray:
        """Variables to solve for: those on rows with one near its level, or all, by their rank.

        A second variable on a row costs nothing.
        """
        everyone = self._loose
        most = len(self.problem.rows) if self.low_rank else min(self._most(looks), self.counted)
        if most == len(self.problem.rows):
            return everyone
        row = self.problem.gram_row[self.parts[0]]
        excess = np.full(self.gram.n, -np.inf)
        np.maximum.at(excess, row, np.where(looks.free, np.inf, looks.excess))
        near = np.flatnonzero(excess > -width)
        if len(near) > most:
            near = near[np.argpartition(-excess[near], most - 1)[:most]]
        chosen = np.zeros(self.gram.n, dtype=bool)
        chosen[near] = True
        return everyone[chosen[row[everyone]]]

    def _curvature(self, near: np.ndarray) -> OnRows:
        """Kernel values among the rows of some variables, and the variables on them."""
        first = self.parts[0, near]
        rows, row = np.unique(self.problem.gram_row[first], return_inverse=True)
        orientation = self.problem.orientation[first]
        if self.low_rank:
            factor = self.factor
            return OnRows(LowRank(factor.L[rows], factor.rest[rows]), row, orientation)
        K, gram = np.empty((len(rows), len(rows))), self.gram
        cpu.kernel_square(gram.program, gram.host.points, rows, K, self.workers)
        K[np.abs(K) < _NOTHING * K.diagonal().min()] = 0.0  # arithmetic with denormals is slow
        return OnRows(Dense(cpu.finite(K, gram.kernel), self.workers), row, orientation)


def _evened(
    minimum: Minimum,
    before: np.ndarray,
    lower: np.ndarray,
    upper: np.ndarray,
    unit: np.ndarray,
    member: np.ndarray,
) -> np.ndarray:
    """Give back to each group what its sum has gained, by rounding or at the walls.

    If one has the room for it, to the free variable where that changes least: a unit is how far a
    variable of its kernel value moves the scores. Otherwise to all that it takes, those first that
    are the first to go this way.
    """
    x = minimum.x.copy()
    ease = np.minimum(x - lower, upper - x) / np.where(unit > 0, unit, 1.0)
    for own in member.T:
        drift = float((x - before)[own].sum())
        room = x - lower if drift > 0 else upper - x
        easiest = int(np.argmax(np.where(own & (room > abs(drift)), ease, -1.0)))
        if own[easiest] and ease[easiest] > 0 and room[easiest] > abs(drift):
            x[easiest] -= drift
            continue
        order = np.flatnonzero(own)[np.argsort((np.sign(drift) * minimum.v)[own], kind="stable")]
        taken = np.diff(np.minimum(np.cumsum(room[order]), abs(drift)), prepend=0.0)
        x[order] -= np.sign(drift) * taken
    return np.clip(x, lower, upper)
