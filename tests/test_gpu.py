"""The GPU engine: the same answers as on the CPU, from any kernel, memory and data.

Without a GPU the kernels run in Triton's interpreter (see ``conftest.py``), a step of a working set
in some 30 ms: problems are tiny here, and so are the sets that cut them into several, and all tests
are in the slow tier. On a computer with a GPU ``pytest tests/test_gpu.py`` runs the same on it.
"""

import gc
import os
import pickle
import subprocess
import sys
import weakref
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.multiclass import OneVsRestClassifier

from maxmargin import (
    SVC,
    SVR,
    Gram,
    KernelLogisticRegression,
    KernelPCA,
    KernelRidge,
    NuSVC,
    NuSVR,
    OneClassSVM,
    SVCSearchCV,
    SVRSearchCV,
    duals,
)
from maxmargin.backends import device
from maxmargin.backends.device import DeviceError, place
from maxmargin.gram import DeviceGram
from maxmargin.kernels import (
    RBF,
    Laplacian,
    Linear,
    Matern,
    Polynomial,
    Precomputed,
    RationalQuadratic,
    Sigmoid,
    exp,
)
from maxmargin.progress import Monitor
from maxmargin.solution import Status
from maxmargin.solvers import PreconditionedCG
from maxmargin.solvers.dual import certified, parallel_sets
from maxmargin.testing import check_gram

if os.environ.get("TRITON_INTERPRET") == "1":
    pytestmark = pytest.mark.slow

needs_torch = pytest.mark.skipif(
    not (device.find_spec("torch") and device.find_spec("triton")),
    reason="the GPU engine needs torch and triton: pip install torch triton",
)

RANDOM = np.random.default_rng(5)
X = RANDOM.normal(size=(36, 3))
target = np.sin(2 * X[:, 0]) + 0.5 * X[:, 1]
y = (target + 0.3 * RANDOM.normal(size=36) > 0).astype(int)
weight = np.where(np.arange(36) % 5 == 0, 0.0, 1.0 + np.arange(36) % 3)


@pytest.fixture(params=["together", "stages"])
def regime(request, monkeypatch):
    """Both ways of the engine, on problems that are small for a test's sake."""
    if request.param == "stages":
        monkeypatch.setattr(parallel_sets, "_TOGETHER", 10)
        monkeypatch.setattr(parallel_sets, "_SET", 16)
        monkeypatch.setattr(parallel_sets, "_LEAF", 8)
        monkeypatch.setattr(parallel_sets, "_CHUNK", 16)
        monkeypatch.setattr(parallel_sets, "_LARGEST_CHUNK", 24)
    return request.param


@pytest.fixture(params=["resident", "made when summed"])
def memory(request, monkeypatch):
    """Hold the whole matrix, or none of it."""
    if request.param != "resident":
        from maxmargin.backends.cuda import matrix

        monkeypatch.setattr(matrix, "_RESIDENT_SHARE", 0.0)
    return request.param


KERNELS = {
    "gaussian": RBF(gamma=0.7),
    "linear": Linear(),
    "polynomial": Polynomial(3, coef0=1.0, gamma=0.5),
    "laplacian": Laplacian(gamma=0.5),
    "sigmoid": Sigmoid(gamma=0.1, coef0=-0.2),
    "sum": 0.5 * RBF(gamma=0.3) + 0.1 * Linear(),
    "shared primitive": RBF(gamma=0.3) + RBF(gamma=3.0),
    "product on columns": RBF(gamma=0.2).on([0, 1]) * Polynomial(2, coef0=1.0).on([2]),
    "exponential": exp(0.2 * Linear()),
    "conformal": RBF(gamma=0.3).conformal(lambda X: 1.0 / (1.0 + np.asarray(X[:, 0]).ravel() ** 2)),
    "matern": Matern(1.5, 2.5) + RationalQuadratic(1.2, 0.7),
    "stretched": RBF(gamma=0.3).stretched([1.0, 2.0, 0.5]),
    "feature map": Linear().after(lambda X: np.column_stack([X, X[:, :2] ** 2])),
}
GIVEN = RBF(gamma=1.0)(X)
DIRECT = ["crammer_singer", "weston_watkins"]
CONTAINERS = {
    "float64": np.asarray,
    "float32": np.float32,
    "csr": lambda X: sp.csr_array(np.where(np.abs(X) > 0.5, X, 0.0)),
}


