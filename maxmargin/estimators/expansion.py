"""Evaluating a machine: ``f(x) = sum_i coefficient_i k(x, x_i)`` over its support vectors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np
import scipy.sparse as sp

from maxmargin.backends import cpu
from maxmargin.backends.device import explaining_memory
from maxmargin.backends.program import Program
from maxmargin.backends.threads import ALONE, Workers, on_one_blas_thread
from maxmargin.kernels.base import Kernel

if TYPE_CHECKING:
    from maxmargin.backends import cuda

_COMPACTED = 1 << 16  # values from which a better form of the data pays
_KEPT = 1 << 21  # entries of support vectors up to which their prepared form is kept


class KernelExpansion:
    """Sums ``sum_i coefficient_i k(x, x_i)`` over the support vectors of a fitted machine.

    What it takes to evaluate them is made once and, unless it is large, kept.

    Parameters
    ----------
    kernel : Kernel
        Resolved.
    support_vectors : the m points of the expansion; not used by a precomputed kernel
    support : int array (m,)
        Their training rows: the columns of a precomputed matrix.
    coefficients : float array (k, m)
        One row per expansion; or a sparse matrix of them.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.estimators.expansion import KernelExpansion
    >>> from maxmargin.kernels import Linear
    >>> points, rows = np.array([[1.0], [2.0]]), np.array([0, 1])
    >>> KernelExpansion(Linear(), points, rows, np.array([[1.0, -1.0]])).at(np.array([[3.0]]))
    array([[-3.]])
    """

    def __init__(
        self, kernel: Kernel, support_vectors: Any, support: np.ndarray, coefficients: Any
    ) -> None:
        self.parts = kernel, support_vectors, support, coefficients
        self.coefficients = coefficients.toarray() if sp.issparse(coefficients) else coefficients
        self._ready: cpu.Operand | None = None
        self._on_device: tuple[str, Any] | None = None  # the name of a GPU, and the points there

    @cached_property
    def program(self) -> Program:
        """The kernel, lowered."""
        return self.parts[0].lower()

    def _prepared(self) -> cpu.Operand:
        """The support vectors as the kernel's programme sees them."""
        if self._ready is not None:
            return self._ready
        kernel, points, support, _ = self.parts
        if kernel.pairwise:
            return cpu.Operand.of_columns(self.program, support)
        prepared = cpu.Operand.prepare(self.program, points)
        if self._is_small:
            self._ready = prepared
        return prepared

    @property
    def _is_small(self) -> bool:
        """Whether the prepared support vectors are kept for the next call."""
        return bool(getattr(self.parts[1], "size", np.inf) <= _KEPT)

    def _moved(self, device: str, memory: int) -> cuda.Expansion:
        """Return the support vectors on a GPU, moving them there unless an earlier call has."""
        from maxmargin.backends import cuda

        if self._on_device is not None and self._on_device[0] == device:
            moved = self._on_device[1]
            moved.memory = memory
            return moved
        program, where = self.program.with_features(), cuda.torch_device(device)
        moved = cuda.Expansion(program, self.parts[1], self.parts[2], where, memory)
        if self._is_small:
            self._on_device = device, moved
        return moved

    @on_one_blas_thread
    def at(
        self,
        X: Any,
        counts: Sequence[int] | None = None,
        finish: Callable[[np.ndarray], np.ndarray] = lambda sums: sums[:, 0],
        workers: Workers = ALONE,
        device: str = "cpu",
        cache_size: float | str = "auto",
    ) -> np.ndarray:
        """Values at the rows of X, in memory that does not grow with them.

        Parameters
        ----------
        X : validated data of n points; for a precomputed kernel the matrix (n, n_train)
        counts : sequence of int, optional
            Cuts the support vectors into stretches (the classes) that are summed apart.
        finish : callable, optional
            Turns these sums, (q, stretches, k) for some of the points, into their values; without
            it there is one stretch, and its sums are the values.
        workers : Workers
        device : str
            ``"cpu"``, or torch's name of a GPU.
        cache_size : float or "auto"
            MB that may be taken on a GPU; by default most of what is free.

        Returns
        -------
        values : float64 array (n, ...)
        """
        (kernel, _, support, _), coefficients = self.parts, self.coefficients
        ends = np.cumsum([len(support)] if counts is None else counts)
        stretches = list(zip([0, *ends[:-1].tolist()], ends.tolist(), strict=True))
        if not len(support):
            n = X.shape[0] if hasattr(X, "shape") else len(X)
            return finish(np.zeros((n, len(stretches), len(coefficients))))
        program = self.program
        if device != "cpu":
            parts = self._at_on_device(X, stretches, finish, device, cache_size)
            return cpu.finite(np.concatenate(parts), kernel)
        right = self._prepared()
        left = cpu.Operand.prepare(program, X, like=None if kernel.pairwise else right)
        if left.n * right.n > _COMPACTED and not kernel.pairwise:
            right = right.compact()
        workers = ALONE if program.calls_python else workers
        parts = cpu.expand(program, left, right, coefficients, stretches, finish, workers)
        return cpu.finite(np.concatenate(parts), kernel)

    def _at_on_device(
        self,
        X: Any,
        stretches: list[tuple[int, int]],
        finish: Callable[[np.ndarray], np.ndarray],
        device: str,
        cache_size: float | str,
    ) -> list[np.ndarray]:
        """Evaluate on a GPU, in batches of rows that fit its memory."""
        from maxmargin.backends import cuda

        coefficients, where = self.coefficients, cuda.torch_device(device)
        with explaining_memory(), cuda.device_context(where):
            right = self._moved(device, cuda.budget(where, cache_size))

            def values() -> list[np.ndarray]:
                step = right.rows_at_once(X, len(stretches) * len(coefficients))
                return [
                    finish(right.at(X[start : start + step], coefficients, stretches))
                    for start in range(0, X.shape[0], step)
                ]

            return cuda.retry_with_less_memory(values, right)

    def asking(self, X: Any, bias: np.ndarray, workers: Workers = ALONE) -> Callable:
        """Return what has the values of single expansions at some of the rows of X.

        It takes a list of pairs (an expansion's number, rows), which are answered side by side, and
        makes no kernel value that none of them needs.
        """
        (kernel, *_), program, right = self.parts, self.program, self._prepared()
        left = cpu.Operand.prepare(program, X, like=None if kernel.pairwise else right)
        workers = ALONE if program.calls_python else workers
        known: dict[int, tuple[np.ndarray, Any]] = {}

        def answer(question: tuple[int, np.ndarray]) -> np.ndarray:
            number, rows = question
            if number not in known:
                own = self.coefficients[number].nonzero()[0]
                known[number] = self.coefficients[number : number + 1, own], right.take(own)
            coefficients, points = known[number]
            values = np.zeros(len(rows))
            if points.n:
                some, whole = left.take(rows).gathered(), [(0, points.n)]
                sums = cpu.expand(
                    program, some, points.gathered(), coefficients, whole, lambda s: s[:, 0, 0]
                )
                values = cpu.finite(np.concatenate(sums), kernel)
            return values + bias[number]

        @on_one_blas_thread
        def ask(questions: list[tuple[int, np.ndarray]]) -> list[np.ndarray]:
            return workers.map(answer, questions)

        return ask


# Beside the machines and not in them: to predict changes no attribute, and files hold none of it.
_of_machines: WeakKeyDictionary[Any, KernelExpansion] = WeakKeyDictionary()


def expansion_of(machine: Any, *parts: Any) -> KernelExpansion:
    """Return a fitted machine's expansion: that of the last time, while its parts are the same.

    The parts are those of :class:`KernelExpansion`, compared as objects: an attribute can be
    replaced, but support vectors must not be written into.
    """
    known = _of_machines.get(machine)
    if known is None or any(mine is not now for mine, now in zip(known.parts, parts, strict=True)):
        known = _of_machines[machine] = KernelExpansion(*parts)
    return known
