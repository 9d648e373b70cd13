"""Coordinate ascent: one variable at a time, each to the best place on its line.

For the dual without a bias, whose only constraint is the box ``0 <= a_i <= C``:

    a_i  <-  clip(a_i + (1 - y_i f(x_i)) / K_ii,  0,  C),      f(x) = sum_j a_j y_j k(x_j, x)

in the signed variables of :mod:`maxmargin.duals`, ``b_i <- clip(b_i + v_i / K_ii)`` with v minus
the gradient. With a bias there is the constraint ``sum_i y_i a_i = 0``, and one variable alone
cannot move: it is what the others leave, ``a_1 = -y_1 sum_{i > 1} y_i a_i``. Two can: that is SMO.

For any function F of several variables, see :func:`coordinate_ascent`.

A step on the dual takes one row of the Gram matrix and O(n) operations, the choice of the greatest
improvement O(n) more; in memory there are the rows that the budget holds, and vectors.

References: Hsieh et al., A dual coordinate descent method for large-scale linear SVM, ICML 2008;
Wright, Coordinate descent algorithms, Mathematical Programming 151, 2015.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar

from maxmargin.duals import DualProblem
from maxmargin.solution import Status
from maxmargin.solvers.classical.row_run import ENOUGH, RowRun
from maxmargin.solvers.driver import Watch
from maxmargin.solvers.dual.method import DualMethod
from maxmargin.solvers.dual.near_level import Pace

ORDERS = ("cyclic", "random", "greatest")
_TINY = 1e-12  # curvature below which a line counts as straight
_FAR = 1e10  # times the start's size: a line search that comes there has found no top


@dataclass(frozen=True)
class CoordinateAscent(DualMethod):
    """Coordinate ascent on duals without an equality constraint.

    A step is one variable that moves. It costs a row of the Gram matrix and O(n) operations.

    Parameters
    ----------
    order : {"cyclic", "random", "greatest"}, default="cyclic"
        Which variable is next: in turn, all in an order that is drawn anew each time, or the one
        that raises the dual most.
    random_state : int, default=0
        Of the random order.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin import SVC
    >>> from maxmargin.solvers import CoordinateAscent
    >>> X, y = np.array([[-1.0], [2.0], [3.0]]), np.array([-1, 1, 1])
    >>> model = SVC(kernel="linear", fit_intercept=False, solver=CoordinateAscent("greatest"))
    >>> model.fit(X, y).coef_
    array([[1.]])
    >>> SVC(kernel="linear", solver="coordinate_ascent").fit(X, y)
    Traceback (most recent call last):
    ...
    ValueError: Coordinate ascent moves one variable at a time, and with the constraint ...
    """

    order: str = "cyclic"
    random_state: int = 0

    def __post_init__(self) -> None:
        _check_order(self.order)

    def accepts(self, problem: DualProblem) -> str | None:
        """Take what has a box and nothing else."""
        if not problem.n_groups:
            return None
        biased = problem.n_groups == len(problem.bias_weights) == 1 and not (
            len(problem.margin_weights) or len(problem.tube_weights)
        )
        if biased:
            return (
                "Coordinate ascent moves one variable at a time, and with the constraint "
                "sum_i y_i a_i = 0, which comes with the bias, none can move alone: a_1 = -y_1 "
                "(sum of the other y_i a_i) is what these leave. Set fit_intercept=False, or use "
                'solver="smo", which moves two.'
            )
        return (
            "Coordinate ascent moves one variable at a time, and where the sum of the multipliers "
            "is fixed, by nu or as weights of a hull, none can move alone. Use "
            'solver="smo", which moves two.'
        )

    def begin(
        self, problem: DualProblem, watch: Watch, pace: Pace | None = None
    ) -> CoordinateAscentRun:
        """Begin at the problem's start."""
        return CoordinateAscentRun(problem, watch, self.order, self.random_state)


class CoordinateAscentRun(RowRun):
    """Coordinate ascent at work; a round is as many visits as there are variables."""

    def __init__(self, problem: DualProblem, watch: Watch, order: str, seed: int) -> None:
        super().__init__(problem, watch)
        self.order, self.seed = order, seed

    def steps(self) -> Generator[None, None, None]:
        """Visit variables in their order; after each round, look at all of them."""
        problem = self.problem
        curvature = np.maximum(problem.gram.diagonal[problem.gram_row], _TINY)
        rounds = _rounds_of(len(problem), self.order, self.seed)
        while self.scan()[0] > ENOUGH * self.watch.tol:
            before = self.n_iter
            for t in [self._greatest(curvature)] if self.order == "greatest" else next(rounds):
                v = -problem.orientation[t] * self.decision[problem.gram_row[t]] - problem.linear[t]
                after = self.beta[t] + v / curvature[t]
                after = min(max(after, problem.lower[t]), problem.upper[t])
                if after != self.beta[t]:
                    self.move(np.array([t]), np.array([after]))
                    self.n_iter += 1
                yield
            if self.n_iter == before:
                self.status = Status.STALLED
                return

    def _greatest(self, curvature: np.ndarray) -> int:
        """Return the variable whose step raises the dual most, walls included."""
        problem, v = self.problem, self.problem.scores(self.decision)
        change = np.clip(self.beta + v / curvature, problem.lower, problem.upper) - self.beta
        return int(np.argmax(change * (v - 0.5 * curvature * change)))


