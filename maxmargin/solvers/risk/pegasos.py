"""Stochastic steps, one row at a time, and the average of the weights: Pegasos and its kin.

In the lambda form, mean loss plus ``lam ||w||^2``, the t-th row takes the weights to

    w <- argmin_v  ||v - w||^2 / 2 + eta_t (lam ||v||^2 + V_i(v)),      eta_t = 1 / (2 lam t + L)

with L a part of the loss's largest curvature along a row of mean length. The step is implicit, with
the slope of the loss at its end: none goes beyond the minimum of its row's own loss, however large
eta is, so that steps are long on short rows (text) and safe on long ones. For a loss whose
conjugate has a shape it is one variable of the dual (:mod:`maxmargin.backends.cpu.linear.losses`);
of the hinge, passive-aggressive learning with steps that shrink. The weights are shrunk after every
few rows.

The logistic loss has slopes between zero and one, and the one at the end of a long step is far too
small: the first rows would be all but forgotten. Its steps take the slope at a part of the way.

It needs nothing but those rows: data may come as a stream that never fits into memory. What is
returned is the average of the weights, later ones counting for more. It is not exact: every answer
of a fit still carries its duality gap.

References: Shalev-Shwartz, Singer, Srebro and Cotter, Math. Programming 127, 2011 (Pegasos); Kulis
and Bartlett, ICML 2010 (implicit steps); Crammer et al., JMLR 7, 2006 (passive-aggressive); Shamir
and Zhang, ICML 2013 (the averages).
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

import numpy as np

from maxmargin.backends.compiled import njit
from maxmargin.backends.cpu.linear.losses import least
from maxmargin.backends.cpu.linear.rows import add, dot, rows_of
from maxmargin.risk import L2, RegularisedRisk, SoftmaxRisk
from maxmargin.solution import Status
from maxmargin.solvers.risk.run import RiskMethod, RiskRun, RowByRow

_ROWS, _CALL = 64, 1 << 12  # rows from one average to the next, and between two looks at the clock
_HELD = 0.2  # of the largest curvature along a row: what holds back the first steps
_WAY = 0.2  # along a step, where the slope of a logistic loss is taken (Reuters, a9a, eight others)
_LATE = 3.0  # power of the averaging: 0 counts all weights alike
_EPOCHS = 100_000
_LEVELS, _LOGARITHMS, _CLOSE = 50, 50, 1e-12  # of a softmax: Newton's steps, and the last ones


class Stream:
    """Weights that learn from rows as they come.

    Parameters
    ----------
    shape : tuple of int
        Of the weights, with the intercept's last.
    lam : float
        Of the lambda form.

    Attributes
    ----------
    average : float array
        The weights that it has come to.
    rows : int
        Rows seen, a step for each.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.backends.cpu.linear import Design
    >>> from maxmargin.losses import Squared
    >>> from maxmargin.risk import RegularisedRisk
    >>> from maxmargin.solvers.risk.pegasos import Stream
    >>> X = np.linspace(-1.0, 1.0, 50)[:, None]
    >>> risk = RegularisedRisk(Design(X), 3 * X[:, 0] + 1, np.ones(50), Squared())
    >>> stream, norms = Stream((2,), lam=1e-6), risk.design.squared_norms()
    >>> for _ in range(20):
    ...     stream.learn(risk, np.arange(50), norms)
    >>> stream.average.round(2)
    array([3., 1.])
    """

    def __init__(self, shape: tuple[int, ...], lam: float) -> None:
        self.lam, self.rows, self.averaged = lam, 0, 0
        self.mass = self.squares = 0.0
        self.theta, self.average = np.zeros(shape), np.zeros(shape)

    def learn(
        self, risk: RegularisedRisk | SoftmaxRisk, order: np.ndarray, norms: np.ndarray
    ) -> None:
        """Take a step on each of some rows of a problem, in an order.

        ``norms`` are the squared lengths of its rows. Costs count against those of all rows seen.
        """
        for first in range(0, len(order), _ROWS):
            self._learn(risk, order[first : first + _ROWS], norms)

    def _learn(
        self, risk: RegularisedRisk | SoftmaxRisk, order: np.ndarray, norms: np.ndarray
    ) -> None:
        before, self.rows = self.rows, self.rows + len(order)
        self.mass += float(risk.cost[order].sum())
        self.squares += float(norms[order].sum())
        if self.mass <= 0:
            return
        held = _HELD * risk.max_curvature * self.squares / self.rows
        times = np.arange(before + 1, self.rows + 1)
        eta = 1.0 / (2.0 * self.lam * times + max(held, np.finfo(np.float64).tiny))
        cost = eta * risk.cost[order] * (self.rows / self.mass)
        self._step(risk, order, cost, norms[order])
        shrunk = np.exp(-np.log1p(2.0 * self.lam * eta).sum())
        self.theta *= 1.0 + (shrunk - 1.0) * risk.penalised
        self.averaged += 1
        share = (_LATE + 1.0) / (self.averaged + _LATE)
        self.average += min(share, 1.0) * (self.theta - self.average)

    def _step(
        self,
        risk: RegularisedRisk | SoftmaxRisk,
        order: np.ndarray,
        cost: np.ndarray,
        norms: np.ndarray,
    ) -> None:
        """Take the steps in place."""
        rows, constant = rows_of(risk.design.X), float(risk.design.constant)
        if isinstance(risk, SoftmaxRisk):
            index = risk.index[order]
            _softmax_steps(rows, order, constant, _WAY * norms, cost, index, self.theta)
            return
        shape = risk.loss.shape
        assert shape is not None
        norms = (_WAY if shape.entropy else 1.0) * norms
        y = risk.y[order]
        sign = y if risk.of_margins else np.ones(len(y))
        target = shape.linear * y if risk.of_margins else y
        _steps(rows, order, constant, norms, cost, sign, target, *shape, self.theta)


@njit(cache=True, nogil=True)
def _steps(
    rows,
    order,
    constant,
    norms,
    cost,
    sign,
    target,
    low,
    high,
    linear,
    threshold,
    quadratic,
    entropy,
    theta,
):
    """Take an implicit step on each row, at its cost; changes theta, whose last is the intercept.

    ``linear`` is in the targets already.
    """
    last = len(theta) - 1
    for k in range(len(order)):
        i, c = order[k], cost[k]
        if c > 0:
            f = dot(rows, i, theta) if constant == 0 else dot(rows, i, theta[:last])
            f += constant * theta[last] if constant != 0 else 0.0
            a, b = -c * sign[k] * low, -c * sign[k] * high
            curvature = norms[k] + quadratic / c
            step = least(f - target[k], curvature, min(a, b), max(a, b), threshold, entropy)
            if step != 0:
                if constant == 0:
                    add(rows, i, step, theta)
                else:
                    add(rows, i, step, theta[:last])
                    theta[last] += step * constant


@njit(cache=True, nogil=True)
def _softmax_steps(rows, order, constant, norms, cost, index, theta):
    """Take an implicit step on each row, at its cost; changes theta (K, width)."""
    classes, width = theta.shape
    features = width if constant == 0 else width - 1
    f, p = np.empty(classes), np.empty(classes)
    for k in range(len(order)):
        i, c, own = order[k], cost[k], index[k]
        if c > 0:
            for j in range(classes):
                f[j] = dot(rows, i, theta[j, :features])
                f[j] += constant * theta[j, features] if constant != 0 else 0.0
            _implicit_softmax(f, own, c * norms[k], p)
            for j in range(classes):
                step = c * ((1.0 if j == own else 0.0) - p[j])
                add(rows, i, step, theta[j, :features])
                if constant != 0:
                    theta[j, features] += step * constant


@njit(cache=True, nogil=True)
def _implicit_softmax(f, own, q, p):
    """Solve ``p = softmax(f + q (e_own - p))``; writes p, changes f.

    That is ``log p_k + q p_k = f_k - level`` for each, with the level at which they sum to one.
    Newton's method from the left goes there straight, for the level and for each logarithm.
    """
    f[own] += q
    largest = f.max()
    level = largest + np.log(np.exp(f - largest).sum()) - q
    for _ in range(_LEVELS):
        total, fall = -1.0, 0.0
        for k in range(len(f)):
            a = f[k] - level
            z = min(a, 0.0)
            for _ in range(_LOGARITHMS):
                grown = q * np.exp(z)
                step = (z + grown - a) / (1.0 + grown)
                z -= step
                if step <= _CLOSE:
                    break
            p[k] = np.exp(z)
            total += p[k]
            fall += p[k] / (1.0 + q * p[k])
        if total <= _CLOSE:
            break
        level += total / fall
    p /= p.sum()


class PegasosRun(RowByRow, RiskRun[RegularisedRisk | SoftmaxRisk]):
    """Pegasos at work; its weights are the average, which is made anew every 64 rows."""

    def steps(self) -> Generator[None, None, None]:
        """A step on each row, in random order, and the average of the weights."""
        risk, random = self.risk, np.random.default_rng(self.watch.seed)
        stream = Stream(risk.shape, 0.5 / risk.total_cost)
        stream.theta, stream.average = self.theta.copy(), self.theta.copy()
        norms, X = risk.design.squared_norms(), risk.design.X
        products = getattr(X, "nnz", X.size) * len(np.atleast_2d(self.theta))
        for _ in range(_EPOCHS):
            if self.certificate.converged:
                return
            order, end = random.permutation(risk.n), 0
            while end < risk.n:
                if end:
                    yield
                blocks = max(self.until_look(risk.n, products) // _ROWS, 1)
                begin, end = end, end + min(_CALL, blocks * _ROWS)
                part = order[begin:end]
                stream.learn(risk, part, norms)
                self.stand(stream.average.copy())
                self.looked_at += len(part)
                self.rows_now = part[(len(part) - 1) // _ROWS * _ROWS :]
            self.n_iter += 1
            yield
        self.status = Status.STALLED


@dataclass(frozen=True)
class Pegasos(RiskMethod):
    """Stochastic steps and the average of the weights (Pegasos), for the l2 penalty.

    A trace begins with a record every 64 rows, since the average is made anew so often.
    The conjugate of the loss has a shape. It is never exact; the watch's seed is that of the rows.
    """

    run = PegasosRun

    def accepts(self, problem: Any) -> str | None:
        """None for a loss whose conjugate is known, with the l2 penalty; else why not."""
        if problem.penalty != L2:
            return "Pegasos takes its steps from the penalty, which has to be the l2 one."
        if isinstance(problem, SoftmaxRisk):
            return None
        if problem.loss.shape is None:
            return f"solver='sgd' needs the conjugate of the loss; {problem.loss!r} has no shape."
        return None
