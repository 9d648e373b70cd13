"""The linear machines against scikit-learn (LIBLINEAR, its own solvers), to equal objectives.

    pip install -e ".[bench]"
    python benchmarks/linear.py --data FOLDER [--only svc,svr,logistic] [--repeats 3]

Everybody solves LIBLINEAR's problem (the intercept penalised) or, for
logistic regression, scikit-learn's. A library's time is that of its loosest tolerance whose answer
is within 1e-4 of the best objective that anyone reached here, the median of some fits; where it has
several solvers, the fastest of them. A first fit, which compiles, is not counted. A library that
does not get there within a time limit gives no ratio. Results go to ``results/linear.json`` and
``results/linear.md``, merged by workload.

covtype: class 2 against the rest, standardised. Reuters-21578: ModApte split, the ten largest
categories one by one, TF-IDF of single words. Synthetic: Gaussian X, a linear target, 10 % noise
(``data.py``). The perceptron is measured by ``perceptron.py``.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from data import Data, add_option, load, reuters
from harness import (
    RESULTS,
    Records,
    chosen,
    environment,
    geometric_mean,
    in_turns,
    in_words,
    median,
    number,
    seconds,
    table,
)
from sklearn import linear_model, svm

from maxmargin import C_path, LinearSVC, LinearSVR, LogisticRegression
from maxmargin.losses import EpsilonInsensitive, Hinge, Logistic, SquaredHinge

NEAR = 1e-4  # of the best objective
LIMIT = 100.0  # seconds that a library may take for all its tries
TOLERANCES = (1.0, 0.3, 0.1, 0.03, 1e-2, 3e-3, 1e-3, 3e-4, 1e-4, 3e-5, 1e-5)
PASSES = (5, 10, 20, 50, 100, 200, 500, 1000)
OUR_TOLERANCES = (0.1, 0.03, 1e-2, 3e-3, 1e-3, 3e-4, 1e-4)
LOSSES = {"hinge": Hinge(), "squared_hinge": SquaredHinge(), "logistic": Logistic()}


def objective(model: object, data: Data, loss: object, penalised: bool) -> float:
    """LIBLINEAR's problem at C = 1, or the same without a penalty on the intercept."""
    w, b = np.ravel(model.coef_), float(np.ravel(model.intercept_)[0])
    f = data.X @ w + b
    residual = isinstance(loss, EpsilonInsensitive)
    u = f - data.y if residual else data.y * f
    return 0.5 * (w @ w + (b * b if penalised else 0.0)) + float(loss.value(u).sum())


class Answer(NamedTuple):
    """A fit: its time and what it reached."""

    seconds: float
    objective: float
    setting: str


def fits(
    make: Callable, settings: tuple, data: Data, value: Callable, enough: float, repeats: int
) -> list[Answer]:
    """Fit at one setting after another until it is near enough or time is up."""
    answers: list[Answer] = []
    spent = 0.0
    for setting in settings:
        times = []
        for _ in range(repeats):
            model = make(setting)
            times.append(seconds(lambda model=model: model.fit(data.X, data.y)))
            spent += times[-1]
            if times[-1] > 10.0:
                break
        named = f"tol={setting:g}" if isinstance(setting, float) else f"{setting} passes"
        answers.append(Answer(median(times), value(model), named))
        if spent > LIMIT or min(times) > LIMIT / 4:
            break
        if answers[-1].objective <= enough:
            break
    return answers


