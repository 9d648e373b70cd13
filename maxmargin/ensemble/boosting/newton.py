"""Boosting by Newton steps on a smooth loss: LogitBoost and GentleBoost.

With weights s of the rows that sum to one, a loss V of the margin ``u_i = y_i F(x_i)`` and F = 0 at
first, each round fits a regression to the Newton steps of the rows,

    z_i = -y_i V'(u_i) / V''(u_i),   w_i = s_i V''(u_i)
    f   = argmin  sum_i w_i (z_i - f(x_i))^2   among what the regressor can be
    F  <- F + learning_rate f

where the curvature is no less than ``|V'(u_i)| / largest_step``: a step of a single row is at most
that long, and ``w_i z_i`` is its part of the gradient all the same. (The paper cuts z alone, which
takes rows far on their wrong side out of the gradient: a regression need then not go downhill.)

For the logistic loss this is LogitBoost (F is twice that of the paper, so that ``p = 1 / (1 +
exp(-F))``), for the exponential loss, where ``z_i = y_i``, GentleBoost. A step that does not lower
the mean loss is halved until it does. For K classes there are functions ``F_k`` of sum zero,
``p_k`` proportional to ``exp(F_k)``, and a regression for each of them in every round.

How heavy a row is in the end is ``|V'(u_i)|``: for the exponential loss AdaBoost's distribution,
which grows without limit as u falls; for the logistic loss it is at most one, so that a row with a
wrong label pulls no harder than any other that is misclassified.

Reference: Friedman, Hastie and Tibshirani, Additive logistic regression: a statistical view of
boosting, Annals of Statistics 28, 2000.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

import numpy as np
from scipy.special import logsumexp, softmax

from maxmargin.backends.threads import StoppedError
from maxmargin.ensemble.boosting.weak import giving_up
from maxmargin.losses import MarginLoss
from maxmargin.solution import Status
from maxmargin.solvers.driver import Measure, Method, Run, Watch

_FLAT = 1e-12  # curvature, or mean loss, below which there is nothing left to win
_HALVINGS = 10


class Regressions(Protocol):
    """Finds regressions for targets and weights of the rows that it was made with."""

    def learn(
        self, z: np.ndarray, w: np.ndarray, seed: int, stopped: Callable[[], Any]
    ) -> tuple[Any, np.ndarray]:
        """Return a regression and its values; ``stopped`` is as in ``WeakLearner.learn``."""
        ...


@dataclass(frozen=True)
class Targets:
    """Rows to be boosted on: regressions, classes, weights of sum one, seeds of the rounds."""

    learner: Regressions
    index: np.ndarray
    n_classes: int
    weight: np.ndarray
    seeds: np.ndarray

    def rows(self, method: NewtonBoosting, watch: Watch) -> RowSteps:
        """Return what the rounds know of the rows."""
        return RowSteps(self, method, watch)


@dataclass
class Steps:
    """What the rounds have come to: in each a list of regressions, and how far they were taken."""

    regressions: list[list[Any]] = field(default_factory=list)
    sizes: list[float] = field(default_factory=list)
    losses: list[float] = field(default_factory=list)
    train_errors: list[float] = field(default_factory=list)
    pull: np.ndarray = field(default_factory=lambda: np.zeros(0))
    status: Status = Status.COMPLETED


@dataclass(frozen=True)
class NewtonBoosting(Method[Targets, Steps]):
    """Newton steps by regressions.

    Parameters
    ----------
    loss : MarginLoss
        Smooth; with more than two classes only the logistic one.
    rounds : int
    learning_rate : float, default=1.0
    largest_step : float, default=4.0
        Of a single row: curvatures are at least as large as that takes.
    """

    loss: MarginLoss
    rounds: int
    learning_rate: float = 1.0
    largest_step: float = 4.0

    def accepts(self, problem: Targets) -> str | None:
        """Refuse losses without a curvature, and several classes but for the logistic loss."""
        if not (self.loss.smooth and self.loss.convex):
            return (
                f"Newton steps need a loss with a curvature, and the {self.loss.name} loss has "
                "none, or is not convex: take loss='logistic' or 'exponential'."
            )
        if problem.n_classes > 2 and self.loss.name != "logistic":
            return (
                f"The {self.loss.name} loss is of two classes, and y has {problem.n_classes}: take "
                "loss='logistic', AdaBoostClassifier, or SchemeClassifier around this one."
            )
        return None

    def begin(
        self, problem: Targets, watch: Watch, known: tuple[Steps, Any] | None = None
    ) -> NewtonBoostingRun:
        """Begin at F = 0, or go on after known steps with their F on the rows."""
        run = NewtonBoostingRun(problem, watch, self)
        if known is not None:
            run.resume(*known)
        return run


class Additive:
    """F at some rows, and what Newton steps from there are.

    Parameters
    ----------
    index : int array of shape (n,)
        The class of each row.
    weight : float array of shape (n,)
    n_classes : int
    method : NewtonBoosting
    """

    def __init__(
        self, index: np.ndarray, weight: np.ndarray, n_classes: int, method: NewtonBoosting
    ) -> None:
        self.index, self.weight, self.n_classes, self.method = index, weight, n_classes, method
        n, K = len(index), n_classes
        self.sign = np.where(index == 1, 1.0, -1.0)
        self.member = np.eye(K)[index] if K > 2 else np.zeros((0, 0))
        self.F = np.zeros((n, K) if K > 2 else n)

    def targets(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Newton steps of the rows and their weights: one pair, or one for each class."""
        most = self.method.largest_step
        if self.n_classes == 2:
            slope, curvature = self.method.loss.slope_and_curvature(self.sign * self.F)
            w = np.maximum(np.maximum(curvature, np.abs(slope) / most), _FLAT)
            z = -self.sign * slope / w
            return [(z, self.weight * w)]
        p, found = softmax(self.F, axis=1), []
        for k in range(self.n_classes):
            pull = self.member[:, k] - p[:, k]
            w = np.maximum(np.maximum(p[:, k] * (1.0 - p[:, k]), np.abs(pull) / most), _FLAT)
            found.append((pull / w, self.weight * w))
        return found

    def change(self, values: list[np.ndarray]) -> np.ndarray:
        """Change of F by regressions of these values."""
        if self.n_classes == 2:
            return values[0]
        table, K = np.stack(values, axis=1), self.n_classes
        return (K - 1.0) / K * (table - table.mean(axis=1, keepdims=True))

    def loss(self, F: np.ndarray) -> float:
        """Sum of the weighted losses."""
        if self.n_classes == 2:
            losses = self.method.loss.value(self.sign * F)
        else:
            losses = logsumexp(F, axis=1) - F[np.arange(len(F)), self.index]
        return float(self.weight @ losses)

    def wrong(self, F: np.ndarray) -> float:
        """Weight of the rows that are misclassified."""
        decided = F.argmax(axis=1) if F.ndim > 1 else F > 0
        return float(self.weight @ (decided != self.index))

    def pull(self) -> np.ndarray:
        """How hard each row pulls at F, ``s_i |V'(u_i)|``."""
        if self.n_classes == 2:
            pull = np.abs(self.method.loss.slope(self.sign * self.F))
        else:
            pull = 1.0 - softmax(self.F, axis=1)[np.arange(len(self.F)), self.index]
        return pull * self.weight


