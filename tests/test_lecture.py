"""The lecture's worked facts, as tests."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, make_blobs

from maxmargin import SVC, SVR
from maxmargin.kernels import RBF, Linear, Polynomial, exp, quadratic_features


def test_the_quadratic_kernel_is_the_inner_product_of_its_feature_map(random):
    X, Z = random.normal(size=(9, 2)), random.normal(size=(5, 2))
    x1, x2 = X.T
    np.testing.assert_allclose(
        quadratic_features(X), np.column_stack([x1**2, np.sqrt(2) * x1 * x2, x2**2])
    )
    np.testing.assert_allclose(quadratic_features(X) @ quadratic_features(Z).T, (X @ Z.T) ** 2)
    np.testing.assert_allclose(Linear().after(quadratic_features)(X, Z), Polynomial(2, 0.0)(X, Z))
    wide = random.normal(size=(6, 5))
    np.testing.assert_allclose(
        quadratic_features(wide) @ quadratic_features(wide).T, (wide @ wide.T) ** 2
    )


@pytest.mark.parametrize("sigma", [0.5, 1.0, 3.0])
def test_the_gaussian_is_valid_by_rules_16_and_14(sigma, random):
    """exp(-|x|^2 / 2s^2) exp(x.z / s^2) exp(-|z|^2 / 2s^2): exp of a kernel, then f(x) k f(z)."""
    X = random.normal(size=(20, 3))
    inside = exp(Linear() / sigma**2)
    built = inside.conformal(lambda P: np.exp(-(P**2).sum(axis=1) / (2 * sigma**2)))
    np.testing.assert_allclose(built(X), RBF(sigma=sigma)(X), rtol=1e-10)
    assert built.validity == RBF(sigma=sigma).validity == "valid"


def test_hard_margin_support_vectors_lie_on_the_margin_and_the_street_is_two_over_w():
    X, y = make_blobs(80, centers=2, random_state=1)
    model = SVC(kernel="linear", C=np.inf, tol=1e-8).fit(X, y)
    sign = np.where(y == 1, 1, -1)
    margins = sign * model.decision_function(X)
    np.testing.assert_allclose(margins[model.support_], 1.0, atol=1e-7)
    off = np.setdiff1d(np.arange(80), model.support_)
    assert (margins[off] >= 1 - 1e-7).all()
    w = model.coef_[0]
    across = X @ w / np.linalg.norm(w)
    street = across[y == 1].min() - across[y == 0].max()
    assert street == pytest.approx(2 / np.linalg.norm(w))
    assert 2 * model.margin_ == pytest.approx(street)
    # strong duality, and w'w = sum alpha
    assert np.abs(model.dual_coef_).sum() == pytest.approx(w @ w)
    assert model.certificate_.relative_gap < 1e-8


@pytest.mark.parametrize("lam", [1e-4, 1e-2, 1.0])
def test_the_lambda_form_without_bias(lam):
    """|alpha_i| <= 1 / (2 N lam), alpha_i y_i >= 0, and C = 1 / (2 N lam) is the same machine."""
    X, y = load_breast_cancer(return_X_y=True)
    X = (X[:200] - X[:200].mean(axis=0)) / X[:200].std(axis=0)
    y = np.where(y[:200] == 1, 1.0, -1.0)
    bound = 1 / (2 * 200 * lam)
    model = SVC(lam=lam, fit_intercept=False, gamma=0.05, tol=1e-8).fit(X, y)
    alpha = model.dual_coef_[0]
    assert np.abs(alpha).max() <= bound * (1 + 1e-12)
    assert (alpha * y[model.support_] >= 0).all()
    assert model.intercept_.tolist() == [0.0]
    same = SVC(C=bound, fit_intercept=False, gamma=0.05, tol=1e-8).fit(X, y)
    np.testing.assert_allclose(same.decision_function(X), model.decision_function(X), atol=1e-6)
    # the seed's objective: mean hinge loss + lam ||w||^2 is 2 lam times ours
    hinge = np.maximum(0, 1 - y * model.decision_function(X)).mean()
    risk = hinge + lam * model.margin_**-2
    assert 2 * lam * model.certificate_.primal == pytest.approx(risk, rel=1e-9)


def test_slack_says_where_a_point_is():
    X, y = make_blobs(200, centers=2, cluster_std=3.0, random_state=3)
    model = SVC(kernel="linear", C=1.0, tol=1e-8).fit(X, y)
    sign = np.where(y == 1, 1, -1)
    margins = sign * model.decision_function(X)
    np.testing.assert_allclose(model.slack_, np.maximum(0, 1 - margins), atol=1e-9)
    assert ((model.slack_ > 1) == (model.predict(X) != y)).all()
    alpha = np.zeros(200)
    alpha[model.support_] = np.abs(model.dual_coef_[0])
    assert (alpha[margins > 1 + 1e-6] == 0).all()
    assert (alpha[margins < 1 - 1e-6] == 1.0).all()
    # the bias is the mean of t_n - sum a_m t_m k(x_n, x_m) over 0 < a_n < C
    free = (alpha > 0) & (alpha < 1)
    residual = sign[free] - (X[free] @ model.coef_[0])
    assert model.intercept_[0] == pytest.approx(residual.mean())


def test_without_a_free_support_vector_the_bias_is_in_the_middle():
    """Four points, two on each side, so close that C binds them all: b is only bounded."""
    X = np.array([[-1.0], [-1.0], [1.0], [1.0]])
    model = SVC(kernel="linear", C=0.1).fit(X, [0, 0, 1, 1])
    assert np.abs(model.dual_coef_[0]).tolist() == [0.1] * 4
    assert model.intercept_[0] == pytest.approx(0.0)
    assert model.certificate_.converged


def test_support_vectors_of_regression_lie_on_or_outside_the_tube(random):
    X = np.linspace(0, 6, 80)[:, None]
    target = np.sin(X[:, 0]) + 0.1 * random.normal(size=80)
    model = SVR(gamma=0.5, C=2.0, epsilon=0.1, tol=1e-8).fit(X, target)
    residual = target - model.predict(X)
    inside = np.abs(residual) < 0.1 - 1e-6
    assert not np.isin(np.flatnonzero(inside), model.support_).any()
    signs = np.sign(model.dual_coef_[0])
    assert (signs == np.sign(residual[model.support_])).all()
    np.testing.assert_allclose(model.slack_, np.maximum(0, np.abs(residual) - 0.1), atol=1e-9)
    free = np.abs(model.dual_coef_[0]) < 2.0
    np.testing.assert_allclose(np.abs(residual[model.support_[free]]), 0.1, atol=1e-6)


def test_less_regularisation_never_widens_the_street_and_mostly_drops_support_vectors():
    X, y = make_blobs(60, centers=2, cluster_std=2.0, random_state=17)
    models = [SVC(C=C, kernel="linear", tol=1e-8).fit(X, y) for C in (1e-3, 1e-2, 0.0562, 0.1)]
    margins = [model.margin_ for model in models]
    assert margins == sorted(margins, reverse=True)
    assert all(model.certificate_.relative_gap < 1e-8 for model in models)
    *_, before, after = [len(model.support_) for model in models]
    assert (before, after) == (6, 7)  # document 003's remark on their number is no law
    assert np.abs(models[-1].dual_coef_).min() > 1e-3  # and it is not rounding


def test_a_fictional_one_in_every_example_is_not_a_bias():
    X, y = make_blobs(60, centers=[[3, 3], [6, 6]], random_state=6)
    free = SVC(kernel="linear", tol=1e-8).fit(X, y)
    punished = SVC(kernel=Linear() + 1, fit_intercept=False, tol=1e-8).fit(X, y)
    assert np.abs(free.decision_function(X) - punished.decision_function(X)).max() > 0.01
