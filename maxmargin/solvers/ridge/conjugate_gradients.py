"""Ridge regression by preconditioned conjugate gradients, without the matrix.

A step takes one product of the system's matrix with a column for each output. A Gram matrix is
computed for that tile by tile and forgotten, on the host or on a GPU. With the preconditioner of
:mod:`maxmargin.solvers.ridge.preconditioner` some dozens of steps are enough.

Steps take their products from values in float32, as long as these have digits. Where the recurrence
says that the residual is small, the true one is made in float64; if it is not, the steps begin
again from there, which is iterative refinement. Where it does not halve the residual, steps go on
in float64.

References: Golub and Van Loan, Matrix Computations, 2013, chapters 11.5 and 3.5.3 (refinement);
van der Vorst and Ye, SIAM Journal on Scientific Computing 22, 2000 (true residuals now and then).
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

import numpy as np

from maxmargin.backends.threads import StoppedError, Workers
from maxmargin.gram import Definiteness
from maxmargin.solution import Status
from maxmargin.solvers.driver import Measure, Method, Run, Watch
from maxmargin.solvers.ridge.preconditioner import RandomPivots
from maxmargin.solvers.ridge.problem import RidgeSolution, RidgeSystem

_ENOUGH = 0.1  # times lambda: what a trace may lack
_AHEAD = 0.5  # times tol: where the residual is looked at again, which rounding moves
_FLOAT32 = 1e-5  # of the residual at the start: as far as products in float32 may know it
# of the trace: a smaller lambda would leave the preconditioner's inverse to rounding. Ridge and
# KernelRidge, five kernels, lambda from 1e-16 to 1e-3: 3 to 16 steps for 15,800, 111 for 3,000;
# with 1e-14 up to 1.6 times as many, and none has more than without
_RESOLVED = 1e-12
_MORE = 50  # steps beyond n without a smaller residual, after which directions are rounding
_BETTER = 0.5  # of the true residual before: otherwise the digits are at their end


@dataclass(frozen=True)
class PreconditionedCG(Method[RidgeSystem, RidgeSolution]):
    """Conjugate gradients with a preconditioner of low rank; a step is a product with the matrix.

    Parameters
    ----------
    rank : int, optional
        Columns of the preconditioner at most; by default ``10 sqrt(n)`` for a Gram matrix, or as
        many as half of the memory has room for (a third on a GPU, where they are float32).

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin import Gram
    >>> from maxmargin.kernels import Linear
    >>> from maxmargin.solvers.ridge.problem import RidgeProblem
    >>> gram = Gram.of(np.array([[1.0], [2.0]]), Linear())
    >>> problem = RidgeProblem(gram, np.array([[1.0], [2.0]]), alpha=5.0, weight=np.ones(2))
    >>> PreconditionedCG().solve(problem).b.round(6)
    array([[0.1],
           [0.2]])
    """

    rank: int | None = None

    def accepts(self, problem: RidgeSystem) -> str | None:
        """None for a positive lambda; else a sentence."""
        if problem.alpha > 0:
            return None
        return "Conjugate gradients need alpha > 0, got alpha=0: use solver='cholesky'."

    def begin(self, problem: RidgeSystem, watch: Watch) -> Run:
        """Begin at zero."""
        return PreconditionedCGRun(problem, watch, self.rank)


class PreconditionedCGRun(Run):
    """Conjugate gradients at work on ``b`` (n, m), each output with steps of its own."""

    words = "residual {violation:.2g}"

    def __init__(self, problem: RidgeSystem, watch: Watch, rank: int | None) -> None:
        self.problem, self.watch = problem, watch
        self.solves_for = problem.solves_for
        self.workers = Workers(watch.workers.count, watch.stopped)
        self.most, self.rank = rank, 0
        self.b = np.zeros_like(problem.right)
        self.residual, self.is_true = problem.right.copy(), True
        self.in_float32 = True

    @property
    def variables(self) -> np.ndarray:
        """The unknowns as they are."""
        return self.b

    def measure(self) -> Measure:
        """Worst relative residual; objectives of all outputs together."""
        return self.problem.measured(self._violation(), self.b, self.residual)

    def _violation(self) -> float:
        return float(self.problem.violation(self.residual).max())

    def steps(self) -> Generator[None, None, None]:
        """Make the preconditioner, then one conjugate direction after the other."""
        try:
            factor = self._pivots()
            while factor.grow(_ENOUGH * self.problem.alpha):
                yield
            resolved = _RESOLVED * float(self.problem.diagonal.sum())
            shift = max(self.problem.alpha, resolved)
            self.rank, inverse = factor.rank, factor.columns.inverse(shift)
            del factor
            left = self._violation()
            while left > self.watch.tol:
                known, b, residual = left, self.b.copy(), self.residual
                yield from self._descend(inverse)
                self._look_again(self.workers)
                left = self._violation()
                if not left <= known:  # rounding has led the steps astray
                    self.b, self.residual, left = b, residual, known
                if self.status is not None:
                    return
                if not left < _BETTER * known:
                    if not self.in_float32:
                        self.status = None if left <= self.watch.tol else Status.STALLED
                        return
                    self.in_float32 = False
        except StoppedError:
            yield  # to the driver, which knows why

    def _pivots(self) -> RandomPivots:
        problem = self.problem
        columns = problem.columns(self.most, self.workers)
        return RandomPivots.into(columns, problem.diagonal, self.watch.seed)

    def _look_again(self, workers: Workers) -> None:
        """Make the residual anew, in float64."""
        self.residual, self.is_true = self.problem.residual(self.b, workers), True

    def _product(self, direction: np.ndarray) -> np.ndarray:
        if self.in_float32:
            image = self.problem.float32_product(direction, self.workers)
            if image is not None:
                return image
            self.in_float32 = False
        return self.problem.product(direction, self.workers)

    def _descend(self, inverse: Any) -> Generator[None, None, None]:
        """Go on from the residual until it is small, as far as the recurrence knows."""
        direction = ahead = inverse @ self.residual
        square, goal = _dots(self.residual, ahead), _AHEAD * self.watch.tol
        start = least = self._violation()
        patience = self.n_iter + self.problem.n + _MORE
        while self._violation() > goal:
            image = self._product(direction)
            if self.in_float32:
                goal = max(goal, _FLOAT32 * start)
            curvature = _dots(direction, image)
            if (curvature < 0).any() and not self._judged():
                return
            length = np.divide(square, curvature, out=np.zeros_like(square), where=curvature > 0)
            if not length.any():
                self.status = None if self.in_float32 else Status.STALLED
                return
            self.b += length * direction
            self.residual, self.is_true = self.residual - length * image, False
            ahead = inverse @ self.residual
            last, square = square, _dots(self.residual, ahead)
            turn = np.divide(square, last, out=np.zeros_like(square), where=last > 0)
            direction = ahead + turn * direction
            self.n_iter += 1
            if self._violation() < 0.5 * least:
                least, patience = self._violation(), self.n_iter + self.problem.n + _MORE
            elif self.n_iter > patience:  # n steps end the exact method: what is left is rounding
                return
            yield

    def _judged(self) -> bool:
        """Refuse an indefinite matrix; of a valid kernel it is rounding that ends the descent."""
        if self.in_float32:
            return False
        if self.problem.spectrum is not Definiteness.PROVEN:
            raise ValueError(self.problem.refusal())
        self.status = Status.STALLED
        return False

    def solution(self, status: Status) -> RidgeSolution:
        """Return the unknowns as they are, with their true residual."""
        if status.stopped and not self.n_iter:
            b, residual, size = self.problem.subset_solution()
            words = f"conjugate gradients, stopped before the first step: exact for {size} rows"
            return RidgeSolution(self.problem, b, residual, self.n_iter, status, words)
        if self.in_float32 and not self.is_true:
            self._look_again(self.watch.workers)
        words = f"conjugate gradients, {self.n_iter} steps, preconditioner of rank {self.rank}"
        return RidgeSolution(self.problem, self.b, self.residual, self.n_iter, status, words)


def _dots(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    return np.einsum("ij,ij->j", left, right)
