"""The way of a fit, recorded step by step in bounded memory."""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from maxmargin.memory import megabytes
from maxmargin.progress import Progress

if TYPE_CHECKING:
    from pandas import DataFrame

_COLUMNS = ("method", "steps", "seconds", "objective", "dual", "gap", "violation")  # of a frame
_FEW = 20  # weights that have columns in a frame
_AT_ONCE = 1 << 22  # variables that are read at a time


class Trace:
    """Record of the steps of a fit: ``trace=True`` makes one and leaves it as ``trace_``.

    One of your own, with other limits, is ``trace=Trace(...)``; every fit begins it anew. It starts
    with every step of every problem. When a problem has ``limit`` records, or all their
    arrays take ``max_bytes``, every second one is dropped and only half as many are taken from
    then on: a trace of a long fit is coarse, and never large; :attr:`thinned` says how coarse. The
    first record and the last one stay, without their arrays where there is no room for these.

    Parameters
    ----------
    limit : int, default=1000
        Records of one problem.
    max_bytes : int, default=2**26
        Memory for the variables in all records. The weights of a linear machine, which are made of
        them at the end of the fit, may take as much again; they are left out where that is too
        little.

    Attributes
    ----------
    records : dict of int to list of Progress
        By the number of the problem (pair of classes, class or start).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from maxmargin import SVC
    >>> X, y = load_iris(return_X_y=True)
    >>> trace = SVC(kernel="linear", trace=True).fit(X[50:], y[50:]).trace_
    >>> steps, violation = trace.curve("steps"), trace.curve("violation")
    >>> int(steps[0]), bool(violation[-1] < violation[0])
    (0, True)
    >>> trace.records[0][1].working_set.shape  # the two variables of the first step
    (2,)
    >>> trace.alpha().shape == (len(steps), 100), trace.weights().shape == (len(steps), 4)
    (True, True)
    """

    def __init__(self, limit: int = 1000, max_bytes: int = 1 << 26) -> None:
        if limit < 4:
            raise ValueError(f"A trace needs at least 4 records; got limit={limit}.")
        self.limit, self.max_bytes = limit, max_bytes
        self._lock = threading.Lock()
        self.clear()

    def clear(self) -> None:
        """Forget what was recorded."""
        self.records: dict[int, list[Progress]] = {}
        self._every: dict[int, int] = {}
        self._bytes, self._full = 0, False  # full: some records are without their arrays
        self._unread = ""  # why weights were left out

    # -- what is recorded ----------------------------------------------------------------------

    @property
    def problems(self) -> list[int]:
        """Numbers of the problems that have records."""
        return sorted(self.records)

    def __len__(self) -> int:
        return sum(map(len, self.records.values()))

    def curve(self, name: str, problem: int = 0) -> np.ndarray:
        """Return one number of every record of a problem, such as ``"gap"`` or ``"seconds"``."""
        return np.array([getattr(record, name) for record in self.records.get(problem, [])])

    def variables(self, problem: int = 0) -> np.ndarray:
        """What was solved for, shape (n_records, ...): signed dual variables, or the method's own.

        Records from before anything was known of them are nan.
        """
        return self._stacked(problem, "variables", "Its method solves for no variables.")

    def alpha(self, problem: int = 0) -> np.ndarray:
        """The lecture's multipliers: the dual variables without signs, shape (n_records, ...)."""
        if any(record.solves_for != "multipliers" for record in self.records.get(problem, [])):
            raise ValueError(
                f"Problem {problem} was solved without multipliers: weights() has what linear "
                "machines solve for, and variables() the unknowns of any method."
            )
        return np.abs(self.variables(problem))

    def weights(self, problem: int = 0) -> np.ndarray:
        """``w`` of a linear machine, in the units of the data.

        Returns
        -------
        weights : array of shape (n_records, n_features) or (n_records, n_machines, n_features)
        """
        return self._stacked(problem, "weights", self._unread or _NOT_LINEAR)

    def intercepts(self, problem: int = 0) -> np.ndarray:
        """``b`` of a linear machine, shape (n_records,) or (n_records, n_machines)."""
        return self._stacked(problem, "intercept", self._unread or _NOT_LINEAR)

    def _stacked(self, problem: int, name: str, why_not: str) -> np.ndarray:
        if problem not in self.records:
            raise ValueError(f"There is no record of problem {problem}, only of {self.problems}.")
        found = [getattr(record, name) for record in self.records[problem]]
        known = next((np.asarray(array) for array in found if array is not None), None)
        if known is None:
            raise ValueError(f"Problem {problem} has no {name} in its records. {why_not}")
        return np.array([np.full(known.shape, np.nan) if a is None else a for a in found])

    @property
    def thinned(self) -> str:
        """What was left out to stay within the limits; empty where nothing was."""
        said = [
            f"problem {k} has a record every {self._every[k]} steps or more, of "
            f"{self.records[k][-1].steps:,} steps"
            for k in self.problems
            if self._every.get(k, 1) > 1
        ]
        if self._full:
            bare = sum(r.variables is None for records in self.records.values() for r in records)
            said.append(f"{bare} records have no variables, for lack of max_bytes")
        return "; ".join([*said, *([self._unread] if self._unread else [])])

    def to_frame(self) -> DataFrame:
        """Return a pandas frame with a row for each record, those of problem 0 first.

        Its columns are the problem, method, steps, seconds, objective, dual, gap and violation; and
        of linear machines ``w0``, ``w1``, ... and ``b``, where these are no more than 20 numbers
        (of several machines in one problem, ``w1_0`` is the first weight of the second).
        """
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError(
                "A frame is pandas': pip install pandas, or use curve, alpha, weights and "
                "intercepts, which are arrays."
            ) from error
        rows = [
            {"problem": k, **{name: getattr(record, name) for name in _COLUMNS}, **_columns(record)}
            for k in self.problems
            for record in self.records[k]
        ]
        return pd.DataFrame(rows, columns=None if rows else ["problem", *_COLUMNS])

    def __repr__(self) -> str:
        said = f": {self.thinned}" if self.thinned else ""
        return f"Trace({len(self)} records of {len(self.records)} problem(s){said})"

    # -- recording -----------------------------------------------------------------------------

    def __call__(self, progress: Progress) -> None:
        """Keep a report; the driver asks first whether it is wanted."""
        self.record(progress)

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
            if len(known) > self.limit:
                self._thin(progress.problem)
            while self._bytes > self.max_bytes:
                longest = max(self.records, key=lambda k: len(self.records[k]))
                if len(self.records[longest]) > 2:
                    self._thin(longest)
                else:
                    self._bytes -= _size(kept)
                    known[-1] = replace(kept, variables=None, working_set=None)
                    self._full = True

    def _thin(self, problem: int) -> None:
        """Drop every second record of a problem, and take half as many from now on."""
        known = self.records[problem]
        self._bytes -= sum(map(_size, known[1:-1:2]))
        known[1:-1] = known[2:-1:2]
        self._every[problem] = 2 * self._every.get(problem, 1)

    def settle(self) -> None:
        """Make the weights of linear machines, many records at a time, and let go of the data."""
        with self._lock:
            room = self.max_bytes
            for records in self.records.values():
                first = next((record.weights for record in records if _lazy(record)), None)
                room -= 0 if first is None else first.nbytes * len(records)
            if room < 0:
                self._unread = (
                    f"w and b of all records would take {megabytes(self.max_bytes - room)}: they "
                    "were left out; raise max_bytes, or lower limit."
                )
            for k, records in self.records.items():
                self.records[k] = _read(records, room >= 0)

    def __getstate__(self) -> dict[str, Any]:
        self.settle()
        return {name: value for name, value in vars(self).items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _lock=threading.Lock())


