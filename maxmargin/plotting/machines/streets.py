"""What a parameter does to the street: a panel for each of its values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from maxmargin.plotting import marks
from maxmargin.plotting.display import PanelDisplay
from maxmargin.plotting.machines.street import StreetDisplay

_COLUMNS = 4


@dataclass
class StreetsDisplay(PanelDisplay):
    """The streets of one machine for several values of a parameter.

    Attributes
    ----------
    param : str
    values : list
    streets : list of StreetDisplay
        One for each value; they have the counts of the support vectors.
    models : list
        The fitted machines.
    """

    param: str
    values: list
    streets: list[StreetDisplay]
    models: list

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        X: Any,
        y: Any,
        *,
        ax: Any = None,
        param: str = "C",
        values: Sequence[Any] = (0.01, 0.1, 1.0, 10.0),
        task: int | None = None,
        segments: bool | str = False,
        grid_resolution: int = 150,
        legend: bool = True,
    ) -> StreetsDisplay:
        """Fit a machine for each value and draw; parameters as in :func:`plot_street_path`."""
        marks.require_matplotlib()
        if not len(values):
            raise ValueError("plot_street_path has nothing to draw: values is empty.")
        name = param
        if isinstance(model, Pipeline) and name not in model.get_params():
            name = f"{model.steps[-1][0]}__{param}"
        models = [clone(model).set_params(**{name: value}).fit(X, y) for value in values]
        streets = [
            StreetDisplay.evaluated(fitted, X, y, task, None, segments, grid_resolution)
            for fitted in models
        ]
        return cls(param, list(values), streets, models).plot(ax, legend=legend)

    def __post_init__(self) -> None:
        columns = min(len(self.values), _COLUMNS)
        self.shape = -(-len(self.values) // columns), columns

    def _axes(self, ax: Any) -> Any:
        if ax is None:
            import matplotlib.pyplot as plt

            rows, columns = self.shape
            size = 3.6 * max(columns, 2), 3.4 * rows + 1.2  # with room for a legend below
            ax = plt.subplots(rows, columns, figsize=size, layout="compressed", squeeze=False)[1]
        return super()._axes(ax)

    def _draw(self, ax: Any) -> None:
        names: dict[str, Any] = {}
        for panel in ax.flat[len(self.values) :]:
            panel.set_axis_off()
        for panel, value, street in zip(ax.flat, self.values, self.streets, strict=False):
            lines = street.draw_panel(panel)
            found = [*panel.get_legend_handles_labels()[0], *lines]
            names |= {handle.get_label().split(" (")[0]: handle for handle in found}
            count = f"{np.sum(street.slack > street.tol)} points with slack"
            if street.support is not None:
                count = f"{len(street.support)} support vectors, {len(street.free)} free"
            said = f"{value:g}" if isinstance(value, (int, float)) else str(value)
            panel.set_title(f"{self.param} = {said}\n{count}", fontsize="medium")
            panel.label_outer()
        if len(self.figure_.axes) == ax.size and self.figure_.get_layout_engine() is not None:
            place = {"loc": "outside lower center", "ncols": 4, "frameon": False}
            self.figure_.legend(names.values(), names.keys(), fontsize="small", **place)


def plot_street_path(
    model: Any,
    X: Any,
    y: Any,
    ax: Any = None,
    *,
    param: str = "C",
    values: Sequence[Any] = (0.01, 0.1, 1.0, 10.0),
    task: int | None = None,
    segments: bool | str = False,
    grid_resolution: int = 150,
    legend: bool = True,
) -> Any:
    """Draw the street of a machine for several values of a parameter, side by side.

    With a larger C, or a smaller ``lam``, slack costs more, and the street never becomes wider. The
    number of its support vectors mostly falls, but need not. Marks are those of
    :func:`plot_street`; the title of a panel has the number of support vectors.

    Parameters
    ----------
    model : classifier with the hinge or squared hinge loss, or Pipeline that ends in one
        It stays as it is: clones of it are fitted.
    X : array-like of shape (n_samples, 2)
    y : array-like of shape (n_samples,)
    ax : array of matplotlib Axes, optional
        One for each value, in rows of four; by default on a new figure.
    legend : bool, default=True
        Whether there is a legend.
    param : str, default="C"
        Name of the parameter, such as ``"lam"`` or ``"gamma"``; in a Pipeline that of its last
        step, or with the name of a step before it, as in ``"svc__C"``.
    values : sequence, default=(0.01, 0.1, 1.0, 10.0)
    task : int, optional
        With several classes, which of the machines for two that the model is made of.
    segments : bool or "auto", default=False
        Whether to draw slack as segments.
    grid_resolution : int, default=150
        Number of points along each axis at which the machines are evaluated.

    Returns
    -------
    ax : array of matplotlib Axes

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from maxmargin import SVC
    >>> from maxmargin.plotting import StreetsDisplay
    >>> X, y = make_blobs(60, centers=2, cluster_std=2.0, random_state=0)
    >>> display = StreetsDisplay.from_estimator(SVC(kernel="linear"), X, y, values=[0.01, 1])
    >>> [len(street.support) for street in display.streets]
    [50, 37]
    """
    return StreetsDisplay.from_estimator(
        model,
        X,
        y,
        ax=ax,
        param=param,
        values=values,
        task=task,
        segments=segments,
        grid_resolution=grid_resolution,
        legend=legend,
    ).ax_
