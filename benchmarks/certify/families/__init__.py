"""Families of problems: a module each, with ``problem(random)``; and how often each is drawn."""

from __future__ import annotations

import zlib
from importlib import import_module
from importlib.util import find_spec

import numpy as np

from benchmarks.certify.judge import Problem

# of about 100 problems; the more a family costs, the fewer
SHARES = {
    "svm": 24,
    "linear": 14,
    "direct": 8,
    "ivanov": 5,
    "ridge": 12,
    "process": 6,
    "logistic": 6,
    "mce": 2,
    "spectral": 6,
    "features": 5,
    "boosting": 6,
    "bounds": 2,
    "probability": 4,
    "separability": 2,
    "searches": 0.5,
    "dask": 0.5,
}
NEEDS = {"dask": "dask"}


def names() -> list[str]:
    """Families whose problems can be made here."""
    return [name for name in SHARES if find_spec(NEEDS.get(name, "numpy"))]


def family_of(seed: int) -> str:
    """Family of a seed where none was asked for."""
    share = np.random.default_rng([29, seed]).random() * sum(SHARES.values())
    ends = np.cumsum(list(SHARES.values()))
    name = list(SHARES)[int(np.searchsorted(ends, share, side="right"))]
    return name if name in names() else "svm"


def problem(seed: int, family: str = "", **options: object) -> Problem:
    """Make the problem of a seed, of its own family or of another."""
    family = family or family_of(seed)
    module = import_module(f"{__name__}.{family}")
    random = np.random.default_rng([29, seed, zlib.crc32(family.encode())])
    return module.problem(random, **options)
