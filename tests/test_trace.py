"""Traces: the way of every machine and method, recorded without a trace of its own."""

import dataclasses
import pickle
import sys
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning

from maxmargin import (
    SVC,
    SVR,
    C_path,
    GaussianProcessRegressor,
    KernelLogisticRegression,
    KernelPCA,
    KernelRidge,
    KernelRidgeCV,
    LeastSquaresClassifier,
    LinearRegression,
    LinearSVC,
    LinearSVR,
    LogisticRegression,
    MCEClassifier,
    NuSVC,
    NuSVR,
    OneClassSVM,
    Perceptron,
    Ridge,
    Trace,
    solvers,
)
from maxmargin.backends.cpu.linear import Design
from maxmargin.kernels import RBF
from maxmargin.losses import Hinge, Logistic, SquaredHinge
from maxmargin.risk import L1, NO_PENALTY, RegularisedRisk, SoftmaxRisk
from maxmargin.solution import Status
from maxmargin.solvers.driver import Watch
from maxmargin.solvers.risk import run, subsampled_newton

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
    (LinearRegression(solver="conjugate_gradient"), NUMBERS, "ConjugateGradients", (1, D)),
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


@pytest.mark.parametrize(
    ("machine", "y", "rows"),
    [
        (LinearRegression(solver="sgd"), NUMBERS, 1),
        (LogisticRegression(solver="sgd", step_size=1e-3), TWO, 1),
        (LogisticRegression(solver="sgd", penalty=None), THREE, 1),
        (MCEClassifier(solver="sgd", n_restarts=0), THREE, 1),
        (LogisticRegression(solver="sgd"), THREE, 64),
        (LinearSVC(solver="sgd"), TWO, 64),
    ],
    ids=str,
)
def test_stochastic_steps_are_seen_row_by_row(machine, y, rows):
    """Pegasos has a new average every 64 rows."""
    trace, coarse = Trace(), Trace(limit=5)
    model = fitted(machine, y, tol=1e-12, max_iter=3, trace=trace)
    ends = [*range(rows, N, rows), N]
    np.testing.assert_array_equal(
        trace.curve("steps"), [0, *(N * k + end for k in range(3) for end in ends)]
    )
    records = trace.records[0]
    assert records[0].working_set is None
    for k in range(3):  # every row once in a pass
        seen = [records[1 + k * len(ends) + j].working_set for j in range(len(ends))]
        np.testing.assert_array_equal(np.sort(np.concatenate(seen)), np.arange(N))
    for traced in (trace, coarse):
        model = fitted(machine, y, tol=1e-12, max_iter=3, trace=traced)
        assert np.max(model.n_iter_) == 3
        assert traced.curve("steps")[-1] == 3 * N
        np.testing.assert_allclose(np.atleast_2d(traced.weights()[-1]), np.atleast_2d(model.coef_))
    assert "steps or more" in coarse.thinned


