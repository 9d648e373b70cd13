"""Kernels on sequences: promoters, splice junctions and ChIP-seq next to published figures; speed.

    python benchmarks/sequences.py --data FOLDER [--only nfe2,speed] [--repeats 3]

*Quality.* ``promoters`` (106 sequences): errors of leave-one-out. ``splice`` (three classes):
errors by class of ten-fold cross-validation on 1,000 of the 3,190 sequences, drawn at random. Both
are the protocols of the publication. ``nfe2``: area under the ROC curve on the test part, and of
five folds of the training part. C is 10 throughout, kernels are normalized; nothing is tuned.

*Speed.* The Gram matrix of the 3,190 splice sequences: ours, the package ``strkernels`` where it is
installed and has the kernel, and a plain loop over all pairs (half of them, by symmetry), compiled
by Numba, with as many threads. Letters other than A, C, G, T (in 15 sequences) are left out by ours
for the quality, and are A for the speed, so that all sides do the same work. CPU seconds of all
threads, the least of the repeats; ``strkernels`` on 200 sequences only.

*Cells.* What is compared a second and core: pairs of characters at every level (``Subsequence``),
of characters (``LocalAlignment``) and of words (``GappedKmer``), one thread.
Results go to ``results/sequences.json`` and ``results/sequences.md``.
"""

from __future__ import annotations

import argparse
import csv
import gzip
from collections.abc import Callable
from pathlib import Path

import numba
import numpy as np
from data import add_option
from harness import CPU, RESULTS, Records, chosen, cores, environment, in_words, table, times
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import LeaveOneOut, StratifiedKFold, cross_val_predict

from maxmargin import SVC, Gram
from maxmargin.backends.cpu.strings import words
from maxmargin.backends.threads import Workers, on_one_blas_thread
from maxmargin.kernels import (
    GappedKmer,
    Kernel,
    LocalAlignment,
    Mismatch,
    Spectrum,
    Subsequence,
    WeightedDegree,
)
from maxmargin.kernels.sequences import Alphabet

COSTS = {"promoters": 10.0, "splice": 10.0, "nfe2": 1.0}  # nfe2: as LS-GKM has it
FEW = 200  # rows for the package that is slow
PUBLISHED = {
    "promoters": "KBANN 4, backpropagation 8, O'Neill's rules 12, 3 nearest neighbours 13, ID3 19 "
    "(Towell, Shavlik, Noordewier, AAAI 1990; the data set's page at UCI).",
    "splice": "N / EI / IE: KBANN 4.62 / 7.56 / 8.47, backpropagation 5.29 / 5.74 / 10.75, PEBLS "
    "6.86 / 8.18 / 7.55, ID3 8.84 / 10.58 / 13.99, nearest neighbour 31.11 / 11.65 / 9.09 (the "
    "data set's page at UCI).",
    "nfe2": "LS-GKM (l = 10, k = 6, d = 3, C = 1, truncated filter): 0.9929 on the test part, "
    "0.9853 in five folds (not ours), both from the predictions in its repository "
    "(github.com/Dongwon-Lee/lsgkm, tests/, d7ef90f).",
}


def rows_of(folder: Path, name: str) -> list[dict[str, str]]:
    """Read a data set."""
    with gzip.open(folder / f"dna_{name}.csv.gz", "rt") as file:
        return list(csv.DictReader(file))


# -- quality -----------------------------------------------------------------------------------


def promoters(folder: Path) -> dict[str, dict]:
    """Errors of leave-one-out."""
    rows = rows_of(folder, "promoters")
    X, y = [row["sequence"] for row in rows], np.array([row["class"] for row in rows])
    kernels: list[Kernel] = [
        Spectrum(3),
        Spectrum(4),
        Mismatch(5, 1),
        GappedKmer(6, 4),
        Subsequence(4, 0.6),
        LocalAlignment("dna", beta=0.1, gap_open=10.0, gap_extend=2.0),
        WeightedDegree(1),
        WeightedDegree(4),
        WeightedDegree(4, shift=3),
    ]

    def measured(kernel: Kernel) -> dict:
        model = SVC(kernel=kernel.normalized(), C=COSTS["promoters"])
        return {"errors": int((cross_val_predict(model, X, y, cv=LeaveOneOut()) != y).sum())}

    return {str(kernel): timed(lambda k=kernel: measured(k)) for kernel in kernels}


