"""DAGSVM: the machines of all pairs in a graph, of which a point meets K - 1.

The root asks the first class against the last. Whoever loses is out, and the next question is to
the first against the last of those that are left: a node is a pair ``(i, j)``, and the classes
between them are what a point can still be.

Reference: Platt, Cristianini and Shawe-Taylor, Large margin DAGs for multiclass classification,
NIPS 12, 2000.
"""

from __future__ import annotations

import numpy as np

from maxmargin.multiclass.one_vs_one import OneVsOne
from maxmargin.multiclass.scheme import Ask


class DAG(OneVsOne):
    """A machine for every pair of classes; each rules one class out, until one is left.

    Trained as :class:`OneVsOne`, and quicker to ask: K - 1 machines in place of K (K - 1) / 2, and
    no ties. The answer depends on the order of the classes.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.multiclass import DAG
    >>> scheme = DAG(4)
    >>> scheme.levels
    [[(0, 3)], [(0, 2), (1, 3)], [(0, 1), (1, 2), (2, 3)]]
    >>> scheme.decode(np.array([[-1.0, 1.0, -1.0, 1.0, -1.0, 1.0]]))  # not 3, not 0, not 1
    array([2])
    """

    @property
    def levels(self) -> list[list[tuple[int, int]]]:
        """The nodes from the root down; from (i, j) go (i, j - 1), if i wins, and (i + 1, j)."""
        gaps = range(self.n_classes - 1, 0, -1)
        return [[(i, i + gap) for i in range(self.n_classes - gap)] for gap in gaps]

    @property
    def n_asked(self) -> int:
        """One machine for each class that is ruled out."""
        return self.n_classes - 1

    def decide(self, ask: Ask, n: int) -> np.ndarray:
        """Walk down level by level: a machine is asked about the points that are at its node."""
        low, high = np.zeros(n, dtype=np.intp), np.full(n, self.n_classes - 1)
        task_of = np.zeros((self.n_classes, self.n_classes), dtype=np.intp)
        task_of[self.pairs] = np.arange(len(self.code))
        for level in self.levels:
            here = [(low == i).nonzero()[0] for i, _ in level]
            asked = [(node, rows) for node, rows in zip(level, here, strict=True) if len(rows)]
            answers = ask([(task_of[node], rows) for node, rows in asked])
            for (_, rows), values in zip(asked, answers, strict=True):
                won = self.sign * values >= 0
                high[rows] -= won
                low[rows] += ~won
        return low

    def decode(self, values: np.ndarray) -> np.ndarray:
        """Walk through the graph, all values being known."""
        return self.decide(lambda asked: [values[rows, task] for task, rows in asked], len(values))

    def scores(self, values: np.ndarray) -> np.ndarray:
        """Votes plus confidence as of :class:`OneVsOne`, with the class decided on before all."""
        scores = super().scores(values)
        if self.n_classes > 2:
            scores[np.arange(len(values)), self.decode(values)] += self.n_classes
        return scores

    def ambiguous(self, values: np.ndarray) -> np.ndarray:
        """None: every question has an answer."""
        return np.zeros(len(values), dtype=bool)
