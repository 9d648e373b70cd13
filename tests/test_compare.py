"""Comparing solvers: the same problem to the same gap, refusals in words, a trace for each."""

import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler

from maxmargin import (
    SVC,
    Gram,
    KernelLogisticRegression,
    KernelRidge,
    LinearRegression,
    LinearSVC,
    LogisticRegression,
    Perceptron,
    compare_solvers,
    duals,
)
from maxmargin.backends.cpu.linear import Design
from maxmargin.kernels import RBF
from maxmargin.losses import Hinge, SquaredHinge
from maxmargin.risk import RegularisedRisk
from maxmargin.solvers import SMO, DualDescent, WorkingSet
from maxmargin.solvers.select import DUAL_METHODS, RISK_METHODS

X, y = load_breast_cancer(return_X_y=True)
X, y = StandardScaler().fit_transform(X)[:200, :10], y[:200]
SIGN, ROWS = 2.0 * y - 1.0, np.arange(len(y))
DUAL = duals.c_svc(ROWS, SIGN, np.full(len(y), 5.0)).over(Gram.of(X, RBF(0.1)))
QUICK = {"memory": False, "trace": False}


def risk(loss):
    return RegularisedRisk(Design(X), SIGN, np.ones(len(y)), loss)


def agree(comparison):
    """No dual is above another's primal, and all are as near as was asked for."""
    reached = [result for result in comparison if result.reached]
    assert reached
    best, worst = max(r.dual for r in reached), min(r.objective for r in reached)
    assert best <= worst + 1e-9 * abs(worst)
    for result in reached:
        assert result.relative_gap <= comparison.tol
        assert result.gap <= 1.01 * comparison.tol * abs(result.objective)
        assert result.seconds > 0
        assert result.why == ""
    return {result.solver for result in reached}


@pytest.mark.parametrize("tol", [1e-3, 1e-6])
def test_solvers_of_a_dual_problem_come_to_the_same_gap(tol):
    comparison = compare_solvers(DUAL, solvers=["auto", "smo", WorkingSet()], tol=tol, **QUICK)
    assert agree(comparison) >= {"auto", "smo"}
    assert comparison.traces == {}
    assert comparison["smo"].support_vectors < len(y)
    loose = compare_solvers(DUAL, solvers="smo", tol=0.5, **QUICK)
    assert loose["smo"].steps <= comparison["smo"].steps
    assert loose["smo"].tol >= comparison["smo"].tol  # in the solver's own units


def test_no_run_gains_from_the_one_before():
    made = []

    class Watched(SMO):
        """SMO that says how many rows of the Gram matrix it finds."""

        def begin(self, problem, watch, pace=None):
            made.append(problem.gram.host.store.used)
            return super().begin(problem, watch, pace)

    gram = Gram.of(X, RBF(0.1))
    problem = duals.c_svc(ROWS, SIGN, np.full(len(y), 5.0)).over(gram)
    comparison = compare_solvers(problem, solvers={"one": Watched(), "other": Watched()})
    assert set(made) == {0}
    assert gram.host.store.used == 0
    assert comparison["one"].peak_bytes > 8 * len(y) ** 2  # the rows are in its memory


@pytest.mark.slow
def test_solvers_of_a_risk_and_why_others_do_not_take_it():
    comparison = compare_solvers(risk(Hinge()), time_limit=1.0, **QUICK)
    assert agree(comparison) >= {"multipliers", "dual_descent"}
    assert comparison["newton"].status == "refused"
    assert "needs a smooth loss" in comparison["newton"].why
    slow = comparison["sgd"]
    assert (slow.status, slow.reached) == ("time_limit", False)
    assert slow.seconds < 5.0
    order = [result.solver for result in comparison]
    assert order.index("multipliers") < order.index("sgd") < order.index("newton")
    said = str(comparison)
    assert "newton: Newton's method needs a smooth loss" in said
    assert "relative duality gap of 0.0001" in said
    assert "sgd" in said
    assert repr(comparison) == said


