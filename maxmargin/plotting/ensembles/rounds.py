"""Errors against rounds, with the bounds of the theorem, and the weights of rows in the end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from maxmargin.plotting import marks
from maxmargin.plotting.display import Display

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_BOUNDS = {
    "product": r"bound $\prod_t Z_t$",
    "exponential": r"bound $\exp(-2 \sum_t (1/2 - \epsilon_t)^2)$",
    "uniform": r"bound $\exp(-2 \gamma^2 T)$",
}
_COLOURS = "#009e73", "#882255", "#56b4e9", "#d55e00"
_STYLES = "--", "-.", ":"


@dataclass
class RoundsDisplay(Display):
    """The error of a booster after each round, and what the theorem says it is at most.

    Attributes
    ----------
    errors : dict of str to array of shape (n_rounds,)
        Of the training rows and of other data.
    bounds : dict of str to array of shape (n_rounds,)
        ``"product"``, ``"exponential"`` and ``"uniform"``, as far as there are.
    """

    errors: dict[str, np.ndarray]
    bounds: dict[str, np.ndarray]

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        *,
        ax: Axes | None = None,
        others: Mapping[str, tuple[Any, Any]] | None = None,
        bounds: bool = True,
        legend: bool = True,
    ) -> RoundsDisplay:
        """Ask a model for its errors, and draw; parameters as in :func:`plot_rounds`."""
        marks.require_matplotlib()
        check_is_fitted(model)
        if not (hasattr(model, "train_errors_") and hasattr(model, "staged_score")):
            raise TypeError(
                f"plot_rounds draws AdaBoostClassifier and LogitBoostClassifier; got "
                f"{type(model).__name__}."
            )
        errors = {"training": model.train_errors_}
        for name, (X, y) in (others or {}).items():
            errors[name] = 1.0 - np.array(list(model.staged_score(X, y)))
        found = model.bounds()._asdict() if bounds and hasattr(model, "bounds") else {}
        known = {name: found[name] for name in _BOUNDS if found.get(name) is not None}
        return cls(errors, known).plot(ax, legend=legend)

    def _draw(self, ax: Axes) -> None:
        from matplotlib.ticker import PercentFormatter

        rounds = np.arange(1, len(self.errors["training"]) + 1)
        for k, (name, values) in enumerate(self.errors.items()):
            colour = _COLOURS[k % len(_COLOURS)]
            ax.plot(rounds, values, color=colour, linewidth=2, label=f"{name} error")
        for style, (name, values) in zip(_STYLES, self.bounds.items(), strict=False):
            ax.plot(rounds, values, style, color=marks.ink(), linewidth=1.2, label=_BOUNDS[name])
        top = max(np.max(values) for values in [*self.errors.values(), *self.bounds.values()])
        ax.set(xlabel="rounds", ylabel="error", xlim=(1, max(len(rounds), 2)), ylim=(0, 1.05 * top))
        ax.set_title("The error after each round")
        if len(rounds) > 20:
            ax.set_xscale("log")
        ax.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
        ax.legend(fontsize="small", frameon=False)


def plot_rounds(
    model: Any,
    ax: Axes | None = None,
    *,
    others: Mapping[str, tuple[Any, Any]] | None = None,
    bounds: bool = True,
    legend: bool = True,
) -> Axes:
    """Draw the training error of a booster after each round, its bounds, and other errors.

    Parameters
    ----------
    model : fitted AdaBoostClassifier or LogitBoostClassifier
    ax : matplotlib Axes, optional
    legend : bool, default=True
        Whether there is a legend.
    others : mapping of str to (X, y), optional
        Further data by name, such as ``{"test": (X_test, y_test)}``.
    bounds : bool, default=True
        Whether to draw the bounds on the training error, as far as the model has some.

    Returns
    -------
    ax : matplotlib Axes

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from maxmargin import AdaBoostClassifier
    >>> from maxmargin.plotting import plot_rounds
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = AdaBoostClassifier(n_estimators=30).fit(X[:400], y[:400])
    >>> ax = plot_rounds(model, others={"test": (X[400:], y[400:])})
    >>> len(ax.lines)
    5
    """
    return RoundsDisplay.from_estimator(
        model, ax=ax, others=others, bounds=bounds, legend=legend
    ).ax_


@dataclass
class RowWeightsDisplay(Display):
    """How heavy rows are at the end of boosting: some that are marked, and the others.

    Attributes
    ----------
    weights : dict of str to array of shape (n_samples,)
        Of each model, in units of the mean.
    marked : bool array of shape (n_samples,)
    names : pair of str
        Of the rows that are marked, and of the others.
    """

    weights: dict[str, np.ndarray]
    marked: np.ndarray
    names: tuple[str, str] = ("wrong labels", "others")

    @classmethod
    def from_estimators(
        cls,
        models: Mapping[str, Any],
        marked: Any,
        *,
        names: tuple[str, str] = ("wrong labels", "others"),
        ax: Axes | None = None,
        legend: bool = True,
    ) -> RowWeightsDisplay:
        """Take the last distributions of models, and draw; as in :func:`plot_row_weights`."""
        marks.require_matplotlib()
        marked = np.asarray(marked, dtype=bool)
        weights = {}
        for name, model in models.items():
            check_is_fitted(model)
            if not hasattr(model, "D_") or model.D_.shape[1] != len(marked):
                raise ValueError(
                    f"{name} has no weights D_ of {len(marked)} rows: give boosters, and which of "
                    "their training rows are marked."
                )
            weights[str(name)] = model.D_[-1] * len(marked)
        if not marked.any() or marked.all():
            raise ValueError("marked must choose some of the rows, and not all.")
        return cls(weights, marked, names).plot(ax, legend=legend)

    def _draw(self, ax: Axes) -> None:
        from matplotlib.ticker import PercentFormatter

        for k, (name, weight) in enumerate(self.weights.items()):
            share = weight[self.marked].sum() / weight.sum()
            for rows, style, which in (
                (self.marked, "-", self.names[0]),
                (~self.marked, "--", self.names[1]),
            ):
                label = f"{name}: {which}" + f" ({share:.0%} of all weight)" * (style == "-")
                ax.ecdf(
                    weight[rows],
                    complementary=True,
                    color=_COLOURS[k % len(_COLOURS)],
                    linestyle=style,
                    linewidth=1.8,
                    label=label,
                )
        ax.set(
            xlabel="weight of a row, in units of the mean",
            ylabel="share of rows that are heavier",
            ylim=(0, 1.02),
            xlim=(0, None),
            title="How heavy rows are in the end",
        )
        ax.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
        ax.legend(fontsize="small", frameon=False)


def plot_row_weights(
    models: Mapping[str, Any],
    marked: Any,
    ax: Axes | None = None,
    *,
    names: tuple[str, str] = ("wrong labels", "others"),
    legend: bool = True,
) -> Axes:
    """Draw how heavy some training rows, such as those with wrong labels, are for boosters.

    Parameters
    ----------
    models : mapping of str to fitted boosters
        With ``D_``: AdaBoostClassifier, LogitBoostClassifier, LPBoostClassifier.
    marked : bool array-like of shape (n_samples,)
    ax : matplotlib Axes, optional
    legend : bool, default=True
        Whether there is a legend.
    names : pair of str, default=("wrong labels", "others")

    Returns
    -------
    ax : matplotlib Axes

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin import AdaBoostClassifier
    >>> from maxmargin.plotting import plot_row_weights
    >>> X, y = np.arange(12.0)[:, None], np.array([0] * 6 + [1] * 6)
    >>> y[2] = 1
    >>> model = AdaBoostClassifier(n_estimators=5).fit(X, y)
    >>> ax = plot_row_weights({"AdaBoost": model}, np.arange(12) == 2)
    >>> len(ax.lines)
    2
    """
    return RowWeightsDisplay.from_estimators(models, marked, names=names, ax=ax, legend=legend).ax_
