"""The folds of a search as machines see them: dual problems, and values of their solutions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.utils import compute_class_weight

from maxmargin.duals import DualProblem
from maxmargin.multiclass import OneVsOne


class Fold(ABC):
    """Training and held-out rows of one split, in a data set that the folds share.

    ``stretches`` cuts the rows of the data set so that those of a stretch have the same number
    ``columns`` of coefficients: with classes, one stretch for each class, and a coefficient against
    each other class.

    Parameters
    ----------
    split : int
        Number of the split.
    train, test : int arrays
        Rows of the data set, in the order of the split.
    weight : float array
        Weights of all rows of the data set.
    """

    stretches: list[tuple[int, int]]
    columns: int = 1
    n_problems: int = 1
    sign: float = 1.0
    classes: np.ndarray | None = None

    def __init__(
        self, split: int, train: np.ndarray, test: np.ndarray, weight: np.ndarray
    ) -> None:
        self.split, self.train, self.test = split, train, test
        self.rows = np.sort(train)
        self.weight = weight[self.rows]

    @property
    @abstractmethod
    def learnable(self) -> bool:
        """Whether there is something to learn from."""

    @property
    @abstractmethod
    def unit(self) -> float:
        """A value's own scale: the margin, or how much the targets spread."""

    @property
    @abstractmethod
    def n_variables(self) -> int:
        """Variables of the largest problem."""

    @abstractmethod
    def problem(self, machine: Any, k: int) -> DualProblem:
        """Return the machine's k-th dual problem."""

    @abstractmethod
    def place(self, k: int, beta: np.ndarray, out: np.ndarray) -> None:
        """Write the coefficients that problem k gives the rows into ``out`` (rows, columns)."""

    @abstractmethod
    def combine(self, sums: np.ndarray) -> np.ndarray:
        """Values of the problems, (q, n_problems), from the stretches' sums, (q, s, columns)."""


class ClassificationFold(Fold):
    """A fold with labels: one problem for each pair of classes."""

    def __init__(
        self, split: int, train: np.ndarray, test: np.ndarray, weight: np.ndarray, y: np.ndarray
    ) -> None:
        super().__init__(split, train, test, weight)
        self.labels = y[self.rows]
        self.classes, self.index = np.unique(self.labels, return_inverse=True)
        self.scheme = OneVsOne(len(self.classes))
        self.tasks = self.scheme.tasks(self.index)
        self.sign, self.n_problems = self.scheme.sign, len(self.tasks)
        self.columns = len(self.classes) - 1
        bounds = np.searchsorted(self.index, np.arange(len(self.classes) + 1))
        self.stretches = [
            (int(self.rows[first]), int(self.rows[last - 1]) + 1)
            for first, last in zip(bounds[:-1], bounds[1:], strict=True)
        ]

    @property
    def learnable(self) -> bool:
        """Whether there are two classes, each with rows of positive weight."""
        mass = np.bincount(self.index, weights=self.weight)
        return len(mass) > 1 and bool((mass > 0).all())

    @property
    def unit(self) -> float:
        """The margin."""
        return 1.0

    @property
    def n_variables(self) -> int:
        """Rows of the largest pair."""
        return max(len(rows) for rows, _ in self.tasks)

    def problem(self, machine: Any, k: int) -> DualProblem:
        """Return the problem of the k-th pair of classes."""
        rows, signs = self.tasks[k]
        weight = self.weight[rows]
        if machine.class_weight is not None:
            factors = compute_class_weight(
                machine.class_weight, classes=self.classes, y=self.labels
            )
            weight = weight * factors[self.index[rows]]
        return replace(machine._problem(rows, signs, weight), gram_row=self.rows[rows])

    def place(self, k: int, beta: np.ndarray, out: np.ndarray) -> None:
        """Put the coefficients of a class's rows into the other class's column."""
        first, second = self.scheme.pairs[k]
        for own, other in ((first, second - 1), (second, first)):
            start, stop = self.stretches[own]
            out[start:stop, other] = beta[start:stop]

    def combine(self, sums: np.ndarray) -> np.ndarray:
        """Add the parts of the two classes of each pair."""
        return self.scheme.combine(sums)


class RegressionFold(Fold):
    """A fold with real targets: a single problem."""

    def __init__(
        self, split: int, train: np.ndarray, test: np.ndarray, weight: np.ndarray, y: np.ndarray
    ) -> None:
        super().__init__(split, train, test, weight)
        self.target = y[self.rows]
        self.stretches = [(0, len(y))]

    @property
    def learnable(self) -> bool:
        """Whether a row has positive weight."""
        return bool((self.weight > 0).any())

    @property
    def unit(self) -> float:
        """Standard deviation of the targets."""
        return float(self.target.std()) or 1.0

    @property
    def n_variables(self) -> int:
        """Two for each row."""
        return 2 * len(self.rows)

    def problem(self, machine: Any, k: int) -> DualProblem:
        """Return the one problem."""
        problem = machine._problem(self.target, self.weight)
        return replace(problem, gram_row=self.rows[problem.gram_row])

    def place(self, k: int, beta: np.ndarray, out: np.ndarray) -> None:
        """Take the coefficients as they are."""
        out[:, 0] = beta

    def combine(self, sums: np.ndarray) -> np.ndarray:
        """Take the one sum."""
        return sums[:, 0]
