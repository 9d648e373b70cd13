"""Least squares by a factorisation, and by conjugate gradients.

With weights ``s`` of the rows, and both sides standardised (:mod:`maxmargin.solvers.risk.columns`),

    minimise  sum_i s_i (x_i . w + b - y_i)^2      that is      X' S (X w + b - y) = 0

The normal equations are solved without being formed, since forming them squares the condition
number. :func:`factorised` brings ``sqrt(S) [1 X y]`` to triangular form R by Householder
reflections, a block of rows at a time on top of the R of the rows before: R has the size of the
columns, however many rows there are. The singular values of R's part for X say the rank. Of the
solutions of a problem without full rank, the one of least norm in X's own units is taken: with
``X = U Z V' D``, D the scales, it is ``w = Q c`` where ``D V = Q T`` and ``T' c = U' y / Z``.

:func:`conjugate_gradients` (CGLS) needs products with X only, which sparse data make cheap. From
zero, in X's own units, it ends at the solution of least norm too.

:func:`nonnegative` keeps the coefficients from being negative (NNLS): the active set method on R.

References: seed 004; Golub and Van Loan, Matrix Computations, 2013, chapter 5; Demmel et al., SIAM
J. Scientific Computing 34, 2012 (by blocks of rows); Paige and Saunders, ACM TOMS 8, 1982 (CGLS);
Lawson and Hanson, Solving Least Squares Problems, 1974 (NNLS, by SciPy).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from scipy.linalg import qr, solve_triangular, svd, svdvals
from scipy.optimize import nnls

from maxmargin.backends.threads import ALONE, Workers
from maxmargin.progress import Monitor
from maxmargin.solution import Status
from maxmargin.solvers.risk.columns import Columns
from maxmargin.solvers.risk.gradient_descent import ended, report

_BLOCK = 1 << 17  # entries that are factorised at a time: they fit in a core's cache
_SHORTEST = 3  # rows of a block for each of its columns, at least
_ACTIVE_SETS = 30  # for each column, that nonnegative coefficients may take
_ROUNDING = 4.0  # roundings of the data below which a singular value counts as zero


@dataclass(frozen=True)
class LeastSquares:
    """A solution: ``coef`` (m, d) in X's units, ``centre`` (m,), the value at the mean of X."""

    coef: np.ndarray
    centre: np.ndarray
    n_iter: int
    status: Status
    rank: int | None = None
    singular: np.ndarray | None = None


def factorised(
    columns: Columns, Y: np.ndarray, intercept: bool, monitor: Monitor | None = None
) -> LeastSquares:
    """Solve for Y of shape (n, m) by orthogonal triangularisation.

    When the monitor says stop, the solution is that of the rows seen until then.

    >>> X = np.array([[0.0, 0.0], [1.0, 1.0], [2.0, 2.0]])
    >>> columns = Columns(X, np.ones(3))
    >>> solution = factorised(columns, np.array([[1.0], [2.0], [3.0]]), intercept=True)
    >>> solution.coef.round(12), solution.rank
    (array([[0.5, 0.5]]), 1)
    """
    monitor = monitor or Monitor()
    triangle, status = _triangle(columns, Y, intercept, monitor)
    n, d = columns.X.shape
    first = int(intercept)
    varying = columns.scale > 0
    scale = columns.scale[varying]
    inner = triangle[first:, first : first + d][:, varying]
    right = triangle[first:, first + d :]
    U, size, Vt = svd(inner, full_matrices=False, check_finite=False)
    eps = float(np.finfo(columns.X.dtype).eps)
    uncertain = np.linalg.norm(1.0 + np.abs(columns.mean[varying]) / scale)
    rank = int(np.sum(size > _ROUNDING * eps * uncertain))
    components = (U[:, :rank].T @ right) / size[:rank, None]
    coef = np.zeros((Y.shape[1], d))
    if rank == len(scale):
        coef[:, varying] = (Vt.T @ components).T / scale
        known = svdvals(inner * scale, check_finite=False) if rank else size
    else:
        Q, T = qr(scale[:, None] * Vt[:rank].T, mode="economic", check_finite=False)
        coef[:, varying] = (Q @ solve_triangular(T, components, trans="T")).T
        known = svdvals(size[:rank] * T, check_finite=False) if rank else size[:0]
    centre = _centre(triangle, columns, coef, intercept)
    singular = np.zeros(min(n, d))
    singular[: len(known)] = known
    return LeastSquares(coef, centre, 1, status, rank, singular)


