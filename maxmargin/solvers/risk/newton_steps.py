"""Newton's steps on a penalty plus a sum over rows, cut short where they go too far.

    minimise  1/2 ||w||^2 + tilt . theta + sum_i v_i(f_i),      (Z' D Z + I) step = -gradient

with ``D`` the curvatures. Up to some thousand features the matrix is made and factorised, from the
last one where few curvatures have changed; beyond, conjugate gradients need only products with the
data. Where a step goes too far, up again, the slope along it says where to stop, and costs no
product.

References: Keerthi and DeCoste, JMLR 6, 2005 (squared hinge); Lin, Weng and Keerthi, JMLR 9, 2008
(conjugate gradients); seeds 001 and 004 (logistic regression).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.linalg.lapack import dposv

from maxmargin.backends.cpu.linear import LOOPED
from maxmargin.backends.cpu.losses import RowLosses, reach, slopes, slopes_and_curvatures
from maxmargin.backends.cpu.newton import newton_step
from maxmargin.backends.systems import DIRECT
from maxmargin.risk import RegularisedRisk
from maxmargin.solvers.risk.cache import RiskCache

_FORCING = 0.1  # residual of conjugate gradients, over the gradient
_NOTHING = 1e-20  # promise, over the objective, of a step whose matrix is rounding: not taken
_FEW, _SAME = 0.5, 1e-12  # share of curvatures that may differ from the last, and by how much


class Losses:
    """The losses of a risk as functions of the values; with a width, held near some slopes."""

    def __init__(
        self, risk: RegularisedRisk, centre: np.ndarray | None = None, width: float = np.inf
    ) -> None:
        if risk.loss.shape is None or (risk.loss.shape.entropy and width < np.inf):
            raise ValueError(
                f"Newton's steps need the conjugate of a loss as a shape, and hold only quadratic "
                f"ones near slopes; {risk.loss!r} is not such a loss."
            )
        shape = tuple(map(float, risk.loss.shape))  # an integer would be compiled for anew
        centre = np.zeros(risk.n) if centre is None else centre
        self.rows = RowLosses(risk.y, risk.cost, risk.of_margins, shape, centre, 1.0 / width)

    def slopes(self, f: np.ndarray) -> np.ndarray:
        """Slopes along the margins or residuals."""
        return slopes(self.rows, f)

    def slope_and_curvature(self, f: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Slopes and curvatures along f, times the costs."""
        return slopes_and_curvatures(self.rows, f)

    def reach(self, f: np.ndarray, along: np.ndarray, *others: float) -> tuple[float, float]:
        """How far to go along a step, and the slope there."""
        return reach(self.rows, f, along, *others)


class NewtonSteps:
    """Newton's steps from some weights: one matrix and one product each.

    Parameters
    ----------
    risk : RegularisedRisk
    theta : array
        Where to begin.
    cache : RiskCache
    tilt : array, optional
        A linear term.

    Attributes
    ----------
    theta, f : arrays
        The weights, and their values.
    length : float
        Of the last step, over Newton's own.
    """

    def __init__(
        self,
        risk: RegularisedRisk,
        theta: np.ndarray,
        cache: RiskCache,
        tilt: np.ndarray | None = None,
    ) -> None:
        self.risk, self.design, self.cache = risk, risk.design, cache
        self.tilt = np.zeros(len(theta)) if tilt is None else tilt
        self.direct = risk.design.width <= DIRECT
        self.few = not self.design.sparse and risk.n * self.design.width**2 <= LOOPED
        self.theta = theta
        if theta.any():
            self.f = cache.values(risk, theta)
            self.objective = abs(risk.primal(theta, self.f))
        else:
            self.f, self.objective = np.zeros(risk.n), risk.nothing
        self.length, self.promise, self.end = 1.0, np.inf, np.inf  # of the last step
        self.model: tuple[np.ndarray, ...] = ()  # slopes, curvatures, and values along it

    @property
    def left(self) -> float:
        """By how much the objective may still fall after the last step.

        A whole step leaves about as much as the slope at its end, times its length.
        """
        return self.promise if self.length < 1 else min(self.promise, abs(self.end))

    def descend(
        self, rows: Losses, enough: float, most: int, stopped: Callable[[], Any] = lambda: None
    ) -> None:
        """Step until one leaves no more than is enough, or often enough, or until stopped."""
        for _ in range(most):
            if stopped():
                return
            self.take(rows)
            if not self.left > enough:
                return

    def take(self, rows: Losses) -> None:
        """Take a step."""
        if not (self.few and self._taken_at_once(rows)):
            self._take(rows)

    def _taken_at_once(self, rows: Losses) -> bool:
        """Take a step in one compiled call, unless its matrix is singular."""
        theta, f, length, end, promise, *model = newton_step(
            self.design.X,
            self.design.constant,
            rows.rows,
            self.risk.penalised,
            self.tilt,
            self.theta,
            self.f,
            _NOTHING * self.objective,
        )
        if promise > 0:
            self.theta, self.f, self.length, self.end = theta, f, length, end
        if promise >= 0:
            self.promise, self.model = promise, tuple(model)
        return promise >= 0

    def _take(self, rows: Losses) -> None:
        """Take a step, if it promises anything."""
        slope, curvature = rows.slope_and_curvature(self.f)
        step, promise = self._step(slope, curvature)
        if _NOTHING * self.objective < promise < np.inf:
            along = self._go(rows, step, promise)
        else:
            along, promise = np.zeros(self.risk.n), 0.0
        self.model, self.promise = (slope, curvature, along), promise

    def _step(self, slope: np.ndarray, curvature: np.ndarray) -> tuple[np.ndarray, float]:
        """Newton's step, and by how much it would fall if the slope stayed as it is."""
        penalised, design = self.risk.penalised, self.design
        gradient = design.combination(slope) + penalised * self.theta + self.tilt
        if self.direct:
            step = -_solved(self._gram(curvature), penalised, gradient)
        else:
            step = self._by_conjugate_gradients(curvature, gradient)
        return step, -float(gradient @ step)

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

    def _by_conjugate_gradients(self, curvature: np.ndarray, gradient: np.ndarray) -> np.ndarray:
        """Solve for the step, to a part of the gradient."""
        step, residual = np.zeros(len(gradient)), -gradient
        size = float(np.linalg.norm(residual))
        direction, squared = residual.copy(), size**2
        for _ in range(len(step)):
            values = self.design.values(direction)
            product = self.design.combination(curvature * values)
            product += (self.risk.penalised + 1e-12) * direction
            length = squared / float(direction @ product)
            step += length * direction
            residual -= length * product
            before, squared = squared, float(residual @ residual)
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
        slope, curvature, along = self.model
        low, high = self.risk.loss.slopes
        s = self.risk.slopes(-slope - curvature * along)
        return np.maximum(np.minimum(s, high), low)  # np.clip takes longer, on few rows

    def _go(self, rows: Losses, step: np.ndarray, promise: float) -> np.ndarray:
        """Go along a step until it hardly falls any more; returns the values along it."""
        along = self.design.values(step)
        penalised = self.risk.penalised
        base = float((penalised * self.theta + self.tilt) @ step)
        curvature = float(penalised * step @ step)
        self.length, self.end = rows.reach(self.f, along, base, curvature, promise)
        self.theta = self.theta + self.length * step
        self.f = self.f + self.length * along
        return along


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
