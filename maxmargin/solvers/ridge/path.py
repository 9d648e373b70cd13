"""Kernel ridge regression for a whole path of lambda, with exact leave-one-out errors.

One reduction of the Gram matrix to a band (:mod:`maxmargin.backends.dense.band`) serves every
lambda. With ``G = (S^(1/2) K S^(1/2) + lambda I)^-1`` and ``b = G S^(1/2) t``, a machine that was
fitted without row i is off at it by

    t_i - f_-i(x_i) = b_i / (G_ii sqrt(s_i)),

exactly: no machine is fitted a second time. To leave a row out is to leave out all of its weight.

References: Golub, Heath and Wahba, Technometrics 21, 1979; Rifkin and Lippert,
MIT-CSAIL-TR-2007-025.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, replace

import numpy as np

from maxmargin.backends.dense import BandReduction, NotPositiveError
from maxmargin.backends.threads import StoppedError, Workers
from maxmargin.memory import megabytes
from maxmargin.solution import Status
from maxmargin.solvers.driver import Measure, Method, Run, Watch
from maxmargin.solvers.ridge.problem import RidgeProblem

_MATRICES = 1.5  # that the reduction takes
_FEW = 256  # rows that are solved for where the reduction was stopped: at once


@dataclass(frozen=True)
class RidgePath:
    """The systems of kernel ridge regression for some lambda; that of ``problem`` plays no part."""

    problem: RidgeProblem
    alphas: tuple[float, ...]


@dataclass(frozen=True)
class PathSolution:
    """Answers for the first lambdas of a path, k of them.

    Attributes
    ----------
    b : float array (k, n, m)
        Unknowns of each system; zero at rows that were not seen.
    left_out : float array (k, seen, m)
        What targets have above the values of machines that were fitted without them.
    n_iter : int
    status : Status
    """

    b: np.ndarray
    left_out: np.ndarray
    n_iter: int
    status: Status

    @property
    def seen(self) -> int:
        """Rows that the answers rest on, the first so many."""
        return self.left_out.shape[1]


@dataclass(frozen=True)
class LeaveOneOut(Method[RidgePath, PathSolution]):
    """All lambdas and all rows left out, from one reduction to a band.

    Stopped on the way through the lambdas it has those that were reached; stopped before, the path
    of the first rows alone.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin import Gram
    >>> from maxmargin.kernels import Linear
    >>> from maxmargin.solvers.ridge.problem import RidgeProblem
    >>> gram = Gram.of(np.array([[1.0], [2.0]]), Linear())
    >>> problem = RidgeProblem(gram, np.array([[1.0], [2.0]]), alpha=1.0, weight=np.ones(2))
    >>> LeaveOneOut().solve(RidgePath(problem, (1.0,))).left_out  # 1 - 4/5 and 2 - 2 * 1/2
    array([[[0.2],
            [1. ]]])
    """

    def accepts(self, problem: RidgePath) -> str | None:
        """None where the reduction has room; else a sentence."""
        gram = problem.problem.gram
        wanted = _MATRICES * 8 * gram.n**2
        if wanted <= gram.memory:
            return None
        return (
            f"Exact leave-one-out errors of {gram.n} rows take {megabytes(wanted)}, and "
            f"{megabytes(gram.memory)} are allowed: raise cache_size, or search with "
            "GridSearchCV over KernelRidge(solver='cg')."
        )

    def begin(self, problem: RidgePath, watch: Watch) -> Run:
        """Begin with the first columns."""
        return LeaveOneOutRun(problem, watch)


class LeaveOneOutRun(Run):
    """Reduction to a band, then one lambda after the other; a step is a block or a lambda."""

    solves_for = "multipliers"
    words = "work left {violation:.2g}"

    def __init__(self, path: RidgePath, watch: Watch) -> None:
        self.path, self.problem, self.watch = path, path.problem, watch
        self.band: BandReduction | None = None
        self.found: list[tuple[np.ndarray, np.ndarray]] = []

    @property
    def variables(self) -> np.ndarray | None:
        """The unknowns of the last lambda that is done."""
        return self.found[-1][0] if self.found else None

    def measure(self) -> Measure:
        """Share of the work that is left: of the columns, then of the lambdas."""
        if self.band is None or not self.band.reduced:
            done = 0 if self.band is None else self.band.done
            return Measure(1.0 - 0.5 * done / self.problem.n)
        return Measure(0.5 - 0.5 * len(self.found) / len(self.path.alphas))

    def steps(self) -> Generator[None, None, None]:
        """Reduce, then solve for one lambda after the other."""
        try:
            yield from self._reduced()
            assert self.band is not None
            for alpha in self.path.alphas:
                self.found.append(_left_out(self.problem, self.band, alpha))
                self.n_iter += 1
                yield
        except StoppedError:
            yield  # to the driver, which knows why

    def _reduced(self) -> Generator[None, None, None]:
        problem = self.problem
        workers = Workers(self.watch.workers.count, self.watch.stopped)
        self.band = BandReduction(problem.matrix(workers), workers)
        while not self.band.reduced:
            self.band.advance()
            self.n_iter += 1
            yield
        self.band.accumulate()

    def solution(self, status: Status) -> PathSolution:
        """Return what is known, of the first rows at least."""
        if not self.found:
            return self._of_few_rows(status)
        b, left_out = map(np.array, zip(*self.found, strict=True))
        return PathSolution(b, left_out, self.n_iter, status)

    def _of_few_rows(self, status: Status) -> PathSolution:
        """Path of the first rows alone."""
        whole, few = self.problem, np.arange(min(_FEW, self.problem.n))
        part = replace(
            whole, gram=whole.gram.take(few), target=whole.target[few], weight=whole.weight[few]
        )
        found = LeaveOneOut().solve(RidgePath(part, self.path.alphas))
        b = np.zeros((len(found.b), *whole.target.shape))
        b[:, few] = found.b
        return replace(found, b=b, n_iter=self.n_iter, status=status)


def _left_out(
    problem: RidgeProblem, band: BandReduction, alpha: float
) -> tuple[np.ndarray, np.ndarray]:
    """Unknowns for a lambda, and what each target has above the values without its row."""
    try:
        b, diagonal = band.shifted(alpha, problem.right)
    except NotPositiveError:
        raise ValueError(replace(problem, alpha=alpha).refusal()) from None
    return b, b / (diagonal[:, None] * problem.root)
