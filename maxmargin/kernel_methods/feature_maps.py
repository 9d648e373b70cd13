"""Feature maps of kernels as transformers: approximate ones, and those that can be written out.

    k(x, z) ~ phi(x) . phi(z)

so that linear machines, which take millions of rows, stand in for kernel machines.

References: Williams and Seeger, NIPS 13, 2001 (Nystroem); Chen, Epperly, Tropp and Webber,
Communications on Pure and Applied Mathematics 78, 2025 (pivots at random); Rahimi and Recht, NIPS
20, 2008 (random Fourier features).
"""

from __future__ import annotations

from functools import singledispatch
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin, _fit_context
from sklearn.utils import _safe_indexing, check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.validation import _num_samples, check_is_fitted

from maxmargin.backends.threads import on_one_blas_thread
from maxmargin.estimators.kernel import KernelEstimator
from maxmargin.estimators.tensors import takes_tensors
from maxmargin.estimators.warn import warn
from maxmargin.gram import Gram
from maxmargin.kernels import RBF, Kernel, Laplacian, Power, Product, Scaled, as_kernel
from maxmargin.kernels.features import explicit_features
from maxmargin.solvers.ridge.preconditioner import RandomPivots

_PAIRED = 500  # held-out rows whose pairs say how good an approximation is
_RESOLVED = 1e-12  # part of the largest eigenvalue below which one is rounding


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


