"""Functions drawn from a kernel: what a Gaussian process with it takes for likely."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.linalg import LinAlgError, cholesky
from sklearn.utils import check_random_state

from maxmargin.kernels.named import as_kernel
from maxmargin.plotting import marks
from maxmargin.plotting.display import Display
from maxmargin.plotting.kernels.profile import line_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_JITTER = 1e-10  # of the mean variance: rounding leaves a smooth kernel's matrix indefinite


@dataclass
class KernelSamplesDisplay(Display):
    """Functions on a line with mean zero and a kernel for their covariance.

    Attributes
    ----------
    x : float array of shape (m,)
    functions : float array of shape (samples, m)
    deviation : float array of shape (m,)
        ``sqrt(k(x, x))``; the band is two of them wide on either side.
    title : str

    Examples
    --------
    >>> from maxmargin.kernels import RBF
    >>> from maxmargin.plotting import KernelSamplesDisplay
    >>> display = KernelSamplesDisplay.from_kernel(RBF(gamma=1.0), samples=4)
    >>> display.functions.shape, float(display.deviation[0])
    ((4, 201), 1.0)
    """

    x: np.ndarray
    functions: np.ndarray
    deviation: np.ndarray
    title: str = ""

    @classmethod
    def from_kernel(
        cls,
        kernel: Any,
        interval: tuple[float, float] = (-3.0, 3.0),
        ax: Axes | None = None,
        *,
        samples: int = 5,
        grid_resolution: int = 201,
        random_state: Any = 0,
        legend: bool = True,
    ) -> KernelSamplesDisplay:
        """Draw functions from the Gaussian process of a kernel.

        Parameters
        ----------
        kernel : Kernel, name or callable
            On one feature.
        interval : pair of float, default=(-3.0, 3.0)
        ax : matplotlib Axes, optional
        legend : bool, default=True
            Whether there is a legend.
        samples : int, default=5
            Functions to draw.
        grid_resolution : int, default=201
            Points at which they are drawn.
        random_state : int, RandomState or None, default=0

        Returns
        -------
        display : KernelSamplesDisplay
        """
        x = line_of(interval, grid_resolution)
        kernel = as_kernel(kernel).resolve(x[:, None])
        covariance = kernel(x[:, None])
        variance = covariance.diagonal().copy()
        covariance[np.diag_indices_from(covariance)] += _JITTER * max(variance.mean(), 0.0)
        try:
            root = cholesky(covariance, lower=True)
        except LinAlgError as error:
            raise ValueError(
                f"{marks.rounded(kernel)} is not positive semidefinite on this interval, so that "
                "no Gaussian process has it for its covariance; check_valid(kernel, X) shows the "
                "eigenvalues."
            ) from error
        noise = check_random_state(random_state).standard_normal((samples, len(x)))
        title = marks.rounded(kernel)
        return cls(x, noise @ root.T, np.sqrt(np.maximum(variance, 0.0)), title).plot(
            ax, legend=legend
        )

    def _draw(self, ax: Axes) -> None:
        band = 2 * self.deviation
        text = "two deviations (95 %)"
        ax.fill_between(self.x, -band, band, color=marks.BLUE, alpha=0.12, linewidth=0, label=text)
        for values, colour in zip(self.functions, marks.colours(len(self.functions)), strict=True):
            ax.plot(self.x, values, color=colour, linewidth=1.4)
        ax.axhline(0.0, color=marks.ink(), linewidth=0.6, zorder=0)
        ax.set(xlabel="x", ylabel="f(x)", title=self.title, xlim=(self.x[0], self.x[-1]))
        ax.legend(fontsize="small", edgecolor="none", framealpha=0.85)


def plot_kernel_samples(kernel: Any, ax: Axes | None = None, **options: Any) -> Axes:
    """Draw functions from the Gaussian process of a kernel.

    The short way to :class:`KernelSamplesDisplay`, whose ``from_kernel`` has the parameters.

    Examples
    --------
    >>> from maxmargin.kernels import Matern
    >>> from maxmargin.plotting import plot_kernel_samples
    >>> len(plot_kernel_samples(Matern(nu=1.5, length_scale=1.0), samples=3).lines)
    4
    """
    return KernelSamplesDisplay.from_kernel(kernel, ax=ax, **options).ax_
