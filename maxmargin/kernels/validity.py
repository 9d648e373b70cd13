"""Is it a kernel? The numerical test of a Gram matrix, and the feature map that it proves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing, check_array, check_random_state

from maxmargin.kernels.base import Kernel
from maxmargin.kernels.named import as_kernel


@dataclass(frozen=True)
class GramTest:
    """Outcome of :func:`check_valid`; true when no eigenvalue is negative beyond rounding."""

    smallest_eigenvalue: float
    largest_eigenvalue: float
    tolerance: float
    asymmetry: float
    n_points: int

    @property
    def valid(self) -> bool:
        """Whether this Gram matrix is symmetric and positive semidefinite to the tolerance."""
        return bool(
            self.asymmetry <= self.tolerance and self.smallest_eigenvalue >= -self.tolerance
        )

    def __bool__(self) -> bool:
        return self.valid

    def __str__(self) -> str:
        if self.asymmetry > self.tolerance:
            verdict = "not symmetric, so not a kernel"
        elif self.valid:
            verdict = "positive semidefinite on these points"
        else:
            verdict = "indefinite, so not a valid kernel"
        return (
            f"{verdict}: smallest eigenvalue {self.smallest_eigenvalue:.3g}, largest "
            f"{self.largest_eigenvalue:.3g}, tolerance {self.tolerance:.1g}, {self.n_points} points"
        )


def check_valid(
    kernel: Kernel | str | Callable,
    X: Any,
    *,
    tol: float | None = None,
    max_points: int = 2000,
    random_state: Any = 0,
) -> GramTest:
    """Test numerically whether a kernel's Gram matrix on X is positive semidefinite.

    A kernel is valid exactly when this holds for *every* set of points, so a negative verdict
    settles the matter and a positive one does not: it says that no counterexample is among these.

    Parameters
    ----------
    kernel : Kernel, name or callable
    X : data of n points, or the square matrix itself for a precomputed kernel
    tol : float, optional
        Eigenvalues down to ``-tol`` count as zero; by default n times the rounding of the largest.
    max_points : int, default=2000
        More points than this are sampled, since the test takes n cubed operations.
    random_state : int, RandomState or None, default=0
        Of that sample.

    Returns
    -------
    GramTest
        With ``smallest_eigenvalue``, ``tolerance``, ``valid`` and a readable form.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.kernels import RBF, Sigmoid, check_valid
    >>> X = np.arange(6.0).reshape(3, 2)
    >>> bool(check_valid(RBF(gamma=1.0), X))
    True
    >>> print(check_valid(Sigmoid(gamma=1.0, coef0=-1.0), X))
    indefinite, so not a valid kernel: smallest eigenvalue -0.712, ...
    """
    kernel = as_kernel(kernel)
    n = X.shape[0] if hasattr(X, "shape") else len(X)
    if n > max_points:
        chosen = np.sort(check_random_state(random_state).choice(n, max_points, replace=False))
        X = np.asarray(X)[np.ix_(chosen, chosen)] if kernel.pairwise else _safe_indexing(X, chosen)
    return examine(kernel(X), tol=tol)


def examine(K: np.ndarray, *, tol: float | None = None) -> GramTest:
    """Test one Gram matrix, as :func:`check_valid` does."""
    K = check_array(K, input_name="the Gram matrix")
    if K.shape[0] != K.shape[1]:
        raise ValueError(f"A Gram matrix is square; got shape {K.shape}.")
    eigenvalues = np.linalg.eigvalsh((K + K.T) / 2)
    scale = float(np.abs(eigenvalues).max())
    return GramTest(
        smallest_eigenvalue=float(eigenvalues[0]),
        largest_eigenvalue=float(eigenvalues[-1]),
        tolerance=4 * len(K) * np.finfo(np.float64).eps * scale if tol is None else float(tol),
        asymmetry=float(np.abs(K - K.T).max()),
        n_points=len(K),
    )


def gram_features(K: Any, *, tol: float | None = None) -> np.ndarray:
    """Return explicit features of any Gram matrix: ``V sqrt(Lambda)``, where ``K = V Lambda V'``.

    Row i is ``phi(x_i) = (sqrt(lambda_t) v_ti)_t``, so that ``phi(x_i) . phi(x_j) = K_ij``: the
    proof that a positive semidefinite matrix is a matrix of inner products.

    Parameters
    ----------
    K : array-like of shape (n, n)
        Symmetric, positive semidefinite to ``tol``; otherwise refused.
    tol : float, optional
        As in :func:`check_valid`.

    Returns
    -------
    features : ndarray of shape (n, r)
        One column per positive eigenvalue, the largest first.

    Examples
    --------
    >>> from maxmargin.kernels import gram_features
    >>> phi = gram_features([[2.0, 1.0], [1.0, 2.0]])
    >>> (phi @ phi.T).round(10)
    array([[2., 1.],
           [1., 2.]])
    """
    K = check_array(K, dtype=np.float64)
    test = examine(K, tol=tol)
    if not test:
        raise ValueError(f"The matrix has no feature map: it is {test}.")
    eigenvalues, vectors = np.linalg.eigh((K + K.T) / 2)
    positive = eigenvalues > test.tolerance
    return (vectors[:, positive] * np.sqrt(eigenvalues[positive]))[:, ::-1]


def quadratic_features(X: Any) -> np.ndarray:
    """Return the explicit feature map of ``(x . z)^2``: all products of two coordinates.

    For two features ``phi(x) = (x1^2, sqrt(2) x1 x2, x2^2)``; in general the squares ``x_i^2`` and
    ``sqrt(2) x_i x_j`` for i < j, in lexicographic order.

    Examples
    --------
    >>> from maxmargin.kernels import quadratic_features
    >>> quadratic_features([[1.0, 2.0]]).round(4)
    array([[1.    , 2.8284, 4.    ]])
    """
    X = check_array(X, dtype=[np.float64, np.float32])
    i, j = np.triu_indices(X.shape[1])
    return X[:, i] * X[:, j] * np.where(i == j, 1.0, np.sqrt(2.0)).astype(X.dtype)
