"""Kernel PCA: scikit-learn's components, what certificates bound, pre-images, manners."""

import signal
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.decomposition import KernelPCA as Reference
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from maxmargin import Gram, KernelPCA
from maxmargin.kernel_methods import preimages
from maxmargin.kernels import RBF, FunctionKernel, Linear, Precomputed, Spectrum
from maxmargin.progress import Monitor
from maxmargin.solution import Status
from maxmargin.solvers.products import GramProducts
from maxmargin.solvers.spectral import methods
from maxmargin.solvers.spectral.methods import BlockLanczos
from maxmargin.solvers.spectral.problem import SpectralProblem

RANDOM = np.random.default_rng(0)
X = load_digits(return_X_y=True)[0][:260] / 16
NEW = load_digits(return_X_y=True)[0][260:300] / 16
GAMMA = 0.05
SOLVERS = ["dense", "lanczos", "arpack", "randomized"]


def centred(K):
    H = np.eye(len(K)) - 1 / len(K)
    return H @ K @ H


# -- components --------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize(
    "options",
    [
        {"kernel": "linear"},
        {"kernel": "rbf", "gamma": GAMMA},
        {"kernel": "rbf"},
        {"kernel": "poly", "degree": 2, "coef0": 0.5},
        {"kernel": "sigmoid", "gamma": 1e-3},
    ],
    ids=str,
)
def test_as_scikit_learn(options, solver):
    """The same components with the same signs, of training rows and of others."""
    ours = KernelPCA(6, eigen_solver=solver, iterated_power=20, random_state=0, **options)
    theirs = Reference(6, eigen_solver="dense", **options)
    size = np.abs(theirs.fit_transform(X)).max()
    np.testing.assert_allclose(ours.fit_transform(X), theirs.transform(X), atol=1e-6 * size)
    np.testing.assert_allclose(ours.transform(NEW), theirs.transform(NEW), atol=1e-6 * size)
    np.testing.assert_allclose(ours.eigenvalues_, theirs.eigenvalues_, rtol=1e-8)
    assert ours.certificate_.converged


def test_the_linear_kernel_is_pca():
    shifted = X + 100.0
    ours, theirs = KernelPCA(5).fit(shifted), PCA(5, svd_solver="full").fit(shifted)
    np.testing.assert_allclose(
        np.abs(ours.transform(NEW + 100.0)), np.abs(theirs.transform(NEW + 100.0)), atol=1e-6
    )
    np.testing.assert_allclose(ours.eigenvalues_ / (len(X) - 1), theirs.explained_variance_)
    share = theirs.explained_variance_ratio_.sum()
    assert ours.certificate_.explained == pytest.approx(share)


def test_all_components():
    ours = KernelPCA(kernel="rbf", gamma=GAMMA).fit(X)
    theirs = Reference(kernel="rbf", gamma=GAMMA).fit(X)
    assert ours.eigenvalues_.shape == theirs.eigenvalues_.shape == (len(X) - 1,)
    Z = ours.transform(X)
    np.testing.assert_allclose(Z @ Z.T, centred(RBF(GAMMA)(X)), atol=1e-9)
    for gamma in (GAMMA, None):
        ours, theirs = (each.set_params(gamma=gamma).fit(X) for each in (ours, theirs))
        assert ours.gamma_ == theirs.gamma_


@pytest.mark.parametrize("solver", ["dense", "lanczos"])
def test_more_components_than_the_rank(solver):
    """Columns of zeros, as in scikit-learn, unless they are not wanted."""
    narrow = X[:, 20:23]
    options = {"eigen_solver": solver, "random_state": 0}
    wide = KernelPCA(8, **options)
    Z = wide.fit_transform(narrow)
    assert Z.shape == (len(X), 8)
    assert not wide.eigenvalues_[3:].any()
    np.testing.assert_allclose(Z[:, 3:], 0.0)
    np.testing.assert_allclose(wide.transform(narrow), Z, atol=1e-9)
    assert wide.certificate_.converged
    assert KernelPCA(8, remove_zero_eig=True, **options).fit_transform(narrow).shape[1] == 3
    assert KernelPCA().fit_transform(narrow).shape[1] == 3
    assert KernelPCA(10_000).fit_transform(X[:20]).shape == (20, 20)
    assert KernelPCA().fit_transform(np.ones((5, 2))).shape == (5, 0)


