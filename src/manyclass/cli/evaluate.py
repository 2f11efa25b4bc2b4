"""``manyclass evaluate``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from manyclass.cli import modelfile
from manyclass.cli.inputs import DataOptions, load
from manyclass.cli.modelfile import Model
from manyclass.cli.output import console, print_facts, print_json
from manyclass.cli.progress import progress_line
from manyclass.cli.scores import Scores, described, score

# A table longer than this is not read; the worst classes are what one looks for.
_MANY_CLASSES = 40
_WORST = 20


def run(model_path: Path, data_path: Path, options: DataOptions, as_json: bool) -> None:
    """Report how good the model is on rows with labels."""
    model = modelfile.load(model_path)
    with progress_line(f"reading {data_path.name}") as progress:
        dataset = load(data_path, options, schema=model.schema)
        progress.say("judging")
        scores = score(model, dataset.X, dataset.y)
    if as_json:
        report: dict[str, Any] = {"command": "evaluate", "model": model_path, "data": data_path}
        report |= {"n_rows": scores.n_rows, "multilabel": model.schema.multilabel}
        print_json(report | scores.figures | {"notes": scores.notes, "classes": scores.per_class})
    else:
        print_facts(
            [
                ("data", f"{data_path}: {scores.n_rows:,} rows"),
                *described(scores.figures),
                *(("note", note) for note in scores.notes),
            ]
        )
        _print_classes(model, scores)


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
        table.add_row(Text(str(row["label"])), *figures, f"{row['support']:,}")
    console().print(table, soft_wrap=False)
