"""The pictures of the results: ratios of all workloads, and the growth study."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
from libraries import INTELEX, OURS, PEERS, SKLEARN
from matplotlib.figure import Figure
from report import Row, exponent, growth_curves, rows

COLOURS = {OURS: "#111111", SKLEARN: "#e07b00", INTELEX: "#0068b5"}
MARKERS = {OURS: "o", SKLEARN: "o", INTELEX: "s"}
LABELS = {SKLEARN: (0, 4), INTELEX: (0, -10)}  # above and below a marker, in points
mpl.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "maxmargin", "font.size": 9})


def draw(results: dict, folder: Path, quick: bool) -> None:
    """Write ``speed.svg`` and ``growth.svg``, as far as there are results for them."""
    _ratios(results, folder / "speed.svg", quick)
    _growth(results, folder / "growth.svg", quick)


def _save(figure: Figure, path: Path) -> None:
    figure.savefig(path, metadata={"Date": None})


def _ratios(results: dict, path: Path, quick: bool) -> None:
    """Draw, for every workload, how many times faster than each peer."""
    fits = [row for row in rows(results) if row.workload.section != "growth" and _any(row, "fit")]
    predictions = [row for row in rows(results) if _any(row, "predict")]
    if not fits:
        return
    figure = Figure(figsize=(9.5, 1.6 + 0.33 * len(fits)), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(1.2, 1))
    _panel(left, fits, "fit")
    _panel(right, predictions, "predict")
    figure.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=2)
    note = " (small subsets)" if quick else ""
    figure.suptitle(f"How many times faster than each peer{note}: its time over {OURS}'s")
    _save(figure, path)


def _any(row: Row, name: str) -> bool:
    return any(row.ratio(peer, name) for peer in PEERS)


def _panel(axes, found: list[Row], name: str) -> None:
    places = range(len(found))
    for peer in PEERS:
        ratios = [row.ratio(peer, name) for row in found]
        known = [(ratio, place) for ratio, place in zip(ratios, places, strict=True) if ratio]
        if known:
            style = {"color": COLOURS[peer], "marker": MARKERS[peer], "label": f"over {peer}"}
            axes.plot(*zip(*known, strict=True), linestyle="none", **style)
        for ratio, place in known:
            text = f"{ratio:.0f}" if ratio >= 9.95 else f"{ratio:.1f}"
            style = {"fontsize": 7, "color": COLOURS[peer], "ha": "center"}
            offset = {"xytext": LABELS[peer], "textcoords": "offset points"}
            axes.annotate(text, (ratio, place), **offset, **style)
    axes.axvline(1.0, color="#888888", linewidth=1)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}x")
    axes.set_yticks(places, [f"{row.workload.section}  {row.workload.name}" for row in found])
    axes.set_ylim(len(found) - 0.5, -0.7)
    axes.grid(axis="x", color="#dddddd", linewidth=0.6)
    axes.set_title(name)


def _growth(results: dict, path: Path, quick: bool) -> None:
    """Draw time and memory over the number of rows, on logarithmic axes."""
    curves = growth_curves(results)
    if not any(len(curve["rows"]) > 1 for curve in curves.values()):
        return
    figure = Figure(figsize=(9, 3.8), layout="constrained")
    units = {"seconds": "fit (s)", "MB": "peak memory beyond the data (MB)"}
    for axes, (name, label) in zip(figure.subplots(1, 2), units.items(), strict=True):
        for library, curve in curves.items():
            slope = exponent(curve["rows"], curve[name])
            style = {"color": COLOURS[library], "marker": MARKERS[library]}
            axes.plot(curve["rows"], curve[name], label=f"{library}: n^{slope:.2f}", **style)
        axes.set(xscale="log", yscale="log", xlabel="rows", ylabel=label)
        axes.grid(color="#dddddd", linewidth=0.6)
        axes.legend(frameon=False)
    note = " (small subsets)" if quick else ""
    figure.suptitle(f"covtype, class 2 against the rest, C=10, gamma=10{note}")
    _save(figure, path)
