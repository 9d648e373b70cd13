"""What a shared fit has come to: the values of a machine at the rows of a split, or the machine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from maxmargin.selection.plan import Candidate


@dataclass(frozen=True)
class Outcome:
    """What is known of one candidate's machine on one split.

    Attributes
    ----------
    candidate : Candidate
    split : int
    seconds : float
        Of its own solution, without what is shared.
    how : str
        By which means it was found.
    fitted : estimator or None
        The estimator itself, where it is there; else
    test, train : arrays of shape (rows, pairs of classes) or (rows,), or None
        its values on the rows of the split,
    classes : array or None
        the classes that it has seen, and
    sigmoids : array of shape (pairs, 2) or None
        the numbers A and B of each pair's probabilities, where these are known.
    """

    candidate: Candidate
    split: int
    seconds: float
    how: str
    fitted: Any = None
    test: np.ndarray | None = None
    train: np.ndarray | None = None
    classes: np.ndarray | None = None
    sigmoids: np.ndarray | None = None

    @classmethod
    def of_values(
        cls,
        candidate: Candidate,
        split: int,
        seconds: float,
        how: str,
        classes: np.ndarray | None,
        test: np.ndarray,
        train: np.ndarray | None,
        sigmoids: np.ndarray | None = None,
    ) -> Outcome:
        """Take the values of all problems, (rows, problems); without classes there is one."""
        if classes is None:
            test, train = test[:, 0], None if train is None else train[:, 0]
        return cls(candidate, split, seconds, how, None, test, train, classes, sigmoids)
