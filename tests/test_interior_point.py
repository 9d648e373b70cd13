"""The interior-point method on both array libraries, and the solvers that need it."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from maxmargin import SVC, Gram, duals
from maxmargin.backends import interior_point
from maxmargin.backends.cpu_steps import Findings, survey
from maxmargin.backends.threads import StoppedError, Workers
from maxmargin.kernels import RBF, Polynomial, Sigmoid
from maxmargin.solvers import certified, near_level
from maxmargin.solvers.near_level import NearLevel


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


def test_a_stop_is_heard_between_tiles(monkeypatch):
    monkeypatch.setattr(interior_point, "_TILE", 64)
    calls = []

    def stopped():
        calls.append(1)
        return len(calls) > 3

    with pytest.raises(StoppedError):
        interior_point.minimise(*_programme(1, 200), 1e-6, Workers(1, stopped))


def test_the_cpu_does_without_torch():
    code = "import maxmargin.solvers.near_level, sys; assert 'torch' not in sys.modules"
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


@pytest.mark.parametrize("name", PROBLEMS)
def test_newton_alone_solves_every_machine(name):
    problem, gram, goal = PROBLEMS[name], Gram.of(X, RBF(0.5)), 1e-9
    near, alpha, found = NearLevel(gram, problem), problem.start, Findings.empty(len(problem.sign))
    assert len(near.parts) == (2 if "no tube" in name else 1)
    for _ in range(20):
        decision = gram.matvec(problem.on_rows(alpha, gram.n))
        violation = survey(problem.variables, problem.n_groups, alpha, decision, found)
        if violation <= goal:
            break
        alpha, before, steps = near.descend(alpha, decision, goal)
        assert before == violation
        assert steps > 0
    assert violation <= goal
    assert (alpha >= problem.lower).all()
    assert (alpha <= problem.upper).all()
    for j in range(problem.n_groups):
        own = problem.group == j
        drift = problem.coefficient[own] @ (alpha - problem.start)[own]
        assert drift == pytest.approx(0.0, abs=1e-12 * np.abs(alpha).sum())
    if "no tube" in name:  # what two variables on a row share, one of them has
        assert not (alpha[:N] * alpha[N:]).any()


def test_newton_leaves_what_it_cannot_do():
    problem = PROBLEMS["SVC"]
    for gram in (Gram.of(X, Sigmoid(gamma=3.0, coef0=-1.0)), Gram.of(X, RBF(0.5), memory=0)):
        near_level_always = 0 if gram.memory == 0 else near_level._ALWAYS
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(near_level, "_ALWAYS", near_level_always)
            start = problem.start
            alpha, _, steps = NearLevel(gram, problem).descend(start, np.zeros(gram.n), 1e-6)
        assert steps == 0
        np.testing.assert_array_equal(alpha, start)


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
