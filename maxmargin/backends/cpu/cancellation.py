"""Distances that lose their digits: where they may, and how they are made again.

A squared distance is the sum of two sizes less twice a product, and what the three have in common
cancels. So rows far from the origin are taken less a centre, and a distance that is still small
against the sizes is made again from the differences of the rows: see decision 0014.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.sparse as sp

from maxmargin.backends import program as op
from maxmargin.backends.compiled import njit
from maxmargin.backends.cpu.tiles import CHUNK, spread_out

# Sizes of a pair, times the kernel's rate, up to which a distance need not be exact: what cancels
# in it is then a rounding of so many units in the exponent. Beyond, distances count that are less
# than 1 / (e EXPONENT) of the sizes; the exponential of larger ones is small enough. Lower is
# more exact, and sends more pairs of ordinary data through differences.
EXPONENT = 32.0
CANCELLED = math.e * EXPONENT
REACH32 = 2.0**17  # the same for float32 tiles, which need not be exact, only near
DEVIATION32 = 0.5 * float(np.finfo(np.float32).eps) / 3**0.5  # of a value near one, rounded
_FAR = 0.25  # squared length of the centre, over that of rows less it, from which it is used
_CENTRE_ROWS = 64  # that a median is taken of


def roundings(kind: str, terms: float, rate: float, largest: float) -> float:
    """Roundings of a primitive of so many terms between rows of this largest size."""
    if kind == op.DOT:
        return terms + 6.0
    lost = 2.0 * CANCELLED if not np.isfinite(rate) else 2.0 * min(EXPONENT, 2.0 * rate * largest)
    return (terms + 6.0) * (1.0 + lost)


def too_far_for_float32(rate: float, sizes: np.ndarray) -> bool:
    """Whether a row is so long that its distance from itself, or its like, would be noise."""
    if not np.isfinite(rate):
        rate = 1.0 / max(float(np.median(sizes)), np.finfo(np.float64).tiny)
    return bool((rate * sizes > REACH32).any())


def centre_of(X: Any) -> np.ndarray | None:
    """Medians of the columns, by a sample of rows, where they are far from zero; otherwise None.

    Far is: against how far the rows are from them. A mean would be where one row far from all
    others draws it.
    """
    n, d = X.shape
    sample = X[spread_out(n, _CENTRE_ROWS)]
    if sp.issparse(X):
        filled = np.flatnonzero(2 * np.bincount(sample.indices, minlength=d) > sample.shape[0])
        sample = sample[:, filled].toarray() if len(filled) else np.zeros((1, 0))
    else:
        filled = np.arange(d)
    medians = _medians(sample) if sample.size else np.zeros(0)
    with np.errstate(over="ignore"):  # what has no squares has no centre
        spread = _medians(np.square(sample - medians).sum(axis=1)) if sample.size else 0.0
        if not medians @ medians > _FAR * spread:
            return None
    centre = np.zeros(d)
    centre[filled] = medians
    return centre


def _medians(values: np.ndarray) -> Any:
    """Medians of the columns: what ``np.median`` says, which takes its time over a few values."""
    ordered = np.sort(values, axis=0).astype(np.float64, copy=False)
    last = len(ordered) - 1
    return 0.5 * (ordered[last // 2] + ordered[last - last // 2])


@njit(cache=True, nogil=True, fastmath={"contract", "reassoc"}, error_model="numpy")
def _difference(x, z, squared):
    """Squared or L1 distance of two rows, coordinate by coordinate."""
    total = 0.0
    if squared:
        for k in range(x.shape[0]):
            difference = np.float64(x[k]) - np.float64(z[k])
            total += difference * difference
    else:
        for k in range(x.shape[0]):
            total += abs(np.float64(x[k]) - np.float64(z[k]))
    return total


@njit(cache=True, nogil=True, error_model="numpy")
def _cancelled(left_size, right_sizes, limit, distances):
    """Count the distances that are small against what they were made of."""
    count = 0
    for j in range(distances.shape[0]):
        size = left_size + right_sizes[j]
        count += (size > limit) & (not (size <= CANCELLED * distances[j]))
    return count


@njit(cache=True, nogil=True, error_model="numpy")
def mend_dense(left, left_sizes, right, right_sizes, limit, out):
    """Make squared distances again that are small against what they were made of."""
    for first in range(0, out.shape[1], CHUNK):
        last = min(first + CHUNK, out.shape[1])
        sizes = right_sizes[first:last]
        for i in range(out.shape[0]):
            distances = out[i, first:last]
            if not _cancelled(left_sizes[i], sizes, limit, distances):
                continue
            for j in range(last - first):
                size = left_sizes[i] + sizes[j]
                if size > limit and not size <= CANCELLED * distances[j]:
                    distances[j] = _difference(left[i], right[first + j], True)


@njit(cache=True, nogil=True, error_model="numpy")
def mend_csr(left, left_sizes, indptr, indices, data, right_sizes, squared, limit, out):
    """Do what :func:`mend_dense` does with CSR rows on the right, and also L1 distances."""
    row = np.zeros(left.shape[1])
    suspect = np.zeros(out.shape[1], dtype=np.bool_)
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):  # one pass in the order of memory
            size = left_sizes[i] + right_sizes[j]
            suspect[j] |= (size > limit) & (not (size <= CANCELLED * out[i, j]))
    for j in range(out.shape[1]):
        if not suspect[j]:
            continue
        for entry in range(indptr[j], indptr[j + 1]):
            row[indices[entry]] = data[entry]
        for i in range(out.shape[0]):
            size = left_sizes[i] + right_sizes[j]
            if size > limit and not size <= CANCELLED * out[i, j]:
                out[i, j] = _difference(left[i], row, squared)
        for entry in range(indptr[j], indptr[j + 1]):
            row[indices[entry]] = 0.0
