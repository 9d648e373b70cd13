"""Minimum classification error: the smoothed count and its gradient, in long double.

No minimum is claimed, only that the answer is stationary. For two classes, one column and no
penalty the smoothed count is never below the least count of errors, which is found by brute force.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.certify.data import (
    EPS,
    LONG_EPS,
    Data,
    classes_of,
    in_form,
    points,
    sample_weights,
    some_rows,
    tolerance,
)
from benchmarks.certify.judge import Claims, Problem
from maxmargin import MCEClassifier


def problem(random: np.random.Generator) -> Problem:
    """Make a problem of two to four classes, of any solver."""
    n = some_rows(random)
    X, scale, about = points(random, n, tame=bool(random.random() < 0.5))
    classes = int(random.choice([2, 2, 3, 4]))
    y = classes_of(random, X, scale, classes)
    weight = sample_weights(random, n)
    if random.random() < 0.3:
        factors = 10.0 ** random.uniform(-8, 8, size=X.shape[1])
        X = X * factors
        about += f", columns times {factors.min():.2g} to {factors.max():.2g}"
    X, form = in_form(random, X)
    solver = str(random.choice(["lbfgs", "lbfgs", "gradient_descent", "sgd"]))
    options: dict[str, Any] = {}
    if solver != "sgd" and random.random() < 0.5:
        options["alpha"] = float(10.0 ** random.uniform(-6, 1))
    if solver != "lbfgs" and random.random() < 0.2:
        options["step_size"] = str(random.choice(["constant", "inverse_sqrt", "inverse"]))
        options["units"] = str(random.choice(["data", "standardised"]))
    if random.random() < 0.3:
        options["class_weight"] = dict(enumerate(10.0 ** random.uniform(-1, 1, size=classes)))
    model = MCEClassifier(
        slope=float(10.0 ** random.uniform(-1, 1)),
        eta=float(10.0 ** random.uniform(-1, 1)),
        tol=tolerance(random, 0.0, -8) or None,
        solver=solver,
        n_restarts=int(random.integers(4)),
        init=str(random.choice(["least_squares", "zero"])),
        fit_intercept=bool(random.random() < 0.8),
        random_state=0,
        **options,
    )
    data = Data(X, y, weight)
    return Problem(
        f"{n}x{X.shape[1]} {form}, {classes} classes, {about}, {model!r}",
        lambda: model.fit(X, y, sample_weight=weight),
        lambda fitted, claims: _judge(data, fitted, claims),
    )


def _judge(data: Data, fitted: MCEClassifier, claims: Claims) -> None:
    certificate, classes = fitted.certificate_, fitted.classes_
    claims.converged = certificate.converged
    index = np.searchsorted(classes, data.y)
    weight = data.weights.astype(np.longdouble)
    if fitted.class_weight is not None:
        weight = weight * np.array([fitted.class_weight[int(k)] for k in classes])[index]
    rows = weight > 0
    X, index, share = data.dense[rows], index[rows], (weight / weight.sum())[rows]
    coef = fitted.coef_.toarray() if sp.issparse(fitted.coef_) else fitted.coef_
    W, b, own = coef.astype(np.longdouble), fitted.intercept_, np.arange(len(X))
    values = X @ W.T + b
    off = EPS * 16 * float((np.abs(W) @ np.abs(X).max(axis=0) + np.abs(b)).max())
    two = len(classes) == 2
    if two:
        sign = np.where(index == 1, 1.0, -1.0)
        towards, d, ahead = -sign[:, None], -sign * values[:, 0], -sign * values[:, 0]
        wrong = (values[:, 0] > 0) != (index == 1)
    else:
        rivals = values.copy()
        rivals[own, index] = -np.inf
        best = rivals.max(axis=1)
        towards = np.exp(fitted.eta * (rivals - best[:, None]))
        total = towards.sum(axis=1)
        towards /= total[:, None]
        towards[own, index] = -1.0
        d = best + np.log(total / (len(classes) - 1)) / fitted.eta - values[own, index]
        ahead = best - values[own, index]
        wrong = values.argmax(axis=1) != index
    loss = 1 / (1 + np.exp(-fitted.slope * d))
    mean = share @ X if fitted.fit_intercept else np.zeros(X.shape[1])
    scale = np.sqrt(share @ (X - mean) ** 2)
    rounded = EPS * np.sqrt(len(X)) * np.abs(mean)
    varying = scale > 8 * rounded  # of other columns nothing is claimed
    V = (W * scale)[:, varying]
    value = share @ loss + fitted.alpha / 2 * (V**2).sum()
    room = fitted.slope * off + 1e-12 * value + LONG_EPS
    claims.equal("objective", value, certificate.objective, room)
    claims.equal("loss", value, fitted.loss_, room)
    claims.equal("loss of the best start", fitted.losses_.min(), fitted.loss_, 0.0)
    unsure = share[np.abs(ahead) <= 2 * off].sum()
    claims.equal("training error", share[wrong].sum(), fitted.train_error_, unsure + 1e-12)
    if not unsure:
        claims.sure("separated", fitted.separated_ == (not wrong.any()))
    slope = (fitted.slope * share * loss * (1 - loss))[:, None] * towards
    gradient = slope.T @ ((X - mean)[:, varying] / scale[varying]) + fitted.alpha * V
    if fitted.fit_intercept:
        gradient = np.column_stack([gradient, slope.sum(axis=0)])
    largest = np.abs(gradient).max(initial=0.0)
    # values are rounded, and sums over columns far from zero beside their scales
    room = (fitted.slope**2 + fitted.slope * fitted.eta) * off + 1e-12 * fitted.slope
    room += 16 * (rounded[varying] / scale[varying]).max(initial=EPS) * np.abs(slope).sum()
    if not (~varying & (scale > 2 * rounded)).any():
        claims.equal("gradient", largest, certificate.gradient_norm, room)
    if claims.converged:
        claims.to_tol("gradient", largest, certificate.tol, room)
    nowhere = two and fitted.fit_intercept and not fitted.alpha
    claims.sure("attained", certificate.attained == (not nowhere))
    if nowhere and X.shape[1] == 1:
        cuts = np.append(X[:, 0], np.inf)
        right = (X[:, 0][:, None] >= cuts) == (index == 1)[:, None]
        errors = share @ ~right
        least = np.minimum(errors, 1 - errors).min()
        claims.at_most("least count of errors", least, certificate.objective, room + 1e-12)
