"""The GPU engine on one card: fit, predict and search, part by part, and how far from the floors.

    pip install -e ".[gpu]"
    python benchmarks/gpu.py --data FOLDER [--only mnist,covtype] [--repeats 3] [--check]

Data start as float32 NumPy arrays in host memory, and a fit ends with a certified machine there.
The first fit of a process compiles; it is reported apart. Parts of a fit are timed with the device
synchronised before and after each, in a run of their own; the total is that of runs without it.
``--check`` fits MNIST and covtype on the CPU as well and compares the dual objectives.

Two floors, from the card's bandwidth and rates as they are measured here on a copy and a product:
the bytes that must be moved once (data in, kernel matrix out if it is kept) and the flops of the
kernel values that the support vectors need with all rows. Results go to ``results/gpu.json`` and
``results/gpu.md``, merged by workload.
"""

from __future__ import annotations

import argparse
import platform
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
import triton
from data import Data, add_option, load
from harness import RESULTS, Records, chosen, median, table, times
from harness import seconds as timed
from sklearn.base import clone

import maxmargin
from maxmargin import SVC, SVCSearchCV
from maxmargin.backends import cuda
from maxmargin.solvers.dual import certified, parallel_sets

DTYPES = ("float32", "float64", "float16")
TO_REACH = {
    "mnist, gamma=0.02": 0.25,
    "mnist, gamma=0.125": 0.6,
    "covtype": 15.0,
    "synthetic": 300.0,
    "mnist search": 40.0,
    "mnist predict": 0.05,
}


def mnist(folder: Path | None) -> Data:
    """All digits, 60,000 x 784 in [0, 1], and the 10,000 to predict."""
    return load("mnist", folder, new=None, dtype=np.float32)


def covtype(folder: Path | None) -> Data:
    """Class 2 against the rest, every column in [0, 1], 80 % of the rows at random."""
    return load("covtype", folder, int(0.8 * 581_012), dtype=np.float32)


class Parts:
    """Seconds that parts of a fit take without those inside them, the device synchronised."""

    WATCHED = (
        ("transfer", cuda.Points, "prepare"),
        ("kernel matrix", cuda.Matrix, "_whole"),
        ("float64 sums", cuda.Matrix, "products"),
        ("solve", parallel_sets.ParallelSets, "solve_all"),
        ("certificate on the host", certified, "evaluate"),
    )

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.inside: list[float] = []  # spent in parts of the parts that are running

    def __enter__(self) -> dict[str, float]:
        self.originals = [vars(owner)[name] for _, owner, name in self.WATCHED]
        for part, owner, name in self.WATCHED:
            setattr(owner, name, self._timed(part, getattr(owner, name), owner))
        return self.seconds

    def _timed(self, part: str, function: Callable, owner: object) -> object:
        def timed(*args: object, **kwargs: object) -> object:
            torch.cuda.synchronize()
            began = time.perf_counter()
            self.inside.append(0.0)
            answer = function(*args, **kwargs)
            torch.cuda.synchronize()
            spent = time.perf_counter() - began
            own = spent - self.inside.pop()
            self.seconds[part] = self.seconds.get(part, 0.0) + own
            if self.inside:
                self.inside[-1] += spent
            return answer

        return staticmethod(timed) if owner is cuda.Points else timed

    def __exit__(self, *error: object) -> None:
        for (_, owner, name), original in zip(self.WATCHED, self.originals, strict=True):
            setattr(owner, name, original)


def card() -> dict[str, float]:
    """Bandwidth and rates of this card, measured: bytes, float32 and half precision flops."""

    def best(run: Callable) -> float:
        def run_to_its_end() -> None:
            run()
            torch.cuda.synchronize()

        torch.cuda.synchronize()
        return min(times(run_to_its_end, 4))

    big = torch.empty(1 << 30, dtype=torch.float32, device="cuda")
    other, n = torch.empty_like(big), 8192
    found = {"bytes per second": 2 * big.nbytes / best(lambda: other.copy_(big))}
    for name in DTYPES:
        A = torch.randn((n, n), device="cuda").to(getattr(torch, name))
        found[f"{name} flops"] = 2 * n**3 / best(lambda A=A: A @ A)
    return found


def measured_fit(model: SVC, X: np.ndarray, y: np.ndarray, repeats: int) -> dict:
    """Fit some times; returns times, parts, the certificate's numbers and the floors."""
    torch.cuda.synchronize()
    first, *taken = times(lambda: model.fit(X, y), repeats + 1)
    print(f"  fit {first:.3f} s, then {taken}", flush=True)
    with Parts() as parts:
        model.fit(X, y)
    certificate = model.certificate_
    pairs = certificate.parts or (certificate,)
    kept = len(X) ** 2 * 4 <= 0.6 * cuda.budget(torch.device("cuda"), "auto")
    return {
        "rows": len(X),
        "features": X.shape[1],
        "first": first,
        "seconds": median(taken),
        "parts": parts,
        "status": str(certificate.status),
        "violation": certificate.kkt_violation,
        "relative gap": certificate.relative_gap,
        "infeasibility": certificate.infeasibility,
        "dual": float(sum(part.dual for part in pairs)),
        "support vectors": len(model.support_),
        "steps": int(np.sum(model.n_iter_)),
        "peak GB": torch.cuda.max_memory_allocated() / 1e9,
        "bytes": X.nbytes + (4 * len(X) ** 2 if kept else 0),
        "flops": 2.0 * len(X) * len(model.support_) * X.shape[1],
    }


