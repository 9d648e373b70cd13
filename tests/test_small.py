"""Many small problems in one compiled call: the answers of SMO, and accounts that are true."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_iris

from maxmargin import SVC, Gram, duals
from maxmargin.backends import cpu
from maxmargin.backends.threads import Workers
from maxmargin.estimators import expansion
from maxmargin.evaluation import evaluate
from maxmargin.kernels import RBF, Linear, Polynomial, Precomputed
from maxmargin.solution import Status
from maxmargin.solvers import SMO, solve_certified
from maxmargin.solvers.driver import Watch
from maxmargin.solvers.dual.small import SmallBatch

random = np.random.default_rng(3)
X = random.normal(size=(240, 5)) + 3.0
y = np.where(X[:, 0] * X[:, 1] + random.normal(size=240) > 9.0, 1.0, -1.0)
target = np.sin(X[:, 0]) + 0.3 * random.normal(size=240)
ROWS = [np.arange(0, 90), np.arange(40, 240, 2), np.flatnonzero(X[:, 2] > 2.5)]


def read_only_float32(X):
    K = np.asarray(RBF(gamma=0.2)(X), dtype=np.float32)
    K.flags.writeable = False
    return K


GRAMS = {
    "points": lambda: Gram.of(X, RBF(gamma=0.2)),
    "float32 points": lambda: Gram.of(X.astype(np.float32), RBF(gamma=0.2)),
    "far from zero": lambda: Gram.of(X + 1e6, RBF(gamma=0.2)),
    "a matrix": lambda: Gram.of(RBF(gamma=0.2)(X), Precomputed()),
    "a float32 matrix": lambda: Gram.of(read_only_float32(X), Precomputed()),
    "a programme": lambda: Gram.of(X, Polynomial(degree=2) + 0.5 * Linear()),
    "sparse points": lambda: Gram.of(sp.csr_array(np.where(X > 3, X, 0.0)), RBF(gamma=0.2)),
    "a block each": lambda: Gram.of(X, Linear(), memory=1 << 18),
}
PROBLEMS = {
    "C-SVC": lambda rows: duals.c_svc(rows, y[rows], np.full(len(rows), 5.0)),
    "nu-SVC": lambda rows: duals.nu_svc(rows, y[rows], np.ones(len(rows)), nu=0.3),
    "SVR": lambda rows: duals.epsilon_svr(rows, target[rows], np.full(len(rows), 2.0), 0.1),
    "nu-SVR": lambda rows: duals.nu_svr(rows, target[rows], np.full(len(rows), 2.0), nu=0.4),
    "one class": lambda rows: duals.one_class(rows, np.ones(len(rows)), nu=0.2),
}


@pytest.mark.parametrize("kind", PROBLEMS)
@pytest.mark.parametrize("form", GRAMS)
def test_answers_and_accounts_are_those_of_one_at_a_time(form, kind):
    gram, tol = GRAMS[form](), 1e-6
    problems = [PROBLEMS[kind](rows) for rows in ROWS]
    watches = [Watch(tol, workers=Workers(2)) for _ in problems]
    answers = SmallBatch().solve_all([problem.over(gram) for problem in problems], watches)
    alone, _ = solve_certified(GRAMS[form](), problems, SMO(), tol)
    for problem, answer, reference in zip(problems, answers, alone, strict=True):
        account, certificate = answer.account, reference.certificate
        if form != "a programme" or "SVR" not in kind:  # whose faces are flat: SMO may go on
            assert answer.status is Status.CONVERGED
            assert account.violation <= tol
            assert account.dual == pytest.approx(certificate.dual, rel=1e-7, abs=1e-9)
        own = problem.renumbered().over(gram.take(problem.rows))
        again = evaluate(own, answer, tol, gram.spectrum)
        np.testing.assert_allclose(answer.decision, again.recomputed, rtol=1e-9, atol=1e-9)
        assert account.dual == pytest.approx(again.certificate.dual, rel=1e-9, abs=1e-9)
        assert account.primal == pytest.approx(again.certificate.primal, rel=1e-9, abs=1e-9)
        assert account.bias == pytest.approx(again.levels.bias, rel=1e-7, abs=1e-7)
        off = abs(account.gap - again.certificate.gap)
        assert off <= account.rounding + again.certificate.rounding


def test_a_batch_gives_the_same_answer_twice_and_on_any_number_of_threads():
    labels = np.arange(240) % 8
    first = SVC(n_jobs=1).fit(X, labels)
    for n_jobs in (1, 2, 3):
        again = SVC(n_jobs=n_jobs).fit(X, labels)
        np.testing.assert_array_equal(first.dual_coef_, again.dual_coef_)
        np.testing.assert_array_equal(first.intercept_, again.intercept_)
        assert first.certificate_ == again.certificate_


def test_what_a_batch_cannot_finish_goes_on_alone(monkeypatch):
    """Where there is no time for it, and where scores may be out of all proportion."""
    usual = SVC(C=10.0, tol=1e-6).fit(X, y)
    monkeypatch.setattr("maxmargin.solvers.dual.small._SLICE", 50)
    alone = SVC(C=10.0, tol=1e-6).fit(X, y)
    assert alone.certificate_.converged
    assert alone.certificate_.dual == pytest.approx(usual.certificate_.dual, rel=1e-7)
    monkeypatch.undo()
    problem = duals.c_svc(np.arange(90), y[:90], np.full(90, 1e30))
    answer = SmallBatch().solve(problem.over(Gram.of(X[:90], RBF(gamma=0.2))))
    assert answer.status is Status.STALLED
    assert answer.n_iter == 0


@pytest.mark.parametrize("kept", [True, False])
def test_support_vectors_are_prepared_once(monkeypatch, kept):
    """One row after the other costs its own preparation only; a changed machine is another."""
    monkeypatch.setattr(expansion, "_KEPT", 10**6 if kept else 0)
    prepared, prepare = [], cpu.Operand.prepare
    monkeypatch.setattr(
        cpu.Operand, "prepare", lambda *args, **how: prepared.append(1) or prepare(*args, **how)
    )
    points, labels = load_iris(return_X_y=True)
    model = SVC().fit(points, labels == 1)
    prepared.clear()
    values = np.concatenate([model.decision_function(row[None]) for row in points[:5]])
    assert len(prepared) == (6 if kept else 10)
    model.dual_coef_ = 2.0 * model.dual_coef_
    twice = model.decision_function(points[:5]) - model.intercept_
    np.testing.assert_allclose(twice, 2.0 * (values - model.intercept_))
    other = SVC(C=0.1).fit(points, labels == 1)
    model.set_params(C=0.1).fit(points, labels == 1)
    np.testing.assert_array_equal(model.predict(points), other.predict(points))
