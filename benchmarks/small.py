"""Small data beside scikit-learn: matrices and functions as kernels, searches, single predictions.

    OPENBLAS_NUM_THREADS=1 python benchmarks/small.py [--repeats 7]

CPU milliseconds of all threads, the best of some repeats, one library after the other in one
process: on a busy machine these mean more than the time on the clock.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator

import numpy as np
from sklearn import svm
from sklearn.datasets import load_breast_cancer, load_digits, load_iris
from sklearn.model_selection import GridSearchCV
from sklearn.preprocessing import StandardScaler

from maxmargin import SVC, SVCSearchCV

GRID = {"C": [0.1, 1, 10]}
Case = tuple[str, Callable[[], object], Callable[[], object]]


def product(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Return the linear kernel, as a function of one's own."""
    return A @ B.T


def data_sets() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Return data of 150, 569 and 1,797 rows."""
    X, y = load_breast_cancer(return_X_y=True)
    pixels, digits = load_digits(return_X_y=True)
    return {
        "iris": load_iris(return_X_y=True),
        "breast cancer": (StandardScaler().fit_transform(X), y),
        "digits": (pixels / 16, digits),
    }


def cases(name: str, X: np.ndarray, y: np.ndarray) -> Iterator[Case]:
    """Yield what is measured on a data set: its name, ours and theirs."""
    kernels = {"precomputed": (X @ X.T, "precomputed"), "function": (X, product), "RBF": (X, "rbf")}
    for kind, (data, kernel) in kernels.items():
        ours, theirs = SVC(kernel=kernel), svm.SVC(kernel=kernel)
        yield (
            f"fit, {kind}, {name}",
            lambda ours=ours, data=data: ours.fit(data, y),
            lambda theirs=theirs, data=data: theirs.fit(data, y),
        )
        if name == "iris" or kind == "RBF":
            continue
        reference = GridSearchCV(theirs, GRID)
        for search in (GridSearchCV(ours, GRID), SVCSearchCV(ours, GRID)):
            yield (
                f"{type(search).__name__}, {kind}, {name}",
                lambda search=search, data=data: search.fit(data, y),
                lambda reference=reference, data=data: reference.fit(data, y),
            )
    fitted = SVC().fit(X, y), svm.SVC().fit(X, y)
    yield (
        f"predict a row, RBF, {name}",
        lambda: fitted[0].predict(X[:1]),
        lambda: fitted[1].predict(X[:1]),
    )


def best(work: Callable[[], object], repeats: int) -> float:
    """Return the least CPU milliseconds of some calls; the first of all compiles."""
    work()
    taken = []
    for _ in range(repeats):
        began = time.process_time()
        work()
        taken.append(time.process_time() - began)
    return 1e3 * min(taken)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=7)
    repeats = parser.parse_args().repeats
    print("| | maxmargin, ms | scikit-learn, ms | ratio |\n|---|---|---|---|")
    for name, (X, y) in data_sets().items():
        for case, ours, theirs in cases(name, X, y):
            some = max(repeats // 3, 1) if "Search" in case else repeats
            mine, their = best(ours, some), best(theirs, some)
            print(f"| {case} | {mine:.2f} | {their:.2f} | {mine / their:.2f} |", flush=True)


if __name__ == "__main__":
    main()
