"""The GPU engine on one card: fit, predict and search, part by part, and how far from the floors.

    pip install -e ".[gpu]"
    python benchmarks/gpu.py [--data DATA] [--only mnist,covtype] [--repeats 3] [--check]

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
import json
import platform
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
import triton
from sklearn.base import clone

import maxmargin
from maxmargin import SVC, SVCSearchCV
from maxmargin.backends import cuda
from maxmargin.solvers.dual import certified, parallel_sets

HERE = Path(__file__).resolve().parent
DTYPES = ("float32", "float64", "float16")
TO_REACH = {
    "mnist, gamma=0.02": 0.25,
    "mnist, gamma=0.125": 0.6,
    "covtype": 15.0,
    "synthetic": 300.0,
    "mnist search": 40.0,
    "mnist predict": 0.05,
}


def mnist(folder: Path) -> tuple:
    """All digits, 60,000 x 784 in [0, 1], and the 10,000 to predict."""
    file = np.load(folder / "mnist.npz")
    parts = [(file[name].reshape(len(file[name]), -1) / 255) for name in ("X", "X_test")]
    return parts[0].astype(np.float32), file["y"], parts[1].astype(np.float32), file["y_test"]


def covtype(folder: Path) -> tuple:
    """Class 2 against the rest, every column in [0, 1], 80 % of the rows at random."""
    file = np.load(folder / "covtype.npz")
    X, y = file["X"].astype(np.float32), (file["y"] == 2).astype(int)
    low, high = X.min(axis=0), X.max(axis=0)
    X = (X - low) / np.maximum(high - low, 1e-9)
    rows = np.random.default_rng(0).permutation(len(X))[: int(0.8 * len(X))]
    return X[rows], y[rows]


def synthetic() -> tuple:
    """2,000,000 Gaussian points in 20 dimensions, a curved border, 0.3 % of the labels turned."""
    random = np.random.default_rng(0)
    X = random.standard_normal((2_000_000, 20), dtype=np.float32)
    border = np.sin(X[:, 0]) + 0.5 * X[:, 1] * X[:, 2] + 0.3 * X[:, 3]
    return X, ((border > 0) ^ (random.random(len(X)) < 0.003)).astype(int)


class Parts:
    """Seconds that parts of a fit take without those inside them, the device synchronised."""

    WATCHED = (
        ("transfer", cuda.Points, "prepare"),
        ("kernel matrix", cuda.Matrix, "_whole"),
        ("float64 sums", cuda.Matrix, "products"),
        ("solve", parallel_sets.ParallelSets, "solve"),
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
        times = []
        for _ in range(4):
            torch.cuda.synchronize()
            began = time.perf_counter()
            run()
            torch.cuda.synchronize()
            times.append(time.perf_counter() - began)
        return min(times)

    big = torch.empty(1 << 30, dtype=torch.float32, device="cuda")
    other, n = torch.empty_like(big), 8192
    found = {"bytes per second": 2 * big.nbytes / best(lambda: other.copy_(big))}
    for name in DTYPES:
        A = torch.randn((n, n), device="cuda").to(getattr(torch, name))
        found[f"{name} flops"] = 2 * n**3 / best(lambda A=A: A @ A)
    return found


def measured_fit(model: SVC, X: np.ndarray, y: np.ndarray, repeats: int) -> dict:
    """Fit some times; returns times, parts, the certificate's numbers and the floors."""
    times = []
    for _ in range(repeats + 1):
        torch.cuda.synchronize()
        began = time.perf_counter()
        model.fit(X, y)
        times.append(time.perf_counter() - began)
        print(f"  fit {times[-1]:.3f} s", flush=True)
    with Parts() as parts:
        model.fit(X, y)
    certificate = model.certificate_
    pairs = certificate.parts or (certificate,)
    kept = len(X) ** 2 * 4 <= 0.6 * cuda.budget(torch.device("cuda"), "auto")
    return {
        "rows": len(X),
        "features": X.shape[1],
        "first": times[0],
        "seconds": float(np.median(times[1:])),
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
    parser.add_argument("--data", type=Path, default=Path("data"))
    parser.add_argument("--output", type=Path, default=HERE / "results")
    parser.add_argument("--only", default="mnist,covtype,search,synthetic")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    wanted = options.only.split(",")
    path = options.output / "gpu.json"
    results = json.loads(path.read_text()) if path.exists() else {}
    results["machine"] = {
        "card": torch.cuda.get_device_name(0),
        "torch": torch.__version__,
        "triton": triton.__version__,
        "python": platform.python_version(),
        "maxmargin": maxmargin.__version__,
        **card(),
    }
    for name in wanted:
        print(name, flush=True)
        for key, record in WORKLOADS[name](options):
            results[key] = record
            options.output.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(results, indent=1) + "\n")
            (options.output / "gpu.md").write_text(report(results))
    print(report(results))


