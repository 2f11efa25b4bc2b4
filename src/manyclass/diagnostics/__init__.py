"""What the data say about how hard they are to fit: spectra, response correlations, and plots of both."""

from manyclass.diagnostics.analysis import analyze
from manyclass.diagnostics.correlation import ResponseCorrelation, response_correlation
from manyclass.diagnostics.displays import ConvergenceDisplay, PathDisplay, ResponseCorrelationDisplay, SpectrumDisplay
from manyclass.diagnostics.report import DataReport
from manyclass.diagnostics.spectra import Spectrum, condition_number, effective_dimension, spectrum

__all__ = [
    "ConvergenceDisplay",
    "DataReport",
    "PathDisplay",
    "ResponseCorrelation",
    "ResponseCorrelationDisplay",
    "Spectrum",
    "SpectrumDisplay",
    "analyze",
    "condition_number",
    "effective_dimension",
    "response_correlation",
    "spectrum",
]
