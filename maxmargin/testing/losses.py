"""Checks of losses."""

from __future__ import annotations

import pickle
from dataclasses import fields, replace
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar

from maxmargin.losses import Loss, MarginLoss, ResidualLoss, Shape


def check_loss(loss: Loss) -> None:
    """Hold a loss to its contract.

    Slope and curvature against finite differences, both from the right where they jump; ``convex``
    and ``smooth`` true to the values; of a convex loss the conjugate as the supremum that defines
    it, Fenchel's inequality ``V(u) + V*(s) >= s u`` with equality at ``s = V'(u)``, and
    ``shape.best`` where there is a shape.

    Parameters
    ----------
    loss : Loss

    Examples
    --------
    >>> from maxmargin.losses import EpsilonInsensitive
    >>> from maxmargin.testing import check_loss
    >>> check_loss(EpsilonInsensitive(0.3))
    """
    random = np.random.default_rng(0)
    u = random.uniform(-4.0, 4.0, size=500)  # no two of them, and no kink, are neighbours
    assert isinstance(loss, MarginLoss | ResidualLoss), "a loss is of margins or of residuals"
    assert loss.name, "a loss has a name"
    _check_derivatives(loss, u)
    _check_convexity(loss, u)
    _check_smoothness(loss)
    if loss.convex:
        _check_conjugate(loss, u, random.uniform(-3.0, 3.0, size=100))
    if loss.shape is not None:
        _check_best(loss, loss.shape, random)
    assert pickle.loads(pickle.dumps(loss)) == loss, "pickle changes the loss"
    assert hash(loss) == hash(replace(loss)), "equal losses have different hashes"


def _kinks(loss: Loss) -> np.ndarray:
    """Where a loss is likely to have kinks: -1, 0, 1 and its parameters."""
    parameters = [float(getattr(loss, field.name)) for field in fields(loss)]
    return np.unique([-1.0, 0.0, 1.0, *parameters, *(-p for p in parameters)])


def _check_derivatives(loss: Loss, u: np.ndarray) -> None:
    h = 1e-6
    value, slope, curvature = loss.value(u), loss.slope(u), loss.curvature(u)
    assert value.shape == slope.shape == curvature.shape == u.shape, "shapes differ"
    close: dict[str, Any] = {"rtol": 1e-6, "atol": 1e-7}
    rise = (loss.value(u + h) - loss.value(u - h)) / (2 * h)
    np.testing.assert_allclose(slope, rise, err_msg="slope", **close)
    differences = (loss.slope(u + h) - loss.slope(u - h)) / (2 * h)
    np.testing.assert_allclose(curvature, differences, err_msg="curvature", **close)
    both = loss.slope_and_curvature(u)
    np.testing.assert_allclose(both, (slope, curvature), err_msg="both at once", rtol=1e-12)
    kinks = _kinks(loss)
    right = kinks + 1e-9
    np.testing.assert_allclose(
        loss.slope(kinks), loss.slope(right), err_msg="slope from the right", atol=1e-7
    )
    np.testing.assert_allclose(
        loss.curvature(kinks), loss.curvature(right), err_msg="curvature from the right", atol=1e-7
    )


def _check_convexity(loss: Loss, u: np.ndarray) -> None:
    ends = u.reshape(2, -1)
    above = loss.value(ends).mean(axis=0) - loss.value(ends.mean(axis=0))
    if loss.convex:
        assert above.min() >= -1e-12 * np.abs(loss.value(u)).max(), "not convex, but says it is"
    else:
        assert above.min() < -1e-3, "no chord is below the loss, but it says it is not convex"


def _check_smoothness(loss: Loss) -> None:
    """A continuous function has smaller steps on a finer grid."""
    fine = np.linspace(-4.0, 4.0, 80001)

    def jumps(values: np.ndarray) -> bool:
        largest = np.abs(np.diff(values)).max()
        return bool(largest > 0.5 * np.abs(np.diff(values[::10])).max() > 0)

    smooth = not jumps(loss.value(fine)) and not jumps(loss.slope(fine))
    assert loss.smooth == smooth, f"smooth is {loss.smooth}, but should be {smooth}"


def _check_conjugate(loss: Loss, u: np.ndarray, s: np.ndarray) -> None:
    value, slope = loss.value(u), loss.slope(u)
    equal = slope * u - value
    np.testing.assert_allclose(loss.conjugate(slope), equal, rtol=1e-9, atol=1e-9, err_msg="V*")
    grid = np.sort(np.concatenate([np.linspace(-30.0, 30.0, 60001), _kinks(loss)]))
    values = loss.value(grid)
    for slope_of_line, bound in zip(s, loss.conjugate(s), strict=True):
        reached = slope_of_line * grid - values
        at = int(reached.argmax())
        assert reached[at] <= bound + 1e-9, f"V(u) + V*(s) < s u for s = {slope_of_line}"
        if np.isfinite(bound):
            assert reached[at] >= bound - 1e-3, f"V*({slope_of_line}) is larger than its supremum"
        else:
            assert at in (0, len(grid) - 1), f"V*({slope_of_line}) is finite, but not said to be"


def _check_best(loss: Loss, shape: Shape, random: np.random.Generator) -> None:
    assert shape.low <= 0 <= shape.high, "zero belongs to the interval of a shape"
    for _ in range(20):
        u, width = random.uniform(-3.0, 3.0), random.uniform(0.1, 3.0)
        centre = float(np.clip(random.uniform(-2.0, 2.0), shape.low, shape.high))

        def cost(s: float, u: float = u, centre: float = centre, width: float = width) -> float:
            return float(loss.conjugate(np.array(s))) - s * u + (s - centre) ** 2 / (2 * width)

        limits = max(shape.low, -50.0), min(shape.high, 50.0)
        found = minimize_scalar(cost, bounds=limits, method="bounded", options={"xatol": 1e-10})
        best = float(shape.best(np.array(u), np.array(centre), width))
        assert shape.low <= best <= shape.high, "shape.best leaves the interval"
        assert cost(best) <= found.fun + 1e-9, f"shape.best({u}, {centre}, {width}) is not the best"
