"""Least squares by a factorisation, and by conjugate gradients.

With weights ``s`` of the rows, and both sides standardised (:mod:`maxmargin.risk.standardised`),

    minimise  sum_i s_i (x_i . w + b - y_i)^2      that is      X' S (X w + b - y) = 0

The normal equations are solved without being formed, since forming them squares the condition
number. :class:`Factorisation` brings ``sqrt(S) [1 X y]`` to triangular form R by Householder
reflections, a block of rows at a time on top of the R of the rows before: R has the size of the
columns, however many rows there are. The singular values of R's part for X say the rank. Of the
solutions of a problem without full rank, the one of least norm in X's own units is taken: with
``X = U Z V' D``, D the scales, it is ``w = Q c`` where ``D V = Q T`` and ``T' c = U' y / Z``.

:class:`ConjugateGradients` (CGLS) needs products with X only, which sparse data make cheap. From
zero, in X's own units, it ends at the solution of least norm too.

:class:`NonnegativeLeastSquares` keeps the coefficients from being negative (NNLS): the active set
method on R.

References: seed 004; Golub and Van Loan, Matrix Computations, 2013, chapter 5; Demmel et al., SIAM
J. Scientific Computing 34, 2012 (by blocks of rows); Paige and Saunders, ACM TOMS 8, 1982 (CGLS);
Lawson and Hanson, Solving Least Squares Problems, 1974 (NNLS, by SciPy).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import qr, solve_triangular, svd, svdvals
from scipy.optimize import nnls

from maxmargin.risk.standardised import SquaredError
from maxmargin.solution import Status
from maxmargin.solvers.driver import Measure, Method, Run, Watch

_BLOCK = 1 << 17  # entries that are factorised at a time: they fit in a core's cache
_SHORTEST = 3  # rows of a block for each of its columns, at least
_ACTIVE_SETS = 30  # for each column, that nonnegative coefficients may take
_MORE = 50  # steps beyond the columns without half the gradient, after which they are rounding
_ROUNDING = 4.0  # roundings of the data below which a singular value counts as zero


@dataclass(frozen=True)
class LeastSquares:
    """A solution: ``coef`` (m, d) in X's units, ``centre`` (m,), the value at the mean of X.

    ``curve`` has the loss at the start and after each step, of a descent.
    """

    coef: np.ndarray
    centre: np.ndarray
    n_iter: int
    status: Status
    rank: int | None = None
    singular: np.ndarray | None = None
    curve: list[float] | None = None


class LeastSquaresMethod(Method[SquaredError, LeastSquares]):
    """A method that knows what it solves to be least squares."""

    def accepts(self, problem: Any) -> str | None:
        """None for a squared error; else why not."""
        if isinstance(problem, SquaredError):
            return None
        return f"{type(self).__name__} solves least squares only: use solver='lbfgs'."


@dataclass(frozen=True)
class Factorisation(LeastSquaresMethod):
    """Orthogonal triangularisation (QR); a step is a block of rows.

    Stopped, it has the exact solution for the rows that it has seen.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.risk.standardised import Columns, SquaredError
    >>> columns = Columns(np.array([[0.0, 0.0], [1.0, 1.0], [2.0, 2.0]]), np.ones(3))
    >>> error = SquaredError(columns, np.array([[1.0], [2.0], [3.0]]), intercept=True)
    >>> solution = Factorisation().solve(error)
    >>> solution.coef.round(12), solution.rank
    (array([[0.5, 0.5]]), 1)
    """

    def begin(self, problem: SquaredError, watch: Watch) -> Run:
        """Begin with the first rows."""
        return FactorisationRun(problem, watch)


@dataclass(frozen=True)
class NonnegativeLeastSquares(LeastSquaresMethod):
    """Least squares with no coefficient below zero (NNLS), one target to a thread.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.risk.standardised import Columns, SquaredError
    >>> columns = Columns(np.array([[0.0, 0.0], [1.0, 2.0], [2.0, 1.0]]), np.ones(3))
    >>> error = SquaredError(columns, np.array([[0.0], [0.0], [3.0]]), intercept=True)
    >>> NonnegativeLeastSquares().solve(error).coef.round(12)
    array([[1.5, 0. ]])
    """

    def begin(self, problem: SquaredError, watch: Watch) -> Run:
        """Begin with the first rows."""
        return NonnegativeRun(problem, watch)


def triangle_of(rows: list[np.ndarray]) -> np.ndarray:
    """R of some rows below each other, at most as many as they have columns."""
    width = rows[0].shape[1]
    stacked = np.empty((sum(map(len, rows)), width), order="F")
    np.concatenate(rows, out=stacked)
    (triangle,) = qr(stacked, mode="r", overwrite_a=True, check_finite=False)
    return np.triu(triangle[:width])


def triangular(problem: SquaredError) -> np.ndarray:
    """R of all rows ``sqrt(S) [1 X y]`` of a problem."""
    width = int(problem.intercept) + problem.columns.d + problem.n_targets
    triangle = np.zeros((0, width))
    for _, rows in problem.stretches(_BLOCK, _SHORTEST * width):
        triangle = triangle_of([triangle, rows])
    return triangle


class _TriangularRun(Run):
    """R of ``sqrt(S) [1 X y]``, a block of rows at a time on top of that of the rows before."""

    solves_for = "weights"
    words = "rows left {violation:.2g}"

    def __init__(self, problem: SquaredError, watch: Watch) -> None:
        self.columns, self.watch = problem.columns, watch
        self.first = int(problem.intercept)
        self.width = self.first + self.columns.d + problem.n_targets
        self.triangle, self.seen = np.zeros((0, self.width)), 0
        self._stretches = problem.stretches(_BLOCK, _SHORTEST * self.width)
        self.answer: LeastSquares | None = None

    @property
    def variables(self) -> np.ndarray | None:
        """The standardised weights, c after them, at the end."""
        if self.answer is None:
            return None
        coef, centre = self.answer.coef, self.answer.centre
        return np.column_stack([coef * self.columns.scale, centre])

    def measure(self) -> Measure:
        """Share of the rows that are left; at the end the mean of the squared residuals."""
        left, V = 1.0 - self.seen / self.columns.n, self.variables
        if V is None:
            return Measure(left)
        d, first = self.columns.d, self.first
        weights = np.column_stack([V[:, d:], V[:, :d]][1 - first :])
        residual = self.triangle[:, : first + d] @ weights.T - self.triangle[:, first + d :]
        return Measure(left, float((residual**2).sum()))

    def steps(self) -> Generator[None, None, None]:
        """One block after the other."""
        while self._add():
            yield
        self.answer = self._answer(Status.CONVERGED)

    def _add(self) -> bool:
        """Take in a block of rows; returns whether there are more."""
        more = next(self._stretches, None)
        if more is None:  # somebody has said stop, which the driver knows
            return True
        self.seen = more[0]
        self.triangle = triangle_of([self.triangle, more[1]])
        self.n_iter += 1
        return self.seen < self.columns.n

    def solution(self, status: Status) -> LeastSquares:
        """Return the solution for the rows seen, of the first block at least."""
        if not self.seen:
            self._add()
        return self.answer or self._answer(status)

    def _answer(self, status: Status) -> LeastSquares:
        d, varying = self.columns.d, self.columns.scale > 0
        inner = self.triangle[self.first :, self.first : self.first + d][:, varying]
        right = self.triangle[self.first :, self.first + d :]
        coef, *known = self._solved(inner, right, varying)
        return LeastSquares(coef, self._centre(coef), 1, status, *known)

    @abstractmethod
    def _solved(self, inner: np.ndarray, right: np.ndarray, varying: np.ndarray) -> tuple:
        """Coefficients (m, d) from R's parts for X and y, then the rank and singular values."""

    def _centre(self, coef: np.ndarray) -> np.ndarray:
        """Values at the mean of X."""
        if not self.first:
            return np.zeros(len(coef))
        d = self.columns.d
        onto = self.triangle[0, 1 : 1 + d] * self.columns.scale
        return (self.triangle[0, 1 + d :] - coef @ onto) / self.triangle[0, 0]


