"""One machine for several classes at once: Crammer and Singer's, Weston and Watkins'."""

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.svm
from scipy.optimize import LinearConstraint, minimize
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from sklearn.preprocessing import StandardScaler

from maxmargin import SVC, Gram, NuSVC, SVCSearchCV, Trace
from maxmargin.backends.cpu.dual.direct import solve_row
from maxmargin.bounds import leave_one_out
from maxmargin.duals.direct import DirectProblem
from maxmargin.kernels import RBF, Linear
from maxmargin.multiclass import CrammerSinger, SchemeClassifier, WestonWatkins
from maxmargin.solvers import SMO, RowDescent, Watch
from maxmargin.solvers.dual.direct import solve_directly

FORMS = ["crammer_singer", "weston_watkins"]


def data(load, n=None):
    X, y = load(return_X_y=True)
    return StandardScaler().fit_transform(X)[:n], y[:n]


def primal(values, squares, y, cost, form):
    """The machine's objective, written out."""
    margins = 1 + values - values[np.arange(len(y)), y][:, None]
    margins[np.arange(len(y)), y] = 0
    margins = np.maximum(margins, 0)
    losses = margins.max(axis=1) if form == "crammer_singer" else margins.sum(axis=1)
    return 0.5 * squares + float(cost @ losses)


@pytest.mark.parametrize("load", [load_iris, load_wine, load_digits])
@pytest.mark.parametrize("C", [0.1, 1.0, 100.0])
def test_the_linear_machine_is_liblinears(load, C):
    X, y = data(load, 500)
    X, y = (X, y) if load is load_digits else data(load)
    weight = np.linspace(0.5, 2.0, len(y))
    options = {"C": C, "multi_class": "crammer_singer", "tol": 1e-6, "max_iter": 10**5}
    theirs = sklearn.svm.LinearSVC(random_state=0, **options).fit(X, y, weight)
    model = SVC(kernel="linear", C=C, multiclass="crammer_singer", tol=1e-4).fit(X, y, weight)
    W = np.column_stack([theirs.coef_, theirs.intercept_])
    best = primal(theirs.decision_function(X), (W**2).sum(), y, C * weight, "crammer_singer")
    certificate = model.certificate_
    assert certificate.converged
    assert certificate.dual - certificate.rounding <= best * (1 + 1e-9)
    assert certificate.primal <= best + certificate.gap + certificate.rounding + 1e-4 * best
    np.testing.assert_allclose(model.coef_, theirs.coef_, atol=5e-3 * np.abs(theirs.coef_).max())


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("kernel", [RBF(0.3), Linear()])
def test_certificates_say_what_is_true(form, bias, kernel):
    X, y = data(load_wine)
    C = 5.0
    model = SVC(kernel=kernel, C=C, multiclass=form, fit_intercept=bias, tol=1e-5).fit(X, y)
    coef = np.zeros((3, len(y)))
    coef[:, model.support_] = model.dual_coef_
    K = kernel(X) + bias
    values, squares = (coef @ K).T, np.einsum("ki,ij,kj", coef, K, coef)
    certificate = model.certificate_
    np.testing.assert_allclose(model.decision_function(X), values, atol=1e-9)
    expected = primal(values, squares, y, np.full(len(y), C), form)
    assert certificate.primal == pytest.approx(expected, rel=1e-10)
    others = np.ones((3, len(y)), dtype=bool)
    others[y, np.arange(len(y))] = False
    assert certificate.dual == pytest.approx(-0.5 * squares - coef[others].sum(), rel=1e-10)
    assert 0 <= certificate.gap <= 1e-3 * certificate.primal
    np.testing.assert_allclose(coef.sum(axis=0), 0, atol=1e-12)
    assert (coef[others] <= 0).all()
    assert (coef[others] >= -C).all()
    if form == "crammer_singer":
        assert coef[~others].max() <= C
    np.testing.assert_allclose(
        model.slack_.sum(), (certificate.primal - 0.5 * squares) / C, atol=1e-8
    )


