"""The score of a search over its parameters: a map or points of two, or a curve of one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from maxmargin.plotting import marks
from maxmargin.plotting.display import Display

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_FEW = 100  # fields of a map that have room for their numbers
_SPARSE = 2  # fields for each candidate from which on a map would be mostly blank
_LONG, _ABREAST = 32, 60  # letters of a label, and of all labels of an axis side by side
_FENCE = 3.0  # times the distance of the quartiles: what is further below is far from the others
_FAR_BELOW = "#c8c8c8"
_ABSENT = "not set"  # a parameter that is not in all grids of a list
_RING: dict[str, Any] = {
    "marker": "o",
    "markersize": 14,
    "markerfacecolor": "none",
    "markeredgecolor": marks.INK,
    "markeredgewidth": 2,
}


@dataclass(frozen=True)
class Scale:
    """The values of a parameter along an axis: numbers in their order, or whatever they are.

    ``place`` is that of each candidate among the different ``labels``; ``numbers`` are the values
    of these, if all are numbers.
    """

    name: str
    labels: list[str]
    place: np.ndarray
    numbers: np.ndarray | None

    @classmethod
    def of(cls, name: str, values: Any) -> Scale:
        """Put the candidates' values of a parameter in order."""
        values = [_ABSENT if value is np.ma.masked else value for value in values]
        if all(_is_number(value) for value in values):
            numbers, place = np.unique(np.array(values, dtype=np.float64), return_inverse=True)
            return cls(name, [f"{number:.4g}" for number in numbers], place, numbers)
        labels = [_label(value) for value in values]
        different = list(dict.fromkeys(labels))
        return cls(name, different, np.array([different.index(label) for label in labels]), None)


@dataclass
class SearchDisplay(Display):
    """The mean test score of a search over its one or two parameters.

    Attributes
    ----------
    axes : list of Scale
        One or two parameters, and where each candidate lies among their values.
    scores, spread : arrays of shape (n_candidates,)
        Mean test score, and its standard deviation over the splits.
    best : int
        Which candidate has the best score.
    metric : str
    """

    axes: list[Scale]
    scores: np.ndarray
    spread: np.ndarray
    best: int
    metric: str = "score"

    @classmethod
    def from_search(
        cls, search: Any, *, ax: Axes | None = None, metric: str | None = None
    ) -> SearchDisplay:
        """Read the results of a fitted search and draw; parameters as in :func:`plot_search`."""
        if not hasattr(search, "cv_results_"):
            check_is_fitted(search)
        metric = _metric(search, metric)
        results, best = _last_round(search.cv_results_, f"mean_test_{metric}")
        axes = [Scale.of(name, results[f"param_{name}"]) for name in _varying(results)]
        scores, spread = (results[f"{kind}_test_{metric}"] for kind in ("mean", "std"))
        return cls(axes, scores, spread, best, metric).plot(ax)

    def _draw(self, ax: Axes) -> None:
        axes, scores, best = self.axes, self.scores, self.best
        said = f"mean test {self.metric}"
        if len(axes) == 1:
            _curve(ax, axes[0], scores, self.spread, best)
            ax.set(xlabel=axes[0].name, ylabel=said)
        else:
            draw = _points if _is_scattered(axes) else _map
            draw(ax, axes, scores, best, said)
            ax.set(xlabel=axes[0].name, ylabel=axes[1].name)
        chosen = ", ".join(f"{axis.name} = {axis.labels[axis.place[best]]}" for axis in axes)
        ax.set_title(f"{chosen}: {scores[best]:.4g}")


def plot_search(search: Any, ax: Axes | None = None, *, metric: str | None = None) -> Axes:
    """Draw the mean test score of a search over its one or two parameters.

    For two parameters, such as C and gamma, a map, or points where they were drawn at random; for
    one, a curve with the scores' standard deviation over the splits. The best candidate is marked.
    Of a search by halving, each candidate's last round is drawn. Candidates that failed or were
    dropped are left blank. A score far below the others is grey, with its number: the colours are
    for the others. Values that are not all numbers, such as kernels or ``"scale"``, stand side by
    side in the order of the grid.

    Parameters
    ----------
    search : a search of maxmargin or scikit-learn
        Fitted, one or two of whose parameters vary.
    ax : matplotlib Axes, optional
        Where to draw; by default on a new figure.
    metric : str, optional
        Which score to draw, if there are several; by default the one that ``refit`` names.

    Returns
    -------
    ax : matplotlib Axes

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from maxmargin import SVCSearchCV
    >>> from maxmargin.plotting import plot_search
    >>> X, y = load_iris(return_X_y=True)
    >>> search = SVCSearchCV({"C": [0.1, 1, 10], "gamma": [0.01, 0.1, 1]}).fit(X, y)
    >>> ax = plot_search(search)
    >>> ax.get_title()
    'C = 1, gamma = 0.1: 0.98'
    """
    return SearchDisplay.from_search(search, ax=ax, metric=metric).ax_


def _last_round(results: dict, name: str) -> tuple[dict, int]:
    """Return the last score of each candidate, and which is the best of the last round."""
    scores = results[name]
    if np.isnan(scores).all():
        raise ValueError("plot_search has nothing to draw: every score is nan.")
    if "iter" not in results:
        return results, int(np.nanargmax(scores))
    last = {repr(params): k for k, params in enumerate(results["params"])}
    kept = np.array(sorted(last.values()))
    results = {key: np.ma.asarray(values)[kept] for key, values in results.items()}
    scores = np.where(results["iter"] == results["iter"].max(), results[name], -np.inf)
    return results, int(np.nanargmax(scores))


