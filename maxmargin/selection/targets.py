"""What is learnt, labels or numbers: the dual problems of a fold, and values of their solutions.

To its problems a fold is a vector of weights: rows that it holds out weigh nothing. A row has
``columns`` coefficients. ``stretches`` cuts the rows where ``combine`` wants sums apart: of each
class, where each has coefficients against the others.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from itertools import pairwise, product
from typing import Any

import numpy as np

from maxmargin.duals import DualProblem
from maxmargin.duals.direct import DirectProblem
from maxmargin.multiclass import as_scheme, class_weights, read_labels

# Share of held-out rows. Digits, 4 x 4 candidates, 5 folds, all classes at once: with 0.01 2 of 80
# fits are left alone, for a tenth more time, with 0.002 27, for twice the time; 0.05 leaves a row
# in 20 to a near tie.
_OPEN = 0.05
UNFINISHED = "It has not converged along the path: a fit of its own may end apart."
UNDECIDED = "Its values of held-out rows differ by less than tol: start and rounding decide."
# Share of the deviation of held-out targets that tol may be. Of 600 scores on targets whose bulk
# varies by 0.008, beside outliers, 1 in 6 was off by 0.002 to 0.02; by 0.05 and more, 0 of 2,076.
_COARSE = 0.02
COARSE = "Its tol is a large share of the spread of held-out targets: start and rounding decide."
# Deviations of a value by the rounding of kernel values, and the share of rows whose class may hang
# on that. Of 216 fits of 250 rows of breast cancer, gamma 1e-9 to 1e-5, 6 have scores 0.004 from
# those of plain fits without this, 2 with 8 deviations, and 1 with 16. Kernel values of another
# BLAS deviate by some ulps (tests/noise.py: 8 deviations), and moved a score by 0.004 with 16.
# 31 of 100 fits of 3,000 rows are solved again, with 16 deviations 25: 2.5 s of CPU time for 2.3.
_DEVIATIONS, _HIDDEN = 48.0, 0.002


@dataclass(frozen=True)
class Fold:
    """One split of a data set: its number, its rows, and what they weigh.

    ``weight`` has an entry for each row of the data set, zero where it is none of ``train``.
    """

    split: int
    train: np.ndarray
    test: np.ndarray
    weight: np.ndarray


class Labels:
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
        self.classes, self.index = read_labels(y)
        self.scheme = as_scheme(multiclass, len(self.classes))
        self.direct = self.scheme.direct
        self.tasks = self.scheme.tasks(self.index)
        self.sign, self.n_problems = self.scheme.sign, len(self.tasks)
        self.columns = self.scheme.n_rows
        ends = np.searchsorted(self.index, np.arange(len(self.classes) + 1)).tolist()
        self._of_classes = list(pairwise(ends))
        self.stretches = self._of_classes if self.scheme.by_class else [(0, len(y))]
        sizes = [len(rows) for rows, _ in self.tasks]
        self.n_variables = max(sizes)  # of the largest problem
        # entries of the largest block that is a copy: a problem with all rows needs none
        self.block_size = max((size**2 for size in sizes if size < len(y)), default=0)

    def learnable(self, fold: Fold) -> bool:
        """Whether all classes have weight in the fold."""
        return bool((np.bincount(self.index, weights=fold.weight) > 0).all())

    def unit(self, fold: Fold) -> float:
        """A value's own scale: the margin."""
        return 1.0

    def rows(self, k: int) -> np.ndarray:
        """Rows of the classes that problem k sees."""
        return self.tasks[k][0]

    def block(self, K: np.ndarray, k: int, buffer: np.ndarray) -> np.ndarray:
        """Return the kernel values between rows and variables of problem k."""
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
        """Return the machine's problem k on a fold, over the rows of the block."""
        rows, signs = self.tasks[k]
        return machine._problem(np.arange(len(rows)), signs, self.weights(machine, k, fold))

    def state(self, machine: Any, fold: Fold, every: bool) -> None:
        """State a problem of the machine on a fold, or all of them: an error says why not."""
        if self.direct:
            self.direct_problem(machine, fold)
            return
        for k in range(self.n_problems if every else 1):
            self.problem(machine, k, fold)

    def direct_problem(self, machine: Any, fold: Fold) -> DirectProblem:
        """Return the one problem of a machine for all classes at once; who is held out costs 0."""
        machine = copy.copy(machine)
        machine.scheme_ = self.scheme
        return machine._direct_problem(self.index, self._weights_of_all(machine, fold))

    def weights(self, machine: Any, k: int, fold: Fold) -> np.ndarray:
        """Weights of the rows of the k-th problem, times those of their classes."""
        rows, signs = self.tasks[k]
        return self.scheme.weigh(signs, self._weights_of_all(machine, fold)[rows])

    def _weights_of_all(self, machine: Any, fold: Fold) -> np.ndarray:
        if machine.class_weight is None:
            return fold.weight
        factors = class_weights(
            machine.class_weight, self.classes, self.index[fold.train], fold.weight[fold.train]
        )
        if not (factors > 0).all():
            raise ValueError(f"A class weighs nothing with {machine.class_weight!r}.")
        return fold.weight * factors[self.index]

    def place(self, k: int, beta: np.ndarray, out: np.ndarray) -> None:
        """Write the coefficients of problem k's rows into ``out`` (rows of all, columns)."""
        rows = self.rows(k)
        out[rows, self.scheme.layout[k, self.index[rows]]] = beta

    def combine(self, sums: np.ndarray) -> np.ndarray:
        """Values of the problems, (q, n_problems), from the stretches' sums, (q, s, columns)."""
        return self.scheme.combine(sums)

    def coarse(self, fold: Fold, tol: float) -> bool:
        """Classes are asked of values, by ``undecided``."""
        return False

    def hidden(self, values: np.ndarray, noise: float) -> bool:
        """Whether the classes of some rows hang on values' deviations by rounding."""
        index = self.scheme.decode(values)
        shifts = _DEVIATIONS * noise, -_DEVIATIONS * noise
        changed = [self.scheme.decode(values + shift) != index for shift in shifts]
        return bool(np.mean(changed[0] | changed[1]) > _HIDDEN)

    def undecided(self, values: np.ndarray, tol: float) -> bool:
        """Whether ``tol`` leaves the classes of many rows open, from the values of the problems.

        Their two largest scores are equal to within ``tol`` of each. Where votes are counted,
        every value is compared with zero instead, and equal counts are usual.
        """
        if self.scheme.by_class:
            return False
        scores = values
        if not self.direct:
            scores = self.scheme.scores(values)
            if np.array_equal(scores, self.scheme.scores(np.sign(values))):
                return False
        second, first = np.partition(scores, -2, axis=1)[:, -2:].T
        return bool(np.mean(first - second <= 2.0 * tol) > _OPEN)


