"""What a picture is: its data, and how they are drawn."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from maxmargin.plotting import marks

if TYPE_CHECKING:
    from typing import Self

    from matplotlib.axes import Axes


class Display(ABC):
    """A picture that keeps what it draws, as scikit-learn's displays do.

    A subclass is a dataclass: its fields are the data that are drawn. ``from_estimator``,
    ``from_predictions`` or another class method with the name of its source computes them, checks
    what it was given and draws; ``plot`` draws again elsewhere. The function ``plot_...`` of the
    same picture is the short way, and returns the axes.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where it was drawn last.
    figure_ : matplotlib Figure
    """

    def plot(self, ax: Axes | None = None, *, legend: bool = True) -> Self:
        """Draw on the given axes, or on those of a new figure, with a legend or without."""
        self.ax_: Any = self._axes(ax)
        self.figure_: Any = np.ravel(self.ax_)[0].figure  # of one, or of an array of panels
        before = list(self.figure_.legends)
        self._draw(self.ax_)
        if not legend:
            drawn = [one for one in self.figure_.legends if one not in before]
            for one in [*drawn, *(panel.get_legend() for panel in np.ravel(self.ax_))]:
                if one is not None:
                    one.remove()
        for panel in np.ravel(self.ax_):
            marks.fit_title(panel)
        marks.settle(self.figure_)
        return self

    def _axes(self, ax: Axes | None) -> Any:
        """Return where to draw; a picture in space makes axes of another kind."""
        return marks.axes_or_new(ax)

    @abstractmethod
    def _draw(self, ax: Axes) -> None:
        """Draw the fields, in the class's own words and colours."""


class PanelDisplay(Display):
    """A picture of several panels: ``ax`` and ``ax_`` are arrays of axes in its ``shape``."""

    shape: tuple[int, int]

    def _axes(self, ax: Any) -> Any:
        marks.require_matplotlib()
        rows, columns = self.shape
        if ax is None:
            import matplotlib.pyplot as plt

            size = (max(3.2 * columns, 4.0), max(2.7 * rows, 3.0))
            ax = plt.subplots(rows, columns, figsize=size, layout="compressed", squeeze=False)[1]
        axes = np.array(ax, dtype=object)
        if axes.size != rows * columns:
            raise ValueError(
                f"This picture has {rows} x {columns} panels and got {axes.size} axes: give "
                f"figure.subplots({rows}, {columns}), or none."
            )
        return axes.reshape(rows, columns)


class MovingDisplay(Display):
    """A picture with several states, one after the other: what :func:`animate` makes a film of.

    It has as many states as its ``len`` says. Drawn alone it shows the last one; ``plot(state=k)``
    shows another. The axes are the same for all of them. Every ``phases`` of them belong together,
    as those of a step in its box; a film that is thinned keeps or drops them together.
    """

    phases: ClassVar[int] = 1

    def plot(self, ax: Any = None, state: int = -1, *, legend: bool = True) -> Self:
        """Draw one state on the given axes, or on those of a new figure."""
        if not -len(self) <= state < len(self):
            raise ValueError(f"This picture has {len(self)} states and no state {state}.")
        self._state = state % len(self)
        return super().plot(ax, legend=legend)

    def _draw(self, ax: Axes) -> None:
        self._draw_state(ax, self._state)

    @abstractmethod
    def __len__(self) -> int:
        """Return the number of states."""

    @abstractmethod
    def _draw_state(self, ax: Axes, state: int) -> None:
        """Draw one state, on axes whose limits are those of all."""
