"""Gradient descent and L-BFGS: methods that need values and gradients only.

Both take a smooth function, and end when no entry of its gradient is larger than ``tol``: whoever
states the function chooses units in which that number means something. Both take a regularised risk
whose loss is smooth, too, and end when the relative duality gap is ``tol``.

Gradient descent is ``w <- w - t g`` with ``g`` the gradient at w. The step ``t`` is

    t = (s . s) / (s . z)      s, z: the last changes of w and of the gradient

of Barzilai and Borwein, halved until f falls enough below the largest of its last ten values. On a
quadratic it is a Rayleigh quotient of the inverse Hessian, so no eigenvalue has to be known. A step
size that the caller gives is kept fixed instead, as in the lecture.

L-BFGS is SciPy's. With an l1 penalty the positive and the negative part of every weight are
variables of their own, neither below zero.

References: seed 004; Barzilai and Borwein, IMA J. Numerical Analysis 8, 1988; Raydan, SIAM J.
Optimization 7, 1997 (the line search); Byrd, Lu, Nocedal and Zhu, SIAM J. Scientific Computing 16,
1995 (L-BFGS-B).
"""

from __future__ import annotations

from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize

from maxmargin.risk import DirectRisk, LinearSolution, RegularisedRisk, Risk
from maxmargin.solution import Status
from maxmargin.solvers.driver import Measure, Method, Run, Watch
from maxmargin.solvers.risk.run import RiskCache, RiskRun

_REMEMBERED, _ENOUGH = 10, 1e-4  # values, and the share of the slope's promise to be kept
_GROWTH, _RANGE = 4.0, (1e-10, 1e10)
DIVERGED = 100.0  # times the first value
_SMALL, _LEAST = 1e-3, 1e-14  # gradient at which the gap is looked at first, and the smallest
_SMALLER = 0.1, 0.5  # from one look at the gap to the next, what a gradient falls by
_PAIRS = 15  # of steps and changes of the gradient that L-BFGS remembers

Function = Callable[[np.ndarray], tuple[float, np.ndarray]]
Place = tuple[np.ndarray, float, np.ndarray]  # a point, with value and gradient there


class _StoppedError(Exception):
    pass


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

    words = "loss {objective:.5g}, gradient {violation:.2g}"
    l1: np.ndarray | None = None

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
        return self.arrived

    @property
    def smallest(self) -> float:
        """Largest entry of a gradient at which there is no more to do."""
        return self.watch.tol

    def lost(self) -> bool:
        """Whether a loop that ends before it has arrived is the last one."""
        return True

    @property
    def largest(self) -> float:
        """Largest entry of the gradient."""
        return float(np.abs(self.place[2]).max(initial=0.0))

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
        """Return the lowest point on the way, unless the last one has converged."""
        if status is not Status.CONVERGED:
            self.place = self.best
        point, value, _ = self.place
        return Descent(point, float(value), self.largest, self.n_iter, status, self.curve)


class GapRun(RiskRun[Risk]):
    """A run on a risk over the sum of its costs, until the duality gap is small.

    The gap falls with the square of the gradient, and is looked at when that is small. A step is a
    pass over the data.
    """

    smallest = _LEAST

    def __init__(
        self,
        risk: Risk,
        watch: Watch,
        start: LinearSolution | None,
        cache: RiskCache | None,
        method: GradientMethod,
    ) -> None:
        super().__init__(risk, watch, start, cache)
        self.method, self.small = method, _SMALL  # gradient at which to look at the gap
        self.best: Place | None = None
        l1 = np.broadcast_to(risk.penalty.l1 * risk.penalised / risk.total_cost, risk.shape)
        self.l1 = l1.ravel() if l1.any() else None

    @property
    def name(self) -> str:
        """Name of the method."""
        return type(self.method).__name__

    def steps(self) -> Generator[None, None, None]:
        """The loop of the method, if there is anything to do."""
        if not (self.theta.any() and self.certificate.converged):
            yield from self.method.loop(self)

    def at(self, point: np.ndarray) -> tuple[float, np.ndarray]:
        """Value and gradient at a point."""
        self.n_iter += 1
        value, gradient = self.value_and_gradient(point)
        return value / self.risk.total_cost, gradient / self.risk.total_cost

    def first(self) -> Place:
        """Point, value and gradient at the start."""
        return self.theta, *self.at(self.theta)

    def move(self, place: Place, steepness: float | None = None) -> bool:
        """Be at a place after one more step; returns whether the gap is small, if likely."""
        self.stand(place[0])
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
        """Return the lowest point on the way, unless the last one has converged."""
        best = None if self.best is None else self.best[0]
        if status is not Status.CONVERGED and best is not None and best is not self.theta:
            self.stand(best)
        return super().solution(status)


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
            return GapRun(problem, watch, start, cache, self)
        return DescentRun(problem, watch, start, self)

    @abstractmethod
    def loop(self, run: DescentRun | GapRun) -> Generator[None, None, None]:
        """Take a run to a minimum; yields wherever it may be looked at."""


# -- gradient descent ------------------------------------------------------------------------------


