"""Perceptron epochs on covtype: ours against scikit-learn's.

    python benchmarks/perceptron.py [--epochs 10] [--repeats 5]

581,012 rows of 54 standardised features, class 2 against the rest, so many passes without a
stopping rule. Prints a table of seconds a pass, the least of the repeats, in shuffled and in cyclic
order, dense float64, dense float32 and CSR. Both libraries are warmed up on a part of the data.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Perceptron as Reference

from maxmargin.linear.perceptron import Perceptron

DATA = Path(os.environ.get("MAXMARGIN_DATA", "/work/shared/data")) / "covtype.npz"


def load() -> tuple[np.ndarray, np.ndarray]:
    """Return the standardised features and the labels."""
    with np.load(DATA) as stored:
        X, y = stored["X"].astype(np.float64, order="C"), stored["y"] == 2
    X -= X.mean(axis=0)
    X /= np.maximum(X.std(axis=0), 1e-12)
    return X, y


def scaled_csr() -> sp.csr_array:
    """Return the features divided by their largest values, of which most are zero."""
    with np.load(DATA) as stored:
        X = sp.csr_array(stored["X"].astype(np.float64))
    largest = abs(X).max(axis=0).toarray().ravel()
    X.data /= largest[X.indices]
    return X


def seconds_per_epoch(models, X, y, epochs: int, repeats: int) -> list[float]:
    """Return each model's least time of a pass, over fits in turn."""
    times: list[list[float]] = [[] for _ in models]
    for model in models:
        model.fit(X[:1000], y[:1000])
    for _ in range(repeats):
        for model, own in zip(models, times, strict=True):
            begin = time.perf_counter()
            model.fit(X, y)
            own.append((time.perf_counter() - begin) / epochs)
    return [min(own) for own in times]


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--repeats", type=int, default=5)
    asked = parser.parse_args()
    X, y = load()
    forms = {
        "dense float64": X,
        "dense float32": X.astype(np.float32),
        "CSR, scaled": scaled_csr(),
    }
    print("| data | order | scikit-learn, s | maxmargin, s | ratio |\n|---|---|---|---|---|")
    warnings.simplefilter("ignore", ConvergenceWarning)
    for name, data in forms.items():
        for shuffle in (True, False):
            fixed = {"max_iter": asked.epochs, "tol": None, "shuffle": shuffle}
            models = [Reference(**fixed), Perceptron(**fixed)]
            theirs, ours = seconds_per_epoch(models, data, y, asked.epochs, asked.repeats)
            order = "shuffled" if shuffle else "cyclic"
            print(f"| {name} | {order} | {theirs:.4f} | {ours:.4f} | {theirs / ours:.1f} |")


if __name__ == "__main__":
    main()
