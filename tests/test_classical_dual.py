"""Quadratic programmes, projected gradient, Frank-Wolfe and subgradient: the textbook's methods."""

import sys
import warnings
from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, make_blobs
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler

from maxmargin import SVC, SVR, Gram, LinearSVC, LinearSVR, NuSVC, OneClassSVM, Trace, duals
from maxmargin.backends.cpu.linear import Design
from maxmargin.evaluation import InseparableError
from maxmargin.kernels import RBF, Linear
from maxmargin.losses import Hinge, Logistic, MarginLoss, Shape, SquaredHinge
from maxmargin.progress import Monitor, ProblemMonitor
from maxmargin.risk import L1, RegularisedRisk
from maxmargin.solution import Status
from maxmargin.solvers import (
    SMO,
    FrankWolfe,
    PrimalProgramme,
    ProjectedGradient,
    QuadraticProgramme,
    Subgradient,
    Watch,
    WorkingSet,
)
from maxmargin.solvers.classical import qp
from maxmargin.solvers.classical.projected_gradient import projected
from maxmargin.testing import check_solver, problem_bank

METHODS = [QuadraticProgramme(), ProjectedGradient(), FrankWolfe()]
NAMES = ["qp", "projected_gradient", "frank_wolfe"]
line, signs = np.array([[0.0], [1.0], [1.5]]), np.array([-1.0, 1.0, 1.0])
blobs, of_blobs = make_blobs(40, centers=[[0, 0], [2, 1]], random_state=0)
of_blobs = np.where(of_blobs > 0, 1.0, -1.0)


def soft(X=blobs, y=of_blobs, C=1.0, kernel=None):
    problem = duals.c_svc(np.arange(len(y)), y, np.full(len(y), C))
    return problem.over(Gram.of(X, kernel or Linear()))


def agree(one, other):
    """Whether neither certified dual is above the other's primal."""
    a, b = one.certificate, other.certificate
    room = a.rounding + b.rounding
    return a.dual <= b.primal + room and b.dual <= a.primal + room


# -- all of them ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "tol", "nasty", "max_iter"),
    [
        (QuadraticProgramme(), 1e-6, True, -1),
        (ProjectedGradient(), 1e-3, False, -1),
        (FrankWolfe(), 1e-2, False, 500),
    ],
)
def test_the_problem_bank(method, tol, nasty, max_iter):
    evaluations = check_solver(method, tol, nasty, max_iter)
    known = check_solver(SMO(), 1e-6, nasty)
    assert len(evaluations) == len(known)
    assert all(agree(*pair) for pair in zip(evaluations, known, strict=True))
    solved = sum(evaluation.certificate.converged for evaluation in evaluations)
    assert solved > 0.5 * len(evaluations)


@pytest.mark.parametrize("name", NAMES)
def test_machines_take_their_names(name):
    X = StandardScaler().fit_transform(blobs)
    machines = [SVC(C=1.0), NuSVC(nu=0.5), SVR(), OneClassSVM(nu=0.3)]
    for machine in machines:
        machine.set_params(solver=name, tol=1e-2, kernel=RBF(0.5)).fit(X, of_blobs)
        known = type(machine)(**{**machine.get_params(deep=False), "solver": "smo", "tol": 1e-6})
        certificate = machine.certificate_
        assert certificate.converged
        assert machine.solver_ == name
        assert certificate.dual <= known.fit(X, of_blobs).certificate_.primal + 1e-9
        assert certificate.primal >= known.certificate_.dual - 1e-9


@pytest.mark.parametrize("name", NAMES)
def test_the_hard_margin(name):
    X = np.where(of_blobs[:, None] > 0, blobs + 3.0, blobs - 3.0)
    model = SVC(kernel="linear", C=np.inf, solver=name).fit(X, of_blobs)
    known = SVC(kernel="linear", C=np.inf).fit(X, of_blobs)
    assert model.certificate_.converged
    np.testing.assert_allclose(model.coef_, known.coef_, rtol=1e-2, atol=1e-3)
    with pytest.raises(InseparableError):
        SVC(kernel="linear", C=np.inf, solver=name, max_iter=5000).fit(
            [[0.0], [1.0], [2.0]], [0, 1, 0]
        )


