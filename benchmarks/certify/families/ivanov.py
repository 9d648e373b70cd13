"""Ivanov's form, least loss with ``||w|| <= r``: the loss, the norm, and Clarabel's answer.

The bound on all losses is held against the loss of the point that Clarabel finds in the cone, made
as short as the bound, in coordinates of the Gram matrix's factor.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.certify.data import (
    EPS,
    Data,
    classes_of,
    eps_of,
    in_form,
    kernel_with_formula,
    numbers,
    points,
    sample_weights,
    some_rows,
    tolerance,
)
from benchmarks.certify.exact import factor, programme
from benchmarks.certify.judge import Claims, Problem
from maxmargin import SVC, SVR, LinearSVC, LinearSVR


def problem(random: np.random.Generator) -> Problem:
    """Make a problem with a bound on the norm: two classes or numbers, a kernel or none."""
    n = some_rows(random, 30)
    X, scale, about = points(random, n, tame=bool(random.random() < 0.6))
    weight = sample_weights(random, n)
    regression = bool(random.random() < 0.4)
    y = numbers(random, X, scale) if regression else classes_of(random, X, scale, 2)
    X, form = in_form(random, X)
    common: dict[str, Any] = {
        "norm_bound": float(10.0 ** random.uniform(-2, 2)),
        "tol": tolerance(random, 1e-3, -6),
        "fit_intercept": bool(random.random() < 0.7),
        "n_jobs": 1,
    }
    formula = None
    if random.random() < 0.5:
        kernel, formula = kernel_with_formula(random, X.shape[1], scale)
        model: Any = (SVR if regression else SVC)(kernel=kernel, **common)
    elif regression:
        loss = str(random.choice(["epsilon_insensitive", "squared_epsilon_insensitive"]))
        model = LinearSVR(loss=loss, epsilon=0.1, **common)
    else:
        loss = str(random.choice(["hinge", "squared_hinge"]))
        model = LinearSVC(loss=loss, **common)
    data = Data(X, y, weight, formula)
    return Problem(
        f"{n}x{X.shape[1]} {form}, {about}, {model!r}",
        lambda: model.fit(X, y, sample_weight=weight),
        lambda fitted, claims: _judge(data, fitted, claims),
    )


def _judge(data: Data, fitted: Any, claims: Claims) -> None:
    certificate, bound = fitted.certificate_, fitted.norm_bound
    claims.converged = certificate.converged
    if getattr(certificate, "definiteness", "") == "indefinite":
        return
    regression = hasattr(fitted, "epsilon")
    squared = str(getattr(fitted, "loss", "")).startswith("squared")
    target = data.y if regression else np.where(data.y == fitted.classes_[1], 1.0, -1.0)
    cost = data.weights.astype(np.longdouble)

    def loss(f: np.ndarray) -> Any:
        lack = np.abs(f - target) - fitted.epsilon if regression else 1 - target * f
        lack = np.maximum(lack, 0)
        return cost @ (lack**2 if squared else lack)

    b = np.longdouble(np.atleast_1d(fitted.intercept_)[0])
    if data.formula is None:
        F, w = data.dense, np.ravel(fitted.coef_).astype(np.longdouble)
        values, norm = F @ w, np.sqrt(w @ w)
        reach = np.abs(F) @ np.abs(w) + np.abs(b)
        lost = np.longdouble(0)
    else:
        gram, a = data.gram, np.zeros(len(target), dtype=np.longdouble)
        dual = fitted.dual_coef_
        a[fitted.support_] = (dual.toarray() if sp.issparse(dual) else dual)[0]
        values = gram @ a
        norm = np.sqrt(max(a @ values, 0))
        root = np.sqrt(np.abs(np.diag(gram)))
        reach = root * (np.abs(a) @ root) + np.abs(b)
        F = factor(gram)
        lost = np.sqrt(np.abs(np.diag(gram) - (F * F).sum(axis=1)).max()) * bound
    own = loss(values + b)
    noise = max(EPS * 64, eps_of(getattr(fitted, "coef_", b))) * (len(target) + data.X.shape[1])
    # w'w is a difference of terms as large as reach * sum |a|
    steep = 2 * np.maximum(reach + np.abs(target) + 1, 1) if squared else 1.0
    # a sum of n losses in float64 is rounded even where the values are exact
    room = float(noise * (cost @ (reach * steep)) + EPS * len(target) * own)
    if data.formula is None:
        claims.at_most("norm", norm, bound, noise * bound)
    else:
        size = float((np.abs(a) @ root) ** 2)
        claims.at_most("norm squared", norm**2, bound**2 * (1 + 1e-9), noise * size)
    claims.sure(f"nan in {certificate}", not np.isnan([certificate.primal, certificate.dual]).any())
    rounding = getattr(certificate, "rounding", 0.0)
    claims.at_most("loss", own, certificate.primal + rounding, room)
    best = own
    if found := _by_clarabel(F.astype(np.float64), target, cost, fitted, regression, squared):
        w, b = found
        length = np.sqrt(w @ w)
        best = min(best, loss(F @ (w * min(1.0, bound / length) if length > 0 else w) + b))
    known = room + float(cost.sum() * lost)
    claims.at_most("dual above what is attained", certificate.dual, best + rounding, known)
    claims.at_most("gap", own - best, certificate.gap + rounding, known)
    if certificate.converged:
        # of w = 0, whose values are an intercept where there is one, and zero where there is none
        free = regression and fitted.fit_intercept
        middle = np.median(target[cost > 0]) if free else 0.0
        least = 1e-6 * float(loss(np.full(len(target), middle)))
        scale = max(float(own), least, 1e-300)
        claims.to_tol(
            "relative gap", (own - best) / scale, certificate.tol, (known + rounding) / scale
        )


def _by_clarabel(
    F: np.ndarray,
    target: np.ndarray,
    cost: np.ndarray,
    fitted: Any,
    regression: bool,
    squared: bool,
) -> tuple[np.ndarray, Any] | None:
    """Weights and intercept in the cone; the unit of weights is the bound."""
    n, d = F.shape
    Z = F * fitted.norm_bound
    free = np.ones((n, 1)) if fitted.fit_intercept else np.zeros((n, 1))
    eye, size = -np.eye(n), d + 1 + n
    if regression:
        A = [np.hstack([Z, free, eye]), np.hstack([-Z, -free, eye])]
        b = [target + fitted.epsilon, fitted.epsilon - target]
    else:
        A, b = [np.hstack([-target[:, None] * Z, -target[:, None] * free, eye])], [-np.ones(n)]
    A.append(np.hstack([np.zeros((n, d + 1)), eye]))
    b.append(np.zeros(n))
    cone = np.zeros((d + 1, size))
    cone[1:, :d] = -np.eye(d)
    slack = np.concatenate([np.zeros(d + 1), cost.astype(np.float64)])
    found = programme(
        sp.diags(2 * slack if squared else np.zeros(size)),
        np.zeros(size) if squared else slack,
        [("nonnegative", np.vstack(A), np.concatenate(b)), ("cone", cone, np.eye(d + 1)[0])],
    )
    if found is None:
        return None
    intercept = np.longdouble(found[d]) if fitted.fit_intercept else np.longdouble(0)
    return fitted.norm_bound * found[:d].astype(np.longdouble), intercept