def check(record: dict, model: SVC, X: np.ndarray, y: np.ndarray) -> None:
    """Fit on the CPU as well, and record how far the dual objective is below that one's."""
    began = time.perf_counter()
    cpu = clone(model).set_params(device="cpu", n_jobs=-1).fit(X, y).certificate_
    print(f"  CPU {time.perf_counter() - began:.1f} s, {cpu.status}", flush=True)
    theirs = sum(part.dual for part in cpu.parts or (cpu,))
    record["objective below the CPU engine's"] = (theirs - record["dual"]) / abs(theirs)


def main() -> None:
    """Measure what was asked for, and write the report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_option(parser)
    parser.add_argument("--output", type=Path, default=RESULTS)
    parser.add_argument("--only", default="")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    records = Records(options.output / "gpu.json")
    records["machine"] = {
        "card": torch.cuda.get_device_name(0),
        "torch": torch.__version__,
        "triton": triton.__version__,
        "python": platform.python_version(),
        "maxmargin": maxmargin.__version__,
        **card(),
    }
    for name in chosen(options.only, WORKLOADS, parser):
        print(name, flush=True)
        for key, record in WORKLOADS[name](options):
            records[key] = record
            records.save()
            records.write(report(records))
    print(report(records))


def _mnist(options: argparse.Namespace) -> object:
    digits = mnist(options.data)
    X, y = digits.X, digits.y
    for gamma in (0.02, 0.125):
        model = SVC(C=10, gamma=gamma, device="cuda")
        record = measured_fit(model, X, y, options.repeats)
        if options.check:
            check(record, model, X, y)
        yield f"mnist, gamma={gamma}", record
        if gamma == 0.02:
            _, *taken = times(lambda m=model: m.predict(digits.X_new), options.repeats + 1)
            accuracy = float((model.predict(digits.X_new) == digits.y_new).mean())
            record = {"rows": len(digits.X_new), "seconds": median(taken), "accuracy": accuracy}
            yield "mnist predict", record


def _covtype(options: argparse.Namespace) -> object:
    model = SVC(C=10, gamma=10, device="cuda")
    rows = covtype(options.data)
    record = measured_fit(model, rows.X, rows.y, options.repeats)
    if options.check:
        check(record, model, rows.X, rows.y)
    yield "covtype", record


def _synthetic(options: argparse.Namespace) -> object:
    model = SVC(C=10, gamma=0.05, device="cuda")
    rows = load("made border", scaling="none", dtype=np.float32)
    yield "synthetic", measured_fit(model, rows.X, rows.y, min(options.repeats, 1))


def _search(options: argparse.Namespace) -> object:
    digits = mnist(options.data)
    grid = {"C": [0.1, 1, 10, 100, 1000], "gamma": [0.005, 0.01, 0.02, 0.04, 0.08]}
    search = SVCSearchCV(grid, estimator=SVC(device="cuda"), cv=5)
    seconds = timed(lambda: search.fit(digits.X, digits.y))
    best = {**search.best_params_, "score": search.best_score_}
    yield "mnist search", {"rows": len(digits.y), "seconds": seconds, "best": best}


WORKLOADS = {"mnist": _mnist, "covtype": _covtype, "search": _search, "synthetic": _synthetic}


def report(results: dict) -> str:
    """Tables of what was measured."""
    about, rows = results["machine"], {k: v for k, v in results.items() if k != "machine"}
    rates = [f"{about[f'{name} flops'] / 1e12:.0f} in {name}" for name in DTYPES]
    lines = []
    for key, r in rows.items():
        more = ["-"] * 4
        if "dual" in r:
            violation, gap = f"{r['violation']:.1e}", f"{r['relative gap']:.1e}"
            more = [f"{r['first']:.1f}", f"{r['support vectors']:,}", violation, gap]
        lines.append([key, f"{r['rows']:,}", f"{r['seconds']:.3g}", f"{TO_REACH[key]:g}", *more])
    columns = ["workload", "rows", "seconds", "to reach", "first"]
    columns += ["support vectors", "KKT violation", "relative gap"]
    fits = {key: r for key, r in rows.items() if "parts" in r}
    names = [part for part, *_ in Parts.WATCHED]
    spent, floors = [], []
    for key, r in fits.items():
        times = [f"{r['parts'].get(name, 0.0):.3f}" for name in names]
        spent.append([key, *times, f"{r['peak GB']:.1f}"])
        moved, counted = r["bytes"] / about["bytes per second"], r["flops"] / about["float32 flops"]
        over = r["seconds"] / max(moved, counted)
        floors.append([key, f"{moved:.4f}", f"{counted:.4f}", f"{over:.0f}"])
    parts = [
        "# On a GPU",
        "`python benchmarks/gpu.py --data FOLDER`",
        f"{about['card']}, torch {about['torch']}, Triton {about['triton']}, "
        f"maxmargin {about['maxmargin']}. Measured here: {about['bytes per second'] / 1e12:.1f} "
        f"TB/s; Tflop/s: {', '.join(rates)}.",
        "Seconds of a call, data beginning as float32 arrays in host memory; the median after a\n"
        "first call, which compiles and is given apart.",
        table(columns, lines),
        "Where the time of a fit goes (timed apart, the device synchronised in between):",
        table(["workload", *names, "peak GB"], spent),
        "Floors: what must be moved once over the bandwidth, and the flops of the support vectors' "
        "kernel rows over the float32 rate.",
        table(["workload", "bytes (s)", "flops (s)", "seconds over the larger"], floors),
    ]
    below = {k: r[c] for k, r in rows.items() for c in r if c.startswith("objective below")}
    for key, value in below.items():
        parts.append(f"{key}: dual objective below the CPU engine's by {value:.1e} of it.")
    for key, r in rows.items():
        parts += [f"{key}: {name} {r[name]}." for name in ("accuracy", "best") if name in r]
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    main()
