"""The perceptron's two forms: weights of the features, or a combination of the rows.

Both make the same steps. The primal form keeps ``w``; the other, in
:mod:`maxmargin.linear.kernel_perceptron`, only ``alpha`` with ``w = sum_i alpha_i y_i phi(x_i)``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from maxmargin.backends.threads import thread_count
from maxmargin.bounds import mistake_bound
from maxmargin.solvers.perceptron_walk import LinearWalk, Penalty, Walk, Weights

Start = tuple[Any, np.ndarray]  # weights, where there are any, and biases


class Form(ABC):
    """What differs between the two, for one machine."""

    judge: str  # who can tell whether the data are separable

    def __init__(self, machine: Any) -> None:
        self.machine = machine

    @property
    @abstractmethod
    def threads(self) -> int:
        """Machines that may run at a time."""

    @abstractmethod
    def refuse_contradictions(self) -> None:
        """Refuse parameters that this form cannot have."""

    @abstractmethod
    def validated(self, X: Any, y: Any, reset: bool = True) -> tuple[Any, Any]:
        """Check X and y."""

    @abstractmethod
    def start(self, X: Any, coef: Any = None, intercept: Any = None) -> Start:
        """Weights and biases to start from, as copies."""

    @abstractmethod
    def walks(
        self, X: Any, signs: list[np.ndarray], step: np.ndarray, start: Start
    ) -> Sequence[Walk]:
        """Return a machine for each row of labels, at its start."""

    @abstractmethod
    def keep(self, X: Any, signs: list[np.ndarray], found: list[Weights]) -> None:
        """Set the attributes that hold the weights."""

    @abstractmethod
    def mistake_bounds(
        self, X: Any, signs: list[np.ndarray], coef: np.ndarray, intercept: np.ndarray
    ) -> list[float]:
        """Bound the updates of each machine by a separator of its own."""


class PrimalForm(Form):
    """The perceptron with weights of the features."""

    judge = "maxmargin.is_separable(X, y)"

    @property
    def threads(self) -> int:
        """As many as are allowed."""
        return thread_count(self.machine.n_jobs)

    def refuse_contradictions(self) -> None:
        """Refuse what is for a kernel."""
        if self.machine.cache_size != "auto":
            raise ValueError("cache_size is for a kernel's matrix, and kernel is None.")

    def validated(self, X: Any, y: Any, reset: bool = True) -> tuple[Any, Any]:
        """Check X and y."""
        return self.machine._validated(X, y, reset=reset)

    def start(self, X: Any, coef: Any = None, intercept: Any = None) -> Start:
        """Given weights, those of the last fit, random ones, or zero."""
        machine = self.machine
        count = 1 if len(machine.classes_) == 2 else len(machine.classes_)
        shape = (count, X.shape[1])
        if machine.warm_start and hasattr(machine, "coef_") and coef is None and intercept is None:
            coef, intercept = machine.coef_, machine.intercept_
        elif machine.init == "random":
            random = check_random_state(machine.random_state)
            coef = random.standard_normal(shape) if coef is None else coef
            if intercept is None and machine.fit_intercept:
                intercept = random.standard_normal(count)
        coef = np.zeros(shape) if coef is None else np.array(coef, dtype=np.float64)
        bias = np.zeros(count) if intercept is None else np.array(intercept, dtype=np.float64)
        if coef.size != count * X.shape[1] or bias.size != count:
            raise ValueError(
                f"The weights to start from have shapes {coef.shape} and {bias.shape}, but these "
                f"data ask for {shape} and {(count,)}: give such, or set warm_start=False."
            )
        if not machine.fit_intercept and bias.any():
            raise ValueError("intercept_init must be zero (or absent) with fit_intercept=False.")
        return coef.reshape(shape), bias.reshape(count)

    def walks(
        self, X: Any, signs: list[np.ndarray], step: np.ndarray, start: Start
    ) -> Sequence[Walk]:
        """Return a machine for each row of labels, at its start."""
        machine = self.machine
        bias, penalty, variant = machine.fit_intercept, penalty_of(machine), machine.variant
        return [
            LinearWalk(X, y, step, bias, coef, intercept, penalty, variant)
            for y, coef, intercept in zip(signs, *start, strict=True)
        ]

    def keep(self, X: Any, signs: list[np.ndarray], found: list[Weights]) -> None:
        """Set ``coef_``."""
        self.machine.coef_ = np.array([weights.coef for weights in found])

    def mistake_bounds(
        self, X: Any, signs: list[np.ndarray], coef: np.ndarray, intercept: np.ndarray
    ) -> list[float]:
        """Bound the updates of each machine, by :func:`maxmargin.bounds.mistake_bound`."""
        machine = self.machine
        starts = zip(machine.coef_init_, machine.intercept_init_, strict=True)
        return [
            mistake_bound(
                X, y, w, b if machine.fit_intercept else None, first, step=machine._step
            ).value
            for y, w, b, first in zip(signs, coef, intercept, starts, strict=True)
        ]


def penalty_of(machine: Any) -> Penalty:
    """Return the penalty that a machine's parameters name; that of None is zero."""
    if machine.penalty is None:
        return Penalty()
    r = {"l2": 0.0, "l1": 1.0, "elasticnet": machine.l1_ratio}[machine.penalty]
    return Penalty(machine.alpha, r, machine.eta0)
