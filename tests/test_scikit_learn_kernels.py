"""scikit-learn's kernel objects, names and functions, wherever a kernel is taken."""

import warnings

import numpy as np
import pytest
from contracts.common import quietly
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor as Theirs
from sklearn.gaussian_process import kernels as theirs
from sklearn.gaussian_process.kernels import (
    RBF,
    CompoundKernel,
    ConstantKernel,
    DotProduct,
    ExpSineSquared,
    Matern,
    PairwiseKernel,
    RationalQuadratic,
    WhiteKernel,
)
from sklearn.metrics.pairwise import PAIRWISE_KERNEL_FUNCTIONS, pairwise_kernels

from maxmargin import (
    SVC,
    ExplicitFeatures,
    GaussianProcessRegressor,
    Gram,
    KernelPCA,
    KernelRidge,
    Nystroem,
    RandomFourier,
)
from maxmargin.kernels import (
    GappedKmer,
    Mismatch,
    Polynomial,
    Spectrum,
    WeightedDegree,
    as_kernel,
)
from maxmargin.kernels.scikit_learn import is_known

random = np.random.default_rng(0)
X, Z = random.random((30, 2)), random.random((5, 2))
Y = np.sin(4 * X[:, 0]) + X[:, 1] + 0.1 * random.normal(size=30)
NAMES = sorted(PAIRWISE_KERNEL_FUNCTIONS)


class Own(RBF):
    """A kernel of a user's own."""


