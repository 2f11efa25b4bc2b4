"""What `analyze` found, for people, notebooks and programs."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from manyclass.choice.costs import Cost
from manyclass.data.memory import told as in_bytes
from manyclass.data.tensors import plain
from manyclass.diagnostics.correlation import ResponseCorrelation
from manyclass.diagnostics.displays import SpectrumDisplay, new_axes
from manyclass.diagnostics.mistakes import Mistakes
from manyclass.diagnostics.names import counted, shown
from manyclass.diagnostics.page import Html, document, style, tag
from manyclass.diagnostics.report_page import parts
from manyclass.diagnostics.spectra import Spectrum

SHOWN = 5
"""Columns named in a line of the report; `DataReport.to_dict` has all."""


@dataclass(frozen=True)
class RowFacts:
    """The matrix X: its size, and rows that are incomplete, repeated or contradicting."""

    n_rows: int
    n_features: int
    dtype: str
    density: float
    memory: float
    n_missing: int
    n_rows_with_missing: int
    n_repeated: int
    n_contradicting: int
    n_table_columns: int | None = None  # of which a `TableEncoder` made those of X


@dataclass(frozen=True)
class LabelFacts:
    """The classes, or the labels of an indicator matrix, and the number of rows of each."""

    multilabel: bool
    classes: tuple[Any, ...]
    counts: tuple[int, ...]

    @property
    def n_classes(self) -> int:
        return len(self.classes)

    @property
    def nouns(self) -> tuple[str, str]:
        """What to call one of `classes`, and several."""
        return ("label", "labels") if self.multilabel else ("class", "classes")

    def _at(self, place: int) -> str:
        return f"{shown(self.classes[place])} ({counted(self.counts[place], 'row')})"

    @property
    def rarest(self) -> str:
        return self._at(int(np.argmin(self.counts)))

    @property
    def most_frequent(self) -> str:
        return self._at(int(np.argmax(self.counts)))


@dataclass(frozen=True)
class ColumnFacts:
    """Columns, by number or name, that are useless or slow down a solver."""

    constant: tuple[Any, ...]
    duplicated: tuple[Any, ...]  # each equals a column before it
    far_from_origin: tuple[Any, ...]  # their mean is more than ten standard deviations
    badly_scaled: tuple[Any, ...]  # by more than a factor of a hundred larger or smaller than the median column
    largest_ratio: float  # of the standard deviations of two columns that vary


@dataclass(frozen=True)
class Hardness:
    """How hard the data are to fit, from the eigenvalues of the covariance of `n_rows` rows."""

    n_rows: int
    rank: int  # directions in which those rows vary
    condition_number: float  # of least squares without a penalty
    effective_dimension: dict[float, float]  # Σ λ/(λ + alpha) by alpha
    tau: float  # bounds how much the response depends on directions of small variance; see `response_correlation`
    scaler: str | None = None  # what columns were scaled by, where they differ in size


@dataclass(frozen=True)
class Trial:
    """Errors of a linear model, of generated features and of a linear model of steps (`ThermometerEncoder`; None where
    columns are too many) on rows of a sample that they have not seen.

    `differing` are shares of these rows that only one of the linear model and the other gets right, for each other.
    """

    n_rows: int
    n_judged: int
    linear_error: float
    generated_error: float
    stepped_error: float | None = None
    differing: tuple[float, ...] = ()

    @property
    def gains(self) -> bool:
        """Whether generated features make fewer errors by a point and by two standard errors."""
        return self._is_clear(self.generated_error, *self.differing[:1])

    @property
    def steps_serve(self) -> bool:
        """Whether steps make fewer errors by as much, and no more than generated features."""
        steps = self.stepped_error
        return steps is not None and steps <= self.generated_error and self._is_clear(steps, *self.differing[1:])

    def _is_clear(self, error: float, differing: float | None = None) -> bool:
        differing = self.linear_error + error if differing is None else differing
        return bool(self.linear_error - error > max(0.01, 2.0 * (differing / self.n_judged) ** 0.5))


@dataclass(frozen=True)
class DataReport:
    """What `analyze` found.

    ``print`` shows it as tables, a notebook as HTML, and `to_html` is a page.

    Attributes
    ----------
    rows : RowFacts
    labels : LabelFacts
    columns : ColumnFacts
    hardness : Hardness or None
        None where no row is complete.
    methods : tuple of Cost
        Estimated seconds and bytes of each estimator on this machine, the fastest first.
    trial : Trial or None
        None for sparse, tiny or multi-label data, of which none is made.
    estimator : str
        The class to begin with.
    recommendation : str
        Why, in one sentence.
    mistakes : Mistakes or None
        What a linear model takes rows of the sample for, left out a tenth at a time.
    correlation : ResponseCorrelation or None
    spectrum : Spectrum or None
        That of `correlation`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from manyclass import analyze
    >>> report = analyze(*load_iris(return_X_y=True))
    >>> report.rows.n_rows, report.labels.n_classes
    (150, 3)
    """

    rows: RowFacts
    labels: LabelFacts
    columns: ColumnFacts
    hardness: Hardness | None
    methods: tuple[Cost, ...]
    trial: Trial | None
    estimator: str
    recommendation: str
    mistakes: Mistakes | None = field(default=None, repr=False)
    correlation: ResponseCorrelation | None = field(default=None, repr=False)

    @property
    def spectrum(self) -> Spectrum | None:
        return None if self.correlation is None else self.correlation.spectrum

    @property
    def of_scaled(self) -> str:
        """The scaler in front of the spectrum and `mistakes`, in words; empty without one."""
        scaler = None if self.hardness is None else self.hardness.scaler
        return "" if scaler is None else f" behind a {scaler}"

    def to_dict(self) -> dict[str, Any]:
        """Everything but the eigenvectors, in lists, dictionaries, strings and numbers that JSON has.

        Returns
        -------
        dict
        """
        fields = {name: value for name, value in vars(self).items() if name != "correlation"}
        content = {name: plain(asdict(v) if hasattr(v, "__dataclass_fields__") else v) for name, v in fields.items()}
        content["methods"] = [plain(asdict(cost)) for cost in self.methods]
        content["eigenvalues"] = [] if self.spectrum is None else self.spectrum.eigenvalues.tolist()
        return content

    def plot(self, axes: Any = None) -> Any:
        """Draw the eigenvalues and the number of rows of each class, the most frequent first.

        Parameters
        ----------
        axes : sequence of two matplotlib Axes, optional

        Returns
        -------
        axes : array of two matplotlib Axes
        """
        left, right = axes = new_axes(2) if axes is None else axes
        if self.spectrum is not None:
            SpectrumDisplay(self.spectrum).plot(left, kind="eigenvalues")
        left.set_title("eigenvalues of the covariance")
        counts = np.sort(self.labels.counts)[::-1]
        # Neither classes nor rows have halves.
        right.locator_params(integer=True)
        right.bar(np.arange(1, len(counts) + 1), counts, width=1.0 if len(counts) > 50 else 0.8)
        right.set(
            xlabel=f"{self.labels.nouns[1]}, the most frequent first", ylabel="rows", title="balance", ylim=(0, None)
        )
        return axes

    def __str__(self) -> str:
        lines = []
        for title, facts in self._sections():
            width = max(len(name) for name, _ in facts) + 2
            lines += [title, *(f"  {name:<{width}}{fact}" for name, fact in facts), ""]
        names, *body = self.costs_table()
        widths = [max(len(row[place]) for row in (names, *body)) for place in range(len(names))]
        lines += ["estimated for a fit, on this machine"]
        for row in (names, *body):
            lines.append(("  " + "  ".join(f"{cell:<{w}}" for cell, w in zip(row, widths, strict=True))).rstrip())
        return "\n".join([*lines, "", self.recommendation])

    def to_html(self, title: str = "Data report") -> str:
        """A page that needs no other file, no script and no network.

        Parameters
        ----------
        title : str
            Of the page: the name of the data.

        Returns
        -------
        str
            To be written to a file as UTF-8.
        """
        rows, labels = self.rows, self.labels
        sizes = ((rows.n_rows, "row"), (rows.n_features, "column"), (labels.n_classes, labels.nouns[0]))
        what = ", ".join(counted(n, noun) for n, noun in sizes)
        return document(title, what, *self._parts())

    def _repr_html_(self) -> str:
        return tag("div", style(), *self._parts(), class_="manyclass")

    def _parts(self) -> list[Html]:
        return parts(self, list(self._sections()))

    # -- as text --------------------------------------------------------------------------------------------------

    def _sections(self) -> Iterator[tuple[str, list[tuple[str, str]]]]:
        yield "rows", self._about_rows()
        labels = self.labels
        facts = [
            ("number", f"{labels.n_classes:,}"),
            ("rarest", labels.rarest),
            ("most frequent", labels.most_frequent),
        ]
        if labels.n_classes <= 2 * SHOWN:
            each = zip(labels.classes, labels.counts, strict=True)
            facts[1:] = [("rows of each", ", ".join(f"{shown(name)}: {count:,}" for name, count in each))]
        yield labels.nouns[1], facts
        columns = self.columns
        yield (
            "columns",
            [
                ("constant", _listed(columns.constant)),
                ("duplicated", _listed(columns.duplicated)),
                ("far from the origin", _listed(columns.far_from_origin)),
                ("of very different size", _listed(columns.badly_scaled)),
                ("largest ratio of sizes", f"{columns.largest_ratio:.3g}"),
            ],
        )
        if self.hardness is not None:
            yield self._about_hardness(self.hardness)
        if self.mistakes is not None:
            yield self._about_mistakes(self.mistakes)
        if self.trial is not None:
            trial = self.trial
            facts = [
                ("linear model", f"{100 * trial.linear_error:.1f} % errors"),
                ("generated features", f"{100 * trial.generated_error:.1f} % errors"),
            ]
            if trial.stepped_error is not None:
                facts.append(("linear model of columns in steps", f"{100 * trial.stepped_error:.1f} % errors"))
            yield f"a trial on {trial.n_rows:,} rows, judged by {trial.n_judged:,} others", facts

    def _about_rows(self) -> list[tuple[str, str]]:
        rows = self.rows
        size = f"{counted(rows.n_rows, 'row')} × {counted(rows.n_features, 'column')}"
        encoded = (
            "" if rows.n_table_columns is None else f" made of {counted(rows.n_table_columns, 'column')} of a table"
        )
        facts = [
            ("size", f"{size} of {rows.dtype}{encoded}, {in_bytes(rows.memory)}"),
            ("density", f"{100 * rows.density:.3g} % are not 0"),
        ][: 1 + (rows.n_rows_with_missing < rows.n_rows)]
        if rows.n_missing:
            cells, among = counted(rows.n_missing, "cell"), counted(rows.n_rows_with_missing, "row")
            left_out = f"{cells} (or infinite, or too large) in {among}, left out below"
            facts.append(("missing", f"{cells} in {among}" if encoded else left_out))
        for name, n, others in (
            ("repeated", rows.n_repeated, "another"),
            ("contradicting", rows.n_contradicting, "one with another label"),
        ):
            facts.append((name, f"{counted(n, 'row')} {'equals' if n == 1 else 'equal'} {others}"))
        return facts

    def _about_hardness(self, hardness: Hardness) -> tuple[str, list[tuple[str, str]]]:
        whole = hardness.n_rows == self.rows.n_rows
        source = "all rows" if whole else f"{hardness.n_rows:,} rows"
        rank = hardness.rank if whole else f"{hardness.rank:,} or more"
        free = ", ".join(f"{value:.3g} at alpha={alpha:g}" for alpha, value in hardness.effective_dimension.items())
        return f"spectrum{self.of_scaled}, from {source}", [
            ("rank", str(rank)),
            ("condition number", f"{hardness.condition_number:.3g}"),
            ("effective dimension", free),
            ("tau", f"{hardness.tau:.3g}"),
        ]

    def _about_mistakes(self, mistakes: Mistakes) -> tuple[str, list[tuple[str, str]]]:
        names = [shown(name) for name in self.labels.classes]
        worst = (
            f"{names[place]} ({100 * mistakes.missed[place] / mistakes.rows[place]:.0f} %)"
            for place in mistakes.worst()[:SHOWN]
            if mistakes.missed[place]
        )
        facts = [("errors", f"{100 * mistakes.error:.3g} %"), ("missed the most", ", ".join(worst) or "none")]
        if mistakes.pairs:
            pairs = (f"{names[true]} for {names[predicted]} ({n})" for true, predicted, n in mistakes.pairs[:SHOWN])
            facts.append(("confused", "taken " + ", ".join(pairs)))
        return f"a linear model{self.of_scaled}, {mistakes.n_rows:,} rows left out a tenth at a time", facts

    def costs_table(self) -> list[tuple[str, ...]]:
        """Names of columns, and a row for each method."""
        table: list[tuple[str, ...]] = [("estimator", "loss", "seconds", "memory", "how")]
        for cost in self.methods:
            memory = in_bytes(cost.memory) + ("" if cost.fits else " (too much)")
            table.append((cost.estimator, cost.loss, f"{cost.seconds:.2g}", memory, cost.how))
        return table


def _listed(columns: tuple[Any, ...]) -> str:
    if not columns:
        return "none"
    named = ", ".join(map(shown, columns[:SHOWN])) + (" …" if len(columns) > SHOWN else "")
    return f"{len(columns):,}: {named}"
