"""Decision trees and extremely randomised ones: exact tests, limits, weights, data, jobs."""

import signal
import time
import warnings
from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn import tree
from sklearn.base import clone
from sklearn.datasets import (
    load_breast_cancer,
    load_diabetes,
    load_digits,
    load_iris,
    make_multilabel_classification,
)
from sklearn.ensemble import ExtraTreesClassifier as ScikitLearnForest
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.class_weight import compute_sample_weight

from maxmargin import (
    AdaBoostClassifier,
    BaggingClassifier,
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    LogitBoostClassifier,
)
from maxmargin.ensemble import BinnedColumns, k_study
from maxmargin.ensemble.trees import growth
from maxmargin.plotting import plot_k_study
from maxmargin.solution import Status
from maxmargin.tree import export_graphviz, export_text, plot_tree

CRITERIA = ["gini", "entropy", "normalised_gain"]


# -- tests -----------------------------------------------------------------------------------------


def impurity(y, weight, criterion):
    if criterion == "squared_error":
        return np.average((y - np.average(y, weights=weight)) ** 2, weights=weight)
    p = np.bincount(y, weights=weight) / weight.sum()
    p = p[p > 0]
    return 1 - (p**2).sum() if criterion == "gini" else -(p * np.log2(p)).sum()


def best_test(X, y, weight, criterion):
    """Try everything: score, feature, threshold and fall of the impurity of the best test."""
    found = []
    here = impurity(y, weight, criterion)
    for f in range(X.shape[1]):
        values = np.unique(X[:, f])
        for low, high in pairwise(values):
            left = X[:, f] <= low
            share = weight[left].sum() / weight.sum()
            sides = (
                impurity(y[left], weight[left], criterion),
                impurity(y[~left], weight[~left], criterion),
            )
            fall = here - share * sides[0] - (1 - share) * sides[1]
            score = fall
            if criterion == "normalised_gain":
                of_test = -share * np.log2(share) - (1 - share) * np.log2(1 - share)
                score = 2 * fall / (here + of_test)
            found.append((score, f, (low + high) / 2, fall))
    best = max(score for score, *_ in found)
    return next(one for one in found if one[0] >= best - 1e-12)


@pytest.mark.parametrize("criterion", [*CRITERIA, "squared_error"])
def test_the_best_of_all_tests(criterion):
    """Tables, lists and sorted rows find what trying everything finds; ties go to the first."""
    random = np.random.default_rng(0)
    for round_ in range(60):
        n = int(random.integers(5, 80))
        X = random.integers(0, [3, 2, 6, 1000], size=(n, 4)).astype(float)
        X[:, 1] *= random.random(n) < 0.1  # few rows differ: a list
        weight = [np.ones(n), random.random(n) + 0.1, random.integers(1, 4, n) * 1.0][round_ % 3]
        if criterion == "squared_error":
            y = random.normal(size=n).round(1)
            model = DecisionTreeRegressor(max_depth=1)
        else:
            y = random.integers(0, 3, n)
            y[:3] = 0, 1, 2
            model = DecisionTreeClassifier(max_depth=1, criterion=criterion)
        tree = model.fit(X, y, weight).tree_
        _, feature, threshold, fall = best_test(X, y, weight, criterion)
        assert (tree.feature[0], tree.threshold[0]) == (feature, pytest.approx(threshold))
        assert tree.nodes.facts[0, 3] / weight.sum() == pytest.approx(fall, abs=1e-12)


def test_thresholds_are_half_way():
    """As in the lecture's ten points, 2.5, 8.5 and 6.5; the first of equally good columns wins."""
    X = np.array(
        [[1, 2], [2, 3], [3, 1], [4, 7], [5, 8], [6, 4], [7, 9], [8, 5], [9, 6], [9, 10.0]]
    )
    y = np.array([1, 1, -1, 1, 1, -1, 1, 1, -1, -1])
    stump = DecisionTreeClassifier(max_depth=1)
    found = set()
    for weight in np.random.default_rng(0).dirichlet(np.ones(10), 200):
        tree = stump.fit(X, y, weight).tree_
        found.add((tree.feature[0], tree.threshold[0]))
    middles = {(f, (a + b) / 2) for f in range(2) for a, b in pairwise(np.unique(X[:, f]))}
    assert {(0, 2.5), (0, 8.5), (1, 6.5)} <= found <= middles
    twins = DecisionTreeClassifier(max_depth=1).fit(np.c_[X[:, 0], X[:, 0]], y)
    assert twins.tree_.feature[0] == 0


