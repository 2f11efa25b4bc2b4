"""Sums of labelled rows: pieces make the whole, what was never there is refused, and files hold what was saved."""

from functools import reduce

import numpy as np
import pytest
import scipy.sparse as sp

from manyclass import ClassMoments, GLMClassifier, Moments
from manyclass.data.readers import DataFileError

N, D = 240, 7


def data(seed=0, offset=0.0, dtype=np.float64, multilabel=False):
    rng = np.random.default_rng(seed)
    X = (rng.standard_normal((N, D)) + offset).astype(dtype)
    y = rng.integers(0, 2, (N, 3)) if multilabel else np.array(["a", "b", "c", "d"])[rng.integers(0, 4, N)]
    return X, y, rng.uniform(0.1, 3.0, N).astype(dtype)


def expected(X, y, s):
    """Everything that a model is made from, with dense one-hot columns: mean row, covariance, cross-covariance."""
    X = X.astype(np.float64)
    Y = y if y.ndim == 2 else (y[:, None] == np.unique(y)).astype(float)
    x_mean, y_mean = np.average(X, axis=0, weights=s), np.average(Y, axis=0, weights=s)
    centred = (X - x_mean) * (s / s.sum())[:, None]
    return x_mean, centred.T @ (X - x_mean), centred.T @ (Y - y_mean), y_mean


def found(moments):
    made = moments.moments()
    return made.mean, made.covariance, made.cross_covariance, made.target_mean


def assert_close(moments, wanted, tolerance):
    for one, other in zip(found(moments), wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance)


def state(moments):
    return [np.array(part) for part in (*found(moments), moments.counts, moments.weights, moments.classes)]


@pytest.mark.parametrize("multilabel", [False, True])
@pytest.mark.parametrize("offset", [0.0, 1000.0])
@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-9), (np.float32, 2e-4)])
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_pieces_in_any_order_make_the_whole(kind, dtype, tolerance, offset, multilabel):
    X, y, s = data(0, offset, dtype, multilabel)
    pieces = np.array_split(np.lexsort(y.T) if multilabel else np.argsort(y), 7)
    for order in (range(7), reversed(range(7))):
        parts = [pieces[number] for number in order]
        added = ClassMoments.of(kind(X[parts[0]]), y[parts[0]], s[parts[0]])
        for part in parts[1:]:
            added.partial_fit(kind(X[part]), y[part], s[part])
        merged = reduce(ClassMoments.merge, [ClassMoments.of(kind(X[part]), y[part], s[part]) for part in parts])
        for moments in (added, merged):
            assert_close(moments, expected(X, y, s), tolerance)
            assert moments.n == N
            assert moments.counts.sum() == (y.sum() if multilabel else N)
    gone = np.arange(0, N, 5)
    left = np.setdiff1d(np.arange(N), gone)
    assert_close(added.forget(kind(X[gone]), y[gone], s[gone]), expected(X[left], y[left], s[left]), tolerance)


def test_merging_is_associative_and_commutative():
    parts = [ClassMoments.of(*data(seed, offset=10.0 * seed)) for seed in range(3)]
    a, b, c = parts
    for one in ((a.merge(b)).merge(c), a.merge(b.merge(c)), c.merge(a).merge(b)):
        assert_close(one, found(a.merge(b).merge(c)), 1e-10)
    assert [part.n for part in parts] == [N] * 3


def test_a_class_goes_with_its_last_row():
    X, y, s = data()
    moments = ClassMoments.of(X, y, s).forget(X[y == "b"], y[y == "b"], s[y == "b"])
    assert list(moments.classes) == ["a", "c", "d"]
    assert moments.forget(X[y != "b"], y[y != "b"], s[y != "b"]).n == 0
    assert_close(moments.partial_fit(X, y, s), expected(X, y, s), 1e-9)


def test_thousands_of_classes_cost_their_rows():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((3000, 4)), rng.integers(0, 100_000, 3000)
    moments = ClassMoments.of(X[:1000], y[:1000]).partial_fit(X[1000:], y[1000:])
    sums = np.zeros((100_000, 4))
    np.add.at(sums, y, X)
    np.testing.assert_allclose(moments.sums, sums[np.unique(y)], atol=1e-12)


