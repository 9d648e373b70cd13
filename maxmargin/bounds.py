"""Bounds on errors that can be computed for a fitted machine, each with its theorem.

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
  ``u_q = 1`` while it is free.

Either way ``u_t - u_t^t <= alpha_t D_t^2``. An error has ``u_t^t <= 0``, and ``u_t >= 1 - xi_t``:
it needs ``alpha_t D_t^2 + xi_t >= 1`` (:func:`xi_alpha`). With ``xi = 0`` and
``sum_t alpha_t = ||w||^2`` at most ``D^2 ||w||^2`` rows have that (:func:`radius_margin`).

The leave-one-out error on n rows is an unbiased estimate of the error of a machine trained on
n - 1 (Luntz and Brailovsky 1969), so the expectations of these bounds bound its expected error.

Margin bounds hold for the machine at hand with a given probability. For a class F of functions
with Rademacher complexity ``R(F)``, a margin theta chosen before seeing the data and m rows, with
probability ``1 - delta`` for all f of F at once

    P[y f(x) <= 0]  <=  mean ramp(y_i f(x_i) / theta) + 2 R(F) / theta + sqrt(ln(1/delta) / (2 m))

where ``ramp(v) = min(1, max(0, 1 - v))``, which is at most one where ``v <= 1`` and zero elsewhere:
2 R bounds the largest deviation of means of functions in [0, 1], and the ramp has slope 1 / theta.
If R is measured on the sample, the last term is ``3 sqrt(ln(2/delta) / (2 m))``.

References: Novikoff, Symp. on the Mathematical Theory of Automata, 1962; Vapnik, Statistical
Learning Theory, 1998, chapter 10; Schapire, Freund, Bartlett and Lee, Annals of Statistics 26,
1998; Vapnik and Chapelle, Neural Computation 12, 2000; Joachims, ICML 2000; Koltchinskii and
Panchenko, Annals of Statistics 30, 2002; Bartlett and Mendelson, JMLR 3, 2002; Mohri, Rostamizadeh
and Talwalkar, Foundations of Machine Learning, 2nd edition, 2018, chapters 3 and 5 to 7.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import is_classifier
from sklearn.utils import check_consistent_length
from sklearn.utils.extmath import row_norms, safe_sparse_dot
from sklearn.utils.validation import _num_samples, check_is_fitted, column_or_1d

from maxmargin.backends.data import check_array, validate_data
from maxmargin.gram import Definiteness, Gram
from maxmargin.kernels import Input
from maxmargin.multiclass import OneVsOne

__all__ = [
    "Bound",
    "kernel_margin_bound",
    "leave_one_out",
    "margin_bound",
    "mistake_bound",
    "radius_margin",
    "xi_alpha",
]

_AT_BOUND = 1e-6  # relative distance from C up to which a multiplier counts as C
_SAME = 1e-6  # by how much decision values of the training rows may differ
_TILE = 512
_THETAS = 60  # powers of two to look at, below the largest margin
_TINY = 1e-100

_FIXED = "kernel and cost of a row are kept when a row is left out"
_SOLVED = "the solution is exact (it is to the tolerance of the certificate)"
_IID = "rows are independent and from one distribution"
_AS_EXPECTED = (
    "as a statement on new points it holds in expectation over samples, for a machine trained on "
    "one row less, and needs rows that are independent and from one distribution"
)


@dataclass(frozen=True)
class Bound:
    """A number that something does not exceed, and why.

    Attributes
    ----------
    value : float
    quantity : str
        What does not exceed it.
    theorem : str
        Whose theorem says so.
    assumptions : tuple of str
        What it rests on and cannot be checked here. What can be checked has been.
    confidence : float or None
        Probability with which the bound holds; None if it holds for certain.
    theta : float or None
        The margin of a margin bound.
    vacuous_from : float
        The value from which the bound says nothing: 1 for an error rate.

    Examples
    --------
    >>> from maxmargin.bounds import Bound
    >>> bound = Bound(0.25, "The leave-one-out error", "Vapnik 1998", ("rows have equal costs",))
    >>> print(bound)
    The leave-one-out error is at most 0.25 (Vapnik 1998), provided that rows have equal costs.
    >>> float(bound), bound.vacuous
    (0.25, False)
    """

    value: float
    quantity: str
    theorem: str
    assumptions: tuple[str, ...] = ()
    confidence: float | None = None
    theta: float | None = None
    vacuous_from: float = 1.0

    @property
    def vacuous(self) -> bool:
        """Whether the bound says nothing that was not known before."""
        return self.value >= self.vacuous_from

    def __float__(self) -> float:
        return self.value

    def __str__(self) -> str:
        text = f"{self.quantity} is at most {self.value:.4g} ({self.theorem})"
        if self.confidence is not None:
            text = f"With probability {self.confidence:g}, {text[0].lower()}{text[1:]}"
        if self.assumptions:
            text += f", provided that {'; '.join(self.assumptions)}"
        return text + (". It says nothing: the bound is vacuous." if self.vacuous else ".")


# -- mistakes of the perceptron --------------------------------------------------------------------


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


# -- leave-one-out ---------------------------------------------------------------------------------


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
    for pair in _pairs(machine):
        pair.refuse_loose_intercept()
    return Bound(
        value=len(machine.support_) / machine.shape_fit_[0],
        quantity="The leave-one-out error",
        theorem="Vapnik 1998, chapter 10: the number of support vectors",
        assumptions=(_FIXED, _SOLVED, *_unproven(machine), _AS_EXPECTED),
    )


def xi_alpha(machine: Any, X: Any) -> Bound:
    """Bound the leave-one-out error of an SVC by the rows with ``alpha_i D_i^2 + xi_i >= 1``.

    Never more than the support vectors, and for most machines far fewer. ``D_i^2`` is the largest
    squared distance of row i from another in feature space, ``k(x_i, x_i)`` without an intercept.
    (Joachims has ``2 R^2`` in place of ``D_i^2``, with R^2 a bound on ``k(x, x) - k(x, x')`` for
    all points: never less.) With several classes a row counts if it does in any pair.

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
    gram = _gram(machine, X)
    counted = np.zeros(gram.n, dtype=bool)
    stable: tuple[str, ...] = ()
    for pair in _pairs(machine):
        pair.refuse_loose_intercept()
        if pair.bias is not None and np.isfinite(pair.cost).all():
            if len(np.unique(machine.class_weight_)) > 1:
                raise ValueError(
                    "With an intercept the xi-alpha bound of a soft margin needs rows of equal "
                    "cost, and this machine has class weights. Use leave_one_out, or fit with "
                    "class_weight=None or fit_intercept=False."
                )
            stable = ("every leave-one-out machine is stable: it has a free support vector",)
        margin = pair.alpha * pair.reach(gram) + pair.slack_of_support
        counted[pair.support[margin >= 1.0 - pair.tolerance]] = True
    return Bound(
        value=float(counted.mean()),
        quantity="The leave-one-out error",
        theorem="Joachims 2000: xi-alpha",
        assumptions=(_FIXED, *stable, _SOLVED, *_unproven(machine), _AS_EXPECTED),
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
    gram = _gram(machine, X)
    errors = 0.0
    for pair in _pairs(machine):
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
        assumptions=(_FIXED, *_unproven(machine), _AS_EXPECTED),
    )


@dataclass(frozen=True)
class _Pair:
    """One pair's machine, on its training rows."""

    rows: np.ndarray
    support: np.ndarray
    signed: np.ndarray
    slack: np.ndarray  # of rows
    slack_of_support: np.ndarray
    cost: np.ndarray  # of support
    bias: float | None
    primal: float
    tolerance: float

    @property
    def alpha(self) -> np.ndarray:
        return np.abs(self.signed)

    def refuse_weights(self) -> None:
        """Refuse rows whose cost is not C: with slack alpha is C, without support there is none."""
        beyond = self.alpha > self.cost * (1 + _AT_BOUND)
        below = (self.slack_of_support > self.tolerance) & ~self.at_bound
        idle = ~np.isin(self.rows, self.support) & (self.slack > self.tolerance)
        if beyond.any() or below.any() or idle.any():
            raise ValueError(
                "The leave-one-out bounds count every row once, and this machine was fitted with "
                "sample weights. Fit it without, with repeated rows in place of weights."
            )

    @property
    def at_bound(self) -> np.ndarray:
        return self.alpha >= self.cost * (1 - _AT_BOUND)

    def refuse_loose_intercept(self) -> None:
        """Refuse an intercept that the KKT conditions only bound."""
        if self.bias is not None and self.at_bound.all():
            raise ValueError(
                "The leave-one-out bounds need an intercept that is determined, and this machine "
                "has no free support vector (0 < alpha < C), so that leaving any row out can move "
                "it. Use another C, or fit_intercept=False."
            )

    def reach(self, gram: Gram, every_row: bool = False) -> np.ndarray:
        """``D_i^2`` of the support vectors (or all rows); refuses other data than it was fitted to.

        The largest squared distance to a row of the pair; without an intercept to the origin.
        """
        values = np.zeros(len(self.rows))
        diagonal = gram.diagonal[self.rows]
        signed = np.zeros(gram.n)
        signed[self.support] = self.signed
        wanted = self.rows if every_row and self.bias is not None else self.support
        reach = []
        for part in np.split(wanted, range(_TILE, len(wanted), _TILE)):
            block = gram.block(part, self.rows)
            values += signed[part] @ block
            distances = gram.diagonal[part][:, None] + diagonal - 2 * block
            reach.append(distances.max(axis=1))
        self._refuse_other_rows(values + (self.bias or 0.0), float(np.abs(diagonal).max()))
        if self.bias is None:
            return diagonal if every_row else gram.diagonal[self.support]
        return np.concatenate(reach)

    def _refuse_other_rows(self, values: np.ndarray, scale: float) -> None:
        """Compare slack: of support vectors, whose side is known, and of the others on either."""
        allowed = _SAME * (1.0 + np.abs(values)) + 1e-12 * scale * self.alpha.sum()
        place = np.searchsorted(self.rows, self.support)
        shift = np.abs(1.0 - np.sign(self.signed) * values[place] - self.slack_of_support)
        sides = [np.abs(np.maximum(0.0, 1.0 - s * values) - self.slack) for s in (1.0, -1.0)]
        if (shift > allowed[place] + self.tolerance).any() or (np.minimum(*sides) > allowed).any():
            raise ValueError(
                "X must hold the rows that the machine was fitted to, in their order: on this X "
                "its values are others than at the end of the fit."
            )


def _pairs(machine: Any) -> Iterator[_Pair]:
    """Yield the machines of an SVC, one for each pair of classes, having checked what can be."""
    _refuse_other_machines(machine)
    coefficients, intercepts = machine.dual_coef_, machine.intercept_
    if sp.issparse(coefficients):
        coefficients = coefficients.toarray()
    scheme = OneVsOne(len(machine.classes_))
    expansions = scheme.expansions(coefficients, machine.n_support_)
    owner = np.repeat(np.arange(scheme.n_classes), machine.n_support_)
    certificates = machine.certificate_.parts or (machine.certificate_,)
    for k, slack in enumerate(np.atleast_2d(machine.slack_)):
        rows, used = np.flatnonzero(~np.isnan(slack)), np.flatnonzero(expansions[k])
        support = machine.support_[used].astype(np.int64)
        pair = _Pair(
            rows=rows,
            support=support,
            signed=expansions[k, used],
            slack=slack[rows],
            slack_of_support=slack[support],
            cost=_cost(machine, len(rows)) * machine.class_weight_[owner[used]],
            bias=float(intercepts[k]) if machine.fit_intercept else None,
            primal=certificates[k].primal,
            tolerance=2 * certificates[k].kkt_violation + 1e-9,
        )
        pair.refuse_weights()
        yield pair


def _cost(machine: Any, n: int) -> float:
    """C of a row of weight one."""
    if machine.lam is None:
        return float(machine.C)
    if (machine.class_weight_ != 1).any():
        raise ValueError(
            "A machine with lam and class weights does not keep the C that they stand for. Fit it "
            "with C = 1 / (2 N lam), N the sum of the rows' weights, and the same class_weight."
        )
    return 1.0 / (2.0 * n * machine.lam)


def _refuse_other_machines(machine: Any) -> None:
    """Refuse everything but a converged SVC with a kernel that is not known to be indefinite."""
    _refuse_other_than_classifiers(machine)
    if not (hasattr(machine, "C") and hasattr(machine, "lam")):
        raise ValueError(
            "The leave-one-out bounds are for maxmargin's SVC, whose cost C of a row does not "
            f"depend on the other rows, and this is {type(machine).__name__}. (A NuSVC for two "
            "classes with slack is the SVC with C = abs(dual_coef_).max(): fit that.)"
        )
    check_is_fitted(machine, "certificate_")
    certificate = machine.certificate_
    if not certificate.converged:
        raise ValueError(
            f"The leave-one-out bounds are on the optimal machine, and this fit has not converged "
            f"({certificate.status}). Raise max_iter or time_limit, or scale the features."
        )
    if certificate.definiteness == Definiteness.INDEFINITE:
        raise ValueError(
            "The leave-one-out bounds need a convex problem, and this kernel's matrix is "
            "indefinite. Use a valid kernel: see kernel_.validity."
        )


def _refuse_other_than_classifiers(machine: Any) -> None:
    if not is_classifier(machine):
        raise ValueError(
            "The bounds are on errors of classification, and "
            f"{type(machine).__name__} is no classifier."
        )


def _unproven(machine: Any) -> tuple[str, ...]:
    unknown = machine.certificate_.definiteness == Definiteness.UNKNOWN
    return ("the kernel is positive semidefinite, which is not proven",) if unknown else ()


def _gram(machine: Any, X: Any) -> Gram:
    """Gram matrix of the rows that the machine was fitted to."""
    _refuse_other_machines(machine)
    X = _validated(machine, X)
    n = machine.shape_fit_[0]
    if _num_samples(X) != n:
        raise ValueError(
            f"X must hold the {n} rows that the machine was fitted to, got {_num_samples(X)}."
        )
    return Gram.of(X, machine.kernel_)


def _validated(machine: Any, X: Any) -> Any:
    if hasattr(machine, "kernel_") and machine.kernel_.input is Input.OBJECTS:
        return X
    return validate_data(
        machine, X, reset=False, dtype=[np.float64, np.float32], order="C", accept_sparse="csr"
    )


# -- margins ---------------------------------------------------------------------------------------


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
    return float(np.sqrt(2 * vc_dim * np.log(np.e * m / vc_dim) / m)), 2


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
    _refuse_other_than_classifiers(machine)
    check_is_fitted(machine)
    if len(machine.classes_) != 2:
        raise ValueError(
            f"The margin bound is for two classes, and this machine has {len(machine.classes_)}: "
            "bound the machine of each pair, fitted to the rows of that pair."
        )
    X, labels = _validated(machine, X), column_or_1d(y)
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
