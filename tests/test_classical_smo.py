"""The textbooks' methods that move some variables at a time: each certified, watched, stopped."""

from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.optimize import minimize

from maxmargin import SVC, SVR, Gram, NuSVC, NuSVR, OneClassSVM, Trace, duals
from maxmargin.kernels import RBF, Linear
from maxmargin.solution import Status
from maxmargin.solvers import (
    SMO,
    Chunking,
    CoordinateAscent,
    Decomposition,
    Newton,
    Platt,
    ProjectedConjugateGradients,
    Watch,
    WorkingSet,
    coordinate_ascent,
    solve_certified,
    two_variable_step,
)
from maxmargin.solvers.classical.subproblem import subproblem
from maxmargin.solvers.select import DUAL_METHODS
from maxmargin.testing import check_solver, problem_bank

RANDOM = np.random.default_rng(3)
X = RANDOM.normal(size=(80, 3))
y = np.where(X[:, 0] + X[:, 1] * X[:, 2] + 0.3 * RANDOM.normal(size=80) > 0, 1, -1)
target = np.sin(2 * X[:, 0]) + 0.1 * RANDOM.normal(size=80)
NAMES = ["coordinate_ascent", "platt", "chunking", "projected_conjugate_gradients", "decomposition"]


@pytest.mark.parametrize(
    ("method", "nasty", "problems"),
    [
        (SMO(selection="first_order"), True, 75),
        (ProjectedConjugateGradients(), True, 75),
        (Chunking(), True, 75),
        (Chunking(size=8, inner=SMO()), False, 24),
        (Decomposition(), True, 75),
        (Decomposition(size=30, inner=ProjectedConjugateGradients()), False, 24),
        (Platt(), False, 18),
        (CoordinateAscent(), False, 6),
        (CoordinateAscent("random"), False, 6),
        (CoordinateAscent("greatest"), False, 6),
        (Decomposition(size=20, inner=CoordinateAscent()), False, 6),
    ],
    ids=str,
)
def test_the_contract_of_a_solver(method, nasty, problems):
    """A first-order method meets the ill-conditioned problems, too, but in its own time."""
    assert len(check_solver(method, nasty=nasty)) == problems


@pytest.mark.parametrize("name", DUAL_METHODS)
def test_three_points_by_hand(name):
    """x = 0 (-), 1 (+), 1.5 (+), C = 10: the first two carry it, w = 2, b = -1, margin 1/2."""
    model = SVC(kernel="linear", C=10.0, solver=name, tol=1e-4)
    if name == "coordinate_ascent":
        with pytest.raises(ValueError, match="fit_intercept=False"):
            model.fit([[0.0], [1.0], [1.5]], [-1, 1, 1])
        return
    model.fit([[0.0], [1.0], [1.5]], [-1, 1, 1])
    assert model.certificate_.converged
    alpha = np.zeros(3)
    alpha[model.support_] = np.abs(model.dual_coef_[0])
    np.testing.assert_allclose(alpha, [2.0, 2.0, 0.0], atol=2e-3)
    assert model.coef_[0, 0] == pytest.approx(2.0, abs=2e-3)
    assert model.intercept_[0] == pytest.approx(-1.0, abs=2e-3)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "machine", [SVC(C=2.0), NuSVC(nu=0.5), SVR(C=2.0), NuSVR(C=2.0), OneClassSVM(nu=0.3)], ids=str
)
def test_every_machine_by_name(name, machine):
    """Certified and as good as the default, or refused with a method that can."""
    labels = target if isinstance(machine, SVR | NuSVR) else y
    if name == "coordinate_ascent":
        with pytest.raises(ValueError, match='solver="smo"') as refusal:
            machine.set_params(solver=name).fit(X, labels)
        alone = "fit_intercept=False" in str(refusal.value)
        assert alone == isinstance(machine, SVC | SVR)
        if not alone:
            return
        machine = type(machine)(C=2.0, fit_intercept=False)
    certificate = machine.set_params(solver=name).fit(X, labels).certificate_
    other = machine.set_params(solver="auto").fit(X, labels).certificate_
    assert certificate.converged
    room = 1e-9 * abs(other.primal)
    assert certificate.dual <= other.primal + room
    assert other.dual <= certificate.primal + room


