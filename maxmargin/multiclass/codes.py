"""Error-correcting output codes: more tasks than needed, so that wrong classifiers are outvoted.

A class is a code word, its entries the sides that it takes in the tasks. If any two words differ
in d entries, (d - 1) // 2 binary classifiers may be on the wrong side of a point, and its own class
is still the nearest in Hamming distance. Sums of losses have no such number: they weigh how far a
value is off, so that a single one that is far on the wrong side can decide. Each task splits all
classes in two; in a sparse code some of them sit out.

References: Dietterich and Bakiri, JAIR 2, 1995; Allwein, Schapire and Singer, JMLR 1, 2000.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, reduce
from operator import xor
from typing import Any

import numpy as np

from maxmargin.multiclass.scheme import Scheme

_EXHAUSTIVE = 7  # classes up to which all splits are taken: 63 tasks
_TRIES = 100  # random codes of which the best is taken
_NAMES = ("auto", "exhaustive", "dense", "sparse", "bch")
_DECODINGS = ("loss", "hamming")


@dataclass(frozen=True)
class ErrorCorrectingCode(Scheme):
    """Classes as words of an error-correcting code; the nearest word decides.

    Parameters
    ----------
    n_classes : int
    kind : {"auto", "exhaustive", "dense", "sparse", "bch"} or matrix, default="auto"
        ``"exhaustive"``: all ``2^(K-1) - 1`` splits of K classes. ``"dense"`` and ``"sparse"``:
        random, ``10 log2 K`` tasks with all classes and ``15 log2 K`` in which about half of them
        sit out. ``"bch"``: words of a Bose-Chaudhuri-Hocquenghem code of 15 to 63 tasks, for many
        classes. The draw, of 100, with the furthest words is taken. ``"auto"``: exhaustive up to
        seven classes, else dense. Or a matrix of -1, 0 and 1 with a row for each class.
    n_tasks : int, optional
        Tasks of a random code, in place of the numbers above.
    decoding : {"loss", "hamming"}, default="loss"
        The class with the smallest sum of hinge losses, or with the fewest wrong signs; an entry
        of zero counts as half a wrong one. Ties go to the first.
    random_state : int, default=0
        Of the draws.

    Examples
    --------
    >>> from maxmargin.multiclass import ErrorCorrectingCode
    >>> code = ErrorCorrectingCode(5, decoding="hamming")
    >>> code.code.shape, code.row_distance, code.errors_mended
    ((15, 5), 8.0, 3)
    """

    kind: Any = "auto"
    n_tasks: int | None = None
    decoding: str = "loss"
    random_state: int = 0

    def __post_init__(self) -> None:
        if not isinstance(self.kind, str):
            words = tuple(tuple(int(entry) for entry in word) for word in self.kind)
            object.__setattr__(self, "kind", words)
        elif self.kind not in _NAMES:
            raise ValueError(f"kind must be a matrix or one of {_NAMES}, got {self.kind!r}.")
        if self.decoding not in _DECODINGS:
            raise ValueError(f"decoding must be one of {_DECODINGS}, got {self.decoding!r}.")
        if self.n_tasks is not None and self.kind not in ("dense", "sparse"):
            raise ValueError(
                f'n_tasks is for kind="dense" and "sparse"; {self.kind!r} has a number of its own.'
            )

    def _code(self) -> np.ndarray:
        kind, n_classes = self.kind, self.n_classes
        if kind == "auto":
            kind = "exhaustive" if n_classes <= _EXHAUSTIVE else "dense"
        if not isinstance(kind, str):
            code = np.array(kind).T
        elif kind == "exhaustive":
            code = exhaustive(n_classes)
        else:
            code = self._best_of(kind)
        self._check_separation(code)
        return code

    def _best_of(self, kind: str) -> np.ndarray:
        """Return the code, of some, whose closest words and then closest tasks are furthest."""
        n_classes, random = self.n_classes, np.random.default_rng(self.random_state)
        if kind == "bch":
            words = bch_words(n_classes)
        else:
            count = self.n_tasks or int(
                np.ceil((10 if kind == "dense" else 15) * np.log2(n_classes))
            )
            splits = 2 ** (n_classes - 1) - 1
            most = splits if kind == "dense" else (3**n_classes + 1) // 2 - 2**n_classes
            if count > most:
                raise ValueError(
                    f"There are only {most} different {kind} tasks for {n_classes} classes, and "
                    f"{count} are asked for: choose fewer with n_tasks."
                )
        found, best = None, (-1.0, -1.0, -1.0)
        for _ in range(_TRIES):
            if kind == "bch":
                code = _distinct(random.choice(words, n_classes, replace=False).T)
            else:
                code = _draw(kind, count, n_classes, random)
            quality = _apart(code), _closest(code.T), _closest_tasks(code)
            if quality > best:
                found, best = code, quality
        assert found is not None
        return found

    def _check_separation(self, code: np.ndarray) -> None:
        """Refuse a code that cannot tell two classes apart, or asks the same thing twice."""
        if code.ndim != 2 or code.shape[1] != self.n_classes or np.abs(code).max() > 1:
            return  # refused by who asked for it
        first, second = np.triu_indices(self.n_classes, 1)
        apart = (code[:, first] * code[:, second] < 0).any(axis=0)
        if not apart.all():
            i, j = first[~apart][0], second[~apart][0]
            raise ValueError(
                f"No task of the code has the classes number {i} and {j} on different sides, so it "
                "cannot tell them apart. Add a task (a column of the matrix; n_tasks) that does."
            )
        if len(code) > 1 and _closest_tasks(code) == 0:
            raise ValueError(
                "Two tasks of the code are the same, or one is the other with its sides exchanged: "
                "their machines make the same errors, and mend none. Remove one of them."
            )

    @cached_property
    def row_distance(self) -> float:
        """Smallest distance of two classes' words; a zero counts as half an entry."""
        return _closest(self.code.T)

    @property
    def errors_mended(self) -> int:
        """How many binary classifiers may be wrong about a point without changing its class.

        Of those that have seen its class; what the others say is taken at its worst. It is zero for
        decoding by losses, where one value far on the wrong side can outweigh all others.
        """
        if self.decoding == "loss":
            return 0
        words = self.code.T
        seen = np.abs(words)
        entries = seen.sum(axis=1)
        lead = 0.5 * (entries[:, None] - entries + seen @ seen.T - words @ words.T)
        return max(int(np.ceil(lead[~np.eye(self.n_classes, dtype=bool)].min() / 2)) - 1, 0)

    def scores(self, values: np.ndarray) -> np.ndarray:
        """Minus the distance to each class's word: losses, or entries that differ."""
        if self.decoding == "loss":
            return super().scores(values)
        signs = np.where(values > 0, 1, -1)
        return -0.5 * (len(self.code) - signs @ self.code)


