"""What a person at a terminal sees, and what a program at a pipe does not."""

import os
import pty
import re
import signal
import subprocess
import sys
import time

import pytest

COMMAND = [sys.executable, "-c", "import sys; from manyclass.cli import main; sys.exit(main())"]


def hear_ctrl_c():
    # A shell starts what runs in the background deaf to it, which children inherit.
    signal.signal(signal.SIGINT, signal.default_int_handler)


def in_terminal(arguments, columns=120, until=None, send=None):
    """Run with stderr and stdout on a terminal; returns the exit code and all that appeared there."""
    leader, follower = pty.openpty()
    environment = {**os.environ, "COLUMNS": str(columns), "TERM": "xterm-256color"}
    process = subprocess.Popen(
        [*COMMAND, *arguments], stdout=follower, stderr=follower, env=environment, preexec_fn=hear_ctrl_c
    )
    os.close(follower)
    seen = b""
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        try:
            chunk = os.read(leader, 65536)
        except OSError:
            break
        seen += chunk
        if until is not None and until in seen:
            process.send_signal(send)
            until = None
    os.close(leader)
    return process.wait(timeout=60), re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", seen.decode())


@pytest.mark.parametrize("columns", [60, 120])
def test_the_progress_line_shows_the_pass_and_goes_away(columns):
    # Long enough for the line to be drawn, which happens ten times a second.
    code, text = in_terminal(
        ["fit", "--solver", "majorize", "--tol", "1e-300", "--max-iter", "1000000000", "--max-time", "1"], columns
    )
    assert code == 0
    assert re.search(r"pass \d+ · objective [\d.]+", text)
    last = text.rsplit("\r", maxsplit=1)[-1]
    assert "pass " not in last.splitlines()[-1]


def test_ctrl_c_ends_in_one_sentence(tmp_path):
    model = tmp_path / "m.skops"
    endless = [
        "fit",
        "--tol",
        "1e-300",
        "--max-iter",
        "1000000000",
        "--solver",
        "majorize",
        "--alpha",
        "1e-12",
    ]
    code, text = in_terminal([*endless, "-o", str(model)], until=b"pass ", send=signal.SIGINT)
    assert code == 130
    assert text.rstrip().endswith("manyclass: stopped by Ctrl-C; nothing was written")
    assert "Traceback" not in text
    assert list(tmp_path.iterdir()) == []


def test_a_pipe_gets_no_progress_and_no_colours():
    result = subprocess.run([*COMMAND, "fit"], capture_output=True, text=True, timeout=120)
    assert result.returncode == 0
    assert result.stderr == ""
    assert "\x1b" not in result.stdout


def test_a_terminal_without_unicode():
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    result = subprocess.run([*COMMAND, "fit"], capture_output=True, text=True, timeout=120, env=environment)
    assert (result.returncode, result.stderr) == (0, "")
    assert "1,437 rows ? 64 columns" in result.stdout


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


@pytest.mark.parametrize("command", ["fit", "predict", "evaluate"])
def test_help_of_every_command(run_ok, command):
    assert "--json" in run_ok(command, "--help")
