"""New kernels from old: the construction rules (6.13) to (6.22), one class each."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from maxmargin.backends import program as op
from maxmargin.backends.program import Program, View
from maxmargin.backends.views import Views
from maxmargin.kernels.base import (
    Input,
    Kernel,
    Validity,
    _same_input,
    brief,
    finite_number,
    joint_input,
    joint_validity,
    of_points,
    shown,
)


class Combination(Kernel):
    """Kernels on the same points, with the names ``k1``, ``k2`` and so on.

    Those of ``a + b + c`` are in one sum, so that a parameter of the third is ``k3__gamma``.
    """

    k1: Kernel

    def __init__(self, *kernels: Kernel, **named: Kernel) -> None:
        given = {f"k{k}": kernel for k, kernel in enumerate(kernels, 1)} | named
        self._names = [f"k{k}" for k in range(1, len(given) + 1)]
        for name in self._names:
            if not isinstance(given.get(name), Kernel):
                raise TypeError(f"{type(self).__name__} takes kernels k1, k2, ...; got {given}.")
            setattr(self, name, given[name])

    @property
    def kernels(self) -> list[Kernel]:
        """The kernels, in their order."""
        return [getattr(self, name) for name in self._names]

    @classmethod
    def parts_of(cls, kernel: Kernel) -> list[Kernel]:
        """Return the kernels that another one combines in this way, or the one itself."""
        return kernel.kernels if isinstance(kernel, cls) else [kernel]

    def _own_params(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self._names}

    @property
    def validity(self) -> Validity:
        """Valid when all parts are."""
        return joint_validity(*self.kernels)

    @property
    def input(self) -> Input:
        """What all parts can compare."""
        return joint_input(*self.kernels)

    def _resolve_seen(self, views: Views, feature_names: Sequence[str] | None) -> Kernel:
        for kernel in self.kernels[1:]:
            _same_input(self.k1, kernel)
        return type(self)(*(kernel.resolve(views, feature_names) for kernel in self.kernels))

    def _emit(self, program: Program, view: View) -> None:
        self.k1._emit(program, view)
        for kernel in self.kernels[1:]:
            kernel._emit(program, view)
            self._combine(program)

    @abstractmethod
    def _combine(self, program: Program) -> None:
        """Append the instruction that makes one value of the topmost two."""


class Sum(Combination):
    """``k1(x, z) + k2(x, z)``, rules (6.17) and, on sub-vectors, (6.21).

    Examples
    --------
    >>> from maxmargin.kernels import RBF, Linear, Polynomial
    >>> (Linear() + Polynomial(degree=2))([[1.0]], [[2.0]])
    array([[11.]])
    >>> k = Linear() + Polynomial(degree=2) + 0.5 * RBF(gamma=1.0)
    >>> k.set_params(k3__gamma=2.0, k3__constant=0.1)
    Linear() + Polynomial(degree=2) + 0.1 * RBF(gamma=2.0)
    """

    _precedence = 0

    def _combine(self, program: Program) -> None:
        program.add()

    def __str__(self) -> str:
        return " + ".join(map(str, self.kernels))


class Product(Combination):
    """``k1(x, z) k2(x, z)``, rules (6.18) and, on sub-vectors, (6.22).

    Examples
    --------
    >>> from maxmargin.kernels import Linear
    >>> (Linear().on([0]) * Linear().on([1]))([[2.0, 3.0]])
    array([[36.]])
    """

    _precedence = 1

    def _combine(self, program: Program) -> None:
        program.multiply()

    def __str__(self) -> str:
        return " * ".join(kernel._within(1) for kernel in self.kernels)


class Construction(Kernel):
    """Something made of one kernel, whose parameters go by their own names.

    The gamma of ``0.5 * RBF()`` is ``gamma``, beside ``constant``. Only a name that the
    construction has itself needs the long form: in ``2 * (k + 1)`` the 1 is ``kernel__constant``.
    """

    kernel: Kernel

    @property
    def validity(self) -> Validity:
        """Valid when the kernel inside is and the construction keeps it so."""
        return joint_validity(self.kernel) if self._keeps_validity else Validity.UNPROVEN

    @property
    def _keeps_validity(self) -> bool:
        return True

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name, if ``deep`` also of the kernel inside."""
        own = self._own_params()
        if not deep:
            return own
        inner = self.kernel.get_params()
        return own | {
            f"kernel__{name}" if name.partition("__")[0] in own else name: value
            for name, value in inner.items()
        }

    def set_params(self, **params: Any) -> Kernel:
        """Set parameters by name, those of the kernel inside by its names; returns the kernel."""
        own = {
            n: value for n, value in params.items() if n.partition("__")[0] in self._own_params()
        }
        super().set_params(**own)
        self.kernel.set_params(**{n: v for n, v in params.items() if n not in own})
        return self


