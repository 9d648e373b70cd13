"""How many updates a fitted perceptron can have needed: Novikoff's theorem."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from maxmargin import memory
from maxmargin.bounds import mistake_bound, novikoff
from maxmargin.gram import Gram


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
            mistake_bound(X, side, w, b, start, step=machine._step).value
            for side, w, b, start in zip(signs, coef, biases, starts, strict=True)
        ]
    gram = Gram.of_resolved(X, kernel, memory=memory.budget(machine.cache_size))
    beta2 = float(gram.diagonal.max()) + bool(machine.fit_intercept)
    values = [gram.matvec(c) for c in coef]
    return [
        novikoff(side * (f + b), beta2, float(c @ f + b**2)).value
        for side, c, f, b in zip(signs, coef, values, intercept, strict=True)
    ]
