"""Several classes by linear machines: every scheme, and all classes in one problem."""

import numpy as np
import pytest
from sklearn import svm
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning, FitFailedWarning
from sklearn.multiclass import OneVsOneClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.preprocessing import StandardScaler

from maxmargin import (
    SVC,
    C_path,
    GridSearchCV,
    LeastSquaresClassifier,
    LinearSVC,
    LogisticRegression,
    MCEClassifier,
    Perceptron,
    Trace,
)
from maxmargin.backends.cpu.linear import Design
from maxmargin.multiclass import (
    DAG,
    CrammerSinger,
    ErrorCorrectingCode,
    OneVsOne,
    OneVsRest,
    SchemeClassifier,
    WestonWatkins,
)
from maxmargin.risk import DirectRisk
from maxmargin.solution import Status
from maxmargin.solvers import LBFGS, ClassDescent, DualDescent, Newton, Watch, select_solver

FORMS = ["crammer_singer", "weston_watkins"]
SCHEMES = ["ovo", "dag", "ecoc", OneVsRest, OneVsOne(3, balanced=True), ErrorCorrectingCode(3)]


def data(load):
    X, y = load(return_X_y=True)
    return StandardScaler().fit_transform(X), y


def objective(model, X, y, cost, form, scaling=1.0):
    values = X @ model.coef_.T + model.intercept_
    margins = np.maximum(0.0, 1.0 + values - values[np.arange(len(y)), y][:, None])
    margins[np.arange(len(y)), y] = 0.0
    losses = margins.max(axis=1) if form == "crammer_singer" else margins.sum(axis=1)
    return (
        0.5 * np.sum(model.coef_**2)
        + 0.5 * np.sum(model.intercept_**2) / scaling**2
        + cost @ losses
    )


# -- machines for two, after a scheme ------------------------------------------------------------


@pytest.mark.parametrize("multiclass", SCHEMES)
@pytest.mark.parametrize(
    "machine",
    [
        LinearSVC(tol=1e-6),
        LinearSVC(loss="hinge", solver="dual_descent", random_state=0, max_iter=-1),
        LinearSVC(norm_bound=1.0),
        LogisticRegression(tol=1e-8),
        LogisticRegression(solver="liblinear", dual=True, random_state=0),
        Perceptron(variant="averaged"),
        Perceptron(kernel="rbf"),
    ],
)
def test_every_scheme_is_its_machines_for_two(machine, multiclass):
    X, y = data(load_wine)
    model = clone(machine).set_params(multiclass=multiclass).fit(X, np.array(["c", "a", "b"])[y])
    y = np.searchsorted(["a", "b", "c"], np.array(["c", "a", "b"])[y])
    scheme = model.scheme_
    values = model._values(X)
    assert values.shape == (len(y), len(scheme.code)) == (len(y), len(model.intercept_))
    assert len(model.certificate_.parts) == len(scheme.code)
    weights = [scheme.weigh(codes[y], (codes[y] != 0) * 1.0) for codes in scheme.code]
    for k, (codes, weight) in enumerate(zip(scheme.code, weights, strict=True)):
        rows = codes[y] != 0
        if isinstance(machine, Perceptron):  # its order of rows is drawn for all machines
            assert np.mean((values[rows, k] > 0) == (codes[y[rows]] > 0)) > 0.97
            continue
        single = clone(machine).fit(X[rows], codes[y[rows]] > 0, sample_weight=weight[rows])
        mine, theirs = model.certificate_.parts[k], single.certificate_
        assert mine.primal == pytest.approx(theirs.primal, rel=1e-3)
    np.testing.assert_array_equal(model.predict(X), model.classes_[scheme.decode(values)])
    scores = model.decision_function(X)
    assert scores.shape == (len(y), 3)
    np.testing.assert_array_equal(scores.argmax(axis=1), scheme.decode(values))
    assert np.mean(scheme.decode(values) == y) > 0.95


def test_pairs_are_scikit_learns_and_their_graph_has_the_same_machines():
    X, y = data(load_iris)
    model = LinearSVC(multiclass="ovo", intercept_scaling=1.0, tol=1e-8).fit(X, y)
    theirs = OneVsOneClassifier(svm.LinearSVC(tol=1e-8, max_iter=10**5)).fit(X, y)
    signs = np.concatenate([-e.coef_ for e in theirs.estimators_])  # positive for the second
    np.testing.assert_allclose(model.coef_, signs, atol=1e-3)
    graph = LinearSVC(multiclass=DAG, intercept_scaling=1.0, tol=1e-8).fit(X, y)
    np.testing.assert_array_equal(graph.coef_, model.coef_)
    np.testing.assert_array_equal(graph.predict(X), DAG(3).decode(model._values(X)))


