"""Kernels on sequences: DNA, proteins, texts."""

from maxmargin.kernels.sequences.alphabet import Alphabet
from maxmargin.kernels.sequences.base import FeatureKernel, SequenceKernel
from maxmargin.kernels.sequences.fasta import read_fasta
from maxmargin.kernels.sequences.importance import FeatureWeights, sequence_weights
from maxmargin.kernels.sequences.kmers import GappedKmer, Mismatch, Spectrum
from maxmargin.kernels.sequences.local_alignment import LocalAlignment
from maxmargin.kernels.sequences.subsequence import Subsequence
from maxmargin.kernels.sequences.substitutions import Substitution
from maxmargin.kernels.sequences.weighted_degree import WeightedDegree
from maxmargin.kernels.sequences.words import BagOfWords

__all__ = [
    "Alphabet",
    "BagOfWords",
    "FeatureKernel",
    "FeatureWeights",
    "GappedKmer",
    "LocalAlignment",
    "Mismatch",
    "SequenceKernel",
    "Spectrum",
    "Subsequence",
    "Substitution",
    "WeightedDegree",
    "read_fasta",
    "sequence_weights",
]
