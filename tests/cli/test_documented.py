"""The commands of docs/command_line.md print what is shown there, but for the numbers."""

import re
import shlex
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

PAGE = Path(__file__).parents[2] / "docs" / "command_line.md"
NUMBER = re.compile(r"\d[\d,]*(\.\d+)?(e[+-]?\d+)?( [kMG]?B)?")


def wording(text):
    return [NUMBER.sub("#", line).split() for line in text.splitlines() if line.strip()]


def shown():
    """Pairs of a command and its output."""
    blocks = re.findall(r"```console\n(.*?)```", PAGE.read_text(), flags=re.DOTALL)
    for block in blocks:
        for command in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            yield command.split("\n", 1)


def write_digits(folder):
    X, y = load_digits(return_X_y=True)
    parts = train_test_split(np.column_stack([X, y])[:400].astype(int), random_state=0)
    header = ",".join([*(f"pixel{j}" for j in range(64)), "label"])
    for name, part in zip(("train.csv", "test.csv"), parts, strict=True):
        np.savetxt(folder / name, part, fmt="%d", delimiter=",", header=header, comments="")


def write_visits(folder):
    cities, rows = ("Oslo", "Rome", "Bern"), []
    for number in range(400):
        age = "" if number % 10 == 0 else 20 + number * 7 % 60
        label = "yes" if number % 3 == 0 else "no"
        rows.append(f"{age},{cities[number % 3]},2024-{1 + number % 12:02}-{1 + number % 28:02},{label}")
    (folder / "visits.csv").write_text("\n".join(["age,city,first,label", *rows]) + "\n")


def test_commands_print_what_is_shown(run, tmp_path, monkeypatch):
    write_digits(tmp_path)
    write_visits(tmp_path)
    monkeypatch.chdir(tmp_path)
    commands = list(shown())
    assert len(commands) >= 9
    for command, output in commands:
        result = run(*shlex.split(command)[1:])
        if "analyze" in command or "why " in output:  # the order of seconds, and what is best, is that of the machine
            assert {line[0] for line in wording(result.out)} >= {line[0] for line in wording(output)[:-1]}
        else:
            assert wording(result.out + result.err) == wording(output), command
