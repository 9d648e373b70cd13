"""Decomposition: working sets of a fixed size, each solved by any method for duals.

    repeat
        B = the variables that violate the KKT conditions most, half of them that want to rise and
            half to fall, as many as the working set holds
        solve the problem of B, the others held  (:mod:`maxmargin.solvers.classical.subproblem`)
    until nobody violates them by tol

The dual rises with every sub-problem, since B has a violating pair. With sets of two this is SMO.
The fast engine, :class:`maxmargin.solvers.WorkingSet`, is of the same family.

A sub-problem costs what the inner method does with q variables, and q rows of the Gram matrix for
the variables that have moved, O(q n). In memory are q^2 values and vectors, however large n is:
that was its point.

References: Osuna, Freund and Girosi, An improved training algorithm for support vector machines,
NNSP 1997; Joachims, Making large-scale SVM learning practical, 1999 (halves that rise and fall).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from maxmargin.backends.cpu.dual.kkt import KKTScan
from maxmargin.duals import DualProblem
from maxmargin.solvers.classical.subproblem import SubproblemRun, check_options, most_violating
from maxmargin.solvers.driver import Watch
from maxmargin.solvers.dual.method import DualMethod
from maxmargin.solvers.dual.near_level import Pace
from maxmargin.solvers.dual.smo import SMO


@dataclass(frozen=True)
class Decomposition(DualMethod):
    """Osuna's decomposition: working sets of a fixed size.

    A step is one of the inner method's. A working set of q of the n variables costs q rows of the
    Gram matrix beside them; in memory it has q^2 values.

    Parameters
    ----------
    size : int, default=50
        Variables in a working set, two at least.
    inner : DualMethod, default=SMO()
        What solves the problem of a working set.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from maxmargin import SVC
    >>> from maxmargin.solvers import Decomposition, ProjectedConjugateGradients
    >>> X, y = load_iris(return_X_y=True)
    >>> solver = Decomposition(size=10, inner=ProjectedConjugateGradients())
    >>> SVC(solver=solver).fit(X, y).certificate_.converged
    True
    """

    size: int = 50
    inner: DualMethod = field(default_factory=SMO)

    def __post_init__(self) -> None:
        check_options(self.size, self.inner)

    def accepts(self, problem: DualProblem) -> str | None:
        """Take what the inner method takes."""
        return self.inner.accepts(problem)

    def begin(
        self, problem: DualProblem, watch: Watch, pace: Pace | None = None
    ) -> DecompositionRun:
        """Begin at the problem's start."""
        return DecompositionRun(problem, watch, self)


class DecompositionRun(SubproblemRun):
    """Decomposition at work."""

    def __init__(self, problem: DualProblem, watch: Watch, method: Decomposition) -> None:
        super().__init__(problem, watch, method.inner)
        self.size = method.size

    def choose(self, found: KKTScan) -> np.ndarray:
        """Choose the most violating variables."""
        return most_violating(found, self.size)
