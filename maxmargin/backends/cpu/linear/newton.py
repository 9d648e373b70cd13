"""A whole step of Newton's method in one compiled call, where rows and features are few.

What :class:`~maxmargin.solvers.risk.newton_steps.NewtonSteps` does with array functions, for
problems that are solved in less time than the interpreter takes to call these.
"""

from __future__ import annotations

import numpy as np

from maxmargin.backends.compiled import njit
from maxmargin.backends.cpu.cholesky import cholesky, substitute
from maxmargin.backends.cpu.linear.design import dense_gram
from maxmargin.backends.cpu.linear.losses import reach, slopes_and_curvatures


@njit(cache=True, nogil=True, error_model="numpy")
def newton_step(X, constant, losses, penalised, tilt, theta, f, least):
    """Go along Newton's step from weights with values f, if it promises more than the least.

    Returns the weights and values there, how far it went and the slope at its end, what it had
    promised, and its model: slopes, curvatures, and the values along the whole step. Without a
    step the promise is zero, and not a number where the matrix is singular.
    """
    n, features = X.shape
    width = len(theta)
    slope, curvature = slopes_and_curvatures(losses, f)
    along = np.zeros(n)
    matrix = np.zeros((features + 1, features + 1))
    dense_gram(X, curvature, 0, n, matrix)
    matrix[features] *= constant
    matrix[features, features] *= constant
    gradient = penalised * theta + tilt
    for i in range(n):
        for j in range(features):
            gradient[j] += slope[i] * X[i, j]
    if width > features:
        gradient[features] += constant * slope.sum()
    for j in range(width):
        matrix[j, j] += penalised[j]
    step = -gradient
    if not cholesky(matrix[:width, :width]):
        return theta, f, 0.0, 0.0, np.nan, slope, curvature, along
    substitute(matrix[:width, :width], step)
    promise = 0.0
    for j in range(width):
        promise -= gradient[j] * step[j]
    if not least < promise < np.inf:
        return theta, f, 0.0, 0.0, 0.0, slope, curvature, along
    base = 0.0
    of_penalty = 0.0
    for j in range(width):
        base += (penalised[j] * theta[j] + tilt[j]) * step[j]
        of_penalty += penalised[j] * step[j] * step[j]
    for i in range(n):
        value = constant * step[features] if width > features else 0.0
        for j in range(features):
            value += X[i, j] * step[j]
        along[i] = value
    t, end = reach(losses, f, along, base, of_penalty, promise)
    return theta + t * step, f + t * along, t, end, promise, slope, curvature, along
