"""Ridge regression, with and without a kernel: the exact solution in long double.

The system is solved by Cholesky's factors, the linear problem by Gram and Schmidt's, each in long
double; leaving rows out is done row by row. Without a penalty, for numbers or classes and with
every solver, the sum of squares and its gradient are computed at the weights, in long double.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.certify import exact
from benchmarks.certify.data import (
    EPS,
    LONG_EPS,
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
from benchmarks.certify.judge import Claims, Problem
from maxmargin import (
    KernelRidge,
    KernelRidgeCV,
    LeastSquaresClassifier,
    LinearRegression,
    Ridge,
)


def problem(random: np.random.Generator) -> Problem:
    """Make a problem of one to three outputs."""
    n = some_rows(random)
    X, scale, about = points(random, n, tame=bool(random.random() < 0.5))
    outputs = int(random.choice([1, 1, 2, 3]))
    y = np.column_stack([numbers(random, X, scale) for _ in range(outputs)])
    y *= 10.0 ** random.uniform(-4, 4)
    if random.random() < 0.2:
        y += 10.0 ** random.uniform(0, 6)
    given = y[:, 0] if outputs == 1 and random.random() < 0.7 else y
    weight = sample_weights(random, n)
    X, form = in_form(random, X)
    alpha = float(10.0 ** random.uniform(-6, 4))
    common: dict[str, Any] = {"tol": tolerance(random, 1e-4, -10), "n_jobs": 1}
    kernel, formula = kernel_with_formula(random, X.shape[1], scale)
    kind = str(random.choice(["linear", "kernel", "kernel", "cv", "none"]))
    if kind == "linear":
        solver = str(random.choice(["auto", "primal", "dual", "cg"]))
        intercept = bool(random.random() < 0.8)
        model: Any = Ridge(alpha, solver=solver, fit_intercept=intercept, **common)
        judge = _linear
    elif kind == "none":
        model, judge = LinearRegression(fit_intercept=bool(random.random() < 0.8)), _least_squares
        if random.random() > 0.2:
            return _any_least_squares(random, Data(X, y, weight), scale, f"{form}, {about}")
    elif kind == "kernel":
        solver = str(random.choice(["auto", "cholesky", "cg"]))
        model = KernelRidge(alpha, kernel=kernel, solver=solver, **common)
        judge = _kernel
    else:
        alphas = np.sort(10.0 ** random.uniform(-4, 3, size=int(random.integers(1, 6))))
        each = bool(outputs > 1 and random.random() < 0.5)
        model = KernelRidgeCV(
            alphas, kernel=kernel, alpha_per_target=each, store_cv_results=True, **common
        )
        judge = _left_out
    data = Data(X, y, weight, formula)
    return Problem(
        f"{n}x{X.shape[1]} {form}, {outputs} outputs, {about}, {model!r}",
        lambda: model.fit(X, given, sample_weight=weight),
        lambda fitted, claims: judge(data, fitted, claims),
    )


def _any_least_squares(
    random: np.random.Generator, data: Data, scale: float, about: str
) -> Problem:
    """Make a problem of numbers or classes, of any solver, columns and targets of any scale."""
    X, y, weight = data.X, data.y, data.weight
    n, d = X.shape
    solver = str(random.choice(["qr", *3 * ["conjugate_gradient"], "gradient_descent", "sgd"]))
    common: dict[str, Any] = {"solver": solver, "fit_intercept": bool(random.random() < 0.8)}
    common["tol"] = tolerance(random, 0.0, -12) or None
    if solver in ("gradient_descent", "sgd"):
        common["random_state"] = 0
        if random.random() < 0.3:
            common["step_size"] = str(random.choice(["constant", "inverse_sqrt", "inverse"]))
            common["units"] = str(random.choice(["data", "standardised"]))
    given: Any = None
    model: Any
    if random.random() < 0.5:
        classes = int(random.choice([2, 3]))
        labels = classes_of(random, data.dense.astype(np.float64), scale, classes)
        factors = 10.0 ** random.uniform(-2, 2, size=classes)
        given, y = labels, np.where(labels[:, None] == np.arange(classes), 1.0, -1.0)
        if classes == 2:
            y = y[:, 1:]
        if random.random() < 0.3:
            common["class_weight"] = {k: float(factor) for k, factor in enumerate(factors)}
            weight = data.weights * factors[labels]
        model = LeastSquaresClassifier(**common)
    else:
        y = y * 10.0 ** random.uniform(-8, 4)
        positive = solver == "qr" and random.random() < 0.5
        model = LinearRegression(positive=positive, **common)
    if random.random() < 0.6:
        factors = 10.0 ** random.uniform(-8, 8, size=d)
        X = (X.multiply(factors).tocsr() if sp.issparse(X) else X * factors).astype(X.dtype)
        about += f", columns times {factors.min():.2g} to {factors.max():.2g}"
    posed = Data(X, y, weight)
    return Problem(
        f"{n}x{d} {about}, {y.shape[1]} targets, {model!r}",
        lambda: model.fit(X, y if given is None else given, sample_weight=data.weight),
        lambda fitted, claims: _least_squares(posed, fitted, claims),
    )


def _size(values: np.ndarray) -> Any:
    return np.sqrt((values**2).sum())


def _parts(fitted: Any, claims: Claims) -> tuple[Any, ...]:
    certificate = fitted.certificate_
    claims.converged = certificate.converged
    return certificate.parts or (certificate,)


def _compare(
    part: Any,
    own: Any,
    best: Any,
    off: Any,
    distance: Any,
    size: Any,
    room: Any,
    claims: Claims,
    products: Any = 0.0,
) -> None:
    """Hold one output's certificate against objectives and distances from the exact answer.

    ``products`` is what the rounding of a matrix product makes of the objective in float64: of
    first order, where the gap is of second.
    """
    if part.definiteness == "indefinite":
        return
    claimed = part.gap + part.rounding
    claims.at_most("gap", own - best, claimed, room)
    slack = 1e-9 * own + 64 * EPS * size**2  # a difference of terms as large as the targets
    claims.equal("objective", own, part.objective, claimed + room + slack + products)
    claims.at_most("w", distance, part.norm_error, room)
    if part.converged:
        allowed = np.sqrt(2 * part.rounding) / size + room / size
        claims.to_tol("values over targets", off / size, part.tol, allowed)


def _kernel(data: Data, fitted: Any, claims: Claims) -> None:
    rows = data.weights > 0
    K, s = data.gram[np.ix_(rows, rows)], data.weights[rows].astype(np.longdouble)
    coefficients = fitted.dual_coef_.reshape(len(data.y), -1)[rows]
    alphas = np.resize(
        getattr(fitted, "alpha_", fitted.alpha if hasattr(fitted, "alpha") else 1.0),
        data.y.shape[1],
    )
    root = np.sqrt(s)
    for k, part in enumerate(_parts(fitted, claims)):
        t, a, alpha = data.y[rows, k], coefficients[:, k], alphas[k]
        A = root[:, None] * K * root + alpha * np.eye(len(K))
        L = exact.cholesky(A)
        if L is None:  # rounding of long double is beyond alpha
            continue
        best = root * exact.solve(L, root * t)

        def value(a: np.ndarray, t: np.ndarray = t, alpha: float = alpha) -> Any:
            f = K @ a
            return s @ (f - t) ** 2 / 2 + alpha * (a @ f) / 2

        difference = a - best
        f = K @ difference
        length = np.sqrt(max(difference @ f, 0.0))
        size = _size(root * t) or 1.0
        top = np.abs(np.diag(K) * s).max(initial=0.0) * len(K) / alpha
        room = LONG_EPS * 100 * (1 + top) * (value(best) + size**2)
        off = _size(root * f)
        terms = np.abs(K) @ np.abs(a)
        products = EPS * (terms @ (s * np.abs(K @ a - t) + alpha * np.abs(a)))
        _compare(part, value(a), value(best), off, length, size, room, claims, products)
        claims.at_most(
            "coefficients", _size(difference), part.coefficient_error, room / alpha + room
        )


def _linear(data: Data, fitted: Ridge, claims: Claims) -> None:
    rows = data.weights > 0
    X, s = data.dense[rows], data.weights[rows].astype(np.longdouble)
    coef = fitted.coef_.reshape(data.y.shape[1], -1)
    b, d, root = np.atleast_1d(fitted.intercept_), coef.shape[1], np.sqrt(s)
    b = np.resize(b, len(coef))
    mean = s @ X / s.sum() if fitted.fit_intercept else np.zeros(d)
    ridge = np.sqrt(np.longdouble(fitted.alpha)) * np.eye(d)
    table = np.vstack([root[:, None] * (X - mean), ridge])
    for k, part in enumerate(_parts(fitted, claims)):
        t = data.y[rows, k].astype(np.longdouble)
        middle = s @ t / s.sum() if fitted.fit_intercept else 0.0
        w = exact.least_squares(table, np.append(root * (t - middle), np.zeros(d))[:, None])[:, 0]

        def value(w: np.ndarray, b: Any, t: np.ndarray = t) -> Any:
            return s @ (X @ w + b - t) ** 2 / 2 + fitted.alpha * (w @ w) / 2

        best = value(w, middle - mean @ w)
        size = _size(root * (t - middle)) or 1.0
        off = _size(root * ((X - mean) @ (coef[k] - w)))
        # the intercept is the weighted mean of what is left: its rounding is not in the claim
        rounded = EPS * 8 * (np.abs(mean) @ np.abs(coef[k]) + np.abs(middle) + np.abs(b[k]))
        if coef.dtype == np.float32:  # to which the answer is rounded where the data are
            rounded += eps_of(coef) * (np.abs(X).max(axis=0) @ np.abs(coef[k]) + np.abs(b[k]))
        room = s.sum() * rounded**2 + LONG_EPS * 1e3 * (best + size**2)
        room += rounded * np.sqrt(s.sum()) * np.sqrt(2 * best)
        short = eps_of(coef) * float(_size(coef[k]) + fitted.alpha * _size(coef[k]) ** 2)
        _compare(
            part, value(coef[k], b[k]), best, off, _size(coef[k] - w), size, room + short, claims
        )


def _least_squares(data: Data, fitted: Any, claims: Claims) -> None:
    """Least to a gradient; of full rank the sum of squares is that of NumPy's solution, centred."""
    rows = data.weights > 0
    X, s = data.dense[rows], data.weights[rows].astype(np.longdouble)
    coef = fitted.coef_.reshape(data.y.shape[1], -1)
    b, root = np.resize(np.atleast_1d(fitted.intercept_), len(coef)), np.sqrt(s)
    certificate = fitted.certificate_
    claims.converged = certificate.converged
    if not np.isfinite(coef).all() and not claims.converged:
        return  # steps that are too large diverge, and say so
    mean = s @ X / s.sum() if fitted.fit_intercept else np.zeros(X.shape[1])
    t = data.y[rows].astype(np.longdouble)
    middle = s @ t / s.sum() if fitted.fit_intercept else np.zeros(t.shape[1])

    def error(w: np.ndarray, b: Any) -> Any:
        return s @ (X @ w + b - t) ** 2

    own = error(coef.T, b)
    scale = np.abs(coef) @ np.abs(X).max(axis=0) + np.abs(b)
    noise = EPS * 64 * scale * np.sqrt(s.sum())
    least = s @ (t - middle) ** 2
    room = noise**2 + 2 * noise * np.sqrt(own) + 1e-9 * own
    claims.equal("objective", own.sum(), certificate.objective, room.sum())
    lengths, mean_size = np.sqrt(s @ (X - mean) ** 2), np.abs(mean) * np.sqrt(s.sum())
    rounded = EPS * np.sqrt(len(X)) * mean_size
    varying = lengths > 8 * rounded  # of others nothing is claimed
    Z = root[:, None] * (X - mean)[:, varying] / lengths[varying]
    size = np.sqrt(np.where(least > 0, least, 1.0))
    left = root[:, None] * (X @ coef.T + b - t) / size
    slope = 2 * Z.T @ left
    if getattr(fitted, "positive", False):  # down is no way for a coefficient at zero
        slope = np.where(coef.T[varying] == 0, np.minimum(slope, 0.0), slope)
    if fitted.fit_intercept:
        slope = np.vstack([slope, 2 * root @ left / np.sqrt(s.sum())])
    gradient = np.abs(slope).max(initial=0.0)
    # values are rounded, and sums over columns far from zero beside their lengths
    cancelled = 16 * (rounded[varying] / lengths[varying]).max(initial=EPS)
    room = (2 * noise / size + cancelled * np.sqrt((left**2).sum(axis=0))).max()
    if not (~varying & (lengths > 2 * rounded)).any():
        claims.equal("gradient", gradient, certificate.gradient_norm, room + 1e-9 * gradient)
    if claims.converged:
        claims.to_tol("gradient", gradient, certificate.tol, room)
    if claims.converged and fitted.rank_ == X.shape[1]:  # else least to a gradient
        table = (root[:, None] * (X - mean)).astype(np.float64)
        w = np.linalg.lstsq(table, (root[:, None] * (t - middle)).astype(np.float64))[0]
        best = error(w, middle - mean @ w)
        room = noise**2 + 2 * noise * np.sqrt(own) + 1e-9 * least
        claims.at_most("sum of squares", (own - best).max(), 0.0, room[np.argmax(own - best)])


