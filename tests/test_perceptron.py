"""The perceptron and the verdict on separability, held to the lecture's theorems."""

import itertools
import signal
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer, load_iris, make_blobs
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Perceptron as Reference
from sklearn.preprocessing import StandardScaler

from maxmargin import Trace
from maxmargin.kernels import RBF, Linear, Polynomial
from maxmargin.linear.perceptron import Perceptron
from maxmargin.linear.separability import is_separable
from maxmargin.solvers.perceptron.kernel_state import KernelState

# most data here cannot be separated, and the default tells so: see the test of that
ORDERS = ("shuffled", "cyclic", "random", "misclassified")
XOR = np.array([[0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [1.0, 0.0]]), np.array([0, 0, 1, 1])

XOR_MANY = np.tile(XOR[0], (10, 1)), np.tile(XOR[1], 10)


def signs(y):
    return np.where(y == np.max(y), 1.0, -1.0)


def separable(random, n=60, gap=0.1):
    X = random.normal(size=(n, 3))
    side = X @ [1.0, 2.0, -1.0] - 0.5
    return X + np.outer(np.sign(side) * gap, [1.0, 2.0, -1.0]), (side > 0).astype(int)


@pytest.fixture(scope="module")
def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return StandardScaler().fit_transform(X), y


# -- the theorem -------------------------------------------------------------------------------


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("options", [{}, {"fit_intercept": False}, {"init": "random", "eta0": 0.3}])
def test_the_number_of_updates_obeys_the_bound(order, options, random):
    X, y = separable(random)
    intercept = options.get("fit_intercept", True)
    if not intercept:
        y = (X @ [1.0, 2.0, -1.0] > 0).astype(int)
    verdict = is_separable(X, y, fit_intercept=intercept)
    model = Perceptron(order=order, tol=None, max_iter=10_000, **options).fit(X, y)
    assert model.converged_
    assert model.status_ == "separated"
    assert (signs(y) * model.decision_function(X) > 0).all()
    bound = model.mistake_bound(X, y, verdict.coef, verdict.intercept)
    assert 0 < model.n_updates_ <= bound
    # any separator bounds it, the perceptron's own too
    assert model.n_updates_ <= model.mistake_bound(X, y, model.coef_, model.intercept_)


def test_the_bound_is_the_formula_and_can_be_reached():
    """One point a side: R^2 ||w||^2 / gamma^2 is 1, and one update is made (so <=, not <)."""
    X, y = np.array([[-1.0], [1.0]]), [0, 1]
    model = Perceptron(fit_intercept=False).fit(X, y)
    assert model.n_updates_ == 1 == model.mistake_bound(X, y, [4.0])
    X, y = np.array([[1.0, 0.0], [3.0, 1.0], [0.0, -2.0]]), np.array([1, 1, 0])
    model = Perceptron(order="cyclic", tol=None).fit(X, y)
    w, b = np.array([1.0, 2.0]), 0.5
    margins = signs(y) * (X @ w + b)
    expected = ((X**2).sum(axis=1) + 1).max() * (w @ w + b**2) / margins.min() ** 2
    assert model.mistake_bound(X, y, w, b) == np.floor(expected)
    started = Perceptron(order="cyclic", tol=None, eta0=0.5)
    started.fit(X, y, coef_init=[[1.0, -1.0]], intercept_init=[2.0])
    beta2, gamma = ((X**2).sum(axis=1) + 1).max(), margins.min()
    longer = np.linspace(0.51, 5.0, 100_000)[:, None] * beta2 / gamma
    away = np.array([1.0, -1.0, 2.0]) / 0.5 - longer * np.append(w, b)
    bounds = (away**2).sum(axis=1) / (2 * longer[:, 0] * gamma - beta2)
    assert started.mistake_bound(X, y, w, b) == np.floor(bounds.min())


def test_the_bound_is_refused_where_it_does_not_hold(random):
    X, y = separable(random)
    with pytest.raises(ValueError, match="do not separate"):
        Perceptron(tol=None).fit(X, y).mistake_bound(X, y, [1.0, 0.0, 0.0])
    weighted = Perceptron(tol=None).fit(X, y, sample_weight=random.uniform(1, 2, len(y)))
    with pytest.raises(ValueError, match="constant step"):
        weighted.mistake_bound(X, y, [1.0, 2.0, -1.0], -0.5)


def test_from_zero_the_step_does_not_matter_and_from_elsewhere_it_does(random):
    X, y = separable(random, gap=0.01)
    one, two = (Perceptron(order="cyclic", tol=None, eta0=eta).fit(X, y) for eta in (1.0, 0.25))
    np.testing.assert_array_equal(two.coef_, 0.25 * one.coef_)
    assert one.n_updates_ == two.n_updates_
    one, two = (
        Perceptron(order="cyclic", tol=None, eta0=eta, init="random").fit(X, y)
        for eta in (1.0, 0.01)
    )
    assert one.n_updates_ != two.n_updates_


@pytest.mark.parametrize(
    ("variant", "options"),
    [
        ("last", {}),
        ("pocket", {}),
        ("averaged", {}),
        ("last", {"init": "random", "penalty": "l2", "alpha": 1e-3}),
        ("pocket", {"init": "random", "penalty": "l2", "alpha": 1e-3}),
    ],
)
def test_the_weights_are_the_start_plus_the_combination_of_rows(variant, options, cancer, random):
    X, y = cancer
    weight = random.uniform(0, 2, size=len(y)).round()
    model = Perceptron(variant=variant, **options).fit(X, y, sample_weight=weight)
    begin = model.coef_init_
    if "penalty" in options:  # the start shrinks with the weights: take it out of the balance
        begin = model.coef_ - model.dual_coef_ @ X
        cosine = begin[0] @ model.coef_init_[0]
        assert cosine == pytest.approx(
            np.linalg.norm(begin) * np.linalg.norm(model.coef_init_), rel=1e-9
        )
    else:
        assert model.intercept_ == pytest.approx(model.dual_coef_.sum(), rel=1e-9)
    np.testing.assert_allclose(model.coef_, begin + model.dual_coef_ @ X, rtol=1e-9, atol=1e-9)
    assert (model.dual_coef_[:, weight == 0] == 0).all()
    if variant == "last" and not options:
        assert (model.dual_coef_ % np.maximum(weight, 1) == 0).all()  # whole steps


def test_watching_it_step_by_step_ends_where_the_fit_ends(random):
    X, y = separable(random)
    for order in ORDERS:
        model = Perceptron(order=order, tol=None, random_state=3).fit(X, y)
        steps = list(Perceptron(order=order, tol=None, random_state=3).steps(sp.csr_array(X), y))
        assert [step.number for step in steps] == list(range(model.n_updates_ + 1))
        np.testing.assert_allclose(steps[-1].coef, model.coef_[0], rtol=1e-12, atol=1e-12)
        for before, after in itertools.pairwise(steps):
            side = signs(y)[after.row]
            assert side * (X[after.row] @ before.coef + before.intercept) <= 1e-12
            np.testing.assert_allclose(after.coef - before.coef, side * X[after.row], atol=1e-12)


@pytest.mark.parametrize("kernel", [None, "linear"])
@pytest.mark.parametrize("variant", ["last", "averaged"])
def test_steps_by_a_schedule_from_any_start_with_weights(kernel, variant, random):
    """``w <- w + gamma_k s_i y_i x_i`` for the k-th update, by hand; with a kernel the same."""
    X = random.integers(-4, 5, size=(30, 2)).astype(float)
    y, s = signs(random.integers(0, 2, 30)), random.integers(1, 4, 30).astype(float)
    a, b = random.normal(size=30).round(1), 0.5  # the start: a combination of rows, and a bias
    w, k, visited = np.append(a @ X, b), 0, []
    alpha, mistakes = np.zeros(30), []
    Z = np.column_stack([X, np.ones(30)])
    for i in [*range(30), *range(30)]:
        if y[i] * (w @ Z[i]) <= 0:
            k += 1
            w = w + s[i] * y[i] * Z[i] / k
            alpha[i] += s[i] / k
            mistakes.append(np.count_nonzero(y * (Z @ w) <= 0))
        visited.append(w)
    expected = w if variant == "last" else np.mean(visited, axis=0)
    start = {"coef_init": [a @ X] if kernel is None else [a], "intercept_init": [b]}
    asked = []
    for eta0 in ("inverse", lambda k: asked.append(k) or 1.0 / k):
        model = Perceptron(order="cyclic", tol=None, max_iter=2, eta0=eta0, variant=variant)
        model.set_params(kernel=kernel)
        with warnings.catch_warnings(action="ignore"):
            model.fit(X, y, sample_weight=s, **start)
        np.testing.assert_allclose(model.decision_function(X), Z @ expected, atol=1e-9)
        assert model.n_updates_ == k
        with pytest.raises(ValueError, match="constant step"):
            model.mistake_bound(X, y, [1.0, 0.0])
    assert len(asked) <= 2 * 30  # a pass has no more updates than rows
    steps = list(model.steps(X, y, sample_weight=s, **start))
    assert [step.mistakes for step in steps[1:]] == mistakes
    np.testing.assert_allclose(steps[-1].dual, alpha, atol=1e-12)
    assert (steps[-1].coef is None) == (kernel is not None)
    sizes = {
        name: Perceptron(eta0=name, tol=None, max_iter=2, order="cyclic", kernel=kernel)
        for name in ("constant", "inverse_sqrt", 1.0)
    }
    with warnings.catch_warnings(action="ignore"):
        values = {name: model.fit(X, y).decision_function(X) for name, model in sizes.items()}
    np.testing.assert_array_equal(values["constant"], values[1.0])
    assert not np.allclose(values["inverse_sqrt"], values[1.0])


def test_a_kernel_goes_on_from_the_last_fit(random):
    X = random.integers(-4, 5, size=(40, 2)).astype(float)
    y = random.integers(0, 3, 40)
    with warnings.catch_warnings(action="ignore"):
        whole, halves = (
            Perceptron(kernel=Polynomial(2, coef0=1.0), order="cyclic", tol=None, max_iter=passes)
            for passes in (4, 2)
        )
        whole.fit(X, y)
        halves.set_params(warm_start=True).fit(X, y).fit(X, y)
    np.testing.assert_allclose(halves.decision_function(X), whole.decision_function(X), atol=1e-8)
    assert halves.coef_init_.shape == (3, 40)
    with pytest.raises(ValueError, match="weights to start from have shapes"):
        halves.fit(X[:30], y[:30])
    with pytest.raises(ValueError, match="start from zero"):
        halves.mistake_bound(X, y, np.zeros((3, 40)))


def test_walking_through_several_classes_and_kernels_ends_where_the_fit_ends():
    X, y = load_iris(return_X_y=True)
    for kernel in (None, RBF(1.0)):
        model = Perceptron(kernel=kernel, max_iter=30, random_state=2)
        walked = list(model.steps(X, y))
        model.fit(X, y)
        for k in range(3):
            own = [step for step in walked if step.machine == k]
            assert [step.number for step in own] == list(range(model.n_updates_[k] + 1))
            np.testing.assert_array_equal(own[-1].dual, np.abs(model.dual_coef_[k]))
            assert (model.dual_coef_[k] * np.where(y == k, 1, -1) >= 0).all()
            if kernel is None:
                np.testing.assert_array_equal(own[-1].coef, model.coef_[k])
    assert not hasattr(Perceptron(), "classes_")


@pytest.mark.parametrize("kernel", [None, "linear"])
@pytest.mark.parametrize("variant", ["last", "pocket", "averaged"])
@pytest.mark.parametrize("order", ORDERS)
def test_a_trace_has_every_update_and_changes_nothing(order, variant, kernel, random):
    X = random.integers(-5, 6, size=(60, 3)).astype(float)
    y = (X @ [1.0, -1.0, 2.0] + random.normal(size=60) > 0).astype(int)
    options = {"order": order, "variant": variant, "kernel": kernel, "tol": None, "max_iter": 5}
    trace, short = Trace(), Trace(limit=20)
    with warnings.catch_warnings(action="ignore"):
        plain = Perceptron(**options).fit(X, y)
        traced = Perceptron(callback=trace, **options).fit(X, y)
        Perceptron(callback=short, **options).fit(X, y)
    np.testing.assert_array_equal(traced.dual_coef_, plain.dual_coef_)
    np.testing.assert_array_equal(traced.intercept_, plain.intercept_)
    assert (traced.n_iter_, traced.status_) == (plain.n_iter_, plain.status_)
    (records,) = trace.records.values()
    assert [record.steps for record in records] == list(range(plain.n_updates_ + 1))
    for before, after in itertools.pairwise(records):
        (i,) = after.working_set
        moved = after.variables - before.variables
        side = signs(y)[i]
        if kernel is None:
            np.testing.assert_array_equal(moved, side * np.append(X[i], 1.0))
            values = X @ after.variables[:-1] + after.variables[-1]
        else:
            np.testing.assert_array_equal(np.flatnonzero(moved), [i])
            values = X @ X.T @ after.variables + after.variables.sum()
        assert after.violation == np.mean(signs(y) * values <= 0)
        assert after.objective == pytest.approx(np.maximum(-signs(y) * values, 0).mean())
    assert 4 <= len(short) <= 20
    assert short.records[0][-1].steps == plain.n_updates_
    if variant == "last":
        last = short.records[0][-1].variables
        fitted = np.append(plain.coef_, plain.intercept_) if kernel is None else None
        expected = plain.dual_coef_[0] if fitted is None else fitted
        np.testing.assert_array_equal(last, expected)


def test_a_trace_has_every_class_and_penalties_too(cancer):
    X, y = load_iris(return_X_y=True)
    trace = Trace(limit=50)
    model = Perceptron(callback=trace).fit(X, y)
    assert sorted(trace.records) == [0, 1, 2]
    for k, records in trace.records.items():
        assert len(records) <= 50
        assert records[-1].steps == model.n_updates_[k]
        np.testing.assert_array_equal(records[-1].variables[:-1], model.coef_[k])
    for penalty in ("l1", "l2"):
        options = {"penalty": penalty, "alpha": 1e-3}
        traced = Perceptron(callback=Trace(), **options).fit(*cancer)
        np.testing.assert_array_equal(traced.coef_, Perceptron(**options).fit(*cancer).coef_)


# -- data that cannot be separated ---------------------------------------------------------------


@pytest.mark.parametrize("kernel", [None, "linear"])
@pytest.mark.parametrize("order", ["cyclic", "misclassified"])
def test_a_state_that_recurs_is_reported(order, kernel):
    with pytest.warns(ConvergenceWarning, match="not separable: the weights are exactly"):
        model = Perceptron(order=order, tol=None, kernel=kernel).fit(*XOR)
    assert model.status_ == "recurring"
    assert not model.converged_
    # the proof: so many passes further on, the weights are the same
    length = model.cycle_length_
    with warnings.catch_warnings(action="ignore"):
        again = Perceptron(order=order, tol=None, kernel=kernel, max_iter=model.n_iter_ + length)
        values = again.fit(*XOR).decision_function(XOR[0])
    np.testing.assert_array_equal(values, model.decision_function(XOR[0]))


def test_the_stopping_rule_is_no_warning_and_the_certificate_counts_mistakes(random):
    """scikit-learn's stopping rule ends before the theorem's end, on separable data, too."""
    left = 0
    for _ in range(10):
        X, y = separable(random, n=100, gap=0.01)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model = Perceptron().fit(X, y)
        wrong = np.count_nonzero(signs(y) * model.decision_function(X) <= 0)
        assert model.certificate_.mistakes == wrong
        assert model.converged_ == (not wrong)
        if wrong:
            left += 1
            assert model.status_ == "no_improvement"
            assert f"{wrong} of 100" in str(model.certificate_)
            assert Perceptron(tol=None, max_iter=10**5).fit(X, y).converged_
    assert left > 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for options in ({}, {"variant": "pocket"}, {"early_stopping": True}, {"penalty": "l2"}):
            assert Perceptron(**options).fit(*XOR_MANY).status_ == "no_improvement"


@pytest.mark.parametrize("kernel", [None, "linear"])
def test_mistakes_are_those_of_the_answer(kernel):
    """Which is not the last weights, but their mean, or the best of them."""
    random, unlike = np.random.default_rng(0), 0
    for _ in range(20):
        X, noise = random.normal(size=(30, 2)), random.normal(size=30)
        for variant, labels in (("averaged", X @ [1, 2]), ("pocket", X @ [1, 2] + noise)):
            y = (labels > -0.3).astype(int)
            model = Perceptron(variant=variant, kernel=kernel, max_iter=40, tol=None)
            with warnings.catch_warnings(action="ignore"):
                certificate = model.fit(X, y).certificate_
            wrong = np.count_nonzero(signs(y) * model.decision_function(X) <= 0)
            assert certificate.mistakes == wrong
            if certificate.converged and wrong:
                unlike += 1
                assert f"not their mean, which is the answer: {wrong} are" in str(certificate)
    assert unlike > 2


def test_otherwise_max_iter_speaks_and_names_the_verdict():
    with pytest.warns(ConvergenceWarning, match="is_separable"):
        model = Perceptron(tol=None, max_iter=30).fit(*XOR)
    assert model.status_ == "max_iter"
    assert model.n_iter_ == 30


def test_pocket_and_average_are_steadier_than_the_last_weights(random):
    X = random.normal(size=(2000, 10))
    y = X @ random.normal(size=10) + random.normal(size=2000) > 0
    fits = {
        variant: Perceptron(variant=variant, random_state=1).fit(X[:1000], y[:1000])
        for variant in ("last", "pocket", "averaged")
    }
    training = {name: model.score(X[:1000], y[:1000]) for name, model in fits.items()}
    assert training["pocket"] >= training["last"]
    test = {name: model.score(X[1000:], y[1000:]) for name, model in fits.items()}
    assert test["averaged"] > test["last"] + 0.02
    assert test["pocket"] > test["last"] + 0.02


def test_the_average_is_that_of_the_weights_after_every_row(random):
    X = random.integers(-3, 4, size=(25, 2)).astype(float)
    y = signs(random.integers(0, 2, 25))
    model = Perceptron(variant="averaged", order="cyclic", tol=None, max_iter=2)
    with warnings.catch_warnings(action="ignore"):
        model.fit(X, y)
    w, visited = np.zeros(3), []
    for i in [*range(25), *range(25)]:
        x = np.append(X[i], 1.0)
        w = w + y[i] * x * (y[i] * (w @ x) <= 0)
        visited.append(w)
    mean = np.mean(visited, axis=0)
    np.testing.assert_allclose([*model.coef_[0], *model.intercept_], mean, atol=1e-12)


# -- scikit-learn's manners ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"eta0": 0.1, "fit_intercept": False},
        {"penalty": "l2", "alpha": 1e-3},
        {"penalty": "l1", "alpha": 1e-3},
        {"penalty": "elasticnet", "alpha": 1e-2, "l1_ratio": 0.5},
    ],
)
def test_agrees_with_scikit_learn_in_the_given_order(options, cancer):
    X, y = cancer
    given = {"shuffle": False, "max_iter": 7, "tol": None, **options}
    reference = Reference(**given).fit(X, y)
    for data in (X, sp.csr_matrix(X)):
        with pytest.warns(ConvergenceWarning):
            model = Perceptron(**given).fit(data, y)
        np.testing.assert_allclose(model.coef_, reference.coef_, atol=1e-10)
        np.testing.assert_allclose(model.intercept_, reference.intercept_, atol=1e-10)
    if "penalty" not in options:  # with the stopping rule, too
        reference = Reference(**{**given, "tol": 1e-3, "max_iter": 1000}).fit(X, y)
        model = Perceptron(**{**given, "tol": 1e-3, "max_iter": 1000}).fit(X, y)
        assert model.n_iter_ == reference.n_iter_
        assert model.status_ == "no_improvement"
        np.testing.assert_allclose(model.coef_, reference.coef_, atol=1e-10)


