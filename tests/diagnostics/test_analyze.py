"""What `analyze` says of data made for it to say so, and in which words."""

import json

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal
from sklearn.datasets import load_iris, make_moons

from manyclass import analyze
from manyclass.diagnostics import condition_number, effective_dimension, response_correlation
from manyclass.diagnostics.analysis import FEWEST
from manyclass.diagnostics.mistakes import _discriminant_analysis
from manyclass.diagnostics.report import Trial


@pytest.fixture
def data(rng):
    X = rng.standard_normal((120, 6))
    return X, np.array(["a", "b", "c"])[np.argmax(X[:, :3], axis=1)]


LAYOUTS = {"dense": lambda X: X, "float32": lambda X: X.astype(np.float32), "sparse": sp.csr_array}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_useless_and_hard_columns_are_named(data, layout):
    X, y = data
    X[:, 3] = 7.0
    X[:, 4] = X[:, 0]
    X[:, 5] *= 1e6
    X = np.column_stack([X, np.zeros(120), X[:, 1] + 1000])
    columns = analyze(LAYOUTS[layout](X), y).columns
    assert (columns.constant, columns.duplicated) == ((3, 6), (4,))
    assert 5 in columns.badly_scaled and not set(columns.badly_scaled) & {0, 1, 2, 3, 4, 6}
    assert columns.far_from_origin == (7,)
    assert columns.largest_ratio > 1e5


@pytest.mark.parametrize("sign", [1, -1])
def test_columns_may_be_far_below_zero_or_much_smaller_than_others(data, sign):
    X, y = data
    X[:, 0] += 1000.0 * sign
    X[:, 1] *= 1e-4
    columns = analyze(X, y).columns
    assert (columns.far_from_origin, columns.badly_scaled) == ((0,), (1,))


@pytest.mark.parametrize(
    ("density", "sizes", "scaler"),
    [
        (1.0, [1, 1, 1, 1, 1, 1], None),
        (1.0, [1, 1, 1, 1, 1, 1e4], "StandardScaler"),
        (1.0, [0.05, 1, 1, 1, 1, 20], "StandardScaler"),  # none of which is far from most
        (0.1, [1, 1, 1, 1, 1, 1e4], "MaxAbsScaler"),  # or there would be no zeros left
    ],
)
def test_columns_that_differ_in_size_are_scaled_as_their_zeros_allow(rng, density, sizes, scaler):
    X = rng.choice([-1.0, 1.0], (300, 6)) * (rng.random((300, 6)) < density) * sizes
    report = analyze(sp.csr_array(X) if density < 1 else X, np.arange(300) % 2)
    assert report.hardness.scaler == scaler
    assert scaler is None or f"{scaler} in front" in report.recommendation
    assert bool(report.columns.badly_scaled) == (max(sizes) == 1e4)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_rows_that_contradict_each_other_are_counted(data, layout):
    X, y = data
    X[10], y[10] = X[11], y[11]
    X[20] = X[21] = X[22]
    y[20:23] = ["a", "b", "a"]
    rows = analyze(LAYOUTS[layout](X), y).rows
    assert (rows.n_repeated, rows.n_contradicting) == (5, 3)


def test_rows_of_several_labels_contradict_each_other_where_any_of_these_differs(rng):
    X, Y = rng.standard_normal((60, 3)), np.tile([[0, 1], [1, 0], [1, 1]], (20, 1))
    X[3] = X[0]  # with the labels 0 1, as it has
    X[5], X[10] = X[4], X[11]  # with 1 1 and 1 0
    rows = analyze(X, Y).rows
    assert (rows.n_repeated, rows.n_contradicting) == (6, 4)


def test_the_spectrum_is_that_of_diagnostics(data):
    X, y = data
    hardness = analyze(X, y).hardness
    assert hardness.condition_number == pytest.approx(condition_number(X))
    assert hardness.effective_dimension[1e-2] == pytest.approx(effective_dimension(X, 1e-2))
    assert hardness.tau == pytest.approx(response_correlation(X, y).tau)
    assert (hardness.rank, hardness.n_rows) == (6, 120)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_column_of_large_numbers_hides_no_other(data, layout, rng):
    X, y = data
    known = analyze(LAYOUTS[layout](X), y)
    report = analyze(LAYOUTS[layout](np.column_stack([X, 1e5 * rng.standard_normal(120)])), y)
    assert (known.hardness.scaler, report.hardness.scaler) == (None, "StandardScaler")
    assert report.hardness.rank == 7 and report.hardness.condition_number < 10.0
    assert abs(report.mistakes.error - known.mistakes.error) < 0.05
    assert "spectrum behind a StandardScaler" in str(report) and "behind a StandardScaler" in report.to_html()


