"""The examples run, and show what they say."""

import importlib.util
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"
pytest.importorskip("matplotlib")


def run(name, tmp_path):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    picture = tmp_path / f"{name}.png"
    found = module.main(["--quick", "--output", str(picture)])
    assert picture.read_bytes().startswith(b"\x89PNG")
    return found


def test_classes_that_arrive_a_few_at_a_time_make_the_joint_fit(tmp_path):
    for n_classes, pieces, joint in run("class_incremental", tmp_path):
        assert pieces == pytest.approx(joint, abs=0.01), n_classes  # the fit stops at its tolerance


def test_unlearning_leaves_the_model_of_what_is_left(tmp_path):
    found = run("unlearning", tmp_path)
    assert found["apart"] < 1e-5 and found["apart from fit"] < 1e-2
