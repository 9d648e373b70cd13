"""Random problems whose certificates are judged by someone who does not believe them.

    python benchmarks/certify.py --problems 20000 --seed 0 --jobs 2
    python benchmarks/certify.py --seed-only 4711            # one of them again, in words

Every number of seeds is a problem: a machine, a composition of kernels, data of some scale, offset,
outliers, precision and form, weights, parameters. The machine is fitted with no limit on time or
steps. Then the truth is computed from what the machine returned, in NumPy: kernel values by the
formula of the composition, coordinate by coordinate, in long double up to 400 rows and in float64
from differences beyond; objectives, constraints and KKT violation from the textbook. A returned
machine is a feasible point of the primal problem, its coefficients are one of the dual problem, so
by weak duality the optimum is between the two: no other solver is needed to know what may be
claimed. (For the linear machines, whose slopes are not returned, the dual is held against every
objective that could be attained: ours at tol=1e-10, and L-BFGS.)

A problem fails if

- ``false``: primal - dual is more than the certificate's ``gap + rounding``, or relative to the
  larger objective more than its ``relative_gap``; or its dual is above what was attained; or the
  point is not feasible;
- ``above tol``: it is called converged, and the KKT violation is above ``tol``;
- ``slow``: the fit takes more than 20 s;
- ``crash``: any exception but a documented refusal, a ValueError in words.

What the judge allows for is rounding only: one rounding of every term that a sum is made of, for
the sums in long double and float64 that stand for the truth (``_Truth.allowance``).
"""

from __future__ import annotations

import argparse
import multiprocessing as mp
import os
import signal
import sys
import time
import traceback
import warnings
from collections import Counter, defaultdict
from dataclasses import dataclass, field, replace
from itertools import combinations
from pathlib import Path
from queue import Empty
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.optimize import minimize

from maxmargin import (
    SVC,
    SVR,
    InseparableError,
    LinearSVC,
    LinearSVR,
    LogisticRegression,
    NuSVC,
    NuSVR,
    OneClassSVM,
)
from maxmargin.kernels import RBF, Kernel, Laplacian, Linear, Polynomial, exp

KERNEL_MACHINES = ("SVC", "hard SVC", "SVC, 3 classes", "NuSVC", "SVR", "NuSVR", "OneClassSVM")
LINEAR_MACHINES = ("LinearSVC", "LinearSVR", "LogisticRegression")
LIMIT, KILLED = 20.0, 60.0  # seconds of a process's own time: this may be a busy machine
EPS = float(np.finfo(np.float64).eps)
_LONG_DOUBLE_UP_TO = 400
_ENGINE_FROM = 1000
_LEAVES = ["rbf", "laplacian", "linear", "polynomial"]
_RULES = ["sum", "product", "scaled", "shifted", "power", "columns", "map", "exp"]


@dataclass
class Problem:
    """One random problem; ``formula(A, B)`` are its kernel's values, by differences."""

    seed: int
    machine: str
    model: Any
    X: Any
    y: np.ndarray
    weight: np.ndarray | None
    formula: Any
    about: str
    engine: str


@dataclass
class Verdict:
    """What came of a problem: ``kind`` is "held", "refused", or the way in which it failed."""

    seed: int
    machine: str
    engine: str
    kind: str
    seconds: float
    text: str = ""
    tally: dict[str, float] = field(default_factory=dict)

    @property
    def failed(self) -> bool:
        """Whether a promise was broken."""
        return self.kind not in ("held", "refused")


# -- problems --------------------------------------------------------------------------------------


