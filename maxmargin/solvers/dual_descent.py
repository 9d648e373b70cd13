"""Coordinate descent on the dual: for sparse and wide data, one row at a time.

With ``theta = Z' beta`` kept up to date, the dual of :mod:`maxmargin.risk` in one ``beta_i`` is

    1/2 (||z_i||^2 + q_i) d^2 + (f_i - t_i + q_i beta_i) d + threshold |beta_i + d|

in an interval, which is solved exactly; then ``theta`` moves along the row. Rows are visited in
random order. Between two looks at all of them, which the duality gap needs anyway, only those are
visited that were free or violated a condition at the last look.

An intercept without a penalty adds ``sum_i beta_i = 0``, which no single coordinate can keep. It is
the method of multipliers again: the intercept is a weight on a constant, penalised for leaving a
centre, and the centre follows it.

Reference: Hsieh, Chang, Lin, Keerthi and Sundararajan, ICML 2008; Ho and Lin, JMLR 13, 2012
(regression).
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field

import numpy as np
from numba import njit

from maxmargin.backends.cpu_rows import add, dot, rows_of, taken
from maxmargin.risk import LinearSolution, RegularisedRisk
from maxmargin.solution import Status
from maxmargin.solvers.risk_solver import RiskSolver

_PASSES = 100_000
_SWEEPS = (1, 4, 4, 4, 8, 8, 12)  # between two looks
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
        state = _State(risk, start)
        limit = self.max_iter if self.max_iter >= 0 else _PASSES
        passes, stale, least, status = 0, 0, np.inf, None
        sweeps = itertools.chain(_SWEEPS, itertools.repeat(_SWEEPS[-1]))
        while True:
            gap, objective = state.look()
            stale = 0 if gap < least else stale + 1
            least = min(gap, least)
            if gap <= self.tol * objective:
                status = Status.CONVERGED
            elif status is None and passes >= limit:
                status = Status.MAX_ITER
            elif status is None and stale > _STALE:
                status = Status.STALLED
            if self.monitor.due():
                over = gap / max(objective, np.finfo(np.float64).tiny)
                self.monitor.report(passes, over, self.tol, gap, state.beta)
            if status is not None:
                return LinearSolution(state.weights(), state.slopes(), passes, status)
            for _ in range(next(sweeps)):
                state.sweep(self.random)
                passes += 1
                status = self.monitor.stopped()
                if status is not None or passes >= limit:
                    break


class _State:
    """The dual variables and their weights."""

    def __init__(self, risk: RegularisedRisk, start: LinearSolution | None) -> None:
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
        known = start is not None and len(start.s) == risk.n
        self.beta = risk.beta(start.s) if start is not None and known else np.zeros(risk.n)
        self.theta = np.zeros(design.features)
        self.bias = np.zeros(2)  # where the intercept is held, and its weight on the constant
        if start is not None and known:
            self.theta = design.combination(self.beta)[: design.features]
            self.bias[1] = self.constant * self.beta.sum()
            if self.free:
                self.bias[0] = design.constant * start.theta[-1] - self.constant * self.bias[1]

    def look(self) -> tuple[float, float]:
        """Look at all rows: the duality gap and the objective; choose whom to visit."""
        risk, theta = self.risk, self.weights()
        f = risk.design.values(theta)
        primal, slopes = risk.primal(theta, f), self.slopes()
        combined = None
        if not self.free:  # otherwise the variables must be made to meet the constraint first
            combined = np.append(self.theta, self.bias[1]) if self.constant else self.theta
        dual = risk.dual(risk.feasible(slopes), combined)
        self.rows = _chosen(
            f, self.beta, self.target, self.bend, self.low, self.high, self.threshold
        )
        self.data, self.order = rows_of(risk.design.X), np.arange(len(self.rows))
        if len(self.rows) < risk.n:  # side by side they stay in cache
            self.data = taken(self.data, self.rows)
        return max(primal - dual, 0.0), max(abs(primal), abs(dual))

    def sweep(self, random: np.random.Generator) -> None:
        """Visit the chosen rows once."""
        random.shuffle(self.order)
        _sweep(
            self.data,
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
            self.rows,
            self.order,
        )
        if self.free:
            self.bias[0] += self.constant * self.bias[1]

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
def _chosen(f, beta, target, bend, low, high, threshold):
    """Rows that are free, or that violate a condition."""
    rows, count = np.empty(len(f), dtype=np.int64), 0
    for i in range(len(f)):
        gradient = f[i] - target[i] + bend[i] * beta[i]
        right = gradient + (threshold if beta[i] >= 0 else -threshold)
        left = gradient - (threshold if beta[i] <= 0 else -threshold)
        may_rise, may_fall = beta[i] < high[i], beta[i] > low[i]
        free = may_rise and may_fall and (beta[i] != 0 or threshold == 0)
        if free or (may_rise and right < 0) or (may_fall and left > 0):
            rows[count] = i
            count += 1
    return rows[:count]


@njit(cache=True, nogil=True)
def _sweep(
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
    rows,
    order,
):
    """Solve for the variable of each row in turn; changes theta, bias and beta.

    ``data`` has the rows of ``rows``, which are visited in this order.
    """
    for place in order:
        i = rows[place]
        f = dot(data, place, theta) + bias[0] + constant * bias[1]
        old = beta[i]
        gradient, curvature = f - target[i] + bend[i] * old, norms[i] + bend[i]
        if curvature > 0:
            new, cut = old - gradient / curvature, threshold / curvature
            new = new - cut if new > cut else (new + cut if new < -cut else 0.0)
        else:  # a row of zeros: its loss is linear
            new = high[i] if gradient < -threshold else (low[i] if gradient > threshold else 0.0)
        step = min(max(new, low[i]), high[i]) - old
        if step != 0:
            beta[i] = old + step
            bias[1] += constant * step
            add(data, place, step, theta)
