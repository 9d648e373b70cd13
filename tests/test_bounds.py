"""Bounds: they hold, they are worth something, and they refuse what their theorems do not cover."""

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.svm
from sklearn.base import clone
from sklearn.datasets import load_iris, make_blobs
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.linear_model import LogisticRegression

from maxmargin import SVC, SVR, NuSVC
from maxmargin.bounds import (
    kernel_margin_bound,
    leave_one_out,
    margin_bound,
    mistake_bound,
    radius_margin,
    xi_alpha,
)
from maxmargin.kernels import RBF, Linear, Polynomial

OVERLAPPING = make_blobs([16, 20], 2, centers=[[0, 0], [2, 1]], random_state=0)
SEPARABLE = make_blobs(36, centers=[[0, 0], [6, 3]], random_state=1)
THREE = make_blobs(36, centers=[[0, 0], [3, 1], [0, 3]], random_state=2)


def true_leave_one_out(model, X, y):
    """Share of rows that the machine without them gets wrong, nothing else being changed."""
    cost = {} if model.lam is None else {"lam": None, "C": 1 / (2 * len(X) * model.lam)}
    one_less = clone(model).set_params(kernel=model.kernel_, **cost)
    rows = np.arange(len(X))
    wrong = [one_less.fit(X[rows != i], y[rows != i]).predict(X[[i]])[0] != y[i] for i in rows]
    return np.mean(wrong)


# -- leave-one-out ---------------------------------------------------------------------------------


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("kernel", [Linear(), RBF(gamma=0.5), RBF(gamma=8.0)], ids=repr)
@pytest.mark.parametrize("C", [0.35, 1.0, 100.0])
def test_soft_margin_bounds_are_above_the_true_leave_one_out_error(C, kernel, intercept):
    X, y = OVERLAPPING
    model = SVC(C=C, kernel=kernel, fit_intercept=intercept, tol=1e-6).fit(X, y)
    truth, few, many = true_leave_one_out(model, X, y), xi_alpha(model, X), leave_one_out(model)
    assert truth <= few.value <= many.value == len(model.support_) / len(X)
    alpha = np.zeros(len(X))
    alpha[model.support_] = np.abs(model.dual_coef_[0])
    K = model.kernel_(X)
    reach = (np.diag(K)[:, None] + np.diag(K) - 2 * K).max(axis=0) if intercept else np.diag(K)
    least = 1 - 2 * model.certificate_.kkt_violation - 1e-9
    counted = (alpha * reach + model.slack_ >= least) & (alpha > 0)
    assert few.value == counted.mean()


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("kernel", [Linear(), RBF(gamma=0.1), Polynomial(2)], ids=repr)
def test_hard_margin_bounds_are_above_the_true_leave_one_out_error(kernel, intercept):
    X, y = SEPARABLE
    X = X if intercept else X - X.mean(axis=0)
    model = SVC(C=np.inf, kernel=kernel, fit_intercept=intercept, tol=1e-8).fit(X, y)
    truth = true_leave_one_out(model, X, y)
    few, radius = xi_alpha(model, X), radius_margin(model, X)
    assert truth <= few.value <= min(radius.value, leave_one_out(model).value)
    K = model.kernel_(X)
    squared = np.diag(K)[:, None] + np.diag(K) - 2 * K if intercept else np.diag(K)
    assert radius.value == pytest.approx(squared.max() / model.margin_**2 / len(X), rel=1e-6)


def test_the_diameter_is_never_worse_than_twice_the_radius():
    """On the corners of a square D = 2 R; on those of an equilateral triangle D = sqrt(3) R."""
    angles = np.array([0, 2, 4]) * np.pi / 3
    X = np.column_stack([np.cos(angles), np.sin(angles)])
    model = SVC(C=np.inf, kernel="linear").fit(X, [0, 0, 1])
    assert radius_margin(model, X).value * 3 * model.margin_**2 == pytest.approx(3.0)


