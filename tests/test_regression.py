"""Least squares: every method finds the minimum, in any units, at any rank, and says how well."""

import signal
import tracemalloc
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.linear_model
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning

from maxmargin import Trace
from maxmargin.linear.regression import LeastSquaresClassifier, LinearRegression
from maxmargin.progress import Monitor
from maxmargin.solution import Status
from maxmargin.solvers import GradientDescent, StochasticDescent

STEPS = {
    "qr": {},
    "conjugate_gradient": {"tol": 1e-12},
    "gradient_descent": {"tol": 1e-10, "max_iter": 5000},
    "sgd": {"tol": 1e-4, "max_iter": 9000, "random_state": 0},
}


@pytest.fixture
def eager(monkeypatch):
    """Reports at every step."""
    original = Monitor.__init__

    def eager(self, *args, **kwargs):
        original(self, *args, **kwargs)
        self.interval = 0.0

    monkeypatch.setattr(Monitor, "__init__", eager)


def minimum_norm(X, y, weight, intercept):
    """Solve with a pseudoinverse of the centred and weighted X."""
    share = weight / weight.sum()
    mean, level = (share @ X, share @ y) if intercept else (0.0 * X[0], 0.0)
    root = np.sqrt(weight)
    w = np.linalg.pinv((X - mean) * root[:, None], rcond=1e-12) @ ((y - level) * root)
    return w, level - mean @ w


@pytest.mark.parametrize("solver", STEPS)
@pytest.mark.parametrize("kind", ["dense", "csr", "float32"])
@pytest.mark.parametrize("intercept", [True, False])
def test_every_method_finds_the_minimum(solver, kind, intercept, random):
    X = random.normal(size=(300, 4)) * [1.0, 50.0, 0.02, 3.0] + [0.0, 20.0, 0.0, -3.0]
    X[random.random(X.shape) < 0.3] = 0.0
    X = X.astype(np.float32)
    y = X @ [1.0, 0.1, -30.0, 2.0] + 5.0 + random.normal(size=300)
    weight = random.uniform(0.0, 2.0, size=300)
    weight[:20] = 0.0
    given = {"dense": X.astype(np.float64), "csr": sp.csr_matrix(X), "float32": X}[kind]
    model = LinearRegression(solver=solver, fit_intercept=intercept, **STEPS[solver])
    model.fit(given, y, sample_weight=weight)
    w, b = minimum_norm(X.astype(np.float64), y, weight, intercept)
    close = 3e-3 if solver == "sgd" else 1e-7
    np.testing.assert_allclose(model.coef_, w, rtol=close)
    assert model.intercept_ == pytest.approx(b, rel=10 * close)
    certificate = model.certificate_
    assert certificate.converged
    assert certificate.solver == solver
    assert certificate.gradient_norm <= STEPS[solver].get("tol", 1e-14)
    assert certificate.objective == pytest.approx(weight @ (X @ w + b - y) ** 2, rel=1e-6)
    assert certificate.rank == model.rank_ == (4 if solver == "qr" else None)


@pytest.mark.parametrize("solver", ["qr", "conjugate_gradient"])
@pytest.mark.parametrize("data", ["more columns than rows", "dependent", "constant", "same rows"])
def test_of_many_solutions_the_one_of_least_norm_and_it_is_said(solver, data, random):
    X = random.normal(size=(40, 6)) * [1.0, 2.0, 0.5, 1.0, 4.0, 1.0] + 1.0
    rank = 5
    if data == "more columns than rows":
        X, rank = random.normal(size=(12, 30)), 11
    elif data == "dependent":
        X[:, 3] = X[:, 0] - 2 * X[:, 1]
    elif data == "constant":
        X[:, 3] = 0.1
    else:
        X, rank = X[random.integers(0, 4, size=40)], 3
    y = random.normal(size=len(X))
    model = LinearRegression(solver=solver, tol=1e-12).fit(X, y)
    w, b = minimum_norm(X, y, np.ones(len(X)), True)
    np.testing.assert_allclose(model.coef_, w, atol=1e-9)
    assert model.intercept_ == pytest.approx(b)
    if solver == "qr":
        assert model.rank_ == rank
        assert f"{rank} of {X.shape[1]}: not unique" in str(model.certificate_)
        singular = np.linalg.svd(X - X.mean(axis=0), compute_uv=False)
        np.testing.assert_allclose(model.singular_, singular, atol=1e-12 * singular[0])
    else:
        assert "not known: only solver='qr'" in str(model.certificate_)


