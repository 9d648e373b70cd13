"""Solving on from known values: what has changed is added to them in float64.

A solver keeps values to its working precision, and a certificate computes them anew, from all
support vectors. Where a problem is solved for the second time with a few more rows, few variables
change, and what they add to values that were exact is exact, too.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field, replace

import numpy as np

from maxmargin.duals import DualProblem
from maxmargin.solution import Solution, Status
from maxmargin.solvers import Auto
from maxmargin.solvers.driver import Measure, Watch
from maxmargin.solvers.dual.method import DualMethod, DualRun
from maxmargin.solvers.dual.near_level import Pace


@dataclass(frozen=True)
class Updated(DualMethod):
    """The method that suits a problem, from a start whose values are known in float64.

    Parameters
    ----------
    auto : Auto
        Chooses the method.
    """

    auto: Auto
    rounds: dict[int, int] = field(default_factory=dict, compare=False)

    def accepts(self, problem: DualProblem) -> str | None:
        """Take what the method that was asked for takes."""
        asked = self.auto.method
        return None if asked is None else asked.accepts(problem)

    def begin(self, problem: DualProblem, watch: Watch, pace: Pace | None = None) -> DualRun:
        """Begin at the start, with the method of the next round."""
        number = self.rounds[id(pace)] = self.rounds.get(id(pace), 0) + 1  # none for small problems
        choice = self.auto.choose(problem, number)
        self.auto.monitor.chosen.append(choice)
        return UpdatedRun(problem, watch, choice.method.begin(problem, watch, pace))


class UpdatedRun(DualRun):
    """Another method at work, whose answer comes with values in float64."""

    def __init__(self, problem: DualProblem, watch: Watch, run: DualRun) -> None:
        super().__init__(problem, watch)
        self.run = run

    @property
    def variables(self) -> np.ndarray:
        """The signed variables."""
        return self.run.variables

    def steps(self) -> Generator[None, None, None]:
        """Those of the other method."""
        while self.run.status is None:
            yield
            self.run.advance(self.allowed)
            self.n_iter = self.run.n_iter
        self.status = self.run.status

    def close(self) -> None:
        """End the other method's loop, too."""
        self.run.close()
        super().close()

    def measure(self) -> Measure:
        """How far the other method has come."""
        return self.run.measure()

    def solution(self, status: Status) -> Solution:
        """Add what has changed to the values of the start."""
        found, problem = self.run.solution(status), self.problem
        if problem.known_decision is None:
            return found
        change = problem.on_rows(found.beta - problem.start)
        decision = problem.known_decision.copy()
        if change.any():
            decision += problem.gram.matvec(change, workers=self.watch.workers)
        return replace(found, decision=decision, exact=True)