@pytest.mark.parametrize("name", ["auto", "platt", "chunking", *NAMES])
def test_the_hard_margin_in_any_unit(name):
    random, y = np.random.default_rng(1), np.where(np.arange(40) % 2, 1.0, -1.0)
    for _ in range(4):
        X = 1e-6 * (random.normal(size=(40, 3)) + 3.0 * y[:, None])
        model = SVC(kernel="linear", C=np.inf, solver=name, tol=1e-2).fit(X, y)
        assert model.certificate_.converged  # with multipliers of 1e11, and sums of their rounding
        assert (y * (X @ model.coef_[0] + model.intercept_)).min() >= 1 - 2e-2


def test_programmes_see_which_wall_of_a_narrow_box_is_meant():
    weight = np.where(np.arange(40) % 5, 1.0, 1e-8)
    model = SVC(solver="qp", C=1.0, tol=1e-6).fit(blobs, of_blobs, sample_weight=weight)
    assert model.certificate_.converged


@pytest.mark.parametrize("method", METHODS)
def test_stops_and_traces(method):
    problem = soft(kernel=RBF(1.0))
    cut = method.solve(problem, Watch(1e-9, max_iter=3))
    assert (cut.status, cut.n_iter) == (Status.MAX_ITER, 3)
    stopped = Watch(1e-9, monitor=ProblemMonitor(Monitor(time_limit=1e-9)))
    assert method.solve(problem, stopped).status is Status.TIME_LIMIT
    for solution in (cut, method.solve(problem, stopped)):
        assert (solution.beta >= problem.lower).all()
        assert (solution.beta <= problem.upper).all()
        assert abs(solution.beta.sum()) < 1e-12
    trace = Trace()
    traced = SVC(kernel=RBF(1.0), solver=method, tol=1e-2, callback=trace).fit(blobs, of_blobs)
    plain = SVC(kernel=RBF(1.0), solver=method, tol=1e-2).fit(blobs, of_blobs)
    np.testing.assert_allclose(traced.dual_coef_, plain.dual_coef_, atol=1e-12)
    assert np.diff(trace.curve("steps")).min() > 0
    assert trace.curve("steps")[-1] == plain.n_iter_[0]
    records = trace.records[0][1:]
    assert all(r.variables.shape == (40,) and r.variables.any() for r in records)
    assert all(r.dual <= r.objective + 1e-9 for r in records)
    optimum = plain.certificate_.primal
    assert abs(records[-1].objective - optimum) <= 1e-3 * optimum
    if not isinstance(method, QuadraticProgramme):
        assert len(records[0].working_set)
        assert all(r.dual <= optimum + 1e-9 for r in records)
        assert all(r.objective >= plain.certificate_.dual - 1e-9 for r in records)


def test_a_listener_stops_interior_points():
    seen = []

    def listener(progress):
        seen.append(progress.method)
        return progress.steps == 2

    def failing(progress):
        if progress.steps:
            raise RuntimeError("a listener's own mistake")

    def watched_by(one):
        return Watch(monitor=ProblemMonitor(Monitor(listeners=[one], interval=0.0)))

    solution = QuadraticProgramme().solve(soft(), watched_by(listener))
    assert solution.status is Status.INTERRUPTED
    assert (solution.n_iter, seen[-1]) == (2, "QuadraticProgramme")
    assert solution.beta.any()
    with pytest.raises(RuntimeError, match="own mistake"):
        QuadraticProgramme().solve(soft(), watched_by(failing))


# -- quadratic programmes -------------------------------------------------------------------------


