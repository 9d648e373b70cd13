"""Projected gradient descent on the dual, as a lecture has it and as it should be.

    minimise  f(b) = 1/2 b' Q b + p' b    subject to  lower <= b <= upper,  a sum for each group

The lecture (seed 004), in the multipliers ``a = |b|``: from a = 0 on, take the gradient
``Q a - 1``, project it on the hyperplane ``y' a = 0``, go a step against it, limit a to [0, C]. The
last of these leaves the hyperplane that the one before kept to, and nothing leads back. Where it
comes to rest the constraint is violated, and ``w`` is that of no machine: three points on a line
are enough (see :class:`ProjectedGradient`).

The projection on both at once is not much harder: the nearest point to z is
``clip(z - level, lower, upper)`` with the level at which the sum is right, a piecewise linear
function of one number. With it, and

    d = P(b - s g) - b        s from the last step (Barzilai and Borwein), g the gradient
    b <- b + t d              t = 1 where f is then below its largest of the last ten values, else
                              the least of the parabola along d

descent converges to the optimum, and no step needs more than one product with the Gram matrix.

References: seed 004; Dai and Fletcher, Math. Programming 106, 2006 (this constraint, these steps);
Birgin, Martinez and Raydan, SIAM J. Optimization 10, 2000 (spectral projected gradient); Grippo,
Lampariello and Lucidi, SIAM J. Numerical Analysis 23, 1986 (the last ten values).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator
from dataclasses import dataclass

import numpy as np

from maxmargin.duals import DualProblem
from maxmargin.solution import Solution, Status
from maxmargin.solvers.classical.gradient_run import GradientRun
from maxmargin.solvers.driver import Watch
from maxmargin.solvers.dual.method import DualMethod, sums
from maxmargin.solvers.dual.near_level import Pace
from maxmargin.solvers.steps import check_step_size, step_sizes

_REMEMBERED, _ENOUGH = 10, 1e-4  # values, and the part of the slope that a step is to win
_RANGE = 1e-10, 1e10  # of Barzilai's and Borwein's steps, over the first one
_POWERS = 20  # products that the largest curvature is estimated from
_ROUNDING = 1e-12  # of a sum
_REST = 1e-6  # of tol, that nothing moves by any more
_PATIENCE, _LESS = 10_000, 0.99  # steps in which what moves should become less by this factor


@dataclass(frozen=True)
class ProjectedGradient(DualMethod):
    """Projected gradient descent.

    A step costs one product with the Gram matrix, n^2 operations, and with the exact projection
    some sorting; memory is 8 n^2 bytes, or a few n where these are not allowed. It takes every dual
    problem, and many steps where the Gram matrix is ill-conditioned.

    Parameters
    ----------
    projection : {"exact", "clip"}, default="exact"
        ``"exact"`` is the nearest point that meets all constraints. ``"clip"`` is seed 004's
        algorithm as written: its gradient is projected, and its steps are clipped. It ends
        where its sums are wrong, with the status ``"infeasible"``, unless it happens to be right.
    step_size : float or callable, optional
        A number, or a function of the number of the step, from 1 on. Without one: steps of
        Barzilai and Borwein with a line search for ``"exact"``, and one over the largest curvature
        for ``"clip"``.

    Examples
    --------
    Three points on a line, the first of the negative class: the street is between 0 and 1, and
    ``w = 2``. As written, the algorithm loses the first multiplier at a wall and ends at ``w = 4``.

    >>> import numpy as np
    >>> from maxmargin import Gram, duals
    >>> from maxmargin.kernels import Linear
    >>> from maxmargin.solvers import ProjectedGradient
    >>> X, y = np.array([[0.0], [1.0], [1.5]]), np.array([-1.0, 1.0, 1.0])
    >>> problem = duals.c_svc(np.arange(3), y, C=np.full(3, 10.0)).over(Gram.of(X, Linear()))
    >>> written = ProjectedGradient(projection="clip", step_size=0.1).solve(problem)
    >>> written.alpha.round(2), float((y * written.alpha @ X).round(2)[0]), written.status.value
    (array([0., 4., 0.]), 4.0, 'infeasible')
    >>> proper = ProjectedGradient().solve(problem)
    >>> proper.alpha.round(2), proper.status.value
    (array([2., 2., 0.]), 'converged')
    """

    projection: str = "exact"
    step_size: float | Callable[[int], float] | None = None

    def __post_init__(self) -> None:
        if self.projection not in ("exact", "clip"):
            raise ValueError(f"projection is 'exact' or 'clip'; got {self.projection!r}.")
        if self.step_size is not None:
            check_step_size(self.step_size)

    def begin(
        self, problem: DualProblem, watch: Watch, pace: Pace | None = None
    ) -> ProjectedGradientRun:
        """Begin at the problem's start."""
        return ProjectedGradientRun(problem, watch, self)


