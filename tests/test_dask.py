"""Dask collections in and out of every estimator, and what is said of those that are wrong."""

import pickle
import subprocess
import sys
from itertools import pairwise

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_iris

import maxmargin

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
pytest.importorskip("distributed")

from maxmargin.dask import PartitionError, Partitions  # noqa: E402
from maxmargin.dask.cluster import size_of  # noqa: E402

X, index = load_iris(return_X_y=True)
X, index = X[::3], index[::3]  # sorted by class: the first partitions have one class each
names = np.array(["setosa", "versicolor", "virginica"])[index]
COLUMNS = ["sepal length", "sepal width", "petal length", "petal width"]
ENDS = [0, 7, 7, 30, 50]  # uneven, and one without a row


@pytest.fixture(autouse=True)
def in_this_process():
    with dask.config.set(scheduler="synchronous"):
        yield


def pieces(values):
    return [values[a:b] for a, b in pairwise(ENDS)]


def as_frame(values):
    if np.ndim(values) == 1:
        parts = [pd.Series(part, index=range(50, 50 + len(part))) for part in pieces(values)]
    else:
        parts = [pd.DataFrame(part, columns=COLUMNS) for part in pieces(values)]
    return dd.from_delayed([dask.delayed(part) for part in parts], meta=parts[0][:0])


def as_sparse(values):
    parts = [dask.delayed(sp.csr_matrix(part)) for part in pieces(values)]
    shapes = [(len(part), 4) for part in pieces(values)]
    meta = sp.csr_matrix((0, 0))
    blocks = [da.from_delayed(p, s, meta=meta) for p, s in zip(parts, shapes, strict=True)]
    return da.concatenate(blocks)


def as_array(values):
    columns = [(2, values.shape[1] - 2)] if np.ndim(values) > 1 else []
    chunks = (tuple(np.diff(ENDS).tolist()), *columns)
    return da.from_array(values, chunks=chunks)


def unknown(values):
    array = as_array(values)
    array._chunks = ((np.nan,) * 4, *array.chunks[1:])
    return array


def as_polars(values):
    schema = COLUMNS if np.ndim(values) > 1 else ["y"]
    return [dask.delayed(pl.DataFrame(part, schema=schema)) for part in pieces(values)]


def as_parts(values):
    return [dask.delayed(part) for part in pieces(values)]


KINDS = [
    (as_array, as_array, da.Array),
    (unknown, unknown, da.Array),
    (as_sparse, as_array, da.Array),
    (as_frame, as_frame, (dd.Series, dd.DataFrame)),
    (as_polars, as_parts, list),
    (as_parts, as_parts, list),
    (as_array, np.asarray, da.Array),
]


def together(answers):
    if isinstance(answers, list):
        return np.concatenate([part for part in dask.compute(*answers) if len(part)])
    return np.asarray(answers.compute())


@pytest.mark.parametrize(("kind", "of_y", "given"), KINDS)
@pytest.mark.parametrize(
    "model",
    [
        maxmargin.SVC(probability=True, random_state=0),
        maxmargin.LogisticRegression(),
        maxmargin.ExtraTreesClassifier(5, random_state=0),
    ],
    ids=lambda model: type(model).__name__,
)
def test_answers_are_lazy_and_of_the_kind_that_was_given(model, kind, of_y, given):
    points = pd.DataFrame(X, columns=COLUMNS) if kind in (as_frame, as_polars) else X
    model = model.fit(points, names)
    collection = kind(X)
    for name in ("predict", "predict_proba", "decision_function"):
        if hasattr(model, name):
            answers = getattr(model, name)(collection)
            assert isinstance(answers, given)
            np.testing.assert_allclose(
                *map(_numbers, (together(answers), getattr(model, name)(points)))
            )
    if kind is not as_polars:
        assert model.score(collection, of_y(names)) == pytest.approx(model.score(points, names))


def _numbers(answers):
    return pd.factorize(answers, sort=True)[0] if answers.dtype.kind not in "f" else answers


def test_frames_come_back_with_their_index():
    frame = pd.DataFrame(X, columns=COLUMNS, index=np.random.default_rng(0).permutation(50))
    model = maxmargin.LinearSVC().fit(frame, names)
    said = model.predict(dd.from_pandas(frame, npartitions=3, sort=False)).compute()
    assert said.index.equals(frame.index)
    np.testing.assert_array_equal(said.to_numpy(), model.predict(frame))


@pytest.mark.parametrize("known", [True, False])
def test_answers_are_columns_of_the_frame_they_are_for(known):
    """Nothing is shuffled to bring them together, whether or not Dask knows the index."""
    frame = pd.DataFrame(X, columns=COLUMNS).assign(label=names, row=range(50))
    rows = dd.from_pandas(frame, npartitions=4)
    rows = rows if known else rows.clear_divisions()
    model = maxmargin.LinearSVC().fit(rows[COLUMNS], rows["label"])
    said = model.predict(rows[COLUMNS])
    assert said.divisions == rows.divisions
    beside = rows.assign(said=said).compute()
    assert beside["row"].tolist() == list(range(50))
    np.testing.assert_array_equal(beside["said"], model.predict(frame[COLUMNS]))
    assert (said == rows["label"]).mean().compute() == model.score(frame[COLUMNS], names)
    some = rows[rows["row"] >= 20]  # of the first partition nothing is left
    for points in (some[COLUMNS], some[COLUMNS].astype("Float64")):
        parts = dask.compute(*model.predict(points).to_delayed())
        assert {part.dtype for part in parts} == {said.dtype}  # as files of Parquet want it
        np.testing.assert_array_equal(pd.concat(parts), model.predict(frame[COLUMNS][20:]))


