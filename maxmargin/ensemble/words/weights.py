"""The distribution of boosting over documents and labels, and what a stump makes of it.

AdaBoost.MH: a document i and a label l, with ``Y(i, l) = +1`` where i has l and -1 where not, weigh

    D(i, l) = s_i exp(-Y(i, l) f(i, l)) / sum

with the values ``f`` so far and the weights ``s`` of the documents. A stump ``h`` that says
``absent`` (k,) of documents without its word and ``present`` (k,) of the others makes of it

    D(i, l) exp(-Y(i, l) h(i, l)) / Z,        Z = sum_il D(i, l) exp(-Y(i, l) h(i, l))

and the product of all Z bounds the share of the pairs (i, l) on which the sign of f is wrong.

Reference: Schapire and Singer, Machine Learning 37, 1999, and 39, 2000.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from maxmargin.backends.cpu import word_stumps as compiled
from maxmargin.backends.threads import Workers

_DOCUMENTS = 1 << 12  # documents that are added up together, however many threads there are


@dataclass(frozen=True)
class LabelSets:
    """Which labels each document has: those of i are ``labels[begin[i]:begin[i + 1]]``.

    ``count`` is the number of labels there are.
    """

    begin: np.ndarray
    labels: np.ndarray
    count: int

    @classmethod
    def of(cls, truth: np.ndarray) -> LabelSets:
        """Read an indicator matrix, booleans of shape (n, k)."""
        begin = np.concatenate([[0], np.cumsum(truth.sum(axis=1, dtype=np.int64))])
        return cls(begin, np.nonzero(truth)[1].astype(np.int64), truth.shape[1])

    @property
    def indicator(self) -> np.ndarray:
        """Booleans of shape (n, k)."""
        truth = np.zeros((len(self), self.count), dtype=bool)
        truth[self.owner, self.labels] = True
        return truth

    @property
    def owner(self) -> np.ndarray:
        """Document of each entry of ``labels``."""
        return np.repeat(np.arange(len(self)), np.diff(self.begin))

    def __len__(self) -> int:
        return len(self.begin) - 1


class Changes(NamedTuple):
    """By how much the stored weights of some documents have changed."""

    documents: np.ndarray
    minus: np.ndarray
    plus: np.ndarray
    starts: np.ndarray


class LabelWeights:
    """The distribution, stored as :mod:`maxmargin.backends.cpu.word_stumps` has it.

    Parameters
    ----------
    sets : LabelSets
    weight : float array of shape (n,)
        Of the documents.
    values : float array of shape (n, k)
        ``f`` at the start; taken over and changed.
    workers : Workers

    Attributes
    ----------
    totals : float array of shape (2, k)
        Sums of the stored weights over all documents.
    loss : float
        Share of the pairs, by the weights of the documents, on which the sign of f is wrong.
    start : float
        Mean of ``exp(-Y f)`` at the start, which the product of Z begins with.
    """

    def __init__(
        self, sets: LabelSets, weight: np.ndarray, values: np.ndarray, workers: Workers
    ) -> None:
        self.sets, self.workers, self.values = sets, workers, values
        self.shift = np.zeros(sets.count)
        self.weight = weight / (weight.sum() * sets.count)
        owner = sets.owner
        exponent = values.copy()
        exponent[owner, sets.labels] *= -1.0
        largest = float(exponent.max())
        D = self.weight[:, None] * np.exp(exponent - largest)
        mean = float(D.sum())
        with np.errstate(over="ignore"):
            self.start = float(mean * np.exp(largest))
        D /= mean
        self.plus = D[owner, sets.labels]
        D[owner, sets.labels] = 0.0
        self.minus, self.scale = D, np.ones((2, sets.count))
        self._account()

    @property
    def stored(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """The weights and whose they are, as compiled code takes them."""
        return self.minus, self.plus, self.sets.begin, self.sets.labels

    @property
    def root(self) -> np.ndarray:
        """Geometric mean of the two scales of each label."""
        return np.sqrt(self.scale[0] * self.scale[1])

    @property
    def D(self) -> np.ndarray:
        """The distribution itself, shape (n, k)."""
        D = self.minus * self.scale[1]
        D[self.sets.owner, self.sets.labels] = self.plus * self.scale[0, self.sets.labels]
        return D

    def fold(self) -> None:
        """Make the stored weights the true ones."""
        self.minus *= self.scale[1]
        self.plus *= self.scale[0, self.sets.labels]
        self.scale = np.ones_like(self.scale)
        self._account()

    def update(self, documents: np.ndarray, absent: np.ndarray, present: np.ndarray) -> Changes:
        """Take a stump whose word stands in some documents; returns what has changed in these."""
        step = present - absent
        count = np.diff(self.sets.begin)[documents]
        starts = np.concatenate([[0], np.cumsum(count)])
        by_minus, by_plus = np.empty((len(documents), len(step))), np.empty(starts[-1])
        factors = np.exp(np.stack([-step, step]))
        compiled.reweigh(documents, factors, step, *self.stored, self.values, by_minus, by_plus)
        self.shift = self.shift + absent
        self.scale = self.scale * np.exp(np.stack([-absent, absent]))
        self._account()
        return Changes(documents, by_minus, by_plus, starts)

    def _account(self) -> None:
        """Sum up anew, in parts that do not depend on the threads, and make the sum of D one."""

        def part(first: int) -> tuple[np.ndarray, float]:
            last = min(first + _DOCUMENTS, len(self.sets))
            return compiled.account(first, last, *self.stored, self.values, self.shift, self.weight)

        parts = Workers(self.workers.count).map(part, range(0, len(self.sets), _DOCUMENTS))
        self.totals = np.sum([totals for totals, _ in parts], axis=0)
        self.loss = float(sum(wrong for _, wrong in parts))
        self.scale = self.scale / np.vdot(self.scale, self.totals)
