"""What a fit on a device asks of it: large blocks, and no number of any of them while it is at work."""

import numpy as np
import pytest

from manyclass import (
    AutoClassifier,
    CalibratedLeastSquaresClassifier,
    GLMClassifier,
    GLMClassifierCV,
    StagewiseClassifier,
)
from manyclass.data import DenseRows
from manyclass.data.memory import UNKNOWN_GIB
from manyclass.data.rows import Rows
from manyclass.features import Landmarks, RandomFourierFeatures, RandomPolynomials, RandomUnits

torch = pytest.importorskip("torch")
overrides, dispatch = pytest.importorskip("torch.overrides"), pytest.importorskip("torch.utils._python_dispatch")

N, D, K = 2048, 8, 4
STEPS = {"tol": 0, "max_iter": 3, "alpha": 1e-3}
STAGES = {"n_components": 32, "block_size": 16, "max_iter": 1, "alpha": 1e-3, "random_state": 0}
MODELS = {
    **{
        name: GLMClassifier(solver=name, **STEPS)
        for name in ("quasi-newton", "newton-cg", "newton", "accelerated", "majorize", "gradient", "biased-gradient")
    },
    **{loss: GLMClassifier(loss=loss, **STEPS) for loss in ("logistic", "squared", "sparsemax")},
    "path": GLMClassifierCV([1e-3, 1e-2], cv=2, max_iter=5),
    "path of the squared loss": GLMClassifierCV([1e-3, 1e-2], loss="squared", cv=2),
    "calibrated": CalibratedLeastSquaresClassifier(1e-3, max_iter=2),
    "stagewise": StagewiseClassifier(**STAGES),
    "stagewise, Newton": StagewiseClassifier(loss="softmax", **STAGES),
    "landmarks": StagewiseClassifier(Landmarks(), **STAGES),
    "learned metric": StagewiseClassifier(RandomFourierFeatures(metric="learned"), **STAGES),
    "polynomials": StagewiseClassifier(RandomPolynomials(), **STAGES),
    "units": StagewiseClassifier(RandomUnits(), **STAGES),
}


class Waits(dispatch.TorchDispatchMode):
    """How often a number of a tensor is asked for, or how many are none, which waits for a device."""

    def __init__(self):
        super().__init__()
        self.n = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        if any(name in str(function) for name in ("local_scalar", "nonzero", "masked_select", "unique")):
            self.n += 1
        return function(*args, **(kwargs or {}))


class Copies(overrides.TorchFunctionMode):
    """How often arrays are copied to the device."""

    def __init__(self):
        super().__init__()
        self.n = 0

    def __torch_function__(self, function, types, args=(), kwargs=None):
        name = getattr(function, "__name__", "")
        self.n += name in ("asarray", "as_tensor", "tensor") and isinstance(args[0], np.ndarray)
        return function(*args, **(kwargs or {}))


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    y = rng.integers(K, size=N)
    X = (rng.standard_normal((K, D))[y] + rng.standard_normal((N, D))).astype(np.float32)
    return torch.asarray(X), torch.asarray(y)


@pytest.mark.parametrize("name", MODELS)
def test_waits_for_a_device_do_not_grow_with_the_blocks(data, monkeypatch, name):
    few, many = counted(Waits, data, monkeypatch, name)
    assert abs(many - few) < 16  # some of which depend on rounding


@pytest.mark.parametrize("name", ["stagewise", "landmarks", "units", "polynomials"])
def test_what_makes_features_is_copied_to_a_device_once(data, monkeypatch, name):
    few, many = counted(Copies, data, monkeypatch, name)
    assert abs(many - few) < 16


def counted(mode, data, monkeypatch, name):
    """In a fit of 2 and one of 20 blocks."""
    for n_blocks in (2, 20):
        monkeypatch.setattr(Rows, "block_limit", 4 * D * N // n_blocks)
        with mode() as seen:
            MODELS[name].fit(*data)
        yield seen.n


def test_blocks_follow_the_device():
    here, there = (DenseRows(torch.empty((1 << 20, 256), device=device)) for device in ("cpu", "meta"))
    assert there.rows_per_block(1000) > UNKNOWN_GIB * 0.9 * here.rows_per_block(1000)
    assert here.rows_per_block(1000) == DenseRows(np.empty((1 << 20, 256), np.float32)).rows_per_block(1000)


def test_rows_on_a_device_are_not_compared_on_the_host(data, monkeypatch):
    monkeypatch.setattr("manyclass.estimators.auto.times_as_large", lambda device: 8)
    with pytest.raises(TypeError, match=r"pass X.cpu\(\), or use GLMClassifierCV"):
        AutoClassifier(max_time=1).fit(*data)


def test_columns_are_summed_in_longer_blocks_on_a_device(monkeypatch):
    rows, taken, blocks = DenseRows(torch.ones((100_000, 8))), [], DenseRows.blocks
    monkeypatch.setattr(DenseRows, "blocks", lambda self, step: taken.append(step) or blocks(self, step))
    for times in (1, 8):
        monkeypatch.setattr("manyclass.data.rows.times_as_large", lambda device, times=times: times)
        assert float(rows.mean()[0]) == 1.0
    assert taken == [1024, 8192]
