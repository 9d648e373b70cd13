"""Where tasks run: the workers of the active client, or Dask's local scheduler.

Every piece of work is a pure function of its arguments, a task of Dask's. What a worker loses is
therefore made again from what it was made of, by Dask itself; nothing here has to know of it. The
process that fits holds only what is small: weights, sums, which rows are candidates.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import dask
from dask.base import get_scheduler
from dask.callbacks import Callback
from dask.delayed import Delayed
from dask.sizeof import sizeof
from dask.utils import parse_bytes

from maxmargin import memory
from maxmargin.backends.threads import StoppedError
from maxmargin.dask.allocation import keeping_memory
from maxmargin.estimators.distribution import Distribution
from maxmargin.estimators.warn import warn
from maxmargin.evaluation import InseparableError

_PATIENCE = 30.0  # seconds until it is said that a cluster has no workers
_LARGE = 1 << 14  # bytes of an argument from which tasks share it
_INTERVAL = 0.1  # seconds between two looks whether to stop
_FAN_IN = 16  # results that are combined by one task of a reduction
_LOCAL_SHARE = 0.5  # of the memory that is free, that data may take on this machine
_WORKER_SHARE = 0.5  # of a worker's memory limit
MEMORY = "maxmargin.memory-per-worker"  # key of Dask's configuration


class ClusterError(RuntimeError):
    """The cluster was lost, or lost what it held, before the work was done."""


class PartitionError(RuntimeError):
    """A partition cannot be read: what makes it has raised an error, which is the cause of this."""


class Cluster:
    """Runs tasks, and keeps their results where they were made.

    Use :meth:`active`. ``distribution`` counts what was done. ``partitions`` are tasks, one for
    each partition of the data, by which it is found out which of them cannot be read.
    """

    def __init__(self, client: Any = None) -> None:
        self.client = client
        self.partitions: list[Delayed] = []
        self.distribution = Distribution(where=self._where(), workers=self.n_workers)

    @classmethod
    def active(cls) -> Cluster:
        """Return the cluster of the client that Dask would use now, or the local scheduler."""
        owner = getattr(get_scheduler(), "__self__", None)
        if owner is None or not type(owner).__module__.startswith("distributed"):
            return cls()
        if owner.asynchronous:
            raise ClusterError(
                "The active client of Dask is asynchronous, and a fit waits for its answers: make "
                "a Client without asynchronous=True, or fit in a thread of its own."
            )
        if owner.status != "running":
            raise ClusterError(
                f"The active client of Dask is {owner.status}: make a new Client, or close this "
                "one to work on this machine alone."
            )
        return cls(owner)

    # -- what there is -------------------------------------------------------------------------

    def _where(self) -> str:
        if self.client is not None:
            return str(self.client.scheduler.address)
        getter = get_scheduler()
        return "the local scheduler" + (f" ({getter.__module__})" if getter is not None else "")

    def _workers(self) -> dict[str, Any]:
        return (
            self.client.scheduler_info(n_workers=-1)["workers"] if self.client is not None else {}
        )

    @property
    def n_workers(self) -> int:
        """Workers there are now; one on the local scheduler."""
        return max(len(self._workers()), 1) if self.client is not None else 1

    @property
    def n_threads(self) -> int:
        """Threads of all workers."""
        if self.client is None:
            return dask.system.CPU_COUNT
        return max(sum(w["nthreads"] for w in self._workers().values()), 1)

    def budget(self) -> int:
        """Bytes of rows that a worker may keep.

        ``dask.config.set({"maxmargin.memory-per-worker": "500 MB"})`` says how many; otherwise half
        of the smallest worker's memory limit, or of what is free here.
        """
        said = dask.config.get(MEMORY, None)
        if said is not None:
            return int(parse_bytes(said))
        limits = [w["memory_limit"] for w in self._workers().values() if w["memory_limit"]]
        if limits:
            return int(_WORKER_SHARE * min(limits))
        return int(_LOCAL_SHARE * memory.available())

    # -- tasks ---------------------------------------------------------------------------------

    def task(self, function: Callable, *args: Any, name: str | None = None) -> Delayed:
        """Return a task that calls a function; arguments may be tasks, or lists of tasks."""
        label = name or function.__name__.strip("_")
        key = f"maxmargin-{label}-{uuid.uuid4().hex}"
        return dask.delayed(_called, pure=False)(_Sealed(function), *args, dask_key_name=key)

    def total(
        self, tasks: Sequence[Delayed], combine: Callable[[list], Any], name: str = "combine"
    ) -> Delayed:
        """Return a task that combines the results of many, in the order of a tree.

        ``combine`` takes a list of results, or of what it has returned before.
        """
        level = list(tasks)
        while len(level) > _FAN_IN:
            level = [
                self.task(combine, level[k : k + _FAN_IN], name=name)
                for k in range(0, len(level), _FAN_IN)
            ]
        return self.task(combine, level, name=name)

    def keep(self, tasks: Sequence[Delayed]) -> list[Delayed]:
        """Have tasks run now, without waiting, and their results kept where they are made."""
        if self.client is not None:
            return list(self.client.persist(list(tasks)))
        with self._saying_which():
            return list(dask.persist(*tasks))

    def give_up(self, tasks: Sequence[Delayed]) -> None:
        """Cancel tasks that were to be kept: nobody waits for them any more."""
        if self.client is not None:
            from distributed import futures_of

            self.client.cancel(futures_of(list(tasks)))

    def places(self, tasks: Sequence[Delayed]) -> tuple[list[int], list[int]]:
        """Return which worker has the result of each task that is kept, and threads of workers."""
        if self.client is None:
            return [0] * len(tasks), [self.n_threads]
        from distributed import futures_of

        futures = futures_of(list(tasks))
        self.wait(futures, lambda: None)
        owners, workers = self.client.who_has(futures), self._workers()
        if not workers:  # until others come
            return [0] * len(tasks), [1]
        order = {address: k for k, address in enumerate(workers)}
        has = {key: [order[w] for w in there if w in order] for key, there in owners.items()}
        where = [(has.get(task.key) or [k % len(order)])[0] for k, task in enumerate(tasks)]
        return where, [w["nthreads"] for w in workers.values()]

    def run(self, tasks: Iterable[Delayed], stopped: Callable[[], Any] = lambda: None) -> list[Any]:
        """Run tasks and return their results; ``StoppedError`` where somebody says stop."""
        tasks = list(tasks)
        self.distribution.rounds += 1
        run = self._run_on_client if self.client else _run_here
        with self._saying_which():
            results = run(tasks, stopped)
        self.distribution.bytes_to_client += size_of(results)
        return results

    def _run_on_client(self, tasks: list[Delayed], stopped: Callable[[], Any]) -> list[Any]:
        with self.telling_losses():
            futures = self.client.compute(tasks)
            self.wait(futures, stopped)
            return self.client.gather(futures)

    @contextmanager
    def telling_losses(self) -> Iterator[None]:
        """Say in a sentence that the cluster is lost, or its workers, one after the other."""
        try:
            yield
        except Exception as error:
            if _is_loss(error):
                raise self._lost() from error
            if type(error).__name__ == "KilledWorker":
                raise ClusterError(
                    f"Workers died of the same task, one after the other ({error}). Mostly that is "
                    "memory: make partitions smaller, or give workers a higher memory_limit."
                ) from error
            raise

    def wait(
        self, futures: list[Any], stopped: Callable[[], Any], until: str = "ALL_COMPLETED"
    ) -> set[Any]:
        """Wait for futures, or ``until="FIRST_COMPLETED"``; returns those that are done.

        Where somebody says stop they are cancelled, and ``StoppedError`` is raised.
        """
        from distributed import wait

        began, said = time.monotonic(), False
        while True:
            try:
                with self.client.as_current():  # also in threads of ours
                    return wait(futures, _INTERVAL, until).done
            except TimeoutError as error:
                error.__traceback__ = None  # a cycle through frames that have the futures
                if stopped():
                    self.client.cancel(futures)
                    raise StoppedError from None
                if self.client.status not in ("running", "connecting"):
                    raise self._lost() from None
                if not said and time.monotonic() - began > _PATIENCE:
                    said = True
                    self._say_if_deserted()

    def _say_if_deserted(self) -> None:
        if not self._workers():
            warn(
                f"The cluster at {self.distribution.where} has had no worker for "
                f"{_PATIENCE:g} s: waiting for one.",
                UserWarning,
            )

    @contextmanager
    def _saying_which(self) -> Iterator[None]:
        """Say which partition it is whose making has failed, the first time or a later one."""
        try:
            yield
        except (StoppedError, ClusterError, InseparableError):
            raise
        except Exception as error:
            if str(error).startswith("Partition "):
                raise
            number = self._first_failing()
            if number is None:
                raise
            raise PartitionError(
                f"Partition {number} of {len(self.partitions)} cannot be read: "
                f"{type(error).__name__}: {error}"
            ) from error

    def _first_failing(self) -> int | None:
        """Return which partition cannot be read, tried one after the other; None where all can."""
        for number, task in enumerate(self.partitions):
            try:
                with self.telling_losses():
                    self.client.compute(task).result() if self.client else dask.compute(task)
            except ClusterError:
                raise
            except Exception:
                return number
        return None

    def _lost(self) -> ClusterError:
        return ClusterError(
            f"The cluster at {self.distribution.where} was lost after "
            f"{self.distribution.rounds - 1} round(s): its scheduler does not answer, or the rows "
            "that it held are gone and cannot be read again. Start a cluster and fit again; rows "
            "that lie in files (Parquet, Zarr, npy) can be read by any other cluster."
        )

    def once(self, value: Any) -> Any:
        """Return a value as an argument of the tasks of a pass; a large one is shared by them."""
        size = size_of(value)
        if size >= _LARGE:
            return self.share(value)
        self.distribution.bytes_to_workers += size * self.n_workers
        return value

    def share(self, value: Any) -> Any:
        """Send a value to the workers once, for the tasks of many passes to use."""
        self.distribution.bytes_to_workers += size_of(value) * self.n_workers
        if self.client is None:
            return dask.delayed(value, traverse=False, pure=False)
        # a task, and not scattered: what a worker loses of those, nobody can make again
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": 1 << 60}):
            return self.client.submit(_opened, _Sealed(value), pure=False)


class _Sealed:
    """Something as an argument that Dask does not look into."""

    def __init__(self, inside: Any) -> None:
        self.inside = inside


def size_of(value: Any) -> int:
    """Bytes of a value with all that is inside of it; Dask's own measure stops at classes."""
    found, waiting, seen = 0, [value], set()
    while waiting:
        one = waiting.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        if isinstance(one, list | tuple | set):
            waiting += one
        elif isinstance(one, dict):
            waiting += one.values()
        elif type(one).__module__.startswith(("maxmargin", "sklearn")) and hasattr(one, "__dict__"):
            waiting += vars(one).values()
        else:
            found += sizeof(one)
    return found


def _opened(sealed: _Sealed) -> Any:
    return sealed.inside


def _called(sealed: _Sealed, *args: Any) -> Any:
    """Call a function with memory that is kept meanwhile."""
    with keeping_memory():
        return sealed.inside(*args)


def _is_loss(error: BaseException) -> bool:
    """Whether an error means that the cluster, or what it held, is gone."""
    return type(error).__module__.startswith("distributed") and type(error).__name__ in (
        "CommClosedError",
        "FutureCancelledError",
        "CancelledError",
        "FuturesCancelledError",
        "ClosedClientError",
    )


def _run_here(tasks: list[Delayed], stopped: Callable[[], Any]) -> list[Any]:
    """Run tasks on the local scheduler, which asks before each of them whether to stop."""

    def look(key: Any, graph: Any, state: Any) -> None:
        if stopped():
            raise StoppedError

    with Callback(pretask=look):
        return list(dask.compute(*tasks))
