"""What certificates claim, computed again from the public attributes of a fit and its data.

``RECOMPUTED`` has a function for every class that has certificates, ``function(model, X, y, s)``
with weights s of the rows. It yields, for each problem that the fit has solved, the numbers that
the certificate of this problem has to have, by their names there.
"""

import numpy as np
from scipy.special import logsumexp

RECOMPUTED = {}


def of(*names):
    """Decorator: these classes have the numbers that a function yields."""

    def register(function):
        RECOMPUTED.update(dict.fromkeys(names, function))
        return function

    return register


def tasks(model, y):
    """Yield the labels of the rows in each binary problem: -1, +1, and 0 where a row is not in."""
    index = np.searchsorted(model.classes_, y)
    for codes in model.scheme_.code:
        yield codes[index].astype(float)


def is_direct(model):
    """Whether all classes are one problem, after Crammer and Singer or Weston and Watkins."""
    return model.scheme_.direct


def multiclass_hinge(model, values, y):
    """Return the largest ``max(0, 1 + f_k - f_y)`` of other classes, or their sum, for each row."""
    rows, index = np.arange(len(values)), np.searchsorted(model.classes_, y)
    slack = np.maximum(0.0, 1.0 + values - values[rows, index][:, None])
    slack[rows, index] = 0.0
    return slack.sum(axis=1) if model.scheme_.summed else slack.max(axis=1)


# -- kernel methods --------------------------------------------------------------------------------


def gram(model, X):
    """Return the kernel's values among the rows, those of X where it has them itself."""
    return np.asarray(model.kernel_(X))


def expansion(model, rows, n):
    """Return a coefficient for every row, from those of the support vectors."""
    beta = np.zeros((len(rows), n))
    beta[:, model.support_] = rows
    return beta


def binary_functions(model, X, y):
    """Yield values at all rows, and the squared norm of w, for each binary problem."""
    if hasattr(model, "feature_coef_"):
        Phi = model.feature_map_.transform(X)
        for w, b in zip(model.feature_coef_, model.intercept_, strict=True):
            yield Phi @ w + b, w @ w
        return
    K, index = gram(model, X), np.searchsorted(model.classes_, y)
    dual = expansion(model, model.dual_coef_, len(y))
    for layout, codes, b in zip(
        model.scheme_.layout, model.scheme_.code, model.intercept_, strict=True
    ):
        beta = dual[layout[index], np.arange(len(y))] * (codes[index] != 0)
        yield K @ beta + b, beta @ K @ beta


def cost(model, s):
    """Return C, or what it is in the lambda form."""
    return model.C if getattr(model, "lam", None) is None else 1 / (2 * s.sum() * model.lam)


@of("SVC")
def soft_margin(model, X, y, s):
    if is_direct(model):
        K, beta = gram(model, X), expansion(model, model.dual_coef_, len(y))
        values = K @ beta.T + model.intercept_
        norms = np.sum(beta @ K * beta) + np.sum(model.intercept_**2)
        slack = multiclass_hinge(model, values, y)
        yield {"primal": norms / 2 + cost(model, s) * (s @ slack)}
        return
    for signs, (values, norm) in zip(tasks(model, y), binary_functions(model, X, y), strict=True):
        loss = s[signs != 0] @ np.maximum(0, 1 - signs * values)[signs != 0]
        if model.norm_bound is not None:
            assert norm <= model.norm_bound**2 * (1 + 1e-9)
            yield {"primal": loss}
        else:
            yield {"primal": norm / 2 + cost(model, s * (signs != 0)) * loss}


@of("NuSVC")
def nu_soft_margin(model, X, y, s):
    dual = expansion(model, model.dual_coef_, len(y))
    index = np.searchsorted(model.classes_, y)
    functions = binary_functions(model, X, y)
    for layout, signs, (values, norm) in zip(
        model.scheme_.layout, tasks(model, y), functions, strict=True
    ):
        weight = s * (signs != 0)
        total = model.nu * weight.sum()
        # the model is w / rho, and the coefficients of w have the sum nu N
        rho = total / np.abs(dual[layout[index], np.arange(len(y))])[signs != 0].sum()
        slack = np.maximum(0, rho - signs * rho * values)
        yield {"primal": rho**2 * norm / 2 - total * rho + weight @ slack}


