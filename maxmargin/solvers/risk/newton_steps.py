"""Newton's steps on a penalty plus a sum over rows, cut short where they go too far.

    minimise  R(w) + tilt . theta + sum_i v_i(f_i),      (Z' D Z + l2 I) step = -gradient

with ``D`` the curvatures, numbers or for a softmax a small matrix for each row. Up to some thousand
weights the matrix is made and factorised, from the last one where few curvatures have changed;
beyond, conjugate gradients need only products with the data. Where a step goes too far, up again,
the slope along it says where to stop, and costs no product. With an l1 penalty, and for a softmax,
it is halved until the objective falls as promised.

References: Keerthi and DeCoste, JMLR 6, 2005 (squared hinge); Lin, Weng and Keerthi, JMLR 9, 2008
(conjugate gradients); seeds 001 and 004 (logistic regression).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.linalg.lapack import dposv

from maxmargin.backends.compiled import njit
from maxmargin.backends.cpu.linear import LOOPED
from maxmargin.backends.cpu.linear.newton import newton_step
from maxmargin.backends.systems import DIRECT, solved
from maxmargin.risk import L2, Losses, Penalty, Risk
from maxmargin.risk.base import LossModel
from maxmargin.risk.regularised import RowModel
from maxmargin.solvers.risk.run import RiskCache

_FORCING = 0.1  # residual of conjugate gradients, over the gradient
_NOTHING = 1e-20  # promise, over the objective, of a step whose matrix is rounding: not taken
_FEW, _SAME = 0.5, 1e-12  # share of curvatures that may differ from the last, and by how much
_ENOUGH, _HALVINGS = 1e-4, 40  # share of its promise that a halved step keeps, and how often
_ROUNDINGS = 8  # of the objective, by which it may seem to rise
FACES, _INNER = 100, 200  # of a model with an l1 penalty: faces, and sweeps for each
_TURNS = 3  # faces after each other, before coordinates are looked at again
_WORK = 50_000_000  # products of these sweeps at most: a compiled call must not take long
EXACT = 1e-13  # of what a model has gained, by its last sweep, at best
_FLOOR = 1e-13  # curvature of a column, over what it would be about zero, that is rounding
_WIDE = 300  # weights up to which a matrix is made where the rows are few and all of them bent
_SINGULAR = (
    1e-12  # of the largest curvature of intercepts: what all classes have in common has none
)


class NewtonSteps:
    """Newton's steps from some weights: one matrix and one product each.

    Parameters
    ----------
    risk : Risk
    theta : array
        Where to begin.
    cache : RiskCache
    tilt : array, optional
        A linear term.
    stopped : callable, optional
        Asked before every part of a matrix; then ``StoppedError`` is raised.

    Attributes
    ----------
    theta, f : arrays
        The weights, and their values.
    length : float
        Of the last step, over Newton's own.
    """

    def __init__(
        self,
        risk: Risk,
        theta: np.ndarray,
        cache: RiskCache,
        tilt: np.ndarray | None = None,
        stopped: Callable[[], Any] = lambda: None,
    ) -> None:
        self.risk, self.design, self.cache, self.stopped = risk, risk.design, cache, stopped
        self.tilt = np.zeros(theta.shape) if tilt is None else tilt
        self.ridge = risk.penalty.l2 * risk.penalised
        # no more rows than columns, all of them bent: conjugate gradients need few products
        wide = risk.bent and risk.penalty == L2 and risk.n <= self.design.width
        self.direct = theta.size <= (_WIDE if wide else DIRECT)
        few = risk.n * self.design.width**2 <= LOOPED and self.design.in_memory
        few = few and not self.design.sparse
        self.few = few and theta.ndim == 1 and not risk.penalty.l1
        self.theta = theta
        if theta.any():
            self.f = cache.values(risk, theta)
            self.objective = abs(risk.primal(theta, self.f))
        else:
            self.f, self.objective = self.design.values_of_nothing(theta.shape), risk.nothing
        self.length, self.promise, self.end = 1.0, np.inf, np.inf  # of the last step
        self.model: LossModel | None = None  # of the last step, and the values along it
        self.along = 0.0 * self.f

    @property
    def left(self) -> float:
        """By how much the objective may still fall after the last step.

        A whole step leaves about as much as the slope at its end, times its length.
        """
        return self.promise if self.length < 1 else min(self.promise, abs(self.end))

    def descend(
        self, losses: Losses, enough: float, most: int, stopped: Callable[[], Any] = lambda: None
    ) -> None:
        """Step until one leaves no more than is enough, or often enough, or until stopped."""
        for _ in range(most):
            if stopped():
                return
            self.take(losses)
            if not self.left > enough:
                return

    def take(self, losses: Losses | Risk) -> None:
        """Take a step on some losses: those of the risk, or smooth ones near them."""
        if not (self.few and isinstance(losses, Losses) and self._taken_at_once(losses)):
            self._take(losses)

    def _taken_at_once(self, losses: Losses) -> bool:
        """Take a step in one compiled call, unless its matrix is singular."""
        theta, f, length, end, promise, slope, curvature, along = newton_step(
            self.design.X,
            self.design.constant,
            losses.rows,
            self.risk.penalised,
            self.tilt,
            self.theta,
            self.f,
            _NOTHING * self.objective,
        )
        if promise > 0:
            self.theta, self.f, self.length, self.end = theta, f, length, end
        if promise >= 0:
            self.promise, self.along = promise, along
            self.model = RowModel(self.design, slope, curvature)
        return promise >= 0

    def _take(self, losses: Losses | Risk) -> None:
        """Take a step, if it promises anything."""
        penalty, theta = self.risk.penalty, self.theta
        model = losses.model(self.f)
        gradient, of_penalty = self.design.combination(model.slope), self.ridge * theta + self.tilt
        step = self.step_of(model, gradient, of_penalty)
        promise = -float(np.vdot(gradient + of_penalty, step))
        self.model = model
        if penalty.l1 or not isinstance(losses, Losses):
            grown = self.risk.penalised * (np.abs(theta + step) - np.abs(theta))
            self._halve(step, promise - penalty.l1 * float(grown.sum()))
        elif _NOTHING * self.objective < promise < np.inf:
            self.promise, self.along = promise, self.design.values(step)
            base, curvature = float(of_penalty @ step), float(self.ridge * step @ step)
            self.length, self.end = losses.reach(self.f, self.along, base, curvature, promise)
            self.theta, self.f = theta + self.length * step, self.f + self.length * self.along
        else:
            self.promise, self.along = 0.0, 0.0 * self.f

    def step_of(self, model: LossModel, gradient: np.ndarray, of_penalty: np.ndarray) -> np.ndarray:
        """Newton's step, from a model of the losses, their gradient and that of all else."""
        penalty, shape = self.risk.penalty, gradient.shape
        if penalty.l1:
            penalised = np.broadcast_to(self.risk.penalised, shape).ravel()
            matrix, theta = model.matrix(self.stopped), self.theta.ravel()
            return model_step(matrix, gradient.ravel(), theta, penalised, penalty).reshape(shape)
        if not self.direct:
            return self._by_conjugate_gradients(model, gradient + of_penalty)
        if isinstance(model, RowModel):
            return -_solved(self._gram(model.curvature), self.ridge, gradient + of_penalty)
        matrix = model.matrix(self.stopped)
        matrix.flat[:: len(matrix) + 1] += np.broadcast_to(self.ridge, shape).ravel()
        return -solved(matrix, (gradient + of_penalty).ravel()).reshape(shape)

    def _gram(self, curvature: np.ndarray) -> np.ndarray:
        """Matrix of the curvatures: the last one and what has changed, where that is little."""
        total, matrix = self.risk.total_cost, None
        if self.cache.gram is not None:
            before, known, made = self.cache.gram
            if before == total:
                change = curvature - known
            else:
                change = curvature - (total / before) * known
                change[np.abs(change) <= _SAME * curvature] = 0.0
            if np.count_nonzero(change) < _FEW * np.count_nonzero(curvature):
                matrix = self.design.gram(change)
                matrix += made if before == total else (total / before) * made
        if matrix is None:
            matrix = self.design.gram(curvature)
        self.cache.gram = total, curvature, matrix
        return matrix

    def _by_conjugate_gradients(self, model: LossModel, gradient: np.ndarray) -> np.ndarray:
        """Solve for the step, to a part of the gradient."""
        step, residual = np.zeros_like(gradient), -gradient
        size = float(np.linalg.norm(residual))
        direction, squared = residual.copy(), size**2
        for _ in range(step.size):
            product = model.product(direction) + (self.ridge + 1e-12) * direction
            length = squared / float(np.vdot(direction, product))
            step += length * direction
            residual -= length * product
            before, squared = squared, float(np.vdot(residual, residual))
            if squared**0.5 <= _FORCING * size:
                break
            direction = residual + (squared / before) * direction
        return step

    def predicted(self) -> np.ndarray:
        """Slopes of the losses that the model of the last step has at its whole step's end.

        They make ``Z' beta`` equal to the weights there: a dual point whose gap falls as fast as
        the model becomes exact, even where the step itself had to be cut short. What the conjugate
        does not allow is cut off.
        """
        assert self.model is not None  # there was a step
        return self.risk.allowed(self.risk.slopes(-self.model.after(self.along)))

    def _halve(self, step: np.ndarray, promise: float) -> None:
        """Go along a step, halved until the objective falls as promised; or nowhere."""
        risk, value, length = self.risk, self.risk.primal(self.theta, self.f), 1.0
        self.promise, self.along = 0.0, self.design.values(step)
        # what a value is off by rounding must not shorten steps: the bound still gets better
        slack = _ROUNDINGS * np.finfo(np.float64).eps * abs(value)
        for _ in range(_HALVINGS):
            theta, f = self.theta + length * step, self.f + length * self.along
            if risk.primal(theta, f) <= value - _ENOUGH * length * promise + slack:
                self.theta, self.f, self.length, self.end = theta, f, length, np.inf
                self.promise = max(promise, 0.0)
                if not risk.penalty.l1:
                    slope = risk.slope_along(f, step, self.along)
                    self.end = float(slope + np.vdot(self.ridge * theta + self.tilt, step))
                return
            length *= 0.5


