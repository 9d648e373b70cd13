"""Systems with a positive matrix, or nearly: Newton's steps, whatever the units of the data.

Rows and columns are divided by the roots of the diagonal first, so that a column in millimetres
weighs as much as one in kilometres. A singular matrix is made regular, and what that changes is
taken back by a few corrections from the residual.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.sparse.linalg import LinearOperator, cg

DIRECT = 1500  # unknowns up to which a matrix is made and factorised
_RIDGE, _CORRECTIONS = 1e-13, 3


def solved(matrix: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Solve with a matrix (m, m) for a right side (m,).

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.backends.systems import solved
    >>> solved(np.diag([1e12, 1e-12]), np.array([1e12, 1e-12]))
    array([1., 1.])
    """
    size = np.sqrt(np.maximum(np.diag(matrix), 0.0))
    size[size == 0] = 1.0
    scaled, ridge = matrix / np.outer(size, size), _RIDGE
    while True:
        try:
            factor = cho_factor(scaled + ridge * np.eye(len(matrix)), check_finite=False)
            break
        except LinAlgError:
            ridge *= 100.0
    wanted = right / size
    x = cho_solve(factor, wanted, check_finite=False)
    for _ in range(_CORRECTIONS):
        x += cho_solve(factor, wanted - scaled @ x, check_finite=False)
    return x / size


def solved_by_products(
    product: Callable[[np.ndarray], np.ndarray], right: np.ndarray
) -> np.ndarray:
    """Solve with a matrix that is known by its products only, by conjugate gradients."""
    operator = LinearOperator((len(right), len(right)), matvec=product, dtype=np.float64)
    return cg(operator, right, rtol=1e-12)[0]
