"""The same problem by several solvers, each to the same duality gap: time, memory, steps.

Methods stop by what they have at hand: a violation of the KKT conditions, a gradient, a gap. What
they are compared at is the relative duality gap of their answers, recomputed from the problem in
float64. A solver whose answer is not that good is run again with a smaller tolerance of its own,
``t <- t max(min(tol / (2 gap), 1/2), 1/100)``, and only runs with the last one count.
"""

from __future__ import annotations

import time
import tracemalloc
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_is_fitted

from maxmargin.duals import DualProblem
from maxmargin.evaluation import evaluate
from maxmargin.memory import megabytes
from maxmargin.progress import Monitor, ProblemMonitor
from maxmargin.risk import Risk
from maxmargin.solution import Status
from maxmargin.solvers.driver import Method, Watch
from maxmargin.solvers.select import DUAL_METHODS, RISK_METHODS, method_name, select_solver
from maxmargin.trace import Trace

if TYPE_CHECKING:
    from pandas import DataFrame

_FIRST = 1.0  # tolerance of a first run by KKT conditions
_TIGHTER = 0.01, 0.5  # from run to run
_RUNS = 8  # of one solver, to find its tolerance
_REPEATS, _ENOUGH = 5, 0.3  # runs that are timed, and seconds after which there is no other
REFUSED = "refused"


@dataclass(frozen=True)
class Result:
    """What one solver did.

    Attributes
    ----------
    solver : str
    status : str
        How its run has ended, or ``"refused"``.
    reached : bool
        Whether the relative gap of the answer is what was asked for.
    steps : int
        What a step is, the method says: two variables, a pass over the data, a Newton step.
    seconds, cpu_seconds : float
        Time of a run without a trace, on the clock and by all threads; of short runs, the least of
        five.
    peak_bytes : int
        Largest size of what Python and NumPy had allocated during a run, beyond what was there
        before; -1 where nobody measured it.
    objective, dual, gap, relative_gap : float
        Of the answer, recomputed in float64.
    support_vectors : int
        Nonzero dual variables; -1 where the answer has none.
    tol : float
        Tolerance that it was run with, in the solver's own units.
    why : str
        Why it was refused; else empty.
    """

    solver: str
    status: str
    reached: bool = False
    steps: int = 0
    seconds: float = np.nan
    cpu_seconds: float = np.nan
    peak_bytes: int = -1
    objective: float = np.nan
    dual: float = np.nan
    gap: float = np.nan
    relative_gap: float = np.nan
    support_vectors: int = -1
    tol: float = np.nan
    why: str = ""


@dataclass(frozen=True)
class Comparison:
    """What :func:`compare_solvers` has found: prints as a table.

    Attributes
    ----------
    results : list of Result
        Those that have reached the gap first, the fastest before the others.
    tol : float
        The relative duality gap that was asked for.
    traces : dict of str to Trace
        The way of each solver, from a run of its own that is not timed.
    """

    results: list[Result]
    tol: float
    traces: dict[str, Trace] = field(repr=False)

    def __iter__(self) -> Iterator[Result]:
        return iter(self.results)

    def __getitem__(self, solver: str) -> Result:
        """Return what a solver did, by its name."""
        known = {result.solver: result for result in self.results}
        if solver not in known:
            raise KeyError(f"{solver!r} was not compared, only {', '.join(known)}.")
        return known[solver]

    def to_frame(self) -> DataFrame:
        """Return a pandas frame with a row for each solver."""
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError(
                "A frame is pandas': pip install pandas, or use results, which is a list."
            ) from error
        return pd.DataFrame(map(asdict, self.results))

    def __str__(self) -> str:
        head = ["solver", "status", "steps", "seconds", "memory", "objective", "relative gap"]
        rows = [head, *(_cells(result) for result in self.results if result.status != REFUSED)]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = [
            "  ".join(
                cell.ljust(width) if k < 2 else cell.rjust(width)
                for k, (cell, width) in enumerate(zip(row, widths, strict=True))
            ).rstrip()
            for row in rows
        ]
        lines += [f"{r.solver}: {r.why}" for r in self.results if r.status == REFUSED]
        return "\n".join([f"to a relative duality gap of {self.tol:g}", *lines])

    __repr__ = __str__