@needs_torch
def test_every_problem_is_traced(regime):
    iris, species = load_iris(return_X_y=True)
    model = SVC(kernel="linear", device="cuda", trace=True).fit(iris[::5], species[::5])
    trace = model.trace_
    assert trace.problems == [0, 1, 2]
    for k in trace.problems:
        assert "ParallelSets" in trace.curve("method", k)
        dual = trace.curve("dual", k)
        assert np.isfinite(dual).all()
        assert (np.diff(dual) >= -1e-4 * np.abs(dual).max()).all()
        np.testing.assert_allclose(trace.weights(k)[-1], model.coef_[k], atol=1e-3)


@needs_torch
@pytest.mark.parametrize("container", CONTAINERS.values(), ids=CONTAINERS.keys())
@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS.keys())
def test_values_are_those_of_the_cpu(kernel, container, memory):
    import torch

    data = container(X)
    if sp.issparse(data) and kernel in (KERNELS["feature map"], KERNELS["conformal"]):
        pytest.skip("its function is one of dense rows")
    host, gpu = Gram.of(data, kernel), DeviceGram.of(data, kernel, device="cuda")
    check_gram(gpu, data)
    K = host.rows(np.arange(36))
    scale = np.abs(K).max()
    matrix, rows = gpu.matrix, np.array([[5, 7, 11, 0], [1, 2, 0, 0]])
    assert (matrix.resident() is None) == (memory != "resident")
    brought = matrix.to_device(rows)
    expected = K[rows[:, :, None], rows[:, None, :]]
    np.testing.assert_allclose(matrix.square(brought).cpu(), expected, atol=2e-6 * scale)
    weights = RANDOM.normal(size=(2, 4)).astype(np.float32)
    counts = torch.tensor([3, 2], dtype=torch.int32, device=matrix.device)
    for columns in (np.arange(36)[None], np.array([[8, -1, 3], [2, 1, -1]])):
        sums = matrix.sums(brought, matrix.to_device(weights), counts, matrix.to_device(columns))
        for p, count in enumerate([3, 2]):
            own = columns[p % len(columns)]
            wanted = weights[p, :count] @ K[rows[p, :count]][:, own]
            np.testing.assert_allclose(
                sums[p].cpu().numpy()[own >= 0], wanted[own >= 0], atol=1e-5 * scale
            )


MACHINES = {
    "SVC": (SVC(C=2.0, gamma=1.0), y),
    "SVC without bias": (SVC(C=2.0, gamma=1.0, fit_intercept=False), y),
    "NuSVC": (NuSVC(nu=0.4, gamma=1.0), y),
    "NuSVC without bias": (NuSVC(nu=0.4, gamma=1.0, fit_intercept=False), y),
    "SVR": (SVR(C=1.0, gamma=1.0, epsilon=0.2), target),
    "NuSVR": (NuSVR(C=0.3, gamma=1.0, nu=0.3), target),
    "OneClassSVM": (OneClassSVM(nu=0.3, gamma=1.0), None),
}


def values_of(model, points):
    function = "decision_function" if hasattr(model, "decision_function") else "predict"
    return getattr(model, function)(points)


@needs_torch
@pytest.mark.parametrize(("model", "labels"), MACHINES.values(), ids=MACHINES.keys())
def test_every_machine_is_that_of_the_cpu(regime, model, labels):
    args = (X,) if labels is None else (X, labels)
    host = type(model)(**model.get_params()).fit(*args, sample_weight=weight)
    gpu = type(model)(**{**model.get_params(), "device": "cuda"}).fit(*args, sample_weight=weight)
    assert gpu.device_.on_gpu
    assert gpu.certificate_.converged
    assert gpu.certificate_.infeasibility < 1e-9
    assert gpu.certificate_.dual == pytest.approx(host.certificate_.dual, rel=1e-5)
    np.testing.assert_allclose(values_of(gpu, X), values_of(host, X), atol=3e-3)


@needs_torch
@pytest.mark.parametrize(
    ("regime", "machine"),
    [*(("together", name) for name in MACHINES), ("stages", "SVC"), ("stages", "NuSVC")],
    indirect=["regime"],
)
def test_newton_steps_finish_what_crawls(regime, monkeypatch, machine):
    """As soon as they are worth it; here at once. They work in float64, so a tight tol is met."""
    model, labels = MACHINES[machine]
    monkeypatch.setattr(parallel_sets, "_newton_cost", lambda movable: 0 * movable)
    args = (X,) if labels is None else (X, labels)
    host = clone(model).set_params(tol=1e-7).fit(*args, sample_weight=weight)
    gpu = clone(model).set_params(tol=1e-7, device="cuda").fit(*args, sample_weight=weight)
    assert gpu.certificate_.converged
    assert gpu.certificate_.infeasibility < 1e-9
    assert gpu.certificate_.dual == pytest.approx(host.certificate_.dual, rel=1e-6, abs=1e-9)


