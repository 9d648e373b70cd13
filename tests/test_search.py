"""The searches: the same scores as GridSearchCV, whatever is shared on the way."""

import re
import sys
import threading
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.stats import loguniform, uniform
from sklearn import config_context, model_selection
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.datasets import (
    load_breast_cancer,
    load_diabetes,
    load_digits,
    load_iris,
    make_classification,
)
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import ConvergenceWarning, FitFailedWarning, NotFittedError
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.metrics import accuracy_score, make_scorer
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, ShuffleSplit
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, StandardScaler
from sklearn.svm import SVC as TheirSVC
from sklearn.svm import SVR as TheirSVR
from sklearn.tree import DecisionTreeClassifier

import maxmargin
from maxmargin import (
    SVC,
    SVR,
    LinearSVC,
    LinearSVR,
    LogisticRegression,
    NuSVC,
    NuSVR,
    SVCSearchCV,
    SVRSearchCV,
    duals,
)
from maxmargin.backends.cpu.dual.momentum import conjugate_steps
from maxmargin.backends.cpu.dual.steps import CONVERGED, Block, steps_among
from maxmargin.backends.threads import on_one_blas_thread
from maxmargin.gram.matrices import Matrices
from maxmargin.kernels import RBF, Laplacian, Linear, Polynomial
from maxmargin.multiclass import ErrorCorrectingCode, OneVsRest
from maxmargin.progress import Monitor
from maxmargin.selection.cost_path import CostPath
from maxmargin.solution import Status
from maxmargin.solvers import Seed, SeededSMO, Watch, drive
from maxmargin.solvers.dual.seeded import SeededSMORun

GRID = {"C": [0.1, 10, 1000], "gamma": [0.01, 0.1, 1]}


def iris():
    return load_iris(return_X_y=True)


def digits(n=150):
    X, y = load_digits(return_X_y=True)
    return X[:n] / 16, y[:n]


def breast_cancer(n=None):
    X, y = load_breast_cancer(return_X_y=True)
    return StandardScaler().fit_transform(X)[:n], y[:n]


def diabetes(n=200):
    X, y = load_diabetes(return_X_y=True)
    return StandardScaler().fit_transform(X)[:n], (y[:n] - 150) / 77


@pytest.fixture
def never_fitted(monkeypatch):
    """Let no fit go another way than the shared one."""

    def refuse(self, params, train, test, watch):
        raise AssertionError(f"{params} was really fitted")

    monkeypatch.setattr("maxmargin.selection.scoring.Scoring._fitted", refuse)


def assert_same_scores(search, reference, within=1e-12):
    assert search.n_splits_ == reference.n_splits_
    assert search.cv_results_["params"] == reference.cv_results_["params"]
    proven = {key for key in search.cv_results_ if key.endswith(("_gap", "status"))}
    assert search.cv_results_.keys() - proven == reference.cv_results_.keys() - proven
    for key, expected in reference.cv_results_.items():
        if ("_test_" in key or "_train_" in key) and not key.startswith("rank"):
            np.testing.assert_allclose(search.cv_results_[key], expected, atol=within)


# -- the scores of GridSearchCV -----------------------------------------------------------------


@pytest.mark.usefixtures("never_fitted")
@pytest.mark.parametrize("data", [iris, digits, breast_cancer])
@pytest.mark.parametrize("reference", [SVC, TheirSVC])
def test_scores_at_default_tolerance(data, reference):
    X, y = data()
    ours = SVCSearchCV(GRID).fit(X, y)
    theirs = GridSearchCV(reference(), GRID).fit(X, y)
    difference = ours.cv_results_["mean_test_score"] - theirs.cv_results_["mean_test_score"]
    assert np.abs(difference).max() <= 0.002
    assert ours.best_score_ == pytest.approx(theirs.best_score_, abs=0.002)


@pytest.mark.usefixtures("never_fitted")
@pytest.mark.parametrize("data", [iris, lambda: digits(100), breast_cancer])
def test_scores_at_tight_tolerance(data):
    X, y = data()
    ours = SVCSearchCV(GRID, estimator=SVC(tol=1e-6), return_train_score=True).fit(X, y)
    reference = GridSearchCV(TheirSVC(tol=1e-6), GRID, return_train_score=True).fit(X, y)
    assert_same_scores(ours, reference)
    assert ours.best_params_ == reference.best_params_
    assert ours.best_index_ == reference.best_index_
    assert (ours.predict(X) == reference.predict(X)).all()


@pytest.mark.usefixtures("never_fitted")
@pytest.mark.parametrize(("tol", "within"), [(1e-3, 2e-3), (1e-6, 1e-4)])
def test_regression(tol, within):
    X, y = diabetes()
    grid = {"C": [0.1, 1, 100], "gamma": [0.01, 0.1], "epsilon": [0.05, 0.2]}
    search = SVRSearchCV(grid, estimator=SVR(tol=tol), return_train_score=True).fit(X, y)
    reference = GridSearchCV(TheirSVR(tol=tol), grid, return_train_score=True).fit(X, y)
    assert_same_scores(search, reference, within)
    assert search.best_params_ == reference.best_params_
    assert search.best_estimator_.certificate_.converged


@pytest.mark.usefixtures("never_fitted")
@pytest.mark.parametrize("machine", [SVC(), SVC(tol=1e-6), SVC(fit_intercept=False)])
def test_gamma_of_the_training_rows(machine):
    X, y = iris()
    grid = {"C": [1, 100], "gamma": ["scale", "auto", 0.5]}
    search = SVCSearchCV(grid, estimator=machine, cv=KFold(3, shuffle=True, random_state=0))
    reference = GridSearchCV(machine, grid, cv=search.cv).fit(X, y)
    assert_same_scores(search.fit(X, y), reference)


@pytest.mark.usefixtures("never_fitted")
def test_weights():
    X, y = breast_cancer(200)
    weight = np.random.default_rng(0).uniform(0, 2, len(y)) * (np.arange(len(y)) % 7 > 0)
    grid = {"C": [0.1, 10], "class_weight": [None, "balanced", {0: 3.0, 1: 0.5}]}
    search = SVCSearchCV(grid).fit(X, y, sample_weight=weight)
    reference = GridSearchCV(SVC(), grid).fit(X, y, sample_weight=weight)
    assert_same_scores(search, reference)
    np.testing.assert_allclose(search.decision_function(X), reference.decision_function(X))


@pytest.mark.usefixtures("never_fitted")
def test_weights_in_regression():
    X, y = diabetes(100)
    weight = np.random.default_rng(0).uniform(0, 2, len(y))
    grid, cv = {"C": [0.1, 10], "fit_intercept": [True, False]}, ShuffleSplit(3, random_state=0)
    search = SVRSearchCV(grid, cv=cv).fit(X, y, sample_weight=weight)
    reference = GridSearchCV(SVR(), grid, cv=cv).fit(X, y, sample_weight=weight)
    assert_same_scores(search, reference, 2e-3)


