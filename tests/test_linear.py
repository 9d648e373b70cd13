"""Machines over regularised risks: every solver finds the same minimum, and proves it."""

import gc
import pickle
import tracemalloc
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.linear_model
import sklearn.svm
from scipy.special import expit, softmax
from sklearn.base import clone
from sklearn.datasets import load_iris, make_blobs
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.preprocessing import StandardScaler

import maxmargin.backends.cpu.linear.design
import maxmargin.risk.base
import maxmargin.solvers.risk.l1_descent
import maxmargin.solvers.risk.newton_steps
import maxmargin.solvers.select
from maxmargin import (
    SVC,
    SVR,
    InseparableError,
    KernelLogisticRegression,
    LeastSquaresClassifier,
    LinearSVC,
    LinearSVR,
    LogisticRegression,
    MCEClassifier,
    NuSVC,
    Perceptron,
    Trace,
)
from maxmargin.backends.cpu.linear import Design
from maxmargin.backends.cpu.linear.span import Span
from maxmargin.linear import C_path
from maxmargin.losses import Absolute, EpsilonInsensitive, Hinge, Logistic, SquaredHinge, ZeroOne
from maxmargin.progress import Monitor
from maxmargin.risk import RegularisedRisk
from maxmargin.solution import Status
from maxmargin.solvers import SMO, DualDescent, Multipliers, Newton, Watch
from maxmargin.solvers.risk import subsampled_newton
from maxmargin.solvers.risk.dual_descent import _balance

RANDOM = np.random.default_rng(11)
N = 60
X = RANDOM.normal(size=(N, 5)) * [1.0, 1.5, 0.5, 1.0, 1.0] + [0.0, 0.5, 0.0, 0.0, 0.0]
X[RANDOM.random(X.shape) < 0.3] = 0.0
X = X.astype(np.float32).astype(np.float64)  # the same numbers in every container
TWO = np.where(X[:, 0] + X[:, 1] + RANDOM.normal(size=N) > 0.5, 1, -1)
THREE = np.digitize(X[:, 0] - X[:, 2] + RANDOM.normal(size=N), [-0.5, 0.7])
NUMBERS = X @ [1.0, 0.1, -2.0, 1.0, 0.0] + 1.0 + 0.5 * RANDOM.normal(size=N)
HALVES = sp.csr_matrix(  # every entry in two parts
    (np.repeat(X / 2, 2, axis=0).ravel(), np.tile(np.arange(5), 2 * N), np.arange(N + 1) * 10)
)
CONTAINERS = {
    "float64": X,
    "float32": X.astype(np.float32),
    "csr": sp.csr_matrix(X),
    "csr in parts": HALVES,
    "csr float32": sp.csr_array(X.astype(np.float32)),
}
INTERCEPTS = {
    "free": {},
    "penalised": {"intercept_scaling": 1.0},
    "none": {"fit_intercept": False},
}
PROBLEMS = {  # machine, targets, solvers
    "hinge": (LinearSVC(loss="hinge", C=0.3), TWO, ["multipliers", "dual_descent"]),
    "squared hinge": (LinearSVC(C=0.3), TWO, ["newton", "dual_descent"]),
    "several": (LinearSVC(C=0.3), THREE, ["newton", "dual_descent"]),
    "l1": (LinearSVC(penalty="l1", C=0.3), TWO, ["l1_descent"]),
    "tube": (LinearSVR(epsilon=0.3, C=0.3), NUMBERS, ["multipliers", "dual_descent"]),
    "absolute": (LinearSVR(C=0.3), NUMBERS, ["multipliers"]),
    "squared tube": (
        LinearSVR(epsilon=0.3, C=0.3, loss="squared_epsilon_insensitive"),
        NUMBERS,
        ["newton", "dual_descent"],
    ),
    "logistic": (LogisticRegression(), TWO, ["newton", "lbfgs", "newton-cg", "saga"]),
    "logistic dual": (LogisticRegression(dual=True), TWO, ["auto"]),
    "logistic l1": (LogisticRegression(l1_ratio=1.0, C=0.3), TWO, ["auto", "saga"]),
    "logistic elastic net": (LogisticRegression(l1_ratio=0.6, C=0.3), TWO, ["auto"]),
    "softmax": (LogisticRegression(), THREE, ["newton", "lbfgs", "newton-cholesky", "sag"]),
    "softmax l1": (LogisticRegression(l1_ratio=1.0, C=0.3), THREE, ["auto"]),
    "softmax elastic net": (LogisticRegression(l1_ratio=0.6, C=0.3), THREE, ["auto"]),
    "likelihood": (LogisticRegression(penalty=None), TWO, ["newton", "lbfgs"]),
    "softmax likelihood": (LogisticRegression(C=np.inf), THREE, ["newton", "lbfgs"]),
    "liblinear": (LogisticRegression(solver="liblinear"), TWO, ["liblinear"]),
    "liblinear dual": (LogisticRegression(solver="liblinear", dual=True), TWO, ["liblinear"]),
    "liblinear l1": (LogisticRegression(penalty="l1", solver="liblinear"), TWO, ["liblinear"]),
}
KINDS = [
    (name, intercept)
    for name, (machine, _, _) in PROBLEMS.items()
    for intercept in INTERCEPTS
    if (intercept == "penalised") <= (not isinstance(machine, LogisticRegression))
]
MACHINES = [
    (LinearSVC(loss="hinge", solver="multipliers"), TWO),
    (LinearSVC(), THREE),
    (LinearSVC(penalty="l1"), TWO),
    (LinearSVR(epsilon=0.1, solver="multipliers"), NUMBERS),
    (LinearSVR(epsilon=0.1, loss="squared_epsilon_insensitive"), NUMBERS),
    (LogisticRegression(), TWO),
    (LogisticRegression(l1_ratio=0.5), TWO),
    (LogisticRegression(), THREE),
    (LogisticRegression(l1_ratio=1.0), THREE),
]


def pairs(table):
    """Machine and targets, named by both."""
    cases = []
    for machine, y in table:
        name = f"{machine}-{'numbers' if y is NUMBERS else len(set(y))}"
        cases.append(pytest.param(machine, y, id=name))
    return pytest.mark.parametrize(("machine", "y"), cases)


machines = pairs(MACHINES)


def totals(certificate):
    """Primal and dual objective of all machines together."""
    parts = certificate.parts or (certificate,)
    return sum(part.primal for part in parts), sum(part.dual for part in parts)


LOGISTIC = LogisticRegression | sklearn.linear_model.LogisticRegression


def penalises_its_intercept(model):
    if isinstance(model, LOGISTIC):
        return model.solver == "liblinear"
    return getattr(model, "intercept_scaling", None) is not None


def held_back(model):
    """Parts of the l1 and of the l2 norm in the penalty."""
    penalty, ratio = getattr(model, "penalty", "l2"), getattr(model, "l1_ratio", 0.0)
    if penalty is None or np.inf == model.C:
        return 0.0, 0.0
    ratio = {"l1": 1.0, "l2": 0.0}.get(penalty, ratio)
    return ratio, 1.0 - ratio


def objective(model, X, y, weight=None, C=None):
    """Write the objective out; a scaling of the intercept is one."""
    weight = np.ones(len(y)) if weight is None else weight
    W, b = np.atleast_2d(model.coef_), np.atleast_1d(model.intercept_)
    F = X @ W.T + b
    if isinstance(model, LinearSVR | sklearn.svm.LinearSVR):
        V = np.maximum(np.abs(F[:, 0] - y) - model.epsilon, 0.0)
        loss = weight @ (V**2 if model.loss.startswith("squared") else V)
    elif not isinstance(model, LOGISTIC):
        signs = [1] if len(W) == 1 else range(len(W))
        Y = np.column_stack([np.where(y == model.classes_[k], 1.0, -1.0) for k in signs])
        V = np.maximum(1.0 - Y * F, 0.0)
        loss = (weight @ (V**2 if model.loss.startswith("squared") else V)).sum()
    else:
        F = np.column_stack([-F / 2, F / 2]) if len(W) == 1 else F
        at = np.searchsorted(model.classes_, y)
        loss = weight @ (np.logaddexp.reduce(F, axis=1) - F[np.arange(len(F)), at])
    l1, l2 = held_back(model)
    held = np.column_stack([W, b]) if penalises_its_intercept(model) else W
    C = (1.0 if l1 == l2 == 0 else model.C) if C is None else C
    return l1 * np.abs(held).sum() + 0.5 * l2 * (held**2).sum() + C * loss


# -- every solver, the same minimum --------------------------------------------------------------


@pytest.mark.parametrize(("name", "intercept"), KINDS)
def test_all_solvers_find_one_minimum_in_every_container(name, intercept):
    machine, y, solvers = PROBLEMS[name]
    machine = clone(machine).set_params(max_iter=20_000, **INTERCEPTS[intercept])
    exact = clone(machine).set_params(solver=solvers[0], tol=1e-10).fit(X, y)
    best = objective(exact, X, y)
    assert totals(exact.certificate_)[0] == pytest.approx(best, rel=1e-9)
    for solver in solvers:
        for data in CONTAINERS.values():
            model = clone(machine).set_params(solver=solver, tol=1e-6).fit(data, y)
            assert model.certificate_.converged
            assert model.certificate_.relative_gap <= 1e-6
            assert objective(model, X, y) == pytest.approx(best, rel=1e-5)
            assert totals(model.certificate_)[1] <= best * (1 + 1e-10)
            assert model.coef_.dtype == np.float64  # the weights that the certificate is about
            np.testing.assert_allclose(model.predict(data), model.predict(X), rtol=1e-6)


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_dual_is_a_lower_bound_wherever_a_solver_stops(name):
    machine, y, solvers = PROBLEMS[name]
    best = clone(machine).set_params(solver=solvers[0], tol=1e-10, max_iter=-1).fit(X, y)
    least = [part.primal for part in best.certificate_.parts or (best.certificate_,)]
    for solver in solvers:
        for passes in range(8):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                model = clone(machine).set_params(solver=solver, tol=1e-12, max_iter=passes)
                certificate = model.fit(X, y).certificate_
            parts = certificate.parts or (certificate,)
            for part, bottom in zip(parts, least, strict=True):
                assert part.dual <= bottom * (1 + 1e-10)
                assert part.primal >= bottom * (1 - 1e-10)
                assert part.gap >= 0


