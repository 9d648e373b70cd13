"""Kernel machines on many bootstrap replicates of one data set, over one Gram matrix.

A replicate that has drawn row i ``c_i`` times is the whole problem with costs ``c_i C``, and rows
of count zero left out. So nothing of the kernel depends on it: the values are made once. A soft
margin is also begun from the solution on all rows, all replicates of a pair of classes together
(:func:`~maxmargin.solvers.dual.left_out.solve_left_out`), in float32 over the rows that matter;
then each is judged in float64 on every row, and what is not converged by then goes on alone. A
machine so fitted is that of ``fit(X, y, sample_weight=counts)``, with its own certificate.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.base import clone

from maxmargin.backends.threads import StoppedError, Workers
from maxmargin.duals import DualProblem
from maxmargin.evaluation import Evaluation, evaluate
from maxmargin.gram import Gram
from maxmargin.multiclass import as_scheme, read_class_weights, read_labels
from maxmargin.progress import Monitor, ProblemMonitor
from maxmargin.solution import Solution, Status
from maxmargin.solvers import Watch, solve_certified
from maxmargin.solvers.dual.left_out import solve_left_out
from maxmargin.svm.answers import Common

_AT_ONCE = 64  # replicates that are solved together
_ENTRIES = 1 << 24  # values of all machines that are held at a time
_GOAL = 0.5  # of tol, that float32 goes for: the rest is for its rounding
_SHARE = 0.5  # of the memory, for a Gram matrix of which many solves take parts
_DEAR = 3.0  # ns for a kernel value, from which to keep it pays: 100 features or so
_WHY = "one Gram matrix for all replicates"
_ANEW = "whose values are sooner made than kept"
_LARGE = "whose values have no room: raise cache_size to keep them"
_TOGETHER = "alpha_seeding"
_BEGUN = "begun from the solution on all rows, many replicates at a time"


class _Asking(Monitor):
    """Stops when who asked for the replicates says so."""

    def __init__(self, asked: Callable[[], Any] | None) -> None:
        super().__init__()
        self.asked = asked

    def stopped(self) -> Status | None:
        """Why to stop now, or None to go on."""
        return None if self.asked is None else self.asked()


class _Replicates:
    """Clones of a machine, fitted to replicates of the data."""

    why = _WHY

    def __init__(self, machine: Any, X: Any, y: Any) -> None:
        self.pattern = clone(machine)
        self.pattern._validate_params()
        kernel = self.pattern._validated_kernel()
        self.X, self.y = self._validated(X, y, kernel)
        gram: Any = self.pattern._gram(self.X, kernel)
        self.common = Common()
        n = gram.n
        if self._takes_parts():
            room = 8 * n**2 <= _SHARE * gram.memory
            if room and gram.host.points.entry_time >= _DEAR:
                gram = gram.host.given(self.pattern._workers())
            else:
                self.why = f"{_WHY}, {_ANEW if room else _LARGE}"
        self.gram: Gram = gram
        self.at_once = min(_AT_ONCE, max(1, int(_ENTRIES // n)))

    @classmethod
    def of(cls, machine: Any, X: Any, y: Any) -> Any:
        """Return what fits the replicates, or None where they have no Gram matrix in common."""
        plain = machine.device == "cpu" and machine.approximation is None
        watched = machine.trace or machine.callback is not None or machine.time_limit is not None
        return None if watched or machine.checkpoint or not plain else cls(machine, X, y)

    def _validated(self, X: Any, y: Any, kernel: Any) -> tuple[Any, Any]:
        raise NotImplementedError

    def _takes_parts(self) -> bool:
        """Whether every replicate makes rows and blocks of the matrix for itself."""
        return True

    def fit(
        self,
        machines: Sequence[Any],
        counts: np.ndarray,
        workers: Workers,
        stopped: Callable[[], Any] | None = None,
        told: Callable[[], Any] = lambda: None,
        first: int = 0,
    ) -> list[Any]:
        """Fit a machine to each replicate, given by its counts (machines, rows).

        Returns the first ones only where it is stopped. ``first`` is the number of the first of
        them: number 0 is fitted in any case.
        """
        raise NotImplementedError

    def _prepare(self, machine: Any) -> None:
        """Set what a fit knows of its data before there is a problem."""
        machine._validate_params()
        for name in ("n_features_in_", "feature_names_in_", "kernel_", "device_"):
            if hasattr(self.pattern, name):
                setattr(machine, name, getattr(self.pattern, name))
        machine._common = self.common


class ReplicatesOfNumbers(_Replicates):
    """Regressors: each solved alone, over values of the kernel that are there."""

    def _validated(self, X: Any, y: Any, kernel: Any) -> tuple[Any, Any]:
        several = {"multi_output": True} if np.ndim(y) == 2 else {}
        X, y = self.pattern._validated(X, y, kernel, y_numeric=True, **several)
        return X, np.asarray(y, dtype=np.float64)

    def fit(
        self,
        machines: Sequence[Any],
        counts: np.ndarray,
        workers: Workers,
        stopped: Callable[[], Any] | None = None,
        told: Callable[[], Any] = lambda: None,
        first: int = 0,
    ) -> list[Any]:
        """As of all replicates."""
        outputs, one = np.atleast_2d(self.y.T), self.y.ndim == 1
        done: list[Any] = []
        for machine, own in zip(machines, counts.astype(np.float64), strict=True):
            if (first or done) and stopped is not None and stopped():
                break
            began = perf_counter()
            self._prepare(machine)
            found = machine._fit_outputs(self.X, outputs, own, self.gram)
            machine._keep_slack(outputs, one, *found)
            machine.fit_time_ = perf_counter() - began
            done.append(machine)
            told()
        return done


class ReplicatesOfClasses(_Replicates):
    """Classifiers: a soft margin for two classes is solved for many replicates at a time."""

    def __init__(self, machine: Any, X: Any, y: Any) -> None:
        super().__init__(machine, X, y)
        self.classes, self.index = read_labels(self.y)
        self.whole: Any = None

    def _validated(self, X: Any, y: Any, kernel: Any) -> tuple[Any, Any]:
        return self.pattern._validated(X, y, kernel)

    def _takes_parts(self) -> bool:
        return not self._together()

    def _together(self) -> bool:
        """Whether this is a machine that :func:`solve_left_out` knows."""
        m = self.pattern
        cost = getattr(m, "C", None)
        soft = cost is not None and (np.isfinite(cost) or m.lam is not None)
        several = len(np.unique(self.y))
        direct = as_scheme(m.multiclass, several).direct if several > 1 else True
        usual = m.norm_bound is None and m.solver == "auto" and m.max_iter < 0
        return soft and usual and not direct

    def fit(
        self,
        machines: Sequence[Any],
        counts: np.ndarray,
        workers: Workers,
        stopped: Callable[[], Any] | None = None,
        told: Callable[[], Any] = lambda: None,
        first: int = 0,
    ) -> list[Any]:
        """As of all replicates."""
        began = perf_counter()
        posed = [
            self._posed(machine, own.astype(np.float64))
            for machine, own in zip(machines, counts, strict=True)
        ]
        known: list[Any] = [[None] * len(own[-1].problems) if own[-1] else () for own in posed]
        complete = [
            k
            for k, own in enumerate(posed)
            if own[-1] and len(machines[k].classes_) == len(self.classes)
        ]
        if self._together() and complete:
            try:
                self._solve_together(
                    machines, posed, complete, known, Workers(workers.count, stopped)
                )
            except StoppedError:
                return []
        shared = (perf_counter() - began) / len(machines)
        done: list[Any] = []
        for machine, (index, weight, own, posing), answers in zip(
            machines, posed, known, strict=True
        ):
            if (first or done) and stopped is not None and stopped():
                break
            began = perf_counter()
            if posing is None:
                machine._fit_directly(self.X, index, weight, self.gram, own)
            else:
                machine._fit_pairs(self.X, index, weight, own, self.gram, posing, answers)
            if any(answer is not None for answer in answers):
                _say_how(machine, answers)
            machine.fit_time_ = shared + perf_counter() - began
            done.append(machine)
            told()
        return done

    def _posed(self, machine: Any, counts: np.ndarray) -> tuple:
        """Labels, weights and problems of a machine on the rows that were drawn."""
        self._prepare(machine)
        kept = np.flatnonzero(counts)
        machine.classes_, part = read_labels(self.classes[self.index[kept]])
        index = np.zeros(len(counts), dtype=np.int64)  # rows that were not drawn have none
        index[kept] = part
        factors = read_class_weights(machine.class_weight, machine.classes_, part, counts[kept])
        machine.class_weight_ = factors
        weight = np.where(counts > 0, counts * factors[index], 0.0)
        machine.scheme_ = as_scheme(machine.multiclass, len(machine.classes_))
        if machine.scheme_.direct:
            return index, weight, counts, None
        return index, weight, counts, machine._pose(index, weight, kept)

    def _solve_together(
        self,
        machines: Sequence[Any],
        posed: list,
        complete: list[int],
        known: list,
        workers: Workers,
    ) -> None:
        """Solve the problems of all machines that see every class, one task after the other."""
        if self.whole is None:
            self.whole = self._solved_on_all_rows()
        tol, gram = self.pattern.tol, self.gram
        gram.host.float32_points()  # before the threads that share it

        def solve(task: int) -> None:
            whole, rows = self.whole[task], self.whole[task].rows
            problems = [posed[k][-1].problems[task] for k in complete]
            cost = np.zeros((len(problems), len(rows)))
            for f, problem in enumerate(problems):
                cost[f, np.searchsorted(rows, problem.rows)] = problem.losses.cost
            monitor = ProblemMonitor(_Asking(workers.stopped))
            watch = Watch(_GOAL * tol, self.pattern.max_iter, monitor)
            found = solve_left_out(gram, whole, cost, watch)
            workers.check()
            if found is None:
                return
            coefficients = np.zeros((gram.n, len(problems)))
            coefficients[found.rows] = found.coefficients.T
            values = gram.matmat(coefficients, rows)
            for f, (k, problem) in enumerate(zip(complete, problems, strict=True)):
                kept = np.searchsorted(rows, problem.rows)
                beta = coefficients[problem.rows, f]
                answer = _certified(problem, gram, beta, values[kept, f], int(found.steps[f]), tol)
                if answer.certificate.converged:
                    known[k][task] = answer
                else:
                    posed[k][-1].problems[task] = problem.started_near(beta)

        workers.map(solve, range(len(self.whole)))

    def _solved_on_all_rows(self) -> list[Evaluation]:
        """Solve the problems on all rows, from which those of the replicates begin."""
        machine = clone(self.pattern)
        *_, posing = self._posed(machine, np.ones(self.gram.n))
        solver = machine._solver()
        solver.monitor.listeners.clear()  # who looks on does so at the members
        found, _ = solve_certified(
            self.gram, posing.problems, solver, self.pattern.tol, machine._workers()
        )
        return found


def _certified(
    problem: DualProblem,
    gram: Gram,
    beta: np.ndarray,
    decision: np.ndarray,
    steps: int,
    tol: float,
) -> Evaluation:
    """Judge an answer by its values in float64 on all rows of the problem."""
    solution = Solution(beta, steps, Status.CONVERGED, decision, exact=True)
    own = problem.renumbered().over(gram.take(problem.rows, 0))
    found = evaluate(own, solution, tol, gram.spectrum, rows=problem.rows)
    certificate = found.certificate
    if certificate.kkt_violation > tol and certificate.status is Status.CONVERGED:
        return replace(found, certificate=replace(certificate, status=Status.STALLED))
    return found


def _say_how(machine: Any, answers: Sequence[Any]) -> None:
    """Name the method of answers that were found together."""
    why = f"{_TOGETHER}: {_BEGUN}"
    others = any(answer is None for answer in answers)
    machine.solver_ = f"{_TOGETHER}, {machine.solver_}" if others else _TOGETHER
    machine.solver_why_ = f"{why}; {machine.solver_why_}" if others else why
