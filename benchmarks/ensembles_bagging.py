"""Bagging, bias and variance: parts of :mod:`ensembles`.

``bagging_svc``: 50 RBF machines on usps, fit and predict. ``bias_variance``: 200 replicates of a
tree, 5,000 rows. ``gains``: which learners gain by bagging, bias and variance of each alone and of
25 of them. ``rounds``: bias and variance of boosted stumps and trees against rounds. ``duels``:
test errors of stumps and trees alone, bagged and boosted, a line for each data set.
"""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from data import load
from harness import in_turns, number, table
from sklearn.ensemble import BaggingClassifier as TheirBagging
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC as TheirSVC
from sklearn.tree import DecisionTreeClassifier as TheirTreeClassifier
from sklearn.tree import DecisionTreeRegressor as TheirTreeRegressor

from maxmargin import (
    SVC,
    SVR,
    AdaBoostClassifier,
    BaggingClassifier,
    BaggingRegressor,
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    LinearSVC,
    Ridge,
    bias_variance,
)

MEMBERS, REPEATS = 50, 2
ROUNDS = (1, 3, 10, 30, 100, 300)
DUELS = [
    *("breast_cancer", "digits", "svmguide1", "ida_banana", "spambase", "magic04", "htru2"),
    *("satimage", "pendigits", "letter", "usps"),
]
FEWER = {"breast_cancer": 380, "digits": 1200}  # two thirds: the others are to predict
INSIDE, REPLICATES, ROWS = 25, 50, 2000  # members of a bagged learner; replicates and rows of gains


def svc(folder: Path | None) -> dict:
    """Bagging of 50 RBF machines on usps, beside scikit-learn's."""
    data = load("usps", folder, new=None)
    X, y, new, truth = data.X, data.y, data.X_new, data.y_new
    options = {"n_estimators": MEMBERS, "random_state": 0, "n_jobs": 1}
    makes = {
        "maxmargin": lambda: BaggingClassifier(SVC(n_jobs=1), **options),
        "scikit-learn": lambda: TheirBagging(TheirSVC(), **options),
    }
    few = np.random.default_rng(0).permutation(len(y))[:600]
    for make in makes.values():  # compiles
        make().set_params(n_estimators=3).fit(X[few], y[few]).predict(X[few])
    found: dict[str, Any] = {"rows": len(y), "new": len(truth)}
    models = {name: make() for name, make in makes.items()}
    clock = time.process_time
    fits = in_turns({n: (lambda m=m: m.fit(X, y)) for n, m in models.items()}, REPEATS, clock)
    asks = in_turns({n: (lambda m=m: m.predict(new)) for n, m in models.items()}, 1, clock)
    for name, model in models.items():
        found[name] = {
            "fit": min(fits[name]),
            "predict": min(asks[name]),
            "accuracy": float(np.mean(model.predict(new) == truth)),
        }
    members = models["maxmargin"].estimators_
    found["violation"] = max(member.certificate_.kkt_violation for member in members)
    return found


def report_svc(found: dict) -> str:
    """Write both sides and their ratios."""
    ours, theirs = found["maxmargin"], found["scikit-learn"]
    lines = [
        [
            name,
            *(number(found[name][k]) for k in ("fit", "predict")),
            f"{found[name]['accuracy']:.4f}",
        ]
        for name in ("maxmargin", "scikit-learn")
    ]
    ratios = [f"{theirs[k] / ours[k]:.1f}x" for k in ("fit", "predict")]
    said = f"{found['rows']} rows, {found['new']} to predict; largest KKT violation of a member "
    head = ["", "fit, s", "predict, s", "test accuracy"]
    return f"{said}{found['violation']:.2g}.\n\n" + table(head, [*lines, ["ratio", *ratios, ""]])


def replicates(folder: Path | None) -> dict:
    """200 replicates of a tree: ours from columns coded once, scikit-learn's by weights."""
    found = {}
    for name, ours, theirs in (
        ("california_housing", DecisionTreeRegressor(), TheirTreeRegressor()),
        ("letter", DecisionTreeClassifier(), TheirTreeClassifier()),
    ):
        data = load(name, folder, 5000)
        works = {
            side: partial(bias_variance, tree, data.X, data.y, 200, random_state=0, n_jobs=1)
            for side, tree in (("maxmargin", ours), ("scikit-learn's tree", theirs))
        }
        bias_variance(ours, data.X[:300], data.y[:300], 3, random_state=0)
        cpu = in_turns(works, 2, time.process_time)
        began = time.perf_counter()
        whole = bias_variance(ours, data.X, data.y, 200, random_state=0, n_jobs=2)
        wall = time.perf_counter() - began
        totals = {part: list(total) for part, total in whole.totals.items()}
        found[name] = {side: min(taken) for side, taken in cpu.items()}
        found[name] |= {"wall": wall, "totals": totals, "K": float(whole.K.mean())}
    return found


def report_replicates(found: dict) -> str:
    """Write seconds and totals."""
    lines = [
        [
            name,
            number(one["maxmargin"]),
            number(one["scikit-learn's tree"]),
            number(one["wall"]),
            number(one["K"]),
            ", ".join(f"{part} {value:.4g}" for part, (value, _) in one["totals"].items()),
        ]
        for name, one in found.items()
    ]
    head = ["5,000 rows of", "CPU, s", "with scikit-learn's tree", "wall, 2 jobs", "mean K", ""]
    return table(head, lines)


