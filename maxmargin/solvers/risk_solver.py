"""What the solvers of regularised risks have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field

from maxmargin.progress import ProblemMonitor
from maxmargin.risk import LinearSolution, RegularisedRisk


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
