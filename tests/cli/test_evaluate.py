"""``manyclass evaluate``: its figures are scikit-learn's."""

import numpy as np
import pytest
from sklearn.metrics import classification_report, f1_score, hamming_loss, log_loss, zero_one_loss

from manyclass.cli.modelfile import load


@pytest.mark.parametrize("block", [4 * 7, 1 << 22])
def test_figures(run_json, iris_model, iris_csv, iris, monkeypatch, block):
    monkeypatch.setattr("manyclass.cli.evaluate._BLOCK", block)
    X, y = iris
    estimator = load(iris_model).estimator
    report = run_json("evaluate", iris_model, iris_csv)
    predicted = estimator.predict(X)
    assert report["error"] == pytest.approx(zero_one_loss(y, predicted))
    assert report["log_loss"] == pytest.approx(log_loss(y, estimator.predict_proba(X)), rel=1e-6)
    expected = classification_report(y, predicted, output_dict=True)
    for row in report["classes"]:
        reference = expected[row["label"]]
        assert row["precision"] == pytest.approx(reference["precision"])
        assert row["recall"] == pytest.approx(reference["recall"])
        assert row["f1"] == pytest.approx(reference["f1-score"])
        assert row["support"] == reference["support"]


def test_table(run_ok, iris_model, iris_csv):
    text = run_ok("evaluate", iris_model, iris_csv)
    for name in ("error", "log loss", "precision", "recall", "F1", "versi,color"):
        assert name in text


def test_labels_never_seen_are_errors_and_said(run_ok, run_json, iris_model, iris, write_csv, tmp_path):
    X, y = iris
    path = tmp_path / "new.csv"
    write_csv(path, X, np.where(np.arange(150) < 10, "[tulip]", y))
    report = run_json("evaluate", iris_model, path)
    estimator = load(iris_model).estimator
    assert report["error"] == pytest.approx((10 + (estimator.predict(X[10:]) != y[10:]).sum()) / 150)
    assert report["log_loss"] == pytest.approx(log_loss(y[10:], estimator.predict_proba(X[10:])), rel=1e-6)
    assert "10 rows have labels that the model was not fitted on" in report["notes"][0]
    assert "[tulip]" in run_ok("evaluate", iris_model, path)


def test_one_class_in_the_file_is_enough(run_json, iris_model, iris, write_csv, tmp_path):
    X, y = iris
    write_csv(tmp_path / "new.csv", X[:5], y[:5])
    assert run_json("evaluate", iris_model, tmp_path / "new.csv")["n_rows"] == 5


@pytest.mark.parametrize("how", [(), ("--memory-limit", "1GB")], ids=["whole", "in chunks"])
def test_labels_of_another_kind_are_refused(run, run_ok, tmp_path, iris, write_csv, how):
    """Names where numbers were fitted to, and the other way round; a file of both may be meant."""
    X, y = iris
    numbers = np.unique(y, return_inverse=True)[1]
    for name, labels in (("numbers", numbers), ("names", y), ("some", np.where(numbers, numbers.astype(str), "rose"))):
        write_csv(tmp_path / f"{name}.csv", X, labels)
        run_ok("fit", "--solver", "auto", tmp_path / f"{name}.csv", "-o", tmp_path / f"{name}.skops")
    for model, data, sentence in (
        ("numbers", "names", "names.csv has labels that are text ('setosa') and the model was fitted on numbers (0)"),
        ("numbers", "some", "some.csv has labels that are text ('rose') and the model was fitted on numbers (0)"),
        ("names", "numbers", "numbers.csv has labels that are numbers (0) and the model was fitted on text ('setosa')"),
    ):
        result = run("evaluate", tmp_path / f"{model}.skops", tmp_path / f"{data}.csv", *how)
        assert (result.code, result.out) == (1, "")
        assert f"{sentence}: give labels like those of the training data\n" in result.err
    assert "[0]" not in run_ok("evaluate", tmp_path / "some.skops", tmp_path / "numbers.csv", *how)
    result = run("fit", "--solver", "auto", tmp_path / "numbers.csv", "--test", tmp_path / "names.csv", *how)
    assert result.code == 1 and "names.csv has labels that are text ('setosa')" in result.err


