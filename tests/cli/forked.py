"""Commands in processes of their own that share what was imported, which would take most of their time."""

import multiprocessing
import os
import signal
import sys

PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["manyclass.cli.fit", "manyclass.estimators.auto", "skops.io", "tests.cli.forked"])


def on_terminal(terminal, columns, arguments):
    """Run a command line with standard output and errors on a terminal, of so many columns."""
    from manyclass.cli import main

    for standard in (1, 2):
        os.dup2(terminal.fileno(), standard)
    terminal.close()
    sys.stdout, sys.stderr = open(1, "w", closefd=False), open(2, "w", closefd=False)
    os.environ |= {"COLUMNS": str(columns), "TERM": "xterm-256color"}
    # A shell starts what runs in the background deaf to Ctrl-C, which children inherit.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.exit(main(arguments))
