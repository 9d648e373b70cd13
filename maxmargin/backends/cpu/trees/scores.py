"""How good a test is: information gain, the same normalised, and the fall of Gini or variance.

With weights ``W = L + R`` of a node and its two children, ``S`` sums over classes c and outputs:

    Gini        S = sum w_c^2          score  S_L / L + S_R / R
    variance    S = (sum w y)^2        score  S_L / L + S_R / R
    entropy     S = sum w_c log w_c    score  gain = W H_W - L H_L - R H_R,  W H = W log W - S
    normalised  S = sum w_c log w_c    score  2 I / (H_class + H_test),      I = gain / W

Absolute errors and Poisson deviances are in :mod:`~maxmargin.backends.cpu.trees.ordered`.

``H_test`` is the entropy of the shares L / W and R / W. References: seed 000; Geurts, Ernst and
Wehenkel, Extremely randomized trees, Machine Learning 63, 2006 (appendix A; Wehenkel's score).
"""

from __future__ import annotations

import numpy as np

from maxmargin.backends.compiled import INNER, njit

SQUARES, ENTROPY, NORMALISED, ABSOLUTE, POISSON = range(5)
_BITS = 1.0 / np.log(2.0)
TIE = 1e-10  # share of what a score can be within which two are equally good


@njit(cache=True, forceinline=True, **INNER)
def term(criterion, weight):
    """Return what a class of this weight adds to S."""
    if criterion == SQUARES:
        return weight * weight
    return weight * np.log(weight) if weight > 0.0 else 0.0


@njit(cache=True, forceinline=True, **INNER)
def score(criterion, S_left, S_right, left, right, S, outputs):
    """Return the score of a test."""
    if criterion == SQUARES:
        return S_left / left + S_right / right
    whole = left + right
    spread = whole * np.log(whole) - left * np.log(left) - right * np.log(right)
    gain = outputs * spread - S + S_left + S_right
    if criterion == ENTROPY:
        return gain
    entropy = outputs * whole * np.log(whole) - S
    return 2.0 * gain / (entropy + outputs * spread)


@njit(cache=True, forceinline=True, **INNER)
def scale(criterion, S, whole, outputs):
    """Return the size of scores in a node, for ties."""
    if criterion == SQUARES:
        return S / whole
    return outputs * whole if criterion == ENTROPY else 1.0


@njit(cache=True, forceinline=True, **INNER)
def impurity(criterion, S, whole, outputs):
    """Return the impurity of a node of classes, the mean over the outputs; entropies in bits."""
    if criterion == SQUARES:
        return max(1.0 - S / (outputs * whole * whole), 0.0)
    return max(np.log(whole) - S / (outputs * whole), 0.0) * _BITS


@njit(cache=True, forceinline=True, **INNER)
def decrease(criterion, S_left, S_right, left, right, S, outputs):
    """Return by how much a test lowers the impurity, times the weight of its node."""
    if criterion == SQUARES:
        fall = S_left / left + S_right / right - S / (left + right)
    else:
        fall = score(ENTROPY, S_left, S_right, left, right, S, outputs) * _BITS
    return max(fall / outputs, 0.0)
