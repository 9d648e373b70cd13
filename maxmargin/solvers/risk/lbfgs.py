"""L-BFGS for smooth losses, by SciPy: a gradient for each pass, no second derivatives.

With an l1 penalty the positive and the negative part of every weight are variables of their own,
neither below zero.

Reference: Byrd, Lu, Nocedal and Zhu, SIAM J. Scientific Computing 16, 1995 (L-BFGS-B).
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize

from maxmargin.solution import Status
from maxmargin.solvers.driver import Run, Watch
from maxmargin.solvers.risk.cache import RiskCache
from maxmargin.solvers.risk.gradient_descent import DescentRun
from maxmargin.solvers.risk.risk_run import RiskMethod, RiskRun, SoftmaxRun, WeightsRun
from maxmargin.solvers.risk.softmax import SoftmaxRisk

_SMALL, _LEAST = 1e-3, 1e-14  # gradient at which the gap is looked at first, and the smallest
_SMALLER = 0.1, 0.5  # from one look at the gap to the next, what a gradient falls by
_PAIRS = 15  # of steps and changes of the gradient to remember


class _StoppedError(Exception):
    pass


@dataclass(frozen=True)
class LBFGS(RiskMethod):
    """L-BFGS, for a loss with a continuous slope and any penalty, or for a smooth function.

    A step is a pass over the data; for a smooth function, one of L-BFGS.
    """

    def accepts(self, problem: Any) -> str | None:
        """None for what is smooth but for an l1 penalty; else why not."""
        if callable(problem) or isinstance(problem, SoftmaxRisk) or problem.loss.smooth:
            return None
        return (
            f"L-BFGS needs a smooth loss, and {problem.loss!r} has a kink: use "
            "solver='multipliers'."
        )

    def begin(
        self, problem: Any, watch: Watch, start: Any = None, cache: RiskCache | None = None
    ) -> Run:
        """Begin from an earlier answer (a point, for a smooth function), or from zero."""
        if callable(problem):
            return SmoothLBFGSRun(problem, watch, start)
        if isinstance(problem, SoftmaxRisk):
            return SoftmaxLBFGSRun(problem, watch, start)
        return LBFGSRun(problem, watch, start, cache)


class _CertifiedLBFGS(WeightsRun):
    """L-BFGS until the duality gap is small."""

    risk: Any

    @property
    def name(self) -> str:
        """Name of the method."""
        return "LBFGS"

    def steps(self) -> Generator[None, None, None]:
        """SciPy's loop, which is looked at after every step of it."""
        if self.theta.any() and self.certificate.converged:
            return
        shape, l1 = self.theta.shape, self.risk.penalty.l1 * self.risk.penalised
        l1 = np.broadcast_to(l1, shape).ravel()
        parts = _Parts(l1) if l1.any() else None
        scale, steepness, small = self.risk.total_cost, np.inf, _SMALL
        watch, stopped = self.watch, self.watch.stopped

        def weights(x: np.ndarray) -> np.ndarray:
            return (x if parts is None else parts.joined(x)).reshape(shape)

        def objective(x: np.ndarray) -> tuple[float, np.ndarray]:
            nonlocal steepness
            if stopped() is not None or not watch.left(self.n_iter):
                raise _StoppedError
            self.n_iter += 1
            value, gradient = self.value_and_gradient(weights(x.copy()))
            way = gradient = gradient.ravel() / scale
            value /= scale
            if parts is not None:
                value, gradient = parts.objective(x, value, gradient, scale)
                way = x - np.clip(x - gradient, *parts.bounds.T)
            steepness = np.abs(way).max()
            return value, gradient

        def after_step(x: np.ndarray) -> None:
            nonlocal small
            self.stand(weights(x.copy()))
            if watch.look(self) is not None:
                raise _StoppedError
            if steepness <= small:  # the gap falls with the square of the gradient
                if self.certificate.converged:
                    raise _StoppedError
                wanted = (watch.tol / self.certificate.relative_gap) ** 0.5
                small = steepness * np.clip(wanted, *_SMALLER)

        options = {"maxcor": _PAIRS, "maxiter": 1 << 30, "gtol": _LEAST, "ftol": 0.0, "maxls": 50}
        options["maxfun"] = 1 << 30
        while small >= _LEAST:  # again, where it has lost its way
            start = self.theta.ravel()
            try:
                found = minimize(
                    objective,
                    start if parts is None else parts.split(start),
                    jac=True,
                    method="L-BFGS-B",
                    bounds=None if parts is None else parts.bounds,
                    callback=after_step,
                    options=options,
                )
                self.stand(weights(found.x))
                small *= _SMALLER[0]
            except _StoppedError:
                pass  # converged, or the driver knows why
            if self.certificate.converged:
                return
            yield
        self.status = Status.STALLED


class LBFGSRun(_CertifiedLBFGS, RiskRun):
    """L-BFGS at work on a regularised risk."""


class SoftmaxLBFGSRun(_CertifiedLBFGS, SoftmaxRun):
    """L-BFGS at work on a softmax risk."""


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
        self, x: np.ndarray, value: float, gradient: np.ndarray, scale: float
    ) -> tuple[float, np.ndarray]:
        """Value and gradient by the variables, from those by the weights without l1's slope.

        Both are over a scale, which the penalty is brought to.
        """
        plus, minus, l1 = x[: len(self.l1)], x[len(self.l1) :], self.l1 / scale
        value += float(l1 @ (plus + minus - np.abs(plus - minus)))
        return value, np.concatenate([l1 + gradient, l1 - gradient])


class SmoothLBFGSRun(DescentRun):
    """L-BFGS at work on a smooth function, until no entry of the gradient is large."""

    @property
    def name(self) -> str:
        """Name of the method."""
        return "LBFGS"

    def steps(self) -> Generator[None, None, None]:
        """SciPy's loop, which is looked at after every step of it."""
        tol, shape = self.watch.tol, self.point.shape
        evaluated: list[tuple[float, np.ndarray]] = []

        def objective(x: np.ndarray) -> tuple[float, np.ndarray]:
            value, gradient = self.function(x.reshape(shape))
            evaluated[:] = [(value, gradient)]
            return value, gradient.ravel()

        def after_step(intermediate_result: Any) -> None:
            self.n_iter += 1
            self.stand(intermediate_result.x.reshape(shape).copy(), *evaluated[-1])
            if self.largest <= tol:
                self.status = Status.CONVERGED
            if self.watch.look(self) is not None:
                raise StopIteration

        minimize(
            objective,
            self.point.ravel(),
            jac=True,
            method="L-BFGS-B",
            callback=after_step,
            options={"gtol": tol, "ftol": 0.0, "maxiter": 1 << 30, "maxfun": 1 << 30},
        )
        if self.largest <= tol:
            return
        yield
        self.status = Status.STALLED
