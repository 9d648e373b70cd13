"""A function at its highest where a constraint holds: the constraint active, or not.

Maximise ``f(x)`` over the plane subject to ``g(x) >= 0``. With ``L(x, lam) = f(x) + lam g(x)``, the
Karush-Kuhn-Tucker conditions of a highest point are

    grad f + lam grad g = 0,    g >= 0,    lam >= 0,    lam g = 0

so that either the constraint is inactive (``g > 0``, ``lam = 0``: as if it were not there) or it is
active (``g = 0``, ``lam >= 0``): the gradients are then on one line, in opposite directions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import minimize

from maxmargin.plotting import marks
from maxmargin.plotting.display import Display

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Function = Callable[[np.ndarray, np.ndarray], Any]
_ACTIVE = 1e-6  # g up to this, over its range in the picture, is zero
_ARROW = 0.18  # length of the longer arrow, as a share of the picture
_DIFFERENCE = 1e-6


@dataclass
class ConstraintDisplay(Display):
    """Contours of a function, the region that a constraint allows, and the highest point in it.

    Attributes
    ----------
    x, y : arrays of shape (resolution,)
    objective, constraint : arrays of shape (resolution, resolution)
        ``f`` and ``g`` on the grid.
    optimum : array of shape (2,)
        Where f is highest subject to ``g >= 0``.
    gradients : array of shape (2, 2)
        Of f and of g at the optimum.
    multiplier : float
        ``lam``; 0 where the constraint is inactive.
    active : bool
    """

    x: np.ndarray
    y: np.ndarray
    objective: np.ndarray
    constraint: np.ndarray
    optimum: np.ndarray
    gradients: np.ndarray
    multiplier: float
    active: bool

    @classmethod
    def from_functions(
        cls,
        objective: Function,
        constraint: Function,
        *,
        ax: Axes | None = None,
        xlim: tuple[float, float] = (-2.0, 2.0),
        ylim: tuple[float, float] = (-2.0, 2.0),
        grid_resolution: int = 201,
        legend: bool = True,
    ) -> ConstraintDisplay:
        """Find the highest point and draw; parameters as in :func:`plot_constraint`."""
        x, y = (np.linspace(*limits, grid_resolution) for limits in (xlim, ylim))
        f, g = (_on_grid(of, x, y) for of in (objective, constraint))
        if not (g >= 0).any():
            raise ValueError("The constraint g(x) >= 0 holds nowhere in the picture.")
        row, column = np.unravel_index(np.where(g >= 0, f, -np.inf).argmax(), f.shape)
        found = minimize(
            lambda z: -float(objective(*z)),
            np.array([x[column], y[row]]),
            method="SLSQP",
            bounds=[xlim, ylim],
            constraints={"type": "ineq", "fun": lambda z: float(constraint(*z))},
            options={"ftol": 1e-14},
        )
        z = found.x
        if np.isclose(z, [xlim, ylim], rtol=0, atol=1e-9).any():
            raise ValueError(
                f"f is highest at the frame of the picture, {z.round(4)}: there it is the frame "
                "that holds it back. Choose xlim and ylim around the highest point."
            )
        gradients = np.array([_gradient(of, z) for of in (objective, constraint)])
        active = bool(constraint(*z) <= _ACTIVE * np.ptp(g))
        multiplier = float(-gradients[0] @ gradients[1] / (gradients[1] @ gradients[1]))
        return cls(x, y, f, g, z, gradients, multiplier if active else 0.0, active).plot(
            ax, legend=legend
        )

    def _draw(self, ax: Axes) -> None:
        from matplotlib.lines import Line2D
        from matplotlib.patches import Patch

        ax.contourf(self.x, self.y, self.constraint, [0, np.inf], colors=[marks.BLUE], alpha=0.15)
        ax.contour(self.x, self.y, self.constraint, [0], colors=[marks.BLUE], linewidths=2)
        lines = ax.contour(self.x, self.y, self.objective, 12, colors="#707070", linewidths=0.8)
        lines.set_linestyle("-")
        unit = _ARROW * min(np.ptp(self.x), np.ptp(self.y))
        handles = [
            Patch(color=marks.BLUE, alpha=0.3, label="allowed: $g(x) \\geq 0$"),
            Line2D([], [], color="#707070", linewidth=0.8, label="contours of $f$"),
        ]
        for gradient, colour, name in zip(
            self.gradients, ("#d55e00", marks.BLUE), ("f", "g"), strict=True
        ):
            size = np.linalg.norm(gradient)
            if size > 1e-3 * np.ptp(self.objective) and (name == "f" or self.active):
                to = self.optimum + unit * gradient / size
                arrow = {"arrowstyle": "-|>", "color": colour, "linewidth": 2, "shrinkA": 0}
                ax.annotate("", tuple(to), tuple(self.optimum), arrowprops=arrow, zorder=4)
                label = f"direction of $\\nabla {name}$"
                handles.append(Line2D([], [], color=colour, linewidth=2, label=label))
        ax.plot(*self.optimum, "o", color=marks.ink(), markersize=7, zorder=5)
        said = "g = 0" if self.active else "g > 0"
        state = "active" if self.active else "inactive"
        ax.set(xlim=self.x[[0, -1]], ylim=self.y[[0, -1]], xlabel="$x_1$", ylabel="$x_2$")
        ax.set_aspect("equal")
        ax.set_title(f"constraint {state}: ${said}$, $\\lambda = {self.multiplier:.3g}$")
        highest = "highest $f$ where it is allowed"
        point: dict[str, Any] = {"marker": "o", "linestyle": "none", "color": marks.ink()}
        handles.append(Line2D([], [], label=highest, **point))
        marks.legend(ax, np.array([self.optimum]), handles)


def plot_constraint(
    objective: Function,
    constraint: Function,
    ax: Axes | None = None,
    *,
    xlim: tuple[float, float] = (-2.0, 2.0),
    ylim: tuple[float, float] = (-2.0, 2.0),
    grid_resolution: int = 201,
    legend: bool = True,
) -> Axes:
    """Draw where a function is highest subject to a constraint, and whether this is active.

    Maximise ``f(x)`` subject to ``g(x) >= 0``. Where the constraint is active, the gradients of f
    and g are on one line in opposite directions, ``grad f = -lam grad g`` with ``lam >= 0``; where
    it is not, ``grad f = 0`` and ``lam = 0``. Either way ``lam g = 0``.

    Parameters
    ----------
    objective, constraint : callable
        f and g, of two arrays x1 and x2 of one shape. f should be smooth with one highest point in
        the picture, which is looked for from the best point of the grid.
    ax : matplotlib Axes, optional
        Where to draw; by default on a new figure.
    legend : bool, default=True
        Whether there is a legend.
    xlim, ylim : (float, float), default=(-2.0, 2.0)
    grid_resolution : int, default=201
        Number of points along each axis at which the functions are evaluated.

    Returns
    -------
    ax : matplotlib Axes

    Examples
    --------
    >>> from maxmargin.plotting import plot_constraint
    >>> def f(x1, x2):
    ...     return -((x1 - 0.5) ** 2) - (x2 - 0.5) ** 2
    >>> plot_constraint(f, lambda x1, x2: 1.5 - x1 - x2).get_title()
    'constraint inactive: $g > 0$, $\\\\lambda = 0$'
    >>> plot_constraint(f, lambda x1, x2: 0.5 - x1 - x2).get_title()
    'constraint active: $g = 0$, $\\\\lambda = 0.5$'
    """
    return ConstraintDisplay.from_functions(
        objective,
        constraint,
        ax=ax,
        xlim=xlim,
        ylim=ylim,
        grid_resolution=grid_resolution,
        legend=legend,
    ).ax_


def _on_grid(of: Function, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    grid = np.meshgrid(x, y)
    values = np.broadcast_to(np.asarray(of(*grid), dtype=np.float64), grid[0].shape)
    if not np.isfinite(values).all():
        raise ValueError("objective and constraint must be finite all over the picture.")
    return values


def _gradient(of: Function, z: np.ndarray) -> np.ndarray:
    steps = _DIFFERENCE * np.eye(2)
    return np.array([of(*(z + step)) - of(*(z - step)) for step in steps]) / (2 * _DIFFERENCE)
