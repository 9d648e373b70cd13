"""What the two kernel ridge regressions share: data, parameters of the kernel, values."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import _num_samples, check_is_fitted

from maxmargin.backends.threads import Workers, thread_count
from maxmargin.estimators.base import WATCHED
from maxmargin.estimators.kernel import KernelEstimator
from maxmargin.estimators.parameters import POSITIVE
from maxmargin.estimators.tensors import takes_tensors
from maxmargin.estimators.warn import warn
from maxmargin.kernels import Kernel, as_kernel
from maxmargin.solvers.ridge.certificate import RidgeCertificate
from maxmargin.solvers.ridge.problem import RidgeProblem

_OF_NAMED = {"gamma": None, "degree": 3, "coef0": 1}  # scikit-learn's defaults for this machine


class RidgeMachine(RegressorMixin, KernelEstimator):
    """Values ``f(x) = sum_i a_i k(x, x_i)`` with a coefficient for every row of some weight."""

    tol: float
    dual_coef_: np.ndarray
    certificate_: RidgeCertificate
    fit_status_: int

    _parameter_constraints: dict = {
        **KernelEstimator._parameter_constraints,
        "gamma": [StrOptions({"scale", "auto"}), Interval(Real, 0.0, None, closed="left"), None],
        "tol": [POSITIVE],
        **WATCHED,
    }

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def _validated_kernel(self) -> Kernel:
        """Return the kernel that the parameters mean, with scikit-learn's defaults for it."""
        given = {name: getattr(self, name) for name in _OF_NAMED}
        if not isinstance(self.kernel, str):
            return as_kernel(self.kernel, **{n: v for n, v in given.items() if v != _OF_NAMED[n]})
        given["gamma"] = "auto" if self.gamma is None else self.gamma
        return as_kernel(self.kernel, **given)

    def _posed(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, RidgeProblem]:
        """Check data and weights; returns X and the system of the rows that have a weight.

        Its alpha is for the caller to set.
        """
        kernel = self._validated_kernel()
        X, y = self._validated(X, y, kernel, y_numeric=True, multi_output=True)
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
        values = self._expansion_at(X, self._expansion)
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
