"""Kernel logistic regression: the problem, its dual, and what certifies an answer.

    minimise  P(w, b) = 1/2 |w|^2 + sum_i c_i V(f(x_i)),        f(x) = w . phi(x) + b

with V of :mod:`maxmargin.solvers.logistic.likelihood`: minus the logarithm of the probability of
the right class. For several classes there is a w and a b of each. By ``w = sum_i a_i phi(x_i)`` it
is a problem in a, and its dual is one in ``beta_i = c_i (t_i - p_i)``,

    maximise  D(beta) = -1/2 beta'K beta - sum_i c_i V*(-beta_i / c_i),    sum_i beta_i = 0 with a b

whose second term is the entropy of the probabilities. Any values F give a beta, and with it a bound
on all objectives. Of an answer whose b is the best for its w,

    P(w, b) - D(beta) = 1/2 (a - beta)'K (a - beta)

so that a is optimal where it equals its beta: every row has a coefficient, for no probability is
one, and it is the support vector machine's alpha made smooth.

References: seed 001, "SVM vs LR"; Jaakkola and Haussler, AISTATS 1999 (the dual); Zhu and Hastie,
Journal of Computational and Graphical Statistics 14, 2005.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from maxmargin.backends.systems import solved
from maxmargin.backends.threads import Workers
from maxmargin.certificate import KernelRiskCertificate, RiskCertificate
from maxmargin.gram import Definiteness, Gram
from maxmargin.solution import Status
from maxmargin.solvers.logistic.likelihood import Likelihood

_SUMMED = 64  # terms that BLAS adds before it rounds anew, about
_EPS = float(np.finfo(np.float64).eps)
_LEVEL = 1e-14  # sum of beta, in parts of the sum of their sizes, that counts as zero
_STEPS = 100  # of the intercepts, at most
_SMALL = 0.5  # change of a probability's logarithm that a correction may make


@dataclass(frozen=True, repr=False, kw_only=True)
class LogisticCertificate(KernelRiskCertificate):
    """How exact a kernel logistic regression is: both objectives in float64 from the problem.

    Attributes
    ----------
    primal, dual : float
        The objective at the answer, and a lower bound on all objectives.
    gap, relative_gap : float
        ``primal - dual``, and that and its rounding over the larger of the two.
    rounding : float
        How much larger than ``gap`` the true one may be, since float64 rounds kernel values and
        sums.
    solver : str
        The method that was used, in words.
    spectrum : Definiteness or Spectrum
        What is known of the Gram matrix, on which the bound rests.

    Examples
    --------
    >>> from maxmargin import KernelLogisticRegression
    >>> model = KernelLogisticRegression(kernel="linear").fit([[0.0], [1.0], [2.0]], [0, 1, 1])
    >>> print(model.certificate_)
    converged: optimal to a relative gap of ...
      primal          1.56...
      dual            1.56...
      gap             ... (and ... for rounding)
      relative gap    ... (tol 0.0001)
      solver          Newton's method, ... steps, cholesky
      kernel          positive semidefinite by construction
    """

    solver: str

    def numbers(self) -> dict[str, str]:
        """Both objectives, their gap, what is known of the kernel, and the method."""
        said = super().numbers()
        kernel = said.pop("kernel")
        return {**said, "solver": self.solver, "kernel": kernel}


@dataclass(frozen=True)
class LogisticProblem:
    """Kernel logistic regression of two classes, or of several at once.

    Parameters
    ----------
    gram : Gram
        Of n points.
    likelihood : Likelihood
        Of their classes, with costs that are positive.
    free_intercept : bool, default=True
        Whether there is a b, which has no penalty.
    start : pair of float arrays (n, m) and (m,), optional
        Coefficients and intercepts to begin with.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin import Gram
    >>> from maxmargin.kernels import Linear
    >>> from maxmargin.solvers.logistic.likelihood import Likelihood
    >>> from maxmargin.solvers.logistic.problem import LogisticProblem
    >>> gram = Gram.of(np.array([[-1.0], [1.0]]), Linear())
    >>> problem = LogisticProblem(gram, Likelihood(np.array([0, 1]), 2, np.ones(2)))
    >>> problem.intercept(np.array([[0.0], [2.0]]), np.zeros(1))  # the best b beside these values
    array([-1.])
    """

    gram: Gram
    likelihood: Likelihood
    free_intercept: bool = True
    start: tuple[np.ndarray, np.ndarray] | None = None

    @property
    def n(self) -> int:
        """Number of points."""
        return self.gram.n

    @property
    def m(self) -> int:
        """Functions to find: one for two classes, otherwise one for each."""
        return self.likelihood.m

    def primal(self, A: np.ndarray, KA: np.ndarray, b: np.ndarray) -> float:
        """P of coefficients A with ``K A``, and of intercepts b."""
        return 0.5 * float(np.vdot(A, KA)) + self.likelihood.loss(KA + b)

    def dual(self, beta: np.ndarray, Kbeta: np.ndarray) -> float:
        """D of ``beta`` with ``K beta``."""
        return -0.5 * float(np.vdot(beta, Kbeta)) - self.likelihood.conjugates(beta)

    @np.errstate(over="ignore", invalid="ignore")  # no curvature is left far out
    def intercept(self, KA: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Return the best intercepts beside values KA, by Newton's method from b."""
        if not self.free_intercept:
            return b
        likelihood, value = self.likelihood, self.likelihood.loss(KA + b)
        for _ in range(_STEPS):
            beta = likelihood.beta(KA + b)
            left = beta.sum(axis=0)
            if np.abs(left).max() <= _LEVEL * np.abs(beta).sum():
                break
            step = solved(likelihood.curvature(KA + b).total(), left)
            if not np.isfinite(step).all():
                break
            if left @ step <= _EPS * abs(value):  # the loss would only show its rounding
                if likelihood.loss(KA + b + step) <= (1.0 + len(KA) * _EPS) * value:
                    b = b + step
                break
            length = 1.0
            while length > _EPS and not (after := likelihood.loss(KA + b + length * step)) <= value:
                length *= 0.5
            if length <= _EPS:
                break
            b, value = b + length * step, after
        return b if self.m == 1 else b - b.mean()

    def bounding(self, F: np.ndarray) -> np.ndarray:
        """``beta`` of values F, moved onto the sum of zero that intercepts ask for.

        That is a change of rounding's size where the intercepts are the best ones, along the
        probabilities' own tangents. Where they are not, zeros remain, which bound everything by 0.
        """
        likelihood = self.likelihood
        beta = likelihood.beta(F)
        if not self.free_intercept:
            return beta
        curvature = likelihood.curvature(F)
        with np.errstate(over="ignore", invalid="ignore"):  # no curvature is left far out
            shift = solved(curvature.total(), beta.sum(axis=0))
        if not np.abs(shift).max() < _SMALL:
            return np.zeros_like(beta)
        return beta - curvature.up(curvature.down(np.broadcast_to(shift, beta.shape)))

    def certificate(
        self,
        A: np.ndarray,
        KA: np.ndarray,
        b: np.ndarray,
        workers: Workers,
        solver: str,
        status: Status,
        tol: float,
    ) -> LogisticCertificate:
        """Judge coefficients A with ``K A``, and intercepts b."""
        beta = self.bounding(KA + b)
        Kbeta = self.gram.matmat(beta, workers=workers)
        primal, dual = self.primal(A, KA, b), self.dual(beta, Kbeta)
        return self.judged(primal, dual, self._rounding(A, beta), solver, status, tol)

    def judged(
        self, primal: float, dual: float, rounding: float, solver: str, status: Status, tol: float
    ) -> LogisticCertificate:
        """Judge two objectives, whose true gap may be wider by their rounding.

        The bound on that is wide: an answer that meets ``tol`` but for it has converged, unless
        rounding may be more than a small part of the objective.
        """
        least = _EPS * self.n**0.5 * float(self.likelihood.cost.sum())
        judged = RiskCertificate.of(primal, dual, least, status, tol)
        size = max(abs(judged.primal), abs(judged.dual), least)
        return LogisticCertificate(
            primal=judged.primal,
            dual=judged.dual,
            gap=judged.gap,
            relative_gap=judged.relative_gap + rounding / size,
            status=judged.status.beside(rounding / size, tol),
            tol=tol,
            rounding=rounding,
            solver=solver,
            spectrum=self.gram.spectrum,
        )

    def _rounding(self, A: np.ndarray, beta: np.ndarray) -> float:
        """Bound on what rounding adds to the gap: by values of f, and in both quadratic terms.

        A value ``(K a)_i`` is known to so many roundings of ``sqrt(K_ii) sum_j sqrt(K_jj) |a_j|``,
        and a loss changes by no more than its values, twice for several classes.
        """
        lengths = np.sqrt(np.abs(self.gram.diagonal))
        unit = _EPS * (self.gram.rounding + min(self.n, _SUMMED) + self.n / _SUMMED + 2.0)
        sizes = [lengths @ np.abs(each) for each in (A, beta)]
        quadratic = 0.5 * sum(float(size @ size) for size in sizes)
        slopes = 1.0 if self.m == 1 else 2.0
        losses = slopes * float((self.likelihood.cost @ lengths) * sizes[0].max())
        return unit * (quadratic + losses)

    def refusal(self) -> str:
        """Say why a kernel cannot be taken, and what to do."""
        if self.gram.definiteness in (Definiteness.PROVEN, Definiteness.COMPUTED):
            return (
                f"I + C K is not positive definite in float64 for the kernel {self.gram.kernel!r}, "
                "whose values are rounded by more than its smallest eigenvalues are: they are up "
                f"to {float(self.gram.diagonal.max()):.3g}. Centre the data and scale them "
                "(StandardScaler), or lower C."
            )
        return (
            f"The kernel {self.gram.kernel!r} is indefinite on these data: |w|^2 can be negative "
            "in its feature space, and the objective has no least. Use a valid kernel "
            "(check_valid(kernel, X) says which eigenvalues there are), or SVC, which finds a "
            "stationary point."
        )