@pytest.mark.parametrize("C", [1.0, np.inf])
def test_several_classes_count_a_row_that_matters_to_any_pair(C):
    X, y = THREE
    model = SVC(C=C, kernel=RBF(gamma=1.0), tol=1e-8).fit(X, y)
    truth = true_leave_one_out(model, X, y)
    assert truth <= xi_alpha(model, X).value <= leave_one_out(model).value < 1
    if np.isinf(C):
        pairs = [np.isin(y, pair) for pair in ([0, 1], [0, 2], [1, 2])]
        alone = [clone(model).fit(X[own], y[own]) for own in pairs]
        errors = sum(
            radius_margin(one, X[own]).value * own.sum()
            for one, own in zip(alone, pairs, strict=True)
        )
        assert truth <= radius_margin(model, X).value == pytest.approx(errors / len(X), rel=1e-6)


def test_lam_and_sparse_and_precomputed_data_give_the_same_bounds():
    X, y = OVERLAPPING
    model = SVC(C=2.0, kernel=RBF(gamma=0.5), tol=1e-8).fit(X, y)
    expected = xi_alpha(model, X).value, leave_one_out(model).value
    lam = SVC(lam=1 / (2 * len(X) * 2.0), kernel=RBF(gamma=0.5), tol=1e-8).fit(X, y)
    assert (xi_alpha(lam, X).value, leave_one_out(lam).value) == expected
    sparse = SVC(C=2.0, kernel=RBF(gamma=0.5), tol=1e-8).fit(sp.csr_array(X), y)
    assert (xi_alpha(sparse, sp.csr_array(X)).value, leave_one_out(sparse).value) == expected
    K = RBF(gamma=0.5)(X)
    given = SVC(C=2.0, kernel="precomputed", tol=1e-8).fit(K, y)
    bound = xi_alpha(given, K)
    assert (bound.value, leave_one_out(given).value) == expected


def test_leave_one_out_refuses_what_its_theorem_does_not_cover():
    X, y = OVERLAPPING
    with pytest.raises(NotFittedError):
        leave_one_out(SVC())
    with pytest.raises(ValueError, match="no classifier"):
        leave_one_out(SVR().fit(X, y))
    for other in (NuSVC(nu=0.4), sklearn.svm.SVC()):
        with pytest.raises(ValueError, match="maxmargin's SVC"):
            leave_one_out(other.fit(X, y))
    with pytest.warns(ConvergenceWarning):
        stopped = SVC(C=1e3, max_iter=2).fit(X, y)
    with pytest.raises(ValueError, match=r"not converged \(max_iter\)"):
        leave_one_out(stopped)
    negative = pytest.warns(UserWarning, match="is negative at the answer")
    with pytest.raises(ValueError, match="indefinite"), negative:
        leave_one_out(SVC(kernel="sigmoid", gamma=1.0, coef0=-2.0).fit(X, y))
    for weight in (2.0, 0.3, 0.0):
        weights = np.where(np.arange(len(y)) % 2, weight, 1.0)
        with pytest.raises(ValueError, match="sample weights"):
            leave_one_out(SVC(kernel="linear", tol=1e-6).fit(X, y, sample_weight=weights))
    with pytest.raises(ValueError, match="lam and class weights"):
        leave_one_out(SVC(lam=0.01, class_weight="balanced").fit(X[:-3], y[:-3]))


def test_an_intercept_that_is_only_bounded_is_refused_for_a_reason():
    """Equal rows, one class larger by one: without one of its rows the vote is tied."""
    X, y = np.zeros((5, 1)), np.array([1, 1, 1, 0, 0])
    model = SVC(kernel="linear", C=1.0).fit(X, y)
    assert len(model.support_) == 4
    assert true_leave_one_out(model, X, y) == 1.0
    for bound in (leave_one_out, lambda model: xi_alpha(model, X)):
        with pytest.raises(ValueError, match="no free support vector"):
            bound(model)