class FactorisationRun(_TriangularRun):
    """Orthogonal triangularisation at work."""

    def _solved(self, inner: np.ndarray, right: np.ndarray, varying: np.ndarray) -> tuple:
        """Coefficients of least norm, rank and singular values."""
        columns = self.columns
        n, d = columns.n, columns.d
        scale = columns.scale[varying]
        U, size, Vt = svd(inner, full_matrices=False, check_finite=False)
        eps = float(np.finfo(columns.dtype).eps)
        # what a singular value has of the data's rounding, and of the factorisation's
        uncertain = np.linalg.norm(1.0 + np.abs(columns.mean[varying]) / scale)
        own = float(np.finfo(np.float64).eps) * self.width * size.max(initial=0.0)
        onto = U.T @ right
        # what is lost in the data's rounding counts as zero where the gradient does not show it
        shown = np.sqrt(np.cumsum((2.0 * size[:, None] * onto)[::-1] ** 2, axis=0))[::-1]
        needed = (size > _ROUNDING * eps * uncertain) | (shown > self.watch.tol).any(axis=1)
        resolved = size > _ROUNDING * own
        least, most = int(np.sum(needed & resolved)), int(np.sum(resolved))
        rank, coef = least, np.zeros((right.shape[1], d))
        while True:
            components = onto[:rank] / size[:rank, None]
            if rank == len(scale):
                coef[:, varying] = (Vt.T @ components).T / scale
                known = svdvals(inner * scale, check_finite=False) if rank else size
                break
            coef[:, varying], T = _least_norm(scale[:, None] * Vt[:rank].T, components)
            known = svdvals(size[:rank] * T, check_finite=False) if rank else size[:0]
            # the least norm may go far along what counts as zero, until the gradient does show it
            moved = size[rank:, None] * (Vt[rank:] @ (coef[:, varying] * scale).T)
            left = 2.0 * size[rank:, None] * (moved - onto[rank:])
            if rank == most or np.linalg.norm(left, axis=0).max() <= self.watch.tol:
                break
            rank = min(2 * rank + 1 - least, most)  # one more, three more, seven ...
        singular = np.zeros(min(n, d))
        singular[: len(known)] = known
        return coef, rank, singular


