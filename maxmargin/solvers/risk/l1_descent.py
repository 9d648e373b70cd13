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

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from maxmargin.backends.compiled import njit
from maxmargin.backends.cpu.linear import Design
from maxmargin.backends.systems import solved
from maxmargin.risk import LinearSolution, Penalty, RegularisedRisk
from maxmargin.solution import Status
from maxmargin.solvers.driver import Run, Watch
from maxmargin.solvers.risk.cache import RiskCache
from maxmargin.solvers.risk.newton_steps import Losses
from maxmargin.solvers.risk.risk_run import RiskMethod, RiskRun
from maxmargin.solvers.risk.softmax import SoftmaxRisk

_STALE = 50  # steps in a row after which neither the gap nor the objective is smaller
_DIRECT, _FEW = 1500, 1000  # weights up to which the model's matrix is made, of all or of some
_MOST = 0.5  # share of the weights from which all of them are taken
_FACES, _INNER, _HALVINGS = 100, 200, 40  # of a model: faces, sweeps for each; of a step
_TURNS = 3  # faces after each other, before coordinates are looked at again
_WORK = 50_000_000  # products of these sweeps at most: a compiled call must not take long
_EXACT, _ROUGH = 1e-13, 1e-3  # of what a model has gained, by its last sweep: at best, at first
_COLUMN_SWEEPS = 20  # of a model that has no matrix
_FALLS = 1e-9  # part of the objective by which it must fall to count as falling
_FLOOR = 1e-13  # curvature of a column, over what it would be about zero, that is rounding
_SINGULAR = (
    1e-12  # of the largest curvature of intercepts: what all classes have in common has none
)


@dataclass(frozen=True)
class L1Descent(RiskMethod):
    """Newton's method by coordinates, for a smooth loss and the l1 penalty or the elastic net."""

    def accepts(self, problem: Any) -> str | None:
        """None for a smooth loss with an l1 penalty; else why not."""
        if isinstance(problem, SoftmaxRisk):
            return "Newton's method by coordinates is for two classes: use solver='newton'."
        if not problem.penalty.l1:
            return (
                "Newton's method by coordinates is for penalty='l1' and the elastic net: use "
                "solver='newton' or 'auto'."
            )
        if not problem.loss.smooth or problem.loss.shape is None:
            return "penalty='l1' goes with a smooth loss: use the square of the hinge."
        return None

    def begin(
        self,
        problem: RegularisedRisk,
        watch: Watch,
        start: LinearSolution | None = None,
        cache: RiskCache | None = None,
    ) -> Run:
        """Begin from an earlier answer, or from zero."""
        return L1DescentRun(problem, watch, start, cache)


class L1DescentRun(RiskRun):
    """Newton's method by coordinates at work; a step is a model of all losses."""

    predicted: tuple[np.ndarray, ...] = ()  # slopes at the end of the last step

    def steps(self) -> Generator[None, None, None]:
        """One model after the other, until the gap or the objective falls no more."""
        model = _Model(self.risk, self.watch)
        stale, least, lowest = 0, np.inf, np.inf
        while not self.certificate.converged:
            certificate = self.certificate
            fallen = lowest / max(certificate.primal, np.finfo(np.float64).tiny) - 1.0
            falling = fallen > _FALLS or certificate.relative_gap < least
            stale = 0 if falling else stale + 1
            if stale > _STALE:
                self.status = Status.STALLED
                return
            least = min(least, certificate.relative_gap)
            lowest = min(lowest, certificate.primal)
            exact = float(np.clip(_ROUGH * fallen, _EXACT, _ROUGH))
            f = self.cache.values(self.risk, self.theta)
            theta, predicted = model.improved(self.theta, f, exact)
            self.predicted = (predicted,)
            self.n_iter += 1
            self.stand(theta)
            yield

    def dual_points(self, f: np.ndarray) -> list[np.ndarray]:
        """Slopes of the losses at the weights, and those that the last step has predicted."""
        return [*super().dual_points(f), *self.predicted]


