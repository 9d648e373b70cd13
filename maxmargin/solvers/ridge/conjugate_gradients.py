"""Ridge regression by preconditioned conjugate gradients, without the matrix.

A step takes one product of the system's matrix with a column for each output. A Gram matrix is
computed for that tile by tile and forgotten, on the host or on a GPU. With the preconditioner of
:mod:`maxmargin.solvers.ridge.preconditioner` some dozens of steps are enough.

Reference: Golub and Van Loan, Matrix Computations, 2013, chapter 11.5.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

import numpy as np

from maxmargin.backends.threads import StoppedError, Workers
from maxmargin.gram import Definiteness
from maxmargin.solution import Status
from maxmargin.solvers.driver import Measure, Method, Run, Watch
from maxmargin.solvers.ridge.preconditioner import Preconditioner, RandomPivots
from maxmargin.solvers.ridge.problem import RidgeSolution, RidgeSystem

_SHARE = 0.5  # of the memory, for the preconditioner
_ENOUGH = 0.1  # times lambda: what a trace may lack
_AHEAD = 0.5  # times tol: where the residual is looked at again, which rounding moves
_BETTER = 0.5  # of the true residual before: otherwise the digits are at their end


@dataclass(frozen=True)
class PreconditionedCG(Method[RidgeSystem, RidgeSolution]):
    """Conjugate gradients with a preconditioner of low rank; a step is a product with the matrix.

    Parameters
    ----------
    rank : int, optional
        Columns of the preconditioner at most; by default ``10 sqrt(n)`` for a Gram matrix, on a GPU
        ``2 sqrt(n)``, or as many as half of the memory has room for.

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
        self.workers = Workers(watch.workers.count, watch.stopped)
        self.rank = self._affordable() if rank is None else min(rank, problem.n)
        self.b = np.zeros_like(problem.right)
        self.residual = problem.right.copy()

    def _affordable(self) -> int:
        """Columns of the preconditioner: the usual number, or what has room."""
        problem = self.problem
        return int(min(problem.rank, _SHARE * problem.memory / (8 * problem.n), problem.n))

    @property
    def variables(self) -> np.ndarray:
        """The unknowns as they are."""
        return self.b

    def measure(self) -> Measure:
        """Worst relative residual; objectives of all outputs together."""
        objectives, gaps = self.problem.objectives(self.b, self.residual)
        value, gap = float(objectives.sum()), float(gaps.sum())
        return Measure(self._violation(), value, value - gap, gap)

    def _violation(self) -> float:
        return float(self.problem.violation(self.residual).max())

    def steps(self) -> Generator[None, None, None]:
        """Make the preconditioner, then one conjugate direction after the other."""
        try:
            factor = self._pivots()
            while factor.grow(_ENOUGH * self.problem.alpha):
                yield
            inverse = Preconditioner(factor.F, self.problem.alpha, self.workers)
            del factor
            known = np.inf
            while True:
                yield from self._descend(inverse)
                if self.status is not None:
                    return
                self.residual = self.problem.residual(self.b, self.workers)
                left = self._violation()
                if left <= self.watch.tol:
                    return
                if not left < _BETTER * known:
                    self.status = Status.STALLED
                    return
                known = left
        except StoppedError:
            yield  # to the driver, which knows why

    def _pivots(self) -> RandomPivots:
        problem = self.problem
        return RandomPivots(
            problem.rows, problem.diagonal, self.rank, self.watch.seed, self.workers
        )

    def _descend(self, inverse: Preconditioner) -> Generator[None, None, None]:
        """Go on from the residual until it is small, as far as the recurrence knows."""
        problem, b = self.problem, self.b
        direction = ahead = inverse @ self.residual
        square = _dots(self.residual, ahead)
        while self._violation() > _AHEAD * self.watch.tol:
            image = problem.product(direction, self.workers)
            curvature = _dots(direction, image)
            if (curvature < 0).any() and not self._judged():
                return
            length = np.divide(square, curvature, out=np.zeros_like(square), where=curvature > 0)
            if not length.any():
                self.status = Status.STALLED
                return
            b += length * direction
            self.residual = self.residual - length * image
            ahead = inverse @ self.residual
            last, square = square, _dots(self.residual, ahead)
            turn = np.divide(square, last, out=np.zeros_like(square), where=last > 0)
            direction = ahead + turn * direction
            self.n_iter += 1
            yield

    def _judged(self) -> bool:
        """Refuse an indefinite matrix; of a valid kernel it is rounding that ends the run."""
        if self.problem.spectrum is not Definiteness.PROVEN:
            raise ValueError(self.problem.refusal())
        self.status = Status.STALLED
        return False

    def solution(self, status: Status) -> RidgeSolution:
        """Return the unknowns as they are."""
        words = f"conjugate gradients, {self.n_iter} steps, preconditioner of rank {self.rank}"
        return RidgeSolution(self.problem, self.b, self.residual, self.n_iter, status, words)


def _dots(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    return np.einsum("ij,ij->j", left, right)
