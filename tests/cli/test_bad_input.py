"""Every mistake gets one sentence on stderr, an exit code, no traceback, and leaves no file."""

import gzip
import os

import numpy as np
import pytest


@pytest.fixture
def files(tmp_path, iris_csv, iris_model):
    """Everything that can be wrong with a file, by name."""
    text = iris_csv.read_text()
    lines = text.splitlines()
    write = {
        "text.csv": text.replace("5.1", "tall", 1),
        "missing.csv": text.replace("5.1", "", 1),
        "infinite.csv": text.replace("5.1", "inf", 1),
        "huge.csv": text.replace("5.1", "-1e300", 1),
        "one.csv": "\n".join(lines[:40]) + "\n",
        "header.csv": lines[0] + "\n",
        "real.csv": "a,b\n1,0.5\n2,0.7\n",
        "narrow.csv": "\n".join(line.split(",", 1)[1] for line in lines),
        "ragged.csv": text + "1,2\n",
        "row.csv": "\n".join(lines[:2]) + "\n",
        "empty.csv": "",
        "unlabelled.csv": "sl,sw,pl,pw\n1,2,3,4\n",
        "few.txt": "a\nb\n",
        "two.csv": "a,b,label\n1,2,x\n3,4,y\n",
        "other.csv": "sl,sw,pl,pw,kind\n1,2,3,4,tulip\n1,2,3,4,rose\n",
        "tulips.csv": "sl,sw,pl,pw,kind\n1,2,3,4,tulip\n1,2,3,5,tulip\n",
        "twice.csv": "a,label\n1,0\n2,1\n3,0\n",
        "three.txt": "x\ny\nx\n",
    }
    for name, content in write.items():
        (tmp_path / name).write_text(content)
    (tmp_path / "cut.csv.gz").write_bytes(gzip.compress(text.encode() * 30)[:-30])
    (tmp_path / "damaged.skops").write_bytes(iris_model.read_bytes()[:-200])
    np.save(tmp_path / "X.npy", np.ones((150, 4)))
    np.save(tmp_path / "wide.npy", np.ones((5, 9)))
    (tmp_path / "wide.svm").write_text("".join(f"{i % 2} {i + 1}:1 5000:2\n" for i in range(20)))
    (tmp_path / "nan.svm").write_text("1 1:2\n0 2:nan\n")
    return tmp_path


