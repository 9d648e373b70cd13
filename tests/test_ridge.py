"""Ridge regression: the lecture's formulas, scikit-learn's machines, what certificates promise."""

import re
import signal
import warnings
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_diabetes
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_ridge import KernelRidge as Reference
from sklearn.linear_model import Ridge as LinearReference
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import GridSearchCV, LeaveOneOut, cross_val_predict
from sklearn.utils.estimator_checks import parametrize_with_checks

import maxmargin
from maxmargin import Gram, KernelRidge, KernelRidgeCV, Ridge, Trace, check_valid
from maxmargin.backends.dense import BandReduction, BlockCholesky, NotPositiveError
from maxmargin.backends.threads import Workers
from maxmargin.kernels import RBF, Linear, Sigmoid
from maxmargin.progress import Monitor
from maxmargin.solution import Status
from maxmargin.solvers import Cholesky, PreconditionedCG, select_solver
from maxmargin.solvers.ridge.problem import RidgeProblem

X, y = load_diabetes(return_X_y=True)
X, y = X / X.std(axis=0), (y - y.mean()) / y.std()
RANDOM = np.random.default_rng(0)
T = np.column_stack([y, RANDOM.normal(size=len(y)), X[:, 0] ** 2])
WEIGHT = RANDOM.integers(0, 4, len(y)).astype(float)
GAMMA = 0.03
SOLVERS = ["cholesky", "cg"]


def machine(alpha=0.1, **options):
    return KernelRidge(alpha, kernel="rbf", gamma=GAMMA, **options)


def gram(points=X):
    return RBF(GAMMA)(points)


# -- the formulas ------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", SOLVERS)
def test_the_lectures_formulas(solver):
    """a = (K + lambda I)^-1 t, a_n = -(w . phi_n - t_n) / lambda, y(x) = k(x)' a, J(a)."""
    alpha, K = 0.3, gram()
    model = machine(alpha, solver=solver, tol=1e-10).fit(X, y)
    a = model.dual_coef_
    np.testing.assert_allclose(a, np.linalg.solve(K + alpha * np.eye(len(K)), y), atol=1e-8)
    np.testing.assert_allclose(a, -(model.predict(X) - y) / alpha, atol=1e-8)
    new = X[:7] + 0.1
    np.testing.assert_allclose(model.predict(new), RBF(GAMMA)(new, X) @ a, atol=1e-10)
    J = a @ K @ K @ a / 2 - a @ K @ y + y @ y / 2 + alpha / 2 * a @ K @ a
    assert model.certificate_.objective == pytest.approx(J, rel=1e-9)


def test_the_dual_is_the_primal():
    """With a linear kernel, w = X'a is the ridge solution (X'X + lambda I)^-1 X't."""
    w = np.linalg.solve(X.T @ X + 2.0 * np.eye(X.shape[1]), X.T @ y)
    np.testing.assert_allclose(X.T @ KernelRidge(2.0).fit(X, y).dual_coef_, w, atol=1e-10)


KERNELS = {
    "linear": {},
    "rbf": {},
    "poly": {"gamma": 0.2, "degree": 2, "coef0": 0.5},
    "sigmoid": {"gamma": 1e-3, "coef0": 0.1},
}


@pytest.mark.parametrize("kernel", KERNELS)
def test_as_scikit_learn(kernel):
    options = {"alpha": 0.7, "kernel": kernel, **KERNELS[kernel]}
    ours, theirs = KernelRidge(**options), Reference(**options)
    for weight in (None, WEIGHT + 0.5):
        ours.fit(X, T, sample_weight=weight), theirs.fit(X, T, sample_weight=weight)
        np.testing.assert_allclose(ours.predict(X[:9]), theirs.predict(X[:9]), atol=1e-8)
        np.testing.assert_allclose(ours.dual_coef_, theirs.dual_coef_, atol=1e-7)
    assert ours.certificate_.converged