@pytest.mark.parametrize("splitter", ["best", "random"])
@pytest.mark.parametrize("K", [1, 3, 4])
def test_K_columns_are_drawn_uniformly(splitter, K):
    """Columns that are alike are installed equally often, whatever K leaves out of five."""
    random = np.random.default_rng(0)
    used = np.zeros(5)
    for seed in range(300):
        X, y = random.random((8, 5)), random.random(8)  # no ties
        tree = DecisionTreeRegressor(
            splitter=splitter, max_features=K, max_depth=1, random_state=seed
        )
        used[tree.fit(X, y).tree_.feature[0]] += 1
    assert ((used - 60) ** 2 / 60).sum() < 25  # chi squared of four degrees


def test_exclusive_or_is_learned():
    """A first test that gains nothing is installed nevertheless."""
    X, y = np.array([[0, 0], [0, 1], [1, 0], [1, 1.0]]), [0, 1, 1, 0]
    assert DecisionTreeClassifier().fit(X, y).score(X, y) == 1
    assert (
        DecisionTreeClassifier(max_depth=1, min_impurity_decrease=1e-9).fit(X, y).get_n_leaves()
        == 1
    )


@pytest.mark.parametrize("regression", [False, True])
def test_random_tests_are_uniform_and_the_best_of_K(regression):
    """K = 1: the column uniform among those that vary, the cut uniform between its ends."""
    random = np.random.default_rng(0)
    X = np.c_[random.random(50), np.ones(50), 10 * random.random(50)]
    X[:2] = [[0, 1, 0], [1, 1, 10]]
    y = (X[:, 0] > 0.5).astype(float if regression else int)
    model = DecisionTreeRegressor if regression else DecisionTreeClassifier
    tests = []
    for seed in range(400):
        tree = (
            model(splitter="random", max_features=1, max_depth=1, random_state=seed).fit(X, y).tree_
        )
        tests.append((tree.feature[0], tree.threshold[0]))
    features, thresholds = np.array(tests).T
    assert set(features) == {0, 2}
    assert abs((features == 0).mean() - 0.5) < 0.1
    for f, length in ((0, 1.0), (2, 10.0)):
        own = np.sort(thresholds[features == f]) / length
        assert np.abs(own - np.linspace(0, 1, len(own))).max() < 0.15  # Kolmogorov and Smirnov
    more = [
        model(splitter="random", max_features=2, max_depth=1, random_state=seed).fit(X, y)
        for seed in range(100)
    ]
    assert np.mean([tree.tree_.feature[0] == 0 for tree in more]) > 0.9


# -- data ------------------------------------------------------------------------------------------


def some_data(n=300):
    random = np.random.default_rng(1)
    X = random.integers(1, 30, size=(n, 6)) * (random.random((n, 6)) < [1, 0.5, 0.1, 0.1, 0.05, 1])
    return X.astype(float), np.c_[random.integers(0, 3, n), random.integers(0, 2, n)]


TREES = [
    DecisionTreeClassifier(),
    DecisionTreeClassifier(criterion="entropy"),
    DecisionTreeClassifier(splitter="random", max_features=2, random_state=0),
    DecisionTreeRegressor(),
    DecisionTreeRegressor(splitter="random", random_state=1),
    ExtraTreesClassifier(5, random_state=0),
    ExtraTreesRegressor(5, random_state=0),
]


@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("model", TREES, ids=repr)
def test_the_same_tree_of_any_data(model, several):
    """Dense, CSR, float32, data frames: one tree, the same answers."""
    X, Y = some_data()
    Y = Y if several else Y[:, 0]
    answers = clone(model).fit(X, Y).predict(X)
    for other in (sp.csr_matrix(X), sp.csc_array(X), X.astype(np.float32), np.asfortranarray(X)):
        again = clone(model).fit(other, Y)
        assert (again.predict(other) == answers).all()
        assert (again.predict(X) == answers).all()
    names = [f"x{f}" for f in range(6)]
    for frame in (pd.DataFrame(X, columns=names), pl.DataFrame(X, schema=names)):
        framed = clone(model).fit(frame, Y)
        assert (framed.predict(frame) == answers).all()
        assert list(framed.feature_names_in_) == names
    if several and hasattr(model, "predict_proba"):
        parts = clone(model).fit(X, Y).predict_proba(X)
        assert [part.shape[1] for part in parts] == [3, 2]
        assert all(np.allclose(part.sum(axis=1), 1) for part in parts)


@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("model", [DecisionTreeClassifier(), DecisionTreeRegressor()], ids=repr)
def test_weights_are_replicates(model, several):
    X, Y = some_data()
    Y = Y if several else Y[:, 0]
    weight = np.random.default_rng(0).integers(0, 3, len(X))
    rows = np.repeat(np.arange(len(X)), weight)
    weighed = clone(model).fit(X, Y, weight)
    repeated = clone(model).fit(X[rows], Y[rows])
    assert np.allclose(weighed.predict(X), repeated.predict(X))
    assert weighed.tree_.node_count == repeated.tree_.node_count


