"""Handle any object with ``fit`` and ``predict`` as a member of an ensemble.

Estimators with scikit-learn's tags are checked by these and cloned. Other objects, such as those of
a user's own class, are deep-copied and not checked.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import Tags, TargetTags, check_random_state, get_tags
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

_LARGEST_SEED = np.iinfo(np.int32).max


class HasMembers:
    """Mixin for ensembles: ``len(model)``, ``model[i]`` and iteration over ``estimators_``."""

    estimators_: list

    def __len__(self) -> int:
        check_is_fitted(self)
        return len(self.estimators_)

    def __getitem__(self, index: Any) -> Any:
        check_is_fitted(self)
        return self.estimators_[index]


def tags_of(estimator: Any) -> Tags:
    """Return an estimator's tags; default tags without an estimator type where it has none."""
    if hasattr(estimator, "__sklearn_tags__"):
        return get_tags(estimator)
    return Tags(estimator_type=None, target_tags=TargetTags(required=True))


def may_be(estimator: Any, kind: str) -> bool:
    """Whether an estimator's type is ``kind`` ("classifier" or "regressor") or not known.

    >>> from sklearn.svm import SVC, SVR
    >>> may_be(SVC(), "classifier"), may_be(SVR(), "classifier"), may_be(object(), "classifier")
    (True, False, True)
    """
    return tags_of(estimator).estimator_type in (kind, None)


def refuse_wrong_parameters(estimator: Any) -> None:
    """Check an estimator's parameters before its first fit, if it declares constraints."""
    if hasattr(estimator, "_parameter_constraints"):
        estimator._validate_params()


def takes_weights(estimator: Any) -> bool:
    """Whether an estimator can be fitted to weights."""
    return has_fit_parameter(estimator, "sample_weight")


def member_of(estimator: Any, seed: Any) -> Any:
    """Return a clone of the estimator, with a ``random_state`` from the seed wherever it has one.

    ``seed`` is a number or a RandomState.

    Examples
    --------
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from maxmargin.ensemble.learners import member_of
    >>> member_of(DecisionTreeClassifier(), 0).random_state
    209652396
    """
    member, random = clone(estimator, safe=False), check_random_state(seed)
    if not hasattr(member, "get_params"):
        return member
    names = sorted(member.get_params(deep=True))
    states = [n for n in names if n == "random_state" or n.endswith("__random_state")]
    if states:
        member.set_params(**{name: random.randint(_LARGEST_SEED) for name in states})
    return member
