"""The plane as a classifier or a one-class machine divides it: regions, street, support, slack."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.ndimage import distance_transform_edt
from sklearn.base import is_regressor
from sklearn.inspection import DecisionBoundaryDisplay
from sklearn.utils import check_consistent_length

from maxmargin.plotting import checks, marks

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_INSTEAD = (
    "Fit one on two columns or on PCA(n_components=2).fit_transform(X) to see it in the plane; "
    "plot_margins draws binary classifiers on any number of features."
)
_PADDING = 0.08  # around the data, as a share of their range
_MARKERS = "os^Dv<>phd"
_ROOM = 0.025  # room for a region's name around its middle, as a share of the picture


def plot_decision(
    model: Any,
    X: Any,
    y: Any = None,
    ax: Axes | None = None,
    *,
    class_names: Sequence[str] | None = None,
    support: bool | str = "auto",
    slack: bool | str = "auto",
    grid_resolution: int = 300,
) -> Axes:
    """Draw the regions of a machine on two features, its street and its training points.

    For two classes the lines are ``f = 0`` and the edges of the street, ``f = -1`` and ``f = +1``;
    for several, the regions are named; for a one-class machine, ``f = 0``. Support vectors are
    ringed. A dot marks a point with slack (more than the machine's ``tol``; for several classes, in
    any of its pairs), and a cross one on the wrong side.

    Of a classifier without support vectors (``LinearSVC``, ``LogisticRegression``, ``Perceptron``,
    any of scikit-learn's) the regions are drawn, the line ``f = 0``, the street if its loss knows
    one (``LinearSVC``), and a cross on what is misclassified.

    Parameters
    ----------
    model : classifier, OneClassSVM or Pipeline that ends in one
        Fitted on two features.
    X : array-like of shape (n_samples, 2)
        The training points; column names become the names of the axes. For machines with support
        vectors as they were given to fit, for others any points.
    y : array-like of shape (n_samples,)
        Their classes. Not used for a one-class machine.
    ax : matplotlib Axes, optional
        Where to draw; by default on a new figure.
    class_names : sequence of str of shape (n_classes,), optional
        Names to show in place of ``classes_``.
    support : bool or "auto", default="auto"
        Whether to ring the support vectors; by default up to 400 of them: more hide the picture.
    slack : bool or "auto", default="auto"
        Whether to mark the points with slack and the misclassified; by default up to 400 of them.
    grid_resolution : int, default=300
        Number of points along each axis at which the machine is evaluated.

    Returns
    -------
    ax : matplotlib Axes

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from maxmargin import SVC
    >>> from maxmargin.plotting import plot_decision
    >>> iris = load_iris(as_frame=True)
    >>> X, y = iris.data.iloc[50:, 2:], iris.target[50:]
    >>> model = SVC(kernel="linear").fit(X, y)
    >>> ax = plot_decision(model, X, y, class_names=iris.target_names[1:])
    >>> ax.get_title()
    'Linear(), C = 1: 5 of 100 misclassified'
    """
    machine = checks.last_step(model)
    with_support = all(hasattr(machine, name) for name in ("support_", "slack_", "shape_fit_"))
    if not (hasattr(machine, "classes_") or (with_support and not is_regressor(machine))):
        raise TypeError(
            "plot_decision draws classifiers and OneClassSVM, or a Pipeline that ends in one; got "
            f"{type(machine).__name__}. For regression, see plot_tube."
        )
    checks.check_drawable(model, 2, "plot_decision", _INSTEAD)
    if with_support:
        checks.check_training_rows(model, X, y, "plot_decision")
    points = checks.dense(X)
    has_slack = np.zeros(len(points), dtype=bool)
    if with_support:
        has_slack = np.nanmax(np.atleast_2d(machine.slack_), axis=0) > machine.tol

    if not hasattr(machine, "classes_"):
        ax = marks.axes_or_new(ax)
        lines = _inliers(ax, _grid(ax, model, X, "decision_function", grid_resolution))
        marks.scatter(ax, points, points, marks.BLUE, label=f"training points ({len(points)})")
        wrong, count, words = has_slack, "outliers", ("", "slack: outliers")
    else:
        if y is None:
            raise ValueError("plot_decision needs y, the classes of the training points.")
        check_consistent_length(X, y)
        names = _names(machine.classes_, class_names)
        colours = marks.colours(len(names))
        wrong, count = model.predict(X) != np.asarray(y), "misclassified"
        words = "slack in some pair", "misclassified"
        ax = marks.axes_or_new(ax)
        if len(names) == 2 and hasattr(model, "decision_function"):
            grid = _grid(ax, model, X, "decision_function", grid_resolution)
            if with_support or getattr(machine, "loss", "") in ("hinge", "squared_hinge"):
                lines = _street(ax, grid, colours)
            else:
                lines = _sides(ax, grid, colours)
            if with_support:
                words = "slack: inside the street", "slack: wrong side"
            listed = names
        else:
            grid = _grid(ax, model, X, "predict", grid_resolution)
            lines, listed = (), _regions(ax, grid, points, colours, names)
        for k, name in enumerate(names):
            group = points[np.asarray(y) == machine.classes_[k]]
            label = f"{name} ({len(group)})" if name in listed else None
            marks.scatter(ax, points, group, colours[k], _MARKERS[k % len(_MARKERS)], label)

    if slack:
        marked = marks.few((has_slack | wrong).sum(), slack)
        marks.dot(ax, points, has_slack & ~wrong, words[0], marked)
        marks.cross(ax, points, wrong, words[1], marked)
    if support and with_support:
        marks.ring(ax, points, machine.support_, marks.few(len(machine.support_), support))
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


def _sides(ax: Axes, grid: DecisionBoundaryDisplay, colours: list) -> tuple:
    """Fill the two sides and draw f = 0 between them."""
    from matplotlib.colors import to_rgba

    shades = [to_rgba(colour, 0.2) for colour in colours]
    side = (grid.response > 0).astype(float)
    ax.contourf(grid.xx0, grid.xx1, side, levels=[-1, 0.5, 2], colors=shades)
    return _lines(ax, grid, {0: "-"})


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
            zorder=2.5,  # seen through thousands of points, too
        )
    names: dict[Any, str] = {"-": "f = 0", "--": "f = -1 and f = +1, the street"}
    return tuple(
        Line2D(
            [], [], color=marks.INK, linestyle=style, linewidth=widths[style], label=names[style]
        )
        for style in names
        if style in styles.values()
    )


def _regions(
    ax: Axes,
    grid: DecisionBoundaryDisplay,
    points: np.ndarray,
    colours: list,
    names: list[str],
) -> list[str]:
    """Fill the region of each class and name it where there is room; return the other names."""
    from matplotlib.patheffects import withStroke

    without = []
    free = _distance_to_points(grid, points)
    for k, (colour, name) in enumerate(zip(colours, names, strict=True)):
        inside = grid.response == k
        if not inside.any():
            without.append(name)
            continue
        values = inside.astype(float)
        ax.contourf(grid.xx0, grid.xx1, values, [0.5, 1.5], colors=[colour], alpha=0.25)
        if not inside.all():
            ax.contour(grid.xx0, grid.xx1, values, [0.5], colors="white", linewidths=1.5)
        room = np.minimum(distance_transform_edt(np.pad(inside, 1))[1:-1, 1:-1], free)
        place = np.unravel_index(room.argmax(), room.shape)
        if room[place] < _ROOM * len(grid.xx0):
            without.append(name)  # its points, and the legend, say which it is
            continue
        ax.text(
            grid.xx0[place],
            grid.xx1[place],
            name,
            ha="center",
            va="center",
            weight="bold",
            color=marks.INK,
            zorder=5,
            path_effects=[withStroke(linewidth=3, foreground="white")],
        )
    return without


def _distance_to_points(grid: DecisionBoundaryDisplay, points: np.ndarray) -> np.ndarray:
    """Return how far each place of the grid is from the nearest point, in steps of the grid."""
    low = np.array([grid.xx0.min(), grid.xx1.min()])
    high = np.array([grid.xx0.max(), grid.xx1.max()])
    last = np.array(grid.xx0.shape[::-1]) - 1
    column, row = np.rint((points - low) / (high - low) * last).astype(int).T
    empty = np.ones(grid.xx0.shape, dtype=bool)
    empty[row, column] = False
    return distance_transform_edt(empty)


def _names(classes: np.ndarray, given: Sequence[str] | None) -> list[str]:
    names = classes.tolist() if given is None else list(given)
    if len(names) != len(classes):
        raise ValueError(
            f"class_names has {len(names)} names for the {len(classes)} classes {classes.tolist()}."
        )
    return [str(name) for name in names]
