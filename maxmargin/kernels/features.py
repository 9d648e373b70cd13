"""Feature maps written out: ``k(x, z) = phi(x) . phi(z)`` where phi is finite, or its series cut.

Every rule that builds a kernel builds its features, too:

    k1 + k2          both sets of columns            k1 k2      all products of a column of each
    c k              sqrt(c) phi                     f k f      f(x) phi
    sum_m c_m k^m    sqrt(c_m m! / a!) phi^a  for every multi-index a with |a| = m

The last one is the polynomial kernel, ``(x . z + c)^M`` with its C(n + M, M) columns, of which the
first step is x -> (x, sqrt(c)); the exponential, cut at some m; and the Gaussian, as
``exp(-g x.x) exp(2g x.z) exp(-g z.z)``: in one dimension, with ``2 g = 1 / sigma^2``, its features
are ``exp(-x^2 / 2 sigma^2) x^k / (sigma^k sqrt(k!))``.

References: seed 001, "Constructing kernels"; Cotter, Keshet and Srebro, arXiv 1109.4603 (series).
"""

from __future__ import annotations

from functools import reduce, singledispatch
from itertools import combinations_with_replacement
from math import comb, factorial
from typing import Any

import numpy as np
from sklearn.utils import check_array

from maxmargin.backends.data import as_table
from maxmargin.kernels.algebra import (
    Conformal,
    Exponential,
    Mapped,
    Normalized,
    OnColumns,
    PolynomialOf,
    Power,
    Product,
    Scaled,
    Shifted,
    Sum,
)
from maxmargin.kernels.base import Input, Kernel, whole_number
from maxmargin.kernels.distance import RBF
from maxmargin.kernels.dot_product import Linear, Polynomial, QuadraticForm, _square_root
from maxmargin.kernels.sequences.base import FeatureKernel

_MOST = 100_000  # columns that anyone would want written out


def explicit_features(kernel: Kernel, X: Any, cut: int | None = None) -> np.ndarray:
    """Features of a kernel at the rows of X: ``phi(x) . phi(z)`` is ``k(x, z)``.

    Parameters
    ----------
    kernel : Kernel
        Made of linear, polynomial, quadratic and Gaussian kernels, or of kernels on sequences that
        count words, by the rules above; parameters that depend on the data are those of X.
    X : array-like of shape (n, d), or sequences
    cut : int, optional
        Degree after which the series of a Gaussian or an exponential ends; theirs is infinite.

    Returns
    -------
    features : array of shape (n, M)

    Examples
    --------
    >>> from maxmargin.kernels import RBF, Linear, Polynomial, explicit_features
    >>> explicit_features(Linear() + 4, [[1.0, 2.0]])  # x -> (x, sqrt(c))
    array([[1., 2., 2.]])
    >>> explicit_features(Polynomial(2), [[1.0, 2.0]]).round(4)  # C(2 + 2, 2) columns
    array([[1.    , 2.8284, 4.    , 1.4142, 2.8284, 1.    ]])
    >>> phi = explicit_features(RBF(sigma=1.0), [[0.5], [1.0]], cut=6)
    >>> (phi @ phi.T).round(4), RBF(sigma=1.0)([[0.5], [1.0]]).round(4)
    (array([[1.    , 0.8825],
           [0.8825, 0.9999]]), array([[1.    , 0.8825],
           [0.8825, 1.    ]]))
    """
    X = as_table(X) if kernel.input is Input.SEQUENCES else check_array(X, dtype=np.float64)
    return _features(kernel.resolve(X), X, cut)


def polynomial_columns(features: int, degree: int) -> int:
    """Columns of ``(x . z + c)^M``: C(n + M, M).

    >>> [polynomial_columns(10, degree) for degree in (1, 2, 3, 4)]
    [11, 66, 286, 1001]
    """
    return comb(features + degree, degree)


@singledispatch
def _features(kernel: Any, X: np.ndarray, cut: int | None) -> np.ndarray:
    raise ValueError(
        f"{kernel!r} has no features that could be written out here: Nystroem has approximate ones "
        "for any kernel."
    )


@_features.register
def _(kernel: Linear, X: np.ndarray, cut: int | None) -> np.ndarray:
    return X


@_features.register
def _(kernel: FeatureKernel, X: np.ndarray, cut: int | None) -> np.ndarray:
    features = kernel.features(X)
    _refuse_many(features.shape[1], kernel)
    return features.toarray()


@_features.register
def _(kernel: QuadraticForm, X: np.ndarray, cut: int | None) -> np.ndarray:
    return X @ _square_root(kernel.A)