def refusals():
    X, y, s = data()
    wide = 1e6 * np.ones((2, D))
    yield "other columns", lambda m: m.forget(X[:, :5], y, s), "same columns"
    yield "unknown class", lambda m: m.forget(X[:1], ["z"]), "'z'"
    yield "too many rows", lambda m: m.forget(np.r_[X, X], np.r_[y, y], np.r_[s, s]), "as they were added"
    yield "too many of a class", lambda m: m.forget(X, np.repeat("a", N)), "as they were added"
    yield "too much weight", lambda m: m.forget(X[y == "a"], y[y == "a"], 9 * s[y == "a"]), "as they were added"
    yield "rows far away", lambda m: m.forget(wide, ["a", "b"]), "as they were added"
    yield "other rows of a class", lambda m: m.forget(-X[y == "a"], y[y == "a"], s[y == "a"]), "as they were added"
    yield "all but for other values", lambda m: m.forget(X[::-1], y, s), "as they were added"
    yield "negative weights", lambda m: m.partial_fit(X, y, -s), "non-negative"
    yield "rows without labels", lambda m: m.partial_fit(X, y[:5]), "one label row"
    yield "numbers as labels", lambda m: m.partial_fit(X, np.arange(N)), "numbers in both, or text"
    yield "several labels", lambda m: m.partial_fit(X, np.ones((N, 2), int)), "one kind of y"


@pytest.mark.parametrize(("act", "sentence"), [pytest.param(*rest, id=name) for name, *rest in refusals()])
def test_what_cannot_be_is_refused_and_changes_nothing(act, sentence):
    moments = ClassMoments.of(*data())
    before = state(moments)
    with pytest.raises(ValueError, match=sentence):
        act(moments)
    for one, other in zip(before, state(moments), strict=True):
        np.testing.assert_array_equal(one, other)


def test_moments_refuse_to_forget_what_was_never_there():
    X, _, s = data()
    Y = X[:, :2]
    moments = Moments.zeros(D, 2).partial_fit(X, Y, s)
    before = moments.xx.copy()
    for rows, weight in ((np.r_[X, X], np.r_[s, s]), (X, 2 * s), (1e4 * X[:3], s[:3]), (-X, s)):
        with pytest.raises(ValueError, match="as they were added"):
            moments.forget(rows, rows[:, :2], weight)
    np.testing.assert_array_equal(moments.xx, before)
    assert moments.forget(X, Y, s).n == 0


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rounding_is_no_reason_to_refuse(dtype):
    """Rows that hold almost all of the variance, far away, in another order and in other blocks."""
    rng = np.random.default_rng(0)
    X = (rng.standard_normal((20_000, 30)) @ np.diag(np.logspace(0, -6, 30)) + 100).astype(dtype)
    y = rng.integers(0, 3, 20_000)
    moments = ClassMoments.of(X, y)
    order = rng.permutation(20_000)[:19_990]
    for part in np.array_split(order, 9):
        moments.forget(X[part], y[part])
    assert moments.n == 10


@pytest.mark.parametrize(("size", "n_rows", "stored"), [(1, 300, True), (6, 1200, False)])
def test_all_rows_may_leave_piece_by_piece(size, n_rows, stored, tmp_path):
    """What rounding has left of all that was there is more than that of the few rows which are still to go."""
    rng = np.random.default_rng(0)
    y = rng.integers(7, size=n_rows)
    X = rng.standard_normal((7, 12))[y] + rng.standard_normal((n_rows, 12))
    moments, joint = ClassMoments.of(X[:size], y[:size]), Moments.zeros(12, 1)
    parts = [slice(start, start + size) for start in range(0, n_rows, size)]
    for part in parts[1:]:
        moments.partial_fit(X[part], y[part])
    for part in parts:
        joint.partial_fit(X[part], y[part])
    for number, part in enumerate(parts):
        if stored and number == len(parts) // 2:
            moments.save(tmp_path / "a.moments")
            moments = ClassMoments.load(tmp_path / "a.moments")
        moments.forget(X[part], y[part])
        joint.forget(X[part], y[part])
    assert moments.n == joint.n == 0 and not len(moments.classes)


