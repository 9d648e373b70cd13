"""The marginal likelihood of a Gaussian process, with its gradient and its average information.

With ``C = K(theta) + diag(alpha) + noise I`` and outputs t_1, ..., t_m that share it,

    log p(t) = -1/2 sum_o t_o' C^-1 t_o - m/2 log det C - n m/2 log(2 pi)

    d(-log p)/d theta_a = sum_ij W_ij dC_ij/d theta_a,
                          W = (m C^-1 - sum_o a_o a_o') / 2,   a_o = C^-1 t_o

theta are logarithms. The derivatives of all numbers in the kernel are one pass over tiles, of
which none is kept; what takes time is the factorisation ``C = L L'`` (n^3/3 operations), ``L^-1``
(n^3/3) and the tiles of ``C^-1 = L^-T L^-1`` (n^3/3), so that a value alone is a third of a value
with its gradient. One matrix is held, beside the kernel's products or distances. Then

    A_ab = 1/2 sum_o q_oa' C^-1 q_ob,   q_oa = (dC/d theta_a) a_o,

the *average information*, is next to free. It is the mean of the second derivatives of -log p and
of their expectation, where second derivatives of C are left out; no eigenvalue is negative.

References: Rasmussen and Williams, Gaussian Processes for Machine Learning, 2006, chapter 5.4;
Gilmour, Thompson and Cullis, Biometrics 51, 1995 (average information).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.linalg.lapack import dtrtri

from maxmargin.backends import cpu
from maxmargin.backends.dense import BlockCholesky, NotPositiveError
from maxmargin.backends.threads import ALONE, Workers
from maxmargin.gram.called import CalledGram, CalledGramAt
from maxmargin.gram.parametric import GramAt, ParametricGram, stripes
from maxmargin.kernels.base import Kernel

NOISE = "noise_level"
_COLUMNS = 512  # of the inverse that a thread takes at a time


@dataclass(frozen=True)
class MarginalLikelihood:
    """The likelihood of some targets as a function of a kernel's numbers and of the noise.

    Parameters
    ----------
    gram : ParametricGram
        Of n points.
    target : float array (n, m)
        Of m outputs, with mean zero by assumption.
    alpha : float array (n,)
        Variances of the noise that are known.
    noise : float or None
        Where the search for the variance of the rest begins; None where there is none.
    noise_is_free : bool
        Whether it is a parameter.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.gram.parametric import ParametricGram
    >>> from maxmargin.kernels import RBF
    >>> from maxmargin.kernels.parameters import KernelNumbers
    >>> from maxmargin.solvers.likelihood import MarginalLikelihood
    >>> numbers = KernelNumbers(RBF(gamma=1.0))
    >>> gram = ParametricGram(np.array([[0.0], [9.0]]), numbers, memory=1 << 20)
    >>> problem = MarginalLikelihood(gram, np.array([[1.0], [-1.0]]), alpha=np.zeros(2), noise=1.0)
    >>> round(problem.at(problem.theta).value, 6)  # of two independent values of variance two
    3.031024
    """

    gram: ParametricGram | CalledGram
    target: np.ndarray
    alpha: np.ndarray
    noise: float | None = None
    noise_is_free: bool = True

    @property
    def names(self) -> list[str]:
        """Names of the parameters."""
        return self.gram.parameters.names + ([NOISE] if self._has_noise else [])

    @property
    def theta(self) -> np.ndarray:
        """Logarithms of the parameters, as they were given."""
        own = [np.log(self.noise)] if self.noise is not None and self._has_noise else []
        return np.concatenate([self.gram.parameters.theta, own])

    @property
    def _has_noise(self) -> bool:
        return self.noise is not None and self.noise_is_free

    @property
    def n_values(self) -> int:
        """Targets in all: what likelihoods are divided by to be compared."""
        return self.target.size

    def kernel_at(self, theta: np.ndarray) -> Kernel:
        """Return the kernel at some parameters."""
        return self.gram.parameters.kernel_at(theta[: self._of_kernel])

    def values_at(self, theta: np.ndarray) -> dict[str, float]:
        """The parameters by name, with their signs."""
        signs = np.append(self.gram.parameters.signs, 1.0)
        return dict(zip(self.names, (signs[: len(theta)] * np.exp(theta)).tolist(), strict=True))

    def noise_at(self, theta: np.ndarray) -> float:
        """Variance of the noise beside alpha and beside what the kernel adds to its diagonal."""
        return float(np.exp(theta[-1])) if self._has_noise else (self.noise or 0.0)

    def take(self, rows: np.ndarray) -> MarginalLikelihood:
        """The likelihood of some of the targets."""
        return replace(
            self, gram=self.gram.take(rows), target=self.target[rows], alpha=self.alpha[rows]
        )

    def at(self, theta: np.ndarray, workers: Workers = ALONE) -> Evaluation:
        """Evaluate; raises :class:`NotPositiveError`."""
        return Evaluation(self, theta, workers)

    def of_noise_alone(self) -> float:
        """-log p of independent targets of one variance: what a process has to beat."""
        variance = max(float(np.mean(self.target**2)), np.finfo(np.float64).tiny)
        return 0.5 * self.n_values * (np.log(2 * np.pi * variance) + 1.0)

    def refused(self, theta: np.ndarray, row: int | None = None) -> ValueError:
        """Say why C has no factor at some parameters, and what to do.

        Raises what is said of kernel values, where these are not finite.
        """
        K = self.gram.at(theta[: self._of_kernel]).lower_triangle()
        cpu.finite(K, self.kernel_at(theta))
        own, _ = self.gram.parameters.noise_at(theta[: self._of_kernel], self.gram.views)
        noise = float(np.min(self.alpha + own)) + self.noise_at(theta)
        where = "" if row is None else f" (its first {row + 1} rows show it)"
        return np.linalg.LinAlgError(  # a ValueError; the first two sentences are scikit-learn's
            f"The kernel, {self.gram.parameters.shown_at(theta[: self._of_kernel])}, is not "
            "returning a positive definite matrix. Try gradually increasing the 'alpha' parameter "
            "of your GaussianProcessRegressor estimator. The covariance K + diag(alpha) + noise is "
            f"not positive definite in float64{where}: rows that are equal or nearly, with too "
            f"little noise beside them (it is {noise:.2g}, and kernel values reach "
            f"{np.abs(K).max():.2g}), or a kernel that is not valid, as check_valid(kernel, X) "
            "tells. Raise alpha, begin with a larger noise_level, scale the data, or take another "
            "kernel."
        )

    @property
    def _of_kernel(self) -> int:
        """Parameters that are the kernel's."""
        return len(self.gram.parameters.theta)


