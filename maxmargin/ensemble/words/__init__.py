"""Boosted words: documents, labels and weights on both, rounds, and what they have found."""

from maxmargin.ensemble.words.booster import WordStumpBooster
from maxmargin.ensemble.words.table import WordTable

__all__ = ["WordStumpBooster", "WordTable"]
