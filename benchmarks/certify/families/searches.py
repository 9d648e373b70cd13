"""Searches: every score of a grid beside that of a plain fit of the same estimator on the split.

Half of the problems are cells of the sweep that searches have to stand: data sets as they are,
scaled or shifted by 1e3, all kernels, two or several classes or a regression, nu and linear
estimators, C from 1e-6 to 1e12, gamma from 1e-9 to 1e3, with a second, lower C before it, so that a
path is followed. The others are random data, also at huge offsets, with three values of C.

A score may differ where neither fit says that it has converged. Two answers certified to ``tol``
may differ, too, where rows lie on the boundary or numbers are large: a fit to a thousandth of
``tol`` decides then, and the search fails if it is farther from that score than the plain fit is,
and by more than its own certificate allows. That is what the rows account for whose class hangs on
``tol``, or where all classes are one problem on the gap: no function within it is farther from the
best one than ``sqrt(2 gap)``. Of a regression a point within the gap is looked for that has the
score (`_farthest`). Beyond float64 that fit is not known to be optimal, by the relative gap with
the rounding in it, and decides nothing: the search then only has to be known to be optimal if the
plain fit is. A gap that is negative or nan is a failure.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, load_wine
from sklearn.metrics import r2_score
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.preprocessing import StandardScaler

from benchmarks.certify.data import classes_of, numbers, points, some_rows
from benchmarks.certify.exact import factor, programme
from benchmarks.certify.judge import Claims, Problem
from maxmargin import (
    SVC,
    SVR,
    GridSearchCV,
    LinearSVC,
    LinearSVR,
    LogisticRegression,
    NuSVC,
    NuSVR,
)
from maxmargin.certificate import OPTIMAL
from maxmargin.kernels import RBF, Linear

_WITHIN = 0.002  # that a score may differ, relative to it where it is large
_FINE = 1e-3  # of tol: for the fit that decides
_SLACK = 1e-8  # of an objective: what Clarabel is not asked for
_ROWS = 150
_KERNELS = ("rbf", "rbf", "rbf", "linear", "poly", "sigmoid")


@dataclass
class _Search:
    """A search, and what it is fitted to."""

    search: GridSearchCV
    X: np.ndarray
    y: np.ndarray


def problem(random: np.random.Generator) -> Problem:
    """Make a cell of the sweep, or a search over random data."""
    given, about = (_random if random.random() < 0.5 else _cell)(random)
    search = given.search
    return Problem(
        f"{about}, {search.param_grid}, {search.estimator!r}",
        lambda: search.fit(given.X, given.y),
        lambda fitted, claims: _judge(given, fitted, claims),
    )


def _cell(random: np.random.Generator) -> tuple[_Search, str]:
    regression = random.random() < 0.25
    loads: list[Callable] = [load_iris, load_wine, load_breast_cancer]
    loads = [load_diabetes] if regression else loads
    load = loads[random.integers(len(loads))]
    X, y = load(return_X_y=True)
    rows = random.permutation(len(y))[:_ROWS]
    form = str(random.choice(["as it is", "scaled", "shifted"]))
    X = X if form == "as it is" else StandardScaler().fit_transform(X) + 1e3 * (form == "shifted")
    X, y = X[rows], (y[rows] - 150) / 77 if regression else y[rows]
    C, gamma = 10.0 ** random.uniform(-6, 12), 10.0 ** random.uniform(-9, 3)
    kind = str(random.choice(["soft", "soft", "soft", "nu", "linear"]))
    kernel = str(random.choice(_KERNELS))
    grid = {"C": [1e-2 * C, C]}
    if kind == "linear":
        choices: list = [LinearSVR()] if regression else [LinearSVC(), LogisticRegression()]
        estimator: Any = choices[random.integers(len(choices))]
    elif kind == "nu":
        estimator = (NuSVR if regression else NuSVC)(kernel=kernel, gamma=gamma)
        grid = {"nu": [0.5 * (nu := float(random.uniform(0.02, 0.6))), nu]}
    else:
        estimator = (SVR if regression else SVC)(kernel=kernel, gamma=gamma)
        if not regression and random.random() < 0.3:
            estimator.set_params(multiclass=str(random.choice(["ovr", "crammer_singer"])))
    estimator.set_params(n_jobs=1)
    folds = KFold(3) if regression else StratifiedKFold(3)
    search = GridSearchCV(estimator, grid, cv=folds, refit=False, n_jobs=1)
    return _Search(search, X, y), f"{load.__name__[5:]}, {form}"


def _random(random: np.random.Generator) -> tuple[_Search, str]:
    n = some_rows(random, 40) + 12
    X, scale, about = points(random, n, tame=bool(random.random() < 0.7))
    kernel = (
        Linear() if random.random() < 0.3 else RBF(float(10.0 ** random.uniform(-2, 1)) / scale**2)
    )
    regression = bool(random.random() < 0.3)
    y = numbers(random, X, scale) if regression else classes_of(random, X, scale, 2)
    if not regression:
        y[:8] = np.arange(8) % 2
        y[-8:] = np.arange(8) % 2
    grid = {"C": np.sort(10.0 ** random.uniform(-4, 6, size=3)).tolist()}
    estimator = (SVR if regression else SVC)(kernel=kernel, n_jobs=1)
    search = GridSearchCV(estimator, grid, cv=KFold(2), n_jobs=1)
    return _Search(search, X, y), f"{n}x{X.shape[1]}, {about}"


def _optimal(certificate: Any) -> bool:
    return bool(certificate.converged and certificate.relative_gap <= OPTIMAL)


def _intercepts(fitted: SVC, X: np.ndarray, y: np.ndarray, gap: float) -> float:
    """Return how far the intercept of two classes can move where losses grow by ``gap`` at most.

    Where no row is on the margin it may be any of an interval; the sum of losses has its kinks
    where a row comes to the margin.
    """
    sign = np.where(y == fitted.classes_[1], 1.0, -1.0)
    f = fitted.decision_function(X)
    kinks = np.append(sign - f, 0.0)
    losses = fitted.C * np.maximum(1.0 - sign * (f + kinks[:, None]), 0.0).sum(axis=1)
    return float(np.abs(kinks[losses <= losses.min() * (1.0 + _SLACK) + gap]).max(initial=0.0))


def _undecided(
    fitted: Any, X: np.ndarray, tol: float, gap: float, given: tuple[np.ndarray, np.ndarray]
) -> float:
    """Share of rows that change their class with what a certificate leaves open of their values.

    That is ``tol``, and an intercept that may be any of an interval. Of pairs of classes any pair's
    value decides, since it is a vote: votes hide how near to zero it is. Where all classes are one
    problem the bias counts in the norm, and the objective is strongly convex in all functions: then
    it is what the gap leaves, if that is less.
    """
    if not is_classifier(fitted):
        return 0.0
    if len(fitted.classes_) > 2 and getattr(fitted, "multiclass", "") == "ovo":
        pairs = clone(fitted).set_params(decision_function_shape="ovo").fit(*given)
        return float(np.mean(np.abs(pairs.decision_function(X)).min(axis=1) <= tol))
    f = fitted.decision_function(X)
    if f.ndim == 1:
        f = np.column_stack([f, -f])
    best, open_to = np.sort(f, axis=1)[:, -2:], np.full(len(X), 2 * tol)
    if getattr(fitted, "multiclass", "") == "crammer_singer":
        squares = np.maximum(fitted.kernel_.diag(X), 0.0) + 1.0
        open_to = np.minimum(open_to, 2.0 * np.sqrt(gap * squares))
    shift = 0.0
    if isinstance(fitted, SVC) and len(fitted.classes_) == 2:
        shift = _intercepts(fitted, *given, gap)
    open_to = np.maximum(open_to, 2.0 * shift)
    return float(np.mean(best[:, 1] - best[:, 0] <= open_to))


def _in_coordinates(fitted: Any, X: np.ndarray, points: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return a regressor's weights, its rows and others, in coordinates where the norm is |w|."""
    if isinstance(fitted, LinearSVR):
        return fitted.coef_, X, points
    both = np.vstack([X, points])
    F = factor(fitted.kernel_(both, both))
    return fitted.dual_coef_[0] @ F[fitted.support_], F[: len(X)], F[len(X) :]