def test_alpha_of_each_output():
    alphas = [0.1, 2.0, 0.1]
    model = machine(alphas).fit(X, T)
    np.testing.assert_allclose(
        model.dual_coef_,
        Reference(alphas, kernel="rbf", gamma=GAMMA).fit(X, T).dual_coef_,
        atol=1e-8,
    )
    assert len(model.certificate_.parts) == 3
    with pytest.raises(ValueError, match="one for each of the 3 outputs"):
        machine([1.0, 2.0]).fit(X, T)


@pytest.mark.parametrize("solver", SOLVERS)
def test_weights_are_repetitions(solver):
    repeated = np.repeat(np.arange(len(y)), WEIGHT.astype(int))
    options = {"solver": solver, "tol": 1e-10}
    weighted = machine(**options).fit(X, T, sample_weight=WEIGHT)
    written = machine(**options).fit(X[repeated], T[repeated])
    np.testing.assert_allclose(weighted.predict(X), written.predict(X), atol=1e-7)
    assert weighted.certificate_.objective == pytest.approx(written.certificate_.objective)
    assert not weighted.dual_coef_[WEIGHT == 0].any()


@pytest.mark.parametrize("solver", SOLVERS)
def test_every_kind_of_data(solver):
    options = {"solver": solver, "tol": 1e-10}
    values = machine(**options).fit(X, y).predict(X)
    sparse = machine(**options).fit(sp.csr_array(X), y).predict(sp.csr_array(X))
    given = KernelRidge(0.1, kernel="precomputed", **options).fit(gram(), y).predict(gram())
    called = KernelRidge(0.1, kernel=lambda a, b: RBF(GAMMA)(a, b), **options).fit(X, y).predict(X)
    for other in (sparse, given, called):
        np.testing.assert_allclose(other, values, atol=1e-7)


# -- certificates ------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", ["cholesky", "cg", PreconditionedCG(rank=0)], ids=str)
@pytest.mark.parametrize("tol", [1e-1, 1e-3, 1e-9])
def test_what_a_certificate_bounds(solver, tol):
    """Against the exact solution: objective, coefficients, w, values there and elsewhere."""
    alpha, K, s = 0.02, gram(), WEIGHT + 0.25
    model = machine(alpha, solver=solver, tol=tol).fit(X, T, sample_weight=s)
    exact = np.linalg.solve(K + alpha * np.diag(1 / s), T)
    for k, part in enumerate(model.certificate_.parts):
        a, t, e = model.dual_coef_[:, k], T[:, k], model.dual_coef_[:, k] - exact[:, k]

        def J(a, t=t):
            return s @ (K @ a - t) ** 2 / 2 + alpha / 2 * a @ K @ a

        assert part.converged
        assert part.residual <= tol
        assert part.objective == pytest.approx(J(a), rel=1e-9)
        assert J(a) - J(exact[:, k]) <= part.gap + part.rounding + 1e-12 * J(a)  # of J's own sums
        assert np.linalg.norm(e) <= part.coefficient_error
        assert (e @ K @ e) ** 0.5 <= part.norm_error
        assert s @ (K @ e) ** 2 <= part.residual**2 * (s @ t**2) + 2 * part.rounding
        new = RBF(GAMMA)(X[:20] + 0.3, X) @ e
        assert np.abs(new).max() <= part.norm_error  # k(x, x) = 1
    text = str(model.certificate_)
    assert "values are exact to" in text
    assert f"(tol {tol:g})" in text


def test_a_solver_that_believes_itself_is_not_believed():
    K, t = Gram.of(X, RBF(GAMMA)), T[:, :1]
    problem = RidgeProblem(K, t, alpha=0.1, weight=np.ones(len(X)))
    b = 0.99 * np.linalg.solve(gram() + 0.1 * np.eye(len(X)), t)
    residual = problem.residual(b)
    judged = problem.certificate(b, residual, "a guess", Status.CONVERGED, 1e-3)
    assert judged.residual == pytest.approx(0.01)
    assert judged.status is Status.STALLED
    assert problem.certificate(b, residual, "a guess", Status.STALLED, 0.1).converged


