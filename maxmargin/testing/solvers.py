"""Checks of solvers of duals, and the problems that they are checked on."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from maxmargin import duals
from maxmargin.evaluation import Evaluation
from maxmargin.gram import Gram
from maxmargin.kernels import RBF, Linear, Polynomial
from maxmargin.solution import Status
from maxmargin.solvers import Auto, DualMethod, solve_certified


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
