"""Lines of linear classifiers among the points of two classes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_consistent_length

from maxmargin.plotting import checks, marks
from maxmargin.plotting.display import MovingDisplay

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_PADDING = 0.12  # around the data, as a share of their range

_STYLES = ("-", "--", "-.", ":")  # of lines in turn, which may lie on each other


@dataclass
class SeparatorsDisplay(MovingDisplay):
    """Lines of several machines in one picture: which of them, the data do not say.

    A film adds one after the other.

    Attributes
    ----------
    points : float array of shape (n, 2)
    positive : bool array of shape (n,)
    coef : float array of shape (n_lines, 2)
    intercept : float array of shape (n_lines,)
    labels : list of str
        Of the lines.
    names : pair of str
        Of the classes.
    features : pair of str
        Names of the axes.

    Examples
    --------
    >>> from maxmargin import Perceptron
    >>> from maxmargin.plotting import SeparatorsDisplay
    >>> X, y = [[0.0, 2.0], [1.0, 3.0], [2.0, 0.0], [3.0, 1.0]], [0, 0, 1, 1]
    >>> SeparatorsDisplay.from_orders(Perceptron(tol=None), X, y, orders=4).coef.shape
    (4, 2)
    """

    points: np.ndarray
    positive: np.ndarray
    coef: np.ndarray
    intercept: np.ndarray
    labels: list[str]
    names: tuple[str, str] = ("negative", "positive")
    features: tuple[str, str] = ("feature 0", "feature 1")

    @classmethod
    def from_estimators(
        cls, models: Any, X: Any, y: Any, ax: Axes | None = None, *, legend: bool = True
    ) -> SeparatorsDisplay:
        """Draw the lines of fitted linear classifiers for two classes.

        Parameters
        ----------
        models : dict of str to classifier
            With ``coef_`` and ``intercept_``, on two features.
        X : array-like of shape (n_samples, 2)
        y : array-like of shape (n_samples,)
        ax : matplotlib Axes, optional
        legend : bool, default=True
            Whether there is a legend.

        Returns
        -------
        display : SeparatorsDisplay
        """
        if not isinstance(models, Mapping) or not models:
            raise TypeError("Give the machines by their names: {'perceptron': model, ...}.")
        points, positive, names, features = in_the_plane(X, y)
        for name, model in models.items():
            if np.shape(getattr(model, "coef_", ())) not in ((1, 2), (2,)):
                raise ValueError(
                    f"{name} has no line in the plane: fit a linear classifier on two features and "
                    "two classes."
                )
        coef = np.array([np.ravel(model.coef_) for model in models.values()])
        intercept = np.array([float(np.ravel(model.intercept_)[0]) for model in models.values()])
        labels = [str(name) for name in models]
        return cls(points, positive, coef, intercept, labels, names, features).plot(
            ax, legend=legend
        )

    @classmethod
    def from_orders(
        cls,
        model: Any,
        X: Any,
        y: Any,
        ax: Axes | None = None,
        *,
        orders: int = 5,
        legend: bool = True,
    ) -> SeparatorsDisplay:
        """Draw where a perceptron ends when it sees the examples in several orders.

        Parameters
        ----------
        model : Perceptron
            With a random order; it is fitted anew with ``random_state`` 0, 1, ...
        X : array-like of shape (n_samples, 2)
        y : array-like of shape (n_samples,)
        ax : matplotlib Axes, optional
        legend : bool, default=True
            Whether there is a legend.
        orders : int, default=5

        Returns
        -------
        display : SeparatorsDisplay
        """
        each = [clone(model).set_params(random_state=seed).fit(X, y) for seed in range(orders)]
        return cls.from_estimators(
            {f"order {k}": m for k, m in enumerate(each)}, X, y, ax, legend=legend
        )

    def __len__(self) -> int:
        return len(self.coef)

    def _draw_state(self, ax: Axes, state: int) -> None:
        draw_points(ax, self.points, self.positive, self.names, self.features)
        colours = marks.colours(max(len(self.coef), 3) + 2)[2:]  # the first two are the classes'
        seen = slice(state + 1)
        draw_lines(ax, self.coef[seen], self.intercept[seen], colours, self.labels[seen])
        ax.legend(fontsize="small", edgecolor="none", framealpha=0.85)


def plot_separators(
    models: Any, X: Any, y: Any, ax: Axes | None = None, *, legend: bool = True
) -> Axes:
    """Draw the lines of several linear classifiers in one picture.

    The short way to :class:`SeparatorsDisplay`, whose ``from_estimators`` has the parameters.

    Examples
    --------
    >>> from maxmargin import LinearSVC, Perceptron
    >>> from maxmargin.plotting import plot_separators
    >>> X, y = [[0.0, 2.0], [1.0, 3.0], [2.0, 0.0], [3.0, 1.0]], [0, 0, 1, 1]
    >>> models = {"perceptron": Perceptron().fit(X, y), "street": LinearSVC().fit(X, y)}
    >>> len(plot_separators(models, X, y).lines)
    2
    """
    return SeparatorsDisplay.from_estimators(models, X, y, ax, legend=legend).ax_


def in_the_plane(X: Any, y: Any) -> tuple[np.ndarray, np.ndarray, tuple[str, str], tuple[str, str]]:
    """Return points, which of them are positive, names of the two classes and of the features."""
    points = checks.dense(X)
    check_consistent_length(X, y)
    if points.ndim != 2 or points.shape[1] != 2:
        raise ValueError(
            f"Lines are drawn in the plane of two features, and X has shape {points.shape}: choose "
            "two columns, X[:, [0, 1]], or project with PCA(n_components=2).fit_transform(X), and "
            "fit on these."
        )
    classes = np.unique(np.asarray(y))
    if len(classes) != 2:
        raise ValueError(f"A line has two sides, and y has {len(classes)} classes: choose two.")
    names, features = classes.astype(str).tolist(), [checks.column_name(X, k) for k in (0, 1)]
    return points, np.asarray(y) == classes[1], (names[0], names[1]), (features[0], features[1])


def draw_points(
    ax: Axes,
    points: np.ndarray,
    positive: np.ndarray,
    names: tuple[str, str],
    features: tuple[str, str],
    bold: np.ndarray | None = None,
) -> None:
    """Draw both classes; where some points are bold, the others are faint."""
    usual = marks.size(points)
    for own, name, colour, marker in (
        (~positive, names[0], marks.BLUE, "o"),
        (positive, names[1], marks.ORANGE, "s"),
    ):
        look: dict[str, Any] = {"color": colour, "marker": marker, "linewidths": 0, "zorder": 2}
        kinds: list[tuple] = [(own, usual, 1.0, name)]
        if bold is not None:
            kinds = [(own & ~bold, usual, 0.3, None)]
            kinds += [(own & bold, 1.6 * usual, 1.0, f"{name} (bold: used)")]
        for which, size, strength, label in kinds:
            x, y = points[which].T
            ax.scatter(x, y, s=size, alpha=strength, label=label, **look)
    low, high = points.min(axis=0), points.max(axis=0)
    pad = _PADDING * np.where(high > low, high - low, 1.0)
    ax.set(xlim=(low[0] - pad[0], high[0] + pad[0]), ylim=(low[1] - pad[1], high[1] + pad[1]))
    ax.set(xlabel=features[0], ylabel=features[1])


def draw_lines(
    ax: Axes,
    coef: np.ndarray,
    intercept: np.ndarray,
    colours: list,
    labels: Sequence[str | None] = (None,),
) -> None:
    """Draw ``w . x + b = 0`` for each w and b across the picture, where w is not zero."""
    view = np.array([ax.get_xlim(), ax.get_ylim()])
    middle, reach = view.mean(axis=1), np.ptp(view, axis=1).sum()
    for k, (w, b, label) in enumerate(zip(coef, intercept, labels, strict=True)):
        length = np.hypot(*w)
        if length > 0:
            foot = middle - (w @ middle + b) / length**2 * w
            along = reach * np.array([-w[1], w[0]]) / length
            look = {"color": colours[k], "linewidth": 1.8, "label": label}
            look["linestyle"] = _STYLES[k % len(_STYLES)]
            ax.plot(*np.transpose([foot - along, foot + along]), **look)