def _left_out(data: Data, fitted: KernelRidgeCV, claims: Claims) -> None:
    """Errors of left-out rows by solving without each, and the alpha that is best by them."""
    _kernel(data, fitted, claims)
    rows = np.flatnonzero(data.weights > 0)
    K, s = data.gram[np.ix_(rows, rows)], data.weights[rows].astype(np.longdouble)
    t, alphas = data.y[rows].astype(np.longdouble), np.asarray(fitted.alphas)
    root, n = np.sqrt(s), len(rows)
    errors = np.zeros((len(alphas), *t.shape), dtype=np.longdouble)
    for j, alpha in enumerate(alphas):
        for i in range(n):
            rest = np.arange(n) != i
            A = (root[:, None] * K * root)[np.ix_(rest, rest)] + alpha * np.eye(n - 1)
            L = exact.cholesky(A)
            if L is None:
                return
            a = root[rest, None] * exact.solve(L, root[rest, None] * t[rest])
            errors[j, i] = K[i, rest] @ a - t[i]
    kept = fitted.cv_results_.reshape(len(data.y), t.shape[1], len(alphas))[rows]
    top = np.abs(np.diag(K) * s).max(initial=0.0) * n
    close = EPS * 1e3 * n * (1 + top / alphas)  # relative: by the condition of the system
    if close.max() > 1e-3:
        return
    room = close[:, None, None] * (errors**2 + (t**2).max())
    claims.equal("errors left out", errors**2, kept.transpose(2, 0, 1), room)
    scores = -np.einsum("i,jik->jk", s / s.sum(), errors**2)
    if not fitted.alpha_per_target:
        scores = scores.mean(axis=1, keepdims=True)
    best = np.atleast_1d(fitted.best_score_)
    noise = float(room.max())
    claims.equal("best score", scores.max(axis=0), best, noise)
