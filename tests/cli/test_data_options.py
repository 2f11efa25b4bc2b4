"""What the options say of a file holds for each command that reads one."""

import numpy as np
import pytest

from manyclass.cli.modelfile import load


@pytest.mark.parametrize(
    "command",
    ["fit --solver auto -o m.skops", "summarize -o a.moments", "analyze", "predict iris.skops", "evaluate iris.skops"],
)
def test_the_format_may_be_named(run, iris_model, iris_csv, monkeypatch, command):
    monkeypatch.chdir(iris_csv.parent)
    refused = run(*command.split(), "iris.csv", "--format", "idx")
    assert refused.code == 1 and "not an IDX file" in refused.err
    iris_csv.rename("rows.dat")
    assert run(*command.split(), "rows.dat", "--format", "csv").code == 0


@pytest.fixture
def bare(tmp_path, iris):
    """Rows without names and numbers as labels, and the same with a column in front of them."""
    X, y = iris
    codes = np.unique(y, return_inverse=True)[1]
    np.savetxt(tmp_path / "bare.csv", np.column_stack([X, codes]), delimiter=",")
    np.savetxt(tmp_path / "more.csv", np.column_stack([np.arange(150), X, codes]), delimiter=",")
    np.savetxt(tmp_path / "rows.csv", np.column_stack([np.arange(150), X]), delimiter=",")
    return tmp_path


def test_columns_that_are_left_out_are_no_features(run_json, run_ok, bare):
    paths = [bare / name for name in ("bare.csv", "more.csv", "m.skops", "n.skops", "a.moments")]
    rows, more, model, other, moments = paths
    run_ok("fit", rows, "--solver", "auto", "--holdout", 0, "-o", model)
    run_ok("fit", more, "--drop", 0, "--solver", "auto", "--holdout", 0, "-o", other)
    np.testing.assert_allclose(load(model).estimator.coef_, load(other).estimator.coef_, atol=1e-6)
    assert run_ok("predict", model, bare / "rows.csv", "--drop", 0) == run_ok("predict", model, rows)
    errors = [run_json("evaluate", model, path, *drop)["error"] for path, drop in ((rows, ()), (more, ("--drop", 0)))]
    assert errors[0] == errors[1] < 0.1
    assert run_json("analyze", more, "--drop", 0)["rows"]["n_features"] == 4
    assert run_json("summarize", more, "--drop", 0, "-o", moments)["n_features"] == 4


def test_the_number_of_features_may_be_more_than_a_file_holds(run_json, tmp_path):
    rows = tmp_path / "rows.svm"
    rows.write_text("1 1:1\n0 2:1\n" * 9)
    for command in ("fit", "summarize"):
        out = tmp_path / ("m.skops" if command == "fit" else "a.moments")
        given = ("--solver", "auto") if command == "fit" else ()
        assert run_json(command, rows, *given, "--n-features", 9, "-o", out)["n_features"] == 9
    assert run_json("analyze", rows, "--n-features", 9)["rows"]["n_features"] == 9


def test_labels_may_lie_in_a_file_of_their_own(run_json, run_ok, tmp_path, iris):
    X, y = iris
    rows, labels, model = (tmp_path / name for name in ("X.npy", "y.npy", "m.skops"))
    np.save(rows, X)
    np.save(labels, y)
    assert run_json("fit", rows, "--labels", labels, "--solver", "auto", "--holdout", 0, "-o", model)["n_classes"] == 3
    assert run_json("evaluate", model, rows, "--labels", labels)["error"] < 0.1
    assert run_json("analyze", rows, "--labels", labels)["labels"]["counts"] == [50, 50, 50]
    assert run_json("summarize", rows, "--labels", labels, "-o", tmp_path / "a.moments")["n_classes"] == 3


def test_labels_keep_the_names_of_their_columns(run_json, tmp_path):
    cells = [f"{i},{i * i % 7},{i % 2},{int(i % 3 == 0)}\n" for i in range(60)]
    (tmp_path / "rows.csv").write_text("a,b,red,blue\n" + "".join(cells))
    assert run_json("analyze", tmp_path / "rows.csv", "--labels", 2)["labels"]["classes"] == ["red", "blue"]
    run_json("fit", tmp_path / "rows.csv", "--labels", 2, "--solver", "auto", "-o", tmp_path / "m.skops")
    assert load(tmp_path / "m.skops").schema.label_names == ("red", "blue")


@pytest.mark.parametrize("features", [("w0", "w1"), ("class", "y")])  # which elsewhere are names of labels
def test_names_of_labels_in_xml_hold_for_the_test_file_too(run_json, tmp_path, features):
    pytest.importorskip("arff")
    head = "@relation r\n" + "".join(f"@attribute {name} {{0,1}}\n" for name in ("red", *features, "blue")) + "@data\n"
    for name, numbers in (("train", range(60)), ("test", range(7, 40))):
        rows = [f"{i % 2},{i % 2},{int(i % 3 == 0)},{int(i % 3 == 0)}\n" for i in numbers]
        (tmp_path / f"{name}.arff").write_text(head + "".join(rows))
    (tmp_path / "labels.xml").write_text('<labels><label name="red"/><label name="blue"/></labels>')
    given = (
        "--solver",
        "auto",
        "--labels",
        tmp_path / "labels.xml",
        "--test",
        tmp_path / "test.arff",
        "-o",
        tmp_path / "m.skops",
    )
    report = run_json("fit", tmp_path / "train.arff", *given)
    assert (report["n_features"], report["evaluated_on"]["n_rows"], report["hamming_loss"]) == (2, 33, 0)


@pytest.mark.parametrize("route", ["fit", "merge"])
def test_a_model_knows_whether_its_features_are_counted_from_zero(run_json, tmp_path, route):
    """The test file has no feature 0, and so would be taken for one that counts from 1."""
    train, test, model = (tmp_path / name for name in ("train.svm", "test.svm", "m.skops"))
    train.write_text("1 0:1 1:1 2:3\n0 1:2 2:1\n" * 9)
    test.write_text("1 1:1 2:3\n0 1:2 2:1\n")
    if route == "fit":
        run_json("fit", train, "--solver", "auto", "--holdout", 0, "-o", model)
    else:
        run_json("summarize", train, "-o", tmp_path / "a.moments")
        run_json("merge", tmp_path / "a.moments", "--alpha", 0.01, "-o", model)
    assert load(model).schema.zero_based is True
    assert run_json("evaluate", model, test)["error"] == 0
