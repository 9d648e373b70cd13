"""The Gram matrix ``K_ij = k(x_i, x_j)`` of one data set: what everyone may ask of it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from maxmargin import memory as _memory
from maxmargin.backends import cpu
from maxmargin.backends.data import refuse_corrupt
from maxmargin.backends.program import FUNCTION, PRECOMPUTED, Program
from maxmargin.backends.threads import ALONE, Workers
from maxmargin.backends.views import Views
from maxmargin.gram.spectrum import Definiteness, Spectrum, known_definiteness
from maxmargin.kernels.base import Kernel, Validity

if TYPE_CHECKING:
    from maxmargin.gram.device import DeviceGram
    from maxmargin.gram.host import HostGram

_CHECKED_POINTS, _EXAMINED_POINTS = 128, 512
_SYMMETRY = 1e-6
FLOAT32_RANGE = 1e-6, 1e12  # of kernel values, that float32 can tell apart


class Gram(ABC):
    """The Gram matrix of one data set under one kernel.

    Made by :meth:`of`. The matrix is symmetric, so row i is also column i. Values are float64, and
    no more of them than ``memory`` allows are held at a time.

    What is here, certificates, bounds and all solvers may use, wherever the data are. Solvers that
    go deeper say so, and take the form that they are made for:

    ==========================  ===========  =====================================================
    ``SMO``, kernel perceptron  ``host``     ``store``, ``require``, ``resident``: rows that
                                             compiled loops read, and whose last use they note
    ``WorkingSet``              ``host``     ``points``, ``float32_points``, ``float32_bytes``,
                                             ``float32_rows``, ``scratch``: for float32 tiles
    ``SeededSMO``               ``host``     ``float32_points``, ``float32_rows``: all at once
    ``NearLevel``               ``host``     ``points``
    ``SmallBatch``              ``host``     ``points``, ``store``, ``is_there``, ``filled``
    ``ParallelSets``            ``device``   ``matrix``, ``whole``, ``index``, ``at_work``
    ==========================  ===========  =====================================================

    Parameters
    ----------
    kernel : Kernel
        Resolved.
    program : Program
        What the kernel's values are computed by.
    n : int
        Number of points.
    memory : int
        Bytes on the host for values that are kept.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin import Gram
    >>> from maxmargin.kernels import Linear
    >>> gram = Gram.of(np.array([[1.0], [2.0], [3.0]]), Linear())
    >>> gram.rows([2])
    array([[3., 6., 9.]])
    >>> gram.matvec(np.array([1.0, 0.0, -1.0]))
    array([-2., -4., -6.])
    >>> gram.take([0, 2]).dense()
    array([[1., 3.],
           [3., 9.]])
    """

    on_device = False  # whether a GPU has the matrix
    seconds = 0.0  # that its values took at the start; a fit's time limit counts them

    def __init__(self, kernel: Kernel, program: Program, n: int, memory: int) -> None:
        self.kernel, self.program, self.n, self.memory = kernel, program, n, memory

    @classmethod
    def of(
        cls,
        X: Any,
        kernel: Kernel,
        *,
        feature_names: Sequence[str] | None = None,
        memory: int | None = None,
    ) -> Gram:
        """Gram matrix of the rows of X, on the host.

        Parameters
        ----------
        X : validated data: dense float32/float64, CSR, a square matrix or objects, as the kernel
            takes them
        kernel : Kernel
        feature_names : sequence of str, optional
            Names of the columns of X, for kernels on columns chosen by name.
        memory : int, optional
            Bytes for resident rows; by default a quarter of what is free. Two rows are always held.
        """
        refuse_corrupt(X)
        memory = _memory.budget("auto") if memory is None else memory
        views = Views(X)
        return Gram.of_resolved(views, kernel.resolve(views, feature_names), memory=memory)

    @staticmethod
    def of_resolved(
        X: Any,
        kernel: Kernel,
        *,
        memory: int,
        at_once: bool = True,
        workers: Callable[[], Workers] | None = None,
    ) -> Gram:
        """As :meth:`of`, for a resolved kernel; X are data or :class:`Views` of them.

        ``at_once`` lets a Python function compute the whole matrix of up to 2,000 points in one
        call, which no time limit can interrupt. With ``workers``, a function of two strings gets
        its whole matrix here, too; :func:`~maxmargin.backends.threads.stopping` interrupts that.
        """
        from maxmargin.gram.host import HostGram  # a kind of this one

        return HostGram.prepare(X, kernel, memory, at_once, workers)

    # -- where it is ---------------------------------------------------------------------------

    @property
    @abstractmethod
    def host(self) -> HostGram:
        """This matrix on the host, for solvers that make rows and tiles there."""

    @property
    @abstractmethod
    def device(self) -> DeviceGram:
        """This matrix on its GPU, for solvers that work there; refused where it is on none."""

    @property
    @abstractmethod
    def width(self) -> int:
        """Number of entries of the widest point: the terms of one kernel value."""

    # -- values --------------------------------------------------------------------------------

    @property
    @abstractmethod
    def diagonal(self) -> np.ndarray:
        """``K_ii`` for every i, shape (n,)."""

    @property
    @abstractmethod
    def rounding(self) -> float:
        """Bound on the error of ``K_ij``, in roundings of ``sqrt(K_ii K_jj)``."""

    @property
    @abstractmethod
    def fits_float32(self) -> bool:
        """Whether float32 has room for the data and for the kernel's values."""

    @abstractmethod
    def rows(self, rows: Any) -> np.ndarray:
        """Rows of the matrix, shape (q, n)."""

    @abstractmethod
    def block(self, rows: Any, columns: Any) -> np.ndarray:
        """Values between some points and others, shape (q, m)."""

    def __new__(cls, *args: Any, **options: Any) -> Gram:
        """Refuse ``Gram(...)`` with the name of the constructor."""
        if cls is Gram:
            raise TypeError("Gram is abstract: call Gram.of(X, kernel).")
        return super().__new__(cls)

    def dense(self, workers: Workers = ALONE) -> np.ndarray:
        """Return the whole matrix as an array of its own, where it fits the memory budget."""
        if 8 * self.n**2 > self.memory:
            raise ValueError(
                f"The Gram matrix of {self.n} points takes {_memory.megabytes(8 * self.n**2)}, and "
                f"{_memory.megabytes(self.memory)} are allowed. Raise cache_size (memory), or ask "
                "for rows, blocks and products of it."
            )
        return self._whole(workers)

    @abstractmethod
    def _whole(self, workers: Workers) -> np.ndarray:
        """Return all values, in new memory."""

    @abstractmethod
    def matvec(
        self, coefficients: np.ndarray, rows: Any = None, workers: Workers = ALONE
    ) -> np.ndarray:
        """``K @ coefficients`` in float64, or only some rows of it."""

    @abstractmethod
    def matmat(self, coefficients: Any, rows: Any = None, workers: Workers = ALONE) -> np.ndarray:
        """``K @ coefficients`` in float64, or only some rows of it, for several columns.

        The coefficients are an array or a CSC array.
        """

    @abstractmethod
    def float32_matmat(self, coefficients: np.ndarray, workers: Workers = ALONE) -> np.ndarray:
        """``K @ coefficients`` (n, k) from values in float32: for steps, not for certificates."""

    @abstractmethod
    def take(self, rows: Any, memory: int | None = None) -> Gram:
        """Gram matrix of a subset of the points: their data shared, with a store of its own."""

    @abstractmethod
    def forget(self) -> None:
        """Give back the room of rows that a solver has made for itself."""

    # -- what is known of it -------------------------------------------------------------------

    @property
    def is_tame(self) -> bool:
        """Whether the matrix is known to be symmetric, and finite where its diagonal is.

        So it is for a valid kernel of products and distances alone: ``K_ij^2 <= K_ii K_jj``.
        """
        made_here = all(p.kind not in (PRECOMPUTED, FUNCTION) for p in self.program.primitives)
        return made_here and self.kernel.validity is Validity.VALID

    def check(self) -> None:
        """Refuse a kernel that returns NaN or is not symmetric, on a sample, before a solve.

        A precomputed matrix is looked at as a whole: it is there already.
        """
        diagonal = self.diagonal  # which is finite
        if self.is_tame:
            return
        on_diagonal = float(np.abs(diagonal).max())
        K, mirrored = self._mirrored()
        if K is mirrored and cpu.total_asymmetry(K) <= _SYMMETRY * on_diagonal:
            return
        largest, difference = cpu.asymmetry(K, mirrored)
        if difference > _SYMMETRY * max(largest, on_diagonal):
            raise ValueError(
                f"The kernel {self.kernel!r} is not symmetric: k(x, z) and k(z, x) differ "
                f"by {difference:.3g}. A kernel must be; (K + K.T) / 2 makes a matrix so."
            )

    def _mirrored(self) -> tuple[np.ndarray, np.ndarray]:
        """Return values with their mirror image."""
        if self.program.primitives[0].kind == PRECOMPUTED:
            K = self.host.points.primitives[0].K
            return K, K
        sample = cpu.spread_out(self.n, _CHECKED_POINTS)
        half = len(sample) // 2 + 1
        return self.block(sample[:half], sample), self.block(sample, sample[:half])

    @cached_property
    def spectrum(self) -> Definiteness | Spectrum:
        """What is known about the signs of the matrix's eigenvalues, or what will tell.

        A valid kernel proves it. Otherwise the eigenvalues will: of the whole matrix up to 512
        points, beyond that of a sample, where a negative one is a proof but none is not.
        """
        if self.kernel.validity is Validity.VALID:
            return Definiteness.PROVEN
        sample = cpu.spread_out(self.n, _EXAMINED_POINTS)
        if self.program.is_given:
            block = self.host.points.take(sample).primitives[0].whole()
        else:
            block = self.block(sample, sample)
        return Spectrum(block, len(sample) == self.n)

    @property
    def definiteness(self) -> Definiteness:
        """What is known about the signs of the matrix's eigenvalues."""
        return known_definiteness(self.spectrum)