def learners(regression: bool) -> dict[str, Any]:
    """Learners from unstable to stable."""
    if regression:
        return {
            "unpruned tree": DecisionTreeRegressor(),
            "stump": DecisionTreeRegressor(max_depth=1),
            "1 nearest neighbour": make_pipeline(StandardScaler(), KNeighborsRegressor(1)),
            "10 nearest neighbours": make_pipeline(StandardScaler(), KNeighborsRegressor(10)),
            "ridge": Ridge(),
            "SVR": SVR(),
        }
    return {
        "unpruned tree": DecisionTreeClassifier(),
        "stump": DecisionTreeClassifier(max_depth=1),
        "1 nearest neighbour": make_pipeline(StandardScaler(), KNeighborsClassifier(1)),
        "10 nearest neighbours": make_pipeline(StandardScaler(), KNeighborsClassifier(10)),
        "LinearSVC": LinearSVC(),
        "SVC": SVC(),
    }


def gains(folder: Path | None) -> dict:
    """Bias and variance of learners alone and bagged, on two data sets."""
    found: dict[str, dict] = {}
    for name, regression in (("california_housing", True), ("magic04", False)):
        data = load(name, folder, ROWS, "standardised")
        bagged = BaggingRegressor if regression else BaggingClassifier
        found[name] = {}
        for learner, one in learners(regression).items():
            for text, machine in (("alone", one), ("bagged", bagged(one, INSIDE, random_state=0))):
                whole = bias_variance(machine, data.X, data.y, REPLICATES, random_state=0)
                totals = {part: list(total) for part, total in whole.totals.items()}
                found[name].setdefault(learner, {})[text] = totals
    return found


def report_gains(found: dict) -> str:
    """Write bias, variance and error, alone and bagged."""
    text = []
    for name, learners_ in found.items():
        parts = ("squared_bias", "variance", "error")
        if "squared_bias" not in next(iter(learners_.values()))["alone"]:
            parts = ("bias", "net_variance", "error")
        lines = []
        for learner, both in learners_.items():
            cells = [learner]
            for part in parts:
                cells += [
                    f"{both[k][part][0]:.4f} ± {both[k][part][1]:.4f}" for k in ("alone", "bagged")
                ]
            lines.append(cells)
        head = ["learner"]
        for part in parts:
            head += [part.replace("_", " "), "bagged"]
        text.append(
            f"{name}, {ROWS} rows, {REPLICATES} replicates, {INSIDE} bagged:\n\n"
            + table(head, lines)
        )
    return "\n\n".join(text)


def rounds(folder: Path | None) -> dict:
    """Bias and variance of AdaBoost against the number of rounds."""
    data = load("magic04", folder, ROWS, "standardised")
    weak = {"stumps": None, "trees of depth 3": DecisionTreeClassifier(max_depth=3)}
    found: dict[str, dict] = {}
    for name, learner in weak.items():
        found[name] = {}
        for count in ROUNDS:
            machine = AdaBoostClassifier(learner, n_estimators=count)
            whole = bias_variance(machine, data.X, data.y, REPLICATES, random_state=0)
            totals = {part: list(total) for part, total in whole.totals.items()}
            found[name][str(count)] = totals
    return found


def report_rounds(found: dict) -> str:
    """Write bias and variance, a line for each number of rounds."""
    parts = ("bias", "net_variance", "variance", "error")
    lines = [
        [name, count, *(f"{totals[part][0]:.4f} ± {totals[part][1]:.4f}" for part in parts)]
        for name, counts in found.items()
        for count, totals in counts.items()
    ]
    head = ["AdaBoost of", "rounds", *(part.replace("_", " ") for part in parts)]
    return f"magic04, {ROWS} rows, {REPLICATES} replicates:\n\n" + table(head, lines)


def duels(folder: Path | None) -> dict:
    """Test errors of stumps and trees alone, bagged and boosted, on several data sets."""
    found: dict[str, dict] = {}
    for name in DUELS:
        data = load(name, folder, FEWER.get(name, ROWS), new=5000)
        found[name] = {}
        for text, weak in (
            ("stump", DecisionTreeClassifier(max_depth=1)),
            ("tree", DecisionTreeClassifier()),
        ):
            # boosting ends with a weak learner without errors: its trees are not fully grown
            boosted = weak if text == "stump" else DecisionTreeClassifier(max_depth=6)
            for way, machine in (
                ("alone", weak),
                ("bagged", BaggingClassifier(weak, MEMBERS)),
                ("boosted", AdaBoostClassifier(boosted, n_estimators=MEMBERS)),
            ):
                wrong = [
                    1.0
                    - machine.set_params(random_state=seed)
                    .fit(data.X, data.y)
                    .score(data.X_new, data.y_new)
                    for seed in range(3)
                ]
                found[name][f"{text}, {way}"] = float(np.mean(wrong))
    return found


def report_duels(found: dict) -> str:
    """Write the errors, a line for each data set, and who wins how often."""
    names = list(next(iter(found.values())))
    lines = [[name, *(f"{one[k]:.3f}" for k in names)] for name, one in found.items()]
    said = []
    for weak in ("stump", "tree"):
        for way, other in (("bagged", "alone"), ("boosted", "alone"), ("boosted", "bagged")):
            won = sum(one[f"{weak}, {way}"] < one[f"{weak}, {other}"] for one in found.values())
            said.append(f"{weak}s {way} are better than {other} on {won} of {len(found)}")
    return table([f"at most {ROWS} rows of", *names], lines) + "\n\n" + "; ".join(said) + "."


PARTS = {
    "bagging_svc": (svc, report_svc),
    "bias_variance": (replicates, report_replicates),
    "gains": (gains, report_gains),
    "rounds": (rounds, report_rounds),
    "duels": (duels, report_duels),
}
