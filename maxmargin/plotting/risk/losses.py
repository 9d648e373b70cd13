"""What a margin costs, and how much a row with it pulls: losses of classifiers and their slopes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from maxmargin import losses
from maxmargin.plotting import marks

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MARGINS, _GRADIENT_MARGINS = (-2.5, 2.5), (-6.0, 6.0)
_TOP = 4.0  # where the exponential would leave the others no room


def plot_losses(ax: Axes | None = None) -> Axes:
    """Draw the losses of classifiers against the margin ``y f(x)``.

    The zero-one loss counts errors; the others stand in for it because they have slopes. All but
    the perceptron criterion and the sigmoid of minimum classification error lie above it. The
    logistic loss is drawn divided by ``ln 2``, so that it too passes through (0, 1); the factor
    changes no minimiser.

    Parameters
    ----------
    ax : matplotlib Axes, optional
        Where to draw; by default on a new figure.

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
    ax = marks.axes_or_new(ax)
    ten = marks.colours(10)
    drawn = [  # the lecture has the first three, in these colours
        (losses.ZeroOne(), "zero-one", 1.0, "black", "-"),
        (losses.Hinge(), "hinge", 1.0, ten[0], "-"),
        (losses.Logistic(), "logistic / ln 2", np.log(2.0), ten[2], "-"),
        (losses.SquaredHinge(), "squared hinge", 1.0, ten[0], "--"),
        (losses.Exponential(), "exponential", 1.0, ten[6], "-."),
        (losses.PerceptronCriterion(), "perceptron criterion", 1.0, ten[4], ":"),
        (losses.MinimumClassificationError(), "minimum classification error", 1.0, ten[3], "--"),
    ]
    margin = np.linspace(*_MARGINS, 1001)
    for loss, name, unit, colour, style in drawn:
        ax.plot(margin, loss.value(margin) / unit, color=colour, linestyle=style, label=name)
    ax.axvline(0, color=marks.INK, linewidth=0.6, zorder=0)
    ax.set(
        xlim=_MARGINS,
        ylim=(0, _TOP),
        xlabel="margin y f(x)",
        ylabel="loss",
        title="What a margin costs",
    )
    ax.legend(loc="upper right", fontsize="small", frameon=False)
    return ax


def plot_gradient_weights(ax: Axes | None = None) -> Axes:
    """Draw how much a row weighs in the gradient, for logistic regression and MCE.

    A row pulls w along ``y x`` by the size of its loss's slope at its margin ``u = y f(x)``:
    ``l(-u)`` for logistic regression and ``l(-u) (1 - l(-u))`` for minimum classification error,
    with ``l`` the sigmoid. The first keeps pulling at every row on the wrong side, however far;
    the second only where the outcome is open, near the boundary.

    Parameters
    ----------
    ax : matplotlib Axes, optional
        Where to draw; by default on a new figure.

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
    ax = marks.axes_or_new(ax)
    margin = np.linspace(*_GRADIENT_MARGINS, 1001)
    drawn = (
        ("logistic regression", losses.Logistic(), marks.ORANGE),
        ("minimum classification error", losses.MinimumClassificationError(), marks.BLUE),
    )
    for name, loss, colour in drawn:
        ax.plot(margin, -loss.slope(margin), color=colour, linewidth=2, label=name)
    ax.axvline(0, color=marks.INK, linewidth=1.8)
    place: dict[str, Any] = {"transform": ax.get_xaxis_transform(), "va": "top", "weight": "bold"}
    ax.text(-0.1, 0.83, "wrong side", ha="right", **place)
    ax.text(0.1, 0.83, "right side", ha="left", **place)
    ax.set(
        xlim=_GRADIENT_MARGINS,
        ylim=(0, 1.25),
        xlabel="margin y f(x)",
        ylabel="weight of the row in the gradient",
        title="Which rows pull at the boundary",
    )
    ax.legend(loc="upper left", fontsize="small", frameon=False)
    return ax