def test_early_stopping_learns_nothing_from_the_rows_held_out(cancer):
    X, y = cancer
    model = Perceptron(early_stopping=True, validation_fraction=0.3).fit(X, y)
    assert model.status_ == "no_improvement"
    assert np.count_nonzero(model.dual_coef_) < 0.7 * len(y)
    assert model.score(X, y) > 0.9


def test_warm_start_and_parts_go_on_from_the_weights_there(cancer):
    X, y = cancer
    whole = Perceptron(order="cyclic", tol=None, max_iter=4)
    halves = Perceptron(order="cyclic", tol=None, max_iter=2, warm_start=True)
    parts = Perceptron(order="cyclic")
    with warnings.catch_warnings(action="ignore"):
        whole.fit(X, y)
        halves.fit(X, y).fit(X, y)
    for _ in range(4):
        for rows in (slice(0, 300), slice(300, None)):
            parts.partial_fit(X[rows], y[rows], classes=[0, 1])
    np.testing.assert_allclose(halves.coef_, whole.coef_, atol=1e-10)
    np.testing.assert_allclose(parts.coef_, whole.coef_, atol=1e-10)


def test_parts_weigh_their_classes(cancer):
    X, y = cancer
    factor = {0: 1.0, 1: 3.0}
    parts = Perceptron(order="cyclic", class_weight=factor).partial_fit(X, y, classes=[0, 1])
    rows = Perceptron(order="cyclic")
    rows.partial_fit(X, y, classes=[0, 1], sample_weight=np.where(y == 1, 3.0, 1.0))
    plain = Perceptron(order="cyclic").partial_fit(X, y, classes=[0, 1])
    np.testing.assert_allclose(parts.coef_, rows.coef_, rtol=1e-12)
    assert not np.allclose(parts.coef_, plain.coef_, rtol=0.01)


