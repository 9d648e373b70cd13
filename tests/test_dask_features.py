"""Feature maps, machines on features, kernel parameters and gathered fits on Dask collections."""

import warnings
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

dask = pytest.importorskip("dask")
pytest.importorskip("distributed")

import dask.array as da  # noqa: E402
import dask.dataframe as dd  # noqa: E402
from sklearn.base import clone  # noqa: E402
from sklearn.datasets import load_iris  # noqa: E402

from maxmargin import (  # noqa: E402
    SVC,
    SVR,
    ExplicitFeatures,
    GaussianProcessRegressor,
    KernelLogisticRegression,
    KernelPCA,
    KernelRidge,
    KernelRidgeCV,
    LinearSVC,
    Nystroem,
    RandomFourier,
)
from maxmargin.dask import feature_maps  # noqa: E402
from maxmargin.dask.cluster import MEMORY  # noqa: E402
from maxmargin.dask.kernel_parameters import resolve_kernel  # noqa: E402
from maxmargin.dask.rows import Partitions  # noqa: E402
from maxmargin.kernels import (  # noqa: E402
    RBF,
    Kernel,
    Laplacian,
    Linear,
    LocalAlignment,
    Polynomial,
    Precomputed,
    Validity,
    WeightedDegree,
)
from maxmargin.multiclass import SchemeClassifier  # noqa: E402

NAMES = list("abcd")
ENDS = (0, 31, 31, 101, 150)  # the second partition is empty


@pytest.fixture(autouse=True)
def here():
    with dask.config.set(scheduler="synchronous"):
        yield


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    random = np.random.default_rng(0)
    order = random.permutation(len(y))
    weight = random.uniform(size=len(y))
    weight[::9] = 0.0
    return X[order], np.array(["setosa", "versicolor", "virginica"])[y[order]], weight


def cut(data):
    return [dask.delayed(data[a:b]) for a, b in pairwise(ENDS)]


def collection(X, kind):
    """Return rows in memory and the same in partitions."""
    if kind == "frame":
        frame = pd.DataFrame(X, columns=NAMES)
        return frame, dd.from_pandas(frame, npartitions=4, sort=False)
    if kind == "polars":
        pl = pytest.importorskip("polars")
        frame = pl.DataFrame(dict(zip(NAMES, X.T, strict=True)))
        return frame, cut(frame)
    if kind == "list":
        return X, cut(X)
    rows = da.from_array(X, chunks=(tuple(np.diff(ENDS).tolist()), X.shape[1]))
    if kind == "sparse":
        return sp.csr_matrix(X), rows.map_blocks(sp.csr_matrix)
    return X, rows


def computed(answer):
    if isinstance(answer, list):
        return np.concatenate([np.asarray(part) for part in dask.compute(*answer)])
    return np.asarray(answer.compute())


def squares(X):
    return np.hstack([X, X**2])


# -- kernel parameters -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kernel",
    [
        RBF(),
        0.5 * RBF().on(["a", "b"]) + Polynomial(2, gamma="scale").on([2, 3]),
        RBF().after(squares) * Laplacian(gamma="scale"),
        RBF().stretched([1.0, 2.0, 3.0, 4.0]).normalized(),
        Laplacian() ** 2 + 1.0,
    ],
    ids=str,
)
def test_kernels_are_resolved_from_all_partitions(iris, kernel):
    _, rows = collection(iris[0], "frame")
    machine = Nystroem(kernel)
    found = resolve_kernel(machine, kernel, Partitions.of(machine, rows, kernel=kernel))
    wanted = kernel.resolve(iris[0], NAMES)
    some = iris[0][:20]
    np.testing.assert_allclose(found(some), wanted(some), rtol=1e-13)


def test_sequences_and_sparse_rows(iris):
    strings = ["ACGT", "ACGA", "TTTT", "GGGG"] * 40
    machine, parts = Nystroem(WeightedDegree()), cut(strings)
    rows = Partitions.of(machine, parts, kernel=machine.kernel)
    assert resolve_kernel(machine, machine.kernel, rows).length == 4
    X, rows = collection(iris[0] * (iris[0] > 2), "sparse")
    machine = Nystroem(RBF())
    found = resolve_kernel(machine, RBF(), Partitions.of(machine, rows, kernel=RBF()))
    assert found.gamma == pytest.approx(RBF().resolve(X).gamma, rel=1e-13)


class Median(Kernel):
    """A kernel that wants more of the rows than their moments."""

    def __init__(self, gamma=None):
        self.gamma = gamma

    @property
    def validity(self):
        return Validity.VALID

    def _resolve(self, X, feature_names):
        return Median(float(np.median(X)))

    def _emit(self, program, view):
        RBF(self.gamma)._emit(program, view)


