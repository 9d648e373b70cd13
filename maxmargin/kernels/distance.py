"""Kernels that are functions of a distance: Gaussian, Laplacian, Matern, rational quadratic, ..."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.metrics.pairwise import additive_chi2_kernel

from maxmargin.backends import program as op
from maxmargin.backends.program import Program, View
from maxmargin.kernels.base import Kernel, Validity, positive_number
from maxmargin.kernels.dot_product import check_gamma, resolve_gamma


class RBF(Kernel):
    """The Gaussian kernel ``k(x, z) = exp(-gamma ||x - z||^2)``.

    Parameters
    ----------
    gamma : float or {"scale", "auto"}, default="scale"
        ``"scale"`` is ``1 / (n_features * X.var())``, ``"auto"`` is ``1 / n_features``.
    sigma : float, optional
        The width, in place of gamma: ``gamma = 1 / (2 sigma^2)``.
    length_scale : float, optional
        The same by the name that Gaussian processes have for it; of a length scale for each column
        ``RBF(sigma=1.0).stretched(1 / length_scales)`` makes a kernel.

    Examples
    --------
    >>> from maxmargin.kernels import RBF
    >>> RBF(gamma=1.0)([[0.0]], [[1.0]]).round(4)
    array([[0.3679]])
    >>> RBF(sigma=1.0)([[0.0]], [[1.0]]).round(4)
    array([[0.6065]])
    """

    def __init__(
        self,
        gamma: float | str = "scale",
        sigma: float | None = None,
        length_scale: float | None = None,
    ) -> None:
        self.gamma = gamma
        self.sigma = sigma
        self.length_scale = length_scale
        self._width()

    def _width(self) -> float | None:
        """Check the parameters; return sigma, or None where gamma is given."""
        check_gamma(self.gamma)
        given: dict[str, Any] = {"sigma": self.sigma, "length_scale": self.length_scale}
        given = {name: value for name, value in given.items() if value is not None}
        if len(given) + (self.gamma != "scale") > 1:
            said = ", ".join(f"{name}={value!r}" for name, value in given.items())
            raise ValueError(
                "RBF takes only one of gamma, sigma and length_scale, since each determines the "
                f"width (gamma = 1 / (2 sigma^2)); got gamma={self.gamma!r}, {said}."
            )
        for name, value in given.items():
            if not isinstance(value, str) and np.ndim(value):
                raise ValueError(
                    f"{name} is one number, got {value!r}: a length scale for each column is "
                    "RBF(sigma=1.0).stretched(1 / length_scales)."
                )
            return positive_number(name, value)
        return None

    @property
    def validity(self) -> Validity:
        """Valid: ``exp(-g x.x) exp(2g x.z) exp(-g z.z)``, rules (6.16) and (6.14)."""
        return Validity.VALID

    def _resolve(self, X: Any, feature_names: Sequence[str] | None) -> Kernel:
        width = self._width()
        return RBF(resolve_gamma(self.gamma, X) if width is None else 0.5 / width**2)

    def _emit(self, program: Program, view: View) -> None:
        program.push(op.SQUARED_DISTANCE, view)
        program.scale(-float(self.gamma))
        program.exp()


class Laplacian(Kernel):
    """The Laplacian kernel ``k(x, z) = exp(-gamma ||x - z||_1)``.

    Parameters
    ----------
    gamma : float or {"scale", "auto"}, default="auto"
        scikit-learn's ``laplacian_kernel`` defaults to ``1 / n_features`` too.

    Examples
    --------
    >>> from maxmargin.kernels import Laplacian
    >>> Laplacian(gamma=0.5)([[0.0, 0.0]], [[1.0, 1.0]]).round(4)
    array([[0.3679]])
    """

    def __init__(self, gamma: float | str = "auto") -> None:
        self.gamma = gamma
        check_gamma(gamma)

    @property
    def validity(self) -> Validity:
        """Valid: a product over the features of the one-dimensional ``exp(-gamma |x - z|)``."""
        return Validity.VALID

    def _resolve(self, X: Any, feature_names: Sequence[str] | None) -> Kernel:
        check_gamma(self.gamma)
        return Laplacian(resolve_gamma(self.gamma, X))

    def _emit(self, program: Program, view: View) -> None:
        program.push(op.L1_DISTANCE, view)
        program.scale(-float(self.gamma))
        program.exp()


_CLOSED_FORMS = 10.5  # largest half-integer nu that is evaluated as polynomial times exp(-t)


def _matern_polynomial(nu: float) -> list[float]:
    """Return the coefficients of p in ``k = p(t) exp(-t)``, for nu half of an odd number.

    >>> _matern_polynomial(0.5), _matern_polynomial(2.5)
    ([1.0], [1.0, 1.0, 0.3333333333333333])
    """
    p = int(nu)
    whole = math.factorial(2 * p)
    return [math.comb(p, k) * math.factorial(2 * p - k) * 2**k / whole for k in range(p + 1)]


class Matern(Kernel):
    """The Matern kernel ``k(x, z) = p(t) exp(-t)``, ``t = sqrt(2 nu) ||x - z|| / length_scale``.

    Functions with this covariance are once (``nu=1.5``, ``p = 1 + t``) or twice differentiable
    (``nu=2.5``, ``p = 1 + t + t^2 / 3``); with ``nu=0.5`` they are continuous only (``p = 1``).
    Where nu is no half of an odd number, k is ``2^(1 - nu) / Gamma(nu) t^nu K_nu(t)`` with a Bessel
    function, which takes some ten times as long. :class:`RBF` is the limit of large nu.

    Parameters
    ----------
    length_scale : float, default=1.0
    nu : float, default=1.5
        Positive; infinite for the Gaussian kernel with this width.

    Examples
    --------
    >>> from maxmargin.kernels import Matern
    >>> Matern(length_scale=2.0, nu=0.5)([[0.0]], [[2.0]]).round(4)
    array([[0.3679]])

    References
    ----------
    Rasmussen and Williams, Gaussian Processes for Machine Learning, 2006, chapter 4.2.
    """

    _fixed = ("nu",)

    def __init__(self, length_scale: float = 1.0, nu: float = 1.5) -> None:
        self.length_scale = length_scale
        self.nu = nu
        self._check()

    def _check(self) -> None:
        positive_number("length_scale", self.length_scale)
        if self.nu != math.inf:
            positive_number("nu", self.nu)

    @property
    def validity(self) -> Validity:
        """Valid: its spectral density is that of Student's t, which is positive."""
        return Validity.VALID

    def _resolve(self, X: Any, feature_names: Sequence[str] | None) -> Kernel:
        self._check()
        return Matern(float(self.length_scale), float(self.nu))

    def _emit(self, program: Program, view: View) -> None:
        def square() -> None:
            program.push(op.SQUARED_DISTANCE, view)
            program.scale(2.0 * self.nu / self.length_scale**2)

        if self.nu == math.inf:
            program.push(op.SQUARED_DISTANCE, view)
            program.scale(-0.5 / self.length_scale**2)
            program.exp()
            return
        square()
        if self.nu % 1.0 != 0.5 or self.nu > _CLOSED_FORMS:
            program.matern(self.nu)
            return
        program.sqrt()
        program.scale(-1.0)
        program.exp()
        if self.nu > 0.5:
            square()
            program.sqrt()
            program.polynomial(_matern_polynomial(self.nu))
            program.multiply()


