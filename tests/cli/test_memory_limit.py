"""``--memory-limit`` of ``fit``, ``predict`` and ``evaluate``."""

import re

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.datasets import load_digits

from manyclass.cli.modelfile import load

LIMIT = ("--memory-limit", "600kB")
PARQUET, SHARDS = ("digits.parquet", "--target", "kind"), ("shards", "--labels", "y.npy")
NPZ = ("digits.npz", "--labels", "y.npy")


@pytest.fixture
def files(tmp_path, monkeypatch):
    X, y = load_digits(return_X_y=True)
    X = (X / 16).astype(np.float32)
    (tmp_path / "shards").mkdir()
    for number, part in enumerate(np.array_split(X, 11)):
        np.save(tmp_path / "shards" / f"{number}.npy", part.astype(np.float16))
    np.save(tmp_path / "y.npy", y)
    np.savez(tmp_path / "digits.npz", X=X)
    named = np.array(list("abcdefghij"))[y]
    table = pa.table({"kind": named, "pixels": pa.FixedSizeListArray.from_arrays(pa.array(X.ravel()), 64)})
    pq.write_table(table, tmp_path / "digits.parquet", row_group_size=300)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("given", "solver"),
    [
        (PARQUET, ("auto",)),
        (PARQUET, ("pegasos", "--max-iter", 3)),
        (SHARDS, ("auto",)),
        (SHARDS, ("calibrated", "--max-iter", 3)),
    ],
    ids=lambda given: given[0],
)
def test_files_are_fitted_where_they_lie(run_json, files, given, solver):
    options = ("--solver", *solver, "-o", "m.skops")
    report = run_json("fit", *given, *LIMIT, *options)
    # The limit leaves room for fewer rows than a fifth of them.
    assert report["evaluated_on"]["n_rows"] == 292 and report["n_rows"] == 1797 - 292
    assert report["error"] < 0.12
    whole = run_json("evaluate", "m.skops", "digits.parquet", *LIMIT) if given[0] != "shards" else None
    if whole is not None:
        assert whole["error"] < 0.12
        expected = run_json("evaluate", "m.skops", "digits.parquet")
        # Float32 products of blocks of another size round otherwise.
        assert whole.pop("log_loss", 0.0) == pytest.approx(expected.pop("log_loss", 0.0), rel=1e-5)
        bins = [[list(one.values()) for one in report.pop("reliability", [])] for report in (whole, expected)]
        assert bins[0] == [pytest.approx(one, rel=1e-5, abs=1e-5) for one in bins[1]]  # a bin may hold a single row
        assert whole == expected


@pytest.mark.parametrize("scale", ["standard", "maxabs", "rows"])
def test_rows_are_scaled_as_they_are_read(run_json, files, scale):
    reports = []
    for limit in (LIMIT, ("--memory-limit", "2GB")):
        given = ("--labels", "y.npy", "--alpha", 1e-4, "--scale", scale, "--holdout", 0, "--force", "-o", "m.skops")
        fitted = run_json("fit", "shards", *given, *limit)
        reports.append(run_json("evaluate", "m.skops", "shards", "--labels", "y.npy", *limit))
        assert fitted["scale"] == scale and reports[-1]["error"] < 0.03
    assert reports[0]["log_loss"] == pytest.approx(reports[1]["log_loss"], rel=0.02)  # gaps of 1e-3


def test_predictions_are_those_of_the_whole_file(run_ok, files):
    run_ok("fit", "--solver", "auto", "digits.parquet", "--target", "kind", "-o", "m.skops")
    whole, parts = (run_ok("predict", "m.skops", "digits.parquet", *limit) for limit in ((), LIMIT))
    assert parts == whole and parts.count("\n") == 1798


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (("fit", *LIMIT), 2, "--memory-limit belongs to a file to fit"),
        (("fit", "digits.parquet", "--memory-limit", "much"), 2, "--memory-limit much is no amount of memory"),
        (("fit", "digits.parquet", "--target", "kind", "--solver", "sdca", *LIMIT), 1, "--memory-limit 600kB; raise"),
        (("fit", *NPZ, "--memory-limit", "1KB"), 1, "or raise --memory-limit."),
        (
            ("fit", "shards", "--labels", "y.npy", "--memory-limit", "1KB"),
            1,
            "raise --memory-limit, or use --solver auto",
        ),
        (
            ("fit", "shards", "--labels", "y.npy", "--memory-limit", "1KB", "--solver", "auto"),
            1,
            "use --solver auto or --solver pegasos",
        ),
        (("fit", "shards", "--labels", "y.npy", "--solver", "stagewise", *LIMIT), 1, "raise it, or fit fewer rows"),
        (("fit", "shards", *LIMIT), 1, "has no labels"),
    ],
)
def test_what_is_refused(run, files, arguments, code, sentence):
    result = run(*arguments)
    assert result.code == code, result
    assert sentence in result.err.replace("\n", " ")
    assert not re.search("memory_limit|Classifier|block_size|=", result.err)


def test_no_class_has_all_of_its_rows_held_out(run_json, tmp_path):
    X, y = np.random.default_rng(0).standard_normal((60, 3)), np.r_[np.arange(50) % 2, np.arange(2, 12)]
    np.savez(tmp_path / "rows.npz", X=X, y=y)
    given = ("--solver", "auto", "--holdout", 0.5, "--memory-limit", "1GB", "-o", tmp_path / "m.skops")
    report, model = run_json("fit", tmp_path / "rows.npz", *given), load(tmp_path / "m.skops")
    np.testing.assert_array_equal(model.schema.classes, model.estimator.classes_)
    assert report["n_classes"] == len(model.schema.classes) == 12


@pytest.mark.parametrize("scale", ["standard", "maxabs"])
def test_scales_are_those_of_the_rows_that_are_fitted_to(run_json, iris, tmp_path, scale):
    X, y = iris
    np.savez(tmp_path / "rows.npz", X=X * np.where(np.arange(150) % 3 == 0, 100.0, 1.0)[:, None], y=y)
    found = []
    for limit in ((), ("--memory-limit", "1GB")):
        given = ("--solver", "auto", "--scale", scale, "--seed", 1, "--holdout", 0.2, "--force")
        run_json("fit", tmp_path / "rows.npz", *given, *limit, "-o", tmp_path / "m.skops")
        found.append(load(tmp_path / "m.skops").estimator[0])
    np.testing.assert_allclose(found[1].scale_, found[0].scale_)
    assert found[0].n_samples_seen_ == found[1].n_samples_seen_ == 120