def test_probabilities_of_schemes():
    X, y = data(load_wine)
    for multiclass in ("ovr", "ovo", "ecoc"):
        model = LogisticRegression(multiclass=multiclass).fit(X, y)
        proba = model.predict_proba(X)
        np.testing.assert_allclose(proba.sum(axis=1), 1.0)
        assert np.mean(proba.argmax(axis=1) == y) > 0.98
        np.testing.assert_allclose(np.exp(model.predict_log_proba(X)), proba)
    of_classes = LogisticRegression(multiclass="ovr").fit(X, y)
    each = [LogisticRegression().fit(X, y == k).predict_proba(X)[:, 1] for k in range(3)]
    scaled = np.column_stack(each) / np.sum(each, axis=0)[:, None]
    np.testing.assert_allclose(of_classes.predict_proba(X), scaled, atol=1e-3)
    softmax = LogisticRegression().fit(X, y)
    assert len(softmax.certificate_.parts) == 0
    np.testing.assert_array_equal(
        LogisticRegression(multiclass="softmax").fit(X, y).coef_, softmax.coef_
    )


def test_class_weights_count_on_rows_but_for_one_vs_rest():
    X, y = data(load_iris)
    weights = {0: 1.0, 1: 20.0, 2: 3.0}
    pairs = LinearSVC(multiclass="ovo", class_weight=weights, tol=1e-7).fit(X, y)
    rows = y != 0  # the last pair, of which neither factor is one
    single = LinearSVC(tol=1e-7).fit(
        X[rows], y[rows] == 1, sample_weight=np.where(y[rows] == 1, 20.0, 3.0)
    )
    np.testing.assert_allclose(pairs.coef_[2], single.coef_[0], atol=1e-3)
    for on, factor in (("positive", 1.0), ("rows", 20.0)):
        rest = LinearSVC(class_weight=weights, class_weight_on=on, tol=1e-7).fit(X, y)
        first = LinearSVC(tol=1e-7).fit(
            X, y == 0, sample_weight=np.choose(y, [1.0, factor, 3.0 if on == "rows" else 1.0])
        )
        np.testing.assert_allclose(rest.coef_[0], first.coef_[0], atol=1e-3)


@pytest.mark.parametrize("multiclass", ["ovo", "dag", "ecoc"])
def test_streams_of_schemes(multiclass):
    X, y = data(load_iris)
    order = np.random.default_rng(0).permutation(len(y))
    lam = LinearSVC(multiclass=multiclass, lam=1e-3)
    softer = LogisticRegression(multiclass=multiclass, lam=1e-3)
    for model in (lam, softer, Perceptron(multiclass=multiclass)):
        for rows in [*np.array_split(order, 7), np.flatnonzero(y == 0)] * 8:  # also of one class
            model.partial_fit(X[rows], y[rows], classes=[0, 1, 2])
        assert model.score(X, y) > 0.85
        with pytest.raises(ValueError, match="clone the machine"):
            model.set_params(multiclass="ovr").partial_fit(X, y)
    assert lam.t_ == 8 * 200


def test_perceptrons_of_pairs_keep_their_promises():
    rng = np.random.default_rng(0)
    y = np.arange(90) % 3
    X = rng.normal(size=(90, 2)) + 8.0 * np.array([[0, 0], [1, 0], [0, 1]])[y]
    model = Perceptron(multiclass="ovo", tol=None).fit(X, y)
    assert model.status_ == "separated"
    assert not model.dual_coef_[model.scheme_.code[:, y] == 0].any()  # of rows not seen
    best = [SVC(kernel="linear", C=1e6).fit(X[s != 0], s[s != 0]) for s in model._signs(y)]
    coef = np.concatenate([single.coef_ for single in best])
    bound = model.mistake_bound(X, y, coef, np.concatenate([s.intercept_ for s in best]))
    assert (model.n_updates_ <= bound).all()
    assert np.isfinite(bound).all()
    stopped = Perceptron(multiclass="ovo", early_stopping=True, penalty="l2").fit(X, y)
    assert stopped.n_iter_ < 20  # held-out rows that a machine does not see are no mistakes
    assert stopped.score(X, y) > 0.95


