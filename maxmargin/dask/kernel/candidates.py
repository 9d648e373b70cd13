"""Rows on their way: those that may become support vectors, with their variables and values.

A partition sends some of its rows; who solves for them puts them in the order of the collection.
The arrays of a problem are kept for each of its tasks, on the rows that it sees, in their order:
``beta`` (variables of a row, rows) and ``decision`` (values of a row, rows).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from maxmargin.dask.collections import joined
from maxmargin.dask.kernel.forms import Form

Arrays = list[np.ndarray]


@dataclass(frozen=True)
class Candidates:
    """Rows of a collection, by their places in it, with what is known of them.

    ``decision`` are values of an answer in which ``beta`` are the variables; None where nobody has
    computed them.
    """

    place: np.ndarray
    X: Any
    y: Any
    weight: np.ndarray
    beta: Arrays
    decision: Arrays | None

    @property
    def n(self) -> int:
        """Rows."""
        return len(self.place)

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        arrays = [self.place, self.weight, *self.beta, *(self.decision or [])]
        arrays += [] if self.y is None else [np.asarray(self.y)]
        return int(sum(array.nbytes for array in arrays)) + bytes_of(self.X)

    def take(self, form: Form, rows: np.ndarray) -> Candidates:
        """Return some of the rows, in their order."""
        chosen = np.zeros(self.n, dtype=bool)
        chosen[rows] = True
        own = [chosen[seen] for seen in form.own(self.y, self.n)]
        return Candidates(
            self.place[chosen],
            self.X[chosen] if hasattr(self.X, "shape") else [self.X[k] for k in rows],
            None if self.y is None else self.y[chosen],
            self.weight[chosen],
            [part[:, some] for part, some in zip(self.beta, own, strict=True)],
            None
            if self.decision is None
            else [part[:, some] for part, some in zip(self.decision, own, strict=True)],
        )

    @staticmethod
    def joined(form: Form, parts: Sequence[Candidates]) -> Candidates:
        """Put the rows of several together, in the order of the collection."""
        parts = [part for part in parts if part.n] or list(parts[:1])
        if len(parts) == 1:
            return parts[0]
        place = np.concatenate([part.place for part in parts])
        order = np.argsort(place, kind="stable")
        seen = [form.own(part.y, part.n) for part in parts]
        places = [
            np.concatenate([part.place[own[k]] for part, own in zip(parts, seen, strict=True)])
            for k in range(form.n_tasks)
        ]
        known = all(part.decision is not None for part in parts)

        def tied(pieces: list[Arrays]) -> Arrays:
            return [
                np.concatenate([piece[k] for piece in pieces], axis=1)[:, np.argsort(places[k])]
                for k in range(form.n_tasks)
            ]

        X = joined([part.X for part in parts])
        return Candidates(
            place[order],
            X[order] if hasattr(X, "shape") else [X[k] for k in order],
            None if parts[0].y is None else np.concatenate([part.y for part in parts])[order],
            np.concatenate([part.weight for part in parts])[order],
            tied([part.beta for part in parts]),
            tied([part.decision or [] for part in parts]) if known else None,
        )

    def used(self, form: Form) -> np.ndarray:
        """Rows with a variable that is not zero."""
        found = np.zeros(self.n, dtype=bool)
        for seen, beta in zip(form.own(self.y, self.n), self.beta, strict=True):
            found[seen] |= beta.any(axis=0)
        return np.flatnonzero(found)


def bytes_of(X: Any) -> int:
    """Bytes of rows."""
    if sp.issparse(X):
        return int(X.data.nbytes + X.indices.nbytes + X.indptr.nbytes)
    if isinstance(X, np.ndarray) and X.dtype != object:
        return int(X.nbytes)
    return sum(len(str(x)) for x in np.ravel(np.asarray(X, dtype=object)))