def splice(folder: Path) -> dict[str, dict]:
    """Errors by class, in percent, of ten-fold cross-validation on 1,000 sequences."""
    rows = rows_of(folder, "splice")
    some = np.random.default_rng(0).permutation(len(rows))[:1000]
    X = [rows[i]["sequence"] for i in some]
    y = np.array([rows[i]["class"] for i in some])
    kernels: list[Kernel] = [
        Spectrum(4, unknown="skip"),
        Mismatch(6, 1, unknown="skip"),
        WeightedDegree(1, unknown="skip"),
        WeightedDegree(6, unknown="skip"),
        WeightedDegree(6, shift=1, unknown="skip"),
    ]

    def measured(kernel: Kernel) -> dict:
        folds = StratifiedKFold(10, shuffle=True, random_state=0)
        found = cross_val_predict(
            SVC(kernel=kernel.normalized(), C=COSTS["splice"]), X, y, cv=folds
        )
        errors = {c: float(100 * (found != y)[y == c].mean()) for c in ("N", "EI", "IE")}
        return {**errors, "all": float(100 * (found != y).mean())}

    return {str(kernel): timed(lambda k=kernel: measured(k)) for kernel in kernels}


def nfe2(folder: Path) -> dict[str, dict]:
    """Areas under the ROC curve: test part, and five folds of the training part."""
    parts = {}
    for part in ("train", "test"):
        rows = [row for row in rows_of(folder, "nfe2_chipseq") if row["split"] == part]
        parts[part] = [row["sequence"] for row in rows], np.array([int(row["y"]) for row in rows])
    (X, y), (X_new, y_new) = parts["train"], parts["test"]
    kernels: list[Kernel] = [
        Spectrum(6, both_strands=True),
        Mismatch(6, 1, both_strands=True),
        GappedKmer(6, 4, both_strands=True),
        GappedKmer(8, 5, both_strands=True),
        GappedKmer(10, 6, both_strands=True),
        GappedKmer(10, 6, both_strands=True, estimate=True, max_mismatches=3),
    ]

    def measured(kernel: Kernel) -> dict:
        K = kernel.normalized()(X + X_new)  # once for all folds
        K_new, K = K[len(X) :, : len(X)], K[: len(X), : len(X)]
        model = SVC(kernel="precomputed", C=COSTS["nfe2"])
        folds = StratifiedKFold(5, shuffle=True, random_state=0)
        held_out = cross_val_predict(model, K, y, cv=folds, method="decision_function")
        values = model.fit(K, y).decision_function(K_new)
        return {"test": roc_auc_score(y_new, values), "folds": roc_auc_score(y, held_out)}

    return {str(kernel): timed(lambda k=kernel: measured(k)) for kernel in kernels}


def timed(work: Callable[[], dict]) -> dict:
    """What some work finds, and the CPU seconds it takes."""
    began = CPU()
    found = work()
    found["seconds"] = CPU() - began
    print(found, flush=True)
    return found


# -- speed -------------------------------------------------------------------------------------


@numba.njit(parallel=True, cache=True)
def plain_spectrum(numbers: np.ndarray) -> np.ndarray:
    """Words in common of every pair of rows (n, words): all of one compared with all of another."""
    n, count = numbers.shape
    out = np.empty((n, n))
    for i in numba.prange(n):
        for j in range(i, n):
            total = 0
            for a in range(count):
                for b in range(count):
                    total += numbers[i, a] == numbers[j, b]
            out[i, j] = out[j, i] = total
    return out


@numba.njit(parallel=True, cache=True)
def merged_spectrum(numbers: np.ndarray) -> np.ndarray:
    """The same of rows that are sorted, in one pass over both: the better plain loop."""
    n, count = numbers.shape
    out = np.empty((n, n))
    for i in numba.prange(n):
        for j in range(i, n):
            total, a, b = 0, 0, 0
            while a < count and b < count:
                u, v = numbers[i, a], numbers[j, b]
                if u < v:
                    a += 1
                elif v < u:
                    b += 1
                else:
                    first, second = a, b
                    while a < count and numbers[i, a] == u:
                        a += 1
                    while b < count and numbers[j, b] == u:
                        b += 1
                    total += (a - first) * (b - second)
            out[i, j] = out[j, i] = total
    return out


