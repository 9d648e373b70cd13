"""Sums of losses over standardised columns, as gradient methods like them, without a copy of X.

With weights ``s`` of the rows that sum to one,

    mean_j = sum_i s_i x_ij        scale_j^2 = sum_i s_i (x_ij - mean_j)^2

and a machine ``f(x) = sum_j v_j (x_j - mean_j) / scale_j + c`` is the machine with
``w_j = v_j / scale_j`` and ``b = c - sum_j w_j mean_j``: nothing but other coordinates. X itself
stays as it is, dense or CSR, float32 or float64; sums are in float64, over blocks of rows. A sum of
losses is a function of ``(v, c)`` that returns value and gradient, and says its loss in one row.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from maxmargin.losses import Squared

SQUARED, SIGMOID, COMPETING = range(3)
_FIRST_STEP = 0.5  # of sgd, over the curvature and the number of columns
_LOSS = Squared()
_SMALL = 1e-6  # standardised values below this count as this
_BLOCK = 1 << 18  # entries that are brought to float64 at a time


class Columns:
    """X of shape (n, d), seen as ``(X - mean) / scale``.

    Parameters
    ----------
    X : dense array or CSR matrix of shape (n, d), float32 or float64
    weight : float array of shape (n,)
        Weights of the rows, in any unit.
    centre : bool, default=True
        Without it the mean counts as zero.

    Attributes
    ----------
    X, weight
        The data, and the weights so that they sum to one.
    mean, scale, inverse : float arrays of shape (d,)
        ``inverse`` is ``1 / scale``. Both are zero for a column that is constant up to rounding: it
        carries nothing beside the intercept, and its coefficient is zero.

    Examples
    --------
    >>> import numpy as np
    >>> columns = Columns(np.array([[1.0, 5.0], [3.0, 5.0]]), np.ones(2))
    >>> columns.mean, columns.scale
    (array([2., 5.]), array([1., 0.]))
    >>> columns.values(np.array([[1.0, 7.0]]))
    array([[-1.],
           [ 1.]])
    """

    def __init__(self, X: Any, weight: np.ndarray, centre: bool = True) -> None:
        if sp.issparse(X) and not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()
        self.X = X
        self.weight = weight / weight.sum()
        n, d = X.shape
        self.mean = np.zeros(d)
        if centre:
            for rows, block in self.blocks():
                self.mean += self.weight[rows] @ block
        with np.errstate(over="ignore"):
            squares = self._squares()
        if not np.isfinite(squares).all():
            large = np.flatnonzero(~np.isfinite(squares)).tolist()
            raise ValueError(
                f"The values in column(s) {large} are too large to be squared in float64: divide "
                "these columns by their size, for example with StandardScaler."
            )
        scale = np.sqrt(squares)
        rounding = 4.0 * np.finfo(np.float64).eps * np.sqrt(n) * np.abs(self.mean)
        self.scale = np.where(scale > rounding, scale, 0.0)
        self.inverse = np.divide(1.0, scale, out=np.zeros(d), where=self.scale > 0)

    def _squares(self) -> np.ndarray:
        """``scale^2``; what a sparse column does not store lies at zero."""
        n, d = self.X.shape
        total = np.zeros(d)
        if not sp.issparse(self.X):
            for rows, block in self.blocks():
                total += self.weight[rows] @ (block - self.mean) ** 2
            return total
        stored, mass = np.zeros(d, dtype=np.intp), np.zeros(d)
        for rows, block in self.blocks():
            weight = np.repeat(self.weight[rows], np.diff(block.indptr))
            away = (block.data - self.mean[block.indices]) ** 2
            total += np.bincount(block.indices, weight * away, d)
            mass += np.bincount(block.indices, weight, d)
            stored += np.bincount(block.indices, minlength=d)
        return total + np.where(stored < n, np.maximum(1.0 - mass, 0.0), 0.0) * self.mean**2

    def typical(self) -> np.ndarray:
        """Geometric mean of the standardised values' sizes in each column, one where constant.

        It is far below one where a few outliers make the column's scale.
        """
        d = self.X.shape[1]
        total = np.zeros(d)
        if sp.issparse(self.X):
            mass = np.zeros(d)
            for rows, block in self.blocks():
                weight = np.repeat(self.weight[rows], np.diff(block.indptr))
                away = np.abs(block.data - self.mean[block.indices]) * self.inverse[block.indices]
                total += np.bincount(block.indices, weight * np.log(np.maximum(away, _SMALL)), d)
                mass += np.bincount(block.indices, weight, d)
            at_zero = np.log(np.maximum(np.abs(self.mean) * self.inverse, _SMALL))
            total += np.maximum(1.0 - mass, 0.0) * at_zero
        else:
            for rows, block in self.blocks():
                away = np.abs(block - self.mean) * self.inverse
                total += self.weight[rows] @ np.log(np.maximum(away, _SMALL))
        return np.where(self.scale > 0, np.exp(total), 1.0)

    def blocks(self, entries: int = _BLOCK, least: int = 1) -> Iterator[tuple[slice, Any]]:
        """Yield slices of the rows, and these rows in float64."""
        n, d = self.X.shape
        width = max(self.X.nnz / n, 1.0) if sp.issparse(self.X) else d
        size = max(int(entries / max(width, 1)), least)
        for start in range(0, n, size):
            rows = slice(start, min(start + size, n))
            yield rows, self.X[rows].astype(np.float64, copy=False)

    def values(self, V: np.ndarray) -> np.ndarray:
        """``(X - mean) / scale`` times V', for V of shape (m, d): shape (n, m)."""
        W = V * self.inverse
        if self.X.dtype == np.float64:
            product = self.X @ W.T
        else:
            product = np.concatenate([block @ W.T for _, block in self.blocks()])
        return product - W @ self.mean

    def transpose_product(self, R: np.ndarray) -> np.ndarray:
        """``(X - mean) / scale``, transposed, times R of shape (n, m): shape (m, d).

        The rows are not weighted.
        """
        if self.X.dtype == np.float64:
            product = self.X.T @ R
        else:
            product = sum(block.T @ R[rows] for rows, block in self.blocks())
        return (product.T - np.outer(R.sum(axis=0), self.mean)) * self.inverse


