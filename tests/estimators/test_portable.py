import copy
import pickle

import numpy as np
import pytest
import skops.io
from sklearn.datasets import load_iris

import manyclass
from manyclass.cli.modelfile import trusted_types
from manyclass.fit import Record, Status
from tests.problems import ESTIMATORS

X, y = load_iris(return_X_y=True)


@pytest.fixture(params=ESTIMATORS, scope="module")
def fitted(request):
    with np.errstate(all="ignore"):
        return getattr(manyclass, request.param)(**ESTIMATORS[request.param]).fit(X, y)


def same(restored, fitted):
    assert isinstance(restored.status_, Status) and restored.status_ is fitted.status_
    assert [type(record) for record in restored.history_] == [type(record) for record in fitted.history_]
    assert isinstance(restored.history_[0], Record)
    assert restored.history_[-1].objective == pytest.approx(fitted.history_[-1].objective, nan_ok=True)
    np.testing.assert_array_equal(restored.predict(X), fitted.predict(X))


def test_skops_files_of_every_estimator_load_again_with_only_our_own_types(fitted, tmp_path):
    path = tmp_path / "model.skops"
    skops.io.dump(fitted, path)
    assert set(skops.io.get_untrusted_types(file=path)) <= trusted_types()
    same(skops.io.load(path, trusted=sorted(trusted_types())), fitted)


def test_pickles_and_copies_keep_status_and_history(fitted):
    same(pickle.loads(pickle.dumps(fitted)), fitted)
    same(copy.deepcopy(fitted), fitted)
    same(fitted, fitted)  # being written has not changed the estimator itself
