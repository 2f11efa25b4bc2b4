"""``manyclass analyze``."""

from __future__ import annotations

from pathlib import Path

from manyclass.cli.errors import UsageError
from manyclass.cli.inputs import DataOptions, check_classes, digits, load
from manyclass.cli.output import console, print_facts, print_json, progress_line
from manyclass.diagnostics import analyze


def run(path: Path | None, options: DataOptions, as_json: bool) -> None:
    """Report on a file of rows with labels."""
    if path is None and options != DataOptions():
        raise UsageError("these options describe data files, but no file was given: name it after 'analyze'")
    name = "scikit-learn's digits" if path is None else str(path)
    with progress_line(f"reading {name}") as progress:
        dataset = digits() if path is None else load(path, options, may_be_incomplete=True)
        check_classes(name, dataset.y)
        progress.say("looking")
        report = analyze(dataset.X, dataset.y, feature_names=dataset.feature_names)
    if as_json:
        print_json({"command": "analyze", "data": path or name} | report.to_dict())
    else:
        print_facts([("data", name)])
        console().print(str(report), markup=False)
