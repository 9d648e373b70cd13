"""Linear ridge regression, in its features or in its rows.

    minimise  J(w, c) = 1/2 sum_i s_i (w . x_i + c - t_i)^2 + lambda/2 |w|^2

The intercept c is not regularised: it is the mean of the targets less that of the values, and
leaves Z, the rows less their mean (all means with the weights s). There are M unknowns or N,
whichever are fewer (S = diag(s)):

    primal   (Z'S Z + lambda I) w = Z'S t                  M x M
    dual     (S^(1/2) Z Z' S^(1/2) + lambda I) b = S^(1/2) t,    w = Z'S^(1/2) b      N x N

The bounds of the dual are those of :mod:`maxmargin.solvers.ridge.problem`. A residual of the primal
is minus the gradient, and J is its least value plus ``g'(Z'S Z + lambda I)^-1 g / 2`` exactly, so
that

    gap = |g|^2 / (2 lambda),       |w - w*| <= |g| / lambda.

Reference: seed 001, "Dual representations: Analysis"; Hoerl and Kennard, Technometrics 12, 1970.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from maxmargin.backends.cpu.linear import Design
from maxmargin.backends.threads import ALONE, Workers
from maxmargin.gram import Definiteness, Spectrum
from maxmargin.solvers.ridge.problem import RidgeSystem

_EPS = float(np.finfo(np.float64).eps)
_RANK = 200  # columns of a preconditioner: products with the data cost little
_ROWS = 1024  # rows that a thread takes at a time


class CentredRows:
    """Rows Z: those of X less their mean, times the roots of their weights. X stays as it is.

    Parameters
    ----------
    X : array or CSR of shape (n, d)
    target : float array (n, m)
    weight : float array (n,)
        Positive.
    centre : bool
        Without it, means count as zero.
    means : tuple of float arrays (d,) and (m,), optional
        Of columns and targets, where these are some rows of many.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.solvers.ridge.linear import CentredRows
    >>> rows = CentredRows(np.array([[1.0], [3.0]]), np.array([[0.0], [2.0]]), np.ones(2), True)
    >>> rows.mean, rows.values(np.array([[1.0]])), rows.target
    (array([2.]), array([[-1.],
           [ 1.]]), array([[-1.],
           [ 1.]]))
    """

    def __init__(
        self,
        X: Any,
        target: np.ndarray,
        weight: np.ndarray,
        centre: bool,
        means: tuple[np.ndarray, np.ndarray] | None = None,
    ) -> None:
        self.X, self.given = X, means
        self.n, self.width = X.shape
        self.root = np.sqrt(weight)[:, None]
        self.mean, self.target_mean = np.zeros(self.width), np.zeros(target.shape[1])
        if centre and means is None:
            share = weight / weight.sum()
            self.mean = Design(X, 0.0).combination(share)
            self.target_mean = share @ target
        elif means is not None:
            self.mean, self.target_mean = means
        self.target = self.root * (target - self.target_mean)
        self.squares = np.einsum("ij,ij->j", self.target, self.target)

    def values(self, w: np.ndarray, workers: Workers = ALONE) -> np.ndarray:
        """``Z w`` for w (d, m)."""
        values = Design(self.X, 0.0, workers).values(np.ascontiguousarray(w.T))
        return self.root * (values - self.mean @ w)

    def squared_errors(self, w: np.ndarray, outputs: Any) -> np.ndarray:
        """``|Z w - t|^2`` for w (d, m), of some m targets."""
        return _squares(self.values(w) - self.target[:, outputs], 0)

    def combination(self, b: np.ndarray, workers: Workers = ALONE) -> np.ndarray:
        """``Z' b`` for b (n, m)."""
        beta = self.root * b
        sums = Design(self.X, 0.0, workers).combination(beta).T
        return sums - np.outer(self.mean, beta.sum(axis=0))

    def dense(self, some: Any) -> np.ndarray:
        """Return some rows of Z, written out."""
        rows = self.X[some]
        rows = rows.toarray() if sp.issparse(rows) else rows
        return self.root[some] * (rows - self.mean)

    def columns(self, some: np.ndarray) -> np.ndarray:
        """Return some columns of Z, written out."""
        columns = self.X[:, some]
        columns = columns.toarray() if sp.issparse(columns) else columns
        return self.root * (columns - self.mean[some])

    def slices(self) -> list[slice]:
        """Stretches of the rows."""
        return [slice(first, min(first + _ROWS, self.n)) for first in range(0, self.n, _ROWS)]

    @property
    def in_features(self) -> bool:
        """Whether an unknown for each feature is fewer than one for each row."""
        return self.width <= self.n

    @property
    def sparse(self) -> bool:
        """Whether the rows are sparse."""
        return sp.issparse(self.X)

    @property
    def total(self) -> float:
        """Sum of the weights."""
        return float((self.root**2).sum())

    @property
    def sum_of_squares(self) -> float:
        """Sum of the squares of Z's entries."""
        return float(self.row_squares.sum())

    def onto_targets(self) -> np.ndarray:
        """``Z'S t``."""
        return self.combination(self.target)

    def square(self, workers: Workers = ALONE) -> np.ndarray:
        """``Z'Z``, by stretches of rows."""
        if sp.issparse(self.X):
            scaled = sp.csr_array(self.X).multiply(self.root).tocsr()
            square = np.asarray((scaled.T @ scaled).toarray(), dtype=np.float64)
            return square - self._shifted(scaled)

        def total(share: list[slice]) -> np.ndarray:
            out = np.zeros((self.width, self.width))
            for part in share:
                workers.check()
                rows = self.dense(part)
                out += rows.T @ rows
            return out

        count = workers.count
        shares = [self.slices()[k::count] for k in range(count)]
        return np.sum(workers.map(total, [share for share in shares if share]), axis=0)

    def _shifted(self, scaled: Any) -> np.ndarray:
        """What the mean takes off ``X'S X``; it may be that of more rows than these."""
        if self.given is None:
            return self.total * np.outer(self.mean, self.mean)
        sums = np.asarray(scaled.T @ self.root).ravel()
        away = np.outer(sums, self.mean)
        return away + away.T - self.total * np.outer(self.mean, self.mean)

    def square_product(self, b: np.ndarray, workers: Workers = ALONE) -> np.ndarray:
        """``Z'Z b`` for b (d, m)."""
        return self.combination(self.values(b, workers), workers)

    def square_rows(self, some: np.ndarray) -> np.ndarray:
        """Some rows of ``Z'Z``."""
        return self.combination(self.columns(some)).T

    @cached_property
    def row_squares(self) -> np.ndarray:
        """Squared lengths of Z's rows."""
        return np.concatenate([_squares(self.dense(part), 1) for part in self.slices()])

    @cached_property
    def column_squares(self) -> np.ndarray:
        """Squared lengths of Z's columns."""
        return np.sum([_squares(self.dense(part), 0) for part in self.slices()], axis=0)


