"""Which words and places of sequences a fitted machine goes by."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from maxmargin.kernels import sequence_weights
from maxmargin.plotting import checks, marks

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SHOWN = 60  # sequences in a map, at most
_LETTER: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": 6, "family": "monospace"}


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
    names, weights = zip(*sequence_weights(machine).top(count), strict=True)
    ax = marks.axes_or_new(ax)
    colours = [marks.ORANGE if weight > 0 else marks.BLUE for weight in weights]
    places = np.arange(len(names))
    ax.barh(places, weights, color=colours, height=0.7)
    ax.axvline(0.0, color=marks.INK, linewidth=1.0)
    ax.set_yticks(places, names, family="monospace")
    ax.invert_yaxis()
    ax.set(xlabel=f"weight{_sides(machine)}", title="Words that the machine goes by")
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
    ax = marks.axes_or_new(ax)
    largest = float(np.nanmax(np.abs(values))) or 1.0
    image = ax.imshow(
        values, cmap="RdBu_r", vmin=-largest, vmax=largest, aspect="auto", interpolation="none"
    )
    if width <= 80 and all(len(t) == len(p) for t, p in zip(texts, parts, strict=True)):
        for row, text in enumerate(texts):
            for place, letter in enumerate(text):
                strong = abs(values[row, place]) > 0.6 * largest
                colour = "white" if strong else marks.INK
                ax.text(place, row, letter, color=colour, **_LETTER)
    ax.figure.colorbar(image, ax=ax, label=f"part of f(x){_sides(machine)}")
    ax.set(xlabel="place in the sequence", ylabel="row of X", title="Where the value comes from")
    return ax


def _sides(machine: Any) -> str:
    """Say which class a positive value speaks for."""
    classes: Any = getattr(machine, "classes_", ())
    return f": positive speaks for {classes[1]}" if len(classes) == 2 else ""
