"""Kernel machines on Dask collections: the answers and certificates of fits in memory."""

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp

dask = pytest.importorskip("dask")
pytest.importorskip("distributed")

import dask.array as da  # noqa: E402
from sklearn.base import clone  # noqa: E402
from sklearn.exceptions import ConvergenceWarning  # noqa: E402

from maxmargin import SVC, SVR, NuSVC, NuSVR, OneClassSVM  # noqa: E402
from maxmargin.backends.cpu.dual.certificate import kkt_state, kkt_sums  # noqa: E402
from maxmargin.dask.kernel import chunking  # noqa: E402
from maxmargin.estimators.checkpoint import CheckpointError  # noqa: E402
from maxmargin.evaluation import InseparableError  # noqa: E402
from maxmargin.kernels import RBF, Linear, Polynomial  # noqa: E402
from maxmargin.solution import Status  # noqa: E402

N = 240
UNEVEN = (60, 1, 100, 0, 79)
RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(N, 3))
THREE = (X[:, 0] + X[:, 1] ** 2 + 0.3 * RANDOM.normal(size=N) > 0.5).astype(int) + (X[:, 2] > 0.5)
TWO = np.array(["no", "yes"])[(THREE > 0).astype(int)]
ONE = np.sin(X[:, 0]) + 0.1 * RANDOM.normal(size=N)
SEVERAL = np.column_stack([ONE, ONE**2 + X[:, 1]])
WEIGHT = RANDOM.uniform(0.0, 2.0, size=N)
WEIGHT[::17] = 0.0


@pytest.fixture(autouse=True)
def here(monkeypatch):
    """Run tasks in this thread, unless there is a client, and as if rows were many."""
    monkeypatch.setattr(chunking, "_FEW", 0)
    with dask.config.set(scheduler="synchronous"):
        yield


def lazily(data, chunks=UNEVEN):
    """Return data as a collection; of sparse ones, as a list of partitions."""
    if data is None:
        return None
    ends = np.cumsum([0, *chunks])
    if sp.issparse(data):
        return [dask.delayed(data[a:b]) for a, b in pairwise(ends) if b > a]
    return da.from_array(data, chunks=(chunks, *((n,) for n in data.shape[1:])))


def fitted(machine, X, y=None, weight=None, chunks=UNEVEN):
    """Fit a machine to collections."""
    given = {} if weight is None else {"sample_weight": lazily(weight, chunks)}
    machine = clone(machine)
    if sp.issparse(X):
        y = [dask.delayed(part) for part in np.split(y, np.cumsum(chunks)[:-1]) if len(part)]
        return machine.fit(lazily(X, chunks), y, **given)
    return machine.fit(
        lazily(X, chunks), **({} if y is None else {"y": lazily(y, chunks)}), **given
    )


def check_equal(machine, X, y=None, weight=None, chunks=UNEVEN):
    """Both fits are certified, neither dual is above the other's primal, and attributes agree."""
    there = fitted(machine, X, y, weight, chunks)
    args = [X] if y is None else [X, y]
    here = clone(machine).fit(*args, sample_weight=weight)
    assert there.certificate_.converged
    assert there.fit_status_ == 0
    pairs = [own.certificate_.parts or (own.certificate_,) for own in (here, there)]
    for mine, theirs in zip(*pairs, strict=True):
        doubt = 1e-12 * abs(mine.primal) + mine.rounding + theirs.rounding
        assert mine.dual <= theirs.primal + doubt
        assert theirs.dual <= mine.primal + doubt
        assert theirs.kkt_violation <= machine.tol
    assert there.shape_fit_ == here.shape_fit_
    assert there.support_.dtype == here.support_.dtype
    assert there.dual_coef_.shape[0] == here.dual_coef_.shape[0]
    assert type(there.dual_coef_) is type(here.dual_coef_)
    assert there.intercept_.shape == here.intercept_.shape
    assert np.shape(there.margin_) == np.shape(here.margin_)
    assert np.shape(there.n_iter_) == np.shape(here.n_iter_)
    assert str(there.kernel_)[:12] == str(here.kernel_)[:12]
    missing = set(vars(here)) - set(vars(there))
    kept_here = {"_betas", "_slack", "slack_", "_free_and_bounded", "_direct_start"}
    assert missing <= kept_here
    taken = there.support_vectors_ != X[there.support_]
    assert not (taken.nnz if sp.issparse(taken) else taken.any())
    assert np.abs(there.predict(X) == here.predict(X)).mean() > 0.98 or y.dtype.kind == "f"
    return here, there


