"""The kernel perceptron, a combination of rows in place of weights; and Novikoff's bound for it.

    w = sum_i alpha_i y_i phi(x_i),    f(x) = sum_i alpha_i y_i k(x, x_i) + b

References: Novikoff, 1962; Aizerman, Braverman and Rozonoer, Automation and Remote Control 25,
1964; Freund and Schapire, Machine Learning 37, 1999.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from maxmargin import memory
from maxmargin.bounds import mistake_bound, novikoff
from maxmargin.estimators import readings
from maxmargin.estimators.kernel import KernelEstimator
from maxmargin.gram import Gram
from maxmargin.kernels import Linear
from maxmargin.progress import Reading
from maxmargin.solvers.perceptron.kernel_state import KernelState
from maxmargin.solvers.perceptron.state import PerceptronState, Weights


def has_coefficients(machine: Any) -> None:
    """Raise an error that says why where a machine has no weights of the features."""
    if machine.kernel is not None:
        raise AttributeError("A kernel perceptron has no coef_ to make sparse or dense.")


def learns_in_parts(machine: Any) -> None:
    """Raise an error that says why where a perceptron cannot learn from parts of the data."""
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


class KernelPerceptron(KernelEstimator):
    """What the perceptron does with a kernel that it does otherwise without one."""

    penalty: str | None
    init: str
    warm_start: bool
    fit_intercept: bool
    intercept_: np.ndarray

    def _refuse_weights(self) -> None:
        """Refuse parameters that need the weights themselves."""
        if (self.penalty, self.init) != (None, "zero"):
            raise ValueError(
                "The kernel perceptron starts from zero and has no penalty: its weights are only "
                f"known as a combination of rows; got penalty={self.penalty!r}, init={self.init!r}."
            )

    def _kernel_start(self, machines: int, coef: Any, intercept: Any) -> tuple[None, np.ndarray]:
        """Start from zero: no weights, only biases."""
        if coef is not None or intercept is not None or self.warm_start:
            raise ValueError(
                "The kernel perceptron starts from zero: it takes neither coef_init, "
                "intercept_init nor warm_start."
            )
        return None, np.zeros(machines)

    def _kernel_begins(
        self, X: Any, signs: list[np.ndarray], steps: list[np.ndarray]
    ) -> list[Callable[[str], PerceptronState]]:
        """Return what begins each machine, all over one Gram matrix."""
        gram = self._gram(X, self._validated_kernel())
        return [
            partial(KernelState, gram, y, step, self.fit_intercept)
            for y, step in zip(signs, steps, strict=True)
        ]

    def _reading(self, X: Any) -> Reading | None:
        """Return what reads w and b off variables; with a bias, it is the sum of a kernel's."""
        if self.kernel is None:
            return readings.of_weights
        if not isinstance(self.kernel_, Linear):
            return None
        bias = (lambda a, values: a.sum(axis=0)) if self.fit_intercept else None
        return readings.of_expansion(X, np.arange(X.shape[0]), bias)

    def _keep_expansion(self, X: Any, signs: list[np.ndarray], found: list[Weights]) -> None:
        """Set the attributes of the expansion: the rows used by any machine, with their signs."""
        coefficients = np.array([weights.dual for weights in found]) * signs
        self._keep_support_vectors(X, np.flatnonzero(coefficients.any(axis=0)))
        self._expansion = np.ascontiguousarray(coefficients[:, self.support_])

    def _kernel_values(self, X: Any) -> np.ndarray:
        """Values of the machines at new points, shape (n, machines)."""
        check_is_fitted(self)
        return self._expansion_at(X, self._expansion) + self.intercept_


def update_bounds(machine: Any, X: Any, y: Any, coef: Any, intercept: Any) -> list[float]:
    """Bound the updates of each machine of a perceptron, by a separator for each."""
    check_is_fitted(machine)
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
    kernel = None if machine.kernel is None else machine.kernel_
    X, _ = machine._validated(X, y, kernel, reset=False)
    if kernel is None:
        biases = intercept if machine.fit_intercept else [None] * len(signs)
        starts = zip(machine.coef_init_, machine.intercept_init_, strict=True)
        return [
            mistake_bound(X[side != 0], side[side != 0], w, b, start, step=machine._step).value
            for side, w, b, start in zip(signs, coef, biases, starts, strict=True)
        ]
    gram = Gram.of_resolved(X, kernel, memory=memory.budget(machine.cache_size))
    beta2 = float(gram.diagonal.max()) + bool(machine.fit_intercept)
    values = [gram.matvec(c) for c in coef]
    return [
        novikoff((side * (f + b))[side != 0], beta2, float(c @ f + b**2)).value
        for side, c, f, b in zip(signs, coef, values, intercept, strict=True)
    ]