@pytest.mark.parametrize("max_bins", [None, 16, 2])
@pytest.mark.parametrize("splitter", ["best", "random"])
def test_rows_end_where_codes_say(max_bins, splitter):
    """Thresholds part values as cuts part codes, for bins, too; leaves of training are known."""
    random = np.random.default_rng(0)
    X = random.normal(size=(2000, 3))
    y = (X[:, 0] > 0.3).astype(int)
    for data in (X, sp.csr_matrix(np.where(random.random(X.shape) < 0.9, 0.0, X))):
        columns = BinnedColumns.of(data, max_bins)
        weight = random.integers(0, 2, 2000).astype(float)
        tree = DecisionTreeClassifier(splitter=splitter)._fit_binned(columns, y, [0, 1], weight, 3)
        leaves = tree.apply(data)
        assert (tree.tree_.apply_binned(columns) == leaves).all()
        assert (tree.training_leaves_[weight > 0] == leaves[weight > 0]).all()
        assert (tree.training_leaves_[weight == 0] == -1).all()
        if max_bins is not None:
            assert max(len(columns.values(f)) for f in range(3)) == max_bins


def test_limits():
    X, Y = some_data()
    weight = np.random.default_rng(0).random(300)
    for model in TREES[:5]:
        for y in (Y, Y[:, 0]):
            for given in (None, weight):
                tree = clone(model).set_params(min_samples_leaf=7).fit(X, y, given).tree_
                assert tree.n_node_samples[tree.is_leaf].min() >= 7
                tree = clone(model).set_params(min_weight_fraction_leaf=0.05).fit(X, y, given).tree_
                share = tree.weighted_n_node_samples / tree.weighted_n_node_samples[0]
                assert share[tree.is_leaf].min() >= 0.05
                tree = clone(model).set_params(max_depth=3, min_samples_split=0.1).fit(X, y).tree_
                assert tree.max_depth <= 3
                assert tree.n_node_samples[~tree.is_leaf].min() >= 30


def test_the_tree_as_arrays_and_words():
    X, y = load_iris(return_X_y=True, as_frame=True)
    model = DecisionTreeClassifier(max_depth=2).fit(X, y)
    tree = model.tree_
    assert (tree.children_left[~tree.is_leaf] == np.flatnonzero(~tree.is_leaf) + 1).all()
    assert tree.value.shape == (5, 1, 3)
    assert np.allclose(tree.value[0], 1 / 3)
    assert tree.impurity[0] == pytest.approx(2 / 3)
    assert model.feature_importances_.sum() == pytest.approx(1)
    assert model.get_n_leaves() == 3
    text = model.to_text()
    assert text.splitlines()[0] == "|--- petal length (cm) <= 2.45"
    assert text.count("class:") == 3
    assert "truncated branch of 2 leaves" in model.to_text(max_depth=0)


@pytest.mark.parametrize(
    "given", [{}, {"max_leaf_nodes": 9}, {"max_leaf_nodes": 9, "max_depth": 4}]
)
@pytest.mark.parametrize("regression", [False, True])
def test_best_first_growth_and_pruning_are_scikit_learns(given, regression):
    """The same leaves, paths of pruning and pruned trees; rows are traced to the new leaves."""
    X, y = (load_diabetes if regression else load_breast_cancer)(return_X_y=True)
    X = X.astype(np.float32)
    ours = DecisionTreeRegressor if regression else DecisionTreeClassifier
    theirs = tree.DecisionTreeRegressor if regression else tree.DecisionTreeClassifier
    one, other = ours(**given).fit(X, y), theirs(**given, random_state=0).fit(X, y)
    assert (one.get_n_leaves(), one.get_depth()) == (other.get_n_leaves(), other.get_depth())
    assert np.allclose(np.sort(one.tree_.impurity), np.sort(other.tree_.impurity))
    assert one.decision_path(X).sum() == other.decision_path(X).sum()
    path, expected = (m.cost_complexity_pruning_path(X, y) for m in (one, other))
    assert np.allclose(path.ccp_alphas, expected.ccp_alphas)
    assert np.allclose(path.impurities, expected.impurities)
    for alpha in (path.ccp_alphas[-4:] + path.ccp_alphas[-5:-1]) / 2:
        one = ours(**given, ccp_alpha=alpha).fit(X, y)
        other = theirs(**given, ccp_alpha=alpha, random_state=0).fit(X, y)
        assert np.allclose(one.predict(X), other.predict(X))
        assert one.get_n_leaves() == other.get_n_leaves()
    columns = BinnedColumns.of(X)
    target = (y,) if regression else (y, np.unique(y))
    grown = ours(max_leaf_nodes=5)._fit_binned(columns, *target)
    assert (grown.training_leaves_ == grown.tree_.apply(X)).all()
    assert (grown.training_leaves_ == grown.tree_.apply_binned(columns)).all()


