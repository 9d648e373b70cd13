"""Gaussian processes: likelihood, its gradient, mean and variance, in long double.

The covariance is factorised in long double; derivatives by the logarithms of parameters are
differences of the likelihood, whose error is measured by a second, larger step. What a converged
search claims is a stationary point, not the best one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.certify import exact
from benchmarks.certify.data import EPS, Data, in_form, numbers, points, some_rows, squared
from benchmarks.certify.judge import Claims, Problem
from maxmargin import GaussianProcessRegressor
from maxmargin.kernels import RBF, Laplacian, Linear

Covariance = Callable[[dict[str, Any], np.ndarray, np.ndarray], np.ndarray]
_STEP = 1e-4  # of a logarithm; differences of fourth order


def problem(random: np.random.Generator) -> Problem:
    """Make a problem with free or fixed parameters, with or without noise."""
    n = some_rows(random, 30)
    X, scale, about = points(random, n, tame=True)
    outputs = int(random.choice([1, 1, 2]))
    y = np.column_stack([numbers(random, X, scale) for _ in range(outputs)])
    y *= 10.0 ** random.uniform(-2, 2)
    X, form = in_form(random, X)
    kernel, formula = _kernel(random, scale)
    noise = float(10.0 ** random.uniform(-3, 1)) if random.random() < 0.6 else None
    alpha = float(10.0 ** random.uniform(-6 if noise else -2, 0))
    optimizer = [None, "fmin_l_bfgs_b", "average_information", "average_information"]
    model = GaussianProcessRegressor(
        kernel,
        alpha=alpha,
        noise_level=noise,
        optimizer=optimizer[random.integers(4)],
        normalize_y=bool(random.random() < 0.3),
        n_restarts_optimizer=int(random.choice([0, 0, 1])),
        random_state=0,
        n_jobs=1,
    )
    given = y[:, 0] if outputs == 1 else y
    new = X[random.integers(n, size=3)] + 0.0
    data = Data(X, y, None)
    return Problem(
        f"{n}x{X.shape[1]} {form}, {outputs} outputs, {about}, {model!r}",
        lambda: model.fit(X, given),
        lambda fitted, claims: _judge(data, fitted, formula, new, random, claims),
    )


def _kernel(random: np.random.Generator, scale: float) -> tuple[Any, Covariance]:
    """Return a kernel, and its values as a function of its parameters by name."""
    gamma = float(10.0 ** random.uniform(-2, 1) / scale)
    constant = float(10.0 ** random.uniform(-2, 2))

    def city(A: np.ndarray, B: np.ndarray) -> np.ndarray:
        return np.abs(A[:, None] - B).sum(axis=2)

    kind = int(random.integers(4))
    if kind == 0:
        return RBF(gamma / scale), lambda p, A, B: np.exp(-p["gamma"] * squared(A, B))
    if kind == 1:
        return constant * RBF(
            gamma / scale
        ), lambda p, A, B: p["constant"] * np.exp(-p["gamma"] * squared(A, B))
    if kind == 2:
        return constant * Laplacian(
            gamma
        ), lambda p, A, B: p["constant"] * np.exp(-p["gamma"] * city(A, B))
    return constant * RBF(
        gamma / scale
    ) + Linear(), lambda p, A, B: p["constant"] * np.exp(-p["gamma"] * squared(A, B)) + A @ B.T


def _judge(
    data: Data, fitted: Any, formula: Covariance, new: Any, random: Any, claims: Claims
) -> None:
    certificate = fitted.certificate_
    names = [name.rpartition("__")[2] for name in fitted.parameters_]
    claims.converged = certificate.converged
    X, t = data.dense, fitted.y_train_.reshape(len(data.y), -1).astype(np.longdouble)
    n = len(X)

    def values(theta: np.ndarray) -> dict[str, Any]:
        return dict(zip(names, np.exp(theta), strict=True))

    def covariance(theta: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
        C = formula(values(theta), X, X)
        noise = values(theta).get("noise_level", 0.0)
        C[np.diag_indices(n)] += fitted.alpha + noise
        return C, exact.cholesky(C)

    def minus_log(theta: np.ndarray) -> Any:
        _, L = covariance(theta)
        if L is None:
            return np.longdouble(np.nan)
        z = exact.forward(L, t)
        constant = n * np.log(2 * np.longdouble(np.pi)) / 2
        return (z * z).sum() / 2 + t.shape[1] * (np.log(np.diag(L)).sum() + constant)

    def gradient(theta: np.ndarray, step: float) -> np.ndarray:
        each = []
        for unit in np.eye(len(theta), dtype=np.longdouble) * step:
            near = minus_log(theta + unit) - minus_log(theta - unit)
            far = minus_log(theta + 2 * unit) - minus_log(theta - 2 * unit)
            each.append((8 * near - far) / (12 * step))
        return np.array(each, dtype=np.longdouble)

    theta = fitted.theta_.astype(np.longdouble)
    C, L = covariance(theta)
    if L is None:
        return
    spread = np.linalg.eigvalsh(C.astype(np.float64))
    condition = float(spread[-1] / max(spread[0], fitted.alpha))
    noisy = EPS * 8 * n * condition  # relative, of what is solved with the covariance
    z = exact.forward(L, t)
    size = float((z * z).sum()) + 4.0 * n * t.shape[1]
    value = minus_log(theta)
    room = noisy * size + 1e-12 * abs(float(value))
    claims.equal("log p", -value, fitted.log_marginal_likelihood_value_, room)
    claims.equal("objective", value, certificate.objective, room)
    other = fitted.theta_ + random.normal(size=len(theta)) * 0.1
    for at in (fitted.theta_, other):
        claimed, slope = fitted.log_marginal_likelihood(at, eval_gradient=True)
        true = gradient(at.astype(np.longdouble), _STEP)
        error = np.abs(true - gradient(at.astype(np.longdouble), 2 * _STEP)) + 1e-9 * size
        if not np.isfinite(true).all() or not np.isfinite(claimed):
            continue
        claims.equal("log p elsewhere", -minus_log(at.astype(np.longdouble)), claimed, 40 * room)
        claims.equal("its gradient", -true, slope, error + 100 * noisy * size)
        if at is fitted.theta_ and certificate.converged and fitted.optimizer is not None:
            inside = np.array(
                [name not in certificate.at_bounds for name in fitted.parameters_], dtype=bool
            )
            if inside.any():
                left = float(np.abs(true[inside]).max()) / t.size
                known = float(error.max() + 100 * noisy * size) / t.size
                claims.to_tol("gradient over targets", left, certificate.tol, known)
    mean, deviation = fitted.predict(new, return_std=True)
    _, joint = fitted.predict(new, return_cov=True)
    Z = (new.toarray() if hasattr(new, "toarray") else np.asarray(new)).astype(np.longdouble)
    across = exact.forward(L, formula(values(theta), X, Z))
    noise = np.longdouble(fitted.noise_level_)
    prior = formula(values(theta), Z, Z) + noise * np.eye(len(Z))
    true = prior - across.T @ across
    scale, middle = np.ones(t.shape[1]), np.zeros(t.shape[1])
    if fitted.normalize_y:
        scale, middle = data.y.std(axis=0), data.y.mean(axis=0)
    close = noisy * np.diag(prior).max() * 10
    mean, deviation = mean.reshape(len(Z), -1), deviation.reshape(len(Z), -1)
    joint = joint.reshape(len(Z), len(Z), -1)
    reach = np.sqrt(np.diag(prior).max() * (z * z).sum()) * scale.max()
    centre = across.T @ z * scale + middle
    claims.equal("mean", centre, mean, 10 * noisy * reach + 1e-12 * np.abs(centre).max())
    wide = np.diag(true)[:, None] * scale**2 + 0 * mean
    claims.equal("variance", np.maximum(wide, 0), deviation**2, close * scale.max() ** 2)
    claims.equal(
        "covariance", true[..., None] * scale**2 + 0 * joint, joint, close * scale.max() ** 2
    )
