"""Whether classes can be separated: `is_separable` and perceptrons, with their proofs.

A separator is checked row by row, a certificate that there is none by the point that both classes
share, each in long double. A perceptron that says "separated" or "recurring" is checked likewise.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.certify.data import EPS, Data, classes_of, eps_of, in_form, points, some_rows
from benchmarks.certify.judge import Claims, Problem
from maxmargin import Perceptron, is_separable


def problem(random: np.random.Generator) -> Problem:
    """Make a problem that has an answer more often than not."""
    n = some_rows(random, 30)
    X, scale, about = points(random, n, tame=bool(random.random() < 0.7))
    y = classes_of(random, X, scale, 2)
    if random.random() < 0.5:
        rule = X @ random.normal(size=X.shape[1])
        y = (rule > np.median(rule)).astype(int)
        y[:2] = 0, 1
    X, form = in_form(random, X)
    intercept = bool(random.random() < 0.7)
    data, about = Data(X, y, None), f"{n}x{X.shape[1]} {form}, {about}, intercept {intercept}"
    if random.random() < 0.5:
        return Problem(
            about,
            lambda: _verdict(X, y, intercept),
            lambda found, claims: _separable(data, found, intercept, claims),
        )
    order = str(random.choice(["cyclic", "shuffled", "misclassified"]))
    model = Perceptron(fit_intercept=intercept, order=order, tol=None, max_iter=300, n_jobs=1)
    return Problem(
        f"{about}, {model!r}",
        lambda: model.fit(X, y),
        lambda fitted, claims: _perceptron(data, fitted, claims),
    )


def _verdict(X: Any, y: np.ndarray, intercept: bool) -> Any:
    try:
        return is_separable(X, y, fit_intercept=intercept)
    except RuntimeError:  # neither is proven, which is an answer
        return None


def _separable(data: Data, found: Any, intercept: bool, claims: Claims) -> None:
    if found is None:
        return
    claims.converged = True
    X, sign = data.dense, np.where(data.y == 1, 1.0, -1.0)
    if found:
        values = sign * (X @ found.coef + (found.intercept or 0.0))
        claims.sure(f"a row on the wrong side: {values.min()}", bool(values.min() > 0))
        margin = values.min() / np.sqrt((found.coef.astype(np.longdouble) ** 2).sum())
        size = np.linalg.norm(found.coef)
        doubt = EPS * (X.shape[1] + 2) * (np.abs(X) @ np.abs(found.coef)).max() / size
        claims.sure(f"margin: {found.margin} for {margin}", bool(0 < found.margin <= margin))
        claims.equal("margin", margin, found.margin, 1e-6 * margin + 3 * doubt)
    else:
        weights = found.certificate.astype(np.longdouble)
        claims.sure("a negative weight", bool((weights >= 0).all()))
        reach = X.max(axis=0) - X.min(axis=0) if intercept else np.abs(X).max(axis=0)
        off = np.abs((sign * weights) @ X)
        known = EPS * 64 * len(X) * np.abs(X).max(axis=0)
        claims.at_most("combination", (off - 1e-8 * reach - known).max(), 0.0)
        if intercept:
            claims.equal("sum", 1.0, float(weights[sign > 0].sum()), 1e-8)
            claims.equal("sum", 1.0, float(weights[sign < 0].sum()), 1e-8)


def _perceptron(data: Data, fitted: Perceptron, claims: Claims) -> None:
    certificate = fitted.certificate_
    claims.converged = certificate.converged
    X, sign = data.dense, np.where(data.y == fitted.classes_[1], 1.0, -1.0)
    w, b = fitted.coef_[0], fitted.intercept_[0]
    values = sign * (X @ w + b)
    noise = 8 * eps_of(w) * X.shape[1] * (np.abs(X) @ np.abs(w) + np.abs(b))
    if certificate.status == "separated":
        claims.sure(f"a row on the wrong side: {values.min()}", bool((values > -noise).all()))
        claims.equal("mistakes", 0, certificate.mistakes, 0)
    if certificate.status == "recurring":
        found = _verdict(data.X, data.y, fitted.fit_intercept)
        claims.sure("recurring, and separable", not found)