def test_stochastic_steps_come_near_and_say_how_near():
    for machine, y in [(LinearSVC(loss="hinge"), TWO), (LogisticRegression(), TWO)]:
        best = clone(machine).fit(X, y).certificate_.primal
        model = machine.set_params(solver="sgd", max_iter=300, tol=1e-9, random_state=0)
        with pytest.warns(ConvergenceWarning, match=r"max_iter=300.*relative duality gap is"):
            model.fit(X, y)
        assert objective(model, X, y) == pytest.approx(best, rel=0.02)
        assert model.certificate_.dual <= best * (1 + 1e-4)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("y", [TWO, THREE], ids=["two", "three"])
@pytest.mark.parametrize("form", [{"penalty": None}, {"C": 0.5}, {"lam": 0.01}], ids=str)
@pytest.mark.parametrize("solver", ["gradient_descent", "sgd"])
def test_steps_of_a_given_size_are_the_lectures_by_hand(solver, form, y, random):
    """Against the gradient of the objective as it is stated, or of one row's part of it."""
    Z, s = np.column_stack([X, np.ones(N)]), random.uniform(0.5, 2.0, size=N)
    truth = np.equal.outer(y, np.unique(y)) * 1.0
    mean = s.sum() if solver == "gradient_descent" else s.mean()
    losses, penalty = {"penalty": (1.0, 0.0), "C": (0.5, 1.0), "lam": (1.0 / mean, 0.02)}[
        next(iter(form))
    ]
    parts = N if solver == "sgd" and "C" in form else 1
    held = penalty / parts * np.append(np.ones(5), 0.0)

    def slope(theta, i):
        if theta.ndim == 1:
            return -losses * (s[i] * y[i] * expit(-y[i] * (Z[i] @ theta))) @ Z[i] + held * theta
        away = softmax(Z[i] @ theta.T, axis=1) - truth[i]
        return losses * (s[i, None] * away).T @ Z[i] + held * theta

    order = np.random.default_rng(np.random.RandomState(0).randint(1 << 31))
    theta, t = np.zeros(6 if y is TWO else (3, 6)), 0
    path = [theta]
    for _ in range(3):
        by_rows = solver == "sgd"
        for i in order.permutation(N)[:, None] if by_rows else [np.arange(N)]:
            t += 1
            theta = theta - 1e-2 / t**0.5 * slope(theta, i)
            path.append(theta)
    for data in (X, CONTAINERS["csr"]):
        trace = Trace()
        model = LogisticRegression(solver=solver, step_size=lambda t: 1e-2 / t**0.5, **form)
        model.set_params(max_iter=3, callback=trace, random_state=0).fit(data, y, s)
        walked = [record.variables for record in trace.records[0]]
        np.testing.assert_allclose(walked, path, rtol=1e-9, atol=1e-12)
        found = np.column_stack([model.coef_, model.intercept_]).reshape(theta.shape)
        np.testing.assert_allclose(found[..., :5], theta[..., :5], rtol=1e-9, atol=1e-12)
        assert len(model.loss_curve_) == 4
        assert model.loss_curve_[-1] == pytest.approx(model.certificate_.primal)
        assert model.n_iter_[0] == 3
        assert model.solver_ == solver
    number = LogisticRegression(solver=solver, step_size=1e-2, max_iter=3, **form).fit(X, y, s)
    assert not np.allclose(number.coef_, model.coef_, rtol=1e-3)
    if solver == "gradient_descent" or "penalty" in form:
        number.set_params(units="standardised").fit(X, y, s)
        assert not np.allclose(number.coef_, model.coef_, rtol=1e-3)


@pytest.mark.parametrize("y", [TWO, THREE], ids=["two", "three"])
@pytest.mark.parametrize("penalty", [None, "l2"])
def test_descents_that_choose_their_steps_find_the_minimum(y, penalty, random):
    """In the units of standardised columns, where units do not matter."""
    best = LogisticRegression(penalty=penalty, tol=1e-9).fit(X, y).certificate_.primal
    unit = np.array([1.0, 1e3, 1e-2, 1.0, 10.0]) if penalty is None else 1.0
    options = {"penalty": penalty, "random_state": 0, "max_iter": 500}
    down = LogisticRegression(solver="gradient_descent", **options).fit(X * unit, y)
    assert down.certificate_.converged
    assert down.certificate_.primal == pytest.approx(best, rel=1e-3)
    rows = LogisticRegression(solver="sgd", tol=1e-2, **options).fit(X * unit, y)
    assert rows.certificate_.converged
    assert best * (1 - 1e-9) <= rows.certificate_.primal <= best * (1 + 1e-2)
    assert hasattr(down, "loss_curve_")
    assert hasattr(rows, "loss_curve_") == (penalty is None)  # else it is Pegasos
    assert not hasattr(down.set_params(solver="newton").fit(X, y), "loss_curve_")


@pytest.mark.parametrize("solver", ["gradient_descent", "sgd"])
def test_steps_that_are_too_large_diverge_and_say_so(solver):
    model = LogisticRegression(solver=solver, step_size=2.5 * N, C=1e-6, random_state=0)
    with pytest.warns(ConvergenceWarning, match=r"have diverged.*Leave step_size=None"):
        model.fit(X, TWO)
    assert model.certificate_.status is Status.DIVERGED
    assert model.loss_curve_[-1] > 100 * model.loss_curve_[0]
    assert np.isfinite(model.coef_).all()
    wild = LogisticRegression(solver="gradient_descent", step_size=1.0, penalty=None, max_iter=20)
    said = r"has grown at \d+ steps.*step_size=1.0 is too"
    with pytest.warns(ConvergenceWarning, match=said):
        wild.fit(X, TWO)


@pytest.mark.slow
def test_steps_that_swing_for_ever_end_and_those_that_fall_do_not():
    options = {"solver": "gradient_descent", "penalty": None, "tol": 1e-12}
    swinging = LogisticRegression(step_size=1.0, max_iter=-1, **options)
    with pytest.warns(ConvergenceWarning, match=r"no step lowers.*step_size=1.0 is too large"):
        certificate = swinging.fit(X, TWO).certificate_
    assert certificate.status is Status.STALLED
    assert certificate.primal == pytest.approx(min(swinging.loss_curve_))
    assert len(swinging.loss_curve_) <= 2 * np.argmin(swinging.loss_curve_) + 5_010
    for falling in (1e-6, lambda t: t**-0.01):  # slowly, or after a long swing
        model = LogisticRegression(step_size=falling, max_iter=6_000, **options)
        with pytest.warns(ConvergenceWarning):
            assert model.fit(X, TWO).certificate_.status is Status.MAX_ITER


def test_auto_takes_the_solver_for_the_shape(random):
    wide = random.normal(size=(20, 2000))
    chosen = {
        "newton": (LinearSVC(), X),
        "multipliers": (LinearSVC(loss="hinge"), X),
        "dual_descent": (LinearSVC(loss="hinge"), wide),
        "l1_descent": (LinearSVC(penalty="l1"), X),
    }
    for name, (machine, data) in chosen.items():
        assert machine.fit(data, TWO[: len(data)]).solver_ == name
    assert LinearSVC(dual=True).fit(X, TWO).solver_ == "dual_descent"
    assert LinearSVC(dual=False).fit(wide, TWO[:20]).solver_ == "newton"


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"loss": "hinge", "solver": "newton"}, "needs a smooth loss"),
        ({"solver": "multipliers"}, "is for losses with kinks"),
        ({"solver": "l1_descent"}, "is for penalty='l1'"),
        ({"solver": "newton", "dual": True}, "contradict each other"),
        ({"solver": SMO()}, r"duals of kernel machines: use SVC.*Got solver=SMO\("),
        ({"solver": "dual_descent", "dual": False}, "contradict each other"),
        ({"penalty": "l1", "loss": "hinge"}, "goes with loss='squared_hinge'"),
        ({"penalty": "l1", "solver": "newton"}, "has a kink at zero: use solver='l1_descent'"),
        ({"penalty": "l1", "norm_bound": 1.0}, "goes with penalty='l2'"),
        ({"solver": "sgd", "norm_bound": 1.0}, "found through exact answers"),
        ({"multi_class": "crammer_singer", "multiclass": "ovo"}, "contradict each other"),
        ({"C": 2.0, "lam": 0.1}, "Give C or lam, not both"),
        ({"C": 2.0, "norm_bound": 1.0}, "Give one of C, lam and norm_bound"),
        ({"lam": 0.1, "norm_bound": 1.0}, "Give one of C, lam and norm_bound"),
        ({"C": np.inf, "norm_bound": 1.0}, "Give one of C, lam and norm_bound"),
        ({"C": np.inf, "lam": 1.0}, "Give C or lam, not both"),
        ({"C": np.inf, "penalty": "l1"}, "is the shortest w"),
        ({"C": np.inf, "loss": SquaredHinge()}, "is the shortest w"),
        ({"C": np.inf, "solver": "sgd"}, "has no slack to step by"),
        ({"C": np.inf, "solver": "newton"}, "through the hinge, for any loss. Newton's method"),
    ],
)
def test_what_does_not_go_together_is_refused(parameters, message):
    with pytest.raises(ValueError, match=message):
        LinearSVC(**parameters).fit(X, TWO)


