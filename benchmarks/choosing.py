"""The numbers of docs/choosing.md: gaps for a tolerance, and what probabilities cost and are worth.

python benchmarks/choosing.py
"""

from __future__ import annotations

import time

import numpy as np
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_digits, make_classification
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from maxmargin import SVC

COSTS, TOLERANCES = (1.0, 1e2, 1e4), (1e-3, 1e-5, 1e-7)


def gaps() -> None:
    """Print the relative duality gap of 3,000 points for some costs and tolerances."""
    X, y = make_classification(3000, random_state=0)
    print("| | " + " | ".join(f"tol={tol:g}" for tol in TOLERANCES) + " |")
    print("|---" * (len(TOLERANCES) + 1) + "|")
    for C in COSTS:
        fits = [SVC(C=C, gamma=0.2, tol=tol).fit(X, y) for tol in TOLERANCES]
        shown = [f"{fit.certificate_.relative_gap:.1g}" for fit in fits]
        print(f"| C={C:g} | " + " | ".join(shown) + " |")
        steps = [int(fit.n_iter_[0]) for fit in fits]
        print(f"<!-- steps: {steps} -->")


def probabilities() -> None:
    """Print held-out log loss and time of a fit, for the ways to get probabilities."""
    overlapping = make_classification(2000, flip_y=0.2, class_sep=0.5, random_state=0)
    data = {
        "breast cancer": load_breast_cancer(return_X_y=True),
        "digits": load_digits(return_X_y=True),
        "overlapping classes": overlapping,
    }
    machine = SVC(C=10.0)
    ways = {
        "`probability=True`": SVC(C=10.0, probability=True, random_state=0),
        "`CalibratedClassifierCV(ensemble=False)`": CalibratedClassifierCV(machine, ensemble=False),
        "`CalibratedClassifierCV()`": CalibratedClassifierCV(machine),
        '`CalibratedClassifierCV(method="isotonic")`': CalibratedClassifierCV(
            machine, method="isotonic"
        ),
    }
    print("| log loss, seconds | " + " | ".join(data) + " |")
    print("|---" * (len(data) + 1) + "|")
    for name, way in ways.items():
        cells = []
        for X, y in data.values():
            losses, seconds = [], []
            for train, test in StratifiedKFold(5, shuffle=True, random_state=0).split(X, y):
                model = make_pipeline(StandardScaler(), clone(way))
                began = time.process_time()
                model.fit(X[train], y[train])
                seconds.append(time.process_time() - began)
                losses.append(log_loss(y[test], model.predict_proba(X[test])))
            cells.append(f"{np.mean(losses):.3f}, {min(seconds):.2f} s")
        print(f"| {name} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    gaps()
    print()
    probabilities()
