"""Frames with text, categories, dates and gaps."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.base import clone
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import Pipeline, make_pipeline

from manyclass import AutoClassifier, analyze
from manyclass.features import TableEncoder


@pytest.fixture
def table(rng):
    n = 600
    frame = pd.DataFrame(
        {
            "age": np.where(rng.random(n) < 0.2, np.nan, rng.normal(40, 10, n)),
            "income": rng.lognormal(0, 2, n),
            "city": pd.Categorical(rng.choice(["Rome", "Oslo", "Bern"], n)),
        }
    )
    y = np.where(frame["city"].isin(["Oslo"]) ^ frame["age"].isna(), "yes", "no")
    return frame, y


def test_a_frame_is_taken_as_it_is(few, table):
    X, y = table
    model = AutoClassifier(random_state=0).fit(X[:400], y[:400])
    assert model.score(X[400:], y[400:]) > 0.97
    found = model.best_estimator_
    assert isinstance(found, Pipeline) and isinstance(found[0], TableEncoder)
    np.testing.assert_allclose(found.predict_proba(X[400:]), model.predict_proba(X[400:]), atol=1e-6)
    assert model.n_features_in_ == 3 and list(model.feature_names_in_) == list(X)
    assert cross_val_score(AutoClassifier(max_time=2.0), X[:300], y[:300], cv=2).mean() > 0.9


@pytest.mark.parametrize("as_kind", [pl.from_pandas, pa.Table.from_pandas], ids=["polars", "pyarrow"])
def test_tables_of_every_kind_are_scored(few, table, as_kind):
    X, y = table
    model = AutoClassifier(random_state=0).fit(as_kind(X), y)
    assert model.score(as_kind(X), y) == model.score(X, y) == np.mean(model.predict(as_kind(X)) == y)


def test_what_scikit_learn_is_told_to_give_users_changes_nothing(few, table, rng):
    X, y = (part[:300] for part in table)
    uneven = X[["income"]].assign(other=1e6 * rng.standard_normal(len(X)))
    many = X.assign(id=rng.integers(0, 200, len(X)).astype(str))
    for given, outputs in ((X, ("pandas", "polars")), (many, ("pandas",)), (uneven, ("polars",))):
        expected = AutoClassifier(random_state=0).fit(given, y).predict_proba(given)
        told = str(analyze(given, y).columns)
        for output in outputs:
            with sklearn.config_context(transform_output=output):
                found = AutoClassifier(random_state=0).fit(given, y).predict_proba(given)
                np.testing.assert_array_equal(found, expected)
                assert str(analyze(given, y).columns) == told


def test_sparse_frames_stay_sparse(few, rng):
    held = sp.random(300, 40, 0.1, format="csr", random_state=0)
    frame, y = pd.DataFrame.sparse.from_spmatrix(held), (held.toarray()[:, :5].sum(axis=1) > 0.5).astype(int)
    model = AutoClassifier(random_state=0).fit(frame, y)
    assert not isinstance(model.best_estimator_, Pipeline) or not isinstance(model.best_estimator_[0], TableEncoder)
    assert model.score(frame, y) > 0.9
    beside = frame[[0]].assign(city=np.where(y == 1, "Rome", "Oslo"))
    assert TableEncoder().fit_transform(beside).shape == (300, 3)


def test_numbers_beside_many_categories_are_tried_in_steps(rng):
    n = 1500
    X = pd.DataFrame({"size": rng.uniform(-3, 3, n), "id": rng.integers(0, 200, n).astype(str), "age": rng.random(n)})
    X.loc[::50, "age"] = np.nan
    y = np.abs(X["size"]) > 1.5
    model = AutoClassifier(random_state=0).fit(X[:1000], y[:1000])
    assert model.score(X[1000:], y[1000:]) > 0.95  # which no line does
    assert model.leaderboard_[0]["scaling"] == "columns in steps"
    found = model.best_estimator_.predict_proba(X)
    np.testing.assert_allclose(found, model.predict_proba(X), atol=1e-6)
    one_by_one = [model.predict_proba(X[row : row + 1]) for row in range(5)]
    np.testing.assert_allclose(np.concatenate(one_by_one), found[:5], atol=1e-6)


def test_gaps_in_arrays_are_taken(few, rng):
    X = rng.standard_normal((500, 4))
    y = (X[:, 0] > 0).astype(int)
    X[rng.random(X.shape) < 0.1] = np.nan
    y[np.isnan(X[:, 3])] = 2
    model = AutoClassifier(random_state=0).fit(X[:400], y[:400])
    assert model.score(X[400:], y[400:]) > 0.85
    complete = X[400:].copy()
    complete[np.isnan(complete)] = 0.0
    assert model.predict(complete).shape == (100,)


def test_gaps_where_there_were_none_say_what_to_do(few, rng):
    X = rng.standard_normal((300, 2))
    y, holed = X[:, 0] > 0, np.where(X > 2, np.nan, X)
    model = AutoClassifier(random_state=0).fit(X, y)
    with pytest.raises(ValueError, match=r"X holds NaN, and there was none .* fit it behind a TableEncoder"):
        model.predict(holed)
    assert make_pipeline(TableEncoder(), clone(model)).fit(X, y).score(holed, y) > 0.9


def test_rows_of_weight_0_are_as_absent(few, table):
    X, y = table
    weight = (np.arange(600) % 3 > 0).astype(float)
    strange = X.assign(city=X["city"].astype(str).where(weight > 0, "nowhere"), age=X["age"].where(weight > 0, 1e9))
    one = AutoClassifier(random_state=0).fit(strange, y, weight)
    other = AutoClassifier(random_state=0).fit(X[weight > 0], y[weight > 0])
    np.testing.assert_allclose(one.predict_proba(X), other.predict_proba(X), atol=1e-6)


def test_several_labels_and_class_weights(few, table):
    X, y = table
    Y = np.column_stack([y == "yes", X["age"].isna()]).astype(int)
    assert AutoClassifier(random_state=0).fit(X, Y).score(X, Y) > 0.95
    assert AutoClassifier(class_weight="balanced", random_state=0).fit(X, y).score(X, y) > 0.95


@pytest.mark.parametrize(
    ("later", "message"),
    [
        (lambda X: X.rename(columns={"age": "years"}), "column 'age' was, where now 'years' is"),
        (lambda X: X.drop(columns="age"), "X has 2 features, but TableEncoder is expecting 3"),
        (lambda X: X.assign(age="old"), "Column 'age' of X cannot be encoded: it holds text"),
    ],
)
def test_other_columns_are_refused(few, table, later, message):
    X, y = table
    model = AutoClassifier(random_state=0).fit(X, y)
    with pytest.raises(ValueError, match=message):
        model.predict(later(X))


def test_a_fit_of_numbers_after_one_of_a_table_knows_nothing_of_it(few, table, rng):
    model = AutoClassifier(random_state=0).fit(*table)
    X = rng.standard_normal((300, 2))
    model.fit(X, X[:, 0] > 0)
    assert model.n_features_in_ == 2 and not hasattr(model, "feature_names_in_")
    assert model.score(X, X[:, 0] > 0) > 0.95


def test_paths_of_tables(few, rng, tmp_path):
    n = 1000
    frame = pd.DataFrame({"a": rng.standard_normal(n), "city": rng.choice(["Rome", "Oslo", "Bern"], n)})
    frame["since"] = (pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 99, n), unit="D")).strftime(
        "%Y-%m-%d"
    )
    frame["label"] = np.where((frame["city"] == "Oslo") ^ (frame["a"] > 1), "yes", "no")
    train, test = tmp_path / "train.csv", tmp_path / "test.csv"
    frame[:700].to_csv(train, index=False)
    frame[700:].to_csv(test, index=False)
    for limit in (None, "400kB"):
        model = AutoClassifier(random_state=0).fit(train, "label", memory_limit=limit)
        assert model.score(test, "label") == model.score(test) > 0.95
        assert model.n_features_in_ == 3 and model.feature_names_in_.tolist() == ["a", "city", "since"]
        predicted = model.predict(frame[700:].drop(columns="label"))
        np.testing.assert_array_equal(predicted, model.predict(test))
        np.testing.assert_array_equal(predicted, model.best_estimator_.predict(test))