@pytest.mark.parametrize("form", FORMS)
def test_the_rounding_bounds_the_worst_errors_of_sums(form):
    """Every value off by what a sum of so many terms may be, all in the worst direction."""
    n = 2000
    y = np.arange(n) % 3
    own = np.eye(3, dtype=bool)[y]
    start = np.where(own, 0.5, -0.25)
    problem = DirectProblem(y, 3, np.ones(n), form == "weston_watkins", bias=False, start=start)
    problem = problem.over(Gram.of(np.linspace(0.5, 1.0, n)[:, None], Linear()))
    answer = solve_directly(problem, RowDescent(), Watch(max_iter=0))  # any feasible point will do
    certificate, values = answer.certificate, answer.values
    sizes = np.sqrt(problem.gram.diagonal)
    error = 0.5 * np.finfo(float).eps * n * np.outer(sizes, np.abs(answer.b.T) @ sizes)
    computed = problem.objectives(answer.b, values + np.where(own, error, -error))[1]
    assert computed < certificate.gap <= computed + certificate.rounding
    assert certificate.rounding < 1e-9 * certificate.primal


@pytest.mark.parametrize("form", FORMS)
def test_a_general_solver_finds_nothing_better(form):
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(14, 2)), np.arange(14) % 3
    cost = rng.uniform(0.2, 3.0, size=14)
    K = RBF(0.5)(X) + 1
    own = np.zeros((14, 3), dtype=bool)
    own[np.arange(14), y] = True
    most = cost if form == "crammer_singer" else 2 * cost
    bounds = [(0, most[i]) if own[i, k] else (-cost[i], 0) for i in range(14) for k in range(3)]

    def objective(b):
        b = b.reshape(14, 3)
        return 0.5 * np.einsum("ik,ij,jk", b, K, b) + b[~own].sum()

    sums = LinearConstraint(np.kron(np.eye(14), np.ones(3)), 0, 0)
    start = np.zeros(42)
    found = minimize(
        objective, start, bounds=bounds, constraints=sums, options={"ftol": 1e-12, "maxiter": 500}
    )
    problem = DirectProblem(y, 3, cost, form == "weston_watkins", bias=True)
    watch = Watch(tol=1e-8)
    answer = solve_directly(problem.over(Gram.of(X, RBF(0.5))), RowDescent(), watch)
    assert answer.certificate.converged
    assert -answer.certificate.dual <= found.fun + 1e-7
    assert answer.certificate.gap <= 1e-6
    # a start that belongs to other costs is brought back, and leads to the same answer
    again = DirectProblem(y, 3, 0.5 * cost, form == "weston_watkins", bias=True)
    near = solve_directly(
        again.started_near(answer.b).over(Gram.of(X, RBF(0.5))), RowDescent(), watch
    )
    far = solve_directly(again.over(Gram.of(X, RBF(0.5))), RowDescent(), watch)
    assert near.certificate.dual == pytest.approx(far.certificate.dual, abs=1e-7)


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_large_costs_and_sets_larger_than_memory(form):
    X, y = data(load_digits)
    model = SVC(C=1000, gamma=0.02, multiclass=form, cache_size=2).fit(X, y)  # sets of 256 rows
    assert model.certificate_.converged
    assert model.score(X, y) == 1.0
    roomy = SVC(C=1000, gamma=0.02, multiclass=form).fit(X, y)
    mine, theirs = model.certificate_, roomy.certificate_
    assert mine.dual <= theirs.primal
    assert theirs.dual <= mine.primal
    sparse = clone(roomy).fit(sp.csr_array(X), y)
    np.testing.assert_allclose(sparse.decision_function(X), roomy.decision_function(X), atol=2e-2)


