"""Bounds on the error of large margins, for combined votes and for kernel machines.

Margin bounds hold for the machine at hand with a given probability. For a class F of functions
with Rademacher complexity ``R(F)``, a margin theta chosen before seeing the data and m rows, with
probability ``1 - delta`` for all f of F at once

    P[y f(x) <= 0]  <=  mean ramp(y_i f(x_i) / theta) + 2 R(F) / theta + sqrt(ln(1/delta) / (2 m))

where ``ramp(v) = min(1, max(0, 1 - v))``, which is at most one where ``v <= 1`` and zero elsewhere:
2 R bounds the largest deviation of means of functions in [0, 1], and the ramp has slope 1 / theta.
If R is measured on the sample, the last term is ``3 sqrt(ln(2/delta) / (2 m))``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_consistent_length
from sklearn.utils.extmath import row_norms
from sklearn.utils.validation import check_is_fitted, column_or_1d

from maxmargin.bounds.bound import Bound
from maxmargin.bounds.pairs import (
    refuse_other_than_classifiers,
    validated,
)
from maxmargin.gram import Definiteness, Gram

_THETAS = 60  # powers of two to look at, below the largest margin
_TINY = 1e-100
_IID = "rows are independent and from one distribution"


def margin_bound(
    margins: Any,
    *,
    n_base: float | None = None,
    vc_dim: float | None = None,
    theta: float | None = None,
    confidence: float = 0.95,
) -> Bound:
    """Bound the error of a vote by the margins of the sample, whatever the number of voters.

    For ``f = sum_t c_t h_t`` with ``c_t >= 0``, ``sum_t c_t = 1`` and base classifiers ``h_t`` of
    values -1 and +1, see the top of this module. The complexity of all such votes is that of the
    base classifiers: at most ``sqrt(2 ln(n_base) / m)`` if there are ``n_base`` of them, at most
    ``sqrt(2 d ln(e m / d) / m)`` if their Vapnik-Chervonenkis dimension is d.

    Parameters
    ----------
    margins : array-like of shape (n_samples,)
        ``y_i f(x_i)`` of the training rows, in [-1, 1].
    n_base : float, optional
        Size of the set that base classifiers are chosen from (not the number chosen). A classifier
        and its opposite are two.
    vc_dim : float, optional
        The dimension, where that set is not finite. Give one of the two.
    theta : float, optional
        The margin, in (0, 1], if it was chosen before seeing the data. By default the best power of
        two: the bounds for ``2^k`` then hold for all k at once, each with a share
        ``(2/3) / ((|k| + 1) (|k| + 2))`` of ``delta = 1 - confidence``.
    confidence : float, default=0.95
        Probability, over samples, with which the bound holds.

    Returns
    -------
    bound : Bound
        On the probability that a new point is misclassified.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.bounds import margin_bound
    >>> bound = margin_bound(np.full(100_000, 0.5), n_base=100)
    >>> bound.theta, round(bound.value, 3)
    (0.5, 0.043)
    """
    margins = column_or_1d(margins).astype(np.float64)
    m = len(margins)
    if m == 0 or not (np.abs(margins) <= 1 + 1e-12).all():
        raise ValueError(
            "margins must be the values y f(x) of a vote whose weights sum to one, so between -1 "
            "and 1: divide them by the sum of the weights."
        )
    if theta is not None and not 0 < theta <= 1:
        raise ValueError(f"The margin theta of a vote must be in (0, 1], got {theta!r}.")
    complexity, theorem = _vote_complexity(m, n_base, vc_dim)
    return _best_margin(
        margins,
        complexity,
        theta,
        confidence,
        measured=False,
        theorem=(
            f"Schapire, Freund, Bartlett and Lee 1998, theorem {theorem}, with the constants of "
            "Koltchinskii and Panchenko 2002"
        ),
        assumptions=(_IID, "the set of base classifiers was fixed before seeing the data"),
    )


def _vote_complexity(m: int, n_base: float | None, vc_dim: float | None) -> tuple[float, int]:
    """Bound the complexity of votes by Massart's lemma; and the number of the theorem."""
    if (n_base is None) == (vc_dim is None):
        raise ValueError("Give n_base or vc_dim: how many base classifiers there are to choose.")
    if n_base is not None:
        if not n_base >= 1:
            raise ValueError(f"n_base must be at least one, got {n_base!r}.")
        return float(np.sqrt(2 * np.log(n_base) / m)), 1
    if vc_dim is None or not 0 < vc_dim <= m:
        raise ValueError(
            f"vc_dim must be positive and at most the number of rows ({m}), got {vc_dim!r}: with "
            "fewer rows than that the theorem says nothing."
        )
    return float(np.sqrt(2 * vc_dim * (1.0 + np.log(m / vc_dim)) / m)), 2


