"""Files of more than numbers: text, categories, dates and gaps."""

import csv

import numpy as np
import pandas as pd
import pytest

from manyclass.cli.modelfile import load
from tests.covering import in_turn


@pytest.fixture
def people(rng):
    """Rows whose label follows from a category, a number and a gap."""
    n = 400
    frame = pd.DataFrame(
        {
            "age": np.where(rng.random(n) < 0.2, np.nan, rng.integers(18, 80, n)),
            "city": rng.choice(["Rome", "Oslo", "Bern"], n),
            "since": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 999, n), unit="D"),
            "member": rng.choice([True, False], n),
        }
    )
    frame["label"] = np.where((frame["city"] == "Oslo") | frame["age"].isna(), "yes", "no")
    return frame


WRITERS = {
    "csv": lambda frame, path: frame.to_csv(path, index=False),
    "tsv": lambda frame, path: frame.to_csv(path, index=False, sep="\t"),
    "parquet": lambda frame, path: frame.to_parquet(path),
    "arrow": lambda frame, path: frame.to_feather(path, compression="uncompressed"),
}


@pytest.fixture(params=WRITERS)
def write(request, tmp_path):
    def write(frame, name):
        path = tmp_path / f"{name}.{request.param}"
        WRITERS[request.param](frame, path)
        return path

    return write


@pytest.mark.parametrize(
    ("write", "options"),
    in_turn(WRITERS, [(), ("--alpha", "1e-3"), ("--solver", "sdca", "--scale", "maxabs")], start=1),
    indirect=["write"],
)
def test_a_table_is_fitted_and_its_model_used(run_json, run_ok, people, write, tmp_path, options):
    train, test = write(people[:300], "train"), write(people[300:], "test")
    model = tmp_path / "model.skops"
    report = run_json("fit", train, "--test", test, "-o", model, *options)
    assert (report["n_features"], report["n_rows"]) == (4, 300)
    assert report["error"] < 0.02
    assert run_json("evaluate", model, test)["error"] == report["error"]
    bare = write(people[300:].drop(columns="label"), "bare")
    predicted = run_json("predict", model, bare)["predictions"]
    assert np.mean(np.array(predicted) != people["label"][300:]) == pytest.approx(report["error"])
    assert "table, encoded in 13 columns" in run_ok("fit", train, *options)


def test_one_row_is_predicted_as_it_is_among_others(run_json, people, write, tmp_path):
    """Whatever its cells look like by themselves: a file of one row has no gaps, and its texts may be numbers."""
    frame = people.drop(columns=["since", "age"]).assign(number=np.arange(400) % 7)
    frame["city"] = frame["city"].map({"Rome": "10", "Oslo": "20", "Bern": "x"})
    model = tmp_path / "model.skops"
    run_json("fit", write(frame, "train"), "-o", model, "--holdout", 0, "--alpha", "1e-3")
    expected = np.array(run_json("predict", model, write(frame, "all"), "--proba")["predictions"])
    for row in range(6):
        found = run_json("predict", model, write(frame[row : row + 1], f"row{row}"), "--proba")["predictions"]
        np.testing.assert_allclose(found, expected[row : row + 1], rtol=1e-6)


def test_rows_without_a_single_date_are_predicted(run_json, people, write, tmp_path):
    people.loc[5:60, "since"] = pd.NaT
    model = tmp_path / "model.skops"
    run_json("fit", write(people, "train"), "-o", model, "--alpha", "1e-3")
    expected = run_json("predict", model, write(people, "all"), "--proba")["predictions"][5:8]
    found = run_json("predict", model, write(people[5:8], "undated"), "--proba")["predictions"]
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_truth_values_may_come_late(run, run_json, people, tmp_path):
    model = tmp_path / "m.skops"
    people["member"] = people["member"].astype(object).where(np.arange(len(people)) >= 100, None)
    people.to_csv(tmp_path / "late.csv", index=False)
    people[::-1].to_csv(tmp_path / "early.csv", index=False)
    for fitted, used in (("early", "late"), ("late", "early")):
        run_json("fit", tmp_path / f"{fitted}.csv", "-o", model, "--alpha", "1e-3", "--force")
        assert load(model).schema.kinds["member"] == "number"
        assert run_json("evaluate", model, tmp_path / f"{used}.csv")["error"] < 0.02
    people.assign(member="perhaps").to_csv(tmp_path / "other.csv", index=False)
    result = run("evaluate", model, tmp_path / "other.csv")
    assert result.code == 1 and "column 'member' holds text ('perhaps' in line 2)" in result.err


def test_times_may_name_their_zone(run_json, people, tmp_path):
    texts = people["since"].dt.strftime("%Y-%m-%dT%H:%M:%S")
    for zone in ("", "Z", "+01:00"):
        people.assign(since=texts + zone).to_csv(tmp_path / "zone.csv", index=False)
        run_json("fit", tmp_path / "zone.csv", "-o", tmp_path / "m.skops", "--alpha", "1e-3", "--force")
        assert load(tmp_path / "m.skops").schema.kinds["since"] == "time"