class Huberised(MarginLoss):
    """The hinge, rounded between margins 0 and 1: both kinds of slack."""

    name, smooth = "huberised", True
    shape = Shape(-1.0, 0.0, linear=1.0, quadratic=1.0)

    def value(self, u):
        return np.where(u < 0, 0.5 - u, 0.5 * np.maximum(0.0, 1.0 - u) ** 2)

    def slope(self, u):
        return -np.clip(1.0 - u, 0.0, 1.0)

    def curvature(self, u):
        return np.where((u >= 0) & (u < 1), 1.0, 0.0)


@pytest.mark.parametrize("scaling", [None, 1.0])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", Huberised()])
def test_the_primal_of_classifiers(loss, scaling):
    X, y = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    weight = np.where(np.arange(len(y)) % 5, 1.0, 0.0)
    model = LinearSVC(loss=loss, solver="qp", tol=1e-8, intercept_scaling=scaling)
    model.fit(X, y, sample_weight=weight)
    assert model.certificate_.converged
    assert model.solver_ == "qp"
    assert model.n_iter_ < 40


@pytest.mark.parametrize("loss", ["epsilon_insensitive", "squared_epsilon_insensitive"])
def test_the_primal_of_regressors(loss):
    X, y = load_diabetes(return_X_y=True)
    model = LinearSVR(loss=loss, epsilon=20.0, solver="qp", tol=1e-8).fit(X, y)
    assert model.certificate_.converged


@pytest.mark.parametrize("unit", [1e-6, 1e6])
def test_the_primal_in_any_unit(unit):
    for machine in (LinearSVC(loss="hinge"), LinearSVC(), LinearSVR(epsilon=0.1)):
        for C in (1e-3, 1.0, 1e3):
            machine.set_params(solver="qp", C=C).fit(unit * blobs, of_blobs)
            assert machine.certificate_.converged


def test_the_hard_margin_in_the_primal():
    """SVM1 has the weights of SVM2, and a proof where it has none."""
    X = np.where(of_blobs[:, None] > 0, blobs + 3.0, blobs - 3.0)
    cost = np.where(np.arange(40) % 7, np.inf, 0.0)
    risk = RegularisedRisk(Design(X), of_blobs, cost, Hinge())
    solution = PrimalProgramme().solve(risk, Watch(1e-8))
    assert solution.certificate.converged
    dual = SVC(kernel="linear", C=np.inf, tol=1e-8).fit(X, of_blobs, np.minimum(cost, 1.0))
    np.testing.assert_allclose(solution.theta[:2], dual.coef_[0], rtol=1e-5)
    np.testing.assert_allclose(solution.theta[2], dual.intercept_[0], rtol=1e-5)
    assert solution.certificate.primal == pytest.approx(dual.certificate_.primal, rel=1e-6)
    no_bias = RegularisedRisk(Design(X, constant=0.0), of_blobs, cost, Hinge())
    assert PrimalProgramme().solve(no_bias, Watch(1e-8)).certificate.converged
    with pytest.raises(InseparableError, match="coincide") as caught:
        PrimalProgramme().solve(RegularisedRisk(Design(blobs), of_blobs, cost, Hinge()))
    error = caught.value
    meet = [blobs[rows].T @ weights for rows, weights in (error.positive, error.negative)]
    np.testing.assert_allclose(*meet, atol=1e-6)
    assert (of_blobs[error.positive[0]] > 0).all()


def test_steps_of_the_primal_are_recorded():
    trace = Trace()
    LinearSVC(loss="hinge", solver="qp", callback=trace).fit(blobs, of_blobs)
    assert len(trace.curve("steps")) > 5
    assert trace.records[0][-1].variables.shape == (3,)
    assert trace.curve("gap")[-1] < 1e-6 < trace.curve("gap")[1]


