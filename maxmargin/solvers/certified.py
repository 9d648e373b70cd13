"""From problems to certified machines: solve, look again from the problem, repair, repeat.

Convergence is judged on the certificate, not on what the solver believes: where the violation
recomputed in float64 is above ``tol``, the solver goes on from there with its gradient renewed.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from maxmargin.backends.threads import on_one_blas_thread
from maxmargin.certificate import Evaluation, InseparableError, evaluate
from maxmargin.duals import DualBatch, DualProblem
from maxmargin.gram import Definiteness, Gram
from maxmargin.solution import Status
from maxmargin.solvers.smo import SMO

_ROUNDS = 12
_SMALL, _REFINED = 2000, 1e-5


@on_one_blas_thread
def solve_certified(
    gram: Gram, problems: list[DualProblem], solver: SMO, tol: float
) -> tuple[list[Evaluation], list[int]]:
    """Solve problems over one Gram matrix; returns an evaluation and a step count for each.

    When the whole matrix fits the memory budget all problems share its rows; otherwise each one
    works on the Gram matrix of its own rows.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin import Gram, duals
    >>> from maxmargin.kernels import Linear
    >>> from maxmargin.solvers import SMO, solve_certified
    >>> gram = Gram.of(np.array([[-1.0], [0.0], [1.0]]), Linear())
    >>> problem = duals.c_svc(np.arange(3), np.array([-1.0, -1.0, 1.0]), C=np.full(3, 10.0))
    >>> (evaluation,), (steps,) = solve_certified(gram, [problem], SMO(), tol=1e-3)
    >>> evaluation.coefficients, round(evaluation.bias, 6), round(evaluation.margin, 6)
    (array([ 0., -2.,  2.]), -1.0, 0.5)
    """
    definiteness = gram.definiteness
    if definiteness is Definiteness.INDEFINITE and any(problem.hard for problem in problems):
        raise ValueError(
            f"The hard margin (C=inf) needs a positive semidefinite kernel, and {gram.kernel!r} is "
            "indefinite on these data: it has no feature space to separate in. Use a finite C."
        )
    if gram.resident or all(len(np.unique(p.gram_row)) == gram.n for p in problems):
        return _rounds(gram, problems, solver, tol, definiteness)
    evaluations, counts = [], []
    for problem in problems:
        rows = np.unique(problem.gram_row)
        own = gram.take(rows)
        try:
            (one,), (count,) = _rounds(own, [problem.renumbered(rows)], solver, tol, definiteness)
        except InseparableError as error:
            raise InseparableError(
                str(error),
                (rows[error.positive[0]], error.positive[1]),
                (rows[error.negative[0]], error.negative[1]),
                error.distance,
            ) from None
        evaluations.append(_spread(one, rows, gram.n))
        counts.append(count)
    return evaluations, counts


def _rounds(
    gram: Gram, problems: list[DualProblem], solver: SMO, tol: float, definiteness: Definiteness
) -> tuple[list[Evaluation], list[int]]:
    wanted = np.array([_first_tolerance(gram, problem, tol) for problem in problems])
    steps = np.zeros(len(problems), dtype=np.int64)
    evaluations: list[Evaluation | None] = [None] * len(problems)
    current = list(problems)
    open_problems = np.arange(len(problems))
    refined: set[int] = set()
    for last in [False] * (_ROUNDS - 1) + [True]:
        batch = DualBatch.of([current[k] for k in open_problems])
        solutions = solver.solve(
            gram, batch, wanted[open_problems].tolist(), steps[open_problems].tolist()
        )
        unfinished = []
        for k, solution in zip(open_problems, solutions, strict=True):
            steps[k] += solution.n_iter
            evaluation = evaluate(gram, problems[k], solution, tol, definiteness)
            evaluations[k] = evaluation
            violation = evaluation.certificate.kkt_violation
            if evaluation.certificate.status is Status.TRIVIAL:
                continue
            if violation <= tol and evaluation.resolved:
                evaluations[k] = _with_status(evaluation, Status.CONVERGED)
                if _worth_refining(evaluation) and k not in refined and not last:
                    refined.add(int(k))
                    current[k] = problems[k].started_from(solution.alpha)
                    wanted[k] *= 1e-2
                    unfinished.append(k)
            elif solution.status is Status.CONVERGED and not last:
                current[k] = problems[k].started_from(solution.alpha)
                wanted[k] = _next_tolerance(wanted[k], evaluation, tol)
                unfinished.append(k)
            elif solution.status is Status.CONVERGED:
                evaluations[k] = _with_status(evaluation, Status.STALLED)
        open_problems = np.array(unfinished, dtype=np.int64)
        if not len(open_problems):
            break
    return [evaluation for evaluation in evaluations if evaluation is not None], steps.tolist()


def _worth_refining(evaluation: Evaluation) -> bool:
    """Whether a small problem that converged is still short of the optimum, for one more round.

    ``tol`` can be loose against a problem's own unit (a tiny C, tiny kernel values). Where a round
    costs next to nothing, the answer then gets the digits that it lacks.
    """
    certificate = evaluation.certificate
    return (
        len(evaluation.alpha) <= _SMALL
        and certificate.relative_gap > _REFINED
        and certificate.definiteness is not Definiteness.INDEFINITE
    )


def _first_tolerance(gram: Gram, problem: DualProblem, tol: float) -> float:
    """Tolerance for the first round.

    The hard margin is solved in the units of the hulls, which are rho times those of the margin
    one; half the squared distance at the start stands in for rho until it is known.
    """
    if not problem.hard:
        return tol
    beta = problem.on_rows(problem.start, gram.n)
    squared = float(np.nansum(beta * problem.decision(gram, beta)))
    return max(0.5 * tol * squared, np.finfo(np.float64).tiny)


def _next_tolerance(wanted: float, evaluation: Evaluation, tol: float) -> float:
    """Tolerance for another round.

    With its gradient renewed the solver needs a little room at most, since what it missed was
    rounding. A nu machine is divided by rho, so rho must be known better than tol may ask. The hard
    margin is tightened by what the certificate, now in its units, is off.
    """
    violation = evaluation.certificate.kkt_violation
    if evaluation.problem.hard:
        shrink = 0.5 * tol / violation if np.isfinite(violation) else 1e-3
        return wanted * min(max(shrink, 1e-3), 0.5)
    if not evaluation.resolved:
        return min(0.5 * wanted, max(0.05 * abs(evaluation.levels.margin), 1e-3 * wanted))
    return max(0.5 * wanted, tol / 8)


def _with_status(evaluation: Evaluation, status: Status) -> Evaluation:
    return replace(evaluation, certificate=replace(evaluation.certificate, status=status))


def _spread(evaluation: Evaluation, rows: np.ndarray, n: int) -> Evaluation:
    """Evaluation of a problem over ``gram.take(rows)`` in the rows of the whole Gram matrix."""
    coefficients, decision = np.zeros(n), np.full(n, np.nan)
    coefficients[rows] = evaluation.coefficients
    decision[rows] = evaluation.decision
    problem = replace(evaluation.problem, gram_row=rows[evaluation.problem.gram_row])
    return replace(evaluation, coefficients=coefficients, decision=decision, problem=problem)
