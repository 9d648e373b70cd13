"""Long work, seen and stopped: what a solver reports, who listens, and who may end it early."""

from __future__ import annotations

import math
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from maxmargin.solution import Status

WHICH = "{solved} of {problems} solved, "

Reading = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
"""What makes weights and intercepts of a linear machine, in the units of the data, of the variables
of some records: arrays (r, ...) become (r, n_features) and (r,), with one more axis where a problem
has several machines."""


@dataclass(frozen=True)
class Progress:
    """Where a fit is; handed to every listener a few times a second, and to a trace.

    Attributes
    ----------
    problem : int
        The problem that reports, counted from 0.
    method : str
        The method at work on it.
    steps : int
        Steps taken on it.
    violation, tol : float
        What has to become small, and how small: the violation of the KKT conditions, a relative
        duality gap, the largest entry of a gradient, or the share of mistakes.
    objective, dual, gap : float
        Value of what is minimised, a lower bound on its least value, and their difference, to the
        method's working precision; nan where it does not know them.
    variables : float array or None
        What is solved for; not to be changed.
    solves_for : {"multipliers", "weights", ""}
        What these are: the signed variables of a dual problem, the weights (for some methods those
        of standardised columns), or the method's own.
    working_set : int array or None
        Which of them the last step was about.
    weights, intercept : float arrays or None
        w and b of a linear machine, in the units of the data and computed when asked for; None
        where the machine is not linear, or nothing is known of it yet.
    solved, problems : int
        Problems finished, and in all (one for each pair of classes, class or start).
    seconds : float
        Since the fit began.
    share : float
        Share of the work on the problem that is done, where its steps are counted beforehand; nan
        where it ends at a violation.
    words, which : str
        What the progress bar says, a format of these attributes; and before it, where there are
        several problems.
    others : callable
        Returns the variables of problems that are solved side by side with it, by their numbers.
    reading : callable or None
        Makes weights and intercept of the variables.
    """

    problem: int
    method: str
    steps: int
    violation: float
    tol: float
    objective: float = math.nan
    dual: float = math.nan
    gap: float = math.nan
    variables: np.ndarray | None = field(default=None, repr=False)
    working_set: np.ndarray | None = field(default=None, repr=False)
    solved: int = 0
    problems: int = 1
    seconds: float = 0.0
    words: str = "violation {violation:.2g}"
    which: str = WHICH
    others: Callable[[], dict[int, np.ndarray]] = field(default=dict, repr=False)
    reading: Reading | None = field(default=None, repr=False, compare=False)
    solves_for: str = ""
    share: float = math.nan

    @property
    def weights(self) -> np.ndarray | None:
        """``w`` of a linear machine, (n_features,) or (n_machines, n_features)."""
        return None if (read := self._read()) is None else read[0][0]

    @property
    def intercept(self) -> Any:
        """``b`` of a linear machine, a number or (n_machines,)."""
        return None if (read := self._read()) is None else read[1][0]

    def _read(self) -> tuple[np.ndarray, np.ndarray] | None:
        if self.reading is None or self.variables is None:
            return None
        with np.errstate(over="ignore", invalid="ignore"):  # of steps that have diverged
            return self.reading(self.variables[None])

    @property
    def alpha(self) -> np.ndarray:
        """The lecture's multipliers: the variables without signs; none where weights are found."""
        if self.variables is None or self.solves_for != "multipliers":
            return np.zeros(0)
        return np.abs(self.variables)

    @property
    def support_vectors(self) -> int:
        """Nonzero multipliers."""
        return int(np.count_nonzero(self.alpha))

    @property
    def number(self) -> int:
        """The problem that reports, counted from 1."""
        return self.problem + 1

    @property
    def loss(self) -> float:
        """The objective of a descent."""
        return self.objective

    def __str__(self) -> str:
        said = (self.which if self.problems > 1 else "") + self.words
        return said.format_map(_Attributes(self))


class _Attributes(dict):
    """The attributes of an object by name, for a format."""

    def __init__(self, owner: Any) -> None:
        super().__init__()
        self.owner = owner

    def __missing__(self, name: str) -> Any:
        return getattr(self.owner, name)


Listener = Callable[[Any], Any]  # of a Progress


@dataclass
class _Fit:
    """A fit under way: whether Ctrl-C is owed to its caller."""

    interrupted: bool = False


_under_way: ContextVar[_Fit | None] = ContextVar("the fit under way", default=None)


