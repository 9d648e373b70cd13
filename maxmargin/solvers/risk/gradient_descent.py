"""Gradient descent: against the gradient, in steps that the last one has taught.

To minimise a smooth function f, ``w <- w - t g`` with ``g`` the gradient at w. The step ``t`` is

    t = (s . s) / (s . z)      s, z: the last changes of w and of the gradient

of Barzilai and Borwein, halved until f falls enough below the largest of its last ten values. On a
quadratic it is a Rayleigh quotient of the inverse Hessian, so no eigenvalue has to be known. A step
size that the caller gives is kept fixed instead, as in the lecture. The descent ends when no entry
of the gradient is larger than ``tol``: whoever states the function chooses units in which that
number means something.

References: seed 004; Barzilai and Borwein, IMA J. Numerical Analysis 8, 1988; Raydan, SIAM J.
Optimization 7, 1997 (the line search).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from maxmargin.solution import Status
from maxmargin.solvers.driver import Measure, Method, Run, Watch

_REMEMBERED, _ENOUGH = 10, 1e-4  # values, and the share of the slope's promise to be kept
_GROWTH, _RANGE = 4.0, (1e-10, 1e10)
DIVERGED = 100.0  # times the first value

Function = Callable[[np.ndarray], tuple[float, np.ndarray]]


def advice(status: Status, machine: Any, tol: float) -> str:
    """What it means that a machine's fit has ended so, and what to do about it."""
    return _ADVICE[status].format(**{**machine.get_params(deep=False), "tol": tol})


_ADVICE = {
    Status.MAX_ITER: (
        "The descent has not converged in max_iter={max_iter} steps (for solver='sgd', passes). "
        "Raise max_iter, or raise tol={tol:g}."
    ),
    Status.TIME_LIMIT: "The fit has reached time_limit={time_limit} s. Raise it, or raise tol.",
    Status.INTERRUPTED: (
        "The fit was stopped early, by Ctrl-C or by a callback. The model is what was found until "
        "then."
    ),
    Status.STALLED: (
        "The descent cannot go on (step_size={step_size}): the loss grows, or its rounding hides "
        "what is left to win. Leave step_size=None for steps that fit the data; if that does not "
        "help, raise tol={tol:g}."
    ),
}


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

    Attributes
    ----------
    point, value, gradient
        Where it is, and the function there.
    curve : list of float
        The value at the start and after each step.
    """

    words = "loss {objective:.5g}, gradient {violation:.2g}"

    def __init__(self, function: Function, watch: Watch, start: np.ndarray) -> None:
        self.function, self.watch = function, watch
        self.curve: list[float] = []
        self.stand(start, *function(start))

    def stand(self, point: np.ndarray, value: float, gradient: np.ndarray) -> None:
        """Be at a point, after one more step."""
        self.point, self.value, self.gradient = point, float(value), gradient
        self.largest = float(np.abs(gradient).max(initial=0.0))
        self.curve.append(self.value)

    @property
    def variables(self) -> np.ndarray:
        """The point."""
        return self.point

    def measure(self) -> Measure:
        """Largest entry of the gradient, and the value."""
        return Measure(self.largest, self.value)

    def solution(self, status: Status) -> Descent:
        """Return the point."""
        return Descent(self.point, self.value, self.largest, self.n_iter, status, self.curve)


@dataclass(frozen=True)
class GradientDescent(Method[Function, Descent]):
    """Gradient descent on a smooth function; a step is one of its own.

    Parameters
    ----------
    step_size : float, optional
        A step of fixed size in place of the line search.

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
        """None for a function that returns its value and gradient; else why not."""
        if callable(problem):
            return None
        return "Gradient descent needs a function that returns its value and gradient at a point."

    def begin(self, problem: Function, watch: Watch, start: np.ndarray | None = None) -> Run:
        """Begin at a point."""
        if start is None:
            raise ValueError("A descent needs a point to start from.")
        return GradientDescentRun(problem, watch, start, self.step_size)


class GradientDescentRun(DescentRun):
    """Gradient descent at work."""

    def __init__(
        self, function: Function, watch: Watch, start: np.ndarray, step_size: float | None
    ) -> None:
        super().__init__(function, watch, start)
        self.step_size = step_size
        self.best = self.point, self.value, self.largest

    def steps(self) -> Generator[None, None, None]:
        """Against the gradient, until it is small."""
        recent = deque([self.value], maxlen=_REMEMBERED)
        step = self.step_size or 1.0 / max(1.0, self.largest)
        while self.largest > self.watch.tol:
            if self.step_size is None:
                found = _searched(self.function, self.point, self.gradient, step, max(recent))
            else:
                found = _stepped(self.function, self.point, self.gradient, step, self.curve[0])
            if found is None:
                self.status = Status.STALLED
                return
            if self.step_size is None:
                step = _proposed(found[0] - self.point, found[2] - self.gradient)
            self.stand(*found)
            self.n_iter += 1
            recent.append(self.value)
            if self.value <= self.best[1]:
                self.best = self.point, self.value, self.largest
            yield

    def solution(self, status: Status) -> Descent:
        """Return the lowest point on the way, unless the last one has converged."""
        found = super().solution(status)
        if status is Status.CONVERGED:
            return found
        point, value, largest = self.best
        return replace(found, point=point, value=value, gradient_norm=largest)


def _stepped(
    function: Function, point: np.ndarray, gradient: np.ndarray, step: float, first: float
) -> tuple[np.ndarray, float, np.ndarray] | None:
    """Take a step of a given size; None where the function has grown far beyond its first value."""
    point = point - step * gradient
    value, gradient = function(point)
    return (point, value, gradient) if value <= DIVERGED * max(first, 1.0) else None


def _searched(
    function: Function, point: np.ndarray, gradient: np.ndarray, step: float, ceiling: float
) -> tuple[np.ndarray, float, np.ndarray] | None:
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
