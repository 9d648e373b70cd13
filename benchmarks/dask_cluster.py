"""What the parts of :mod:`dask` share: the cluster, the data, and how often and how long."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
from dask.distributed import Client, LocalCluster
from data import load


@contextmanager
def cluster(workers: int = 2, memory: str = "6GB") -> Iterator[Client]:
    """Two worker processes with one thread each, and the client that uses them."""
    with (
        LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            memory_limit=memory,
            dashboard_address=":0",
            processes=True,
        ) as local,
        Client(local) as client,
    ):
        client.run(_warm)
        yield client


def _warm() -> None:
    """Load, in a worker, what a first fit would load."""
    from maxmargin import SVC, LinearSVC, LogisticRegression

    random = np.random.default_rng(0)
    X, y = random.normal(size=(3000, 5)), random.integers(0, 2, 3000)
    for machine in (SVC(C=0.1), LinearSVC(), LogisticRegression()):
        machine.fit(X, y)


def covtype(folder: Path | None, rows: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Class 2 against the rest, columns of mean zero and variance one, in the order of seed 0."""
    data = load("covtype", folder, rows, "standardised")
    return data.X, data.y


def in_partitions(X: np.ndarray, y: np.ndarray, count: int) -> tuple[Any, Any]:
    """Return rows as Dask arrays of so many partitions, which the workers keep."""
    step = -(-len(X) // count)
    points = da.from_array(X, chunks=(step, X.shape[1])).persist()
    labels = da.from_array(y, chunks=step).persist()
    for collection in (points, labels):
        collection.sum().compute()  # wait until they are there
    return points, labels
