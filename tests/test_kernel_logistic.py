"""Kernel logistic regression: its optimum, what certificates promise, nasty data, manners."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize_scalar
from scipy.special import expit
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression as Reference

from maxmargin import SVC, Gram, KernelLogisticRegression, LogisticRegression, Trace
from maxmargin.kernels import RBF, Linear, Polynomial, Spectrum
from maxmargin.multiclass import OneVsRest
from maxmargin.solvers import KernelNewton, Watch, select_solver
from maxmargin.solvers.logistic.likelihood import Likelihood
from maxmargin.solvers.logistic.problem import LogisticProblem

RANDOM = np.random.default_rng(0)
X3, Y3 = load_iris(return_X_y=True)
X3 = (X3 - X3.mean(axis=0)) / X3.std(axis=0)
X2, Y2 = load_breast_cancer(return_X_y=True)
X2, Y2 = ((X2 - X2.mean(axis=0)) / X2.std(axis=0))[:200], Y2[:200]
DATA = {"two": (X2, Y2), "several": (X3, Y3)}
SOLVERS = ["newton-cholesky", "newton-cg", KernelNewton(rank=5)]
WEIGHT = RANDOM.integers(0, 4, len(Y3)).astype(float)


def objective(model, X, y, K, weight=1.0):
    """The objective by its formula, from the attributes of a machine."""
    A, b = model.dual_coef_, model.intercept_
    F = K @ A.T + b
    index = np.searchsorted(model.classes_, y)
    F = np.column_stack([np.zeros(len(F)), F]) if F.shape[1] == 1 else F
    losses = np.logaddexp.reduce(F, axis=1) - F[np.arange(len(F)), index]
    return 0.5 * np.einsum("ki,ij,kj->", A, K, A) + model.C * np.sum(weight * losses)


def test_the_first_intercept_takes_few_steps(monkeypatch):
    """Halving steps below the loss's own rounding took 1.3 s for 20,000 rows."""
    asked = []
    loss = Likelihood.loss
    monkeypatch.setattr(Likelihood, "loss", lambda *args: asked.append(0) or loss(*args))
    label = np.random.default_rng(0).integers(0, 2, 20_001)
    problem = LogisticProblem(None, Likelihood(label, 2, np.ones(len(label))))
    b = problem.intercept(np.zeros((len(label), 1)), np.zeros(1))
    assert len(asked) < 10
    assert b[0] == pytest.approx(np.log(label.mean() / (1 - label.mean())), abs=1e-12)


# -- the optimum -------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", SOLVERS, ids=str)
@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize("C", [0.01, 1.0, 20.0])
def test_the_linear_kernel_is_logistic_regression(data, C, solver):
    X, y = DATA[data]
    model = KernelLogisticRegression(C, kernel="linear", solver=solver, tol=1e-9).fit(X, y)
    other = LogisticRegression(C=C, tol=1e-9, max_iter=1000).fit(X, y)
    assert model.certificate_.converged
    assert model.certificate_.primal == pytest.approx(other.certificate_.primal, rel=1e-8)
    np.testing.assert_allclose(model.predict_proba(X), other.predict_proba(X), atol=1e-3)
    theirs = Reference(C=C, tol=1e-8, max_iter=5000).fit(X, y).predict_proba(X)
    np.testing.assert_allclose(model.predict_proba(X), theirs, atol=1e-2)


@pytest.mark.parametrize("solver", SOLVERS, ids=str)
@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("tol", [1e-1, 1e-3, 1e-8])
def test_what_a_certificate_promises(data, solver, fit_intercept, tol):
    """Both objectives by their formulas, and no machine below the dual one."""
    (X, y), kernel = DATA[data], RBF(0.1)
    options = {"kernel": kernel, "C": 10.0, "fit_intercept": fit_intercept}
    model = KernelLogisticRegression(solver=solver, tol=tol, **options).fit(X, y)
    best = KernelLogisticRegression(tol=1e-10, **options).fit(X, y)
    K, certificate = kernel(X), model.certificate_
    assert certificate.converged
    assert certificate.relative_gap <= tol
    assert certificate.primal == pytest.approx(objective(model, X, y, K), rel=1e-9)
    least = objective(best, X, y, K)
    assert certificate.dual <= least + best.certificate_.gap + 1e-9 * least
    assert certificate.primal - certificate.gap <= least * (1 + 1e-9)
    assert certificate.gap >= (certificate.primal - least) * (1 - 1e-6) - certificate.rounding
    assert certificate.definiteness == "positive semidefinite by construction"
    assert fit_intercept or not model.intercept_.any()