def test_the_rounding_of_a_residual_is_within_its_bound():
    """Integers are exact in float64, and fractions solve the same system without an error."""
    points = np.arange(1.0, 7.0)[:, None]
    t = np.array([1.0, 3.0, 2.0, 7.0, 5.0, 4.0])
    model = KernelRidge(0.125).fit(points, t)
    a = [Fraction(value) for value in model.dual_coef_]
    x = [Fraction(value) for value in points[:, 0]]
    r = [
        Fraction(t[i]) - sum(x[i] * x[j] * a[j] for j in range(6)) - Fraction(1, 8) * a[i]
        for i in range(6)
    ]
    true, part = float(sum(value**2 for value in r)) / 2, model.certificate_
    assert true <= part.gap + part.rounding


def test_unfinished_work_is_not_called_finished():
    with pytest.warns(ConvergenceWarning, match="max_iter=2"):
        model = machine(1e-3, solver=PreconditionedCG(rank=0), max_iter=2).fit(X, y)
    assert model.certificate_.status == "max_iter"
    assert model.fit_status_ == 1
    assert "may be lower by up to" in str(model.certificate_)


# -- long work ---------------------------------------------------------------------------------

MANY = np.random.default_rng(1).normal(size=(2000, 3))
WAVES = np.sin(MANY[:, 0])


@pytest.fixture
def all_reports(monkeypatch):
    """Listeners hear of every look at a run, not only of some a second."""
    monkeypatch.setattr(Monitor, "due", lambda monitor: bool(monitor.listeners))


@pytest.mark.usefixtures("all_reports")
def test_a_stopped_factorisation_is_exact_for_its_rows():
    model = KernelRidge(0.1, kernel="rbf", callback=lambda progress: progress.steps >= 3)
    with pytest.warns(ConvergenceWarning, match="stopped early"):
        model.fit(MANY, WAVES)
    seen = int(np.flatnonzero(model.dual_coef_)[-1]) + 1
    assert 0 < seen < len(MANY)
    part = KernelRidge(0.1, kernel="rbf").fit(MANY[:seen], WAVES[:seen])
    np.testing.assert_allclose(model.predict(MANY[:50]), part.predict(MANY[:50]), atol=1e-8)
    assert model.certificate_.status == "interrupted"
    true = WAVES - model.predict(MANY) - 0.1 * model.dual_coef_
    assert model.certificate_.gap == pytest.approx(true @ true / 2, rel=1e-6)


@pytest.mark.parametrize("options", [{"solver": "cg"}, {"solver": "cholesky"}], ids=str)
def test_a_time_limit_leaves_a_model(options):
    with pytest.warns(ConvergenceWarning, match="time_limit=1e-09"):
        model = KernelRidge(0.1, kernel="rbf", time_limit=1e-9, **options).fit(MANY, WAVES)
    assert model.certificate_.status == "time_limit"
    assert np.isfinite(model.predict(MANY[:5])).all()


@pytest.mark.usefixtures("all_reports", "heard")
def test_ctrl_c_leaves_a_model_and_is_raised():
    sent = []

    def interrupt(progress):
        if progress.steps >= 1 and not sent:
            sent.append(progress.steps)
            signal.raise_signal(signal.SIGINT)

    model = machine(1e-4, solver=PreconditionedCG(rank=5), callback=interrupt, tol=1e-12)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        with pytest.raises(KeyboardInterrupt):
            model.fit(X, y)
    assert model.certificate_.status == "interrupted"
    assert np.isfinite(model.predict(X)).all()


def test_a_trace_has_every_step():
    trace = Trace()
    model = machine(solver=PreconditionedCG(rank=30), callback=trace, tol=1e-8).fit(X, y)
    objective, dual = trace.curve("objective"), trace.curve("dual")
    assert len(objective) >= model.n_iter_
    assert (dual <= objective.min() * (1 + 1e-6)).all()  # steps are in float32
    assert objective[-1] == pytest.approx(model.certificate_.objective, rel=1e-6)


