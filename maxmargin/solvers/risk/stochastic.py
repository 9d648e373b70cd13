"""Stochastic gradient descent: one row at a time, with a shrinking step, and averaged.

For ``f(x) = sum_j v_j (x_j - mean_j) / scale_j + c`` (:mod:`maxmargin.risk.standardised`) and a
loss of the values f at a row, with slope ``l`` and a curvature of at most ``h``,

    for each row, in random order:
        t      =  min(s eta, 1 / (h (||x||^2 + 1)))          x standardised, s the row's weight
        v, c   =  v - t l x,  c - t l
    after each pass: judge the average of the v and c since pass 1, 2, 4, 8...

No step goes beyond the minimum of its row's own loss, so no ``eta`` is too large. ``eta`` falls
with the number of the pass as ``eta / pass^(3/4)``; the first one is a multiple of ``1 / (h (d +
1))`` unless given, ``d + 1`` being the mean of ``||x||^2 + 1``. The descent ends when no entry of
the gradient of the whole sum, at the average, is larger than ``tol``.

The mean is subtracted from a dense row, but not from a sparse one: there its share of v is one
number, and so are its products with v. The average is the last point less the mean of ``i`` times
the i-th change.

References: seed 004; Robbins and Monro, 1951; Polyak and Juditsky, SIAM J. Control and Optimization
30, 1992 (averaging).
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from maxmargin.backends.compiled import njit
from maxmargin.risk.standardised import SIGMOID, SQUARED, Columns
from maxmargin.solution import Status
from maxmargin.solvers.driver import Method, Run, Watch
from maxmargin.solvers.risk.descent import DIVERGED, Descent, DescentRun

_DECAY = 0.75
_SLICE = 1 << 22  # products in one call: less than a tenth of a second


@dataclass(frozen=True)
class StochasticDescent(Method[Any, Descent]):
    """Stochastic gradient descent on a sum over the rows; a step is a pass over them.

    The watch's seed is that of their order.

    Parameters
    ----------
    step_size : float, optional
        ``eta`` of the first pass.

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

    step_size: float | None = None

    def accepts(self, problem: Any) -> str | None:
        """None for a sum over rows that has no penalty; else why not."""
        if not hasattr(problem, "rows"):
            return "Stochastic descent needs a sum over rows, which says its loss in one of them."
        if problem.alpha:
            return (
                f"alpha={problem.alpha} was given, but solver='sgd' has no penalty: use "
                "solver='lbfgs' or 'gradient_descent', or leave alpha=0."
            )
        return None

    def begin(self, problem: Any, watch: Watch, start: np.ndarray | None = None) -> Run:
        """Begin at a point of shape (m, d + 1), the last column being c."""
        return StochasticDescentRun(problem, watch, start, self.step_size)


class StochasticDescentRun(DescentRun):
    """Stochastic descent at work; it is at the average of its points."""

    def __init__(
        self, function: Any, watch: Watch, start: np.ndarray | None, step_size: float | None
    ) -> None:
        super().__init__(function, watch, start)
        self.columns, self.loss = function.columns, function.rows()
        first = self.loss.first / (self.loss.curvature * (self.columns.X.shape[1] + 1))
        self.step_size = step_size or first
        self.rows = _Rows.of(self.columns, function.intercept)
        self.state, self.within_pass = _State.at(self.place[0], self.rows), False
        self.random = np.random.default_rng(watch.seed)

    def steps(self) -> Generator[None, None, None]:
        """A pass over the rows in random order, then the gradient of all at the average."""
        state, n = self.state, len(self.columns.weight)
        while self.largest > self.watch.tol:
            passes = self.n_iter + 1
            if _power_of_two(passes):
                state.begin()
            yield from self._pass(
                state, self.random.permutation(n), self.step_size / passes**_DECAY
            )
            average = state.average(self.rows)
            value, gradient = self.function(average)
            if not value <= DIVERGED * max(self.curve[0], 1.0):
                self.status = Status.STALLED
                return
            self.move((average, value, gradient))
            yield

    def solution(self, status: Status) -> Descent:
        """Return the average, also that of a pass that was not to be ended."""
        if self.within_pass:
            average = self.state.average(self.rows)
            self.move((average, *self.function(average)))
        return super().solution(status)

    def _pass(self, state: _State, order: np.ndarray, eta: float) -> Generator[None, None, None]:
        """Go through the rows once."""
        rows, loss, share = self.rows, self.loss, self.columns.weight * len(order)
        size = max(_SLICE // max(rows.width * state.W.shape[1], 1), 1)
        for begin in range(0, len(order), size):
            if begin:
                self.within_pass = True
                yield
                self.within_pass = False
            _steps(
                rows.data,
                rows.indices,
                rows.indptr,
                rows.offset,
                rows.mean,
                rows.metric,
                rows.square,
                rows.intercept,
                order[begin : begin + size],
                state.seen,
                loss.kind,
                loss.target,
                loss.curvature,
                loss.steepness,
                loss.eta,
                share,
                eta,
                state.W,
                state.along,
                state.W_sum,
                state.along_sum,
            )
            state.seen += len(order[begin : begin + size])


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
    """A machine ``x . (W + mean metric a) + c - m``: W (d, m), ``along`` (3, m) holds a, m, c."""

    W: np.ndarray
    along: np.ndarray
    W_sum: np.ndarray
    along_sum: np.ndarray
    seen: int = 0

    @classmethod
    def at(cls, start: np.ndarray, rows: _Rows) -> _State:
        W = np.ascontiguousarray((start[:, :-1] * rows.inverse).T)
        along = np.vstack([np.zeros(len(start)), rows.mean @ W, start[:, -1]])
        return cls(W, along, np.zeros_like(W), np.zeros_like(along))

    def begin(self) -> None:
        """Begin a new average."""
        self.W_sum[:] = 0.0
        self.along_sum[:] = 0.0
        self.seen = 0

    def average(self, rows: _Rows) -> np.ndarray:
        """Mean of the points since the average began, as (m, d + 1) in standardised units."""
        W = self.W - self.W_sum / self.seen
        along = self.along - self.along_sum / self.seen
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
    W,
    along,
    W_sum,
    along_sum,
):
    """Take one step for each row of ``order``; changes the last four arrays in place."""
    machines = W.shape[1]
    width = len(indices)
    values, slope = np.empty(machines), np.empty(machines)
    for i in order:
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
            values[k] += along[0, k] * cross - along[1, k] + along[2, k]
        slopes(kind, target[i], steepness, eta_k, values, slope)
        step = share[i] * eta
        if step * curvature * norm > 1.0:
            step = 1.0 / (curvature * norm)
        for k in range(machines):
            move = step * slope[k]
            if move == 0.0:
                continue
            for t in range(begin, end):
                j = indices[t - shift]
                change = move * (data[t] - offset[j]) * metric[j]
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
    else:
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
