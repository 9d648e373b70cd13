"""What a rule made of words says of documents: values, labels, their order, round by round."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils.validation import check_is_fitted

from maxmargin.ensemble.words.documents import as_documents, is_text, word_sets
from maxmargin.ensemble.words.labels import LabelReading
from maxmargin.ensemble.words.ranking import RankingScores, ranking_scores
from maxmargin.ensemble.words.table import WordTable
from maxmargin.estimators.base import Estimator


class WordClassifier(ClassifierMixin, Estimator):
    """A fitted rule: the value of each label is a sum over the words that a document has.

    A subclass fits; it sets the attributes below.
    """

    vectorizer: Any
    vectorizer_: Any
    words_: WordTable
    classes_: np.ndarray
    intercept_: np.ndarray
    thresholds_: np.ndarray
    _labels: LabelReading
    _n_words: int
    _columns: np.ndarray  # the words found, each once
    _weights: np.ndarray  # what each changes the values by, (n_found, k)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = tags.input_tags.positive_only = True
        tags.classifier_tags.multi_label = True
        tags.classifier_tags.poor_score = True  # on numbers that are no counts
        return tags

    def _reads(self, X: Any) -> bool:
        """Whether X is text, for a vectorizer."""
        return is_text(X) or (self.vectorizer is not None and not _is_table(X))

    def _read(self, X: Any) -> sp.csr_matrix:
        """Read new documents, as sets of the words of the fit."""
        check_is_fitted(self, "words_")
        known = hasattr(self, "vectorizer_")
        if not self._reads(X) and (not known or _is_table(X)):
            if not known:
                return word_sets(self._validated_points(X))
            rows = word_sets(X)
            if rows.shape[1] != self._n_words:
                raise ValueError(
                    f"X has {rows.shape[1]} columns, and the vectorizer of the fit makes "
                    f"{self._n_words}: pass documents, or vectorizer_.transform(documents)."
                )
            return rows
        if not known:
            raise ValueError(
                "X are documents, and this WordStumpBooster was fitted on counts: pass the counts "
                "that the same vectorizer makes of them, or fit it on documents."
            )
        X = as_documents(X) if self.vectorizer is None else X
        return word_sets(self.vectorizer_.transform(X))

    def _names(self) -> np.ndarray:
        """Names of the words, by the number of their column."""
        if hasattr(self, "vectorizer_") and hasattr(self.vectorizer_, "get_feature_names_out"):
            return np.asarray(self.vectorizer_.get_feature_names_out(), dtype=object)
        if hasattr(self, "feature_names_in_"):
            return self.feature_names_in_
        return np.array([f"x{j}" for j in range(self._n_words)], dtype=object)

    def _values_of(self, rows: Any) -> np.ndarray:
        return values_of(rows, self._columns, self._weights, self.intercept_)

    def _shaped(self, values: np.ndarray) -> np.ndarray:
        """Values as ``decision_function`` has them: one column for two labels."""
        return values[:, 0] if not self._labels.several and values.shape[1] == 1 else values

    def _labels_of(self, values: np.ndarray) -> Any:
        """Labels of documents by their values (n, k)."""
        if self._labels.several:
            return self._labels.written(values > self.thresholds_)
        if values.shape[1] == 1:
            return self.classes_[(values[:, 0] > self.thresholds_[0]).astype(int)]
        return self.classes_[np.argmax(values, axis=1)]

    def decision_function(self, X: Any) -> np.ndarray:
        """Values of the labels: positive where the words speak for one.

        Parameters
        ----------
        X : documents or counts, as in :meth:`fit`

        Returns
        -------
        values : array of shape (n_samples, n_labels), or (n_samples,) where there are two labels of
            which each document has one
        """
        return self._shaped(self._values_of(self._read(X)))

    def predict(self, X: Any) -> Any:
        """Labels of documents, in the form in which those of the fit were given.

        Parameters
        ----------
        X : documents or counts, as in :meth:`fit`

        Returns
        -------
        labels : array of shape (n_samples,), indicator matrix (n_samples, n_labels), or list of
            tuples
        """
        return self._labels_of(self._values_of(self._read(X)))

    def rank(self, X: Any) -> np.ndarray:
        """Put all labels in order for each document, the one with the largest value first.

        Parameters
        ----------
        X : documents or counts, as in :meth:`fit`

        Returns
        -------
        labels : array of shape (n_samples, n_classes)
        """
        values = self._of_classes(self._values_of(self._read(X)))
        return self.classes_[np.argsort(-values, axis=1, kind="stable")]

    def ranking_scores(self, X: Any, y: Any) -> RankingScores:
        """Judge that order: one-error, coverage, average precision and ranking loss.

        Parameters
        ----------
        X : documents or counts, as in :meth:`fit`
        y : labels, in the form of those in the fit
        """
        values = self._of_classes(self._values_of(self._read(X)))
        truth = self._labels.truth(y)
        return ranking_scores(truth if truth.shape == values.shape else _both(truth), values)

    def _of_classes(self, values: np.ndarray) -> np.ndarray:
        """Values of all classes, also of the first of two."""
        return values if values.shape[1] == len(self.classes_) else np.hstack([-values, values])

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Share of the documents whose labels are all right and complete."""
        if not hasattr(self, "_labels") or not self._labels.several:
            return super().score(X, y, sample_weight)
        chosen = self._values_of(self._read(X)) > self.thresholds_
        return float(accuracy_score(self._labels.truth(y), chosen, sample_weight=sample_weight))

    def staged_decision_function(self, X: Any) -> Iterator[np.ndarray]:
        """Yield the values of the labels after each round."""
        for values in self._staged(X):
            yield self._shaped(values).copy()

    def staged_predict(self, X: Any) -> Iterator[Any]:
        """Yield the labels after each round, by the thresholds of the whole fit."""
        return map(self._labels_of, self._staged(X))

    def _staged(self, X: Any) -> Iterator[np.ndarray]:
        """Values (n, k) after each round; the same array each time."""
        by_word = self._read(X).tocsc()
        values = np.zeros((by_word.shape[0], len(self._labels.names)))
        for column, present, absent in zip(
            self.words_.columns, self.words_.present, self.words_.absent, strict=True
        ):
            values += absent
            have = by_word.indices[by_word.indptr[column] : by_word.indptr[column + 1]]
            values[have] += present - absent
            yield values


def linear_of(columns: np.ndarray, table: Any) -> tuple[np.ndarray, np.ndarray]:
    """Words of some rounds, each once, and what they change the values by, (n_words, k)."""
    distinct, at = np.unique(columns, return_inverse=True)
    weights = np.zeros((len(distinct), table.present.shape[1]))
    np.add.at(weights, at, table.present - table.absent)
    return distinct, weights


def values_of(
    rows: Any, columns: np.ndarray, weights: np.ndarray, intercept: np.ndarray
) -> np.ndarray:
    """Values of documents, (n, k)."""
    return rows[:, columns] @ weights + intercept


def _both(truth: np.ndarray) -> np.ndarray:
    """Two labels that exclude each other, from the second."""
    return np.hstack([~truth, truth])


def _is_table(X: Any) -> bool:
    """Whether X is a matrix of numbers."""
    return sp.issparse(X) or (len(np.shape(X)) == 2 and np.asarray(X).dtype.kind in "biuf")
