"""Which rows move a classifier: the weight of a row in the gradient, by its margin."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from maxmargin.losses import Logistic, MinimumClassificationError
from maxmargin.plotting import marks

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MARGINS = -6.0, 6.0


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
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import matplotlib.pyplot as plt
    >>> from maxmargin.plotting.gradients import plot_gradient_weights
    >>> ax = plot_gradient_weights()
    >>> [line.get_label() for line in ax.lines][:2]
    ['logistic regression', 'minimum classification error']
    >>> plt.close(ax.figure)
    """
    ax = marks.axes_or_new(ax)
    margin = np.linspace(*_MARGINS, 1001)
    drawn = (
        ("logistic regression", Logistic(), marks.ORANGE),
        ("minimum classification error", MinimumClassificationError(), marks.BLUE),
    )
    for name, loss, colour in drawn:
        ax.plot(margin, -loss.slope(margin), color=colour, linewidth=2, label=name)
    ax.axvline(0, color=marks.INK, linewidth=1.8)
    place: dict[str, Any] = {"transform": ax.get_xaxis_transform(), "va": "top", "weight": "bold"}
    ax.text(-0.1, 0.83, "wrong side", ha="right", **place)
    ax.text(0.1, 0.83, "right side", ha="left", **place)
    ax.set(
        xlim=_MARGINS,
        ylim=(0, 1.25),
        xlabel="margin y f(x)",
        ylabel="weight of the row in the gradient",
        title="Which rows pull at the boundary",
    )
    ax.legend(loc="upper left", fontsize="small", frameon=False)
    return ax
