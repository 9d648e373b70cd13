"""Strings as compiled code reads them, and functions of two of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

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


class StringFunction(Protocol):
    """A symmetric function of two strings, for a programme's primitive ``STRINGS``."""

    def encode(self, X: Any) -> Strings:
        """Read the strings of a data set."""
        ...

    def values(
        self, left: Strings, rows: np.ndarray, right: Strings, columns: np.ndarray, out: np.ndarray
    ) -> None:
        """Write the values between some strings and others into ``out`` (rows, columns).

        Compiled, so that threads run beside each other; called on parts that take some
        milliseconds.
        """
        ...
