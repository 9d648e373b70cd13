"""Gaussian processes: derivatives of every kernel, scikit-learn's machine, likelihoods, bounds."""

import signal
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor as Reference
from sklearn.gaussian_process import kernels as theirs

from maxmargin import GaussianProcessRegressor, KernelRidge, Trace
from maxmargin.backends.threads import Workers
from maxmargin.gram import Gram
from maxmargin.gram.parametric import ParametricGram
from maxmargin.kernel_methods.process_options import rows_to_try
from maxmargin.kernels import (
    RBF,
    FunctionKernel,
    Laplacian,
    Linear,
    Matern,
    Polynomial,
    Precomputed,
    QuadraticForm,
    RationalQuadratic,
    Sigmoid,
    Spectrum,
    exp,
)
from maxmargin.kernels.parameters import KernelNumbers
from maxmargin.solvers.driver import Watch
from maxmargin.solvers.likelihood import AverageInformation, MarginalLikelihood, paired_rows

RANDOM = np.random.default_rng(0)
X = RANDOM.uniform(-3, 3, size=(80, 2))
y = np.sin(2 * X[:, 0]) + 0.3 * X[:, 1] + 0.2 * RANDOM.normal(size=80)
T = np.column_stack([y, np.cos(X[:, 1]) + 0.1 * RANDOM.normal(size=80)])
NEW = RANDOM.uniform(-4, 4, size=(20, 2))
MANY = RANDOM.normal(size=(1000, 2))
WAVES = np.sin(2 * MANY[:, 0]) + 0.2 * RANDOM.normal(size=1000)


def process(kernel=None, noise_level=0.1, **options):
    kernel = 1.0 * RBF(gamma=0.5) if kernel is None else kernel
    return GaussianProcessRegressor(kernel, noise_level=noise_level, random_state=0, **options)


def reference(noise_level=0.1, **options):
    kernel = theirs.ConstantKernel(1.0) * theirs.RBF(1.0) + theirs.WhiteKernel(noise_level)
    return Reference(kernel, random_state=0, **options)


def fitted_reference(model, points, targets, **options):
    """scikit-learn's process with the parameters that ours has found."""
    found = model.parameters_
    kernel = theirs.ConstantKernel(found["constant"])
    kernel = kernel * theirs.RBF((0.5 / found["gamma"]) ** 0.5)
    kernel += theirs.WhiteKernel(model.noise_level_)
    return Reference(kernel, optimizer=None, **options).fit(points, targets)


# -- derivatives -------------------------------------------------------------------------------


def shrunk(points):
    return 1 / (1 + np.square(points).sum(axis=1))


def doubled(points):
    return np.hstack([points, points**2])


def inner(a, b):
    return a @ b.T


