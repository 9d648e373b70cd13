"""Gradient descent, and what all methods share that need values and gradients only.

They take a smooth function, and end when no entry of its gradient is larger than ``tol``: whoever
states the function chooses units in which that number means something. They take a regularised risk
whose loss is smooth, too, and end when the relative duality gap is ``tol``.

Gradient descent is ``w <- w - t g`` with ``g`` the gradient at w. The step ``t`` is

    t = (s . s) / (s . z)      s, z: the last changes of w and of the gradient

of Barzilai and Borwein, halved until f falls enough below the largest of its last ten values. On a
quadratic it is a Rayleigh quotient of the inverse Hessian, so no eigenvalue has to be known.

Steps whose size the caller gives are the lecture's: each is taken as it is, in the units of X and
on the sum of the losses, so that they can be computed by hand; the last point is the answer. Steps
that are too large make the loss grow, and at a hundred times what it was the run ends as diverged;
so does one that comes to rest above its start, on a plateau of a loss that is bounded. Where the
slope is bounded they swing to and fro instead. When the lowest value is as many steps ago as it has
taken, and 5,000 at least, and steps do not shrink, the run ends there as stalled.

References: seed 004; Barzilai and Borwein, IMA J. Numerical Analysis 8, 1988; Raydan, SIAM J.
Optimization 7, 1997 (the line search).
"""

from __future__ import annotations

from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Generator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from maxmargin.risk import DirectRisk, LinearSolution, RegularisedRisk, Risk
from maxmargin.risk.standardised import Coordinates
from maxmargin.solution import Status
from maxmargin.solvers.driver import Measure, Method, Run, Watch
from maxmargin.solvers.risk.run import RiskCache, RiskRun
from maxmargin.solvers.steps import (
    SCHEDULES,
    StepSize,
    check_step_size,
    in_data_units,
    step_sizes,
)

_REMEMBERED, _ENOUGH = 10, 1e-4  # values, and the share of the slope's promise to be kept
_GROWTH, _RANGE = 4.0, (1e-10, 1e10)
_DIVERGED = 100.0  # times the value at the start, or at zero
_HIGHER = 1.0 + 1e-6  # times the value at the start: steps that end there have not gone down
_SWINGS = 5_000  # steps of one size without a new lowest value: on data of ours some fell at 3,034
_LOWEST = Status.DIVERGED, Status.STALLED  # ends of which the lowest point is the answer
_SMALL, _LEAST = 1e-3, 1e-14  # gradient at which the gap is looked at first, and the smallest
_SMALLER = 0.1, 0.5  # from one look at the gap to the next, what a gradient falls by

Function = Callable[[np.ndarray], tuple[float, np.ndarray]]
Place = tuple[np.ndarray, float, np.ndarray]  # a point, with value and gradient there


# -- where a run is: on a function, or on a risk ---------------------------------------------------


@dataclass(frozen=True)
class Descent:
    """Where a descent has ended: the best point, its value and largest gradient entry, and why."""

    point: np.ndarray
    value: float
    gradient_norm: float
    n_iter: int
    status: Status
    curve: list[float]


