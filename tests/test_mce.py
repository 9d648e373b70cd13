"""Minimum classification error: the right gradient, the best of several descents, and said so."""

import signal

import numpy as np
import pytest
from scipy.optimize import check_grad
from scipy.special import expit, softmax
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.exceptions import ConvergenceWarning

from maxmargin import Trace, losses
from maxmargin.linear.mce import MCEClassifier, SmoothedError
from maxmargin.linear.regression import LeastSquaresClassifier
from maxmargin.losses import MinimumClassificationError
from maxmargin.progress import Monitor
from maxmargin.risk.standardised import Columns
from maxmargin.solution import Status
from maxmargin.solvers import GradientDescent, StochasticDescent
from maxmargin.solvers.risk.walk import slopes

SOLVERS = ["lbfgs", "gradient_descent", "sgd"]


@pytest.fixture
def eager(monkeypatch):
    """Reports at every step."""
    original = Monitor.__init__

    def eager(self, *args, **kwargs):
        original(self, *args, **kwargs)
        self.interval = 0.0

    monkeypatch.setattr(Monitor, "__init__", eager)


@pytest.fixture
def outliers(random):
    """Classes at the two sides of zero, and one row in ten far on the wrong side."""
    X = random.normal(size=(400, 2))
    y = np.where(X[:, 0] > 0, "right", "left")
    X[:40, 0] *= -30.0
    return X, y


def smoothed(X, index, weight=None, slope=1.0, **options):
    columns = Columns(X, np.ones(len(X)) if weight is None else weight)
    K = index.max() + 1
    return SmoothedError(columns, index, K, MinimumClassificationError(slope), **options)


# -- the function and its gradient ----------------------------------------------------------------


@pytest.mark.parametrize("K", [2, 4])
@pytest.mark.parametrize("intercept", [True, False])
def test_the_gradient_is_that_of_the_function(K, intercept, random):
    """By finite differences: the sign in seed 004 would not pass."""
    X, index = random.normal(size=(30, 3)) * [1.0, 5.0, 0.1] + 2.0, np.arange(30) % K
    weight = random.uniform(0.5, 2.0, size=30)
    error = smoothed(X, index, weight, 1.7, eta=2.5, alpha=0.3, intercept=intercept)
    shape = (1 if K == 2 else K), 4
    free = np.ones(shape, dtype=bool)
    free[:, -1] = intercept

    def value(flat):
        V = np.zeros(shape)
        V[free] = flat
        return error(V)[0]

    def gradient(flat):
        V = np.zeros(shape)
        V[free] = flat
        return error(V)[1][free]

    V = random.normal(size=free.sum())
    assert check_grad(value, gradient, V) < 1e-6
    assert value(V - 1e-3 * gradient(V)) < value(V)


def test_two_classes_are_the_sigmoid_of_minus_y_f_and_its_gradient(random):
    X, index = random.normal(size=(20, 2)), np.arange(20) % 2
    V, y = random.normal(size=(1, 3)), np.where(np.arange(20) % 2 == 1, 1.0, -1.0)
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    margin = y * (Z @ V[0, :2] + V[0, 2])
    value, gradient = smoothed(X, index)(V)
    assert value == pytest.approx(expit(-margin).mean())
    expected = -(y * expit(margin) * (1 - expit(margin)) / 20) @ Z
    np.testing.assert_allclose(gradient[0, :2], expected)


@pytest.mark.parametrize("eta", [0.5, 3.0, 200.0])
def test_several_classes_have_juangs_and_katagiris_measure(eta, random):
    X, index = random.normal(size=(15, 2)), np.arange(15) % 3
    V = random.normal(size=(3, 3))
    error = smoothed(X, index, eta=eta)
    g = error.columns.values(V[:, :2]) + V[:, 2]
    own = g[np.arange(15), index]
    others = np.array([np.delete(row, k) for row, k in zip(g, index, strict=True)])
    measure = -own + np.log(np.exp(eta * others).mean(axis=1)) / eta
    assert error(V)[0] == pytest.approx(np.mean(1 / (1 + np.exp(-measure))))
    if eta > 100:  # the best competitor's lead
        np.testing.assert_allclose(measure, others.max(axis=1) - own, atol=0.01)


