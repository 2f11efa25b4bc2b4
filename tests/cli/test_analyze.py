"""``manyclass analyze``: the report of `manyclass.analyze` on a file."""

import pytest

from manyclass import analyze
from manyclass.cli.output import write_page


def test_report(run_ok, iris_csv):
    text = run_ok("analyze", iris_csv)
    for words in ("150 rows × 4 columns", "versi,color", "condition number", "GLMClassifier", "Take"):
        assert words in text


def test_json_is_the_report_of_the_same_rows(run_json, iris_csv, iris):
    found, expected = run_json("analyze", iris_csv), analyze(*iris).to_dict()
    assert found["command"] == "analyze"
    assert found["labels"] == expected["labels"]
    assert found["rows"]["n_repeated"] == expected["rows"]["n_repeated"]


@pytest.mark.parametrize("cell", ["", "inf", "1e300"])
def test_incomplete_rows_are_no_reason_to_stop(run_json, iris_csv, cell):
    iris_csv.write_text(iris_csv.read_text().replace("5.1", cell, 1))
    assert run_json("analyze", iris_csv)["rows"]["n_missing"] == 1


def test_columns_are_named(run_json, iris_csv):
    lines = iris_csv.read_text().splitlines()
    iris_csv.write_text("\n".join(["same," + lines[0], *("1," + line for line in lines[1:])]))
    assert run_json("analyze", iris_csv)["columns"]["constant"] == ["same"]


def test_files_are_described_by_the_same_options(run, run_json, iris_csv):
    assert run_json("analyze", iris_csv, "--drop", "sl")["rows"]["n_features"] == 3
    result = run("analyze", "--drop", "sl")
    assert (result.code, result.out) == (2, "") and "name it after 'analyze'" in result.err
    result = run("analyze", iris_csv, "--target", "pw", "--drop", "kind")
    assert result.code == 1 and "real numbers" in result.err


def test_page(run, run_ok, run_json, iris_csv, tmp_path):
    page = tmp_path / "report.html"
    assert f"page  {page}" in run_ok("analyze", iris_csv, "--html", page)
    assert "versi,color" in page.read_text() and "<title>iris.csv" in page.read_text()
    before = page.read_bytes()
    result = run("analyze", iris_csv, "--html", page)
    assert result.code == 1 and "replace it with --force" in result.err and page.read_bytes() == before
    assert run_json("analyze", iris_csv, "--html", page, "--force")["html"] == str(page)
    assert [path.name for path in tmp_path.iterdir() if path.suffix not in (".csv", ".html")] == []


def test_a_name_that_is_no_text_can_be_written(tmp_path):
    write_page(tmp_path / "page.html", "half \ud800 of a character", force=False)
    assert "&#55296;" in (tmp_path / "page.html").read_text()
