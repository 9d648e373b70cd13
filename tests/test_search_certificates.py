"""Fits of a search are certified: as exact as fits of their own, or they say that they are not."""

import warnings

import numpy as np
import pytest
from sklearn.datasets import (
    load_breast_cancer,
    load_diabetes,
    load_digits,
    load_iris,
    load_wine,
    make_classification,
)
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import ConvergenceWarning, FitFailedWarning
from sklearn.model_selection import GridSearchCV as TheirSearch
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.preprocessing import StandardScaler

from maxmargin import (
    SVC,
    SVR,
    Gram,
    GridSearchCV,
    LinearSVC,
    LinearSVR,
    LogisticRegression,
    NuSVC,
    duals,
)
from maxmargin.kernels import Linear
from maxmargin.solution import Status
from maxmargin.solvers import Seed, SeededSMO


def scaled(load):
    X, y = load(return_X_y=True)
    return StandardScaler().fit_transform(X), y


def both(estimator, grid, X, y, cv=3):
    ours = GridSearchCV(estimator, grid, cv=cv, refit=False).fit(X, y)
    theirs = TheirSearch(estimator, grid, cv=cv, refit=False, error_score="raise").fit(X, y)
    return ours, theirs


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    ("load", "C", "gamma"),
    [
        (load_breast_cancer, 1e10, 0.1),  # a bound 1e10 wide: free variables are not at zero
        (load_wine, 1e10, 0.1),
        (load_iris, 1e6, 1.0),
        (load_iris, 1.0, 1e-9),  # kernel values differ by less than float32 resolves
        (load_iris, 0.1, 1e3),  # and rows held out are as far as infinity
    ],
)
def test_scores_of_plain_fits_at_the_ends_of_a_grid(load, C, gamma):
    X, y = scaled(load)
    ours, theirs = both(SVC(), {"C": [C], "gamma": [gamma]}, X, y, StratifiedKFold(5))
    assert (ours.sharing_.shared).all()
    for split in range(5):
        name = f"split{split}_test_score"
        np.testing.assert_allclose(ours.cv_results_[name], theirs.cv_results_[name], atol=0.002)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(("load", "rows"), [(load_breast_cancer, None), (load_iris, 140)])
def test_scores_of_balanced_classes_at_a_small_cost(load, rows):
    """No support vector is free there, and any intercept of an interval is optimal."""
    X, y = (part[:rows] for part in scaled(load))
    grid = {"C": [1e-6, 1e-3], "gamma": [0.03, 0.1]}
    ours, theirs = both(SVC(class_weight="balanced"), grid, X, y, StratifiedKFold(5))
    found, expected = (s.cv_results_["mean_test_score"] for s in (ours, theirs))
    np.testing.assert_allclose(found, expected, atol=0.002)
    assert (found > 0.8).all()  # at an end of the interval all rows are of one class


@pytest.mark.fast
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("multiclass", ["crammer_singer", "ovr", "ecoc"])
def test_values_below_tol_are_those_of_plain_fits(multiclass):
    """At a small cost tol leaves open which value is largest: start and rounding decide."""
    X, y = scaled(load_wine)
    grid = {"C": [1e-6, 1e-3, 1e-1], "gamma": [1e-6, 1e-3, 1e-1]}
    ours, theirs = both(SVC(multiclass=multiclass), grid, X, y, StratifiedKFold(5))
    found, expected = (s.cv_results_["mean_test_score"] for s in (ours, theirs))
    np.testing.assert_allclose(found, expected, atol=0.002)
    assert "less than tol" in str(ours.sharing_)
    grid = {"C": [1.0, 10.0], "gamma": [0.1]}
    wide = GridSearchCV(SVC(multiclass=multiclass), grid, cv=3).fit(X, y)
    assert wide.sharing_.shared.all()


@pytest.mark.parametrize(
    "estimator", [SVC(), SVC(kernel="poly"), NuSVC(nu=0.2), SVC(multiclass="crammer_singer")]
)
def test_columns(estimator):
    X, y = scaled(load_iris)
    found = GridSearchCV(estimator, {"gamma": [0.1, 1.0]}, cv=3).fit(X, y).cv_results_
    gaps = np.array([found[f"split{split}_gap"] for split in range(3)])
    np.testing.assert_array_equal(found["worst_gap"], gaps.max(axis=0))
    assert (found["worst_gap"] <= 0.01).all()
    assert (found["status"] == "converged").all()
    assert all((found[f"split{split}_status"] == "converged").all() for split in range(3))


