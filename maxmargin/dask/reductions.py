"""How results of partitions become one: sums, as :meth:`Cluster.total` takes them."""

from __future__ import annotations

import numpy as np


def summed(parts: list[np.ndarray]) -> np.ndarray:
    """Sum of arrays of one shape."""
    return np.sum(parts, axis=0)


def added(parts: list[tuple]) -> tuple:
    """Sum of tuples, entry by entry, where lists are joined; those that are empty say nothing."""
    parts = [part for part in parts if part]
    if not parts:
        return ()
    total = list(parts[0])
    for part in parts[1:]:
        total = [a + b for a, b in zip(total, part, strict=True)]
    return tuple(total)