@_features.register
def _(kernel: Polynomial, X: np.ndarray, cut: int | None) -> np.ndarray:
    M, gamma = whole_number("degree", kernel.degree), float(kernel.gamma)
    weights = [comb(M, m) * gamma**m * float(kernel.coef0) ** (M - m) for m in range(M + 1)]
    return _series(X, weights, kernel)


@_features.register
def _(kernel: RBF, X: np.ndarray, cut: int | None) -> np.ndarray:
    gamma = float(kernel.gamma)
    decay = np.exp(-gamma * np.einsum("ij,ij->i", X, X))
    weights = [(2.0 * gamma) ** m / factorial(m) for m in range(_known(cut, kernel) + 1)]
    return decay[:, None] * _series(X, weights, kernel)


@_features.register
def _(kernel: Exponential, X: np.ndarray, cut: int | None) -> np.ndarray:
    weights = [1.0 / factorial(m) for m in range(_known(cut, kernel) + 1)]
    return _series(_features(kernel.kernel, X, cut), weights, kernel)


@_features.register
def _(kernel: Power, X: np.ndarray, cut: int | None) -> np.ndarray:
    weights = [0.0] * whole_number("exponent", kernel.exponent) + [1.0]
    return _series(_features(kernel.kernel, X, cut), weights, kernel)


@_features.register
def _(kernel: PolynomialOf, X: np.ndarray, cut: int | None) -> np.ndarray:
    return _series(_features(kernel.kernel, X, cut), list(kernel.coefficients), kernel)


@_features.register
def _(kernel: Shifted, X: np.ndarray, cut: int | None) -> np.ndarray:
    return _series(_features(kernel.kernel, X, cut), [float(kernel.constant), 1.0], kernel)


@_features.register
def _(kernel: Scaled, X: np.ndarray, cut: int | None) -> np.ndarray:
    return _series(_features(kernel.kernel, X, cut), [0.0, float(kernel.constant)], kernel)


@_features.register
def _(kernel: Sum, X: np.ndarray, cut: int | None) -> np.ndarray:
    return np.hstack([_features(part, X, cut) for part in kernel.kernels])


@_features.register
def _(kernel: Product, X: np.ndarray, cut: int | None) -> np.ndarray:
    parts = [_features(part, X, cut) for part in kernel.kernels]
    _refuse_many(int(np.prod([float(part.shape[1]) for part in parts])), kernel)
    return reduce(lambda a, b: (a[:, :, None] * b[:, None, :]).reshape(len(a), -1), parts)


@_features.register
def _(kernel: Conformal, X: np.ndarray, cut: int | None) -> np.ndarray:
    factor = np.asarray(kernel.f(X), dtype=np.float64).reshape(len(X), 1)
    return factor * _features(kernel.kernel, X, cut)


@_features.register
def _(kernel: Normalized, X: np.ndarray, cut: int | None) -> np.ndarray:
    phi = _features(kernel.kernel, X, cut)
    length = np.linalg.norm(phi, axis=1, keepdims=True)
    return phi / np.where(length > 0, length, 1.0)


@_features.register
def _(kernel: Mapped, X: np.ndarray, cut: int | None) -> np.ndarray:
    return _features(kernel.kernel, np.asarray(kernel.feature_map(X), dtype=np.float64), cut)


@_features.register
def _(kernel: OnColumns, X: np.ndarray, cut: int | None) -> np.ndarray:
    return _features(kernel.kernel, X[:, list(kernel.columns)], cut)


def _series(phi: np.ndarray, weights: list[float], kernel: Kernel) -> np.ndarray:
    """Features of ``sum_m weights[m] (u . v)^m`` at rows u, the highest degree first."""
    if min(weights) < 0:
        raise ValueError(f"{kernel!r} has a negative weight, and so no features that are real.")
    n, p = phi.shape
    degrees = [m for m, weight in enumerate(weights) if weight > 0]
    _refuse_many(sum(comb(p + m - 1, m) for m in degrees), kernel)
    columns = []
    for m in reversed(degrees):
        for chosen in combinations_with_replacement(range(p), m):
            repeats = np.unique(chosen, return_counts=True)[1]
            many = factorial(m) / float(np.prod([factorial(k) for k in repeats]))
            columns.append(np.sqrt(weights[m] * many) * phi[:, list(chosen)].prod(axis=1))
    return np.column_stack(columns) if columns else np.zeros((n, 0))


def _known(cut: int | None, kernel: Kernel) -> int:
    if cut is None:
        raise ValueError(
            f"The series of {kernel!r} has no end: say with cut= after which degree to cut it."
        )
    return cut


def _refuse_many(columns: int, kernel: Kernel) -> None:
    if columns > _MOST:
        raise ValueError(
            f"{kernel!r} has {columns:,} features here, and more than {_MOST:,} are not written "
            "out: use the kernel itself, or Nystroem."
        )
