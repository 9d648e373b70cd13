"""Two features on a grid around the data, what a machine says there, and how that is filled."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.ndimage import distance_transform_edt

from maxmargin.plotting import checks, marks

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_PADDING = 0.08  # around the data, as a share of their range
_ROOM = 0.025  # room for a region's name around its middle, as a share of the picture
MARKERS = "os^Dv<>phd"


@dataclass(frozen=True)
class Plane:
    """The values of a machine over two features.

    Attributes
    ----------
    x, y : arrays of shape (resolution,)
    values : array of shape (resolution, resolution)
        A row for each y, a column for each x.
    points : array of shape (n_samples, 2)
        The data, as they are seen in this plane.
    names : pair of str
        Of the two features.
    held : array of shape (n_features,), or None
        A point of the plane: where it has more features than two, the others have its values.
    """

    x: np.ndarray
    y: np.ndarray
    values: np.ndarray
    points: np.ndarray
    names: tuple[str, str]
    held: np.ndarray | None = None

    @classmethod
    def around(
        cls,
        X: Any,
        respond: Callable[[Any], np.ndarray],
        resolution: int,
        features: Sequence[Any] | None = None,
    ) -> Plane:
        """Evaluate what responds to data like X, the features not shown at their median."""
        if resolution < 2:
            raise ValueError(f"grid_resolution must be at least 2, got {resolution!r}.")
        data = checks.dense(X)
        shown = checks.two_columns(X, features)
        points = data[:, shown]
        low, high = points.min(axis=0), points.max(axis=0)
        padding = _PADDING * np.where(high > low, high - low, 1.0)
        x, y = np.linspace(low - padding, high + padding, resolution).T
        middle = np.median(data, axis=0)
        places = np.tile(middle, (resolution**2, 1))
        places[:, shown] = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
        values = np.asarray(respond(checks.in_container_of(X, places)), dtype=np.float64)
        return cls(
            x,
            y,
            values.reshape(resolution, resolution),
            points,
            (checks.column_name(X, shown[0]), checks.column_name(X, shown[1])),
            middle if data.shape[1] > 2 else None,
        )

    @property
    def aside(self) -> str:
        """What to say of the features that are not shown."""
        others = 0 if self.held is None else len(self.held) - 2
        return f"\nslice: the other {others} features at their medians" if others else ""

    def frame(self, ax: Axes) -> None:
        """Give axes the names and the extent of the plane."""
        ax.set(xlim=self.x[[0, -1]], ylim=self.y[[0, -1]])
        ax.set(xlabel=self.names[0], ylabel=self.names[1])

    def fill_street(self, ax: Axes) -> tuple:
        """Fill the two sides, paler inside the street, and draw f = 0 and the street's edges."""
        from matplotlib.colors import to_rgba

        shades = [(marks.BLUE, 0.28), (marks.BLUE, 0.09), (marks.ORANGE, 0.09)]
        colours = [to_rgba(*shade) for shade in (*shades, (marks.ORANGE, 0.28))]
        ax.contourf(self.x, self.y, self.values, [-1, 0, 1], extend="both", colors=colours)
        return self.lines(ax, {-1: "--", 0: "-", 1: "--"})

    def fill_sides(self, ax: Axes) -> tuple:
        """Fill the two sides and draw f = 0 between them."""
        from matplotlib.colors import to_rgba

        shades = [to_rgba(colour, 0.2) for colour in (marks.BLUE, marks.ORANGE)]
        side = (self.values > 0).astype(float)
        ax.contourf(self.x, self.y, side, levels=[-1, 0.5, 2], colors=shades)
        return self.lines(ax, {0: "-"})

    def fill_inliers(self, ax: Axes) -> tuple:
        """Fill the region of the inliers and draw its border f = 0."""
        if (self.values >= 0).any():
            levels = [0, max(self.values.max(), np.finfo(float).tiny)]
            ax.contourf(self.x, self.y, self.values, levels, colors=[marks.BLUE], alpha=0.15)
        return self.lines(ax, {0: "-"})

    def lines(self, ax: Axes, styles: dict[int, Any]) -> tuple:
        """Draw those level lines that cross the grid; return handles for the legend."""
        from matplotlib.lines import Line2D

        low, high = self.values.min(), self.values.max()
        styles = {level: style for level, style in styles.items() if low < level < high}
        widths = {"-": 1.8, "--": 1.0}
        if styles:
            ax.contour(
                self.x,
                self.y,
                self.values,
                levels=list(styles),
                colors=marks.ink(),
                linestyles=list(styles.values()),
                linewidths=[widths[style] for style in styles.values()],
                zorder=2.5,  # seen through thousands of points, too
            )
        names: dict[Any, str] = {"-": "f = 0", "--": "f = -1 and f = +1, the street"}
        look: dict[str, Any] = {"color": marks.ink()}
        return tuple(
            Line2D([], [], linestyle=style, linewidth=widths[style], label=name, **look)
            for style, name in names.items()
            if style in styles.values()
        )

    def fill_regions(self, ax: Axes, colours: list, names: Sequence[str]) -> list[str]:
        """Fill the region of each class and name it where there is room; return the other names."""
        from matplotlib.patheffects import withStroke

        without = []
        free = self._distance_to_points()
        for k, (colour, name) in enumerate(zip(colours, names, strict=True)):
            inside = self.values == k
            if not inside.any():
                without.append(name)
                continue
            shape = inside.astype(float)
            ax.contourf(self.x, self.y, shape, [0.5, 1.5], colors=[colour], alpha=0.25)
            if not inside.all():
                ax.contour(self.x, self.y, shape, [0.5], colors="white", linewidths=1.5)
            room = np.minimum(distance_transform_edt(np.pad(inside, 1))[1:-1, 1:-1], free)
            row, column = np.unravel_index(room.argmax(), room.shape)
            if room[row, column] < _ROOM * len(self.x):
                without.append(name)  # its points, and the legend, say which it is
                continue
            ax.text(
                float(self.x[column]),
                float(self.y[row]),
                name,
                ha="center",
                va="center",
                weight="bold",
                color=marks.ink(),
                zorder=5,
                path_effects=[withStroke(linewidth=3, foreground=marks.ground())],
            )
        return without

    def _distance_to_points(self) -> np.ndarray:
        """Return how far each place of the grid is from the nearest point, in steps of the grid."""
        low, high = np.array([self.x[0], self.y[0]]), np.array([self.x[-1], self.y[-1]])
        column, row = np.rint((self.points - low) / (high - low) * (len(self.x) - 1)).astype(int).T
        empty = np.ones(self.values.shape, dtype=bool)
        empty[row, column] = False
        return distance_transform_edt(empty)
