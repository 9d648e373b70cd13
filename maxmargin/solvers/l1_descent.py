"""Coordinate descent on the weights, for the l1 penalty and the squared hinge.

    minimise  sum_j |w_j| + sum_i c_i max(0, 1 - u_i)^2

Up to some thousand weights, Newton's method: the loss becomes its quadratic model at all weights,
which with the penalty is minimised by coordinates, in a matrix that is small. Beyond, one weight at
a time on the loss itself: a Newton step along its column, held back by the penalty. Columns are
visited in random order; a weight at zero that is far from leaving it is set aside until the others
are done, and when few are left, Newton's method takes these. Both halve a step until the objective
falls as promised.

References: Yuan, Ho and Lin, JMLR 13, 2012 (the model); Yuan, Chang, Hsieh and Lin, JMLR 11, 2010
and Fan et al., JMLR 9, 2008 (columns, LIBLINEAR).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from maxmargin.backends.compiled import njit
from maxmargin.backends.cpu_linear import Design
from maxmargin.backends.systems import solved
from maxmargin.risk import LinearSolution, RegularisedRisk
from maxmargin.solution import Status
from maxmargin.solvers.newton_steps import Losses
from maxmargin.solvers.risk_solver import RiskSolver, report

_PASSES, _STALE, _SWEEPS = 100_000, 50, 5
_DIRECT, _FEW = 1500, 400  # weights up to which the model's matrix is made, of all or of some
_FACES, _INNER, _HALVINGS = 100, 30, 40  # of a model: faces, sweeps for each; of a step
_FALLS = 1e-9  # part of the objective by which it must fall to count as falling
_FLOOR = 1e-13  # curvature of a column, over what it would be about zero, that is rounding


@dataclass(frozen=True)
class L1Descent(RiskSolver):
    """Solver for the squared hinge with the l1 penalty."""

    def solve(self, risk: RegularisedRisk, start: LinearSolution | None = None) -> LinearSolution:
        """Minimise a regularised risk from a start, or from zero."""
        model = _Model(risk) if risk.design.width <= _DIRECT else _Columns(risk)
        theta = np.zeros(risk.design.width) if start is None else start.theta.copy()
        limit = self.max_iter if self.max_iter >= 0 else _PASSES
        passes, stale, least, lowest, status = 0, 0, np.inf, np.inf, None
        while True:
            f = risk.design.values(theta)
            s = risk.loss.slope(risk.arguments(f))
            certificate = risk.certificate(theta, s, Status.CONVERGED, self.tol)
            falling = certificate.primal < (1.0 - _FALLS) * lowest
            stale = 0 if falling or certificate.relative_gap < least else stale + 1
            least = min(least, certificate.relative_gap)
            lowest = min(lowest, certificate.primal)
            if certificate.converged:
                status = Status.CONVERGED
            elif status is None and passes >= limit:
                status = Status.MAX_ITER
            elif status is None and stale > _STALE:
                status = Status.STALLED
            report(self.monitor, passes, certificate.gap, certificate.primal, self.tol)
            if status is not None:
                return LinearSolution(theta, s, passes, status)
            theta, taken = model.improved(theta, f)
            passes += taken
            status = self.monitor.stopped()


class _Model:
    """The loss as a quadratic at the weights."""

    def __init__(self, risk: RegularisedRisk) -> None:
        self.risk, self.losses = risk, Losses(risk)

    def improved(self, theta: np.ndarray, f: np.ndarray) -> tuple[np.ndarray, int]:
        """Weights that lower the objective, and how many passes that took."""
        risk = self.risk
        slope, curvature = self.losses.slope_and_curvature(f)
        gradient, matrix = risk.design.combination(slope), risk.design.gram(curvature)
        step = self._step(matrix, gradient, theta)
        along, value = risk.design.values(step), risk.primal(theta, f)
        promise = float(gradient @ step) + risk.norm(theta + step) - risk.norm(theta)
        length = 1.0
        for _ in range(_HALVINGS):
            reached = risk.primal(theta + length * step, f + length * along)
            if reached <= value + 0.01 * length * promise:
                return theta + length * step, 1
            length *= 0.5
        return theta, 1

    def _step(self, matrix: np.ndarray, gradient: np.ndarray, theta: np.ndarray) -> np.ndarray:
        """Minimise the model plus the penalty.

        An intercept without a penalty is solved for first: what is left are columns about their
        means, which coordinates can go along however far from zero the data are.
        """
        penalised, floor = self.risk.penalised, _FLOOR * np.diag(matrix) + 1e-300
        if not self.risk.free_intercept:
            return _model_step(matrix, gradient, theta, penalised, floor)
        across, bend = matrix[-1, :-1], max(float(matrix[-1, -1]), 1e-300)
        shift = across / bend
        step = _model_step(
            matrix[:-1, :-1] - np.outer(shift, across),
            gradient[:-1] - gradient[-1] * shift,
            theta[:-1],
            penalised[:-1],
            floor[:-1],
        )
        return np.append(step, -(gradient[-1] + across @ step) / bend)


def _model_step(
    matrix: np.ndarray,
    gradient: np.ndarray,
    theta: np.ndarray,
    penalised: np.ndarray,
    floor: np.ndarray,
) -> np.ndarray:
    """Step to the minimum of the model plus the penalty: by coordinates, and along faces.

    Where coordinates crawl, the signs of the weights are mostly known: the model restricted to them
    is a linear system. On the way to its solution weights meet zero, and stay there.
    """
    step, slope = np.zeros(len(theta)), gradient.copy()
    for _ in range(_FACES):
        if _by_coordinates(matrix, slope, theta, step, penalised, floor, _INNER):
            break
        while _along_face(matrix, slope, theta, step, penalised, floor):
            pass  # a weight less
    return step


def _along_face(
    matrix: np.ndarray,
    slope: np.ndarray,
    theta: np.ndarray,
    step: np.ndarray,
    penalised: np.ndarray,
    floor: np.ndarray,
) -> bool:
    """Go to the minimum with the signs as they are; changes step and slope.

    Returns whether a weight has met zero on the way, where it ends.
    """
    w = theta + step
    face = np.flatnonzero(w)
    inside = matrix[np.ix_(face, face)] + np.diag(floor[face])
    change = -solved(inside, slope[face] + penalised[face] * np.sign(w[face]))
    with np.errstate(divide="ignore", invalid="ignore"):
        meets = np.where(change * w[face] < 0, -w[face] / change, np.inf)
    length = min(1.0, float(meets.min(initial=1.0)))
    at_zero = meets <= length
    moved = np.where(at_zero, -w[face], length * change)
    step[face] = np.where(at_zero, -theta[face], step[face] + moved)
    slope += matrix[:, face] @ moved
    return bool(at_zero.any())


@njit(cache=True, nogil=True)
def _by_coordinates(matrix, slope, theta, step, penalised, floor, sweeps):
    """Minimise over each coordinate in turn; changes step and slope. Says if it is done."""
    width, total = len(theta), 0.0
    for _ in range(sweeps):
        gained = 0.0
        for j in range(width):
            bend, p, w = max(matrix[j, j], floor[j]), penalised[j], theta[j] + step[j]
            target, cut = w - slope[j] / bend, p / bend
            target = target - cut if target > cut else (target + cut if target < -cut else 0.0)
            change = target - w
            if change != 0:
                step[j] = target - theta[j]
                for k in range(width):
                    slope[k] += change * matrix[j, k]
                gained += bend * change * change
        total += gained
        if gained <= 1e-16 * total:
            return True
    return False


class _Columns:
    """The data by columns, each entry times its label, the intercept's column last."""

    def __init__(self, risk: RegularisedRisk) -> None:
        design = risk.design
        X = sp.csc_array(design.X) if design.sparse else design.X
        if design.sparse:
            X.sum_duplicates()
            self.indptr, self.indices, self.data = X.indptr, X.indices, X.data
        else:
            n, d = X.shape
            self.indptr = np.arange(d + 1, dtype=np.int64) * n
            self.indices = np.empty(0, dtype=np.int32)
            self.data = np.ascontiguousarray(X.T).reshape(-1)
        self.sparse, self.constant = design.sparse, design.constant
        self.y, self.cost, self.penalised = risk.y, risk.cost, risk.penalised
        self.risk, self.random = risk, np.random.default_rng(0)

    def improved(self, theta: np.ndarray, f: np.ndarray) -> tuple[np.ndarray, int]:
        """Weights that lower the objective, and how many passes that took."""
        theta, self.lack = theta.copy(), 1.0 - self.risk.arguments(f)
        order = np.arange(len(theta))
        for _ in range(_SWEEPS):
            self.random.shuffle(order)
            order = self._sweep(theta, order)
        if len(order) <= _FEW:
            self._polish(theta, np.sort(order))
        return theta, _SWEEPS

    def _polish(self, theta: np.ndarray, order: np.ndarray) -> None:
        """Minimise over some weights, in place, by the model of their columns."""
        risk, features = self.risk, self.risk.design.features
        columns = order[order < features]
        part = RegularisedRisk(
            Design(risk.design.X[:, columns], self.constant, risk.design.workers),
            self.y,
            self.cost,
            risk.loss,
            risk.penalised_intercept,
            risk.penalty,
        )
        weights = np.append(columns, features) if self.constant else columns
        model, chosen = _Model(part), theta[weights]
        for _ in range(_SWEEPS):
            chosen, _ = model.improved(chosen, part.design.values(chosen))
        theta[weights] = chosen

    def _sweep(self, theta: np.ndarray, order: np.ndarray) -> np.ndarray:
        """Visit weights once, in place; returns those to visit again."""
        kept = _sweep(
            self.indptr,
            self.indices,
            self.data,
            self.sparse,
            self.constant,
            self.y,
            self.cost,
            self.penalised,
            theta,
            self.lack,
            order,
        )
        return order[:kept]


