"""Sequences as numbers: alphabets, and what is wrong with characters that they do not have."""

from __future__ import annotations

import reprlib
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from maxmargin.backends.cpu.strings import UNKNOWN
from maxmargin.backends.data import as_table
from maxmargin.backends.strings import Strings

DNA, RNA, PROTEIN = "ACGT", "ACGU", "ARNDCQEGHILKMFPSTWYV"
_NAMED = {"dna": DNA, "rna": RNA, "protein": PROTEIN, "latin1": "".join(map(chr, range(255)))}
_FOLDED = "dna", "rna", "protein"  # small letters mean the same, as in genomes that are masked
_LISTED = 10  # characters or rows that a message names


@dataclass(frozen=True)
class Alphabet:
    """The characters of sequences, numbered in their order.

    Made by :meth:`of`: ``"dna"``, ``"rna"``, ``"protein"`` (the 20 amino acids; in these three
    small letters are capital ones), ``"latin1"`` (any text of one byte a character, but ``"ÿ"``),
    or a string of the characters themselves.

    Examples
    --------
    >>> Alphabet.of("dna").encode(["GATTACA", "acgt"]).codes
    array([2, 0, 3, 3, 0, 1, 0, 0, 1, 2, 3], dtype=uint8)
    """

    letters: str
    name: str | None = None

    @classmethod
    def of(cls, alphabet: Any) -> Alphabet:
        """Return the alphabet that a parameter means."""
        if isinstance(alphabet, str) and alphabet in _NAMED:
            return cls(_NAMED[alphabet], alphabet)
        fine = isinstance(alphabet, str) and 1 < len(set(alphabet)) == len(alphabet) < UNKNOWN + 1
        if not fine or max(alphabet) > "\xff":
            raise ValueError(
                f"alphabet must be one of {sorted(_NAMED)} or a string of at least two different "
                f"characters of one byte each, such as 'ACGT'; got {alphabet!r}."
            )
        return cls(alphabet)

    @property
    def size(self) -> int:
        """Number of characters."""
        return len(self.letters)

    @property
    def complements(self) -> bool:
        """Whether there is an opposite strand: ``letters[size - 1 - i]`` pairs ``letters[i]``."""
        return self.name in ("dna", "rna")

    @cached_property
    def _codes(self) -> np.ndarray:
        table = np.full(256, UNKNOWN, dtype=np.uint8)
        cases = (self.letters.lower(), self.letters) if self.name in _FOLDED else (self.letters,)
        for letters in cases:
            table[np.frombuffer(letters.encode("latin-1"), dtype=np.uint8)] = np.arange(self.size)
        return table

    def encode(self, sequences: list[str], skip_unknown: bool = False) -> Strings:
        """Return sequences as numbers; a character outside is refused, or ``UNKNOWN``."""
        text = "".join(sequences)
        raw = np.frombuffer(text.encode("latin-1", errors="replace"), dtype=np.uint8)
        codes = self._codes[raw]
        if not text.isascii() and max(text) > "\xff":  # replaced by question marks above
            codes[np.array([letter > "\xff" for letter in text])] = UNKNOWN
        if not skip_unknown and (codes == UNKNOWN).any():
            self._refuse(sequences, text, codes)
        return Strings.of(codes, list(map(len, sequences)))

    def _refuse(self, sequences: list[str], text: str, codes: np.ndarray) -> None:
        places = np.flatnonzero(codes == UNKNOWN)
        strange = sorted({text[place] for place in places})
        ends = np.cumsum(list(map(len, sequences)))
        rows = np.unique(np.searchsorted(ends, places, side="right"))
        own = repr(self.name) if self.name else reprlib.repr(self.letters)
        listed = ", ".join(map(repr, strange[:_LISTED])) + ", ..." * (len(strange) > _LISTED)
        raise ValueError(
            f"{len(strange)} character{'s' * (len(strange) > 1)} outside the alphabet {own} in "
            f"{some_rows(rows)}: {listed}. Choose the alphabet ('dna', 'rna', 'protein', 'latin1' "
            "or the characters themselves), mend the sequences, or give unknown='skip' to leave "
            "out what these characters are part of."
        )

    def word(self, number: int, k: int) -> str:
        """Return the word of k characters that a number stands for."""
        letters = []
        for _ in range(k):
            number, code = divmod(int(number), self.size)
            letters.append(self.letters[code])
        return "".join(reversed(letters))


def sequences_of(X: Any, asked_by: Any, least: int = 1, why: str = "") -> list[str]:
    """Return a column of sequences as a list of str; bytes are text of one byte a character.

    Refused are other types, several columns, and sequences shorter than ``least`` for the reason
    ``why``.
    """
    table = X if isinstance(X, np.ndarray) and X.dtype == object else as_table(X)
    if table.ndim == 2:
        if table.shape[1] != 1:
            raise ValueError(
                f"{asked_by!r} compares one sequence with another, and X has {table.shape[1]} "
                f"columns: choose that of the sequences, {asked_by!r}.on('sequence')."
            )
        table = table[:, 0]
    items: list[Any] = table.tolist()
    if not set(map(type, items)) <= {str}:
        for row, item in enumerate(items):
            if not isinstance(item, str | bytes):
                raise TypeError(
                    f"{asked_by!r} compares sequences, of type str or bytes, and row {row} is "
                    f"{reprlib.repr(item)}, of type {type(item).__name__}. Drop rows without a "
                    "sequence; for vectors of numbers there are other kernels, such as RBF()."
                )
        items = [x.decode("latin-1") if isinstance(x, bytes) else str(x) for x in items]
    lengths = np.fromiter(map(len, items), dtype=np.int64, count=len(items))
    short = np.flatnonzero(lengths < least)
    if len(short):
        what = f"have fewer than {least} characters{why}" if lengths[short].any() else "are empty"
        raise ValueError(
            f"Sequences in {some_rows(short)} {what}: drop them, or look whether they were read as "
            "they should."
        )
    return items


def some_rows(rows: np.ndarray) -> str:
    """Name rows in a message, the first of them where there are many."""
    listed = ", ".join(str(int(row)) for row in rows[:_LISTED])
    more = f" and {len(rows) - _LISTED} more" if len(rows) > _LISTED else ""
    return f"row{'s' * (len(rows) > 1)} {listed}{more}"