@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize(
    "model",
    [
        DecisionTreeClassifier(max_depth=4, criterion="normalised_gain"),
        DecisionTreeRegressor(max_leaf_nodes=20),
        ExtraTreesClassifier(5, random_state=0),
        ExtraTreesRegressor(5, random_state=0),
    ],
    ids=lambda model: type(model).__name__,
)
def test_to_sklearn(model, several):
    X, Y = some_data()
    X = X.astype(np.float32)
    y = Y if several else Y[:, 0]
    model.fit(X, y)
    theirs = model.to_sklearn()
    for name in ("predict", "predict_proba", "apply", "decision_path"):
        if hasattr(model, name):
            pairs = zip(
                listed(getattr(model, name)(X)), listed(getattr(theirs, name)(X)), strict=True
            )
            assert all(np.allclose(one, other) for one, other in pairs)
    assert np.allclose(model.feature_importances_, theirs.feature_importances_)
    if hasattr(model, "classes_"):
        assert theirs.classes_ is model.classes_


def listed(values):
    """Arrays of one answer: of several outputs, sparse or not."""
    values = values if isinstance(values, list | tuple) else [values]
    return [value.toarray() if sp.issparse(value) else value for value in values]


def test_pictures_and_texts_of_scikit_learn():
    X, y = load_iris(return_X_y=True)
    model = DecisionTreeClassifier(max_depth=2).fit(X, y)
    assert export_text(model) == model.to_text()
    assert export_graphviz(model).count("samples") == model.tree_.node_count
    _, ax = plt.subplots()
    assert len(plot_tree(model, ax=ax)) >= model.tree_.node_count
    plt.close("all")


def test_min_impurity_decrease():
    """The decrease is of the node's share of all weight: weights of any size give the same tree."""
    X, y = load_breast_cancer(return_X_y=True)
    for least in (0.005, 0.02):
        expected = tree.DecisionTreeClassifier(min_impurity_decrease=least).fit(X, y)
        for factor in (1.0, 1e-3, 1e3):
            weight = np.full(len(y), factor)
            for splitter in ("best", "random"):
                model = DecisionTreeClassifier(
                    splitter=splitter, min_impurity_decrease=least, random_state=0
                ).fit(X, y, weight)
                inner = ~model.tree_.is_leaf
                falls = model.tree_.nodes.facts[inner, 3] / weight.sum()
                assert falls.min() >= least
                if splitter == "best":
                    assert model.get_n_leaves() == expected.get_n_leaves()


def test_one_class_and_a_constant_output():
    X = np.arange(12.0).reshape(6, 2)
    for model in (DecisionTreeClassifier(), ExtraTreesClassifier(3)):
        model.fit(X, ["a"] * 6)
        assert (model.predict(X) == "a").all()
        assert (model.predict_proba(X) == 1.0).all()
        model.fit(X, np.stack([np.zeros(6), np.arange(6) % 2], axis=1))
        assert [p.shape for p in model.predict_proba(X)] == [(6, 1), (6, 2)]


def test_log_loss_is_entropy():
    X, y = load_iris(return_X_y=True)
    one, other = (DecisionTreeClassifier(criterion=c).fit(X, y) for c in ("log_loss", "entropy"))
    assert one.to_text() == other.to_text()


# -- forests ---------------------------------------------------------------------------------------


def test_a_forest_is_a_sequence_of_trees():
    X, y = load_iris(return_X_y=True)
    model = ExtraTreesClassifier(4, bootstrap=True, max_samples=1.498, random_state=0).fit(X, y)
    assert len(model) == 4
    assert model[0] is model.estimators_[0]
    assert [*model] == model[:] == model.estimators_
    rows = model.estimators_samples_[1]
    assert len(rows) == 225
    assert model[1].tree_.n_node_samples[0] == len(np.unique(rows))
    path, ends = model.decision_path(X)
    assert ends.tolist() == np.cumsum([0, *(t.tree_.node_count for t in model)]).tolist()
    assert (path[:, ends[2] : ends[3]] != model[2].decision_path(X)).nnz == 0


def test_importances_sum_to_one_though_some_trees_have_none():
    X, y = load_iris(return_X_y=True)
    forest = ExtraTreesClassifier(20, max_features=1, min_impurity_decrease=0.2, random_state=0)
    leaves = [tree.get_n_leaves() for tree in forest.fit(X, y)]
    assert min(leaves) == 1 < max(leaves)
    assert forest.feature_importances_.sum() == pytest.approx(1.0)


