"""Losses of rows in partitions for Newton's steps: their models, and how far a step goes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from maxmargin.backends.cpu.linear.losses import FAR, FLAT, ON, STEEP
from maxmargin.backends.systems import DIRECT
from maxmargin.dask.linear import sums
from maxmargin.dask.linear.vectors import RowVector
from maxmargin.risk.regularised import Losses

_TRIES = 20  # passes over lengths that are too far
_WHOLE = 1.0, 2.0, 4.0, 8.0  # lengths that are looked at first
_LENGTHS = np.unique(np.concatenate([0.5 ** np.arange(1, 13), np.arange(1, 8) / 8.0]))


class PartitionedModel:
    """Losses of rows in partitions as quadratics at some values."""

    def __init__(
        self,
        risk: Any,
        model: RowVector,
        gradient: np.ndarray,
        matrix: np.ndarray | None,
    ) -> None:
        self.risk, self._model, self._matrix = risk, model, matrix
        self.slope = RowVector(len(model), sums.slope_of, model)
        self.slope.combined = gradient

    def matrix(self, stopped: Callable[[], Any] = lambda: None) -> np.ndarray:
        """Second derivatives by the weights."""
        if self._matrix is None:
            (self._matrix,) = self.risk._sum(sums.matrix_of, self._model)
        return self._matrix.copy()

    def product(self, step: np.ndarray) -> np.ndarray:
        """The matrix times a step, without the matrix."""
        return self.risk._sum(sums.product_of, self._model, step)[0]

    def after(self, along: Any) -> Any:
        """Slopes along the values, times the costs, where these have changed by ``along``."""
        return RowVector(len(self._model), sums.after, self._model, along)


class PartitionedLosses(Losses):
    """The losses of rows in partitions, for Newton's steps; with a width, held near some slopes."""

    def __init__(self, risk: Any, centre: Any, width: float) -> None:
        self.risk, self.centre, self.width = risk, centre, width
        self.curved = bool(risk.design.width <= DIRECT)
        risk.curved = self.curved and centre is None
        self._known: dict[bytes, tuple[np.ndarray, np.ndarray | None]] = {}

    def _at(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
        """Gradient and matrix at some weights, one pass."""
        if self.centre is None:
            look = self.risk.look(theta, self.curved)
            return look.gradient, look.matrix
        key = theta.tobytes()
        if key not in self._known:
            model = self._model(self.risk.values(theta))
            gradient, *matrix = self.risk._sum(sums.sums_of, model, self.curved)
            self._known[key] = gradient, matrix[0] if matrix else None
        return self._known[key]

    def _model(self, f: Any) -> RowVector:
        if self.centre is None:
            return RowVector(len(f), sums.losses_model, f)
        return RowVector(len(f), sums.losses_model, f, self.centre, self.width)

    def slopes(self, f: Any) -> Any:
        """Slopes along the margins or residuals, which the workers keep."""
        vector = RowVector(len(f), sums.losses_slopes, f, self.centre, self.width)
        return self.risk.passes.held(self.risk.pose, vector)

    def model(self, f: Any) -> Any:
        """Quadratic model of the losses at values f."""
        return PartitionedModel(self.risk, self._model(f), *self._at(f.theta))

    def reach(self, f: Any, along: Any, *others: float) -> tuple[float, float]:
        """How far to go along a step, and the slope there.

        The slope at the whole step is that of the next model, which a pass makes in any case,
        unless the next one has another centre. Where it is too far, each further pass looks at
        many lengths at once.
        """
        base, curvature, promise = others
        known: dict[float, float] = {}
        if self.centre is not None:
            known = dict(zip(_WHOLE, self._slopes(f, along, np.array(_WHOLE)), strict=True))

        def slope(t: float) -> float:
            if t not in known:
                known[t] = float(self._at((f + t * along).theta)[0] @ along.theta)
            return known[t] + base + t * curvature

        low, t, end = 0.0, 1.0, slope(1.0)
        while end < -STEEP * promise and t < FAR:
            low, t = t, ON * t
            end = slope(t)
        if end <= FLAT * promise:
            return t, end
        high = t
        for _ in range(_TRIES):
            lengths = low + (high - low) * _LENGTHS
            slopes = self._slopes(f, along, lengths) + base + lengths * curvature
            k = int(np.argmin(np.abs(slopes)))
            t, end = float(lengths[k]), float(slopes[k])
            if abs(end) <= FLAT * promise:
                break
            low = float(max(lengths[slopes < 0], default=low))
            high = float(min(lengths[slopes > 0], default=high))
        return t, end

    def _slopes(self, f: Any, along: Any, lengths: np.ndarray) -> np.ndarray:
        """Slopes of the sum of the losses at some lengths along a step, one pass."""
        held = () if self.centre is None else (self.centre, self.width)
        return self.risk._sum(sums.slopes_along, f, along, lengths, *held)[0]