@dataclass(frozen=True)
class GradientDescent(GradientMethod):
    """Gradient descent on a smooth function, or on a risk with the l2 penalty or none.

    Parameters
    ----------
    step_size : float, optional
        A step of fixed size in place of the line search; that of a risk over the sum of its costs.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.solvers.driver import Watch
    >>> bowl = lambda w: (float(w @ w), 2 * w)
    >>> GradientDescent().solve(bowl, Watch(tol=1e-6, max_iter=10), start=np.ones(2)).point
    array([0., 0.])
    """

    step_size: float | None = None

    def accepts(self, problem: Any) -> str | None:
        """None for what is smooth; else why not."""
        if isinstance(problem, Risk) and problem.penalty.l1:
            return "GradientDescent takes no l1 penalty, which has a kink at zero: use LBFGS."
        return super().accepts(problem)

    def loop(self, run: DescentRun | GapRun) -> Generator[None, None, None]:
        """Against the gradient, until it is small."""
        point, value, gradient = run.first()
        first, recent = value, deque([value], maxlen=_REMEMBERED)
        step = self.step_size or 1.0 / max(1.0, float(np.abs(gradient).max(initial=0.0)))
        arrived = run.arrived
        while not arrived:
            if self.step_size is None:
                found = _searched(run.at, point, gradient, step, max(recent))
            else:
                found = _stepped(run.at, point, gradient, step, first)
            if found is None:
                run.status = Status.STALLED
                return
            if self.step_size is None:
                step = _proposed(found[0] - point, found[2] - gradient)
            point, value, gradient = found
            recent.append(value)
            arrived = run.move(found)
            yield


def _stepped(
    function: Function, point: np.ndarray, gradient: np.ndarray, step: float, first: float
) -> Place | None:
    """Take a step of a given size; None where the function has grown far beyond its first value."""
    point = point - step * gradient
    value, gradient = function(point)
    return (point, value, gradient) if value <= DIVERGED * max(first, 1.0) else None


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


# -- L-BFGS ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LBFGS(GradientMethod):
    """L-BFGS on a smooth function, or on a risk with a smooth loss and any penalty."""

    def loop(self, run: DescentRun | GapRun) -> Generator[None, None, None]:
        """SciPy's loop, which is looked at after every step of it; again, where it is lost."""
        watch, shape = run.watch, run.variables.shape
        parts = None if run.l1 is None else _Parts(run.l1)
        seen: list[tuple[Place, float]] = []  # the last evaluation, with its steepness

        def weights(x: np.ndarray) -> np.ndarray:
            return (x.copy() if parts is None else parts.joined(x)).reshape(shape)

        def objective(x: np.ndarray) -> tuple[float, np.ndarray]:
            if watch.stopped() is not None or not watch.left(run.n_iter):
                raise _StoppedError
            point = weights(x)
            value, gradient = run.at(point)
            place, way = (point, value, gradient), gradient.ravel()
            slope = way
            if parts is not None:
                value, slope = parts.objective(x, value, way)
                way = x - np.clip(x - slope, *parts.bounds.T)
            seen[:] = [(place, float(np.abs(way).max(initial=0.0)))]
            return value, slope

        def after_step(intermediate_result: Any) -> None:
            place, steepness = seen[0]
            if run.move(place, steepness):
                run.status = Status.CONVERGED
            if watch.look(run) is not None:
                raise _StoppedError

        options: dict[str, Any] = {
            "maxcor": _PAIRS,
            "maxls": 50,
            "maxiter": 1 << 30,
            "maxfun": 1 << 30,
        }
        options |= {"gtol": run.smallest, "ftol": 0.0}
        while True:
            start = run.variables.ravel()
            try:
                minimize(
                    objective,
                    start if parts is None else parts.split(start),
                    jac=True,
                    method="L-BFGS-B",
                    bounds=None if parts is None else parts.bounds,
                    callback=after_step,
                    options=options,
                )
                lost = run.lost()
            except _StoppedError:  # converged, or the driver knows why
                lost = False
            if run.arrived:
                return
            yield
            if lost:
                run.status = Status.STALLED
                return


class _Parts:
    """Weights as differences of two variables, neither below zero, where an l1 penalty holds."""

    def __init__(self, l1: np.ndarray) -> None:
        self.l1, self.held = l1, l1 > 0
        size, held = len(l1), self.held
        low = np.concatenate([np.where(held, 0.0, -np.inf), np.zeros(size)])
        high = np.concatenate([np.full(size, np.inf), np.where(held, np.inf, 0.0)])
        self.bounds = np.array([low, high]).T

    def split(self, theta: np.ndarray) -> np.ndarray:
        """Variables of some weights."""
        positive = np.where(self.held, np.maximum(theta, 0.0), theta)
        return np.concatenate([positive, np.maximum(-theta, 0.0) * self.held])

    def joined(self, x: np.ndarray) -> np.ndarray:
        """Weights of the variables."""
        return x[: len(self.l1)] - x[len(self.l1) :]

    def objective(
        self, x: np.ndarray, value: float, gradient: np.ndarray
    ) -> tuple[float, np.ndarray]:
        """Value and gradient by the variables, from those by the weights without l1's slope."""
        plus, minus = x[: len(self.l1)], x[len(self.l1) :]
        value += float(self.l1 @ (plus + minus - np.abs(plus - minus)))
        return value, np.concatenate([self.l1 + gradient, self.l1 - gradient])
