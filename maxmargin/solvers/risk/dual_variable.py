"""One variable of a dual, in compiled loops: where its own part of the objective is least.

Row i's variable ``beta_i = -c_i s_i du_i/df_i`` (:mod:`maxmargin.risk`) has, for a loss whose
conjugate is a :class:`maxmargin.losses.Shape`, the function

    h(b) = gradient b + curvature b^2 / 2 + threshold |b|    in [low, high]

or, with the entropy, ``span entropy (p log p + (1-p) log(1-p))`` in place of the last term, for
``b = low + span p``. The coordinate descent of :mod:`maxmargin.solvers.risk.dual_descent` and the
steps of :mod:`maxmargin.solvers.risk.pegasos` both go to its minimum.
"""

from __future__ import annotations

import numpy as np

from maxmargin.backends.compiled import njit

_LOGITS, _SAME_LOGIT = 60, 1e-12  # steps for a logit, and one that is too short to count


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