@pytest.mark.parametrize(
    ("parameters", "y", "message"),
    [
        ({"penalty": None, "lam": 0.1}, TWO, "nothing for lam to weigh"),
        ({"solver": "sgd", "units": "standardised"}, TWO, "stochastic steps are Pegasos's"),
        ({"step_size": 0.1}, TWO, "solver='auto' has no step size"),
        ({"solver": "newton", "units": "data"}, TWO, "solver='newton' has no step size"),
        (
            {"solver": "gradient_descent", "step_size": 0.1, "norm_bound": 1.0},
            TWO,
            "leave step_size=None",
        ),
        ({"solver": "gradient_descent", "l1_ratio": 0.5}, TWO, "supports only 'l2' or None"),
        ({"dual": True}, THREE, "are for machines for two classes"),
        ({"norm_bound": 1.0, "l1_ratio": 0.5}, TWO, "goes with penalty='l2'"),
        ({"solver": "liblinear"}, THREE, "'liblinear' solver does not support multiclass"),
        ({"solver": "liblinear", "C": np.inf}, TWO, "is not supported for the liblinear solver"),
        ({"solver": "lbfgs", "penalty": "l1"}, TWO, "Solver lbfgs supports only 'l2' or None pen"),
        ({"solver": "sag", "l1_ratio": 0.5}, TWO, "got elasticnet penalty"),
        ({"solver": "saga", "dual": True}, TWO, "Solver saga supports only dual=False"),
        ({"dual": True, "l1_ratio": 1.0}, TWO, "dual=True is for the l2 penalty"),
        ({"intercept_scaling": 2.0}, TWO, "is for solver='liblinear'"),
        ({"penalty": "elasticnet", "l1_ratio": None}, TWO, "l1_ratio must be specified"),
    ],
)
def test_logistic_regression_refuses_too(parameters, y, message):
    with pytest.raises(ValueError, match=message):
        LogisticRegression(**parameters).fit(X, y)


@pytest.mark.parametrize("cost", [0.01, 1.0])
def test_logistic_regression_is_as_exact_by_default_as_that_of_scikit_learn(cost):
    points, labels = load_iris(return_X_y=True)
    best = LogisticRegression(C=cost, tol=1e-12).fit(points, labels).coef_
    theirs = sklearn.linear_model.LogisticRegression(C=cost, max_iter=1000).fit(points, labels)
    error = np.abs(LogisticRegression(C=cost).fit(points, labels).coef_ - best).max()
    assert error <= np.abs(theirs.coef_ - best).max()
    assert error <= 1e-5 * np.abs(best).max()


def test_many_columns_are_solved_without_their_matrix(random, monkeypatch):
    wide = random.normal(size=(40, 1700))
    for machine in (LinearSVC(penalty="l1"), LogisticRegression(), LogisticRegression(C=0.01)):
        for data in (wide, sp.csr_matrix(wide)):
            assert clone(machine).fit(data, TWO[:40]).certificate_.converged
    several = LogisticRegression().fit(wide, THREE[:40])
    assert several.certificate_.converged
    assert several.solver_ == "newton"
    monkeypatch.setattr(maxmargin.risk.base, "DIRECT", 2)
    monkeypatch.setattr(maxmargin.solvers.risk.newton_steps, "DIRECT", 2)
    for y in (TWO, THREE):
        for solver in ("newton", "lbfgs"):
            model = LogisticRegression(penalty=None, solver=solver, tol=1e-6).fit(X, y)
            assert model.certificate_.converged


# -- the same as others ---------------------------------------------------------------------------


@pytest.mark.parametrize("C", [0.02, 3.0])
@pairs(
    [
        (LinearSVC(loss="hinge"), TWO),
        (LinearSVC(), TWO),
        (LinearSVC(), THREE),
        (LinearSVC(penalty="l1"), TWO),
        (LinearSVC(penalty="l1"), THREE),
        (LinearSVR(epsilon=0.2), NUMBERS),
        (LinearSVR(epsilon=0.2, loss="squared_epsilon_insensitive"), NUMBERS),
    ]
)
def test_a_penalised_intercept_is_liblinears_problem(machine, y, C):
    ours = clone(machine).set_params(C=C, intercept_scaling=1.0, tol=1e-9).fit(X, y)
    peer = getattr(sklearn.svm, type(ours).__name__)
    names = ("loss", "C", "epsilon", "penalty")
    shared = {k: v for k, v in ours.get_params().items() if k in names}
    dual = shared.get("penalty") != "l1"
    theirs = peer(
        **shared, intercept_scaling=1.0, dual=dual, tol=1e-10, max_iter=10**6, random_state=0
    )
    theirs.fit(X, y)
    l1 = shared.get("penalty") == "l1"
    assert objective(ours, X, y) == pytest.approx(objective(theirs, X, y), rel=1e-4 if l1 else 1e-6)
    assert objective(ours, X, y) <= objective(theirs, X, y) * (1 + 1e-8)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-3)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-3)
    if l1 and C < 1:
        assert (ours.coef_ == 0).any()
        np.testing.assert_array_equal(ours.coef_ == 0, np.abs(theirs.coef_) < 1e-6)


@pytest.mark.parametrize("intercept", [True, False])
def test_a_free_intercept_is_the_lectures_problem(intercept):
    same = {"C": 0.7, "tol": 1e-9, "fit_intercept": intercept}
    linear = LinearSVC(loss="hinge", **same).fit(X, TWO)
    kernel = SVC(kernel="linear", **same).fit(X, TWO)
    np.testing.assert_allclose(linear.coef_, kernel.coef_, atol=1e-5)
    np.testing.assert_allclose(linear.intercept_, kernel.intercept_, atol=1e-4)
    linear = LinearSVR(epsilon=0.2, **same).fit(X, NUMBERS)
    kernel = SVR(kernel="linear", epsilon=0.2, **same).fit(X, NUMBERS)
    np.testing.assert_allclose(linear.coef_, kernel.coef_.ravel(), atol=1e-5)
    np.testing.assert_allclose(linear.intercept_, kernel.intercept_, atol=1e-4)


@pytest.mark.parametrize("y", [TWO, THREE], ids=["two classes", "three"])
@pytest.mark.parametrize("class_weight", [None, "balanced", {1: 3.0}])
@pytest.mark.parametrize("intercept", [True, False])
def test_logistic_regression_is_scikit_learns(y, class_weight, intercept, random):
    weight = random.uniform(0.1, 2.0, size=N)
    same = {"C": 0.8, "class_weight": class_weight, "fit_intercept": intercept}
    peer = sklearn.linear_model.LogisticRegression(**same, tol=1e-10, max_iter=10_000)
    peer.fit(X, y, weight)
    for solver in ("newton", "lbfgs"):
        model = LogisticRegression(**same, solver=solver, tol=1e-10, max_iter=1000)
        model.fit(X, y, weight)
        np.testing.assert_allclose(model.coef_, peer.coef_, atol=1e-4)
        np.testing.assert_allclose(model.intercept_, peer.intercept_, atol=1e-4)
        np.testing.assert_allclose(model.predict_proba(X), peer.predict_proba(X), atol=1e-5)
        logarithms = model.predict_log_proba(X)
        np.testing.assert_allclose(logarithms, np.log(model.predict_proba(X)), atol=1e-12)
        np.testing.assert_array_equal(model.predict(X), peer.predict(X))


PENALTIES = {
    "l2": {"l1_ratio": 0.0},
    "l1": {"l1_ratio": 1.0},
    "l1 by name": {"penalty": "l1"},
    "elastic net": {"l1_ratio": 0.4},
    "elastic net by name": {"penalty": "elasticnet", "l1_ratio": 0.8},
    "none": {"C": np.inf},
    "none by name": {"penalty": None},
}


@pytest.mark.parametrize("y", [TWO, THREE], ids=["two classes", "three"])
@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.filterwarnings(
    "ignore:'penalty' was deprecated", "ignore:Inconsistent values", "ignore:l1_ratio parameter"
)
def test_penalties_are_those_of_scikit_learn(y, penalty, intercept, random):
    weight = random.uniform(0.1, 2.0, size=N)
    same = {"C": 0.3, "fit_intercept": intercept, **PENALTIES[penalty]}
    if same.get("penalty", "") is None:
        del same["C"]
    peer = sklearn.linear_model.LogisticRegression(
        **same, solver="saga", tol=1e-10, max_iter=10**5, random_state=0
    ).fit(X, y, weight)
    for solver in ("auto", "saga"):
        model = LogisticRegression(**same, solver=solver, tol=1e-10).fit(X, y, weight)
        least = objective(model, X, y, weight)
        assert model.certificate_.converged
        assert model.certificate_.primal == pytest.approx(least, rel=1e-9)
        assert least <= objective(peer, X, y, weight) * (1 + 1e-10)
        np.testing.assert_allclose(model.coef_, peer.coef_, atol=1e-4)
        np.testing.assert_allclose(model.intercept_, peer.intercept_, atol=1e-4)
        if model._penalty.l1:
            assert (model.coef_ == 0).any()
            np.testing.assert_array_equal(model.coef_ == 0, np.abs(peer.coef_) < 1e-6)


@pytest.mark.parametrize("penalty", ["l1", "l2"])
@pytest.mark.parametrize("dual", [False, True])
@pytest.mark.parametrize("scaling", [1.0, 10.0])
@pytest.mark.filterwarnings("ignore:'penalty' was deprecated", "ignore:Inconsistent values")
def test_liblinears_logistic_regression_penalises_its_intercept(penalty, dual, scaling):
    if dual and penalty == "l1":
        pytest.skip("neither has it")
    same = {"penalty": penalty, "dual": dual, "intercept_scaling": scaling, "C": 0.4}
    ours = LogisticRegression(**same, solver="liblinear", tol=1e-10, max_iter=10**4).fit(X, TWO)
    theirs = sklearn.linear_model.LogisticRegression(
        **same, solver="liblinear", tol=1e-10, max_iter=10**5, random_state=0
    ).fit(X, TWO)
    assert ours.certificate_.converged
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-4)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-4)


