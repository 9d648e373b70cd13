"""From problems to certified machines: solve, look again from the problem, repair, repeat.

Convergence is judged on the certificate, not on what the solver believes: where the violation
recomputed in float64 is above ``tol``, the solver goes on from there with its gradient renewed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Protocol

import numpy as np

from maxmargin.backends.threads import ALONE, Workers, on_one_blas_thread
from maxmargin.certificate import Certificate, Evaluation, InseparableError, evaluate
from maxmargin.duals import DualBatch, DualProblem
from maxmargin.gram import Definiteness, DeviceGram, Gram, Spectrum
from maxmargin.progress import Monitor, ProblemMonitor
from maxmargin.solution import Solution, Status
from maxmargin.solvers.dual.near_level import Pace
from maxmargin.solvers.dual.parallel_sets import ParallelSets
from maxmargin.solvers.dual.small import Answer, SmallBatch, Task
from maxmargin.solvers.dual.smo import SMO
from maxmargin.solvers.dual.working_set import WorkingSet

_ROUNDS, _ENGINE_ROUNDS = 12, 6
_DEVICE_ROUNDS = 3  # that a GPU has first
_REFINED = 1e-5
_EXACT = 0.02  # of tol, that Newton's steps leave of the violation
_ASTRAY = 100  # times the violation that was wanted: float32 is too coarse for the problem
_FEASIBLE = 1e-8  # infeasibility, over the size of an answer, that rounding explains
_ENGINE_FROM = 1000  # variables from which the engine is faster than SMO
_MARGIN, _REFINING = 2, 20  # steps, times those so far, to know a tiny margin or an answer better
_LEAST = 20  # steps, times the variables, that either is worth in any case
_TRIED = 5e8  # entries of steps for a distance below rounding: a second or two
_SHARED_FROM = 16384  # rows from which all threads work on one problem,
_ENOUGH = 2  # unless there are so many of these for each thread
_APART_FROM = 2e5  # ns of kernel values from which a thread gains more than passing the GIL costs


class Solver(Protocol):
    """What solves a batch of dual problems over one Gram matrix."""

    def solve(
        self, gram: Gram, batch: DualBatch, tol: list[float], spent: list[int]
    ) -> list[Solution]:
        """Solve every problem from its start, to its own tolerance."""
        ...


@dataclass(frozen=True)
class Auto:
    """The solver by the size of the problem: SMO for small ones, the working-set engine beyond.

    Small ones are solved many at a time (:class:`SmallBatch`), and what is not finished that way
    goes on alone. SMO works in float64 and ends exactly on its face. It also takes over where the
    engine's float32 has come to its end, and has the hard margin and huge kernel values to itself.
    A Gram matrix on a GPU has a solver of its own, for problems of any size; where that one gives
    up, the others go on from there on the host.
    """

    max_iter: int = -1
    shrinking: bool = True
    monitor: Monitor = field(default_factory=Monitor)

    def within(self, steps: int) -> Auto:
        """Return the same solver with a limit on the steps of a problem, if it is a lower one."""
        lower = steps >= 0 and (self.max_iter < 0 or steps < self.max_iter)
        return replace(self, max_iter=steps) if lower else self

    def for_round(
        self,
        gram: Gram,
        problem: DualProblem,
        k: int,
        monitor: ProblemMonitor,
        workers: Workers,
        pace: Pace | None = None,
    ) -> Solver:
        """Solver for the k-th round on a problem, going on at the pace of the rounds before."""
        engine = not problem.hard and gram.fits_float32
        if isinstance(gram, DeviceGram):
            if engine and k < _DEVICE_ROUNDS:
                return ParallelSets(self.max_iter, self.monitor, [monitor.problem])
            k -= _DEVICE_ROUNDS
        if engine and k < _ENGINE_ROUNDS and len(problem) >= _ENGINE_FROM:
            return WorkingSet(self.max_iter, monitor, workers, pace)
        gram.forget_narrow_rows()
        gram.scratch.release()
        return SMO(self.max_iter, self.shrinking, monitor, pace)


@on_one_blas_thread
def solve_certified(
    gram: Gram,
    problems: list[DualProblem],
    solver: Solver | Auto,
    tol: float,
    workers: Workers = ALONE,
) -> tuple[list[Evaluation], list[int]]:
    """Solve problems over one Gram matrix; returns an evaluation and a step count for each.

    Small problems take their first round together in compiled code, and most are done then. Every
    other works on the Gram matrix of its own rows, which shares the data: a few large ones come
    first, one after the other with all threads inside; then the others, one to a thread, and those
    so small that Python is most of their work without threads.

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
    spectrum = gram.spectrum
    hard = any(problem.hard for problem in problems)
    if hard and gram.definiteness is Definiteness.INDEFINITE:
        raise ValueError(
            f"The hard margin (C=inf) needs a positive semidefinite kernel, and {gram.kernel!r} is "
            "indefinite on these data: it has no feature space to separate in. Use a finite C."
        )
    if isinstance(gram, DeviceGram):
        return _solve_on_device(gram, problems, solver, tol, spectrum, workers)
    workers = ALONE if gram.program.calls_python else workers
    attempts = [_Attempt(problem, k, tol, spectrum) for k, problem in enumerate(problems)]
    if isinstance(solver, Auto):
        _solve_small(gram, attempts, solver, workers)
    _solve_each(gram, [attempt for attempt in attempts if not attempt.done], solver, workers)
    return [attempt.evaluation for attempt in attempts], [attempt.steps for attempt in attempts]


