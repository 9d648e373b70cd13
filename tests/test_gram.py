"""The Gram matrix: precision, budget, sharing, checks before the solve."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from maxmargin import SVC, Gram
from maxmargin.backends import cpu
from maxmargin.backends.threads import Workers
from maxmargin.gram import Definiteness, RowStore
from maxmargin.kernels import (
    RBF,
    FunctionKernel,
    Laplacian,
    Linear,
    Polynomial,
    Precomputed,
    Sigmoid,
)
from maxmargin.testing import check_gram

RANDOM = np.random.default_rng(2)
X = RANDOM.normal(size=(50, 6))


@pytest.mark.parametrize("container", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_distances_far_from_the_origin_keep_their_digits(container, dtype, random):
    near = random.integers(-8, 8, size=(40, 3)).astype(np.float64) / 4
    far = (near + 1024).astype(dtype)  # exact in float32 too
    K = Gram.of(container(far), RBF(gamma=0.1)).rows(np.arange(40))
    np.testing.assert_allclose(K, RBF(gamma=0.1)(near), rtol=1e-9)


def test_float32_data_are_never_copied_to_float64_as_a_whole(monkeypatch, random):
    widths = []
    original = cpu.DenseVectors.dense

    def watched(self, rows):
        block = original(self, rows)
        widths.append(len(block))
        return block

    monkeypatch.setattr(cpu.DenseVectors, "dense", watched)
    many = random.normal(size=(20_000, 64)).astype(np.float32)
    gram = Gram.of(many, RBF(gamma=0.1), memory=1 << 22)
    gram.rows([0, 5])
    assert max(widths) <= cpu.TILE_BYTES // 8 // 64
    assert gram.points.primitives[0].X is many


@pytest.mark.parametrize("memory", [0, 8 * 50 * 7, 1 << 20])
def test_the_budget_is_honoured_and_changes_no_value(memory, random):
    K = RBF(0.2)(X)
    gram = Gram.of(X, RBF(0.2), memory=memory)
    for _ in range(30):
        rows = random.choice(50, size=2, replace=False)
        gram.require(rows)
        assert 0 < gram.store.data.nbytes <= max(memory, 8 * 50 * 2)
        assert (gram.store.slot[rows] >= 0).all()
        np.testing.assert_allclose(gram.rows(rows), K[rows], rtol=1e-12)
    residents = np.flatnonzero(gram.store.slot >= 0)
    assert sorted(gram.store.owner[gram.store.owner >= 0]) == residents.tolist()
    np.testing.assert_allclose(gram.store.data[gram.store.slot[residents]], K[residents])
    np.testing.assert_allclose(gram.matvec(np.ones(50)), K.sum(axis=1))
    np.testing.assert_allclose(gram.matvec(np.ones(50), [4, 2]), K.sum(axis=1)[[4, 2]])


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("density", [1.0, 0.1])
def test_products_that_are_symmetric_are_computed_by_half(count, density, random):
    many = random.standard_normal((1500, 5)) * (random.random((1500, 5)) < density)
    gram = Gram.of(many, RBF(0.2), memory=1 << 20)
    coefficients = random.standard_normal(1500) * (np.arange(1500) % 4 > 0)
    expected = RBF(0.2)(many) @ coefficients
    for rows in (np.arange(1500), random.permutation(1500)[:1499], np.flatnonzero(coefficients)):
        found = gram.matvec(coefficients, rows, Workers(count))
        np.testing.assert_allclose(found, expected[rows], rtol=1e-9, atol=1e-10)


def test_the_least_recently_used_row_goes_first():
    gram = Gram.of(X, Linear(), memory=8 * 50 * 3)
    for row in (0, 1, 2, 0, 3):
        gram.require(np.array([row]))
    assert np.flatnonzero(gram.store.slot >= 0).tolist() == [0, 2, 3]


STRINGS = ["abc", "abd", "xyz", "xbz", "ab", "c", "abcd"]


def common_letters(left, right):
    return np.array([[float(len(set(a) & set(b))) for b in right] for a in left])


MATRICES = {
    "dense": (X, RBF(0.2)),
    "float32": (X.astype(np.float32), Polynomial(2, gamma=0.5) + 0.1 * Laplacian(0.3)),
    "csr": (sp.csr_array(np.where(X > 0.5, X, 0.0)), RBF(0.2)),
    "linear": (X, 2.0 * Linear()),
    "linear csr": (sp.csr_array(np.where(X > 0.5, X, 0.0)), Linear()),
    "precomputed": (X @ X.T, Precomputed()),
    "precomputed float32": ((X @ X.T).astype(np.float32), Precomputed()),
    "factors": (X, RBF(0.2).conformal(lambda X: 1.0 + X[:, 0] ** 2)),
    "indefinite": (X, Sigmoid(0.1, -0.5)),
    "function": (X, FunctionKernel(lambda a, b: a @ b.T)),
    "objects": (STRINGS, FunctionKernel(common_letters)),
}


@pytest.mark.parametrize("memory", [0, 8 * 50 * 7, 1 << 20])
@pytest.mark.parametrize("name", MATRICES)
def test_the_contract(name, memory):
    data, kernel = MATRICES[name]
    check_gram(Gram.of(data, kernel, memory=memory), data)


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("data", ["dense", "csr", "linear", "linear csr"])
def test_several_right_sides_are_as_many_products(data, count, random):
    _, kernel = MATRICES[data]
    many = random.standard_normal((1500, 5)) * (random.random((1500, 5)) < 0.5)
    many = sp.csr_array(many) if "csr" in data else many
    gram = Gram.of(many, kernel, memory=1 << 20)
    weights = random.standard_normal((1500, 3)) * (np.arange(1500) % 4 > 0)[:, None]
    gram.require(np.arange(20))
    for rows in (None, random.permutation(1500)[:1499], np.arange(20, 40)):
        found = gram.matmat(weights, rows, Workers(count))
        apart = [gram.matvec(weights[:, k].copy(), rows) for k in range(3)]
        np.testing.assert_allclose(found, np.transpose(apart), rtol=1e-9, atol=1e-10)


def test_the_whole_matrix_within_the_budget():
    gram = Gram.of(X, RBF(0.2), memory=8 * 50 * 50)
    np.testing.assert_allclose(gram.dense(Workers(2)), RBF(0.2)(X))
    assert not gram.store.used
    with pytest.raises(ValueError, match=r"50 points takes .* MB.*cache_size"):
        Gram.of(X, RBF(0.2), memory=8 * 50 * 50 - 1).dense()


def test_a_matrix_on_the_host_is_on_no_gpu():
    gram = Gram.of(X, RBF(0.2))
    assert gram.host is gram
    assert not gram.on_device
    with pytest.raises(ValueError, match="on the host"):
        _ = gram.device


def test_a_function_is_called_once_where_its_matrix_fits():
    calls = []

    def product(a, b):
        calls.append((len(a), len(b)))
        return a @ b.T

    gram = Gram.of(X, FunctionKernel(product))
    gram.check()
    np.testing.assert_array_equal(gram.block([1, 3], [2]), (X @ X.T)[[1, 3]][:, [2]])
    assert gram.take([4, 7]).rows([1]).tolist() == [[(X[7] @ X[4]), (X[7] @ X[7])]]
    assert calls == [(len(X), len(X))]
    calls.clear()
    SVC(kernel=product, time_limit=100.0).fit(X, np.arange(len(X)) % 2)  # hears the clock between
    assert len(calls) > 1


@pytest.mark.parametrize("smallest", [-1.0, -1e-6, -1e-9, -1e-12, 0.0, 1e-12, 1.0])
@pytest.mark.parametrize("n", [2, 60])
def test_the_smallest_eigenvalue_decides(n, smallest, random):
    rotation, _ = np.linalg.qr(random.normal(size=(n, n)))
    K = rotation * np.append(smallest, np.linspace(0.5, 1.0, n - 1)) @ rotation.T
    known = Gram.of((K + K.T) / 2, Precomputed()).definiteness
    assert (known is Definiteness.INDEFINITE) == (smallest < -1e-10)


def test_definiteness(random):
    assert Gram.of(X, RBF(0.1)).definiteness is Definiteness.PROVEN
    assert Gram.of(X @ X.T, Precomputed()).definiteness is Definiteness.COMPUTED
    assert Gram.of(X, Sigmoid(1.0, -1.0)).definiteness is Definiteness.INDEFINITE
    many = random.normal(size=(600, 3))
    inner = FunctionKernel(lambda a, b: a @ b.T)
    assert Gram.of(many, inner).definiteness is Definiteness.UNKNOWN


def test_values_that_are_no_numbers_are_found():
    with pytest.raises(ValueError, match="returned infinity"):
        Gram.of(X * 1e3, Linear().exp()).check()
    broken = FunctionKernel(lambda a, b: np.where(a[:, :1] > 2, np.nan, 1.0) * np.ones((1, len(b))))
    with pytest.raises(ValueError, match="returned NaN"):
        Gram.of(X + 1, broken).check()
    lopsided = FunctionKernel(lambda a, b: a[:, :1] + 0 * b[:, 0])
    with pytest.raises(ValueError, match="not symmetric"):
        Gram.of(X, lopsided).check()


def test_eviction_spares_what_was_just_claimed():
    store = RowStore(50, 10)
    for first, count in ((0, 8), (8, 3), (11, 2)):
        store.claim(np.arange(first, first + count))
    assert np.flatnonzero(store.slot >= 0).tolist() == [3, 4, 5, 6, 7, 8, 9, 10, 11, 12]
    assert sorted(store.owner[store.owner >= 0]) == np.flatnonzero(store.slot >= 0).tolist()


def test_rows_that_failed_are_not_resident():
    calls = []

    def fails_later(a, b):
        calls.append(len(a))
        return a @ b.T if len(calls) < 2 else np.full((len(a), len(b)), np.nan)

    gram = Gram.of(X, FunctionKernel(fails_later), memory=8 * 3 * len(X))  # row by row
    gram.require(np.array([0]))
    with pytest.raises(ValueError, match="NaN"):
        gram.require(np.array([1, 2]))
    assert np.flatnonzero(gram.store.slot >= 0).tolist() == [0]


def test_the_verdict_on_symmetry_does_not_depend_on_the_budget():
    K = np.full((300, 300), 1e-9)
    K[:5, :5] = 1.0
    K[200, 100] += 6e-13
    for memory in (0, 1 << 20, 1 << 30):
        Gram.of(K, Precomputed(), memory=memory).check()
    K[200, 100] += 1e-3
    with pytest.raises(ValueError, match="not symmetric"):
        Gram.of(K, Precomputed(), memory=0).check()


@pytest.mark.parametrize("precomputed", [False, True])
def test_a_fit_stays_near_its_budget(precomputed, random):
    points = random.normal(size=(3000, 10))
    labels = random.integers(3, size=3000)
    data = RBF(0.1)(points) if precomputed else points
    kernel = "precomputed" if precomputed else RBF(0.1)
    model = SVC(kernel=kernel, cache_size=4, max_iter=300, probability=True)
    model.set_params(n_jobs=1)
    with pytest.warns(ConvergenceWarning):
        model.fit(data[:2500, :2500], labels[:2500])  # what is compiled is not the fit's
    tracemalloc.start()
    try:
        with pytest.warns(ConvergenceWarning):
            model.fit(data, labels)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 12 * 2**20  # 4 MB of rows, and vectors and tiles beside them


@pytest.mark.parametrize("kernel", [RBF(0.1), Linear(), Laplacian(0.1), RBF()], ids=str)
def test_duplicate_entries_of_a_sparse_matrix_count_as_their_sum(kernel):
    duplicated = sp.csr_matrix(
        (np.array([1.0, 2.0, 5.0, 1.0]), np.array([0, 0, 2, 1]), np.array([0, 2, 3, 4])), (3, 3)
    )
    dense = np.array([[3.0, 0, 0], [0, 0, 5.0], [0, 1.0, 0]])
    np.testing.assert_allclose(kernel(duplicated), kernel(dense))
    np.testing.assert_allclose(kernel.diag(duplicated), kernel.diag(dense))
    np.testing.assert_allclose(Gram.of(duplicated, kernel).rows([0, 1, 2]), kernel(dense))
    assert duplicated.nnz == 4


def test_the_class_itself_is_abstract():
    with pytest.raises(TypeError, match=r"call Gram\.of\(X, kernel\)"):
        Gram(RBF(0.1), np.eye(2))