@pytest.mark.parametrize("y", [TWO, THREE], ids=["two classes", "three"])
@pytest.mark.parametrize("l1_ratio", [0.3, 1.0])
def test_an_l1_penalty_by_every_road(y, l1_ratio, monkeypatch):
    data = np.column_stack([X + 3.0, np.random.default_rng(0).normal(size=(N, 25))])
    machine = LogisticRegression(l1_ratio=l1_ratio, C=0.5, tol=1e-6, max_iter=10**4)
    best = clone(machine).set_params(tol=1e-11).fit(data, y)
    monkeypatch.setattr(maxmargin.solvers.risk.l1_descent, "BY_MATRIX", 3)  # by columns
    monkeypatch.setattr(maxmargin.solvers.select, "SOFTMAX_NEWTON", 3)  # two parts of a weight
    for rows in (data, sp.csr_matrix(data)):
        model = clone(machine).fit(rows, y)
        assert model.certificate_.converged
        assert model.certificate_.primal == pytest.approx(best.certificate_.primal, rel=1e-6)
        np.testing.assert_allclose(model.coef_, best.coef_, atol=2e-3)
        assert np.abs(model.coef_[best.coef_ == 0]).max() < 1e-3


@pytest.mark.parametrize("offset", [0.0, 1e4])
@pytest.mark.parametrize(
    "machine",
    [LinearSVC(penalty="l1", C=4e4, tol=1e-8), LogisticRegression(l1_ratio=1.0, C=1e4)],
    ids=["hinge", "logistic"],
)
def test_interior_points_take_over_where_coordinates_crawl(machine, offset, monkeypatch):
    """Separable classes, more columns than rows, a large C: the hinge took 3 s, or for ever."""
    random = np.random.default_rng(0)
    data, y = random.normal(size=(21, 184)) * 10.0 ** random.uniform(-2, 2, 184), np.arange(21) % 2
    called, start = [], maxmargin.solvers.risk.l1_descent.L1InteriorPoints
    monkeypatch.setattr(
        maxmargin.solvers.risk.l1_descent,
        "L1InteriorPoints",
        lambda risk: (called.append(risk), start(risk))[1],
    )
    model = machine.set_params(max_iter=100).fit(data + offset, y)
    assert called
    assert model.certificate_.converged
    assert np.count_nonzero(model.coef_) <= 22  # of as many rows, an extreme point


@pytest.mark.parametrize("seed", [482, 69, 297])
def test_the_dual_by_rows_with_costs_over_twelve_orders_of_magnitude(seed):
    """One took 12 s for 19 passes, in turns that visit no row; one ended at a gap of 1."""
    random = np.random.default_rng(seed)
    data = random.normal(size=(3, random.integers(1, 5)))
    y, weight = [0, 1, random.integers(2)], 10.0 ** random.uniform(-6, 6, 3)
    for C in (1.0, 1e3):
        machine = LinearSVC(loss="hinge", dual=True, C=C, random_state=0, time_limit=2.0)
        assert machine.fit(data, y, sample_weight=weight).certificate_.converged
        assert machine.n_iter_ < 1000


def test_logistic_regression_warns_where_scikit_learn_does():
    with pytest.warns(UserWarning, match="penalty=None will ignore the C") as caught:
        ignored = LogisticRegression(penalty=None, C=2.0).fit(X, TWO)
    assert caught[0].filename == __file__
    np.testing.assert_allclose(ignored.coef_, LogisticRegression(C=np.inf).fit(X, TWO).coef_)
    with pytest.warns(UserWarning, match="Inconsistent values: penalty=l2 with l1_ratio=0.5"):
        LogisticRegression(penalty="l2", l1_ratio=0.5).fit(X, TWO)


# -- weights, labels, three forms -----------------------------------------------------------------


IMBALANCED = np.digitize(X[:, 0] + 0.3 * X[:, 1], [-1.0, 1.2])  # 5, 47 and 8 rows


@pytest.mark.parametrize("weights", [None, "drawn"])
@pytest.mark.parametrize("class_weight", [{0: 1.0, 1: 5.0, 2: 1.0}, {0: 3.0}, "balanced"], ids=str)
@pytest.mark.parametrize("data", ["iris", "imbalanced"])
def test_a_class_weighs_in_its_own_machine_as_in_liblinear(data, class_weight, weights, random):
    rows, y = load_iris(return_X_y=True) if data == "iris" else (X, IMBALANCED)
    weight = None if weights is None else random.uniform(0.1, 3.0, size=len(y))
    same = {"class_weight": class_weight, "intercept_scaling": 1.0, "C": 0.5}
    ours = LinearSVC(**same, tol=1e-10).fit(rows, y, weight)
    theirs = sklearn.svm.LinearSVC(**same, tol=1e-8, dual=False, max_iter=10**5)
    theirs.fit(rows, y, weight)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-5)
    np.testing.assert_array_equal(ours.predict(rows), theirs.predict(rows))


def test_weighing_the_rows_of_a_class_everywhere_has_a_name():
    factors = {0: 1.0, 1: 5.0, 2: 1.0}
    by_row = np.array([factors[k] for k in THREE])
    named = LinearSVC(class_weight=factors, class_weight_on="rows", tol=1e-9).fit(X, THREE)
    written = LinearSVC(tol=1e-9).fit(X, THREE, by_row)
    np.testing.assert_allclose(named.coef_, written.coef_, atol=1e-7)
    positive = LinearSVC(class_weight=factors, tol=1e-9).fit(X, THREE)
    assert np.abs(positive.coef_ - written.coef_).max() > 1e-3


def test_a_class_weighs_in_its_own_machine_with_lambda_and_in_a_stream():
    machine = LinearSVC(class_weight={0: 4.0}, lam=0.05, loss="hinge")
    exact = clone(machine).set_params(tol=1e-8).fit(X, THREE)
    for k in range(3):
        weight = np.where((k == THREE) & (k == 0), 4.0, 1.0)
        alone = LinearSVC(lam=0.05, loss="hinge", tol=1e-8).fit(X, k == THREE, weight)
        np.testing.assert_allclose(exact.coef_[k], alone.coef_[0], atol=1e-5)
        assert exact.C_[k] == pytest.approx(alone.C_[0])
    stream = batches(clone(machine), X, THREE, epochs=200)
    np.testing.assert_allclose(stream.coef_, exact.coef_, atol=0.1)


@pairs(
    [
        (LinearSVC(loss="hinge"), TWO),
        (LinearSVC(solver="dual_descent", max_iter=-1), TWO),
        (LinearSVC(), THREE),
        (LinearSVC(intercept_scaling=1.0), TWO),
        (LinearSVR(epsilon=0.1), NUMBERS),
        (LinearSVC(loss="hinge", fit_intercept=False, class_weight={1: 3.0}), TWO),
        (LogisticRegression(), TWO),
        (LogisticRegression(), THREE),
    ]
)
@pytest.mark.parametrize("bound", [0.02, 0.2])
def test_a_bound_on_the_norm_is_met(machine, y, bound, random):
    weight = random.uniform(0.5, 2.0, size=N)
    model = clone(machine).set_params(norm_bound=bound, tol=1e-7).fit(X, y, weight)
    W = np.atleast_2d(model.coef_)
    if penalises_its_intercept(machine):
        W = np.column_stack([W, model.intercept_])
    W = W if len(W) == len(model.C_) else W.reshape(1, -1)  # of a softmax, all in one
    np.testing.assert_allclose(np.linalg.norm(W, axis=1), bound, rtol=1e-7)
    assert (np.linalg.norm(W, axis=1) <= bound).all()
    for part in model.certificate_.parts or [model.certificate_]:
        assert part.converged
        assert part.claim.startswith(f"least loss with ||w|| <= {bound:g}: optimal")
        assert 0 <= part.primal - part.dual <= 1e-7 * part.primal
    for k, C in enumerate(model.C_):
        same = clone(machine).set_params(C=C, tol=1e-7).fit(X, y, weight)
        np.testing.assert_allclose(
            np.atleast_2d(same.coef_)[k], np.atleast_2d(model.coef_)[k], atol=2e-3 * bound
        )


def test_a_bound_that_does_not_bind(random):
    hinge = LinearSVC(loss="hinge", norm_bound=1e3).fit(X, TWO)
    free = LinearSVC(loss="hinge", C=1e6).fit(X, TWO)
    assert np.linalg.norm(hinge.coef_) < 0.1 * 1e3
    losses = [np.maximum(1 - TWO * m.decision_function(X), 0).sum() for m in (hinge, free)]
    assert losses[0] == pytest.approx(losses[1], rel=1e-3)
    line, sign = np.array([[-3.0], [-1.0], [1.0], [2.0]]), np.array([-1, -1, 1, 1])
    # in one dimension w stays at 1/3 for a while as C grows: that is not yet the end
    for bound in (0.2, 0.4, 0.8, 5.0):
        model = LinearSVC(loss="hinge", norm_bound=bound).fit(line, sign)
        assert abs(model.coef_[0, 0]) == pytest.approx(min(bound, 1.0), rel=2e-3)


