"""The maximum-likelihood fit of a sigmoid to values, compiled: a machine may have hundreds."""

from __future__ import annotations

import math

from maxmargin.backends.compiled import INNER, njit

_STEPS = 100
_SLOPE = 1e-5  # largest entry of the gradient at the end,
_SHARE = 1e-9  # or over the weight of all rows
_RIDGE = 1e-12


@njit(cache=True, nogil=True, error_model="numpy")
def fit_sigmoid(value, target, weight, start, shifted):
    """Minimise the cross entropy of the targets under ``1 / (1 + exp(A f + B))``; returns A and B.

    Newton's method with backtracking from A = 0 and B = ``start``, where B stays if not shifted.
    """
    n = value.shape[0]
    total = 0.0
    for i in range(n):
        total += weight[i]
    A, B = 0.0, start
    loss = _loss(value, target, weight, A, B)
    for _ in range(_STEPS):
        gradient_A, gradient_B, AA, AB, BB = 0.0, 0.0, _RIDGE, 0.0, _RIDGE
        for i in range(n):
            f = value[i]
            z = A * f + B
            e = math.exp(-abs(z))
            p = e / (1.0 + e) if z >= 0.0 else 1.0 / (1.0 + e)
            slope = weight[i] * (target[i] - p)
            curvature = weight[i] * e / ((1.0 + e) * (1.0 + e))
            gradient_A += f * slope
            gradient_B += slope
            AA += f * f * curvature
            AB += f * curvature
            BB += curvature
        if not shifted:
            gradient_B, AB, BB = 0.0, 0.0, 1.0
        if max(abs(gradient_A), abs(gradient_B)) < max(_SLOPE, _SHARE * total):
            break
        determinant = AA * BB - AB * AB
        if not determinant > 0.0:
            break
        step_A = -(BB * gradient_A - AB * gradient_B) / determinant
        step_B = -(AA * gradient_B - AB * gradient_A) / determinant
        along = gradient_A * step_A + gradient_B * step_B
        step = 1.0
        while step >= 1e-10:
            new = _loss(value, target, weight, A + step * step_A, B + step * step_B)
            if new < loss + 1e-4 * step * along:
                break
            step /= 2.0
        if step < 1e-10:
            break
        A += step * step_A
        B += step * step_B
        loss = new
    return A, B


@njit(**INNER)
def _loss(value, target, weight, A, B):
    """Cross entropy, without exponentials that overflow."""
    loss = 0.0
    for i in range(value.shape[0]):
        z = A * value[i] + B
        loss += weight[i] * (target[i] * z + max(-z, 0.0) + math.log1p(math.exp(-abs(z))))
    return loss
