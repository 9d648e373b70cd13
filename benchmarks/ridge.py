"""Ridge regression beside scikit-learn's; M against N unknowns, dense against sparse.

    python benchmarks/ridge.py --data FOLDER [--only fit,path,cg,unknowns,sparse,gpu] [--gpu]
        [--rows N] [--rank R]

``fit``: KernelRidge at 10,000 rows beside scikit-learn's. ``path``: KernelRidgeCV, 20 lambdas,
exact leave-one-out errors, 5,000 rows, beside GridSearchCV of scikit-learn's KernelRidge with five
folds; of that every tenth lambda is timed, and multiplied. ``cg``: all rows but 2,000 by conjugate
gradients in a process of its own, its memory, and its test error beside exact solutions for fewer
rows. ``unknowns``: Ridge in its primal and its dual form. ``sparse``: the coefficients and the
prediction times of KernelRidge and SVR. ``gpu``, with ``--gpu`` only: covtype, 400,000 rows on a
GPU, part by part, and its test error beside exact solutions for fewer rows on the CPU. ``--rows``
is for another number of rows in ``fit``, ``path`` and ``gpu``, ``--rank`` for another number of the
preconditioner's columns on the GPU. Results go to ``results/ridge.json`` and ``.md``.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import resource
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from data import Data, add_option, load, size
from harness import (
    RESULTS,
    Records,
    chosen,
    environment,
    in_turns,
    in_words,
    median,
    number,
    run_once,
    seconds,
    table,
)
from libraries import OURS, SKLEARN
from sklearn.kernel_ridge import KernelRidge as Reference
from sklearn.model_selection import GridSearchCV

from maxmargin import SVR, KernelRidge, KernelRidgeCV, Ridge
from maxmargin.solvers import PreconditionedCG

SETS = {"gp_protein": (0.5, 0.1), "gp_kin40k": (0.15, 0.01)}  # gamma and alpha, about the best
COVTYPE = (20.0, 0.3)  # the same, columns in [0, 1]
ALPHAS = np.logspace(-3, 3, 20)
TEST, LIMIT = 2000, 3600.0
SMALLER = (2500, 5000, 10_000)
SMALLER_COVTYPE = (5000, 10_000, 20_000)
GPU_LIMIT = 240.0  # seconds of a fit
SEARCHED = 10  # the search takes so long that only every tenth lambda is timed, and multiplied
SHAPES = ((5000, 50), (5000, 500), (2000, 2000), (500, 5000))


def standardised(name: str, folder: Path | None, rows: int | None) -> Data:
    """Rows of a data set, and some to predict."""
    return load(name, folder, rows, "standardised", new=TEST)


def error(model: object, data: Data) -> float:
    """Root mean square of the errors at new rows; the target has deviation one."""
    return float(np.sqrt(np.mean((model.predict(data.X_new) - data.y_new) ** 2)))


def fit(folder: Path | None, rows: int = 10_000, repeats: int = 3) -> list[dict]:
    """KernelRidge beside scikit-learn's, in turns."""
    found = []
    for name, (gamma, alpha) in SETS.items():
        data = standardised(name, folder, rows)
        options = {"alpha": alpha, "kernel": "rbf", "gamma": gamma}
        models = {SKLEARN: Reference(**options), OURS: KernelRidge(**options)}
        for model in models.values():
            model.fit(data.X[:500], data.y[:500])
        works = {side: lambda m=m, d=data: m.fit(d.X, d.y) for side, m in models.items()}
        taken = {side: median(own) for side, own in in_turns(works, repeats).items()}
        far = np.abs(models[OURS].predict(data.X_new) - models[SKLEARN].predict(data.X_new)).max()
        found.append({"data": name, "rows": len(data.y), **taken, "difference": float(far)})
    return found


