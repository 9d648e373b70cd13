"""What the records of ``speed.py`` say: ratios that may be believed, targets, and the tables.

A record holds the runs of every library on one workload. A ratio is the peer's median time over
ours, and there is one only if no run of either raised a doubt, if our dual objective is no worse
than the peer's by more than ``WORSE``, and, for a search, if the scores agree to ``APART``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from harness import DASH, geometric_mean, in_words, number, table
from libraries import INTELEX, OURS, PEERS, SETTINGS, SKLEARN
from workloads import LARGE, WORKLOADS, Workload

WORSE = 1e-5
APART = 0.002
BETTER = "the better peer"


@dataclass(frozen=True)
class Row:
    """One workload's measurements."""

    workload: Workload
    runs: dict[str, list[dict]]

    def values(self, library: str, name: str) -> list:
        """What the runs of a library say under a name, where they say anything."""
        values = [run.get(name) for run in self.runs.get(library, [])]
        return [value for value in values if value is not None]

    def median(self, library: str, name: str) -> float | None:
        """Median over the runs."""
        values = self.values(library, name)
        return float(np.median(values)) if values else None

    def doubts(self, library: str) -> list[str]:
        """Every reason not to believe this library's times."""
        runs = self.runs.get(library, [])
        said = [run[name] for run in runs for name in ("error", "absent") if name in run]
        reasons = said + [reason for run in runs for reason in run.get("doubts", [])]
        return list(dict.fromkeys(reasons)) if runs else ["not measured"]

    def shortfall(self, peer: str) -> float | None:
        """How much our worst dual objective is below the peer's best, relative to that."""
        ours, theirs = ([sum(d) for d in self.values(name, "duals")] for name in (OURS, peer))
        return (max(theirs) - min(ours)) / abs(max(theirs)) if ours and theirs else None

    def apart(self, peer: str) -> float | None:
        """Largest difference of a mean score between two searches."""
        ours, theirs = (self.values(name, "mean_test_score") for name in (OURS, peer))
        return float(np.abs(np.subtract(ours[0], theirs[0])).max()) if ours and theirs else None

    def objections(self, peer: str) -> list[str]:
        """Why there is no ratio to this peer; empty if there is one."""
        reasons = [f"{name}: {text}" for name in (OURS, peer) for text in self.doubts(name)]
        shortfall, apart = self.shortfall(peer), self.apart(peer)
        if shortfall is not None and shortfall > WORSE:
            reasons.append(f"our dual objective is worse than {peer}'s by {shortfall:.1e}")
        if apart is not None and not apart <= APART:  # nan is no agreement
            reasons.append(f"mean scores of {OURS} and {peer} differ by up to {apart:.4f}")
        return reasons

    def ratio(self, peer: str, name: str = "fit") -> float | None:
        """The peer's median time over ours, if both are believed; against BETTER the smallest."""
        if peer == BETTER:
            ratios = [self.ratio(one, name) for one in PEERS]
            return min((ratio for ratio in ratios if ratio), default=None)
        ours, theirs = self.median(OURS, name), self.median(peer, name)
        return theirs / ours if ours and theirs and not self.objections(peer) else None


@dataclass(frozen=True)
class Target:
    """Ratios that a group of workloads is to reach.

    ``least`` gives the geometric mean against each peer, ``each`` what no single workload may be
    below, against the better peer.
    """

    what: str
    belongs: Callable[[Workload], bool]
    least: dict[str, float]
    name: str = "fit"
    each: float | None = None

    def size(self) -> int:
        """Number of workloads in the group."""
        return sum(map(self.belongs, WORKLOADS.values()))


TARGETS = (
    Target("SVC fit, large", lambda w: w.group == LARGE, {SKLEARN: 15, INTELEX: 3}, each=2),
    Target("SVC fit, the other four", lambda w: w.group not in ("", LARGE), {BETTER: 2.5}, each=1),
    Target("SVC predict", lambda w: w.group != "", {SKLEARN: 15, INTELEX: 1.3}, name="predict"),
    Target("SVR fit", lambda w: w.section == "svr", {SKLEARN: 8, INTELEX: 3}),
    Target("nu machines fit", lambda w: w.section == "nu", {SKLEARN: 6, INTELEX: 1.5}),
    Target("search", lambda w: w.section == "search", {SKLEARN: 50, INTELEX: 15}),
)
COLD = {"empty": 15.0, "filled": 0.5}  # seconds of the first small fit, by Numba's cache


def exponent(sizes: list[int], values: list[float]) -> float:
    """Slope of a straight line through the logarithms: ``value ~ size ** exponent``."""
    return float(np.polyfit(np.log(sizes), np.log(values), 1)[0])


