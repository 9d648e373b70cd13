"""Threads: our own over stripes and problems, and one for BLAS inside each of them.

Compiled loops and BLAS release the GIL, so plain threads use all cores. BLAS is held to one thread
meanwhile: a tile's product takes microseconds, a second BLAS thread gains little there and, as soon
as another process wants the core, waits for it: fits were measured to take 60 times as long.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from functools import cache, wraps
from typing import Any, TypeVar

import threadpoolctl
from joblib import cpu_count

F = TypeVar("F", bound=Any)

_HEARD = 0.1  # seconds after which a waiting thread has heard of Ctrl-C
# ns of work that each thread has at least. SVC, SVR and NuSVR on 1,000 rows, two threads: 4.3 to
# 7.3 ms for 4.7 to 8.4 without a limit, and 0.8 of the CPU time; from 3,000 rows on no difference
_SHARE = 5e5
_ATTEMPTS = 10  # to set a number that another thread is setting, too


@cache
def _blas_libraries(per_thread: bool) -> list[Any]:
    """BLAS libraries that are loaded: with one number of threads for the process, or per thread."""
    libraries = threadpoolctl.ThreadpoolController().select(user_api="blas").lib_controllers
    return [library for library in libraries if _is_per_thread(library) == per_thread]


def _is_per_thread(library: Any) -> bool:
    openmp = library.internal_api == "openblas" and library.threading_layer == "openmp"
    return openmp or library.internal_api == "blis"


def _set(library: Any, count: int) -> None:
    """Set how many threads a BLAS library takes, from whichever thread.

    threadpoolctl (3.8; older versions do not) leaves OpenBLAS to the first thread that has set a
    number and silently does nothing in the others, until that thread gives up control. Whose turn
    it is has been settled here by counting the fits.
    """
    give_up = getattr(type(library), "clear_controlling_thread", lambda force: None)
    for _ in range(_ATTEMPTS):
        library.set_num_threads(count)
        give_up(force=True)
        if library.num_threads == count:
            return


class _BlasLimit:
    """BLAS at one thread while any thread of the process is inside: several fits may overlap.

    Most libraries have one number for the whole process; those that have one for each thread are
    limited in every thread that enters, and in the threads of our own pools.

    Ctrl-C may come between any two calls, also while the limit is set or taken back. What is kept
    is therefore a state that can be restored twice, not a count that has to be paired.
    """

    def __init__(self) -> None:
        self.lock, self.holders = threading.RLock(), set[int]()  # threads that are inside
        self.before: list[int] = []  # threads for the whole process, while there are holders
        self.own = threading.local()

    def __reduce__(self) -> str:
        """Pickle by name: a class of a notebook is sent to workers with what its ``fit`` uses."""
        return "_one_thread"

    def call(self, function: Callable[[], Any], is_fit: bool) -> Any:
        """Call a function inside the limit.

        What it calls gets one thread of our own, too. A fit may use as many as before, unless it
        is inside of another: the work is shared out there.
        """
        held, depth = self._held(), self._depth()
        try:
            if not held:
                self._hold()
            self.own.depth = depth + (held or not is_fit)
            return function()
        finally:
            try:
                self._restore(held, depth)
            except KeyboardInterrupt:
                self._restore(held, depth)
                raise

    def _hold(self) -> None:
        shared, per_thread = (_blas_libraries(per_thread=each) for each in (False, True))
        self.own.before = [library.num_threads for library in per_thread]
        with self.lock:
            if not self.holders:
                self.before = [library.num_threads for library in shared]
            self.holders.add(threading.get_ident())
            _limit(shared)
        _limit(per_thread)

    def _restore(self, held: bool, depth: int) -> None:
        self.own.depth = depth
        if held or not self._held():
            return
        _set_all(_blas_libraries(per_thread=True), self.own.before)
        with self.lock:
            if len(self.holders) == 1:
                _set_all(_blas_libraries(per_thread=False), self.before)
            self.holders.discard(threading.get_ident())

    def allowed(self) -> int:
        """Return how many threads BLAS may have where it is not limited; in nested work, one."""
        if self._depth() or self.works():
            return 1
        with self.lock:
            shared = self.before
            if not self.holders:
                shared = [library.num_threads for library in _blas_libraries(per_thread=False)]
        per_thread = _blas_libraries(per_thread=True)
        own = self.own.before if self._held() else [lib.num_threads for lib in per_thread]
        return min([_cores(), *shared, *own])

    def works(self) -> bool:
        """Whether the thread that asks is one of a pool."""
        return getattr(self.own, "worker", False)

    def join(self) -> None:
        """Begin a thread of a pool, which serves those who are inside the limit."""
        self.own.worker = True
        _limit(_blas_libraries(per_thread=True))

    def alone(self) -> None:
        """Go on in a forked child, where no other thread holds the limit any more."""
        held = self._held()
        if self.holders and not held:
            _set_all(_blas_libraries(per_thread=False), self.before)
        self.holders = {threading.get_ident()} if held else set()
        self.lock.release()

    def _depth(self) -> int:
        """Return how many sections of nested work this thread is in."""
        return getattr(self.own, "depth", 0)

    def _held(self) -> bool:
        return threading.get_ident() in self.holders


def _limit(libraries: list[Any]) -> None:
    _set_all(libraries, [1] * len(libraries))


def _set_all(libraries: list[Any], counts: list[int]) -> None:
    for library, count in zip(libraries, counts, strict=True):
        if library.num_threads != count:
            _set(library, count)


_one_thread = _BlasLimit()


def around_fit(function: F) -> F:
    """Run a fit with BLAS held to one thread; its own threads may be as many as before."""

    @wraps(function)
    def limited(*args: Any, **kwargs: Any) -> Any:
        return _one_thread.call(lambda: function(*args, **kwargs), is_fit=True)

    return limited  # type: ignore[return-value]


def on_one_blas_thread(function: F) -> F:
    """Run a function with BLAS held to one thread, as scikit-learn does around its own loops."""

    @wraps(function)
    def limited(*args: Any, **kwargs: Any) -> Any:
        return _one_thread.call(lambda: function(*args, **kwargs), is_fit=False)

    return limited  # type: ignore[return-value]


def thread_count(n_jobs: int | None) -> int:
    """Threads that ``n_jobs`` stands for.

    A negative number counts back from all cores (-1: all of them), as in scikit-learn. None means
    what scikit-learn's own compiled loops take: as many as BLAS may have, so that environment
    variables, ``threadpool_limits`` and joblib's workers are obeyed; fits that run meanwhile in
    other threads do not count.

    >>> thread_count(3)
    3
    >>> thread_count(-1) >= 1
    True
    """
    if n_jobs == 0:
        raise ValueError("n_jobs=0 means no thread at all: give a number, -1 (all cores) or None.")
    if n_jobs is None:
        return max(_one_thread.allowed(), 1)
    return n_jobs if n_jobs > 0 else max(_cores() + 1 + n_jobs, 1)


@cache
def _cores() -> int:
    """Cores that this process may use; to ask for them takes as long as a small fit."""
    return cpu_count()


class StoppedError(Exception):
    """Someone wants the work to end; what was under way is not complete."""


_stop_check: ContextVar[Callable[[], Any] | None] = ContextVar("stop check", default=None)


@contextmanager
def stopping(stopped: Callable[[], Any]) -> Iterator[None]:
    """Let :func:`check_stop` raise once ``stopped`` is true, also in threads of :class:`Workers`.

    It is for long computations that do not know the fit's time limit, such as those of
    :class:`~maxmargin.backends.cpu.pairs.StringValues`.
    """
    token = _stop_check.set(stopped)
    try:
        yield
    finally:
        _stop_check.reset(token)


def check_stop() -> None:
    """Raise :class:`StoppedError` where the stop check around the caller is true."""
    stopped = _stop_check.get()
    if stopped is not None and stopped():
        raise StoppedError


class Workers:
    """So many threads; with one of them, the caller's own.

    ``stopped`` is asked before every item: once it says so, :class:`StoppedError` is raised. A
    thread of a pool that has work to share in its turn does it alone: to wait for the others of
    its pool, which may all be waiting like it, could take for ever.
    """

    def __init__(self, count: int, stopped: Callable[[], Any] | None = None) -> None:
        self.count, self.stopped = count, stopped

    def for_work(self, nanoseconds: float) -> Workers:
        """Return as many threads as have enough of so much work to pay for their start."""
        if self.count == 1 or nanoseconds >= self.count * _SHARE:
            return self
        return Workers(max(int(nanoseconds // _SHARE), 1), self.stopped)

    def check(self) -> None:
        """Raise :class:`StoppedError` if someone wants the work to end."""
        if self.stopped is not None and self.stopped():
            raise StoppedError

    def map(self, function: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
        """Call the function on every item; returns when all are done, with the first error."""
        items = list(items)

        def work(item: Any) -> Any:
            self.check()
            return function(item)

        if self.count == 1 or len(items) < 2 or _one_thread.works():
            return list(map(work, items))
        own = len(items) <= self.count  # then the caller takes one: a thread less to wake
        futures = [_pool(self.count).submit(copy_context().run, work, item) for item in items[own:]]
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
    return ThreadPoolExecutor(count, thread_name_prefix="maxmargin", initializer=_one_thread.join)


if hasattr(os, "register_at_fork"):  # a forked child has the pool but not its threads
    os.register_at_fork(after_in_child=_pool.cache_clear)
    os.register_at_fork(after_in_child=_cores.cache_clear)  # it may be given others
    os.register_at_fork(  # and other threads' fits are not under way there
        before=_one_thread.lock.acquire,
        after_in_parent=_one_thread.lock.release,
        after_in_child=_one_thread.alone,
    )

ALONE = Workers(1)