def test_programmes_that_are_too_large_are_refused(monkeypatch):
    m = 50_000
    huge = duals.c_svc(np.arange(m), np.ones(m), np.ones(m))
    assert "50,000^3" in QuadraticProgramme().accepts(huge)
    assert "solver='auto'" in QuadraticProgramme().accepts(huge)
    monkeypatch.setattr(qp, "_LARGEST", 2)
    with pytest.raises(ValueError, match=r"40 dual variables.*Use solver='auto' or 'smo'"):
        SVC(solver="qp").fit(blobs, of_blobs)
    with pytest.raises(ValueError, match=r"3 features.*dual_descent"):
        LinearSVC(solver="qp").fit(blobs, of_blobs)
    monkeypatch.setattr(qp, "_LARGEST", 10**6)
    monkeypatch.setattr(qp.memory, "available", lambda: 1000)
    with pytest.raises(ValueError, match="as memory is now"):
        SVC(solver="qp").fit(blobs, of_blobs)


def test_what_the_primal_programme_does_not_take():
    rows = Design(blobs), of_blobs
    for risk, why in [
        (RegularisedRisk(*rows, np.ones(40), Logistic()), "lines and parabolas"),
        (RegularisedRisk(*rows, np.ones(40), SquaredHinge(), penalty=L1), "l2 penalty"),
        (RegularisedRisk(*rows, np.where(of_blobs > 0, 1.0, np.inf), Hinge()), "finite C"),
    ]:
        assert why in PrimalProgramme().accepts(risk)
        assert PrimalProgramme().accepts(risk).endswith(".")


def test_without_the_library(monkeypatch):
    monkeypatch.setitem(sys.modules, "clarabel", None)
    for machine in (SVC(solver="qp"), LinearSVC(solver="qp")):
        with pytest.raises(ImportError, match=r"pip install 'maxmargin\[qp\]'"):
            machine.fit(blobs, of_blobs)


# -- projected gradient ---------------------------------------------------------------------------


def test_the_lecture_s_algorithm_as_written_is_wrong():
    """Seed 004: clipping leaves the hyperplane, and nothing leads back."""
    written = ProjectedGradient(projection="clip", step_size=0.1)
    problem = soft(line, signs, C=10.0)
    solution = written.solve(problem)
    assert solution.status is Status.INFEASIBLE
    np.testing.assert_allclose(solution.alpha, [0.0, 4.0, 0.0], atol=1e-6)  # w = 4
    np.testing.assert_allclose(ProjectedGradient().solve(problem).alpha, [2.0, 2.0, 0.0], atol=1e-3)
    lucky = written.solve(soft(line, signs, C=1.0))
    assert lucky.status is Status.CONVERGED
    np.testing.assert_allclose(lucky.alpha, [1.0, 1.0, 0.0], atol=1e-6)
    machine = SVC(kernel="linear", C=10.0, solver=written)
    with pytest.warns(ConvergenceWarning, match="outside of the dual's constraints"):
        certificate = machine.fit(line, signs).certificate_
    assert not certificate.converged
    assert certificate.infeasibility == pytest.approx(4.0)
    assert "violated by 4:" in certificate.claim
    assert "bound nothing" in certificate.claim
    assert certificate.primal == pytest.approx(8.0)  # 1/2 w^2, for w = 4 and b = -3 have no loss
    assert certificate.gap == pytest.approx(certificate.primal - certificate.dual)
    assert certificate.relative_gap == np.inf
    assert certificate.rounding < 1e-9