def problem(seed: int, *, largest: int = 5000, gpu: bool = True) -> Problem:
    """Make the problem of a seed; with at most so many rows, and with the GPU engine or not."""
    random = np.random.default_rng([13, seed])
    if random.random() < 0.15:
        machine = str(random.choice(LINEAR_MACHINES))
    else:
        machine = str(random.choice(KERNEL_MACHINES, p=[0.25, 0.1, 0.1, 0.15, 0.15, 0.15, 0.1]))
    on_gpu = random.random() < 0.005 and machine in KERNEL_MACHINES
    n = _rows(random, largest, on_gpu)
    X, scale, about = _points(random, n)
    d = X.shape[1]
    y = _targets(random, machine, X, scale)
    weight = _weights(random, n)
    form = "dense"
    if random.random() < 0.3:
        X = X.astype(np.float32)
        form += " float32"
    if random.random() < 0.25:
        X, form = sp.csr_matrix(X), form.replace("dense", "csr")
    tol = float(10.0 ** random.uniform(-8, -1)) if random.random() < 0.6 else 1e-3
    C = float(10.0 ** random.uniform(-3, 5)) if random.random() < 0.8 else 1.0
    intercept = bool(random.random() < 0.8)
    common: dict[str, Any] = {"tol": tol, "n_jobs": 1}
    if machine in LINEAR_MACHINES:
        model, formula, kernel = _linear_model(random, machine, C, tol, intercept), None, ""
    else:
        kernel, formula = _kernel(random, d, scale)
        if on_gpu and gpu:
            common["device"] = "cuda"
            common["tol"] = max(tol, 1e-3)  # a step takes the interpreter 30 ms
            C = min(C, 10.0)
            gamma = float(1.0 / scale**2)
            kernel, formula = RBF(gamma), lambda A, B: np.exp(-gamma * _squared(A, B))
        model = _kernel_model(random, machine, kernel, C, intercept, common)
    variables = n * (2 if machine in ("SVR", "NuSVR") else 1)
    engine = "working set" if variables >= _ENGINE_FROM else "SMO"
    if machine == "hard SVC":
        engine = "SMO"
    if "device" in common:
        engine = "GPU, interpreted"
    if machine in LINEAR_MACHINES:
        engine = "linear"
    about = f"{machine} {n}x{d} {form}, {about}, {model!r}"
    return Problem(seed, machine, model, X, y, weight, formula, about, engine)


def _rows(random: np.random.Generator, largest: int, on_gpu: bool) -> int:
    share = random.random()
    if on_gpu:
        return int(random.integers(4, 13))
    if share < 0.02:
        return min(int(random.integers(1000, 5001)), largest)
    if share < 0.1:
        return min(int(random.integers(60, 301)), largest)
    return min(int(random.integers(4, 61)), largest)


def _points(random: np.random.Generator, n: int) -> tuple[np.ndarray, float, str]:
    d = int(random.integers(1, 7)) if random.random() < 0.9 else int(random.integers(7, 31))
    kind = str(random.choice(["normal", "grid", "clusters", "sparse"]))
    X = random.normal(size=(n, d))
    if kind == "grid":
        X = np.round(2 * X) / 2  # with rows that coincide
    elif kind == "clusters":
        X = 0.1 * X + random.normal(size=(3, d))[random.integers(3, size=n)]
    elif kind == "sparse":
        X *= random.random(size=(n, d)) < 0.3
    scale = float(10.0 ** random.uniform(-3, 3)) if random.random() < 0.4 else 1.0
    X *= scale
    about = [kind, f"scale {scale:.2g}"]
    if random.random() < 0.4:
        shift = scale * 10.0 ** random.uniform(0, 9)
        columns = random.random(d) < random.choice([0.3, 1.0])
        X += shift * columns
        about.append(f"offset {shift:.2g} in {int(columns.sum())}")
    if random.random() < 0.3:
        far = scale * 10.0 ** random.uniform(1, 9)
        some = random.random(n) < random.choice([0.0, 0.1, 0.5])
        some[random.integers(n)] = True
        X[some] += far * random.choice([0.0, 1.0], size=d, p=[0.3, 0.7])
        about.append(f"{int(some.sum())} rows at {far:.2g}")
    if d > 1 and random.random() < 0.1:
        X[:, 0] = X[0, 0]
        about.append("a constant column")
    return X, scale, ", ".join(about)


