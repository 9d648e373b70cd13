"""Ensembles on Dask collections: equal to those in memory, whatever the partitions."""

import time

import numpy as np
import pytest
import scipy.sparse as sp

pytest.importorskip("distributed")
import dask
import dask.array as da
from sklearn.neighbors import KNeighborsClassifier

import maxmargin.dask.ensemble.columns as columns
import maxmargin.dask.ensemble.levels as levels
import maxmargin.dask.ensemble.trees as forests
from maxmargin import (
    SVC,
    AdaBoostClassifier,
    BaggingClassifier,
    BaggingRegressor,
    DecisionStump,
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    LogitBoostClassifier,
    WordStumpBooster,
)
from maxmargin.dask.ensemble.columns import CodedRows
from maxmargin.dask.rows import Partitions
from maxmargin.ensemble.trees.columns import BinnedColumns

N = 1200
random = np.random.default_rng(0)
X = np.round(random.normal(size=(N, 6)), 2)
X[:, 5] = X[:, 5] > 2
NUMBER = (X[:, 0] + X[:, 1] * X[:, 2] > 0).astype(int)
TWO = np.array(["no", "yes"])[NUMBER]
THREE = np.array(["a", "b", "c"])[NUMBER + (X[:, 3] > 0.5)]
VALUES = X[:, 0] ** 2 + X[:, 1] + 0.3 * random.normal(size=N) + 50.0
WEIGHT = random.integers(0, 3, N) * 0.7
CHUNKS = (500, 7, 393, 0, 300)  # uneven, one of them empty


@pytest.fixture(autouse=True)
def here():
    with dask.config.set(scheduler="synchronous"):
        yield


def spread(array):
    if array is None:
        return None
    return da.from_array(array, chunks=(CHUNKS, *((n,) for n in array.shape[1:])))


def both(machine, y, weight=None, rows=X):
    """Return a machine fitted in memory, and one fitted to collections."""
    params = machine.get_params(deep=False)
    one, other = type(machine)(**params), type(machine)(**params)
    return (
        one.fit(rows, y, sample_weight=weight),
        other.fit(spread(rows), spread(y), sample_weight=spread(weight)),
    )


