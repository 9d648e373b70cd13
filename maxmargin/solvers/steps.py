"""Sizes of steps, ``eta_t`` for t = 1, 2, 3...: a number, a schedule by name, or a function of t.

The schedules begin with a size that whoever takes the steps knows to be safe:

    "constant"  first        "inverse_sqrt"  first / sqrt(t)        "inverse"  first / t

The sum of the sizes has to be infinite, or the steps may end before the minimum; for steps on
single rows the sum of their squares has to be finite, or their noise never ends (Robbins and Monro,
Annals of Mathematical Statistics 22, 1951).
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import numpy as np

SCHEDULES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "constant": np.ones_like,
    "inverse_sqrt": lambda t: t**-0.5,
    "inverse": lambda t: 1.0 / t,
}
UNITS = ("auto", "data", "standardised")
StepSize = float | str | Callable[[int], float]


def step_sizes(step_size: StepSize, first: float, before: int, count: int) -> np.ndarray:
    """Return the sizes of so many steps after the first ones.

    Parameters
    ----------
    step_size : float, str or callable
        A constant size, the name of a schedule, or a function of the number of the step.
    first : float
        Where a schedule begins.
    before, count : int
        Steps that were taken before, and that are to be taken.

    Examples
    --------
    >>> step_sizes("inverse", 0.5, 0, 3).round(3)
    array([0.5  , 0.25 , 0.167])
    >>> step_sizes(lambda t: 1.0 / (1 + t), 0.5, 0, 2).round(3)
    array([0.5  , 0.333])
    """
    if isinstance(step_size, str):
        return first * SCHEDULES[step_size](np.arange(before + 1.0, before + count + 1.0))
    if not callable(step_size):
        return np.full(count, float(step_size))
    return np.array([_returned(step_size(t), t) for t in range(before + 1, before + count + 1)])


def _returned(size: Any, t: int) -> float:
    if not _is_size(size):
        raise ValueError(
            f"The size of step {t} is {size!r}: a function of the number of the step, from 1 on, "
            "has to return a positive number."
        )
    return float(size)


def check_step_size(step_size: Any, schedules: Collection[str] = ()) -> None:
    """Refuse what is neither a positive number, nor a function, nor the name of a schedule."""
    if isinstance(step_size, str) and schedules:
        if step_size not in schedules:
            raise ValueError(f"There is no schedule {step_size!r}: use one of {[*schedules]}.")
    elif not (callable(step_size) or _is_size(step_size)):
        raise ValueError(
            "step_size is a positive number, or a function of the number of the step; got "
            f"{step_size!r}."
        )


def _is_size(size: Any) -> bool:
    if isinstance(size, float):  # as most are, and there may be millions
        return 0 < size < np.inf
    size = np.asarray(size)
    return size.dtype.kind in "fiu" and size.ndim == 0 and bool(0 < size < np.inf)


def in_data_units(units: str, step_size: StepSize | None) -> bool:
    """Whether steps are taken in X's own units: where it is said, or where their size is given."""
    if units not in UNITS:
        raise ValueError(f"There are no units {units!r}: use one of {[*UNITS]}.")
    return units == "data" or (units == "auto" and step_size is not None)
