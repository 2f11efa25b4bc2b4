"""``manyclass fit`` where no solver is named: several are tried."""

import numpy as np
import pytest

from manyclass.cli.modelfile import load


def test_several_are_tried_where_nothing_is_said(run_json, run_ok, iris_csv, tmp_path):
    report = run_json("fit", iris_csv, "-o", tmp_path / "m.skops", "--seed", 1)
    taken = load(tmp_path / "m.skops").classifier
    assert len(report["tried"]) > 5 and any(one.startswith("Taken: ") for one in report["why"])
    assert type(taken).__name__ == report["tried"][0]["estimator"] or "with less log loss" in " ".join(report["why"])
    assert report["loss"] == taken.loss_ and report["parameters"].keys() == taken.get_params().keys()
    assert run_json("evaluate", tmp_path / "m.skops", iris_csv)["error"] < 0.06
    text = run_ok("fit", iris_csv, "--max-time", 1)
    assert "why " in text and "Taken: " in text


@pytest.mark.parametrize("given", [("--alpha", "1e-3"), ("--loss", "softmax"), ("--checkpoint", "fit.checkpoint")])
def test_who_says_something_of_one_fit_gets_one(run_json, iris_csv, given, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    report = run_json("fit", iris_csv, *given)
    assert report["tried"] == report["why"] == [] and report["solver"] == "newton"


@pytest.fixture
def uneven(tmp_path, rng):
    """Columns whose sizes differ by seven orders of magnitude, and of which all count."""
    X = rng.standard_normal((900, 6))
    y = (X @ rng.standard_normal((6, 3))).argmax(axis=1)
    np.savez(tmp_path / "rows.npz", X=X * np.logspace(-4, 3, 6), y=y)
    return tmp_path / "rows.npz"


@pytest.mark.parametrize("scale", ["auto", "maxabs"])
def test_the_scaling_that_was_chosen_is_saved_behind_the_one_that_was_asked_for(run_json, uneven, tmp_path, scale):
    run_json("fit", uneven, "--scale", scale, "--holdout", 0, "-o", tmp_path / "m.skops")
    found = load(tmp_path / "m.skops")
    assert [type(step).__name__ for _, step in found.estimator.steps[:-1]][:1] == [
        "StandardScaler" if scale == "auto" else "MaxAbsScaler"
    ]
    assert run_json("evaluate", tmp_path / "m.skops", uneven)["error"] < 0.05
    report = run_json("predict", tmp_path / "m.skops", uneven)
    with np.load(uneven) as file:
        assert np.mean(np.array(report["predictions"]) == file["y"]) > 0.95


def test_rows_that_stay_in_their_file_are_scaled_as_they_are_read(run_json, uneven, tmp_path):
    with np.load(uneven) as file:
        np.save(tmp_path / "X.npy", file["X"])
        np.save(tmp_path / "y.npy", file["y"])
    stored = (tmp_path / "X.npy", "--labels", tmp_path / "y.npy", "--memory-limit", "80kB")
    report = run_json("fit", *stored, "-o", tmp_path / "m.skops")
    assert max(one["n_rows"] for one in report["tried"]) < report["n_rows"]
    assert report["error"] < 0.1
    assert run_json("evaluate", tmp_path / "m.skops", *stored)["error"] < 0.05


def test_a_class_that_is_held_out_is_not_among_those_of_the_model(run_json, run_ok, uneven, tmp_path):
    with np.load(uneven) as file:
        X, y = file["X"], np.array(list("bcd"))[file["y"]]
    y[100] = "a"
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", y)
    for seed in range(3):
        given = ("--labels", tmp_path / "y.npy", "--memory-limit", "80kB", "--seed", seed, "--max-time", 0.2)
        report = run_json("fit", tmp_path / "X.npy", *given, "--force", "-o", tmp_path / "m.skops")
        found = load(tmp_path / "m.skops")
        assert (
            list(found.classifier.classes_) == found.schema.labels and len(found.schema.labels) == report["n_classes"]
        )
        header, first, *_ = run_ok("predict", tmp_path / "m.skops", tmp_path / "X.npy", "--proba").splitlines()
        assert header.count(",") == first.count(",")


def test_a_limit_holds_for_the_search_where_the_rows_fit_in(run_json, uneven, tmp_path):
    with np.load(uneven) as file:
        np.save(tmp_path / "X.npy", file["X"].astype(np.float32))
        np.save(tmp_path / "y.npy", file["y"])
    report = run_json("fit", tmp_path / "X.npy", "--labels", tmp_path / "y.npy", "--memory-limit", "80kB")
    assert max(one["n_rows"] for one in report["tried"]) < 0.8 * report["n_rows"]


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (("--loss", "softmax"), "--solver any has no --loss: leave it out"),
        (("--alpha", "1"), "--solver any has no --alpha: leave it out"),
        (("--checkpoint", "c"), "--checkpoint is for one estimator"),
    ],
)
def test_what_is_refused(run, iris_csv, given, sentence):
    result = run("fit", iris_csv, "--solver", "any", *given)
    assert result.code == 2 and sentence in result.err
