"""Cold start: what the first fit costs in a new process, beyond importing scikit-learn and Numba.

    python benchmarks/cold.py small|larger

is one such process and prints a JSON object. :func:`measure` runs it with an empty Numba cache,
where everything is compiled, and again with the cache that this left. The small fit has 569 rows;
the larger one 5,000, enough for the code that larger problems take.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time

SIZES = ("small", "larger")
LIMIT = 600.0  # seconds


def measure(size: str, repeats: int) -> dict:
    """Times with an empty cache and with a filled one, a list of each."""
    from harness import run_once  # not in the process that is measured: it imports NumPy

    runs: dict[str, list] = {"empty": [], "filled": []}
    for _ in range(repeats):
        with tempfile.TemporaryDirectory() as cache:
            for times in runs.values():
                times.append(run_once([__file__, size], LIMIT, {"NUMBA_CACHE_DIR": cache}))
    return runs


def first_fit(size: str) -> dict:
    """Seconds to import the package, to import the peers, to import SVC, and to fit twice."""
    seconds, last = {}, time.perf_counter()

    def lap(name: str) -> None:
        nonlocal last
        seconds[name], last = time.perf_counter() - last, time.perf_counter()

    import maxmargin

    lap("import_package")
    import numba  # noqa: F401
    import sklearn.svm  # noqa: F401
    from sklearn.datasets import load_breast_cancer, make_classification

    lap("import_peers")
    if size == "small":
        X, y = load_breast_cancer(return_X_y=True)
    else:
        X, y = make_classification(5000, 20, random_state=0)
    lap("data")
    machine = maxmargin.SVC
    lap("import_svc")
    machine().fit(X, y)
    lap("first_fit")
    machine().fit(X, y)
    lap("second_fit")
    return seconds


if __name__ == "__main__":
    print(json.dumps(first_fit(sys.argv[1])))
