"""The perceptron's two forms: weights of the features, or a combination of the rows.

Both make the same steps. The primal form keeps ``w``; the other, in
:mod:`maxmargin.linear.kernel_perceptron`, only ``alpha`` with ``w = sum_i alpha_i y_i phi(x_i)``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.utils import check_random_state

from maxmargin.backends.threads import thread_count
from maxmargin.bounds import mistake_bound
from maxmargin.solvers.perceptron.passes import Passes, Rules
from maxmargin.solvers.perceptron.walk import LinearWalk, Penalty, Walk, Weights

Start = tuple[Any, np.ndarray]  # weights, where there are any, and biases


def learns_in_parts(machine: Any) -> None:
    """Raise an error that says why where a machine cannot learn from parts of the data."""
    wants = {
        "variant": machine.variant != "last",
        "early_stopping": machine.early_stopping,
        "kernel": machine.kernel is not None,
        "class_weight": isinstance(machine.class_weight, str),
    }
    named = [f"{name}={getattr(machine, name)!r}" for name, wanted in wants.items() if wanted]
    if named:
        raise AttributeError(
            f"partial_fit sees a part of the data only and cannot do {', '.join(named)}: use fit, "
            "or leave the parameter at its default."
        )


def has_coefficients(machine: Any) -> None:
    """Raise an error that says why where a machine has no weights of the features."""
    if machine.kernel is not None:
        raise AttributeError("A kernel perceptron has no coef_ to make sparse or dense.")


class Form(ABC):
    """A machine's parameters, checked, and what they make of the data: starts, passes, bounds."""

    judge: str  # who can tell whether the data are separable

    def __init__(self, machine: Any) -> None:
        self.machine = machine

    @property
    @abstractmethod
    def threads(self) -> int:
        """Machines that may run at a time."""

    def refuse_contradictions(self) -> None:
        """Refuse parameters that cannot hold together."""
        machine = self.machine
        if machine.order not in (None, self.order):
            raise ValueError(
                f"order={machine.order!r} and shuffle={machine.shuffle} contradict each other: "
                "shuffle is scikit-learn's word for order='shuffled' or 'cyclic'; give one of the "
                "two."
            )
        if machine.penalty is not None and machine.variant == "averaged":
            raise ValueError(
                f"penalty={machine.penalty!r} cannot be had with variant='averaged': the mean is "
                "only kept for steps, not for shrinking. Take variant='last' or 'pocket'."
            )
        if self.penalty.decay <= 0.0:
            raise ValueError(
                f"eta0={machine.eta0} times alpha={machine.alpha} would shrink the weights to "
                "nothing at every row: make one of them smaller."
            )

    @property
    def order(self) -> str:
        """Order of the rows, by either of its two parameters."""
        by_shuffle = {True: "shuffled", False: "cyclic", None: self.machine.order or "shuffled"}
        return by_shuffle[self.machine.shuffle]

    @property
    def penalty(self) -> Penalty:
        """The penalty that is asked for; that of None is zero."""
        machine = self.machine
        if machine.penalty is None:
            return Penalty()
        r = {"l2": 0.0, "l1": 1.0, "elasticnet": machine.l1_ratio}[machine.penalty]
        return Penalty(machine.alpha, r, machine.eta0)

    def passes(self, weights: list[np.ndarray], index: np.ndarray, most: int) -> list[Passes]:
        """Return the passes of each machine, over the same rows with weights of its own."""
        machine = self.machine
        random = check_random_state(machine.random_state)
        rows = np.flatnonzero(np.any([weight > 0 for weight in weights], axis=0))
        held_out = rows[:0]
        if machine.early_stopping:
            parts = train_test_split(
                rows,
                test_size=machine.validation_fraction,
                stratify=index[rows],
                random_state=random.randint(np.iinfo(np.int32).max),
            )
            rows, held_out = (np.sort(part) for part in parts)
        penalised = machine.penalty is not None
        rules = Rules(self.order, most, machine.tol, machine.n_iter_no_change, penalised)
        seeds = random.randint(np.iinfo(np.int32).max, size=len(weights))
        return [
            Passes(rules, rows[weight[rows] > 0], held_out, weight, int(seed))
            for weight, seed in zip(weights, seeds, strict=True)
        ]

    @abstractmethod
    def validated(self, X: Any, y: Any, reset: bool = True) -> tuple[Any, Any]:
        """Check X and y."""

    @abstractmethod
    def start(self, X: Any, coef: Any = None, intercept: Any = None) -> Start:
        """Weights and biases to start from, as copies."""

    @abstractmethod
    def walks(
        self, X: Any, signs: list[np.ndarray], steps: list[np.ndarray], start: Start
    ) -> Sequence[Walk]:
        """Return a machine for each row of labels and its rows' steps, at its start."""

    @abstractmethod
    def keep(self, X: Any, signs: list[np.ndarray], found: list[Weights]) -> None:
        """Set the attributes that hold the weights."""

    def mistake_bounds(self, X: Any, y: Any, coef: Any, intercept: Any) -> list[float]:
        """Bound the updates of each machine by a separator of its own."""
        machine = self.machine
        if machine._step is None:
            raise ValueError(
                "The bound is for a constant step: it says nothing of a fit with a penalty, or "
                "with sample_weight or class_weight, which make the steps of rows differ."
            )
        classes, index = np.unique(y, return_inverse=True)
        if not np.array_equal(classes, machine.classes_):
            raise ValueError(f"y has the classes {classes}, the fit had {machine.classes_}.")
        coef, signs = np.atleast_2d(np.asarray(coef, dtype=np.float64)), machine._signs(index)
        intercept = np.broadcast_to(np.asarray(intercept, dtype=np.float64).ravel(), len(signs))
        if not machine.fit_intercept and intercept.any():
            raise ValueError("Without an intercept the separator cannot have one either.")
        X, _ = self.validated(X, y, reset=False)
        return self._bounds(X, signs, coef, intercept)

    @abstractmethod
    def _bounds(
        self, X: Any, signs: list[np.ndarray], coef: np.ndarray, intercept: np.ndarray
    ) -> list[float]:
        """Bound the updates where the theorem holds, without an intercept where there is none."""


