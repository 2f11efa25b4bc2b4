"""``manyclass predict``: what is written is what the estimator says."""

import csv
import os
import subprocess
import sys

import numpy as np
import pytest

from manyclass.cli.errors import CommandError
from manyclass.cli.modelfile import load
from manyclass.cli.output import whole_file


def rows_of(path):
    with open(path, newline="") as file:
        return list(csv.reader(file))


def test_labels_round_trip_through_a_file(run_ok, iris_model, iris_csv, iris, tmp_path):
    out = tmp_path / "labels.csv"
    text = run_ok("predict", iris_model, iris_csv, "-o", out)
    assert str(out) in text
    header, *rows = rows_of(out)
    expected = load(iris_model).estimator.predict(iris[0])
    assert header == ["kind"]
    assert [row[0] for row in rows] == expected.tolist()
    assert "versi,color" in expected


def test_stdout_is_the_same_csv(run_ok, iris_model, iris_csv, tmp_path):
    run_ok("predict", iris_model, iris_csv, "-o", tmp_path / "labels.csv")
    assert run_ok("predict", iris_model, iris_csv) == (tmp_path / "labels.csv").read_text()


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".parquet"])
def test_probabilities_round_trip(run_ok, iris_model, iris_csv, iris, tmp_path, suffix):
    out = tmp_path / f"proba{suffix}"
    run_ok("predict", iris_model, iris_csv, "--proba", "--output", out)
    model = load(iris_model)
    if suffix == ".parquet":
        table = pytest.importorskip("pyarrow.parquet").read_table(out)
        header, values = table.column_names, np.column_stack([column.to_numpy() for column in table.columns])
    else:
        with out.open(newline="") as file:
            header, *rows = csv.reader(file, delimiter="\t" if suffix == ".tsv" else ",")
        values = np.array(rows, dtype=float)
    assert header == model.schema.labels
    np.testing.assert_allclose(values, model.estimator.predict_proba(iris[0]), rtol=1e-8)
    np.testing.assert_allclose(values.sum(axis=1), 1, atol=1e-7)


def test_parquet_labels(run_ok, iris_model, iris_csv, iris, tmp_path):
    pq = pytest.importorskip("pyarrow.parquet")
    run_ok("predict", iris_model, iris_csv, "--out", tmp_path / "labels.parquet")
    table = pq.read_table(tmp_path / "labels.parquet")
    assert table["kind"].to_pylist() == load(iris_model).estimator.predict(iris[0]).tolist()


def test_json(run_json, iris_model, iris_csv, iris, tmp_path):
    model = load(iris_model)
    report = run_json("predict", iris_model, iris_csv)
    assert report["predictions"] == model.estimator.predict(iris[0]).tolist()
    report = run_json("predict", iris_model, iris_csv, "--proba")
    assert report["columns"] == model.schema.labels
    np.testing.assert_allclose(report["predictions"], model.estimator.predict_proba(iris[0]))
    report = run_json("predict", iris_model, iris_csv, "-o", tmp_path / "labels.csv")
    assert (report["n_rows"], report["output"]) == (150, str(tmp_path / "labels.csv"))
    assert "predictions" not in report


def test_many_blocks_are_one_file(run_ok, iris_model, iris_csv, tmp_path, monkeypatch):
    names = ["a.csv", "b.csv", "a.parquet", "b.parquet"]
    for name in names[::2]:
        run_ok("predict", iris_model, iris_csv, "--proba", "-o", tmp_path / name)
    monkeypatch.setattr("manyclass.cli.evaluate._BLOCK", 4 * 7)
    for name in names[1::2]:
        run_ok("predict", iris_model, iris_csv, "--proba", "-o", tmp_path / name)
    pd = pytest.importorskip("pandas")
    # A product of a block may be summed in another order than that of all rows.
    pd.testing.assert_frame_equal(*(pd.read_csv(tmp_path / name) for name in names[:2]), rtol=1e-9)
    pytest.importorskip("pyarrow.parquet")
    pd.testing.assert_frame_equal(*(pd.read_parquet(tmp_path / name) for name in names[2:]), rtol=1e-9)


