"""The interior-point method on both array libraries, and the solvers that need it."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from maxmargin import SVC, Gram, duals
from maxmargin.backends import interior_point
from maxmargin.backends.cpu.dual.kkt import KKTScan, kkt_scan
from maxmargin.backends.interior_point import Dense, OnRows
from maxmargin.backends.low_rank import LowRank, PivotedCholesky
from maxmargin.backends.threads import StoppedError, Workers
from maxmargin.kernels import RBF, Polynomial, Sigmoid, exp
from maxmargin.solvers import Watch
from maxmargin.solvers.dual import certified, near_level, smo
from maxmargin.solvers.dual.near_level import NearLevel


def _array(library):
    if library == "torch":
        return pytest.importorskip("torch").tensor
    return np.array


def _programme(groups, m):
    """An ill-conditioned programme, begun at a point of which most is at a wall."""
    random = np.random.default_rng(groups)
    A = random.normal(size=(m, m)) * np.geomspace(1, 1e-7, m)
    lower, upper = -np.abs(random.normal(size=m)), np.abs(random.normal(size=m))
    b = np.where(random.random(m) < 0.5, lower, upper)
    b[:6] = 0.5 * (lower + upper)[:6]
    member = np.zeros((m, groups))
    if groups:
        member[np.arange(m), np.arange(m) % groups] = 1.0
    return A @ A.T, random.normal(size=m), b, lower, upper, member


@pytest.mark.slow
@pytest.mark.parametrize("tile", [512, 64])  # one tile of a factor, and several
@pytest.mark.parametrize("groups", [0, 1, 2])
@pytest.mark.parametrize("library", ["numpy", "torch"])
def test_an_interior_point_ends_on_the_face(monkeypatch, library, groups, tile):
    """Of an ill-conditioned programme, with every variable at a wall exactly."""
    monkeypatch.setattr(interior_point, "_TILE", tile)
    array, target, m = _array(library), 1e-6, 200
    H, v, b, lower, upper, member = _programme(groups, m)
    workers = Workers(2)
    found = interior_point.minimise(
        *(array(a) for a in (H, v, b, lower, upper, member)), target, workers
    )
    assert type(found.x) is type(array([0.0]))
    x, score = np.asarray(found.x), np.asarray(found.v).copy()
    assert found.violation <= target
    np.testing.assert_allclose(score, v - H @ (x - b), atol=1e-9 * m)
    # what the sums lack, given to one variable, changes no score by more than the target
    assert np.abs(member.T @ (x - b)).sum() * H.diagonal().max() <= target
    assert (lower <= x).all()
    assert (x <= upper).all()
    free = (lower < x) & (x < upper)
    for own in member.T > 0:
        score[own] -= score[own & free].mean()
    assert (score[x < upper] <= target).all()
    assert (score[x > lower] >= -target).all()
    assert 0 < np.count_nonzero(free) < m
    indefinite = (array(a) for a in (-H, v, b, lower, upper, member))
    assert interior_point.minimise(*indefinite, target) is None


def test_sums_that_all_variables_at_their_walls_would_break_are_kept():
    """A loose target puts everything at a wall, and nothing violates there but the sum."""
    m = 8
    start = np.array([1.0] + (m - 1) * [0.0])
    found = interior_point.minimise(
        1e6 * np.eye(m),
        1e3 * np.arange(m),
        start,
        np.zeros(m),
        np.full(m, 2.0),
        np.ones((m, 1)),
        1.0,
    )
    assert found.x.sum() == pytest.approx(1.0, abs=1e-5)


def test_sums_are_given_back_to_as_many_as_it_takes():
    """All at their walls, and more to give back than any of them can take."""
    x, scores = np.array([1.0, 1.0, 0.0, 1.0]), np.array([3.0, -1.0, 0.0, 1.0])
    ends = np.zeros(4), np.ones(4)
    found = interior_point.Minimum(x, scores, 0.0, 1)
    start = np.array([0.5, 0.5, 0.0, 0.3])
    evened = near_level._evened(found, start, *ends, np.ones(4), np.ones((4, 1), dtype=bool))
    np.testing.assert_allclose(evened, [1.0, 0.0, 0.0, 0.3], atol=1e-15)
    free = found._replace(x=np.array([1.0, 0.5, 0.4, 0.0]))
    evened = near_level._evened(free, start, *ends, np.ones(4), np.ones((4, 1), dtype=bool))
    np.testing.assert_allclose(evened.sum(), start.sum())


def test_a_stop_is_heard_between_tiles(monkeypatch):
    monkeypatch.setattr(interior_point, "_TILE", 64)
    calls = []

    def stopped():
        calls.append(1)
        return len(calls) > 3

    with pytest.raises(StoppedError):
        interior_point.minimise(*_programme(1, 200), 1e-6, Workers(1, stopped))


@pytest.mark.slow
def test_the_cpu_does_without_torch():
    code = "import maxmargin.solvers.dual.near_level, sys; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def _crowd(n):
    """Points and a target that a smooth kernel cannot follow: many variables stay free."""
    random = np.random.default_rng(0)
    X = random.normal(size=(n, 4))
    return X, np.sin(2 * X[:, 0]) + X[:, -1] * X[:, 0] + 0.3 * random.normal(size=n)


N = 150
rows, (X, t) = np.arange(N), _crowd(N)
sign, weight = np.where(t > 0, 1.0, -1.0), np.linspace(0.0, 2.0, N)
PROBLEMS = {
    "SVC": duals.c_svc(rows, sign, 10.0 * weight),
    "SVC, no bias": duals.c_svc(rows, sign, 10.0 * weight, bias=False),
    "nu-SVC": duals.nu_svc(rows, sign, weight, 0.3),
    "nu-SVC, no bias": duals.nu_svc(rows, sign, weight, 0.3, bias=False),
    "hard margin": duals.hard_margin(rows, np.where(X[:, 0] > 0, 1.0, -1.0), weight),
    "hard margin, no bias": duals.hard_margin(rows, sign, weight, bias=False),
    "SVR": duals.epsilon_svr(rows, t, 10.0 * weight, 0.1),
    "SVR, no tube": duals.epsilon_svr(rows, t, 10.0 * weight, 0.0),
    "SVR, no tube, no bias": duals.epsilon_svr(rows, t, 10.0 * weight, 0.0, bias=False),
    "nu-SVR": duals.nu_svr(rows, t, weight, 0.3),
    "nu-SVR, no bias": duals.nu_svr(rows, t, weight, 0.3, bias=False),
    "one-class": duals.one_class(rows, weight, 0.3),
}


@pytest.mark.parametrize("low_rank", [False, True])
@pytest.mark.parametrize("name", PROBLEMS)
def test_newton_alone_solves_every_machine(name, low_rank):
    kernel = Polynomial(degree=2, coef0=1.0) if low_rank else RBF(0.5)
    problem, gram, goal = PROBLEMS[name], Gram.of(X, kernel), 1e-9
    near, beta, found = NearLevel(problem.over(gram)), problem.start, KKTScan.empty(len(problem))
    assert len(near.parts) == (2 if "no tube" in name else 1)
    for _ in range(20):
        decision = gram.matvec(problem.on_rows(beta, gram.n))
        violation = kkt_scan(problem.variables, problem.n_groups, beta, decision, found)
        if violation <= goal:
            break
        near.cost(beta, found.v, 1e9)
        assert near.low_rank == low_rank
        beta, before, steps = near.descend(beta, decision, goal)
        assert before == violation
        assert steps > 0
    assert violation <= goal
    assert (beta >= problem.lower).all()
    assert (beta <= problem.upper).all()
    for j in range(problem.n_groups):
        own = problem.group == j
        drift = (beta - problem.start)[own].sum()
        assert drift == pytest.approx(0.0, abs=1e-12 * np.abs(beta).sum())
    if "no tube" in name:  # what two variables on a row share, one of them has
        assert not (beta[:N] * beta[N:]).any()


def test_newton_leaves_what_it_cannot_do():
    problem = PROBLEMS["SVC"]
    for gram in (Gram.of(X, Sigmoid(gamma=3.0, coef0=-1.0)), Gram.of(X, RBF(0.5), memory=0)):
        near_level_always = 0 if gram.memory == 0 else near_level._ALWAYS
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(near_level, "_ALWAYS", near_level_always)
            start = problem.start
            alpha, _, steps = NearLevel(problem.over(gram)).descend(start, np.zeros(gram.n), 1e-6)
        assert steps == 0
        np.testing.assert_array_equal(alpha, start)


@pytest.mark.slow
@pytest.mark.parametrize(("n", "solver"), [(400, "SMO"), (1100, "engine")])
def test_what_crawls_is_finished_by_newton(monkeypatch, n, solver):
    """A kernel of rank 70 with values of 1e8: steps of two get nowhere."""
    assert (n >= certified._ENGINE_FROM) == (solver == "engine")
    points, rule = _crowd(n)
    kernel = Polynomial(degree=4, coef0=100.0, gamma=0.25)
    model = SVC(C=10.0, kernel=kernel, max_iter=300 * n if solver == "engine" else 400 * n)
    fitted = model.fit(points, rule > 0)
    assert fitted.certificate_.converged
    again = clone(model).fit(points, rule > 0)
    np.testing.assert_array_equal(again.dual_coef_, fitted.dual_coef_)
    monkeypatch.setattr(near_level.Pace, "crawls", lambda self, cost: False)
    with pytest.warns(ConvergenceWarning):
        crawling = clone(model).fit(points, rule > 0)
    assert crawling.certificate_.status == "max_iter"
    assert crawling.certificate_.kkt_violation > 1.0


def test_a_factor_of_low_rank_is_the_matrix():
    """And systems with it keep their digits where the diagonal spans twenty orders."""
    random = np.random.default_rng(0)
    points = random.normal(size=(60, 3)) * np.where(np.arange(60) % 7, 1.0, 300.0)[:, None]
    K = (points @ points.T + 1.0) ** 2  # rank 10, values from 1 to 1e11
    factor = PivotedCholesky(K.__getitem__, K.diagonal())
    assert not factor.grow(1e-12, most=9)
    assert factor.grow(1e-12, most=12)
    assert 10 <= factor.rank <= 12
    unit = np.sqrt(K.diagonal())
    lacking = np.abs(factor.L @ factor.L.T - K) / np.outer(unit, unit)
    assert lacking.max() < 1e-12
    rest = 1e-3 * random.random(60)
    diagonal = 10.0 ** random.uniform(-10, 10, 60)
    x = random.normal(size=(60, 2)) / np.sqrt(diagonal)[:, None]
    whole = LowRank(factor.L, rest)
    right = np.column_stack([whole @ column for column in x.T]) + diagonal[:, None] * x
    found = whole.factorised(diagonal)(right)
    residual = np.column_stack([whole @ column for column in found.T])
    residual += diagonal[:, None] * found - right
    assert (np.abs(residual) <= 1e-9 * np.abs(right).max()).all()


def test_a_factor_grows_as_long_as_it_is_cheaper_than_the_matrix():
    """Products of pairs of six columns that hardly vary: rank 6 at first sight, and 21 in all."""
    points = 5.0 + 0.01 * np.random.default_rng(0).normal(size=(300, 6))
    labels = np.where(np.arange(300) % 2, 1.0, -1.0)
    problem = duals.c_svc(np.arange(300), labels, np.full(300, 10.0))
    near = NearLevel(problem.over(Gram.of(points, Polynomial(degree=2, coef0=0.0, gamma=1.0))))
    start = problem.start
    near.cost(start, labels, np.inf)
    assert near.low_rank
    assert near.factor.rank == 6
    near.promised = 0.0  # the answer by that factor was not one by the matrix
    near.descend(start, np.zeros(300), 1e-3)
    assert near.low_rank
    assert 12 < near.factor.rank <= 21


@pytest.mark.parametrize("orientation", [1.0, -1.0])
def test_two_variables_on_a_row_are_solved_for_as_one(orientation):
    random = np.random.default_rng(0)
    A = random.normal(size=(8, 8))
    K, row = A @ A.T, np.array([3, 0, 7, 1, 3, 5, 0, 2, 4, 6])  # rows 0 and 3 twice
    sign = np.where(np.arange(10) > 5, orientation, 1.0)
    H = sign[:, None] * K[np.ix_(row, row)] * sign
    curvature = OnRows(Dense(K), row, sign)
    x, diagonal = random.normal(size=(10, 2)), 10.0 ** random.uniform(-6, 6, 10)
    np.testing.assert_allclose(curvature @ x[:, 0], H @ x[:, 0], rtol=1e-12)
    np.testing.assert_allclose(curvature.diagonal(), H.diagonal(), rtol=1e-12)
    found = curvature.factorised(diagonal)(x)
    np.testing.assert_allclose(found, np.linalg.solve(H + np.diag(diagonal), x), rtol=1e-6)


def test_outlying_rows_do_not_take_every_step():
    """Where steps crawl, every other one begins with the row that has most to gain."""
    points, rule = _crowd(100)
    points[:3] *= 1e3
    gram = Gram.of(points, Polynomial(degree=2, coef0=1.0))
    gram.require(np.arange(100))
    problem = duals.c_svc(np.arange(100), np.where(rule > 0, 1.0, -1.0), np.full(100, 10.0))
    problem = problem.over(gram)

    def after(steps, scaled):
        state = smo._State.begin(problem)
        state.advance(1e-3, 300)
        state.advance(1e-3, steps, 300 if scaled else -1)
        return state

    one, two = after(1, True), after(2, True)
    slope = one.v - one.v[one.may_fall].min()
    gain = np.where(one.may_rise & (slope > 0), slope**2 / one.diagonal, -np.inf)
    assert np.argmax(gain) != np.argmax(np.where(one.may_rise, one.v, -np.inf))
    assert two.beta[np.argmax(gain)] != one.beta[np.argmax(gain)]
    assert after(2, False).beta[np.argmax(gain)] == one.beta[np.argmax(gain)]


@pytest.mark.slow
def test_float32_that_leads_astray_is_left_early(monkeypatch):
    """Of rank 15 or so, with C=1e5: what float32 takes for the optimum is 1e5 times off."""
    random = np.random.default_rng(0)
    points = random.normal(size=(1500, 2))
    labels = np.sin(3 * points[:, 0]) + 0.5 * random.normal(size=1500) > 0
    model = SVC(C=1e5, kernel=exp(2.0 * RBF(1.0)), max_iter=3_000_000, n_jobs=1)
    assert model.fit(points, labels).certificate_.converged
    monkeypatch.setattr(near_level.Pace, "led_astray", lambda self: None)
    assert 2 * model.n_iter_[0] < clone(model).fit(points, labels).n_iter_[0]


@pytest.mark.slow
def test_a_hopeless_problem_is_given_up(monkeypatch):
    """Kernel values of 1e27 beside those of 1: float64 knows no optimum, and says so in time."""
    monkeypatch.setattr(near_level, "_HOPELESS", 1e8)
    monkeypatch.setattr(smo._StallWatch, "unchanged", lambda *args: False)  # ends of their own
    monkeypatch.setattr(smo._State, "possible", lambda *args: True)
    random = np.random.default_rng(3)
    points = random.normal(size=(300, 3))
    points[:30] *= 1e9
    labels = random.random(300) > 0.5
    model = SVC(C=1e4, kernel=Polynomial(degree=2, coef0=0.5), max_iter=500_000)
    with pytest.warns(ConvergenceWarning):
        soon = clone(model).fit(points, labels)
    assert soon.certificate_.status == "stalled"
    monkeypatch.setattr(near_level.Pace, "hopeless", False)
    with pytest.warns(ConvergenceWarning):
        assert soon.n_iter_[0] < model.fit(points, labels).n_iter_[0]


@pytest.mark.slow
def test_hulls_too_near_for_float64_are_given_up_in_time(monkeypatch):
    """Neither Newton's steps nor many of two can tell a distance below the rounding of the scores.

    Random labels in the plane, and a kernel rich enough to keep the hulls apart, but for rounding.
    """
    monkeypatch.setattr(certified, "_TRIED", 0)
    model = SVC(C=np.inf, kernel=Polynomial() * RBF(1.5))
    usual, given_up, ended = certified._Attempt._is_below_rounding, [], []
    for seed in (0, 2, 4, 5):  # a rounding decides which of them it is about
        random = np.random.default_rng(seed)
        points, labels = random.normal(size=(300, 2)), random.integers(0, 2, 300)
        steps = []
        for rule in (
            lambda *args: given_up.append(usual(*args)) or given_up[-1],
            lambda *args: False,
        ):
            monkeypatch.setattr(certified._Attempt, "_is_below_rounding", rule)
            with pytest.warns(ConvergenceWarning):
                model.fit(points, labels)
            assert model.certificate_.status == "stalled"
            steps.append(int(model.n_iter_[0]))
        if any(given_up):
            ended.append(steps)
        given_up.clear()
    soon, late = np.sum(ended, axis=0)
    assert soon < 0.8 * late


@pytest.mark.slow
def test_smo_goes_the_same_way_in_slices_of_any_length(monkeypatch):
    """How many steps a slice of time holds decides nothing: not even when they crawl."""
    points, rule = _crowd(300)
    points[:3] *= 1e3
    gram = Gram.of(points, Polynomial(degree=2, coef0=1.0))
    problem = duals.c_svc(np.arange(300), np.where(rule > 0, 1.0, -1.0), np.full(300, 10.0))
    watch = Watch(1e-9, max_iter=20_001)
    one = smo.SMO().solve(problem.over(gram), watch)
    monkeypatch.setattr(smo, "_FIRST_SLICE", 7 * 300)
    monkeypatch.setattr(smo, "_SLICE_SECONDS", 0.0)
    other = smo.SMO().solve(problem.over(gram), watch)
    assert one.n_iter == other.n_iter
    np.testing.assert_array_equal(one.beta, other.beta)


@pytest.mark.parametrize(("gap", "ended"), [(1e-38, False), (np.inf, False), (100.0, True)])
def test_steps_that_are_nothing_beside_the_gap_are_the_end(gap, ended):
    """With kernel values of 1e52 the objective grows by its own size again and again, to 1e-37."""
    watch, values = smo._StallWatch(50), iter((1e-38, 2e-38))
    state = SimpleNamespace(objective=lambda: (-next(values), 1e-38), gap=lambda: gap)
    assert not watch.unchanged(state, watch.patience)
    assert watch.unchanged(state, 2 * watch.patience) is ended
