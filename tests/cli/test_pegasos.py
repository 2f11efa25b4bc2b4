"""``manyclass fit --solver pegasos``, of whole files and of those that stay where they are."""

import numpy as np
import pytest
from sklearn.datasets import dump_svmlight_file, load_digits

from manyclass.cli.inputs import DataOptions
from manyclass.cli.inputs import load as load_rows
from manyclass.cli.modelfile import Schema, load

LIMIT = ("--memory-limit", "50kB")


def test_the_whole_file_is_known_before_its_rows(tmp_path):
    """Labels, width and numbering that no single piece of it shows."""

    def known(name, text):
        (tmp_path / name).write_text(text)
        found = load_rows(tmp_path / name, DataOptions(), stays=True)
        return found.X, Schema.of(found)

    rows, schema = known("a.svm", "2 1:0.5\n0 7:1.5\n# a remark\n1 3:1\n")
    assert (rows.n_rows, schema.n_features, schema.zero_based) == (3, 7, False)
    assert schema.classes.tolist() == [0, 1, 2] and rows.dtype == np.float64
    _, schema = known("b.svm", "2 1:1\n0 0:2\n")
    assert (schema.n_features, schema.zero_based) == (2, True)
    _, schema = known("c.csv", "a,kind\n1,7\n2,two\n3,7\n")
    assert schema.classes.tolist() == ["7", "two"] and schema.feature_names == ("a",)


def late_names(path, n_rows=300, first_name=200):
    """Labels 1.0 and 2.0, and from some row on names, too."""
    labels = [f"{1 + i % 2}.0" if i < first_name or i % 3 else "oak" for i in range(n_rows)]
    path.write_text("a,b,kind\n" + "".join(f"{i % 2},{i % 3},{label}\n" for i, label in enumerate(labels)))
    return path


@pytest.mark.parametrize("how", [LIMIT, ()], ids=["limited", "whole"])
def test_labels_are_text_throughout_where_some_late_one_is(run_json, tmp_path, how):
    path, model = late_names(tmp_path / "late.csv"), tmp_path / "m.skops"
    run_json("fit", path, "--solver", "pegasos", *how, "--max-iter", 30, "-o", model)
    assert load(model).schema.classes.tolist() == ["1.0", "2.0", "oak"]
    report = run_json("evaluate", model, path)
    assert report["notes"] == [] and report["error"] < 0.2
    # A file that has only those that look like numbers.
    assert run_json("evaluate", model, late_names(tmp_path / "early.csv", 100))["notes"] == []


def test_several_labels_per_row(run_json, tmp_path, rng):
    X = rng.standard_normal((300, 6))
    Y = (X @ rng.standard_normal((6, 3)) > 0).astype(int)
    rows = [",".join(str(j) for j in np.flatnonzero(labels)) for labels in Y]
    lines = [f"{r} " + " ".join(f"{j + 1}:{v:.6f}" for j, v in enumerate(x)) for r, x in zip(rows, X, strict=True)]
    # Rows without a label cannot open a file: the reader looks at the first lines for commas.
    (tmp_path / "m.svm").write_text("\n".join(sorted(lines, key=lambda line: "," not in line)) + "\n")
    report = run_json("fit", tmp_path / "m.svm", "--solver", "pegasos", *LIMIT, "--max-iter", 20)
    assert report["multilabel"] and report["hamming_loss"] < 0.15


def test_time_limits_hold(run_json, tmp_path):
    dump_svmlight_file(*load_digits(return_X_y=True), str(tmp_path / "digits.svm"), zero_based=False)
    options = ("--solver", "pegasos", "--memory-limit", "5MB", "--max-iter", 10**6, "--max-time", 0.5)
    assert 0 < run_json("fit", tmp_path / "digits.svm", *options)["n_passes"] < 10**5


def test_its_losses_are_known_by_name(run_json, run_ok, iris_csv):
    report = run_json("fit", iris_csv, "--solver", "pegasos", "--loss", "hinge", "--alpha", 1e-2)
    assert report["loss"] == "hinge" and report["error"] < 0.3 and report["log_loss"] is None
    assert "pegasos, hinge loss, alpha 0.01" in run_ok(
        "fit", iris_csv, "--solver", "pegasos", "--loss", "hinge", "--alpha", 1e-2
    )


def test_a_part_of_an_epoch_may_be_asked_for(run_json, run, iris_csv):
    assert run_json("fit", iris_csv, "--solver", "pegasos", "--max-iter", 1.5)["n_iter"] == 1.5
    assert "whole number" in run("fit", iris_csv, "--solver", "sdca", "--max-iter", 1.5).err