FIT = [
    ("absent.csv", 1, "there is no file absent.csv: check the path"),
    (".", 1, "is a folder"),
    ("empty.csv", 1, "empty.csv: it is empty"),
    ("header.csv", 1, "header but no rows"),
    ("text.csv", 1, "column 'sl' holds text ('tall' in line 2)"),
    ("text.csv --memory-limit 1GB", 1, "column 'sl' holds text ('tall' in line 2) in 1 and numbers in 149 cells"),
    ("text.csv --memory-limit 8kB", 1, "column 'sl' holds text ('tall' in line 2) in 1 and numbers in 149 cells"),
    ("infinite.csv", 1, "the value in row 1, column 'sl' is infinite"),
    ("iris.csv --test missing.csv --memory-limit 1GB", 1, "row 1, column 'sl' is missing"),
    ("huge.csv --holdout 0", 1, "huge.csv: the value in row 1, column 'sl' is too large to compute with (-1e+300):"),
    ("huge.csv --memory-limit 1GB", 1, "row 1, column 'sl' is too large to compute with (-1e+300): correct such cells"),
    ("huge.csv --memory-limit 8kB", 1, "row 1, column 'sl' is too large to compute with"),
    ("huge.csv --solver pegasos --memory-limit 8kB", 1, "row 1, column 'sl' is too large to compute with"),
    ("nan.svm", 1, "the value in row 2, column 2 is missing"),
    ("nan.svm", 1, "or leave the column out"),
    ("iris.csv --target species --target species", 2, "--target species is given twice, or dropped by --drop"),
    ("iris.csv --target species --drop species", 2, "--target species is given twice, or dropped by --drop"),
    ("iris.csv --class-weight foo", 2, "--class-weight foo cannot be used: it must be balanced"),
    ("iris.csv --seed -5", 2, "--seed -5 cannot be used: it must be a whole number of at least 0 and at most"),
    ("iris.csv --max-time 0", 2, "--max-time 0.0 cannot be used: it must be a number above 0"),
    ("one.csv", 1, "all 39 labels are 'setosa'"),
    ("row.csv", 1, "its only label is 'setosa'"),
    (
        "two.csv",
        1,
        "two.csv: --holdout 0.2 leaves rows of 'x' alone to fit, which needs at least two classes: use --hold",
    ),
    ("two.csv --memory-limit 1GB", 1, "two.csv: --holdout 0.2 leaves rows of '"),
    ("two.csv --labels absent.txt", 1, "there is no file absent.txt: check the path"),
    ("two.csv --labels absent.txt --memory-limit 1GB", 1, "there is no file absent.txt: check the path"),
    (
        "iris.csv --n-features 3",
        1,
        "it has 5 columns where 3 features, with or without labels after them, are expected",
    ),
    ("real.csv", 1, "column 'b' holds real numbers such as 0.5"),
    ("ragged.csv", 1, "line 152 has 2 cells where the first line has 5"),
    ("cut.csv.gz", 1, "ends too early"),
    ("iris.csv --target colour", 1, "no column 'colour'"),
    ("iris.csv --drop colour", 1, "no column 'colour'"),
    ("iris.csv --drop kind", 1, "column 'kind' would be its labels and is left out: name their column with target (--"),
    ("iris.csv --target sl --labels few.txt", 2, "give one of them"),
    ("X.npy", 1, "X.npy has no labels: name their column with --target or their file with --labels"),
    ("twice.csv --labels three.txt", 1, "leave it out with --drop label, or take it for the labels"),
    ("twice.csv --labels three.txt --memory-limit 1GB", 1, "leave it out with --drop label"),
    ("X.npy --labels few.txt", 1, "few.txt: it holds 2 labels and X.npy has 150 rows"),
    ("X.npy --labels absent.txt", 1, "there is no file absent.txt"),
    ("iris.csv --test absent.csv", 1, "there is no file absent.csv"),
    ("iris.csv --test narrow.csv", 1, "fitted on 'sl', which this file lacks"),
    ("iris.csv --test-labels few.txt", 2, "--test-labels belongs to a test file"),
    ("iris.csv --holdout 1", 2, "--holdout is a share"),
    ("iris.csv --holdout 0.999", 1, "leaves none to fit"),
    ("iris.csv --holdout 0.999 --memory-limit 1GB", 1, "leaves none to fit"),
    ("iris.csv --holdout much", 2, "see 'manyclass fit --help'"),
    ("iris.csv --solver adam", 2, "there is no solver 'adam': choose one of any, auto, quasi-newton"),
    ("wide.svm --scale thermometer", 2, "is for dense rows, and these are sparse"),
    ("iris.csv --scale big", 2, "there is no scaling 'big'"),
    ("iris.csv --format xls", 2, "there is no format 'xls'"),
    ("iris.csv --format parquet", 1, "not a whole Parquet file"),
    ("iris.csv --loss probit", 2, "There is no loss='probit'"),
    ("iris.csv --loss hinge", 2, "GLMClassifier does not fit loss='hinge'; use PegasosClassifier or SDCAClassifier"),
    ("iris.csv --loss hinge", 2, "Here: --solver pegasos, sdca"),
    ("iris.csv --solver sdca --loss sparsemax", 2, "SDCAClassifier does not fit loss='sparsemax'; use GLMClassifier"),
    ("iris.csv --solver calibrated --loss softmax", 2, "CalibratedLeastSquaresClassifier does not fit loss='softmax'"),
    ("iris.csv --solver stagewise --tol 0.1", 2, "--solver stagewise has no --tol: leave it out"),
    ("iris.csv --link softmax", 2, "No such option"),
    ("iris.csv --alpha -1", 2, "--alpha -1.0 cannot be used: it must be a number of at least 0"),
    ("iris.csv --alpha 1,5", 2, "--alpha 1,5 cannot be used: it must be a number of at least 0 or scale"),
    ("iris.csv --n-features 0", 2, "n-features"),
    ("iris.csv --output absent/m.skops", 1, "no folder absent to write m.skops to"),
    ("iris.csv --output .", 1, "is a folder"),
    ("iris.csv --output iris.skops", 1, "iris.skops exists already: give another name, or replace it with --force"),
    ("iris.csv --outptu m.skops", 2, "No such option"),
    ("--target kind", 2, "no file to fit was given"),
    ("--test iris.csv", 2, "no file to fit was given"),
]
PREDICT = [
    ("absent.skops iris.csv", 1, "there is no file absent.skops"),
    ("damaged.skops iris.csv", 1, "damaged.skops is not a model, or is damaged"),
    ("iris.csv iris.csv", 1, "iris.csv is not a model"),
    (". iris.csv", 1, "is a folder"),
    ("iris.skops", 2, "see 'manyclass predict --help'"),
    ("iris.skops absent.csv", 1, "there is no file absent.csv"),
    ("iris.skops wide.npy", 1, "it has 9 columns and 4 are expected"),
    ("iris.skops narrow.csv", 1, "fitted on 'sl', which this file lacks"),
    ("iris.skops text.csv", 1, "column 'sl' holds text"),
    ("iris.skops missing.csv", 1, "row 1, column 'sl' is missing"),
    ("iris.skops missing.csv --memory-limit 1kB", 1, "row 1, column 'sl' is missing"),
    ("iris.skops missing.csv", 1, "by scikit-learn's SimpleImputer or remove the rows\n"),
    ("iris.skops missing.csv --memory-limit 1kB", 1, "by scikit-learn's SimpleImputer or remove the rows\n"),
    (
        "iris.skops iris.csv --drop pl --drop sl",
        1,
        "fitted on 'sl', 'pl', which cannot be left out: correct drop (--drop",
    ),
    ("iris.skops iris.csv --drop 1 --memory-limit 1kB", 1, "the model was fitted on 'sw', which cannot be left out"),
    ("iris.skops cut.csv.gz", 1, "ends too early"),
    ("iris.skops iris.csv --output out.xls", 2, "should end in one of .csv"),
    ("iris.skops iris.csv --output absent/out.csv", 1, "no folder absent"),
    ("iris.skops iris.csv --output iris.csv", 1, "iris.csv exists already"),
]
EVALUATE = [
    ("iris.skops unlabelled.csv", 1, "unlabelled.csv has no labels"),
    ("iris.skops X.npy --labels few.txt", 1, "it holds 2 labels"),
    ("iris.skops iris.csv --target colour", 1, "iris.csv has no column 'colour' for the labels: correct --target"),
    ("iris.skops iris.csv --target sl", 1, "the model was fitted on 'sl', so the labels are in another column"),
    ("iris.skops two.csv", 1, "fitted on 'sl', 'sw', 'pl', 'pw', which this file lacks"),
    ("iris.skops other.csv", 1, "the model was fitted on, but 'tulip' and others: give labels like 'setosa'"),
    ("iris.skops tulips.csv", 1, "the model was fitted on, but 'tulip': give labels like 'setosa'"),
    ("damaged.skops iris.csv", 1, "damaged"),
    ("iris.skops iris.csv --drop sl", 1, "the model was fitted on 'sl', which cannot be left out"),
]