def test_out_of_bag_of_several_outputs_is_subset_accuracy():
    X, y = make_multilabel_classification(200, random_state=0)
    model = ExtraTreesClassifier(60, bootstrap=True, oob_score=True, random_state=0).fit(X, y)
    shares = model.oob_decision_function_
    assert shares.shape == (200, 2, 5)
    assert model.oob_score_ == np.mean((shares.argmax(axis=1) == y).all(axis=1))
    with pytest.raises(ValueError, match="cannot be used to compute OOB"):
        model.fit(X, y + (np.arange(200) % 3)[:, None])


def test_rows_out_of_the_bag_after_a_warm_start():
    """Each tree keeps its sample, whatever the random state says in the next fit."""
    X, y = load_diabetes(return_X_y=True)
    model = ExtraTreesRegressor(60, bootstrap=True, warm_start=True, max_features=3)
    model.fit(X, y)
    first = model.estimators_samples_[0]
    model.set_params(n_estimators=61, oob_score=True).fit(X, y)
    assert (model.estimators_samples_[0] == first).all()
    assert model.oob_score_ < 0.6  # rows that the trees have seen are answered perfectly


@pytest.mark.parametrize("bootstrap", [False, True])
def test_the_same_forest_for_any_number_of_jobs(bootstrap):
    X, y = load_digits(return_X_y=True)
    forests = [
        ExtraTreesClassifier(
            12, bootstrap=bootstrap, oob_score=bootstrap, n_jobs=jobs, random_state=0
        )
        for jobs in (1, 3)
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # some rows are in all twelve samples
        one, three = (forest.fit(X[:900], y[:900]).predict_proba(X) for forest in forests)
    assert (one == three).all()
    if bootstrap:
        assert forests[0].oob_score_ == forests[1].oob_score_ > 0.8


def test_as_good_as_scikit_learns():
    X, y = load_breast_cancer(return_X_y=True)
    ours, theirs = (
        np.mean(
            [kind(30, random_state=s).fit(X[::2], y[::2]).score(X[1::2], y[1::2]) for s in range(5)]
        )
        for kind in (ExtraTreesClassifier, ScikitLearnForest)
    )
    assert ours > theirs - 0.01
    X, y = load_diabetes(return_X_y=True)
    forest = ExtraTreesRegressor(100, bootstrap=True, oob_score=True, random_state=0).fit(X, y)
    assert 0.3 < forest.oob_score_ < 0.6
    assert np.corrcoef(forest.oob_prediction_, y)[0, 1] > 0.6


def test_warm_start_is_the_larger_forest():
    X, y = load_iris(return_X_y=True)
    grown = ExtraTreesClassifier(4, random_state=3, warm_start=True).fit(X, y)
    grown.set_params(n_estimators=9).fit(X, y)
    at_once = ExtraTreesClassifier(9, random_state=3).fit(X, y)
    assert (grown.predict_proba(X) == at_once.predict_proba(X)).all()
    with pytest.raises(ValueError, match="larger or equal"):
        grown.set_params(n_estimators=5).fit(X, y)
    with pytest.raises(ValueError, match="other columns"):
        grown.set_params(n_estimators=12).fit(X[:, :3], y)


def test_class_weights():
    random = np.random.default_rng(0)
    X, y = random.normal(size=(600, 2)), (random.random(600) < 0.1).astype(int)
    X[:, 0] += y
    for model in (
        DecisionTreeClassifier(min_samples_leaf=30),
        ExtraTreesClassifier(10, min_samples_leaf=30, random_state=0),
    ):
        plain = clone(model).fit(X, y).predict_proba(X)[:, 1].mean()
        weighed = clone(model).set_params(class_weight="balanced").fit(X, y)
        assert plain == pytest.approx(0.1, abs=0.02)
        assert weighed.predict_proba(X)[:, 1].mean() > 0.3
    each = ExtraTreesClassifier(
        10, bootstrap=True, class_weight="balanced_subsample", min_samples_leaf=30, random_state=0
    ).fit(X, y)
    assert each.predict_proba(X)[:, 1].mean() > 0.3
    for member in each:  # balanced in its own replicate, where it begins
        np.testing.assert_allclose(member.tree_.value[0], 0.5)
    Y = np.c_[y, X[:, 1] > 1]
    weight = compute_sample_weight("balanced", Y)
    by_row = DecisionTreeClassifier(min_samples_leaf=30).fit(X, Y, weight)
    by_class = DecisionTreeClassifier(min_samples_leaf=30, class_weight="balanced").fit(X, Y)
    np.testing.assert_allclose(by_class.tree_.value, by_row.tree_.value)
    with pytest.raises(ValueError, match="list of dicts"):
        DecisionTreeClassifier(class_weight={0: 1}).fit(X, np.c_[y, y])


# -- K ---------------------------------------------------------------------------------------------


def test_k_study():
    """Bias falls with K, averaging removes variance, and the parts add up to the Brier score."""
    X, y = load_breast_cancer(return_X_y=True)
    options = {"K": [1, 5, 30], "noise": [0, 0.4], "n_estimators": 20, "random_state": 0}
    study = k_study(X, y, n_samples=6, n_jobs=1, **options)
    assert study.error_mean.shape == (2, 3)
    assert (study.error_mean < study.error_tree).all()
    assert (study.error_mean[1] > study.error_mean[0]).all()
    assert (study.variance_mean < 0.3 * study.variance_tree).all()
    assert study.squared_bias[0, 0] > study.squared_bias[0, 2]
    assert (np.abs(study.correlation) < 0.3).all()
    assert set(study.best_K) <= {1, 5, 30}
    assert all(best in good for best, good in zip(study.best_K, study.as_good, strict=True))
    assert len(study.to_frame()) == 6
    assert str(study).count("*") == 2
    again = k_study(X, y, n_samples=6, n_jobs=2, **options)
    assert (again.squared_bias == study.squared_bias).all()
    pure = k_study(X, y, noise=[0], K=[30], n_estimators=2, min_samples_leaf=1, random_state=0)
    brier = pure.squared_bias + pure.variance_tree  # of pure leaves: twice the error
    assert brier[0, 0] == pytest.approx(2 * pure.error_tree[0, 0], rel=0.15)
    numbers = k_study(*load_diabetes(return_X_y=True), K=[1, 10], noise=[0, 1], n_estimators=10)
    total = numbers.squared_bias + numbers.variance_tree
    assert np.allclose(total, numbers.error_tree, rtol=0.05)
    few = {"K": [10], "noise": [0], "n_estimators": 2, "n_samples": 2, "random_state": 0}
    numbers = k_study(*load_diabetes(return_X_y=True), **few)  # their mean has a variance, too
    assert numbers.squared_bias + numbers.variance_tree == pytest.approx(
        numbers.error_tree, rel=0.1
    )


def test_k_study_is_drawn():
    X, y = load_iris(return_X_y=True)
    study = k_study(X, y, K=[1, 4], noise=[0, 0.4], n_estimators=3, n_samples=3, random_state=0)
    panels = plot_k_study(study)
    assert panels.shape == (2, 2)
    tree, mean, ring = panels[0, 1].lines
    assert (tree.get_ydata() == study.error_tree[1]).all()
    assert (mean.get_ydata() == study.error_mean[1]).all()
    assert ring.get_xdata() == study.best_K[1]
    assert (panels[1, 0].lines[0].get_ydata() == study.squared_bias[0]).all()
    with pytest.raises(TypeError, match="k_study returns, got ndarray"):
        plot_k_study(X)


def test_k_study_refuses():
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match="from 1 to the 4 there are"):
        k_study(X, y, K=[5])
    with pytest.raises(ValueError, match="a share from 0 to 1"):
        k_study(X, y, noise=[1.5])
    with pytest.raises(ValueError, match="two samples and two trees"):
        k_study(X, y, n_samples=1)
    with pytest.raises(ValueError, match="Not a single level"):
        k_study(X, y, time_limit=1e-9)


