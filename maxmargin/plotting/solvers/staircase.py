"""A way uphill, or downhill, over the contours of a function of two variables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from maxmargin.plotting import marks
from maxmargin.plotting.display import MovingDisplay
from maxmargin.plotting.solvers.posed import posed, traced

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_GRID = 121
_LEVELS = 14


@dataclass
class PathDisplay(MovingDisplay):
    """The path of a method over the contours of what it makes large or small.

    Coordinate ascent makes a staircase: each step is along one of the axes.

    Attributes
    ----------
    grid : two float arrays of shape (g, g)
    values : float array of shape (g, g)
        Of the function.
    path : float array of shape (n_points, 2)
    names : pair of str
        Of the variables.
    box : float array of shape (2, 2), or None
        The least and the largest values that the two may have.
    title : str

    Examples
    --------
    >>> from maxmargin.plotting import PathDisplay
    >>> path = [[0.0, 0.0], [1.0, 0.0], [1.0, 0.5], [1.25, 0.5]]
    >>> display = PathDisplay.from_function(lambda a, b: a + b - a**2 - b**2 + a * b, path)
    >>> display.path.shape, display.values.shape
    ((4, 2), (121, 121))
    """

    grid: tuple[np.ndarray, np.ndarray]
    values: np.ndarray
    path: np.ndarray
    names: tuple[str, str] = ("a", "b")
    box: np.ndarray | None = None
    title: str = ""

    @classmethod
    def from_function(
        cls,
        function: Callable,
        path: Any,
        ax: Axes | None = None,
        *,
        limits: Any = None,
        box: Any = None,
        names: tuple[str, str] = ("a", "b"),
        title: str = "",
        legend: bool = True,
    ) -> PathDisplay:
        """Draw a path over the contours of a function of two numbers.

        Parameters
        ----------
        function : callable
            Of two numbers, or of a point of shape (2,), as
            :func:`maxmargin.solvers.coordinate_ascent` takes it; it may take arrays of them.
        path : array-like of shape (n_points, 2)
        ax : matplotlib Axes, optional
        legend : bool, default=True
            Whether there is a legend.
        limits : array-like of shape (2, 2), optional
            Of either axis; by default those of the path, with some room.
        box : array-like of shape (2, 2), optional
            Bounds of either variable, to be drawn.
        names : pair of str, default=("a", "b")
        title : str, optional

        Returns
        -------
        display : PathDisplay
        """
        path = np.asarray(path, dtype=np.float64)
        if path.ndim != 2 or path.shape[1] != 2 or not len(path):
            raise ValueError(
                f"The path is drawn in the plane, as points (n, 2); got shape {path.shape}. "
                "Of more variables choose two columns: path[:, [0, 1]]."
            )
        corners = path if box is None else np.vstack([path, np.transpose(box)])
        corners = np.where(np.isfinite(corners), corners, np.nan)
        low, high = np.nanmin(corners, axis=0), np.nanmax(corners, axis=0)
        room = 0.25 * np.where(high > low, high - low, max(high.max() - low.min(), 1.0))
        sides = np.transpose([low - room, high + room]) if limits is None else np.asarray(limits)
        grid = np.meshgrid(*(np.linspace(low, high, _GRID) for low, high in sides))
        values = _on_grid(function, grid)
        if not np.isfinite(values).any():
            raise ValueError("The function has no finite value in these limits: give others.")
        bounds = None if box is None else np.asarray(box, dtype=np.float64)
        return cls((grid[0], grid[1]), values, path, names, bounds, title).plot(ax, legend=legend)

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        X: Any,
        y: Any,
        ax: Axes | None = None,
        *,
        variables: tuple[int, int] = (0, 1),
        problem: int = 0,
        sample_weight: Any = None,
        legend: bool = True,
    ) -> PathDisplay:
        """Draw two multipliers of an ``SVC`` over the contours of its dual.

        The other multipliers are held where they end, so that the contours are those that the last
        steps see. With two rows in all they are those of the whole dual.

        Parameters
        ----------
        model : SVC, NuSVC or Pipeline that ends in one
            Fitted with ``trace=True``, for example by ``solver="coordinate_ascent"`` without a
            bias.
        X, y : array-like
            The training data, in the same order.
        ax : matplotlib Axes, optional
        legend : bool, default=True
            Whether there is a legend.
        variables : pair of int, default=(0, 1)
            Rows of the problem.
        problem : int, default=0
            Which pair of classes, or class against the rest.
        sample_weight : array-like of shape (n_samples,), optional
            Those of fit.

        Returns
        -------
        display : PathDisplay
        """
        records = traced(model, problem)[1]
        dual, rows = posed(model, X, y, problem, sample_weight)
        pair = np.asarray(variables)
        if pair.shape != (2,) or not np.isin(pair, np.arange(len(dual))).all():
            raise ValueError(
                f"variables must be two of the {len(dual)} of this problem, got {variables!r}."
            )
        points = [record.variables for record in records if record.variables is not None]
        if not points or len(points[0]) != len(dual):
            raise ValueError(
                "The trace has no dual variables of this problem: fit with a solver that works on "
                "the dual, such as solver='coordinate_ascent'."
            )
        beta, side = points[-1], dual.side[pair]
        K, held = (
            dual.gram.rows(pair),
            dual.on_rows(np.where(np.isin(np.arange(len(dual)), pair), 0, beta)),
        )
        square = dual.orientation[pair][:, None] * K[:, pair] * dual.orientation[pair]
        slope = -dual.linear[pair] - dual.orientation[pair] * (K @ held)

        def objective(first: np.ndarray, second: np.ndarray) -> np.ndarray:
            a, b = side[0] * first, side[1] * second
            bent = square[0, 0] * a**2 + square[1, 1] * b**2 + 2 * square[0, 1] * a * b
            return slope[0] * a + slope[1] * b - 0.5 * bent

        path = np.abs(np.array(points)[:, pair])
        walls = np.maximum(np.abs(dual.lower), np.abs(dual.upper))[pair]
        names = tuple(f"multiplier of row {rows[k]}" for k in pair)
        method = records[-1].method
        return cls.from_function(
            objective,
            path,
            ax,
            limits=_limits(path, walls),
            box=np.column_stack([np.zeros(2), walls]),
            names=(names[0], names[1]),
            title=f"{method} on the dual: {len(path) - 1} steps",
            legend=legend,
        )

    def __len__(self) -> int:
        return len(self.path)

    def _draw_state(self, ax: Axes, state: int) -> None:
        finite = self.values[np.isfinite(self.values)]
        levels = np.unique(np.quantile(finite, np.linspace(0, 1, _LEVELS)))
        look: dict[str, Any]
        if len(levels) > 1:
            ax.contourf(*self.grid, self.values, levels, cmap="Blues_r", alpha=0.35)
            look = {"colors": marks.BLUE, "linewidths": 0.6, "linestyles": "solid"}
            ax.contour(*self.grid, self.values, levels, **look)
        if self.box is not None:
            (left, right), (low, high) = np.clip(self.box, *self._view)
            look = {"color": marks.ink(), "linewidth": 1.4, "label": "the box"}
            ax.plot([left, right, right, left, left], [low, low, high, high, low], "--", **look)
        seen = self.path[: state + 1]
        ax.plot(*seen.T, "-", color=marks.ORANGE, linewidth=2.2, zorder=3)
        if len(self.path) <= 60:
            ax.plot(*seen.T, "o", color=marks.ORANGE, markersize=4, zorder=3)
        ax.plot(
            *seen[0],
            "o",
            color=marks.ground(),
            markeredgecolor=marks.ink(),
            zorder=4,
            label="start",
        )
        ax.plot(*seen[-1], "o", color=marks.ink(), zorder=4, label=f"after {state} steps")
        ax.set(
            xlim=(self.grid[0].min(), self.grid[0].max()),
            ylim=(self.grid[1].min(), self.grid[1].max()),
            xlabel=self.names[0],
            ylabel=self.names[1],
            title=self.title,
        )
        ax.legend(loc="lower right", fontsize="small", edgecolor="none", framealpha=0.85)

    @property
    def _view(self) -> tuple[np.ndarray, np.ndarray]:
        """Return ends of the picture a little beyond its frame, for boxes without an end."""
        ends = np.array([[side.min(), side.max()] for side in self.grid])
        width = np.ptp(ends, axis=1)
        return (ends[:, 0] - width)[:, None], (ends[:, 1] + width)[:, None]


def _on_grid(function: Callable, grid: Any) -> np.ndarray:
    """Values of a function of two arrays, of two numbers or of a point, on a grid."""
    try:
        function(float(grid[0][0, 0]), float(grid[1][0, 0]))
    except TypeError:  # it has one argument
        return np.apply_along_axis(function, 2, np.stack(grid, axis=-1)).astype(np.float64)
    try:
        return np.broadcast_to(np.asarray(function(*grid), dtype=np.float64), grid[0].shape)
    except (TypeError, ValueError):  # of numbers only
        return np.vectorize(function, otypes=[float])(*grid)


def _limits(path: np.ndarray, walls: np.ndarray) -> np.ndarray:
    """Limits around a path from zero, that show a wall where it is near."""
    most = path.max(axis=0)
    most = np.where(most > 0, most, most.max() or 1.0)
    most = np.where(walls <= 2.5 * most, walls, 1.3 * most)
    return np.column_stack([-0.12 * most, 1.12 * most])


def plot_path(function: Callable, path: Any, ax: Axes | None = None, **options: Any) -> Axes:
    """Draw a path over the contours of a function of two numbers.

    The short way to :class:`PathDisplay`, whose ``from_function`` has the parameters.

    Examples
    --------
    >>> from maxmargin.plotting import plot_path
    >>> plot_path(lambda a, b: -(a**2) - b**2, [[1, 1], [0, 1], [0, 0]], title="uphill").get_title()
    'uphill'
    """
    return PathDisplay.from_function(function, path, ax, **options).ax_