def test_machines_are_fitted_with_each_solver():
    comparison = compare_solvers(SVC(C=5.0), X, y, solvers=["auto", "smo", "working_set"])
    assert agree(comparison) >= {"auto", "smo"}
    assert all(result.peak_bytes > 1000 for result in comparison)
    for name, trace in comparison.traces.items():
        assert trace.curve("gap").size >= 2
        assert trace.curve("dual")[-1] == pytest.approx(comparison[name].dual, rel=1e-2)
    frame = comparison.to_frame()
    assert [*frame["solver"]] == [result.solver for result in comparison]
    assert {"seconds", "peak_bytes", "objective", "dual", "gap", "why"} <= {*frame.columns}
    fitted = LogisticRegression().fit(X, y)
    coef = fitted.coef_.copy()
    names = agree(compare_solvers(fitted, X, y, time_limit=0.5, **QUICK))
    assert {"auto", "newton", "lbfgs"} <= names
    np.testing.assert_array_equal(fitted.coef_, coef)
    assert agree(compare_solvers(KernelLogisticRegression(), X, y, **QUICK)) >= {"newton-cg"}
    several = compare_solvers(SVC(), X, np.digitize(X[:, 0], [-0.5, 0.5]), ["smo"], **QUICK)
    assert agree(several) == {"smo"}


def test_methods_may_have_names_of_ones_own():
    own = {"with shrinking": SMO(), "without": SMO(shrinking=False)}
    assert agree(compare_solvers(DUAL, solvers=own, **QUICK)) == set(own)
    twice = compare_solvers(DUAL, solvers=own.values(), **QUICK)
    assert {result.solver for result in twice} == {repr(method) for method in own.values()}


def test_what_is_drawn_at_random_is_repeatable():
    def found(seed):
        options = {"solvers": [DualDescent()], "random_state": seed, **QUICK}
        (one,) = compare_solvers(risk(SquaredHinge()), **options)
        (other,) = compare_solvers(LinearSVC(), X, y, **options)
        return one.objective, other.objective

    assert found(0) == found(0)
    assert all(a != b for a, b in zip(found(0), found(1), strict=True))


def test_memory_is_what_a_run_allocates():
    """A working set's block of values is larger than SMO's rows."""
    comparison = compare_solvers(DUAL, solvers=["smo"], trace=False)
    assert comparison["smo"].peak_bytes > 8 * len(y)
    assert comparison.traces == {}
    assert compare_solvers(DUAL, solvers=["smo"], memory=False)["smo"].peak_bytes == -1


def test_what_cannot_be_compared_is_said(monkeypatch):
    with pytest.raises(ValueError, match=r"No solver takes this: .*smooth loss"):
        compare_solvers(risk(Hinge()), solvers=["newton", "lbfgs"])
    with pytest.raises(ValueError, match=r"No solver takes this: .*NaN"):
        compare_solvers(SVC(), np.full((4, 1), np.nan), [0, 1, 0, 1])
    with pytest.raises(ValueError, match="no solver 'simplex' for this problem; there are auto, "):
        compare_solvers(DUAL, solvers=["simplex"])
    with pytest.raises(ValueError, match="SVC has no solver 'simplex'; there are auto, "):
        compare_solvers(SVC(), X, y, solvers=["simplex"])
    with pytest.raises(ValueError, match="A problem has its data"):
        compare_solvers(DUAL, X, y)
    with pytest.raises(ValueError, match="needs its data"):
        compare_solvers(SVC())
    with pytest.raises(TypeError, match="takes a DualProblem, a Risk or an estimator"):
        compare_solvers(3)
    with pytest.raises(TypeError, match="Perceptron has no solver to compare solvers by"):
        compare_solvers(Perceptron(), X, y)
    for machine in (KernelRidge(), LinearRegression(tol=1e-3)):
        with pytest.raises(TypeError, match="certifies no duality gap"):
            compare_solvers(machine, X, y)
    with pytest.raises(ValueError, match="has to be positive"):
        compare_solvers(DUAL, tol=0.0)
    comparison = compare_solvers(DUAL, solvers=["smo"], **QUICK)
    with pytest.raises(KeyError, match="was not compared, only smo"):
        comparison["newton"]
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="pip install pandas"):
        comparison.to_frame()


def test_the_page_on_solvers_names_all_of_them():
    page = (Path(__file__).parents[1] / "docs" / "solvers.md").read_text(encoding="utf-8")
    for name in DUAL_METHODS | RISK_METHODS:
        assert f'| `"{name}"` |' in page