@pytest.mark.parametrize(
    "method",
    [
        *METHODS,
        SMO(),
        FrankWolfe(away_steps=False),
        ProjectedGradient(step_size=0.01),
        ProjectedGradient(projection="clip"),
    ],
)
@pytest.mark.parametrize("bias", [True, False])
def test_a_trace_s_objective_is_that_of_its_w_and_b(method, bias):
    C = 3.0
    machine = SVC(kernel="linear", C=C, solver=method, fit_intercept=bias, trace=True, max_iter=80)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        machine.fit(blobs, of_blobs)
    trace = machine.trace_
    values = blobs @ trace.weights().T + trace.intercepts()
    losses = np.maximum(0.0, 1.0 - of_blobs[:, None] * values).sum(axis=0)
    objective = 0.5 * (trace.weights() ** 2).sum(axis=1) + C * losses
    known = slice(1, None) if isinstance(method, QuadraticProgramme) else slice(None)
    recorded = trace.curve("objective")[known]
    np.testing.assert_allclose(recorded, objective[known], rtol=1e-6)
    gap = recorded - trace.curve("dual")[known]
    np.testing.assert_allclose(trace.curve("gap")[known], gap, atol=1e-10 * C * len(blobs))


def test_as_written_it_claims_more_than_the_optimum():
    problem = soft()
    alpha = ProjectedGradient(projection="clip", step_size=0.01).solve(problem).alpha
    beta = of_blobs * alpha
    dual = alpha.sum() - 0.5 * beta @ problem.decision(beta)
    assert beta.sum() == pytest.approx(-0.93, abs=0.005)
    assert dual == pytest.approx(24.352, abs=5e-4)
    optimum = SVC(kernel="linear", solver="qp").fit(blobs, of_blobs).certificate_.primal
    assert optimum == pytest.approx(23.130, abs=5e-4)


@pytest.mark.parametrize("step_size", [0.01, lambda n: 0.05 / (1 + 0.001 * n)])
def test_given_steps_on_exact_projections_converge(step_size):
    known = SMO().solve(soft(), Watch(1e-6))
    found = ProjectedGradient(step_size=step_size).solve(soft(), Watch(1e-3))
    assert found.status is Status.CONVERGED
    values = [0.5 * b @ soft().decision(b) - of_blobs @ b for b in (known.beta, found.beta)]
    assert values[1] == pytest.approx(values[0], rel=1e-4)


@pytest.mark.parametrize("projection", ["exact", "clip"])
def test_steps_that_are_too_large_end_and_say_so(projection):
    method = ProjectedGradient(projection=projection, step_size=1.0)
    solution = method.solve(soft(), Watch(1e-3))
    assert solution.status in (Status.STALLED, Status.INFEASIBLE)


def test_without_a_constraint_clipping_is_exact():
    problem = replace(soft(), group=np.full(40, -1), bias_weights=np.empty(0))
    assert ProjectedGradient(projection="clip").solve(problem).status is Status.CONVERGED


def test_projections_are_the_nearest_points(random):
    for _, gram, problem in problem_bank(nasty=False):
        z = random.normal(size=len(problem)) * np.minimum(problem.upper - problem.lower, 9.0)
        near = projected(problem.over(gram), z)
        assert (near >= problem.lower).all()
        assert (near <= problem.upper).all()
        for j in range(problem.n_groups):
            of = problem.group == j
            assert near[of].sum() == pytest.approx(problem.start[of].sum(), abs=1e-9)
        # the angle to every other point, here to some, is not acute
        for other in (problem.start, projected(problem, random.normal(size=len(problem)))):
            assert (z - near) @ (other - near) <= 1e-9 * (1.0 + np.abs(z).sum())
        np.testing.assert_allclose(projected(problem, near), near, atol=1e-10)


def test_options_of_projected_gradient():
    with pytest.raises(ValueError, match="'exact' or 'clip'"):
        ProjectedGradient(projection="nearest")
    with pytest.raises(ValueError, match="positive number"):
        ProjectedGradient(step_size=-1.0)
    with pytest.raises(ValueError, match="positive number"):
        ProjectedGradient(step_size="inverse")
    for projection in ("exact", "clip"):
        with pytest.raises(ValueError, match="The size of step 1 is nan"):  # from 1 on
            ProjectedGradient(projection, step_size=lambda n: np.nan).solve(soft())


# -- Frank-Wolfe ----------------------------------------------------------------------------------


