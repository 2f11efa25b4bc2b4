"""``manyclass analyze``."""

from pathlib import Path

from manyclass.cli.errors import UsageError
from manyclass.cli.inputs import DataOptions, check_classes, digits, load
from manyclass.cli.output import check_writable, console, print_facts, print_json, progress_line, write_page
from manyclass.diagnostics import analyze


def run(path: Path | None, options: DataOptions, page: Path | None, force: bool, as_json: bool) -> None:
    if page is not None:
        check_writable(page, force)
    if path is None and options != DataOptions():
        raise UsageError("these options describe data files, but no file was given: name it after 'analyze'")
    name = "scikit-learn's digits" if path is None else str(path)
    with progress_line(f"reading {name}") as progress:
        dataset = digits() if path is None else load(path, options, may_be_incomplete=True, may_be_table=True)
        check_classes(name, dataset.y)
        progress.say("looking")
        names = {"feature_names": dataset.feature_names, "label_names": dataset.label_names}
        report = analyze(dataset.X, dataset.y, **names)
    saved = {} if page is None else write_page(page, report.to_html(name if path is None else path.name), force)
    if as_json:
        print_json({"command": "analyze", "data": path or name} | saved | report.to_dict())
    else:
        print_facts([("data", name)])
        console().print(str(report), markup=False)
        if saved:
            print_facts([("page", str(page))])