def _solved(matrix: np.ndarray, diagonal: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Solve with a positive matrix plus a diagonal; a singular one is made regular.

    Where nothing is bent at all no step is better than another, and none is taken.
    """
    scale, ridge = float(np.trace(matrix) + diagonal.sum()) / len(matrix), 0.0
    if scale < np.finfo(np.float64).tiny:
        return np.zeros(len(right))
    while True:
        whole = matrix.copy()
        whole.flat[:: len(matrix) + 1] += diagonal + ridge
        _, x, failed = dposv(whole.T, right, lower=True, overwrite_a=True)
        if not failed:
            return x
        ridge = max(100.0 * ridge, 1e-13 * scale)


def model_step(
    matrix: np.ndarray,
    gradient: np.ndarray,
    theta: np.ndarray,
    penalised: np.ndarray,
    penalty: Penalty,
    exact: float = EXACT,
    faces: int = FACES,
) -> np.ndarray:
    """Step to the minimum of ``gradient . d + d' matrix d / 2`` plus the penalty on ``theta + d``.

    Weights that are not ``penalised``, the intercepts, are solved for first: what is left are
    columns about their means, which coordinates can go along however far from zero the data are.
    The last sweep gains no more than an ``exact`` part of what all have, unless so many ``faces``
    do not suffice.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.risk import L1
    >>> from maxmargin.solvers.risk.newton_steps import model_step
    >>> model_step(np.eye(2), np.array([-3.0, 0.5]), np.zeros(2), np.ones(2), L1)
    array([2., 0.])
    """
    floor = _FLOOR * np.diag(matrix) + 1e-300
    held, free = np.flatnonzero(penalised), np.flatnonzero(penalised == 0)
    if not len(free):
        return _by_faces(matrix, gradient, theta, penalty, floor, exact, faces)
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
        faces,
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
    faces: int,
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
    for _ in range(faces):
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