def test_a_callback_stops_the_fit_with_a_usable_model(cancer):
    X, y = cancer
    told = []
    X = np.tile(X, (100, 1))

    def stop(progress):
        if progress.steps:
            told.append(progress)
        return progress.steps > 0

    with pytest.warns(ConvergenceWarning, match="Ctrl-C or by a callback"):
        model = Perceptron(tol=None, max_iter=10**6, callback=stop).fit(X, np.tile(y, 100))
    assert model.status_ == "interrupted"
    assert len(told) == 1
    assert "updates" in str(told[0])
    assert model.score(X[:569], y) > 0.9
    assert str(told[0]).startswith("pass ")
    with pytest.warns(ConvergenceWarning, match="time_limit"):
        limited = Perceptron(tol=None, max_iter=10**6, time_limit=0.05).fit(X, np.tile(y, 100))
    assert limited.status_ == "time_limit"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"order": "cyclic", "shuffle": True}, "contradict"),
        ({"penalty": "l2", "variant": "averaged"}, "cannot be had"),
        ({"penalty": "l2", "alpha": 1.0}, "shrink the weights to nothing"),
        ({"cache_size": 100}, "kernel is None"),
        ({"kernel": "rbf", "init": "random"}, "no random start"),
        ({"eta0": "inverse", "penalty": "l2"}, "make eta0 a number"),
        ({"eta0": lambda k: -1.0}, "size of step 1 is -1"),
    ],
)
def test_what_cannot_be_is_refused(options, words):
    with pytest.raises(ValueError, match=words):
        Perceptron(**options).fit(*XOR)


