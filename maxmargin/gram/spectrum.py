"""What the eigenvalues of a Gram matrix say of it."""

from __future__ import annotations

from enum import StrEnum
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg.lapack import dpotrf

from maxmargin.backends.threads import on_one_blas_thread
from maxmargin.kernels.validity import examine

_ROUNDING = 1e-10  # part of the largest eigenvalue below which a negative one counts as zero


class Definiteness(StrEnum):
    """What is known about a Gram matrix being positive semidefinite."""

    PROVEN = "positive semidefinite by construction"
    COMPUTED = "positive semidefinite on the training points"
    UNKNOWN = "not known to be positive semidefinite"
    INDEFINITE = "indefinite"


class Spectrum:
    """What the eigenvalues of a Gram matrix say of it, computed when someone asks.

    Until then it keeps values between at most 512 of the points. A pickle holds the answer.

    Parameters
    ----------
    block : array of shape (m, m)
        Values between these points.
    whole : bool
        Whether these are all points.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.gram import Spectrum
    >>> print(Spectrum(np.diag([1.0, -1.0]), whole=True).definiteness)
    indefinite
    """

    def __init__(self, block: np.ndarray, whole: bool) -> None:
        self._block: Any = block
        self._whole = whole

    @cached_property
    def definiteness(self) -> Definiteness:
        """What is known about the signs of the eigenvalues."""
        block, self._block = self._block, None
        if _indefinite(block):
            return Definiteness.INDEFINITE
        return Definiteness.COMPUTED if self._whole else Definiteness.UNKNOWN

    def __getstate__(self) -> dict:
        _ = self.definiteness
        return self.__dict__


def known_definiteness(spectrum: Spectrum | Definiteness) -> Definiteness:
    """What a spectrum, or what is known without one, says of the matrix."""
    return spectrum.definiteness if isinstance(spectrum, Spectrum) else spectrum


@on_one_blas_thread
def _indefinite(K: np.ndarray) -> bool:
    """Whether a symmetric matrix has a negative eigenvalue, beyond rounding.

    A Cholesky factor of the matrix, its diagonal raised by half of what counts as rounding, proves
    that it has none, in a tenth of the time that the eigenvalues take.
    """
    raised = (K + K.T) / 2
    raised[np.diag_indices_from(raised)] += 0.5 * _ROUNDING * float(np.diag(K).max())
    if (np.diag(K) > 0).any() and not dpotrf(raised, overwrite_a=True)[1]:
        return False
    test = examine(K)
    scale = max(abs(test.smallest_eigenvalue), abs(test.largest_eigenvalue))
    return test.smallest_eigenvalue < -_ROUNDING * scale