@needs_torch
def test_sums_are_given_back_to_as_many_as_it_takes():
    """All at a wall, and so lost the whole sum: those have it back that are the first to rise."""
    from maxmargin.backends.cuda.sets import Variables

    gram = DeviceGram.of(X, RBF(1.0), device="cuda")
    problem = duals.one_class(np.arange(36), np.ones(36), nu=0.25)
    batch = duals.DualBatch.of([problem])
    arrays = {**batch.arrays, "decision": np.arange(36.0)}
    variables = Variables.on_device(gram.matrix, arrays, batch.offset, 1)
    start = variables.b.clone()
    variables.b.zero_()
    variables.even_out(start)
    expected = np.where(np.arange(37) < 9, 1.0, 0.0)  # the last one is padding
    np.testing.assert_allclose(variables.b[0].cpu().numpy(), expected)


@needs_torch
@pytest.mark.parametrize("size", ["small", "large"])
def test_the_host_goes_on_where_the_gpu_gives_up(monkeypatch, size):
    if size == "large":
        monkeypatch.setattr(certified, "_ENGINE_FROM", 10)
    monkeypatch.setattr(parallel_sets, "_STALE", 0)
    monkeypatch.setattr(parallel_sets, "_FRUITLESS", 1)
    monkeypatch.setattr("maxmargin.backends.cuda.matrix.MATRICES", 1e18)  # no room for Newton steps
    gpu, host = (SVC(C=2.0, gamma=1.0, device=d).fit(X, y) for d in ("cuda", "cpu"))
    assert gpu.device_.on_gpu
    assert gpu.certificate_.converged
    assert gpu.certificate_.dual == pytest.approx(host.certificate_.dual, rel=1e-5)


@needs_torch
@pytest.mark.parametrize("kernel", ["rbf", "poly"])
def test_sets_that_are_made_when_summed(regime, memory, kernel):
    host, gpu = (SVC(C=2.0, kernel=kernel, gamma=1.0, device=d).fit(X, y) for d in ("cpu", "cuda"))
    assert gpu.certificate_.dual == pytest.approx(host.certificate_.dual, rel=1e-5)


@needs_torch
@pytest.mark.parametrize("multiclass", ["ovo", "ovr", "dag", "ecoc", *DIRECT])
def test_several_classes_at_once(multiclass):
    points, labels = load_iris(return_X_y=True)
    points, labels = points[::7], labels[::7]
    model = SVC(gamma=1.0, multiclass=multiclass)
    gpu, host = (clone(model).set_params(device=d).fit(points, labels) for d in ("cuda", "cpu"))
    assert len(gpu.certificate_.parts) == (0 if multiclass in DIRECT else 3)
    assert gpu.certificate_.converged
    np.testing.assert_allclose(gpu.intercept_, host.intercept_, atol=3e-3)
    values = host.decision_function(points)
    np.testing.assert_allclose(gpu.decision_function(points), values, atol=5e-3)
    np.testing.assert_array_equal(gpu.predict(points), host.predict(points))


@needs_torch
def test_the_hard_margin_is_smos():
    apart = np.where(y[:, None] > 0, np.abs(X), -np.abs(X))
    gpu = SVC(C=np.inf, kernel="linear", device="cuda").fit(apart, y)
    host = SVC(C=np.inf, kernel="linear").fit(apart, y)
    assert gpu.certificate_.converged
    np.testing.assert_allclose(gpu.coef_, host.coef_)


@needs_torch
@pytest.mark.parametrize("where", ["_whole", "square", "products"])
def test_running_out_of_memory_is_not_the_end(monkeypatch, where):
    """Others may take what was free a moment ago: then the matrix is made by tiles."""
    import torch

    from maxmargin.backends import cuda

    expected = SVC(C=2.0, gamma=1.0).fit(X, y)
    usual, refused = getattr(cuda.Matrix, where), []

    def refuse_once(self, *args):
        if not refused:
            refused.append(self.memory)
            raise torch.OutOfMemoryError("someone else has it")
        assert self._resident is None
        assert self.memory < refused[0]
        return usual(self, *args)

    monkeypatch.setattr(cuda.Matrix, where, refuse_once)
    model = SVC(C=2.0, gamma=1.0, device="cuda").fit(X, y)
    assert refused
    assert model.certificate_.dual == pytest.approx(expected.certificate_.dual, rel=1e-5)


