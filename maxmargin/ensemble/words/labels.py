"""Labels of documents: one for each, or several, in the forms that scikit-learn's users have them.

=============================  ==============================  =========================
y                              classes                         what ``predict`` returns
=============================  ==============================  =========================
labels (n,)                    the labels, in order            labels (n,)
indicator matrix (n, k)        0, ..., k - 1, or the columns'  0 and 1, (n, k)
                               names of a data frame
lists or sets of labels        the labels, in order            tuples of labels, a list
=============================  ==============================  =========================

A list of equally long lists of 0 and 1 is an indicator matrix, as in scikit-learn.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.preprocessing import MultiLabelBinarizer

from maxmargin.multiclass import read_labels

ONE, INDICATOR, LISTS = "one", "indicator", "lists"


@dataclass(frozen=True)
class LabelReading:
    """How labels were given, and which there are.

    Parameters
    ----------
    form : {"one", "indicator", "lists"}
    classes : array of shape (n_classes,)
    """

    form: str
    classes: np.ndarray

    @property
    def several(self) -> bool:
        """Whether a document may have several labels, or none."""
        return self.form != ONE

    @property
    def names(self) -> np.ndarray:
        """Labels that have values of their own: all, or of two that exclude each other the last."""
        two = self.form == ONE and len(self.classes) == 2
        return self.classes[1:] if two else self.classes

    @classmethod
    def of(cls, y: Any) -> tuple[LabelReading, np.ndarray]:
        """Read labels; returns also which document has which, booleans (n, len(names))."""
        form = form_of(y)
        if form == ONE:
            classes, index = read_labels(y)
            reading = cls(form, classes)
            return reading, index[:, None] == np.searchsorted(classes, reading.names)
        if form == INDICATOR:
            truth = _indicator(y)
            columns = getattr(y, "columns", None)
            names = np.arange(truth.shape[1]) if columns is None else np.array(list(columns))
            return cls(form, names), truth
        sets = _lists(y)
        there = {label for labels in sets for label in labels}
        kinds = sorted({type(label).__name__ for label in there})
        if not there:
            raise ValueError("No document has a label: there is nothing to learn.")
        if len(kinds) > 1:
            raise ValueError(
                f"Labels are of one type, and these are of the types {', '.join(kinds)}: write all "
                "of them as str."
            )
        classes = np.array(sorted(there))
        reading = cls(form, classes)
        return reading, reading.truth(y)

    def truth(self, y: Any) -> np.ndarray:
        """Which document has which label, of labels in the same form; booleans (n, names)."""
        form = form_of(y)
        if form != self.form:
            raise ValueError(
                f"The labels were given as {_FORMS[self.form]}, and these are {_FORMS[form]}."
            )
        if form == ONE:
            labels = np.asarray(y).ravel()
            strange = set(labels.tolist()) - set(self.classes.tolist())
            if strange:
                raise ValueError(_unknown(strange))
            return labels[:, None] == self.names
        if form == INDICATOR:
            truth = _indicator(y)
            if truth.shape[1] != len(self.classes):
                raise ValueError(
                    f"y has {truth.shape[1]} columns, and there are {len(self.classes)} labels."
                )
            return truth
        sets = _lists(y)
        strange = {label for labels in sets for label in labels} - set(self.classes.tolist())
        if strange:
            raise ValueError(_unknown(strange))
        binarizer = MultiLabelBinarizer(classes=self.classes.tolist())
        return binarizer.fit_transform(sets).astype(bool)

    def written(self, chosen: np.ndarray) -> Any:
        """Return labels that were chosen, booleans (n, names), in the form they were given."""
        if self.form == INDICATOR:
            return chosen.astype(int)
        return [tuple(self.classes[row].tolist()) for row in chosen]


_FORMS = {
    ONE: "one label for each document",
    INDICATOR: "an indicator matrix",
    LISTS: "lists of labels",
}


def form_of(y: Any) -> str:
    """Tell in which form labels are given.

    >>> form_of(["a", "b"]), form_of([[0, 1], [1, 1]]), form_of([["a"], ["a", "b"]])
    ('one', 'indicator', 'lists')
    """
    shape: tuple = getattr(y, "shape", ())
    if sp.issparse(y):
        return INDICATOR
    if len(shape) == 2:
        return INDICATOR if shape[1] > 1 else ONE
    items = list(y) if hasattr(y, "__iter__") else list(np.asarray(y))
    collections = [isinstance(item, Set | list | tuple | np.ndarray) for item in items]
    if not any(collections):
        return ONE
    if not all(collections):
        at = collections.index(False)
        raise ValueError(
            f"Some documents have a list of labels, and document {at} has {items[at]!r}: write "
            "[label] where there is one, and [] where there is none."
        )
    if any(isinstance(item, Set) for item in items) or len({len(item) for item in items}) > 1:
        return LISTS
    entries = np.array(items)
    if entries.ndim != 2 or entries.dtype.kind not in "biuf" or not np.isin(entries, (0, 1)).all():
        return LISTS
    return INDICATOR if entries.shape[1] > 1 else ONE if entries.size else LISTS


def _unknown(labels: set) -> str:
    return f"Labels {sorted(labels, key=str)} are not among those of the fit."


def _indicator(y: Any) -> np.ndarray:
    """Return an indicator matrix as booleans."""
    table = y.toarray() if sp.issparse(y) else np.asarray(y)
    if table.dtype.kind not in "biuf" or not np.isin(table, (0, 1)).all():
        raise ValueError(
            "Unknown label type: y has several columns, and in an indicator matrix each entry is "
            "0 or 1. For labels of other kinds, give a list of labels for each document."
        )
    return table.astype(bool)


def _lists(y: Any) -> list[set]:
    """Return sets of labels, each as plain objects."""
    return [set(item.tolist() if isinstance(item, np.ndarray) else item) for item in y]
