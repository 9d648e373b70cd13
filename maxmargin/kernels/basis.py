"""Kernels from given basis functions: ``k(x, x') = sum_i phi_i(x) phi_i(x')``.

The three families of the lecture's figure, for points on a line: powers, Gaussian bumps and
sigmoids. ``Linear().after(GaussianBasis())`` is the kernel; a basis is a function of points like
any other feature map.

Reference: seed 001, "Examples of explicitly constructing kernels"; Bishop, Pattern Recognition and
Machine Learning, 2006, figure 6.1.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from maxmargin.kernels.algebra import Mapped
from maxmargin.kernels.base import Kernel
from maxmargin.kernels.dot_product import Linear


@dataclass(frozen=True)
class Basis(ABC):
    """So many functions of a number, as a feature map: from points (n, 1) to (n, count)."""

    count: int = 11

    def __post_init__(self) -> None:
        if self.count < 1:
            raise ValueError(f"A basis has at least one function, got count={self.count}.")

    def __call__(self, X: Any) -> np.ndarray:
        """Values of the functions at points on a line."""
        X = np.asarray(X, dtype=np.float64)
        if X.ndim != 2 or X.shape[1] != 1:
            raise ValueError(
                f"{type(self).__name__} is for points on a line, (n, 1), got shape {X.shape}: "
                "choose a column with .on([0]), or sum kernels of several."
            )
        return self._values(X)

    @abstractmethod
    def _values(self, x: np.ndarray) -> np.ndarray:
        """Values at x (n, 1)."""

    @property
    def kernel(self) -> Kernel:
        """The kernel of these functions."""
        return Mapped(Linear(), self)


@dataclass(frozen=True)
class PolynomialBasis(Basis):
    """Powers ``x, x^2, ..., x^count``.

    Examples
    --------
    >>> from maxmargin.kernels import PolynomialBasis
    >>> PolynomialBasis(3)([[2.0]])
    array([[2., 4., 8.]])
    >>> PolynomialBasis(3).kernel([[2.0]], [[1.0]])
    array([[14.]])
    """

    def _values(self, x: np.ndarray) -> np.ndarray:
        return x ** np.arange(1, self.count + 1)


@dataclass(frozen=True)
class _Spaced(Basis):
    """Copies of one function at centres that are spaced evenly between two ends.

    ``width`` is that of a bump or slope, by default the distance of two centres.
    """

    low: float = -1.0
    high: float = 1.0
    width: float | None = None

    @property
    def centres(self) -> np.ndarray:
        """Where the functions are."""
        return np.linspace(self.low, self.high, self.count)

    def _reduced(self, x: np.ndarray) -> np.ndarray:
        apart = (self.high - self.low) / max(self.count - 1, 1)
        return (x - self.centres) / (apart if self.width is None else self.width)


@dataclass(frozen=True)
class GaussianBasis(_Spaced):
    """Bumps ``exp(-(x - c_i)^2 / 2 s^2)``.

    Examples
    --------
    >>> from maxmargin.kernels import GaussianBasis
    >>> GaussianBasis(3, width=1.0)([[0.0]]).round(4)
    array([[0.6065, 1.    , 0.6065]])
    """

    def _values(self, x: np.ndarray) -> np.ndarray:
        return np.exp(-0.5 * self._reduced(x) ** 2)


@dataclass(frozen=True)
class SigmoidBasis(_Spaced):
    """Slopes ``1 / (1 + exp(-(x - c_i) / s))``.

    Examples
    --------
    >>> from maxmargin.kernels import SigmoidBasis
    >>> SigmoidBasis(3, width=0.5)([[0.0]]).round(4)
    array([[0.8808, 0.5   , 0.1192]])
    """

    def _values(self, x: np.ndarray) -> np.ndarray:
        return 0.5 * (1.0 + np.tanh(0.5 * self._reduced(x)))
