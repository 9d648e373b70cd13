"""Data seen through column selections and feature maps, each of which is applied once."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from maxmargin.backends.program import Columns, Map, View


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

    def after(self, step: Columns | Map) -> Views:
        """Views of the data after one more step."""
        for known, views in self._after:
            if known == step:
                return views
        views = Views(_applied(self.X, step))
        self._after.append((step, views))
        return views

    def through(self, view: View) -> Any:
        """Return the data after a chain of steps."""
        views = self
        for step in view:
            views = views.after(step)
        return views.X


def _applied(X: Any, step: Columns | Map) -> Any:
    """Select columns, or apply a feature map and check what it returned."""
    if isinstance(step, Columns):
        selected = X[:, list(step.indices)]
        return selected.tocsr() if sp.issparse(selected) else selected
    mapped = step.function(X)
    mapped = mapped.tocsr() if sp.issparse(mapped) else np.asarray(mapped)
    n = X.shape[0]
    if mapped.ndim != 2 or mapped.shape[0] != n:
        raise ValueError(
            f"The feature map returned an array of shape {mapped.shape} for {n} rows; "
            f"it must return one row of features per row, that is shape ({n}, M)."
        )
    if mapped.dtype.kind not in "fiub":
        raise ValueError(f"The feature map returned {mapped.dtype} values; it must return reals.")
    return mapped if mapped.dtype in (np.float32, np.float64) else mapped.astype(np.float64)