def test_many_columns_are_looked_at_through_few_rows(data, monkeypatch):
    X, y = data
    monkeypatch.setattr("manyclass.diagnostics.analysis.FLOPS", 40.0 * 6**2)
    report = analyze(X, y)
    assert report.hardness.n_rows == 40
    assert "40 rows" in str(report) and "or more" in str(report)


@pytest.mark.parametrize(
    ("value", "advice"), [(np.nan, "Fill in what is missing"), (np.inf, "Correct what is infinite")]
)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_missing_numbers_are_counted_and_their_rows_left_out(data, layout, value, advice):
    X, y = data
    holed = X.copy()
    holed[[3, 3, 50], [0, 1, 5]] = value
    report, complete = analyze(LAYOUTS[layout](holed), y), analyze(np.delete(X, [3, 50], axis=0), np.delete(y, [3, 50]))
    assert (report.rows.n_missing, report.rows.n_rows_with_missing) == (3, 2)
    assert report.recommendation.startswith(advice)
    assert report.hardness.condition_number == pytest.approx(complete.hardness.condition_number, rel=1e-3)


def test_nothing_is_said_of_rows_that_are_all_incomplete(data):
    for value, advice in ((np.nan, "Fill in what is missing"), (1e200, "Correct what is infinite or too large")):
        report = analyze(np.full((120, 6), value), data[1])
        assert report.hardness is None and report.recommendation.startswith(advice)
        assert "no row is complete" in str(report) and "are not 0" not in str(report)


def test_several_labels_per_row(data, rng):
    Y = (rng.random((120, 4)) < [0.1, 0.5, 0.9, 0.5]).astype(int)
    labels = analyze(data[0], Y).labels
    assert labels.multilabel and labels.counts == tuple(Y.sum(axis=0))
    assert labels.rarest.startswith("0 (") and labels.most_frequent.startswith("2 (")


@pytest.mark.parametrize("offset", [0.0, 5.0])
def test_several_labels_of_rows_left_out_are_told_apart(offset):
    X, y = load_iris(return_X_y=True)
    assert analyze(X + offset, np.stack([y == 0, y == 2], axis=1).astype(int)).mistakes.error < 0.06


def test_labels_have_the_names_of_the_columns_of_a_frame(data):
    pandas = pytest.importorskip("pandas")
    X, y = data
    frame = pandas.DataFrame({"u": y == "a", "v": y != "b"}).astype(int)
    assert analyze(X, frame).labels.classes == ("u", "v")
    assert analyze(X, frame, label_names=["s", "t"]).labels.classes == ("s", "t")


@pytest.mark.parametrize(
    ("n_judged", "linear", "generated", "gains"),
    [
        (500, 0.10, 0.05, True),
        (500, 0.10, 0.07, False),  # less than two standard errors, 0.037
        (10**6, 0.02, 0.015, False),  # less than a point
        (10**6, 0.03, 0.015, True),
        (500, 0.05, 0.10, False),
    ],
)
def test_features_gain_where_they_are_better_by_a_point_and_two_standard_errors(n_judged, linear, generated, gains):
    assert Trial(1000, n_judged, linear, generated).gains is gains


def test_features_are_not_tried_on_few_rows_or_for_many_classes(rng, monkeypatch):
    monkeypatch.setattr("manyclass.diagnostics.analysis.TRIAL_CLASSES", 5)
    X = rng.standard_normal((FEWEST + 10, 4))
    for n_rows, n_classes, tried in ((FEWEST, 5, True), (FEWEST - 1, 5, False), (FEWEST, 6, False)):
        assert (analyze(X[:n_rows], np.arange(n_rows) % n_classes).trial is not None) == tried


def test_what_is_recommended_where_no_line_divides_the_classes(data, rng):
    found = analyze(*make_moons(1500, noise=0.1, random_state=0)).recommendation
    assert found.startswith("Put a ThermometerEncoder in front, then take GLMClassifier: of columns in steps")
    X = rng.uniform(-1.0, 1.0, (1500, 2))
    assert analyze(X, X[:, 0] * X[:, 1] > 0).estimator == "StagewiseClassifier"
    report = analyze(*data)
    assert report.estimator == "GLMClassifier" and not report.trial.gains


