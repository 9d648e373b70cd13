"""Kernels that are given, not computed from a formula: a matrix of values, or a function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from maxmargin.backends import program as op
from maxmargin.backends.program import Program, View
from maxmargin.kernels.base import Input, Kernel, Validity


class Precomputed(Kernel):
    """Kernel values that the caller computed: ``X[i, j]`` is the value itself.

    ``fit`` takes the square matrix of the training points, ``predict`` one row per new point and
    one column per training point.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.kernels import Precomputed
    >>> (2.0 * Precomputed())(np.eye(2))
    array([[2., 0.],
           [0., 2.]])
    """

    def __init__(self) -> None:
        pass

    @property
    def input(self) -> Input:
        """A matrix in place of data."""
        return Input.MATRIX

    @property
    def validity(self) -> Validity:
        """Not proven: it depends on the matrix."""
        return Validity.UNPROVEN

    def _emit(self, program: Program, view: View) -> None:
        program.push(op.PRECOMPUTED, view)


class OfRows:
    """Kernel matrix by calling a function of two points for every pair; comparable, picklable."""

    by_pairs = True

    def __init__(self, function: Callable[..., Any], params: dict[str, Any]) -> None:
        self.function, self.params = function, params

    def __call__(self, X: Any, Z: Any) -> np.ndarray:
        """Return the values for all pairs."""
        X, Z = _rows(X), _rows(Z)
        return np.array([[self.function(x, z, **self.params) for z in Z] for x in X])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, OfRows):
            return NotImplemented
        return self.function == other.function and self.params == other.params

    def __hash__(self) -> int:
        return hash(self.function)


def _rows(X: Any) -> Any:
    """Points one by one: rows of an array, of a table, or of CSR (each a matrix of one row)."""
    if sp.issparse(X):
        return [X[[i]] for i in range(X.shape[0])]
    if isinstance(X, list) and isinstance(X[0], list | tuple):
        return np.asarray(X)
    return X.to_numpy() if hasattr(X, "to_numpy") else X


class FunctionKernel(Kernel):
    """Any Python function ``function(X, Z)`` that returns one value per pair of rows.

    Parameters
    ----------
    function : callable
        Takes two collections of points (of any type) with n and m of them and returns an array of
        shape (n, m). It is called on parts of the data, so a value may depend on its pair only.

    Examples
    --------
    >>> from maxmargin.kernels import FunctionKernel
    >>> common = lambda A, B: [[len(set(a) & set(b)) for b in B] for a in A]
    >>> FunctionKernel(common)(["kernel", "margin"])
    array([[5., 2.],
           [2., 6.]])
    """

    def __init__(self, function: Callable[[Any, Any], Any]) -> None:
        self.function = function

    @classmethod
    def of_rows(
        cls, function: Callable[..., Any], params: dict[str, Any] | None = None
    ) -> FunctionKernel:
        """Return the kernel of a function of two points, called for one pair after the other.

        Examples
        --------
        >>> from maxmargin.kernels import FunctionKernel
        >>> common = FunctionKernel.of_rows(lambda a, b: len(set(a) & set(b)))
        >>> common(["kernel", "margin"])
        array([[5., 2.],
               [2., 6.]])
        """
        return cls(OfRows(function, params or {}))

    @property
    def input(self) -> Input:
        """Objects of any type; vectors where the function has ``requires_vector_input``."""
        wants = getattr(self.function, "requires_vector_input", False)  # of scikit-learn's kernels
        return Input.VECTORS if wants else Input.OBJECTS

    @property
    def validity(self) -> Validity:
        """Not proven: nothing is known of the function."""
        return Validity.UNPROVEN

    def _emit(self, program: Program, view: View) -> None:
        program.push(op.FUNCTION, view, self.function)
