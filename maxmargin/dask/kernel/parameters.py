"""Kernel parameters that depend on data, from rows in many places: those of all rows.

``gamma="scale"`` asks for the variance of what a kernel sees, after columns were chosen and maps
applied. Every partition resolves the kernel and writes down the moments of what it was asked about,
in the same order; the kernel is then resolved once more with those of all.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from maxmargin.backends.cpu import variance
from maxmargin.backends.views import Views
from maxmargin.dask.rows import Block, Partitions
from maxmargin.kernels import Kernel
from maxmargin.kernels.dot_product import VARIANCE


class Moments(NamedTuple):
    """Number, mean and sum of squares about it, of the entries of some rows."""

    entries: float
    mean: float
    about: float

    @classmethod
    def of(cls, X: Any) -> Moments:
        """Look at rows."""
        entries = float(X.shape[0]) * X.shape[1]
        total = X.data.sum(dtype=np.float64) if sp.issparse(X) else X.sum(dtype=np.float64)
        return cls(entries, float(total) / entries, variance(X) * entries)

    def __add__(self, other: Any) -> Moments:
        """Moments of both (Chan, Golub and LeVeque, 1983)."""
        entries, apart = self.entries + other.entries, other.mean - self.mean
        return Moments(
            entries,
            self.mean + apart * other.entries / entries,
            self.about + other.about + apart * apart * self.entries * other.entries / entries,
        )


@contextmanager
def _asking(answer: Any) -> Iterator[None]:
    token = VARIANCE.set(answer)
    try:
        yield
    finally:
        VARIANCE.reset(token)


def _names(block: Block) -> list[str] | None:
    return None if block.names is None else list(block.names)


def _asked(block: Block, kernel: Kernel) -> list[Moments]:
    """Return the moments of everything that the kernel asks about."""
    found: list[Moments] = []

    def note(X: Any) -> float:
        found.append(Moments.of(X))
        return 1.0

    with _asking(note):
        kernel.resolve(Views(block.X), _names(block))
    return found


def _added(parts: list[list[Moments]]) -> list[Moments]:
    totals = parts[0]
    for part in parts[1:]:
        totals = [mine + theirs for mine, theirs in zip(totals, part, strict=True)]
    return totals


def _first(block: Block) -> Block:
    return block._replace(X=block.X[:1] if hasattr(block.X, "shape") else list(block.X)[:1])


def resolved(rows: Partitions, kernel: Kernel) -> Kernel:
    """Return the kernel with the numbers that all rows give it."""
    moments = rows.map(_asked, kernel, name="moments")
    total = rows.cluster.total(moments, _added)
    first = rows.cluster.task(_first, rows.blocks[0], name="first-row")
    found, block = rows.cluster.run([total, first])
    answers = iter(found)
    with _asking(lambda X: (own := next(answers)).about / own.entries):
        return kernel.resolve(Views(block.X), _names(block))