def test_text_labels_that_look_like_numbers(run_ok, run_json, tmp_path, iris, write_csv):
    X, y = iris
    mixed = np.where(y == "setosa", "1", "b")
    write_csv(tmp_path / "train.csv", X, mixed)
    write_csv(tmp_path / "test.csv", X[:50], mixed[:50])
    run_ok("fit", "--solver", "auto", tmp_path / "train.csv", "-o", tmp_path / "m.skops")
    assert run_json("evaluate", tmp_path / "m.skops", tmp_path / "test.csv")["error"] == 0


def test_many_classes_show_the_worst(run_ok, run_json, tmp_path):
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(60), 4)
    np.savez(tmp_path / "rows.npz", X=np.eye(60)[y] + 0.3 * rng.standard_normal((240, 60)), y=y)
    run_ok("fit", "--solver", "auto", tmp_path / "rows.npz", "-o", tmp_path / "m.skops", "--holdout", 0)
    text = run_ok("evaluate", tmp_path / "m.skops", tmp_path / "rows.npz")
    assert "the 20 of 60 with the lowest F1" in text
    assert len(run_json("evaluate", tmp_path / "m.skops", tmp_path / "rows.npz")["classes"]) == 60


def test_a_column_that_a_file_without_names_cannot_have_is_refused(run, run_ok, iris, tmp_path):
    X, y = iris
    np.savez(tmp_path / "rows.npz", X=X, y=y)
    run_ok("fit", "--solver", "auto", tmp_path / "rows.npz", "-o", tmp_path / "m.skops", "--holdout", 0)
    refused = run("evaluate", tmp_path / "m.skops", tmp_path / "rows.npz", "--target", "nope")
    assert refused.code == 1 and "has no column 'nope' for the labels: correct --target" in refused.err


def test_the_worst_classes_are_shown_first(run_ok, tmp_path):
    y = np.repeat(np.arange(60), 4)
    train, test = np.eye(60)[y], np.eye(60)[np.where(y == 7, 8, y)]
    train[y == 7] = 0.0
    for name, X in (("train", train), ("test", test)):
        np.savez(tmp_path / f"{name}.npz", X=X, y=y)
    run_ok("fit", "--solver", "auto", tmp_path / "train.npz", "-o", tmp_path / "m.skops", "--holdout", 0)
    lines = [line.split() for line in run_ok("evaluate", tmp_path / "m.skops", tmp_path / "test.npz").splitlines()]
    shown = [line for line in lines if len(line) == 5 and line[-1] == "4"]
    assert len(shown) == 20 and shown[0] == ["7", "0.000", "0.000", "0.000", "4"]
    assert [line[0] for line in shown[:2]] == ["7", "8"]  # for which the rows of 7 are taken


def test_labels_never_seen_come_after_those_of_the_model(run_json, iris_model, iris_csv, tmp_path):
    (tmp_path / "new.csv").write_text(iris_csv.read_text().replace("setosa", "aster"))
    classes = run_json("evaluate", iris_model, tmp_path / "new.csv")["classes"]
    assert [one["label"] for one in classes] == ["setosa", "versi,color", "virginica", "aster"]
    assert [one["support"] for one in classes] == [0, 50, 50, 50]


