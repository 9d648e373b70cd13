"""Run scikit-learn's own tests against the estimators of this package.

    python tests/sklearn_suites/run.py                 # all suites, one line each
    python tests/sklearn_suites/run.py ridge -v        # one, with every unlisted failure
    python tests/sklearn_suites/run.py ridge -k alpha -x   # pytest's output for some tests
    python tests/sklearn_suites/run.py ridge --theirs  # scikit-learn's own classes instead

The share is of the tests that create one of our estimators, without ``internal``, ``difference``
and ``theirs`` exceptions (see ``exceptions/``); ``open`` ones count as failures.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
SUITES = {
    "svm": "svm.tests.test_svm svm.tests.test_sparse",
    "logistic": "linear_model.tests.test_logistic",
    "linear_base": "linear_model.tests.test_base linear_model.tests.test_perceptron",
    "ridge": "linear_model.tests.test_ridge",
    "linear_common": "linear_model.tests.test_common linear_model.tests.test_ransac",
    "kernel_ridge": "tests.test_kernel_ridge",
    "kernel_pca": "decomposition.tests.test_kernel_pca",
    "kernel_approximation": "tests.test_kernel_approximation",
    "gaussian_process": "gaussian_process.tests.test_gpr",
    "boosting": "ensemble.tests.test_weight_boosting",
    "bagging": "ensemble.tests.test_bagging",
    "forest": "ensemble.tests.test_forest",
    "tree": "tree.tests.test_tree tree.tests.test_monotonic_tree tree.tests.test_export",
    "search": "model_selection.tests.test_search",
    "halving": "model_selection.tests.test_successive_halving",
    "validation": "model_selection.tests.test_validation",
    "multiclass": "tests.test_multiclass",
    "calibration": "tests.test_calibration",
}


def run(suite: str, extra: list[str], theirs: bool = False, show: bool = False) -> dict:
    """Run one suite in a process of its own; return what its tests said."""
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder) / "result.json"
        environment = os.environ | {
            "MAXMARGIN_SUITE": suite,
            "MAXMARGIN_RESULT": str(result),
            "PYTHONPATH": os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")]),
        }
        if theirs:
            environment["MAXMARGIN_THEIRS"] = "1"
        modules = [f"sklearn.{module}" for module in SUITES[suite].split()]
        plain = ["-c", os.devnull, "--rootdir", folder, "-p", "no:cacheprovider", "-p", "no:xdist"]
        plain.append("--slow")  # every parameter of each test, see conftest.py
        command = [sys.executable, "-m", "pytest", "-p", "swapped", *plain, "-q", *extra]
        done = subprocess.run(
            [*command, "--pyargs", *modules],
            env=environment,
            cwd=HERE.parents[1],
            capture_output=not show,
            text=True,
        )
        if not result.exists():
            raise RuntimeError(f"{suite} did not run: {done.stdout}\n{done.stderr}")
        return json.loads(result.read_text())


def share(result: dict) -> float:
    """Return the part of the tests that count that pass."""
    failures = len(result["failed"]) + result["excepted"].get("open", 0)
    return result["passed"] / max(result["passed"] + failures, 1)


def main() -> None:
    """Print one line for each suite."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("suites", nargs="*", choices=[*SUITES, []], help="all without any")
    parser.add_argument("-v", "--verbose", action="store_true", help="print unlisted failures")
    parser.add_argument("--theirs", action="store_true", help="scikit-learn's own classes")
    options, extra = parser.parse_known_args()
    for suite in options.suites or SUITES:
        result = run(suite, extra, options.theirs, show=bool(extra))
        counts = ", ".join(f"{n} {kind}" for kind, n in sorted(result["excepted"].items()))
        print(
            f"{suite:22}{share(result):7.1%}  {result['passed']} passed, "
            f"{len(result['failed'])} failed, excepted: {counts or 'none'}",
            flush=True,
        )
        for line in result["needless"]:
            print(f"    needless exception: {line}")
        if options.verbose:
            for test, why in result["failed"].items():
                print(f"    {test}: {' '.join(why.split())[:150]}")


if __name__ == "__main__":
    main()
