"""Random Fourier features of kernels of differences.

Reference: Rahimi and Recht, NIPS 20, 2008.
"""

from __future__ import annotations

from functools import singledispatch
from typing import Any

import numpy as np
from sklearn.base import _fit_context
from sklearn.gaussian_process.kernels import Kernel as ScikitLearnKernel
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.validation import _num_samples

from maxmargin.feature_maps.base import PAIRED, FeatureMap, TrainingRows
from maxmargin.kernels import RBF, Kernel, Laplacian, Power, Product, Scaled
from maxmargin.kernels.base import whole_number


class RandomFourier(FeatureMap):
    """Random cosines and sines whose products are, in the mean, a kernel of differences.

    A kernel ``k(x - z)`` is the characteristic function of a distribution of frequencies w:
    ``k(x - z) = E[cos(w . (x - z))]``. So many of them are drawn, and
    ``phi(x) = (cos(w_i . x), sin(w_i . x)) sqrt(2 / n_components)``; the error falls like
    ``1 / sqrt(n_components)``, whatever the data. (The last of an odd number of columns is
    ``sqrt(2) cos(w . x + offset)`` with a random offset.)

    Parameters
    ----------
    kernel : Kernel or "rbf", default="rbf"
        RBF, Laplacian, their products and powers, times a constant, also as a kernel object of
        scikit-learn's; others go to :class:`Nystroem`.
    gamma : float, {"scale", "auto"} or None, default=None
        Of ``"rbf"``; None is ``1 / n_features``.
    n_components : int, default=100
        Columns.
    random_state : int, RandomState or None, default=None

    Attributes
    ----------
    frequencies_ : array of shape (n_features, n_frequencies)
        One for each two columns.
    offset_ : float
    approximation_error_ : float
        ``phi(x) . phi(z) - k(x, z)`` on pairs of training rows, which play no part in the map, root
        mean square, over that of k.
    kernel_ : Kernel

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin import RandomFourier
    >>> X = np.random.default_rng(0).normal(size=(50, 3))
    >>> RandomFourier(n_components=4000, random_state=0).fit(X).approximation_error_ < 0.05
    True
    """

    _parameter_constraints: dict = {
        **FeatureMap._parameter_constraints,
        "kernel": [StrOptions({"rbf"}), Kernel, ScikitLearnKernel],
    }
    cache_size: Any = "auto"

    def __init__(
        self,
        kernel: Any = "rbf",
        *,
        gamma: float | str | None = None,
        n_components: int = 100,
        random_state: Any = None,
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.n_components = n_components
        self.random_state = random_state

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None) -> RandomFourier:
        """Draw the frequencies.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : ignored

        Returns
        -------
        self : RandomFourier
        """
        kernel = self._validated_kernel()
        X, _ = self._validated(X, np.ones(_num_samples(X)), kernel)
        self.kernel_ = kernel.resolve(X, getattr(self, "feature_names_in_", None))
        self._learn(TrainingRows(X))
        return self

    def _learn(self, rows: TrainingRows) -> None:
        random = check_random_state(self.random_state)
        shape = rows.width, (self.n_components + 1) // 2  # sequences have one, and are refused
        self.frequencies_, factor = _spectral(self.kernel_, shape, random)
        self.offset_ = float(random.uniform(0.0, 2.0 * np.pi))
        self._scale = (factor / shape[1]) ** 0.5
        self._n_features_out = int(self.n_components)
        self.approximation_error_ = self._error_on(rows.take(rows.drawn(random, PAIRED)))

    def _mapped(self, X: Any) -> np.ndarray:
        phase = safe_sparse_dot(X, self.frequencies_, dense_output=True)
        paired, single = (
            phase[:, : self._n_features_out // 2],
            phase[:, self._n_features_out // 2 :],
        )
        last = 2.0**0.5 * np.cos(single + self.offset_)
        return self._scale * np.hstack([np.cos(paired), np.sin(paired), last])


@singledispatch
def _spectral(kernel: Any, shape: tuple[int, int], random: Any) -> tuple[np.ndarray, float]:
    """Frequencies (d, count) of a kernel of differences, and its value at zero."""
    raise ValueError(
        f"{kernel!r} is not known as a function of differences with a distribution of frequencies: "
        "RandomFourier takes RBF, Laplacian and their products; Nystroem takes any kernel."
    )


@_spectral.register
def _(kernel: RBF, shape: tuple[int, int], random: Any) -> tuple[np.ndarray, float]:
    return (2.0 * float(kernel.gamma)) ** 0.5 * random.standard_normal(shape), 1.0


@_spectral.register
def _(kernel: Laplacian, shape: tuple[int, int], random: Any) -> tuple[np.ndarray, float]:
    return float(kernel.gamma) * random.standard_cauchy(shape), 1.0


@_spectral.register
def _(kernel: Scaled, shape: tuple[int, int], random: Any) -> tuple[np.ndarray, float]:
    drawn, factor = _spectral(kernel.kernel, shape, random)
    if kernel.constant < 0:
        raise ValueError(f"{kernel!r} has a negative factor: it is no kernel.")
    return drawn, factor * float(kernel.constant)


@_spectral.register
def _(kernel: Product, shape: tuple[int, int], random: Any) -> tuple[np.ndarray, float]:
    parts = [_spectral(part, shape, random) for part in kernel.kernels]
    return np.sum([drawn for drawn, _ in parts], axis=0), float(np.prod([f for _, f in parts]))


@_spectral.register
def _(kernel: Power, shape: tuple[int, int], random: Any) -> tuple[np.ndarray, float]:
    count = whole_number("exponent", kernel.exponent)
    parts = [_spectral(kernel.kernel, shape, random) for _ in range(count)]
    factors = float(np.prod([factor for _, factor in parts]))
    return np.sum([np.zeros(shape), *(drawn for drawn, _ in parts)], axis=0), factors
