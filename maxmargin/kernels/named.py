"""Kernels by scikit-learn's names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sklearn.gaussian_process.kernels import Kernel as ScikitLearnKernel

from maxmargin.kernels.base import Kernel
from maxmargin.kernels.distance import RBF, AdditiveChi2, Chi2, Laplacian
from maxmargin.kernels.dot_product import Linear, Polynomial, Sigmoid
from maxmargin.kernels.given import FunctionKernel, Precomputed
from maxmargin.kernels.scikit_learn import from_scikit_learn, refuse_noise

_BY_NAME: dict[str, Callable[..., Kernel]] = {  # scikit-learn's pairwise_kernels has all but one
    "additive_chi2": lambda gamma, degree, coef0: AdditiveChi2(),
    "chi2": lambda gamma, degree, coef0: Chi2(gamma),
    "cosine": lambda gamma, degree, coef0: Linear().normalized(),
    "laplacian": lambda gamma, degree, coef0: Laplacian(gamma),
    "linear": lambda gamma, degree, coef0: Linear(),
    "poly": lambda gamma, degree, coef0: Polynomial(degree, coef0, gamma),
    "polynomial": lambda gamma, degree, coef0: Polynomial(degree, coef0, gamma),
    "precomputed": lambda gamma, degree, coef0: Precomputed(),
    "rbf": lambda gamma, degree, coef0: RBF(gamma),
    "sigmoid": lambda gamma, degree, coef0: Sigmoid(gamma, coef0),
}
KERNEL_NAMES = frozenset(_BY_NAME)


def by_name(name: str, gamma: float | str, degree: float, coef0: float) -> Kernel:
    """Return the kernel of one of :data:`KERNEL_NAMES`."""
    return _BY_NAME[name](gamma, degree, coef0)


def as_kernel(
    kernel: Any, *, gamma: float | str = "scale", degree: float = 3, coef0: float = 0.0
) -> Kernel:
    """Return the kernel object that scikit-learn's ``kernel`` argument means.

    Parameters
    ----------
    kernel : Kernel, str or callable
        A name of :data:`KERNEL_NAMES`, a kernel object of this package's or of scikit-learn's, or a
        function of two collections of points.
    gamma, degree, coef0
        As in :class:`sklearn.svm.SVC`: they belong to the strings. Beside a Kernel object, which
        has parameters of its own, values other than the defaults are refused.

    Examples
    --------
    >>> from maxmargin.kernels import as_kernel
    >>> as_kernel("poly", degree=2, gamma=0.5)
    Polynomial(degree=2, coef0=0.0, gamma=0.5)
    """
    if isinstance(kernel, Kernel | ScikitLearnKernel):
        given = {"gamma": gamma, "degree": degree, "coef0": coef0}
        defaults = {"gamma": "scale", "degree": 3, "coef0": 0.0}
        extra = [name for name in given if given[name] != defaults[name]]
        if extra:
            raise ValueError(
                f"{', '.join(extra)} cannot be set beside the kernel object {kernel!r}: give the "
                "parameter to the kernel itself, for example RBF(gamma=0.1), or search over "
                "kernel__gamma."
            )
        if isinstance(kernel, Kernel):
            return kernel
        refuse_noise(kernel)
        return from_scikit_learn(kernel)
    if isinstance(kernel, type) and issubclass(kernel, Kernel | ScikitLearnKernel):
        raise ValueError(
            f"kernel is the class {kernel.__name__}, not a kernel: write {kernel.__name__}()."
        )
    if isinstance(kernel, str) and kernel in _BY_NAME:
        return by_name(kernel, gamma, degree, coef0)
    if callable(kernel):
        return FunctionKernel(kernel)
    raise ValueError(
        f"kernel must be a Kernel, one of {sorted(_BY_NAME)} or a function of two data sets; "
        f"got {kernel!r}."
    )


def as_pairwise_kernel(
    kernel: Any,
    *,
    gamma: float | str | None = None,
    degree: float | None = None,
    coef0: float | None = None,
    kernel_params: dict[str, Any] | None = None,
) -> Kernel:
    """Return the kernel object for the ``kernel`` argument of ``KernelRidge``, ``KernelPCA``, ...

    As in scikit-learn, names have the defaults of ``pairwise_kernels``, which differ from those of
    an SVM, and a function is called with two rows and ``kernel_params``.

    Examples
    --------
    >>> from maxmargin.kernels.named import as_pairwise_kernel
    >>> as_pairwise_kernel("poly")
    Polynomial(degree=3, gamma='auto')
    >>> as_pairwise_kernel(lambda x, z, p: abs(x @ z) ** p, kernel_params={"p": 2})([[3.0]])
    array([[81.]])
    """
    given: dict[str, Any] = {"gamma": gamma, "degree": degree, "coef0": coef0}
    if isinstance(kernel, str):
        usual: dict[str, Any] = {
            "gamma": 1.0 if kernel == "chi2" else "auto",
            "degree": 3,
            "coef0": 1.0,
        }
        extra = kernel_params or {}
        if unknown := set(extra) - set(usual):
            raise ValueError(
                f"kernel_params of the kernel {kernel!r} may have gamma, degree and coef0, got "
                f"{', '.join(sorted(unknown))}."
            )
        known = {name: value for name, value in given.items() if value is not None}
        return as_kernel(kernel, **{**usual, **extra, **known})
    if isinstance(kernel, Kernel | ScikitLearnKernel | type) or not callable(kernel):
        if kernel_params:
            raise ValueError(
                f"kernel_params={kernel_params!r} cannot be set beside the kernel object "
                f"{kernel!r}, which has its own parameters: pass them to it, as in RBF(gamma=0.1)."
            )
        return as_kernel(kernel, **{n: value for n, value in given.items() if value is not None})
    return FunctionKernel.of_rows(kernel, kernel_params)
