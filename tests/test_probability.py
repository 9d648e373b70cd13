"""Probabilities: what they are fitted to, what they promise, and that the folds cost little."""

import numpy as np
import pytest
from sklearn import model_selection
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.isotonic import IsotonicRegression
from sklearn.metrics import log_loss
from sklearn.preprocessing import StandardScaler

from maxmargin import SVC, Gram, GridSearchCV, LinearSVC, NuSVC, SVCSearchCV, duals
from maxmargin.backends import cpu
from maxmargin.kernels import RBF
from maxmargin.multiclass import ErrorCorrectingCode, OneVsRest
from maxmargin.solvers import Auto, Watch, solve_certified
from maxmargin.solvers.dual import left_out
from maxmargin.solvers.dual.left_out import solve_left_out
from maxmargin.svm import out_of_fold
from maxmargin.svm.out_of_fold import FOLDS, deal
from maxmargin.svm.probability import KINDS, Values, calibrated, consistent, platt

SPARSE = [[1, 1, 0], [-1, 0, 1], [0, -1, -1]]
SCHEMES = (
    "ovo",
    "dag",
    "ovr",
    OneVsRest(3, decoding="votes"),
    "ecoc",
    ErrorCorrectingCode(3, SPARSE, decoding="hamming"),
    "crammer_singer",
    "weston_watkins",
)


def data(load, rows=None):
    X, y = load(return_X_y=True)
    return StandardScaler().fit_transform(X)[:rows], y[:rows]


def noisy(n=240, classes=3, seed=0):
    """Classes that overlap, so that votes tie and sigmoids lean."""
    random = np.random.default_rng(seed)
    y = np.arange(n) % classes
    return random.normal(size=(n, 2)) + np.eye(classes, 2)[y] * 1.2, y


# -- what is promised --------------------------------------------------------------------------


@pytest.mark.parametrize("multiclass", SCHEMES, ids=str)
def test_every_scheme_has_every_kind_and_consistent_ones_follow_predict(multiclass):
    X, y = noisy()
    Z = np.vstack([X, np.zeros((1, 2)), np.random.default_rng(1).normal(size=(2000, 2)) * 3])
    prior = log_loss(y, np.full((len(y), 3), 1 / 3))
    for kind in (True, *KINDS):
        model = SVC(multiclass=multiclass, probability=kind, random_state=0).fit(X, y)
        p = model.predict_proba(Z)
        np.testing.assert_allclose(p.sum(axis=1), 1.0)
        assert (p > 0).all()
        far = model.predict_log_proba(1e6 * Z)
        assert np.isfinite(far).all()
        assert log_loss(y, p[: len(y)]) < 0.9 * prior
        if kind == "consistent":
            np.testing.assert_array_equal(model.classes_[p.argmax(axis=1)], model.predict(Z))
            logs = model.predict_log_proba(Z)
            np.testing.assert_array_equal(logs.argmax(axis=1), p.argmax(axis=1))
            free = model.set_params(probability="temperature").fit(X, y).predict_proba(Z)
            behind = free.max(axis=1) - np.take_along_axis(free, p.argmax(axis=1)[:, None], 1)[:, 0]
            assert (np.abs(p - free).max(axis=1) <= behind + 1e-9).all()


@pytest.mark.parametrize(
    "options",
    [{"break_ties": True}, {"class_weight": {0: 5.0}}, {"lam": 0.01}, {"fit_intercept": False}],
)
def test_consistent_whatever_predict_does(options):
    X, y = noisy()
    model = SVC(probability="consistent", random_state=0, **options).fit(X, y)
    Z = 2 * np.random.default_rng(1).normal(size=(3000, 2))
    np.testing.assert_array_equal(model.predict_proba(Z).argmax(axis=1), model.predict(Z))
    two = clone(model).set_params(class_weight=None).fit(X[y < 2], y[y < 2])
    np.testing.assert_array_equal(two.predict_proba(Z).argmax(axis=1), two.predict(Z))


def test_consistent_where_few_machines_are_asked(monkeypatch):
    X, y = data(load_digits, 300)
    model = SVC(multiclass="dag", probability="consistent", random_state=0).fit(X, y)
    monkeypatch.setattr("maxmargin.svm.classification._ASKED", 0)
    np.testing.assert_array_equal(model.predict_proba(X).argmax(axis=1), model.predict(X))


