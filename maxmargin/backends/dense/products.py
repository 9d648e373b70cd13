"""Products of matrices that are added to a part of another one, where it is.

NumPy's ``C -= A @ B`` writes the product down, and then reads it and C: where A has few columns
that takes as long as the product. BLAS adds in place, and SciPy has its functions for who brings
their addresses.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

import numpy as np
from scipy.linalg import cython_blas

_LETTERS = {np.dtype(np.float64): "d", np.dtype(np.float32): "s"}


def add_product(C: np.ndarray, A: np.ndarray, B: np.ndarray, factor: float = 1.0) -> None:
    """``C += factor A B`` in place.

    C has contiguous rows, A and B contiguous rows or columns; all are of one precision, float64 or
    float32.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.backends.dense.products import add_product
    >>> C = np.ones((2, 3))
    >>> add_product(C[:, :2], np.array([[1.0], [2.0]]), np.array([[1.0, 3.0]]), -1.0)
    >>> C
    array([[ 0., -2.,  1.],
           [-1., -5.,  1.]])
    """
    if not (C.size and A.shape[1]):
        return
    number = ctypes.c_double if C.dtype == np.float64 else ctypes.c_float
    (turned_A, step_A), (turned_B, step_B), (_, step_C) = map(_form, (A, B, C))
    (m, k), n = A.shape, B.shape[1]
    sizes = (ctypes.byref(ctypes.c_int(size)) for size in (n, m, k, step_B, step_A, step_C))
    columns, rows, terms, ldb, lda, ldc = sizes
    alpha, beta = (ctypes.byref(number(x)) for x in (factor, 1.0))
    a, b, c = (array.ctypes.data for array in (A, B, C))
    gemm = _gemm(_LETTERS[C.dtype])  # reads columns where we have rows, so it makes C' = B' A'
    gemm(turned_B, turned_A, columns, rows, terms, alpha, b, ldb, a, lda, beta, c, ldc)


def _form(A: np.ndarray) -> tuple[bytes, int]:
    """Whether columns are contiguous in place of rows, and what is between two."""
    item = A.itemsize
    if A.strides[1] == item or A.shape[1] == 1:
        return b"N", max(A.strides[0] // item, A.shape[1], 1)
    return b"T", max(A.strides[1] // item, A.shape[0], 1)


@cache
def _gemm(letter: str) -> Any:
    """BLAS's product of this precision; it gives back the interpreter's lock while it works."""
    capsule = cython_blas.__pyx_capi__[f"{letter}gemm"]
    of = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)
    at = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)
    name = of(("PyCapsule_GetName", ctypes.pythonapi))(capsule)
    address = at(("PyCapsule_GetPointer", ctypes.pythonapi))(capsule, name)
    return ctypes.CFUNCTYPE(None, *[ctypes.c_char_p] * 2, *[ctypes.c_void_p] * 11)(address)