_NOT_LINEAR = "The machine has no weights of the features, as one with a linear kernel has them."


@dataclass(frozen=True)
class _Known:
    """Weights and intercept of one record, once they are made."""

    weights: np.ndarray
    intercept: np.ndarray

    def __call__(self, variables: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self.weights[None], self.intercept[None]


def _lazy(record: Progress) -> bool:
    """Whether a record's weights are still to be made."""
    known = record.reading is None or isinstance(record.reading, _Known)
    return not known and record.variables is not None


def _read(records: list[Progress], wanted: bool) -> list[Progress]:
    """Records with their weights, or without them where they are not wanted."""
    lazy = [k for k, record in enumerate(records) if _lazy(record)]
    made: dict[int, _Known | None] = dict.fromkeys(lazy)
    variables = [np.asarray(records[k].variables) for k in lazy]
    size = max(_AT_ONCE // max(variables[0].size, 1), 1) if lazy else 1
    for first in range(0, len(lazy) if wanted else 0, size):
        some = slice(first, first + size)
        read: Any = records[lazy[first]].reading
        with np.errstate(over="ignore", invalid="ignore"):  # of steps that have diverged
            weights, intercepts = read(np.array(variables[some]))
        made.update(zip(lazy[some], map(_Known, weights, intercepts), strict=True))
    unknown = {k: None for k, record in enumerate(records) if record.variables is None}
    return [
        replace(record, reading={**made, **unknown}[k]) if k in made or k in unknown else record
        for k, record in enumerate(records)
    ]


def _columns(record: Progress) -> dict[str, float]:
    """Columns for w and b of a record, where they are few."""
    weights = record.weights
    if weights is None or weights.size > _FEW:
        return {}
    named = {"w": weights, "b": np.asarray(record.intercept)}
    return {
        name + "_".join(map(str, place)): float(value)
        for name, array in named.items()
        for place, value in np.ndenumerate(array)
    }


def _size(record: Progress) -> int:
    arrays = (record.variables, record.working_set)
    return sum(array.nbytes for array in arrays if array is not None)