MACHINES = {
    "C": (SVC(C=10.0), TWO),
    "lam": (SVC(lam=1e-3), THREE),
    "without bias": (SVC(fit_intercept=False), TWO),
    "ovr": (SVC(multiclass="ovr", class_weight="balanced"), THREE),
    "dag": (SVC(multiclass="dag"), THREE),
    "ecoc": (SVC(multiclass="ecoc"), THREE),
    "Crammer and Singer": (SVC(multiclass="crammer_singer"), THREE),
    "Weston and Watkins": (SVC(multiclass="weston_watkins", fit_intercept=False), THREE),
    "hard": (SVC(C=np.inf, gamma=3.0), TWO),
    "hard without bias": (SVC(C=np.inf, gamma=3.0, fit_intercept=False), TWO),
    "nu": (NuSVC(nu=0.2), THREE),
    "nu without bias": (NuSVC(nu=0.2, fit_intercept=False), TWO),
    "SVR": (SVR(C=3.0), SEVERAL),
    "SVR without bias": (SVR(fit_intercept=False, lam=1e-3), ONE),
    "nu-SVR": (NuSVR(C=2.0, nu=0.3), SEVERAL),
    "nu-SVR without bias": (NuSVR(fit_intercept=False), ONE),
    "one-class": (OneClassSVM(nu=0.2), None),
}


@pytest.mark.parametrize("name", MACHINES)
def test_the_same_as_in_memory(name):
    machine, y = MACHINES[name]
    check_equal(machine, X, y, WEIGHT)


@pytest.mark.parametrize(
    "name", ["C", "ovr", "Crammer and Singer", "hard", "nu", "nu without bias"]
)
def test_partitions_of_one_class_and_classes_of_one_partition(name):
    machine, y = MACHINES[name]
    order = np.argsort(y, kind="stable")
    check_equal(machine, X[order], y[order], None, (20,) * 12)


@pytest.mark.parametrize(
    ("kernel", "shift", "dtype"),
    [
        (RBF() + 0.1 * Linear(), 0.0, np.float64),
        (RBF("scale").on([0, 2]) * Polynomial(2), 0.0, np.float64),
        (RBF().after(np.sinh), 0.0, np.float64),
        (RBF(), 1000.0, np.float32),
        (Linear(), 0.0, np.float64),
    ],
)
def test_parameters_of_kernels_are_those_of_all_rows(kernel, shift, dtype):
    data = (X + shift).astype(dtype)
    here, there = check_equal(SVC(kernel=kernel), data, TWO)
    mine, theirs = here.kernel_.get_params(), there.kernel_.get_params()
    for name, value in mine.items():
        if isinstance(value, float):
            assert theirs[name] == pytest.approx(value, rel=1e-6)


def test_sparse_blocks_duplicates_and_outliers():
    data = sp.csr_matrix(np.where(np.abs(X) > 0.7, X, 0.0))
    check_equal(SVC(C=100.0), data, TWO, chunks=(120, 120))
    twice = np.vstack([X[:120], X[:120]])
    twice[7] *= 1e3
    check_equal(SVC(C=1000.0), twice, np.tile(TWO[:120], 2))
    check_equal(SVR(C=0.1), twice, ONE)


def test_classes_that_cannot_be_separated():
    with pytest.raises(InseparableError, match=r"^Classes yes and no: .*hard margin") as raised:
        fitted(SVC(C=np.inf, kernel="linear"), X, TWO)
    error = raised.value
    for side, name in ((error.positive, "yes"), (error.negative, "no")):
        assert (TWO[side[0]] == name).all()
        assert side[1].sum() == pytest.approx(1.0)
    gap = error.positive[1] @ X[error.positive[0]] - error.negative[1] @ X[error.negative[0]]
    assert np.abs(gap).max() < 1e-6


@pytest.mark.parametrize("machine", [SVC(), SVR(), NuSVC(nu=0.1), OneClassSVM()])
def test_few_rows_are_solved_for_at_once(machine, monkeypatch):
    monkeypatch.undo()
    y = {SVR: ONE, OneClassSVM: None}.get(type(machine), THREE)
    rounds = check_equal(machine, X, y)[1].distribution_.rounds
    assert rounds == 5  # a look, gamma, a count, a solve with its test, the certificate
    small = dask.config.set({"maxmargin.memory-per-worker": "9 kB"})
    with small, pytest.raises(MemoryError, match="of 240 rows may become") as refusal:
        fitted(machine, X, y)
    assert not str(refusal.value).startswith("240")  # where they have no room, support vectors may


