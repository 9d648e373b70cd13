"""Rows of ensembles as they are read: classes that have weight, or all rows in one place."""

from __future__ import annotations

from typing import Any

import numpy as np

from maxmargin.dask.collections import is_array, is_frame
from maxmargin.dask.fits import fit_partitions
from maxmargin.dask.rows import Partitions
from maxmargin.multiclass import read_class_weights


def read_classes(machine: Any, X: Any, y: Any, sample_weight: Any, stopped: Any) -> Partitions:
    """Check rows with classes, of which each has to have some weight."""
    rows = Partitions.of(machine, X, y, sample_weight, classes=True, stopped=stopped)
    assert rows.classes is not None
    read_class_weights(None, rows.classes, np.arange(len(rows.classes)), rows.class_weights)
    return rows


def gathered(machine: Any, X: Any, y: Any, sample_weight: Any) -> Any:
    """Fit a machine that needs all rows in one place."""
    return fit_partitions.dispatch(object)(machine, X, y, sample_weight)


def several_outputs(y: Any) -> bool:
    """Whether a target has columns."""
    if is_array(y):
        return y.ndim > 1 and y.shape[1] > 1
    return is_frame(y) and getattr(y, "ndim", 1) > 1 and len(y.columns) > 1