@pytest.mark.parametrize("solver", STEPS)
def test_units_do_not_matter(solver, random):
    """A lesser solver drops the small columns, or crawls along them."""
    unit = np.logspace(-9, 9, 6)
    Z = random.normal(size=(500, 6)) + 0.5 * random.normal(size=(500, 1))
    w = random.normal(size=6)
    y = 1e6 * (Z @ w + 3.0)
    if solver == "conjugate_gradient":  # the price of the least norm
        with pytest.warns(ConvergenceWarning, match="StandardScaler, or MaxAbsScaler"):
            LinearRegression(solver=solver).fit(Z * unit, y)
        return
    model = LinearRegression(solver=solver, **STEPS[solver]).fit(Z * unit, y)
    np.testing.assert_allclose(model.coef_ * unit, 1e6 * w, rtol=1e-3 if solver == "sgd" else 1e-8)
    assert model.certificate_.converged


@pytest.mark.parametrize("solver", STEPS)
def test_columns_far_from_zero_keep_their_digits(solver, random):
    Z = random.normal(size=(200, 3))
    model = LinearRegression(solver=solver, **STEPS[solver] | {"tol": 1e-5}).fit(
        Z + 1e8, Z @ [1, 2, 3]
    )
    np.testing.assert_allclose(model.coef_, [1, 2, 3], rtol=1e-4)


def test_the_condition_number_is_not_squared():
    """A polynomial of degree 9 on [0, 1], exact in y: X'X has no digit left, X has."""
    x = np.linspace(0.0, 1.0, 200)
    X = x[:, None] ** np.arange(1, 10)
    w = np.array([1.0, -2.0, 3.0, -4.0, 5.0, -6.0, 7.0, -8.0, 9.0])
    y = X @ w
    centred = X - X.mean(axis=0)
    formed = np.linalg.solve(centred.T @ centred, centred.T @ (y - y.mean()))
    error = np.abs(LinearRegression().fit(X, y).coef_ - w).max()
    assert error < 1e-6
    assert error < 1e-3 * np.abs(formed - w).max()