def test_several_answers_are_refused():
    model = maxmargin.GaussianProcessRegressor(optimizer=None).fit(X[:, :3], X[:, 3])
    for kind in (as_array, lambda rows: dd.from_pandas(pd.DataFrame(rows), npartitions=2)):
        with pytest.raises(ValueError, match=r"predict\(return_std=True\) has several answers"):
            model.predict(kind(X[:, :3]), return_std=True)


def test_regression_scores_are_those_of_all_rows_with_weights():
    y = X[:, 3]
    model = maxmargin.SVR().fit(X[:, :3], y)
    for weight in (np.arange(50.0), np.full(50, 0.01)):  # also where all weigh less than one row
        found = model.score(as_array(X[:, :3]), as_array(y), as_array(weight))
        assert found == pytest.approx(model.score(X[:, :3], y, weight), rel=1e-12)


def test_accuracies_are_those_of_all_rows_with_weights():
    weight, stump = np.arange(50.0), maxmargin.DecisionStump().fit(X, names)
    found = stump.score(as_array(X), as_array(names), as_array(weight))
    assert found == pytest.approx(stump.score(X, names, weight), rel=1e-12)
    assert abs(found - stump.score(X, names)) > 1e-3


def test_bytes_moved_are_those_of_all_that_is_inside():
    model = maxmargin.SVC().fit(as_array(X), as_array(names))
    assert model.distribution_.bytes_to_client > model.support_vectors_.nbytes
    forest = maxmargin.ExtraTreesClassifier(n_estimators=3).fit(X, names)
    nodes = sum(tree.tree_.nodes.tests.nbytes for tree in forest.estimators_)
    assert nodes < size_of([forest, forest]) < 100 * nodes


@pytest.mark.slow
def test_models_need_no_dask_where_they_go(tmp_path):
    """And a later fit in memory forgets where an earlier one was made."""
    machines = [maxmargin.LogisticRegression(), maxmargin.SVC(warm_start=True)]
    models = [machine.fit(as_array(X), as_array(names)) for machine in machines]
    path = tmp_path / "models.pickle"
    path.write_bytes(pickle.dumps(models))
    code = f"""
import pickle, sys
sys.modules["dask"] = None
for model in pickle.load(open({str(path)!r}, "rb")):
    print(model.predict([[5.0, 3.0, 1.0, 0.2]])[0], model.distribution_.rows)
"""
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.split() == ["setosa", "50"] * 2
    for model in models:
        assert not hasattr(model.fit(X, names), "distribution_")


def test_streams_learn_partition_by_partition():
    weight = np.arange(50.0) % 7
    for given in ({}, {"sample_weight": weight}):
        lazy = {name: as_array(value) for name, value in given.items()}
        stream = maxmargin.LogisticRegression(lam=0.01)
        stream.partial_fit(as_array(X), as_array(names), classes=np.unique(names), **lazy)
        alone = maxmargin.LogisticRegression(lam=0.01)
        for rows, own, part in zip(pieces(X), pieces(names), pieces(weight), strict=True):
            if len(rows):
                options = dict.fromkeys(given, part)
                alone.partial_fit(rows, own, classes=np.unique(names), **options)
        np.testing.assert_allclose(stream.coef_, alone.coef_)


# -- bad input -----------------------------------------------------------------------------------


def changed(which, change):
    parts = pieces(X)
    parts[which] = change(parts[which])
    return [dask.delayed(part) for part in parts]


def with_nan(rows):
    rows = rows.copy()
    rows[-1, 2] = np.nan
    return rows


def failing():
    raise KeyError("no such file")


def read(*collections):
    return Partitions.of(maxmargin.LogisticRegression(), *collections, classes=True)