def labelled(labels, multilabel=False):
    X, y, s = data(multilabel=multilabel)
    moments = ClassMoments.of(X, y if multilabel else np.asarray(labels)[np.arange(N) % len(labels)], s)
    moments.about = {"feature_names": ["é"] * D}
    return moments


@pytest.mark.parametrize("labels", [["ä", "b", "c"], [3, -1, 2], [0.5, 1.0, 2.0], [True, False], None])
def test_what_is_saved_is_what_is_loaded(tmp_path, labels):
    if labels and labels[0] == 0.5:
        labels = [1.0, 2.0]
    moments = labelled(labels or [0], labels is None)
    moments.save(tmp_path / "a.moments")
    again = ClassMoments.load(tmp_path / "a.moments")
    for one, other in zip(state(moments), state(again), strict=True):
        np.testing.assert_array_equal(one, other)
        assert one.dtype == other.dtype
    for name in ("about", "multilabel", "overlap", "precision", "dtype", "n"):
        assert getattr(again, name) == getattr(moments, name)
    plain = Moments.zeros(D, 2).partial_fit(data()[0], data()[0][:, :2])
    plain.save(tmp_path / "b.moments")
    loaded = Moments.load(tmp_path / "b.moments")
    assert all(np.array_equal(value, getattr(loaded, name)) for name, value in vars(plain).items())
    assert {path.name for path in tmp_path.iterdir()} == {"a.moments", "b.moments"}


def test_files_that_are_not_moments_are_refused(tmp_path):
    from safetensors.numpy import save_file

    whole, path = tmp_path / "whole", tmp_path / "part"
    labelled(["a", "b"]).save(whole)
    content = whole.read_bytes()
    for damaged in (b"", content[:50], content[:-8], content + b"0", b"x" * 200, content[:-9] + b"\1" + content[-8:]):
        path.write_bytes(damaged)
        with pytest.raises(DataFileError, match="damaged"):
            ClassMoments.load(path)
    newer = content.replace(b'"version":"1"', b'"version":"2"')
    assert newer != content
    path.write_bytes(newer)
    with pytest.raises(DataFileError, match="newer manyclass"):
        ClassMoments.load(path)
    save_file({"weight": np.zeros(3)}, path)
    with pytest.raises(DataFileError, match="holds something else"):
        ClassMoments.load(path)
    with pytest.raises(DataFileError, match="moments of classes and not moments"):
        Moments.load(whole)
    save_file({"weight": np.zeros(3)}, path, metadata={"manyclass": "\x1b[31m" + "x" * 5000})
    with pytest.raises(DataFileError) as refused:
        ClassMoments.load(path)
    assert str(refused.value).isprintable() and len(str(refused.value)) < 1000
    with pytest.raises(FileNotFoundError):
        Moments.load(tmp_path / "nowhere")


def test_arrays_that_do_not_fit_each_other_are_refused(tmp_path):
    """Whatever the checksum says."""
    from manyclass.data.tensors import load_tensors, save_tensors

    path = tmp_path / "a.moments"
    labelled(["a", "b", "c"]).save(path)
    kind = "moments of classes"
    arrays, facts = load_tensors(path, kind)
    for name, value in (
        ("sums", arrays["sums"][:2]),
        ("counts", arrays["counts"].astype(float)),
        ("counts", -arrays["counts"]),
        ("weights", np.full(3, np.nan)),
        ("xx", arrays["xx"][:3]),
        ("xx", arrays["xx"].astype(np.float32)),
        ("x", arrays["x"] * np.inf),
    ):
        save_tensors(path, kind, arrays | {name: value}, facts)
        with pytest.raises(DataFileError, match="do not make moments"):
            ClassMoments.load(path)
    for name, value in (
        ("classes", ["b", "a", "c"]),
        ("classes", [["a"], ["b", "c"]]),
        ("features", {}),
        ("features", 3),
        ("dtype", "object"),
        ("overlap", "many"),
        ("overlap", True),
        ("multilabel", 0),
        ("about", [["a", 1]]),
        ("classes", [1, 2, 10**30]),
        ("features", facts["features"] | {"n": 2.5}),
        ("features", facts["features"] | {"n": -3}),
        ("features", facts["features"] | {"weight": "3"}),
        ("features", facts["features"] | {"yy": 10**30}),
    ):
        save_tensors(path, kind, arrays, facts | {name: value})
        with pytest.raises(DataFileError, match="do not make moments"):
            ClassMoments.load(path)
    del arrays["sums"]
    save_tensors(path, kind, arrays, facts)
    with pytest.raises(DataFileError, match="do not make moments"):
        ClassMoments.load(path)