@contextmanager
def raising_interrupts() -> Iterator[None]:
    """Let a fit that Ctrl-C stops become a whole model, and raise KeyboardInterrupt after that.

    Whoever called the fit, a loop or a search, is then stopped too.
    """
    fit = _Fit()
    token = _under_way.set(fit)
    try:
        yield
    except Exception as error:  # a warning that is an error, a callback: Ctrl-C goes before it
        if fit.interrupted:
            raise KeyboardInterrupt from error
        raise
    finally:
        _under_way.reset(token)
    if fit.interrupted:
        raise KeyboardInterrupt("stopped by Ctrl-C; the model holds what was found until then")


@dataclass
class Monitor:
    """Between a fit and its solvers: passes reports on, and says when to stop and why.

    Solvers look at :meth:`stopped` between their calls of compiled steps. A listener that returns
    True stops the fit, as do the time limit and Ctrl-C; what is there by then becomes the model.
    Ctrl-C is raised after that: ``interrupted`` says that it is owed. ``readings`` say how problems
    become weights, by their numbers; ``chosen`` are the methods that were taken, and why.

    Examples
    --------
    >>> from maxmargin.progress import Monitor
    >>> Monitor(time_limit=1e-9).stopped()
    <Status.TIME_LIMIT: 'time_limit'>
    """

    time_limit: float | None = None
    listeners: list[Listener] = field(default_factory=list)
    interval: float = 0.1
    problems: int = 1
    which: str = WHICH
    solved: int = 0
    reason: Status | None = None
    interrupted: bool = False
    started: float = field(default_factory=time.monotonic)
    readings: dict[int, Reading | None] = field(default_factory=dict, repr=False)
    chosen: list[Any] = field(default_factory=list, repr=False)
    _ending: str = ""
    _whole: bool = True
    _reported: float = 0.0
    _lock: Any = field(default_factory=threading.Lock, repr=False)

    @property
    def seconds(self) -> float:
        """Time since the fit began."""
        return time.monotonic() - self.started

    def stopped(self) -> Status | None:
        """Why to stop now, or None to go on."""
        limit = self.time_limit
        if self.reason is None and limit is not None and self.seconds > limit:
            self.reason = Status.TIME_LIMIT
        return self.reason

    def due(self) -> bool:
        """Whether someone listens and the last report is long enough ago."""
        return bool(self.listeners) and self.seconds - self._reported >= self.interval

    def report(self, progress: Callable[[], Progress]) -> None:
        """Tell the listeners where a problem is, if a report is due; the driver tells a trace."""
        if not self.due():
            return
        with self._lock:
            if self.due():
                self._reported = self.seconds
                told = self.placed(progress())
                for listener in self.listeners:  # all of them, also after one that says stop
                    if listener is not self.trace and listener(told) is True:
                        self.reason = self.reason or Status.INTERRUPTED

    def report_parts(self, method: str, done: int, whole: int, parts: str) -> None:
        """Tell the listeners how many parts of the work are done, as ``"3 of 10 trees"``."""
        self.report(
            lambda: Progress(
                problem=0,
                method=method,
                steps=done,
                violation=1.0 - done / whole,
                tol=0.0,
                words=f"{{steps}} of {whole} {parts}",
                share=done / whole,
            )
        )

    def placed(self, progress: Progress) -> Progress:
        """Return a report with what the fit knows: problems solved, and the time."""
        return replace(
            progress,
            solved=self.solved,
            problems=self.problems,
            which=self.which,
            seconds=self.seconds,
            reading=self.readings.get(progress.problem),
        )

    @property
    def trace(self) -> Any:
        """Listener that wants to see every step, if there is one."""
        return next((one for one in self.listeners if hasattr(one, "steps_until_next")), None)

    def finished(self, count: int = 1) -> None:
        """Count one more problem as solved, or several; or fewer, where one was not after all."""
        with self._lock:
            self.solved += count

    def end(self, sentence: str, whole: bool) -> None:
        """Say what the progress bar is to end with, and whether the work was done to its end."""
        self._ending, self._whole = sentence, whole

    @contextmanager
    def watching(self, verbose: Any) -> Iterator[None]:
        """Show a bar if that is wanted, and turn Ctrl-C into a stop, while a fit is at work.

        Once it is done, a trace computes what it needs the data for.
        """
        bar = ProgressBar() if verbose else None
        if bar is not None:
            self.listeners.append(bar)
        said, whole = "failed", False
        try:
            with self.catching_interrupts():
                yield
                said = self._ending or str(self.reason or "done")
                whole = self._whole and self.reason is None
                if self.trace is not None:
                    self.trace.settle()
        finally:
            if bar is not None:
                bar.close(said, whole)

    @contextmanager
    def catching_interrupts(self) -> Iterator[None]:
        """Turn Ctrl-C into a stop at the next good place; a second one is not caught.

        Inside :func:`raising_interrupts` it is raised at the end of that, otherwise here.
        """
        usual = signal.default_int_handler
        in_main = threading.current_thread() is threading.main_thread()
        if not in_main or signal.getsignal(signal.SIGINT) is not usual:
            yield  # not ours to handle
            return
        fit = _under_way.get() or _Fit()

        def interrupt(number: int, frame: Any) -> None:
            signal.signal(signal.SIGINT, usual)
            self.reason = Status.INTERRUPTED
            self.interrupted = fit.interrupted = True

        signal.signal(signal.SIGINT, interrupt)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, usual)
            if fit.interrupted and _under_way.get() is None:
                raise KeyboardInterrupt


