"""What the methods for regularised risks have in common: a duality gap at every weight."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Generator
from typing import Any

import numpy as np

from maxmargin.certificate import RiskCertificate
from maxmargin.risk import LinearSolution, RegularisedRisk
from maxmargin.solution import Status
from maxmargin.solvers.driver import NO_LIMIT, Measure, Method, Run, Watch
from maxmargin.solvers.risk.cache import RiskCache
from maxmargin.solvers.risk.softmax import SoftmaxRisk


class RiskMethod(Method[Any, LinearSolution]):
    """A method that minimises a regularised risk, until the relative duality gap is ``tol``."""

    @abstractmethod
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


class WeightsRun(Run):
    """A run that knows weights, and what they prove.

    Attributes
    ----------
    theta : float array
        The weights, the intercept's last.
    s : float array or None
        Slopes of the losses that stand for the dual; None as long as nobody has asked.
    """

    words = "pass {steps}, relative gap {violation:.2g}"
    theta: np.ndarray
    s: np.ndarray | None = None
    _certificate: RiskCertificate | None = None

    def __init__(self, watch: Watch) -> None:
        self.watch = watch

    def stand(
        self,
        theta: np.ndarray,
        s: np.ndarray | None = None,
        certificate: RiskCertificate | None = None,
    ) -> None:
        """Have these weights from now on, with slopes and a certificate where they are known."""
        self.theta, self.s, self._certificate = theta, s, certificate

    @property
    def certificate(self) -> RiskCertificate:
        """Both objectives at the weights as they are, recomputed from the data; only once."""
        if self._certificate is None:
            self._certificate = self._judged()
        return self._certificate

    @abstractmethod
    def _judged(self) -> RiskCertificate:
        """Recompute both objectives, with a status of "converged" where the gap allows it."""

    @abstractmethod
    def value_and_gradient(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """Objective at some weights, and the gradient of what is smooth of it.

        The weights are remembered, and not to be changed later.
        """

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
        certificate = self.certificate
        if status is not Status.CONVERGED:
            certificate = certificate.ended(status)
        s = np.empty(0) if self.s is None else self.s
        return LinearSolution(self.theta, s, self.n_iter, certificate.status, certificate)

    def follow(self, inner: WeightsRun) -> Generator[None, None, None]:
        """Let a run on a smaller problem go on to its end, and have its weights meanwhile."""
        while inner.status is None and self.watch.left(inner.n_iter):
            inner.advance(NO_LIMIT)
            self.stand(inner.theta)
            yield


class RiskRun(WeightsRun):
    """A run on a :class:`~maxmargin.risk.RegularisedRisk`."""

    def __init__(
        self,
        risk: RegularisedRisk,
        watch: Watch,
        start: LinearSolution | None = None,
        cache: RiskCache | None = None,
    ) -> None:
        super().__init__(watch)
        self.risk, self.start = risk, start
        self.cache = RiskCache() if cache is None else cache
        self.stand(np.zeros(risk.design.width) if start is None else start.theta)

    def dual_points(self, f: np.ndarray) -> list[np.ndarray]:
        """Slopes that may prove how good weights with values f are: of the losses there."""
        return [self.risk.loss.slope(self.risk.arguments(f))]

    def _judged(self) -> RiskCertificate:
        f = self.cache.values(self.risk, self.theta)
        if self.s is not None:
            return self._judged_by(self.s, f)
        judged = [(self._judged_by(s, f), s) for s in self.dual_points(f)]
        certificate, self.s = min(judged, key=lambda pair: pair[0].gap)
        return certificate

    def _judged_by(self, s: np.ndarray, f: np.ndarray) -> RiskCertificate:
        return self.risk.certificate(self.theta, s, Status.CONVERGED, self.watch.tol, f)

    def value_and_gradient(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """Objective at some weights, and the gradient of what is smooth of it."""
        risk, f = self.risk, self.risk.design.values(theta)
        self.cache.known_values = theta, f
        gradient = risk.loss_gradient(theta, f)
        if risk.penalty.l2:
            gradient += risk.penalty.l2 * risk.penalised * theta
        return risk.primal(theta, f), gradient


class SoftmaxRun(WeightsRun):
    """A run on a :class:`~maxmargin.solvers.risk.softmax.SoftmaxRisk`, with weights (K, width)."""

    _seen: tuple[np.ndarray, tuple] | None = None  # the last evaluation, and where

    def __init__(
        self, risk: SoftmaxRisk, watch: Watch, start: LinearSolution | None = None
    ) -> None:
        super().__init__(watch)
        self.risk = risk
        self.stand(np.zeros(risk.shape) if start is None else start.theta)

    def evaluate(self, W: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        """Objective, gradient of what is smooth of it, and probabilities; once at one place."""
        seen = self._seen
        if seen is None or not (seen[0] is W or np.array_equal(seen[0], W)):
            self._seen = seen = W, self.risk.evaluate(W)
        return seen[1]

    def value_and_gradient(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """Objective at some weights, and the gradient of what is smooth of it."""
        self._seen = theta, self.risk.evaluate(theta)
        return self._seen[1][:2]

    def _judged(self) -> RiskCertificate:
        seen = self.evaluate(self.theta)
        return self.risk.certificate(self.theta, Status.CONVERGED, self.watch.tol, seen)

    def solution(self, status: Status) -> LinearSolution:
        """Return the weights; what all classes have in common changes nothing, and is left out."""
        certificate, free = self.certificate, self.risk.penalised == 0
        W = self.theta.copy()
        W[:, free] -= W[:, free].mean(axis=0)
        self.stand(W, None, certificate)
        return super().solution(status)
