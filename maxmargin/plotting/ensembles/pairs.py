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

_MIDDLE, _LOW = 0.55, 0.06  # of the picture: from where names are at the left, up to where above
_WIDE, _TALL = 0.1, 0.02  # of the picture, half a name


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
        for (x, y), name, (left, below) in zip(
            errors, self.names, _sides(errors, high), strict=True
        ):
            ax.annotate(
                name,
                (x, y),
                (-6 if left else 6, -3 if below else 3),
                textcoords="offset points",
                ha="right" if left else "left",
                va="top" if below else "bottom",
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


def _sides(errors: np.ndarray, high: float) -> list[tuple[bool, bool]]:
    """For each dot whether its name goes to the left, and below: where no other name is yet."""
    taken: list[tuple[float, float]] = []
    sides = []
    for x, y in errors:
        usual = bool(x > _MIDDLE * high), bool(_LOW * high < y < x)
        ways = [usual, (not usual[0], usual[1]), (usual[0], not usual[1])]
        spots = [
            (x + (-1 if left else 1) * _WIDE * high, y + (-1 if below else 1) * _TALL * high)
            for left, below in ways
        ]
        free = [
            all(abs(u - s) > 2 * _WIDE * high or abs(v - t) > 2 * _TALL * high for s, t in taken)
            for u, v in spots
        ]
        best = free.index(True) if any(free) else 0
        taken.append(spots[best])
        sides.append(ways[best])
    return sides


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
