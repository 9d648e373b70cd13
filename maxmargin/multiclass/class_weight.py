"""Weights of classes: what ``class_weight`` means to every classifier here.

A class's weight is a factor of the weights of its rows. Where each class has a machine of its own,
against the rest, there are two readings: the factor counts in the class's own machine only, where
it is the positive class (LIBLINEAR and scikit-learn), or in all of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.class_weight import compute_class_weight

POSITIVE_CLASS, ROWS = "positive", "rows"  # what the weight of a class counts on


def class_weights(
    class_weight: Any, classes: np.ndarray, index: np.ndarray | None, weight: np.ndarray
) -> np.ndarray:
    """Return the factor of each class.

    Parameters
    ----------
    class_weight : dict, "balanced" or None
        ``"balanced"`` makes the classes equally heavy, ``sum_i s_i / (n_classes * sum of its own)``
        with the weights ``s_i`` of the rows: a row of weight two is two rows. A class without any
        weight gets zero.
    classes : array of shape (n_classes,)
    index : int array of shape (n,), optional
        Class of each row; a dict does not need it.
    weight : float array of shape (n,)
        Weights of the rows.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.multiclass import class_weights
    >>> index, weight = np.array([0, 1, 1]), np.array([1.0, 1.0, 2.0])
    >>> class_weights("balanced", np.array(["a", "b"]), index, weight)
    array([2.        , 0.66666667])
    >>> class_weights({"a": 5}, np.array(["a", "b"]), index, weight)
    array([5., 1.])
    """
    if class_weight is None:
        return np.ones(len(classes))
    if isinstance(class_weight, str):
        assert index is not None
        mass = np.bincount(index, weights=weight, minlength=len(classes))
        factors = np.zeros(len(classes))
        return np.divide(weight.sum(), len(classes) * mass, out=factors, where=mass > 0)
    factors = compute_class_weight(class_weight, classes=classes, y=classes)
    if not (factors >= 0).all():
        raise ValueError(f"class_weight must not be negative, got {class_weight!r}.")
    return factors


def weights_of_machines(
    weight: np.ndarray, factors: np.ndarray, index: np.ndarray, on: str
) -> list[np.ndarray]:
    """Weights of the rows in each machine: one for two classes, else one for each.

    ``on`` says whether the factor of a class counts only where it is the positive class
    (``"positive"``) or in every machine (``"rows"``); for two classes both are the same.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.multiclass import weights_of_machines
    >>> factors, index = np.array([1.0, 5.0, 1.0]), np.array([0, 1, 2])
    >>> weights_of_machines(np.ones(3), factors, index, "positive")[2]
    array([1., 1., 1.])
    >>> weights_of_machines(np.ones(3), factors, index, "rows")[2]
    array([1., 5., 1.])
    """
    machines = len(factors) if len(factors) > 2 else 1
    if machines == 1 or on == ROWS or (factors == 1).all():
        return [weight * factors[index]] * machines
    return [weight * np.where(index == k, factors[k], 1.0) for k in range(machines)]