class PrimalForm(Form):
    """The perceptron with weights of the features."""

    judge = "maxmargin.is_separable(X, y)"

    @property
    def threads(self) -> int:
        """As many as are allowed."""
        return thread_count(self.machine.n_jobs)

    def refuse_contradictions(self) -> None:
        """Refuse what is for a kernel, too."""
        super().refuse_contradictions()
        if self.machine.cache_size != "auto":
            raise ValueError("cache_size is for a kernel's matrix, and kernel is None.")

    def validated(self, X: Any, y: Any, reset: bool = True) -> tuple[Any, Any]:
        """Check X and y."""
        return self.machine._validated(X, y, reset=reset)

    def start(self, X: Any, coef: Any = None, intercept: Any = None) -> Start:
        """Given weights, those of the last fit, random ones, or zero."""
        machine = self.machine
        count = len(machine._scheme.code)
        shape = (count, X.shape[1])
        if machine.warm_start and hasattr(machine, "coef_") and coef is None and intercept is None:
            coef, intercept = machine._dense_coef(), machine.intercept_
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
        self, X: Any, signs: list[np.ndarray], steps: list[np.ndarray], start: Start
    ) -> Sequence[Walk]:
        """Return a machine for each row of labels and its rows' steps, at its start."""
        machine = self.machine
        bias, penalty, variant = machine.fit_intercept, self.penalty, machine.variant
        return [
            LinearWalk(X, y, step, bias, coef, intercept, penalty, variant)
            for y, step, coef, intercept in zip(signs, steps, *start, strict=True)
        ]

    def keep(self, X: Any, signs: list[np.ndarray], found: list[Weights]) -> None:
        """Set ``coef_``."""
        self.machine.coef_ = np.array([weights.coef for weights in found])

    def _bounds(
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
