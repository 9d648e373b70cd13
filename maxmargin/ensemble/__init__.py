"""Many weak rules together."""

from maxmargin.ensemble.words.booster import WordStumpBooster
from maxmargin.ensemble.words.table import WordTable

__all__ = ["WordStumpBooster", "WordTable"]