def assert_same_tree(one, other):
    one, other = one.tree_, other.tree_
    for name in ("feature", "threshold", "children_right", "n_node_samples"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    for name in ("impurity", "weighted_n_node_samples", "value"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-8, atol=1e-9)
    np.testing.assert_array_equal(one.nodes.cuts, other.nodes.cuts)
    np.testing.assert_allclose(
        one.compute_feature_importances(),
        other.compute_feature_importances(),
        rtol=1e-7,
        atol=1e-12,
    )
    assert one.depth == other.depth


def assert_same(one, other, *names, rtol=1e-8):
    assert set(vars(other)) - set(vars(one)) == {"distribution_"}
    for name in names:
        a, b = getattr(one, name), getattr(other, name)
        np.testing.assert_allclose(a, b, rtol=rtol, atol=1e-14, err_msg=name)


# -- columns -------------------------------------------------------------------------------------


@pytest.mark.parametrize("max_bins", [None, 16])
@pytest.mark.parametrize("sparse", [False, True])
def test_codes_are_those_of_all_rows_in_one_place(max_bins, sparse):
    table = np.where(random.random((N, 4)) < 0.1, X[:, :4], 0.0) if sparse else X[:, :4]
    whole = BinnedColumns.of(sp.csr_matrix(table) if sparse else table, max_bins)
    parts = spread(table).map_blocks(sp.csr_matrix) if sparse else spread(table)
    rows = Partitions.of(DecisionStump(), parts, spread(TWO), classes=True)
    coded = CodedRows.of(rows, max_bins)
    groups = coded.cluster.run(coded.groups)
    for f in range(4):
        found = coded.in_order([group.columns.codes(f) for group in groups])
        np.testing.assert_array_equal(found, whole.codes(f))
        np.testing.assert_array_equal(coded.ends[f][1], whole.values(f))


def test_columns_of_many_values_are_put_into_bins_of_as_many_rows(monkeypatch):
    monkeypatch.setattr(columns, "VALUES", 64)
    monkeypatch.setattr(columns, "CODES", 64)
    monkeypatch.setattr(columns, "_LEAST_BINS", 32)
    table = random.normal(size=(N, 2))
    rows = Partitions.of(DecisionStump(), spread(table), spread(TWO), classes=True)
    coded = CodedRows.of(rows, None)
    (group,) = coded.cluster.run(coded.groups)[:1]
    counts = np.bincount(group.columns.codes(0))
    assert len(counts) == 32
    assert counts.max() < 2.0 * counts.mean()
    least, greatest = coded.ends[0]
    assert (least <= greatest).all()
    assert (greatest[:-1] < least[1:]).all()
    assert np.isin(least, table[:, 0]).all()
    assert np.isin(greatest, table[:, 0]).all()
    assert "bins" in coded.cluster.distribution.notes[0]


# -- boosting ------------------------------------------------------------------------------------


@pytest.mark.parametrize("y", [TWO, THREE], ids=["two", "three"])
@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["plain", "weighted"])
def test_adaboost_has_the_rounds_of_memory(y, weight):
    one, other = both(AdaBoostClassifier(n_estimators=15), y, weight)
    assert [stump.rule for stump in one.estimators_] == [stump.rule for stump in other.estimators_]
    names = "estimator_weights_ estimator_errors_ train_errors_ normalisers_ D_ minimum_margin_"
    assert_same(one, other, *names.split())
    assert str(one.certificate_) == str(other.certificate_)
    np.testing.assert_allclose(one.bounds().product, other.bounds().product)
    np.testing.assert_array_equal(other.predict(spread(X)).compute(), one.predict(X))
    stump, same = both(DecisionStump(), y, weight)
    assert stump.rule == same.rule
    assert stump.error_ == pytest.approx(same.error_)


def test_adaboost_goes_on_from_known_rounds_and_ends_at_a_perfect_one():
    machine = AdaBoostClassifier(n_estimators=5, warm_start=True)
    machine.fit(spread(X), spread(TWO)).set_params(n_estimators=12)
    machine.fit(spread(X), spread(TWO))
    whole = AdaBoostClassifier(n_estimators=12).fit(X, TWO)
    assert_same(whole, machine, "estimator_weights_", "train_errors_", "D_")
    with pytest.raises(ValueError, match="other labels"):
        machine.set_params(n_estimators=13).fit(spread(X), spread(TWO[::-1].copy()))
    easy = np.where(X[:, 0] > 0.5, "yes", "no")
    one, other = both(AdaBoostClassifier(store_distributions=False), easy)
    assert other.status_ == "perfect"
    assert np.isinf(other.estimator_weights_).all()
    assert_same(one, other, "D_", "train_errors_", "minimum_margin_")


@pytest.mark.slow
@pytest.mark.parametrize("apart", [0, 1 << 25], ids=["levels", "one worker"])
@pytest.mark.parametrize("y", [TWO, THREE], ids=["two", "three"])
def test_boosted_trees_are_those_of_memory(y, apart, monkeypatch):
    monkeypatch.setattr(levels, "APART", apart)
    tree = DecisionTreeClassifier(max_depth=3)
    one, other = both(AdaBoostClassifier(tree, n_estimators=4), y, WEIGHT)
    assert_same(one, other, "estimator_weights_", "train_errors_", "D_")
    regression = DecisionTreeRegressor(max_depth=2)
    one, other = both(LogitBoostClassifier(regression, n_estimators=4), y, WEIGHT)
    assert_same(one, other, "train_losses_", "estimator_weights_", "train_errors_", "D_")
    other.set_params(warm_start=True, n_estimators=6).fit(
        spread(X), spread(y), sample_weight=spread(WEIGHT)
    )
    one = LogitBoostClassifier(regression, n_estimators=6).fit(X, y, sample_weight=WEIGHT)
    assert_same(one, other, "train_losses_")


