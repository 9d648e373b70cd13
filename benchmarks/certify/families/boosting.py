"""Boosting: errors, their bounds and margins recounted from the hypotheses; LPBoost by brute force.

AdaBoost and LogitBoost claim a training error and a bound on it, which are recomputed from what
their hypotheses predict. LPBoost claims the largest soft margin of all votes: every stump there is
goes into one linear programme, which SciPy solves.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from scipy.optimize import linprog

from benchmarks.certify.data import Data, classes_of, in_form, points, sample_weights, some_rows
from benchmarks.certify.judge import Claims, Problem
from maxmargin import (
    AdaBoostClassifier,
    DecisionTreeClassifier,
    LogitBoostClassifier,
    LPBoostClassifier,
)


def problem(random: np.random.Generator) -> Problem:
    """Make a problem of two classes, or of three for what takes them."""
    n = some_rows(random)
    X, scale, about = points(random, n)
    kind = str(random.choice(["ada", "ada", "logit", "lp"]))
    classes = 3 if kind != "lp" and random.random() < 0.3 else 2
    y = classes_of(random, X, scale, classes)
    weight = sample_weights(random, n)
    X, form = in_form(random, X)
    rounds = int(random.integers(1, 40))
    if kind == "ada":
        tree = DecisionTreeClassifier(max_depth=2) if random.random() < 0.3 else None
        rate = 1.0 if random.random() < 0.7 else float(10.0 ** random.uniform(-2, 0.5))
        model: Any = AdaBoostClassifier(tree, n_estimators=rounds, learning_rate=rate)
        judge = _ada
    elif kind == "logit":
        loss = str(random.choice(["logistic", "exponential"])) if classes == 2 else "logistic"
        rate = float(random.choice([0.1, 0.5, 1.0]))
        model = LogitBoostClassifier(loss=loss, n_estimators=rounds, learning_rate=rate)
        judge = _logit
    else:
        model = LPBoostClassifier(nu=float(random.choice([0.0, 0.05, 0.2, 0.5])))
        judge = _lp
    data = Data(X, y, weight)
    return Problem(
        f"{n}x{X.shape[1]} {form}, {classes} classes, {about}, {model.set_params(n_jobs=1)!r}",
        lambda: model.fit(X, y, sample_weight=weight),
        lambda fitted, claims: judge(data, fitted, claims),
    )


def _shares(data: Data) -> np.ndarray:
    return (data.weights / data.weights.sum()).astype(np.longdouble)


def _ada(data: Data, fitted: AdaBoostClassifier, claims: Claims) -> None:
    certificate, s = fitted.certificate_, _shares(data)
    claims.converged = certificate.converged
    K, index = len(fitted.classes_), np.searchsorted(fitted.classes_, data.y)
    votes, rows = np.zeros((len(s), K), dtype=np.longdouble), np.arange(len(s))
    u, errors, product = np.zeros(len(s), dtype=np.longdouble), [], np.longdouble(1)
    D = s.copy()
    for one, alpha in zip(fitted.estimators_, fitted.estimator_weights_, strict=True):
        said = np.searchsorted(fitted.classes_, one.predict(data.X))
        right = said == index
        if np.isinf(alpha):
            votes[:], alpha, product = 0, 1.0, np.longdouble(0)
        else:
            u += np.where(right, alpha, -alpha)
            product = s @ np.exp(-u)
            normal = (D * np.exp(np.where(right, -alpha, alpha))).sum()
            D *= np.exp(np.where(right, -alpha, alpha)) / normal
        votes[rows, said] += alpha
        errors.append(s @ (votes.argmax(axis=1) != index))
    room = 1e-9 * (1 + len(errors))
    known = room * (1 + float(product))
    if certificate.bound == np.inf or fitted.estimator_errors_.min() <= np.finfo(float).tiny:
        claims.at_most("bound", product, certificate.bound, known)  # an error is below float64
    else:
        claims.equal("bound", product, certificate.bound, known)
    # a tie in a vote may fall either way by rounding: errors are then known to those rows
    top = np.sort(votes / votes.sum(axis=1, keepdims=True), axis=1)
    tied = float(s[top[:, -1] - top[:, -2] < 1e-9].sum())
    claims.equal("training error", errors[-1], certificate.train_error, tied + 1e-12)
    claims.at_most(
        "training error over its bound", certificate.train_error, certificate.bound, known
    )
    bounds = [bound for bound in fitted.bounds() if bound is not None]
    for lower, upper in itertools.pairwise(bounds):
        claims.at_most("bounds in order", (lower - upper * (1 + 1e-9)).max(), 0.0, 1e-12)
    if certificate.minimum_margin is not None:
        shares = votes / votes.sum(axis=1, keepdims=True)
        own = shares[rows, index].copy()
        shares[rows, index] = -np.inf
        least = (own - shares.max(axis=1))[s > 0].min()
        claims.equal("least margin", least, certificate.minimum_margin, 1e-9)


def _logit(data: Data, fitted: LogitBoostClassifier, claims: Claims) -> None:
    certificate, s = fitted.certificate_, _shares(data)
    claims.converged = certificate.converged
    K, index = len(fitted.classes_), np.searchsorted(fitted.classes_, data.y)
    F = fitted.decision_function(data.X).astype(np.longdouble)
    if K == 2:
        u = np.where(index == 1, F, -F)
        exponential = fitted.loss == "exponential"
        mean = s @ (np.exp(-u) if exponential else np.logaddexp(0, -u) / np.log(2))
        error, tied = s @ (np.where(F > 0, 1, 0) != index), s @ (np.abs(F) < 1e-9)
    else:
        top = F.max(axis=1, keepdims=True)
        own = F[np.arange(len(s)), index]
        each = (top + np.log(np.exp(F - top).sum(axis=1, keepdims=True)))[:, 0] - own
        mean, error = s @ each / np.log(2), s @ (F.argmax(axis=1) != index)
        two = np.sort(F, axis=1)
        tied = s @ (two[:, -1] - two[:, -2] < 1e-9)
        claims.at_most("training error over its bound", error, certificate.bound, 1e-9)
    if K == 2:
        claims.equal("bound", mean, certificate.bound, 1e-9 * (1 + abs(float(mean))))
    claims.equal("training error", error, certificate.train_error, float(tied) + 1e-12)
    claims.at_most(
        "training error over its bound", certificate.train_error, certificate.bound, 1e-9
    )


def _lp(data: Data, fitted: LPBoostClassifier, claims: Claims) -> None:
    certificate, s = fitted.certificate_, _shares(data).astype(np.float64)
    claims.converged = certificate.converged
    X = data.dense.astype(np.float64)
    own = s > 0
    X, s = X[own], s[own]
    sign = np.where(data.y[own] == fitted.classes_[1], 1.0, -1.0)
    said = {}
    for column in X.T:
        for cut in [-np.inf, *np.unique(column)]:
            side = np.where(column > cut, 1.0, -1.0)
            said[side.tobytes()], said[(-side).tobytes()] = side, -side
    H = sign[:, None] * np.array(list(said.values())).T
    n, m = H.shape
    nu = fitted.nu
    cap = np.ones(n) if nu == 0 else np.minimum(s / nu, 1.0)
    # the game: the distribution u, nowhere above cap, on which the best stump has the least edge
    found = linprog(
        np.append(np.zeros(n), 1.0),
        A_ub=np.column_stack([H.T, -np.ones(m)]),
        b_ub=np.zeros(m),
        A_eq=np.append(np.ones(n), 0.0)[None],
        b_eq=[1.0],
        bounds=[*((0.0, c) for c in cap), (-1.0, 1.0)],
        method="highs",
    )
    room = 1e-7
    if found.x is not None:
        u = np.clip(found.x[:n], 0, cap)
        best = float((u @ H).max() / u.sum())
        claims.at_most("soft margin", certificate.margin, best, room)
        value = -np.inf
        a = np.maximum(-found.ineqlin.marginals, 0)
        if a.sum() > 0:
            value = _soft(H @ (a / a.sum()), s, nu)
        claims.at_most("a vote above the bound", value, certificate.bound, room)
    votes = np.zeros(n)
    for one, share in zip(fitted.estimators_, fitted.estimator_weights_, strict=True):
        votes += share * np.where(one.predict(data.X)[own] == fitted.classes_[1], 1.0, -1.0)
    claims.equal("soft margin of the vote", _soft(sign * votes, s, nu), certificate.margin, 1e-7)
    if certificate.converged:
        claims.to_tol("gap", certificate.bound - certificate.margin, certificate.tol, 1e-12)


def _soft(margins: np.ndarray, s: np.ndarray, nu: float) -> float:
    """Largest ``rho - 1/nu sum_i s_i max(0, rho - m_i)``, attained where rho is a margin."""
    if nu == 0:
        return float(margins.min())
    lack = np.maximum(margins[:, None] - margins, 0)
    return float((margins - lack @ s / nu).max())
