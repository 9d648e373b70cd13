"""Translate scikit-learn's kernel objects into the kernels of this package.

Classes in the table ``_RULES`` are translated, and evaluated tile by tile, on threads, with
derivatives. Other kernel objects, such as a user's own subclass, are called as functions.

A ``WhiteKernel`` depends on whether two rows are the same row. It is the variance of the noise that
a Gaussian process adds to the diagonal of its covariance; other estimators refuse it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.gaussian_process import kernels as theirs

from maxmargin.backends.views import Views
from maxmargin.kernels.base import Kernel
from maxmargin.kernels.distance import RBF, ExpSineSquared, Matern, RationalQuadratic
from maxmargin.kernels.dot_product import Linear, Polynomial
from maxmargin.kernels.given import FunctionKernel
from maxmargin.kernels.parameters import STEP, Parameters

Translated = Kernel | float  # a number is a constant function


class UntranslatableError(ValueError):
    """A kernel object has no counterpart here."""


def is_known(kernel: theirs.Kernel) -> bool:
    """Whether all of a kernel object can be translated."""
    try:
        translated(kernel)
    except UntranslatableError:
        return False
    return True


def from_scikit_learn(kernel: theirs.Kernel) -> Kernel:
    """Return the kernel of this package with a kernel object's values between different rows.

    Examples
    --------
    >>> from sklearn.gaussian_process import kernels
    >>> from maxmargin.kernels.scikit_learn import from_scikit_learn
    >>> from_scikit_learn(2.0 * kernels.Matern(nu=2.5) + kernels.DotProduct(sigma_0=3.0))
    2 * Matern(nu=2.5) + Linear() + 9
    """
    try:
        same = translated(kernel)
    except UntranslatableError:
        return FunctionKernel(kernel)
    return same if isinstance(same, Kernel) else same * Polynomial(degree=0)


def refuse_noise(kernel: theirs.Kernel) -> None:
    """Raise an error if a kernel object has a WhiteKernel."""
    if has_noise(kernel):
        raise ValueError(
            f"The kernel {kernel} has a WhiteKernel, which is the noise of a Gaussian process and "
            "zero between different rows: leave it out. KernelRidge has alpha in its place."
        )


def translated(kernel: theirs.Kernel) -> Translated:
    """Translate a kernel object; raises :class:`UntranslatableError`."""
    rule = _RULES.get(type(kernel))
    if rule is None:
        raise UntranslatableError(f"{kernel!r} has no counterpart.")
    return rule(kernel)


def _sum(kernel: theirs.Sum) -> Translated:
    one, other = translated(kernel.k1), translated(kernel.k2)
    if _is_zero(one) or _is_zero(other):
        return other if _is_zero(one) else one
    return one + other


def _product(kernel: theirs.Product) -> Translated:
    one, other = translated(kernel.k1), translated(kernel.k2)
    return 0.0 if _is_zero(one) or _is_zero(other) else one * other


def _power(kernel: theirs.Exponentiation) -> Translated:
    if kernel.exponent < 0:
        raise UntranslatableError(f"{kernel!r} is a power that is negative.")
    return translated(kernel.kernel) ** kernel.exponent


def _rbf(kernel: theirs.RBF) -> Kernel:
    return _scaled(kernel.length_scale, lambda length: RBF(0.5 / length**2))


def _matern(kernel: theirs.Matern) -> Kernel:
    return _scaled(kernel.length_scale, lambda length: Matern(length, float(kernel.nu)))


def _scaled(length_scale: Any, isotropic: Callable[[float], Kernel]) -> Kernel:
    """Return a kernel of a distance, in units of one length scale or of one for each column."""
    lengths = np.squeeze(np.asarray(length_scale, dtype=np.float64))
    return isotropic(1.0).stretched(1.0 / lengths) if lengths.ndim else isotropic(float(lengths))


def _pairwise(kernel: theirs.PairwiseKernel) -> Kernel:
    from maxmargin.kernels.named import by_name

    if kernel.metric == "precomputed":
        raise ValueError(
            f"{kernel!r} has no points to compare: pass kernel='precomputed' and the matrix of "
            "kernel values as X."
        )
    if callable(kernel.metric):
        raise UntranslatableError(f"{kernel!r} calls a function of two rows.")
    extra = kernel.pairwise_kernels_kwargs or {}
    degree, coef0 = extra.get("degree", 3), extra.get("coef0", 1.0)
    return by_name(kernel.metric, float(kernel.gamma), degree, coef0)


def _compound(kernel: theirs.CompoundKernel) -> Translated:
    raise ValueError(
        f"{kernel!r} is a list of kernels, one for each class of scikit-learn's "
        "GaussianProcessClassifier: pass one of them."
    )


_RULES: dict[type, Callable[[Any], Translated]] = {
    theirs.ConstantKernel: lambda kernel: float(kernel.constant_value),
    theirs.WhiteKernel: lambda kernel: 0.0,
    theirs.RBF: _rbf,
    theirs.Matern: _matern,
    theirs.RationalQuadratic: lambda kernel: RationalQuadratic(
        float(kernel.length_scale), float(kernel.alpha)
    ),
    theirs.ExpSineSquared: lambda kernel: ExpSineSquared(
        float(kernel.length_scale), float(kernel.periodicity)
    ),
    theirs.DotProduct: lambda kernel: (
        Linear() + float(kernel.sigma_0) ** 2 if kernel.sigma_0 else Linear()
    ),
    theirs.PairwiseKernel: _pairwise,
    theirs.CompoundKernel: _compound,
    theirs.Sum: _sum,
    theirs.Product: _product,
    theirs.Exponentiation: _power,
}


def _is_zero(value: Translated) -> bool:
    return isinstance(value, float) and value == 0.0


# -- noise -----------------------------------------------------------------------------------------


def has_noise(kernel: theirs.Kernel) -> bool:
    """Whether there is a WhiteKernel in a kernel object."""
    parts = [kernel, *kernel.get_params().values()]
    return any(isinstance(part, theirs.WhiteKernel) for part in parts)


def noise_of(kernel: theirs.Kernel, X: Any) -> Any:
    """Return what WhiteKernels add to ``k(x, x)``: a number, or one for each row."""
    if isinstance(kernel, theirs.WhiteKernel):
        return float(kernel.noise_level)
    if has_noise(kernel) and not is_known(kernel):
        return kernel.diag(X) - FunctionKernel(kernel).diag(X)
    if isinstance(kernel, theirs.Sum):
        return noise_of(kernel.k1, X) + noise_of(kernel.k2, X)
    if isinstance(kernel, theirs.Product):
        one, other = noise_of(kernel.k1, X), noise_of(kernel.k2, X)
        total = one * other
        if has_noise(kernel.k1):
            total = total + one * _diagonal(kernel.k2, X)
        if has_noise(kernel.k2):
            total = total + other * _diagonal(kernel.k1, X)
        return total
    if isinstance(kernel, theirs.Exponentiation) and has_noise(kernel.kernel):
        smooth = _diagonal(kernel.kernel, X)
        return (smooth + noise_of(kernel.kernel, X)) ** kernel.exponent - smooth**kernel.exponent
    return 0.0


def _diagonal(kernel: theirs.Kernel, X: Any) -> Any:
    """``k(x, x)`` without noise."""
    same = translated(kernel)
    return same.diag(X) if isinstance(same, Kernel) else same


# -- hyperparameters -------------------------------------------------------------------------------


class GivenParameters(Parameters):
    """The hyperparameters of a kernel object that are not fixed, in scikit-learn's order.

    Examples
    --------
    >>> from sklearn.gaussian_process import kernels
    >>> from maxmargin.kernels.scikit_learn import GivenParameters
    >>> given = GivenParameters(kernels.RBF([1.0, 2.0]) + kernels.WhiteKernel(0.5))
    >>> given.names
    ['k1__length_scale[0]', 'k1__length_scale[1]', 'k2__noise_level']
    >>> given.theta.round(2)
    array([ 0.  ,  0.69, -0.69])
    """

    def __init__(self, kernel: theirs.Kernel) -> None:
        super().__init__()
        self.given = clone(kernel)
        self.theta = np.array(kernel.theta, dtype=np.float64)
        self.signs = np.ones(len(self.theta))
        self.box = np.array(kernel.bounds, dtype=np.float64).reshape(-1, 2)
        self._noisy, self._known = has_noise(kernel), is_known(kernel)
        self._names: list[str] = []
        self._places: list[tuple[theirs.Kernel, str, Any]] = []
        for free in kernel.hyperparameters:
            if free.fixed:
                continue
            *inside, name = free.name.split("__")
            owner = self.given
            for part in inside:
                owner = getattr(owner, part)
            first, n = len(self._names), free.n_elements
            many = n > 1
            self._names += [f"{free.name}[{k}]" for k in range(n)] if many else [free.name]
            self._places.append((owner, name, slice(first, first + n) if many else first))

    @property
    def names(self) -> list[str]:
        """Names of the hyperparameters; of several in one, with their places."""
        return self._names

    def shown_at(self, theta: np.ndarray) -> str:
        """Printed form of the kernel object with other hyperparameters."""
        return str(self.given_at(theta))

    def label(self, k: int) -> str:
        """Name a hyperparameter as scikit-learn's warnings do."""
        name, _, place = self.names[k].rstrip("]").partition("[")
        return f"dimension {place or 0} of parameter {name}"

    def given_at(self, theta: np.ndarray) -> theirs.Kernel:
        """Return the kernel object with other hyperparameters."""
        return self.given.clone_with_theta(theta)

    def noise_at(self, theta: np.ndarray, views: Views) -> tuple[Any, np.ndarray | None]:
        """Variances of the noise, and their derivatives by theta (p, n)."""
        if not self._noisy or not self._known:
            return super().noise_at(theta, views)
        with self._lock:
            slopes = np.zeros((len(theta), views.n))
            for k in range(len(theta)):
                step = STEP * (np.arange(len(theta)) == k)
                after, before = (self._noise(theta + sign * step, views) for sign in (1, -1))
                slopes[k] = (after - before) / (2 * STEP)
            return self._noise(theta, views), slopes

    def _noise(self, theta: np.ndarray, views: Views) -> Any:
        self._set(theta)
        return noise_of(self.given, views.X)

    def _set(self, theta: np.ndarray) -> None:
        values = np.exp(theta)
        for owner, name, place in self._places:
            setattr(owner, name, values[place])

    def _kernel(self) -> Kernel:
        return from_scikit_learn(self.given)
