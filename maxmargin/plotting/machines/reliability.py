"""Whether probabilities mean what they say: how often what was said to be likely came true."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.stats import norm
from sklearn.utils import check_consistent_length

from maxmargin.plotting import marks
from maxmargin.plotting.display import Display

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COUNTS = 0.16  # of the picture's height, below, for the number of rows in each bin
_BANDS = 4  # curves up to which their bands can be told apart


@dataclass(frozen=True)
class Curve:
    """How often an event came true, by bins of its probability.

    Attributes
    ----------
    name : str
    counts : array of shape (bins,)
        Rows in each bin.
    said, share, low, high : arrays of shape (bins with rows,)
        Mean probability of a bin; how often the event came true; Wilson's interval of that.
    error : float
        Expected calibration error.
    """

    name: str
    counts: np.ndarray
    said: np.ndarray
    share: np.ndarray
    low: np.ndarray
    high: np.ndarray
    error: float

    @classmethod
    def of(cls, name: str, p: np.ndarray, true: np.ndarray, bins: int, confidence: float) -> Curve:
        """Count what was said and what came true, shape (n_samples,) both."""
        edges = np.linspace(0.0, 1.0, bins + 1)
        where = np.clip(np.searchsorted(edges, p, side="right") - 1, 0, bins - 1)
        counts = np.bincount(where, minlength=bins)
        some = counts > 0
        said = np.bincount(where, weights=p, minlength=bins)[some] / counts[some]
        share = np.bincount(where, weights=true, minlength=bins)[some] / counts[some]
        error = float(counts[some] @ np.abs(share - said)) / len(p)
        low, high = wilson(share, counts[some], confidence)
        return cls(name, counts, said, share, low, high, error)


@dataclass
class ReliabilityDisplay(Display):
    """How often events happened against the probabilities that were given to them.

    Attributes
    ----------
    curves : list of Curve
    n_samples : int
    confidence : float
    """

    curves: list[Curve]
    n_samples: int
    confidence: float = 0.95

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        X: Any,
        y: Any,
        *,
        ax: Axes | None = None,
        bins: int = 10,
        each_class: bool = False,
        confidence: float = 0.95,
        classes: Sequence[Any] | None = None,
        legend: bool = True,
    ) -> ReliabilityDisplay:
        """Ask a model, or several by name, and draw; as in :func:`plot_reliability`."""
        if bins < 1 or not 0 < confidence < 1:
            raise ValueError(
                "bins must be at least 1 and confidence in (0, 1), got "
                f"{bins!r} and {confidence!r}."
            )
        given = model if isinstance(model, Mapping) else {"": model}
        if not given:
            raise ValueError(
                "plot_reliability has nothing to draw: the mapping of models is empty."
            )
        y = np.asarray(y)
        curves = []
        for name, one in given.items():
            for said, p, true in _events(_probabilities(one, X, y, classes), y, each_class):
                text = f"{name}, {said}" if name and each_class else name or said
                curves.append(Curve.of(text, p, true, bins, confidence))
        return cls(curves, len(y), confidence).plot(ax, legend=legend)

    @classmethod
    def from_predictions(cls, y: Any, p: Any, **options: Any) -> ReliabilityDisplay:
        """Draw given probabilities, by name where there are several; as in the function."""
        return cls.from_estimator(p, None, y, **options)

    def _draw(self, ax: Axes) -> None:
        curves = self.curves
        ax.plot([0, 1], [0, 1], color=marks.ink(), linewidth=1, linestyle="--", label="calibrated")
        below = ax.inset_axes((0.0, 0.0, 1.0, _COUNTS), zorder=0)
        points = [np.zeros((0, 2))]
        for colour, curve in zip(marks.colours(len(curves)), curves, strict=True):
            said, share, counts = curve.said, curve.share, curve.counts
            look: dict[str, Any] = {"marker": "o", "markersize": 4, "linewidth": 1.8}
            text = f"{curve.name}, ECE {curve.error:.3f}"
            ax.plot(said, share, color=colour, label=text, **look)
            if len(curves) <= _BANDS:
                ax.fill_between(said, curve.low, curve.high, color=colour, alpha=0.15, linewidth=0)
            points.append(np.column_stack([said, share]))
            points.append(np.column_stack([said, _COUNTS * counts[counts > 0] / counts.max()]))
            edges = np.linspace(0.0, 1.0, len(counts) + 1)
            below.stairs(counts, edges, color=colour, fill=len(curves) == 1, alpha=0.6)
        largest = max(int(curve.counts.max()) for curve in curves)
        below.set(xlim=(-0.02, 1.02), ylim=(0, 1.05 * largest), yscale="linear")
        blank = {"facecolor": marks.ground(), "edgecolor": "none", "alpha": 0.8, "pad": 0.5}
        told = f"rows in a bin, up to {largest}"
        # in the middle, where the curves are far above
        below.text(0.5, largest, told, ha="center", va="top", fontsize="x-small", bbox=blank)
        below.axis("off")
        bands = f", {self.confidence:.0%} bands" * (len(curves) <= _BANDS)
        ax.set(
            xlim=(-0.02, 1.02),
            ylim=(-0.02, 1.02),
            xlabel="probability, mean of a bin",
            ylabel="share of its rows that are of the class",
            title=f"{self.n_samples} rows{bands}",
        )
        marks.legend(ax, np.concatenate(points))


def plot_reliability(
    model: Any,
    X: Any,
    y: Any,
    ax: Axes | None = None,
    *,
    bins: int = 10,
    each_class: bool = False,
    confidence: float = 0.95,
    classes: Sequence[Any] | None = None,
    legend: bool = True,
) -> Axes:
    """Draw how often an event happened against the probability that was given to it.

    Rows are put into bins of equal width by their probability p. Each bin with rows has a point:
    the mean of p, and the share of rows for which the event came true, with Wilson's confidence
    interval as a band (of up to four curves). Calibrated probabilities are on the diagonal. Below
    are the numbers of rows. The legend has the expected calibration error,

        ECE = sum_b n_b / n |share_b - mean p_b|

    The event is the second of two classes; of several, that the most probable class is the true
    one. New rows, please: on those of the fit any machine looks good.

    Parameters
    ----------
    model : fitted classifier with predict_proba, array of probabilities, or mapping of either
        Probabilities are of shape (n_samples, n_classes), or (n_samples,) for the second of two
        classes. With a mapping, each name is a curve.
    X : array-like of shape (n_samples, n_features), or None
        Points; of given probabilities not needed.
    y : array-like of shape (n_samples,)
        Their classes.
    ax : matplotlib Axes, optional
        Where to draw; by default on a new figure.
    legend : bool, default=True
        Whether there is a legend.
    bins : int, default=10
    each_class : bool, default=False
        Draw a curve for every class, that it is the true one.
    confidence : float, default=0.95
        Of the band.
    classes : sequence, optional
        Classes of the columns of given probabilities; by default those of y, in order.

    Returns
    -------
    ax : matplotlib Axes

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from maxmargin import SVC
    >>> from maxmargin.plotting import plot_reliability
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = SVC(probability="temperature", random_state=0).fit(X[::2], y[::2])
    >>> ax = plot_reliability(model, X[1::2], y[1::2])
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['calibrated', 'P(class 1), ECE 0.0...']
    """
    return ReliabilityDisplay.from_estimator(
        model,
        X,
        y,
        ax=ax,
        bins=bins,
        each_class=each_class,
        confidence=confidence,
        classes=classes,
        legend=legend,
    ).ax_


def wilson(share: np.ndarray, count: np.ndarray, confidence: float) -> tuple:
    """Wilson's interval for a probability, from the share of so many cases in which it came true.

    Examples
    --------
    >>> import numpy as np
    >>> low, high = wilson(np.array([0.0, 0.5]), np.array([10, 10]), 0.95)
    >>> low.round(3), high.round(3)
    (array([0.   , 0.237]), array([0.278, 0.763]))
    """
    z = norm.ppf(0.5 + 0.5 * confidence)
    middle = (share + z**2 / (2 * count)) / (1 + z**2 / count)
    half = z / (1 + z**2 / count) * np.sqrt(share * (1 - share) / count + (z / (2 * count)) ** 2)
    return np.maximum(middle - half, 0.0), np.minimum(middle + half, 1.0)


def _probabilities(
    model: Any, X: Any, y: np.ndarray, classes: Any
) -> tuple[np.ndarray, np.ndarray]:
    """Return probabilities (n, classes) and the classes of their columns."""
    if hasattr(model, "predict_proba"):
        p, classes = np.asarray(model.predict_proba(X)), np.asarray(model.classes_)
    elif hasattr(model, "predict"):
        raise ValueError(
            f"plot_reliability needs probabilities, and {type(model).__name__} has no "
            "predict_proba: SVC(probability=...), or CalibratedClassifierCV around it."
        )
    else:
        p = np.asarray(model, dtype=np.float64)
        p = np.column_stack([1 - p, p]) if p.ndim == 1 else p
        classes = np.unique(y) if classes is None else np.asarray(classes)
    check_consistent_length(p, y)
    if p.ndim != 2 or p.shape[1] != len(classes) or len(classes) < 2:
        raise ValueError(
            f"Probabilities of shape {p.shape} do not have a column for each of the classes "
            f"{list(classes)}: say with classes= which ones they are of."
        )
    if not ((p >= 0) & (p <= 1)).all():
        raise ValueError("Probabilities are between 0 and 1; these are not.")
    unknown = np.setdiff1d(y, classes)
    if len(unknown):
        raise ValueError(f"y has classes without a probability: {list(unknown)}.")
    return p, classes


def _events(
    known: tuple[np.ndarray, np.ndarray], y: np.ndarray, each_class: bool
) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Yield what may come true: a name, its probability for every row, and whether it did."""
    p, classes = known
    if each_class or len(classes) == 2:
        for k in range(len(classes)) if each_class else [1]:
            yield f"P(class {classes[k]})", p[:, k], y == classes[k]
    else:
        yield "most probable class", p.max(axis=1), classes[p.argmax(axis=1)] == y
