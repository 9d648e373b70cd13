"""Kernel machines on two workers: parts of :mod:`dask`.

``kernel``: an RBF SVC on 100,000 rows of covtype against ``SVC(n_jobs=2)`` in one process, at equal
``tol``. ``predict``: 2,000,000 rows by two workers against one. ``killed``: fits of which a worker
is killed at a random moment, against one that nobody disturbs.
"""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
from dask_cluster import cluster, covtype, in_partitions
from harness import number, table

from maxmargin import SVC, LogisticRegression

ROWS, PARTITIONS = 100_000, 8
PREDICTED, VECTORS = 2_000_000, 300
KILLS, KILLED_ROWS = 5, {SVC: 12_000, LogisticRegression: 400_000}


def kernel(folder: Path | None) -> dict:
    """Fit both sides once; each takes the better part of a minute."""
    X, y = covtype(folder, ROWS)
    began = time.perf_counter()
    alone = SVC(n_jobs=2).fit(X, y)
    in_one = time.perf_counter() - began
    with cluster() as client:
        points, labels = in_partitions(X, y, PARTITIONS)
        began = time.perf_counter()
        spread = SVC().fit(points, labels)
        on_two = time.perf_counter() - began
        peak = max(client.run(_peak).values())
    return {
        "seconds": {"one process, n_jobs=2": in_one, "two workers": on_two},
        "dual": [alone.certificate_.dual, spread.certificate_.dual],
        "gap": [alone.certificate_.relative_gap, spread.certificate_.relative_gap],
        "converged": [bool(alone.certificate_.converged), bool(spread.certificate_.converged)],
        "support": [len(alone.support_), len(spread.support_)],
        "distribution": str(spread.distribution_),
        "peak": peak,
    }


def _peak() -> float:
    """Return the most memory that a worker has had, in MB."""
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def kernel_report(found: dict) -> str:
    """Write the two times, and how far the objectives are apart."""
    one = next(iter(found["seconds"].values()))
    apart = abs(found["dual"][1] - found["dual"][0]) / found["dual"][0]
    rows = [
        [name, number(s), number(s / one), number(g), str(v)]
        for (name, s), g, v in zip(
            found["seconds"].items(), found["gap"], found["support"], strict=True
        )
    ]
    return "\n\n".join(
        [
            f"covtype, {ROWS:,} rows, {PARTITIONS} partitions, C=1, gamma='scale', tol=1e-3:",
            table(["", "seconds", "ratio", "relative gap", "support vectors"], rows),
            f"Objectives apart by {apart:.2g}; all certified: {all(found['converged'])}. "
            f"{found['distribution']}. Peak of a worker {found['peak']:,.0f} MB.",
        ]
    )


def predict(folder: Path | None) -> dict:
    """Predict made up rows, on one worker and on two."""
    random = np.random.default_rng(0)
    X = random.normal(size=(2000, 20))
    model = SVC(C=10.0).fit(X[:VECTORS], (X[:VECTORS, 0] * X[:VECTORS, 1] > 0).astype(int))
    found: dict[str, Any] = {"vectors": len(model.support_), "seconds": {}}
    for workers in (1, 2):
        with cluster(workers):
            points = da.random.default_rng(0).normal(size=(PREDICTED, 20), chunks=(62_500, 20))
            points = points.persist()
            points.sum().compute()
            times = []
            for _ in range(3):
                began = time.perf_counter()
                total = int(model.predict(points).sum().compute())
                times.append(time.perf_counter() - began)
            found["seconds"][str(workers)], found[f"sum {workers}"] = min(times), total
    return found


def predict_report(found: dict) -> str:
    """Write the speed-up."""
    one, two = found["seconds"]["1"], found["seconds"]["2"]
    return (
        f"{PREDICTED:,} rows x 20, {found['vectors']} support vectors: {number(one)} s on one "
        f"worker, {number(two)} s on two, {number(one / two)} times as fast; the same answers: "
        f"{found['sum 1'] == found['sum 2']}."
    )


def killed(folder: Path | None) -> dict:
    """Kill a worker at random moments of a fit; the nanny starts another."""
    random, found = np.random.default_rng(0), {}
    for machine, rows in KILLED_ROWS.items():
        X, y = covtype(folder, rows)
        points = da.from_array(X, chunks=(rows // PARTITIONS, 54))
        labels = da.from_array(y, chunks=rows // PARTITIONS)
        with cluster():
            began = time.perf_counter()
            whole = machine().fit(points, labels)
            usual = time.perf_counter() - began
        runs: list[dict] = []
        while len(runs) < KILLS:
            moment = float(random.uniform(0.05, 0.95)) * usual
            with cluster() as client:
                timer = threading.Timer(moment, _kill_one, [client])
                timer.start()
                began = time.perf_counter()
                model = machine().fit(points, labels)
                took = time.perf_counter() - began
                timer.join()
            if moment > took:
                continue  # it was over: nobody was killed in the middle
            apart = abs(model.certificate_.dual - whole.certificate_.dual)
            runs.append(
                {
                    "moment": moment,
                    "seconds": took,
                    "apart": apart / abs(whole.certificate_.dual),
                    "converged": bool(model.certificate_.converged),
                }
            )
        found[machine.__name__] = {"usual": usual, "runs": runs}
    return found


def _kill_one(client: Any) -> None:
    """Kill a worker's process, as a machine that is switched off would."""
    import os
    import signal

    pids = client.run(os.getpid, on_error="ignore")
    os.kill(next(iter(pids.values())), signal.SIGKILL)


def killed_report(found: dict) -> str:
    """Write a line for each kill."""
    lines = [
        [
            name,
            number(run["moment"]),
            number(run["seconds"]),
            number(about["usual"]),
            f"{run['apart']:.1g}",
            "yes" if run["converged"] else "no",
        ]
        for name, about in found.items()
        for run in about["runs"]
    ]
    head = [
        "machine",
        "killed after (s)",
        "fit (s)",
        "undisturbed (s)",
        "objective apart",
        "certified",
    ]
    return table(head, lines)


PARTS = {
    "kernel": (kernel, kernel_report),
    "predict": (predict, predict_report),
    "killed": (killed, killed_report),
}
