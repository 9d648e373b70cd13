"""Documents, as text or as counts, become sets of words.

Text is read by scikit-learn's ``CountVectorizer``, or by a vectorizer of the user's own; what is
left of it is which words a document has. Counts are a matrix of a row for each document and a
column for each word, where a positive entry says that the document has it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.feature_extraction.text import CountVectorizer

from maxmargin.backends.data import as_table

READING = {  # parameters that CountVectorizer reads text by, and their values where none is given
    "ngram_range": (1, 1),
    "lowercase": True,
    "token_pattern": r"(?u)\b\w\w+\b",
    "stop_words": None,
    "min_df": 1,
    "max_df": 1.0,
    "max_features": None,
}


def is_text(X: Any) -> bool:
    """Whether X are documents and not numbers: a column of text, or a list of it.

    >>> is_text(["a word", "another"]), is_text([[1, 0], [0, 2]])
    (True, False)
    """
    if isinstance(X, str | bytes):
        return True
    if sp.issparse(X) or not hasattr(X, "__len__") or not len(X):
        return False
    if hasattr(X, "columns"):  # a frame: text where a column is
        return any(isinstance(value, str) for value in np.asarray(X[:1]).ravel())
    shape = getattr(X, "shape", None)
    if shape is not None and len(shape) != 1:
        return getattr(X, "dtype", None) is not None and X.dtype.kind in "US"
    numbers = getattr(getattr(X, "dtype", None), "kind", "") in tuple("biufc")
    return not numbers and any(isinstance(item, str | bytes) for item in X)


def as_documents(X: Any) -> np.ndarray:
    """Return documents as an array of str of shape (n,), or say what is wrong with them.

    >>> as_documents(["a word", 7])
    Traceback (most recent call last):
    ...
    ValueError: A document is a str, and document 1 is of type int: 7. ...
    """
    if isinstance(X, str | bytes):
        raise ValueError(
            "Iterable over raw text documents expected, string object received: pass a list of "
            "documents, [X] for one."
        )
    table = as_table(X)
    if table.ndim == 2 and table.shape[1] != 1:
        raise ValueError(
            f"Documents are one column of text, and X has {table.shape[1]}: choose one of them, or "
            "join them into one."
        )
    documents = table.ravel()
    for i, document in enumerate(documents):
        if not isinstance(document, str):
            raise ValueError(
                f"A document is a str, and document {i} is of type {type(document).__name__}: "
                f"{str(document)[:40]}. An empty one is '', and bytes want to be decoded."
            )
    return documents


def vectorizer_of(machine: Any) -> Any:
    """Return what reads a machine's text: its own vectorizer, not fitted, or a CountVectorizer."""
    if machine.vectorizer is None:
        return CountVectorizer(**{name: getattr(machine, name) for name in READING}, binary=True)
    given = [name for name, usual in READING.items() if getattr(machine, name) != usual]
    if given:
        raise ValueError(
            f"{', '.join(given)} would be ignored: with vectorizer= given, text is read as that "
            "says. Set them there."
        )
    return clone(machine.vectorizer)


def word_sets(counts: Any) -> sp.csr_matrix:
    """Return counts, sparse or dense, as a CSR matrix that has an entry for every word there is.

    >>> word_sets(np.array([[0.0, 2.0], [0.0, 0.0]])).indices
    array([1], dtype=int32)
    """
    rows = sp.csr_matrix(counts)
    if rows.nnz and rows.data.min() < 0:
        raise ValueError(
            "Negative values in data passed to WordStumpBooster: X counts words, or weighs them, "
            "and a document has a word where its entry is positive."
        )
    own = rows is counts or np.may_share_memory(rows.data, getattr(counts, "data", rows.data))
    if not rows.has_canonical_format or (rows.data == 0).any():
        rows = rows.copy() if own else rows
        rows.sum_duplicates()
        rows.eliminate_zeros()
    present = np.ones(rows.nnz, dtype=np.int8)
    return sp.csr_matrix((present, rows.indices, rows.indptr), shape=rows.shape)