# -- solvers -----------------------------------------------------------------------------------


def test_the_choice_of_a_solver_says_why():
    def posed(memory):
        return RidgeProblem(Gram.of(X, Linear(), memory=memory), T, 1.0, np.ones(len(y)))

    choice = select_solver(posed(1 << 30))
    assert (choice.method, "has room" in choice.why) == (Cholesky(), True)
    choice = select_solver(posed(1 << 16))
    assert (choice.method, "are allowed" in choice.why) == (PreconditionedCG(), True)
    model = machine(cache_size=0.5).fit(X, y)
    assert "conjugate gradients" in model.certificate_.solver
    for cache_size in (0.5, 0.002):  # in digits that do not round to nothing
        with pytest.raises(ValueError, match=rf"takes .*[1-9].* {cache_size} MB.*solver='cg'"):
            machine(cache_size=cache_size, solver="cholesky").fit(X, y)


def test_a_preconditioner_pays():
    steps = {}
    for rank in (0, 100):
        solver = PreconditionedCG(rank)
        steps[rank] = machine(1e-2, solver=solver, tol=1e-6, max_iter=2000).fit(X, y).n_iter_
    assert 5 * steps[100] < steps[0]


@pytest.mark.parametrize("n", [1, 2, 63, 64, 65, 130, 600])
@pytest.mark.parametrize("threads", [1, 2])
def test_dense_factorisations(n, threads):
    random = np.random.default_rng(n)
    A = random.normal(size=(n, n // 2 + 1))
    A, shift, right = A @ A.T / n, 0.1, random.normal(size=(n, 2))
    inverse = np.linalg.inv(A + shift * np.eye(n))
    factor = BlockCholesky(A.copy(), np.full(n, shift), Workers(threads))
    while factor.done < n:
        factor.advance()
    np.testing.assert_allclose(factor.solve(right), inverse @ right, atol=1e-10)
    np.testing.assert_allclose(factor.product(right), A @ right, atol=1e-10)
    quick = BlockCholesky(A.copy(), np.full(n, shift), Workers(threads), np.float32)
    while quick.done < n:
        quick.advance()
    np.testing.assert_allclose(quick.solve(right), inverse @ right, atol=1e-3)
    np.testing.assert_allclose(quick.product(right), A @ right, atol=1e-10)
    again = quick.in_float64()
    np.testing.assert_array_equal(again.A, A)
    band = BandReduction(A.copy(), Workers(threads))
    while not band.reduced:
        band.advance()
    band.accumulate()
    solution, diagonal = band.shifted(shift, right)
    np.testing.assert_allclose(solution, inverse @ right, atol=1e-10)
    np.testing.assert_allclose(diagonal, np.diag(inverse), atol=1e-10)
    with pytest.raises(NotPositiveError):
        band.shifted(-A.max() - 1.0, right)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
def test_no_products_of_factors_are_denormal(dtype, scale):
    """Points far apart: on many CPUs arithmetic with denormal numbers is a hundred times slower."""
    x = np.arange(700.0)
    A = scale * np.exp(-0.05 * (x[:, None] - x) ** 2)
    factor = BlockCholesky(A.copy(), np.full(len(x), 0.5 * scale), dtype=dtype)
    while factor.done < len(x):
        factor.advance()
    L = np.abs(factor.L[256:, :256]).astype(np.float64)  # below the first block
    smallest = L[L > 0].min()
    assert scale != 1.0 or smallest**2 >= np.finfo(dtype).tiny
    solved = np.linalg.solve(A + 0.5 * scale * np.eye(len(x)), x)
    found = factor.solve(x[:, None])[:, 0]
    np.testing.assert_allclose(found, solved, atol=1e-5 * np.abs(solved).max())


@pytest.mark.parametrize("alpha", [1e-5, 1e-9], ids=["slow to correct", "not positive"])
def test_a_factor_in_float32_that_is_not_enough(alpha, monkeypatch):
    """What float32 cannot solve is solved in float64; what it can, is as exact."""
    made = []
    real = BlockCholesky.in_float64
    monkeypatch.setattr(BlockCholesky, "in_float64", lambda f: made.append(f) or real(f))
    monkeypatch.setattr("maxmargin.solvers.ridge.cholesky._CONDITION", np.inf)
    quick = KernelRidge(alpha, kernel="rbf").fit(MANY, WAVES)
    monkeypatch.setattr("maxmargin.solvers.ridge.cholesky._CONDITION", 0.0)
    exact = KernelRidge(alpha, kernel="rbf").fit(MANY, WAVES)
    assert len(made) == 1
    assert quick.certificate_.residual <= 2 * exact.certificate_.residual
    np.testing.assert_allclose(quick.predict(MANY), exact.predict(MANY), atol=1e-9)
    made.clear()
    monkeypatch.setattr("maxmargin.solvers.ridge.cholesky._CONDITION", np.inf)
    assert KernelRidge(0.1, kernel="rbf").fit(MANY, WAVES).certificate_.residual < 1e-12
    assert not made


# -- leave one out -----------------------------------------------------------------------------

FEW = 60
ALPHAS = np.logspace(-3, 2, 6)


def cv(**options):
    return KernelRidgeCV(ALPHAS, kernel="rbf", gamma=GAMMA, **options)


def left_out(alpha, weight):
    """Errors by fitting again without each row."""
    errors = []
    for i in range(FEW):
        rest = np.arange(FEW) != i
        model = machine(alpha).fit(X[:FEW][rest], T[:FEW][rest], sample_weight=weight[rest])
        errors.append(T[i] - model.predict(X[i : i + 1])[0])
    return np.array(errors)


@pytest.mark.parametrize("weight", [np.ones(FEW), WEIGHT[:FEW] + 0.5], ids=["plain", "weighted"])
def test_leave_one_out_is_exact(weight):
    model = cv(store_cv_results=True).fit(X[:FEW], T[:FEW], sample_weight=weight)
    errors = np.stack([left_out(alpha, weight) ** 2 for alpha in ALPHAS], axis=-1)
    np.testing.assert_allclose(model.cv_results_, errors, rtol=1e-6, atol=1e-10)
    scores = -np.einsum("i,ijk->k", weight / weight.sum(), errors) / 3
    assert model.alpha_ == ALPHAS[scores.argmax()]
    assert model.best_score_ == pytest.approx(scores.max())
    chosen = machine(model.alpha_).fit(X[:FEW], T[:FEW], sample_weight=weight)
    np.testing.assert_allclose(model.dual_coef_, chosen.dual_coef_, rtol=1e-7, atol=1e-8)
    mine, theirs = model.certificate_.parts, chosen.certificate_.parts
    assert [c.objective for c in mine] == pytest.approx([c.objective for c in theirs])


def test_as_ridge_cv_of_scikit_learn():
    options = {"alphas": ALPHAS, "store_cv_results": True}
    for y_ in (y, T):
        ours = KernelRidgeCV(**options).fit(X, y_)
        theirs = RidgeCV(fit_intercept=False, **options).fit(X, y_)
        np.testing.assert_allclose(ours.cv_results_, theirs.cv_results_, rtol=1e-6, atol=1e-10)
        assert ours.alpha_ == theirs.alpha_
        assert ours.best_score_ == pytest.approx(theirs.best_score_)
    ours = KernelRidgeCV(ALPHAS, alpha_per_target=True).fit(X, T)
    theirs = RidgeCV(ALPHAS, fit_intercept=False, alpha_per_target=True).fit(X, T)
    np.testing.assert_allclose(ours.alpha_, theirs.alpha_)
    np.testing.assert_allclose(ours.best_score_, theirs.best_score_)


def test_scores_of_left_out_predictions():
    model = cv(scoring="r2", store_cv_results=True).fit(X[:FEW], y[:FEW])
    best = int(np.flatnonzero(model.alpha_ == ALPHAS)[0])
    predicted = cross_val_predict(machine(model.alpha_), X[:FEW], y[:FEW], cv=LeaveOneOut())
    np.testing.assert_allclose(model.cv_results_[:, best], predicted, atol=1e-8)
    left = y[:FEW] - predicted
    assert model.best_score_ == pytest.approx(1 - left @ left / (FEW * y[:FEW].var()))


def test_a_stopped_path_takes_the_best_so_far():
    with pytest.warns(ConvergenceWarning, match="time_limit"):
        model = KernelRidgeCV(ALPHAS, kernel="rbf", time_limit=1e-9).fit(MANY, WAVES)
    assert "of 256 rows" in model.certificate_.solver
    assert model.certificate_.status == "time_limit"
    assert model.score(MANY, WAVES) > 0.5
    assert model.alpha_ in ALPHAS


# -- the linear machine ------------------------------------------------------------------------

WIDE = RANDOM.normal(size=(40, 90)) + 3.0


@pytest.mark.parametrize("solver", ["primal", "dual", "cg"])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("intercept", [False, True])
def test_both_forms_are_scikit_learns_ridge(solver, sparse, intercept):
    for points, t in ((X + 1.0, T), (WIDE, T[:40])):
        weight = WEIGHT[: len(t)]
        options = {"alpha": 0.5, "fit_intercept": intercept}
        given = sp.csr_array(points) if sparse else points
        ours = Ridge(solver=solver, tol=1e-11, **options).fit(given, t, sample_weight=weight)
        theirs = LinearReference(solver="svd", **options).fit(points, t, sample_weight=weight)
        np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-8)
        np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-8)
        np.testing.assert_allclose(ours.predict(given), theirs.predict(points), atol=1e-8)
        for k, part in enumerate(ours.certificate_.parts):
            left = ours.predict(given)[:, k] - t[:, k]
            J = weight @ left**2 / 2 + 0.25 * ours.coef_[k] @ ours.coef_[k]
            assert part.objective == pytest.approx(J, rel=1e-9)


