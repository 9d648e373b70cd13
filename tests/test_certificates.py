"""The certificate, checked against objectives written out by hand, and the solver's contract."""

import pickle
import warnings
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler

from maxmargin import SVC, SVR, Gram, InseparableError, NuSVC, NuSVR, OneClassSVM, duals
from maxmargin.certificate import DualCertificate
from maxmargin.evaluation import evaluate
from maxmargin.gram import Definiteness, spectrum
from maxmargin.kernels import RBF, Linear, Polynomial, Sigmoid
from maxmargin.solution import Solution, Status
from maxmargin.solvers import SMO, Auto, solve_certified
from maxmargin.solvers.dual import certified, smo
from maxmargin.solvers.dual.small import SmallBatch
from maxmargin.testing import check_solver

RANDOM = np.random.default_rng(6)
X = RANDOM.normal(size=(90, 3))
y = np.where(X[:, 0] + 0.5 * RANDOM.normal(size=90) > 0, 1, 0)
target = np.sin(2 * X[:, 0]) + 0.2 * RANDOM.normal(size=90)
sign = np.where(y == 1, 1.0, -1.0)


def squared_norm(model):
    beta = model.dual_coef_[0]
    return beta @ model.kernel_(model.support_vectors_) @ beta


def test_smo_meets_its_contract():
    evaluations = check_solver(SMO())
    assert len(evaluations) > 70


@pytest.mark.parametrize("limit", [5, 20])
@pytest.mark.filterwarnings("ignore:Solver terminated early")
def test_the_violation_is_that_of_the_kkt_conditions(limit):
    model = SVC(C=1.0, gamma=0.5, max_iter=limit).fit(X, y)
    alpha = np.zeros(90)
    alpha[model.support_] = np.abs(model.dual_coef_[0])
    score = sign - (model.decision_function(X) - model.intercept_)
    rise = np.where(sign > 0, alpha < 1, alpha > 0)
    fall = np.where(sign > 0, alpha > 0, alpha < 1)
    expected = score[rise].max() - score[fall].min()
    assert expected > 0.1
    assert model.certificate_.kkt_violation == pytest.approx(expected, rel=1e-9)


@pytest.mark.filterwarnings("ignore:Solver terminated early")
def test_one_unfinished_pair_makes_the_whole_unfinished():
    points, labels = load_iris(return_X_y=True)
    model = SVC(C=1e3, kernel="linear", max_iter=12).fit(points, labels)
    assert {part.status for part in model.certificate_.parts} == {"converged", "max_iter"}
    assert model.certificate_.status == "max_iter"
    narrow = replace(SVC().fit(X, y).certificate_, status=Status.MAX_ITER)
    wide = replace(narrow, status=Status.CONVERGED, relative_gap=0.5)
    assert DualCertificate.worst([wide, narrow]).status is Status.MAX_ITER
    assert DualCertificate.worst([narrow, wide]).relative_gap == wide.relative_gap


def test_an_indefinite_kernel_is_not_called_optimal():
    with pytest.warns(UserWarning, match="is negative at the answer"):
        certificate = SVC(kernel=Sigmoid(gamma=1.0, coef0=-1.0)).fit(X, y).certificate_
    assert certificate.definiteness is Definiteness.INDEFINITE
    assert certificate.converged
    assert "stationary" in certificate.claim
    assert "optimal" not in certificate.claim
    assert certificate.kkt_violation <= 1e-3


@pytest.mark.parametrize("kernel", [-0.5 * RBF(0.1), RBF(0.1) - Linear()])
@pytest.mark.parametrize("options", [{}, {"multiclass": "crammer_singer"}])
def test_a_negative_squared_norm_is_warned_of(kernel, options):
    points, labels = load_iris(return_X_y=True)
    with pytest.warns(UserWarning, match=r"is indefinite .* \|w\|\^2 is negative"):
        model = SVC(kernel=kernel, **options).fit(points, labels)
    assert model.score(points, labels) < 0.5
    with pytest.warns(UserWarning, match="is indefinite"):
        SVR(kernel=kernel).fit(points, labels)


def test_an_indefinite_kernel_whose_answer_has_a_norm_is_not_warned_of():
    points, labels = load_iris(return_X_y=True)
    model = SVC(kernel="sigmoid", C=0.1).fit(StandardScaler().fit_transform(points), labels)
    assert model.certificate_.definiteness is Definiteness.INDEFINITE