@pytest.mark.parametrize(
    ("kernel", "match"),
    [
        (Median(), "asks for"),
        (LocalAlignment(), "shift='auto'"),
        (Precomputed(), "matrix"),
    ],
    ids=str,
)
def test_what_cannot_be_reduced_is_said(iris, kernel, match):
    X = ["ACGT"] * 150 if isinstance(kernel, LocalAlignment) else iris[0]
    with pytest.raises(ValueError, match=match):
        Nystroem(kernel).fit(cut(X))


# -- feature maps ----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["array", "sparse", "frame", "polars", "list"])
@pytest.mark.parametrize(
    "features",
    [
        Nystroem(n_components=20, random_state=0),
        Nystroem("poly", degree=2, gamma="scale", landmarks="uniform", n_components=9),
        RandomFourier(gamma="scale", n_components=31, random_state=1),
        ExplicitFeatures(Polynomial(2, gamma="scale")),
    ],
    ids=lambda features: type(features).__name__,
)
def test_feature_maps_are_those_of_memory(iris, features, kind):
    if kind == "sparse" and isinstance(features, ExplicitFeatures):
        pytest.skip("takes dense rows")
    X, rows = collection(iris[0], kind)
    if hasattr(features, "random_state"):
        features = clone(features).set_params(random_state=3)
    here, there = clone(features).fit(X), clone(features).fit(rows)
    if isinstance(features, Nystroem):
        np.testing.assert_array_equal(there.component_indices_, here.component_indices_)
        assert type(there.components_) is type(here.components_)
    assert there.approximation_error_ == pytest.approx(here.approximation_error_, abs=1e-9)
    found = there.transform(rows)
    assert type(found) is type(rows) or kind == "sparse"
    np.testing.assert_allclose(computed(found), here.transform(X), atol=1e-8)
    assert set(vars(there)) - set(vars(here)) <= {"distribution_", "fit_time_"}
    assert not set(vars(here)) - set(vars(there))


def test_landmarks_of_many_rows(iris, monkeypatch):
    """From a pool, and drawn without a permutation of all rows where these are very many."""
    X, rows = collection(iris[0], "array")
    monkeypatch.setattr("maxmargin.feature_maps.nystroem._POOL", 60)
    features = Nystroem(n_components=5, random_state=0)
    here, there = clone(features).fit(X), clone(features).fit(rows)
    np.testing.assert_array_equal(there.component_indices_, here.component_indices_)
    monkeypatch.setattr(feature_maps, "_PERMUTED", 10)
    other = clone(features).fit(rows)
    np.testing.assert_array_equal(other.components_, X[other.component_indices_])
    assert len(np.unique(other.component_indices_)) == 5
    assert other.approximation_error_ < 0.5


def test_a_pool_without_room_is_refused(iris):
    with dask.config.set({MEMORY: "1 kB"}), pytest.raises(MemoryError, match="uniform"):
        Nystroem(n_components=20).fit(collection(iris[0], "array")[1])


def test_frames_keep_their_names_without_a_warning(iris):
    frame, rows = collection(iris[0], "frame")
    features = Nystroem(RBF().on(["a"]) + Linear(), n_components=5, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        here, there = clone(features).fit(frame), clone(features).fit(rows)
        np.testing.assert_allclose(computed(there.transform(rows)), here.transform(frame))


# -- machines on features --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "how",
    [
        {"approximation": "nystroem"},
        {"approximation": "random_fourier", "multiclass": "ovr", "class_weight": "balanced"},
        {"approximation": Nystroem(n_components=20, random_state=0), "lam": 0.01},
    ],
    ids=["pairs", "rest-balanced", "lam"],
)
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.filterwarnings("ignore:The kernel's values have rank")
def test_svc_on_features(iris, how, classes):
    X, y, weight = iris
    some = np.flatnonzero(y != "setosa") if classes == 2 else np.arange(len(y))
    X, y, weight = X[some], y[some], weight[some]
    rows = da.from_array(X, chunks=(41, 4))
    machine = SVC(random_state=0, tol=1e-5, **how)
    here, there = clone(machine).fit(X, y, weight), clone(machine).fit(rows, y, weight)
    assert type(there.certificate_) is type(here.certificate_)
    assert there.certificate_.converged
    assert there.certificate_.approximation_error == pytest.approx(
        here.certificate_.approximation_error,
        abs=1e-9,
        nan_ok=True,  # all rows are landmarks
    )
    assert there.certificate_.primal == pytest.approx(here.certificate_.primal, rel=3e-5)
    values = there.decision_function(rows).compute()
    np.testing.assert_allclose(values, here.decision_function(X), atol=0.02)
    np.testing.assert_allclose(there.slack_, here.slack_, atol=0.02)
    assert there.score(rows, y) == pytest.approx(here.score(X, y), abs=0.02)
    assert set(vars(there)) - set(vars(here)) == {"distribution_"}
    assert not set(vars(here)) - set(vars(there))


