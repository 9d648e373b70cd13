"""Probabilities: they sum to one, rise with the value, and are the best of their form.

Platt's numbers and the steps of isotonic regression are held against SciPy and scikit-learn on the
same values; of estimators, what their documentation says of their probabilities.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

from benchmarks.certify.data import Data, classes_of, points, some_rows
from benchmarks.certify.judge import Claims, Problem
from maxmargin import SVC, AdaBoostClassifier, ExtraTreesClassifier, LogisticRegression, NuSVC
from maxmargin.kernels import RBF
from maxmargin.svm.probability import platt


def problem(random: np.random.Generator) -> Problem:
    """Make a problem of an estimator, or of Platt's numbers alone."""
    if random.random() < 0.3:
        return _platt(random)
    n = some_rows(random, 60) + 11
    X, scale, about = points(random, n, tame=True)
    classes = int(random.choice([2, 2, 3]))
    y = classes_of(random, X, scale, classes)
    y[: 5 * classes] = np.arange(5 * classes) % classes  # so that every fold sees every class
    kind = str(random.choice(["sigmoid", "isotonic", "temperature", "consistent"]))
    common = {"kernel": RBF(float(1.0 / scale**2)), "n_jobs": 1, "random_state": 0}
    models: list[Any] = [
        SVC(C=float(10.0 ** random.uniform(-2, 3)), probability=kind, **common),
        NuSVC(nu=0.1, probability=kind, **common),
        LogisticRegression(C=float(10.0 ** random.uniform(-2, 3)), n_jobs=1),
        AdaBoostClassifier(n_estimators=int(random.integers(1, 30))),
        ExtraTreesClassifier(10, random_state=0, n_jobs=1),
    ]
    model = models[random.choice(len(models), p=[0.4, 0.15, 0.25, 0.1, 0.1])]
    new = X[random.integers(n, size=20)] + 0.3 * scale * random.normal(size=(20, X.shape[1]))
    data = Data(X, y, None)
    return Problem(
        f"{n}x{X.shape[1]}, {classes} classes, {about}, {model!r}",
        lambda: model.fit(X, y),
        lambda fitted, claims: _judge(data, fitted, np.vstack([X, new]), claims),
    )


def _judge(data: Data, fitted: Any, X: np.ndarray, claims: Claims) -> None:
    claims.converged = True
    p, K = fitted.predict_proba(X), len(fitted.classes_)
    claims.sure("not a number", not np.isnan(p).any())
    claims.at_most("below zero", -p.min(), 0.0)
    claims.equal("sums", np.ones(len(p)), p.sum(axis=1), 1e-12)
    if hasattr(fitted, "predict_log_proba"):
        claims.equal("logarithms", p, np.exp(fitted.predict_log_proba(X)), 1e-9)
    kind = getattr(fitted, "probability", "")
    if kind == "consistent" or isinstance(fitted, LogisticRegression | ExtraTreesClassifier):
        said = fitted.classes_[p.argmax(axis=1)]
        two = np.sort(p, axis=1)
        apart = two[:, -1] - two[:, -2] > 1e-9
        claims.sure("predict is another class", bool((said == fitted.predict(X))[apart].all()))
    if hasattr(fitted, "decision_function") and K == 2:
        order = np.argsort(fitted.decision_function(X))
        steps = np.diff(p[order, 1])
        falls = max(-steps.min(initial=0.0), 0.0)
        rises = max(steps.max(initial=0.0), 0.0)
        # Platt's A has either sign where values say nothing
        claims.at_most("not monotone", min(falls, rises), 0.0, 1e-12)
        if kind in ("isotonic", "temperature", "consistent") or not kind:
            claims.at_most("falls", falls, 0.0, 1e-12)
    if isinstance(fitted, LogisticRegression) and K == 2:
        claims.equal("logistic link", expit(fitted.decision_function(X)), p[:, 1], 1e-12)


def _platt(random: np.random.Generator) -> Problem:
    n = int(random.integers(4, 100))
    side = np.where(random.random(n) < random.uniform(0.1, 0.9), 1.0, -1.0)
    side[:2] = 1, -1
    value = 10.0 ** random.uniform(-3, 3) * (side * random.uniform(0, 2) + random.normal(size=n))
    weight = np.ones(n) if random.random() < 0.5 else random.uniform(0.1, 3.0, size=n)

    def judge(found: tuple[float, float], claims: Claims) -> None:
        claims.converged = True
        above, below = weight[side > 0].sum(), weight[side < 0].sum()
        target = np.where(side > 0, (above + 1) / (above + 2), 1 / (below + 2))
        unit = np.abs(value).max() or 1.0

        def loss(AB: np.ndarray) -> tuple[float, np.ndarray]:
            z = AB[0] * value / unit + AB[1]
            p = expit(-z)
            total = weight @ (target * np.logaddexp(0, z) + (1 - target) * np.logaddexp(0, -z))
            slope = weight * (target - p)
            return float(total), np.array([slope @ value / unit, slope.sum()])

        own, slope = loss(np.array([found[0] * unit, found[1]]))
        best = minimize(loss, [0.0, 0.0], jac=True, method="BFGS", options={"gtol": 1e-10}).fun
        claims.at_most("loss of Platt's numbers", own - best, 1e-8 * weight.sum())
        claims.to_tol("slope", np.abs(slope).max(), 1e-4 * weight.sum())

    about = f"Platt, {n} values up to {np.abs(value).max():.2g}"
    return Problem(about, lambda: platt(value, side, weight), judge)