@numba.njit(parallel=True, cache=True)
def plain_mismatch(codes: np.ndarray, k: int, common: np.ndarray) -> np.ndarray:
    """Neighbours in common of every pair of words; ``common`` by how many letters differ."""
    n, length = codes.shape
    out = np.empty((n, n))
    for i in numba.prange(n):
        for j in range(i, n):
            total = 0.0
            for a in range(length - k + 1):
                for b in range(length - k + 1):
                    different = 0
                    for p in range(k):
                        different += codes[i, a + p] != codes[j, b + p]
                    total += common[different]
            out[i, j] = out[j, i] = total
    return out


def speed(folder: Path, repeats: int) -> dict[str, dict]:
    """Seconds of the Gram matrix of all splice sequences; all sides must find the same values."""
    X = [row["sequence"] for row in rows_of(folder, "splice")]
    X = ["".join(c if c in "ACGT" else "A" for c in x) for x in X]
    found = {}
    for name, rows, works in sides():
        some = X if rows is None else X[:rows]
        for work in works.values():
            work(some[:64])  # compiles
        values, taken = {}, {}
        for _ in range(repeats):
            for side, work in works.items():
                if not (side in taken and side.startswith("plain")):  # these take long
                    seconds = times(lambda: values.update({side: work(some)}), 1, CPU)[0]  # noqa: B023
                    taken[side] = min(taken.get(side, np.inf), seconds)
        for side, matrix in values.items():
            if not np.allclose(matrix, values["maxmargin"], rtol=1e-9):
                raise SystemExit(f"{name}: {side} has other values, so that nothing is compared.")
        found[name] = taken
        print(name, taken, flush=True)
    return found


def sides() -> list[tuple[str, int | None, dict[str, Callable]]]:
    """What is compared: ``(kernel, number of rows, functions of sequences by side)``."""
    workers, dna = Workers(cores()), Alphabet.of("dna")

    def ours(kernel: Kernel) -> Callable:
        return on_one_blas_thread(lambda X: Gram.of(X, kernel).dense(workers))  # as in a fit

    def sorted_words(X: list[str], k: int) -> np.ndarray:
        strings = dna.encode(X)
        found = words(*strings, k, 4, False).reshape(len(X), -1)
        return np.sort(found[:, : found.shape[1] - k + 1], axis=1)

    def mismatches(X: list[str], k: int) -> np.ndarray:
        words_apart = ["C" * d + "A" * (k - d) for d in range(k + 1)]
        common = Mismatch(k, 1)(["A" * k], words_apart)[0]
        return plain_mismatch(dna.encode(X).codes.reshape(len(X), -1), k, common)

    compared: list[tuple[str, int | None, dict[str, Callable]]] = []
    for k in (3, 6):
        plain = {
            "plain loop": lambda X, k=k: plain_spectrum(sorted_words(X, k)),
            "plain loop, sorted": lambda X, k=k: merged_spectrum(sorted_words(X, k)),
        }
        compared.append((f"Spectrum({k})", None, {"maxmargin": ours(Spectrum(k)), **plain}))
    for k in (5, 6):
        works = {"maxmargin": ours(Mismatch(k, 1)), "plain loop": lambda X, k=k: mismatches(X, k)}
        compared.append((f"Mismatch({k}, 1)", None, works))
    compared += [
        ("Mismatch(8, 1)", None, {"maxmargin": ours(Mismatch(8, 1))}),
        ("WeightedDegree(5)", None, {"maxmargin": ours(WeightedDegree(5))}),
    ]
    for kernel, work in theirs():  # which would take minutes with all rows
        pair = {"maxmargin": ours(kernel), "strkernels": work}
        compared.append((f"{kernel}, {FEW} rows", FEW, pair))
    return compared


def theirs() -> list[tuple[Kernel, Callable]]:
    """What the package strkernels has, beside the same kernel here.

    Its spectrum and subsequences are sums over all lengths up to k, its degrees have no divisor.
    """
    try:
        import strkernels as them
    except ImportError:
        return []
    plain = {"normalizer": None}
    kernels = [
        (Spectrum(1) + Spectrum(2) + Spectrum(3), them.SpectrumStringKernel(order=3, **plain)),
        (15 * WeightedDegree(5), them.WeightedDegreeStringKernel(degree=5, **plain)),
        (
            Subsequence(1, 0.5) + Subsequence(2, 0.5) + Subsequence(3, 0.5),
            them.SubsequenceStringKernel(maxlen=3, ssk_lambda=0.5, **plain),
        ),
    ]
    return [(ours, lambda X, kernel=kernel: kernel(X, X)) for ours, kernel in kernels]


