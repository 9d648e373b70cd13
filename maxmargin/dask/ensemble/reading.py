"""Rows of ensembles as they are read: classes that have weight, targets with columns."""

from __future__ import annotations

from typing import Any

import numpy as np

from maxmargin.dask.collections import is_array, is_frame
from maxmargin.dask.rows import Partitions
from maxmargin.multiclass import read_class_weights


def read_classes(machine: Any, X: Any, y: Any, sample_weight: Any) -> Partitions:
    """Check rows with classes, of which each has to have some weight."""
    rows = Partitions.of(machine, X, y, sample_weight, classes=True)
    assert rows.classes is not None
    read_class_weights(None, rows.classes, np.arange(len(rows.classes)), rows.class_weights)
    return rows


def several_outputs(y: Any) -> bool:
    """Whether a target has columns."""
    if is_array(y):
        return y.ndim > 1 and y.shape[1] > 1
    return is_frame(y) and getattr(y, "ndim", 1) > 1 and len(y.columns) > 1