def test_manners():
    X, y = data(load_wine)
    model = SVC(multiclass="crammer_singer").fit(X, y)
    assert model.score(X, y) > 0.99
    trace = Trace()
    clone(model).set_params(callback=trace, multiclass=WestonWatkins(3)).fit(X, y)
    assert trace.records[0][-1].violation <= 1e-3
    assert trace.records[0][-1].gap >= 0
    again = clone(model).set_params(warm_start=True).fit(X, y)
    steps = again.n_iter_.sum()
    assert steps > 0
    assert again.fit(X, y).n_iter_.sum() < 0.1 * steps
    two = SVC(multiclass="crammer_singer").fit(X, y == 1)  # two classes: the one machine
    np.testing.assert_array_equal(two.dual_coef_, SVC().fit(X, y == 1).dual_coef_)
    calibrated = CalibratedClassifierCV(SVC(multiclass="crammer_singer"), ensemble=False)
    assert calibrated.fit(X, y).score(X, y) > 0.97


def test_searches_begin_each_cost_from_the_last(monkeypatch):
    X, y = data(load_wine)
    made = lambda n_classes: CrammerSinger(n_classes)  # noqa: E731 - a factory, not a class
    grid = {"C": [0.1, 1.0, 10.0], "multiclass": ["crammer_singer", CrammerSinger, made]}
    begun = []
    started = DirectProblem.started_after
    monkeypatch.setattr(DirectProblem, "started_after", lambda *a: begun.append(1) or started(*a))
    search = SVCSearchCV(SVC(), grid, cv=3, refit=False).fit(X, y)
    assert search.sharing_.shared.all()
    assert "all classes at once along paths of C" in str(search.sharing_)
    assert len(begun) == 3 * 3 * 2  # forms, folds, costs after the first
    scores = search.cv_results_["mean_test_score"]
    assert scores[0] == scores[1] == scores[2]
    # what a direct form does not have is a failed fit, and said
    refused = SVCSearchCV(SVC(multiclass="crammer_singer", solver="smo"), {"C": [1.0]}, cv=3)
    with pytest.raises(ValueError, match="is for machines for two classes"):
        refused.set_params(error_score="raise").fit(X, y)


def test_a_search_leaves_probabilities_of_a_direct_form_to_fits():
    X, y = data(load_wine)
    machine = SVC(multiclass="crammer_singer", probability="temperature", random_state=0)
    ours, theirs = (
        search(machine, {"C": [0.1, 1.0]}, cv=3, scoring="neg_log_loss", refit=False).fit(X, y)
        for search in (SVCSearchCV, GridSearchCV)
    )
    assert not ours.sharing_.shared.any()
    assert "probability='temperature' of all classes at once" in ours.sharing_.why(0)
    scores = [search.cv_results_["mean_test_score"] for search in (ours, theirs)]
    np.testing.assert_allclose(*scores, atol=1e-9)


def test_many_classes_in_play_wait_for_room(monkeypatch):
    X, y = data(load_digits, 400)
    model = SVC(C=0.05, multiclass="weston_watkins", tol=1e-4)
    roomy = clone(model).fit(X, y).certificate_
    monkeypatch.setattr("maxmargin.solvers.dual.direct._SQUARES", 0.05)
    tight = clone(model).fit(X, y).certificate_
    assert tight.converged
    assert tight.dual <= roomy.primal
    assert roomy.dual <= tight.primal


