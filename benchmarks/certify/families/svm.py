"""Kernel support vector machines: both objectives, constraints and KKT violation.

A fitted estimator is a feasible point of the primal problem, its coefficients are one of the dual
problem, so by weak duality the optimum is between the two: no other solver is needed to know what
may be claimed. Kernel values are computed coordinate by coordinate, in long double up to 400 rows
and in float64 from differences beyond. What is allowed for is rounding only: one rounding of every
term that a sum is made of, in the precision of the truth (`_Truth.allowance`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.certify.data import (
    EPS,
    Data,
    in_form,
    kernel_with_formula,
    points,
    sample_weights,
    squared,
)
from benchmarks.certify.judge import Claims, Problem
from maxmargin import SVC, SVR, NuSVC, NuSVR, OneClassSVM
from maxmargin.kernels import RBF, Kernel

KINDS = ("SVC", "hard SVC", "SVC, 3 classes", "NuSVC", "SVR", "NuSVR", "OneClassSVM")
FEASIBLE = 1e-8  # infeasibility, over the size of the coefficients, that is still called feasible
ROUNDED = 32 * EPS  # of a coefficient that was divided and multiplied by sums of thousands of terms
_LONG_DOUBLE_UP_TO = 400


def problem(random: np.random.Generator, *, largest: int = 5000, gpu: bool = False) -> Problem:
    """Make a problem; with at most so many rows, and with the GPU engine or not."""
    kind = str(random.choice(KINDS, p=[0.25, 0.1, 0.1, 0.15, 0.15, 0.15, 0.1]))
    on_gpu = random.random() < 0.005
    n = _rows(random, largest, on_gpu)
    X, scale, about = points(random, n)
    y = _targets(random, kind, X, scale)
    weight = sample_weights(random, n)
    X, form = in_form(random, X)
    tol = float(10.0 ** random.uniform(-8, -1)) if random.random() < 0.6 else 1e-3
    C = float(10.0 ** random.uniform(-3, 5)) if random.random() < 0.8 else 1.0
    intercept = bool(random.random() < 0.8)
    common: dict[str, Any] = {"tol": tol, "n_jobs": 1}
    kernel, formula = kernel_with_formula(random, X.shape[1], scale)
    if on_gpu and gpu:
        common["device"] = "cuda"
        common["tol"] = max(tol, 1e-3)  # a step takes the interpreter 30 ms
        C = min(C, 10.0)
        gamma = float(1.0 / scale**2)
        kernel, formula = RBF(gamma), lambda A, B: np.exp(-gamma * squared(A, B))
    model = _model(random, kind, kernel, C, intercept, common)
    data = Data(X, y, weight, formula)
    arguments = (X, y) if kind != "OneClassSVM" else (X,)
    return Problem(
        f"{kind} {n}x{X.shape[1]} {form}, {about}, {model!r}",
        lambda: model.fit(*arguments, sample_weight=weight),
        lambda fitted, claims: judge(data, fitted, claims),
    )


def _rows(random: np.random.Generator, largest: int, on_gpu: bool) -> int:
    share = random.random()
    if on_gpu:
        return int(random.integers(4, 13))
    if share < 0.02:
        return min(int(random.integers(1000, 5001)), largest)
    if share < 0.1:
        return min(int(random.integers(60, 301)), largest)
    return min(int(random.integers(4, 61)), largest)


def _targets(random: np.random.Generator, kind: str, X: np.ndarray, scale: float) -> np.ndarray:
    n = len(X)
    middle = (X - np.median(X, axis=0)) / scale
    rule = np.sin(2 * middle[:, 0]) + middle[:, -1] * middle[:, 0]
    noise = 10.0 ** random.uniform(-3, 0.5)
    rule = rule + noise * random.normal(size=n)
    if kind in ("SVR", "NuSVR"):
        y = 10.0 ** random.uniform(-4, 4) * np.clip(rule, -1e3, 1e3)
        if random.random() < 0.1:
            y[:] = y[0]
        return y + (10.0 ** random.uniform(0, 6) if random.random() < 0.2 else 0.0)
    if kind == "hard SVC" and random.random() < 0.6:
        rule = middle @ random.normal(size=X.shape[1])
    classes = 3 if kind == "SVC, 3 classes" else 2
    y = np.argsort(np.argsort(rule, kind="stable"), kind="stable") * classes // n
    if random.random() < 0.2:
        y = random.integers(classes, size=n)
    y[:classes] = np.arange(classes)
    return y


def _model(
    random: np.random.Generator,
    kind: str,
    kernel: Kernel,
    C: float,
    intercept: bool,
    common: dict[str, Any],
) -> Any:
    nu = float(random.uniform(0.02, 0.9))
    if kind == "hard SVC":
        return SVC(C=np.inf, kernel=kernel, fit_intercept=intercept, **common)
    if kind in ("SVC", "SVC, 3 classes"):
        balanced = "balanced" if random.random() < 0.2 else None
        return SVC(C=C, kernel=kernel, fit_intercept=intercept, class_weight=balanced, **common)
    if kind == "NuSVC":
        return NuSVC(nu=nu, kernel=kernel, fit_intercept=intercept, **common)
    if kind == "SVR":
        epsilon = float(random.choice([0.0, 0.01, 0.1, 1.0, 100.0]))
        return SVR(C=C, epsilon=epsilon, kernel=kernel, fit_intercept=intercept, **common)
    if kind == "NuSVR":
        return NuSVR(C=C, nu=nu, kernel=kernel, fit_intercept=intercept, **common)
    return OneClassSVM(nu=nu, kernel=kernel, **common)


@dataclass
class _Truth:
    """Objectives of one dual problem and of its machine, and what they are known to.

    ``allowance`` is a rounding of each term that the sums are made of, in the precision of the
    truth; ``noise`` that of a decision value in the precision of the package, float64.
    """

    primal: Any
    dual: Any
    violation: float  # nan where the coefficients do not tell
    infeasible: float  # over the size of the coefficients
    allowance: float
    noise: float
    same_scale: bool = True  # whether the primal is that of the certificate's own levels


class _Values:
    """Kernel values among the rows of data, by its formula."""

    def __init__(self, data: Data):
        X = data.X.toarray() if sp.issparse(data.X) else data.X
        self.wide = len(X) <= _LONG_DOUBLE_UP_TO
        self.dtype = np.longdouble if self.wide else np.float64
        self.X, self.formula = X.astype(self.dtype), data.formula
        self.diagonal = np.array(
            [self.formula(row[None], row[None])[0, 0] for row in self.X], dtype=self.dtype
        )
        self.eps = float(np.finfo(self.dtype).eps)

    def times(self, rows: np.ndarray, beta: np.ndarray) -> np.ndarray:
        """``K[rows, rows] @ beta``."""
        points, used = self.X[rows], np.flatnonzero(beta)
        out = np.zeros(len(rows), dtype=self.dtype)
        for start in range(0, len(rows), 256):
            part = points[start : start + 256]
            out[start : start + 256] = self.formula(part, points[used]) @ beta[used]
        return out


def _two_sided(v: np.ndarray, rise: np.ndarray, fall: np.ndarray, groups: np.ndarray) -> float:
    worst = 0.0
    for group in np.unique(groups):
        up, down = rise & (groups == group), fall & (groups == group)
        if up.any() and down.any():
            worst = max(worst, float(v[up].max() - v[down].min()))
    return worst


def _truth(
    values: _Values,
    rows: np.ndarray,
    beta: np.ndarray,
    loss: Any,
    dual_linear: Any,
    violation: Any,
    infeasible: float,
) -> _Truth:
    """Put objectives together from ``f = K beta``: ½ b'Kb + loss(f) and dual_linear - ½ b'Kb."""
    beta = beta.astype(values.dtype)
    f = values.times(rows, beta)
    square = beta @ f
    root = np.sqrt(np.abs(values.diagonal[rows]))
    size = float(np.abs(beta) @ root)
    used = np.count_nonzero(beta) + values.X.shape[1] + 8
    each = values.eps * used * size * root  # of a decision value
    cost, sensitivity = loss(f)
    allowance = float(size * each.max(initial=0.0) + np.abs(sensitivity) @ each)
    allowance += 8 * values.eps * float(abs(cost) + abs(dual_linear))
    noise = float(EPS * 70 * used * size * root.max(initial=0.0))
    return _Truth(
        square / 2 + cost,
        dual_linear - square / 2,
        float(violation(f)) if violation is not None else float("nan"),
        infeasible,
        allowance,
        noise,
    )


def _pairs(data: Data, fitted: Any) -> list[tuple[np.ndarray, np.ndarray, np.ndarray, float]]:
    """For each pair of classes: rows, labels, beta on them, and the bias."""
    classes = fitted.classes_
    index = np.searchsorted(classes, data.y)
    dual = fitted.dual_coef_.toarray() if sp.issparse(fitted.dual_coef_) else fitted.dual_coef_
    support = fitted.support_
    out = []
    for number, (i, j) in enumerate(combinations(range(len(classes)), 2)):
        rows = np.flatnonzero((index == i) | (index == j))
        beta = np.zeros(len(index))
        if len(classes) == 2:
            beta[support] = dual[0]
            labels = np.where(index[rows] == 1, 1.0, -1.0)
        else:
            of_i, of_j = index[support] == i, index[support] == j
            beta[support[of_i]] = dual[j - 1, of_i]
            beta[support[of_j]] = dual[i, of_j]
            labels = np.where(index[rows] == i, 1.0, -1.0)
        out.append((rows, labels, beta[rows], float(fitted.intercept_[number])))
    return out


def _off(sums: float, box: float, beta: np.ndarray, total: float = 0.0) -> float:
    """Infeasibility over the size of the variables; ``total`` where these are known to be more."""
    return max(abs(sums), box) / (1.0 + max(float(np.abs(beta).sum()), total))


def _classifier_truths(data: Data, fitted: Any) -> list[_Truth]:
    values, truths = _Values(data), []
    n = len(data.y)
    weight = np.ones(n) if data.weight is None else data.weight
    index = np.searchsorted(fitted.classes_, data.y)
    weight = weight * fitted.class_weight_[index]
    parts = fitted.certificate_.parts or (fitted.certificate_,)
    for (rows, y, beta, b), part in zip(_pairs(data, fitted), parts, strict=True):
        w = weight[rows]
        alpha = y * beta
        sums = float(beta.sum()) if fitted.fit_intercept else 0.0
        if isinstance(fitted, NuSVC):
            truths.append(_nu_svc(values, fitted, part, rows, y, beta, b, w))
            continue
        if np.isinf(fitted.C):
            truths.append(_hard(values, fitted, rows, y, beta, b, w, sums))
            continue
        C = fitted.C * w
        box = max(float((alpha - C).max()), float((-alpha).max()), 0.0)

        def loss(f: np.ndarray, y: Any = y, b: float = b, C: Any = C) -> Any:
            slack = np.maximum(0, 1 - y * (f + b))
            return C @ slack, C * (slack > 0)

        def violation(f: np.ndarray, y: Any = y, alpha: Any = alpha, C: Any = C) -> float:
            v = y - f
            up, down = np.where(y > 0, alpha < C, alpha > 0), np.where(y > 0, alpha > 0, alpha < C)
            if fitted.fit_intercept:
                return _two_sided(v, up, down, np.zeros(len(y)))
            v = y * v
            return max(v[alpha < C].max(initial=0.0), -v[alpha > 0].min(initial=0.0))

        infeasible = _off(sums, box, beta)
        linear = alpha.astype(values.dtype).sum()
        truths.append(_truth(values, rows, beta, loss, linear, violation, infeasible))
    return truths


def _hard(
    values: _Values,
    fitted: Any,
    rows: np.ndarray,
    y: np.ndarray,
    beta: np.ndarray,
    b: float,
    w: np.ndarray,
    sums: float,
) -> _Truth:
    """The primal is that of w and b scaled until no constraint is violated."""
    counted = w > 0
    alpha = y * beta

    def loss(f: np.ndarray) -> Any:
        slackest = (y * (f + b))[counted].min()
        half = beta @ f / 2
        cost = half / slackest**2 - half if slackest > 0 else np.inf
        steep = np.zeros(len(y))
        if slackest > 0:
            steep[np.argmin(np.where(counted, y * (f + b), np.inf))] = abs(2 * half / slackest**3)
        return cost, steep

    def violation(f: np.ndarray) -> float:
        v = y - f
        up, down = np.where(y > 0, counted, alpha > 0), np.where(y > 0, alpha > 0, counted)
        if fitted.fit_intercept:
            return _two_sided(v, up, down, np.zeros(len(y)))
        v = y * v
        return max(v[counted].max(initial=0.0), -v[alpha > 0].min(initial=0.0))

    infeasible = _off(sums, max(float((-alpha).max()), 0.0), beta)
    linear = alpha.astype(values.dtype).sum()
    return _truth(values, rows, beta, loss, linear, violation, infeasible)


def _nu_svc(
    values: _Values,
    fitted: Any,
    part: Any,
    rows: np.ndarray,
    y: np.ndarray,
    beta: np.ndarray,
    b: float,
    w: np.ndarray,
) -> _Truth:
    """In the units of the nu problem, in which the coefficients sum to nu N.

    The machine is divided by rho, which their sum tells; where it was not, for a rho that is not
    positive or not known, the best rho is as good as the certificate's.
    """
    total = float(fitted.nu * w.sum())
    rho = total / float(np.abs(beta).sum()) if beta.any() else 1.0
    known = abs(rho - 1.0) > 1e-9
    beta, b = rho * beta, rho * b
    alpha = y * beta
    sums = float(beta.sum()) if fitted.fit_intercept else 0.0
    box = max(float((alpha - w).max()), float((-alpha).max()), 0.0)

    def loss(f: np.ndarray) -> Any:
        margins = y * (f + b)
        own = rho
        if not known:
            order = np.argsort(margins)
            own = margins[order[np.searchsorted(np.cumsum(w[order]), total)]]
        slack = np.maximum(0, own - margins)
        return w @ slack - total * own, w * (slack > 0)

    def violation(f: np.ndarray) -> float:
        groups = y if fitted.fit_intercept else np.zeros(len(y))
        below = alpha < w * (1 - ROUNDED)  # rho was divided by, and is made again from sums
        return _two_sided(-y * f, below, alpha > 0, groups)

    infeasible = _off(sums, box - ROUNDED * float(w.max()), beta)
    truth = _truth(values, rows, beta, loss, 0.0, violation, infeasible)
    return replace(truth, same_scale=known)


def _regressor_truth(data: Data, fitted: Any) -> _Truth:
    values = _Values(data)
    n = len(data.y)
    rows, t = np.arange(n), data.y.astype(np.float64)
    C = fitted.C * (np.ones(n) if data.weight is None else data.weight)
    beta, b = _on_all(data, fitted), float(fitted.intercept_[0])
    nu = isinstance(fitted, NuSVR)
    epsilon = float(fitted.epsilon_ if nu else fitted.epsilon)
    total = float(fitted.nu * C.sum()) if nu else 0.0
    sums = float(beta.sum()) if fitted.fit_intercept else 0.0
    box = max(float((np.abs(beta) - C).max()), 0.0)
    if nu:
        box = max(box, float(np.abs(beta).sum()) - total)
    wide = beta.astype(values.dtype)
    linear = t @ wide - (0.0 if nu else epsilon * np.abs(wide).sum())

    def loss(f: np.ndarray) -> Any:
        excess = np.maximum(0, np.abs(f + b - t) - epsilon)
        return C @ excess + total * epsilon, C * (excess > 0)

    def violation(f: np.ndarray) -> float:
        # each row has two variables, above the tube and below it
        r = np.concatenate([t - f, t - f])
        s = np.repeat([1.0, -1.0], n)
        a = np.concatenate([np.maximum(beta, 0), np.maximum(-beta, 0)])
        upper = np.tile(C, 2)
        if nu:
            groups = s if fitted.fit_intercept else np.zeros(2 * n)
            return _two_sided(s * r, a < upper, a > 0, groups)
        v = s * r - epsilon
        if not fitted.fit_intercept:
            return max(v[a < upper].max(initial=0.0), -v[a > 0].min(initial=0.0))
        up = np.where(s > 0, a < upper, a > 0)
        down = np.where(s > 0, a > 0, a < upper)
        return _two_sided(s * v, up, down, np.zeros(2 * n))

    told = not nu or abs(float(np.abs(beta).sum()) - total) <= 1e-12 * total
    infeasible = _off(sums, box, beta, total)
    return _truth(values, rows, beta, loss, linear, violation if told else None, infeasible)


def _one_class_truth(data: Data, fitted: Any) -> _Truth:
    values = _Values(data)
    n = len(data.y)
    w = np.ones(n) if data.weight is None else data.weight
    alpha, rho = _on_all(data, fitted), float(fitted.offset_[0])
    total = float(fitted.nu * w.sum())

    def loss(f: np.ndarray) -> Any:
        slack = np.maximum(0, rho - f)
        return w @ slack - total * rho, w * (slack > 0)

    def violation(f: np.ndarray) -> float:
        return _two_sided(-f, alpha < w, alpha > 0, np.zeros(n))

    box = max(float((alpha - w).max()), float((-alpha).max()), 0.0)
    infeasible = _off(float(alpha.sum()) - total, box, alpha)
    return _truth(values, np.arange(n), alpha, loss, 0.0, violation, infeasible)


def _on_all(data: Data, fitted: Any) -> np.ndarray:
    dual = fitted.dual_coef_.toarray() if sp.issparse(fitted.dual_coef_) else fitted.dual_coef_
    beta = np.zeros(len(data.y))
    beta[fitted.support_] = dual[0]
    return beta


def judge(data: Data, fitted: Any, claims: Claims) -> None:
    """Hold the certificate of a fitted kernel machine against the truth."""
    if isinstance(fitted, SVC | NuSVC):
        truths = _classifier_truths(data, fitted)
    elif isinstance(fitted, SVR | NuSVR):
        truths = [_regressor_truth(data, fitted)]
    else:
        truths = [_one_class_truth(data, fitted)]
    certificate = fitted.certificate_
    claims.converged = certificate.converged
    for part, truth in zip(certificate.parts or (certificate,), truths, strict=True):
        compare(part, truth, claims)


def compare(part: Any, truth: _Truth, claims: Claims) -> None:
    """Hold one dual certificate against the objectives of its point."""
    numbers = part.primal, part.dual, part.gap, part.relative_gap, part.rounding
    claims.sure(f"nan in {part}", not np.isnan([*numbers, part.kkt_violation]).any())
    if part.definiteness == "indefinite" or part.status == "trivial":
        return
    gap = truth.primal - truth.dual
    if part.converged:
        claims.at_most("infeasibility", truth.infeasible, FEASIBLE)
    claims.at_most("gap", gap, part.gap + part.rounding, truth.allowance)
    scale = float(max(abs(truth.primal), abs(truth.dual)))
    scale = scale if truth.same_scale else max(scale, abs(part.primal))
    claimed = part.relative_gap * (scale + part.rounding) * (1 + 1e-9)
    claims.at_most("relative gap", gap, claimed, truth.allowance)
    if part.converged and not np.isnan(truth.violation):
        claims.to_tol("KKT violation", truth.violation, part.tol, truth.noise)