def test_the_nearest_probabilities():
    """Least squares over the simplex, under the order that is asked for: by a solver for it."""
    random = np.random.default_rng(0)
    p, index = random.dirichlet(np.ones(5), size=300), random.integers(5, size=300)
    q = consistent(p, index)
    np.testing.assert_array_equal(q.argmax(axis=1), index)
    np.testing.assert_allclose(q.sum(axis=1), 1.0)
    fine = p.argmax(axis=1) == index
    np.testing.assert_array_equal(q[fine], p[fine])
    # KKT: those that changed meet at one value, gained and lost the same, and no other is above
    for before, after, c in zip(p[~fine], q[~fine], index[~fine], strict=True):
        moved = np.abs(after - before) > 1e-9
        assert moved[c]
        np.testing.assert_allclose(after[moved], before[moved].mean(), rtol=1e-9)
        assert (before[moved & (np.arange(5) != c)] > after[c]).all()
        assert (after <= after[c]).all()
    ties = consistent(np.full((1, 4), 0.25), np.array([2]))
    assert ties.argmax() == 2


# -- calibrations ------------------------------------------------------------------------------


def test_sigmoids_isotonic_steps_and_scales_are_optimal(random):
    value = random.normal(size=400)
    side = np.where(random.uniform(size=400) < 1 / (1 + np.exp(-2 * value - 0.5)), 1, -1)
    weight = random.integers(1, 4, size=400).astype(float)
    repeated = np.repeat(np.arange(400), weight.astype(int))
    np.testing.assert_allclose(
        platt(value, side, weight), platt(value[repeated], side[repeated]), rtol=1e-6
    )
    scheme = OneVsRest(2)
    known, y = [Values(value, side, weight)], (side > 0).astype(int)
    rising = calibrated("isotonic", scheme, known, y)
    plus, minus = weight[side > 0].sum(), weight[side < 0].sum()
    target = np.where(side > 0, (plus + 1) / (plus + 2), 1 / (minus + 2))
    theirs = IsotonicRegression(out_of_bounds="clip").fit(value, target, sample_weight=weight)
    at = np.linspace(-4, 4, 300)
    np.testing.assert_allclose(
        rising.probabilities(at[:, None])[:, 1], theirs.predict(at), atol=1e-6
    )
    tempered = calibrated("temperature", scheme, known, y)
    scale, odds = tempered.scale, tempered.probabilities(at[:, None])
    np.testing.assert_allclose(np.log(odds[:, 1] / odds[:, 0]), scale * at, atol=1e-9)

    def loss(s):
        return weight @ np.logaddexp(0, -s * side * value)

    assert loss(scale) < min(loss(0.9 * scale), loss(1.1 * scale))
    three = OneVsRest(3)
    values = random.normal(size=(400, 3))
    own = (values + 0.7 * random.gumbel(size=(400, 3))).argmax(axis=1)
    codes = three.code[:, own]
    weight = np.where(own == values.argmax(axis=1), 1.0, 3.0)
    known = [Values(v, c, weight) for v, c in zip(values.T, codes, strict=True)]
    found = calibrated("temperature", three, known, own)

    def cross_entropy(s):
        return weight @ -np.log(three.tempered(values, s)[np.arange(400), own])

    least = cross_entropy(found.scale)
    assert least < min(cross_entropy(0.9 * found.scale), cross_entropy(1.1 * found.scale))


def test_weights_of_rows_count_in_the_calibration_and_those_of_classes_do_not():
    X, y = noisy(classes=2)
    heavy = np.where((np.arange(len(y)) < 60) & (y == 1), 30.0, 1.0)
    plain, weighed = (
        SVC(probability=True, random_state=0, kernel="linear", C=1e-4).fit(X, y, sample_weight=w)
        for w in (None, heavy)
    )
    by_class = SVC(
        probability=True, random_state=0, kernel="linear", C=1e-4, class_weight={1: heavy.mean()}
    )
    assert weighed.predict_proba(X)[:, 1].mean() > plain.predict_proba(X)[:, 1].mean() + 0.2
    assert by_class.fit(X, y).predict_proba(X)[:, 1].mean() == pytest.approx(0.5, abs=0.05)