def _mnist(options: argparse.Namespace) -> object:
    X, y, X_test, y_test = mnist(options.data)
    for gamma in (0.02, 0.125):
        model = SVC(C=10, gamma=gamma, device="cuda")
        record = measured_fit(model, X, y, options.repeats)
        if options.check:
            check(record, model, X, y)
        yield f"mnist, gamma={gamma}", record
        if gamma == 0.02:
            times = []
            for _ in range(options.repeats + 1):
                began = time.perf_counter()
                found = model.predict(X_test)
                times.append(time.perf_counter() - began)
            accuracy = float((found == y_test).mean())
            yield (
                "mnist predict",
                {
                    "rows": len(X_test),
                    "seconds": float(np.median(times[1:])),
                    "accuracy": accuracy,
                },
            )


def _covtype(options: argparse.Namespace) -> object:
    model = SVC(C=10, gamma=10, device="cuda")
    X, y = covtype(options.data)
    record = measured_fit(model, X, y, options.repeats)
    if options.check:
        check(record, model, X, y)
    yield "covtype", record


def _synthetic(options: argparse.Namespace) -> object:
    model = SVC(C=10, gamma=0.05, device="cuda")
    yield "synthetic", measured_fit(model, *synthetic(), min(options.repeats, 1))


def _search(options: argparse.Namespace) -> object:
    X, y, *_ = mnist(options.data)
    grid = {"C": [0.1, 1, 10, 100, 1000], "gamma": [0.005, 0.01, 0.02, 0.04, 0.08]}
    search = SVCSearchCV(grid, estimator=SVC(device="cuda"), cv=5)
    began = time.perf_counter()
    search.fit(X, y)
    yield (
        "mnist search",
        {
            "rows": len(X),
            "seconds": time.perf_counter() - began,
            "best": {**search.best_params_, "score": search.best_score_},
        },
    )


WORKLOADS = {"mnist": _mnist, "covtype": _covtype, "search": _search, "synthetic": _synthetic}


def report(results: dict) -> str:
    """Tables of what was measured."""
    about, rows = results["machine"], {k: v for k, v in results.items() if k != "machine"}
    rates = [f"{about[f'{name} flops'] / 1e12:.0f} in {name}" for name in DTYPES]
    columns = ["workload", "rows", "seconds", "to reach", "first"]
    columns += ["support vectors", "KKT violation", "relative gap"]
    lines = [
        "# On a GPU",
        "",
        "`python benchmarks/gpu.py`",
        "",
        f"{about['card']}, torch {about['torch']}, Triton {about['triton']}, "
        f"maxmargin {about['maxmargin']}. Measured here: {about['bytes per second'] / 1e12:.1f} "
        f"TB/s; Tflop/s: {', '.join(rates)}.",
        "",
        "Seconds of a call, data beginning as float32 arrays in host memory; the median after a",
        "first call, which compiles and is given apart.",
        "",
        f"| {' | '.join(columns)} |",
        "|---" * len(columns) + "|",
    ]
    for key, r in rows.items():
        more = ["-"] * 4
        if "dual" in r:
            violation, gap = f"{r['violation']:.1e}", f"{r['relative gap']:.1e}"
            more = [f"{r['first']:.1f}", f"{r['support vectors']:,}", violation, gap]
        cells = [key, f"{r['rows']:,}", f"{r['seconds']:.3g}", f"{TO_REACH[key]:g}", *more]
        lines.append("| " + " | ".join(cells) + " |")
    fits = {key: r for key, r in rows.items() if "parts" in r}
    names = [part for part, *_ in Parts.WATCHED]
    lines += [
        "",
        "Where the time of a fit goes (timed apart, the device synchronised in between):",
        "",
    ]
    lines += [f"| workload | {' | '.join(names)} | peak GB |", "|---" * (len(names) + 2) + "|"]
    for key, r in fits.items():
        times = [f"{r['parts'].get(name, 0.0):.3f}" for name in names]
        lines.append(f"| {key} | {' | '.join(times)} | {r['peak GB']:.1f} |")
    lines += [
        "",
        "Floors: what must be moved once over the bandwidth, and the flops of the support",
        "",
    ]
    lines[-2] += " vectors' kernel rows over the float32 rate."
    lines += ["| workload | bytes (s) | flops (s) | seconds over the larger |", "|---|---|---|---|"]
    for key, r in fits.items():
        moved, counted = r["bytes"] / about["bytes per second"], r["flops"] / about["float32 flops"]
        times = r["seconds"] / max(moved, counted)
        lines.append(f"| {key} | {moved:.4f} | {counted:.4f} | {times:.0f} |")
    below = {k: r[c] for k, r in rows.items() for c in r if c.startswith("objective below")}
    for key, value in below.items():
        lines += ["", f"{key}: dual objective below the CPU engine's by {value:.1e} of it."]
    for key, r in rows.items():
        for name in ("accuracy", "best"):
            if name in r:
                lines += ["", f"{key}: {name} {r[name]}."]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