def test_coefficients_are_what_the_true_class_lacks():
    """a_i = C s_i (t_i - p_i), none of them zero; the sum of each function's is."""
    model = KernelLogisticRegression(2.0, gamma=0.2, tol=1e-12).fit(X3, Y3, WEIGHT)
    lacks = np.eye(3)[Y3] - model.predict_proba(X3)
    np.testing.assert_allclose(model.dual_coef_.T, 2.0 * WEIGHT[:, None] * lacks, atol=1e-5)
    np.testing.assert_allclose(model.dual_coef_.sum(axis=1), 0.0, atol=1e-9)
    assert model.dual_coef_[:, WEIGHT > 0].all()
    assert not model.dual_coef_[:, WEIGHT == 0].any()
    assert set(model.support_) == set(np.flatnonzero(WEIGHT))
    sparse = SVC(C=2.0, gamma=0.2).fit(X3, Y3)
    assert len(sparse.support_) < len(Y3) / 2


def test_C_and_lam_contradict_each_other():
    with pytest.raises(ValueError, match="Give C or lam"):
        KernelLogisticRegression(2.0, lam=0.1).fit(X3, Y3)


def test_schemes():
    rest = KernelLogisticRegression(gamma=0.2, multiclass="ovr", tol=1e-9).fit(X3, Y3)
    for k in range(3):
        one = KernelLogisticRegression(gamma=0.2, tol=1e-9).fit(X3, k == Y3)
        np.testing.assert_allclose(
            rest.decision_function(X3)[:, k], one.decision_function(X3), atol=1e-3
        )
    assert len(rest.certificate_.parts) == 3
    pairs = KernelLogisticRegression(gamma=0.2, multiclass="ovo").fit(X3, Y3)
    assert pairs.dual_coef_.shape == (3, 150)
    assert not pairs.dual_coef_[0, Y3 == 2].any()
    graph = KernelLogisticRegression(gamma=0.2, multiclass="dag").fit(X3, Y3)
    assert (graph.predict(X3) == pairs.predict(X3)).mean() > 0.95
    own = KernelLogisticRegression(gamma=0.2, multiclass=OneVsRest(3, balanced=True), tol=1e-9)
    one = KernelLogisticRegression(gamma=0.2, class_weight="balanced", tol=1e-9).fit(X3, Y3 == 1)
    values = own.fit(X3, Y3).decision_function(X3)[:, 1]
    np.testing.assert_allclose(values, one.decision_function(X3), atol=1e-3)
    for model in (rest, pairs, graph, own):
        np.testing.assert_allclose(model.predict_proba(X3).sum(axis=1), 1.0)
        assert model.score(X3, Y3) > 0.9
    with pytest.raises(ValueError, match="multiclass='multinomial'"):
        KernelLogisticRegression(multiclass="crammer_singer").fit(X3, Y3)


# -- nasty data --------------------------------------------------------------------------------