def test_a_stopped_booster_has_its_rounds():
    calls = []

    def enough(progress):
        calls.append(progress.steps)
        return progress.steps >= 3

    machine = AdaBoostClassifier(n_estimators=5000, callback=enough, store_distributions=False)
    with pytest.warns(UserWarning, match="rounds"):
        machine.fit(spread(X), spread(TWO))
    assert 1 <= machine.n_iter_ < 5000
    assert len(machine.train_errors_) == machine.n_iter_
    assert machine.status_.stopped
    assert machine.D_.sum() == pytest.approx(1.0)
    began = time.monotonic()
    with pytest.warns(UserWarning, match="rounds"):
        AdaBoostClassifier(n_estimators=5000, time_limit=0.3).fit(spread(X), spread(TWO))
    assert time.monotonic() - began < 20


# -- trees ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("apart", [0, 5000, 1 << 25], ids=["levels", "mixed", "one worker"])
@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["plain", "weighted"])
def test_trees_are_those_of_memory(apart, weight, monkeypatch):
    monkeypatch.setattr(levels, "APART", apart)
    monkeypatch.setattr(levels, "_LITTLE", 0)
    for machine, y in (
        (DecisionTreeClassifier(max_depth=6), THREE),
        (
            DecisionTreeClassifier(
                criterion="normalised_gain", class_weight="balanced", min_samples_leaf=5
            ),
            TWO,
        ),
        (DecisionTreeRegressor(max_depth=5), VALUES),
        (
            DecisionTreeRegressor(max_depth=4, max_bins=32, min_samples_leaf=4),
            np.column_stack([VALUES, X[:, 3]]),
        ),
    ):
        one, other = both(machine, y, weight)
        assert_same_tree(one, other)
        assert_same(one, other)


def test_sparse_rows_have_the_trees_of_memory(monkeypatch):
    monkeypatch.setattr(levels, "APART", 0)
    table = np.where(random.random((N, 5)) < 0.1, X[:, :5], 0.0)
    parts = spread(table).map_blocks(sp.csr_matrix)
    y = np.where(table[:, 0] + table[:, 1] + 0.3 * random.normal(size=N) > 0, "yes", "no")
    for machine in (DecisionTreeClassifier(max_depth=4), AdaBoostClassifier(n_estimators=5)):
        one = type(machine)(**machine.get_params(deep=False)).fit(sp.csr_matrix(table), y)
        machine.fit(parts, spread(y))
        np.testing.assert_array_equal(one.predict(table), machine.predict(table))


def test_forests_on_one_worker_are_those_of_memory():
    for machine, y in (
        (ExtraTreesClassifier(8, random_state=0), THREE),
        (
            ExtraTreesClassifier(
                8,
                random_state=0,
                bootstrap=True,
                class_weight="balanced_subsample",
                max_samples=0.7,
            ),
            THREE,
        ),
        (ExtraTreesRegressor(8, random_state=0, bootstrap=True, min_samples_leaf=3), VALUES),
    ):
        for weight in (None, WEIGHT):
            one, other = both(machine, y, weight)
            for a, b in zip(one.estimators_, other.estimators_, strict=True):
                assert_same_tree(a, b)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*rows were drawn by every member")