def kernel_margin_bound(
    machine: Any, X: Any, y: Any, *, theta: float | None = None, confidence: float = 0.95
) -> Bound:
    """Bound the error of a kernel machine or linear machine by the margins of a sample.

    The margins are those of ``f / norm`` with ``norm^2 = ||w||^2 + b^2``: the intercept is a weight
    on a constant one. The complexity of all such functions of norm one, measured on the sample, is
    at most ``sqrt(sum_i (k(x_i, x_i) + 1)) / m``. The bound holds for every w and b at once: the
    fit need not have converged, and slack is allowed.

    Parameters
    ----------
    machine : fitted classifier for two classes
        With a kernel (``kernel_`` and ``margin_``) or with ``coef_``; and with ``intercept_``.
    X : of shape (n_samples, n_features)
        The training rows, or another sample.
    y : array-like of shape (n_samples,)
    theta : float, optional
        The margin, if it was chosen before seeing the data. By default the best power of two, as in
        :func:`margin_bound`.
    confidence : float, default=0.95

    Returns
    -------
    bound : Bound
        On the probability that a new point is misclassified.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin import SVC
    >>> from maxmargin.bounds import kernel_margin_bound
    >>> X = np.repeat([[-1.0], [1.0]], 1000, axis=0)
    >>> y = np.repeat([0, 1], 1000)
    >>> bound = kernel_margin_bound(SVC(kernel="linear", C=1).fit(X, y), X, y)
    >>> bound.theta, round(bound.value, 2)
    (1.0, 0.17)
    """
    refuse_other_than_classifiers(machine)
    check_is_fitted(machine)
    if len(machine.classes_) != 2:
        raise ValueError(
            f"The margin bound is for two classes, and this machine has {len(machine.classes_)}: "
            "bound the machine of each pair, fitted to the rows of that pair."
        )
    X, labels = validated(machine, X), column_or_1d(y)
    check_consistent_length(X, labels)
    if not np.isin(labels, machine.classes_).all():
        raise ValueError(f"y has labels that are none of {machine.classes_.tolist()}.")
    squared_norm, trace = _norm_and_trace(machine, X)
    bias = float(np.ravel(machine.intercept_)[0])
    if bias or getattr(machine, "fit_intercept", True):
        squared_norm, trace = squared_norm + bias**2, trace + len(labels)
    if not 0 < squared_norm < np.inf:
        raise ValueError("The machine has w = 0 or a norm that is not known: it has no margins.")
    sign = np.where(labels == machine.classes_[1], 1.0, -1.0)
    if theta is not None and not 0 < theta < np.inf:
        raise ValueError(f"The margin theta must be positive and finite, got {theta!r}.")
    return _best_margin(
        sign * machine.decision_function(X) / np.sqrt(squared_norm),
        float(np.sqrt(trace)) / len(labels),
        theta,
        confidence,
        measured=True,
        theorem="Bartlett and Mendelson 2002; Mohri et al. 2018, chapters 5 and 6",
        assumptions=(_IID, "the kernel and its parameters were fixed before seeing the data"),
    )


def _norm_and_trace(machine: Any, X: Any) -> tuple[float, float]:
    """``||w||^2``, and the sum of ``k(x_i, x_i)``."""
    if not hasattr(machine, "kernel_"):
        coef = machine.coef_.toarray() if sp.issparse(machine.coef_) else machine.coef_
        return float((coef**2).sum()), float(row_norms(X, squared=True).sum())
    if machine.certificate_.definiteness == Definiteness.INDEFINITE:
        raise ValueError(
            "The margin bound needs an inner product, and this kernel's matrix is indefinite. Use "
            "a valid kernel: see kernel_.validity."
        )
    if machine.kernel_.pairwise and X.shape[0] != X.shape[1]:
        raise ValueError(
            "For a precomputed kernel the margin bound needs the square matrix of the training "
            f"rows: k(x, x) of other points is not in a matrix of shape {X.shape}."
        )
    return float(machine.margin_) ** -2, float(Gram.of(X, machine.kernel_).diagonal.sum())


def _best_margin(
    margins: np.ndarray,
    complexity: float,
    theta: float | None,
    confidence: float,
    *,
    measured: bool,
    theorem: str,
    assumptions: tuple[str, ...],
) -> Bound:
    """Evaluate the bound at the top of this module for theta, or for the best power of two."""
    if not 0 < confidence < 1:
        raise ValueError(
            f"confidence is the probability that the bound holds, in (0, 1), got {confidence!r}."
        )
    delta = 1.0 - confidence

    def value(theta: float, delta: float) -> float:
        ramp = float(np.clip(1.0 - margins / theta, 0.0, 1.0).mean())
        deviation = np.sqrt(np.log((2.0 if measured else 1.0) / delta) / (2 * len(margins)))
        return ramp + 2 * complexity / theta + (3.0 if measured else 1.0) * float(deviation)

    if theta is not None:
        best = value(theta, delta), theta
        assumptions += ("theta was fixed before seeing the data",)
    else:
        largest = float(margins.max())
        highest = int(np.ceil(np.log2(largest))) if largest > _TINY else 0
        best = min(
            (value(2.0**k, delta * (2 / 3) / ((abs(k) + 1) * (abs(k) + 2))), 2.0**k)
            for k in range(highest - _THETAS, highest + 2)
            if measured or k <= 0
        )
    return Bound(
        value=best[0],
        quantity="The probability of an error on a new point",
        theorem=theorem,
        assumptions=assumptions,
        confidence=confidence,
        theta=float(best[1]),
    )