class Nystroem(FeatureMap):
    """Features of any kernel, from its values at some landmarks among the training rows.

    With landmarks Z and ``W = k(Z, Z)``, ``phi(x) = W^(-1/2) k(Z, x)``: the projection onto what
    the landmarks span in feature space. It is exact at them, and never longer than the truth.

    Parameters
    ----------
    kernel : Kernel, {"linear", "poly", "rbf", "sigmoid"} or callable, default="rbf"
    gamma : float, {"scale", "auto"} or None, default=None
        Of the named kernels; None is ``1 / n_features``.
    coef0 : float, default=1.0
    degree : int, default=3
    n_components : int, default=100
        Landmarks, and columns unless the kernel's values among them have a lower rank.
    landmarks : {"pivots", "uniform"}, default="pivots"
        Drawn in proportion to what the others leave of a row (randomly pivoted Cholesky), which
        takes as many rows of the Gram matrix; or all alike, as in scikit-learn.
    random_state : int, RandomState or None, default=None
    cache_size, n_jobs, device
        As in :class:`~maxmargin.KernelRidge`.

    Attributes
    ----------
    components_ : the landmarks
    component_indices_ : int array
        Their training rows.
    normalization_ : array of shape (n_columns, n_landmarks)
        ``W^(-1/2)``.
    approximation_error_ : float
        ``phi(x) . phi(z) - k(x, z)`` on pairs of rows that are no landmarks, root mean square, over
        that of k; nan where there are none.
    kernel_ : Kernel

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.pipeline import make_pipeline
    >>> from maxmargin import LinearSVC, Nystroem
    >>> X, y = load_digits(return_X_y=True)
    >>> features = Nystroem(gamma=0.001, n_components=300, random_state=0)
    >>> model = make_pipeline(features, LinearSVC()).fit(X[:1000], y[:1000])
    >>> model.score(X[1000:], y[1000:]) > 0.9
    True
    """

    _parameter_constraints: dict = {
        **FeatureMap._parameter_constraints,
        "landmarks": [StrOptions({"pivots", "uniform"})],
    }

    def __init__(
        self,
        kernel: Any = "rbf",
        *,
        gamma: float | str | None = None,
        coef0: float = 1.0,
        degree: int = 3,
        n_components: int = 100,
        landmarks: str = "pivots",
        random_state: Any = None,
        cache_size: float | str = "auto",
        n_jobs: int | None = None,
        device: str = "cpu",
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.coef0 = coef0
        self.degree = degree
        self.n_components = n_components
        self.landmarks = landmarks
        self.random_state = random_state
        self.cache_size = cache_size
        self.n_jobs = n_jobs
        self.device = device

    @takes_tensors
    @_fit_context(prefer_skip_nested_validation=True)
    @on_one_blas_thread
    def fit(self, X: Any, y: Any = None) -> Nystroem:
        """Choose the landmarks.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : ignored

        Returns
        -------
        self : Nystroem
        """
        kernel = self._validated_kernel()
        if kernel.pairwise:
            raise ValueError("Nystroem needs points to evaluate the kernel at, not a matrix.")
        X, _ = self._validated(X, np.ones(_num_samples(X)), kernel)
        gram = self._gram(X, kernel)
        random = check_random_state(self.random_state)
        chosen = self._chosen(gram, random)
        values, vectors = np.linalg.eigh(gram.block(chosen, chosen))
        good = values > _RESOLVED * max(float(values[-1]), 0.0)
        if good.sum() < min(self.n_components, gram.n):
            warn(
                f"The kernel's values have rank {int(good.sum())} here: there are so many columns, "
                f"not n_components={self.n_components}. Lower it.",
                UserWarning,
            )
        self.normalization_ = (vectors[:, good] / np.sqrt(values[good])).T.copy()
        self.component_indices_ = chosen
        self._keep_support_vectors(X, chosen)
        self.components_ = self.support_vectors_
        self._n_features_out = len(self.normalization_)
        rest = random.permutation(np.setdiff1d(np.arange(gram.n), chosen))[:_PAIRED]
        self.approximation_error_ = self._error_on(X, rest) if len(rest) > 1 else float("nan")
        return self

    def _chosen(self, gram: Gram, random: Any) -> np.ndarray:
        """Rows that become landmarks."""
        count = min(self.n_components, gram.n)
        if self.landmarks == "uniform":
            return random.permutation(gram.n)[:count]
        seed = int(random.randint(1 << 31))
        factor = RandomPivots(gram.rows, gram.diagonal, count, seed, self._workers())
        while factor.grow(enough=0.0):
            pass
        return np.array(factor.pivots, dtype=np.int64)

    def _mapped(self, X: Any) -> np.ndarray:
        return self._expansion_at(X, self.normalization_)


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
        RBF, Laplacian, their products and powers, times a constant; others go to
        :class:`Nystroem`.
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
        "kernel": [StrOptions({"rbf"}), Kernel],
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
    @on_one_blas_thread
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
        random = check_random_state(self.random_state)
        shape = X.shape[1], (self.n_components + 1) // 2
        self.frequencies_, factor = _spectral(self.kernel_, shape, random)
        self.offset_ = float(random.uniform(0.0, 2.0 * np.pi))
        self._scale = (factor / shape[1]) ** 0.5
        self._n_features_out = int(self.n_components)
        self.approximation_error_ = self._error_on(X, random.permutation(X.shape[0])[:_PAIRED])
        return self

    def _mapped(self, X: Any) -> np.ndarray:
        phase = safe_sparse_dot(X, self.frequencies_, dense_output=True)
        paired, single = (
            phase[:, : self._n_features_out // 2],
            phase[:, self._n_features_out // 2 :],
        )
        last = 2.0**0.5 * np.cos(single + self.offset_)
        return self._scale * np.hstack([np.cos(paired), np.sin(paired), last])


class ExplicitFeatures(FeatureMap):
    """The features of a kernel themselves, where they can be written out.

    See :func:`maxmargin.kernels.explicit_features` for what they are.

    Parameters
    ----------
    kernel : Kernel
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
        "kernel": [Kernel],
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
        some = np.arange(min(_num_samples(X), _PAIRED))
        self._n_features_out = self._mapped(X[:1]).shape[1]
        self.approximation_error_ = self._error_on(X, some)
        return self

    def _mapped(self, X: Any) -> np.ndarray:
        return explicit_features(self.kernel_, X, self.cut)


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
    parts = [_spectral(kernel.kernel, shape, random) for _ in range(kernel.exponent)]
    factors = float(np.prod([factor for _, factor in parts]))
    return np.sum([np.zeros(shape), *(drawn for drawn, _ in parts)], axis=0), factors