def test_columns_are_found_by_name(run_ok, iris_model, iris_csv, tmp_path):
    header, *rows = rows_of(iris_csv)
    order = [3, 0, 2, 1]
    with (tmp_path / "new.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*(header[j] for j in order), "remark"])
        writer.writerows([*(row[j] for j in order), "no target here"] for row in rows)
    assert run_ok("predict", iris_model, tmp_path / "new.csv") == run_ok("predict", iris_model, iris_csv)


def test_number_labels(run_ok, tmp_path):
    run_ok("fit", "--solver", "auto", "-o", tmp_path / "m.skops")
    np.save(tmp_path / "X.npy", np.zeros((3, 64), np.float32))
    header, *rows = run_ok("predict", tmp_path / "m.skops", tmp_path / "X.npy").splitlines()
    assert header == "digit"
    assert all(0 <= int(row) <= 9 for row in rows)
    assert len(rows) == 3


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path):
    target = tmp_path / "out.csv"
    target.write_text("old")

    def write_half():
        with whole_file(target, force=True) as temporary:
            temporary.write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_half()
    assert target.read_text() == "old"
    assert os.listdir(tmp_path) == ["out.csv"]


def test_a_file_that_appears_meanwhile_is_kept(tmp_path):
    target = tmp_path / "out.csv"
    with pytest.raises(CommandError, match="exists already"), whole_file(target, force=False) as temporary:
        temporary.write_text("mine")
        target.write_text("theirs")
    assert target.read_text() == "theirs"
    assert os.listdir(tmp_path) == ["out.csv"]


def test_a_full_disk(run, full_disk, iris_model, tmp_path):
    np.save(tmp_path / "X.npy", np.ones((20_000, 4)))
    before = sorted(os.listdir(tmp_path))
    with full_disk(10_000):
        result = run("predict", iris_model, tmp_path / "X.npy", "--output", tmp_path / "out.csv")
    assert result.code == 1
    assert result.err.count("\n") == 1
    assert "no space left to write" in result.err
    assert "out.csv" in result.err
    assert sorted(os.listdir(tmp_path)) == before


def test_a_pipe_that_closes_early_is_no_error(iris_model, tmp_path):
    np.save(tmp_path / "X.npy", np.ones((40_000, 4)))
    command = f"'{sys.executable}' -c 'import sys; from manyclass.cli import main; sys.exit(main())'"
    result = subprocess.run(
        f"{command} predict {iris_model} {tmp_path / 'X.npy'} | head -n 2",
        shell=True,
        capture_output=True,
        text=True,
    )
    assert len(result.stdout.splitlines()) == 2
    assert result.stderr == ""


@pytest.mark.parametrize("limit", [(), ("--memory-limit", "1GB")], ids=["in memory", "limit"])
@pytest.mark.parametrize(
    "labels", [["", *["setosa"] * 149], [""] * 150, None], ids=["one missing", "none", "no column"]
)
@pytest.mark.parametrize("drop", [(), ("--drop", "kind")], ids=["", "dropped"])
def test_rows_to_be_labelled_need_no_labels(run_ok, write_csv, iris_model, iris_csv, iris, labels, drop, limit):
    expected = run_ok("predict", iris_model, iris_csv)
    rows = iris_csv.with_name("rows.csv")
    if labels is None:
        rows.write_text("".join(",".join(line.split(",")[:4]) + "\n" for line in iris_csv.read_text().splitlines()))
    else:
        write_csv(rows, iris[0], labels)
    if labels is not None or not drop:
        assert run_ok("predict", iris_model, rows, *drop, *limit) == expected


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no device here is always full")
@pytest.mark.parametrize(
    ("to", "sentence"),
    [
        (">/dev/full", "there is no space left to write the output: free some or choose another place"),
        (">&-", "there is no standard output to write to: leave it open, or send it to a file"),
    ],
)
def test_output_that_cannot_be_printed_is_named(iris_model, iris_csv, to, sentence):
    command = f"'{sys.executable}' -c 'import sys; from manyclass.cli import main; sys.exit(main())'"
    line = f"{command} predict {iris_model} {iris_csv} {to}"
    result = subprocess.run(line, shell=True, capture_output=True, text=True, check=False)
    assert (result.returncode, result.stderr) == (1, f"manyclass: {sentence}\n")
