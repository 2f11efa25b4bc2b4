"""What a person at a terminal sees, and what a program at a pipe does not."""

import io
import math
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from multiprocessing.connection import Connection
from types import SimpleNamespace

import pytest
from sklearn.datasets import load_digits

from manyclass import BoundMajorizationClassifier, PegasosClassifier, SDCAClassifier
from manyclass.cli import main
from manyclass.cli.modelfile import load
from manyclass.cli.output import Progress
from tests.cli.forked import PROCESSES, on_terminal

ENDLESS = ("--solver", "majorize", "--tol", "1e-300", "--max-iter", "1000000000", "--alpha", "1e-12")


def in_terminal(arguments, columns=120, until=None, send=None):
    """Run with stderr and stdout on a terminal; returns the exit code and all that appeared there."""
    leader, follower = pty.openpty()
    with Connection(follower) as terminal:
        process = PROCESSES.Process(target=on_terminal, args=(terminal, columns, arguments))
        process.start()
    seen = b""
    started = time.monotonic()
    pressed = math.inf
    while time.monotonic() < started + 120:
        try:
            seen += os.read(leader, 65536) if select.select([leader], [], [], 1.0)[0] else b""
        except OSError:
            break
        # Modules that swallow every exception while they are imported swallow this one too: then it is pressed again.
        if until is not None and until in seen and (pressed == math.inf or time.monotonic() > pressed + 20):
            os.kill(process.pid, send)
            pressed = time.monotonic()
    os.close(leader)
    process.join(60)
    return process.exitcode, re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", seen.decode())


@pytest.mark.parametrize("columns", [60, 120])
def test_the_progress_line_shows_the_iteration_and_goes_away(columns):
    # Long enough for the line to be drawn, which happens ten times a second.
    code, text = in_terminal(["fit", *ENDLESS, "--max-time", "0.6"], columns)
    assert code == 0
    gap = r" · duality gap [\d.]+e[+-]\d+ → 1e-300" if columns == 120 else ""
    assert re.search(r"iteration \d+ · objective [\d.]+" + gap, text)
    last = text.rsplit("\r", maxsplit=1)[-1]
    assert "iteration " not in last.splitlines()[-1]


def test_ctrl_c_keeps_the_model_so_far(tmp_path, run_json):
    model = tmp_path / "m.skops"
    code, text = in_terminal(["fit", *ENDLESS, "-o", str(model)], until=b"iteration ", send=signal.SIGINT)
    assert code == 130
    said = " ".join(text[text.rindex("manyclass:") :].split())
    assert re.fullmatch(
        r"manyclass: stopped by Ctrl-C after [\d.,]+ pass(es)? over the rows; the model .* can be used", said
    )
    assert "Traceback" not in text
    assert list(tmp_path.iterdir()) == [model]
    X, y = load_digits(return_X_y=True)
    assert load(model).estimator.score(X, y) > 0.5


@pytest.mark.parametrize("when", [b"reading", b"iteration "])
def test_ctrl_c_writes_nothing_where_there_is_nothing_to_write(tmp_path, when):
    output = ("-o", str(tmp_path / "m.skops")) if when == b"reading" else ()
    code, text = in_terminal(["fit", *ENDLESS, *output], until=when, send=signal.SIGINT)
    assert code == 130
    assert text.rstrip().endswith("manyclass: stopped by Ctrl-C; nothing was written")
    assert list(tmp_path.iterdir()) == []


def test_ctrl_c_takes_the_best_of_what_was_tried(tmp_path):
    model = tmp_path / "m.skops"
    code, text = in_terminal(["fit", "-o", str(model)], 120, until=b"best so far", send=signal.SIGINT)
    assert code == 130
    assert re.search(r"trying \w+\(.*\) on [\d,]+ rows · best so far [\d.]+ % errors", text)
    assert "can be used" in " ".join(text[text.rindex("manyclass:") :].split())
    X, y = load_digits(return_X_y=True)
    assert load(model).estimator.score(X, y) > 0.5


def test_a_pipe_without_unicode_gets_no_progress_and_no_colours(monkeypatch):
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="ascii") for _ in range(2))
    monkeypatch.setattr("sys.stdout", out)
    monkeypatch.setattr("sys.stderr", err)
    code = main(["fit", "--solver", "auto"])
    written = [stream.buffer.getvalue().decode("ascii") for stream in (out, err)]
    assert (code, written[1]) == (0, "")
    assert "\x1b" not in written[0]
    assert "1,437 rows ? 64 columns" in written[0]


def test_help_imports_nothing_heavy():
    code = (
        "import sys; from manyclass.cli import main; main(['fit', '--help']); "
        "heavy = {'numba', 'torch', 'pyarrow', 'pandas', 'matplotlib', 'skops', 'sklearn.metrics'}; "
        "print(sorted(heavy & set(sys.modules)))"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    assert result.stdout.rstrip().endswith("[]")


def test_version(run_ok):
    assert re.fullmatch(r"manyclass \d+\.\d+\S*\n", run_ok("--version"))


@pytest.mark.parametrize("command", ["analyze", "fit", "predict", "evaluate"])
def test_help_of_every_command(run_ok, command):
    assert "--json" in run_ok(command, "--help")


def test_the_progress_line_says_when_a_fit_compiles():
    from numba.core import event

    said = []
    progress = Progress(SimpleNamespace(update=lambda task, **options: said.append(options["description"])), 0)
    stochastic = BoundMajorizationClassifier("stochastic")
    for model in (SDCAClassifier(), PegasosClassifier(), BoundMajorizationClassifier(), stochastic):
        progress.setup(model, None)
        with event.trigger_event("numba:compile"):
            pass
        progress.teardown(model, None)
        with event.trigger_event("numba:compile"):
            pass
    assert said == ["compiling, as this is the first fit of its kind on this machine", "fitting"] * 3
