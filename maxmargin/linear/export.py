"""Convert fitted linear estimators to scikit-learn's, for tools that take only its classes."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn import linear_model, svm
from sklearn.utils.validation import check_is_fitted

from maxmargin.multiclass import OneVsRest

_OF_FIT = ("n_features_in_", "feature_names_in_", "classes_", "n_iter_", "t_")
_OWN = {"solver", "penalty", "dual", "max_iter", "tol", "multi_class", "verbose", "n_jobs"}


def linear_of(model: Any) -> Any:
    """Return a fitted estimator of scikit-learn with the same function.

    Parameters that have the same meaning in both are copied; those of the solver keep the defaults
    of scikit-learn.

    Raises
    ------
    TypeError
        Where scikit-learn has no class of this form.
    """
    check_is_fitted(model)
    name, cls = type(model).__name__, class_like(model)
    if cls is None or not hasattr(model, "coef_"):
        raise TypeError(f"scikit-learn has no class for this {name}: to_sklearn cannot export it.")
    _refuse_other_functions(model, cls)
    own = model.get_params(deep=False)
    theirs = cls()
    if not own.get("l1_ratio"):
        own.pop("l1_ratio", None)  # scikit-learn before 1.8 warns of zero beside its penalty "l2"
    for parameter in theirs.get_params(deep=False):
        if own.get(parameter) is not None and parameter not in _OWN:  # None: our default
            setattr(theirs, parameter, own[parameter])
    for attribute in _OF_FIT:
        if attribute in vars(model):
            setattr(theirs, attribute, getattr(model, attribute))
    theirs.coef_, theirs.intercept_ = np.array(model.coef_), np.copy(model.intercept_)[()]
    return theirs


def class_like(model: Any) -> type | None:
    """Return scikit-learn's class with the name of the model's class or of one of its bases."""
    names = [base.__name__ for base in type(model).__mro__]
    modules = linear_model, svm
    return next((getattr(m, name) for name in names for m in modules if hasattr(m, name)), None)


def _refuse_other_functions(model: Any, cls: type) -> None:
    """Raise an error where scikit-learn's class decides between several classes in another way."""
    if len(getattr(model, "classes_", ())) <= 2:
        return
    softmax = cls is linear_model.LogisticRegression
    largest = model.scheme_.direct or isinstance(model.scheme_, OneVsRest)
    if model._asked != "softmax" if softmax else not largest:
        raise TypeError(
            f"scikit-learn's {cls.__name__} decides between several classes by "
            f"{'a softmax' if softmax else 'the largest value'}, and this one by "
            f"multiclass={model.multiclass!r}: to_sklearn cannot export it."
        )