@needs_torch
def test_a_fit_gives_its_memory_back_at_once(monkeypatch):
    from maxmargin.backends import cuda

    made, usual = [], cuda.Matrix.__init__

    def remembered(self, *args):
        made.append(weakref.ref(self))
        usual(self, *args)

    monkeypatch.setattr(cuda.Matrix, "__init__", remembered)
    points, labels = (array[::9] for array in load_iris(return_X_y=True))
    model = SVC(gamma=0.3, device="cuda").fit(points, labels)  # compiling keeps its frames
    made.clear()
    gc.disable()  # a matrix in a circle of references would wait for it
    try:
        model.fit(points, labels)
        assert [matrix() for matrix in made] == [None]
    finally:
        gc.enable()


@needs_torch
def test_a_gpu_without_any_memory(monkeypatch):
    """A sentence for who asked for it, the CPU for who left the choice."""
    import torch

    from maxmargin.backends import cuda

    def refuse(*args):
        raise torch.OutOfMemoryError("all of it is taken")

    monkeypatch.setattr(cuda.Matrix, "square", refuse)
    monkeypatch.setattr(device, "_WORTH", 0.0)
    with pytest.raises(DeviceError, match=r"run out of memory.*device='cpu'"):
        SVC(gamma=1.0, device="cuda").fit(X, y)
    model = SVC(gamma=1.0, device="auto").fit(X, y)
    assert model.device_.device == "cpu"
    assert "run out of memory" in model.device_.why
    grid = {"C": [0.3, 1.0]}
    search = SVCSearchCV(grid, cv=2, estimator=SVC(gamma=1.0, device="auto")).fit(X, y)
    expected = SVCSearchCV(grid, cv=2, estimator=SVC(gamma=1.0)).fit(X, y)
    np.testing.assert_array_equal(
        search.cv_results_["mean_test_score"], expected.cv_results_["mean_test_score"]
    )


@needs_torch
@pytest.mark.parametrize("megabytes", [0.005, 64])
def test_a_small_budget_changes_nothing_but_the_way(megabytes):
    gram = DeviceGram.of(X, RBF(gamma=1.0), device="cuda", cache_size=megabytes)
    assert (gram.matrix.resident() is None) == (megabytes < 1)
    beta = RANDOM.normal(size=36)
    np.testing.assert_allclose(gram.matvec(beta), RBF(gamma=1.0)(X) @ beta)


@needs_torch
@pytest.mark.parametrize("container", CONTAINERS.values(), ids=CONTAINERS.keys())
def test_predictions_are_those_of_the_cpu(container):
    points, labels = load_iris(return_X_y=True)
    model = SVC(gamma=0.3).fit(container(points), labels)
    expected = model.decision_function(container(points))
    model.set_params(device="cuda")
    np.testing.assert_allclose(model.decision_function(container(points)), expected, rtol=1e-9)


@needs_torch
def test_predictions_stay_within_cache_size(monkeypatch):
    from maxmargin.backends import cuda

    model = SVC(gamma=1.0, device="cuda").fit(X, y)
    expected, sizes, at = model.decision_function(X), [], cuda.Expansion.at
    monkeypatch.setattr(
        cuda.Expansion, "at", lambda self, some, *a: sizes.append(len(some)) or at(self, some, *a)
    )
    model.set_params(cache_size=1e-3)
    np.testing.assert_allclose(model.decision_function(X), expected, rtol=1e-9)
    assert len(sizes) > 1
    assert sum(sizes) == len(X)


@needs_torch
def test_support_vectors_are_moved_once(monkeypatch):
    from maxmargin.backends import cuda

    moved, prepare = [], cuda.Points.prepare.__func__

    def counted(cls, program, data, *arguments, **options):
        moved.append(data)
        return prepare(cls, program, data, *arguments, **options)

    model = SVC(gamma=1.0, device="cuda").fit(X, y)
    monkeypatch.setattr(cuda.Points, "prepare", classmethod(counted))
    first, again = model.decision_function(X), model.decision_function(X)
    np.testing.assert_array_equal(first, again)
    assert sum(data is model.support_vectors_ for data in moved) == 1
    assert len(moved) == 3
    model.support_vectors_ = model.support_vectors_ + 1.0  # others
    assert np.abs(model.decision_function(X + 1.0) - first).max() < 1e-6


@needs_torch
def test_a_stopped_fit_prepares_no_data_on_the_host(monkeypatch):
    points = RANDOM.normal(size=(600, 2))
    labels = (points[:, 0] > 0).astype(int)

    def refused(gram):
        raise AssertionError("the host was asked for")

    monkeypatch.setattr(DeviceGram, "host", property(refused))
    monkeypatch.setattr(parallel_sets, "_TOGETHER", 500)  # more are solved in stages
    with pytest.warns(ConvergenceWarning):
        model = SVC(device="cuda", callback=lambda progress: True).fit(points, labels)
    assert str(model.certificate_.status) == "interrupted"