def test_a_gap_is_a_bound_for_the_exact_problem():
    """The gap of a fold bounds how much the objective is above the least, solved exactly."""
    X, y = scaled(load_breast_cancer)
    split = [(np.arange(0, 300), np.arange(300, 569))]
    grid = {"C": [0.1, 10.0, 1e3, 1e7], "gamma": [0.01]}
    search = GridSearchCV(SVC(), grid, cv=split, refit=False).fit(X, y)
    plain = [SVC(gamma=0.01, C=C).fit(X[:300], y[:300]) for C in grid["C"]]
    for gap, model in zip(search.cv_results_["worst_gap"], plain, strict=True):
        assert 0 <= gap <= max(10 * model.certificate_.relative_gap, 0.01)


def test_fits_of_their_own_and_linear_paths():
    X, y = scaled(load_iris)
    search = GridSearchCV(LinearSVC(), {"C": [0.1, 1.0]}, cv=3).fit(X, y)
    assert search.sharing_.shared.all()
    assert (search.cv_results_["worst_gap"] <= 1e-4).all()
    grid = {"C": [1.0, np.inf]}  # without slack, where no line separates
    search = GridSearchCV(SVC(kernel="linear"), grid, cv=3, error_score=0.0)
    with pytest.warns(FitFailedWarning, match="fits failed"):
        found = search.fit(X, y).cv_results_
    assert found["status"].tolist() == ["converged", "failed"]
    search = GridSearchCV(DummyClassifier(), {"strategy": ["prior"]}, cv=3).fit(X, y)
    assert not any(name.endswith(("gap", "status")) for name in search.cv_results_)


@pytest.mark.fast
@pytest.mark.parametrize(
    ("machine", "seed", "costs"),
    [
        (LinearSVC(loss="hinge"), 636961, [0.9829968, 321.0177, 492875.9]),  # 0.74, plain 0.59
        (LogisticRegression(), 13, [1e-6, 7e-5, 1e-3]),  # 0.53, plain 0.49: rounding decides
        (LinearSVR(), 1, [1e-5, 5.0, 2e4]),  # R^2 -0.116 to a tenth of tol, plain -0.131
    ],
)
def test_linear_machines_begin_where_plain_fits_begin(machine, seed, costs):
    """In units of 1e-6 an answer at the last C is one to tol at the next."""
    cv = StratifiedKFold(3, shuffle=True, random_state=0)
    random = np.random.default_rng(seed)
    if isinstance(machine, LinearSVR):
        X, cv = random.normal(size=(100, 3)), KFold(3, shuffle=True, random_state=0)
        y = X.sum(axis=1) + 1e3 * (np.arange(100) < 5) + 1e4
    elif isinstance(machine, LogisticRegression):
        X, y = random.normal(size=(120, 2)), np.arange(120) % 2
    else:
        X, y = make_classification(
            93, 6, n_informative=4, n_clusters_per_class=1, flip_y=0.0, random_state=seed
        )
    X = 1e-6 * StandardScaler().fit_transform(X)
    ours, theirs = both(machine, {"C": costs}, X, y, cv)
    found, expected = (s.cv_results_["mean_test_score"] for s in (ours, theirs))
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    assert "from zero" in str(ours.sharing_)


def test_paths_of_many_rows(random):
    """Each C begins at the last but where one problem for all classes is solved row by row."""
    y = np.arange(2400) % 3
    X = random.normal(size=(2400, 4)) + np.eye(4)[y]
    machine = LinearSVC(multiclass="crammer_singer", random_state=0)
    grid = {"C": [1e-9, 1e-6, 1.0]}
    for unit, search_for, how in ((1.0, LinearSVC(), "the last"), (1e-6, machine, "from zero")):
        ours, theirs = both(search_for, grid, unit * X, y)
        found, expected = (s.cv_results_["mean_test_score"] for s in (ours, theirs))
        np.testing.assert_allclose(found, expected, atol=0.002)
        assert how in str(ours.sharing_)


def test_targets_in_another_unit():
    """A power of two in targets, costs, tube and tol: the same scores, found in the same way."""
    X, y = scaled(load_diabetes)
    y = (y - y.mean()) / y.std()
    searches = [
        GridSearchCV(
            SVR(gamma=0.01, epsilon=0.1 * unit, tol=1e-3 * unit),
            {"C": [unit, 1e2 * unit, 1e4 * unit]},
            cv=3,
            refit=False,
        ).fit(X, y * unit)
        for unit in (1.0, 2.0**20)
    ]
    scores = [search.cv_results_["mean_test_score"] for search in searches]
    np.testing.assert_allclose(*scores, rtol=1e-9)
    assert searches[0].sharing_.how == searches[1].sharing_.how
    assert len(set(searches[0].sharing_.how.values())) == 2  # float32, and float64 at a large C


