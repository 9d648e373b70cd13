"""Whether two classes can be separated by a hyperplane: the linear programme's view.

With signed rows ``z_i = y_i x_i`` the programme

    minimise |sum_i lambda_i z_i|_1   subject to   lambda >= 0,  sum_i lambda_i = 1,
                                                   sum_i lambda_i y_i = 0

looks for the place where the convex hulls of the two classes are nearest to each other. Its dual,

    maximise t   subject to   y_i (w . x_i + b) >= t,   |w|_inf <= 1,

looks for the separator. By Farkas's lemma one of the two has a proof: if the minimum is positive,
w and b separate; if it is zero, ``lambda`` writes one and the same point as a combination of either
class, and no hyperplane has it on both sides. Without b the last constraint is absent, and lambda
combines the signed rows to zero. Where there are more features than rows a second programme asks
for the same in another way, and is far faster:

    maximise sum_i lambda_i   subject to   0 <= lambda <= 1,  sum_i lambda_i z_i = 0,
                                           sum_i lambda_i y_i = 0,

whose maximum is zero if there is a separator (the constraints' multipliers), and else lambda.

References: seed 000; Mangasarian, Operations Research 13, 1965; Huangfu and Hall, Mathematical
Programming Computation 10, 2018 (HiGHS).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog
from sklearn.utils import check_X_y
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, column_or_1d

from maxmargin.backends.data import refuse_unusable
from maxmargin.backends.threads import around_fit

_TOLERANCE = 1e-10  # of the linear programme: the smallest that HiGHS takes
_TOUCHING = 1e-13  # of the data's range: nearer than this, hulls count as touching


@dataclass(frozen=True)
class Separability:
    """The verdict on two classes, with its proof; true if they can be separated.

    Attributes
    ----------
    separable : bool
    coef : float array of shape (n_features,) or None
    intercept : float or None
        A separator, ``y_i (coef . x_i + intercept) > 0`` for every row.
    margin : float
        ``min_i y_i (coef . x_i + intercept) / ||coef||``, less what rounding may have added to it;
        zero if there is no separator.
    certificate : float array of shape (n_samples,) or None
        Weights lambda of the rows. Those of each class are non-negative and sum to one, and both
        classes combine to the same point: ``sum_i lambda_i y_i x_i = 0``. Without an intercept
        all of them together sum to one.
    residual : float
        By how much the worst of these sums misses, as a share of its feature's range; nan if there
        is no certificate.
    """

    separable: bool
    coef: np.ndarray | None = None
    intercept: float | None = None
    margin: float = 0.0
    certificate: np.ndarray | None = None
    residual: float = np.nan

    def __bool__(self) -> bool:
        return self.separable


@around_fit
def is_separable(
    X: Any,
    y: Any,
    *,
    fit_intercept: bool = True,
    sample_weight: Any = None,
    time_limit: float | None = None,
) -> Separability:
    """Say whether two classes are linearly separable, and prove it.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
    y : array-like of shape (n_samples,)
        Labels of any type, of two classes.
    fit_intercept : bool, default=True
        Without it only hyperplanes through the origin count.
    sample_weight : array-like of shape (n_samples,), optional
        Rows of weight zero take no part; other weights make no difference.
    time_limit : float, optional
        Seconds that the solver may take.

    Returns
    -------
    verdict : Separability
        True or false, with a separator or with a certificate that there is none. Either has been
        checked on the data as given, the separator against the rounding of its own values.

    Raises
    ------
    RuntimeError
        If neither could be proven: the classes are apart, but by less than float64 can tell, or
        the time was over.

    Examples
    --------
    >>> from maxmargin.linear.separability import is_separable
    >>> X = [[0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [1.0, 0.0]]
    >>> verdict = is_separable(X, ["even", "even", "odd", "odd"])
    >>> bool(verdict), verdict.certificate
    (False, array([0.5, 0.5, 0.5, 0.5]))
    >>> bool(is_separable(X, ["both", "one", "both", "both"]))
    True
    """
    refuse_unusable(X)
    X, y = check_X_y(X, y, dtype=[np.float64, np.float32], accept_sparse="csr", y_numeric=False)
    labels = column_or_1d(y)
    check_classification_targets(labels)
    weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    rows = np.flatnonzero(weight > 0)
    classes, index = np.unique(labels[rows], return_inverse=True)
    if len(classes) != 2:
        raise ValueError(
            f"The verdict is on two classes, and y has {len(classes)} with a positive weight. Of "
            "several, ask for each against the rest: is_separable(X, y == label)."
        )
    signs = np.where(index == 1, 1.0, -1.0)
    part = X if len(rows) == X.shape[0] else X[rows]
    scaled, scale = _scaled(part, centred=fit_intercept)
    weights, w = _solve(scaled, signs, fit_intercept, time_limit)
    found = _separator(part, signs, w / scale, fit_intercept)
    if found is not None:
        return found
    weights, residual = _certificate(scaled, signs, weights, fit_intercept)
    if residual > _TOUCHING:
        raise RuntimeError(
            "Neither a separator nor a certificate could be proven: the classes are so near to "
            f"each other (certificate's residual {residual:.3g} of the data's range) that the "
            "verdict is beyond float64. Scaling or removing nearly constant features may help."
        )
    certificate = np.zeros(len(labels))
    certificate[rows] = weights
    return Separability(False, certificate=certificate, residual=residual)


def _scaled(X: Any, centred: bool) -> tuple[Any, np.ndarray]:
    """Data in float64 with every feature in [-1, 1], and what the features were divided by.

    A hyperplane with a bias does not mind where the origin is, so that dense data are centred.
    """
    if sp.issparse(X):
        scale = abs(X).max(axis=0).toarray().ravel().astype(np.float64)
    else:
        X = X.astype(np.float64)
        X -= X.mean(axis=0) * centred
        scale = np.abs(X).max(axis=0)
    scale[scale == 0.0] = 1.0
    return X.multiply(1.0 / scale).tocsr() if sp.issparse(X) else X / scale, scale


def _solve(
    X: Any, signs: np.ndarray, fit_intercept: bool, time_limit: float | None
) -> tuple[np.ndarray, np.ndarray]:
    """Return lambda and w, from the programme that is faster for data of this shape."""
    options = dict.fromkeys(
        ("primal_feasibility_tolerance", "dual_feasibility_tolerance"), _TOLERANCE
    )
    if time_limit is not None:
        options["time_limit"] = float(time_limit)
    n, d = X.shape
    signed = sp.csr_array(X).multiply(signs[:, None])
    bias = signs[:, None] if fit_intercept else np.empty((n, 0))
    terms = _nearest_points(signed, bias) if n >= d else _largest_weights(signed, bias)
    answer = linprog(**terms, method="highs", options=options)
    if answer.status != 0:
        raise RuntimeError(f"The linear programme was not solved: {answer.message}")
    return answer.x[:n], -answer.eqlin.marginals[:d]


def _nearest_points(signed: Any, bias: np.ndarray) -> dict[str, Any]:
    """Return the first programme: lambda, and ``p - q`` that is what is left of the sum."""
    n, d = signed.shape
    left = sp.eye_array(d)
    sums = np.column_stack([bias, np.ones(n)])
    rest = sp.csr_array((sums.shape[1], d))
    return {
        "c": np.append(np.zeros(n), np.ones(2 * d)),
        "A_eq": sp.block_array([[signed.T, left, -left], [sums.T, rest, rest]], format="csc"),
        "b_eq": np.append(np.zeros(d + sums.shape[1] - 1), 1.0),
    }


def _largest_weights(signed: Any, bias: np.ndarray) -> dict[str, Any]:
    """Return the second programme."""
    terms = sp.hstack([signed, bias], format="csr").T
    return {
        "c": -np.ones(terms.shape[1]),
        "A_eq": terms,
        "b_eq": np.zeros(terms.shape[0]),
        "bounds": (0.0, 1.0),
    }


def _separator(
    X: Any, signs: np.ndarray, w: np.ndarray, fit_intercept: bool
) -> Separability | None:
    """Return w with the bias in the middle, if it separates beyond any doubt by rounding."""
    values = X @ w
    doubt = (len(w) + 2) * np.finfo(np.float64).eps * float((abs(X) @ np.abs(w)).max())
    b = 0.0
    if fit_intercept:
        b = -float(values[signs > 0].min() + values[signs < 0].max()) / 2.0
    margin = float((signs * (values + b)).min())
    if not margin > doubt:
        return None
    return Separability(True, w, b, (margin - doubt) / float(np.linalg.norm(w)))


def _certificate(
    X: Any, signs: np.ndarray, weights: np.ndarray, fit_intercept: bool
) -> tuple[np.ndarray, float]:
    """Return lambda, non-negative and with its sums exact, and what ``sum lambda y x`` leaves.

    A correction by least squares on the rows used removes the rounding of the solver, and cannot
    remove a distance between the hulls.
    """
    used = np.flatnonzero(weights > 0.0)
    if not len(used):
        return weights, np.inf
    rows = X[used].toarray() if sp.issparse(X) else X[used]
    sums = np.column_stack([signs[used], np.ones(len(used))][0 if fit_intercept else 1 :])
    terms = np.column_stack([rows * signs[used, None], sums]).T
    wanted = np.zeros(len(terms))
    wanted[-1] = 2.0 if fit_intercept else 1.0
    lam = weights[used] * wanted[-1] / weights[used].sum()
    better = lam + np.linalg.lstsq(terms, wanted - terms @ lam)[0]
    lam = better if (better >= 0.0).all() else lam
    certificate = np.zeros(len(weights))
    certificate[used] = lam
    return certificate, float(np.abs(wanted - terms @ lam).max())