# -- unfinished ------------------------------------------------------------------------------------


def large():
    random = np.random.default_rng(0)
    X = random.normal(size=(20_000, 10))
    return X, random.integers(0, 2, 20_000)


@pytest.mark.slow
def test_a_time_limit_leaves_a_usable_forest():
    X, y = large()
    forest = ExtraTreesClassifier(100_000, time_limit=0.3, random_state=0)
    with pytest.warns(ConvergenceWarning, match=r"The ensemble has \d+ of 100000 trees"):
        forest.fit(X, y)
    assert forest.status_ is Status.TIME_LIMIT
    assert 1 <= len(forest.estimators_) < 100_000
    assert forest.predict(X[:5]).shape == (5,)
    least = ExtraTreesClassifier(5, time_limit=1e-6)
    with pytest.warns(ConvergenceWarning):
        least.fit(X, y)
    assert len(least.estimators_) == 1
    tree = DecisionTreeRegressor(time_limit=1e-6)
    many = np.tile(X, (30, 1))
    with pytest.warns(ConvergenceWarning, match="stopped growing"):
        tree.fit(many, np.random.default_rng(0).random(len(many)))
    assert 1 <= tree.get_n_leaves() < 20_000


def test_a_callback_stops_and_reports_what_is_done():
    X, y = large()
    seen = []

    def stop_at_half(progress):
        seen.append((progress.steps, progress.share, str(progress)))
        return progress.steps >= 3

    with pytest.warns(ConvergenceWarning, match="by Ctrl-C or by a callback"):
        forest = ExtraTreesClassifier(10_000, callback=stop_at_half, n_jobs=1).fit(X, y)
    assert forest.status_ is Status.INTERRUPTED
    assert seen[-1][1] == pytest.approx(seen[-1][0] / 10_000)
    assert "of 10000 trees" in seen[-1][2]


