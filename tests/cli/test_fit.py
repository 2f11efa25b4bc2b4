"""``manyclass fit``: what it reads, says, saves, and leaves behind."""

import gzip
import json
import re
import struct
from itertools import product

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import dump_svmlight_file, load_digits

import manyclass
from manyclass.cli.estimators import ESTIMATORS
from manyclass.cli.modelfile import load

OTHER_OBJECTIVES = ("calibrated", "stagewise", "sdca", "pegasos", "bound")
SINGLE = [name for name in ESTIMATORS if name != "any"]


def test_without_a_file_it_fits_the_digits(run_ok):
    text = run_ok("fit", "--solver", "auto")
    assert "scikit-learn's digits: 1,437 rows × 64 columns" in text
    assert "10 classes" in text
    for name in ("error", "log loss", "duality gap", "s to fit", "saved"):
        assert name in text


def test_json_is_one_object_and_agrees_with_the_model(run_json, tmp_path):
    report = run_json("fit", "--solver", "auto", "--output", tmp_path / "digits.skops")
    model = load(tmp_path / "digits.skops")
    assert (report["n_rows"], report["n_features"], report["n_classes"]) == (1437, 64, 10)
    assert report["error"] < 0.06
    assert report["converged"] is True
    assert report["duality_gap"] == model.estimator.duality_gap_ <= 1e-3
    assert report["status"] == str(model.estimator.status_)
    assert (report["n_iter"], report["n_passes"]) == (model.estimator.n_iter_, model.estimator.n_passes_)
    assert report["objective"] == model.estimator.history_[-1].objective
    assert report["evaluated_on"] == {"rows": "held out", "n_rows": 360}


def test_the_same_seed_gives_the_same_model(run_json):
    def figures(seed):
        report = run_json("fit", "--solver", "auto", "--seed", seed)
        return report["objective"], report["log_loss"]

    first = figures(3)
    assert figures(3) == first != figures(4)


@pytest.mark.parametrize("solver", [name for name in SINGLE if name not in (*OTHER_OBJECTIVES, "glm-cv")])
def test_solvers_reach_the_same_objective(run_json, iris_csv, solver):
    report = run_json("fit", iris_csv, "--solver", solver, "--tol", 1e-5, "--max-iter", 20_000, "--alpha", 1e-2)
    reference = run_json("fit", iris_csv, "--tol", 1e-9, "--max-iter", 20_000, "--alpha", 1e-2)
    assert report["objective"] == pytest.approx(reference["objective"], abs=2e-5)
    assert report["parameters"]["solver"] == solver


@pytest.mark.parametrize("solver", OTHER_OBJECTIVES)
def test_other_estimators_fit_and_are_loaded_again(run_json, iris_csv, solver, tmp_path):
    model = tmp_path / "model.skops"
    report = run_json("fit", iris_csv, "--solver", solver, "--alpha", 1e-2, "--output", model)
    assert report["solver"] == solver
    assert report["error"] < 0.3
    assert run_json("evaluate", model, iris_csv)["error"] < 0.3


def test_a_penalty_that_is_chosen_is_said(run_json, run_ok, iris_csv):
    report = run_json("fit", iris_csv, "--solver", "glm-cv")
    assert report["alpha"] > 0 and report["error"] < 0.2
    assert "alpha" in run_ok("fit", iris_csv, "--solver", "glm-cv")


def test_every_solver_has_a_name_here():
    from manyclass.solvers import SOLVERS

    assert {name for name, (_, fixed) in ESTIMATORS.items() if fixed} == {"auto", *SOLVERS}
    public = {name for name in manyclass.__all__ if "Classifier" in name}
    assert {name for name, _ in ESTIMATORS.values()} == public


@pytest.mark.parametrize("solver", SINGLE)
def test_what_is_not_given_is_the_estimators_default(run_json, iris_csv, solver):
    name, fixed = ESTIMATORS[solver]
    defaults = getattr(manyclass, name)(**fixed).get_params()
    parameters = run_json("fit", iris_csv, "--solver", solver, "--max-time", 5)["parameters"]
    assert parameters == json.loads(json.dumps(defaults | {"max_time": 5}))


@pytest.mark.parametrize(("solver", "word"), [("auto", "scale"), ("stagewise", "auto")])
def test_a_penalty_is_a_number_or_the_word_that_the_estimator_knows(run_json, iris_csv, solver, word):
    reports = (run_json("fit", iris_csv, "--solver", solver, "--alpha", alpha) for alpha in (word, 0.5))
    assert [report["parameters"]["alpha"] for report in reports] == [word, 0.5]


