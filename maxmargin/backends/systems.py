"""Systems with a positive matrix, or nearly: Newton's steps, whatever the units of the data.

Rows and columns are divided by the roots of the diagonal first, so that a column in millimetres
weighs as much as one in kilometres. A singular matrix is made regular, and what that changes is
taken back by a few corrections from the residual. LAPACK is called as it is: what SciPy's own
functions check first takes ten times as long as a small system.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs
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
    if not len(right):  # LAPACK refuses
        return np.zeros(0)
    size = np.sqrt(np.maximum(np.diag(matrix), 0.0))
    size[size == 0] = 1.0
    scaled, ridge = matrix / np.outer(size, size), _RIDGE
    while True:
        factor, failed = dpotrf((scaled + ridge * np.eye(len(matrix))).T, overwrite_a=True)
        if not failed:
            break
        ridge *= 100.0
    wanted = right / size
    x = dpotrs(factor, wanted)[0]
    for _ in range(_CORRECTIONS):
        x += dpotrs(factor, wanted - scaled @ x)[0]
    return x / size


def solved_by_products(
    product: Callable[[np.ndarray], np.ndarray], right: np.ndarray
) -> np.ndarray:
    """Solve with a matrix that is known by its products only, by conjugate gradients."""
    operator = LinearOperator((len(right), len(right)), matvec=product, dtype=np.float64)
    return cg(operator, right, rtol=1e-12)[0]
