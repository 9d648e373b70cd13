"""Kernels that are functions of the inner product: linear, polynomial, sigmoid, ``x'Az``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from maxmargin.backends import program as op
from maxmargin.backends.cpu import variance
from maxmargin.backends.program import Program, View
from maxmargin.kernels.base import Kernel, Validity, finite_number


def check_gamma(gamma: Any, minimum: float | None = 0.0) -> None:
    """Refuse a gamma that is neither a number nor one of scikit-learn's words for one."""
    if not isinstance(gamma, str):
        finite_number("gamma", gamma, minimum=minimum)
    elif gamma not in ("scale", "auto"):
        raise ValueError(f'gamma must be "scale", "auto" or a number, got {gamma!r}.')


def resolve_gamma(gamma: float | str, X: Any) -> float:
    """Turn ``"scale"`` or ``"auto"`` into the number scikit-learn gives them."""
    if gamma == "auto":
        return 1.0 / X.shape[1]
    if gamma == "scale":
        spread = variance(X)
        if not np.isfinite(spread):
            raise ValueError(
                'gamma="scale" is 1 / (n_features * X.var()), and the variance of these data is '
                "infinity in float64: scale the data (StandardScaler), or give gamma as a number."
            )
        return 1.0 / (X.shape[1] * spread) if spread != 0 else 1.0
    return float(gamma)


class Linear(Kernel):
    """The inner product ``k(x, z) = x . z``.

    Examples
    --------
    >>> from maxmargin.kernels import Linear
    >>> Linear()([[1.0, 2.0]], [[3.0, 4.0]])
    array([[11.]])
    """

    def __init__(self) -> None:
        pass

    @property
    def validity(self) -> Validity:
        """Valid: its feature map is the identity."""
        return Validity.VALID

    def _emit(self, program: Program, view: View) -> None:
        program.push(op.DOT, view)


class Polynomial(Kernel):
    """The polynomial kernel ``k(x, z) = (gamma x . z + coef0) ** degree``.

    Parameters
    ----------
    degree : float, default=3
        At least zero; one that is not whole is for values of the inner product, with coef0, that
        are never negative, and no kernel in general.
    coef0 : float, default=1.0
        Weight of the lower degrees; 0 leaves only the terms of degree ``degree``.
    gamma : float or {"scale", "auto"}, default=1.0
        Factor of the inner product.

    Examples
    --------
    >>> from maxmargin.kernels import Polynomial
    >>> Polynomial(degree=2, coef0=1.0)([[1.0, 2.0]], [[3.0, 4.0]])
    array([[144.]])
    """

    def __init__(self, degree: float = 3, coef0: float = 1.0, gamma: float | str = 1.0) -> None:
        self.degree = degree
        self.coef0 = coef0
        self.gamma = gamma
        self._check()

    def _check(self) -> None:
        finite_number("degree", self.degree, minimum=0.0)
        finite_number("coef0", self.coef0)
        check_gamma(self.gamma)

    @property
    def validity(self) -> Validity:
        """Valid for ``coef0 >= 0`` and a whole degree: rules (6.13), (6.17) and (6.18)."""
        proven = self.coef0 >= 0 and self.degree == int(self.degree)
        return Validity.VALID if proven else Validity.UNPROVEN

    def _resolve(self, X: Any, feature_names: Sequence[str] | None) -> Kernel:
        self._check()
        return Polynomial(_whole(self.degree), float(self.coef0), resolve_gamma(self.gamma, X))

    def _emit(self, program: Program, view: View) -> None:
        program.push(op.DOT, view)
        program.scale(float(self.gamma))
        program.shift(self.coef0)
        program.power(self.degree)


def _whole(number: float) -> float:
    """Return a number as an integer where it is one."""
    return int(number) if number == int(number) else float(number)