@pytest.mark.parametrize("form", FORMS)
def test_a_start_from_lower_costs(form):
    X, y = data(load_digits, 600)
    gram = Gram.of(X, RBF(0.02))
    watch = Watch(tol=1e-3)
    low, high = (DirectProblem(y, 10, np.full(600, C), form == FORMS[1], True) for C in (1, 3))
    before = solve_directly(low.over(gram), RowDescent(), watch)
    begun = high.started_after(low, before.b, before.values).over(gram)
    assert begun.start.max() > 1.0  # a multiple, not the solution itself
    np.testing.assert_allclose(begun.start.sum(axis=1), 0, atol=1e-12)
    warm = solve_directly(begun, RowDescent(), watch)
    cold = solve_directly(high.over(gram), RowDescent(), watch)
    assert warm.n_iter < cold.n_iter
    assert warm.certificate.converged
    assert warm.certificate.dual <= cold.certificate.primal
    assert cold.certificate.dual <= warm.certificate.primal


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_float32_inside_reaches_any_tolerance(form):
    """Also with rows that are kept (64 features), and with values that float32 cannot hold."""
    X, y = data(load_digits, 500)
    for kernel, C in ((RBF(0.02), 5.0), (1e-7 * RBF(0.02), 5e7), (Linear(), 5.0)):
        problem = DirectProblem(y, 10, np.full(500, C), form == FORMS[1], False)
        answer = solve_directly(problem.over(Gram.of(X, kernel)), RowDescent(), Watch(tol=1e-7))
        certificate = answer.certificate
        assert certificate.converged
        assert certificate.kkt_violation <= 1e-7
        assert certificate.gap <= 1e-4 * certificate.primal


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (SVC(multiclass="crammer_singer", C=np.inf), "needs a finite C"),
        (SVC(multiclass="weston_watkins", solver="smo"), "for machines for two classes"),
        (SVC(multiclass="weston_watkins", solver=SMO()), "for machines for two classes"),
        (SVC(multiclass="weston_watkins", checkpoint="f"), "warm_start"),
        (SVC(solver=RowDescent()), "several classes at once"),
        (NuSVC(multiclass="crammer_singer", nu=0.1), "use SVC"),
        (SchemeClassifier(SVC(), multiclass="crammer_singer"), "machine of its own"),
    ],
)
def test_what_they_do_not_have(model, message):
    X, y = data(load_iris)
    with pytest.raises(ValueError, match=message):
        model.fit(X, y)


def test_no_bounds_and_no_balance():
    X, y = data(load_iris)
    with pytest.raises(ValueError, match="unanimous"):
        leave_one_out(SVC(multiclass="crammer_singer").fit(X, y))
    with pytest.raises(ValueError, match="class_weight"):
        CrammerSinger(3, balanced=True)


def test_ill_conditioned_rows_are_solved_by_interior_points():
    """Rows and gradients alone have not ended after two million steps."""
    random = np.random.default_rng(0)
    X, y = np.round(2 * random.normal(size=(57, 5))) / 2, random.integers(5, size=57)
    model = SVC(C=1e5, kernel=RBF(0.001), multiclass="weston_watkins", max_iter=10**6)
    assert model.fit(X, y).certificate_.converged


@pytest.mark.parametrize("form", FORMS)
def test_a_kernel_beyond_float64_ends_in_a_warning(form):
    """Rows crawl for ever where the values hide in the rounding of a far offset."""
    X = np.random.default_rng(0).normal(size=(12, 3)) + np.array([0.0, 3e5, 0.0])
    model = SVC(C=5.0, kernel="poly", degree=2, gamma=1.0, multiclass=form, n_jobs=1)
    with pytest.warns(ConvergenceWarning, match="in float64"):
        model.fit(X, np.arange(12) % 3)
    assert model.certificate_.status == "stalled"


def test_a_row_is_feasible_however_small_its_cost():
    """The sum of a row was off by its cost where float64 has no level between its steps."""
    random = np.random.default_rng(0)
    for _ in range(2000):
        count = random.integers(2, 6)
        own, cost = random.integers(count), 10 ** random.uniform(-6, 4)
        most = cost * random.choice([1, count - 1])
        size, apart = 10 ** random.uniform(-3, 12), 10 ** random.uniform(-16, 0)
        linear = size * (1 + apart * random.normal(size=count))
        low, high, found = np.full(count, -cost), np.zeros(count), np.empty(count)
        low[own], high[own] = 0.0, most
        solve_row(linear, 10 ** random.uniform(-3, 9), own, cost, most, found)
        assert abs(found.sum()) <= 1e-14 * most
        assert (found >= low).all()
        assert (found <= high).all()
