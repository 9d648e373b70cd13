"""Threads: our own over stripes and problems, and one for BLAS inside each of them.

Compiled loops and BLAS release the GIL, so plain threads use all cores. BLAS is held to one thread
meanwhile: a tile's product takes microseconds, a second BLAS thread gains little there and, as soon
as another process wants the core, waits for it: fits were measured to take 60 times as long.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from functools import cache, wraps
from typing import Any, TypeVar

from joblib import cpu_count
from threadpoolctl import ThreadpoolController

F = TypeVar("F", bound=Any)

_HEARD = 0.1  # seconds after which a waiting thread has heard of Ctrl-C


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


class _BlasLimit:
    """BLAS at one thread from the first who wants it to the last: several fits may overlap."""

    def __init__(self) -> None:
        self.lock, self.holders = threading.Lock(), 0
        self.limit: Any = None

    def __enter__(self) -> None:
        with self.lock:
            if not self.holders:
                self.limit = _controller().limit(limits=1, user_api="blas")
            self.holders += 1

    def __exit__(self, *error: Any) -> None:
        with self.lock:
            self.holders -= 1
            if not self.holders:
                self.limit.restore_original_limits()


_one_thread = _BlasLimit()


def on_one_blas_thread(function: F) -> F:
    """Run a function with BLAS held to one thread, as scikit-learn does around its own loops."""

    @wraps(function)
    def limited(*args: Any, **kwargs: Any) -> Any:
        with _one_thread:
            return function(*args, **kwargs)

    return limited  # type: ignore[return-value]


def thread_count(n_jobs: int | None) -> int:
    """Threads that ``n_jobs`` stands for.

    A negative number counts back from all cores (-1: all of them), as in scikit-learn. None means
    what scikit-learn's own compiled loops take: as many as BLAS may have, so that environment
    variables, ``threadpool_limits`` and joblib's workers are obeyed.

    >>> thread_count(3)
    3
    >>> thread_count(-1) >= 1
    True
    """
    if n_jobs == 0:
        raise ValueError("n_jobs=0 means no thread at all: give a number, -1 (all cores) or None.")
    if n_jobs is None:
        pools = _controller().info()
        allowed = [pool["num_threads"] for pool in pools if pool["user_api"] == "blas"]
        return max(min([cpu_count(), *allowed]), 1)
    return n_jobs if n_jobs > 0 else max(cpu_count() + 1 + n_jobs, 1)


class StoppedError(Exception):
    """Someone wants the work to end; what was under way is not complete."""


class Workers:
    """So many threads; with one of them, the caller's own.

    ``stopped`` is asked before every item: once it says so, :class:`StoppedError` is raised.
    """

    def __init__(self, count: int, stopped: Callable[[], Any] | None = None) -> None:
        self.count, self.stopped = count, stopped

    def map(self, function: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
        """Call the function on every item; returns when all are done, with the first error."""
        items = list(items)

        def work(item: Any) -> Any:
            if self.stopped is not None and self.stopped():
                raise StoppedError
            return function(item)

        if self.count == 1 or len(items) < 2:
            return [work(item) for item in items]
        own = len(items) <= self.count  # then the caller takes one: a thread less to wake
        futures = [_pool(self.count).submit(work, item) for item in items[own:]]
        try:
            results = [work(item) for item in items[:own]]
            _wait_for(futures)
            return results + [future.result() for future in futures]
        finally:  # after an error or Ctrl-C: no thread stays at work on arrays that others will use
            for future in futures:
                future.cancel()
            wait(futures)


def _wait_for(futures: list[Future]) -> None:
    """Wait until all are done or one has failed, awake often enough to hear Ctrl-C.

    A signal that another thread of the process receives does not wake a thread that waits.
    """
    waiting = set(futures)
    while waiting:
        done, waiting = wait(waiting, timeout=_HEARD, return_when=FIRST_EXCEPTION)
        if any(future.exception() is not None for future in done):
            return


@cache
def _pool(count: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(count, thread_name_prefix="maxmargin")


if hasattr(os, "register_at_fork"):  # a forked child has the pool but not its threads
    os.register_at_fork(after_in_child=_pool.cache_clear)

ALONE = Workers(1)