@pytest.mark.parametrize("solver", ["auto", "smo", "working_set"])
def test_the_last_bit_of_a_sum_does_not_choose_the_intercept(solver):
    """At a small cost all rows of balanced classes are at their bound, but for rounding."""
    points, labels = load_breast_cancer(return_X_y=True)
    points = StandardScaler().fit_transform(points)
    model = SVC(C=1e-3, gamma=0.1, class_weight="balanced", solver=solver).fit(points, labels)
    values = model.decision_function(points) - model.intercept_
    lowest, highest = (-1 - values[labels == 0]).max(), (1 - values[labels == 1]).min()
    assert model.intercept_[0] == pytest.approx(0.5 * (lowest + highest), abs=1e-12)
    cost = 1e-3 * model.class_weight_[labels[model.support_]]
    np.testing.assert_array_equal(np.abs(model.dual_coef_[0]), cost)
    assert model.certificate_.infeasibility < 1e-12


def test_claims_of_kernels_that_prove_nothing(random):
    small = SVC(kernel=lambda a, b: a @ b.T).fit(X, y).certificate_
    assert small.definiteness is Definiteness.COMPUTED
    many = random.normal(size=(600, 2))
    labels = (many[:, 0] > 0).astype(int)
    large = SVC(kernel=lambda a, b: a @ b.T).fit(many, labels).certificate_
    assert large.definiteness is Definiteness.UNKNOWN
    assert "if the kernel is positive semidefinite" in large.claim
    assert SVC(kernel=Linear()).fit(X, y).certificate_.claim.startswith("optimal to")


def test_a_small_store_gives_the_same_machine(random):
    points = random.normal(size=(400, 5))
    labels = np.where(points[:, 0] * points[:, 1] > 0, 1, 0)
    whole = SVC(C=5).fit(points, labels)
    tiny = SVC(C=5, cache_size=0.02).fit(points, labels)
    np.testing.assert_allclose(
        tiny.decision_function(points), whole.decision_function(points), atol=2e-3
    )
    three = random.integers(3, size=400)
    whole, tiny = SVC().fit(points, three), SVC(cache_size=0.02).fit(points, three)
    np.testing.assert_allclose(tiny.intercept_, whole.intercept_, atol=2e-3)
    np.testing.assert_array_equal(np.isnan(tiny.slack_), np.isnan(whole.slack_))


def test_a_witness_survives_a_small_store_and_several_classes():
    points, labels = load_iris(return_X_y=True)
    for cache_size in ("auto", 0.01):
        with pytest.raises(InseparableError, match="no hyperplane") as caught:
            SVC(C=np.inf, kernel="linear", cache_size=cache_size).fit(points, labels)
        rows, weights = caught.value.positive
        others, shares = caught.value.negative
        assert set(labels[rows]) == {1}
        assert set(labels[others]) == {2}
        np.testing.assert_allclose(weights @ points[rows], shares @ points[others], atol=1e-4)


@pytest.mark.parametrize("solver", ["auto", "smo", "chunking"])
@pytest.mark.parametrize("scale", [1.0, 1e3])
def test_without_a_bias_a_row_at_the_origin_is_a_witness(solver, scale):
    """Steps go towards that row for ever, by ever smaller ones."""
    points, labels = scale * np.array([[1.0, -1], [-1, 2], [0, 2], [0, 0]]), [1, -1, 1, 1]
    model = SVC(C=np.inf, kernel="linear", fit_intercept=False, solver=solver)
    with pytest.raises(InseparableError, match="through the origin") as caught:
        model.fit(points, labels)
    assert caught.value.positive[0].tolist() == [3]
    assert caught.value.distance == 0.0


def test_no_weights_have_no_distance_from_the_origin():
    with pytest.warns(ConvergenceWarning, match="trivial"):
        model = OneClassSVM(kernel="linear").fit(np.array([[1.0], [-1.0]]))
    assert np.isnan(model.margin_)


