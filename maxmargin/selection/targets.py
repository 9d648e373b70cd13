"""What is learnt, labels or numbers: the dual problems of a fold, and values of their solutions.

To its problems a fold is a vector of weights: rows that it holds out weigh nothing.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from itertools import pairwise, product
from typing import Any

import numpy as np

from maxmargin.duals import DualProblem
from maxmargin.multiclass import as_scheme, class_weights, read_labels


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

    A row has ``columns`` coefficients. ``stretches`` cuts the rows where ``combine`` wants sums
    apart: of each class, where each has coefficients against the others.
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
    """Labels, in order of their class, and the problems of a scheme.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.selection.targets import Labels
    >>> labels = Labels(np.array(["a", "b", "b", "c"]), "ovo")
    >>> labels.n_problems, labels.stretches, labels.rows(1)
    (3, [(0, 1), (1, 3), (3, 4)], array([0, 3]))
    """

    def __init__(self, y: np.ndarray, multiclass: Any) -> None:
        self.y = y
        self.classes, self.index = read_labels(y)
        self.scheme = as_scheme(multiclass, len(self.classes))
        self.tasks = self.scheme.tasks(self.index)
        self.sign, self.n_problems = self.scheme.sign, len(self.tasks)
        self.columns = self.scheme.n_rows
        ends = np.searchsorted(self.index, np.arange(len(self.classes) + 1)).tolist()
        self._of_classes = list(pairwise(ends))
        self.stretches = self._of_classes if self.scheme.by_class else [(0, len(y))]

    def learnable(self, fold: Fold) -> bool:
        """Whether all classes have weight."""
        return bool((np.bincount(self.index, weights=fold.weight) > 0).all())

    def unit(self, fold: Fold) -> float:
        """The margin."""
        return 1.0

    @property
    def n_variables(self) -> int:
        """Rows of the largest problem."""
        return max(len(rows) for rows, _ in self.tasks)

    @property
    def block_size(self) -> int:
        """That of the largest problem that does not have all rows."""
        return max((len(rows) ** 2 for rows, _ in self.tasks if len(rows) < len(self.y)), default=0)

    def rows(self, k: int) -> np.ndarray:
        """Rows of the classes that the problem sees."""
        return self.tasks[k][0]

    def block(self, K: np.ndarray, k: int, buffer: np.ndarray) -> np.ndarray:
        """Return the values among the rows of these classes."""
        m = len(self.rows(k))
        if m == len(K):
            return K
        block = buffer[: m * m].reshape(m, m)
        seen = [slice(*self._of_classes[c]) for c in np.flatnonzero(self.scheme.code[k])]
        cuts = np.cumsum([0] + [part.stop - part.start for part in seen])
        places = [slice(*ends) for ends in pairwise(cuts)]
        for (place, part), (across, other) in product(zip(places, seen, strict=True), repeat=2):
            block[place, across] = K[part, other]
        return block

    def problem(self, machine: Any, k: int, fold: Fold) -> DualProblem:
        """Return the k-th problem of the scheme."""
        rows, signs = self.tasks[k]
        return machine._problem(np.arange(len(rows)), signs, self.weights(machine, k, fold))

    def weights(self, machine: Any, k: int, fold: Fold) -> np.ndarray:
        """Weights of the rows of the k-th problem, times those of their classes."""
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
        """Put the coefficients where the scheme keeps them."""
        rows = self.rows(k)
        out[rows, self.scheme.layout[k, self.index[rows]]] = beta

    def combine(self, sums: np.ndarray) -> np.ndarray:
        """Add up what the scheme has kept apart."""
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