def compare(
    name: str, data: Data, loss: object, penalised: bool, ours: Callable, peers: dict, repeats: int
) -> dict:
    """One row of the table."""

    def value(model: object) -> float:
        return objective(model, data, loss, penalised)

    exact = ours(1e-8).fit(data.X, data.y)  # compiles, too
    enough = value(exact) * (1 + NEAR)
    found = {"maxmargin": fits(ours, OUR_TOLERANCES, data, value, enough, repeats)}
    for peer, (make, settings) in peers.items():
        found[peer] = fits(make, settings, data, value, enough, repeats)
    best = min([value(exact), *(a.objective for answers in found.values() for a in answers)])
    reached = {
        library: next((a for a in answers if a.objective <= best * (1 + NEAR)), None)
        for library, answers in found.items()
    }
    mine = reached.pop("maxmargin")
    there = {library: answer for library, answer in reached.items() if answer}
    fastest = min(there, key=lambda library: there[library].seconds) if there else None
    record = {
        "rows": data.X.shape[0],
        "features": data.X.shape[1],
        "seconds": mine.seconds if mine else None,
        "setting": mine.setting if mine else None,
        "peer": fastest,
        "peer setting": there[fastest].setting if fastest else None,
        "peer seconds": there[fastest].seconds if fastest else None,
        "ratio": there[fastest].seconds / mine.seconds if fastest and mine else None,
        "objective": best,
        "solver": exact.solver_,
        "tried": {k: [list(a) for a in v] for k, v in found.items()},
    }
    ratio = f"{record['ratio']:.2f}" if record["ratio"] else "-"
    print(f"{name}: {mine} against {fastest} {there.get(fastest)}: {ratio}", flush=True)
    return record


def _covtype_or_csr(options: argparse.Namespace, name: str) -> Data:
    """Covtype, standardised, or a9a or w8a as CSR; labels of -1 and +1."""
    csr = name != "covtype"
    return load(name, options.data, scaling="standardised", sparse=csr, labels="signs")


def _svc_row(options: argparse.Namespace, name: str, data: Data, loss: str) -> tuple[str, dict]:
    def ours(tol: float) -> LinearSVC:
        return LinearSVC(loss=loss, intercept_scaling=1.0, tol=tol, max_iter=-1, random_state=0)

    def liblinear(dual: bool) -> Callable:
        return lambda tol: svm.LinearSVC(
            loss=loss, dual=dual, tol=tol, max_iter=20_000, random_state=0
        )

    def passes(count: int) -> svm.LinearSVC:
        return svm.LinearSVC(loss=loss, dual=True, tol=1e-9, max_iter=count, random_state=0)

    peers = {"LIBLINEAR, dual": (liblinear(True), TOLERANCES)}
    if name == "covtype":  # where a fit to a tolerance may take hours
        peers = {"LIBLINEAR, dual": (passes, PASSES)}
    if loss == "squared_hinge":
        peers["LIBLINEAR, primal"] = (liblinear(False), TOLERANCES)
    key = f"LinearSVC, {loss}, {name}"
    return key, compare(key, data, LOSSES[loss], True, ours, peers, options.repeats)


def _svc(options: argparse.Namespace) -> Iterator[tuple[str, dict]]:
    for name in ("a9a", "w8a"):
        data = _covtype_or_csr(options, name)
        for loss in ("squared_hinge", "hinge"):
            yield _svc_row(options, name, data, loss)
    for topic, data in reuters(options.data):
        for loss in ("squared_hinge", "hinge"):
            yield _svc_row(options, f"reuters {topic}", data, loss)


def _covtype(options: argparse.Namespace) -> Iterator[tuple[str, dict]]:
    data = _covtype_or_csr(options, "covtype")
    for loss in ("squared_hinge", "hinge"):
        yield _svc_row(options, "covtype", data, loss)


def _svr(options: argparse.Namespace) -> Iterator[tuple[str, dict]]:
    def ours(tol: float) -> LinearSVR:
        return LinearSVR(intercept_scaling=1.0, tol=tol, max_iter=-1)

    def passes(count: int) -> svm.LinearSVR:
        return svm.LinearSVR(tol=1e-9, max_iter=count, random_state=0, dual=True)

    prices = load("california_housing", options.data, scaling="none").y
    prices = prices / 1e5 if prices.max() > 100 else prices  # as scikit-learn has them
    housing = replace(load("california_housing", options.data), y=prices)
    for name, data in (("housing", housing), ("synthetic", load("made linear", scaling="none"))):
        key = f"LinearSVR, {name}"
        peers = {"LIBLINEAR, dual": (passes, PASSES)}
        loss = EpsilonInsensitive(0.0)
        yield key, compare(key, data, loss, True, ours, peers, options.repeats)


