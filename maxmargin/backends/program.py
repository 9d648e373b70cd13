"""The small postfix programme that a kernel becomes before a backend evaluates it.

A kernel value is an elementwise function of a few *primitives* of two points: their product, their
squared distance, their L1 distance, an entry of a given matrix, the value of a Python function or
what compiled code makes of two strings.
``0.5 * RBF(gamma) + Linear()`` becomes::

    PUSH squared_distance   SCALE -gamma   EXP   SCALE 0.5   PUSH dot   ADD

Each primitive sees the points through a *view*: a chain of column selections and feature maps.
Backends know only this form; kernels know only how to write it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

PUSH, SCALE, SHIFT, ADD, MULTIPLY, POWER, POLYNOMIAL, EXP, TANH, FACTOR, SQRT, LOG1P = range(12)
SIN, MATERN, LOG = 12, 13, 14

_LARGEST_EXPONENT = 709.0  # of a finite exponential

DOT = "dot"
SQUARED_DISTANCE = "squared_distance"
L1_DISTANCE = "l1_distance"
PRECOMPUTED = "precomputed"
FUNCTION = "function"
STRINGS = "strings"


@dataclass(frozen=True)
class Columns:
    """A view step: keep these columns (indices), in this order."""

    indices: tuple[int, ...]


@dataclass(frozen=True)
class Map:
    """A view step: replace the rows of X by ``function(X)``."""

    function: Callable[[Any], Any]


@dataclass(frozen=True)
class Stretch:
    """A view step: multiply each column by a factor of its own."""

    factors: tuple[float, ...]


View = tuple[Columns | Map | Stretch, ...]


@dataclass(frozen=True)
class Primitive:
    """One number per pair of points that the programme starts from.

    ``function`` is the caller's for the kind ``FUNCTION``, and for ``STRINGS`` a
    :class:`maxmargin.backends.strings.StringFunction`.
    """

    kind: str
    view: View = ()
    function: Any = None

    @property
    def stretch(self) -> tuple[float, ...]:
        """Factors of the columns where stretching them is the last thing that the view does."""
        last = self.view[-1] if self.view else None
        return last.factors if isinstance(last, Stretch) else ()


@dataclass(frozen=True)
class Factor:
    """A function of one point: the programme multiplies by its value at both points.

    Where it is a programme itself, that function is ``1 / sqrt(k(x, x))`` of its values.
    """

    function: Callable[[Any], Any] | Program
    view: View = ()


@dataclass
class Program:
    """Primitives, factors and the postfix code over them; filled by ``Kernel.lower``."""

    primitives: list[Primitive] = field(default_factory=list)
    factors: list[Factor] = field(default_factory=list)
    coefficients: list[float] = field(default_factory=list)
    code: list[tuple[int, int, int, float]] = field(default_factory=list)

    def push(self, kind: str, view: View = (), function: Any = None) -> None:
        """Push a primitive; one that was pushed before is shared.

        Of stretched columns only by the same kernel: another one's factors can be changed apart.
        """
        primitive = Primitive(kind, view, function)
        if primitive.stretch and not any(known.view is view for known in self.primitives):
            self.primitives.append(primitive)
            self._emit(PUSH, len(self.primitives) - 1)
            return
        same = [k for k, p in enumerate(self.primitives) if p.view is view and p == primitive]
        self._emit(PUSH, same[0] if same else _index_of(self.primitives, primitive))

    def scale(self, constant: float) -> None:
        """Multiply the top of the stack by a constant."""
        self._emit(SCALE, constant=constant)

    def shift(self, constant: float) -> None:
        """Add a constant to the top of the stack."""
        self._emit(SHIFT, constant=constant)

    def add(self) -> None:
        """Replace the two topmost values by their sum."""
        self._emit(ADD)

    def multiply(self) -> None:
        """Replace the two topmost values by their product."""
        self._emit(MULTIPLY)

    def power(self, exponent: float) -> None:
        """Raise the top of the stack to a power; a fractional one needs values of at least zero."""
        if exponent == int(exponent):
            self._emit(POWER, int(exponent))
            return
        self._emit(LOG)
        self.scale(float(exponent))
        self.exp()

    def polynomial(self, coefficients: list[float]) -> None:
        """Replace the top t by ``sum_k coefficients[k] * t**k``."""
        self._emit(POLYNOMIAL, len(self.coefficients), len(coefficients))
        self.coefficients.extend(coefficients)

    def exp(self) -> None:
        """Replace the top of the stack by its exponential."""
        self._emit(EXP)

    def tanh(self) -> None:
        """Replace the top of the stack by its hyperbolic tangent."""
        self._emit(TANH)

    def sqrt(self) -> None:
        """Replace the top of the stack by its root."""
        self._emit(SQRT)

    def log1p(self) -> None:
        """Replace the top t of the stack by ``log(1 + t)``."""
        self._emit(LOG1P)

    def sin(self) -> None:
        """Replace the top of the stack by its sine."""
        self._emit(SIN)

    def matern(self, nu: float) -> None:
        """Replace the top r of the stack by ``2^(1 - nu) / Gamma(nu) t^nu K_nu(t)``, t = sqrt(r).

        K_nu is the modified Bessel function of the second kind.
        """
        self._emit(MATERN, constant=nu)

    def factor(self, function: Callable[[Any], Any], view: View = ()) -> None:
        """Multiply the top of the stack by ``function`` at both points."""
        self._emit(FACTOR, _index_of(self.factors, Factor(function, view)))

    def normalize(self, program: Program) -> None:
        """Divide the top of the stack by the lengths of both points under a programme."""
        self._emit(FACTOR, _index_of(self.factors, Factor(program)))

    def _emit(self, opcode: int, first: int = 0, second: int = 0, constant: float = 0.0) -> None:
        self.code.append((opcode, first, second, float(constant)))

    def arrays(self, dtype: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
        """``(instructions, constants, coefficients, stack depth)`` for the compiled interpreter."""
        instructions, constants, coefficients, depth = self._arrays
        return instructions, constants.astype(dtype), coefficients.astype(dtype), depth

    @property
    def numbers(self) -> np.ndarray:
        """All numbers that values depend on smoothly.

        Constants, coefficients, the factors of stretched columns, and those of programmes inside.
        """
        parts: list[Any] = [[step[3] for step in self.code], self.coefficients]
        parts += [primitive.stretch for primitive in self.primitives]
        parts += [f.function.numbers for f in self.factors if isinstance(f.function, Program)]
        return np.concatenate([np.asarray(part, dtype=np.float64) for part in parts])

    def is_like(self, other: Program) -> bool:
        """Whether two programmes are the same but for their :attr:`numbers`."""
        return self._form == other._form

    @property
    def _form(self) -> tuple:
        """What is left of a programme without its numbers."""
        primitives = [
            (p.kind, p.view[:-1] if p.stretch else p.view, len(p.stretch), p.function)
            for p in self.primitives
        ]
        factors = [f.function._form if isinstance(f.function, Program) else f for f in self.factors]
        code = [step[:3] for step in self.code]
        return code, len(self.coefficients), primitives, factors

    @property
    def calls_python(self) -> bool:
        """Whether every tile needs a function of the user's: one thread at a time, then."""
        return any(primitive.kind == FUNCTION for primitive in self.primitives)

    @property
    def pairs_strings(self) -> bool:
        """Whether a value takes a pass over two strings."""
        return bool(self._of_strings)

    @property
    def off_gpu(self) -> str | None:
        """Why a GPU cannot run this programme, as the end of a sentence; None where it can."""
        kinds = {primitive.kind for primitive in self.primitives}
        if FUNCTION in kinds:
            return "calls a Python function, which a GPU cannot run"
        if any(primitive.function.features is None for primitive in self._of_strings):
            return "is a recursion over two strings, which runs on the CPU"
        if any(step[0] == MATERN for step in self.code):
            return "has a Bessel function, which is computed on the CPU"
        return None

    @property
    def _of_strings(self) -> list[Primitive]:
        return [primitive for primitive in self.primitives if primitive.kind == STRINGS]

    def with_features(self) -> Program:
        """Return it with products of features in place of functions of two strings."""
        if not self._of_strings:
            return self
        primitives = [
            Primitive(DOT, (*p.view, Map(p.function.features))) if p.kind == STRINGS else p
            for p in self.primitives
        ]
        factors = [
            Factor(f.function.with_features()) if isinstance(f.function, Program) else f
            for f in self.factors
        ]
        return Program(primitives, factors, self.coefficients, self.code)

    @cached_property
    def rates(self) -> list[float]:
        """For each primitive ``r`` where all that is made of it is ``exp(-c t)``, ``c <= r``.

        Infinite for a primitive that is used in another way.
        """
        rates = [0.0] * len(self.primitives)
        for place, (opcode, primitive, _, _) in enumerate(self.code):
            if opcode == PUSH:
                after = self.code[place + 1 : place + 3]
                decays = [step[0] for step in after] == [SCALE, EXP] and after[0][3] <= 0
                rates[primitive] = max(rates[primitive], -after[0][3] if decays else np.inf)
        return rates

    def rounding(self, primitives: list[float]) -> float:
        """Bound on the error of a value k(x, z), in roundings of ``sqrt(k(x, x) k(z, z))``.

        ``primitives`` are those of the primitives: for a product, relative to the lengths of its
        factors; for a distance, those of its decaying exponential, which its root and its logarithm
        do not exceed. The steps of a positive
        semidefinite kernel keep the form: ``(|x||z| + c)^2 <= (|x|^2 + c)(|z|^2 + c)``.
        """
        stack: list[float] = []
        distance = False  # whether the top is one, scaled at most
        for opcode, first, second, _ in self.code:
            if opcode == PUSH:
                stack.append(primitives[first])
                distance = self.primitives[first].kind in (SQUARED_DISTANCE, L1_DISTANCE)
                continue
            above = stack.pop()
            if opcode == ADD:
                above = max(stack.pop(), above)
            elif opcode == MULTIPLY:
                above += stack.pop()
            elif opcode == POWER:
                above *= first
            elif opcode == POLYNOMIAL:
                above = 2.0 * second * (above + 1.0)
            elif opcode == EXP and not distance:
                above *= _LARGEST_EXPONENT
            stack.append(above + 3.0)
            distance = distance and opcode in (SCALE, SQRT, LOG1P)
        return stack[0] if stack else 0.0

    @cached_property
    def is_given(self) -> bool:
        """Whether the values are those of a given matrix, as they are."""
        return self.is_primitive and self.primitives[0].kind == PRECOMPUTED

    @cached_property
    def is_primitive(self) -> bool:
        """Whether the values are those of one primitive, as they are."""
        return [step[0] for step in self.code] == [PUSH]

    @cached_property
    def is_function(self) -> bool:
        """Whether the values are those of a Python function, as they are."""
        return self.is_primitive and self.primitives[0].kind == FUNCTION

    @cached_property
    def gaussian_rate(self) -> float | None:
        """``-gamma`` where the whole programme is ``exp(-gamma * squared distance)``."""
        opcodes = [step[0] for step in self.code]
        if opcodes == [PUSH, SCALE, EXP] and self.primitives[0].kind == SQUARED_DISTANCE:
            return self.code[1][3]
        return None

    @cached_property
    def product_scale(self) -> float | None:
        """``c`` where the whole programme is ``c x . z``."""
        opcodes = [step[0] for step in self.code]
        if opcodes in ([PUSH], [PUSH, SCALE]) and self.primitives[0].kind == DOT:
            return self.code[1][3] if len(opcodes) > 1 else 1.0
        return None

    @cached_property
    def _arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
        instructions = np.array([step[:3] for step in self.code], dtype=np.int64).reshape(-1, 3)
        constants = np.array([step[3] for step in self.code], dtype=np.float64)
        coefficients = np.array(self.coefficients or [0.0], dtype=np.float64)
        height = depth = 0
        for opcode, *_ in self.code:
            height += (opcode == PUSH) - (opcode in (ADD, MULTIPLY))
            depth = max(depth, height)
        return instructions, constants, coefficients, int(depth)


def _index_of(items: list, item: Any) -> int:
    """Position of ``item`` in ``items``, appended first if it is new."""
    if item not in items:
        items.append(item)
    return items.index(item)
