"""The Gram matrix of data that lie on a GPU."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp

from maxmargin import memory as _memory
from maxmargin.backends import cpu
from maxmargin.backends.device import explaining_memory, on_host
from maxmargin.backends.threads import ALONE, Workers
from maxmargin.backends.views import Views
from maxmargin.gram.base import FLOAT32_RANGE, Gram
from maxmargin.gram.host import HostGram
from maxmargin.kernels.base import Kernel

T = TypeVar("T")


class DeviceGram(Gram):
    """The Gram matrix of data on a GPU.

    What is summed, and what ParallelSets works with, stays there: ``matrix`` is that of all points,
    of which ``index`` are these. A solver that needs rows on the host makes them there from the
    data as they came: see :attr:`host`.

    Parameters
    ----------
    kernel : Kernel
        Resolved.
    X : Views
        Of validated data.
    matrix : maxmargin.backends.cuda.Matrix
        The same matrix on the device.
    memory : int
        Bytes on the host, for rows of SMO.
    whole : DeviceGram, optional
        Of which this is a part.
    index : int array, optional
        The points of the whole that belong to this part; all, by default.
    """

    on_device = True

    def __init__(
        self,
        kernel: Kernel,
        X: Views,
        matrix: Any,
        *,
        memory: int,
        whole: DeviceGram | None = None,
        index: np.ndarray | None = None,
    ) -> None:
        n = matrix.n if index is None else len(index)
        super().__init__(kernel, matrix.program, n, memory)
        self.X, self.matrix, self.whole, self.index = X, matrix, whole, index

    @classmethod
    def of(
        cls,
        X: Any,
        kernel: Kernel,
        *,
        feature_names: Sequence[str] | None = None,
        memory: int | None = None,
        device: str = "cuda",
        cache_size: float | str = "auto",
    ) -> DeviceGram:
        """Bring the rows of X, data or views of them, to a device.

        ``cache_size`` bounds the memory there: so many MB, or most of what is free. ``memory`` is
        that on the host, by default as much as ``cache_size`` means there.
        """
        from maxmargin.backends import cuda

        where, views = cuda.torch_device(device), Views.of(X)
        kernel = kernel.resolve(views, feature_names)
        program = kernel.lower().with_features()
        with explaining_memory(), cuda.device_context(where):
            points = cuda.Points.prepare(program, views, where, cuda.budget(where, cache_size))
            matrix = cuda.Matrix(program, points, cuda.budget(where, cache_size))
        memory = _memory.budget(cache_size) if memory is None else memory
        return cls(kernel, views, matrix, memory=memory)

    @cached_property
    def host(self) -> HostGram:
        """This matrix on the host; its parts share their data there, too."""
        if self.whole is not None:
            return self.whole.host.take(self._on_all(np.arange(self.n)), self.memory)
        host = HostGram.prepare(self.X, self.kernel, self.memory)
        host.diagonal = self.diagonal
        return host

    @property
    def device(self) -> DeviceGram:
        """This matrix."""
        return self

    @property
    def width(self) -> int:
        """Entries of the widest point."""
        return max((points.width for points in self.matrix.points.primitives), default=1)

    def forget(self) -> None:
        """Give back the room of rows that a solver has made for itself, on the host."""
        self.__dict__.pop("host", None)

    def at_work(self, work: Callable[[], T]) -> T:
        """Work on the device; says in words if its memory does not suffice even for tiles."""
        from maxmargin.backends import cuda

        with explaining_memory(), cuda.device_context(self.matrix.device):
            return cuda.retry_with_less_memory(work, self.matrix)

    @cached_property
    def rounding(self) -> float:
        """Bound on the error of ``K_ij``, in roundings of ``sqrt(K_ii K_jj)``."""
        return self.matrix.rounding

    @cached_property
    def diagonal(self) -> np.ndarray:
        """``K_ii`` for every i, shape (n,)."""
        return cpu.finite(self.at_work(self.matrix.diagonal), self.kernel)

    @cached_property
    def fits_float32(self) -> bool:
        """Whether float32 has room for the data and for the kernel's values."""
        low, high = FLOAT32_RANGE
        return self.matrix.fits_float32 and bool(low < np.abs(self.diagonal).max() < high)

    def block(self, rows: Any, columns: Any) -> np.ndarray:
        """Values between some points and others, shape (q, m)."""
        places = self._on_all(rows), self._on_all(columns)
        return cpu.finite(self.at_work(lambda: self.matrix.block(*places)), self.kernel)

    def rows(self, rows: Any) -> np.ndarray:
        """Rows of the matrix, shape (q, n)."""
        return self.block(rows, np.arange(self.n))

    def _whole(self, workers: Workers) -> np.ndarray:
        return self.rows(np.arange(self.n))

    def matmat(self, coefficients: Any, rows: Any = None, workers: Workers = ALONE) -> np.ndarray:
        """``K @ coefficients`` in float64, or only some rows of it, for several columns.

        The coefficients are an array or a CSC array.
        """
        if sp.issparse(coefficients):
            active = np.unique(coefficients.indices[coefficients.data != 0])
            weights = coefficients.tocsr()[active].toarray()
        else:
            active = np.flatnonzero(coefficients.any(axis=1))
            weights = np.ascontiguousarray(coefficients[active])
        rows = np.arange(self.n) if rows is None and self.index is not None else rows
        to_device = self.matrix.to_device

        def products() -> np.ndarray:
            return self.matrix.products(
                to_device(weights),
                to_device(self._on_all(active)),
                None if rows is None else to_device(self._on_all(rows)),
            )

        return cpu.finite(on_host(self.at_work(products)), self.kernel)

    def matvec(
        self, coefficients: np.ndarray, rows: Any = None, workers: Workers = ALONE
    ) -> np.ndarray:
        """``K @ coefficients`` in float64, or only some rows of it."""
        return self.matmat(coefficients[:, None], rows)[:, 0]

    def float32_matmat(self, coefficients: np.ndarray, workers: Workers = ALONE) -> np.ndarray:
        """``K @ coefficients`` (n, k) from values in float32: for steps, not for certificates."""
        to_device = self.matrix.to_device

        def products() -> np.ndarray:
            places = None if self.index is None else to_device(self.index)
            return self.matrix.float32_products(to_device(coefficients), places)

        return on_host(self.at_work(products))

    def low_rank(self, root: np.ndarray, most: int) -> Any:
        """Room for columns of a factor of ``diag(root) K diag(root)`` on the device."""
        from maxmargin.backends import cuda

        places = None if self.index is None else self.matrix.to_device(self.index)
        with explaining_memory():
            return cuda.Columns(self.matrix, places, self.matrix.to_device(root), most)

    def take(self, rows: Any, memory: int | None = None) -> DeviceGram:
        """Gram matrix of a subset of the points, on the same device."""
        rows = np.asarray(rows, dtype=np.int64)
        everything = self.index is None and len(rows) == self.n and (np.diff(rows) == 1).all()
        taken = DeviceGram(
            self.kernel,
            self.X,
            self.matrix,
            memory=self.memory if memory is None else memory,
            whole=self.whole or self,
            index=None if everything else self._on_all(rows),
        )
        taken.diagonal, taken.fits_float32 = self.diagonal[rows], self.fits_float32
        return taken

    def _on_all(self, rows: Any) -> np.ndarray:
        """Places of these points in the whole matrix."""
        rows = np.asarray(rows, dtype=np.int64)
        return rows if self.index is None else self.index[rows]
