"""The bag of words: texts by the words that they have in common."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.feature_extraction import FeatureHasher
from sklearn.feature_extraction.text import HashingVectorizer

from maxmargin.backends.data import as_table
from maxmargin.kernels.sequences.alphabet import sequences_of
from maxmargin.kernels.sequences.base import FeatureKernel, count, looked_up


class BagOfWords(FeatureKernel):
    """The bag of words: products of how often each word is in two texts.

    ``k(x, z) = sum over words w of (count of w in x) * (count of w in z)``.

    Parameters
    ----------
    ngram : int, default=1
        Also count sequences of up to so many words.
    binary : bool, default=False
        Whether a word is there, in place of how often.
    lowercase : bool, default=True
    n_features : int, default=2**24
        Words are numbered by a hash, so that no vocabulary has to be learned; of V words, about
        ``V^2 / (2 n_features)`` pairs share a number.

    Notes
    -----
    Words are those of scikit-learn's ``HashingVectorizer``: at least two letters or digits. For
    weights by rarity put ``TfidfVectorizer`` and the kernel ``Linear()`` in a pipeline.

    Examples
    --------
    >>> from maxmargin.kernels import BagOfWords
    >>> BagOfWords()(["the margin of the machine", "the kernel machine", "ten words"])
    array([[7., 3., 0.],
           [3., 3., 0.],
           [0., 0., 2.]])
    """

    def __init__(
        self,
        ngram: int = 1,
        binary: bool = False,
        lowercase: bool = True,
        n_features: int = 2**24,
    ) -> None:
        self.ngram = ngram
        self.binary = binary
        self.lowercase = lowercase
        self.n_features = n_features
        self._check()

    def _check(self) -> None:
        count("ngram", self.ngram)
        if count("n_features", self.n_features, 2) > 2**31 - 1:
            raise ValueError(
                f"n_features must be below 2**31, the range of the hash; got {self.n_features}."
            )

    def _hashed(self) -> HashingVectorizer:
        self._check()
        return HashingVectorizer(
            ngram_range=(1, self.ngram),
            binary=self.binary,
            lowercase=self.lowercase,
            n_features=self.n_features,
            alternate_sign=False,
            norm=None,
        )

    def _features(self, X: np.ndarray) -> sp.csr_array:
        texts = sequences_of(X, self, least=0)
        return sp.csr_array(self._hashed().transform(texts), dtype=np.float64)

    def feature_names(self, columns: Iterable[int]) -> list[str]:
        """Return the numbers of the columns: a hash does not say which word it came from."""
        return [f"word {int(column)}" for column in columns]

    def position_values(self, X: Any, columns: np.ndarray, weights: np.ndarray) -> list[np.ndarray]:
        """``weights . phi(x)`` by the words of each text (and pairs of them, and so on)."""
        analyse = self._hashed().build_analyzer()
        hasher = FeatureHasher(self.n_features, input_type="string", alternate_sign=False)
        values = []
        for text in sequences_of(as_table(X), self, least=0):
            terms = list(dict.fromkeys(analyse(text))) if self.binary else analyse(text)
            numbers = hasher.transform([term] for term in terms).indices  # one in each row
            values.append(looked_up(numbers, columns, weights))
        return values
