"""Boosting: parts of :mod:`ensembles`.

``adaboost_stumps``: 200 stumps on 60,000 rows of covtype, beside scikit-learn's.
``adaboost_trees``: 200 trees of depth 3 on the 26 classes of letter. ``boosting_growth``: time and
memory against rows, columns and rounds. ``letter_margins``: the lecture's figure. ``margins``:
AdaBoost, LPBoost and the support vector machine over one dictionary of stumps, in both norms.
``wrong_labels``: test errors against the share of wrong labels. Errors are means over five splits,
with standard errors.
"""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from data import load
from harness import RESULTS, number, table
from sklearn.datasets import (
    load_breast_cancer,
    load_digits,
    make_classification,
    make_gaussian_quantiles,
    make_hastie_10_2,
)
from sklearn.ensemble import AdaBoostClassifier as Theirs
from sklearn.tree import DecisionTreeClassifier as TheirTree

from maxmargin import (
    AdaBoostClassifier,
    BaggingClassifier,
    DecisionTreeClassifier,
    LinearSVC,
    LogitBoostClassifier,
    LPBoostClassifier,
)
from maxmargin.ensemble import BinnedColumns, stump_dictionary
from maxmargin.plotting import MarginDisplay

SPLITS, ROUNDS = 5, 200


def _beside(data: Any, rows: int, ours: Callable[[int], Any], theirs: Callable[[int], Any]) -> dict:
    """Fit both sides to the same splits, in turns; CPU seconds and test errors."""
    ours(0).set_params(n_estimators=2).fit(data.X[:500], data.y[:500])  # compiles
    found: dict[str, Any] = {"rows": rows}
    for seed in range(SPLITS):
        order = np.random.default_rng(seed).permutation(len(data.y))
        fit, test = order[:rows], order[rows:]
        for name, make in (("maxmargin", ours), ("scikit-learn", theirs)):
            model = make(seed)
            began = time.process_time()
            model.fit(data.X[fit], data.y[fit])
            taken = time.process_time() - began
            began = time.process_time()
            wrong = float(np.mean(model.predict(data.X[test]) != data.y[test]))
            side = found.setdefault(name, {"fit": [], "predict": [], "error": []})
            side["fit"].append(taken)
            side["predict"].append(time.process_time() - began)
            side["error"].append(wrong)
    found["new"] = len(test)
    return found


def _report_beside(found: dict) -> str:
    lines = []
    for name in ("maxmargin", "scikit-learn"):
        side = found[name]
        times = [number(min(side[what])) for what in ("fit", "predict")]
        lines.append([name, *times, _mean(side["error"])])
    ratios = [
        f"{min(found['scikit-learn'][what]) / min(found['maxmargin'][what]):.1f}x"
        for what in ("fit", "predict")
    ]
    said = f"{found['rows']} rows, {found['new']} to predict, {ROUNDS} rounds, {SPLITS} splits.\n\n"
    head = ["", "fit, s", "predict, s", "test error"]
    return said + table(head, [*lines, ["ratio", *ratios, ""]])


def _mean(values: list[float]) -> str:
    error = np.std(values, ddof=1) / np.sqrt(len(values))
    return f"{np.mean(values):.4f} ± {error:.4f}"


def stumps(folder: Path | None) -> dict:
    """AdaBoost of stumps on covtype, class 2 against the rest."""
    data = load("covtype", folder, 80_000)
    return _beside(
        data,
        60_000,
        lambda seed: AdaBoostClassifier(n_estimators=ROUNDS, n_jobs=1, random_state=seed),
        lambda seed: Theirs(n_estimators=ROUNDS, random_state=seed),
    )


def trees(folder: Path | None) -> dict:
    """AdaBoost of trees of depth 3 on the 26 letters."""
    data = load("letter", folder, 20_000)
    options = {"n_estimators": ROUNDS}
    return _beside(
        data,
        15_000,
        lambda seed: AdaBoostClassifier(
            DecisionTreeClassifier(max_depth=3), n_jobs=1, random_state=seed, **options
        ),
        lambda seed: Theirs(TheirTree(max_depth=3), random_state=seed, **options),
    )


def _weights(model: Any, tests: list[tuple[int, float]]) -> np.ndarray:
    """Weights of a vote of stumps in the dictionary."""
    a, place = np.zeros(len(tests)), {test: k for k, test in enumerate(tests)}
    for stump, alpha in zip(model.estimators_, model.estimator_weights_, strict=True):
        test = (stump.feature_, stump.threshold_) if stump.feature_ >= 0 else tests[0]
        a[place[test]] += alpha if stump.labels_[1] == model.classes_[1] else -alpha
    return a


