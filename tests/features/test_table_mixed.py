"""Columns of numbers in which some rows have a word."""

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline

from manyclass import GLMClassifier
from manyclass.data import open_rows
from manyclass.data.readers import read
from manyclass.features import TableEncoder

N_ROWS = 2000


@pytest.fixture
def frame(rng):
    number = rng.standard_normal(N_ROWS).round(3)
    cells = number.astype(object)
    cells[rng.random(N_ROWS) < 0.1] = "unknown"
    cells[rng.random(N_ROWS) < 0.05] = "none"
    cells[rng.random(N_ROWS) < 0.05] = None
    return pd.DataFrame({"a": cells})


def test_they_are_numbers_and_categories(frame):
    encoder = TableEncoder().fit(frame)
    names = ["a", "missingindicator_a", "a_none", "a_unknown"]
    assert encoder.get_feature_names_out().tolist() == names
    found = pd.DataFrame(encoder.transform(frame), columns=names)
    is_number = frame["a"].map(lambda cell: isinstance(cell, float)).to_numpy()
    for word in ("none", "unknown"):
        np.testing.assert_array_equal(found[f"a_{word}"], frame["a"] == word)
    np.testing.assert_array_equal(found["missingindicator_a"], ~is_number)
    numbers = frame["a"][is_number].astype(float)
    np.testing.assert_allclose(found["a"][is_number], (numbers - numbers.mean()) / numbers.std(ddof=0), atol=1e-12)
    assert np.all(found["a"][~is_number] == 0.0)
    one = encoder.transform(pd.DataFrame({"a": [frame["a"][0], "else", "7", 7, "inf"]}))
    np.testing.assert_array_equal(one[2], one[3])
    np.testing.assert_array_equal(one[1], one[4])
    np.testing.assert_array_equal(one[0], encoder.transform(frame[:1])[0])


def test_they_are_learned_as_numbers(frame, rng):
    """As categories, of which none is seen twice, they had told nothing."""
    frame["b"] = np.where(rng.random(N_ROWS) < 0.1, "?", rng.standard_normal(N_ROWS).round(6).astype(str))
    a, b = (pd.to_numeric(frame[name], errors="coerce").fillna(0.0) for name in "ab")
    y = np.where(a + b > 0, "yes", "no")
    model = make_pipeline(TableEncoder(), GLMClassifier()).fit(frame[:1000], y[:1000])
    assert model.score(frame[1000:], y[1000:]) > 0.95


@pytest.mark.parametrize("chunked", [False, True])
def test_they_come_from_files(frame, tmp_path, chunked):
    frame.assign(label="x").to_csv(tmp_path / "rows.csv", index=False)
    held = open_rows(tmp_path / "rows.csv", "label", keep=True, kinds={})[0]
    held = held if chunked else read(tmp_path / "rows.csv", target="label", kinds={}).X
    encoder = TableEncoder()
    found = encoder.fit_transform(held)
    expected = TableEncoder().fit_transform(frame)
    np.testing.assert_allclose(found.dense() if chunked else found, expected, atol=1e-12)


@pytest.mark.parametrize(
    ("cells", "is_mixed"),
    [
        (lambda rng: rng.integers(0, 9, N_ROWS).astype(str), False),  # codes
        (lambda rng: np.arange(N_ROWS).astype(str), False),  # said to be text
        (lambda rng: np.where(np.arange(N_ROWS) % 3, np.arange(N_ROWS).astype(str), ""), False),
        (lambda rng: np.where(rng.random(N_ROWS) < 0.5, rng.integers(0, 9, N_ROWS).astype(str), "x"), False),
        (lambda rng: np.char.add("A", rng.integers(0, 10**6, N_ROWS).astype(str)), False),  # names
        (lambda rng: np.where(np.arange(N_ROWS) % 3 == 0, np.arange(N_ROWS).astype(str), "x"), False),  # mostly words
        (lambda rng: np.where(np.arange(N_ROWS) % 3, np.arange(N_ROWS).astype(str), "x"), True),
        (lambda rng: [f"{row}" if row % 3 else f"id{row}" for row in range(N_ROWS)], False),  # many words
        (lambda rng: pd.Categorical([str(row) if row % 9 else "x" for row in range(N_ROWS)]), False),  # as it is said
    ],
)
def test_codes_and_names_stay_categories(rng, cells, is_mixed):
    encoder = TableEncoder(min_frequency=1).fit(pd.DataFrame({"a": cells(rng), "b": rng.standard_normal(N_ROWS)}))
    assert (type(encoder.columns_[0]).__name__ == "Mixed") == is_mixed


def test_a_file_with_words_in_many_columns_is_read_in_a_few_passes(rng, tmp_path, monkeypatch):
    """A file was read once for each row in which another column turned out to be text: 60 times of 60 columns."""
    frame = pd.DataFrame({f"c{j}": rng.standard_normal(600).round(3).astype(object) for j in range(12)})
    for j in range(8):
        frame.iloc[40 * j + 70 : 40 * j + 120, j] = "unknown"
    frame["day"] = pd.date_range("2024-01-01", periods=600).strftime("%Y-%m-%d")
    frame["ok"], frame["label"] = rng.choice(["true", "false"], 600), rng.choice(["a", "b"], 600)
    frame.to_csv(tmp_path / "rows.csv", index=False)
    from manyclass.data.readers import text

    passes, opened = [], text._Text.opened
    monkeypatch.setattr(text._Text, "opened", lambda self, way: passes.append(way) or opened(self, way))
    table = read(tmp_path / "rows.csv", target="label", kinds={}).X
    assert len(passes) <= text.MOST_FAULTS + 2
    assert list(map(str, table.schema.types)) == ["string"] * 8 + ["double"] * 4 + ["timestamp[us]", "bool"]
    passes.clear()
    stored, _ = open_rows(tmp_path / "rows.csv", "label", keep=True, kinds={})
    assert len(passes) <= 2 * (text.MOST_FAULTS + 2)  # each begins with a look
    assert list(stored.kinds.values())[:13] == ["text"] * 8 + ["number"] * 4 + ["time"]
    names = [f"c{j}" for j in range(12)]
    encoders = [TableEncoder().fit(X) for X in (table.select(names), stored)]
    np.testing.assert_allclose(
        encoders[0].transform(table.select(names)),
        encoders[1].transform(stored).dense()[:, : encoders[0].n_features_out],
    )
