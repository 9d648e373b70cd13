"""Speed on data that nobody tuned for: data sets x C x gamma x machines, the worst cell first.

    pip install -e ".[bench]"
    python benchmarks/landscape.py --data FOLDER                    # beside the peers, on the CPU
    python benchmarks/landscape.py --data FOLDER --gpu --rows 20000 # GPU beside our CPU engine

A cell is one fit: a data set (columns standardised, at most so many rows), one of five C, and a
third of, once or three times ``gamma="scale"``. The clock runs during ``fit`` only; a fit that
takes less than half a second is done twice, and the faster counts. Each side lives in a process
of its own, which has fitted parts of the data before; the sides take turns at every cell, and one
that takes longer than ``--limit`` seconds is ended: what is known then is a bound.

A ratio is the other side's time over ours, the better peer's where there are two. It counts only
if both have converged, by our certificate or by the recomputed KKT violation (``dual.py``), and our
dual objective is no worse by more than 1e-5. Results go to ``results/landscape-cpu.*`` and
``results/landscape-gpu.*``, merged cell by cell: a run that was stopped loses nothing.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import time
import warnings
from pathlib import Path

import data
import numpy as np
from dual import examine
from harness import HERE, RESULTS, Child, LateError, Records, cores, geometric_mean, table, times
from libraries import INTELEX, OURS, SETTINGS, SKLEARN, SLACK, TOL, AbsentError, listening
from libraries import estimator as build
from report import WORSE

sys.path.insert(0, str(HERE.parent))  # where nothing is installed
GPU = "maxmargin on the GPU"
COSTS = (0.1, 1.0, 10.0, 100.0, 1000.0)
GAMMAS = (1 / 3, 1.0, 3.0)  # times gamma="scale"
CLASSES = ("magic04", "a9a", "cod_rna_standardized", "susy_30k", "htru2", "covtype")
CLASSES += ("letter", "satimage", "usps", "shuttle")
REALS = ("california_housing", "gp_kin40k", "gp_protein", "bike_sharing_hour", "gp_pol")
SHORT, REPEATS = 0.5, 2
STARTING = 300.0  # seconds for a side to load, compile and warm up
DEATHS = 3  # of the process of a side, before the run is given up


def machine(side: str, name: str, C: float, gamma: float):
    """An unfitted machine for a cell."""
    kind, parameters = ("SVR", {"epsilon": 0.1}) if data.is_regression(name) else ("SVC", {})
    parameters |= {"C": C, "gamma": gamma}
    if side == GPU:
        return build(OURS, kind, parameters | {"device": "cuda"}).set_params(cache_size="auto")
    if side == OURS:
        return build(OURS, kind, parameters | {"n_jobs": -1})
    return build(side, kind, parameters)


def fitted(side: str, name: str, X, y, C: float, gamma: float) -> dict:
    """Fit a cell, and say how long it took and how good the answer is."""
    model = machine(side, name, C, gamma)
    with listening() as heard:
        taken = times(lambda: model.fit(X, y), REPEATS, enough=SHORT)
    if hasattr(model, "certificate_"):
        certificate = model.certificate_
        parts = certificate.parts or (certificate,)
        duals, violation = [part.dual for part in parts], certificate.kkt_violation
        converged, status = bool(certificate.converged), str(certificate.status)
    else:
        found = examine(model, X, y)
        duals, violation = found.duals, found.violation
        converged = violation <= SLACK * TOL
        status = "converged" if converged else "; ".join(heard.warnings) or "above tol"
    return {
        "seconds": min(taken),
        "status": status,
        "converged": converged,
        "violation": float(violation),
        "dual": float(np.sum(duals)),
        "support vectors": len(model.support_),
    }


def work(side: str, folder: Path | None, rows: int) -> None:
    """Answer cells from standard input, one a line, until it ends."""
    answers, sys.stdout = sys.stdout, sys.stderr  # a library may print what it likes
    warnings.simplefilter("ignore")
    loaded: tuple[str, tuple] = ("", ())
    try:
        machine(side, CLASSES[0], 1.0, 1.0)
    except AbsentError as error:
        print(json.dumps({"absent": str(error)}), file=answers, flush=True)
        return
    print(json.dumps({"ready": True}), file=answers, flush=True)
    for line in sys.stdin:
        name, C, factor = json.loads(line)
        if loaded[0] != name:
            found = data.load(name, folder, rows, "standardised")
            X, y = found.X, found.y
            loaded = name, (X, y)
            for some in (300, 2000, len(y)):  # the code for every size is loaded and compiled
                machine(side, name, 1.0, 1 / X.shape[1]).fit(X[:some], y[:some])
        X, y = loaded[1]
        print(json.dumps({"loaded": True}), file=answers, flush=True)
        gamma = factor / (X.shape[1] * X.var())
        print(json.dumps(fitted(side, name, X, y, C, gamma)), file=answers, flush=True)


class Side:
    """A library in a process of its own, ended and begun again when it takes too long."""

    def __init__(self, name: str, options: argparse.Namespace) -> None:
        self.name, self.limit, self.deaths = name, options.limit, 0
        command = [__file__, "--side", name, "--data", str(options.data)]
        self.child = Child([*command, "--rows", str(options.rows)], STARTING)

    def fit(self, cell: tuple) -> dict:
        """Fit a cell, or say why there is no time."""
        try:
            absent = self.child.begin().get("absent")
            if absent:
                return {"status": absent, "converged": False}
            self.child.ask(cell)
            self.child.answer(STARTING)
            return self.child.answer(REPEATS * SHORT + self.limit)
        except LateError:
            found = {"limit": self.limit, "status": f"not done after {self.limit:g} s"}
        except (RuntimeError, OSError) as error:
            found = {"status": str(error)}
            self.deaths += 1
            if self.deaths > DEATHS:
                raise
        self.child.end()
        return {**found, "converged": False}


def ratio(cell: dict, ours: str, others: list[str]) -> tuple[float, str] | None:
    """The other side's time over ours, with a mark where one of the two is only a bound."""
    own = cell.get(ours)
    if own is None:
        return None
    found = []
    for name in others:
        other = cell.get(name)
        if other is None or ("limit" in own and "limit" in other):
            continue
        if "limit" in own:
            found.append((other.get("seconds", other.get("limit", 0.0)) / own["limit"], "<"))
        elif not own["converged"]:
            return None
        elif "limit" in other:
            found.append((other["limit"] / own["seconds"], ">"))
        elif other["converged"] and (other["dual"] - own["dual"]) <= WORSE * abs(other["dual"]):
            found.append((other["seconds"] / own["seconds"], ""))
    return min(found) if found else None


