"""The walk of stochastic descent: from row to row, in a compiled loop.

The mean is subtracted from a dense row, but not from a sparse one: there its share of v is one
number, and so are its products with v. The average is the last point less the mean of ``i`` times
the i-th change.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from maxmargin.backends.compiled import njit
from maxmargin.risk.standardised import (
    COMPETING,
    LOGISTIC,
    SIGMOID,
    SOFTMAX,
    SQUARED,
    Columns,
    RowLoss,
)
from maxmargin.solvers.risk.run import RowByRow
from maxmargin.solvers.steps import StepSize, step_sizes

_SLICE = 1 << 22  # products in one call: less than a tenth of a second
_RANGE = 1e-9, 1e9  # factors of the weights at which they are multiplied out


class Walk:
    """A point that goes from row to row.

    Parameters
    ----------
    step_size : float, str, callable or None
    shuffle : bool
        As in :class:`~maxmargin.solvers.StochasticDescent`.
    columns : Columns
    loss : RowLoss
    intercept : bool
    start : float array of shape (m, d + 1)
    seed : int
        Of the order of the rows.
    l2 : float, default=0.0
        Of the penalty, over the number of rows.
    """

    def __init__(
        self,
        step_size: StepSize | None,
        shuffle: bool,
        columns: Columns,
        loss: RowLoss,
        intercept: bool,
        start: np.ndarray,
        seed: int,
        l2: float = 0.0,
    ) -> None:
        self.step_size, self.shuffle = step_size, shuffle
        self.loss, self.l2, n = loss, l2, len(columns.weight)
        self.rows = _Rows.of(columns, intercept)
        self.state, self.random = _State.at(start, self.rows), np.random.default_rng(seed)
        self.given = step_size is not None
        in_sum = self.given and not columns.standardised
        self.share = columns.weight * (columns.total if in_sum else n)
        self.first = loss.first / (loss.curvature * columns.curvature())
        if isinstance(step_size, str):
            longest = (columns.largest_row() + 1.0) * self.share.max()
            self.first = 1.0 / (loss.curvature * longest + l2)

    def through_the_rows(self, number: int, run: RowByRow) -> Generator[None, None, None]:
        """Go through the rows once, for the so manieth time, and count them in the run.

        Yields after as many as the run is allowed, but for the last of them.
        """
        rows, state, loss, n, end = self.rows, self.state, self.loss, len(self.share), 0
        order = self.random.permutation(n) if self.shuffle else np.arange(n)
        if not self.given and _power_of_two(number):
            state.begin()
        products = max(rows.width * state.W.shape[1], 1)
        size = max(_SLICE // products, 1)
        while end < n:
            if end:
                yield
            begin, end = end, min(end + min(size, run.until_look(n, n * products)), n)
            part = order[begin:end]
            if self.step_size is None:
                eta = np.full(len(part), self.first / number**loss.decay)
            else:
                eta = step_sizes(self.step_size, self.first, run.looked_at, len(part))
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
            run.looked_at, run.rows_now = run.looked_at + len(part), part[-1:]

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