@njit(cache=True, nogil=True)
def _entry(indices, data, sparse, constant, start, k, last):
    """Row and value of the k-th entry of a column."""
    if last:
        return k, constant
    if sparse:
        return indices[start + k], float(data[start + k])
    return k, float(data[start + k])


@njit(cache=True, nogil=True)
def _sweep(indptr, indices, data, sparse, constant, y, cost, penalised, theta, lack, order):
    """Minimise over each weight in turn; changes theta and lack, and reorders ``order``."""
    features, kept = len(indptr) - 1, 0
    for place in range(len(order)):
        j = order[place]
        last = j == features
        start = 0 if last else indptr[j]
        count = len(y) if last else indptr[j + 1] - start
        slope, bend = 0.0, 1e-12
        for k in range(count):
            i, x = _entry(indices, data, sparse, constant, start, k, last)
            if lack[i] > 0:
                slope -= 2.0 * cost[i] * y[i] * x * lack[i]
                bend += 2.0 * cost[i] * x * x
        p, w = penalised[j], theta[j]
        if w == 0.0 and abs(slope) < 0.9 * p:
            continue  # far from leaving zero
        order[kept], kept = j, kept + 1
        if slope + p <= bend * w:
            step = -(slope + p) / bend
        elif slope - p >= bend * w:
            step = -(slope - p) / bend
        else:
            step = -w
        if abs(step) < 1e-14:
            continue
        promise = slope * step + p * (abs(w + step) - abs(w))
        length = 1.0
        for _ in range(30):
            change = p * (abs(w + length * step) - abs(w))
            for k in range(count):
                i, x = _entry(indices, data, sparse, constant, start, k, last)
                before = max(lack[i], 0.0)
                after = max(lack[i] - length * step * y[i] * x, 0.0)
                change += cost[i] * (after * after - before * before)
            if change <= 0.01 * length * promise:
                break
            length *= 0.5
        else:
            length = 0.0
        if length > 0:
            theta[j] = w + length * step
            for k in range(count):
                i, x = _entry(indices, data, sparse, constant, start, k, last)
                lack[i] -= length * step * y[i] * x
    return kept
