"""AdaBoost.MH over words: in each round the word whose stump has the least Z.

Every word is a stump: it says ``present`` (k,) of documents that have it and ``absent`` (k,) of
those that do not. With the weights W of documents on a side that have a label (+) or not (-),

    real          c = 1/2 log( (W+ + eps) / (W- + eps) )     on both sides
    abstaining    the same where the word is, 0 where not
    discrete      alpha sign(W+ - W-),   alpha = 1/2 log( (1 + r + eps) / (1 - r + eps) )

where ``r`` is the sum of all ``|W+ - W-|``. Words are compared by Z without eps, as in the paper;
the Z that is kept is that of the stump as it is, so that its product is a bound. Of words with the
same Z (to 1e-12) the first is taken. Values are multiples of 2**-30, so that their sums are exact
and labels that nothing tells apart have equal values on every computer.

A round looks at words in two ways. Sums of weights are kept for words in many documents, and change
only by the documents that have the last round's word. A word in few documents is summed up anew,
and only where a bound on what its documents weigh allows that it is the best.

Reference: Schapire and Singer, BoosTexter: a boosting-based system for text categorization, Machine
Learning 39, 2000.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar, NamedTuple

import numpy as np
import scipy.sparse as sp

from maxmargin.backends.cpu import word_stumps as compiled
from maxmargin.backends.threads import StoppedError, Workers
from maxmargin.ensemble.words.weights import Changes, LabelSets, LabelWeights
from maxmargin.solution import Status
from maxmargin.solvers.driver import Measure, Method, Run, Watch

KINDS = {
    "real": compiled.REAL,
    "abstaining": compiled.ABSTAINING,
    "discrete": compiled.DISCRETE,
}
NO_GAIN = 1e-10  # below 1 that Z has to be for a round to count
_UNIT = 2.0**-30  # of a stump's values: their sums are then exact in any order, and ties are ties
_KEPT = 16  # documents from which a word's sums are kept: memory against bounds; see decision 0043
_FRESH = 32  # rounds after which all sums are made anew, so that rounding does not add up
_LARGE = 200.0  # logarithm of a scale at which they are, too
_WORK = 1 << 21  # sums of one call of compiled code: some milliseconds


@dataclass(frozen=True)
class LabelledWords:
    """Documents as sets of words, and their labels.

    Parameters
    ----------
    rows : CSR matrix of shape (n_documents, n_words)
        Whose entries, all of them, say that a document has a word; indices in order.
    sets : LabelSets
    weight : float array of shape (n_documents,)
    values : float array of shape (n_documents, n_labels), optional
        ``f`` at the start; zero where it is not given.
    """

    rows: sp.csr_matrix
    sets: LabelSets
    weight: np.ndarray
    values: np.ndarray | None = None


class Stumps(NamedTuple):
    """What the rounds have found: words, their values and their Z, one row for each round.

    ``losses`` are the Hamming losses after each round, ``start`` is what the product of Z begins
    with, ``D`` the distribution in the end; ``looked_at`` counts the words in few documents that
    were summed up.
    """

    words: np.ndarray
    absent: np.ndarray
    present: np.ndarray
    Z: np.ndarray
    losses: np.ndarray
    start: float
    D: np.ndarray
    status: Status
    looked_at: int


@dataclass(frozen=True)
class WordRounds(Method[LabelledWords, Stumps]):
    """So many rounds of AdaBoost.MH.

    Parameters
    ----------
    rounds : int
    kind : {"real", "abstaining", "discrete"}
        What a stump says.
    smoothing : float
        ``eps``.
    """

    rounds: int
    kind: str
    smoothing: float

    def accepts(self, problem: LabelledWords) -> str | None:
        """Take any documents that have a word."""
        return None if problem.rows.nnz else "No document has a word: there is nothing to learn."

    def begin(self, problem: LabelledWords, watch: Watch) -> Run:
        """Begin with the distribution that the start has."""
        return WordRoundsRun(self, problem, watch)


class WordRoundsRun(Run):
    """AdaBoost.MH at work; a step is a round."""

    words: ClassVar[str] = "{steps} rounds, bound on the Hamming loss {objective:.3g}"

    def __init__(self, method: WordRounds, problem: LabelledWords, watch: Watch) -> None:
        self.method, self.problem = method, problem
        self.found: list[tuple[int, np.ndarray, np.ndarray, float, float]] = []
        self.workers = Workers(
            watch.workers.count, lambda: watch.stopped() if self.usable else None
        )
        self.kind, k = KINDS[method.kind], problem.sets.count
        start = np.zeros((len(problem.sets), k)) if problem.values is None else problem.values
        self.weights = LabelWeights(problem.sets, problem.weight, start, self.workers)
        self.bound = self.weights.start
        self.index = WordIndex.of(problem.rows, k)
        self.sums = np.empty((len(self.index.kept), 2, k))
        self.changes: Changes | None = None  # that the sums do not know of yet
        self.fresh = -1  # round in which they were made
        self.looked_at = 0

    def steps(self) -> Generator[None, None, None]:
        """Take the best word, round after round."""
        try:
            while self.n_iter < self.method.rounds:
                if not self._take(self._best()):
                    self.status = Status.NO_IMPROVEMENT
                    return
                self.n_iter += 1
                if self.n_iter < self.method.rounds:
                    yield
            self.status = Status.COMPLETED
        except StoppedError:  # in the middle of a round, which then does not count
            yield

    def measure(self) -> Measure:
        """The bound on the Hamming loss is what falls."""
        return Measure(1.0 - self.share, self.bound)

    def solution(self, status: Status) -> Stumps:
        """Return what was found."""
        k = self.problem.sets.count
        words, absent, present, Z, losses = (
            zip(*self.found, strict=True) if self.found else [()] * 5
        )
        return Stumps(
            np.array(words, dtype=np.int64),
            np.array(absent).reshape(-1, k),
            np.array(present).reshape(-1, k),
            np.array(Z, dtype=float),
            np.array(losses, dtype=float),
            self.weights.start,
            self.weights.D,
            status,
            self.looked_at,
        )

    @property
    def usable(self) -> bool:
        """Whether a round was made, or some were before."""
        return bool(self.found) or self.problem.values is not None

    @property
    def share(self) -> float:
        """Rounds that are done, of all."""
        return self.n_iter / max(self.method.rounds, 1)

    @property
    def variables(self) -> np.ndarray | None:
        """Values of the last round's stump, absent and present, shape (2, k)."""
        return np.stack(self.found[-1][1:3]) if self.found else None

    @property
    def working_set(self) -> np.ndarray | None:
        """Word of the last round."""
        return np.array([self.found[-1][0]]) if self.found else None

    # -- the best word -------------------------------------------------------------------------

    def _best(self) -> int:
        """Return the word with the least score; of several, the one of the lowest column."""
        weights, index = self.weights, self.index
        extreme = np.abs(np.log(np.maximum(weights.scale, 1e-300))).max() > _LARGE
        if self.fresh < 0 or self.n_iter - self.fresh >= _FRESH or extreme:
            weights.fold()
            self.workers.map(self._sum_anew, index.parts)
            self.fresh = self.n_iter
        elif self.changes is not None:
            self.workers.map(self._add_changes, _ranges(len(index.kept), self.workers.count))
        self.changes = None
        known = (weights.totals, weights.scale, weights.root, self.kind)
        score, place = _first_of_least(
            self.workers.map(
                lambda part: compiled.least_of_sums(*part, self.sums, *known), index.parts
            )
        )
        word = int(index.kept[place]) if place >= 0 else -1
        if not len(index.few):
            return word
        without, slope = self._without()
        share = np.empty(len(weights.sets))
        self.workers.map(
            lambda part: compiled.shares(*part, *weights.stored, slope, share),
            _ranges(len(share), self.workers.count),
        )

        def look(part: tuple[int, int]) -> tuple[float, int, int]:
            return compiled.least_of_words(
                index.few,
                *part,
                *index.columns,
                share,
                without,
                score,
                *weights.stored,
                *known,
            )

        looks = self.workers.map(look, index.parts_of_few)
        self.looked_at += sum(count for _, _, count in looks)
        return _first_of_least([(score, word), *(look[:2] for look in looks)])[1]

    def _without(self) -> tuple[float, np.ndarray]:
        """Score of a word that no document has, and how fast it may fall with what is stored."""
        weights, totals = self.weights, self.weights.totals
        true = weights.scale * totals
        if self.kind == compiled.ABSTAINING:
            return 1.0, weights.scale
        if self.kind == compiled.DISCRETE:
            return -float(np.abs(true[0] - true[1]).sum()), 2.0 * weights.scale
        roots = 2.0 * np.sqrt(true[0] * true[1])
        slope = np.zeros_like(totals)
        np.divide(roots, totals, out=slope, where=totals > 0)
        return float(roots.sum()), slope

    def _sum_anew(self, part: tuple[int, int]) -> None:
        index = self.index
        compiled.sum_words(index.kept, *part, *index.columns, *self.weights.stored, self.sums)

    def _add_changes(self, part: tuple[int, int]) -> None:
        changes, sets, index = self.changes, self.problem.sets, self.index
        assert changes is not None
        compiled.add_changes(*changes, sets.begin, sets.labels, *index.rows, *part, self.sums)

    # -- its stump -----------------------------------------------------------------------------

    def _take(self, word: int) -> bool:
        """Take a word's stump, if that lowers the bound."""
        weights, index = self.weights, self.index
        one, own = np.array([word]), np.empty((1, 2, weights.sets.count))
        compiled.sum_words(one, 0, 1, *index.columns, *weights.stored, own)
        with_word = weights.scale * own[0]
        sides = np.stack([np.maximum(weights.scale * weights.totals - with_word, 0.0), with_word])
        absent, present = np.round(np.stack(self._stump(sides)) / _UNIT) * _UNIT
        Z = float(
            (sides[:, 0] * np.exp([-absent, -present])).sum()
            + (sides[:, 1] * np.exp([absent, present])).sum()
        )
        if not 1.0 - Z > NO_GAIN:
            return False
        columns, documents = index.columns
        own_documents = documents[columns[word] : columns[word + 1]]
        self.changes = weights.update(own_documents, absent, present)
        self.bound *= Z
        self.found.append((word, absent, present, Z, weights.loss))
        return True

    def _stump(self, sides: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Values where a word is absent and present, by weights (2, 2, k) of side, sign, label."""
        eps, lead = self.method.smoothing, sides[:, 0] - sides[:, 1]
        if self.kind == compiled.DISCRETE:
            r = min(float(np.abs(lead).sum()), 1.0)
            sign = np.where(
                np.abs(lead) > compiled.TIE, np.sign(lead), 0.0
            )  # as many for as against
            absent, present = 0.5 * np.log((1.0 + r + eps) / (1.0 - r + eps)) * sign
            return absent, present
        absent, present = 0.5 * np.log((sides[:, 0] + eps) / (sides[:, 1] + eps))
        return (np.zeros_like(absent) if self.kind == compiled.ABSTAINING else absent), present


class WordIndex(NamedTuple):
    """Where words are: by word, and for words in many documents by document.

    ``columns`` are begin and documents of each word. ``kept`` are the words in many documents, and
    ``rows`` begin and words of each document among these, by their places in ``kept``; ``few`` are
    the others that are in some document. ``parts`` and ``parts_of_few`` cut both into ranges of
    little work each.
    """

    columns: tuple[np.ndarray, np.ndarray]
    kept: np.ndarray
    rows: tuple[np.ndarray, np.ndarray]
    few: np.ndarray
    parts: list[tuple[int, int]]
    parts_of_few: list[tuple[int, int]]

    @classmethod
    def of(cls, rows: sp.csr_matrix, k: int) -> WordIndex:
        """Index the words of a CSR matrix."""
        count = np.bincount(rows.indices, minlength=rows.shape[1])
        by_word = sp.csr_matrix(
            (np.empty(rows.nnz, dtype=np.int8), rows.indices, rows.indptr), shape=rows.shape
        ).tocsc()
        kept = np.flatnonzero(count >= _KEPT)
        few = np.flatnonzero((count > 0) & (count < _KEPT))
        place = np.full(rows.shape[1], -1, dtype=np.int32)
        place[kept] = np.arange(len(kept), dtype=np.int32)
        places = place[rows.indices]
        inside = np.concatenate([[0], np.cumsum(places >= 0)])
        return cls(
            (by_word.indptr.astype(np.int64), by_word.indices.astype(np.int32, copy=False)),
            kept,
            (inside[rows.indptr], places[places >= 0]),
            few,
            _parts(count[kept], _WORK // k),
            _parts(count[few], _WORK),
        )


def _first_of_least(scored: list) -> tuple[float, int]:
    """Return the least score among those of some parts, and the first of the words with it.

    The answer depends neither on how words were cut into parts nor on the order of these.
    """
    best = min((score for score, word in scored if word >= 0), default=np.inf)
    tied = [word for score, word in scored if word >= 0 and score <= best + compiled.TIE]
    return best, min(tied, default=-1)


def _parts(sizes: np.ndarray, limit: int) -> list[tuple[int, int]]:
    """Ranges of items whose sizes sum to about a limit."""
    owner = np.cumsum(sizes) // max(limit, 1)
    cuts = [0, *(np.flatnonzero(np.diff(owner)) + 1).tolist(), len(sizes)]
    return [(first, last) for first, last in pairwise(cuts) if first < last]


def _ranges(count: int, parts: int) -> list[tuple[int, int]]:
    """Cut so many items into ranges of about one size."""
    cuts = np.linspace(0, count, parts + 1).astype(int).tolist()
    return [(first, last) for first, last in pairwise(cuts) if first < last]
