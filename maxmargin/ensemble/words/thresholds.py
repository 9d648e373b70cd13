"""From which value on a document gets a label: thresholds with the best F1.

Where even the best F1 is poor, the threshold with it would give the label to half of all documents
for the sake of one or two: there it stays at zero.

Reference: Yang, A study on thresholding strategies for text categorization, SIGIR 2001.
"""

from __future__ import annotations

import numpy as np

_POOR = 0.3  # F1 below which a threshold is not believed; 0.1 to 0.5 make little difference


def best_threshold(truth: np.ndarray, values: np.ndarray) -> float:
    """Return the threshold above which values have the largest F1; zero where that is below 0.3.

    Halfway between two neighbours in the order of the values; of several, the one nearest to zero.

    Parameters
    ----------
    truth : bool array of shape (n,)
    values : float array of shape (n,)

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.ensemble.words.thresholds import best_threshold
    >>> best_threshold(np.array([True, True, False, False]), np.array([3.0, -1.0, -2.0, -9.0]))
    -1.5
    """
    if not truth.any():
        return 0.0  # there is no choice
    order = np.argsort(-values, kind="stable")
    ranked = values[order]
    ends = np.flatnonzero(np.append(np.diff(ranked) < 0, True))  # where values fall
    hits = np.cumsum(truth[order])[ends]
    F1 = 2.0 * hits / (ends + 1 + truth.sum())
    if F1.max() < _POOR:
        return 0.0
    below = np.append(ranked[ends[1:]], ranked[-1] - 1.0)
    between = 0.5 * (ranked[ends] + below)
    best = np.flatnonzero(F1.max() * (1.0 - 1e-12) <= F1)
    if any((below[j] <= 0.0) & (ranked[ends[j]] > 0.0) for j in best):
        return 0.0
    return float(between[best[np.argmin(np.abs(between[best]))]])
