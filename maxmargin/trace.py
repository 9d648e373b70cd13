"""The way of a fit, recorded step by step in bounded memory."""

from __future__ import annotations

import threading
from dataclasses import replace

import numpy as np

from maxmargin.progress import Progress


class Trace:
    """Record of the steps of a fit: hand it to a machine as its ``callback``.

    It begins with every step of every problem. When a problem has ``limit`` records, or all their
    arrays take ``max_bytes``, every second one is dropped and only half as many are taken from
    then on: a trace of a long fit is coarse, and never large. The first record and the last one
    stay.

    Parameters
    ----------
    limit : int, default=1000
        Records of one problem.
    max_bytes : int, default=2**26
        Memory for the variables in all records.

    Attributes
    ----------
    records : dict of int to list of Progress
        By the number of the problem (pair of classes, class or start).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from maxmargin import SVC, Trace
    >>> X, y = load_iris(return_X_y=True)
    >>> trace = Trace()
    >>> model = SVC(C=10, callback=trace).fit(X[50:], y[50:])
    >>> steps, violation = trace.curve("steps"), trace.curve("violation")
    >>> int(steps[0]), bool(violation[-1] < violation[0])
    (0, True)
    >>> trace.records[0][1].working_set.shape  # the two variables of the first step
    (2,)
    """

    def __init__(self, limit: int = 1000, max_bytes: int = 1 << 26) -> None:
        if limit < 4:
            raise ValueError(f"A trace needs at least 4 records; got limit={limit}.")
        self.limit, self.max_bytes = limit, max_bytes
        self.records: dict[int, list[Progress]] = {}
        self._every: dict[int, int] = {}
        self._bytes = 0
        self._lock = threading.Lock()

    def __call__(self, progress: Progress) -> None:
        """Take a report of a method that works on many problems at once."""
        self.record(progress)

    def __len__(self) -> int:
        return sum(map(len, self.records.values()))

    def curve(self, name: str, problem: int = 0) -> np.ndarray:
        """Return one number of every record of a problem, such as ``"gap"`` or ``"seconds"``."""
        return np.array([getattr(record, name) for record in self.records.get(problem, [])])

    def steps_until_next(self, problem: int) -> int:
        """Steps that a method may take before it is to be recorded again."""
        return self._every.get(problem, 1)

    def wants(self, problem: int, steps: int, last: bool) -> bool:
        """Whether a record is due after so many steps; the last one always is."""
        known = self.records.get(problem)
        return not known or last or steps - known[-1].steps >= self.steps_until_next(problem)

    def record(self, progress: Progress) -> None:
        """Keep where a problem is, with copies of what will change."""
        with self._lock:
            known = self.records.setdefault(progress.problem, [])
            variables, working_set = (
                None if array is None else np.array(array)
                for array in (progress.variables, progress.working_set)
            )
            kept = replace(progress, variables=variables, working_set=working_set, others=dict)
            if known and known[-1].steps == kept.steps and known[-1].method == kept.method:
                self._bytes -= _size(known.pop())
            known.append(kept)
            self._bytes += _size(kept)
            if len(known) > self.limit or self._bytes > self.max_bytes:
                longest = max(self.records, key=lambda k: len(self.records[k]))
                self._thin(progress.problem if len(known) > self.limit else longest)

    def _thin(self, problem: int) -> None:
        """Drop every second record of a problem, and take half as many from now on."""
        known = self.records[problem]
        if len(known) > 3:
            dropped = known[1:-1:2]
            self._bytes -= sum(map(_size, dropped))
            known[1:-1] = known[2:-1:2]
        self._every[problem] = 2 * self._every.get(problem, 1)

    def __repr__(self) -> str:
        return f"Trace({len(self)} records of {len(self.records)} problem(s))"


def _size(record: Progress) -> int:
    arrays = (record.variables, record.working_set)
    return sum(array.nbytes for array in arrays if array is not None)