def compare_solvers(
    problem: Any,
    X: Any = None,
    y: Any = None,
    solvers: str | Method | Iterable[str | Method] | Mapping[str, Method] | None = None,
    *,
    tol: float = 1e-4,
    time_limit: float | None = 60.0,
    memory: bool = True,
    trace: bool = True,
    random_state: int = 0,
) -> Comparison:
    """Solve one problem by several solvers to the same duality gap, and say what each took.

    Each solver is run until its tolerance is found, which compiles, too, and then timed; the memory
    and the trace come from runs of their own, so that neither is in the time. Times of a problem
    are those of solving it, kernel values included; of a machine, those of ``fit``. Every run
    begins anew: none finds rows of the Gram matrix that another has made.

    Parameters
    ----------
    problem : DualProblem, Risk or estimator
        A dual problem over its Gram matrix (``problem.over(gram)``), a regularised risk, or an
        unfitted machine with ``solver`` and ``tol``, such as SVC or LinearSVC.
    X, y : array-like
        The data, for an estimator.
    solvers : str, Method, iterable of them, or dict of them by names of your own, optional
        By default all that the machine or the kind of problem has names for. ``"auto"`` is what a
        machine takes where it is asked for nothing.
    tol : float, default=1e-4
        Relative duality gap to reach: (primal - dual) over the larger of the two in size.
    time_limit : float or None, default=60.0
        Seconds of every run; a solver that has not reached the gap by then shows how far it came.
    memory, trace : bool, default=True
        Whether to measure the memory, and to keep the way of each solver.
    random_state : int, default=0
        Of what solvers draw at random.

    Returns
    -------
    comparison : Comparison

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from maxmargin import SVC, compare_solvers
    >>> X, y = load_iris(return_X_y=True)
    >>> comparison = compare_solvers(SVC(C=10), X[50:], y[50:], solvers=["smo", "working_set"])
    >>> all(result.reached for result in comparison)
    True
    >>> comparison.traces["smo"].curve("gap").size > 2
    True
    """
    if not tol > 0:
        raise ValueError(f"tol is a relative gap to reach, and has to be positive; got {tol!r}.")
    subject = _subject(problem, X, y, random_state)
    named = _named(solvers, subject)
    results, traces = [], {}
    for name, solver in named.items():
        result = _tried(subject, name, solver, tol, time_limit, memory)
        results.append(result)
        if trace and result.status != REFUSED:
            traces[name] = Trace()
            subject.run(subject.fresh(), solver, result.tol, time_limit, traces[name])
    if all(result.status == REFUSED for result in results):
        raise ValueError(f"No solver takes this: {results[0].why}" if results else "No solvers.")
    results.sort(key=lambda r: (r.status == REFUSED, not r.reached, r.seconds))
    return Comparison(results, tol, traces)


# -- what is solved: a problem, or a machine with its data -----------------------------------------


class _Answer(NamedTuple):
    certificate: Any
    steps: int
    support_vectors: int


class _Subject(ABC):
    """Something that solvers can be compared on."""

    first: float | None = None  # tolerance to begin with; None for that of the gap

    @property
    @abstractmethod
    def names(self) -> list[str]:
        """Names of the solvers that there are for it."""

    @abstractmethod
    def refusal(self, solver: str | Method) -> str | None:
        """Why a solver does not take it; None where it does, or where a run has to tell."""

    @abstractmethod
    def fresh(self) -> Any:
        """Return what is solved, as nobody has touched it: a run must not gain from the last."""

    @abstractmethod
    def run(
        self,
        fresh: Any,
        solver: str | Method,
        tol: float,
        time_limit: float | None,
        trace: Trace | None = None,
    ) -> Any:
        """Solve it once; raises ValueError where the solver refuses."""

    @abstractmethod
    def judged(self, found: Any, tol: float) -> _Answer:
        """How good what a run has found is; no part of its time."""


