"""The numbers of a kernel as one vector of logarithms: what a likelihood is maximised over.

A number takes part by the logarithm of its size and keeps its sign; zero, which means that a term
is not there, stays. Whole numbers (a degree) are part of the formula, and so are numbers that enter
through a feature map or a recursion: what counts is found out by changing each number a little and
looking whether the programme changes in nothing but its numbers.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Collection
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from maxmargin.backends.program import Program
from maxmargin.backends.views import Views
from maxmargin.kernels.base import Kernel

STEP = 1e-5  # of a logarithm; a programme's numbers are powers of the parameters, or nearly


class Number(NamedTuple):
    """One number of a kernel: the parameter, its place where that is a sequence, and its value."""

    parameter: str
    place: int | None
    value: float

    @property
    def name(self) -> str:
        """As the parameter is called; in a sequence, with its place in brackets."""
        return self.parameter if self.place is None else f"{self.parameter}[{self.place}]"


class Parameters(ABC):
    """A kernel as a function of its hyperparameters' logarithms theta, for maximum likelihood.

    Attributes
    ----------
    theta : float array
        Where the kernel is as it was given.
    signs : float array
        Of the numbers whose sizes ``exp(theta)`` are.
    box : float array (p, 2)
        Bounds of theta; NaN where there are none.
    """

    theta: np.ndarray
    signs: np.ndarray
    box: np.ndarray

    def __init__(self) -> None:
        self._lock = threading.Lock()  # one kernel is set to one theta after the other

    @property
    @abstractmethod
    def names(self) -> list[str]:
        """Names of the parameters."""

    @abstractmethod
    def _set(self, theta: np.ndarray) -> None:
        """Change the kernel in place."""

    @abstractmethod
    def _kernel(self) -> Kernel:
        """Return the kernel as it is, resolved; it may change later."""

    def noise_at(self, theta: np.ndarray, views: Views) -> tuple[Any, np.ndarray | None]:
        """Return the variances that the kernel adds to its diagonal, and derivatives or None."""
        return 0.0, None

    def kernel_at(self, theta: np.ndarray) -> Kernel:
        """Return the kernel with other numbers."""
        with self._lock:
            self._set(theta)
            return clone(self._kernel())

    def shown_at(self, theta: np.ndarray) -> str:
        """Printed form of the kernel with other numbers."""
        return str(self.kernel_at(theta))

    def label(self, k: int) -> str:
        """Return the name of a parameter for a warning."""
        return f"the parameter {self.names[k]}"

    def program_at(self, theta: np.ndarray) -> tuple[Program, np.ndarray]:
        """Return the programme, and the derivatives of its numbers by theta (p, numbers)."""
        with self._lock:
            slopes = []
            for k in range(len(theta)):
                step = np.zeros(len(theta))
                step[k] = STEP
                after, before = (self._lowered(theta + sign * step).numbers for sign in (1, -1))
                slopes.append((after - before) / (2 * STEP))
            program = self._lowered(theta)
        return program, np.array(slopes).reshape(len(theta), len(program.numbers))

    def _lowered(self, theta: np.ndarray) -> Program:
        self._set(theta)
        return self._kernel().lower()


class KernelNumbers(Parameters):
    """The free numbers of a resolved kernel of this package.

    Parameters
    ----------
    kernel : Kernel
        Resolved.
    fixed : collection of str
        Names that are not free.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.kernels import RBF, Polynomial
    >>> from maxmargin.kernels.parameters import KernelNumbers
    >>> parameters = KernelNumbers(2.0 * RBF(gamma=0.5) + Polynomial(degree=2, coef0=0.0))
    >>> parameters.names
    ['k1__constant', 'k1__gamma', 'k2__gamma']
    >>> parameters.kernel_at(parameters.theta + np.log(2.0))
    4 * RBF(gamma=1.0) + Polynomial(degree=2, coef0=0.0, gamma=2.0)
    """

    def __init__(self, kernel: Kernel, fixed: Collection[str] = ()) -> None:
        super().__init__()
        self.kernel = clone(kernel)
        self.numbers: list[Number] = []
        before = self.kernel.lower()
        for number in _numbers(self.kernel):
            if number.name not in fixed and self._is_smooth(number, before):
                self.numbers.append(number)
        self.signs = np.sign([number.value for number in self.numbers])
        self.theta = np.log(np.abs([number.value for number in self.numbers]))
        self.box = np.full((len(self.theta), 2), np.nan)
        self._set(self.theta)

    @property
    def names(self) -> list[str]:
        """Names of the numbers."""
        return [number.name for number in self.numbers]

    def _kernel(self) -> Kernel:
        return self.kernel

    def _set(self, theta: np.ndarray) -> None:
        values = self.signs * np.exp(theta)
        for number, value in zip(self.numbers, values, strict=True):
            self._set_one(number, float(value))

    def _set_one(self, number: Number, value: float) -> None:
        given: Any = value
        if number.place is not None:
            given = list(self.kernel.get_params()[number.parameter])
            given[number.place] = value
            given = tuple(given)
        self.kernel.set_params(**{number.parameter: given})

    def _is_smooth(self, number: Number, before: Program) -> bool:
        """Whether the kernel's values depend on a number through those of its programme."""
        try:
            self._set_one(number, number.value * (1 + STEP))
            after = self.kernel.lower()
        except (ValueError, TypeError):  # not any number will do
            after = Program()
        finally:
            self._set_one(number, number.value)
        return after.is_like(before) and not np.array_equal(after.numbers, before.numbers)


def _numbers(kernel: Kernel) -> list[Number]:
    """All numbers of a kernel but zeros and whole ones."""
    fixed = _choices(kernel)
    found = []
    for name, value in kernel.get_params().items():
        if name in fixed:
            continue
        if _is_real(value):
            found.append(Number(name, None, float(value)))
        elif isinstance(value, list | tuple | np.ndarray) and any(map(_is_real, value)):
            found += [Number(name, k, float(entry)) for k, entry in enumerate(value)]
    return [number for number in found if number.value]


def _choices(kernel: Kernel) -> set[str]:
    """Names of numbers that select a formula, in the kernel and in those inside."""
    names = set(kernel._fixed)
    own = kernel.get_params(deep=False)
    deep = kernel.get_params()
    for part, inside in own.items():
        if isinstance(inside, Kernel):
            for name in _choices(inside):
                long = f"{part}__{name}"
                names.add(long if long in deep else name)
    return names


def _is_real(value: Any) -> bool:
    return isinstance(value, float | np.floating) and bool(np.isfinite(value))
