"""Kernels that are given, not computed from a formula: a matrix of values, or a function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

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

    @property
    def input(self) -> Input:
        """Objects of any type: the function gets what the caller passed."""
        return Input.OBJECTS

    @property
    def validity(self) -> Validity:
        """Not proven: nothing is known of the function."""
        return Validity.UNPROVEN

    def _emit(self, program: Program, view: View) -> None:
        program.push(op.FUNCTION, view, self.function)
