"""Fits of Dask collections: the certificate is judged by the rows in memory, as that of `svm`.

Each is a problem of `svm` or `linear` whose rows come in two or three partitions, on the local
scheduler of this process.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.certify.data import (
    Data,
    classes_of,
    kernel_with_formula,
    numbers,
    points,
    some_rows,
)
from benchmarks.certify.families import linear, svm
from benchmarks.certify.judge import Claims, Problem
from maxmargin import SVC, SVR, LinearSVC, LinearSVR, LogisticRegression


def problem(random: np.random.Generator) -> Problem:
    """Make a problem in partitions."""
    import dask
    import dask.array as da

    n = some_rows(random, 60) + 6
    X, scale, about = points(random, n, tame=True)
    kernel, formula = kernel_with_formula(random, X.shape[1], scale)
    common: dict[str, Any] = {"C": float(10.0 ** random.uniform(-2, 2)), "n_jobs": 1}
    models: list[Any] = [
        SVC(kernel=kernel, **common),
        SVR(kernel=kernel, **common),
        LinearSVC(loss="hinge", **common),
        LinearSVR(**common),
        LogisticRegression(**common),
    ]
    model = models[random.integers(len(models))]
    regression = isinstance(model, SVR | LinearSVR)
    y = numbers(random, X, scale) if regression else classes_of(random, X, scale, 2)
    rows = -(-n // int(random.integers(2, 4)))
    parts = da.from_array(X, chunks=(rows, X.shape[1])), da.from_array(y, chunks=rows)
    data = Data(X, y, None, formula)

    def fit() -> Any:
        with dask.config.set(scheduler="synchronous"):
            return model.fit(*parts)

    def judge(fitted: Any, claims: Claims) -> None:
        (svm if isinstance(fitted, SVC | SVR) else linear).judge(data, fitted, claims)

    return Problem(f"{n}x{X.shape[1]}, parts of {rows} rows, {about}, {model!r}", fit, judge)