LABELS = (RANDOM.random(80) < 0.4).astype(int)
POINTS = RANDOM.normal(size=(80, 3)) + LABELS[:, None]
NASTY = {
    "duplicates": (np.repeat(POINTS[:8], 10, axis=0), LABELS, 10.0),  # with both labels
    "all equal": (np.ones((80, 2)), LABELS, 1.0),
    "offset columns": (POINTS + np.array([1e5, 0.0, -1e4]), LABELS, 1.0),
    "separable": (POINTS + 20.0 * LABELS[:, None], LABELS, 1e8),
    "scales": (POINTS * [1e-4, 1.0, 1e4], LABELS, 1.0),
    "one of a class": (POINTS, (np.arange(80) == 7).astype(int), 1e3),
    "tiny cost": (POINTS, LABELS, 1e-8),
    "three, separable": (np.repeat(np.eye(3) * 30, 20, axis=0), np.repeat([0, 1, 2], 20), 1e6),
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("solver", ["newton-cholesky", "newton-cg"])
@pytest.mark.parametrize("name", NASTY)
def test_nasty_data(name, solver, kernel):
    X, y, C = NASTY[name]
    model = KernelLogisticRegression(C, kernel=kernel, solver=solver).fit(X, y)
    certificate, K = model.certificate_, model.kernel_(X)
    value = objective(model, X, y, K)
    assert abs(value - certificate.primal) <= certificate.rounding + 1e-9 * value
    assert certificate.converged or certificate.rounding > 1e-4 * certificate.primal
    if name == "all equal":  # nothing but the share of each class can be known
        np.testing.assert_allclose(model.predict_proba(X)[:, 1], y.mean(), atol=1e-6)


@pytest.mark.parametrize("C", [1e-3, 1.0, 1e4])
@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly"])
def test_equal_rows_without_an_intercept(kernel, C):
    """One value f for all rows, with ``|w|^2 = f^2 / K``: the least in one variable is known."""
    X, y = np.full((9, 2), 3.0), np.arange(9) < 7
    model = KernelLogisticRegression(C, kernel=kernel, gamma=0.1, fit_intercept=False).fit(X, y)
    k = model.kernel_(X[:1])[0, 0]

    def total(f):
        return 0.5 * f**2 / k + C * (7 * np.logaddexp(0, -f) + 2 * np.logaddexp(0, f))

    assert model.certificate_.converged
    assert model.certificate_.primal == pytest.approx(total(model.decision_function(X[:1])[0]))
    assert model.certificate_.primal == pytest.approx(minimize_scalar(total).fun, rel=1e-5)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("seed", [8, 0, 19])
def test_far_rows_leave_an_answer_better_than_none(seed):
    """Kernel values of 5e10 times what rounding left of sums that are zero were values of 1e5."""
    random = np.random.default_rng(seed)
    X = random.integers(-2, 3, (21, 4)).astype(float)
    X[:5] += 2.3e5 * random.choice([-1, 1], (5, 1))
    y = random.integers(3, size=21)
    y[:3] = range(3)
    kernel = RBF(1e-3) + Linear()
    model = KernelLogisticRegression(C=4e3, kernel=kernel, solver="newton-cg").fit(X, y)
    assert model.certificate_.primal < 4e3 * 21 * np.log(3)


def test_indefinite_kernels_are_refused():
    for kernel in (-1.0 * np.eye(80), np.diag([-0.1] + [1.0] * 79)):
        model = KernelLogisticRegression(kernel="precomputed")
        with pytest.raises(ValueError, match="indefinite on these data"):
            model.fit(kernel, LABELS)
    with pytest.raises(ValueError, match="indefinite on these data"):
        KernelLogisticRegression(kernel="sigmoid", gamma=5.0, coef0=-1.0).fit(POINTS, LABELS)
    X = RANDOM.normal(size=(1500, 2))  # beyond what is looked at before; the solver sees it
    K = RBF(1.0)(X)
    K[700, 700] = -50.0
    y = (X[:, 0] > 0).astype(int)
    for solver in ("newton-cholesky", "newton-cg"):
        with pytest.raises(ValueError, match="indefinite on these data"):
            KernelLogisticRegression(10.0, kernel="precomputed", solver=solver).fit(K, y)


def test_rounding_is_no_indefinite_kernel():
    options = {"solver": "newton-cholesky"}
    for kernel in ("linear", lambda a, b: a @ b.T):
        with pytest.raises(ValueError, match="Centre the data and scale them") as caught:
            KernelLogisticRegression(kernel=kernel, **options).fit(POINTS + 1e10, LABELS)
        assert "indefinite" not in str(caught.value)
    with pytest.raises(ValueError, match="Centre the data and scale them"):
        KernelLogisticRegression(kernel="poly", degree=2, coef0=1.0, gamma=1.0, **options).fit(
            POINTS + 1e6, LABELS
        )


@pytest.mark.parametrize("solver", ["newton-cholesky", "newton-cg"])
@pytest.mark.filterwarnings("error")
def test_numbers_that_overflow_are_refused(solver):
    few, three = RANDOM.normal(size=(5, 2)), np.arange(5) % 3
    for options, factor, said in (
        ({}, 1e200, "variance of these data is infinity"),
        ({"kernel": "linear"}, 1e200, "returned infinity"),
        ({"kernel": "linear"}, 5e153, "sums of them are infinite"),
    ):
        model = KernelLogisticRegression(solver=solver, **options)
        for points in (few, sp.csr_array(few)):
            with pytest.raises(ValueError, match=said):
                model.fit(points * factor / np.abs(few).max(), three)
    far = KernelLogisticRegression(gamma=1.0, solver=solver).fit(few * 1e200, three)
    np.testing.assert_allclose(far.kernel_(few * 1e200), np.eye(5))
    assert far.certificate_.converged


def test_rounding_is_part_of_what_is_claimed():
    """Values of 1e12 are known to 1e-4 at best: the gap may be zero, and says nothing."""
    machine = KernelLogisticRegression(kernel="poly", degree=2, coef0=1, gamma=1.0)
    with pytest.warns(ConvergenceWarning):
        judged = machine.fit(X3[:, :2] + 1e3, Y3 == 0).certificate_
    assert judged.status == "stalled"
    assert judged.relative_gap * judged.primal >= judged.gap + 0.99 * judged.rounding


def test_infinite_cost_is_refused():
    with pytest.raises(ValueError, match="finite C"):
        KernelLogisticRegression(np.inf).fit(X3, Y3)


def test_the_likelihood_keeps_its_digits():
    """Far out, where one minus a probability is one, losses and slopes are still right."""
    for n_classes, F in ((2, np.array([[50.0]])), (3, np.array([[-25.0, 25.0, -30.0]]))):
        sure = Likelihood(np.array([1]), n_classes, np.ones(1))
        assert sure.loss(F) == pytest.approx(np.exp(-50.0), rel=1e-2)
        assert np.abs(sure.beta(F)).max() == pytest.approx(np.exp(-50.0), rel=1e-2)
        wrong = Likelihood(np.array([0]), n_classes, np.ones(1))
        assert wrong.loss(F) == pytest.approx(50.0)


# -- manners -----------------------------------------------------------------------------------


def test_every_kind_of_data():
    options = {"gamma": 0.2, "tol": 1e-9}
    P = KernelLogisticRegression(**options).fit(X3, Y3).predict_proba(X3)
    K = RBF(0.2)(X3)
    given = KernelLogisticRegression(kernel="precomputed", tol=1e-9).fit(K, Y3)
    called = KernelLogisticRegression(kernel=lambda a, b: RBF(0.2)(a, b), tol=1e-9).fit(X3, Y3)
    tiles = KernelLogisticRegression(cache_size=0.05, solver="newton-cg", **options).fit(X3, Y3)
    for other, points in ((given, K), (called, X3), (tiles, X3)):
        np.testing.assert_allclose(other.predict_proba(points), P, atol=1e-4)
    with pytest.raises(ValueError, match="newton-cg"):
        KernelLogisticRegression(cache_size=0.05, solver="newton-cholesky").fit(X3, Y3)
    words = ["".join(word) for word in RANDOM.choice(list("ACGT"), size=(40, 9))]
    ends = ["GATTACA" in word + word or word.count("A") > 2 for word in words]
    strings = KernelLogisticRegression(10.0, kernel=Spectrum(2)).fit(words, ends)
    assert strings.certificate_.converged


def test_two_classes_are_odds():
    model = KernelLogisticRegression(gamma=0.1).fit(X2, Y2)
    values, P = model.decision_function(X2), model.predict_proba(X2)
    np.testing.assert_allclose(P[:, 1], expit(values))
    np.testing.assert_allclose(model.predict_log_proba(X2), np.log(P))
    np.testing.assert_array_equal(model.predict(X2), model.classes_[(values > 0).astype(int)])


def test_warm_start():
    model = KernelLogisticRegression(100.0, gamma=0.1, warm_start=True).fit(X2, Y2)
    first, before = model.n_iter_, model.certificate_.primal
    assert model.fit(X2, Y2).n_iter_ <= 1 < first
    assert model.certificate_.primal <= before * (1 + 1e-12)
    assert model.fit(X3, Y3).certificate_.converged  # of another shape: from zero


def test_a_time_limit_before_the_first_step_is_named():
    with pytest.warns(ConvergenceWarning, match=r"(?s)time_limit.*No step was completed"):
        KernelLogisticRegression(C=100.0, gamma=0.1, tol=1e-10, time_limit=1e-9).fit(X2, Y2)


def test_seen_at_work(capsys):
    trace = Trace()
    model = KernelLogisticRegression(gamma=0.1, callback=trace, verbose=True).fit(X2, Y2)
    objective, dual = trace.curve("objective"), trace.curve("dual")
    assert len(objective) >= model.n_iter_
    assert objective[-1] < objective[0]
    assert (dual <= objective.min() * (1 + 1e-9)).all()
    assert "converged" in "".join(capsys.readouterr())


def test_which_method():
    model = KernelLogisticRegression(solver=KernelNewton(rank=17)).fit(X2, Y2)
    assert "rank 17" in str(model.certificate_)
    for n, factorised in ((500, True), (501, False)):
        likelihood = Likelihood(np.arange(n) % 2, 2, np.ones(n))
        problem = LogisticProblem(Gram.of(np.ones((n, 1)), RBF(1.0)), likelihood)
        assert select_solver(problem).method.factorised == factorised


def test_probabilities_sum_to_one_for_large_values():
    """Values of 1e4 left the sums 5e-12 away from one."""
    X = np.array([[-1.0], [0.0], [1.0]])
    for model in (KernelLogisticRegression(kernel="linear"), LogisticRegression()):
        model.fit(X, [0, 1, 2])
        p = model.predict_proba(X * 1e6)
        assert np.abs(p.sum(axis=1) - 1.0).max() < 1e-15 * 8
        assert (model.predict_log_proba(X * 1e6) <= 0.0).all()


@pytest.mark.parametrize("model", [KernelLogisticRegression(), LogisticRegression()])
def test_probabilities_where_no_class_is_likely(model):
    """All of a row's underflowed before they were scaled to a sum of one: NaN."""
    model = clone(model).set_params(multiclass="ovr").fit(X3, Y3)
    model.intercept_ = model.intercept_ - 1e4
    p = model.predict_proba(X3)
    np.testing.assert_allclose(p.sum(axis=1), 1.0, atol=1e-14)
    np.testing.assert_array_equal(model.classes_[p.argmax(axis=1)], model.predict(X3))


@pytest.mark.parametrize("seed", [7, 4])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_no_answer_is_worse_than_no_model(seed):
    """Kernel values of 1e52 left objectives of 14 and 1e14, and zero weights have 13."""
    random = np.random.default_rng(seed)
    X = 1e6 + random.normal(size=(19, 1)) * (random.random((19, 1)) < 0.3)
    y = random.permutation(np.arange(19) % 2)
    kernel = Polynomial(degree=4, gamma=5.0)
    model = KernelLogisticRegression(kernel=kernel, solver="newton-cg").fit(X, y)
    assert not model.certificate_.converged
    assert 0.0 <= model.certificate_.primal <= 19 * np.log(2.0)


def test_no_step_to_a_negative_square():
    """A kernel's rounding made them: an objective below zero, which looked converged."""
    problem = LogisticProblem(Gram.of(X2, RBF(0.1)), Likelihood(Y2, 2, np.ones(len(Y2))))
    run = KernelNewton().begin(problem, Watch(tol=1e-4))
    run._descend(np.ones((len(X2), 1)), -np.ones((len(X2), 1)), slope=-1.0)
    assert np.vdot(run.A, run.KA) >= -1e-12 * run.primal
