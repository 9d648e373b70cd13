"""Features of any kernel from its values at landmarks among the training rows.

References: Williams and Seeger, NIPS 13, 2001; Chen, Epperly, Tropp and Webber, Communications on
Pure and Applied Mathematics 78, 2025 (pivots at random).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import _fit_context
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import _num_samples

from maxmargin.estimators.tensors import takes_tensors
from maxmargin.estimators.warn import warn
from maxmargin.feature_maps.base import PAIRED, FeatureMap, TrainingRows
from maxmargin.kernels import Validity

_POOL, _PER_LANDMARK = 50_000, 10  # rows that pivots are drawn from, at most: a factor has them all
_RESOLVED = 1e-12  # part of the largest eigenvalue below which one is rounding
_INDEFINITE = 1e-8  # and below minus which it is none
_WRONG = 1e-5  # error that a valid kernel does not have where its rank is reached


class Nystroem(FeatureMap):
    """Features of any kernel, from its values at some landmarks among the training rows.

    With landmarks Z and ``W = k(Z, Z)``, ``phi(x) = W^(-1/2) k(Z, x)``: the projection onto what
    the landmarks span in feature space. It is exact at them, and never longer than the truth.

    Parameters
    ----------
    kernel : Kernel, name or callable, default="rbf"
        A kernel object of :mod:`maxmargin.kernels` or of scikit-learn's; ``"precomputed"`` or a
        name of ``pairwise_kernels``; or a function of two rows.
    gamma : float, {"scale", "auto"} or None, default=None
    coef0 : float, optional
    degree : float, optional
        Of the named kernels only. None is ``1 / n_features`` (of ``"chi2"`` 1), 1 and 3.
    kernel_params : dict, optional
        Keyword arguments of a function of two rows.
    n_components : int, default=100
        Landmarks and columns; no more than there are rows.
    landmarks : {"pivots", "uniform"}, default="pivots"
        Drawn in proportion to what the others leave of a row (randomly pivoted Cholesky), which
        takes as many rows of the Gram matrix (of more than 50,000 points, that of so many of them
        at random), and then at random; or all alike, as in scikit-learn.
    random_state : int, RandomState or None, default=None
    cache_size, n_jobs, device
        As in :class:`~maxmargin.KernelRidge`.

    Attributes
    ----------
    components_ : the landmarks
    component_indices_ : int array
        Their training rows.
    normalization_ : array of shape (n_landmarks, n_landmarks)
        ``W^(-1/2)``, of the pseudo-inverse where W is singular.
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
        coef0: float | None = None,
        degree: float | None = None,
        kernel_params: dict[str, Any] | None = None,
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
        self.kernel_params = kernel_params
        self.n_components = n_components
        self.landmarks = landmarks
        self.random_state = random_state
        self.cache_size = cache_size
        self.n_jobs = n_jobs
        self.device = device

    @takes_tensors
    @_fit_context(prefer_skip_nested_validation=True)
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
        X, _ = self._validated(X, np.ones(_num_samples(X)), kernel)
        self._learn(TrainingRows(X, self._gram(X, kernel)))
        return self

    def _learn(self, rows: TrainingRows) -> None:
        """Choose the landmarks, and measure what they leave over."""
        random = check_random_state(self.random_state)
        chosen = self._chosen(rows, random)
        values, vectors = np.linalg.eigh(rows.among(chosen))
        good = values > _RESOLVED * max(float(values[-1]), 0.0)
        V = vectors[:, good]
        # float64 for float32 rows, too: entries grow with the square root of W's condition number
        self.normalization_ = (V / np.sqrt(values[good])) @ V.T
        self.component_indices_, self.components_ = chosen, rows.take(chosen)
        self.support_, self.support_vectors_ = chosen.astype(np.int32), self.components_
        if self.kernel_.pairwise:
            self.support_vectors_ = np.empty((0, 0))  # columns of a row are all that is needed
        self._n_features_out = len(self.normalization_)
        rest = rows.others(random, chosen, PAIRED)
        self.approximation_error_ = float("nan")
        if len(rest) > 1:
            self.approximation_error_ = self._error_on(rows.take(rest), rows.among(rest))
        self._judge(float(values[0]), float(values[-1]), int(good.sum()))

    def _judge(self, least: float, largest: float, rank: int) -> None:
        """Warn of a kernel that is not positive semidefinite on these rows."""
        proven = self.kernel_.validity is Validity.VALID
        few, negative = rank < self._n_features_out, least < -_INDEFINITE * abs(largest)
        if not proven and (negative or (few and self.approximation_error_ > _WRONG)):
            warn(  # where the rank is reached, features of a valid kernel leave nothing over
                f"The kernel {self.kernel_!r} is indefinite on these rows, and features are what "
                f"products can have of it: of rank {rank}, with approximation_error_ "
                f"{self.approximation_error_:.2g}. Use a valid kernel, such as RBF().",
                UserWarning,
            )

    def _chosen(self, rows: TrainingRows, random: Any) -> np.ndarray:
        """Rows that become landmarks."""
        count = min(self.n_components, rows.n)
        if self.landmarks == "uniform":
            return rows.drawn(random, count)
        pool, most = None, max(_POOL, _PER_LANDMARK * count)
        if rows.n > most:
            pool = np.sort(rows.drawn(random, most))
        found = rows.pivots(self, pool, count, int(random.randint(1 << 31)))
        if len(found) == count:
            return found
        return np.append(found, rows.others(random, found, count - len(found)))  # W is singular

    def _mapped(self, X: Any) -> np.ndarray:
        return self._expanded(X, self.normalization_)
