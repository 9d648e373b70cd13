"""Coordinate descent on the dual: for sparse and wide data, one row at a time.

With ``theta = Z' beta`` kept up to date, the dual of :mod:`maxmargin.risk` in one ``beta_i`` is

    1/2 ||z_i||^2 d^2 + f_i d + h_i(beta_i + d),   h_i(b) = q_i b^2 / 2 - t_i b + threshold |b|

in an interval, or with the entropy for h_i, which is solved exactly; then ``theta`` moves along the
row. Rows are visited in random order. The loss of a row is the largest ``-f_i b - h_i(b)``, so that
what its own variable lacks of it is its part of the duality gap: a sweep adds these up as it goes.
Where the sum has fallen far enough all rows are looked at, and until the next look only those are
visited that are free or violate a condition.

An intercept couples all rows; without a penalty it even adds ``sum_i beta_i = 0``, which no single
coordinate can keep. So it is the method of multipliers again: the intercept is held at a place that
follows it after every sweep, with another penalty for leaving it,

    penalty b^2 / 2 + (b - place)^2 / (2 width)  ->  b = follows place + stiff sum_i beta_i

where ``1 / stiff = penalty + 1 / width`` and ``follows = stiff / width``. Rows are less coupled
then, and half the sweeps are enough with a penalty, too. Without one it is of no account where rows
begin: they are taken from their mean, which is not written down.

References: Hsieh, Chang, Lin, Keerthi and Sundararajan, ICML 2008; Ho and Lin, JMLR 13, 2012
(regression); Yu, Huang and Lin, Machine Learning 85, 2011 (logistic regression).
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

import numpy as np

from maxmargin.backends.compiled import njit
from maxmargin.backends.cpu.linear.losses import height, least
from maxmargin.backends.cpu.linear.rows import add, dot, liveliest, rows_of, shuffle
from maxmargin.certificate import RiskCertificate
from maxmargin.risk import L2, LinearSolution, RegularisedRisk, SoftmaxRisk
from maxmargin.solution import Status
from maxmargin.solvers.driver import Watch
from maxmargin.solvers.risk.run import RiskCache, RiskMethod, RiskRun

_BEFORE = 5  # sweeps over the liveliest rows, before each over all that are chosen
_FALLEN, _SMOOTHLY = 0.05, 0.01  # share of the gap at which to look again, with kinks and without
_TURNS = 6  # after which to look in any case
_TRIES, _CLOSE = 60, 1e-9  # for the first intercept
_ROUNDING = 1e-14  # of a difference of squares
_LONG = 1 << 23  # entries of a sweep from which a call is for one of them: 0.01 s
_OFTEN = 100  # turns from which a call is for one of them, of few rows: 0.01 s
_STALE = 200  # looks in a row without a smaller gap


class DualDescentRun(RiskRun[RegularisedRisk]):
    """Dual descent at work; a step is as many visits of rows as there are rows."""

    def __init__(
        self,
        risk: RegularisedRisk,
        watch: Watch,
        start: LinearSolution | None = None,
        cache: RiskCache | None = None,
    ) -> None:
        super().__init__(risk, watch, start, cache)
        self.limit = watch.left(0)
        self.state = _State(risk, start, self.cache, watch.seed)
        self.looked_at = 0, 0  # after so many steps and visits
        self.turns = 0  # since then
        self.moved = True  # since the weights were made of the variables

    def steps(self) -> Generator[None, None, None]:
        """Some turns over the chosen rows, then a look at all of them."""
        state, risk, tol = self.state, self.risk, self.watch.tol
        stale, least = 0, np.inf
        share = _SMOOTHLY if risk.loss.smooth else _FALLEN
        turns = 0 if state.known else _TURNS  # an earlier answer is looked at first
        while stale <= _STALE:
            for _ in range(turns):
                part = state.turn()
                self.n_iter = min(state.passes, self.limit)
                self.moved = True
                if part <= max(share * state.gap, tol * state.objective):
                    break
                if self._due():
                    yield
            state.look()
            self.moved = True
            if state.gap <= tol * state.objective:
                return
            turns, stale = _TURNS, 0 if state.gap < least else stale + 1
            least = min(state.gap, least)
            if self._due():
                yield
        self.status = Status.STALLED

    def _due(self) -> bool:
        """Whether to be looked at: the steps allowed are taken, or about a hundredth of a second.

        A turn over few rows takes less time than a look, and one without rows visits none.
        """
        (steps, visits), design = self.looked_at, self.risk.design
        now = self.n_iter, self.state.visits
        self.turns += 1
        due = (
            now[0] - steps >= self.allowed
            or (now[1] - visits) * design.entries > _LONG * design.n
            or self.turns >= _OFTEN
        )
        if due:
            self.looked_at, self.turns = now, 0
        return due

    @property
    def variables(self) -> np.ndarray:
        """The weights."""
        return self.state.weights()

    @property
    def certificate(self) -> RiskCertificate:
        """Both objectives at the weights as they are, recomputed from the data; only once."""
        if self.moved:
            self.stand(self.state.weights())
            self.moved = False
        return super().certificate

    def _judged(self) -> RiskCertificate:
        """Both objectives, which a look has made already where an intercept is free."""
        state, risk = self.state, self.risk
        if not (state.free and state.looked):
            return super()._judged()
        self.s = state.s
        bounds = state.objective, state.objective - state.gap
        return RiskCertificate.of(*bounds, risk.rounding, Status.CONVERGED, self.watch.tol)

    def dual_points(self, f: np.ndarray) -> list[np.ndarray]:
        """Slopes that the variables are."""
        return [self.risk.slopes(self.state.beta)]

    def solution(self, status: Status) -> LinearSolution:
        """Return the weights, with an intercept that is good for them."""
        if not self.state.balanced:
            self.state.look()
            self.moved = True
        return super().solution(status)


@dataclass(frozen=True)
class DualDescent(RiskMethod):
    """Coordinate descent on the dual, for the l2 penalty.

    The conjugate of the loss has a :class:`~maxmargin.losses.Shape`; the watch's seed is that of
    the order of the rows.
    """

    run = DualDescentRun

    def accepts(self, problem: Any) -> str | None:
        """None for a loss whose conjugate is known, with the l2 penalty; else why not."""
        if isinstance(problem, SoftmaxRisk):
            return "Dual descent is for two classes: use solver='newton' or 'lbfgs' for several."
        if problem.penalty != L2:
            return (
                "Dual descent takes the l2 penalty only; penalty='l1' is solved in the primal, by "
                "solver='l1_descent', and none by solver='newton'."
            )
        if problem.loss.shape is None:
            return f"Dual descent needs the conjugate of the loss; {problem.loss!r} has no shape."
        return None


class _State:
    """The dual variables and their weights."""

    def __init__(
        self, risk: RegularisedRisk, start: LinearSolution | None, cache: RiskCache, seed: int
    ) -> None:
        self.risk, self.cache, design, shape = risk, cache, risk.design, risk.loss.shape
        assert shape is not None  # accepts
        sign = risk.y if risk.of_margins else np.ones(risk.n)
        self.target = shape.linear * sign if risk.of_margins else risk.y
        cost = np.maximum(risk.cost, np.finfo(np.float64).tiny)
        self.curvature = shape.quadratic / cost
        ends = np.array([-risk.cost * sign * shape.low, -risk.cost * sign * shape.high])
        self.low, self.high = np.nan_to_num(ends.min(axis=0)), np.nan_to_num(ends.max(axis=0))
        self.threshold, self.entropy = shape.threshold, shape.entropy
        self.free = risk.free_intercept
        self._centre()
        self.known = start is not None and len(start.s) == risk.n
        self.beta, self.theta = np.zeros(risk.n), np.zeros(design.features)
        self.bias = np.zeros(3)  # follows place; sum of beta; weights . mean
        self.balanced, self.looked = self.known, False
        if start is not None and self.known:
            self.beta = risk.beta(start.s)
            self.theta = design.combination(self.beta)[: design.features]
            total = float(self.beta.sum())
            self.bias[1] = total
            self.bias[2] = float(self.theta @ self.mean) - total * float(self.mean @ self.mean)
            if design.constant:
                b = design.constant * float(start.theta[-1]) + self.bias[2]
                self.bias[0] = b - self.stiff * total
        self.gap = self.objective = risk.empirical(np.zeros(risk.n))  # at the last look
        self.order = np.arange(risk.n)  # of the rows to visit
        self.visits = 0
        self.moved = np.zeros(risk.n)  # by how much each lowered the objective last, twice
        self.seed = np.random.default_rng(seed).integers(1, 1 << 63, size=1, dtype=np.uint64)

    def _centre(self) -> None:
        """Set how stiff an intercept is held, the mean of the rows, and their lengths from there.

        With a penalty on the intercept, a mean would change the problem.
        """
        design = self.risk.design
        self.mean, self.along = np.zeros(design.features), np.zeros(design.n)  # mean . row
        scale = np.ones(design.width)
        scale[design.features :] = 0.0
        squared = design.squared_norms(scale)
        if self.free:
            mean = design.combination(np.full(design.n, 1.0 / design.n))
            mean[-1] = 0.0
            self.along, self.mean = design.values(mean), mean[:-1]
            rounding = _ROUNDING * (squared + mean @ mean)
            squared = np.maximum(squared - 2.0 * self.along + mean @ mean, rounding)
        self.penalty, self.stiff, self.follows = 0.0, 0.0, 0.0
        if design.constant:  # 1 / stiff is the penalty on it, and that for leaving where it is held
            self.penalty = 0.0 if self.free else design.constant**-2
            width = float(np.mean(squared)) / design.n**0.5
            if not width:
                width = np.finfo(np.float64).tiny if self.free else design.constant**2
            self.stiff = 1.0 / (self.penalty + 1.0 / width)
            self.follows = self.stiff / width
        self.norms = squared + self.stiff

    def look(self) -> None:
        """Look at all rows: the duality gap and the objective; choose whom to visit.

        At the first one, and where no row has moved, the intercept is put where it is best for the
        weights as they are.
        """
        risk, seen = self.risk, self.weights()
        f = self.cache.values(risk, seen)
        limits = self.target, self.curvature, self.low, self.high, self.threshold, self.entropy
        # where no row has anything to gain, sweeps would move the intercept alone, by small steps
        if risk.design.constant and not (self.balanced and len(self.order)):
            self.balanced = True
            shift = _balance(f, self._intercept(), self.penalty, *limits)
            self.bias[0] += shift
            f, seen = f + shift, self.weights()
            self.cache.known_values = seen, f
        gap, loss, self.order = _looked(f, self.beta, *limits)
        self.objective, self.looked = risk.norm(seen) + loss, True
        self.gap = gap
        if self.free:  # the variables must be made to meet the constraint first
            self.s = risk.slopes(self.beta)
            self.gap = max(self.objective - risk.dual(risk.feasible(self.s)), 0.0)
        else:
            self.gap += self._lag()

    @property
    def passes(self) -> int:
        """Visits of rows, over all rows."""
        return -(-self.visits // self.risk.n)

    def turn(self) -> float:
        """Visit the chosen rows, some more often; returns their part of the gap at the last visit.

        Those that have not moved then wait for the next look.
        """
        self.looked = False
        if self.visits and not self.risk.loss.smooth:
            large = len(self.order) * self.risk.design.entries > _LONG * self.risk.n
            for _ in range(_BEFORE if large else 1):  # a compiled call must not take long
                self._sweeps(1 if large else _BEFORE, True)
        gap = self._sweeps(1, False)
        self.order = self.order[self.moved[self.order] > 0]
        return gap + self._lag()

    def _sweeps(self, times: int, lively: bool) -> float:
        gap, visits = _sweeps(
            rows_of(self.risk.design.X),
            self.theta,
            self.bias,
            self.stiff,
            self.follows,
            float(self.mean @ self.mean),
            self.along,
            self.beta,
            self.target,
            self.curvature,
            self.low,
            self.high,
            self.threshold,
            self.entropy,
            self.norms,
            self.order,
            self.moved,
            self.seed,
            times,
            lively,
        )
        self.visits += visits
        return gap

    def weights(self) -> np.ndarray:
        """Weights of the risk, its intercept last."""
        if not self.risk.design.constant:
            return self.theta.copy()
        b = self._intercept() / self.risk.design.constant
        return np.append(self.theta - self.bias[1] * self.mean, b)

    def _lag(self) -> float:
        """Part of the gap that an intercept with a penalty has, as long as it does not follow."""
        constant = self.risk.design.constant
        if self.free or not constant:
            return 0.0
        return 0.5 * (self._intercept() / constant - constant * float(self.bias[1])) ** 2

    def _intercept(self) -> float:
        held, total, middle = self.bias
        return float(held + self.stiff * total - middle)


@njit(cache=True, nogil=True)
def _looked(f, beta, target, curvature, low, high, threshold, entropy):
    """Duality gap, sum of losses, and rows that are free or that violate a condition."""
    rows, count = np.empty(len(f), dtype=np.int64), 0
    gap = loss = 0.0
    for i in range(len(f)):
        residual, ends = f[i] - target[i], (low[i], high[i], threshold, entropy)
        best = height(least(residual, curvature[i], *ends), residual, curvature[i], *ends)
        loss -= best
        gap += height(beta[i], residual, curvature[i], *ends) - best
        gradient = residual + curvature[i] * beta[i]
        right = gradient + (threshold if beta[i] >= 0 else -threshold)
        left = gradient - (threshold if beta[i] <= 0 else -threshold)
        may_rise, may_fall = beta[i] < high[i], beta[i] > low[i]
        free = may_rise and may_fall and (beta[i] != 0 or threshold == 0)
        if free or entropy > 0 or (may_rise and right < 0) or (may_fall and left > 0):
            rows[count] = i
            count += 1
    return gap, loss, rows[:count]


@njit(cache=True, nogil=True)
def _excess(shift, f, b, penalty, target, curvature, low, high, threshold, entropy):
    """Sum of the variables that fit shifted values best, less the penalty's; it falls."""
    total = -penalty * (b + shift)
    for i in range(len(f)):
        residual = f[i] + shift - target[i]
        total += least(residual, curvature[i], low[i], high[i], threshold, entropy)
    return total


