"""Approximated kernels: the error of feature maps, and machines on features.

Errors are recomputed from all rows that the map was not made from; features at landmarks are exact
and never longer than the truth. A machine on features is the linear one on ``transform``'s values.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.certify.data import (
    Data,
    classes_of,
    in_form,
    kernel_with_formula,
    numbers,
    points,
    sample_weights,
    some_rows,
    squared,
)
from benchmarks.certify.families import linear
from benchmarks.certify.judge import Claims, Problem
from maxmargin import SVC, SVR, ExplicitFeatures, LinearSVC, LinearSVR, Nystroem, RandomFourier
from maxmargin.kernels import RBF, Polynomial


def problem(random: np.random.Generator) -> Problem:
    """Make a problem of a map alone, or of a machine on its features."""
    n = some_rows(random, 60)
    X, scale, about = points(random, n, tame=bool(random.random() < 0.5))
    X, form = in_form(random, X)
    kernel, formula = kernel_with_formula(random, X.shape[1], scale)
    few = int(random.integers(1, n + 10))
    kind = str(random.choice(["nystroem", "fourier", "explicit", "machine", "machine"]))
    gamma = float(10.0 ** random.uniform(-2, 1) / scale**2)

    def rbf(A: np.ndarray, B: np.ndarray) -> np.ndarray:
        return np.exp(-gamma * squared(A, B))

    data = Data(X, classes_of(random, np.zeros((n, 1)), 1.0, 2), None, formula)
    if kind == "machine":
        return _machine(random, data, X, scale, form, kernel, gamma)
    if kind == "nystroem":
        landmarks = str(random.choice(["pivots", "uniform"]))
        model: Any = Nystroem(
            kernel, n_components=few, landmarks=landmarks, random_state=0, n_jobs=1
        )
        judge = _nystroem
    elif kind == "fourier":
        model, judge = RandomFourier(RBF(gamma), n_components=few, random_state=0), _error
        data.formula = rbf
    else:
        degree, coef0 = int(random.integers(1, 4)), float(random.choice([0.0, 1.0, 10.0]))
        model, judge = ExplicitFeatures(Polynomial(degree, gamma=gamma, coef0=coef0)), _explicit
        data.formula = lambda A, B: (gamma * (A @ B.T) + coef0) ** degree
        data.X = X = data.dense.astype(X.dtype)  # it takes no sparse rows
    return Problem(
        f"{n}x{X.shape[1]} {form}, {about}, {model!r}",
        lambda: model.fit(X),
        lambda fitted, claims: judge(data, fitted, claims),
    )


def _machine(
    random: np.random.Generator,
    data: Data,
    X: Any,
    scale: float,
    form: str,
    kernel: Any,
    gamma: float,
) -> Problem:
    n, regression = X.shape[0], bool(random.random() < 0.4)
    dense = data.dense.astype(np.float64)
    y = numbers(random, dense, scale) if regression else classes_of(random, dense, scale, 2)
    fourier = bool(random.random() < 0.4)
    weight = sample_weights(random, n)
    model = (SVR if regression else SVC)(
        C=float(10.0 ** random.uniform(-2, 3)),
        kernel=RBF(gamma) if fourier else kernel,
        approximation=RandomFourier(n_components=20, random_state=0)
        if fourier
        else Nystroem(n_components=int(random.integers(2, 30)), random_state=0),
        fit_intercept=bool(random.random() < 0.7),
        tol=float(10.0 ** random.uniform(-6, -2)),
        n_jobs=1,
    )
    return Problem(
        f"{n}x{X.shape[1]} {form}, {model!r}",
        lambda: model.fit(X, y, sample_weight=weight),
        lambda fitted, claims: _on_features(Data(X, y, weight), fitted, claims),
    )


def _phi(fitted: Any, X: Any) -> np.ndarray:
    phi = fitted.transform(X)
    return np.asarray(phi.toarray() if hasattr(phi, "toarray") else phi).astype(np.longdouble)


def _relative(phi: np.ndarray, gram: np.ndarray) -> float:
    size = np.sqrt((gram**2).sum())
    return float(np.sqrt(((phi @ phi.T - gram) ** 2).sum()) / size) if size else 0.0


def _room(data: Data) -> float:
    """Relative rounding of products with data that lie far from the origin."""
    X = data.dense
    if data.X.dtype == np.float32:  # each feature is rounded once
        return 2.0 * float(np.finfo(np.float32).eps)
    return 1e-9 + 1e-16 * float(np.abs(X).max(initial=0.0))


def _error(data: Data, fitted: RandomFourier, claims: Claims) -> None:
    claims.converged = True
    phi, gram = _phi(fitted, data.X), data.gram
    phase = float(np.abs(data.dense).sum(axis=1).max() * np.abs(fitted.frequencies_).max())
    precision = 1e-7 if data.X.dtype == np.float32 else 1e-15
    room = 1e-9 + 16 * precision * phase * len(gram)
    claims.equal("error", _relative(phi, gram), fitted.approximation_error_, room)
    wide = fitted.n_components % 2
    if not wide and room < 1e-3:
        claims.equal("lengths", np.diag(gram), (phi * phi).sum(axis=1), room)


def _nystroem(data: Data, fitted: Nystroem, claims: Claims) -> None:
    claims.converged = True
    phi, gram = _phi(fitted, data.X), data.gram
    top = float(np.abs(np.diag(gram)).max())
    own = fitted.component_indices_
    rest = np.setdiff1d(np.arange(len(gram)), own)
    room = 1e-4  # squares of what is left are known to the root of rounding
    if len(rest) > 1:
        true = _relative(phi[rest], gram[np.ix_(rest, rest)])
        claims.equal("error", true, fitted.approximation_error_, room)
    if fitted.kernel_.validity == "valid":
        longer = ((phi * phi).sum(axis=1) - np.diag(gram)).max()
        claims.at_most("longer than the truth", longer / (top or 1.0), 0.0, room)
    if not np.isnan(phi).any():
        off = np.abs(phi[own] @ phi[own].T - gram[np.ix_(own, own)]).max(initial=0.0)
        claims.at_most("at landmarks", off / (top or 1.0), 0.0, room)


def _explicit(data: Data, fitted: ExplicitFeatures, claims: Claims) -> None:
    claims.converged = True
    phi, gram = _phi(fitted, data.X), data.gram
    size = (phi * phi).sum(axis=1)
    room = _room(data) * np.sqrt(np.outer(size, size)) + 1e-300
    claims.equal("products of features", gram, phi @ phi.T, room)


def _on_features(data: Data, fitted: Any, claims: Claims) -> None:
    """The certificate is that of the linear machine on the features."""
    certificate = fitted.certificate_
    claims.converged = certificate.converged
    phi = _phi(fitted.feature_map_, data.X).astype(
        np.float32 if data.X.dtype == np.float32 else np.float64
    )
    w = np.atleast_2d(fitted.feature_coef_)
    b = np.atleast_1d(fitted.intercept_)
    options = {"C": fitted.C, "tol": fitted.tol, "fit_intercept": fitted.fit_intercept}
    if isinstance(fitted, SVR):
        twin: Any = LinearSVR(loss="epsilon_insensitive", epsilon=fitted.epsilon, **options)
        labels = data.y.astype(np.float64)
    else:
        twin = LinearSVC(loss="hinge", **options)
        twin.classes_ = fitted.classes_
        labels = np.where(data.y == fitted.classes_[1], 1.0, -1.0)
    on = Data(phi, data.y, data.weight)
    value = linear.objective(on, twin, labels)
    own = value(np.append(w[0], b[0]).astype(np.longdouble))[0]
    attained = [own]
    if (found := linear.by_clarabel(on, twin, labels)) is not None:
        attained.append(value(found)[0])
    room = linear.rounding(on, twin, w, b[:1])
    if phi.dtype == np.float32:  # blocks of other sizes round differently
        room += 1e-6 * float(fitted.C * on.weights @ (np.abs(phi) @ np.abs(w[0])))
    linear.compare(certificate, own, min(attained), room, claims)