@dataclass(frozen=True)
class LinearSystem(RidgeSystem):
    """Base class of the primal and the dual system.

    Parameters
    ----------
    data : CentredRows
    alpha : float
    room : int
        Bytes for the matrix.
    outputs : int array or ...
        Targets that have this alpha.
    """

    data: CentredRows
    alpha: float
    room: int
    outputs: Any = ...

    @property
    def memory(self) -> int:
        """Bytes for the matrix."""
        return self.room

    @abstractmethod
    def weights(self, b: np.ndarray) -> np.ndarray:
        """Weights of the features (d, m)."""

    def values(self, b: np.ndarray, residual: np.ndarray) -> np.ndarray:
        """Return J of each output, summed from the errors: the form in b loses digits."""
        w = self.weights(b)
        errors = self.data.squared_errors(w, self.outputs)
        return 0.5 * (errors + self.alpha * np.einsum("ij,ij->j", w, w))

    @property
    def rank(self) -> int:
        """A fixed number: products with the data cost little."""
        return _RANK

    @property
    def spectrum(self) -> Definiteness | Spectrum:
        """Products of rows are positive semidefinite."""
        return Definiteness.PROVEN

    def rounding(self, b: np.ndarray) -> np.ndarray:
        """Bound on the length of what rounding adds to each residual."""
        n, d = self.data.n, self.data.width
        square = float(self.data.sum_of_squares + self._means())
        return (
            _EPS
            * ((n + d) ** 0.5 + 4.0)
            * (square * np.linalg.norm(b, axis=0) + self._right_terms(square))
        )

    def _right_terms(self, square: float) -> np.ndarray:
        """Bound on the length of the terms that each right side is summed from."""
        return np.linalg.norm(self.right, axis=0)

    def _means(self) -> float:
        """Squared size of what is subtracted from the rows."""
        return float(self.data.total * (self.data.mean @ self.data.mean))

    def refusal(self, row: int | None = None) -> str:
        """Say that alpha is below rounding."""
        return (
            f"alpha={self.alpha:g} is below the rounding of products of these data, which are up "
            f"to {float(self.diagonal.max()):.3g}: raise alpha, scale the columns, or take "
            "LinearRegression, which has the solution for alpha=0."
        )


