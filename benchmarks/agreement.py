"""Agreement with scikit-learn: machine x kernel x data set.

    python benchmarks/agreement.py [--data FOLDER] [--output FILE.md]

Both libraries get the same arrays and ``tol``. The dual objectives of both are computed here, in
float64, from ``support_`` and ``dual_coef_``, each pair of classes by itself, and summed. Scores
are on a held-out quarter: accuracy, R^2, or for the one-class machine the share of inliers. The
a9a subset needs the data folder; without it those rows are left out.
"""

from __future__ import annotations

import argparse
import warnings
from functools import partial
from pathlib import Path

import data
import numpy as np
import scipy.sparse as sp
from harness import RESULTS, seconds
from sklearn import svm
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split

import maxmargin
from maxmargin.multiclass import OneVsOne

NAMES = ("iris", "digits", "breast_cancer", "diabetes")
KERNELS = {"linear": {}, "poly": {"coef0": 1.0, "degree": 2}, "rbf": {}, "sigmoid": {}}
MACHINES = {
    "SVC": {"C": 1.0},
    "NuSVC": {"nu": 0.2},
    "OneClassSVM": {"nu": 0.1},
    "SVR": {"C": 10.0, "epsilon": 0.1},
    "NuSVR": {"C": 10.0, "nu": 0.5},
}


def sets(folder):
    """Yield (name, X, y, is regression)."""
    for name in NAMES:
        found = data.load(name, scaling="standardised")
        yield name.replace("_", " "), found.X, found.y, data.is_regression(name)
    if data.available("a9a", folder):
        found = data.load("a9a", folder, 3000, sparse=True)
        yield "a9a, 3000 rows", found.X, found.y, False


def pairs(model, y):
    """Yield (coefficients over all rows, rows) of each binary problem of a fitted machine."""
    coef = model.dual_coef_.toarray() if sp.issparse(model.dual_coef_) else model.dual_coef_
    if not hasattr(model, "classes_"):
        expansions, members = coef, [np.arange(len(y))]
    else:
        scheme = OneVsOne(len(model.classes_))
        expansions = scheme.expansions(coef, model.n_support_)
        members = [rows for rows, _ in scheme.tasks(np.searchsorted(model.classes_, y))]
    for values, rows in zip(expansions, members, strict=True):
        beta = np.zeros(len(y))
        beta[model.support_] = values
        yield beta, rows


def objective(model, K, y):
    """Sum of the dual objectives (as maximised) of a machine's problems."""
    total, name = 0.0, type(model).__name__
    for beta, rows in pairs(model, y):
        if name == "NuSVC":
            beta = beta * model.nu * len(rows) / np.abs(beta).sum()
        total -= 0.5 * beta @ K @ beta
        if name == "SVC":
            total += np.abs(beta).sum()
        elif name in ("SVR", "NuSVR"):
            total += y @ beta - (model.epsilon * np.abs(beta).sum() if name == "SVR" else 0.0)
    return total


def score(model, X, y):
    """Accuracy, R^2, or the share of inliers."""
    return (model.predict(X) == 1).mean() if hasattr(model, "offset_") else model.score(X, y)


def main():
    """Print and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    data.add_option(parser)
    parser.add_argument("--output", type=Path, default=RESULTS / "agreement.md")
    options = parser.parse_args()
    maxmargin.SVC().fit([[0.0], [1.0]], [0, 1])  # compile or load before the clock starts
    lines = [
        "| data | machine | kernel | dual, ours | dual, scikit-learn | relative gap "
        "| KKT violation | status | SVs ours / theirs | score ours / theirs "
        "| fit ours / theirs (s) |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for name, X, y, regression in sets(options.data):
        X, X_test, y, y_test = train_test_split(X, y, random_state=0)
        for machine, parameters in MACHINES.items():
            if regression != machine.endswith("SVR"):
                continue
            for kernel, extra in KERNELS.items():
                settings = {**parameters, **extra, "kernel": kernel}
                ours = getattr(maxmargin, machine)(**settings)
                theirs = getattr(svm, machine)(**settings, cache_size=1000, max_iter=2_000_000)
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", ConvergenceWarning)
                    taken = [seconds(partial(model.fit, X, y)) for model in (ours, theirs)]
                K = ours.kernel_(X)
                c = ours.certificate_
                lines.append(
                    f"| {name} | {machine} | {kernel} | {objective(ours, K, y):.8g} "
                    f"| {objective(theirs, K, y):.8g} | {c.relative_gap:.1e} "
                    f"| {c.kkt_violation:.1e} | {c.status}, {c.definiteness.split(' by ')[0]} "
                    f"| {len(ours.support_)} / {len(theirs.support_)} "
                    f"| {score(ours, X_test, y_test):.4f} / {score(theirs, X_test, y_test):.4f} "
                    f"| {taken[0]:.3f} / {taken[1]:.3f} |"
                )
                print(lines[-1], flush=True)
    options.output.parent.mkdir(parents=True, exist_ok=True)
    header = "# Agreement with scikit-learn\n\n`python benchmarks/agreement.py --data FOLDER`\n\n"
    options.output.write_text(header + "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
