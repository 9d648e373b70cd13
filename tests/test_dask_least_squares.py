"""Least squares, ridge, MCE and the perceptron on Dask collections: the answers of one machine."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

dask = pytest.importorskip("dask")
pytest.importorskip("distributed")

import dask.array as da  # noqa: E402
import dask.dataframe as dd  # noqa: E402
from sklearn.exceptions import ConvergenceWarning  # noqa: E402

from maxmargin import (  # noqa: E402
    LeastSquaresClassifier,
    LinearRegression,
    MCEClassifier,
    Perceptron,
    Ridge,
)
from maxmargin.dask.cluster import MEMORY  # noqa: E402
from maxmargin.solution import Status  # noqa: E402

SIZES = (13, 0, 100, 87, 100)


@pytest.fixture(autouse=True)
def here():
    with dask.config.set(scheduler="synchronous"):
        yield


@pytest.fixture(scope="module")
def data():
    """Columns of very different units, one far from zero, one that is the sum of two others."""
    random = np.random.default_rng(0)
    X = random.normal(size=(300, 6)) * [1, 2, 3, 4, 1e3, 1] + [0, 0, 0, 5, 1e6, 0]
    X[:, 5] = X[:, 0] + X[:, 1]
    Y = X[:, :3] @ random.normal(size=(3, 2)) + random.normal(size=(300, 2))
    weight = random.uniform(size=300)
    weight[::7] = 0.0
    labels = np.array(["x", "y", "z"])[(Y[:, 0] > 0).astype(int) + (Y[:, 1] > 1)]
    return X, Y, weight, labels


def spread(X, sparse=False):
    blocks = da.from_array(X, chunks=(SIZES, X.shape[1]))
    return blocks.map_blocks(sp.csr_matrix) if sparse else blocks


def both(machine, data, sparse=False, targets=None, **how):
    """Return the machine fitted in memory, and to partitions."""
    X, Y, weight, _ = data
    targets = Y if targets is None else targets
    rows = sp.csr_matrix(X) if sparse else X
    here = machine(**how).fit(rows, targets, sample_weight=weight)
    there = machine(**how).fit(spread(X, sparse), targets, sample_weight=weight)
    assert set(vars(there)) - set(vars(here)) == {"distribution_"}
    assert not set(vars(here)) - set(vars(there))
    assert type(there.certificate_) is type(here.certificate_)
    return here, there


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize(
    "how", [{}, {"fit_intercept": False}, {"positive": True}], ids=["qr", "no-intercept", "nnls"]
)
def test_least_squares_by_triangles(data, how, sparse):
    here, there = both(LinearRegression, data, sparse, **how)
    scale = data[0].std(axis=0)
    np.testing.assert_allclose(there.coef_ * scale, here.coef_ * scale, atol=1e-10)
    np.testing.assert_allclose(there.intercept_, here.intercept_, atol=1e-8)
    assert there.rank_ == here.rank_ == (None if "positive" in how else 5)
    assert there.certificate_.converged
    assert there.certificate_.objective == pytest.approx(here.certificate_.objective)
    if there.singular_ is not None:
        np.testing.assert_allclose(there.singular_, here.singular_, rtol=1e-10, atol=1e-6)
    assert there.distribution_.rounds == 3  # check and moments, triangles, certificate
    assert (there.distribution_.partitions, there.distribution_.rows) == (4, 300)


@pytest.mark.parametrize(
    "how",
    [
        {"solver": "conjugate_gradient"},
        {"solver": "gradient_descent"},
        {"solver": "gradient_descent", "step_size": 1e-15, "max_iter": 3},
    ],
    ids=["cg", "descent", "by-hand"],
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_products_only(data, how):
    here, there = both(LinearRegression, data, **how)
    scale = data[0].std(axis=0)
    np.testing.assert_allclose(there.coef_ * scale, here.coef_ * scale, atol=1e-5)
    assert there.certificate_.status is here.certificate_.status
    assert there.certificate_.converged == (there.certificate_.gradient_norm <= 1e-6)
    if "step_size" in how:
        np.testing.assert_allclose(there.loss_curve_, here.loss_curve_, rtol=1e-12)


def test_one_output_of_a_frame(data):
    X, Y, _, _ = data
    frame = pd.DataFrame(X, columns=list("abcdef"))
    rows = dd.from_pandas(frame, npartitions=4, sort=False)
    y = dd.from_pandas(pd.Series(Y[:, 0]), npartitions=4, sort=False)
    there, here = LinearRegression().fit(rows, y), LinearRegression().fit(frame, Y[:, 0])
    assert there.coef_.shape == (6,)
    assert isinstance(there.intercept_, float)
    np.testing.assert_allclose(there.coef_, here.coef_, atol=1e-10)
    assert list(there.feature_names_in_) == list("abcdef")
    assert there.score(rows, y) == pytest.approx(here.score(frame, Y[:, 0]))


@pytest.mark.parametrize("class_weight", [None, "balanced"])
def test_classes(data, class_weight):
    labels = data[3]
    for sparse in (False, True):
        here, there = both(LeastSquaresClassifier, data, sparse, labels, class_weight=class_weight)
        np.testing.assert_allclose(there.coef_, here.coef_, atol=1e-11)
        assert there.classes_.tolist() == ["x", "y", "z"]
    some = da.from_array(data[0], chunks=(77, 6))
    assert (there.predict(some).compute() == here.predict(data[0])).all()


def test_far_from_zero_keeps_its_digits():
    """Moments are put together without the squares of means: a mean of 1e9 costs no digits."""
    random = np.random.default_rng(1)
    far = np.array([1e9, -1e8])
    X = far + random.normal(size=(300, 2))
    y = (X - far) @ [1.0, -2.0]
    model = LinearRegression().fit(spread(X), y)
    np.testing.assert_allclose(model.coef_, [1.0, -2.0], rtol=1e-6)


def test_moments_of_wide_rows_have_a_pass_of_their_own(data, monkeypatch):
    _, Y, _, labels = data
    monkeypatch.setattr("maxmargin.dask.standardised._TOLD", 5)
    for machine, targets in ((LinearRegression, Y), (LeastSquaresClassifier, labels)):
        here, there = both(machine, data, targets=targets)
        np.testing.assert_allclose(there.coef_, here.coef_, atol=1e-10)
        assert there.distribution_.rounds == 4


def test_rows_that_are_not_kept_are_read_once_in_a_pass(data):
    X, Y, _, _ = data
    reads = []

    def read(k):
        reads.append(k)
        return X[k * 100 : (k + 1) * 100]

    parts = [dask.delayed(read)(k) for k in range(3)]
    targets = [dask.delayed(Y[k * 100 : (k + 1) * 100]) for k in range(3)]
    with dask.config.set({MEMORY: "1 kB"}):
        model = LinearRegression().fit(parts, targets)
    assert not model.distribution_.kept
    assert sorted(reads) == [k for k in range(3) for _ in range(model.distribution_.rounds)]
    np.testing.assert_allclose(model.coef_, LinearRegression().fit(X, Y).coef_, atol=1e-10)


def test_stopped_has_the_rows_that_were_seen(data, monkeypatch):
    X, Y, _, _ = data
    monkeypatch.setattr("maxmargin.dask.standardised._WAVE", 1)
    monkeypatch.setattr("maxmargin.dask.cluster.Cluster.n_threads", 1)
    with pytest.warns(ConvergenceWarning, match="rows that were seen"):
        model = LinearRegression(time_limit=1e-9).fit(spread(X), Y)
    assert model.certificate_.status is Status.TIME_LIMIT
    mean, scale = X.mean(axis=0), X.std(axis=0)
    first = (X[:13] - mean) / scale  # of the columns of all rows, the first partition
    own = LinearRegression().fit(first[:, :5], Y[:13])
    values = own.predict(first[:, :5])
    np.testing.assert_allclose(model.predict(X[:13]), values, atol=1e-6)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("how", [{}, {"fit_intercept": False}, {"solver": "cg", "tol": 1e-8}])
def test_ridge(data, how, sparse):
    here, there = both(Ridge, data, sparse, **how)
    scale = data[0].std(axis=0)
    np.testing.assert_allclose(there.coef_ * scale, here.coef_ * scale, atol=1e-5)
    assert there.certificate_.converged
    assert there.form_ == "primal"
    parts = zip(there.certificate_.parts, here.certificate_.parts, strict=True)
    assert all(a.objective == pytest.approx(b.objective) for a, b in parts)


def test_ridge_of_wide_rows():
    random = np.random.default_rng(0)
    X, y = random.normal(size=(50, 80)), random.normal(size=50)
    here = Ridge().fit(X, y)
    there = Ridge().fit(da.from_array(X, chunks=(20, 80)), y)
    assert (here.form_, there.form_) == ("dual", "primal")
    np.testing.assert_allclose(there.coef_, here.coef_, atol=1e-12)
    with pytest.raises(ValueError, match="'primal' or 'cg'"):
        Ridge(solver="dual").fit(da.from_array(X, chunks=(20, 80)), y)


@pytest.mark.parametrize("shape", [(40,), (40, 1), (40, 2)])
def test_ridge_has_the_shapes_of_a_fit_in_memory(shape):
    random = np.random.default_rng(0)
    X, y = random.normal(size=(40, 3)), random.normal(size=shape)
    here, there = (
        Ridge().fit(X, y),
        Ridge().fit(*(da.from_array(part, chunks=20) for part in (X, y))),
    )
    np.testing.assert_allclose(there.coef_, here.coef_, atol=1e-12, strict=True)
    np.testing.assert_allclose(there.intercept_, here.intercept_, atol=1e-12, strict=True)


def test_minimum_classification_error(data):
    labels = data[3]
    for how in ({"n_restarts": 1}, {"n_restarts": 0, "alpha": 0.01, "class_weight": "balanced"}):
        here, there = both(MCEClassifier, data, False, labels, random_state=0, **how)
        np.testing.assert_allclose(there.losses_, here.losses_, atol=1e-3)
        assert there.train_error_ == pytest.approx(here.train_error_, abs=0.01)
        assert there.gradient_norm_ <= 1e-4
    with pytest.raises(ValueError, match="'lbfgs' or 'gradient_descent'"):
        MCEClassifier(solver="sgd").fit(spread(data[0]), labels)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    "how",
    [
        {"order": "cyclic"},
        {"shuffle": False, "variant": "averaged", "class_weight": "balanced"},
        {"order": "misclassified", "multiclass": "ovo"},
        {"order": "cyclic", "variant": "pocket", "max_iter": 3},
        {"order": "cyclic", "eta0": "inverse_sqrt", "early_stopping": True, "max_iter": 3},
        {"order": "cyclic", "penalty": "l1", "max_iter": 3},
    ],
    ids=lambda how: "-".join(map(str, how.values())),
)
def test_perceptron_makes_the_same_updates(data, how):
    sparse = "penalty" in how
    here, there = both(Perceptron, data, sparse, data[3], n_jobs=1, **how)
    np.testing.assert_allclose(there.coef_, here.coef_, rtol=1e-12)
    np.testing.assert_array_equal(there.n_updates_, here.n_updates_)
    assert there.status_ is here.status_
    if "penalty" not in how:
        np.testing.assert_allclose(there.dual_coef_, here.dual_coef_, atol=1e-12)


def test_perceptron_in_an_order_of_partitions():
    random = np.random.default_rng(0)
    X = random.normal(size=(300, 4))
    y = X @ [1.0, -1.0, 2.0, 0.5] > 0
    X += 0.3 * np.where(y, 1.0, -1.0)[:, None] * [1.0, -1.0, 1.0, 1.0]  # a margin
    model = Perceptron(tol=None).fit(spread(X), y)
    assert model.status_ is Status.SEPARATED
    assert model.score(spread(X), y) == 1.0
    np.testing.assert_allclose(model.coef_, model.dual_coef_ @ X)
    for how, advice in (({"order": "random"}, "shuffled"), ({"penalty": "l2"}, "LinearSVC")):
        with pytest.raises(ValueError, match=advice):
            Perceptron(**how).fit(spread(X), y)


def test_row_by_row_is_refused(data):
    with pytest.raises(ValueError, match="'qr' or 'conjugate_gradient'"):
        LinearRegression(solver="sgd").fit(spread(data[0]), data[1])


def test_what_is_wrong_is_said_with_its_partition(data):
    X, Y, _, labels = data
    spoilt = X.copy()
    spoilt[-1, 2] = np.nan
    with pytest.raises(ValueError, match=r"Partition 4: .*NaN"):
        LinearRegression().fit(spread(spoilt), Y)
    large = X.copy()
    large[150, 1] = 1e200
    with pytest.raises(ValueError, match=r"column\(s\) \[1\] are too large"):
        LinearRegression().fit(spread(large), Y)
    with pytest.raises(ValueError, match=r"class\(es\) \['x'\] have weight zero"):
        LeastSquaresClassifier().fit(spread(X), labels, (labels != "x").astype(float))


def test_on_processes(data, processes):
    X, Y, weight, labels = data
    rows = spread(X)
    model = LinearRegression().fit(rows, Y, sample_weight=weight)
    here = LinearRegression().fit(X, Y, sample_weight=weight)
    np.testing.assert_allclose(model.coef_, here.coef_, atol=1e-10)
    assert model.distribution_.workers == 2
    ridge = Ridge().fit(rows, Y)
    np.testing.assert_allclose(ridge.coef_, Ridge().fit(X, Y).coef_, atol=1e-10)
    steps = Perceptron(order="cyclic", max_iter=3, tol=None)
    with pytest.warns(ConvergenceWarning):
        steps.fit(rows, labels)
    with pytest.warns(ConvergenceWarning):
        same = Perceptron(order="cyclic", max_iter=3, tol=None).fit(X, labels)
    np.testing.assert_allclose(steps.coef_, same.coef_)


@pytest.mark.parametrize("solver", ["qr", "conjugate_gradient"])
def test_a_partition_whose_rows_weigh_nothing(data, solver):
    X, Y, weight, _ = data
    weight = np.where(np.arange(300) < 113, 0.0, weight)  # those of two partitions
    y, machine = Y[:, 0], LinearRegression(solver=solver)
    here = machine.fit(X[:, :4], y, sample_weight=weight).coef_
    there = LinearRegression(solver=solver).fit(spread(X[:, :4]), y, sample_weight=weight)
    np.testing.assert_allclose(there.coef_, here, rtol=1e-6)
