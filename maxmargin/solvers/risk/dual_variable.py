"""One variable of a dual, in compiled loops: where its own part of the objective is least.

Row i's variable ``beta_i = -c_i s_i du_i/df_i`` (:mod:`maxmargin.risk`) has, for a loss whose
conjugate is a :class:`maxmargin.losses.Shape`, the function

    h(b) = pull b + bend b^2 / 2 + threshold |b|    in [low, high]

or, with the entropy, ``h(b) = pull b + bend b^2 / 2 + span entropy (p log p + (1-p) log(1-p))`` for
``b = low + span p``. The coordinate descent of :mod:`maxmargin.solvers.risk.dual_descent` and the
steps of :mod:`maxmargin.solvers.risk.pegasos` both go to its minimum.
"""

from __future__ import annotations

import numpy as np

from maxmargin.backends.compiled import njit

_LOGITS, _SAME_LOGIT = 60, 1e-12  # steps for a logit, and one that is too short to count


@njit(cache=True, nogil=True)
def least(pull, bend, low, high, threshold, entropy):
    """Where h is least."""
    if entropy > 0:
        return _least_entropy(pull, bend, low, high, entropy)
    if bend > 0:
        b, cut = -pull / bend, threshold / bend
        b = b - cut if b > cut else (b + cut if b < -cut else 0.0)
    else:
        b = high if pull < -threshold else (low if pull > threshold else 0.0)
    return min(max(b, low), high)


@njit(cache=True, nogil=True)
def _least_entropy(pull, bend, low, high, entropy):
    """Where h with the entropy is least.

    For the logit z of p, ``entropy z + pull + bend b = 0``: Newton's method, kept within bounds.
    """
    span = high - low
    if span <= 0:
        return low
    at_low, rise = pull + bend * low, bend * span
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
def height(b, pull, bend, low, high, threshold, entropy):
    """``h(b)``."""
    value = b * (pull + 0.5 * bend * b) + threshold * abs(b)
    if entropy > 0 and low < b < high:
        p = (b - low) / (high - low)
        value += entropy * (high - low) * (p * np.log(p) + (1.0 - p) * np.log1p(-p))
    return value