def test_several_labels(run_ok, run_json, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((100, 4))
    Y = (X[:, :3] + rng.standard_normal((100, 3)) > 0).astype(int)
    np.savez(tmp_path / "rows.npz", X=X, y=Y)
    run_ok("fit", "--solver", "auto", tmp_path / "rows.npz", "-o", tmp_path / "m.skops", "--holdout", 0)
    estimator = load(tmp_path / "m.skops").estimator
    predicted, proba = estimator.predict(X), estimator.predict_proba(X)
    report = run_json("evaluate", tmp_path / "m.skops", tmp_path / "rows.npz")
    assert report["hamming_loss"] == pytest.approx(hamming_loss(Y, predicted))
    assert report["subset_error"] == pytest.approx(zero_one_loss(Y, predicted))
    assert report["log_loss"] == pytest.approx(np.mean([log_loss(Y[:, j], proba[:, j]) for j in range(3)]), rel=1e-6)
    for average in ("micro", "macro"):
        assert report[f"{average}_f1"] == pytest.approx(f1_score(Y, predicted, average=average))


def test_a_loss_without_probabilities_has_no_log_loss(run_ok, run_json, tmp_path, iris_csv):
    run_ok("fit", iris_csv, "--loss", "squared", "-o", tmp_path / "m.skops")
    report = run_json("evaluate", tmp_path / "m.skops", iris_csv)
    estimator = load(tmp_path / "m.skops").estimator
    assert (report["log_loss"] is None) == (not hasattr(estimator, "predict_proba"))


def test_page(run, run_ok, run_json, tmp_path, iris, write_csv):
    X, y = iris
    train, test, model, page = (tmp_path / name for name in ("train.csv", "test.csv", "m.skops", "report.html"))
    write_csv(train, X, np.where(y == "setosa", "<script>", y))
    write_csv(test, X, np.where(y == "setosa", "<script>", np.where(np.arange(150) == 149, "<tulip>", y)))
    run_ok("fit", train, "--solver", "glm-cv", "--leave-one-out", "--scale", "standard", "--holdout", 0, "-o", model)
    report = run_json("evaluate", model, test, "--html", page)
    assert report["html"] == str(page)
    shown = page.read_text()
    for words in ("&lt;script&gt;", "&lt;tulip&gt;", "Confusion between classes", "Reliability", "Prediction sets"):
        assert words in shown
    assert "<script" not in shown and "<tulip" not in shown
    result = run("evaluate", model, test, "--html", page)
    assert result.code == 1 and "replace it with --force" in result.err


def test_what_the_page_shows_is_in_json(run_ok, run_json, tmp_path, iris, write_csv):
    X, y = iris
    train, model = tmp_path / "train.csv", tmp_path / "m.skops"
    write_csv(train, X, y)
    run_ok("fit", train, "--solver", "glm-cv", "--leave-one-out", "--scale", "standard", "--holdout", 0, "-o", model)
    report, fitted = run_json("evaluate", model, train), load(model)
    predicted, sets = fitted.estimator.predict(X), fitted.predict_set(X, 0.9)
    wrong = {(one["label"], one["taken_for"]): one["n_rows"] for one in report["confused"]}
    assert sum(wrong.values()) == (predicted != y).sum()
    assert all(n == ((y == true) & (predicted == told)).sum() for (true, told), n in wrong.items())
    found = next(one for one in report["sets"] if one["wanted"] == 0.9)
    assert found["mean_size"] == pytest.approx(sets.sum(axis=1).mean())
    assert found["covered"] == pytest.approx(sets[np.arange(150), np.unique(y, return_inverse=True)[1]].mean())
    assert sum(one["n_predictions"] for one in report["reliability"]) == 150
    true = sum(one["true"] * one["n_predictions"] for one in report["reliability"])
    assert true == pytest.approx((predicted == y).sum())


def test_page_of_several_labels_and_of_no_probabilities(run_ok, run_json, tmp_path, iris_csv):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 4))
    Y = (X[:, :3] + rng.standard_normal((200, 3)) > 0).astype(int)
    rows, model, page = tmp_path / "rows.npz", tmp_path / "m.skops", tmp_path / "report.html"
    np.savez(rows, X=X, y=Y)
    run_ok("fit", rows, "--solver", "glm-cv", "--leave-one-out", "-o", model, "--holdout", 0)
    report = run_json("evaluate", model, rows, "--html", page)
    covered = {one["wanted"]: one["covered"] for one in report["sets"]}
    assert covered[0.9] == pytest.approx(0.9, abs=0.05)  # of all labels of a row together
    assert "Errors by label" in page.read_text() and "Confusion" not in page.read_text()
    run_ok("fit", iris_csv, "--loss", "squared", "-o", tmp_path / "squared.skops")
    report = run_json("evaluate", tmp_path / "squared.skops", iris_csv, "--html", page, "--force")
    assert report["reliability"] == report["sets"] == [] and "Reliability" not in page.read_text()