@dataclass(frozen=True)
class RowLoss:
    """A loss as the compiled loop knows it.

    ``kind`` is SQUARED (``target`` (n, m): numbers), SIGMOID (``target`` (n, 1): -1 or +1) or
    COMPETING (``target`` (n, 1): the class); the last two have a ``steepness``, and the last one
    the ``eta`` of :class:`maxmargin.linear.mce.MCEClassifier`. ``curvature`` bounds the second
    derivative by the values; the first step is ``first`` over it and over ``d + 1``.
    """

    kind: int
    target: np.ndarray
    curvature: float
    first: float
    steepness: float = 1.0
    eta: float = 1.0


class StandardisedError(ABC):
    """A mean of losses, as a function of (m, d + 1) standardised weights, the last column c."""

    columns: Columns
    intercept: bool
    alpha: float

    @abstractmethod
    def __call__(self, V: np.ndarray) -> tuple[float, np.ndarray]:
        """Value and gradient."""

    @abstractmethod
    def rows(self) -> RowLoss:
        """Return the loss of one row, for stochastic descent."""

    def values(self, V: np.ndarray) -> np.ndarray:
        """Values of the rows, (n, m)."""
        return self.columns.values(V[:, :-1]) + V[:, -1]

    def gradient(self, slope: np.ndarray) -> np.ndarray:
        """Gradient by V, from the slopes of the losses by the values, (n, m)."""
        slope = self.columns.weight[:, None] * slope
        pulled = self.columns.transpose_product(slope)
        return np.column_stack([pulled, slope.sum(axis=0) * self.intercept])


@dataclass(frozen=True)
class SquaredError(StandardisedError):
    """The mean of the squared residuals.

    ``target`` is of shape (n, m), and of mean zero where the columns are centred.
    """

    columns: Columns
    target: np.ndarray
    intercept: bool
    alpha: float = 0.0  # it has no penalty

    def __call__(self, V: np.ndarray) -> tuple[float, np.ndarray]:
        """Value and gradient, of all targets together."""
        losses, gradient = self.each(V)
        return float(losses.sum()), gradient

    def each(self, V: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Value of each target, and the gradient."""
        residual = self.values(V) - self.target
        return self.columns.weight @ _LOSS.value(residual), self.gradient(_LOSS.slope(residual))

    def rows(self) -> RowLoss:
        """Return the loss of one row, for stochastic descent."""
        curvature = float(_LOSS.curvature(np.zeros(1))[0])
        return RowLoss(SQUARED, self.target, curvature, _FIRST_STEP)