class _Problem(_Subject):
    """A dual problem or a risk."""

    def __init__(self, problem: DualProblem | Risk, seed: int) -> None:
        self.problem, self.seed = problem, seed
        self.dual = isinstance(problem, DualProblem)
        self.methods: Mapping[str, type[Method]] = DUAL_METHODS if self.dual else RISK_METHODS
        self.first = _FIRST if self.dual else None

    @property
    def names(self) -> list[str]:
        return list(self.methods)

    def _method(self, solver: str | Method) -> Method:
        if isinstance(solver, Method):
            return solver
        if solver == "auto":
            return select_solver(self.problem).method
        if solver not in self.methods:
            known = ", ".join(["auto", *self.methods])
            raise ValueError(f"There is no solver {solver!r} for this problem; there are {known}.")
        return self.methods[solver]()

    def refusal(self, solver: str | Method) -> str | None:
        return self._method(solver).accepts(self.problem)

    def fresh(self) -> DualProblem | Risk:
        problem = self.problem
        if not isinstance(problem, DualProblem):
            return problem
        gram = problem.gram  # which keeps the rows that a solver has made
        kept = gram.on_device or gram.program.is_given
        return problem if kept else problem.over(gram.take(np.arange(gram.n)))

    def run(
        self,
        fresh: Any,
        solver: str | Method,
        tol: float,
        time_limit: float | None,
        trace: Trace | None = None,
    ) -> Any:
        monitor = Monitor(time_limit, [] if trace is None else [trace])
        watch = Watch(tol, -1, ProblemMonitor(monitor), seed=self.seed)
        found = self._method(solver).solve(fresh, watch)
        return found[0] if isinstance(found, list) else found  # of a method for many

    def judged(self, found: Any, tol: float) -> _Answer:
        problem = self.problem
        if isinstance(problem, DualProblem):
            own = problem.renumbered().over(problem.gram.take(problem.rows))
            whole = replace(found, decision=None, status=Status.CONVERGED)  # also after a stop
            judged = evaluate(own, whole, tol, problem.gram.spectrum)
            certificate = judged.certificate
            if found.status is not Status.CONVERGED:
                certificate = replace(certificate, status=found.status)
            return _Answer(certificate, found.n_iter, int(np.count_nonzero(judged.coefficients)))
        slopes = np.count_nonzero(found.s) if found.s.ndim == 1 else (found.s != 0).any(1).sum()
        return _Answer(found.certificate, found.n_iter, int(slopes) if found.s.size else -1)


class _Machine(_Subject):
    """An unfitted estimator and its data."""

    def __init__(self, machine: Any, X: Any, y: Any, seed: int) -> None:
        known = machine.get_params()
        lacking = [name for name in ("solver", "tol", "time_limit", "trace") if name not in known]
        if lacking:
            raise TypeError(
                f"{type(machine).__name__} has no {', '.join(lacking)} to compare solvers by: take "
                "a machine that certifies a duality gap, such as SVC or LinearSVC."
            )
        self.machine, self.X, self.y = machine, X, y
        self.options = {"random_state": seed} if "random_state" in known else {}
        options = [o for o in machine._parameter_constraints["solver"] if isinstance(o, StrOptions)]
        self.known = sorted(set().union(*(option.options for option in options)) - {"auto"})
        if set(DUAL_METHODS) <= set(self.known):  # of a kernel machine: tol is KKT's
            self.first = _FIRST

    @property
    def names(self) -> list[str]:
        ours = [name for name in self.known if name in DUAL_METHODS or name in RISK_METHODS]
        return ["auto", *(ours or self.known)]

    def refusal(self, solver: str | Method) -> str | None:
        if isinstance(solver, str) and solver not in ["auto", *self.known]:
            known = ", ".join(["auto", *self.known])
            name = type(self.machine).__name__
            raise ValueError(f"{name} has no solver {solver!r}; there are {known}.")
        return None

    def fresh(self) -> Any:
        return clone(self.machine)

    def run(
        self,
        fresh: Any,
        solver: str | Method,
        tol: float,
        time_limit: float | None,
        trace: Trace | None = None,
    ) -> Any:
        machine = fresh
        machine.set_params(solver=solver, tol=tol, time_limit=time_limit, **self.options)
        machine.set_params(trace=False if trace is None else trace)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            return machine.fit(self.X, self.y)

    def judged(self, found: Any, tol: float) -> _Answer:
        if not hasattr(found.certificate_, "relative_gap"):
            raise TypeError(
                f"{type(found).__name__} certifies no duality gap to compare solvers at."
            )
        support = len(found.support_) if hasattr(found, "support_") else -1
        return _Answer(found.certificate_, int(np.sum(found.n_iter_)), support)


