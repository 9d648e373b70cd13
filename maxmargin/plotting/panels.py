"""Pictures of several panels, which share the place of one."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np

from maxmargin.plotting import marks
from maxmargin.plotting.display import Display

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class PanelsDisplay(Display):
    """A picture of several panels.

    Axes that it is given are left empty, for the panels to stand in their place; they must be
    those of a figure's grid, as ``plt.subplots`` makes them.

    Attributes
    ----------
    axes_ : array of matplotlib Axes of shape (n_panels,)
    """

    @property
    @abstractmethod
    def _panels(self) -> tuple[int, int, list[str | None], tuple[float, float]]:
        """Rows and columns, each panel's projection, and the size of one in inches."""

    @abstractmethod
    def _draw_panels(self, axes: np.ndarray) -> None:
        """Draw on as many axes as there are panels."""

    def _axes(self, ax: Axes | None) -> Axes:
        marks.require_matplotlib()
        if ax is not None:
            return ax
        import matplotlib.pyplot as plt

        rows, columns, _, (width, height) = self._panels
        return plt.subplots(figsize=(columns * width, rows * height), layout="constrained")[1]

    def _draw(self, ax: Axes) -> None:
        rows, columns, projections, _ = self._panels
        place = ax.get_subplotspec()
        if place is None:
            raise ValueError(
                f"{type(self).__name__} puts {len(projections)} panels in the place of ax, which "
                "must be of a grid: make it with plt.subplots, or give none."
            )
        ax.set_axis_off()
        grid, figure = place.subgridspec(rows, columns), ax.figure
        made: list[Any] = [
            figure.add_subplot(grid[k // columns, k % columns], projection=projection)
            for k, projection in enumerate(projections)
        ]
        self.axes_ = np.array(made, dtype=object)
        self._draw_panels(self.axes_)

    def _legend(self, handles: dict[str, Any]) -> None:
        """Put one legend for all panels below them, if there is room: on a figure of their own."""
        if len(self.figure_.axes) == 1 + len(self.axes_):
            place = {"loc": "outside lower center", "ncols": 4, "frameon": False}
            self.figure_.legend(handles.values(), handles.keys(), fontsize="small", **place)
