"""Trees and extremely randomised trees: parts of :mod:`ensembles`.

``extra_trees``: 100 trees on covtype (100,000 x 54, seven classes), california housing and letter,
fit and predict, and the test error over five seeds. ``trees``: one exhaustive tree, from a stump to
a full one. ``trees_growth``: time against rows, columns and trees, and memory. ``k_study``: error,
bias and variance against K, with noise in the labels.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from data import is_regression, load
from harness import in_turns, number, seconds, table
from sklearn.ensemble import ExtraTreesClassifier as TheirForest
from sklearn.ensemble import ExtraTreesRegressor as TheirRegressor
from sklearn.tree import DecisionTreeClassifier as TheirTree
from sklearn.tree import DecisionTreeRegressor as TheirTreeRegressor

from maxmargin import (
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
)
from maxmargin.ensemble import BinnedColumns, k_study

TREES, SEEDS = 100, 5
SIDES = "maxmargin", "scikit-learn"
CLOCK = time.process_time


def _covtype(folder: Path | None, rows: int, new: int = 50_000) -> tuple:
    """Rows of covtype with all seven classes, and others to test on."""
    with np.load((folder or Path()) / "covtype.npz") as file:
        X, y = file["X"].astype(np.float64), file["y"]
    order = np.random.default_rng(0).permutation(len(y))
    return X[order[:rows]], y[order[:rows]], X[order[-new:]], y[order[-new:]]


def _letter(folder: Path | None) -> tuple:
    data = load("letter", folder, 15_000, "none", new=5000)
    return data.X, data.y, data.X_new, data.y_new


def _california(folder: Path | None) -> tuple:
    data = load("california_housing", folder, 15_000, "none", new=5640)
    return data.X, data.y, data.X_new, data.y_new


def forests(folder: Path | None) -> dict:
    """Fit and predict with the same parameters on one thread; errors over five seeds."""
    found = {}
    tasks = {
        "covtype, 100,000 x 54, 7 classes": (_covtype(folder, 100_000), True),
        "letter, 15,000 x 16, 26 classes": (_letter(folder), True),
        "california housing, 15,000 x 8": (_california(folder), False),
    }
    for name, ((X, y, X_new, y_new), classes) in tasks.items():
        kinds = (
            (ExtraTreesClassifier, TheirForest)
            if classes
            else (ExtraTreesRegressor, TheirRegressor)
        )
        models = {
            side: kind(TREES, n_jobs=1, random_state=0)
            for side, kind in zip(SIDES, kinds, strict=True)
        }
        for model in models.values():  # compiles
            model.fit(X[:500], y[:500]).predict(X_new[:500])
        taken: dict[str, Any] = {side: {"fit": [], "predict": [], "score": []} for side in SIDES}
        for seed in range(SEEDS):  # in turns: a slow minute hits both
            for side, model in models.items():
                model.set_params(random_state=seed)
                times = taken[side]
                times["fit"].append(seconds(partial(model.fit, X, y), CLOCK))
                times["predict"].append(seconds(partial(model.predict, X_new), CLOCK))
                times["score"].append(model.score(X_new, y_new))
        own = {
            side: {
                "fit": min(taken[side]["fit"]),
                "predict": min(taken[side]["predict"]),
                "error": 1 - float(np.mean(taken[side]["score"])),
                "std": float(np.std(taken[side]["score"], ddof=1) / SEEDS**0.5),
                "nodes": float(np.mean([t.tree_.node_count for t in model.estimators_])),
            }
            for side, model in models.items()
        }
        found[name] = own
        print(name, own, flush=True)
    return found


def report_forests(found: dict) -> str:
    """Write both sides and their ratios."""
    lines = []
    for name, own in found.items():
        for side in SIDES:
            error = f"{own[side]['error']:.4f} ({own[side]['std']:.4f})"
            times = [number(own[side][k]) for k in ("fit", "predict")]
            lines.append([name, side, *times, error, f"{own[side]['nodes']:.0f}"])
        ratios = [f"{own[SIDES[1]][k] / own[SIDES[0]][k]:.2f}x" for k in ("fit", "predict")]
        lines.append([name, "ratio", *ratios, "", ""])
    header = ["data", "", "fit, s", "predict, s", "test error (standard error)", "nodes a tree"]
    said = (
        f"{TREES} trees, default parameters; the error is the share of wrong answers or 1 - R^2, "
        f"the mean of {SEEDS} seeds."
    )
    return f"{said}\n\n{table(header, lines)}"


def trees(folder: Path | None) -> dict:
    """One exhaustive tree: a stump, depth three, full; exact and in 255 bins."""
    X, y, X_new, y_new = _covtype(folder, 60_000)
    two, two_new = (y == 2).astype(int), (y_new == 2).astype(int)
    letter, california = _letter(folder), _california(folder)
    tasks = {
        "covtype 60,000, class 2, stump": ((X, two, X_new, two_new), 1, True),
        "covtype 60,000, class 2, depth 3": ((X, two, X_new, two_new), 3, True),
        "covtype 60,000, class 2, full": ((X, two, X_new, two_new), None, True),
        "letter 15,000, 26 classes, depth 3": (letter, 3, True),
        "letter 15,000, 26 classes, full": (letter, None, True),
        "california 15,000, full": (california, None, False),
    }
    found = {}
    for name, ((X, y, X_new, y_new), depth, classes) in tasks.items():
        ours = DecisionTreeClassifier if classes else DecisionTreeRegressor
        theirs = TheirTree if classes else TheirTreeRegressor
        models = {
            "exact": ours(max_depth=depth),
            "255 bins": ours(max_depth=depth, max_bins=255),
            "scikit-learn": theirs(max_depth=depth, random_state=0),
        }
        index = np.unique(y, return_inverse=True)[1] if classes else y
        columns = BinnedColumns.of(X, 255)
        more = (np.unique(y),) if classes else ()
        grower = ours(max_depth=depth)._grower(columns, index, *more)
        pattern = ours(max_depth=depth)
        weight = np.random.default_rng(0).random(len(y))
        works = {side: partial(m.fit, X, y) for side, m in models.items()}
        works["in coded columns"] = partial(pattern._grown, grower, weight, 0)
        for work in works.values():
            work()
        taken = in_turns(works, 3, CLOCK)
        scores = {side: model.score(X_new, y_new) for side, model in models.items()}
        found[name] = {"seconds": {s: min(t) for s, t in taken.items()}, "scores": scores}
        print(name, found[name], flush=True)
    return found


def report_trees(found: dict) -> str:
    """Write times and scores."""
    sides = "exact", "255 bins", "in coded columns", "scikit-learn"
    lines = []
    for name, own in found.items():
        times, scores = own["seconds"], own["scores"]
        lines.append(
            [name]
            + [number(times[side]) for side in sides]
            + [f"{times['scikit-learn'] / times[side]:.1f}x" for side in (sides[0], sides[2])]
            + [f"{scores[side]:.4f}" for side in ("exact", "255 bins", "scikit-learn")]
        )
    header = ["task", *(f"{side}, s" for side in sides), "exact", "in coded columns"]
    header += ["score: exact", "255 bins", "scikit-learn"]
    said = (
        "CPU seconds of a fit. In coded columns is what a round of boosting or a replicate costs: "
        "columns in 255 bins are there, weights are new."
    )
    return f"{said}\n\n{table(header, lines)}"


MEMORY = """
import resource, sys
import numpy as np
from maxmargin import ExtraTreesClassifier
from maxmargin.ensemble import BinnedColumns
rows, columns = int(sys.argv[1]), int(sys.argv[2])
random = np.random.default_rng(0)
X = np.empty((rows, columns), np.float32)
for column in X.T:  # no peak before the fit
    column[:] = random.integers(0, 200, rows, dtype=np.uint8)