def _subject(problem: Any, X: Any, y: Any, seed: int) -> _Subject:
    if isinstance(problem, DualProblem | Risk):
        if X is not None or y is not None:
            raise ValueError("A problem has its data: X and y go with an estimator only.")
        return _Problem(problem, seed)
    if not hasattr(problem, "fit"):
        raise TypeError(
            "compare_solvers takes a DualProblem, a Risk or an estimator with its data; got "
            f"{type(problem).__name__}."
        )
    if X is None:
        raise ValueError("An estimator needs its data: compare_solvers(machine, X, y).")
    try:
        check_is_fitted(problem)
    except NotFittedError:
        return _Machine(problem, X, y, seed)
    return _Machine(clone(problem), X, y, seed)


def _named(solvers: Any, subject: _Subject) -> dict[str, str | Method]:
    """Solvers by their names; a method that occurs twice has its options in its name."""
    if isinstance(solvers, Mapping):
        return dict(solvers)
    if isinstance(solvers, str | Method):
        solvers = [solvers]
    solvers = subject.names if solvers is None else list(solvers)
    short = [s if isinstance(s, str) else method_name(s) for s in solvers]
    return {
        name if short.count(name) == 1 else repr(solver): solver
        for name, solver in zip(short, solvers, strict=True)
    }


# -- running ---------------------------------------------------------------------------------------


def _tried(
    subject: _Subject,
    name: str,
    solver: str | Method,
    tol: float,
    time_limit: float | None,
    memory: bool,
) -> Result:
    """Run one solver until its answer is good enough, or its time is up."""
    refused = subject.refusal(solver)
    if refused is not None:
        return Result(name, REFUSED, why=refused)
    own = tol if subject.first is None else subject.first
    try:
        for k in range(_RUNS):
            found, spent = _timed(subject, solver, own, time_limit)
            left = found.certificate.relative_gap
            if not k and left > tol and found.certificate.status is Status.TIME_LIMIT:
                continue  # it may have been compiling
            if left <= tol or not found.certificate.converged:
                break
            known, own = own, own * float(np.clip(0.5 * tol / left, *_TIGHTER))
        else:
            own = known
    except ValueError as error:
        return Result(name, REFUSED, why=str(error))
    taken = [] if left <= tol else [spent]  # the first run compiles
    while len(taken) < _REPEATS and sum(seconds for seconds, _ in taken) < _ENOUGH:
        taken.append(_timed(subject, solver, own, time_limit)[1])
    certificate = found.certificate
    return Result(
        name,
        str(certificate.status),
        bool(left <= tol),
        found.steps,
        min(seconds for seconds, _ in taken),
        min(working for _, working in taken),
        _peak(subject, solver, own, time_limit) if memory else -1,
        certificate.primal,
        certificate.dual,
        certificate.gap,
        left,
        found.support_vectors,
        own,
    )


def _timed(
    subject: _Subject, solver: str | Method, tol: float, time_limit: float | None
) -> tuple[_Answer, tuple[float, float]]:
    """Solve once; returns the answer, and the time on the clock and of the processor."""
    fresh = subject.fresh()
    began, working = time.perf_counter(), time.process_time()
    found = subject.run(fresh, solver, tol, time_limit)
    spent = time.perf_counter() - began, time.process_time() - working
    return subject.judged(found, tol), spent


def _peak(subject: _Subject, solver: str | Method, tol: float, time_limit: float | None) -> int:
    """Most bytes that a run had allocated at a time, as Python knows them."""
    running, fresh = tracemalloc.is_tracing(), subject.fresh()
    if not running:
        tracemalloc.start(1)
    tracemalloc.reset_peak()
    before, _ = tracemalloc.get_traced_memory()
    try:
        subject.run(fresh, solver, tol, time_limit)
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        if not running:
            tracemalloc.stop()


def _cells(result: Result) -> list[str]:
    """One row of the table."""
    return [
        result.solver,
        result.status if result.reached or result.status != "converged" else "short of the gap",
        f"{result.steps:,}",
        f"{result.seconds:.3g}",
        "" if result.peak_bytes < 0 else megabytes(result.peak_bytes),
        f"{result.objective:.6g}",
        f"{result.relative_gap:.1e}",
    ]
