"""The street of a machine for two, with its support vectors, and slack as segments to the edges."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.spatial import cKDTree
from sklearn.utils import check_consistent_length

from maxmargin.plotting import checks, marks
from maxmargin.plotting.display import Display
from maxmargin.plotting.machines.decision import INSTEAD
from maxmargin.plotting.machines.plane import Plane

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_STEPS, _DIFFERENCE = 40, 1e-5  # towards the nearest point of an edge; share of the plane's extent
_DAMPING = 0.3  # after the first step, for points that are far outside of a bend
_AWAY, _FLAT = 4.0, 1e-30  # extents of the plane beyond it, and squared slopes, that end a search
_REACHED = 1e-3  # |f - edge| of a point that is on it
_SIMILAR = 3.0  # extents of the features up to this ratio are drawn to one scale


@dataclass
class StreetDisplay(Display):
    """The street of a machine for two, ``-1 <= f <= 1``, and the points in it.

    Attributes
    ----------
    plane : Plane
        ``f`` on a grid.
    side : array of shape (n_samples,)
        +1 or -1: on which side of the street each point should be.
    slack : array of shape (n_samples,)
        ``xi = max(0, 1 - y f(x))``.
    feet : array of shape (n_samples, 2)
        The point of its edge of the street, ``f = y``, that is nearest to a point with slack; nan
        for points without, and where the edge is nowhere near.
    support : array of int, or None
        Rows of the support vectors, of a machine that knows them.
    tol : float
        Slack up to this is none.
    names : pair of str
        Of the negative side and the positive.
    description : str
    segments : bool or "auto"
    """

    plane: Plane
    side: np.ndarray
    slack: np.ndarray
    feet: np.ndarray
    support: np.ndarray | None
    tol: float
    names: tuple[str, str]
    description: str
    segments: bool | str = "auto"

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        X: Any,
        y: Any,
        *,
        ax: Axes | None = None,
        task: int | None = None,
        class_names: Sequence[str] | None = None,
        segments: bool | str = "auto",
        grid_resolution: int = 300,
        legend: bool = True,
    ) -> StreetDisplay:
        """Evaluate a model and draw; parameters as in :func:`plot_street`."""
        found = cls.evaluated(model, X, y, task, class_names, segments, grid_resolution)
        return found.plot(ax, legend=legend)

    @classmethod
    def evaluated(
        cls,
        model: Any,
        X: Any,
        y: Any,
        task: int | None = None,
        class_names: Sequence[str] | None = None,
        segments: bool | str = "auto",
        grid_resolution: int = 300,
    ) -> StreetDisplay:
        """Return the display of a model, not drawn yet."""
        marks.require_matplotlib()
        machine = checks.last_step(model)
        chosen = checks.Task.of(model, task, "plot_street")
        if not checks.has_street(machine):
            raise ValueError(
                f"plot_street draws machines whose loss is the hinge or its square: to a "
                f"{type(machine).__name__} f = -1 and f = +1 mean nothing, see plot_decision."
            )
        checks.check_drawable(
            model, 2, "plot_street", INSTEAD.replace("Choose", "plot_decision can choose")
        )
        check_consistent_length(X, y)
        names = checks.class_names(machine.classes_, class_names)
        side = chosen.sides[checks.class_index(machine.classes_, y)]
        seen, support = side != 0, None
        if hasattr(machine, "support_") and hasattr(machine, "shape_fit_"):
            checks.check_training_rows(model, X, y, "plot_street")
            # those of the other machines are not of this street
            mine = np.isin(np.arange(len(side)), machine.support_)
            if len(names) > 2:
                mine &= side * chosen.values(model, X) <= 1 + checks.tolerance(machine)
            support = np.flatnonzero(mine[seen])
        points, side = checks.dense(X)[seen], side[seen].astype(float)

        def f(places: np.ndarray) -> np.ndarray:
            return chosen.values(model, checks.in_container_of(X, places))

        def respond(places: Any) -> np.ndarray:
            return chosen.values(model, places)

        plane = Plane.around(checks.in_container_of(X, points), respond, grid_resolution)
        slack = np.maximum(0.0, 1.0 - side * f(points))
        tol = max(checks.tolerance(machine), 1e-9)
        feet = np.full(points.shape, np.nan)
        out = slack > tol
        if segments and out.any():
            feet[out] = nearest_on_edge(f, plane, points[out], side[out])
        sides = [
            " or ".join(n for n, s in zip(names, chosen.sides, strict=True) if s == of)
            for of in (-1, 1)
        ]
        return cls(
            plane=plane,
            side=side,
            slack=slack,
            feet=feet,
            support=support,
            tol=tol,
            names=(sides[0], sides[1]),
            description=marks.describe(machine),
            segments=segments,
        )

    @property
    def free(self) -> np.ndarray:
        """Rows of the support vectors on the edges, whose multipliers are below their cost."""
        rows = np.empty(0, int) if self.support is None else self.support
        return rows[self.slack[rows] <= self.tol]

    @property
    def bounded(self) -> np.ndarray:
        """Rows of the support vectors with slack, whose multipliers are at their cost."""
        rows = np.empty(0, int) if self.support is None else self.support
        return rows[self.slack[rows] > self.tol]

    def groups(self) -> dict[str, np.ndarray]:
        """Return masks of the points by their slack: none, less than 1, equal to 1, more than 1."""
        value = np.abs(self.slack - 1.0)  # |f| of points with slack
        near = self.tol * min(1.0, float(value.max(initial=0.0)))  # all values may be small
        none, one = self.slack <= self.tol, value <= near
        return {
            "slack 0: not in the street": none,
            "slack < 1: inside the street": ~none & ~one & (self.slack < 1.0),
            "slack = 1: on f = 0": one,
            "slack > 1: wrong side": ~one & (self.slack > 1.0),
        }

    def _draw(self, ax: Axes) -> None:
        lines = self.draw_panel(ax)
        if self.support is None:
            said = f"{(self.slack > self.tol).sum()} of {len(self.side)} points with slack"
        else:
            said = f"{len(self.free)} free and {len(self.bounded)} bounded support vectors"
        ax.set_title(f"{self.description}: {said}")
        marks.legend(ax, self.plane.points, lines)

    def draw_panel(self, ax: Axes) -> tuple:
        """Draw all but title and legend; return the legend's lines."""
        plane, points, groups = self.plane, self.plane.points, self.groups()
        plane.frame(ax)
        extent = np.ptp(plane.x), np.ptp(plane.y)
        if max(extent) <= _SIMILAR * min(extent):
            ax.set_aspect("equal")  # so that what is perpendicular looks so
        lines = plane.fill_street(ax)
        out = self.slack > self.tol
        if self.segments and out.any() and marks.few(out.sum(), self.segments):
            self._draw_segments(ax, out)
        for of, colour, marker, name in zip(
            (-1, 1), marks.colours(2), "os", self.names, strict=True
        ):
            group = points[self.side == of]
            marks.scatter(ax, points, group, colour, marker, f"{name} ({len(group)})")
        marked = marks.few(out.sum(), "auto")
        _, inside, line, wrong = groups
        marks.dot(ax, points, groups[inside], inside, marked)
        marks.bar(ax, points, groups[line], line, marked)
        marks.cross(ax, points, groups[wrong], wrong, marked)
        if self.support is not None:
            marked = marks.few(len(self.support), "auto")
            marks.ring_free(ax, points, self.free, marked)
            marks.frame_bounded(ax, points, self.bounded, marked)
        return lines

    def _draw_segments(self, ax: Axes, out: np.ndarray) -> None:
        from matplotlib.collections import LineCollection

        there = out & ~np.isnan(self.feet[:, 0])
        away = out.sum() - there.sum()
        label = "slack: to the nearest point of the edge" + f" ({away} far from it)" * bool(away)
        ends = np.stack([self.plane.points[there], self.feet[there]], axis=1)
        look: dict[str, Any] = {"colors": marks.ink(), "linewidths": 0.9, "alpha": 0.75}
        ax.add_collection(
            LineCollection(list(ends), label=label, zorder=1.8, **look), autolim=False
        )


