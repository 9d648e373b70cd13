"""Ridge regression: the lecture's formulas, scikit-learn's machines, what certificates promise."""

import warnings
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_diabetes, make_regression
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import kernels as their_kernels
from sklearn.kernel_ridge import KernelRidge as Reference
from sklearn.linear_model import LinearRegression as LeastSquares
from sklearn.linear_model import Ridge as LinearReference
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import GridSearchCV, LeaveOneOut, cross_val_predict

import maxmargin
from maxmargin import (
    Gram,
    KernelPCA,
    KernelRidge,
    KernelRidgeCV,
    Nystroem,
    Ridge,
    Trace,
    check_valid,
)
from maxmargin.backends.cpu import Operand, kernel_square
from maxmargin.backends.dense import BandReduction, BlockCholesky, NotPositiveError
from maxmargin.backends.threads import StoppedError, Workers
from maxmargin.backends.views import Views
from maxmargin.kernels import RBF, FunctionKernel, Linear, Polynomial, Sigmoid
from maxmargin.progress import Monitor
from maxmargin.solution import Status
from maxmargin.solvers import Cholesky, PreconditionedCG, select_solver
from maxmargin.solvers.ridge.linear import CentredRows, PositiveSystem
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
def test_every_kind_of_data(solver):
    options = {"solver": solver, "tol": 1e-10}
    values = machine(**options).fit(X, y).predict(X)
    given = KernelRidge(0.1, kernel="precomputed", **options).fit(gram(), y).predict(gram())
    kinds = {  # a function of two rows, or of two collections of them; of a name, with a parameter
        "rows": {
            "kernel": lambda a, b, g: np.exp(-g * (a - b) @ (a - b)),
            "kernel_params": {"g": GAMMA},
        },
        "matrix": {"kernel": FunctionKernel(lambda a, b: RBF(GAMMA)(a, b))},
        "name": {"kernel": "rbf", "gamma": GAMMA},
    }
    called = [KernelRidge(0.1, **kind, **options).fit(X, y).predict(X) for kind in kinds.values()]
    for other in (given, *called):
        np.testing.assert_allclose(other, values, atol=1e-7)


@pytest.mark.parametrize("estimator", [KernelRidge(), KernelPCA(), Nystroem()])
@pytest.mark.parametrize("kernel", [RBF(), their_kernels.RBF()])
def test_a_kernel_object_takes_no_kernel_params(estimator, kernel):
    estimator = clone(estimator).set_params(kernel=kernel, kernel_params={"gamma": 5.0})
    with pytest.raises(ValueError, match=r"kernel_params=.* cannot be set"):
        estimator.fit(X, y)


@pytest.mark.parametrize("estimator", [KernelRidge(), KernelPCA(), Nystroem()])
def test_kernel_params_of_a_name_are_its_own(estimator):
    given = clone(estimator).set_params(kernel="rbf", kernel_params={"gamma": 5.0}).fit(X, y)
    assert given.kernel_.gamma == 5.0
    misspelt = clone(estimator).set_params(kernel="rbf", kernel_params={"gama": 5.0})
    with pytest.raises(ValueError, match="gamma, degree and coef0, got gama"):
        misspelt.fit(X, y)