# -- certificates ------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", ["dense", *(BlockLanczos(k) for k in (2, 3, 5, 9))], ids=str)
def test_what_a_certificate_bounds(solver):
    """Against all eigenvalues: how near they are, how far vectors have turned, what is missing."""
    K = centred(RBF(0.3)(X))
    values, vectors = np.linalg.eigh(K)
    values, vectors = values[::-1], vectors[:, ::-1]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = KernelPCA(5, kernel=RBF(0.3), eigen_solver=solver, random_state=1).fit(X)
    certificate, V, found = model.certificate_, model.eigenvectors_, model.eigenvalues_
    residuals = np.linalg.norm(K @ V - V * found, axis=0)
    np.testing.assert_allclose(certificate.residuals, residuals, atol=1e-12 * values[0])
    slack = 1e-12 * values[0]
    assert (np.abs(values[:, None] - found).min(axis=0) <= certificate.residuals + slack).all()
    assert (np.abs(values[:5] - found) <= certificate.residual * found[0] + slack).all()
    sines = np.sqrt(np.maximum(1 - np.einsum("ij,ij->j", V, vectors[:, :5]) ** 2, 0))
    close = np.abs(values[:5] - found) <= certificate.residuals + slack  # none is missing
    assert (sines <= certificate.angles + 1e-7)[close].all()
    assert certificate.missing >= values[5] - slack
    assert certificate.explained == pytest.approx(found.sum() / np.trace(K))
    assert certificate.orthogonality < 1e-12
    assert certificate.converged == (certificate.residual <= 1e-10)


def test_a_method_that_believes_itself_is_not_believed():
    problem = SpectralProblem(Gram.of(X, RBF(0.3)), 2)
    products = problem.products()
    vectors = np.linalg.qr(np.random.default_rng(0).normal(size=(len(X), 2)))[0]
    guess = np.einsum("ij,ij->j", vectors, products @ vectors), vectors, products, "a guess"
    assert problem.certificate(*guess, Status.CONVERGED, 1e-3).status is Status.STALLED
    assert problem.certificate(*guess, Status.STALLED, 100.0).converged


POINTS = np.random.default_rng(0).integers(-3000, 3000, size=(15, 2)) / 1024.0  # exact in float64


def judged(model, points):
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        model.fit(points)
    return model.certificate_, [str(warning.message) for warning in heard]


def assert_bounds(model, values, vectors):
    """Whatever the status, nothing is claimed that exact eigenvalues and vectors refute."""
    certificate, k = model.certificate_, len(model.eigenvalues_)
    assert (np.abs(values[:k] - model.eigenvalues_) <= certificate.error * values[0]).all()
    across = model.eigenvectors_ - vectors * np.einsum(
        "ij,ij->j", vectors[:, :k], model.eigenvectors_
    )
    assert (np.linalg.norm(across, axis=0) <= certificate.angles + 1e-15).all()
    assert f"{certificate.error:.2g} of the largest" in certificate.claim
    assert certificate.explained <= 1.0


@pytest.mark.parametrize("solver", ["dense", "lanczos", "randomized"])
@pytest.mark.parametrize("offset", [0.0, 2.0**10, 2.0**20, 2.0**23, 2.0**27])
def test_data_far_from_the_origin(offset, solver):
    model = KernelPCA(2, eigen_solver=solver, random_state=0)
    certificate, heard = judged(model, POINTS + offset)
    U, s, _ = np.linalg.svd(POINTS - POINTS.mean(axis=0), full_matrices=False)
    assert_bounds(model, s**2, U)
    assert certificate.converged == (offset < 2.0**20)
    if not certificate.converged:
        assert certificate.status == "stalled"
        assert certificate.error > 1e-6
        assert any("Centre the data" in sentence for sentence in heard)
    assert KernelPCA(2, tol=1e9).fit(POINTS + offset).certificate_.converged
    judged(every := KernelPCA(), POINTS + offset)  # rounding is no indefinite kernel
    assert every.certificate_.explained <= 1.0


def test_gammas_that_leave_no_digits():
    """Against exponentials less one, which keep them."""
    for gamma, status in ((1e-4, "converged"), (1e-8, "converged"), (1e-12, "stalled")):
        model = KernelPCA(3, kernel=RBF(gamma))
        certificate, _ = judged(model, POINTS)
        assert certificate.status == status
        distances = np.square(POINTS[:, None] - POINTS).sum(axis=2)
        values, vectors = np.linalg.eigh(centred(np.expm1(-gamma * distances)))
        assert_bounds(model, values[::-1], vectors[:, ::-1][:, :3])
        assert (certificate.angles[2] == 1.0) == (gamma < 1e-6)  # the third is pure rounding
        assert (certificate.angles[:2] < 0.1).all()