# -- streets --------------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", ["auto", "dual_descent"])
def test_a_street_is_that_of_the_kernel_machine(solver):
    weight = np.ones(N)
    weight[:4] = 0.0
    C_and_tol = {"C": 0.3, "tol": 1e-9}
    machines = {
        ("ovo", "hinge"): LinearSVC("l2", "hinge", multiclass="ovo", solver=solver, max_iter=-1),
        ("ovo", "squared"): LinearSVC(multiclass="ovo", solver=solver, max_iter=-1),
    }
    for (scheme, loss), machine in machines.items():
        model = machine.set_params(**C_and_tol).fit(X, THREE, weight)
        values = model._values(X)
        inside = np.full((3, N), False)
        for k, (a, b) in enumerate([(0, 1), (0, 2), (1, 2)]):
            seen = np.isin(THREE, [a, b]) & (weight > 0)
            margin = model.scheme_.code[k][THREE] * values[:, k]
            slack = np.where(seen, np.maximum(1 - margin, 0), np.nan)
            np.testing.assert_allclose(model.slack_[k], slack, atol=1e-12)
            inside[k] = seen & (margin < 1 + 1e-7)
        np.testing.assert_allclose(model.margin_, 1 / np.linalg.norm(model.coef_, axis=1))
        if loss == "hinge":
            kernel = SVC(kernel="linear", multiclass=scheme, **C_and_tol).fit(X, THREE, weight)
            np.testing.assert_allclose(model.margin_, kernel.margin_, rtol=1e-5)
            assert set(model.support_) == set(kernel.support_)
        assert set(model.support_) == set(np.flatnonzero(inside.any(axis=0)))
    tube = LinearSVR(epsilon=0.3, **C_and_tol).fit(X, np.column_stack([NUMBERS, -NUMBERS]), weight)
    kernel = SVR(kernel="linear", epsilon=0.3, **C_and_tol).fit(X, NUMBERS, weight)
    assert tube.slack_.shape == (N, 2)
    np.testing.assert_allclose(tube.slack_[4:, 1], kernel.slack_[4:], atol=1e-5)
    assert np.isnan(tube.slack_[:4]).all()
    assert set(tube.support_) == set(kernel.support_)
    np.testing.assert_allclose(tube.margin_, kernel.margin_, rtol=1e-5)
    direct = LinearSVC(multiclass="crammer_singer", tol=1e-8, max_iter=-1).fit(X, THREE)
    values = direct.decision_function(X)
    own = values[np.arange(N), THREE]
    others = np.where(np.arange(3) == THREE[:, None], -np.inf, values).max(axis=1)
    np.testing.assert_allclose(direct.slack_, np.maximum(0, 1 + others - own), atol=1e-9)
    stream = LinearSVC(lam=0.1).partial_fit(X, TWO, classes=[-1, 1])
    assert stream.margin_ > 0
    with pytest.raises(AttributeError, match="not after partial_fit"):
        _ = stream.slack_


@pytest.mark.parametrize("how", [{}, {"loss": "hinge", "solver": "dual_descent"}])
@pytest.mark.parametrize("scale", [1e-4, 1.0, 1e3])
def test_without_slack_the_street_is_the_widest(how, scale, random):
    blobs, two = make_blobs(60, centers=[[0, 0], [6, 6]], random_state=0)
    blobs = scale * (blobs - 3.0)
    for fit_intercept in (True, False):
        model = LinearSVC(C=np.inf, tol=1e-7, fit_intercept=fit_intercept, **how)
        model.fit(blobs, two, random.choice([0.5, 2.0], size=60))
        kernel = SVC(kernel="linear", C=np.inf, tol=1e-6, fit_intercept=fit_intercept)
        kernel.fit(blobs, two)
        assert model.certificate_.converged
        assert str(model.certificate_).startswith("converged: widest street without slack")
        assert model.margin_ == pytest.approx(kernel.margin_, rel=1e-6)
        assert set(model.support_) == set(kernel.support_)
        assert (np.where(two, 1, -1) * model.decision_function(blobs)).min() > 1 - 1e-9
        assert model.slack_.max() < 1e-9
        assert np.isinf(model.C_).all()
        assert not model.lam_.any()
    penalised = LinearSVC(C=np.inf, intercept_scaling=2.0, **how).fit(blobs, two)
    soft = LinearSVC(loss="hinge", C=1e3 / scale**2, intercept_scaling=2.0, max_iter=-1)
    np.testing.assert_allclose(penalised.coef_, soft.fit(blobs, two).coef_, rtol=1e-2)


def test_no_street_without_slack():
    weight = np.ones(N)
    weight[::7] = 0.0
    with pytest.raises(InseparableError, match="Classes 1 and -1: The hard margin") as caught:
        LinearSVC(C=np.inf).fit(X, TWO, weight)
    (plus, p), (minus, q) = caught.value.positive, caught.value.negative
    assert (TWO[plus] == 1).all()
    assert (TWO[minus] == -1).all()
    assert weight[plus].all()
    np.testing.assert_allclose([p.sum(), q.sum()], 1.0)
    np.testing.assert_allclose(p @ X[plus], q @ X[minus], atol=1e-9)
    with pytest.raises(ValueError, match="needs a finite C"):
        LinearSVC(C=np.inf, multiclass="crammer_singer").fit(X, THREE)
    with pytest.warns(ConvergenceWarning, match="time_limit"):
        LinearSVC(C=np.inf, time_limit=1e-9).fit(X, TWO)


# -- nasty data -----------------------------------------------------------------------------------

NASTY = {
    "duplicates": X[RANDOM.integers(0, 6, size=N)],
    "constant columns": np.column_stack([X, np.full(N, 3.0), np.full(N, -1e3)]),
    "more columns than rows": RANDOM.normal(size=(N, 150)),
    "columns from 1e-6 to 1e6": X * [1e-6, 1e6, 1.0, 1e3, 1e-3],
    "rows of zeros": np.where(RANDOM.random((N, 1)) < 0.3, 0.0, X),
    "a column of zeros": np.column_stack([X, np.zeros(N)]),
    "far from zero": X + 1e4,
    "nothing but zeros": np.zeros((N, 3)),
}


@machines
@pytest.mark.parametrize("data", NASTY)
@pytest.mark.parametrize("C", [1e-8, 1.0, 1e3])
def test_nasty_data_are_solved(machine, y, data, C):
    model = clone(machine).set_params(C=C, max_iter=1000, tol=1e-4).fit(NASTY[data], y)
    assert model.certificate_.converged
    assert np.isfinite(model.coef_).all()
    sparse = clone(model).fit(sp.csr_matrix(NASTY[data]), y)
    primal = totals(model.certificate_)[0]
    assert totals(sparse.certificate_)[0] == pytest.approx(primal, rel=2e-4)


@pytest.mark.parametrize("data", [name for name in NASTY if "1e6" not in name])
@pytest.mark.parametrize("intercept", INTERCEPTS)
def test_row_by_row_it_is_the_same_wherever_the_rows_lie(data, intercept):
    if data in ("far from zero", "constant columns") and intercept != "free":
        pytest.skip("a problem of its own: rows that are all alike")
    for machine, y in [
        (LinearSVC(), TWO),
        (LinearSVC(loss="hinge"), TWO),
        (LinearSVR(epsilon=0.1), NUMBERS),
        (LinearSVR(epsilon=0.1, loss="squared_epsilon_insensitive"), NUMBERS),
    ]:
        for C in (1e-8, 1.0):
            options = {"C": C, "max_iter": 2000, **INTERCEPTS[intercept]}
            model = clone(machine).set_params(solver="dual_descent", **options).fit(NASTY[data], y)
            other = clone(machine).set_params(**options).fit(NASTY[data], y)
            assert model.certificate_.converged
            primal = totals(other.certificate_)[0]
            assert totals(model.certificate_)[0] == pytest.approx(primal, rel=2e-4)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_where_rows_one_by_one_crawl_the_primal_takes_over(loss):
    rows, y = load_iris(return_X_y=True)
    same = {"class_weight": {1: 5.0}, "intercept_scaling": 1.0, "loss": loss, "tol": 1e-7}
    model = LinearSVC(**same, dual=True, random_state=0).fit(rows, y)
    assert model.certificate_.converged
    assert "dual_descent" in model.solver_
    assert model.n_iter_ <= model.max_iter
    np.testing.assert_allclose(model.coef_, LinearSVC(**same).fit(rows, y).coef_, atol=1e-2)


def test_three_rows_are_enough_for_rows_one_by_one(random):
    for _ in range(30):
        rows = random.normal(size=(3, 2))
        model = LinearSVC(loss="hinge", dual=True, random_state=0).fit(rows, [0, 1, 1])
        assert model.certificate_.converged


def test_a_warm_start_may_come_from_another_loss():
    machine = LinearSVC(dual=True, warm_start=True, C=0.01, max_iter=5000).fit(X, TWO)
    assert machine.set_params(loss="hinge").fit(X, TWO).certificate_.converged


def test_one_point_of_each_class():
    pair, y = np.array([[-1.0, 0.0], [3.0, 0.0]]), [0, 1]
    for machine in (LinearSVC(loss="hinge", C=100.0), LinearSVC(C=1e6, tol=1e-9)):
        model = machine.fit(pair, y)
        np.testing.assert_allclose(model.coef_, [[0.5, 0.0]], atol=1e-4)
        np.testing.assert_allclose(model.intercept_, [-0.5], atol=1e-4)
    assert LogisticRegression().fit(pair, y).predict_proba([[1.0, 0.0]])[0, 0] == pytest.approx(0.5)
    assert LinearSVR(C=100.0).fit(pair, [1.0, 9.0]).predict([[1.0, 0.0]]) == pytest.approx(5.0)


