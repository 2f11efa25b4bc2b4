"""Claim: a table in a CSV file is fitted in pieces as well as in memory, in a third of the memory, and faster than by
`SGDClassifier.partial_fit` over chunks of pandas, which is what scikit-learn offers for it.

Each fit runs in a process of its own, and is judged on rows of their own. The peer learns `StandardScaler`,
`SimpleImputer` with indicators and `OneHotEncoder` from its first chunk, and goes over the file five times; of three
penalties the one with the least log loss on the test rows is shown, which is in its favour.

    python -m benchmarks.stored_tables [--rows 1500000] [--limit 200MB] [--max-time 60]
    python -m benchmarks.stored_tables --data visits.csv --test others.csv --target label
"""

from __future__ import annotations

import json
import tempfile
import time
import warnings
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd
import psutil
import typer
from sklearn.metrics import log_loss

from benchmarks import report
from benchmarks.memory import measured_alone, peak_bytes, reset_peak

CHUNK_ROWS, N_EPOCHS, PENALTIES = 100_000, 5, (1e-4, 1e-5, 1e-6)
IN_PIECES, AUTO, IN_MEMORY, PEER = "GLM in pieces", "AutoClassifier in pieces", "GLM in memory", "SGD over chunks"
WAYS = [IN_PIECES, AUTO, IN_MEMORY, PEER]


def written(path: Path, n_rows: int, seed: int) -> Path:
    """Visits: ages with gaps, incomes with a heavy tail, two columns of categories, dates, two measurements."""
    rng = np.random.default_rng(seed)
    days = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 999, n_rows), unit="D")
    city = rng.integers(0, 200, n_rows)
    frame = pd.DataFrame(
        {
            "age": np.where(rng.random(n_rows) < 0.1, np.nan, rng.integers(18, 80, n_rows)),
            "income": rng.lognormal(0, 2, n_rows).round(3),
            "city": np.char.add("city ", city.astype(str)),
            "job": np.char.add("job ", rng.integers(0, 30, n_rows).astype(str)),
            "since": days.strftime("%Y-%m-%d"),
            "b": rng.standard_normal(n_rows).round(4),
            "c": rng.standard_normal(n_rows).round(4),
        }
    )
    says_yes = (city % 3 == 0) + frame["age"].isna() + (frame["b"] > 1) + 0.2 * rng.standard_normal(n_rows) > 0.5
    frame.assign(label=np.where(says_yes, "yes", "no")).to_csv(path, index=False)
    return path


def ours(way: str, path: Path, target: str, limit: str, max_time: float) -> Any:
    from sklearn.pipeline import make_pipeline

    from manyclass import AutoClassifier, GLMClassifier
    from manyclass.data import open_rows
    from manyclass.features import TableEncoder

    if way == AUTO:
        return AutoClassifier(max_time=max_time, random_state=0).fit(path, target, memory_limit=limit)
    model = make_pipeline(TableEncoder(), GLMClassifier())
    if way == IN_MEMORY:
        frame = pd.read_csv(path)
        return model.fit(frame.drop(columns=target), frame[target])
    rows, y = open_rows(path, target, limit, kinds={})
    return model.fit(rows, y, glmclassifier__memory_limit=limit)


def peer(path: Path, target: str, alpha: float) -> Any:
    from sklearn.compose import make_column_selector, make_column_transformer
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import SGDClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    numbers = make_pipeline(SimpleImputer(add_indicator=True), StandardScaler())
    categories = OneHotEncoder(handle_unknown="infrequent_if_exist", min_frequency=2)
    encoder = make_column_transformer(
        (numbers, make_column_selector(dtype_include="number")),
        (categories, make_column_selector(dtype_exclude="number")),
    )
    model, classes = SGDClassifier(loss="log_loss", alpha=alpha, random_state=0), None
    for _ in range(N_EPOCHS):
        for chunk in pd.read_csv(path, chunksize=CHUNK_ROWS):
            y = chunk.pop(target)
            if classes is None:
                encoder.fit(chunk)
                classes = np.unique(pd.read_csv(path, usecols=[target])[target])
            model.partial_fit(encoder.transform(chunk), y, classes=classes)
    return make_pipeline(encoder, model)


def measure(way: str, path: Path, test: Path, target: str, limit: str, max_time: float) -> None:
    """Runs in its own process and prints what it found."""
    warnings.simplefilter("ignore")
    frame = pd.read_csv(test)
    y = frame.pop(target)
    with tempfile.TemporaryDirectory() as folder:  # imports and compilation are not the fit's
        few = Path(folder) / "few.csv"
        pd.read_csv(path, nrows=2000).to_csv(few, index=False)
        peer(few, target, 1e-4) if way == PEER else ours(way, few, target, "1GB", 5.0)
    before, best = psutil.Process().memory_info().rss, None
    for alpha in PENALTIES if way == PEER else (0.0,):
        reset_peak()
        started = time.perf_counter()
        model = peer(path, target, alpha) if way == PEER else ours(way, path, target, limit, max_time)
        seconds, peak = time.perf_counter() - started, peak_bytes() - before
        loss = log_loss(y, model.predict_proba(frame), labels=model.classes_)
        error = float(np.mean(np.asarray(model.predict(frame)) != y))
        if best is None or loss < best["log_loss"]:
            best = {"seconds": seconds, "peak": peak, "error": error, "log_loss": loss}
    print(json.dumps(best))


def main(
    rows: int = 1_500_000,
    limit: str = "200MB",
    max_time: Annotated[float, typer.Option(help="Seconds of AutoClassifier.")] = 60.0,
    data: Annotated[Path | None, typer.Option(help="A CSV file in place of one that is made.")] = None,
    test: Annotated[Path | None, typer.Option(help="Others of its rows.")] = None,
    target: str = "label",
    measure_: Annotated[str, typer.Option("--measure", hidden=True)] = "",
) -> None:
    if measure_:
        assert data is not None and test is not None
        measure(measure_, data, test, target, limit, max_time)
        return
    with tempfile.TemporaryDirectory() as folder:
        data = data or written(Path(folder) / "train.csv", rows, 1)
        test = test or written(Path(folder) / "test.csv", min(rows, 100_000), 2)
        title = f"{data.name}, {data.stat().st_size / 1e6:.0f} MB, memory_limit={limit!r}"
        table = report.Table(title, ["", "seconds", "peak beside libraries", "error", "log loss"], live=True)
        options = ["--data", str(data), "--test", str(test), "--target", target, "--limit", limit]
        options += ["--max-time", str(max_time)]
        for way in WAYS:
            found = measured_alone("benchmarks.stored_tables", "--measure", way, *options)
            if isinstance(found, str):
                table.add(way, found, *[""] * 3)
                continue
            peak = f"{found['peak'] / 1e6:.0f} MB"
            table.add(way, f"{found['seconds']:.1f}", peak, f"{found['error']:.2%}", f"{found['log_loss']:.4f}")
    table.note(f"The peer's seconds are those of one of {len(PENALTIES)} penalties.")
    table.publish("stored_tables")


if __name__ == "__main__":
    typer.run(main)
