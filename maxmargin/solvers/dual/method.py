"""What the methods for dual problems share: what they are asked, measured by and answer with."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Generator, Sequence
from typing import ClassVar

import numpy as np

from maxmargin.backends.cpu.dual.certificate import FEASIBLE
from maxmargin.backends.cpu.dual.kkt import KKTScan, kkt_scan
from maxmargin.duals import DualProblem
from maxmargin.solution import Solution, Status
from maxmargin.solvers.driver import Measure, Method, Run, Watch
from maxmargin.solvers.dual.near_level import Pace


class DualRun(Run):
    """A method at work on a dual problem.

    Attributes
    ----------
    problem : DualProblem
    beta : float array (m,)
        The signed variables as they are now.
    decision : float array, one entry per row of the Gram matrix
        ``K coef`` of these, which a method keeps up to date; one that keeps something else has a
        ``measure`` of its own.
    """

    solves_for = "multipliers"
    words: ClassVar[str] = (
        "KKT violation {violation:.2g}, gap {gap:.2g}, {support_vectors} support vectors"
    )
    decision: np.ndarray

    def __init__(self, problem: DualProblem, watch: Watch) -> None:
        self.problem, self.watch = problem, watch
        self.beta = problem.start.copy()

    @property
    def variables(self) -> np.ndarray:
        """The signed variables."""
        return self.beta

    def measure(self) -> Measure:
        """Violation of the KKT conditions, both objectives and their gap.

        The primal is the objective at w and b also where a sum is violated; the gap then bounds
        nothing (:mod:`maxmargin.evaluation`).
        """
        problem, found = self.problem, KKTScan.empty(len(self.beta))
        violation = kkt_scan(problem.variables, problem.n_groups, self.beta, self.decision, found)
        coef = problem.on_rows(self.beta)
        dual = -(0.5 * float(coef @ self.decision) + float(problem.linear @ self.beta))
        gap = problem.gap(self.beta, found.v)
        if self.infeasible:
            first = [int(np.argmax(problem.group == j)) for j in range(problem.n_groups)]
            levels = problem.scores(self.decision)[first] - found.v[first]
            gap -= float(levels @ (sums(problem, self.beta) - sums(problem, problem.start)))
        return self.measured(violation, dual, gap)

    @property
    def infeasible(self) -> bool:
        """Whether the sum of a group is violated by more than rounding."""
        drift = sums(self.problem, self.beta) - sums(self.problem, self.problem.start)
        return bool(np.abs(drift).max(initial=0.0) > FEASIBLE * (1.0 + np.abs(self.beta).sum()))

    def measured(self, violation: float, dual: float, gap: float) -> Measure:
        """Return the measure of a run from what it knows."""
        return Measure(violation, dual + gap, dual, gap)

    def solution(self, status: Status) -> Solution:
        """Return the variables as they are."""
        return Solution(self.beta, self.n_iter, status)


def sums(problem: DualProblem, beta: np.ndarray) -> np.ndarray:
    """Sum of the variables of each group, which the constraints fix."""
    member = problem.group >= 0
    return np.bincount(problem.group[member], beta[member], minlength=problem.n_groups)


class DualMethod(Method[DualProblem, Solution]):
    """A way to solve dual problems, one at a time."""

    def accepts(self, problem: DualProblem) -> str | None:
        """Take every dual problem, unless a method says otherwise."""
        return None

    @abstractmethod
    def begin(self, problem: DualProblem, watch: Watch, pace: Pace | None = None) -> DualRun:
        """Begin at the problem's start.

        ``pace`` is what earlier rounds on the problem have learnt of its conditioning.
        """


class Unbegun(DualRun):
    """A run that was stopped before its first step."""

    def __init__(self, problem: DualProblem, watch: Watch) -> None:
        super().__init__(problem, watch)
        self.status = watch.stopped() or Status.INTERRUPTED

    def steps(self) -> Generator[None, None, None]:
        """There are none."""
        yield from ()

    def measure(self) -> Measure:
        """Nothing is known."""
        return Measure(np.inf)

    def solution(self, status: Status) -> Solution:
        """Return the start."""
        return Solution(self.problem.start, 0, status, self.problem.known_decision)


class BatchMethod(DualMethod):
    """A way to solve many dual problems over one Gram matrix at a time."""

    @abstractmethod
    def solve_all(
        self, problems: Sequence[DualProblem], watches: Sequence[Watch]
    ) -> list[Solution]:
        """Solve every problem from its start, as far as its watch allows.

        The decision of a solution is that on the problem's own rows, ``problem.rows``. Problems
        count as finished with the monitor as soon as they are solved.
        """