KERNELS = [
    RBF(0.7),
    RBF([0.3, 1.0]),
    *(Matern(0.6, nu=nu) for nu in (0.5, 1.5, 2.5, 3.5, 0.8, np.inf)),
    Matern([0.5, 2.0], nu=2.5),
    RationalQuadratic(0.5, 2.0) ** 0.5,
    ExpSineSquared(0.7, 1.3),
    DotProduct(2.0) ** 2,
    DotProduct(0.0, "fixed"),
    ConstantKernel(2.0) * (RBF() + ConstantKernel(0.5)),
    (ConstantKernel(2.0) + ConstantKernel(3.0)) * Matern(),
    *(PairwiseKernel(0.5, metric=name) for name in NAMES),
    PairwiseKernel(0.5, metric="poly", pairwise_kernels_kwargs={"degree": 2, "coef0": 0.3}),
]
NOISY = [
    1.0 * RBF([1.0, 1.0]) + WhiteKernel(0.1),
    Matern(nu=0.8) + WhiteKernel(0.1),
    DotProduct() * WhiteKernel(0.1, "fixed") + RBF(),  # noise that is not the same at all rows
    2.0 * (RBF(1.0, "fixed") + 0.5 * WhiteKernel(0.2, (1e-3, 1e2))),
    (RBF() + WhiteKernel(0.1)) ** 2,
    Own(0.5) + WhiteKernel(0.1),
    PairwiseKernel(metric="cosine") + WhiteKernel(0.1),  # whose gamma changes no value
]


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_values_are_those_of_the_kernel_object(kernel):
    same = as_kernel(kernel)
    assert is_known(kernel)
    np.testing.assert_allclose(same(X, Z), kernel(X, Z), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(same.diag(X), kernel.diag(X), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("gamma", [None, 0.7])
def test_names_of_pairwise_kernels(name, gamma):
    """As ``kernel=`` of the estimators that take these names in scikit-learn."""
    given = {} if gamma is None else {"gamma": gamma}
    expected = pairwise_kernels(Z, X, metric=name, filter_params=True, **given)
    options = {"kernel": name, **given}
    for model in (KernelRidge(alpha=50.0, **options), KernelPCA(2, **options)):
        np.testing.assert_allclose(model.fit(X, Y).kernel_(Z, X), expected, rtol=1e-12, atol=1e-14)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # some are indefinite
        features = Nystroem(n_components=30, **options).fit(X)
    np.testing.assert_allclose(features.kernel_(Z, X), expected, rtol=1e-12, atol=1e-14)


def test_every_class_of_scikit_learn_is_translated_or_refused():
    public = [kind for kind in vars(theirs).values() if isinstance(kind, type)]
    concrete = {k for k in public if issubclass(k, theirs.Kernel) and not k.__abstractmethods__}
    tried = {part.__class__ for k in KERNELS + NOISY for part in [k, *k.get_params().values()]}
    assert concrete - {CompoundKernel, theirs.KernelOperator} <= tried
    with pytest.raises(ValueError, match="is a list of kernels"):
        as_kernel(CompoundKernel([RBF(), Matern()]))
    with pytest.raises(ValueError, match="is a list of kernels"):
        GaussianProcessRegressor(CompoundKernel([RBF()]) + WhiteKernel()).fit(X, Y)
    for estimator in (SVC, GaussianProcessRegressor):
        with pytest.raises(ValueError, match="pass kernel='precomputed'"):
            estimator(kernel=PairwiseKernel(metric="precomputed") + RBF()).fit(X @ X.T, Y > 1)
    with pytest.raises(ValueError, match=r"WhiteKernel.*alpha"):
        KernelRidge(kernel=RBF() + WhiteKernel()).fit(X, Y)


@pytest.mark.parametrize("kernel", NOISY, ids=str)
def test_a_process_is_that_of_scikit_learn(kernel):
    """Likelihood, gradient, predictions and the kernel object of the fit."""
    ours = GaussianProcessRegressor(kernel, alpha=1e-8).fit(X, Y)
    fitted = Theirs(kernel, alpha=1e-8).fit(X, Y)
    best = ours.log_marginal_likelihood_value_
    assert best > fitted.log_marginal_likelihood_value_ - 1e-4
    assert type(ours.kernel_) is type(kernel)
    assert ours.kernel_.hyperparameters == kernel.hyperparameters
    assert (ours.kernel_.bounds == kernel.bounds).all()
    np.testing.assert_allclose(ours.kernel_.theta, ours.theta_)
    at = kernel.theta
    for one, other in zip(
        ours.log_marginal_likelihood(at, eval_gradient=True),
        fitted.log_marginal_likelihood(at, eval_gradient=True),
        strict=True,
    ):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)
    same = Theirs(ours.kernel_, alpha=1e-8, optimizer=None).fit(X, Y)
    for options in ({"return_std": True}, {"return_cov": True}):
        for one, other in zip(ours.predict(Z, **options), same.predict(Z, **options), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-9)
    assert best == pytest.approx(same.log_marginal_likelihood_value_, abs=1e-8)
    assert ours.certificate_.residual < 1e-10


def with_one_fixed(kernel):
    """Yield a kernel object, and it again with one hyperparameter fixed, for each of them."""
    yield kernel
    for free in kernel.hyperparameters:
        yield clone(kernel).set_params(**{f"{free.name}_bounds": "fixed"})


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_every_kernel_object_has_its_likelihood_and_gradient(kernel):
    """Also with hyperparameters fixed."""
    data = X[:, :1] if isinstance(kernel, ExpSineSquared) else X  # valid on a line alone
    alpha = 20 if isinstance(kernel, PairwiseKernel) else 0.1  # some are indefinite
    for given in with_one_fixed(kernel):
        ours = GaussianProcessRegressor(given, alpha=alpha, optimizer=None).fit(data, Y)
        fitted = Theirs(given, alpha=alpha, optimizer=None).fit(data, Y)
        assert ours.kernel_.hyperparameters == fitted.kernel_.hyperparameters
        (value, slopes), (expected, expected_slopes) = (
            model.log_marginal_likelihood(given.theta, eval_gradient=True)
            for model in (ours, fitted)
        )
        assert value == pytest.approx(expected, rel=1e-9)
        # theirs of Matern(nu=3.5) are forward differences with a step of 1e-10
        np.testing.assert_allclose(slopes, expected_slopes, rtol=1e-4, atol=1e-5)


def test_the_default_kernel_is_optimised():
    ours = GaussianProcessRegressor(alpha=0.1).fit(X, Y)
    fitted = Theirs(ConstantKernel() * RBF(), alpha=0.1).fit(X, Y)  # the default since 1.9
    assert str(ours.kernel_) == str(fitted.kernel_)
    assert ours.log_marginal_likelihood_value_ >= fitted.log_marginal_likelihood_value_ - 1e-6


def test_kernels_print_the_numbers_that_select_their_formula():
    assert [str(k) for k in (Spectrum(3), Mismatch(5, 1), GappedKmer(8, 5), Polynomial(3))] == [
        "Spectrum(k=3)",
        "Mismatch(k=5, m=1)",
        "GappedKmer(window=8, k=5)",
        "Polynomial(degree=3)",
    ]


def test_sentences():
    with pytest.raises(ValueError, match=r"SVC\(kernel=Spectrum\(3\)\)"):
        SVC().fit(["ACGT", "ACGA", "TTGT", "CCGT"], [0, 1, 0, 1])
    with pytest.raises(ValueError, match="of_rows"):
        SVC(kernel=lambda x, z: float(x[0] @ z[0])).fit(X, Y > 0.5)
    with pytest.raises(TypeError, match=r"Gram\.of\(X, kernel\)"):
        Gram(as_kernel("rbf"), X)


def test_strings_without_features_have_values_of_zero():
    kernel = WeightedDegree(3, shift=1, unknown="skip")
    assert not kernel(["N"] * 5).any()


def test_bounds_belong_to_the_kernel_object():
    for extra in ({"bounds": {}}, {"noise_level": 0.1}):
        with pytest.raises(ValueError, match="belongs to kernels of maxmargin"):
            GaussianProcessRegressor(RBF(), **extra).fit(X, Y)
    with pytest.raises(ValueError, match="all bounds are finite"):
        GaussianProcessRegressor(RBF(1.0, (0.1, np.inf)), n_restarts_optimizer=1).fit(X, Y)
    with pytest.warns(ConvergenceWarning, match="dimension 0 of parameter length_scale"):
        GaussianProcessRegressor(RBF(1.0, (1e-5, 1e-3)), alpha=0.1).fit(X, Y)


def test_columns_that_are_switched_off_are_no_reason_to_warn():
    wide = np.column_stack([X, random.random((30, 6))])
    kernel = RBF(np.ones(8)) + WhiteKernel(0.1)
    model = GaussianProcessRegressor(kernel).fit(wide, Y)
    assert len(model.certificate_.at_bounds) > 1


@pytest.mark.parametrize("kernel", [RBF(0.5), Matern([0.5, 1.0], nu=0.8), Own(0.5)], ids=str)
def test_other_estimators_take_kernel_objects(kernel):
    labels = np.median(Y) < Y
    ours = SVC(kernel=kernel).fit(X, labels)
    expected = SVC(kernel="precomputed").fit(kernel(X), labels)
    np.testing.assert_allclose(
        ours.decision_function(Z), expected.decision_function(kernel(Z, X)), atol=1e-2
    )
    ridge = KernelRidge(kernel=kernel, alpha=0.1).set_params(kernel__length_scale=0.7).fit(X, Y)
    assert kernel.length_scale == 0.7
    assert ridge.score(X, Y) > 0.5


@pytest.mark.parametrize(
    "features",
    [
        ExplicitFeatures(DotProduct(0.5) ** 2),
        Nystroem(Matern(nu=0.8), n_components=30, random_state=0),
        RandomFourier(RBF(0.5), n_components=20_000, random_state=0),
    ],
    ids=lambda features: type(features).__name__,
)
def test_feature_maps_take_kernel_objects(features):
    mapped = features.fit_transform(X)
    np.testing.assert_allclose(mapped @ mapped.T, features.kernel(X), atol=0.05)


def test_rows_without_noise_are_no_reason_to_warn():
    """The gradient of a covariance with a condition of 1e12 has no digits at tol=1e-6."""
    x = np.linspace(0, 6, 30)[:, None]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = GaussianProcessRegressor().fit(x, np.sin(x[:, 0]))
    certificate = model.certificate_
    assert certificate.status == "no_improvement"
    assert model.fit_status_ == 0
    assert 0 <= certificate.left < 5e-5
    assert "standard errors from the top" in str(certificate)
    # on some CPUs L-BFGS warns that it stopped abnormally
    theirs = quietly(Theirs(ConstantKernel() * RBF()).fit, x, np.sin(x[:, 0]))
    assert model.log_marginal_likelihood_value_ > theirs.log_marginal_likelihood_value_ - 1e-3
    twice, t = np.repeat(x[:10], 3, axis=0), np.sin(3 * np.arange(30.0))  # and other targets
    with pytest.warns(ConvergenceWarning, match="No step raises the likelihood"):
        assert GaussianProcessRegressor().fit(twice, t).fit_status_ == 1