class DescentRun(Run):
    """A run on a smooth function, until no entry of the gradient is larger than ``tol``.

    Parameters
    ----------
    function : callable
        Returns value and gradient at a point.
    watch : Watch
    start : float array
        Where to begin.
    method : GradientMethod, optional
        Whose loop it is.

    Attributes
    ----------
    place, best : tuple
        Point, value and gradient where it is, and where the value was lowest.
    curve : list of float
        The value at the start and after each step.
    """

    solves_for = "weights"
    words = "loss {objective:.5g}, gradient {violation:.2g}"
    l1: np.ndarray | None = None
    keep_last = False  # whether the answer is the last point, and not the lowest
    per_value = 1.0  # what a value is multiplied by in the curve

    def __init__(
        self,
        function: Function,
        watch: Watch,
        start: np.ndarray | None,
        method: GradientMethod | None = None,
    ) -> None:
        if start is None:
            raise ValueError("A descent needs a point to start from.")
        self.function, self.watch, self.method = function, watch, method
        self.place: Place = start, *function(start)
        self.best, self.curve = self.place, [float(self.place[1])]
        nothing = function(np.zeros_like(start))[0] if start.any() else 0.0
        self.ceiling = _DIVERGED * max(self.curve[0], float(nothing))

    @property
    def name(self) -> str:
        """Name of the method."""
        return super().name if self.method is None else type(self.method).__name__

    def steps(self) -> Generator[None, None, None]:
        """The loop of the method."""
        assert self.method is not None  # or the loop is another one
        return self.method.loop(self)

    def at(self, point: np.ndarray) -> tuple[float, np.ndarray]:
        """Value and gradient at a point."""
        return self.function(point)

    def first(self) -> Place:
        """Point, value and gradient at the start."""
        return self.place

    def move(self, place: Place, steepness: float | None = None) -> bool:
        """Be at a place after one more step; returns whether it is near enough to a minimum."""
        self.place = place
        self.n_iter += 1
        self.curve.append(float(place[1]))
        if place[1] <= self.best[1]:
            self.best = place
        if self.arrived and self.keep_last and place[1] > _HIGHER * self.curve[0]:
            self.status = Status.DIVERGED  # thrown on a plateau, where slopes are zero as well
        return self.arrived

    @property
    def point(self) -> np.ndarray:
        """Where it is."""
        return self.place[0]

    @property
    def per_step(self) -> float:
        """What a step of a given size is multiplied by: a mean of losses is one of their sum."""
        columns = getattr(self.function, "columns", None)
        return 1.0 if columns is None else columns.per_step

    def safe_step(self) -> float:
        """Size of steps on which no smooth loss grows: one over a bound on the curvature."""
        function: Any = self.function
        if not hasattr(function, "columns"):
            raise ValueError("The step size of a function is a number, or one for each step.")
        columns = function.columns
        held = 1.0 if columns.standardised else float(np.max(columns.units[1] ** 2, initial=0.0))
        bound = function.rows().curvature * columns.curvature() + function.alpha * held
        return 1.0 / (bound * columns.per_step)

    @property
    def smallest(self) -> float:
        """Largest entry of a gradient at which there is no more to do."""
        return self.watch.tol

    def lost(self) -> bool:
        """Whether a loop that ends before it has arrived is the last one."""
        return True

    @property
    def largest(self) -> float:
        """Largest entry of the gradient, in the units that the function has for it."""
        measured = getattr(self.function, "steepness", None)
        gradient = self.place[2]
        return measured(gradient) if measured else float(np.abs(gradient).max(initial=0.0))

    @property
    def arrived(self) -> bool:
        """Whether this is near enough to a minimum."""
        return self.largest <= self.watch.tol

    @property
    def variables(self) -> np.ndarray:
        """The point."""
        return self.place[0]

    def measure(self) -> Measure:
        """Largest entry of the gradient, and the value."""
        return Measure(self.largest, float(self.place[1]))

    def solution(self, status: Status) -> Descent:
        """Return the lowest point on the way, unless the last one has converged or is asked for."""
        if status in _LOWEST or not (self.keep_last or status is Status.CONVERGED):
            self.place = self.best
        point, value, _ = self.place
        return Descent(point, float(value), self.largest, self.n_iter, status, self.curve)


