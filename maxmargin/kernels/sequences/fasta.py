"""Files of sequences."""

from __future__ import annotations

import gzip
import re
from os import PathLike
from typing import NamedTuple

_GZIP = b"\x1f\x8b"


class Fasta(NamedTuple):
    """Names and sequences of a FASTA file, in its order."""

    names: list[str]
    sequences: list[str]


def read_fasta(path: str | PathLike) -> Fasta:
    """Read the names and sequences of a FASTA file, compressed by gzip or not.

    Parameters
    ----------
    path : str or path

    Returns
    -------
    names : list of str
        What follows ``>``, without the line's end.
    sequences : list of str
        As they are, lines of one sequence joined.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from maxmargin import read_fasta
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "two.fa"
    >>> _ = file.write_text(">first, a short one\\nACGT\\nAC\\n>second\\nTTT\\n")
    >>> names, sequences = read_fasta(file)
    >>> names
    ['first, a short one', 'second']
    >>> sequences
    ['ACGTAC', 'TTT']
    """
    with open(path, "rb") as file:
        data = file.read()
    try:
        text = (gzip.decompress(data) if data.startswith(_GZIP) else data).decode("utf-8-sig")
    except (EOFError, OSError, UnicodeDecodeError) as error:
        raise ValueError(
            f"{path} cannot be read as FASTA text or as gzip of it: {error}"
        ) from error
    names: list[str] = []
    parts: list[list[str]] = []
    for number, line in enumerate(re.split("\r\n|\r|\n", text), 1):
        line = line.strip()
        if line.startswith(">"):
            names.append(line[1:].strip())
            parts.append([])
        elif line and not line.startswith(";"):  # an old form of comment
            if not names:
                raise ValueError(
                    f"{path} is not a FASTA file: line {number} is {line[:20]!r}, and the first "
                    "must be a name after '>'."
                )
            parts[-1].append("".join(line.split()))
    sequences = ["".join(lines) for lines in parts]
    empty = [name for name, sequence in zip(names, sequences, strict=True) if not sequence]
    if not names or empty:
        what = f"{empty[0]!r} has no sequence" if empty else "it holds no sequence"
        raise ValueError(f"{path}: {what}. Was the file cut off?")
    return Fasta(names, sequences)