@pytest.mark.parametrize("solver", ["primal", "dual"])
def test_bounds_of_a_stopped_linear_machine(solver):
    with pytest.warns(ConvergenceWarning, match="time_limit"):
        early = Ridge(3.0, solver=solver, time_limit=1e-9).fit(X, y)
    some = Ridge(3.0, solver="cg", time_limit=1e-9)
    with pytest.warns(ConvergenceWarning, match="time_limit"):
        some.fit(*((X, y) if solver == "primal" else (WIDE, y[:40])))
    for model, points, t in ((early, X, y), (some, X if solver == "primal" else WIDE, y)):
        t = t[: len(points)]
        exact = Ridge(3.0).fit(points, t)
        part = model.certificate_
        assert not part.converged
        assert 0 <= part.objective - exact.certificate_.objective <= part.gap
        assert np.linalg.norm(model.coef_ - exact.coef_) <= part.norm_error
        assert part.coefficient_error == part.norm_error


def test_ridge_says_which_form():
    assert Ridge().fit(X, y).form_ == "primal"
    assert "10 features (not for 442 rows)" in Ridge().fit(X, y).certificate_.solver
    wide = Ridge().fit(WIDE, y[:40])
    assert wide.form_ == "dual"
    assert "40 rows (not for 90 features)" in wide.certificate_.solver
    with pytest.raises(ValueError, match="alpha"):
        Ridge(0.0).fit(X, y)
    with pytest.raises(ValueError, match="LinearRegression"):
        Ridge(1e-40, solver="dual").fit(np.ones((3, 1)) * [[1.0], [2.0], [3.0]], [1.0, 2.0, 3.5])


