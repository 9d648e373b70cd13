"""How good an order of labels is: the measures of Schapire and Singer."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from sklearn.metrics import (
    coverage_error,
    label_ranking_average_precision_score,
    label_ranking_loss,
)


class RankingScores(NamedTuple):
    """How well labels are put in order by their values.

    Documents without a label, or with all of them, leave nothing to order: they are not counted.

    Attributes
    ----------
    one_error : float
        Share of the documents whose first label is none of theirs.
    coverage : float
        How far down the list one has to go to find all labels of a document; zero where one of one
        label has it first (scikit-learn's ``coverage_error`` is one more).
    average_precision : float
        For each label of a document, the share of its labels among those down to it.
    ranking_loss : float
        Share of the pairs of a document's label and another that are in the wrong order.
    documents : int
        That were counted.
    """

    one_error: float
    coverage: float
    average_precision: float
    ranking_loss: float
    documents: int


def ranking_scores(truth: np.ndarray, values: np.ndarray) -> RankingScores:
    """Judge values of shape (n, k) by which labels there are, booleans (n, k).

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.ensemble.words.ranking import ranking_scores
    >>> truth = np.array([[1, 0, 0], [0, 1, 1]], dtype=bool)
    >>> ranking_scores(truth, np.array([[2.0, 1.0, 0.0], [3.0, 2.0, 1.0]])).one_error
    0.5
    """
    counted = truth.any(axis=1) & ~truth.all(axis=1)
    truth, values = truth[counted], values[counted]
    if not len(truth):
        raise ValueError("Every document has no label, or all of them: there is no order to judge.")
    first = np.argmax(values, axis=1)
    return RankingScores(
        float(1.0 - truth[np.arange(len(truth)), first].mean()),
        float(coverage_error(truth, values) - 1.0),
        float(label_ranking_average_precision_score(truth, values)),
        float(label_ranking_loss(truth, values)),
        len(truth),
    )
