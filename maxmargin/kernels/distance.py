"""Kernels that are functions of a distance: Gaussian (RBF) and Laplacian."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from maxmargin.backends import program as op
from maxmargin.backends.program import Program, View
from maxmargin.kernels.base import Kernel, Validity, finite_number
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
        if not finite_number("sigma", self.sigma, minimum=0.0):
            raise ValueError("sigma must be positive, got 0.")

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
