"""Direct multiclass, with kernels and linear: Crammer and Singer, Weston and Watkins.

With a kernel, coefficients are a point of the primal and of the dual: weak duality judges them.
The linear estimators return weights alone, whose objective is held against the one of an `SVC`
with the linear kernel and against Clarabel's.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.certify.data import (
    EPS,
    Data,
    classes_of,
    in_form,
    kernel_with_formula,
    points,
    sample_weights,
    some_rows,
    tolerance,
)
from benchmarks.certify.exact import programme
from benchmarks.certify.families import linear, svm
from benchmarks.certify.judge import Claims, Problem
from maxmargin import SVC, LinearSVC


def problem(random: np.random.Generator) -> Problem:
    """Make a problem of three to five classes."""
    n = some_rows(random, 60)
    X, scale, about = points(random, n, tame=bool(random.random() < 0.6))
    classes = int(random.integers(3, 6))
    n = max(n, classes)
    if n > len(X):
        X = np.vstack([X, X[: n - len(X)]])
    y = classes_of(random, X, scale, classes)
    weight = sample_weights(random, n)
    X, form = in_form(random, X)
    common: dict[str, Any] = {
        "C": float(10.0 ** random.uniform(-3, 4)),
        "multiclass": str(random.choice(["crammer_singer", "weston_watkins"])),
        "fit_intercept": bool(random.random() < 0.7),
        "n_jobs": 1,
    }
    formula = None
    if random.random() < 0.7:
        kernel, formula = kernel_with_formula(random, X.shape[1], scale)
        model: Any = SVC(kernel=kernel, tol=tolerance(random, 1e-3, -6), **common)
    else:
        model = LinearSVC(tol=tolerance(random, 1e-4, -6), random_state=0, **common)
    data = Data(X, y, weight, formula)
    return Problem(
        f"{n}x{X.shape[1]} {form}, {classes} classes, {about}, {model!r}",
        lambda: model.fit(X, y, sample_weight=weight),
        lambda fitted, claims: (_kernel if formula else _linear)(data, fitted, claims),
    )


def _losses(F: np.ndarray, index: np.ndarray, summed: bool) -> np.ndarray:
    each = np.arange(len(index))
    lacks = np.maximum(1 + F - F[each, index][:, None], 0)
    lacks[each, index] = 0
    return lacks.sum(axis=1) if summed else lacks.max(axis=1)


def _kernel(data: Data, fitted: SVC, claims: Claims) -> None:
    """Both objectives from the coefficients (classes, rows)."""
    certificate = fitted.certificate_
    claims.converged = certificate.converged
    index, K = np.searchsorted(fitted.classes_, data.y), len(fitted.classes_)
    n, each = len(index), np.arange(len(index))
    dual = fitted.dual_coef_.toarray() if sp.issparse(fitted.dual_coef_) else fitted.dual_coef_
    b = np.zeros((n, K), dtype=np.longdouble)
    b[fitted.support_] = dual.T
    cost = fitted.C * data.weights * fitted.class_weight_[index]
    gram = data.gram + float(fitted.fit_intercept)
    F, summed = gram @ b, "weston" in fitted.multiclass
    half, most = (b * F).sum() / 2, K - 1 if summed else 1
    losses = cost @ _losses(F, index, summed)
    linear_part = b[each, index].sum() - b.sum()
    others = b.copy()
    others[each, index] = 0
    box = max(others.max(), (-others - cost[:, None]).max(), (b[each, index] - most * cost).max())
    size = np.abs(b).sum()
    root = np.sqrt(np.abs(np.diag(gram)))
    reach = np.abs(b).T @ root  # of each class
    used = n + data.X.shape[1] + 8
    eps = float(np.finfo(np.longdouble).eps)
    allowance = eps * used * (reach @ reach + 2 * reach.max() * ((K - 1) * cost @ root))
    allowance += 8 * eps * (losses + abs(linear_part))
    g = F + 1
    g[each, index] -= 1
    own = np.arange(K) == index[:, None]
    near = 2e-12 * cost[:, None]  # the own class's variable is a sum of others: it is at its bound
    up = b < np.where(own, (most * cost)[:, None], 0) - near
    down = b > np.where(own, 0, -cost[:, None]) + near
    with np.errstate(invalid="ignore"):
        gap = np.where(down, g, -np.inf).max(axis=1) - np.where(up, g, np.inf).min(axis=1)
    violation = float(gap[cost > 0].max(initial=0.0))
    truth = svm._Truth(
        primal=half + losses,
        dual=linear_part - half,
        violation=violation,
        infeasible=float(max(box, np.abs(b.sum(axis=1)).max()) / (1 + size)),
        allowance=float(allowance),
        noise=float(EPS * 70 * used * reach.max() * root.max()),
    )
    svm.compare(certificate, truth, claims)


def _linear(data: Data, fitted: LinearSVC, claims: Claims) -> None:
    """The objective at the weights, and at those of two other solvers."""
    certificate = fitted.certificate_
    claims.converged = certificate.converged
    X, index = data.dense, np.searchsorted(fitted.classes_, data.y)
    cost, K = fitted.C * data.weights, len(fitted.classes_)
    summed = "weston" in fitted.multiclass

    def value(coef: np.ndarray, b: np.ndarray) -> Any:
        F = X @ coef.T + b
        return ((coef**2).sum() + (b**2).sum()) / 2 + cost @ _losses(F, index, summed)

    intercept = np.resize(np.atleast_1d(fitted.intercept_), K)
    own = value(fitted.coef_.astype(np.longdouble), intercept.astype(np.longdouble))
    exact = LinearSVC(**{**fitted.get_params(), "tol": 1e-9}).fit(data.X, data.y, data.weight)
    best = [own, value(exact.coef_, np.resize(np.atleast_1d(exact.intercept_), K))]
    theta = _by_clarabel(X.astype(np.float64), index, K, cost, summed, fitted.fit_intercept)
    if theta is not None:
        best.append(value(theta[:, :-1], theta[:, -1]))
    room = 2 * K * linear.rounding(data, fitted, fitted.coef_, intercept)
    linear.compare(certificate, own, min(best), room, claims)


def _by_clarabel(
    X: np.ndarray, index: np.ndarray, K: int, cost: np.ndarray, summed: bool, bias: bool
) -> np.ndarray | None:
    """Weights (K, d + 1), with a slack for each row or for each row and other class."""
    n, unit = len(X), float(np.abs(X).max()) or 1.0
    Z = np.hstack([X / unit, np.full((n, 1), float(bias))])
    price = np.append(np.full(X.shape[1], 1 / unit**2), 1.0)
    rows, slacks, prices = [], [], []
    for k in range(K):
        own = np.flatnonzero(index != k)
        block = np.zeros((len(own), K, Z.shape[1]))
        block[:, k] = Z[own]
        block[np.arange(len(own)), index[own]] -= Z[own]
        rows.append(block.reshape(len(own), -1))
        slacks.append(own + n * k * summed)
    count = n * K if summed else n
    prices = np.tile(cost, K) if summed else cost
    A, slack = np.vstack(rows), np.concatenate(slacks)
    E = sp.csr_matrix((-np.ones(len(slack)), (np.arange(len(slack)), slack)), (len(slack), count))
    found = programme(
        sp.diags(np.concatenate([np.tile(price, K), np.zeros(count)])),
        np.concatenate([np.zeros(K * Z.shape[1]), prices]),
        [
            ("nonnegative", sp.hstack([sp.csr_matrix(A), E]), -np.ones(len(A))),
            (
                "nonnegative",
                sp.hstack([sp.csr_matrix((count, A.shape[1])), -sp.eye(count)]),
                np.zeros(count),
            ),
        ],
    )
    if found is None:
        return None
    theta = found[: A.shape[1]].reshape(K, -1).astype(np.longdouble)
    theta[:, :-1] /= unit
    theta[:, -1] *= bias
    return theta
