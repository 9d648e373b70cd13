"""Linear machines on Dask collections: the answers of one machine, as both certificates say."""

from __future__ import annotations

import pickle
import warnings
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from maxmargin import LinearSVC, LinearSVR, LogisticRegression
from maxmargin.solvers.risk import subsampled_newton

dask = pytest.importorskip("dask")
pytest.importorskip("distributed")
da = pytest.importorskip("dask.array")

from maxmargin.dask.linear import fit  # noqa: E402

N, CHUNKS = 900, (250, 0, 100, 3, 347, 200)  # uneven, one of them empty
RANDOM = np.random.default_rng(0)
X = RANDOM.standard_normal((N, 7)) * np.array([1.0, 2.0, 0.5, 1.0, 3.0, 1.0, 1.0]) + 1.0
WEIGHTS = np.array([1.0, -0.5, 2.0, 0.0, 0.3, 0.0, -1.0])
F = X @ WEIGHTS - 2.0
Y = np.where(F + 2.0 * RANDOM.standard_normal(N) > 0, "yes", "no")
CLASSES = np.digitize(F + RANDOM.standard_normal(N), [-2.0, 1.0, 4.0])
NUMBERS = 100.0 + F + RANDOM.standard_normal(N)
HEAVY = RANDOM.random(N) * (RANDOM.random(N) < 0.8)


@pytest.fixture(autouse=True)
def here(monkeypatch):
    """Tasks run in this thread, and rows count as many."""
    monkeypatch.setattr(fit, "_better_here", lambda rows: False)
    with dask.config.set(scheduler="synchronous"):
        yield


def rows(data, chunks=CHUNKS):
    """A Dask array of uneven partitions; of CSR blocks, if the data are."""
    ends = np.cumsum((0, *chunks))
    if not sp.issparse(data):
        return da.from_array(data, chunks=(chunks, *([-1] * (data.ndim - 1))))
    parts = [
        da.from_delayed(dask.delayed(data[a:b]), shape=(b - a, data.shape[1]), meta=data[:0])
        for a, b in pairwise(ends)
    ]
    return da.concatenate(parts)


def both(machine, X, y, weight=None, chunks=CHUNKS):
    """Fit a machine in memory and on collections; the same answer, each certified."""
    given = {} if weight is None else {"sample_weight": weight}
    lazy = {} if weight is None else {"sample_weight": rows(weight, chunks)}
    here = clone(machine).fit(X, y, **given)
    there = clone(machine).fit(rows(X, chunks), rows(y, chunks), **lazy)
    mine, theirs = there.certificate_, here.certificate_
    assert mine.converged, mine
    for one, other in zip(mine.parts or [mine], theirs.parts or [theirs], strict=True):
        rounding = 1e-9 * abs(other.primal)
        assert one.dual <= one.primal + rounding
        assert one.dual <= other.primal + rounding  # bounds hold for each other
        assert other.dual <= one.primal + rounding
        assert abs(one.primal - other.primal) <= one.gap + other.gap + rounding
    for name in ("coef_", "intercept_", "n_iter_", "C_", "lam_"):
        a, b = np.asarray(getattr(here, name)), np.asarray(getattr(there, name))
        assert (a.shape, a.dtype) == (b.shape, b.dtype), name
    assert {*vars(here)} - {"_street"} <= {*vars(there)}
    assert here.solver_ == there.solver_
    return here, there


@pytest.mark.parametrize(
    "machine",
    [
        LinearSVC(),
        LinearSVC(C=1000.0, tol=1e-3),
        LinearSVC(intercept_scaling=2.0, C=0.01),
        LinearSVC(fit_intercept=False, lam=1e-3),
        LinearSVC(loss="hinge"),
        LinearSVC(loss="hinge", C=0.01, class_weight="balanced"),
        LinearSVC(penalty="l1", C=0.1),
        LinearSVC(norm_bound=0.3),
        LinearSVC(loss="hinge", norm_bound=0.3, tol=1e-2),
        LogisticRegression(),
        LogisticRegression(C=np.inf),
        LogisticRegression(l1_ratio=0.5, C=0.1),
        LogisticRegression(C=1000.0, class_weight={"yes": 3.0}),
        LogisticRegression(solver="lbfgs", C=0.01, max_iter=1000),
        LogisticRegression(solver="liblinear", intercept_scaling=3.0),
    ],
    ids=str,
)
@pytest.mark.parametrize("weight", [None, HEAVY], ids=["even", "weighted"])
def test_two_classes(machine, weight):
    """Every loss, penalty and form of the cost, with and without weights."""
    here, there = both(machine, X, Y, weight)
    assert np.mean(here.predict(X) == there.predict(X)) > 0.97
    assert there.classes_.tolist() == ["no", "yes"]
    assert there.distribution_.rows == N
    assert there.distribution_.partitions == len(CHUNKS) - 1