@of("SVR", "NuSVR")
def tube(model, X, y, s):
    epsilon = getattr(model, "epsilon_", getattr(model, "epsilon", None))
    targets = np.atleast_2d(y.T)
    epsilons = np.broadcast_to(epsilon, len(targets))
    if hasattr(model, "feature_coef_"):
        w = np.atleast_2d(model.feature_coef_)
        values, norms = (
            model.feature_map_.transform(X) @ w.T + model.intercept_,
            (w * w).sum(axis=1),
        )
    else:
        K, beta = gram(model, X), expansion(model, model.dual_coef_, len(y))
        values, norms = K @ beta.T + model.intercept_, np.sum(beta @ K * beta, axis=1)
    for t, f, norm, wide in zip(targets, values.T, norms, epsilons, strict=True):
        excess = s @ np.maximum(0, np.abs(f - t) - wide)
        width = model.nu * s.sum() * wide if hasattr(model, "nu") else 0.0
        yield {"primal": norm / 2 + model.C * (width + excess)}


@of("OneClassSVM")
def one_class(model, X, y, s):
    K, beta = gram(model, X), expansion(model, model.dual_coef_, len(X))[0]
    rho = model.offset_[0]
    slack = s @ np.maximum(0, rho - K @ beta)
    yield {"primal": beta @ K @ beta / 2 - model.nu * s.sum() * rho + slack}


@of("KernelLogisticRegression")
def kernel_logistic(model, X, y, s):
    K, index = gram(model, X), np.searchsorted(model.classes_, y)
    A = expansion(model, model.dual_coef_, len(y))
    values, norms = K @ A.T + model.intercept_, np.sum(A @ K * A, axis=1)
    if model.scheme_ is None:
        losses = logsumexp(values, axis=1) - values[np.arange(len(y)), index]
        yield {"primal": norms.sum() / 2 + cost(model, s) * (s @ losses)}
        return
    for signs, f, norm in zip(tasks(model, y), values.T, norms, strict=True):
        weight = s * (signs != 0)
        loss = weight @ np.logaddexp(0, -signs * f)
        yield {"primal": norm / 2 + cost(model, weight) * loss}


@of("KernelRidge", "KernelRidgeCV")
def kernel_ridge(model, X, y, s):
    K, alpha = gram(model, X), getattr(model, "alpha_", getattr(model, "alpha", None))
    targets, A = (np.reshape(values, (len(y), -1)) for values in (y, model.dual_coef_))
    least = np.linalg.solve(K + np.diag(alpha / s), targets)
    for t, a, exact in zip(targets.T, A.T, least.T, strict=True):
        off = a - exact
        yield {
            "objective": s @ (K @ a - t) ** 2 / 2 + alpha * (a @ K @ a) / 2,
            "at most coefficient_error": np.sqrt(off @ off),
            "at most norm_error": np.sqrt(max(off @ K @ off, 0)),
        }


@of("KernelPCA")
def principal_components(model, X, y, s):
    K, centre = gram(model, X), np.eye(len(X)) - 1 / len(X)
    K, V, values = centre @ K @ centre, model.eigenvectors_, model.eigenvalues_
    residuals, others = K @ V - V * values, np.linalg.eigvalsh(K)[: -len(values)]
    yield {
        "residual": np.linalg.norm(residuals) / values[0],
        "orthogonality": np.abs(V.T @ V - np.eye(len(values))).max(),
        "least": values.min(),
        "explained": values.sum() / np.trace(K),
        "at most missing": others.max(),
    }


@of("GaussianProcessRegressor")
def likelihood(model, X, y, s):
    C, n = gram(model, X) + (model.alpha + model.noise_level_) * np.eye(len(y)), len(y)
    targets = model.y_train_.reshape(n, -1)
    logs = np.linalg.slogdet(C)[1] + n * np.log(2 * np.pi)
    fitted = np.sum(targets * np.linalg.solve(C, targets)) + targets.shape[1] * logs
    residual = np.linalg.norm(model.y_train_ - C @ model.alpha_) / np.linalg.norm(targets)
    yield {"objective": fitted / 2, "residual": residual}