def _label(value: Any) -> str:
    text = f"{value:.4g}" if _is_number(value) else str(getattr(value, "__name__", value))
    return text if len(text) <= _LONG else text[: _LONG - 3] + "..."


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


def _varying(results: dict) -> list[str]:
    """Return the names of the parameters that vary, one or two, or say why there is no picture."""
    names = [key.removeprefix("param_") for key in results if key.startswith("param_")]
    varying = [name for name in names if len({repr(v) for v in results[f"param_{name}"]}) > 1]
    names = varying or names[:1]
    if not 1 <= len(names) <= 2:
        raise ValueError(
            "plot_search draws a search in which one or two parameters vary, and in this one it is "
            f"{names}. pandas.DataFrame(search.cv_results_) shows any search as a table."
        )
    return names


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _curve(ax: Axes, axis: Scale, scores: np.ndarray, spread: np.ndarray, best: int) -> None:
    order = np.argsort(axis.place, kind="stable")
    x = axis.place if axis.numbers is None else axis.numbers[axis.place]
    x, y, width = x[order], scores[order], spread[order]
    if axis.numbers is None:
        ax.errorbar(x, y, width, color=marks.BLUE, marker="o", markersize=5, linestyle="none")
        ax.set_xticks(range(len(axis.labels)), axis.labels, **_slanted(axis))
        ax.set_xlim(-0.5, len(axis.labels) - 0.5)
    else:
        ax.fill_between(x, y - width, y + width, color=marks.BLUE, alpha=0.15, linewidth=0)
        ax.plot(x, y, color=marks.BLUE, marker="o", markersize=4)
        if _is_logarithmic(x):
            ax.set_xscale("log")
    ax.plot(x[order == best], y[order == best], **_RING)


def _map(ax: Axes, axes: Sequence[Scale], scores: np.ndarray, best: int, label: str) -> None:
    """Draw fields of equal size, however far apart the values are, the best one framed."""
    import matplotlib as mpl
    from matplotlib.patches import Rectangle

    across, down = axes
    field = np.full((len(down.labels), len(across.labels)), np.nan)
    field[down.place, across.place] = scores
    low, high = _fence(field), float(np.nanmax(field))
    colours = mpl.colormaps["viridis"].with_extremes(under=_FAR_BELOW)
    image = ax.imshow(field, origin="lower", aspect="auto", cmap=colours, vmin=low, vmax=high)
    ax.set_xticks(range(len(across.labels)), across.labels, **_slanted(across))
    ax.set_yticks(range(len(down.labels)), down.labels)
    extend = "min" if np.nanmin(field) < low else "neither"
    ax.figure.colorbar(image, ax=ax, label=label, extend=extend)
    if field.size <= _FEW:
        for (row, column), score in np.ndenumerate(field):
            if not np.isnan(score):
                dark = low <= score < 0.5 * (low + high)
                look: dict[str, Any] = {"color": "white" if dark else marks.INK, "size": "small"}
                ax.text(column, row, f"{score:.3g}", ha="center", va="center", **look)
    corner = across.place[best] - 0.5, down.place[best] - 0.5
    ax.add_patch(Rectangle(corner, 1, 1, fill=False, edgecolor=marks.INK, linewidth=2.5, zorder=5))


def _is_scattered(axes: Sequence[Scale]) -> bool:
    """Whether two parameters have numbers as values, and few of all their combinations."""
    across, down = axes
    fields = len(across.labels) * len(down.labels)
    numbers = across.numbers is not None and down.numbers is not None
    return numbers and fields > _SPARSE * len(across.place)


def _points(ax: Axes, axes: Sequence[Scale], scores: np.ndarray, best: int, label: str) -> None:
    """Draw a point for each candidate, the best one ringed."""
    places = []
    for axis, name in zip(axes, "xy", strict=True):
        assert axis.numbers is not None
        places.append(axis.numbers[axis.place])
        if _is_logarithmic(axis.numbers):
            ax.set(**{f"{name}scale": "log"})
    low, scored = _fence(scores[~np.isnan(scores)]), ~np.isnan(scores)
    x, y = (place[scored] for place in places)
    drawn = ax.scatter(x, y, c=scores[scored], cmap="viridis", vmin=low, s=60, zorder=3)
    ax.figure.colorbar(drawn, ax=ax, label=label)
    ax.plot(places[0][best], places[1][best], **_RING, zorder=4)


def _fence(field: np.ndarray) -> float:
    """Return the lowest score that has a colour: the least one above Tukey's fence.

    One score of -101 among others near 0.9 would make all of those look the same.
    """
    lower, upper = np.nanquantile(field, [0.25, 0.75])
    return float(field[field >= lower - _FENCE * (upper - lower)].min())


def _slanted(axis: Scale) -> dict[str, Any]:
    """Turn the labels where they would run into each other."""
    crowded = sum(map(len, axis.labels)) > _ABREAST
    return {"rotation": 30, "ha": "right"} if crowded else {}


def _is_logarithmic(x: np.ndarray) -> bool:
    """Whether values are spread over more than a factor of ten and all positive."""
    return bool(x.min() > 0 and x.max() >= 10 * x.min())