def path(folder: Path | None, rows: int = 5000) -> list[dict]:
    """KernelRidgeCV beside GridSearchCV, of which a part of the lambdas is timed."""
    found = []
    for name, (gamma, _) in SETS.items():
        data = standardised(name, folder, rows)
        options = {"kernel": "rbf", "gamma": gamma}
        ours = KernelRidgeCV(ALPHAS, **options)
        ours.fit(data.X[:500], data.y[:500])
        theirs = GridSearchCV(
            Reference(**options), {"alpha": ALPHAS[::SEARCHED]}, cv=5, refit=False
        )
        row = {"data": name, "rows": len(data.y)}
        row[OURS] = seconds(lambda m=ours, d=data: m.fit(d.X, d.y))
        row[SKLEARN] = SEARCHED * seconds(lambda m=theirs, d=data: m.fit(d.X, d.y))
        found.append(row | {"alpha": ours.alpha_, "error": error(ours, data)})
    return found


def one_fit(name: str, folder: str, rows: str, device: str, rank: str) -> None:
    """Fit once and print what came of it: the child process of ``cg`` and ``gpu``."""
    where = Path(folder)
    if name in SETS:
        gamma, alpha = SETS[name]
        data = standardised(name, where, min(int(rows), size(name, where) - TEST))
        exact = int(rows) <= SMALLER[-1]
    else:
        gamma, alpha = COVTYPE
        data = load(name, where, int(rows), new=TEST, labels="signs")
        exact = device == "cpu"
    cache = {True: 3600, False: 2000}[exact] if device == "cpu" else "auto"
    model = KernelRidge(alpha, kernel="rbf", gamma=gamma, device=device, cache_size=cache)
    columns = None if rank == "None" else int(rank)
    model.set_params(solver="cholesky" if exact else PreconditionedCG(columns))
    if device != "cpu":
        model.set_params(time_limit=GPU_LIMIT)
    model.fit(data.X[:200], data.y[:200])
    with contextlib.nullcontext({}) if device == "cpu" else _parts() as parts:
        began = time.perf_counter()
        model.fit(data.X, data.y)
        taken = time.perf_counter() - began
    answer = {
        "data": name,
        "rows": len(data.y),
        "seconds": taken,
        "steps": None if exact else model.n_iter_,
        "residual": model.certificate_.residual,
        "status": str(model.certificate_.status),
        "solver": model.certificate_.solver,
        "error": error(model, data),
        "GB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
        "device": str(model.device_.device),
    }
    if name not in SETS:
        answer["wrong signs"] = float(np.mean(np.sign(model.predict(data.X_new)) != data.y_new))
    print(json.dumps(answer | {part: round(own, 2) for part, own in parts.items()}))


def _parts() -> Any:
    """Seconds of the parts of a fit on a GPU."""
    from gpu import Parts

    from maxmargin.backends import cuda
    from maxmargin.backends.cuda.low_rank import Inverse

    class RidgeParts(Parts):
        WATCHED = (
            ("transfer", cuda.Points, "prepare"),
            ("float32 products", cuda.Matrix, "float32_products"),
            ("float64 products", cuda.Matrix, "products"),
            ("pivots' rows", cuda.Columns, "residual"),
            ("columns", cuda.Columns, "extend"),
            ("inverse", cuda.Columns, "inverse"),
            ("inverse applied", Inverse, "__matmul__"),
        )

    return RidgeParts()


def cg(folder: Path | None) -> list[dict]:
    """All rows by conjugate gradients, and fewer by Cholesky."""
    found = []
    for name in SETS:
        for rows in (*SMALLER, 10**9):
            found.append(_in_a_child(name, folder, rows, "cpu"))
            print(found[-1], flush=True)
    return found


def gpu(folder: Path | None, rows: int = 400_000, rank: int | None = None) -> list[dict]:
    """Covtype on a GPU, class 2 or not as a number; exact solutions for fewer rows on the CPU."""
    found = [_in_a_child("covtype", folder, rows, "cuda", rank)]
    print(found[-1], flush=True)
    for fewer in SMALLER_COVTYPE:
        found.append(_in_a_child("covtype", folder, fewer, "cpu"))
        print(found[-1], flush=True)
    return found


def _in_a_child(
    name: str, folder: Path | None, rows: int, device: str, rank: int | None = None
) -> dict:
    command = [__file__, "--child", name, str(folder), str(rows), device, str(rank)]
    return run_once(command, LIMIT) | {"data": name}