def test_the_same_twice():
    X, y = data(load_wine)
    for kind in KINDS:
        model = SVC(probability=kind, random_state=0).fit(X, y)
        again = clone(model).fit(X, y)
        np.testing.assert_array_equal(model.predict_proba(X), again.predict_proba(X))
        other = clone(model).set_params(random_state=1).fit(X, y)
        assert (other.predict_proba(X) != model.predict_proba(X)).any()


# -- folds -------------------------------------------------------------------------------------


def test_folds_are_dealt_class_by_class():
    y = np.repeat([0, 1, 2, 3], [23, 4, 1, 50])
    fold = deal(y, np.random.RandomState(0))
    for k in range(4):
        sizes = np.bincount(fold[y == k], minlength=FOLDS)
        assert sizes.max() - sizes.min() <= 1
    sizes = np.bincount(fold)
    assert sizes.max() - sizes.min() <= 1
    assert (deal(y, np.random.RandomState(1)) != fold).any()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("multiclass", ["ovo", "ovr", "crammer_singer"])
def test_classes_smaller_than_the_folds(multiclass, kind):
    X, y = data(load_iris)
    few = np.concatenate([np.arange(50), np.arange(50, 53), [100]])  # 50, 3 and 1
    model = SVC(multiclass=multiclass, probability=kind, random_state=0).fit(X[few], y[few])
    p = model.predict_proba(X)
    assert np.isfinite(p).all()
    np.testing.assert_allclose(p.sum(axis=1), 1.0)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("C", [0.1, 100.0])
def test_left_out_folds_are_those_of_fits_without_the_rows(C, intercept):
    X, y = data(load_breast_cancer)
    sign, rows = np.where(y > 0, 1.0, -1.0), np.arange(len(y))
    gram = Gram.of(X, RBF(0.02))
    problem = duals.c_svc(rows, sign, np.full(len(y), C), bias=intercept)
    (solved,), _ = solve_certified(gram, [problem], Auto(), 1e-3)
    number = deal(y, np.random.RandomState(0))
    cost = np.where(number != np.arange(FOLDS)[:, None], solved.problem.losses.cost, 0.0)
    found = solve_left_out(gram, solved, cost, Watch(1e-3))
    assert found.violation <= 1e-3
    for f in range(FOLDS):
        kept = number != f
        part = duals.c_svc(rows[kept], sign[kept], np.full(kept.sum(), C), bias=intercept)
        (alone,), _ = solve_certified(gram, [part], Auto(), 1e-6)
        coefficients = np.zeros(len(y))
        coefficients[kept] = alone.coefficients
        values = gram.matvec(coefficients) + alone.bias
        np.testing.assert_allclose(found.values[f], values, atol=0.02)
        here = np.isin(found.rows, rows[~kept])
        assert not found.coefficients[f, here].any(), "a row that is held out has a coefficient"


def test_rows_that_come_to_matter_are_found(monkeypatch):
    """Begun without any row near the margin, the folds are the same."""
    X, y = data(load_breast_cancer)
    model = SVC(C=10.0, probability=True, random_state=0)
    usual = clone(model).fit(X, y)
    monkeypatch.setattr(left_out, "_NEAR", -10.0)
    np.testing.assert_allclose(model.fit(X, y).probA_, usual.probA_, rtol=0.02)
    monkeypatch.setattr(out_of_fold, "solve_left_out", lambda *args: None)  # by certificates
    np.testing.assert_allclose(model.fit(X, y).probA_, usual.probA_, rtol=0.02)


