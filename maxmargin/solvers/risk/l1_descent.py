"""Newton's method by coordinates: for the l1 penalty or the elastic net, and a smooth loss.

    minimise  sum_j l1 |w_j| + l2/2 w_j^2 + sum_i c_i V(u_i)

The losses become their quadratic model at the weights. With the penalty it is minimised by
coordinates, over the weights that are not zero or that want to leave it (their slope is above l1).
Up to some thousand of them that takes a small matrix; where coordinates crawl, the signs of the
weights are mostly known, and a linear system takes them the rest of the way. Beyond, the columns of
the data are visited themselves. A step is halved until the objective falls as promised.

The slopes that the model predicts at the end of its step are a better dual point than those of the
losses at the weights: with them ``Z' beta`` meets the l1 penalty's condition, and the gap is only
what the model misses. Both are looked at.

References: Yuan, Ho and Lin, JMLR 13, 2012 (newGLMNET, the method of LIBLINEAR); Friedman, Hastie
and Tibshirani, J. Statistical Software 33, 2010 (elastic net).
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from maxmargin.backends.compiled import njit
from maxmargin.backends.cpu.linear import Design
from maxmargin.risk import Risk, SoftmaxRisk
from maxmargin.risk.base import LossModel
from maxmargin.risk.regularised import RowModel
from maxmargin.solution import Status
from maxmargin.solvers.risk.l1_interior import L1InteriorPoints, interior_refusal
from maxmargin.solvers.risk.newton import NewtonRun
from maxmargin.solvers.risk.newton_steps import EXACT, FACES, NewtonSteps, model_step
from maxmargin.solvers.risk.run import BestRun, RiskMethod

_STALE = 30  # steps in a row without a fall of the gap; of 200 fits that converged one had 11
_FALLS = 0.9  # of the gap, between the best of both objectives, that is a fall
BY_MATRIX, _FEW = 1500, 1000  # weights up to which the model's matrix is made, of all or of some
_MOST = 0.5  # share of the weights from which all of them are taken
_SWITCH = 10  # steps after which interior points take over where they can
_FEW_FACES = 5  # of a model, where interior points are better at what is left
_ROUGH = 1e-3  # of what a model has gained, by its last sweep, at first
_COLUMN_SWEEPS = 20  # of a model that has no matrix


class L1DescentRun(NewtonRun, BestRun):
    """Newton's method by coordinates at work; a step is a model of all losses."""

    def steps(self) -> Generator[None, None, None]:
        """One model after the other, until the gap or the objective falls no more."""
        if self.certificate.converged:
            return
        losses, stale, least = self.risk.losses(), 0, np.inf
        lowest, proved = np.inf, -np.inf
        newton = _L1Steps(self.risk, self.theta, self.cache, stopped=self.watch.stopped)
        self.newton, switch = newton, -1
        if interior_refusal(self.risk) is None:
            switch, newton.faces = _SWITCH, _FEW_FACES
        while not self.certificate.converged:
            self.is_best()
            certificate = self.certificate
            fallen = lowest / max(certificate.primal, np.finfo(np.float64).tiny) - 1.0
            lowest, proved = min(lowest, certificate.primal), max(proved, certificate.dual)
            falling = lowest - proved < _FALLS * least  # not where it is infinite
            stale, least = (0, lowest - proved) if falling else (stale + 1, least)
            if stale > _STALE:
                self.status = Status.STALLED
                return
            if self.n_iter == switch:
                yield from self._by_interior_points()
                if self.certificate.converged:
                    return
                newton.theta = self.theta
            newton.exact = float(np.clip(_ROUGH * fallen, EXACT, _ROUGH))
            newton.f = self.cache.values(self.risk, newton.theta)  # the certificate's: no drift
            newton.take(losses)
            self.n_iter += 1
            self.stand(newton.theta)
            yield

    def _by_interior_points(self) -> Generator[None, None, None]:
        """Take steps of the interior-point method, and the best of all iterates."""
        for theta, s in L1InteriorPoints(self.risk).iterates():
            self.n_iter += 1
            self.stand(theta, s)
            self.is_best()
            if self.certificate.converged:
                return
            yield
        assert self.best is not None  # from the steps before
        self.stand(*self.best)


@dataclass(frozen=True)
class L1Descent(RiskMethod):
    """Newton's method by coordinates, for a smooth loss and the l1 penalty or the elastic net."""

    run, by_passes = L1DescentRun, True

    def accepts(self, problem: Any) -> str | None:
        """None for a smooth loss with an l1 penalty; else why not."""
        if isinstance(problem, SoftmaxRisk):
            return "Newton's method by coordinates is for two classes: use solver='newton'."
        if not problem.penalty.l1:
            return (
                "Newton's method by coordinates is for penalty='l1' and the elastic net: use "
                "solver='auto'."
            )
        if not problem.loss.smooth or problem.loss.shape is None:
            return "penalty='l1' goes with a smooth loss: use the square of the hinge."
        if not problem.design.in_memory and problem.design.width > BY_MATRIX:
            return (
                f"Newton's method by coordinates takes up to {BY_MATRIX} weights where rows lie in "
                "partitions: more would be visited column by column. Use solver='auto', which "
                "takes L-BFGS."
            )
        return None


