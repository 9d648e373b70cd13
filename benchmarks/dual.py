"""The dual objective and the KKT violation of any library's fitted machine, in float64.

A machine is read from its own ``dual_coef_``, ``support_`` and ``support_vectors_``. Let ``beta``
be the signed coefficient of each row, ``D = K beta``, and ``s`` the labels as -1 and +1. The duals,
as maximised, with their boxes and the sums that are held fixed:

    SVC          s'beta - 1/2 beta'D                  0 <= s beta <= C    sum beta = 0
    SVR          y'beta - epsilon |beta|_1 - 1/2 beta'D   |beta| <= C     sum beta = 0
    NuSVC        -1/2 beta'D                          0 <= s beta <= 1    sum of each class
    NuSVR        y'beta - 1/2 beta'D                    |beta| <= C       sum of each sign
    OneClassSVM  -1/2 beta'D                            0 <= beta <= 1    sum beta = nu n

NuSVC's coefficients are brought back from margin one to ``|beta|_1 = nu n`` first. Several classes
are one problem per pair. The KKT violation is LIBSVM's stopping quantity, the number ``tol``
bounds: the largest slope of the objective along a coefficient that may rise, less the smallest
along one that may fall, where both belong to the same fixed sum.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import scipy.sparse as sp
from threadpoolctl import threadpool_limits

BLOCK = 2_000_000  # kernel values at a time, in each thread
WHOLE = 3_000_000_000  # up to so many kernel values the violation is looked for in all rows
_AT_BOUND = 1e-9  # share of a box within which a coefficient counts as on its edge


@dataclass(frozen=True)
class Examination:
    """What was found.

    ``duals`` holds one number per pair of classes. ``infeasibility`` is the largest overshoot of a
    box or drift of a sum, as a share of the box. ``all_rows`` says whether the violation was looked
    for in all rows or in the support vectors only.
    """

    duals: list[float]
    violation: float
    infeasibility: float
    all_rows: bool


@dataclass(frozen=True)
class Problem:
    """One problem of a machine: its rows, their signed coefficients, and labels or targets."""

    rows: np.ndarray
    beta: np.ndarray
    target: np.ndarray


def examine(model, X, y) -> Examination:
    """Recompute objective and violation of a machine with the RBF kernel, fitted to X and y."""
    problems = list(_problems(model, X.shape[0], y))
    all_rows = X.shape[0] * len(model.support_) <= WHOLE
    looked_at = np.arange(X.shape[0]) if all_rows else np.sort(model.support_)
    expansions = np.stack([problem.beta_of(model.support_) for problem in problems], axis=1)
    D = _decision(_gamma(model, X), X[looked_at], model.support_vectors_, expansions)
