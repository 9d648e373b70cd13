"""Probabilities: what they cost over a plain fit, and what they are worth beside scikit-learn's.

    OPENBLAS_NUM_THREADS=1 python benchmarks/probability.py --data FOLDER [--only cost,worth]

``cost``: CPU seconds of a fit without and with probabilities, one thread, in turns, the best of
three; every kind has the same five folds. ``worth``: log loss, Brier score (summed over the
classes) and expected calibration error (15 bins of the most probable class) on test rows, and the
rows on which the most probable class is not the predicted one. Results go to
``results/probability.json`` and ``.md``.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import numpy as np
from data import add_option, available, load
from harness import CPU, RESULTS, Records, chosen, environment, in_turns, in_words, seconds, table
from sklearn import svm
from sklearn.calibration import CalibratedClassifierCV
from sklearn.metrics import log_loss

from maxmargin import SVC

# rows (None: all), scaling, C, gamma: about the best of a search
SETS = {
    "breast_cancer": (None, "standardised", 1.0, "scale"),
    "digits": (None, "standardised", 1.0, "scale"),
    "pendigits": (None, "usual", 10.0, 1.0),
    "usps": (None, "usual", 10.0, "scale"),
    "letter": (None, "usual", 10.0, 1.0),
    "a9a": (8000, "usual", 1.0, 0.05),
}
SCHEMES = ("ovo", "ovr", "crammer_singer", "weston_watkins")
DIRECT = 3000  # rows for the last two
WORTH, TEST = 3000, 4000
KINDS = ("sigmoid", "isotonic", "temperature", "consistent")
REPEATS = 3


def cost(folder: Path | None, name: str) -> list[dict]:
    """Seconds of a fit with probabilities, over those without."""
    found = []
    rows, scaling, C, gamma = SETS[name]
    for scheme in SCHEMES:
        direct = scheme not in ("ovo", "ovr")
        data = load(name, folder, min(rows or DIRECT, DIRECT) if direct else rows, scaling)
        if len(np.unique(data.y)) == 2 and scheme != "ovo":
            continue
        machine = SVC(C=C, gamma=gamma, n_jobs=1, multiclass=scheme, random_state=0)
        works = {
            str(kind): lambda kind=kind, data=data, machine=machine: machine.set_params(
                probability=kind
            ).fit(data.X, data.y)
            for kind in (False, *(("temperature",) if direct else KINDS[:3]))
        }
        taken = {kind: min(own) for kind, own in in_turns(works, REPEATS, CPU).items()}
        plain = taken.pop("False")
        row = {"data": name, "rows": len(data.y), "scheme": scheme, "plain, s": plain}
        found.append(row | {kind: own / plain for kind, own in taken.items()})
        print(found[-1], flush=True)
    return found


def worth(folder: Path | None, name: str) -> list[dict]:
    """Quality on test rows, and CPU seconds, beside scikit-learn's."""
    found = []
    _, scaling, C, gamma = SETS[name]
    data = load(name, folder, WORTH, scaling, new=TEST)
    if name in ("breast_cancer", "digits"):  # without a test part
        half = np.random.default_rng(0).permutation(len(data.y)) % 2 == 0
        X, y, X_new, y_new = data.X[half], data.y[half], data.X[~half], data.y[~half]
    else:
        X, y, X_new, y_new = data.X, data.y, data.X_new, data.y_new
    options = {"C": C, "gamma": gamma}
    ways = {
        **{f'"{kind}"': SVC(**options, probability=kind, random_state=0) for kind in KINDS},
        'crammer_singer, "temperature"': SVC(
            **options, probability="temperature", random_state=0, multiclass="crammer_singer"
        ),
        "scikit-learn, probability=True": svm.SVC(**options, probability=True, random_state=0),
        "CalibratedClassifierCV, ensemble=False": CalibratedClassifierCV(
            svm.SVC(**options), ensemble=False
        ),
        "the same, temperature": CalibratedClassifierCV(
            svm.SVC(**options), ensemble=False, method="temperature"
        ),
    }
    for way, model in ways.items():
        taken = seconds(lambda model=model, X=X, y=y: model.fit(X, y), CPU)
        row = {"data": name, "way": way, "fit, s": taken}
        found.append(row | quality(model, X_new, y_new))
        print(found[-1], flush=True)
    return found


def quality(model: object, X: np.ndarray, y: np.ndarray) -> dict[str, float]:
    """Scores of a model's probabilities on some rows."""
    p, classes = model.predict_proba(X), model.classes_
    right, most = classes[p.argmax(axis=1)] == y, p.max(axis=1)
    place = np.minimum((15 * most).astype(int), 14)
    off = np.abs(np.bincount(place, weights=right - most)).sum() / len(y)
    return {
        "log loss": float(log_loss(y, p, labels=classes)),
        "Brier": float(((p - (y[:, None] == classes)) ** 2).sum(axis=1).mean()),
        "ECE": float(off),
        "not predicted": float((classes[p.argmax(axis=1)] != model.predict(X)).mean()),
    }


PARTS = {"cost": cost, "worth": worth}
HEADS = {
    "cost": "## What a fit with probabilities takes, as a multiple of one without",
    "worth": f"## What they are worth: at most {WORTH:,} rows to learn from, {TEST:,} to test",
}


def report(records: Records) -> str:
    """The tables."""
    parts = ["# Probabilities", "`python benchmarks/probability.py --data FOLDER`"]
    parts += [in_words(records["machine"]) + " CPU time of one thread; others used the machine."]
    for name, head in HEADS.items():
        if name in records:
            rows = records[name]
            columns = list(dict.fromkeys(key for row in rows for key in row))
            lines = [[_cell(row.get(key)) for key in columns] for row in rows]
            parts += [head, table(columns, lines)]
    return "\n\n".join(parts) + "\n"


def _cell(value: object) -> str:
    return f"{value:.3f}" if isinstance(value, float) else str("-" if value is None else value)


def main() -> None:
    """Measure, and write the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_option(parser)
    parser.add_argument("--only", default="")
    parser.add_argument("--sets", default="", help="some of the data sets; others stay as they are")
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args()
    warnings.simplefilter("ignore", FutureWarning)  # scikit-learn deprecates probability
    records = Records(options.output / "probability.json")
    records["machine"] = environment()
    X, y = load("digits").X[:300], load("digits").y[:300]
    for scheme in SCHEMES:  # compiles
        SVC(probability=True, multiclass=scheme).fit(X, y)
    sets = chosen(options.sets, SETS, parser)
    sets = [name for name in sets if available(name, options.data)]
    for name in chosen(options.only, PARTS, parser):
        for one in sets:
            rows = [row for row in records.get(name, []) if row["data"] != one]
            rows += PARTS[name](options.data, one)
            records[name] = sorted(rows, key=lambda row: list(SETS).index(row["data"]))
            records.save()
            records.write(report(records))
    print(report(records))


if __name__ == "__main__":
    main()
