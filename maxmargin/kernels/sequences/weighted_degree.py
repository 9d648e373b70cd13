"""The weighted degree kernel: words in common at the same position, or near it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import scipy.sparse as sp

from maxmargin.backends.cpu.strings import words
from maxmargin.backends.data import as_table
from maxmargin.backends.strings import Strings
from maxmargin.kernels.base import Kernel
from maxmargin.kernels.sequences.alphabet import Alphabet, sequences_of, some_rows
from maxmargin.kernels.sequences.base import (
    FeatureKernel,
    check_columns,
    check_unknown,
    count,
    looked_up,
)


class WeightedDegree(FeatureKernel):
    """The weighted degree kernel: words up to length d that two sequences have at the same place.

    For sequences of one length L, such as windows around a site in a genome::

        k(x, z) = sum_j beta_j sum_i [x_i ... x_i+j-1 == z_i ... z_i+j-1],  j = 1, ..., d

    with ``beta_j = 2 (d - j + 1) / (d (d + 1))``. With ``shift`` S a word may be up to S places
    off: those s places apart count ``1 / (2 (s + 1))``, in either direction.

    Parameters
    ----------
    d : int, default=5
        Degree: length of the longest words.
    shift : int, default=0
    alphabet, unknown
        As in :class:`Spectrum`.
    length : int, optional
        L; by default that of the training sequences.

    Notes
    -----
    With shifts, words at places i and i' are weighted by a Toeplitz matrix. It is positive
    definite, since its symbol ``1 + sum_s cos(s t) / (s + 1)`` is at least 1/2 (Rogosinski and
    Szegő, 1928); its Cholesky factor makes the features, ``shift + 1`` for each word.

    References
    ----------
    Rätsch, Sonnenburg, Accurate splice site detection for C. elegans, 2004; Rätsch, Sonnenburg,
    Schölkopf, RASE: recognition of alternatively spliced exons, 2005 (shifts).

    Examples
    --------
    >>> from maxmargin.kernels import WeightedDegree
    >>> WeightedDegree(d=2)(["ACGT", "ACGA", "TACG"]).round(3)
    array([[3.667, 2.667, 0.   ],
           [2.667, 3.667, 0.   ],
           [0.   , 0.   , 3.667]])
    >>> WeightedDegree(d=2, shift=1)(["ACGT", "TACG"]).round(3)
    array([[3.667, 0.667],
           [0.667, 3.667]])
    """

    def __init__(
        self,
        d: int = 5,
        shift: int = 0,
        alphabet: str = "dna",
        unknown: str = "error",
        length: int | None = None,
    ) -> None:
        self.d = d
        self.shift = shift
        self.alphabet = alphabet
        self.unknown = unknown
        self.length = length
        self._check()

    def _check(self) -> None:
        count("d", self.d)
        count("shift", self.shift, 0)
        check_unknown(self.unknown)
        alphabet = Alphabet.of(self.alphabet)
        if self.length is not None:
            count("length", self.length)
        check_columns(2 * (self.length or 1) * alphabet.size**self.d, self, alphabet, "d")

    def _resolve(self, X: Any, feature_names: Sequence[str] | None) -> Kernel:
        self._check()
        length = self.length
        if length is None:
            length = len(sequences_of(X, self)[0])
        return WeightedDegree(self.d, self.shift, self.alphabet, self.unknown, length)

    def _degrees(self, length: int) -> list[tuple[int, int, int, np.ndarray]]:
        """Of each word length j: ``(j, first column, places, factor)``.

        ``factor`` (places, shift + 1) is that of the Toeplitz matrix, times ``sqrt(beta_j)``: a
        word at place i goes to places ``i - shift, ..., i``.
        """
        degrees, first = [], 0
        for j in range(1, min(self.d, length) + 1):
            places = length - j + 1
            beta = 2.0 * (self.d - j + 1) / (self.d * (self.d + 1))
            factor = np.sqrt(beta) * _banded_factor(places, min(self.shift, places - 1))
            degrees.append((j, first, places, factor))
            first += places * Alphabet.of(self.alphabet).size ** j
        return degrees

    def _read(self, X: Any) -> tuple[Strings, int]:
        texts = sequences_of(X, self)
        lengths = np.array(list(map(len, texts)))
        length = int(lengths[0]) if self.length is None else self.length
        other = np.flatnonzero(lengths != length)
        if len(other):
            raise ValueError(
                f"{self!r} compares sequences place by place, so that all must have one length, "
                f"here {length}; {some_rows(other)} have others, such as {lengths[other[0]]}. Cut "
                "windows of one length, or use a kernel that looks for words wherever they are, "
                "such as Spectrum or Mismatch."
            )
        strings = Alphabet.of(self.alphabet).encode(texts, check_unknown(self.unknown))
        return strings, length

    def _entries(self, X: Any) -> tuple[Strings, list, int]:
        """Sequences; for each degree and shift ``(j, columns, values)``; and number of columns.

        Columns are (n, places), -1 where there is no word.
        """
        strings, length = self._read(X)
        size, entries, columns = Alphabet.of(self.alphabet).size, [], 0
        for j, first, places, factor in self._degrees(length):
            found = words(*strings, j, size, False).reshape(len(strings), length)[:, :places]
            for back in range(factor.shape[1]):
                place = np.arange(places) - back
                there = (found >= 0) & (place >= 0)
                at = np.where(there, first + place * size**j + found, -1)
                entries.append((j, at, factor[:, back]))
            columns = first + places * size**j
        return strings, entries, columns

    def _features(self, X: np.ndarray) -> sp.csr_array:
        strings, entries, columns = self._entries(X)
        n = len(strings)
        at = np.concatenate([at for _, at, _ in entries], axis=1)
        values = np.concatenate([value for _, _, value in entries])
        there = at >= 0
        indptr = np.concatenate([[0], np.cumsum(there.sum(axis=1))])
        data = np.broadcast_to(values, at.shape)[there]
        features = sp.csr_array((data, at[there], indptr), shape=(n, columns))
        features.sum_duplicates()
        return features

    def feature_names(self, columns: Iterable[int]) -> list[str]:
        """Return place (from 0) and word of some columns, as ``12:ACG``; ``length`` must be set."""
        if self.length is None:
            raise ValueError("Columns have names once the length is known: set length.")
        alphabet = Alphabet.of(self.alphabet)
        degrees = self._degrees(self.length)
        firsts = np.array([first for _, first, _, _ in degrees])
        names = []
        for column in columns:
            j, first, _, _ = degrees[int(np.searchsorted(firsts, column, side="right")) - 1]
            place, number = divmod(int(column) - first, alphabet.size**j)
            names.append(f"{place}:{alphabet.word(number, j)}")
        return names

    def position_values(self, X: Any, columns: np.ndarray, weights: np.ndarray) -> list[np.ndarray]:
        """``weights . phi(x)`` by positions, in equal shares over the characters of a word."""
        strings, entries, _ = self._entries(as_table(X))
        values = np.zeros((len(strings), int(strings.lengths[0])))
        for j, at, value in entries:
            shares = looked_up(at, columns, weights) * value / j
            for offset in range(j):
                values[:, offset : offset + at.shape[1]] += shares
        return list(values)


@lru_cache(maxsize=64)
def _banded_factor(places: int, shift: int) -> np.ndarray:
    """Factor R of the Toeplitz matrix of shifts, ``R R' = T``: ``R[i, i - s]`` at (i, s)."""
    lag = np.abs(np.subtract.outer(np.arange(places), np.arange(places)))
    matrix = np.where(lag <= shift, 0.5 / (lag + 1), 0.0)
    np.fill_diagonal(matrix, 1.0)
    factor = np.linalg.cholesky(matrix)
    bands = np.zeros((places, shift + 1))
    for back in range(shift + 1):
        bands[back:, back] = np.diagonal(factor, -back)
    return bands
