"""The features of kernels that can be written out."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import _fit_context
from sklearn.gaussian_process.kernels import Kernel as ScikitLearnKernel
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import _num_samples

from maxmargin.feature_maps.base import PAIRED, FeatureMap, TrainingRows
from maxmargin.kernels import Kernel
from maxmargin.kernels.features import explicit_features


class ExplicitFeatures(FeatureMap):
    """The features of a kernel themselves, where they can be written out.

    See :func:`maxmargin.kernels.explicit_features` for what they are.

    Parameters
    ----------
    kernel : Kernel
        Of this package or of scikit-learn.
    cut : int, optional
        Degree after which the series of a Gaussian or an exponential ends.

    Attributes
    ----------
    approximation_error_ : float
        Relative error of ``phi(x) . phi(z)`` on pairs of training rows: rounding, or what was cut.
    kernel_ : Kernel

    Examples
    --------
    >>> from maxmargin import ExplicitFeatures
    >>> from maxmargin.kernels import Polynomial
    >>> ExplicitFeatures(Polynomial(2)).fit_transform([[1.0, 2.0]]).round(4)
    array([[1.    , 2.8284, 4.    , 1.4142, 2.8284, 1.    ]])
    """

    _parameter_constraints: dict = {
        "kernel": [Kernel, ScikitLearnKernel],
        "cut": [Interval(Integral, 0, None, closed="left"), None],
    }
    cache_size: Any = "auto"
    gamma: Any = None

    def __init__(self, kernel: Any, *, cut: int | None = None) -> None:
        self.kernel = kernel
        self.cut = cut

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False
        return tags

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None) -> ExplicitFeatures:
        """Resolve the kernel's parameters.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : ignored

        Returns
        -------
        self : ExplicitFeatures
        """
        kernel = self._validated_kernel()
        X, _ = self._validated(X, np.ones(_num_samples(X)), kernel)
        self.kernel_ = kernel.resolve(X, getattr(self, "feature_names_in_", None))
        self._learn(TrainingRows(X))
        return self

    def _learn(self, rows: TrainingRows) -> None:
        some = rows.take(np.arange(min(rows.n, PAIRED)))
        self._n_features_out = self._mapped(some[:1]).shape[1]
        self.approximation_error_ = self._error_on(some)

    def _mapped(self, X: Any) -> np.ndarray:
        return explicit_features(self.kernel_, X, self.cut)
