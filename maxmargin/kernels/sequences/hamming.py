"""Weights of pairs of words by how many of their characters differ.

For words u, v of l characters of q letters, ``h(d(u, v))`` has one eigenvalue for each of l + 1
eigenspaces, ``P h`` with Krawtchouk's polynomials P. A sum over words, ``sum_w g(d(u, w)) g(d(w,
v))``, squares them, and ``P P = q^l I``. All in whole numbers of Python, which do not overflow and
do not cancel.
"""

from __future__ import annotations

from math import comb

import numpy as np


def krawtchouk(length: int, size: int) -> np.ndarray:
    """Krawtchouk's polynomials (l + 1, l + 1): eigenspaces by numbers of different characters.

    >>> krawtchouk(2, 4).tolist()
    [[1, 6, 9], [1, 2, -3], [1, -2, 1]]
    """
    rows = range(length + 1)
    values = [
        [
            sum(
                (-1) ** s * (size - 1) ** (d - s) * comb(j, s) * comb(length - j, d - s)
                for s in range(d + 1)
            )
            for d in rows
        ]
        for j in rows
    ]
    return np.array(values, dtype=object)


def met(weights: list[int], size: int) -> list[int]:
    """``h(d) = sum over words w of g(d(u, w)) g(d(w, v))`` for the weights g of each distance.

    >>> met([1, 1, 0], 4)  # words of two letters of four, up to one of which may differ
    [7, 4, 2]
    """
    P = krawtchouk(len(weights) - 1, size)
    return list(P @ (P @ np.array(weights, dtype=object)) ** 2 // size ** (len(weights) - 1))


def estimates(length: int, k: int, size: int) -> list[int]:
    """How words at each distance speak for a word, whose count is estimated from gapped words.

    The estimate of least length that explains the counts of k characters with gaps is a projection:
    onto the eigenspaces up to k. From the first distance on where it is not positive it is cut off
    (the truncated filter of Ghandi et al., 2014). Up to a factor.
    """
    values = krawtchouk(length, size)[:, : k + 1].sum(axis=1)
    return list(np.where(np.logical_and.accumulate(values > 0), values, 0))