@contextmanager
def watched(
    time_limit: float | None,
    callback: Listener | None,
    verbose: Any,
    problems: int = 1,
    others: Iterable[Listener] = (),
) -> Iterator[Monitor]:
    """Watch over a fit of some problems: its time limit, callback, progress bar and Ctrl-C.

    Yields the monitor for the solvers. ``others`` are more listeners. When the fit has failed the
    bar says so.

    Examples
    --------
    >>> from maxmargin.progress import watched
    >>> with watched(time_limit=None, callback=print, verbose=False) as monitor:
    ...     monitor.stopped() is None
    True
    """
    if callback is not None and not callable(callback):
        raise ValueError(f"callback must be a function of a Progress, or None, got {callback!r}.")
    if time_limit is not None and not time_limit > 0:
        raise ValueError(f"time_limit must be a positive number of seconds, got {time_limit!r}.")
    listeners = [*([] if callback is None else [callback]), *others]
    monitor = Monitor(time_limit, listeners, problems=problems)
    with monitor.watching(verbose):
        yield monitor


@dataclass(frozen=True)
class ProblemMonitor:
    """A fit's monitor as the solver of one problem sees it; what is not traced only reports."""

    fit: Monitor = field(default_factory=Monitor)
    problem: int = 0
    traced: bool = True

    def stopped(self) -> Status | None:
        """Why to stop now, or None to go on."""
        return self.fit.stopped()

    def report(self, progress: Callable[[], Progress]) -> None:
        """Tell the listeners where this problem is, if a report is due."""
        self.fit.report(progress)

    @property
    def trace(self) -> Any:
        """Listener that wants to see every step, if there is one."""
        return self.fit.trace if self.traced else None


class ProgressBar:
    """A bar by tqdm, in a terminal or a notebook; a line a second where tqdm is not installed.

    How far a problem is, it says itself (``share``), or it is guessed from its violation on a
    logarithmic scale between the first one seen and ``tol``. It never goes back, and is full only
    when the work was done to its end.
    """

    def __init__(self) -> None:
        self.first: dict[int, float] = {}
        self.share: dict[int, float] = {}
        self.printed = 0.0
        self.bar: Any = None
        try:
            from tqdm.auto import tqdm
        except ImportError:
            return
        self.bar = tqdm(total=100.0, bar_format="{l_bar}{bar}| {elapsed} {postfix}")

    def __call__(self, progress: Progress) -> None:
        """Show where the fit is."""
        share = progress.share if progress.share == progress.share else self._guessed(progress)
        self.share[progress.problem] = max(self.share.get(progress.problem, 0.0), share)
        percent = 100.0 * min(sum(self.share.values()) / progress.problems, 0.999)
        if self.bar is not None:
            self.bar.n = max(self.bar.n, percent)
            said = str(progress).split(", ")
            while len(said) > 1 and len(", ".join(said)) > self._room():
                said.pop()  # rather than half a number
            self.bar.set_postfix_str(", ".join(said))
        elif progress.seconds - self.printed >= 1.0:
            self.printed = progress.seconds
            print(f"[maxmargin] {percent:3.0f} %, {progress.seconds:.0f} s: {progress}", flush=True)

    def _guessed(self, progress: Progress) -> float:
        """Share of the way from the first violation to ``tol``, on a logarithmic scale."""
        first = self.first.setdefault(progress.problem, max(progress.violation, progress.tol))
        whole = math.log(first / progress.tol) or 1.0
        return math.log(first / max(progress.violation, progress.tol)) / whole

    def close(self, ending: str, whole: bool) -> None:
        """Show how it ended; a sentence too long for the bar's line gets one of its own."""
        if self.bar is None:
            print(f"[maxmargin] {ending}", flush=True)
            return
        if whole:
            self.bar.n = 100.0
        fits = len(ending) <= self._room()
        self.bar.set_postfix_str(ending if fits else "")
        self.bar.close()
        if not fits:
            print(ending, file=self.bar.fp, flush=True)

    def _room(self) -> float:
        """Characters that the bar's line has for words."""
        columns = self.bar.format_dict["ncols"]
        return columns - _BAR if columns else math.inf


_BAR = 22  # characters of a bar's line: percentage, the shortest bar of tqdm, time