@pytest.mark.parametrize("option", ["alpha", "tol", "max_iter"])
def test_help_says_the_defaults(run_ok, option):
    text = " ".join(re.sub("[│╭╮╰╯─]", " ", run_ok("fit", "--help")).split())
    said = text[text.index(f"--{option.replace('_', '-')} ") :].split(" --")[0]
    numbers = [float(number) for number in re.findall(r"\b\d+(?:e-\d+)?\b", said)]
    for name, fixed in ESTIMATORS.values():
        default = getattr(manyclass, name)(**fixed).get_params().get(option)
        assert default is None or default in numbers or f"{default}," in said.split(), (name, default)


def test_options_reach_the_estimator(run_json, iris_csv):
    given = {
        "loss": "squared",
        "alpha": 0.5,
        "tol": 0.25,
        "max_iter": 7,
        "max_time": 9.0,
        "class_weight": "balanced",
        "solver": "accelerated",
    }
    options = [part for name, value in given.items() for part in (f"--{name.replace('_', '-')}", value)]
    parameters = run_json("fit", iris_csv, *options, "--seed", 5)["parameters"]
    assert (given | {"random_state": 5}).items() <= parameters.items()


def test_a_fit_cut_short_says_so_without_a_python_warning(run, iris_csv):
    result = run("fit", iris_csv, "--max-iter", 1, "--tol", 1e-12)
    assert result.code == 0
    assert "max_iter" in result.out
    assert result.err == ""


def test_without_time_for_one_iteration_there_is_a_model(run_json, iris_csv, tmp_path):
    report = run_json("fit", "--solver", "auto", iris_csv, "--max-time", 1e-9, "-o", tmp_path / "m.skops")
    assert (report["n_iter"], report["objective"], report["duality_gap"]) == (0, None, None)
    assert load(tmp_path / "m.skops").estimator.predict(np.ones((1, 4))).shape == (1,)


def test_test_file_is_judged_instead_of_held_out_rows(run_json, tmp_path, iris_csv):
    report = run_json("fit", "--solver", "auto", iris_csv, "--test", iris_csv, "-o", tmp_path / "m.skops")
    assert report["n_rows"] == 150
    assert report["evaluated_on"] == {"rows": "iris.csv", "n_rows": 150}
    again = run_json("evaluate", tmp_path / "m.skops", iris_csv)
    assert (again["error"], again["log_loss"]) == (report["error"], report["log_loss"])


def test_holdout_zero_fits_on_every_row_and_judges_nothing(run_json, iris_csv):
    report = run_json("fit", "--solver", "auto", iris_csv, "--holdout", 0)
    assert report["n_rows"] == 150
    assert report["evaluated_on"] is None
    assert "error" not in report