def test_what_cannot_be_solved_is_refused_with_what_can():
    rows, ones = np.arange(80), np.ones(80)
    gram = Gram.of(X, RBF(1.0))
    unbounded = duals.c_svc(rows, y.astype(float), np.inf * ones).over(gram)
    for method in (ProjectedConjugateGradients(), Chunking()):
        with pytest.raises(ValueError, match=r"no maximum. Use a finite C"):
            method.solve(unbounded)
    assert SVC(C=np.inf, gamma=2.0, solver="chunking").fit(X, y).certificate_.converged
    with pytest.raises(ValueError, match='solver="coordinate_ascent"'):
        SVC(fit_intercept=False, solver="platt").fit(X, y)
    with pytest.raises(ValueError, match="'greatest'; got 'best'"):
        CoordinateAscent("best")
    with pytest.raises(ValueError, match="'first_order'; got 'third'"):
        SMO(selection="third")


@pytest.mark.parametrize("name", NAMES)
def test_a_trace_has_every_step(name):
    trace, bias = Trace(limit=100_000), name != "coordinate_ascent"
    model = SVC(C=5.0, solver=name, fit_intercept=bias, tol=1e-2, callback=trace).fit(X, y)
    records = trace.records[0]
    assert len(records) > 3
    dual = trace.curve("dual")
    assert (np.diff(dual) >= -1e-10 * abs(dual[-1])).all()
    assert trace.curve("gap")[-1] <= 1.0 < trace.curve("gap")[0]
    assert records[-1].steps == model.n_iter_[0]
    for before, after in pairwise(records):
        moved = np.flatnonzero(before.variables != after.variables)
        assert np.isin(moved, after.working_set).all()
        assert after.objective >= after.dual


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.filterwarnings("ignore:Solver terminated early", "ignore:.*time_limit")
def test_limits_end_a_run_on_a_feasible_point(name):
    bias = name != "coordinate_ascent"
    model = SVC(C=5.0, solver=name, fit_intercept=bias, tol=1e-8)
    limited = model.set_params(max_iter=5).fit(X, y)
    assert limited.certificate_.status is Status.MAX_ITER
    assert limited.n_iter_[0] == 5
    assert limited.certificate_.infeasibility < 1e-12
    stopped = model.set_params(max_iter=-1, time_limit=1e-3).fit(X, y)
    assert stopped.certificate_.status is Status.TIME_LIMIT
    assert stopped.certificate_.infeasibility < 1e-12


def test_a_stop_in_the_middle_of_a_sub_problem_keeps_what_was_found():
    """The driver looks on between the steps of the inner method, at the outer one's variables."""
    gram = Gram.of(X, RBF(1.0))
    problem = duals.c_svc(np.arange(80), y.astype(float), np.full(80, 5.0)).over(gram)
    run = Chunking(size=80).begin(problem, Watch(tol=1e-6))
    for _ in range(4):
        run.advance(1 << 62)
    assert run.n_iter == 0
    run.close()
    solution = run.solution(Status.INTERRUPTED)
    assert solution.n_iter == 4
    assert solution.beta.any()
    assert abs(solution.beta.sum()) < 1e-12
    np.testing.assert_allclose(run.decision, problem.decision(solution.beta), atol=1e-12)