def test_the_hard_margin_does_not_count_rows_of_weight_zero():
    points = np.array([[0.0], [1.0], [3.0], [4.0], [9.0]])
    labels = [0, 0, 1, 1, 0]
    model = SVC(C=np.inf, kernel="linear", tol=1e-8)
    model.fit(points, labels, sample_weight=[1, 1, 1, 1, 0])
    assert model.coef_[0, 0] == pytest.approx(1.0)
    assert model.intercept_[0] == pytest.approx(-2.0)
    assert model.slack_.tolist() == pytest.approx([0, 0, 0, 0, 8])
    with pytest.raises(InseparableError):
        model.fit(points, labels)


@pytest.mark.parametrize("between", [1e-4, 1e-5, 1e-6, 1e-7, 1e-9])
@pytest.mark.parametrize("tol", [1e-3, 1e-9])
def test_classes_that_nearly_touch_end_with_a_status_or_a_witness(between, tol):
    """Their margin may drown in rounding though no condition is violated any more."""
    points = np.array([[0, 0], [1, 0], [0.3, -1], [0.5, between], [2, 1], [-1, 0.7]])
    model = SVC(C=np.inf, kernel="linear", tol=tol)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        if between < 1e-8:
            with pytest.raises(InseparableError, match="to float64's resolution"):
                model.fit(points, [0, 0, 0, 1, 1, 1])
            return
        model.fit(points, [0, 0, 0, 1, 1, 1])
    rounding = 8 * np.finfo(float).eps / between**2  # of products of size 1, in its square
    assert model.margin_ == pytest.approx(between / 2, rel=max(1e-3, rounding))
    assert model.certificate_.status in (Status.CONVERGED, Status.STALLED)


def test_ill_conditioned_data_converge(random):
    """Features of very different scale and a large C, where steps of two alone take forever."""
    points = random.normal(size=(200, 6)) * 10.0 ** np.arange(-2, 4)
    labels = (points @ (1 / 10.0 ** np.arange(-2, 4)) + random.normal(size=200) > 0).astype(int)
    model = SVC(kernel="linear", C=100.0, max_iter=2_000_000).fit(points, labels)
    assert model.certificate_.converged


def test_problems_share_a_gram_and_keep_their_start():
    gram = Gram.of(X, RBF(gamma=0.5))
    halves = [np.arange(0, 90, 2), np.arange(1, 90, 2)]
    problems = [duals.c_svc(rows, sign[rows], np.ones(45)) for rows in halves]
    together, steps = solve_certified(gram, problems, SMO(), 1e-6)
    for rows, evaluation in zip(halves, together, strict=True):
        alone = SVC(kernel=RBF(gamma=0.5), tol=1e-6).fit(X[rows], y[rows])
        assert evaluation.bias == pytest.approx(alone.intercept_[0], abs=1e-6)
        np.testing.assert_array_equal(evaluation.rows, rows)
    resumed = problems[0].started_from(together[0].beta)
    _, (count,) = solve_certified(gram, [resumed], SMO(), 1e-6)
    assert count == 0 < steps[0]


def test_verbose_prints_progress(capsys):
    SVC(verbose=True).fit(X, y)
    shown = capsys.readouterr()
    assert "converged: optimal" in shown.out + shown.err
    SVC().fit(X, y)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    "model",
    [SVC(C=50.0), SVC(C=50.0, fit_intercept=False), SVR(C=50.0), NuSVC(nu=0.6), NuSVR(C=50.0)],
    ids=str,
)
@pytest.mark.parametrize("cache_size", ["auto", 0.2])
def test_shrinking_changes_no_answer(model, cache_size, random, monkeypatch):
    points = random.normal(size=(300, 2))
    labels = (points[:, 0] + random.normal(size=300) > 0).astype(int)
    aims = labels if isinstance(model, SVC | NuSVC) else points[:, 0] + random.normal(size=300)
    sizes = []
    original = smo._State.shrunk

    def watched(self, violation):
        state = original(self, violation)
        sizes.append(len(state.beta))
        return state

    monkeypatch.setattr(SmallBatch, "accepts", lambda *_: "no")  # nor solved before SMO has them
    monkeypatch.setattr(smo._State, "shrunk", watched)
    monkeypatch.setattr(smo, "_SHRINK_AFTER", 50)
    monkeypatch.setattr(smo, "descend_faces", lambda *_: 0)
    monkeypatch.setattr(smo, "_FIRST_SLICE", 3000)
    model.set_params(gamma=1.0, tol=1e-5, cache_size=cache_size)
    with_it = clone(model).fit(points, aims)
    size = 300 * (2 if isinstance(model, SVR | NuSVR) else 1)
    assert min(sizes) < 0.7 * size
    sizes.clear()
    without = clone(model).set_params(shrinking=False).fit(points, aims)
    assert not sizes
    assert with_it.certificate_.dual == pytest.approx(without.certificate_.dual, rel=1e-6)
    np.testing.assert_allclose(with_it.intercept_, without.intercept_, atol=1e-3)


