"""Checks for your own kernels, Gram matrices, losses, solvers and schemes: this package's pass.

``check_kernel(MyKernel())`` raises an AssertionError that says what is wrong, or returns quietly.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from dataclasses import fields, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.optimize import minimize_scalar
from sklearn.base import clone

from maxmargin import duals
from maxmargin.backends.program import Map, Program
from maxmargin.evaluation import Evaluation
from maxmargin.gram import Gram
from maxmargin.kernels import RBF, Input, Kernel, Linear, Polynomial, Validity, check_valid
from maxmargin.losses import Loss, MarginLoss, ResidualLoss, Shape
from maxmargin.multiclass import Scheme
from maxmargin.solution import Status
from maxmargin.solvers import Auto, DualMethod, solve_certified


def check_kernel(kernel: Kernel, X: Any = None) -> None:
    """Hold a kernel to its contract.

    Symmetry, the diagonal, agreement of parts with the whole, of CSR with dense and of float32 with
    float64, positive eigenvalues where validity is claimed, and scikit-learn's manners: clone,
    pickle, equality, parameters.

    Parameters
    ----------
    kernel : Kernel
    X : data of at least 6 points that the kernel takes, optional
        By default 40 random points in five dimensions (for a precomputed kernel, their products).

    Examples
    --------
    >>> from maxmargin.kernels import RBF, Linear
    >>> from maxmargin.testing import check_kernel
    >>> check_kernel(RBF(gamma=0.3) * Linear() + 1)
    """
    if X is None:
        X = np.random.default_rng(0).normal(size=(40, 5))
        X = X @ X.T if kernel.pairwise else X
    kernel = kernel.resolve(X)
    K = kernel(X)
    n = len(K)
    scale = max(np.abs(K).max(), np.finfo(np.float64).tiny)
    close = _close(K)
    assert K.shape == (n, n), f"k(X) has shape {K.shape} for {n} points"
    np.testing.assert_allclose(K, K.T, err_msg="k(x, z) != k(z, x)", **close)
    if kernel.validity is Validity.VALID:
        test = check_valid(kernel, X, tol=1e-9 * scale * n)
        assert test, f"{kernel!r} claims to be valid by construction, but is {test}"
    check_gram(Gram.of(X, kernel, memory=8 * n * (n // 2)), X)
    if kernel.input is not Input.MATRIX:
        np.testing.assert_allclose(kernel.diag(X), np.diag(K), err_msg="diag", **close)
        np.testing.assert_allclose(kernel(X[:4], X[2:]), K[:4, 2:], err_msg="k(X, Z)", **close)
    if kernel.input is Input.VECTORS and isinstance(X, np.ndarray):
        _check_containers(kernel, X, K, close)
    _check_manners(kernel)


def _check_containers(kernel: Kernel, X: np.ndarray, K: np.ndarray, close: dict) -> None:
    narrow = X.astype(np.float32)
    values = kernel(narrow)
    assert values.dtype == np.float64
    wide = kernel(narrow.astype(np.float64))
    if _has_functions(kernel.lower()):  # a user's function may well compute in float32
        close = {"rtol": 1e-4, "atol": 1e-5 * np.abs(wide).max()}
    np.testing.assert_allclose(values, wide, err_msg="float32 differs from float64", **close)
    sparse = sp.csr_matrix(X)
    try:
        values = kernel(sparse)
    except (TypeError, AttributeError, ValueError):
        if _has_functions(kernel.lower()):
            return  # a user's function inside the kernel that takes dense data only
        raise
    np.testing.assert_allclose(values, K, err_msg="CSR differs from dense", **close)
    np.testing.assert_allclose(kernel(X, sparse), K, err_msg="dense against CSR", **close)


def _has_functions(program: Program) -> bool:
    steps = [step for primitive in program.primitives for step in primitive.view]
    mapped = any(isinstance(step, Map) for step in steps)
    return mapped or bool(program.factors) or any(p.function for p in program.primitives)


def _check_manners(kernel: Kernel) -> None:
    copy = clone(kernel)
    assert copy == kernel, "a clone differs from its original"
    assert copy is not kernel
    assert hash(copy) == hash(kernel)
    assert repr(kernel) == repr(copy)
    assert kernel != object()
    rebuilt = type(kernel)(**kernel.get_params(deep=False))
    assert rebuilt == kernel, "get_params and the constructor disagree"
    try:
        assert pickle.loads(pickle.dumps(kernel)) == kernel, "pickle changes the kernel"
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        if "pickle" not in str(error) and "local" not in str(error):  # a lambda of the user's
            raise


def check_gram(gram: Gram, X: Any) -> None:
    """Hold a Gram matrix to its contract.

    Diagonal, rows, blocks, products, the whole and its parts against the kernel's values, and
    these within ``rounding``; symmetry; rows on the host as solvers have them there.

    Parameters
    ----------
    gram : Gram
    X : data of at least 6 points
        Those that it was made of.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin import Gram
    >>> from maxmargin.kernels import RBF
    >>> from maxmargin.testing import check_gram
    >>> X = np.arange(12.0).reshape(6, 2)
    >>> check_gram(Gram.of(X, RBF(gamma=0.1)), X)
    """
    K = gram.kernel(X)
    n, everything = len(K), np.arange(len(K))
    assert gram.n == n, f"n is {gram.n} for {n} points"
    gram.check()
    part = gram.take(everything[::-1])
    _check_values(gram, K)
    _check_values(part, K[::-1, ::-1])
    _check_values(part.take([0, 4, 2, 5]), K[::-1, ::-1][np.ix_([0, 4, 2, 5], [0, 4, 2, 5])])
    values = gram.block(everything, everything)
    np.testing.assert_allclose(values, values.T, err_msg="K is not symmetric", **_close(K))
    if gram.kernel.validity is Validity.VALID and not gram.kernel.lower().calls_python:
        size = np.sqrt(np.diag(K))
        unit = 2 * gram.rounding * np.finfo(np.float64).eps  # the kernel's own values round, too
        assert (np.abs(values - K) <= unit * np.outer(size, size)).all(), "beyond its rounding"


def _close(K: np.ndarray) -> dict[str, Any]:
    """How near two ways to compute these kernel values come."""
    return {"rtol": 1e-9, "atol": 1e-11 * max(np.abs(K).max(), np.finfo(np.float64).tiny)}


def _check_values(gram: Gram, K: np.ndarray) -> None:
    n, close, some = gram.n, _close(K), np.array([3, 0])
    np.testing.assert_allclose(gram.diagonal, np.diag(K), err_msg="diagonal", **close)
    np.testing.assert_allclose(gram.rows(some), K[some], err_msg="rows", **close)
    np.testing.assert_allclose(gram.block([1, 2], some), K[[1, 2]][:, some], **close)
    weights = np.random.default_rng(0).normal(size=(n, 3)) / n
    weights[::3] = 0.0
    for rows in (None, some):
        sums = K @ weights if rows is None else K[rows] @ weights
        for column in range(3):
            found = gram.matvec(weights[:, column], rows)
            np.testing.assert_allclose(found, sums[:, column], err_msg="matvec", **close)
        for form in (np.asarray, sp.csc_array):
            np.testing.assert_allclose(
                gram.matmat(form(weights), rows), sums, err_msg="matmat", **close
            )
    if 8 * n**2 <= gram.memory:
        np.testing.assert_allclose(gram.dense(), K, err_msg="dense", **close)
    host = gram.host
    assert host.n == n
    assert not host.on_device
    host.require(some[: host.store.capacity])
    resident = np.flatnonzero(host.store.slot >= 0)
    stored = host.store.data[host.store.slot[resident]]
    np.testing.assert_allclose(stored, K[resident], err_msg="rows of the store", **close)
    gram.forget()
    np.testing.assert_allclose(gram.rows(some), K[some], err_msg="after forget", **close)


def problem_bank(
    seed: int = 0, nasty: bool = True
) -> Iterator[tuple[str, Gram, duals.DualProblem]]:
    """Yield small dual problems of every kind, easy and nasty, as (name, Gram, problem).

    Without the nasty ones, which are ill-conditioned, a method of the first order comes to an end.
    """
    random = np.random.default_rng(seed)
    X = random.normal(size=(60, 4))
    y = np.where(X[:, 0] + X[:, 1] * X[:, 2] + 0.3 * random.normal(size=60) > 0, 1.0, -1.0)
    target = np.sin(X[:, 0]) + 0.1 * random.normal(size=60)
    weight = random.uniform(0.1, 3.0, size=60)
    weight[::7] = 0.0
    rows = np.arange(60)
    ones = np.ones(60)
    data = {
        "plain": (X, RBF(gamma=0.5)),
        "linear": (X, Linear()),
        "duplicates": (np.repeat(X[:12], 5, axis=0), RBF(gamma=0.5)),
        "constant": (np.ones((60, 2)), RBF(gamma=1.0)),
        "far away": (X + 1e4, RBF(gamma=0.5)),
        "wide": (random.normal(size=(60, 300)), Polynomial(2, gamma=0.01)),
    }
    if not nasty:
        data = {"plain": data["plain"], "wide": data["wide"]}
    for name, (points, kernel) in data.items():
        for bias in (True, False):
            form = "" if bias else ", no bias"
            gram = Gram.of(points, kernel, memory=1 << 24)
            problems = {
                "C-SVC": duals.c_svc(rows, y, ones, bias=bias),
                "C-SVC, large C": duals.c_svc(rows, y, 1e3 * ones, bias=bias),
                "C-SVC, weighted": duals.c_svc(rows, y, weight, bias=bias),
                "nu-SVC": duals.nu_svc(rows, y, ones, 0.6, bias=bias),
                "SVR": duals.epsilon_svr(rows, target, 10 * weight, 0.1, bias=bias),
                "nu-SVR": duals.nu_svr(rows, target, 10 * ones, 0.3, bias=bias),
            }
            if not nasty:
                del problems["C-SVC, large C"]
            if name in ("duplicates", "constant"):
                del problems["nu-SVC"]  # equal rows in both classes: the trivial solution only
            if bias and name != "linear":  # whose hull holds the origin: again the trivial one
                problems["one-class"] = duals.one_class(rows, ones, 0.3)
            for kind, problem in problems.items():
                yield f"{kind}{form} on {name} data", gram, problem
    tight = Gram.of(X, RBF(gamma=0.5), memory=8 * 60 * 4)
    yield "C-SVC in a store of four rows", tight, duals.c_svc(rows, y, ones)
    yield "hard margin", Gram.of(X, RBF(gamma=2.0)), duals.hard_margin(rows, y, ones)


def check_solver(
    solver: DualMethod | Auto, tol: float = 1e-3, nasty: bool = True, max_iter: int = -1
) -> list[Evaluation]:
    """Hold a solver to its contract: every problem that it takes ends feasible and certified.

    Problems are those of :func:`problem_bank`; one that a method does not take it refuses with a
    sentence. A method that is slow may be given ``max_iter`` steps: what is not solved by then is
    feasible all the same, and says why it ended. Returns the evaluations, for further comparison.

    Examples
    --------
    >>> from maxmargin.solvers import SMO
    >>> from maxmargin.testing import check_solver
    >>> len(check_solver(SMO())) > 50
    True
    """
    evaluations = []
    for name, gram, problem in problem_bank(nasty=nasty):
        if isinstance(solver, DualMethod):
            refused = solver.accepts(problem.over(gram))
            assert refused is None or refused.endswith("."), f"{name}: {refused!r} is no sentence"
            if refused is not None:
                continue
        start = problem.start.copy()
        method = Auto(max_iter, method=solver) if isinstance(solver, DualMethod) else solver
        (evaluation,), (steps,) = solve_certified(gram, [problem], method, tol)
        certificate = evaluation.certificate
        cut_short = 0 <= max_iter <= steps and certificate.status is Status.MAX_ITER
        assert cut_short or certificate.status is Status.CONVERGED, f"{name}: {certificate}"
        assert cut_short or certificate.kkt_violation <= tol, f"{name}: {certificate}"
        assert certificate.gap >= 0, f"{name}: {certificate}"
        assert certificate.infeasibility <= 1e-9 * max(1.0, np.abs(evaluation.beta).sum()), name
        assert (problem.start == start).all(), f"{name}: the solver changed its input"
        assert steps >= 0
        evaluations.append(evaluation)
    assert evaluations, "the solver takes none of the problems"
    return evaluations


def check_scheme(scheme: Scheme) -> None:
    """Hold a multiclass scheme to its contract.

    Code, tasks, layout and the sums over support vectors are replayed by hand, row by row; a point
    whose values are a class's own signs goes to this class and is most probably of it;
    probabilities are such; ``unanimous`` is true to the decisions.

    Parameters
    ----------
    scheme : Scheme
        For any number of classes; try it with two as well.

    Examples
    --------
    >>> from maxmargin.multiclass import OneVsRest
    >>> from maxmargin.testing import check_scheme
    >>> check_scheme(OneVsRest(4))
    """
    random = np.random.default_rng(0)
    code, n_classes = scheme.code, scheme.n_classes
    assert code.shape[1] == n_classes, "a code has a column for each class"
    assert np.isin(code, (-1, 0, 1)).all(), "a code has the entries -1, 0 and 1"
    assert len(np.unique(code, axis=1).T) == n_classes, "two classes have the same code"
    y = random.permutation(np.repeat(np.arange(n_classes), 7))
    tasks = scheme.tasks(y)
    assert len(tasks) == len(code), "there is a task for each row of the code"
    for codes, signs, (rows, labels) in zip(code, scheme.signs(y), tasks, strict=True):
        seen = [i for i in range(len(y)) if codes[y[i]]]
        assert rows.tolist() == seen, "a task has the rows of its classes, in order"
        assert labels.tolist() == [scheme.sign * codes[y[i]] for i in seen], "labels of a task"
        assert signs.tolist() == codes[y].tolist(), "signs of a machine"
    _check_layout(scheme, [rows for rows, _ in tasks], y, random)
    _check_answers(scheme, random)
    assert pickle.loads(pickle.dumps(scheme)) == scheme, "pickle changes the scheme"
    assert hash(pickle.loads(pickle.dumps(scheme))) == hash(scheme), "equal, but other hashes"


def _check_layout(
    scheme: Scheme, rows: list[np.ndarray], y: np.ndarray, random: np.random.Generator
) -> None:
    whole = np.zeros((len(rows), len(y)))  # coefficients of all machines on all rows
    for k, own in enumerate(rows):
        whole[k, own] = random.normal(size=len(own)) * (random.uniform(size=len(own)) < 0.6)
    machines = [(own, whole[k, own]) for k, own in enumerate(rows)]
    support, n_support, dual_coef = scheme.pack(machines, y)
    used = [i for c in range(len(n_support)) for i in np.flatnonzero(y == c) if whole[:, i].any()]
    assert support.tolist() == used, "support vectors are those of any machine, in order of class"
    assert n_support.tolist() == np.bincount(y[used], minlength=scheme.n_classes).tolist()
    assert dual_coef.shape == (scheme.n_rows, len(used)), "shape of dual_coef_"
    np.testing.assert_array_equal(scheme.expansions(dual_coef, n_support), whole[:, used])
    kernel = random.normal(size=(5, len(used)))
    counts = n_support if scheme.by_class else [len(used)]
    parts = np.split(np.arange(len(used)), np.cumsum(counts)[:-1])
    sums = np.stack([kernel[:, part] @ dual_coef[:, part].T for part in parts], axis=1)
    values = scheme.combine(sums)
    np.testing.assert_allclose(values, kernel @ whole[:, used].T, atol=1e-12, err_msg="combine")


def _check_answers(scheme: Scheme, random: np.random.Generator) -> None:
    code, classes = scheme.code, np.arange(scheme.n_classes)
    assert scheme.decode(code.T.astype(float)).tolist() == classes.tolist(), "a class's own signs"
    sure = scheme.probabilities(0.5 + 0.49 * code.T)
    assert sure.argmax(axis=1).tolist() == classes.tolist(), "probabilities of its own signs"
    values = random.normal(size=(400, len(code)))
    index, scores = scheme.decode(values), scheme.scores(values)
    assert index.shape == (400,)
    assert np.isin(index, classes).all(), "decode returns indices of classes"
    assert scores.shape == (400, scheme.n_classes), "scores has a column for each class"
    p = scheme.probabilities(random.uniform(0.01, 0.99, size=values.shape))
    assert (p >= 0).all(), "a probability is negative"
    np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-9, err_msg="sum of probabilities")
    p = scheme.tempered(values, 2.0)
    assert p.shape == scores.shape, "shape of tempered probabilities"
    assert (p >= 0).all(), "a tempered probability is negative"
    np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-9, err_msg="sum of tempered ones")
    sure = scheme.tempered(3.0 * code.T, 2.0)
    assert sure.argmax(axis=1).tolist() == classes.tolist(), "tempered ones of its own signs"
    own = random.integers(scheme.n_classes, size=400)
    right = np.where(code.T[own] != 0, code.T[own] * np.abs(values), values)
    agreed = (scheme.decode(right) == own).all()
    assert agreed or not scheme.unanimous, "says it is unanimous, but is not"


def check_loss(loss: Loss) -> None:
    """Hold a loss to its contract.

    Slope and curvature against finite differences, both from the right where they jump; ``convex``
    and ``smooth`` true to the values; of a convex loss the conjugate as the supremum that defines
    it, Fenchel's inequality ``V(u) + V*(s) >= s u`` with equality at ``s = V'(u)``, and
    ``shape.best`` where there is a shape.

    Parameters
    ----------
    loss : Loss

    Examples
    --------
    >>> from maxmargin.losses import EpsilonInsensitive
    >>> from maxmargin.testing import check_loss
    >>> check_loss(EpsilonInsensitive(0.3))
    """
    random = np.random.default_rng(0)
    u = random.uniform(-4.0, 4.0, size=500)  # no two of them, and no kink, are neighbours
    assert isinstance(loss, MarginLoss | ResidualLoss), "a loss is of margins or of residuals"
    assert loss.name, "a loss has a name"
    _check_derivatives(loss, u)
    _check_convexity(loss, u)
    _check_smoothness(loss)
    if loss.convex:
        _check_conjugate(loss, u, random.uniform(-3.0, 3.0, size=100))
    if loss.shape is not None:
        _check_best(loss, loss.shape, random)
    assert pickle.loads(pickle.dumps(loss)) == loss, "pickle changes the loss"
    assert hash(loss) == hash(replace(loss)), "equal losses have different hashes"


def _kinks(loss: Loss) -> np.ndarray:
    """Where a loss is likely to have kinks: -1, 0, 1 and its parameters."""
    parameters = [float(getattr(loss, field.name)) for field in fields(loss)]
    return np.unique([-1.0, 0.0, 1.0, *parameters, *(-p for p in parameters)])


def _check_derivatives(loss: Loss, u: np.ndarray) -> None:
    h = 1e-6
    value, slope, curvature = loss.value(u), loss.slope(u), loss.curvature(u)
    assert value.shape == slope.shape == curvature.shape == u.shape, "shapes differ"
    close: dict[str, Any] = {"rtol": 1e-6, "atol": 1e-7}
    rise = (loss.value(u + h) - loss.value(u - h)) / (2 * h)
    np.testing.assert_allclose(slope, rise, err_msg="slope", **close)
    differences = (loss.slope(u + h) - loss.slope(u - h)) / (2 * h)
    np.testing.assert_allclose(curvature, differences, err_msg="curvature", **close)
    both = loss.slope_and_curvature(u)
    np.testing.assert_allclose(both, (slope, curvature), err_msg="both at once", rtol=1e-12)
    kinks = _kinks(loss)
    right = kinks + 1e-9
    np.testing.assert_allclose(
        loss.slope(kinks), loss.slope(right), err_msg="slope from the right", atol=1e-7
    )
    np.testing.assert_allclose(
        loss.curvature(kinks), loss.curvature(right), err_msg="curvature from the right", atol=1e-7
    )


def _check_convexity(loss: Loss, u: np.ndarray) -> None:
    ends = u.reshape(2, -1)
    above = loss.value(ends).mean(axis=0) - loss.value(ends.mean(axis=0))
    if loss.convex:
        assert above.min() >= -1e-12 * np.abs(loss.value(u)).max(), "not convex, but says it is"
    else:
        assert above.min() < -1e-3, "no chord is below the loss, but it says it is not convex"


def _check_smoothness(loss: Loss) -> None:
    """A continuous function has smaller steps on a finer grid."""
    fine = np.linspace(-4.0, 4.0, 80001)

    def jumps(values: np.ndarray) -> bool:
        largest = np.abs(np.diff(values)).max()
        return bool(largest > 0.5 * np.abs(np.diff(values[::10])).max() > 0)

    smooth = not jumps(loss.value(fine)) and not jumps(loss.slope(fine))
    assert loss.smooth == smooth, f"smooth is {loss.smooth}, but should be {smooth}"


def _check_conjugate(loss: Loss, u: np.ndarray, s: np.ndarray) -> None:
    value, slope = loss.value(u), loss.slope(u)
    equal = slope * u - value
    np.testing.assert_allclose(loss.conjugate(slope), equal, rtol=1e-9, atol=1e-9, err_msg="V*")
    grid = np.sort(np.concatenate([np.linspace(-30.0, 30.0, 60001), _kinks(loss)]))
    values = loss.value(grid)
    for slope_of_line, bound in zip(s, loss.conjugate(s), strict=True):
        reached = slope_of_line * grid - values
        at = int(reached.argmax())
        assert reached[at] <= bound + 1e-9, f"V(u) + V*(s) < s u for s = {slope_of_line}"
        if np.isfinite(bound):
            assert reached[at] >= bound - 1e-3, f"V*({slope_of_line}) is larger than its supremum"
        else:
            assert at in (0, len(grid) - 1), f"V*({slope_of_line}) is finite, but not said to be"


def _check_best(loss: Loss, shape: Shape, random: np.random.Generator) -> None:
    assert shape.low <= 0 <= shape.high, "zero belongs to the interval of a shape"
    for _ in range(20):
        u, width = random.uniform(-3.0, 3.0), random.uniform(0.1, 3.0)
        centre = float(np.clip(random.uniform(-2.0, 2.0), shape.low, shape.high))

        def cost(s: float, u: float = u, centre: float = centre, width: float = width) -> float:
            return float(loss.conjugate(np.array(s))) - s * u + (s - centre) ** 2 / (2 * width)

        limits = max(shape.low, -50.0), min(shape.high, 50.0)
        found = minimize_scalar(cost, bounds=limits, method="bounded", options={"xatol": 1e-10})
        best = float(shape.best(np.array(u), np.array(centre), width))
        assert shape.low <= best <= shape.high, "shape.best leaves the interval"
        assert cost(best) <= found.fun + 1e-9, f"shape.best({u}, {centre}, {width}) is not the best"