@needs_torch
def test_a_feature_map_runs_once():
    calls = []

    def products(points):
        calls.append(len(points))
        return np.hstack([points, points[:, :1] * points[:, 1:]])

    kernel = (RBF() + 0.1 * Linear()).after(products)
    model = SVC(kernel=kernel, device="cuda").fit(X, y)
    assert calls == [len(X)]
    host = SVC(kernel=kernel).fit(X, y)
    np.testing.assert_allclose(
        model.decision_function(X), host.decision_function(X), atol=3 * model.tol
    )


@needs_torch
def test_a_precomputed_kernel(regime):
    K = RBF(gamma=1.0)(X)
    gpu = SVC(C=2.0, kernel="precomputed", device="cuda").fit(K, y)
    host = SVC(C=2.0, gamma=1.0).fit(X, y)
    assert gpu.certificate_.converged
    np.testing.assert_allclose(
        gpu.decision_function(K[:7]), host.decision_function(X[:7]), atol=3e-3
    )
    assert gpu.kernel_ == Precomputed()


@needs_torch
@pytest.mark.parametrize("what", ["two classes", "ovo", "ovr", "numbers", *DIRECT])
def test_a_search_is_that_of_the_cpu(what):
    points, labels = X, target if what == "numbers" else y
    if what in ("ovo", "ovr", *DIRECT):
        points, labels = (array[::5] for array in load_iris(return_X_y=True))
    kind = SVRSearchCV if labels.dtype == float else SVCSearchCV
    grid = {"C": [0.3, 1.0], "gamma": [1.0]}
    if what in ("ovr", *DIRECT):
        grid["multiclass"] = [what]
    host = kind(grid, cv=2, return_train_score=True).fit(points, labels)
    estimator = (SVR if kind is SVRSearchCV else SVC)(device="cuda")
    gpu = kind(grid, cv=2, estimator=estimator, return_train_score=True, refit=False)
    gpu.fit(points, labels)
    for name in ("mean_test_score", "mean_train_score"):
        np.testing.assert_allclose(gpu.cv_results_[name], host.cv_results_[name], atol=2e-3)


@needs_torch
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_what_is_made_of_a_precomputed_kernel(dtype, memory):
    K = GIVEN.astype(dtype)
    kernel = 2.0 * Precomputed()
    host = SVC(C=2.0, kernel=kernel).fit(K, y)
    gpu = SVC(C=2.0, kernel=kernel, device="cuda").fit(K, y)
    assert gpu.certificate_.dual == pytest.approx(host.certificate_.dual, rel=1e-5)
    np.testing.assert_allclose(gpu.decision_function(K), host.decision_function(K), atol=3e-3)
    np.testing.assert_array_equal(K, GIVEN.astype(dtype))


@needs_torch
def test_a_class_that_nu_leaves_no_room():
    labels = (np.arange(36) % 4 == 0).astype(int)
    gpu, host = (NuSVC(nu=0.5, gamma=1.0, device=d).fit(X, labels) for d in ("cuda", "cpu"))
    assert gpu.certificate_.infeasibility < 1e-9
    assert gpu.certificate_.dual == pytest.approx(host.certificate_.dual, rel=1e-5)


@needs_torch
def test_scales_that_float32_cannot_follow(regime, monkeypatch):
    """Where steps in float32 get nowhere, SMO on the host ends the work."""
    monkeypatch.setattr(parallel_sets, "_CRAWL", 2)
    monkeypatch.setattr(parallel_sets, "_SET", 16)
    monkeypatch.setattr(parallel_sets, "_STEPS", 1)
    monkeypatch.setattr(certified, "_ENGINE_ROUNDS", 2)
    far = 1e4 * X[:20]
    gpu, host = (SVC(kernel="linear", device=d).fit(far, y[:20]) for d in ("cuda", "cpu"))
    assert gpu.certificate_.converged
    assert gpu.certificate_.dual == pytest.approx(host.certificate_.dual, rel=1e-4)


@needs_torch
def test_an_outlier_does_not_spoil_the_others(memory):
    far = np.vstack([X, np.full((1, 3), 1e5)])
    labels = np.append(y, 1)
    gpu, host = (SVC(C=2.0, gamma=1.0, device=d).fit(far, labels) for d in ("cuda", "cpu"))
    assert gpu.certificate_.converged
    assert gpu.certificate_.dual == pytest.approx(host.certificate_.dual, rel=1e-5)


