"""What the two kernel ridge regressions share: data, parameters of the kernel, values."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.validation import _num_samples, check_is_fitted

from maxmargin.backends.threads import Workers, thread_count
from maxmargin.estimators.base import WATCHED
from maxmargin.estimators.kernel import KernelEstimator, PairwiseKernels
from maxmargin.estimators.parameters import POSITIVE
from maxmargin.estimators.tensors import takes_tensors
from maxmargin.estimators.warn import warn
from maxmargin.solvers.ridge.certificate import RidgeCertificate
from maxmargin.solvers.ridge.problem import RidgeProblem


class RidgeMachine(RegressorMixin, PairwiseKernels, KernelEstimator):
    """Values ``f(x) = sum_i a_i k(x, x_i)`` with a coefficient for every row of some weight."""

    tol: float
    dual_coef_: np.ndarray
    certificate_: RidgeCertificate
    fit_status_: int

    _parameter_constraints: dict = {
        **KernelEstimator._parameter_constraints,
        **PairwiseKernels._parameter_constraints,
        "tol": [POSITIVE],
        **WATCHED,
    }

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def _posed(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, RidgeProblem]:
        """Check data and weights; returns X and the system of the rows that have a weight.

        Its alpha is for the caller to set.
        """
        kernel = self._validated_kernel()
        X, y = self._validated(X, y, kernel, y_numeric=True, multi_output=True)
        single = all(getattr(part, "dtype", None) == np.float32 for part in (X, y))
        self._dtype = np.float32 if single else np.float64  # of answers; computed in float64
        y = np.asarray(y, dtype=np.float64)
        weight = self._validated_weight(sample_weight, X)
        gram = self._gram(X, kernel)
        self._one_output = y.ndim == 1
        self._rows = np.flatnonzero(weight)
        target = y.reshape(len(y), -1)
        if len(self._rows) < gram.n:
            gram, target = gram.take(self._rows), target[self._rows]
        return X, RidgeProblem(gram, target, 1.0, weight[self._rows])

    def _threads(self, problem: RidgeProblem) -> Workers:
        """Threads for tiles of the matrix; a Python function is called by one."""
        count = 1 if problem.gram.program.calls_python else thread_count(self.n_jobs)
        return Workers(count)

    def _keep(self, X: Any, coefficients: np.ndarray, certificate: RidgeCertificate) -> None:
        """Set the attributes of the expansion, and warn where it is not what was asked for."""
        self._keep_support_vectors(X, self._rows)
        every = len(self._rows) == _num_samples(X) or self.kernel_.pairwise
        self.X_fit_ = self.support_vectors_ if every else X
        dual_coef = np.zeros((_num_samples(X), coefficients.shape[1]))
        dual_coef[self._rows] = coefficients
        self.dual_coef_ = dual_coef[:, 0] if self._one_output else dual_coef
        self._expansion = np.ascontiguousarray(coefficients.T)
        self.certificate_ = certificate
        self.fit_status_ = int(not certificate.converged)
        warn_unfinished(self, certificate)

    score = takes_tensors(RegressorMixin.score)

    @takes_tensors
    def predict(self, X: Any) -> np.ndarray:
        """Return the values at the rows of X.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or (n_samples, n_train)

        Returns
        -------
        values : array of shape (n_samples,) or (n_samples, n_targets)
        """
        check_is_fitted(self)
        values = self._expansion_at(X, self._expansion).astype(self._dtype, copy=False)
        return values[:, 0] if self._one_output else values


def warn_unfinished(machine: Any, certificate: RidgeCertificate) -> None:
    """Warn where a system is not solved as asked: why, how far it is, and what to do."""
    if certificate.converged:
        return
    advice = certificate.status.advice_for("ridge").format(
        max_iter=getattr(machine, "max_iter", -1),
        time_limit=machine.time_limit or 0.0,
        tol=machine.tol,
    )
    warn(f"{advice} The residual is {certificate.residual:.2g}. See certificate_.")