class ProjectedGradientRun(GradientRun):
    """Projected gradient descent at work."""

    def __init__(self, problem: DualProblem, watch: Watch, method: ProjectedGradient) -> None:
        super().__init__(problem, watch)
        self.method = method

    def steps(self) -> Generator[None, None, None]:
        """Steps of given sizes, or those that fit the curvature."""
        if self.method.projection == "exact" and self.method.step_size is None:
            yield from self._spectral()
        else:
            yield from self._given()

    def solution(self, status: Status) -> Solution:
        """Return the variables as they are; whatever ended it, sums that are wrong come first."""
        return super().solution(Status.INFEASIBLE if self.infeasible else status)

    def _given(self) -> Generator[None, None, None]:
        """Steps of given sizes until nothing moves; converged only where that is the optimum."""
        method, tol = self.method, self.watch.tol
        exact = method.projection == "exact"
        size = method.step_size or 1.0 / (yield from self._largest_curvature())
        least, patient_until = np.inf, _PATIENCE
        while True:
            (length,) = step_sizes(size, 0.0, self.n_iter, 1)
            if exact:
                after = projected(self.problem, self.beta - length * self.gradient)
            else:
                after = self.beta - length * _along(self.problem, self.gradient)
                after = np.clip(after, self.problem.lower, self.problem.upper)
            direction = after - self.beta
            moves = float(np.abs(direction).max(initial=0.0)) / length
            if moves <= 0.1 * tol and not self.infeasible and self.measure().violation <= tol:
                return
            if moves <= _LESS * least:
                least, patient_until = moves, self.n_iter + _PATIENCE
            at_rest = moves <= _REST * tol  # what is infeasible may still be on its way
            if at_rest or not np.isfinite(moves) or self.n_iter >= patient_until:
                self.status = Status.STALLED
                return
            self.move(direction, 1.0, self.product(direction))
            yield

    def _largest_curvature(self) -> Generator[None, None, float]:
        """Estimate the largest eigenvalue of Q, from above by a little; yields to be stopped."""
        direction = np.random.default_rng(0).normal(size=len(self.problem))
        most = 1.0
        for _ in range(_POWERS):
            product = self.product(direction / np.linalg.norm(direction))
            direction = self.problem.orientation * product[self.problem.gram_row]
            most = float(np.linalg.norm(direction))
            if most == 0.0:
                return 1.0
            if self.watch.stopped() is not None:
                yield
        return 1.1 * most

    def _spectral(self) -> Generator[None, None, None]:
        """Barzilai's and Borwein's steps on exact projections, and a line search that allows rises.

        Where no step wins anything in float64, that is the end.
        """
        problem = self.problem
        value = self._value()
        recent = deque([value], maxlen=_REMEMBERED)
        first = step = 1.0 / (yield from self._largest_curvature())
        least, patient_until = np.inf, _PATIENCE
        while (violation := self.measure().violation) > self.watch.tol:
            if violation <= _LESS * least:
                least, patient_until = violation, self.n_iter + _PATIENCE
            gradient = self.gradient
            direction = projected(problem, self.beta - step * gradient) - self.beta
            slope, product = float(gradient @ direction), self.product(direction)
            curvature = self.curvature(direction, product)
            if not slope < 0 or self.n_iter >= patient_until:
                self.status = Status.STALLED
                return
            whole = value + slope + 0.5 * curvature <= max(recent) + _ENOUGH * slope
            length = 1.0 if whole else min(-slope / curvature, 1.0)
            self.move(direction, length, product)
            value = self._value()
            recent.append(value)
            # the two steps of Barzilai and Borwein in turn
            square = float(direction @ direction)
            turn = problem.orientation * product[problem.gram_row]
            squared_turn = float(turn @ turn)
            if curvature > 0 and squared_turn > 0:
                step = square / curvature if self.n_iter % 2 else curvature / squared_turn
                step = float(np.clip(step, _RANGE[0] * first, _RANGE[1] * first))
            else:
                step = _RANGE[1] * first  # a straight line: as far as the walls
            yield

    def _value(self) -> float:
        """Value of the dual as minimised."""
        coef = self.problem.on_rows(self.beta)
        return 0.5 * float(coef @ self.decision) + float(self.problem.linear @ self.beta)


