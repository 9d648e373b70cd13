"""How large the parts are that stay in the cache, and room to work on them."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

TILE_BYTES = 1 << 20  # product, pass and result share the L2 cache
CHUNK = 512  # columns that a compiled pass goes over at a time
PANEL_ROWS, PANEL_ENTRIES = 256, 1 << 21
_KEPT, _KEPT_ROOMS = 4 << 20, 2  # bytes of a room that a thread keeps, and how many


def stretches(n: int, row_length: int) -> list[tuple[int, int]]:
    """Cut ``range(n)`` so that a stretch of rows of this length fits the cache."""
    step = min(max(TILE_BYTES // 8 // max(row_length, 1), 16), 4096)
    return [(start, min(start + step, n)) for start in range(0, n, step)]


def spans(n: int, count: int) -> list[tuple[int, int]]:
    """Cut ``range(n)`` into so many stripes of whole cache lines."""
    step = -(-n // count)
    step = -(-step // 64) * 64
    return [(start, min(start + step, n)) for start in range(0, n, step)]


def spread_out(n: int, count: int) -> np.ndarray:
    """At most ``count`` of n rows, evenly spread."""
    if n <= count:
        return np.arange(n)
    places = np.arange(count) * ((n - 1) / max(count - 1, 1))  # np.linspace, but fast
    places[-1] = n - 1
    return places.astype(np.int64)


class _Rooms(threading.local):
    """Room to work in, kept by each thread from one use to the next: new memory is slow to touch.

    Too much of it is not kept.
    """

    def __init__(self) -> None:
        self.free: list[np.ndarray] = []

    def lent(self, count: int, dtype: Any) -> _Lent:
        """Lend room for so many numbers; who asks while it is lent gets another."""
        return _Lent(self.free, count, dtype)


class _Lent:
    """Room on loan: a context whose end gives it back."""

    def __init__(self, free: list[np.ndarray], count: int, dtype: Any) -> None:
        self.free, self.dtype = free, np.dtype(dtype)
        self.size = count * self.dtype.itemsize

    def __enter__(self) -> np.ndarray:
        room = self.free.pop() if self.free else np.empty(0, dtype=np.uint8)
        self.room = np.empty(self.size, dtype=np.uint8) if len(room) < self.size else room
        return self.room[: self.size].view(self.dtype)

    def __exit__(self, *error: Any) -> None:
        if len(self.room) <= _KEPT and len(self.free) < _KEPT_ROOMS:
            self.free.append(self.room)


rooms = _Rooms()