# -- all classes in one problem ------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("bias", [False, True])
def test_the_kernel_machine_has_the_same_problem(form, bias):
    X, y = data(load_wine)
    options = {"multiclass": form, "C": 0.1, "fit_intercept": bias, "class_weight": "balanced"}
    mine = LinearSVC(tol=1e-8, max_iter=-1, **options).fit(X, y)
    kernel = SVC(kernel="linear", tol=1e-7, **options).fit(X, y)
    assert mine.certificate_.primal == pytest.approx(kernel.certificate_.primal, rel=1e-6)
    np.testing.assert_allclose(mine.decision_function(X), kernel.decision_function(X), atol=1e-3)


@pytest.mark.filterwarnings("ignore:Liblinear failed to converge")  # of scikit-learn 1.6
@pytest.mark.parametrize("C", [0.01, 1.0])
def test_liblinear_has_the_same_problem(C):
    X, y = data(load_digits)
    cost = np.full(len(y), C)
    options = {"C": C, "multi_class": "crammer_singer", "random_state": 0}
    mine = LinearSVC(tol=1e-5, max_iter=-1, **options).fit(X, y)
    theirs = svm.LinearSVC(tol=1e-5, max_iter=10**5, **options).fit(X, y)
    reached = objective(theirs, X, y, cost, "crammer_singer")
    assert mine.certificate_.dual <= reached
    assert mine.certificate_.primal <= reached * (1 + 1e-4)
    again = clone(mine).set_params(multi_class="ovr", multiclass="crammer_singer").fit(X, y)
    np.testing.assert_array_equal(again.coef_, mine.coef_)


def test_manners_of_a_direct_form():
    X, y = data(load_wine)
    model = LinearSVC(multiclass="crammer_singer", random_state=0).fit(X, y)
    assert model.solver_ == "class_descent"
    assert str(model.certificate_).startswith("converged: optimal to a relative gap of")
    lam = LinearSVC(multiclass=CrammerSinger(3), lam=0.5 / len(y), random_state=0).fit(X, y)
    np.testing.assert_allclose(lam.coef_, model.coef_, rtol=1e-9)
    trace = Trace()
    clone(model).set_params(callback=trace, multiclass=WestonWatkins).fit(X, y)
    assert trace.records[0][-1].violation <= 1e-4
    assert trace.records[0][0].variables.shape == (3, X.shape[1] + 1)
    stop = clone(model).set_params(callback=lambda progress: True, C=1e3, tol=1e-13, max_iter=-1)
    with pytest.warns(UserWarning, match="by a callback"):
        stop.fit(*data(load_digits))
    warm = LinearSVC(multiclass="weston_watkins", warm_start=True, C=10, tol=1e-7, max_iter=-1)
    passes = warm.fit(X, y).n_iter_
    assert warm.fit(X, y).n_iter_ < 0.2 * passes
    switched = warm.set_params(multiclass="crammer_singer").fit(X, y)  # brought into the other box
    assert switched.certificate_.converged
    bounded = LinearSVC(multiclass="crammer_singer", norm_bound=0.5, tol=1e-5, max_iter=-1)
    bounded.fit(X, y)
    norm = np.sqrt(np.sum(bounded.coef_**2) + np.sum(bounded.intercept_**2))
    assert norm == pytest.approx(0.5, rel=2e-3)


def test_rows_without_entries_and_classes_far_apart():
    X, y = data(load_iris)
    X[::10] = 0.0
    model = LinearSVC(multiclass="crammer_singer", fit_intercept=False, max_iter=-1).fit(X, y)
    assert model.certificate_.converged
    assert np.isfinite(model.coef_).all()
    far = LinearSVC(multiclass="weston_watkins", tol=1e-6, max_iter=-1).fit(
        1e4 * np.eye(3), [0, 1, 2]
    )
    assert far.certificate_.converged


