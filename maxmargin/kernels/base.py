"""Kernels as objects: what every kernel can do, and the algebra that composes them.

A kernel ``k(x, z)`` is *valid* when it is an inner product ``phi(x) . phi(z)`` in some feature
space, that is, when every Gram matrix it makes is positive semidefinite. Here a kernel is an object
that knows its formula and whether its validity is proven *by construction*; composing kernels
with ``+``, ``*``, ``**`` and the methods below follows the construction rules (6.13) to (6.22) of
Bishop, *Pattern Recognition and Machine Learning*, chapter 6.2.
"""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from enum import StrEnum
from functools import cache
from inspect import Parameter, signature
from itertools import takewhile
from numbers import Integral, Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from maxmargin.backends import cpu
from maxmargin.backends.data import as_table, check_array
from maxmargin.backends.program import Program, View
from maxmargin.backends.threads import on_one_blas_thread
from maxmargin.backends.views import Views


class Validity(StrEnum):
    """What is known of a kernel's validity from its construction alone."""

    VALID = "valid"
    UNPROVEN = "not proven"
    INVALID = "not valid in general"


class Input(StrEnum):
    """What a kernel compares: vectors, rows of a precomputed matrix, or objects of any type.

    Sequences are strings, alone or in a table beside columns of numbers.
    """

    VECTORS = "vectors"
    MATRIX = "matrix"
    OBJECTS = "objects"
    SEQUENCES = "sequences"