def _targets(random: np.random.Generator, machine: str, X: np.ndarray, scale: float) -> np.ndarray:
    n = len(X)
    middle = (X - np.median(X, axis=0)) / scale
    rule = np.sin(2 * middle[:, 0]) + middle[:, -1] * middle[:, 0]
    noise = 10.0 ** random.uniform(-3, 0.5)
    rule = rule + noise * random.normal(size=n)
    if machine in ("SVR", "NuSVR", "LinearSVR"):
        y = 10.0 ** random.uniform(-4, 4) * np.clip(rule, -1e3, 1e3)
        if random.random() < 0.1:
            y[:] = y[0]
        return y + (10.0 ** random.uniform(0, 6) if random.random() < 0.2 else 0.0)
    if machine == "hard SVC" and random.random() < 0.6:
        rule = middle @ random.normal(size=X.shape[1])
    classes = 3 if machine == "SVC, 3 classes" else 2
    if machine in ("LinearSVC", "LogisticRegression") and random.random() < 0.3:
        classes = 3
    y = np.argsort(np.argsort(rule, kind="stable"), kind="stable") * classes // n
    if random.random() < 0.2:
        y = random.integers(classes, size=n)
    y[:classes] = np.arange(classes)
    return y


def _weights(random: np.random.Generator, n: int) -> np.ndarray | None:
    kind = random.random()
    if kind < 0.6:
        return None
    weight = random.uniform(0.2, 2.0, size=n)
    if kind < 0.75:
        weight[random.random(n) < 0.3] = 0.0
    elif kind < 0.9:
        weight = 10.0 ** random.uniform(-4, 4, size=n)
    return weight


def _kernel(random: np.random.Generator, d: int, scale: float, depth: int = 0) -> tuple[Any, Any]:
    """Return a kernel, and its formula written out for two arrays of rows."""
    leaf = depth >= 2 or random.random() < 0.6
    if leaf:
        kind = str(random.choice(_LEAVES, p=[0.5, 0.2, 0.15, 0.15]))
        if kind == "rbf":
            gamma = float(10.0 ** random.uniform(-3, 2) / scale**2)
            return RBF(gamma), lambda A, B: np.exp(-gamma * _squared(A, B))
        if kind == "laplacian":
            gamma = float(10.0 ** random.uniform(-3, 1.5) / scale)
            return Laplacian(gamma), lambda A, B: np.exp(-gamma * _city_block(A, B))
        if kind == "linear":
            return Linear(), lambda A, B: A @ B.T
        degree, c = int(random.integers(2, 5)), float(random.choice([0.0, 0.5, 1.0, 100.0]))
        gamma = float(10.0 ** random.uniform(-2, 1) / scale**2)
        if random.random() < 0.2:
            gamma = 1.0
        kernel = Polynomial(degree=degree, coef0=c, gamma=gamma)
        return kernel, lambda A, B: (gamma * (A @ B.T) + c) ** degree
    kind = str(random.choice(_RULES))
    first, f = _kernel(random, d, scale, depth + 1)
    if kind == "sum":
        second, g = _kernel(random, d, scale, depth + 1)
        return first + second, lambda A, B: f(A, B) + g(A, B)
    if kind == "product":
        second, g = _kernel(random, d, scale, depth + 1)
        return first * second, lambda A, B: f(A, B) * g(A, B)
    if kind == "scaled":
        factor = float(10.0 ** random.uniform(-3, 3))
        return factor * first, lambda A, B: factor * f(A, B)
    if kind == "shifted":
        constant = float(10.0 ** random.uniform(-2, 3))
        return first + constant, lambda A, B: f(A, B) + constant
    if kind == "power":
        return first**2, lambda A, B: f(A, B) ** 2
    if kind == "columns":
        columns = np.sort(random.choice(d, size=int(random.integers(1, d + 1)), replace=False))
        inner, g = _kernel(random, len(columns), scale, depth + 1)
        chosen = columns.tolist()
        return inner.on(chosen), lambda A, B: g(A[:, chosen], B[:, chosen])
    if kind == "map":
        return first.after(_doubled), lambda A, B: f(_doubled(A), _doubled(B))
    gamma = float(1.0 / scale**2)
    return exp(2.0 * RBF(gamma)), lambda A, B: np.exp(2.0 * np.exp(-gamma * _squared(A, B)))