class Staircase(NamedTuple):
    """The way of coordinate ascent, which turns by a right angle at each of its points.

    ``points`` (steps + 1, d) begin with the start, ``values`` are F at them, ``coordinates`` say
    which one each step has moved, and ``converged`` whether a round no longer raised F by ``tol``.
    """

    points: np.ndarray
    values: np.ndarray
    coordinates: np.ndarray
    converged: bool


def coordinate_ascent(
    function: Callable[[np.ndarray], float],
    start: Any,
    *,
    bounds: Any = None,
    maximise: Callable[[np.ndarray, int], float] | None = None,
    order: str = "cyclic",
    max_iter: int = 1000,
    tol: float = 1e-10,
    random_state: int = 0,
) -> Staircase:
    """Maximise a function of several variables along one of them at a time.

    It ends at a maximum where F is concave and smooth; at a kink, all lines along coordinates can
    be at their top while F is not.

    Parameters
    ----------
    function : callable
        F, of a point of shape (d,).
    start : float array (d,)
    bounds : float array (d, 2), optional
        Least and largest value of each coordinate, finite.
    maximise : callable, optional
        ``maximise(point, i)`` returns the best value of coordinate i, the others held; by default
        it is searched for (Brent's method).
    order : {"cyclic", "random", "greatest"}, default="cyclic"
        Which coordinate is next, as in :class:`CoordinateAscent`.
    max_iter : int, default=1000
        Limit on the steps.
    tol : float, default=1e-10
        It ends after a round through all coordinates (or the best step) that has not raised F by
        this much times ``1 + |F|``.
    random_state : int, default=0
        Of the random order.

    Returns
    -------
    way : Staircase

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.solvers import coordinate_ascent
    >>> way = coordinate_ascent(lambda x: -(x[0] ** 2) - x[1] ** 2 + x[0] * x[1] + 3 * x[1], [0, 0])
    >>> way.points[:4].round(3) + 0.0
    array([[0.  , 0.  ],
           [0.  , 0.  ],
           [0.  , 1.5 ],
           [0.75, 1.5 ]])
    >>> way.converged, way.points[-1].round(3)
    (True, array([1., 2.]))
    """
    _check_order(order)
    point = np.array(start, dtype=np.float64)
    ends = None if bounds is None else np.asarray(bounds, dtype=np.float64)
    if ends is not None and (ends.shape != (len(point), 2) or not np.isfinite(ends).all()):
        raise ValueError(
            f"bounds must be finite, two for each of the {len(point)} coordinates; got {bounds!r}. "
            "Leave them out to search whole lines."
        )
    if ends is not None and not ((ends[:, 0] <= point) & (point <= ends[:, 1])).all():
        raise ValueError(f"The start {start!r} is not between its bounds {bounds!r}.")
    d, rounds = len(point), _rounds_of(len(point), order, random_state)

    def best(i: int) -> np.ndarray:
        after = point.copy()
        after[i] = _top(function, point, i, ends) if maximise is None else maximise(point, i)
        return after

    points, values, converged = [point], [float(function(point))], False
    if not np.isfinite(values[0]):
        raise ValueError(f"The function is {values[0]} at the start {start!r}: begin elsewhere.")
    moved: list[int] = []
    while not converged and len(moved) < max_iter:
        before = values[-1]
        if order == "greatest":
            turns = [max(range(d), key=lambda i: function(best(i)))]
        else:
            turns = list(next(rounds))
        for i in turns[: max_iter - len(moved)]:
            point = best(i)
            points.append(point)
            values.append(float(function(point)))
            moved.append(int(i))
        finished = len(moved) < max_iter or len(moved) % len(turns) == 0
        converged = finished and values[-1] - before <= tol * (1 + abs(values[-1]))
    return Staircase(np.array(points), np.array(values), np.array(moved, dtype=np.int64), converged)


def _rounds_of(size: int, order: str, seed: int) -> Iterator[np.ndarray]:
    """Yield all variables in turn or, each time anew, at random."""
    random, everyone = np.random.default_rng(seed), np.arange(size)
    while True:
        yield everyone if order == "cyclic" else random.permutation(size)


def _top(function: Callable, point: np.ndarray, i: int, bounds: np.ndarray | None) -> float:
    """Best value of a coordinate, the others held: where it is, unless another is better."""

    def loss(value: float) -> float:
        trial = point.copy()
        trial[i] = value
        return -float(function(trial))

    if bounds is None:
        unit = 1.0 + abs(point[i])
        with np.errstate(over="ignore", invalid="ignore"):
            found = minimize_scalar(loss, bracket=(point[i] - unit, point[i] + unit)).x
        if not abs(found) < _FAR * unit:
            raise ValueError(
                f"The function has no maximum along coordinate {i} from {point}: give bounds, or "
                "maximise."
            )
        tried = [point[i], found]
    else:
        found = minimize_scalar(loss, bounds=bounds[i], options={"xatol": 1e-10}).x
        tried = [point[i], found, *bounds[i]]
    return float(min(tried, key=loss))


def _check_order(order: str) -> None:
    if order not in ORDERS:
        raise ValueError(f"order must be one of {', '.join(map(repr, ORDERS))}; got {order!r}.")