@needs_torch
@pytest.mark.parametrize("container", [np.asarray, sp.csr_array], ids=["dense", "csr"])
@pytest.mark.parametrize("kernel", [RBF(1.0), 0.5 * RBF(2.0) + RBF(0.5), Laplacian(1.0)], ids=str)
def test_distances_are_true_far_from_the_origin(kernel, container):
    """Every row, one row, or every second row is far away: float64 sums, and the solver's tiles."""
    shifts = np.ones(12), np.eye(12)[3], np.arange(12) % 2
    for shift in shifts:
        points = container(X[:12] + 1e8 * shift[:, None])
        near = points.toarray() if sp.issparse(points) else points
        true = Gram.of(near, kernel).rows(np.arange(12))
        gram = DeviceGram.of(points, kernel, device="cuda")
        np.testing.assert_allclose(gram.rows(np.arange(12)), true, atol=1e-13)
        np.testing.assert_allclose(gram.matvec(y[:12] - 0.5), true @ (y[:12] - 0.5), atol=1e-13)
        np.testing.assert_allclose(gram.matrix.resident().cpu(), true, atol=1e-2)
    model = SVC(kernel=kernel, device="cuda").fit(points, y[:12])
    usual = SVC(kernel=kernel).fit(near, y[:12])
    assert model.certificate_.dual == pytest.approx(usual.certificate_.dual, rel=1e-6)
    values = usual.decision_function(near)
    np.testing.assert_allclose(model.decision_function(points), values, atol=1e-3)


@needs_torch
@pytest.mark.parametrize("kernel", ["gaussian", "sum", "polynomial"])
def test_products_in_float32(kernel, memory):
    """Of all points and of some, with one column and with more than are summed one by one."""
    host, gpu = Gram.of(X, KERNELS[kernel]), DeviceGram.of(X, KERNELS[kernel], device="cuda")
    few = np.arange(36)[::-3].copy()
    for k in (1, 6):
        V = 1e-50 * RANDOM.normal(size=(36, k))
        for whole, part, rows in ((host, gpu, slice(None)), (host.take(few), gpu.take(few), few)):
            size = np.abs(whole.dense()) @ np.abs(V[rows])
            found = part.float32_matmat(V[rows]) - whole.matmat(V[rows])
            assert np.abs(found).max() < 1e-5 * size.max()
            on_host = whole.float32_matmat(V[rows]) - whole.matmat(V[rows])
            assert np.abs(on_host).max() < 1e-5 * size.max()


@needs_torch
@pytest.mark.parametrize(("alpha", "weights"), [(0.1, weight), (1e-7, None)])
def test_ridge_regression(alpha, weights, memory, monkeypatch):
    """Float32 steps with a preconditioner on the GPU, of more columns than one block of pivots."""
    from maxmargin.backends import cuda

    monkeypatch.setattr(cuda.Columns, "block", 8)
    both = np.column_stack([target, X[:, 2] ** 2])
    gpu = KernelRidge(alpha, kernel="rbf", gamma=0.3, device="cuda", tol=1e-6)
    gpu.set_params(solver=PreconditionedCG(rank=20)).fit(X, both, sample_weight=weights)
    host = KernelRidge(alpha, kernel="rbf", gamma=0.3).fit(X, both, sample_weight=weights)
    assert gpu.certificate_.converged
    np.testing.assert_allclose(gpu.predict(X), host.predict(X), atol=1e-4)
    if alpha == 0.1:
        assert "preconditioner of rank 20" in gpu.certificate_.solver
        assert gpu.n_iter_ <= 12


@needs_torch
def test_torch_in_torch_out():
    import torch

    model = SVC(C=2.0, gamma=1.0).fit(torch.from_numpy(X), torch.from_numpy(y))
    found = model.predict(torch.from_numpy(X))
    assert isinstance(found, torch.Tensor)
    np.testing.assert_array_equal(found.numpy(), model.predict(X))
    assert isinstance(model.predict(X), np.ndarray)
    assert model.score(torch.from_numpy(X), torch.from_numpy(y)) == model.score(X, y)
    names = SVC(gamma=1.0).fit(torch.from_numpy(X), np.array(["a", "b"])[y])
    assert isinstance(names.predict(torch.from_numpy(X)), np.ndarray)


