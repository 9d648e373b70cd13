"""The form of machines for several classes at once: one problem, a sum for each row and no other.

Nothing ties the rows together but the functions themselves, so that every number of the certificate
is a sum over rows, and there are no levels to find first.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from maxmargin.backends.cpu.dual.direct import violations
from maxmargin.certificate import DualCertificate
from maxmargin.dask.kernel.forms import Accuracy, Arrays, Errand, Form, Solved, Stretch
from maxmargin.duals.direct import DirectProblem
from maxmargin.gram import Definiteness, Gram, Spectrum
from maxmargin.progress import ProblemMonitor
from maxmargin.solution import Status
from maxmargin.solvers import Choice, RowDescent, Watch
from maxmargin.solvers.dual.direct import solve_directly
from maxmargin.solvers.dual.direct_certificate import DirectSums, certified


class Seen(NamedTuple):
    """Sums over rows, and the squared norm of each function's part."""

    sums: DirectSums
    squared_norms: np.ndarray


class DirectForm(Form):
    """One problem for all classes (Crammer and Singer, Weston and Watkins).

    Parameters
    ----------
    shell : SVC
    kernel : Kernel
        Resolved.
    scheme : Scheme
    cost : float array (n_classes,)
        Of a row of weight one.
    """

    def __init__(self, shell: Any, kernel: Any, scheme: Any, cost: np.ndarray) -> None:
        self.shell, self.kernel, self.scheme, self.cost = shell, kernel, scheme, cost
        self.n_tasks, self.n_values = 1, scheme.n_classes
        self.sums = [np.empty(0)]

    def problem(self, y: np.ndarray, weight: np.ndarray) -> DirectProblem:
        """Return the problem on some rows."""
        scheme, cost = self.scheme, weight * self.cost[y]
        return DirectProblem(y, scheme.n_classes, cost, scheme.summed, self.shell.fit_intercept)

    def own(self, y: Any, n: int) -> Arrays:
        """All rows."""
        return [np.arange(n)]

    def nothing(self, y: Any, n: int) -> Arrays:
        """No variable set."""
        return [np.zeros((self.n_values, n))]

    def begin(
        self, gram: Gram, y: Any, weight: np.ndarray, share: float, errand: Errand
    ) -> tuple[Arrays, np.ndarray]:
        """Solve with costs as large as if these rows were all, and take the share of that."""
        problem = self.problem(y, weight)
        found = self._solved(gram, replace(problem, cost=problem.cost / share), errand)
        return [np.ascontiguousarray(found.b.T) * share], np.empty(0, dtype=np.int64)

    def _solved(self, gram: Gram, problem: DirectProblem, errand: Errand) -> Any:
        method = RowDescent() if self.shell.solver == "auto" else self.shell.solver
        watch = Watch(
            errand.tol, errand.max_iter, ProblemMonitor(errand.monitor, 0), errand.workers
        )
        errand.monitor.chosen.append(Choice(method, "all classes in one problem: row by row"))
        return solve_directly(problem.over(gram), method, watch)

    def solve(
        self,
        gram: Gram,
        y: Any,
        weight: np.ndarray,
        beta: Arrays,
        decision: Arrays | None,
        e: Errand,
    ) -> Solved:
        """Solve the problem of these rows."""
        problem = self.problem(y, weight).started_near(beta[0].T)
        found = self._solved(gram, problem, e)
        b = np.ascontiguousarray(found.b.T)
        return Solved(
            beta=[b],
            decision=[np.ascontiguousarray(found.values.T) - self.shift([b])[:, None]],
            steps=[found.n_iter],
            status=[found.certificate.status],
            violation=found.certificate.kkt_violation,
            chosen=e.monitor.chosen,
        )

    def coefficients(self, y: Any, weight: np.ndarray, beta: Arrays) -> np.ndarray:
        """The variables themselves."""
        return beta[0]

    def on_own(self, values: np.ndarray, y: Any) -> Arrays:
        """All of them."""
        return [np.ascontiguousarray(values.T)]

    def shift(self, beta: Arrays) -> np.ndarray:
        """Bias of each function."""
        return beta[0].sum(axis=1) * float(self.shell.fit_intercept)

    def look(self, at: Stretch, shift: Any) -> Seen:
        """Sums of everything that the certificate has."""
        b, values = at.beta[0].T, at.decision[0].T + shift
        sums = DirectSums.of(self.problem(at.y, at.weight), b, values, at.diagonal)
        return Seen(sums, (at.beta[0] * at.decision[0]).sum(axis=1))

    def merged(self, looks: list[Seen]) -> Seen:
        """Add all of them up."""
        sums = DirectSums.merged([own.sums for own in looks])
        return Seen(sums, np.sum([own.squared_norms for own in looks], axis=0))

    def violation(self, look: Seen) -> np.ndarray:
        """Violation of the worst row."""
        return np.array([look.sums.violation])

    def levels(self, look: Seen) -> None:
        """There are none."""
        return None

    def excess(self, at: Stretch, levels: Any, shift: Any) -> np.ndarray:
        """Violation of each row."""
        own = self.problem(at.y, at.weight)
        values, b = (np.ascontiguousarray(a) for a in (at.decision[0].T + shift, at.beta[0].T))
        return violations(values, b, own.y, own.cost, own.most)

    def gaps(self, at: Stretch, levels: Any, accuracy: Accuracy, shift: Any) -> Accuracy:
        """Nothing that the look did not see; how exact the values are."""
        return accuracy

    def added(self, gaps: list[Accuracy]) -> Accuracy:
        """The worst of them."""
        return max(gaps, key=lambda own: own.rounding)

    def judged(
        self,
        look: Seen,
        gaps: Accuracy,
        status: list[Status],
        tol: float,
        spectrum: Definiteness | Spectrum,
    ) -> list[tuple[DualCertificate, np.ndarray]]:
        """Certificate of the one problem, and the squared norms of its functions."""
        roundings = gaps.rounding + 0.5 * float(gaps.terms.max(initial=0.0)) + 2.0
        sums = look.sums._replace(weights=look.sums.weights + gaps.size)  # all that was added up
        certificate = certified(sums, roundings, status[0], tol, spectrum)
        return [(certificate, look.squared_norms)]
