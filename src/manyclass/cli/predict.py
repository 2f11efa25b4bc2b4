"""``manyclass predict``."""

import csv
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manyclass.cli import modelfile
from manyclass.cli.errors import CommandError, UsageError
from manyclass.cli.evaluate import blocks
from manyclass.cli.inputs import DataOptions, load
from manyclass.cli.output import check_writable, print_facts, print_json, progress_line, whole_file
from manyclass.diagnostics.names import counted

Write = Callable[[NDArray[Any]], None]


def run(
    model_path: Path,
    data_path: Path,
    options: DataOptions,
    proba: bool,
    output: Path | None,
    force: bool,
    json: bool,
    memory_limit: str | None = None,
) -> None:
    """Write the label, or the probability of every label, of each row."""
    if output is not None:
        if output.suffix.lower() not in _WRITERS:
            raise UsageError(f"{output} should end in one of {', '.join(_WRITERS)}")
        check_writable(output, force)
    model = modelfile.load(model_path)
    if proba and not model.has_probabilities:
        raise CommandError(f"{model_path} has no probabilities: fit with --loss softmax, or leave out --proba")
    with progress_line(f"reading {data_path.name}") as progress:
        found = load(data_path, options, schema=model.schema, labels_needed=False, memory_limit=memory_limit)
        X = model.encoded(found.X)
        progress.say("predicting")
        names = model.schema.labels if proba or model.schema.multilabel else [model.schema.target_name or "label"]
        predict = model.of_numbers.predict_proba if proba else model.of_numbers.predict
        rows = blocks(predict, X, len(model.schema.labels))
        report: dict[str, Any] = {"command": "predict", "model": model_path, "data": data_path, "n_rows": X.shape[0]}
        if output is not None:
            with whole_file(output, force) as temporary, _WRITERS[output.suffix.lower()](temporary, names) as write:
                for block in rows:
                    write(block)
            report["output"] = output
        elif json:
            report["columns"] = names
            report["predictions"] = [row for block in rows for row in block.tolist()]
    if json:
        print_json(report)
    elif output is None:
        write = _text_rows(sys.stdout, names)
        for block in rows:
            write(block)
    else:
        what = "probabilities" if proba else "labels"
        print_facts([("predicted", f"{what} of {counted(X.shape[0], 'row')} of {data_path}"), ("saved", str(output))])


def _text_rows(file: Any, names: list[str], delimiter: str = ",") -> Write:
    writer = csv.writer(file, delimiter=delimiter, lineterminator="\n")
    writer.writerow(names)

    def write(block: NDArray[Any]) -> None:
        if block.dtype.kind == "f" and block.ndim == 2:
            # Nine digits give back the same float32, and more than a probability ever means.
            np.savetxt(file, block, fmt="%.9g", delimiter=delimiter)
        else:
            writer.writerows(block.tolist() if block.ndim == 2 else block[:, None].tolist())

    return write


@contextmanager
def _text_file(delimiter: str, path: Path, names: list[str]) -> Iterator[Write]:
    with path.open("x", encoding="utf-8", newline="") as file:
        yield _text_rows(file, names, delimiter)


@contextmanager
def _parquet_file(path: Path, names: list[str]) -> Iterator[Write]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    with ExitStack() as stack:
        writer: Any = None

        def write(block: NDArray[Any]) -> None:
            nonlocal writer
            columns = np.atleast_2d(block.T)
            table = pa.table([pa.array(np.ascontiguousarray(column)) for column in columns], names=names)
            writer = writer or stack.enter_context(pq.ParquetWriter(path, table.schema))
            writer.write_table(table)

        yield write


_WRITERS: dict[str, Callable[[Path, list[str]], AbstractContextManager[Write]]] = {
    ".csv": partial(_text_file, ","),
    ".tsv": partial(_text_file, "\t"),
    ".parquet": _parquet_file,
}
