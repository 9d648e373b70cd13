"""What must not change the answer, and what must change it in a known way (hypothesis)."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maxmargin import SVC, SVR, NuSVC, NuSVR, OneClassSVM
from maxmargin.kernels import RBF, Linear

TOL = 1e-8
KERNELS = [RBF(gamma=0.7), Linear() + 1, 0.5 * RBF(gamma=0.2) * Linear()]
problem = settings(max_examples=25, deadline=None, derandomize=True)


@st.composite
def data_sets(draw):
    """Two noisy classes and a real target, with the occasional duplicate and constant column."""
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, d = draw(st.integers(6, 40)), draw(st.integers(1, 5))
    X = random.normal(size=(n, d)).round(draw(st.integers(0, 3)))
    if draw(st.booleans()):
        X[:, 0] = 1.0
    y = np.where(X.sum(axis=1) + random.normal(size=n) > 0, 1, 0)
    y[0], y[1] = 0, 1
    return X, y, X @ np.ones(d) + 0.3 * random.normal(size=n), random


def machines(kernel):
    return [
        SVC(kernel=kernel, C=2.0, tol=TOL),
        SVC(kernel=kernel, C=2.0, tol=TOL, fit_intercept=False),
        SVC(kernel=kernel, lam=0.05, tol=TOL),
        SVR(kernel=kernel, C=2.0, tol=TOL),
        NuSVR(kernel=kernel, C=2.0, nu=0.5, tol=TOL),
        OneClassSVM(kernel=kernel, nu=0.3, tol=TOL),
    ]


def values(model, X):
    return model.predict(X) if isinstance(model, SVR | NuSVR) else model.decision_function(X)


def fitted(model, X, y, target, **options):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The only solution here is the trivial")
        return model.fit(X, y if isinstance(model, SVC) else target, **options)


def assert_same_function(a, b, X, sign=1.0):
    """Same values, up to the bias that the KKT conditions leave open when nothing is free."""
    if a.certificate_.status == "trivial":
        assert b.certificate_.status == "trivial"
        return
    mine, other = values(a, X), sign * values(b, X)
    difference = mine - other
    scale = 1.0 + np.abs(mine).max()
    assert np.ptp(difference) <= 1e-4 * scale
    for model in (a, b):  # the primal is taken at the bias, so no gap means a bias that is optimal
        assert model.certificate_.gap <= 1e-6 * (1 + abs(model.certificate_.dual))
    assert a.certificate_.dual == pytest.approx(b.certificate_.dual, rel=1e-6, abs=1e-7)


@problem
@given(data_sets(), st.sampled_from(KERNELS))
def test_dual_feasibility(data, kernel):
    X, y, target, _ = data
    for model in machines(kernel):
        fitted(model, X, y, target)
        certificate = model.certificate_
        assert certificate.converged or certificate.status == "trivial"
        assert certificate.gap >= 0
        assert certificate.primal >= certificate.dual
        scale = np.abs(model.dual_coef_).sum() + 1.0
        assert certificate.infeasibility <= 1e-11 * scale
        coefficients = model.dual_coef_[0]
        if isinstance(model, SVC):
            C = 2.0 if model.lam is None else 1 / (2 * len(X) * model.lam)
            assert np.abs(coefficients).max() <= C * (1 + 1e-12)
            assert (np.sign(coefficients) == np.where(y[model.support_] == 1, 1, -1)).all()
        if isinstance(model, SVR | NuSVR):
            assert np.abs(coefficients).max(initial=0) <= 2.0 * (1 + 1e-12)
        if isinstance(model, OneClassSVM):
            assert coefficients.sum() == pytest.approx(0.3 * len(X))
        elif getattr(model, "fit_intercept", True):
            assert abs(coefficients.sum()) <= 1e-10 * scale


@problem
@given(data_sets(), st.sampled_from(KERNELS))
def test_the_order_of_rows_does_not_matter(data, kernel):
    X, y, target, random = data
    order = random.permutation(len(X))
    for model, other in zip(machines(kernel), machines(kernel), strict=True):
        fitted(model, X, y, target)
        fitted(other, X[order], y[order], target[order])
        assert_same_function(model, other, X)


@problem
@given(data_sets(), st.sampled_from(KERNELS))
def test_a_weight_of_two_is_a_row_written_twice(data, kernel):
    X, y, target, random = data
    weight = random.integers(1, 3, size=len(X))
    again = np.repeat(np.arange(len(X)), weight)
    for model, other in zip(machines(kernel), machines(kernel), strict=True):
        fitted(model, X, y, target, sample_weight=weight)
        fitted(other, X[again], y[again], target[again])
        assert_same_function(model, other, X)


@problem
@given(data_sets(), st.sampled_from(KERNELS))
def test_a_row_of_weight_zero_is_not_there(data, kernel):
    X, y, target, random = data
    weight = np.ones(len(X))
    weight[2 + random.integers(len(X) - 2)] = 0.0
    keep = weight > 0
    for model, other in zip(machines(kernel), machines(kernel), strict=True):
        fitted(model, X, y, target, sample_weight=weight)
        fitted(other, X[keep], y[keep], target[keep])
        assert_same_function(model, other, X)


@problem
@given(data_sets(), st.sampled_from(KERNELS))
def test_swapping_the_labels_turns_the_sign(data, kernel):
    X, y, _, _ = data
    for model, other in ((SVC(kernel=kernel, tol=TOL), SVC(kernel=kernel, tol=TOL)),):
        assert_same_function(model.fit(X, y), other.fit(X, 1 - y), X, sign=-1.0)


@problem
@given(data_sets(), st.sampled_from(KERNELS), st.floats(0.1, 10.0))
def test_scaling_the_kernel_is_scaling_the_cost(data, kernel, c):
    X, y, target, _ = data
    scaled = SVC(kernel=c * kernel, C=1.0, tol=TOL).fit(X, y)
    costly = SVC(kernel=kernel, C=c, tol=TOL).fit(X, y)
    difference = scaled.decision_function(X) - costly.decision_function(X)
    assert np.ptp(difference) <= 1e-4 * (1 + np.abs(costly.decision_function(X)).max())
    scaled = SVR(kernel=c * kernel, C=1.0, tol=TOL).fit(X, target)
    costly = SVR(kernel=kernel, C=c, tol=TOL).fit(X, target)
    assert np.ptp(scaled.predict(X) - costly.predict(X)) <= 1e-4 * (1 + np.abs(target).max())


@problem
@given(data_sets(), st.floats(0.05, 0.9))
def test_nu_bounds_errors_and_support_vectors(data, share):
    X, y, _, _ = data
    feasible = 2 * min(np.bincount(y)) / len(y)
    model = NuSVC(kernel=RBF(gamma=0.7), nu=share * feasible, tol=TOL)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The only solution here is the trivial")
        model.fit(X, y)
    if model.certificate_.status == "trivial":
        return  # duplicates in both classes: the reduced hulls meet
    rho = model.nu * len(y) / np.abs(model.dual_coef_).sum()
    margin_errors = (model.slack_ > 1e-5 + TOL / rho).mean()
    assert margin_errors <= model.nu + 1e-9
    assert model.n_support_.sum() / len(y) >= model.nu - 1e-9


@problem
@given(data_sets(), st.sampled_from([RBF(gamma=3.0), Linear() + 1]))
def test_the_hard_margin_or_its_witness(data, kernel):
    from maxmargin import InseparableError

    X, y, _, _ = data
    try:
        model = SVC(kernel=kernel, C=np.inf, tol=1e-5).fit(X, y)
    except InseparableError as error:
        K = kernel(X)
        beta = np.zeros(len(X))
        for (rows, weights), sign in ((error.positive, 1), (error.negative, -1)):
            assert weights.sum() == pytest.approx(1.0)
            assert (weights > 0).all()
            assert (y[rows] == (sign > 0)).all()
            beta[rows] = sign * weights
        assert beta @ K @ beta <= 1e-10 * np.diag(K).max()
        return
    sign = np.where(y == 1, 1, -1)
    margins = sign * model.decision_function(X)
    assert margins.min() >= 1 - 1e-4
    assert (margins[model.support_] <= 1 + 1e-3).all()
    assert model.margin_ == pytest.approx(1 / np.sqrt(2 * model.certificate_.dual), rel=1e-3)