@pytest.mark.parametrize(
    ("machine", "kernel", "y"),
    [(LinearSVR(), SVR(epsilon=0.0), NUMBERS), (LinearSVC(loss="hinge"), SVC(), TWO)],
)
def test_of_an_interval_of_intercepts_the_middle(machine, kernel, y):
    """Of an even number of rows that all lose something, any intercept between two may be best."""
    rows = np.argsort(y, kind="stable")[[0, 1, 2, 3, -4, -3, -2, -1]]
    low, high = 1e-6, 1e-3
    fits = [clone(machine).set_params(C=C, warm_start=True) for C in (high, low, high)]
    straight, other = fits[0].fit(X[rows], y[rows]), fits[1].fit(X[rows], y[rows])
    other.set_params(C=high).fit(X[rows], y[rows])
    expected = clone(kernel).set_params(kernel="linear", C=high, tol=1e-9).fit(X[rows], y[rows])
    for fitted in (straight, other):
        assert fitted.certificate_.relative_gap < 1e-12
        np.testing.assert_allclose(fitted.coef_.ravel(), expected.coef_.ravel(), rtol=1e-6)
        np.testing.assert_allclose(fitted.intercept_, expected.intercept_, rtol=1e-6)


@pytest.mark.parametrize("loss", ["epsilon_insensitive", "squared_epsilon_insensitive"])
def test_constant_and_huge_targets(loss):
    model = LinearSVR(loss=loss).fit(X, np.full(N, 7.0))
    np.testing.assert_allclose(model.predict(X), 7.0)
    large = LinearSVR(loss=loss, C=1e3, tol=1e-8).fit(X, 1e6 * NUMBERS)
    small = LinearSVR(loss=loss, C=1e9, tol=1e-8).fit(X, NUMBERS)
    assert large.certificate_.converged
    if loss.startswith("squared"):
        np.testing.assert_allclose(large.coef_, 1e6 * small.coef_, rtol=1e-2)


@machines
def test_bad_data_are_refused(machine, y):
    with pytest.raises(ValueError, match="at least one non-zero number"):
        clone(machine).fit(X, y, np.zeros(N))
    if not isinstance(machine, LinearSVR):
        with pytest.raises(ValueError, match="number of classes has to be greater than one"):
            clone(machine).fit(X, np.ones(N))
        with pytest.raises(ValueError, match=r"class\(es\) \[1\] have weight zero"):
            clone(machine).fit(X, y, np.where(y == 1, 0.0, 1.0))


@pytest.mark.parametrize("solver", ["newton", "lbfgs"])
@pytest.mark.parametrize("classes", [2, 3])
def test_separable_classes_have_no_most_likely_weights(solver, classes, random):
    centres = np.array([[-4.0, 0.0], [4.0, 0.0], [0.0, 7.0]])[:classes]
    y = np.arange(N) % classes
    points = centres[y] + random.uniform(-1, 1, size=(N, 2))
    with pytest.warns(ConvergenceWarning, match=r"can be separated.*penalty='l2'.*is_separable"):
        model = LogisticRegression(penalty=None, solver=solver).fit(points, y)
    assert not model.certificate_.converged
    assert model.certificate_.dual == 0.0
    assert model.score(points, y) == 1.0


@pytest.mark.parametrize("seed", [1, 5])  # with a row of zeros, whose loss nothing lowers
def test_weights_that_grow_without_end_stay_finite(seed):
    points = np.random.default_rng(seed).integers(-3, 4, size=(8, 2)).astype(float)
    labels = points @ [1.0, -2.0] > 0
    with pytest.warns(ConvergenceWarning, match="can be separated"):
        model = LogisticRegression(penalty=None, fit_intercept=False).fit(points, labels)
    assert np.abs(model.coef_).max() < 1e3
    certificate = model.certificate_
    assert not certificate.converged
    assert certificate.primal == pytest.approx(np.log(2.0))
    assert certificate.dual == 0.0
    assert model.score(points, labels) == 1.0


@pytest.mark.parametrize("seed", [135, 221, 358, 480])
def test_weights_that_grow_without_end_stay_numbers(seed):
    random = np.random.default_rng(seed)
    rows = random.integers(-3, 4, size=(8, int(random.integers(1, 5)))).astype(float)
    y = np.argmax(rows @ random.normal(size=(rows.shape[1], 2 if seed % 3 else 3)), axis=1)
    for intercept in (False, True):
        with pytest.warns(ConvergenceWarning, match="can be separated"):
            model = LogisticRegression(C=np.inf, fit_intercept=intercept).fit(rows, y)
        certificate = model.certificate_
        assert not certificate.converged
        assert np.isfinite([certificate.primal, certificate.gap, certificate.relative_gap]).all()
        assert np.isfinite(model.coef_).all()
        assert np.isfinite(model.predict_proba(rows)).all()


@pytest.mark.parametrize("y", [TWO, THREE], ids=["two classes", "three"])
@pytest.mark.parametrize(
    "machine",
    [
        LinearSVC(penalty="l1", C=0.1),
        LogisticRegression(l1_ratio=1.0, C=0.1, warm_start=True),
        Perceptron(warm_start=True, variant="pocket"),
        MCEClassifier(warm_start=True, random_state=0),
        LeastSquaresClassifier(),
    ],
    ids=str,
)
def test_sparse_coefficients_predict_the_same(machine, y):
    machine = clone(machine)
    for change in (machine.sparsify, machine.densify):
        with pytest.raises(NotFittedError, match="must be fitted before"):
            change()
    values = machine.fit(X, y).decision_function(X)
    assert machine.sparsify() is machine
    assert sp.issparse(machine.coef_)
    for data in (X, sp.csr_matrix(X)):
        np.testing.assert_allclose(machine.decision_function(data), values, atol=1e-12)
    machine.fit(X, y)  # also from there
    assert not sp.issparse(machine.sparsify().densify().coef_)


# -- long work ------------------------------------------------------------------------------------


@pytest.fixture
def eager(monkeypatch):
    """Reports at every step."""
    original = Monitor.__init__

    def eager(self, *args, **kwargs):
        original(self, *args, **kwargs)
        self.interval = 0.0

    monkeypatch.setattr(Monitor, "__init__", eager)


SOLVERS = [
    (LinearSVC(loss="hinge", solver="multipliers"), TWO),
    (LinearSVC(solver="newton"), TWO),
    (LinearSVC(solver="dual_descent"), TWO),
    (LinearSVC(penalty="l1"), TWO),
    (LinearSVC(solver="sgd"), TWO),
    (LinearSVR(epsilon=0.1, solver="multipliers"), NUMBERS),
    (LinearSVC(), THREE),
    (LogisticRegression(solver="lbfgs"), TWO),
    (LogisticRegression(solver="newton"), THREE),
    (LogisticRegression(solver="lbfgs"), THREE),
]
solvers = pairs(SOLVERS)


@solvers
def test_the_bar_shows_the_work_and_its_end(machine, y, eager, capsys):
    clone(machine).set_params(tol=1e-3, C=0.1, verbose=True, max_iter=500).fit(X, y)
    shown = capsys.readouterr()
    assert "converged: optimal to a relative gap" in shown.out + shown.err


@solvers
def test_a_warm_start_goes_on(machine, y):
    if machine.solver == "sgd":
        pytest.skip("its steps begin anew")
    machine = clone(machine).set_params(warm_start=True, max_iter=1000).fit(X, y)
    primal = totals(machine.certificate_)[0]
    machine.fit(X, y)
    assert np.max(machine.n_iter_) <= 2
    assert totals(machine.certificate_)[0] == pytest.approx(primal, rel=1e-4)
    assert machine.fit(X[:40], y[:40]).certificate_.converged  # other rows
    assert machine.fit(X[:, :3], y).certificate_.converged  # other columns


@solvers
def test_threads_do_not_matter(machine, y):
    copies = 1500  # rows enough for a second thread
    data = np.tile(X, (copies, 1)) if machine.solver in ("auto", "newton") else X
    targets = np.tile(y, copies) if machine.solver in ("auto", "newton") else y
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        fits = [
            clone(machine).set_params(n_jobs=n_jobs, random_state=0).fit(data, targets)
            for n_jobs in (1, 2)
        ]
    np.testing.assert_allclose(fits[0].coef_, fits[1].coef_, rtol=1e-6, atol=1e-9)


# -- streams --------------------------------------------------------------------------------------

STREAMS = [
    (LinearSVC(lam=0.01, loss="hinge"), TWO),
    (LinearSVC(lam=0.01), THREE),
    (LinearSVR(lam=0.01, epsilon=0.1), NUMBERS),
    (LinearSVR(lam=0.01, loss="squared_epsilon_insensitive"), NUMBERS),
    (LogisticRegression(lam=0.01), TWO),
    (LogisticRegression(lam=0.01), THREE),
    (LogisticRegression(lam=0.01, fit_intercept=False), THREE),
]


def batches(model, data, y, weight=None, epochs=1, size=20, seed=0):
    classes = {} if isinstance(model, LinearSVR) else {"classes": np.unique(y)}
    random = np.random.default_rng(seed)
    for _ in range(epochs):
        order = random.permutation(len(y))
        for first in range(0, len(y), size):
            rows = order[first : first + size]
            part = None if weight is None else weight[rows]
            model.partial_fit(data[rows], y[rows], sample_weight=part, **classes)
    return model


@pairs(STREAMS)
def test_a_stream_comes_near_the_answer_of_a_fit(machine, y, random):
    weight = random.uniform(0.0, 2.0, size=N)
    exact = clone(machine).fit(X, y, weight)
    stream = batches(clone(machine), X, y, weight, epochs=100)
    C = exact.C_[0]
    least = objective(exact, X, y, weight, C)
    assert objective(stream, X, y, weight, C) == pytest.approx(least, rel=0.03)
    np.testing.assert_allclose(stream.coef_, exact.coef_, atol=0.12 * np.abs(exact.coef_).max())
    assert stream.intercept_.shape == exact.intercept_.shape
    assert stream.t_ == 100 * N
    assert np.max(stream.n_iter_) == 1
    steps = batches(clone(machine), X, y, weight)
    for data in CONTAINERS.values():
        same = batches(clone(machine), data, y, weight)
        np.testing.assert_allclose(same.coef_, steps.coef_, rtol=1e-9, atol=1e-12)