@pytest.mark.slow
def test_rows_come_in_blocks_and_float32_is_not_copied(random):
    X = random.normal(size=(40_000, 100)).astype(np.float32)
    y = X[:, 0] + random.normal(size=40_000)
    tracemalloc.start()
    model = LinearRegression().fit(X, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.5 * X.nbytes
    w, _ = minimum_norm(X.astype(np.float64), y, np.ones(len(y)), True)
    np.testing.assert_allclose(model.coef_, w, atol=1e-12)


def test_several_targets_are_as_many_fits(random):
    X, Y = random.normal(size=(50, 3)), random.normal(size=(50, 2)) * [1.0, 1e3] + [0.0, 7.0]
    for solver in ("qr", "conjugate_gradient"):
        model = LinearRegression(solver=solver, tol=1e-12).fit(X, Y)
        alone = [LinearRegression().fit(X, y) for y in Y.T]
        np.testing.assert_allclose(model.coef_, [part.coef_ for part in alone])
        np.testing.assert_allclose(model.intercept_, [part.intercept_ for part in alone])
        np.testing.assert_allclose(model.predict(X), np.c_[*(part.predict(X) for part in alone)])
        total = sum(part.certificate_.objective for part in alone)
        assert model.certificate_.objective == pytest.approx(total)


# -- ends other than the usual one ----------------------------------------------------------------


@pytest.mark.parametrize("solver", ["conjugate_gradient", "gradient_descent", "sgd"])
def test_what_has_not_converged_says_so_and_what_to_do(solver, random):
    X = random.normal(size=(200, 10)) @ random.normal(size=(10, 10))
    y = random.normal(size=200)
    model = LinearRegression(solver=solver, tol=1e-14, max_iter=2, random_state=0)
    with pytest.warns(ConvergenceWarning, match=r"max_iter=2.*solver='qr' needs no steps"):
        model.fit(X, y)
    assert model.certificate_.status is Status.MAX_ITER
    assert model.n_iter_ == 2


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_stopped_descent_has_its_lowest_point(random):
    """Steps that a line search takes may go uphill for a while."""
    X, y = random.normal(size=(60, 8)) @ random.normal(size=(8, 8)), random.normal(size=60)
    models = [
        LinearRegression(solver="gradient_descent", tol=1e-14, max_iter=k).fit(X, y)
        for k in range(1, 40)
    ]
    assert (np.diff(models[-1].loss_curve_) > 0).any()
    assert (np.diff([model.certificate_.objective for model in models]) <= 0).all()


@pytest.mark.parametrize("solver", ["gradient_descent", "sgd"])
def test_a_step_that_is_too_long_diverges_and_says_so(solver, random):
    X, y = random.normal(size=(50, 3)), random.normal(size=50)
    for units, step in {"data": 5.0, "standardised": lambda t: 5.0}.items():
        model = LinearRegression(solver=solver, step_size=step, units=units, random_state=0)
        with pytest.warns(ConvergenceWarning, match=r"have diverged.*Leave step_size=None"):
            model.fit(X, y)
        assert model.certificate_.status is Status.DIVERGED
        assert model.loss_curve_[-1] > 100 * model.loss_curve_[0]
        assert np.isfinite(model.coef_).all()
    if solver == "gradient_descent":
        curvature = np.linalg.eigvalsh(X.T @ X).max() * 2
        options = {"solver": solver, "fit_intercept": False, "max_iter": 2000}
        short = LinearRegression(step_size=1.9 / curvature, **options).fit(X, y)
        exact = LinearRegression(fit_intercept=False).fit(X, y)
        np.testing.assert_allclose(short.coef_, exact.coef_, rtol=1e-4)
        options["max_iter"] = 30  # just beyond what is stable: slowly uphill
        with pytest.warns(ConvergenceWarning, match=r"has grown at \d+ steps"):
            LinearRegression(step_size=2.1 / curvature, **options).fit(X, y)
    with pytest.raises(ValueError, match=r"step_size=0\.1 was given, but solver='auto' has no"):
        LinearRegression(step_size=0.1).fit(X, y)
    with pytest.raises(ValueError, match="units='data' was given, but solver='qr' has no"):
        LinearRegression(units="data", solver="qr").fit(X, y)
    for method in (GradientDescent, StochasticDescent):
        with pytest.raises(ValueError, match="no schedule 'fast'"):
            LinearRegression(solver=method(step_size="fast")).fit(X, y)
        for size in (0.0, -1.0, np.nan, np.inf, [0.1]):
            with pytest.raises(ValueError, match="step_size is a positive number"):
                method(step_size=size)
        with pytest.raises(ValueError, match="no units 'mine'"):
            LinearRegression(solver=method(units="mine")).fit(X, y)
    with pytest.raises(ValueError, match="size of step 2 is -0"):
        LinearRegression(solver=solver, step_size=lambda t: 1e-4 * (3 - 2 * t)).fit(X, y)


# -- the lecture's steps ---------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:The descent has not converged")
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
def test_gradient_descent_is_the_lectures_by_hand(intercept, container, random):
    X = random.normal(size=(40, 3)) * [1.0, 10.0, 0.1] + 1.0
    X[random.random(X.shape) < 0.2] = 0.0
    y, s = X @ [1.0, 2.0, 3.0] + random.normal(size=40) + 4.0, random.uniform(0.5, 2.0, size=40)
    Z = np.column_stack([X, np.full(40, float(intercept))])
    w, path = np.zeros(4), [np.zeros(4)]
    for t in range(1, 6):
        w = w - 1e-4 / t * (2 * Z.T @ (s * (Z @ w)) - 2 * Z.T @ (s * y))
        path.append(w)
    trace = Trace()
    model = LinearRegression(
        solver="gradient_descent",
        step_size=lambda t: 1e-4 / t,
        fit_intercept=intercept,
        max_iter=5,
        callback=trace,
    ).fit(container(X), y, s)
    np.testing.assert_allclose(np.append(model.coef_, model.intercept_), w, rtol=1e-12)
    walked = np.array([record.variables[0] for record in trace.records[0]])
    np.testing.assert_allclose(walked, path, rtol=1e-12, atol=1e-14)
    losses = [s @ (Z @ w - y) ** 2 for w in path]
    np.testing.assert_allclose(model.loss_curve_, losses, rtol=1e-10)
    assert model.certificate_.objective == pytest.approx(losses[-1])


def test_the_path_is_in_the_users_units_whatever_those_of_the_steps(random):
    X, y = random.normal(size=(40, 2)) * [1.0, 50.0] + 7.0, random.normal(size=40) * 30.0 + 100.0
    for solver in ("conjugate_gradient", "gradient_descent", "sgd"):
        trace = Trace()
        model = LinearRegression(solver=solver, random_state=0, callback=trace).fit(X, y)
        last = trace.records[0][-1]
        np.testing.assert_allclose(last.weights, model.coef_, rtol=1e-9)
        assert last.intercept == pytest.approx(model.intercept_)


@pytest.mark.filterwarnings("ignore:The descent has not converged")
def test_stochastic_descent_on_squares_is_the_delta_rule(random):
    """``w <- w + eta (y - w . x) x``, Widrow's and Hoff's; the squares' slope is twice that."""
    X, label = random.normal(size=(30, 2)) + 0.3, random.integers(0, 2, size=30)
    y, eta = 2.0 * label - 1.0, 0.05
    w, path = np.zeros(3), [np.zeros(3)]
    for _ in range(3):
        for i in range(30):
            x = np.append(X[i], 1.0)
            w = w + eta * (y[i] - w @ x) * x
            path.append(w)
    trace, rule = Trace(), StochasticDescent(step_size=eta / 2, shuffle=False)
    for data in (X, sp.csr_array(X)):
        model = LeastSquaresClassifier(solver=rule, max_iter=3, callback=trace).fit(data, label)
        np.testing.assert_allclose([*model.coef_[0], *model.intercept_], w, rtol=1e-12)
    walked = [record.variables[0] for record in trace.records[0]]
    np.testing.assert_allclose(walked, path, rtol=1e-12, atol=1e-14)
    options = {"solver": "sgd", "step_size": eta / 2, "max_iter": 3}
    one, same, other = (
        LeastSquaresClassifier(random_state=seed, **options).fit(X, label).coef_
        for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(one, same)
    assert not np.allclose(one, other)  # by name the rows come in random order
    assert not np.allclose(one, model.coef_)


@pytest.mark.parametrize("units", ["data", "standardised"])
def test_schedules_begin_with_a_safe_step(units, random):
    X = random.normal(size=(60, 3)) * [1.0, 2.0, 0.5] + 0.5
    y = X @ [1.0, -1.0, 2.0] + 0.1 * random.normal(size=60)
    exact = LinearRegression().fit(X, y).certificate_.objective
    for step in ("constant", "inverse_sqrt", "inverse"):
        for solver in ("gradient_descent", "sgd"):
            model = LinearRegression(
                solver=solver, step_size=step, units=units, tol=1e-2, random_state=0
            )
            with warnings.catch_warnings(action="ignore"):
                model.fit(X, y)
            if solver == "gradient_descent":
                assert (np.diff(model.loss_curve_) <= 0).all()
            assert exact < model.certificate_.objective < y @ y
    few, many = (
        LinearRegression(solver="gradient_descent", step_size=step, units=units, tol=0.3).fit(X, y)
        for step in ("constant", "inverse_sqrt")
    )
    assert few.n_iter_ < many.n_iter_


@pytest.mark.usefixtures("heard")
@pytest.mark.parametrize("solver", STEPS)
def test_ctrl_c_leaves_a_model(solver, random, eager):
    X, y = random.normal(size=(70_000, 4)), random.normal(size=70_000)
    seen = []

    def press(progress):
        seen.append(str(progress))
        if len(seen) == 1:  # a second one would not be caught
            signal.raise_signal(signal.SIGINT)

    model = LinearRegression(solver=solver, callback=press, random_state=0)
    stopped = pytest.warns(ConvergenceWarning, match="by Ctrl-C or by a callback")
    with stopped, pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    assert model.certificate_.status is Status.INTERRUPTED
    assert np.isfinite(model.predict(X[:5])).all()
    assert seen[0].startswith("rows left 1" if solver == "qr" else "loss 1, gradient")
    if solver == "qr":  # the rows of the first block, exactly
        first = LinearRegression().fit(X[:32768], y[:32768])
        np.testing.assert_allclose(model.coef_, first.coef_, rtol=1e-9)
        assert model.intercept_ == pytest.approx(first.intercept_)


def test_time_limit_and_progress_bar(random, capsys):
    X, y = random.normal(size=(5000, 20)), random.normal(size=5000)
    model = LinearRegression(solver="sgd", tol=1e-15, time_limit=1e-9, verbose=True)
    with pytest.warns(ConvergenceWarning, match="time_limit=1e-09 s"):
        model.fit(X, y)
    said = capsys.readouterr()
    assert "time_limit" in said.out + said.err


def test_values_that_cannot_be_squared_are_refused():
    with pytest.raises(ValueError, match=r"column\(s\) \[1\] are too large to be squared"):
        LinearRegression().fit([[0.0, 1e200], [1.0, -1e200], [2.0, 0.0]], [0.0, 1.0, 2.0])


# -- the classifier -------------------------------------------------------------------------------


@pytest.mark.parametrize("labels", [["no", "yes"], [False, True], [7, 3], [-1, 1]])
def test_the_classifier_is_the_sign_of_the_regression(labels, random):
    X = random.normal(size=(80, 3))
    positive = X[:, 0] + 0.5 * random.normal(size=80) > 0
    y = np.array(labels)[positive.astype(int)]
    model = LeastSquaresClassifier().fit(X, y)
    sign = np.where(y == model.classes_[1], 1.0, -1.0)
    values = LinearRegression().fit(X, sign).predict(X)
    np.testing.assert_allclose(model.decision_function(X), values)
    assert (model.predict(X) == model.classes_[(values > 0).astype(int)]).all()


def test_several_classes_are_each_against_the_rest():
    X, y = load_iris(return_X_y=True)
    model = LeastSquaresClassifier(class_weight={0: 1.0, 1: 3.0, 2: 1.0}).fit(X, y)
    weight = np.where(y == 1, 3.0, 1.0)
    values = [
        LinearRegression().fit(X, np.where(y == k, 1, -1), weight).predict(X) for k in (0, 1, 2)
    ]
    np.testing.assert_allclose(model.decision_function(X), np.transpose(values), atol=1e-12)
    assert (model.predict(X) == np.argmax(values, axis=0)).all()
    with pytest.raises(ValueError, match="number of classes has to be greater than one"):
        LeastSquaresClassifier().fit(X, np.ones(150))


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("weights", [False, True])
def test_positive_coefficients_are_scikit_learns_and_meet_their_conditions(
    intercept, weights, random
):
    X = random.normal(size=(60, 5)) * [1.0, 1e3, 1e-3, 1.0, 1.0]
    Y = X @ random.normal(size=(5, 3)) / [1.0, 2.0, 3.0] + random.normal(size=(60, 3)) + 2.0
    weight = random.uniform(0.0, 2.0, size=60) if weights else np.ones(60)
    peer = sklearn.linear_model.LinearRegression(positive=True, fit_intercept=intercept)
    peer.fit(X, Y, weight)
    for data in (X, sp.csr_matrix(X)):
        for n_jobs in (1, 2):
            model = LinearRegression(positive=True, fit_intercept=intercept, n_jobs=n_jobs)
            model.fit(data, Y, weight)
            np.testing.assert_allclose(model.predict(X), peer.predict(X), rtol=1e-6)
            assert model.certificate_.converged
            assert model.certificate_.gradient_norm < 1e-12
            assert (model.coef_ >= 0).all()
            assert (model.coef_ == 0).any()
    one = LinearRegression(positive=True, fit_intercept=intercept, copy_X=False)
    np.testing.assert_allclose(one.fit(X, Y[:, 0], weight).coef_, peer.coef_[0], rtol=1e-6)
    gradient = 2.0 * X.T @ (weight * (one.predict(X) - Y[:, 0]))
    assert (gradient[one.coef_ == 0] > 0).all()
    assert "no coefficient is negative" in str(one.certificate_)


def test_positive_coefficients_have_their_own_method():
    with pytest.raises(ValueError, match="positive=True has a method of its own"):
        LinearRegression(positive=True, solver="sgd").fit([[0.0], [1.0]], [0.0, 1.0])


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_a_column_near_its_own_rounding_does_not_cost_the_others(form):
    random = np.random.default_rng(0)
    X = random.normal(size=(30, 4)).astype(np.float32)
    X[:, 2] += np.float32(1e7)  # of steps of one
    model = LinearRegression().fit(form(X), 3.0 * X[:, 0] + X[:, 1])
    assert model.rank_ == 4
    assert model.certificate_.gradient_norm < 1e-6
    np.testing.assert_allclose(model.coef_, [3.0, 1.0, 0.0, 0.0], atol=1e-6)
    twice = LinearRegression().fit(np.column_stack([X[:, :2], X[:, 0] + X[:, 1]]), X[:, 0])
    assert twice.rank_ == 2  # a sum in float32 is no column of its own


def test_rank_of_indicators_in_many_rows():
    """The rounding of a factorisation of many rows is no column of its own."""
    random = np.random.default_rng(0)
    X = np.column_stack([np.eye(40)[random.integers(40, size=40_000)], random.normal(size=40_000)])
    model = LinearRegression().fit(X, X @ random.normal(size=41) + random.normal(size=40_000))
    assert model.rank_ == 40
    assert np.abs(model.coef_).max() < 10
    assert model.certificate_.gradient_norm < 1e-10


@pytest.mark.parametrize("seed", [0, 3, 7])
def test_conjugate_gradients_do_not_leave_the_answer_for_rounding(seed):
    """A column far from zero and a tol below rounding: they went on to NaN, called converged."""
    random = np.random.default_rng(seed)
    rows, targets = random.normal(size=(15, 2)), 1e8 * random.normal(size=15)
    rows[:, 0] += 1e8
    exact = LinearRegression().fit(rows, targets).certificate_.objective
    model = LinearRegression(solver="conjugate_gradient", tol=1e-10)
    with pytest.warns(ConvergenceWarning):
        certificate = model.fit(rows, targets).certificate_
    assert certificate.status is Status.STALLED
    assert certificate.objective == pytest.approx(exact, rel=1e-6)


@pytest.mark.parametrize("seed", [8, 11, 13])
def test_conjugate_gradients_converge_by_the_data_not_by_their_own_sums(seed):
    """Their gradient was below tol, that of the data 98 to 282 times tol."""
    random = np.random.default_rng(seed)
    X, y = random.normal(size=(30, 4)), random.normal(size=30)
    X[0] *= 1e8
    model = LinearRegression(solver="conjugate_gradient", tol=1e-11)
    with pytest.warns(ConvergenceWarning, match="solver='qr'"):
        certificate = model.fit(X, y).certificate_
    assert certificate.status is Status.STALLED
    assert certificate.gradient_norm > 1e-11
    least = LinearRegression().fit(X, y).certificate_.objective
    assert certificate.objective == pytest.approx(least)


@pytest.mark.parametrize("seed", [7, 2, 9])
def test_the_least_norm_does_not_leave_a_gradient(seed):
    """Far along a direction that is within float32's precision it left 40 times tol."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(30, 3))
    X[:, 2] = X[:, 1] + 1e-5 * X[:, 2] + 1e-6 * X[:, 0]
    y = random.normal(size=30) + 3.0 * X[:, 0]
    X[:, 0] += 100.0
    X = (X * [1.0, 1e9, 1e9]).astype(np.float32)
    certificate = LinearRegression(tol=1e-5).fit(X, y).certificate_
    assert certificate.converged
    assert certificate.gradient_norm <= 1e-5


@pytest.mark.parametrize("seed", [0, 4, 5])
def test_the_least_norm_is_exact_for_columns_of_any_scales(seed):
    """Gradients of 1e-8: long columns spoilt what short ones have."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(20, 30)) * 10.0 ** random.uniform(-8, 8, size=30)
    y = random.normal(size=20)
    model = LinearRegression().fit(X, y)
    assert model.rank_ == 19
    assert model.certificate_.gradient_norm < 1e-12