def unknowns(folder: Path | None, repeats: int = 3) -> list[dict]:
    """Ridge with M and with N unknowns, on data that are drawn."""
    found = []
    for rows, features in SHAPES:
        random = np.random.default_rng(0)
        X = random.standard_normal((rows, features))
        y = X @ random.standard_normal(features) + random.standard_normal(rows)
        works = {}
        for form in ("primal", "dual"):
            model = Ridge(1.0, solver=form, cache_size=8000)
            works[form] = lambda m=model, X=X, y=y: m.fit(X, y)
        Ridge().fit(X[:100], y[:100])
        taken = in_turns(works, 1 if max(rows, features) > 10_000 else repeats)
        row = {"rows": rows, "features": features}
        found.append(row | {form: median(own) for form, own in taken.items()})
    return found


def sparse(folder: Path | None, rows: int = 5000) -> list[dict]:
    """Coefficients, error and prediction time of KernelRidge and SVR."""
    found = []
    for name, (gamma, _) in SETS.items():
        data = standardised(name, folder, rows)
        options = {"kernel": "rbf", "gamma": gamma}
        machines = {
            "KernelRidge": KernelRidgeCV(ALPHAS, **options),
            **{f"SVR, epsilon={e:g}": SVR(C=10.0, epsilon=e, **options) for e in (0.1, 0.5)},
        }
        for machine, model in machines.items():
            fitted = seconds(lambda m=model, d=data: m.fit(d.X, d.y))
            model.predict(data.X_new)
            predicted = seconds(lambda m=model, d=data: m.predict(d.X_new))
            kept, off = len(model.support_), error(model, data)
            row = {"data": name, "machine": machine, "coefficients": kept, "error": off}
            found.append(row | {"fit": fitted, "predict": predicted})
    return found


PARTS = {"fit": fit, "path": path, "cg": cg, "unknowns": unknowns, "sparse": sparse, "gpu": gpu}


def report(records: Records) -> str:
    """The tables."""
    parts = ["# Ridge regression", "`python benchmarks/ridge.py --data FOLDER`"]
    parts += [in_words(records["machine"])]
    heads = {
        "fit": "## KernelRidge: seconds of a fit",
        "path": "## KernelRidgeCV: 20 lambdas, exact leave-one-out, against GridSearchCV, 5 folds",
        "cg": "## Conjugate gradients: all rows, and exact solutions for fewer",
        "unknowns": "## Ridge: seconds with M unknowns (primal) and with N (dual)",
        "sparse": "## A coefficient for every row against sparse ones",
        "gpu": "## On a GPU",
    }
    for name, head in heads.items():
        if name not in records:
            continue
        rows = records[name]
        if name in ("fit", "path"):
            rows = [row | {"ratio": row[SKLEARN] / row[OURS]} for row in rows]
        columns = list(dict.fromkeys(key for row in rows for key in row))
        parts += [head, table(columns, [[_cell(row.get(key)) for key in columns] for row in rows])]
    return "\n\n".join(parts) + "\n"


def _cell(value: object) -> str:
    return number(value) if isinstance(value, float) else str("-" if value is None else value)


def main() -> None:
    """Measure, and write the tables."""
    if sys.argv[1:2] == ["--child"]:
        one_fit(*sys.argv[2:])
        return
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_option(parser)
    parser.add_argument("--only", default="")
    parser.add_argument("--gpu", action="store_true", help="also measure on a GPU")
    parser.add_argument("--rows", type=int, help="rows of fit, path and gpu")
    parser.add_argument("--rank", type=int, help="columns of the preconditioner on a GPU")
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args()
    records = Records(options.output / "ridge.json")
    records["machine"] = environment()
    for name in chosen(options.only, PARTS, parser):
        if name == "gpu" and not options.gpu:
            continue
        given = {"rows": options.rows} if options.rows and name in ("fit", "path", "gpu") else {}
        given |= {"rank": options.rank} if options.rank and name == "gpu" else {}
        records[name] = PARTS[name](options.data, **given)
        records.save()
        print(name, records[name], flush=True)
    records.write(report(records))
    print(report(records))


if __name__ == "__main__":
    main()
