"""Means of losses over standardised columns, as gradient methods like them, without a copy of X.

With weights ``s`` of the rows that sum to one,

    mean_j = sum_i s_i x_ij        scale_j^2 = sum_i s_i (x_ij - mean_j)^2

and a machine ``f(x) = sum_j v_j (x_j - mean_j) / scale_j + c`` is the machine with
``w_j = v_j / scale_j`` and ``b = c - sum_j w_j mean_j``: nothing but other coordinates. X itself
stays as it is, dense or CSR, float32 or float64; sums are in float64, over blocks of rows. A mean
of losses is a function of ``(v, c)`` that returns value and gradient, and says its loss in a row.

The lecture descends on the sum of the losses as a function of w and b themselves. That is the same
with a mean of zero and scales of one, and steps times the sum of the weights.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from maxmargin.losses import Squared
from maxmargin.risk.base import Risk

SQUARED, SIGMOID, COMPETING, LOGISTIC, SOFTMAX = range(5)
_FIRST_STEP = 0.5  # of sgd, over the curvature and the number of columns
_LOSS = Squared()
_SMALL = 1e-6  # standardised values below this count as this
_BLOCK = 1 << 18  # entries that are brought to float64 at a time


class Moments(NamedTuple):
    """Moments of the columns of so many rows.

    ``total`` is the sum of the rows' weights, ``squares`` the mean of the squares about the mean.
    """

    n: int
    total: float
    mean: np.ndarray
    squares: np.ndarray

    @classmethod
    def together(cls, parts: Sequence[Moments]) -> Moments:
        """Moments of all rows, from those of parts (Chan, Golub and LeVeque, 1983)."""
        n, total = sum(part.n for part in parts), sum(part.total for part in parts)
        shares = [part.total / total for part in parts]
        mean = np.sum([s * part.mean for s, part in zip(shares, parts, strict=True)], axis=0)
        squares = np.zeros_like(mean)
        with np.errstate(over="ignore"):
            for share, part in zip(shares, parts, strict=True):
                squares += share * (part.squares + (part.mean - mean) ** 2)
        return cls(n, total, mean, squares)


class Standardisation:
    """Means and scales of columns, whoever has the rows.

    Parameters
    ----------
    moments : Moments
    dtype : dtype
        Of the entries.
    standardise : bool, default=True
        Without it ``v`` and ``c`` are w and b: all means count as zero, and all scales as one.

    Attributes
    ----------
    n, d : int
        Rows and columns.
    total : float
        Sum of the rows' weights.
    mean, scale, inverse : float arrays of shape (d,)
        ``inverse`` is ``1 / scale``. Both are zero for a column that is constant up to rounding: it
        carries nothing beside the intercept, and its coefficient is zero.
    units : tuple of two float arrays of shape (d,)
        Means and scales of the columns, whether they are standardised or not.
    """

    def __init__(self, moments: Moments, dtype: Any, standardise: bool = True) -> None:
        if not np.isfinite(moments.squares).all():
            large = np.flatnonzero(~np.isfinite(moments.squares)).tolist()
            raise ValueError(
                f"The values in column(s) {large} are too large to be squared in float64: divide "
                "these columns by their size, for example with StandardScaler."
            )
        self.moments, self.dtype, self.standardised = moments, np.dtype(dtype), standardise
        self.n, self.d = moments.n, len(moments.mean)
        self.total, self.mean, scale = moments.total, moments.mean, np.sqrt(moments.squares)
        rounding = 4.0 * np.finfo(np.float64).eps * np.sqrt(self.n) * np.abs(self.mean)
        self.scale = np.where(scale > rounding, scale, 0.0)
        self.inverse = np.divide(1.0, scale, out=np.zeros(self.d), where=self.scale > 0)
        self.units = self.mean, self.scale
        if not standardise:
            zeros, ones = np.zeros(self.d), np.ones(self.d)
            self.mean, self.scale, self.inverse = zeros, ones, ones.copy()

    @property
    def per_step(self) -> float:
        """What a given step on the mean is multiplied by: of w and b it is one on the sum."""
        return 1.0 if self.standardised else self.total

    def steepness(self, gradient: np.ndarray) -> np.ndarray:
        """Gradient (m, d + 1) by standardised weights, of one by the weights as they are here."""
        if self.standardised:
            return gradient
        mean, scale = self.units
        pulled = gradient[:, :-1] - gradient[:, -1:] * mean
        pulled = np.divide(pulled, scale, out=np.zeros_like(pulled), where=scale > 0)
        return np.column_stack([pulled, gradient[:, -1]])

    def curvature(self) -> float:
        """Bound on the curvature of a mean of losses that have one of at most one: of a row's."""
        mean, scale = self.units
        squares = scale**2 + mean**2 if not self.standardised else scale > 0
        return 1.0 + float(np.sum(squares))

    def typical(self) -> np.ndarray:
        """Geometric mean of the standardised values' sizes in each column, one where constant.

        It is far below one where a few outliers make the column's scale.
        """
        total, mass = self.log_sizes()
        mean, scale = self.units
        inverse = np.divide(1.0, scale, out=np.zeros(self.d), where=scale > 0)
        at_zero = np.log(np.maximum(np.abs(mean) * inverse, _SMALL))
        total = total + np.maximum(1.0 - mass, 0.0) * at_zero
        return np.where(scale > 0, np.exp(total), 1.0)

    def log_sizes(self) -> tuple[np.ndarray, np.ndarray]:
        """Mean logarithms of the standardised sizes that are stored, and the weight of those."""
        raise NotImplementedError