@pytest.mark.usefixtures("never_fitted")
@pytest.mark.parametrize(
    ("machine", "grid"),
    [
        (SVC(kernel="linear"), {"C": [0.1, 10]}),
        (SVC(kernel="poly"), {"degree": [2, 3], "gamma": [0.1, 1], "C": [1, 10]}),
        (SVC(kernel=Laplacian()), {"kernel__gamma": [0.1, 1.0], "C": [1, 10]}),
        (SVC(), {"kernel": [Linear(), RBF(0.5) + 0.1 * Linear(), Polynomial(2)], "C": [1, 10]}),
        (SVC(kernel=lambda A, B: A @ B.T), {"C": [0.1, 10]}),
        (SVC(lam=0.1), {"lam": [0.1, 0.001], "gamma": [0.1, 1]}),
        (SVC(), [{"kernel": ["linear"], "C": [1, 10]}, {"kernel": ["rbf"], "gamma": [1]}]),
        (SVC(decision_function_shape="ovo", break_ties=False), {"break_ties": [False]}),
        (SVC(), {"break_ties": [False, True]}),
    ],
)
def test_other_parameters(machine, grid):
    X, y = iris()
    assert_same_scores(
        SVCSearchCV(grid, estimator=machine, cv=3).fit(X, y),
        GridSearchCV(machine, grid, cv=3).fit(X, y),
    )


@pytest.mark.usefixtures("never_fitted")
@pytest.mark.parametrize(
    "scheme",
    [
        "ovr",
        "dag",
        "ecoc",
        partial(OneVsRest, decoding="votes"),
        partial(ErrorCorrectingCode, kind="sparse", n_tasks=15),
        "crammer_singer",
        "weston_watkins",
    ],
)
@pytest.mark.parametrize("tol", [1e-3, 1e-5])
def test_every_scheme_shares(scheme, tol):
    X, y = digits(200)
    grid = {"C": [1, 10, 100], "gamma": [0.02, 0.1]}
    machine = SVC(multiclass=scheme, tol=tol, class_weight="balanced")
    theirs = GridSearchCV(machine, grid, cv=3, refit=False).fit(X, y)
    search = maxmargin.GridSearchCV(machine, grid, cv=3, refit=False).fit(X, y)
    assert search.sharing_.shared.all()
    difference = search.cv_results_["mean_test_score"] - theirs.cv_results_["mean_test_score"]
    assert np.abs(difference).max() <= (0.01 if tol > 1e-4 else 1e-12)


@pytest.mark.usefixtures("never_fitted")
def test_precomputed():
    X, y = breast_cancer(150)
    K = X @ X.T
    search = SVCSearchCV({"C": [0.01, 0.1, 1]}, estimator=SVC(kernel="precomputed")).fit(K, y)
    reference = GridSearchCV(SVC(kernel="precomputed"), {"C": [0.01, 0.1, 1]}).fit(K, y)
    assert_same_scores(search, reference)


@pytest.mark.usefixtures("never_fitted")
def test_objects():
    words = ["kernel", "margin", "marginal", "colonel", "kernels", "imagine"] * 8
    y = [word[0] in "km" for word in words]
    machine = SVC(kernel=lambda A, B: [[len(set(a) & set(b)) for b in B] for a in A])
    search = SVCSearchCV({"C": [0.1, 10]}, estimator=machine, cv=3).fit(words, y)
    assert_same_scores(search, GridSearchCV(machine, {"C": [0.1, 10]}, cv=3).fit(words, y))


@pytest.mark.usefixtures("never_fitted")
def test_unscaled_data():
    """Float32 does not resolve these products: the fits are repeated in float64."""
    X, y = load_breast_cancer(return_X_y=True)
    grid = {"C": [1e-6, 1e-4, 1e-2]}
    machine = SVC(kernel="linear")
    assert_same_scores(
        SVCSearchCV(grid, estimator=machine, cv=3).fit(X, y),
        GridSearchCV(machine, grid, cv=3).fit(X, y),
    )


@pytest.mark.usefixtures("never_fitted")
@pytest.mark.parametrize("machine", [SVC(), make_pipeline(StandardScaler(), SVC())])
def test_unusual_splits(machine):
    """Masks, rows drawn twice, rows in both parts."""
    X, y = iris()
    random = np.random.default_rng(0)
    drawn = [random.integers(0, 150, 120) for _ in range(2)]
    mask = np.arange(150) % 3 == 0
    cv = [(drawn[0], np.arange(150)), (drawn[1], drawn[0]), (~mask, mask)]
    name = "C" if isinstance(machine, SVC) else "svc__C"
    search = SVCSearchCV({name: [0.1, 10]}, estimator=machine, cv=cv).fit(X, y)
    assert_same_scores(search, GridSearchCV(machine, {name: [0.1, 10]}, cv=cv).fit(X, y))


@pytest.mark.usefixtures("never_fitted")
def test_values_beyond_float32():
    X, y = iris()
    machine = SVC(kernel=Polynomial(degree=4, coef0=1.0, gamma=1.0))
    grid = {"C": [1e-40, 1e-38], "kernel__degree": [3, 4]}
    search = SVCSearchCV(grid, estimator=machine, cv=3).fit(1e5 * X, y)
    assert_same_scores(search, GridSearchCV(machine, grid, cv=3).fit(1e5 * X, y))


# -- containers, pipelines ----------------------------------------------------------------------


@pytest.mark.usefixtures("never_fitted")
@pytest.mark.parametrize(
    "convert", [sp.csr_array, lambda X: X.astype(np.float32), np.ndarray.tolist]
)
def test_containers(convert):
    X, y = breast_cancer(150)
    names = np.array(["no", "yes"])[y]
    search = SVCSearchCV({"C": [1, 10], "gamma": [0.01, 0.1]}).fit(convert(X), names)
    reference = GridSearchCV(SVC(), {"C": [1, 10], "gamma": [0.01, 0.1]}).fit(convert(X), names)
    assert_same_scores(search, reference)
    assert search.classes_.tolist() == ["no", "yes"]


@pytest.mark.usefixtures("never_fitted")
def test_data_frames():
    pd = pytest.importorskip("pandas")
    X, y = load_iris(return_X_y=True, as_frame=True)
    kernel = RBF(1.0).on(["sepal length (cm)", "petal length (cm)"]) + Linear()
    search = SVCSearchCV({"C": [0.1, 1]}, estimator=SVC(kernel=kernel)).fit(X, y)
    assert_same_scores(search, GridSearchCV(SVC(kernel=kernel), {"C": [0.1, 1]}).fit(X, y))
    assert search.feature_names_in_.tolist() == X.columns.tolist()
    assert search.predict(pd.DataFrame(X.iloc[:3])).shape == (3,)


