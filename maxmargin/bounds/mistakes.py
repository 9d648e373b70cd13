"""How many mistakes a perceptron can make: Novikoff's theorem."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_consistent_length
from sklearn.utils.extmath import row_norms, safe_sparse_dot
from sklearn.utils.validation import column_or_1d

from maxmargin.backends.data import check_array
from maxmargin.bounds.bound import Bound


def mistake_bound(
    X: Any, y: Any, w: Any, b: float | None, start: Any = None, *, step: float = 1.0
) -> Bound:
    """Bound the mistakes of the perceptron on data that the hyperplane (w, b) separates.

    The intercept is a weight on a constant one. With ``v = (w, b)``, ``z_i = (x_i, 1)``,
    ``beta^2 = max_i ||z_i||^2``, ``gamma = min_i y_i (v . z_i)`` and a start at zero there are at
    most

        beta^2 ||v||^2 / gamma^2

    mistakes, in any order of the rows, however often they are seen. From another start ``v_1``
    every ``a > beta^2 / (2 gamma)`` gives the bound ``||v_1 - a v||^2 / (2 a gamma - beta^2)``. The
    smallest of them is returned:

        M / 2 - m + sqrt((M / 2 - m)^2 + (||v||^2 ||v_1||^2 - (v . v_1)^2) / gamma^2)

    with M the bound from zero and ``m = v . v_1 / gamma``. (``a = beta^2 / gamma`` gives
    ``||v_1 - a v||^2 / beta^2``, the best choice for the start at zero only.)

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
    y : array-like of shape (n_samples,)
        Labels of two classes; the second in order is the positive one.
    w : array-like of shape (n_features,)
    b : float or None
        With None the perceptron has no intercept, and no constant is added to the rows.
    start : tuple of (array-like of shape (n_features,), float), optional
        Weights and intercept that the perceptron begins with; zero by default.
    step : float, default=1.0
        Size of the perceptron's steps. It matters for a start that is not zero.

    Returns
    -------
    bound : Bound
        Its value is a whole number.

    Examples
    --------
    >>> from maxmargin.bounds import mistake_bound
    >>> X, y = [[0.0, 0.0], [2.0, 2.0]], [-1, 1]
    >>> mistake_bound(X, y, w=[1.0, 1.0], b=-2.0).value  # 9 * 6 / 2**2
    13.0
    """
    X = check_array(X, accept_sparse="csr", dtype=[np.float64, np.float32])
    check_consistent_length(X, y)
    if not step > 0:
        raise ValueError(f"The perceptron's step must be positive, got {step!r}.")
    w = column_or_1d(np.asarray(w, dtype=np.float64).ravel())
    labels = column_or_1d(y)
    classes = np.unique(labels)
    if len(classes) != 2:
        raise ValueError(
            f"The perceptron tells two classes apart, and y has {len(classes)}: bound the mistakes "
            "of each class against the rest."
        )
    v = w if b is None else np.append(w, b)
    sign = np.where(labels == classes[1], 1.0, -1.0)
    values = safe_sparse_dot(X, w, dense_output=True) + (0.0 if b is None else b)
    beta2 = float(row_norms(X, squared=True).max()) + (b is not None)
    first = _start(start, len(w), b is not None) / step
    return novikoff(sign * values, beta2, float(v @ v), float(v @ first), float(first @ first))


def novikoff(
    margins: np.ndarray, beta2: float, square: float, inner: float = 0.0, first: float = 0.0
) -> Bound:
    """Bound the perceptron's mistakes where only products of rows and weights are known.

    The formula of :func:`mistake_bound` with ``beta2`` the largest ``||z_i||^2``, ``square`` for
    ``||v||^2``, ``inner`` for ``v . v_1`` and ``first`` for ``||v_1||^2``, where ``v_1`` is the
    start over the step.

    Parameters
    ----------
    margins : float array of shape (n_samples,)
        ``y_i (v . z_i)``.
    beta2, square, inner, first : float

    Returns
    -------
    bound : Bound

    Examples
    --------
    >>> from maxmargin.bounds import novikoff
    >>> novikoff(np.array([2.0, 2.0]), beta2=9.0, square=6.0).value
    13.0
    """
    gamma = float(margins.min())
    if not gamma > 0:
        raise ValueError(
            f"The weights and the intercept do not separate the data, as Novikoff's theorem needs: "
            f"{int((margins <= 0).sum())} of {len(margins)} rows are on the wrong side or on the "
            "boundary. maxmargin.is_separable finds a separator if there is one, and for a kernel "
            "SVC(C=numpy.inf) does; if there is none the perceptron never stops making mistakes."
        )
    across = (square * first - inner**2) / gamma**2
    half = 0.5 * beta2 * square / gamma**2 - inner / gamma
    mistakes = half + np.sqrt(half**2 + max(across, 0.0))
    return Bound(
        value=float(np.floor(mistakes * (1 + 1e-12))),
        quantity="The number of the perceptron's mistakes",
        theorem="Novikoff 1962",
        assumptions=("every mistake on row i adds step * y_i * (x_i, 1) to the weights",),
        vacuous_from=np.inf,
    )


def _start(start: Any, n_features: int, intercept: bool) -> np.ndarray:
    """Weights and intercept in one vector."""
    if start is None:
        return np.zeros(n_features + intercept)
    weights, constant = start
    weights = np.asarray(weights, dtype=np.float64).ravel()
    if len(weights) != n_features:
        raise ValueError(f"start has {len(weights)} weights, but X has {n_features} features.")
    if not intercept and constant:
        raise ValueError("start has an intercept, but b is None: give b, or start=(weights, 0.0).")
    return np.append(weights, constant) if intercept else weights
