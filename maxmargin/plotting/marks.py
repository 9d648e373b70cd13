"""What the pictures look like: colours, marks of points, legend; and matplotlib when needed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BLUE, ORANGE = "#0072b2", "#e69f00"
INK, CHALK = "#1a1a1a", "#f2f2f2"  # on paper and on filled fields; on a dark ground: see ink()

_MARKED = 400  # points that rings, dots or crosses are put on; more hide what they mark
_PAD = 0.03  # of the picture, between its frame and the legend
_BELOW = 0.45  # inches, for the numbers and the name of an axis above a legend that is below
_SHOWN = 16.0  # least area of a mark in a legend
_CROWDED = 1000  # points from which their marks are small and let others shine through

# M. A. Petroff (2021), Accessible color sequences for data visualization, arXiv:2107.02270
_TEN_COLOURS = [
    *("#3f90da", "#ffa90e", "#bd1f01", "#94a4a2", "#832db6"),
    *("#a96b59", "#e76300", "#b9ac70", "#717581", "#92dadd"),
]


def require_matplotlib() -> None:
    """Raise an ImportError that says how to install matplotlib where it is missing."""
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise ImportError(
            'Pictures need matplotlib, which is not installed: pip install "maxmargin[plot]"'
        ) from error


def on_dark_ground() -> bool:
    """Whether the style that is in force draws on a dark ground."""
    import matplotlib as mpl
    from matplotlib.colors import to_rgb

    return float(np.mean(to_rgb(mpl.rcParams["axes.facecolor"]))) < 0.5


def ink() -> str:
    """Return the colour of lines and marks on the ground of the style."""
    return CHALK if on_dark_ground() else INK


def ground() -> Any:
    """Return the colour that hides what is behind it."""
    import matplotlib as mpl

    return mpl.rcParams["axes.facecolor"] if on_dark_ground() else "white"


def axes_or_new(ax: Axes | None) -> Axes:
    """Return the given axes, or those of a new pyplot figure."""
    require_matplotlib()
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=(6.4, 5.2), layout="compressed")[1]


def axes_in_space(ax: Axes | None, asked_by: str) -> Axes:
    """Return the given axes if they have three dimensions, or those of a new figure."""
    require_matplotlib()
    if ax is None:
        import matplotlib.pyplot as plt

        space: dict[str, Any] = {"projection": "3d"}
        return plt.subplots(figsize=(6.4, 5.6), layout="compressed", subplot_kw=space)[1]
    if ax.name != "3d":
        raise ValueError(f'{asked_by} draws in space: make its axes with projection="3d".')
    return ax


def two_sided() -> Any:
    """Blue for the first class, white, orange for the second, as a colour map."""
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("sides", [BLUE, "white", ORANGE])


def colours(n: int) -> list:
    """Return n colours; up to ten of them can be told apart with colour-blindness."""
    if n <= 2:
        return [BLUE, ORANGE][:n]
    if n <= len(_TEN_COLOURS):
        return _TEN_COLOURS[:n]
    import matplotlib as mpl

    return list(mpl.colormaps["turbo"](np.linspace(0.05, 0.95, n)))


def rounded(kernel: Any) -> str:
    """Return how a kernel is written, its numbers to four digits."""
    return re.sub(r"\d+\.\d{4,}", lambda number: f"{float(number[0]):.4g}", str(kernel))


def describe(machine: Any) -> str:
    """Return kernel and cost of a machine in a few words, for a title."""
    kernel = rounded(getattr(machine, "kernel_", None) or type(machine).__name__)
    if getattr(machine, "feature_map_", None) is not None:
        kernel += f" by {type(machine.feature_map_).__name__}"
    if getattr(machine, "norm_bound", None) is not None:
        return f"{kernel}, ||w|| <= {machine.norm_bound:g}"
    for name in ("lam", "nu", "C"):
        if isinstance(getattr(machine, name, None), Real):
            return f"{kernel}, {name} = {getattr(machine, name):g}"
    return kernel


def size(points: np.ndarray) -> float:
    """Return the area of a point's mark, smaller where there are many points."""
    return float(np.clip(500 / np.sqrt(max(len(points), 1)), 4, 45))


