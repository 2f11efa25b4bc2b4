"""What the commands write is whole or not there, and what was there stays unless --force says otherwise."""

import os

import pytest
import typer

from manyclass.cli.app import app
from manyclass.cli.errors import CommandError
from manyclass.cli.output import whole_file

WRITES = {
    "m.skops": "fit iris.csv --solver auto --holdout 0 --output",
    "labels.csv": "predict iris.skops iris.csv --output",
    "labels.tsv": "predict iris.skops iris.csv --proba --output",
    "labels.parquet": "predict iris.skops iris.csv --output",
    "iris.moments": "summarize iris.csv --output",
    "joined.moments": "merge part.moments --output",
    "joined.skops": "merge part.moments --output",
    "data.html": "analyze iris.csv --html",
    "model.html": "evaluate iris.skops iris.csv --html",
}
"""Files and the commands that write them."""


def test_every_command_that_writes_is_here():
    writing = {
        name
        for name, command in typer.main.get_command(app).commands.items()
        if any(option.name in ("output", "force") for option in command.params)
    }
    assert writing == {command.split()[0] for command in WRITES.values()}


@pytest.fixture(params=WRITES)
def writing(request, run, tmp_path, iris_model, monkeypatch):
    """Run the command that writes a file; the file; what lay beside it before."""
    monkeypatch.chdir(tmp_path)
    run("summarize", "iris.csv", "--output", "part.moments")
    path = tmp_path / request.param
    path.write_text("old")
    before = set(os.listdir(tmp_path))
    yield lambda *options: run(*WRITES[path.name].split(), path.name, *options), path
    assert set(os.listdir(tmp_path)) == before


def test_nothing_is_replaced_without_force(writing):
    command, path = writing
    result = command()
    assert (result.code, result.out, path.read_text()) == (1, "", "old")
    assert f"{path.name} exists already: give another name, or replace it with --force" in result.err
    assert command("--force").code == 0
    assert path.read_bytes() != b"old"


def test_a_full_disk_leaves_the_old_file(writing, full_disk):
    command, path = writing
    with full_disk(200):
        result = command("--force")
    assert (result.code, result.out, path.read_text()) == (1, "", "old")
    assert result.err == f"manyclass: there is no space left to write {path.name}: free some or choose another place\n"


@pytest.mark.parametrize(("error", "code"), [(KeyboardInterrupt(), 130), (RuntimeError("boom"), 1), (MemoryError(), 1)])
def test_a_command_that_ends_before_the_last_moment_leaves_the_old_file(writing, monkeypatch, error, code):
    def fail(*_arguments):
        raise error

    command, path = writing
    monkeypatch.setattr("manyclass.cli.output.os.replace", fail)
    result = command("--force")
    assert (result.code, result.out, path.read_text()) == (code, "", "old")
    assert result.err.count("\n") == 1


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="no folder here takes no files")
@pytest.mark.parametrize(("name", "command"), WRITES.items())
def test_a_folder_that_takes_no_files_is_found_at_once(run, tmp_path, iris_model, monkeypatch, name, command):
    monkeypatch.chdir(tmp_path)
    iris_model.unlink()  # nor is a model looked for
    result = run(*command.split(), f"/proc/{name}")
    sentence = f"the folder /proc takes no new files, or is gone: choose another place for {name}"
    assert result == (1, "", f"manyclass: {sentence}\n")


def test_a_folder_that_is_gone_in_the_meantime_is_named(tmp_path):
    with pytest.raises(CommandError, match=r"the folder .*gone takes no new files, or is gone: choose another place"):
        with whole_file(tmp_path / "gone" / "m.skops", False) as temporary:
            temporary.write_text("new")