def test_weights_beyond_float64_are_refused():
    with pytest.raises(ValueError, match="overflow"):
        Perceptron(eta0=1e10).fit([[1e300], [1.0]], [0, 1])


# -- kernels -------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("variant", ["last", "pocket", "averaged"])
def test_with_the_linear_kernel_it_is_the_perceptron(order, variant, random):
    X = random.integers(-5, 6, size=(80, 3)).astype(float)
    y = X @ [1.0, -1.0, 2.0] + random.normal(size=80) > 0
    options = {"order": order, "variant": variant, "max_iter": 20, "tol": None}
    with warnings.catch_warnings(action="ignore"):
        plain = Perceptron(**options).fit(X, y)
        kernel = Perceptron(kernel="linear", **options).fit(sp.csr_matrix(X), y)
        tight = Perceptron(kernel="linear", cache_size=1e-3, **options).fit(X, y)
    for model in (kernel, tight):
        np.testing.assert_array_equal(model.dual_coef_, plain.dual_coef_)
        np.testing.assert_allclose(model.decision_function(X), plain.decision_function(X))
    used = np.flatnonzero(plain.dual_coef_[0])
    np.testing.assert_array_equal(kernel.support_, used)


def test_a_kernel_separates_what_a_plane_cannot_and_obeys_its_bound():
    X, y = XOR
    model = Perceptron(kernel=Polynomial(degree=2, coef0=1.0), tol=None).fit(X, y)
    assert model.converged_
    assert model.score(X, y) == 1.0
    other = Perceptron(kernel=RBF(gamma=1.0) + Linear(), tol=None).fit(X, y)
    for machine in (model, other):
        coefficients = machine.dual_coef_
        bound = machine.mistake_bound(X, y, coefficients, machine.intercept_)
        K = machine.kernel_(X)
        w2 = coefficients[0] @ K @ coefficients[0] + machine.intercept_[0] ** 2
        gamma = (signs(y) * machine.decision_function(X)).min()
        assert bound == np.floor((K.diagonal().max() + 1) * w2 / gamma**2 * (1 + 1e-9))
        assert machine.n_updates_ <= bound


