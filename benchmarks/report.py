"""The tables of ``speed.md``, from the recorded results alone."""

from __future__ import annotations

import numpy as np
from libraries import INTELEX, OURS, PEERS, SETTINGS
from verdict import BETTER, COLD, TARGETS, Row, exponent, geometric_mean, rows

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
DASH = "-"


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


def _table(header: list[str], lines: list[list[str]]) -> str:
    rule = ["---"] * len(header)
    return "\n".join("| " + " | ".join(cells) + " |" for cells in [header, rule, *lines])


def _number(value: float | None, form: str = ".3g") -> str:
    """Write a number, or a dash; times and ratios with three digits."""
    if value is None:
        return DASH
    return f"{value:.0f}" if form == ".3g" and abs(value) >= 1000 else f"{value:{form}}"


def _environment(results: dict) -> str:
    """Say where and with what the results were measured; normally the same for all."""
    seen = []
    for record in results.values():
        environment = record["environment"]
        if environment not in seen:
            seen.append(environment)
    lines = []
    for environment in seen:
        versions = ", ".join(f"{name} {text}" for name, text in environment["versions"].items())
        machine = f"{environment['cpu']}, {environment['cores']} cores"
        lines.append(
            f"{machine}, {environment['memory_gb']} GB, {environment['system']}. {versions}."
        )
    return "\n\n".join(lines)


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
            cells = [target.what, peer, what, _number(value), f"{least:g}", reached, count]
            lines.append(cells)
    header = ["what", "against", "ratio", "measured", "to reach", "reached", "by workloads"]
    return _table(header, lines)


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
        line = [row.workload.name, _number(count, ",.0f"), _number(row.median(OURS, name))]
        for peer in PEERS:
            line += [_number(row.median(peer, name)), _number(row.ratio(peer, name))]
        lines.append(line)
    means = ["geometric mean", "", ""]
    for peer in PEERS:
        ratios = [ratio for row in found if (ratio := row.ratio(peer, name))]
        means += ["", _number(geometric_mean(ratios) if ratios else None)]
    return _table(header, [*lines, means])


def _checks(found: list[Row]) -> str:
    """Table of support vectors, objectives, violations and memory."""
    short = [f"objective below {peer}'s" for peer in PEERS]
    header = ["workload", "support vectors", *short, "KKT violation", "peak memory (MB)"]
    lines = []
    for row in found:
        vectors = _side_by_side(row, "support_vectors", ".0f")
        violations = _side_by_side(row, "violation", ".2e")
        memory = _side_by_side(row, "peak_bytes", ".0f", unit=1e6)
        gaps = [_number(row.shortfall(peer), ".1e") for peer in PEERS]
        lines.append([row.workload.name, vectors, *gaps, violations, memory])
    return _table(header, lines)


def _side_by_side(row: Row, name: str, form: str, unit: float = 1.0) -> str:
    values = [row.median(library, name) for library in LIBRARIES]
    return " / ".join(_number(value and value / unit, form) for value in values)


def _scores(found: list[Row]) -> str:
    apart = [f"largest difference to {peer}" for peer in PEERS]
    lines = []
    for row in found:
        best = row.values(OURS, "best_params")[0] if row.values(OURS, "best_params") else DASH
        gaps = [_number(row.apart(peer), ".4f") for peer in PEERS]
        lines.append([row.workload.name, _side_by_side(row, "best_score", ".4f"), str(best), *gaps])
    return _table(["workload", "best score", "best parameters, ours", *apart], lines)


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
        times = [_number(row.median(library, "fit")) for library in (OURS, INTELEX)]
        vectors = _number(row.median(OURS, "support_vectors"), ",.0f")
        peaks = [row.median(library, "peak_bytes") for library in (OURS, INTELEX)]
        memory = " / ".join(_number(peak and peak / 1e6, ".0f") for peak in peaks)
        size = _number(row.median(OURS, "rows"), ",.0f")
        lines.append([size, vectors, *times, _number(row.ratio(INTELEX)), memory])
    heading = "## Growth: covtype, class 2 against the rest, C=10, gamma=10"
    exponents = [
        f"{library}: time grows as n^{exponent(curve['rows'], curve['seconds']):.2f}, "
        f"peak memory as n^{exponent(curve['rows'], curve['MB']):.2f}."
        for library, curve in growth_curves(results).items()
        if len(curve["rows"]) > 1
    ]
    notes = [" ".join(exponents), _objections(found, (INTELEX,)), "![Growth](growth.svg)"]
    return [heading, _table(header, lines), *notes]


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
    return ["## Cold start", text, _table(header, lines)]


def _cold_times(runs: list[dict]) -> list[str]:
    """Medians of the whole, of the import alone and of a second fit, or the first error."""
    errors = [run["error"] for run in runs if "error" in run]
    if errors:
        return [errors[0], DASH, DASH]
    imports = [run["import_package"] + run["import_svc"] for run in runs]
    whole = [time + run["first_fit"] for time, run in zip(imports, runs, strict=True)]
    second = [run["second_fit"] for run in runs]
    return [_number(float(np.median(times))) for times in (whole, imports, second)]