KERNELS = {
    "rbf": (RBF(0.3), ["gamma"]),
    "laplacian": (Laplacian(0.2), ["gamma"]),
    "matern 1/2": (Matern(1.3, 0.5), ["length_scale"]),
    "matern 3/2": (Matern(1.3, 1.5), ["length_scale"]),
    "matern 5/2": (Matern(0.8, 2.5), ["length_scale"]),
    "rational quadratic": (RationalQuadratic(1.2, 0.7), ["length_scale", "alpha"]),
    "polynomial": (Polynomial(3, 0.5, 0.2), ["coef0", "gamma"]),
    "no term": (Polynomial(2, 0.0, 0.2), ["gamma"]),
    "sigmoid": (Sigmoid(0.1, -0.2), ["gamma", "coef0"]),
    "scaled and shifted": (2.0 * RBF(0.3) + 1.5, ["constant", "kernel__constant", "gamma"]),
    "product and power": (Linear() ** 2 * RBF(0.1), ["k2__gamma"]),
    "exponential": (exp(0.1 * Linear()), ["constant"]),
    "polynomial of": (
        (0.3 * Linear()).polynomial([1.0, 0.0, 0.5]),
        ["coefficients[0]", "coefficients[2]", "constant"],
    ),
    "conformal": (RBF(0.2).conformal(shrunk), ["gamma"]),
    "on columns": (0.5 * RBF(0.2).on([0]) + Linear().on([1]), ["k1__constant", "k1__gamma"]),
    "after a map": (RBF(0.2).after(doubled), ["gamma"]),
    "normalized": (
        2.0 * (Polynomial(2, 0.3, 0.7) + RBF(0.2)).normalized(),
        ["constant", "k1__coef0", "k1__gamma", "k2__gamma"],
    ),
    "stretched": (RBF(0.5).stretched([1.0, -2.0]), ["factors[0]", "factors[1]", "gamma"]),
    "stretched twice": (
        Matern(2.0).stretched([1.0, 1.0]) + Laplacian(0.1).stretched([1.0, 1.0]),
        [f"k1__{n}" for n in ("factors[0]", "factors[1]", "length_scale")]
        + [f"k2__{n}" for n in ("factors[0]", "factors[1]", "gamma")],
    ),
    "alike but apart": (
        Linear().stretched([1.0, 0.0]) + Linear().stretched([1.0, 2.0]),
        ["k1__factors[0]", "k2__factors[0]", "k2__factors[1]"],
    ),
    "stretched and normalized": (
        (RBF(0.4) + Linear().stretched([1.0, 2.0])).normalized(),
        ["k1__gamma", "k2__factors[0]", "k2__factors[1]"],
    ),
    "function": (0.5 * FunctionKernel(inner) + RBF(0.5), ["k1__constant", "k2__gamma"]),
    "a matrix in a map": (2.0 * QuadraticForm(np.eye(2)), ["constant"]),
}


@pytest.mark.parametrize("memory", [0, 1 << 24], ids=["computed", "kept"])
@pytest.mark.parametrize("name", KERNELS)
def test_derivatives_are_those_of_the_kernel(name, memory):
    """Sums and products with all derivatives, against differences of whole matrices."""
    kernel, names = KERNELS[name]
    points = np.vstack([MANY[:300], MANY[:2]])  # more than a stripe, some of them twice
    gram = ParametricGram(points, KernelNumbers(kernel), memory, workers=Workers(2))
    assert gram.parameters.names == names
    theta, n = gram.parameters.theta, len(points)
    at = gram.at(theta)
    K = kernel(points)
    size = np.abs(K).max()
    np.testing.assert_allclose(np.tril(at.lower_triangle()), np.tril(K), atol=1e-12 * size)
    random = np.random.default_rng(0)
    W, a = random.normal(size=(n, n)), random.normal(size=(n, 2))
    W = W + W.T
    sums, products = at.contract(lambda rows: W[rows, : rows.stop], a, Workers(2))
    for k in range(len(theta)):
        step = np.zeros(len(theta))
        step[k] = 1e-5
        up, down = (gram.parameters.kernel_at(theta + s * step)(points) for s in (1, -1))
        change = (up - down) / 2e-5
        scale = np.abs(change).max() or 1.0
        np.testing.assert_allclose(products[k], change @ a, atol=1e-6 * n * scale)
        assert sums[k] == pytest.approx((W * change).sum(), abs=1e-6 * n * scale)


def test_what_is_a_parameter():
    """Whole numbers, choices, zeros and what a recursion holds are not."""
    assert KernelNumbers(Spectrum(3)).names == []
    assert KernelNumbers(Polynomial(2, 1.0, 1.0), fixed=["coef0"]).names == ["gamma"]
    assert KernelNumbers(3.0 * Precomputed()).names == ["constant"]
    changed = KernelNumbers(-2.0 * Linear()).kernel_at(np.log([5.0]))
    assert changed.get_params()["constant"] == pytest.approx(-5.0)