class Modification(Construction):
    """One kernel, changed value by value."""

    @property
    def input(self) -> Input:
        """What the kernel inside compares."""
        return self.kernel.input

    def _resolve_seen(self, views: Views, feature_names: Sequence[str] | None) -> Kernel:
        params = self.get_params(deep=False)
        params["kernel"] = self.kernel.resolve(views, feature_names)
        return type(self)(**params)

    def _emit(self, program: Program, view: View) -> None:
        self.kernel._emit(program, view)
        self._modify(program, view)

    @abstractmethod
    def _modify(self, program: Program, view: View) -> None:
        """Append the instructions that change the value on top of the stack."""


class WithConstant(Modification):
    """A kernel and a constant, which must not be negative for the result to stay valid."""

    def __init__(self, kernel: Kernel, constant: float) -> None:
        self.kernel = kernel
        self.constant = constant
        finite_number("constant", constant)

    @property
    def _keeps_validity(self) -> bool:
        return self.constant >= 0


class Scaled(WithConstant):
    """``constant * k(x, z)``, rule (6.13): valid for a constant that is not negative.

    Examples
    --------
    >>> from maxmargin.kernels import Linear
    >>> (0.5 * Linear())([[2.0]])
    array([[2.]])
    >>> print((-1 * Linear()).validity)
    not proven
    """

    _precedence = 1

    def _modify(self, program: Program, view: View) -> None:
        program.scale(finite_number("constant", self.constant))

    def __str__(self) -> str:
        return f"{brief(self.constant)} * {self.kernel._within(1)}"


class Shifted(WithConstant):
    """``k(x, z) + constant``: the sum with the constant kernel, valid if that is not negative.

    Examples
    --------
    >>> from maxmargin.kernels import Linear
    >>> (Linear() + 1)([[2.0]])
    array([[5.]])
    """

    _precedence = 0

    def _modify(self, program: Program, view: View) -> None:
        program.shift(finite_number("constant", self.constant))

    def __str__(self) -> str:
        return f"{self.kernel} + {brief(self.constant)}"


class Power(Modification):
    """``k(x, z) ** exponent``, for a whole exponent a case of rule (6.15).

    One that is not whole is for kernels without negative values; few of them stay valid.

    Examples
    --------
    >>> from maxmargin.kernels import Linear
    >>> (Linear() ** 3)([[2.0]])
    array([[64.]])
    """

    _precedence = 2

    # A number that selects a formula.
    _fixed = ("exponent",)

    def __init__(self, kernel: Kernel, exponent: float) -> None:
        self.kernel = kernel
        self.exponent = exponent
        finite_number("exponent", exponent, minimum=0.0)

    @property
    def _keeps_validity(self) -> bool:
        return self.exponent == int(self.exponent)

    def _modify(self, program: Program, view: View) -> None:
        program.power(finite_number("exponent", self.exponent, minimum=0.0))

    def __str__(self) -> str:
        return f"{self.kernel._within(3)} ** {self.exponent}"


