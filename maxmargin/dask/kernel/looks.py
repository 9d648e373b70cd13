"""What partitions tell of their rows: sums and extremes, put together to those of all rows."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from maxmargin.backends.cpu.dual.certificate import KKTSums, noise_of
from maxmargin.backends.cpu.dual.kkt import Extremes
from maxmargin.evaluation import HardMargins


class Look(NamedTuple):
    """What one look at the rows of a task tells: see KKTSums, and lengths of the certificate."""

    sums: KKTSums
    total: float
    longest: float
    common: float


class Gaps(NamedTuple):
    """Sums over the rows of a task: its gap, the doubt of it, and margins of the hard margin."""

    between: float
    doubt: float
    margins: HardMargins


def noise(look: Look, known: Any) -> float:
    """Rounding of a value, beside which a margin is zero."""
    return noise_of(look.total, look.longest, look.common, known.size)


def merged(looks: list[Look]) -> Look:
    """Add sums of several stretches of rows, and take extremes of extremes."""
    sums = [look.sums for look in looks]
    seen = [own.seen for own in sums]
    return Look(
        KKTSums(
            Extremes(
                np.max([own.highest for own in seen], axis=0),
                np.min([own.lowest for own in seen], axis=0),
                np.max([own.top for own in seen], axis=0),
                np.max([own.bottom for own in seen], axis=0),
                np.sum([own.total for own in seen], axis=0),
                np.sum([own.free for own in seen], axis=0),
            ),
            np.sum([own.drift for own in sums], axis=0),
            np.sum([own.amount for own in sums], axis=0),
            float(sum(own.squared_norm for own in sums)),
            float(sum(own.linear for own in sums)),
            float(max(own.outside for own in sums)),
            float(sum(own.size for own in sums)),
        ),
        float(sum(look.total for look in looks)),
        max(look.longest for look in looks),
        max(look.common for look in looks),
    )