@pytest.mark.usefixtures("never_fitted")
@pytest.mark.parametrize("tol", [1e-3, 1e-6])
def test_pipeline(tol):
    X, y = load_breast_cancer(return_X_y=True)
    X, y = X[:200], y[:200]
    pipeline = Pipeline([("scale", StandardScaler()), ("svc", SVC(tol=tol))])
    grid = {
        "svc__C": [0.1, 10],
        "svc__gamma": [0.01, "scale"],
        "scale": [StandardScaler(), MinMaxScaler(), "passthrough"],
    }
    grid = [grid, {"scale__with_mean": [False, True], "svc__C": [1.0, 5.0]}]
    search = SVCSearchCV(grid, estimator=pipeline, cv=3, return_train_score=True).fit(X, y)
    reference = GridSearchCV(pipeline, grid, cv=3, return_train_score=True).fit(X, y)
    assert_same_scores(search, reference)
    assert search.best_estimator_[-1].certificate_.converged


@pytest.mark.usefixtures("never_fitted")
def test_pipeline_with_weights_and_sparse_output():
    X, y = breast_cancer(120)
    pipeline = make_pipeline(FunctionTransformer(sp.csr_array, accept_sparse=True), SVC())
    weight = np.linspace(0.1, 2, len(y))
    search = SVCSearchCV({"svc__C": [0.1, 10]}, estimator=pipeline)
    search.fit(X, y, svc__sample_weight=weight)
    reference = GridSearchCV(pipeline, {"svc__C": [0.1, 10]}).fit(X, y, svc__sample_weight=weight)
    assert_same_scores(search, reference)


# -- scorers ------------------------------------------------------------------------------------


@pytest.mark.usefixtures("never_fitted")
@pytest.mark.parametrize("scoring", ["roc_auc", "f1", "balanced_accuracy", accuracy_score])
def test_scoring(scoring):
    X, y = breast_cancer(200)
    scoring = make_scorer(scoring) if callable(scoring) else scoring
    grid = {"C": [0.1, 10], "gamma": [0.01, 0.1]}
    search = SVCSearchCV(grid, scoring=scoring, return_train_score=True).fit(X, y)
    reference = GridSearchCV(SVC(), grid, scoring=scoring, return_train_score=True).fit(X, y)
    assert_same_scores(search, reference, 1e-3 if scoring == "roc_auc" else 1e-12)
    assert search.score(X, y) == pytest.approx(reference.score(X, y))


@pytest.mark.usefixtures("never_fitted")
@pytest.mark.parametrize("scoring", [["accuracy", "f1_macro"], {"a": "accuracy", "b": "f1_macro"}])
def test_several_scores(scoring):
    X, y = iris()
    refit = list(scoring)[1]
    search = SVCSearchCV(GRID, scoring=scoring, refit=refit).fit(X, y)
    assert_same_scores(search, GridSearchCV(SVC(), GRID, scoring=scoring, refit=refit).fit(X, y))
    assert search.multimetric_
    assert set(search.scorer_) == set(scoring)
    with pytest.raises(ValueError, match="refit"):
        SVCSearchCV(GRID, scoring=scoring).fit(X, y)


@pytest.mark.usefixtures("never_fitted")
def test_scorer_that_looks_closely():
    """One that asks for other rows, attributes and probabilities gets the real machine's."""

    def scorer(machine, X, y):
        assert machine.predict(X[:5]).shape == (5,)
        assert machine.predict_proba(X).shape == (len(X), 2)
        assert not hasattr(machine, "transform")
        return {"score": machine.score(X, y), "support": -machine.n_support_.sum()}

    X, y = breast_cancer(120)
    machine = SVC(probability=True, random_state=0)
    grid = {"C": [0.1, 10]}
    search = SVCSearchCV(grid, estimator=machine, scoring=scorer, refit="score", cv=3).fit(X, y)
    reference = GridSearchCV(machine, grid, scoring=scorer, refit="score", cv=3).fit(X, y)
    assert_same_scores(search, reference)


@pytest.mark.usefixtures("never_fitted")
def test_scorer_that_does_not_see_known_values_for_other_rows():
    def scorer(machine, X, y):
        return machine.score(np.ascontiguousarray(X[::-1]), y[::-1])

    X, y = iris()
    assert_same_scores(
        SVCSearchCV({"C": [1]}, scoring=scorer).fit(X, y),
        GridSearchCV(SVC(), {"C": [1]}, scoring=scorer).fit(X, y),
    )


def test_callable_refit():
    X, y = iris()
    search = SVCSearchCV(GRID, refit=lambda results: 2).fit(X, y)
    assert search.best_index_ == 2
    assert not hasattr(search, "best_score_")
    search = SVCSearchCV(GRID, refit=False).fit(X, y)
    assert not hasattr(search, "best_estimator_")
    assert search.best_params_ == search.cv_results_["params"][search.best_index_]


# -- other machines and other candidates ----------------------------------------------------------


def nowhere_alone(search):
    return search.sharing_.shared.all() and not search.sharing_.reasons


SCALED = make_pipeline(StandardScaler(), LinearSVC())
NU = {"nu": [0.1, 0.3], "gamma": [0.01, 0.1]}
COSTS = {"C": [0.01, 0.1, 1, 10]}
DRAWN = {"C": loguniform(0.1, 100), "gamma": [0.01, 0.1, 1.0]}


@pytest.mark.usefixtures("never_fitted")
@pytest.mark.parametrize(
    ("kind", "machine", "params", "data", "within"),
    [
        ("GridSearchCV", NuSVC(), NU, iris, 1e-12),
        ("GridSearchCV", NuSVC(class_weight="balanced"), NU, breast_cancer, 1e-12),
        ("GridSearchCV", NuSVR(), {"nu": [0.2, 0.6], "C": [0.1, 10]}, diabetes, 1e-3),
        ("GridSearchCV", LinearSVC(), COSTS, breast_cancer, 1e-12),
        ("GridSearchCV", LinearSVC(), {**COSTS, "loss": ["hinge", "squared_hinge"]}, iris, 1e-12),
        ("GridSearchCV", LinearSVR(tol=1e-6), {**COSTS, "epsilon": [0.1, 0.2]}, diabetes, 1e-2),
        ("GridSearchCV", LogisticRegression(), COSTS, iris, 1e-12),
        ("GridSearchCV", SCALED, {"linearsvc__C": [0.1, 1]}, breast_cancer, 1e-12),
        ("RandomizedSearchCV", SVC(), DRAWN, iris, 1e-12),
        ("RandomizedSearchCV", NuSVC(), {"nu": uniform(0.1, 0.4)}, iris, 1e-12),
        ("RandomizedSearchCV", LogisticRegression(), {"C": loguniform(0.01, 10)}, iris, 1e-12),
        ("HalvingGridSearchCV", SVC(), GRID, breast_cancer, 1e-12),
        ("HalvingGridSearchCV", LinearSVC(), COSTS, breast_cancer, 1e-12),
        ("HalvingGridSearchCV", SVR(), GRID, diabetes, 2e-3),
        ("HalvingRandomSearchCV", SVC(), DRAWN, breast_cancer, 1e-12),
    ],
)
def test_the_same_as_of_scikit_learn(kind, machine, params, data, within):
    """Candidates, columns, scores and the best of the class that has this name there."""
    X, y = data()
    given = {} if kind == "GridSearchCV" else {"random_state": 0}
    ours = getattr(maxmargin, kind)(machine, params, return_train_score=True, **given).fit(X, y)
    theirs = getattr(model_selection, kind)(machine, params, return_train_score=True, **given)
    assert_same_scores(ours, theirs.fit(X, y), within)
    assert nowhere_alone(ours), str(ours.sharing_)
    assert ours.best_params_ == theirs.best_params_
    assert ours.best_index_ == theirs.best_index_
    assert clone(ours).get_params().keys() == ours.get_params().keys()
    for name in ("n_resources_", "n_candidates_", "n_iterations_", "n_remaining_candidates_"):
        assert getattr(ours, name, None) == getattr(theirs, name, None)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X))