class Sigmoid(Kernel):
    """The sigmoidal kernel ``k(x, z) = tanh(gamma x . z + coef0)``.

    Its Gram matrix is in general not positive semidefinite; it has been used all the same.

    Parameters
    ----------
    gamma : float or {"scale", "auto"}, default="scale"
    coef0 : float, default=0.0

    Examples
    --------
    >>> from maxmargin.kernels import Sigmoid
    >>> Sigmoid(gamma=0.5, coef0=0.0)([[1.0]], [[2.0]]).round(4)
    array([[0.7616]])
    >>> print(Sigmoid().validity)
    not valid in general
    """

    def __init__(self, gamma: float | str = "scale", coef0: float = 0.0) -> None:
        self.gamma = gamma
        self.coef0 = coef0
        self._check()

    def _check(self) -> None:
        check_gamma(self.gamma, minimum=None)
        finite_number("coef0", self.coef0)

    @property
    def validity(self) -> Validity:
        """Not valid in general."""
        return Validity.INVALID

    def _resolve(self, X: Any, feature_names: Sequence[str] | None) -> Kernel:
        self._check()
        return Sigmoid(resolve_gamma(self.gamma, X), float(self.coef0))

    def _emit(self, program: Program, view: View) -> None:
        program.push(op.DOT, view)
        program.scale(float(self.gamma))
        program.shift(self.coef0)
        program.tanh()


class QuadraticForm(Kernel):
    """``k(x, z) = x' A z`` with a symmetric positive semidefinite A, rule (6.20).

    Parameters
    ----------
    A : array-like of shape (d, d)
        Checked: a matrix that is not symmetric or has a negative eigenvalue is refused.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.kernels import QuadraticForm
    >>> QuadraticForm(np.diag([1.0, 3.0]))([[1.0, 1.0]], [[2.0, 2.0]]).round(10)
    array([[8.]])
    """

    def __init__(self, A: Any) -> None:
        self.A = A

    @property
    def validity(self) -> Validity:
        """Valid where A is symmetric and has no negative eigenvalue; no data are needed."""
        try:
            _square_root(np.asarray(self.A, dtype=np.float64))
        except (ValueError, TypeError):
            return Validity.INVALID
        return Validity.VALID

    def _resolve(self, X: Any, feature_names: Sequence[str] | None) -> Kernel:
        if np.shape(self.A) != (X.shape[1], X.shape[1]):
            raise ValueError(
                f"A has shape {np.shape(self.A)}, but X has {X.shape[1]} features: "
                f"x'Az needs a matrix of shape ({X.shape[1]}, {X.shape[1]})."
            )
        kernel = QuadraticForm(np.array(self.A, dtype=np.float64))
        _square_root(kernel.A)
        return kernel

    def _emit(self, program: Program, view: View) -> None:
        # x'Az is the inner product after x -> R'x, where A = R R'
        program.push(op.DOT, (*view, op.Map(LinearMap(_square_root(self.A)))))


class LinearMap:
    """The feature map ``x -> R'x``, comparable and picklable."""

    def __init__(self, R: np.ndarray) -> None:
        self.R = R

    def __call__(self, X: Any) -> np.ndarray:
        """Return the mapped rows, dense also for sparse X."""
        return np.asarray(X @ self.R)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LinearMap) and np.array_equal(self.R, other.R)

    def __hash__(self) -> int:
        return hash(self.R.shape)


def _square_root(A: np.ndarray) -> np.ndarray:
    """``R`` with ``R R' = A``; refuses a matrix that has no such root."""
    A = np.asarray(A, dtype=np.float64)
    if not np.isfinite(A).all():
        raise ValueError("A in x'Az contains NaN or infinity.")
    scale = float(np.abs(A).max(initial=0.0))
    if np.abs(A - A.T).max(initial=0.0) > 1e-10 * scale:
        raise ValueError("A in x'Az must be symmetric.")
    eigenvalues, vectors = np.linalg.eigh((A + A.T) / 2)
    if eigenvalues.min(initial=0.0) < -1e-10 * scale:
        raise ValueError(
            "A in x'Az must be positive semidefinite; its smallest eigenvalue is "
            f"{eigenvalues.min():.3g}."
        )
    return vectors * np.sqrt(np.clip(eigenvalues, 0.0, None))