@pytest.mark.parametrize(
    "machine",
    [LinearSVC(multiclass=form) for form in FORMS]
    + [LinearSVC(multiclass="dag"), LogisticRegression(multiclass=OneVsOne)],
)
def test_paths_and_searches(machine):
    X, y = data(load_iris)
    for fitted in C_path(machine, X, y, [1.0, 0.01]):
        alone = clone(machine).set_params(C=fitted.C).fit(X, y)
        parts = [each.certificate_.parts or [each.certificate_] for each in (fitted, alone)]
        for mine, theirs in zip(*parts, strict=True):
            assert mine.dual <= theirs.primal * (1.0 + 1e-12)  # sums of some hundred numbers
            assert theirs.dual <= mine.primal * (1.0 + 1e-12)
    search = GridSearchCV(machine, {"C": [0.01, 0.1, 1.0]}, cv=3).fit(X, y)
    assert search.sharing_.shared.all()
    assert "each C from zero" in str(search.sharing_)  # of few rows
    assert search.best_score_ > 0.85


# -- what is refused -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("machine", "message"),
    [
        (LogisticRegression(multiclass="crammer_singer"), "LinearSVC"),
        (Perceptron(multiclass=WestonWatkins), "LinearSVC"),
        (LeastSquaresClassifier(multiclass="weston_watkins"), "LinearSVC"),
        (LeastSquaresClassifier(multiclass="ovo"), "SchemeClassifier"),
        (LeastSquaresClassifier(multiclass=lambda K: OneVsRest(K, balanced=True)), "share one"),
        (LinearSVC(multiclass="crammer_singer", penalty="l1"), "penalty='l1'"),
        (LinearSVC(multiclass="crammer_singer", dual=False), "dual=False"),
        (LinearSVC(multiclass="crammer_singer", solver="newton"), "'class_descent'"),
        (LinearSVC(solver="class_descent"), "several classes in one problem"),
        (LinearSVC(multiclass=OneVsOne(4)), "y has 3 classes"),
        (
            LinearSVC(multiclass=lambda K: ErrorCorrectingCode(K, [[1, 1], [1, 1], [-1, 1]])),
            "0 and 1",
        ),
        (LogisticRegression(solver="liblinear"), "multiclass classification"),
        (SchemeClassifier(GaussianNB(), multiclass="weston_watkins"), "machine of its own"),
    ],
)
def test_what_does_not_go_together(machine, message):
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match=message):
        machine.fit(X, y)


@pytest.mark.filterwarnings("ignore:.* still on the wrong side")
@pytest.mark.parametrize("make", [LinearSVC, LogisticRegression, Perceptron])
@pytest.mark.parametrize("multiclass", ["ovo", "ecoc", "crammer_singer"])
def test_one_and_two_classes(make, multiclass):
    X, y = data(load_iris)
    two = make(multiclass=multiclass).fit(X, y == 1)  # every scheme is the one machine
    np.testing.assert_array_equal(two.coef_, make().fit(X, y == 1).coef_)
    np.testing.assert_array_equal(two.predict(X), two.decision_function(X) > 0)
    with pytest.raises(ValueError, match="greater than one"):
        make(multiclass=multiclass).fit(X, np.zeros(len(y)))
    if make is LinearSVC:
        with pytest.raises(ValueError, match="use fit"):
            LinearSVC(multiclass="crammer_singer", lam=0.1).partial_fit(X, y, classes=[0, 1, 2])


def test_a_class_missing_in_a_fold():
    X, y = data(load_iris)
    folds = [(np.flatnonzero(y != 2), np.flatnonzero(y == 1)), (np.arange(150), np.arange(150))]
    grid = {"C": [0.1, 1.0], "multiclass": ["ovo", "crammer_singer", OneVsOne(3)]}
    with (
        pytest.warns(FitFailedWarning, match="y has 2 classes"),
        pytest.warns(UserWarning, match="non-finite"),
    ):
        search = GridSearchCV(LinearSVC(), grid, cv=folds, refit=False).fit(X, y)
    scores = search.cv_results_["split0_test_score"].reshape(2, 3)
    assert np.isnan(scores[:, 2]).all()  # a scheme for three classes says why
    assert (scores[:, :2] > 0.9).all()


