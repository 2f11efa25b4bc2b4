"""Damaged files are read or refused with a sentence: few here, many by ``python -m tests.fuzz``."""

import os

import numpy as np
import pytest

from manyclass.cli.errors import CommandError
from manyclass.data.readers import DataFileError
from tests.fuzz import campaign
from tests.fuzz.opened import check_refusal
from tests.fuzz.targets import TARGETS, Target


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_a_damaged_file_is_read_or_refused_with_a_sentence(tmp_path, target):
    outcomes = {target.attempt(0, number, tmp_path) for number in range(60)}
    assert outcomes == {True, False}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_the_valid_files_are_read(tmp_path, target, monkeypatch):
    monkeypatch.setattr("tests.fuzz.opened._OPTIONS", ({},))
    for content in target.valid:
        monkeypatch.setattr("tests.fuzz.targets.mutated", lambda valid, rng, content=content: content)
        assert target.attempt(0, 0, tmp_path)


@pytest.mark.parametrize(
    ("error", "broken"),
    [
        (DataFileError("it is empty"), "name the file"),
        (DataFileError("PATH: it is\nempty"), "one line"),
        (DataFileError("PATH: it is \x1b[31m empty"), "one line"),
        (DataFileError("PATH: it is empty:"), "ends badly"),
        (DataFileError("PATH: " + "empty" * 1000), "characters"),
        (CommandError("PATH: it is empty"), None),
    ],
)
def test_what_counts_as_a_sentence(tmp_path, error, broken):
    path = tmp_path / "x.csv"
    refusal = type(error)(str(error).replace("PATH", str(path)))
    if broken is None:
        check_refusal(refusal, path)
    else:
        with pytest.raises(AssertionError, match=broken):
            check_refusal(refusal, path)


def _misbehave(path, rng):
    """Every way to break a rule that a process of its own is there for."""
    match int(path.read_bytes()[:1] or b"0", 16) % 5:
        case 0:
            while True:
                pass
        case 1:
            os.kill(os.getpid(), 9)
        case 2:
            np.ones(1 << 31)
        case 3:
            raise DataFileError(f"{path}: it is empty") from MemoryError()


BAD = Target("bad", ".bad", lambda: [b"0", b"1", b"2", b"3", b"4"], _misbehave)


def test_a_campaign_survives_what_it_looks_for(monkeypatch):
    monkeypatch.setattr(campaign, "_LONGEST", 0.3)
    monkeypatch.setattr("tests.fuzz.mutations._damaged", lambda content, *_: content)
    monkeypatch.setattr("tests.fuzz.mutations._PACKINGS", (bytes,))
    monkeypatch.setattr(campaign, "TARGETS", [BAD])
    found = campaign.campaign("bad", 0, 0, 12, context="fork")
    kinds = " ".join(found.findings)
    assert all(kind in kinds for kind in ("takes more than", "ends Python", "MemoryError", "asks for too much memory"))
    assert found.n_read
    assert found.n_read + found.n_refused + sum(map(len, found.findings.values())) == 12
