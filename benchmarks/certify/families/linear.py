"""Linear estimators: objectives at the weights, and the best that another solver attains.

The slopes are not returned. So the primal is computed at the weights, in long double, and the dual,
a lower bound, is held against every objective that could be attained: at ``tol=1e-10``, by L-BFGS
from there (its bounds split weights into two parts under an l1 penalty), and by Clarabel for what
is piecewise linear or quadratic.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.optimize import minimize

from benchmarks.certify.data import (
    EPS,
    Data,
    classes_of,
    eps_of,
    in_form,
    numbers,
    points,
    sample_weights,
    some_rows,
    tolerance,
)
from benchmarks.certify.exact import programme
from benchmarks.certify.judge import Claims, Problem
from maxmargin import InseparableError, LinearSVC, LinearSVR, LogisticRegression

Value = Callable[[np.ndarray], tuple[Any, np.ndarray]]  # of (w, b): objective and gradient


def problem(random: np.random.Generator) -> Problem:
    """Make a problem of a penalty, or of the hard margin."""
    n = some_rows(random, 60)
    X, scale, about = points(random, n)
    if random.random() < 0.1:  # wide
        X = np.hstack([X, scale * random.normal(size=(n, int(random.integers(20, 200))))])
    C = float(10.0 ** random.uniform(-3, 5)) if random.random() < 0.8 else 1.0
    common: dict[str, Any] = {"C": C, "tol": tolerance(random, 1e-4), "n_jobs": 1}
    common["fit_intercept"] = bool(random.random() < 0.8)
    kind = str(random.choice(["svc", "l1", "hard", "svr", "logistic", "net"]))
    classes = 3 if kind != "hard" and random.random() < 0.3 else 2
    y = classes_of(random, X, scale, classes)
    if kind == "svr":
        y = 10.0 ** random.uniform(-4, 4) * numbers(random, X, scale)
        loss = str(random.choice(["epsilon_insensitive", "squared_epsilon_insensitive"]))
        epsilon = float(random.choice([0.0, 0.1, 1.0]))
        model: Any = LinearSVR(loss=loss, epsilon=epsilon, **common)
    elif kind == "svc":
        loss = str(random.choice(["hinge", "squared_hinge"]))
        dual = [True, False, "auto", "auto"][random.integers(4)]
        scaling = None if random.random() < 0.8 else float(10.0 ** random.uniform(-1, 1))
        model = LinearSVC(loss=loss, dual=dual, intercept_scaling=scaling, **common)
    elif kind == "l1":
        model = LinearSVC(penalty="l1", **common)
    elif kind == "hard":
        model = LinearSVC(**{**common, "C": np.inf})
    else:
        ratio = float(random.choice([0.1, 0.5, 0.9, 1.0])) if kind == "net" else 0.0
        scheme = "ovr" if classes == 3 and random.random() < 0.3 else "softmax"
        model = LogisticRegression(l1_ratio=ratio, multiclass=scheme, **common)
    weight = sample_weights(random, n)
    X, form = in_form(random, X)
    data = Data(X, y, weight)
    return Problem(
        f"{n}x{X.shape[1]} {form}, {about}, {model!r}",
        lambda: model.fit(X, y, sample_weight=weight),
        lambda fitted, claims: judge(data, fitted, claims),
    )


def judge(data: Data, fitted: Any, claims: Claims) -> None:
    """Hold the certificate of weights against objectives."""
    certificate, hard = fitted.certificate_, np.isinf(fitted.C)
    claims.converged = certificate.converged
    coef = np.atleast_2d(fitted.coef_)
    b = np.resize(np.atleast_1d(fitted.intercept_), len(coef))
    own = np.column_stack([coef, b]).astype(np.longdouble)
    exact = [own]
    if not hard:
        options = {"tol": 1e-10, "max_iter": 300}
        again = type(fitted)(**{**fitted.get_params(), **options})
        try:
            again.fit(data.X, data.y, data.weight)
            offsets = np.resize(np.atleast_1d(again.intercept_), len(coef))
            theta = np.column_stack([np.atleast_2d(again.coef_), offsets])
            exact.append(theta.astype(np.longdouble))
        except InseparableError:
            pass
    parts = certificate.parts or (certificate,)
    softmax = isinstance(fitted, LogisticRegression) and len(parts) < len(coef)
    for k, part in enumerate(parts):
        if softmax:
            value: Value = _softmax(data, fitted)
            points = [theta.ravel() for theta in exact]
        else:
            value = (
                _hard(data, fitted, _labels(data, fitted, k))
                if hard
                else objective(data, fitted, _labels(data, fitted, k))
            )
            points = [theta[k] for theta in exact]
        attained = [value(theta)[0] for theta in points]
        if (
            not softmax
            and (found := by_clarabel(data, fitted, _labels(data, fitted, k))) is not None
        ):
            attained.append(value(found)[0])
        if not hard:
            attained.append(_by_descent(data, fitted, value, points[-1]))
        compare(part, attained[0], min(attained), rounding(data, fitted, coef, b), claims)


def compare(part: Any, own: Any, best: Any, room: float, claims: Claims) -> None:
    """Hold both objectives of a certificate against what was attained."""
    room = 1e-10 * abs(float(own)) + room
    claims.sure(f"nan in {part}", not np.isnan([part.primal, part.dual, part.gap]).any())
    if np.isfinite(part.primal):
        claims.at_most("primal", own, part.primal, room)
    claims.at_most("dual above an attained objective", part.dual, best, room)
    claims.at_most("gap", own - best, part.gap, room)
    if part.converged:
        scale = float(max(abs(own), abs(best)))
        claims.to_tol(
            "relative gap", (own - best) / (scale or 1.0), part.tol, room / (scale or 1.0)
        )


def _labels(data: Data, fitted: Any, k: int) -> np.ndarray:
    if isinstance(fitted, LinearSVR):
        return data.y.astype(np.float64)
    chosen = fitted.classes_[1] if len(fitted.classes_) == 2 else fitted.classes_[k]
    return np.where(data.y == chosen, 1.0, -1.0)


def _net(fitted: Any) -> tuple[float, float]:
    """Shares of the l1 and the l2 norm in the penalty."""
    ratio = getattr(fitted, "l1_ratio", 0.0)
    ratio = 1.0 if getattr(fitted, "penalty", "") == "l1" else ratio
    return ratio, 1.0 - ratio


def objective(data: Data, fitted: Any, labels: np.ndarray) -> Value:
    """Objective of one output at (w, b)."""
    X, cost = data.dense, fitted.C * data.weights
    kind = "logistic" if isinstance(fitted, LogisticRegression) else fitted.loss
    ratio, rest = _net(fitted)
    scaling = getattr(fitted, "intercept_scaling", None)
    price = rest / scaling**2 if isinstance(fitted, LinearSVC) and scaling else 0.0

    def value(theta: np.ndarray) -> tuple[Any, np.ndarray]:
        w, b = theta[:-1], theta[-1]
        f = X.astype(theta.dtype) @ w + b
        if kind == "logistic":
            u = labels * f
            loss, slope = np.logaddexp(0, -u), -labels / (1 + np.exp(np.clip(u, -700, 700)))
        elif kind == "hinge":
            u = 1 - labels * f
            loss, slope = np.maximum(u, 0), np.where(u > 0, -labels, 0.0)
        elif kind == "squared_hinge":
            u = np.maximum(1 - labels * f, 0)
            loss, slope = u**2, -2 * labels * u
        else:
            u = np.maximum(np.abs(f - labels) - fitted.epsilon, 0)
            sign = np.sign(f - labels)
            squared = kind.startswith("squared")
            loss, slope = (u**2, 2 * u * sign) if squared else (u, sign * (u > 0))
        gradient = X.T.astype(theta.dtype) @ (cost * slope)
        total = cost @ loss + rest * (w @ w) / 2 + ratio * np.abs(w).sum() + price * b * b / 2
        free = cost @ slope + price * b if fitted.fit_intercept else 0.0
        return total, np.append(rest * w + gradient, free)

    return lambda theta: value(theta)


def _softmax(data: Data, fitted: Any) -> Value:
    X, cost = data.dense, fitted.C * data.weights
    index, K = np.searchsorted(fitted.classes_, data.y), len(fitted.classes_)
    ratio, rest = _net(fitted)
    each = np.arange(len(index))

    def value(theta: np.ndarray) -> tuple[Any, np.ndarray]:
        coef = theta.reshape(K, -1)
        f = X.astype(theta.dtype) @ coef[:, :-1].T + coef[:, -1]
        top = f.max(axis=1, keepdims=True)
        p = np.exp(f - top)
        total = p.sum(axis=1, keepdims=True)
        loss = (top + np.log(total))[:, 0] - f[each, index]
        p /= total
        p[each, index] -= 1
        slope = cost[:, None] * p
        gradient = np.zeros_like(coef)
        gradient[:, :-1] = slope.T @ X.astype(theta.dtype) + rest * coef[:, :-1]
        gradient[:, -1] = slope.sum(axis=0) if fitted.fit_intercept else 0.0
        w = coef[:, :-1]
        penalty = rest * (w * w).sum() / 2 + ratio * np.abs(w).sum()
        return cost @ loss + penalty, gradient.ravel()

    return value


def _hard(data: Data, fitted: Any, labels: np.ndarray) -> Value:
    """Half the squared length of weights over their least margin; b is midway if it is free."""
    X, own = data.dense, data.weights > 0

    def value(theta: np.ndarray) -> tuple[Any, np.ndarray]:
        w = theta[:-1].astype(X.dtype)
        u = (labels * (X @ w + theta[-1]))[own]
        if fitted.fit_intercept:
            side = labels[own]
            u = u - side * theta[-1]
            least = (u[side > 0].min() + u[side < 0].min()) / 2
        else:
            least = u.min()
        return (w @ w / 2 / least**2 if least > 0 else np.inf), theta

    return value


def _by_descent(data: Data, fitted: Any, value: Value, start: np.ndarray) -> Any:
    """Objective that L-BFGS comes to; weights in two parts where there is an l1 penalty."""
    ratio, _ = _net(fitted)
    start = start.astype(np.float64)
    limits = {"maxiter": 60}
    if not ratio:

        def plain(theta: np.ndarray) -> tuple[float, np.ndarray]:
            total, gradient = value(theta)
            return float(total), gradient.astype(np.float64)

        found = minimize(plain, start, jac=True, method="L-BFGS-B", options=limits)
        return value(found.x.astype(np.longdouble))[0]
    width = data.X.shape[1] + 1
    priced = np.arange(len(start)) % width < width - 1

    def split(both: np.ndarray) -> tuple[float, np.ndarray]:
        up, down = np.split(both, 2)
        theta = up - down
        total, gradient = value(theta)
        total += ratio * ((up + down - np.abs(theta)) * priced).sum()
        gradient = gradient.astype(np.float64)
        price = ratio * priced
        return float(total), np.append(gradient + price, -gradient + price)

    both = np.append(np.maximum(start, 0), np.maximum(-start, 0))
    ends = [(0, None)] * len(both)
    found = minimize(split, both, jac=True, method="L-BFGS-B", bounds=ends, options=limits)
    return value(np.subtract(*np.split(found.x, 2)).astype(np.longdouble))[0]


def by_clarabel(data: Data, fitted: Any, labels: np.ndarray) -> np.ndarray | None:
    """Weights and intercept by Clarabel for hinges, tubes and the hard margin; otherwise None."""
    if isinstance(fitted, LogisticRegression) or _net(fitted)[0]:
        return None
    X, hard = data.dense.astype(np.float64), np.isinf(fitted.C)
    n, d = X.shape
    scaling = getattr(fitted, "intercept_scaling", None)
    if hard and scaling:
        return None
    price = 1.0 / scaling**2 if isinstance(fitted, LinearSVC) and scaling else 0.0
    free = np.ones((n, 1)) if fitted.fit_intercept else np.zeros((n, 1))
    unit = float(np.abs(X).max()) or 1.0  # weights are solved for in units of the data
    Z, cost = np.hstack([X / unit, free]), (1.0 if hard else fitted.C) * data.weights
    squared = not hard and fitted.loss.startswith("squared")
    slack = np.zeros(0) if hard else cost
    P = np.concatenate([np.full(d, 1 / unit**2), [price], 2 * slack * squared])
    q = np.concatenate([np.zeros(d + 1), slack * (not squared)])
    eye = -np.eye(n)
    if isinstance(fitted, LinearSVR):
        rows = [
            ("nonnegative", np.hstack([Z, eye]), labels + fitted.epsilon),
            ("nonnegative", np.hstack([-Z, eye]), fitted.epsilon - labels),
        ]
    elif hard:
        own = data.weights > 0
        rows = [("nonnegative", (-labels[:, None] * Z)[own], -np.ones(int(own.sum())))]
    else:
        rows = [("nonnegative", np.hstack([-labels[:, None] * Z, eye]), -np.ones(n))]
    if not hard:
        rows.append(("nonnegative", np.hstack([np.zeros((n, d + 1)), eye]), np.zeros(n)))
    found = programme(sp.diags(P), q, rows)
    if found is None:
        return None
    theta = found[: d + 1].astype(np.longdouble)
    theta[:d] /= unit
    if not fitted.fit_intercept:
        theta[d] = 0.0
    return theta


def rounding(data: Data, fitted: Any, coef: np.ndarray, b: np.ndarray) -> float:
    """Rounding in float64 of an objective: products of the data round like the largest of them."""
    X, C = np.abs(data.dense.astype(np.float64)), fitted.C if np.isfinite(fitted.C) else 1.0
    f = X @ np.abs(coef).T + np.abs(b)
    steep = 1.0
    if "squared" in str(getattr(fitted, "loss", "")):
        steep = 2.0 * float(np.abs(f).max(initial=0.0) + np.abs(data.y).max() + 1.0)
    eps = max(16 * EPS, eps_of(coef))
    return float(eps * steep * (C * data.weights @ f.max(axis=1) + (coef**2).sum()))
