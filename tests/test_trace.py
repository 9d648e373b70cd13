"""Traces: the way of every linear machine and method, recorded without a trace of its own."""

import dataclasses
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from maxmargin import (
    LeastSquaresClassifier,
    LinearRegression,
    LinearSVC,
    LinearSVR,
    LogisticRegression,
    MCEClassifier,
    Trace,
    solvers,
)
from maxmargin.backends.cpu.linear import Design
from maxmargin.losses import Hinge, Logistic, SquaredHinge
from maxmargin.risk import L1, NO_PENALTY, RegularisedRisk, SoftmaxRisk
from maxmargin.solution import Status
from maxmargin.solvers.driver import Watch
from maxmargin.solvers.risk import subsampled_newton

N, D = 90, 4
rng = np.random.default_rng(5)
X = rng.normal(size=(N, D))
NUMBERS = X @ [1.0, -2.0, 0.5, 0.0] + rng.normal(size=N)
TWO = np.where(NUMBERS > 0, 1, 0)
THREE = np.digitize(NUMBERS, [-1.0, 1.0])

MACHINES = [  # machine, targets, its method, shape of its weights
    (LinearSVC(), TWO, "Newton", (D + 1,)),
    (LinearSVC(), THREE, "Newton", (D + 1,)),
    (LinearSVC(loss="hinge"), TWO, "Multipliers", (D + 1,)),
    (LinearSVC(dual=True), TWO, "DualDescent", (D + 1,)),
    (LinearSVC(penalty="l1"), TWO, "L1Descent", (D + 1,)),
    (LinearSVC(solver="sgd", max_iter=20), TWO, "Pegasos", (D + 1,)),
    (LinearSVC(solver=solvers.LBFGS(), fit_intercept=False), TWO, "LBFGS", (D,)),
    (LinearSVC(penalty="l1", solver=solvers.LBFGS()), TWO, "LBFGS", (D + 1,)),
    (LinearSVR(epsilon=0.1), NUMBERS, "Multipliers", (D + 1,)),
    (LinearSVR(solver=solvers.DualDescent()), NUMBERS, "DualDescent", (D + 1,)),
    (LogisticRegression(), TWO, "Newton", (D + 1,)),
    (LogisticRegression(solver=solvers.LBFGS()), TWO, "LBFGS", (D + 1,)),
    (LogisticRegression(C=np.inf), TWO, "Newton", (D + 1,)),
    (LogisticRegression(), THREE, "Newton", (3, D + 1)),
    (LogisticRegression(solver="lbfgs"), THREE, "LBFGS", (3, D + 1)),
    (LogisticRegression(l1_ratio=0.5), THREE, "Newton", (3, D + 1)),
    (LogisticRegression(solver="gradient_descent"), THREE, "GradientDescent", (3, D + 1)),
    (LogisticRegression(C=np.inf, solver="sgd"), TWO, "StochasticDescent", (D + 1,)),
    (LinearRegression(solver="conjugate_gradient"), NUMBERS, "ConjugateGradients", (1, D + 1)),
    (LinearRegression(solver="gradient_descent"), NUMBERS, "GradientDescent", (1, D + 1)),
    (
        LinearRegression(solver=solvers.StochasticDescent()),
        NUMBERS,
        "StochasticDescent",
        (1, D + 1),
    ),
    (LinearRegression(solver=solvers.LBFGS()), NUMBERS, "LBFGS", (1, D + 1)),
    (LeastSquaresClassifier(solver="gradient_descent"), THREE, "GradientDescent", (3, D + 1)),
    (MCEClassifier(n_restarts=1), TWO, "LBFGS", (1, D + 1)),
    (MCEClassifier(n_restarts=1, solver="gradient_descent"), THREE, "GradientDescent", (3, D + 1)),
    (MCEClassifier(n_restarts=1, solver="sgd", tol=1e-2), TWO, "StochasticDescent", (1, D + 1)),
]
machines = pytest.mark.parametrize(
    ("machine", "y", "method", "shape"),
    MACHINES,
    ids=[f"{m}-{len(set(y))}" for m, y, *_ in MACHINES],
)


def fitted(machine, y, **more):
    parameters = {"random_state": 0, **more}
    known = machine.get_params()
    model = clone(machine).set_params(**{k: v for k, v in parameters.items() if k in known})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X, y)


@machines
def test_a_trace_has_the_whole_way_and_changes_nothing(machine, y, method, shape):
    trace = Trace()
    model, usual = fitted(machine, y, callback=trace), fitted(machine, y)
    np.testing.assert_array_equal(model.coef_, usual.coef_)
    np.testing.assert_array_equal(model.n_iter_, usual.n_iter_)
    assert sorted(trace.records) == list(range(len(trace.records)))
    for problem, records in trace.records.items():
        steps, objective = trace.curve("steps", problem), trace.curve("objective", problem)
        assert steps[0] == 0
        assert (np.diff(steps) > 0).all()
        assert objective[-1] < objective[0]
        assert {record.method for record in records} == {method}
        assert all(record.variables.shape == shape for record in records)
        assert not np.array_equal(records[0].variables, records[-1].variables)
    if hasattr(usual, "certificate_") and hasattr(usual.certificate_, "gap"):
        assert trace.curve("gap")[-1] >= 0
        last = [records[-1].violation for records in trace.records.values()]
        assert max(last) == pytest.approx(usual.certificate_.relative_gap, rel=1e-6, abs=1e-12)