def report(results: dict, title: str, ours: str, others: list[str]) -> str:
    """The worst cell, the mean, and a table for each data set."""
    about = results["about"]
    cells = {key: cell for key, cell in results.items() if key != "about"}
    ratios = {key: ratio(cell, ours, others) for key, cell in cells.items()}
    known = {key: value for key, value in ratios.items() if value}
    lines = [f"# {title}", "", f"`{about['command']}`", "", about["machine"], ""]
    if known:
        worst = min(known, key=lambda key: known[key][0])
        value, mark = known[worst]
        lines += [
            f"**Worst of {len(known)} cells: {mark}{value:.2f}** ({worst}). Geometric mean "
            f"{geometric_mean(value for value, _ in known.values()):.1f}; "
            f"{sum(value < 1 for value, _ in known.values())} cells below 1.",
            "",
            f"Time of {' or '.join(others)}{', the better,' * (len(others) > 1)} over that of "
            f"{ours}; > where the other "
            f"was not done after {about['limit']:g} s, ! where {ours} did not converge, - where no "
            "other side gives a time that counts. In brackets our seconds.",
        ]
    for name in dict.fromkeys(key.split(" ")[0] for key in cells):
        heads = ["gamma / scale", *(f"C={C:g}" for C in COSTS)]
        body = []
        for factor in GAMMAS:
            keys = [_key(name, C, factor) for C in COSTS]
            row = [_text(cells.get(key, {}).get(ours), ratios.get(key)) for key in keys]
            body.append([f"{factor:.2g}", *row])
        lines += ["", f"## {name}", "", table(heads, body)]
    doubtful = [
        f"- {key}: {side}: {found['status']}"
        for key, cell in cells.items()
        for side, found in cell.items()
        if not found["converged"] and "limit" not in found
    ]
    if doubtful:
        lines += ["", "Not converged (no ratio):", "", *dict.fromkeys(doubtful)]
    return "\n".join(lines) + "\n"


def _text(own: dict | None, value: tuple[float, str] | None) -> str:
    if own is None:
        return ""
    if "limit" in own or not own["converged"]:
        return "!"
    number = f"{value[1]}{value[0]:.1f}" if value else "-"
    return f"{number} ({own['seconds']:.2g})"