@needs_torch
def test_limits_and_listeners(regime, monkeypatch):
    monkeypatch.setattr("maxmargin.svm.base.Monitor", partial(Monitor, interval=0.0))
    seen = []
    model = SVC(C=50.0, gamma=0.3, device="cuda", callback=seen.append).fit(X, y)
    assert seen[-1].alpha.shape == y.shape
    assert seen[-1].steps <= model.n_iter_[0]
    for limit, status in (
        ({"max_iter": 3}, Status.MAX_ITER),
        ({"time_limit": 1e-9}, Status.TIME_LIMIT),
    ):
        with pytest.warns(ConvergenceWarning):
            model = SVC(C=50.0, gamma=0.3, device="cuda", **limit).fit(X, y)
        assert model.certificate_.status is status
        assert model.certificate_.infeasibility < 1e-9
        assert model.n_iter_[0] <= (6 if "max_iter" in limit else 0)  # two rounds between looks
        model.predict(X)
    with pytest.warns(ConvergenceWarning):
        model = SVC(C=50.0, gamma=0.3, device="cuda", callback=lambda _: True).fit(X, y)
    assert model.certificate_.status is Status.INTERRUPTED


@needs_torch
def test_going_on_from_where_a_fit_was(tmp_path, monkeypatch):
    points, labels = (array[::5] for array in load_iris(return_X_y=True))
    monkeypatch.setattr("maxmargin.svm.base.Monitor", partial(Monitor, interval=0.0))
    monkeypatch.setattr(parallel_sets, "_STEPS", 0.01)  # looked at after ten steps
    path, states = tmp_path / "state", []

    def look(progress):
        if path.exists():
            with np.load(path) as file:
                states.append([np.count_nonzero(file[f"beta{k}"]) for k in range(3)])

    kept = {"checkpoint": path, "checkpoint_interval": 0.0}
    SVC(gamma=0.2, device="cuda", callback=look, **kept).fit(points, labels)
    assert np.all(states[-1])  # the file knows of all pairs, which are solved side by side
    assert not path.exists()
    model = SVC(gamma=0.2, device="cuda", warm_start=True).fit(points, labels)
    assert model.n_iter_.sum() > 0
    assert model.fit(points, labels).n_iter_.sum() == 0


@needs_torch
def test_one_versus_rest_of_machines_and_in_the_machine():
    points, labels = (array[::9] for array in load_iris(return_X_y=True))
    machine = SVC(gamma=0.3, device="cuda")
    apart = OneVsRestClassifier(machine).fit(points, labels).decision_function(points)
    model = clone(machine).set_params(multiclass="ovr").fit(points, labels)
    np.testing.assert_allclose(model.decision_function(points), apart, atol=3e-3)


@needs_torch
@pytest.mark.parametrize("multiclass", ["ovo", "ovr"])
def test_probabilities(multiclass):
    labels = y[::2] if multiclass == "ovo" else np.digitize(target[::2], [-0.5, 0.5])
    model = SVC(gamma=0.3, probability=True, random_state=0, multiclass=multiclass)
    host, gpu = (clone(model).set_params(device=d).fit(X[::2], labels) for d in ("cpu", "cuda"))
    np.testing.assert_allclose(gpu.predict_proba(X), host.predict_proba(X), atol=5e-3)


@needs_torch
def test_csr_that_stays_so(monkeypatch, memory):
    """Sparse rows that would not fit if they were dense."""
    from maxmargin.backends.cuda import points

    monkeypatch.setattr(points, "_DENSE_SHARE", 0.0)
    data = CONTAINERS["csr"](X)
    for kernel in ("rbf", "linear"):
        host, gpu = (SVC(kernel=kernel, gamma=1.0, device=d).fit(data, y) for d in ("cpu", "cuda"))
        assert gpu.certificate_.dual == pytest.approx(host.certificate_.dual, rel=1e-5)
        np.testing.assert_allclose(
            gpu.decision_function(data), host.decision_function(data), atol=3e-3
        )


@needs_torch
def test_the_same_again(regime):
    first, second = (SVC(C=2.0, gamma=1.0, device="cuda").fit(X, y) for _ in range(2))
    np.testing.assert_array_equal(first.dual_coef_, second.dual_coef_)


@needs_torch
def test_a_saved_model_needs_neither_torch_nor_a_gpu(tmp_path):
    model = SVC(C=2.0, gamma=1.0).fit(X, y).set_params(device="cuda")
    (tmp_path / "model").write_bytes(pickle.dumps((model, X)))
    code = """
import pickle, sys, warnings
from maxmargin.backends import device
device.find_spec = lambda name: None
model, X = pickle.load(open(sys.argv[1], "rb"))
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    print(model.predict(X).tolist())
assert "Evaluating on the CPU" in str(caught[0].message), caught
assert "torch" not in sys.modules
"""
    run = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "model")], capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout.strip() == str(model.set_params(device="cpu").predict(X).tolist())


