"""Compiled passes over tiles of kernel values, and the products that BLAS does not have."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import types
from numba.extending import overload

from maxmargin.backends import program as op
from maxmargin.backends.compiled import njit
from maxmargin.backends.cpu.tiles import CHUNK

_PANEL = 64  # rows of one product in compiled code
_LINE = 16  # columns of a tile finished together: whole cache lines are written


@njit(cache=True, nogil=True)
def gather(K, rows, columns, out):
    """Write the values at some rows and columns into ``out``."""
    for i in range(rows.shape[0]):
        row = K[rows[i]]
        for j in range(columns.shape[0]):
            out[i, j] = row[columns[j]]


@njit(cache=True, nogil=True, fastmath={"nsz", "reassoc"})
def total_asymmetry(K):
    """Sum of all differences between a matrix and its mirror image: soon known, unlike the largest.

    Tile by tile, since one of the two is read against its order in memory.
    """
    n, total = K.shape[0], 0.0
    for first in range(0, n, 64):
        last = min(first + 64, n)
        for start in range(0, last, 64):
            for i in range(first, last):
                for j in range(start, min(start + 64, n)):
                    total += abs(K[i, j] - K[j, i])
    return total


@njit(cache=True, nogil=True, fastmath={"nnan", "nsz"})
def asymmetry(K, mirrored):
    """Largest size of the values ``K``, and by how much they differ from ``mirrored.T``.

    Tile by tile, since one of the two is read against its order in memory. Of a matrix and itself
    one half will do.
    """
    largest = 0.0
    difference = 0.0
    half = K.shape[0] == mirrored.shape[0] and K.shape[1] == mirrored.shape[1]
    for first in range(0, K.shape[0], 64):
        last = min(first + 64, K.shape[0])
        for start in range(0, last if half else K.shape[1], 64):
            for i in range(first, last):
                for j in range(start, min(start + 64, K.shape[1])):
                    value = np.float64(K[i, j])
                    away = abs(value - np.float64(mirrored[j, i]))
                    if abs(value) > largest:
                        largest = abs(value)
                    if away > difference:
                        difference = away
    return largest, difference


def exponential(x: Any) -> Any:
    """Exponential by arithmetic alone, so that loops over it vectorise; error below 2 ulp."""
    raise NotImplementedError("compiled code only")


@overload(exponential, inline="always")
def _exponential_of(x):
    return (lambda x: _exp32(x)) if x == types.float32 else (lambda x: _exp64(x))


@njit(inline="always")
def _exp32(x):
    """Exponential in float32 (Cephes' polynomial); see :func:`_exp64`."""
    one = np.float32(1.0)
    shifted = x * np.float32(1.44269504088896341) + np.float32(12582912.0)
    k = shifted - np.float32(12582912.0)
    r = x - k * np.float32(0.693359375)
    r = r + k * np.float32(2.12194440e-4)
    p = np.float32(1.9875691500e-4)
    p = p * r + np.float32(1.3981999507e-3)
    p = p * r + np.float32(8.3334519073e-3)
    p = p * r + np.float32(4.1665795894e-2)
    p = p * r + np.float32(1.6666665459e-1)
    p = p * r + np.float32(5.0000001201e-1)
    p = p * r * r + r + one
    exponent = np.int32(np.float32(shifted).view(np.int32) + np.int32(127))
    value = p * np.int32(exponent << np.int32(23)).view(np.float32)
    value = np.float32(0.0) if x < np.float32(-87.0) else value
    return np.float32(np.inf) if x > np.float32(88.0) else value


@njit(inline="always")
def _exp64(x):
    """Exponential in float64.

    ``x = k ln 2 + r`` with ``|r| <= ln(2) / 2``; the added constant ``1.5 * 2**52`` leaves k in the
    low bits of the sum, ready to become the exponent of ``2**k``.
    """
    shifted = x * 1.4426950408889634 + 6755399441055744.0
    k = shifted - 6755399441055744.0
    r = x - k * 6.93147180369123816490e-01
    r = r - k * 1.90821492927058770002e-10
    p = 1.6059043836821613e-10  # 1/13!, then the Taylor coefficients downwards
    p = p * r + 2.08767569878681e-09
    p = p * r + 2.505210838544172e-08
    p = p * r + 2.755731922398589e-07
    p = p * r + 2.7557319223985893e-06
    p = p * r + 2.48015873015873e-05
    p = p * r + 0.0001984126984126984
    p = p * r + 0.001388888888888889
    p = p * r + 0.008333333333333333
    p = p * r + 0.041666666666666664
    p = p * r + 0.16666666666666666
    p = p * r + 0.5
    p = p * r + 1.0
    p = p * r + 1.0
    exponent = np.float64(shifted).view(np.int64) + 1023
    value = p * np.int64(exponent << 52).view(np.float64)
    value = 0.0 if x < -708.0 else value
    return np.inf if x > 709.0 else value


@njit(cache=True, nogil=True, error_model="numpy")
def matern(nu, r):
    """Return ``2^(1 - nu) / Gamma(nu) t^nu K_nu(t)`` at ``r = t^2``: a mixture of Gaussians in t.

    ``int exp(nu v - e^v - r e^-v / 4) dv / Gamma(nu)`` over all real v.
    """
    return _mixture(nu, r, math.lgamma(nu)) if r > 0.0 else 1.0


@njit(cache=True, nogil=True, error_model="numpy")
def matern_slope(nu, r):
    """Derivative of :func:`matern` by r; zero at r = 0, where it is multiplied by r."""
    return -0.25 * _mixture(nu - 1.0, r, math.lgamma(nu)) if r > 0.0 else 0.0


@njit(cache=True, nogil=True, error_model="numpy")
def _mixture(order, r, log_scale):
    """Return ``exp(-log_scale) int exp(order v - e^v - r e^-v / 4) dv`` over all real v, r > 0.

    The integrand is entire and has one peak, so that the trapezoidal rule is exact to rounding at
    a step of half of the peak's width (Trefethen and Weideman, SIAM Review 56, 2014).
    """
    root = math.sqrt(order * order + r)
    peak = 0.5 * (order + root) if order > 0.0 else 0.5 * r / (root - order)  # e^v there
    step = min(0.2, 0.5 / math.sqrt(peak + 0.25 * r / peak))
    height = order * math.log(peak) - peak - 0.25 * r / peak
    total = 1.0
    for sign in (-1.0, 1.0):
        v, value = math.log(peak), 1.0
        while value > 1e-18 * total:
            v += sign * step
            s = math.exp(v)
            value = math.exp(order * v - s - 0.25 * r / s - height)
            total += value
    return step * total * math.exp(height - log_scale)


@njit(cache=True, nogil=True, fastmath={"contract"}, error_model="numpy")
def run(instructions, constants, coefficients, depth, primitives, row_factors, column_factors, out):
    """Interpret a programme over a tile; writes ``out`` (q, n) from ``primitives`` (p, q, n)."""
    q, n = out.shape
    stack = np.empty((depth, CHUNK), dtype=out.dtype)
    for i in range(q):
        for start in range(0, n, CHUNK):
            width = min(CHUNK, n - start)
            height = 0
            for s in range(instructions.shape[0]):
                opcode = instructions[s, 0]
                first = instructions[s, 1]
                constant = constants[s]
                if opcode == op.PUSH:
                    stack[height, :width] = primitives[first, i, start : start + width]
                    height += 1
                    continue
                top = stack[height - 1]
                if opcode == op.SCALE:
                    for t in range(width):
                        top[t] *= constant
                elif opcode == op.SHIFT:
                    for t in range(width):
                        top[t] += constant
                elif opcode == op.ADD:
                    below = stack[height - 2]
                    for t in range(width):
                        below[t] += top[t]
                    height -= 1
                elif opcode == op.MULTIPLY:
                    below = stack[height - 2]
                    for t in range(width):
                        below[t] *= top[t]
                    height -= 1
                elif opcode == op.EXP:
                    for t in range(width):
                        top[t] = exponential(top[t])
                elif opcode == op.TANH:
                    for t in range(width):
                        top[t] = math.tanh(top[t])
                elif opcode == op.SQRT:
                    for t in range(width):
                        top[t] = math.sqrt(top[t])
                elif opcode == op.LOG1P:
                    for t in range(width):
                        top[t] = math.log1p(top[t])
                elif opcode == op.LOG:
                    for t in range(width):
                        top[t] = math.log(top[t])
                elif opcode == op.SIN:
                    for t in range(width):
                        top[t] = math.sin(top[t])
                elif opcode == op.MATERN:
                    for t in range(width):
                        top[t] = matern(np.float64(constant), np.float64(top[t]))
                elif opcode == op.POWER:
                    _power(top, width, first)
                elif opcode == op.POLYNOMIAL:
                    last = first + instructions[s, 2] - 1
                    for t in range(width):
                        value = coefficients[last]
                        for c in range(last - 1, first - 1, -1):
                            value = value * top[t] + coefficients[c]
                        top[t] = value
                elif opcode == op.FACTOR:
                    left = row_factors[first, i]
                    for t in range(width):
                        top[t] *= left * column_factors[first, start + t]
            out[i, start : start + width] = stack[0, :width]


@njit(cache=True, nogil=True, error_model="numpy")
def _power(values, width, exponent):
    """Raise ``values[:width]`` to a whole power, in place, by squaring."""
    for t in range(width):
        base = values[t]
        power = 1.0
        remaining = exponent
        while remaining > 0:
            if remaining & 1:
                power *= base
            base *= base
            remaining >>= 1
        values[t] = power


@njit(cache=True, nogil=True, fastmath={"contract"}, error_model="numpy")
def squared_distances(row_squares, column_squares, out):
    """Turn products in ``out`` into squared distances, in place; rounding never goes below zero."""
    zero = out.dtype.type(0.0)
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            distance = row_squares[i] + column_squares[j] - (out[i, j] + out[i, j])
            out[i, j] = distance if distance > zero else zero


@njit(cache=True, nogil=True, fastmath={"contract"}, error_model="numpy")
def gaussian(row_squares, column_squares, rate, out):
    """Turn products in ``out`` into ``exp(rate * squared distance)``, in place."""
    zero = out.dtype.type(0.0)
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            distance = row_squares[i] + column_squares[j] - (out[i, j] + out[i, j])
            out[i, j] = exponential(rate * (distance if distance > zero else zero))


@njit(cache=True, nogil=True, fastmath={"contract"}, error_model="numpy")
def add_rows(rows, slots, weights, start, stop, out):
    """Add ``sum_k weights[k] rows[slots[k], start:stop]`` to ``out[start:stop]``."""
    width = 2048  # columns whose sums stay in the first-level cache
    fours = slots.shape[0] - slots.shape[0] % 4
    for first in range(start, stop, width):
        last = min(first + width, stop)
        total = out[first:last]
        for k in range(0, fours, 4):  # the sums are read and written once for four rows
            a = rows[slots[k], first:last]
            b = rows[slots[k + 1], first:last]
            c = rows[slots[k + 2], first:last]
            d = rows[slots[k + 3], first:last]
            for t in range(total.shape[0]):
                total[t] += (weights[k] * a[t] + weights[k + 1] * b[t]) + (
                    weights[k + 2] * c[t] + weights[k + 3] * d[t]
                )
        for k in range(fours, slots.shape[0]):
            row = rows[slots[k], first:last]
            weight = weights[k]
            for t in range(total.shape[0]):
                total[t] += weight * row[t]


@njit(cache=True, nogil=True, fastmath={"contract"}, error_model="numpy")
def exponentiate(rate, out):
    """Turn distances in ``out`` into ``exp(rate * distance)``, in place."""
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            out[i, j] = exponential(rate * out[i, j])


@njit(cache=True, nogil=True, error_model="numpy")
def gaussian_rows(points, rows, out):
    """Write the kernel values between some :class:`DensePoints` and all into ``out`` (q, n)."""
    panel = np.empty((min(_PANEL, len(rows)), points.X.shape[1]), dtype=np.float32)
    squares = np.empty(len(panel), dtype=np.float32)
    for first in range(0, len(rows), _PANEL):
        q = min(_PANEL, len(rows) - first)
        for k in range(q):
            squares[k] = points.squares[rows[first + k]]
            for c in range(panel.shape[1]):
                panel[k, c] = points.X[rows[first + k], c]
        values = out[first : first + q]
        np.dot(panel[:q], points.X.T, values)
        gaussian(squares[:q], points.squares, points.rate, values)


@njit(cache=True, nogil=True, fastmath={"contract", "reassoc"}, error_model="numpy")
def l1_dense(panel, block, out):
    """Write ``sum_k |panel[i, k] - block[j, k]|`` into ``out``."""
    for i in range(panel.shape[0]):
        for j in range(block.shape[0]):
            total = 0.0
            for k in range(panel.shape[1]):
                total += abs(panel[i, k] - block[j, k])
            out[i, j] = total


@njit(cache=True, nogil=True, error_model="numpy")
def flush(values, least):
    """Set to zero what is smaller than ``least``, in place."""
    zero = values.dtype.type(0.0)
    for i in range(values.shape[0]):
        for j in range(values.shape[1]):
            values[i, j] = zero if abs(values[i, j]) < least else values[i, j]


@njit(cache=True, nogil=True)
def transpose(values, out):
    """Write ``values.T`` into ``out``, by squares that stay in the first-level cache."""
    q, n = values.shape
    for first in range(0, q, _LINE):
        for start in range(0, n, _LINE):
            for j in range(start, min(start + _LINE, n)):
                for i in range(first, min(first + _LINE, q)):
                    out[j, i] = values[i, j]


@njit(cache=True, nogil=True, fastmath={"contract", "reassoc"}, error_model="numpy")
def csr_dot(indptr, indices, data, columns, out):
    """Write products of CSR rows with the panel's ``columns`` (d, q)."""
    q = columns.shape[1]
    total = np.empty((_LINE, q), dtype=columns.dtype)
    for first in range(0, out.shape[1], _LINE):
        width = min(_LINE, out.shape[1] - first)
        for k in range(width):
            line = total[k]
            line[:] = 0.0
            for entry in range(indptr[first + k], indptr[first + k + 1]):
                value = columns.dtype.type(data[entry])
                column = columns[indices[entry]]
                for i in range(q):
                    line[i] += value * column[i]
        for i in range(q):
            row = out[i, first : first + width]
            for k in range(width):
                row[k] = total[k, i]


@njit(cache=True, nogil=True, error_model="numpy")
def by_column(indptr, indices, data, width):
    """Entries of CSR rows, column by column: (first entry of each column, rows, values)."""
    begin = np.zeros(width + 2, dtype=np.int32)
    for entry in range(indptr[0], indptr[-1]):
        begin[indices[entry] + 2] += 1
    for column in range(2, width + 2):
        begin[column] += begin[column - 1]
    rows = np.empty(indptr[-1] - indptr[0], dtype=np.int32)
    values = np.empty(indptr[-1] - indptr[0], dtype=data.dtype)
    for row in range(indptr.shape[0] - 1):
        for entry in range(indptr[row], indptr[row + 1]):
            place = begin[indices[entry] + 1]
            rows[place], values[place] = row, data[entry]
            begin[indices[entry] + 1] += 1
    return begin, rows, values


@njit(cache=True, nogil=True, fastmath={"contract", "reassoc"}, error_model="numpy")
def csr_products(indptr, indices, data, begin, rows, values, out):
    """Write products of CSR rows with a panel that is sparse, too: see :func:`by_column`."""
    q = out.shape[0]
    total = np.empty((_LINE, q), dtype=out.dtype)
    for first in range(0, out.shape[1], _LINE):
        width = min(_LINE, out.shape[1] - first)
        for k in range(width):
            line = total[k]
            line[:] = 0.0
            for entry in range(indptr[first + k], indptr[first + k + 1]):
                value, column = out.dtype.type(data[entry]), indices[entry]
                for there in range(begin[column], begin[column + 1]):
                    line[rows[there]] += value * values[there]
        for i in range(q):
            row = out[i, first : first + width]
            for k in range(width):
                row[k] = total[k, i]


@njit(cache=True, nogil=True, fastmath={"contract", "reassoc"}, error_model="numpy")
def csr_l1(indptr, indices, data, columns, base, out):
    """Write L1 distances of CSR rows to the panel; ``base`` is its rows' L1 norm."""
    q = columns.shape[1]
    total = np.empty(q, dtype=columns.dtype)
    for j in range(out.shape[1]):
        for i in range(q):
            total[i] = base[i]
        for entry in range(indptr[j], indptr[j + 1]):
            value = columns.dtype.type(data[entry])
            column = columns[indices[entry]]
            for i in range(q):
                total[i] += abs(column[i] - value) - abs(column[i])
        for i in range(q):
            out[i, j] = total[i]


@njit(cache=True, nogil=True, fastmath={"contract", "reassoc"}, error_model="numpy")
def csr_squares(indptr, indices, data, centre, columns):
    """Squared length of every row less ``centre``, which is zero but in some ``columns``."""
    squares = np.empty(indptr.shape[0] - 1)
    last = np.full(centre.shape[0], -1)  # row that has last stored an entry of a column
    for j in range(squares.shape[0]):
        total = 0.0
        for entry in range(indptr[j], indptr[j + 1]):
            value = data[entry] - centre[indices[entry]]
            total += value * value
            last[indices[entry]] = j
        for column in columns:
            if last[column] != j:
                total += centre[column] * centre[column]
        squares[j] = total
    return squares
