"""Generators of features: transformers of which more can be drawn, for stagewise fits and alone."""

from manyclass.features.base import FeatureGenerator, median_squared_distance
from manyclass.features.fourier import RandomFourierFeatures
from manyclass.features.landmarks import Landmarks
from manyclass.features.patches import ImagePatches
from manyclass.features.polynomials import RandomPolynomials
from manyclass.features.subset import FeatureSubset
from manyclass.features.units import RandomUnits

__all__ = [
    "FeatureGenerator",
    "FeatureSubset",
    "ImagePatches",
    "Landmarks",
    "RandomFourierFeatures",
    "RandomPolynomials",
    "RandomUnits",
    "median_squared_distance",
]
