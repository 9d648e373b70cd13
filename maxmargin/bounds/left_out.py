"""Bounds on the leave-one-out error of a support vector machine.

Leave-one-out error of a support vector machine ``f(x) = w . phi(x) + b``, trained on n rows with
multipliers ``alpha_i >= 0`` and slack ``xi_i``. Let ``f^t`` be the machine without row t and
``u_i = y_i f(x_i)``. The slopes of a convex loss never fall, so
``(alpha_i^t - alpha_i) (u_i - u_i^t) >= 0`` for every ``i != t``, and the sum over i is

    alpha_t (u_t - u_t^t)  >=  ||w - w^t||^2.                                                   (1)

- ``alpha_t = 0``: then ``f^t = f``, and row t, with ``u_t >= 1``, is classified correctly. At most
  ``n_SV`` rows are not (:func:`leave_one_out`).
- No intercept: ``u_t - u_t^t <= ||w - w^t|| ||phi_t||``, so by (1) ``<= alpha_t k(x_t, x_t)``.
- An intercept: if b does not change in favour of row t at some row q, that is
  ``y_t (f - f^t)(x_q) <= 0``, then in the same way ``u_t - u_t^t <= alpha_t ||phi_t - phi_q||^2``.
  For the hard margin any support vector of ``f^t`` from the other class is such a q. For the soft
  margin with equal costs lower the cost of row t from C to 0: until it arrives, some other row is
  free (else ``sum y_i alpha_i = 0`` makes ``alpha_t`` a multiple of C), and a free row stays at
  ``u_q = 1`` while it is free. So the inequality holds for the intercept in which this ends. That
  is the one of ``f^t`` if ``f^t`` has a free support vector, too (Joachims: it is *stable*);
  otherwise its intercept is only bounded, and may be another. With a small C and nearly balanced
  classes that is the rule, not the exception.

Either way ``u_t - u_t^t <= alpha_t D_t^2``. An error has ``u_t^t <= 0``, and ``u_t >= 1 - xi_t``:
it needs ``alpha_t D_t^2 + xi_t >= 1`` (:func:`xi_alpha`). With ``xi = 0`` and
``sum_t alpha_t = ||w||^2`` at most ``D^2 ||w||^2`` rows have that (:func:`radius_margin`).

The leave-one-out error on n rows is an unbiased estimate of the error of a machine trained on
n - 1 (Luntz and Brailovsky 1969), so the expectations of these bounds bound its expected error.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from maxmargin.bounds.bound import Bound
from maxmargin.bounds.pairs import (
    gram_of,
    pairs,
    stable_without,
    unproven,
)

_FIXED = "kernel and cost of a row are kept when a row is left out"
_SOLVED = "the solution is exact (it is to the tolerance of the certificate)"
_AS_EXPECTED = (
    "as a statement on new points it holds in expectation over samples, for a machine trained on "
    "one row less, and needs rows that are independent and from one distribution"
)


def leave_one_out(machine: Any) -> Bound:
    """Bound the leave-one-out error of an SVC by its share of support vectors.

    A row with ``alpha_i = 0`` can be left out without any change, and is then classified as before:
    correctly. So at most the support vectors are errors. With several classes a row that supports
    none of the pairs' machines keeps the votes of all pairs of its class, and wins.

    Parameters
    ----------
    machine : fitted SVC
        Soft or hard margin; converged; with an intercept it needs a free support vector
        (``0 < alpha < C``) in each pair, which fixes the intercept.

    Returns
    -------
    bound : Bound

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from maxmargin import SVC
    >>> from maxmargin.bounds import leave_one_out
    >>> X, y = load_iris(return_X_y=True)
    >>> model = SVC(kernel="linear", C=10).fit(X, y)
    >>> leave_one_out(model).value == len(model.support_) / 150
    True
    """
    for pair in pairs(machine):
        pair.refuse_loose_intercept()
    return Bound(
        value=len(machine.support_) / machine.shape_fit_[0],
        quantity="The leave-one-out error",
        theorem="Vapnik 1998, chapter 10: the number of support vectors",
        assumptions=(_FIXED, _SOLVED, *unproven(machine), _AS_EXPECTED),
    )


def xi_alpha(machine: Any, X: Any) -> Bound:
    """Bound the leave-one-out error of an SVC by the rows with ``alpha_i D_i^2 + xi_i >= 1``.

    Never more than the support vectors, and for most machines far fewer. ``D_i^2`` is the largest
    squared distance of row i from another in feature space, ``k(x_i, x_i)`` without an intercept.
    (Joachims has ``2 R^2`` in place of ``D_i^2``, with R^2 a bound on ``k(x, x) - k(x, x')`` for
    all points: never less.) With several classes a row counts if it does in any pair.

    A soft margin with an intercept needs more: the machine without row i must have a free support
    vector (``0 < alpha < C``), which fixes its intercept. That is checked: the machine is solved
    again without each support vector that does not count, and the row counts where it has none.
    So the bound then takes as many solves, each begun at the solution, as it leaves support
    vectors out of account.

    Parameters
    ----------
    machine : fitted SVC
        Converged. A soft margin with an intercept needs equal costs of all rows (no weights) and a
        free support vector.
    X : the rows that the machine was fitted to

    Returns
    -------
    bound : Bound

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from maxmargin import SVC
    >>> from maxmargin.bounds import leave_one_out, xi_alpha
    >>> X, y = load_iris(return_X_y=True)
    >>> model = SVC(gamma=0.1, C=1).fit(X, y)
    >>> xi_alpha(model, X).value < leave_one_out(model).value
    True
    """
    gram = gram_of(machine, X)
    counted = np.zeros(gram.n, dtype=bool)
    for pair in pairs(machine):
        pair.refuse_loose_intercept()
        needs_stable = pair.bias is not None and bool(np.isfinite(pair.cost).all())
        if needs_stable and len(np.unique(machine.class_weight_)) > 1:
            raise ValueError(
                "With an intercept the xi-alpha bound of a soft margin needs rows of equal "
                "cost, and this machine has class weights. Use leave_one_out, or fit with "
                "class_weight=None or fit_intercept=False."
            )
        margin = pair.alpha * pair.reach(gram) + pair.slack_of_support
        errors = margin >= 1.0 - pair.tolerance
        counted[pair.support[errors]] = True
        rest = pair.support[~errors & ~counted[pair.support]]
        if needs_stable and len(rest):
            counted[rest[~stable_without(gram, pair, rest, machine)]] = True
    return Bound(
        value=float(counted.mean()),
        quantity="The leave-one-out error",
        theorem="Joachims 2000: xi-alpha",
        assumptions=(_FIXED, _SOLVED, *unproven(machine), _AS_EXPECTED),
    )


def radius_margin(machine: Any, X: Any) -> Bound:
    """Bound the leave-one-out error of a hard margin by ``D^2 / (n margin_^2)``.

    D is the largest distance between two training rows in feature space. Vapnik has ``2 R``, with R
    the radius of the smallest ball around the rows, in its place, and ``D <= 2 R``. Without an
    intercept the ball is around the origin, and ``max_i k(x_i, x_i)`` replaces ``D^2``. With
    several classes the bounds of the pairs are added.

    The optimal ``1 / margin^2`` is not known exactly; the certificate's primal objective, half of
    it from above, is used.

    Parameters
    ----------
    machine : fitted SVC with ``C=numpy.inf``
        Converged.
    X : the rows that the machine was fitted to

    Returns
    -------
    bound : Bound

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin import SVC
    >>> from maxmargin.bounds import radius_margin
    >>> X = np.array([[-1.1], [-1.0], [1.0], [1.1]])
    >>> model = SVC(kernel="linear", C=np.inf, fit_intercept=False).fit(X, [0, 0, 1, 1])
    >>> round(radius_margin(model, X).value, 4)  # 1.1^2 / (4 * 1^2)
    0.3025
    """
    gram = gram_of(machine, X)
    errors = 0.0
    for pair in pairs(machine):
        if np.isfinite(pair.cost).any():
            raise ValueError(
                "The radius/margin bound holds for the hard margin, and this machine allows slack. "
                "Use xi_alpha or leave_one_out, or fit with C=numpy.inf if the data are separable."
            )
        errors += 2 * pair.primal * float(pair.reach(gram, every_row=True).max())
    return Bound(
        value=errors / gram.n,
        quantity="The leave-one-out error",
        theorem="Vapnik 1998, chapter 10, and Vapnik and Chapelle 2000: radius and margin",
        assumptions=(_FIXED, *unproven(machine), _AS_EXPECTED),
    )