def _along(problem: DualProblem, gradient: np.ndarray) -> np.ndarray:
    """Project a gradient on the hyperplanes of the constraints: less its mean in each group."""
    if not problem.n_groups:
        return gradient
    count = np.bincount(problem.group, minlength=problem.n_groups)
    return gradient - (sums(problem, gradient) / count)[problem.group]


def projected(problem: DualProblem, z: np.ndarray) -> np.ndarray:
    """Return the nearest point to z with the sums of the problem's start in its box.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin import duals
    >>> from maxmargin.solvers.classical.projected_gradient import projected
    >>> problem = duals.one_class(np.arange(3), np.ones(3), nu=0.5)  # a sum of 1.5
    >>> projected(problem, np.array([2.0, 0.5, 0.4])).round(6)
    array([1. , 0.3, 0.2])
    """
    if not problem.n_groups:
        return np.clip(z, problem.lower, problem.upper)
    out, totals = np.empty_like(z), sums(problem, problem.start)
    for j in range(problem.n_groups):
        of = problem.group == j
        out[of] = nearest(z[of], problem.lower[of], problem.upper[of], float(totals[j]))
    return out


def nearest(z: np.ndarray, lower: np.ndarray, upper: np.ndarray, total: float) -> np.ndarray:
    """Return the nearest point of a box with a sum: its sum falls with the level, kink by kink."""
    kinks = np.sort(np.concatenate([z - upper, z - lower]))
    kinks = kinks[np.isfinite(kinks)]
    first, last = 0, len(kinks)  # the level is below kinks[last] and not below kinks[first - 1]
    while first < last:
        middle = (first + last) // 2
        if np.clip(z - kinks[middle], lower, upper).sum() > total:
            first = middle + 1
        else:
            last = middle
    # between two kinks the same variables are free
    low = kinks[first - 1] if first else kinks[0] - 1.0
    high = kinks[first] if first < len(kinks) else kinks[-1] + 1.0
    inside = 0.5 * (low + high)
    free = (z - inside > lower) & (z - inside < upper)
    if not free.any():
        return _filled(np.clip(z - high, lower, upper), z, lower, upper, total)
    fixed = np.where(z - inside <= lower, lower, upper)[~free].sum()
    level = (z[free].sum() + fixed - total) / free.sum()
    out = np.clip(z - level, lower, upper)
    out[free] -= (out.sum() - total) / free.sum()  # the rounding of a z that is far away
    return _filled(np.clip(out, lower, upper), z, lower, upper, total)


def _filled(
    x: np.ndarray, z: np.ndarray, lower: np.ndarray, upper: np.ndarray, total: float
) -> np.ndarray:
    """Give what is left of a sum to those that come first.

    Where z is so far away that the box is less than its rounding, nobody is free.
    """
    lack = total - float(x.sum())
    if abs(lack) <= _ROUNDING * float(np.abs(x).sum()):
        return x
    order = np.argsort(-np.sign(lack) * z, kind="stable")
    room = (upper - x if lack > 0 else x - lower)[order]
    taken = np.diff(np.minimum(np.cumsum(room), abs(lack)), prepend=0.0)
    x[order] += np.sign(lack) * taken
    return np.clip(x, lower, upper)