@pytest.mark.fast
@pytest.mark.parametrize("failure", ["error", "fewer"])
def test_all_eigenvalues_are_computed_where_lapack_fails_on_some(monkeypatch, failure):
    """Its drivers for a subset fail on some clusters of eigenvalues, each LAPACK on others."""
    expected = KernelPCA(5, kernel=RBF(GAMMA), eigen_solver="dense").fit(X)
    eigh = methods.eigh

    def only_divide_and_conquer(matrix, driver=None, **options):
        values, vectors = eigh(matrix, driver=driver, **options)
        if driver == "evd" or len(matrix) == 1:
            return values, vectors
        if failure == "error":
            raise np.linalg.LinAlgError("Internal Error.")
        return values[1:], vectors[:, 1:]

    monkeypatch.setattr(methods, "eigh", only_divide_and_conquer)
    for solver in ("dense", "lanczos"):
        model = KernelPCA(5, kernel=RBF(GAMMA), eigen_solver=solver).fit(X)
        assert model.certificate_.converged
        np.testing.assert_allclose(model.eigenvalues_, expected.eigenvalues_, rtol=1e-10)
        assert model.certificate_.angles.max() < 1e-6
        assert model.certificate_.missing >= (1 - 1e-9) * expected.certificate_.missing


@pytest.mark.parametrize("n", [1, 2, 7])
def test_leading_eigenvectors(n):
    K = centred(X[:n] @ X[:n].T) + np.eye(n)
    for count in range(1, n + 1):
        values, vectors = methods.leading_eigenvectors(K, count)
        np.testing.assert_allclose(values, np.linalg.eigvalsh(K)[n - count :])
        np.testing.assert_allclose(K @ vectors, vectors * values, atol=1e-12)


def test_tol_and_iterated_power_are_obeyed():
    options = {"n_components": 5, "kernel": RBF(5.0), "random_state": 0}
    rough = KernelPCA(eigen_solver="lanczos", tol=1e-2, **options).fit(X)
    exact = KernelPCA(eigen_solver="lanczos", **options).fit(X)
    assert exact.certificate_.residual < 1e-10 < rough.certificate_.residual <= 1e-2
    assert rough.n_iter_ < exact.n_iter_
    for power in (1, 3, "auto"):
        model = KernelPCA(eigen_solver="randomized", iterated_power=power, **options).fit(X)
        assert model.n_iter_ == 1 + (7 if power == "auto" else power)
        assert model.certificate_.status == "max_iter"
    again = KernelPCA(eigen_solver="randomized", iterated_power=1, **options).fit(X)
    other = KernelPCA(eigen_solver="randomized", iterated_power=1, **options)
    assert np.array_equal(other.fit(X).eigenvalues_, again.eigenvalues_)
    other.set_params(random_state=1).fit(X)
    assert not np.array_equal(other.eigenvalues_, again.eigenvalues_)


def test_indefinite_kernels():
    K = np.diag(np.r_[3.0, 2.0, -1.0, np.ones(20)])
    model = KernelPCA(2, kernel="precomputed").fit(K)
    assert "indefinite" in str(model.certificate_)
    with pytest.raises(ValueError, match="Ask for fewer components"):
        KernelPCA(kernel="precomputed").fit(K)


# -- pre-images --------------------------------------------------------------------------------


def test_ridge_preimages_are_scikit_learns():
    options = {"kernel": "rbf", "gamma": GAMMA, "alpha": 0.1, "fit_inverse_transform": True}
    ours = KernelPCA(8, **options).fit(X)
    theirs = Reference(8, eigen_solver="dense", **options).fit(X)
    Z = theirs.transform(NEW)
    np.testing.assert_allclose(ours.inverse_transform(Z), theirs.inverse_transform(Z), atol=1e-6)
    np.testing.assert_allclose(ours.dual_coef_, theirs.dual_coef_, atol=1e-5)
    called = KernelPCA(8, **{**options, "kernel": lambda a, b: np.exp(-GAMMA * (a - b) @ (a - b))})
    np.testing.assert_allclose(called.fit(X).inverse_transform(Z), ours.inverse_transform(Z))
    flat = KernelPCA(8, **{**options, "alpha": 1e6, "fit_inverse_transform": "ridge"}).fit(X)
    assert np.abs(flat.inverse_transform(Z)).max() < 1e-2


