"""A kernel on a line: its value against the distance of two points, or beside a fixed one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from maxmargin.kernels.base import Kernel
from maxmargin.kernels.named import as_kernel
from maxmargin.plotting import marks
from maxmargin.plotting.display import Display

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_POINTS = 401
_ANCHORS = np.array([[0.0], [0.7], [-3.1]])  # a kernel of distances is the same at each of them


@dataclass
class KernelProfileDisplay(Display):
    """Kernels of one number, as curves.

    Attributes
    ----------
    x : float array of shape (m,)
        Distances, or places on the line.
    values : dict of str to float array of shape (m,)
        The values of each kernel, by its name.
    at : float or None
        The fixed point of ``k(x, at)``; None for ``k(x, x + r)`` against the distance r.

    Examples
    --------
    >>> from maxmargin.kernels import RBF, Laplacian
    >>> from maxmargin.plotting import KernelProfileDisplay
    >>> kernels = [RBF(gamma=1.0), Laplacian(gamma=1.0)]
    >>> display = KernelProfileDisplay.from_distances(kernels, largest=2.0)
    >>> list(display.values), float(display.values["RBF(gamma=1.0)"][-1].round(4))
    (['RBF(gamma=1.0)', 'Laplacian(gamma=1.0)'], 0.0183)
    """

    x: np.ndarray
    values: dict[str, np.ndarray]
    at: float | None = None

    @classmethod
    def from_distances(
        cls, kernels: Any, largest: float = 3.0, ax: Axes | None = None, *, legend: bool = True
    ) -> KernelProfileDisplay:
        """Draw ``k(x, x + r)`` against the distance r, of kernels that depend on nothing else.

        Parameters
        ----------
        kernels : Kernel, name, callable, list of them or dict of names to them
            What depends on data, such as ``gamma="scale"``, is taken from the points drawn; the
            legend has the number.
        largest : float, default=3.0
            The distances go from 0 to it.
        ax : matplotlib Axes, optional
        legend : bool, default=True
            Whether there is a legend.

        Returns
        -------
        display : KernelProfileDisplay
        """
        if not largest > 0:
            raise ValueError(f"The largest distance must be positive, got {largest!r}.")
        r = np.linspace(0.0, largest, _POINTS)
        values = {}
        for name, kernel in named_kernels(kernels, r).items():
            curves = [kernel(anchor + r[:, None], [anchor])[:, 0] for anchor in _ANCHORS]
            if not np.allclose(curves, curves[0], rtol=1e-7, atol=1e-9):
                raise ValueError(
                    f"{name} is not a function of the distance alone: its values change when both "
                    "points move. Draw it beside a fixed point with "
                    "KernelProfileDisplay.from_interval."
                )
            values[name] = curves[0]
        return cls(r, values).plot(ax, legend=legend)

    @classmethod
    def from_interval(
        cls,
        kernels: Any,
        interval: tuple[float, float] = (-1.0, 1.0),
        at: float = 0.0,
        ax: Axes | None = None,
        *,
        legend: bool = True,
    ) -> KernelProfileDisplay:
        """Draw ``k(x, at)`` for x from one end of an interval to the other.

        Parameters
        ----------
        kernels : as in :meth:`from_distances`
        interval : pair of float, default=(-1.0, 1.0)
        at : float, default=0.0
        ax : matplotlib Axes, optional
        legend : bool, default=True
            Whether there is a legend.

        Returns
        -------
        display : KernelProfileDisplay
        """
        x = line_of(interval)
        found = named_kernels(kernels, x).items()
        values = {name: kernel(x[:, None], [[float(at)]])[:, 0] for name, kernel in found}
        return cls(x, values, float(at)).plot(ax, legend=legend)

    def _draw(self, ax: Axes) -> None:
        styles = ("-", "--", "-.", ":")
        colours = marks.colours(len(self.values))
        for k, (name, values) in enumerate(self.values.items()):
            style = styles[k % len(styles)]
            ax.plot(self.x, values, style, color=colours[k], linewidth=2, label=name)
        if self.at is None:
            ax.set(xlabel="distance r", ylabel="k(x, x + r)")
        else:
            ax.axvline(self.at, color=marks.ink(), linewidth=0.6, zorder=0)
            ax.set(xlabel="x", ylabel=f"k(x, {self.at:g})")
        ax.axhline(0.0, color=marks.ink(), linewidth=0.6, zorder=0)
        ax.set_xlim(self.x[0], self.x[-1])
        ax.legend(fontsize="small", frameon=False)


def plot_kernel_profile(
    kernels: Any,
    ax: Axes | None = None,
    *,
    interval: Any = None,
    at: float = 0.0,
    legend: bool = True,
) -> Axes:
    """Draw kernels against the distance, or beside a fixed point where an interval is given.

    The short way to :class:`KernelProfileDisplay`.

    Examples
    --------
    >>> from maxmargin.kernels import RBF, Linear
    >>> from maxmargin.plotting import plot_kernel_profile
    >>> plot_kernel_profile([RBF(gamma=0.5), RBF(gamma=2.0)]).get_xlabel()
    'distance r'
    >>> plot_kernel_profile(Linear(), interval=(-1, 1), at=0.5).get_ylabel()
    'k(x, 0.5)'
    """
    if interval is None:
        return KernelProfileDisplay.from_distances(kernels, ax=ax, legend=legend).ax_
    return KernelProfileDisplay.from_interval(kernels, interval, at, ax, legend=legend).ax_


def line_of(interval: Any, points: int = _POINTS) -> np.ndarray:
    """Return evenly spaced points between two numbers, the first of which is the smaller."""
    ends = np.asarray(interval, dtype=np.float64)
    if ends.shape != (2,) or not np.isfinite(ends).all() or not ends[0] < ends[1]:
        raise ValueError(f"interval must be two numbers, low < high; got {interval!r}.")
    return np.linspace(ends[0], ends[1], points)


def named_kernels(kernels: Any, x: np.ndarray) -> dict[str, Kernel]:
    """Return kernels on a line by their names, with what depends on data taken from x."""
    if isinstance(kernels, Kernel | str) or callable(kernels):
        kernels = [kernels]
    given = list(kernels.values() if isinstance(kernels, Mapping) else kernels)
    if not given:
        raise ValueError("There is no kernel to draw: give one, a list or a dict of them.")
    found = [as_kernel(kernel).resolve(x[:, None]) for kernel in given]
    if isinstance(kernels, Mapping):
        return dict(zip(map(str, kernels), found, strict=True))
    return {marks.rounded(kernel): kernel for kernel in found}
