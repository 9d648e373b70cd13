"""Checks of kernels and Gram matrices."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from maxmargin.backends.program import Map, Program
from maxmargin.gram import Gram
from maxmargin.kernels import Input, Kernel, Validity, check_valid


def check_kernel(kernel: Kernel, X: Any = None) -> None:
    """Hold a kernel to its contract.

    Symmetry, the diagonal, agreement of parts with the whole, of CSR with dense and of float32 with
    float64, positive eigenvalues where validity is claimed, and scikit-learn's manners: clone,
    pickle, equality, parameters.

    Parameters
    ----------
    kernel : Kernel
    X : data of at least 6 points that the kernel takes, optional
        By default 40 random points in five dimensions (for a precomputed kernel, their products).

    Examples
    --------
    >>> from maxmargin.kernels import RBF, Linear
    >>> from maxmargin.testing import check_kernel
    >>> check_kernel(RBF(gamma=0.3) * Linear() + 1)
    """
    if X is None:
        X = np.random.default_rng(0).normal(size=(40, 5))
        X = X @ X.T if kernel.pairwise else X
    kernel = kernel.resolve(X)
    K = kernel(X)
    n = len(K)
    scale = max(np.abs(K).max(), np.finfo(np.float64).tiny)
    close = _close(K)
    assert K.shape == (n, n), f"k(X) has shape {K.shape} for {n} points"
    np.testing.assert_allclose(K, K.T, err_msg="k(x, z) != k(z, x)", **close)
    if kernel.validity is Validity.VALID:
        test = check_valid(kernel, X, tol=1e-9 * scale * n)
        assert test, f"{kernel!r} claims to be valid by construction, but is {test}"
    check_gram(Gram.of(X, kernel, memory=8 * n * (n // 2)), X)
    if kernel.input is not Input.MATRIX:
        np.testing.assert_allclose(kernel.diag(X), np.diag(K), err_msg="diag", **close)
        np.testing.assert_allclose(kernel(X[:4], X[2:]), K[:4, 2:], err_msg="k(X, Z)", **close)
    if kernel.input is Input.VECTORS and isinstance(X, np.ndarray):
        _check_containers(kernel, X, K, close)
    _check_manners(kernel)


def _check_containers(kernel: Kernel, X: np.ndarray, K: np.ndarray, close: dict) -> None:
    narrow = X.astype(np.float32)
    values = kernel(narrow)
    assert values.dtype == np.float64
    wide = kernel(narrow.astype(np.float64))
    if _has_functions(kernel.lower()):  # a user's function may well compute in float32
        close = {"rtol": 1e-4, "atol": 1e-5 * np.abs(wide).max()}
    np.testing.assert_allclose(values, wide, err_msg="float32 differs from float64", **close)
    sparse = sp.csr_matrix(X)
    try:
        values = kernel(sparse)
    except (TypeError, AttributeError, ValueError):
        if _has_functions(kernel.lower()):
            return  # a user's function inside the kernel that takes dense data only
        raise
    np.testing.assert_allclose(values, K, err_msg="CSR differs from dense", **close)
    np.testing.assert_allclose(kernel(X, sparse), K, err_msg="dense against CSR", **close)


def _has_functions(program: Program) -> bool:
    steps = [step for primitive in program.primitives for step in primitive.view]
    mapped = any(isinstance(step, Map) for step in steps)
    return mapped or bool(program.factors) or any(p.function for p in program.primitives)


def _check_manners(kernel: Kernel) -> None:
    copy = clone(kernel)
    assert copy == kernel, "a clone differs from its original"
    assert copy is not kernel
    assert hash(copy) == hash(kernel)
    assert repr(kernel) == repr(copy)
    assert kernel != object()
    rebuilt = type(kernel)(**kernel.get_params(deep=False))
    assert rebuilt == kernel, "get_params and the constructor disagree"
    try:
        assert pickle.loads(pickle.dumps(kernel)) == kernel, "pickle changes the kernel"
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        if "pickle" not in str(error) and "local" not in str(error):  # a lambda of the user's
            raise


def check_gram(gram: Gram, X: Any) -> None:
    """Hold a Gram matrix to its contract.

    Diagonal, rows, blocks, products, the whole and its parts against the kernel's values, and
    these within ``rounding``; symmetry; rows on the host as solvers have them there.

    Parameters
    ----------
    gram : Gram
    X : data of at least 6 points
        Those that it was made of.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin import Gram
    >>> from maxmargin.kernels import RBF
    >>> from maxmargin.testing import check_gram
    >>> X = np.arange(12.0).reshape(6, 2)
    >>> check_gram(Gram.of(X, RBF(gamma=0.1)), X)
    """
    K = gram.kernel(X)
    n, everything = len(K), np.arange(len(K))
    assert gram.n == n, f"n is {gram.n} for {n} points"
    gram.check()
    part = gram.take(everything[::-1])
    _check_values(gram, K)
    _check_values(part, K[::-1, ::-1])
    _check_values(part.take([0, 4, 2, 5]), K[::-1, ::-1][np.ix_([0, 4, 2, 5], [0, 4, 2, 5])])
    values = gram.block(everything, everything)
    np.testing.assert_allclose(values, values.T, err_msg="K is not symmetric", **_close(K))
    if gram.kernel.validity is Validity.VALID and not gram.kernel.lower().calls_python:
        size = np.sqrt(np.diag(K))
        unit = 2 * gram.rounding * np.finfo(np.float64).eps  # the kernel's own values round, too
        assert (np.abs(values - K) <= unit * np.outer(size, size)).all(), "beyond its rounding"


def _close(K: np.ndarray) -> dict[str, Any]:
    """How near two ways to compute these kernel values come."""
    return {"rtol": 1e-9, "atol": 1e-11 * max(np.abs(K).max(), np.finfo(np.float64).tiny)}


def _check_values(gram: Gram, K: np.ndarray) -> None:
    n, close, some = gram.n, _close(K), np.array([3, 0])
    np.testing.assert_allclose(gram.diagonal, np.diag(K), err_msg="diagonal", **close)
    np.testing.assert_allclose(gram.rows(some), K[some], err_msg="rows", **close)
    np.testing.assert_allclose(gram.block([1, 2], some), K[[1, 2]][:, some], **close)
    weights = np.random.default_rng(0).normal(size=(n, 3)) / n
    weights[::3] = 0.0
    for rows in (None, some):
        sums = K @ weights if rows is None else K[rows] @ weights
        for column in range(3):
            found = gram.matvec(weights[:, column], rows)
            np.testing.assert_allclose(found, sums[:, column], err_msg="matvec", **close)
        for form in (np.asarray, sp.csc_array):
            np.testing.assert_allclose(
                gram.matmat(form(weights), rows), sums, err_msg="matmat", **close
            )
    if 8 * n**2 <= gram.memory:
        np.testing.assert_allclose(gram.dense(), K, err_msg="dense", **close)
    host = gram.host
    assert host.n == n
    assert not host.on_device
    host.require(some[: host.store.capacity])
    resident = np.flatnonzero(host.store.slot >= 0)
    stored = host.store.data[host.store.slot[resident]]
    np.testing.assert_allclose(stored, K[resident], err_msg="rows of the store", **close)
    gram.forget()
    np.testing.assert_allclose(gram.rows(some), K[some], err_msg="after forget", **close)
