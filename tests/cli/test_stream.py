"""``manyclass fit --solver pegasos``, with and without ``--chunk-rows``."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import dump_svmlight_file, load_digits

from manyclass.cli.inputs import DataOptions, check_finite
from manyclass.cli.inputs import load as load_rows
from manyclass.cli.modelfile import Schema, load
from manyclass.cli.stream import chunks
from manyclass.data.validation import check_weights

STREAM = ("--solver", "pegasos", "--chunk-rows", 100)


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X / 16, y


@pytest.fixture
def files(tmp_path, digits):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    X, y = digits
    dump_svmlight_file(X, y, str(tmp_path / "digits.svm"), zero_based=False)
    columns = {f"x{j}": X[:, j] for j in range(64)} | {"kind": np.array(list("abcdefghij"))[y]}
    pq.write_table(pa.table(columns), tmp_path / "digits.parquet", row_group_size=333)
    np.save(tmp_path / "X.npy", X.astype(np.float32))
    np.save(tmp_path / "y.npy", y)
    return tmp_path


def options(name):
    return {"digits.svm": (), "digits.parquet": ("--target", "kind"), "X.npy": ("--labels", "y.npy")}[name]


@pytest.mark.parametrize("name", ["digits.svm", "digits.parquet", "X.npy"])
def test_files_are_fitted_in_chunks(run_json, files, name, monkeypatch):
    monkeypatch.chdir(files)
    report = run_json("fit", name, *options(name), *STREAM, "--alpha", 1e-3, "--max-iter", 3, "-o", "m.skops")
    assert report["n_rows"] == 1697 and report["n_features"] == 64 and report["n_classes"] == 10
    assert report["evaluated_on"] == {"rows": "held out", "n_rows": 100}
    assert report["error"] < 0.1
    assert report["n_passes"] == pytest.approx(3)
    assert report["loss"] == "softmax"
    labels = ("--labels", "y.npy") if name == "X.npy" else ()
    assert run_json("evaluate", "m.skops", name, *labels)["error"] < 0.1


def test_chunks_give_the_model_of_partial_fit(run_json, files, digits):
    """Chunk for chunk: nothing but reading happens in between."""
    from manyclass import PegasosClassifier

    X, y = digits
    run_json("fit", files / "digits.svm", *STREAM, "--holdout", 0, "--scale", "none", "-o", files / "m.skops")
    model = PegasosClassifier(random_state=0)
    for start in range(0, len(y), 100):
        rows = slice(start, start + 100)
        model.partial_fit(sparse.csr_array(X[rows]), y[rows], np.arange(10))
    np.testing.assert_allclose(load(files / "m.skops").estimator.coef_, model.coef_, rtol=1e-10, atol=1e-12)


def test_chunks_are_the_file(files, digits):
    X, y = digits
    for name, given in (
        ("digits.svm", DataOptions()),
        ("digits.parquet", DataOptions(target=("kind",))),
        ("X.npy", DataOptions(labels=str(files / "y.npy"))),
    ):
        found = list(chunks(files / name, load_rows(files / name, given, stays=True), 250))
        assert [start for _, start, _ in found] == list(range(0, len(y), 250))
        rows = [chunk.X.toarray() if sparse.issparse(chunk.X) else chunk.X for _, _, chunk in found]
        np.testing.assert_allclose(np.concatenate(rows), X, atol=1e-6)
        labels = np.concatenate([chunk.y for _, _, chunk in found])
        np.testing.assert_array_equal(labels, y if name != "digits.parquet" else np.array(list("abcdefghij"))[y])


def test_the_whole_file_is_known_before_its_chunks(tmp_path):
    """Labels, width and numbering that no single chunk shows."""

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


@pytest.mark.parametrize("how", [STREAM[2:], ("--memory-limit", "1GB"), ()], ids=lambda how: "".join(map(str, how)))
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
    report = run_json("fit", tmp_path / "m.svm", "--solver", "pegasos", "--chunk-rows", 300, "--max-iter", 20)
    assert report["multilabel"] and report["hamming_loss"] < 0.15


@pytest.mark.parametrize("while_fitting", [False, True])
def test_ctrl_c_keeps_the_chunks_before(run, files, digits, monkeypatch, while_fitting):
    from manyclass import PegasosClassifier

    def interrupted(function, after):
        calls = iter(range(10))

        def wrapper(*given, **options):
            if next(calls) == after:
                raise KeyboardInterrupt
            return function(*given, **options)

        return wrapper

    X, y = digits
    expected = PegasosClassifier().partial_fit(sparse.csr_array(X[:100]), y[:100], np.arange(10))
    # Both are called once for a chunk.
    if while_fitting:
        monkeypatch.setattr("manyclass.estimators.pegasos.check_weights", interrupted(check_weights, 1))
    else:
        monkeypatch.setattr("manyclass.cli.stream.check_finite", interrupted(check_finite, 1))
    result = run("fit", files / "digits.svm", *STREAM, "--holdout", 0, "-o", files / "m.skops")
    assert (result.code, result.out) == (130, "")
    assert "stopped by Ctrl-C after 0.06 passes over the rows; the model so far was saved to" in result.err
    np.testing.assert_allclose(load(files / "m.skops").estimator.coef_, expected.coef_, rtol=1e-10, atol=1e-12)


def test_time_limits_hold(run_json, files):
    report = run_json("fit", files / "digits.svm", *STREAM, "--max-iter", 10**6, "--max-time", 0.5)
    assert 0 < report["n_passes"] < 10**5


def test_without_chunks_the_whole_file_is_fitted(run_json, run_ok, iris_csv):
    report = run_json("fit", iris_csv, "--solver", "pegasos", "--loss", "hinge", "--alpha", 1e-2)
    assert report["loss"] == "hinge" and report["error"] < 0.3 and report["log_loss"] is None
    assert "pegasos, hinge loss, alpha 0.01" in run_ok(
        "fit", iris_csv, "--solver", "pegasos", "--loss", "hinge", "--alpha", 1e-2
    )


@pytest.mark.parametrize(
    "arguments, code, sentence",
    [
        (("fit", "digits.svm", "--chunk-rows", 9), 2, "--chunk-rows needs a solver that learns from one chunk"),
        (("fit", "--solver", "pegasos", "--chunk-rows", 9), 2, "name the file after 'fit'"),
        (("fit", "digits.svm", *STREAM, "--scale", "standard"), 2, "--scale standard needs all rows at once"),
        (("fit", "digits.svm", *STREAM, "--class-weight", "balanced"), 1, "needs all labels at once"),
        (("fit", "digits.svm", *STREAM, "--loss", "squared"), 2, "PegasosClassifier does not fit loss='squared'"),
        (("fit", "one.svm", *STREAM), 1, "at least two classes"),
        (("fit", "nan.svm", *STREAM, "--chunk-rows", 2), 1, "row 3, column 1 is missing"),
        (("fit", "X.npy", *STREAM), 1, "has no labels"),
    ],
)
def test_what_cannot_be_streamed_is_refused(run, files, monkeypatch, arguments, code, sentence):
    monkeypatch.chdir(files)
    (files / "one.svm").write_text("1 1:2\n1 2:1\n")
    (files / "nan.svm").write_text("1 1:2\n0 2:1\n1 1:nan\n")
    result = run(*arguments)
    assert result.code == code
    assert sentence in result.err and result.out == ""
