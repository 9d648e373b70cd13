"""One-vs-rest: a machine for every class, against all others.

The machines are trained apart, so nothing makes their values comparable, and yet the largest
decides; and each has one class against many. ``decoding="votes"`` and ``balanced=True`` are what
to try against the one and the other.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from maxmargin.multiclass.scheme import Scheme


@dataclass(frozen=True)
class OneVsRest(Scheme):
    """A machine for every class, against all others; the largest value decides.

    Parameters
    ----------
    n_classes : int
    decoding : {"value", "votes"}, default="value"
        ``"votes"``: a machine votes for its own class, or for all of the others. Where several say
        yes, or none, all of them have most votes: the point is :meth:`ambiguous`, and goes to the
        first of them.
    balanced : bool, default=False
        Let a class weigh as much as all others in its own task.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.multiclass import OneVsRest
    >>> scheme = OneVsRest(3)
    >>> scheme.code
    array([[ 1, -1, -1],
           [-1,  1, -1],
           [-1, -1,  1]])
    >>> values = np.array([[-0.5, -2.0, -0.1], [-1.0, 0.2, 0.9]])
    >>> scheme.decode(values)
    array([2, 2])
    >>> by_votes = OneVsRest(3, decoding="votes")
    >>> by_votes.decode(values), by_votes.ambiguous(values)
    (array([0, 1]), array([ True,  True]))
    """

    decoding: str = "value"
    unanimous = True

    def __post_init__(self) -> None:
        if self.decoding not in ("value", "votes"):
            raise ValueError(f'decoding must be "value" or "votes", got {self.decoding!r}.')

    def _code(self) -> np.ndarray:
        return 2 * np.eye(self.n_classes, dtype=np.int64) - 1

    def scores(self, values: np.ndarray) -> np.ndarray:
        """Take the machines' own values, or whether they are positive."""
        values = values * [-1.0, 1.0] if self.n_classes == 2 else values
        return (values > 0).astype(np.float64) if self.decoding == "votes" else values

    def logits(self, values: np.ndarray) -> np.ndarray:
        """Take the machines' own values."""
        return super().logits(values) if self.n_classes == 2 else values

    def probabilities(self, r: np.ndarray) -> np.ndarray:
        """Scale those of the classes to sum to one, even where all are zero."""
        if self.n_classes == 2:
            return super().probabilities(r)
        total = r.sum(axis=1, keepdims=True)
        return np.where(total == 0, 1.0 / self.n_classes, r / np.where(total == 0, 1.0, total))

    def log_probabilities(self, values: np.ndarray) -> np.ndarray:
        """Scale in logarithms: ``1 / (1 + exp(-value))`` may underflow in all classes of a row."""
        if self.n_classes == 2:
            return super().log_probabilities(values)
        logarithms = -np.logaddexp(0.0, -values)
        logarithms -= logarithms.max(axis=1, keepdims=True)  # large ones have no digits to spare
        return logarithms - np.logaddexp.reduce(logarithms, axis=1)[:, None]