def _farthest(
    fitted: Any,
    given: tuple[np.ndarray, np.ndarray],
    test: tuple[np.ndarray, np.ndarray],
    gap: float,
    better: bool,
) -> float:
    """Return a score far from a fit's own, of weights whose objective is larger by ``gap`` at most.

    ``given`` are the rows and targets of the fit, ``test`` those of the score. The squared errors
    are linear about the fit, and their extreme within the cone ``|w|^2 <= 2 (objective - losses)``
    is Clarabel's. All scores between are attained, on the line between both points.
    """
    y, C, (w, Z, others) = given[1], fitted.C, _in_coordinates(fitted, given[0], test[0])
    n, d = Z.shape
    allowed = ((1.0 + _SLACK) * fitted.certificate_.primal + gap) / C  # for all, in units of C
    free, eye = np.ones((n, 1)), np.eye(n)
    cone = np.zeros((d + 2, d + 1 + n))
    cone[0, d + 1 :], cone[-1, d + 1 :] = 1.0, 1.0
    cone[1:-1, :d] = -np.eye(d) / np.sqrt(C)
    rows = [
        ("nonnegative", np.hstack([Z, free, -eye]), y + fitted.epsilon),
        ("nonnegative", np.hstack([-Z, -free, -eye]), fitted.epsilon - y),
        ("nonnegative", np.hstack([np.zeros((n, d + 1)), -eye]), np.zeros(n)),
        ("cone", cone, np.concatenate([[allowed + 0.5], np.zeros(d), [allowed - 0.5]])),
    ]
    columns = np.column_stack([others, np.ones(len(others))])
    slope = columns.T @ (columns @ np.append(w, fitted.intercept_) - test[1])
    slope *= 1.0 if better else -1.0
    q = np.append(slope / (np.abs(slope).max() or 1.0), np.zeros(n))
    found = programme(np.zeros((d + 1 + n, d + 1 + n)), q, rows)
    if found is None:
        return fitted.score(*test)
    w, b = found[:d], found[d]
    lost = np.maximum(np.abs(Z @ w + b - y) - fitted.epsilon, 0.0).sum()
    if 0.5 * w @ w / C + lost > allowed * (1.0 + _SLACK):
        return fitted.score(*test)
    return r2_score(test[1], columns @ found[: d + 1])