def few(count: int, wanted: bool | str) -> bool:
    """Whether to put marks on so many points: more of them than this hide what they mark."""
    return count <= _MARKED if wanted == "auto" else bool(wanted)


def scatter(
    ax: Axes,
    points: np.ndarray,
    group: np.ndarray,
    colour: Any,
    marker: str = "o",
    label: str | None = None,
) -> None:
    """Draw a group of shape (m, 2) out of points of shape (n, 2), in the size that suits n."""
    crowded = len(points) > _CROWDED
    ax.scatter(
        group[:, 0],
        group[:, 1],
        s=size(points),
        color=colour,
        marker=marker,
        edgecolors="none" if crowded else "white",
        linewidths=0.4,
        alpha=0.6 if crowded else 1.0,
        zorder=2,
        label=label,
    )


def ring(
    ax: Axes, points: np.ndarray, support: np.ndarray, marked: bool = True, colour: Any = None
) -> None:
    """Ring the support vectors among points of shape (n, 2), or say how many there are."""
    colour = ink() if colour is None else colour
    look = {"facecolors": "none", "edgecolors": colour, "linewidths": 0.9, "zorder": 3}
    text = f"support vectors ({len(support)} of {len(points)}"
    _mark(ax, points, support, text, marked, 2.2, look)


def ring_free(ax: Axes, points: np.ndarray, rows: np.ndarray, marked: bool = True) -> None:
    """Ring the free support vectors among points of shape (n, 2)."""
    look = {"facecolors": "none", "edgecolors": ink(), "linewidths": 1.4, "zorder": 3}
    if len(rows):
        _mark(ax, points, rows, f"free support vectors ({len(rows)}", marked, 3.0, look)


def frame_bounded(ax: Axes, points: np.ndarray, rows: np.ndarray, marked: bool = True) -> None:
    """Put a square frame around the bounded support vectors among points of shape (n, 2)."""
    look = {
        "facecolors": "none",
        "edgecolors": ink(),
        "linewidths": 0.7,
        "zorder": 3,
        "marker": "s",
    }
    if len(rows):
        _mark(ax, points, rows, f"bounded support vectors ({len(rows)}", marked, 2.4, look)


def dot(ax: Axes, points: np.ndarray, which: np.ndarray, text: str, marked: bool = True) -> None:
    """Put a dot on those points of shape (n, 2) that a mask chooses, or say how many they are."""
    look = {"color": ink(), "linewidths": 0, "zorder": 4}
    if which.any():
        _mark(ax, points, which, f"{text} ({which.sum()}", marked, 0.22, look)


def cross(ax: Axes, points: np.ndarray, which: np.ndarray, text: str, marked: bool = True) -> None:
    """Put a cross on those points of shape (n, 2) that a mask chooses, or say how many they are."""
    look = {"marker": "x", "color": ink(), "linewidths": 1.1, "zorder": 4}
    if which.any():
        _mark(ax, points, which, f"{text} ({which.sum()}", marked, 0.9, look)


def bar(ax: Axes, points: np.ndarray, which: np.ndarray, text: str, marked: bool = True) -> None:
    """Put a bar on those points of shape (n, 2) that a mask chooses, or say how many they are."""
    look = {"marker": "_", "color": ink(), "linewidths": 1.4, "zorder": 4}
    if which.any():
        _mark(ax, points, which, f"{text} ({which.sum()}", marked, 1.2, look)


def _mark(
    ax: Axes, points: np.ndarray, which: Any, text: str, marked: bool, area: float, look: dict
) -> None:
    """Mark some of the points, or say in the legend what is not marked in the picture."""
    if marked:
        x, y = points[which].T
        ax.scatter(x, y, s=area * size(points), label=f"{text})", **look)
    else:
        ax.plot([], [], linestyle="none", label=f"{text}, not marked)")