def test_candidates_without_a_score_leave_a_halving_search():
    X, y = iris()
    grid = {"C": [-1, 0.1, 1.0, 10.0]}
    with (
        pytest.warns(FitFailedWarning, match="fits failed"),
        pytest.warns(UserWarning, match="non-finite"),
    ):
        search = maxmargin.HalvingGridSearchCV(SVC(), grid, factor=2).fit(X, y)
    rounds = search.cv_results_["iter"]
    assert np.bincount(rounds)[:2].tolist() == [4, 2]
    assert all(p["C"] > 0 for p, i in zip(search.cv_results_["params"], rounds, strict=True) if i)


@pytest.mark.parametrize("aggressive", [True, False])
def test_halving_by_another_resource(aggressive):
    X, y = iris()
    given = {"resource": "max_iter", "max_resources": 1000, "min_resources": 20, "cv": 3}
    given |= {"aggressive_elimination": aggressive, "factor": 4}
    searches = [
        library.HalvingGridSearchCV(SVC(), GRID, **given)
        for library in (maxmargin, model_selection)
    ]
    with pytest.warns(ConvergenceWarning):
        ours, theirs = [search.fit(X, y) for search in searches]
    assert_same_scores(ours, theirs)
    assert ours.n_resources_ == theirs.n_resources_
    assert f"max_iter={ours.n_resources_[0]} is for a fit of its own." in ours.sharing_.why(0)


def test_any_estimator_is_searched():
    X, y = iris()
    machine, grid = DecisionTreeClassifier(random_state=0), {"max_depth": [1, 2, 3]}
    ours = maxmargin.GridSearchCV(machine, grid, time_limit=100.0).fit(X, y)
    assert_same_scores(ours, GridSearchCV(machine, grid).fit(X, y))
    assert not ours.sharing_.shared.any()


# -- what is not shared, and why ------------------------------------------------------------------


HINGES = {"loss": ["hinge", "squared_hinge"], "C": [1, 2]}


class Sub(SVC):
    """A machine of someone else's."""


class Fails(TransformerMixin, BaseEstimator):
    """A transformer that divides by zero where it sees the first row."""

    def fit(self, X, y=None):
        self.mean_ = 1 // int(X[:, 0].min() > 4.3)
        return self

    def transform(self, X):
        return X


def unsymmetric(A, B):
    return A @ B.T + A[:, :1]


def divided(A, B):
    return 1 // 0