def test_a_linear_kernel_is_ridge_without_an_intercept():
    ours = Ridge(0.7, fit_intercept=False).fit(X, T)
    np.testing.assert_allclose(ours.predict(X), KernelRidge(0.7).fit(X, T).predict(X), atol=1e-9)


# -- errors and manners ------------------------------------------------------------------------


def test_singular_and_indefinite_matrices_are_explained():
    twice = np.vstack([X, X[:1]])
    with pytest.raises(ValueError, match=r"alpha=0 asks for K a = y.*Give an alpha > 0"):
        KernelRidge(0.0).fit(twice, np.append(y, 1.0))
    indefinite = Sigmoid(gamma=1.0, coef0=-1.0)
    assert check_valid(indefinite, X[:20]).smallest_eigenvalue < -1e-3
    for solver in SOLVERS:
        with pytest.raises(ValueError, match=r"indefinite on these data.*Raise alpha"):
            KernelRidge(1e-3, kernel=indefinite, solver=solver).fit(X, y)
    with pytest.raises(ValueError, match=r"indefinite on these data.*Raise alpha"):
        KernelRidgeCV([1e-3], kernel=indefinite).fit(X, y)
    raised = KernelRidge(1e3, kernel=indefinite).fit(X, y)
    assert "nothing is minimised" in raised.certificate_.claim
    assert "not bounded" in str(raised.certificate_)
    with pytest.raises(ValueError, match="alpha"):
        KernelRidge(-1.0).fit(X, y)
    with pytest.raises(ValueError, match="positive"):
        KernelRidgeCV([0.0, 1.0]).fit(X, y)
    with pytest.raises(ValueError, match="alpha > 0"):
        KernelRidge(0.0, kernel=RBF(), solver="cg").fit(X, y)
    with pytest.raises(ValueError, match="gamma cannot be set"):
        KernelRidge(kernel=RBF(), gamma=1.0).fit(X, y)


