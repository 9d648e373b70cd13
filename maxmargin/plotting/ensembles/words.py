"""The words that boosting has found, and what each says of every label."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np

from maxmargin.plotting import checks, marks
from maxmargin.plotting.display import PanelDisplay

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LABELS = 12  # shown where no others are asked for
_WRITTEN = 12  # labels up to which the values are written into their cells
_CELL = 0.42, 0.24  # inches
_SIDES = "where the word is", "where it is not"


@dataclass
class BoostedWordsDisplay(PanelDisplay):
    """Rounds of boosting over words, a row each: what the word says of each label.

    At the left what is added to a label's value where the word is, at the right where it is not;
    above zero speaks for a label, below against it.

    Attributes
    ----------
    rounds : int array of shape (n_rounds,)
        Their numbers, from 1 on.
    words : list of str
    labels : list of str
    present, absent : float arrays of shape (n_rounds, n_labels)
    Z : float array of shape (n_rounds,)
    title : str

    Examples
    --------
    >>> from maxmargin import WordStumpBooster
    >>> from maxmargin.plotting import BoostedWordsDisplay
    >>> documents = ["corn and wheat", "wheat prices", "oil prices", "crude oil", "oil for corn"]
    >>> y = [["grain"], ["grain"], ["energy"], ["energy"], ["energy", "grain"]]
    >>> model = WordStumpBooster(10).fit(documents, y)
    >>> display = BoostedWordsDisplay.from_estimator(model, rounds=3)
    >>> display.words[0], display.labels, display.present.shape
    ('oil', ['energy', 'grain'], (3, 2))
    """

    rounds: np.ndarray
    words: list[str]
    labels: list[str]
    present: np.ndarray
    absent: np.ndarray
    Z: np.ndarray
    title: str = ""

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        ax: Any = None,
        *,
        rounds: int | Sequence[int] = 15,
        labels: Sequence[Any] | None = None,
    ) -> BoostedWordsDisplay:
        """Take the words of a fitted model and draw; as :func:`plot_boosted_words`."""
        table = getattr(checks.last_step(model), "words_", None)
        if table is None:
            raise ValueError(
                "plot_boosted_words draws what a WordStumpBooster has found, and "
                f"{type(checks.last_step(model)).__name__} has no words_."
            )
        if not len(table):
            raise ValueError("No round was made: no word says anything of the labels.")
        first = isinstance(rounds, Integral)
        numbers = np.arange(1, len(table) + 1)[:rounds] if first else np.asarray(rounds, dtype=int)
        if not len(numbers) or numbers.min() < 1 or numbers.max() > len(table):
            raise ValueError(f"rounds are numbers from 1 to {len(table)}, got {rounds!r}.")
        known, at = table.labels.tolist(), numbers - 1
        if labels is None:
            change = np.abs(table.present[at] - table.absent[at]).max(axis=0)
            shown = np.sort(np.argsort(-change, kind="stable")[:_LABELS])
        else:
            strange = [label for label in labels if label not in known]
            if strange or not len(labels):
                raise ValueError(f"labels are some of {known}, got {list(labels)}.")
            shown = np.array([known.index(label) for label in labels])
        left_out = len(known) - len(shown) if labels is None else 0
        title = f"{len(shown)} of {len(known)} labels" if left_out else ""
        return cls(
            numbers,
            [str(table.words[k]) for k in at],
            [str(known[k]) for k in shown],
            table.present[np.ix_(at, shown)],
            table.absent[np.ix_(at, shown)],
            table.Z[at],
            title,
        ).plot(ax)

    @property
    def shape(self) -> tuple[int, int]:  # type: ignore[override]
        """One panel for each side; of one label, one for both."""
        return (1, 1) if len(self.labels) == 1 else (1, 2)

    def _axes(self, ax: Any) -> Any:
        axes = super()._axes(ax)
        if ax is None:
            panels = 2 * max(len(self.labels), 2) * _CELL[0]
            width = 2.4 + 0.07 * max(map(len, self.words)) + panels
            height = 1.3 + _CELL[1] * len(self.words) + 0.06 * max(map(len, self.labels))
            axes[0, 0].figure.set_size_inches(max(width, 4.0), max(height, 2.4))
        return axes

    def _draw(self, ax: Any) -> None:
        sides = [self.present, self.absent]
        names = [self.labels, self.labels]
        titles = list(_SIDES)
        if len(self.labels) == 1:
            sides, names = [np.hstack(sides)], [["word is there", "is not"]]
            titles = [f"values of {self.labels[0]}"]
        largest = max(float(np.abs(side).max()) for side in sides) or 1.0
        panels = list(np.ravel(ax))
        for panel, side, own, title in zip(panels, sides, names, titles, strict=True):
            image = self._draw_side(panel, side, own, largest)
            panel.set_title(f"{title}{f' ({self.title})' * bool(self.title)}", fontsize="medium")
        panels[0].set_yticks(
            np.arange(len(self.words)),
            [f"{word}  {k}" for word, k in zip(self.words, self.rounds, strict=True)],
        )
        for panel in panels[1:]:
            panel.set_yticks([])
        panels[0].set_ylabel("word and round")
        panels[0].figure.colorbar(image, ax=panels, pad=0.02, label="for a label, or against it")

    def _draw_side(self, ax: Axes, side: np.ndarray, names: list[str], largest: float) -> Any:
        look: dict[str, Any] = {"cmap": marks.two_sided(), "vmin": -largest, "vmax": largest}
        image = ax.imshow(side, aspect="auto", interpolation="none", **look)
        ax.set_xticks(np.arange(len(names)), names, rotation=60, ha="right", rotation_mode="anchor")
        if len(self.labels) <= _WRITTEN:
            for (row, column), value in np.ndenumerate(side):
                colour = "white" if value < -0.6 * largest else marks.INK
                where: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": 6.5}
                ax.text(column, row, f"{value:.1f}".replace("-0.0", "0.0"), color=colour, **where)
        return image


def plot_boosted_words(
    model: Any,
    ax: Any = None,
    *,
    rounds: int | Sequence[int] = 15,
    labels: Sequence[Any] | None = None,
) -> Any:
    """Draw the words that boosting has found, round by round, and what each says of every label.

    Parameters
    ----------
    model : fitted WordStumpBooster, or Pipeline that ends in one
    ax : array of two matplotlib Axes, optional
        Where to draw (one of them for a single label); by default on a new figure.
    rounds : int or sequence of int, default=15
        How many, from the first on; or which, counted from 1.
    labels : sequence, optional
        Some of the model's labels, in the order they are drawn; by default all, or of more than 12
        those that these words say most of.

    Returns
    -------
    axes : array of matplotlib Axes

    Examples
    --------
    >>> from maxmargin import WordStumpBooster
    >>> from maxmargin.plotting import plot_boosted_words
    >>> documents = ["corn and wheat", "wheat prices", "oil prices", "crude oil", "oil for corn"]
    >>> y = [["grain"], ["grain"], ["energy"], ["energy"], ["energy", "grain"]]
    >>> axes = plot_boosted_words(WordStumpBooster(10).fit(documents, y), rounds=3)
    >>> [panel.get_title() for panel in axes[0]]
    ['where the word is', 'where it is not']
    """
    return BoostedWordsDisplay.from_estimator(model, ax, rounds=rounds, labels=labels).ax_
