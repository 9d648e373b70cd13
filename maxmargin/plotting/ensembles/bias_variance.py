"""Bias and variance point by point: over one feature, or in the order of the errors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils import check_consistent_length

from maxmargin.ensemble import SquaredDecomposition, ZeroOneDecomposition
from maxmargin.plotting import marks
from maxmargin.plotting.display import Display

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_BAND = 1.0  # standard deviations, to either side


@dataclass
class BiasVarianceDisplay(Display):
    """Bias and variance of each point.

    Attributes
    ----------
    decomposition : SquaredDecomposition or ZeroOneDecomposition
    x : array of shape (n_samples,) or None
        The feature that points are drawn over; without it, they are in the order of their errors.
    name : str
        Of the feature.
    """

    decomposition: Any
    x: np.ndarray | None = None
    name: str = "x"

    @classmethod
    def from_decomposition(
        cls,
        decomposition: Any,
        X: Any = None,
        *,
        feature: Any = None,
        ax: Axes | None = None,
        legend: bool = True,
    ) -> BiasVarianceDisplay:
        """Take the feature out of X, and draw; as in :func:`plot_bias_variance`."""
        if not isinstance(decomposition, SquaredDecomposition | ZeroOneDecomposition):
            raise TypeError(
                "plot_bias_variance draws what maxmargin.bias_variance returns, got "
                f"{type(decomposition).__name__}."
            )
        if X is None:
            return cls(decomposition).plot(ax, legend=legend)
        if isinstance(decomposition, ZeroOneDecomposition):
            raise ValueError(
                "Classes have no mean prediction to draw over a feature: leave X out, for points "
                "in the order of their errors."
            )
        x, name = _feature(X, feature)
        check_consistent_length(x, decomposition.y)
        return cls(decomposition, x, name).plot(ax, legend=legend)

    def _draw(self, ax: Axes) -> None:
        if self.x is not None:
            self._draw_over_x(ax, self.x)
        elif isinstance(self.decomposition, SquaredDecomposition):
            self._draw_squares(ax)
        else:
            self._draw_shares(ax)

    def _title(self) -> str:
        found, total = self.decomposition, self.decomposition.totals
        first = "squared_bias" if "squared_bias" in total else "bias"
        second = "variance" if "squared_bias" in total else "net_variance"
        said = [f"{n.replace('_', ' ')} {total[n].value:.3g}" for n in (first, second)]
        return f"{found.name}: {', '.join(said)}"

    def _draw_over_x(self, ax: Axes, x: np.ndarray) -> None:
        """The data, the mean prediction, and a band of a standard deviation about it."""
        found = self.decomposition
        order = np.argsort(x, kind="stable")
        order = order[found.known[order]]
        at, mean = x[order], found.mean[order]
        half = _BAND * np.sqrt(found.variance[order])
        points = np.column_stack([x, found.y])
        marks.scatter(ax, points, points, marks.ink(), label="data")
        ax.plot(at, mean, color=marks.BLUE, linewidth=1.8, label="mean prediction", zorder=3)
        band: dict[str, Any] = {"color": marks.ORANGE, "alpha": 0.4, "linewidth": 0}
        ax.fill_between(at, mean - half, mean + half, label="+- its deviation", **band)
        ax.set(xlabel=self.name, ylabel="y", title=self._title())
        marks.legend(ax, points)

    def _draw_squares(self, ax: Axes) -> None:
        """Squared bias and variance on top of each other, in the order of the errors."""
        found = self.decomposition
        known = np.flatnonzero(found.known)
        order = known[np.argsort(found.error[known], kind="stable")]
        bias = found.bias[order] ** 2
        rest = found.error[order] - bias
        share = (np.arange(len(order)) + 0.5) / len(order)
        texts = "squared bias, with noise", "variance"
        ax.stackplot(share, bias, rest, colors=[marks.BLUE, marks.ORANGE], labels=texts)
        ax.set(
            xlim=(0, 1),
            xlabel="points, by their error",
            ylabel="mean squared error of a point",
            title=self._title(),
        )
        marks.legend(ax, np.column_stack([share, bias + rest]))

    def _draw_shares(self, ax: Axes) -> None:
        """Share of wrong predictions of each point, in their order, by whether it is biased."""
        found = self.decomposition
        known = np.flatnonzero(found.known)
        order = known[np.argsort(found.error[known], kind="stable")]
        error, biased = found.error[order], found.bias[order] == 1
        place = (np.arange(len(order)) + 0.5) / len(order)
        parts = ((~biased, marks.BLUE, "unbiased"), (biased, marks.ORANGE, "biased"))
        for which, colour, text in parts:
            label = f"{text}: {which.mean():.1%} of the points"
            ax.fill_between(
                place, np.where(which, error, 0.0), color=colour, label=label, step="mid"
            )
        ax.set(
            xlim=(0, 1),
            ylim=(0, 1.02),
            xlabel="points, by their error",
            ylabel="share of a point's predictions that are wrong",
            title=self._title(),
        )
        marks.legend(ax, np.column_stack([place, error]))


def plot_bias_variance(
    decomposition: Any,
    X: Any = None,
    ax: Axes | None = None,
    *,
    feature: Any = None,
    legend: bool = True,
) -> Axes:
    """Draw bias and variance of each point, over one feature or in the order of the errors.

    With X: the data over a feature, the mean of the predictions of each point by replicates without
    it, and a band of one standard deviation about that. Where the line is off the data there is
    bias, where the band is wide there is variance. Without X: the error of each point, the smallest
    first, and how much of it is squared bias and how much variance; of classes, the share of wrong
    predictions of each point, and whether most of them are (bias).

    Parameters
    ----------
    decomposition : what :func:`maxmargin.bias_variance` returns
    X : array-like of shape (n_samples, n_features), optional
        The points, for a regressor.
    ax : matplotlib Axes, optional
        Where to draw; by default on a new figure.
    legend : bool, default=True
        Whether there is a legend.
    feature : int or str, optional
        Which feature; not needed where there is one.

    Returns
    -------
    ax : matplotlib Axes

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin import DecisionTreeRegressor, bias_variance
    >>> from maxmargin.plotting import plot_bias_variance
    >>> x = np.linspace(0, 6, 80)[:, None]
    >>> y = np.sin(x[:, 0]) + 0.2 * np.random.default_rng(0).normal(size=80)
    >>> found = bias_variance(DecisionTreeRegressor(), x, y, 50, random_state=0)
    >>> ax = plot_bias_variance(found, x)
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['data', 'mean prediction', '+- its deviation']
    """
    return BiasVarianceDisplay.from_decomposition(
        decomposition, X, feature=feature, ax=ax, legend=legend
    ).ax_


def _feature(X: Any, feature: Any) -> tuple[np.ndarray, str]:
    """One column of a table, and its name."""
    names = [str(name) for name in X.columns] if hasattr(X, "columns") else None
    table = np.asarray(X, dtype=np.float64)
    table = table[:, None] if table.ndim == 1 else table
    if feature is None:
        if table.shape[1] != 1:
            raise ValueError(
                f"X has {table.shape[1]} features: say with feature= which one to draw over, or "
                "leave X out."
            )
        feature = 0
    if isinstance(feature, str):
        if names is None or feature not in names:
            raise ValueError(f"X has no feature named {feature!r}.")
        feature = names.index(feature)
    if not 0 <= feature < table.shape[1]:
        raise ValueError(f"feature={feature} is not one of the {table.shape[1]} features of X.")
    return table[:, feature], names[feature] if names else f"x{feature}"