def cells(repeats: int) -> dict[str, dict]:
    """Cells of the recursions, and pairs of words, in 10^9 a second on one core."""
    kernels: list[tuple[Kernel, str, Callable]] = [
        (Subsequence(4), "ACGT", lambda length: 4 * length**2),
        (LocalAlignment(shift=0.0), "ARNDCQEGHILKMFPSTWYV", lambda length: length**2),
        (GappedKmer(10, 6), "ACGT", lambda length: (length - 9) ** 2),
    ]
    random, found = np.random.default_rng(0), {}
    for kernel, letters, work in kernels:
        row = {}
        for length in (60, 300):
            n = 30_000 // length
            X = ["".join(random.choice(list(letters), size=length)) for _ in range(n)]
            gram = Gram.of(X, kernel)
            gram.dense(Workers(1))  # compiles
            seconds = min(times(lambda: gram.dense(Workers(1)), repeats, CPU))  # noqa: B023
            row[str(length)] = n * (n + 1) / 2 * work(length) / seconds / 1e9
        found[str(kernel)] = row
        print(kernel, row, flush=True)
    return found


# -- report ------------------------------------------------------------------------------------

COLUMNS = {
    "promoters": ("Promoters: errors of leave-one-out, of 106", ["errors"], "{:.0f}"),
    "splice": (
        "Splice junctions: errors in %, ten folds of 1,000 sequences",
        ["N", "EI", "IE", "all"],
        "{:.2f}",
    ),
    "nfe2": ("NFE2 binding sites: area under the ROC curve", ["test", "folds"], "{:.4f}"),
}


def report(records: Records) -> str:
    """The tables."""
    parts = ["# Kernels on sequences", "`python benchmarks/sequences.py --data FOLDER`"]
    parts += [in_words(records["machine"])]
    for name, (title, columns, form) in COLUMNS.items():
        if name in records:
            lines = [
                [f"`{kernel}`", *(form.format(row[c]) for c in columns), f"{row['seconds']:.1f}"]
                for kernel, row in records[name].items()
            ]
            parts += [f"## {title}", table(["kernel", *columns, "CPU s"], lines)]
            parts += [f"Normalized, C = {COSTS[name]:g}. Published: {PUBLISHED[name]}"]
    if "speed" in records:
        sides = ["maxmargin", "strkernels", "plain loop", "plain loop, sorted"]
        lines = []
        for name, row in records["speed"].items():
            cells = [f"{row[side]:.3f}" if side in row else "-" for side in sides]
            ratios = [row[side] / row["maxmargin"] for side in sides[1:] if side in row]
            lines.append([name, *cells, f"{min(ratios):.1f}" if ratios else "-"])
        header = ["kernel", *sides, "least ratio"]
        parts += ["## Gram matrix of 3,190 splice sequences, CPU seconds of all threads"]
        parts += [table(header, lines)]
    if "cells" in records:
        lines = [
            [f"`{k}`", *(f"{v:.2f}" for v in row.values())] for k, row in records["cells"].items()
        ]
        parts += ["## Cells of recursions, and pairs of words, in 10^9 a second on one core"]
        parts += [table(["kernel", "60 characters", "300 characters"], lines)]
    return "\n\n".join(parts) + "\n"


def main() -> None:
    """Measure what is asked for, and write the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_option(parser)
    parser.add_argument("--only", default="")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args()
    if options.data is None:
        parser.error("where are the data? Give --data FOLDER.")
    records = Records(options.output / "sequences.json")
    records["machine"] = environment()
    works: dict[str, Callable[[], dict]] = {
        "promoters": lambda: promoters(options.data),
        "splice": lambda: splice(options.data),
        "nfe2": lambda: nfe2(options.data),
        "speed": lambda: speed(options.data, options.repeats),
        "cells": lambda: cells(options.repeats),
    }
    for name in chosen(options.only, works, parser):
        records[name] = works[name]()
        records.save()
        records.write(report(records))
    print(report(records))


if __name__ == "__main__":
    main()