def test_xi_alpha_counts_rows_without_which_no_support_vector_is_free():
    """With a small C and one row more in a class, leaving that row out leaves no free one."""
    X, y = np.arange(7.0)[:, None], np.array([0, 1, 0, 1, 0, 1, 0])
    model = SVC(C=0.05, kernel=RBF(gamma=0.5), tol=1e-8).fit(X, y)
    assert true_leave_one_out(model, X, y) <= xi_alpha(model, X).value
    counted = np.abs(model.dual_coef_[0]) * 2 + model.slack_[model.support_] >= 1
    assert true_leave_one_out(model, X, y) > counted.sum() / 7  # what Joachims's condition is for


@pytest.mark.parametrize("C", [0.06, 0.122, 0.4, 1.0])
def test_xi_alpha_is_above_the_true_error_for_small_costs(C):
    for seed in range(6):
        X, y = np.random.default_rng(seed).normal(size=(15, 2)), np.arange(15) % 2
        model = SVC(C=C, kernel=RBF(gamma=5.96), tol=1e-8).fit(X, y)
        assert true_leave_one_out(model, X, y) <= xi_alpha(model, X).value


def test_xi_alpha_with_intercept_refuses_unequal_costs_and_without_takes_them():
    X, y = OVERLAPPING
    options = {"kernel": RBF(gamma=0.5), "class_weight": {0: 1.0, 1: 4.0}, "tol": 1e-8}
    with pytest.raises(ValueError, match="equal cost"):
        xi_alpha(SVC(**options).fit(X, y), X)
    free = SVC(fit_intercept=False, **options).fit(X, y)
    assert true_leave_one_out(free, X, y) <= xi_alpha(free, X).value < leave_one_out(free).value


@pytest.mark.parametrize("bound", [xi_alpha, radius_margin])
def test_other_rows_than_the_training_rows_are_refused(bound):
    X, y = SEPARABLE
    model = SVC(C=np.inf, kernel="linear").fit(X, y)
    with pytest.raises(ValueError, match="36 rows"):
        bound(model, X[:-1])
    for other in (X[::-1], X + 0.1):
        with pytest.raises(ValueError, match="fitted to"):
            bound(model, other)


def test_radius_margin_refuses_slack():
    X, y = SEPARABLE
    with pytest.raises(ValueError, match="hard margin"):
        radius_margin(SVC(C=1e6, kernel="linear").fit(X, y), X)


# -- margins ---------------------------------------------------------------------------------------


def stumps(X):
    """Every feature's sign and its opposite: twice as many base classifiers as features."""
    return np.sign(np.hstack([X, -X]))


def test_the_margin_bound_of_a_vote_holds_and_is_not_vacuous(random):
    """A vote that is fitted to the sample; its true error is known from a far larger one."""
    n_features, m = 10, 20_000
    held = []
    for _ in range(20):
        X = random.normal(size=(m + 50_000, n_features))
        y = np.where(X[:, :3].sum(axis=1) + 0.3 * random.normal(size=len(X)) > 0, 1.0, -1.0)
        votes = stumps(X) * y[:, None]
        weights = np.maximum(votes[:m].mean(axis=0), 0.0)
        margins = votes @ (weights / weights.sum())
        bound = margin_bound(margins[:m], n_base=2 * n_features, confidence=0.9)
        held.append((margins[m:] <= 0).mean() <= bound.value)
        assert not bound.vacuous
        assert bound.value >= margin_bound(margins[:m], n_base=20, theta=bound.theta).value - 0.01
    assert np.mean(held) >= 0.9


