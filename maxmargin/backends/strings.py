"""Strings as compiled code reads them, and functions of two of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np


class Strings(NamedTuple):
    """Strings behind each other as numbers: string i is ``codes[begin[i]:begin[i + 1]]``."""

    codes: np.ndarray
    begin: np.ndarray

    @classmethod
    def of(cls, codes: np.ndarray, lengths: Sequence[int]) -> Strings:
        """Cut one array into strings of these lengths."""
        return cls(codes, np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]))

    @property
    def lengths(self) -> np.ndarray:
        """Number of characters of each string."""
        return np.diff(self.begin)

    def __len__(self) -> int:
        return len(self.begin) - 1


class StringFunction(ABC):
    """A symmetric function of two strings, for a programme's primitive ``STRINGS``.

    ``features`` says the same as features of sequences, for backends that have no such primitive.
    """

    cell_time = 1.0  # about how long a pair of characters takes, in nanoseconds
    features: Callable[[Any], Any] | None = None

    @abstractmethod
    def encode(self, X: Any) -> Strings:
        """Read the strings of a data set."""

    @abstractmethod
    def values(
        self, left: Strings, rows: np.ndarray, right: Strings, columns: np.ndarray, out: np.ndarray
    ) -> None:
        """Write the values between some strings and others into ``out`` (rows, columns).

        Compiled, so that threads run beside each other; called on parts that take some
        milliseconds.
        """

    def diagonal(self, strings: Strings, rows: np.ndarray) -> np.ndarray:
        """Values of some strings with themselves."""
        out = np.empty((len(rows), 1))
        for i in range(len(rows)):
            own = rows[i : i + 1]
            self.values(strings, own, strings, own, out[i : i + 1])
        return out[:, 0]


class Recursion(StringFunction):
    """A function of two strings whose compiled code takes many pairs at a time."""

    @abstractmethod
    def pairs(
        self, left: Strings, rows: np.ndarray, right: Strings, columns: np.ndarray
    ) -> np.ndarray:
        """Values of string ``rows[i]`` of the one and ``columns[i]`` of the other, for each i."""

    def values(
        self, left: Strings, rows: np.ndarray, right: Strings, columns: np.ndarray, out: np.ndarray
    ) -> None:
        """Write all pairs, those of like lengths side by side."""
        i, j = np.argsort(left.lengths[rows]), np.argsort(right.lengths[columns])
        found = self.pairs(left, np.repeat(rows[i], len(j)), right, np.tile(columns[j], len(i)))
        out[np.ix_(i, j)] = found.reshape(len(i), len(j))

    def diagonal(self, strings: Strings, rows: np.ndarray) -> np.ndarray:
        """Values of some strings with themselves."""
        return self.pairs(strings, rows, strings, rows)
