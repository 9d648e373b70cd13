"""Chunking: the problem of the support vectors so far, and some more rows, again and again.

Rows and columns of the matrix whose multiplier is zero in the end could have been left out from the
beginning. So

    repeat
        B = the variables that are not zero, and some of the others, those that violate the KKT
            conditions most
        solve the problem of B        (:mod:`maxmargin.solvers.classical.subproblem`)
    until nobody violates them by tol

Zero multipliers leave the chunk each time; at the end it holds the support vectors, however many
they are. :mod:`maxmargin.solvers.classical.decomposition` keeps the size fixed instead.

A chunk of q variables costs what the inner method does with it, and up to q rows of the Gram matrix
beside it, O(q n). In memory are the q^2 values of the chunk, as far as the budget allows, and
vectors.

References: Vapnik, Estimation of dependences based on empirical data, 1982; Burges, A tutorial on
support vector machines for pattern recognition, 1998, section 5.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from maxmargin.backends.cpu.dual.kkt import KKTScan
from maxmargin.duals import DualProblem
from maxmargin.solvers.classical.projected_conjugate_gradients import ProjectedConjugateGradients
from maxmargin.solvers.classical.subproblem import SubproblemRun, check_options, most_violating
from maxmargin.solvers.driver import Watch
from maxmargin.solvers.dual.method import DualMethod
from maxmargin.solvers.dual.near_level import Pace


@dataclass(frozen=True)
class Chunking(DualMethod):
    """Vapnik's chunking: the support vectors so far and the worst violators.

    A step is one of the inner method's. A chunk of q of the n variables costs up to q rows of the
    Gram matrix beside them; in memory it has q^2 values.

    Parameters
    ----------
    size : int, default=100
        Violators that are added to a chunk at most, two at least.
    inner : DualMethod, default=ProjectedConjugateGradients()
        What solves the problem of a chunk.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from maxmargin import SVC
    >>> X, y = load_iris(return_X_y=True)
    >>> SVC(solver="chunking").fit(X, y).certificate_.converged
    True
    """

    size: int = 100
    inner: DualMethod = field(default_factory=ProjectedConjugateGradients)

    def __post_init__(self) -> None:
        check_options(self.size, self.inner)

    def accepts(self, problem: DualProblem) -> str | None:
        """Take what the inner method takes."""
        return self.inner.accepts(problem)

    def begin(self, problem: DualProblem, watch: Watch, pace: Pace | None = None) -> ChunkingRun:
        """Begin at the problem's start."""
        return ChunkingRun(problem, watch, self)


class ChunkingRun(SubproblemRun):
    """Chunking at work."""

    def __init__(self, problem: DualProblem, watch: Watch, method: Chunking) -> None:
        super().__init__(problem, watch, method.inner)
        self.size = method.size

    def choose(self, found: KKTScan) -> np.ndarray:
        """Choose the support vectors, and the worst violators among the others."""
        return np.union1d(np.flatnonzero(self.beta), most_violating(found, self.size))
