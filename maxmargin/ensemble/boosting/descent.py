"""Boosting as coordinate descent: one weight of a dictionary of hypotheses at a time.

Let H be the table of all hypotheses, ``H_ij = h_j(x_i)`` of values -1 and +1. AdaBoost minimises

    L(a) = sum_i s_i V(y_i (H a)_i),   V(u) = exp(-u)

by coordinate descent: along coordinate j, with e the error of h_j on the distribution in proportion
to ``s_i exp(-u_i)``, the loss becomes ``L(a) ((1 - e) exp(-t) + e exp(t))``, which is least at
``t = 1/2 log((1 - e) / e)``, alpha, and there is ``L(a) 2 sqrt(e (1 - e))``, Z times as large. The
coordinate along which it falls most is the hypothesis whose error is furthest from 1/2; if with
each hypothesis its opposite is in the dictionary, the one of the least error.

References: Breiman, Prediction games and arcing algorithms, Neural Computation 11, 1999; Mason,
Baxter, Bartlett and Frean, Boosting algorithms as gradient descent, NIPS 1999.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar
from sklearn.utils.validation import check_array

from maxmargin.losses import Exponential, MarginLoss
from maxmargin.multiclass import read_labels
from maxmargin.solvers import Staircase, coordinate_ascent


def stump_dictionary(X: Any) -> tuple[np.ndarray, list[tuple[int, float]]]:
    """Return all stumps on the rows of X as a table of -1 and +1, and their tests.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)

    Returns
    -------
    H : float array of shape (n_samples, n_stumps)
        +1 where ``x_j > t``. The opposite of a stump is a negative weight.
    tests : list of (j, t)
        By column, then by threshold; the first is the constant +1, ``(-1, -inf)``.

    Examples
    --------
    >>> from maxmargin.ensemble import stump_dictionary
    >>> H, tests = stump_dictionary([[1.0], [2.0], [4.0]])
    >>> tests
    [(-1, -inf), (0, 1.5), (0, 3.0)]
    >>> H[:, 1]
    array([-1.,  1.,  1.])
    """
    X = check_array(X, dtype=np.float64)
    tests = [(-1, -np.inf)]
    columns = [np.ones(len(X))]
    for j in range(X.shape[1]):
        values = np.unique(X[:, j])
        for t in 0.5 * values[:-1] + 0.5 * values[1:]:
            tests.append((j, float(t)))
            columns.append(np.where(X[:, j] > t, 1.0, -1.0))
    return np.column_stack(columns), tests


def boosting_descent(
    H: Any,
    y: Any,
    *,
    loss: MarginLoss | None = None,
    sample_weight: Any = None,
    max_iter: int = 100,
    tol: float = 1e-10,
) -> Staircase:
    """Minimise a loss over the weights of given hypotheses, one at a time, to the best place.

        minimise  sum_i s_i V(y_i sum_j a_j h_j(x_i))

    For the exponential loss the steps are AdaBoost's rounds, with the same hypotheses and alphas,
    and their factors are its normalisers. It is :func:`~maxmargin.solvers.coordinate_ascent` on
    minus the loss, in the order of the greatest improvement: for dictionaries that can be written
    down. :class:`AdaBoostClassifier` has a weak learner search for the coordinate instead.

    Parameters
    ----------
    H : array-like of shape (n_samples, n_hypotheses)
        Values of the hypotheses, -1 and +1.
    y : array-like of shape (n_samples,)
        Two classes.
    loss : MarginLoss, optional
        By default the exponential one.
    sample_weight : array-like of shape (n_samples,), optional
        By default all rows have the weight ``1 / n``.
    max_iter : int, default=100
        Rounds.
    tol : float, default=1e-10
        It ends when a round lowers the loss by no more than this, relative to one plus it.

    Returns
    -------
    way : Staircase
        ``points`` are the weights after each round, ``values`` minus the loss, ``coordinates`` the
        hypotheses.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.ensemble import boosting_descent, stump_dictionary
    >>> X = [[1, 4], [2, 2], [5, 10], [7, 8], [8, 7], [3, 6], [4, 5], [6, 3], [9, 9], [10, 1]]
    >>> H, tests = stump_dictionary(X)
    >>> way = boosting_descent(H, [1] * 5 + [0] * 5, max_iter=3)
    >>> [tests[j] for j in way.coordinates]
    [(0, 2.5), (0, 8.5), (1, 6.5)]
    >>> np.abs(np.diff(way.points, axis=0)).max(axis=1).round(2)
    array([0.42, 0.65, 0.92])
    """
    H = check_array(H, dtype=np.float64)
    if not np.isin(H, (-1.0, 1.0)).all():
        raise ValueError("H has values other than -1 and +1: hypotheses have no others here.")
    classes, index = read_labels(y)
    if len(classes) != 2 or len(index) != len(H):
        raise ValueError(
            f"boosting_descent takes two classes and a label for each of the {len(H)} rows of H; "
            f"got {len(classes)} classes and {len(index)} labels."
        )
    V = Exponential() if loss is None else loss
    s = np.full(len(H), 1.0 / len(H)) if sample_weight is None else np.asarray(sample_weight, float)
    s = s / s.sum()
    Y = np.where(index == 1, 1.0, -1.0)[:, None] * H
    if (np.abs(s @ Y) >= 1.0 - 1e-15).any():
        raise ValueError(
            "A hypothesis is right, or wrong, on every row: its weight would grow without end."
        )

    def gain(a: np.ndarray) -> float:
        # to twelve digits: of equally good hypotheses the first, not what rounding says
        return -float(f"{s @ V.value(Y @ a):.12e}")

    def best(a: np.ndarray, j: int) -> float:
        u = Y @ a
        if isinstance(V, Exponential):
            D = s * np.exp(u.min() - u)
            right = D[Y[:, j] > 0].sum() / D.sum()
            return float(a[j] + 0.5 * np.log(right / (1.0 - right)))
        return float(
            a[j] + minimize_scalar(lambda t: s @ V.value(u + t * Y[:, j]), bracket=(-1.0, 1.0)).x
        )

    return coordinate_ascent(
        gain,
        np.zeros(H.shape[1]),
        maximise=best,
        order="greatest",
        max_iter=max_iter,
        tol=tol,
    )
