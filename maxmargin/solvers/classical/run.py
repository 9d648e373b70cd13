"""What the classical methods for duals share: ``K coef`` kept up to date, and who has moved."""

from __future__ import annotations

import numpy as np

from maxmargin.backends.cpu.dual.kkt import KKTScan, kkt_scan
from maxmargin.duals import DualProblem
from maxmargin.solvers.driver import Watch
from maxmargin.solvers.dual.method import DualRun

ENOUGH = 0.9  # of tol is gone for: the certificate has its own rounding
_FEW = 2  # variables whose rows are kept for the next time that they move


class ClassicalRun(DualRun):
    """A run that keeps ``decision = K coef`` in float64 and knows its last working set."""

    moved: np.ndarray | None = None

    def __init__(self, problem: DualProblem, watch: Watch) -> None:
        super().__init__(problem, watch)
        self.decision = problem.decision_at_start(watch.workers)

    @property
    def working_set(self) -> np.ndarray | None:
        """The variables that the last step was about."""
        return self.moved

    def scan(self) -> tuple[float, KKTScan]:
        """Look at all variables: the largest violation, and what was found of each."""
        found = KKTScan.empty(len(self.beta))
        given = self.problem.variables, self.problem.n_groups, self.beta, self.decision, found
        return float(kkt_scan(*given)), found

    def row(self, t: int) -> np.ndarray:
        """``o_t K`` at the row of a variable: what the decision gains while this rises by one."""
        host, row = self.problem.gram.host, self.problem.gram_row[t : t + 1]
        host.require(row)
        return self.problem.orientation[t] * host.store.data[host.store.slot[row[0]]]

    def move(self, index: np.ndarray, beta: np.ndarray) -> None:
        """Set some variables, and ``K coef`` with them: as many rows of K as have moved."""
        change = beta - self.beta[index]
        self.beta[index], self.moved = beta, index
        if len(index) <= _FEW:
            for t, step in zip(index, change, strict=True):
                self.decision += step * self.row(t)
        else:
            whole = np.zeros(len(self.beta))
            whole[index] = change
            self.decision += self.problem.decision(whole, self.watch.workers)
