"""From problems to certified machines: solve, look again from the problem, repair, repeat.

Convergence is judged on the certificate, not on what the solver believes: where the violation
recomputed in float64 is above ``tol``, the solver goes on from there with its gradient renewed.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from maxmargin.backends.cpu.dual.certificate import FEASIBLE
from maxmargin.backends.threads import ALONE, Workers, on_one_blas_thread
from maxmargin.certificate import DualCertificate
from maxmargin.duals import DualProblem
from maxmargin.evaluation import Evaluation, evaluate
from maxmargin.gram import Definiteness, Gram, Spectrum
from maxmargin.progress import Monitor, ProblemMonitor
from maxmargin.solution import Solution, Status
from maxmargin.solvers.driver import ASKED, Choice, Watch, drive
from maxmargin.solvers.dual.method import BatchMethod, DualMethod
from maxmargin.solvers.dual.near_level import Pace
from maxmargin.solvers.dual.parallel_sets import ParallelSets
from maxmargin.solvers.dual.seeded import SeededSMO
from maxmargin.solvers.dual.small import SmallBatch
from maxmargin.solvers.dual.smo import SMO
from maxmargin.solvers.dual.working_set import WorkingSet

_ROUNDS, _ENGINE_ROUNDS = 12, 6
_DEVICE_ROUNDS = 3  # that a GPU has first
_REFINED = 1e-5
_EXACT = 0.02  # of tol, that Newton's steps leave of the violation
_ASTRAY = 100  # times the violation that was wanted: float32 is too coarse for the problem
_ENGINE_FROM = 1000  # variables from which the engine is faster than SMO
_MARGIN, _REFINING = 2, 20  # steps, times those so far, to know a tiny margin or an answer better
_LEAST = 20  # steps, times the variables, that an answer is worth in any case
_LEAST_MARGIN = 200  # the same for a tiny margin: raw breast cancer with nu=0.02 needs about 100
_TRIED = 5e8  # entries of steps for a distance below rounding: a second or two
_SHARED_FROM = 16384  # rows from which all threads work on one problem,
_ENOUGH = 2  # unless there are so many of these for each thread
_APART_FROM = 2e5  # ns of kernel values from which a thread gains more than passing the GIL costs


@dataclass(frozen=True)
class Auto:
    """What solves problems: a method that is given, or the one that suits each of them.

    Small problems are solved many at a time (:class:`SmallBatch`), and what is not finished that
    way goes on alone. SMO works in float64 and ends exactly on its face. It also takes over where
    the working-set method's float32 has come to its end, and has the hard margin and huge kernel
    values to itself. A Gram matrix on a GPU has a method of its own, for problems of any size;
    where that one gives up, the others go on from there on the host.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin import Gram, duals
    >>> from maxmargin.kernels import RBF
    >>> from maxmargin.solvers import Auto
    >>> gram = Gram.of(np.arange(4.0)[:, None], RBF(1.0))
    >>> problem = duals.one_class(np.arange(4), np.ones(4), nu=0.5)
    >>> Auto().choose(problem.over(gram))
    Choice(method=SmallBatch(), why='a small problem: in compiled code, with others like it')
    """

    max_iter: int = -1
    shrinking: bool = True
    monitor: Monitor = field(default_factory=Monitor)
    method: DualMethod | None = None

    def choose(self, problem: DualProblem, k: int = 0) -> Choice[DualMethod]:
        """Choose the method for the k-th round on a problem, and say why."""
        if self.method is not None:
            refused = self.method.accepts(problem)
            if refused is not None:
                raise ValueError(refused)
            return Choice(self.method, ASKED)
        seen = self.monitor.trace is not None  # step by step, as only SMO can be
        if k == 0 and not seen and (batch := SmallBatch()).accepts(problem) is None:
            return Choice(batch, "a small problem: in compiled code, with others like it")
        gram, smo = problem.gram, SMO(self.shrinking)
        if problem.hard:
            return Choice(smo, "the hard margin needs float64")
        if not gram.fits_float32:
            return Choice(smo, "kernel values too large or too small for float32")
        if gram.on_device:
            if k < _DEVICE_ROUNDS:
                return Choice(ParallelSets(), "the Gram matrix is on a GPU")
            k -= _DEVICE_ROUNDS
        if len(problem) < _ENGINE_FROM:
            return Choice(smo, "a small problem: steps of two in float64")
        if k < _ENGINE_ROUNDS:
            return Choice(WorkingSet(), f"{len(problem)} variables: large working sets in float32")
        return Choice(smo, "float32 has come to its end: steps of two in float64")


@on_one_blas_thread
def solve_certified(
    gram: Gram,
    problems: list[DualProblem],
    solver: DualMethod | Auto,
    tol: float,
    workers: Workers = ALONE,
    first: int = 0,
) -> tuple[list[Evaluation], list[int]]:
    """Solve problems over one Gram matrix; returns an evaluation and a step count for each.

    Who looks on counts them from ``first``.

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
    solver = solver if isinstance(solver, Auto) else Auto(method=solver)
    spectrum = gram.spectrum
    hard = any(problem.hard for problem in problems)
    if hard and gram.definiteness is Definiteness.INDEFINITE:
        raise ValueError(
            f"The hard margin (C=inf) needs a positive semidefinite kernel, and {gram.kernel!r} is "
            "indefinite on these data: it has no feature space to separate in. Use a finite C."
        )
    workers = ALONE if gram.program.calls_python else workers
    attempts = [
        _Attempt(problem.over(gram), k, tol, spectrum) for k, problem in enumerate(problems, first)
    ]
    _solve_together(attempts, solver, workers)
    _solve_each(gram, [attempt for attempt in attempts if not attempt.done], solver, workers)
    return [attempt.evaluation for attempt in attempts], [attempt.steps for attempt in attempts]