# -- linear methods --------------------------------------------------------------------------------


def linear_values(model, X):
    """Return weights (functions, features), intercepts and values (n, functions)."""
    W, b = np.atleast_2d(model.coef_), np.ravel(model.intercept_)
    return W, b, X @ W.T + b


@of("LinearSVC")
def linear_soft_margin(model, X, y, s):
    W, b, values = linear_values(model, X)
    if is_direct(model):
        slack = multiclass_hinge(model, values, y)
        b = b / (model.intercept_scaling or 1.0)
        yield {"primal": (np.sum(W**2) + b @ b) / 2 + model.C_[0] * (s @ slack)}
        return
    power = {"hinge": 1, "squared_hinge": 2}[model.loss]
    for signs, w, c, f, C in zip(tasks(model, y), W, b, values.T, model.C_, strict=True):
        seen = signs != 0
        loss = s[seen] @ np.maximum(0, 1 - signs * f)[seen] ** power
        penalty = np.abs(w).sum() if model.penalty == "l1" else w @ w / 2
        if model.intercept_scaling:  # the intercept is a weight on a column of this number
            penalty += (c / model.intercept_scaling) ** 2 / 2
        if model.norm_bound is not None:
            assert w @ w <= model.norm_bound**2 * (1 + 1e-9)
            yield {"primal": loss}
        else:
            yield {"primal": penalty + C * loss}


@of("LinearSVR")
def linear_tube(model, X, y, s):
    W, _, values = linear_values(model, X)
    power = {"epsilon_insensitive": 1, "squared_epsilon_insensitive": 2}[model.loss]
    C = model.C if model.lam is None else 1 / (2 * s.sum() * model.lam)
    for w, f, t in zip(W, values.T, np.atleast_2d(y.T), strict=True):
        excess = s @ np.maximum(0, np.abs(f - t) - model.epsilon) ** power
        yield {"primal": w @ w / 2 + C * excess}


@of("LogisticRegression")
def logistic(model, X, y, s):
    W, _, values = linear_values(model, X)
    free = np.isinf(model.C)
    if model.multiclass == "softmax":
        losses = (
            logsumexp(values, axis=1)
            - values[np.arange(len(y)), np.searchsorted(model.classes_, y)]
        )
        yield {"primal": (0 if free else np.sum(W**2) / 2) + model.C_[0] * (s @ losses)}
        return
    for signs, w, f, C in zip(tasks(model, y), W, values.T, model.C_, strict=True):
        loss = (s * (signs != 0)) @ np.logaddexp(0, -signs * f)
        yield {"primal": (0 if free else w @ w / 2) + C * loss}


def slopes(objective, W, b, mean, scale):
    """Return the gradient by the weights of standardised columns and by intercepts."""

    def along(dW, db, h=1e-5):
        return (objective(W + h * dW, b + h * db) - objective(W - h * dW, b - h * db)) / (2 * h)

    found = []
    for k in range(len(b)):
        one = np.arange(len(b)) == k
        found.append(along(0 * W, one))
        for j in range(W.shape[1]):
            dW = np.outer(one, np.arange(W.shape[1]) == j) / scale[j]
            found.append(along(dW, -(dW @ mean)))
    return np.array(found)


@of("LinearRegression", "LeastSquaresClassifier")
def least_squares(model, X, y, s):
    W, _, values = linear_values(model, X)
    if hasattr(model, "classes_"):
        targets = np.column_stack(list(tasks(model, y)))
    else:
        targets = y.reshape(len(y), -1)
    share = s / s.sum()
    mean = share @ X if model.fit_intercept else 0 * X[0]
    middle = share @ targets if model.fit_intercept else 0 * targets[0]
    scale = np.sqrt(share @ (X - mean) ** 2)
    size = np.sqrt(share @ (targets - middle) ** 2)
    residuals = values - targets
    # of each column's products with the residuals, both in units of their own size
    slope = 2 * ((X - mean) / scale).T @ (share[:, None] * residuals / size)
    if getattr(model, "positive", False):
        slope = np.where(W.T > 0, np.abs(slope), np.maximum(0, -slope))
    if model.fit_intercept:
        slope = np.vstack([slope, 2 * share @ residuals / size])
    yield {"objective": s @ (residuals**2).sum(axis=1), "gradient_norm": np.abs(slope).max()}