def test_a_long_way_takes_little_memory():
    trace = Trace(limit=10)
    model = fitted(LinearSVC(solver="sgd", max_iter=200), TWO, callback=trace)
    assert len(trace) <= 11
    steps = trace.curve("steps")
    assert steps[0] == 0
    assert steps[-1] == model.n_iter_ > 20


def test_a_sample_of_many_rows_is_part_of_the_way(monkeypatch):
    monkeypatch.setattr(subsampled_newton, "_MANY", 1)
    rows, y = np.tile(X, (60, 1)), np.tile(TWO, 60)
    for machine in (LinearSVC(), LinearSVC(loss="hinge"), LogisticRegression(C=np.inf)):
        trace = Trace()
        model = clone(machine).set_params(callback=trace).fit(rows, y)
        np.testing.assert_array_equal(model.coef_, clone(machine).fit(rows, y).coef_)
        assert (np.diff(trace.curve("steps")) > 0).all()
        assert {record.variables.shape for record in trace.records[0]} == {(D + 1,)}


def test_dual_descent_and_the_primal_after_it_are_one_way():
    trace = Trace()
    model = LinearSVC(dual=True, tol=1e-10, max_iter=40, C=100.0, random_state=0, callback=trace)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, TWO)
    assert model.solver_ == "dual_descent, newton"
    assert [*dict.fromkeys(trace.curve("method"))] == ["DualDescent", "Newton"]
    assert (np.diff(trace.curve("steps")) >= 0).all()
    assert trace.curve("steps")[-1] == model.n_iter_ <= 40


# -- methods ---------------------------------------------------------------------------------------


def risk_of(loss, penalty=None, y=None):
    options = {} if penalty is None else {"penalty": penalty}
    return RegularisedRisk(
        Design(X), 2.0 * TWO - 1.0 if y is None else y, np.ones(N), loss, **options
    )


SOFTMAX = SoftmaxRisk(Design(X), THREE, 3, np.ones(N))


def test_every_method_says_what_it_takes_or_why_not():
    risks = [
        risk_of(Hinge()),
        risk_of(SquaredHinge()),
        risk_of(Logistic(), NO_PENALTY),
        risk_of(Logistic(), L1),
        SOFTMAX,
    ]
    for name in ("Newton", "Multipliers", "DualDescent", "L1Descent", "LBFGS", "Pegasos"):
        method = getattr(solvers, name)()
        assert not dataclasses.fields(method)  # limits and listeners come with the watch
        taken = 0
        for risk in risks:
            why_not = method.accepts(risk)
            if why_not is None:
                taken += 1
                status = method.solve(risk, Watch(tol=1e-3, max_iter=300)).status
                assert status is Status.CONVERGED or name == "Pegasos"
            else:
                assert why_not.endswith(".")
                with pytest.raises(ValueError, match=why_not[:30]):
                    method.solve(risk)
        assert taken


def test_the_choice_of_a_method_says_why():
    wide = RegularisedRisk(Design(np.ones((2, 1600))), np.array([-1.0, 1.0]), np.ones(2), Hinge())
    for risk, method in [
        (risk_of(Hinge()), solvers.Multipliers()),
        (risk_of(Logistic()), solvers.Newton()),
        (risk_of(Logistic(), L1), solvers.L1Descent()),
        (wide, solvers.DualDescent()),
        (SOFTMAX, solvers.Newton()),
        (SoftmaxRisk(Design(np.ones((2, 400))), np.arange(2), 2, np.ones(2)), solvers.LBFGS()),
    ]:
        choice = solvers.select_solver(risk)
        assert choice.method == method
        assert method.accepts(risk) is None
        assert choice.why
    with pytest.raises(TypeError, match="no method for a problem of type int"):
        solvers.select_solver(3)


def test_a_method_that_a_machine_cannot_use_is_refused_in_its_own_words():
    with pytest.raises(ValueError, match=r"needs a smooth loss.*Got solver=Newton\(\)"):
        LinearSVC(loss="hinge", solver=solvers.Newton()).fit(X, TWO)
    with pytest.raises(ValueError, match="takes its steps from the penalty"):
        LogisticRegression(solver=solvers.Pegasos(), penalty=None).fit(X, THREE)
    with pytest.raises(ValueError, match="knows the logistic loss"):
        LinearSVC(solver=solvers.StochasticDescent()).fit(X, TWO)
    with pytest.raises(ValueError, match="solves least squares only"):
        MCEClassifier(solver=solvers.Factorisation()).fit(X, TWO)
    with pytest.raises(ValueError, match="contradict each other"):
        LinearSVC(dual=False, solver=solvers.DualDescent()).fit(X, TWO)


def test_an_answer_is_certified_once(monkeypatch):
    counted = []
    certificate = RegularisedRisk.certificate

    def count(self, theta, s, *others):
        counted.append((theta.tobytes(), s.tobytes()))
        return certificate(self, theta, s, *others)

    monkeypatch.setattr(RegularisedRisk, "certificate", count)
    for machine in (
        LinearSVC(),
        LinearSVC(loss="hinge"),
        LinearSVC(dual=True),
        LinearSVC(solver="sgd"),
    ):
        counted.clear()
        fitted(machine, TWO, max_iter=5)
        assert len(counted) == len(set(counted))