def test_looks_at_many_rows_are_few(monkeypatch):
    """Each computes the loss of all of them."""
    monkeypatch.setattr(run, "_WORK", 20 * N * D)
    model = fitted(LinearRegression(solver="sgd", tol=1e-12, max_iter=3, trace=True), NUMBERS)
    steps = model.trace_.curve("steps")
    np.testing.assert_array_equal(steps[:21], np.arange(21))
    np.testing.assert_array_equal(steps[-19:-1], np.arange(2 * N, 3 * N, N // 16))
    assert steps[-1] == 3 * N


@pytest.mark.parametrize("machine", [LinearRegression, LogisticRegression])
def test_rows_on_the_way_to_infinity(machine):
    model = machine(solver="sgd", step_size=1e40, random_state=0, trace=True)
    with pytest.warns(ConvergenceWarning, match="have diverged"):
        model.fit(X, TWO)
    assert len(model.trace_) > 2
    assert np.isfinite(model.coef_).all()


def test_a_long_way_takes_little_memory():
    trace = Trace(limit=10)
    model = fitted(LinearSVC(solver="sgd", max_iter=200), TWO, callback=trace)
    assert len(trace) <= 11
    steps = trace.curve("steps")
    assert steps[0] == 0
    assert steps[-1] == N * model.n_iter_ > 20 * N


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


# -- trace=True on every machine -------------------------------------------------------------------

UNITS = np.array([1.0, 30.0, 0.1, 3.0])  # none of a standardised column
OWN = UNITS * X + [0.0, 20.0, 0.0, 1.0]
BOTH = np.column_stack([NUMBERS, X[:, 0] - 2.0 * NUMBERS])
L = {"kernel": "linear"}
TRACED = [  # machine, targets, whether w and b are known
    (SVC(**L), TWO, True),
    (SVC(**L), THREE, True),
    (SVC(**L, solver="working_set"), TWO, True),
    (SVC(**L, multiclass="crammer_singer"), THREE, True),
    (SVC(**L, multiclass="ovr", fit_intercept=False), THREE, True),
    (SVC(**L, probability=True, random_state=0), TWO, True),
    (SVC(**L, C=np.inf), OWN[:, 1] > OWN[:, 1].mean(), True),
    (SVC(), THREE, False),
    (NuSVC(**L, nu=0.6), TWO, True),
    (SVR(**L), BOTH, True),
    (NuSVR(**L), NUMBERS, True),
    (OneClassSVM(**L, nu=0.2), None, True),
    (LinearSVC(), THREE, True),
    (LinearSVC(loss="hinge", intercept_scaling=2.0), TWO, True),
    (LinearSVC(multiclass="crammer_singer"), THREE, True),
    (LinearSVC(dual=True), TWO, True),
    (LinearSVR(epsilon=0.1, fit_intercept=False), NUMBERS, True),
    (LogisticRegression(), TWO, True),
    (LogisticRegression(solver="lbfgs"), THREE, True),
    (LinearRegression(), BOTH, True),
    (LinearRegression(positive=True), NUMBERS, True),
    (LinearRegression(solver="gradient_descent"), NUMBERS, True),
    (LinearRegression(solver="conjugate_gradient", fit_intercept=False), BOTH, True),
    (LeastSquaresClassifier(solver="sgd"), THREE, True),
    (MCEClassifier(n_restarts=0), THREE, True),
    (Perceptron(), THREE, True),
    (Perceptron(kernel="linear"), TWO, True),
    (KernelLogisticRegression(**L), TWO, True),
    (KernelLogisticRegression(**L), THREE, True),
    (KernelRidge(**L), BOTH, True),
    (KernelRidge(**L, solver="cg"), NUMBERS, True),
    (KernelRidgeCV(**L, alphas=[10.0, 1.0]), NUMBERS, True),
    (Ridge(), BOTH, True),
    (Ridge(solver="dual", fit_intercept=False), NUMBERS, True),
    (GaussianProcessRegressor(RBF(1.0), noise_level=1.0), NUMBERS, False),
    (KernelPCA(n_components=2), None, False),
    (KernelPCA(n_components=2, eigen_solver="lanczos"), None, False),
]


def weights_of(model):
    """Weights and intercepts that the attributes of a fitted machine say, a row for each."""
    coef = getattr(model, "coef_", None)
    if sp.issparse(coef):
        coef = coef.toarray()
    if coef is None:
        dual = model._expansion if hasattr(model, "_expansion") else model.dual_coef_
        coef = np.atleast_2d(dual) @ model.support_vectors_
    return np.atleast_2d(coef), np.atleast_1d(getattr(model, "intercept_", np.zeros(len(coef))))


@pytest.mark.parametrize(
    ("machine", "y", "linear"), TRACED, ids=[f"{m}-{np.shape(y)[1:]}" for m, y, _ in TRACED]
)
def test_every_machine_leaves_its_way_to_where_it_is(machine, y, linear):
    machine = clone(machine).set_params(trace=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = machine.fit(OWN, y)
        plain = clone(model).set_params(trace=False).fit(OWN, y)
    assert not hasattr(plain, "trace_")
    trace = model.trace_
    assert trace.problems == list(range(len(trace.problems)))
    for k in trace.problems:
        assert np.isfinite([trace.curve(name, k) for name in ("steps", "seconds")]).all()
        assert np.isfinite(trace.curve("violation", k)[-1])
        assert np.isfinite(trace.variables(k)[-1]).all()
        assert (np.diff(trace.curve("seconds", k)) >= 0).all()
    if not linear:
        with pytest.raises(ValueError, match="no weights of the features"):
            trace.weights()
    else:
        coef, intercept = weights_of(model)
        last = np.vstack([trace.weights(k)[-1] for k in trace.problems])
        b = np.hstack([trace.intercepts(k)[-1] for k in trace.problems])
        np.testing.assert_allclose(last, coef, atol=1e-9 + 1e-6 * np.abs(coef).max())
        np.testing.assert_allclose(b, intercept, atol=1e-6 * (1 + np.abs(intercept).max()))
    again = pickle.loads(pickle.dumps(model))
    assert repr(again.trace_) == repr(trace)
    assert len(trace.to_frame()) == len(trace)


def test_a_callback_and_a_frame_see_the_same_as_the_arrays():
    seen = []
    model = SVC(**L, C=0.1, trace=True, callback=seen.append, time_limit=60.0)
    trace = model.fit(OWN, TWO).trace_
    frame = trace.to_frame()
    assert [*frame.columns[:8]] == [
        *("problem", "method", "steps", "seconds"),
        *("objective", "dual", "gap", "violation"),
    ]
    np.testing.assert_array_equal(frame[["w0", "w1", "w2", "w3"]], trace.weights())
    np.testing.assert_array_equal(frame["b"], trace.intercepts())
    np.testing.assert_array_equal(trace.alpha(), np.abs(trace.variables()))
    signed = np.zeros(N)
    signed[model.support_] = model.dual_coef_[0]
    np.testing.assert_allclose(trace.alpha()[-1], np.abs(signed), atol=1e-9)
    # weights are no multipliers
    for machine in (LinearSVC(), LogisticRegression(), Ridge(), LinearRegression()):
        fitted = machine.set_params(trace=True).fit(OWN, TWO)
        assert fitted.trace_.records[0][-1].alpha.size == 0
        assert fitted.trace_.variables().shape[0] == len(fitted.trace_.records[0])
        with pytest.raises(ValueError, match=r"without multipliers: weights\(\) has"):
            fitted.trace_.alpha()
    assert KernelRidge(trace=True).fit(OWN, TWO).trace_.alpha().shape[1] == N
    several = LogisticRegression(trace=True).fit(OWN, THREE).trace_
    assert several.weights().shape == (len(several), 3, D)
    np.testing.assert_array_equal(several.to_frame()["w2_1"], several.weights()[:, 2, 1])
    assert "w0" not in LinearSVC(trace=True).fit(np.tile(OWN, 6), TWO).trace_.to_frame()

    def stop(progress):
        seen.append((progress.weights, progress.intercept))
        return True

    seen.clear()
    model = LinearSVC(solver="sgd", max_iter=10**6, tol=1e-12, random_state=0, callback=stop)
    with pytest.warns(ConvergenceWarning):
        model.fit(OWN, TWO)
    (weights, intercept), *_ = seen
    assert weights.shape == (D,)
    assert np.ndim(intercept) == 0


@pytest.mark.parametrize("container", [sp.csr_array, np.float32, pd.DataFrame])
@pytest.mark.parametrize(
    "machine",
    [SVC(**L), NuSVR(**L), LinearSVC(), Ridge(solver="dual"), KernelLogisticRegression(**L)],
)
def test_weights_do_not_depend_on_the_container(machine, container):
    weight = np.where(np.arange(N) % 7 == 0, 0.0, 1.0)
    machine = clone(machine).set_params(trace=True)
    model = machine.fit(container(OWN), TWO, sample_weight=weight)
    coef, intercept = weights_of(model)
    last = np.atleast_2d(model.trace_.weights()[-1])
    np.testing.assert_allclose(last, coef, atol=1e-5 * np.abs(coef).max())
    assert model.trace_.intercepts()[-1] == pytest.approx(intercept[0], abs=1e-4)


def test_a_trace_of_ones_own_is_filled_anew_by_every_fit():
    mine = Trace(limit=10)
    model = SVC(trace=mine)
    assert model.fit(X, TWO).trace_ is mine
    first = len(mine)
    assert model.fit(X, TWO).trace_ is mine
    assert len(mine) == first <= 11
    assert clone(model).trace is not mine  # and has a lock of its own
    with pytest.raises(ValueError, match="one Trace, as trace or as callback"):
        SVC(trace=mine, callback=Trace()).fit(X, TWO)
    both = SVC(trace=mine, callback=mine).fit(X, TWO)
    assert len(both.trace_) == first
    assert SVC(trace=True, callback=mine).fit(X, TWO).trace_ is mine
    for fitted_at in C_path(LinearSVC(trace=True), X, TWO, [0.1, 1.0]):
        assert fitted_at.trace_.weights()[-1] == pytest.approx(fitted_at.coef_[0])
    with pytest.raises(ValueError, match="'trace' parameter"):
        SVC(trace="yes").fit(X, TWO)
    stream = LinearSVC(lam=0.1, trace=True).fit(X, TWO).partial_fit(X, TWO, [0, 1])
    assert not hasattr(stream, "trace_")  # it was the way of the fit


def test_the_last_record_is_where_a_fit_was_stopped():
    """However thin the trace is by then."""
    rows, y = np.tile(OWN, (20, 1)) + rng.normal(size=(20 * N, D)), np.tile(TWO, 20)
    seen = []

    def stop(progress):
        seen.append(progress.steps)
        return progress.steps > 100

    model = SVC(**L, C=100.0, tol=1e-9, solver="smo", trace=Trace(limit=8), callback=stop)
    with pytest.warns(ConvergenceWarning):
        model.fit(rows, y)
    assert model.trace_.curve("steps")[-1] == model.n_iter_[0] >= seen[-1]
    np.testing.assert_allclose(model.trace_.weights()[-1], model.coef_[0])


@pytest.mark.parametrize("max_bytes", [0, 20_000, 100_000])
def test_many_problems_share_the_memory(max_bytes):
    X, y = load_digits(return_X_y=True)
    trace = SVC(trace=Trace(max_bytes=max_bytes)).fit(X[:300], y[:300]).trace_
    arrays = [r.variables for records in trace.records.values() for r in records]
    assert sum(a.nbytes for a in arrays if a is not None) <= max_bytes
    assert ("records have no variables" in trace.thinned) == any(a is None for a in arrays)
    assert len(trace.records) == 45
    for records in trace.records.values():  # both ends of each, if nothing else
        assert records[0].steps == 0
        assert records[-1].violation <= 1e-3
    assert all(trace.steps_until_next(k) <= 4 * r[-1].steps for k, r in trace.records.items())
    assert len(trace.to_frame()) == len(trace)
    assert list(Trace().to_frame().columns[:3]) == ["problem", "method", "steps"]


def test_what_was_thinned_out_is_said(monkeypatch):
    trace = SVC(**L, trace=Trace(limit=20)).fit(OWN, TWO).trace_
    assert "problem 0 has a record every " in trace.thinned
    assert f"of {trace.curve('steps')[-1]:,} steps" in repr(trace)
    assert SVC(trace=True).fit(X, TWO).trace_.thinned == ""
    wide = np.tile(OWN, 60)
    trace = SVC(**L, trace=Trace(limit=4, max_bytes=4096)).fit(wide, TWO).trace_
    assert len(trace) >= 2
    with pytest.raises(ValueError, match=r"would take .* MB: they were left out; raise max_bytes"):
        trace.weights()
    assert "left out" in trace.thinned
    with pytest.raises(ValueError, match="no record of problem 7, only of"):
        trace.alpha(7)
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="pip install pandas"):
        trace.to_frame()


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
        (SoftmaxRisk(Design(np.ones((2, 400))), np.arange(2), 2, np.ones(2)), solvers.Newton()),
        (
            SoftmaxRisk(Design(np.ones((402, 400))), np.arange(402) % 2, 2, np.ones(402)),
            solvers.LBFGS(),
        ),
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