def test_wrong_partitions_are_named():
    y = as_parts(names)
    for points, labels, message in [
        (changed(3, with_nan), y, "Partition 3: Input X contains NaN"),
        (changed(2, lambda r: r[:, :3]), y, "Partition 2 has columns 3, and partition 0 4"),
        (changed(2, lambda r: r.astype(np.float32)), y, "Partition 2 has .*float32.*float64"),
        (changed(3, sp.csr_matrix), y, "Partition 3 has storage that is sparse"),
        (changed(2, lambda r: r[:-1]), y, "Partition 2: X has 22 rows and y has 23"),
        (
            changed(3, lambda r: r.astype(str) + "a"),
            y,
            "Partition 3: .*could not convert|Partition 3: dtype",
        ),
        (as_parts(X), as_parts(names)[:3], "X has 4 partitions and y has 3"),
        (as_parts(X), names, "y is in memory .* sizes that Dask does not know"),
        (
            dask.delayed(X),
            dask.delayed(names),
            r"X is a Delayed.*\[X\] where it is one",
        ),
        (as_array(X), names[:-1], "inconsistent numbers of samples"),
        (as_array(X), da.from_array(names[:-1]), "inconsistent numbers of samples"),
        (as_parts(X), as_parts(np.full(50, "one")), "number of classes has to be greater than one"),
        (as_parts(X[:0]), as_parts(names[:0]), "0 sample"),
        (as_array(X), as_array(index + 0.5), r"Partition \d: Unknown label type"),
    ]:
        with pytest.raises((ValueError, TypeError), match=message):
            read(points, labels)
    weights = -np.ones(50)
    with pytest.raises(ValueError, match=r"Partition \d: Negative values in data"):
        read(as_array(X), as_array(names), as_array(weights))
    with pytest.raises(ValueError, match="all samples have zero or negative weights"):
        read(as_array(X), as_array(names), as_array(0 * weights))
    broken = [*as_parts(X)[:3], dask.delayed(failing)()]
    with pytest.raises(PartitionError, match="Partition 3 of 4 cannot be read: KeyError"):
        read(broken, y)
    with pytest.raises(TypeError, match="X in memory"):
        maxmargin.LogisticRegression().fit(X, as_array(names))


@pytest.mark.parametrize("reads", [1, 2])
@pytest.mark.parametrize("machine", [maxmargin.SVC(), maxmargin.LinearRegression()])
def test_a_partition_that_cannot_be_read_again_is_named(machine, reads, monkeypatch):
    """Rows that are not kept are read in every pass, of which any may be the last."""
    monkeypatch.setattr("maxmargin.dask.kernel.chunking._FEW", 0)
    read = []

    def second():
        read.append(2)
        if len(read) > reads:
            raise OSError("the disk is gone")
        return np.array_split(X, 4)[1]

    rows, y = ([dask.delayed(part) for part in np.array_split(own, 4)] for own in (X, index))
    rows[1] = dask.delayed(second)()
    few = dask.config.set({"maxmargin.memory-per-worker": "100 B", "scheduler": "synchronous"})
    with few, pytest.raises(PartitionError, match="Partition 1 of 4 cannot be read: OSError"):
        machine.fit(rows, y)


@pytest.mark.parametrize(
    "machine",
    [
        maxmargin.KernelPCA(),
        maxmargin.GridSearchCV(maxmargin.SVC(), {"C": [1.0]}, cv=2),
    ],
)
def test_wrong_partitions_are_named_where_rows_come_together(machine):
    for points, error, message in [
        (changed(3, with_nan), ValueError, "Partition 3: Input X contains NaN"),
        (changed(2, lambda r: r[:, :3]), ValueError, "Partition 2 has columns 3, and"),
        (changed(3, sp.csr_matrix), ValueError, "Partition 3 has storage that is sparse"),
        (as_parts(X + 1j), ValueError, r"Partition \d: Complex data not supported"),
        ([*as_parts(X)[:3], dask.delayed(failing)()], PartitionError, "Partition 3 of 4 cannot be"),
    ]:
        with pytest.raises(error, match=message):
            machine.fit(points, as_parts(names))


@pytest.mark.parametrize("name", ["SVC", "SVR", "LogisticRegression", "Ridge", "Perceptron"])
def test_targets_that_are_missing_are_said(name):
    with pytest.raises(ValueError, match=f"{name} estimator requires y to be passed"):
        getattr(maxmargin, name)().fit(as_array(X), None)


def test_frames_in_another_order_are_refused():
    frame = pd.DataFrame(X, columns=COLUMNS)
    y = pd.Series(names)
    collections = [
        [dask.delayed(frame[:25]), dask.delayed(frame[25:])],
        [dask.delayed(y[:25]), dask.delayed(y[25:][::-1])],
    ]
    with pytest.raises(ValueError, match="Partition 1: the rows of X and y have the same index"):
        read(*collections)


def test_answers_refuse_another_width_before_anything_is_computed():
    model = maxmargin.SVC().fit(X, names)
    with pytest.raises(ValueError, match="X has 3 features, but SVC is expecting 4"):
        model.predict(da.from_array(X[:, :3]))
    with pytest.raises(ValueError, match="Partition 3: X has 3 features"):
        dask.compute(*model.predict(changed(3, lambda rows: rows[:, :3])))


def test_rows_without_room_are_not_kept():
    """And blocks of sizes that Dask does not know are measured first."""
    for budget, kept in (("1 kB", False), ("1 MB", True)):
        with dask.config.set({"maxmargin.memory-per-worker": budget}):
            for kind in (as_array, as_parts):
                rows = Partitions.of(maxmargin.SVC(), kind(X), kind(names), classes=True)
                assert rows.cluster.distribution.kept is kept
                assert rows.n == 50
                np.testing.assert_array_equal(rows.class_counts, np.bincount(index))