def _least_norm(M: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return w' of least norm with ``M' w = right``, and T (k, k) with ``M = Q T``.

    Rows of M may be of very different lengths. With the longest first, and the columns in the order
    of a pivoted factorisation, each row is as exact as it is long (Cox and Higham, BIT 38, 1998).
    """
    order = np.argsort(-np.abs(M).max(axis=1, initial=0.0), kind="stable")
    Q, T, columns = qr(M[order], mode="economic", pivoting=True, check_finite=False)
    w = np.empty((len(M), right.shape[1]))
    w[order] = Q @ solve_triangular(T, right[columns], trans="T")
    return w.T, T[:, np.argsort(columns)]


class NonnegativeRun(_TriangularRun):
    """NNLS at work: the factorisation first, then active sets on R."""

    def _solved(self, inner: np.ndarray, right: np.ndarray, varying: np.ndarray) -> tuple:
        """Coefficients that are not negative."""
        d, scale = len(varying), self.columns.scale[varying]
        coef = np.zeros((right.shape[1], d))

        def solve(k: int) -> None:
            found, _ = nnls(inner, right[:, k], maxiter=_ACTIVE_SETS * d)
            coef[k, varying] = found / scale

        if varying.any():
            self.watch.workers.map(solve, range(len(coef)))
        return (coef,)


@dataclass(frozen=True)
class ConjugateGradients(LeastSquaresMethod):
    """Conjugate gradients (CGLS), which need products with X only.

    ``tol`` bounds the entries of ``2 X' S (X w - y)`` with X standardised.

    Parameters
    ----------
    own_units : bool, default=True
        Whether to descend in X's own units, for the solution of least norm, or in those of the
        standardised columns, which takes fewer steps.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.risk.standardised import Columns, SquaredError
    >>> columns = Columns(np.array([[-1.0], [1.0]]), np.ones(2))
    >>> error = SquaredError(columns, np.array([[-3.0], [3.0]]), intercept=True)
    >>> ConjugateGradients().solve(error).coef
    array([[3.]])
    """

    own_units: bool = True

    def begin(self, problem: SquaredError, watch: Watch) -> Run:
        """Begin at zero."""
        return ConjugateGradientsRun(problem, watch, self.own_units)


class ConjugateGradientsRun(Run):
    """Conjugate gradients at work; ``V`` (m, d) are the standardised weights."""

    solves_for = "weights"
    words = "loss {objective:.5g}, gradient {violation:.2g}"

    def __init__(self, problem: SquaredError, watch: Watch, own_units: bool) -> None:
        self.columns, self.watch = problem.columns, watch
        scale = self.columns.scale
        # units of one size, so that descending in X's own does not underflow
        self.unit = scale / scale.max(initial=1e-300) if own_units else np.ones(1)
        self.V = np.zeros((problem.n_targets, len(scale)))
        self.residual = problem.residual()

    @property
    def variables(self) -> np.ndarray:
        """The standardised weights."""
        return self.V

    def measure(self) -> Measure:
        """Largest entry of the gradient, and the mean of the squared residuals."""
        return Measure(self._largest(), self.residual.square)

    def _largest(self) -> float:
        return 2.0 * float(np.abs(self.residual.gradient).max(initial=0.0))

    def steps(self) -> Generator[None, None, None]:
        """Conjugate directions, once more from where they end if the residual was not exact."""
        last = np.inf
        while (largest := self._largest()) > self.watch.tol:
            if largest > 0.5 * last:  # what one more descent has not halved is rounding
                self.status = Status.STALLED
                return
            last = largest
            yield from self._descend()
            if self.status is not None:
                return
            self.residual.renew(self.V)

    def _descend(self) -> Generator[None, None, None]:
        """One conjugate direction after the other, and back to the best where rounding leads."""
        residual, unit, V = self.residual, self.unit, self.V
        least, best = self._largest(), V.copy()
        half, patience = 0.5 * least, self.n_iter + V.shape[1] + _MORE
        direction, square = residual.gradient * unit**2, _squared(residual.gradient * unit)
        while self._largest() > self.watch.tol:
            curvature = residual.curvature(direction)
            step = np.divide(square, curvature, out=np.zeros(len(V)), where=curvature > 0)
            V += step[:, None] * direction
            residual.move(step)
            last, square = square, _squared(residual.gradient * unit)
            turn = np.divide(square, last, out=np.zeros(len(V)), where=last > 0)
            direction = residual.gradient * unit**2 + turn[:, None] * direction
            self.n_iter += 1
            largest = self._largest()
            if largest < least:
                least, best = largest, V.copy()
            if largest < half:
                half, patience = 0.5 * largest, self.n_iter + V.shape[1] + _MORE
            elif self.n_iter > patience or not np.isfinite(largest):
                V[:], self.status = best, Status.STALLED
                return
            yield

    def solution(self, status: Status) -> LeastSquares:
        """Return the weights."""
        coef = self.V * self.columns.inverse
        return LeastSquares(coef, np.zeros(len(coef)), self.n_iter, status)


def _squared(rows: np.ndarray) -> np.ndarray:
    return np.einsum("ij,ij->i", rows, rows)
