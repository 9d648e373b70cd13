"""The subsequence kernel: characters in common, in the same order, with gaps between them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from maxmargin.backends import program as op
from maxmargin.backends.cpu.recursions import subsequences
from maxmargin.backends.program import Program, View
from maxmargin.backends.strings import Recursion, Strings
from maxmargin.kernels.base import Validity, finite_number
from maxmargin.kernels.sequences.alphabet import sequences_of
from maxmargin.kernels.sequences.base import SequenceKernel, count


class Subsequence(SequenceKernel):
    """The gap-weighted subsequence kernel: all k characters in a row, with gaps, in common.

    ``phi_u(x) = sum over places i_1 < ... < i_k where x spells u of decay^(i_k - i_1 + 1)``: every
    subsequence counts, the less the longer its span. Any characters are letters.

    Parameters
    ----------
    k : int, default=3
    decay : float, default=0.5
        Between 0 (excluded) and 1, where gaps cost nothing.

    Notes
    -----
    A value is a recursion over all pairs of characters, ``O(k |x| |z|)``: compiled and threaded,
    but not for millions of sequences. Long sequences have large values; see :meth:`normalized`.

    References
    ----------
    Lodhi, Saunders, Shawe-Taylor, Cristianini, Watkins, Text classification using string kernels,
    JMLR 2, 2002.

    Examples
    --------
    >>> from maxmargin.kernels import Subsequence
    >>> Subsequence(k=2, decay=0.5).normalized()(["cat", "car", "bar"]).round(3)
    array([[1.   , 0.444, 0.   ],
           [0.444, 1.   , 0.444],
           [0.   , 0.444, 1.   ]])
    """

    def __init__(self, k: int = 3, decay: float = 0.5) -> None:
        self.k = k
        self.decay = decay
        self._check()

    def _check(self) -> None:
        count("k", self.k)
        finite_number("decay", self.decay)
        if not 0 < self.decay <= 1:
            raise ValueError(f"decay must be above 0 and at most 1, got {self.decay!r}.")

    @property
    def validity(self) -> Validity:
        """Valid: the recursion sums products of features."""
        return Validity.VALID

    def _emit(self, program: Program, view: View) -> None:
        self._check()
        program.push(op.STRINGS, view, _Subsequences(int(self.k), float(self.decay)))


@dataclass(frozen=True)
class _Subsequences(Recursion):
    """The kernel as a primitive."""

    k: int
    decay: float

    def encode(self, X: Any) -> Strings:
        kernel = Subsequence(self.k, self.decay)
        why = f", so that {kernel!r} finds nothing in them to compare"
        texts = sequences_of(X, kernel, self.k, why)
        codes = np.frombuffer(
            "".join(texts).encode("utf-32-le", errors="surrogatepass"), dtype=np.uint32
        )
        return Strings.of(codes, list(map(len, texts)))

    @property
    def cell_time(self) -> float:  # type: ignore[override]
        return 0.3 * self.k

    def pairs(
        self, left: Strings, rows: np.ndarray, right: Strings, columns: np.ndarray
    ) -> np.ndarray:
        out = np.empty(len(rows))
        subsequences(*left, rows, *right, columns, self.k, self.decay, out)
        return out
