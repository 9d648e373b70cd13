"""Rows out of the bag: those that a member of an ensemble has not seen, and can be asked about."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.metrics import r2_score

from maxmargin.estimators.warn import warn


def score_out_of_bag(asked: Any, usual: Callable, y: np.ndarray, predicted: np.ndarray) -> float:
    """Score predictions of rows out of the bag; nan where there are too few to be scored.

    Parameters
    ----------
    asked : bool or callable
        ``oob_score``: a function of true and predicted targets, or True for the usual one.
    usual : callable
    y, predicted : arrays of shape (n_rows,) or (n_rows, n_outputs)
        Of the rows that some member has not seen.
    """
    score = asked if callable(asked) else usual
    least = 2 if score is r2_score else 1
    return float(score(y, predicted)) if len(y) >= least else np.nan


def warn_never_left_out(asked: np.ndarray) -> None:
    """Warn of rows about which no member can be asked, since every one has seen them.

    Parameters
    ----------
    asked : int array of shape (n_rows,)
        How many members have not seen each row.
    """
    missing = int((asked == 0).sum())
    if missing:
        warn(
            "Some inputs do not have OOB scores. This probably means too few estimators were used "
            f"to compute any reliable oob estimates: {missing} of {len(asked)} rows were drawn by "
            "every member. They are nan, and the score is that of the others.",
            UserWarning,
        )
