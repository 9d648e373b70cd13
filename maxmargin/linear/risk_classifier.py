"""What the classifiers of a regularised risk share: labels in, problems out, all at once or not."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np

from maxmargin.linear.base import LinearClassifier
from maxmargin.linear.risk_machine import RiskMachine, with_weight
from maxmargin.linear.stream import learn
from maxmargin.losses import Loss
from maxmargin.multiclass import class_weights, read_labels_of_stream, weights_of_machines


class RiskClassifier(RiskMachine, LinearClassifier):
    """A classifier that minimises a regularised risk."""

    class_weight: Any
    penalty: str | None
    class_weight_on: str = "rows"

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
        weight, factors = self._weights_and_factors(sample_weight, self.class_weight, X, index)
        X, weight, index = with_weight(X, weight, index)
        return self._problems(X, index, self._costs(weight, factors, index))

    def _solve(self, problems: list, caches: list | None = None) -> None:
        """Solve problems that are posed."""
        self._minimise(problems, caches)

    def _learn(self, X: Any, y: Any, classes: Any, sample_weight: Any) -> None:
        """Go on with a stream, or begin one."""
        self._refuse_contradictions()
        X, y = self._validated(X, y, reset=not hasattr(self, "_streams"))
        index = read_labels_of_stream(self, y, classes)
        weight = self._validated_weight(sample_weight, X)
        factors = class_weights(self.class_weight, self.classes_, None, weight)
        learn(self, self._problems(X, index, self._costs(weight, factors, index)))

    def _costs(
        self, weight: np.ndarray, factors: np.ndarray, index: np.ndarray
    ) -> list[np.ndarray]:
        """Weights of the rows for each machine."""
        return weights_of_machines(weight, factors, index, self.class_weight_on)

    def _problems(self, X: Any, index: np.ndarray, weights: list[np.ndarray]) -> list:
        """Problems of some rows, at C = 1."""
        return self._risks(X, self._signs(index), weights, self._loss)
