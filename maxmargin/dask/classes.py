"""Weights of classes over partitions, as :mod:`maxmargin.multiclass.labels` has them in memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from maxmargin.dask.rows import Partitions
from maxmargin.multiclass.labels import read_class_weights


def factors_of_classes(class_weight: Any, rows: Partitions) -> np.ndarray:
    """Return the factor of each class; refuses classes that weigh nothing.

    A class weighs what its rows do together, so that one row of that weight stands for them.
    """
    assert rows.classes is not None
    mass = rows.class_weights
    return read_class_weights(class_weight, rows.classes, np.arange(len(mass)), mass)