@pytest.mark.parametrize("targets", [y, T], ids=["one output", "two"])
def test_gradient_and_information_of_the_likelihood(targets):
    """The gradient by differences; the information by its formula."""
    targets = targets.reshape(len(X), -1)
    alpha = RANDOM.uniform(0.01, 0.1, size=len(X))
    gram = ParametricGram(X, KernelNumbers(1.3 * Matern(1.5, 2.5) + 0.2 * Linear()), 1 << 24)
    problem = MarginalLikelihood(gram, targets, alpha, noise=0.2)
    theta = problem.theta
    found = problem.at(theta, Workers(2))
    kernel = problem.kernel_at(theta)
    C = kernel(X) + np.diag(alpha) + 0.2 * np.eye(len(X))
    a = np.linalg.solve(C, targets)
    changes, differences = [], []
    for k in range(len(theta)):
        step = np.zeros(len(theta))
        step[k] = 1e-4
        up, down = theta + step, theta - step
        differences.append((problem.at(up).value - problem.at(down).value) / 2e-4)
        change = problem.kernel_at(up)(X) - problem.kernel_at(down)(X)
        noise = problem.noise_at(up) - problem.noise_at(down)
        changes.append((change + noise * np.eye(len(X))) @ a / 2e-4)
    Q = np.array(changes)
    information = 0.5 * np.einsum(
        "aio,bio->ab",
        Q,
        np.linalg.solve(C, Q.transpose(1, 0, 2).reshape(len(X), -1))
        .reshape(len(X), len(theta), -1)
        .transpose(1, 0, 2),
    )
    np.testing.assert_allclose(found.gradient, differences, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(found.information, information, rtol=1e-5, atol=1e-6)


# -- the machine beside scikit-learn's ---------------------------------------------------------


@pytest.mark.parametrize("normalize_y", [False, True])
@pytest.mark.parametrize("targets", [y, T], ids=["one output", "two"])
def test_the_same_process_as_of_scikit_learn(targets, normalize_y):
    """No lower likelihood; at its parameters the same likelihood, gradient, mean, variances."""
    options = {"alpha": RANDOM.uniform(0.001, 0.1, len(X)), "normalize_y": normalize_y}
    bounds = {"noise_level": (1e-3, 1e5)}
    model = process(n_restarts_optimizer=2, bounds=bounds, n_jobs=2, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # of either at that bound
        model.fit(X, targets)
        best = reference(n_restarts_optimizer=2, **options)
        best.kernel.k2.noise_level_bounds = (1e-3, 1e5)
        best.fit(X, targets)
    assert model.certificate_.converged
    least = best.log_marginal_likelihood_value_ - 1e-6
    assert model.log_marginal_likelihood_value_ >= least
    other = fitted_reference(model, X, targets, **options)
    value, gradient = model.log_marginal_likelihood(model.theta_ + 0.1, eval_gradient=True)
    steps = other.kernel_.theta + np.array([0.1, -0.05, 0.1])  # their length scale is gamma ** -1/2
    expected, slopes = other.log_marginal_likelihood(steps, eval_gradient=True)
    assert value == pytest.approx(expected, abs=1e-8)
    np.testing.assert_allclose(gradient, slopes * [1, -0.5, 1], atol=1e-7)
    assert model.log_marginal_likelihood() == model.log_marginal_likelihood_value_
    for which in ({}, {"return_std": True}, {"return_cov": True}):
        ours, known = model.predict(NEW, **which), other.predict(NEW, **which)
        for mine, its in zip(ours if which else [ours], known if which else [known], strict=True):
            np.testing.assert_allclose(mine, its, atol=1e-9)
    np.testing.assert_allclose(model.L_ @ model.L_.T, other.L_ @ other.L_.T, atol=1e-10)
    np.testing.assert_allclose(model.alpha_, other.alpha_, atol=1e-7)


@pytest.mark.parametrize("targets", [y, y[:, None], T], ids=["n", "n x 1", "n x 2"])
def test_shapes_are_scikit_learns(targets):
    ours, theirs = (
        estimator(optimizer=None, alpha=0.1).fit(X, targets)
        for estimator in (GaussianProcessRegressor, Reference)
    )
    for which in ({}, {"return_std": True}, {"return_cov": True}):
        got, expected = ours.predict(NEW, **which), theirs.predict(NEW, **which)
        assert [np.shape(a) for a in got] == [np.shape(a) for a in expected]
    assert ours.sample_y(NEW, 4).shape == theirs.sample_y(NEW, 4).shape


def test_the_mean_is_kernel_ridge():
    model = process(RBF(0.4), noise_level=0.3, alpha=0.0, optimizer=None).fit(X, y)
    ridge = KernelRidge(0.3, kernel=RBF(0.4)).fit(X, y)
    np.testing.assert_allclose(model.predict(NEW), ridge.predict(NEW), atol=1e-9)
    assert model.certificate_.free == 0
    assert "nothing was maximised" in str(model.certificate_)


def test_equal_targets_stay_what_they_are():
    model = process(normalize_y=True, optimizer=None).fit(X, np.full(len(X), 3.0))
    np.testing.assert_array_equal(model.predict(NEW), 3.0)


def test_noise_of_each_point():
    """A target of great variance counts for nothing, two of equal points for their mean."""
    alpha = np.full(len(X), 0.1)
    alpha[0] = 1e8
    kernel = RBF(0.4)
    all_rows = GaussianProcessRegressor(kernel, alpha=alpha, optimizer=None).fit(X, y)
    rest = GaussianProcessRegressor(kernel, alpha=alpha[1:], optimizer=None).fit(X[1:], y[1:])
    np.testing.assert_allclose(all_rows.predict(NEW), rest.predict(NEW), atol=1e-6)
    for one, two in zip(
        all_rows.predict(NEW, return_std=True), rest.predict(NEW, return_std=True), strict=True
    ):
        np.testing.assert_allclose(one, two, atol=1e-6)


def test_samples_have_the_moments_of_the_process():
    model = process().fit(X, T)
    few = NEW[:4]
    drawn = model.sample_y(few, n_samples=4000, random_state=1)
    assert drawn.shape == (4, 2, 4000)
    mean, covariance = model.predict(few, return_cov=True)
    error = np.sqrt(covariance.max() / 4000)
    np.testing.assert_allclose(drawn.mean(axis=2), mean, atol=6 * error)
    for k in range(2):
        np.testing.assert_allclose(
            np.cov(drawn[:, k]), covariance[..., k], atol=0.15 * covariance.max()
        )
    assert process().fit(X, y).sample_y(few, 3).shape == (4, 3)


def test_before_a_fit_it_is_the_prior():
    model, known = process(n_targets=2), reference(n_targets=2)
    for which in ({}, {"return_std": True}, {"return_cov": True}):
        ours, its = model.predict(NEW, **which), known.predict(NEW, **which)
        for mine, other in zip(ours if which else [ours], its if which else [its], strict=True):
            np.testing.assert_allclose(mine, other, atol=1e-12)
    assert GaussianProcessRegressor().sample_y(NEW, 5).shape == (len(NEW), 5)
    with pytest.raises(ValueError, match="number of targets"):
        model.fit(X, y)
    given = GaussianProcessRegressor(kernel="precomputed")  # values of new points with known ones
    assert given.predict(np.ones((2, 4))).tolist() == [0.0, 0.0]
    for which in ({"return_std": True}, {"return_cov": True}):
        with pytest.raises(ValueError, match="square matrix"):
            given.predict(np.ones((2, 4)), **which)


@pytest.mark.parametrize(
    "kernel", [1.0 * Matern(1.0, 2.5), RationalQuadratic(), RBF(0.5).stretched()]
)
def test_other_kernels_beside_scikit_learn(kernel):
    """From the same start, no lower a likelihood."""
    same = {
        Matern: theirs.ConstantKernel() * theirs.Matern(1.0, nu=2.5),
        RationalQuadratic: theirs.RationalQuadratic(),
    }.get(type(getattr(kernel, "kernel", kernel)), theirs.RBF([1.0, 1.0]))
    bounds = {"gamma": "fixed"} if hasattr(kernel, "factors") else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        best = Reference(same + theirs.WhiteKernel(0.1)).fit(X, y)
        model = process(kernel, bounds=bounds).fit(X, y)
    assert model.log_marginal_likelihood_value_ >= best.log_marginal_likelihood_value_ - 1e-5


def test_containers_and_kernels_of_all_kinds():
    dense = process().fit(X, y).predict(NEW, return_std=True)
    sparse = process().fit(sp.csr_matrix(X), y).predict(sp.csr_matrix(NEW), return_std=True)
    np.testing.assert_allclose(sparse, dense, atol=1e-6)
    K = RBF(0.5)(X)
    given = process(1.0 * Precomputed()).fit(K, y)
    direct = process(1.0 * RBF(0.5), bounds={"gamma": "fixed"}).fit(X, y)
    assert given.parameters_ == pytest.approx(direct.parameters_, rel=1e-3)
    np.testing.assert_allclose(given.predict(RBF(0.5)(NEW, X)), direct.predict(NEW), atol=1e-4)
    with pytest.raises(ValueError, match="among new points"):
        given.predict(RBF(0.5)(NEW, X), return_std=True)
    words = ["ACGT", "ACGA", "TTTT", "TTTA", "GGGG"]
    model = process(Spectrum(2).normalized(), bounds={"noise_level": "fixed"}).fit(
        words, [0.0, 0.1, 1.0, 1.1, 3.0]
    )
    mean, deviation = model.predict(["ACGC", "TTTG"], return_std=True)
    assert mean[0] < mean[1]
    assert (deviation > 0).all()
    assert process("rbf").fit(X, y).parameters_.keys() == {"gamma", "noise_level"}


# -- the search --------------------------------------------------------------------------------


def test_starts_on_some_rows_end_where_all_rows_do():
    quick = process(n_restarts_optimizer=1).fit(MANY, WAVES)
    slow = clone(quick).set_params(start_rows=None).fit(MANY, WAVES)
    assert "on 250 rows" in quick.certificate_.solver
    assert "on all rows" in slow.certificate_.solver
    assert quick.certificate_.converged
    gain = quick.log_marginal_likelihood_value_ - slow.log_marginal_likelihood_value_
    assert gain > -1e-4
    shown = process(start_rows=40).fit(X, y).certificate_.solver
    assert "40 rows" in shown


def test_where_some_rows_show_nothing_all_are_taken():
    model = process(start_rows=20, bounds={"constant": (0.1, 10.0)})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, RANDOM.normal(size=len(X)))
    assert "too few" in model.certificate_.solver


def test_a_top_of_some_rows_without_a_likelihood_on_all():
    """A function without noise: the length scale grows until the matrix of all rows is singular."""
    points = np.random.default_rng(0).normal(size=(300, 10))
    model = GaussianProcessRegressor(start_rows=60)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(points, points[:, 0])  # refused before, with start_rows=None it was not
    assert "without a likelihood" in model.certificate_.solver
    assert model.score(points, points[:, 0]) > 0.999


def test_rows_to_try_have_their_neighbours():
    points = np.repeat(RANDOM.normal(size=(50, 2)), 2, axis=0)
    rows = paired_rows(Gram.of(points, RBF(1.0)), 40, np.random.RandomState(0))
    assert len(rows) == len(set(rows)) == 40
    assert len(set(rows // 2)) <= 22  # nearly all in pairs
    assert rows_to_try("auto", "average_information", 3000) == 750
    assert (
        rows_to_try("auto", print, 3000) == rows_to_try(None, "average_information", 3000) == 3000
    )


def test_optimizers():
    """SciPy's, a function by scikit-learn's convention, and none."""
    ours = process().fit(X, y)
    scipy = process(optimizer="fmin_l_bfgs_b", tol=1e-5).fit(X, y)
    close = pytest.approx(ours.log_marginal_likelihood_value_, abs=1e-5)
    assert scipy.log_marginal_likelihood_value_ == close

    def lazy(obj_func, initial_theta, bounds):
        assert bounds.shape == (3, 2)
        assert obj_func(initial_theta, eval_gradient=False) == obj_func(initial_theta)[0]
        return initial_theta, obj_func(initial_theta)[0]

    with pytest.warns(ConvergenceWarning, match="gradient is still above tol"):
        model = process(optimizer=lazy).fit(X, y)
    assert model.parameters_ == pytest.approx({"constant": 1.0, "gamma": 0.5, "noise_level": 0.1})
    assert process(optimizer=None).fit(X, y).theta_ == pytest.approx(model.theta_)


@pytest.mark.parametrize("restarts", [0, 3])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_theta_that_an_optimizer_returns_is_the_answer(restarts):
    """Evaluated or not, and not the best that it has asked for; of several, the best."""
    returned = []

    def drawn_to_two(obj_func, initial_theta, bounds):
        obj_func(np.log([0.5, 0.65, 0.1]))  # which is better
        returned.append((initial_theta + np.log(2.0)) / 2)
        initial_theta[:] = np.nan  # theirs to write on
        return returned[-1], 0.0

    model = process(optimizer=drawn_to_two, n_restarts_optimizer=restarts).fit(X, y)
    assert len(returned) == 1 + restarts
    values = [model.log_marginal_likelihood(theta) for theta in returned]
    np.testing.assert_array_equal(model.theta_, returned[int(np.argmax(values))])
    assert model.log_marginal_likelihood_value_ == pytest.approx(max(values))
    gradient = model.log_marginal_likelihood(model.theta_, eval_gradient=True)[1]
    assert model.certificate_.gradient_norm == pytest.approx(np.abs(gradient).max() / len(y))
    start = process(optimizer=lambda f, theta, bounds: (theta, 0.0)).fit(X, y)
    np.testing.assert_allclose(start.theta_, np.log([1.0, 0.5, 0.1]))
    for answer in (None, np.zeros(3), (np.zeros(2), 0.0), (np.full(3, np.nan), 0.0)):
        with pytest.raises(ValueError, match="has to return a pair: theta, 3 finite"):
            process(optimizer=lambda *_, answer=answer, **__: answer).fit(X, y)


def test_a_step_that_is_not_defined_is_shortened():
    """Without noise the covariance of many near points is singular as soon as gamma is small."""
    x = np.linspace(0, 1, 40)[:, None]
    gram = ParametricGram(x, KernelNumbers(RBF(300.0)), 1 << 20)
    problem = MarginalLikelihood(gram, x, np.full(40, 1e-12), None)
    ended = AverageInformation().solve(problem, Watch(tol=1e-6, max_iter=60))
    assert np.isfinite(ended.value)
    assert ended.value < problem.at(problem.theta).value


def test_bounds():
    held = process(bounds={"gamma": "fixed", "noise_level": (0.3, 0.6)})
    with pytest.warns(
        ConvergenceWarning, match="noise_level is close to the specified lower bound"
    ):
        held.fit(X, y)
    assert list(held.parameters_) == ["constant", "noise_level"]
    assert held.noise_level_ == pytest.approx(0.3)
    assert held.certificate_.at_bounds == ("noise_level",)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # no width: fixed, and nothing to warn of
        still = process(noise_level=0.5, bounds={"noise_level": (0.1, 0.1)}).fit(X, y)
    assert still.noise_level_ == pytest.approx(0.1)
    assert (still.certificate_.at_bounds, still.certificate_.free) == ((), 2)
    with pytest.raises(ValueError, match=r"'width'.*'constant', 'gamma', 'noise_level'"):
        process(bounds={"width": (1, 2)}).fit(X, y)
    for wrong in ((2.0, 1.0), (0.0, 1.0), "free", 3.0):
        with pytest.raises(ValueError, match="two positive numbers"):
            process(bounds={"gamma": wrong}).fit(X, y)


@pytest.mark.parametrize("kernel", [RBF(length_scale=1.0), theirs.RBF()])
def test_a_likelihood_can_leave_its_kernel(kernel):
    model = GaussianProcessRegressor(kernel=kernel, alpha=0.1, optimizer=None).fit(X, y)
    at = model.theta_ + np.log(2.0)
    model.log_marginal_likelihood(at, clone_kernel=False)
    name = "gamma" if isinstance(kernel, RBF) else "length_scale"
    assert np.log(getattr(model.kernel_, name)) == pytest.approx(at[0])


def test_a_likelihood_that_runs_away():
    """Targets without noise: as it goes to zero the likelihood has no end."""
    repeated = np.vstack([X, X])
    with pytest.warns(ConvergenceWarning, match="may have no maximum"):
        process().fit(repeated, np.concatenate([y, y]))


# -- long work ---------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"optimizer": "fmin_l_bfgs_b"}, {"start_rows": 40}])
def test_no_step_leaves_the_process_at_the_start(options):
    start = process(optimizer=None).fit(X, y)
    with pytest.warns(ConvergenceWarning, match="max_iter=0 steps.*gradient is 0"):
        model = process(max_iter=0, **options).fit(X, y)
    assert (str(model.certificate_.status), model.fit_status_) == ("max_iter", 1)
    np.testing.assert_array_equal(model.theta_, start.theta_)
    np.testing.assert_array_equal(model.predict(NEW), start.predict(NEW))


@pytest.mark.parametrize("optimizer", ["average_information", "fmin_l_bfgs_b"])
def test_ctrl_c_raises_and_leaves_a_process(optimizer, heard):
    def interrupt(progress):
        if progress.steps >= 2:
            signal.raise_signal(signal.SIGINT)

    model = process(optimizer=optimizer, callback=interrupt, start_rows=None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        with pytest.raises(KeyboardInterrupt):
            model.fit(MANY, WAVES)
    assert str(model.certificate_.status) == "interrupted"
    start = process(optimizer=None).fit(MANY, WAVES)
    assert model.log_marginal_likelihood_value_ > start.log_marginal_likelihood_value_


def test_traces_and_words(capsys):
    trace = Trace()
    process(callback=trace, verbose=True).fit(X, y)
    assert len(trace) >= 3
    assert "stationary" in "".join(capsys.readouterr())


# -- what is refused, and scikit-learn's checks ------------------------------------------------


def test_refusals():
    twice = np.vstack([X, X[:1]])
    for alpha, kernel in ((0.0, RBF(0.5)), (1e-3, Sigmoid(1.0, -1.0))):
        with pytest.raises(ValueError, match=r"not positive definite.*Raise alpha"):
            GaussianProcessRegressor(kernel, alpha=alpha).fit(twice, np.append(y, 0.0))
    with pytest.raises(ValueError, match=r"it is 0.1, and kernel values reach .*e\+30.*scale the"):
        process(1.0 * Linear()).fit(X * 1e150, y)
    for optimizer in ("average_information", "fmin_l_bfgs_b", None):
        with pytest.raises(ValueError, match="variance of these data is infinity"):
            process(RBF(), optimizer=optimizer).fit(X * 1e200, y)
        with np.errstate(all="ignore"), pytest.raises(ValueError, match="returned infinity"):
            process(Linear(), optimizer=optimizer).fit(X * 1e200, y)
    with pytest.raises(ValueError, match="returned infinity"):  # where an optimizer has ended
        process(
            Polynomial(400, 1.0, 1.0), optimizer=lambda f, theta, bounds: (theta + 9.0, 0.0)
        ).fit(X / 9, y)
    with pytest.raises(ValueError, match="same number of entries as y"):
        process(alpha=[0.1, 0.2]).fit(X, y)
    with pytest.raises(ValueError, match="none below zero"):
        process(alpha=np.full(len(X), -1.0)).fit(X, y)
    with pytest.raises(ValueError, match=r"takes 0\.\d+ MB.*cache_size"):
        process(cache_size=0.01).fit(X, y)
    with pytest.raises(RuntimeError, match="At most one"):
        process().fit(X, y).predict(NEW, return_std=True, return_cov=True)
    with pytest.raises(ValueError, match="parameters_ has 3"):
        process().fit(X, y).log_marginal_likelihood([0.0])


def test_points_are_copied_unless_asked_for():
    for copied in (True, False):
        model = process(copy_X_train=copied, optimizer=None).fit(X, y)
        assert np.shares_memory(model.X_train_, X) != copied
