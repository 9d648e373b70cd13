"""The plane as a classifier or a one-class machine divides it: regions, street, support, slack."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.ndimage import distance_transform_edt
from sklearn.inspection import DecisionBoundaryDisplay

from maxmargin.plotting import checks, marks

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_INSTEAD = (
    "Fit one on two columns or on PCA(n_components=2).fit_transform(X) to see it in the plane; "
    "plot_margins draws binary classifiers on any number of features."
)
_PADDING = 0.08  # around the data, as a share of their range
_MARKERS = "os^Dv<>phd"


def plot_decision(
    model: Any,
    X: Any,
    y: Any = None,
    ax: Axes | None = None,
    *,
    class_names: Sequence[str] | None = None,
    support: bool = True,
    slack: bool = True,
    grid_resolution: int = 300,
) -> Axes:
    """Draw the regions of a machine on two features, its street and its training points.

    For two classes the lines are ``f = 0`` and the edges of the street, ``f = -1`` and ``f = +1``;
    for several, the regions are named; for a one-class machine, ``f = 0``. Support vectors are
    ringed. A dot marks a point with slack (more than the machine's ``tol``; for several classes, in
    any of its pairs), and a cross one on the wrong side.

    Parameters
    ----------
    model : SVC, NuSVC, OneClassSVM or Pipeline that ends in one
        Fitted on two features.
    X : array-like of shape (n_samples, 2)
        The training points, as given to fit; column names become the names of the axes.
    y : array-like of shape (n_samples,)
        Their classes. Not used for a one-class machine.
    ax : matplotlib Axes, optional
        Where to draw; by default on a new figure.
    class_names : sequence of str of shape (n_classes,), optional
        Names to show in place of ``classes_``.
    support : bool, default=True
        Whether to ring the support vectors.
    slack : bool, default=True
        Whether to mark the points with slack.
    grid_resolution : int, default=300
        Number of points along each axis at which the machine is evaluated.

    Returns
    -------
    ax : matplotlib Axes

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import matplotlib.pyplot as plt
    >>> from sklearn.datasets import load_iris
    >>> from maxmargin import SVC
    >>> from maxmargin.plotting import plot_decision
    >>> iris = load_iris(as_frame=True)
    >>> X, y = iris.data.iloc[50:, 2:], iris.target[50:]
    >>> model = SVC(kernel="linear").fit(X, y)
    >>> ax = plot_decision(model, X, y, class_names=iris.target_names[1:])
    >>> ax.get_title()
    'Linear(), C = 1: 5 of 100 misclassified'
    >>> plt.close(ax.figure)
    """
    machine = checks.last_step(model)
    if not all(hasattr(machine, name) for name in ("decision_function", "support_", "slack_")):
        raise TypeError(
            "plot_decision draws SVC, NuSVC and OneClassSVM, or a Pipeline that ends in one; got "
            f"{type(machine).__name__}. For regression, see plot_tube."
        )
    checks.check_drawable(model, 2, "plot_decision", _INSTEAD)
    checks.check_training_rows(model, X, y, "plot_decision")
    ax = marks.axes_or_new(ax)
    points = checks.dense(X)
    has_slack = np.nanmax(np.atleast_2d(machine.slack_), axis=0) > machine.tol

    if not hasattr(machine, "classes_"):
        lines = _inliers(ax, _grid(ax, model, X, "decision_function", grid_resolution))
        marks.scatter(ax, points, points, marks.BLUE, label=f"training points ({len(points)})")
        wrong, count, words = has_slack, "outliers", ("", "slack: outliers")
    else:
        if y is None:
            raise ValueError("plot_decision needs y, the classes of the training points.")
        names = _names(machine.classes_, class_names)
        colours = marks.colours(len(names))
        wrong, count = model.predict(X) != np.asarray(y), "misclassified"
        if len(names) == 2:
            lines = _street(ax, _grid(ax, model, X, "decision_function", grid_resolution), colours)
            listed = names
            words = "slack: inside the street", "slack: wrong side"
        else:
            grid = _grid(ax, model, X, "predict", grid_resolution)
            lines, listed = (), _regions(ax, grid, colours, names)
            words = "slack in some pair", "misclassified"
        for k, name in enumerate(names):
            group = points[np.asarray(y) == machine.classes_[k]]
            label = f"{name} ({len(group)})" if name in listed else None
            marks.scatter(ax, points, group, colours[k], _MARKERS[k % len(_MARKERS)], label)

    if slack:
        marks.dot(ax, points, has_slack & ~wrong, words[0])
        marks.cross(ax, points, wrong, words[1])
    if support:
        marks.ring(ax, points, machine.support_)
    ax.set(xlabel=checks.column_name(X, 0), ylabel=checks.column_name(X, 1))
    ax.set_title(f"{marks.describe(machine)}: {wrong.sum()} of {len(points)} {count}")
    marks.legend(ax, points, lines)
    return ax


def _grid(ax: Axes, model: Any, X: Any, response: str, resolution: int) -> DecisionBoundaryDisplay:
    """Evaluate the model on a grid around the data; drawing it is left to the others."""
    points = checks.dense(X)
    low, high = points.min(axis=0), points.max(axis=0)
    padding = _PADDING * np.where(high > low, high - low, 1.0)
    display = DecisionBoundaryDisplay.from_estimator(
        model,
        checks.in_container_of(X, np.array([low - padding, high + padding])),
        eps=0,
        grid_resolution=resolution,
        response_method=response,
        plot_method="pcolormesh",
        ax=ax,
    )
    display.surface_.remove()
    ax.set(xlim=(display.xx0.min(), display.xx0.max()), ylim=(display.xx1.min(), display.xx1.max()))
    return display


def _street(ax: Axes, grid: DecisionBoundaryDisplay, colours: list) -> tuple:
    """Fill the two sides, paler inside the street, and draw f = 0 and the street's edges."""
    from matplotlib.colors import to_rgba

    negative, positive = colours
    shades = [(negative, 0.28), (negative, 0.09), (positive, 0.09), (positive, 0.28)]
    ax.contourf(
        grid.xx0,
        grid.xx1,
        grid.response,
        levels=[-1, 0, 1],
        extend="both",
        colors=[to_rgba(*shade) for shade in shades],
    )
    return _lines(ax, grid, {-1: "--", 0: "-", 1: "--"})


