"""What the feature maps of kernels share: a kernel, values of features for it, and their error.

    k(x, z) ~ phi(x) . phi(z)

so that linear machines, which take millions of rows, stand in for kernel machines.
"""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import _safe_indexing
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from maxmargin.backends.threads import on_one_blas_thread
from maxmargin.estimators.kernel import KernelEstimator
from maxmargin.estimators.tensors import takes_tensors
from maxmargin.gram import Gram
from maxmargin.kernels import Kernel, as_kernel

PAIRED = 500  # held-out rows whose pairs say how good an approximation is


class FeatureMap(ClassNamePrefixFeaturesOutMixin, TransformerMixin, KernelEstimator):
    """What the three maps share: a kernel, and values of features for it."""

    approximation_error_: float

    _parameter_constraints: dict = {
        **KernelEstimator._parameter_constraints,
        "gamma": [StrOptions({"scale", "auto"}), Interval(Real, 0.0, None, closed="left"), None],
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
    }

    def _validated_kernel(self) -> Kernel:
        """Return the kernel that is meant; gamma=None is ``1 / n_features``, as in scikit-learn."""
        if not isinstance(self.kernel, str):
            return as_kernel(self.kernel) if self.gamma is None else super()._validated_kernel()
        gamma = "auto" if self.gamma is None else self.gamma
        return as_kernel(self.kernel, gamma=gamma, degree=self.degree, coef0=self.coef0)

    def _error_on(self, X: Any, rows: np.ndarray) -> float:
        """Root mean square of ``phi(x) . phi(z) - k(x, z)`` among some rows, over that of k."""
        some = _safe_indexing(X, rows)
        phi, K = np.asarray(self._mapped(some)), Gram.of(some, self.kernel_).dense()
        size = float(np.linalg.norm(K))
        return float(np.linalg.norm(phi @ phi.T - K)) / size if size else 0.0

    def _mapped(self, X: Any) -> np.ndarray:
        """Features of validated points."""
        raise NotImplementedError

    @takes_tensors
    @on_one_blas_thread
    def transform(self, X: Any) -> np.ndarray:
        """Return the features of the rows of X, shape (n_samples, n_columns)."""
        check_is_fitted(self)
        return self._mapped(self._validated_points(X, self.kernel_))
