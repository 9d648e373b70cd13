"""Kernels that compare the words of two sequences: exactly, with mismatches or gaps.

Each counts words of a fixed length, wherever they are, and hands the count of a word on to some
features; the kernel is the product of the features. Where a word has many of them, the kernel is
computed as a sum over pairs of words, by how many of their characters differ.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from itertools import combinations, product
from math import comb
from typing import Any

import numpy as np
import scipy.sparse as sp

from maxmargin.backends import program as op
from maxmargin.backends.cpu.strings import (
    MOST_DIFFERENT,
    MOST_PAIRED,
    counted,
    word_pairs,
    words,
)
from maxmargin.backends.data import as_table
from maxmargin.backends.program import Program, View
from maxmargin.backends.strings import StringFunction, Strings
from maxmargin.kernels.base import Validity
from maxmargin.kernels.sequences.alphabet import Alphabet, sequences_of
from maxmargin.kernels.sequences.base import (
    FeatureKernel,
    FeatureMap,
    check_columns,
    check_unknown,
    count,
    looked_up,
)
from maxmargin.kernels.sequences.hamming import estimates, met

AT_ONCE = 1 << 25  # features of words that are held at a time, at most
_OF_ONE = 1 << 17  # features of one word, at most
_MANY = 32  # features of a word, from which pairs of words are quicker than features of sequences


class WordKernel(FeatureKernel):
    """A kernel that is made of the words of one length in a sequence.

    ``phi(x) = sum over the words u of x of phi(u)``.
    """

    k: int
    alphabet: str = "protein"
    unknown: str
    both_strands: bool = False

    @property
    def _alphabet(self) -> Alphabet:
        """The characters."""
        return Alphabet.of(self.alphabet)

    @property
    def _length(self) -> int:
        """Characters of a word."""
        return count("k", self.k)

    @property
    def _n_features(self) -> int:
        """Number of features: by default, one for each word."""
        return self._alphabet.size**self._length

    def feature_names(self, columns: Iterable[int]) -> list[str]:
        """Return the words that some columns count."""
        return [self._alphabet.word(column, self._length) for column in columns]

    @abstractmethod
    def _features_of_words(self, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """``(indptr, columns)``: the features that each of some words counts for, once each."""

    def _check(self) -> None:
        """Refuse parameters that cannot be."""
        alphabet = self._alphabet
        check_unknown(self.unknown)
        if self.both_strands and not alphabet.complements:
            raise ValueError(
                "both_strands counts the reverse complement as well, which only alphabet='dna' "
                f"and 'rna' have, not {alphabet.name or alphabet.letters!r}."
            )
        check_columns(max(self._n_features, alphabet.size**self._length), self, alphabet)

    @property
    def _features_of_one(self) -> int:
        """Number of features that a word counts for, about."""
        return 1

    def _pair_weights(self) -> Sequence[float] | None:
        """Features that two words have in common, by how many characters differ, if that is all."""
        return None

    def _emit(self, program: Program, view: View) -> None:
        weights = self._pair_weights() if self._features_of_one >= _MANY else None
        if weights and len(weights) <= MOST_PAIRED + 1 and not any(weights[MOST_DIFFERENT + 1 :]):
            program.push(op.STRINGS, view, _WordPairs(self))
        else:
            super()._emit(program, view)

    def _encode(self, X: Any) -> Strings:
        """Sequences as numbers."""
        self._check()
        why = f" (the length of a word), so that {self!r} finds nothing in them to compare"
        texts = sequences_of(X, self, self._length, why)
        return self._alphabet.encode(texts, check_unknown(self.unknown))

    def _read(self, X: Any) -> tuple[Strings, np.ndarray]:
        """Sequences as numbers, and the word at each place, (strands, places)."""
        strings, k, size = self._encode(X), self._length, self._alphabet.size
        strands = (False, True) if self.both_strands else (False,)
        return strings, np.stack([words(*strings, k, size, reverse) for reverse in strands])

    def _features(self, X: np.ndarray) -> sp.csr_array:
        strings, found = self._read(X)
        indptr, numbers, counts = counted(found, strings.begin)
        distinct, place = np.unique(numbers, return_inverse=True)
        begin, columns = self._features_of_words(distinct)
        used, columns = np.unique(columns, return_inverse=True)
        ones = np.ones(len(columns))
        occurrences = sp.csr_array((counts, place, indptr), shape=(len(strings), len(distinct)))
        of_words = sp.csr_array((ones, columns, begin), shape=(len(distinct), len(used)))
        features = occurrences @ of_words
        features.sort_indices()
        parts = features.data, used[features.indices], features.indptr
        return sp.csr_array(parts, shape=(len(strings), self._n_features))

    def position_values(self, X: Any, columns: np.ndarray, weights: np.ndarray) -> list[np.ndarray]:
        """``weights . phi(x)`` by positions, in equal shares over the characters of a word."""
        strings, found = self._read(as_table(X))
        distinct, place = np.unique(found, return_inverse=True)
        known = distinct[distinct >= 0]
        begin, features = self._features_of_words(known)
        parts = np.concatenate([[0.0], np.cumsum(looked_up(features, columns, weights))])
        of_words = np.zeros(len(distinct))
        of_words[distinct >= 0] = np.diff(parts[begin]) / self._length
        shares = of_words[place.reshape(found.shape)].sum(axis=0)
        values = np.zeros(len(strings.codes))
        for offset in range(self._length):  # no word reaches beyond its sequence
            values[offset:] += shares[: len(values) - offset]
        return np.split(values, strings.begin[1:-1])

    def _refuse_many(self, words: int, each: int) -> None:
        if words * each > AT_ONCE or each > _OF_ONE:
            raise ValueError(
                f"{self!r} makes {each:,} features of each of {words:,} different words, more than "
                "can be held: use shorter words or fewer mismatches, or pass fewer sequences at a "
                "time."
            )


class _WordPairs(StringFunction):
    """A kernel of words as a primitive: the sum of weights over all pairs of words."""

    cell_time = 0.1

    def __init__(self, kernel: WordKernel) -> None:
        self.kernel = kernel
        self.features = FeatureMap(kernel) if kernel.has_features else None
        weights = list(kernel._pair_weights() or ())
        self.weights = np.zeros(MOST_DIFFERENT + 1)
        self.weights[: len(weights)] = weights[: MOST_DIFFERENT + 1]
        self.words = kernel._length, kernel._alphabet.size, bool(kernel.both_strands)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _WordPairs) and self.kernel == other.kernel

    def __hash__(self) -> int:
        return hash(self.kernel)

    def encode(self, X: Any) -> Strings:
        return self.kernel._encode(X)

    def values(
        self, left: Strings, rows: np.ndarray, right: Strings, columns: np.ndarray, out: np.ndarray
    ) -> None:
        word_pairs(*left, rows, *right, columns, *self.words, self.weights, out)


class Spectrum(WordKernel):
    """The spectrum kernel: how many words of length k two sequences have in common.

    ``k(x, z) = sum over words u of (count of u in x) * (count of u in z)``.

    Parameters
    ----------
    k : int, default=3
        Length of the words.
    alphabet : {"dna", "rna", "protein", "latin1"} or str of the characters, default="dna"
        In the first three, small letters are capital ones.
    unknown : {"error", "skip"}, default="error"
        Whether characters outside the alphabet are refused, or words with such a character left
        out, as is usual for the N of a genome.
    both_strands : bool, default=False
        Count the words of the reverse complement as well (DNA and RNA).

    References
    ----------
    Leslie, Eskin, Noble, The spectrum kernel: a string kernel for SVM protein classification, 2002.

    Examples
    --------
    >>> from maxmargin import SVC
    >>> from maxmargin.kernels import Spectrum
    >>> Spectrum(k=2)(["ACAC", "CACA", "GGGG"])
    array([[5., 4., 0.],
           [4., 5., 0.],
           [0., 0., 9.]])
    >>> SVC(kernel=Spectrum(2)).fit(["ACAC", "CACA", "GGTT", "TTGG"], [0, 0, 1, 1]).predict(["TTG"])
    array([1])
    """

    def __init__(
        self,
        k: int = 3,
        alphabet: str = "dna",
        unknown: str = "error",
        both_strands: bool = False,
    ) -> None:
        self.k = k
        self.alphabet = alphabet
        self.unknown = unknown
        self.both_strands = both_strands
        self._check()

    def _features(self, X: np.ndarray) -> sp.csr_array:
        strings, found = self._read(X)
        indptr, numbers, counts = counted(found, strings.begin)
        return sp.csr_array((counts, numbers, indptr), shape=(len(strings), self._n_features))

    def _features_of_words(self, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return np.arange(len(numbers) + 1), numbers


class Mismatch(WordKernel):
    """The mismatch kernel: words of length k in common, up to m different characters in each.

    ``phi_v(x)`` is the number of words of x that differ from v in at most m places.

    Parameters
    ----------
    k : int, default=5
    m : int, default=1
        Mismatches, fewer than k.
    alphabet, unknown, both_strands
        As in :class:`Spectrum`.

    References
    ----------
    Leslie, Eskin, Weston, Noble, Mismatch string kernels for SVM protein classification, NIPS 2002.

    Examples
    --------
    >>> from maxmargin.kernels import Mismatch
    >>> Mismatch(k=2, m=1)(["AC", "AG", "TT"])
    array([[7., 4., 2.],
           [4., 7., 2.],
           [2., 2., 7.]])
    """

    def __init__(
        self,
        k: int = 5,
        m: int = 1,
        alphabet: str = "dna",
        unknown: str = "error",
        both_strands: bool = False,
    ) -> None:
        self.k = k
        self.m = m
        self.alphabet = alphabet
        self.unknown = unknown
        self.both_strands = both_strands
        self._check()

    def _check(self) -> None:
        if count("m", self.m, 0) >= self._length:
            raise ValueError(
                f"m must be below k: with m={self.m} mismatches in words of k={self.k} characters "
                "all words are alike."
            )
        super()._check()

    @property
    def _features_of_one(self) -> int:
        k, size = self._length, self._alphabet.size
        return sum(comb(k, j) * (size - 1) ** j for j in range(self.m + 1))

    def _pair_weights(self) -> Sequence[float]:
        return met([int(d <= self.m) for d in range(self._length + 1)], self._alphabet.size)

    def _features_of_words(self, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        k, size, each = self._length, self._alphabet.size, self._features_of_one
        self._refuse_many(len(numbers), each)
        powers = size ** np.arange(k - 1, -1, -1)
        letters = numbers[:, None] // powers % size
        columns = np.empty((len(numbers), each), dtype=np.int64)
        last = 0
        for mismatches in range(self.m + 1):
            for places in combinations(range(k), mismatches):
                for steps in product(range(1, size), repeat=mismatches):
                    changed = numbers.copy()
                    for place, step in zip(places, steps, strict=True):
                        old = letters[:, place]
                        changed += ((old + step) % size - old) * powers[place]
                    columns[:, last] = changed
                    last += 1
        return np.arange(len(numbers) + 1) * each, columns.ravel()


class GappedKmer(WordKernel):
    """The gapped k-mer kernel: k characters in common at the same places of a window.

    A feature is a choice of k places of the window and k characters there; two windows with d
    different characters have ``C(window - d, k)`` features in common.

    Parameters
    ----------
    window : int, default=8
        Length of the words, with their gaps: the l of the reference. For binding sites in a genome
        10 or 11 is usual, with ``k`` 6 or 7 and both strands.
    k : int, default=5
        Places that must agree; the other ``window - k`` are gaps.
    alphabet, unknown, both_strands
        As in :class:`Spectrum`.
    estimate : bool, default=False
        Compare sequences by how often each word of the window is expected in them, given how often
        its parts with gaps are there: the "estimated l-mers with truncated filter" of gkm-SVM and
        LS-GKM. For windows up to 15 characters, without :meth:`features`.
    max_mismatches : int, optional
        Leave out pairs of words of which more characters differ: the d of LS-GKM, 3 by default
        there. Then the kernel is no product of features, and not proven to be valid.

    References
    ----------
    Ghandi, Lee, Mohammad-Noori, Beer, Enhanced regulatory sequence prediction using gapped k-mer
    features, PLoS Computational Biology 10, 2014 (gkm-SVM).

    Examples
    --------
    >>> from maxmargin.kernels import GappedKmer
    >>> GappedKmer(window=3, k=2)(["ACG", "ATG"])
    array([[3., 1.],
           [1., 3.]])
    """

    def __init__(
        self,
        window: int = 8,
        k: int = 5,
        alphabet: str = "dna",
        unknown: str = "error",
        both_strands: bool = False,
        estimate: bool = False,
        max_mismatches: int | None = None,
    ) -> None:
        self.window = window
        self.k = k
        self.alphabet = alphabet
        self.unknown = unknown
        self.both_strands = both_strands
        self.estimate = estimate
        self.max_mismatches = max_mismatches
        self._check()

    def _check(self) -> None:
        if count("k", self.k) > count("window", self.window):
            raise ValueError(
                f"k={self.k} places of a window must agree, and it has window={self.window}: "
                "choose k of at most that."
            )
        super()._check()
        if self.max_mismatches is not None:
            count("max_mismatches", self.max_mismatches, 0)
        if not self.has_features and (
            self.window > MOST_PAIRED or any(self._pair_weights()[MOST_DIFFERENT + 1 :])
        ):
            raise ValueError(
                f"estimate and max_mismatches need a window of at most {MOST_PAIRED} characters, "
                f"of which at most {MOST_DIFFERENT} may differ; got window={self.window} and "
                f"k={self.k}. Choose a shorter window, a larger k or fewer max_mismatches."
            )

    @property
    def validity(self) -> Validity:
        """Valid: a product of features, or the square of estimates; unless mismatches are cut."""
        return Validity.VALID if self.max_mismatches is None else Validity.UNPROVEN

    @property
    def _length(self) -> int:
        return int(self.window)

    @property
    def _n_features(self) -> int:
        return comb(self.window, self.k) * self._alphabet.size**self.k

    @property
    def has_features(self) -> bool:
        """Whether :meth:`features` can write them down: not those of estimates."""
        return not self.estimate and self.max_mismatches is None

    @property
    def _features_of_one(self) -> int:
        return comb(self.window, self.k) if self.has_features else _MANY

    def _pair_weights(self) -> list[float]:
        size, most = self._alphabet.size, self.max_mismatches
        weights: list[float] = [comb(self.window - d, self.k) for d in range(self.window + 1)]
        if self.estimate:
            exact = met(estimates(self.window, self.k, size), size)
            weights = [weight / exact[0] for weight in exact]
        return [w if most is None or d <= most else 0 for d, w in enumerate(weights)]

    def _features_of_words(self, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if not self.has_features:
            raise ValueError(
                f"{self!r} has no features that could be written down, nor weights of them: for "
                "these use estimate=False and max_mismatches=None."
            )
        size, each = self._alphabet.size, comb(self.window, self.k)
        self._refuse_many(len(numbers), each)
        letters = numbers[:, None] // size ** np.arange(self.window - 1, -1, -1) % size
        powers = size ** np.arange(self.k - 1, -1, -1)
        columns = np.empty((len(numbers), each), dtype=np.int64)
        for choice, places in enumerate(combinations(range(self.window), self.k)):
            columns[:, choice] = letters[:, places] @ powers + choice * size**self.k
        return np.arange(len(numbers) + 1) * each, columns.ravel()

    def feature_names(self, columns: Iterable[int]) -> list[str]:
        """Return the words that some columns count, with dots for gaps: ``AC..G``."""
        choices = list(combinations(range(self.window), self.k))
        names = []
        for column in columns:
            choice, number = divmod(int(column), self._alphabet.size**self.k)
            name = ["."] * self.window
            for place, letter in zip(
                choices[choice], self._alphabet.word(number, self.k), strict=True
            ):
                name[place] = letter
            names.append("".join(name))
        return names
