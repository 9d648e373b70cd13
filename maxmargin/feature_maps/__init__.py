"""Feature maps of kernels as transformers: approximate ones, and those that can be written out."""

from maxmargin.feature_maps.base import FeatureMap
from maxmargin.feature_maps.explicit import ExplicitFeatures
from maxmargin.feature_maps.nystroem import Nystroem
from maxmargin.feature_maps.random_fourier import RandomFourier

__all__ = ["ExplicitFeatures", "FeatureMap", "Nystroem", "RandomFourier"]