def test_without_lambda_it_interpolates():
    model = KernelRidge(0.0, kernel=RBF(3.0)).fit(X[:50], y[:50])
    np.testing.assert_allclose(model.predict(X[:50]), y[:50], atol=1e-9)


def test_searches_take_it():
    grid = {"alpha": [0.01, 1.0], "gamma": [0.01, 0.1]}
    ours = GridSearchCV(KernelRidge(kernel="rbf"), grid, cv=3).fit(X, y)
    theirs = GridSearchCV(Reference(kernel="rbf"), grid, cv=3).fit(X, y)
    assert ours.best_params_ == theirs.best_params_
    np.testing.assert_allclose(
        ours.cv_results_["mean_test_score"], theirs.cv_results_["mean_test_score"], atol=1e-9
    )
    own = maxmargin.GridSearchCV(KernelRidge(kernel=RBF()), {"kernel__gamma": [0.01, 0.1]}, cv=3)
    assert own.fit(X, y).best_params_["kernel__gamma"] == ours.best_params_["gamma"]


DISTANCES = "the check takes distances for a kernel's values: an indefinite matrix, refused"
WHOLE = "to leave out a row is to leave out all of its weight"


def expected_failures(machine):
    if isinstance(machine, Ridge):
        return {}
    if isinstance(machine, KernelRidgeCV) and machine.kernel == "linear":
        kinds = ("dense", "sparse")
        return {f"check_sample_weight_equivalence_on_{kind}_data": WHOLE for kind in kinds}
    if machine.kernel == "precomputed":
        names = "check_positive_only_tag_during_fit", "check_estimators_dtypes"
        return dict.fromkeys(names, DISTANCES)
    return {}


@parametrize_with_checks(
    [
        KernelRidge(),
        KernelRidge(kernel="rbf", solver="cg", tol=1e-12),
        KernelRidge(kernel="precomputed"),
        KernelRidgeCV(),
        KernelRidgeCV(kernel=RBF(0.5)),
        Ridge(),
        Ridge(solver="dual"),
        Ridge(solver="cg", tol=1e-12),
    ],
    expected_failed_checks=expected_failures,
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_the_page_runs():
    page = (Path(__file__).parents[1] / "docs" / "ridge.md").read_text(encoding="utf-8")
    for example in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
        exec(compile(example, "ridge.md", "exec"), {})