def test_svr_on_features(iris):
    X, _, weight = iris
    Y = np.column_stack([X[:, 0] * 2 + X[:, 1] ** 2, X[:, 2]])
    rows = collection(X, "array")[1]
    for targets in (Y, Y[:, 0]):
        machine = SVR(approximation=Nystroem(n_components=15, random_state=0), tol=1e-6)
        here, there = (clone(machine).fit(data, targets, weight) for data in (X, rows))
        np.testing.assert_allclose(computed(there.predict(rows)), here.predict(X), atol=0.01)
        np.testing.assert_allclose(there.slack_, here.slack_, atol=0.01)
        assert there.certificate_.converged
        assert not set(vars(here)) - set(vars(there))


@pytest.mark.parametrize("machine", [SVC(C=10.0, multiclass="ovr"), SVC(lam=0.01)])
def test_probabilities_on_features_are_those_of_memory(iris, machine):
    X, y, weight = iris
    rows = collection(X, "array")[1]
    features = Nystroem(n_components=15, random_state=0)
    machine.set_params(approximation=features, probability=True, tol=1e-4, random_state=0)
    here, there = (clone(machine).fit(data, y, weight) for data in (X, rows))
    said = computed(there.predict_proba(rows))
    np.testing.assert_allclose(said, here.predict_proba(X), atol=0.01)
    assert there.score(rows, y) > 0.9


def test_what_features_refuse(iris):
    rows = collection(iris[0], "array")[1]
    with pytest.raises(ValueError, match="leave norm_bound=None"):
        SVC(approximation="nystroem", norm_bound=1.0).fit(rows, iris[1])


# -- all rows in one place -------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["array", "sparse", "frame", "polars", "list"])
def test_gathered(iris, kind):
    X, y, _ = iris
    target = X[:, 0] * 2 + X[:, 1] ** 2
    table, rows = collection(X, kind)
    if kind == "frame":
        numbers, labels = (
            dd.from_pandas(pd.Series(data), npartitions=4, sort=False) for data in (target, y)
        )
    else:
        numbers, labels = cut(target), cut(y)
    machines = [KernelRidge(kernel="rbf"), KernelRidgeCV(kernel="rbf")]
    machines += [KernelLogisticRegression(), SchemeClassifier(LinearSVC(), multiclass="ovo")]
    if kind != "sparse":
        machines.append(GaussianProcessRegressor(optimizer=None))
    if kind in ("frame", "polars"):
        machines.append(KernelRidge(kernel=RBF().on(["b", "a"])))
    for machine in machines:
        classes = hasattr(machine, "predict_proba") or isinstance(machine, SchemeClassifier)
        here = clone(machine).fit(table, y if classes else target)
        there = clone(machine).fit(rows, labels if classes else numbers)
        found, wanted = computed(there.predict(rows)), here.predict(table)
        if classes:
            np.testing.assert_array_equal(found, wanted)
        else:
            np.testing.assert_allclose(found, wanted, atol=1e-8)
        if kind in ("frame", "polars"):
            assert list(there.feature_names_in_) == NAMES
        assert "gathered" in str(there.distribution_)
    here, there = KernelPCA(2, kernel="rbf").fit(table), KernelPCA(2, kernel="rbf").fit(rows)
    found, wanted = computed(there.transform(rows)), here.transform(table)
    np.testing.assert_allclose(np.abs(found), np.abs(wanted), atol=1e-8)


def test_gathered_partitions_have_to_go_together(iris):
    X = iris[0]
    frame = pd.DataFrame(X, columns=NAMES)
    bad = [
        ((X[:10], X[10:20, :3]), "Partition 1 has columns 3, and partition 0 4"),
        ((X[:10], X[10:20].astype(np.float32)), "Partition 1 has entries of type float32"),
        ((frame[:10], frame[10:20][["b", "a", "c", "d"]]), "Partition 1 has columns named b, a"),
        ((X[:10], X[10:19]), "Partition 1: X has 9 rows and y has 10"),
        ((X[:0], X[:0]), "Partition [01]: X has 0 rows"),
    ]
    y = [dask.delayed(np.ones(10))] * 2
    for parts, said in bad:
        with pytest.raises(ValueError, match=said):
            KernelRidge().fit([dask.delayed(part) for part in parts], y)


def test_gathered_rows_without_room_are_refused_before_they_move():
    rows = da.zeros((10**8, 1000), chunks=(10**6, 1000))
    with pytest.raises(MemoryError, match=r"100,000,000 of them take .* MB.*Nystroem"):
        KernelRidge().fit(rows, da.zeros(10**8, chunks=10**6))


def test_on_processes(iris, processes):
    X, y, _ = iris
    rows = da.from_array(X, chunks=(50, 4))
    there = Nystroem(RBF().after(lambda Z: Z + 1.0), n_components=10, random_state=0).fit(rows)
    here = Nystroem(RBF().after(lambda Z: Z + 1.0), n_components=10, random_state=0).fit(X)
    np.testing.assert_array_equal(there.component_indices_, here.component_indices_)
    model = SVC(approximation=RandomFourier(n_components=20, random_state=0)).fit(rows, y)
    assert model.certificate_.converged
    assert KernelRidge().fit(rows, X[:, 0]).distribution_.workers == 2