def test_a_tube_is_never_narrower_than_nothing():
    for seed in range(20):
        random = np.random.default_rng(seed)
        points = random.normal(size=(30, 5))
        aims = points[:, 0] + 0.3 * random.normal(size=30)
        model = NuSVR(nu=0.2, C=100.0).fit(points, aims)
        assert model.epsilon_ >= 0
        excess = np.maximum(0, np.abs(model.predict(points) - aims) - model.epsilon_)
        value = squared_norm(model) / 2 + 100.0 * (0.2 * 30 * model.epsilon_ + excess.sum())
        assert model.certificate_.primal == pytest.approx(value, rel=1e-9)


def test_definiteness_is_found_out_when_someone_asks(monkeypatch):
    K, labels = X @ X.T, np.where(X[:, 0] > 0, 1, -1)
    K = K[: len(labels), : len(labels)].copy()
    calls = []
    look = spectrum._indefinite
    monkeypatch.setattr(spectrum, "_indefinite", lambda A: calls.append(len(A)) or look(A))
    for kernel, data in (("precomputed", K), (lambda a, b: a @ b.T, X)):
        model = SVC(kernel=kernel).fit(data, labels)
        assert model.predict(data).shape == labels.shape
        assert not calls
        assert model.certificate_.definiteness is Definiteness.COMPUTED
        assert "positive semidefinite on the training points" in str(model.certificate_)
        assert calls == [len(K)]  # once
        calls.clear()
    model = SVC(kernel="precomputed").fit(K, labels)
    K[:] = -K  # what is printed later is about the matrix of the fit
    assert model.certificate_.definiteness is Definiteness.COMPUTED
    calls.clear()
    loaded = pickle.loads(pickle.dumps(SVC(kernel="precomputed").fit(-K, labels)))
    assert calls == [len(K)]
    assert len(pickle.dumps(loaded.certificate_)) < 2000
    assert loaded.certificate_.definiteness is Definiteness.COMPUTED
    with pytest.raises(ValueError, match="positive semidefinite kernel"):
        SVC(kernel="precomputed", C=np.inf).fit(K, labels)


def test_a_gap_as_large_as_the_objective_is_not_called_optimal():
    """Both variables of a row can be large and cancel: nu-SVR's coefficients are differences."""
    model = NuSVR(kernel=Linear() ** 2 + 141.0, C=2e4, nu=0.136)
    certificate = model.fit([[0, 1000], [1, 1000]], [0, 1e-3]).certificate_
    scale = max(abs(certificate.primal), abs(certificate.dual))
    assert certificate.relative_gap * scale >= certificate.gap + certificate.rounding
    assert certificate.relative_gap > 1  # values of 1e12 are known to 1e-4, the objective is 1e-13
    assert "optimal" not in certificate.claim
    assert "no more is proven: the best objective may be lower by up to" in certificate.claim
    assert f"a relative gap of {certificate.relative_gap:.2g}" in certificate.claim


def test_rounding_is_part_of_what_is_claimed():
    certificate = SVC(kernel="linear", C=10.0).fit(1e5 + X, y).certificate_
    assert certificate.rounding > 1e-3 * certificate.primal
    assert certificate.relative_gap >= certificate.rounding / certificate.primal
    assert SVC(C=10.0).fit(X, y).certificate_.rounding < 1e-7


