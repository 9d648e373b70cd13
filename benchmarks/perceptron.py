"""Perceptron epochs on covtype: ours against scikit-learn's.

    python benchmarks/perceptron.py --data FOLDER [--epochs 10] [--repeats 5]

581,012 rows of 54 features, class 2 against the rest, so many passes without a stopping rule.
Seconds a pass, the least of the repeats, in shuffled and in cyclic order, dense float64 and float32
(standardised) and CSR (columns over their largest value). Both libraries are warmed up on a part of
the data and take turns. Results go to ``results/perceptron.json`` and ``results/perceptron.md``.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from data import add_option, load
from harness import RESULTS, Records, environment, in_turns, in_words, table
from libraries import OURS, SKLEARN
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Perceptron as Reference

from maxmargin import Perceptron


def forms(folder: Path | None) -> dict[str, tuple]:
    """Covtype dense in both precisions, and sparse."""
    dense = load("covtype", folder, scaling="standardised", labels="signs")
    csr = sp.csr_array(load("covtype", folder, sparse=True, labels="signs").X)
    largest = abs(csr).max(axis=0).toarray().ravel()
    csr.data /= largest[csr.indices]
    return {
        "dense float64": (dense.X, dense.y),
        "dense float32": (dense.X.astype(np.float32), dense.y),
        "CSR, scaled": (csr, dense.y),
    }


def report(records: Records) -> str:
    """The table."""
    lines = []
    for key, row in records.items():
        if key != "machine":
            theirs, ours = row[SKLEARN], row[OURS]
            lines.append([*key.split("; "), f"{theirs:.4f}", f"{ours:.4f}", f"{theirs / ours:.1f}"])
    header = ["data", "order", f"{SKLEARN}, s a pass", f"{OURS}, s a pass", "ratio"]
    parts = ["# The perceptron on covtype", "`python benchmarks/perceptron.py --data FOLDER`"]
    parts += [in_words(records["machine"]), table(header, lines)]
    return "\n\n".join(parts) + "\n"


def main() -> None:
    """Measure, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_option(parser)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args()
    records = Records(options.output / "perceptron.json")
    records["machine"] = environment()
    warnings.simplefilter("ignore", ConvergenceWarning)
    for name, (X, y) in forms(options.data).items():
        for shuffle in (True, False):
            fixed = {"max_iter": options.epochs, "tol": None, "shuffle": shuffle, "random_state": 0}
            models = {SKLEARN: Reference(**fixed), OURS: Perceptron(**fixed)}
            for model in models.values():
                model.fit(X[:1000], y[:1000])
            works = {side: lambda m=m, X=X, y=y: m.fit(X, y) for side, m in models.items()}
            taken = in_turns(works, options.repeats)
            key = f"{name}; {'shuffled' if shuffle else 'cyclic'}"
            records[key] = {side: min(own) / options.epochs for side, own in taken.items()}
            records.save()
            print(f"{key}: {records[key]}", flush=True)
    records.write(report(records))
    print(report(records))


if __name__ == "__main__":
    main()