class Numbers:
    """Real targets: a single problem, with two variables on each row."""

    columns = n_problems = 1
    sign, classes, direct = 1.0, None, False

    def __init__(self, y: np.ndarray) -> None:
        self.y = y
        self.stretches = [(0, len(y))]
        self.n_variables, self.block_size = 2 * len(y), 2 * len(y) ** 2

    def learnable(self, fold: Fold) -> bool:
        """Whether a row has weight."""
        return bool((fold.weight > 0).any())

    def unit(self, fold: Fold) -> float:
        """A value's own scale: the standard deviation of the targets."""
        return float(self.y[fold.train].std()) or 1.0

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

    def state(self, machine: Any, fold: Fold, every: bool) -> None:
        """State the one problem: an error says why not."""
        self.problem(machine, 0, fold)

    def place(self, k: int, beta: np.ndarray, out: np.ndarray) -> None:
        """Take the coefficients as they are."""
        out[:, 0] = beta

    def combine(self, sums: np.ndarray) -> np.ndarray:
        """Take the one sum."""
        return sums[:, 0]

    def coarse(self, fold: Fold, tol: float) -> bool:
        """Whether ``tol`` leaves the scores of held-out rows open: it is no small part of them."""
        return tol > _COARSE * (float(self.y[fold.test].std()) or self.unit(fold))

    def hidden(self, values: np.ndarray, noise: float) -> bool:
        """There are no classes."""
        return False

    undecided = hidden


Targets = Labels | Numbers
