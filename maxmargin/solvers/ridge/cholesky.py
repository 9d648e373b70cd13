"""Ridge regression by Cholesky's factorisation, in ``n^3 / 3`` operations and one matrix.

The factor is float32 where the system's condition allows it, and the solution is corrected from its
residual, in float64, until only the rounding of that is left. Where this does not come to an end,
the factor is made again in float64.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

import numpy as np

from maxmargin.backends.dense import BlockCholesky, NotPositiveError
from maxmargin.backends.threads import StoppedError, Workers
from maxmargin.memory import megabytes
from maxmargin.solution import Status
from maxmargin.solvers.driver import Measure, Method, Run, Watch
from maxmargin.solvers.ridge.problem import NotDefiniteError, RidgeSolution, RidgeSystem

_CORRECTIONS = 12  # of the solution from its residual, at most
_BETTER = 0.5  # of the residual before: otherwise a correction is rounding
_FLOAT32_FROM = 1000  # rows: fewer are factorised at once
_CONDITION = 1e6  # of a system that float32 can factorise, and correct in some seven steps
_POWERS = 4  # of the matrix, from whose growth the largest eigenvalue is known about
_EXACT = 1e-10  # relative residual: so much a factor in float32 has to reach


@dataclass(frozen=True)
class Cholesky(Method[RidgeSystem, RidgeSolution]):
    """Cholesky's factorisation of the system's matrix; a step is a block of columns.

    Stopped, it has the exact solution for the unknowns that are factorised, or for a small subset
    of them where the first block of columns is not done yet.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin import Gram
    >>> from maxmargin.kernels import Linear
    >>> from maxmargin.solvers.ridge.problem import RidgeProblem
    >>> gram = Gram.of(np.array([[1.0], [2.0]]), Linear())
    >>> problem = RidgeProblem(gram, np.array([[1.0], [2.0]]), alpha=5.0, weight=np.ones(2))
    >>> Cholesky().solve(problem).b
    array([[0.1],
           [0.2]])
    """

    def accepts(self, problem: RidgeSystem) -> str | None:
        """None where the matrix has room; else a sentence."""
        wanted = 8 * problem.n**2
        if wanted <= problem.memory:
            return None
        return (
            f"A matrix of {problem.n} rows and columns takes {megabytes(wanted)}, and "
            f"{megabytes(problem.memory)} are allowed: raise cache_size, or use solver='cg', "
            "which does without the matrix."
        )

    def begin(self, problem: RidgeSystem, watch: Watch) -> Run:
        """Begin with the first columns."""
        return CholeskyRun(problem, watch)


class CholeskyRun(Run):
    """Cholesky's factorisation at work."""

    words = "rows left {violation:.2g}"

    def __init__(self, problem: RidgeSystem, watch: Watch) -> None:
        self.problem, self.watch = problem, watch
        self.solves_for = problem.solves_for
        self.factor: BlockCholesky | None = None
        self.answer: tuple[np.ndarray, np.ndarray] | None = None  # b, residual

    @property
    def variables(self) -> np.ndarray | None:
        """The unknowns, at the end."""
        return None if self.answer is None else self.answer[0]

    def measure(self) -> Measure:
        """Share of the rows that are left; at the end the objectives of all outputs together."""
        left = 1.0 if self.factor is None else 1.0 - self.factor.done / self.problem.n
        if self.answer is None:
            return Measure(left)
        return self.problem.measured(left, *self.answer)

    def steps(self) -> Generator[None, None, None]:
        """One block of columns after the other."""
        problem = self.problem
        try:
            factor = self._prepared()
            try:
                yield from self._factorised(factor)
                self.answer = self._corrected(problem.n)
                if factor.dtype is np.float64 or self._is_exact:
                    return
            except NotPositiveError:
                if factor.dtype is np.float64:
                    raise
            self.factor, self.answer = factor.in_float64(), None
            yield from self._factorised(self.factor)
            self.answer = self._corrected(problem.n)
        except NotPositiveError as error:
            raise NotDefiniteError(problem.refusal(error.row)) from None
        except StoppedError:
            yield  # to the driver, which knows why

    def _factorised(self, factor: BlockCholesky) -> Generator[None, None, None]:
        while factor.done < self.problem.n:
            factor.advance()
            self.n_iter += 1
            yield

    def _prepared(self) -> BlockCholesky:
        """Compute the matrix of the system, as far as nobody wants it to end."""
        problem = self.problem
        workers = Workers(self.watch.workers.count, self.watch.stopped)
        A = problem.matrix(workers)
        float32 = problem.n >= _FLOAT32_FROM and _largest(A) <= _CONDITION * problem.alpha
        dtype = np.float32 if float32 else np.float64
        self.factor = BlockCholesky(A, np.full(problem.n, problem.alpha), workers, dtype)
        return self.factor

    @property
    def _is_exact(self) -> bool:
        assert self.answer is not None
        return bool((self.problem.violation(self.answer[1]) <= _EXACT).all())

    def _corrected(self, seen: int) -> tuple[np.ndarray, np.ndarray]:
        """Solve for the rows that are done; returns b and its residual."""
        problem, factor = self.problem, self.factor
        assert factor is not None
        b, residual = np.zeros_like(problem.right), problem.right
        for _ in range(1 + _CORRECTIONS):
            after = b.copy()
            after[:seen] += factor.solve(residual[:seen])
            left = problem.right - factor.product(after) - problem.alpha * after
            if not np.linalg.norm(left[:seen]) < _BETTER * np.linalg.norm(residual[:seen]):
                break
            b, residual = after, left
        return b, residual

    def solution(self, status: Status) -> RidgeSolution:
        """Return the solution for the rows that are done, corrected from its residual."""
        problem, seen = self.problem, self._seen()
        if not seen:
            b, residual, seen = problem.subset_solution()
        else:
            b, residual = self.answer or self._corrected(seen)
        words = "cholesky" if status is Status.CONVERGED else f"cholesky, of {seen} rows"
        return RidgeSolution(problem, b, residual, max(self.n_iter, 1), status, words)

    def _seen(self) -> int:
        return 0 if self.factor is None else self.factor.done


def _largest(A: np.ndarray) -> float:
    """About the largest eigenvalue of a positive semidefinite matrix; never more than it."""
    v = np.ones(len(A))
    for _ in range(_POWERS):
        v /= np.linalg.norm(v)
        v = A @ v
    return float(np.linalg.norm(v))
