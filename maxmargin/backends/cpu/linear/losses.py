"""Compiled loops over losses: slopes and curvatures of all rows, and one row's dual variable.

Every loss that has a :class:`~maxmargin.losses.Shape` is one and the same function of the slope:

    V_k(u) = max_s  s u - V*(s) - nearness (s - centre)^2 / 2

which is the loss itself where the nearness is zero, and an envelope of it elsewhere
(:mod:`maxmargin.solvers.risk.multipliers`). Some hundred rows take less time here than an array
function of NumPy takes to begin.

Row i's variable in the dual, ``beta_i = -c_i s_i du_i/df_i`` (:mod:`maxmargin.risk`), has the
function

    h(b) = gradient b + curvature b^2 / 2 + threshold |b|    in [low, high]

or, with the entropy, ``span entropy (p log p + (1-p) log(1-p))`` in place of the last term, for
``b = low + span p``. Dual descent and Pegasos go to its minimum.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from maxmargin.backends.compiled import njit

FLAT = 0.3  # slope at the end of a step, over that at its beginning, that is small enough
_TRIES = 60
STEEP, ON, FAR = 0.3, 2.0, 8.0  # a step goes on where its end is as steep, up to so far
_LOGITS, _SAME_LOGIT = 60, 1e-12  # steps for a logit, and one that is too short to count
_SUMS = {"reassoc", "contract"}  # several sums that need not wait for each other


class RowLosses(NamedTuple):
    """The losses of some rows: targets, costs, and the slopes that they are held near.

    ``of_margins`` says whether they are losses of ``y f`` or of ``f - y``, and ``shape`` has the
    numbers of a :class:`~maxmargin.losses.Shape`.
    """

    y: np.ndarray
    cost: np.ndarray
    of_margins: bool
    shape: tuple[float, ...]
    centre: np.ndarray
    nearness: float


@njit(cache=True, nogil=True, error_model="numpy", inline="always")
def _slope_and_curvature(u, offset, nearness, shape):
    """Slope and curvature at a margin or residual; ``offset`` is the nearness times the centre.

    Without branches that differ from row to row, so that the compiler takes several at a time.
    """
    low, high, linear, threshold, quadratic, entropy = shape
    if entropy > 0.0:
        span = high - low
        rate = span / entropy
        wrong = 1.0 / (1.0 + math.exp(rate * (u - linear)))
        return high - span * wrong, span * rate * wrong * (1.0 - wrong)
    curvature = 1.0 / (nearness + quadratic)
    s = u - linear + offset
    above = s - threshold
    below = s + threshold
    s = (above if above > 0.0 else 0.0) + (below if below < 0.0 else 0.0)
    bent = (s != 0.0) | (threshold == 0.0)
    s *= curvature
    bent &= (s > low) & (s < high)
    s = s if s > low else low
    return s if s < high else high, curvature if bent else 0.0


@njit(cache=True, nogil=True, error_model="numpy")
def slopes(losses, f):
    """Slopes along the margins or residuals of values f."""
    y, _, of_margins, shape, centre, nearness = losses
    out = np.empty(len(f))
    for i in range(len(f)):
        u = y[i] * f[i] if of_margins else f[i] - y[i]
        out[i], _ = _slope_and_curvature(u, nearness * centre[i], nearness, shape)
    return out


@njit(cache=True, nogil=True, error_model="numpy")
def slopes_and_curvatures(losses, f):
    """Slopes and curvatures along values f, each times its row's cost."""
    y, cost, of_margins, shape, centre, nearness = losses
    slope = np.empty(len(f))
    curvature = np.empty(len(f))
    for i in range(len(f)):
        u = y[i] * f[i] if of_margins else f[i] - y[i]
        s, own = _slope_and_curvature(u, nearness * centre[i], nearness, shape)
        slope[i] = cost[i] * (y[i] * s if of_margins else s)
        curvature[i] = cost[i] * own
    return slope, curvature


@njit(cache=True, nogil=True, error_model="numpy", fastmath=_SUMS)
def slope_at(t, losses, f, along, base, curvature):
    """Slope of the objective so far along a step."""
    y, cost, of_margins, shape, centre, nearness = losses
    total = 0.0
    for i in range(len(f)):
        value = f[i] + t * along[i]
        u = y[i] * value if of_margins else value - y[i]
        s, _ = _slope_and_curvature(u, nearness * centre[i], nearness, shape)
        total += cost[i] * (y[i] * s if of_margins else s) * along[i]
    return total + base + t * curvature


@njit(cache=True, nogil=True, error_model="numpy")
def reach(losses, f, along, base, curvature, promise):
    """How far to go along a step until it hardly falls any more, and the slope there.

    Values change by ``along``; what is not a loss has the slope ``base + t curvature``. At the
    beginning the whole falls with a slope of ``promise``.
    """
    low, below = 0.0, -promise
    t, end = 1.0, slope_at(1.0, losses, f, along, base, curvature)
    while end < -STEEP * promise and t < FAR:  # it still falls: go on
        low, below = t, end
        t *= ON
        end = slope_at(t, losses, f, along, base, curvature)
    if end > FLAT * promise:
        high, above, rising = t, end, True
        for _ in range(_TRIES):  # regula falsi, Illinois: an end that stays counts half
            t = low + below / (below - above) * (high - low)
            end = slope_at(t, losses, f, along, base, curvature)
            if abs(end) <= FLAT * promise:
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


@njit(cache=True, nogil=True)
def least(gradient, curvature, low, high, threshold, entropy):
    """Where h is least."""
    if entropy > 0:
        return _least_entropy(gradient, curvature, low, high, entropy)
    if curvature > 0:
        b, cut = -gradient / curvature, threshold / curvature
        b = b - cut if b > cut else (b + cut if b < -cut else 0.0)
    else:
        b = high if gradient < -threshold else (low if gradient > threshold else 0.0)
    return min(max(b, low), high)


@njit(cache=True, nogil=True)
def _least_entropy(gradient, curvature, low, high, entropy):
    """Where h with the entropy is least.

    For the logit z of p, ``entropy z + gradient + curvature b = 0``: Newton's method, kept within
    bounds.
    """
    span = high - low
    if span <= 0:
        return low
    at_low, rise = gradient + curvature * low, curvature * span
    below, above = -(at_low + rise) / entropy, -at_low / entropy
    z = 0.5 * (below + above)
    for _ in range(_LOGITS):
        p = 1.0 / (1.0 + np.exp(-z)) if z > -700.0 else 0.0
        value = entropy * z + at_low + rise * p
        if value < 0:
            below = z
        else:
            above = z
        step = value / (entropy + rise * p * (1.0 - p))
        if abs(step) <= _SAME_LOGIT * max(abs(z), 1.0):
            break
        z -= step
        if not below < z < above:
            z = 0.5 * (below + above)
    return low + span * (1.0 / (1.0 + np.exp(-z)) if z > -700.0 else 0.0)


@njit(cache=True, nogil=True)
def height(b, gradient, curvature, low, high, threshold, entropy):
    """``h(b)``."""
    value = b * (gradient + 0.5 * curvature * b) + threshold * abs(b)
    if entropy > 0 and low < b < high:
        p = (b - low) / (high - low)
        value += entropy * (high - low) * (p * np.log(p) + (1.0 - p) * np.log1p(-p))
    return value