def test_the_margin_bound_is_the_formula():
    m, margins = 400, np.tile([0.2, 0.9], 200)
    by_size = margin_bound(margins, n_base=50, theta=0.5, confidence=0.99)
    ramp = (1 - 0.2 / 0.5) / 2
    deviation = np.sqrt(np.log(100) / (2 * m))
    assert by_size.value == pytest.approx(ramp + 4 * np.sqrt(2 * np.log(50) / m) + deviation)
    by_dim = margin_bound(margins, vc_dim=3, theta=0.5, confidence=0.99)
    growth = np.sqrt(2 * 3 * np.log(np.e * m / 3) / m)
    assert by_dim.value == pytest.approx(ramp + 4 * growth + deviation)
    assert by_dim.vacuous
    assert "vacuous" in str(by_dim)
    best = margin_bound(margins, n_base=50)  # pays for having chosen theta
    assert best.value > margin_bound(margins, n_base=50, theta=best.theta).value
    assert margin_bound(-margins, n_base=2).value > 1


@pytest.mark.parametrize("intercept", [True, False])
def test_the_margin_bound_of_a_machine_holds_and_is_not_vacuous(intercept, random):
    centres = random.choice([-1.0, 1.0], size=60_000)
    X = 0.4 * random.normal(size=(60_000, 2)) + centres[:, None]
    y = np.where(centres > 0, "far", "near")
    for start in range(0, 20_000, 4000):
        sample = slice(start, start + 4000)
        model = SVC(lam=0.05, kernel="linear", fit_intercept=intercept).fit(X[sample], y[sample])
        bound = kernel_margin_bound(model, X[sample], y[sample], confidence=0.9)
        assert 1 - model.score(X[20_000:], y[20_000:]) <= bound.value < 1


def test_a_linear_machine_has_the_margin_bound_of_the_linear_kernel():
    X, y = SEPARABLE
    svc = SVC(kernel="linear").fit(X, y)
    linear = LogisticRegression().fit(X, y)
    linear.coef_, linear.intercept_ = svc.coef_, svc.intercept_
    bounds = [kernel_margin_bound(model, X, y, theta=0.5).value for model in (svc, linear)]
    assert bounds[0] == pytest.approx(bounds[1])
    norm = np.sqrt((svc.coef_**2).sum() + svc.intercept_[0] ** 2)
    margins = np.where(y == 1, 1, -1) * svc.decision_function(X) / norm
    terms = (
        np.clip(1 - margins / 0.5, 0, 1).mean(),
        2 / 0.5 * np.sqrt((X**2).sum() + 36) / 36,
        3 * np.sqrt(np.log(2 / 0.05) / 72),
    )
    assert bounds[0] == pytest.approx(sum(terms))


def test_margin_bounds_refuse_what_their_theorems_do_not_cover():
    half = np.full(10, 0.5)
    for confidence in (0.0, 1.0, 95):
        with pytest.raises(ValueError, match="confidence"):
            margin_bound(half, n_base=2, confidence=confidence)
    for theta in (0.0, -1.0, 1.5):
        with pytest.raises(ValueError, match="theta"):
            margin_bound(half, n_base=2, theta=theta)
    with pytest.raises(ValueError, match="between -1"):
        margin_bound(4 * half, n_base=2)
    for wrong in ({}, {"n_base": 2, "vc_dim": 2}):
        with pytest.raises(ValueError, match="n_base or vc_dim"):
            margin_bound(half, **wrong)
    with pytest.raises(ValueError, match="at most the number of rows"):
        margin_bound(half, vc_dim=11)
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match="two classes"):
        kernel_margin_bound(SVC().fit(X, y), X, y)
    X, y = OVERLAPPING
    negative = pytest.warns(UserWarning, match="is negative at the answer")
    with pytest.raises(ValueError, match="indefinite"), negative:
        kernel_margin_bound(SVC(kernel="sigmoid", gamma=1.0, coef0=-2.0).fit(X, y), X, y)
    with pytest.raises(ValueError, match="no classifier"):
        kernel_margin_bound(SVR().fit(X, y), X, y)
    with pytest.raises(ValueError, match="labels"):
        kernel_margin_bound(SVC().fit(X, y), X, y + 1)
    given = SVC(kernel="precomputed").fit(X @ X.T, y)
    with pytest.raises(ValueError, match="square"):
        kernel_margin_bound(given, (X @ X.T)[:5], y[:5])