class RowSteps:
    """What the rounds know of the rows, held in memory; rows elsewhere have such a class, too.

    Attributes
    ----------
    loss : float
        Mean loss at F.
    """

    def __init__(self, problem: Targets, method: NewtonBoosting, watch: Watch) -> None:
        self.problem, self.watch, self.made = problem, watch, False
        self.at = Additive(problem.index, problem.weight, problem.n_classes, method)
        self.loss = self.at.loss(self.at.F)
        self.change = self.after = self.at.F

    def resume(self, F: np.ndarray) -> None:
        """Go on at F."""
        self.at.F, self.loss, self.made = F, self.at.loss(F), True

    def regress(self, seed: int) -> list[Any]:
        """Fit regressions to the Newton steps."""
        found, values, stopped = [], [], giving_up(self.watch, self.made)
        for k, (z, w) in enumerate(self.at.targets()):
            model, value = self.problem.learner.learn(z, w, seed + k, stopped)
            found.append(model)
            values.append(value)
        self.change = self.at.change(values)
        return found

    def look(self, size: float) -> tuple[float, float]:
        """Return mean loss and training error after a step of a size."""
        self.after = self.at.F + size * self.change
        return self.at.loss(self.after), self.at.wrong(self.after)

    def take(self, loss: float) -> None:
        """Take the step that was looked at last."""
        self.at.F, self.loss, self.made = self.after, loss, True

    def pull(self) -> np.ndarray:
        """How hard each row pulls at F, with sum one."""
        pull = self.at.pull()
        total = pull.sum()
        return pull / total if total > 0 else self.problem.weight


class NewtonBoostingRun(Run):
    """Newton boosting at work."""

    words: ClassVar[str] = "round {steps}, mean loss {objective:.3g}"

    def __init__(self, problem: Targets, watch: Watch, method: NewtonBoosting) -> None:
        self.problem, self.watch, self.method = problem, watch, method
        self.done = Steps()
        self.rows = problem.rows(method, watch)

    def resume(self, known: Steps, F: Any) -> None:
        """Go on after steps that were made before."""
        self.rows.resume(F)
        self.done, loss = known, self.rows.loss
        if abs(loss - known.losses[-1]) > 1e-8 * (loss + known.losses[-1]):
            raise ValueError(
                "warm_start=True goes on with the rows of the last fit, and these are others, or "
                f"have other labels or weights: the mean loss is {loss:.6g} on them and was "
                f"{known.losses[-1]:.6g}. Fit the same data again, or set warm_start=False."
            )

    def steps(self) -> Generator[None, None, None]:
        """One regression, or one for each class, a round."""
        done, method, rows = self.done, self.method, self.rows
        while len(done.regressions) < method.rounds:
            if rows.loss <= _FLAT:
                self.status = Status.NO_IMPROVEMENT
                return
            try:
                found = rows.regress(int(self.problem.seeds[len(done.regressions)]))
            except StoppedError:
                self.status = self.watch.stopped() or Status.INTERRUPTED
                return
            size = method.learning_rate
            for _ in range(_HALVINGS):
                loss, error = rows.look(size)
                if loss < rows.loss:
                    break
                size /= 2.0
            else:
                self.status = Status.NO_IMPROVEMENT
                return
            rows.take(loss)
            done.regressions.append(found)
            done.sizes.append(size)
            done.losses.append(loss)
            done.train_errors.append(error)
            self.n_iter += 1
            if len(done.regressions) < method.rounds:
                yield
        self.status = Status.COMPLETED

    @property
    def n_steps(self) -> int:
        """Rounds that were made, those of earlier fits among them."""
        return len(self.done.regressions)

    @property
    def usable(self) -> bool:
        """Whether a round was made."""
        return bool(self.done.regressions)

    @property
    def share(self) -> float:
        """Share of the rounds that were made."""
        return len(self.done.regressions) / self.method.rounds

    def measure(self) -> Measure:
        """Training error and mean loss."""
        error = self.done.train_errors[-1] if self.done.train_errors else 1.0
        return Measure(error, self.rows.loss)

    def solution(self, status: Status) -> Steps:
        """Return the steps."""
        self.done.status, self.done.pull = status, self.rows.pull()
        return self.done
