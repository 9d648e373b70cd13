"""Some states of a picture that moves, side by side."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from maxmargin.plotting.display import MovingDisplay, PanelDisplay

_COLUMNS = 4


@dataclass
class SnapshotsDisplay(PanelDisplay):
    """Some states of a picture, a panel for each.

    Attributes
    ----------
    picture : MovingDisplay
    states : list of int

    Examples
    --------
    >>> from maxmargin import Perceptron
    >>> from maxmargin.plotting import PerceptronDisplay, SnapshotsDisplay
    >>> X, y = [[0.0, 2.0], [1.0, 3.0], [2.0, 0.0], [3.0, 1.0]], [0, 0, 1, 1]
    >>> picture = PerceptronDisplay.from_estimator(Perceptron(order="cyclic"), X, y)
    >>> SnapshotsDisplay.from_picture(picture, [0, 1, -1]).states
    [0, 1, 2]
    """

    picture: MovingDisplay
    states: list[int]

    @classmethod
    def from_picture(
        cls, picture: MovingDisplay, states: Any = 4, ax: Any = None, *, legend: bool = True
    ) -> SnapshotsDisplay:
        """Draw some states of a picture.

        Parameters
        ----------
        picture : MovingDisplay
        states : int or sequence of int, default=4
            Which ones, or how many, evenly spaced from the first to the last.
        ax : array of matplotlib Axes, optional
        legend : bool, default=True
            Whether there is a legend.

        Returns
        -------
        display : SnapshotsDisplay
        """
        n = len(picture)
        if np.ndim(states) == 0:
            states = np.unique(np.linspace(0, n - 1, max(int(states), 1)).round().astype(int))
        chosen = [int(state) for state in states]
        if not chosen or not all(-n <= state < n for state in chosen):
            raise ValueError(f"states must be some of the {n} of this picture, got {chosen}.")
        return cls(picture, [state % n for state in chosen]).plot(ax, legend=legend)

    @property
    def shape(self) -> tuple[int, int]:  # type: ignore[override]
        """Rows and columns of panels."""
        n = len(self.states)
        rows = -(-n // _COLUMNS)
        return rows, -(-n // rows)

    def _draw(self, ax: Any) -> None:
        for panel in ax.flat[len(self.states) :]:
            panel.set_axis_off()
        for place, (panel, state) in enumerate(zip(ax.flat, self.states, strict=False)):
            self.picture.plot(panel, state=state)
            panel.set_title(panel.get_title(), fontsize="small")
            panel.label_outer()
            panel.tick_params(labelbottom=place + ax.shape[1] >= len(self.states))
            legend = panel.get_legend()
            if legend is not None:
                legend.remove()
        self._share_colour_bar(ax)
        found = [one for panel in ax.flat for one in panel.get_legend_handles_labels()[0]]
        shown = {one.get_label().split(" (")[0]: one for one in found}  # one for all panels
        if shown and panel.figure.get_layout_engine() is not None:
            below = {"loc": "outside lower center", "ncols": 4, "frameon": False}
            panel.figure.legend(shown.values(), shown.keys(), fontsize="small", **below)

    def _share_colour_bar(self, ax: Any) -> None:
        """Put one colour bar beside all panels, where each has one: they mean the same."""
        panels = list(ax.flat[: len(self.states)])
        coloured = [one for panel in panels for one in (*panel.images, *panel.collections)]
        bars = [one.colorbar for one in coloured if one.colorbar is not None]
        if bars:
            label, shown = bars[-1].ax.get_ylabel(), bars[-1].mappable
            for each in bars:
                each.remove()
            self.figure_.colorbar(shown, ax=panels, label=label)


def plot_snapshots(
    picture: MovingDisplay, states: Any = 4, ax: Any = None, *, legend: bool = True
) -> np.ndarray:
    """Draw some states of a picture side by side; returns the array of axes.

    The short way to :class:`SnapshotsDisplay`.

    Examples
    --------
    >>> from maxmargin.plotting import PathDisplay, plot_snapshots
    >>> path = PathDisplay.from_function(lambda a, b: -(a**2) - b**2, [[1, 1], [0, 1], [0, 0]])
    >>> plot_snapshots(path, 3).shape
    (1, 3)
    """
    return SnapshotsDisplay.from_picture(picture, states, ax, legend=legend).ax_
