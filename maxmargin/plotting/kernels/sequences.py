"""Which words and places of sequences a fitted machine goes by."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from maxmargin.kernels import sequence_weights
from maxmargin.plotting import checks, marks
from maxmargin.plotting.display import Display

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SHOWN, _LETTERS = 60, 120  # sequences in a map, at most, and places that letters are written in
_LETTER: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": 8, "family": "monospace"}
_CELL = 0.13, 0.21  # inches
_BASES = {"A": "#009e73", "C": marks.BLUE, "G": marks.ORANGE, "T": "#d55e00", "U": "#d55e00"}


@dataclass
class WordsDisplay(Display):
    """The words with the largest weights in a machine on sequences, the highest weight first.

    Attributes
    ----------
    words : list of str
    weights : float array of shape (n_words,)
    classes : list of str
        Two classes, for which weights below and above zero speak; empty where there are not two.

    Examples
    --------
    >>> from maxmargin import SVC
    >>> from maxmargin.kernels import Spectrum
    >>> from maxmargin.plotting import WordsDisplay
    >>> model = SVC(kernel=Spectrum(2)).fit(["ACAC", "CACA", "GGTT", "TTGG"], [0, 0, 1, 1])
    >>> display = WordsDisplay.from_estimator(model, count=2)
    >>> sorted(display.words), bool((display.weights < 0).all())
    (['AC', 'CA'], True)
    """

    words: list[str]
    weights: np.ndarray
    classes: list[str]

    @classmethod
    def from_estimator(cls, model: Any, *, ax: Axes | None = None, count: int = 20) -> WordsDisplay:
        """Find the words and draw; parameters as in :func:`plot_words`."""
        machine = checks.last_step(model)
        top = sorted(sequence_weights(machine).top(count), key=lambda word: -word[1])
        words, weights = zip(*top, strict=True)
        return cls(list(words), np.array(weights), _classes(machine)).plot(ax)

    def _draw(self, ax: Axes) -> None:
        places = np.arange(len(self.words))
        colours = np.where(self.weights > 0, marks.ORANGE, marks.BLUE)
        ax.barh(places, self.weights, color=colours, height=0.7)
        ax.axvline(0.0, color=marks.ink(), linewidth=1.0)
        ax.set_yticks(places, self.words, family="monospace")
        ax.set_ylim(len(self.words) - 0.5, -0.5)
        title = f"The {len(self.words)} words that weigh most"
        ax.set(xlabel=f"weight{_sides(self.classes)}", title=title)


@dataclass
class PositionsDisplay(Display):
    """Which part of the value of some sequences comes from which place.

    Attributes
    ----------
    values : float array of shape (n_sequences, longest)
        nan where a sequence has ended; a row sums to ``f(x) - b``.
    texts : list of str
        The sequences.
    classes : list of str
        Two classes, for which values below and above zero speak; empty where there are not two.

    Examples
    --------
    >>> from maxmargin import SVC
    >>> from maxmargin.kernels import WeightedDegree
    >>> from maxmargin.plotting import PositionsDisplay
    >>> X = ["ACAC", "CACA", "GGTT", "TTGG"]
    >>> model = SVC(kernel=WeightedDegree(2)).fit(X, [0, 0, 1, 1])
    >>> PositionsDisplay.from_estimator(model, X[:3]).values.shape
    (3, 4)
    """

    values: np.ndarray
    texts: list[str]
    classes: list[str]

    @classmethod
    def from_estimator(cls, model: Any, X: Any, *, ax: Axes | None = None) -> PositionsDisplay:
        """Find the parts and draw; parameters as in :func:`plot_positions`."""
        machine = checks.last_step(model)
        found = sequence_weights(machine)
        parts, texts = found.at(X), found.sequences(X)
        if len(parts) > _SHOWN:
            raise ValueError(
                f"plot_positions draws up to {_SHOWN} sequences, a row each, and X has "
                f"{len(parts)}: choose some, such as those with the largest decision_function."
            )
        values = np.full((len(parts), max(map(len, parts))), np.nan)
        for row, part in enumerate(parts):
            values[row, : len(part)] = part
        return cls(values, list(texts), _classes(machine)).plot(ax)

    def _axes(self, ax: Axes | None) -> Axes:
        return _wide_axes(ax, self.values.shape[1], 1.2 + _CELL[1] * len(self.values))

    def _draw(self, ax: Axes) -> None:
        from matplotlib.ticker import MaxNLocator

        values = self.values
        largest = float(np.nanmax(np.abs(values))) or 1.0
        look: dict[str, Any] = {"cmap": marks.two_sided(), "vmin": -largest, "vmax": largest}
        image = ax.imshow(values, aspect="auto", interpolation="none", **look)
        lengths = np.isfinite(values).sum(axis=1).tolist()
        if values.shape[1] <= _LETTERS and lengths == [len(text) for text in self.texts]:
            for row, text in enumerate(self.texts):
                for place, letter in enumerate(text):
                    strong = values[row, place] < -0.6 * largest
                    ax.text(place, row, letter, color="white" if strong else marks.INK, **_LETTER)
        ax.figure.colorbar(image, ax=ax, pad=0.02, label="part of f(x)")
        ax.yaxis.set_major_locator(MaxNLocator(integer=True))
        ax.set(xlabel="place in the sequence", ylabel="row of X")
        ax.set_title(f"Where the value comes from{_sides(self.classes)}")


@dataclass
class LogoDisplay(Display):
    """Which letters at which places speak for which class, as a sequence logo.

    Attributes
    ----------
    letters : list of str
    heights : float array of shape (n_letters, n_places)
        Mean over the sequences of what a letter brings to ``f(x)`` at a place; zero where it never
        stands.
    classes : list of str
        Two classes, for which values below and above zero speak; empty where there are not two.

    Examples
    --------
    >>> from maxmargin import SVC
    >>> from maxmargin.kernels import WeightedDegree
    >>> from maxmargin.plotting import LogoDisplay
    >>> X = ["ACAC", "ACTA", "GGTT", "GTGG"]
    >>> model = SVC(kernel=WeightedDegree(2)).fit(X, [0, 0, 1, 1])
    >>> display = LogoDisplay.from_estimator(model, X)
    >>> display.letters, display.heights.shape
    (['A', 'C', 'G', 'T'], (4, 4))
    >>> bool(display.heights[0, 0] < 0 < display.heights[2, 0])  # A for class 0, G for class 1
    True
    """

    letters: list[str]
    heights: np.ndarray
    classes: list[str]

    @classmethod
    def from_estimator(cls, model: Any, X: Any, *, ax: Axes | None = None) -> LogoDisplay:
        """Find the heights and draw; parameters as in :func:`plot_logo`."""
        machine = checks.last_step(model)
        found = sequence_weights(machine)
        parts, texts = found.at(X), [text.upper() for text in found.sequences(X)]
        if len({*map(len, parts), *map(len, texts)}) != 1:
            raise ValueError(
                "plot_logo draws sequences of one length, place by place: cut windows of one "
                "length, or draw some sequences with plot_positions."
            )
        values, text = np.array(parts), np.array([list(text) for text in texts])
        letters = np.unique(text).tolist()
        heights = [np.where(text == letter, values, 0.0).mean(axis=0) for letter in letters]
        return cls(letters, np.array(heights), _classes(machine)).plot(ax)

    def _axes(self, ax: Axes | None) -> Axes:
        return _wide_axes(ax, self.heights.shape[1], 3.0)

    def _draw(self, ax: Axes) -> None:
        low, high = (self._draw_side(ax, side) for side in (-1, 1))
        ax.axhline(0.0, color=marks.ink(), linewidth=1.0)
        margin = 0.05 * (high - low)
        ax.set(xlim=(-0.6, self.heights.shape[1] - 0.4), ylim=(low - margin, high + margin))
        ax.set(
            xlabel="place in the sequence", ylabel=f"mean part of f(x)\n{_sides(self.classes)[2:]}"
        )
        ax.set_title("Letters that the machine goes by")

    def _draw_side(self, ax: Axes, side: int) -> float:
        """Stack the letters below or above zero, the highest outside; return how far they reach."""
        from matplotlib.font_manager import FontProperties
        from matplotlib.patches import PathPatch
        from matplotlib.textpath import TextPath
        from matplotlib.transforms import Affine2D

        font = FontProperties(family="monospace", weight="bold")
        reach = np.zeros(self.heights.shape[1])
        order = np.argsort(np.abs(self.heights), axis=0, kind="stable")
        for place, rows in enumerate(order.T):
            for row in rows:
                letter, height = self.letters[row], self.heights[row, place]
                outline = TextPath((0, 0), letter, size=1, prop=font)
                box = outline.get_extents()
                if side * height <= 0 or not box.height:
                    continue
                fitted = Affine2D().translate(-box.x0, -box.y0)
                fitted = fitted.scale(0.9 / box.width, abs(height) / box.height)
                fitted = fitted.translate(place - 0.45, reach[place] + min(height, 0.0))
                colour = _BASES.get(letter, marks.ink())
                ax.add_patch(PathPatch(fitted.transform_path(outline), color=colour, linewidth=0))
                reach[place] += height
        return float(side * np.abs(reach).max())


def plot_words(model: Any, ax: Axes | None = None, *, count: int = 20) -> Axes:
    """Draw the words with the largest weights in a machine on sequences.

    Parameters
    ----------
    model : fitted machine, or Pipeline that ends in one
        As in :func:`maxmargin.kernels.sequence_weights`.
    ax : matplotlib Axes, optional
        Where to draw; by default on a new figure.
    count : int, default=20

    Returns
    -------
    ax : matplotlib Axes

    Examples
    --------
    >>> from maxmargin import SVC
    >>> from maxmargin.kernels import Spectrum
    >>> from maxmargin.plotting import plot_words
    >>> model = SVC(kernel=Spectrum(2)).fit(["ACAC", "CACA", "GGTT", "TTGG"], [0, 0, 1, 1])
    >>> ax = plot_words(model, count=2)
    >>> sorted(text.get_text() for text in ax.get_yticklabels())
    ['AC', 'CA']
    """
    return WordsDisplay.from_estimator(model, ax=ax, count=count).ax_


def plot_positions(model: Any, X: Any, ax: Axes | None = None) -> Axes:
    """Draw which part of the value of some sequences comes from which place.

    A sequence is a row of coloured cells, whose values sum to ``f(x) - b`` (to the part of the
    kernel on sequences, where it is one of several). Up to 60 sequences; with few characters in
    each, these are written into the cells.

    Parameters
    ----------
    model : fitted machine, or Pipeline that ends in one
        As in :func:`maxmargin.kernels.sequence_weights`.
    X : list, array or column of sequences, or a table with one
    ax : matplotlib Axes, optional
        Where to draw; by default on a new figure.

    Returns
    -------
    ax : matplotlib Axes

    Examples
    --------
    >>> from maxmargin import SVC
    >>> from maxmargin.kernels import WeightedDegree
    >>> from maxmargin.plotting import plot_positions
    >>> X = ["ACAC", "CACA", "GGTT", "TTGG"]
    >>> model = SVC(kernel=WeightedDegree(2)).fit(X, [0, 0, 1, 1])
    >>> ax = plot_positions(model, X)
    >>> ax.get_xlabel()
    'place in the sequence'
    """
    return PositionsDisplay.from_estimator(model, X, ax=ax).ax_


def plot_logo(model: Any, X: Any, ax: Axes | None = None) -> Axes:
    """Draw which letters at which places speak for which class, as a sequence logo.

    The height of a letter is the mean over X of what it brings to ``f(x)`` where it stands; letters
    that speak for the second class are above zero, the others below, the weightiest farthest out.

    Parameters
    ----------
    model : fitted machine, or Pipeline that ends in one
        As in :func:`maxmargin.kernels.sequence_weights`; most telling with ``WeightedDegree``.
    X : list, array or column of sequences of one length, or a table with one
    ax : matplotlib Axes, optional
        Where to draw; by default on a new figure.

    Returns
    -------
    ax : matplotlib Axes

    Examples
    --------
    >>> from maxmargin import SVC
    >>> from maxmargin.kernels import WeightedDegree
    >>> from maxmargin.plotting import plot_logo
    >>> X = ["ACAC", "ACTA", "GGTT", "GTGG"]
    >>> model = SVC(kernel=WeightedDegree(2)).fit(X, [0, 0, 1, 1])
    >>> ax = plot_logo(model, X)
    >>> len(ax.patches)  # letters that are somewhere, at a place of their own
    12
    """
    return LogoDisplay.from_estimator(model, X, ax=ax).ax_


def _wide_axes(ax: Axes | None, places: int, height: float) -> Axes:
    """Axes on which each place of a sequence has room for a letter."""
    drawn = marks.axes_or_new(ax)
    if ax is None:
        figure: Any = drawn.figure
        figure.set_size_inches(np.clip(2.0 + _CELL[0] * places, 6.4, 16.0), max(height, 2.2))
    return drawn


def _classes(machine: Any) -> list[str]:
    """Names of two classes; none of a machine for fewer or more."""
    classes = getattr(machine, "classes_", ())
    return [str(name) for name in classes] if len(classes) == 2 else []


def _sides(classes: list[str]) -> str:
    """Say which class a positive value speaks for."""
    return f": below 0 for {classes[0]}, above for {classes[1]}" if classes else ""