def nonnegative(
    columns: Columns,
    Y: np.ndarray,
    intercept: bool,
    monitor: Monitor | None = None,
    workers: Workers = ALONE,
) -> LeastSquares:
    """Solve for Y of shape (n, m) with no coefficient below zero; one target to a thread.

    >>> X = np.array([[0.0, 0.0], [1.0, 2.0], [2.0, 1.0]])
    >>> columns = Columns(X, np.ones(3))
    >>> nonnegative(columns, np.array([[0.0], [0.0], [3.0]]), intercept=True).coef.round(12)
    array([[1.5, 0. ]])
    """
    triangle, status = _triangle(columns, Y, intercept, monitor or Monitor())
    first, d = int(intercept), columns.X.shape[1]
    varying = columns.scale > 0
    inner = triangle[first:, first : first + d][:, varying]
    coef = np.zeros((Y.shape[1], d))

    def solve(k: int) -> None:
        found, _ = nnls(inner, triangle[first:, first + d + k], maxiter=_ACTIVE_SETS * d)
        coef[k, varying] = found / columns.scale[varying]

    if varying.any():
        workers.map(solve, range(len(coef)))
    return LeastSquares(coef, _centre(triangle, columns, coef, intercept), 1, status)


def _centre(
    triangle: np.ndarray, columns: Columns, coef: np.ndarray, intercept: bool
) -> np.ndarray:
    """Values at the mean of X."""
    if not intercept:
        return np.zeros(len(coef))
    d = columns.X.shape[1]
    onto = triangle[0, 1 : 1 + d] * columns.scale
    return (triangle[0, 1 + d :] - coef @ onto) / triangle[0, 0]


def _triangle(
    columns: Columns, Y: np.ndarray, intercept: bool, monitor: Monitor
) -> tuple[np.ndarray, Status]:
    """R of ``sqrt(S) [1 X y]``, and whether it is that of all rows."""
    n, d = columns.X.shape
    first = int(intercept)
    width = first + d + Y.shape[1]
    triangle = np.zeros((0, width))
    for rows, block in columns.blocks(_BLOCK, _SHORTEST * width):
        reason = monitor.stopped()
        if reason is not None and len(triangle):
            break
        report(monitor, rows.start, 1.0 - rows.start / n, 1.0 / n, float("nan"), name="rows left")
        root = np.sqrt(columns.weight[rows])[:, None]
        stacked = np.empty((len(triangle) + len(root), width), order="F")
        stacked[: len(triangle)] = triangle
        below = stacked[len(triangle) :]
        dense = block.toarray() if sp.issparse(block) else block
        below[:, :first] = root
        below[:, first : first + d] = (dense - columns.mean) * columns.inverse * root
        below[:, first + d :] = Y[rows] * root
        (triangle,) = qr(stacked, mode="r", overwrite_a=True, check_finite=False)
        triangle = np.triu(triangle[:width])
    else:
        reason = None
    return triangle, reason or Status.CONVERGED


def conjugate_gradients(
    columns: Columns,
    Y: np.ndarray,
    tol: float,
    max_iter: int,
    monitor: Monitor | None = None,
    own_units: bool = True,
) -> LeastSquares:
    """Solve for Y of shape (n, m), of mean zero where X is centred, by conjugate gradients.

    ``tol`` bounds the entries of ``2 X' S (X w - y)`` with X standardised. ``own_units`` says
    whether to descend in X's own units, for the solution of least norm, or in those of the
    standardised columns, which takes fewer steps.

    >>> columns = Columns(np.array([[-1.0], [1.0]]), np.ones(2))
    >>> conjugate_gradients(columns, np.array([[-3.0], [3.0]]), 1e-9, 5).coef
    array([[3.]])
    """
    monitor = monitor or Monitor()
    # units of one size, so that descending in X's own does not underflow
    unit = columns.scale / columns.scale.max(initial=1e-300) if own_units else np.ones(1)
    weight = columns.weight[:, None]
    V = np.zeros((Y.shape[1], columns.X.shape[1]))
    residual = Y.copy()
    gradient = columns.pull(weight * residual)
    direction = gradient * unit**2
    square = _squared(gradient * unit)
    steps = 0
    while True:
        largest = 2.0 * float(np.abs(gradient).max(initial=0.0))
        report(monitor, steps, largest, tol, float(np.vdot(weight * residual, residual)))
        status = ended(monitor, largest, tol, steps, max_iter)
        if status is not None:
            return LeastSquares(V * columns.inverse, np.zeros(len(V)), steps, status)
        image = columns.values(direction)
        curvature = np.einsum("ij,ij,i->j", image, image, columns.weight)
        step = np.divide(square, curvature, out=np.zeros(len(V)), where=curvature > 0)
        V += step[:, None] * direction
        residual -= step * image
        gradient = columns.pull(weight * residual)
        last, square = square, _squared(gradient * unit)
        turn = np.divide(square, last, out=np.zeros(len(V)), where=last > 0)
        direction = gradient * unit**2 + turn[:, None] * direction
        steps += 1


def _squared(rows: np.ndarray) -> np.ndarray:
    return np.einsum("ij,ij->i", rows, rows)