def test_tables_without_a_header(run_json, people, tmp_path):
    """As the files of UCI, most of whose cells may be text."""
    model, lines = tmp_path / "m.skops", people.to_csv(index=False, header=False).splitlines()
    lines = [line for line in lines if not line.startswith(",")]
    (tmp_path / "all.csv").write_text("\n".join(lines))
    report = run_json("fit", tmp_path / "all.csv", "-o", model, "--alpha", "1e-3", "--holdout", 0)
    assert (report["n_rows"], report["target"]) == (len(lines), None)
    assert run_json("evaluate", model, tmp_path / "all.csv")["error"] < 0.02
    (tmp_path / "one.csv").write_text(lines[0].rpartition(",")[0])
    found = run_json("predict", model, tmp_path / "one.csv")["predictions"]
    assert found == [lines[0].rpartition(",")[2]]


def test_the_saved_estimator_takes_frames(run_ok, people, tmp_path):
    people.to_csv(tmp_path / "people.csv", index=False)
    run_ok("fit", tmp_path / "people.csv", "-o", tmp_path / "model.skops", "--alpha", "1e-3")
    estimator = load(tmp_path / "model.skops").estimator
    assert estimator.score(people.drop(columns="label"), people["label"]) > 0.98


def test_steps_of_numbers_beside_many_categories_are_saved(run_json, people, tmp_path, rng):
    people["label"] = np.where(abs(people["age"] - 50) < 15, "yes", "no")
    people["id"] = rng.integers(0, 100, len(people)).astype(str)
    people["id"] = "n" + people["id"]
    people.to_csv(tmp_path / "people.csv", index=False)
    report = run_json("fit", tmp_path / "people.csv", "-o", tmp_path / "m.skops", "--holdout", 0)
    assert report["tried"][0]["scaling"] == "columns in steps"
    assert run_json("evaluate", tmp_path / "m.skops", tmp_path / "people.csv")["error"] < 0.1


def test_texts_are_taken_apart_into_words(run_json, tmp_path, rng):
    words = {"north": ["snow", "ice", "frost"], "south": ["sand", "sun", "heat"]}
    path = tmp_path / "texts.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["text", "label"])
        for number in range(300):
            label = ("north", "south")[number % 2]
            said = [f"it is day {number}", *rng.choice(words[label], 2), "they said", '"indeed"']
            writer.writerow([", ".join(said), label])
    assert run_json("fit", path, "--alpha", "1e-3")["error"] < 0.02
    assert run_json("analyze", path)["estimator"]


def test_gaps_alone_make_a_table(run_json, iris_csv, tmp_path):
    lines = iris_csv.read_text().splitlines()
    holed = [line if number % 9 or not number else "," + line.partition(",")[2] for number, line in enumerate(lines)]
    iris_csv.write_text("\n".join(holed))
    report = run_json("fit", iris_csv, "-o", tmp_path / "m.skops", "--holdout", 0, "--alpha", "1e-3")
    assert report["n_features"] == 4
    assert run_json("evaluate", tmp_path / "m.skops", iris_csv)["error"] < 0.06
    iris_csv.write_text("\n".join(lines))  # without any
    assert run_json("evaluate", tmp_path / "m.skops", iris_csv)["error"] < 0.06


def test_a_gap_may_be_held_out_with_its_row(run_json, tmp_path, rng, monkeypatch):
    monkeypatch.setattr("manyclass.cli.fit._held_out", lambda *_: np.arange(12))
    rows = [f"{a},{b},{'x' if b > 0 else 'y'}" for a, b in rng.standard_normal((60, 2)).tolist()]
    (tmp_path / "rows.csv").write_text("\n".join(["a,b,label", "," + rows[0].partition(",")[2], *rows[1:]]))
    report = run_json("fit", tmp_path / "rows.csv", "-o", tmp_path / "m.skops", "--alpha", "1e-3")
    assert report["n_features"] == 2
    assert run_json("evaluate", tmp_path / "m.skops", tmp_path / "rows.csv")["error"] < 0.1


@pytest.mark.parametrize(
    ("change", "command", "message"),
    [
        ({"age": "old"}, "evaluate", "column 'age' holds text ('old' in line 2)"),
        ({"since": "soon"}, "evaluate", "column 'since' holds text where the model was fitted on dates"),
        ({"age": np.inf}, "evaluate", "Column 'age' of X cannot be encoded: it holds infinity"),
        ({"age": np.inf}, "fit", "Column 'age' of X cannot be encoded: it holds infinity"),
        ({"city": None, "age": None}, "fit", None),
    ],
)
def test_cells_of_another_kind_are_named(run, people, tmp_path, change, command, message):
    people.to_csv(tmp_path / "people.csv", index=False)
    assert run("fit", tmp_path / "people.csv", "-o", tmp_path / "m.skops", "--alpha", "1e-3").code == 0
    people.assign(**change).to_csv(tmp_path / "other.csv", index=False)
    arguments = [tmp_path / "m.skops"] if command == "evaluate" else []
    result = run(command, *arguments, tmp_path / "other.csv")
    if message is None:
        assert result.code == 0
    else:
        assert result.code == 1 and message in result.err and result.err.count("\n") == 1


