"""Scores of substituting one character by another, BLOSUM62 and others, and words alike by them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from maxmargin.backends.cpu.strings import similar_words
from maxmargin.kernels.base import finite_number
from maxmargin.kernels.sequences.alphabet import Alphabet
from maxmargin.kernels.sequences.kmers import AT_ONCE, WordKernel

# Henikoff and Henikoff, Amino acid substitution matrices from protein blocks, PNAS 89, 1992; in
# half bits, the lower triangle in the order of alphabet.PROTEIN.
_BLOSUM62 = """
4
-1 5
-2 0 6
-2 -2 1 6
0 -3 -3 -3 9
-1 1 0 0 -3 5
-1 0 0 2 -4 2 5
0 -2 0 -1 -3 -2 -2 6
-2 0 1 -1 -3 0 0 -2 8
-1 -3 -3 -3 -1 -3 -3 -4 -3 4
-1 -2 -3 -4 -1 -2 -3 -4 -3 2 4
-1 2 0 -1 -3 1 1 -2 -1 -3 -2 5
-1 -1 -2 -3 -1 0 -2 -3 -2 1 2 -1 5
-2 -3 -3 -3 -2 -3 -3 -3 -1 0 0 -3 0 6
-1 -2 -2 -1 -3 -1 -1 -2 -2 -3 -3 -1 -2 -4 7
1 -1 1 0 -1 0 0 0 -1 -2 -2 0 -1 -2 -1 4
0 -1 0 -1 -1 -1 -1 -2 -2 -1 -1 -1 -1 -2 -1 1 5
-3 -3 -4 -4 -2 -2 -3 -2 -2 -3 -2 -3 -1 1 -4 -3 -2 11
-2 -2 -2 -3 -2 -1 -2 -3 2 -1 -1 -2 -1 3 -3 -2 -2 2 7
0 -3 -3 -3 -1 -2 -2 -3 -3 3 1 -2 1 -1 -2 -2 0 -3 -1 4
"""


def _symmetric(triangle: str) -> np.ndarray:
    rows = [list(map(float, line.split())) for line in triangle.split("\n") if line]
    lower = np.array([row + [0.0] * (len(rows) - len(row)) for row in rows])
    return lower + lower.T - np.diag(np.diag(lower))


BLOSUM62 = _symmetric(_BLOSUM62)
_NAMED = {
    "blosum62": (Alphabet.of("protein"), BLOSUM62),
    "dna": (Alphabet.of("dna"), 9.0 * np.eye(4) - 4.0),  # 5 and -4, as nucleotide searches have it
}


def substitution_scores(matrix: Any) -> tuple[Alphabet, np.ndarray]:
    """Alphabet and scores (size, size) that a parameter means.

    >>> alphabet, scores = substitution_scores({("a", "a"): 1, ("b", "b"): 1, ("a", "b"): -1})
    >>> scores
    array([[ 1., -1.],
           [-1.,  1.]])
    """
    if isinstance(matrix, str) and matrix in _NAMED:
        return _NAMED[matrix]
    if not isinstance(matrix, Mapping) or not matrix:
        raise ValueError(
            f"matrix must be one of {sorted(_NAMED)} or a dict of scores by pairs of characters, "
            f"{{('A', 'A'): 4, ('A', 'R'): -1, ...}}; got {matrix!r}."
        )
    letters = sorted({letter for pair in matrix for letter in pair})
    scores = np.empty((len(letters), len(letters)))
    for i, a in enumerate(letters):
        for j, b in enumerate(letters):
            score = matrix.get((a, b), matrix.get((b, a)))
            if score is None or not np.isfinite(score) or matrix.get((b, a), score) != score:
                raise ValueError(
                    f"matrix needs one finite score for {a!r} with {b!r}, in either order; got "
                    f"{matrix.get((a, b))} and {matrix.get((b, a))}."
                )
            scores[i, j] = score
    return Alphabet.of("".join(letters)), scores


class Substitution(WordKernel):
    """Protein words in common up to substitutions that evolution makes often: by BLOSUM62.

    ``phi_v(x)`` is the number of words u of x with ``sum_i s(u_i, v_i) >= threshold``: v is in the
    neighbourhood of u that a BLAST search looks for.

    Parameters
    ----------
    k : int, default=3
    threshold : float, default=11.0
        The lower, the more words are alike; words whose score with themselves is below it count
        for nothing.
    matrix : {"blosum62"} or dict of (letter, letter) to score, default="blosum62"
    unknown : {"error", "skip"}, default="error"
        As in :class:`Spectrum`: what the matrix has no score for.

    References
    ----------
    Leslie, Kuang, Fast string kernels using inexact matching for protein sequences, JMLR 5, 2004
    (the substitution kernel, which bounds log-probabilities in place of scores); Altschul et al.,
    Basic local alignment search tool, 1990.

    Examples
    --------
    >>> from maxmargin.kernels import Spectrum, Substitution
    >>> proteins = ["MKWV", "MRWI", "GGPP"]  # K and R are alike, and so are V and I
    >>> Spectrum(2, alphabet="protein")(proteins)[0]
    array([3., 0., 0.])
    >>> Substitution(2, threshold=7.0)(proteins)[0]
    array([46., 44.,  0.])
    """

    def __init__(
        self,
        k: int = 3,
        threshold: float = 11.0,
        matrix: Any = "blosum62",
        unknown: str = "error",
    ) -> None:
        self.k = k
        self.threshold = threshold
        self.matrix = matrix
        self.unknown = unknown
        self._check()

    def _check(self) -> None:
        finite_number("threshold", self.threshold)
        super()._check()

    @property
    def _alphabet(self) -> Alphabet:
        return substitution_scores(self.matrix)[0]

    def _features_of_words(self, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        _, scores = substitution_scores(self.matrix)
        threshold = float(self.threshold)
        found = similar_words(numbers, self._length, scores, threshold, AT_ONCE)
        if len(found[1]) > AT_ONCE:
            raise ValueError(
                f"The {len(numbers):,} different words in X are like more others than can be held: "
                f"{self!r} needs a larger threshold or a smaller k."
            )
        return found
