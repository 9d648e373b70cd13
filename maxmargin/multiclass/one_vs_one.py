"""One-vs-one: a machine for every pair of classes, and their votes.

``K (K - 1) / 2`` machines; a point goes to the class with most votes. Layout and order are those
of LIBSVM and scikit-learn: pairs (0, 1), (0, 2), ..., (1, 2), ...; a positive value votes for the
first class of the pair, and so does zero.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from maxmargin.multiclass.scheme import Scheme, tied


class OneVsOne(Scheme):
    """A machine for every pair of classes, and their votes.

    With three classes or more, several can have most votes: :meth:`ambiguous` finds such rows, and
    they go to the first of these classes, as in LIBSVM (``break_ties=True`` of a machine: to the
    one with the largest score). No class is outweighed by the rest of them.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.multiclass import OneVsOne
    >>> scheme = OneVsOne(3)
    >>> scheme.code
    array([[ 1, -1,  0],
           [ 1,  0, -1],
           [ 0,  1, -1]])
    >>> scheme.decode(np.array([[1.0, 1.0, -1.0], [-1.0, -1.0, -1.0]]))
    array([0, 2])
    """

    unanimous = True
    by_class = True
    by_sides = True

    @cached_property
    def pairs(self) -> tuple[np.ndarray, np.ndarray]:
        """First and second class of each pair."""
        first, second = np.triu_indices(self.n_classes, 1)
        return first, second

    def _code(self) -> np.ndarray:
        (first, second), one = self.pairs, np.eye(self.n_classes, dtype=np.int64)
        return one[first] - one[second]

    @cached_property
    def layout(self) -> np.ndarray:
        """A class has one row against each other class, in their order: K - 1 in all."""
        first, second = self.pairs
        layout = np.zeros((len(first), self.n_classes), dtype=np.int64)
        tasks = np.arange(len(first))
        layout[tasks, first], layout[tasks, second] = second - 1, first
        return layout

    def combine(self, sums: np.ndarray) -> np.ndarray:
        """Add the parts of a pair's two classes."""
        first, second = self.pairs
        return sums[:, first, second - 1] + sums[:, second, first]

    def decode(self, values: np.ndarray) -> np.ndarray:
        """Class with most votes; ties go to the first."""
        return np.argmax(self._votes(values), axis=1)

    def scores(self, values: np.ndarray) -> np.ndarray:
        """scikit-learn's ``"ovr"`` shape: votes, plus the summed values squeezed below one half."""
        total = self.sign * values @ self._code()
        return self._votes(values) + total / (3 * (np.abs(total) + 1))

    def ambiguous(self, values: np.ndarray) -> np.ndarray:
        """Which rows have several classes with most votes."""
        return tied(self._votes(values))

    def _votes(self, values: np.ndarray) -> np.ndarray:
        (first, second), one = self.pairs, np.eye(self.n_classes)
        for_first = self.sign * values >= 0  # a tie is the first class's, of two classes as well
        return for_first @ one[first] + ~for_first @ one[second]
