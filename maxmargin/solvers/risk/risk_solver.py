"""What the solvers of regularised risks have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field

import numpy as np

from maxmargin.progress import ProblemMonitor, Progress
from maxmargin.risk import LinearSolution, RegularisedRisk


@dataclass(frozen=True)
class RiskProgress(Progress):
    """Where the solver of a regularised risk is; ``violation`` is the gap over the objective.

    Attributes
    ----------
    gap : float
        Duality gap, or what the solver takes for it on the way.
    """

    gap: float

    def __str__(self) -> str:
        which = f"{self.solved} of {self.problems} solved, " if self.problems > 1 else ""
        return f"{which}pass {self.steps}, relative gap {self.violation:.2g}"


def report(monitor: ProblemMonitor, passes: int, gap: float, objective: float, tol: float) -> None:
    """Tell the listeners of a fit where a problem is, if a report is due."""
    if not monitor.due():
        return
    over = gap / max(abs(objective), np.finfo(np.float64).tiny)
    monitor.fit.report(
        lambda solved, problems, seconds: RiskProgress(
            solved, problems, monitor.problem, passes, over, tol, seconds, gap
        )
    )


@dataclass(frozen=True)
class RiskSolver(ABC):
    """A method that minimises a regularised risk.

    Parameters
    ----------
    tol : float
        Relative duality gap to reach.
    max_iter : int
        Passes over the data allowed; -1 for no limit.
    monitor : ProblemMonitor
        Is told of the progress, and asked when to stop.
    """

    tol: float = 1e-4
    max_iter: int = -1
    monitor: ProblemMonitor = field(default_factory=ProblemMonitor)

    @abstractmethod
    def solve(self, risk: RegularisedRisk, start: LinearSolution | None = None) -> LinearSolution:
        """Minimise a regularised risk, from an earlier answer where there is one."""
