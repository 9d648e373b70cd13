"""A search on two workers of a LocalCluster against the same search by two threads.

``python benchmarks/dask_search.py --data FOLDER [--rows 5000] [covtype usps a9a]``: 6 costs, 6
gammas and 5 folds, by threads, by workers and by workers of a collection in turns; the best of each
is told, with its processor seconds, which say more on a machine that others use, too.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any, NamedTuple

import dask.array as da
import joblib
import numpy as np
from data import add_option, load
from distributed import Client, LocalCluster
from workloads import COSTS, GAMMAS

from maxmargin import SVC, SVCSearchCV

SCALES = {"covtype": 1.0, "usps": 1e-3, "a9a": 1e-2}  # of the gammas
RUNS = 2


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


def main() -> None:
    """Measure some data sets, and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    add_option(parser)
    parser.add_argument("--rows", type=int, default=5_000)
    parser.add_argument("sources", nargs="*", default=list(SCALES))
    given = parser.parse_args()
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
        ) as cluster,
        Client(cluster) as client,
    ):
        for source in given.sources:
            print(measure(client, source, given.data, given.rows), flush=True)


if __name__ == "__main__":
    main()