def _logistic(options: argparse.Namespace) -> Iterator[tuple[str, dict]]:
    def ours(tol: float) -> LogisticRegression:
        return LogisticRegression(tol=tol, max_iter=-1)

    def theirs(solver: str) -> Callable:
        return lambda tol: linear_model.LogisticRegression(solver=solver, tol=tol, max_iter=5000)

    for name in ("a9a", "covtype"):
        data = _covtype_or_csr(options, name)
        solvers = ["lbfgs", "newton-cg", "newton-cholesky"]
        peers = {solver: (theirs(solver), TOLERANCES) for solver in solvers}
        key = f"LogisticRegression, {name}"
        yield key, compare(key, data, Logistic(), False, ours, peers, options.repeats)


def _path(options: argparse.Namespace) -> Iterator[tuple[str, dict]]:
    for name in ("covtype", "a9a"):
        data = _covtype_or_csr(options, name)
        model, Cs = LinearSVC(intercept_scaling=1.0), np.logspace(-3, 3, 10)
        C_path(model, data.X, data.y, Cs[:2])
        taken = in_turns(
            {
                "one": lambda model=model, data=data: model.fit(data.X, data.y),
                "ten": lambda model=model, data=data, Cs=Cs: C_path(model, data.X, data.y, Cs),
            },
            options.repeats,
        )
        one, ten = median(taken["one"]), median(taken["ten"])
        ratio = ten / one
        print(f"path {name}: ten values {ratio:.2f} times one fit", flush=True)
        yield (
            f"C path, {name}",
            {
                "rows": data.X.shape[0],
                "features": data.X.shape[1],
                "seconds": ten,
                "peer": "one fit at C=1",
                "peer seconds": one,
                "times one fit": ratio,
            },
        )


def _wide(options: argparse.Namespace) -> Iterator[tuple[str, dict]]:
    mnist = load("mnist", options.data, 250, scaling="standardised", labels="signs")
    for loss in ("squared_hinge", "hinge"):
        yield _svc_row(options, "mnist, 250 rows", mnist, loss)


WORKLOADS = {
    "svc": _svc,
    "covtype": _covtype,
    "svr": _svr,
    "logistic": _logistic,
    "path": _path,
    "wide": _wide,
}


def report(results: dict) -> str:
    """The table."""
    about = results["machine"]
    rows = {key: record for key, record in results.items() if key != "machine"}
    lines = []
    for key, r in rows.items():
        which = r["peer"] or "-"
        if r.get("peer setting"):
            which += f", {r['peer setting']}"
        cells = [key, f"{r['rows']:,}", f"{r['features']:,}", number(r["seconds"])]
        cells += [number(r["peer seconds"]), which]
        ratio = f"{r['times one fit']:.2f} fits" if "times one fit" in r else number(r["ratio"])
        lines.append([*cells, ratio])
    means = []
    for loss in ("squared_hinge", "hinge"):
        named = f"LinearSVC, {loss}, reuters"
        ratios = [r["ratio"] for key, r in rows.items() if key.startswith(named) and r["ratio"]]
        if ratios:
            mean = geometric_mean(ratios)
            means.append(f"- {loss}: {mean:.2f} (smallest {min(ratios):.2f})")
    header = ["workload", "rows", "features", "maxmargin (s)", "peer (s)", "which", "ratio"]
    parts = [
        "# Linear machines",
        "`python benchmarks/linear.py --data FOLDER`",
        f"{in_words(about)} Both answers are within 1e-4 of the best objective known; a dash: the "
        "peer did not get there.",
        table(header, lines),
        "Geometric means over the ten categories of Reuters:",
        "\n".join(means),
    ]
    return "\n\n".join(parts) + "\n"


def main() -> None:
    """Measure what was asked for, and write the report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_option(parser)
    parser.add_argument("--output", type=Path, default=RESULTS)
    parser.add_argument("--only", default="")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--report", action="store_true", help="measure nothing, rewrite the report")
    options = parser.parse_args()
    records = Records(options.output / "linear.json")
    warnings.simplefilter("ignore")  # of peers that did not converge: their objective is looked at
    for name in [] if options.report else chosen(options.only, WORKLOADS, parser):
        records["machine"] = environment()
        for key, record in WORKLOADS[name](options):
            records[key] = record
            records.save()
            records.write(report(records))
    print(report(records))


if __name__ == "__main__":
    main()