def test_forests_by_levels_are_as_good_and_do_not_depend_on_partitions(monkeypatch):
    monkeypatch.setattr(forests, "WHOLE", 0)
    monkeypatch.setattr(levels, "APART", 1 << 13)
    kinds = (
        (ExtraTreesClassifier(8, random_state=0, bootstrap=True, oob_score=True), THREE),
        (ExtraTreesRegressor(8, random_state=0, bootstrap=True, oob_score=True), VALUES),
    )
    for machine, y in kinds:
        one, other = both(machine, y)
        assert_same(one, other)
        assert other.oob_score_ == pytest.approx(one.oob_score_, abs=0.05)
        again = type(machine)(**machine.get_params()).fit(
            da.from_array(X, chunks=(400, 6)), da.from_array(y, chunks=400)
        )
        for a, b in zip(again.estimators_, other.estimators_, strict=True):
            np.testing.assert_array_equal(a.tree_.threshold, b.tree_.threshold)
        machine.set_params(n_estimators=4, warm_start=True, oob_score=False)
        machine.fit(spread(X), spread(y)).set_params(n_estimators=8).fit(spread(X), spread(y))
        assert len(machine.estimators_) == 8


# -- bagging -------------------------------------------------------------------------------------


@pytest.mark.parametrize("apart", [False, True], ids=["all rows", "replicates"])
@pytest.mark.filterwarnings("ignore:.*rows were drawn by every member")
def test_bagging_has_the_members_of_memory(apart):
    room = {"maxmargin.memory-per-worker": 80_000} if apart else {}
    with dask.config.set(room):
        for machine, y in (
            (BaggingClassifier(KNeighborsClassifier(3), 5, max_samples=60), THREE),
            (BaggingClassifier(SVC(gamma=0.5), 5, max_samples=60, max_features=0.6), TWO),
            (BaggingRegressor(None, 5, max_samples=60), np.column_stack([VALUES, X[:, 0]])),
        ):
            machine.set_params(random_state=1, oob_score=True)
            for weight in (None, WEIGHT):
                one, other = both(machine, y, weight)
                assert "replicates" not in other.sharing_
                assert ("each member's" in other.sharing_) == apart
                for a, b in zip(one.estimators_samples_, other.estimators_samples_, strict=True):
                    np.testing.assert_array_equal(a, b)
                said = one.predict(X), other.predict(X)
                if y is not THREE and y is not TWO:
                    np.testing.assert_allclose(*said, rtol=1e-9)
                else:
                    np.testing.assert_array_equal(*said)
                assert one.oob_score_ == pytest.approx(other.oob_score_)
                assert_same(one, other)
        if apart:
            with pytest.raises(MemoryError, match="max_samples"):
                BaggingClassifier(None, 3).fit(spread(X), spread(TWO))


# -- all rows in one place, and what is wrong ----------------------------------------------------


def test_any_other_learner_and_words_gather_their_rows():
    y = np.where(X[:150, 0] + 0.3 * X[:150, 1] > 0, "yes", "no")
    parts = da.from_array(X[:150], chunks=(100, 6)), da.from_array(y, chunks=100)
    odd = AdaBoostClassifier(SVC(), n_estimators=2).fit(*parts)
    assert "gathered" in str(odd.distribution_)
    texts = np.array(["good fine day" if k else "bad rainy day" for k in NUMBER], dtype=object)
    words = WordStumpBooster(n_estimators=3).fit(spread(texts), spread(TWO))
    np.testing.assert_array_equal(words.predict(list(texts)), TWO)


def test_a_class_that_one_partition_has_and_rows_that_are_wrong():
    y = THREE.copy()
    y[:700][y[:700] == "c"] = "a"
    one, other = both(DecisionTreeClassifier(max_depth=4), y)
    assert_same_tree(one, other)
    bad = X.copy()
    bad[-1, 0] = np.nan
    for machine in (AdaBoostClassifier(), ExtraTreesClassifier(3), BaggingClassifier(None, 2)):
        with pytest.raises(ValueError, match=r"Partition 4: .*NaN") as caught:
            machine.fit(spread(bad), spread(TWO))
        takes_nan = machine.__sklearn_tags__().input_tags.allow_nan
        assert ("Missing values are not supported in Dask" in str(caught.value)) == takes_nan
        with pytest.raises(ValueError, match=r"greater than one"):
            machine.fit(spread(X), spread(np.zeros(N)))