@pytest.mark.parametrize("kind", ["squared", "two classes", "four classes", "logistic", "softmax"])
def test_the_compiled_slopes_are_those_of_the_losses(kind, random):
    values = random.normal(size=1 if kind in ("two classes", "logistic") else 4)
    slope = np.empty_like(values)
    if kind == "squared":
        target = random.normal(size=4)
        slopes(0, target, 1.0, 1.0, values, slope)
        np.testing.assert_allclose(slope, losses.Squared().slope(values - target))
    elif kind == "two classes":
        for y in (-1.0, 1.0):
            slopes(1, np.array([y]), 2.0, 1.0, values, slope)
            expected = y * MinimumClassificationError(2.0).slope(y * values)
            np.testing.assert_allclose(slope, expected)
    elif kind == "logistic":
        for y in (-1.0, 1.0):
            slopes(3, np.array([y]), 1.0, 1.0, values, slope)
            np.testing.assert_allclose(slope, y * losses.Logistic().slope(y * values))
    elif kind == "softmax":
        slopes(4, np.array([2.0]), 1.0, 1.0, values, slope)
        np.testing.assert_allclose(slope, softmax(values) - [0, 0, 1, 0])
    else:  # against the gradient of a row whose only column is constant: that by the intercepts
        slopes(2, np.array([3.0]), 2.0, 0.7, values, slope)
        error = smoothed(np.ones((1, 1)), np.array([3]), slope=2.0, eta=0.7)
        gradient = error(np.column_stack([np.zeros(4), values]))[1]
        np.testing.assert_allclose(slope, gradient[:, 1])


def test_the_slope_and_the_length_of_w_are_one_parameter(random):
    X, index, V = random.normal(size=(30, 3)), np.arange(30) % 2, random.normal(size=(1, 4))
    assert smoothed(X, index, slope=4.0)(V / 4)[0] == pytest.approx(smoothed(X, index)(V)[0])


# -- the machine ----------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", SOLVERS)
def test_outliers_cost_no_more_than_one_error_each(solver, outliers):
    X, y = outliers
    assert LeastSquaresClassifier().fit(X, y).score(X, y) < 0.6
    model = MCEClassifier(solver=solver, random_state=0).fit(X, y)
    assert model.status_ is Status.CONVERGED
    assert model.train_error_ == pytest.approx(0.1, abs=0.015)
    assert model.train_error_ == pytest.approx(1 - model.score(X, y))
    assert not model.separated_
    # the first start ends elsewhere: the problem is not convex, and the best start is kept
    assert model.losses_.max() > 0.3
    assert model.loss_ == model.losses_.min()
    assert model.n_restarts_ == 9
    sign = np.where(y == "right", 1.0, -1.0)
    count = MinimumClassificationError().value(sign * model.decision_function(X)).mean()
    assert model.loss_ == pytest.approx(count)
    assert model.loss_curve_[0] > model.loss_curve_[-1] == model.loss_
    assert len(model.loss_curve_) == model.n_iter_ + 1


@pytest.mark.filterwarnings("ignore:The descent has not converged")
@pytest.mark.parametrize("solver", ["gradient_descent", "sgd"])
def test_steps_of_a_given_size_are_the_lectures_by_hand(solver, random):
    """The sum over the rows, in X's own units, with the sign that goes downhill."""
    X, label = random.normal(size=(40, 2)) * [1.0, 5.0] + 1.0, random.integers(0, 2, size=40)
    y, s = 2.0 * label - 1.0, random.uniform(0.5, 2.0, size=40)
    Z, w, path = np.column_stack([X, np.ones(40)]), np.zeros(3), [np.zeros(3)]
    for _ in range(4):
        parts = [slice(None)] if solver == "gradient_descent" else np.arange(40)[:, None]
        for i in parts:
            error = expit(-y[i] * (Z[i] @ w))
            w = w + 0.02 * Z[i].T @ (s[i] * y[i] * error * (1 - error))
            path.append(w)
    method = {
        "gradient_descent": GradientDescent(step_size=0.02),
        "sgd": StochasticDescent(step_size=0.02, shuffle=False),
    }[solver]
    trace = Trace()
    options = {"init": "zero", "n_restarts": 0, "max_iter": 4}
    model = MCEClassifier(solver=method, callback=trace, **options).fit(X, label, s)
    walked = [record.variables[0] for record in trace.records[0]]
    np.testing.assert_allclose(walked, path, rtol=1e-10, atol=1e-13)
    np.testing.assert_allclose([*model.coef_[0], *model.intercept_], w, rtol=1e-10)
    losses = [s @ expit(-y * (Z @ w)) / s.sum() for w in path]
    np.testing.assert_allclose(trace.curve("objective"), losses)
    np.testing.assert_allclose(model.loss_curve_, losses[:: len(parts)])
    if solver == "sgd":
        rows = [record.working_set.item() for record in trace.records[0][1:]]
        assert rows == 4 * [*range(40)]
    named = MCEClassifier(solver=solver, step_size=0.02, random_state=0, **options).fit(X, label, s)
    same = np.allclose(named.coef_, model.coef_)
    assert same == (solver == "gradient_descent")  # rows come in random order otherwise
    other = MCEClassifier(solver=solver, step_size=0.02, units="standardised", **options)
    assert not np.allclose(other.fit(X, label, s).coef_, model.coef_, rtol=1e-3)