def test_without_torch_a_sentence_says_what_to_install(monkeypatch):
    monkeypatch.setattr(device, "find_spec", lambda name: None)
    with pytest.raises(DeviceError, match=r"torch is not installed.*maxmargin\[gpu\]"):
        SVC(device="cuda").fit(X, y)
    assert SVC(device="cpu").fit(X, y).device_.device == "cpu"
    assert "torch is not installed" in place("auto", 100_000, 100).why


class Torch:
    """Stands in for torch on machines of all kinds."""

    __version__ = "2.13.0"

    class version:
        """What it was built with."""

        cuda = "13.0"

    class cuda:
        """Its GPUs."""

        found, capability = True, (9, 0)

        @classmethod
        def is_available(cls):
            """Whether there is one."""
            return cls.found

        @staticmethod
        def device_count():
            """One."""
            return 1

        @classmethod
        def get_device_capability(cls, index):
            """How new it is."""
            return cls.capability

        @staticmethod
        def get_device_name(index):
            """What it is called."""
            return "An old one"

    @staticmethod
    def empty(*args, **kwargs):
        """Memory that someone else has."""
        raise RuntimeError("CUDA error: all CUDA-capable devices are busy or unavailable")


@pytest.mark.parametrize(
    ("name", "setting", "words"),
    [
        ("cuda", ("version.cuda", None), "built without CUDA"),
        ("cuda", ("cuda.found", False), "no NVIDIA GPU"),
        ("cuda:3", None, "there are 1 GPUs"),
        ("cuda", ("cuda.capability", (6, 1)), "compute capability 6.1"),
        ("cuda", None, "another may hold it"),
    ],
)
def test_every_reason_has_its_sentence(name, setting, words, monkeypatch):
    monkeypatch.setattr(device, "find_spec", lambda name: True)
    monkeypatch.setattr(device, "interpreted", lambda: False)
    monkeypatch.setitem(sys.modules, "torch", Torch)
    if setting:
        monkeypatch.setattr(f"{__name__}.Torch.{setting[0]}", setting[1])
    with pytest.raises(DeviceError, match=words):
        place(name, 100, 10)


@pytest.mark.parametrize("name", ["CPU", "mps", "cuda:-1", "cuda:x", "gpu"])
def test_other_names_are_refused(name):
    with pytest.raises(ValueError, match="device must be"):
        SVC(device=name).fit(X, y)


def test_auto_says_why():
    assert "too little work" in place("auto", 100, 10).why
    words = "calls a Python function"
    model = SVC(kernel=lambda A, B: A @ B.T, device="auto").fit(X, y)
    assert words in model.device_.why
    with pytest.raises(DeviceError, match=words):
        model.set_params(device="cuda").fit(X, y)


@needs_torch
@pytest.mark.parametrize("multiclass", [2, 3])
def test_kernel_logistic_regression_and_components(multiclass, memory):
    """The methods of products alone: what they multiply by may be on a GPU."""
    labels = np.arange(36) % 3 if multiclass == 3 else y
    options = {"gamma": 0.5, "tol": 1e-9, "solver": "newton-cg"}
    host = KernelLogisticRegression(**options).fit(X, labels)
    gpu = KernelLogisticRegression(device="cuda", **options).fit(X, labels)
    assert gpu.device_.on_gpu
    assert gpu.certificate_.converged
    np.testing.assert_allclose(gpu.predict_proba(X), host.predict_proba(X), atol=1e-4)
    options = {"kernel": RBF(0.5), "eigen_solver": "lanczos", "random_state": 0}
    host, gpu = KernelPCA(3, **options).fit(X), KernelPCA(3, device="cuda", **options).fit(X)
    assert gpu.certificate_.converged
    np.testing.assert_allclose(gpu.transform(X), host.transform(X), atol=1e-6)


@needs_torch
@pytest.mark.parametrize("machine", [SVC(), OneClassSVM(nu=0.3)])
def test_candidates_of_dask_collections_are_solved_for_on_the_device(machine, monkeypatch):
    dask = pytest.importorskip("dask")
    array = pytest.importorskip("dask.array")
    monkeypatch.setattr("maxmargin.dask.kernel.chunking._FEW", 0)
    rows, labels = array.from_array(X, chunks=(12, 3)), array.from_array(y, chunks=12)
    given = {} if isinstance(machine, OneClassSVM) else {"y": labels}
    with dask.config.set(scheduler="synchronous"):
        there = clone(machine).set_params(device="cuda").fit(rows, **given)
    here = clone(machine).fit(X, y).certificate_
    assert there.device_.device.startswith("cuda")
    assert there.certificate_.converged
    doubt = here.rounding + there.certificate_.rounding
    assert there.certificate_.dual <= here.primal + doubt
    assert here.dual <= there.certificate_.primal + doubt