COMMANDS = [
    *((f"fit {line}", *rest) for line, *rest in FIT),
    *((f"predict {line}", *rest) for line, *rest in PREDICT),
    *((f"evaluate {line}", *rest) for line, *rest in EVALUATE),
]


@pytest.mark.parametrize("as_json", [False, True])
@pytest.mark.parametrize(("command", "code", "sentence"), COMMANDS)
def test_one_sentence(run, files, monkeypatch, command, code, sentence, as_json):
    monkeypatch.chdir(files)
    before = {path: path.read_bytes() for path in files.iterdir()}
    arguments = command.split() + ["--json"] * as_json
    if "--output" not in arguments and arguments[0] != "evaluate":
        arguments += ["--output", "out.csv"]
    result = run(*arguments)
    assert sentence in result.err
    assert result.code == code
    assert result.err.startswith("manyclass: ")
    assert result.err.count("\n") == 1
    assert "Traceback" not in result.err
    assert result.out == ""
    assert {path: path.read_bytes() for path in files.iterdir()} == before


def test_unknown_command(run):
    result = run("frobnicate")
    assert (result.code, result.out) == (2, "")
    assert result.err == "manyclass: No such command 'frobnicate'; see 'manyclass --help'\n"


def test_no_command_shows_the_help_and_nothing_else(run):
    result = run()
    assert "Usage" in result.out
    assert "fit" in result.out
    assert result.err == ""


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may write anywhere")
def test_a_folder_that_may_not_be_written(run, tmp_path, iris_csv):
    locked = tmp_path / "locked"
    locked.mkdir(mode=0o500)
    result = run("fit", iris_csv, "-o", locked / "m.skops")
    assert (result.code, "may not be written to" in result.err) == (1, True)


@pytest.mark.parametrize(
    ("error", "code", "sentence"),
    [
        (KeyboardInterrupt(), 130, "stopped by Ctrl-C; nothing was written"),
        (MemoryError(), 1, "not enough memory"),
        (PermissionError(13, "Permission denied", "x.csv"), 1, "x.csv may not be opened or written"),
        (OSError(28, "No space left on device"), 1, "no space left to write"),
        (ValueError("too\nmany\n\nparagraphs"), 1, "too many\n"),
        (RuntimeError("boom"), 1, "unexpected RuntimeError (boom): run again with --debug"),
    ],
)
def test_errors_while_fitting(run, tmp_path, iris_csv, monkeypatch, error, code, sentence):
    def fail(*_args, **_options):
        raise error

    monkeypatch.setattr("manyclass.GLMClassifier.fit", fail)
    result = run("fit", "--solver", "auto", iris_csv, "-o", tmp_path / "m.skops")
    assert result.code == code
    assert sentence in result.err
    assert result.err.count("\n") == 1
    assert not (tmp_path / "m.skops").exists()
    with pytest.raises(type(error)):
        run("fit", "--solver", "auto", iris_csv, "--debug")