def test_ctrl_c_leaves_a_usable_forest(heard):
    X, y = large()

    def press(progress):
        signal.raise_signal(signal.SIGINT)

    forest = ExtraTreesClassifier(100_000, n_jobs=2, callback=press)
    began = time.monotonic()
    with pytest.warns(ConvergenceWarning), pytest.raises(KeyboardInterrupt):
        forest.fit(X, y)
    assert time.monotonic() - began < 10
    assert forest.status_ is Status.INTERRUPTED
    assert 1 <= len(forest.estimators_) < 100_000
    assert forest.predict(X[:5]).shape == (5,)


# -- bad input -------------------------------------------------------------------------------------

X0, Y0 = np.arange(12.0).reshape(6, 2), np.array([0, 1, 0, 1, 0, 1])


@pytest.mark.parametrize(
    ("model", "X", "y", "sentence"),
    [
        (ExtraTreesClassifier(max_features=3), X0, Y0, "more columns than the 2 there are"),
        (DecisionTreeClassifier(max_features=3), X0, Y0, "more columns than the 2 there are"),
        (ExtraTreesRegressor(oob_score=True), X0, Y0, "bootstrap=True"),
        (ExtraTreesRegressor(max_samples=3), X0, Y0, "bootstrap=True"),
        (DecisionTreeClassifier(class_weight={0: 0, 1: 0}), X0, Y0, "nothing to learn"),
    ],
)
def test_a_sentence_for_bad_input(model, X, y, sentence):
    with pytest.raises(ValueError, match=sentence):
        model.fit(X, y)


def test_constant_columns_and_huge_values():
    X = np.ones((8, 3))
    y = np.array([0, 1, 0, 1, 1, 1, 0, 1])
    for model in (DecisionTreeClassifier(), ExtraTreesClassifier(3)):
        model.fit(X, y)
        assert np.allclose(model.predict_proba(X), [[3 / 8, 5 / 8]])
        assert (model.feature_importances_ == 0).all()
    wide = np.array([[-1e308], [1e308], [-1e308], [1e308]])
    for splitter in ("best", "random"):
        tree = DecisionTreeClassifier(splitter=splitter).fit(wide, [0, 1, 0, 1])
        assert tree.score(wide, [0, 1, 0, 1]) == 1
    near = np.array([[1.0], [np.nextafter(1.0, 2)]])
    for splitter in ("best", "random"):
        assert DecisionTreeClassifier(splitter=splitter).fit(near, [0, 1]).score(near, [0, 1]) == 1


# -- criteria, missing values and directions as in scikit-learn ----------------------------------


def scattered(missing):
    random = np.random.default_rng(0)
    X = random.normal(size=(200, 3))
    y = np.exp(X[:, 0]) + random.random(200)
    if missing:
        X[random.random(X.shape) < 0.2] = np.nan
    return X, y


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("criterion", ["squared_error", "absolute_error", "poisson"])
def test_criteria_of_numbers_are_scikit_learns(criterion, missing):
    X, y = scattered(missing)
    # without tests that are equally good, as errors of medians often are
    few = {"max_depth": 1 if criterion == "absolute_error" else 3, "min_samples_leaf": 15}
    for options in (few, few | {"monotonic_cst": [1, 0, -1]}):
        ours = DecisionTreeRegressor(criterion=criterion, **options).fit(X, y)
        theirs = tree.DecisionTreeRegressor(criterion=criterion, random_state=0, **options)
        theirs.fit(X, y)
        np.testing.assert_allclose(ours.predict(X), theirs.predict(X))
        np.testing.assert_allclose(ours.tree_.impurity, theirs.tree_.impurity, atol=1e-12)
        np.testing.assert_allclose(ours.tree_.value, theirs.tree_.value)
        flags = ours.tree_.missing_go_to_left == theirs.tree_.missing_go_to_left
        assert flags[~ours.tree_.is_leaf].all()


@pytest.mark.parametrize("splitter", ["best", "random"])
def test_directions_hold_everywhere(splitter):
    X, y = scattered(True)
    label, new = (y > 1.5).astype(int), np.random.default_rng(1).normal(size=(50, 3))
    for criterion in ("squared_error", "absolute_error", "poisson", "gini"):
        of_classes = criterion == "gini"
        model = (DecisionTreeClassifier if of_classes else DecisionTreeRegressor)(
            criterion=criterion, splitter=splitter, monotonic_cst=[1, -1, 0], random_state=0
        ).fit(X, label if of_classes else y)
        values = []
        for x in np.linspace(-3, 3, 20):
            new[:, 0], new[:, 1] = x, -x
            values.append(model.predict_proba(new)[:, 1] if of_classes else model.predict(new))
        assert (np.diff(values, axis=0) >= -1e-12).all()
        assert model.get_depth() > 2


