"""Parity with scikit-learn: objective, predictions and support vectors at the same ``tol``."""

import warnings
from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import svm
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler

import maxmargin
from maxmargin.gram import Definiteness
from maxmargin.multiclass import DAG, OneVsOne, OneVsRest

RANDOM = np.random.default_rng(3)
MACHINES = {
    "SVC": {"C": 2.0},
    "NuSVC": {"nu": 0.3},
    "SVR": {"C": 5.0, "epsilon": 0.2},
    "NuSVR": {"C": 5.0, "nu": 0.4},
    "OneClassSVM": {"nu": 0.25},
}
KERNELS = {
    "linear": {},
    "poly": {"degree": 2, "coef0": 1.0},
    "rbf": {"gamma": 0.05},
    "sigmoid": {"gamma": 0.005},
}


def data(machine):
    if machine.endswith("SVR"):
        X, y = load_diabetes(return_X_y=True)
        X, y = X[:110], (y[:110] - y.mean()) / y.std()
    else:
        X, y = load_breast_cancer(return_X_y=True)
        X, y = X[:130], y[:130]
    # away from the origin, where the one-class machine of a linear kernel has something to find
    return StandardScaler().fit_transform(X) + 3.0 * (machine == "OneClassSVM"), y


def dual_objective(model, K, y):
    """Dual value (to be maximised) of a fitted binary or single machine, from its coefficients."""
    beta = np.zeros(len(K))
    coef = model.dual_coef_
    beta[model.support_] = (coef.toarray() if sp.issparse(coef) else coef)[0]
    name = type(model).__name__
    if name == "NuSVC":  # undo the scaling by rho: the coefficients sum to nu N
        weight = getattr(model, "_total", len(K))
        beta *= model.nu * weight / np.abs(beta).sum()
    quadratic = 0.5 * beta @ K @ beta
    if name == "SVC":
        return np.abs(beta).sum() - quadratic
    if name == "SVR":
        return y @ beta - model.epsilon * np.abs(beta).sum() - quadratic
    return (y @ beta if name == "NuSVR" else 0.0) - quadratic


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e2])
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("machine", MACHINES)
def test_binary_and_single_machines(machine, kernel, scale, random):
    X, y = data(machine)
    X = X * scale
    parameters = {**MACHINES[machine], **KERNELS[kernel], "kernel": kernel}
    if "gamma" in parameters:
        parameters["gamma"] /= scale**2
    if kernel == "linear":  # tol is in the unit of the decision values, which shrinks with X
        unit = scale**2 if machine in ("NuSVC", "OneClassSVM") else min(scale, 1.0)
        parameters["tol"] = 1e-3 * unit
    for weighted, container, dtype in product(
        (False, True), (np.asarray, sp.csr_matrix), (np.float32, np.float64)
    ):
        points = container(X.astype(dtype))
        weight = random.uniform(0.2, 2.0, size=len(y)) if weighted else None
        ours = getattr(maxmargin, machine)(**parameters)
        theirs = getattr(svm, machine)(**parameters, max_iter=400_000)
        ours.fit(points, y, sample_weight=weight)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            theirs.fit(points, y, sample_weight=weight)
        total = len(y) if weight is None else weight.sum()
        ours._total = theirs._total = total
        K = ours.kernel_(X.astype(dtype))
        assert ours.certificate_.converged
        assert ours.support_vectors_.dtype == dtype
        value, reference = dual_objective(ours, K, y), dual_objective(theirs, K, y)
        assert ours.certificate_.dual == pytest.approx(value, rel=1e-9)
        if ours.certificate_.definiteness is Definiteness.INDEFINITE:
            # two stationary points need not be the same one, but on LIBSVM's path they are near
            assert value >= reference - 0.05 * abs(reference)
            continue
        assert value >= reference - 1e-5 * abs(reference)
        if theirs.fit_status_ == 0:
            compare_predictions(ours, theirs, points)
            compare_support(ours, theirs, points, y)