def _solve_together(attempts: list[_Attempt], solver: Auto, workers: Workers) -> None:
    """Take rounds with all problems at once, as long as their method is one for many.

    Small ones have a single such round, and another where that is worth it to refine them.
    """
    waiting = attempts
    while True:
        choices = [
            solver.choose(attempt.posed, 0 if attempt.settled else attempt.round)
            for attempt in waiting
        ]
        batched = [isinstance(choice.method, BatchMethod) for choice in choices]
        waiting = [attempt for attempt, own in zip(waiting, batched, strict=True) if own]
        if not waiting:
            return
        choice = choices[batched.index(True)]
        method: Any = choice.method
        solver.monitor.chosen.append(choice)
        watches = [attempt.watch(solver, workers) for attempt in waiting]
        solutions = method.solve_all([attempt.on_whole() for attempt in waiting], watches)
        for attempt, solution in zip(waiting, solutions, strict=True):
            if not attempt.certify(method, solution, workers):
                solver.monitor.finished(-1)
        waiting = [attempt for attempt in waiting if not attempt.done]


def _solve_each(gram: Gram, attempts: list[_Attempt], solver: Auto, workers: Workers) -> None:
    """Take the rounds of each problem, on the Gram matrix of its rows."""
    if not attempts:
        return
    threads = min(workers.count, len(attempts))
    if any(len(attempt.problem) >= _ENGINE_FROM for attempt in attempts):
        gram.host.float32_points()  # before the threads that share it

    def solve(attempt: _Attempt, workers: Workers, memory: int) -> None:
        if attempt.problem.matrix is None:
            alone = len(attempt.rows) == gram.n and threads == 1
            attempt.begin(gram if alone else gram.take(attempt.rows, memory))
        _rounds(attempt, solver, workers)
        solver.monitor.finished()

    sizes = np.array([len(attempt.problem) for attempt in attempts])
    order = np.argsort(-sizes, kind="stable")
    large = sizes[order] >= _SHARED_FROM
    few = bool(np.count_nonzero(large) < _ENOUGH * threads)
    shared = (large & few) | (len(attempts) == 1)
    apart = ~shared & (gram.host.points.entry_time * sizes[order] ** 2.0 >= _APART_FROM)
    for k in order[shared]:
        solve(attempts[k], workers, gram.memory)
    workers.map(lambda k: solve(attempts[k], ALONE, gram.memory // threads), order[apart])
    for k in order[~shared & ~apart]:
        solve(attempts[k], ALONE, gram.memory)


class _Attempt:
    """One problem on its way to a certificate: rounds of solving and looking again."""

    evaluation: Evaluation

    def __init__(
        self, posed: DualProblem, number: int, tol: float, spectrum: Definiteness | Spectrum
    ) -> None:
        self.posed, self.rows = posed, posed.rows  # over the whole matrix
        self.problem, self.number = posed.renumbered(), number  # over that of its own rows
        self.tol, self.spectrum = tol, spectrum
        self.current, self.inner_tol = self.problem, tol
        self.round = self.steps = 0
        self.done = False
        self.pace = Pace()
        self.step_budget = -1  # steps up to which to go on, once there is an answer
        self.settled: Evaluation | None = None  # a converged one, while it is refined

    def begin(self, gram: Gram) -> None:
        """Go on alone, on the Gram matrix of the problem's own rows."""
        self.problem, self.current = self.problem.over(gram), self.current.over(gram)
        if not self.round:
            self.inner_tol = _first_tolerance(self.problem, self.tol)

    def on_whole(self) -> DualProblem:
        """Return the problem of the next round over the whole Gram matrix."""
        if not self.round:
            return self.posed
        decision = np.zeros(self.posed.gram.n)
        decision[self.rows] = self.current.known_decision
        return self.posed.started_from(self.current.start, decision)

    def limit(self, max_iter: int) -> int:
        """Limit on the steps in all: the user's, or what knowing better is worth."""
        return (
            self.step_budget
            if self.step_budget >= 0 and not 0 <= max_iter <= self.step_budget
            else max_iter
        )

    def watch(self, solver: Auto, workers: Workers) -> Watch:
        """What is asked of the next round, and who looks on."""
        monitor, limit = ProblemMonitor(solver.monitor, self.number), self.limit(solver.max_iter)
        return Watch(self.inner_tol, limit, monitor, workers, self.steps)

    def _allowed(self, times: int, least: int = _LEAST) -> int:
        """Return the steps in all that may be spent on knowing better what is known already."""
        return self.steps + max(times * self.steps, least * len(self.problem))

    def certify(self, method: DualMethod, solution: Solution, workers: Workers) -> bool:
        """Look at a solution again from the problem; whether that was the last round."""
        # the account of a later round has its sums beside those of that round's start
        if solution.account is None or solution.decision is None or self.round:
            if self.problem.matrix is None:
                self.begin(self.posed.gram.take(self.rows))
            looked_at = self.problem, solution, self.tol, self.spectrum, workers, self.rows
            return self._settle(method, evaluate(*looked_at))
        coef = self.problem.on_rows(solution.beta, len(self.rows))
        evaluation = Evaluation.of(
            self.problem,
            solution,
            solution.decision,
            True,
            solution.beta,
            coef,
            solution.decision,
            solution.account,
            self.tol,
            self.spectrum,
            self.rows,
        )
        return self._settle(method, evaluation)

    def _is_unknowable(self, method: DualMethod, evaluation: Evaluation) -> bool:
        """Whether all that is worth it has been done for a margin too small to be told from zero.

        That is some more steps of two, or Newton's steps, which are exact at once.
        """
        newton = self.pace.gained or (isinstance(method, ParallelSets) and self.round > 1)
        exact = newton and evaluation.certificate.kkt_violation <= _EXACT * self.tol
        spent = (
            evaluation.solution.status is Status.MAX_ITER and 0 <= self.step_budget <= self.steps
        )
        return spent or (exact and not evaluation.resolved)

    def _is_below_rounding(self, evaluation: Evaluation) -> bool:
        """Whether float64 cannot solve for a distance between the hulls as small as this to tol.

        Some steps of two may still show that the hulls touch; Newton's steps would follow noise.
        """
        if not self.problem.hard or evaluation.resolved:
            return False
        unit = float(np.finfo(np.float64).eps * self.problem.gram.diagonal.max())
        return self.tol * evaluation.squared_norm < unit

    def _take_note(self, method: DualMethod, certificate: DualCertificate) -> None:
        """Take note of how a round went that was not the last one."""
        if isinstance(method, WorkingSet):
            astray = certificate.kkt_violation > _ASTRAY * self.inner_tol
            if astray:
                self.pace.led_astray()
            if self.pace.hopeless or self.pace.exhausted or (astray and self.pace.failures):
                self.round = max(self.round, _DEVICE_ROUNDS + _ENGINE_ROUNDS)
        self.pace.again()

    def _settle(self, method: DualMethod, evaluation: Evaluation) -> bool:
        self.done = self._is_last(method, evaluation)
        return self.done

    def _is_last(self, method: DualMethod, evaluation: Evaluation) -> bool:
        """Take an evaluation in, and decide whether to go on and from where."""
        solution = evaluation.solution
        self.steps += solution.n_iter
        last, self.round = self.round == _ROUNDS - 1, self.round + 1
        earlier, self.evaluation = getattr(self, "evaluation", evaluation), evaluation
        certificate = evaluation.certificate
        feasible = certificate.infeasibility <= FEASIBLE * (1.0 + evaluation.alpha.sum())
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
            self.settled, self.inner_tol = self.evaluation, 1e-2 * self.inner_tol
            self.step_budget = self._allowed(_REFINING)
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
            self.inner_tol = _next_tolerance(self.inner_tol, evaluation, self.tol)
            if self._is_below_rounding(evaluation):
                some = int(_TRIED / len(self.problem))
                self.pace, self.step_budget = Pace(), self.steps + max(self.steps, some)
            elif self.step_budget < 0 and not evaluation.resolved and not self.problem.hard:
                self.step_budget = self._allowed(_MARGIN, _LEAST_MARGIN)
        if feasible or self.problem.hard:
            self.current = self.problem.started_from(solution.beta, evaluation.recomputed)
        else:  # steps along the constraint cannot bring it back
            self.current = self.problem.started_near(solution.beta)
        return False


def _rounds(attempt: _Attempt, solver: Auto, workers: Workers) -> None:
    while not attempt.done:
        choice = solver.choose(attempt.current, attempt.round)
        solver.monitor.chosen.append(choice)
        method = choice.method
        if isinstance(method, SMO):
            host = attempt.problem.gram.host
            host.forget()
            host.scratch.release()
        watch = attempt.watch(solver, workers)
        solution = drive(method.begin(attempt.current, watch, attempt.pace), watch)
        attempt.certify(method, solution, workers)
    attempt.problem.gram.forget()


def _repairable(method: DualMethod, solution: Solution) -> bool:
    """Whether a solver has only come to the end of its precision, or of its patience."""
    others = isinstance(method, WorkingSet | SeededSMO | ParallelSets | SmallBatch)
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


def _first_tolerance(problem: DualProblem, tol: float) -> float:
    """Tolerance for the first round.

    The hard margin is solved in the units of the hulls, which are rho times those of the margin
    one; half the squared distance at the start stands in for rho until it is known.
    """
    if not problem.hard:
        return tol
    squared = float(problem.on_rows(problem.start) @ problem.decision_at_start())
    return max(0.5 * tol * squared, np.finfo(np.float64).tiny)


def _next_tolerance(wanted: float, evaluation: Evaluation, tol: float) -> float:
    """Tolerance for another round.

    With its gradient renewed the solver needs a little room at most, since what it missed was
    rounding. A nu machine is divided by rho, so rho must be known better than tol may ask. The hard
    margin is tightened by what the certificate, now in its units, is off.
    """
    violation = evaluation.certificate.kkt_violation
    if evaluation.problem.hard:
        return wanted * max(1e-3, 0.5 * tol / max(violation, tol))  # a violation may be inf
    if not evaluation.resolved:
        return min(0.5 * wanted, max(0.05 * abs(evaluation.levels.margin), 1e-3 * wanted))
    return max(0.75 * wanted, tol / 8)


def _with_status(evaluation: Evaluation, status: Status) -> Evaluation:
    if evaluation.certificate.status is status:
        return evaluation
    return replace(evaluation, certificate=replace(evaluation.certificate, status=status))
