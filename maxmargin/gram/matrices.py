"""Whole kernel matrices of one data set, one after the other, their primitives computed once.

Squared distances, for example, are the same for every gamma: kept in a matrix of their own, they
make each next RBF matrix a matter of one exponential an entry.
"""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from maxmargin.backends import cpu
from maxmargin.backends.program import Program
from maxmargin.backends.threads import ALONE, Workers, on_one_blas_thread
from maxmargin.kernels import Kernel, Precomputed
from maxmargin.kernels.base import Validity

_NARROW = 2.0**29  # roundings of float64 in one of float32
# Float32 roundings of exp(-x) made in float32 from a distance kept in float32: x e^-x times three
# halves, of distance, rate and product, and 2 ulp of the exponential, each at most.
_GAUSSIAN = 1.6
_KEPT = 2  # matrices that are kept at a time, at most: one that is in use, and the next


class Matrices:
    """Matrices of several kernels over the same points.

    Parameters
    ----------
    X : validated data
    dtype : float32 or float64
        Of the values; products and distances are taken in float64 in any case.
    workers : Workers

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.kernels import RBF
    >>> from maxmargin.gram.matrices import Matrices
    >>> matrices = Matrices(np.array([[0.0], [1.0]]), np.float32)
    >>> matrices.prepare([RBF(gamma=1.0), RBF(gamma=2.0)], memory=1 << 20)
    >>> matrices.of(RBF(gamma=2.0)).round(3)
    array([[1.   , 0.135],
           [0.135, 1.   ]], dtype=float32)
    """

    _several = 2  # kernels from which on primitives are worth a matrix of their own

    def __init__(self, X: Any, dtype: Any, workers: Workers = ALONE) -> None:
        self.X, self.dtype, self.workers = X, np.dtype(dtype), workers
        self.n = X.shape[0] if hasattr(X, "shape") else len(X)
        self._values: list[np.ndarray] = []
        self._kept: tuple[Program, np.ndarray, np.ndarray] | None = None

    @property
    def nbytes(self) -> int:
        """Bytes of one matrix."""
        return self.dtype.itemsize * self.n**2

    @on_one_blas_thread
    def prepare(self, kernels: list[Kernel], memory: int) -> None:
        """Compute the primitives that kernels share, where there are several and room for it.

        They must be resolved, and made of the same primitives. Without ``memory`` for these, each
        kernel's matrix computes them anew.
        """
        program = kernels[0].lower()
        self._kept = None
        wanted = len(program.primitives) * self.nbytes
        if len(kernels) < self._several or wanted > memory or program.calls_python:
            return
        points = cpu.Operand.prepare(program, self.X, shared=True)
        kept = np.empty((len(program.primitives), self.n, self.n), dtype=self.dtype)
        for k, primitive in enumerate(program.primitives):
            alone = Program()
            alone.push(primitive.kind, primitive.view, primitive.function)
            seen = cpu.Operand([points.primitives[k]], np.empty((0, self.n)), self.n)
            cpu.kernel_square(alone, seen, np.arange(self.n), kept[k], self.workers)
        self._kept = program, kept, points.factors.astype(self.dtype)

    @on_one_blas_thread
    def of(self, kernel: Kernel, place: int = 0) -> np.ndarray:
        """Return the matrix of a resolved kernel; it lasts until the next one at its place."""
        program, values = kernel.lower(), self._room(place)
        if self._kept is not None and shares_primitives(program, self._kept[0]):
            _, kept, factors = self._kept

            def fill(part: slice) -> None:
                cpu.kernel_values(program, kept[:, part], factors[:, part], factors, values[part])

            step = cpu.PANEL_ROWS
            parts = [slice(first, first + step) for first in range(0, self.n, step)]
            self.workers.map(fill, parts)
        else:
            points = cpu.Operand.prepare(program, self.X)
            workers = ALONE if program.calls_python else self.workers
            cpu.kernel_square(program, points, np.arange(self.n), values, workers)
        return values

    def rounding(self, kernel: Kernel) -> float:
        """Bound on the error of a value, as :attr:`maxmargin.gram.Gram.rounding`.

        A value in float32 was rounded once. One made of primitives that are kept in float32 has
        their rounding, too, and that of each step from there.
        """
        program = kernel.lower()
        own = cpu.Operand.prepare(program, self.X).rounding(program)
        if self.dtype == np.float64:
            return own
        once = 0.5
        if self._kept is not None and shares_primitives(program, self._kept[0]):
            rate = program.gaussian_rate
            once = _GAUSSIAN if rate is not None else program.rounding([0.5] * len(self._kept[1]))
        return own + once * _NARROW

    def _room(self, place: int) -> np.ndarray:
        while len(self._values) <= place:
            self._values.append(np.empty((self.n, self.n), dtype=self.dtype))
        return self._values[place]


class KeptMatrices(Matrices):
    """Matrices that several threads ask for one by one: the last ones, and primitives, are kept.

    Each thread works alone.
    """

    _several = 1

    def __init__(self, X: Any, dtype: Any) -> None:
        super().__init__(X, dtype)
        self._lock, self._count = threading.RLock(), 1
        self._last: list[tuple[Kernel, np.ndarray]] = []

    def prepare(self, kernels: list[Kernel], memory: int) -> None:
        """Compute the primitives of a kernel, where they are others than the last ones."""
        with self._lock:
            program = kernels[0].lower()
            if self._kept is None or not shares_primitives(program, self._kept[0]):
                super().prepare(kernels, memory)
            taken = 0 if self._kept is None else self._kept[1].nbytes
            self._count = 1 + int(min(max(memory - taken, 0) // self.nbytes, _KEPT - 1))

    def of(self, kernel: Kernel, place: int = 0) -> np.ndarray:
        """Return the matrix of a resolved kernel; it lasts as long as someone holds it."""
        with self._lock:
            found = next((entry for entry in self._last if entry[0] == kernel), None)
            if found is None:
                del self._last[: max(len(self._last) - self._count + 1, 0)]
                self._last.append(found := (kernel, super().of(kernel)))
            return found[1]

    def _room(self, place: int) -> np.ndarray:
        return np.empty((self.n, self.n), dtype=self.dtype)


def shares_primitives(first: Program, second: Program) -> bool:
    """Whether two programmes start from the same numbers."""
    return first.primitives == second.primitives and first.factors == second.factors


class Resident(Precomputed):
    """Values that were computed from a kernel: what its construction proves stays known."""

    def __init__(self, known: Validity = Validity.UNPROVEN) -> None:
        self.known = known

    @property
    def validity(self) -> Validity:
        """That of the kernel whose values these are."""
        return self.known