def test_all_of_it_can_be_printed_shown_and_stored(data):
    X, y = data
    y = np.where(y == "a", "<b>", y)
    report = analyze(X, y, feature_names=[f"<{name}>" for name in "uvwxyz"])
    found = json.loads(json.dumps(report.to_dict(), allow_nan=False))
    assert sum(found["labels"]["counts"]) == 120 and len(found["eigenvalues"]) == 6
    assert {one["estimator"] for one in found["methods"]} > {"GLMClassifier", "StagewiseClassifier"}
    assert all(one["seconds"] > 0 and one["memory"] > 0 for one in found["methods"])
    for text in (str(report), report._repr_html_()):
        assert report.estimator in text and "SDCAClassifier" in text
    assert "<b>" not in report._repr_html_() and "&lt;b&gt;" in report._repr_html_()
    assert "spectrum" not in repr(report)


def test_plot(data):
    pytest.importorskip("matplotlib").use("agg")
    left, right = analyze(*data).plot()
    assert len(left.lines[0].get_xdata()) == 6 and len(right.patches) == 3
    heights = [patch.get_height() for patch in right.patches]
    assert heights == sorted(np.unique(data[1], return_counts=True)[1], reverse=True) and len(set(heights)) > 1


@pytest.mark.parametrize(
    ("y", "sentence"),
    [
        (None, "requires y"),
        (np.zeros(120), "at least two classes"),
        (np.linspace(0, 1, 120), "continuous"),
        (np.arange(119) % 2, "X has 120 rows but y has 119"),
        (3, "X has 120 rows but y has 1"),
    ],
)
def test_bad_labels_get_a_sentence(data, y, sentence):
    with pytest.raises(ValueError, match=sentence):
        analyze(data[0], y)


def test_names_are_as_many_as_columns(data):
    X, y = data
    with pytest.raises(ValueError, match="feature_names holds 1 names for"):
        analyze(X, y, feature_names=["a"])
    with pytest.raises(ValueError, match="label_names holds 3 names for 2; give one for each column of y"):
        analyze(X, np.column_stack([y == "a", y == "b"]), label_names=list("abc"))


@pytest.mark.parametrize("X", [np.ones((10, 3)), np.ones((400, 3)), sp.csr_array((20, 3))])
def test_columns_that_are_all_constant_are_told_of(X):
    report = analyze(X, np.arange(X.shape[0]) % 2)
    assert len(report.columns.constant) == 3 and report.estimator


@pytest.mark.parametrize(("n_rows", "n_classes"), [(1000, 20), (200, 80), (60, 60)])
def test_noise_is_not_told_apart(rng, n_rows, n_classes):
    y = np.concatenate([np.arange(n_classes), rng.integers(n_classes, size=n_rows - n_classes)])
    found = analyze(rng.standard_normal((n_rows, 8)), y).mistakes
    chance = 1 - 1 / n_classes
    assert found.error > chance - 4 * (chance * (1 - chance) / n_rows) ** 0.5


def test_as_many_axes_as_predictions_have_tell_classes_apart_as_all_do(rng):
    """Of which thousands of classes have a number that is far below theirs."""
    codes = rng.integers(30, size=400)
    F = rng.standard_normal((30, 4))[codes] + 0.5 * rng.standard_normal((400, 4))
    axes = np.linalg.qr(rng.standard_normal((30, 4)))[0]
    few, all_of_them = (_discriminant_analysis(G[300:], G[:300], codes[:300], 30) for G in (F, F @ axes.T + 3.0))
    assert_array_equal(few, all_of_them)
    assert 0.01 < np.mean(few != codes[300:]) < 0.5


@pytest.mark.parametrize(("differing", "serve"), [((0.1, 0.04), True), ((0.1, 0.12), False), ((), False)])
def test_models_that_err_on_the_same_rows_are_told_apart_by_the_others(differing, serve):
    assert Trial(1300, 667, 0.18, 0.17, 0.157, differing).steps_serve == serve


@pytest.mark.parametrize(
    ("generated", "stepped", "name", "in_front"),
    [
        (0.30, 0.10, "GLMClassifier", True),
        (0.10, 0.10, "GLMClassifier", True),
        (0.10, 0.12, "StagewiseClassifier", False),
        (0.10, None, "StagewiseClassifier", False),
        (0.29, 0.29, "GLMClassifier", False),
    ],
)
def test_steps_are_recommended_where_nothing_makes_fewer_errors(monkeypatch, data, generated, stepped, name, in_front):
    monkeypatch.setattr("manyclass.diagnostics.analysis._trial", lambda *_: Trial(400, 200, 0.30, generated, stepped))
    report = analyze(*data)
    assert report.estimator == name
    assert ("ThermometerEncoder" in report.recommendation) == in_front
    assert ("columns in steps" in str(report)) == (stepped is not None)