def margins(folder: Path | None) -> dict:
    """AdaBoost, LPBoost and the hard-margin machine over the dictionary of all stumps."""
    X, digit = load_digits(return_X_y=True)
    pair = (digit == 3) | (digit == 8)
    data = {
        "breast cancer": load_breast_cancer(return_X_y=True),
        "digits 3 and 8": (X[pair], (digit[pair] == 8).astype(int)),
    }
    found: dict[str, Any] = {}
    for name, (points, y) in data.items():
        order = np.random.default_rng(0).permutation(len(y))
        fit, test = order[: len(y) // 2], order[len(y) // 2 :]
        H, tests = stump_dictionary(points[fit])
        features = np.array([j for j, _ in tests[1:]])
        thresholds = np.array([t for _, t in tests[1:]])
        H_test = np.where(points[test][:, features] > thresholds, 1.0, -1.0)
        H_test = np.column_stack([np.ones(len(test)), H_test])
        sign, truth = (np.where(y[rows] == 1, 1.0, -1.0) for rows in (fit, test))
        machine = LinearSVC(C=np.inf, fit_intercept=False, tol=1e-6, max_iter=-1)
        makes = {
            "AdaBoost, 100 rounds": AdaBoostClassifier(n_estimators=100),
            "AdaBoost, 1,000 rounds": AdaBoostClassifier(n_estimators=1000),
            "AdaBoost, 20,000 rounds": AdaBoostClassifier(n_estimators=20_000),
            "LPBoost, hard margin": LPBoostClassifier(nu=0.0),
            "LPBoost, nu = 0.1": LPBoostClassifier(nu=0.1),
            "SVM, hard margin": machine,
        }
        rows = {}
        for which, model in makes.items():
            began = time.process_time()
            if model is machine:
                a = model.fit(H, y[fit]).coef_[0]
            else:
                a = _weights(model.fit(points[fit], y[fit]), tests)
            taken = time.process_time() - began
            u = sign * (H @ a)
            rows[which] = {
                "l1": float(u.min() / np.abs(a).sum()),
                "l2": float(u.min() / np.sqrt(a @ a)),
                "hypotheses": int((np.abs(a) > 1e-9 * np.abs(a).max()).sum()),
                "error": float(np.mean(truth * (H_test @ a) <= 0)),
                "cpu": taken,
            }
        found[name] = {"rows": len(fit), "dictionary": len(tests), "machines": rows}
    return found


def report_margins(found: dict) -> str:
    """Write a table for each data set."""
    said = []
    for name, part in found.items():
        lines = [
            [
                which,
                *(f"{row[k]:.4f}" for k in ("l1", "l2")),
                str(row["hypotheses"]),
                f"{row['error']:.3f}",
                number(row["cpu"]),
            ]
            for which, row in part["machines"].items()
        ]
        head = ["", "least margin, l1", "least margin, l2", "stumps", "test error", "CPU, s"]
        about = f"{name}: {part['rows']} rows, {part['dictionary']} stumps in the dictionary"
        said.append(f"**{about}**\n\n{table(head, lines)}")
    return "\n\n".join(said)


def wrong_labels(folder: Path | None) -> dict:
    """Test errors with 0 to 30 % of the training labels turned round."""

    def quantiles(seed: int) -> tuple:
        return make_gaussian_quantiles(n_samples=4000, n_features=5, n_classes=2, random_state=seed)

    def hastie(seed: int) -> tuple:
        X, y = make_hastie_10_2(4000, random_state=seed)
        return X, (y > 0).astype(int)

    def clusters(seed: int) -> tuple:
        return make_classification(
            4000, 20, n_informative=5, flip_y=0, class_sep=1.2, random_state=seed
        )

    short = {"n_estimators": 300, "learning_rate": 0.1}
    makes = {
        "AdaBoost": lambda: AdaBoostClassifier(n_estimators=300),
        "GentleBoost, steps 0.1": lambda: LogitBoostClassifier(loss="exponential", **short),
        "LogitBoost, steps 1": lambda: LogitBoostClassifier(n_estimators=300, learning_rate=1.0),
        "LogitBoost, steps 0.1": lambda: LogitBoostClassifier(**short),
        "50 bagged trees": lambda: BaggingClassifier(
            DecisionTreeClassifier(), 50, random_state=0, n_jobs=1
        ),
    }
    found: dict[str, Any] = {}
    for name, make in (("quantiles", quantiles), ("hastie", hastie), ("clusters", clusters)):
        for noise in (0.0, 0.1, 0.2, 0.3):
            for seed in range(SPLITS):
                X, y = make(seed)
                turned = np.random.default_rng(seed).random(1000) < noise
                labels = np.where(turned, 1 - y[:1000], y[:1000])
                for which, model in makes.items():
                    wrong = 1 - model().fit(X[:1000], labels).score(X[1000:], y[1000:])
                    row = found.setdefault(name, {}).setdefault(which, {})
                    row.setdefault(f"{noise:.0%}", []).append(float(wrong))
    return found


def report_wrong_labels(found: dict) -> str:
    """Write a table for each data set."""
    said = []
    for name, rows in found.items():
        head = ["", *next(iter(rows.values()))]
        lines = [[which, *map(_mean, row.values())] for which, row in rows.items()]
        said.append(f"**{name}**: 1,000 rows, stumps\n\n{table(head, lines)}")
    return "\n\n".join(said)


def growth(folder: Path | None) -> dict:
    """How the time and memory of 100 stumps grow with rows, columns and rounds, on covtype."""
    data = load("covtype", folder, 480_000)
    AdaBoostClassifier(n_estimators=2, n_jobs=1).fit(data.X[:500], data.y[:500])
    found: dict[str, Any] = {}
    whole = (120_000, 54, 100)
    cases = [(n, 54, 100) for n in (30_000, 60_000, 120_000, 240_000, 480_000)]
    cases += [(120_000, d, 100) for d in (5, 10, 27)]
    cases += [(120_000, 54, rounds) for rounds in (25, 50, 200)]
    for n, d, rounds in cases:
        X, y = np.ascontiguousarray(data.X[:n, :d]), data.y[:n]
        best, peak = np.inf, 0.0
        for _ in range(3 if (n, d, rounds) != whole else 5):
            began = time.process_time()
            AdaBoostClassifier(n_estimators=rounds, n_jobs=1).fit(X, y)
            best = min(best, time.process_time() - began)
        if d == 54 and rounds == 100:
            coded = BinnedColumns.of(X).nbytes
            tracemalloc.start()
            AdaBoostClassifier(n_estimators=2, n_jobs=1, store_distributions=False).fit(X, y)
            peak = tracemalloc.get_traced_memory()[1] / coded
            tracemalloc.stop()
        found[f"{n} x {d}, {rounds} rounds"] = {"cpu": best, "memory": peak}
    return found


def report_growth(found: dict) -> str:
    """Write a line for each size."""
    lines = [
        [name, number(row["cpu"]), f"{row['memory']:.2f}" if row["memory"] else ""]
        for name, row in found.items()
    ]
    return table(["", "CPU, s", "most memory, in units of the coded columns"], lines)


def letter_margins(folder: Path | None) -> dict:
    """The lecture's figure: margins on letter after 5, 100 and 1,000 rounds; writes its picture."""
    data = load("letter", folder, 20_000)
    X, y, new, truth = data.X[:16_000], data.y[:16_000], data.X[16_000:], data.y[16_000:]
    began = time.process_time()
    tree = DecisionTreeClassifier(max_depth=12)
    model = AdaBoostClassifier(tree, n_estimators=1000, n_jobs=1).fit(X, y)
    found: dict[str, Any] = {"cpu": time.process_time() - began}
    scores = list(model.staged_score(new, truth))
    for rounds in (5, 100, 1000):
        margins = model.margins(X, y, rounds)
        found[str(rounds)] = {
            "train": float(model.train_errors_[rounds - 1]),
            "test": 1.0 - scores[rounds - 1],
            "least": float(margins.min()),
            "small": float(np.mean(margins <= 0.5)),
        }
    import matplotlib

    matplotlib.use("Agg")
    display = MarginDisplay.from_estimator(model, X, y, rounds=[5, 100, 1000], cumulative=True)
    display.ax_.set_title("AdaBoost on letter: margins of the training rows")
    display.figure_.savefig(RESULTS.parents[1] / "docs" / "images" / "letter_margins.png", dpi=80)
    return found


def report_letter_margins(found: dict) -> str:
    """Write a line for each number of rounds."""
    lines = [
        [rounds, *(f"{row[k]:.4f}" for k in ("train", "test", "least", "small"))]
        for rounds, row in found.items()
        if rounds != "cpu"
    ]
    head = ["rounds", "training error", "test error", "least margin", "share of margins up to 0.5"]
    said = f"Trees of depth 12, 16,000 rows, 4,000 for testing; {found['cpu']:.3g} s of CPU.\n\n"
    return said + table(head, lines)


PARTS = {
    "adaboost_stumps": (stumps, _report_beside),
    "adaboost_trees": (trees, _report_beside),
    "boosting_growth": (growth, report_growth),
    "letter_margins": (letter_margins, report_letter_margins),
    "margins": (margins, report_margins),
    "wrong_labels": (wrong_labels, report_wrong_labels),
}
