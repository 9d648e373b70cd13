"""Warnings that point at the line of whoever called the estimator."""

from __future__ import annotations

import sys
import warnings
from types import FrameType

from sklearn.exceptions import ConvergenceWarning

# Whose frames lie between a caller and us: decorators, pipelines, searches.
_BETWEEN = {"maxmargin", "sklearn", "joblib", "contextlib", "functools"}


def warn(message: str, category: type[Warning] = ConvergenceWarning) -> None:
    """Warn with the file and line that called into this package, however deep the call is.

    A fit inside a pipeline or a search warns where that was fitted. Where nobody called, in a
    process of joblib's, the line is our own.
    """
    frame: FrameType | None = sys._getframe()
    level = 1
    while frame is not None and _package(frame) in _BETWEEN:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=1 if frame is None else level)


def _package(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__")).partition(".")[0]