def test_kernels_of_objects_and_several_classes():
    words = ["margin", "marginal", "kernel", "kernels", "slack", "slacks"]
    y = ["m", "m", "k", "k", "s", "s"]

    def common(A, B):
        return [[float(len(set(a) & set(b))) for b in B] for a in A]

    model = Perceptron(kernel=common, tol=None).fit(words, y)
    assert model.predict(words).tolist() == y
    assert model.dual_coef_.shape == (3, 6)


# -- the linear programme ------------------------------------------------------------------------


def prove(X, y, verdict, fit_intercept=True):
    """Check a verdict's proof from the data alone."""
    side = signs(np.asarray(y))
    if verdict:
        margins = side * (X @ verdict.coef + verdict.intercept)
        assert margins.min() > 0
        norm = np.linalg.norm(verdict.coef)
        assert verdict.margin == pytest.approx(margins.min() / norm, rel=1e-6)
        assert verdict.certificate is None
    else:
        weight = verdict.certificate
        assert (weight >= 0).all()
        assert verdict.coef is None
        assert weight.sum() == pytest.approx(2.0 if fit_intercept else 1.0)
        if fit_intercept:
            assert weight @ side == pytest.approx(0.0, abs=1e-12)
        size = np.abs(X).max(axis=0) if not sp.issparse(X) else abs(X).max(axis=0).toarray()
        assert (np.abs((weight * side) @ X) <= 1e-12 * np.maximum(size, 1e-300)).all()


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("shape", [(30, 3), (6, 20)])
@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
def test_every_verdict_carries_its_proof(fit_intercept, shape, container, random):
    verdicts = []
    for _ in range(10):
        X = random.integers(-3, 4, size=shape).astype(float)
        y = (X @ random.normal(size=shape[1]) > 0.5 * fit_intercept).astype(int)
        if random.random() < 0.5:
            X[1], y[1] = X[0], 1 - y[0]  # a point in both classes
        if len(np.unique(y)) < 2:
            continue
        X *= 10.0 ** random.integers(-8, 9, size=shape[1])
        X = container(X)
        verdict = is_separable(X, y, fit_intercept=fit_intercept)
        prove(X, y, verdict, fit_intercept)
        verdicts.append(bool(verdict))
    assert {True, False} == set(verdicts)


