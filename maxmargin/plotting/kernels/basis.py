"""Kernels from basis functions: the functions above, the kernel that they make below."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from maxmargin.kernels.basis import Basis, GaussianBasis, PolynomialBasis, SigmoidBasis
from maxmargin.plotting import marks
from maxmargin.plotting.display import PanelDisplay
from maxmargin.plotting.kernels.profile import line_of


@dataclass
class BasisDisplay(PanelDisplay):
    """Basis functions ``phi_i(x)``, and below each family ``k(x, at) = sum_i phi_i(x) phi_i(at)``.

    Attributes
    ----------
    x : float array of shape (m,)
    functions : dict of str to float array of shape (m, count)
        The values of each family's functions, by its name.
    kernels : dict of str to float array of shape (m,)
        The values of its kernel.
    at : float
        The fixed point of the kernels.

    Examples
    --------
    >>> from maxmargin.plotting import BasisDisplay
    >>> display = BasisDisplay.from_bases()
    >>> list(display.functions), display.functions["Gaussian"].shape
    (['Polynomial', 'Gaussian', 'Sigmoid'], (401, 11))
    """

    x: np.ndarray
    functions: dict[str, np.ndarray]
    kernels: dict[str, np.ndarray]
    at: float

    @classmethod
    def from_bases(
        cls,
        bases: Any = None,
        interval: tuple[float, float] = (-1.0, 1.0),
        at: float = 0.0,
        ax: Any = None,
    ) -> BasisDisplay:
        """Draw families of basis functions, by default powers, Gaussian bumps and sigmoids.

        Parameters
        ----------
        bases : Basis, list of them or dict of names to them, optional
            Of :mod:`maxmargin.kernels`; any function from (n, 1) to (n, count) will do.
        interval : pair of float, default=(-1.0, 1.0)
        at : float, default=0.0
            A polynomial kernel of powers without a constant is zero beside 0.
        ax : array of matplotlib Axes of shape (2, n_families), optional

        Returns
        -------
        display : BasisDisplay
        """
        x = line_of(interval)
        if bases is None:
            bases = [PolynomialBasis(), GaussianBasis(), SigmoidBasis()]
        if isinstance(bases, Basis) or callable(bases):
            bases = [bases]
        if not isinstance(bases, Mapping):
            bases = {_name(basis): basis for basis in bases}
        if not bases:
            raise ValueError("There is no basis to draw: give one, a list or a dict of them.")
        functions = {name: np.asarray(basis(x[:, None])) for name, basis in bases.items()}
        flat = [name for name, values in functions.items() if values.ndim != 2]
        if flat:
            raise ValueError(f"{flat[0]} must map points (n, 1) to values (n, count) of functions.")
        point = np.array([[float(at)]])
        kernels = {name: functions[name] @ np.ravel(bases[name](point)) for name in bases}
        return cls(x, functions, kernels, float(at)).plot(ax)

    @property
    def shape(self) -> tuple[int, int]:  # type: ignore[override]
        """Rows and columns of panels."""
        return 2, len(self.functions)

    def _draw(self, ax: Any) -> None:
        import matplotlib as mpl

        for (above, below), (name, values) in zip(ax.T, self.functions.items(), strict=True):
            colours = mpl.colormaps["viridis"](np.linspace(0.0, 0.9, values.shape[1]))
            for curve, colour in zip(values.T, colours, strict=True):
                above.plot(self.x, curve, color=colour, linewidth=1.2)
            above.set_title(name)
            below.plot(self.x, self.kernels[name], color=marks.BLUE, linewidth=2)
            foot = below.get_xaxis_transform()
            below.plot(self.at, 0, "x", color=marks.ink(), clip_on=False, zorder=5, transform=foot)
            below.set(xlabel="x")
        ax[0, 0].set_ylabel("basis functions")
        ax[1, 0].set_ylabel(f"k(x, {self.at:g})")


def plot_basis(bases: Any = None, ax: Any = None, **options: Any) -> np.ndarray:
    """Draw basis functions above and the kernels that they make below; returns the axes.

    The short way to :class:`BasisDisplay`, whose ``from_bases`` has the parameters.

    Examples
    --------
    >>> from maxmargin.kernels import GaussianBasis
    >>> from maxmargin.plotting import plot_basis
    >>> plot_basis(GaussianBasis(5)).shape
    (2, 1)
    """
    return BasisDisplay.from_bases(bases, ax=ax, **options).ax_


def _name(basis: Any) -> str:
    return getattr(basis, "__name__", type(basis).__name__).removesuffix("Basis")