def _doubled(X: Any) -> Any:
    """A feature map: twice the row, and its first column again; exact in any precision."""
    if sp.issparse(X):
        return sp.hstack([2.0 * X, X[:, :1]]).tocsr()
    return np.concatenate([2.0 * X, X[:, :1]], axis=1)


def _squared(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    total = np.zeros((len(A), len(B)), dtype=A.dtype)
    for k in range(A.shape[1]):
        difference = A[:, k][:, None] - B[:, k]
        total += difference * difference
    return total


def _city_block(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    total = np.zeros((len(A), len(B)), dtype=A.dtype)
    for k in range(A.shape[1]):
        total += np.abs(A[:, k][:, None] - B[:, k])
    return total


def _kernel_model(
    random: np.random.Generator,
    machine: str,
    kernel: Kernel,
    C: float,
    intercept: bool,
    common: dict[str, Any],
) -> Any:
    nu = float(random.uniform(0.02, 0.9))
    if machine == "hard SVC":
        return SVC(C=np.inf, kernel=kernel, fit_intercept=intercept, **common)
    if machine in ("SVC", "SVC, 3 classes"):
        balanced = "balanced" if random.random() < 0.2 else None
        return SVC(C=C, kernel=kernel, fit_intercept=intercept, class_weight=balanced, **common)
    if machine == "NuSVC":
        return NuSVC(nu=nu, kernel=kernel, fit_intercept=intercept, **common)
    if machine == "SVR":
        epsilon = float(random.choice([0.0, 0.01, 0.1, 1.0, 100.0]))
        return SVR(C=C, epsilon=epsilon, kernel=kernel, fit_intercept=intercept, **common)
    if machine == "NuSVR":
        return NuSVR(C=C, nu=nu, kernel=kernel, fit_intercept=intercept, **common)
    return OneClassSVM(nu=nu, kernel=kernel, **common)


def _linear_model(
    random: np.random.Generator, machine: str, C: float, tol: float, intercept: bool
) -> Any:
    common: dict[str, Any] = {"C": C, "tol": tol, "fit_intercept": intercept, "n_jobs": 1}
    if machine == "LinearSVC":
        loss = str(random.choice(["hinge", "squared_hinge"]))
        return LinearSVC(loss=loss, **common)
    if machine == "LinearSVR":
        loss = str(random.choice(["epsilon_insensitive", "squared_epsilon_insensitive"]))
        epsilon = float(random.choice([0.0, 0.1, 1.0]))
        return LinearSVR(loss=loss, epsilon=epsilon, **common)
    return LogisticRegression(**common)


# -- truth -----------------------------------------------------------------------------------------


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
    """Kernel values among the rows of a problem, by its formula."""

    def __init__(self, problem: Problem):
        X = problem.X.toarray() if sp.issparse(problem.X) else problem.X
        self.wide = len(X) <= _LONG_DOUBLE_UP_TO
        self.dtype = np.longdouble if self.wide else np.float64
        self.X, self.formula = X.astype(self.dtype), problem.formula
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


def _pairs(problem: Problem, fitted: Any) -> list[tuple[np.ndarray, np.ndarray, np.ndarray, float]]:
    """For each pair of classes: rows, labels, beta on them, and the bias."""
    classes = fitted.classes_
    index = np.searchsorted(classes, problem.y)
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


def _classifier_truths(problem: Problem, fitted: Any) -> list[_Truth]:
    values, truths = _Values(problem), []
    n = len(problem.y)
    weight = np.ones(n) if problem.weight is None else problem.weight
    index = np.searchsorted(fitted.classes_, problem.y)
    weight = weight * fitted.class_weight_[index]
    parts = fitted.certificate_.parts or (fitted.certificate_,)
    for (rows, y, beta, b), part in zip(_pairs(problem, fitted), parts, strict=True):
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
        below = alpha < w * (1 - 8 * EPS)  # rho was divided by, and is made again from a sum
        return _two_sided(-y * f, below, alpha > 0, groups)

    infeasible = _off(sums, box - 8 * EPS * float(w.max()), beta)
    truth = _truth(values, rows, beta, loss, 0.0, violation, infeasible)
    return replace(truth, same_scale=known)


def _regressor_truth(problem: Problem, fitted: Any) -> _Truth:
    values = _Values(problem)
    n = len(problem.y)
    rows, t = np.arange(n), problem.y.astype(np.float64)
    C = fitted.C * (np.ones(n) if problem.weight is None else problem.weight)
    beta, b = _on_all(problem, fitted), float(fitted.intercept_[0])
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


def _one_class_truth(problem: Problem, fitted: Any) -> _Truth:
    values = _Values(problem)
    n = len(problem.y)
    w = np.ones(n) if problem.weight is None else problem.weight
    alpha, rho = _on_all(problem, fitted), float(fitted.offset_[0])
    total = float(fitted.nu * w.sum())

    def loss(f: np.ndarray) -> Any:
        slack = np.maximum(0, rho - f)
        return w @ slack - total * rho, w * (slack > 0)

    def violation(f: np.ndarray) -> float:
        return _two_sided(-f, alpha < w, alpha > 0, np.zeros(n))

    box = max(float((alpha - w).max()), float((-alpha).max()), 0.0)
    infeasible = _off(float(alpha.sum()) - total, box, alpha)
    return _truth(values, np.arange(n), alpha, loss, 0.0, violation, infeasible)


def _on_all(problem: Problem, fitted: Any) -> np.ndarray:
    dual = fitted.dual_coef_.toarray() if sp.issparse(fitted.dual_coef_) else fitted.dual_coef_
    beta = np.zeros(len(problem.y))
    beta[fitted.support_] = dual[0]
    return beta


# -- verdicts --------------------------------------------------------------------------------------

FEASIBLE = 1e-8  # infeasibility, over the size of the coefficients, that is still called feasible


def _judged(problem: Problem, fitted: Any) -> tuple[str, str, dict[str, float]]:
    if problem.machine in LINEAR_MACHINES:
        return _judged_linear(problem, fitted)
    if isinstance(fitted, SVC | NuSVC):
        truths = _classifier_truths(problem, fitted)
    elif isinstance(fitted, SVR | NuSVR):
        truths = [_regressor_truth(problem, fitted)]
    else:
        truths = [_one_class_truth(problem, fitted)]
    certificate = fitted.certificate_
    parts = certificate.parts or (certificate,)
    tally = {"relative gap": certificate.relative_gap, "converged": float(certificate.converged)}
    for part, truth in zip(parts, truths, strict=True):
        gap = float(truth.primal - truth.dual)
        primal, dual = float(truth.primal), float(truth.dual)
        told = (
            f"{part.status}: true primal {primal:.12g}, dual {dual:.12g}, gap {gap:.3g} (known to "
            f"{truth.allowance:.2g}); claimed {part.primal:.12g}, {part.dual:.12g}, {part.gap:.3g} "
            f"+ {part.rounding:.3g}, relative {part.relative_gap:.3g}; violation "
            f"{truth.violation:.3g}, claimed {part.kkt_violation:.3g}, tol {part.tol:.3g}, noise "
            f"{truth.noise:.2g}"
        )
        numbers = part.primal, part.dual, part.gap, part.relative_gap, part.rounding
        if np.isnan(numbers).any() or np.isnan(part.kkt_violation):
            return "false", f"nan in the certificate; {told}", tally
        if part.definiteness == "indefinite" or part.status == "trivial":
            continue
        if truth.infeasible > FEASIBLE and part.converged:
            return "false", f"infeasible by {truth.infeasible:.3g}; {told}", tally
        if gap - truth.allowance > part.gap + part.rounding:
            return "false", f"the gap is larger; {told}", tally
        scale = float(max(abs(truth.primal), abs(truth.dual)))
        scale = scale if truth.same_scale else max(scale, abs(part.primal))
        if gap - truth.allowance > part.relative_gap * (scale + part.rounding) * (1 + 1e-9):
            return "false", f"the relative gap is larger; {told}", tally
        if part.converged and truth.violation > part.tol + truth.noise:
            return "above tol", told, tally
    return "held", "", tally


def _objective(problem: Problem, model: Any, labels: np.ndarray) -> Any:
    """Objective of a linear machine of one output at weights and intercept, with its gradient."""
    X = problem.X.toarray() if sp.issparse(problem.X) else problem.X
    X = X.astype(np.float64)
    cost = model.C * (np.ones(len(X)) if problem.weight is None else problem.weight)
    kind = "logistic" if isinstance(model, LogisticRegression) else model.loss

    def value(theta: np.ndarray) -> tuple[float, np.ndarray]:
        w, b = theta[:-1], theta[-1]
        f = X @ w + b
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
            u = np.maximum(np.abs(f - labels) - model.epsilon, 0)
            sign = np.sign(f - labels)
            squared = kind.startswith("squared")
            loss, slope = (u**2, 2 * u * sign) if squared else (u, sign * (u > 0))
        gradient = np.append(w + X.T @ (cost * slope), cost @ slope if model.fit_intercept else 0)
        return float(0.5 * w @ w + cost @ loss), gradient

    return value


def _softmax_objective(problem: Problem, model: Any) -> Any:
    X = problem.X.toarray() if sp.issparse(problem.X) else problem.X
    X = X.astype(np.float64)
    cost = model.C * (np.ones(len(X)) if problem.weight is None else problem.weight)
    index = np.searchsorted(model.classes_, problem.y)

    def value(coef: np.ndarray, intercept: np.ndarray) -> float:
        f = X @ coef.T + intercept
        top = f.max(axis=1)
        loss = top + np.log(np.exp(f - top[:, None]).sum(axis=1)) - f[np.arange(len(X)), index]
        return float(0.5 * (coef**2).sum() + cost @ loss)

    return value


def _judged_linear(problem: Problem, fitted: Any) -> tuple[str, str, dict[str, float]]:
    certificate = fitted.certificate_
    parts = certificate.parts or (certificate,)
    tally = {"relative gap": certificate.relative_gap, "converged": float(certificate.converged)}
    exact = type(fitted)(**{**fitted.get_params(), "tol": 1e-10, "max_iter": 300})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exact.fit(problem.X, problem.y, problem.weight)
    coef, exact_coef = np.atleast_2d(fitted.coef_), np.atleast_2d(exact.coef_)
    b, exact_b = np.atleast_1d(fitted.intercept_), np.atleast_1d(exact.intercept_)
    b, exact_b = np.resize(b, len(coef)), np.resize(exact_b, len(coef))
    softmax = isinstance(fitted, LogisticRegression) and len(fitted.classes_) > 2
    if softmax:
        value = _softmax_objective(problem, fitted)
        attained = [(value(coef, b), value(exact_coef, exact_b))]
    else:
        attained = []
        for k in range(len(coef)):
            labels = problem.y.astype(np.float64)
            if not isinstance(fitted, LinearSVR):
                chosen = fitted.classes_[1] if len(coef) == 1 else fitted.classes_[k]
                labels = np.where(problem.y == chosen, 1.0, -1.0)
            value = _objective(problem, fitted, labels)
            own = value(np.append(coef[k], b[k]))[0]
            start = np.append(exact_coef[k], exact_b[k])
            found = minimize(value, start, jac=True, method="L-BFGS-B", options={"maxiter": 50})
            attained.append((own, min(value(start)[0], float(found.fun), own)))
    for part, (own, best) in zip(parts, attained, strict=True):
        told = (
            f"{part.status}: attained {own:.12g}, best known {best:.12g}; claimed primal "
            f"{part.primal:.12g}, dual {part.dual:.12g}, relative gap {part.relative_gap:.3g}"
        )
        if np.isnan([part.primal, part.dual, part.gap]).any():
            return "false", f"nan in the certificate; {told}", tally
        # objectives are sums of products of the data: they round like the largest of these
        room = 1e-10 * (abs(own) + 1e-300) + _linear_rounding(problem, fitted, coef, b)
        if own > part.primal + room:
            return "false", f"the primal is larger; {told}", tally
        if part.dual > best + room:
            return "false", f"the dual is above an attained objective; {told}", tally
        if part.converged and own - best > part.tol * max(abs(own), abs(best)) + room:
            return "above tol", told, tally
    return "held", "", tally


def _linear_rounding(problem: Problem, fitted: Any, coef: np.ndarray, b: np.ndarray) -> float:
    X = abs(problem.X).toarray() if sp.issparse(problem.X) else np.abs(problem.X)
    cost = fitted.C * (np.ones(X.shape[0]) if problem.weight is None else problem.weight)
    f = X.astype(np.float64) @ np.abs(coef).T + np.abs(b)
    steep = 1.0
    if "squared" in str(getattr(fitted, "loss", "")):
        steep = 2.0 * float(np.abs(f).max(initial=0.0) + np.abs(problem.y).max() + 1.0)
    return float(16 * EPS * steep * (cost @ f.max(axis=1)))


def judge(problem: Problem) -> Verdict:
    """Fit the machine of a problem and hold its certificate against the truth."""
    started = time.process_time()

    def verdict(kind: str, text: str = "", tally: dict | None = None) -> Verdict:
        text = f"{text} [{problem.about}]" if kind not in ("held",) else ""
        return Verdict(
            problem.seed, problem.machine, problem.engine, kind, seconds, text, tally or {}
        )

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            arguments = (problem.X, problem.y) if problem.machine != "OneClassSVM" else (problem.X,)
            fitted = problem.model.fit(*arguments, sample_weight=problem.weight)
            seconds = time.process_time() - started
            kind, text, tally = _judged(problem, fitted)
    except (ValueError, InseparableError) as error:
        seconds = time.process_time() - started
        last = traceback.extract_tb(error.__traceback__)[-1]
        if "maxmargin" in last.filename or "sklearn" in last.filename:
            return verdict("refused", f"{type(error).__name__}: {error}")
        return verdict("crash", "".join(traceback.format_exception(error)))
    except Exception as error:  # every other exception is what this file looks for
        seconds = time.process_time() - started
        return verdict("crash", "".join(traceback.format_exception(error)))
    if kind == "held" and seconds > LIMIT:
        return verdict("slow", f"{seconds:.0f} s, {fitted.certificate_.status}", tally)
    return verdict(kind, text, tally)


# -- many of them ----------------------------------------------------------------------------------


def _work(seeds: Any, answers: Any, gpu: bool) -> None:
    while True:
        seed = seeds.get()
        if seed is None:
            return
        answers.put(("began", os.getpid(), seed))
        answers.put(("done", os.getpid(), judge(problem(seed, gpu=gpu))))


def _own_seconds(pid: int) -> float:
    """Time that a process has computed; by the clock where the system does not tell."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, AttributeError):
        return time.monotonic()


def run(first: int, count: int, jobs: int, gpu: bool, report: Any = None) -> list[Verdict]:
    """Judge ``count`` problems in ``jobs`` processes; one that does not end is killed.

    Ctrl-C ends it with what there is.
    """
    context = mp.get_context("spawn")
    seeds, answers = context.Queue(), context.Queue()
    for seed in range(first, first + count):
        seeds.put(seed)
    for _ in range(jobs):
        seeds.put(None)
    workers: dict[int, Any] = {}

    def hire() -> None:
        worker = context.Process(target=_work, args=(seeds, answers, gpu), daemon=True)
        worker.start()
        workers[worker.pid] = worker

    for _ in range(jobs):
        hire()
    busy: dict[int, tuple[int, float]] = {}  # seed, and the process's own time before it
    verdicts: list[Verdict] = []
    try:
        while len(verdicts) < count:
            try:
                kind, pid, what = answers.get(timeout=1.0)
                if kind == "began":
                    busy[pid] = what, _own_seconds(pid)
                else:
                    busy.pop(pid, None)
                    verdicts.append(what)
                    if report:
                        report(what, len(verdicts))
            except Empty:
                pass
            for pid, (seed, since) in list(busy.items()):
                died = not workers[pid].is_alive()
                if died or _own_seconds(pid) - since > KILLED:
                    workers[pid].kill()
                    busy.pop(pid)
                    made = problem(seed, gpu=gpu)
                    text = f"the process died [{made.about}]" if died else f"killed [{made.about}]"
                    kind = "crash" if died else "slow"
                    verdicts.append(Verdict(seed, made.machine, made.engine, kind, KILLED, text))
                    if report:
                        report(verdicts[-1], len(verdicts))
                    hire()
    except KeyboardInterrupt:  # what was judged until then is worth a table
        for worker in workers.values():
            worker.kill()
    return verdicts


def table(verdicts: list[Verdict]) -> str:
    """A table by machine and engine, and one line for each that failed."""
    kinds = ("held", "refused", "false", "above tol", "slow", "crash")
    by: dict[tuple[str, str], Counter] = defaultdict(Counter)
    slowest: dict[tuple[str, str], float] = defaultdict(float)
    converged: Counter = Counter()
    for verdict in verdicts:
        key = verdict.machine, verdict.engine
        by[key][verdict.kind] += 1
        slowest[key] = max(slowest[key], verdict.seconds)
        converged[key] += int(verdict.tally.get("converged", 0))
    order = [*KERNEL_MACHINES, *LINEAR_MACHINES]
    lines = [
        "| machine | engine | problems | converged | " + " | ".join(kinds) + " | slowest |",
        "|---|---|--:|--:|" + "--:|" * (len(kinds) + 1),
    ]
    for key in sorted(by, key=lambda key: (order.index(key[0]), key[1])):
        row = [str(by[key].total()), str(converged[key]), *(str(by[key][kind]) for kind in kinds)]
        lines.append(f"| {key[0]} | {key[1]} | " + " | ".join(row) + f" | {slowest[key]:.1f} s |")
    everything: Counter = sum(by.values(), Counter())
    row = [str(len(verdicts)), str(sum(converged.values()))]
    row += [str(everything[kind]) for kind in kinds]
    lines.append("| all | | " + " | ".join(row) + f" | {max(slowest.values()):.1f} s |")
    failed = sorted((v for v in verdicts if v.failed), key=lambda verdict: verdict.seed)
    if failed:
        lines += ["", "Failed:", ""]
        lines += [f"- seed {v.seed}, {v.kind}: {' '.join(v.text.split())[-300:]}" for v in failed]
    return "\n".join(lines)


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--problems", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0, help="the first one")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--seed-only", type=int, help="judge this one, in words")
    parser.add_argument("--no-gpu", action="store_true", help="no torch, no triton")
    parser.add_argument("--output", type=Path, help="write the table to this file, too")
    arguments = parser.parse_args()
    os.environ.setdefault("TRITON_INTERPRET", "1")
    signal.signal(signal.SIGINT, signal.default_int_handler)  # also in the background
    if arguments.seed_only is not None:
        made = problem(arguments.seed_only, gpu=not arguments.no_gpu)
        print(made.about, flush=True)
        verdict = judge(made)
        print(f"{verdict.kind}, {verdict.seconds:.2f} s\n{verdict.text}")
        print(getattr(made.model, "certificate_", ""))
        return int(verdict.failed)
    started = time.monotonic()

    def report(verdict: Verdict, done: int) -> None:
        if verdict.failed:
            print(f"seed {verdict.seed}: {verdict.kind}: {verdict.text}", flush=True)
        if done % 500 == 0:
            print(f"{done} in {time.monotonic() - started:.0f} s", file=sys.stderr, flush=True)

    verdicts = run(arguments.seed, arguments.problems, arguments.jobs, not arguments.no_gpu, report)
    text = table(verdicts)
    print(text)
    if arguments.output:
        arguments.output.write_text(text + "\n")
    return int(any(verdict.failed for verdict in verdicts))


if __name__ == "__main__":
    sys.exit(main())
