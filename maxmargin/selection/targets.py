"""What is learnt, labels or numbers: the dual problems of a fold, and values of their solutions.

To its problems a fold is a vector of weights: rows that it holds out weigh nothing.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from maxmargin.duals import DualProblem
from maxmargin.multiclass import OneVsOne, class_weights


@dataclass(frozen=True)
class Fold:
    """One split of a data set.

    Attributes
    ----------
    split : int
        Its number.
    train, test : int arrays
        Rows of the data set.
    weight : float array, one entry per row of the data set
        Weights of the training rows, zero elsewhere.
    """

    split: int
    train: np.ndarray
    test: np.ndarray
    weight: np.ndarray


class Targets(ABC):
    """Targets of the rows of a data set, which its folds share.

    ``stretches`` cuts the rows so that those of a stretch have the same number ``columns`` of
    coefficients: with labels, a stretch for each class, and a coefficient against each other one.
    """

    stretches: list[tuple[int, int]]
    columns: int = 1
    n_problems: int = 1
    sign: float = 1.0
    classes: np.ndarray | None = None

    @abstractmethod
    def learnable(self, fold: Fold) -> bool:
        """Whether the fold's training rows have all there is to learn."""

    @abstractmethod
    def unit(self, fold: Fold) -> float:
        """A value's own scale: the margin, or how much the targets spread."""

    @property
    @abstractmethod
    def n_variables(self) -> int:
        """Number of variables of the largest problem."""

    @property
    @abstractmethod
    def block_size(self) -> int:
        """Entries of the largest block that is a copy."""

    @abstractmethod
    def rows(self, k: int) -> np.ndarray:
        """Rows of the data set that problem k is about."""

    @abstractmethod
    def block(self, K: np.ndarray, k: int, buffer: np.ndarray) -> np.ndarray:
        """Return the kernel values between rows and variables of problem k."""

    @abstractmethod
    def problem(self, machine: Any, k: int, fold: Fold) -> DualProblem:
        """Return the machine's problem k on a fold, over the rows of the block."""

    @abstractmethod
    def place(self, k: int, beta: np.ndarray, out: np.ndarray) -> None:
        """Write the coefficients of problem k's rows into ``out`` (rows of all, columns)."""

    @abstractmethod
    def combine(self, sums: np.ndarray) -> np.ndarray:
        """Values of the problems, (q, n_problems), from the stretches' sums, (q, s, columns)."""


class Labels(Targets):
    """Labels, in order of their class: one problem for each pair of classes.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.selection.targets import Labels
    >>> labels = Labels(np.array(["a", "b", "b", "c"]))
    >>> labels.n_problems, labels.stretches, labels.rows(1)
    (3, [(0, 1), (1, 3), (3, 4)], array([0, 3]))
    """

    def __init__(self, y: np.ndarray) -> None:
        self.y = y
        self.classes, self.index = np.unique(y, return_inverse=True)
        self.scheme = OneVsOne(len(self.classes))
        self.tasks = self.scheme.tasks(self.index)
        self.pairs = self.scheme.pairs
        self.sign, self.n_problems = self.scheme.sign, len(self.tasks)
        self.columns = len(self.classes) - 1
        ends = np.searchsorted(self.index, np.arange(len(self.classes) + 1)).tolist()
        self.stretches = list(pairwise(ends))

    def learnable(self, fold: Fold) -> bool:
        """Whether there are two classes, and all of them have weight."""
        mass = np.bincount(self.index, weights=fold.weight)
        return len(mass) > 1 and bool((mass > 0).all())

    def unit(self, fold: Fold) -> float:
        """The margin."""
        return 1.0

    @property
    def n_variables(self) -> int:
        """Rows of the largest pair."""
        return max(len(rows) for rows, _ in self.tasks)

    @property
    def block_size(self) -> int:
        """That of the largest pair; two classes need no copy."""
        return self.n_variables**2 if self.n_problems > 1 else 0

    def rows(self, k: int) -> np.ndarray:
        """Rows of the two classes."""
        return self.tasks[k][0]

    def block(self, K: np.ndarray, k: int, buffer: np.ndarray) -> np.ndarray:
        """Return the values among the rows of the two classes."""
        if self.n_problems == 1:
            return K
        m = len(self.rows(k))
        block = buffer[: m * m].reshape(m, m)
        a, b = (slice(*self.stretches[c]) for c in self.pairs[k])
        cut = a.stop - a.start
        block[:cut, :cut], block[:cut, cut:] = K[a, a], K[a, b]
        block[cut:, :cut], block[cut:, cut:] = K[b, a], K[b, b]
        return block

    def problem(self, machine: Any, k: int, fold: Fold) -> DualProblem:
        """Return the problem of the k-th pair of classes."""
        rows, signs = self.tasks[k]
        return machine._problem(np.arange(len(rows)), signs, self.weights(machine, k, fold))

    def weights(self, machine: Any, k: int, fold: Fold) -> np.ndarray:
        """Weights of the rows of the k-th pair, times those of their classes."""
        rows = self.rows(k)
        weight = fold.weight[rows]
        if machine.class_weight is not None:
            assert self.classes is not None
            factors = class_weights(
                machine.class_weight, self.classes, self.index[fold.train], fold.weight[fold.train]
            )
            if not (factors > 0).all():
                raise ValueError(f"A class weighs nothing with {machine.class_weight!r}.")
            weight = weight * factors[self.index[rows]]
        return weight

    def place(self, k: int, beta: np.ndarray, out: np.ndarray) -> None:
        """Put the coefficients of a class's rows into the other class's column."""
        first, second = self.pairs[k]
        (start, stop), (other_start, other_stop) = self.stretches[first], self.stretches[second]
        out[start:stop, second - 1] = beta[: stop - start]
        out[other_start:other_stop, first] = beta[stop - start :]

    def combine(self, sums: np.ndarray) -> np.ndarray:
        """Add the parts of the two classes of each pair."""
        return self.scheme.combine(sums)


class Numbers(Targets):
    """Real targets: a single problem, with two variables on each row."""

    def __init__(self, y: np.ndarray) -> None:
        self.y = y
        self.stretches = [(0, len(y))]

    def learnable(self, fold: Fold) -> bool:
        """Whether a row has weight."""
        return bool((fold.weight > 0).any())

    def unit(self, fold: Fold) -> float:
        """Standard deviation of the targets."""
        return float(self.y[fold.train].std()) or 1.0

    @property
    def n_variables(self) -> int:
        """Two for each row."""
        return 2 * len(self.y)

    @property
    def block_size(self) -> int:
        """All rows, twice as many columns."""
        return 2 * len(self.y) ** 2

    def rows(self, k: int) -> np.ndarray:
        """All rows."""
        return np.arange(len(self.y))

    def block(self, K: np.ndarray, k: int, buffer: np.ndarray) -> np.ndarray:
        """Return all values, twice."""
        n = len(K)
        block = buffer[: 2 * n * n].reshape(n, 2 * n)
        block[:, :n], block[:, n:] = K, K
        return block

    def problem(self, machine: Any, k: int, fold: Fold) -> DualProblem:
        """Return the one problem."""
        return machine._problem(self.y, fold.weight)

    def place(self, k: int, beta: np.ndarray, out: np.ndarray) -> None:
        """Take the coefficients as they are."""
        out[:, 0] = beta

    def combine(self, sums: np.ndarray) -> np.ndarray:
        """Take the one sum."""
        return sums[:, 0]
