"""The perceptron at work: its line after each update, and the way of its weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from maxmargin.plotting import marks
from maxmargin.plotting.display import MovingDisplay
from maxmargin.plotting.solvers.separators import draw_lines, draw_points, in_the_plane

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass
class PerceptronDisplay(MovingDisplay):
    """The line of a perceptron after each update, among the examples.

    Examples that have been used in an update by then are bold, the others faint; the one of the
    last update is ringed.

    Attributes
    ----------
    points : float array of shape (n, 2)
    positive : bool array of shape (n,)
    coef : float array of shape (n_states, 2)
    intercept : float array of shape (n_states,)
    rows : int array of shape (n_states,)
        The row of the update that led to each state; -1 for the start, state 0.
    names : pair of str
        Of the negative and the positive class.
    features : pair of str
        Names of the axes.

    Examples
    --------
    >>> from maxmargin import Perceptron
    >>> from maxmargin.plotting import PerceptronDisplay
    >>> X, y = [[0.0, 2.0], [1.0, 3.0], [2.0, 0.0], [3.0, 1.0]], [0, 0, 1, 1]
    >>> display = PerceptronDisplay.from_estimator(Perceptron(order="cyclic"), X, y)
    >>> display.rows, display.coef[-1]
    (array([-1,  0,  2]), array([ 2., -2.]))
    """

    points: np.ndarray
    positive: np.ndarray
    coef: np.ndarray
    intercept: np.ndarray
    rows: np.ndarray
    names: tuple[str, str] = ("negative", "positive")
    features: tuple[str, str] = ("feature 0", "feature 1")

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        X: Any,
        y: Any,
        ax: Axes | None = None,
        state: int = -1,
        *,
        legend: bool = True,
    ) -> PerceptronDisplay:
        """Draw the updates of a perceptron for two classes.

        Parameters
        ----------
        model : Perceptron
            For two classes, without a kernel. It need not be fitted: what it does with these data
            is gone through with :meth:`~maxmargin.Perceptron.steps`.
        X : array-like of shape (n_samples, 2)
        y : array-like of shape (n_samples,)
        ax : matplotlib Axes, optional
        legend : bool, default=True
            Whether there is a legend.
        state : int, default=-1
            After how many updates; by default after the last one.

        Returns
        -------
        display : PerceptronDisplay
        """
        points, positive, names, features = in_the_plane(X, y)
        if not hasattr(model, "steps"):
            raise TypeError(f"PerceptronDisplay draws a Perceptron; got {type(model).__name__}.")
        if getattr(model, "kernel", None) is not None:
            raise ValueError(
                "A perceptron with a kernel has no line: fit it with trace=True, and draw its "
                "border with MovingStreetDisplay."
            )
        steps = list(model.steps(X, y))
        return cls(
            points,
            positive,
            coef=np.array([np.ravel(step.coef) for step in steps]),
            intercept=np.array([float(np.ravel(step.intercept)[0]) for step in steps]),
            rows=np.array([-1 if step.row is None else step.row for step in steps]),
            names=names,
            features=features,
        ).plot(ax, state, legend=legend)

    def __len__(self) -> int:
        return len(self.coef)

    def used(self, state: int) -> np.ndarray:
        """Return which examples were used in an update by then, shape (n,)."""
        rows = self.rows[: state + 1]
        return np.isin(np.arange(len(self.points)), rows[rows >= 0])

    def _draw_state(self, ax: Axes, state: int) -> None:
        used = self.used(state)
        w, b = self.coef[state], self.intercept[state]
        wrong = np.where(self.positive, 1, -1) * (self.points @ w + b) <= 0
        draw_points(ax, self.points, self.positive, self.names, self.features, used)
        if self.rows[state] >= 0:
            size, last = 4 * marks.size(self.points), self.points[self.rows[state]]
            look: dict[str, Any] = {"facecolors": "none", "edgecolors": marks.ink(), "zorder": 3}
            ax.scatter(last[0], last[1], s=size, label="of the last update", **look)
        draw_lines(ax, w[None], np.array([b]), [marks.ink()])
        ax.set_title(f"{_after(state)}: {wrong.sum()} wrong")
        ax.legend(loc="upper left", fontsize="small", edgecolor="none", framealpha=0.85)


@dataclass
class WeightPathDisplay(MovingDisplay):
    """The weights ``(w_1, w_2)`` of a perceptron from update to update.

    Without a bias every example halves the plane of the weights, and what is right on all of them
    is a cone. The shade is the share of examples that weights with the last bias have wrong.

    Attributes
    ----------
    path : float array of shape (n_states, 2)
    grid : two float arrays of shape (g, g)
    wrong : float array of shape (g, g)
        Share of the examples that are on the wrong side.
    margin : float array of shape (g, g)
        The least ``y (w . x + b)`` of any example: the border of the cone is where it is zero.
    intercept : float
        The bias that this is for.

    Examples
    --------
    >>> from maxmargin import Perceptron
    >>> from maxmargin.plotting import WeightPathDisplay
    >>> X, y = [[0.0, 2.0], [1.0, 3.0], [2.0, 0.0], [3.0, 1.0]], [0, 0, 1, 1]
    >>> WeightPathDisplay.from_estimator(Perceptron(order="cyclic"), X, y).path
    array([[ 0.,  0.],
           [ 0., -2.],
           [ 2., -2.]])
    """

    path: np.ndarray
    grid: tuple[np.ndarray, np.ndarray]
    wrong: np.ndarray
    margin: np.ndarray
    intercept: float = 0.0

    @classmethod
    def from_estimator(
        cls, model: Any, X: Any, y: Any, ax: Axes | None = None, *, legend: bool = True
    ) -> WeightPathDisplay:
        """Draw the weights of a perceptron.

        Parameters
        ----------
        model : Perceptron
            As in :meth:`PerceptronDisplay.from_estimator`.
        X : array-like of shape (n_samples, 2)
        y : array-like of shape (n_samples,)
        ax : matplotlib Axes, optional
        legend : bool, default=True
            Whether there is a legend.

        Returns
        -------
        display : WeightPathDisplay
        """
        from matplotlib.figure import Figure

        known = PerceptronDisplay.from_estimator(model, X, y, Figure().subplots())
        low, high = known.coef.min(axis=0), known.coef.max(axis=0)
        room = 0.15 * max((high - low).max(), 1e-12)
        sides = np.linspace(low - room, high + room, 201).T
        grid = np.meshgrid(*sides)
        sign = np.where(known.positive, 1.0, -1.0)
        w = np.column_stack([side.ravel() for side in grid])
        margins = (w @ known.points.T + known.intercept[-1]) * sign
        wrong = (margins <= 0).mean(axis=1).reshape(grid[0].shape)
        least = margins.min(axis=1).reshape(grid[0].shape)
        last = float(known.intercept[-1])
        return cls(known.coef, (grid[0], grid[1]), wrong, least, last).plot(ax, legend=legend)

    def __len__(self) -> int:
        return len(self.path)

    def _draw_state(self, ax: Axes, state: int) -> None:
        ends = [side.min() for side in self.grid], [side.max() for side in self.grid]
        extent = (ends[0][0], ends[1][0], ends[0][1], ends[1][1])
        look: dict[str, Any] = {"origin": "lower", "aspect": "auto", "cmap": "Blues"}
        image = ax.imshow(self.wrong, vmin=0.0, vmax=1.0, alpha=0.7, extent=extent, **look)
        said = "" if self.intercept == 0 else f", at b = {self.intercept:.3g}"
        ax.figure.colorbar(image, ax=ax, label=f"share of examples wrong{said}")
        if self.margin.min() < 0 < self.margin.max():
            ax.contour(*self.grid, self.margin, [0.0], colors=marks.INK, linewidths=1)
        seen = self.path[: state + 1]
        ax.plot(*seen.T, ".-", color=marks.ORANGE, linewidth=1.8, markersize=6)
        ax.plot(*seen[0], "o", color="white", markeredgecolor=marks.INK, label="start")
        ax.plot(*seen[-1], "o", color=marks.INK, label="last")
        ax.set(xlabel="first weight", ylabel="second weight", xlim=extent[:2], ylim=extent[2:])
        ax.set_title(f"the weights {_after(state)}")
        ax.legend(fontsize="small", edgecolor="none", framealpha=0.85)


def plot_perceptron(
    model: Any, X: Any, y: Any, ax: Axes | None = None, state: int = -1, *, legend: bool = True
) -> Axes:
    """Draw the line of a perceptron after an update, by default after the last one.

    The short way to :class:`PerceptronDisplay`; ``plot_snapshots`` draws several updates.

    Examples
    --------
    >>> from maxmargin import Perceptron
    >>> from maxmargin.plotting import plot_perceptron
    >>> X, y = [[0.0, 2.0], [1.0, 3.0], [2.0, 0.0], [3.0, 1.0]], [0, 0, 1, 1]
    >>> plot_perceptron(Perceptron(order="cyclic"), X, y, state=1).get_title()
    'after 1 update: 2 wrong'
    """
    return PerceptronDisplay.from_estimator(model, X, y, ax, state, legend=legend).ax_


def _after(updates: int) -> str:
    return f"after {updates} update{'s' * (updates != 1)}"