def legend(ax: Axes, points: np.ndarray, lines: Sequence[Any] = ()) -> None:
    """Put the legend, if there is something in it, into a corner without any of the (n, 2) points.

    Where every corner has some, it goes below the picture, if the figure makes room for that (with
    ``layout="constrained"``), and otherwise into the emptiest corner.
    """
    handles = [*ax.get_legend_handles_labels()[0], *lines]
    if not handles:
        return
    options: dict[str, Any] = {"handles": handles, "fontsize": "small", "edgecolor": "none"}
    options["markerscale"] = max(1.0, float(np.sqrt(_SHOWN / size(points))))
    low, high = np.array([ax.get_xlim(), ax.get_ylim()]).T
    x, y = ((points - low) / (high - low)).T
    box = ax.legend(loc="upper right", **options).get_window_extent()
    wide, tall = np.array([box.width, box.height]) / ax.get_window_extent().size + _PAD
    crowd: dict[Any, int] = {
        f"{vertical} {horizontal}": np.sum((across < wide) & (along < tall))
        for vertical, along in (("upper", 1 - y), ("lower", y))
        for horizontal, across in (("right", 1 - x), ("left", x))
    }
    emptiest = min(crowd, key=lambda corner: crowd[corner])
    if crowd[emptiest] and ax.figure.get_layout_engine() is not None:
        legend_below(ax, **options)
    else:
        ax.legend(loc=emptiest, framealpha=0.85, **options)


def settle(figure: Any) -> None:
    """Lay a figure out before it is drawn, if scales are equal in it and no panel is empty.

    At first a layout takes such axes for as large as their place is, and what is beside them, such
    as titles and legends, would be cut; it takes some rounds until both agree.
    """
    figure = figure.canvas.figure  # of a part of a figure, the whole
    equal = any(ax.get_aspect() != "auto" for ax in figure.axes)
    engine = figure.get_layout_engine()
    if equal and engine is not None and all(ax.has_data() for ax in figure.axes if ax.axison):
        for _ in range(2):
            engine.execute(figure)


def legend_below(ax: Axes, ncols: int = 2, **options: Any) -> None:
    """Put the legend below the picture, in as many columns as there is room for.

    A figure without a layout makes no room there: then it goes to where it hides least.
    """
    from matplotlib.transforms import ScaledTranslation

    if ax.figure.get_layout_engine() is None:
        ax.legend(loc="best", framealpha=0.85, edgecolor="none", **options)
        return
    lower = ScaledTranslation(0, -_BELOW, ax.figure.dpi_scale_trans)
    place = {"bbox_to_anchor": (0.5, 0), "bbox_transform": ax.transAxes + lower}
    options = {"loc": "upper center", "frameon": False, **place, **options}
    ax.set_anchor("S")  # a layout knows where the legend ends, also where scales are equal
    for columns in range(ncols, 0, -1):
        width = ax.legend(ncols=columns, **options).get_window_extent().width
        if width <= _room(ax) + 1.7 * _BELOW * ax.figure.dpi:
            break


def fit_title(ax: Axes) -> None:
    """Break a title that is wider than its picture into lines, and write it smaller."""
    title, room = ax.title, _room(ax)
    if title.get_window_extent().width <= room or "$" in title.get_text():
        return
    title.set_fontsize(min(title.get_fontsize(), 10.0))
    lines: list[str] = []
    for line in title.get_text().split("\n"):
        lines.append("")
        for word in line.split(" "):
            title.set_text(f"{lines[-1]} {word}".strip())
            if title.get_window_extent().width > room and lines[-1]:
                lines.append(word)
            else:
                lines[-1] = title.get_text()
    title.set_text("\n".join(lines))


def _room(ax: Axes) -> float:
    """Pixels across that a picture has about, without the numbers and the name of its axis."""
    figure, spec = ax.figure, ax.get_subplotspec()
    if figure.get_layout_engine() is None or spec is None:
        return 1.1 * ax.get_window_extent().width
    spec = spec.get_topmost_subplotspec()  # of a panel with its colour bar
    shares = np.asarray(spec.get_gridspec().get_width_ratios(), dtype=float)
    part = shares[spec.colspan.start : spec.colspan.stop].sum() / shares.sum()
    return float(part * figure.bbox.width - 2 * _BELOW * figure.dpi)