def exhaustive(n_classes: int) -> np.ndarray:
    """All splits of the classes in two, one of each pair of opposites: (2^(K-1) - 1, K).

    Examples
    --------
    >>> from maxmargin.multiclass.codes import exhaustive
    >>> exhaustive(3)
    array([[ 1, -1, -1],
           [ 1, -1,  1],
           [ 1,  1, -1]])
    """
    if n_classes > 14:
        raise ValueError(
            f"An exhaustive code for {n_classes} classes has {2 ** (n_classes - 1) - 1:,} tasks: "
            'choose kind="dense", "sparse" or "bch".'
        )
    numbers = np.arange(2 ** (n_classes - 1) - 1)
    others = (numbers[:, None] >> np.arange(n_classes - 1)[::-1]) & 1
    return np.column_stack([np.ones(len(numbers), dtype=np.int64), 2 * others - 1])


# places: message bits and generator polynomial (octal) of narrow-sense binary BCH codes, of which
# any two words differ in 7, 15, 31 and 27 places (Lin and Costello, Error Control Coding, appendix)
_BCH = {
    15: (5, 0o2467),
    31: (6, 0o313365047),
    63: (7, 0o5231045543503271737),
    64: (10, 0o472622305527250155),  # 63 places, too
}


def bch_words(n_classes: int) -> np.ndarray:
    """All words of the shortest BCH code that has two for each class, (words, places), -1 and 1."""
    for places, (bits, generator) in _BCH.items():
        if 2**bits >= 2 * n_classes or (bits == 10 and n_classes <= 2**bits):
            words = [_times(message, generator) for message in range(2**bits)]
            numbers = np.array(words, dtype=np.uint64)[:, None]
            bits_of = numbers >> np.arange(min(places, 63), dtype=np.uint64) & np.uint64(1)
            return 2 * bits_of.astype(np.int64) - 1
    raise ValueError(
        f'BCH codes here have words for up to 1,024 classes, not for {n_classes}: kind="dense".'
    )


def _times(message: int, generator: int) -> int:
    """Product of two polynomials over the field of two elements, as numbers."""
    return reduce(xor, (generator << k for k in range(message.bit_length()) if message >> k & 1), 0)


def _draw(kind: str, count: int, n_classes: int, random: np.random.Generator) -> np.ndarray:
    """Draw so many different tasks, each with both sides."""
    entries = [-1, 1] if kind == "dense" else [-1, 0, 0, 1]
    code = np.zeros((0, n_classes), dtype=np.int64)
    while len(code) < count:
        code = _distinct(np.vstack([code, random.choice(entries, size=(2 * count, n_classes))]))
    return random.permutation(code)[:count]


def _distinct(code: np.ndarray) -> np.ndarray:
    """Keep the tasks with both sides, and one of several that are equal or opposite."""
    code = code[(code.max(axis=1) > 0) & (code.min(axis=1) < 0)]
    first = np.take_along_axis(code, (code != 0).argmax(axis=1)[:, None], axis=1)
    return np.unique(code * first, axis=0)


def _apart(code: np.ndarray) -> float:
    """Smallest number of tasks that have two classes on different sides."""
    against = (code < 0).T.astype(np.int64) @ (code > 0)
    return float((against + against.T)[np.triu_indices(code.shape[1], 1)].min())


def _closest(words: np.ndarray) -> float:
    """Smallest Hamming distance of two words; entries of which one is zero count half."""
    distance = 0.5 * (words.shape[1] - words @ words.T)
    return float(distance[np.triu_indices(len(words), 1)].min(initial=words.shape[1]))


def _closest_tasks(code: np.ndarray) -> float:
    """Smallest distance of a task to another, or to its opposite."""
    overlap = np.abs(code @ code.T)
    entries = (code != 0).sum(axis=1)
    union = np.maximum.outer(entries, entries)
    return float((union - overlap)[np.triu_indices(len(code), 1)].min(initial=code.shape[1])) / 2