class _L1Steps(NewtonSteps):
    """Newton's steps over the weights that are worth it.

    The model is solved until a sweep gains no more than an ``exact`` part of what all have.
    """

    exact, faces = EXACT, FACES
    columns: _Columns | None = None  # made when they are needed
    taken: tuple[np.ndarray, Design] | None = None

    def step_of(self, model: LossModel, gradient: np.ndarray, of_penalty: np.ndarray) -> np.ndarray:
        """Step to the minimum of the model plus the penalty."""
        risk, width, theta = self.risk, self.design.width, self.theta
        held = risk.penalised > 0
        chosen = np.flatnonzero((theta != 0) | ~held | (np.abs(gradient) > risk.penalty.l1))
        if width <= BY_MATRIX and len(chosen) > _MOST * width:
            chosen = np.arange(width)
        if len(chosen) > (BY_MATRIX if width <= BY_MATRIX else _FEW):
            if self.columns is None:
                self.columns = _Columns(self.design)
            assert isinstance(model, RowModel)
            return self.columns.step(
                risk, chosen, theta, gradient, model.curvature, self.exact, self.stopped
            )
        step, penalised = np.zeros(width), risk.penalised[chosen]
        matrix = self._matrix(model, chosen)
        step[chosen] = model_step(
            matrix, gradient[chosen], theta[chosen], penalised, risk.penalty, self.exact, self.faces
        )
        return step

    def _matrix(self, model: LossModel, chosen: np.ndarray) -> np.ndarray:
        """Second derivatives by some of the weights."""
        if isinstance(model, RowModel):
            return self._of(chosen).gram(model.curvature)
        return model.matrix(self.stopped)[np.ix_(chosen, chosen)]

    def _of(self, chosen: np.ndarray) -> Design:
        """Data of some weights, the intercept among them."""
        design = self.design
        if len(chosen) == design.width:
            return design
        if self.taken is None or not np.array_equal(chosen, self.taken[0]):
            columns = chosen[chosen < design.features]
            constant = design.constant if len(columns) < len(chosen) else 0.0
            X = design.X[:, columns]
            self.taken = chosen, Design(X.tocsr() if design.sparse else X, constant, design.workers)
        return self.taken[1]


class _Columns:
    """The data by columns."""

    def __init__(self, design: Design) -> None:
        if design.sparse:
            X = sp.csc_array(design.X)
            X.sum_duplicates()
            self.arrays = X.data, X.indices, X.indptr
        else:
            n, d = design.X.shape
            begin = np.arange(d + 1, dtype=np.int64) * n
            data = np.ascontiguousarray(design.X.T).reshape(-1)
            self.arrays = data, np.empty(0, dtype=np.int32), begin
        self.random = np.random.default_rng(0)

    def step(
        self,
        risk: Risk,
        chosen: np.ndarray,
        theta: np.ndarray,
        gradient: np.ndarray,
        curvature: np.ndarray,
        exact: float,
        stopped: Callable[[], Any],
    ) -> np.ndarray:
        """Lower the model plus the penalty by sweeps over some of the weights."""
        design, penalty = risk.design, risk.penalty
        free = risk.free_intercept
        order = self.random.permutation(chosen[chosen < design.features])
        if design.constant and not free:
            order = np.append(order, design.features)
        step, total = np.zeros(design.width), 0.0
        along, sums = np.zeros(design.n), np.zeros(2)  # values along the step; intercept, moment
        mass = float(curvature.sum()) if free else 0.0
        slope = float(gradient[-1]) / design.constant if free else 0.0
        for _ in range(_COLUMN_SWEEPS):
            gained = _sweep(
                self.arrays,
                design.constant,
                curvature,
                penalty.l1 * risk.penalised,
                penalty.l2 * risk.penalised,
                gradient,
                mass,
                slope,
                theta,
                step,
                along,
                sums,
                order,
            )
            total += gained
            if gained <= exact * total or stopped():
                break
        if free:
            step[-1] = -(slope + sums[0]) / max(mass, 1e-300) / design.constant
        return step


@njit(cache=True, nogil=True)
def _sweep(
    arrays,
    constant,
    curvature,
    l1,
    l2,
    gradient,
    mass,
    intercept_slope,
    theta,
    step,
    along,
    sums,
    order,
):
    """Minimise the model over each weight in turn; changes step, along and sums.

    ``sums[0]`` is the sum of ``curvature * along``. Where ``mass``, the sum of the curvatures, is
    not zero there is an intercept without a penalty, which is always at its best. Returns what was
    gained, twice.
    """
    data, indices, begin = arrays
    features, n, gained = len(begin) - 1, len(along), 0.0
    for j in order:
        last = j == features
        start = 0 if last else begin[j]
        count = n if last else begin[j + 1] - start
        slope, second, moment = gradient[j], 0.0, 0.0
        for k in range(count):
            i = k if last or not len(indices) else indices[start + k]
            x = constant if last else float(data[start + k])
            weighed = curvature[i] * x
            moment += weighed
            second += weighed * x
            slope += weighed * along[i]
        floor = 1e-13 * second + 1e-300
        if mass > 0:
            slope -= moment / mass * (intercept_slope + sums[0])
            second -= moment * moment / mass
        second = max(second, floor) + l2[j]
        w = theta[j] + step[j]
        target, cut = w - (slope + l2[j] * w) / second, l1[j] / second
        target = target - cut if target > cut else (target + cut if target < -cut else 0.0)
        change = target - w
        if change != 0:
            step[j] = target - theta[j]
            sums[0] += change * moment
            gained += second * change * change
            for k in range(count):
                i = k if last or not len(indices) else indices[start + k]
                along[i] += change * (constant if last else float(data[start + k]))
    return gained
