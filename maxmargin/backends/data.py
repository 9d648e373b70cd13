"""Arrays as scikit-learn checks them, after some looks that it does not take.

A sparse matrix is three arrays, and nothing keeps a program or a broken file from writing into one
of them what points outside of the matrix; compiled code that follows it reads and writes other
people's memory. Dates are numbers only in a unit that nobody has named.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Set
from typing import Any

import numpy as np
import scipy.sparse as sp
import sklearn.utils

_TEMPORAL = ("date", "time", "duration")  # how the names of such types of polars begin


def check_array(X: Any, **options: Any) -> Any:
    """Check an array as scikit-learn's function of this name does, and what it is made of."""
    refuse_unusable(X)
    checked = sklearn.utils.check_array(X, **options)
    if checked is not X and sp.issparse(X):
        refuse_corrupt(checked)
    return checked


def as_table(X: Any) -> np.ndarray:
    """Return sequences, or a table with columns of them, as an array of objects, (n,) or (n, d).

    >>> as_table(["ACGT", "GATTACA"])
    array(['ACGT', 'GATTACA'], dtype=object)
    """
    if isinstance(X, str | bytes):
        raise ValueError(
            f"X is a single sequence, {X[:12]!r}: pass a list of sequences, [X] for one."
        )
    if sp.issparse(X):
        raise TypeError("A sparse matrix holds no sequences: pass a list of str, or a DataFrame.")
    if isinstance(X, Set | Mapping):
        raise TypeError(
            f"A {type(X).__name__} does not say which sequence is in which row: pass a list."
        )
    refuse_twin_columns(X)
    table = X.to_numpy() if hasattr(X, "to_numpy") else X
    if not isinstance(table, np.ndarray):
        table = _array_of_objects(list(table))
    if not len(table):
        raise ValueError("Found array with 0 sample(s) while a minimum of 1 is required.")
    if table.ndim not in (1, 2):
        raise ValueError(
            f"Sequences are one column or columns of a table; X has {table.ndim} dimensions."
        )
    return table.astype(object, copy=False)


def _array_of_objects(items: list) -> np.ndarray:
    """Return a list of strings, or of rows, as an array of objects."""
    if any(isinstance(item, list | tuple | np.ndarray) for item in items):
        return np.array(items, dtype=object)
    table = np.empty(len(items), dtype=object)
    table[:] = items
    return table


def refuse_unusable(X: Any) -> None:
    """Refuse dates, columns of one name, and sparse matrices that point outside of themselves."""
    refuse_corrupt(X)
    refuse_twin_columns(X)
    dtypes = [X.dtype] if hasattr(X, "dtype") else list(getattr(X, "dtypes", ()))
    dtypes += getattr(getattr(X, "schema", None), "types", ())  # of a table of pyarrow
    for dtype in dtypes:
        numpys = isinstance(dtype, np.dtype)
        if dtype.kind in "mM" if numpys else str(dtype).lower().startswith(_TEMPORAL):
            raise TypeError(
                f"X holds dates or times ({dtype}), which are numbers only once a unit is chosen: "
                "pass differences in that unit, such as (t - t.min()) / np.timedelta64(1, 'D')."
            )


def refuse_twin_columns(X: Any) -> None:
    """Refuse a data frame in which several columns have the same name.

    >>> import pandas as pd
    >>> from maxmargin.backends.data import refuse_twin_columns
    >>> refuse_twin_columns(pd.DataFrame([[1, 2]], columns=["width", "width"]))
    Traceback (most recent call last):
    ...
    ValueError: X has several columns of the same name, 'width' (2 times), ...
    """
    columns = getattr(X, "column_names", getattr(X, "columns", None))  # pyarrow's are columns
    if columns is None or len(set(columns)) == len(columns):
        return
    twins = [f"{name!r} ({count} times)" for name, count in Counter(columns).items() if count > 1]
    raise ValueError(
        f"X has several columns of the same name, {', '.join(twins)}, so that features cannot be "
        "told apart by their names: rename the columns, or pass X.to_numpy()."
    )


def refuse_corrupt(X: Any) -> None:
    """Refuse a sparse matrix whose arrays do not belong together; others are not looked at.

    One pass over the indices, at the speed of the memory.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> from maxmargin.backends.data import refuse_corrupt
    >>> X = sp.csr_array([[1.0, 0.0], [0.0, 2.0]])
    >>> X.indices[1] = 7
    >>> refuse_corrupt(X)
    Traceback (most recent call last):
    ...
    ValueError: This sparse matrix of shape (2, 2) is broken: indices must be from 0 to 1, ...
    """
    if not sp.issparse(X):
        return
    wrong = None
    if X.format in ("csr", "csc", "bsr"):
        wrong = _wrong_in_compressed(X)
    elif X.format == "coo":
        wrong = next(filter(None, map(_wrong_index, X.coords, X.shape)), None)
    if wrong is not None:
        raise ValueError(
            f"This sparse matrix of shape {X.shape} is broken: {wrong}. Was one of its arrays "
            "written to, or read from a damaged file? Build it again from rows, columns and values."
        )


def _wrong_in_compressed(X: Any) -> str | None:
    """Return what is wrong with a matrix in rows, columns or blocks, if anything is."""
    sizes = np.array(X.shape) // np.array(X.blocksize if X.format == "bsr" else (1, 1))
    lines, across = sizes[::-1] if X.format == "csc" else sizes
    begin = X.indptr
    if len(begin) != lines + 1 or begin[0] != 0:
        return f"indptr must have {lines + 1} entries, the first 0; it has {len(begin)}"
    if (begin[1:] < begin[:-1]).any():
        return "indptr must not fall"
    room = min(len(X.indices), len(X.data))
    if begin[-1] > room:
        return f"indptr speaks of {begin[-1]} entries, and there are {room}"
    return _wrong_index(X.indices[: begin[-1]], across)


def _wrong_index(indices: np.ndarray, size: int) -> str | None:
    """Return what is wrong with indices below a size; a negative one is a large unsigned number."""
    if not len(indices):
        return None
    unsigned = indices.view(f"u{indices.itemsize}")
    if int(unsigned.max()) < size:
        return None
    found = int(indices[unsigned.argmax()])
    return f"indices must be from 0 to {size - 1}, found {found}"
