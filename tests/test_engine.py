"""The working-set engine: it agrees with SMO and scikit-learn, in any memory, on any thread."""

import pickle
from functools import cache

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.svm
from sklearn.base import clone
from sklearn.datasets import load_digits, make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler
from sklearn.utils.extmath import safe_sparse_dot

from maxmargin import SVC, SVR, Gram, NuSVC, NuSVR, OneClassSVM, duals
from maxmargin.backends.cpu import operand
from maxmargin.backends.cpu.dual.momentum import _project_direction
from maxmargin.backends.cpu.dual.steps import BARRED, Block
from maxmargin.backends.threads import Workers
from maxmargin.evaluation import Definiteness, evaluate
from maxmargin.kernels import RBF, Laplacian, Linear, Polynomial, Sigmoid, as_kernel, exp
from maxmargin.progress import Monitor, ProblemMonitor
from maxmargin.solution import Solution, Status
from maxmargin.solvers import (
    SMO,
    Auto,
    DualMethod,
    Seed,
    SeededSMO,
    Watch,
    WorkingSet,
    solve_certified,
)
from maxmargin.solvers.dual import certified, working_set
from maxmargin.solvers.dual.method import Unbegun
from maxmargin.solvers.dual.small import SmallBatch
from maxmargin.testing import check_solver

N = 1200
X, y = make_classification(
    N, 12, n_informative=6, n_redundant=2, flip_y=0.1, class_sep=0.7, random_state=0
)
X = StandardScaler().fit_transform(X)
sign = np.where(y > 0, 1.0, -1.0)
target = np.sin(X[:, 0]) + 0.3 * X[:, 1] * X[:, 2] + 0.1 * sign
weight = np.where(np.arange(N) % 7 == 0, 0.0, 0.2 + np.arange(N) % 5)
rows = np.arange(N)
half = rows[::2]  # for regression, whose rows have two variables each


@pytest.fixture(params=["grown", "exchanged"])
def regime(request, monkeypatch):
    """Both ways of the engine, on problems that are small for a test's sake."""
    if request.param == "exchanged":
        monkeypatch.setattr(working_set, "_WHOLE", 0)
        monkeypatch.setattr(working_set, "LARGEST", 300)
        monkeypatch.setattr(working_set, "_ADDED", 100)
        monkeypatch.setattr(working_set, "_FIRST", 100)
        monkeypatch.setattr(operand, "_CHEAP", 0.0)  # rows are kept
    return request.param


@pytest.fixture
def engine_everywhere(monkeypatch):
    """Give the engine problems that SMO would get for their size."""
    monkeypatch.setattr(certified, "_ENGINE_FROM", 2)


@pytest.mark.parametrize("tol", [1e-3, 1e-6])
def test_the_problem_bank_is_solved_and_certified(regime, engine_everywhere, tol):
    evaluations = check_solver(Auto(), tol)
    for engine, smo in zip(evaluations, check_solver(SMO(), tol), strict=True):
        scale = abs(smo.certificate.dual) + 1e-3
        assert engine.certificate.dual == pytest.approx(
            smo.certificate.dual, abs=max(3e-2 * (tol / 1e-3), 1e-9) * scale
        )