class Kernel(ABC):
    """Base class of all kernels: evaluation, algebra, validity, parameters.

    A concrete kernel says how its formula is lowered to a programme (:meth:`_emit`), how data
    dependent parameters become numbers (:meth:`_resolve`), and what its construction proves
    (:attr:`validity`). Parameters, cloning and printing follow scikit-learn.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.kernels import RBF, Linear
    >>> k = 0.5 * RBF(gamma=0.1) + Linear()
    >>> k
    0.5 * RBF(gamma=0.1) + Linear()
    >>> k(np.array([[0.0], [1.0]])).round(3)
    array([[0.5  , 0.452],
           [0.452, 1.5  ]])
    >>> k.validity
    <Validity.VALID: 'valid'>
    """

    # Numbers that select a formula: no likelihood is maximised over them.
    _fixed: tuple[str, ...] = ()

    # How tightly the printed form binds: 0 sum, 1 product, 2 power, 3 atom.
    _precedence = 3

    @property
    @abstractmethod
    def validity(self) -> Validity:
        """Whether every Gram matrix of this kernel is positive semidefinite, by construction."""

    @property
    def input(self) -> Input:
        """What the kernel compares."""
        return Input.VECTORS

    @property
    def pairwise(self) -> bool:
        """Whether the kernel takes a precomputed matrix instead of data."""
        return self.input is Input.MATRIX

    def resolve(self, X: Any, feature_names: Sequence[str] | None = None) -> Kernel:
        """Return a copy in which ``"scale"``, ``"auto"`` and column names have become numbers.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features), or Views of one
            The training data. Who goes on to evaluate the kernel gives the same views to both, so
            that feature maps are applied once.
        feature_names : sequence of str, optional
            Names of the columns of X, for kernels on columns chosen by name.

        Returns
        -------
        kernel : Kernel
            Independent of X from here on.
        """
        return self._resolve_seen(Views.of(X), feature_names)

    def lower(self) -> Program:
        """Return the postfix programme that backends evaluate; the kernel must be resolved."""
        program = Program()
        self._emit(program, ())
        return program

    @abstractmethod
    def _emit(self, program: Program, view: View) -> None:
        """Append the instructions that leave this kernel's value on top of the stack."""

    def _resolve(self, X: Any, feature_names: Sequence[str] | None) -> Kernel:
        """Return a copy in which what depends on the data X is a number."""
        return clone(self)

    def _resolve_seen(self, views: Views, feature_names: Sequence[str] | None) -> Kernel:
        """As :meth:`_resolve`; kernels made of others hand the views on to them."""
        X = views.numbers if self.input is Input.VECTORS else views.X
        return self._resolve(X, feature_names)

    @on_one_blas_thread
    def __call__(self, X: Any, Z: Any = None) -> np.ndarray:
        """Kernel matrix between the rows of X and of Z (of X, if Z is not given).

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
        Z : array-like or sparse matrix of shape (m, d), optional

        Returns
        -------
        K : ndarray of shape (n, m)
            In float64. What depends on data, such as ``gamma="scale"``, is taken from the columns'
            points: from Z if it is given, as in ``k(X_test, X_train)``, else from X.
        """
        X, names = self.checked(X)
        if self.pairwise:
            if Z is not None:
                raise ValueError(f"{self!r} looks its values up in one given matrix: call k(K).")
            program = self.resolve(X).lower()
            left = cpu.Operand.prepare(program, X)
            out = np.empty(X.shape)
            right = cpu.Operand.of_columns(program, np.arange(X.shape[1]))
        else:
            Z, other_names = (X, names) if Z is None else self.checked(Z)
            if names is not None and other_names is not None and names != other_names:
                raise ValueError(f"X has columns {names} and Z has {other_names}.")
            if hasattr(X, "shape") and hasattr(Z, "shape") and X.shape[1:] != Z.shape[1:]:
                raise ValueError(
                    f"X has {X.shape[1]} features and Z has {Z.shape[1]}; they must be the same."
                )
            views = Views(Z)
            program = self.resolve(views, other_names).lower()
            right = cpu.Operand.prepare(program, views)
            left = right if Z is X else cpu.Operand.prepare(program, X, like=right)
            out = np.empty((left.n, right.n))
        cpu.kernel_rows(program, left, np.arange(left.n), right, out)
        return out

    def diag(self, X: Any) -> np.ndarray:
        """``k(x, x)`` for every row of X, shape (n,), without the rest of the matrix."""
        X, names = self.checked(X)
        if self.pairwise and X.shape[0] != X.shape[1]:
            raise ValueError(
                f"{self!r} looks k(x, x) up in the square matrix of the points with themselves; "
                f"this one has shape {X.shape}."
            )
        views = Views(X)
        program = self.resolve(views, names).lower()
        return cpu.kernel_diagonal(program, cpu.Operand.prepare(program, views))

    def checked(self, X: Any) -> tuple[Any, Sequence[str] | None]:
        """Return validated points, and the names of their columns if they have any."""
        names = list(X.columns) if hasattr(X, "columns") else None
        if self.input is Input.OBJECTS:
            return X, names
        if self.input is Input.SEQUENCES:
            return as_table(X), names
        return check_array(X, accept_sparse="csr", dtype=[np.float64, np.float32]), names

    # -- the algebra ---------------------------------------------------------------------------

    def __add__(self, other: Any) -> Kernel:
        from maxmargin.kernels.algebra import Shifted, Sum

        if isinstance(other, Kernel):
            _same_input(self, other)
            return Sum(*Sum.parts_of(self), *Sum.parts_of(other))
        return Shifted(self, _constant(other)) if _is_number(other) else _no_kernel(self, other)

    def __radd__(self, other: Any) -> Kernel:
        return self if _is_number(other) and other == 0 else self + other  # sum() starts at 0

    def __sub__(self, other: Any) -> Kernel:
        if isinstance(other, Kernel):
            return self + (-1.0) * other
        return self + -_constant(other) if _is_number(other) else _no_kernel(self, other)

    def __rsub__(self, other: Any) -> Kernel:
        return self * -1.0 + _constant(other) if _is_number(other) else _no_kernel(self, other)

    def __neg__(self) -> Kernel:
        return self * -1.0

    def __mul__(self, other: Any) -> Kernel:
        from maxmargin.kernels.algebra import Product, Scaled

        if isinstance(other, Kernel):
            _same_input(self, other)
            return Product(*Product.parts_of(self), *Product.parts_of(other))
        return Scaled(self, _constant(other)) if _is_number(other) else _no_kernel(self, other)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Kernel:
        return self * (1.0 / _constant(other)) if _is_number(other) else NotImplemented

    def __pow__(self, exponent: Any) -> Kernel:
        from maxmargin.kernels.algebra import Power

        return Power(self, exponent)

    def exp(self) -> Kernel:
        """``exp(k)``, rule (6.16); ``numpy.exp(k)`` is the same."""
        from maxmargin.kernels.algebra import Exponential

        return Exponential(self)

    def polynomial(self, coefficients: Sequence[float]) -> Kernel:
        """``sum_m coefficients[m] * k**m``, rule (6.15) when no coefficient is negative."""
        from maxmargin.kernels.algebra import PolynomialOf

        return PolynomialOf(self, coefficients)

    def conformal(self, f: Callable[[Any], Any]) -> Kernel:
        """``f(x) k(x, z) f(z)``, rule (6.14); ``f`` maps X of shape (n, d) to n numbers."""
        from maxmargin.kernels.algebra import Conformal

        return Conformal(self, f)

    def normalized(self) -> Kernel:
        """``k(x, z) / sqrt(k(x, x) k(z, z))``: every point gets length one in feature space."""
        from maxmargin.kernels.algebra import Normalized

        return Normalized(self)

    def after(self, feature_map: Callable[[Any], Any]) -> Kernel:
        """``k(phi(x), phi(z))``, rule (6.19); ``phi`` maps X of shape (n, d) to (n, M)."""
        from maxmargin.kernels.algebra import Mapped

        return Mapped(self, feature_map)

    def on(self, columns: Any) -> Kernel:
        """``k(x_a, z_a)`` on some columns: indices, a slice, a mask, or DataFrame names.

        Sums and products of such kernels are rules (6.21) and (6.22).
        """
        from maxmargin.kernels.algebra import OnColumns

        return OnColumns(self, columns)

    def stretched(self, factors: Any = None) -> Kernel:
        """``k(s * x, s * z)``, a factor for each column: all one, unless ``factors`` says others.

        With factors that are learned this is automatic relevance determination, for any kernel.
        """
        from maxmargin.kernels.stretched import Stretched

        return Stretched(self, factors)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        # numpy scalars ask here before Python would ask __rmul__ and its kin
        operation = _UFUNCS.get(ufunc)
        if operation is None or method != "__call__" or kwargs or any(map(np.ndim, inputs)):
            return NotImplemented
        scalars = (np.generic, np.ndarray)
        return operation(*(x.item() if isinstance(x, scalars) else x for x in inputs))

    # -- parameters, identity and printing ------------------------------------------------------

    @classmethod
    @cache
    def _parameters(cls) -> list[Parameter]:
        return [p for p in signature(cls).parameters.values() if p.name != "self"]

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name, if ``deep`` also of kernels inside: ``k1__gamma``."""
        params = self._own_params()
        if deep:
            for name, value in list(params.items()):
                if isinstance(value, Kernel):
                    inner = value.get_params().items()
                    params |= {f"{name}__{key}": inside for key, inside in inner}
        return params

    def _own_params(self) -> dict[str, Any]:
        return {parameter.name: getattr(self, parameter.name) for parameter in self._parameters()}

    def set_params(self, **params: Any) -> Kernel:
        """Set parameters by name, those of kernels inside as ``k1__gamma``; returns the kernel."""
        own = {name: value for name, value in params.items() if "__" not in name}
        unknown = sorted(set(own) - set(self.get_params(deep=False)))
        if unknown:
            names = sorted(self.get_params())
            raise ValueError(f"{unknown[0]!r} is not a parameter of {self!r}; it has {names}.")
        for name, value in own.items():  # whole kernels before what is inside them
            setattr(self, name, value)
        inside: dict[str, dict[str, Any]] = {}
        for name in params.keys() - own.keys():
            outer, _, inner = name.partition("__")
            inside.setdefault(outer, {})[inner] = params[name]
        for name, values in inside.items():
            kernel = getattr(self, name, None)
            if not isinstance(kernel, Kernel):
                raise ValueError(
                    f"{name!r} is not a parameter of {self!r} that has parameters itself; "
                    f"it has {sorted(self.get_params())}."
                )
            kernel.set_params(**values)
        return self

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        mine, theirs = self.get_params(deep=False), other.get_params(deep=False)  # type: ignore[attr-defined]
        return all(_same(mine[name], theirs[name]) for name in mine)

    def __hash__(self) -> int:
        return hash(type(self))  # parameters can be set, so they must not enter the hash

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        parameters = self._parameters()
        whole = takewhile(lambda p: type(p.default) is int, parameters)
        always = {parameter.name for parameter in whole}  # k, m, a degree: which formula it is
        given = [
            f"{parameter.name}={shown(getattr(self, parameter.name))}"
            for parameter in parameters
            if parameter.name in always
            or not _same(getattr(self, parameter.name), parameter.default)
        ]
        return f"{type(self).__name__}({', '.join(given)})"

    def _within(self, precedence: int) -> str:
        """Printed form, in parentheses where a tighter operator surrounds it."""
        text = str(self)
        return text if self._precedence >= precedence else f"({text})"


def exp(kernel: Kernel) -> Kernel:
    """``exp(k)`` of a kernel, rule (6.16).

    >>> from maxmargin.kernels import Linear, exp
    >>> exp(Linear())([[1.0]], [[0.0]])
    array([[1.]])
    """
    return kernel.exp()


_UFUNCS: dict[Any, Callable] = {
    np.add: operator.add,
    np.subtract: operator.sub,
    np.multiply: operator.mul,
    np.divide: operator.truediv,
    np.power: operator.pow,
    np.negative: operator.neg,
    np.equal: operator.eq,
    np.not_equal: operator.ne,
    np.exp: exp,
}


def _is_number(value: Any) -> bool:
    return isinstance(value, Real | np.bool_) or (isinstance(value, np.ndarray) and value.ndim == 0)


def _constant(value: Any) -> float:
    number = float(value)
    if not np.isfinite(number):
        raise ValueError(f"A kernel can be scaled or shifted by finite numbers only, not {value}.")
    return number


def _same(a: Any, b: Any) -> bool:
    if hasattr(a, "__array__") or hasattr(b, "__array__"):
        return type(a) is type(b) and np.array_equal(a, b)
    if sp.issparse(a) or sp.issparse(b):
        return type(a) is type(b) and a.shape == b.shape and (a != b).nnz == 0
    return bool(a is b or a == b)


def _no_kernel(kernel: Kernel, other: Any) -> Any:
    """Say how a function or a name becomes a kernel; all else Python refuses itself."""
    if isinstance(other, str):
        way = f"as_kernel({other!r})"
    elif callable(other):
        way = f"FunctionKernel({shown(other)})"
    else:
        return NotImplemented
    raise TypeError(
        f"{kernel!r} goes together with kernels and numbers, and {shown(other)} is neither: make "
        f"it a kernel with maxmargin.kernels.{way}."
    )


def _same_input(k1: Kernel, k2: Kernel) -> None:
    """Refuse to mix kernels on a precomputed matrix with kernels on data."""
    if k1.pairwise != k2.pairwise:
        raise ValueError(
            f"{k1!r} and {k2!r} cannot be combined: one takes a precomputed matrix in place of X, "
            "the other needs X itself. Compute the second one's matrix with k(X) and add the two "
            "matrices, or wrap the first in a function of X."
        )


def shown(value: Any) -> str:
    """Printed form of a parameter; functions go by their name, not their address."""
    return value.__name__ if callable(value) and hasattr(value, "__name__") else repr(value)


def brief(number: float) -> str:
    """Shortest printed form of a number that means it exactly."""
    return f"{number:g}" if float(f"{number:g}") == number else repr(float(number))


def joint_input(*kernels: Kernel) -> Input:
    """Return what a composition compares: vectors as soon as one part needs them.

    Beside sequences they are columns of the same table.
    """
    inputs = {kernel.input for kernel in kernels}
    order = (Input.MATRIX, Input.SEQUENCES, Input.VECTORS)
    return next((kind for kind in order if kind in inputs), Input.OBJECTS)


def of_points(kernel: Kernel, construction: str) -> Input:
    """Return what a construction compares that needs the points; a matrix of values has none."""
    if kernel.pairwise:
        raise ValueError(
            f"{construction} needs the points themselves, and {kernel!r} has only a matrix of "
            "kernel values: apply the construction before computing the matrix."
        )
    return kernel.input


def joint_validity(*kernels: Kernel) -> Validity:
    """Validity of a construction that keeps it: proven when every part's is."""
    proven = all(kernel.validity is Validity.VALID for kernel in kernels)
    return Validity.VALID if proven else Validity.UNPROVEN


def whole_number(name: str, value: Any) -> int:
    """Check an exponent: a non-negative whole number."""
    if not isinstance(value, Integral) or isinstance(value, bool | np.bool_) or value < 0:
        raise ValueError(f"{name} must be a whole number of at least 0, got {value!r}.")
    return int(value)


def finite_number(name: str, value: Any, *, minimum: float | None = None) -> float:
    """Check a real parameter, with an optional lower bound."""
    if not _is_number(value) or not np.isfinite(value) or (minimum is not None and value < minimum):
        bound = "" if minimum is None else f" of at least {minimum:g}"
        raise ValueError(f"{name} must be a finite number{bound}, got {value!r}.")
    return float(value)


def positive_number(name: str, value: Any) -> float:
    """Check a real parameter that must be above zero."""
    if not finite_number(name, value, minimum=0.0):
        raise ValueError(f"{name} must be positive, got 0.")
    return float(value)
