"""One driver for every method: limits, stops, reports, traces; and a method of one's own."""

from itertools import pairwise

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_wine

from maxmargin import (
    SVC,
    SVR,
    Gram,
    KernelLogisticRegression,
    KernelRidge,
    LinearSVC,
    NuSVC,
    NuSVR,
    OneClassSVM,
    Trace,
    duals,
)
from maxmargin.kernels import RBF
from maxmargin.progress import Monitor, ProblemMonitor
from maxmargin.solution import Status
from maxmargin.solvers import (
    SMO,
    DualMethod,
    Measure,
    Run,
    SeededSMO,
    Watch,
    WorkingSet,
    drive,
    select_solver,
)
from maxmargin.solvers.dual import certified

X, y = load_wine(return_X_y=True)
X = (X - X.mean(axis=0)) / X.std(axis=0)
two, sign = X[y < 2], y[y < 2]


class Halving(Run):
    """A number that is halved at every step until it is small."""

    words = "still {violation:.3g}"

    def __init__(self, watch):
        self.watch, self.value, self.closed = watch, 1.0, False

    @property
    def variables(self):
        return np.array([self.value])

    def steps(self):
        try:
            while self.value > self.watch.tol:
                self.value /= 2
                self.n_iter += 1
                yield
        finally:
            self.closed = True

    def measure(self):
        return Measure(self.value, self.value)

    def solution(self, status):
        return self.value, self.n_iter, status


def test_a_run_ends_by_itself_or_at_its_limit():
    run = Halving(watch := Watch(tol=0.1))
    assert drive(run, watch) == (0.0625, 4, Status.CONVERGED)
    run = Halving(watch := Watch(tol=0.1, max_iter=5, spent=3))
    assert drive(run, watch) == (0.25, 2, Status.MAX_ITER)
    assert run.closed  # what a loop has to put in order, it can
    run = Halving(watch := Watch(tol=0.1, monitor=ProblemMonitor(Monitor(time_limit=1e-9))))
    assert drive(run, watch) == (1.0, 0, Status.TIME_LIMIT)


def test_listeners_hear_of_a_run_and_stop_it():
    heard = []

    def stop(progress):
        heard.append(progress)
        return progress.steps == 2

    monitor = Monitor(listeners=[stop], interval=0.0, problems=3, solved=1)
    watch = Watch(tol=1e-9, monitor=ProblemMonitor(monitor, 1))
    assert drive(Halving(watch), watch) == (0.25, 2, Status.INTERRUPTED)
    assert [str(progress) for progress in heard] == [
        f"1 of 3 solved, still {value}" for value in (1, 0.5, 0.25)
    ]
    assert heard[-1].method == "Halving"
    assert heard[-1].problem == 1


def test_a_trace_is_bounded_and_keeps_both_ends():
    trace = Trace(limit=10)
    watch = Watch(tol=2.0**-500, monitor=ProblemMonitor(Monitor(listeners=[trace])))
    drive(Halving(watch), watch)
    steps = trace.curve("steps")
    assert len(trace) <= 10
    assert steps[0] == 0
    assert steps[-1] == 500
    assert (np.diff(steps) > 0).all()
    np.testing.assert_array_equal(trace.curve("violation"), 2.0**-steps)
    np.testing.assert_array_equal([r.variables[0] for r in trace.records[0]], 2.0**-steps)
    small = Trace(max_bytes=20 * 8)
    watch = Watch(tol=2.0**-500, monitor=ProblemMonitor(Monitor(listeners=[small])))
    drive(Halving(watch), watch)
    assert sum(record.variables.nbytes for record in small.records[0]) <= 20 * 8


@pytest.mark.parametrize(
    "method", [SMO(), SMO(shrinking=False), WorkingSet(), SeededSMO()], ids=repr
)
@pytest.mark.parametrize(
    "model",
    [SVC(C=10.0), SVC(fit_intercept=False), NuSVC(), SVR(C=10.0), NuSVR(), OneClassSVM(nu=0.3)],
    ids=str,
)
def test_a_traced_fit_is_the_same_fit(model, method):
    if isinstance(method, SeededSMO) and isinstance(model, NuSVC | NuSVR):
        with pytest.raises(ValueError, match=r"one sum of the variables.*solver='smo'"):
            clone(model).set_params(solver=method).fit(two, sign)
        return
    trace = Trace(limit=100)
    plain = clone(model).set_params(solver=method).fit(two, sign)
    traced = clone(model).set_params(solver=method, callback=trace).fit(two, sign)
    assert traced.certificate_.converged
    for name in ("dual", "primal"):
        ours, theirs = (getattr(each.certificate_, name) for each in (traced, plain))
        assert abs(ours - theirs) <= 2 * plain.certificate_.gap + 1e-9 * abs(theirs)
    records = trace.records[0]
    assert 2 <= len(records) <= 100
    assert records[-1].violation <= records[-1].tol < records[0].violation
    gaps = trace.curve("gap")
    assert gaps[-1] < gaps[0]
    assert trace.curve("objective") - trace.curve("dual") == pytest.approx(gaps)
    rising = np.diff(trace.curve("dual"))
    assert (rising >= -1e-6 * np.abs(trace.curve("dual")).max()).all()  # every step is uphill
    assert {record.method for record in records} == {type(method).__name__}
    assert all(record.variables.shape == records[0].variables.shape for record in records)