def _judge(given: _Search, fitted: GridSearchCV, claims: Claims) -> None:
    X, y, results = given.X, given.y, fitted.cv_results_
    claims.converged = True
    for i, parameters in enumerate(results["params"]):
        for j, (train, test) in enumerate(fitted.cv.split(X, y)):
            status = results[f"split{j}_status"][i]
            if status == "failed":
                continue
            gap, score = results[f"split{j}_gap"][i], results[f"split{j}_test_score"][i]
            what = f"{parameters}, split {j}"
            claims.sure(f"gap {gap} of {what}, {status}", bool(gap >= 0))
            certified = status == "converged"
            claims.converged &= certified

            def fit(train: np.ndarray = train, **options: Any) -> Any:
                return clone(fitted.estimator).set_params(**options).fit(X[train], y[train])

            plain = fit(**parameters)
            own, other = plain.score(X[test], y[test]), plain.certificate_.converged
            room = _WITHIN * max(1.0, abs(own))
            if abs(own - score) <= room or not (certified or other):
                continue
            exact = fit(**parameters, tol=_FINE * plain.tol)
            fine = next((one for one in (exact, plain) if _optimal(one.certificate_)), None)
            if fine is None or (fine is plain and certified and gap <= OPTIMAL):
                continue
            best = fine.score(X[test], y[test])
            open_gap = gap * fine.certificate_.primal
            between = (open_gap**0.5 + max(fine.certificate_.gap, 0.0) ** 0.5) ** 2
            room += _undecided(fine, X[test], plain.tol, between, (X[train], y[train]))
            if isinstance(fine, LinearSVR | SVR):
                held_out = X[test], y[test]
                far = _farthest(fine, (X[train], y[train]), held_out, open_gap, score > best)
                room = max(room, room + abs(far - best) - abs(own - best))
            how = fitted.sharing_.how.get((i, j), ("", "alone"))[1]
            said = f"score of {what} ({status}, {how}; {own:.9g} of a plain fit)"
            claims.equal(said, best, score, abs(own - best) + room)