@pytest.mark.parametrize("seed", [10, 18, 21])
def test_conjugate_gradients_end_where_rounding_is_all_that_is_left(seed):
    """A row far away, to the fourth power: the residual grows and never falls again."""
    random = np.random.default_rng(seed)
    rows = random.normal(size=(15, 3))
    rows[0] *= 300.0
    kernel = Polynomial(4, coef0=0.0)
    model = KernelRidge(1e-4, kernel=kernel, solver="cg", tol=1e-6, max_iter=5000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(rows, random.normal(size=15))
    assert model.n_iter_ < 5000


@pytest.mark.parametrize("dtypes", [(np.float32, np.float32), (np.float32, float), (float, float)])
def test_answers_have_the_precision_of_the_data(dtypes):
    rows, target = X.astype(dtypes[0]), y.astype(dtypes[1])
    model = KernelRidge(0.1, kernel="rbf").fit(rows, target)
    assert model.predict(rows).dtype == max(dtypes, key=np.dtype)
    assert model.dual_coef_.dtype == np.float64  # the coefficients that the certificate is about
    assert model.X_fit_ is model.support_vectors_
    np.testing.assert_allclose(
        model.predict(rows), KernelRidge(0.1, kernel="rbf").fit(X, y).predict(X), atol=1e-4
    )


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
    tiny = Gram.of(1e-6 * X, Linear())  # so that coefficients are off as much as they can be
    heavy = RidgeProblem(tiny, t, alpha=0.1, weight=np.full(len(X), 100.0))
    off = heavy.coefficients(0.01 * np.ones_like(t))
    b = heavy.right / 0.1 + 0.01
    judged = heavy.certificate(b, heavy.residual(b), "a guess", Status.STALLED, 1e-9)
    assert judged.coefficient_error == pytest.approx(np.linalg.norm(off), rel=1e-3)


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


def test_products_that_cancel_are_within_the_bound():
    """A column that is constant has no weight but rounding, which was beyond its bound."""
    random = np.random.default_rng(0)
    X, y, weight = np.full((6, 1), 561.1), random.normal(size=6), random.uniform(0.2, 2.0, size=6)
    model = Ridge(0.1).fit(X, y, sample_weight=weight)
    assert abs(model.coef_[0]) <= model.certificate_.norm_error < 1e-9


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
    assert model.score(MANY, WAVES) > 0.9  # the exact solution of some rows, where it was zero
    rows = np.flatnonzero(model.dual_coef_)
    part = KernelRidge(0.1, kernel="rbf", gamma=model.kernel_.gamma).fit(MANY[rows], WAVES[rows])
    assert f"{len(rows)} rows" in model.certificate_.solver
    np.testing.assert_allclose(model.predict(MANY[:50]), part.predict(MANY[:50]), atol=1e-8)
    true = WAVES - model.predict(MANY) - 0.1 * model.dual_coef_
    assert model.certificate_.gap == pytest.approx(true @ true / 2, rel=1e-6)


def test_a_stopped_matrix_ends_within_its_panel():
    """The mirror image of the first panel touches all memory of the matrix, for seconds."""
    points = Operand.prepare(RBF(0.1).lower(), Views.of(MANY))
    asked = []
    workers = Workers(1, lambda: asked.append(0) or len(asked) > 2)
    out = np.full((len(MANY), len(MANY)), np.nan)
    with pytest.raises(StoppedError):
        kernel_square(RBF(0.1).lower(), points, None, out, workers)
    assert 0 < np.isfinite(out[0]).sum() < len(MANY)


def test_a_trace_has_every_step():
    trace = Trace()
    model = machine(solver=PreconditionedCG(rank=30), callback=trace, tol=1e-8).fit(X, y)
    objective, dual = trace.curve("objective"), trace.curve("dual")
    assert len(objective) >= model.n_iter_
    assert (dual <= objective.min() * (1 + 1e-5)).all()  # steps are in float32: some ulp of 1e-7
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
    seen = np.arange(FEW) % 5 > 0  # rows of weight zero have no error
    some = cv(store_cv_results=True).fit(X[:FEW], T[:FEW], sample_weight=weight * seen)
    rest = cv(store_cv_results=True).fit(X[:FEW][seen], T[:FEW][seen], sample_weight=weight[seen])
    np.testing.assert_allclose(some.cv_results_[seen], rest.cv_results_)
    assert np.isnan(some.cv_results_[~seen]).all()
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


def test_a_search_that_was_stopped_before_the_last_alpha_has_not_converged(monkeypatch):
    """Though the equations of the alpha that it has are solved."""
    original = Monitor.__init__

    def eager(self, *args, **options):
        original(self, *args, **options)
        self.interval = 0.0

    monkeypatch.setattr(Monitor, "__init__", eager)
    seen = []
    whole = cv(callback=seen.append).fit(X, y)
    assert whole.certificate_.converged
    claims = []
    for last in range(1, len(seen)):
        left = iter(range(last))
        model = cv(callback=lambda progress, left=left: next(left, None) is None)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model.fit(X, y)
        certificate = model.certificate_
        assert bool(caught) == (not certificate.converged)
        if certificate.converged:
            assert model.alpha_ == whole.alpha_
        else:
            assert model.fit_status_ == 1
            some_rows = "of 256 rows" in certificate.solver
            assert some_rows or "not every alpha was tried" in certificate.claim
            claims.append(certificate.claim)
    assert any("not every alpha" in claim for claim in claims)


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
def test_bounds_of_a_stopped_linear_machine(solver, monkeypatch):
    monkeypatch.setattr("maxmargin.solvers.ridge.problem._SUBSET", 1)  # of few unknowns
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
        assert 0 <= part.rounding <= 1e-6 * part.gap


def test_ridge_says_which_form():
    assert Ridge().fit(X, y).form_ == "primal"
    assert "10 features (not for 442 rows)" in Ridge().fit(X, y).certificate_.solver
    wide = Ridge().fit(WIDE, y[:40])
    assert wide.form_ == "dual"
    assert "40 rows (not for 90 features)" in wide.certificate_.solver
    with pytest.raises(ValueError, match="LinearRegression"):
        Ridge(1e-40, solver="primal").fit(np.hstack([X, X]), y)


@pytest.mark.parametrize("solver", ["svd", "cholesky", "lsqr", "sparse_cg", "sag", "saga"])
@pytest.mark.parametrize("sparse", [False, True])
def test_every_solver_of_scikit_learn_has_the_same_answer(solver, sparse):
    for points, t in ((X + 1.0, T), (WIDE, T[:40])):
        given = sp.csr_array(points) if sparse else points
        alphas = np.array([0.5, 2.0, 0.5])
        ours = Ridge(alphas, solver=solver, tol=1e-11, random_state=3).fit(given, t)
        theirs = LinearReference(alphas, solver="svd").fit(points, t)
        np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-8)
        np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-8)
        assert ours.solver_ == solver
        assert len(ours.certificate_.parts) == 3


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("alpha", [1e-3, 1.0, [0.1, 3.0, 3.0]])
def test_positive_ridge_and_its_gap(sparse, alpha):
    """Truth by LinearRegression(positive=True) on the rows with sqrt(alpha) I below them."""
    given = sp.csr_array(X + 1.0) if sparse else X + 1.0
    model = Ridge(alpha, positive=True).fit(given, T, sample_weight=WEIGHT)
    keep = WEIGHT > 0
    root, mean = np.sqrt(WEIGHT[keep])[:, None], np.average(X + 1.0, axis=0, weights=WEIGHT)
    t = T[keep] - np.average(T, axis=0, weights=WEIGHT)
    for k, each in enumerate(np.broadcast_to(alpha, 3)):
        rows = np.vstack([root * ((X + 1.0)[keep] - mean), each**0.5 * np.eye(X.shape[1])])
        targets = np.append(root[:, 0] * t[:, k], np.zeros(X.shape[1]))
        free = maxmargin.LinearRegression(positive=True, fit_intercept=False)
        truth = free.fit(rows, targets).coef_
        part = model.certificate_.parts[k]
        J = 0.5 * np.sum((rows @ truth - targets) ** 2)
        assert part.converged
        assert abs(part.objective - J) <= part.gap + part.rounding + 1e-12 * J
        assert np.linalg.norm(model.coef_[k] - truth) <= part.norm_error + 1e-9
        assert (model.coef_ >= 0).all()
        worse = np.maximum(truth + 0.01, 0.0)[:, None]  # what the gap says of another point
        data = CentredRows(X + 1.0, T[:, [k]], np.maximum(WEIGHT, 1e-30), True)
        system = PositiveSystem(data, each, 10**9)
        value, gap = system.objectives(worse, system.residual(worse))
        assert 0 < value[0] - J <= gap[0]