def nearest_on_edge(
    f: Callable[[np.ndarray], np.ndarray], plane: Plane, points: np.ndarray, level: np.ndarray
) -> np.ndarray:
    """Return the nearest points z with ``f(z) = level``, shape (n, 2); nan where none is found.

    From the nearest point of the level line on the grid, where it is there, and otherwise from
    the point itself, each step goes to the foot of the perpendicular on the line as it is by its
    first derivatives, so that at the end ``x - z`` is along the gradient. Of a linear f the first
    step is exact. Steps that do not settle leave the point of the grid.
    """
    start, limit = points.copy(), np.full(len(points), np.inf)
    for of in np.unique(level):
        line, rows = _level_line(plane, of), np.flatnonzero(level == of)
        if len(line):
            distance, nearest = cKDTree(line).query(points[rows])
            start[rows], limit[rows] = line[nearest], distance
    low, high = np.array([[plane.x[0], plane.y[0]], [plane.x[-1], plane.y[-1]]])
    extent = high - low
    width = _DIFFERENCE * extent
    z, damping = start.copy(), 1.0
    for _ in range(_STEPS):
        gradient = np.stack(
            [(f(z + step) - f(z - step)) / (2 * step.sum()) for step in np.diag(width)], axis=1
        )
        steep = np.maximum((gradient**2).sum(axis=1), _FLAT)
        ahead = (level - f(z) + (gradient * (z - points)).sum(axis=1)) / steep
        z, before = z + damping * (points + ahead[:, None] * gradient - z), z
        z = np.clip(z, low - _AWAY * extent, high + _AWAY * extent)
        damping = _DAMPING
        if (np.abs(z - before) <= width).all():
            break
    lost = np.abs(f(z) - level) > _REACHED
    lost |= np.linalg.norm(z - points, axis=1) > 1.001 * limit
    on_grid = np.where(np.isfinite(limit)[:, None], start, np.nan)
    return np.where(lost[:, None], on_grid, z)