def test_smo_is_seen_two_variables_at_a_time():
    trace = Trace(limit=10**4)
    SVC(C=1.0, solver="smo", callback=trace).fit(two, sign)
    records = trace.records[0]
    for before, after in pairwise(records):
        if after.steps != before.steps + 1:
            continue  # a face, or the next round
        moved = np.flatnonzero(after.variables != before.variables)
        if len(moved) == 2:
            np.testing.assert_array_equal(moved, after.working_set)
            assert after.variables[moved].sum() == pytest.approx(before.variables[moved].sum())
    assert trace.curve("steps")[1] == 1


def test_every_problem_of_a_fit_is_traced():
    trace = Trace(limit=50)
    SVC(callback=trace).fit(X, y)
    assert sorted(trace.records) == [0, 1, 2]
    assert all(records[-1].violation <= 1e-3 for records in trace.records.values())


@pytest.mark.parametrize("machine", [SVC, NuSVC, SVR, NuSVR, OneClassSVM])
def test_a_solver_can_be_named(machine, monkeypatch):
    used = []
    original = certified.Auto.choose

    def choose(self, problem, k):
        choice = original(self, problem, k)
        used.append(type(choice.method).__name__)
        return choice

    monkeypatch.setattr(certified.Auto, "choose", choose)
    values = []
    for solver in ("smo", "working_set", WorkingSet()):
        values.append(machine(solver=solver, tol=1e-6).fit(two, sign).certificate_.dual)
    assert set(used) == {"SMO", "WorkingSet"}
    assert values == pytest.approx([machine(tol=1e-6).fit(two, sign).certificate_.dual] * 3)
    with pytest.raises(ValueError, match="'solver' parameter"):
        machine(solver="simplex").fit(two, sign)


def test_a_method_says_why_it_does_not_take_a_problem():
    with pytest.raises(ValueError, match=r"hard margin.*solver='smo'"):
        SVC(C=np.inf, solver="working_set").fit(two, sign)
    with pytest.raises(ValueError, match="too large or too small for it: use solver='smo'"):
        SVC(kernel=1e30 * RBF(1.0), solver="working_set").fit(two, sign)
    with pytest.raises(ValueError, match=r"all kernel values.*0\.00\d+ MB.*raise cache_size"):
        SVC(solver=SeededSMO(), cache_size=0.001).fit(two, sign)
    with pytest.raises(ValueError, match="no Gram matrix yet"):
        SMO().solve(duals.one_class(np.arange(3), np.ones(3), 0.5))


def test_the_choice_of_a_method_has_a_reason():
    gram = Gram.of(np.random.default_rng(0).normal(size=(1200, 2)), RBF(1.0))
    problem = duals.one_class(np.arange(1200), np.ones(1200), 0.5).over(gram)
    choice = select_solver(problem)
    assert isinstance(choice.method, DualMethod)
    assert isinstance(choice.method, WorkingSet)
    assert "1200 variables" in choice.why
    hard = duals.hard_margin(np.arange(1200), np.tile([1.0, -1.0], 600), np.ones(1200)).over(gram)
    assert "hard margin" in select_solver(hard).why


def test_a_fitted_machine_says_which_methods_it_took_and_why():
    small = SVC().fit(two, sign)
    assert small.solver_ == "SmallBatch"
    assert small.solver_why_ == "SmallBatch: a small problem: in compiled code, with others like it"
    asked = SVR(solver="smo").fit(two, sign)
    assert (asked.solver_, asked.solver_why_) == ("smo", "smo: it was asked for")
    assert "hard margin" in SVC(C=np.inf, kernel=RBF(100.0)).fit(two, sign).solver_why_
    assert SVC(multiclass="crammer_singer").fit(X, y).solver_ == "RowDescent"
    rng = np.random.default_rng(0)
    tall = rng.normal(size=(1200, 3))
    label = tall @ [1.0, 2.0, 3.0] + rng.normal(size=1200) > 0
    linear = SVC(kernel="linear", probability=True, random_state=0).fit(tall, label)
    assert linear.solver_.startswith("multipliers, working_set")
    assert "tall data and the linear kernel" in linear.solver_why_
    assert "1200 variables" in linear.solver_why_
    auto = LinearSVC(loss="hinge").fit(tall, label)
    assert auto.solver_why_.startswith("multipliers: the loss has kinks")
    assert LinearSVC(solver="newton").fit(tall, label).solver_why_ == "newton: it was asked for"
    smooth = KernelLogisticRegression().fit(two, sign)
    assert smooth.solver_why_ == "newton-cholesky: no more than 500 rows"
    ridge = KernelRidge(solver="cg").fit(two, sign)
    assert (ridge.solver_, ridge.solver_why_) == ("cg", "cg: it was asked for")