class PolynomialOf(Modification):
    """``sum_m coefficients[m] * k(x, z)**m``, rule (6.15): valid if none is negative.

    Examples
    --------
    >>> from maxmargin.kernels import Linear
    >>> k = Linear().polynomial([1.0, 0.0, 2.0])
    >>> k([[3.0]])
    array([[163.]])
    """

    def __init__(self, kernel: Kernel, coefficients: Sequence[float]) -> None:
        self.kernel = kernel
        self.coefficients = coefficients
        self._numbers()

    def _numbers(self) -> list[float]:
        if not len(self.coefficients):
            raise ValueError("A polynomial in a kernel must have at least one coefficient.")
        return [finite_number("a coefficient", c) for c in self.coefficients]

    @property
    def _keeps_validity(self) -> bool:
        return all(c >= 0 for c in self.coefficients)

    def _modify(self, program: Program, view: View) -> None:
        program.polynomial(self._numbers())

    def __str__(self) -> str:
        return f"{self.kernel._within(3)}.polynomial({[float(c) for c in self.coefficients]})"


class Exponential(Modification):
    """``exp(k(x, z))``, rule (6.16).

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.kernels import Linear
    >>> np.exp(Linear())([[1.0]]).round(3)
    array([[2.718]])
    """

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel

    def _modify(self, program: Program, view: View) -> None:
        program.exp()

    def __str__(self) -> str:
        return f"exp({self.kernel})"


class Conformal(Modification):
    """``f(x) k(x, z) f(z)``, rule (6.14), for any real function f of a point.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.kernels import Linear
    >>> cosine = Linear().conformal(lambda X: 1 / np.linalg.norm(X, axis=1))
    >>> cosine([[3.0, 4.0]], [[6.0, 8.0]])
    array([[1.]])
    """

    def __init__(self, kernel: Kernel, f: Callable[[Any], Any]) -> None:
        self.kernel = kernel
        self.f = f

    @property
    def input(self) -> Input:
        """Points, since f needs them."""
        return of_points(self.kernel, "f(x) k(x, z) f(z)")

    def _modify(self, program: Program, view: View) -> None:
        program.factor(self.f, view)

    def __str__(self) -> str:
        return f"{self.kernel._within(3)}.conformal({shown(self.f)})"


class Normalized(Modification):
    """``k(x, z) / sqrt(k(x, x) k(z, z))``: the cosine in feature space, a case of rule (6.14).

    A point of length zero stays there: its values are zero.

    Examples
    --------
    >>> from maxmargin.kernels import Polynomial, Spectrum
    >>> Polynomial(2).normalized()([[1.0], [3.0]]).round(3)
    array([[1. , 0.8],
           [0.8, 1. ]])
    >>> Spectrum(1).normalized()(["AACC", "AC"]).round(3)
    array([[1., 1.],
           [1., 1.]])
    """

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel

    @property
    def input(self) -> Input:
        """Points, since each needs its own length."""
        return of_points(self.kernel, "k(x, z) / sqrt(k(x, x) k(z, z))")

    def _modify(self, program: Program, view: View) -> None:
        alone = Program()
        self.kernel._emit(alone, view)
        program.normalize(alone)

    def __str__(self) -> str:
        return f"{self.kernel._within(3)}.normalized()"


class Mapped(Construction):
    """``k(phi(x), phi(z))``, rule (6.19): a kernel after a feature map.

    Examples
    --------
    >>> from maxmargin.kernels import Linear, quadratic_features
    >>> Linear().after(quadratic_features)([[1.0, 2.0]], [[3.0, 4.0]]).round(10)
    array([[121.]])
    """

    def __init__(self, kernel: Kernel, feature_map: Callable[[Any], Any]) -> None:
        self.kernel = kernel
        self.feature_map = feature_map

    @property
    def input(self) -> Input:
        """Vectors: the map gets validated arrays."""
        of_points(self.kernel, "a kernel after a feature map")
        return Input.VECTORS

    def _resolve_seen(self, views: Views, feature_names: Sequence[str] | None) -> Kernel:
        mapped = views.after(op.Map(self.feature_map))
        return Mapped(self.kernel.resolve(mapped, None), self.feature_map)

    def _emit(self, program: Program, view: View) -> None:
        self.kernel._emit(program, (*view, op.Map(self.feature_map)))

    def __str__(self) -> str:
        return f"{self.kernel._within(3)}.after({shown(self.feature_map)})"


