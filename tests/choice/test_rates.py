import json
import os
import time

import pytest

from manyclass.choice import rates as module
from manyclass.choice.rates import Rates, rates
from manyclass.data import as_rows

SLOW = Rates(1.0, 2.0, 3.0, 4.0, 5.0, 6.0)


@pytest.fixture
def measured(monkeypatch, tmp_path):
    """What would be measured, in place of measuring, and how often it was."""
    calls = []
    monkeypatch.setenv("MANYCLASS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(module, "_measured", lambda dtype: calls.append(dtype) or SLOW)
    yield calls
    rates.cache_clear()


def again(dtype="float32"):
    """As another process would ask."""
    rates.cache_clear()
    return rates(dtype)


def test_another_process_measures_nothing(measured, tmp_path):
    assert again() == again() == SLOW and measured == ["float32"]
    assert again("float64") == SLOW and measured == ["float32", "float64"]
    assert os.listdir(tmp_path / "cache") == ["rates.json"]


def test_after_a_day_the_faster_is_kept(measured, tmp_path):
    path = tmp_path / "cache" / "rates.json"
    again()
    known = json.loads(path.read_text())
    (entry,) = known.values()
    entry["at"], entry["rates"]["product"] = time.time() - module.LASTS - 1, 9.0
    path.write_text(json.dumps(known))
    assert again() == again() == Rates(9.0, 2.0, 3.0, 4.0, 5.0, 6.0) and len(measured) == 2


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"x": 1}', b"\xff\xfe"])
def test_a_damaged_cache_is_written_anew(measured, tmp_path, text):
    path = tmp_path / "cache" / "rates.json"
    path.parent.mkdir()
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    assert again() == again() == SLOW and len(measured) == 1


@pytest.mark.parametrize(
    "entry", [1, {}, {"at": 1e99}, {"at": 0, "rates": {"product": "fast"}}, {"at": 0, "rates": []}]
)
def test_a_damaged_entry_is_measured_anew(measured, tmp_path, entry):
    again()
    path = tmp_path / "cache" / "rates.json"
    path.write_text(json.dumps(dict.fromkeys(json.loads(path.read_text()), entry)))
    assert again() == again() == SLOW and len(measured) == 2


def test_where_nothing_can_be_written_it_is_measured(measured, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("MANYCLASS_CACHE", str(tmp_path / "file" / "cache"))
    assert again() == again() == SLOW and len(measured) == 2


def test_what_is_measured_is_a_speed():
    assert all(0 < speed < 1e15 for speed in vars(module._measured("float32")).values())


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_device_has_speeds_of_its_own_for_numbers_as_the_rows_are_in(dtype, measured, monkeypatch):
    torch = pytest.importorskip("torch")
    there = []

    def seen(*asked):
        there.append(asked)
        return SLOW

    rows = as_rows(torch.ones((3, 2), dtype=getattr(torch, dtype), device="cpu"))
    monkeypatch.setattr(module, "_measured_there", seen)
    rates.cache_clear()
    module.rates_of(rows)
    assert measured and not there
    monkeypatch.setattr(module, "times_as_large", lambda device: 8)
    assert module.rates_of(rows) == SLOW
    assert there == [(dtype, rows.xp, rows.device)]
    rates.cache_clear()
    assert module.rates_of(rows) == SLOW and len(there) == 1  # kept on disk


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_what_is_measured_on_a_device_is_a_speed(dtype, monkeypatch):
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(module, "WIDER", 1)
    rows = as_rows(torch.ones((1, 1)))
    assert all(0 < speed < 1e15 for speed in vars(module._measured_there(dtype, rows.xp, rows.device)).values())


def test_a_machine_is_the_same_in_whatever_order_its_libraries_were_loaded(monkeypatch):
    found, loaded = module._machine(), module.threadpool_info()
    other = {**next(one for one in loaded if one["user_api"] == "blas"), "version": "0"}
    monkeypatch.setattr(module, "threadpool_info", lambda: [*loaded, other])
    last = module._machine()
    monkeypatch.setattr(module, "threadpool_info", lambda: [other, *loaded[::-1]])
    assert module._machine() == last != found


def test_threads_that_wait_for_each_other_are_not_taken_for_the_speed_of_the_machine(monkeypatch):
    limits = []

    class Limit:
        def __init__(self, n_threads):
            limits.append(n_threads)

        def __enter__(self):
            monkeypatch.setattr(module, "_seconds", lambda work, repeats: 1.0)

        def __exit__(self, *error):
            monkeypatch.setattr(module, "_seconds", lambda work, repeats: 40.0)

    monkeypatch.setattr(module, "blas_threads", Limit)
    assert module._seconds_of_blas(lambda: None) == 1.0 and limits == [1]
