"""What the solvers of regularised risks have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field

import numpy as np

from maxmargin.progress import ProblemMonitor, Progress
from maxmargin.risk import LinearSolution, RegularisedRisk

WORDS = "pass {steps}, relative gap {violation:.2g}"


def report(monitor: ProblemMonitor, passes: int, gap: float, objective: float, tol: float) -> None:
    """Tell the listeners of a fit where a problem is, if a report is due."""
    over = gap / max(abs(objective), np.finfo(np.float64).tiny)
    monitor.report(
        lambda: Progress(monitor.problem, "", passes, over, tol, objective, gap=gap, words=WORDS)
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