@pytest.mark.parametrize("solver", ["gradient_descent", "sgd"])
def test_steps_that_end_on_a_plateau_have_diverged(solver):
    X, y = load_iris(return_X_y=True)
    model = MCEClassifier(solver=solver, step_size=1e3, n_restarts=0, random_state=0)
    with pytest.warns(ConvergenceWarning, match="rest on a plateau above it"):
        model.fit(X[50:], y[50:])
    assert model.certificate_.status == "diverged"
    assert model.score(X[50:], y[50:]) > 0.9  # as at the start: the plateau has a half


def test_a_penalty_is_the_same_in_either_units(random):
    X = random.normal(size=(60, 2)) * [1.0, 4.0] + 2.0
    label = X @ [1.0, 0.5] + random.normal(size=60) > 3
    options = {"solver": "gradient_descent", "alpha": 0.05, "n_restarts": 0, "max_iter": 20_000}
    one, other = (
        MCEClassifier(step_size="constant", units=units, tol=1e-6, **options).fit(X, label)
        for units in ("data", "standardised")
    )
    assert one.loss_ == pytest.approx(other.loss_, rel=1e-6)
    np.testing.assert_allclose(one.coef_, other.coef_, rtol=1e-2)


def test_with_an_intercept_there_is_no_minimum_and_it_is_said():
    X, y = load_breast_cancer(return_X_y=True)
    model = MCEClassifier(n_restarts=0).fit(X, y)
    assert "no least one" in model.certificate_.claim
    sign = 2.0 * y - 1.0
    longer = [expit(-k * sign * model.decision_function(X)).mean() for k in (1.0, 2.0, 8.0, 1e6)]
    assert (np.diff(longer) < 0).all()  # ever lower, towards the count
    assert longer[-1] == pytest.approx(model.train_error_, abs=1e-9)
    for other in (MCEClassifier(alpha=0.01), MCEClassifier(fit_intercept=False)):
        assert "no least one" not in other.set_params(n_restarts=0).fit(X, y).certificate_.claim
    few = MCEClassifier(fit_intercept=False, tol=1e-8, random_state=0).fit([[1.0], [2.0]], [1, 0])
    assert few.coef_[0, 0] == pytest.approx(-1.061, abs=1e-3)
    assert few.loss_ == pytest.approx(0.425, abs=1e-3)
    # stochastic steps come near to where the others end, and not to twice the loss
    near = MCEClassifier(solver="sgd", n_restarts=0, random_state=0).fit(X, y)
    assert near.status_ is Status.CONVERGED
    assert near.loss_ < 1.4 * model.loss_


def test_it_errs_less_than_least_squares_on_several_classes():
    X, y = load_iris(return_X_y=True)
    model = MCEClassifier(random_state=0).fit(X, y)
    assert model.train_error_ <= 2 / 150
    assert model.coef_.shape == (3, 4)
    assert LeastSquaresClassifier().fit(X, y).score(X, y) < 0.9
    weighted = MCEClassifier(random_state=0, class_weight={0: 1, 1: 1, 2: 1000}).fit(X, y)
    assert (weighted.predict(X[y == 2]) == 2).all()


@pytest.mark.parametrize("solver", SOLVERS)
def test_separated_classes_end_the_search(solver):
    X, y = load_iris(return_X_y=True)
    model = MCEClassifier(solver=solver, random_state=0).fit(X[:100], y[:100] == 1)
    assert model.separated_
    assert model.train_error_ == 0.0
    assert model.n_restarts_ == 0
    assert model.loss_ < 0.05
    bound = MCEClassifier(alpha=0.1, random_state=0).fit(X[:100], y[:100])
    assert np.linalg.norm(bound.coef_) < np.linalg.norm(model.coef_)


@pytest.mark.parametrize("d", [3, 10])
def test_restarts_find_the_boundary_in_spite_of_outliers(d):
    found = []
    for seed in range(10):
        random = np.random.default_rng(seed)
        X = random.normal(size=(400, d))
        y = X[:, 0] > 0
        X[:40, 0] *= -30.0
        found.append(MCEClassifier(random_state=seed).fit(X, y).train_error_ < 0.15)
    assert sum(found) >= 8


