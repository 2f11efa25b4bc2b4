"""What the data say about how hard they are to fit: spectra, response correlations, and plots of both."""

from manyclass.diagnostics.correlation import ResponseCorrelation, response_correlation
from manyclass.diagnostics.displays import ConvergenceDisplay, PathDisplay, ResponseCorrelationDisplay, SpectrumDisplay
from manyclass.diagnostics.spectra import Spectrum, condition_number, effective_dimension, spectrum

__all__ = [
    "ConvergenceDisplay",
    "PathDisplay",
    "ResponseCorrelation",
    "ResponseCorrelationDisplay",
    "Spectrum",
    "SpectrumDisplay",
    "condition_number",
    "effective_dimension",
    "response_correlation",
    "spectrum",
]