def _texts(random, n=3000, words=5000, classes=4):
    """Short sparse rows of length one: each class has some words that it likes."""
    y = random.integers(0, classes, size=n)
    common = 1.0 / np.arange(1, words + 1)
    liked = [random.permutation(common) ** 1.5 for _ in range(classes)]
    rows = sp.lil_matrix((n, words))
    for i, k in enumerate(y):
        p = common / common.sum() + 0.12 * liked[k] / liked[k].sum()
        found, count = np.unique(random.choice(words, 40, p=p / p.sum()), return_counts=True)
        rows[i, found] = count / np.linalg.norm(count)
    return rows.tocsr(), y


@pytest.mark.parametrize("epochs", [1, 5])
def test_a_stream_learns_text_as_fast_as_stochastic_gradients(epochs, random):
    rows, y = _texts(random)
    learn, held = slice(0, 2000), slice(2000, None)
    for machine, loss in [
        (LinearSVC(lam=5e-5, loss="hinge"), "hinge"),
        (LinearSVC(lam=5e-5), "squared_hinge"),
        (LogisticRegression(lam=5e-5), "log_loss"),
    ]:
        ours = batches(machine, rows[learn], y[learn], epochs=epochs, size=200)
        peer = sklearn.linear_model.SGDClassifier(loss=loss, alpha=1e-4, random_state=0)
        theirs = batches(peer, rows[learn], y[learn], epochs=epochs, size=200)
        assert ours.score(rows[held], y[held]) >= theirs.score(rows[held], y[held]) - 0.005


@pytest.mark.parametrize("machine", [LinearSVC(lam=0.01), LogisticRegression(lam=0.01)])
def test_a_stream_weighs_its_classes(machine):
    factor = {-1: 1.0, 1: 5.0}
    weighed = batches(clone(machine).set_params(class_weight=factor), X, TWO)
    rows = batches(clone(machine), X, TWO, np.where(TWO == 1, 5.0, 1.0))
    np.testing.assert_allclose(weighed.coef_, rows.coef_, rtol=1e-12)
    assert not np.allclose(weighed.coef_, batches(clone(machine), X, TWO).coef_, rtol=0.01)


def test_a_stream_has_no_certificate_and_a_fit_ends_it():
    model = batches(LinearSVC(lam=0.1), X, TWO)
    assert not hasattr(model, "certificate_")
    assert model.t_ == N
    copy = pickle.loads(pickle.dumps(model))
    for one in (model, copy):
        batches(one, X, TWO)
    np.testing.assert_array_equal(model.coef_, copy.coef_)
    model.fit(X, TWO)
    assert model.certificate_.converged
    assert not hasattr(model, "t_")
    batches(model, X, TWO)
    assert model.t_ == N  # from the beginning
    assert not hasattr(model, "certificate_")


@pytest.mark.slow
def test_a_stream_does_not_grow():
    model = LinearSVC(lam=0.01)
    batches(model, X, TWO)
    size = len(pickle.dumps(model))
    tracemalloc.start()
    grown = []
    for _ in range(6):
        before = tracemalloc.get_traced_memory()[0]
        batches(model, X, TWO, epochs=20)
        gc.collect()
        grown.append(tracemalloc.get_traced_memory()[0] - before)
    tracemalloc.stop()
    assert min(grown) < 10_000  # what Python and others keep for themselves settles, a leak never
    assert len(pickle.dumps(model)) <= size + 100


def test_a_stream_asks_for_what_it_needs():
    for machine in (LinearSVC(), LinearSVR(), LogisticRegression(C=2.0)):
        assert not hasattr(machine, "partial_fit")
        with pytest.raises(AttributeError, match="partial_fit needs lam"):
            machine.partial_fit(X, TWO)
    for parameters in ({"penalty": "l1"}, {"class_weight": "balanced"}, {"norm_bound": 1.0}):
        assert not hasattr(LinearSVC(lam=0.1, **parameters), "partial_fit")
    model = LinearSVC(lam=0.1, class_weight={-1: 2.0})
    with pytest.raises(ValueError, match="classes must be passed on the first call"):
        model.partial_fit(X, TWO)
    model.partial_fit(X, TWO, classes=[-1, 1])
    model.partial_fit(X[:1], TWO[:1])  # not every class has to be there
    with pytest.raises(ValueError, match=r"labels \[5\] that are not among classes=\[-1, 1\]"):
        model.partial_fit(X[:2], [1, 5])
    with pytest.raises(ValueError, match="is not the same as on last call"):
        model.partial_fit(X, TWO, classes=[0, 1])
    with pytest.raises(ValueError, match="features"):
        model.partial_fit(X[:, :2], TWO)


# -- paths ----------------------------------------------------------------------------------------


@machines
def test_a_path_is_separate_fits_in_fewer_passes(machine, y, random):
    data, Cs = StandardScaler().fit_transform(X), np.geomspace(10.0, 0.1, 9)
    weight = random.uniform(0.5, 2.0, size=N)
    machine = clone(machine).set_params(tol=1e-8)
    path = C_path(machine, data, y, Cs, weight)
    passes = 0
    for C, model in zip(Cs, path, strict=True):
        alone = clone(machine).set_params(C=C).fit(data, y, weight)
        passes += np.max(alone.n_iter_)
        assert model.C == C
        assert model.certificate_.converged
        primal = totals(alone.certificate_)[0]
        assert totals(model.certificate_)[0] == pytest.approx(primal, rel=1e-7)
        np.testing.assert_allclose(model.coef_, alone.coef_, atol=1e-3)
    assert not hasattr(machine, "coef_")
    assert all(not model.warm_start for model in path)
    assert sum(np.max(model.n_iter_) for model in path) < passes


@pytest.mark.parametrize(
    "machine", [SVC(gamma=0.1, tol=1e-8), KernelLogisticRegression(gamma=0.1, tol=1e-9)]
)
def test_a_path_of_kernel_machines(machine):
    Cs, weight = [10.0, 0.1, 1.0], np.linspace(0.5, 1.5, len(X))
    path = C_path(machine, X, TWO, Cs, weight)
    for model, C in zip(path, Cs, strict=True):
        alone = clone(machine).set_params(C=C).fit(X, TWO, sample_weight=weight)
        assert model.get_params() == alone.get_params()
        assert model.certificate_.converged
        np.testing.assert_allclose(
            model.decision_function(X), alone.decision_function(X), atol=1e-3
        )
        assert not model.warm_start
    again = clone(machine).set_params(C=0.1).fit(X, TWO, sample_weight=weight)
    again.set_params(C=1.0, warm_start=True).fit(X, TWO, sample_weight=weight)
    np.testing.assert_array_equal(path[2].decision_function(X), again.decision_function(X))
    assert not hasattr(machine, "dual_coef_")


def test_a_path_checks_what_it_gets():
    for refused in (NuSVC(), SVC, "svc"):
        with pytest.raises(TypeError, match="has the parameters C and warm_start"):
            C_path(refused, X, TWO, [1.0])
    with pytest.raises(ValueError, match="'C' parameter"):
        C_path(LinearSVC(), X, TWO, [1.0, -1.0])
    with pytest.raises(ValueError, match="Give C or lam"):
        C_path(LinearSVC(lam=0.1), X, TWO, [0.5, 2.0])
    with pytest.raises(ValueError, match="Give one of C, lam and norm_bound"):
        C_path(LinearSVC(norm_bound=0.1), X, TWO, [0.5, 2.0])
    with pytest.raises(ValueError, match="along finite costs"):
        C_path(LogisticRegression(), X, TWO, [1.0, np.inf])
    assert C_path(LinearSVC(), X, TWO, []) == []


# -- many rows ------------------------------------------------------------------------------------


@pytest.fixture
def parts(monkeypatch):
    """A part of the rows is taken of few rows, too."""
    monkeypatch.setattr(subsampled_newton, "_MANY", 1)
    monkeypatch.setattr(subsampled_newton, "_PER_WEIGHT", 50)
    monkeypatch.setattr(subsampled_newton, "_LEAST_SHARE", 4)


def _many_rows(random):
    """Rows, two classes, numbers and weights; one column has three rows, another is constant."""
    rows = random.normal(size=(4000, 6))
    rows[:, 4] = 0.0
    rows[[5, 50, 500], 4] = [30.0, -40.0, 25.0]
    rows[:, 5] = 1.0
    value = rows @ [1.0, -1.0, 0.5, 0.0, 0.1, 0.3] + random.normal(size=4000)
    weight = 10.0 ** random.uniform(-1.0, 1.0, size=4000)
    return rows, np.where(value > 0, 1, -1), value, weight


SMOOTH = [
    LinearSVC(C=0.1),
    LinearSVC(C=100.0),
    LogisticRegression(),
    LinearSVR(loss="squared_epsilon_insensitive", epsilon=0.5),
]