def test_steps_away_from_corners_end_the_zigzag():
    watch = Watch(1e-3, max_iter=300)
    problem = duals.one_class(np.arange(40), np.ones(40), 0.3).over(Gram.of(blobs, RBF(1.0)))
    runs = [FrankWolfe(away).begin(problem, watch) for away in (True, False)]
    for run in runs:
        while run.status is None and watch.left(run.n_iter):
            run.advance(1)
    away, towards = (run.measure() for run in runs)
    assert away.gap < 0.3 * towards.gap
    assert away.violation < 0.01 * towards.violation
    assert runs[0].status is Status.CONVERGED
    assert runs[1].status is None
    # both gaps are proofs
    assert max(away.dual, towards.dual) <= min(away.objective, towards.objective)


def test_frank_wolfe_refuses_what_has_no_corners():
    unbounded = duals.c_svc(np.arange(3), signs, np.full(3, np.inf))
    refused = FrankWolfe().accepts(unbounded)
    assert "unbounded" in refused
    assert "solver='smo'" in refused
    assert FrankWolfe().accepts(duals.hard_margin(np.arange(3), signs, np.ones(3))) is None
    with pytest.raises(ValueError, match="unbounded"):
        FrankWolfe().solve(unbounded.over(Gram.of(line, Linear())))
    # which the others take
    for method in (QuadraticProgramme(), ProjectedGradient()):
        alpha = method.solve(unbounded.over(Gram.of(line, Linear())), Watch(1e-6)).alpha
        np.testing.assert_allclose(alpha, [2.0, 2.0, 0.0], atol=1e-5)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("method", [SMO(), WorkingSet(), QuadraticProgramme(), ProjectedGradient()])
def test_a_dual_without_a_maximum_is_not_solved(method, bias):
    random = np.random.default_rng(0)
    mixed, sides = random.normal(size=(40, 2)), np.sign(random.normal(size=40))
    endless = duals.c_svc(np.arange(40), sides, np.full(40, np.inf), bias=bias)
    watch = Watch(1e-3, monitor=ProblemMonitor(Monitor(time_limit=1.0)))
    found = method.solve(endless.over(Gram.of(mixed, Linear())), watch)
    assert found.status in (Status.STALLED, Status.TIME_LIMIT)


def test_a_box_far_smaller_than_the_rounding_of_a_step():
    # one over the curvature is 1e16, the box 1e-6 wide
    random = np.random.default_rng(1)
    near = 1e-8 * random.normal(size=(60, 3))
    sides = np.where(near[:, 0] + 5e-9 * random.normal(size=60) > 0, 1, -1)
    model = SVC(kernel="linear", C=1e-6, solver="projected_gradient").fit(near, sides)
    known = SVC(kernel="linear", C=1e-6, solver="smo").fit(near, sides).certificate_
    assert model.certificate_.converged
    assert model.certificate_.primal == pytest.approx(known.primal, rel=1e-6)
    # features that say nothing have no curvature at all
    nothing = SVC(kernel="linear", C=1e6, solver="qp").fit(np.zeros((4, 2)), [0, 1, 0, 1])
    assert nothing.certificate_.converged


def test_the_first_estimate_of_a_projected_gradient_can_be_stopped():
    problem = duals.c_svc(np.arange(3), signs, np.full(3, 10.0)).over(Gram.of(line, Linear()))
    stopped = Watch(monitor=ProblemMonitor(Monitor()))
    run = ProjectedGradient().begin(problem, stopped)
    products, usual = [], run.product

    def product(direction):
        products.append(direction)
        stopped.monitor.fit.reason = Status.INTERRUPTED
        return usual(direction)

    run.product = product
    run.advance(1)
    assert len(products) == 1
    assert run.n_iter == 0


