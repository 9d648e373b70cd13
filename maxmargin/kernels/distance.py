"""Kernels that are functions of a distance: Gaussian, Laplacian, Matern, rational quadratic."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

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

    Examples
    --------
    >>> from maxmargin.kernels import RBF
    >>> RBF(gamma=1.0)([[0.0]], [[1.0]]).round(4)
    array([[0.3679]])
    >>> RBF(sigma=1.0)([[0.0]], [[1.0]]).round(4)
    array([[0.6065]])
    """

    def __init__(self, gamma: float | str = "scale", sigma: float | None = None) -> None:
        self.gamma = gamma
        self.sigma = sigma
        self._check()

    def _check(self) -> None:
        check_gamma(self.gamma)
        if self.sigma is None:
            return
        if self.gamma != "scale":
            raise ValueError(
                f"RBF takes gamma or sigma, not both (gamma = 1 / (2 sigma^2)); "
                f"got gamma={self.gamma!r} and sigma={self.sigma!r}."
            )
        positive_number("sigma", self.sigma)

    @property
    def validity(self) -> Validity:
        """Valid: ``exp(-g x.x) exp(2g x.z) exp(-g z.z)``, rules (6.16) and (6.14)."""
        return Validity.VALID

    def _resolve(self, X: Any, feature_names: Sequence[str] | None) -> Kernel:
        self._check()
        return RBF(resolve_gamma(self.gamma, X) if self.sigma is None else 0.5 / self.sigma**2)

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


_MATERN = {0.5: [1.0], 1.5: [1.0, 1.0], 2.5: [1.0, 1.0, 1.0 / 3.0]}  # by nu: what exp(-t) is times


class Matern(Kernel):
    """The Matern kernel ``k(x, z) = p(t) exp(-t)``, ``t = sqrt(2 nu) ||x - z|| / length_scale``.

    Functions with this covariance are once (``nu=1.5``, ``p = 1 + t``) or twice differentiable
    (``nu=2.5``, ``p = 1 + t + t^2 / 3``); with ``nu=0.5`` they are continuous only (``p = 1``).
    :class:`RBF` is the limit of large nu.

    Parameters
    ----------
    length_scale : float, default=1.0
    nu : {0.5, 1.5, 2.5}, default=1.5

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
        if self.nu not in _MATERN:
            raise ValueError(f"nu must be 0.5, 1.5 or 2.5 (for inf, take RBF), got {self.nu!r}.")

    @property
    def validity(self) -> Validity:
        """Valid: its spectral density is that of Student's t, which is positive."""
        return Validity.VALID

    def _resolve(self, X: Any, feature_names: Sequence[str] | None) -> Kernel:
        self._check()
        return Matern(float(self.length_scale), float(self.nu))

    def _emit(self, program: Program, view: View) -> None:
        def root() -> None:
            program.push(op.SQUARED_DISTANCE, view)
            program.scale(2.0 * self.nu / self.length_scale**2)
            program.sqrt()

        root()
        program.scale(-1.0)
        program.exp()
        if self.nu > 0.5:
            root()
            program.polynomial(_MATERN[self.nu])
            program.multiply()


class RationalQuadratic(Kernel):
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

    def _check(self) -> None:
        positive_number("length_scale", self.length_scale)
        positive_number("alpha", self.alpha)

    @property
    def validity(self) -> Validity:
        """Valid: Gaussian kernels with a gamma that is drawn from a Gamma distribution, added."""
        return Validity.VALID

    def _resolve(self, X: Any, feature_names: Sequence[str] | None) -> Kernel:
        self._check()
        return RationalQuadratic(float(self.length_scale), float(self.alpha))

    def _emit(self, program: Program, view: View) -> None:
        program.push(op.SQUARED_DISTANCE, view)
        program.scale(0.5 / (self.alpha * self.length_scale**2))
        program.log1p()
        program.scale(-self.alpha)
        program.exp()
