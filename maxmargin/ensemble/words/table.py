"""The words that boosting has found, round by round."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from pandas import DataFrame

_SHOWN = 10  # rounds in the text of a table


class WordRound(NamedTuple):
    """One round: its number, from 1 on, the word, what it says of each label, and Z."""

    round: int
    word: str
    present: np.ndarray
    absent: np.ndarray
    Z: float


@dataclass(frozen=True, repr=False)
class WordTable:
    """The words that boosting has found, a row for each round.

    Parameters
    ----------
    words : array of str of shape (n_rounds,)
    columns : int array of shape (n_rounds,)
        Numbers of the words among the columns of the counts.
    labels : array of shape (n_labels,)
        What the values speak of. Of two labels that exclude each other it is the second.
    present, absent : float arrays of shape (n_rounds, n_labels)
        What a round adds to the value of each label where its word is, and where it is not.
    Z : float array of shape (n_rounds,)

    Examples
    --------
    >>> from maxmargin.ensemble import WordStumpBooster
    >>> documents = ["rain and wind", "sun", "wind and rain", "much sun"]
    >>> table = WordStumpBooster(n_estimators=1).fit(documents, ["wet", "dry", "wet", "dry"]).words_
    >>> table[0].word, table.labels, table[0].present.round(2), table[0].absent.round(2)
    ('and', array(['wet'], dtype='<U3'), array([0.55]), array([-0.55]))
    >>> table.to_frame()
       round word         Z  present wet  absent wet
    0      1  and  0.57735     0.549306   -0.549306
    """

    words: np.ndarray
    columns: np.ndarray
    labels: np.ndarray
    present: np.ndarray
    absent: np.ndarray
    Z: np.ndarray

    def __len__(self) -> int:
        return len(self.Z)

    def __getitem__(self, k: int) -> WordRound:
        """Return round k, from 0 on."""
        k = range(len(self))[k]
        word, Z = str(self.words[k]), float(self.Z[k])
        return WordRound(k + 1, word, self.present[k], self.absent[k], Z)

    def __repr__(self) -> str:
        lines = [f"{'round':>5}  {'Z':<7} {'word':<24} says most of"]
        for one in map(self.__getitem__, range(min(len(self), _SHOWN))):
            label = int(np.argmax(np.abs(one.present - one.absent)))
            lines.append(
                f"{one.round:>5}  {one.Z:<7.4f} {one.word[:24]:<24} {self.labels[label]}: "
                f"{one.present[label]:+.2f} where it is, {one.absent[label]:+.2f} where not"
            )
        more = len(self) - _SHOWN
        return "\n".join([*lines, *([f"... and {more} more rounds"] if more > 0 else [])])

    def to_frame(self) -> DataFrame:
        """Return a pandas frame: round, word, Z and, for each label, the two values."""
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError(
                "A frame is pandas': pip install pandas, or use the arrays of the table."
            ) from error
        columns: dict[str, Any] = {
            "round": np.arange(1, len(self) + 1),
            "word": self.words,
            "Z": self.Z,
        }
        for k, label in enumerate(self.labels):
            columns[f"present {label}"] = self.present[:, k]
            columns[f"absent {label}"] = self.absent[:, k]
        return pd.DataFrame(columns)

    def weights(self, label: Any = None) -> list[tuple[str, float]]:
        """Words by what they change the value of a label by, all rounds together.

        Stumps on words add up to a linear function of their presence: these are its weights, the
        largest in size first.

        Parameters
        ----------
        label : object, optional
            One of ``labels``; not needed where there is only one.

        Returns
        -------
        weights : list of (word, weight)

        Examples
        --------
        >>> from maxmargin.ensemble import WordStumpBooster
        >>> documents = ["rain and wind", "sun", "wind and rain", "much sun"]
        >>> model = WordStumpBooster(n_estimators=9).fit(documents, ["wet", "dry", "wet", "dry"])
        >>> [word for word, weight in model.words_.weights()]
        ['and']
        """
        known = self.labels.tolist()
        if label is None and len(known) == 1:
            label = known[0]
        if label not in known:
            raise ValueError(f"label must be one of {known}, got {label!r}.")
        columns, at = np.unique(self.columns, return_inverse=True)
        total = np.zeros(len(columns))
        np.add.at(total, at, (self.present - self.absent)[:, known.index(label)])
        names = dict(zip(self.columns.tolist(), self.words.tolist(), strict=True))
        order = np.argsort(-np.abs(total), kind="stable")
        return [(names[int(columns[j])], float(total[j])) for j in order]

    def followed_by(self, more: WordTable) -> WordTable:
        """Return these rounds and more of them, for the same labels."""
        by_round = ("words", "columns", "present", "absent", "Z")
        joined = {n: np.concatenate([getattr(self, n), getattr(more, n)]) for n in by_round}
        return replace(self, **joined)

    def renamed(self, names: Any) -> WordTable:
        """Return the same table with other names of the columns, of which there is one for each."""
        names = np.asarray(names)
        if len(self) and (names.ndim != 1 or len(names) <= self.columns.max()):
            raise ValueError(
                f"names are one for each column of the counts, at least {self.columns.max() + 1}; "
                f"got {names.shape}."
            )
        return replace(self, words=names[self.columns])
