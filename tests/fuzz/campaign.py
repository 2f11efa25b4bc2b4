"""Many damaged files in a process of their own, whose memory is limited and which a clock ends."""

from __future__ import annotations

import multiprocessing
import resource
import signal
import tempfile
import time
import traceback
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.fuzz.targets import TARGETS

_LONGEST = 10.0
_MEMORY = 2 << 30


@dataclass
class Findings:
    """How many files were read and refused, and the numbers of those that broke a rule, by what happened."""

    n_read: int = 0
    n_refused: int = 0
    seconds: float = 0.0
    findings: dict[str, list[tuple[int, str]]] = field(default_factory=dict)

    def add(self, number: int, outcome: bool | str) -> None:
        if isinstance(outcome, str):
            self.findings.setdefault(outcome.split(": ")[0], []).append((number, outcome))
        self.n_read += outcome is True
        self.n_refused += outcome is False


def campaign(
    name: str, seed: int, first: int, n: int, seconds: float = float("inf"), context: str = "spawn"
) -> Findings:
    """`n` files from number `first` on; a process that dies is replaced, and counts as a finding."""
    found, started, processes = Findings(), time.monotonic(), multiprocessing.get_context(context)
    stop = first + n
    while first < stop and time.monotonic() - started < seconds:
        receiver, sender = processes.Pipe(duplex=False)
        left = seconds - (time.monotonic() - started)
        process = processes.Process(target=_work, args=(name, seed, first, stop, left, sender))
        process.start()
        sender.close()
        assert receiver.recv() == "ready"
        reached = first - 1
        try:
            while True:
                reached, outcome = receiver.recv()
                found.add(reached, outcome)
        except EOFError:
            process.join()
        if not process.exitcode:
            break
        first = reached + 2
        is_late = process.exitcode == -signal.SIGPROF
        found.add(first - 1, f"takes more than {_LONGEST:g} s" if is_late else f"ends Python with {process.exitcode}")
    found.seconds = time.monotonic() - started
    return found


def _work(name: str, seed: int, first: int, stop: int, seconds: float, sender: Any) -> None:
    target = next(target for target in TARGETS if target.name == name)
    assert target.valid
    with open("/proc/self/statm", encoding="ascii") as file:
        held = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (held + _MEMORY, resource.RLIM_INFINITY))
    sender.send("ready")
    deadline = time.monotonic() + seconds
    # In memory where that can be had: a campaign writes and opens a great many files.
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as folder:
        for number in range(first, stop):
            if time.monotonic() > deadline:
                break
            # The system ends the process: loops of compiled code do not look for signals.
            signal.setitimer(signal.ITIMER_PROF, _LONGEST)
            try:
                outcome: bool | str = target.attempt(seed, number, Path(folder))
            except Exception as error:
                last = traceback.extract_tb(error.__traceback__)[-1]
                outcome = f"{type(error).__name__} in {Path(last.filename).name}: {str(error)[:300]!a}"
                if isinstance(error, AssertionError):
                    outcome = str(error)[:300]
            signal.setitimer(signal.ITIMER_PROF, 0)
            sender.send((number, outcome))