@njit(cache=True, nogil=True)
def _balance(f, b, penalty, target, curvature, low, high, threshold, entropy):
    """Shift of all values, and of the intercept b, that is best; zero where none is found."""
    limits = target, curvature, low, high, threshold, entropy
    left = _excess(0.0, f, b, penalty, *limits)
    sign, near = (1.0 if left > 0 else -1.0), 0.0
    far = 0.1 * np.mean(np.abs(f - target) + entropy) + 1e-300  # which is in units of margins
    left, beyond = sign * left, 0.0
    for _ in range(_TRIES):
        beyond = sign * _excess(sign * far, f, b, penalty, *limits)
        if beyond <= 0:
            break
        near, left, far = far, beyond, 4.0 * far
    if not beyond <= 0:  # the sum stays the same to rounding: any intercept is as good
        return 0.0
    for k in range(_TRIES):  # regula falsi, and now and then bisection
        if left <= 0 or beyond == 0 or far - near <= _CLOSE * far:
            break
        at = near + (0.5 if k % 2 else left / (left - beyond)) * (far - near)
        value = sign * _excess(sign * at, f, b, penalty, *limits)
        if value > 0:
            near, left = at, value
        else:
            far, beyond = at, value
    return sign * far if left > 0 else 0.0


@njit(cache=True, nogil=True)
def _sweeps(
    data,
    theta,
    bias,
    stiff,
    follows,
    mean_squared,
    along,
    beta,
    target,
    curvature,
    low,
    high,
    threshold,
    entropy,
    norms,
    order,
    moved,
    seed,
    times,
    lively,
):
    """Solve for the variable of each row in turn; changes theta, bias, beta, order, moved and seed.

    So many times, for all rows of ``order`` or the liveliest of them. The weights are those of rows
    less their mean, whose products with rows are ``along`` and with itself ``mean_squared``;
    ``theta`` is the sum of the rows as they are. Returns the sum of what each row had as its part
    of the gap when it was visited last, and the number of visits.
    """
    room, gap, visits = np.empty(len(order), dtype=np.int64), 0.0, 0
    for _ in range(times):
        rows = liveliest(order, moved, room) if lively else order
        if lively and not len(rows):
            break  # only a sweep over all rows moves an intercept on its own
        shuffle(rows, seed)
        gap, visits = 0.0, visits + len(rows)
        for i in rows:
            old, q, ends = beta[i], curvature[i], (low[i], high[i], threshold, entropy)
            middle = bias[2] + bias[1] * along[i]
            residual = dot(data, i, theta) - middle + bias[0] + stiff * bias[1] - target[i]
            best = least(residual, q, *ends)
            gap += height(old, residual, q, *ends) - height(best, residual, q, *ends)
            new = least(residual - norms[i] * old, norms[i] + q, *ends)
            step = new - old
            moved[i] = (norms[i] + q) * step * step
            if step != 0:
                beta[i] = new
                bias[1] += step
                bias[2] += step * (along[i] - mean_squared)
                add(data, i, step, theta)
        bias[0] = follows * (bias[0] + stiff * bias[1])
    return gap, visits
