"""How many hypotheses a weak learner can choose from, as far as that is known.

On m rows of d columns a test ``x_j > t`` parts the rows in at most ``d (m - 1) + 1`` ways, "not at
all" among them. Stumps with a class on each side make at most ``2 (d (m - 1) + 1)`` dichotomies of
them, trees of depth D at most ``(d (m - 1) + 1)^(2^D - 1) 2^(2^D)``: a test at every node, a class
at every leaf. By Massart's lemma these numbers are to the Rademacher complexity, and so to
:func:`~maxmargin.bounds.margin_bound`, what the number of hypotheses is; unlike thresholds that
were counted on the data they are fixed before any are seen. Hyperplanes have the
Vapnik-Chervonenkis dimension d + 1.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import sklearn.tree

from maxmargin.ensemble.boosting.stump import DecisionStump
from maxmargin.ensemble.trees import DecisionTreeClassifier
from maxmargin.linear.base import LinearClassifier

_TREES = DecisionTreeClassifier, sklearn.tree.DecisionTreeClassifier


def capacity(estimator: Any, n_rows: int, n_features: int) -> tuple[float | None, float | None]:
    """Return ``n_base`` or ``vc_dim`` of a weak learner for two classes, the other one None.

    Examples
    --------
    >>> from maxmargin.ensemble import DecisionStump
    >>> capacity(DecisionStump(), 11, 2)
    (42.0, None)
    """
    ways = n_features * (n_rows - 1.0) + 1.0
    depth = 1 if isinstance(estimator, DecisionStump) else getattr(estimator, "max_depth", None)
    if isinstance(estimator, DecisionStump) or (isinstance(estimator, _TREES) and depth == 1):
        return 2.0 * ways, None
    if isinstance(estimator, _TREES) and depth is not None:
        logarithm = (2.0**depth - 1.0) * np.log(ways) + 2.0**depth * np.log(2.0)
        if logarithm < np.log(np.finfo(np.float64).max):
            return float(np.exp(logarithm)), None
        raise ValueError(
            f"Trees of depth {depth} can part {n_rows} rows in more ways than float64 counts: the "
            "margin bound would say nothing. Take a smaller max_depth."
        )
    if isinstance(estimator, LinearClassifier) and getattr(estimator, "kernel", None) is None:
        return None, n_features + 1.0
    raise ValueError(
        f"How many hypotheses {type(estimator).__name__} can choose from is not known here: give "
        "n_base, their number, or vc_dim, their Vapnik-Chervonenkis dimension. It is known of "
        "DecisionStump, of trees with a max_depth, and of linear machines."
    )