def test_fixed_points_take_noise_away():
    """On a circle with noise, and for digits: nearer to the clean rows than the noisy ones are."""
    angle = RANDOM.uniform(0, 2 * np.pi, 300)
    circle = np.column_stack([np.cos(angle), np.sin(angle)])
    noisy = circle + 0.1 * RANDOM.normal(size=circle.shape)
    model = KernelPCA(4, kernel=2 * RBF(0.5), fit_inverse_transform="fixed_point").fit(noisy)
    back = model.inverse_transform(model.transform(noisy))
    assert np.std(np.linalg.norm(back, axis=1)) < 0.5 * np.std(np.linalg.norm(noisy, axis=1))
    every = KernelPCA(kernel=RBF(0.5), fit_inverse_transform="fixed_point").fit(X)
    np.testing.assert_allclose(every.inverse_transform(every.transform(X[:20])), X[:20], atol=1e-4)


def test_a_fixed_point_is_one():
    """z = sum_i g_i k(z, x_i) x_i / sum_i g_i k(z, x_i), g the place in feature space."""
    kernel = RBF(GAMMA)
    model = KernelPCA(5, kernel=kernel, fit_inverse_transform="fixed_point").fit(X)
    Y = model.transform(NEW)
    a = model.eigenvectors_ / np.sqrt(model.eigenvalues_)
    g = Y @ a.T
    g += (1 - g.sum(axis=1, keepdims=True)) / len(X)
    Z = model.inverse_transform(Y)
    pull = g * kernel(Z, X)
    np.testing.assert_allclose(pull @ X / pull.sum(axis=1, keepdims=True), Z, atol=1e-5)
    with pytest.raises(ValueError, match="there are 5 components"):
        model.inverse_transform(Y[:, :2])


def test_preimages_that_there_are_not(monkeypatch):
    with pytest.raises(NotFittedError, match="fit_inverse_transform"):
        KernelPCA(2).fit(X).inverse_transform(X[:, :2])
    with pytest.raises(ValueError, match="precomputed"):
        KernelPCA(2, kernel="precomputed", fit_inverse_transform=True).fit(X @ X.T)
    with pytest.raises(TypeError, match="sparse"):
        KernelPCA(2, fit_inverse_transform=True).fit(sp.csr_array(X))
    with pytest.raises(ValueError, match="RBF"):
        KernelPCA(2, fit_inverse_transform="fixed_point").fit(X)
    with pytest.raises(ValueError, match="compares others"):
        KernelPCA(2, kernel=Spectrum(2), fit_inverse_transform=True).fit(["abc", "abd", "bcd"])
    hasty = KernelPCA(2, kernel=RBF(GAMMA), fit_inverse_transform="fixed_point").fit(X)
    monkeypatch.setattr(preimages, "_STEPS", 1)
    with pytest.warns(UserWarning, match="1 of 1 pre-images have not settled"):
        hasty.inverse_transform([[-0.4, 0.3]])


def test_rows_are_copied_unless_asked_for():
    for copied in (True, False):
        model = KernelPCA(2, kernel="rbf", copy_X=copied).fit(X)
        assert np.shares_memory(model.X_fit_, X) != copied


# -- manners -----------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", ["dense", "lanczos"])
def test_every_kind_of_data(solver):
    options = {"n_components": 4, "eigen_solver": solver, "random_state": 0}
    K, k = RBF(GAMMA)(X), RBF(GAMMA)
    model = KernelPCA(kernel=k, **options).fit(X)
    Z = model.transform(NEW)
    others = [
        (KernelPCA(kernel="precomputed", **options).fit(K), k(NEW, X)),
        (KernelPCA(kernel=FunctionKernel(lambda a, b: k(a, b)), **options).fit(X), NEW),
        (KernelPCA(kernel=lambda a, b: k([a], [b])[0, 0], **options).fit(X), NEW),
    ]
    if solver == "lanczos":  # without room for the matrix
        others.append((KernelPCA(kernel=k, cache_size=0.1, **options).fit(X), NEW))
    else:
        with pytest.raises(ValueError, match="eigen_solver='lanczos'"):
            KernelPCA(kernel=k, cache_size=0.1, **options).fit(X)
    for other, new in others:
        np.testing.assert_allclose(other.transform(new), Z, atol=1e-6)
    words = ["".join(word) for word in RANDOM.choice(list("ACGT"), size=(30, 9))]
    strings = KernelPCA(kernel=Spectrum(2), **options)
    np.testing.assert_allclose(strings.fit_transform(words), strings.transform(words), atol=1e-8)


