"""Boosted words: documents, labels and weights on both, rounds, and what they have found."""