@pytest.mark.parametrize(
    ("machine", "grid", "split", "reason"),
    [
        (DecisionTreeClassifier(), {"max_depth": [2]}, 0, "none of the machines whose fits can"),
        (Sub(), {"C": [1]}, 0, "Sub is none of the machines"),
        (SVC(max_iter=10**6), {"C": [1]}, 0, "max_iter=1000000 is for a fit of its own"),
        (SVC(), {"C": [-1, 1]}, 0, "refuses the parameters: The 'C' parameter"),
        (SVC(), {"C": [np.inf]}, 0, "C=inf, without slack"),
        (SVC(kernel="sigmoid", coef0=-1.0), {"C": [1]}, 0, "indefinite on these data"),
        (SVC(), {"kernel": [unsymmetric, "rbf"]}, 0, "values are refused: .*symmetric"),
        (SVC(), {"kernel": [divided, "rbf"]}, 0, "values are refused: ZeroDivisionError"),
        (SVC(), {"kernel": [RBF().on(["a"]), "rbf"]}, 0, "refuse"),
        (NuSVC(), {"nu": [1.0, 0.1]}, 0, "cannot be stated: specified nu is infeasible"),
        (SVC(), {"class_weight": [{0: 0.0}, None]}, 0, "cannot be stated: A class weighs nothing"),
        (make_pipeline(Fails(), SVC()), {"svc__C": [1]}, 1, "transformers fail: ZeroDivisionError"),
        (make_pipeline(Fails(), LinearSVC()), {"linearsvc__C": [1, 2]}, 1, "transformers fail"),
        (LinearSVC(), {"C": [1]}, 0, "No other candidate differs from it in C only"),
        (LinearSVC(solver="sgd", random_state=0), {"C": [1, 2]}, 0, "its steps"),
        (LinearSVC(lam=0.1), {"fit_intercept": [True]}, 0, "lam=0.1 is for a fit of its own"),
        (LinearSVC(penalty="l1"), HINGES, 0, "Its fit refuses: penalty='l1'"),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_reasons(machine, grid, split, reason):
    """Each is found at the search, and the scores are those of scikit-learn's, nan or not."""
    X, y = iris()
    X, y = X[:90], y[:90]  # 50 and 40 of two classes
    cv = KFold(3, shuffle=True, random_state=0)
    given = {"cv": cv, "error_score": -7.0, "refit": False}
    search = maxmargin.GridSearchCV(machine, grid, **given).fit(X, y)
    assert_same_scores(search, GridSearchCV(machine, grid, **given).fit(X, y))
    sharing = search.sharing_
    assert re.search(reason, sharing.why(0, split)), sharing
    assert re.search(reason, str(sharing))
    assert not sharing.shared[0, split]
    assert sharing.how.keys().isdisjoint(sharing.reasons)
    assert len(sharing.how) + len(sharing.reasons) == sharing.shared.size


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("rows", [2400, 90])
def test_unfinished_fits_are_those_of_plain_fits(rows):
    """Few rows begin at zero for each C, as plain fits do; many from the last C's answer."""
    X, y = make_classification(rows, 6, flip_y=0.1, random_state=0)
    options = {"param_grid": {"C": [1, 1000]}, "cv": 2, "refit": False}
    search = maxmargin.GridSearchCV(LinearSVC(max_iter=1), **options).fit(X, y)
    assert_same_scores(search, GridSearchCV(LinearSVC(max_iter=1), **options).fit(X, y))
    if rows == 90:
        assert search.sharing_.shared.all()
    else:
        assert "not converged along the path" in search.sharing_.why(0)


def test_reasons_of_data_and_of_the_search():
    X, y = iris()
    folds = SVCSearchCV({"C": [1, 10]}, cv=KFold(3)).fit(X, y).sharing_  # in order of the classes
    assert "do not have all classes" in folds.why(1)
    steps = [*range(50, 150)], [*range(50)]
    mixed = SVCSearchCV({"C": [1]}, cv=[steps, (steps[1] + steps[0][:60], steps[0][60:])])
    assert mixed.fit(X, y).sharing_.shared.tolist() == [[False, True]]
    weighted = make_pipeline(StandardScaler(), SVC())
    search = maxmargin.GridSearchCV(weighted, {"svc__C": [1]})
    search.fit(X, y, standardscaler__sample_weight=np.ones(len(y)))
    assert "what to do with standardscaler__sample_weight" in search.sharing_.why(0)
    machine = SVC(probability=True, tol=1e-6)
    search = SVCSearchCV(machine, {"C": [1]}, cv=2, scoring="neg_log_loss").fit(X, y)
    assert "shares what probability=True needs" in search.sharing_.why(0)
    X[0, 0] = np.nan
    with (
        pytest.warns(FitFailedWarning, match="2 fits failed"),
        pytest.warns(UserWarning, match="Scoring failed"),
    ):
        search = SVCSearchCV({"C": [1]}, cv=3, error_score=0, refit=False).fit(X, y)
    assert "The data are refused: Input X contains NaN" in search.sharing_.why(0)
    pruned = SVCSearchCV(GRID, prune_margin=0.05).fit(*breast_cancer()).sharing_
    assert any("prune_margin=0.05" in reason for reason in pruned.reasons.values())


@pytest.mark.parametrize(
    ("place", "machine"),
    [
        ("run.SharedFits._jobs", SVC()),
        ("run.solve_certified", NuSVC(nu=0.1)),
        ("cost_path.SeededSMO.begin", SVC()),
        ("data_set.DataSet.of", SVC()),
        ("linear_path.C_path", LinearSVC()),
        ("plan.Candidate.refusal", make_pipeline(StandardScaler(), SVC())),
    ],
)
def test_a_bug_of_ours_is_not_hidden(place, machine, monkeypatch):
    def broken(*args, **options):
        return 1 // 0

    monkeypatch.setattr(f"maxmargin.selection.{place}", broken)
    name = "tol" if isinstance(machine, NuSVC) else "C"
    grid = {f"svc__{name}" if isinstance(machine, Pipeline) else name: [0.001, 0.01]}
    with pytest.raises(ZeroDivisionError):
        maxmargin.GridSearchCV(machine, grid).fit(*iris())


def test_threads_agree_on_where_a_path_of_costs_ends():
    """Each may end it at another cost: a lost one would leave scores of coefficients of zero."""
    before, ends = sys.getswitchinterval(), range(3000, 0, -1)
    sys.setswitchinterval(1e-7)
    try:
        for _ in range(5):
            path = CostPath(None, None, [])
            path.reached, path._lock = 10**6, threading.Lock()
            workers = [
                threading.Thread(target=lambda end=path._end_at, k=k: list(map(end, ends[k::7])))
                for k in range(4)
            ]
            for worker in workers:
                worker.start()
            for worker in workers:
                worker.join()
            assert path.reached == min(min(ends[k::7]) for k in range(4))
    finally:
        sys.setswitchinterval(before)


# -- what fails -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("machine", "grid"),
    [
        (SVC(kernel="sigmoid"), {"C": [1, 10], "gamma": [0.1, 1]}),
        (SVC(C=np.inf, kernel="rbf", gamma=1.0), {"gamma": [1.0, 10.0]}),
        (SVC(time_limit=100.0), {"C": [1, 10]}),
    ],
)
@pytest.mark.filterwarnings("ignore:The kernel Sigmoid")
def test_what_cannot_be_shared_is_fitted(machine, grid):
    X, y = iris()
    X, y = X[:100], y[:100]
    assert_same_scores(
        SVCSearchCV(grid, estimator=machine).fit(X, y), GridSearchCV(machine, grid).fit(X, y)
    )


def test_failing_fits_score_nan():
    X, y = iris()
    grid = {"C": [1, -1]}
    with (
        pytest.warns(FitFailedWarning, match="5 fits failed"),
        pytest.warns(UserWarning, match="non-finite"),
    ):
        search = SVCSearchCV(grid).fit(X, y)
    assert np.isnan(search.cv_results_["mean_test_score"]).tolist() == [False, True]
    assert search.best_params_ == {"C": 1}
    assert search.cv_results_["rank_test_score"].tolist() == [1, 2]
    with pytest.raises(ValueError, match="'C' parameter"):
        SVCSearchCV(grid, error_score="raise").fit(X, y)


def test_failing_scorers_score_nan():
    def scorer(machine, X, y):
        if machine._estimator.C == 1:
            raise RuntimeError("not this one")
        return machine.score(X, y)

    X, y = iris()
    with pytest.warns(UserWarning, match="Scoring failed|non-finite"):
        search = SVCSearchCV({"C": [1, 10]}, scoring=scorer).fit(X, y)
    assert np.isnan(search.cv_results_["mean_test_score"]).tolist() == [True, False]


def test_folds_without_a_class():
    X, y = iris()  # in order of the classes
    cv = KFold(3)
    search = SVCSearchCV({"C": [1, 10]}, cv=cv).fit(X, y)
    assert_same_scores(search, GridSearchCV(SVC(), {"C": [1, 10]}, cv=cv).fit(X, y))


@pytest.mark.parametrize(
    ("search", "error", "message"),
    [
        (SVCSearchCV(estimator=TheirSVC()), TypeError, "an SVC of maxmargin"),
        (SVCSearchCV(estimator=SVR()), TypeError, "GridSearchCV"),
        (SVRSearchCV(estimator=NuSVC()), TypeError, "an SVR"),
        (SVCSearchCV({"D": [1]}), ValueError, "Invalid parameter 'D'"),
        (SVCSearchCV({"C": 1}), TypeError, "C"),
        (SVCSearchCV({"C": []}), ValueError, "non-empty"),
        (SVCSearchCV(cv=200), ValueError, "n_splits=200"),
        (SVCSearchCV(scoring="nothing"), ValueError, "scoring"),
        (SVCSearchCV(prune_margin=-1.0), ValueError, "prune_margin"),
    ],
)
def test_errors_teach(search, error, message):
    with pytest.raises(error, match=message):
        search.fit(*iris())


# -- how it works -------------------------------------------------------------------------------


def test_threads_do_not_matter():
    X, y = digits(200)
    searches = [SVCSearchCV(GRID, n_jobs=n_jobs, cv=3).fit(X, y) for n_jobs in (1, 2)]
    assert_same_scores(*searches)


@pytest.mark.slow
@pytest.mark.usefixtures("never_fitted")
@pytest.mark.parametrize("cache_size", [0.01, 3.0])
def test_small_memory(cache_size):
    X, y = breast_cancer()
    search = SVCSearchCV(GRID, estimator=SVC(cache_size=cache_size), cv=3).fit(X, y)
    reference = SVCSearchCV(GRID, cv=3).fit(X, y)
    assert_same_scores(search, reference, 2e-3)


@pytest.mark.usefixtures("never_fitted")
def test_unsettled_paths_are_certified(monkeypatch):
    """A problem that float32 does not settle goes on in float64."""
    X, y = iris()
    reference = SVCSearchCV(GRID).fit(X, y)

    def give_up(self):
        self.status = Status.STALLED
        yield

    monkeypatch.setattr(SeededSMORun, "steps", give_up)
    assert_same_scores(SVCSearchCV(GRID).fit(X, y), reference)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("kind", ["svc", "svr"])
@on_one_blas_thread
def test_hard_paths(kind, bias, monkeypatch):
    """A large C with an ill-conditioned matrix takes every means that a path has."""
    used = {"advance": 0, "raise_walls": 0, "inside": 0}
    for name in used:
        method = getattr(Seed, name)

        def counted(self, *args, name=name, method=method):
            used[name] += 1
            return method(self, *args)

        monkeypatch.setattr(Seed, name, counted)
    random, n = np.random.default_rng(0), 300
    X = random.normal(size=(n, 3))
    signal = np.sin(3 * X[:, 0]) + 0.5 * random.normal(size=n)
    K = np.exp(-1.0 * ((X[:, None] - X) ** 2).sum(axis=2)).astype(np.float32)
    weight = random.uniform(0, 2, n) * (np.arange(n) % 5 > 0)
    seed, watch = None, Watch(tol=1e-3)
    for C in (1.0, 30.0, 1e3):
        if kind == "svc":
            problem = duals.c_svc(np.arange(n), np.sign(signal), C * weight, bias=bias)
        else:
            problem = duals.epsilon_svr(np.arange(n), signal, C * weight, 0.1, bias=bias)
        block = K if kind == "svc" else np.hstack([K, K])
        seed = seed or Seed(block, problem)
        solution = drive(SeededSMO().begin(problem, watch, seed=seed), watch)
        assert solution.status is Status.CONVERGED
        beta = solution.beta
        assert (beta >= problem.lower).all()
        assert (beta <= problem.upper).all()
        assert not bias or abs(beta.sum()) < 1e-6 * C
        v = problem.scores(K.astype(np.float64) @ problem.on_rows(beta, n))
        highest = v[problem.may_rise(beta)].max()
        lowest = v[problem.may_fall(beta)].min()
        violation = highest - lowest if bias else max(highest, -lowest)
        assert violation <= 1e-3
    assert all(used.values()), used


@pytest.mark.parametrize("constrained", [True, False])
def test_hastened_steps(constrained):
    """Steps along what was done keep to the constraint and to the walls, and save steps."""
    random, n = np.random.default_rng(0), 200
    X, y = random.normal(size=(n, 2)), np.sign(random.normal(size=n))
    K = np.exp(-0.3 * ((X[:, None] - X) ** 2).sum(axis=2)).astype(np.float32)
    problem = duals.c_svc(np.arange(n), y, np.full(n, 100.0), bias=constrained)
    taken = []
    for hastened in (True, False):
        beta, score = problem.start.copy(), -problem.linear.astype(np.float32)
        given = np.arange(n), problem.variables, problem.n_groups, beta, K, K.diagonal().copy()
        block, advance = Block.among(*given, score), conjugate_steps if hastened else steps_among
        code, steps = advance(constrained, block, np.float32(0.01), 10**6)
        beta = block.beta
        assert code == CONVERGED
        assert (beta >= problem.lower).all()
        assert (beta <= problem.upper).all()
        assert not constrained or abs(beta.sum()) < 1e-8
        v = -problem.linear - K.astype(np.float64) @ beta
        highest = v[problem.may_rise(beta)].max()
        lowest = v[problem.may_fall(beta)].min()
        assert (highest - lowest if constrained else max(highest, -lowest)) <= 0.02
        taken.append(steps)
    assert taken[0] < taken[1]


def test_hopeless_candidates_are_dropped():
    X, y = breast_cancer()
    search = SVCSearchCV(GRID, prune_margin=0.05, return_train_score=True).fit(X, y)
    reference = SVCSearchCV(GRID).fit(X, y)
    scores = reference.cv_results_["mean_test_score"]
    dropped = np.isnan(search.cv_results_["mean_test_score"])
    assert 0 < search.n_pruned_ == dropped.sum() < len(scores)
    assert reference.n_pruned_ == 0
    np.testing.assert_array_equal(search.cv_results_["mean_test_score"][~dropped], scores[~dropped])
    assert search.best_params_ == reference.best_params_
    first = [reference.cv_results_[f"split{k}_test_score"] for k in (0, 1)]
    leader = np.argmax(first[0] + first[1])
    behind = np.logical_and(*[score[leader] - score > 0.05 for score in first])
    np.testing.assert_array_equal(dropped, behind)
    assert np.isnan(search.cv_results_["split2_train_score"][dropped]).all()


def test_default_grids():
    X, y = breast_cancer(150)
    search = SVCSearchCV(cv=3).fit(X, y)
    assert search.param_grid_["C"] == [0.1, 1.0, 10.0, 100.0, 1000.0]
    assert len(search.param_grid_["gamma"]) == 7
    assert search.param_grid_["gamma"][3] == pytest.approx(1 / (X.shape[1] * X.var()))
    pipeline = make_pipeline(StandardScaler(), SVC())
    search = SVCSearchCV(estimator=pipeline, cv=3).fit(X, y)
    assert search.param_grid_["svc__gamma"][3] == pytest.approx(1 / X.shape[1])
    assert set(SVCSearchCV(estimator=SVC(kernel="linear"), cv=3).fit(X, y).param_grid_) == {"C"}
    search = SVRSearchCV(estimator=SVR(kernel=Laplacian()), cv=3).fit(*diabetes(60))
    assert set(search.param_grid_) == {"C", "kernel__gamma"}


def test_scikit_learn_manners():
    search = SVCSearchCV({"C": [1, 2]}, estimator=SVC(tol=1e-4), cv=3, scoring="f1_macro")
    copy = clone(search)
    assert copy.get_params()["estimator__tol"] == 1e-4
    assert copy.set_params(cv=4).cv == 4
    assert "SVCSearchCV" in repr(search)
    X, y = iris()
    assert search.fit(X, y) is search
    assert search.n_features_in_ == 4
    assert search.refit_time_ > 0
    assert (search.cv_results_["mean_fit_time"] > 0).all()
    assert search.__sklearn_tags__().estimator_type == "classifier"
    assert SVRSearchCV().__sklearn_tags__().estimator_type == "regressor"
    assert search.get_metadata_routing() is not None
    assert not hasattr(search, "predict_proba")


def test_groups_and_verbosity(capsys):
    X, y = iris()
    groups = np.arange(len(y)) % 10
    search = SVCSearchCV({"C": [1]}, cv=GroupKFold(5), verbose=1).fit(X, y, groups=groups)
    reference = GridSearchCV(SVC(), {"C": [1]}, cv=GroupKFold(5)).fit(X, y, groups=groups)
    assert_same_scores(search, reference)
    assert "5 folds for each of 1 candidates" in capsys.readouterr().out


def test_sharing_is_shared(monkeypatch):
    """Distances once, a matrix per gamma, a path per fold and pair."""
    counts = {"prepare": 0, "of": 0, "begin": 0}

    def counting(kind, name):
        method = getattr(kind, name)

        def counted(self, *args, **kwargs):
            counts[name] += 1
            return method(self, *args, **kwargs)

        monkeypatch.setattr(kind, name, counted)

    counting(Matrices, "prepare")
    counting(Matrices, "of")
    counting(SeededSMO, "begin")
    X, y = iris()
    SVCSearchCV(GRID, cv=4, n_jobs=1).fit(X, y)
    assert counts == {"prepare": 1, "of": 3, "begin": 4 * 3 * 9}


def test_every_C_starts_from_the_answer_of_the_last(monkeypatch):
    starts = []
    begin = SeededSMO.begin

    def watched(self, problem, watch, seed):
        starts.append(bool(seed.beta.any()))
        return begin(self, problem, watch, seed=seed)

    monkeypatch.setattr(SeededSMO, "begin", watched)
    X, y = iris()
    SVCSearchCV({"C": [0.1, 1, 10], "gamma": [0.5]}, cv=4, n_jobs=1).fit(X, y)
    assert len(starts) == 4 * 3 * 3  # folds, pairs, costs
    assert np.mean(starts) == pytest.approx(2 / 3)


def test_balanced_weights_are_those_of_the_fold(random):
    X, y = random.normal(size=(300, 2)), np.arange(300) % 2
    X[y == 1] += 0.8
    some = np.concatenate([np.flatnonzero(y == 0)[:20], np.flatnonzero(y == 1)[:130]])
    others = np.setdiff1d(np.arange(300), some)
    splits, grid = [(some, others), (others, some)], {"C": [0.3, 3.0]}
    ours = SVCSearchCV(grid, estimator=SVC(class_weight="balanced"), cv=splits).fit(X, y)
    reference = GridSearchCV(SVC(class_weight="balanced"), grid, cv=splits).fit(X, y)
    of_all = GridSearchCV(SVC(), grid, cv=splits).fit(X, y)  # as many of each: no weights
    for name in ("split0_test_score", "split1_test_score"):
        np.testing.assert_allclose(ours.cv_results_[name], reference.cv_results_[name])
    assert (ours.cv_results_["mean_test_score"] != of_all.cv_results_["mean_test_score"]).any()


def test_routed_metadata():
    X, y = breast_cancer(150)
    weight = np.linspace(0.1, 2, len(y))
    with config_context(enable_metadata_routing=True):
        scoring = make_scorer(accuracy_score).set_score_request(sample_weight=True)
        machine = SVC().set_fit_request(sample_weight=True)
        given = {"param_grid": {"C": [0.1, 10]}, "scoring": scoring, "cv": GroupKFold(3)}
        fitted = [
            library.GridSearchCV(machine, **given).fit(
                X, y, sample_weight=weight, groups=np.arange(len(y)) % 7
            )
            for library in (maxmargin, model_selection)
        ]
        assert_same_scores(*fitted)
        scores = [search.score(X, y, sample_weight=weight) for search in fitted]
    assert scores[0] == scores[1] != fitted[0].score(X, y)
    assert fitted[0].sharing_.shared.all()


# -- the picture --------------------------------------------------------------------------------


def test_plot():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    X, y = iris()
    search = SVCSearchCV(GRID, cv=3).fit(X, y)
    ax = search.plot()
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("C", "gamma")
    best = search.best_params_
    assert ax.get_title().startswith(f"C = {best['C']:g}, gamma = {best['gamma']:g}")
    _, given = plt.subplots()
    search = SVCSearchCV({"C": [0.1, 1, 10], "gamma": [0.1]}, cv=3).fit(X, y)
    assert search.plot(given) is given
    assert given.get_xlabel() == "C"
    assert given.get_xscale() == "log"
    several = SVCSearchCV(GRID, cv=3, scoring=["accuracy", "f1_macro"], refit="f1_macro").fit(X, y)
    assert several.plot().figure.axes[1].get_ylabel() == "mean test f1_macro"
    plt.close("all")
    three = SVCSearchCV({**GRID, "coef0": [0.0, 1.0]}, cv=3).fit(X, y)
    with pytest.raises(ValueError, match="one or two parameters vary"):
        three.plot()
    with pytest.raises(Exception, match="not fitted"):
        SVCSearchCV(GRID).plot()


def test_plot_of_random_and_halving_searches():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    X, y = iris()
    drawn = {"C": loguniform(0.1, 100), "gamma": loguniform(0.01, 1)}
    search = maxmargin.RandomizedSearchCV(SVC(), drawn, n_iter=8, random_state=0).fit(X, y)
    ax = search.plot()
    assert len(ax.collections[0].get_offsets()) == 8
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
    (ring,) = ax.lines
    assert ring.get_xdata()[0] == search.best_params_["C"]
    search = maxmargin.HalvingGridSearchCV(SVC(), GRID, random_state=0).fit(X, y)
    ax, best = search.plot(), search.best_params_
    assert ax.get_title().startswith(f"C = {best['C']:g}, gamma = {best['gamma']:g}")
    plt.close("all")


def test_plot_of_what_is_no_number_and_of_one_bad_score():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    X, y = iris()
    kernels = ["linear", 0.5 * RBF(0.5) + Linear(), "rbf"]
    ax = SVCSearchCV({"C": [1, 10], "kernel": kernels}, cv=3).fit(X, y).plot()
    shown = [label.get_text() for label in ax.get_yticklabels()]
    assert shown == ["linear", "0.5 * RBF(gamma=0.5) + Linear()", "rbf"]
    ax = SVCSearchCV({"gamma": ["scale", 0.1]}, cv=3).fit(X, y).plot()
    assert [label.get_text() for label in ax.get_xticklabels()] == ["scale", "0.1"]
    search = SVCSearchCV(GRID, cv=3).fit(X, y)
    others = np.sort(search.cv_results_["mean_test_score"])[1:]
    search.cv_results_["mean_test_score"][0] = -101.0
    (image,) = search.plot().images
    assert image.get_clim()[0] > 0.5 * others.min()
    assert image.colorbar.extend == "min"
    plt.close("all")


# -- time, threads and other people ---------------------------------------------------------------


def test_either_order():
    estimator, grid = SVC(tol=1e-4), {"C": [1, 2]}
    for search in (
        SVCSearchCV(estimator, grid),
        SVCSearchCV(estimator, param_grid=grid),
        SVCSearchCV(grid, estimator),
        SVCSearchCV(grid, estimator=estimator),
    ):
        assert search.estimator is estimator
        assert search.param_grid is grid
        assert clone(search).param_grid == grid
    assert SVCSearchCV([grid]).estimator is None
    for wrong in (lambda: SVCSearchCV(estimator, grid, 5), lambda: SVCSearchCV(pre_dispatch=2)):
        with pytest.raises(TypeError, match=r"SVCSearchCV\(estimator, param_grid, \.\.\.\)"):
            wrong()


def test_the_search_has_a_time_limit(monkeypatch):
    X, y = breast_cancer(200)
    clock, scored = [0.0], []
    monkeypatch.setattr(Monitor, "seconds", property(lambda monitor: clock[0]))

    def scorer(machine, X, y):
        scored.append(machine.score(X, y))
        clock[0] = 10.0 if len(scored) >= wanted else 0.0
        return scored[-1]

    for machine in (SVC(), SVC(max_iter=10**6)):  # with work that is shared, and without
        search = SVCSearchCV(machine, GRID, cv=3, scoring=scorer, time_limit=5.0)
        scored.clear()
        wanted, clock[0] = 10, 0.0
        with pytest.warns(ConvergenceWarning, match=r"stopped at time_limit=5 s"):
            search.fit(X, y)
        means = search.cv_results_["mean_test_score"]
        assert np.isfinite(means).sum() == 3
        assert search.best_score_ == np.nanmax(means)
        assert search.best_estimator_.certificate_.converged
        scored.clear()
        wanted, clock[0] = 2, 0.0
        with pytest.raises(TimeoutError, match="before any candidate"):
            search.fit(X, y)
        assert np.isnan(search.cv_results_["mean_test_score"]).all()


@pytest.mark.parametrize(
    ("data", "scoring"), [(iris, "neg_log_loss"), (breast_cancer, "neg_brier_score")]
)
def test_probabilities_are_shared(data, scoring, monkeypatch):
    X, y = data()
    machine = SVC(probability=True, random_state=0, class_weight="balanced")
    grid = {"C": [1, 10, 100], "gamma": [0.01, 0.1]}  # with free variables: the bias is unique
    reference = GridSearchCV(machine, grid, scoring=scoring, cv=3).fit(X, y)

    def refuse(self, X, y):
        raise AssertionError("really fitted")

    monkeypatch.setattr(SVC, "fit", refuse)
    search = SVCSearchCV(machine, grid, scoring=scoring, cv=3, refit=False).fit(X, y)
    assert_same_scores(search, reference, 2e-3)


@pytest.mark.parametrize("scoring", ["accuracy", ["accuracy", "f1_macro"]])
def test_levels_of_verbosity(scoring, capsys):
    X, y = iris()
    lines = []
    for kind in (SVCSearchCV, GridSearchCV):
        for verbose in (1, 2, 3):
            kind(SVC(), {"C": [1, 10]}, cv=2, scoring=scoring, refit=False, verbose=verbose).fit(
                X, y
            )
            told = re.sub(r"\.{3,}|[\d.]+s\b", "", capsys.readouterr().out)
            lines.append(sorted(told.splitlines()))
    assert lines[:3] == lines[3:]
    assert [len(told) for told in lines[:3]] == [1, 5, 5]
    assert "[CV 2/2] END C=10;" in lines[2][-2] + lines[2][-1]


def test_a_search_that_is_not_fitted_says_so_with_and_without_an_estimator():
    X = np.array([[0.0], [1.0]])
    for search in (SVCSearchCV(param_grid={"C": [1.0]}), SVCSearchCV(SVC(), {"C": [1.0]})):
        with pytest.raises(NotFittedError, match="SVCSearchCV instance is not fitted yet"):
            search.predict(X)
        assert not hasattr(search, "predict_proba")  # probability=False
        assert not hasattr(search, "nonsense")
        assert not hasattr(clone(search).set_params(refit=False), "predict")


# -- scikit-learn's conventions -----------------------------------------------------------------


class Silent(DummyClassifier):
    """An estimator whose fit returns nothing."""

    def fit(self, X, y):
        super().fit(X, y)


def test_what_fit_returns_is_not_used():
    X, y = iris()
    search = maxmargin.GridSearchCV(Silent(), {"strategy": ["prior"]}, cv=2).fit(X, y)
    assert search.best_estimator_.predict(X).shape == y.shape


@pytest.mark.parametrize("scoring", [None, ["accuracy", "f1_macro"]])
def test_verbose_prints_train_scores(scoring, capsys):
    X, y = iris()
    options = {"cv": 2, "verbose": 3, "return_train_score": True, "scoring": scoring}
    printed = []
    for search in (maxmargin.GridSearchCV, GridSearchCV):
        search(SVC(), {"C": [1.0]}, refit=False, **options).fit(X, y)
        lines = [line for line in capsys.readouterr().out.splitlines() if "[CV " in line]
        printed.append([line.partition("total time")[0].replace(".", "") for line in lines])
    assert printed[0] == printed[1]


def test_ours_in_the_place_of_theirs(monkeypatch):
    monkeypatch.setattr("sklearn.model_selection.GridSearchCV", maxmargin.GridSearchCV)
    X, y = iris()
    assert maxmargin.GridSearchCV(SVC(), {"C": [1.0]}, cv=2).fit(X, y).score(X, y) > 0.9


class OtherPipeline(Pipeline):
    """A pipeline with rules of its own, as imbalanced-learn's."""


def test_a_pipeline_of_another_kind_is_fitted_by_its_own_rules():
    X, y = iris()
    pipeline = OtherPipeline([("scale", StandardScaler()), ("svc", SVC())])
    search = maxmargin.GridSearchCV(pipeline, {"svc__C": [1.0, 10.0]}, cv=2).fit(X, y)
    assert "OtherPipeline, is fitted by its own rules" in search.sharing_.why(0)
