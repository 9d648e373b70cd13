"""Labels and weights: what classes there are, and how heavily each row counts, for all classifiers.

``class_weight`` says a factor for the weights of a class's rows. Where each class has a machine of
its own, against the rest, there are two readings: the factor counts in the class's own machine
only, where it is the positive class (LIBLINEAR and scikit-learn), or in all of them. In every other
scheme it counts in all.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import _check_partial_fit_first_call, check_classification_targets

from maxmargin.estimators.data import column, refuse_extreme_weights
from maxmargin.multiclass.one_vs_rest import OneVsRest
from maxmargin.multiclass.scheme import Scheme

POSITIVE_CLASS, ROWS = "positive", "rows"  # what the weight of a class counts on


def read_labels(y: Any, at_least: int = 2) -> tuple[np.ndarray, np.ndarray]:
    """Return the classes, in order, and the index of each row's class.

    Parameters
    ----------
    y : array-like of shape (n,)
        Labels of any type.
    at_least : int, default=2
        Fewer classes are refused.

    Examples
    --------
    >>> from maxmargin.multiclass import read_labels
    >>> read_labels(["b", "a", "b"])
    (array(['a', 'b'], dtype='<U1'), array([1, 0, 1]))
    """
    labels = column(y)
    try:
        classes = np.unique(labels)
    except TypeError as error:  # of objects that have no order
        kinds = sorted({type(label).__name__ for label in labels})
        raise ValueError(
            f"Unknown label type: y has labels of the types {', '.join(kinds)}, which have no "
            "order among each other. Give labels of one type, and leave out rows without a label."
        ) from error
    if labels.dtype.kind not in "biuSU" or 2 * len(classes) > len(labels):
        check_classification_targets(labels)  # the others cannot be anything else
    if len(classes) < at_least:
        _refuse_single_class(classes)
    return classes, np.searchsorted(classes, labels)  # no sorting of all labels


def read_labels_of_stream(machine: Any, y: Any, classes: Any) -> np.ndarray:
    """Return the index of each row's class; the first call sets the machine's ``classes_``."""
    if classes is not None:
        _refuse_single_class(np.unique(classes))
    _check_partial_fit_first_call(machine, classes)
    strange = np.setdiff1d(y, machine.classes_)
    if len(strange):
        raise ValueError(
            f"y has labels {strange.tolist()} that are not among classes="
            f"{machine.classes_.tolist()}, which the first call of partial_fit has set."
        )
    return np.searchsorted(machine.classes_, y)


def _refuse_single_class(classes: np.ndarray) -> None:
    if len(classes) < 2:
        raise ValueError(
            f"The number of classes has to be greater than one; got {len(classes)} class"
        )


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


def read_class_weights(
    class_weight: Any, classes: np.ndarray, index: np.ndarray, weight: np.ndarray
) -> np.ndarray:
    """Return :func:`class_weights`; refuses classes that weigh nothing, and extreme products."""
    factors = class_weights(class_weight, classes, index, weight)
    weight = weight * factors[index]
    refuse_extreme_weights(weight, "sample_weight times class_weight")
    heavy = np.bincount(index, weights=weight, minlength=len(classes)) > 0
    if not heavy.all():
        only = "Invalid input - all samples with positive weights belong to the same class. "
        raise ValueError(
            f"{only if heavy.sum() < 2 else ''}All samples of class(es) {classes[~heavy].tolist()} "
            "have weight zero, so there is nothing to learn of them: remove these samples, or give "
            "them a positive sample_weight or class_weight."
        )
    return factors


def weights_of_machines(
    weight: np.ndarray, factors: np.ndarray, index: np.ndarray, on: str, scheme: Scheme
) -> list[np.ndarray]:
    """Weights of the rows in each machine of a scheme; zero where a machine does not see a row.

    ``on`` says whether the factor of a class counts only in its own machine, where it is the
    positive class against the rest (``"positive"``), or in every machine (``"rows"``).

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.multiclass import OneVsOne, OneVsRest, weights_of_machines
    >>> factors, index = np.array([1.0, 5.0, 1.0]), np.array([0, 1, 2])
    >>> weights_of_machines(np.ones(3), factors, index, "positive", OneVsRest(3))[2]
    array([1., 1., 1.])
    >>> weights_of_machines(np.ones(3), factors, index, "rows", OneVsRest(3))[2]
    array([1., 5., 1.])
    >>> weights_of_machines(np.ones(3), factors, index, "positive", OneVsOne(3))[2]
    array([0., 5., 1.])
    """
    machines, of_rows = len(scheme.code), weight * factors[index]
    own = on == POSITIVE_CLASS and isinstance(scheme, OneVsRest) and machines > 1
    if not (own and (factors != 1).any()) and scheme.code.all() and not scheme.balanced:
        return [of_rows] * machines
    return [
        scheme.weigh(
            signs,
            weight * np.where(index == k, factors[k], 1.0) if own else of_rows * (signs != 0),
        )
        for k, signs in enumerate(scheme.signs(index))
    ]
