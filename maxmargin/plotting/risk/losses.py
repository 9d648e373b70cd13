"""What a margin costs, and how much a row with it pulls: losses of classifiers and their slopes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from maxmargin import losses
from maxmargin.plotting import marks
from maxmargin.plotting.display import Display

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MARGINS, _GRADIENT_MARGINS = (-2.5, 2.5), (-6.0, 6.0)
_TOP = 4.0  # where the exponential would leave the others no room
_TEN = marks.colours(10)
_LOOKS: dict[str, tuple[Any, str]] = {  # the lecture has the first three, in these colours
    "zero-one": (None, "-"),
    "hinge": (_TEN[0], "-"),
    "logistic / ln 2": (_TEN[2], "-"),
    "squared hinge": (_TEN[0], "--"),
    "exponential": (_TEN[6], "-."),
    "perceptron criterion": (_TEN[4], ":"),
    "minimum classification error": (_TEN[3], "--"),
}
_WEIGHT_LOOKS = {
    "logistic regression": (marks.ORANGE, "-"),
    "minimum classification error": (marks.BLUE, "-"),
}


@dataclass
class LossDisplay(Display):
    """Losses over the margin or the residual, or the weights that their slopes give to rows.

    Attributes
    ----------
    margin : array of shape (n,)
        Margins ``y f(x)``, or residuals ``f(x) - y``.
    curves : dict of str to array of shape (n,)
    weights : bool
        Whether the curves are sizes of slopes.
    residual : bool
        Whether the losses are of residuals, as those of regressions are.
    """

    margin: np.ndarray
    curves: dict[str, np.ndarray]
    weights: bool = False
    residual: bool = False

    @classmethod
    def from_losses(
        cls,
        given: Mapping[str, Any],
        *,
        ax: Axes | None = None,
        weights: bool = False,
        interval: tuple[float, float] = _MARGINS,
        legend: bool = True,
    ) -> LossDisplay:
        """Evaluate losses of :mod:`maxmargin.losses`, or their slopes, over margins and draw.

        Parameters
        ----------
        given : mapping of str to MarginLoss, or to ResidualLoss
        ax : matplotlib Axes, optional
        legend : bool, default=True
            Whether there is a legend.
        weights : bool, default=False
            Draw the size of the slope: how much a row with this margin weighs in the gradient.
        interval : (float, float), default=(-2.5, 2.5)
            Of margins or residuals.

        Examples
        --------
        >>> from maxmargin import losses
        >>> from maxmargin.plotting import LossDisplay
        >>> display = LossDisplay.from_losses({"hinge": losses.Hinge()}, interval=(-1, 1))
        >>> display.curves["hinge"][[0, -1]].tolist()
        [2.0, 0.0]
        """
        margin = np.linspace(*interval, 1001)
        residual = {isinstance(loss, losses.ResidualLoss) for loss in given.values()}
        if len(residual) != 1:
            raise ValueError("Give losses of margins or losses of residuals, one or more.")
        curves = {
            name: np.abs(loss.slope(margin)) if weights else loss.value(margin)
            for name, loss in given.items()
        }
        return cls(margin, curves, weights, residual.pop()).plot(ax, legend=legend)

    def _draw(self, ax: Axes) -> None:
        looks = _WEIGHT_LOOKS if self.weights else _LOOKS
        others = iter(marks.colours(max(len(self.curves), 3)))
        for name, curve in self.curves.items():
            colour, style = looks.get(name) or (next(others), "-")
            curved: dict[str, Any] = {"color": colour or marks.ink(), "linestyle": style}
            ax.plot(self.margin, curve, linewidth=1.8, label=name, **curved)
        ax.axvline(0, color=marks.ink(), linewidth=1.8 if self.weights else 0.6, zorder=0)
        what = "residual f(x) - y" if self.residual else "margin y f(x)"
        ax.set(xlim=self.margin[[0, -1]], xlabel=what)
        largest = max(curve.max() for curve in self.curves.values())
        if not self.weights:
            top = min(_TOP, 1.05 * largest)
            title = f"What a {'residual' if self.residual else 'margin'} costs"
            ax.set(ylim=(0, top), ylabel="loss", title=title)
            place: Any = "upper center" if self.residual else "upper right"
            ax.legend(loc=place, fontsize="small", frameon=False)
            return
        if not self.residual:
            look: dict[str, Any] = {"transform": ax.get_xaxis_transform(), "va": "top"}
            ax.text(-0.1, 0.83, "wrong side", ha="right", weight="bold", **look)
            ax.text(0.1, 0.83, "right side", ha="left", weight="bold", **look)
        ax.set(ylim=(0, 1.25 * largest), ylabel="weight of the row in the gradient")
        ax.set_title("Which rows pull at the boundary")
        ax.legend(loc="upper left", fontsize="small", frameon=False)


def plot_losses(ax: Axes | None = None, *, legend: bool = True) -> Axes:
    """Draw the losses of classifiers against the margin ``y f(x)``.

    The zero-one loss counts errors; the others stand in for it because they have slopes. All but
    the perceptron criterion and the sigmoid of minimum classification error lie above it. The
    logistic loss is drawn divided by ``ln 2``, so that it too passes through (0, 1); the factor
    changes no minimiser.

    Parameters
    ----------
    ax : matplotlib Axes, optional
        Where to draw; by default on a new figure.
    legend : bool, default=True
        Whether there is a legend.

    Returns
    -------
    ax : matplotlib Axes

    Examples
    --------
    >>> from maxmargin.plotting import plot_losses
    >>> ax = plot_losses()
    >>> [line.get_label() for line in ax.lines][:3]
    ['zero-one', 'hinge', 'logistic / ln 2']
    """
    drawn: dict[str, Any] = {
        "zero-one": losses.ZeroOne(),
        "hinge": losses.Hinge(),
        "logistic / ln 2": losses.Logistic(),
        "squared hinge": losses.SquaredHinge(),
        "exponential": losses.Exponential(),
        "perceptron criterion": losses.PerceptronCriterion(),
        "minimum classification error": losses.MinimumClassificationError(),
    }
    margin = np.linspace(*_MARGINS, 1001)
    curves = {name: loss.value(margin) for name, loss in drawn.items()}
    curves["logistic / ln 2"] /= np.log(2.0)
    return LossDisplay(margin, curves).plot(ax, legend=legend).ax_


def plot_gradient_weights(ax: Axes | None = None, *, legend: bool = True) -> Axes:
    """Draw how much a row weighs in the gradient, for logistic regression and MCE.

    A row pulls w along ``y x`` by the size of its loss's slope at its margin ``u = y f(x)``:
    ``l(-u)`` for logistic regression and ``l(-u) (1 - l(-u))`` for minimum classification error,
    with ``l`` the sigmoid. The first keeps pulling at every row on the wrong side, however far;
    the second only where the outcome is open, near the boundary.

    Parameters
    ----------
    ax : matplotlib Axes, optional
        Where to draw; by default on a new figure.
    legend : bool, default=True
        Whether there is a legend.

    Returns
    -------
    ax : matplotlib Axes

    Examples
    --------
    >>> from maxmargin.plotting import plot_gradient_weights
    >>> ax = plot_gradient_weights()
    >>> [line.get_label() for line in ax.lines][:2]
    ['logistic regression', 'minimum classification error']
    """
    drawn = {
        "logistic regression": losses.Logistic(),
        "minimum classification error": losses.MinimumClassificationError(),
    }
    return LossDisplay.from_losses(
        drawn, ax=ax, weights=True, interval=_GRADIENT_MARGINS, legend=legend
    ).ax_