# -- mistakes --------------------------------------------------------------------------------------


def mistakes(X, y, start, step, order):
    """Run the perceptron until it makes no mistake; returns how many it made."""
    Z = np.column_stack([X, np.ones(len(X))])
    v, made = np.array(start, dtype=float), 0
    while True:
        before = made
        for i in order:
            if y[i] * (Z[i] @ v) <= 0:
                v += step * y[i] * Z[i]
                made += 1
        if made == before:
            return made


@pytest.mark.parametrize("step", [1.0, 0.1])
@pytest.mark.parametrize("start", [[0, 0, 0], [3, -2, 5], [-20, 0, 1], [3, 1.5, -7]])
def test_the_perceptron_makes_no_more_mistakes_than_novikoff_says(start, step, random):
    X, y = SEPARABLE
    sign = np.where(y == 1, 1, -1)
    best = SVC(kernel="linear", C=np.inf, tol=1e-8).fit(X, y)
    w, b = best.coef_[0], best.intercept_[0]
    bound = mistake_bound(X, y, w, b, start=(start[:2], start[2]), step=step).value
    for _ in range(5):
        assert mistakes(X, sign, start, step, random.permutation(len(X))) <= bound
    # seed 000's bound, with a = beta^2 / gamma, is the best only from zero
    beta2 = (X**2).sum(axis=1).max() + 1
    gamma = (sign * (X @ w + b)).min()
    v, first = np.append(w, b), np.array(start) / step
    lecture = ((first - beta2 / gamma * v) ** 2).sum() / beta2
    tries = np.geomspace(1e-6, 1e6, 100_001) + beta2 / (2 * gamma)
    squares = ((first[:, None] - tries * v[:, None]) ** 2).sum(axis=0)
    least = (squares / (2 * tries * gamma - beta2)).min()
    assert bound <= lecture + 1e-6
    assert bound == np.floor(least) or bound == pytest.approx(least, rel=1e-6)
    if not any(start):
        assert bound == np.floor(beta2 * (v @ v) / gamma**2)
        assert bound == mistake_bound(sp.csr_array(X), y, 7 * w, 7 * b).value  # of any length


def test_without_intercept_the_bound_is_in_the_rows_own_space():
    X, y = np.array([[-1.0, 0.0], [2.0, 0.0]]), [0, 1]
    assert mistake_bound(X, y, [1.0, 0.0], None).value == 4.0
    assert mistake_bound(X, y, [1.0, 0.0], None, start=([5.0, 0.0], 0.0)).value == 0.0


def test_mistake_bound_refuses_what_its_theorem_does_not_cover():
    X, y = SEPARABLE
    with pytest.raises(ValueError, match="wrong side"):
        mistake_bound(X, y, [1.0, 0.0], -100.0)
    with pytest.raises(ValueError, match="two classes"):
        mistake_bound(*THREE, [1.0, 0.0], 0.0)
    with pytest.raises(ValueError, match="step"):
        mistake_bound(X, y, [1.0, 0.5], -4.0, step=0.0)
    with pytest.raises(ValueError, match="features"):
        mistake_bound(X, y, [1.0, 0.5], -4.0, start=([1.0], 0.0))
    with pytest.raises(ValueError, match="b is None"):
        mistake_bound(X - 3, y, [1.0, 0.5], None, start=([1.0, 1.0], 2.0))


def test_a_bound_says_what_it_is():
    X, y = OVERLAPPING
    text = str(leave_one_out(SVC(kernel="linear").fit(X, y)))
    assert text.startswith("The leave-one-out error is at most 0.")
    assert "Vapnik 1998" in text
    assert "expectation" in text
    assert str(margin_bound([0.5] * 9, n_base=2, theta=0.5)).startswith(
        "With probability 0.95, the "
    )