def _solve_small(gram: Gram, attempts: list[_Attempt], solver: Auto, workers: Workers) -> None:
    """Take a round with all small problems at once, and one more with those worth refining."""
    threads = min(workers.count, len(attempts))
    small = [a for a in attempts if SmallBatch.takes(gram, a.problem, threads)]
    method = SmallBatch(solver.monitor)
    for alike in _grouped(small):
        while alike:
            answers = method.solve(gram, [a.task(solver) for a in alike], workers)
            again = []
            for attempt, answer in zip(alike, answers, strict=True):
                if answer is not None and not attempt.judge_answer(method, answer):
                    solver.monitor.finished(-1)
                    if attempt.settled is not None:
                        again.append(attempt)
            alike = again


def _grouped(attempts: list[_Attempt]) -> Iterable[list[_Attempt]]:
    """Put problems together that have as many groups, and are read off them alike."""
    groups: dict[tuple[int, ...], list[_Attempt]] = {}
    for attempt in attempts:
        problem = attempt.problem
        shape = problem.n_groups, *(weights.size for weights in problem.readings)
        groups.setdefault(shape, []).append(attempt)
    return groups.values()


def _solve_each(
    gram: Gram, attempts: list[_Attempt], solver: Solver | Auto, workers: Workers
) -> None:
    """Take the rounds of each problem, on the Gram matrix of its rows."""
    if not attempts:
        return
    threads = min(workers.count, len(attempts))
    if any(len(attempt.problem) >= _ENGINE_FROM for attempt in attempts):
        gram.narrow()  # before the threads that share it

    def solve(attempt: _Attempt, workers: Workers, memory: int) -> None:
        rows = attempt.rows
        own = gram if len(rows) == gram.n and threads == 1 else gram.take(rows, memory)
        with _witness_on(rows):
            attempt.begin(own)
            _rounds(attempt, solver, workers)
        if isinstance(solver, Auto):
            solver.monitor.finished()

    sizes = np.array([len(attempt.problem) for attempt in attempts])
    order = np.argsort(-sizes, kind="stable")
    large = sizes[order] >= _SHARED_FROM
    enough = np.count_nonzero(large) >= _ENOUGH * threads
    shared = (large & ~enough) | (len(attempts) == 1)
    apart = ~shared & (gram.points.entry_time * sizes[order] ** 2.0 >= _APART_FROM)
    for k in order[shared]:
        solve(attempts[k], workers, gram.memory)
    workers.map(lambda k: solve(attempts[k], ALONE, gram.memory // threads), order[apart])
    for k in order[~shared & ~apart]:
        solve(attempts[k], ALONE, gram.memory)


def _solve_on_device(
    gram: DeviceGram,
    problems: list[DualProblem],
    solver: Solver | Auto,
    tol: float,
    spectrum: Definiteness | Spectrum,
    workers: Workers,
) -> tuple[list[Evaluation], list[int]]:
    """Solve all problems at once, and again those that are not done; certify them together."""
    attempts = [_Attempt(problem, k, tol, spectrum) for k, problem in enumerate(problems)]
    for attempt in attempts:
        attempt.begin(gram.take(attempt.rows))
    rows = [attempt.rows for attempt in attempts]
    waiting = attempts
    while waiting:
        methods = [attempt.method(solver, workers) for attempt in waiting]
        solutions = _solve_round(gram, waiting, methods, rows)
        done = []
        for attempt, method, solution in zip(waiting, methods, solutions, strict=True):
            with _witness_on(rows[attempt.number]):
                done.append(attempt.judge(method, solution, workers))
        if isinstance(solver, Auto):
            for _ in range(sum(done)):
                solver.monitor.finished()
        waiting = [attempt for attempt in waiting if not attempt.done]
    return [attempt.evaluation for attempt in attempts], [attempt.steps for attempt in attempts]


def _solve_round(
    gram: DeviceGram, attempts: list[_Attempt], methods: list[Solver], rows: list[np.ndarray]
) -> list[Solution]:
    """One solution for each attempt: together where a method takes many."""
    solutions: dict[int, Solution] = {}
    parallel = {k: m for k, m in enumerate(methods) if isinstance(m, ParallelSets)}
    for limit in {method.max_iter for method in parallel.values()}:
        part = [k for k, method in parallel.items() if method.max_iter == limit]
        batch = DualBatch.of(
            [_over(gram, attempts[k].current, rows[attempts[k].number]) for k in part]
        )
        method = replace(parallel[part[0]], numbers=[attempts[k].number for k in part])
        wanted, spent = ([getattr(attempts[k], name) for k in part] for name in ("wanted", "steps"))
        found = gram.at_work(partial(method.solve, gram, batch, wanted, spent))
        solutions.update(zip(part, found, strict=True))
    for k, attempt in enumerate(attempts):
        if k not in solutions:
            batch = DualBatch.of([attempt.current])
            (solutions[k],) = methods[k].solve(
                attempt.gram, batch, [attempt.wanted], [attempt.steps]
            )
            if len(attempts) > 1 and isinstance(attempt.gram, DeviceGram):
                attempt.gram.forget_rows()  # the others need the room for theirs
    return [solutions[k] for k in range(len(attempts))]


def _over(gram: Gram, problem: DualProblem, rows: np.ndarray) -> DualProblem:
    """Return a problem over ``gram.take(rows)`` as one over the whole matrix."""
    decision = problem.known_decision
    if decision is not None:
        decision = np.zeros(gram.n)
        decision[rows] = problem.known_decision
    return replace(problem, gram_row=rows[problem.gram_row], known_decision=decision)


@contextmanager
def _witness_on(rows: np.ndarray) -> Iterator[None]:
    """Name the rows of a witness against separability as the whole Gram matrix does."""
    try:
        yield
    except InseparableError as error:
        raise InseparableError(
            str(error),
            (rows[error.positive[0]], error.positive[1]),
            (rows[error.negative[0]], error.negative[1]),
            error.distance,
        ) from None


class _Attempt:
    """One problem on its way to a certificate: rounds of solving and looking again."""

    gram: Gram  # of the problem's rows, once it is solved alone
    evaluation: Evaluation

    def __init__(
        self, problem: DualProblem, number: int, tol: float, spectrum: Definiteness | Spectrum
    ) -> None:
        self.rows = problem.rows
        self.problem, self.number = problem.renumbered(self.rows), number
        self.tol, self.spectrum = tol, spectrum
        self.current, self.wanted = self.problem, tol
        self.round = self.steps = 0
        self.done = False
        self.pace = Pace()
        self.worth = -1  # steps up to which to go on, once there is an answer
        self.settled: Evaluation | None = None  # a converged one, while it is refined

    def begin(self, gram: Gram) -> None:
        """Go on alone, on the Gram matrix of the problem's own rows."""
        self.gram = gram
        if not self.round:
            self.wanted = _first_tolerance(gram, self.problem, self.tol)

    def task(self, solver: Auto) -> Task:
        """Return the next round as one of many."""
        limit = solver.within(self.worth).max_iter
        allowed = max(limit - self.steps, 0) if limit >= 0 else -1
        begin = self.current.start
        return Task(self.problem, self.rows, self.number, begin, self.wanted, allowed)

    def method(self, solver: Solver | Auto, workers: Workers) -> Solver:
        """Solver for the next round."""
        if not isinstance(solver, Auto):
            return solver
        monitor = ProblemMonitor(solver.monitor, self.number)
        solver = solver.within(self.worth)
        return solver.for_round(self.gram, self.problem, self.round, monitor, workers, self.pace)

    def _allowed(self, times: int) -> int:
        """Return the steps in all that may be spent on knowing better what is known already."""
        return self.steps + max(times * self.steps, _LEAST * len(self.problem))

    def judge(self, method: Solver, solution: Solution, workers: Workers) -> bool:
        """Look at a solution again from the problem; whether that was the last round."""
        evaluation = evaluate(self.gram, self.problem, solution, self.tol, self.spectrum, workers)
        return self._settle(method, replace(evaluation, rows=self.rows))

    def judge_answer(self, method: SmallBatch, answer: Answer) -> bool:
        """Do the same with a solution that is accounted for."""
        return self._settle(
            method,
            Evaluation.of(
                self.problem,
                answer.solution,
                answer.decision,
                True,
                answer.solution.beta,
                answer.coef,
                answer.decision,
                answer.account,
                self.tol,
                self.spectrum,
                self.rows,
            ),
        )

    def _is_unknowable(self, method: Solver | SmallBatch, evaluation: Evaluation) -> bool:
        """Whether all that is worth it has been done for a margin too small to be told from zero.

        That is some more steps of two, or Newton's steps, which are exact at once.
        """
        newton = self.pace.gained or (isinstance(method, ParallelSets) and self.round > 1)
        exact = newton and evaluation.certificate.kkt_violation <= _EXACT * self.tol
        spent = evaluation.solution.status is Status.MAX_ITER and 0 <= self.worth <= self.steps
        return spent or (exact and not evaluation.resolved)

    def _is_below_rounding(self, evaluation: Evaluation) -> bool:
        """Whether float64 cannot solve for a distance between the hulls as small as this to tol.

        Some steps of two may still show that the hulls touch; Newton's steps would follow noise.
        """
        if not self.problem.hard or evaluation.resolved:
            return False
        unit = float(np.finfo(np.float64).eps * self.gram.diagonal.max())
        return self.tol * evaluation.squared_norm < unit

    def _take_note(self, method: Solver | SmallBatch, certificate: Certificate) -> None:
        """Take note of how a round went that was not the last one."""
        if isinstance(method, WorkingSet):
            astray = certificate.kkt_violation > _ASTRAY * self.wanted
            if astray:
                self.pace.led_astray()
            if self.pace.hopeless or self.pace.exhausted or (astray and self.pace.failures):
                self.round = max(self.round, _DEVICE_ROUNDS + _ENGINE_ROUNDS)
        self.pace.again()

    def _settle(self, method: Solver | SmallBatch, evaluation: Evaluation) -> bool:
        self.done = self._is_last(method, evaluation)
        return self.done

    def _is_last(self, method: Solver | SmallBatch, evaluation: Evaluation) -> bool:
        """Take an evaluation in, and decide whether to go on and from where."""
        solution = evaluation.solution
        self.steps += solution.n_iter
        last, self.round = self.round == _ROUNDS - 1, self.round + 1
        earlier, self.evaluation = getattr(self, "evaluation", evaluation), evaluation
        certificate = evaluation.certificate
        feasible = certificate.infeasibility <= _FEASIBLE * (1.0 + np.abs(solution.beta).sum())
        if certificate.status is Status.TRIVIAL and feasible:
            return True
        reached = evaluation.verified and feasible and certificate.kkt_violation <= self.tol
        reached = reached and evaluation.resolved
        if self.settled is not None:
            before = self.settled.certificate.relative_gap
            better = reached and certificate.relative_gap <= before
            self.evaluation = _with_status(evaluation, Status.CONVERGED) if better else self.settled
            return True
        if reached:
            self.evaluation = _with_status(evaluation, Status.CONVERGED)
            if last or not _worth_refining(evaluation):
                return True
            self.settled, self.wanted = self.evaluation, 1e-2 * self.wanted
            self.worth = self._allowed(_REFINING)
        elif self._is_unknowable(method, evaluation):
            if earlier.certificate.kkt_violation < certificate.kkt_violation:
                evaluation = earlier
            self.evaluation = _with_status(evaluation, Status.STALLED)
            return True
        elif solution.status is not Status.CONVERGED and not _repairable(method, solution):
            return True
        elif last:
            self.evaluation = _with_status(evaluation, Status.STALLED)
            return True
        else:
            self._take_note(method, certificate)
            self.wanted = _next_tolerance(self.wanted, evaluation, self.tol)
            if self._is_below_rounding(evaluation):
                some = int(_TRIED / len(self.problem))
                self.pace, self.worth = Pace(), self.steps + max(self.steps, some)
            elif self.worth < 0 and not evaluation.resolved and not self.problem.hard:
                self.worth = self._allowed(_MARGIN)
        if feasible or self.problem.hard:
            self.current = self.problem.started_from(solution.beta, evaluation.recomputed)
        else:  # steps along the constraint cannot bring it back
            self.current = self.problem.started_near(solution.beta)
        return False


def _rounds(attempt: _Attempt, solver: Solver | Auto, workers: Workers) -> None:
    while not attempt.done:
        method = attempt.method(solver, workers)
        batch = DualBatch.of([attempt.current])
        (solution,) = method.solve(attempt.gram, batch, [attempt.wanted], [attempt.steps])
        attempt.judge(method, solution, workers)
    attempt.gram.forget_narrow_rows()


def _repairable(method: Solver | SmallBatch, solution: Solution) -> bool:
    """Whether a solver has only come to the end of its precision, or of its patience."""
    others = isinstance(method, WorkingSet | ParallelSets | SmallBatch)
    return others and solution.status is Status.STALLED


def _worth_refining(evaluation: Evaluation) -> bool:
    """Whether a small problem that converged is still short of the optimum, for one more round.

    ``tol`` can be loose against a problem's own unit (a tiny C, tiny kernel values). Where a round
    costs next to nothing, the answer then gets the digits that it lacks.
    """
    certificate = evaluation.certificate
    return (
        len(evaluation.beta) < _ENGINE_FROM
        and certificate.relative_gap > _REFINED
        and certificate.gap > certificate.rounding
    )


def _first_tolerance(gram: Gram, problem: DualProblem, tol: float) -> float:
    """Tolerance for the first round.

    The hard margin is solved in the units of the hulls, which are rho times those of the margin
    one; half the squared distance at the start stands in for rho until it is known.
    """
    if not problem.hard:
        return tol
    coef = problem.on_rows(problem.start, gram.n)
    squared = float(coef @ problem.decision_at_start(gram))
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
    return max(0.75 * wanted, tol / 8)


def _with_status(evaluation: Evaluation, status: Status) -> Evaluation:
    if evaluation.certificate.status is status:
        return evaluation
    return replace(evaluation, certificate=replace(evaluation.certificate, status=status))
