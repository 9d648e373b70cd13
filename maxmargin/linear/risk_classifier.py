"""What the classifiers of a regularised risk share: labels in, problems out, all at once or not."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np

from maxmargin.linear.base import LinearClassifier
from maxmargin.linear.risk_machine import RiskMachine, with_weight
from maxmargin.linear.stream import (
    classes_in_stream,
    learn,
    weights_in_stream,
)
from maxmargin.losses import Loss


class RiskClassifier(RiskMachine, LinearClassifier):
    """A classifier that minimises a regularised risk."""

    class_weight: Any
    penalty: str | None

    @property
    @abstractmethod
    def _loss(self) -> Loss:
        """Loss of the margins."""

    @abstractmethod
    def _refuse_contradictions(self) -> None:
        """Refuse parameters that do not go together."""

    def _pose(self, X: Any, y: Any, sample_weight: Any) -> list:
        """Problems of all rows, at C = 1."""
        self._refuse_contradictions()
        X, y = self._validated(X, y)
        index = self._classes_of(y)
        weight = self._weights_with_classes(sample_weight, self.class_weight, X, index)
        X, weight, index = with_weight(X, weight, index)
        return self._problems(X, index, weight)

    def _solve(self, problems: list, again: bool = False) -> None:
        """Solve problems that are posed."""
        self._minimise(problems, again)

    def _learn(self, X: Any, y: Any, classes: Any, sample_weight: Any) -> None:
        """Go on with a stream, or begin one."""
        self._refuse_contradictions()
        X, y = self._validated(X, y, reset=not hasattr(self, "_streams"))
        index = classes_in_stream(self, y, classes)
        weight = weights_in_stream(self, self._validated_weight(sample_weight, X), index)
        learn(self, self._problems(X, index, weight))

    def _problems(self, X: Any, index: np.ndarray, weight: np.ndarray) -> list:
        """Problems of some rows, at C = 1."""
        return self._risks(X, self._signs(index), weight, self._loss, self.penalty)
