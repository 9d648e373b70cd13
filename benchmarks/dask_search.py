"""Searches on two workers: a part of :mod:`dask`.

``search``: 6 costs, 6 gammas and 5 folds, by threads, by workers and by workers of a collection in
turns; the best of each is told, with its processor seconds.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, NamedTuple

import dask.array as da
import joblib
import numpy as np
from dask_cluster import cluster
from data import load
from distributed import Client
from harness import table
from workloads import COSTS, GAMMAS

from maxmargin import SVC, SVCSearchCV

SCALES = {"covtype": 1.0, "usps": 1e-3, "a9a": 1e-2}  # of the gammas
RUNS, ROWS = 2, 5_000


class Took(NamedTuple):
    """Seconds by the clock and of processors, and the scores."""

    seconds: float
    processor: float
    scores: np.ndarray


def threads(X: Any, y: Any, grid: dict) -> Took:
    """Search by two threads of this process."""
    began, used = time.perf_counter(), time.process_time()
    search = SVCSearchCV(SVC(), grid, cv=5, n_jobs=2).fit(X, y)
    scores = search.cv_results_["mean_test_score"]
    return Took(time.perf_counter() - began, time.process_time() - used, scores)


def workers(client: Client, X: Any, y: Any, grid: dict) -> Took:
    """Search by the workers of a client: of X in memory, or of a collection."""
    before = sum(client.run(time.process_time).values())
    began, used = time.perf_counter(), time.process_time()
    with joblib.parallel_config(backend="dask"):
        search = SVCSearchCV(SVC(), grid, cv=5).fit(X, y)
    seconds, used = time.perf_counter() - began, time.process_time() - used
    used += sum(client.run(time.process_time).values()) - before
    return Took(seconds, used, search.cv_results_["mean_test_score"])


def measure(client: Client, source: str, folder: Path | None, rows: int) -> dict[str, Any]:
    """Compare them on some rows of a data set; a small search warms all of them up."""
    data = load(source, folder, rows)
    X, y = data.X, data.y
    grid = {"C": COSTS, "gamma": (SCALES[source] * GAMMAS).tolist()}
    rows = len(y)
    collection = da.from_array(X, chunks=(rows // 8, -1)), da.from_array(y, chunks=rows // 8)
    small = {"C": [1.0], "gamma": grid["gamma"][:2]}
    for call in (threads, lambda *data: workers(client, *data)):
        call(X[:500], y[:500], small)
    found: dict[str, list[Took]] = {"threads": [], "workers": [], "collection": []}
    for _ in range(RUNS):
        found["threads"].append(threads(X, y, grid))
        found["workers"].append(workers(client, X, y, grid))
        found["collection"].append(workers(client, *collection, grid))
    best = {name: min(some, key=lambda took: took.seconds) for name, some in found.items()}
    apart = max(np.abs(took.scores - best["threads"].scores).max() for took in best.values())
    return {
        "data": source,
        "rows": rows,
        **{name: round(took.seconds, 2) for name, took in best.items()},
        **{f"{name}_cpu": round(took.processor, 2) for name, took in best.items()},
        "ratio": round(best["workers"].seconds / best["threads"].seconds, 2),
        "ratio_collection": round(best["collection"].seconds / best["threads"].seconds, 2),
        "scores_apart": float(apart),
    }


def search(folder: Path | None) -> list[dict]:
    """Measure all data sets."""
    with cluster() as client:
        return [measure(client, source, folder, ROWS) for source in SCALES]


def report(found: list[dict]) -> str:
    """Write a line for each data set."""
    names = list(found[0])
    return table(names, [[str(one[name]) for name in names] for one in found])


PARTS = {"search": (search, report)}