def test_rare_classes_can_be_held_out(run_json, tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("a,label\n" + "".join(f"{i},{'rare' if i == 0 else i % 2}\n" for i in range(40)))
    assert run_json("fit", "--solver", "auto", path)["n_rows"] == 32


@pytest.mark.parametrize(
    ("scale", "as_sparse"),
    [*product(["auto", "none", "standard", "maxabs", "rows"], [False, True]), ("thermometer", False)],
)
def test_scaling_is_part_of_the_model(run_ok, run_json, tmp_path, scale, as_sparse):
    rng = np.random.default_rng(0)
    X = sparse.random_array((80, 30), density=0.1, rng=rng, format="csr") * 100
    y = np.asarray(X.sum(axis=1) > np.median(X.sum(axis=1))).astype(int)
    path = tmp_path / ("rows.svm" if as_sparse else "rows.csv")
    if as_sparse:
        dump_svmlight_file(X, y, str(path), zero_based=False)
    else:
        np.savetxt(path, np.column_stack([X.toarray(), y]), delimiter=",")
    model = tmp_path / "m.skops"
    report = run_json("fit", "--solver", "auto", path, "--scale", scale, "--test", path, "-o", model)
    assert run_json("evaluate", model, path)["log_loss"] == report["log_loss"]
    assert hasattr(load(model).estimator, "steps") == (scale not in ("auto", "none"))
    # A matrix handed to the loaded model is the caller's own.
    given = X.toarray()
    load(model).estimator.predict(given)
    np.testing.assert_array_equal(given, X.toarray())


@pytest.mark.parametrize(("dtype", "divided"), [(np.uint8, True), (np.int64, False), (np.float32, False)])
def test_bytes_are_scaled_to_one_unless_told_otherwise(run_ok, run_json, tmp_path, dtype, divided):
    X, y = load_digits(return_X_y=True)
    np.savez(tmp_path / "digits.npz", X=(15 * X).astype(dtype), y=y)
    np.savez(tmp_path / "by_hand.npz", X=(15 * X / (255 if divided else 1)).astype(np.float32), y=y)
    asked = run_json("fit", tmp_path / "digits.npz", "-o", tmp_path / "m.skops", "--max-iter", 20)
    by_hand = run_json("fit", tmp_path / "by_hand.npz", "--scale", "none", "--max-iter", 20)
    assert asked["objective"] == pytest.approx(by_hand["objective"], rel=1e-5)
    assert hasattr(load(tmp_path / "m.skops").estimator, "steps") == divided
    raw = run_json("fit", tmp_path / "digits.npz", "--scale", "none", "--max-iter", 20)
    assert (raw["objective"] != asked["objective"]) == divided


def test_a_read_only_mapped_matrix_is_scaled_without_being_touched(run_json, tmp_path, iris):
    X, y = iris
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", y)
    content = (tmp_path / "X.npy").read_bytes()
    run_json(
        "fit",
        "--solver",
        "auto",
        tmp_path / "X.npy",
        "--labels",
        tmp_path / "y.npy",
        "--scale",
        "standard",
        "--holdout",
        0,
    )
    assert (tmp_path / "X.npy").read_bytes() == content


def test_float32_stays_float32(run_ok, run_json, tmp_path):
    X, y = load_digits(return_X_y=True)
    np.savez(tmp_path / "digits.npz", X=X.astype(np.float32), y=y)
    run_ok("fit", "--solver", "auto", tmp_path / "digits.npz", "-o", tmp_path / "m.skops", "--scale", "standard")
    assert load(tmp_path / "m.skops").classifier.coef_.dtype == np.float32


def test_idx_files_find_their_labels(run_json, tmp_path):
    images, labels = load_digits(return_X_y=True)

    def idx(values, *shape):
        return struct.pack(f">HBB{len(shape)}I", 0, 8, len(shape), *shape) + values.astype(np.uint8).tobytes()

    for part, rows in (("train", slice(0, 1400)), ("t10k", slice(1400, None))):
        n = len(labels[rows])
        (tmp_path / f"{part}-images-idx3-ubyte.gz").write_bytes(gzip.compress(idx(images[rows], n, 8, 8)))
        (tmp_path / f"{part}-labels-idx1-ubyte.gz").write_bytes(gzip.compress(idx(labels[rows], n)))
    train, test = (tmp_path / f"{part}-images-idx3-ubyte.gz" for part in ("train", "t10k"))
    found = run_json("fit", "--solver", "auto", train, "--test", test)
    said = run_json(
        "fit", "--solver", "auto", train, "--labels", tmp_path / "train-labels-idx1-ubyte.gz",
        "--test", test, "--test-labels", tmp_path / "t10k-labels-idx1-ubyte.gz",
    )  # fmt: skip
    assert found["error"] == said["error"] < 0.15
    assert (found["n_rows"], found["n_features"]) == (1400, 64)


def test_libsvm_test_file_may_be_narrower(run_json, tmp_path):
    (tmp_path / "train.svm").write_text("1 1:1 3:1\n0 2:1\n1 1:2\n0 2:2 3:1\n" * 5)
    (tmp_path / "test.svm").write_text("1 1:1\n0 2:1\n")
    report = run_json("fit", "--solver", "auto", tmp_path / "train.svm", "--test", tmp_path / "test.svm")
    assert report["n_features"] == 3
    assert report["error"] == 0
    assert (
        run_json("fit", "--solver", "auto", tmp_path / "test.svm", "--n-features", 9, "--holdout", 0)["n_features"] == 9
    )


class TestSeveralLabels:
    @pytest.fixture
    def rows(self, tmp_path):
        rng = np.random.default_rng(0)
        X = rng.standard_normal((120, 5))
        Y = (X[:, :3] + 0.1 * rng.standard_normal((120, 3)) > 0.3).astype(int)
        path = tmp_path / "rows.csv"
        header = "a,b,c,d,e,red,green,blue"
        np.savetxt(path, np.column_stack([X, Y]), delimiter=",", header=header, comments="", fmt="%.17g")
        return path

    def test_figures(self, run_json, rows, tmp_path):
        report = run_json("fit", "--solver", "auto", rows, "--labels", 3, "-o", tmp_path / "m.skops")
        assert report["multilabel"] is True
        assert report["n_classes"] == 3
        assert report["hamming_loss"] < 0.15
        assert {"subset_error", "log_loss", "micro_f1", "macro_f1"} <= report.keys()
        by_name = run_json("fit", "--solver", "auto", rows, "--target", "red", "--target", "green", "--target", "blue")
        assert by_name["objective"] == report["objective"]

    def test_the_model_knows_its_labels(self, run_ok, run_json, rows, tmp_path):
        model = tmp_path / "m.skops"
        run_ok("fit", "--solver", "auto", rows, "--labels", 3, "-o", model)
        judged = run_json("evaluate", model, rows)
        assert [row["label"] for row in judged["classes"]] == ["red", "green", "blue"]
        assert run_ok("predict", model, rows).splitlines()[0] == "red,green,blue"

    def test_their_number_holds_for_other_files_too(self, run_ok, run_json, rows, tmp_path):
        model = tmp_path / "m.skops"
        fitted = run_json("fit", "--solver", "auto", rows, "--labels", 3, "--test", rows, "-o", model)
        judged = run_json("evaluate", model, rows, "--labels", 3)
        assert judged["log_loss"] == fitted["log_loss"] == run_json("evaluate", model, rows)["log_loss"]

    def test_labels_of_another_order_are_put_right(self, run_ok, run_json, rows, tmp_path):
        model = tmp_path / "m.skops"
        run_ok("fit", "--solver", "auto", rows, "--labels", 3, "-o", model)
        table = np.genfromtxt(rows, delimiter=",", skip_header=1)
        moved = tmp_path / "moved.csv"
        names = "blue,e,d,c,b,a,red,green"
        columns = table[:, [7, 4, 3, 2, 1, 0, 5, 6]]
        np.savetxt(moved, columns, delimiter=",", header=names, comments="", fmt="%.17g")
        first, second = run_json("evaluate", model, rows), run_json("evaluate", model, moved)
        assert first["classes"] == second["classes"]
        assert first["log_loss"] == pytest.approx(second["log_loss"], rel=1e-12)


def test_only_the_model_is_left_behind(run_ok, tmp_path, iris_csv):
    (tmp_path / "m.skops").write_text("an older model")
    run_ok("fit", "--solver", "auto", iris_csv, "-o", tmp_path / "m.skops", "--force")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["iris.csv", "m.skops"]
    assert (tmp_path / "m.skops").read_bytes()[:2] == b"PK"


def test_json_has_no_numbers_that_json_has_not(run_ok, iris_csv):
    def refuse(name):
        raise AssertionError(name)

    json.loads(run_ok("fit", iris_csv, "--json", "--max-iter", 1), parse_constant=refuse)


def test_a_checkpoint_is_gone_on_from_and_belongs_to_one_fit(run_json, run, iris_csv, tmp_path):
    path = tmp_path / "fit.checkpoint"
    options = ("fit", iris_csv, "--checkpoint", path)
    first = run_json(*options)
    again = run_json(*options)
    assert path.exists() and again["objective"] == first["objective"] and again["log_loss"] == first["log_loss"]
    other = run(*options, "--alpha", 0.3)
    assert other.code == 1 and "is of another fit (its parameter alpha differs" in other.err
    assert "give another name, or delete the file" in other.err
    path.write_bytes(path.read_bytes()[:-5])
    assert "is damaged or incomplete" in run(*options).err


def test_a_checkpoint_is_stored_where_memory_is_limited_too(run_json, iris_csv, tmp_path):
    path = tmp_path / "fit.checkpoint"
    reports = [run_json("fit", iris_csv, "--memory-limit", "1GB", "--checkpoint", path) for _ in range(2)]
    assert path.exists() and reports[0]["objective"] == reports[1]["objective"]


def test_a_linear_model_in_place_of_stages_is_reported(run_ok, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.standard_t(3, (600, 10))
    y = (X @ rng.standard_normal((10, 6))).argmax(axis=1)
    rows = "\n".join(",".join(map(str, [*row.round(4), label])) for row, label in zip(X, y, strict=True))
    (tmp_path / "t.csv").write_text(rows)
    text = run_ok("fit", tmp_path / "t.csv", "--solver", "stagewise")
    assert "softmax loss" in text and "duality gap" in text and "(tol" not in text


def test_an_option_of_another_estimator_names_it(run, iris_csv):
    result = run("fit", iris_csv, "--leave-one-out")
    assert result.code == 2 and "name --solver glm-cv" in result.err


@pytest.mark.parametrize("is_saved", [True, False])
def test_who_stops_the_judging_is_told_of_the_model(run, iris_csv, tmp_path, monkeypatch, is_saved):
    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("manyclass.cli.fit.score", stop)
    path = tmp_path / "m.skops"
    result = run("fit", iris_csv, "--solver", "auto", *(("-o", path) if is_saved else ()))
    told = (
        f"while the model was judged; it was saved to {path} and can be used" if is_saved else "; nothing was written"
    )
    assert (result.code, path.exists(), told in result.err) == (130, is_saved, True)
    if is_saved:
        assert load(path).estimator.predict([[5.0, 3.4, 1.5, 0.2]]) == ["setosa"]
