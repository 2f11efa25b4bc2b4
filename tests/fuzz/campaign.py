"""Many damaged files in a process of their own, whose memory is limited and which a clock ends."""

from __future__ import annotations

import multiprocessing
import resource
import shutil
import signal
import tempfile
import time
import traceback
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.fuzz.targets import TARGETS

_LONGEST = 10.0
"""Seconds of computing that a file may take."""
_SILENCE = 120.0
"""Seconds after which a process that says nothing is taken to wait for ever, which no clock of its own would show."""
_MEMORY = 2 << 30


@dataclass
class Findings:
    """How many files were read and refused, and the numbers of those that broke a rule, by what happened.

    `seconds` are those of the clock for all of them, and `slowest` those of computing for one.
    """

    n_read: int = 0
    n_refused: int = 0
    seconds: float = 0.0
    slowest: float = 0.0
    findings: dict[str, list[tuple[int, str]]] = field(default_factory=dict)

    @property
    def n(self) -> int:
        return self.n_read + self.n_refused + sum(map(len, self.findings.values()))

    def add(self, number: int, outcome: bool | str, seconds: float) -> None:
        self.slowest = max(self.slowest, seconds)
        if isinstance(outcome, str):
            self.findings.setdefault(outcome.split(": ")[0], []).append((number, outcome))
        self.n_read += outcome is True
        self.n_refused += outcome is False


def campaign(
    name: str,
    seed: int,
    first: int,
    n: int,
    seconds: float = float("inf"),
    context: str = "spawn",
    keep: Path | None = None,
) -> Findings:
    """`n` files from number `first` on; a process that dies is replaced, and counts as a finding.

    The folder `keep` is given the files that broke a rule.
    """
    found, started, processes = Findings(), time.monotonic(), multiprocessing.get_context(context)
    stop = first + n
    # In memory where that can be had: a campaign writes and opens a great many files.
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as folder:
        while first < stop and time.monotonic() - started < seconds:
            receiver, sender = processes.Pipe(duplex=False)
            left = seconds - (time.monotonic() - started)
            process = processes.Process(target=_work, args=(name, seed, first, stop, left, sender, folder, keep))
            process.start()
            sender.close()
            assert receiver.recv() == "ready"
            reached, is_silent = first - 1, False
            try:
                while receiver.poll(_SILENCE):
                    reached, outcome, took = receiver.recv()
                    found.add(reached, outcome, took)
                is_silent = True
                process.kill()
            except EOFError:
                pass
            process.join()
            if not process.exitcode:
                break
            first = reached + 2
            is_late = process.exitcode == -signal.SIGPROF
            how = f"takes more than {_LONGEST:g} s" if is_late else f"ends Python with {process.exitcode}"
            found.add(first - 1, "waits for ever" if is_silent else how, _LONGEST if is_late else 0.0)
            _keep(Path(folder), keep, name, first - 1)
    found.seconds = time.monotonic() - started
    return found


def _work(
    name: str, seed: int, first: int, stop: int, seconds: float, sender: Any, folder: str, keep: Path | None
) -> None:
    target = next(target for target in TARGETS if target.name == name)
    assert target.valid
    with open("/proc/self/statm", encoding="ascii") as file:
        held = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (held + _MEMORY, resource.RLIM_INFINITY))
    sender.send("ready")
    deadline = time.monotonic() + seconds
    for number in range(first, stop):
        if time.monotonic() > deadline:
            break
        started = time.process_time()
        # The system ends the process: loops of compiled code do not look for signals.
        signal.setitimer(signal.ITIMER_PROF, _LONGEST)
        try:
            outcome: bool | str = target.attempt(seed, number, Path(folder))
        except Exception as error:  # whatever it is: that no other comes out is what is asked
            last = traceback.extract_tb(error.__traceback__)[-1]
            outcome = f"{type(error).__name__} in {Path(last.filename).name}: {str(error)[:300]!a}"
            if isinstance(error, AssertionError):
                outcome = str(error)[:300]
        signal.setitimer(signal.ITIMER_PROF, 0)
        if isinstance(outcome, str):
            _keep(Path(folder), keep, name, number)
        sender.send((number, outcome, time.process_time() - started))


def _keep(folder: Path, keep: Path | None, name: str, number: int) -> None:
    for file in folder.glob("fuzzed*") if keep is not None else ():
        shutil.copy(file, keep / f"{name}-{number}{file.suffix}")
