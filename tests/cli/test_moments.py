"""``manyclass summarize`` and ``manyclass merge``: parts of a file make the model of the whole."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import dump_svmlight_file

from manyclass import ClassMoments, GLMClassifier, GLMClassifierCV
from manyclass.cli.modelfile import load


@pytest.fixture
def parts(tmp_path, iris, write_csv):
    """One class in the first, the second with its columns in another order, the third in Parquet."""
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    X, y = iris
    write_csv(tmp_path / "a.csv", X[:40], y[:40])
    write_csv(tmp_path / "b.csv", X[40:100][:, [2, 0, 1, 3]], y[40:100], ("pl", "sl", "sw", "pw", "kind"))
    columns = dict(zip(("sl", "sw", "pl", "pw"), X[100:].T, strict=True)) | {"kind": y[100:]}
    pq.write_table(pa.table(columns), tmp_path / "c.parquet")
    return [tmp_path / name for name in ("a.csv", "b.csv", "c.parquet")]


@pytest.fixture
def moments(parts, run_json):
    for number, path in enumerate(parts):
        limit = ("--memory-limit", "8kB") if number else ()
        report = run_json("summarize", path, "--target", "kind", *limit, "-o", path.with_suffix(".moments"))
        assert report["n_rows"] == (40, 60, 50)[number]
    return [path.with_suffix(".moments") for path in parts]


@pytest.mark.parametrize("alpha", [None, "auto", 0.01])
def test_parts_make_the_model_of_the_whole(tmp_path, iris, moments, run_json, iris_csv, alpha):
    X, y = iris
    options = () if alpha is None else ("--alpha", alpha)
    report = run_json("merge", *moments, *options, "-o", tmp_path / "m.skops")
    assert (report["n_rows"], report["n_features"], report["n_classes"]) == (150, 4, 3)
    whole = GLMClassifierCV(33, loss="squared", cv="gcv")
    whole = (GLMClassifier(alpha, loss="squared", tol=1e-12) if alpha == 0.01 else whole).fit(X, y)
    assert report["alpha"] == pytest.approx(alpha if alpha == 0.01 else whole.alpha_)
    found = load(tmp_path / "m.skops").estimator
    np.testing.assert_allclose(found.coef_, whole.coef_, atol=1e-9)
    np.testing.assert_allclose(found.intercept_, whole.intercept_, atol=1e-9)
    assert run_json("evaluate", tmp_path / "m.skops", iris_csv)["error"] == pytest.approx(1 - whole.score(X, y))


def test_joined_moments_are_joined_again(tmp_path, moments, run_ok, run_json):
    run_ok("merge", *moments[:2], "-o", tmp_path / "ab.moments")
    run_json("merge", tmp_path / "ab.moments", moments[2], "-o", tmp_path / "one.skops")
    run_json("merge", *moments, "-o", tmp_path / "two.skops")
    one, two = (load(tmp_path / name).estimator.coef_ for name in ("one.skops", "two.skops"))
    np.testing.assert_allclose(one, two, atol=1e-10)
    assert "3 classes" in run_ok("merge", *moments, "-o", tmp_path / "three.skops")


def test_labels_that_are_numbers_in_one_file_alone(tmp_path, iris, write_csv, run_json):
    X, _ = iris
    for name, labels in (("a", ["10", "9"]), ("b", ["x", "10"])):
        write_csv(tmp_path / f"{name}.csv", X[:20], labels * 10)
        run_json("summarize", tmp_path / f"{name}.csv", "-o", tmp_path / f"{name}.moments")
    for order in ("ab", "ba"):
        files = [tmp_path / f"{name}.moments" for name in order]
        run_json("merge", *files, "-o", tmp_path / "c.moments", "--force")
        found = ClassMoments.load(tmp_path / "c.moments")
        assert dict(zip(found.classes.tolist(), found.counts.tolist(), strict=True)) == {"10": 20, "9": 10, "x": 10}


def test_several_labels_are_joined_by_name(tmp_path, run_json):
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((60, 3)), rng.integers(0, 2, (60, 3))
    for name, rows, labels in (("a", slice(0, 30), [0, 1]), ("b", slice(30, 60), [2, 1])):
        lines = [",".join(["f", "g", "h", *(f"l{label}" for label in labels)])]
        lines += [",".join(map(str, row)) for row in np.hstack([X[rows], Y[rows][:, labels]]).tolist()]
        (tmp_path / f"{name}.csv").write_text("\n".join(lines))
        run_json("summarize", tmp_path / f"{name}.csv", "--labels", 2, "-o", tmp_path / f"{name}.moments")
    run_json("merge", tmp_path / "a.moments", tmp_path / "b.moments", "--alpha", 0.1, "-o", tmp_path / "m.skops")
    model = load(tmp_path / "m.skops")
    assert model.schema.label_names == ("l0", "l1", "l2")
    Y[:30, 2] = Y[30:, 0] = 0
    whole = GLMClassifier(0.1, loss="squared", tol=1e-12).fit(X, Y)
    np.testing.assert_allclose(model.estimator.coef_, whole.coef_, atol=1e-9)


def test_what_cannot_be_joined_is_refused(tmp_path, iris, parts, moments, write_csv, run, run_json):
    X, y = iris
    write_csv(tmp_path / "other.csv", X, y, ("sl", "sw", "pl", "xx", "kind"))
    for name, matrix, zero in (("one", X, False), ("zero", X, True), ("narrow", X[:, :3], False)):
        dump_svmlight_file(sparse.csr_array(matrix), np.arange(150) % 2, str(tmp_path / f"{name}.svm"), zero_based=zero)
    for name in ("other.csv", "one.svm", "zero.svm", "narrow.svm"):
        path = tmp_path / name
        run_json("summarize", path, "-o", path.with_suffix(".moments"))
    (tmp_path / "bare.csv").write_text("".join(path.read_text().partition("\n")[2] for path in parts[:1]))
    run_json("summarize", tmp_path / "bare.csv", "-o", tmp_path / "bare.moments")
    (tmp_path / "bad.moments").write_bytes(moments[0].read_bytes()[:-4])
    old = (tmp_path / "one.moments").read_bytes()
    model, one, zero = (tmp_path / name for name in ("m.skops", "one.moments", "zero.moments"))
    for arguments, code, sentence in (
        (("merge", *moments, tmp_path / "other.moments", "-o", model), 1, "only one has the column 'pw'"),
        (("merge", *moments, tmp_path / "bare.moments", "-o", model), 1, "only one has names for its features"),
        (("merge", tmp_path / "bare.moments", moments[0], "-o", model), 1, "only one has names for its features"),
        (("merge", one, zero, "-o", model), 1, "count features"),
        (("merge", one, tmp_path / "narrow.moments", "-o", model), 1, "--n-features"),
        (("merge", tmp_path / "bad.moments", "-o", model), 1, "is damaged"),
        (("merge", tmp_path / "one.svm", "-o", model), 1, "not a safetensors file"),
        (("merge", tmp_path / "nowhere.moments", "-o", model), 1, "there is no file"),
        (("merge", moments[0], "-o", model), 1, "the class 'setosa': merge moments of others, too"),
        (("merge", *moments, "-o", tmp_path / "one.moments"), 1, "--force"),
        (("merge", *moments, "-o", tmp_path / "m.txt"), 2, "should end in"),
        (("merge", *moments, "--alpha", "-1", "-o", model), 2, "--alpha is a number"),
        (("merge", *moments, "--alpha", "1", "-o", tmp_path / "m.moments"), 2, "belongs to a model"),
        (("summarize", tmp_path / "one.svm", "-o", model), 2, "should end in"),
        (("summarize", tmp_path / "one.svm", "-o", tmp_path / "one.moments"), 1, "--force"),
    ):
        result = run(*arguments)
        assert result.code == code and sentence in result.err and result.err.count("\n") == 1, result.err
        assert not (tmp_path / "m.skops").exists() and (tmp_path / "one.moments").read_bytes() == old


def test_a_merged_model_names_its_target_as_the_first_file_that_does(
    tmp_path, iris, iris_csv, write_csv, run_ok, run_json
):
    X, y = iris
    model = tmp_path / "m.skops"
    (tmp_path / "other.csv").write_text(iris_csv.read_text().replace("kind", "class"))
    write_csv(tmp_path / "bare.csv", X[:, :3], X[:, 3], ("sl", "sw", "pl", "pw"))
    np.save(tmp_path / "y.npy", y)
    for name in ("iris", "other", "bare"):
        labels = ("--labels", tmp_path / "y.npy") if name == "bare" else ()
        run_json("summarize", tmp_path / f"{name}.csv", *labels, "-o", tmp_path / f"{name}.moments")
    for names, target in (("iris", "kind"), ("iris other", "kind"), ("other iris", "class"), ("bare iris", "kind")):
        run_json("merge", *(tmp_path / f"{name}.moments" for name in names.split()), "--force", "-o", model)
        assert load(model).schema.target_name == target
        assert run_ok("predict", model, iris_csv).startswith(f"{target}\n")


def test_a_file_that_is_given_twice_would_count_twice(moments, run, tmp_path):
    (tmp_path / "link.moments").symlink_to(moments[0])
    for again in (moments[0], tmp_path / "link.moments"):
        result = run("merge", *moments, again, "-o", tmp_path / "m.skops")
        assert (result.code, result.out) == (2, "") and not (tmp_path / "m.skops").exists()
        assert result.err == f"manyclass: {again} is given twice, and its rows would count twice: give it once\n"
