"""Kernel values that compiled code makes of two strings."""

from __future__ import annotations

from typing import Any

import numpy as np

from maxmargin.backends.strings import StringFunction, Strings
from maxmargin.backends.threads import check_stop

_CALL_TIME = 1e7  # nanoseconds that one call should take


class StringValues:
    """Points that are strings: ``index`` are those of ``strings`` that belong to the data set."""

    def __init__(self, strings: Strings, index: np.ndarray, function: StringFunction):
        self.strings, self.index, self.function = strings, index, function
        self.n = len(index)

    @classmethod
    def prepare(cls, X: Any, function: StringFunction) -> StringValues:
        strings = function.encode(X)
        return cls(strings, np.arange(len(strings)), function)

    @property
    def width(self) -> int:
        return max(len(self.strings.codes) // max(len(self.strings), 1), 1)

    @property
    def entry_time(self) -> float:
        """About how long a value takes, in nanoseconds."""
        return self.function.cell_time * self.width**2

    @property
    def rounding(self) -> float:
        """Roundings of a sum of positive terms, each a product along both strings."""
        return 8.0 * float(self.strings.lengths.max(initial=0))

    def take(self, rows: np.ndarray) -> StringValues:
        return StringValues(self.strings, self.index[rows], self.function)

    def as_float32(self, copied: bool) -> StringValues:
        return self

    def diagonal(self) -> np.ndarray:
        step = max(int(_CALL_TIME / self.entry_time), 1)
        parts = [self.index[first : first + step] for first in range(0, self.n, step)]
        values = []
        for part in parts:
            check_stop()
            values.append(self.function.diagonal(self.strings, part))
        return np.concatenate(values)

    def panel(self, rows: np.ndarray) -> tuple[Strings, np.ndarray]:
        return self.strings, self.index[rows]

    def tile(
        self, panel: tuple[Strings, np.ndarray], start: int, stop: int, out: np.ndarray
    ) -> None:
        left, rows = panel
        columns = self.index[start:stop]
        longest = int(left.lengths[rows].max(initial=1))
        time = self.function.cell_time * longest * self.width
        step = max(int(_CALL_TIME / time), 1)  # pairs of a call
        some_rows, some = max(step // max(len(columns), 1), 1), min(step, max(len(columns), 1))
        values = np.empty((some_rows, some))
        for first in range(0, len(rows), some_rows):
            part = rows[first : first + some_rows]
            for begin in range(0, len(columns), some):
                check_stop()
                chosen = columns[begin : begin + some]
                block = values[: len(part), : len(chosen)]
                self.function.values(left, part, self.strings, chosen, block)
                out[first : first + len(part), begin : begin + len(chosen)] = block
