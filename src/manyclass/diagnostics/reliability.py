"""Whether probabilities mean what they say."""

from dataclasses import dataclass, field

import numpy as np

from manyclass.diagnostics.charts import Chart, Scale
from manyclass.diagnostics.page import Html, figure

BINS = 10


@dataclass
class Reliability:
    """A reliability diagram: probabilities in bins of equal width, and how often the predicted events occurred.

    Of each bin: the number of predictions, the sum of their probabilities, and how many of them came true.
    """

    counts: np.ndarray = field(default_factory=lambda: np.zeros(BINS))
    stated: np.ndarray = field(default_factory=lambda: np.zeros(BINS))
    true: np.ndarray = field(default_factory=lambda: np.zeros(BINS))

    def add(self, probabilities: np.ndarray, true: np.ndarray) -> None:
        """Add predictions, each with whether it came true."""
        probabilities = probabilities.ravel()
        bins = np.minimum((probabilities * BINS).astype(np.int64), BINS - 1)
        for sums, weight in ((self.counts, None), (self.stated, probabilities), (self.true, true.ravel())):
            sums += np.bincount(bins, weight, BINS)

    @property
    def error(self) -> float:
        """The expected calibration error: Σ_b n_b |mean probability − share that came true| / Σ_b n_b."""
        return float(np.abs(self.stated - self.true).sum() / max(self.counts.sum(), 1))

    def rows(self) -> list[tuple[float, float, int]]:
        """(mean probability, share that came true, predictions) of the bins that are not empty."""
        filled = np.flatnonzero(self.counts)
        return [(self.stated[b] / self.counts[b], self.true[b] / self.counts[b], int(self.counts[b])) for b in filled]

    def picture(self, what: str) -> Html:
        """Share that came true over what was stated; `what` is what the probabilities are of."""
        stated, true, counts = np.array(self.rows()).T
        alt = f"Reliability: {what} whose probability is stated to be " + ", ".join(
            f"{100 * p:.0f} % come true in {100 * t:.0f} %" for p, t in zip(stated, true, strict=True)
        )
        chart = Chart(alt, Scale(0, 1), Scale(0, 1), "stated probability", "came true")
        share = np.zeros(BINS)
        share[self.counts > 0] = counts / counts.max() / 4
        edges = np.arange(BINS + 1) / BINS
        marks = (
            chart.bars(edges[:-1], edges[1:], share),
            chart.line([0, 1], [0, 1], "aside"),
            chart.line(stated, true),
            chart.points(stated, true),
        )
        caption = (
            "On the dashed line probabilities mean what they say; below it they claim too much. "
            f"The bars say how many {what} are stated with each probability."
        )
        return figure(chart.drawn(*marks), caption)
