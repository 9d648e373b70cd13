"""Small data beside scikit-learn: five data sets, eight machines, their fits and predictions.

    OPENBLAS_NUM_THREADS=1 python benchmarks/small.py [--repeats 7] [--only fit]

CPU milliseconds of all threads, the best of some repeats, one library after the other in one
process: on a busy machine these mean more than the time on the clock. A ratio is our time over
scikit-learn's; below the table are the geometric mean and the worst of every kind of row.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from data import is_regression, load
from harness import CPU, geometric_mean, times
from sklearn import linear_model, svm
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV

import maxmargin
from maxmargin import SVC, SVCSearchCV

NAMES = ("iris", "wine", "breast_cancer", "digits", "diabetes")
KERNELS = ("rbf", "linear", "poly")
SEARCHED = ("breast_cancer", "digits")
GRID = {"C": [0.1, 1, 10]}
Case = tuple[str, str, Callable[[], object], Callable[[], object]]  # kind, name, ours, theirs


def product(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Return the linear kernel, as a function of one's own."""
    return A @ B.T


def machines(name: str) -> Iterator[tuple[str, Any, Any]]:
    """Yield the machines for a data set: a name, ours and scikit-learn's."""
    regression = is_regression(name)
    for kind in ("SVR", "OneClassSVM") if regression else ("SVC", "NuSVC", "OneClassSVM"):
        nu = {"nu": 0.2} if kind == "NuSVC" else {}
        for kernel in KERNELS:
            pair = (getattr(library, kind)(kernel=kernel, **nu) for library in (maxmargin, svm))
            yield f"{kind}, {kernel}", *pair
    kinds = {"LinearSVR": svm} if regression else {"LinearSVC": svm}
    if not regression:
        kinds |= {"LogisticRegression": linear_model, "Perceptron": linear_model}
    for kind, library in kinds.items():
        yield kind, getattr(maxmargin, kind)(), getattr(library, kind)()


def fits_and_predictions(name: str, X: np.ndarray, y: np.ndarray) -> Iterator[Case]:
    """Yield the fit of every machine, its predictions for all rows and for one."""
    for which, ours, theirs in machines(name):
        case = f"{which}, {name}"
        yield "fit", case, lambda m=ours: m.fit(X, y), lambda m=theirs: m.fit(X, y)
        for kind, Z in (("predict", X), ("predict a row", X[:1])):
            yield kind, case, lambda m=ours, Z=Z: m.predict(Z), lambda m=theirs, Z=Z: m.predict(Z)


def given_kernels(name: str, X: np.ndarray, y: np.ndarray) -> Iterator[Case]:
    """Yield fits of matrices and functions as kernels, and searches with them."""
    for kind, data, kernel in (("precomputed", X @ X.T, "precomputed"), ("function", X, product)):
        ours, theirs = SVC(kernel=kernel), svm.SVC(kernel=kernel)
        case = f"SVC, {kind}, {name}"
        fit = lambda m, data=data: m.fit(data, y)  # noqa: E731
        yield "fit, given", case, lambda m=ours, f=fit: f(m), lambda m=theirs, f=fit: f(m)
        if name not in SEARCHED:
            continue
        for search in (GridSearchCV(ours, GRID), SVCSearchCV(ours, GRID)):
            reference = GridSearchCV(theirs, GRID)
            yield (
                type(search).__name__,
                case,
                lambda m=search, f=fit: f(m),
                lambda m=reference, f=fit: f(m),
            )


def best(work: Callable[[], object], repeats: int) -> float:
    """Return the least CPU milliseconds of some calls; the first of all compiles."""
    work()
    return 1e3 * min(times(work, repeats, CPU))


def main() -> None:
    """Print the table, and what it comes to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--only", default="", help="rows whose first two columns hold this")
    options = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)  # of LIBLINEAR
    ratios: dict[str, list[tuple[float, str]]] = {}
    print("| | | maxmargin, ms | scikit-learn, ms | ratio |\n|---|---|---|---|---|")
    for name in NAMES:
        found = load(name, scaling="standardised")
        X, y = found.X, found.y
        cases = list(fits_and_predictions(name, X, y))
        cases += [] if is_regression(name) else given_kernels(name, X, y)
        for kind, case, ours, theirs in cases:
            if kind.startswith("predict"):
                pass  # of the machines fitted just before
            elif options.only not in f"{kind}, {case}":
                ours(), theirs()
                continue
            if options.only not in f"{kind}, {case}":
                continue
            some = max(options.repeats // 3, 1) if "Search" in kind else options.repeats
            mine, their = best(ours, some), best(theirs, some)
            ratios.setdefault(kind, []).append((mine / their, case))
            print(
                f"| {kind} | {case} | {mine:.2f} | {their:.2f} | {mine / their:.2f} |", flush=True
            )
    print("\n| | rows | geometric mean | worst |\n|---|---|---|---|")
    for kind, found in ratios.items():
        mean, (worst, case) = geometric_mean([ratio for ratio, _ in found]), max(found)
        print(f"| {kind} | {len(found)} | {mean:.2f} | {worst:.2f} ({case}) |")


if __name__ == "__main__":
    main()