def rows(results: dict, section: str | None = None) -> list[Row]:
    """Rows of a section, or all, in the order of the workloads."""
    chosen = (w for w in WORKLOADS.values() if w.key in results and section in (None, w.section))
    return [Row(workload, results[workload.key]["runs"]) for workload in chosen]


LIBRARIES = (OURS, *PEERS)
TITLES = {
    "svc": "SVC, dense float64",
    "csr": "SVC, CSR",
    "svr": "SVR",
    "nu": "NuSVC, NuSVR, OneClassSVM",
    "search": "Search over C and gamma",
}
SUMMARIES = {"geometric mean": geometric_mean, "smallest": min}
CHECKS = (
    f"Checks, with the numbers of {' / '.join(LIBRARIES)}: how far our dual objective is below a "
    "peer's, relative (negative: ours is better); the KKT violation; and the peak memory of the "
    "fit beyond the data."
)


def report(results: dict, quick: bool) -> str:
    """All tables, as Markdown."""
    title = "# Speed" + (", on small subsets (`--quick`): not to be quoted" if quick else "")
    parts = [title, "`python benchmarks/speed.py`", _environment(results), _rules()]
    parts += ["## Targets", _targets(results), "![Ratios](speed.svg)"]
    for section, heading in TITLES.items():
        found = rows(results, section)
        if found:
            parts += [f"## {heading}", *_section(found)]
    parts += [*_growth(results), *_cold(results)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _environment(results: dict) -> str:
    """Say where and with what the results were measured; normally the same for all."""
    seen = []
    for record in results.values():
        environment = record["environment"]
        if environment not in seen:
            seen.append(environment)
    return "\n\n".join(map(in_words, seen))


def _rules() -> str:
    settings = ", ".join(f"`{name}={value!r}`" for name, value in SETTINGS.items())
    return (
        f"Every library gets the same arrays and {settings}. Times are wall seconds, the median of "
        "the runs, each in its own process after a warm-up; ratios are the peer's time over ours. "
        "A ratio is given only if both machines converged (KKT violation recomputed in float64) "
        "and our dual objective is no worse than the peer's by more than 1e-5 of it."
    )


def _targets(results: dict) -> str:
    """Every figure to reach, and what was measured of it."""
    lines = []
    for target in TARGETS:
        group = [row for row in rows(results) if target.belongs(row.workload)]
        wanted = [(peer, "geometric mean", least) for peer, least in target.least.items()]
        wanted += [(BETTER, "smallest", target.each)] if target.each else []
        for peer, what, least in wanted:
            known = [ratio for row in group if (ratio := row.ratio(peer, target.name))]
            value = SUMMARIES[what](known) if known else None
            reached = DASH if value is None else "yes" if value >= least else "no"
            lacking = sum(bool(row.values(peer, "absent")) for row in group)
            count = f"{len(known)} of {target.size() - lacking}"
            cells = [target.what, peer, what, number(value), f"{least:g}", reached, count]
            lines.append(cells)
    header = ["what", "against", "ratio", "measured", "to reach", "reached", "by workloads"]
    return table(header, lines)


def _section(found: list[Row]) -> list[str]:
    """Tables of one section: fit, predict, checks, and why a ratio is missing."""
    parts = [_times(found, "fit")]
    if any(row.values(OURS, "predict") for row in found):
        parts += ["Prediction:", _times(found, "predict")]
    if any(row.values(OURS, "duals") for row in found):
        parts += [CHECKS, _checks(found)]
    if any(row.values(OURS, "mean_test_score") for row in found):
        parts += ["Scores:", _scores(found)]
    return [*parts, _objections(found, PEERS)]


def _times(found: list[Row], name: str) -> str:
    """Table of seconds, ours and the peers', and ratios."""
    header = ["workload", "rows", f"{OURS} (s)"]
    for peer in PEERS:
        header += [f"{peer} (s)", "ratio"]
    lines = []
    for row in found:
        count = row.median(OURS, "rows" if name == "fit" else "predicted_rows")
        line = [row.workload.name, number(count, ",.0f"), number(row.median(OURS, name))]
        for peer in PEERS:
            line += [number(row.median(peer, name)), number(row.ratio(peer, name))]
        lines.append(line)
    means = ["geometric mean", "", ""]
    for peer in PEERS:
        ratios = [ratio for row in found if (ratio := row.ratio(peer, name))]
        means += ["", number(geometric_mean(ratios) if ratios else None)]
    return table(header, [*lines, means])


def _checks(found: list[Row]) -> str:
    """Table of support vectors, objectives, violations and memory."""
    short = [f"objective below {peer}'s" for peer in PEERS]
    header = ["workload", "support vectors", *short, "KKT violation", "peak memory (MB)"]
    lines = []
    for row in found:
        vectors = _side_by_side(row, "support_vectors", ".0f")
        violations = _side_by_side(row, "violation", ".2e")
        memory = _side_by_side(row, "peak_bytes", ".0f", unit=1e6)
        gaps = [number(row.shortfall(peer), ".1e") for peer in PEERS]
        lines.append([row.workload.name, vectors, *gaps, violations, memory])
    return table(header, lines)


def _side_by_side(row: Row, name: str, form: str, unit: float = 1.0) -> str:
    values = [row.median(library, name) for library in LIBRARIES]
    return " / ".join(number(value and value / unit, form) for value in values)


def _scores(found: list[Row]) -> str:
    apart = [f"largest difference to {peer}" for peer in PEERS]
    lines = []
    for row in found:
        best = row.values(OURS, "best_params")[0] if row.values(OURS, "best_params") else DASH
        gaps = [number(row.apart(peer), ".4f") for peer in PEERS]
        lines.append([row.workload.name, _side_by_side(row, "best_score", ".4f"), str(best), *gaps])
    return table(["workload", "best score", "best parameters, ours", *apart], lines)


def _objections(found: list[Row], peers: tuple[str, ...]) -> str:
    """Say why ratios are missing."""
    notes = {
        f"- {row.workload.name}: {reason}"
        for row in found
        for peer in peers
        for reason in row.objections(peer)
    }
    return "No ratio, and why:\n\n" + "\n".join(sorted(notes)) if notes else ""


def growth_curves(results: dict) -> dict[str, dict[str, list]]:
    """Sizes, seconds and MB of each library that has them."""
    curves: dict[str, dict[str, list]] = {}
    for row in rows(results, "growth"):
        for library in LIBRARIES:
            seconds, peak = row.median(library, "fit"), row.median(library, "peak_bytes")
            if seconds and peak:
                curve = curves.setdefault(library, {"rows": [], "seconds": [], "MB": []})
                curve["rows"].append(int(row.median(library, "rows")))
                curve["seconds"].append(seconds)
                curve["MB"].append(peak / 1e6)
    return curves


def _growth(results: dict) -> list[str]:
    """Table and exponents of the growth study."""
    found = rows(results, "growth")
    if not found:
        return []
    header = ["rows", "support vectors", f"{OURS} (s)", f"{INTELEX} (s)", "ratio", "peak MB"]
    lines = []
    for row in found:
        times = [number(row.median(library, "fit")) for library in (OURS, INTELEX)]
        vectors = number(row.median(OURS, "support_vectors"), ",.0f")
        peaks = [row.median(library, "peak_bytes") for library in (OURS, INTELEX)]
        memory = " / ".join(number(peak and peak / 1e6, ".0f") for peak in peaks)
        size = number(row.median(OURS, "rows"), ",.0f")
        lines.append([size, vectors, *times, number(row.ratio(INTELEX)), memory])
    heading = "## Growth: covtype, class 2 against the rest, C=10, gamma=10"
    exponents = [
        f"{library}: time grows as n^{exponent(curve['rows'], curve['seconds']):.2f}, "
        f"peak memory as n^{exponent(curve['rows'], curve['MB']):.2f}."
        for library, curve in growth_curves(results).items()
        if len(curve["rows"]) > 1
    ]
    notes = [" ".join(exponents), _objections(found, (INTELEX,)), "![Growth](growth.svg)"]
    return [heading, table(header, lines), *notes]


def _cold(results: dict) -> list[str]:
    """Table of the first fit in a new process."""
    lines = []
    for size, what in {"small": "569 rows", "larger": "5,000 rows"}.items():
        for cache, limit in COLD.items():
            runs = results.get(f"cold/{size}", {}).get("runs", {}).get(cache)
            if runs:
                reach = f"{limit:g}" if size == "small" else DASH
                lines.append([what, cache, reach, *_cold_times(runs)])
    if not lines:
        return []
    header = ["first fit", "Numba's cache", "to reach", "import and fit", "import", "second fit"]
    text = "Seconds beyond importing scikit-learn and Numba, in a new process."
    return ["## Cold start", text, table(header, lines)]


def _cold_times(runs: list[dict]) -> list[str]:
    """Medians of the whole, of the import alone and of a second fit, or the first error."""
    errors = [run["error"] for run in runs if "error" in run]
    if errors:
        return [errors[0], DASH, DASH]
    imports = [run["import_package"] + run["import_svc"] for run in runs]
    whole = [time + run["first_fit"] for time, run in zip(imports, runs, strict=True)]
    second = [run["second_fit"] for run in runs]
    return [number(float(np.median(times))) for times in (whole, imports, second)]
