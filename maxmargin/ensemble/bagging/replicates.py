"""Replicates of a data set: which rows and columns each member of an ensemble is fitted to.

A bootstrap replicate of N rows is m of them drawn with replacement (m = N where nothing else is
said); a row is left out of it with probability ``(1 - 1/N)^m``, for m = N about 0.37. It is kept as
counts, how often each row was drawn: ``c_i``, with ``sum_i c_i = m``.

Reference: Breiman, Bagging predictors, Machine Learning 24, 1996.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.random import sample_without_replacement

_LARGEST_SEED = np.iinfo(np.int32).max


@dataclass(frozen=True)
class Replicates:
    """How replicates of a data set are drawn: each from a seed of its own.

    The same seed draws the same rows and columns as scikit-learn's bagging does.

    Parameters
    ----------
    n_rows, n_columns : int
        Of the data.
    size, width : int
        Rows and columns of a replicate.
    bootstrap, bootstrap_features : bool
        Whether these are drawn with replacement.
    weight : float array (n_rows,), optional
        Rows are drawn in proportion to it.

    Examples
    --------
    >>> from maxmargin.ensemble.bagging.replicates import Replicates
    >>> columns, rows = Replicates(n_rows=5, n_columns=2, size=5, width=2).drawn(0)
    >>> rows
    array([4, 0, 3, 3, 3])
    >>> Replicates(5, 2, 5, 2).counts(0)
    array([1, 0, 0, 3, 1])
    """

    n_rows: int
    n_columns: int
    size: int
    width: int
    bootstrap: bool = True
    bootstrap_features: bool = False
    weight: np.ndarray | None = None

    def same(self, other: Replicates) -> bool:
        """Whether the other draws the same from the same seeds."""
        mine, theirs = (replace(one, weight=None) for one in (self, other))
        if self.weight is None or other.weight is None:
            return mine == theirs and self.weight is other.weight
        return mine == theirs and np.array_equal(self.weight, other.weight)

    def in_words(self) -> str:
        """Say what is drawn."""
        weighted = "" if self.weight is None else " by weight"
        return (
            f"{self.size} of {self.n_rows} rows{weighted}, {self.width} of {self.n_columns} columns"
        )

    def drawn(self, seed: int) -> tuple[np.ndarray, np.ndarray]:
        """Columns and rows of a replicate, as they were drawn."""
        random = np.random.RandomState(seed)
        columns = _drawn(random, self.bootstrap_features, self.n_columns, self.width)
        if self.weight is None:
            return columns, _drawn(random, self.bootstrap, self.n_rows, self.size)
        p = self.weight / self.weight.sum()
        return columns, random.choice(self.n_rows, self.size, replace=self.bootstrap, p=p)

    def columns(self, seed: int) -> np.ndarray | None:
        """Columns of a replicate; None for all, in their order."""
        columns = self.drawn(seed)[0]
        whole = self.width == self.n_columns and not self.bootstrap_features
        return None if whole else columns

    def counts(self, seed: int) -> np.ndarray:
        """How often each row was drawn, (n_rows,)."""
        return np.bincount(self.drawn(seed)[1], minlength=self.n_rows)


def _drawn(random: np.random.RandomState, bootstrap: bool, n: int, count: int) -> np.ndarray:
    if bootstrap:
        return random.randint(0, n, count)
    return sample_without_replacement(n, count, random_state=random)


def replicate_size(
    max_samples: float | None, n: int, weight: np.ndarray | None = None, name: str = "max_samples"
) -> int:
    """Rows of a replicate: a number, a share of what there is, or as many as there are rows.

    With weights a share is one of their sum, so that a row of weight two is two rows.

    Examples
    --------
    >>> from maxmargin.ensemble.bagging.replicates import replicate_size
    >>> replicate_size(None, 150), replicate_size(0.5, 151), replicate_size(20, 150)
    (150, 75, 20)
    """
    if max_samples is None:
        return n
    there = float(n if weight is None else weight.sum())
    share = not isinstance(max_samples, Integral)
    size = int(max_samples * there) if share else int(max_samples)
    size = size if weight is None else max(size, 1)
    most = n if weight is None else max(n, int(there))
    if size > most:
        raise ValueError(
            f"{name}={max_samples} asks for {size} rows in each replicate, and there are {most}: a "
            f"replicate has no more rows than the data. Give a number up to {most}, or a share of "
            "them up to 1.0."
        )
    if size < 1:
        raise ValueError(
            f"{name}={max_samples} of {there:g} rows is none: give a number of rows, or a larger "
            "share."
        )
    return size


def seeds_of(random_state: Any, count: int, before: int = 0) -> np.ndarray:
    """Seeds of so many replicates; for a number, those that come after so many ``before``.

    Examples
    --------
    >>> from maxmargin.ensemble.bagging.replicates import seeds_of
    >>> seeds_of(0, 3)[2:] == seeds_of(0, 1, before=2)
    array([ True])
    """
    before = before if isinstance(random_state, Integral) else 0
    return check_random_state(random_state).randint(_LARGEST_SEED, size=before + count)[before:]
