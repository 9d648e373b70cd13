"""The kernel perceptron, a combination of rows in place of weights.

    w = sum_i alpha_i y_i phi(x_i),    f(x) = sum_i alpha_i y_i k(x, x_i) + b

References: Aizerman, Braverman and Rozonoer, Automation and Remote Control 25, 1964; Freund and
Schapire, Machine Learning 37, 1999.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_is_fitted

from maxmargin.estimators import readings
from maxmargin.estimators.kernel import KernelEstimator
from maxmargin.kernels import Linear
from maxmargin.kernels.base import Validity
from maxmargin.progress import Reading
from maxmargin.solvers.perceptron.kernel_state import KernelState
from maxmargin.solvers.perceptron.state import PerceptronState, Sizes, Weights

_ROUNDING = 1e-10  # of |w|^2, over the sum of the sizes of its terms


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
    dual_coef_: np.ndarray

    def _refuse_weights(self) -> None:
        """Refuse parameters that need the weights themselves."""
        if (self.penalty, self.init) != (None, "zero"):
            raise ValueError(
                "The kernel perceptron has no random start and no penalty: its weights are only "
                f"known as a combination of rows; got penalty={self.penalty!r}, init={self.init!r}."
                " fit takes such a combination as coef_init."
            )

    def _combination(self) -> np.ndarray:
        """Signed coefficients of the last fit, over as many rows as it had."""
        coefficients = np.zeros((len(self._expansion), self.dual_coef_.shape[1]))
        coefficients[:, self.support_] = self._expansion
        return coefficients

    def _kernel_begins(
        self,
        X: Any,
        signs: list[np.ndarray],
        steps: list[np.ndarray],
        start: tuple[np.ndarray, np.ndarray],
        sizes: Sizes | None,
    ) -> list[Callable[[str], PerceptronState]]:
        """Return what begins each machine, all over one Gram matrix."""
        gram = self._gram(X, self._validated_kernel())
        return [
            partial(KernelState, gram, y, step, self.fit_intercept, coef, intercept, sizes)
            for y, step, coef, intercept in zip(signs, steps, *start, strict=True)
        ]

    def _reading(self, X: Any, coef: np.ndarray, intercept: float) -> Reading | None:
        """Return what reads w and b off variables; a kernel's sum is how far b has moved."""
        if self.kernel is None:
            return readings.of_weights
        if not isinstance(self.kernel_, Linear):
            return None
        start = intercept - coef.sum()
        bias = (lambda a, values: a.sum(axis=0) + start) if self.fit_intercept else None
        return readings.of_expansion(X, np.arange(X.shape[0]), bias)

    def _keep_expansion(
        self, X: Any, signs: list[np.ndarray], found: list[Weights], start: np.ndarray
    ) -> None:
        """Set the attributes of the expansion: the rows used by any machine, with their signs."""
        coefficients = start + np.array([weights.dual for weights in found]) * signs
        self._keep_support_vectors(X, np.flatnonzero(coefficients.any(axis=0)))
        self._expansion = np.ascontiguousarray(coefficients[:, self.support_])
        if len(self.support_) and self.kernel_.validity is not Validity.VALID:
            support = _safe_indexing(X, self.support_)
            terms = self._expansion.T * self._expansion_at(support, self._expansion)
            self._warn_without_norm(terms.sum(axis=0) + _ROUNDING * np.abs(terms).sum(axis=0))

    def _kernel_values(self, X: Any) -> np.ndarray:
        """Values of the machines at new points, shape (n, machines)."""
        check_is_fitted(self)
        return self._expansion_at(X, self._expansion) + self.intercept_