PROBLEMS = {
    "C-SVC": duals.c_svc(rows, sign, np.full(N, 3.0)),
    "C-SVC, weighted": duals.c_svc(rows, sign, 3.0 * weight),
    "C-SVC, no bias": duals.c_svc(rows, sign, np.full(N, 3.0), bias=False),
    "nu-SVC": duals.nu_svc(rows, sign, np.ones(N), 0.4),
    "nu-SVC, no bias": duals.nu_svc(rows, sign, np.ones(N), 0.4, bias=False),
    "SVR": duals.epsilon_svr(half, target[half], np.full(N // 2, 5.0), 0.1),
    "SVR, no bias": duals.epsilon_svr(half, target[half], 5.0 * weight[half], 0.1, bias=False),
    "nu-SVR": duals.nu_svr(half, target[half], np.full(N // 2, 5.0), 0.3),
    "one-class": duals.one_class(rows, np.ones(N), 0.2),
}


def assert_same_optimum(one, other):
    """No two certificates may contradict each other: each dual is below the other's primal."""
    assert one.dual <= other.primal + 1e-12 * abs(other.primal)
    assert other.dual <= one.primal + 1e-12 * abs(one.primal)


@cache
def by_smo(name):
    gram = Gram.of(X, RBF(gamma=0.08))
    (evaluation,), _ = solve_certified(gram, [PROBLEMS[name]], SMO(), 1e-4)
    return evaluation


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("megabytes", [0.5, 64])
def test_every_machine_in_any_memory(regime, name, megabytes):
    gram = Gram.of(X, RBF(gamma=0.08), memory=int(megabytes * 2**20))
    (engine,), _ = solve_certified(gram, [PROBLEMS[name]], WorkingSet(), 1e-4)
    smo = by_smo(name)
    assert engine.certificate.status is Status.CONVERGED
    assert_same_optimum(engine.certificate, smo.certificate)
    assert engine.bias == pytest.approx(smo.bias, abs=2e-3)
    np.testing.assert_allclose(engine.decision, smo.decision, atol=2e-3)


def test_a_set_grows_without_room_for_float32_copies():
    rows = np.arange(30)
    problem = duals.c_svc(rows, np.where(rows % 2, 1.0, -1.0), np.ones(30))
    gram = Gram.of(X[:30], RBF(gamma=0.08), memory=500)
    (engine,), _ = solve_certified(gram, [problem], WorkingSet(), 1e-4)
    assert engine.certificate.converged


KERNELS = {
    "linear": Linear(),
    "polynomial": Polynomial(3, coef0=1.0, gamma=0.05),
    "laplacian": Laplacian(gamma=0.05),
    "sigmoid": Sigmoid(gamma=0.01, coef0=0.0),
    "sum": 0.5 * RBF(gamma=0.1) + 0.1 * Linear(),
    "product on columns": RBF(gamma=0.2).on([0, 1, 2]) * Polynomial(2, coef0=1.0).on([3, 4]),
    "exponential": exp(0.05 * Linear()),
    "conformal": RBF(gamma=0.1).conformal(lambda X: 1.0 / (1.0 + np.asarray(X[:, 0]).ravel() ** 2)),
    "feature map": Linear().after(lambda X: np.column_stack([X, X[:, :3] ** 2])),
    "function": lambda A, B: np.exp(-0.08 * ((A[:, None] - B) ** 2).sum(-1)),
}


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS.keys())
def test_every_kernel_family(regime, engine_everywhere, kernel):
    part = slice(0, 400)
    fast = SVC(kernel=kernel, C=2.0, tol=1e-4).fit(X[part], y[part])
    slow = sklearn.svm.SVC(kernel=fast.kernel_, C=2.0, tol=1e-4).fit(X[part], y[part])
    assert fast.certificate_.converged
    values, theirs = fast.decision_function(X), slow.decision_function(X)
    np.testing.assert_allclose(values, theirs, atol=5e-3 * max(1.0, np.abs(theirs).max()))


@pytest.mark.parametrize("container", [sp.csr_matrix, sp.csr_array, np.asarray, np.float32])
def test_sparse_dense_and_narrow_data(regime, container):
    mostly_zero = np.where(np.abs(X) > 1.2, X, 0.0)  # dense data that the engine reads as CSR
    fast = SVC(C=5.0, gamma=0.1, tol=1e-4).fit(container(mostly_zero), y)
    slow = sklearn.svm.SVC(C=5.0, gamma=0.1, tol=1e-4).fit(mostly_zero, y)
    assert fast.certificate_.converged
    values = fast.decision_function(container(mostly_zero))
    np.testing.assert_allclose(values, slow.decision_function(mostly_zero), atol=2e-3)


@pytest.mark.parametrize(
    ("fast", "slow"),
    [
        (SVC(C=20.0), sklearn.svm.SVC(C=20.0)),
        (NuSVC(nu=0.3), sklearn.svm.NuSVC(nu=0.3)),
        (SVR(C=5.0), sklearn.svm.SVR(C=5.0)),
        (NuSVR(nu=0.3, C=5.0), sklearn.svm.NuSVR(nu=0.3, C=5.0)),
        (OneClassSVM(nu=0.2), sklearn.svm.OneClassSVM(nu=0.2)),
    ],
    ids=lambda model: type(model).__module__.split(".")[0],
)
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_machines_agree_with_scikit_learn(regime, fast, slow, n_jobs):
    data, labels = load_digits(return_X_y=True)
    data = data / 16.0
    many = isinstance(fast, NuSVC | SVC)
    labels = labels % 3 if many else labels / 10.0
    if isinstance(fast, NuSVR | SVR):
        data, labels = data[::3], labels[::3]
    fast.set_params(tol=1e-4, n_jobs=n_jobs).fit(data, labels)
    slow.set_params(tol=1e-4).fit(data, labels)
    assert fast.certificate_.converged
    function = "decision_function" if hasattr(slow, "decision_function") else "predict"
    ours, theirs = getattr(fast, function)(data), getattr(slow, function)(data)
    np.testing.assert_allclose(ours, theirs, atol=2e-3 * np.abs(theirs).max())


def test_the_engine_is_what_large_problems_get():
    def solver(problem, k=0, scale=1.0):
        gram = Gram.of(X, scale * RBF(gamma=0.1))
        method = Auto().choose(problem.over(gram), k).method
        assert method.accepts(problem.over(gram)) is None
        return type(method)

    large = PROBLEMS["C-SVC"]
    assert solver(large) is WorkingSet
    assert solver(large.restricted(np.arange(300))) is SmallBatch
    assert solver(large.restricted(np.arange(300)), k=1) is SMO  # that the batch has left
    assert solver(duals.hard_margin(rows, sign, np.ones(N))) is SMO
    assert solver(large, k=11) is SMO  # where float32 has come to its end
    assert solver(large, scale=1e20) is SMO
    assert solver(large, scale=1e-20) is SMO


def test_rows_in_any_order_and_among_others():
    """A problem may sit on some rows of a larger matrix, in an order of its own."""
    order = np.random.default_rng(0).permutation(N)[:700]
    gram = Gram.of(X, RBF(gamma=0.1))
    shuffled = duals.c_svc(order, sign[order], np.full(700, 3.0))
    tidy = duals.c_svc(np.sort(order), sign[np.sort(order)], np.full(700, 3.0))
    for direct in (True, False):
        if direct:
            solution = WorkingSet().solve(shuffled.over(gram), Watch(1e-5))
            beta = solution.beta
        else:
            (evaluation,), _ = solve_certified(gram, [shuffled], WorkingSet(), 1e-5)
            beta = evaluation.beta
        (expected,), _ = solve_certified(gram, [tidy], SMO(), 1e-5)
        np.testing.assert_allclose(beta[np.argsort(order)], expected.beta, atol=1e-2)


def test_ill_conditioned_problems_end_in_newton_steps(regime):
    problem = duals.c_svc(rows, sign, np.full(N, 1e3))
    gram = Gram.of(X, Linear() + 1e-3 * RBF(gamma=0.5))
    (evaluation,), _ = solve_certified(gram, [problem], Auto(), 1e-3)
    assert evaluation.certificate.status is Status.CONVERGED


@pytest.mark.slow
def test_far_rows_keep_what_the_solver_found_only_where_it_cannot_matter(random):
    """Spoilt values near the margin are found out; a small error far away changes nothing."""
    n = 4000
    points = random.normal(size=(n, 5))
    labels = np.where(points[:, 0] + 0.5 * random.normal(size=n) > 0, 1.0, -1.0)
    gram = Gram.of(points, RBF(gamma=0.2))
    problem = duals.c_svc(np.arange(n), labels, np.ones(n)).over(gram)
    solution = WorkingSet().solve(problem)
    exact = evaluate(problem, Solution(solution.beta, 0, solution.status), 1e-3, PSD)
    trusted = evaluate(problem, solution, 1e-3, PSD)
    for name in ("primal", "dual", "gap", "kkt_violation"):
        ours, recomputed = getattr(trusted.certificate, name), getattr(exact.certificate, name)
        assert ours == pytest.approx(recomputed, rel=1e-9, abs=1e-9)
    spoilt = solution.decision + 0.05 * random.normal(size=n)
    doubted = evaluate(problem, Solution(solution.beta, 0, solution.status, spoilt), 1e-3, PSD)
    assert doubted.certificate.kkt_violation == pytest.approx(exact.certificate.kkt_violation)
    assert doubted.certificate.primal == pytest.approx(exact.certificate.primal)


PSD = Definiteness.PROVEN


class Given(DualMethod):
    """A method that has its answer already."""

    def __init__(self, answer):
        self.answer = answer

    def begin(self, problem, watch, pace=None):
        run = Unbegun(problem, watch)
        run.solution = lambda status: self.answer
        return run


class _Impatient(Monitor):
    """Says stop when asked for the n-th time."""

    def __init__(self, patience):
        super().__init__()
        self.left = patience

    def stopped(self):
        self.left -= 1
        return Status.INTERRUPTED if self.left < 0 else None


@pytest.mark.parametrize("patience", [0, 1, 2, 3, 5, 8, 13, 21])
@pytest.mark.parametrize("jobs", [1, 2])
def test_a_stop_at_any_time_leaves_a_consistent_state(regime, patience, jobs):
    gram = Gram.of(X, RBF(gamma=0.1))
    problem = PROBLEMS["C-SVC"]
    watch = Watch(monitor=ProblemMonitor(_Impatient(patience)), workers=Workers(jobs))
    solution = WorkingSet().solve(problem.over(gram), watch)
    if regime == "exchanged":  # a grown problem is over before anyone is asked
        assert solution.status is Status.INTERRUPTED
    assert (problem.lower <= solution.beta).all()
    assert (solution.beta <= problem.upper).all()
    assert solution.beta.sum() == pytest.approx(0.0, abs=1e-9)
    expected = gram.matvec(problem.on_rows(solution.beta, N))
    own = solution.decision if solution.decision is not None else np.zeros(N)
    np.testing.assert_allclose(own, expected, atol=2e-5)


def test_what_was_stopped_is_certified_from_its_own_values(monkeypatch):
    problem = PROBLEMS["C-SVC"].over(Gram.of(X, RBF(gamma=0.1)))
    furthest = problem.lower + problem.upper
    own = problem.decision(furthest) + 1e-4
    solution = Solution(furthest, 0, Status.TIME_LIMIT, own)
    seen = evaluate(problem, solution, 1e-3, Definiteness.PROVEN)
    np.testing.assert_allclose(seen.recomputed, own - 1e-4, atol=1e-9)  # that is soon done
    monkeypatch.setattr("maxmargin.evaluation._SOON", 0)
    seen = evaluate(problem, solution, 1e-3, Definiteness.PROVEN)
    np.testing.assert_array_equal(seen.recomputed, own)


@pytest.mark.parametrize("patience", [0, 1])
def test_a_stop_before_the_values_of_the_start_are_known_is_honest(monkeypatch, patience):
    """The start of a nu machine has many support vectors, and none of them is waited for."""
    gram, problem = Gram.of(X, RBF(gamma=0.1)), PROBLEMS["one-class"]
    monkeypatch.setattr("maxmargin.evaluation._SOON", 0)
    engine = Auto(monitor=_Impatient(patience), method=WorkingSet())
    (evaluation,), _ = solve_certified(gram, [problem], engine, 1e-3)
    assert evaluation.certificate.status is Status.INTERRUPTED
    assert evaluation.certificate.gap == np.inf
    assert evaluation.certificate.dual == -np.inf
    np.testing.assert_array_equal(evaluation.beta, problem.start)
    exact = gram.matvec(problem.on_rows(problem.start, N))
    assert exact.min() < -evaluation.bias < exact.max()


def test_the_word_of_a_stopped_solver_is_not_taken_for_convergence(monkeypatch):
    gram, problem = Gram.of(X, RBF(gamma=0.1)), PROBLEMS["C-SVC"]
    monkeypatch.setattr("maxmargin.evaluation._SOON", 0)

    fine = -problem.linear  # as if every gradient were zero
    stopped = Given(Solution(problem.start, 0, Status.TIME_LIMIT, fine))
    (evaluation,), _ = solve_certified(gram, [problem], stopped, 1e-3)
    assert evaluation.certificate.status is Status.TIME_LIMIT


def test_an_error_in_a_kernel_leaves_no_half_made_rows(regime):
    calls = []

    def kernel(A, B):
        calls.append(1)
        if len(calls) == 9:
            raise KeyboardInterrupt
        return np.exp(-0.1 * ((A[:, None] - B[None]) ** 2).sum(axis=2))

    some = slice(300)
    gram = Gram.of(X[some], as_kernel(kernel), memory=8 * 300**2 - 1)  # not all at once
    problem = duals.epsilon_svr(rows[some], target[some], np.full(300, 3.0), 0.05).over(gram)
    with pytest.raises(KeyboardInterrupt):
        WorkingSet().solve(problem)
    solution = WorkingSet().solve(problem)
    assert solution.status is Status.CONVERGED
    expected = gram.matvec(problem.on_rows(solution.beta, 300))
    np.testing.assert_allclose(solution.decision, expected, atol=2e-5)


def test_few_violators_among_many_are_found():
    quiet = np.where(rows == 5, 5.0, np.where(rows == 700, -5.0, 0.01 * np.cos(rows)))
    problem = duals.epsilon_svr(rows, quiet, np.full(N, 3.0), 0.5)
    gram = Gram.of(X, RBF(gamma=0.1))
    solution = WorkingSet().solve(problem.over(gram))
    assert solution.status is Status.CONVERGED
    assert solution.n_iter > 0


@pytest.mark.parametrize("seed", range(20))
def test_problems_of_a_few_points(seed):
    random = np.random.default_rng(seed)
    n = int(random.integers(1, 14))
    points, labels = random.standard_normal((n, 2)), random.choice([-1.0, 1.0], n)
    C, bias = np.full(n, 10.0 ** random.integers(-1, 3)), bool(seed % 2)
    gram = Gram.of(points, RBF(gamma=1.0))
    for problem in (
        duals.c_svc(np.arange(n), labels, C, bias=bias),
        duals.epsilon_svr(np.arange(n), random.standard_normal(n), C, 0.1, bias=bias),
        duals.nu_svr(np.arange(n), random.standard_normal(n), C, 0.5, bias=bias),
        duals.one_class(np.arange(n), np.ones(n), 0.5),
    ):
        problem = problem.over(gram)
        solutions = [method.solve(problem, Watch(1e-4)) for method in (WorkingSet(), SMO())]
        values = [
            evaluate(problem, solution, 1e-4, Definiteness.PROVEN).certificate
            for solution in solutions
        ]
        assert values[0].kkt_violation <= 1.1e-4
        assert_same_optimum(*values)


def test_a_gram_matrix_can_be_copied_and_sent():
    gram = Gram.of(X[:50], RBF(gamma=0.1))
    again = pickle.loads(pickle.dumps(gram))
    np.testing.assert_array_equal(again.rows([3]), gram.rows([3]))


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("container", [np.asarray, sp.csr_array], ids=["dense", "csr"])
def test_the_linear_kernel_on_tall_data_has_a_road_of_its_own(monkeypatch, bias, container):
    """The same optimum by way of the primal, which the dual's solver starts from."""
    from maxmargin.svm import primal_start

    starts, usual_start = [], primal_start.start_from_primal

    def remembered(*args):
        starts.append(usual_start(*args))
        return starts[-1]

    random = np.random.default_rng(3)
    X = container(np.round(random.normal(size=(900, 4)), 1))
    score = X @ np.array([1.0, -1.0, 0.5, 0.0]) + 0.2
    y = (score + random.normal(size=900) > 0).astype(int)
    weight = random.integers(0, 3, size=900).astype(float)
    for model, target in (
        (SVC(kernel="linear", C=3.0, fit_intercept=bias), y),
        (SVR(kernel="linear", C=3.0, epsilon=0.1, fit_intercept=bias), score + 0.3 * y),
    ):
        usual = clone(model).fit(X, target, sample_weight=weight)
        with monkeypatch.context() as patch:
            patch.setattr(primal_start, "_ROWS", 100)
            patch.setattr(primal_start, "start_from_primal", remembered)
            by_road = clone(model).fit(X, target, sample_weight=weight)
        assert by_road.certificate_.converged
        assert_same_optimum(by_road.certificate_, usual.certificate_)
        found, expected = (
            safe_sparse_dot(X, m.coef_.T, dense_output=True) for m in (by_road, usual)
        )
        np.testing.assert_allclose(found, expected, atol=1e-2)
        alpha = starts.pop().start
        assert not starts
        assert np.count_nonzero(alpha) > 100


def test_the_road_keeps_to_the_limit_on_steps_and_to_one_blas_thread(monkeypatch):
    from maxmargin.backends.threads import _blas_libraries
    from maxmargin.svm import primal_start

    passes = []

    class Watched(primal_start.Multipliers):
        def solve(self, risk, watch):
            threads = {library.num_threads for library in _blas_libraries(per_thread=False)}
            solution = super().solve(risk, watch)
            passes.append((solution.n_iter, threads))
            return solution

    monkeypatch.setattr(primal_start, "_ROWS", 100)
    monkeypatch.setattr(primal_start, "Multipliers", Watched)
    with pytest.warns(ConvergenceWarning, match="max_iter=2"):
        SVC(kernel="linear", max_iter=2).fit(X, y)
    assert passes == [(2, {1})]


def test_a_start_that_drifts_is_mended_between_the_bounds():
    """Variables at their bounds stay there: else the solver would have hundreds to put back."""
    problem = duals.c_svc(rows, sign, np.full(N, 3.0))
    beta = sign * np.where(rows % 3 == 0, 3.0, 0.0)
    free = rows % 50 == 1
    beta[free] = 1.5 * sign[free]
    beta[free] -= (beta.sum() - 1e-6) / free.sum()
    rounded = np.where(free, beta, beta - 1e-14 * np.sign(beta))  # at a bound but for last digits
    rounded[beta == 0] = 1e-14 * sign[beta == 0]
    start = problem.started_near(rounded).start
    np.testing.assert_array_equal(start[~free], beta[~free])
    assert start.sum() == pytest.approx(0.0, abs=1e-10)


def test_a_direction_of_rounding_keeps_the_constraint():
    """A stretch of steps that moved last digits only has a sum of the size of its entries."""
    ahead, change = np.array([3e-16, 4e-16, -5e-16, 1e-16]), np.zeros(4, dtype=np.float32)
    may = np.zeros(4, dtype=np.float32)
    barred = np.array([0.0, 0.0, 0.0, -BARRED], dtype=np.float32)
    room = np.array([1.0, 0.1, 0.1, 1.0])
    K, slot = np.eye(4, dtype=np.float32), np.arange(4)
    block = Block(K, slot, may, may, room, np.zeros(4), 2 * room, barred[None], may[None])
    left = _project_direction(True, block, ahead, change)
    assert left == 0.0
    assert abs(ahead.sum()) < 1e-30
    assert ahead[3] == 0.0


def test_a_solution_off_the_constraint_is_brought_back(monkeypatch):
    gram, problem = Gram.of(X, RBF(gamma=0.1)), PROBLEMS["C-SVC"]
    calls = []

    class Careless(SMO):
        def begin(self, problem, watch, pace=None):
            run = super().begin(problem, watch, pace)
            original = run.solution

            def spoilt(status):
                solution = original(status)
                calls.append(1)
                if len(calls) == 1:
                    inside = (solution.alpha > 0.1) & (solution.alpha < 2.9)
                    solution.beta[np.flatnonzero(inside)[0]] += 0.05
                return solution

            run.solution = spoilt
            return run

    (evaluation,), _ = solve_certified(gram, [problem], Careless(), 1e-3)
    assert len(calls) == 2
    assert evaluation.certificate.status is Status.CONVERGED
    assert evaluation.certificate.infeasibility < 1e-8


def test_nothing_off_the_constraint_is_called_trivial():
    """Zeros violate no KKT condition of the one-class machine, but its sum."""
    problem = duals.one_class(np.arange(30), np.ones(30), nu=0.5)
    zeros = Given(Solution(np.zeros(30), 1, Status.CONVERGED))
    (evaluation,), _ = solve_certified(Gram.of(X[:30], RBF(1.0)), [problem], zeros, 1.0)
    assert evaluation.certificate.status is Status.STALLED


@pytest.mark.slow
def test_seeded_smo_solves_what_it_takes_and_goes_on_where_the_seed_was():
    assert len(check_solver(SeededSMO(), 1e-5, nasty=False)) >= 10
    gram = Gram.of(X, RBF(gamma=0.5))
    problems = [duals.c_svc(rows, sign, np.full(N, C)).over(gram) for C in (1.0, 1.2)]
    seed = Seed.of(problems[0])
    first, seeded = (SeededSMO().solve(problem, seed=seed) for problem in problems)
    unseeded = SeededSMO().solve(problems[1])
    assert {solution.status for solution in (first, seeded, unseeded)} == {Status.CONVERGED}
    assert 0 < seeded.n_iter < 0.7 * unseeded.n_iter
    np.testing.assert_array_equal(seed.beta, seeded.beta)
    stopped = SeededSMO().solve(problems[1], Watch(max_iter=3))
    assert (stopped.status, stopped.n_iter) == (Status.MAX_ITER, 3)
