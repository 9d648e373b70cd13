"""What a kernel machine asks of rows that lie in many places, in forms that every place can state.

A *form* knows the machine, its resolved kernel and what all rows together have said: weights of
classes, sums of costs. With that it states the problems on any of the rows exactly as they are part
of the whole: a partition's, a few candidates', all. Variables of rows that are not there are zero,
which is feasible as long as those that are there have the sums of the whole problem.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from maxmargin.backends.threads import Workers
from maxmargin.certificate import DualCertificate
from maxmargin.gram import Definiteness, Gram, Spectrum
from maxmargin.progress import Monitor
from maxmargin.solution import Status

Arrays = list[np.ndarray]


@dataclass(frozen=True)
class Solved:
    """What solving has come to: variables and values of each task, and how it went."""

    beta: Arrays
    decision: Arrays
    steps: list[int]
    status: list[Status]
    violation: float
    chosen: list[Any]


@dataclass(frozen=True)
class Errand:
    """How to solve: to which violation, in how many steps, in what time, with which threads."""

    tol: float
    max_iter: int
    monitor: Monitor
    workers: Workers
    near: bool = False  # whether to begin at the variables that rows come with


class Stretch(NamedTuple):
    """A stretch of rows: targets and weights, variables and values of each task, ``K_ii``."""

    y: Any
    weight: np.ndarray
    beta: Arrays
    decision: Arrays
    diagonal: np.ndarray


@dataclass(frozen=True)
class Accuracy:
    """What bounds the rounding of a value: roundings of a kernel value, terms of a sum.

    ``size`` is ``sum_i |coef_i| sqrt(K_ii)`` of each expansion, over all that was ever added up.
    """

    rounding: float
    terms: np.ndarray
    size: np.ndarray


class Form(ABC):
    """The problems of a machine on any of its rows.

    Attributes
    ----------
    n_tasks : int
        Problems.
    n_values : int
        Expansions: one for each problem, or all classes of a direct form.
    sums : list of arrays
        What the variables of each problem's groups add up to; what they have to, on all rows.
    """

    shell: Any
    kernel: Any
    n_tasks: int
    n_values: int
    sums: Arrays

    @abstractmethod
    def own(self, y: Any, n: int) -> Arrays:
        """Rows that each task sees, in order."""

    @abstractmethod
    def nothing(self, y: Any, n: int) -> Arrays:
        """Variables of n rows, all zero."""

    @abstractmethod
    def begin(
        self, gram: Gram, y: Any, weight: np.ndarray, share: float, errand: Errand
    ) -> tuple[Arrays, np.ndarray]:
        """Solve a partition's own problem as if it were all rows, and take its share of that.

        Returns feasible variables, whose sums are a share of those of all rows, and the places of
        rows that should be candidates although they are at zero.
        """

    @abstractmethod
    def solve(
        self,
        gram: Gram,
        y: Any,
        weight: np.ndarray,
        beta: Arrays,
        decision: Arrays | None,
        e: Errand,
    ) -> Solved:
        """Solve the problems of some rows, all others at zero."""

    @abstractmethod
    def coefficients(self, y: Any, weight: np.ndarray, beta: Arrays) -> np.ndarray:
        """Coefficients of the expansions on rows, (n_values, n)."""

    @abstractmethod
    def on_own(self, values: np.ndarray, y: Any) -> Arrays:
        """Values of all expansions on rows (n, n_values), for each task those that it reads."""

    @abstractmethod
    def look(self, at: Stretch, shift: Any) -> Any:
        """Sums and extremes over rows, which :meth:`merged` puts together."""

    @abstractmethod
    def merged(self, looks: list[Any]) -> Any:
        """Put the looks at several stretches of rows together."""

    @abstractmethod
    def shift(self, beta: Arrays) -> Any:
        """What of an answer all rows must know beside the values: biases that count in the norm."""

    @abstractmethod
    def violation(self, look: Any) -> np.ndarray:
        """Violation of each task's KKT conditions, from the look at all rows."""

    def goals(self, look: Any, tol: float) -> np.ndarray:
        """Violation that each task's answer may have, from the look at all rows."""
        return np.full(self.n_tasks, tol)

    @abstractmethod
    def levels(self, look: Any) -> Any:
        """Levels of each task, to measure excesses from."""

    @abstractmethod
    def excess(self, at: Stretch, levels: Any, shift: Any) -> np.ndarray:
        """By how much each row is on the wrong side of its level; negative where it is not."""

    @abstractmethod
    def gaps(self, at: Stretch, levels: Any, accuracy: Accuracy, shift: Any) -> Any:
        """Parts of the duality gaps that rows have, to be added up by :meth:`added`."""

    @abstractmethod
    def added(self, gaps: list[Any]) -> Any:
        """Put the gaps of several stretches of rows together."""

    @abstractmethod
    def judged(
        self,
        look: Any,
        gaps: Any,
        status: list[Status],
        tol: float,
        spectrum: Definiteness | Spectrum,
    ) -> list[tuple[DualCertificate, Any]]:
        """Certificate of each task, and what else is known of it."""
