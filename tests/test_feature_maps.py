"""Feature maps: products of features are the kernel, exactly or as nearly as is said."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_digits
from sklearn.pipeline import make_pipeline

from maxmargin import (
    ExplicitFeatures,
    KernelRidge,
    LinearSVC,
    Nystroem,
    RandomFourier,
    Ridge,
)
from maxmargin.feature_maps import base, nystroem
from maxmargin.kernels import (
    RBF,
    GaussianBasis,
    Laplacian,
    Linear,
    Polynomial,
    PolynomialBasis,
    QuadraticForm,
    Sigmoid,
    SigmoidBasis,
    exp,
    explicit_features,
    polynomial_columns,
    quadratic_features,
)

X = np.random.default_rng(0).normal(size=(12, 3))
A = np.array([[2.0, 1.0, 0.0], [1.0, 3.0, 0.0], [0.0, 0.0, 1.0]])
EXACT = [
    Linear(),
    Linear() + 2.5,
    3 * Linear(),
    Polynomial(3, coef0=2.0, gamma=0.5),
    Polynomial(4, coef0=0.0),
    (Linear() + 1) ** 3,
    Linear().polynomial([1.0, 0.0, 2.0]),
    QuadraticForm(A),
    Linear().on([0, 2]) + 0.5 * Polynomial(2),
    Polynomial(2).on([0]) * (Linear().on([1, 2]) + 1),
    Linear().conformal(lambda points: 1.0 + points[:, 0] ** 2),
    Polynomial(2).normalized(),
    Linear().after(quadratic_features),
]


@pytest.mark.parametrize("kernel", EXACT, ids=str)
def test_features_of_every_rule(kernel):
    phi = explicit_features(kernel, X)
    np.testing.assert_allclose(phi @ phi.T, kernel(X), atol=1e-10)
    fitted = ExplicitFeatures(kernel).fit(X)
    assert fitted.approximation_error_ < 1e-12
    np.testing.assert_array_equal(fitted.transform(X), phi)


def test_the_lectures_maps():
    np.testing.assert_allclose(explicit_features(Linear() + 9, [[1.0, 2.0]]), [[1.0, 2.0, 3.0]])
    square = explicit_features(Linear() ** 2, X)
    np.testing.assert_allclose(square, quadratic_features(X))  # (x1^2, sqrt(2) x1 x2, x2^2)
    for n, M in ((2, 2), (3, 4), (10, 3)):
        some = np.ones((1, n))
        assert explicit_features(Polynomial(M), some).shape[1] == polynomial_columns(n, M)
    x, sigma = np.array([[0.7]]), 1.3
    series = [np.exp(-0.49 / (2 * sigma**2)) * 0.7**k / sigma**k for k in range(5)]
    series = np.array(series) / np.sqrt([1.0, 1.0, 2.0, 6.0, 24.0])
    np.testing.assert_allclose(explicit_features(RBF(sigma=sigma), x, cut=4)[0], series[::-1])


@pytest.mark.parametrize("kernel", [RBF(gamma=0.2), exp(0.5 * Linear()), RBF(0.1) * Linear()])
def test_a_longer_series_is_nearer(kernel):
    errors = [ExplicitFeatures(kernel, cut=cut).fit(X).approximation_error_ for cut in (1, 4, 12)]
    assert errors[0] > 2 * errors[1] > 20 * errors[2]


def test_features_that_cannot_be_written_out():
    with pytest.raises(ValueError, match="cut="):
        explicit_features(RBF(), X)
    with pytest.raises(ValueError, match="negative weight"):
        explicit_features(Linear() + -1, X)
    with pytest.raises(ValueError, match="Nystroem"):
        explicit_features(Laplacian(), X)
    with pytest.raises(ValueError, match="use the kernel itself"):
        explicit_features(Polynomial(9), np.ones((1, 50)))
    with pytest.raises(ValueError, match="Nystroem takes any"):
        RandomFourier(Polynomial()).fit(X)


@pytest.mark.parametrize("basis", [PolynomialBasis(5), GaussianBasis(7), SigmoidBasis(7)])
def test_kernels_from_basis_functions(basis):
    x = np.linspace(-1, 1, 9)[:, None]
    kernel = basis.kernel
    by_hand = sum(np.outer(f, f) for f in basis(x).T)
    np.testing.assert_allclose(kernel(x), by_hand, atol=1e-12)
    assert kernel.validity == "valid"
    model = KernelRidge(0.1, kernel=kernel).fit(x, np.sin(3 * x[:, 0]))
    primal = Ridge(0.1, fit_intercept=False).fit(basis(x), np.sin(3 * x[:, 0]))
    np.testing.assert_allclose(model.predict(x), primal.predict(basis(x)), atol=1e-8)
    with pytest.raises(ValueError, match="on a line"):
        basis(X)


DIGITS, LABELS = load_digits(return_X_y=True)
DIGITS = DIGITS / 16.0


@pytest.mark.parametrize("landmarks", ["pivots", "uniform"])
@pytest.mark.parametrize("kernel", [RBF(0.05), Polynomial(2), Laplacian(0.02)], ids=str)
def test_nystroem_is_exact_at_its_landmarks(kernel, landmarks):
    some = DIGITS[:300]
    model = Nystroem(kernel, n_components=60, landmarks=landmarks, random_state=0).fit(some)
    phi, K = model.transform(some), kernel(some)
    at = model.component_indices_
    assert not np.array_equal(np.sort(at), np.arange(60))  # drawn, and not the first rows
    np.testing.assert_allclose(phi[at] @ phi.T, K[at], atol=1e-6 * K.max())
    left = np.diag(K) - np.einsum("ij,ij->i", phi, phi)
    assert left.min() > -1e-6 * K.max()  # a projection is never longer
    rest = np.setdiff1d(np.arange(300), at)
    error = np.linalg.norm(phi[rest] @ phi[rest].T - K[np.ix_(rest, rest)])
    assert model.approximation_error_ == pytest.approx(
        error / np.linalg.norm(K[np.ix_(rest, rest)]), rel=1e-6
    )
    sparse = model.transform(sp.csr_array(some))
    np.testing.assert_allclose(sparse, phi, atol=1e-7)


@pytest.mark.parametrize("landmarks", ["pivots", "uniform"])
def test_an_indefinite_kernel_is_not_called_one_of_low_rank(landmarks):
    X = np.random.default_rng(0).normal(size=(60, 3))
    kernel = Sigmoid(gamma=1.0, coef0=-1.0)
    with pytest.warns(UserWarning, match="is indefinite on these rows"):
        Nystroem(kernel, n_components=30, landmarks=landmarks, random_state=0).fit(X)


def test_more_columns_are_nearer_and_there_are_as_many_as_landmarks():
    errors = [
        Nystroem(RBF(0.05), n_components=m, random_state=0).fit(DIGITS[:600]).approximation_error_
        for m in (20, 80, 300)
    ]
    assert errors[0] > 1.5 * errors[1] > 2.25 * errors[2]
    model = Nystroem(Linear(), n_components=10).fit(X)  # of rank three, without a warning
    assert model.transform(X).shape == (12, 10)
    np.testing.assert_allclose(model.transform(X) @ model.transform(X).T, X @ X.T, atol=1e-8)
    assert list(model.get_feature_names_out())[:2] == ["nystroem0", "nystroem1"]


@pytest.mark.parametrize("landmarks", ["pivots", "uniform"])
@pytest.mark.parametrize("kernel", [Linear(), "additive_chi2", "rbf"])
def test_constant_data(kernel, landmarks):
    zeros = np.zeros((9, 3))
    model = Nystroem(kernel, n_components=4, landmarks=landmarks, random_state=0).fit(zeros)
    np.testing.assert_allclose(
        model.transform(zeros) @ model.transform(zeros).T, model.kernel_(zeros), atol=1e-10
    )


@pytest.mark.parametrize(
    "kernel", [RBF(0.3), Laplacian(0.2), 2 * RBF(0.1) * Laplacian(0.1), RBF(0.1) ** 2], ids=str
)
def test_random_fourier_features_are_the_kernel_in_the_mean(kernel):
    errors = []
    for m in (200, 20_000):
        model = RandomFourier(kernel, n_components=m, random_state=0).fit(X)
        phi = model.transform(X)
        np.testing.assert_allclose(np.einsum("ij,ij->i", phi, phi), kernel.diag(X))
        errors.append(model.approximation_error_)
    odd = RandomFourier(kernel, n_components=20_001, random_state=0).fit(X)
    assert odd.transform(X).shape == (12, 20_001)
    assert odd.approximation_error_ < 0.03
    assert errors[1] < 0.03
    assert 4 < errors[0] / errors[1] < 25  # ten, but for chance


def test_linear_machines_reach_what_kernels_do():
    train, test = slice(None, 1200), slice(1200, None)
    for features in (Nystroem(RBF(0.05), n_components=400, random_state=0),):
        machine = make_pipeline(features, LinearSVC()).fit(DIGITS[train], LABELS[train])
        assert machine.score(DIGITS[test], LABELS[test]) > 0.93
    some = DIGITS[:200]
    ridge = make_pipeline(Nystroem(RBF(0.05), n_components=200), Ridge(0.1, fit_intercept=False))
    ridge.fit(some, LABELS[:200])
    exact = KernelRidge(0.1, kernel=RBF(0.05)).fit(some, LABELS[:200])
    np.testing.assert_allclose(ridge.predict(DIGITS[:400]), exact.predict(DIGITS[:400]), atol=1e-4)


def test_a_precomputed_matrix():
    K = RBF(0.1)(X)
    given = Nystroem("precomputed", n_components=5, random_state=0).fit(K[:9, :9])
    made = Nystroem(RBF(0.1), n_components=5, random_state=0).fit(X[:9])
    np.testing.assert_allclose(given.transform(K[:, :9]), made.transform(X), atol=1e-8)
    for extra in ({"gamma": 1.0}, {"degree": 2}, {"coef0": 1.0}):
        with pytest.raises(ValueError, match="Don't pass gamma, coef0 or degree to Nystroem"):
            Nystroem("precomputed", **extra).fit(K)


def test_pivots_among_many_rows_are_drawn_from_some(monkeypatch):
    monkeypatch.setattr(nystroem, "_POOL", 100)
    seen = []
    original = base.RandomPivots

    def recorded(rows, diagonal, *options):
        seen.append(len(diagonal))
        return original(rows, diagonal, *options)

    monkeypatch.setattr(base, "RandomPivots", recorded)
    digits = load_digits().data[:700] / 16
    landmarks = Nystroem(gamma=0.02, n_components=8, random_state=0).fit(digits)
    assert seen == [100]
    np.testing.assert_array_equal(landmarks.components_, digits[landmarks.component_indices_])
    assert landmarks.component_indices_.max() > 100
    assert landmarks.approximation_error_ < 0.3


def test_features_beyond_float32_are_refused():
    X = np.random.default_rng(0).normal(size=(20, 3)) * 1e7
    kernel = Polynomial(degree=4, coef0=100.0) ** 2
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = Nystroem(kernel, n_components=5).fit(X.astype(np.float32))
    assert np.isfinite(model.transform(X)).all()
    with pytest.raises(ValueError, match="infinite or nan in float32"):
        model.transform(X.astype(np.float32))
