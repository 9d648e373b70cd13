"""The local alignment kernel: all ways to align parts of two sequences, by their scores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.linalg import eigvalsh

from maxmargin.backends import program as op
from maxmargin.backends.cpu import Operand, kernel_square
from maxmargin.backends.cpu.recursions import add_where_same, alignments
from maxmargin.backends.cpu.strings import UNKNOWN
from maxmargin.backends.program import Program, View
from maxmargin.backends.strings import Recursion, Strings
from maxmargin.backends.threads import Workers, on_one_blas_thread, thread_count
from maxmargin.backends.views import Views
from maxmargin.kernels.base import Kernel, Validity, finite_number
from maxmargin.kernels.sequences.alphabet import sequences_of
from maxmargin.kernels.sequences.base import SequenceKernel, check_unknown
from maxmargin.kernels.sequences.substitutions import substitution_scores

_ROUNDING = 1e-12  # of the largest eigenvalue: what is no nearer to zero than this counts


class LocalAlignment(SequenceKernel):
    """The local alignment kernel: the scores of all ways to align parts of two sequences.

    The Smith-Waterman score is that of the best alignment; this kernel is a sum over all of them,
    ``K(x, z) = sum over alignments of exp(beta * score)``, of which it takes ``ln(K) / beta``: near
    the best score for large ``beta``.

    Parameters
    ----------
    matrix : {"blosum62", "dna"} or dict of (letter, letter) to score, default="blosum62"
        Scores of two aligned characters; ``"dna"`` has 5 for the same and -4 for others.
    beta : float, default=0.5
    gap_open, gap_extend : float, default=11.0, 1.0
        Costs of the first character of a gap and of each further one.
    logarithm : bool, default=True
        False takes K itself. That grows with every character that is aligned, so that a sequence is
        only like itself, and for long ones is beyond float64.
    shift : float or "auto", default="auto"
        Added to ``k(x, z)`` where x and z are the same sequence, see below. 0 for none; without the
        logarithm it is not needed.
    unknown : {"error", "skip"}, default="error"
        Whether characters that the matrix has no score for are refused or left out.

    Notes
    -----
    K is a valid kernel where the matrix ``exp(beta s(a, b))`` is positive semidefinite, as for
    BLOSUM62; its logarithm is not in general. Saigo et al. mend that by adding to the diagonal of
    the training matrix what its smallest eigenvalue lacks: ``shift="auto"``. So the matrix that a
    machine is trained on is positive semidefinite; it takes all pairs of training sequences to find
    out by how much. Nothing is said of other sequences: ``validity`` stays "not proven".

    References
    ----------
    Saigo, Vert, Ueda, Akutsu, Protein homology detection using string alignment kernels,
    Bioinformatics 20, 2004.

    Examples
    --------
    >>> from maxmargin.kernels import LocalAlignment
    >>> LocalAlignment()(["MKWVTF", "MRWVSF", "GGPPGG"]).round(1)
    array([[36.3, 29.4,  5.5],
           [29.4, 35.3,  5.9],
           [ 5.5,  5.9, 38.2]])
    """

    def __init__(
        self,
        matrix: Any = "blosum62",
        beta: float = 0.5,
        gap_open: float = 11.0,
        gap_extend: float = 1.0,
        logarithm: bool = True,
        shift: float | str = "auto",
        unknown: str = "error",
    ) -> None:
        self.matrix = matrix
        self.beta = beta
        self.gap_open = gap_open
        self.gap_extend = gap_extend
        self.logarithm = logarithm
        self.shift = shift
        self.unknown = unknown
        self._check()

    def _check(self) -> None:
        substitution_scores(self.matrix)
        check_unknown(self.unknown)
        finite_number("gap_open", self.gap_open, minimum=0.0)
        finite_number("gap_extend", self.gap_extend, minimum=0.0)
        if finite_number("beta", self.beta) <= 0:
            raise ValueError(f"beta must be above 0, got {self.beta!r}.")
        if not isinstance(self.shift, str):
            finite_number("shift", self.shift, minimum=0.0)
        elif self.shift != "auto":
            raise ValueError(f'shift must be "auto" or a number, got {self.shift!r}.')

    @property
    def validity(self) -> Validity:
        """Without the logarithm valid, if the scores are so; with it not in general.

        A shift leaves it open: it mends the training matrix.
        """
        if self.logarithm:
            return Validity.INVALID if self.shift == 0 else Validity.UNPROVEN
        weights = np.exp(self.beta * substitution_scores(self.matrix)[1])
        values = np.linalg.eigvalsh(weights)
        return Validity.VALID if values[0] >= -_ROUNDING * values[-1] else Validity.UNPROVEN

    @on_one_blas_thread
    def _resolve(self, X: Any, feature_names: Sequence[str] | None) -> Kernel:
        self._check()
        params = self.get_params(deep=False)
        if not self.logarithm:
            params["shift"] = 0.0
        elif self.shift == "auto":
            params["shift"] = 0.0
            params["shift"] = _lacking(LocalAlignment(**params), X)
        return LocalAlignment(**params)

    def _emit(self, program: Program, view: View) -> None:
        self._check()
        program.push(op.STRINGS, view, _Alignments(self))


class _Alignments(Recursion):
    """The kernel as a primitive."""

    def __init__(self, kernel: LocalAlignment) -> None:
        self.kernel = kernel
        self.alphabet, scores = substitution_scores(kernel.matrix)
        self.weights = np.exp(kernel.beta * scores)
        costs = np.array([kernel.gap_open, kernel.gap_extend])
        self.gaps = np.exp(-kernel.beta * costs)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Alignments) and self.kernel == other.kernel

    def __hash__(self) -> int:
        return hash(self.kernel)

    def encode(self, X: Any) -> Strings:
        texts = sequences_of(X, self.kernel)
        strings = self.alphabet.encode(texts, check_unknown(self.kernel.unknown))
        known = strings.codes != UNKNOWN
        if known.all():
            return strings
        counted = np.concatenate([[0], np.cumsum(known)])
        return Strings(strings.codes[known], counted[strings.begin])

    def pairs(
        self, left: Strings, rows: np.ndarray, right: Strings, columns: np.ndarray
    ) -> np.ndarray:
        out = np.empty(len(rows))
        alignments(*left, rows, *right, columns, self.weights, *self.gaps, out)
        if self.kernel.logarithm:
            out /= self.kernel.beta
            add_where_same(*left, rows, *right, columns, float(self.kernel.shift), out)
            return out
        with np.errstate(over="ignore"):  # who asked refuses what is not finite
            return np.exp(out)


def _lacking(kernel: Kernel, X: Any) -> float:
    """How far the smallest eigenvalue of a kernel's matrix is below zero, on these sequences."""
    program = kernel.lower()
    points = Operand.prepare(program, Views.of(X))
    matrix = np.empty((points.n, points.n))
    kernel_square(program, points, None, matrix, Workers(thread_count(None)))
    largest = float(np.abs(matrix).max())
    smallest = eigvalsh(matrix, subset_by_index=(0, 0), overwrite_a=True)[0]
    return float(max(-smallest, 0.0) + (smallest < 0) * _ROUNDING * largest * points.n)