@pytest.mark.parametrize("multiclass", ["ovo", "ovr", "dag", "ecoc"])
def test_the_wrapper_takes_every_scheme_of_machines_for_two(multiclass):
    X, y = data(load_wine)
    for inner in (GaussianNB(), MCEClassifier(n_restarts=0), LeastSquaresClassifier()):
        model = SchemeClassifier(inner, multiclass=multiclass).fit(X, y)
        assert model.score(X, y) > 0.95


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("C", [1e-5, 1e-6, 1e-8, 1e-10, 1e-20])
def test_small_costs_converge_whatever_the_seed(form, C):
    digits = tuple(part[:300] for part in load_digits(return_X_y=True))
    for X, y in (load_iris(return_X_y=True), data(load_wine), digits):
        for seed in range(3):
            found = LinearSVC(C=C, multiclass=form, random_state=seed).fit(X, y).certificate_
            assert found.converged
            assert found.gap >= -1e-12 * found.primal  # no dual point out of its set


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("form", FORMS)
def test_large_scales_end_with_a_certificate(form):
    X, y = load_iris(return_X_y=True)
    line = np.arange(4.0)[:, None] * 1e7, np.array([0, 1, 2, 2])
    for rows, classes in (line, (X * 1e7, y), (X * 1e10, y), (X + 1e7, y)):
        found = LinearSVC(multiclass=form, random_state=0, max_iter=50).fit(rows, classes)
        certificate = found.certificate_
        assert certificate.converged or certificate.status in ("max_iter", "stalled")
        assert 0.0 < certificate.dual <= certificate.primal
        cost = np.ones(len(classes))
        assert certificate.primal == pytest.approx(
            objective(found, rows, classes, cost, form), rel=1e-3
        )


def test_slopes_that_do_not_add_to_zero_have_no_dual_value():
    risk = DirectRisk(Design(np.eye(3)), np.arange(3), 3, np.ones(3), summed=True)
    s = risk.slopes_at(np.zeros((3, 3)))
    assert risk.conjugates(s, risk.beta(s)) == -6.0
    s[0, 0] = 0.0
    assert risk.conjugates(s, risk.beta(s)) == np.inf


def test_values_and_classes_agree_where_votes_do_not_tie():
    g = np.random.default_rng(13)
    model = LinearSVC(multiclass="ovo").fit(g.normal(size=(60, 2)), g.integers(0, 3, 60))
    points = g.normal(size=(5000, 2))
    tied = model.scheme_.ambiguous(model._values(points))
    largest = model.decision_function(points).argmax(axis=1)
    np.testing.assert_array_equal(model.predict(points)[~tied], largest[~tied])
    assert (model.predict(points)[tied] == 0).all()  # of three, each with a vote: the first
    assert (largest[tied] != 0).any()


def test_methods_say_what_they_take():
    X, y = data(load_iris)
    risk = DirectRisk(Design(X), y, 3, np.ones(150), summed=False)
    assert isinstance(select_solver(risk).method, ClassDescent)
    for method in (Newton(), DualDescent(), LBFGS()):
        with pytest.raises(ValueError, match="loss"):
            method.solve(risk, Watch())
    with pytest.raises(TypeError, match="kinks"):
        risk.model(np.zeros((150, 3)))
    codes = ErrorCorrectingCode(3)
    squares = LeastSquaresClassifier(multiclass=codes).fit(X, y)
    assert squares.coef_.shape == (len(codes.code), 4)
    assert squares.score(X, y) > 0.75


@pytest.mark.fast
@pytest.mark.parametrize(
    ("form", "shift", "scale", "options"),
    [
        ("weston_watkins", [1e8, 0.0], 1.0, {"C": 3e5, "intercept_scaling": 3.0}),
        ("crammer_singer", 0.0, [1e8, 1e-8, 1.0], {"C": 4e-4}),
    ],
)
def test_a_gap_that_hardly_falls_ends_as_stalled(form, shift, scale, options):
    # it fell by 1e-15 of itself every few looks, for ever
    g = np.random.default_rng(1)
    X = scale * g.normal(size=(7, np.size(shift) + np.size(scale) - 1)) + shift
    y, limits = [0, 2, 1, 1, 0, 2, 1], {"max_iter": -1, "tol": 1e-10, "time_limit": 10}
    model = LinearSVC(multiclass=form, random_state=0, **limits, **options)
    with pytest.warns(ConvergenceWarning, match="no step lowers the objective any more"):
        model.fit(X, y)
    certificate = model.certificate_
    assert certificate.status is Status.STALLED
    assert certificate.relative_gap > 0.9
    cost, scaling = np.full(7, options["C"]), options.get("intercept_scaling", np.inf)
    primal = objective(model, X, np.array(y), cost, form, scaling)
    np.testing.assert_allclose(certificate.primal, primal, rtol=1e-6)
