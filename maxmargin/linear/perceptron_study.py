"""What can be asked of a perceptron besides its answers: a bound on its updates, a walk by them.

References: seeds 000, 002; Novikoff, 1962.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from maxmargin import memory
from maxmargin.bounds import mistake_bound, novikoff
from maxmargin.gram import Gram
from maxmargin.solvers.driver import Watch
from maxmargin.solvers.perceptron.passes import Step


class StudiedPerceptron:
    """A perceptron whose updates can be bounded, and walked through."""

    def mistake_bound(self, X: Any, y: Any, coef: Any, intercept: Any = 0.0) -> Any:
        """Return the largest number of updates that this fit can have needed.

        From any separator w, b of the same data, with ``beta^2 = max_i ||x_i||^2 + 1`` and
        ``gamma = min_i y_i (w . x_i + b)``: for a zero start

            n_updates_ <= beta^2 (||w||^2 + b^2) / gamma^2

        for every step size and order; :func:`maxmargin.bounds.mistake_bound` has the formula for
        another start (not for a kernel). Without an intercept the 1 and b are absent. With a kernel
        ``||x||^2`` is ``k(x, x)``. The bound needs a constant step: it is refused for weights that
        differ, schedules and penalties.

        Parameters
        ----------
        X, y
            The training data.
        coef : array-like of shape (n_features,) or (n_machines, n_features)
            The separator; one for each machine where there are several. For a kernel its
            signed coefficients over the training rows, shape (n_samples,) or
            (n_machines, n_samples).
        intercept : float or array-like of shape (n_machines,), default=0.0

        Returns
        -------
        bound : float, or array of shape (n_machines,)
            Whole numbers.
        """
        bounds = _update_bounds(self, X, y, coef, intercept)
        return bounds[0] if len(bounds) == 1 else np.array(bounds)

    def steps(
        self,
        X: Any,
        y: Any,
        coef_init: Any = None,
        intercept_init: Any = None,
        sample_weight: Any = None,
    ) -> Iterator[Step]:
        """Walk through a fit update by update.

        Yields the start (number 0, row None) and what is there after each update, in the order that
        :meth:`fit` takes; ends where it ends. Of several classes, one machine after the other. The
        object itself is not fitted by it. Mistakes are counted over all rows after every update.

        Parameters
        ----------
        X, y, coef_init, intercept_init, sample_weight
            As in :meth:`fit`.

        Yields
        ------
        step : Step
            With ``number``, ``row``, ``coef`` (None with a kernel), ``intercept``, ``dual``,
            ``mistakes`` and ``machine``.

        Examples
        --------
        The errors do not fall from update to update, and yet they end:

        >>> from sklearn.datasets import load_iris
        >>> from maxmargin import Perceptron
        >>> X, y = load_iris(return_X_y=True)
        >>> steps = Perceptron(order="cyclic", tol=None).steps(X, y == 0)
        >>> [step.mistakes for step in steps]
        [150, 100, 50, 100, 50, 0]
        """
        model: Any = clone(self)  # type: ignore[type-var]
        model._validate_params()
        model._refuse_contradictions()
        kernel = None if model.kernel is None else model._validated_kernel()
        X, y = model._validated(X, y, kernel)
        index = model._classes_of(y)
        given = model._weights_and_factors(sample_weight, X, index)
        weights, signs = model._weights_of_machines(index, *given), model._signs(index)
        start = model._start(X, coef_init, intercept_init)
        method, examples, seeds = model._posed(X, index, signs, weights, start)
        for k, (each, seed) in enumerate(zip(examples, seeds, strict=True)):
            watch = Watch(max_iter=model.max_iter, seed=seed)
            yield from method.begin(each, watch).updates(watch, k)


def _update_bounds(machine: Any, X: Any, y: Any, coef: Any, intercept: Any) -> list[float]:
    """Bound the updates of each machine of a perceptron, by a separator for each."""
    check_is_fitted(machine)
    if machine._step is None:
        raise ValueError(
            "The bound is for a constant step: it says nothing of a fit with a penalty, with a "
            "schedule for eta0, or with sample_weight or class_weight, which make steps differ."
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
    if machine.coef_init_.any() or machine.intercept_init_.any():
        raise ValueError("The bound of a kernel perceptron is for a start from zero.")
    gram = Gram.of_resolved(X, kernel, memory=memory.budget(machine.cache_size))
    beta2 = float(gram.diagonal.max()) + bool(machine.fit_intercept)
    values = [gram.matvec(c) for c in coef]
    return [
        novikoff((side * (f + b))[side != 0], beta2, float(c @ f + b**2)).value
        for side, c, f, b in zip(signs, coef, values, intercept, strict=True)
    ]
