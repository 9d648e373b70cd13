"""Schemes by name."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from maxmargin.multiclass.codes import ErrorCorrectingCode
from maxmargin.multiclass.dag import DAG
from maxmargin.multiclass.direct import CrammerSinger, WestonWatkins
from maxmargin.multiclass.one_vs_one import OneVsOne
from maxmargin.multiclass.one_vs_rest import OneVsRest
from maxmargin.multiclass.scheme import Scheme

NAMED: dict[str, type[Scheme]] = {
    "ovo": OneVsOne,
    "ovr": OneVsRest,
    "dag": DAG,
    "ecoc": ErrorCorrectingCode,
    "crammer_singer": CrammerSinger,
    "weston_watkins": WestonWatkins,
}


def as_scheme(multiclass: Any, n_classes: int) -> Scheme:
    """Return the scheme for so many classes; for two of them it is always the one machine.

    Parameters
    ----------
    multiclass : one of ``NAMED``, Scheme or callable
        A name, a scheme, or what makes one of the number of classes: a subclass of
        :class:`~maxmargin.multiclass.Scheme`.
    n_classes : int

    Examples
    --------
    >>> from maxmargin.multiclass import as_scheme
    >>> as_scheme("ovo", 3)
    OneVsOne(n_classes=3, balanced=False)
    """
    if isinstance(multiclass, str):
        return _named(multiclass if n_classes > 2 else "ovo", n_classes)
    scheme = multiclass if isinstance(multiclass, Scheme) else multiclass(n_classes)
    if not isinstance(scheme, Scheme) or scheme.n_classes != n_classes:
        raise ValueError(
            f"multiclass={multiclass!r} gives {scheme!r}, and y has {n_classes} classes: pass a "
            "scheme for so many, or the class of the scheme itself."
        )
    return scheme if n_classes > 2 else _named("ovo", 2)


@lru_cache(maxsize=8)
def _named(name: str, n_classes: int) -> Scheme:
    """Make a scheme once: small fits are many, and its code takes as long as their checks."""
    return NAMED[name](n_classes)