@pytest.mark.parametrize("machine", SMOOTH, ids=str)
@pytest.mark.parametrize("intercept", INTERCEPTS)
def test_a_part_of_the_rows_leads_to_the_minimum_of_all(machine, intercept, random, monkeypatch):
    if intercept == "penalised" and isinstance(machine, LogisticRegression):
        pytest.skip("scikit-learn's is free")
    rows, signs, numbers, weight = _many_rows(random)
    y = numbers if isinstance(machine, LinearSVR) else signs
    machine = clone(machine).set_params(**INTERCEPTS[intercept])
    exact = clone(machine).set_params(tol=1e-10).fit(rows, y, weight).certificate_
    parts.__wrapped__(monkeypatch)
    looks, seen = [], []
    certify = subsampled_newton._Surrogate.certificate

    def watched(self):
        judged, slopes = certify(self)
        seen.append((judged.primal, judged.dual))
        return judged, slopes

    monkeypatch.setattr(subsampled_newton._Surrogate, "certificate", watched)
    for data in (rows, sp.csr_array(rows)):
        for tol in (1e-2, 1e-4, 1e-8):
            model = clone(machine).set_params(tol=tol).fit(data, y, weight)
            assert model.certificate_.converged
            assert model.certificate_.primal <= exact.primal * (1 + tol)
            assert model.certificate_.dual <= exact.primal * (1 + 1e-10)
            looks.append(int(np.max(model.n_iter_)))
    assert max(looks[:2]) <= 12
    assert seen
    assert all(dual <= exact.primal * (1 + 1e-10) <= primal * (1 + 1e-9) for primal, dual in seen)


def test_a_path_over_many_rows_reads_few_of_them(parts, random, monkeypatch):
    rows, y, _, weight = _many_rows(random)
    passes = []
    pulled = maxmargin.backends.cpu.linear.Design.pulled

    def counted(self, theta, slope):
        passes.append(self.n)
        return pulled(self, theta, slope)

    monkeypatch.setattr(maxmargin.backends.cpu.linear.Design, "pulled", counted)
    Cs = np.geomspace(1.0, 1e3, 6)
    path = C_path(LinearSVC(), rows, y, Cs, weight)
    assert passes.count(len(rows)) < 2 * len(Cs)
    for C, model in zip(Cs, path, strict=True):
        alone = LinearSVC(C=C).fit(rows, y, weight)
        primal = alone.certificate_.primal
        assert model.certificate_.converged
        assert model.certificate_.primal == pytest.approx(primal, rel=1e-4)


@pytest.mark.parametrize("stop", [{"max_iter": 1}, {"max_iter": 2}, {"time_limit": 1e-9}], ids=str)
def test_looks_at_many_rows_can_be_stopped(parts, stop, random):
    rows, y, _, weight = _many_rows(random)
    with pytest.warns(ConvergenceWarning):
        model = LinearSVC(tol=1e-13, **stop).fit(rows, y, weight)
    assert not model.certificate_.converged
    assert np.isfinite(model.coef_).all()
    assert model.n_iter_ <= stop.get("max_iter", 1)


def test_a_class_that_a_sample_does_not_see(parts, random):
    rows, y, _, _ = _many_rows(random)
    y = np.where(np.arange(len(rows)) % 2000 == 7, 1, -1)
    for machine in (LogisticRegression(class_weight="balanced"), LinearSVC(loss="hinge")):
        assert machine.fit(rows, y).certificate_.converged


def test_the_part_alone_does_not_make_up_for_an_intercept():
    rows, y = np.array([[1e11], [-1e11], [0.0], [0.0]]), np.array([-1.0, 1.0, 1.0, 1.0])
    cost = np.array([1e-26, 1e-26, 1e-26, 1e-40])
    risk = RegularisedRisk(Design(rows), y, cost, SquaredHinge())
    few = np.array([3])
    part = subsampled_newton.Part(few, risk.take(few), risk.take(few))
    model = subsampled_newton._Surrogate(risk, part, risk.evaluate(np.zeros(2)), Watch(tol=0.1))
    least = Newton().solve(risk, Watch(tol=1e-9)).certificate.primal
    assert model.certificate()[0].dual <= least


def test_a_loss_may_be_an_object():
    """A named loss, given as one, is the same machine; one without a dual is refused in words."""
    named, given = LinearSVC(loss="hinge").fit(X, TWO), LinearSVC(loss=Hinge()).fit(X, TWO)
    np.testing.assert_array_equal(named.coef_, given.coef_)
    with pytest.raises(ValueError, match=r"zero_one|convex|conjugate"):
        LinearSVC(loss=ZeroOne()).fit(X, TWO)
    with pytest.raises(ValueError, match="'loss' parameter"):
        LinearSVC(loss=EpsilonInsensitive()).fit(X, TWO)
    model = LinearSVR(loss=Absolute(), tol=1e-6).fit(X, X[:, 0])
    assert model.certificate_.converged


WIDE = np.vstack([RANDOM.normal(size=(17, 90)), np.zeros((1, 90))])
WIDE = np.vstack([WIDE, WIDE[:2]]) + 30.0  # a row of equal numbers, two rows twice, off the origin
OF_FEW_ROWS = {  # machine, targets
    "hinge": (LinearSVC(loss="hinge", C=0.01, solver="multipliers"), TWO[:20]),
    "squared hinge": (LinearSVC(C=0.01, solver="newton"), TWO[:20]),
    "logistic": (LogisticRegression(solver="newton", C=0.1), TWO[:20]),
    "softmax": (LogisticRegression(solver="newton", C=0.1), THREE[:20]),
    "pairs": (LinearSVC(C=0.01, solver="newton", multiclass="ovo"), THREE[:20]),
    "tube": (LinearSVR(C=0.01, epsilon=0.1), NUMBERS[:20]),
}


@pytest.mark.parametrize("name", OF_FEW_ROWS)
@pytest.mark.parametrize("intercept", INTERCEPTS)
def test_few_rows_are_solved_in_their_span(name, intercept, random):
    machine, y = OF_FEW_ROWS[name]
    if intercept == "penalised" and isinstance(machine, LogisticRegression):
        pytest.skip("its intercept has no penalty")
    machine = clone(machine).set_params(tol=1e-9, max_iter=-1, warm_start=True)
    machine.set_params(**INTERCEPTS[intercept])
    weight = random.uniform(0.0, 2.0, size=20)
    few, all_columns = (  # a CSR matrix is solved over its columns
        clone(machine).fit(data, y, sample_weight=weight) for data in (WIDE, sp.csr_matrix(WIDE))
    )
    assert few.certificate_.converged
    if name != "pairs":  # whose certificate is that of the worst
        for one, other in ((few, all_columns), (all_columns, few)):
            assert one.certificate_.dual <= (1 + 1e-12) * other.certificate_.primal
    size = np.abs(all_columns.coef_).max()
    np.testing.assert_allclose(few.coef_, all_columns.coef_, atol=1e-3 * size)
    np.testing.assert_allclose(few.predict(WIDE), all_columns.predict(WIDE), atol=1e-2)
    few.coef_ += 5.0  # what is kept to start from are the answers
    assert few.fit(WIDE, y, sample_weight=weight).certificate_.converged
    assert np.max(few.n_iter_) <= np.max(all_columns.n_iter_)
    np.testing.assert_allclose(few.coef_, all_columns.coef_, atol=1e-3 * size)


def test_one_span_serves_all_costs_and_classes(random, monkeypatch):
    made = []

    class Counted(Span):
        def __init__(self, X):
            made.append(X.shape)
            super().__init__(X)

    monkeypatch.setattr(maxmargin.backends.cpu.linear.design, "Span", Counted)
    wide = random.normal(size=(20, 300)).astype(np.float32)
    path = C_path(LinearSVC(), wide, THREE[:20], [0.01, 1.0, 100.0])
    assert all(model.certificate_.converged for model in path)
    assert made == [(20, 300)]
    bounded = LinearSVC(norm_bound=0.05).fit(wide, TWO[:20])
    assert len(made) == 2
    np.testing.assert_allclose(np.linalg.norm(bounded.coef_), 0.05, rtol=1e-3)
    model = LogisticRegression(trace=True).fit(wide, TWO[:20])
    weights = model.trace_.weights()
    assert weights.shape[1:] == (300,)
    np.testing.assert_allclose(weights[-1], model.coef_[0])
    assert set(model.trace_.curve("method")) == {"Newton"}
    assert (np.diff(model.trace_.curve("objective")) <= 0).all()


def test_few_rows_have_solvers_of_their_own():
    def chosen(loss, n, d=300):
        design, y = Design(np.broadcast_to(1.0, (n, d))), np.resize([1.0, -1.0], n)
        return maxmargin.solvers.select.select_solver(RegularisedRisk(design, y, np.ones(n), loss))

    assert "no more rows than features" in chosen(Hinge(), 40).why
    assert type(chosen(Hinge(), 40).method) is DualDescent
    assert type(chosen(Hinge(), 310).method) is Multipliers
    assert type(chosen(Hinge(), 20, d=30).method) is Multipliers
    assert type(chosen(SquaredHinge(), 280).method) is DualDescent  # too many for their span
    for loss in (SquaredHinge(), Logistic(), EpsilonInsensitive(0.1)):
        assert "in the span of the few rows" in chosen(loss, 40).why
        assert "in the span of the few rows" in chosen(loss, 40, d=4000).why
    assert "rows are faster one by one" in chosen(Logistic(), 1200, d=2500).why


def test_an_answer_without_residuals_is_a_good_start(random):
    wide, y = random.normal(size=(20, 100)), random.normal(size=20)
    for model in C_path(LinearSVR(), wide, y, [0.01, 1.0, 100.0, 1e4]):
        assert model.certificate_.converged
        assert model.n_iter_ < 40


def test_an_intercept_without_a_bracket_is_left_where_it_is():
    """``_balance`` divided by zero where the sum of the variables does not depend on the shift."""
    y, none = np.array([-1.0, 1.0]), np.zeros(2)
    bounds = np.array([-1.0, 0.0]), np.array([0.0, 1.0])
    assert _balance(none, 1e60, 1.0, none, none, *bounds, 0.0, 1.0) == 0.0
    huge = np.full(2, np.finfo(np.float64).max)
    assert _balance(1e300 * y, 0.0, 0.0, none, np.full(2, 1e-300), -huge, huge, 0.0, 0.0) == 0.0