def test_degenerate_data():
    assert is_separable([[0.0], [1.0]], ["a", "b"])  # a point each
    twice = is_separable([[5.0, 1.0], [5.0, 1.0]], [0, 1])
    assert not twice
    assert twice.certificate.tolist() == [1.0, 1.0]
    line = [[0.0], [1.0], [2.0], [3.0]], [0, 1, 0, 1]
    assert not is_separable(*line)
    assert is_separable(*line, sample_weight=[1, 0, 3, 1])
    for gap, verdict in ((1e-9, True), (0.0, False)):
        X = np.array([[0.0], [1.0], [1.0 + gap], [2.0]])
        assert bool(is_separable(X, [0, 0, 1, 1])) is verdict
        assert bool(is_separable(1e3 + 1e6 * X, [0, 0, 1, 1])) is verdict
    with pytest.raises(RuntimeError, match="beyond float64"):
        is_separable(1e12 + np.spacing(1e12) * np.arange(3.0)[:, None], [0, 1, 1])
    with pytest.raises(ValueError, match="each against the rest"):
        is_separable([[0.0], [1.0], [2.0]], [0, 1, 2])


def test_the_verdict_agrees_with_the_perceptron(random):
    for k in range(8):
        X, y = make_blobs(40, centers=2, cluster_std=1.0 + k, random_state=k)
        with warnings.catch_warnings(action="ignore"):
            model = Perceptron(tol=None, max_iter=3000).fit(X, y)
        if model.converged_:
            assert is_separable(X, y)
        if not is_separable(X, y):
            assert not model.converged_


