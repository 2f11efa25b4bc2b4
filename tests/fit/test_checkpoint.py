"""The file: whole or not at all, of this fit or refused."""

import errno
import hashlib
import os
import random
import warnings
from collections import deque

import numpy as np
import pytest

from manyclass.dual.gap import BestPoint, DualModel
from manyclass.fit import Checkpoint, CheckpointError, restore
from manyclass.fit import checkpoint as module
from manyclass.fit.stored import Decoder, Encoder

STATE = {"status": None, "array": np.arange(12.0).reshape(3, 4), "name": "ü", "nothing": None}


def made(tmp_path, **belongs_to):
    return Checkpoint(tmp_path / "fit.checkpoint", {"estimator": "A", "rows": [1.0, 2.0], **belongs_to})


def returned(value):
    encode = Encoder()
    tree = encode(value)
    return Decoder(encode.arrays, np.asarray)(tree)


def test_what_was_written_is_read(tmp_path):
    checkpoint = made(tmp_path)
    assert checkpoint.read() is None
    for number in range(2):
        checkpoint.write({**STATE, "number": number})
        found = made(tmp_path).read()
        assert found["number"] == number and found["name"] == "ü" and found["nothing"] is None
        np.testing.assert_array_equal(found["array"], STATE["array"])
    assert os.listdir(tmp_path) == ["fit.checkpoint"]


def test_values_come_back_as_they_were():
    rng = np.random.default_rng(3)
    rng.random(5)
    array = np.asfortranarray(rng.random((4, 3)))
    best = BestPoint(2.0)
    best.seen = deque([1, 2])
    model = DualModel(array, np.float32(2), array, 0.1)
    values = {
        "pair": (1, "a"),
        3: [True, None, float("nan"), float("inf"), 1 << 100],
        "rng": rng,
        "best": best,
        "model": model,
        "same": array,
        "names": np.array(["x", "y"], dtype=object),
        "codes": np.array(["x", "yy"]),
    }
    found = returned(values)
    assert found["pair"] == (1, "a") and found[3][-1] == 1 << 100 and np.isnan(found[3][2])
    assert found["rng"].random() == rng.random()
    assert type(found["best"]) is BestPoint and found["best"].seen == [1, 2]
    assert type(found["model"]) is DualModel and found["model"].intercept.dtype == np.float32
    assert found["model"].coef is found["same"] is found["model"].dual
    assert found["same"].flags.f_contiguous and found["same"].flags.writeable
    np.testing.assert_array_equal(found["same"], array)
    assert list(found["names"]) == ["x", "y"] and found["codes"].dtype == np.array(["yy"]).dtype


def test_what_is_given_is_left_alone():
    fresh, saved = BestPoint(1.0), BestPoint(5.0)
    fresh.rng, saved.rng = np.random.default_rng(0), np.random.default_rng(1)
    shared, expected = fresh.rng, np.random.default_rng(1).random()
    restore(fresh, saved)
    assert fresh.zero == 5.0 and fresh.rng is shared and shared.random() == expected


@pytest.mark.parametrize("value", [len, lambda: 0, os, {1, 2}, object()], ids=lambda value: type(value).__name__)
def test_code_and_what_is_not_ours_is_refused(value):
    with pytest.raises(ValueError, match=r"A checkpoint cannot hold .*; fit without checkpoint="):
        Encoder()(value)


@pytest.mark.parametrize(
    "kind",
    ["os:system", "manyclass.__main__:main", "manyclass.fit.run:partial", "manyclass.data.threads:SMALL_PRODUCT"],
)
def test_files_name_no_classes_but_ours(kind):
    for node in ({"object": [], "kind": kind}, {"tuple": [], "kind": kind}):
        with pytest.raises(ValueError, match="no class of manyclass"):
            Decoder([], np.asarray)(node)


def test_nothing_but_a_tuple_is_made_by_its_constructor():
    with pytest.raises(ValueError, match="Checkpoint is no tuple"):
        Decoder([], np.asarray)({"tuple": ["/etc/passwd"], "kind": "manyclass.fit.checkpoint:Checkpoint"})


def assert_refused(tmp_path, content, told, **belongs_to):
    path = tmp_path / "fit.checkpoint"
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match=told) as raised:
        made(tmp_path, **belongs_to).read()
    assert str(path) in str(raised.value) and str(raised.value).endswith(".")
    assert path.read_bytes() == content


