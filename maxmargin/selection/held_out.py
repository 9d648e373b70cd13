"""A machine as scorers see it, whose values on certain rows are known already."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import clone

_ANSWERED = ("predict", "decision_function", "score")


class HeldOut:
    """Stands in for a fitted estimator in front of a scorer.

    ``predict``, ``decision_function`` and ``score`` of the very rows whose values are known are
    answered from these. For all else (other rows, probabilities, fitted attributes) the estimator
    is really fitted, once, when it is first asked for.

    Parameters
    ----------
    estimator : SVC, SVR or Pipeline that ends in one
        With its parameters set, not fitted.
    machine : SVC or SVR
        Its last step.
    classes : array or None
        Classes that it has seen.
    known : list of (X, values)
        Rows, as scorers get them, and the machine's values there.
    fit : callable
        Returns the fitted estimator.
    """

    def __init__(
        self,
        estimator: Any,
        machine: Any,
        classes: np.ndarray | None,
        known: list[tuple[Any, np.ndarray | None]],
        fit: Callable[[], Any],
    ) -> None:
        self._estimator, self._known, self._fit = estimator, known, fit
        self._fitted: Any = None
        self._machine = clone(machine)
        if classes is None:
            self._machine._decision = self._values
        else:
            self.classes_ = self._machine.classes_ = classes
            self._machine._pair_values = self._values
        self._machine.n_features_in_ = None  # fitted, for who asks

    def _values(self, X: Any) -> np.ndarray:
        return next(values for rows, values in self._known if rows is X)

    def __sklearn_tags__(self) -> Any:
        return self._estimator.__sklearn_tags__()

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __repr__(self) -> str:
        return repr(self._estimator)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if not name.endswith("_"):
            getattr(self._estimator, name)  # what it does not have, fitting does not give it
        if name in _ANSWERED:
            return lambda X, *args, **kwargs: self._ask(name, X, *args, **kwargs)
        if self._fitted is None:
            self._fitted = self._fit()
        return getattr(self._fitted, name)

    def _ask(self, name: str, X: Any, *args: Any, **kwargs: Any) -> Any:
        if any(rows is X for rows, _ in self._known):
            return getattr(self._machine, name)(X, *args, **kwargs)
        if self._fitted is None:
            self._fitted = self._fit()
        return getattr(self._fitted, name)(X, *args, **kwargs)
