"""Kernel logistic regression: both objectives in long double, and the best that L-BFGS attains.

The coefficients give the primal. The dual, a lower bound, is held against what L-BFGS attains from
there in coordinates of the Gram matrix's factor. Probabilities are those of the values.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import minimize

from benchmarks.certify.data import (
    EPS,
    LONG_EPS,
    Data,
    classes_of,
    in_form,
    kernel_with_formula,
    points,
    sample_weights,
    some_rows,
    tolerance,
)
from benchmarks.certify.exact import factor
from benchmarks.certify.judge import Claims, Problem
from maxmargin import KernelLogisticRegression


def problem(random: np.random.Generator) -> Problem:
    """Make a problem of two or three classes, the latter at once or one against the rest."""
    n = some_rows(random)
    X, scale, about = points(random, n, tame=bool(random.random() < 0.5))
    classes = int(random.choice([2, 2, 3]))
    y = classes_of(random, X, scale, classes)
    weight = sample_weights(random, n)
    X, form = in_form(random, X)
    kernel, formula = kernel_with_formula(random, X.shape[1], scale)
    model = KernelLogisticRegression(
        float(10.0 ** random.uniform(-3, 4)),
        kernel=kernel,
        tol=tolerance(random, 1e-4, -8),
        fit_intercept=bool(random.random() < 0.7),
        multiclass=str(random.choice(["multinomial", "multinomial", "ovr"])),
        solver=str(random.choice(["auto", "newton-cholesky", "newton-cg"])),
        n_jobs=1,
    )
    data = Data(X, y, weight, formula)
    return Problem(
        f"{n}x{X.shape[1]} {form}, {classes} classes, {about}, {model!r}",
        lambda: model.fit(X, y, sample_weight=weight),
        lambda fitted, claims: _judge(data, fitted, claims),
    )


def _judge(data: Data, fitted: KernelLogisticRegression, claims: Claims) -> None:
    certificate = fitted.certificate_
    claims.converged = certificate.converged
    index, K = np.searchsorted(fitted.classes_, data.y), len(fitted.classes_)
    gram, cost = data.gram, fitted.C * data.weights * fitted.class_weight_[index]
    F = factor(gram)
    parts = certificate.parts or (certificate,)
    several = K > 2 and fitted.scheme_ is None
    for k, part in enumerate(parts):
        if part.definiteness == "indefinite":
            continue
        own = slice(0, K) if several else slice(k, k + 1)
        A, b = fitted.dual_coef_[own].T.astype(np.longdouble), fitted.intercept_[own]
        label = index if several else np.where(index == (1 if K == 2 else k), 1.0, -1.0)

        def loss(f: np.ndarray, label: np.ndarray = label) -> tuple[Any, np.ndarray]:
            if not several:
                u = label * f[:, 0]
                each, slope = np.logaddexp(0, -u), -label / (1 + np.exp(np.clip(u, -700, 700)))
                return cost @ each, (cost * slope)[:, None]
            rows = np.arange(len(f))
            top = f.max(axis=1, keepdims=True)
            p = np.exp(f - top)
            each = (top + np.log(p.sum(axis=1, keepdims=True)))[:, 0] - f[rows, label]
            p /= p.sum(axis=1, keepdims=True)
            p[rows, label] -= 1
            return cost @ each, cost[:, None] * p

        values = gram @ A
        primal = (A * values).sum() / 2 + loss(values + b)[0]

        def objective(theta: np.ndarray, loss: Any = loss, m: int = A.shape[1]) -> Any:
            w, c = np.split(theta.reshape(-1, m), [F.shape[1]])
            total, slope = loss(F @ w + c)
            free = slope.sum(axis=0, keepdims=True) * fitted.fit_intercept
            gradient = np.vstack([w + F.T @ slope, free])
            return float(total + (w * w).sum() / 2), gradient.astype(np.float64).ravel()

        start = np.vstack([F.T @ A, b[None]]).astype(np.float64).ravel()
        limits = {"maxiter": 200, "gtol": 1e-12, "ftol": 0.0}
        found = minimize(objective, start, jac=True, method="L-BFGS-B", options=limits)
        root = np.sqrt(np.abs(np.diag(gram)))
        size = np.abs(A).T @ root
        unit = float(size @ size + 2 * (cost @ root) * size.max())
        # F F' is the Gram matrix but for its smallest eigenvalues
        lost = np.abs(gram - (F @ F.T)).max() * float(np.abs(A).sum()) * 2 * cost.sum()
        room = LONG_EPS * 100 * unit + EPS * 16 * abs(float(primal))
        known = room + float(lost) + 1e-13 * unit
        claims.sure(f"nan in {part}", not np.isnan([part.primal, part.dual, part.gap]).any())
        claims.equal("primal", primal, part.primal, room + part.rounding)
        best = min(float(primal), float(found.fun))
        claims.at_most("dual above what is attained", part.dual, best + part.rounding, known)
        claims.at_most("gap", primal - best, part.gap + part.rounding, known)
        if part.converged:
            scale = max(abs(primal), abs(best), 1e-300)
            claims.to_tol("relative gap", (primal - best) / scale, part.tol, known / scale)
    p = fitted.predict_proba(data.X)
    claims.equal("sums of probabilities", np.ones(len(p)), p.sum(axis=1), 1e-12)
    if fitted.scheme_ is None or K == 2:
        f = fitted.decision_function(data.X)
        f = np.column_stack([np.zeros(len(p)), f]) if K == 2 else f
        f = np.exp(f - f.max(axis=1, keepdims=True))
        claims.equal("probabilities", f / f.sum(axis=1, keepdims=True), p, 1e-12)
