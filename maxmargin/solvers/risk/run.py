"""What the methods for regularised risks have in common: a duality gap at every weight."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np

from maxmargin.certificate import RiskCertificate
from maxmargin.progress import Progress
from maxmargin.risk import LinearSolution, RegularisedRisk, Risk, RiskEvaluation
from maxmargin.solution import Status
from maxmargin.solvers.driver import NO_LIMIT, Measure, Method, Run, Watch

_WORK, _LOOKS = 10**8, 16  # products until a pass over rows is looked at no more than so often
AnyRisk = TypeVar("AnyRisk", bound=Risk)


@dataclass
class RiskCache:
    """What was found out about a risk, and is of use at costs in proportion to its own.

    A run has one of its own; a path of costs and the search for a norm hand theirs from run to run.

    Attributes
    ----------
    known_values : tuple, optional
        The weights that values were made for last, and the values.
    known_evaluation, part, gram : tuple, optional
        The sum of the costs that it was made for, with the last evaluation of all rows; the part of
        the rows that was drawn last; the curvatures and their matrix that were made last.
    in_span : RiskCache, optional
        Of the same risk over coordinates in the span of its rows.
    """

    known_values: tuple[np.ndarray, np.ndarray] | None = None
    known_evaluation: tuple[float, RiskEvaluation] | None = None
    part: tuple[float, Any] | None = None
    gram: tuple[float, np.ndarray, np.ndarray] | None = None
    in_span: RiskCache | None = None

    def values(self, risk: Risk, theta: np.ndarray) -> np.ndarray:
        """``Z theta``, or what is known of it."""
        known, evaluated = self.known_values, self.known_evaluation
        if evaluated is not None and np.array_equal(evaluated[1].theta, theta):
            return evaluated[1].f
        if known is None or not (known[0] is theta or np.array_equal(known[0], theta)):
            self.known_values = known = theta.copy(), risk.values(theta)
        return known[1]

    def evaluate(self, risk: RegularisedRisk, theta: np.ndarray) -> RiskEvaluation:
        """Read every row once, or not at all where it was done at these weights last."""
        if self.known_evaluation is not None:
            total, known = self.known_evaluation
            if np.array_equal(known.theta, theta):
                return known.times(risk.total_cost / total)
        evaluation = risk.evaluate(theta)
        self.known_evaluation = risk.total_cost, evaluation
        return evaluation


class RiskRun(Run, Generic[AnyRisk]):
    """A run that knows weights, and what they prove.

    Attributes
    ----------
    theta : float array
        The weights, the intercept's last.
    s : float array or None
        Slopes of the losses that stand for the dual; None as long as nobody has asked.
    """

    solves_for = "weights"
    words = "pass {steps}, relative gap {violation:.2g}"
    theta: np.ndarray
    s: np.ndarray | None = None
    _certificate: RiskCertificate | None = None

    def __init__(
        self,
        risk: AnyRisk,
        watch: Watch,
        start: LinearSolution | None = None,
        cache: RiskCache | None = None,
    ) -> None:
        self.risk, self.watch, self.start = risk, watch, start
        self.cache = RiskCache() if cache is None else cache
        self.stand(np.zeros(risk.shape) if start is None else start.theta)

    def stand(
        self,
        theta: np.ndarray,
        s: np.ndarray | None = None,
        certificate: RiskCertificate | None = None,
    ) -> None:
        """Have these weights from now on, with slopes and a certificate where they are known."""
        self.theta, self.s, self._certificate = theta, s, certificate

    def advance(self, allowed: int) -> None:
        """Let the loop go on to where it yields next; a pass that takes long may be stopped."""
        with self.risk.heeding(self.watch.stopped):
            super().advance(allowed)

    @property
    def certificate(self) -> RiskCertificate:
        """Both objectives at the weights as they are, recomputed from the data; only once."""
        if self._certificate is None:
            self._certificate = self._judged()
        return self._certificate

    def _judged(self) -> RiskCertificate:
        """Recompute both objectives, with a status of "converged" where the gap allows it."""
        f = self.cache.values(self.risk, self.theta)
        if self.s is not None:
            return self._judged_by(self.s, f)
        judged = [(self._judged_by(s, f), s) for s in self.dual_points(f)]
        certificate, self.s = min(judged, key=lambda pair: pair[0].gap)
        return certificate

    def _judged_by(self, s: np.ndarray, f: np.ndarray) -> RiskCertificate:
        return self.risk.certificate(self.theta, s, Status.CONVERGED, self.watch.tol, f)

    def dual_points(self, f: np.ndarray) -> list[np.ndarray]:
        """Slopes that may prove how good weights with values f are: of the losses there."""
        return [self.risk.slopes_at(f)]

    def value_and_gradient(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """Objective at some weights, and the gradient of what is smooth of it.

        The weights are remembered, and not to be changed later.
        """
        f = self.risk.values(theta)
        self.cache.known_values = theta, f
        return self.risk.primal(theta, f), self.risk.smooth_gradient(theta, f)

    @property
    def variables(self) -> np.ndarray:
        """The weights."""
        return self.theta

    def measure(self) -> Measure:
        """Both objectives and the relative gap."""
        certificate = self.certificate
        return Measure(
            certificate.relative_gap, certificate.primal, certificate.dual, certificate.gap
        )

    def solution(self, status: Status) -> LinearSolution:
        """Return the weights with their certificate; only that says whether they have converged."""
        self._centre_intercept()
        certificate = self.certificate
        if status is not Status.CONVERGED:
            certificate = certificate.ended(status)
        s = np.empty(0) if self.s is None else self.s
        f = self.cache.values(self.risk, self.theta)
        theta = self.risk.same_for_all(self.theta)
        return LinearSolution(theta, s, self.n_iter, certificate.status, certificate, f=f)

    def _centre_intercept(self) -> None:
        """Move the intercept to the middle of those that are as good, if there are several.

        So that an answer does not depend on where the solver began, or on the order of the rows.
        """
        f = self.cache.values(self.risk, self.theta)
        shift = 0.0 if self.s is None else self.risk.intercept_shift(f, self.s)
        if shift:
            theta = self.theta.copy()
            theta[-1] += shift / self.risk.design.constant
            self.stand(theta, self.s)

    def follow(self, inner: RiskRun) -> Generator[None, None, None]:
        """Let a run on a smaller problem go on to its end, and have its weights meanwhile."""
        while inner.status is None and self.watch.left(inner.n_iter):
            inner.advance(NO_LIMIT)
            self.stand(inner.theta)
            yield


class BestRun(RiskRun[AnyRisk]):
    """A run whose gap may grow again: its answer is the iterate with the smallest one."""

    best: tuple[np.ndarray, np.ndarray | None, RiskCertificate] | None = None

    def is_best(self) -> bool:
        """Return whether the gap is the smallest so far, and remember the iterate if it is."""
        best = self.best is None or self.certificate.gap < self.best[2].gap
        if best:
            self.best = self.theta, self.s, self.certificate
        return best

    def solution(self, status: Status) -> LinearSolution:
        """Return the best weights so far."""
        if self.best is not None and not self.is_best():
            self.stand(*self.best)
        return super().solution(status)


class RowByRow(Run):
    """A run of steps on single rows, in passes: ``n_iter`` counts these, ``n_steps`` the rows.

    Attributes
    ----------
    looked_at : int
        Rows that it has made a step for.
    rows_now : int array or None
        Those of the last step.
    """

    in_passes: ClassVar[bool] = True
    looked_at: int = 0
    rows_now: np.ndarray | None = None

    def until_look(self, n: int, products: int) -> int:
        """Rows to take before the next look, of n; each look costs so many products.

        At first as few as are asked for, and when that has become much work, a part of a pass.
        """
        return max(self.allowed, 1 if self.looked_at * products < _WORK else n // _LOOKS)

    @property
    def n_steps(self) -> int:
        """Rows looked at."""
        return self.looked_at

    @property
    def working_set(self) -> np.ndarray | None:
        """The rows of the last step."""
        return self.rows_now

    def progress(self, watch: Watch) -> Progress:
        """Where it is, with the pass; steps that are too large may be on their way to infinity."""
        with np.errstate(over="ignore", invalid="ignore"):
            seen = super().progress(watch)
        return replace(seen, words=self.words.replace("{steps}", str(self.n_iter)))


class RiskMethod(Method[Any, LinearSolution]):
    """A method that minimises a regularised risk, until the relative duality gap is ``tol``."""

    run: ClassVar[type[RiskRun]]

    def begin(
        self,
        problem: Any,
        watch: Watch,
        start: LinearSolution | None = None,
        cache: RiskCache | None = None,
    ) -> Run:
        """Begin from an earlier answer where there is one.

        Parameters
        ----------
        problem : RegularisedRisk or SoftmaxRisk
        watch : Watch
            A step is a pass over the data.
        start : LinearSolution, optional
        cache : RiskCache, optional
            From a run on the same problem at other costs.
        """
        return self.run(problem, watch, start, cache)