def test_folds_reuse_the_gram_matrix(monkeypatch):
    """One Gram matrix, and fewer kernel values for five folds than a fit of each would make."""
    X, y = data(load_digits, 1000)
    made, entries = [], []
    init, rows = Gram.__init__, cpu.kernel_rows

    def counted(self, kernel, program, n, memory):
        made.append(n)
        init(self, kernel, program, n, memory)

    def counting(program, left, chosen, right, out, *rest):
        entries.append(out.size)
        rows(program, left, chosen, right, out, *rest)

    monkeypatch.setattr(Gram, "__init__", counted)
    SVC(multiclass="ovr", n_jobs=1).fit(X, y)
    plain = len(made)
    monkeypatch.setattr(left_out.cpu, "kernel_rows", counting)
    SVC(multiclass="ovr", probability=True, n_jobs=1).fit(X, y)
    assert len(made) == 2 * plain, "the folds made Gram matrices of their own"
    assert sum(entries) < 10 * len(X) ** 2, "each task made all values again"


@pytest.mark.parametrize("multiclass", ["ovo", "crammer_singer"])
def test_limits(multiclass):
    X, y = data(load_digits, 600)
    options = {"probability": "temperature", "multiclass": multiclass, "C": 100.0}
    for limit in ({"time_limit": 1e-6}, {"max_iter": 1}):
        with pytest.warns(ConvergenceWarning) as caught:
            model = SVC(**options, **limit).fit(X, y)
        said = str(caught[-1].message)
        assert "folds for probability='temperature'" in said
        assert next(iter(limit)) in said
        assert np.isfinite(model.predict_proba(X)).all()


def test_machines_with_nu_and_the_hard_margin_have_all_kinds():
    X, y = data(load_iris, 100)
    for model in (NuSVC(nu=0.2), SVC(C=np.inf), SVC(kernel="precomputed"), SVC(solver="smo")):
        rows = X @ X.T if model.kernel == "precomputed" else X
        for kind in KINDS:
            model.set_params(probability=kind, random_state=0).fit(rows, y)
            assert log_loss(y, model.predict_proba(rows)) < 0.2
    with pytest.raises(ValueError, match="'probability' parameter"):
        SVC(probability="platt").fit(X, y)


# -- scikit-learn ------------------------------------------------------------------------------


@pytest.mark.parametrize("ensemble", [True, False])
@pytest.mark.parametrize("method", ["sigmoid", "isotonic", "temperature"])
@pytest.mark.parametrize(
    "machine",
    [SVC(), SVC(multiclass="crammer_singer"), NuSVC(nu=0.2), LinearSVC()],
    ids=["SVC", "crammer_singer", "NuSVC", "LinearSVC"],
)
def test_inside_calibrated_classifier(machine, method, ensemble):
    for X, y in (data(load_wine), data(load_breast_cancer, 200)):
        model = CalibratedClassifierCV(machine, method=method, ensemble=ensemble, cv=3).fit(X, y)
        p = model.predict_proba(X)
        np.testing.assert_allclose(p.sum(axis=1), 1.0)
        assert log_loss(y, p) < 0.5


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("multiclass", ["ovo", "ovr"])
def test_searches_share_every_kind(kind, multiclass, monkeypatch):
    X, y = data(load_wine)
    machine = SVC(probability=kind, random_state=0, multiclass=multiclass)
    grid = {"C": [1, 10], "gamma": [0.01, 0.1]}
    reference = model_selection.GridSearchCV(machine, grid, scoring="neg_log_loss", cv=3).fit(X, y)
    monkeypatch.setattr(SVC, "fit", lambda *args: pytest.fail("really fitted"))
    search = SVCSearchCV(machine, grid, scoring="neg_log_loss", cv=3, refit=False).fit(X, y)
    scores = (found.cv_results_["mean_test_score"] for found in (search, reference))
    np.testing.assert_allclose(*scores, atol=0.02 if kind == "isotonic" else 5e-3)


def test_searches_say_what_they_do_not_share():
    X, y = data(load_wine)
    sparse = ErrorCorrectingCode(3, SPARSE)
    grid = {"probability": ["consistent", True], "multiclass": [sparse]}
    options = {"scoring": "neg_log_loss", "cv": 3, "refit": False}
    search = SVCSearchCV(SVC(random_state=0), grid, **options).fit(X, y)
    assert "rows of classes that they do not see" in search.sharing_.why(0)
    assert search.sharing_.why(1) is None
    nu = GridSearchCV(NuSVC(probability="temperature"), {"nu": [0.1]}, **options).fit(X, y)
    assert "probability='temperature'" in nu.sharing_.why(0)
