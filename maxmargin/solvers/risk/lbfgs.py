"""L-BFGS, on a smooth function or on a risk with a smooth loss.

The loop is SciPy's. With an l1 penalty the positive and the negative part of every weight are
variables of their own, neither below zero.

Reference: Byrd, Lu, Nocedal and Zhu, SIAM J. Scientific Computing 16, 1995 (L-BFGS-B).
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize

from maxmargin.solution import Status
from maxmargin.solvers.risk.descent import DescentRun, GapRun, GradientMethod, Place

_PAIRS = 15  # of steps and changes of the gradient that are remembered


class _StoppedError(Exception):
    pass


@dataclass(frozen=True)
class LBFGS(GradientMethod):
    """L-BFGS on a smooth function, or on a risk with a smooth loss and any penalty."""

    by_passes = True

    def loop(self, run: DescentRun | GapRun) -> Generator[None, None, None]:
        """SciPy's loop, which is looked at after every step of it; again, where it is lost."""
        watch, shape = run.watch, run.point.shape
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
            start = run.point.ravel()
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
