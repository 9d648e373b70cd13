"""Noise of targets: how much of an error no learner could avoid, from rows that are alike.

``y`` at a point is drawn from a distribution, of which a data set shows one value. Only rows with
the same x, or with one so similar that the function does not change in between, say how wide it is.

Reference: Gasser, Sroka and Jennen-Steinmetz, Residual variance and residual pattern in nonlinear
regression, Biometrika 73, 1986 (differences of neighbours).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.neighbors import NearestNeighbors

FROM_X = ("repeated", "neighbors")
_NUMBERS, _CLASSES = 1, 10  # neighbours of a row: of a smooth function, and for a majority


class Noise(NamedTuple):
    """Noise of each row, nan where nothing is known of it.

    ``of_row`` is an estimate of ``Var(y | x)``, or for classes 1 where the label is not the most
    common one at x, else 0. ``best`` is the most common class at x, as an index; -1 where that is
    not known, and for numbers.
    """

    of_row: np.ndarray
    best: np.ndarray
    source: str


def estimate_noise(X: Any, y: np.ndarray, how: str, n_neighbors: int | None, labels: bool) -> Noise:
    """Estimate the noise from rows with the same x, or from nearest neighbours.

    Parameters
    ----------
    X : array (n, n_features) or CSR
    y : array (n,)
        Numbers, or with ``labels`` indices of classes.
    how : {"repeated", "neighbors"}
        ``"repeated"``: rows whose x occurs again. ``"neighbors"``: the nearest other rows, which is
        too much by what the function changes up to there.
    n_neighbors : int, optional
        By default 1, and 10 for the majority of classes.
    labels : bool

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.ensemble.bagging.noise import estimate_noise
    >>> X, y = np.array([[0.0], [0.0], [1.0]]), np.array([1.0, 3.0, 5.0])
    >>> estimate_noise(X, y, "repeated", None, labels=False).of_row
    array([ 2.,  2., nan])
    """
    if how == "repeated":
        return _of_repeated(X, y, labels)
    count = (_CLASSES if labels else _NUMBERS) if n_neighbors is None else n_neighbors
    if not 1 <= count < len(y):
        raise ValueError(
            f"n_neighbors={count} other rows were asked for, and there are {len(y) - 1}."
        )
    table = X if sp.issparse(X) else np.asarray(X, dtype=np.float64)
    found = NearestNeighbors(n_neighbors=count).fit(table)
    near = y[found.kneighbors(return_distance=False)]  # without the row itself
    source = f"{count} nearest neighbour{'s' if count > 1 else ''}"
    if not labels:
        of_row = (y - near.mean(axis=1)) ** 2 * (count / (count + 1))
        return Noise(of_row, np.full(len(y), -1), source)
    votes = np.zeros((len(y), int(y.max()) + 1), dtype=np.int64)
    np.add.at(votes, (np.arange(len(y))[:, None], near), 1)
    best = np.argmax(votes, axis=1)
    return Noise((y != best).astype(np.float64), best, source)


def _of_repeated(X: Any, y: np.ndarray, labels: bool) -> Noise:
    dense = X.toarray() if sp.issparse(X) else np.asarray(X)
    group = np.unique(dense, axis=0, return_inverse=True)[1].ravel()
    size = np.bincount(group)
    again = size[group] > 1
    if not again.any():
        raise ValueError(
            "noise='repeated' needs rows with the same x, and no two rows of X are equal: use "
            "noise='neighbors', where similar rows can stand in for equal ones."
        )
    of_row, best = np.full(len(y), np.nan), np.full(len(y), -1)
    source = f"{int(again.sum())} rows whose x occurs again"
    if not labels:
        mean = np.bincount(group, weights=y)[group] / size[group]
        squares = (y - mean) ** 2
        of_row[again] = np.bincount(group, weights=squares)[group[again]] / (
            size[group[again]] - 1.0
        )
        return Noise(of_row, best, source)
    votes = np.zeros((len(size), int(y.max()) + 1), dtype=np.int64)
    np.add.at(votes, (group, y), 1)
    most = np.argmax(votes, axis=1)[group]
    best[again], of_row[again] = most[again], (y != most)[again]
    return Noise(of_row, best, source)
