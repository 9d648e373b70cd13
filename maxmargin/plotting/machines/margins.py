"""How far on the right side the points are: the distribution of ``y f(x)``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils import check_consistent_length

from maxmargin.plotting import checks, marks
from maxmargin.plotting.display import Display

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# unlike those of the classes in plot_decision
_COLOURS = "#009e73", "#882255", "#56b4e9", "#d55e00"
_VOTE_WIDTH = 0.05  # of bars for margins of votes
_TOP, _LINE = 0.95, 0.06  # of the picture's height; and of it for a line of the legend


@dataclass
class MarginDisplay(Display):
    """The distribution of ``y f(x)``, of one data set or several.

    Attributes
    ----------
    margins : dict of str to array of shape (n_samples,)
        ``y f(x)`` of each data set; of those on the edge of the street exactly 1.
    bar_width : float or None
    cumulative : bool
    task : str
        Which machine, if there are several.
    votes : bool
        Whether these are margins of votes, between -1 and 1, which know no street.
    """

    margins: dict[str, np.ndarray]
    bar_width: float | None = None
    cumulative: bool = False
    task: str = ""
    votes: bool = False

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        X: Any,
        y: Any,
        *,
        ax: Axes | None = None,
        others: Mapping[str, tuple[Any, Any]] | None = None,
        label: str = "training",
        bar_width: float | None = None,
        cumulative: bool = False,
        task: int | None = None,
        rounds: Sequence[int] | None = None,
        legend: bool = True,
    ) -> MarginDisplay:
        """Evaluate a model and draw; parameters as in :func:`plot_margins`."""
        machine = checks.last_step(model)
        if bar_width is not None and not bar_width > 0:
            raise ValueError(f"bar_width must be positive, or None; got {bar_width!r}.")
        if hasattr(machine, "margins"):
            margins = _margins_of_votes(model, {label: (X, y), **(others or {})}, rounds)
            return cls(margins, bar_width, cumulative, votes=True).plot(ax, legend=legend)
        if rounds is not None:
            raise ValueError(
                f"rounds are those of a booster, and {type(machine).__name__} has none."
            )
        chosen = checks.Task.of(model, task, "plot_margins")
        checks.refuse_softmax(machine, "plot_margins")
        margins = {}
        for name, (points, labels) in {label: (X, y), **(others or {})}.items():
            check_consistent_length(points, labels)
            side = chosen.sides[checks.class_index(machine.classes_, labels)]
            values = (side * chosen.values(model, points))[side != 0]
            edge = np.abs(values - 1.0) <= checks.tolerance(machine)
            margins[name] = np.where(edge, 1.0, values)
        return cls(margins, bar_width, cumulative, chosen.name).plot(ax, legend=legend)

    @classmethod
    def from_predictions(
        cls,
        y: Any,
        values: Any,
        *,
        ax: Axes | None = None,
        label: str = "training",
        bar_width: float | None = None,
        cumulative: bool = False,
        legend: bool = True,
    ) -> MarginDisplay:
        """Draw values of f, positive for the second of the two classes in y."""
        check_consistent_length(y, values)
        classes, index = np.unique(np.asarray(y), return_inverse=True)
        if len(classes) != 2:
            raise ValueError(f"y f(x) is of two classes, and y has {classes.tolist()}.")
        margins = (2.0 * index - 1.0) * np.asarray(values, dtype=np.float64)
        return cls({label: margins}, bar_width, cumulative).plot(ax, legend=legend)

    def _draw(self, ax: Axes) -> None:
        from matplotlib.ticker import FixedLocator, MaxNLocator, PercentFormatter

        if self.votes:
            self._draw_votes(ax)
            return
        margins = self.margins
        low = min(-1.0, *(np.floor(m.min()) for m in margins.values()))
        high = max(2.0, *(np.floor(m.max()) + 1 for m in margins.values()))
        low = min(low, -0.25 * high)  # room for the words beside the street
        width = self.bar_width or _width(high - low)
        edges = width * np.arange(np.floor(low / width), np.ceil(high / width) + 1)
        for k, (name, m) in enumerate(margins.items()):
            text = (
                f"{name}: {np.sum(m < 0)} of {len(m)} on the wrong side, "
                f"{np.sum((m >= 0) & (m < 1))} in the street"
            )
            if self.cumulative:
                ax.ecdf(m, color=_COLOURS[k % len(_COLOURS)], linewidth=2, label=text)
                continue
            heights = np.histogram(m, edges)[0] / len(m)
            # the first data are filled, the others outlines over them
            fill = {"fill": True, "alpha": 0.5} if k == 0 else {"linewidth": 2}
            ax.stairs(heights, edges, color=_COLOURS[k % len(_COLOURS)], label=text, **fill)
        below = ax.figure.get_layout_engine() is not None
        top = _TOP if below else _TOP - _LINE * (len(margins) + 1)  # room for the legend
        _zones(ax, top=top)
        ax.set(
            xlim=(low, high),
            ylim=(0, 1.1 / top * ax.get_ylim()[1]),
            xlabel="y f(x)",
            ylabel="share of points up to y f(x)" if self.cumulative else "share of points",
            title="How far on the right side the points are" + f": {self.task}" * bool(self.task),
        )
        ax.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
        ax.yaxis.set_major_locator(
            FixedLocator([0, 0.2, 0.4, 0.6, 0.8, 1])
            if self.cumulative
            else MaxNLocator(steps=[1, 2, 5, 10])
        )
        if below:
            marks.legend_below(ax, ncols=1, fontsize="small")
        else:
            ax.legend(loc="upper left", fontsize="small", frameon=False)

    def _draw_votes(self, ax: Axes) -> None:
        """Draw margins of votes between -1 and 1."""
        from matplotlib.ticker import PercentFormatter

        edges = np.linspace(-1.0, 1.0, round(2.0 / (self.bar_width or _VOTE_WIDTH)) + 1)
        for k, (name, m) in enumerate(self.margins.items()):
            text = f"{name}: {np.mean(m <= 0):.1%} not right, least {m.min():.2f}"
            colour = _COLOURS[k % len(_COLOURS)]
            if self.cumulative:
                ax.ecdf(m, color=colour, linewidth=2, label=text)
                continue
            fill = {"fill": True, "alpha": 0.5} if k == 0 else {"linewidth": 2}
            ax.stairs(np.histogram(m, edges)[0] / len(m), edges, color=colour, label=text, **fill)
        ax.axvline(0, color=marks.ink(), linewidth=1.2)
        ax.set(
            xlim=(-1, 1),
            xlabel="margin: votes for the class less those for another",
            ylabel="share of points up to the margin" if self.cumulative else "share of points",
            title="The margins of the vote",
        )
        ax.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
        marks.legend_below(ax, ncols=1, fontsize="small")


def _margins_of_votes(
    model: Any, data: Mapping[str, tuple[Any, Any]], rounds: Sequence[int] | None
) -> dict[str, np.ndarray]:
    """Margins of each data set, after the last round or after several."""
    machine = checks.last_step(model)
    margins = {}
    for name, (X, y) in data.items():
        if machine is not model and len(model) > 1:
            X = model[:-1].transform(X)
        for stage in [None] if rounds is None else rounds:
            said = name if stage is None else f"{stage} round{'s' * (stage != 1)}"
            said = f"{name}, {said}" if stage is not None and len(data) > 1 else said
            margins[said] = machine.margins(X, y, stage)
    return margins


def plot_margins(
    model: Any,
    X: Any,
    y: Any,
    ax: Axes | None = None,
    *,
    others: Mapping[str, tuple[Any, Any]] | None = None,
    label: str = "training",
    bar_width: float | None = None,
    cumulative: bool = False,
    task: int | None = None,
    rounds: Sequence[int] | None = None,
    legend: bool = True,
) -> Axes:
    """Draw the distribution of ``y f(x)`` for a classifier.

    With the classes as y = -1 and y = +1, a point is on the wrong side where ``y f(x) < 0``, on the
    right side but in the street from 0 to 1, and beyond the street from 1 on. Values within the
    machine's ``tol`` of 1 count as 1: these are the support vectors on the edge of the street.

    The vote of a booster has no street: its margins are normalised, between -1 and 1, and are those
    of its ``margins``, for several classes, too.

    Parameters
    ----------
    model : fitted classifier with a decision_function, or Pipeline that ends in one
        On any number of features.
    X : array-like of shape (n_samples, n_features)
        Points, such as the training data.
    y : array-like of shape (n_samples,)
        Their classes.
    ax : matplotlib Axes, optional
        Where to draw; by default on a new figure.
    legend : bool, default=True
        Whether there is a legend.
    others : mapping of str to (X, y), optional
        Further data by name, such as ``{"held out": (X_test, y_test)}``.
    label : str, default="training"
        Name of the first data.
    bar_width : float, optional
        Width of the bars; one of them starts at 0. By default such that there are at most 50.
    cumulative : bool, default=False
        Draw the share of points up to each value in place of the bars.
    task : int, optional
        With several classes, which of the machines for two that the model is made of; points of
        classes that it does not see are left out.
    rounds : sequence of int, optional
        Of a booster: after how many rounds, such as ``[5, 100, 1000]``; by default after the last.

    Returns
    -------
    ax : matplotlib Axes

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from maxmargin import SVC
    >>> from maxmargin.plotting import plot_margins
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = SVC().fit(X[:400], y[:400])
    >>> ax = plot_margins(model, X[:400], y[:400], others={"held out": (X[400:], y[400:])})
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['training: 38 of 400 on the wrong side, 74 in the street', ...]
    """
    return MarginDisplay.from_estimator(
        model,
        X,
        y,
        ax=ax,
        others=others,
        label=label,
        bar_width=bar_width,
        cumulative=cumulative,
        task=task,
        rounds=rounds,
        legend=legend,
    ).ax_


def _width(extent: float) -> float:
    """Width of at most 50 bars: a simple fraction of the street's width, or a multiple of it."""
    for width in (0.25, 0.5):
        if extent <= 50 * width:
            return width
    return float(np.ceil(extent / 50))


def _zones(ax: Axes, top: float) -> None:
    """Mark 0, 1 and the street between them up to a share of the picture's height."""
    text = "the street, 0 <= y f(x) < 1"
    ax.axvspan(0, 1, ymax=top, color=marks.ink(), alpha=0.07, linewidth=0, zorder=0, label=text)
    ax.axvline(0, ymax=top, color=marks.ink(), linewidth=1.8)
    ax.axvline(1, ymax=top, color=marks.ink(), linewidth=1.0, linestyle="--")
    place: dict[str, Any] = {"transform": ax.get_xaxis_transform(), "va": "top", "weight": "bold"}
    ax.text(-0.06, top, "wrong side", ha="right", **place)
    ax.text(1.06, top, "beyond", ha="left", **place)
