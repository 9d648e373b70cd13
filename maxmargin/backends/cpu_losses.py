"""Compiled loops over the losses of all rows: slopes, curvatures, and how far a step may go.

Every loss that has a :class:`~maxmargin.losses.Shape` is one and the same function of the slope:

    V_k(u) = max_s  s u - V*(s) - nearness (s - centre)^2 / 2

which is the loss itself where the nearness is zero, and an envelope of it elsewhere
(:mod:`maxmargin.solvers.multipliers`). Some hundred rows take less time here than an array
function of NumPy takes to begin.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from maxmargin.backends.compiled import njit
from maxmargin.losses import Shape

_FLAT = 0.3  # slope at the end of a step, over that at its beginning, that is small enough
_TRIES = 60
_STEEP, _ON, _FAR = 0.3, 2.0, 8.0  # a step goes on where its end is as steep, up to so far
_SUMS = {"reassoc", "contract"}  # several sums that need not wait for each other


class RowLosses(NamedTuple):
    """The losses of some rows: targets, costs, and the slopes that they are held near.

    ``of_margins`` says whether they are losses of ``y f`` or of ``f - y``.
    """

    y: np.ndarray
    cost: np.ndarray
    of_margins: bool
    shape: Shape
    centre: np.ndarray
    nearness: float


@njit(cache=True, nogil=True, error_model="numpy", inline="always")
def _slope_and_curvature(losses, i, value):
    """Slope of a row's loss along its margin or residual, and the curvature."""
    low, high, linear, threshold, quadratic, entropy = losses.shape
    y = losses.y[i]
    u = y * value if losses.of_margins else value - y
    if entropy > 0.0:
        span = high - low
        rate = span / entropy
        wrong = 1.0 / (1.0 + math.exp(rate * (u - linear)))
        return high - span * wrong, span * rate * wrong * (1.0 - wrong)
    nearness = losses.nearness
    s = u - linear
    if nearness > 0.0:
        s += nearness * losses.centre[i]
    if threshold > 0.0:
        s = math.copysign(max(abs(s) - threshold, 0.0), s)
    bend = 1.0 / (nearness + quadratic)
    straight = threshold > 0.0 and s == 0.0
    s *= bend
    if s <= low:
        return low, 0.0
    if s >= high:
        return high, 0.0
    return s, 0.0 if straight else bend


@njit(cache=True, nogil=True, error_model="numpy")
def slopes(losses, f):
    """Slopes along the margins or residuals of values f."""
    out = np.empty(len(f))
    for i in range(len(f)):
        out[i] = _slope_and_curvature(losses, i, f[i])[0]
    return out


@njit(cache=True, nogil=True, error_model="numpy")
def slopes_and_curvatures(losses, f):
    """Slopes and curvatures along values f, each times its row's cost."""
    slope = np.empty(len(f))
    curvature = np.empty(len(f))
    for i in range(len(f)):
        s, bend = _slope_and_curvature(losses, i, f[i])
        cost = losses.cost[i]
        slope[i] = cost * s * losses.y[i] if losses.of_margins else cost * s
        curvature[i] = cost * bend
    return slope, curvature


@njit(cache=True, nogil=True, error_model="numpy", fastmath=_SUMS)
def _slope_at(t, losses, f, along, base, bend):
    """Slope of the objective so far along a step."""
    total = 0.0
    for i in range(len(f)):
        s, _ = _slope_and_curvature(losses, i, f[i] + t * along[i])
        if losses.of_margins:
            s *= losses.y[i]
        total += losses.cost[i] * s * along[i]
    return total + base + t * bend


@njit(cache=True, nogil=True, error_model="numpy")
def reach(losses, f, along, base, bend, promise):
    """How far to go along a step until it hardly falls any more, and the slope there.

    Values change by ``along``; what is not a loss has the slope ``base + t bend``. At the beginning
    the whole falls with a slope of ``promise``.
    """
    low, below = 0.0, -promise
    t, end = 1.0, _slope_at(1.0, losses, f, along, base, bend)
    while end < -_STEEP * promise and t < _FAR:  # it still falls: go on
        low, below = t, end
        t *= _ON
        end = _slope_at(t, losses, f, along, base, bend)
    if end > _FLAT * promise:
        high, above, rising = t, end, True
        for _ in range(_TRIES):  # the secant; an end that stays counts half the next time
            t = low + below / (below - above) * (high - low)
            end = _slope_at(t, losses, f, along, base, bend)
            if abs(end) <= _FLAT * promise:
                break
            if end < 0:
                low, below = t, end
                if not rising:
                    above *= 0.5
            else:
                high, above = t, end
                if rising:
                    below *= 0.5
            rising = end > 0
    return t, end
