"""Room for rows of a Gram matrix: within a budget, the least recently used make way."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np


class RowStore:
    """Rows of a square matrix, as many as fit, the least recently used replaced first.

    ``data[slot[i]]`` is row i while ``slot[i] >= 0``; ``stamp`` is the time of each slot's last use
    (compiled loops write it), ``clock`` the latest stamp.
    """

    def __init__(self, n: int, capacity: int, dtype: Any = np.float64) -> None:
        self.slot = np.full(n, -1, dtype=np.int64)
        self.owner = np.full(capacity, -1, dtype=np.int64)
        self.stamp = np.zeros(capacity, dtype=np.int64)
        self.clock = np.zeros(1, dtype=np.int64)
        self.data = np.empty((0, n), dtype=dtype)  # all of it with the first row
        self.used = 0

    @property
    def capacity(self) -> int:
        """Number of rows that fit."""
        return len(self.owner)

    def missing(self, rows: np.ndarray) -> np.ndarray:
        """Return those of the rows that are not resident."""
        return rows[self.slot[rows] < 0]

    def claim(self, rows: np.ndarray) -> np.ndarray:
        """Give slots to new rows, evicting the least recently used; the caller fills them."""
        if self.used + len(rows) <= self.capacity:
            slots = np.arange(self.used, self.used + len(rows))
        else:
            slots = np.argpartition(self.stamp, len(rows) - 1)[: len(rows)]
            self.used = self.capacity  # free slots have the oldest stamp and went first
        self.place(rows, slots)
        return slots

    def adopt(self, data: np.ndarray) -> None:
        """Take all rows of a matrix as they are; they are only read."""
        self.data = data
        self.slot[:] = self.owner[:] = np.arange(len(self.slot))
        self.used = self.capacity
        self.touch(self.owner)

    def place(self, rows: np.ndarray, slots: np.ndarray) -> None:
        """Give these slots to these rows, whoever had them; the caller fills them."""
        if not len(self.data):
            self.data = np.empty((self.capacity, len(self.slot)), dtype=self.data.dtype)
        evicted = self.owner[slots]
        self.slot[evicted[evicted >= 0]] = -1
        self.owner[slots] = rows
        self.slot[rows] = slots
        self.used = max(self.used, int(slots.max()) + 1)
        self.touch(rows)

    def touch(self, rows: np.ndarray) -> None:
        """Mark resident rows as just used."""
        self.clock += 1
        self.stamp[self.slot[rows]] = self.clock[0]


class Scratch(threading.local):
    """Room that a thread works in, problem after problem: new memory is slow to touch."""

    def __init__(self) -> None:
        self._room = np.empty(0, dtype=np.float32)

    def floats(self, count: int) -> np.ndarray:
        """So many float32 numbers, of any value; they last until this thread asks again."""
        if len(self._room) < count:
            self._room = np.empty(count, dtype=np.float32)
        return self._room[:count]

    def release(self) -> None:
        """Give this thread's room back."""
        self._room = np.empty(0, dtype=np.float32)

    def __reduce__(self) -> tuple:
        return Scratch, ()


def capacity_of(n: int, memory: int) -> int:
    """Rows of n float64 that a budget holds: two at least, n at most."""
    return int(min(n, max(memory // (8 * max(n, 1)), 2)))
