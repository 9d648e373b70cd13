"""Newton's method for the softmax loss: the matrix of all classes, and steps cut where they climb.

With an l1 penalty Newton's model is minimised by coordinates
(:mod:`maxmargin.solvers.risk.l1_descent`).
"""

from __future__ import annotations

from collections.abc import Generator

import numpy as np

from maxmargin.backends.threads import StoppedError
from maxmargin.certificate import RiskCertificate
from maxmargin.risk import LinearSolution
from maxmargin.solution import Status
from maxmargin.solvers.risk.l1_descent import model_step
from maxmargin.solvers.risk.risk_run import SoftmaxRun

_ROUNDINGS, _UNSEEN = 8, 5  # of a value, and steps in a row that promise less than these
_LENGTHS = 0.5 ** np.arange(40)  # of a step, until one lowers the objective


class SoftmaxNewtonRun(SoftmaxRun):
    """Newton's method at work on a softmax risk; a step is one of its own."""

    bound = 0.0  # the highest dual objective so far

    @property
    def name(self) -> str:
        """Name of the method."""
        return "Newton"

    def steps(self) -> Generator[None, None, None]:
        """Newton's steps, halved until the objective falls as promised."""
        unseen = 0
        while True:
            self.bound = max(self.bound, self.certificate.dual)
            if self.certificate.converged and self.n_iter:
                return
            value, gradient, P = self.evaluate(self.theta)
            try:
                step = self._newton_step(gradient, P)
            except StoppedError:
                yield  # the driver knows why
                continue
            W, l1 = self.theta, self.risk.penalty.l1 * self.risk.penalised
            promise = -float((gradient * step + l1 * (np.abs(W + step) - np.abs(W))).sum())
            # what a value is off by rounding must not shorten steps: the bound still gets better
            slack = _ROUNDINGS * np.finfo(np.float64).eps * abs(value)
            unseen = unseen + 1 if promise <= slack else 0
            self.n_iter += 1
            for length in _LENGTHS if unseen <= _UNSEEN else ():
                further = W + length * step
                reached = self.value_and_gradient(further)[0]
                if reached <= value - 1e-4 * length * promise + slack:
                    break
            else:
                self.status = Status.STALLED
                return
            self.stand(further)
            yield

    def _newton_step(self, gradient: np.ndarray, P: np.ndarray) -> np.ndarray:
        """Step (K, width) of Newton's method from the weights and their probabilities.

        Raises ``StoppedError`` where someone wants it stopped meanwhile.
        """
        risk, W, stopped = self.risk, self.theta, self.watch.stopped
        if not risk.penalty.l1:
            return risk.flat_step(P, gradient, stopped)
        smooth = gradient - risk.penalty.l2 * risk.penalised * W
        penalised, H = np.tile(risk.penalised, risk.n_classes), risk.hessian(P, stopped)
        step = model_step(H, smooth.ravel(), W.ravel(), penalised, risk.penalty)
        return step.reshape(W.shape)

    def solution(self, status: Status) -> LinearSolution:
        """Return the weights; who has stopped it does not want to wait for a better bound."""
        if status.stopped and self._certificate is None:
            value, tol = self.evaluate(self.theta)[0], self.watch.tol
            self._certificate = RiskCertificate.of(
                value, self.bound, self.risk.rounding, status, tol
            )
        return super().solution(status)