def test_rounding_counts_the_sum_of_losses():
    """At zero variables no kernel value is rounded, but the sum of a thousand costs is."""
    m, C = 1000, 0.1
    problem = duals.c_svc(np.arange(m), np.ones(m), np.full(m, C), bias=False)
    problem = problem.over(Gram.of(np.ones((m, 1)), Linear()))
    zero = Solution(np.zeros(m), 0, Status.MAX_ITER)
    certificate = evaluate(problem, zero, 1e-3, Definiteness.PROVEN).certificate
    missing = float(m * Fraction(C) - Fraction(certificate.gap))
    assert 10 * np.finfo(float).eps * certificate.gap < missing <= certificate.rounding
    assert certificate.rounding < 1e-11 * certificate.gap


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array], ids=["dense", "csr"])
@pytest.mark.parametrize("shift", [0.0, 1e6, 1e8])
def test_a_certificate_far_from_the_origin_is_that_of_the_problem_there(form, shift):
    far = X + shift
    near = far - shift  # what is left of the digits
    labels = np.where(near[:, 0] * near[:, 1] > 0, 1, 0)
    there = SVC(kernel=RBF(1.0), C=10).fit(form(far), labels)
    here = SVC(kernel=RBF(1.0), C=10).fit(near, labels)
    assert there.certificate_.dual == pytest.approx(here.certificate_.dual, rel=1e-9)
    np.testing.assert_allclose(
        there.decision_function(form(far)), here.decision_function(near), atol=1e-6
    )


def test_an_outlying_row_in_csr_is_no_asymmetry():
    points = X.copy()
    points[0] = 1e7
    model = SVC(kernel=RBF(1.0)).fit(sp.csr_array(points), y)
    assert model.certificate_.relative_gap < 1e-9


def test_a_huge_value_does_not_slow_newton_steps_on_the_others(random):
    """One row whose kernel value is 1e26 times that of the others; without them, endless steps."""
    points = random.normal(size=(19, 1))
    points[0] = 8.8e3
    labels = (np.sin(3 * points[:, 0]) > 0).astype(int)
    kernel = RBF(2.0) + Polynomial(degree=3, coef0=100.0, gamma=10.0)
    model = SVC(kernel=kernel, C=1000.0, tol=0.05, max_iter=100_000).fit(points, labels)
    assert model.certificate_.converged


@pytest.mark.filterwarnings("ignore:Solver terminated early")
def test_values_beyond_float64_end_stalled(random):
    points = 1e5 + random.normal(size=(60, 3))
    labels = (random.random(60) < 0.5).astype(int)
    targets = random.normal(size=60)
    for model, aims in ((SVC(C=100.0), labels), (NuSVR(C=100.0, nu=0.3), targets)):
        model.set_params(kernel=Polynomial(degree=4), tol=1e-5, max_iter=10**7)
        certificate = model.fit(points, aims).certificate_
        assert certificate.status == "stalled"
        assert certificate.relative_gap > 1


def test_refining_has_a_limit_and_never_makes_it_worse(monkeypatch):
    """The extra round for the last digits of a small problem may take a few steps, no more."""
    loose = duals.nu_svr(np.arange(90), target, np.full(90, 1e3), nu=0.3)
    gram = Gram.of(X, RBF(gamma=0.05))
    limits = []
    original = certified._Attempt.limit

    def limit(self, max_iter):
        limits.append(self.step_budget)
        return original(self, max_iter)

    monkeypatch.setattr(certified._Attempt, "limit", limit)
    (evaluation,), (steps,) = solve_certified(gram, [loose], Auto(), tol=0.5)
    assert evaluation.certificate.converged
    assert len(limits) == 2  # one round, and the one that refines
    assert limits[0] < 0 <= steps <= limits[1]
    assert evaluation.certificate.relative_gap < 1e-2


@pytest.mark.parametrize(("load", "nu"), [(load_breast_cancer, 0.1), (load_wine, 0.05)])
def test_a_tiny_margin_of_nu_svc_is_known(load, nu):
    """These have margins of 1e-4 and less, below the default tol."""
    certificate = NuSVC(nu=nu).fit(*load(return_X_y=True)).certificate_
    assert certificate.converged
    assert certificate.relative_gap < 1e-2


def test_a_margin_that_is_not_known_says_to_lower_tol():
    model = NuSVC(nu=0.5)
    with pytest.warns(ConvergenceWarning, match="below tol, but not small beside .* lower tol"):
        model._warn_stopped(Status.STALLED, 1e-5)
    with pytest.warns(ConvergenceWarning, match="still above tol"):
        model._warn_stopped(Status.STALLED, 1e-2)
