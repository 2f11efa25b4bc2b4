"""What the plots hold is what was computed."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.preprocessing import scale

from manyclass import GLMClassifier, GLMClassifierCV, SDCAClassifier, analyze
from manyclass.diagnostics import (
    ConvergenceDisplay,
    PathDisplay,
    ResponseCorrelationDisplay,
    SpectrumDisplay,
    response_correlation,
    spectrum,
)
from manyclass.fit import Record
from manyclass.linear_model import LogisticRegressionCV

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("agg")
X, y = load_breast_cancer(return_X_y=True)
X = scale(X)


@pytest.fixture
def ax():
    import matplotlib.pyplot as plt

    figure, ax = plt.subplots()
    yield ax
    plt.close(figure)


def test_spectrum(ax):
    display = SpectrumDisplay.from_data(X, name="cancer", ax=ax)
    assert display.ax_ is ax and display.figure_ is ax.figure
    share = display.line_.get_ydata()
    assert share[0] == 0 and share[-1] == pytest.approx(1) and (np.diff(share) > 0).all()
    assert (np.diff(share, 2) <= 1e-12).all()  # the largest first
    again = display.plot(ax, kind="eigenvalues")
    np.testing.assert_allclose(again.line_.get_ydata(), spectrum(X).eigenvalues)
    with pytest.raises(ValueError, match="'captured' or 'eigenvalues'"):
        display.plot(ax, kind="both")


def test_response_correlation(ax):
    display = ResponseCorrelationDisplay.from_data(X, y, ax=ax)
    found = response_correlation(X, y)
    points = np.asarray(display.points_.get_offsets())
    assert len(points) == found.spectrum.n_components
    assert points[:, 1].max() == pytest.approx(np.log10(found.tau))
    np.testing.assert_allclose(points[:, 0], 2 * np.log10(found.eigenvalues))


def test_convergence(ax):
    models = {
        str(homotopy): SDCAClassifier("squared", alpha=1e-3, tol=1e-3, homotopy=homotopy).fit(X, y)
        for homotopy in (False, True)
    }
    display = ConvergenceDisplay.from_estimators(models, ax=ax, x="seconds")
    for line, model in zip(display.lines_, models.values(), strict=True):
        np.testing.assert_array_equal(line.get_ydata(), [record.duality_gap for record in model.history_])
    optimum = models["False"].history_[-1]["dual"]
    above = ConvergenceDisplay.from_estimators(models, optimum=optimum, ax=ax, y="objective")
    assert all(np.nanmin(line.get_ydata()) > 0 for line in above.lines_)
    assert "optimum" in ax.get_ylabel()


def test_path(ax):
    model = GLMClassifierCV(6, cv=3).fit(X, y)
    display = PathDisplay.from_estimator(model, ax=ax, name="cancer")
    np.testing.assert_array_equal(display.lines_[0].get_ydata(), model.scores_.mean(axis=0))
    assert ax.get_xscale() == "log" and len(ax.lines) == 2  # the scores, and the penalty chosen
    again = display.plot(ax, kind="coefficients")
    assert len(again.lines_) == X.shape[1] + 1
    with pytest.raises(ValueError, match="'scores' or 'coefficients'"):
        display.plot(ax, kind="both")
    with pytest.raises(ValueError, match="256 MB"):
        PathDisplay(model.alphas_, model.scores_).plot(ax, kind="coefficients")
    for other in (GLMClassifier(), LogisticRegressionCV(Cs=3, cv=3, use_legacy_attributes=False)):
        with pytest.raises(ValueError, match="no scores of a path of penalties; give a fitted GLMClassifierCV"):
            PathDisplay.from_estimator(other.fit(X, y), ax=ax)


def test_options_reach_what_is_computed_and_what_is_drawn(ax):
    moved = X[:, :5] + 3.0
    display = SpectrumDisplay.from_data(moved, ax=ax, kind="eigenvalues", center=False, n_components=2)
    expected = spectrum(moved, center=False).eigenvalues[:2]
    assert abs(expected[0] - spectrum(moved).eigenvalues[0]) > 1.0
    np.testing.assert_allclose(display.spectrum.eigenvalues, expected)
    np.testing.assert_allclose(display.line_.get_ydata(), expected)
    found = ResponseCorrelationDisplay.from_data(moved, y, ax=ax, center=False).correlation
    assert found.tau == pytest.approx(response_correlation(moved, y, center=False).tau)
    assert found.tau != pytest.approx(response_correlation(moved, y).tau, rel=1e-3)


@pytest.mark.parametrize("shown", [True, False])
def test_tau_is_drawn_where_it_is_asked_for(ax, shown):
    display = ResponseCorrelationDisplay(response_correlation(X, y)).plot(ax, show_tau=shown)
    assert bool(display.ax_.lines or display.ax_.texts) == shown


def test_coefficients_are_those_of_the_output_asked_for(ax):
    model = GLMClassifierCV(4, cv=3).fit(*load_iris(return_X_y=True))
    for output in range(3):
        display = PathDisplay.from_estimator(model, ax=ax).plot(ax, kind="coefficients", output=output)
        drawn = np.array([line.get_ydata() for line in display.lines_]).T
        np.testing.assert_allclose(drawn, model.coefs_paths_[:, :, output].mean(axis=0))


def test_the_band_around_scores_is_the_standard_error_of_their_mean(ax):
    scores = np.array([[0.0, 1.0], [2.0, 1.0], [4.0, 1.0], [2.0, 1.0]])
    PathDisplay([0.1, 1.0], scores).plot(ax)
    heights = ax.collections[0].get_paths()[0].vertices[:, 1]
    error = np.sqrt(np.sum((scores[:, 0] - 2.0) ** 2) / 3 / 4)
    assert (heights.min(), heights.max()) == pytest.approx((min(2.0 - error, 1.0), 2.0 + error))


def test_histories_are_drawn_over_time_and_from_the_side_they_come_from(ax):
    class Fitted:
        history_ = (Record(1, 1, 1.0, 3.0, 0.5, details={"dual": 1.0}),)
        history_ += (Record(2, 3, 2.5, 2.5, 0.1, details={"dual": 1.5}),)

    for x, along in (("n_passes", [1, 3]), ("seconds", [1.0, 2.5])):
        display = ConvergenceDisplay.from_estimators({"a": Fitted}, ax=ax, x=x)
        assert display.lines_[0].get_xdata().tolist() == along
    for which, distance in (("dual", [1.0, 0.5]), ("objective", [1.0, 0.5]), ("duality_gap", [0.5, 0.1])):
        display = ConvergenceDisplay({"a": Fitted.history_}, optimum=2.0).plot(ax, y=which)
        assert display.lines_[0].get_ydata().tolist() == distance


def test_what_is_one_point_is_seen(ax):
    one, three = Record(1, 1, 1.0, 3.0, 0.5), [Record(n, n, 1.0 * n, 3.0, 0.5 / n) for n in (1, 2, 3)]
    single = ConvergenceDisplay({"a": [one]}).plot(ax).lines_[0]
    assert single.get_marker() == "o"
    assert ConvergenceDisplay({"a": three}).plot(ax).lines_[0].get_marker() == "None"
    assert ConvergenceDisplay({"a": [one]}).plot(ax, marker="x").lines_[0].get_marker() == "x"
    assert SpectrumDisplay.from_data(X[:, :1], ax=ax, kind="eigenvalues").line_.get_marker() == "o"


def test_the_legend_names_what_is_drawn(ax):
    known, unknown = [Record(n, n, 1.0 * n, 3.0, 0.5) for n in (1, 2, 3)], [Record(1, 1, 1.0, 3.0)] * 3
    display = ConvergenceDisplay({"gap": known, "none": unknown}).plot(ax)
    assert len(display.lines_) == 2
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["gap"]
    ax.clear()
    assert ConvergenceDisplay({"none": unknown}).plot(ax).ax_.get_legend() is None


@pytest.mark.parametrize("asked", [{"x": "foo"}, {"y": "foo"}, {"y": "details"}])
def test_what_is_not_recorded_is_told_from_what_is(ax, asked):
    ((option, what),) = asked.items()
    histories = {"a fit": [Record(1, 1, 1.0, 3.0, details={"dual": 1.0})]}
    told = f"{option}='{what}' is not recorded in the history of a fit; use one of 'n_iter', .*, 'objective', .*'dual'"
    with pytest.raises(ValueError, match=told):
        ConvergenceDisplay(histories).plot(ax, **asked)


def test_classes_and_rows_are_counted_in_whole_numbers():
    import matplotlib.pyplot as plt

    _, balance = analyze(X[:7], np.array([0, 0, 0, 1, 1, 2, 2])).plot()
    assert all(float(tick).is_integer() for tick in [*balance.get_xticks(), *balance.get_yticks()])
    plt.close(balance.figure)
