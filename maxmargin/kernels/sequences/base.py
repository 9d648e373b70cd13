"""What all kernels on sequences share, and those with features that can be written down."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse as sp

from maxmargin.backends import program as op
from maxmargin.backends.data import as_table
from maxmargin.backends.program import Program, View
from maxmargin.kernels.base import Input, Kernel, Validity
from maxmargin.kernels.sequences.alphabet import Alphabet

_DENSE_FROM = 0.25  # share of entries that are not zero, from which dense products win
_MOST_COLUMNS = 1 << 62


class SequenceKernel(Kernel):
    """A kernel on strings: a list or column of ``str`` or ``bytes``, or a column of a table.

    In a table, ``.on("name")`` chooses the column.
    """

    @property
    def input(self) -> Input:
        """Sequences."""
        return Input.SEQUENCES


class FeatureKernel(SequenceKernel):
    """A kernel on sequences that is a product of features: ``k(x, z) = phi(x) . phi(z)``.

    The features are sparse, and a column means the same in all data, so that linear machines learn
    from :meth:`features` what kernel machines learn from the kernel.
    """

    @property
    def validity(self) -> Validity:
        """Valid: a product of features."""
        return Validity.VALID

    @property
    def has_features(self) -> bool:
        """Whether :meth:`features` can write them down."""
        return True

    def features(self, X: Any) -> sp.csr_array:
        """Features of sequences, one row each; ``k(X, Z) == features(X) @ features(Z).T``.

        Parameters
        ----------
        X : list, array or column of n sequences

        Returns
        -------
        features : CSR array of shape (n, n_features), float64
        """
        return self._features(as_table(X))

    @abstractmethod
    def _features(self, X: np.ndarray) -> sp.csr_array:
        """Return the features of sequences in an array of objects, sorted in each row."""

    @abstractmethod
    def feature_names(self, columns: Iterable[int]) -> list[str]:
        """Say what some columns of :meth:`features` count."""

    @abstractmethod
    def position_values(self, X: Any, columns: np.ndarray, weights: np.ndarray) -> list[np.ndarray]:
        """``weights . phi(x)`` by positions: arrays that sum to it, one for each sequence.

        A feature's part goes in equal shares to the characters that it was read from.

        Parameters
        ----------
        X : list, array or column of sequences
        columns : int array (p,), sorted
            Of the features that have a weight.
        weights : float array (p,)
        """

    def _emit(self, program: Program, view: View) -> None:
        program.push(op.DOT, (*view, op.Map(FeatureMap(self))))


class FeatureMap:
    """The features of a kernel on sequences as a step of a view: comparable and picklable."""

    def __init__(self, kernel: FeatureKernel) -> None:
        self.kernel = kernel

    def __call__(self, X: Any) -> Any:
        """Return the features, dense where few of them are zero."""
        features = self.kernel.features(X)
        cells = features.shape[0] * features.shape[1]
        return features.toarray() if features.nnz > _DENSE_FROM * cells else features

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FeatureMap) and self.kernel == other.kernel

    def __hash__(self) -> int:
        return hash(self.kernel)


def looked_up(numbers: np.ndarray, columns: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Weight of each of some features; zero for those that have none."""
    if not len(columns):
        return np.zeros(np.shape(numbers))
    place = np.minimum(np.searchsorted(columns, numbers), len(columns) - 1)
    return np.where(columns[place] == numbers, weights[place], 0.0)


def count(name: str, value: Any, least: int = 1) -> int:
    """Check a whole number of at least so many."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
        raise ValueError(f"{name} must be a whole number of at least {least}, got {value!r}.")
    return int(value)


def check_unknown(unknown: Any) -> bool:
    """Whether characters outside the alphabet are to be skipped."""
    if unknown not in ("error", "skip"):
        raise ValueError(f"unknown must be 'error' or 'skip', got {unknown!r}.")
    return bool(unknown == "skip")


def check_columns(columns: int, kernel: Kernel, alphabet: Alphabet, name: str = "k") -> None:
    """Refuse features that are too many to be numbered."""
    if columns > _MOST_COLUMNS:
        raise ValueError(
            f"{kernel!r} has {columns:.1e} features over {alphabet.size} letters, more than there "
            f"are numbers of 64 bits: lower {name}, or choose a smaller alphabet."
        )
