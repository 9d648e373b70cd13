"""The dual objective and the KKT violation of any library's fitted machine, in float64.

A machine is read from its own ``dual_coef_``, ``support_`` and ``support_vectors_``. Let ``beta``
be the signed coefficient of each row, ``D = K beta``, and ``s`` the labels as -1 and +1. The duals,
as maximised, with their boxes and the sums that are held fixed:

    SVC          s'beta - 1/2 beta'D                  0 <= s beta <= C    sum beta = 0
    SVR          y'beta - epsilon |beta|_1 - 1/2 beta'D   |beta| <= C     sum beta = 0
    NuSVC        -1/2 beta'D                          0 <= s beta <= 1    sum of each class
    NuSVR        y'beta - 1/2 beta'D                    |beta| <= C       sum of each sign
    OneClassSVM  -1/2 beta'D                            0 <= beta <= 1    sum beta = nu n

NuSVC's coefficients are brought back from margin one to ``|beta|_1 = nu n`` first. Several classes
are one problem per pair. The KKT violation is LIBSVM's stopping quantity, the number ``tol``
bounds: the largest slope of the objective along a coefficient that may rise, less the smallest
along one that may fall, where both belong to the same fixed sum.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import scipy.sparse as sp
from threadpoolctl import threadpool_limits

BLOCK = 2_000_000  # kernel values at a time, in each thread
WHOLE = 3_000_000_000  # up to so many kernel values the violation is looked for in all rows
_AT_BOUND = 1e-9  # share of a box within which a coefficient counts as on its edge


@dataclass(frozen=True)
class Examination:
    """What was found.

    ``duals`` holds one number per pair of classes. ``infeasibility`` is the largest overshoot of a
    box or drift of a sum, as a share of the box. ``all_rows`` says whether the violation was looked
    for in all rows or in the support vectors only.
    """

    duals: list[float]
    violation: float
    infeasibility: float
    all_rows: bool


@dataclass(frozen=True)
class Problem:
    """One problem of a machine, over all rows of the data.

    ``member`` marks its rows, ``beta`` holds their signed coefficients and ``target`` their labels
    -1 and +1, or their real targets.
    """

    member: np.ndarray
    beta: np.ndarray
    target: np.ndarray


def examine(model, X, y) -> Examination:
    """Recompute objective and violation of a machine with the RBF kernel, fitted to X and y."""
    problems = list(_problems(model, y))
    all_rows = len(y) * len(model.support_) <= WHOLE
    rows = np.arange(len(y)) if all_rows else np.sort(model.support_)
    points = X if all_rows else X[rows]
    expansions = np.stack([problem.beta[model.support_] for problem in problems], axis=1)
    decisions = _product(_gamma(model, X), points, model.support_vectors_, expansions)
    duals, violation, infeasibility = [], 0.0, 0.0
    for problem, D in zip(problems, decisions.T, strict=True):
        inside = problem.member[rows]
        beta, target = problem.beta[rows[inside]], problem.target[rows[inside]]
        moves = _moves(model, beta, target, D[inside])
        duals.append(_objective(model, beta, target, D[inside]))
        violation = max(violation, moves.violation())
        infeasibility = max(infeasibility, moves.overshoot(), _drift(model, problem))
    return Examination(duals, violation, infeasibility, all_rows)


def _problems(model, y: np.ndarray) -> Iterator[Problem]:
    """Take apart scikit-learn's layout of ``dual_coef_``: one problem per pair of classes.

    The column of a support vector of class c holds its coefficients against the other classes, in
    order. Positive is the first class of a pair; with two classes in all, the second.
    """
    coef = model.dual_coef_.toarray() if sp.issparse(model.dual_coef_) else model.dual_coef_
    if not hasattr(model, "classes_"):
        beta = np.zeros(len(y))
        beta[model.support_] = coef[0]
        yield Problem(np.ones(len(y), dtype=bool), beta, y)
        return
    owner = np.searchsorted(model.classes_, y)
    n_classes = len(model.classes_)
    for first, second in combinations(range(n_classes), 2):
        beta = np.zeros(len(y))
        for own, other in ((first, second), (second, first)):
            columns = np.flatnonzero(owner[model.support_] == own)
            beta[model.support_[columns]] = coef[other - (other > own), columns]
        member = (owner == first) | (owner == second)
        if type(model).__name__ == "NuSVC":
            beta *= model.nu * member.sum() / np.abs(beta).sum()
        positive = second if n_classes == 2 else first
        yield Problem(member, beta, np.where(owner == positive, 1.0, -1.0))


def _gamma(model, X) -> float:
    if model.gamma != "scale":
        return model.gamma
    return 1.0 / (X.shape[1] * X.var())


def _product(gamma: float, points, vectors, expansions: np.ndarray) -> np.ndarray:
    """``K(points, vectors) @ expansions``, block by block."""
    vectors = _dense(vectors, points.shape[1])
    centre = vectors.mean(axis=0)
    vectors -= centre
    squares = (vectors**2).sum(axis=1)
    height = max(BLOCK // len(vectors), 1)

    def block(start: int) -> np.ndarray:
        rows = _dense(points[start : start + height], len(centre)) - centre
        values = rows @ vectors.T
        values *= 2.0
        values -= squares
        values -= (rows**2).sum(axis=1)[:, None]
        np.minimum(values, 0.0, out=values)
        values *= gamma
        return np.exp(values, out=values) @ expansions

    starts = range(0, points.shape[0], height)
    with threadpool_limits(1), ThreadPoolExecutor(os.cpu_count()) as pool:
        return np.concatenate(list(pool.map(block, starts)))


def _dense(points, n_features: int) -> np.ndarray:
    """Copy to a dense array (scikit-learn-intelex drops empty last columns of sparse vectors)."""
    full = np.zeros((points.shape[0], n_features))
    full[:, : points.shape[1]] = points.toarray() if sp.issparse(points) else points
    return full


@dataclass(frozen=True)
class Moves:
    """Where the coefficients of a problem are, between which bounds, and what moving them gains.

    ``group`` names the fixed sum a coefficient belongs to. A row of a regression problem has two:
    its positive and its negative part.
    """

    part: np.ndarray
    low: np.ndarray
    high: np.ndarray
    slope: np.ndarray
    group: np.ndarray

    def violation(self) -> float:
        """Gain of the best exchange within a group."""
        edge = _AT_BOUND * (self.high - self.low)
        rising, falling = self.part < self.high - edge, self.part > self.low + edge
        worst = 0.0
        for group in np.unique(self.group):
            member = self.group == group
            best = self.slope[member & rising].max(initial=-np.inf)
            worst = max(worst, best - self.slope[member & falling].min(initial=np.inf))
        return float(worst)

    def overshoot(self) -> float:
        """Largest excess over a bound, as a share of the box."""
        excess = np.maximum(self.low - self.part, self.part - self.high)
        return float((excess / (self.high - self.low)).max())


def _moves(model, beta: np.ndarray, target: np.ndarray, D: np.ndarray) -> Moves:
    """Write the conditions in the table above as boxes, slopes and groups."""
    name, zeros = type(model).__name__, np.zeros(len(beta))
    if name == "OneClassSVM":
        return Moves(beta, zeros, zeros + 1.0, -D, zeros)
    if name in ("SVC", "NuSVC"):
        edge = target * model.C if name == "SVC" else target
        slope, group = (target - D, zeros) if name == "SVC" else (-D, target)
        return Moves(beta, np.minimum(edge, 0.0), np.maximum(edge, 0.0), slope, group)
    bound, residual = zeros + model.C, target - D
    epsilon, group = (model.epsilon, zeros) if name == "SVR" else (0.0, zeros + 1.0)
    return Moves(
        part=np.concatenate([np.maximum(beta, 0.0), np.minimum(beta, 0.0)]),
        low=np.concatenate([zeros, -bound]),
        high=np.concatenate([bound, zeros]),
        slope=np.concatenate([residual - epsilon, residual + epsilon]),
        group=np.concatenate([zeros, group]),
    )


def _objective(model, beta: np.ndarray, target: np.ndarray, D: np.ndarray) -> float:
    """Evaluate the dual objective, as maximised; rows that are left out have no coefficient."""
    name = type(model).__name__
    value = -0.5 * beta @ D
    if name in ("SVC", "SVR", "NuSVR"):
        value += target @ beta
    if name == "SVR":
        value -= model.epsilon * np.abs(beta).sum()
    return float(value)


def _drift(model, problem: Problem) -> float:
    """How far a sum is from where it is held, as a share of the box."""
    name = type(model).__name__
    held = model.nu * len(problem.beta) if name == "OneClassSVM" else 0.0
    box = model.C if name in ("SVC", "SVR", "NuSVR") else 1.0
    return float(abs(problem.beta.sum() - held) / box)
