"""Who may end a task early: its time limit, and whoever no longer waits for what it makes.

A thread cannot be stopped from outside. So solvers in tasks ask, as they do in one process.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from maxmargin.progress import Monitor
from maxmargin.solution import Status

LEAST = 1e-3  # seconds: no time limit is shorter


class Caller:
    """Says to tasks in the caller's process whether it wants to stop; to others nothing."""

    def __init__(self, stopped: Callable[[], Any] | None = None) -> None:
        self.stopped = stopped

    def __call__(self) -> bool:
        """Whether to stop."""
        return self.stopped is not None and bool(self.stopped())

    def __reduce__(self) -> tuple:
        return Caller, ()


class TaskMonitor(Monitor):
    """Ends a piece of work when its time is over, or when nobody waits for it any more."""

    def __init__(self, time_limit: float | None = None, caller: Caller | None = None) -> None:
        super().__init__(time_limit)
        self.caller = caller or Caller()

    def stopped(self) -> Status | None:
        """Why to stop now, or None to go on."""
        if self.reason is None and (self.caller() or _cancelled()):
            self.reason = Status.INTERRUPTED
        return super().stopped()


def _cancelled() -> bool:
    """Whether the task of this thread was cancelled; its worker knows."""
    if "distributed" not in sys.modules:  # then this is no worker
        return False
    from distributed import get_worker
    from distributed.utils import thread_state

    key = getattr(thread_state, "key", None)
    if key is None:
        return False
    task = get_worker().state.tasks.get(key)
    return task is None or task.state == "cancelled"
