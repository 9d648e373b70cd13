"""Kernel values that are not made of products: a matrix of them, or a Python function."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import _safe_indexing

from maxmargin.backends.cpu.loops import gather

_DIAGONAL_BLOCK = 16
_OF_ROWS = "A function of two rows is a kernel by FunctionKernel.of_rows(function)."


class GivenMatrix:
    """Points of a matrix of kernel values: the ``rows`` and the columns (``index``) they own.

    ``rounding`` is that of values that were computed, as in :meth:`Program.rounding`.
    """

    width = 1

    def __init__(
        self,
        K: np.ndarray,
        rows: np.ndarray | None = None,
        index: Any = None,
        rounding: float = 0.0,
    ):
        self.K, self.rounding = K, rounding
        self.untouched = rows is None and index is None
        self.rows = np.arange(K.shape[0]) if rows is None else rows
        self.index = np.arange(K.shape[1]) if index is None else index
        self.n = len(self.rows)

    def take(self, rows: np.ndarray) -> GivenMatrix:
        return GivenMatrix(self.K, self.rows[rows], self.index[rows], self.rounding)

    def as_float32(self, copied: bool) -> GivenMatrix:
        return self

    def diagonal(self) -> np.ndarray:
        return self.K[self.rows, self.index].astype(np.float64)

    def panel(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self.K, self.rows[rows]

    def tile(
        self, panel: tuple[np.ndarray, np.ndarray], start: int, stop: int, out: np.ndarray
    ) -> None:
        K, rows = panel
        gather(K, rows, self.index[start:stop], out)

    @property
    def is_whole(self) -> bool:
        """Whether the matrix is, as it is, that of the values between all points in float64."""
        return self.untouched and self.K.dtype == np.float64 and self.K.flags.c_contiguous

    def whole(self) -> np.ndarray:
        """Return the values between all points in float64; where it is that, the matrix itself."""
        if self.is_whole:
            return self.K
        out = np.empty((self.n, self.n))
        gather(self.K, self.rows, self.index, out)
        return out


class FunctionValues:
    """Points of any type, compared by a Python function of two collections of them."""

    width = 1

    def __init__(self, X: Any, n: int, function: Any):
        self.X, self.n, self.function = X, n, function

    def take(self, rows: np.ndarray) -> FunctionValues:
        return FunctionValues(_safe_indexing(self.X, rows), len(rows), self.function)

    def as_float32(self, copied: bool) -> FunctionValues:
        return self

    def diagonal(self) -> np.ndarray:
        values = np.empty(self.n)
        for start in range(0, self.n, _DIAGONAL_BLOCK):
            part = np.arange(start, min(start + _DIAGONAL_BLOCK, self.n))
            points = self.panel(part)
            values[part] = np.diag(self._call(points, points, (len(part), len(part))))
        return values

    def panel(self, rows: np.ndarray) -> Any:
        return _safe_indexing(self.X, rows)

    def tile(self, panel: Any, start: int, stop: int, out: np.ndarray) -> None:
        out[:] = self._call(panel, self.panel(np.arange(start, stop)), out.shape)

    def whole(self) -> np.ndarray:
        """Return the values between all points in float64: what the function returns, if that."""
        values = self._call(self.X, self.X, (self.n, self.n))
        return np.ascontiguousarray(values, dtype=np.float64)

    def _call(self, rows: Any, columns: Any, shape: tuple[int, ...]) -> np.ndarray:
        try:
            values = self.function(rows, columns)
        except Exception as error:
            if not hasattr(self.function, "by_pairs"):
                error.add_note(
                    "This was raised by the kernel function. It gets two collections of points, "
                    f"here {shape[0]} and {shape[1]} of them, and must return the matrix of its "
                    f"values for all pairs, as `lambda A, B: A @ B.T` does. {_OF_ROWS}"
                )
            raise
        values = np.asarray(values.toarray() if sp.issparse(values) else values)
        if values.shape != shape:
            raise ValueError(
                f"The kernel function returned an array of shape {values.shape} for "
                f"{shape[0]} rows and {shape[1]} columns; it must return one value per pair, "
                f"that is shape {shape}. {_OF_ROWS}"
            )
        if values.dtype.kind not in "fiub":
            raise ValueError(
                f"The kernel function returned {values.dtype} values; it must return real numbers."
                + (" Complex data not supported." if values.dtype.kind == "c" else "")
            )
        return values
