"""Stochastic gradient descent: one row at a time.

For ``f(x) = sum_j v_j (x_j - mean_j) / scale_j + c`` (:mod:`maxmargin.risk.standardised`) and a
loss of the values f at a row, with slope ``l`` and a curvature of at most ``h``,

    for each row, in random order:
        t      =  min(s eta, 1 / (h (||x||^2 + 1)))          x standardised, s the row's weight
        v, c   =  v - t l x,  c - t l
    after each pass: judge the average of the v and c since pass 1, 2, 4, 8...

No step goes beyond the minimum of its row's own loss, so no ``eta`` is too large. ``eta`` falls
with the number of the pass as ``eta / pass^(3/4)`` (of MCE, as ``eta / pass^(1/2)``); the first one
is a multiple of ``1 / (h (d + 1))``, ``d + 1`` being the mean of ``||x||^2 + 1``. The descent ends
when no entry of the gradient of the whole sum, at the average, is larger than ``tol``; on a risk,
when the duality gap is small.

Steps whose size is given are the lecture's instead: ``t = s eta_i`` for the i-th row that is looked
at, whatever it is, in X's own units unless others are asked for; the last point is the answer, and
no average. For least squares that is the delta rule of Widrow and Hoff (LMS) with ``2 eta``, for
the slope of a squared residual is twice the residual. An l2 penalty of a risk shrinks the weights
by ``1 - eta_i l2 / n`` at every row.

The mean is subtracted from a dense row, but not from a sparse one: there its share of v is one
number, and so are its products with v. The average is the last point less the mean of ``i`` times
the i-th change.

References: seeds 002, 004; Robbins and Monro, 1951; Widrow and Hoff, 1960; Polyak and Juditsky,
SIAM J. Control and Optimization 30, 1992 (averaging).
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from maxmargin.backends.compiled import njit
from maxmargin.losses import Logistic
from maxmargin.risk import L2, RegularisedRisk, Risk, SoftmaxRisk
from maxmargin.risk.standardised import (
    COMPETING,
    LOGISTIC,
    SIGMOID,
    SOFTMAX,
    SQUARED,
    Columns,
    Coordinates,
    RowLoss,
)
from maxmargin.solution import Status
from maxmargin.solvers.driver import Method, Watch
from maxmargin.solvers.risk.descent import Descent, DescentRun, GapRun, diverged
from maxmargin.solvers.risk.run import RiskCache
from maxmargin.solvers.steps import (
    SCHEDULES,
    StepSize,
    check_step_size,
    in_data_units,
    step_sizes,
)

_SLICE = 1 << 22  # products in one call: less than a tenth of a second
_RANGE = 1e-9, 1e9  # factors of the weights at which they are multiplied out


@dataclass(frozen=True)
class StochasticDescent(Method[Any, Any]):
    """Stochastic gradient descent on a sum over the rows; a step is a pass over them.

    The watch's seed is that of their order.

    Parameters
    ----------
    step_size : float, {"constant", "inverse_sqrt", "inverse"} or callable, optional
        Sizes of the steps, as they are: a number, a schedule (:mod:`maxmargin.solvers.steps`), or a
        function of the number of rows looked at, from 1 on. By default they are made to fit the
        data, fall from pass to pass, and the points are averaged.
    units : {"auto", "data", "standardised"}, default="auto"
        Whether to step in X's own units or in those of standardised columns; by default the first
        where ``step_size`` is given.
    shuffle : bool, default=True
        Take the rows of each pass in an order that is drawn at random, or as they came.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.solvers.driver import Watch
    >>> from maxmargin.risk.standardised import Columns, SquaredError
    >>> columns = Columns(np.array([[-1.0], [1.0]]), np.ones(2))
    >>> error = SquaredError(columns, np.array([[-3.0], [3.0]]), intercept=True)
    >>> watch = Watch(tol=1e-3, max_iter=1000)
    >>> StochasticDescent().solve(error, watch, start=np.zeros((1, 2))).point.round(2) + 0.0
    array([[3., 0.]])
    """

    step_size: StepSize | None = None
    units: str = "auto"
    shuffle: bool = True

    def __post_init__(self) -> None:
        if self.step_size is not None:
            check_step_size(self.step_size, SCHEDULES)

    def accepts(self, problem: Any) -> str | None:
        """None for a sum over rows; else why not."""
        if isinstance(problem, Risk):
            return self._accepts_risk(problem)
        if not hasattr(problem, "rows"):
            return "Stochastic descent needs a sum over rows, which says its loss in one of them."
        if problem.alpha:
            return (
                f"alpha={problem.alpha} was given, but solver='sgd' has no penalty: use "
                "solver='lbfgs' or 'gradient_descent', or leave alpha=0."
            )
        return None

    def _accepts_risk(self, risk: Risk) -> str | None:
        if _row_loss(risk) is None:
            return "StochasticDescent knows the logistic loss and the softmax: use Pegasos()."
        if risk.penalty.none:
            return None
        if risk.penalty != L2 or (risk.design.constant and risk.penalised[-1]):
            return "StochasticDescent takes the l2 penalty, without the intercept, or none."
        if self.step_size is None or not in_data_units(self.units, self.step_size):
            return (
                "With the l2 penalty, stochastic steps are Pegasos's (step_size=None), or of a "
                "given step_size in X's own units (units='data')."
            )
        return None

    def begin(
        self, problem: Any, watch: Watch, start: Any = None, cache: RiskCache | None = None
    ) -> DescentRun | GapRun:
        """Begin at a point of shape (m, d + 1), the last column being c; on a risk, from zero."""
        if isinstance(problem, Risk):
            coordinates = Coordinates(problem, not in_data_units(self.units, self.step_size))
            return StochasticGapRun(problem, watch, start, cache, self, coordinates)
        return StochasticDescentRun(problem, watch, start, self)


class StochasticDescentRun(DescentRun):
    """Stochastic descent at work on a mean of losses; it is at the point that is judged."""

    def __init__(
        self, function: Any, watch: Watch, start: np.ndarray | None, method: StochasticDescent
    ) -> None:
        super().__init__(function, watch, start)
        self.within_pass, self.keep_last = False, method.step_size is not None
        self.walk = _Walk(
            method, function.columns, function.rows(), function.intercept, self.place[0], watch.seed
        )

    def steps(self) -> Generator[None, None, None]:
        """A pass over the rows, then the gradient of all."""
        while self.largest > self.watch.tol:
            for _ in self.walk.through_the_rows(self.n_iter + 1):
                self.within_pass = True
                yield
                self.within_pass = False
            self._judge()
            if self.status is not None:
                return
            yield

    def _judge(self) -> None:
        """Be where the walk is, if that is not beyond all bounds."""
        point = self.walk.point()
        with np.errstate(over="ignore", invalid="ignore"):
            value, gradient = self.function(point)
        if not diverged(self, value):
            self.move((point, value, gradient))

    def solution(self, status: Status) -> Descent:
        """Return where it is, also in a pass that was not to be ended."""
        if self.within_pass:
            self._judge()
        return super().solution(status)


class StochasticGapRun(GapRun):
    """Stochastic descent at work on a risk."""

    method: StochasticDescent

    def steps(self) -> Generator[None, None, None]:
        """A pass over the rows, then the objective and perhaps the gap."""
        self.first()
        self.keep_last = self.method.step_size is not None
        risk, coordinates, loss = self.risk, self.coordinates, _row_loss(self.risk)
        assert coordinates is not None
        assert loss is not None
        walk = _Walk(
            self.method,
            coordinates.columns,
            loss,
            bool(risk.design.constant),
            self.point,
            self.watch.seed,
            risk.penalty.l2 / risk.n,
        )
        while not (self.theta.any() and self.certificate.converged):
            for _ in walk.through_the_rows(self.n_iter + 1):
                self.stand(self.weights(walk.point()))
                yield
            point = walk.point()
            with np.errstate(over="ignore", invalid="ignore"):
                value, gradient = self.at(point)
            if diverged(self, value):
                return
            self.move((point, value, gradient))
            yield


def _row_loss(risk: Risk) -> RowLoss | None:
    """Loss of one row of a risk, where the compiled loop knows it."""
    if isinstance(risk, SoftmaxRisk):
        return RowLoss(SOFTMAX, risk.index[:, None].astype(np.float64), risk.max_curvature)
    if isinstance(risk, RegularisedRisk) and isinstance(risk.loss, Logistic):
        return RowLoss(LOGISTIC, risk.y[:, None], risk.max_curvature)
    return None


class _Walk:
    """A point that goes from row to row."""

    def __init__(
        self,
        method: StochasticDescent,
        columns: Columns,
        loss: RowLoss,
        intercept: bool,
        start: np.ndarray,
        seed: int,
        l2: float = 0.0,
    ) -> None:
        self.method, self.loss, self.l2, n = method, loss, l2, len(columns.weight)
        self.rows = _Rows.of(columns, intercept)
        self.state, self.random = _State.at(start, self.rows), np.random.default_rng(seed)
        self.given, self.looked_at = method.step_size is not None, 0
        in_sum = self.given and not columns.standardised
        self.share = columns.weight * (columns.total if in_sum else n)
        self.first = loss.first / (loss.curvature * columns.curvature())
        if isinstance(method.step_size, str):
            longest = (columns.largest_row() + 1.0) * self.share.max()
            self.first = 1.0 / (loss.curvature * longest + l2)

    def through_the_rows(self, number: int) -> Generator[None, None, None]:
        """Go through the rows once, for the so manieth time; yields now and then on the way."""
        rows, state, loss, method = self.rows, self.state, self.loss, self.method
        n = len(self.share)
        order = self.random.permutation(n) if method.shuffle else np.arange(n)
        if not self.given and _power_of_two(number):
            state.begin()
        size = max(_SLICE // max(rows.width * state.W.shape[1], 1), 1)
        for begin in range(0, n, size):
            if begin:
                yield
            part = order[begin : begin + size]
            if method.step_size is None:
                eta = np.full(len(part), self.first / number**loss.decay)
            else:
                eta = step_sizes(method.step_size, self.first, self.looked_at, len(part))
            _steps(
                rows.data,
                rows.indices,
                rows.indptr,
                rows.offset,
                rows.mean,
                rows.metric,
                rows.square,
                rows.intercept,
                part,
                state.seen,
                loss.kind,
                loss.target,
                loss.curvature,
                loss.steepness,
                loss.eta,
                self.share,
                eta,
                self.given,
                self.l2,
                state.factor,
                state.W,
                state.along,
                state.W_sum,
                state.along_sum,
            )
            state.seen += len(part)
            self.looked_at += len(part)

    def point(self) -> np.ndarray:
        """Where it is, or the average of where it was."""
        return self.state.last(self.rows) if self.given else self.state.average(self.rows)


def _power_of_two(number: int) -> bool:
    return number & (number - 1) == 0


@dataclass(frozen=True)
class _Rows:
    """Rows for the compiled loop: CSR's arrays, or those of a dense matrix read as one.

    ``offset`` is subtracted from the stored values, ``mean`` is accounted for otherwise.
    """

    data: np.ndarray
    indices: np.ndarray
    indptr: np.ndarray
    width: int
    offset: np.ndarray
    mean: np.ndarray
    metric: np.ndarray
    square: float
    intercept: bool
    scale: np.ndarray
    inverse: np.ndarray

    @classmethod
    def of(cls, columns: Columns, intercept: bool) -> _Rows:
        X, (n, d) = columns.X, columns.X.shape
        metric = columns.inverse**2
        offset, mean = np.zeros(d), columns.mean
        if sp.issparse(X):
            arrays = X.data, X.indices, X.indptr
        else:  # one row's indices do for all: an empty indptr says so
            arrays = np.ascontiguousarray(X).ravel(), np.arange(d), np.empty(0, dtype=np.intp)
            offset, mean = mean, offset
        width = max(len(arrays[0]) // n, 1)
        return cls(
            *arrays,
            width,
            offset,
            mean,
            metric,
            float(mean**2 @ metric),
            intercept,
            columns.scale,
            columns.inverse,
        )


@dataclass
class _State:
    """A machine ``x . (W + mean metric a) + c - m``: W (d, m), ``along`` (3, m) holds a, m, c.

    W is to be multiplied by ``factor``, which an l2 penalty makes smaller.
    """

    W: np.ndarray
    along: np.ndarray
    W_sum: np.ndarray
    along_sum: np.ndarray
    factor: np.ndarray
    seen: int = 0

    @classmethod
    def at(cls, start: np.ndarray, rows: _Rows) -> _State:
        W = np.ascontiguousarray((start[:, :-1] * rows.inverse).T)
        along = np.vstack([np.zeros(len(start)), rows.mean @ W, start[:, -1]])
        return cls(W, along, np.zeros_like(W), np.zeros_like(along), np.ones(1))

    def begin(self) -> None:
        """Begin a new average."""
        self.W_sum[:] = 0.0
        self.along_sum[:] = 0.0
        self.seen = 0

    def average(self, rows: _Rows) -> np.ndarray:
        """Mean of the points since the average began, as (m, d + 1) in standardised units."""
        return self._standardised(
            self.W - self.W_sum / self.seen, self.along - self.along_sum / self.seen, rows
        )

    def last(self, rows: _Rows) -> np.ndarray:
        """Return the point as it is, in the same units."""
        return self._standardised(self.factor * self.W, self.along, rows)

    def _standardised(self, W: np.ndarray, along: np.ndarray, rows: _Rows) -> np.ndarray:
        W = W + np.outer(rows.mean * rows.metric, along[0])
        return np.column_stack([(W * rows.scale[:, None]).T, along[2]])


@njit(cache=True, nogil=True)
def _steps(
    data,
    indices,
    indptr,
    offset,
    mean,
    metric,
    square,
    intercept,
    order,
    seen,
    kind,
    target,
    curvature,
    steepness,
    eta_k,
    share,
    eta,
    given,
    l2,
    factor,
    W,
    along,
    W_sum,
    along_sum,
):
    """Take one step for each row of ``order``, of a given size or of one that is safe.

    Changes the last five arrays in place. An l2 penalty goes with given sizes only.
    """
    machines = W.shape[1]
    width = len(indices)
    values, slope = np.empty(machines), np.empty(machines)
    for place in range(len(order)):
        i = order[place]
        if len(indptr):
            begin, end, shift = indptr[i], indptr[i + 1], 0
        else:
            begin, end, shift = i * width, (i + 1) * width, i * width
        values[:] = 0.0
        norm, cross = square, 0.0
        for t in range(begin, end):
            j = indices[t - shift]
            x = data[t] - offset[j]
            for k in range(machines):
                values[k] += x * W[j, k]
            norm += x * x * metric[j]
            cross += x * mean[j] * metric[j]
        norm = max(norm - 2.0 * cross, 0.0) + (1.0 if intercept else 0.0)
        for k in range(machines):
            values[k] *= factor[0]
            values[k] += along[0, k] * cross - along[1, k] + along[2, k]
        slopes(kind, target[i], steepness, eta_k, values, slope)
        step = share[i] * eta[place]
        if not given and step * curvature * norm > 1.0:
            step = 1.0 / (curvature * norm)
        if l2 > 0.0:
            factor[0] *= 1.0 - eta[place] * l2
            if not _RANGE[0] < abs(factor[0]) < _RANGE[1]:
                W *= factor[0]
                factor[0] = 1.0
        for k in range(machines):
            move = step * slope[k]
            if move == 0.0:
                continue
            for t in range(begin, end):
                j = indices[t - shift]
                change = move * (data[t] - offset[j]) * metric[j] / factor[0]
                W[j, k] -= change
                W_sum[j, k] -= seen * change
            along[0, k] += move
            along_sum[0, k] += seen * move
            along[1, k] -= move * (cross - square)
            along_sum[1, k] -= seen * move * (cross - square)
            if intercept:
                along[2, k] -= move
                along_sum[2, k] -= seen * move
        seen += 1


@njit(cache=True, nogil=True)
def slopes(kind, target, steepness, eta, values, slope):
    """Write the derivatives of one row's loss by its values into ``slope``.

    The formulas are those of :mod:`maxmargin.losses` and of :mod:`maxmargin.linear.mce`.
    """
    if kind == SQUARED:
        for k in range(len(values)):
            slope[k] = 2.0 * (values[k] - target[k])
    elif kind == SIGMOID:
        wrong = 1.0 / (1.0 + np.exp(min(steepness * target[0] * values[0], 700.0)))
        slope[0] = -target[0] * steepness * wrong * (1.0 - wrong)
    elif kind == LOGISTIC:
        slope[0] = -target[0] / (1.0 + np.exp(min(target[0] * values[0], 700.0)))
    elif kind == SOFTMAX:
        highest, total = values.max(), 0.0
        for k in range(len(values)):
            slope[k] = np.exp(values[k] - highest)
            total += slope[k]
        for k in range(len(values)):
            slope[k] /= total
        slope[int(target[0])] -= 1.0
    elif kind == COMPETING:
        own = int(target[0])
        highest = -np.inf
        for k in range(len(values)):
            if k != own:
                highest = max(highest, values[k])
        total = 0.0
        for k in range(len(values)):
            slope[k] = np.exp(eta * (values[k] - highest)) if k != own else 0.0
            total += slope[k]
        margin = values[own] - highest - np.log(total / (len(values) - 1)) / eta
        wrong = 1.0 / (1.0 + np.exp(min(steepness * margin, 700.0)))
        fall = -steepness * wrong * (1.0 - wrong)
        for k in range(len(values)):
            slope[k] *= -fall / total
        slope[own] = fall
