"""What the methods share that move some variables of a dual at a time, by rows of its matrix."""

from __future__ import annotations

import numpy as np

from maxmargin.backends.cpu.dual.kkt import KKTScan, kkt_scan
from maxmargin.duals import DualProblem
from maxmargin.solvers.driver import Watch
from maxmargin.solvers.dual.method import DualRun

ENOUGH = 0.9  # of tol is gone for: the certificate has its own rounding


class RowRun(DualRun):
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

    def kernel_row(self, t: int) -> np.ndarray:
        """Values of the quadratic form between a variable and all: ``o_t o_s K(g_t, g_s)``."""
        problem, row = self.problem, self.problem.gram_row[t]
        problem.gram.host.require(np.array([row]))
        store = problem.gram.host.store
        return (
            problem.orientation[t]
            * problem.orientation
            * store.data[store.slot[row]][problem.gram_row]
        )

    def move(self, index: np.ndarray, beta: np.ndarray) -> None:
        """Set some variables, and ``K coef`` with them: as many rows of K as there are of these.

        Rows are kept for the next time, where there is room for them.
        """
        problem, host = self.problem, self.problem.gram.host
        rows, change = (
            problem.gram_row[index],
            problem.orientation[index] * (beta - self.beta[index]),
        )
        self.beta[index], self.moved = beta, index
        if len(rows) <= host.store.capacity:
            host.require(np.unique(rows))
            self.decision += change @ host.store.data[host.store.slot[rows]]
        else:
            coef = np.bincount(rows, weights=change, minlength=host.n)
            self.decision += host.matvec(coef, workers=self.watch.workers)
