"""Two learners on many data sets: a dot for each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from maxmargin.plotting import marks
from maxmargin.plotting.display import Display

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass
class ErrorPairsDisplay(Display):
    """Errors of two learners on several data sets, one against the other.

    Attributes
    ----------
    names : list of str
        The data sets.
    errors : array of shape (data sets, 2)
        Of the learner across, and of the one up.
    across, up : str
        What these are.
    """

    names: list[str]
    errors: np.ndarray
    across: str
    up: str

    @classmethod
    def from_errors(
        cls, errors: Mapping[str, Any], across: str, up: str, *, ax: Axes | None = None
    ) -> ErrorPairsDisplay:
        """Check pairs of errors, and draw; as in :func:`plot_error_pairs`."""
        pairs = np.array([tuple(pair) for pair in errors.values()], dtype=np.float64)
        if pairs.ndim != 2 or pairs.shape[1] != 2:
            raise ValueError(
                "plot_error_pairs wants a pair of errors for each data set, that of the learner "
                f"across and that of the one up; got {dict(errors)!r}."
            )
        if not np.isfinite(pairs).all() or (pairs < 0).any():
            raise ValueError("Errors are finite and not negative; these are not.")
        return cls([str(name) for name in errors], pairs, across, up).plot(ax)

    @property
    def better(self) -> int:
        """Data sets on which the learner up has the smaller error."""
        return int((self.errors[:, 1] < self.errors[:, 0]).sum())

    def _draw(self, ax: Axes) -> None:
        errors = self.errors
        high = 1.12 * float(errors.max()) or 1.0
        ax.plot([0, high], [0, high], color=marks.ink(), linewidth=1, linestyle="--")
        won = errors[:, 1] < errors[:, 0]
        even = errors[:, 1] == errors[:, 0]
        for which, colour, marker in (
            (won, marks.BLUE, "o"),
            (~won & ~even, marks.ORANGE, "s"),
            (even, marks.ink(), "D"),
        ):
            if which.any():
                marks.scatter(ax, errors, errors[which], colour, marker)
        middle = 0.55 * high
        for (x, y), name in zip(errors, self.names, strict=True):
            left = x > middle
            ax.annotate(
                name,
                (x, y),
                (-6 if left else 6, -3),
                textcoords="offset points",
                ha="right" if left else "left",
                va="top" if y < x else "bottom",
                fontsize="x-small",
            )
        ax.set(
            xlim=(0, high),
            ylim=(0, high),
            aspect="equal",
            xlabel=f"error of {self.across}",
            ylabel=f"error of {self.up}",
            title=f"{self.up} better on {self.better} of {len(self.names)} data sets",
        )


def plot_error_pairs(
    errors: Mapping[str, Any], across: str, up: str, ax: Axes | None = None
) -> Axes:
    """Draw the errors of two learners on several data sets, a dot for each data set.

    A dot below the diagonal is a data set on which the learner up has the smaller error. Its
    distance from the diagonal is by how much.

    Parameters
    ----------
    errors : mapping of data sets to pairs of errors
    across, up : str
        The two learners.
    ax : matplotlib Axes, optional
        Where to draw; by default on a new figure.

    Returns
    -------
    ax : matplotlib Axes

    References
    ----------
    Freund and Schapire, Experiments with a new boosting algorithm, ICML 1996, whose figures these
    are after.

    Examples
    --------
    >>> from maxmargin.plotting import plot_error_pairs
    >>> errors = {"iris": (0.06, 0.05), "wine": (0.09, 0.03), "digits": (0.17, 0.06)}
    >>> plot_error_pairs(errors, "a tree", "25 bagged trees").get_title()
    '25 bagged trees better on 3 of 3 data sets'
    """
    return ErrorPairsDisplay.from_errors(errors, across, up, ax=ax).ax_