def draw(results: dict, path: Path, title: str, ours: str, others: list[str]) -> None:
    """Draw the ratios as a map: a panel for each data set, C across and gamma up."""
    import matplotlib as mpl
    from matplotlib.colors import TwoSlopeNorm
    from matplotlib.figure import Figure

    mpl.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "maxmargin", "font.size": 8})
    names = list(dict.fromkeys(key.split(" ")[0] for key in results if key != "about"))
    columns = min(5, max(len(names), 1))
    rows = -(-len(names) // columns)
    figure = Figure(figsize=(2.6 * columns, 1.9 * rows + 0.8), layout="constrained")
    panels = np.atleast_1d(figure.subplots(rows, columns)).ravel()
    norm = TwoSlopeNorm(0.0, -1.0, 2.0)  # tens: a tenth, equal, a hundred times
    for axes in panels[len(names) :]:
        axes.set_axis_off()
    for axes, name in zip(panels, names, strict=False):
        values = np.full((len(GAMMAS), len(COSTS)), np.nan)
        for i, factor in enumerate(GAMMAS):
            for j, C in enumerate(COSTS):
                cell = results.get(_key(name, C, factor), {})
                found = ratio(cell, ours, others)
                text = "" if not cell else "!" if not cell[ours]["converged"] else "-"
                if found:
                    values[i, j] = np.log10(max(found[0], 1e-2))
                    text = f"{found[1]}{found[0]:.1f}" if found[0] < 10 else f"{found[0]:.0f}"
                axes.text(j, i, text, ha="center", va="center", fontsize=7)
        image = axes.imshow(values, cmap="RdBu", norm=norm, origin="lower", aspect="auto")
        axes.set_title(name, fontsize=8)
        axes.set_xticks(range(len(COSTS)), [f"{C:g}" for C in COSTS])
        axes.set_yticks(range(len(GAMMAS)), [f"{factor:.2g}" for factor in GAMMAS])
    if names:
        bar = figure.colorbar(image, ax=list(panels), shrink=0.7)
        bar.set_ticks([-1, 0, 1, 2], labels=["0.1", "1", "10", "100"])
    figure.supxlabel("C")
    figure.supylabel("gamma over that of 'scale'")
    figure.suptitle(title)
    figure.savefig(path, metadata={"Date": None})


def _key(name: str, C: float, factor: float) -> str:
    return f"{name} C={C:g} gamma={factor:.2g} scale"


def _about(options: argparse.Namespace) -> dict:
    words = f"{cores()} cores, {platform.machine()}, Python {platform.python_version()}"
    if options.gpu:
        import torch

        words += f", {torch.cuda.get_device_name(0)}"
    command = "python benchmarks/landscape.py --data FOLDER"
    command += f"{' --gpu' if options.gpu else ''} --rows {options.rows} --limit {options.limit:g}"
    machine_words = f"{words}. At most {options.rows:,} rows, tol={SETTINGS['tol']:g}."
    return {"command": command, "machine": machine_words, "limit": options.limit}


def main() -> None:
    """Measure the cells that were asked for, and write the report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    data.add_option(parser)
    parser.add_argument("--gpu", action="store_true", help="the GPU beside our CPU engine")
    parser.add_argument("--rows", type=int, default=4000)
    parser.add_argument("--limit", type=float, default=30.0, help="seconds for one fit")
    parser.add_argument("--only", default=",".join(CLASSES + REALS), help="data sets")
    parser.add_argument("--seconds", type=float, default=np.inf, help="end after so long")
    parser.add_argument("--again", action="store_true", help="measure cells that are there")
    parser.add_argument("--output", type=Path, default=RESULTS)
    parser.add_argument("--side", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.side:
        work(options.side, options.data, options.rows)
        return
    ours, others = (GPU, [OURS]) if options.gpu else (OURS, [SKLEARN, INTELEX])
    title = f"{ours} beside {' and '.join(others)}: every C and gamma"
    path = options.output / f"landscape-{'gpu' if options.gpu else 'cpu'}.json"
    results = Records(path)
    results["about"] = _about(options)
    sides = [Side(name, options) for name in (ours, *others)]
    began = time.perf_counter()
    try:
        for name in options.only.split(","):
            for C in COSTS:
                for factor in GAMMAS:
                    key = _key(name, C, factor)
                    done = key in results and not options.again
                    if done or time.perf_counter() - began > options.seconds:
                        continue
                    cell = {side.name: side.fit((name, C, factor)) for side in sides}
                    results[key] = cell
                    results.save()
                    found = ratio(cell, ours, others)
                    spent = [c.get("seconds", c.get("limit", np.nan)) for c in cell.values()]
                    shown = ", ".join(f"{seconds:.2f}" for seconds in spent)
                    words = f"{found[1]}{found[0]:.1f}" if found else "no ratio"
                    print(f"{key}: {words} ({shown} s)", flush=True)
    finally:
        for side in sides:
            side.child.end()
    text = report(results, title, ours, others)
    results.write(text)
    draw(results, path.with_suffix(".svg"), title, ours, others)
    print("\n".join(text.splitlines()[:9]))


if __name__ == "__main__":
    main()