def test_ridge_without_a_penalty_is_least_squares():
    free = maxmargin.LinearRegression().fit(X, T)
    np.testing.assert_allclose(Ridge(0).fit(X, T).coef_, free.coef_)
    some = Ridge([0.0, 1.0, 0.0]).fit(X, T)
    np.testing.assert_allclose(some.coef_[[0, 2]], free.coef_[[0, 2]], atol=1e-10)
    np.testing.assert_allclose(some.coef_[1], Ridge(1.0).fit(X, T[:, 1]).coef_, atol=1e-10)
    assert some.certificate_.converged
    tiny = Ridge(1e-14).fit(np.hstack([X, X]), y)  # below the rounding of a matrix without rank
    assert tiny.solver_ == "svd"
    least = maxmargin.LinearRegression().fit(np.hstack([X, X]), y)
    np.testing.assert_allclose(tiny.coef_, least.coef_, atol=1e-6)


def test_ridge_refuses_contradictions():
    with pytest.raises(ValueError, match="does not support positive"):
        Ridge(positive=True, solver="svd").fit(X, y)
    with pytest.raises(ValueError, match="only when positive=True"):
        Ridge(solver="lbfgs").fit(X, y)
    with pytest.raises(ValueError, match="Number of targets and number of penalties"):
        Ridge([1.0, 2.0]).fit(X, T)


