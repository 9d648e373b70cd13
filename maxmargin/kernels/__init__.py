"""Kernels, the rules that build them, and the test of their validity.

Every name in ``__all__`` that is a kernel is held to ``maxmargin.testing.check_kernel``.
"""

from collections.abc import Callable
from typing import Any

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

_BY_NAME: dict[str, Callable[..., Kernel]] = {
    "linear": lambda gamma, degree, coef0: Linear(),
    "poly": lambda gamma, degree, coef0: Polynomial(degree, coef0, gamma),
    "rbf": lambda gamma, degree, coef0: RBF(gamma),
    "sigmoid": lambda gamma, degree, coef0: Sigmoid(gamma, coef0),
    "precomputed": lambda gamma, degree, coef0: Precomputed(),
}


def as_kernel(
    kernel: Any, *, gamma: float | str = "scale", degree: int = 3, coef0: float = 0.0
) -> Kernel:
    """Return the kernel object that scikit-learn's ``kernel`` argument means.

    Parameters
    ----------
    kernel : Kernel, {"linear", "poly", "rbf", "sigmoid", "precomputed"} or callable
    gamma, degree, coef0
        As in :class:`sklearn.svm.SVC`: they belong to the strings. Beside a Kernel object, which
        has parameters of its own, values other than the defaults are refused.

    Examples
    --------
    >>> from maxmargin.kernels import as_kernel
    >>> as_kernel("poly", degree=2, gamma=0.5)
    Polynomial(degree=2, c=0.0, gamma=0.5)
    """
    if isinstance(kernel, Kernel):
        given = {"gamma": gamma, "degree": degree, "coef0": coef0}
        defaults = {"gamma": "scale", "degree": 3, "coef0": 0.0}
        extra = [name for name in given if given[name] != defaults[name]]
        if extra:
            raise ValueError(
                f"{', '.join(extra)} cannot be set beside the kernel object {kernel!r}: give the "
                "parameter to the kernel itself, for example RBF(gamma=0.1), or search over "
                "kernel__gamma."
            )
        return kernel
    if isinstance(kernel, str) and kernel in _BY_NAME:
        return _BY_NAME[kernel](gamma, degree, coef0)
    if callable(kernel):
        return FunctionKernel(kernel)
    raise ValueError(
        f"kernel must be a Kernel, one of {sorted(_BY_NAME)} or a function of two data sets; "
        f"got {kernel!r}."
    )
