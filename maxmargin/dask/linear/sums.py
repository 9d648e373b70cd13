"""What is done with each block in a pass: sums over its rows, and vectors of them.

A function of a :class:`~maxmargin.dask.linear.vectors.Place` returns a tuple whose entries are
added up over all blocks, or a vector.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from maxmargin.backends.cpu.linear.losses import slope_at
from maxmargin.dask.linear.sample import drawn
from maxmargin.dask.linear.vectors import Place
from maxmargin.risk import RegularisedRisk
from maxmargin.risk.regularised import sides

_SKETCH = 1000  # quantiles that a block says its numbers by


def looked(place: Place, theta: np.ndarray, matrix: bool) -> tuple:
    """Loss, gradient, offset and, if wanted, the matrix of second derivatives."""
    risk = place.risk
    if isinstance(risk, RegularisedRisk):
        seen = risk.evaluate(theta)
        sums, f = (seen.loss, seen.gradient, seen.offset), seen.f
    else:
        f = risk.values(theta)
        sums = risk.empirical(f), risk.loss_gradient(theta, f), 0.0
    return (*sums, risk.model(f).matrix()) if matrix else sums


def looked_with(
    place: Place, theta: np.ndarray, matrix: bool, function: Callable, s: np.ndarray
) -> tuple:
    """Return the sums at some weights, and others of slopes."""
    return _Sums(looked(place, theta, matrix)), _Sums(function(place, s))


class _Sums(tuple):
    """Sums that are added as a whole."""

    def __add__(self, other: tuple) -> _Sums:  # type: ignore[override]
        return _Sums(a + b for a, b in zip(self, other, strict=True))


def look_and_draw(place: Place, theta: np.ndarray, *how: Any) -> tuple:
    """Return the sums at some weights, and rows that are drawn by their share."""
    risk: Any = place.risk
    seen = risk.evaluate(theta)
    return seen.loss, seen.gradient, seen.offset, [drawn(place, seen.f, *how)]


def empirical(place: Place, f: np.ndarray) -> tuple:
    """Return the sum of the losses at values f."""
    return (place.risk.empirical(f),)


def empirical_at(place: Place, value: float) -> tuple:
    """Return the sum of the losses where every value is the same."""
    return (place.risk.empirical(np.full(place.risk.n, value)),)


def account_of(place: Place, s: np.ndarray) -> tuple:
    """Return what slopes prove: sums on both sides, ``Z' beta``, conjugates."""
    risk = place.risk
    beta = risk.beta(s)
    return (*sides(beta), risk.design.combination(beta), risk.conjugates(s, beta))


def conjugates(place: Place, s: np.ndarray) -> tuple:
    """Return the sum of the conjugates."""
    return (place.risk.conjugates(s, place.risk.beta(s)),)


def drift_of(place: Place, s: np.ndarray) -> tuple:
    """Return the sum of ``beta``, and how far it may go down and up."""
    risk: Any = place.risk
    beta = risk.beta(s)
    rooms = (float(risk.room(s, beta, down).sum()) for down in (True, False))
    return (float(beta.sum()), *rooms)


def balance_of(place: Place, s: np.ndarray) -> tuple:
    """Return how the sum of slopes changes with the intercepts, and what it is."""
    risk: Any = place.risk
    return risk.balance(s)


def squares(place: Place, penalised: np.ndarray) -> tuple:
    """Return the sum of the costs times squared lengths."""
    risk = place.risk
    return (float(risk.cost @ risk.design.squared_norms(penalised)),)


def intercept_room(place: Place, f: np.ndarray, s: np.ndarray) -> tuple:
    """Return how far values may go down and up, to be listed."""
    risk: Any = place.risk
    return ([risk.intercept_room(f, s)],)


def losses_model(
    place: Place, f: np.ndarray, centre: np.ndarray | None = None, width: float = np.inf
) -> Any:
    """Return quadratics along the values, of losses that may be held near slopes."""
    risk: Any = place.risk
    return risk.losses(centre, width).model(f)


def losses_slopes(
    place: Place, f: np.ndarray, centre: np.ndarray | None, width: float
) -> np.ndarray:
    """Return slopes of losses that may be held near others."""
    risk: Any = place.risk
    return risk.losses(centre, width).slopes(f)


def slopes_along(
    place: Place,
    f: np.ndarray,
    along: np.ndarray,
    lengths: np.ndarray,
    centre: np.ndarray | None = None,
    width: float = np.inf,
) -> tuple:
    """Slopes of the sum of the losses at some lengths along a step."""
    risk: Any = place.risk
    losses = risk.losses(centre, width)
    return (np.array([slope_at(t, losses.rows, f, along, 0.0, 0.0) for t in lengths]),)


def sums_of(place: Place, model: Any, matrix: bool) -> tuple:
    """Return the gradient of a model and, if wanted, its matrix."""
    gradient = place.risk.design.combination(model.slope)
    return (gradient, model.matrix()) if matrix else (gradient,)


def matrix_of(place: Place, model: Any) -> tuple:
    """Return the matrix of a model."""
    return (model.matrix(),)


def product_of(place: Place, model: Any, step: np.ndarray) -> tuple:
    """Return the matrix of a model times a step."""
    return (model.product(step),)


def slope_of(place: Place, model: Any) -> np.ndarray:
    """Return the slopes of a model."""
    return model.slope


def after(place: Place, model: Any, along: np.ndarray) -> np.ndarray:
    """Return the slopes of a model where values have changed."""
    return model.after(along)


def sketched(values: np.ndarray, cost: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return some of the values in order, the largest among them, and the costs up to each."""
    order = np.argsort(values)
    mass = np.cumsum(cost[order])
    some = np.unique(np.linspace(0, len(values) - 1, _SKETCH).astype(int))
    return values[order][some], np.diff(mass[some], prepend=0.0)


def sketch_targets(place: Place) -> tuple:
    """Return the targets in short."""
    risk: Any = place.risk
    return ([sketched(risk.y, risk.cost)],)


def sketch_residuals(place: Place, f: np.ndarray, middle: float) -> tuple:
    """Return sizes of the residuals in short, and the sum of the targets' own."""
    risk: Any = place.risk
    u = np.abs(risk.arguments(f))
    return [sketched(u, np.ones(risk.n))], float(np.abs(risk.y - middle).sum())


def quantile(sketches: list[tuple[np.ndarray, np.ndarray]]) -> float:
    """Median of what was sketched: one of the values."""
    values, masses = (np.concatenate(parts) for parts in zip(*sketches, strict=True))
    order = np.argsort(values, kind="stable")
    mass = np.cumsum(masses[order])
    return float(values[order[np.searchsorted(mass, 0.5 * mass[-1])]])