@pytest.mark.parametrize("model", [Ridge(), maxmargin.LinearRegression()], ids=str)
def test_shapes_are_scikit_learns(model):
    reference = {"Ridge": LinearReference, "LinearRegression": LeastSquares}[type(model).__name__]
    for t in (y, y[:, None], T):
        for dtype in (np.float32, np.float64):
            ours = clone(model).fit(X.astype(dtype), t)
            theirs = reference().fit(X.astype(dtype), t)
            for name in ("coef_", "intercept_"):
                mine, other = getattr(ours, name), getattr(theirs, name)
                assert (mine.shape, mine.dtype) == (other.shape, np.float64), name
                np.testing.assert_allclose(mine, other, atol=1e-4)
            got, expected = ours.predict(X.astype(dtype)), theirs.predict(X.astype(dtype))
            assert (got.shape, got.dtype) == (expected.shape, expected.dtype)


def test_a_linear_kernel_is_ridge_without_an_intercept():
    ours = Ridge(0.7, fit_intercept=False).fit(X, T)
    np.testing.assert_allclose(ours.predict(X), KernelRidge(0.7).fit(X, T).predict(X), atol=1e-9)


# -- errors and manners ------------------------------------------------------------------------


def test_singular_and_indefinite_matrices_are_explained():
    twice = np.vstack([X, X[:1]])
    with pytest.raises(ValueError, match=r"alpha=0 asks for K a = y.*Give an alpha > 0"):
        KernelRidge(0.0, solver="cholesky").fit(twice, np.append(y, 1.0))
    with pytest.warns(ConvergenceWarning, match="least-squares solution"):
        least = KernelRidge(0.0).fit(twice, twice @ np.arange(1.0, 1.0 + twice.shape[1]))
    np.testing.assert_allclose(least.predict(np.eye(X.shape[1])), np.arange(1, 1 + X.shape[1]))
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


@pytest.mark.slow
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


@pytest.mark.parametrize("seed", [167, 5390])
def test_conjugate_gradients_end_where_they_crawl(seed):
    """Few rows, kernel values over 24 orders of magnitude: the residual swings and never falls."""
    random = np.random.default_rng(seed)
    X = random.standard_t(1.2, size=(random.integers(5, 21), random.integers(1, 6)))
    X *= 10 ** random.uniform(-1, 2)
    y = random.normal(size=len(X))
    alpha, gamma = 10 ** random.uniform(-10, 1), 10 ** random.uniform(-1, 1)
    kernel = Polynomial(degree=4, coef0=1.0, gamma=gamma)
    with pytest.warns(ConvergenceWarning):
        model = KernelRidge(alpha, kernel=kernel, solver="cg", tol=1e-6).fit(X, y)
    assert model.n_iter_ < 1000


@pytest.mark.parametrize("shape", [(100, 50), (50, 100)])
def test_conjugate_gradients_take_few_steps_where_alpha_is_nearly_zero(shape):
    """The preconditioner's inverse was rounding: 15,800 steps, or an answer that was 25 % off."""
    X, y = make_regression(*shape, noise=0.0, random_state=42)
    exact = np.linalg.lstsq(X, y, rcond=None)[0]
    with warnings.catch_warnings(action="ignore"):  # a residual of 1e-12 is below rounding
        model = Ridge(1e-16, fit_intercept=False, solver="lsqr", tol=1e-12).fit(X, y)
    np.testing.assert_allclose(model.coef_, exact, rtol=1e-7, atol=1e-9)
    assert model.n_iter_ < 30