def test_auto_takes_what_suits():
    large = RANDOM.normal(size=(600, 3))
    assert "Lanczos" in KernelPCA(3, kernel=RBF(1.0)).fit(large).certificate_.solver
    assert KernelPCA(100, kernel=RBF(1.0)).fit(large).certificate_.solver == "dense"
    limited = KernelPCA(100, kernel=RBF(1.0), time_limit=60.0).fit(large)
    assert "Lanczos" in limited.certificate_.solver
    with pytest.raises(ValueError, match="nothing that time_limit can stop"):
        KernelPCA(kernel=RBF(1.0), time_limit=60.0).fit(large)


@pytest.fixture
def all_reports(monkeypatch):
    """Listeners hear of every look at a run, not only of some a second."""
    monkeypatch.setattr(Monitor, "due", lambda monitor: bool(monitor.listeners))


@pytest.mark.usefixtures("all_reports", "heard")
def test_stopped_early_it_has_components():
    options = {"n_components": 3, "kernel": RBF(5.0), "eigen_solver": "lanczos"}
    short = KernelPCA(max_iter=2, **options)
    with pytest.warns(ConvergenceWarning, match="max_iter=2"):
        short.fit(X)
    stopped = KernelPCA(callback=lambda progress: progress.steps >= 2, **options)
    with pytest.warns(ConvergenceWarning, match="stopped early"):
        stopped.fit(X)
    sent = []

    def press(progress):
        if progress.steps >= 2 and not sent:
            sent.append(1)
            signal.raise_signal(signal.SIGINT)

    interrupted = KernelPCA(callback=press, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        with pytest.raises(KeyboardInterrupt):
            interrupted.fit(X)
    for model in (short, stopped, interrupted):
        assert model.n_iter_ == 2
        assert model.certificate_.residual > 1e-10
        assert model.transform(NEW).shape == (len(NEW), 3)
    with pytest.raises(ValueError, match="Raise time_limit"):
        KernelPCA(time_limit=1e-9, **options).fit(X)


def test_verbose_and_threads(capsys):
    one, two = (
        KernelPCA(3, kernel=RBF(GAMMA), n_jobs=jobs, verbose=jobs == 2).fit(X) for jobs in (1, 2)
    )
    np.testing.assert_allclose(one.transform(NEW), two.transform(NEW), atol=1e-8)
    assert "converged" in "".join(capsys.readouterr())


@pytest.mark.parametrize("kept", [True, False])
def test_centred_products(kept):
    gram, V = Gram.of(X, RBF(GAMMA)), RANDOM.normal(size=(len(X), 3))
    products = GramProducts(gram, kept, centred=True)
    K = centred(RBF(GAMMA)(X))
    np.testing.assert_allclose(products @ V, K @ V, atol=1e-10)
    np.testing.assert_allclose(products.diagonal, K.diagonal(), atol=1e-10)
    np.testing.assert_allclose(products.rows(np.array([3, 7])), K[[3, 7]], atol=1e-10)
    plain = GramProducts(Gram.of(X, Linear()), kept)
    np.testing.assert_allclose(plain @ V, X @ (X.T @ V), atol=1e-10)


def test_angles_do_not_take_a_ritz_value_for_the_next_eigenvalue():
    """After two passes the second Ritz value is far below the second eigenvalue."""
    random = np.random.default_rng(0)
    Q = np.linalg.qr(random.normal(size=(40, 40)))[0]
    Q = np.linalg.qr(np.hstack([np.ones((40, 1)), Q[:, :39]]))[0][:, 1:]  # centred already
    values = np.concatenate([[1.0, 0.9], np.full(37, 1e-3)])
    gram = Gram.of((Q * values) @ Q.T, Precomputed())
    problem = SpectralProblem(gram, 1)
    products = problem.products()
    v = np.sqrt(1 - 1e-4) * Q[:, :1] + 1e-2 * Q[:, 1:2]
    theta = (v.T @ (products @ v)).ravel()
    found = problem.certificate(
        theta, v, products, "Lanczos", Status.CONVERGED, 1e-2, beyond=np.array([1e-3])
    )
    assert found.angles[0] >= 0.999e-2