class Columns(Standardisation):
    """X of shape (n, d), seen as ``(X - mean) / scale``.

    Parameters
    ----------
    X : dense array or CSR matrix of shape (n, d), float32 or float64
    weight : float array of shape (n,)
        Weights of the rows, in any unit.
    centre : bool, default=True
        Without it the mean counts as zero.
    standardise : bool, default=True
        Without it ``v`` and ``c`` are w and b: all means count as zero, and all scales as one.
    moments : Moments, optional
        Where these are some rows of many, those of all; by default their own.

    Attributes
    ----------
    X, weight
        The data, and the weights so that those of all rows sum to one.

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

    def __init__(
        self,
        X: Any,
        weight: np.ndarray,
        centre: bool = True,
        standardise: bool = True,
        moments: Moments | None = None,
    ) -> None:
        if sp.issparse(X) and not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()
        self.X, self.given = X, weight
        total = float(weight.sum()) if moments is None else moments.total
        self.weight = weight / total
        super().__init__(moments or self._moments(total, centre), X.dtype, standardise)

    def plain(self) -> Columns:
        """The same columns as they are, not standardised."""
        return Columns(self.X, self.given, standardise=False, moments=self.moments)

    def _moments(self, total: float, centre: bool) -> Moments:
        n, d = self.X.shape
        self.mean = np.zeros(d)
        if centre:
            for rows, block in self.blocks():
                self.mean += self.weight[rows] @ block
        with np.errstate(over="ignore"):
            return Moments(n, total, self.mean, self._squares())

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

    def largest_row(self) -> float:
        """Largest squared length of a row."""
        metric, longest = self.inverse**2, 0.0
        square = float(self.mean**2 @ metric)
        for _, block in self.blocks():
            if sp.issparse(block):
                squares = block.power(2) @ metric - 2.0 * block @ (self.mean * metric) + square
            else:
                squares = (block - self.mean) ** 2 @ metric
            longest = max(longest, float(squares.max(initial=0.0)))
        return longest

    def log_sizes(self) -> tuple[np.ndarray, np.ndarray]:
        """Mean logarithms of the standardised sizes that are stored, and the weight of those."""
        d = self.d
        mean, scale = self.units
        inverse = np.divide(1.0, scale, out=np.zeros(d), where=scale > 0)
        total, mass = np.zeros(d), np.zeros(d)
        for rows, block in self.blocks():
            if sp.issparse(block):
                weight = np.repeat(self.weight[rows], np.diff(block.indptr))
                away = np.abs(block.data - mean[block.indices]) * inverse[block.indices]
                total += np.bincount(block.indices, weight * np.log(np.maximum(away, _SMALL)), d)
                mass += np.bincount(block.indices, weight, d)
            else:
                away = np.abs(block - mean) * inverse
                total += self.weight[rows] @ np.log(np.maximum(away, _SMALL))
        return total, mass if sp.issparse(self.X) else np.ones(d)

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
    COMPETING (``target`` (n, 1): the class), which have a ``steepness``, and the last one the
    ``eta`` of :class:`maxmargin.linear.mce.MCEClassifier`; LOGISTIC and SOFTMAX have targets like
    these two. ``curvature`` bounds the second derivative by the values; the first step is
    ``first`` over it and over ``d + 1``, and later ones fall with the ``decay``-th power of the
    pass.
    """

    kind: int
    target: np.ndarray
    curvature: float
    first: float = _FIRST_STEP
    steepness: float = 1.0
    eta: float = 1.0
    decay: float = 0.75


