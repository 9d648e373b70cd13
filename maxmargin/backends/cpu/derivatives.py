"""Derivatives of kernel values by the numbers in their programme, tile by tile.

Reverse accumulation over the postfix code: values forwards, then from the last instruction to the
first what a change of its result does to the kernel's value. An instruction's result is used once,
so that one pass has the derivatives by all numbers. Columns that are stretched, and lengths under
a programme inside (``Normalized``), enter by the chain rule.

Reference: Griewank and Walther, Evaluating Derivatives, 2008, chapter 3.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from maxmargin.backends import program as op
from maxmargin.backends.compiled import njit
from maxmargin.backends.cpu.loops import exponential, matern, matern_slope
from maxmargin.backends.cpu.operand import Operand
from maxmargin.backends.cpu.tiles import CHUNK
from maxmargin.backends.program import Program
from maxmargin.backends.views import Views


class Derivatives:
    """Derivatives of a programme's values by some of its numbers.

    Parameters
    ----------
    program : Program
    wanted : bool array
        Which of ``program.numbers``.
    views : Views
        The points.
    factors : float array (factors, n)
        The programme's functions of one point.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.backends.cpu.derivatives import Derivatives
    >>> from maxmargin.backends.views import Views
    >>> from maxmargin.kernels import RBF
    >>> program, x = (2.0 * RBF(gamma=1.0)).lower(), np.array([[0.0], [1.0]])
    >>> by = Derivatives(program, program.numbers != 0, Views(x), np.empty((0, 2)))
    >>> by.tile((x - x.T)[None] ** 2, slice(0, 2), slice(0, 2)).round(3)  # by -gamma, by 2
    array([[[0.   , 0.736],
            [0.736, 0.   ]],
    <BLANKLINE>
           [[1.   , 0.368],
            [0.368, 1.   ]]])
    """

    def __init__(
        self, program: Program, wanted: np.ndarray, views: Views, factors: np.ndarray
    ) -> None:
        self.program, self.factors = program, factors
        self.arrays = program.arrays(np.float64)[:3]
        self.operands = _operands(program)
        self.count = 0  # of what the compiled pass writes
        self._recipes: list[tuple[int, Any]] = []  # of each number: of what, and times what
        sizes = [len(program.code), len(program.coefficients)]
        sizes += [len(primitive.stretch) for primitive in program.primitives]
        constants, coefficients, *stretched, inside = np.split(wanted, np.cumsum(sizes))
        self.places = [
            self._in_code(constants),
            self._in_code(coefficients),
            self._in_columns(stretched, views),
            self._in_lengths(inside, views),
        ]

    def _in_code(self, wanted: np.ndarray) -> np.ndarray:
        """Places of numbers that stand in the code."""
        places = np.full(max(len(wanted), 1), -1)
        for k in np.flatnonzero(wanted):
            places[k] = self._new()
            self._recipes.append((self.count - 1, None))
        return places

    def _in_columns(self, wanted: list[np.ndarray], views: Views) -> np.ndarray:
        """Places of primitives whose columns are stretched."""
        places = np.full(max(len(wanted), 1), -1)
        for k, (part, primitive) in enumerate(zip(wanted, self.program.primitives, strict=True)):
            if part.any():
                places[k] = self._new()
                X = views.seen(primitive.view).numbers
                for d in np.flatnonzero(part):
                    x = X[:, [d]].toarray()[:, 0] if sp.issparse(X) else np.array(X[:, d])
                    times = _Column(primitive.kind, x, primitive.stretch[d])
                    self._recipes.append((self.count - 1, times))
        return places

    def _in_lengths(self, wanted: np.ndarray, views: Views) -> np.ndarray:
        """Places of factors that are lengths under a programme of their own."""
        places = np.full(max(len(self.program.factors), 1), -1)
        for k, factor in enumerate(self.program.factors):
            if isinstance(factor.function, Program):
                part, wanted = np.split(wanted, [len(factor.function.numbers)])
                if part.any():
                    places[k] = self._new()
                    slopes = diagonal_derivatives(factor.function, part, views)
                    slopes *= -0.5 * self.factors[k] ** 2  # of the logarithm of k(x, x)^(-1/2)
                    self._recipes += [(self.count - 1, _Lengths(slope)) for slope in slopes]
        return places

    def _new(self) -> int:
        self.count += 1
        return self.count - 1

    def tile(self, primitives: np.ndarray, rows: slice, columns: slice) -> np.ndarray:
        """Derivatives (numbers, q, w) at these primitives (p, q, w)."""
        left, right = self.factors[:, rows], self.factors[:, columns]
        made = self._made(primitives, left, right)
        return self._finished(made, lambda times: times(rows, columns))

    def diagonal(self, primitives: np.ndarray) -> np.ndarray:
        """Derivatives (numbers, n) of every ``k(x, x)``, at its primitives (p, n)."""
        ones = np.ones((len(self.factors), 1))
        made = self._made(primitives[:, None], ones, self.factors**2)
        return self._finished(made[:, 0], lambda times: times.diagonal())

    def _made(self, primitives: np.ndarray, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """What the compiled pass writes."""
        made = np.zeros((self.count, *primitives.shape[1:]))
        sides = (np.ascontiguousarray(side) for side in (primitives, left, right))
        _differentiate(*self.arrays, *self.operands, *self.places, *sides, made)
        return made

    def _finished(self, made: np.ndarray, chained: Callable[[Any], np.ndarray]) -> np.ndarray:
        """Apply the chain rule where a number does not stand in the code."""
        if all(times is None for _, times in self._recipes):
            return made
        out = made[[place for place, _ in self._recipes]]
        for k, (_, times) in enumerate(self._recipes):
            if times is not None:
                out[k] *= chained(times)
        return out


class _Column:
    """Derivative of a primitive by the factor of one column, which is ``x`` after stretching."""

    def __init__(self, kind: str, x: np.ndarray, factor: float) -> None:
        self.kind, self.x, self.factor = kind, x, factor

    def __call__(self, rows: slice, columns: slice) -> np.ndarray:
        x, z = self.x[rows, None], self.x[None, columns]
        if self.kind == op.DOT:
            return (2.0 / self.factor * x) * z
        apart = x - z
        if self.kind == op.L1_DISTANCE:
            return np.abs(apart) / self.factor
        return (2.0 / self.factor) * apart**2

    def diagonal(self) -> np.ndarray:
        if self.kind == op.DOT:
            return 2.0 / self.factor * self.x**2
        return np.zeros_like(self.x)


class _Lengths:
    """Derivative of the logarithm of both points' inverse lengths."""

    def __init__(self, slope: np.ndarray) -> None:
        self.slope = slope

    def __call__(self, rows: slice, columns: slice) -> np.ndarray:
        return self.slope[rows, None] + self.slope[None, columns]

    def diagonal(self) -> np.ndarray:
        return 2.0 * self.slope