@pytest.mark.parametrize("header", ["", "label,p,q,r\n"])
def test_labels_may_be_in_a_column_of_a_number(run_json, tmp_path, header):
    rng = np.random.default_rng(0)
    lines = [",".join(["ab"[int(x[0] > 0)], *map(str, x)]) for x in rng.standard_normal((80, 3)).round(3)]
    table, model = tmp_path / "t.csv", tmp_path / "m.skops"
    table.write_text(header + "\n".join(lines) + "\n")
    fitted = run_json("fit", table, "--target", "0", "--solver", "auto", "--test", table, "-o", model)
    judged = run_json("evaluate", model, table, "--target", "0")
    assert judged["error"] == fitted["error"] < 0.1


def test_sets_are_counted_by_their_size_and_hold_no_label_that_the_model_never_saw(run_json, iris, iris_csv, tmp_path):
    model = tmp_path / "m.skops"
    run_json("fit", iris_csv, "--solver", "glm-cv", "--leave-one-out", "--holdout", 0, "-o", model)
    (tmp_path / "new.csv").write_text(iris_csv.read_text().replace("setosa", "tulip"))
    known, new = (run_json("evaluate", model, path)["sets"] for path in (iris_csv, tmp_path / "new.csv"))
    for one, other in zip(known, new, strict=True):
        sets = load(model).predict_set(iris[0], one["wanted"])
        sizes, own = sets.sum(axis=1), sets[np.arange(150), np.unique(iris[1], return_inverse=True)[1]]
        for found in (one, other):
            assert (found["empty"], found["single"]) == pytest.approx((np.mean(sizes == 0), np.mean(sizes == 1)))
        assert one["covered"] == pytest.approx(own.mean())
        assert other["covered"] == pytest.approx((own & (iris[1] != "setosa")).mean())
    assert any(one["empty"] != one["single"] for one in known)


def test_labels_of_the_model_that_were_not_named_are_not_taken_for_absent(run, run_ok, tmp_path, rng):
    X = rng.standard_normal((90, 3))
    rows = [",".join([*map(str, x), *map(str, (x > 0).astype(int))]) for x in X.round(3)]
    path = tmp_path / "several.csv"
    path.write_text("\n".join(["a,b,c,l0,l1,l2", *rows]) + "\n")
    run_ok("fit", path, "--labels", 3, "--solver", "newton", "--output", tmp_path / "several.skops")
    result = run("evaluate", tmp_path / "several.skops", path, "--target", "l0")
    assert result.code == 1 and "has no column for 'l1', 'l2', which the model has labels of: name them" in result.err
    assert "Hamming loss" in run_ok("evaluate", tmp_path / "several.skops", path)


def test_text_of_which_no_label_is_known_is_refused(run, run_ok, tmp_path):
    for name, labels in (("lower", ("true", "false")), ("title", ("True", "False"))):
        rows = [f"{number},{labels[number % 2]}" for number in range(40)]
        (tmp_path / f"{name}.csv").write_text("\n".join(["a,label", *rows]) + "\n")
    run_ok("fit", tmp_path / "lower.csv", "--solver", "newton", "--output", tmp_path / "m.skops")
    result = run("evaluate", tmp_path / "m.skops", tmp_path / "title.csv")
    assert result.code == 1 and "has none of the labels that the model was fitted on, but 'True'" in result.err


def test_names_do_not_turn_the_figures_beside_them(run_ok, run_json, write_csv, iris, tmp_path):
    X, y = iris
    y = np.where(y == "setosa", "safe\u202egnp.exe", y)
    rows, model, page = (tmp_path / name for name in ("rows.csv", "m.skops", "page.html"))
    write_csv(rows, X, y)
    run_ok("fit", rows, "--solver", "auto", "--holdout", 0, "-o", model)
    for text in (run_ok("evaluate", model, rows, "--html", page), page.read_text()):
        assert "\u202e" not in text and r"safe\u202egnp.exe" in text
    assert "safe\u202egnp.exe" in {row["label"] for row in run_json("evaluate", model, rows)["classes"]}


def test_one_row_is_called_a_row(run_ok, write_csv, iris_model, iris, tmp_path):
    X, y = iris
    write_csv(tmp_path / "one.csv", X[:1], y[:1])
    assert "one.csv: 1 row\n" in run_ok("evaluate", iris_model, tmp_path / "one.csv")
    assert "labels of 1 row of" in run_ok("predict", iris_model, tmp_path / "one.csv", "-o", tmp_path / "out.csv")