class OnColumns(Construction):
    """``k(x_a, z_a)``: a kernel that sees some columns only, rules (6.21) and (6.22).

    Parameters
    ----------
    kernel : Kernel
    columns : int, str, slice, sequence of int, of str or of bool
        Indices (negative ones count from the end), a slice, a mask with one entry per column, or
        names of DataFrame columns.

    Examples
    --------
    >>> from maxmargin.kernels import RBF, Linear
    >>> k = Linear().on([0]) + RBF(gamma=1.0).on(slice(1, None))
    >>> k([[2.0, 5.0, 5.0]], [[3.0, 5.0, 5.0]])
    array([[7.]])
    """

    def __init__(self, kernel: Kernel, columns: Any) -> None:
        self.kernel = kernel
        self.columns = columns

    @property
    def input(self) -> Input:
        """Vectors, or a table of them beside sequences: only they have columns."""
        inside = of_points(self.kernel, "a kernel on some columns")
        return Input.SEQUENCES if inside is Input.SEQUENCES else Input.VECTORS

    def _resolve_seen(self, views: Views, feature_names: Sequence[str] | None) -> Kernel:
        if len(views.X.shape) < 2:
            raise ValueError(
                f"{self!r} looks at columns of a table, and X is a single column of sequences: "
                f"leave .on(...) out, or pass a DataFrame."
            )
        indices = _column_indices(self.columns, views.X.shape[1], feature_names)
        names = None if feature_names is None else [feature_names[i] for i in indices]
        selected = views.after(op.Columns(indices))
        return OnColumns(self.kernel.resolve(selected, names), indices)

    def _emit(self, program: Program, view: View) -> None:
        self.kernel._emit(program, (*view, op.Columns(tuple(self.columns))))

    def __str__(self) -> str:
        columns = self.columns
        listed = columns if isinstance(columns, slice | str | int) else list(columns)
        return f"{self.kernel._within(3)}.on({listed!r})"


def _column_indices(columns: Any, n: int, names: Sequence[str] | None) -> tuple[int, ...]:
    """Indices of the columns that a user's selection means, out of n."""
    if isinstance(columns, slice) and not isinstance(columns.start, str):
        chosen = np.arange(n)[columns]
    else:
        wanted = np.atleast_1d(np.asarray(columns))
        if wanted.dtype.kind in "UO" and all(isinstance(name, str) for name in wanted):
            if names is None:
                raise ValueError(
                    f"The kernel is on columns {list(map(str, wanted))}, but X has no column "
                    "names: pass a DataFrame with string column names (in a pipeline, "
                    "StandardScaler().set_output(transform='pandas')), or choose by index."
                )
            known = [str(name) for name in names]
            unknown = [str(name) for name in wanted if name not in known]
            if unknown:
                raise ValueError(f"The kernel is on columns {unknown}, which X does not have.")
            chosen = np.array([known.index(name) for name in wanted])
        elif wanted.dtype == bool:
            if len(wanted) != n:
                raise ValueError(f"The column mask has {len(wanted)} entries, X has {n} columns.")
            chosen = np.flatnonzero(wanted)
        elif wanted.dtype.kind in "iu":
            outside = wanted[(wanted < -n) | (wanted >= n)]
            if outside.size:
                raise ValueError(f"The kernel is on column {outside[0]}, but X has {n} columns.")
            chosen = wanted % n
        elif wanted.size:
            raise ValueError(
                "The columns of a kernel are chosen by indices, a slice, a mask or names, "
                f"not by {columns!r}."
            )
        else:
            chosen = wanted
    if not len(chosen):
        raise ValueError(f"The selection {columns!r} leaves the kernel no column to see.")
    return tuple(int(i) for i in chosen)
