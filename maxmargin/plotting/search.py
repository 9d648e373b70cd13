"""The score of a search over its grid: a map of two parameters, or a curve of one."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from maxmargin.plotting import marks

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_FEW = 100  # fields of a map that have room for their numbers
_RING: dict[str, Any] = {
    "marker": "o",
    "markersize": 14,
    "markerfacecolor": "none",
    "markeredgecolor": marks.INK,
    "markeredgewidth": 2,
}


def plot_search(search: Any, ax: Axes | None = None, *, metric: str | None = None) -> Axes:
    """Draw the mean test score of a grid search over its one or two parameters.

    For two parameters, such as C and gamma, a map; for one, a curve with the scores' standard
    deviation over the splits. The best candidate is marked. Candidates that failed or were dropped
    are left blank.

    Parameters
    ----------
    search : SVCSearchCV, SVRSearchCV or scikit-learn's GridSearchCV
        Fitted, over a grid of one or two numeric parameters.
    ax : matplotlib Axes, optional
        Where to draw; by default on a new figure.
    metric : str, optional
        Which score to draw, if there are several; by default the one that ``refit`` names.

    Returns
    -------
    ax : matplotlib Axes

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import matplotlib.pyplot as plt
    >>> from sklearn.datasets import load_iris
    >>> from maxmargin import SVCSearchCV
    >>> from maxmargin.plotting import plot_search
    >>> X, y = load_iris(return_X_y=True)
    >>> search = SVCSearchCV({"C": [0.1, 1, 10], "gamma": [0.01, 0.1, 1]}).fit(X, y)
    >>> ax = plot_search(search)
    >>> ax.get_title()
    'C = 1, gamma = 0.1: 0.98'
    >>> plt.close(ax.figure)
    """
    check_is_fitted(search)
    metric = _metric(search, metric)
    results = search.cv_results_
    names = _numeric_parameters(results)
    scores = results[f"mean_test_{metric}"]
    if np.isnan(scores).all():
        raise ValueError("plot_search has nothing to draw: every score is nan.")
    best = int(np.nanargmax(scores))
    values = [results[f"param_{name}"].astype(np.float64) for name in names]
    ax = marks.axes_or_new(ax)
    if len(names) == 1:
        _curve(ax, values[0], scores, results[f"std_test_{metric}"], best)
        ax.set(xlabel=names[0], ylabel=_written(metric))
    else:
        _map(ax, values, scores, best, _written(metric))
        ax.set(xlabel=names[0], ylabel=names[1])
    chosen = ", ".join(f"{n} = {v[best]:.4g}" for n, v in zip(names, values, strict=True))
    ax.set_title(f"{chosen}: {scores[best]:.4g}")
    return ax


def _metric(search: Any, metric: str | None) -> str:
    """Return the name by which the results know the score."""
    if not search.multimetric_:
        return "score"
    if metric is None and isinstance(search.refit, str):
        return search.refit
    known = sorted(search.scorer_) if isinstance(search.scorer_, dict) else []
    if metric is None or (known and metric not in known):
        raise ValueError(
            f"This search has several scores, {known}: say which to draw, metric={metric!r} does "
            "not."
        )
    return metric


def _numeric_parameters(results: dict) -> list[str]:
    """Return the names of the parameters that vary, one or two, or say why there is no picture."""
    names = [key.removeprefix("param_") for key in results if key.startswith("param_")]
    varying = [name for name in names if len({repr(v) for v in results[f"param_{name}"]}) > 1]
    names = varying or names
    wrong = [
        name
        for name in names
        if np.ma.getmaskarray(results[f"param_{name}"]).any()
        or not all(_is_number(value) for value in results[f"param_{name}"])
    ]
    if wrong or not 1 <= len(names) <= 2:
        raise ValueError(
            "plot_search draws a search over one or two numeric parameters, and this one is over "
            f"{names}{f', of which {wrong} are not numbers throughout' if wrong else ''}. "
            "pandas.DataFrame(search.cv_results_) shows any search as a table."
        )
    return names


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _written(metric: str) -> str:
    return f"mean test {'score' if metric == 'score' else metric}"


def _curve(ax: Axes, x: np.ndarray, scores: np.ndarray, spread: np.ndarray, best: int) -> None:
    order = np.argsort(x)
    x, y, width = np.asarray(x)[order], scores[order], spread[order]
    ax.fill_between(x, y - width, y + width, color=marks.BLUE, alpha=0.15, linewidth=0)
    ax.plot(x, y, color=marks.BLUE, marker="o", markersize=4)
    ax.plot(x[order == best], y[order == best], **_RING)
    if _is_logarithmic(x):
        ax.set_xscale("log")


def _map(ax: Axes, values: Sequence[Any], scores: np.ndarray, best: int, label: str) -> None:
    """Draw fields of equal size, however far apart the values are, the best one framed."""
    from matplotlib.patches import Rectangle

    across, down = (np.unique(np.asarray(v)) for v in values)
    columns = np.searchsorted(across, values[0])
    rows = np.searchsorted(down, values[1])
    field = np.full((len(down), len(across)), np.nan)
    field[rows, columns] = scores
    image = ax.imshow(field, origin="lower", aspect="auto", cmap="viridis")
    ax.set_xticks(range(len(across)), [f"{value:.4g}" for value in across])
    ax.set_yticks(range(len(down)), [f"{value:.4g}" for value in down])
    ax.figure.colorbar(image, ax=ax, label=label)
    if field.size <= _FEW:
        middle = 0.5 * (np.nanmin(field) + np.nanmax(field))
        for (row, column), score in np.ndenumerate(field):
            if not np.isnan(score):
                colour = "white" if score < middle else marks.INK
                ax.text(
                    column,
                    row,
                    f"{score:.3g}",
                    ha="center",
                    va="center",
                    color=colour,
                    size="small",
                )
    corner = columns[best] - 0.5, rows[best] - 0.5
    ax.add_patch(Rectangle(corner, 1, 1, fill=False, edgecolor=marks.INK, linewidth=2.5, zorder=5))


def _is_logarithmic(x: np.ndarray) -> bool:
    """Whether values are spread over more than a factor of ten and all positive."""
    return bool(x.min() > 0 and x.max() >= 10 * x.min())