class _OfPositiveNumbers(Kernel):
    """Base class of kernels whose parameters are positive numbers."""

    def _check(self) -> None:
        for parameter in self._parameters():
            positive_number(parameter.name, getattr(self, parameter.name))

    def _resolve(self, X: Any, feature_names: Sequence[str] | None) -> Kernel:
        self._check()
        return type(self)(*(float(getattr(self, p.name)) for p in self._parameters()))


class RationalQuadratic(_OfPositiveNumbers):
    """The rational quadratic kernel ``k(x, z) = (1 + ||x - z||^2 / (2 alpha l^2)) ** -alpha``.

    A mixture of :class:`RBF` of all widths; with large alpha that of ``sigma = l``.

    Parameters
    ----------
    length_scale : float, default=1.0
        The l.
    alpha : float, default=1.0
        How narrow the mixture is.

    Examples
    --------
    >>> from maxmargin.kernels import RationalQuadratic
    >>> RationalQuadratic(alpha=0.5)([[0.0]], [[3.0 ** 0.5]])
    array([[0.5]])

    References
    ----------
    Rasmussen and Williams, Gaussian Processes for Machine Learning, 2006, chapter 4.2.
    """

    def __init__(self, length_scale: float = 1.0, alpha: float = 1.0) -> None:
        self.length_scale = length_scale
        self.alpha = alpha
        self._check()

    @property
    def validity(self) -> Validity:
        """Valid: Gaussian kernels with a gamma that is drawn from a Gamma distribution, added."""
        return Validity.VALID

    def _emit(self, program: Program, view: View) -> None:
        program.push(op.SQUARED_DISTANCE, view)
        program.scale(0.5 / (self.alpha * self.length_scale**2))
        program.log1p()
        program.scale(-self.alpha)
        program.exp()


