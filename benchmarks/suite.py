"""Runs the commands of a package of benchmarks one after the other, each in a process of its own."""

from __future__ import annotations

import shlex
import subprocess
import sys


def run_all(package: str, commands: list[str]) -> None:
    """Run ``python -m package.command`` for each; a failure does not keep the others from running."""
    failed = []
    for command in commands:
        module, *options = shlex.split(command)
        print(f"== {package}.{command}", flush=True)
        if subprocess.run([sys.executable, "-m", f"{package}.{module}", *options]).returncode:
            failed.append(command)
    if failed:
        raise SystemExit(f"failed: {', '.join(failed)}")