def test_damaged_files_are_refused_and_left_alone(tmp_path):
    checkpoint = made(tmp_path)
    checkpoint.write(STATE)
    whole = checkpoint.path.read_bytes()
    rng = random.Random(0)
    for length in [0, 1, 20, 22, 23, 40, len(whole) // 2, len(whole) - 1]:
        assert_refused(tmp_path, whole[:length], "damaged|no checkpoint")
    for _ in range(300):
        changed = bytearray(whole)
        changed[rng.randrange(len(whole))] ^= 1 << rng.randrange(8)
        assert_refused(tmp_path, bytes(changed), "damaged|no checkpoint")
    assert_refused(tmp_path, whole + b"\0", "damaged")
    assert_refused(tmp_path, b"PK\3\4 something else", "no checkpoint of manyclass; give another name")


def signed(content):
    return content + hashlib.sha256(content).digest()


def test_files_of_other_versions_and_forged_ones_are_refused(tmp_path, monkeypatch):
    checkpoint = made(tmp_path)
    checkpoint.write(STATE)
    body = checkpoint.path.read_bytes()[:-32]
    for number, whose in ((b"1", "an older manyclass; go on with"), (b"3", "a newer manyclass; install")):
        assert_refused(tmp_path, signed(body.replace(b"checkpoint 2\n", b"checkpoint " + number + b"\n")), whose)
    for forged in (body[:-30], body.replace(b'"array"', b'"arrax"'), body[:23] + b"\xff" * 8 + body[31:]):
        assert_refused(tmp_path, signed(forged), "damaged")
    announced = body.replace(b"(3, 4), }         ", b"(3, 4999999999), }")
    assert len(announced) == len(body) and announced != body
    longer = body.replace(b"NUMPY\x01\x00", b"NUMPY\x02\x00")
    for forged in (announced, longer):
        assert_refused(tmp_path, signed(forged), "damaged")
    checkpoint.path.write_bytes(signed(body))
    assert made(tmp_path).read() is not None
    monkeypatch.setattr(module, "_version", lambda: "99.0")
    assert_refused(tmp_path, signed(body), "was written by manyclass .*, and this is 99.0; go on with that version")


def test_files_of_other_fits_are_refused(tmp_path):
    made(tmp_path).write(STATE)
    content = made(tmp_path).path.read_bytes()
    assert_refused(tmp_path, content, r"another fit \(its estimator differs: A, not B\)", estimator="B")
    assert_refused(
        tmp_path, content, r"another fit \(its estimator differs\)", estimator=60 * "long"
    )  # no cut-off text
    assert_refused(tmp_path, content, r"another fit \(its rows differs\)", rows=[1.0, 2.1])
    assert_refused(tmp_path, content, r"another fit \(its rows differs\)", rows=[1.0])
    assert made(tmp_path, rows=[1.0, 2.0 + 1e-9]).read() is not None


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_full_disk_loses_nothing_and_is_told_once(tmp_path, monkeypatch, step):
    checkpoint = made(tmp_path)
    checkpoint.write(STATE)
    before = checkpoint.path.read_bytes()

    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(os, step, full)
        with pytest.warns(RuntimeWarning, match="could not be written .the disk is full.; the fit goes on"):
            checkpoint.write({"status": "new"})
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            checkpoint.write({"status": "newer"})
    assert checkpoint.path.read_bytes() == before
    assert os.listdir(tmp_path) == ["fit.checkpoint"]
    checkpoint.write({"status": "newest"})
    assert made(tmp_path).read()["status"] == "newest"


def test_a_place_that_cannot_be_is_told_before_the_fit(tmp_path):
    for path in (tmp_path, tmp_path / "none" / "c"):
        with pytest.raises(CheckpointError, match="give the name of a file in a folder that exists"):
            Checkpoint(path, {})
    if os.path.isdir("/proc/self"):
        with pytest.raises(CheckpointError, match=r"takes no new files.; give the name of a file in another folder"):
            Checkpoint("/proc/c", {})


@pytest.mark.parametrize(("code", "makes_room"), [(errno.ENOSPC, True), (errno.EIO, False)])
def test_room_is_asked_for_where_there_is_none(tmp_path, monkeypatch, code, makes_room):
    def fail(*_):
        raise OSError(code, os.strerror(code))

    checkpoint = made(tmp_path)
    monkeypatch.setattr(os, "replace", fail)
    with pytest.warns(RuntimeWarning, match="the fit goes on") as warned:
        checkpoint.write(STATE)
    assert ("Make room" in str(warned[0].message)) == makes_room


def test_writing_takes_a_small_share_of_the_time(tmp_path, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(module.time, "perf_counter", lambda: now[0])
    checkpoint, cost, spent = made(tmp_path), 2.0, 0.0

    def write(state):
        now[0] += cost

    monkeypatch.setattr(os, "fsync", write)
    for _ in range(10_000):
        now[0] += 0.1
        before = now[0]
        checkpoint.offer(lambda: STATE)
        spent += now[0] - before
    assert 0 < spent <= 0.05 * now[0]
