"""Few rows in a basis of what they span: as many numbers each as there are rows, not columns.

    X' = Q R,      X w = R' v   with   v = Q' w,   ||w|| = ||v||   where w is a combination of rows

Q is orthonormal whatever the rank of X, and is kept as the reflections that it is a product of.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg.lapack import dgeqrf, dormqr

_BLOCK = 64  # columns that LAPACK may take at a time, if it is given the room


class Span:
    """Rows of X, (n, d) with n at most d, by their coordinates in n directions.

    Attributes
    ----------
    rows : float64 array (n, n)
        ``R'``.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.backends.cpu.linear.span import Span
    >>> span = Span(np.array([[0.0, 3.0, 4.0]]))
    >>> np.abs(span.rows), span.weights(span.coordinates(np.array([7.0, 3.0, 4.0, 0.5]))).round(12)
    (array([[5.]]), array([0. , 3. , 4. , 0.5]))
    """

    def __init__(self, X: np.ndarray) -> None:
        self.n, self.d = X.shape
        columns = np.array(X.T, dtype=np.float64, order="F")
        self._reflections, self._tau, *_ = dgeqrf(columns, _BLOCK * self.n, overwrite_a=True)
        self.rows = np.ascontiguousarray(np.triu(self._reflections[: self.n]).T)

    def coordinates(self, theta: np.ndarray) -> np.ndarray:
        """``v`` of weights (..., d); what comes after them, an intercept's, stays as it is."""
        v = self._times(theta[..., : self.d], "T")[..., : self.n]
        return np.concatenate([v, theta[..., self.d :]], axis=-1)

    def weights(self, theta: np.ndarray) -> np.ndarray:
        """``w = Q v`` of coordinates (..., n), in the same manner."""
        padded = np.zeros((*theta.shape[:-1], self.d))
        padded[..., : self.n] = theta[..., : self.n]
        return np.concatenate([self._times(padded, "N"), theta[..., self.n :]], axis=-1)

    def _times(self, w: np.ndarray, which: str) -> np.ndarray:
        """``Q`` or its transpose times every w, (..., d), with all d columns of it."""
        columns = w.reshape(-1, self.d).T
        room = _BLOCK * (columns.shape[1] + _BLOCK + 1)
        product, *_ = dormqr("L", which, self._reflections, self._tau, columns, room)
        return product.T.reshape(w.shape)
