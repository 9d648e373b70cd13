"""Long work, seen and stopped: what a solver reports, and who may end it early."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from maxmargin.solution import Status


@dataclass(frozen=True)
class Progress:
    """Where a fit is; handed to every listener a few times a second.

    Attributes
    ----------
    solved, problems : int
        Problems finished, and in all (one for each pair of classes).
    problem : int
        The problem that reports, counted from 0.
    steps : int
        Steps taken on it.
    violation, tol : float
        Its KKT violation, and the one to reach.
    support_vectors : int
        Its nonzero variables.
    seconds : float
        Since the fit began.
    """

    solved: int
    problems: int
    problem: int
    steps: int
    violation: float
    tol: float
    support_vectors: int
    seconds: float


Listener = Callable[[Progress], Any]


@dataclass
class Monitor:
    """Between a fit and its solvers: passes reports on, and says when to stop and why.

    Solvers look at :meth:`stopped` at least every tenth of a second. A listener that returns True
    stops the fit, as do the time limit and Ctrl-C; what is there by then becomes the model.

    Examples
    --------
    >>> from maxmargin.progress import Monitor
    >>> monitor = Monitor(time_limit=1e-9)
    >>> monitor.stopped()
    <Status.TIME_LIMIT: 'time_limit'>
    """

    time_limit: float | None = None
    listeners: tuple[Listener, ...] = ()
    interval: float = 0.1
    problems: int = 1
    solved: int = 0
    reason: Status | None = None
    started: float = field(default_factory=time.monotonic)
    _reported: float = 0.0
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def stopped(self) -> Status | None:
        """Why to stop now, or None to go on."""
        limit = self.time_limit
        if self.reason is None and limit is not None and self.seconds > limit:
            self.reason = Status.TIME_LIMIT
        return self.reason

    @property
    def seconds(self) -> float:
        """Time since the fit began."""
        return time.monotonic() - self.started

    def report(
        self, problem: int, steps: int, violation: float, tol: float, support_vectors: int
    ) -> None:
        """Tell the listeners, if the last time was long enough ago."""
        if not self.listeners:
            return
        with self._lock:
            if self.seconds - self._reported < self.interval:
                return
            self._reported = self.seconds
            progress = Progress(
                self.solved,
                self.problems,
                problem,
                steps,
                violation,
                tol,
                support_vectors,
                self.seconds,
            )
            for listener in self.listeners:
                if listener(progress) is True and self.reason is None:
                    self.reason = Status.INTERRUPTED

    def finished(self) -> None:
        """Count one more problem as solved."""
        with self._lock:
            self.solved += 1

    @contextmanager
    def catching_interrupts(self) -> Iterator[None]:
        """Turn Ctrl-C into a stop at the next good place; a second one is not caught."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return

        def interrupt(number: int, frame: Any) -> None:
            signal.signal(number, before)
            self.reason = Status.INTERRUPTED

        before = signal.getsignal(signal.SIGINT)
        if before is not signal.default_int_handler:  # someone else's business
            yield
            return
        signal.signal(signal.SIGINT, interrupt)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)
