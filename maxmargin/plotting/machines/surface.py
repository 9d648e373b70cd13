"""The value of a machine over the plane, as a surface in space or by colours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import is_regressor
from sklearn.utils import check_consistent_length

from maxmargin.plotting import checks, marks
from maxmargin.plotting.display import Display
from maxmargin.plotting.machines.decision import INSTEAD
from maxmargin.plotting.machines.plane import Plane

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_FLOOR = 0.45  # how far the floor is below the surface, as a share of its height
_CUT = 4.0  # streets: where the colours end


@dataclass
class SurfaceDisplay(Display):
    """The surface ``f(x)`` over two features, with its levels.

    Attributes
    ----------
    plane : Plane
        ``f`` on a grid.
    levels : tuple of float
        Those that are drawn as lines, on the surface and on the floor: -1, 0 and 1 of a machine
        with a street, 0 of others.
    side : array of shape (n_samples,), or None
        +1 or -1 for the points of either side, 0 for others.
    name : str
        What is positive, and against what.
    description : str
    flat : bool
        Whether to draw colours in the plane, and no surface.
    """

    plane: Plane
    levels: tuple[float, ...]
    side: np.ndarray | None
    name: str
    description: str
    flat: bool = False

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        X: Any,
        y: Any = None,
        *,
        ax: Axes | None = None,
        task: int | None = None,
        flat: bool = False,
        grid_resolution: int = 100,
        features: Sequence[Any] | None = None,
    ) -> SurfaceDisplay:
        """Evaluate a model and draw; parameters as in :func:`plot_surface`."""
        machine = checks.last_step(model)
        checks.check_drawable(model, 2, "plot_surface", INSTEAD, chosen=features is not None)
        side, name = None, ""
        levels: tuple[float, ...] = (0.0,)
        if hasattr(machine, "classes_"):
            chosen = checks.Task.of(model, task, "plot_surface")
            name = chosen.name
            levels = (-1.0, 0.0, 1.0) if checks.has_street(machine) else levels
            if y is not None:
                check_consistent_length(X, y)
                side = chosen.sides[checks.class_index(machine.classes_, y)]

            def f(places: Any) -> np.ndarray:
                return chosen.values(model, places)
        elif is_regressor(machine) or not hasattr(model, "decision_function"):
            raise TypeError(
                "plot_surface draws classifiers and OneClassSVM, or a Pipeline that ends in one; "
                f"got {type(machine).__name__}."
            )
        else:
            f = model.decision_function
        plane = Plane.around(X, f, grid_resolution, features)
        return cls(plane, levels, side, name, marks.describe(machine), flat).plot(ax)

    def _axes(self, ax: Axes | None) -> Axes:
        return marks.axes_or_new(ax) if self.flat else marks.axes_in_space(ax, "plot_surface")

    def _draw(self, ax: Axes) -> None:
        plane, values = self.plane, self.plane.values
        title = f"{self.description}: f(x)" + f", {self.name}" * bool(self.name) + plane.aside
        crossed = [level for level in self.levels if values.min() < level < values.max()]
        styles = ["-" if level == 0 else "--" for level in crossed]
        ink = marks.INK if self.flat else marks.ink()  # on fields of full colour, or in space
        look: dict[str, Any] = {"levels": crossed, "colors": ink, "linestyles": styles}
        reach = min(float(np.abs(values).max()), _CUT) or 1.0
        if self.flat:
            from matplotlib.ticker import MaxNLocator

            steps = MaxNLocator(16, symmetric=True).tick_values(-reach, reach)
            colours: dict[str, Any] = {"cmap": marks.two_sided(), "extend": "both"}
            fields = ax.contourf(plane.x, plane.y, values, steps, **colours)
            if crossed:
                lines = ax.contour(plane.x, plane.y, values, linewidths=1.5, **look)
                ax.clabel(lines, fontsize="small", fmt="f = %g")
            ax.figure.colorbar(fields, ax=ax, label="f(x)")
            self._scatter(ax)
            plane.frame(ax)
            ax.set_title(title)
            return
        space: Any = ax
        space.computed_zorder = (
            False  # from above, the surface covers the floor, its lines are on it
        )
        height = np.ptp(values) or 1.0
        floor = values.min() - _FLOOR * height
        x, y = np.meshgrid(plane.x, plane.y)
        space.plot_surface(
            *(x, y, values),
            cmap=marks.two_sided(),
            vmin=-reach,
            vmax=reach,
            alpha=0.85,
            linewidth=0,
            rcount=60,
            ccount=60,
            zorder=3,
        )
        if crossed:
            space.contour(x, y, values, linewidths=1.8, zorder=4, **look)
            space.contour(x, y, values, offset=floor, linewidths=1.0, zorder=1, **look)
        self._scatter(space, floor)
        space.set(xlim=plane.x[[0, -1]], ylim=plane.y[[0, -1]], zlim=(floor, values.max()))
        space.set(xlabel=plane.names[0], ylabel=plane.names[1], zlabel="f(x)", title=title)
        said = ", ".join(f"{level:g}" for level in crossed)
        space.text2D(0.02, 0.02, f"lines: f = {said}" * bool(said), transform=ax.transAxes)

    def _scatter(self, ax: Any, *height: float) -> None:
        """Put the points into the plane, or on the floor."""
        points, side = self.plane.points, self.side
        if side is None:
            return
        for of, colour, marker in zip((-1, 1), marks.colours(2), "os", strict=True):
            group = points[side == of]
            look = {"color": colour, "marker": marker, "edgecolors": "white", "linewidths": 0.4}
            ax.scatter(*group.T, *height, s=0.6 * marks.size(points), zorder=2, **look)


def plot_surface(
    model: Any,
    X: Any,
    y: Any = None,
    ax: Axes | None = None,
    *,
    task: int | None = None,
    flat: bool = False,
    grid_resolution: int = 100,
    features: Sequence[Any] | None = None,
) -> Axes:
    """Draw the value ``f(x)`` of a machine over two features as a surface in space.

    Lines on the surface, and on the floor below it, are where ``f = 0`` and, of machines with a
    street, ``f = -1`` and ``f = +1``. The points are on the floor.

    Parameters
    ----------
    model : classifier with a decision_function, OneClassSVM, or Pipeline that ends in one
        Fitted on two features, or on more, of which ``features`` chooses two.
    X : array-like of shape (n_samples, n_features)
        Points around which the surface is drawn.
    y : array-like of shape (n_samples,), optional
        Their classes; without them, no points are drawn.
    ax : matplotlib Axes, optional
        Where to draw, made with ``projection="3d"`` unless ``flat``; by default on a new figure.
    task : int, optional
        With several classes, which of the machines for two that the model is made of.
    flat : bool, default=False
        Draw the values as colours in the plane.
    grid_resolution : int, default=100
        Number of points along each axis at which the machine is evaluated.
    features : pair of int or str, optional
        Two columns to show of more; the others are held at their medians over X.

    Returns
    -------
    ax : matplotlib Axes

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from maxmargin import SVC
    >>> from maxmargin.plotting import plot_surface
    >>> X, y = make_moons(100, noise=0.2, random_state=0)
    >>> plot_surface(SVC().fit(X, y), X, y).get_zlabel()
    'f(x)'
    """
    return SurfaceDisplay.from_estimator(
        model,
        X,
        y,
        ax=ax,
        task=task,
        flat=flat,
        grid_resolution=grid_resolution,
        features=features,
    ).ax_