@pytest.mark.parametrize("splitter", ["best", "random"])
def test_missing_values_where_they_say_something(splitter):
    X, y = np.array([[1.0], [2.0], [3.0], [np.nan], [np.nan]]), [0, 0, 0, 1, 1]
    model = DecisionTreeClassifier(splitter=splitter, random_state=0).fit(X, y)
    np.testing.assert_array_equal(model.predict([[-9.0], [9.0], [np.nan]]), [0, 0, 1])
    below = DecisionTreeClassifier(splitter=splitter, random_state=0).fit(X, [0, 1, 1, 0, 0])
    np.testing.assert_array_equal(below.predict([[0.0], [9.0], [np.nan]]), [0, 1, 0])
    unknown = DecisionTreeClassifier(random_state=0).fit([[1.0], [2.0], [3.0]], [0, 0, 1])
    assert unknown.predict([[np.nan]]) == [0]  # to the side with more rows
    with pytest.raises(ValueError, match="NaN"):
        DecisionTreeClassifier().fit(sp.csr_matrix(X), y)
    with pytest.raises(ValueError, match="infinity"):
        DecisionTreeClassifier().fit(np.where(X > 2, np.inf, X), y)


def test_leaves_of_missing_values_by_codes_and_by_values():
    X, y = scattered(True)
    columns = BinnedColumns.of(X)
    for splitter in ("best", "random"):
        model = DecisionTreeRegressor(splitter=splitter, random_state=1).fit(X, y)
        np.testing.assert_array_equal(model.tree_.apply_binned(columns), model.apply(X))
        small = DecisionTreeRegressor(ccp_alpha=0.01, random_state=1).fit(X, y)
        np.testing.assert_array_equal(small.tree_.apply_binned(columns), small.apply(X))
    forest = ExtraTreesRegressor(5, bootstrap=True, oob_score=True, random_state=0)
    with pytest.warns(UserWarning, match="OOB"):
        assert np.isfinite(forest.fit(X, y).oob_score_)


def test_friedman_mse_is_squared_error():
    with pytest.warns(FutureWarning, match="friedman_mse"):
        assert DecisionTreeRegressor(criterion="friedman_mse").criterion == "squared_error"
    with pytest.raises(ValueError, match="negative"):
        DecisionTreeRegressor(criterion="poisson").fit([[1.0], [2.0]], [-1.0, 1.0])


# -- growth in small pieces ----------------------------------------------------------------------


@pytest.mark.parametrize("criterion", ["gini", "squared_error", "absolute_error"])
@pytest.mark.parametrize("splitter", ["best", "random"])
def test_a_tree_that_is_grown_in_pieces_is_the_tree(monkeypatch, splitter, criterion):
    X, y = scattered(True)
    kind = DecisionTreeClassifier if criterion == "gini" else DecisionTreeRegressor
    model = kind(criterion=criterion, splitter=splitter, max_features=2, random_state=0)
    y = (y > 2).astype(int) if criterion == "gini" else y
    whole = model.fit(X, y).tree_
    monkeypatch.setattr(growth, "_WORK", 1)  # one column at a time
    pieces = model.fit(X, y).tree_
    np.testing.assert_array_equal(pieces.threshold, whole.threshold)
    np.testing.assert_array_equal(pieces.value, whole.value)


def test_a_tree_that_is_stopped_has_the_best_test_so_far(monkeypatch):
    X, y = load_iris(return_X_y=True)
    monkeypatch.setattr(growth, "_WORK", 1)
    at_once = {"time_limit": 1e-9}
    tree, bag = DecisionTreeClassifier(**at_once), BaggingClassifier(n_estimators=3, **at_once)
    boosters = (
        AdaBoostClassifier(DecisionTreeClassifier(), **at_once),
        LogitBoostClassifier(DecisionTreeRegressor(), **at_once),
    )
    for model in (tree, bag, *boosters):
        with pytest.warns(ConvergenceWarning, match="time_limit"):
            model.fit(X, y)
        assert model.status_ is Status.TIME_LIMIT
        grown = np.ravel(getattr(model, "estimators_", [model]))
        assert {tree.get_depth() for tree in grown} == {1}  # of the first column, nothing below
        assert model.score(X, y) > 0.5
    assert len(bag.estimators_) == boosters[0].n_iter_ == boosters[1].n_iter_ == 1
