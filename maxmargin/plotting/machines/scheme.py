"""How a scheme tells several classes apart: its code matrix, or its graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from maxmargin.plotting import marks

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_scheme(scheme: Any, ax: Axes | None = None) -> Axes:
    """Draw the code matrix of a multiclass scheme or, of a DAG, its graph.

    In the matrix a row is the word of a class and a column a task: orange for its positive side,
    blue for the other, white for classes that it does not see. The title has the distance of the
    closest words. Of a fitted machine, the margins of the tasks are written below them.

    In the graph a node asks for one class against another and rules one of them out.

    Parameters
    ----------
    scheme : Scheme or fitted classifier
        For instance :class:`~maxmargin.multiclass.ErrorCorrectingCode`, or ``SVC().fit(X, y)``.
    ax : matplotlib Axes, optional
        Where to draw; by default on a new figure.

    Returns
    -------
    ax : matplotlib Axes

    Examples
    --------
    >>> from maxmargin.multiclass import ErrorCorrectingCode
    >>> from maxmargin.plotting import plot_scheme
    >>> plot_scheme(ErrorCorrectingCode(5)).get_title()
    '5 classes, 15 tasks; words differ in 8 entries or more'
    """
    machine, scheme = scheme, getattr(scheme, "scheme_", scheme)
    names = [str(c) for c in getattr(machine, "classes_", range(1, scheme.n_classes + 1))]
    ax = marks.axes_or_new(ax)
    if hasattr(scheme, "levels"):
        return _draw_graph(scheme, names, ax)
    margins = np.atleast_1d(getattr(machine, "margin_", []))
    return _draw_code(scheme.code.T, names, margins, ax)


def _draw_code(words: np.ndarray, names: list[str], margins: np.ndarray, ax: Axes) -> Axes:
    from matplotlib.colors import ListedColormap

    n_classes, n_tasks = words.shape
    colours = ListedColormap([marks.BLUE, "white", marks.ORANGE])
    ax.pcolormesh(words, cmap=colours, vmin=-1, vmax=1, edgecolors=marks.INK, linewidth=0.4)
    ax.set_yticks(np.arange(n_classes) + 0.5, names)
    ax.invert_yaxis()
    if len(margins) == n_tasks:
        labels = [f"{margin:.2g}" for margin in margins]
        ax.set_xticks(np.arange(n_tasks) + 0.5, labels, rotation=90, fontsize="small")
    distance = 0.5 * (n_tasks - words @ words.T)[np.triu_indices(n_classes, 1)]
    ax.set(
        xlabel="tasks, with the margin of each" if len(margins) == n_tasks else "tasks",
        ylabel="classes",
        title=f"{n_classes} classes, {n_tasks} tasks; words differ in {distance.min():g} entries "
        "or more",
    )
    return ax


def _draw_graph(scheme: Any, names: list[str], ax: Axes) -> Axes:
    levels = [*scheme.levels, [(k, k) for k in range(scheme.n_classes)]]
    place = {
        (i, j): (i + j - scheme.n_classes + 1, -depth)
        for depth, level in enumerate(levels)
        for i, j in level
    }
    for (i, j), (x, y) in place.items():
        for below, loser in (((i, j - 1), j), ((i + 1, j), i)):
            if i < j:
                to = place[below]
                arrow = {"arrowstyle": "->", "color": marks.INK, "shrinkA": 16, "shrinkB": 14}
                ax.annotate("", to, (x, y), arrowprops=arrow)
                middle = (0.5 * (x + to[0]), 0.5 * (y + to[1]))
                blank = {"facecolor": "white", "edgecolor": "none", "pad": 0.4}
                said = f"not {names[loser]}"
                ax.text(*middle, said, ha="center", va="center", fontsize="x-small", bbox=blank)
        text = names[i] if i == j else f"{names[i]} / {names[j]}"
        face = marks.ORANGE if i == j else "white"
        box = {"boxstyle": "round", "facecolor": face, "edgecolor": marks.INK}
        ax.text(x, y, text, ha="center", va="center", bbox=box)
    ax.set(
        xlim=(-scheme.n_classes, scheme.n_classes),
        ylim=(0.5 - len(levels), 0.5),
        title=f"{scheme.n_classes} classes: {scheme.n_asked} of {len(scheme.code)} machines are "
        "asked about a point",
    )
    ax.axis("off")
    return ax
