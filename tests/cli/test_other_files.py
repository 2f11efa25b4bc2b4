"""Files and models that other programs wrote."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import skops.io
from sklearn.pipeline import make_pipeline

from manyclass import GLMClassifier
from manyclass.features import TableEncoder


@pytest.mark.parametrize("limit", [(), ("--memory-limit", "100MB")])
@pytest.mark.parametrize("form", ["ipc", "stream", "parquet"])
def test_texts_and_categories_of_polars_are_read(run, run_json, form, limit, tmp_path, rng):
    city = rng.choice(["Rome", "Oslo", "Bern"], 300)
    frame = pl.DataFrame({"a": rng.standard_normal(300), "city": city, "kind": pl.Series(city, dtype=pl.Categorical)})
    frame = frame.with_columns(pl.when(pl.col("a") > 2).then(None).otherwise(pl.col("city")).alias("city"))
    frame = frame.with_columns(label=pl.Series(np.where(city == "Oslo", "yes", "no")))
    path = tmp_path / f"people.{'parquet' if form == 'parquet' else 'arrow'}"
    {"ipc": frame.write_ipc, "stream": frame.write_ipc_stream, "parquet": frame.write_parquet}[form](path)
    assert run("fit", path, "--solver", "auto", *limit, "--output", tmp_path / "m.skops").code == 0
    assert run_json("evaluate", tmp_path / "m.skops", path)["error"] == 0.0


@pytest.mark.parametrize("limit", [(), ("--memory-limit", "100MB")])
def test_one_label_is_two_classes(run, run_json, limit, tmp_path, rng):
    X = rng.standard_normal((200, 3))
    pd.DataFrame(X, columns=list("abc")).assign(sick=(X[:, 0] > 0).astype(int)).to_csv(tmp_path / "d.csv", index=False)
    fitted = run(
        "fit", tmp_path / "d.csv", "--labels", "1", "--solver", "auto", "--output", tmp_path / "m.skops", *limit
    )
    assert (fitted.code, fitted.err) == (0, "")
    assert run_json("evaluate", tmp_path / "m.skops", tmp_path / "d.csv")["error"] < 0.1


def test_codes_with_a_low_line_are_text(run, run_ok, tmp_path):
    codes = [f"{i % 50}_{i % 7}" if i % 9 else "unknown" for i in range(100)]
    frame = pd.DataFrame({"code": codes, "label": [code < "25" for code in codes]})
    assert TableEncoder().fit(frame[["code"]]).columns_
    numbers = ["1.5"] * 60 + ["1_000"]
    (tmp_path / "d.csv").write_text("a,label\n" + "".join(f"{one},{i % 2}\n" for i, one in enumerate(numbers)))
    told = run("fit", tmp_path / "d.csv", "--solver", "auto")
    assert told.code and "column 'a' holds text ('1_000' in line 62)" in told.err


@pytest.mark.parametrize("classes", [["no", "yes"], ["0", "1"]])
def test_pipelines_with_an_encoder_that_were_saved_from_python_are_used(run_json, classes, tmp_path, rng):
    city = rng.choice(["Rome", "Oslo"], 200)
    frame = pd.DataFrame({"a": rng.standard_normal(200), "city": city})
    y = pd.Series(np.where(city == "Oslo", classes[1], classes[0]), name="label")
    model = make_pipeline(TableEncoder(), GLMClassifier()).fit(frame, y)
    skops.io.dump(model, tmp_path / "m.skops")
    frame.assign(label=y).to_csv(tmp_path / "d.csv", index=False)
    assert run_json("evaluate", tmp_path / "m.skops", tmp_path / "d.csv")["error"] == 0.0


@pytest.mark.parametrize("line", ['{"a": 1.5, "label": 0}', '[{"a": 1.5, "label": 0}]', "[[1, 2], [3, 4]]"])
def test_json_is_not_read_as_csv(run, line, tmp_path):
    (tmp_path / "d.jsonl").write_text(f"{line}\n" * 100)
    told = run("fit", tmp_path / "d.jsonl", "--solver", "auto")
    assert told.code and "none of the known formats" in told.err


def test_columns_of_no_kind_are_named(run, tmp_path):
    frame = pd.DataFrame({"a": range(60), "of": [{"q": i} for i in range(60)], "label": [i % 2 for i in range(60)]})
    frame.to_parquet(tmp_path / "d.parquet")
    told = run("fit", tmp_path / "d.parquet", "--solver", "auto")
    assert told.code and "column 'of' cannot be used" in told.err and "convert or drop it" in told.err


def test_labels_of_half_precision_are_read_without_a_warning(run_ok, tmp_path, rng):
    np.savez(tmp_path / "d.npz", X=rng.standard_normal((60, 3)), y=(np.arange(60) % 3).astype(np.float16))
    run_ok("fit", tmp_path / "d.npz", "--solver", "auto")


def test_a_file_of_another_width_is_told_its_columns(run, run_ok, tmp_path, rng):
    X = rng.standard_normal((60, 3))
    pd.DataFrame(X).assign(y=np.arange(60) % 2).to_csv(tmp_path / "d.csv", index=False, header=False)
    run_ok("fit", tmp_path / "d.csv", "--solver", "auto", "--output", tmp_path / "m.skops")
    pd.DataFrame(X[:, :2]).to_csv(tmp_path / "two.csv", index=False, header=False)
    told = run("predict", tmp_path / "m.skops", tmp_path / "two.csv")
    assert told.code and "it has 2 columns where 3 features" in told.err
