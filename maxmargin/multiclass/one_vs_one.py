"""One-vs-one: a machine for every pair of classes, and their votes.

``K (K - 1) / 2`` machines; a point goes to the class with most votes. Layout and order are those
of LIBSVM and scikit-learn: pairs (0, 1), (0, 2), ..., (1, 2), ...; a positive value votes for the
first class of the pair. With two classes the sign is turned round: positive means ``classes_[1]``.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np


@dataclass(frozen=True)
class OneVsOne:
    """The pairs of K classes: which rows each sees, and how their machines are put together.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.multiclass import OneVsOne
    >>> scheme = OneVsOne(3)
    >>> scheme.pairs
    [(0, 1), (0, 2), (1, 2)]
    >>> scheme.vote(np.array([[1.0, 1.0, -1.0], [-1.0, -1.0, -1.0]]))
    array([0, 2])
    """

    n_classes: int

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """``(positive class, negative class)`` of each problem."""
        return list(combinations(range(self.n_classes), 2))

    @property
    def sign(self) -> float:
        """Sign from a problem to its machine: turned for two classes.

        The problem itself keeps LIBSVM's orientation, because SMO's path depends on it, and with an
        indefinite kernel so does the stationary point at its end.
        """
        return -1.0 if self.n_classes == 2 else 1.0

    def tasks(self, y: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
        """Rows and labels (-1, +1) of each problem, given class indices y."""
        tasks = []
        members = [y == k for k in range(self.n_classes)]
        for positive, negative in self.pairs:
            rows = np.flatnonzero(members[positive] | members[negative])
            tasks.append((rows, np.where(members[positive][rows], 1.0, -1.0)))
        return tasks

    def pack(
        self, machines: list[tuple[np.ndarray, np.ndarray]], y: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Bring the machines' coefficients into scikit-learn's layout.

        Parameters
        ----------
        machines : list of (rows, coefficients)
            For each pair, some training rows and their coefficients.
        y : int array (n,)
            Class indices of all training rows.

        Returns
        -------
        support : int array (n_SV,)
            Support vectors of any machine, grouped by class.
        n_support : int array (K,)
        dual_coef : float array (K - 1, n_SV)
            Column of a vector of class c: its coefficients against the other classes, in order.
        """
        used = np.zeros(len(y), dtype=bool)
        chosen = [np.flatnonzero(values) for _, values in machines]
        machines = [
            (rows[own], values[own]) for (rows, values), own in zip(machines, chosen, strict=True)
        ]
        for rows, _ in machines:
            used[rows] = True
        support = np.flatnonzero(used)
        support = support[np.argsort(y[support], kind="stable")]
        n_support = np.bincount(y[support], minlength=self.n_classes)
        place = np.empty(len(y), dtype=np.int64)
        place[support] = np.arange(len(support))
        dual_coef = np.zeros((self.n_classes - 1, len(support)))
        for (first, second), (rows, values) in zip(self.pairs, machines, strict=True):
            other = np.where(y[rows] == first, second - 1, first)  # the class against, in order
            dual_coef[other, place[rows]] = values
        return support, n_support, dual_coef

    def combine(self, sums: np.ndarray) -> np.ndarray:
        """Values of the pairs, (q, pairs), from each class's sums against the others.

        ``sums[:, c, o]`` is the sum over the support vectors of class c of row o of ``dual_coef``.
        """
        first, second = np.array(self.pairs).T
        return sums[:, first, second - 1] + sums[:, second, first]

    def expansions(self, dual_coef: np.ndarray, n_support: np.ndarray) -> np.ndarray:
        """Undo :meth:`pack`: coefficients of each machine over the support vectors, (K', n_SV)."""
        owner = np.repeat(np.arange(self.n_classes), n_support)
        rows = np.zeros((len(self.pairs), dual_coef.shape[1]))
        for k, (first, second) in enumerate(self.pairs):
            for own, other in ((first, second), (second, first)):
                members = np.flatnonzero(owner == own)
                rows[k, members] = dual_coef[other - (other > own), members]
        return rows

    def vote(self, decision: np.ndarray) -> np.ndarray:
        """Class index of each row from the machines' values (n, pairs); ties go to the first."""
        if self.n_classes == 2:
            return (decision[:, 0] >= 0).astype(np.intp)
        return np.argmax(self._votes(decision), axis=1)

    def one_value_per_class(self, decision: np.ndarray) -> np.ndarray:
        """scikit-learn's ``"ovr"`` shape: votes, plus the summed values squeezed below one half."""
        total = np.zeros((len(decision), self.n_classes))
        for k, (first, second) in enumerate(self.pairs):
            total[:, first] += decision[:, k]
            total[:, second] -= decision[:, k]
        return self._votes(decision) + total / (3 * (np.abs(total) + 1))

    def _votes(self, decision: np.ndarray) -> np.ndarray:
        classes = np.arange(self.n_classes)
        first, second = np.array(self.pairs).T[..., None] == classes
        return (decision > 0) @ first.astype(float) + (decision <= 0) @ second.astype(float)