def test_targets_beside_outliers_are_left_to_plain_fits():
    """The others vary by 0.008, and tol is 0.001: plain fits have R^2 -0.57, this had -0.52."""
    random = np.random.default_rng(59)
    X = random.normal(size=(100, 3))
    y = X.sum(axis=1) + 1e3 * (np.arange(100) < 5)
    X, y = StandardScaler().fit_transform(X), (y - y.mean()) / y.std()
    machine, grid = SVR(gamma=1.79e-4, epsilon=0.01), {"C": [1.524, 20.0]}
    ours, theirs = both(machine, grid, X, y, KFold(3, shuffle=True, random_state=0))
    found, expected = (s.cv_results_["mean_test_score"] for s in (ours, theirs))
    np.testing.assert_allclose(found, expected, atol=0.002)
    assert "spread of held-out targets" in str(ours.sharing_)


def test_rounding_decides_no_class():
    """All variables are at their bounds, and values of 1e-8 decide: float32 is not enough."""
    X, y = load_breast_cancer(return_X_y=True)
    rows = np.random.default_rng(8).permutation(len(y))[:250]
    X, y = StandardScaler().fit_transform(X[rows]), y[rows]
    cv = StratifiedKFold(3, shuffle=True, random_state=0)
    machine, grid = SVC(class_weight="balanced", gamma=2.43e-7), {"C": [1e-5, 0.0069, 1.0]}
    ours = GridSearchCV(machine, grid, cv=cv, return_train_score=True).fit(X, y)
    theirs = TheirSearch(machine, grid, cv=cv, return_train_score=True).fit(X, y)
    assert ours.sharing_.shared.all()
    for name in ("mean_test_score", "mean_train_score"):
        np.testing.assert_allclose(ours.cv_results_[name], theirs.cv_results_[name], atol=0.002)


def test_costs_far_apart_cost_no_digits():
    """Scores near one are made of kernel values of 1e-10, times the ratio of two costs."""
    X, y = (part[:300] for part in scaled(load_digits))
    grid = {"C": [1e-6, 5e8, 8.7e9]}
    ours, theirs = both(SVC(kernel="linear", multiclass="ovr"), grid, 1e-6 * X, y)
    assert (ours.cv_results_["worst_gap"] < 1e-4).all()
    assert "float32" in str(list(ours.sharing_.how.values()))
    found, expected = (s.cv_results_["mean_test_score"] for s in (ours, theirs))
    np.testing.assert_allclose(found, expected, atol=0.002)


def test_a_scaled_seed_is_computed_anew(random):
    """What rounding leaves of scores is as large as a multiple of the costs' ratio."""
    rows = 1e-3 * random.normal(size=(60, 4))
    signs = np.where(rows[:, 0] > 0, 1.0, -1.0)
    gram = Gram.of(rows, Linear())
    costs = [1e-9, 1e6]
    low, high = (duals.c_svc(np.arange(60), signs, np.full(60, C)).over(gram) for C in costs)
    seed = Seed.of(low)
    SeededSMO().solve(low, seed=seed)
    seed.raise_walls(high)
    K = (rows @ rows.T).astype(np.float32).astype(float)
    values = -(K @ high.on_rows(seed.beta, 60))
    expected = high.orientation * values[high.gram_row] - high.linear
    np.testing.assert_allclose(seed.v, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.fast
@pytest.mark.parametrize(
    ("machine", "costs"), [(SVR(max_iter=5), [1e5]), (LinearSVR(max_iter=2), [1.0, 1e5])]
)
def test_what_does_not_converge_says_so(machine, costs):
    X, y = scaled(load_diabetes)
    search = GridSearchCV(machine, {"C": costs}, cv=3, refit=False)
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        found = search.fit(X, y).cv_results_
    assert found["status"].tolist() == [str(Status.MAX_ITER)] * len(costs)
    assert (found["worst_gap"] > 1e-3).all()
    assert len(costs) == 1 or search.sharing_.shared.all()


def test_dropped_candidates_are_not_fitted():
    X, y = scaled(load_iris)
    grid = [{"C": [1.0], "gamma": [0.1]}, {"C": [1e-6], "gamma": [1e-6], "kernel": ["sigmoid"]}]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        search = GridSearchCV(SVC(), grid, cv=4, prune_margin=0.05).fit(X, y)
    assert search.n_pruned_ == 1
    assert search.cv_results_["status"].tolist() == ["converged", "not fitted"]
    assert search.cv_results_["split3_status"].tolist() == ["converged", "not fitted"]
