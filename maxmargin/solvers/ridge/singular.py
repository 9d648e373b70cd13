"""Linear ridge regression by singular values, and with weights that may not be negative.

With the singular value decomposition ``S^(1/2) Z = U diag(s) V'``,

    w = V diag(s / (s^2 + lambda)) U' S^(1/2) t.

Nothing is squared, so that this works where lambda is below the rounding of ``Z'S Z`` and
Cholesky's factorisation breaks down.

With ``w >= 0`` and Cholesky's factor ``Z'S Z + lambda I = L L'`` the objective is, but for a
constant, ``1/2 |L'w - L^-1 Z'S t|^2``: nonnegative least squares in as many rows as columns.

References: Golub and Van Loan, Matrix Computations, 2013, chapter 6.1; Lawson and Hanson, Solving
Least Squares Problems, 1974, chapter 23 (NNLS, by SciPy).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cholesky, solve_triangular, svd
from scipy.optimize import nnls

from maxmargin.memory import megabytes
from maxmargin.solution import Status
from maxmargin.solvers.driver import Measure, Method, Run, Watch
from maxmargin.solvers.ridge.linear import PositiveSystem, PrimalSystem
from maxmargin.solvers.ridge.problem import RidgeSolution, RidgeSystem
from maxmargin.solvers.risk.least_squares import triangle_of

_ACTIVE_SETS = 30  # limit on NNLS iterations for each column


class _InOneStep(Method[RidgeSystem, RidgeSolution]):
    """A method whose only step is a call of LAPACK or SciPy."""

    name = ""

    @abstractmethod
    def weights(self, problem: Any) -> np.ndarray:
        """Weights (d, m)."""

    def begin(self, problem: RidgeSystem, watch: Watch) -> Run:
        """Begin at zero."""
        return _OneStepRun(self, problem)

    def _refusal(self, wanted: int, problem: RidgeSystem) -> str | None:
        if wanted <= problem.memory:
            return None
        return (
            f"{self.name} takes {megabytes(wanted)} for these data, and "
            f"{megabytes(problem.memory)} are allowed: raise cache_size, or use fewer columns."
        )


class _OneStepRun(Run):
    solves_for = "weights"
    words = "residual {violation:.2g}"

    def __init__(self, method: _InOneStep, problem: RidgeSystem) -> None:
        self.method, self.problem = method, problem
        self._set(np.zeros_like(problem.right))

    def _set(self, b: np.ndarray) -> None:
        self.b, self.residual = b, self.problem.residual(b)

    @property
    def variables(self) -> np.ndarray:
        return self.b

    def measure(self) -> Measure:
        violation = float(self.problem.violation(self.residual).max())
        return self.problem.measured(violation, self.b, self.residual)

    def steps(self) -> Generator[None, None, None]:
        self._set(self.method.weights(self.problem))
        self.n_iter = 1
        yield from ()

    def solution(self, status: Status) -> RidgeSolution:
        return RidgeSolution(
            self.problem, self.b, self.residual, max(self.n_iter, 1), status, self.method.name
        )


@dataclass(frozen=True)
class SingularValues(_InOneStep):
    """Singular value decomposition of the centred rows, or of R of their QR factorisation.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.solvers.ridge.linear import CentredRows, PrimalSystem
    >>> rows = CentredRows(np.array([[1.0], [3.0]]), np.array([[0.0], [2.0]]), np.ones(2), True)
    >>> SingularValues().solve(PrimalSystem(rows, 2.0, 1000)).b
    array([[0.5]])
    """

    name = "singular values"

    def accepts(self, problem: RidgeSystem) -> str | None:
        """Return None if the factor fits in memory, else the reason for refusing."""
        data = problem.data if isinstance(problem, PrimalSystem) else None
        if data is None or not hasattr(data, "X"):  # rows in the partitions of a collection
            return "The singular values need all rows here: use solver='primal' or 'cg'."
        return self._refusal(8 * min(data.n, data.width) * data.width, problem)

    def weights(self, problem: PrimalSystem) -> np.ndarray:
        """Weights (d, m)."""
        data, right = problem.data, problem.data.target[:, problem.outputs]
        width, triangle = data.width, np.zeros((0, data.width + right.shape[1]))
        for part in data.slices():
            rows = np.hstack([data.dense(part), right[part]])
            triangle = np.vstack([triangle, rows])
            if len(triangle) > triangle.shape[1]:
                triangle = triangle_of([triangle])
        U, s, Vt = svd(triangle[:, :width], full_matrices=False, check_finite=False)
        rounding = float(np.finfo(np.float64).eps) * max(triangle.shape) * s.max(initial=0.0)
        kept = s > rounding  # smaller ones are rounding errors: s u' t could have either sign
        share = s[kept] / (s[kept] ** 2 + problem.alpha)
        return Vt[kept].T @ (share[:, None] * (U[:, kept].T @ triangle[:, width:]))


@dataclass(frozen=True)
class NonnegativeCholesky(_InOneStep):
    """Nonnegative least squares on Cholesky's factor.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.solvers.ridge.linear import CentredRows, PositiveSystem
    >>> rows = CentredRows(np.array([[1.0], [3.0]]), np.array([[2.0], [0.0]]), np.ones(2), True)
    >>> NonnegativeCholesky().solve(PositiveSystem(rows, 2.0, 1000)).b
    array([[0.]])
    """

    name = "nonnegative least squares"

    def accepts(self, problem: RidgeSystem) -> str | None:
        """Return None if the matrix of the columns fits in memory, else the reason for refusing."""
        if not isinstance(problem, PositiveSystem):
            return "Nonnegative weights are found in the features: use solver='auto'."
        return self._refusal(8 * problem.n**2, problem)

    def weights(self, problem: PositiveSystem) -> np.ndarray:
        """Weights (d, m)."""
        A = problem.matrix()
        A[np.diag_indices_from(A)] += problem.alpha
        try:
            factor = cholesky(A, lower=True, overwrite_a=True, check_finite=False)
        except LinAlgError:
            raise ValueError(problem.refusal()) from None
        right = solve_triangular(factor, problem.right, lower=True, check_finite=False)
        found = [nnls(factor.T, column, maxiter=_ACTIVE_SETS * len(A))[0] for column in right.T]
        return np.column_stack(found)
