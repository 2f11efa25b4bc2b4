"""Columns cut at thresholds."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal
from sklearn.datasets import make_hastie_10_2
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import _get_check_estimator_ids

from manyclass import GLMClassifier
from manyclass.data import GeneratedRows, as_rows
from manyclass.features import ThermometerEncoder
from manyclass.features.thermometer import SAMPLED_ROWS
from tests.checks import checks


@pytest.mark.parametrize(("estimator", "check"), [*checks(ThermometerEncoder(4), {})], ids=_get_check_estimator_ids)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16, np.int8])
def test_codes_count_the_thresholds_below_a_number(rng, dtype):
    X = np.column_stack([rng.integers(0, 5, 300), rng.integers(-90, 90, 300), np.full(300, 7)]).astype(dtype)
    encoder = ThermometerEncoder(8).fit(X)
    codes = encoder.transform(X)
    assert codes.dtype == np.uint8
    assert_array_equal(np.bincount(encoder.feature_indices_, minlength=3), [4, 7, 0])
    for column in (0, 1):
        level = codes[:, encoder.feature_indices_ == column].sum(axis=1)
        ranks = np.searchsorted(np.sort(encoder.thresholds_[encoder.feature_indices_ == column]), X[:, column])
        assert_array_equal(level, ranks)
    assert_array_equal(np.unique(codes[:, :4].sum(axis=1)), range(5))


def test_few_values_have_a_bin_each_and_many_share_them_evenly(rng):
    X = rng.standard_normal((8000, 1))
    level = ThermometerEncoder(16).fit_transform(X).sum(axis=1)
    assert_array_equal(np.unique(level), range(16))
    assert np.bincount(level).min() > 0.8 * 8000 / 16
    assert np.bincount(level).max() < 1.2 * 8000 / 16


def test_a_value_of_most_rows_leaves_the_bins_to_the_others(rng):
    """Quantiles of all rows would leave one bin in sixteen to the tenth of the rows that differ."""
    X = np.where(rng.random(8000) < 0.9, 0.0, rng.lognormal(size=8000))[:, None]
    encoder = ThermometerEncoder(16).fit(X)
    level = encoder.transform(X).sum(axis=1)
    assert len(encoder.thresholds_) == 15
    others = np.bincount(level)[1:]
    assert others.min() > 0.5 * others.mean()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_neighbouring_numbers_are_told_apart(dtype):
    first, second, third = 1e3 + np.spacing(dtype(1e3)) * np.arange(3)
    for low, high in ((first, second), (second, third)):  # halves are rounded to even
        X = np.array([[low], [high]] * 3, dtype)
        assert_array_equal(ThermometerEncoder().fit_transform(X)[:, 0], [0, 1] * 3)
    most = np.finfo(dtype).max
    assert_array_equal(
        ThermometerEncoder().fit_transform(np.array([[-most], [0], [most]], dtype)).sum(axis=1), range(3)
    )


def test_weights_are_repetition_and_none_is_absence(rng):
    X, weight = rng.standard_normal((200, 2)).round(1), rng.integers(0, 4, 200)
    X[weight == 0] *= 100.0
    ours = ThermometerEncoder(6).fit(X, sample_weight=weight)
    repeated = ThermometerEncoder(6).fit(np.repeat(X, weight, axis=0))
    assert_array_equal(ours.thresholds_, repeated.thresholds_)


def test_outliers_move_no_threshold_but_those_beside_them(rng):
    X = rng.standard_normal((2000, 1))
    encoder = ThermometerEncoder(8).fit(X)
    wild = X.copy()
    wild[np.argmax(X)] = 1e12
    assert_array_equal(encoder.thresholds_, ThermometerEncoder(8).fit(wild).thresholds_)


def test_many_rows_are_sampled(rng):
    X = rng.standard_normal((SAMPLED_ROWS + 5000, 1))
    first, again = (ThermometerEncoder(8).fit(X) for _ in range(2))
    assert_array_equal(first.thresholds_, again.thresholds_)
    assert np.abs(np.mean(X <= first.thresholds_, axis=0) - np.arange(1, 8) / 8).max() < 0.02
    assert not np.array_equal(first.thresholds_, ThermometerEncoder(8, random_state=1).fit(X).thresholds_)


def test_a_linear_model_of_steps_follows_columns_that_act_as_they_like():
    """Of ten columns whose squares decide (Hastie, Tibshirani and Friedman, 10.2)."""
    X, y = make_hastie_10_2(4000, random_state=0)
    plain, stepped = GLMClassifier(), make_pipeline(ThermometerEncoder(), GLMClassifier())
    scores = [model.fit(X[:2000], y[:2000]).score(X[2000:], y[2000:]) for model in (plain, stepped)]
    assert scores[0] < 0.6
    assert scores[1] > 0.85


@pytest.mark.parametrize("n_bins", [16, 64])
def test_more_bins_are_not_rougher(rng, n_bins):
    """The penalty is on the heights of steps: where a column acts in proportion, many bins do hardly worse."""
    X = rng.standard_normal((600, 5))
    y = (X @ [2.0, -1.0, 1.0, 0.0, 0.0] + 0.5 * rng.logistic(size=600) > 0).astype(int)
    test = rng.standard_normal((4000, 5))
    truth = test @ [2.0, -1.0, 1.0, 0.0, 0.0] > 0
    plain = GLMClassifier(alpha=1e-3).fit(X, y).predict(test)
    steps = make_pipeline(ThermometerEncoder(n_bins), GLMClassifier(alpha=1e-2)).fit(X, y).predict(test)
    assert np.mean(steps == truth) > np.mean(plain == truth) - 0.04


def test_names_say_what_is_asked(rng):
    X = pd.DataFrame({"age": rng.integers(18, 21, 50), "height": np.full(50, 1.7)})
    encoder = ThermometerEncoder().fit(X)
    assert encoder.get_feature_names_out().tolist() == ["age > 18.5", "age > 19.5"]
    assert encoder.set_output(transform="pandas").transform(X).columns.tolist() == ["age > 18.5", "age > 19.5"]


def test_names_of_near_thresholds_differ():
    """As of times in seconds since 1970, whose first nine digits are those of ten seconds."""
    encoder = ThermometerEncoder().fit(1.7e9 + np.arange(20.0)[:, None])
    names = encoder.get_feature_names_out()
    assert len({*names}) == 19
    assert names[0] == "x0 > 1700000000.5"


def test_numbers_of_less_precision_are_cut_alike():
    """Rounded to float32, a threshold between neighbouring numbers may be the larger of them, which is beyond it."""
    X = 2.0**24 + 2.0 * np.arange(40)[:, None]
    encoder = ThermometerEncoder(64).fit(X)
    assert_array_equal(encoder.transform(X.astype(np.float32)), encoder.transform(X))
    wide = ThermometerEncoder().fit(np.array([[-1e300], [0.0], [1e300]]))
    assert_array_equal(wide.transform(np.array([[-3e38], [3e38]], np.float32)), wide.transform([[-3e38], [3e38]]))


@pytest.mark.parametrize(
    ("X", "kind", "told"),
    [(np.full((3, 2), np.nan), ValueError, "NaN"), (np.ones((4, 2)), ValueError, "one value each")],
)
def test_what_cannot_be_cut_is_refused(X, kind, told):
    with pytest.raises(kind, match=told):
        ThermometerEncoder().fit(X)


def test_sparse_rows_have_the_codes_of_dense_ones(rng):
    X = sp.random_array((300, 6), density=0.3, rng=rng, format="csr")
    sparse, dense = ThermometerEncoder(8).fit(X), ThermometerEncoder(8).fit(X.toarray())
    assert_array_equal(sparse.thresholds_, dense.thresholds_)
    assert_array_equal(sparse.transform(X), dense.transform(X.toarray()))
    assert_array_equal(sparse.transform(X.toarray()), dense.transform(X))


def test_rows_whose_codes_are_made_when_they_are_read(rng):
    X = rng.standard_normal((500, 3))
    encoder, y = ThermometerEncoder(8).fit(X), X[:, 0] ** 2 > 1
    codes = encoder.transform(X)
    made = GLMClassifier(alpha=1e-3, tol=1e-8).fit(GeneratedRows(as_rows(X), encoder), y)
    held = GLMClassifier(alpha=1e-3, tol=1e-8).fit(codes.astype(float), y)
    np.testing.assert_allclose(made.coef_, held.coef_, atol=1e-3)


def test_rows_of_torch_stay_there(rng):
    torch = pytest.importorskip("torch")
    X = rng.standard_normal((50, 2)).astype(np.float32)
    encoder = ThermometerEncoder(5).fit(X)
    codes = encoder.transform(torch.tensor(X))
    assert codes.dtype == torch.uint8
    assert_array_equal(codes.numpy(), encoder.transform(X))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("as_kind", [np.asarray, sp.csr_array])
def test_sparse_codes_are_the_codes(rng, dtype, as_kind):
    X = rng.standard_normal((700, 6)).astype(dtype)
    X[:, 0], X[:, 3], X[:, 4] = 1.0, rng.integers(0, 4, 700), np.round(X[:, 4], 1)
    X = as_kind(X)
    codes = ThermometerEncoder().fit(X).transform(X)
    found = ThermometerEncoder(sparse_output=True).fit(X).transform(X)
    found.check_format()
    assert sp.issparse(found) and found.dtype == codes.dtype and found.has_canonical_format
    np.testing.assert_array_equal(found.toarray(), codes)