def test_a_failing_write_leaves_the_old_file(tmp_path, monkeypatch):
    import os

    path = tmp_path / "a.moments"
    labelled(["a", "b"]).save(path)
    content = path.read_bytes()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        labelled(["c", "d"]).save(path)
    assert path.read_bytes() == content and len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("seed", range(20))
def test_classes_may_leave_piece_by_piece(seed):
    """A label that no row has any more, and features that only rows of one class had, leave nothing but rounding."""
    rng = np.random.default_rng(seed)
    Z, Y, weight = rng.standard_normal((20, 4)), rng.integers(2, size=(20, 2)), rng.uniform(0.1, 2.0, 20)
    Y[10:, 0] = 0
    moments = ClassMoments.of(Z, Y, weight)
    for part in (slice(0, 5), slice(5, 10), slice(10, 15)):
        moments.forget(Z[part], Y[part], weight[part])
    assert moments.n == 5 and moments.weights[0] == 0
    X, y = rng.poisson(0.5, (40, 6)) * 0.1, np.repeat(np.arange(4), 10)
    X[y != 0, 0], weight = 0, rng.uniform(0.1, 2.0, 40)
    moments = ClassMoments.of(X, y, weight)
    for part in (slice(0, 4), slice(4, 10)):
        moments.forget(X[part], y[part], weight[part])
    assert moments.classes.tolist() == [1, 2, 3]


def test_sums_with_columns_in_another_order_can_be_solved_and_added_to(rng):
    X, y, order = rng.standard_normal((60, 4)) + 3.0, rng.integers(0, 3, 60), np.array([2, 0, 3, 1])
    moved = GLMClassifier(0.1, loss="squared").merge(ClassMoments.of(X, y).with_columns(order))
    np.testing.assert_allclose(moved.coef_, GLMClassifier(0.1, loss="squared").fit(X[:, order], y).coef_, atol=1e-4)


@pytest.mark.parametrize("multilabel", [False, True])
@pytest.mark.parametrize("change", ["partial_fit", "partial_merge", "forget"])
def test_changes_of_a_copy_leave_the_sums_it_was_made_from(change, multilabel):
    given = data(multilabel=multilabel)
    moments = ClassMoments.of(*given)
    before = state(moments)
    twin = moments.copy()
    getattr(twin, change)(*((ClassMoments.of(*given),) if change == "partial_merge" else given))
    assert twin.n == (0 if change == "forget" else 2 * N)
    for one, other in zip(before, state(moments), strict=True):
        np.testing.assert_array_equal(one, other)


def test_rows_in_two_precisions_are_as_precise_as_the_worse_and_as_wide_as_the_better():
    X, y, s = data()
    wide, narrow = ClassMoments.of(X, y, s), ClassMoments.of(X.astype(np.float32), y, s)
    assert wide.precision < narrow.precision and (wide.dtype, narrow.dtype) == ("float64", "float32")
    for merged in (wide.merge(narrow), narrow.merge(wide)):
        assert (merged.precision, merged.dtype) == (narrow.precision, "float64")


def test_rows_may_leave_in_a_lower_precision_than_they_came():
    X, y, s = data(offset=100.0)
    moments = ClassMoments.of(X, y, s)
    moments.forget(X[5:].astype(np.float32), y[5:], s[5:])
    assert moments.n == 5 and moments.weights.sum() == pytest.approx(s[:5].sum())


def test_sums_that_do_not_fit_are_refused_before_they_are_made():
    X = sp.csr_array(([1.0, 2.0], ([0, 1], [5, 2_000_000])), shape=(2, 4_000_000))
    with pytest.raises(MemoryError, match=r"products of 4000000 features would take .* beside X, more than"):
        ClassMoments.of(X, [0, 1])
