"""Normal equations for a stream: the second moments of all rows are known, and a sample of the rows."""

from dataclasses import dataclass, field, replace
from typing import Self

from manyclass.data import Moments
from manyclass.data.factor import Factor
from manyclass.data.penalty import ROWS_PER_DIRECTION, RidgeSpectrum, best
from manyclass.data.rows import Array
from manyclass.model import Problem
from manyclass.stagewise.equations import NormalEquations, Residuals


def in_units(moments: Moments, unit: Array) -> Moments:
    """The moments of the rows with each column divided by a number."""
    by = unit[:, None]
    xx, xy = moments.xx / by / unit, moments.xy / by
    return replace(moments, xx=xx, xy=xy, x=moments.x / unit, pilot=moments.pilot / unit)


@dataclass(frozen=True)
class StreamedEquations(NormalEquations):
    """Least squares on the residuals y − ŷ: on y by the moments of all rows, on ŷ by the rows of the sample.

    Every solution on the sample is corrected by the same term: the solution for y on all rows, less that on the sample.
    So the first stage, where ŷ = 0, is exact.
    """

    whole: Moments  # of all rows of the fit
    sample: Moments
    n: float  # how many rows the weights are worth
    shift: Array | None  # of the rows of the problem
    whole_factor: Factor
    corrections: dict[float, tuple[Array, Array]] = field(default_factory=dict)

    @classmethod
    def of_stream(cls, whole: Moments, n: float, problem: Problem, unit: Array | None = None) -> Self:
        """For a problem of the rows of the sample, with columns in units of their own."""
        whole = whole if unit is None else in_units(whole, unit)
        sample = Moments.of(problem.rows, problem.targets, problem.weight)
        known = NormalEquations.of(sample, problem)
        factor = whole.factor(fit_intercept=problem.fit_intercept, precision=problem.rows.precision)
        given = (known.factor, known.center, known.share, known.fit_intercept)
        return cls(*given, whole, sample, n, problem.shift, factor)

    def solve(self, cross: Array, mean: Array, alpha: float) -> tuple[Array, Array]:
        coef, intercept = super().solve(cross, mean, alpha)
        if alpha not in self.corrections:
            W, b = self.whole.solve(alpha, fit_intercept=self.fit_intercept, factor=self.whole_factor)
            b = b if self.shift is None else b + self.shift @ W
            sampled, origin = self.sample.solve(alpha, fit_intercept=self.fit_intercept, factor=self.factor)
            self.corrections[alpha] = W - sampled, b - origin
        more = self.corrections[alpha]
        return coef + more[0], intercept + more[1]

    def best_alpha(self, responses: Residuals) -> float:
        whole = self.whole
        if self.n < ROWS_PER_DIRECTION * int(whole.x.shape[0]):
            return super().best_alpha(responses)
        cross = whole.cross(fit_intercept=self.fit_intercept)
        spectrum = RidgeSpectrum.of(self.whole_factor, cross, whole.weight, self.fit_intercept)
        mean = whole.target_mean
        squares = mean - mean**2 if self.fit_intercept else mean  # of y = 0 or 1
        alphas = spectrum.grid(responses.stage.rows.precision)
        return best(alphas, spectrum.generalised_cross_validation(alphas, squares, self.n))
