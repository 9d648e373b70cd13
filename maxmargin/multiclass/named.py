"""Schemes by name."""

from __future__ import annotations

from typing import Any

from maxmargin.multiclass.one_vs_one import OneVsOne
from maxmargin.multiclass.one_vs_rest import OneVsRest
from maxmargin.multiclass.scheme import Scheme

NAMED = {"ovo": OneVsOne, "ovr": OneVsRest}


def as_scheme(multiclass: Any, n_classes: int) -> Scheme:
    """Return the scheme for so many classes.

    Parameters
    ----------
    multiclass : {"ovo", "ovr"}, Scheme or callable
        A name, a scheme, or what makes one of the number of classes: a subclass of
        :class:`~maxmargin.multiclass.Scheme`.
    n_classes : int

    Examples
    --------
    >>> from maxmargin.multiclass import as_scheme
    >>> as_scheme("ovr", 3)
    OneVsRest(n_classes=3)
    """
    scheme = multiclass
    if not isinstance(multiclass, Scheme):
        make = NAMED[multiclass] if isinstance(multiclass, str) else multiclass
        scheme = make(n_classes)
    if not isinstance(scheme, Scheme) or scheme.n_classes != n_classes:
        raise ValueError(
            f"multiclass={multiclass!r} gives {scheme!r}, and y has {n_classes} classes: pass a "
            "scheme for so many, or the class of the scheme itself."
        )
    return scheme