class GapRun(RiskRun[Risk]):
    """A run on a risk over the sum of its costs, until the duality gap is small.

    The gap falls with the square of the gradient, and is looked at when that is small. A step is a
    pass over the data. The points are the weights, or where these are in some coordinates.
    """

    smallest = _LEAST
    keep_last = False

    def __init__(
        self,
        risk: Risk,
        watch: Watch,
        start: LinearSolution | None,
        cache: RiskCache | None,
        method: Method,
        coordinates: Coordinates | None = None,
    ) -> None:
        super().__init__(risk, watch, start, cache)
        self.method, self.small = method, _SMALL  # gradient at which to look at the gap
        self.coordinates = coordinates
        self.best: Place | None = None
        self.curve: list[float] = []
        self.per_value = risk.total_cost
        l1 = np.broadcast_to(risk.penalty.l1 * risk.penalised / risk.total_cost, risk.shape)
        self.l1 = l1.ravel() if l1.any() else None

    @property
    def name(self) -> str:
        """Name of the method."""
        return type(self.method).__name__

    def steps(self) -> Generator[None, None, None]:
        """The loop of the method, if there is anything to do."""
        if not (self.theta.any() and self.certificate.converged):
            yield from self.method.loop(self)  # type: ignore[attr-defined]

    def at(self, point: np.ndarray) -> tuple[float, np.ndarray]:
        """Value and gradient at a point."""
        self.n_iter += 1
        return self._at(point)

    def _at(self, point: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = self.value_and_gradient(self.weights(point))
        if self.coordinates is not None:
            gradient = self.coordinates.gradient(gradient)
        return value / self.risk.total_cost, gradient / self.risk.total_cost

    def weights(self, point: np.ndarray) -> np.ndarray:
        """Weights at a point."""
        return point if self.coordinates is None else self.coordinates.theta(point)

    @property
    def point(self) -> np.ndarray:
        """Where the weights are."""
        return self.theta if self.coordinates is None else self.coordinates.point(self.theta)

    @property
    def per_step(self) -> float:
        """What a step of a given size is multiplied by, so that it is one on the objective."""
        return (
            self.risk.total_cost if self.coordinates is None else self.coordinates.columns.per_step
        )

    @property
    def ceiling(self) -> float:
        """Value at which a run has diverged."""
        return _DIVERGED * max(self.risk.nothing, self.curve[0]) / self.risk.total_cost

    def safe_step(self) -> float:
        """Size of steps on which no smooth loss grows: one over a bound on the curvature."""
        assert self.coordinates is not None
        columns, risk = self.coordinates.columns, self.risk
        held = risk.penalty.l2 / risk.total_cost * float(np.max(columns.inverse**2, initial=0.0))
        bound = risk.max_curvature * columns.curvature() + held
        return 1.0 / (bound * self.per_step)

    def first(self) -> Place:
        """Point, value and gradient at the start, which is no step."""
        point = self.point
        self.best = place = point, *self._at(point)
        self.curve.append(float(place[1]) * self.per_value)
        return place

    def move(self, place: Place, steepness: float | None = None) -> bool:
        """Be at a place after one more step; returns whether the gap is small, if likely."""
        self.stand(self.weights(place[0]))
        self.curve.append(float(place[1]) * self.per_value)
        if self.best is None or place[1] <= self.best[1]:
            self.best = place
        largest = float(np.abs(place[2]).max()) if steepness is None else steepness
        if largest > self.small:
            return False
        if not self.arrived:
            wanted = (self.watch.tol / self.certificate.relative_gap) ** 0.5
            self.small = largest * float(np.clip(wanted, *_SMALLER))
        return self.arrived

    def lost(self) -> bool:
        """Whether a loop that ends before it has arrived is the last one; else the gap is next."""
        self.small *= _SMALLER[0]
        return self.small < _LEAST

    @property
    def arrived(self) -> bool:
        """Whether the gap is small."""
        return self.certificate.converged

    def solution(self, status: Status) -> LinearSolution:
        """Return the lowest point on the way, unless the last one has converged or is asked for."""
        last = self.keep_last and status not in _LOWEST
        if not (last or status is Status.CONVERGED or self.best is None):
            best = self.weights(self.best[0])
            if not np.array_equal(best, self.theta):
                self.stand(best)
        curve = None if self.coordinates is None else self.curve
        return replace(super().solution(status), curve=curve)


def diverged(run: DescentRun | GapRun, value: float) -> bool:
    """Whether a run has come to a value beyond all bounds, where it ends."""
    if value <= run.ceiling:
        return False
    if np.isfinite(value):
        run.curve.append(float(value) * run.per_value)
    run.status = Status.DIVERGED
    return True


class GradientMethod(Method[Any, Any]):
    """A method for a smooth function, or for a risk with a smooth loss.

    A step is one of its own; on a risk, a pass over the data.
    """

    def accepts(self, problem: Any) -> str | None:
        """None for what is smooth; else why not."""
        if isinstance(problem, RegularisedRisk | DirectRisk) and not problem.loss.smooth:
            return (
                f"{type(self).__name__} needs a smooth loss, and {problem.loss!r} has a kink: use "
                "solver='multipliers'."
            )
        if isinstance(problem, Risk) or callable(problem):
            return None
        return f"{type(self).__name__} needs a function that returns its value and gradient."

    def begin(
        self, problem: Any, watch: Watch, start: Any = None, cache: RiskCache | None = None
    ) -> DescentRun | GapRun:
        """Begin at a point; on a risk, from an earlier answer or from zero."""
        if isinstance(problem, Risk):
            return GapRun(problem, watch, start, cache, self, self.coordinates(problem))
        return DescentRun(problem, watch, start, self)

    def coordinates(self, risk: Risk) -> Coordinates | None:
        """Coordinates in which to descend on a risk; None for its weights."""
        return None

    @abstractmethod
    def loop(self, run: DescentRun | GapRun) -> Generator[None, None, None]:
        """Take a run to a minimum; yields wherever it may be looked at."""


# -- gradient descent ------------------------------------------------------------------------------


@dataclass(frozen=True)
class GradientDescent(GradientMethod):
    """Gradient descent on a smooth function, or on a risk with the l2 penalty or none.

    Parameters
    ----------
    step_size : float, {"constant", "inverse_sqrt", "inverse"} or callable, optional
        Steps of a given size in place of the line search: a number, a schedule
        (:mod:`maxmargin.solvers.steps`), or a function of the number of the step, from 1 on.
    units : {"auto", "data", "standardised"}, default="auto"
        Where to take the steps: on the sum of the losses as a function of w and b, as the lecture
        does, or on their mean as one of the weights of standardised columns; by default the first
        where ``step_size`` is given. A plain function has one kind of units only.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.solvers.driver import Watch
    >>> bowl = lambda w: (float(w @ w), 2 * w)
    >>> GradientDescent().solve(bowl, Watch(tol=1e-6, max_iter=10), start=np.ones(2)).point
    array([0., 0.])
    >>> GradientDescent(step_size=2.0).solve(bowl, Watch(tol=1e-6), start=np.ones(2)).status
    <Status.DIVERGED: 'diverged'>
    """

    step_size: StepSize | None = None
    units: str = "auto"

    def __post_init__(self) -> None:
        if self.step_size is not None:
            check_step_size(self.step_size, SCHEDULES)

    def accepts(self, problem: Any) -> str | None:
        """None for what is smooth; else why not."""
        if isinstance(problem, Risk) and problem.penalty.l1:
            return "GradientDescent takes no l1 penalty, which has a kink at zero: use LBFGS."
        return super().accepts(problem)

    def coordinates(self, risk: Risk) -> Coordinates:
        """Return the coordinates of the units that were asked for."""
        return Coordinates(risk, not in_data_units(self.units, self.step_size))

    def loop(self, run: DescentRun | GapRun) -> Generator[None, None, None]:
        """Against the gradient, until it is small."""
        return self._searched(run) if self.step_size is None else self._given(run)

    def _given(self, run: DescentRun | GapRun) -> Generator[None, None, None]:
        """Steps of given sizes; the last point is the answer."""
        assert self.step_size is not None
        run.keep_last = True
        first = run.safe_step() if isinstance(self.step_size, str) else 0.0
        (point, lowest, gradient), taken, arrived = run.first(), 0, run.arrived
        since, then = 0, 0.0  # the step to the lowest value, and its size
        while not arrived:
            (size,) = step_sizes(self.step_size, first, taken, 1)
            taken += 1
            with np.errstate(over="ignore", invalid="ignore"):  # on the way to divergence
                point = point - size * run.per_step * gradient
                value, gradient = run.at(point)
            if diverged(run, value):
                return
            if taken == 1 or value < lowest:
                lowest, since, then = min(value, lowest), taken, size
            elif taken - since > max(_SWINGS, since) and size >= then:
                run.status = Status.STALLED
                return
            arrived = run.move((point, value, gradient))
            yield

    def _searched(self, run: DescentRun | GapRun) -> Generator[None, None, None]:
        """Barzilai's and Borwein's steps, shortened where the function does not fall enough."""
        point, value, gradient = run.first()
        recent = deque([value], maxlen=_REMEMBERED)
        step = 1.0 / max(1.0, float(np.abs(gradient).max(initial=0.0)))
        arrived = run.arrived
        while not arrived:
            found = _searched(run.at, point, gradient, step, max(recent))
            if found is None:
                run.status = Status.STALLED
                return
            step = _proposed(found[0] - point, found[2] - gradient)
            point, value, gradient = found
            recent.append(value)
            arrived = run.move(found)
            yield


def _searched(
    function: Function, point: np.ndarray, gradient: np.ndarray, step: float, ceiling: float
) -> Place | None:
    """Halve the step until the function falls enough below a ceiling; None where it never does."""
    slope = float(np.vdot(gradient, gradient))
    while True:
        trial = point - step * gradient
        if np.array_equal(trial, point):
            return None
        value, new = function(trial)
        if value <= ceiling - _ENOUGH * step * slope:
            return trial, value, new
        step *= 0.5


def _proposed(move: np.ndarray, turn: np.ndarray) -> float:
    """Return Barzilai's and Borwein's step; where the curvature is not positive, a long one."""
    square, curvature = float(np.vdot(move, move)), float(np.vdot(move, turn))
    if curvature <= 0:
        longer = _GROWTH * (square / max(float(np.vdot(turn, turn)), _RANGE[0] * square)) ** 0.5
        return float(np.clip(longer, *_RANGE))
    return float(np.clip(square / curvature, *_RANGE))