class ExpSineSquared(_OfPositiveNumbers):
    """The periodic kernel ``k(x, z) = exp(-2 sin^2(pi ||x - z|| / periodicity) / length_scale^2)``.

    Functions of one variable with this covariance repeat themselves. It is a kernel of points on a
    line; of points with several features its Gram matrix can be indefinite.

    Parameters
    ----------
    length_scale : float, default=1.0
    periodicity : float, default=1.0

    Examples
    --------
    >>> from maxmargin.kernels import ExpSineSquared
    >>> ExpSineSquared(periodicity=2.0)([[0.0]], [[1.0], [2.0]]).round(4)
    array([[0.1353, 1.    ]])

    References
    ----------
    MacKay, Introduction to Gaussian processes, 1998.
    """

    def __init__(self, length_scale: float = 1.0, periodicity: float = 1.0) -> None:
        self.length_scale = length_scale
        self.periodicity = periodicity
        self._check()

    @property
    def validity(self) -> Validity:
        """Not proven: valid on a line, where it is a Gaussian kernel of points on a circle."""
        return Validity.UNPROVEN

    def _emit(self, program: Program, view: View) -> None:
        program.push(op.SQUARED_DISTANCE, view)
        program.sqrt()
        program.scale(math.pi / self.periodicity)
        program.sin()
        program.power(2)
        program.scale(-2.0 / self.length_scale**2)
        program.exp()


class AdditiveChi2(Kernel):
    """``k(x, z) = -sum_i (x_i - z_i)^2 / (x_i + z_i)`` of features that are not negative.

    scikit-learn's ``additive_chi2``: minus a distance of histograms, which is conditionally
    positive definite and so no kernel by itself; :class:`Chi2` is one.

    Examples
    --------
    >>> from maxmargin.kernels import AdditiveChi2
    >>> AdditiveChi2()([[1.0, 0.0]], [[0.0, 1.0]])
    array([[-2.]])
    """

    def __init__(self) -> None:
        pass

    @property
    def validity(self) -> Validity:
        """Not valid in general: its values at equal points are zero."""
        return Validity.INVALID

    def _emit(self, program: Program, view: View) -> None:
        program.push(op.FUNCTION, view, additive_chi2_kernel)


class Chi2(Kernel):
    """``k(x, z) = exp(-gamma sum_i (x_i - z_i)^2 / (x_i + z_i))`` of features not below zero.

    Parameters
    ----------
    gamma : float or {"scale", "auto"}, default=1.0

    Examples
    --------
    >>> from maxmargin.kernels import Chi2
    >>> Chi2()([[1.0, 0.0]], [[0.0, 1.0]]).round(4)
    array([[0.1353]])
    """

    def __init__(self, gamma: float | str = 1.0) -> None:
        self.gamma = gamma
        check_gamma(gamma)

    @property
    def validity(self) -> Validity:
        """Valid: exponentials of conditionally positive definite functions are."""
        return Validity.VALID

    def _resolve(self, X: Any, feature_names: Sequence[str] | None) -> Kernel:
        check_gamma(self.gamma)
        return Chi2(resolve_gamma(self.gamma, X))

    def _emit(self, program: Program, view: View) -> None:
        program.push(op.FUNCTION, view, additive_chi2_kernel)
        program.scale(float(self.gamma))
        program.exp()
