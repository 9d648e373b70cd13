"""Vectors with a number for every row, which nobody has in one place: how they are made.

A :class:`RowVector` is an expression: the values of some weights, the slopes of the losses there,
a sum of two others. It is sent to the workers with whatever is to be summed of it, and made there
from the rows, block by block, and forgotten. So nothing has to be kept but the rows, and what a
lost worker knew is known again. Only where each vector is made from the one before, as the
centres of the method of multipliers are, the numbers themselves stay with the workers
(:class:`Held`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from maxmargin.risk import RegularisedRisk, SoftmaxRisk


class Place:
    """The rows of a block, as a problem, and what has been made of them in this pass.

    Attributes
    ----------
    risk : RegularisedRisk or SoftmaxRisk
        Over the rows of the block that cost anything.
    number, first : int
        Number of the block, and of its first row among all.
    held : dict
        Vectors that are kept with the block, by their names.
    """

    def __init__(
        self, risk: RegularisedRisk | SoftmaxRisk, number: int, first: int, held: dict[int, Any]
    ) -> None:
        self.risk, self.number, self.first, self.held = risk, number, first, held
        self._made: dict[int, tuple[Any, Any]] = {}

    def value(self, what: Any) -> Any:
        """Make a vector of these rows, once; anything else is itself."""
        if not isinstance(what, RowVector):
            return what
        if id(what) not in self._made:
            made = what.make(self, *map(self.value, what.parts))
            self._made[id(what)] = what, made  # the vector too: its id must stay its own
        return self._made[id(what)][1]


class RowVector(NDArrayOperatorsMixin):
    """A number, or one for each class, for every row: ``make(place, *parts)`` where they lie.

    Functions of NumPy that work entry by entry make other such vectors of it.

    Attributes
    ----------
    combined : array or None
        ``Z'`` times it, where that is known already.
    slopes : RowVector or None
        The slopes that it is ``beta`` of.
    """

    combined: np.ndarray | None = None
    slopes: RowVector | None = None

    def __init__(self, n: int, make: Callable, *parts: Any) -> None:
        self.n, self.make, self.parts = n, make, parts

    def __len__(self) -> int:
        return self.n

    def __getstate__(self) -> dict[str, Any]:
        return {"n": self.n, "make": self.make, "parts": self.parts}

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        if method != "__call__" or options:
            return NotImplemented
        return RowVector(self.n, applied, ufunc, *inputs)

    def held(self) -> Iterator[Held]:
        """Those of its parts that are kept by the workers."""
        for part in self.parts:
            if isinstance(part, RowVector):
                yield from part.held()


class Values(RowVector):
    """``Z theta``; sums and multiples of these are of the same kind."""

    def __init__(self, n: int, theta: np.ndarray) -> None:
        super().__init__(n, values_at, theta)
        self.theta = theta

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "theta": self.theta}

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        if method == "__call__" and ufunc in _LINEAR and all(map(_is_linear, inputs)):
            alike = [one for one in inputs if isinstance(one, Values)]
            if len(alike) == 2 - (ufunc in _SCALED):
                weights = [one.theta if isinstance(one, Values) else one for one in inputs]
                return Values(self.n, ufunc(*weights))
        return super().__array_ufunc__(ufunc, method, *inputs, **options)


class Held(RowVector):
    """A vector that the workers keep: a task for each group of blocks, with an array for each."""

    def __init__(self, n: int, name: int, tasks: list[Any]) -> None:
        super().__init__(n, held_there, name)
        self.name, self.tasks = name, tasks

    def held(self) -> Iterator[Held]:
        """Itself."""
        yield self


_SCALED = (np.multiply, np.negative)
_LINEAR = (np.add, np.subtract, *_SCALED)


def _is_linear(part: Any) -> bool:
    return isinstance(part, Values) or np.ndim(part) == 0


def values_at(place: Place, theta: np.ndarray) -> np.ndarray:
    """``Z theta`` of the rows of a block."""
    return place.risk.values(theta)


def held_there(place: Place, name: int) -> np.ndarray:
    """Return a vector that is kept with a block."""
    return place.held[name]


def applied(place: Place, function: Callable, *parts: Any) -> Any:
    """Call a function of NumPy."""
    return function(*parts)


def asked(place: Place, name: str, *parts: Any) -> Any:
    """Call a method of the problem of a block, or return an attribute of it."""
    found = getattr(place.risk, name)
    return found(*parts) if callable(found) else found


def replaced(place: Place, vector: np.ndarray, rows: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return a vector with other values for some of all rows."""
    begin, end = np.searchsorted(rows, (place.first, place.first + len(vector)))
    changed = vector.copy()
    changed[rows[begin:end] - place.first] = values[begin:end]
    return changed
