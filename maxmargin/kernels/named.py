"""Kernels by scikit-learn's names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from maxmargin.kernels.base import Kernel
from maxmargin.kernels.distance import RBF
from maxmargin.kernels.dot_product import Linear, Polynomial, Sigmoid
from maxmargin.kernels.given import FunctionKernel, Precomputed

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
    Polynomial(degree=2, coef0=0.0, gamma=0.5)
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
    if isinstance(kernel, type) and issubclass(kernel, Kernel):
        raise ValueError(
            f"kernel is the class {kernel.__name__}, not a kernel: write {kernel.__name__}()."
        )
    if isinstance(kernel, str) and kernel in _BY_NAME:
        return _BY_NAME[kernel](gamma, degree, coef0)
    if callable(kernel):
        return FunctionKernel(kernel)
    raise ValueError(
        f"kernel must be a Kernel, one of {sorted(_BY_NAME)} or a function of two data sets; "
        f"got {kernel!r}."
    )
