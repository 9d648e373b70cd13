"""Stochastic gradient descent: one row at a time, with a shrinking step, and averaged.

For ``f(x) = sum_j v_j (x_j - mean_j) / scale_j + c`` (:mod:`maxmargin.solvers.risk.columns`) and a
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

from dataclasses import dataclass, field

import numpy as np
import scipy.sparse as sp

from maxmargin.backends.compiled import njit
from maxmargin.progress import Monitor
from maxmargin.solution import Status
from maxmargin.solvers.risk.columns import Columns
from maxmargin.solvers.risk.gradient_descent import DIVERGED, Descent, Function, ended, report

SQUARED, SIGMOID, COMPETING = range(3)
_DECAY = 0.75
_SLICE = 1 << 22  # products in one call: less than a tenth of a second


@dataclass(frozen=True)
class RowLoss:
    """A loss as the compiled loop knows it.

    ``kind`` is SQUARED (``target`` (n, m): numbers), SIGMOID (``target`` (n, 1): -1 or +1) or
    COMPETING (``target`` (n, 1): the class); the last two have a ``steepness``, and the last one
    the ``eta`` of :class:`maxmargin.linear.mce.MCEClassifier`. ``curvature`` bounds the second
    derivative by the values; the first step is ``first`` over it and over ``d + 1``.
    """

    kind: int
    target: np.ndarray
    curvature: float
    first: float
    steepness: float = 1.0
    eta: float = 1.0


@dataclass(frozen=True)
class StochasticDescent:
    """Minimise a sum over the rows by stochastic gradient descent.

    Parameters
    ----------
    tol : float
        Largest entry of the full gradient at the end.
    max_iter : int
        Passes over the rows.
    step_size : float, optional
        ``eta`` of the first pass.
    monitor : Monitor
        Is told of the progress, and asked when to stop.

    Examples
    --------
    >>> import numpy as np
    >>> columns = Columns(np.array([[-1.0], [1.0]]), np.ones(2))
    >>> target = np.array([[-3.0], [3.0]])
    >>> def error(V):
    ...     residual = columns.values(V[:, :1]) + V[:, 1] - target
    ...     slope = residual.mean(axis=0), (columns.X * residual).mean(axis=0)
    ...     return float((residual**2).mean()), 2 * np.column_stack(slope[::-1])
    >>> loss, random = RowLoss(SQUARED, target, 2.0, 0.5), np.random.RandomState(0)
    >>> descent = StochasticDescent(tol=1e-3, max_iter=1000)
    >>> descent.minimise(columns, loss, error, np.zeros((1, 2)), True, random).point.round(2) + 0.0
    array([[3., 0.]])
    """

    tol: float
    max_iter: int
    step_size: float | None = None
    monitor: Monitor = field(default_factory=Monitor)

    def minimise(
        self,
        columns: Columns,
        loss: RowLoss,
        function: Function,
        start: np.ndarray,
        intercept: bool,
        random: np.random.RandomState,
    ) -> Descent:
        """Descend from ``start`` of shape (m, d + 1), the last column being c.

        ``function`` returns value and gradient of the whole sum there.
        """
        rows = _Rows.of(columns, intercept)
        state = _State.at(start, rows)
        share = columns.weight * len(columns.weight)
        first = self.step_size or loss.first / (loss.curvature * (columns.X.shape[1] + 1))
        point, (value, gradient) = start, function(start)
        curve = [value]
        while True:
            largest, passes = float(np.abs(gradient).max()), len(curve) - 1
            report(self.monitor, passes, largest, self.tol, value)
            status = ended(self.monitor, largest, self.tol, passes, self.max_iter)
            if status is not None:
                return Descent(point, value, largest, passes, status, curve)
            if _power_of_two(passes + 1):
                state.begin()
            eta = first / (passes + 1) ** _DECAY
            self._pass(rows, loss, share, random.permutation(len(share)), eta, state)
            average = state.average(rows)
            value, slope = function(average)
            if not value <= DIVERGED * max(curve[0], 1.0):
                return Descent(point, curve[-1], largest, passes, Status.STALLED, curve)
            point, gradient = average, slope
            curve.append(value)

    def _pass(
        self,
        rows: _Rows,
        loss: RowLoss,
        share: np.ndarray,
        order: np.ndarray,
        eta: float,
        state: _State,
    ) -> None:
        """Go through the rows once, or until asked to stop."""
        size = max(_SLICE // max(rows.width * state.W.shape[1], 1), 1)
        for begin in range(0, len(order), size):
            if begin and self.monitor.stopped():
                return
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