class Evaluation:
    """-log p at one theta; gradient and information are computed when they are asked for.

    They overwrite the factor L, so that who wants both asks for ``factor`` first.
    """

    def __init__(self, problem: MarginalLikelihood, theta: np.ndarray, workers: Workers) -> None:
        self.problem, self.theta, self.workers = problem, theta, workers
        self.at: GramAt | CalledGramAt = problem.gram.at(
            theta[: len(problem.gram.parameters.theta)]
        )
        self.noise = problem.noise_at(theta)
        parameters = problem.gram.parameters
        added, self._slopes = parameters.noise_at(
            theta[: len(parameters.theta)], problem.gram.views
        )
        self.variances = problem.alpha + self.noise + added
        A = self.at.lower_triangle(workers)
        self.factor = BlockCholesky(A, self.variances, workers)
        while self.factor.done < len(A):
            workers.check()
            self.factor.advance()
        self.coefficients = self.factor.solve(problem.target)
        half_log_det = float(np.log(A.diagonal()).sum())
        n_outputs = problem.target.shape[1]
        self.value = 0.5 * float(np.vdot(problem.target, self.coefficients))
        self.value += n_outputs * (half_log_det + 0.5 * len(A) * math.log(2 * math.pi))
        if not np.isfinite(self.value):
            raise NotPositiveError(len(A) - 1)

    @cached_property
    def _derivatives(self) -> tuple[np.ndarray, np.ndarray]:
        a, m, workers = self.coefficients, self.problem.target.shape[1], self.workers
        X = invert_lower(self.factor.A, workers)

        def weights(rows: slice) -> np.ndarray:
            inverse = X[rows.start :, rows].T @ X[rows.start :, : rows.stop]
            return 0.5 * (m * inverse - a[rows] @ a[: rows.stop].T)

        gradient, changes = self.at.contract(weights, a, workers)
        if self.problem._has_noise or self._slopes is not None:
            parts = workers.map(lambda r: np.einsum("ij,ij->j", X[r], X[r]), stripes(len(X)))
            diagonal = 0.5 * (m * np.sum(parts, axis=0) - np.einsum("ij,ij->i", a, a))
        if self._slopes is not None:
            gradient = gradient + self._slopes @ diagonal
            changes = changes + self._slopes[:, :, None] * a
        if self.problem._has_noise:
            gradient = np.append(gradient, self.noise * diagonal.sum())
            changes = np.concatenate([changes, self.noise * a[None]])
        p = len(gradient)
        right = changes.transpose(1, 0, 2).reshape(len(X), -1)
        parts = workers.map(lambda rows: X[rows, : rows.stop] @ right[: rows.stop], stripes(len(X)))
        Z = np.concatenate(parts).reshape(len(X), p, m)
        return gradient, 0.5 * np.einsum("iao,ibo->ab", Z, Z)

    @property
    def gradient(self) -> np.ndarray:
        """Derivatives of -log p by theta."""
        return self._derivatives[0]

    @property
    def information(self) -> np.ndarray:
        """The average information (p, p)."""
        return self._derivatives[1]


def invert_lower(A: np.ndarray, workers: Workers = ALONE) -> np.ndarray:
    """Overwrite a lower triangle by its inverse, and what is above by zeros; returns A.

    Row by row of blocks: ``X_IJ = -L_II^-1 sum_{J <= K < I} L_IK X_KJ``.

    >>> import numpy as np
    >>> invert_lower(np.array([[2.0, 7.0], [1.0, 1.0]]))
    array([[ 0.5,  0. ],
           [-0.5,  1. ]])
    """
    for own in stripes(len(A)):
        before = A[own, : own.start].copy()
        inverse = np.tril(dtrtri(A[own, own], lower=1)[0])

        def fill(columns: slice, own: slice = own, rows: tuple = (before, inverse)) -> None:
            left, scale = rows
            A[own, columns] = -scale @ (
                left[:, columns.start :] @ A[columns.start : own.start, columns]
            )

        edges = range(0, own.start, _COLUMNS)
        workers.map(fill, [slice(e, min(e + _COLUMNS, own.start)) for e in edges])
        A[own, own] = inverse
        A[own, own.stop :] = 0.0
    return A
