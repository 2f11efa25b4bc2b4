"""Transformers: generators, of which more features can be drawn, for stagewise fits and alone; and steps of columns."""

from manyclass.features.base import FeatureGenerator, median_squared_distance
from manyclass.features.fourier import RandomFourierFeatures
from manyclass.features.landmarks import Landmarks
from manyclass.features.patches import ImagePatches
from manyclass.features.polynomials import RandomPolynomials
from manyclass.features.subset import FeatureSubset
from manyclass.features.table import TableEncoder
from manyclass.features.thermometer import ThermometerEncoder
from manyclass.features.units import RandomUnits

__all__ = [
    "FeatureGenerator",
    "FeatureSubset",
    "ImagePatches",
    "Landmarks",
    "RandomFourierFeatures",
    "RandomPolynomials",
    "RandomUnits",
    "TableEncoder",
    "ThermometerEncoder",
    "median_squared_distance",
]
