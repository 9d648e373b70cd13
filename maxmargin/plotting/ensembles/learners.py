"""Bias and variance of several learners side by side, or of one as a number of it grows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from maxmargin.ensemble import SquaredDecomposition, ZeroOneDecomposition
from maxmargin.plotting import marks
from maxmargin.plotting.display import Display

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_PARTS = {
    SquaredDecomposition: (("squared_bias", "squared bias, with noise"), ("variance", "variance")),
    ZeroOneDecomposition: (("bias", "bias, with noise"), ("net_variance", "net variance")),
}


@dataclass
class LearnersDisplay(Display):
    """Bias and variance of several learners.

    Attributes
    ----------
    names : list
        Of the learners; numbers make curves of them.
    error, bias, variance : arrays of shape (learners, 2)
        Totals and their standard errors.
    texts : tuple of two str
        What bias and variance are called.
    measure : str
        What the error is.
    """

    names: list
    error: np.ndarray
    bias: np.ndarray
    variance: np.ndarray
    texts: tuple[str, str]
    measure: str
    xlabel: str = ""

    @classmethod
    def from_decompositions(
        cls,
        decompositions: Mapping[Any, Any],
        *,
        ax: Axes | None = None,
        xlabel: str = "",
        legend: bool = True,
    ) -> LearnersDisplay:
        """Take the totals, and draw; as in :func:`plot_learners`."""
        if not decompositions:
            raise ValueError("plot_learners has nothing to draw: the mapping is empty.")
        kinds = {type(one) for one in decompositions.values()}
        if len(kinds) > 1 or not kinds <= set(_PARTS):
            found = sorted(kind.__name__ for kind in kinds)
            raise TypeError(
                "plot_learners draws what maxmargin.bias_variance returns, all of one kind, got "
                f"{', '.join(found)}."
            )
        kind = kinds.pop()
        parts = _PARTS[kind]
        totals = [one.totals for one in decompositions.values()]
        names = "error", parts[0][0], parts[1][0]
        error, bias, variance = (np.array([one[name] for one in totals]) for name in names)
        measure = "mean squared error" if kind is SquaredDecomposition else "0-1 loss"
        texts = parts[0][1], parts[1][1]
        return cls(list(decompositions), error, bias, variance, texts, measure, xlabel).plot(
            ax, legend=legend
        )

    def _draw(self, ax: Axes) -> None:
        if len(self.names) > 1 and all(isinstance(name, Real) for name in self.names):
            self._draw_curves(ax)
        else:
            self._draw_bars(ax)
        ax.set_ylabel(self.measure)

    def _draw_bars(self, ax: Axes) -> None:
        """Bars of bias with variance on top, which make the error; its standard error as a line."""
        place = np.arange(len(self.names))
        bias, variance = self.bias[:, 0], self.variance[:, 0]
        look: dict[str, Any] = {"width": 0.62}
        ax.bar(place, bias, color=marks.BLUE, label=self.texts[0], **look)
        below = np.where(variance >= 0, bias, bias + variance)
        ax.bar(
            place, np.abs(variance), bottom=below, color=marks.ORANGE, label=self.texts[1], **look
        )
        told: dict[str, Any] = {"fmt": "o", "color": marks.ink(), "markersize": 4, "capsize": 3}
        ax.errorbar(
            place, self.error[:, 0], self.error[:, 1], label="error, +- its standard error", **told
        )
        ax.set_xticks(place, [str(name) for name in self.names])
        longest = max(len(str(name)) for name in self.names)
        if longest * len(self.names) > 60:
            ax.tick_params(axis="x", rotation=30)
            for text in ax.get_xticklabels():
                text.set_horizontalalignment("right")
        high = float((self.error.sum(axis=1)).max())
        ax.set(xlim=(-0.6, len(place) - 0.4), ylim=(min(0.0, float(below.min())), 1.12 * high))
        ax.set_title("bias and variance by bootstrap replicates")
        ax.set_xlabel(self.xlabel)
        spots = np.linspace(-0.3, 0.3, 5)
        heights = np.maximum(self.error.sum(axis=1), bias + np.maximum(variance, 0.0))
        tops = [(k + s, heights[k] * f) for k in place for s in spots for f in (0.5, 0.8, 1.0)]
        marks.legend(ax, np.array(tops))

    def _draw_curves(self, ax: Axes) -> None:
        """Error, bias and variance against a number, with bands of a standard error."""
        x = np.array(self.names, dtype=np.float64)
        order = np.argsort(x)
        x = x[order]
        points = []
        curves = (
            ("error", self.error, marks.ink(), "-"),
            (self.texts[0], self.bias, marks.BLUE, "-"),
            (self.texts[1], self.variance, marks.ORANGE, "--"),
        )
        for text, values, colour, style in curves:
            value, spread = values[order].T
            ax.plot(x, value, style, color=colour, marker="o", markersize=4, label=text)
            ax.fill_between(
                x, value - spread, value + spread, color=colour, alpha=0.15, linewidth=0
            )
            points.append(np.column_stack([np.log(x) if (x > 0).all() else x, value]))
        if (x > 0).all() and x[-1] >= 20 * x[0]:
            ax.set_xscale("log")
        low = min(0.0, float((self.variance[:, 0] - self.variance[:, 1]).min()))
        ax.set(ylim=(1.05 * low, None), xlabel=self.xlabel)
        ax.set_title("bias and variance by bootstrap replicates")
        ax.legend(fontsize="small", edgecolor="none", framealpha=0.85)


def plot_learners(
    decompositions: Mapping[Any, Any],
    ax: Axes | None = None,
    *,
    xlabel: str = "",
    legend: bool = True,
) -> Axes:
    """Draw bias and variance of several learners side by side.

    Each has a bar, its bias with its variance on top; the dot is its error, with the standard error
    over points. (With few predictions a point the dot is lower than the bar: of the sample variance
    the error has (K-1)/K.) Of classes the variance is the net one, which can be below zero: then it
    takes away from the bias, and is drawn inside. Names that are numbers, such as rounds of
    boosting, make curves.

    Parameters
    ----------
    decompositions : mapping of names or numbers to what :func:`maxmargin.bias_variance` returns
    ax : matplotlib Axes, optional
        Where to draw; by default on a new figure.
    legend : bool, default=True
        Whether there is a legend.
    xlabel : str, optional
        What the names are.

    Returns
    -------
    ax : matplotlib Axes

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from maxmargin import bias_variance
    >>> from maxmargin.plotting import plot_learners
    >>> data = load_iris(return_X_y=True)
    >>> found = {
    ...     k: bias_variance(KNeighborsClassifier(k), *data, 20, random_state=0) for k in (1, 5, 25)
    ... }
    >>> ax = plot_learners(found, xlabel="neighbours")
    >>> ax.get_ylabel()
    '0-1 loss'
    """
    return LearnersDisplay.from_decompositions(
        decompositions, ax=ax, xlabel=xlabel, legend=legend
    ).ax_
