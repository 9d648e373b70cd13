"""What the feature maps of kernels share: a kernel, values of features for it, and their error.

    k(x, z) ~ phi(x) . phi(z)

so that linear machines, which take millions of rows, stand in for kernel machines.
"""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import _safe_indexing
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import _num_samples, check_is_fitted

from maxmargin.backends.threads import on_one_blas_thread
from maxmargin.estimators.kernel import KernelEstimator, PairwiseKernels
from maxmargin.estimators.tensors import takes_tensors
from maxmargin.gram import Gram
from maxmargin.kernels import Kernel
from maxmargin.solvers.ridge.preconditioner import RandomPivots

PAIRED = 500  # held-out rows whose pairs say how good an approximation is


class TrainingRows:
    """The rows that a feature map is fitted to: it asks for some of them by their numbers.

    Parameters
    ----------
    X : validated rows
    gram : Gram, optional
        Their Gram matrix, for a map that needs one.
    """

    def __init__(self, X: Any, gram: Gram | None = None) -> None:
        self.X, self.gram = X, gram
        self.n = _num_samples(X)

    @property
    def width(self) -> int:
        """Columns; of sequences, which have none, how many they are."""
        return self.X.shape[-1]

    def drawn(self, random: Any, count: int) -> np.ndarray:
        """So many rows, all alike, at random."""
        return random.permutation(self.n)[:count]

    def others(self, random: Any, chosen: np.ndarray, count: int) -> np.ndarray:
        """So many of the rows that were not chosen, at random."""
        return random.permutation(np.setdiff1d(np.arange(self.n), chosen))[:count]

    def take(self, some: np.ndarray) -> Any:
        """Return these rows."""
        return _safe_indexing(self.X, some)

    def pivots(self, machine: Any, pool: np.ndarray | None, count: int, seed: int) -> np.ndarray:
        """Numbers of rows that randomly pivoted Cholesky draws, out of a pool or of all."""
        gram = self.gram if pool is None or self.gram is None else self.gram.take(pool)
        assert gram is not None
        factor = RandomPivots(gram.rows, gram.diagonal, count, seed, machine._workers())
        while factor.grow(enough=0.0):
            pass
        found = np.array(factor.pivots, dtype=np.int64)
        return found if pool is None else pool[found]

    def among(self, some: np.ndarray) -> np.ndarray:
        """Return the kernel's values among some rows."""
        assert self.gram is not None
        return self.gram.block(some, some)


class FeatureMap(
    ClassNamePrefixFeaturesOutMixin, TransformerMixin, PairwiseKernels, KernelEstimator
):
    """What the three maps share: a kernel, and values of features for it."""

    approximation_error_: float
    gamma: Any = None
    degree: Any = None
    coef0: Any = None
    _of_named = dict.fromkeys(("gamma", "degree", "coef0"))

    _parameter_constraints: dict = {
        **KernelEstimator._parameter_constraints,
        **PairwiseKernels._parameter_constraints,
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
    }

    def _validated_kernel(self) -> Kernel:
        """Return the kernel; gamma, degree and coef0 are refused beside anything but a name."""
        named = isinstance(self.kernel, str) and self.kernel != "precomputed"
        if not named and any(getattr(self, name) is not None for name in self._of_named):
            raise ValueError(
                f"Don't pass gamma, coef0 or degree to {type(self).__name__} if using a callable "
                "or precomputed kernel: they belong to the names, and a kernel object has its own."
            )
        return super()._validated_kernel()

    def _learn(self, rows: TrainingRows) -> None:
        """Fit the map to rows, with the kernel that is there; sets its attributes."""
        raise NotImplementedError

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _error_on(self, some: Any, K: np.ndarray | None = None) -> float:
        """Root mean square of ``phi(x) . phi(z) - k(x, z)`` among some rows, over that of k."""
        phi = np.asarray(self._mapped(some))
        K = Gram.of(some, self.kernel_).dense() if K is None else K
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
        X = self._validated_points(X, self.kernel_)
        features = self._mapped(X)
        if getattr(X, "dtype", None) == np.float32:
            with np.errstate(over="ignore"):  # refused below
                features = features.astype(np.float32)
        with np.errstate(over="ignore", invalid="ignore"):
            total = features.sum()
        if not np.isfinite(total) and not np.isfinite(features).all():
            raise ValueError(
                f"The features of these rows are infinite or nan in {features.dtype}: X is too "
                "large for the kernel. Scale it, as with sklearn.preprocessing.StandardScaler."
            )
        return features
