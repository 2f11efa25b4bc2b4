"""The command that makes the papers' tables and figures: every entry can be found and run."""

import inspect
import re

import numpy as np
import pytest
from scipy import sparse
from typer.testing import CliRunner

from benchmarks import data, report
from benchmarks.__main__ import app
from benchmarks.objective import objectives
from benchmarks.papers import ENTRIES, named, sources
from benchmarks.stochastic import cutting_planes, limits, trajectory
from manyclass import SDCAClassifier


def test_the_list_shows_every_entry_and_the_data_it_wants():
    shown = CliRunner().invoke(app, ["papers", "--list"])
    assert shown.exit_code == 0
    for name, entry in ENTRIES.items():
        assert re.search(rf"^{name}: ", shown.output, re.MULTILINE)
        assert all(f"    {source}" in shown.output for source in entry.names())


@pytest.mark.parametrize("name", ENTRIES)
@pytest.mark.parametrize("quick", [False, True])
def test_every_entry_calls_a_function_with_arguments_it_has(name, quick):
    for call in ENTRIES[name].calls:
        arguments = ((call.quick or {}) if quick else call.full) | call.data
        inspect.signature(call.resolve()).bind(**arguments)
        assert set(call.names()) <= set(sources.SOURCES)


def test_unknown_names_and_missing_data_are_sentences(tmp_path, monkeypatch, capsys):
    with pytest.raises(SystemExit, match="There is no least-cubes: python -m benchmarks papers --list"):
        named(["least-cubes"])
    monkeypatch.setenv("MANYCLASS_DATA", str(tmp_path))
    assert sources.at_hand("mnist", quick=True) == "digits"
    with pytest.raises(sources.MissingError, match=r"cifar10 wants cifar10/cifar10_jpg\.tar\.xz below the folder"):
        sources.at_hand("cifar10", quick=True)
    ran = CliRunner().invoke(app, ["papers", "least-squares/figure-3", "--data", str(tmp_path)])
    assert ran.exit_code == 0 and "least-squares/figure-3 was left out: cifar10 wants" in ran.output


def test_quick_size_takes_the_same_random_rows_each_time_and_keeps_them_apart():
    whole, y = data.rows("digits")
    with data.at_most(100):
        X, codes, X_test, _ = data.split("digits")
        again = data.rows("digits")[0]
        assert X.shape[0] == 80 and X_test.shape[0] == 20 and data.allowed(7) == 7
        assert data.cache() != data.CACHE
        with data.at_most(None):
            assert data.rows("digits")[0].shape == whole.shape
    with data.at_most(100):
        np.testing.assert_array_equal(data.rows("digits")[0], again)
    assert data.cache() == data.CACHE and len(np.unique(codes)) == len(np.unique(y))


def test_work_past_its_processor_time_is_ended():
    def endless() -> None:
        while True:
            pass

    assert limits.limited(lambda: 3, 5) == 3
    assert limits.limited(endless, 1) is None
    with pytest.raises(RuntimeError, match="ended without an answer"):
        limits.limited(lambda: 1 / 0, 5)


def test_a_cheap_entry_ends_in_a_page_and_a_picture(tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    monkeypatch.setattr("benchmarks.papers.page.RESULTS", tmp_path)
    ran = CliRunner().invoke(app, ["papers", "bound/figure-1", "--quick"])
    assert ran.exit_code == 0, ran.output
    page = (tmp_path / "papers" / "quick" / "bound_figure-1.md").read_text()
    assert "| SBM: chosen gain" in page and "## The paper and ours" in page and "![bound/figure-1]" in page
    assert (tmp_path / "papers" / "quick" / "bound_figure-1.png").stat().st_size > 1000
    assert not report._open


def test_cutting_planes_reach_the_optimum(rng):
    X = sparse.csr_matrix(rng.standard_normal((300, 8)) * (rng.random((300, 8)) < 0.5))
    y = np.asarray(X @ rng.standard_normal((8, 3)) + 0.5 * rng.standard_normal((300, 3))).argmax(axis=1)
    alpha, tol = 1e-2, 1e-4
    found = cutting_planes.fit(X, y, alpha, tol)
    best = SDCAClassifier("crammer_singer", alpha=alpha, fit_intercept=False, tol=1e-5, max_iter=5000).fit(X, y)
    iterates = [(found.W, np.zeros(3)), (best.coef_.T, np.zeros(3))]
    reached, least = objectives(X, y, iterates, "crammer_singer", alpha)
    assert least - 1e-5 <= reached <= least + 1.2 * tol
    assert np.mean(found.predict(X) == best.predict(X)) > 0.98


@pytest.mark.parametrize("kept", [(0, 2, 3), (1, 3)])
def test_errors_of_a_trajectory_are_right_where_a_class_has_no_training_rows(kept, rng):
    centres = 10 * np.eye(4, dtype=np.float32)
    y = np.tile(kept, 50)
    X = centres[y] + rng.standard_normal((len(y), 4), dtype=np.float32)
    problem = trajectory.Problem(X, y, X, y)
    one = trajectory.stream(problem, "softmax", 1e-3, 0)
    assert trajectory.trajectory(one, problem, np.array([500]))[1][0] == 0.0


def test_an_empty_panel_does_not_change_the_scale_that_it_shares(monkeypatch, tmp_path):
    monkeypatch.setattr(report, "RESULTS", tmp_path)
    with report.figure("two", 2, sharex=True) as axes:
        axes[0].plot([1, 10, 100], [1, 2, 3])
        for ax in axes:
            ax.set(xscale="log", yscale="log")
    assert [ax.get_xscale() for ax in axes] == ["log", "log"]
    assert [ax.get_yscale() for ax in axes] == ["log", "linear"]
