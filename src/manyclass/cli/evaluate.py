"""``manyclass evaluate``: how good a model is on labelled rows, block by block so that no n×k matrix is held."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import f1_score, hamming_loss, log_loss, precision_recall_fscore_support, zero_one_loss

from manyclass.cli import modelfile
from manyclass.cli.inputs import DataOptions, load
from manyclass.cli.modelfile import Model
from manyclass.cli.output import check_writable, console, print_facts, print_json, progress_line, write_page
from manyclass.data import as_rows
from manyclass.diagnostics.mistakes import Mistakes
from manyclass.diagnostics.names import counted, shown
from manyclass.diagnostics.page import Html, bar, document, section, side_by_side, table, tag, tiles
from manyclass.diagnostics.reliability import Reliability
from manyclass.diagnostics.report_page import mistakes_by_class, pairs_of_classes

_BLOCK = 1 << 22
_SHARES = {"error", "hamming_loss", "subset_error"}
# A table longer than this is not read; the worst classes are what one looks for.
_MANY_CLASSES = 40
_WORST = 20
_COVERAGES = (0.8, 0.9, 0.95, 0.99)


def run(
    model_path: Path,
    data_path: Path,
    options: DataOptions,
    html: Path | None,
    force: bool,
    as_json: bool,
    memory_limit: str | None = None,
) -> None:
    """Report how good the model is on rows with labels."""
    if html is not None:
        check_writable(html, force)
    model = modelfile.load(model_path)
    with progress_line(f"reading {data_path.name}") as progress:
        dataset = load(data_path, options, schema=model.schema, memory_limit=memory_limit)
        progress.say("judging")
        dataset = replace(dataset, X=model.encoded(dataset.X))
        scores = score(model, dataset.X, dataset.y)
        if model.has_sets:
            scores = replace(scores, sets=[_set_scores(model, dataset.X, dataset.y, one) for one in _COVERAGES])
    saved, facts = {}, described(scores.figures)
    if html is not None:
        subtitle = f"{model_path.name} on {counted(scores.n_rows, 'row')} of {data_path.name}"
        text = page(f"How good is {model_path.name}?", subtitle, facts, scores, model.schema.multilabel)
        saved = write_page(html, text, force)
    if as_json:
        report: dict[str, Any] = {"command": "evaluate", "model": model_path, "data": data_path, **saved}
        report |= {"n_rows": scores.n_rows, "multilabel": model.schema.multilabel}
        print_json(report | scores.figures | {"notes": scores.notes, "classes": scores.per_class} | scores.details())
    else:
        facts = [("data", f"{data_path}: {counted(scores.n_rows, 'row')}"), *facts]
        facts += [("note", note) for note in scores.notes]
        for one in scores.sets:
            told = f"{100 * one['covered']:.1f} % covered, {one['mean_size']:.2f} labels on average"
            facts.append((f"sets of {100 * one['wanted']:g} %", told))
        print_facts([*facts, *(("page", str(path)) for path in saved.values())])
        _print_classes(model, scores)


@dataclass(frozen=True)
class Scores:
    """Figures by name, those of each class, and what the reader should know about them.

    `reliability` is None where there are no probabilities, and `sets` are empty where the model has none.
    """

    n_rows: int
    figures: dict[str, float | None]
    per_class: list[dict[str, Any]]
    mistakes: Mistakes
    reliability: Reliability | None = None
    notes: list[str] = field(default_factory=list)
    sets: list[dict[str, float]] = field(default_factory=list)

    def details(self) -> dict[str, Any]:
        """What JSON has beyond the figures."""
        names = [row["label"] for row in self.per_class]
        pairs = [{"label": names[true], "taken_for": names[told], "n_rows": n} for true, told, n in self.mistakes.pairs]
        bins = [] if self.reliability is None else self.reliability.rows()
        keys = ("stated", "true", "n_predictions")
        return {
            "confused": pairs,
            "reliability": [dict(zip(keys, row, strict=True)) for row in bins],
            "sets": self.sets,
        }


def blocks(method: Callable[[Any], NDArray[Any]], X: Any, n_outputs: int) -> Iterator[NDArray[Any]]:
    """``method(X)`` over consecutive blocks of rows, which may be `Rows` of a file."""
    for _, block in as_rows(X).blocks(max(1, _BLOCK // max(X.shape[1], n_outputs))):
        yield method(block.unwrapped())


def _print_classes(model: Model, scores: Scores) -> None:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    rows = scores.per_class
    title = None
    if len(rows) > _MANY_CLASSES:
        title = f"the {_WORST} of {len(rows)} with the lowest F1; --json has all"
        rows = sorted(rows, key=lambda row: row["f1"])[:_WORST]
    table = Table(box=box.SIMPLE_HEAD, title=title, title_justify="left", pad_edge=False)
    table.add_column("label" if model.schema.multilabel else "class", overflow="fold")
    for name in ("precision", "recall", "F1", "rows"):
        table.add_column(name, justify="right")
    for row in rows:
        figures = (f"{row[name]:.3f}" for name in ("precision", "recall", "f1"))
        table.add_row(Text(shown(row["label"])), *figures, f"{row['support']:,}")
    console().print(table, soft_wrap=False)


def score(model: Model, X: Any, y: Any) -> Scores:
    """Evaluate on encoded rows whose labels are known.

    For classes: the error (share of rows whose class is wrong) and the log loss (mean of −log of the
    probability of the row's class). For several labels per row: the Hamming loss (share of wrong cells), the
    subset error (share of rows with any wrong label), the log loss per cell, and F1 over cells and per label.
    """
    predicted = np.concatenate(list(blocks(model.of_numbers.predict, X, len(model.schema.labels))))
    if not model.schema.multilabel:
        return _score_classes(model, X, y, predicted)
    columns = precision_recall_fscore_support(y, predicted, zero_division=0, average=None)
    loss, reliability = _judge_probabilities(model, X, y, np.ones(y.shape, dtype=bool))
    figures = {
        "hamming_loss": float(hamming_loss(y, predicted)),
        "subset_error": float(zero_one_loss(y, predicted)),
        "log_loss": loss,
        "micro_f1": float(f1_score(y, predicted, average="micro", zero_division=0)),
        "macro_f1": float(np.mean(columns[2])),
    }
    mistakes = Mistakes.of(y, predicted, y.shape[1])
    return Scores(len(y), figures, _table(model.schema.labels, columns), mistakes, reliability)


def _score_classes(model: Model, X: Any, y: NDArray[Any], predicted: NDArray[Any]) -> Scores:
    known = np.isin(y, model.schema.classes)
    unseen = np.unique(y[~known])
    notes = []
    if len(unseen):
        named = ", ".join(f"'{shown(label)}'" for label in unseen[:3]) + (" …" if len(unseen) > 3 else "")
        n = int((~known).sum())
        have = "has a label" if n == 1 else "have labels"
        notes.append(
            f"{counted(n, 'row')} {have} that the model was not fitted on ({named}): counted as errors and left out of "
            "the log loss"
        )
    labels = np.concatenate([model.schema.classes, unseen])
    columns = precision_recall_fscore_support(y, predicted, labels=labels, zero_division=0)
    loss, reliability = _judge_probabilities(model, X, y, known)
    figures = {"error": float(np.mean(predicted != y)), "log_loss": loss, "macro_f1": float(np.mean(columns[2]))}
    mistakes = Mistakes.of(_codes(labels, y), _codes(labels, predicted), len(labels))
    return Scores(len(y), figures, _table(labels, columns), mistakes, reliability, notes)


def _codes(labels: NDArray[Any], y: NDArray[Any]) -> NDArray[Any]:
    order = np.argsort(labels)
    return order[np.searchsorted(labels, y, sorter=order)]


def _judge_probabilities(
    model: Model, X: Any, y: NDArray[Any], known: NDArray[Any]
) -> tuple[float | None, Reliability | None]:
    """The mean log loss over the labels that the model knows, and what became of the probabilities of its predictions.

    None where it gives no probabilities. Cell by cell for several labels per row, else row by row.
    """
    if not model.has_probabilities or not known.any():
        return None, None
    total, start, reliability = 0.0, 0, Reliability()
    labels = np.array([0, 1]) if model.schema.multilabel else model.schema.classes
    for block in blocks(model.of_numbers.predict_proba, X, len(model.schema.labels)):
        rows = slice(start, start + len(block))
        start = rows.stop
        if not known[rows].any():
            continue
        probabilities, truth = block[known[rows]].astype(np.float64), y[rows][known[rows]]
        if model.schema.multilabel:
            reliability.add(probabilities, truth)
        else:
            # float32 probabilities do not sum to one closely enough for scikit-learn.
            probabilities /= probabilities.sum(axis=1, keepdims=True)
            reliability.add(probabilities.max(axis=1), labels[probabilities.argmax(axis=1)] == truth)
        total += log_loss(truth, probabilities, labels=labels, normalize=False)
    return total / int(known.sum()), reliability


def _set_scores(model: Model, X: Any, y: Any, wanted: float) -> dict[str, float]:
    """How often the sets of a coverage hold the true labels, all of several, and how many labels they hold."""
    start, sizes, covered = 0, [], []
    for sets in blocks(partial(model.predict_set, coverage=wanted), X, len(model.schema.labels)):
        truth = y[start : start + len(sets)]
        start += len(sets)
        applies = truth > 0 if model.schema.multilabel else truth[:, None] == model.schema.classes
        is_known = True if model.schema.multilabel else applies.any(axis=1)
        covered.append((sets | ~applies).all(axis=1) & is_known)
        sizes.append(sets.sum(axis=1))
    size = np.concatenate(sizes)
    found = {"covered": np.concatenate(covered), "mean_size": size, "empty": size == 0, "single": size == 1}
    return {"wanted": wanted, **{name: float(np.mean(values)) for name, values in found.items()}}


def _table(labels: Any, columns: Any) -> list[dict[str, Any]]:
    names = ("label", "precision", "recall", "f1", "support")
    *shares, support = columns
    rows = zip(labels, *shares, np.asarray(support, dtype=np.int64), strict=True)
    return [dict(zip(names, row, strict=True)) for row in rows]


def described(figures: dict[str, float | None]) -> list[tuple[str, str]]:
    """Name and value of every figure there is, for people."""
    shown = {name: value for name, value in figures.items() if value is not None}
    names = (name.replace("_", " ").replace("f1", "F1").replace("hamming", "Hamming") for name in shown)
    values = (f"{100 * value:.2f} %" if name in _SHARES else f"{value:.4f}" for name, value in shown.items())
    return list(zip(names, values, strict=True))


# -- as a page --------------------------------------------------------------------------------------------------------


def page(title: str, subtitle: str, figures: list[tuple[str, str]], scores: Scores, multilabel: bool) -> str:
    """All that is known of how good a model is."""
    nouns = ("label", "labels") if multilabel else ("class", "classes")
    facts = [tiles(figures), *(tag("p", note, class_="advice") for note in scores.notes)]
    names, precision, f1 = zip(
        *((shown(row["label"]), row["precision"], row["f1"]) for row in scores.per_class), strict=True
    )
    by_class = mistakes_by_class(scores.mistakes, names, nouns[0], precision=precision, F1=f1)
    parts = [tag("div", *facts), section(f"Errors by {nouns[0]}", by_class)]
    if not multilabel:
        pairs = pairs_of_classes(scores.mistakes, names)
        parts.append(section(f"Confusion between {nouns[1]}", pairs or tag("p", "No row is taken for another class.")))
    if scores.reliability is not None and scores.reliability.counts.any():
        parts.append(section("Reliability", _reliability(scores.reliability, multilabel)))
    if scores.sets:
        parts.append(section("Prediction sets", _sets(scores, nouns[1])))
    return document(title, subtitle, *parts)


def _reliability(found: Reliability, multilabel: bool) -> Html:
    what = "labels of rows" if multilabel else "predictions"
    rows = [(f"{100 * stated:.1f} %", f"{100 * true:.1f} %", f"{n:,}") for stated, true, n in found.rows()]
    told = table(
        f"The same in figures; on average {100 * found.error:.2f} points apart", ("stated", "came true", what), rows
    )
    return side_by_side(found.picture(what), told)


def _sets(scores: Scores, noun: str) -> Html:
    """Wanted and found, by coverage."""
    rows = [
        (
            f"{100 * one['wanted']:g} %",
            bar(one["covered"], f"{100 * one['covered']:.1f} %"),
            f"{one['mean_size']:.2f}",
            f"{100 * one['empty']:.1f} %",
            f"{100 * one['single']:.1f} %",
        )
        for one in scores.sets
    ]
    caption = f"Sets of {noun} that should hold the true one with a given probability"
    return table(caption, ("wanted", "covered", f"mean number of {noun}", "empty", "of one"), rows)
