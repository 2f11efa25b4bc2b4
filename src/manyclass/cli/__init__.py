"""The command line: ``manyclass analyze``, ``fit``, ``predict``, ``evaluate``, ``summarize`` and ``merge``."""

import signal
import sys
import warnings
from collections.abc import Sequence
from types import FrameType
from typing import Any

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code.

    0 on success, 2 for a command line that makes no sense, 130 after Ctrl-C, 1 for anything else that went
    wrong. Failures print one sentence on stderr; ``--debug`` prints the traceback instead.
    """
    from manyclass.cli.errors import CommandError, explain

    arguments = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in arguments
    arguments = [argument for argument in arguments if argument != "--debug"]
    previous = _leave_cleanly_on_termination()
    try:
        from manyclass.cli.app import app

        if sys.stdout is None:
            # Closed by a shell. The first file that is opened would take its place.
            raise CommandError("there is no standard output to write to: leave it open, or send it to a file")
        with warnings.catch_warnings():
            warnings.showwarning = _one_line_warning
            code = app(args=arguments, standalone_mode=False, prog_name="manyclass")
        sys.stdout.flush()
        if code == 130:
            raise KeyboardInterrupt
        return int(code or 0)
    except BrokenPipeError:
        # The reader of a pipe, such as head, has seen enough; Python must not complain at exit either.
        sys.stdout = None
        return 1
    except (Exception, KeyboardInterrupt) as error:
        if debug:
            raise
        sentence, code = explain(error)
        if sentence:
            print(f"manyclass: {_one_line(sentence)}", file=sys.stderr)
        return code
    finally:
        if previous is not None:
            signal.signal(signal.SIGTERM, previous)


def _leave_cleanly_on_termination() -> Any:
    def leave(signum: int, frame: FrameType | None) -> None:
        # As an exception, so that half-written temporary files are removed on the way out.
        raise SystemExit(128 + signum)

    try:
        return signal.signal(signal.SIGTERM, leave)
    except ValueError:
        return None  # not the main thread


def _one_line_warning(message: Warning | str, *_details: Any, **_more: Any) -> None:
    print(f"manyclass: warning: {_one_line(str(message))}", file=sys.stderr)


def _one_line(text: str) -> str:
    # Names of columns and labels may hold anything.
    return " ".join("".join(character if character.isprintable() else " " for character in text).split())
