"""Random numbers of a tree: a 64-bit state of its own, so that threads do not matter.

SplitMix64: Steele, Lea and Flood, Fast splittable pseudorandom number generators, OOPSLA 2014.
"""

from __future__ import annotations

import numpy as np

from maxmargin.backends.compiled import INNER, njit

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_30, _27, _31, _32, _11 = (np.uint64(k) for k in (30, 27, 31, 32, 11))
_UNIT = 2.0**-53


@njit(cache=True, forceinline=True, **INNER)
def next_state(state):
    """Return the state after this one."""
    return state + _GOLDEN


@njit(cache=True, forceinline=True, **INNER)
def mixed(state):
    """Return the 64 random bits of a state."""
    z = (state ^ (state >> _30)) * _FIRST
    z = (z ^ (z >> _27)) * _SECOND
    return z ^ (z >> _31)


@njit(cache=True, forceinline=True, **INNER)
def below(bits, count):
    """Return an integer from 0 to count - 1; ``count`` is below 2^31."""
    return np.int64(((bits >> _32) * np.uint64(count)) >> _32)


@njit(cache=True, forceinline=True, **INNER)
def unit(bits):
    """Return a number of [0, 1)."""
    return np.float64(bits >> _11) * _UNIT
