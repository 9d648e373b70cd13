"""Bounds of `maxmargin.bounds`, held against the truth by brute force.

The leave-one-out bounds are compared with the leave-one-out error: one fit for each row, with
kernel and costs kept. Novikoff's bound is compared with the mistakes of a perceptron that is
written out here, from several starts, and the margin bound with the error on a large sample: it may
fail with probability 1 - confidence, and only counts where it is far off.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from benchmarks.certify.judge import Claims, Problem
from maxmargin import SVC
from maxmargin.bounds import (
    kernel_margin_bound,
    leave_one_out,
    mistake_bound,
    radius_margin,
    xi_alpha,
)
from maxmargin.kernels import RBF, Linear, Polynomial

CONFIDENCE = 0.9
_NEW = 4000  # points that stand for the distribution


class _Given(NamedTuple):
    """An estimator, its rows, and a sample of their distribution."""

    model: Any
    X: np.ndarray
    y: np.ndarray
    weight: np.ndarray
    new: tuple[np.ndarray, np.ndarray]
    start: int


def problem(random: np.random.Generator) -> Problem:
    """Make a problem, and a sample of its rows' distribution."""
    n, d = int(random.integers(8, 26)), int(random.integers(1, 4))
    share = random.choice([0.5, 0.5, 0.2])
    distance = random.choice([0.0, 0.0, 1.5, 6.0])

    def draw(count: int) -> tuple[np.ndarray, np.ndarray]:
        y = (random.random(count) < share).astype(int)
        return random.normal(size=(count, d)) + distance * y[:, None], y

    X, y = draw(n)
    y[:2], y[2:4] = 0, 1  # two of each, so that no class is lost with a row
    X[:4] = random.normal(size=(4, d)) + distance * y[:4, None]
    if random.random() < 0.2:
        X[n // 2 :] = X[: n - n // 2]
    if random.random() < 0.4:  # balanced but for one row: the machines without it are loose
        y[:] = np.arange(n) % 2
    kernel = (
        RBF(float(10.0 ** random.uniform(-1, 1))),
        Linear(),
        Polynomial(2),
    )[random.choice(3, p=[0.6, 0.25, 0.15])]
    C = float(10.0 ** random.uniform(-3, 2)) if random.random() < 0.85 else np.inf
    weights = None
    if random.random() < 0.2:
        weights = {0: 1.0, 1: float(10.0 ** random.uniform(-1, 1))}
    model = SVC(
        C=C,
        kernel=kernel,
        fit_intercept=bool(random.random() < 0.7),
        class_weight=weights,
        tol=1e-8,
        n_jobs=1,
    )
    weight = np.ones(n)
    if random.random() < 0.15:
        weight = random.choice([0.5, 1.0, 2.0], size=n)
    given = _Given(model, X, y, weight, draw(_NEW), int(random.integers(1 << 30)))
    return Problem(
        f"{n} rows, {int(y.sum())} of class 1, {distance:g} apart: {model!r}",
        lambda: model.fit(X, y, weight),
        lambda fitted, claims: _judge(given, fitted, claims),
    )


def left_out_error(model: Any, X: np.ndarray, y: np.ndarray, weight: np.ndarray) -> float:
    """Share of rows that the machine without them gets wrong, nothing else being changed."""
    one_less = clone(model).set_params(kernel=model.kernel_)
    wrong = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for i in range(len(X)):
            kept = np.arange(len(X)) != i
            one_less.fit(X[kept], y[kept], weight[kept])
            wrong.append(one_less.predict(X[[i]])[0] != y[i])
    return float(np.mean(wrong))


def perceptron_mistakes(X: np.ndarray, sign: np.ndarray, start: np.ndarray, most: float) -> int:
    """Mistakes of the perceptron until it makes none; it is stopped above ``most``."""
    Z = np.column_stack([X, np.ones(len(X))])
    v, made = start.copy(), 0
    while True:
        before = made
        for z, s in zip(Z, sign, strict=True):
            if s * (z @ v) <= 0:
                v += s * z
                made += 1
        if made == before or made > most:
            return made


def _judge(given: _Given, model: Any, claims: Claims) -> None:
    """Compute every bound that takes the problem, and the truth."""
    X, y = given.X, given.y
    claims.converged = model.certificate_.converged
    truth = left_out_error(model, X, y, given.weight)
    bounds: dict[str, tuple[Callable[[], Any], float]] = {
        "leave_one_out": (lambda: leave_one_out(model), truth),
        "xi_alpha": (lambda: xi_alpha(model, X), truth),
        "radius_margin": (lambda: radius_margin(model, X), truth),
        "kernel_margin_bound": (
            lambda: kernel_margin_bound(model, X, y, confidence=CONFIDENCE),
            1.0 - model.score(*given.new),
        ),
    }
    if np.isinf(model.C) and isinstance(model.kernel_, Linear):
        random = np.random.default_rng(given.start)
        start = random.normal(size=X.shape[1] + 1) * random.choice([0.0, 1.0, 10.0])
        w, b = model.coef_[0], float(model.intercept_[0])

        def novikoff() -> Any:
            return mistake_bound(X, y, w, b, start=(start[:-1], start[-1]))

        sign = np.where(y == 1, 1.0, -1.0)
        most = 10.0 * float(novikoff()) + 100.0
        if most < 1e6:
            bounds["mistake_bound"] = novikoff, perceptron_mistakes(X, sign, start, most)
    for name, (bound, true) in bounds.items():
        try:
            value = float(bound())
        except ValueError:  # a refusal in words
            continue
        if name != "kernel_margin_bound" or true > value + 0.2:  # it may fail, but not by much
            claims.at_most(f"{name} of {len(X)} rows", true, value, 1e-12)
