"""How a scheme tells several classes apart: its code matrix, or its graph."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from maxmargin.plotting import checks, marks
from maxmargin.plotting.display import Display

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass
class SchemeDisplay(Display):
    """The code matrix of a multiclass scheme or, of a DAG, its graph.

    Attributes
    ----------
    scheme : Scheme
    class_names : list of str
    margins : array of shape (n_tasks,), or empty
        Of a fitted machine, the margin of each task.
    """

    scheme: Any
    class_names: list[str]
    margins: np.ndarray

    @classmethod
    def from_scheme(cls, scheme: Any, *, ax: Axes | None = None) -> SchemeDisplay:
        """Draw a scheme; its classes have numbers from 1."""
        names = [str(c) for c in range(1, scheme.n_classes + 1)]
        return cls(scheme, names, np.empty(0)).plot(ax)

    @classmethod
    def from_estimator(cls, model: Any, *, ax: Axes | None = None) -> SchemeDisplay:
        """Draw the scheme of a fitted classifier, with its classes and margins."""
        machine = checks.last_step(model)
        if not hasattr(machine, "scheme_"):
            raise TypeError(
                "plot_scheme draws schemes of maxmargin.multiclass and classifiers that have one "
                f"as scheme_; got {type(machine).__name__}."
            )
        margins = np.atleast_1d(getattr(machine, "margin_", []))
        return cls(machine.scheme_, [str(c) for c in machine.classes_], margins).plot(ax)

    def _draw(self, ax: Axes) -> None:
        if hasattr(self.scheme, "levels"):
            _draw_graph(self.scheme, self.class_names, ax)
        else:
            _draw_code(self.scheme.code.T, self.class_names, self.margins, ax)


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
    if hasattr(scheme, "code"):
        return SchemeDisplay.from_scheme(scheme, ax=ax).ax_
    return SchemeDisplay.from_estimator(scheme, ax=ax).ax_


def _draw_code(words: np.ndarray, names: list[str], margins: np.ndarray, ax: Axes) -> None:
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


def _draw_graph(scheme: Any, names: list[str], ax: Axes) -> None:
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
                arrow = {"arrowstyle": "->", "color": marks.ink(), "shrinkA": 16, "shrinkB": 14}
                ax.annotate("", to, (x, y), arrowprops=arrow)
                middle = (0.5 * (x + to[0]), 0.5 * (y + to[1]))
                blank = {"facecolor": marks.ground(), "edgecolor": "none", "pad": 0.4}
                said = f"not {names[loser]}"
                ax.text(*middle, said, ha="center", va="center", fontsize="x-small", bbox=blank)
        text = names[i] if i == j else f"{names[i]} / {names[j]}"
        face = marks.ORANGE if i == j else marks.ground()
        box = {"boxstyle": "round", "facecolor": face, "edgecolor": marks.ink()}
        ax.text(x, y, text, ha="center", va="center", bbox=box)
    ax.set(
        xlim=(-scheme.n_classes, scheme.n_classes),
        ylim=(0.5 - len(levels), 0.5),
        title=f"{scheme.n_classes} classes: {scheme.n_asked} of {len(scheme.code)} machines are "
        "asked about a point",
    )
    ax.axis("off")