class _Model:
    """The losses as quadratics at the weights, over the weights that are worth it."""

    def __init__(self, risk: RegularisedRisk, watch: Watch) -> None:
        self.risk, self.losses, self.watch = risk, Losses(risk), watch
        self.columns: _Columns | None = None  # made when they are needed
        self.taken = np.empty(0, dtype=np.intp), risk.design

    def improved(
        self, theta: np.ndarray, f: np.ndarray, exact: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """Weights that lower the objective, and the slopes that the whole step predicts.

        The model is solved until a sweep gains no more than an ``exact`` part of what all have.
        """
        risk = self.risk
        slope, curvature = self.losses.slope_and_curvature(f)
        gradient = risk.design.combination(slope)
        step = self._step(theta, gradient, curvature, exact)
        along, value = risk.design.values(step), risk.primal(theta, f)
        predicted = np.clip(risk.slopes(-slope - curvature * along), *risk.loss.slopes)
        promise = float(gradient @ step) + risk.norm(theta + step) - risk.norm(theta)
        length = 1.0
        for _ in range(_HALVINGS):
            reached = risk.primal(theta + length * step, f + length * along)
            if reached <= value + 0.01 * length * promise:
                return theta + length * step, predicted
            length *= 0.5
        return theta, predicted

    def _step(
        self, theta: np.ndarray, gradient: np.ndarray, curvature: np.ndarray, exact: float
    ) -> np.ndarray:
        """Step to the minimum of the model plus the penalty."""
        risk, width = self.risk, self.risk.design.width
        held = risk.penalised > 0
        chosen = np.flatnonzero((theta != 0) | ~held | (np.abs(gradient) > risk.penalty.l1))
        if width <= _DIRECT and len(chosen) > _MOST * width:
            chosen = np.arange(width)
        penalised, step = risk.penalised[chosen], np.zeros(width)
        if len(chosen) <= (_DIRECT if width <= _DIRECT else _FEW):
            matrix = self._of(chosen).gram(curvature)
            step[chosen] = model_step(
                matrix, gradient[chosen], theta[chosen], penalised, risk.penalty, exact
            )
        else:
            if self.columns is None:
                self.columns = _Columns(risk.design)
            step = self.columns.step(risk, chosen, theta, gradient, curvature, exact, self.watch)
        return step

    def _of(self, chosen: np.ndarray) -> Design:
        """Data of some weights, the intercept among them."""
        design = self.risk.design
        if len(chosen) == design.width:
            return design
        if not np.array_equal(chosen, self.taken[0]):
            columns = chosen[chosen < design.features]
            constant = design.constant if len(columns) < len(chosen) else 0.0
            X = design.X[:, columns]
            self.taken = chosen, Design(X.tocsr() if design.sparse else X, constant, design.workers)
        return self.taken[1]


def model_step(
    matrix: np.ndarray,
    gradient: np.ndarray,
    theta: np.ndarray,
    penalised: np.ndarray,
    penalty: Penalty,
    exact: float = _EXACT,
) -> np.ndarray:
    """Step to the minimum of ``gradient . d + d' matrix d / 2`` plus the penalty on ``theta + d``.

    Weights that are not ``penalised``, the intercepts, are solved for first: what is left are
    columns about their means, which coordinates can go along however far from zero the data are.
    The last sweep gains no more than an ``exact`` part of what all have.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.risk import L1
    >>> from maxmargin.solvers.risk.l1_descent import model_step
    >>> model_step(np.eye(2), np.array([-3.0, 0.5]), np.zeros(2), np.ones(2), L1)
    array([2., 0.])
    """
    floor = _FLOOR * np.diag(matrix) + 1e-300
    held, free = np.flatnonzero(penalised), np.flatnonzero(penalised == 0)
    if not len(free):
        return _by_faces(matrix, gradient, theta, penalty, floor, exact)
    across, corner = matrix[np.ix_(free, held)], matrix[np.ix_(free, free)]
    inverse = np.linalg.pinv(corner, rcond=_SINGULAR, hermitian=True)
    shift = inverse @ across
    step = np.empty(len(theta))
    step[held] = _by_faces(
        matrix[np.ix_(held, held)] - shift.T @ across,
        gradient[held] - gradient[free] @ shift,
        theta[held],
        penalty,
        floor[held],
        exact,
    )
    step[free] = -inverse @ (gradient[free] + across @ step[held])
    return step


def _by_faces(
    matrix: np.ndarray,
    gradient: np.ndarray,
    theta: np.ndarray,
    penalty: Penalty,
    floor: np.ndarray,
    exact: float,
) -> np.ndarray:
    """Step to the minimum of the model: by coordinates, and along faces where these crawl.

    The part of the penalty that is smooth belongs to the model.
    """
    l1, l2 = penalty.l1, penalty.l2
    if l2:
        matrix = matrix.copy()
        matrix.flat[:: len(matrix) + 1] += l2
    step, slope, total = np.zeros(len(theta)), gradient + l2 * theta, 0.0
    sweeps = max(min(_INNER, _WORK // max(len(theta) ** 2, 1)), 1)
    for _ in range(_FACES):
        gained, last = _by_coordinates(matrix, slope, theta, step, l1, floor, sweeps, total, exact)
        total += gained
        if last <= exact * total:
            break
        for _ in range(_TURNS):
            if not _along_face(matrix, slope, theta, step, l1, floor):
                break
    return step


def _along_face(
    matrix: np.ndarray,
    slope: np.ndarray,
    theta: np.ndarray,
    step: np.ndarray,
    l1: float,
    floor: np.ndarray,
) -> bool:
    """Go to the minimum with the signs as they are; changes step and slope.

    Weights that would change their sign end at zero: all of them at once where that lowers the
    model, otherwise the first ones that meet it, where the step ends. Returns whether there were
    any.
    """
    w = theta + step
    face = np.flatnonzero(w)
    inside = matrix[np.ix_(face, face)] + np.diag(floor[face])
    change = -solved(inside, slope[face] + l1 * np.sign(w[face]))
    with np.errstate(divide="ignore", invalid="ignore"):
        meets = np.where(change * w[face] < 0, -w[face] / change, np.inf)
    for length in (1.0, min(1.0, float(meets.min(initial=1.0)))):
        at_zero = meets <= length
        moved = np.where(at_zero, -w[face], length * change)
        turned = matrix[:, face] @ moved
        grown = l1 * float((np.abs(w[face] + moved) - np.abs(w[face])).sum())
        if float(moved @ (slope[face] + 0.5 * turned[face])) + grown <= 0:
            break
    step[face] = np.where(at_zero, -theta[face], step[face] + moved)
    slope += turned
    return bool(at_zero.any())


@njit(cache=True, nogil=True)
def _by_coordinates(matrix, slope, theta, step, l1, floor, sweeps, before, exact):
    """Minimise over each coordinate in turn; changes step and slope.

    Returns what was gained, twice, in all and by the last sweep; ``before`` is what was gained
    before.
    """
    width, total, gained = len(theta), 0.0, 0.0
    for _ in range(sweeps):
        gained = 0.0
        for j in range(width):
            second, w = max(matrix[j, j], floor[j]), theta[j] + step[j]
            target, cut = w - slope[j] / second, l1 / second
            target = target - cut if target > cut else (target + cut if target < -cut else 0.0)
            change = target - w
            if change != 0:
                step[j] = target - theta[j]
                for k in range(width):
                    slope[k] += change * matrix[j, k]
                gained += second * change * change
        total += gained
        if gained <= exact * (before + total):
            break
    return total, gained


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
        risk: RegularisedRisk,
        chosen: np.ndarray,
        theta: np.ndarray,
        gradient: np.ndarray,
        curvature: np.ndarray,
        exact: float,
        watch: Watch,
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
            if gained <= exact * total or watch.stopped() is not None:
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
