"""One driver for every iterative method: it owns limits, stops, reports and traces.

A *method* says which problems it takes and begins a *run* on one of them. A run is the method's
loop, which yields wherever it may be looked at; it can be measured, and has an answer, at any time.
All that happens around it happens here, the same for every method:

    run = method.begin(problem, watch)
    while the run has not ended, nobody has stopped it and its steps are not used up:
        report and record where it is, if someone wants to know
        run.advance(steps it may take now)

A new method is a class of its own with those few functions: see CONTRIBUTING.md.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

import numpy as np

from maxmargin.backends.threads import ALONE, StoppedError, Workers
from maxmargin.progress import ProblemMonitor, Progress
from maxmargin.solution import Status

NO_LIMIT = 1 << 62
ASKED = "it was asked for"  # why a method was chosen that was named
_END = object()

Problem = TypeVar("Problem", contravariant=True)
Answer = TypeVar("Answer", covariant=True)
Chosen = TypeVar("Chosen", bound="Method")


@dataclass(frozen=True)
class Measure:
    """How far a run has come, in its working precision.

    Attributes
    ----------
    violation : float
        What has to become small, in the units of ``tol``.
    objective, dual, gap : float
        Value of what is minimised, a lower bound on its least value, and their difference; nan
        where a method does not know them.
    """

    violation: float
    objective: float = np.nan
    dual: float = np.nan
    gap: float = np.nan


@dataclass(frozen=True)
class Watch:
    """What is asked of a run, and who looks on.

    Parameters
    ----------
    tol : float
        Violation to reach.
    max_iter : int, default=-1
        Steps that are allowed; -1 for no limit.
    monitor : ProblemMonitor
        Is told of the progress, and asked when to stop.
    workers : Workers
        Threads that the run may use.
    spent : int, default=0
        Steps that were taken on the problem before; they count.
    seed : int, default=0
        Of what a run draws at random.
    """

    tol: float = 1e-3
    max_iter: int = -1
    monitor: ProblemMonitor = field(default_factory=ProblemMonitor)
    workers: Workers = ALONE
    spent: int = 0
    seed: int = 0

    @property
    def stopped(self) -> Callable[[], Status | None]:
        """Why to stop now, or None; for a run to ask in the middle of something long."""
        return self.monitor.stopped

    def left(self, n_iter: int) -> int:
        """Steps that a run may still take after so many."""
        return NO_LIMIT if self.max_iter < 0 else max(self.max_iter - self.spent - n_iter, 0)

    def allowed(self, run: Run) -> int:
        """Steps that a run may take before it is looked at again."""
        left = NO_LIMIT if run.in_passes else self.left(run.n_iter)
        if not self.monitor.fit.listeners:
            return left
        trace = self.monitor.trace
        return left if trace is None else min(left, trace.steps_until_next(self.monitor.problem))

    def look(self, run: Run) -> Status | None:
        """Report and record where a run is; returns why it ends here, or None.

        The driver does so between two advances. A run whose loop is another library's does it
        itself, at every step.
        """
        heard = bool(self.monitor.fit.listeners)
        if heard and self.monitor.stopped() is None:
            self.monitor.report(lambda: run.progress(self))
        ended = run.status or (self.monitor.stopped() if run.usable else None)
        if ended is None and not self.left(run.n_iter):
            ended = Status.MAX_ITER
        if not heard:
            return ended
        trace, steps = self.monitor.trace, self.spent + run.n_steps
        if trace is not None and trace.wants(self.monitor.problem, steps, ended is not None):
            for progress in run.reports(self):
                trace.record(self.monitor.fit.placed(progress))
        return ended

    def untraced(self) -> Watch:
        """Return a watch over work that only prepares a run: reported, but in no trace."""
        return replace(self, monitor=replace(self.monitor, traced=False))


class Run(ABC):
    """A method at work on a problem.

    Attributes
    ----------
    n_iter : int
        Steps taken so far, which ``max_iter`` limits; what a step is, the method says.
    in_passes : bool
        Whether ``n_iter`` counts passes of many steps instead. Then the loop yields after each of
        them, ``n_steps`` counts the steps, and so does ``allowed``.
    status : Status or None
        Why the run has ended by itself: converged, or stalled; None while it goes on.
    allowed : int
        Steps that it may take before it yields again.
    words : str
        What a progress bar says of it, a format of the attributes of Progress.
    solves_for : {"multipliers", "weights", ""}
        What its variables are: those of a dual problem, weights, or something else.
    """

    solves_for: str = ""
    words: ClassVar[str] = "violation {violation:.2g}"
    in_passes: ClassVar[bool] = False
    n_iter: int = 0
    status: Status | None = None
    allowed: int = NO_LIMIT
    _loop: Generator[None, None, None] | None = None

    @abstractmethod
    def steps(self) -> Generator[None, None, None]:
        """The loop of the method: yields wherever it may be looked at, and ends when it is done.

        That is some ten times a second or more often. Steps are counted in ``n_iter``; a loop that
        can takes at most ``allowed`` of them before it yields again. Where it does not set a
        status, an end means that it has converged.
        """

    def advance(self, allowed: int) -> None:
        """Let the loop go on to where it yields next, by so many steps at most."""
        self.allowed = allowed
        if self._loop is None:
            self._loop = self.steps()
        try:
            ended = next(self._loop, _END) is _END
        except StoppedError:  # in the middle of something long: who looks next knows why
            self._loop = None
            return
        if ended and self.status is None:
            self.status = Status.CONVERGED

    @abstractmethod
    def measure(self) -> Measure:
        """How far it has come."""

    @abstractmethod
    def solution(self, status: Status) -> Any:
        """Return the answer as it is, with why the run has ended."""

    def close(self) -> None:
        """End the loop where it is, so that it can put things in order."""
        if self._loop is not None:
            self._loop.close()

    def progress(self, watch: Watch) -> Progress:
        """Where it is, for who wants to know."""
        measure = self.measure()
        return Progress(
            problem=watch.monitor.problem,
            method=self.name,
            steps=watch.spent + self.n_steps,
            violation=measure.violation,
            tol=watch.tol,
            objective=measure.objective,
            dual=measure.dual,
            gap=measure.gap,
            variables=self.variables,
            working_set=self.working_set,
            words=self.words,
            solves_for=self.solves_for,
            share=self.share,
        )

    def reports(self, watch: Watch) -> list[Progress]:
        """Where each problem is, of a run that is about several."""
        return [self.progress(watch)]

    @property
    def name(self) -> str:
        """Name of the method."""
        return type(self).__name__.strip("_").removesuffix("Run")

    @property
    def n_steps(self) -> int:
        """Steps taken so far, as they are reported and recorded."""
        return self.n_iter

    @property
    def usable(self) -> bool:
        """Whether there is an answer; a time limit, a callback and Ctrl-C wait for the first."""
        return True

    @property
    def share(self) -> float:
        """Share of the work that is done, where its steps are counted beforehand; else nan."""
        return np.nan

    @property
    def variables(self) -> np.ndarray | None:
        """What is solved for, as it is now: not to be changed."""
        return None

    @property
    def working_set(self) -> np.ndarray | None:
        """Which of them the last step was about."""
        return None


class Method(ABC, Generic[Problem, Answer]):
    """A way to solve some kind of problem, with its own options and nothing else.

    Attributes
    ----------
    by_passes : bool
        Whether it needs nothing of rows but sums over all of them, so that they may lie elsewhere.
    """

    by_passes: ClassVar[bool] = False

    @abstractmethod
    def accepts(self, problem: Problem) -> str | None:
        """None where the method takes the problem; else a sentence that says why not."""

    @abstractmethod
    def begin(self, problem: Problem, watch: Watch) -> Run:
        """Begin at the problem's start."""

    def solve(self, problem: Problem, watch: Watch | None = None, **how: Any) -> Answer:
        """Solve a problem, as far as the watch allows; ``how`` to begin is the method's own."""
        refused = self.accepts(problem)
        if refused is not None:
            raise ValueError(refused)
        watch = Watch() if watch is None else watch
        return drive(self.begin(problem, watch, **how), watch)


class Choice(NamedTuple, Generic[Chosen]):
    """Which method takes a problem, and why."""

    method: Chosen
    why: str


def drive(run: Run, watch: Watch) -> Any:
    """Let a run go on until it ends or has to; returns its answer."""
    while (status := watch.look(run)) is None:
        run.advance(watch.allowed(run))
    run.close()
    return run.solution(status)