def compare_predictions(ours, theirs, points):
    values = "decision_function" if hasattr(ours, "decision_function") else "predict"
    mine, other = getattr(ours, values)(points), getattr(theirs, values)(points)
    scale = max(np.abs(mine).max(), 1.0 if isinstance(ours, maxmargin.SVC | maxmargin.SVR) else 0.0)
    certain = np.abs(mine) > 0.02 * scale
    if values == "decision_function":
        np.testing.assert_array_equal(
            ours.predict(points)[certain], theirs.predict(points)[certain]
        )
    np.testing.assert_allclose(mine, other, rtol=0, atol=0.02 * scale)


def compare_support(ours, theirs, points, y):
    """Support sets may differ only in points that lie on the margin, to a few tol."""
    differing = np.setxor1d(ours.support_, theirs.support_)
    name = type(ours).__name__
    if name == "SVC":
        signs = np.where(y == ours.classes_[1], 1, -1)
        distance = signs * theirs.decision_function(points) - 1
    elif name == "SVR":
        distance = np.abs(theirs.predict(points) - y) - theirs.epsilon
    else:
        assert len(differing) <= max(3, 0.1 * len(theirs.support_))
        return
    assert (np.abs(distance[differing]) <= 20 * ours.tol).all()


@pytest.mark.parametrize("load", [load_iris, load_wine, load_digits])
@pytest.mark.parametrize(
    "parameters",
    [
        {"C": 10.0},
        {"kernel": "linear", "C": 0.1},
        {"class_weight": "balanced"},
        {"decision_function_shape": "ovo"},
        {"break_ties": True},
        {"kernel": "poly", "coef0": 1.0},
    ],
    ids=str,
)
def test_several_classes(load, parameters):
    X, y = load(return_X_y=True)
    X = StandardScaler().fit_transform(X[::3])
    y = np.array([f"class {label}" for label in y[::3]])
    ours = maxmargin.SVC(**parameters, tol=1e-6).fit(X, y)
    theirs = svm.SVC(**parameters, tol=1e-6).fit(X, y)
    assert ours.certificate_.converged
    assert len(ours.certificate_.parts) == len(ours.intercept_)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-4)
    np.testing.assert_array_equal(ours.classes_, theirs.classes_)
    np.testing.assert_allclose(ours.class_weight_, theirs.class_weight_)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-3)
    coefficients = np.zeros((2, len(ours.classes_) - 1, len(X)))  # by row: a tiny one may be none
    for model, own in zip((ours, theirs), coefficients, strict=True):
        assert model.n_support_.sum() == len(model.support_)
        order = np.lexsort((np.arange(len(y)), y))  # by class, and as they came
        np.testing.assert_array_equal(model.support_, order[np.isin(order, model.support_)])
        np.testing.assert_array_equal(np.unique(y[model.support_]), model.classes_)
        own[:, model.support_] = model.dual_coef_
    np.testing.assert_allclose(coefficients[0], coefficients[1], atol=1e-2)
    if parameters.get("kernel") == "linear":
        np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-3)
        assert not ours.coef_.flags.writeable


def test_tied_votes_go_to_the_first_class():
    circle = np.array([[1.0, -1.0, 1.0]])  # 0 beats 1, 2 beats 0, 1 beats 2
    assert OneVsOne(3).decode(circle).tolist() == [0]
    assert OneVsOne(3).scores(circle).argmax(axis=1).tolist() == [0]
    assert OneVsOne(3).decode(np.zeros((1, 3))).tolist() == [0]
    for scheme in (OneVsOne(2), OneVsRest(2), DAG(2)):  # as decision_function > 0 says
        assert scheme.decode(np.array([[0.0], [-0.1], [0.1]])).tolist() == [0, 0, 1]


