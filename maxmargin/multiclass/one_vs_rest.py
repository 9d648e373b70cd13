"""One-vs-rest: a machine for every class, against all others; the largest value decides."""

from __future__ import annotations

import numpy as np

from maxmargin.multiclass.scheme import Scheme


class OneVsRest(Scheme):
    """A machine for every class, against all others.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.multiclass import OneVsRest
    >>> scheme = OneVsRest(3)
    >>> scheme.code
    array([[ 1, -1, -1],
           [-1,  1, -1],
           [-1, -1,  1]])
    >>> scheme.decode(np.array([[-0.5, -2.0, -0.1]]))
    array([2])
    """

    unanimous = True

    def _code(self) -> np.ndarray:
        return 2 * np.eye(self.n_classes, dtype=np.int64) - 1

    def scores(self, values: np.ndarray) -> np.ndarray:
        """Take the machines' own values."""
        return values * [-1.0, 1.0] if self.n_classes == 2 else values

    def probabilities(self, r: np.ndarray) -> np.ndarray:
        """Scale those of the classes to sum to one, as scikit-learn does."""
        if self.n_classes == 2:
            return super().probabilities(r)
        return r / r.sum(axis=1, keepdims=True)
