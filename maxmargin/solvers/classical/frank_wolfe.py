"""Frank-Wolfe on the dual: always towards a corner, or away from one.

    minimise  f(b) = 1/2 b' Q b + p' b    over the polytope of the box and the sums

At b with gradient g, a step goes to ``b + t d``, with the t that is best along d:

    towards   d = s - b,  s the corner where g' s is least
    away      d = b - a,  a the corner of b's own face where g' a is largest,

whichever falls more steeply. A corner is found by filling the boxes of each group in the order of
the gradient until the sum is reached (a fractional knapsack; without a sum, every variable goes to
its better wall). No projection is needed, and ``g' (b - s)`` bounds what is left to win: the
*Frank-Wolfe gap* is the duality gap at the best levels. A trace has the gap at the b that it
records, as for every method.

Steps towards corners alone zigzag near a face. Steps away from corners need to know which ones b is
made of; here these are all corners of the smallest face that holds b, whose variables at a wall
stay there. So no list of corners is kept, and a step away ends at the next wall (in-face
directions; the decomposition-invariant way). On the hard margin, corners are single rows: steps
towards them are Gilbert's algorithm, and those away are Mitchell's, Demyanov's and Malozemov's.

References: Frank and Wolfe, Naval Research Logistics 3, 1956; Guelat and Marcotte, Math.
Programming 35, 1986 (away steps); Freund, Grigas and Mazumder, SIAM J. Optimization 27, 2017
(in-face directions); Bashiri and Zhang, NeurIPS 2017 (decomposition-invariant steps on general
polytopes); Clarkson, ACM Trans. Algorithms 6, 2010 (the gap).
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

import numpy as np

from maxmargin.duals import DualProblem
from maxmargin.solution import Status
from maxmargin.solvers.classical.gradient_run import GradientRun
from maxmargin.solvers.driver import Watch
from maxmargin.solvers.dual.method import DualMethod, sums
from maxmargin.solvers.dual.near_level import Pace

_PATIENCE, _LESS = 10_000, 0.9  # steps in which the gap should become less by this factor


@dataclass(frozen=True)
class FrankWolfe(DualMethod):
    """Frank-Wolfe with exact line search, and with steps away from corners.

    A step costs one product with the Gram matrix, n^2 operations, and a sort of the gradient;
    memory is 8 n^2 bytes, or a few n where these are not allowed.

    Where the optimum is inside of a wide box, as for regression with a large C, corners are far off
    and steps are many. Without steps away it seldom comes to ``tol``: few variables ever reach a
    wall exactly.

    Parameters
    ----------
    away_steps : bool, default=True
        Without them, steps go towards corners only, as in 1956.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin import Gram, duals
    >>> from maxmargin.kernels import Linear
    >>> from maxmargin.solvers import FrankWolfe
    >>> X, y = np.array([[0.0], [1.0], [1.5]]), np.array([-1.0, 1.0, 1.0])
    >>> problem = duals.hard_margin(np.arange(3), y, np.ones(3)).over(Gram.of(X, Linear()))
    >>> FrankWolfe().solve(problem).alpha  # the nearest points of the two hulls
    array([1., 1., 0.])
    """

    away_steps: bool = True

    def accepts(self, problem: DualProblem) -> str | None:
        """Take what is bounded: a polytope has corners in every direction."""
        endless = [np.isinf(problem.lower), np.isinf(problem.upper)]
        for j in range(problem.n_groups):  # a sum bounds what only one side of the box does not
            of = problem.group == j
            if not (endless[0][of].any() and endless[1][of].any()):
                endless = [side & ~of for side in endless]
        if endless[0].any() or endless[1].any():
            return (
                "Frank-Wolfe goes to corners, and this dual has none in some directions: its box "
                "is unbounded. Pose the hard margin by duals.hard_margin, as SVC(C=inf) does, or "
                "take solver='smo'."
            )
        return None

    def begin(self, problem: DualProblem, watch: Watch, pace: Pace | None = None) -> FrankWolfeRun:
        """Begin at the problem's start."""
        return FrankWolfeRun(problem, watch, self.away_steps)


class FrankWolfeRun(GradientRun):
    """Frank-Wolfe at work."""

    def __init__(self, problem: DualProblem, watch: Watch, away_steps: bool) -> None:
        super().__init__(problem, watch)
        self.away_steps, self.totals = away_steps, sums(problem, problem.start)

    def steps(self) -> Generator[None, None, None]:
        """To where the dual is least along the direction; a step away ends at a wall, if before."""
        least, patient_until = np.inf, _PATIENCE
        while True:
            gradient = self.gradient
            if self.measure().violation <= self.watch.tol:
                return
            gap = max(float(gradient @ (self.beta - self._corner(gradient))), 0.0)
            if gap <= _LESS * least:
                least, patient_until = gap, self.n_iter + _PATIENCE
            direction = self._direction(gradient)
            slope, product = float(gradient @ direction), self.product(direction)
            if not slope < 0 or self.n_iter >= patient_until:
                self.status = Status.STALLED
                return
            room = self._room(direction)
            curvature = self.curvature(direction, product)
            length = min(-slope / curvature, room) if curvature > 0 else room
            self.move(direction, length, product)
            yield

    def _direction(self, gradient: np.ndarray) -> np.ndarray:
        """Towards a corner, or away from one, if that falls more steeply."""
        towards = self._corner(gradient) - self.beta
        if not self.away_steps:
            return towards
        away = self.beta - self._corner(-gradient, self.problem.is_free(self.beta))
        return towards if gradient @ towards <= gradient @ away else away

    def _corner(self, gradient: np.ndarray, free: np.ndarray | None = None) -> np.ndarray:
        """Return the point of the polytope where the gradient's product is least.

        ``free`` are the variables that may move from where they are; all, if not given.
        """
        problem = self.problem
        lower, upper, corner = problem.lower, problem.upper, self.beta.copy()
        free = np.ones(len(gradient), dtype=bool) if free is None else free
        if not problem.n_groups:
            better = np.where(gradient > 0, lower, np.where(gradient < 0, upper, corner))
            return np.where(free, better, corner)
        for j, total in enumerate(self.totals):
            of = problem.group == j
            to_fill = float(total) - float(self.beta[of & ~free].sum())
            index = np.flatnonzero(of & free)
            index = index[np.argsort(gradient[index], kind="stable")]
            corner[index] = _filled(lower[index], upper[index], to_fill)
        return corner

    def _room(self, direction: np.ndarray) -> float:
        """How far a direction goes until the first wall; to a corner exactly one, but for rounding.

        A variable that would leave the box by rounding alone does not count: it is clipped.
        """
        problem, beta = self.problem, self.beta
        wall = np.where(direction > 0, problem.upper, problem.lower)
        moves = direction != 0
        with np.errstate(over="ignore"):
            return float(((wall - beta)[moves] / direction[moves]).min(initial=np.inf))


def _filled(lower: np.ndarray, upper: np.ndarray, total: float) -> np.ndarray:
    """Fill boxes to a sum, the first ones first; at most one of them ends between its walls."""
    if np.isinf(lower).any():  # from the other end: all full, the last ones emptied first
        return -_filled(-upper[::-1], -lower[::-1], -total)[::-1]
    height = np.minimum(upper - lower, max(total - lower.sum(), 0.0))
    before = np.concatenate([[0.0], np.cumsum(height)[:-1]])
    left = total - lower.sum() - before
    return np.where(left >= height, lower + height, lower + np.clip(left, 0.0, height))
