"""Data seen through column selections and feature maps, each of which is applied once."""

from __future__ import annotations

import reprlib
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import assert_all_finite

from maxmargin.backends.program import Columns, Map, Stretch, View


class Views:
    """A data set, and what the views of a kernel make of it.

    A user's feature map may take long, so whoever resolves a kernel and whoever evaluates it share
    one of these.

    Examples
    --------
    >>> import numpy as np
    >>> def squared(X):
    ...     print("called")
    ...     return X**2
    >>> views = Views(np.array([[1.0, 2.0]]))
    >>> views.through((Map(squared), Columns((1,))))
    called
    array([[4.]])
    >>> views.after(Map(squared)).X
    array([[1., 4.]])
    """

    def __init__(self, X: Any) -> None:
        self.X = X
        self._after: list[tuple[Columns | Map, Views]] = []

    @classmethod
    def of(cls, X: Any) -> Views:
        """Return the views of some data; those that are views already stay so."""
        return X if isinstance(X, cls) else cls(X)

    @property
    def n(self) -> int:
        """Number of points."""
        return self.X.shape[0] if hasattr(self.X, "shape") else len(self.X)

    def after(self, step: Columns | Map | Stretch) -> Views:
        """Views of the data after one more step."""
        if isinstance(step, Stretch):  # soon done, and with other factors next time
            X, factors = self.numbers, np.array(step.factors)
            return Views(X.multiply(factors).tocsr() if sp.issparse(X) else X * factors)
        for known, views in self._after:
            if known == step:
                return views
        views = Views(_applied(self.X, self.n, step))
        self._after.append((step, views))
        return views

    def seen(self, view: View) -> Views:
        """Views of the data after a chain of steps."""
        views = self
        for step in view:
            views = views.after(step)
        return views

    def through(self, view: View) -> Any:
        """Return the data after a chain of steps."""
        return self.seen(view).X

    @cached_property
    def numbers(self) -> Any:
        """The data as rows of numbers: of a table that also holds text, the columns chosen."""
        is_table = isinstance(self.X, np.ndarray) and self.X.dtype == object
        return _numbers(self.X) if is_table else self.X


def _numbers(X: np.ndarray) -> np.ndarray:
    """Return columns of a table as float64, or say which value is none."""
    try:
        numbers = X.astype(np.float64)
    except (ValueError, TypeError):
        numbers = None
    if numbers is None or numbers.ndim != 2:
        strange = next((v for v in X.ravel() if isinstance(v, str | bytes)), X.ravel()[0])
        raise ValueError(
            f"The kernel compares numbers, and X holds {reprlib.repr(strange)}: choose the columns "
            "of numbers with .on([...]), and for the text a kernel on sequences, as in "
            "Spectrum(3).on('sequence') + RBF().on(['length', 'age'])."
        ) from None
    assert_all_finite(numbers, input_name="X")
    return numbers


def _applied(X: Any, n: int, step: Columns | Map) -> Any:
    """Select columns, or apply a feature map and check what it returned."""
    if isinstance(step, Columns):
        selected = X[:, list(step.indices)]
        return selected.tocsr() if sp.issparse(selected) else selected
    mapped = step.function(X)
    mapped = mapped.tocsr() if sp.issparse(mapped) else np.asarray(mapped)
    if mapped.ndim != 2 or mapped.shape[0] != n:
        raise ValueError(
            f"The feature map returned an array of shape {mapped.shape} for {n} rows; "
            f"it must return one row of features per row, that is shape ({n}, M)."
        )
    if mapped.dtype.kind not in "fiub":
        raise ValueError(f"The feature map returned {mapped.dtype} values; it must return reals.")
    return mapped if mapped.dtype in (np.float32, np.float64) else mapped.astype(np.float64)
