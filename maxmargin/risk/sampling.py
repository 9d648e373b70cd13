"""Which rows stand for all: with chances in proportion to their share in the curvature.

Row i has in the curvature along column j the share ``c_i V''(u_i) x_ij^2`` over the sum of that of
all rows: a leverage score of one column at a time. Rows that are alone in having something to say
about a column are certain to be drawn. Any chances are right, as long as a row that was drawn
stands for one over its chance; good ones make the curvature of these rows like that of all.

Reference: Drineas, Mahoney and Muthukrishnan, SIAM J. Matrix Analysis 30, 2008.
"""

from __future__ import annotations

from typing import Any

import numpy as np

_EVEN = 0.2  # more rows, drawn without looking at them
_STRAIGHT = 0.05  # curvature that a row without any counts for, over the largest: it may get some
_UNSEEN = 1e-6  # squares of a column, over the mean, that a small sample may not have seen
_NOTHING = 1e-200  # squares that are none
_ROUNDS = 8


def even(n: int, count: int, seed: int = 0) -> np.ndarray:
    """Draw so many of n rows without looking at them; in order."""
    return np.sort(np.random.default_rng(seed).choice(n, count, replace=False))


def curvatures(risk: Any, f: np.ndarray) -> np.ndarray:
    """Curvature of each row at values f, times its cost; no row has none."""
    bent = risk.loss.curvature(risk.arguments(f))
    return risk.cost * (bent + _STRAIGHT * risk.max_curvature)


def column_scale(squares: np.ndarray) -> np.ndarray:
    """Factor of each column's squares, from those of a sample, that makes shares of them."""
    return 1.0 / np.maximum(squares, max(_UNSEEN * float(squares.mean()), _NOTHING))


def level_of(share: np.ndarray, count: float, each: float = 1.0) -> float:
    """Find what shares are multiplied by to become chances, so that about so many are drawn.

    ``each`` is how many rows of the data one of these stands for.
    """
    sure = np.zeros(len(share), dtype=bool)
    for _ in range(_ROUNDS):  # what is certain to be drawn leaves so much to the others
        others = max(each * float(share[~sure].sum()), _NOTHING)
        level = (count - each * np.count_nonzero(sure)) / others
        more = level * share > 1
        if level <= 0 or not (more & ~sure).any():
            break
        sure |= more
    return max(level, 0.0)


def chances_of(share: np.ndarray, level: float, rate: float, cost: np.ndarray) -> np.ndarray:
    """Chances of rows by their shares, and a little more; ``rate`` is that of an even draw."""
    chance = level * share + _EVEN * rate
    return np.where(cost > 0, np.minimum(chance, 1.0), 0.0)


def chances(risk: Any, f: np.ndarray, count: int) -> np.ndarray:
    """Probabilities with which rows of a risk with values f are drawn, about so many of them."""
    weight, some = curvatures(risk, f), even(risk.n, count // 4)
    squares = risk.design.take(some).gram(weight[some]).diagonal()
    share = weight * risk.design.squared_norms(column_scale(squares))
    return chances_of(share, level_of(share, count), count / risk.n, risk.cost)