def _level_line(plane: Plane, level: float) -> np.ndarray:
    """Points of the grid's level line, shape (m, 2)."""
    from contourpy import contour_generator

    pieces: Any = contour_generator(plane.x, plane.y, plane.values).lines(level)
    return np.concatenate([np.zeros((0, 2)), *pieces])


def plot_street(
    model: Any,
    X: Any,
    y: Any,
    ax: Axes | None = None,
    *,
    task: int | None = None,
    class_names: Sequence[str] | None = None,
    segments: bool | str = "auto",
    grid_resolution: int = 300,
    legend: bool = True,
) -> Axes:
    """Draw the street of a machine with its support vectors, and slack as segments.

    The slack of a point is ``xi = max(0, 1 - y f(x))``. From each point that has some, a segment
    goes to the nearest point of its own edge of the street, ``f = y``: for a linear machine the
    foot of the perpendicular, of length ``xi / ||w||``; for others perpendicular to the edge where
    it arrives. A dot marks ``xi < 1`` (inside the street), a bar ``xi = 1`` (on ``f = 0``), a cross
    ``xi > 1`` (the wrong side).

    Free support vectors are ringed: they are on an edge, with multipliers between 0 and their cost.
    Bounded ones are framed: they have slack and, by the Karush-Kuhn-Tucker conditions, multipliers
    at their cost. "On" and "none" are within the machine's ``tol``.

    Parameters
    ----------
    model : fitted classifier with the hinge or squared hinge loss, or Pipeline that ends in one
        On two features: SVC, NuSVC, LinearSVC. Support vectors are marked of kernel machines, whose
        ``tol`` tells the free ones from the bounded.
    X : array-like of shape (n_samples, 2)
        The training points, as given to fit.
    y : array-like of shape (n_samples,)
        Their classes.
    ax : matplotlib Axes, optional
        Where to draw; by default on a new figure. Where the features have similar ranges, both have
        one scale.
    legend : bool, default=True
        Whether there is a legend.
    task : int, optional
        With several classes, which of the machines for two that the model is made of.
    class_names : sequence of str of shape (n_classes,), optional
        Names to show in place of ``classes_``.
    segments : bool or "auto", default="auto"
        Whether to draw the segments; by default up to 400 of them.
    grid_resolution : int, default=300
        Number of points along each axis at which the machine is evaluated.

    Returns
    -------
    ax : matplotlib Axes

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from maxmargin import SVC
    >>> from maxmargin.plotting import plot_street
    >>> X, y = load_iris(return_X_y=True)
    >>> X, y = X[50:, 2:], y[50:]
    >>> model = SVC(kernel="linear").fit(X, y)
    >>> plot_street(model, X, y).get_title()
    'Linear(), C = 1: ... free and ... bounded support vectors'
    """
    return StreetDisplay.from_estimator(
        model,
        X,
        y,
        ax=ax,
        task=task,
        class_names=class_names,
        segments=segments,
        grid_resolution=grid_resolution,
        legend=legend,
    ).ax_