def diagonal_derivatives(program: Program, wanted: np.ndarray, views: Views) -> np.ndarray:
    """Derivatives of every ``k(x, x)`` by some of a programme's numbers, (numbers, n)."""
    points = Operand.prepare(program, views)
    by = Derivatives(program, wanted, views, points.factors)
    diagonals = [primitive.diagonal() for primitive in points.primitives]
    return by.diagonal(np.array(diagonals).reshape(-1, points.n))


def _operands(program: Program) -> tuple[np.ndarray, np.ndarray]:
    """Instructions whose results each instruction takes: the lower and the topmost value."""
    below, above = np.full(len(program.code), -1), np.full(len(program.code), -1)
    stack: list[int] = []
    for s, (opcode, *_) in enumerate(program.code):
        if opcode != op.PUSH:
            above[s] = stack.pop()
            if opcode in (op.ADD, op.MULTIPLY):
                below[s] = stack.pop()
        stack.append(s)
    return below, above


@njit(cache=True, nogil=True, fastmath={"contract"}, error_model="numpy")
def _differentiate(
    instructions,
    constants,
    coefficients,
    below,
    above,
    constant_place,
    coefficient_place,
    primitive_place,
    factor_place,
    primitives,
    row_factors,
    column_factors,
    out,
):
    """Add derivatives of a tile's values to ``out`` (count, q, w), at the places given.

    Those of a factor are by the logarithm of its values.
    """
    _, q, n = primitives.shape
    steps = instructions.shape[0]
    value = np.empty((steps, CHUNK))
    slope = np.empty((steps, CHUNK))
    for i in range(q):
        for start in range(0, n, CHUNK):
            w = min(CHUNK, n - start)
            for s in range(steps):
                opcode, first = instructions[s, 0], instructions[s, 1]
                here = value[s]
                if opcode == op.PUSH:
                    here[:w] = primitives[first, i, start : start + w]
                    continue
                top = value[above[s]]
                if opcode == op.SCALE:
                    for t in range(w):
                        here[t] = constants[s] * top[t]
                elif opcode == op.SHIFT:
                    for t in range(w):
                        here[t] = constants[s] + top[t]
                elif opcode == op.ADD:
                    other = value[below[s]]
                    for t in range(w):
                        here[t] = other[t] + top[t]
                elif opcode == op.MULTIPLY:
                    other = value[below[s]]
                    for t in range(w):
                        here[t] = other[t] * top[t]
                elif opcode == op.POWER:
                    for t in range(w):
                        here[t] = top[t] ** first
                elif opcode == op.POLYNOMIAL:
                    last = first + instructions[s, 2] - 1
                    for t in range(w):
                        total = coefficients[last]
                        for c in range(last - 1, first - 1, -1):
                            total = total * top[t] + coefficients[c]
                        here[t] = total
                elif opcode == op.EXP:
                    for t in range(w):
                        here[t] = exponential(top[t])
                elif opcode == op.TANH:
                    for t in range(w):
                        here[t] = math.tanh(top[t])
                elif opcode == op.SQRT:
                    for t in range(w):
                        here[t] = math.sqrt(top[t])
                elif opcode == op.LOG1P:
                    for t in range(w):
                        here[t] = math.log1p(top[t])
                elif opcode == op.LOG:
                    for t in range(w):
                        here[t] = math.log(top[t])
                elif opcode == op.SIN:
                    for t in range(w):
                        here[t] = math.sin(top[t])
                elif opcode == op.MATERN:
                    for t in range(w):
                        here[t] = matern(constants[s], top[t])
                elif opcode == op.FACTOR:
                    left = row_factors[first, i]
                    for t in range(w):
                        here[t] = top[t] * (left * column_factors[first, start + t])
            slope[steps - 1, :w] = 1.0
            for s in range(steps - 1, -1, -1):
                opcode, first = instructions[s, 0], instructions[s, 1]
                by = slope[s]
                if opcode == op.PUSH:
                    if primitive_place[first] >= 0:
                        target = out[primitive_place[first], i, start : start + w]
                        for t in range(w):
                            target[t] += by[t]
                    continue
                top, down = value[above[s]], slope[above[s]]
                place = constant_place[s]
                if opcode == op.SCALE:
                    if place >= 0:
                        target = out[place, i, start : start + w]
                        for t in range(w):
                            target[t] += by[t] * top[t]
                    for t in range(w):
                        down[t] = by[t] * constants[s]
                elif opcode == op.SHIFT:
                    if place >= 0:
                        target = out[place, i, start : start + w]
                        for t in range(w):
                            target[t] += by[t]
                    down[:w] = by[:w]
                elif opcode == op.ADD:
                    down[:w] = by[:w]
                    slope[below[s], :w] = by[:w]
                elif opcode == op.MULTIPLY:
                    other, away = value[below[s]], slope[below[s]]
                    for t in range(w):
                        down[t] = by[t] * other[t]
                        away[t] = by[t] * top[t]
                elif opcode == op.POWER:
                    for t in range(w):
                        down[t] = by[t] * first * top[t] ** (first - 1) if first > 0 else 0.0
                elif opcode == op.POLYNOMIAL:
                    degree = instructions[s, 2]
                    for c in range(degree):
                        place = coefficient_place[first + c]
                        if place >= 0:
                            target = out[place, i, start : start + w]
                            for t in range(w):
                                target[t] += by[t] * top[t] ** c
                    for t in range(w):
                        total = 0.0
                        for c in range(degree - 1, 0, -1):
                            total = total * top[t] + c * coefficients[first + c]
                        down[t] = by[t] * total
                elif opcode == op.EXP:
                    for t in range(w):
                        down[t] = by[t] * value[s, t]
                elif opcode == op.TANH:
                    for t in range(w):
                        down[t] = by[t] * (1.0 - value[s, t] * value[s, t])
                elif opcode == op.SQRT:
                    for t in range(w):  # zero at r = 0, where r does not depend on the parameters
                        down[t] = by[t] * 0.5 / value[s, t] if value[s, t] > 0.0 else 0.0
                elif opcode == op.LOG1P:
                    for t in range(w):
                        down[t] = by[t] / (1.0 + top[t])
                elif opcode == op.LOG:
                    for t in range(
                        w
                    ):  # log(0) is only an intermediate of 0 ** p, whose slope counts as zero
                        down[t] = by[t] / top[t] if top[t] > 0.0 else 0.0
                elif opcode == op.SIN:
                    for t in range(w):
                        down[t] = by[t] * math.cos(top[t])
                elif opcode == op.MATERN:
                    for t in range(w):  # of equal points: what is under the root is scaled zero
                        down[t] = by[t] * matern_slope(constants[s], top[t])
                elif opcode == op.FACTOR:
                    if factor_place[first] >= 0:
                        target = out[factor_place[first], i, start : start + w]
                        for t in range(w):
                            target[t] += by[t] * value[s, t]
                    left = row_factors[first, i]
                    for t in range(w):
                        down[t] = by[t] * (left * column_factors[first, start + t])
