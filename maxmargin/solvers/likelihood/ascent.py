"""Newton's steps up the likelihood with the average information for a curvature, in a box.

    (A + M + lambda diag(A)) step = -gradient     of -log p

on the parameters that are not held by a bound; lambda falls where the quadratic model is good and
grows where it is not (Levenberg and Marquardt). M is what the average information lacks of the
second derivatives, from the secants of the steps before (symmetric, of rank one); where A + M is
not safely positive, A stands alone. A trial costs a factorisation; gradient and information, the
other two thirds, are computed where it is accepted.

Along a curved ridge of the likelihood, where parameters can stand in for each other, these steps
crawl: what 100 of them have not reached is left to L-BFGS-B.

Reference: Gilmour, Thompson and Cullis, Biometrics 51, 1995.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize

from maxmargin.backends.dense import NotPositiveError
from maxmargin.backends.threads import StoppedError, Workers
from maxmargin.solution import Status
from maxmargin.solvers.driver import Measure, Method, Run, Watch
from maxmargin.solvers.likelihood.problem import Evaluation, MarginalLikelihood

_LONGEST = 3.0  # step, in logarithms
_DAMPED, _LARGEST = 1e-3, 1e12  # lambda: at first, and where nothing is left to try
_WORSE, _BETTER = 8.0, 1.0 / 8.0  # what becomes of it
_ENOUGH = 1e-4  # of what the gradient promises
_LEAST = 1e-3  # curvature of a parameter, over the largest
_TURNED = 1e-8  # cosine from which a secant tells something
_CURVED = 1e-3  # least eigenvalue, the diagonal being one, of second derivatives that are believed
_RESOLVED = 1e-13  # of -log p: what is less is rounding
_PATIENCE = 100  # steps: 1 of 700 random processes took more, and one of 3,000 took 21,000 (20 s)


@dataclass(frozen=True)
class Ascent:
    """Where an ascent has ended: -log p, its projected gradient over the targets, and why.

    ``left`` is how much a Newton step promises to lower -log p; nan where that is not known.
    """

    theta: np.ndarray
    value: float
    violation: float
    n_iter: int
    n_values: int
    status: Status
    left: float = np.nan


@dataclass(frozen=True)
class AverageInformation(Method[MarginalLikelihood, Ascent]):
    """Damped Newton steps with the average information; a step is one that was accepted."""

    def accepts(self, problem: MarginalLikelihood) -> str | None:
        """All likelihoods have derivatives."""
        return None

    def begin(
        self,
        problem: MarginalLikelihood,
        watch: Watch,
        start: np.ndarray | None = None,
        bounds: np.ndarray | None = None,
    ) -> Run:
        """Begin at a point (the problem's own), in a box (p, 2) of logarithms (anywhere)."""
        return AverageInformationRun(problem, watch, *_placed(problem, start, bounds))


@dataclass(frozen=True)
class Optimizer(Method[MarginalLikelihood, Ascent]):
    """Someone else's way to a minimum of -log p, by scikit-learn's convention.

    Parameters
    ----------
    optimize : callable
        Called with a function of theta that returns -log p and, unless ``eval_gradient=False``, its
        gradient; with the start; and with ``bounds`` (p, 2). Returns theta and -log p there: this
        theta is the answer, whether it was asked for or not. After a stop it is the best that was.
    """

    optimize: Callable[..., Any]

    def accepts(self, problem: MarginalLikelihood) -> str | None:
        """All likelihoods."""
        return None

    def begin(
        self,
        problem: MarginalLikelihood,
        watch: Watch,
        start: np.ndarray | None = None,
        bounds: np.ndarray | None = None,
    ) -> Run:
        """Begin at a point."""
        return OptimizerRun(problem, watch, *_placed(problem, start, bounds), self.optimize)


def l_bfgs_b(tol: float) -> Optimizer:
    """SciPy's L-BFGS-B, to a largest entry of the gradient per target."""

    def optimize(function: Callable[..., Any], start: np.ndarray, bounds: np.ndarray) -> Any:
        values = function.problem.n_values  # type: ignore[attr-defined]
        options = {"gtol": 0.5 * tol * values, "ftol": 0.0, "maxls": 50}
        found = minimize(
            function, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options
        )
        return found.x, found.fun

    return Optimizer(optimize)


def _placed(
    problem: MarginalLikelihood, start: np.ndarray | None, bounds: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """Start and box, where none are given."""
    start = problem.theta if start is None else start
    return start, np.tile([-np.inf, np.inf], (len(start), 1)) if bounds is None else bounds


class LikelihoodRun(Run):
    """A run on a likelihood: where it is, and how steep that is."""

    words = "-log likelihood {objective:.6g}, gradient {violation:.2g}"

    def __init__(
        self, problem: MarginalLikelihood, watch: Watch, start: np.ndarray, bounds: np.ndarray
    ) -> None:
        self.problem, self.watch, self.bounds = problem, watch, bounds
        self.low, self.high = bounds[:, 0], bounds[:, 1]
        self.theta = np.clip(start, self.low, self.high)
        self.workers = Workers(watch.workers.count, watch.stopped)
        self.value, self.n_values = np.inf, 0
        self.gradient = np.full(len(start), np.inf)

    @property
    def variables(self) -> np.ndarray:
        """Logarithms of the parameters."""
        return self.theta

    @property
    def violation(self) -> float:
        """Largest entry of the gradient over the targets, that no bound holds."""
        if not np.isfinite(self.value):
            return np.inf
        away = np.where(self._free(), self.gradient, 0.0)
        return float(np.abs(away).max(initial=0.0)) / self.problem.n_values

    def _free(self) -> np.ndarray:
        """Parameters that a step may change: those at no bound, or drawn away from it."""
        down, up = self.gradient > 0, self.gradient < 0
        return ~((self.theta <= self.low) & down | (self.theta >= self.high) & up)

    def measure(self) -> Measure:
        """Gradient and value."""
        return Measure(self.violation, self.value)

    def solution(self, status: Status) -> Ascent:
        """Return the point; that is the start where no step is allowed."""
        if status is Status.MAX_ITER and not self.n_values:
            with suppress(StoppedError):
                self._move_to(self.theta)
        left = self._left() if np.isfinite(self.value) else np.nan
        counts = self.n_iter, self.n_values
        return Ascent(self.theta, self.value, self.violation, *counts, status, left)

    def _left(self) -> float:
        """Return how much a Newton step promises to lower -log p, where one is known."""
        return np.nan

    def evaluated(self, theta: np.ndarray) -> Evaluation | None:
        """Evaluate the likelihood; None where it is not defined."""
        self.n_values += 1
        try:
            return self.problem.at(theta, self.workers)
        except NotPositiveError:
            return None

    def _move(self, evaluation: Evaluation) -> None:
        """Be at a point."""
        self.theta, self.value = evaluation.theta, evaluation.value
        self.gradient = evaluation.gradient

    def _move_to(self, theta: np.ndarray) -> None:
        """Be at a point, even where the likelihood is not defined."""
        found = self.evaluated(theta)
        if found is None:
            self.theta, self.value = theta, np.inf
        else:
            self._move(found)


class AverageInformationRun(LikelihoodRun):
    """Newton's steps at work."""

    def __init__(
        self, problem: MarginalLikelihood, watch: Watch, start: np.ndarray, bounds: np.ndarray
    ) -> None:
        super().__init__(problem, watch, start, bounds)
        self.information: Any = np.eye(len(start))  # None where it is not known
        self.rest = np.zeros_like(self.information)  # of the second derivatives, by secants

    def _move(self, evaluation: Evaluation) -> None:
        """Be at a point, and learn from the way there."""
        gradient, information = evaluation.gradient, evaluation.information
        if np.isfinite(self.value) and self.information is not None:
            step = evaluation.theta - self.theta
            missed = gradient - self.gradient - (information + self.rest) @ step
            turn = float(missed @ step)
            if abs(turn) > _TURNED * np.linalg.norm(missed) * np.linalg.norm(step):
                self.rest = self.rest + np.outer(missed, missed) / turn
        super()._move(evaluation)
        self.information = information

    def steps(self) -> Generator[None, None, None]:
        """Step by step, until the gradient is small or no step is an improvement."""
        try:
            first = self.evaluated(self.theta)
            if first is None:
                self.status = Status.STALLED
                return
            self._move(first)
            yield
            damping = _DAMPED
            while self.violation > self.watch.tol:
                if self.n_iter >= _PATIENCE:
                    yield from self._hand_over()
                    return
                trial, damping, good = self._next(damping)
                if trial is None:
                    self.status = Status.STALLED
                    return
                self._move(trial)
                damping *= _BETTER if good > 0.75 else (_WORSE if good < 0.25 else 1.0)
                self.n_iter += 1
                yield
        except StoppedError:
            yield  # to the driver, which knows why

    def _hand_over(self) -> Generator[None, None, None]:
        """Let L-BFGS-B go on from here."""
        optimize = l_bfgs_b(self.watch.tol).optimize
        run = OptimizerRun(self.problem, self.watch, self.theta, self.bounds, optimize)
        run.n_iter, run.n_values = self.n_iter, self.n_values
        for _ in run.steps():  # it yields where it was stopped
            self._take_over(run)
            yield
        self._take_over(run)
        self._move_to(self.theta)

    def _take_over(self, run: OptimizerRun) -> None:
        """Be where another run is."""
        for name in ("theta", "value", "gradient", "n_iter", "n_values", "status"):
            setattr(self, name, getattr(run, name))
        self.information = None

    def _next(self, damping: float) -> tuple[Evaluation | None, float, float]:
        """Find a point that is better: (evaluation or None, damping, gain over the promised)."""
        while damping < _LARGEST:
            step = self._step(damping)
            theta = np.clip(self.theta + step, self.low, self.high)
            step = theta - self.theta
            slope = float(self.gradient @ step)
            promised = -slope - 0.5 * float(step @ self.information @ step)
            if abs(slope) <= _RESOLVED * abs(self.value):
                break
            trial = self.evaluated(theta) if slope < 0 else None
            gain = -np.inf if trial is None else self.value - trial.value
            if gain > -_ENOUGH * slope:
                return trial, damping, gain / promised if promised > 0 else 0.5
            damping = max(damping * _WORSE, _DAMPED)
        return None, damping, 0.0

    def _left(self) -> float:
        if self.information is None:
            return np.nan
        step = np.clip(self.theta + self._step(_DAMPED), self.low, self.high) - self.theta
        return -0.5 * float(self.gradient @ step)

    def _step(self, damping: float) -> np.ndarray:
        free = self._free()
        A = self.information[np.ix_(free, free)]
        size = np.maximum(A.diagonal(), _LEAST * A.diagonal().max(initial=0.0))
        root = np.sqrt(np.maximum(size, np.finfo(np.float64).tiny ** 0.5))
        scale = np.outer(root, root)  # to a diagonal of one: parameters differ by orders
        eigenvalues, vectors = np.linalg.eigh((A + self.rest[np.ix_(free, free)]) / scale)
        if len(A) and eigenvalues[0] < _CURVED:
            eigenvalues, vectors = np.linalg.eigh(A / scale)
        along = vectors.T @ (self.gradient[free] / root)
        step = np.zeros(len(free))
        step[free] = -(vectors @ (along / (np.maximum(eigenvalues, 0.0) + damping))) / root
        # each parameter by itself: one that hardly matters may want to go far
        return np.clip(step, -_LONGEST, _LONGEST)


class OptimizerRun(LikelihoodRun):
    """Someone else's loop, which is looked at wherever it evaluates the likelihood."""

    def __init__(
        self,
        problem: MarginalLikelihood,
        watch: Watch,
        start: np.ndarray,
        bounds: np.ndarray,
        optimize: Callable[..., Any],
    ) -> None:
        super().__init__(problem, watch, start, bounds)
        self.optimize = optimize

    def __call__(self, theta: np.ndarray, eval_gradient: bool = True) -> Any:
        """-log p and its gradient, for the optimizer."""
        if self.watch.look(self) is not None:
            raise StoppedError
        theta = np.array(theta, dtype=np.float64)
        found = self.evaluated(theta)
        if found is None:
            return (np.inf, np.zeros_like(theta)) if eval_gradient else np.inf
        if found.value < self.value:
            self._move(found)
            self.n_iter += 1
        return (found.value, found.gradient) if eval_gradient else found.value

    def steps(self) -> Generator[None, None, None]:
        """All of it."""
        try:
            theta = self._returned(self.optimize(self, self.theta.copy(), bounds=self.bounds))
            if not (np.isfinite(self.value) and np.array_equal(theta, self.theta)):
                self._move_to(theta)
        except StoppedError:
            yield  # to the driver, which knows why
        if self.violation > self.watch.tol:
            self.status = Status.STALLED

    def _returned(self, answer: Any) -> np.ndarray:
        """Return the theta of an optimizer's answer."""
        try:
            theta, _ = answer
            theta = np.array(theta, dtype=np.float64)
        except (TypeError, ValueError):
            theta = np.empty(0)
        if theta.shape != self.theta.shape or not np.isfinite(theta).all():
            raise ValueError(
                f"The optimizer returned {answer!r}, and has to return a pair: theta, "
                f"{len(self.theta)} finite numbers, and the value of obj_func there."
            )
        return theta