def test_units_do_not_matter(random):
    X, y = load_breast_cancer(return_X_y=True)
    options = {"alpha": 1e-2, "tol": 1e-8, "n_restarts": 2, "random_state": 0}
    model = MCEClassifier(**options).fit(X, y)
    unit = 2.0 ** random.integers(-40, 40, size=30)
    other = MCEClassifier(**options).fit(X * unit, y)
    np.testing.assert_allclose(other.coef_ * unit, model.coef_, rtol=1e-3)
    assert other.loss_ == pytest.approx(model.loss_)


@pytest.mark.usefixtures("heard")
@pytest.mark.parametrize("solver", SOLVERS)
def test_ctrl_c_leaves_a_model_and_a_warm_start_goes_on(solver, outliers, eager):
    X, y = outliers
    seen = []

    def press(progress):
        seen.append(str(progress))
        if len(seen) == 3:  # a second one would not be caught
            signal.raise_signal(signal.SIGINT)

    model = MCEClassifier(solver=solver, tol=1e-9, random_state=3, callback=press)
    stopped = pytest.warns(ConvergenceWarning, match=r"by Ctrl-C.* the training rows are misclass")
    with stopped, pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    assert model.status_ is Status.INTERRUPTED
    assert model.n_restarts_ == 0
    assert "start 1 of 10, loss" in seen[0]
    loss = model.loss_
    model.set_params(warm_start=True, tol=None, n_restarts=0, callback=None).fit(X, y)
    assert model.loss_curve_[0] == pytest.approx(loss)
    assert model.loss_ <= loss


def test_what_a_method_has_not_is_refused_and_what_has_not_converged_says_so(outliers):
    X, y = outliers
    with pytest.raises(ValueError, match=r"step_size=0\.1 was given, but solver='lbfgs' has no"):
        MCEClassifier(step_size=0.1).fit(X, y)
    with pytest.raises(ValueError, match=r"alpha=0\.1 was given, but solver='sgd' has no penalty"):
        MCEClassifier(solver="sgd", alpha=0.1).fit(X, y)
    with pytest.raises(ValueError, match="number of classes has to be greater than one"):
        MCEClassifier().fit(X, np.zeros(400))
    for solver in SOLVERS:
        with pytest.warns(ConvergenceWarning, match="max_iter=1 steps"):
            model = MCEClassifier(solver=solver, max_iter=1, n_restarts=0, random_state=0).fit(X, y)
        assert model.status_ is Status.MAX_ITER


# -- pictures -------------------------------------------------------------------------------------


def test_the_pictures_draw_the_losses_and_their_slopes():
    figure = pytest.importorskip("matplotlib.figure")
    from maxmargin.plotting import plot_gradient_weights, plot_losses

    ax = plot_losses(figure.Figure().subplots())
    lines = {line.get_label(): line.get_data() for line in ax.lines}
    expected = {
        "zero-one": losses.ZeroOne(),
        "hinge": losses.Hinge(),
        "squared hinge": losses.SquaredHinge(),
        "exponential": losses.Exponential(),
        "perceptron criterion": losses.PerceptronCriterion(),
        "minimum classification error": losses.MinimumClassificationError(),
    }
    for name, loss in expected.items():
        margin, drawn = lines[name]
        np.testing.assert_array_equal(drawn, loss.value(margin))
    margin, drawn = lines["logistic / ln 2"]
    np.testing.assert_allclose(drawn, losses.Logistic().value(margin) / np.log(2))
    assert np.interp(0.0, margin, drawn) == pytest.approx(1.0)

    ax = plot_gradient_weights(figure.Figure().subplots())
    lines = {line.get_label(): line.get_data() for line in ax.lines}
    u, weight = lines["logistic regression"]
    np.testing.assert_allclose(weight, 1 / (1 + np.exp(u)))
    u, weight = lines["minimum classification error"]
    np.testing.assert_allclose(weight, np.exp(-u) / (1 + np.exp(-u)) ** 2)


def test_a_constant_column_adds_no_penalty():
    """A random start gave it a weight that the answer did not have, and loss_ counted it."""
    random = np.random.default_rng(0)
    X, y = random.normal(size=(40, 3)), random.integers(2, size=40)
    X[:, 0] = 3.0
    model = MCEClassifier(alpha=1e-3, init="zero", tol=1e-3, random_state=0).fit(X, y)
    assert model.losses_.argmin() > 0  # the best is a random start's
    margins = np.where(y == 1, 1.0, -1.0) * model.decision_function(X)
    penalty = 0.5e-3 * np.sum((X.std(axis=0) * model.coef_) ** 2)
    assert model.loss_ == pytest.approx(np.mean(1 / (1 + np.exp(margins))) + penalty, rel=1e-12)