def test_a_text_among_numbers_is_a_mistake_and_many_are_none(run, people, tmp_path):
    for n_texts in (3, 100):
        ages = people["age"].fillna(50).astype(object)
        ages[5 : 5 + n_texts] = "unknown"
        people.assign(age=ages).to_csv(tmp_path / "ages.csv", index=False)
        result = run("fit", tmp_path / "ages.csv", "--alpha", "1e-3")
        if n_texts == 3:
            told = "column 'age' holds text ('unknown' in line 7) in 3 and numbers in 397 cells: correct the former"
            assert result.code == 1 and told in result.err
        else:
            assert result.code == 0


@pytest.mark.parametrize("cell", ["1,5", "12%", "1,234.5"])
def test_numbers_that_are_written_otherwise_are_no_categories(run, people, tmp_path, cell):
    people.assign(age=cell).to_csv(tmp_path / "ages.csv", index=False)
    result = run("fit", tmp_path / "ages.csv")
    assert result.code == 1 and "column 'age' holds" in result.err and "save the file" in result.err


@pytest.mark.parametrize(
    ("write", "options"),
    in_turn(WRITERS, [("--solver", "auto"), ("--solver", "sdca", "--scale", "maxabs"), ()]),
    indirect=["write"],
)
def test_a_table_is_fitted_where_it_lies(run_json, run_ok, people, write, tmp_path, options):
    """With room for a fraction of the rows, and judged in the same way in pieces and as a whole."""
    train, test, model = write(people[:300], "train"), write(people[300:], "test"), tmp_path / "model.skops"
    limit = ("--memory-limit", "200kB" if options else "2MB")
    report = run_json("fit", train, "--test", test, "-o", model, *limit, *options)
    assert (report["n_features"], report["n_rows"]) == (4, 300)
    assert report["error"] < 0.05
    assert run_json("evaluate", model, test)["error"] == report["error"]
    assert run_json("evaluate", model, test, "--memory-limit", "8kB")["error"] == report["error"]
    bare = write(people[300:].drop(columns="label"), "bare")
    whole, pieces = (run_json("predict", model, bare, *given)["predictions"] for given in ((), limit))
    assert pieces == whole
    assert "table, in chunks, encoded in" in run_ok("fit", train, *limit, *options)
    held_out = run_json("fit", train, "--holdout", 0.3, *limit, *options)
    assert held_out["evaluated_on"]["n_rows"] + held_out["n_rows"] == 300 and held_out["error"] < 0.1


def test_moments_are_of_numbers(run, people, tmp_path):
    people.to_csv(tmp_path / "people.csv", index=False)
    result = run("summarize", tmp_path / "people.csv", "-o", tmp_path / "p.moments")
    assert result.code == 1 and "columns 'city', 'since' hold text" in result.err


def test_arff_with_nominal_texts(run_json, tmp_path):
    lines = ["@relation r", "@attribute size numeric", "@attribute colour {red, 'light blue'}", "@attribute y {a, b}"]
    rows = [
        f"{number % 7},{colour},{label}"
        for number in range(40)
        for colour, label in (("red", "a"), ("'light blue'", "b"))
    ]
    (tmp_path / "rows.arff").write_text("\n".join([*lines, "@data", *rows, "?,?,a"]) + "\n")
    report = run_json("fit", tmp_path / "rows.arff", "-o", tmp_path / "m.skops", "--alpha", "1e-3")
    assert (report["n_features"], report["error"]) == (2, 0.0)
    assert run_json("evaluate", tmp_path / "m.skops", tmp_path / "rows.arff")["error"] < 0.02


def test_analyze(run_json, run_ok, people, tmp_path):
    people.to_csv(tmp_path / "people.csv", index=False)
    report = run_json("analyze", tmp_path / "people.csv")
    n_gaps = int(people["age"].isna().sum())
    assert report["rows"]["n_table_columns"] == 4 and report["rows"]["n_features"] == 13
    assert report["rows"]["n_missing"] == report["rows"]["n_rows_with_missing"] == n_gaps
    assert report["recommendation"].startswith("Put a TableEncoder")
    text = run_ok("analyze", tmp_path / "people.csv")
    assert f"{n_gaps} cells in {n_gaps} rows" in text and "13 columns of float64 made of 4 columns of a table" in text
