"""Which words and places of sequences a fitted machine goes by."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from maxmargin.kernels import sequence_weights
from maxmargin.plotting import checks, marks

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SHOWN, _LETTERS = 60, 120  # sequences in a map, at most, and places that letters are written in
_LETTER: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": 8, "family": "monospace"}
_CELL = 0.13, 0.21  # inches
_BASES = {"A": "#009e73", "C": marks.BLUE, "G": marks.ORANGE, "T": "#d55e00", "U": "#d55e00"}


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
    machine = checks.last_step(model)
    top = sorted(sequence_weights(machine).top(count), key=lambda word: -word[1])
    names, weights = zip(*top, strict=True)
    ax = marks.axes_or_new(ax)
    colours = [marks.ORANGE if weight > 0 else marks.BLUE for weight in weights]
    places = np.arange(len(names))
    ax.barh(places, weights, color=colours, height=0.7)
    ax.axvline(0.0, color=marks.ink(), linewidth=1.0)
    ax.set_yticks(places, names, family="monospace")
    ax.invert_yaxis()
    ax.set(xlabel=f"weight{_sides(machine)}", title=f"The {len(names)} words that weigh most")
    return ax


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
    from matplotlib.ticker import MaxNLocator

    machine = checks.last_step(model)
    found = sequence_weights(machine)
    parts, texts = found.at(X), found.sequences(X)
    if len(parts) > _SHOWN:
        raise ValueError(
            f"plot_positions draws up to {_SHOWN} sequences, a row each, and X has {len(parts)}: "
            "choose some, such as those with the largest decision_function."
        )
    width = max(map(len, parts))
    values = np.full((len(parts), width), np.nan)
    for row, part in enumerate(parts):
        values[row, : len(part)] = part
    ax = _wide_axes(ax, width, 1.2 + _CELL[1] * len(parts))
    largest = float(np.nanmax(np.abs(values))) or 1.0
    image = ax.imshow(
        values,
        cmap=_two_sided(),
        vmin=-largest,
        vmax=largest,
        aspect="auto",
        interpolation="none",
    )
    if width <= _LETTERS and all(len(t) == len(p) for t, p in zip(texts, parts, strict=True)):
        for row, text in enumerate(texts):
            for place, letter in enumerate(text):
                strong = values[row, place] < -0.6 * largest
                ax.text(place, row, letter, color="white" if strong else marks.INK, **_LETTER)
    ax.figure.colorbar(image, ax=ax, pad=0.02, label="part of f(x)")
    ax.yaxis.set_major_locator(MaxNLocator(integer=True))
    ax.set(xlabel="place in the sequence", ylabel="row of X")
    ax.set_title(f"Where the value comes from{_sides(machine)}")
    return ax


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
    from matplotlib.font_manager import FontProperties
    from matplotlib.patches import PathPatch
    from matplotlib.textpath import TextPath
    from matplotlib.transforms import Affine2D

    machine = checks.last_step(model)
    found = sequence_weights(machine)
    parts, texts = found.at(X), [text.upper() for text in found.sequences(X)]
    if len({*map(len, parts), *map(len, texts)}) != 1:
        raise ValueError(
            "plot_logo draws sequences of one length, place by place: cut windows of one length, "
            "or draw some sequences with plot_positions."
        )
    values, letters = np.array(parts), np.array([list(text) for text in texts])
    ax = _wide_axes(ax, values.shape[1], 3.0)
    font, reach = FontProperties(family="monospace", weight="bold"), [0.0, 0.0]
    for place in range(values.shape[1]):
        sums = {a: values[letters[:, place] == a, place].sum() for a in set(letters[:, place])}
        floor = [0.0, 0.0]
        for letter, total in sorted(sums.items(), key=lambda item: (abs(item[1]), item[0])):
            height, side = total / len(values), int(total > 0)
            outline = TextPath((0, 0), letter, size=1, prop=font)
            box = outline.get_extents()
            if not height or not box.height:
                continue
            fitted = Affine2D().translate(-box.x0, -box.y0)
            fitted = fitted.scale(0.9 / box.width, abs(height) / box.height)
            fitted = fitted.translate(place - 0.45, floor[side] + min(height, 0.0))
            colour = _BASES.get(letter, marks.ink())
            ax.add_patch(PathPatch(fitted.transform_path(outline), color=colour, linewidth=0))
            floor[side] += height
        reach = [min(reach[0], floor[0]), max(reach[1], floor[1])]
    ax.axhline(0.0, color=marks.ink(), linewidth=1.0)
    margin = 0.05 * (reach[1] - reach[0])
    ax.set(xlim=(-0.6, values.shape[1] - 0.4), ylim=(reach[0] - margin, reach[1] + margin))
    ax.set(xlabel="place in the sequence", ylabel=f"mean part of f(x)\n{_sides(machine)[2:]}")
    ax.set_title("Letters that the machine goes by")
    return ax


def _wide_axes(ax: Axes | None, places: int, height: float) -> Axes:
    """Axes on which each place of a sequence has room for a letter."""
    drawn = marks.axes_or_new(ax)
    if ax is None:
        figure: Any = drawn.figure
        figure.set_size_inches(np.clip(2.0 + _CELL[0] * places, 6.4, 16.0), max(height, 2.2))
    return drawn


def _two_sided() -> Any:
    """Blue for the first class, white, orange for the second, as in the other pictures."""
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("sides", [marks.BLUE, "white", marks.ORANGE])


def _sides(machine: Any) -> str:
    """Say which class a positive value speaks for."""
    classes: Any = getattr(machine, "classes_", ())
    return f": below 0 for {classes[0]}, above for {classes[1]}" if len(classes) == 2 else ""