class StandardisedError(ABC):
    """A mean of losses, as a function of (m, d + 1) weights of the columns, the last one c."""

    columns: Any  # Columns, or a standardisation of rows that lie elsewhere
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

    def steepness(self, gradient: np.ndarray) -> float:
        """Largest entry of a gradient, by standardised weights whatever those of the columns."""
        return float(np.abs(self.columns.steepness(gradient)).max(initial=0.0))

    def weights(self, V: np.ndarray) -> np.ndarray:
        """Coefficients and, in the last column, intercepts in X's own units: (m, d + 1)."""
        W = V[:, :-1] * self.columns.inverse
        return np.column_stack([W, V[:, -1] - W @ self.columns.mean])

    def point(self, coef: np.ndarray, intercept: np.ndarray) -> np.ndarray:
        """V of some coefficients and intercepts."""
        return np.column_stack([coef * self.columns.scale, intercept + coef @ self.columns.mean])


@dataclass(frozen=True)
class SquaredError(StandardisedError):
    """The mean of the squared residuals.

    ``target`` is of shape (n, m), and of mean zero where the columns are centred; ``size`` is that
    of the targets, one where they are standardised.
    """

    columns: Any
    target: np.ndarray
    intercept: bool
    alpha: float = 0.0  # it has no penalty
    size: np.ndarray | float = 1.0

    @property
    def n_targets(self) -> int:
        """Functions that are sought."""
        return self.target.shape[1]

    def __call__(self, V: np.ndarray) -> tuple[float, np.ndarray]:
        """Value and gradient, of all targets together."""
        losses, gradient = self.each(V)
        return float(losses.sum()), gradient

    def each(self, V: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Value of each target, and the gradient."""
        residual = self.values(V) - self.target
        return self.columns.weight @ _LOSS.value(residual), self.gradient(_LOSS.slope(residual))

    def steepness(self, gradient: np.ndarray) -> float:
        """Largest entry of a gradient, by standardised weights of standardised targets."""
        return super().steepness(gradient / np.reshape(self.size, (-1, 1)))

    def rows(self) -> RowLoss:
        """Return the loss of one row, for stochastic descent."""
        curvature = float(_LOSS.curvature(np.zeros(1))[0])
        return RowLoss(SQUARED, self.target, curvature)

    def stretches(self, entries: int, least: int) -> Iterator[tuple[int, np.ndarray]]:
        """Rows of ``sqrt(S) [1 X y]``, some at a time, after how many rows they are."""
        columns, first, d = self.columns, int(self.intercept), self.columns.d
        for rows, block in columns.blocks(entries, least):
            root = np.sqrt(columns.weight[rows])[:, None]
            stretch = np.empty((len(root), first + d + self.n_targets), order="F")
            dense = block.toarray() if sp.issparse(block) else block
            stretch[:, :first] = root
            stretch[:, first : first + d] = (dense - columns.mean) * columns.inverse * root
            stretch[:, first + d :] = self.target[rows] * root
            yield rows.stop, stretch

    def residual(self) -> Residual:
        """Return what zero weights leave of the targets."""
        return Residual(self)


class Regression:
    """Least squares for the targets Y (n, m) of rows that have a weight, in two units.

    Attributes
    ----------
    mean, size : float arrays of shape (m,)
        Mean of each target, or zero without an intercept, and its size about it.
    error : SquaredError
        With standardised columns, of ``(Y - mean) / size``.
    """

    error: SquaredError

    def __init__(self, X: Any, Y: np.ndarray, weight: np.ndarray, intercept: bool) -> None:
        self.target, columns = Y, Columns(X, weight, centre=intercept)
        mean = columns.weight @ Y if intercept else np.zeros(Y.shape[1])
        self._measure(mean, columns.weight @ (Y - mean) ** 2)
        self.error = SquaredError(columns, (Y - mean) / self.size, intercept)

    def _measure(self, mean: np.ndarray, squares: np.ndarray) -> None:
        """Set the mean and the size of the targets, which is one where they do not vary."""
        self.mean, self.size = mean, np.sqrt(squares)
        self.size[self.size == 0] = 1.0

    def in_data_units(self) -> SquaredError:
        """Return the error with columns and targets as they are."""
        error = self.error
        return SquaredError(error.columns.plain(), self.target, error.intercept, size=self.size)


class Residual:
    """What some weights leave of the targets, ``y - X v``, and its products with the columns.

    ``gradient`` (m, d) is ``X' S`` times it.
    """

    def __init__(self, error: SquaredError) -> None:
        self.error, self.left = error, error.target.copy()
        self.gradient = self._gradient()

    def _gradient(self) -> np.ndarray:
        columns = self.error.columns
        return columns.transpose_product(columns.weight[:, None] * self.left)

    @property
    def square(self) -> float:
        """Mean of its squares, of all targets together."""
        return float(np.einsum("ij,ij,i->", self.left, self.left, self.error.columns.weight))

    def curvature(self, direction: np.ndarray) -> np.ndarray:
        """Mean squares (m,) of what a direction (m, d) of the weights changes of it."""
        self.image = self.error.columns.values(direction)
        return np.einsum("ij,ij,i->j", self.image, self.image, self.error.columns.weight)

    def move(self, step: np.ndarray) -> None:
        """Go so far (m,) in the direction that was asked about."""
        self.left -= step * self.image
        self.gradient = self._gradient()

    def renew(self, V: np.ndarray) -> None:
        """Make it anew at some weights: what was known by its changes has their rounding."""
        self.left = self.error.target - self.error.columns.values(V)
        self.gradient = self._gradient()


class Coordinates:
    """The weights of a risk as those of its columns: (m, d + 1), the last one the intercept's.

    Parameters
    ----------
    risk : Risk
    standardise : bool
        Whether the columns are standardised, or as they are.
    """

    def __init__(self, risk: Risk, standardise: bool) -> None:
        self.shape, self.constant = risk.shape, float(risk.design.constant)
        self.columns = Columns(risk.design.X, risk.cost, self.constant != 0, standardise)

    def _parts(self, theta: np.ndarray, constant: float) -> tuple[np.ndarray, np.ndarray]:
        rows, d = np.atleast_2d(theta), self.columns.X.shape[1]
        return rows[:, :d], rows[:, d] * constant if self.constant else np.zeros(len(rows))

    def point(self, theta: np.ndarray) -> np.ndarray:
        """Where some weights are."""
        W, b = self._parts(theta, self.constant)
        return np.column_stack([W * self.columns.scale, b + W @ self.columns.mean])

    def theta(self, point: np.ndarray) -> np.ndarray:
        """Weights at a point."""
        W = point[:, :-1] * self.columns.inverse
        if self.constant:
            W = np.column_stack([W, (point[:, -1] - W @ self.columns.mean) / self.constant])
        return W.reshape(self.shape)

    def gradient(self, gradient: np.ndarray) -> np.ndarray:
        """Gradient by the point, of one by the weights."""
        by_w, by_b = self._parts(gradient, 1.0 / (self.constant or 1.0))
        columns = self.columns
        return np.column_stack([(by_w - np.outer(by_b, columns.mean)) * columns.inverse, by_b])
