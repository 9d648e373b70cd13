"""Threads: our own over stripes and problems, and one for BLAS inside each of them.

Compiled loops and BLAS release the GIL, so plain threads use all cores. BLAS is held to one thread
meanwhile: a tile's product takes microseconds, a second BLAS thread gains little there and, as soon
as another process wants the core, waits for it: fits were measured to take 60 times as long.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, wait
from functools import cache, wraps
from typing import Any, TypeVar

from joblib import cpu_count
from threadpoolctl import ThreadpoolController

F = TypeVar("F", bound=Any)


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


def on_one_blas_thread(function: F) -> F:
    """Run a function with BLAS held to one thread, as scikit-learn does around its own loops."""

    @wraps(function)
    def limited(*args: Any, **kwargs: Any) -> Any:
        with _controller().limit(limits=1, user_api="blas"):
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
    if n_jobs is None:
        allowed = [
            pool["num_threads"] for pool in _controller().info() if pool["user_api"] == "blas"
        ]
        return max(min([cpu_count(), *allowed]), 1)
    return n_jobs if n_jobs > 0 else max(cpu_count() + 1 + n_jobs, 1)


class Workers:
    """So many threads; with one of them, the caller's own."""

    def __init__(self, count: int) -> None:
        self.count = count

    def map(self, function: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
        """Call the function on every item; returns when all are done, with the first error."""
        items = list(items)
        if self.count == 1 or len(items) < 2:
            return [function(item) for item in items]
        futures = [_pool(self.count).submit(function, item) for item in items]
        try:
            wait(futures)
        except BaseException:  # Ctrl-C: leave no thread at work on arrays that others will use
            for future in futures:
                future.cancel()
            wait(futures)
            raise
        return [future.result() for future in futures]


@cache
def _pool(count: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(count, thread_name_prefix="maxmargin")


ALONE = Workers(1)
