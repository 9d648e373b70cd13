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

from maxmargin.backends.threads import on_one_blas_thread
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
    kernel : Kernel, {"linear", "poly", "rbf", "sigmoid"} or callable, default="rbf"
    gamma : float, {"scale", "auto"} or None, default=None
        Of the named kernels; None is ``1 / n_features``.
    coef0 : float, default=1.0
    degree : int, default=3
    n_components : int, default=100
        Landmarks, and columns unless the kernel's values among them have a lower rank.
    landmarks : {"pivots", "uniform"}, default="pivots"
        Drawn in proportion to what the others leave of a row (randomly pivoted Cholesky), which
        takes as many rows of the Gram matrix (of more than 50,000 points, that of so many of them
        at random); or all alike, as in scikit-learn.
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
        self._learn(TrainingRows(X, self._gram(X, kernel)))
        return self

    def _learn(self, rows: TrainingRows) -> None:
        """Choose the landmarks, and measure what they leave over."""
        random = check_random_state(self.random_state)
        chosen = self._chosen(rows, random)
        values, vectors = np.linalg.eigh(rows.among(chosen))
        good = values > _RESOLVED * max(float(values[-1]), 0.0)
        self.normalization_ = (vectors[:, good] / np.sqrt(values[good])).T.copy()
        self.component_indices_ = chosen
        self.support_, self.support_vectors_ = chosen.astype(np.int32), rows.take(chosen)
        self.components_ = self.support_vectors_
        self._n_features_out = len(self.normalization_)
        rest = rows.others(random, chosen, PAIRED)
        self.approximation_error_ = float("nan")
        if len(rest) > 1:
            self.approximation_error_ = self._error_on(rows.take(rest))
        self._judge(float(values[0]), float(values[-1]), min(self.n_components, rows.n))

    def _judge(self, least: float, largest: float, wanted: int) -> None:
        """Warn of a kernel that is none, or that has fewer features than were wanted."""
        rank, proven = self._n_features_out, self.kernel_.validity is Validity.VALID
        few, negative = rank < wanted, least < -_INDEFINITE * largest
        if not proven and (negative or (few and self.approximation_error_ > _WRONG)):
            warn(  # where the rank is reached, features of a valid kernel leave nothing over
                f"The kernel {self.kernel_!r} is indefinite on these rows, and features are what "
                f"products can have of it: {rank} columns, with approximation_error_ "
                f"{self.approximation_error_:.2g}. Use a valid kernel, such as RBF().",
                UserWarning,
            )
        elif few:
            warn(
                f"The kernel's values have rank {rank} here: there are so many columns, not "
                f"n_components={self.n_components}. Fewer will do: Nystroem(n_components={rank}).",
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
        return rows.pivots(self, pool, count, int(random.randint(1 << 31)))

    def _mapped(self, X: Any) -> np.ndarray:
        return self._expanded(X, self.normalization_)