@pytest.mark.parametrize(
    "machine",
    [
        LogisticRegression(),
        LogisticRegression(l1_ratio=1.0, C=0.1),
        LogisticRegression(penalty=None, C=np.inf),
        LogisticRegression(norm_bound=1.0),
        LogisticRegression(solver="lbfgs", C=0.01, max_iter=1000),
        LogisticRegression(multiclass="ecoc"),
        LinearSVC(class_weight={2: 3.0}),
        LinearSVC(class_weight="balanced", class_weight_on="rows", loss="hinge", tol=1e-3),
        LinearSVC(multiclass="ovo"),
    ],
    ids=str,
)
def test_several_classes(machine):
    """Softmax and schemes; a class that few partitions have, weights of zero."""
    _, there = both(machine, X, CLASSES, HEAVY)
    assert there.scheme_.n_classes == 4


@pytest.mark.parametrize(
    "machine",
    [
        LinearSVR(),
        LinearSVR(epsilon=0.5, C=10.0, intercept_scaling=10.0),
        LinearSVR(loss="squared_epsilon_insensitive"),
        LinearSVR(norm_bound=1.5, tol=1e-2),
    ],
    ids=str,
)
def test_numbers(machine):
    """Both losses of residuals, far from zero; several outputs."""
    both(machine, X, NUMBERS, HEAVY)


def test_several_outputs():
    """One problem for each column of the targets."""
    both(LinearSVR(epsilon=1.0, tol=1e-3), X, np.column_stack([NUMBERS, -F]))


@pytest.mark.parametrize("machine", [LinearSVC(), LinearSVC(loss="hinge"), LogisticRegression()])
@pytest.mark.parametrize("kind", ["float32", "sparse", "far", "separable"])
def test_data(machine, kind):
    """What rows may be."""
    rows, y = {
        "float32": (X.astype(np.float32), Y),
        "sparse": (sp.csr_array(np.where(np.abs(X) > 1.0, X, 0.0)), Y),
        "far": (X + np.array([1e3, 0, 0, 0, 0, 0, -1e2]), Y),
        "separable": (X, np.where(F > 0, 1, 0)),
    }[kind]
    both(machine, rows, y)


@pytest.mark.parametrize("machine", [LinearSVC(), LogisticRegression(C=100.0), LinearSVR()])
def test_part_of_the_rows(machine, monkeypatch):
    """Many rows: a part that is drawn where they lie stands for the curvature of all."""
    monkeypatch.setattr(subsampled_newton, "_MANY", 1 << 10)
    random = np.random.default_rng(1)
    many = random.standard_normal((20_000, 5))
    many[:, 4] = random.random(20_000) < 0.002  # a column that few rows know of
    f = many @ np.array([1.0, -1.0, 0.5, 0.0, 3.0]) + random.standard_normal(20_000)
    if isinstance(machine, LinearSVR):
        machine, y = LinearSVR(loss="squared_epsilon_insensitive", max_iter=50), f
    else:
        y = (f > 0).astype(int)
    weight = random.random(20_000) * (random.random(20_000) < 0.9)
    chunks = (9_000, 1_000, 10_000)
    _, there = both(machine, many, y, weight, chunks)
    assert there.distribution_.rounds <= 8  # a look, and a pass for each step
    again = clone(machine).fit(rows(many, chunks), rows(y, chunks), rows(weight, chunks))
    np.testing.assert_array_equal(again.coef_, there.coef_)
    with dask.config.set({"maxmargin.memory-per-worker": "1kB"}):  # read in every pass
        read = clone(machine).fit(rows(many, chunks), rows(y, chunks), rows(weight, chunks))
    assert not read.distribution_.kept
    np.testing.assert_allclose(read.coef_, there.coef_, rtol=1e-9, atol=1e-12)


def test_many_columns():
    """Beyond what a matrix is made for: conjugate gradients, and L-BFGS for the l1 penalty."""
    random = np.random.default_rng(2)
    wide = sp.random_array((100, 1_520), density=0.01, random_state=random, format="csr")
    y = random.integers(0, 2, 100)
    chunks = (40, 60)
    for machine in (
        LinearSVC(C=0.1),
        LogisticRegression(l1_ratio=1.0, C=3.0, max_iter=1000, tol=1e-6),
    ):
        model = clone(machine).fit(rows(wide, chunks), rows(y, chunks))
        known = clone(machine).fit(wide, y).certificate_
        assert model.certificate_.converged
        assert model.certificate_.dual <= known.primal
        assert known.dual <= model.certificate_.primal
    assert model.solver_ == "lbfgs"