class PrimalSystem(LinearSystem):
    """The unknowns are the weights w of the features."""

    solves_for = "weights"

    @cached_property
    def right(self) -> np.ndarray:
        """``Z'S t``."""
        return self.data.onto_targets()[:, self.outputs]

    def _right_terms(self, square: float) -> np.ndarray:
        """Bound by the lengths of columns and targets: their products may cancel."""
        return np.sqrt(square * self.squares)

    @cached_property
    def squares(self) -> np.ndarray:
        """Squared lengths of the targets."""
        return self.data.squares[self.outputs]

    @cached_property
    def size(self) -> np.ndarray:
        """Length of a gradient whose gap is the objective of zero weights."""
        size = np.sqrt(self.alpha * self.squares)
        return np.where(size > 0, size, 1.0)

    @property
    def diagonal(self) -> np.ndarray:
        """Squared lengths of the columns."""
        return self.data.column_squares

    def matrix(self, workers: Workers = ALONE) -> np.ndarray:
        """``Z'Z``, by stretches of rows."""
        return self.data.square(workers)

    def rows(self, some: np.ndarray) -> np.ndarray:
        """Products of some columns with all."""
        return self.data.square_rows(some)

    def product(self, b: np.ndarray, workers: Workers = ALONE) -> np.ndarray:
        """``(Z'Z + alpha I) b``."""
        return self.data.square_product(b, workers) + self.alpha * b

    def weights(self, b: np.ndarray) -> np.ndarray:
        """Weights of the features (d, m)."""
        return b

    def objectives(self, b: np.ndarray, residual: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """J of each output, and its gap."""
        gap = 0.5 * np.einsum("ij,ij->j", residual, residual) / self.alpha
        return 0.5 * (self.squares - np.einsum("ij,ij->j", b, self.right + residual)), gap

    def bounds(self, length: float) -> tuple[float, float, float]:
        """Gap, and the error of w, which are the coefficients."""
        return 0.5 * length**2 / self.alpha, length / self.alpha, length / self.alpha


class PositiveSystem(PrimalSystem):
    """The unknowns are weights ``w >= 0`` of the features.

    The objective's curvature is at least alpha, so that with its gradient g at w

        J(w) - J* <= gap = - sum_j min { g_j d_j + alpha/2 d_j^2 : d_j >= -w_j }

    and ``alpha/2 |w - w*|^2 <= gap``. The residual of this class is the vector of the roots of
    ``2 alpha`` times the terms: where no weight is at zero, that is the residual of the primal.
    """

    def residual(self, b: np.ndarray, workers: Workers = ALONE) -> np.ndarray:
        """Square roots of ``2 alpha`` times each weight's term of the gap."""
        left = super().residual(b, workers)
        down = -self.alpha * b  # a residual of this size moves the weight to zero
        blocked = np.sqrt(np.maximum(down * (2.0 * left - down), 0.0))
        return np.where(left >= down, left, -blocked)

    def objectives(self, b: np.ndarray, residual: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """J of each output, and its gap."""
        values, _ = super().objectives(b, super().residual(b))
        return values, 0.5 * np.einsum("ij,ij->j", residual, residual) / self.alpha


class DualSystem(LinearSystem):
    """The unknowns are coefficients of the rows."""

    @property
    def right(self) -> np.ndarray:
        """``S^(1/2) t``."""
        return self.data.target[:, self.outputs]

    @cached_property
    def size(self) -> np.ndarray:
        """Length of the targets."""
        size = np.sqrt(self.data.squares[self.outputs])
        return np.where(size > 0, size, 1.0)

    @property
    def diagonal(self) -> np.ndarray:
        """Squared lengths of the rows."""
        return self.data.row_squares

    def matrix(self, workers: Workers = ALONE) -> np.ndarray:
        """``Z Z'``."""
        data = self.data
        if sp.issparse(data.X):
            X = sp.csr_array(data.X).astype(np.float64)
            K = (X @ X.T).toarray()
            onto = X @ data.mean
            K += data.mean @ data.mean - onto[:, None] - onto
            K *= data.root
            K *= data.root.T
            return K
        Z, K = data.dense(slice(None)), np.empty((data.n, data.n))

        def fill(part: slice) -> None:
            np.matmul(Z[part], Z.T, out=K[part])

        workers.map(fill, data.slices())
        return K

    def rows(self, some: np.ndarray) -> np.ndarray:
        """Products of some rows with all."""
        return self.data.values(self.data.dense(some).T).T

    def product(self, b: np.ndarray, workers: Workers = ALONE) -> np.ndarray:
        """``(Z Z' + alpha I) b``."""
        w = self.data.combination(b, workers)
        return self.data.values(w, workers) + self.alpha * b

    def weights(self, b: np.ndarray) -> np.ndarray:
        """Weights of the features (d, m)."""
        return self.data.combination(b)

    def objectives(self, b: np.ndarray, residual: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """J of each output, and its gap."""
        gap = 0.5 * np.einsum("ij,ij->j", residual, residual)
        return gap + 0.5 * self.alpha * np.einsum("ij,ij->j", b, self.right + residual), gap

    def bounds(self, length: float) -> tuple[float, float, float]:
        """Gap, and the error of w, which are the coefficients."""
        norm = 0.5 * length / self.alpha**0.5
        return 0.5 * length**2, norm, norm


def _squares(rows: np.ndarray, axis: int) -> np.ndarray:
    return np.einsum("ij,ij->i" if axis else "ij,ij->j", rows, rows)
