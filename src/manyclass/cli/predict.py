"""``manyclass predict``."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manyclass.cli import modelfile
from manyclass.cli.errors import CommandError, UsageError
from manyclass.cli.inputs import DataOptions, load
from manyclass.cli.output import check_writable, print_facts, print_json, whole_file
from manyclass.cli.progress import progress_line
from manyclass.cli.scores import blocks

Write = Callable[[NDArray[Any]], None]


def run(
    model_path: Path, data_path: Path, options: DataOptions, proba: bool, output: Path | None, as_json: bool
) -> None:
    """Write the label, or the probability of every label, of each row."""
    options.check()
    if output is not None:
        if output.suffix.lower() not in _WRITERS:
            raise UsageError(f"{output} should end in one of {', '.join(_WRITERS)}")
        check_writable(output)
    model = modelfile.load(model_path)
    if proba and not model.has_probabilities:
        raise CommandError(f"{model_path} has no probabilities: fit with --link softmax, or leave out --proba")
    with progress_line(f"reading {data_path.name}") as progress:
        X = load(data_path, options, schema=model.schema, labels_needed=False).X
        progress.say("predicting")
        names = model.schema.labels if proba or model.schema.multilabel else [model.schema.target_name or "label"]
        method = model.estimator.predict_proba if proba else model.estimator.predict
        rows = blocks(method, X, len(model.schema.labels))
        report: dict[str, Any] = {
            "command": "predict",
            "model": model_path,
            "data": data_path,
            "n_rows": X.shape[0],
        }
        if output is not None:
            with whole_file(output) as temporary, _WRITERS[output.suffix.lower()](temporary, names) as write:
                for block in rows:
                    write(block)
            report["output"] = output
        elif as_json:
            report["columns"] = names
            report["predictions"] = [row for block in rows for row in block.tolist()]
    if as_json:
        print_json(report)
    elif output is None:
        with _csv_rows(sys.stdout, names) as write:
            for block in rows:
                write(block)
    else:
        what = "probabilities" if proba else "labels"
        print_facts([("predicted", f"{what} of {X.shape[0]:,} rows of {data_path}"), ("saved", str(output))])


@contextmanager
def _csv_rows(file: Any, names: list[str], delimiter: str = ",") -> Iterator[Write]:
    writer = csv.writer(file, delimiter=delimiter, lineterminator="\n")
    writer.writerow(names)

    def write(block: NDArray[Any]) -> None:
        if block.dtype.kind == "f" and block.ndim == 2:
            # Nine digits give back the same float32, and more than a probability ever means.
            text = io.StringIO()
            np.savetxt(text, block, fmt="%.9g", delimiter=delimiter)
            file.write(text.getvalue())
        else:
            writer.writerows(block.tolist() if block.ndim == 2 else [[label] for label in block.tolist()])

    yield write


@contextmanager
def _csv_file(path: Path, names: list[str], delimiter: str = ",") -> Iterator[Write]:
    with path.open("x", encoding="utf-8", newline="") as file, _csv_rows(file, names, delimiter) as write:
        yield write


@contextmanager
def _tsv_file(path: Path, names: list[str]) -> Iterator[Write]:
    with _csv_file(path, names, "\t") as write:
        yield write


@contextmanager
def _parquet_file(path: Path, names: list[str]) -> Iterator[Write]:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise CommandError("writing Parquet needs pyarrow: pip install 'manyclass[frames]', or write .csv") from error
    writers: list[Any] = []

    def write(block: NDArray[Any]) -> None:
        columns = block.T if block.ndim == 2 else [block]
        table = pa.table([pa.array(np.ascontiguousarray(column)) for column in columns], names=names)
        if not writers:
            writers.append(pq.ParquetWriter(path, table.schema))
        writers[0].write_table(table)

    try:
        yield write
    finally:
        for writer in writers:
            writer.close()


_WRITERS: dict[str, Callable[[Path, list[str]], AbstractContextManager[Write]]] = {
    ".csv": _csv_file,
    ".tsv": _tsv_file,
    ".parquet": _parquet_file,
}