def test_warm_start_and_limits():
    """A fit may begin where the last one has ended, and end early with an honest certificate."""
    machine = LogisticRegression(C=0.1, warm_start=True)
    lazy, y = rows(X), rows(Y)
    first = machine.fit(lazy, y).n_iter_
    assert machine.fit(lazy, y).n_iter_ < first
    pickle.loads(pickle.dumps(machine)).predict(X)
    with pytest.warns(ConvergenceWarning):
        short = LinearSVC(loss="hinge", max_iter=2, tol=1e-9).fit(lazy, y)
    best = LinearSVC(loss="hinge", tol=1e-9, max_iter=-1).fit(X, Y).certificate_.primal
    assert short.n_iter_ == 2
    assert short.certificate_.dual <= best <= short.certificate_.primal
    with pytest.warns(ConvergenceWarning):
        late = LogisticRegression(solver="lbfgs", tol=1e-9, time_limit=1e-6).fit(lazy, y)
    assert late.certificate_.status.value == "time_limit"
    assert late.certificate_.dual <= late.certificate_.primal
    told = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        seen = LinearSVC(loss="hinge", tol=1e-9, callback=lambda p: told.append(p) or True)
        seen.fit(lazy, y)
    assert told
    assert seen.certificate_.status.value == "interrupted"


def test_what_cannot_be():
    """Methods that visit single rows, and what would be a number for every row."""
    lazy, y = rows(X), rows(Y)
    for options in ({"solver": "dual_descent"}, {"solver": "sgd"}, {"dual": True}):
        with pytest.raises(ValueError, match="partitions of Dask collections: use solver='auto'"):
            LinearSVC(**options).fit(lazy, y)
    model = LinearSVC().fit(lazy, y)
    assert model.margin_ > 0
    with pytest.raises(AttributeError, match="decision_function"):
        model.slack_  # noqa: B018
    with pytest.raises(ValueError, match="weight zero"):
        LinearSVC(class_weight={"no": 0.0}).fit(lazy, y)
    direct = LinearSVC(multiclass="crammer_singer", tol=1e-2).fit(lazy, rows(CLASSES))
    assert direct.certificate_.converged
    hard = LinearSVC(C=np.inf).fit(rows(X), rows(np.where(X[:, 0] > 1.0, 1, 0)))
    assert "gathered" in str(hard.distribution_)


@pytest.mark.parametrize(
    "machine", [LinearSVC(loss="hinge", C=1e3), LogisticRegression(penalty="l1"), LinearSVR()]
)
@pytest.mark.parametrize("little", [0, 1 << 25])
def test_few_rows_and_wide_ones_are_fitted_in_one_place(machine, little, monkeypatch):
    monkeypatch.undo()
    monkeypatch.setattr(fit, "_LITTLE", little)
    wide, labels = sp.random(80, 400, density=0.05, format="csr", random_state=0), Y[:80] == "yes"
    _, there = both(machine, wide, labels.astype(float), HEAVY[:80], (30, 50))
    assert there.distribution_.rounds < 6
    assert "gathered" in str(there.distribution_)
    tall = clone(machine).fit(rows(X), rows((Y == "yes").astype(float))).distribution_
    assert ("gathered" in str(tall)) == bool(little)


@pytest.mark.slow
def test_on_a_cluster(processes):
    """Two processes: blocks are put together where they lie, and the answer is the same."""
    chunks = (200,) * 4 + (100,)
    for machine in (LinearSVC(), LinearSVC(loss="hinge", C=0.1)):
        _, there = both(machine, X, Y, HEAVY, chunks)
        assert there.distribution_.workers == 2
        assert there.distribution_.bytes_moved < X.nbytes * 10


def test_of_an_interval_of_intercepts_the_middle():
    few = np.argsort(NUMBERS)[[0, 1, 2, 3, -4, -3, -2, -1]]
    machine = LinearSVR(C=1e-3, tol=1e-12)
    alone = clone(machine).fit(X[few], NUMBERS[few])
    there = clone(machine).fit(rows(X[few], (3, 5)), rows(NUMBERS[few], (3, 5)))
    np.testing.assert_allclose(there.intercept_, alone.intercept_, rtol=1e-9)