def test_values_are_brought_along_between_rounds(monkeypatch):
    """Few candidates at a time: many rounds, whose values are changed and not made anew."""
    monkeypatch.setattr(chunking, "_MOST", 40)
    rows = np.random.default_rng(1).normal(size=(3000, 3))
    y = (rows[:, 0] + np.sin(3 * rows[:, 1]) > 0).astype(int)
    order = np.argsort(y, kind="stable")
    machine = SVC(C=30.0, n_jobs=1)
    _, there = check_equal(machine, rows[order], y[order], None, (500,) * 6)
    assert there.distribution_.rounds > 11
    decision = there.decision_function(rows[order])
    violated = np.maximum(0.0, 1.0 - (2 * y[order] - 1) * decision)
    squared = float(there.dual_coef_[0] @ (decision - there.intercept_[0])[there.support_])
    primal = 0.5 * squared + 30.0 * violated.sum()
    assert primal == pytest.approx(there.certificate_.primal, rel=1e-9)


def test_values_that_a_solve_has_not_looked_at_are_exact_in_the_next():
    """A certificate leaves the solver's float32 on rows that do not matter: later they may."""
    random = np.random.default_rng(1)
    rows = random.standard_t(2, size=(1500, 3))
    y = (rows[:, 0] * rows[:, 1] + 0.3 * random.normal(size=1500) > 0).astype(int)
    there = fitted(SVC(C=1000.0, gamma=10.0, n_jobs=1), rows, y, None, (300,) * 5)
    values = there.decision_function(rows)
    squared = float(there.dual_coef_[0] @ (values - there.intercept_[0])[there.support_])
    primal = 0.5 * squared + 1000.0 * np.maximum(0.0, 1.0 - (2 * y - 1) * values).sum()
    assert primal == pytest.approx(there.certificate_.primal, rel=1e-10)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(("gamma", "nu"), [(0.001, 0.05), (1.0, 0.002), (0.3, 0.1)])
def test_small_margins_of_nu_machines_are_known_or_not_as_in_memory(gamma, nu):
    """Where tol is more than rho, neither a stall nor a claim follows from it."""
    machine = NuSVC(nu=nu, gamma=gamma)
    here, there = machine.fit(X, TWO), fitted(machine, X, TWO)
    assert there.certificate_.converged == here.certificate_.converged
    if here.certificate_.converged:
        assert there.certificate_.primal == pytest.approx(here.certificate_.primal, rel=0.3)


def test_sums_over_parts_are_those_of_the_whole():
    from maxmargin import Gram, duals

    gram = Gram.of(X, RBF(0.5))
    problem = duals.nu_svc(np.arange(N), np.where(TWO == "yes", 1.0, -1.0), np.ones(N), 0.3)
    problem = problem.over(gram)
    decision = problem.decision(problem.start)
    sums = kkt_sums(problem.variables, 2, problem.start, problem.start, decision, gram.diagonal)
    state = kkt_state(sums, 2)
    assert state.squared_norm == pytest.approx(problem.on_rows(problem.start) @ decision)
    assert state.infeasibility == 0.0


@pytest.mark.parametrize(
    ("machine", "y"),
    [
        (SVC(C=10.0, class_weight="balanced", probability="sigmoid"), TWO),
        (SVC(lam=0.01, probability="temperature"), THREE),
        (SVC(multiclass="ovr", probability="consistent"), THREE),
        (SVC(multiclass="crammer_singer", probability="sigmoid"), THREE),
        (NuSVC(nu=0.1, probability="sigmoid"), THREE),
    ],
)
def test_probabilities_are_those_of_memory(machine, y):
    """The folds are the same, and each is solved to the same tolerance."""
    machine.set_params(tol=1e-5, random_state=0)
    here = clone(machine).fit(X, y, sample_weight=WEIGHT)
    there = fitted(machine, X, y, WEIGHT)
    np.testing.assert_allclose(there.predict_proba(X), here.predict_proba(X), atol=2e-3)
    assert np.abs(here.predict_proba(X) - 1 / len(here.classes_)).max() > 0.3


def test_probabilities_of_a_class_that_one_fold_has_alone():
    y = np.where(np.arange(N) == 70, "rare", TWO)
    machine = SVC(probability=True, random_state=0, tol=1e-5)
    here, there = machine.fit(X, y).predict_proba(X), fitted(machine, X, y).predict_proba(X)
    np.testing.assert_allclose(there, here, atol=1e-4)