@of("MCEClassifier")
def minimum_classification_error(model, X, y, s):
    index, share = np.searchsorted(model.classes_, y), s / s.sum()
    rows, eta = np.arange(len(y)), model.eta
    mean = share @ X
    scale = np.sqrt(share @ (X - mean) ** 2)

    def objective(W, b):
        values = X @ W.T + b
        own = values[rows, index]
        others = eta * values
        others[rows, index] = -np.inf
        d = -own + (logsumexp(others, axis=1) - np.log(values.shape[1] - 1)) / eta
        penalty = model.alpha / 2 * np.sum((scale * W) ** 2)
        return share @ (1 / (1 + np.exp(-model.slope * d))) + penalty

    gradient = slopes(objective, model.coef_, model.intercept_, mean, scale)
    value = objective(model.coef_, model.intercept_)
    yield {"objective": value, "gradient_norm": np.abs(gradient).max()}


@of("Perceptron")
def perceptron(model, X, y, s):
    if hasattr(model, "coef_"):
        values = linear_values(model, X)[2]
    else:
        values = gram(model, X) @ model.dual_coef_.T + model.intercept_
    for signs, f in zip(tasks(model, y), values.T, strict=True):
        wrong = int((signs * f <= 0).sum())
        yield {"mistakes": wrong, "rows": int((signs != 0).sum())}


@of("Ridge")
def ridge(model, X, y, s):
    W, _, values = linear_values(model, X)
    targets = y.reshape(len(y), -1)
    share = s / s.sum()
    Z, T = X - share @ X, targets - share @ targets
    least = np.linalg.solve(
        Z.T @ (s[:, None] * Z) + model.alpha * np.eye(len(Z[0])), Z.T @ (s[:, None] * T)
    )
    for w, f, t, exact in zip(W, values.T, targets.T, least.T, strict=True):
        yield {
            "objective": s @ (f - t) ** 2 / 2 + model.alpha * (w @ w) / 2,
            "at most norm_error": np.linalg.norm(w - exact),
        }


# -- boosting --------------------------------------------------------------------------------------


def signs_of(model, estimator, X, y):
    """Return +1 where a hypothesis is right, and -1 where it is wrong."""
    return np.where(estimator.predict(X) == y, 1.0, -1.0)


@of("AdaBoostClassifier")
def adaptive_boosting(model, X, y, s):
    share, index = s / s.sum(), np.searchsorted(model.classes_, y)
    rows, u = np.arange(len(y)), np.zeros(len(y))
    votes = np.zeros((len(y), len(model.classes_)))
    for estimator, alpha in zip(model.estimators_, model.estimator_weights_, strict=True):
        votes[rows, np.searchsorted(model.classes_, estimator.predict(X))] += alpha
        u += alpha * signs_of(model, estimator, X, y)
    error = share @ (votes.argmax(axis=1) != index)
    votes /= votes.sum(axis=1, keepdims=True)
    own = votes[rows, index].copy()
    votes[rows, index] = -np.inf
    yield {
        "train_error": error,
        "bound": share @ np.exp(-u),
        "minimum_margin": (own - votes.max(axis=1)).min(),
    }


@of("LogitBoostClassifier")
def additive_logistic(model, X, y, s):
    share, u = s / s.sum(), np.where(y == model.classes_[1], 1, -1) * model.decision_function(X)
    error = share @ (model.predict(X) != y)
    yield {"train_error": error, "bound": share @ np.logaddexp(0, -u) / np.log(2)}


@of("LPBoostClassifier")
def largest_soft_margin(model, X, y, s):
    share, margins = s / s.sum(), np.zeros(len(y))
    D, edges = model.D_[0], []
    for estimator, weight in zip(model.estimators_, model.estimator_weights_, strict=True):
        right = signs_of(model, estimator, X, y)
        margins += weight * right
        edges.append(abs(D @ right))
    lack = np.maximum(margins[:, None] - margins, 0)  # rho is one of the margins
    yield {"margin": (margins - lack @ share / model.nu).max(), "at most bound": max(edges)}