def test_a_sub_problem_is_the_problem_with_the_others_held():
    """Also where groups, orientations and two variables on a row come in."""
    for name, gram, whole in problem_bank(nasty=False):
        problem = whole.over(gram)
        index = RANDOM.permutation(len(problem))[: len(problem) // 2]
        beta = SMO().solve(problem, Watch(max_iter=20)).beta
        part = subproblem(problem, index, beta, problem.decision(beta))
        inner = SMO().solve(part, Watch(tol=1e-5)).beta
        moved = beta.copy()
        moved[index] = inner

        def value(p, b):
            return 0.5 * p.on_rows(b) @ p.decision(b) + p.linear @ b

        change = value(part, inner) - value(part, part.start)
        assert value(problem, moved) - value(problem, beta) == pytest.approx(change, abs=1e-9), name
        for j in range(problem.n_groups):
            member = problem.group == j
            assert moved[member].sum() == pytest.approx(beta[member].sum(), abs=1e-9), name
        score = part.scores(part.decision(inner))
        np.testing.assert_allclose(score, problem.scores(problem.decision(moved))[index], atol=1e-9)


@pytest.mark.slow
def test_any_method_may_be_inside():
    inner = Decomposition(size=40, inner=WorkingSet())
    assert SVC(solver=Chunking(size=60, inner=inner)).fit(X, y).certificate_.converged


def test_chunks_and_working_sets_have_their_size():
    gram = Gram.of(X, RBF(1.0))
    problem = duals.c_svc(np.arange(80), y.astype(float), np.full(80, 5.0)).over(gram)
    for method in (Decomposition(size=6), Chunking(size=6)):
        run = method.begin(problem, Watch())
        _, found = run.scan()
        first = run.choose(found)
        assert len(first) == 6
        assert set(y[first]) == {-1, 1}
        while not run.beta.any():
            run.advance(1 << 62)
        support = np.flatnonzero(run.beta)
        chosen = run.choose(run.scan()[1])
        assert len(chosen) == 6 or isinstance(method, Chunking)
        assert np.isin(support, chosen).all() or isinstance(method, Decomposition)


def test_selection_of_the_first_order_takes_the_most_violating_pair():
    gram = Gram.of(X * [1.0, 4.0, 0.2], Linear())
    problem = duals.c_svc(np.arange(80), y.astype(float), np.ones(80)).over(gram)
    beta = SMO().solve(problem, Watch(max_iter=10)).beta
    problem = problem.started_from(beta)
    v = problem.scores(problem.decision(beta))
    rise, fall = problem.may_rise(beta), problem.may_fall(beta)
    worst = {int(np.argmax(np.where(rise, v, -np.inf))), int(np.argmin(np.where(fall, v, np.inf)))}
    pairs = {}
    for selection in ("first_order", "second_order"):
        after = SMO(selection=selection).solve(problem, Watch(max_iter=1)).beta
        pairs[selection] = set(np.flatnonzero(after != beta).tolist())
    assert pairs["first_order"] == worst != pairs["second_order"]


@pytest.mark.parametrize("y1", [-1.0, 1.0])
@pytest.mark.parametrize("y2", [-1.0, 1.0])
def test_two_variables_by_another_solver(y1, y2):
    """L, H and the new pair against the line in the box, sampled."""
    for _ in range(30):
        features, C = RANDOM.normal(size=(2, 2)), tuple(RANDOM.uniform(0.5, 2.0, size=2))
        a1, a2 = RANDOM.uniform(size=2) * C
        errors = tuple(3 * RANDOM.normal(size=2))
        K = features @ features.T
        step = two_variable_step((y1, y2), (a1, a2), errors, (K[0, 0], K[1, 1], K[0, 1]), C)
        new2 = np.linspace(0.0, C[1], 100_001)
        new1 = y1 * (step.zeta - y2 * new2)
        inside = (new1 >= 0) & (new1 <= C[0])
        ends = new2[inside].min(), new2[inside].max()
        np.testing.assert_allclose((step.L, step.H), ends, atol=1e-4)
        change = np.array([y1 * (new1 - a1), y2 * (new2 - a2)])
        dual = -np.array(errors) @ change - 0.5 * np.sum(change * (K @ change), axis=0)
        assert step.gain == pytest.approx(dual[inside].max(), abs=1e-3)
        assert step.gain >= dual[inside].max() - 1e-12
        assert y1 * step.after[0] + y2 * step.after[1] == pytest.approx(step.zeta, abs=1e-12)
        assert 0 <= step.after[0] <= C[0]
        clipped = min(max(step.unclipped, step.L), step.H)
        assert step.after[1] == pytest.approx(clipped, abs=1e-12)


def test_two_variables_without_curvature_go_to_the_better_end():
    same = two_variable_step((1, 1), (0.5, 0.5), (1.0, -1.0), (1.0, 1.0, 1.0), 2.0)
    assert same.after == (0.0, 1.0)
    assert same.unclipped == np.inf
    still = two_variable_step((1, -1), (0.5, 0.5), (1.0, 1.0), (1.0, 1.0, 1.0), 2.0)
    assert still.after == still.before == (0.5, 0.5)


@pytest.mark.parametrize("order", ["cyclic", "random", "greatest"])
def test_coordinate_ascent_of_any_function(order):
    Q = np.array([[3.0, 1.0, 0.5], [1.0, 2.0, 0.3], [0.5, 0.3, 1.0]])
    p = np.array([1.0, -2.0, 0.5])

    def concave(x):
        return p @ x - 0.5 * x @ Q @ x

    way = coordinate_ascent(concave, np.zeros(3), order=order)
    assert way.converged
    np.testing.assert_allclose(way.points[-1], np.linalg.solve(Q, p), atol=1e-4)
    assert (np.diff(way.values) >= 0).all()
    for step, i in zip(np.diff(way.points, axis=0), way.coordinates, strict=True):
        assert not np.delete(step, i).any()  # a staircase
    exact = coordinate_ascent(
        concave, np.zeros(3), order=order, maximise=lambda x, i: x[i] + (p - Q @ x)[i] / Q[i, i]
    )
    np.testing.assert_allclose(exact.points[:9], way.points[:9], atol=1e-6)
    box = np.array([[0.0, 1.0]] * 3)
    bounded = coordinate_ascent(concave, np.zeros(3), order=order, bounds=box)
    other = minimize(lambda x: -concave(x), np.zeros(3), bounds=box)
    assert bounded.values[-1] == pytest.approx(-other.fun, abs=1e-8)
    short = coordinate_ascent(concave, np.zeros(3), order=order, max_iter=2)
    assert not short.converged
    assert len(short.points) == 3


def test_orders_differ_and_the_greatest_improvement_is_that():
    gram = Gram.of(X, RBF(1.0))
    problem = duals.c_svc(np.arange(80), y.astype(float), np.ones(80), bias=False)
    ways = {}
    for method in (
        CoordinateAscent(),
        CoordinateAscent("random"),
        CoordinateAscent("random", random_state=1),
        CoordinateAscent("greatest"),
    ):
        run = method.begin(problem.over(gram), Watch())
        run.advance(1)
        ways[method] = run.measure().dual, run.working_set.tolist()
    duals_, sets = zip(*ways.values(), strict=True)
    assert max(duals_) == duals_[-1]
    assert sets[0] == [0]
    assert sets[1] != sets[2]
    steep = duals.c_svc(np.arange(2), np.ones(2), np.ones(2), bias=False)
    run = CoordinateAscent("greatest").begin(
        steep.over(Gram.of(np.array([[1.0], [0.1]]), Linear())), Watch()
    )
    run.advance(1)
    assert run.working_set.tolist() == [1]  # the slopes are equal, and the second bends less
    cut = coordinate_ascent(lambda x: -((x[2] - 1) ** 2), np.zeros(3), max_iter=2)
    assert not cut.converged  # nothing has changed, but a coordinate was left out


def test_bad_questions_of_coordinate_ascent():
    with pytest.raises(ValueError, match="no maximum along coordinate 1"):
        coordinate_ascent(lambda x: x[1] - x[0] ** 2, [0.0, 0.0])
    with pytest.raises(ValueError, match="finite, two for each of the 2"):
        coordinate_ascent(lambda x: -(x @ x), [0.0, 0.0], bounds=[(0, np.inf)] * 2)
    with pytest.raises(ValueError, match="order must be one of"):
        coordinate_ascent(lambda x: -(x @ x), [0.0, 0.0], order="steepest")
    with pytest.raises(ValueError, match="not between its bounds"):  # where F may be larger
        coordinate_ascent(lambda x: -(x @ x), [0.0, 0.0], bounds=[(1, 2)] * 2)
    with pytest.raises(ValueError, match="is -inf at the start"):
        coordinate_ascent(lambda x: -np.inf if x[0] <= 0 else np.log(x[0]) - x[0], [0.0, 1.0])


@pytest.mark.parametrize("method", [Chunking, Decomposition])
def test_options_of_sets_of_variables(method):
    for size in (1, 2.5, "all"):
        with pytest.raises(ValueError, match="size must be a whole number, two at least"):
            method(size=size)
    for inner in ("smo", SMO, Newton()):
        with pytest.raises(TypeError, match=r"inner must be a method for duals, such as SMO\(\)"):
            method(inner=inner)
    with pytest.raises(ValueError, match="eps is a part of a_2"):
        Platt(eps=-1.0)


def test_platt_is_told_apart_by_its_options():
    """The paper's eps is too coarse for a small tol, and the status says so; the seed is used."""
    gram = Gram.of(X[:25], RBF(1.0))
    problem = duals.c_svc(np.arange(25), y[:25].astype(float), np.full(25, 5.0))
    (coarse,), _ = solve_certified(gram, [problem], Platt(eps=1e-3), 1e-5)
    assert coarse.certificate.status is Status.STALLED
    (fine,), steps = solve_certified(gram, [problem], Platt(), 1e-5)
    assert fine.certificate.status is Status.CONVERGED
    (other,), others = solve_certified(gram, [problem], Platt(random_state=1), 1e-5)
    assert other.certificate.status is Status.CONVERGED
    assert steps != others


@pytest.mark.parametrize(
    ("after", "moves"), [(1.2, False), (1.3, True), (0.82, False), (0.7, True)]
)
def test_platt_takes_no_step_that_is_a_small_part_of_its_end(monkeypatch, after, moves):
    gram = Gram.of(X[:25], RBF(1.0))
    problem = duals.c_svc(np.arange(25), y[:25].astype(float), np.full(25, 5.0))
    run = Platt(eps=0.1).begin(problem.over(gram), Watch())
    step = SimpleNamespace(before=(1.0, 1.0), after=np.array([1.0, after]))
    monkeypatch.setattr(run, "_solved", lambda *given: step)
    monkeypatch.setattr(run, "move", lambda pair, values: None)
    # 0.1 (1 + after + 0.1): 0.23 and 0.24 above, 0.192 and 0.18 below
    assert run._take_step(0, 1, np.zeros(25), np.ones(25)) is moves