def test_probabilities_of_a_fit_without_time_say_so():
    machine = SVC(probability=True, random_state=0, time_limit=1e-3)
    folds = pytest.warns(ConvergenceWarning, match="^in the folds for probability=True")
    with folds, pytest.warns(ConvergenceWarning, match=r"^Solver terminated early"):
        there = fitted(machine, X, TWO)
    assert not there.certificate_.converged
    assert np.isfinite(there.predict_proba(X)).all()


def test_refusals():
    lazy, y = lazily(X), lazily(TWO)
    with pytest.raises(ValueError, match="precomputed kernel is a matrix of all rows"):
        SVC(kernel="precomputed").fit(lazy, y)
    with pytest.raises(ValueError, match="norm_bound"):
        SVC(norm_bound=1.0).fit(lazy, y)
    with pytest.raises(ValueError, match="hard tube"):
        SVR(C=np.inf).fit(lazy, lazily(ONE))
    with pytest.raises(ValueError, match="specified nu is infeasible"):
        NuSVC(nu=0.99).fit(lazy, lazily(np.where(np.arange(N) < 20, 1, 0)))
    with pytest.raises(AttributeError, match="stayed where they are"):
        _ = fitted(SVC(), X, TWO).slack_
    with (
        dask.config.set({"maxmargin.memory-per-worker": "2 kB"}),
        pytest.raises(MemoryError, match=r"rows may become support vectors.*nystroem"),
    ):
        fitted(SVC(), X, TWO)


def test_stops_leave_a_model_with_an_honest_certificate():
    whole = SVC(C=100.0).fit(X, TWO).certificate_
    for machine, status in (
        (SVC(C=100.0, time_limit=1e-9), Status.TIME_LIMIT),
        (SVC(C=100.0, max_iter=3), Status.MAX_ITER),
        (SVC(C=100.0, callback=lambda progress: True), Status.INTERRUPTED),
    ):
        machine = clone(machine).set_params(tol=1e-9)
        with pytest.warns(ConvergenceWarning, match="KKT violation"):
            machine.fit(lazily(X), lazily(TWO))
        assert machine.certificate_.status is status
        assert machine.fit_status_ == 1
        found = machine.certificate_
        doubt = found.rounding + whole.rounding
        assert found.dual <= whole.primal + doubt
        assert found.primal + doubt >= whole.dual
        assert set(machine.predict(X)) <= {"yes", "no"}


def test_callback_sees_every_round():
    seen = []
    machine = SVC(C=10.0, callback=seen.append)
    machine.fit(lazily(X), lazily(TWO))
    assert seen
    assert "candidates" in str(seen[-1])


def test_warm_start_and_checkpoint(tmp_path):
    machine = SVC(C=10.0, warm_start=True)
    machine.fit(lazily(X), lazily(TWO))
    first = machine.certificate_
    machine.fit(lazily(X), lazily(TWO))
    assert machine.certificate_.primal == pytest.approx(first.primal, rel=1e-6)
    machine.set_params(C=5.0).fit(lazily(X), lazily(TWO))
    assert machine.certificate_.primal == pytest.approx(
        SVC(C=5.0).fit(X, TWO).certificate_.primal, rel=1e-3
    )
    path = tmp_path / "state.npz"
    stopped = SVC(C=10.0, tol=1e-9, max_iter=5, checkpoint=path, checkpoint_interval=0.0)
    with pytest.warns(ConvergenceWarning):
        stopped.fit(lazily(X), lazily(TWO))
    assert path.exists()
    other = (120, 120)
    with pytest.raises(CheckpointError, match="belongs to another fit"):
        fitted(SVC(C=11.0, checkpoint=path), X, TWO, None, other)
    finished = SVC(C=10.0, checkpoint=path).fit(lazily(X, other), lazily(TWO, other))
    assert finished.certificate_.converged
    assert not path.exists()
    assert finished.certificate_.dual <= first.primal + first.rounding
    assert first.dual <= finished.certificate_.primal + first.rounding


@pytest.mark.parametrize("options", [{}, {"multiclass": "crammer_singer"}])
def test_a_kernel_without_a_norm_is_warned_of(options):
    with pytest.warns(UserWarning, match=r"is indefinite .* \|w\|\^2 is negative"):
        SVC(kernel=-0.5 * RBF(0.1), **options).fit(lazily(X), lazily(THREE))


def test_on_a_cluster(processes):
    here, there = check_equal(SVC(C=10.0), X, THREE, WEIGHT)
    assert there.distribution_.workers == 2
    assert there.distribution_.bytes_between > 0
    lazy = there.decision_function(lazily(X))
    assert np.allclose(lazy.compute(), there.decision_function(X))
    assert here.device_.device == there.device_.device