def _inliers(ax: Axes, grid: DecisionBoundaryDisplay) -> tuple:
    """Fill the region of the inliers and draw its border f = 0."""
    inside = (grid.response >= 0).any()
    if inside:
        levels = [0, max(grid.response.max(), np.finfo(float).tiny)]
        ax.contourf(grid.xx0, grid.xx1, grid.response, levels, colors=[marks.BLUE], alpha=0.15)
    return _lines(ax, grid, {0: "-"})


def _lines(ax: Axes, grid: DecisionBoundaryDisplay, styles: dict[int, Any]) -> tuple:
    """Draw those level lines that cross the grid; return handles for the legend."""
    from matplotlib.lines import Line2D

    low, high = grid.response.min(), grid.response.max()
    styles = {level: style for level, style in styles.items() if low < level < high}
    widths = {"-": 1.8, "--": 1.0}
    if styles:
        ax.contour(
            grid.xx0,
            grid.xx1,
            grid.response,
            levels=list(styles),
            colors=marks.INK,
            linestyles=list(styles.values()),
            linewidths=[widths[style] for style in styles.values()],
        )
    names: dict[Any, str] = {"-": "f = 0", "--": "f = -1 and f = +1, the street"}
    return tuple(
        Line2D(
            [], [], color=marks.INK, linestyle=style, linewidth=widths[style], label=names[style]
        )
        for style in names
        if style in styles.values()
    )


def _regions(ax: Axes, grid: DecisionBoundaryDisplay, colours: list, names: list[str]) -> list[str]:
    """Fill and name the region of each class; return the names of those that have none."""
    from matplotlib.patheffects import withStroke

    without = []
    for k, (colour, name) in enumerate(zip(colours, names, strict=True)):
        inside = grid.response == k
        if not inside.any():
            without.append(name)
            continue
        values = inside.astype(float)
        ax.contourf(grid.xx0, grid.xx1, values, [0.5, 1.5], colors=[colour], alpha=0.25)
        if not inside.all():
            ax.contour(grid.xx0, grid.xx1, values, [0.5], colors="white", linewidths=1.5)
        ax.text(
            *_middle(grid, inside),
            name,
            ha="center",
            va="center",
            weight="bold",
            color=marks.INK,
            zorder=5,
            path_effects=[withStroke(linewidth=3, foreground="white")],
        )
    return without


def _middle(grid: DecisionBoundaryDisplay, inside: np.ndarray) -> tuple[float, float]:
    """Return the point of a region that is furthest from its border and from the picture's."""
    depth = distance_transform_edt(np.pad(inside, 1))[1:-1, 1:-1]
    deepest = np.unravel_index(depth.argmax(), depth.shape)
    return grid.xx0[deepest], grid.xx1[deepest]


def _names(classes: np.ndarray, given: Sequence[str] | None) -> list[str]:
    names = classes.tolist() if given is None else list(given)
    if len(names) != len(classes):
        raise ValueError(
            f"class_names has {len(names)} names for the {len(classes)} classes {classes.tolist()}."
        )
    return [str(name) for name in names]
