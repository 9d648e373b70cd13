"""Kernels, the rules that build them, and the test of their validity.

Every name in ``__all__`` that is a kernel is held to ``maxmargin.testing.check_kernel``.
"""

from maxmargin.kernels.algebra import (
    Conformal,
    Exponential,
    Mapped,
    OnColumns,
    PolynomialOf,
    Power,
    Product,
    Scaled,
    Shifted,
    Sum,
)
from maxmargin.kernels.base import Input, Kernel, Validity, exp
from maxmargin.kernels.distance import RBF, Laplacian
from maxmargin.kernels.dot_product import Linear, Polynomial, QuadraticForm, Sigmoid
from maxmargin.kernels.given import FunctionKernel, Precomputed
from maxmargin.kernels.named import as_kernel
from maxmargin.kernels.validity import GramTest, check_valid, gram_features, quadratic_features

__all__ = [
    "RBF",
    "Conformal",
    "Exponential",
    "FunctionKernel",
    "GramTest",
    "Input",
    "Kernel",
    "Laplacian",
    "Linear",
    "Mapped",
    "OnColumns",
    "Polynomial",
    "PolynomialOf",
    "Power",
    "Precomputed",
    "Product",
    "QuadraticForm",
    "Scaled",
    "Shifted",
    "Sigmoid",
    "Sum",
    "Validity",
    "as_kernel",
    "check_valid",
    "exp",
    "gram_features",
    "quadratic_features",
]
