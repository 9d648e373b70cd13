"""Coordinate descent on the dual: for sparse and wide data, one row at a time.

With ``theta = Z' beta`` kept up to date, the dual of :mod:`maxmargin.risk` in one ``beta_i`` is

    1/2 ||z_i||^2 d^2 + f_i d + h_i(beta_i + d),   h_i(b) = q_i b^2 / 2 - t_i b + threshold |b|

in an interval, which is solved exactly; then ``theta`` moves along the row. Rows are visited in
random order. The loss of a row is the largest ``-f_i b - h_i(b)``, so that what its own variable
lacks of it is its part of the duality gap: a sweep adds these up as it goes. Where the sum has
fallen far enough all rows are looked at, and until the next look only those are visited that are
free or violate a condition.

An intercept without a penalty adds ``sum_i beta_i = 0``, which no single coordinate can keep. It is
the method of multipliers again: the intercept is a weight on a constant, penalised for leaving a
centre, and the centre follows it.

Reference: Hsieh, Chang, Lin, Keerthi and Sundararajan, ICML 2008; Ho and Lin, JMLR 13, 2012
(regression).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numba import njit

from maxmargin.backends.cpu_rows import add, dot, rows_of
from maxmargin.risk import LinearSolution, RegularisedRisk
from maxmargin.solution import Status
from maxmargin.solvers.risk_solver import RiskSolver

_PASSES = 100_000
_BEFORE = 5  # sweeps over the liveliest rows, before each over all that are chosen
_FALLEN, _TURNS = 0.05, 6  # share of the gap at which, and turns after which, to look again
_STALE = 200  # looks in a row without a smaller gap


@dataclass(frozen=True)
class DualDescent(RiskSolver):
    """Solver for a loss whose conjugate is a quadratic on an interval, with the l2 penalty.

    Parameters
    ----------
    tol, max_iter, monitor
        As of every :class:`RiskSolver`.
    random : numpy.random.Generator
        Of the order of the rows.
    """

    random: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))

    def solve(self, risk: RegularisedRisk, start: LinearSolution | None = None) -> LinearSolution:
        """Minimise a regularised risk from an earlier answer, or from zero."""
        state = _State(risk, start, self.random)
        limit = self.max_iter if self.max_iter >= 0 else _PASSES
        passes, stale, least, status = 0, 0, np.inf, None
        turns = 0 if state.known else _TURNS  # an earlier answer is looked at first
        while True:
            for _ in range(turns):
                if passes >= limit:
                    status = Status.MAX_ITER
                    break
                before = min(_BEFORE if passes and not risk.loss.smooth else 0, limit - passes - 1)
                part, passes = state.turn(before), passes + 1 + before
                status = self.monitor.stopped()
                fallen = max(_FALLEN * state.gap, self.tol * state.objective)
                if status is not None or part <= fallen:
                    break
            state.look()
            turns = _TURNS
            stale = 0 if state.gap < least else stale + 1
            least = min(state.gap, least)
            if state.gap <= self.tol * state.objective:
                status = Status.CONVERGED
            elif status is None and stale > _STALE:
                status = Status.STALLED
            if self.monitor.due():
                over = state.gap / max(state.objective, np.finfo(np.float64).tiny)
                self.monitor.report(passes, over, self.tol, state.gap, state.beta)
            if status is not None:
                return LinearSolution(state.seen, state.slopes(), passes, status)


class _State:
    """The dual variables and their weights."""

    def __init__(
        self, risk: RegularisedRisk, start: LinearSolution | None, random: np.random.Generator
    ) -> None:
        self.risk, design, shape = risk, risk.design, risk.loss.shape
        assert shape is not None
        sign = risk.y if risk.of_margins else np.ones(risk.n)
        self.target = shape.linear * sign if risk.of_margins else risk.y
        cost = np.maximum(risk.cost, np.finfo(np.float64).tiny)
        self.bend = shape.quadratic / cost
        ends = np.array([-risk.cost * sign * shape.low, -risk.cost * sign * shape.high])
        self.low, self.high = np.nan_to_num(ends.min(axis=0)), np.nan_to_num(ends.max(axis=0))
        self.threshold = shape.threshold
        self.free = risk.free_intercept
        squared = design.squared_norms() - design.constant**2
        self.constant = design.constant
        if self.free:  # any positive number will do; this one is in the units of the data
            self.constant = max(float(np.mean(squared)), np.finfo(np.float64).tiny) ** 0.5
        self.norms = squared + self.constant**2
        self.known = start is not None and len(start.s) == risk.n
        self.beta = np.zeros(risk.n)
        self.theta = np.zeros(design.features)
        self.bias = np.zeros(2)  # where the intercept is held, and its weight on the constant
        if start is not None and self.known:
            self.beta = risk.beta(start.s)
            self.theta = design.combination(self.beta)[: design.features]
            self.bias[1] = self.constant * self.beta.sum()
            if self.free:
                self.bias[0] = design.constant * start.theta[-1] - self.constant * self.bias[1]
        self.gap = self.objective = risk.empirical(np.zeros(risk.n))  # at the last look
        self.order = np.arange(risk.n)  # of the rows to visit
        self.moved = np.zeros(risk.n)  # by how much each lowered the objective last, twice
        self.seed = random.integers(1, 1 << 63, size=1, dtype=np.uint64)

    def look(self) -> None:
        """Look at all rows: the duality gap and the objective; choose whom to visit."""
        risk, self.seen = self.risk, self.weights()
        f = risk.values(self.seen)
        gap, loss, self.order = _looked(
            f, self.beta, self.target, self.bend, self.low, self.high, self.threshold
        )
        self.objective = risk.norm(self.seen) + loss
        self.gap = gap
        if self.free:  # the variables must be made to meet the constraint first
            self.gap = max(self.objective - risk.dual(risk.feasible(self.slopes())), 0.0)

    def turn(self, before: int) -> float:
        """Visit the liveliest rows some times, then all chosen ones; returns their part of the gap.

        Those that have not moved then wait for the next look.
        """
        gap = _turn(
            rows_of(self.risk.design.X),
            self.theta,
            self.bias,
            self.constant,
            self.beta,
            self.target,
            self.bend,
            self.low,
            self.high,
            self.threshold,
            self.norms,
            self.order,
            self.moved,
            self.seed,
            before,
            self.free,
        )
        self.order = self.order[self.moved[self.order] > 0]
        return gap

    def weights(self) -> np.ndarray:
        """Weights of the risk, its intercept last."""
        if not self.risk.design.constant:
            return self.theta.copy()
        b = self.bias[0] + self.constant * self.bias[1]
        return np.append(self.theta, b / self.risk.design.constant)

    def slopes(self) -> np.ndarray:
        """Slopes that the variables stand for."""
        risk = self.risk
        cost = np.maximum(risk.cost, np.finfo(np.float64).tiny)
        return -risk.along_values(self.beta / cost)


@njit(cache=True, nogil=True)
def _least(pull, bend, low, high, threshold):
    """Where ``pull b + bend b^2 / 2 + threshold |b|`` is least in an interval."""
    if bend > 0:
        b, cut = -pull / bend, threshold / bend
        b = b - cut if b > cut else (b + cut if b < -cut else 0.0)
    else:
        b = high if pull < -threshold else (low if pull > threshold else 0.0)
    return min(max(b, low), high)


@njit(cache=True, nogil=True)
def _height(b, pull, bend, threshold):
    return b * (pull + 0.5 * bend * b) + threshold * abs(b)


@njit(cache=True, nogil=True)
def _looked(f, beta, target, bend, low, high, threshold):
    """Duality gap, sum of losses, and rows that are free or that violate a condition."""
    rows, count = np.empty(len(f), dtype=np.int64), 0
    gap = loss = 0.0
    for i in range(len(f)):
        pull = f[i] - target[i]
        best = _height(_least(pull, bend[i], low[i], high[i], threshold), pull, bend[i], threshold)
        loss -= best
        gap += _height(beta[i], pull, bend[i], threshold) - best
        gradient = pull + bend[i] * beta[i]
        right = gradient + (threshold if beta[i] >= 0 else -threshold)
        left = gradient - (threshold if beta[i] <= 0 else -threshold)
        may_rise, may_fall = beta[i] < high[i], beta[i] > low[i]
        free = may_rise and may_fall and (beta[i] != 0 or threshold == 0)
        if free or (may_rise and right < 0) or (may_fall and left > 0):
            rows[count] = i
            count += 1
    return gap, loss, rows[:count]


@njit(cache=True, nogil=True)
def _shuffle(rows, seed):
    """Put rows in random order (xorshift); changes both."""
    state = seed[0]
    for last in range(len(rows) - 1, 0, -1):
        state ^= state << np.uint64(13)
        state ^= state >> np.uint64(7)
        state ^= state << np.uint64(17)
        other = np.int64(state % np.uint64(last + 1))
        rows[last], rows[other] = rows[other], rows[last]
    seed[0] = state


@njit(cache=True, nogil=True)
def _lively(order, moved, room):
    """Rows that have moved more than the average of them."""
    total, count = 0.0, 0
    for i in order:
        total += moved[i]
    for i in order:
        if moved[i] * len(order) > total:
            room[count] = i
            count += 1
    return room[:count]


@njit(cache=True, nogil=True)
def _turn(
    data,
    theta,
    bias,
    constant,
    beta,
    target,
    bend,
    low,
    high,
    threshold,
    norms,
    order,
    moved,
    seed,
    before,
    free,
):
    """Solve for the variable of each row in turn; changes theta, bias, beta, order, moved and seed.

    Some times for the liveliest rows, then once for all. Returns the sum of what each row had as
    its part of the gap when it was visited last.
    """
    room, gap = np.empty(len(order), dtype=np.int64), 0.0
    for time in range(before + 1):
        rows = _lively(order, moved, room) if time < before else order
        _shuffle(rows, seed)
        gap = 0.0
        for i in rows:
            old, q = beta[i], bend[i]
            pull = dot(data, i, theta) + bias[0] + constant * bias[1] - target[i]
            best = _least(pull, q, low[i], high[i], threshold)
            gap += _height(old, pull, q, threshold) - _height(best, pull, q, threshold)
            new = _least(pull - norms[i] * old, norms[i] + q, low[i], high[i], threshold)
            step = new - old
            moved[i] = (norms[i] + q) * step * step
            if step != 0:
                beta[i] = new
                bias[1] += constant * step
                add(data, i, step, theta)
        if free:
            bias[0] += constant * bias[1]
    return gap
