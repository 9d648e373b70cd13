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

Who looks on sees the point after every row: where it is, or the average that will be judged.

References: seeds 002, 004; Robbins and Monro, 1951; Widrow and Hoff, 1960; Polyak and Juditsky,
SIAM J. Control and Optimization 30, 1992 (averaging).
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

import numpy as np

from maxmargin.losses import Logistic
from maxmargin.progress import Progress
from maxmargin.risk import L2, RegularisedRisk, Risk, SoftmaxRisk
from maxmargin.risk.standardised import LOGISTIC, SOFTMAX, Coordinates, RowLoss
from maxmargin.solution import Status
from maxmargin.solvers.driver import Method, Watch
from maxmargin.solvers.risk.descent import Descent, DescentRun, GapRun, diverged
from maxmargin.solvers.risk.run import RiskCache, RowByRow
from maxmargin.solvers.risk.walk import Walk
from maxmargin.solvers.steps import SCHEDULES, StepSize, check_step_size, in_data_units


@dataclass(frozen=True)
class StochasticDescent(Method[Any, Any]):
    """Stochastic gradient descent on a sum over the rows; the watch's limit is one of passes.

    A trace begins with the step of every row, which is its record's ``working_set``. The watch's
    seed is that of their order.

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


class StochasticDescentRun(RowByRow, DescentRun):
    """Stochastic descent at work on a mean of losses; it is at the point that is judged."""

    def __init__(
        self, function: Any, watch: Watch, start: np.ndarray | None, method: StochasticDescent
    ) -> None:
        super().__init__(function, watch, start)
        self.within_pass, self.keep_last = False, method.step_size is not None
        self.walk = Walk(
            method.step_size,
            method.shuffle,
            function.columns,
            function.rows(),
            function.intercept,
            self.place[0],
            watch.seed,
        )

    def steps(self) -> Generator[None, None, None]:
        """A pass over the rows, then the gradient of all."""
        while self.largest > self.watch.tol:
            for _ in self.walk.through_the_rows(self.n_iter + 1, self):
                self.within_pass = True
                yield
                self.within_pass = False
            self._judge()
            if self.status is not None:
                return
            yield

    def _judge(self) -> None:
        """Be where the walk is, if that is not beyond all bounds."""
        with np.errstate(over="ignore", invalid="ignore"):
            point = self.walk.point()
            value, gradient = self.function(point)
        if not diverged(self, value):
            self.move((point, value, gradient))

    def progress(self, watch: Watch) -> Progress:
        """Where it is; the loss of all rows within a pass is for who wants to know."""
        if self.within_pass:
            with np.errstate(over="ignore", invalid="ignore"):
                point = self.walk.point()
                self.place = point, *self.function(point)
        return super().progress(watch)

    def solution(self, status: Status) -> Descent:
        """Return where it is, also in a pass that was not to be ended."""
        if self.within_pass:
            self._judge()
        return super().solution(self.status or status)


class StochasticGapRun(RowByRow, GapRun):
    """Stochastic descent at work on a risk."""

    method: StochasticDescent

    def steps(self) -> Generator[None, None, None]:
        """A pass over the rows, then the objective and perhaps the gap."""
        self.first()
        self.keep_last = self.method.step_size is not None
        risk, coordinates, loss = self.risk, self.coordinates, _row_loss(self.risk)
        assert coordinates is not None
        assert loss is not None
        walk = Walk(
            self.method.step_size,
            self.method.shuffle,
            coordinates.columns,
            loss,
            bool(risk.design.constant),
            self.point,
            self.watch.seed,
            risk.penalty.l2 / risk.n,
        )
        while not (self.theta.any() and self.certificate.converged):
            for _ in walk.through_the_rows(self.n_iter + 1, self):
                with np.errstate(over="ignore", invalid="ignore"):
                    self.stand(self.weights(walk.point()))
                yield
            with np.errstate(over="ignore", invalid="ignore"):
                point = walk.point()
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
