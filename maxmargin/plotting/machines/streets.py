"""What a parameter does to the street: a panel for each of its values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from maxmargin.plotting import marks
from maxmargin.plotting.machines.street import StreetDisplay
from maxmargin.plotting.panels import PanelsDisplay

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COLUMNS = 4


@dataclass
class StreetsDisplay(PanelsDisplay):
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
        ax: Axes | None = None,
        param: str = "C",
        values: Sequence[Any] = (0.01, 0.1, 1.0, 10.0),
        task: int | None = None,
        segments: bool | str = False,
        grid_resolution: int = 150,
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
        return cls(param, list(values), streets, models).plot(ax)

    @property
    def _panels(self) -> tuple[int, int, list[str | None], tuple[float, float]]:
        n = len(self.values)
        columns = min(n, _COLUMNS)
        return -(-n // columns), columns, [None] * n, (3.6, 3.6)

    def _draw_panels(self, axes: np.ndarray) -> None:
        names: dict[str, Any] = {}
        for ax, value, street in zip(axes, self.values, self.streets, strict=True):
            lines = street.draw_panel(ax)
            names |= {h.get_label().split(" (")[0]: h for h in ax.get_legend_handles_labels()[0]}
            names |= {line.get_label(): line for line in lines}
            count = f"{np.sum(street.slack > street.tol)} points with slack"
            if street.support is not None:
                free = len(street.free)
                count = f"{len(street.support)} support vectors, {free} free"
            said = f"{value:g}" if isinstance(value, (int, float)) else str(value)
            ax.set_title(f"{self.param} = {said}\n{count}", fontsize="medium")
            ax.label_outer()
        self._legend(names)


def plot_street_path(
    model: Any,
    X: Any,
    y: Any,
    ax: Axes | None = None,
    *,
    param: str = "C",
    values: Sequence[Any] = (0.01, 0.1, 1.0, 10.0),
    task: int | None = None,
    segments: bool | str = False,
    grid_resolution: int = 150,
) -> Axes:
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
    ax : matplotlib Axes, optional
        A place for all panels, of a grid of a figure; by default a new figure.
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
    ax : matplotlib Axes
        The place of the panels; ``StreetsDisplay.axes_`` are the panels.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from maxmargin import SVC
    >>> from maxmargin.plotting import StreetsDisplay
    >>> X, y = make_blobs(60, centers=2, cluster_std=2.0, random_state=0)
    >>> display = StreetsDisplay.from_estimator(SVC(kernel="linear"), X, y, values=[0.01, 1])
    >>> [len(street.support) for street in display.streets]
    [43, 27]
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
    ).ax_
