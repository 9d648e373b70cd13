"""Gram matrices and their derivatives by calling a scikit-learn kernel object.

For kernel objects that :mod:`maxmargin.kernels.scikit_learn` cannot translate, such as a user's own
subclass: ``__call__`` returns the whole matrix, or that and its gradient.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing

from maxmargin.backends.threads import ALONE, Workers
from maxmargin.backends.views import Views
from maxmargin.gram.parametric import stripes
from maxmargin.kernels.scikit_learn import GivenParameters


class CalledGram:
    """Gram matrices of one data set under a kernel object, noise included.

    Parameters
    ----------
    X : validated data, or Views of them
    parameters : GivenParameters
        Of the kernel object.
    """

    calls_python = True

    def __init__(self, X: Any, parameters: GivenParameters) -> None:
        self.views = Views.of(X)
        self.n = self.views.n
        self.parameters = parameters

    def take(self, rows: np.ndarray) -> CalledGram:
        """Matrices of some of the points."""
        return CalledGram(_safe_indexing(self.views.X, rows), self.parameters)

    def at(self, theta: np.ndarray) -> CalledGramAt:
        """The matrix at some values of the parameters, given by their logarithms."""
        return CalledGramAt(self.parameters.given_at(theta), self.views.X)


class CalledGramAt:
    """The Gram matrix of a kernel object at one value of its hyperparameters."""

    def __init__(self, kernel: Any, X: Any) -> None:
        self.kernel, self.X = kernel, X

    def lower_triangle(self, workers: Workers = ALONE) -> np.ndarray:
        """Values on and below the diagonal."""
        return np.array(self.kernel(self.X), dtype=np.float64, order="C")

    def contract(
        self,
        weights: Callable[[slice], np.ndarray],
        coefficients: np.ndarray,
        workers: Workers = ALONE,
    ) -> tuple[np.ndarray, np.ndarray]:
        """``sum_ij W_ij dK_ij`` (p,) and ``dK @ coefficients`` (p, n, m), by all parameters."""
        slopes = np.asarray(self.kernel(self.X, eval_gradient=True)[1], dtype=np.float64)
        sums = np.zeros(slopes.shape[2])
        for rows in stripes(len(slopes)):
            W = weights(rows).copy()
            W[:, : rows.start] *= 2.0  # and their mirror images
            sums += np.einsum("ij,ijp->p", W, slopes[rows, : rows.stop])
        return sums, np.einsum("ijp,jm->pim", slopes, coefficients)
