"""Pre-images of the Gaussian kernel: points whose image is nearest to a place in feature space.

For a place ``sum_i g_i phi(x_i)`` the point z that is nearest to it, up to its length, has

    z = sum_i g_i k(z, x_i) x_i / sum_i g_i k(z, x_i)

which is iterated from a training point. It is a mean of training points, with weights of either
sign; where the weights sum to nothing the iteration has lost its way and begins anew.

Reference: Mika, Schoelkopf, Smola, Mueller, Scholz and Raetsch, NIPS 11, 1999.
"""

from __future__ import annotations

import numpy as np

from maxmargin.kernels import Kernel

_STEPS = 500  # at most; some dozens are usual
_SETTLED = 1e-8  # of the spread of the points, that a step changes at its end
_NOTHING = 1e-8  # of the sum of the weights' sizes, below which their sum is zero
_ROWS = 512  # pre-images that are looked for at a time


def fixed_points(
    kernel: Kernel, X: np.ndarray, weights: np.ndarray, starts: np.ndarray
) -> tuple[np.ndarray, int]:
    """Return the pre-images (q, d) of places given by weights (q, n), and how many did not settle.

    Parameters
    ----------
    kernel : Kernel
        Gaussian, resolved.
    X : float array (n, d)
    weights : float array (q, n)
    starts : int array (q,)
        Training rows to begin at.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.kernel_methods.preimages import fixed_points
    >>> from maxmargin.kernels import RBF
    >>> X = np.array([[0.0], [1.0]])
    >>> fixed_points(RBF(0.1), X, np.array([[0.5, 0.5]]), np.array([0]))[0].round(4)
    array([[0.5]])
    """
    Z, lost = X[starts].astype(np.float64), 0
    spread = float(np.abs(X - X.mean(axis=0)).max()) or 1.0
    for first in range(0, len(Z), _ROWS):
        some = slice(first, first + _ROWS)
        lost += _settle(kernel, X, weights[some], Z[some], _SETTLED * spread)
    return Z, lost


def _settle(
    kernel: Kernel, X: np.ndarray, weights: np.ndarray, Z: np.ndarray, settled: float
) -> int:
    """Iterate Z in place; returns how many of them have not settled."""
    others = np.argsort(-weights, axis=1)  # where to begin anew, in turn
    moving, again = np.arange(len(Z)), np.zeros(len(Z), dtype=np.int64)
    for _ in range(_STEPS):
        pull = weights[moving] * kernel(Z[moving], X)
        total = pull.sum(axis=1)
        found = np.abs(total) > _NOTHING * np.abs(pull).sum(axis=1)
        after = (pull @ X) / np.where(found, total, 1.0)[:, None]
        astray = moving[~found]
        after[~found] = X[others[astray, again[astray] % len(X)]]
        again[astray] += 1
        still = ~found | (np.abs(after - Z[moving]).max(axis=1) > settled)
        Z[moving] = after
        moving = moving[still]
        if not len(moving):
            break
    return len(moving)