y = (X[:, 0] + X[:, 1] > 200).astype(int)
kind = ExtraTreesClassifier(2, n_jobs=1, random_state=0, max_depth=12)
kind.fit(X[:1000], y[:1000])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
kind.fit(X, y)
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print((after - before) * 1024 / BinnedColumns.of(X, lists=False).nbytes)
"""


def growth(folder: Path | None) -> dict:
    """CPU time of a forest of ten trees against rows, columns and trees; memory."""
    found: dict[str, Any] = {"rows": {}, "columns": {}, "trees": {}}
    X, y, X_new, _ = _covtype(folder, 200_000, 20_000)
    model = ExtraTreesClassifier(10, n_jobs=1, random_state=0)
    model.fit(X[:500], y[:500]).predict(X_new)

    def taken(forest: Any, X: np.ndarray, y: np.ndarray, X_new: np.ndarray) -> list[float]:
        began = CLOCK()
        forest.fit(X, y)
        fitted = CLOCK()
        forest.predict(X_new)
        return [fitted - began, CLOCK() - fitted]

    for rows in (25_000, 50_000, 100_000, 200_000):
        found["rows"][str(rows)] = taken(model, X[:rows], y[:rows], X_new)
    random = np.random.default_rng(0)
    for columns in (10, 40, 160, 640):
        made = random.normal(size=(20_000, columns))
        sign = (made[:, :5].sum(axis=1) + random.normal(size=20_000) > 0).astype(int)
        found["columns"][str(columns)] = taken(model, made, sign, made)
    for count in (10, 40, 160):
        forest = ExtraTreesClassifier(count, n_jobs=1, random_state=0)
        found["trees"][str(count)] = taken(forest, X[:50_000], y[:50_000], X_new)
    here = str(Path(__file__).resolve().parent.parent)
    environment = {**os.environ, "PYTHONPATH": here}
    found["memory"] = {
        f"{rows} x {columns}": float(
            subprocess.run(
                [sys.executable, "-c", MEMORY, str(rows), str(columns)],
                capture_output=True,
                text=True,
                check=True,
                env=environment,
            ).stdout
        )
        for rows, columns in ((500_000, 20), (500_000, 60), (200_000, 200))
    }
    return found


def report_growth(found: dict) -> str:
    """Write the tables."""
    text = ["Ten trees of covtype's classes, CPU seconds on one thread (20,000 rows to predict)."]
    for what in ("rows", "columns", "trees"):
        lines = [
            [size, number(fit), number(predict)] for size, (fit, predict) in found[what].items()
        ]
        text.append(table([what, "fit, s", "predict, s"], lines))
    lines = [[name, f"{ratio:.2f}"] for name, ratio in found["memory"].items()]
    text.append(
        "Memory that a fit adds, over the coded columns (one thread, 200 different values):"
    )
    text.append(table(["data", "ratio"], lines))
    return "\n\n".join(text)


def study(folder: Path | None) -> dict:
    """Error, bias and variance against K on real data."""
    found = {}
    for name, rows in (
        ("letter", 3000),
        ("satimage", 3000),
        ("spambase", 3000),
        ("magic04", 3000),
        ("california_housing", 3000),
    ):
        data = load(name, folder, rows, "usual" if is_regression(name) else "none")
        d = data.X.shape[1]
        K = sorted({1, 2, 3, round(d**0.5), round(d / 4), round(d / 2), round(3 * d / 4), d} - {0})
        result = k_study(data.X, data.y, K=K, n_estimators=40, n_samples=8, random_state=0)
        print(name, result, flush=True)
        names = "error_tree", "error_mean", "error_mean_std", "squared_bias"
        arrays = {n: getattr(result, n) for n in (*names, "variance_tree", "variance_mean")}
        found[name] = {key: value.round(5).tolist() for key, value in arrays.items()}
        found[name] |= {"K": result.K.tolist(), "noise": result.noise.tolist()}
        found[name]["as_good"] = [own.tolist() for own in result.as_good]
    return found


def report_study(found: dict) -> str:
    """Write the errors of the mean against K, and what the ends have of bias and variance."""
    text = [
        "Mean of 40 trees from each of 8 random halves of 2,000 training rows; 1,000 test rows, "
        "whose labels stay; normalised gain. Test error by K (in bold the least, in italics those "
        "within a standard error of it); then squared bias / variance of one tree / of the mean, "
        "at the least and the greatest K."
    ]
    for name, own in found.items():
        lines = []
        for level, noise in enumerate(own["noise"]):
            errors = own["error_mean"][level]
            cells = []
            for k, error in zip(own["K"], errors, strict=True):
                said = f"{error:.4f}"
                good = k in own["as_good"][level]
                cells.append(
                    f"**{said}**" if error == min(errors) else f"*{said}*" if good else said
                )
            parts = [
                " / ".join(
                    f"{own[part][level][end]:.3f}"
                    for part in ("squared_bias", "variance_tree", "variance_mean")
                )
                for end in (0, -1)
            ]
            lines.append([f"{noise:.0%}", *cells, *parts])
        header = ["noise", *(f"K = {k}" for k in own["K"]), "parts, K = 1", f"K = {own['K'][-1]}"]
        text += [f"**{name}**", table(header, lines)]
    return "\n\n".join(text)


PARTS = {
    "extra_trees": (forests, report_forests),
    "trees": (trees, report_trees),
    "trees_growth": (growth, report_growth),
    "k_study": (study, report_study),
}
