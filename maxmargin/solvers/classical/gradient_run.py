"""What the methods share that go by the whole gradient of a dual problem."""

from __future__ import annotations

import numpy as np

from maxmargin.duals import DualProblem
from maxmargin.solvers.driver import Watch
from maxmargin.solvers.dual.method import DualRun
from maxmargin.solvers.products import GramProducts


class GradientRun(DualRun):
    """A run whose every step is a product with the whole Gram matrix.

    That is n^2 operations a step. The matrix is kept, ``8 n^2`` bytes, where ``memory`` of the Gram
    matrix has room for it, and otherwise computed anew for each product.

    Attributes
    ----------
    moved : float array (m,)
        The direction of the last step.
    """

    def __init__(self, problem: DualProblem, watch: Watch) -> None:
        super().__init__(problem, watch)
        gram = problem.gram
        self.products = GramProducts(gram, 8 * gram.n**2 <= gram.memory, workers=watch.workers)
        self.decision = problem.decision_at_start(watch.workers)
        self.moved = np.zeros(len(problem))

    @property
    def working_set(self) -> np.ndarray:
        """The variables that the last step has moved."""
        return np.flatnonzero(self.moved)

    @property
    def gradient(self) -> np.ndarray:
        """Gradient of the dual as minimised."""
        return -self.problem.scores(self.decision)

    def product(self, direction: np.ndarray) -> np.ndarray:
        """``K coef`` of a direction: how fast the decision changes along it."""
        return (self.products @ self.problem.on_rows(direction)[:, None])[:, 0]

    def curvature(self, direction: np.ndarray, product: np.ndarray) -> float:
        """Curvature of the dual along a direction, from its product."""
        return max(float(self.problem.on_rows(direction) @ product), 0.0)

    def move(self, direction: np.ndarray, length: float, product: np.ndarray) -> None:
        """Take a step; variables that come to a wall stop there exactly."""
        problem = self.problem
        self.beta = np.clip(self.beta + length * direction, problem.lower, problem.upper)
        self.decision += length * product
        self.moved = direction
        self.n_iter += 1