@pytest.mark.parametrize("container", [sp.csr_matrix, sp.csr_array])
def test_sparse_attributes_are_sparse_as_in_scikit_learn(container):
    X, y = load_iris(return_X_y=True)
    ours, theirs = maxmargin.SVC(kernel="linear"), svm.SVC(kernel="linear")
    ours.fit(container(X), y)
    theirs.fit(container(X), y)
    for name in ("support_vectors_", "dual_coef_", "coef_"):
        assert sp.issparse(getattr(ours, name))
        assert getattr(ours, name).shape == getattr(theirs, name).shape
    assert type(ours.support_vectors_) is container
    np.testing.assert_allclose(ours.coef_.toarray(), theirs.coef_.toarray(), atol=5e-3)
    dense = maxmargin.SVC(kernel="linear").fit(X, y)
    np.testing.assert_allclose(dense.decision_function(container(X)), dense.decision_function(X))


@pytest.mark.parametrize("load", [load_breast_cancer, load_iris])
@pytest.mark.parametrize("machine", ["SVC", "NuSVC"])
@pytest.mark.filterwarnings("ignore:The `probability` parameter was deprecated")
def test_probabilities(machine, load):
    X, y = load(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    parameters = {
        "probability": True,
        "random_state": 0,
        **({"nu": 0.2} if "Nu" in machine else {}),
    }
    ours = getattr(maxmargin, machine)(**parameters).fit(X, y)
    theirs = getattr(svm, machine)(**parameters).fit(X, y)
    p = ours.predict_proba(X)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    np.testing.assert_allclose(np.exp(ours.predict_log_proba(X)), p)
    assert ours.probA_.shape == ours.intercept_.shape
    # the folds are drawn differently, the probabilities mean the same
    assert np.abs(p - theirs.predict_proba(X)).mean() < 0.03
    again = getattr(maxmargin, machine)(**parameters).fit(X, y)
    np.testing.assert_array_equal(again.predict_proba(X), p)
    other = getattr(maxmargin, machine)(**{**parameters, "random_state": 1}).fit(X, y)
    assert (other.predict_proba(X) != p).any()
    with pytest.raises(AttributeError, match="predict_proba"):
        ours.set_params(probability=False).predict_proba(X)


@pytest.mark.filterwarnings("ignore:The `probability` parameter was deprecated")
def test_sigmoids_are_fitted_to_values_of_rows_that_were_held_out(random):
    """Labels by chance, learnt by heart: only rows that were trained on look certain."""
    X, y = random.normal(size=(200, 2)), random.integers(2, size=200)
    model = maxmargin.SVC(C=100.0, gamma=50.0, probability=True, random_state=0).fit(X, y)
    assert model.score(X, y) > 0.95
    assert np.abs(model.predict_proba(X) - 0.5).max() < 0.3


@pytest.mark.filterwarnings("ignore:The `probability` parameter was deprecated")
def test_folds_of_probabilities_have_the_cost_of_the_whole():
    X, y = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    options = {"probability": True, "random_state": 0, "tol": 1e-6}
    C = 0.1
    by_lam = maxmargin.SVC(lam=1 / (2 * len(X) * C), **options).fit(X, y)
    by_C = maxmargin.SVC(C=C, **options).fit(X, y)
    np.testing.assert_allclose(by_lam.probA_, by_C.probA_, rtol=1e-4)
    np.testing.assert_allclose(by_lam.probB_, by_C.probB_, rtol=1e-4)


def test_a_callable_and_a_precomputed_kernel_give_the_same_machine():
    X, y = load_iris(return_X_y=True)
    reference = maxmargin.SVC(kernel="linear", tol=1e-8).fit(X, y)
    called = maxmargin.SVC(kernel=lambda a, b: a @ b.T, tol=1e-8).fit(X, y)
    given = maxmargin.SVC(kernel="precomputed", tol=1e-8).fit(X @ X.T, y)
    np.testing.assert_allclose(
        called.decision_function(X), reference.decision_function(X), atol=1e-6
    )
    np.testing.assert_allclose(
        given.decision_function(X @ X.T), reference.decision_function(X), atol=1e-6
    )
    assert given.support_vectors_.size == 0


def test_words_can_be_classified_by_a_function():
    words = ["aaa", "aab", "aba", "bbb", "bba", "bab"]
    count = lambda A, B: np.array([[a.count("a") * b.count("a") for b in B] for a in A])  # noqa: E731
    model = maxmargin.SVC(kernel=count, C=10).fit(words, [1, 1, 1, 0, 0, 0])
    assert model.predict(["aaaa", "b"]).tolist() == [1, 0]


def test_one_class_scores():
    X, _ = load_iris(return_X_y=True)
    ours = maxmargin.OneClassSVM(nu=0.2, tol=1e-8).fit(X)
    theirs = svm.OneClassSVM(nu=0.2, tol=1e-8).fit(X)
    np.testing.assert_allclose(ours.score_samples(X), theirs.score_samples(X), atol=1e-5)
    np.testing.assert_allclose(ours.offset_, theirs.offset_, atol=1e-5)
    inside = np.abs(ours.decision_function(X)) > 1e-4
    np.testing.assert_array_equal(ours.predict(X)[inside], theirs.predict(X)[inside])


def test_rows_of_weight_zero_take_no_part_in_probabilities():
    X, y = load_breast_cancer(return_X_y=True)
    X, y = StandardScaler().fit_transform(X[:120]), y[:120]
    weight = np.where(np.arange(120) < 100, 1.0, 0.0)
    flipped = np.where(weight > 0, y, 1 - y)
    settings = {"probability": np.True_, "random_state": 0}
    first = maxmargin.SVC(**settings).fit(X, y, sample_weight=weight)
    second = maxmargin.SVC(**settings).fit(X, flipped, sample_weight=weight)
    np.testing.assert_array_equal(first.predict_proba(X), second.predict_proba(X))


def test_unfinished_folds_warn():
    X, y = load_breast_cancer(return_X_y=True)
    fine = maxmargin.SVC(gamma=0.05).fit(X, y).n_iter_.max()
    with pytest.warns(ConvergenceWarning) as caught:
        maxmargin.SVC(gamma=0.05, probability=True, max_iter=int(fine) // 30).fit(X, y)
    assert any("folds for probability" in str(warning.message) for warning in caught)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("epsilon", [1e-3, 0.1, 1.0])
def test_a_hard_tube_is_the_limit_of_large_costs(epsilon, intercept):
    X = RANDOM.normal(size=(50, 2))
    t = np.sin(X[:, 0]) + X[:, 1] ** 2
    same = {"kernel": "rbf", "gamma": 1.0, "epsilon": epsilon, "fit_intercept": intercept}
    weight = np.linspace(0.0, 2.0, 50)
    hard = maxmargin.SVR(C=np.inf, tol=1e-6, **same).fit(X, t, weight)
    soft = maxmargin.SVR(C=1e6, tol=1e-6, **same).fit(X[1:], t[1:])
    assert hard.certificate_.converged
    assert np.abs(hard.predict(X) - t)[1:].max() <= epsilon + 1e-6
    assert hard.certificate_.dual == pytest.approx(soft.certificate_.dual, rel=1e-6)
    np.testing.assert_allclose(hard.predict(X), soft.predict(X), atol=1e-5)


def test_a_hard_tube_that_cannot_be_had_is_refused_with_a_bound():
    X, t = np.array([[0.0], [1.0], [2.0]]), np.array([0.0, 1.0, 0.0])
    line = maxmargin.SVR(C=np.inf, kernel="linear", epsilon=0.5).fit(X, t)
    np.testing.assert_allclose(line.coef_, [[0.0]], atol=1e-9)
    with pytest.raises(ValueError, match=r"hard tube .* would need \|\|w\|\| >= .*row"):
        maxmargin.SVR(C=np.inf, kernel="linear", epsilon=0.49).fit(X, t)
