"""One measurement, in a process of its own: load, warm up, fit, predict, examine.

    python benchmarks/measure.py KEY LIBRARY [--data FOLDER] [--quick]

prints a JSON object as its last line. The clock runs during ``fit`` and ``predict`` only. Before
it, the library fits and predicts a small part of the same data, so that compiling or loading code
is not counted: some rows as they are, and, for the code that larger problems take, more rows of the
two largest classes. Peak memory is the largest resident size during the fit beyond that just
before it. Afterwards the objective is recomputed (:mod:`dual`) and doubts are listed
(:mod:`libraries`).
"""

from __future__ import annotations

import argparse
import ctypes
import json
import resource
import sys
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

import data
import numpy as np
from dual import examine
from harness import median, seconds, times
from libraries import OURS, AbsentError, doubts, estimator, listening, search
from workloads import WORKLOADS, Workload, load

SMALL, LARGER = 300, 4000  # rows of the two warm-ups
CALLS, ENOUGH = 5, 1.0  # predict is called so many times, or until so many seconds are spent


def measure(workload: Workload, library: str, folder: Path | None, quick: bool) -> dict:
    """Fit, predict and examine one machine."""
    given = load(workload, folder, quick)
    _warm_up(workload, library, given)
    model = estimator(library, workload.machine, workload.parameters)
    with listening() as heard:
        before = _reset_peak()
        fit = seconds(lambda: model.fit(given.X, given.y))
        peak = _peak() - before
        predict = _predict_seconds(model, given)
    found = examine(model, given.X, given.y)
    return {
        "fit": fit,
        "predict": predict,
        "peak_bytes": peak,
        "rows": given.X.shape[0],
        "features": given.X.shape[1],
        "predicted_rows": given.X_new.shape[0],
        "support_vectors": len(model.support_),
        "score": float(model.score(given.X_new, given.y_new)) if predict else None,
        "iterations": int(np.sum(model.n_iter_)),
        "code_path": sorted(set(heard.log)),
        "certificate": _certificate(model) if library == OURS else None,
        **asdict(found),
        "doubts": doubts(library, model, heard, found),
    }


def measure_search(workload: Workload, library: str, folder: Path | None, quick: bool) -> dict:
    """Run one search over C and gamma; the fit of a search has no single objective to check."""
    given = load(workload, folder, quick)
    grid = {name: values[:: 2 if quick else 1] for name, values in workload.grid.items()}
    few = np.random.default_rng(0).permutation(len(given.y))[:SMALL]
    first = {name: values[:1] for name, values in grid.items()}
    search(library, first).fit(given.X[few], given.y[few])
    searcher = search(library, grid)
    with listening() as heard:
        fit = seconds(lambda: searcher.fit(given.X, given.y))
    best = searcher.best_estimator_
    return {
        "fit": fit,
        "rows": given.X.shape[0],
        "features": given.X.shape[1],
        "best_params": searcher.best_params_,
        "best_score": float(searcher.best_score_),
        "mean_test_score": np.asarray(searcher.cv_results_["mean_test_score"]).tolist(),
        "code_path": sorted(set(heard.log)),
        "doubts": doubts(library, best, heard, examine(best, given.X, given.y)),
    }


def _warm_up(workload: Workload, library: str, given: data.Data) -> None:
    """Fit and predict two small parts of the data."""
    order = np.random.default_rng(0).permutation(len(given.y))
    some = order[:SMALL]
    if workload.machine in ("SVC", "NuSVC"):
        classes, counts = np.unique(given.y, return_counts=True)
        order = order[np.isin(given.y[order], classes[np.argsort(counts)[-2:]])]
    for rows in (some, order[:LARGER]):
        model = estimator(library, workload.machine, workload.parameters)
        model.fit(given.X[rows], given.y[rows])
        model.predict(given.X[rows])


def _predict_seconds(model, given: data.Data) -> float | None:
    """Median over a few calls: the shortest predictions take some hundredths of a second."""
    if given.X_new.shape[0] == 0:
        return None
    return median(times(lambda: model.predict(given.X_new), CALLS, enough=ENOUGH))


def _reset_peak() -> int:
    """Make the peak the present size, where the system can, and return it in bytes."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)  # what the warm-up freed but the C library has kept
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
    return _peak()


def _peak() -> int:
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def _certificate(model) -> dict:
    names = ("status", "primal", "dual", "relative_gap", "kkt_violation", "infeasibility")
    certificate = asdict(model.certificate_)
    return {name: certificate[name] for name in names}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("key", choices=WORKLOADS)
    parser.add_argument("library")
    data.add_option(parser)
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    workload = WORKLOADS[options.key]
    function = measure_search if workload.machine == "search" else measure
    try:
        result = function(workload, options.library, options.data, options.quick)
    except AbsentError as error:
        result = {"absent": str(error)}
    print("\n" + json.dumps(result))


if __name__ == "__main__":
    main()