# -- subgradient ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "method",
    [
        Subgradient(),
        Subgradient(average=True),
        Subgradient(0.02),
        Subgradient(lambda t: 1 / (t + 9)),
    ],
)
def test_subgradients(method):
    known = LinearSVC(loss="hinge", C=0.1, tol=1e-8).fit(blobs, of_blobs).certificate_
    model = LinearSVC(loss="hinge", C=0.1, tol=0.02, max_iter=20_000, solver=method)
    certificate = model.fit(blobs, of_blobs).certificate_
    assert certificate.converged
    assert certificate.dual <= known.primal
    assert known.dual <= certificate.primal <= known.primal / (1 - 0.02)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_strong_subgradient_steps_have_the_best_intercept():
    """Where the columns are makes no difference then; squares are held back by their curvature."""
    X, y = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    options = {"solver": Subgradient(), "tol": 1e-9, "max_iter": 1000}
    here, there = (
        LinearSVC(loss="hinge", **options).fit(data, y).certificate_ for data in (X, X + 3.0)
    )
    assert max(here.relative_gap, there.relative_gap) < 0.05
    known = LinearSVC(loss="hinge").fit(X, y).certificate_
    assert max(here.dual, there.dual) <= known.primal * (1 + 1e-12)
    assert LinearSVC(C=0.01, **options).fit(X, y).certificate_.relative_gap < 0.01
    street = LinearSVR(loss="squared_epsilon_insensitive", C=0.01, **options).fit(X, y)
    assert street.certificate_.relative_gap < 0.01
    one = LinearSVC(loss="hinge", **{**options, "max_iter": 1}, trace=True)
    given = one.set_params(solver=Subgradient(0.02)).fit(blobs + 1.0, of_blobs)
    by_hand = 0.02 * of_blobs @ np.column_stack([blobs + 1.0, np.ones(40)])
    np.testing.assert_allclose(given.trace_.records[0][1].variables, by_hand)
    several = [
        one.set_params(solver=Subgradient(size), max_iter=9).fit(blobs, of_blobs).trace_.records[0]
        for size in (0.02, lambda t: 0.02 / t**0.5)
    ]
    np.testing.assert_allclose(several[0][9].variables, several[1][9].variables)


def test_subgradients_say_that_they_have_not_arrived():
    trace = Trace()
    model = LinearSVC(loss="hinge", tol=1e-6, max_iter=200, solver="subgradient", callback=trace)
    with pytest.warns(ConvergenceWarning):
        certificate = model.fit(blobs, of_blobs).certificate_
    assert certificate.status == "max_iter"
    assert certificate.relative_gap > 1e-6
    last = trace.records[0][-1]  # the best is returned, whatever the last one is
    assert certificate.primal <= last.objective
    assert certificate.relative_gap <= last.violation
    diverging = Subgradient(step_size=lambda t: 1e3).solve(
        RegularisedRisk(Design(blobs), of_blobs, np.ones(40), SquaredHinge())
    )
    assert diverging.status is Status.DIVERGED
    assert diverging.certificate.primal <= 40.0  # the best weights on the way: zero is as good


def test_what_subgradients_do_not_take():
    with pytest.raises(ValueError, match=r"no schedule 'sqrt': use one of \['strong'\]"):
        Subgradient(step_size="sqrt")
    hinge = RegularisedRisk(Design(blobs), of_blobs, np.ones(40), Hinge())
    with pytest.raises(ValueError, match="The size of step 3 is 0"):
        Subgradient(step_size=lambda t: 3 - t).solve(hinge)
    l1 = RegularisedRisk(Design(blobs), of_blobs, np.ones(40), SquaredHinge(), penalty=L1)
    assert "l2 penalty" in Subgradient().accepts(l1)
    with pytest.raises(ValueError, match="exact answers"):
        LinearSVC(norm_bound=1.0, solver="subgradient").fit(blobs, of_blobs)
    trace = Trace()
    LinearSVR(solver="subgradient", tol=0.2, callback=trace).fit(blobs, of_blobs)
    assert trace.records[0][-1].variables.shape == (3,)