def test_ctrl_c_ends_a_pass_whose_kernel_rows_are_missing(monkeypatch, heard):
    """A stop between two blocks of rows left the pass where it was, for ever."""
    require = KernelState._require_some
    times = iter([True])

    def press(self, coming):
        if next(times, False):
            signal.raise_signal(signal.SIGINT)
        else:
            require(self, coming)

    monkeypatch.setattr(KernelState, "_require_some", press)
    X, y = load_iris(return_X_y=True)
    with pytest.raises(KeyboardInterrupt):
        Perceptron(kernel="rbf", order="cyclic").fit(X, y)
    assert next(times, None) is None


@pytest.mark.parametrize("kernel", [-0.5 * RBF(0.1), lambda A, B: -A @ B.T])
def test_a_kernel_without_a_norm_is_warned_of(kernel, cancer):
    with pytest.warns(UserWarning, match=r"is indefinite .* \|w\|\^2 is negative"):
        Perceptron(kernel=kernel).fit(*cancer)


@pytest.mark.parametrize("kernel", ["linear", lambda A, B: A @ B.T])
def test_a_kernel_with_a_norm_is_not_warned_of(kernel):
    with warnings.catch_warnings(action="error"):
        Perceptron(kernel=kernel).fit(*load_iris(return_X_y=True))
