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

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from maxmargin.progress import Monitor, Progress
from maxmargin.solution import Status

_REMEMBERED, _ENOUGH = 10, 1e-4  # values, and the share of the slope's promise to be kept
_GROWTH, _RANGE = 4.0, (1e-10, 1e10)
DIVERGED = 100.0  # times the first value

Function = Callable[[np.ndarray], tuple[float, np.ndarray]]


def report(
    monitor: Monitor, steps: int, violation: float, tol: float, loss: float, name: str = "gradient"
) -> None:
    """Tell the listeners of a fit where it is, if a report is due."""
    words = f"{name} {{violation:.2g}}"
    if not math.isnan(loss):
        words = "loss {objective:.5g}, " + words
    monitor.report(lambda: Progress(monitor.solved, "", steps, violation, tol, loss, words=words))


def ended(monitor: Monitor, largest: float, tol: float, steps: int, max_iter: int) -> Status | None:
    """Why a descent ends here, or None to go on."""
    if largest <= tol:
        return Status.CONVERGED
    return monitor.stopped() or (Status.MAX_ITER if steps >= max_iter else None)


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


@dataclass(frozen=True)
class GradientDescent:
    """Minimise a smooth function by gradient descent.

    Parameters
    ----------
    tol : float
        Largest entry of the gradient at the end.
    max_iter : int
        Steps allowed.
    step_size : float, optional
        A step of fixed size in place of the line search.
    monitor : Monitor
        Is told of the progress, and asked when to stop.

    Examples
    --------
    >>> import numpy as np
    >>> bowl = lambda w: (float(w @ w), 2 * w)
    >>> GradientDescent(tol=1e-6, max_iter=10).minimise(bowl, np.ones(2)).point
    array([0., 0.])
    """

    tol: float
    max_iter: int
    step_size: float | None = None
    monitor: Monitor = field(default_factory=Monitor)

    def minimise(self, function: Function, start: np.ndarray) -> Descent:
        """Descend from a point; returns the best one on the way."""
        point, (value, gradient) = start, function(start)
        best = Descent(point, value, float(np.abs(gradient).max()), 0, Status.MAX_ITER, [value])
        curve, recent = best.curve, deque([value], maxlen=_REMEMBERED)
        step = self.step_size or 1.0 / max(1.0, float(np.abs(gradient).max()))
        while True:
            largest, n_iter = float(np.abs(gradient).max()), len(curve) - 1
            status = ended(self.monitor, largest, self.tol, n_iter, self.max_iter)
            if value <= best.value or status is Status.CONVERGED:
                best = replace(best, point=point, value=value, gradient_norm=largest)
            report(self.monitor, n_iter, largest, self.tol, value)
            if status is not None:
                return replace(best, n_iter=n_iter, status=status)
            if self.step_size is None:
                found = _searched(function, point, gradient, step, max(recent))
            else:
                found = _stepped(function, point, gradient, step, curve[0])
            if found is None:
                return replace(best, n_iter=n_iter, status=Status.STALLED)
            if self.step_size is None:
                step = _proposed(found[0] - point, found[2] - gradient)
            point, value, gradient = found
            recent.append(value)
            curve.append(value)


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
